//! `fmpl run` on several machines, which are pretended: the launch agent starts the daemons here, each as another node. What differs with real
//! ones, `ssh` and a network, is in `tests/shows reach`.

use super::*;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

/// A script, by its name and its lines.
fn script(name: &str, lines: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    // Renamed into its place whole: other tests may be starting it.
    let new = dir.join(format!("{name}.{:?}", std::thread::current().id()));
    std::fs::write(&new, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Starts the command here, as the node that is named.
fn agent() -> String {
    script("agent", "host=$1; shift; FMPL_NODE=${host#n} exec \"$@\"")
}

/// The arguments in front of a job on pretended machines.
fn on<'a>(agent: &'a str, hosts: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["--launch-agent", agent, "-H", hosts], rest].concat()
}

fn run_on(hosts: &str, rest: &[&str]) -> Ran {
    run(&on(&agent(), hosts, rest))
}

fn spawn_on(hosts: &str, rest: &[&str]) -> Child {
    spawn(&on(&agent(), hosts, rest))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A rank that ends only when told, with a child of its own; it prints its pid, the child's and the daemon's. Rank 1 then does `$0`.
const FAMILY: &str = "sleep 1000 & echo $$ $! $PPID; [ $PMI_RANK = 1 ] && eval \"$0\"; wait";

#[test]
fn ranks_have_their_places_and_their_environment() {
    let print = "echo $PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS node $FMPL_NODE $A $B $FMPL_STALL $(pwd)";
    let agent = agent();
    let mut c = fmpl_run(&on(&agent, "n3:2,n5", &["-x", "A", "--env", "B=b", "--wdir", "/", "--", "sh", "-c", print]));
    let r = ran(c.env("A", "a").env("FMPL_STALL", "77").output().unwrap());
    assert_eq!((r.code, r.err.as_str()), (0, ""));
    assert_eq!(sorted(&r.out), ["0/3 0/2 node 3 a b 77 /", "1/3 1/2 node 3 a b 77 /", "2/3 0/1 node 5 a b 77 /"]);
    let r = run_on("n0,n1", &["-n", "5", "--map-by", "node", "--", "sh", "-c", "echo $PMI_RANK $FMPL_NODE"]);
    assert_eq!(sorted(&r.out), ["0 0", "1 1", "2 0", "3 1", "4 0"], "{}", r.err);
    let r = run_on(
        "n0,n1",
        &["-n", "1", "sh", "-c", "echo a $PMI_RANK", ":", "-n", "2", "sh", "-c", "echo b $PMI_RANK $FMPL_NODE"],
    );
    assert_eq!(sorted(&r.out), ["a 0", "b 1 0", "b 2 1"], "{}", r.err);
    let r = run_on("n0:2,n1:2", &["-v", "--bind-to", "none", "true"]);
    assert!(
        r.code == 0 && r.err.contains("rank 3: true on any core, pid ") && r.err.contains(", node n1"),
        "{}",
        r.err
    );
}

#[test]
fn ranks_find_out_who_shares_a_node_and_read_each_others_values() {
    let r = run_on("n1:2,n2:3", &["--", &place(), "3000"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(
        r.out.contains("rank 1 of 5, here [0, 1], 3000 bytes") && r.out.contains("rank 4 of 5, here [2, 3, 4]"),
        "{}",
        r.out
    );
    let r = run_on("n1:2,n2:2", &["--", &place(), "3", "9"]);
    assert!(
        r.code == 9 && r.err.contains("rank 0 (pid ") && r.err.contains(", n1) aborted the job with exit code 9"),
        "{}",
        r.err
    );
}

#[test]
fn a_thousand_ranks_on_64_nodes_start_and_meet_and_the_launcher_has_few_descriptors() {
    let hosts: Vec<String> = (0..64).map(|k| format!("n{k}:16")).collect();
    let mut job = spawn_on(&hosts.join(","), &["--", &place(), "20", "--few"]);
    let mut out = job.stdout.take().unwrap();
    let out = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut most = 0;
    while !out.is_finished() {
        most = most.max(std::fs::read_dir(format!("/proc/{}/fd", job.id())).map_or(0, Iterator::count));
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = out.join().unwrap().unwrap();
    let (code, err) = rest(&mut job);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().filter(|l| l.contains(" of 1024, here [")).count(), 1024);
    assert!((1..=80).contains(&most), "{most} descriptors");
}

#[test]
fn input_is_rank_0s_and_output_comes_in_whole_lines() {
    let agent = agent();
    let script = "wc -c; for i in 1 2 3; do printf 'a line of %s' $PMI_RANK; sleep 0.02; echo; done; printf last";
    let mut job = fmpl_run(&on(&agent, "n1:2,n2:2", &["--tag-output", "--", "sh", "-c", script]));
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    job.stdin.take().unwrap().write_all(&[b'x'; 1_000_000]).unwrap();
    let r = ran(job.wait_with_output().unwrap());
    assert_eq!(r.out.lines().count(), 4 * 5, "{}", r.out);
    for rank in 0..4 {
        let of = |text: &str| r.out.lines().filter(|l| *l == format!("[{rank}] {text}")).count();
        let read = if rank == 0 { "1000000" } else { "0" };
        assert_eq!((of(read), of(&format!("a line of {rank}")), of("last")), (1, 3, 1), "{}", r.out);
    }
    // Nobody asked for the input of a rank that does not read.
    let mut job = fmpl_run(&on(&agent, "n1,n2", &["--", "true"]));
    let mut job = job.stdin(Stdio::piped()).spawn().unwrap();
    let _ = job.stdin.take().unwrap().write_all(&[b'x'; 1_000_000]);
    assert!(job.wait().unwrap().success());
}

#[test]
fn much_output_of_all_comes_whole_and_a_reader_that_goes_away_ends_the_writers() {
    let r = run_on("n1:2,n2:2", &["--", "sh", "-c", "seq -f \"$PMI_RANK-%06g\" 1 100000; echo err $PMI_RANK >&2"]);
    assert_eq!((r.code, sorted(&r.err).join(" ")), (0, "err 0 err 1 err 2 err 3".to_owned()));
    let lines = sorted(&r.out);
    assert_eq!((lines.len(), lines[0], lines[399_999]), (400_000, "0-000001", "3-100000"));
    let run = format!("{} run --launch-agent {} -H n1,n2 -- yes | head -n 3", env!("CARGO_BIN_EXE_fmpl"), agent());
    let o = Command::new("timeout").args(["60", "sh", "-c", &run]).output().unwrap();
    assert_eq!(o.stdout.iter().filter(|b| **b == b'\n').count(), 3);
}

#[test]
fn the_first_failure_ends_the_job_on_all_machines() {
    for (does, code, says) in [("exit 7", 7, "exited with code 7"), ("kill -9 $$", 137, "died of signal 9 (Killed)")] {
        let gate = Gate::new();
        let mut job = spawn_on("n1,n2:2", &["--", "sh", "-c", FAMILY, &gate.then(does)]);
        let pids = numbers(&mut job, 3);
        gate.open();
        let (got, err) = rest(&mut job);
        assert_eq!(got, code, "{err}");
        assert!(err.contains(", n2) ") && err.contains(says) && err.contains("; ending ranks 0,2"), "{err}");
        assert_eq!(err.lines().count(), 1, "the others died as they were told: {err}");
        assert_gone(&pids);
    }
    let job = ["--keep-going", "--", "sh", "-c", "[ $PMI_RANK = 1 ] && exit 5; sleep 0.3; echo done $PMI_RANK"];
    let r = run_on("n1,n2:2", &job);
    assert_eq!((r.code, sorted(&r.out).join(" ")), (5, "done 0 done 2".to_owned()), "{}", r.err);
}

/// Ranks that say where they are: rank, pid, that of the daemon.
const WHERE: &str = "echo $PMI_RANK $$ $PPID; ";

/// Kills the daemon of a rank, of which [`WHERE`] has told.
fn kill_daemon(pids: &[i32], rank: i32) {
    let of = pids.chunks(3).find(|of| of[0] == rank).unwrap();
    // SAFETY: no memory is involved; the daemon's parent is a launcher that reaps nobody before the job's end.
    assert_eq!(unsafe { libc::kill(of[2], libc::SIGKILL) }, 0);
}

#[test]
fn a_daemon_that_is_killed_ends_the_job_and_its_node_is_named() {
    let mut job = spawn_on("n1:2,n2:2", &["--", "sh", "-c", &format!("{WHERE} sleep 1000")]);
    let pids = numbers(&mut job, 4);
    kill_daemon(&pids, 0);
    let (code, err) = rest(&mut job);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("node n1 is lost: its daemon has ended, what started it died of signal 9"), "{err}");
    assert!(err.contains("; lost: ranks 0-1; ending ranks 2-3"), "{err}");
    assert_gone(&pids.chunks(3).flat_map(|of| of[1..].to_vec()).collect::<Vec<_>>());
}

#[test]
fn who_waits_for_a_rank_of_a_lost_node_is_told() {
    // Rank 2 does not come to the fence that the others wait in, and goes with its daemon.
    let wait = format!("{WHERE} [ $PMI_RANK = 2 ] && sleep 1000; {} 10; echo $? 0 0", place());
    let mut job = spawn_on("n1:2,n2:1", &["--keep-going", "--", "sh", "-c", &wait]);
    let mut pids = numbers(&mut job, 3);
    kill_daemon(&pids, 2);
    pids = numbers(&mut job, 2);
    assert_eq!(pids, [1, 0, 0, 1, 0, 0]);
    let (code, err) = rest(&mut job);
    assert!(code == 1 && err.contains("node n2 is lost"), "{err}");
    assert_eq!(err.matches("the ranks cannot meet at the launcher: node n2 is lost").count(), 2, "{err}");
}

#[test]
fn a_daemon_in_the_middle_of_the_tree_takes_those_below_with_it() {
    let hosts: Vec<String> = (0..64).map(|k| format!("n{k}")).collect();
    let job = || spawn_on(&hosts.join(","), &["--", "sh", "-c", &format!("{WHERE} sleep 1000")]);
    let alive = |pids: &[i32]| pids.chunks(3).flat_map(|of| of[1..].to_vec()).collect::<Vec<_>>();
    // The first of the second group of eight; the others of the group were started by it.
    let mut first = job();
    let pids = numbers(&mut first, 64);
    kill_daemon(&pids, 8);
    let (code, err) = rest(&mut first);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("node n8 is lost") && err.contains("reached through it; lost: ranks 8-15; ending ranks 0-7,16-63"),
        "{err}"
    );
    assert_gone(&alive(&pids));
    // And one below it, which is named by the one that had started it.
    let mut second = job();
    let pids = numbers(&mut second, 64);
    kill_daemon(&pids, 12);
    let (code, err) = rest(&mut second);
    assert!(
        code == 1 && err.contains("node n12 is lost") && err.contains("; lost: rank 12; ending ranks 0-11,13-63"),
        "{err}"
    );
    assert_gone(&alive(&pids));
}

#[test]
fn signals_for_the_launcher_reach_all_machines() {
    for (sig, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut job = spawn_on("n1:2,n2:2", &["--", "sh", "-c", FAMILY]);
        let pids = numbers(&mut job, 4);
        signal(&job, sig);
        let (got, err) = rest(&mut job);
        assert!(got == code && err.contains("ending ranks 0-3"), "{got} {err}");
        assert_gone(&pids);
    }
    // Who does not listen is killed by the second.
    ends_by_the_second_ctrl_c(&mut spawn_on("n1,n2", &["--", "sh", "-c", DEAF]));
}

#[test]
fn sigkill_of_the_launcher_leaves_nothing_on_any_machine() {
    for nodes in [2, 40] {
        let hosts: Vec<String> = (0..nodes).map(|k| format!("n{k}")).collect();
        let mut job = spawn_on(&hosts.join(","), &["--", "sh", "-c", FAMILY]);
        let pids = numbers(&mut job, nodes);
        assert_eq!(pids.len(), 3 * nodes);
        signal(&job, libc::SIGKILL);
        job.wait().unwrap();
        assert_gone(&pids);
    }
}

#[test]
fn the_time_out_says_what_the_ranks_of_all_machines_are_at() {
    let mut job = spawn_on("n1,n2", &["--timeout", "2", "--", "sh", "-c", FAMILY]);
    let pids = numbers(&mut job, 2);
    let (code, err) = rest(&mut job);
    assert!(code == 124 && err.contains("time-out") && err.contains("ranks 0-1"), "{code} {err}");
    let at = |rank, node| {
        err.lines().any(|l| l.contains(&format!("rank {rank} (pid ")) && l.contains(&format!(", {node}): sh sleeping")))
    };
    assert!(at(0, "n1") && at(1, "n2"), "{err}");
    assert_gone(&pids);
}

/// An agent that stays, with its streams open, when its daemon has ended. That takes the launcher's patience, 40 s: with `FMPL_TEST_LONG=1` only.
#[test]
fn an_agent_that_does_not_end_is_given_up() {
    if std::env::var_os("FMPL_TEST_LONG").is_none_or(|v| v != "1") {
        return;
    }
    let stays = script("stays", "host=$1; shift; (FMPL_NODE=${host#n} exec \"$@\"); sleep 120");
    let job = "echo $PMI_RANK; [ $PMI_RANK != 3 ] || exit 9; sleep 100";
    for (command, code) in [("true", 0), (job, 9)] {
        let r = run(&on(&stays, "n0:2,n1:2", &["sh", "-c", command]));
        assert_eq!(r.code, code, "{}", r.err);
        assert!(r.err.contains("node n1 does not answer and was given up"), "{}", r.err);
    }
}

#[test]
fn hosts_that_cannot_be_reached_are_named() {
    let gone = script("gone", "[ $1 = n2 ] && { echo \"no route to $1\" >&2; exit 255; }; shift; exec \"$@\"");
    let silent = script("silent", "[ $1 = n2 ] && exec sleep 1000; shift; exec \"$@\"");
    let old = script("old", "read line; echo cmd=fmpl-daemon version=0.0.1/0; cat > /dev/null");
    let old = script("old-agent", &format!("[ $1 = n2 ] && exec {old}; shift; exec \"$@\""));
    for (agent, code, says) in [
        (
            gone.as_str(),
            1,
            "node n2 cannot be reached: no daemon answers, what started it exited with code 255: no route to n2",
        ),
        (&silent, 1, "node n2 has not started within the time for starting (FMPL_START_TIMEOUT)"),
        (&old, 1, "node n2: fmpl there is version 0.0.1/0, here it is "),
        ("/no/such/agent -v", 127, "/no/such/agent"),
    ] {
        let mut c = fmpl_run(&on(agent, "n1,n2,n3", &["--", "sleep", "1000"]));
        let patience = if agent == silent { "2" } else { "50" };
        let r = ran(c.env("FMPL_START_TIMEOUT", patience).output().unwrap());
        assert_eq!(r.code, code, "{}", r.err);
        assert!(r.err.contains(says) && r.err.lines().count() == 1, "{}", r.err);
    }
    for (job, code, says) in [
        (&["no-such-program"][..], 127, "program not found: no-such-program"),
        (&["--wdir", "/no/such", "true"], 2, "/no/such: "),
        (&["--prefix", "/no/such", "true"], 1, "/no/such/bin/fmpl"),
        (&["--timeout", "1", "--launch-agent", &silent, "true"], 2, "cannot be used multiple times"),
    ] {
        let r = run_on("n1,n2", job);
        assert!(r.code == code && r.err.contains(says) && (code == 2 || r.err.contains("node n")), "{}", r.err);
    }
    let r = run(&on(&silent, "n1,n2", &["--timeout", "1", "true"]));
    // On a slow machine neither has.
    let says = ["node n2 has not started before the time-out", "nodes n1, n2 have not started before the time-out"];
    assert!(r.code == 124 && says.iter().any(|says| r.err.contains(says)), "{} {}", r.code, r.err);
}

#[test]
fn what_login_scripts_print_does_no_harm() {
    let noisy = script("noisy", "echo Welcome to $1; echo; echo 'cmd=what ever'; echo beware >&2; shift; exec \"$@\"");
    let r = run(&on(&noisy, "n1,n2", &["--", "sh", "-c", "echo $PMI_RANK"]));
    assert_eq!((r.code, sorted(&r.out)), (0, vec!["0", "1"]), "{}", r.err);
    assert!(
        r.err.contains("fmpl run: node n1: beware\n") && r.err.contains("fmpl run: node n2: beware\n"),
        "{}",
        r.err
    );
}

#[test]
fn no_argument_and_no_variable_of_an_agent_says_the_secret() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    let seen = dir.join("seen");
    let listens = format!("{{ echo \"$@\"; env; }} > {0}; shift; tee {0}.in | \"$@\"", seen.display());
    let r = run(&on(&script("listens", &listens), "n1", &["--", "true"]));
    assert_eq!(r.code, 0, "{}", r.err);
    let said = String::from_utf8_lossy(&std::fs::read(dir.join("seen.in")).unwrap()).into_owned();
    let secret = said.lines().next().unwrap().split("secret=").nth(1).unwrap();
    assert_eq!(secret.len(), 64);
    assert!(!std::fs::read_to_string(&seen).unwrap().contains(secret));
}

#[test]
fn machines_come_from_files_and_batch_systems() {
    let agent = agent();
    let nodes = ["--", "sh", "-c", "echo $PMI_RANK $FMPL_NODE"];
    let file = script("hostfile", "n7 slots=2\nn8:1 # more");
    let r = run(&[&["--launch-agent", &agent, "-hostfile", &file][..], &nodes].concat());
    assert_eq!(sorted(&r.out), ["0 7", "1 7", "2 8"], "{}", r.err);
    let pbs = script("pbs", "");
    std::fs::write(&pbs, "n7\nn7\nn8\n").unwrap();
    for (name, value) in [("SLURM_JOB_NODELIST", "n[7-8]"), ("LSB_MCPU_HOSTS", "n7 2 n8 1"), ("PBS_NODEFILE", &pbs)] {
        let mut c = fmpl_run(&[&["--launch-agent", &agent][..], &nodes].concat());
        let r = ran(c.env("SLURM_TASKS_PER_NODE", "2,1").env(name, value).output().unwrap());
        assert_eq!(sorted(&r.out), ["0 7", "1 7", "2 8"], "{name}: {}", r.err);
    }
    for (args, says) in [
        (&["-H", "n1", "--hostfile", "f"][..], "not by both"),
        (&["--hostfile", "/no/such"], "--hostfile /no/such: No such file"),
        (&["-H", "n1:2", "-n", "3"], "3 ranks on 2 slots: --oversubscribe allows it"),
        (&["-H", "n1", "--nodes", "2", "-n", "2"], "--nodes pretends"),
        (&["-H", "a b"], "cannot be the name of a host"),
        (&["--launch-agent", "x"], "none is named (-H)"),
        (&["-H", "n1", "--ppn", "2", "--map-by", "ppr:2:node"], "say the same"),
    ] {
        let r = run(&[args, &["true"]].concat());
        assert!(r.code == 2 && r.err.contains(says), "{args:?}: {} {}", r.code, r.err);
    }
    // What is all here needs no agent.
    let r = run(&["-H", "localhost:3", "--", "sh", "-c", "echo $MPI_LOCALNRANKS"]);
    assert_eq!((r.code, r.out.as_str()), (0, "3\n3\n3\n"), "{}", r.err);
    let r = run(&["-H", "localhost:1", "-n", "3", "--oversubscribe", "--", "sh", "-c", "echo $MPI_LOCALNRANKS"]);
    assert_eq!((r.code, r.out.as_str()), (0, "3\n3\n3\n"), "{}", r.err);
}
