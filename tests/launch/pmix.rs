//! The declarations of PMIx against `<pmix.h>`, by a C program that prints sizes, places and numbers.

use super::*;
use fmpl::launch::pmix::ffi::{LAYOUTS, NUMBERS, TEXTS};
use std::fmt::Write;

/// Where Debian, and others, have the header.
fn header() -> Option<PathBuf> {
    let machine = std::env::consts::ARCH;
    [format!("/usr/lib/{machine}-linux-gnu/pmix2/include"), "/usr/include".into(), "/usr/local/include".into()]
        .into_iter()
        .map(PathBuf::from)
        .find(|place| place.join("pmix.h").exists())
}

#[test]
fn declarations_are_those_of_the_header() {
    let (Some(include), Some(cc)) = (header(), found("cc")) else {
        return crate::skip::skip("there is no <pmix.h> (Debian package libpmix-dev), or no C compiler");
    };
    let (mut text, mut expected) =
        ("#include <pmix.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n".to_owned(), String::new());
    for (name, size, fields) in LAYOUTS {
        writeln!(text, "printf(\"{name} %zu\\n\", sizeof({name}));").unwrap();
        writeln!(expected, "{name} {size}").unwrap();
        for (field, at) in *fields {
            writeln!(text, "printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));").unwrap();
            writeln!(expected, "{name}.{field} {at}").unwrap();
        }
    }
    for (name, number) in NUMBERS {
        writeln!(text, "printf(\"%s %lld\\n\", \"{name}\", (long long)({name}));").unwrap();
        writeln!(expected, "{name} {number}").unwrap();
    }
    for (name, value) in TEXTS {
        writeln!(text, "printf(\"{name} %s\\n\", {name});").unwrap();
        writeln!(expected, "{name} {}", value.to_str().unwrap()).unwrap();
    }
    text.push_str("return 0;\n}\n");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (dir.join("pmix-layout.c"), dir.join("pmix-layout"));
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new(cc).arg("-I").arg(include).arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), expected);
}
