//! The declarations against `<infiniband/verbs.h>`, by a C program that prints sizes and offsets.

use fmpl::fabric::verbs::ffi::LAYOUTS;
use std::fmt::Write;
use std::process::Command;

#[test]
fn declarations_are_those_of_the_header() {
    let dir = std::env::temp_dir().join(format!("fmpl-layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the C program");
    let (source, program) = (dir.join("layout.c"), dir.join("layout"));
    let mut text =
        String::from("#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, size, fields) in LAYOUTS {
        if *size != 0 {
            writeln!(text, "  printf(\"{name} %zu\\n\", sizeof(struct {name}));").expect("a string takes it");
        }
        for (field, _) in *fields {
            writeln!(text, "  printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));").expect("likewise");
        }
    }
    text.push_str("  return 0;\n}\n");
    std::fs::write(&source, text).expect("writing the C program");
    let header = std::path::Path::new("/usr/include/infiniband/verbs.h").exists();
    let compiled = header.then(|| Command::new("cc").arg("-o").arg(&program).arg(&source).output().ok()).flatten();
    let Some(compiled) = compiled else {
        crate::skip::skip("there is no <infiniband/verbs.h>, or no C compiler");
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
    assert_eq!(String::from_utf8_lossy(&printed.stdout), expected);
}
