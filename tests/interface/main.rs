//! The C and Fortran interfaces: their files are up to date, every function can be linked, and programs written in the two
//! languages do under `fmpl run` what they say.
//!
//! `FMPL_TEST_BLESS=1` writes the generated files instead of comparing them.

mod fortran;
mod header;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a generated file with the one that is checked in, or writes it.
fn up_to_date(path: &str, text: &str) {
    let file: PathBuf = root().join(path);
    if std::env::var_os("FMPL_TEST_BLESS").is_some() {
        fs::write(&file, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let there = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    if there == text {
        return;
    }
    let (mut old, mut new) = (there.lines().collect::<Vec<_>>(), text.lines().collect::<Vec<_>>());
    let mut line = 1;
    while !old.is_empty() && !new.is_empty() && old[0] == new[0] {
        old.remove(0);
        new.remove(0);
        line += 1;
    }
    while !old.is_empty() && !new.is_empty() && old.last() == new.last() {
        old.pop();
        new.pop();
    }
    let mark = |mark: char, lines: &[&str]| lines.iter().map(|l| format!("{mark}{l}\n")).collect::<String>();
    panic!(
        "{path} is not up to date; FMPL_TEST_BLESS=1 cargo test --test interface writes it. From line {line}:\n{}{}",
        mark('-', &old),
        mark('+', &new)
    );
}

#[test]
fn the_c_header_is_up_to_date() {
    up_to_date("include/fmpl.h", &header::write());
}

#[test]
fn the_fortran_files_are_up_to_date() {
    up_to_date("include/fmplf.h", &fortran::include_file());
    up_to_date("include/fmpl.f90", &fortran::module());
}
