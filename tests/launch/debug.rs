use super::*;

/// Two threads; rank 1 looks where nothing is.
const CRASHES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int wander(const volatile int *nowhere) { return *nowhere; }
static void *idle_thread(void *none) { pause(); return none; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle_thread, NULL);
    usleep(100000); /* it waits by now */
    if (getenv("PMI_RANK")[0] == '1') return wander(NULL);
    pause();
}
"#;

/// Takes its own SIGSEGV, and ends well.
const HANDLES: &str = r#"
#include <signal.h>
#include <unistd.h>
static void on_fault(int signal) { _exit(signal == SIGSEGV ? 7 : 8); }
int main(void) {
    signal(SIGSEGV, on_fault);
    raise(SIGSEGV);
}
"#;

/// Asks for a line.
const ASKS: &str = r#"
#include <stdio.h>
static int answer(int half) { return 2 * half; }
int main(void) {
    char line[100] = "";
    printf("what for?");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 9;
    printf("%d for %s", answer(21), line);
}
"#;

fn compiled(name: &str, source: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("debug");
    std::fs::create_dir_all(&dir).unwrap();
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).unwrap();
    let done = Command::new("cc").args(["-g", "-O0", "-pthread", "-o"]).arg(&program).arg(&file).status();
    assert!(done.unwrap().success());
    program.to_str().unwrap().to_owned()
}

/// `fmpl run` under gdb, where there is one that may attach.
fn debugged(args: &[&str]) -> Option<Ran> {
    if found("gdb").is_none() {
        skip::skip("gdb is not installed");
        return None;
    }
    let r = run(&[&["--debug=backtrace"], args].concat());
    if r.err.contains("ptrace is refused here") {
        skip::skip("a debugger is refused here");
        return None;
    }
    Some(r)
}

#[test]
fn where_a_rank_has_crashed_is_printed() {
    let program = compiled("crashes", CRASHES);
    let without = run(&["-n", "3", &program]);
    let Some(with) = debugged(&["-n", "3", &program]) else { return };
    assert_eq!((without.code, with.code), (139, 139), "{}", with.err);
    let (told, ours): (Vec<_>, Vec<_>) = with.err.lines().partition(|l| l.starts_with("[rank 1] "));
    assert!(ours.len() == 1 && ours[0].contains("rank 1 (pid ") && ours[0].contains("; ending ranks 0,2"), "{ours:?}");
    assert!(told[0].contains("received signal SIGSEGV"), "{}", with.err);
    for frame in [" wander (nowhere=0x0) at ", " main () at ", " idle_thread (none=0x0) at "] {
        assert!(told.iter().any(|l| l.starts_with("[rank 1] #") && l.contains(frame)), "{frame}: {}", with.err);
    }
    assert_eq!(with.out, "");
}

#[test]
fn nothing_is_printed_of_ranks_that_do_not_crash() {
    for (does, code) in [
        ("exit 0", 0),
        ("exit 5", 5),
        ("kill -USR1 $$", 138),
        ("kill -INT $$", 130),
        ("kill -TERM $$", 143),
        ("kill -9 $$", 137),
        ("trap 'exit 6' USR2; kill -USR2 $$; exit 1", 6),
    ] {
        let Some(r) = debugged(&["-n", "1", "--", "sh", "-c", &format!("echo out; echo err >&2; {does}")]) else {
            return;
        };
        assert_eq!((r.code, r.out.as_str()), (code, "out\n"), "{does}: {}", r.err);
        assert!(r.err.starts_with("err\n") && !r.err.contains("[rank"), "{does}: {}", r.err);
        assert_eq!(r.err.lines().count(), if code == 0 { 1 } else { 2 }, "{does}: {}", r.err);
    }
    let Some(r) = debugged(&["-n", "3", &place()]) else { return };
    assert_eq!((r.code, r.err.as_str()), (0, ""), "a job that begins and ends");
    assert_eq!(r.out.lines().count(), run(&["-n", "3", &place()]).out.lines().count());
}

#[test]
fn a_program_takes_its_signals_itself() {
    let Some(r) = debugged(&["-n", "1", &compiled("handles", HANDLES)]) else { return };
    assert!(r.code == 7 && r.err.contains("[rank 0] Program received signal SIGSEGV"), "{} {}", r.code, r.err);
}

#[test]
fn no_debugger_survives_the_job() {
    let mut job = spawn(&["-n", "2", "--debug=backtrace", "--", "sh", "-c", DEAF]);
    if found("gdb").is_none() {
        job.wait().unwrap();
        return skip::skip("gdb is not installed");
    }
    let mut pids = numbers(&mut job, 2);
    if pids.is_empty() {
        job.wait().unwrap();
        return skip::skip("a debugger is refused here");
    }
    let children = format!("/proc/{0}/task/{0}/children", job.id());
    pids.extend(std::fs::read_to_string(children).unwrap().split_whitespace().map(|w| w.parse::<i32>().unwrap()));
    assert!(pids.len() >= 4 + 2 + 2, "two ranks with parents, and of the launcher also two of gdb: {pids:?}");
    signal(&job, libc::SIGKILL);
    job.wait().unwrap();
    assert_gone(&pids);
}

#[test]
fn what_debugging_needs_is_named_before_anything_starts() {
    let mut c = fmpl_run(&["-n", "2", "--debug=backtrace", "/bin/echo", "started"]);
    let r = ran(c.env("PATH", path_without("gdb")).output().unwrap());
    assert_eq!((r.code, r.out.as_str()), (127, ""), "{}", r.err);
    assert!(r.err.contains("gdb") && r.err.contains("apt install gdb") && r.err.lines().count() == 1, "{}", r.err);
    let r = run(&["-H", "one.invalid,two.invalid", "--debug", "true"]);
    assert!(r.code == 2 && r.err.contains("--debug is for ranks on this machine"), "{} {}", r.code, r.err);
}

/// Directories of PATH that have all that the test itself runs, but not this program.
fn path_without(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("debug").join(format!("without-{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    let link = dir.join("timeout");
    if !link.exists() {
        let _ = std::os::unix::fs::symlink(found("timeout").unwrap(), link);
    }
    dir
}

/// A server of tmux that nobody else has, in whose first window a job is started.
struct Tmux {
    place: PathBuf,
}

impl Tmux {
    /// One that has not been started yet.
    fn new(name: &str) -> Tmux {
        let place = std::env::temp_dir().join(format!("fmpl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        Tmux { place }
    }

    fn of(name: &str, command: &str) -> Tmux {
        let tmux = Tmux::new(name);
        tmux.tell(&["-f", "/dev/null", "new-session", "-d", "-s", "outer", "-x", "150", "-y", "40", command]).unwrap();
        tmux
    }

    fn tell(&self, words: &[&str]) -> Option<String> {
        let mut c = Command::new("tmux");
        let done =
            c.args(words).env("TMUX_TMPDIR", &self.place).env_remove("TMUX").stdin(Stdio::null()).output().unwrap();
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Waits until the window shows the text.
    fn until(&self, window: &str, text: &str) -> String {
        let since = Instant::now();
        loop {
            let shown = self.tell(&["capture-pane", "-p", "-J", "-S", "-", "-t", window]).unwrap_or_default();
            if shown.contains(text) {
                return shown;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{window} does not show {text:?}: {shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn types(&self, window: &str, line: &str) {
        self.tell(&["send-keys", "-t", window, line, "Enter"]).unwrap();
    }

    /// The session of the job, when its windows are open.
    fn session(&self, windows: usize) -> String {
        let since = Instant::now();
        loop {
            let all = self.tell(&["list-windows", "-a", "-F", "#{session_name}"]).unwrap_or_default();
            let ours: Vec<&str> = all.lines().filter(|l| l.starts_with("fmpl-")).collect();
            if ours.len() == windows {
                return ours[0].to_owned();
            }
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "{all} {:?}",
                self.tell(&["capture-pane", "-p", "-t", "outer"])
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

fn windows_can_be_tried() -> bool {
    if found("tmux").is_none() {
        skip::skip("tmux is not installed");
        return false;
    }
    debugged(&["-n", "1", "true"]).is_some()
}

#[test]
fn each_rank_is_debugged_in_a_window() {
    if !windows_can_be_tried() {
        return;
    }
    let program = compiled("asks", ASKS);
    let command = env!("CARGO_BIN_EXE_fmpl");
    let tmux =
        Tmux::of("windows", &format!("{command} run -n 2 --debug {program}; echo the code is $?; exec sleep 1000"));
    let session = tmux.session(2);
    let ranks = ["0", "1"].map(|rank| (rank, format!("{session}:rank {rank}")));
    for (rank, window) in &ranks {
        tmux.until(window, &format!("Rank {rank} is at its first instruction"));
        tmux.types(window, "break answer");
        tmux.until(window, "Breakpoint 1 at");
        tmux.types(window, "run");
        // What is typed before could be gdb's.
        tmux.until(window, "what for?");
        tmux.types(window, &format!("rank {rank}"));
        let shown = tmux.until(window, "Breakpoint 1, answer (half=21)");
        assert!(!shown.contains("Really"), "{shown}");
    }
    // One goes on to its end, and the other one is still looked at.
    tmux.types(&ranks[0].1, "continue");
    tmux.until(&ranks[0].1, "42 for rank 0");
    tmux.until(&ranks[0].1, "exited normally");
    tmux.types(&ranks[1].1, "backtrace");
    tmux.until(&ranks[1].1, "#1 ");
    // To quit ends a rank that has not ended.
    tmux.types(&ranks[1].1, "quit");
    let shown = tmux.until("outer", "the code is");
    assert!(shown.contains("the code is 137") && shown.contains("rank 1 (pid "), "{shown}");
    // The window of a rank that has ended is there until it is closed.
    tmux.types(&ranks[0].1, "quit");
    let since = Instant::now();
    while tmux.tell(&["has-session", "-t", &session]).is_some() {
        assert!(since.elapsed() < Duration::from_secs(60), "the session is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ctrl_c_ends_ranks_that_their_debuggers_hold() {
    if !windows_can_be_tried() {
        return;
    }
    // Outside of tmux: the job's terminal is the window, which then shows its session.
    let (command, inner) = (env!("CARGO_BIN_EXE_fmpl"), Tmux::new("inner"));
    let outside = format!("env -u TMUX TMUX_TMPDIR={}", inner.place.display());
    let tmux = Tmux::of(
        "outside",
        &format!("{outside} {command} run -n 2 --debug sleep 1000; echo the code is $?; exec sleep 1000"),
    );
    tmux.until("outer", "Rank 0 is at its first instruction");
    inner.session(2);
    // One rank runs, and its gdb waits for it; the other one is held.
    tmux.types("outer", "run");
    tmux.until("outer", "libthread_db");
    inner.tell(&["detach-client", "-s", &inner.session(2)]);
    tmux.until("outer", "[detached");
    tmux.tell(&["send-keys", "-t", "outer", "C-c"]).unwrap();
    let shown = tmux.until("outer", "the code is");
    assert!(shown.contains("the code is 130") && shown.contains("Interrupt: ending ranks 0-1"), "{shown}");
    assert_eq!(inner.tell(&["list-sessions"]), None, "their windows are closed");
}
