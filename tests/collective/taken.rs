//! Lines taken over: a reader stores into what it has read. Every byte of every payload is compared, of several calls in a row that
//! use the same memory again at once, with buffers at all places within a line and behind a page; with and without taking over.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::{Job, long, short};
use fmpl::ffi::c::*;
use std::ptr::null_mut;

/// Calls in a row, each with buffers of its own, which are looked at when all are over.
const ROUNDS: usize = 6;
const PAGE: usize = 4096;

/// Bytes that begin so far behind a page, and what surrounds them.
struct Place {
    memory: Vec<u8>,
    at: usize,
    len: usize,
}

impl Place {
    fn new(len: usize, behind: usize) -> Place {
        let memory = vec![0xc3; len + 2 * PAGE + behind];
        let at = (PAGE - memory.as_ptr() as usize % PAGE) % PAGE + behind;
        Place { memory, at, len }
    }
    fn of(bytes: &[u8], behind: usize) -> Place {
        let mut place = Place::new(bytes.len(), behind);
        place.bytes().copy_from_slice(bytes);
        place
    }
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.at..][..self.len]
    }
    #[track_caller]
    fn holds(&mut self, want: &[u8], what: &str) {
        if self.bytes() != want {
            let at = (0..want.len()).find(|k| self.bytes()[*k] != want[*k]).unwrap();
            panic!("{what}: {} bytes, wrong at {at}: {} instead of {}", want.len(), self.bytes()[at], want[at]);
        }
        let outside = |part: &[u8]| part.iter().all(|b| *b == 0xc3);
        assert!(outside(&self.memory[..self.at]) && outside(&self.memory[self.at + self.len..]), "{what}: beside it");
    }
}

/// What a rank gives in a round: blocks are parts of it.
fn gives(len: usize, call: usize, round: usize, rank: usize) -> Vec<u8> {
    message(len, seed(rank as i32, call as i32, round as i32, len as u64))
}

/// The sums, element by element, of what the first `ranks` give.
fn sums(len: usize, call: usize, round: usize, ranks: usize) -> Vec<u8> {
    let mut sum = gives(len, call, round, 0);
    for rank in 1..ranks {
        for (a, b) in sum.chunks_exact_mut(4).zip(gives(len, call, round, rank).chunks_exact(4)) {
            let x = i32::from_ne_bytes(a.try_into().unwrap()).wrapping_add(i32::from_ne_bytes(b.try_into().unwrap()));
            a.copy_from_slice(&x.to_ne_bytes());
        }
    }
    sum
}

const CALLS: [&str; 10] = [
    "bcast",
    "bcast by turns",
    "reduce",
    "allreduce",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "reduce_scatter",
    "scan",
];

/// `ROUNDS` calls of a kind with `len` bytes for each rank (a multiple of 4).
fn calls_in_a_row(call: usize, len: usize, behind: usize) {
    let (me, n) = (rank() as usize, size() as usize);
    let name = CALLS[call];
    let blocks = match name {
        "scatter" | "alltoall" | "reduce_scatter" => n,
        _ => 1,
    };
    let taken = match name {
        "gather" | "allgather" | "alltoall" => n * len,
        "scatter" | "reduce_scatter" => len,
        _ => 0,
    };
    // Of most calls one root in all rounds: lines go one way.
    let root = |round: usize| if name == "bcast by turns" { round / 2 % n } else { 1 % n };
    let mut rounds: Vec<(Place, Place)> = (0..ROUNDS)
        .map(|round| {
            let mut give = gives(blocks * len, call, round, me);
            if name.starts_with("bcast") && me != root(round) {
                give.fill(0);
            }
            (Place::of(&give, behind), Place::new(taken, 63 - behind % 63))
        })
        .collect();
    for (round, (give, take)) in rounds.iter_mut().enumerate() {
        let (g, t) = (give.bytes().as_mut_ptr().cast(), take.bytes().as_mut_ptr().cast());
        let (root, count, sum) = (root(round) as i32, (len / 4) as i32, Some(fmpl_isum as _));
        // SAFETY: buffers as each call wants them.
        ok(unsafe {
            match name {
                "reduce" => fmpl_reduce(g, count, sum, root, WORLD, null_mut()),
                "allreduce" => fmpl_allreduce(g, count, sum, WORLD, null_mut()),
                "gather" => fmpl_gather(g, len, t, root, WORLD),
                "allgather" => fmpl_allgather(g, len, t, WORLD),
                "scatter" => fmpl_scatter(g, len, t, root, WORLD),
                "alltoall" => fmpl_alltoall(g, len, t, WORLD),
                "reduce_scatter" => fmpl_reduce_scatter(g, t, count, sum, WORLD),
                "scan" => fmpl_scan(g, count, sum, WORLD),
                _ => fmpl_bcast(g, len, root, WORLD),
            }
        });
    }
    for (round, (give, take)) in rounds.iter_mut().enumerate() {
        let what = format!("{name} {round} of {len} bytes, {behind} behind a page, rank {me} of {n}");
        let own = gives(blocks * len, call, round, me);
        let block = |from: usize, k: usize| gives(blocks * len, call, round, from)[k * len..][..len].to_vec();
        let all = |k: usize| (0..n).flat_map(|from| block(from, k)).collect::<Vec<u8>>();
        let (left, came) = match name {
            "reduce" if me == root(round) => (sums(len, call, round, n), vec![]),
            "allreduce" => (sums(len, call, round, n), vec![]),
            "scan" => (sums(len, call, round, me + 1), vec![]),
            "gather" if me == root(round) => (own, all(0)),
            "gather" => (own, vec![0xc3; taken]),
            "allgather" => (own, all(0)),
            "scatter" => (own, block(root(round), me)),
            "alltoall" => (own, all(me)),
            "reduce_scatter" => (own, sums(blocks * len, call, round, n)[me * len..][..len].to_vec()),
            "reduce" => (own, vec![]),
            _ => (gives(len, call, round, root(round)), vec![]),
        };
        give.holds(&left, &what);
        take.holds(&came, &what);
    }
}

/// Messages in a row to a receiver that waits for them, through its ring, and to any source.
fn messages_in_a_row(len: usize, behind: usize) {
    let (me, n) = (rank() as usize, size() as usize);
    let of = |round: usize, from: usize| gives(len, 20, round, from);
    for to in 0..n {
        if me == to {
            let mut came: Vec<(usize, Place)> = Vec::new();
            for from in (0..n).filter(|r| *r != to) {
                for _ in 0..ROUNDS {
                    let mut place = Place::new(len, behind);
                    recv(place.bytes(), from as i32, 0);
                    came.push((from, place));
                }
            }
            for (k, (from, place)) in came.iter_mut().enumerate() {
                place.holds(&of(k % ROUNDS, *from), &format!("message {k} of {len} bytes from {from}"));
            }
            let mut next = vec![0; n];
            for _ in 0..ROUNDS * (n - 1) {
                let mut place = Place::new(len, behind);
                let (from, got) = recv_any(place.bytes(), 1);
                assert_eq!(got, len);
                place.holds(&of(next[from as usize], from as usize), &format!("{len} bytes of any source"));
                next[from as usize] += 1;
            }
        } else {
            let mut sent: Vec<Place> = (0..ROUNDS).map(|round| Place::of(&of(round, me), behind)).collect();
            sent.iter_mut().for_each(|place| send(place.bytes(), to as i32, 0));
            sent.iter_mut().for_each(|place| send_any(place.bytes(), to as i32, 1));
        }
        barrier();
    }
}

/// Multiples of 4: around a line, what a core takes over, a cell, half a ring, a ring, a page.
const SIZES: [usize; 16] =
    [4, 60, 1020, 1024, 1028, 2044, 4100, 8192, 8196, 12_020, 20_004, 65_532, 65_540, 131_076, 300_004, 1_200_004];

/// How far behind a page buffers begin.
const PLACES: [usize; 5] = [1, 8, 16, 63, 0];

pub fn takes_over() {
    init(2);
    let most = if short() {
        20_004
    } else if long() {
        1_200_004
    } else {
        131_076
    };
    for (k, len) in SIZES.into_iter().filter(|len| *len <= most).enumerate() {
        for call in 0..CALLS.len() {
            // All places with all calls, at some size or other; all of them with each where the time is no matter.
            let one = (k + call) % PLACES.len();
            for behind in if long() { &PLACES[..] } else { &PLACES[one..=one] } {
                calls_in_a_row(call, len, *behind);
            }
        }
        messages_in_a_row(len - k % 4, [63, 16, 8, 1][k % 4]);
    }
    finalize();
}

/// Ways in which lines are taken over, or not for want of a second copy.
const WAYS: [&str; 3] = [
    "",
    "FMPL_COLL_BCAST=cells FMPL_COLL_REDUCE=cells FMPL_COLL_ALLREDUCE=cells FMPL_COLL_EXCHANGE=cells \
     FMPL_COLL_SCAN=cells FMPL_WAY=ring FMPL_RING_MAX=1G",
    "FMPL_CMA=off FMPL_COLL_ALLREDUCE=slices FMPL_COLL_SCAN=chain FMPL_COLL_CHUNK=8192",
];

pub fn payloads() {
    for ranks in 2..=4 {
        for over in ["on", "off"] {
            for way in WAYS {
                let job = Job::new(ranks, "takes over").env("FMPL_TAKE_OVER", over).settings(way);
                job.seconds(if long() { 900 } else { 120 }).run();
            }
        }
    }
}
