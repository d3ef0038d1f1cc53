//! Declarations of ours against the headers of a library, by a C program that prints sizes, places and constants.
#![allow(dead_code, reason = "each target uses the part that it needs")]

use crate::skip::skip;
use std::fmt::{Display, Write};
use std::path::Path;
use std::process::Command;

/// What a C program is asked, and what we say.
pub struct Comparison {
    source: String,
    expected: String,
}

impl Comparison {
    /// With these headers.
    pub fn with(headers: &[&str]) -> Comparison {
        let mut source: String = headers.iter().map(|name| format!("#include <{name}>\n")).collect();
        source.push_str("#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
        Comparison { source, expected: String::new() }
    }

    /// Sizes of structures, and places of their fields. `kind`: what stands before the name of one (`struct`, or nothing).
    pub fn layouts(mut self, kind: &str, layouts: &[fmpl::base::library::Layout]) -> Comparison {
        for (name, size, fields) in layouts {
            if *size != 0 {
                self.ask(name, "%zu", &format!("sizeof({kind} {name})"), size);
            }
            for (field, at) in *fields {
                self.ask(&format!("{name}.{field}"), "%zu", &format!("offsetof({kind} {name}, {field})"), at);
            }
        }
        self
    }

    /// Constants, by their names.
    pub fn numbers(mut self, numbers: impl Iterator<Item = (&'static str, i64)>) -> Comparison {
        for (name, value) in numbers {
            self.ask(name, "%lld", &format!("(long long)({name})"), value);
        }
        self
    }

    /// One value.
    pub fn ask(&mut self, name: &str, format: &str, c: &str, ours: impl Display) {
        writeln!(self.source, "  printf(\"%s {format}\\n\", \"{name}\", {c});").expect("a string takes it");
        writeln!(self.expected, "{name} {ours}").expect("likewise");
    }

    /// Compiles and runs the program; skipped where there is no header in this directory (`None`: it is not to be found) or no compiler.
    pub fn hold(self, include: Option<&Path>, header: &str) {
        let dir =
            std::env::temp_dir().join(format!("fmpl-headers-{}-{}", header.replace('/', "-"), std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the C program");
        let (source, program) = (dir.join("layout.c"), dir.join("layout"));
        std::fs::write(&source, self.source + "  return 0;\n}\n").expect("writing the C program");
        let compiled = include.filter(|dir| dir.join(header).exists()).and_then(|include| {
            Command::new("cc").arg("-I").arg(include).arg("-o").arg(&program).arg(&source).output().ok()
        });
        let printed = compiled.as_ref().filter(|c| c.status.success()).map(|_| Command::new(&program).output());
        let _ = std::fs::remove_dir_all(&dir);
        let Some(compiled) = compiled else { return skip(&format!("there is no <{header}>, or no C compiler")) };
        let printed = printed.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&compiled.stderr)));
        assert_eq!(String::from_utf8_lossy(&printed.expect("running the C program").stdout), self.expected);
    }
}
