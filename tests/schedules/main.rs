//! Random programs: all ranks read the same scripts, play their parts in them, and check every byte they get.
//!
//! A script is a list of messages: from whom, to whom, on which index, how long, laid out how on either side, by which calls; and a mode,
//! and whether receives name an index or take any. Each rank's part keeps the order of the script, but begins requests early and
//! completes them late, and pauses now and then. Contents are a function of (source, destination, index, number on that index).
//!
//! `proptest` draws the scripts, a few for each job, and makes those of a job that fails as few and short as it can. What it then prints is
//! the value of `FMPL_TEST_SCRIPTS` that plays just these. `FMPL_TEST_SEED=n` draws the same scripts again; `FMPL_TEST_LONG=1` plays
//! for minutes.

#[path = "../ranks/mod.rs"]
mod ranks;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use ranks::bytes::*;
use ranks::calls::*;
use ranks::placed::{Placed, SHAPES, Shape};
use ranks::{Body, Job, Test};
use std::collections::HashMap;

/// One message of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Message {
    src: i32,
    dst: i32,
    index: i32,
    /// Its number on (src, dst, index); not written down.
    seq: u64,
    len: usize,
    /// Shapes, by their numbers.
    from: usize,
    to: usize,
    /// Requests that stay open over so many further steps; 0: a blocking call.
    isend: usize,
    irecv: usize,
    /// Completed by testing: 1 the send, 2 the receive.
    tested: usize,
    /// Bytes that the receive buffer lacks.
    short_by: usize,
    /// The receive is begun, and cancelled if it can be, before it is made.
    cancels: usize,
    /// Microseconds for which the receiver does something else first.
    pause: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Script {
    timeout: i32,
    /// Receives take any index.
    any: bool,
    messages: Vec<Message>,
}

impl Message {
    fn numbers(&self) -> [i64; 12] {
        let Message { src, dst, index, len, from, to, isend, irecv, tested, short_by, cancels, pause, .. } = *self;
        let [src, dst, index] = [src, dst, index].map(i64::from);
        let rest = [len, from, to, isend, irecv, tested, short_by, cancels, pause].map(|n| n as i64);
        let [len, from, to, isend, irecv, tested, short_by, cancels, pause] = rest;
        [src, dst, index, len, from, to, isend, irecv, tested, short_by, cancels, pause]
    }
}

impl Script {
    /// As text: `mode any: message; message; …`
    fn write(&self) -> String {
        let words = |m: &Message| m.numbers().map(|n| n.to_string()).join(" ");
        let messages: Vec<String> = self.messages.iter().map(words).collect();
        format!("{} {}: {}", self.timeout, self.any as u8, messages.join("; "))
    }

    fn read(text: &str) -> Script {
        let number = |w: &str| w.parse::<i64>().expect("a number");
        let (head, messages) = text.split_once(':').expect("mode and messages");
        let head: Vec<i64> = head.split_whitespace().map(number).collect();
        let message = |text: &str| {
            let n: Vec<i64> = text.split_whitespace().map(number).collect();
            let [src, dst, index] = [n[0], n[1], n[2]].map(|n| n as i32);
            let size = |k: usize| n[k] as usize;
            Message {
                src,
                dst,
                index,
                seq: 0,
                len: size(3),
                from: size(4),
                to: size(5),
                isend: size(6),
                irecv: size(7),
                tested: size(8),
                short_by: size(9),
                cancels: size(10),
                pause: size(11),
            }
        };
        let messages = messages.split(';').filter(|m| !m.trim().is_empty()).map(message).collect();
        Script { timeout: head[0] as i32, any: head[1] != 0, messages }.numbered()
    }

    /// Numbers the messages of each pair and index.
    fn numbered(mut self) -> Script {
        let mut numbers: HashMap<(i32, i32, i32), u64> = HashMap::new();
        for m in &mut self.messages {
            let number = numbers.entry((m.src, m.dst, m.index)).or_insert(0);
            *number += 1;
            m.seq = *number;
        }
        self
    }
}

/// Sizes: small ones often, sizes around the limits of the ways often.
fn sizes(most: usize) -> impl Strategy<Value = usize> {
    const EDGES: [usize; 18] = [0, 1, 7, 8, 9, 15, 16, 17, 72, 73, 255, 1023, 1024, 1025, 4096, 4097, 49152, 65537];
    prop_oneof![
        prop::sample::select(&EDGES[..]).prop_map(move |n| n.min(most)),
        0..=64.min(most),
        0..=5000.min(most),
        0..=most
    ]
}

/// Now and then not 0.
fn seldom(one_in: u32, range: core::ops::Range<usize>) -> impl Strategy<Value = usize> {
    prop_oneof![one_in - 1 => Just(0), 1 => range]
}

fn messages(ranks: i32, indices: i32, most: usize, shaped: bool) -> impl Strategy<Value = Message> {
    let shape = move || 0..if shaped { SHAPES.len() } else { 1 };
    let request = || prop_oneof![Just(0), 1..7usize];
    let ends = (0..ranks, 0..ranks, 0..indices, sizes(most), shape(), shape());
    let calls = (request(), request(), 0..4usize, seldom(15, 0..400_000), seldom(12, 1..2), seldom(40, 1..3000));
    (ends, calls).prop_map(|((src, dst, index, len, from, to), (isend, irecv, tested, short, cancels, pause))| {
        let short_by = short.min(len);
        Message { src, dst, index, seq: 0, len, from, to, isend, irecv, tested, short_by, cancels, pause }
    })
}

fn scripts(ranks: usize) -> impl Strategy<Value = Script> {
    let timeout = prop::sample::select(&[10, 0, 1, -1][..]);
    let indices = prop::sample::select(&[1, 2, 4, 40][..]);
    let most = prop::sample::select(&[64usize, 5000, 100_000, 400_000][..]);
    let any = prop_oneof![4 => Just(false), 1 => Just(true)];
    let shaped = prop_oneof![2 => Just(false), 1 => Just(true)];
    (timeout, any, indices, most, shaped).prop_flat_map(move |(timeout, any, indices, most, shaped)| {
        // A receive of any index that is begun is no posting: no synchronous send ends before it is waited for.
        let count = if most > 100_000 { 10..40 } else { 10..100 };
        prop::collection::vec(messages(ranks as i32, indices, most, shaped), count).prop_map(move |messages| Script {
            timeout: if any { timeout.max(1) } else { timeout },
            any,
            messages,
        })
    })
}

/// A request that this rank has begun.
struct Open {
    message: Message,
    sends: bool,
    place: Placed,
    left: usize,
}

/// A rank's part in a script.
struct Part<'a> {
    script: &'a Script,
    /// Of the script: contents differ from script to script.
    number: u64,
    me: i32,
    open: Vec<Open>,
    /// Messages received by any index, by (source, index).
    taken: HashMap<(i32, i32), u64>,
}

impl Part<'_> {
    fn content(&self, m: Message) -> u64 {
        seed(m.src, m.dst, m.index, m.seq | self.number << 20)
    }

    fn finish(&mut self, open: Open) {
        let m = open.message;
        let polls = m.tested & if open.sends { 1 } else { 2 } != 0;
        match open.sends {
            true if polls => isend_poll(m.dst, m.index),
            true => isend_wait(m.dst, m.index),
            false => {
                let index = if self.script.any { ANY } else { m.index };
                let code = if polls && m.short_by == 0 {
                    irecv_poll(m.src, index);
                    0
                } else {
                    try_irecv_wait(m.src, index)
                };
                self.arrived(m, code, &open.place);
            }
        }
    }

    /// Completes what is due: what `says`, and all whose steps are over.
    fn finish_those(&mut self, says: impl Fn(&Open) -> bool) {
        let (due, left) = std::mem::take(&mut self.open).into_iter().partition(|o| o.left == 0 || says(o));
        self.open = left;
        let due: Vec<Open> = due;
        due.into_iter().for_each(|o| self.finish(o));
    }

    /// A receive that was made for message `m` has ended.
    fn arrived(&mut self, m: Message, code: i32, place: &Placed) {
        let what = format!("script {}: {m:?}", self.number);
        if self.script.any {
            assert!(code == 0, "{what}: {code} {}", last_error());
            let (len, index) = received(m.src, ANY);
            let taken = self.taken.entry((m.src, index)).or_insert(0);
            *taken += 1;
            let came = Message { index, seq: *taken, ..m };
            let said = self
                .script
                .messages
                .iter()
                .find(|o| (o.src, o.dst, o.index, o.seq) == (came.src, came.dst, came.index, came.seq));
            assert_eq!(said.map(|o| o.len), Some(len), "{what} took {index}");
            return check(&place.get(len, &what), self.content(came), &what);
        }
        if m.short_by == 0 {
            assert!(code == 0, "{what}: {code} {}", last_error());
        } else {
            assert!(code == TRUNCATE, "{what}: {code} instead of TRUNCATE");
        }
        assert_eq!(received(m.src, m.index), (m.len, m.index), "{what}");
        check(&place.get(m.len - m.short_by, &what), self.content(m), &what);
    }

    fn place(&self, m: Message) -> Placed {
        if !self.script.any {
            return Placed::new(SHAPES[m.to], m.len - m.short_by);
        }
        // Any message of this source may come.
        let most = self.script.messages.iter().filter(|o| (o.src, o.dst) == (m.src, m.dst)).map(|o| o.len).max();
        Placed::new(Shape::Flat, most.unwrap_or(0))
    }

    fn receive(&mut self, m: Message) {
        if m.pause > 0 {
            std::thread::sleep(std::time::Duration::from_micros(m.pause as u64));
        }
        let index = if self.script.any { ANY } else { m.index };
        // A message to itself is received by a request, before it is sent.
        let request = m.irecv > 0 || m.src == m.dst;
        if m.cancels == 1 {
            let mut place = self.place(m);
            ok(place.recv(m.src, index, true));
            if !cancel(m.src, index) {
                return self.finish(Open { message: m, sends: false, place, left: 0 });
            }
            assert!(place.memory.iter().all(|b| *b == 0xdd), "{m:?}: cancelled, and written");
        }
        let mut place = self.place(m);
        let code = place.recv(m.src, index, request);
        if request {
            ok(code);
            self.open.push(Open { message: m, sends: false, place, left: m.irecv });
        } else {
            self.arrived(m, code, &place);
        }
    }

    fn send(&mut self, m: Message) {
        let mut place = Placed::new(SHAPES[m.from], m.len);
        place.put(&message(m.len, self.content(m)));
        ok(place.send(m.dst, m.index, m.isend > 0));
        if m.isend > 0 {
            self.open.push(Open { message: m, sends: true, place, left: m.isend });
        }
    }

    /// It is free of deadlock by construction: every rank goes through the messages in the same order, and what must wait for a peer
    /// waits only for what stands before it in the script.
    fn play(&mut self) {
        sendbuf_set(64 << 20, self.script.timeout);
        let (me, any) = (self.me, self.script.any);
        for m in self.script.messages.iter().filter(|m| m.src == me || m.dst == me) {
            self.open.iter_mut().for_each(|o| o.left = o.left.saturating_sub(1));
            // Requests whose time has come, or which this message needs out of its way.
            self.finish_those(|o| {
                let of = o.message;
                m.src == me && o.sends && of.dst == m.dst && of.index == m.index
                    || m.dst == me && !o.sends && of.src == m.src && (any || of.index == m.index)
            });
            if m.dst == me {
                self.receive(*m);
            }
            if m.src == me {
                self.send(*m);
            }
        }
        self.finish_those(|_| true);
    }
}

fn plays() {
    init(64);
    let text = std::env::var("FMPL_TEST_SCRIPTS").expect("scripts");
    for (number, script) in text.split('/').map(Script::read).enumerate() {
        let number = number as u64;
        Part { script: &script, number, me: rank(), open: Vec::new(), taken: HashMap::new() }.play();
        // Not after each, so that messages of one script meet the next one's mode; but what takes any index would take the next one's.
        if number.is_multiple_of(3) || script.any {
            barrier();
        }
    }
    finalize();
}

/// How the scripts are spread over ways, waits and numbers of ranks.
const STAGES: [(usize, &str); 12] = [
    (2, "FMPL_SHM_PATH=auto"),
    (3, "FMPL_SHM_PATH=auto"),
    (4, "FMPL_SHM_PATH=auto FMPL_WAIT=block"),
    (2, "FMPL_SHM_PATH=auto FMPL_CMA=off"),
    (3, "FMPL_SHM_PATH=auto FMPL_CMA=off FMPL_WAIT=block"),
    (2, "FMPL_SHM_PATH=spool"),
    (2, "FMPL_SHM_PATH=ring"),
    (3, "FMPL_SHM_PATH=ring FMPL_WAIT=block"),
    (2, "FMPL_SHM_PATH=store"),
    (2, "FMPL_SHM_PATH=cma"),
    (3, "FMPL_SHM_PATH=cma"),
    (2, "FMPL_SHM_PATH=coop"),
];

fn text_of(scripts: &[Script]) -> String {
    scripts.iter().map(Script::write).collect::<Vec<_>>().join("/")
}

fn random_programs() {
    let seed: u64 = std::env::var("FMPL_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_secs())
    });
    let given = std::env::var("FMPL_TEST_SCRIPTS").ok();
    let cases = if ranks::long() {
        80
    } else if ranks::short() {
        3
    } else {
        4
    };
    println!("  FMPL_TEST_SEED={seed}");
    for (ranks, settings) in STAGES {
        let job = |scripts: &str| {
            Job::new(ranks, "plays")
                .settings(settings)
                .env("FMPL_TEST_SCRIPTS", scripts)
                .env("FMPL_STALL", 1)
                .env("FMPL_DEADLOCK", "abort")
                .seconds(30)
                .outcome()
        };
        if let Some(given) = &given {
            let outcome = job(given);
            assert!(outcome.code == 0, "{ranks} ranks, {settings}: {}", ranks::story(&outcome));
            continue;
        }
        let config = Config {
            cases,
            failure_persistence: None,
            max_shrink_time: 60_000,
            max_shrink_iters: 2000,
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let found = runner.run(&prop::collection::vec(scripts(ranks), 1..=10), |scripts| {
            let outcome = job(&text_of(&scripts));
            prop_assert!(outcome.code == 0, "{}", ranks::story(&outcome));
            Ok(())
        });
        match found {
            Ok(()) => {}
            Err(TestError::Fail(why, scripts)) => {
                panic!("{ranks} ranks, {settings}, FMPL_TEST_SCRIPTS='{}': {why}", text_of(&scripts))
            }
            Err(other) => panic!("{ranks} ranks, {settings}: {other}"),
        }
    }
}

/// What is written is what is read.
fn scripts_are_read_as_written() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&scripts(3), |script| {
        let read = Script::read(&script.write());
        prop_assert!(read.messages.iter().all(|m| m.short_by <= m.len && m.seq > 0));
        prop_assert_eq!(read, script.numbered());
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

const TESTS: [Test; 2] =
    [("scripts_are_read_as_written", scripts_are_read_as_written), ("random_programs", random_programs)];
const BODIES: [Body; 1] = [("plays", plays)];

fn main() {
    ranks::main(&TESTS, &BODIES);
}
