//! `fmpl top`: it sees what the ranks do, to the message, and for whom they wait; from the launcher's process and from a rank's; in a table and
//! as JSON; and says what is wrong where there is no job.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::ranks::calls::*;

/// With `MEETS_ALL` each rank has sent a message to each other. Ranks 0 and 1 have sent each other 500 messages of 8 bytes and 20 of 100 000, also on a communicator that is freed; then all wait for rank
/// 0, which waits for its standard input, and sends 100 messages a tenth of a second as soon as there is a line.
pub fn is_watched() {
    init(16);
    let (me, ranks) = (rank(), size());
    if me < 2 {
        let exchange = |times: usize, len: usize| {
            for _ in 0..times {
                sendrecv(&vec![1; len], 1 - me, 3, &mut vec![0; len], 1 - me, 3);
            }
        };
        exchange(500, 8);
        exchange(20, 100_000);
    }
    if std::env::var_os("MEETS_ALL").is_some() {
        for k in 1..ranks {
            sendrecv(&[1; 8], (me + k) % ranks, 9, &mut [0; 8], (me + ranks - k) % ranks, 9);
        }
    }
    let twin = dup(WORLD);
    on(twin);
    if me < 2 {
        sendrecv(&[1; 8], 1 - me, 0, &mut [0; 8], 1 - me, 0);
    }
    barrier();
    free(twin);
    on(WORLD);
    println!("ready");
    if me > 0 {
        recv(&mut [0], 0, 5);
        return finalize();
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    for _ in 0..10 {
        for k in 0..100u8 {
            isend(&[k], 0, 7);
            recv(&mut [0], 0, 7);
            isend_wait(0, 7);
        }
        sleep_ms(100);
    }
    let mut end = String::new();
    std::io::stdin().read_line(&mut end).unwrap();
    (1..ranks).for_each(|peer| send(&[1], peer, 5));
    finalize();
}

struct Watched(Child);

impl Watched {
    fn start(ranks: usize) -> Watched {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fmpl"));
        command.args(["run", "-n", &ranks.to_string(), "--timeout", "60", "--env", "RANKS_BODY=is watched", "--"]);
        command.arg(std::env::current_exe().unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = vec![0; "ready\n".len() * ranks];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        Watched(child)
    }

    fn line(&mut self) {
        use std::io::Write;
        self.0.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    }

    fn ends(mut self) {
        self.line();
        assert!(self.0.wait().unwrap().success());
    }
}

fn top(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fmpl")).arg("top").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// What a look says, as JSON.
fn look(pid: u32, looks: &str) -> Vec<Value> {
    let (good, text, error) = top(&[&pid.to_string(), "--json", "-n", looks, "-d", "0.3"]);
    assert!(good, "{error}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Until the waits are on the notice boards, which they are once they have outlived their spinning.
fn look_until(pid: u32, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let seen = look(pid, "1").pop().unwrap();
        if is_so(&seen) {
            return seen;
        }
    }
}

pub fn sees() {
    let mut job = Watched::start(3);
    let seen = look_until(job.0.id(), |seen| (1..3).all(|rank| !seen["ranks"][rank]["waits"].is_null()));
    for rank in 0..3 {
        let of = &seen["ranks"][rank];
        assert_eq!((of["rank"].as_u64(), of["takes_part"].as_bool()), (Some(rank as u64), Some(true)), "{of}");
        let ways = of["totals"]["ways"].as_object().unwrap();
        let sum = |k: usize| ways.values().map(|way| way[k].as_u64().unwrap()).sum::<u64>();
        let (messages, bytes) = if rank < 2 { (521, 501 * 8 + 20 * 100_000) } else { (0, 0) };
        assert_eq!((sum(0), sum(1), of["totals"]["received"].as_u64()), (messages, bytes, Some(messages)), "{of}");
        if rank < 2 {
            assert_eq!(of["totals"]["ways"]["short"], serde_json::json!([501, 4008]), "{of}");
        }
        if rank > 0 {
            let waits = &of["waits"];
            assert_eq!(
                (waits["in"].as_str(), waits["peer"].as_u64(), waits["index"].as_u64()),
                (Some("recv"), Some(0), Some(5))
            );
        }
    }
    // From the process of a rank, all of them.
    let one = seen["ranks"][2]["pid"].as_u64().unwrap() as u32;
    assert_eq!(look(one, "1")[0]["ranks"].as_array().unwrap().len(), 3);
    // And while messages go: rates, until all have gone.
    job.line();
    let rates = look(job.0.id(), "3");
    let fastest = rates.iter().map(|l| l["ranks"][0]["per_second"]["received"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(fastest > 0.0, "{rates:?}");
    let (_, text, _) = top(&[&job.0.id().to_string(), "-n", "1", "-d", "0.1"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.len() == 5 && lines[0].starts_with("3 of 3 ranks here") && lines[3].contains("recv 0, index 5: "),
        "{text}"
    );
    look_until(job.0.id(), |seen| seen["ranks"][0]["totals"]["received"] == 1521);
    job.ends();
}

pub fn of_nothing() {
    let (good, _, error) = top(&["4294967295"]);
    assert!(!good && error == "fmpl top: there is no process 4294967295\n", "{error}");
    let (good, _, error) = top(&[&std::process::id().to_string(), "-n", "1"]);
    assert!(!good && error.contains("is no rank of a job"), "{error}");
    let (good, _, error) = top(&["-d", "0"]);
    assert!(!good && error.contains("0 is no number of seconds"), "{error}");
}

/// When the job ends, so does this.
pub fn to_the_end() {
    let job = Watched::start(2);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fmpl"));
    let mut watcher =
        command.args(["top", &job.0.id().to_string(), "-d", "0.05"]).stdout(Stdio::null()).spawn().unwrap();
    let mut job = job;
    job.line();
    job.ends();
    assert!(watcher.wait().unwrap().success());
}
