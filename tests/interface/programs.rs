//! Builds C and Fortran programs as a user would, against an installed FMPL, and runs them with the installed `fmpl run`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{root, skip};

/// Long enough for a machine that is busy with other tests; a job that hangs is ended and reported by it.
const TIMEOUT_S: &str = "120";

/// Where the tests build.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interface").join(name);
    std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// The `fmpl` that was built with this test.
pub fn built_command() -> &'static Path {
    // Not `env!`: without the feature `cli` there is no command, and this file must still compile.
    match option_env!("CARGO_BIN_EXE_fmpl") {
        Some(path) => Path::new(path),
        None => panic!("the command is a part of what is tested: build with the feature `cli`"),
    }
}

/// The prefix under which FMPL is installed for the tests, once.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch("prefix");
        must(Command::new(built_command()).arg("install").arg("--prefix").arg(&prefix));
        prefix
    })
}

/// Whether a tool is there; without it the test is skipped.
pub fn have(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        skip::skip(&format!("there is no {tool}"));
    }
    there
}

/// Runs a command that must succeed; its output is shown when it does not.
pub fn must(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, both(&output));
    output
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Builds one C program of the repository with the shared library.
pub fn c_program(source: &str, standard: &str) -> PathBuf {
    let program = scratch("c").join(format!("{}.{standard}", source.replace('/', "_")));
    let mut command = Command::new("cc");
    command.arg(format!("-std={standard}")).args(["-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
    command.arg(root().join(source)).arg("-o").arg(&program);
    must(link_shared(&mut command).arg("-lpthread"));
    program
}

/// Builds one C++ program of the repository with the shared library.
pub fn cpp_program(source: &str) -> PathBuf {
    let program = scratch("c").join(source.replace('/', "_"));
    let mut command = Command::new("g++");
    command.args(["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror"]);
    command.arg(root().join(source)).arg("-o").arg(&program);
    must(link_shared(&mut command).arg("-lpthread"));
    program
}

/// Builds one Fortran program of the repository with the module, compiled for it as a user would.
pub fn fortran_program(source: &str) -> PathBuf {
    let place = scratch("fortran").join(source.replace('/', "_"));
    std::fs::create_dir_all(&place).expect("a directory for the module file");
    let program = place.join("program");
    let mut command = Command::new("gfortran");
    command.current_dir(&place).args(["-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-std=f2018"]);
    command.arg(prefix().join("include/fmpl.f90")).arg(root().join(source)).arg("-o").arg(&program);
    must(link_shared(&mut command));
    program
}

/// Builds one fixed-form Fortran program of the repository with the include file.
pub fn fixed_form_program(source: &str) -> PathBuf {
    let program = scratch("fortran").join(source.replace('/', "_"));
    let mut command = Command::new("gfortran");
    command.args(["-O1", "-fallow-argument-mismatch"]).arg(root().join(source)).arg("-o").arg(&program);
    must(link_shared(&mut command));
    program
}

/// The options that pkg-config would give, and the run path of a library that is not installed for the system.
pub fn link_shared(command: &mut Command) -> &mut Command {
    let lib = prefix().join("lib");
    command.arg("-I").arg(prefix().join("include")).arg("-L").arg(&lib).arg("-lfmpl");
    command.arg(format!("-Wl,-rpath,{}", lib.display()))
}

/// Runs a program with no launcher; it must succeed.
pub fn run_alone(program: &Path) -> String {
    let _turn = turn();
    both(&must(Command::new("timeout").arg(TIMEOUT_S).arg(program)))
}

/// Runs a program on `ranks` ranks; it must succeed.
pub fn run(program: &Path, ranks: usize) -> String {
    run_with(program, &[], ranks)
}

/// The same with arguments.
pub fn run_with(program: &Path, arguments: &[&OsStr], ranks: usize) -> String {
    let output = started(program, arguments, ranks);
    assert!(output.status.success(), "{} on {ranks} ranks: {}\n{}", program.display(), output.status, both(&output));
    both(&output)
}

/// The same with a variable, `NAME=VALUE`, that only the ranks have.
pub fn run_env(program: &Path, variable: Option<&str>, ranks: usize) -> String {
    let _turn = turn();
    let mut command = Command::new(prefix().join("bin/fmpl"));
    command.args(["run", "-n", &ranks.to_string(), "--timeout", TIMEOUT_S]);
    command.args(variable.iter().flat_map(|variable| ["-x", variable])).arg("--").arg(program);
    both(&must(&mut command))
}

/// Runs a program on `ranks` ranks, whatever comes of it.
pub fn run_to_its_end(program: &Path, ranks: usize) -> Output {
    started(program, &[], ranks)
}

/// The same with arguments, and a rank that fails does not end the others.
pub fn run_all_to_their_end(program: &Path, arguments: &[&str], ranks: usize) -> Output {
    let _turn = turn();
    let mut command = Command::new(prefix().join("bin/fmpl"));
    command.args(["run", "--keep-going", "-n", &ranks.to_string(), "--timeout", TIMEOUT_S, "--"]).arg(program);
    command.args(arguments).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn started(program: &Path, arguments: &[&OsStr], ranks: usize) -> Output {
    let _turn = turn();
    let mut command = Command::new(prefix().join("bin/fmpl"));
    command
        .args(["run", "-n", &ranks.to_string(), "--timeout", TIMEOUT_S, "--tag-output", "--"])
        .arg(program)
        .args(arguments);
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// One job at a time: the tests of this file run in threads, and jobs in each other's way take longer than one after the other.
fn turn() -> impl Drop {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
