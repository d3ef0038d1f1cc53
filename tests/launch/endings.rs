use super::*;
use fmpl::launch::embedded::{self, End, Launcher};

/// A rank that ends only when told, with a child of its own; it prints both pids. Rank 1 does `$1` first.
const FAMILY: &str = "[ $PMI_RANK = 1 ] && eval \"$0\"; sleep 1000 & echo $$ $!; wait";

#[test]
fn the_first_failure_ends_the_job_and_names_itself() {
    for (does, code, says) in [
        ("exit 7", 7, "exited with code 7"),
        ("kill -9 $$", 137, "died of signal 9 (Killed)"),
        ("kill -SEGV $$", 139, "died of signal 11 (Segmentation fault"),
    ] {
        let gate = Gate::new();
        let mut job = spawn(&["-n", "3", "--", "sh", "-c", FAMILY, &gate.then(does)]);
        let pids = numbers(&mut job, 2);
        gate.open();
        let (got, err) = rest(&mut job);
        assert_eq!(got, code, "{err}");
        assert!(
            err.contains("fmpl run: rank 1 (pid ") && err.contains(says) && err.contains("; ending ranks 0,2"),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1, "the others died as they were told: {err}");
        assert_gone(&pids);
    }
}

/// The death of a rank may come to be known after another has ended because of it; one that comes much later has a cause of its own.
#[test]
fn a_death_that_is_known_a_little_late_is_the_cause() {
    // Rank 1 exits when rank 0 has said that it cannot be asked to end.
    let ready = std::env::temp_dir().join(format!("fmpl-ready-{}", std::process::id()));
    let ready = ready.to_str().unwrap();
    let dies = |after: &str, how: &str| {
        let _ = std::fs::remove_file(ready);
        let script = format!(
            "if [ $PMI_RANK = 1 ]; then until [ -e '{ready}' ]; do sleep 0.01; done; exit 3; fi; \
             trap '' TERM; : >'{ready}'; sleep {after}; kill -{how} $$"
        );
        run(&["-n", "2", "--", "sh", "-c", &script])
    };
    for (after, how, code) in [("0.1", "9", 137), ("0.1", "USR1", 138), ("1.2", "9", 3)] {
        let r = dies(after, how);
        assert_eq!(r.code, code, "kill -{how} after {after} s: {}", r.err);
        assert!(r.err.contains("rank 1 (pid ") && r.err.contains("died of signal"), "{}", r.err);
    }
    let _ = std::fs::remove_file(ready);
}

#[test]
fn success_is_silent() {
    let r = run(&["-n", "5", "true"]);
    assert_eq!((r.code, r.out.as_str(), r.err.as_str()), (0, "", ""));
}

#[test]
fn who_does_not_listen_is_killed() {
    let gate = Gate::new();
    let ends = gate.then("exit 3");
    let deaf = format!("trap '' TERM; echo $$; [ $PMI_RANK = 0 ] || {{ {ends}; }}; while :; do sleep 1; done");
    let mut job = spawn(&["-n", "2", "--", "sh", "-c", &deaf]);
    let pids = numbers(&mut job, 2);
    gate.open();
    let (code, err) = rest(&mut job);
    assert!(code == 3 && err.contains("rank 0 did not end within 2 s of SIGTERM: killed"), "{code} {err}");
    assert_gone(&pids);
}

#[test]
fn a_stopped_rank_ends_with_the_others() {
    let gate = Gate::new();
    let stops = format!("echo $$; [ $PMI_RANK = 0 ] && kill -STOP $$; {}", gate.then("exit 4"));
    let mut job = spawn(&["-n", "2", "--", "sh", "-c", &stops]);
    let pids = numbers(&mut job, 2);
    gate.open();
    let (code, err) = rest(&mut job);
    assert_eq!(code, 4, "{err}");
    assert!(!err.contains("did not end"), "{err}");
    assert_gone(&pids);
}

#[test]
fn keep_going_leaves_the_others_running() {
    let r = run(&[
        "-n",
        "3",
        "--keep-going",
        "--",
        "sh",
        "-c",
        "[ $PMI_RANK = 1 ] && exit 5; sleep 0.3; echo done $PMI_RANK",
    ]);
    assert_eq!(r.code, 5);
    assert!(r.out.contains("done 0") && r.out.contains("done 2"), "{}", r.out);
    assert!(r.err.contains("rank 1 (pid") && r.err.contains("exited with code 5\n"), "{}", r.err);
}

#[test]
fn the_time_out_ends_the_job() {
    let mut job = spawn(&["-n", "2", "--timeout", "0.5", "--", "sh", "-c", FAMILY]);
    let pids = numbers(&mut job, 2);
    let (code, err) = rest(&mut job);
    assert!(code == 124 && err.contains("time-out") && err.contains("ranks 0-1"), "{code} {err}");
    let at = |rank| err.lines().any(|l| l.contains(&format!("rank {rank} (pid ")) && l.contains(": sh sleeping, "));
    assert!(at(0) && at(1), "what each was at: {err}");
    assert_gone(&pids);
    assert_eq!(run(&["-n", "2", "--timeout", "30", "true"]).code, 0);
}

#[test]
fn ctrl_c_leaves_no_process() {
    for (sig, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        let mut job = spawn(&["-n", "3", "--", "sh", "-c", FAMILY]);
        let pids = numbers(&mut job, 3);
        signal(&job, sig);
        let (got, err) = rest(&mut job);
        assert!(got == code && err.contains("ending ranks 0-2"), "{got} {err}");
        assert_gone(&pids);
    }
}

#[test]
fn a_second_ctrl_c_kills_at_once() {
    let mut job = spawn(&["-n", "2", "--", "sh", "-c", DEAF]);
    ends_by_the_second_ctrl_c(&mut job);
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let mut c = Command::new("sh");
    let script = "trap '' HUP; exec \"$@\"";
    c.args([
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_fmpl"),
        "run",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "echo 1; sleep 0.3; exit 6",
    ]);
    let mut job = c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    numbers(&mut job, 1);
    signal(&job, libc::SIGHUP);
    let (code, err) = rest(&mut job);
    assert_eq!(code, 6, "{err}");
}

#[test]
fn sigkill_of_the_launcher_leaves_no_process() {
    let mut job = spawn(&["-n", "3", "--", "sh", "-c", FAMILY]);
    let pids = numbers(&mut job, 3);
    assert_eq!(pids.len(), 6);
    signal(&job, libc::SIGKILL);
    job.wait().unwrap();
    assert_gone(&pids);
}

#[test]
fn sigkill_of_the_launcher_at_any_moment_leaves_no_process() {
    // The ranks' children are found by an argument that nothing else on the machine has.
    let mark = format!("1000.{}", std::process::id());
    for i in 0..40 {
        let job = spawn(&["-n", "4", "--", "sh", "-c", &format!("sleep {mark} & sleep {mark} & wait")]);
        std::thread::sleep(Duration::from_micros(i * 500));
        signal(&job, libc::SIGKILL);
        drop(job);
    }
    let with_mark = || -> Vec<i32> {
        let is_ours = |pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| String::from_utf8_lossy(&c).contains(&mark))
        };
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok());
        all.filter(|pid| *pid != std::process::id() as i32).filter(is_ours).collect()
    };
    let since = Instant::now();
    while !with_mark().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(30), "still there: {:?}", with_mark());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_rank_leaves_running_ends_with_the_job() {
    let mut job = spawn(&["-n", "2", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]);
    let pids = numbers(&mut job, 2);
    let (code, err) = rest(&mut job);
    assert_eq!(code, 0, "{err}");
    assert_gone(&pids);
}

#[test]
fn pids_of_ended_ranks_are_not_given_away_before_the_job_ends() {
    let script = "trap 'exit 0' USR1; sleep 1000 & echo $PMI_RANK $$; [ $PMI_RANK = 0 ] || wait";
    let mut job = spawn(&["-n", "2", "--", "sh", "-c", script]);
    let told = numbers(&mut job, 2);
    let pid_of = |rank: i32| told.chunks(2).find(|c| c[0] == rank).unwrap()[1];
    let exists = |pid: i32| Path::new(&format!("/proc/{pid}")).exists();
    // Rank 0 has ended, and is still there as a zombie.
    assert_gone(&[pid_of(0)]);
    assert!(exists(pid_of(0)) && is_alive(pid_of(1)));
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid_of(1), libc::SIGUSR1) }, 0);
    let (code, err) = rest(&mut job);
    assert_eq!(code, 0, "{err}");
    assert!(!exists(pid_of(0)) && !exists(pid_of(1)));
}

#[test]
fn the_interface_tells_how_each_rank_ended() {
    let script = "echo out $PMI_RANK; echo err $PMI_RANK >&2; case $PMI_RANK in 1) exit 9;; 2) kill -9 $$;; esac";
    let job = Launcher::new(3, ["sh", "-c", script])
        .stdout(embedded::Output::Capture)
        .stderr(embedded::Output::Capture)
        .keep_going(true)
        .quiet(true)
        .start()
        .unwrap();
    assert_eq!(job.pids().len(), 3);
    let o = job.wait();
    assert_eq!(o.ends, [End::Exit(0), End::Exit(9), End::Signal { signal: 9, core: false }]);
    assert!(o.code == 9 || o.code == 137);
    assert!(o.reports.len() == 2 && !o.timed_out, "{:?}", o.reports);
    assert_eq!((o.stdout[2].as_slice(), o.stderr[0].as_slice()), (&b"out 2\n"[..], &b"err 0\n"[..]));
}

#[test]
fn a_dropped_job_is_killed() {
    let job = Launcher::new(2, ["sleep", "1000"]).start().unwrap();
    let pids = job.pids();
    assert!(pids.iter().all(|p| is_alive(*p)));
    drop(job);
    assert!(!pids.iter().any(|p| is_alive(*p)));
}

#[test]
fn a_parent_that_ignores_its_children_hides_no_end() {
    let job = format!("trap '' CHLD; exec timeout 60 {} run -n 2 -- sh -c 'exit 3'", env!("CARGO_BIN_EXE_fmpl"));
    assert_eq!(Command::new("sh").args(["-c", &job]).stderr(Stdio::null()).status().unwrap().code(), Some(3));
}

#[test]
fn ctrl_z_stops_the_ranks_with_the_launcher() {
    let mut c = crate::fmpl();
    c.args(["run", "-n", "2", "--", "sh", "-c", FAMILY])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own, as a shell with job control gives it; the kernel does not stop one without a parent outside.
    let mut job = std::os::unix::process::CommandExt::process_group(&mut c, 0).spawn().unwrap();
    let mut pids = numbers(&mut job, 2);
    pids.push(job.id() as i32);
    let all = |stopped: bool| {
        let since = Instant::now();
        let is_stopped = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ");
        while pids.iter().any(|p| is_stopped(p) != stopped) {
            assert!(since.elapsed() < Duration::from_secs(30), "stopped: {stopped}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    signal(&job, libc::SIGTSTP);
    all(true);
    signal(&job, libc::SIGCONT);
    all(false);
    signal(&job, libc::SIGINT);
    assert_eq!(rest(&mut job).0, 130);
    assert_gone(&pids[..4]);
}
