//! Messages between pairs of ranks in every way that a program has: waiting and not, received late, of any index, withdrawn, in windows and
//! streams. All bytes are checked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Plan, Rank, all_is_well, play, the_fault_is_named};
use crate::base::layout::Layout;
use crate::base::rules::Rule;
use crate::base::simulation::{Lot, pause};
use crate::fabric::network::simulated::batches::LeftOut;
use crate::p2p::{
    COMM_WORLD, TAG_ANY, irecv, irecv_cancel, irecv_test, irecv_wait, isend, isend_test, isend_wait, received, recv,
    send, sendrecv,
};

/// Indices that are used.
const INDICES: usize = 6;
/// Lengths around which the ways change, and some between.
const LENGTHS: [usize; 14] = [0, 1, 8, 64, 104, 105, 200, 1000, 4096, 4097, 9000, 16384, 40_000, 100_000];
/// Those that do not fill the spool before they are received.
const SHORT: [usize; 9] = [0, 1, 8, 64, 104, 105, 200, 1000, 4096];

/// A message: who to whom, on which index, the number of the round and within it.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub from: u32,
    pub to: u32,
    pub index: i32,
    pub number: u64,
    pub len: usize,
}

impl Message {
    fn word(&self) -> u64 {
        let all = self.number << 24 | u64::from(self.from) << 16 | u64::from(self.to) << 8 | self.index as u64;
        Lot::new(all).draw()
    }
    pub fn bytes(&self) -> Vec<u8> {
        let (mut word, mut bytes) = (self.word(), Vec::with_capacity(self.len + 8));
        while bytes.len() < self.len {
            bytes.extend(word.to_le_bytes());
            word = word.wrapping_add(0x0101_0101_0101_0101);
        }
        bytes.truncate(self.len);
        bytes
    }
    pub fn check(&self, got: &[u8]) {
        let Message { from, to, index, number, len } = *self;
        let sent = self.bytes();
        if got == sent {
            return;
        }
        let first = sent.iter().zip(got).position(|(a, b)| a != b);
        let other = (number.saturating_sub(20)..number + 20)
            .find(|n| got.len() >= 8 && Message { number: *n, len: got.len(), ..*self }.bytes() == got);
        panic!(
            "message {number} of {len} bytes from rank {from} to rank {to} on index {index}: {} bytes, wrong from byte {first:?} \
             on; it is message {other:?}",
            got.len()
        );
    }
}

pub(super) fn layout(bytes: &[u8]) -> Layout {
    // SAFETY: the scene keeps them until the message is over.
    unsafe { Layout::bytes(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// A rank's calls with one peer. What fails is noted, and tells that nothing more is to be done with that peer.
struct With<'a> {
    rank: &'a Rank,
    peer: u32,
}

impl With<'_> {
    fn to(&self, index: i32, number: u64, len: usize) -> Message {
        Message { from: self.rank.me, to: self.peer, index, number, len }
    }
    fn from(&self, index: i32, number: u64, len: usize) -> Message {
        Message { from: self.peer, to: self.rank.me, index, number, len }
    }
    fn note<T>(&self, call: &'static str, done: crate::Result<T>) -> Option<T> {
        self.rank.note(Some(self.peer), call, done)
    }

    fn send(&self, index: i32, number: u64, len: usize) -> Option<()> {
        let bytes = self.to(index, number, len).bytes();
        self.note("send", send(COMM_WORLD, layout(&bytes), self.peer as i32, index))
    }
    fn recv(&self, index: i32, number: u64, len: usize) -> Option<()> {
        let mut bytes = vec![0xa5; len];
        self.note("recv", recv(COMM_WORLD, layout_mut(&mut bytes), self.peer as i32, index))?;
        self.from(index, number, len).check(&bytes);
        Some(())
    }

    /// One way and back.
    fn in_turn(&self, lot: &mut Lot, number: u64) -> Option<()> {
        for n in 0..1 + lot.below(3) {
            let index = lot.below(INDICES as u64) as i32;
            let [there, back] = [(); 2].map(|()| lot.one_of(&LENGTHS));
            if self.rank.me < self.peer {
                self.send(index, number + n, there)?;
                self.recv(index, number + n, back)?;
            } else {
                self.recv(index, number + n, there)?;
                self.send(index, number + n, back)?;
            }
        }
        Some(())
    }

    /// Many indices at a time, both ways; completed in an order of one's own.
    fn window(&self, lot: &mut Lot, own: &mut Lot, number: u64) -> Option<()> {
        let lengths: Vec<[usize; 2]> =
            (0..1 + lot.below(INDICES as u64)).map(|_| [(); 2].map(|()| lot.one_of(&LENGTHS))).collect();
        let lower = self.rank.me < self.peer;
        let of = |index: usize| if lower { lengths[index] } else { [lengths[index][1], lengths[index][0]] };
        let out: Vec<Vec<u8>> =
            (0..lengths.len()).map(|index| self.to(index as i32, number, of(index)[0]).bytes()).collect();
        let mut inn: Vec<Vec<u8>> = (0..lengths.len()).map(|index| vec![0xa5; of(index)[1]]).collect();
        let mut open: Vec<(bool, usize)> = Vec::new();
        let peer = self.peer as i32;
        let sends_first = own.once_in(3);
        for sends in [sends_first, !sends_first] {
            for index in 0..lengths.len() {
                let begun = match sends {
                    true => isend(COMM_WORLD, layout(&out[index]), peer, index as i32),
                    false => irecv(COMM_WORLD, layout_mut(&mut inn[index]), peer, index as i32),
                };
                // What has failed at its beginning is not under way.
                if self.note(if sends { "isend" } else { "irecv" }, begun).is_some() {
                    open.push((sends, index));
                }
            }
        }
        let mut well = open.len() == 2 * lengths.len();
        while !open.is_empty() {
            let k = own.below(open.len() as u64) as usize;
            let (sends, index) = open[k];
            let waits = own.once_in(3);
            let done = match (sends, waits) {
                (true, true) => isend_wait(COMM_WORLD, peer, index as i32).map(|()| true),
                (true, false) => isend_test(COMM_WORLD, peer, index as i32),
                (false, true) => irecv_wait(COMM_WORLD, peer, index as i32).map(|()| true),
                (false, false) => irecv_test(COMM_WORLD, peer, index as i32),
            };
            match self.note(if sends { "isend_wait" } else { "irecv_wait" }, done) {
                Some(false) => _ = pause(),
                Some(true) => {
                    open.swap_remove(k);
                    if !sends {
                        self.from(index as i32, number, inn[index].len()).check(&inn[index]);
                    }
                }
                None => {
                    well = false;
                    open.swap_remove(k);
                }
            }
        }
        well.then_some(())
    }

    /// Messages that are sent before their receives are there: into the landing, the overflow queue and the spool.
    fn late(&self, lot: &mut Lot, number: u64) -> Option<()> {
        let index = lot.below(INDICES as u64) as i32;
        let mut lengths = [(); 2].map(|()| (0..1 + lot.below(6)).map(|_| lot.one_of(&SHORT)).collect::<Vec<_>>());
        if lot.once_in(3) {
            lengths.iter_mut().for_each(|l| l.push(lot.one_of(&LENGTHS)));
        }
        let [mine, theirs] = if self.rank.me < self.peer { [0, 1] } else { [1, 0] };
        lengths[mine].iter().zip(number..).try_for_each(|(len, n)| self.send(index, n, *len))?;
        lengths[theirs].iter().zip(number..).try_for_each(|(len, n)| self.recv(index, n, *len))
    }

    /// One side sends one after the other.
    fn stream(&self, lot: &mut Lot, number: u64) -> Option<()> {
        let (index, count, len) = (lot.below(INDICES as u64) as i32, 5 + lot.below(25), lot.one_of(&SHORT));
        let sends = lot.once_in(2) == (self.rank.me < self.peer);
        (0..count).try_for_each(|n| match sends {
            true => self.send(index, number + n, len),
            false => self.recv(index, number + n, len),
        })
    }

    /// Both at once.
    fn exchange(&self, lot: &mut Lot, number: u64) -> Option<()> {
        let (index, len) = (lot.below(INDICES as u64) as i32, lot.one_of(&LENGTHS));
        let (out, mut inn) = (self.to(index, number, len).bytes(), vec![0xa5; len]);
        let peer = self.peer as i32;
        let done = sendrecv(COMM_WORLD, layout(&out), peer, index, layout_mut(&mut inn), peer, index);
        self.note("sendrecv", done)?;
        self.from(index, number, len).check(&inn);
        Some(())
    }

    /// A receive that is taken back, if it can be, and made again.
    fn withdrawn(&self, lot: &mut Lot, own: &mut Lot, number: u64) -> Option<()> {
        let (index, len) = (lot.below(INDICES as u64) as i32, lot.one_of(&LENGTHS));
        if lot.once_in(2) == (self.rank.me < self.peer) {
            return self.send(index, number, len);
        }
        let (peer, mut bytes) = (self.peer as i32, vec![0xa5; len]);
        self.note("irecv", irecv(COMM_WORLD, layout_mut(&mut bytes), peer, index))?;
        (0..own.below(60)).for_each(|_| _ = pause());
        match self.note("irecv_cancel", irecv_cancel(COMM_WORLD, peer, index)) {
            Some(true) => {
                // A connection that breaks, or a peer that dies, leaves a part of what was on its way.
                let left = bytes.clone();
                let (faults, untouched) = (&self.rank.plan.faults, left.iter().all(|b| *b == 0xa5));
                assert!(untouched || faults.are_some(), "a receive was withdrawn, and something came");
                let done = self.recv(index, number, len);
                assert!(bytes == left, "a receive was withdrawn, and something came afterwards");
                done
            }
            other => {
                self.note("irecv_wait", irecv_wait(COMM_WORLD, peer, index))?;
                other?;
                self.from(index, number, len).check(&bytes);
                Some(())
            }
        }
    }

    /// Whichever index the peer sends on. It goes on when that is received: its next message might be taken for this one.
    fn any_index(&self, lot: &mut Lot, own: &mut Lot, number: u64) -> Option<()> {
        let (index, len) = (lot.below(INDICES as u64) as i32, lot.one_of(&LENGTHS));
        if lot.once_in(2) == (self.rank.me < self.peer) {
            self.send(index, number, len)?;
            return self.recv(index, number, 0);
        }
        let (peer, mut bytes) = (self.peer as i32, vec![0xa5; len]);
        let done = match own.once_in(2) {
            true => recv(COMM_WORLD, layout_mut(&mut bytes), peer, TAG_ANY),
            false => irecv(COMM_WORLD, layout_mut(&mut bytes), peer, TAG_ANY)
                .and_then(|()| irecv_wait(COMM_WORLD, peer, TAG_ANY)),
        };
        self.note("recv of any index", done)?;
        let of = self.note("received", received(COMM_WORLD, peer, TAG_ANY))?;
        assert_eq!((of.index, of.len), (index, len), "rank {} from rank {peer}", self.rank.me);
        self.from(index, number, len).check(&bytes);
        self.send(index, number, 0)
    }
}

pub(super) fn layout_mut(bytes: &mut [u8]) -> Layout {
    // SAFETY: as above.
    unsafe { Layout::bytes(bytes.as_mut_ptr(), bytes.len()) }
}

/// Rounds with one peer after the other: each rank draws the same pairs and the same messages.
fn program(rank: &Rank) {
    let plan = &rank.plan;
    let (mut lot, mut own) = (Lot::new(plan.seed ^ 0xabc), Lot::new(plan.seed ^ u64::from(rank.me + 1) << 40));
    let mut over = vec![false; plan.ranks as usize];
    for round in 0..plan.rounds {
        if plan.places == [1, 1] && own.once_in(2) {
            crate::base::thread::sleep(Duration::from_millis(own.one_of(&[1, 30, 200, 2000])));
        }
        let a = lot.below(u64::from(plan.ranks)) as u32;
        let b = (a + 1 + lot.below(u64::from(plan.ranks) - 1) as u32) % plan.ranks;
        let (mut lot, number) = (Lot::new(lot.draw()), round << 8);
        let peer = if a == rank.me { b } else { a };
        if a != rank.me && b != rank.me || over[peer as usize] {
            continue;
        }
        let with = With { rank, peer };
        let done = match lot.below(7) {
            0 => with.in_turn(&mut lot, number),
            1 => with.window(&mut lot, &mut own, number),
            2 => with.late(&mut lot, number),
            3 => with.stream(&mut lot, number),
            4 => with.exchange(&mut lot, number),
            5 => with.withdrawn(&mut lot, &mut own, number),
            _ => with.any_index(&mut lot, &mut own, number),
        };
        over[peer as usize] = done.is_none();
        // Who was given up lives, and waits for what is not said to it any more: maybe all others with it.
        if done.is_none() && plan.faults.stops.is_some() {
            return rank.gives_up();
        }
    }
}

/// Each sends all others what they receive much later, in an order of their own.
fn all_lie_about(rank: &Rank) {
    let plan = &rank.plan;
    let mut own = Lot::new(plan.seed ^ u64::from(rank.me + 1) << 40);
    let mut over = vec![false; plan.ranks as usize];
    let sleep = |own: &mut Lot| crate::base::thread::sleep(Duration::from_millis(own.one_of(&[1, 30, 400, 4000])));
    for round in 0..plan.rounds {
        for sends in [true, false] {
            let mut others: Vec<u32> = (0..plan.ranks).filter(|peer| *peer != rank.me).collect();
            while !others.is_empty() {
                let peer = others.swap_remove(own.below(others.len() as u64) as usize);
                if over[peer as usize] {
                    continue;
                }
                let (with, pair) = (With { rank, peer }, if sends { (rank.me, peer) } else { (peer, rank.me) });
                // What goes from one to the other in this round both know.
                let mut lot = Lot::new(plan.seed ^ round << 32 ^ u64::from(pair.0) << 8 ^ u64::from(pair.1));
                let does = if sends { With::send } else { With::recv };
                let all: Vec<(i32, usize)> =
                    (0..lot.below(5)).map(|_| (lot.below(INDICES as u64) as i32, lot.one_of(&SHORT))).collect();
                let mut all = all.into_iter().zip(round << 8..);
                over[peer as usize] = all.try_for_each(|((index, len), n)| does(&with, index, n, len)).is_none();
            }
            sleep(&mut own);
        }
    }
}

/// What nobody receives for long is there when it is received, whoever was packed meanwhile; some are.
fn all_come_late(seed: u64) {
    let [_, packed] = all_is_well(Plan::of_late(seed), all_lie_about);
    PACKED.fetch_add(packed, Ordering::Relaxed);
}

/// Peers that were packed, of all runs of this process.
static PACKED: AtomicU64 = AtomicU64::new(0);

/// The same, and whoever has to do with a rank that dies hears of it.
fn one_dies_late(seed: u64) {
    the_fault_is_named(Plan::of_late(seed).in_which_one_dies(), all_lie_about);
}

/// All bytes come, in order, whatever places there are and whatever becomes of datagrams.
fn all_come(seed: u64) {
    _ = all_is_well(Plan::of(seed), program);
}

/// The same among ranks that forget each other; which they do.
fn all_come_anew(seed: u64) {
    let [forgotten, _] = all_is_well(Plan::of_forgetful(seed), program);
    assert!(forgotten > 0, "nobody has been forgotten");
}

/// Who has to do with a rank that dies hears of it, and nobody else does.
fn one_dies(seed: u64) {
    the_fault_is_named(Plan::with_a_death(seed), program);
}

/// A connection that breaks is told to those who use it.
fn one_breaks(seed: u64) {
    the_fault_is_named(Plan::with_breaks(seed), program);
}

/// A rank that is stopped is waited for, or told of; when it goes on, it does so with those that have waited.
fn one_stops(seed: u64) {
    the_fault_is_named(Plan::with_a_stop(seed), program);
}

/// The same seed gives the same run.
fn twice(seed: u64) {
    let [one, other] = [(); 2].map(|()| play(Plan::of(seed), program).1);
    assert_eq!(one, other, "seed {seed}");
}

/// Scenes by which it is noticed that a rule is left out.
const NOTICED_BY: [LeftOut; 11] = [
    (Rule::LandingIsFree, "landing_is_free", all_come),
    (Rule::PartIsFree, "part_is_free", all_come),
    (Rule::WholeLanding, "whole_landing", all_come),
    (Rule::ReadToTheEnd, "read_to_the_end", all_come),
    (Rule::OwedIsPaid, "owed_is_paid", all_come),
    (Rule::AsksBeforeTakingBack, "asks_before_taking_back", all_come),
    (Rule::WholeQueue, "whole_queue", all_come),
    (Rule::SaysThatItPuts, "says_that_it_puts", all_come),
    (Rule::WholePosting, "whole_posting", all_come),
    (Rule::Announced, "announced", all_come),
    (Rule::Lives, "lives", all_come_anew),
];

mod runs {
    use crate::fabric::network::simulated::batches::{batch, noticed, some};

    #[test]
    fn messages_come() {
        batch("messages_come", 10, super::all_come);
    }
    #[test]
    fn messages_come_anew() {
        batch("messages_come_anew", 20, super::all_come_anew);
    }
    #[test]
    fn messages_come_late() {
        batch("messages_come_late", 20, super::all_come_late);
    }
    #[test]
    fn peers_are_packed() {
        (1..=5).for_each(super::all_come_late);
        let packed = super::PACKED.load(super::Ordering::Relaxed);
        assert!(packed > 10, "{packed} peers were packed");
    }
    #[test]
    fn messages_late_amid_a_death() {
        batch("messages_late_amid_a_death", 10, super::one_dies_late);
    }
    #[test]
    fn messages_amid_a_death() {
        batch("messages_amid_a_death", 10, super::one_dies);
    }
    #[test]
    fn messages_amid_breaks() {
        batch("messages_amid_breaks", 10, super::one_breaks);
    }
    #[test]
    fn messages_amid_a_stop() {
        batch("messages_amid_a_stop", 10, super::one_stops);
    }
    #[test]
    fn messages_again() {
        batch("messages_again", 3, super::twice);
    }
    #[test]
    fn rules_of_messages() {
        noticed("rules_of_messages", 500, some(&super::NOTICED_BY, 3));
    }
}
