//! What a newcomer types wrong gets a line that says what is wrong and what to do.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::programs::{c_program, prefix, scratch};

/// What is typed behind `fmpl`, with what in the environment; the exit code, and what the line says. `hello` is a program, `steps.sh` a script
/// without the right to be executed, in the directory where all this is typed.
const MISTAKES: [(&str, &str, i32, &str); 24] = [
    ("rnu -n 2 ./hello", "", 2, "did you mean `fmpl run`?"),
    ("./hello", "", 2, "a program is started by `fmpl run ./hello`"),
    ("run -n", "", 2, "a value is required for '-n <N>'"),
    ("run -n two ./hello", "", 2, "invalid value 'two' for '-n <N>'"),
    ("run -n 0 ./hello", "", 2, "0 is not in 1..=65536"),
    ("run -n 2", "", 2, "not provided:\n  <PROGRAM>"),
    ("run -n 2 --timeout soon ./hello", "", 2, "invalid value 'soon' for '--timeout <SECONDS>'"),
    ("run -n 2 hello", "", 127, "program not found: hello in PATH; the one in this directory is ./hello"),
    ("run -n 2 ./helo", "", 127, "program not found: ./helo"),
    ("run -n 2 steps.sh", "", 127, "program not found: steps.sh in PATH; the one in this directory is ./steps.sh"),
    ("run -n 2 ./steps.sh", "", 126, "chmod +x"),
    ("run -n 2 ./", "", 126, "it is a directory"),
    ("run -n 2 --bind cores ./hello", "", 2, "a similar value exists: 'core'"),
    ("run -n 2 --hostfile nohosts ./hello", "", 2, "nohosts: No such file"),
    ("run -n 2 -x NOT_SET_ANYWHERE ./hello", "", 2, "no variable NOT_SET_ANYWHERE"),
    ("run -n 2 ./hello", "FMPL_WIAT=spin", 0, "FMPL_WIAT is no setting of FMPL; did you mean FMPL_WAIT?"),
    ("run -n 2 ./hello", "FMPL_WAIT=spinn", 1, "FMPL_WAIT=spinn: possible values: spin | adaptive | block"),
    ("run -n 2 ./hello", "FMPL_EAGER=4kb", 1, "FMPL_EAGER=4kb: possible values: "),
    ("bench pingpnog", "", 1, "no benchmark pingpnog; did you mean pingpong? there are pingpong, "),
    ("bench pingpong --sizes 8x", "", 2, "8x: not a number of bytes (such as 8, 4k, 1M)"),
    ("bench pingpong --against openmp", "", 1, "--against openmp: there are openmpi, "),
    ("info FMPL_WIAT", "", 1, "no setting has FMPL_WIAT in its name; did you mean FMPL_WAIT?"),
    ("tune --fo", "", 2, "unexpected argument '--fo' found"),
    ("doctor --jsn", "", 2, "a similar argument exists: '--json'"),
];

#[test]
fn what_a_newcomer_types_wrong_is_told_with_what_to_do() {
    let place = scratch("mistakes");
    std::fs::copy(c_program("examples/c/hello.c", "c11"), place.join("hello")).expect("a program");
    std::fs::write(place.join("steps.sh"), "echo hello\n").expect("a file");
    std::fs::set_permissions(place.join("steps.sh"), PermissionsExt::from_mode(0o644)).expect("its mode");
    for (typed, environment, code, says) in MISTAKES {
        let mut command = Command::new("timeout");
        command.arg("60").arg(prefix().join("bin/fmpl")).args(typed.split(' ')).current_dir(&place);
        command.envs(environment.split_once('='));
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "fmpl {typed} ({environment}): {said}");
        assert!(said.contains(says), "fmpl {typed} ({environment}): {said}");
        // Its lines are few: what is wrong, and perhaps how it is used and what is like it.
        assert!(said.lines().count() <= 10, "fmpl {typed} ({environment}): {said}");
    }
}
