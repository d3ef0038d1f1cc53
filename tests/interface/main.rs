//! The C and Fortran interfaces: their files are up to date, every function can be linked, and programs written in the two
//! languages do under `fmpl run` what they say.
//!
//! `FMPL_TEST_BLESS=1` writes the generated files instead of comparing them.

mod acp;
mod beside;
mod cpp;
mod fortran;
mod header;
mod installed;
mod machine;
mod mistakes;
mod programs;
mod reductions;
#[path = "../skip/mod.rs"]
mod skip;
mod source;
mod symbols;
mod tools;
mod tuning;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use programs::{
    c_program, cpp_program, fixed_form_program, fortran_program, have, must, prefix, run, run_all_to_their_end,
    run_alone, run_to_its_end, run_with, scratch,
};

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
    up_to_date("include/acp.h", &acp::write());
    up_to_date("src/ffi/second_names.rs", &header::second_names_source());
}

#[test]
fn the_fortran_files_are_up_to_date() {
    up_to_date("include/fmplf.h", &fortran::include_file());
    up_to_date("include/fmpl.f90", &fortran::module());
}

#[test]
fn the_table_of_reductions_is_up_to_date() {
    let page = "docs/reductions.md";
    let text = fs::read_to_string(root().join(page)).expect(page);
    let (above, _) = text.split_once(reductions::ROWS).expect("the heading of the table");
    up_to_date(page, &format!("{above}{}{}", reductions::ROWS, reductions::rows()));
}

/// The examples, and the numbers of ranks on which each is run.
const EXAMPLES: [(&str, &[usize]); 10] = [
    ("hello", &[1, 2, 4]),
    ("ping_pong", &[2, 3]),
    ("ring", &[1, 2, 3, 4]),
    ("overlap", &[1, 2, 3]),
    ("strided", &[2]),
    ("halo_exchange", &[1, 2, 3, 4]),
    ("work_queue", &[1, 2, 4]),
    ("work_counter", &[1, 2, 4]),
    ("hash_table", &[1, 2, 4]),
    ("frames", &[1, 2, 3]),
];

#[test]
fn the_c_examples_do_what_they_say() {
    for (name, ranks) in EXAMPLES {
        for standard in ["c99", "c11"] {
            c_program(&format!("examples/c/{name}.c"), standard);
        }
        let program = c_program(&format!("examples/c/{name}.c"), "c11");
        for ranks in ranks {
            let said = run(&program, *ranks);
            assert!(!said.is_empty(), "{name} on {ranks} ranks says nothing");
        }
    }
}

#[test]
fn the_fortran_examples_do_what_they_say() {
    if !have("gfortran") {
        return;
    }
    for (name, ranks) in EXAMPLES {
        let program = fortran_program(&format!("examples/fortran/{name}.f90"));
        for ranks in ranks {
            let said = run(&program, *ranks);
            assert!(!said.is_empty(), "{name} on {ranks} ranks says nothing");
        }
    }
}

#[test]
fn every_c_call_does_what_the_header_says() {
    let program = c_program("tests/c/calls.c", "c11");
    run_alone(&program);
    for ranks in 1..=4 {
        run(&program, ranks);
    }
}

/// The predefined functions have other addresses in a program that is not position-independent, and in a shared object loaded later.
#[test]
fn collective_calls_from_c_however_it_was_linked() {
    let source = root().join("tests/c/collective.c");
    let build = |name: &str, options: &[&str]| {
        let program = scratch("c").join(name);
        let mut command = Command::new("cc");
        command
            .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
            .args(options)
            .arg(&source)
            .arg("-o")
            .arg(&program);
        must(programs::link_shared(&mut command).arg("-ldl"));
        program
    };
    let plugin = build("plugin.so", &["-DPLUGIN", "-fPIC", "-shared"]);
    for (name, options) in [("pie", ["-fPIE", "-pie"]), ("fixed", ["-fno-pie", "-no-pie"])] {
        let program = build(name, &options);
        run_alone(&program);
        for ranks in [1, 2, 3] {
            run_with(&program, &[plugin.as_os_str()], ranks);
        }
    }
}

#[test]
fn collective_calls_from_fortran() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/collective.f90");
    run_alone(&program);
    for ranks in [2, 3] {
        run(&program, ranks);
    }
}

/// Numbers of ranks for what is the same with all: 1 to 8 in a long run, one of each kind otherwise (one, two, odd, a prime).
fn many_ranks() -> impl Iterator<Item = usize> {
    let long = std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1");
    (1..=8).filter(move |n| long || [1, 2, 3, 7].contains(n))
}

/// Each on each type, however it was linked: the addresses of the functions are what a reduction knows them by.
#[test]
fn every_predefined_function_from_c() {
    let program = c_program("tests/c/reductions.c", "c11");
    run_alone(&program);
    for ranks in many_ranks() {
        run(&program, ranks);
    }
    let fixed = scratch("c").join("reductions.fixed");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1", "-fno-pie", "-no-pie"]).arg(root().join("tests/c/reductions.c"));
    must(programs::link_shared(command.arg("-o").arg(&fixed)));
    run(&fixed, 2);
}

#[test]
fn every_predefined_function_from_fortran() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/reductions.f90");
    run_alone(&program);
    for ranks in many_ranks() {
        run(&program, ranks);
    }
}

#[test]
fn several_requests_at_a_time() {
    let program = c_program("tests/c/requests.c", "c11");
    run_alone(&program);
    for ranks in 1..=4 {
        run(&program, ranks);
    }
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/requests.f90");
    for ranks in 1..=3 {
        run(&program, ranks);
    }
}

#[test]
fn global_memory_from_c() {
    let program = c_program("tests/c/acp.c", "c11");
    run_alone(&program);
    for ranks in 1..=4 {
        run(&program, ranks);
    }
}

#[test]
fn global_memory_from_fortran() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/acp.f90");
    run_alone(&program);
    for ranks in 1..=3 {
        run(&program, ranks);
    }
}

#[test]
fn wrong_use_gets_an_error_and_leaves_the_job_usable() {
    run(&c_program("tests/c/misuse.c", "c11"), 2);
}

#[test]
fn abort_ends_the_job_with_its_code() {
    let output = run_to_its_end(&c_program("tests/c/abort.c", "c11"), 3);
    assert_eq!(output.status.code(), Some(41), "{output:?}");
}

#[test]
fn abort_ends_the_job_from_fortran() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/abort.f90");
    for (how, code, says) in [("fmpl", 41, "aborted the job with exit code 41"), ("acp", 1, "abort: the table is full")]
    {
        let output = run_all_to_their_end(&program, &[how], 3);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(says), "{how}: {output:?}");
    }
}

/// An exception that leaves a function which the library calls: no undefined behaviour, and no end without a word.
#[test]
fn a_function_that_throws_ends_its_process_with_a_message() {
    if !have("g++") {
        return;
    }
    let program = cpp_program("tests/c/throws.cc");
    for how in ["blocking", "unhandled", "pending", "thread"] {
        let output = run_all_to_their_end(&program, &[how], 2);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!out.contains("survived") && !out.contains("caught"), "{how}: {out}{err}");
        let line =
            err.lines().find(|l| l.contains("the function of a reduction")).unwrap_or_else(|| panic!("{how}: {err}"));
        assert!(line.contains("rank 0") && line.contains(&*program.to_string_lossy()), "{how}: {line}");
        assert!(err.contains("died of signal 6"), "{how}: {err}");
        // The other rank hears of the end, and of nothing worse.
        assert!(out.contains("rank 1: code 10:") && out.contains("rank 0 has died"), "{how}: {out}{err}");
    }
}

#[test]
fn every_fortran_subroutine_does_what_the_module_says() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("tests/fortran/calls.f90");
    run_alone(&program);
    for ranks in 1..=3 {
        run(&program, ranks);
    }
}

#[test]
fn the_fortran_include_file_serves_fixed_and_free_form() {
    if !have("gfortran") {
        return;
    }
    let source = scratch("fortran").join("free.f90");
    let text = "program free\nimplicit none\ninclude 'fmplf.h'\ninteger :: flag, ier\ncall fmpl_initialized(flag, ier)\n\
                if (ier /= FMPL_SUCCESS .or. FMPL_NULL == 0) stop 1\nend program free\n";
    fs::write(&source, text).expect("the program is written");
    must(Command::new("gfortran").arg("-fsyntax-only").arg("-I").arg(prefix().join("include")).arg(source));
    run(&fixed_form_program("tests/fortran/fixed.f"), 2);
}
