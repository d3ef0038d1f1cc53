//! What more than two ranks do: messages of any source, collective calls, communicators that are made and freed and made again in the same
//! memory. All bytes are checked.

use super::messages::{Message, layout, layout_mut};
use super::{Plan, Rank, all_is_well, play, the_fault_is_named};
use crate::base::bytes::{Bytes, Room};
use crate::base::kernel::{self, Operation};
use crate::base::rules::Rule;
use crate::base::run::Run;
use crate::base::simulation::{Lot, pause};
use crate::base::unused::Unused;
use crate::coll::{self, Ask, Elements, Function, Kind, Sides, Ticket};
use crate::comm::{comm_dup, comm_free, comm_split};
use crate::fabric::network::simulated::batches::LeftOut;
use crate::p2p::any_source::{
    irecv_any, irecv_any_test, irecv_any_wait, isend_any, isend_any_test, isend_any_wait, recv_any, send_any,
};
use crate::p2p::{COMM_WORLD, irecv, irecv_wait, recv, send};

/// Indices of any source.
const INDICES: u64 = 3;
/// Lengths around which the ways of any source change.
const LENGTHS: [usize; 9] = [0, 8, 100, 256, 1000, 4096, 5000, 20_000, 60_000];
/// Elements of a vector.
const ELEMENTS: [usize; 7] = [0, 1, 13, 256, 1025, 5000, 20_000];
/// Bytes of a block.
const BLOCKS: [usize; 6] = [0, 1, 64, 1000, 4097, 20_000];

/// A communicator, as all its members know it.
#[derive(Clone, Debug)]
struct Members {
    comm: i32,
    /// What tells it from others at all of them.
    id: u64,
    /// Ranks of the world, in its order.
    ranks: Vec<u32>,
    /// This rank's place among them.
    me: usize,
    /// The messages of any source so far: by receiver, index and sender.
    sent: Vec<u64>,
}

impl Members {
    fn new(comm: i32, id: u64, ranks: Vec<u32>, me: u32) -> Members {
        let me = ranks.iter().position(|r| *r == me).expect("a member");
        let sent = vec![0; ranks.len() * ranks.len() * INDICES as usize];
        Members { comm, id, ranks, me, sent }
    }
    fn count(&mut self, receiver: usize, index: i32, sender: usize) -> &mut u64 {
        let n = self.ranks.len();
        &mut self.sent[(receiver * INDICES as usize + index as usize) * n + sender]
    }
    /// The next message of any source from one to another.
    fn next(&mut self, receiver: usize, index: i32, sender: usize) -> Message {
        let count = self.count(receiver, index, sender);
        *count += 1;
        let number = *count | self.id << 16;
        let (from, to) = (self.ranks[sender], self.ranks[receiver]);
        let len = Lot::new(number ^ u64::from(from) << 40 ^ u64::from(to) << 48).one_of(&LENGTHS);
        Message { from, to, index, number, len }
    }
}

/// The bytes of a block that a rank gives another in a call.
fn block(call: u64, from: usize, to: usize, len: usize) -> Vec<u8> {
    Message { from: from as u32, to: to as u32, index: 7, number: call, len }.bytes()
}

/// The vector of a rank in a call.
fn vector(call: u64, rank: usize, n: usize) -> Vec<i32> {
    block(call, rank, 0, 4 * n).chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().expect("four bytes"))).collect()
}

/// The sum of the vectors of the first ranks.
fn sum(call: u64, ranks: usize, n: usize) -> Vec<i32> {
    let add = |a: Vec<i32>, b: Vec<i32>| a.iter().zip(b).map(|(a, b)| a.wrapping_add(b)).collect();
    (0..ranks).map(|rank| vector(call, rank, n)).reduce(add).unwrap_or_default()
}

struct With<'a> {
    rank: &'a Rank,
    all: Members,
    own: Lot,
}

impl With<'_> {
    /// What fails may be for any member.
    fn note<T>(&self, call: &'static str, done: crate::Result<T>) -> Option<T> {
        self.rank.note(None, call, done)
    }
    fn me(&self) -> usize {
        self.all.me
    }
    fn n(&self) -> usize {
        self.all.ranks.len()
    }
    /// Completes what was begun, now and then by tests.
    fn complete(
        &mut self,
        test: impl Fn() -> crate::Result<bool>,
        wait: impl Fn() -> crate::Result<()>,
    ) -> crate::Result<()> {
        for _ in 0..self.own.below(20) {
            if test()? {
                return Ok(());
            }
            pause();
        }
        wait()
    }

    /// All send to one, who takes what comes: also what belongs to a later round. Where sends wait for their receives, who has taken that might
    /// go on without those of this one, and wait for who waits for it: so nobody runs ahead then.
    fn any_source(&mut self, lot: &mut Lot) -> Option<()> {
        if self.rank.plan.timeout_ms < 0 {
            self.note("barrier", coll::barrier(self.all.comm))?;
        }
        let (receiver, index) = (lot.below(self.n() as u64) as usize, lot.below(INDICES) as i32);
        let counts: Vec<u64> = (0..self.n()).map(|rank| if rank == receiver { 0 } else { lot.below(6) }).collect();
        let comm = self.all.comm;
        if self.me() != receiver {
            for _ in 0..counts[self.me()] {
                let me = self.me();
                let bytes = self.all.next(receiver, index, me).bytes();
                let to = receiver as i32;
                // SAFETY: readable until the call or the request is over.
                let data = unsafe { Run::new(bytes.as_ptr().cast_mut(), bytes.len()) };
                let done = match self.own.once_in(2) {
                    true => send_any(comm, data, to, index),
                    false => isend_any(comm, data, to, index).and_then(|()| {
                        self.complete(|| isend_any_test(comm, to, index), || isend_any_wait(comm, to, index))
                    }),
                };
                self.note("send_any", done)?;
            }
            return Some(());
        }
        for _ in 0..counts.iter().sum() {
            let mut bytes = vec![0xa5u8; *LENGTHS.iter().max().expect("some")];
            // SAFETY: writable until the call or the request is over.
            let to = unsafe { Run::new(bytes.as_mut_ptr(), bytes.len()) };
            let arrived = match self.own.once_in(2) {
                true => recv_any(comm, to, index),
                false => irecv_any(comm, to, index).and_then(|()| {
                    for _ in 0..self.own.below(20) {
                        if let Some(arrived) = irecv_any_test(comm, index)? {
                            return Ok(arrived);
                        }
                        pause();
                    }
                    irecv_any_wait(comm, index)
                }),
            };
            let arrived = self.note("recv_any", arrived)?;
            let message = self.all.next(receiver, index, arrived.source as usize);
            message.check(&bytes[..arrived.len]);
        }
        Some(())
    }

    fn barrier(&mut self, lot: &mut Lot) -> Option<()> {
        let comm = self.all.comm;
        let done = match lot.once_in(2) {
            true => coll::barrier(comm),
            false => coll::begin(comm, Ask::Barrier)
                .and_then(|()| self.complete(|| coll::test(comm, Kind::Barrier), || coll::wait(comm, Kind::Barrier))),
        };
        self.note("barrier", done)
    }

    fn bcast(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        let (comm, root, len) = (self.all.comm, lot.below(self.n() as u64) as usize, lot.one_of(&BLOCKS));
        let sent = block(call, root, 0, len);
        let mut bytes = if self.me() == root { sent.clone() } else { vec![0; len] };
        // SAFETY: the bytes are there until the call is over.
        let data = unsafe { Room::new(bytes.as_mut_ptr(), len) };
        let done = match lot.once_in(2) {
            true => coll::bcast(comm, data, len, root as i32),
            false => coll::begin(comm, Ask::Bcast(data, len, root as i32))
                .and_then(|()| self.complete(|| coll::test(comm, Kind::Bcast), || coll::wait(comm, Kind::Bcast))),
        };
        self.note("bcast", done)?;
        assert!(bytes == sent, "rank {}: a broadcast of {len} bytes from {root}", self.rank.me);
        Some(())
    }

    fn reduce(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        let (comm, n, f) =
            (self.all.comm, lot.one_of(&ELEMENTS), Function::predefined(kernel::Kind::i, Operation::sum));
        let (root, which) = (lot.below(self.n() as u64) as usize, lot.below(4));
        let mut mine = vector(call, self.me(), n);
        // SAFETY: the vector is there until the call is over.
        let (data, count) = (unsafe { Room::new(mine.as_mut_ptr().cast(), size_of_val(&mine[..])) }, n as i32);
        let done = match which {
            0 => coll::reduce(comm, data, count, &f, root as i32),
            1 => coll::allreduce(comm, data, count, &f),
            2 => coll::scan(comm, data, count, &f),
            _ => coll::begin(comm, Ask::Allreduce(Elements { data, count, f })).and_then(|()| {
                self.complete(|| coll::test(comm, Kind::Allreduce), || coll::wait(comm, Kind::Allreduce))
            }),
        };
        self.note("a reduction", done)?;
        let expected = match which {
            0 if self.me() != root => vector(call, self.me(), n),
            2 => sum(call, self.me() + 1, n),
            _ => sum(call, self.n(), n),
        };
        assert!(mine == expected, "rank {}: reduction {which} of {n} elements", self.rank.me);
        Some(())
    }

    fn exchange(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        let (comm, n, me, len) = (self.all.comm, self.n(), self.me(), lot.one_of(&BLOCKS));
        let (root, which) = (lot.below(n as u64) as usize, lot.below(4));
        let of_all = |f: &dyn Fn(usize) -> Vec<u8>| (0..n).flat_map(f).collect::<Vec<u8>>();
        let gives = match which {
            0 | 1 => block(call, me, 0, len),
            2 if me != root => Vec::new(),
            2 => of_all(&|to| block(call, root, to, len)),
            _ => of_all(&|to| block(call, me, to, len)),
        };
        let expected = match which {
            0 if me != root => Vec::new(),
            0 | 1 => of_all(&|from| block(call, from, 0, len)),
            2 => block(call, root, me, len),
            _ => of_all(&|from| block(call, from, me, len)),
        };
        let mut takes = vec![0u8; expected.len()];
        let (give, take) = (Bytes::of(&gives), Room::of(&mut takes));
        let done = match which {
            0 => coll::gather(comm, give, len, take, root as i32),
            1 => coll::allgather(comm, give, len, take),
            2 => coll::scatter(comm, give, len, take, root as i32),
            _ => coll::alltoall(comm, give, len, take),
        };
        self.note("an exchange", done)?;
        assert!(takes == expected, "rank {me} of {n}: exchange {which} of {len} bytes",);
        Some(())
    }

    /// Some calls that are under way at a time, completed in an order of this rank's own.
    fn several(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        let (comm, n, me) = (self.all.comm, self.n(), self.me());
        let mut open: Vec<(Ticket, [Vec<u8>; 3], String)> = Vec::new();
        for k in 0..1 + lot.below(12) {
            let (root, which, len, call) =
                (lot.below(n as u64) as usize, lot.below(5), lot.one_of(&BLOCKS), call | k << 32);
            let of_all = |f: &dyn Fn(usize) -> Vec<u8>| (0..n).flat_map(f).collect::<Vec<u8>>();
            let ints = |v: Vec<i32>| v.into_iter().flat_map(i32::to_ne_bytes).collect::<Vec<u8>>();
            let (give, mut take, expected) = match which {
                0 => (vec![], vec![], vec![]),
                1 => {
                    let sent = block(call, root, 0, len);
                    (vec![], if me == root { sent.clone() } else { vec![0; len] }, sent)
                }
                2 => (vec![], ints(vector(call, me, len / 4)), ints(sum(call, n, len / 4))),
                3 if me != root => (block(call, me, 0, len), vec![], vec![]),
                3 => (block(call, me, 0, len), vec![0; n * len], of_all(&|from| block(call, from, 0, len))),
                _ => {
                    let all = of_all(&|from| block(call, from, me, len));
                    (of_all(&|to| block(call, me, to, len)), vec![0; n * len], all)
                }
            };
            // SAFETY: the bytes stay where they are until the call is over; if one fails, until the end of the program.
            let (from, data) =
                unsafe { (Bytes::new(give.as_ptr(), give.len()), Room::new(take.as_mut_ptr(), take.len())) };
            let (sides, root) = (Sides { give: from, size: len, take: data }, root as i32);
            let begun = coll::begin_apart(
                comm,
                match which {
                    0 => Ask::Barrier,
                    1 => Ask::Bcast(data, len, root),
                    2 => Ask::Allreduce(Elements {
                        data,
                        count: (len / 4) as i32,
                        f: Function::predefined(kernel::Kind::i, Operation::sum),
                    }),
                    3 => Ask::Gather(sides, root),
                    _ => Ask::Alltoall(sides),
                },
            );
            match begun {
                Ok(ticket) => open.push((
                    ticket,
                    [give, take, expected],
                    format!("call {k}, {which} of {len} bytes, root {root}"),
                )),
                Err(error) => {
                    // All that are under way end, too.
                    self.note::<()>("one of several calls", Err(error));
                    open.iter().for_each(|(ticket, ..)| _ = ticket.wait());
                    return None;
                }
            }
        }
        let mut ended = Some(());
        while !open.is_empty() {
            let (ticket, [_given, took, expected], what) = open.swap_remove(self.own.below(open.len() as u64) as usize);
            let done = self.complete(|| ticket.test(), || ticket.wait());
            match self.note("one of several calls", done) {
                Some(()) => assert!(took == expected, "rank {me} of {n}: {what}"),
                None => ended = None,
            }
        }
        ended
    }

    /// Each sends to the next one.
    fn ring(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        let (comm, n, me, index) = (self.all.comm, self.n(), self.me(), lot.below(INDICES) as i32);
        let len = lot.one_of(&LENGTHS);
        if n == 1 {
            return Some(());
        }
        let (to, from) = ((me + 1) % n, (me + n - 1) % n);
        let (out, mut inn) = (block(call, me, to, len), vec![0u8; len]);
        let begun = irecv(comm, layout_mut(&mut inn), from as i32, index);
        self.note("irecv", begun)?;
        let sent = send(comm, layout(&out), to as i32, index);
        let came = irecv_wait(comm, from as i32, index);
        self.note("send", sent)?;
        self.note("irecv_wait", came)?;
        assert!(inn == block(call, from, me, len), "rank {}: {len} bytes round a ring", self.rank.me);
        Some(())
    }

    /// Each says a word to each: of who is not known no death is heard.
    fn meet(&mut self) -> Option<()> {
        for (from, to) in (0..self.n()).flat_map(|to| (0..to).map(move |from| (from, to))) {
            let nothing = || layout(&[]);
            let said = match self.me() {
                me if me == from => send(COMM_WORLD, nothing(), to as i32, 0),
                me if me == to => recv(COMM_WORLD, nothing(), from as i32, 0),
                _ => Ok(()),
            };
            self.note("first words", said)?;
        }
        Some(())
    }

    /// Something that all members do.
    fn step(&mut self, lot: &mut Lot, call: u64) -> Option<()> {
        match lot.below(9) {
            0 | 1 => self.any_source(lot),
            2 => self.barrier(lot),
            3 => self.bcast(lot, call),
            4 => self.reduce(lot, call),
            5 => self.exchange(lot, call),
            6 | 7 => self.several(lot, call),
            _ => self.ring(lot, call),
        }
    }
}

/// Gives up at the first error.
fn run(rank: &Rank) -> Option<()> {
    let plan = &rank.plan;
    let mut lot = Lot::new(plan.seed ^ 0xdef);
    let own = Lot::new(plan.seed ^ u64::from(rank.me + 1) << 40);
    let mut world = With { rank, all: Members::new(COMM_WORLD, 0, (0..plan.ranks).collect(), rank.me), own };
    if plan.faults.are_some() {
        world.meet()?;
    }
    for round in 0..plan.rounds {
        let mut lot = Lot::new(lot.draw());
        if !lot.once_in(3) {
            world.step(&mut lot, round << 8)?;
            continue;
        }
        // Some of the ranks, in an order of their own.
        let orders: Vec<u64> = (0..plan.ranks).map(|_| lot.below(3)).collect();
        let colours: Vec<i32> = (0..plan.ranks).map(|_| lot.below(3) as i32 - 1).collect();
        let (me, whole) = (rank.me as usize, lot.once_in(3));
        let (comm, ranks) = match whole {
            true => (world.note("comm_dup", comm_dup(COMM_WORLD))?, (0..plan.ranks).collect()),
            false => {
                let made = comm_split(COMM_WORLD, colours[me], orders[me] as i32);
                let mut ranks: Vec<u32> = (0..plan.ranks).filter(|r| colours[*r as usize] == colours[me]).collect();
                ranks.sort_by_key(|r| (orders[*r as usize], *r));
                match world.note("comm_split", made)? {
                    Some(comm) => (comm, ranks),
                    None => continue,
                }
            }
        };
        // Calls are numbered alike by the members, who are of one colour.
        let mut lot = Lot::new(lot.draw() ^ if whole { 9 } else { colours[me] as u64 });
        let mut with =
            With { rank, all: Members::new(comm, round + 1, ranks, rank.me), own: Lot::new(world.own.draw()) };
        for step in 0..1 + lot.below(3) {
            with.step(&mut lot, (round << 8) | (step + 1))?;
        }
        // SAFETY: nothing of it is under way.
        let freed = comm_free(comm, unsafe { Unused::promised() });
        world.note("comm_free", freed)?;
    }
    Some(())
}

fn program(rank: &Rank) {
    if run(rank).is_none() {
        rank.gives_up();
    }
}

fn all_comes(seed: u64) {
    all_is_well(Plan::of(seed).for_all(), program);
}

fn one_dies(seed: u64) {
    the_fault_is_named(Plan::with_a_death(seed).for_all(), program);
}

fn one_breaks(seed: u64) {
    the_fault_is_named(Plan::with_breaks(seed).for_all(), program);
}

fn one_stops(seed: u64) {
    the_fault_is_named(Plan::with_a_stop(seed).for_all(), program);
}

fn twice(seed: u64) {
    let [one, other] = [(); 2].map(|()| play(Plan::of(seed).for_all(), program).1);
    assert_eq!(one, other, "seed {seed}");
}

/// Scenes by which it is noticed that a rule is left out.
const NOTICED_BY: [LeftOut; 5] = [
    (Rule::WholeSlot, "whole_slot", all_comes),
    (Rule::ThreadTakesIn, "thread_takes_in", all_comes),
    (Rule::SlotIsFree, "slot_is_free", all_comes),
    (Rule::TicketOnce, "ticket_once", all_comes),
    (Rule::TellsWhatIsTaken, "tells_what_is_taken", all_comes),
];

mod runs {
    use crate::fabric::network::simulated::batches::{batch, noticed, some};

    #[test]
    fn calls_of_all() {
        batch("calls_of_all", 10, super::all_comes);
    }
    #[test]
    fn deaths_amid_calls_of_all() {
        batch("deaths_amid_calls_of_all", 10, super::one_dies);
    }
    #[test]
    fn breaks_amid_calls_of_all() {
        batch("breaks_amid_calls_of_all", 10, super::one_breaks);
    }
    #[test]
    fn a_stop_amid_calls_of_all() {
        batch("a_stop_amid_calls_of_all", 10, super::one_stops);
    }
    #[test]
    fn repeated_calls_of_all() {
        batch("repeated_calls_of_all", 3, super::twice);
    }
    #[test]
    fn rules_of_any_source() {
        noticed("rules_of_any_source", 500, some(&super::NOTICED_BY, 1));
    }
}
