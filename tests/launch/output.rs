use super::*;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;

#[test]
fn standard_input_is_rank_0s() {
    let mut job = fmpl_run(&["-n", "3", "--tag-output", "--", "sh", "-c", "wc -c; echo end"]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    job.stdin.take().unwrap().write_all(&[b'x'; 300_000]).unwrap();
    let r = ran(job.wait_with_output().unwrap());
    for line in ["[0] 300000", "[1] 0", "[2] 0", "[0] end", "[1] end", "[2] end"] {
        assert_eq!(r.out.lines().filter(|l| *l == line).count(), 1, "{line}: {}", r.out);
    }
}

#[test]
fn tagged_lines_are_never_torn() {
    // Long lines in small pieces, from all ranks at once, and a last line without an end.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do for j in $(seq 50); do printf '%s-%0200d' $PMI_RANK $j; done; echo; done; printf last";
    let r = run(&["-n", "4", "--tag-output", "--", "bash", "-c", script]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(r.out.lines().count(), 4 * 11);
    for (i, rank) in ["[0] ", "[1] ", "[2] ", "[3] "].iter().enumerate() {
        let whole: String = (1..=50).map(|j| format!("{i}-{j:0200}")).collect();
        let lines: Vec<_> = r.out.lines().filter_map(|l| l.strip_prefix(rank)).collect();
        assert_eq!(lines.iter().filter(|l| **l == whole).count(), 10);
        assert_eq!(lines.last(), Some(&"last"));
    }
    assert!(r.out.ends_with("last\n"));
}

#[test]
fn both_streams_are_tagged_and_kept_apart() {
    let r = run(&["-n", "2", "--tag-output", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert!(r.out.contains("[0] out\n") && r.out.contains("[1] out\n") && !r.out.contains("err"), "{}", r.out);
    assert!(r.err.contains("[0] err\n") && r.err.contains("[1] err\n") && !r.err.contains("out"), "{}", r.err);
}

#[test]
fn a_reader_that_goes_away_ends_the_writers() {
    let run = format!("{} run -n 2 --tag-output -- yes | head -n 3", env!("CARGO_BIN_EXE_fmpl"));
    let o = Command::new("timeout").args(["60", "sh", "-c", &run]).output().unwrap();
    assert!(o.status.success(), "{o:?}");
    assert_eq!(o.stdout.iter().filter(|b| **b == b'\n').count(), 3);
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let words =
        "fmpl run: standard output cannot be written: No space left on device (os error 28); the rest of it is lost";
    for script in ["echo a line", "for i in $(seq 20000); do echo a line; done"] {
        let r = ran(fmpl_run(&["-n", "2", "--tag-output", "--", "sh", "-c", script]).stdout(full()).output().unwrap());
        assert!(r.code != 0 && r.err.contains(words), "{script}: {} {}", r.code, r.err);
    }
    // The launcher says its own there.
    let r = ran(fmpl_run(&["-n", "2", "--tag-output", "--", "sh", "-c", "echo a line >&2"])
        .stderr(full())
        .output()
        .unwrap());
    assert_eq!(r.code, 1);
    let r = ran(Command::new(env!("CARGO_BIN_EXE_fmpl")).arg("info").stdout(full()).output().unwrap());
    assert_eq!((r.code, r.err.lines().count()), (1, 1), "{}", r.err);
}

#[test]
fn a_reader_that_sleeps_does_not_stop_the_launcher() {
    // Nobody reads: the pipe and the launcher's buffer fill up, and a signal is obeyed all the same.
    let mut job = spawn(&["-n", "2", "--tag-output", "--", "sh", "-c", "echo $$ >&2; exec yes"]);
    let mut err = BufReader::new(job.stderr.take().unwrap());
    let pids: Vec<i32> = (0..2)
        .map(|_| {
            let mut line = String::new();
            err.read_line(&mut line).unwrap();
            line.split_whitespace().last().unwrap().parse().unwrap()
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    signal(&job, libc::SIGINT);
    assert_gone(&pids);
    // The second one says that nobody will read the rest.
    signal(&job, libc::SIGINT);
    assert_eq!(job.wait().unwrap().code(), Some(130));
}

/// A new terminal: (the side of the person, the side of the programs). `None`: the system has none here, as in a container without /dev/pts.
fn terminal() -> Option<(std::fs::File, OwnedFd)> {
    let (mut person, mut programs) = (-1, -1);
    // SAFETY: two numbers are filled in, which then belong to nobody else; the rest may be null.
    unsafe {
        let null = std::ptr::null_mut();
        if libc::openpty(&mut person, &mut programs, null, null.cast(), null.cast()) != 0 {
            return None;
        }
        libc::fcntl(person, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(programs, libc::F_SETFD, libc::FD_CLOEXEC);
        Some((std::fs::File::from_raw_fd(person), OwnedFd::from_raw_fd(programs)))
    }
}

/// Reads what the terminal shows until `text` has come.
fn read_until(person: &mut std::fs::File, text: &str) -> String {
    let mut shown = Vec::new();
    let mut bytes = [0; 1000];
    while !String::from_utf8_lossy(&shown).contains(text) {
        let n = person.read(&mut bytes).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&bytes[..n]);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

/// `fmpl run` with standard input, output and error at the programs' side of a terminal, in a session of its own, of which that is the
/// controlling terminal or not.
fn at_terminal(programs: &OwnedFd, controlling: bool, args: &[&str]) -> std::process::Child {
    let mut c = crate::fmpl();
    let side = || Stdio::from(programs.try_clone().unwrap());
    c.arg("run").args(args).stdin(side()).stdout(side()).stderr(side());
    let fd = programs.as_raw_fd();
    let take_terminal = move || {
        // SAFETY: system calls without memory, on a descriptor that is open until exec.
        unsafe {
            libc::setsid();
            if controlling {
                libc::ioctl(fd, libc::TIOCSCTTY, 0);
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls and nothing else.
    unsafe { c.pre_exec(take_terminal) }.spawn().unwrap()
}

/// A [`terminal`], or the test is skipped.
macro_rules! terminal_or_skip {
    () => {
        match terminal() {
            Some(both) => both,
            None => return crate::skip::skip("no terminal can be made (/dev/ptmx, /dev/pts)"),
        }
    };
}

#[test]
fn rank_0_reads_the_terminal_and_ctrl_c_ends_the_job() {
    let (mut person, programs) = terminal_or_skip!();
    let script = "echo pid $$ .; read line; echo rank $PMI_RANK has \"<$line>\"; sleep 1000";
    let mut job = at_terminal(&programs, true, &["-n", "2", "--", "sh", "-c", script]);
    let mut shown = read_until(&mut person, "rank 1 has <>");
    person.write_all(b"typed by hand\n").unwrap();
    shown += &read_until(&mut person, "rank 0 has <typed by hand>");
    let words: Vec<&str> = shown.split_whitespace().collect();
    let pids: Vec<i32> = words.windows(2).filter(|w| w[0] == "pid").map(|w| w[1].parse().unwrap()).collect();
    assert_eq!(pids.len(), 2, "{shown}");
    person.write_all(b"\x03").unwrap();
    read_until(&mut person, "Interrupt: ending ranks 0-1");
    assert_eq!(job.wait().unwrap().code(), Some(130));
    assert_gone(&pids);
}

/// As under `su -c` and `setsid`, where the terminal minds no groups.
#[test]
fn rank_0_reads_a_terminal_that_is_not_its_sessions() {
    let (mut person, programs) = terminal_or_skip!();
    let mut job =
        at_terminal(&programs, false, &["--timeout", "40", "-n", "2", "--", "sh", "-c", "read l; echo \"<$l>\""]);
    person.write_all(b"typed by hand\n").unwrap();
    assert_eq!(job.wait().unwrap().code(), Some(0));
    drop(programs);
    read_until(&mut person, "<typed by hand>");
}

#[test]
fn ranks_print_on_a_terminal_that_stops_the_background() {
    let (mut person, programs) = terminal_or_skip!();
    // SAFETY: a terminal of the test's, and a structure that the first call fills.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(programs.as_raw_fd(), &mut modes), 0);
        modes.c_lflag |= libc::TOSTOP;
        assert_eq!(libc::tcsetattr(programs.as_raw_fd(), libc::TCSANOW, &modes), 0);
    }
    let mut job = at_terminal(&programs, true, &["--timeout", "40", "-n", "2", "--", "sh", "-c", "echo said"]);
    assert_eq!(job.wait().unwrap().code(), Some(0));
    drop(programs);
    read_until(&mut person, "said");
}
