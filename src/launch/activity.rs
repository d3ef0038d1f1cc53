//! What a process is doing, as `/proc` tells: for who ends it because it took too long.

use std::fmt::Write;
use std::fs::{read_dir, read_to_string};

use crate::base::system::ticks;

/// One line about all threads of a process: name, state, seconds of user and system time, and where a sleeping one waits in the kernel
/// (with the callers' names, where this process may read them). What cannot be read is left out.
pub(super) fn of(pid: i32) -> String {
    let mut threads: Vec<_> = read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().collect();
    threads.sort_by_key(|thread| thread.file_name());
    let mut text = String::new();
    for thread in threads {
        let read = |name| read_to_string(thread.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let Some((name, state, user, system)) = parse(&stat) else { continue };
        let separator = if text.is_empty() { "" } else { "; " };
        _ = write!(text, "{separator}{name} {state}, {user:.1} + {system:.1} s");
        let stack = read("stack");
        let place = read("wchan");
        if !stack.trim().is_empty() {
            _ = write!(text, ", in {}", callers(&stack));
        } else if !matches!(place.trim(), "" | "0") {
            _ = write!(text, ", in {}", place.trim());
        }
    }
    text
}

/// The name, state, and seconds in user and system mode from a `stat` file (proc(5)).
fn parse(stat: &str) -> Option<(&str, &'static str, f64, f64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let state = match *fields.first()? {
        "R" => "running",
        "S" => "sleeping",
        "D" => "in the kernel, not to be disturbed",
        "T" | "t" => "stopped",
        "Z" | "X" => "ended",
        _ => "in a state of its own",
    };
    let ticks = ticks() as f64;
    let seconds = |i: usize| Some(fields.get(i)?.parse::<f64>().ok()? / ticks);
    Some((name, state, seconds(11)?, seconds(12)?))
}

/// `a < b < c` from the lines of a `stack` file, `[<0>] a+0x1/0x2`.
fn callers(stack: &str) -> String {
    let name = |line: &str| Some(line.split_whitespace().nth(1)?.split(['+', '/']).next()?.to_owned());
    stack.lines().filter_map(name).take(8).collect::<Vec<_>>().join(" < ")
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_understood() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194560 1 0 0 0 200 50 0 0 20 0 1 0 5 0 0";
        let (name, state, user, system) = parse(stat).expect("a line of stat");
        assert_eq!((name, state), ("a (b) c", "sleeping"));
        assert!(user > system && system > 0.0, "{user} {system}");
        assert_eq!(callers("[<0>] futex_wait+0x10/0x20\n[<0>] do_syscall_64+0x5/0x9\n"), "futex_wait < do_syscall_64");
    }

    #[test]
    fn each_thread_of_a_process_is_named() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::Builder::new().name("stands still".into()).spawn(move || wait.recv()).unwrap();
        let text = (0..1000).map(|_| of(std::process::id() as i32)).find(|text| text.contains("stands still sleeping"));
        drop(stop);
        _ = other.join();
        assert!(text.is_some(), "{}", of(std::process::id() as i32));
        assert_eq!(of(-1), "", "no such process");
    }
}
