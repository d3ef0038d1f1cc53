use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::ranks::calls::*;
use crate::ranks::{Job, complaints};

/// Messages by several ways, a collective call, and a wait that is long enough to sleep and to be told of.
pub fn does_this_and_that() {
    init(8);
    if rank() == 0 {
        send(&[1; 8], 1, 1);
        send(&[2; 500], 1, 2);
        send(&vec![3; 100_000], 1, 3);
    } else {
        sleep_ms(300);
        recv(&mut [0; 8], 0, 1);
        recv(&mut [0; 500], 0, 2);
        recv(&mut vec![0; 100_000], 0, 3);
    }
    barrier();
    if rank() == 0 {
        if std::env::var_os("STALLS").is_some() {
            sleep_ms(2000);
        }
        if std::env::var_os("SIGNALS").is_some() {
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGUSR1) };
            let written = format!("{}.0", std::env::var("FMPL_TRACE").unwrap());
            while !std::path::Path::new(&written).exists() {
                sleep_ms(10);
            }
            // It is told, too.
            sleep_ms(300);
        }
        send(&[4; 8], 1, 4);
    } else {
        recv(&mut [0; 8], 0, 4);
    }
    for _ in 0..std::env::var("MANY").map_or(0, |n| n.parse().unwrap()) {
        sendrecv(&[5; 8], other(), 5, &mut [0; 8], other(), 5);
    }
    if std::env::var_os("DIES").is_some() {
        // SAFETY: no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    finalize();
}

/// A directory for the files of a test, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let at = std::env::temp_dir().join(format!("fmpl-traced-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&at).unwrap();
        Place(at)
    }
    fn job(&self, file: &str) -> Job {
        Job::new(2, "does this and that").env("FMPL_TRACE", self.0.join(file).display())
    }
    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }
    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.read(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn as_text() {
    let place = Place::new("text");
    place.job("run").run();
    let (first, second) = (place.read("run.0"), place.read("run.1"));
    assert!(
        first.starts_with("# events of rank 0 of 2 on ") && first.contains("; 0 older ones are dropped"),
        "{first}"
    );
    for piece in [
        "sent: inline, message 1 of 8 bytes to rank 1, index 1, communicator 0",
        "sent: eager slot, message 1 of 500 bytes to rank 1, index 2, communicator 0",
        "sent: spool, message 1 of 100000 bytes to rank 1, index 3, communicator 0",
        "begins: barrier, communicator 0",
        " ends\n",
        "sleeps",
        "waits no more",
    ] {
        assert!(first.contains(piece), "{piece}: {first}");
    }
    for (number, index) in [(8, 1), (500, 2), (100_000, 3)] {
        let piece = format!("received: message 1 of {number} bytes from rank 0, index {index}, communicator 0");
        assert!(second.contains(&piece), "{piece}: {second}");
    }
    // In the order in which it was.
    let times: Vec<f64> =
        first.lines().skip(2).map(|l| l.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(times.len() > 8 && times.is_sorted(), "{first}");
}

pub fn as_json() {
    let place = Place::new("json");
    place.job("run.json").run();
    let events = |of: &Value, phase: &str, name: &str| {
        let all = of["traceEvents"].as_array().unwrap().clone();
        all.into_iter().filter(|e| e["ph"] == phase && (name.is_empty() || e["name"] == name)).collect::<Vec<_>>()
    };
    for rank in 0..2 {
        let of = place.json(&format!("run.{rank}.json"));
        assert_eq!(of["otherData"]["rank"], rank);
        assert!(
            events(&of, "M", "process_name")[0]["args"]["name"]
                .as_str()
                .unwrap()
                .starts_with(&format!("rank {rank} on "))
        );
        assert_eq!(events(&of, "B", "barrier").len(), 1, "{of}");
        // What begins ends.
        assert_eq!(events(&of, "B", "").len(), events(&of, "E", "").len(), "{of}");
    }
    let first = place.json("run.0.json");
    let spooled = &events(&first, "i", "sent: spool")[0]["args"];
    assert_eq!(
        (&spooled["peer"], &spooled["index"], &spooled["bytes"], &spooled["number"]),
        (&1.into(), &3.into(), &100_000.into(), &1.into())
    );
    // Both files as one.
    let files = [0, 1].map(|r| place.0.join(format!("run.{r}.json")));
    let all = place.0.join("all.json");
    let done = Command::new(env!("CARGO_BIN_EXE_fmpl")).arg("trace").arg("-o").arg(&all).args(&files).status();
    assert!(done.unwrap().success());
    let count = |of: &Value| of["traceEvents"].as_array().unwrap().len();
    assert_eq!(count(&place.json("all.json")), count(&first) + count(&place.json("run.1.json")));
}

/// A rank that then dies has left what it had when it stalled.
pub fn in_a_stall() {
    for file in ["run", "run.json"] {
        let place = Place::new("stall");
        let job = place.job(file).settings("STALLS=1 DIES=1 FMPL_STALL=0.4").outcome();
        let text = complaints(&job);
        assert!(text.contains("fmpl: rank 1: stalled: events in "), "{text}");
        let file = if file == "run" { "run.1" } else { "run.1.json" };
        let events = place.read(file);
        let waits = if file == "run.1" { "waits: recv, rank 0, index 4, communicator 0" } else { "\"waits: recv\"" };
        assert!(events.contains(waits), "{events}");
        if file != "run.1" {
            place.json(file);
        }
    }
    // Where no file is named the last ones are shown.
    let text = complaints(&Job::new(2, "does this and that").settings("STALLS=1 FMPL_STALL=0.4").run());
    assert!(
        text.contains("fmpl: rank 1: stalled: the last events:\n") && text.contains("waits: recv, rank 0, index 4"),
        "{text}"
    );
}

pub fn at_a_signal() {
    let place = Place::new("signal");
    let job = place.job("run").settings("SIGNALS=1 DIES=1 FMPL_TRACE_SIGNAL=USR1").outcome();
    assert!(complaints(&job).contains("fmpl: rank 0: a signal: events in "), "{}", complaints(&job));
    assert!(place.read("run.0").contains("sent: eager slot"));
    // Unasked, nobody takes a signal: it ends the rank as ever.
    let job = place.job("other").settings("SIGNALS=1").outcome();
    assert_eq!(job.code, 128 + libc::SIGUSR1, "{}", complaints(&job));
}

pub fn the_last_ones() {
    let place = Place::new("few");
    place.job("run").env("FMPL_TRACE_EVENTS", 16).env("MANY", 40).run();
    let text = place.read("run.1");
    let dropped = text.split("; ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(text.lines().count() <= 2 + 16 && dropped > 0, "{text}");
}
