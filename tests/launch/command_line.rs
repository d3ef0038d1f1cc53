use super::*;

#[test]
fn wrong_command_lines_are_named() {
    for (args, code, says) in [
        (&["-n", "0", "true"][..], 2, "0 is not in 1..=65536"),
        (&["-n", "many", "true"], 2, "many"),
        (&["-n", "-4", "true"], 2, "-4 is not in"),
        (&["true", ":", "-n", "1", "true"], 2, "its number of ranks (-n)"),
        (&["-n", "1", "true", ":", "--wdir", "/", "true"], 2, "its number of ranks (-n)"),
        (&["-n", "2"], 2, "<PROGRAM>"),
        (&["-n", "2", "--env", "=x", "true"], 2, "NAME=VALUE"),
        (&["-n", "2", "--timeout", "-3", "true"], 2, "above 0"),
        (&["-n", "2", "--bind", "board", "true"], 2, "possible values: core, l3, numa, socket, none"),
        (&["-n", "2", "--map-by", "board", "true"], 2, "possible values: slot, core, l3, numa, socket, node"),
        (&["-n", "2", "--bind-to", "none", "--map-by", "numa", "true"], 2, "--bind-to none"),
        (&["-np", "2", "--mca", "btl", "self", "true"], 2, "fmpl info"),
        (&["-np", "2", "-x", "NOT_SET_ANYWHERE", "true"], 2, "no variable NOT_SET_ANYWHERE"),
        (&["-np"], 2, "-np needs a value"),
        (&["-n", "2", "--wdir", "/no/such/dir", "true"], 2, "/no/such/dir is not a directory"),
        (&["-n", "2", "--preload", "libnothing.so", "true"], 2, "../lib/libnothing.so"),
        (&["-n", "2", "no-such-program"], 127, "program not found: no-such-program"),
        (&["-n", "2", "/etc/passwd"], 126, "/etc/passwd cannot be executed"),
        (&["-n", "1", "sleep", "60", ":", "-n", "1", "no-such-program"], 127, "program not found: no-such-program"),
        (&["-n", "1", "true", ":", "-n", "0", "true"], 2, "0 is not in 1..=65536"),
        (&["-n", "2", "--tagoutput", "true"], 2, "--tagoutput"),
        (&["-n", "1", "true", ":", "-n", "1", "--tag-output", "true"], 2, "--tag-output"),
    ] {
        let r = run(args);
        assert_eq!(r.code, code, "{args:?}: {}", r.err);
        assert!(r.err.contains(says), "{args:?}: {}", r.err);
        assert_eq!(r.out, "", "{args:?}");
    }
}

#[test]
fn a_script_without_its_interpreter_is_told_from_no_script() {
    let script = std::env::temp_dir().join(format!("fmpl-launch-test-{}", std::process::id()));
    std::fs::write(&script, "#!/no/such/shell\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let r = run(&["-n", "1", script.to_str().unwrap()]);
    std::fs::remove_file(&script).unwrap();
    assert!(r.code == 127 && r.err.contains("interpreter"), "{}", r.err);
}

#[test]
fn several_programs_make_one_job() {
    let print = "echo $PMI_RANK/$PMI_SIZE $WHO $*";
    let r = run(&[
        "-n", "2", "--env", "WHO=all", "--", "sh", "-c", print, "sh", "-n", ":", "x", ":", "-n", "1", "--env",
        "WHO=one", "--", "sh", "-c", print,
    ]);
    let mut lines: Vec<_> = r.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/3 all -n : x", "1/3 all -n : x", "2/3 one"], "{}", r.err);
    assert_eq!(r.code, 0);
}

#[test]
fn everything_after_the_program_belongs_to_it() {
    let r = run(&["-n", "1", "echo", "-n", "--", "--timeout", "a", "--", ":"]);
    assert_eq!((r.code, r.out.as_str()), (0, "-- --timeout a -- :"), "{}", r.err);
}

#[test]
fn environment_and_directory() {
    let print = "echo $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS $FMPL_RUN \"$A\" $(pwd)";
    let r = run(&["-n", "2", "--env", "A=b=c d", "--wdir", "/", "--", "sh", "-c", print]);
    let mut lines: Vec<_> = r.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 2 0 2 1 b=c d /", "1 2 1 2 1 b=c d /"], "{}", r.err);
}

#[test]
fn preload_takes_a_path() {
    let library = format!("{}/../deps/../{}", env!("CARGO_TARGET_TMPDIR"), "preload-me");
    std::fs::create_dir_all(format!("{}/../deps", env!("CARGO_TARGET_TMPDIR"))).unwrap();
    std::fs::write(&library, "not a library, which the loader says and goes on").unwrap();
    let r = run(&["-n", "1", "--preload", &library, "--", "sh", "-c", "echo $LD_PRELOAD"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(r.out.trim(), std::fs::canonicalize(&library).unwrap().to_str().unwrap());
}

#[test]
fn ranks_are_bound_to_a_core_each_when_there_are_enough() {
    let cpus = "grep Cpus_allowed_list /proc/self/status";
    let distinct = |r: &Ran| r.out.lines().collect::<std::collections::BTreeSet<_>>().len();
    let allowed = std::thread::available_parallelism().unwrap().get();
    let n = allowed.to_string();
    let r = run(&["-n", &n, "--", "sh", "-c", cpus]);
    assert!(distinct(&r) == allowed && r.out.lines().all(|l| allowed == 1 || !l.contains(['-', ','])), "{}", r.out);
    let r = run(&["-n", &n, "--bind", "none", "--", "sh", "-c", cpus]);
    assert_eq!(distinct(&r), 1, "{}", r.out);
    let r = run(&["-n", &(allowed + 1).to_string(), "-v", "--", "sh", "-c", cpus]);
    assert_eq!(distinct(&r), 1, "{}", r.out);
    assert!(r.err.contains("rank 0: sh on any core"), "{}", r.err);
}

#[test]
fn a_script_without_a_first_line_is_the_shells() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scripts");
    std::fs::create_dir_all(&dir).unwrap();
    let script = dir.join("plain");
    std::fs::write(&script, "echo plain $1\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(&["-n", "1", script.to_str().unwrap(), "x"]).out, "plain x\n");
    // Found by the PATH that the ranks are given, and from the directory in which they start.
    let path = format!("PATH={}:/usr/bin:/bin", dir.display());
    assert_eq!(run(&["-n", "1", "--env", &path, "plain", "y"]).out, "plain y\n");
    assert_eq!(run(&["-n", "1", "--wdir", dir.to_str().unwrap(), "./plain", "z"]).out, "plain z\n");
}

#[test]
fn many_ranks_start_from_a_shell_with_few_descriptors() {
    let job = format!("ulimit -Sn 64; exec timeout 60 {} run -n 80 -- sh -c 'ulimit -Sn'", env!("CARGO_BIN_EXE_fmpl"));
    let r = ran(Command::new("sh").args(["-c", &job]).output().unwrap());
    assert_eq!((r.code, r.err.as_str()), (0, ""));
    assert!(r.out.lines().count() == 80 && r.out.lines().all(|l| l == "64"), "ranks have the user's limit: {}", r.out);
}

/// The library's own threads, and ranks, have theirs anyway.
#[test]
fn the_command_does_with_little_stack() {
    for words in ["-n 1 true : -n 1 true", "--launch-agent 'env -u' -H a:1,b:1 true", "-n 2 --tag-output --stats true"]
    {
        let job = format!("ulimit -s 96; exec timeout 60 {} run {words}", env!("CARGO_BIN_EXE_fmpl"));
        let r = ran(Command::new("sh").args(["-c", &job]).output().unwrap());
        assert_eq!(r.code, 0, "{words}: {}", r.err);
    }
}

#[test]
fn the_spellings_of_mpirun_are_understood() {
    let print = "echo $PMI_RANK/$PMI_SIZE $A $B $C";
    let mut c = fmpl_run(&[
        "-np",
        "2",
        "-genv",
        "A",
        "a b",
        "-env",
        "B",
        "c",
        "-x",
        "C",
        "-bind-to",
        "none",
        "--map-by",
        "slot",
        "--oversubscribe",
        "sh",
        "-c",
        print,
        ":",
        "-np",
        "1",
        "-x",
        "A=other",
        "sh",
        "-c",
        print,
    ]);
    let r = ran(c.env("C", "here").output().unwrap());
    let mut lines: Vec<_> = r.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/3 a b c here", "1/3 a b c here", "2/3 other c here"], "{}", r.err);
}

#[test]
fn without_a_number_there_is_one_rank_for_each_core() {
    let r = run(&["--", "sh", "-c", "echo $PMI_SIZE"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(r.out.lines().count(), fmpl::launch::cores());
    assert!(r.out.lines().all(|l| l.parse() == Ok(fmpl::launch::cores())), "{}", r.out);
}

#[test]
fn ranks_are_bound_to_what_lies_together() {
    let cpus = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"];
    let all = run(&[&["-n", "1", "--bind", "none", "--"][..], &cpus].concat()).out;
    for what in ["socket", "numa", "l3"] {
        let r = run(&[&["-n", "3", "-v", "--bind-to", what, "--map-by", what, "--"][..], &cpus].concat());
        assert_eq!((r.code, r.out.lines().count()), (0, 3), "{}", r.err);
        assert!(r.err.contains("rank 2: sh on core"), "{}", r.err);
        let cores = |text: &str| text.split_whitespace().nth(1).map(str::len);
        assert!(r.out.lines().all(|l| cores(l) <= cores(&all)), "{} of {all}", r.out);
    }
}
