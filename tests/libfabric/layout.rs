//! The declarations against `<rdma/fabric.h>` and its neighbours, by a C program that prints sizes, offsets and constants.

use fmpl::fabric::ofi::ffi::{LAYOUTS, NUMBERS};
use std::fmt::Write;
use std::process::Command;

const HEADERS: [&str; 6] = ["fabric.h", "fi_domain.h", "fi_endpoint.h", "fi_eq.h", "fi_rma.h", "fi_cm.h"];

pub fn declarations_are_those_of_the_headers() {
    let dir = std::env::temp_dir().join(format!("fmpl-libfabric-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the C program");
    let (source, program) = (dir.join("layout.c"), dir.join("layout"));
    let mut text: String = HEADERS.iter().map(|name| format!("#include <rdma/{name}>\n")).collect();
    text.push_str("#include <rdma/fi_errno.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, size, fields) in LAYOUTS {
        if *size != 0 {
            writeln!(text, "  printf(\"{name} %zu\\n\", sizeof(struct {name}));").expect("a string takes it");
        }
        for (field, _) in *fields {
            writeln!(text, "  printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));").expect("likewise");
        }
    }
    for (name, _) in NUMBERS {
        writeln!(text, "  printf(\"{name} %llu\\n\", (unsigned long long){name});").expect("likewise");
    }
    text.push_str("  return 0;\n}\n");
    std::fs::write(&source, text).expect("writing the C program");
    let header = std::path::Path::new("/usr/include/rdma/fabric.h").exists();
    let compiled = header.then(|| Command::new("cc").arg("-o").arg(&program).arg(&source).output().ok()).flatten();
    let Some(compiled) = compiled else {
        crate::ranks::skip::skip("there is no <rdma/fabric.h>, or no C compiler");
        let _ = std::fs::remove_dir_all(&dir);
        return;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(&program).output().expect("running the C program");
    let _ = std::fs::remove_dir_all(&dir);
    let mut expected = String::new();
    for (name, size, fields) in LAYOUTS {
        if *size != 0 {
            writeln!(expected, "{name} {size}").expect("likewise");
        }
        for (field, at) in *fields {
            writeln!(expected, "{name}.{field} {at}").expect("likewise");
        }
    }
    for (name, value) in NUMBERS {
        writeln!(expected, "{name} {value}").expect("likewise");
    }
    assert_eq!(String::from_utf8_lossy(&printed.stdout), expected);
}
