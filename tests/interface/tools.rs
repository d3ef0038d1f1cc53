//! Tools that stand in front of the library by its second names: preloaded, linked with the shared library, and with the archive.

use std::path::PathBuf;
use std::process::Command;

use crate::programs::{fortran_program, have, link_shared, must, prefix, run_all_to_their_end, run_env, scratch};
use crate::root;

const TOOL: &str = "examples/c/watched.c";

/// Builds a program of C files with the tool, or the tool alone.
fn build(name: &str, sources: &[&str], link: impl FnOnce(&mut Command)) -> PathBuf {
    let program = scratch("tools").join(name);
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC"]);
    command.args(sources.iter().map(|source| root().join(source))).arg("-o").arg(&program);
    link(&mut command);
    must(&mut command);
    program
}

fn static_library(command: &mut Command) {
    command.arg("-I").arg(prefix().join("include")).arg(prefix().join("lib/libfmpl.a"));
    command.args(["-lpthread", "-ldl", "-lrt", "-lm"]);
}

/// How many calls of a kind the tool has seen on a rank.
fn seen(said: &str, rank: usize, kind: &str) -> Option<u32> {
    let (_, rest) = said.split_once(&format!("rank {rank}: {kind}: "))?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn a_tool_counts_calls_however_it_is_linked() {
    let plain = build("ring", &["examples/c/ring.c"], |c| _ = link_shared(c));
    let tool = build("libwatched.so", &[TOOL], |c| _ = link_shared(c.arg("-shared")));
    let shared = build("ring_shared", &["examples/c/ring.c", TOOL], |c| _ = link_shared(c));
    let archive = build("ring_archive", &["examples/c/ring.c", TOOL], static_library);
    let preload = format!("LD_PRELOAD={}", tool.display());
    for (program, env) in [(&plain, Some(&*preload)), (&shared, None), (&archive, None)] {
        let said = run_env(program, env, 3);
        for rank in 0..3 {
            assert_eq!(seen(&said, rank, "sendrecv"), Some(2), "{}: {said}", program.display());
        }
        assert!(said.contains("the sum of 1 to 3 is 6"), "{said}");
    }
    // Nobody in front: nothing is seen.
    assert_eq!(seen(&run_env(&plain, None, 3), 0, "sendrecv"), None);
}

/// The Fortran names call what the C names are, and not by these names.
#[test]
fn calls_within_the_library_do_not_come_to_a_tool() {
    if !have("gfortran") {
        return;
    }
    let program = fortran_program("examples/fortran/ring.f90");
    let tool = build("libwatched_fortran.so", &[TOOL], |c| _ = link_shared(c.arg("-shared")));
    let said = run_env(&program, Some(&format!("LD_PRELOAD={}", tool.display())), 2);
    assert!(said.contains("the sum of 1 to 2 is") && !said.contains("calls,"), "{said}");
}

/// What unwinds in the archive still does: a drop in the library tells of an exception that goes through it.
#[test]
fn the_archive_unwinds() {
    if !have("g++") {
        return;
    }
    let program = scratch("tools").join("throws");
    let mut command = Command::new("g++");
    command.args(["-std=c++14", "-O1"]).arg(root().join("tests/c/throws.cc")).arg("-o").arg(&program);
    static_library(&mut command);
    must(&mut command);
    let output = run_all_to_their_end(&program, &["blocking"], 2);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the function of a reduction") && said.contains("was left by an exception"), "{said}");
}
