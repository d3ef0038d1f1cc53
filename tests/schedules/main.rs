//! Random programs: all ranks derive the same script from a seed, play their parts in it, and check every byte they get.
//!
//! A script is a list of messages: from whom, to whom, on which index, how long, in which mode, laid out how on either side, by
//! which calls. Each rank's part keeps the order of the script, but begins requests early and completes them late, at
//! random places, and pauses now and then. Contents are a function of (source, destination, index, number on that index).
//!
//! `FMPL_TEST_SEED=n` plays the script of that number only; the number of a script that fails is printed. `FMPL_TEST_LONG=1` plays for
//! minutes.

#[path = "../ranks/mod.rs"]
mod ranks;

use ranks::bytes::*;
use ranks::calls::*;
use ranks::placed::{Placed, SHAPES, Shape};
use ranks::{Body, Job, Test};
use std::collections::{HashMap, HashSet};

/// One message of a script.
#[derive(Clone, Copy, Debug)]
struct Message {
    src: i32,
    dst: i32,
    index: i32,
    /// Its number on (src, dst, index).
    seq: u64,
    len: usize,
    from: Shape,
    to: Shape,
    /// The sender uses a request, which stays open over so many further steps.
    isend: Option<usize>,
    irecv: Option<usize>,
    /// Completed by testing.
    tested: [bool; 2],
    /// Bytes that the receive buffer lacks.
    short_by: usize,
}

struct Script {
    timeout: i32,
    messages: Vec<Message>,
}

fn script(seed: u64, ranks: usize) -> Script {
    let mut draw = Draw(seed);
    let timeout = [0, 1, 10, 10, -1][draw.below(5)];
    let indices = [1, 2, 4, 40][draw.below(4)];
    let most = [64, 5000, 100_000, 400_000][draw.below(4)];
    let mut numbers: HashMap<(i32, i32, i32), u64> = HashMap::new();
    let count = 10 + draw.below(if most > 100_000 { 30 } else { 90 });
    let shaped = draw.one_in(3);
    let messages = (0..count)
        .map(|_| {
            let src = draw.below(ranks) as i32;
            // To itself too, but then never synchronously without a request.
            let dst = if draw.one_in(8) { src } else { draw.below(ranks) as i32 };
            let index = draw.below(indices) as i32;
            let number = numbers.entry((src, dst, index)).or_insert(0);
            *number += 1;
            let len = draw.size(most);
            let mut shape = || if shaped { SHAPES[draw.below(SHAPES.len())] } else { Shape::Flat };
            let (from, to) = (shape(), shape());
            let mut request = || draw.one_in(2).then(|| draw.below(6));
            let (isend, irecv) = (request(), request());
            let tested = [draw.one_in(2), draw.one_in(2)];
            let short_by = if draw.one_in(15) { draw.below(len + 1) } else { 0 };
            Message { src, dst, index, seq: *number, len, from, to, isend, irecv, tested, short_by }
        })
        .collect();
    Script { timeout, messages }
}

/// A request that this rank has begun.
struct Open {
    message: Message,
    sends: bool,
    place: Placed,
    left: usize,
}

fn content(m: Message, script: u64) -> u64 {
    seed(m.src, m.dst, m.index, m.seq | script << 20)
}

fn finish(open: Open, seed_of_script: u64) {
    let m = open.message;
    if open.sends {
        if m.tested[0] { isend_poll(m.dst, m.index) } else { isend_wait(m.dst, m.index) }
    } else {
        let code = if m.tested[1] && m.short_by == 0 {
            irecv_poll(m.src, m.index);
            0
        } else {
            try_irecv_wait(m.src, m.index)
        };
        arrived(m, code, &open.place, seed_of_script);
    }
}

fn arrived(m: Message, code: i32, place: &Placed, seed_of_script: u64) {
    let what = format!("script {seed_of_script}: {m:?}");
    if m.short_by == 0 {
        assert!(code == 0, "{what}: {code} {}", last_error());
    } else {
        assert!(code == TRUNCATE, "{what}: {code} instead of TRUNCATE");
    }
    assert_eq!(received(m.src, m.index), (m.len, m.index), "{what}");
    check(&place.get(m.len - m.short_by, &what), content(m, seed_of_script), &what);
}

/// Plays a rank's part. It is free of deadlock by construction: every rank goes through the messages in the same order, and
/// what must wait for a peer waits only for what stands before it in the script.
fn play(number: u64, me: i32, ranks: usize) {
    let script = script(number, ranks);
    let mut pause = Draw(number ^ (me as u64 + 1) << 40);
    sendbuf_set(64 << 20, script.timeout);
    let mut open: Vec<Open> = Vec::new();
    for m in &script.messages {
        if m.src != me && m.dst != me {
            continue;
        }
        if pause.one_in(40) {
            std::thread::sleep(std::time::Duration::from_micros(pause.below(3000) as u64));
        }
        // Requests whose time has come, or which this message needs out of its way.
        let mut due: Vec<Open> = Vec::new();
        for o in open.iter_mut() {
            o.left = o.left.saturating_sub(1);
        }
        let mut k = 0;
        while k < open.len() {
            let o = &open[k];
            let same_send = m.src == me && o.sends && o.message.dst == m.dst && o.message.index == m.index;
            let same_recv = m.dst == me && !o.sends && o.message.src == m.src && o.message.index == m.index;
            if o.left == 0 || same_send || same_recv { due.push(open.remove(k)) } else { k += 1 }
        }
        due.into_iter().for_each(|o| finish(o, number));
        // A message to itself is received by a request, before it is sent.
        let to_itself = m.src == m.dst;
        let receive = |open: &mut Vec<Open>| {
            let mut place = Placed::new(m.to, m.len - m.short_by);
            if to_itself || m.irecv.is_some() {
                ok(place.recv(m.src, m.index, true));
                open.push(Open { message: *m, sends: false, place, left: m.irecv.unwrap_or(0) });
            } else {
                let code = place.recv(m.src, m.index, false);
                arrived(*m, code, &place, number);
            }
        };
        if m.dst == me {
            receive(&mut open);
        }
        if m.src == me {
            let mut place = Placed::new(m.from, m.len);
            place.put(&message(m.len, content(*m, number)));
            ok(place.send(m.dst, m.index, m.isend.is_some()));
            if let Some(left) = m.isend {
                open.push(Open { message: *m, sends: true, place, left });
            }
        }
    }
    open.into_iter().for_each(|o| finish(o, number));
}

fn plays() {
    init(64);
    let (first, count): (u64, u64) =
        (std::env::var("FIRST").unwrap().parse().unwrap(), std::env::var("COUNT").unwrap().parse().unwrap());
    let (me, ranks) = (rank(), size() as usize);
    for number in first..first + count {
        if me == 0 {
            eprintln!("script {number}");
        }
        play(number, me, ranks);
        // Not after each, so that messages of one script meet the next one's mode.
        if number % 3 == 0 {
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

fn random_programs() {
    let given: Option<u64> = std::env::var("FMPL_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let base = given.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_secs() % 1_000_000 * 1000)
    });
    let count = if given.is_some() {
        1
    } else if ranks::long() {
        600
    } else if ranks::short() {
        30
    } else {
        120
    };
    println!("  scripts from {base} on");
    for (k, (ranks, settings)) in STAGES.into_iter().enumerate() {
        let first = if given.is_some() { base } else { base + k as u64 * count };
        let job =
            Job::new(ranks, "plays").settings(settings).env("FIRST", first).env("COUNT", count).env("FMPL_STALL", 5);
        job.seconds(if ranks::long() { 600 } else { 60 }).run();
    }
}

/// Messages of one pair on one index are received in the order of the script, and each once.
fn scripts_make_sense() {
    for number in 0..200 {
        let script = script(number, 3);
        let mut seen = HashSet::new();
        for m in &script.messages {
            assert!(m.short_by <= m.len && m.seq > 0 && seen.insert((m.src, m.dst, m.index, m.seq)));
            assert!(m.seq == 1 || seen.contains(&(m.src, m.dst, m.index, m.seq - 1)));
        }
    }
}

const TESTS: [Test; 2] = [("scripts_make_sense", scripts_make_sense), ("random_programs", random_programs)];
const BODIES: [Body; 1] = [("plays", plays)];

fn main() {
    ranks::main(&TESTS, &BODIES);
}
