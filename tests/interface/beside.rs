//! The programs of `examples/programs` find the same on any number of ranks, and the same as their twins on an MPI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{link_shared, must, run_with, scratch};
use crate::{root, skip};

/// Each with what makes it small.
const PROGRAMS: [(&str, &[&str]); 3] = [("halo3d", &["24", "7"]), ("cg", &["16", "100"]), ("sort", &["16384", "2"])];

fn compile(compiler: &str, name: &str, as_: &str) -> Command {
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]);
    command.arg(root().join("examples/programs").join(format!("{name}.c"))).arg("-o").arg(program(as_));
    command
}

fn program(name: &str) -> PathBuf {
    scratch("programs").join(name)
}

/// `as_`: a file of the test's own, since tests run beside each other.
fn on_fmpl(name: &str, as_: &str) -> PathBuf {
    must(link_shared(&mut compile("cc", name, as_)).args(["-pedantic", "-lm"]));
    program(as_)
}

fn run_here(program: &Path, arguments: &[&str], ranks: usize) -> String {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    found(&run_with(program, &arguments, ranks), ranks)
}

/// What rank 0 says it has found: a checksum, a residual, a fingerprint.
fn found(said: &str, ranks: usize) -> String {
    let line = said.lines().find(|line| line.contains("of it communication"));
    let line = line.unwrap_or_else(|| panic!("on {ranks} ranks nothing is found: {said}"));
    assert!(line.contains(&format!(" on {ranks} ranks")), "{line}");
    let (what, _) = line.split_once(';').expect("times");
    what.rsplit(": ").next().expect("a finding").to_owned()
}

#[test]
fn the_programs_find_the_same_on_any_number_of_ranks() {
    for (name, arguments) in PROGRAMS {
        let program = on_fmpl(name, name);
        let found: Vec<String> = [1, 2, 3, 4, 6, 8].map(|ranks| run_here(&program, arguments, ranks)).into();
        match name {
            "halo3d" => assert!(found.iter().all(|f| *f == found[0] && f.starts_with("checksum ")), "{found:?}"),
            // It checks its solution itself; sums are in another order with other numbers of ranks.
            "cg" => assert!(found.iter().all(|f| f.starts_with("residual ") && f.ends_with("e-11")), "{found:?}"),
            // Its keys are other ones with other numbers of ranks; it checks itself that none is lost and all are in order.
            _ => assert!(found.iter().all(|f| f.starts_with("fingerprint ")), "{found:?}"),
        }
    }
}

#[test]
fn the_programs_find_the_same_as_their_twins_on_mpi() {
    let known = [("mpicc.mpich", "mpiexec.mpich"), ("mpicc.openmpi", "mpirun.openmpi")];
    let is_there =
        |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    let there: Vec<_> = known.into_iter().filter(|(mpicc, mpiexec)| is_there(mpicc) && is_there(mpiexec)).collect();
    if there.is_empty() {
        return skip::skip("there is no MPI to compare with");
    }
    for (name, arguments) in PROGRAMS {
        let here = on_fmpl(name, &format!("{name}.here"));
        for (mpicc, mpiexec) in &there {
            let twin = format!("{name}.{mpicc}");
            must(compile(mpicc, name, &twin).args(["-DWITH_MPI", "-lm"]));
            let mut command = Command::new("timeout");
            command.args(["120", mpiexec]);
            if mpiexec.ends_with("openmpi") {
                command.args(["--allow-run-as-root", "--oversubscribe"]);
            }
            let output = must(command.args(["-n", "3"]).arg(program(&twin)).args(arguments));
            let there = found(&String::from_utf8_lossy(&output.stdout), 3);
            let here = run_here(&here, arguments, 3);
            if name != "cg" {
                assert_eq!(here, there, "{name}: here, and with {mpicc}");
            }
        }
    }
}
