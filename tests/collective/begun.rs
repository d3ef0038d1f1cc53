//! Calls that do not wait: one of a communicator at a time, and several, which end in any order, beside calls that wait. For the random
//! programs, and scenes of their own: they are under way together indeed, there is a bound, nothing hangs that is left over.

use std::ptr::null_mut;

use fmpl::ffi::c::*;

use crate::random::{Kind, Memory, same, whole_numbers};
use crate::ranks::bytes::{Draw, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, said};

const NAMES: [&str; 8] =
    ["ibarrier", "ibcast", "ireduce", "iallreduce", "igather", "iallgather", "iscatter", "ialltoall"];
/// The kinds of requests, in the order of the names.
const REQUESTS: [i32; 8] = [
    FMPL_REQUEST_BARRIER,
    FMPL_REQUEST_BCAST,
    FMPL_REQUEST_REDUCE,
    FMPL_REQUEST_ALLREDUCE,
    FMPL_REQUEST_GATHER,
    FMPL_REQUEST_ALLGATHER,
    FMPL_REQUEST_SCATTER,
    FMPL_REQUEST_ALLTOALL,
];

/// A call that all ranks make: which, how long, from or to whom, of what.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    which: usize,
    number: u64,
    root: i32,
    kind: Kind,
    bytes: usize,
}

/// A call under way, with its memory and what is to become of it.
struct Open {
    drawn: Drawn,
    /// 0: the one without a ticket.
    ticket: u64,
    give: Memory,
    take: Memory,
    want: Vec<u8>,
}

impl Drawn {
    /// The bytes that this rank gives, what is in its room before, and in the end.
    fn memory(&self) -> [Vec<u8>; 3] {
        let Drawn { which, number, root, kind, bytes } = *self;
        let (me, n) = (rank() as usize, size() as usize);
        let (count, each, is_root) = (bytes / kind.bytes(), bytes / n, me == root as usize);
        let block = |from: usize, to: usize| message(each, number ^ (from * 1000 + to) as u64);
        let of_all = |f: &dyn Fn(usize) -> Vec<u8>| (0..n).flat_map(f).collect::<Vec<u8>>();
        let room = |want: Vec<u8>| (vec![0x77; want.len()], want);
        let (give, (take, want)) = match which {
            0 => (vec![], (vec![], vec![])),
            1 => {
                let sent = message(bytes, number);
                (vec![], if is_root { (sent.clone(), sent) } else { room(sent) })
            }
            2 | 3 => {
                let mine = kind.vector(count, number, me as i32);
                let all = if which == 3 || is_root { kind.reference(count, number, n as i32) } else { mine.clone() };
                (vec![], (mine, all))
            }
            4 | 5 => (block(me, 0), room(if which == 5 || is_root { of_all(&|from| block(from, 0)) } else { vec![] })),
            6 => {
                let all = if is_root { of_all(&|to| block(root as usize, to)) } else { vec![] };
                (all, room(block(root as usize, me)))
            }
            _ => (of_all(&|to| block(me, to)), room(of_all(&|from| block(from, me)))),
        };
        [give, take, want]
    }

    /// Begins it; `apart`: with a ticket.
    fn begins(self, apart: bool, own: &mut Draw) -> Open {
        let [give, take, want] = self.memory();
        let mut open =
            Open { drawn: self, ticket: 0, give: Memory::new(&give, own), take: Memory::new(&take, own), want };
        let code = self.try_begin(apart, open.give.bytes().as_ptr(), open.take.bytes().as_mut_ptr(), &mut open.ticket);
        ok(code);
        assert_eq!(open.ticket != 0, apart);
        open
    }

    fn try_begin(self, apart: bool, give: *const u8, take: *mut u8, ticket: &mut u64) -> i32 {
        let Drawn { which, root, kind, bytes, .. } = self;
        let (count, each) = ((bytes / kind.bytes()) as i32, bytes / size() as usize);
        let (g, p, f, t, c) = (give.cast(), take.cast(), kind.function(), ticket, comm());
        // SAFETY: the buffers are as long as the calls want them, and stay until these are completed.
        unsafe {
            match (which, apart) {
                (0, false) => fmpl_ibarrier(c),
                (0, true) => fmpl_ibarrier_n(c, t.into()),
                (1, false) => fmpl_ibcast(p, bytes, root, c),
                (1, true) => fmpl_ibcast_n(p, bytes, root, c, t.into()),
                (2, false) => fmpl_ireduce(p, count, f, root, c, null_mut()),
                (2, true) => fmpl_ireduce_n(p, count, f, root, c, t.into()),
                (3, false) => fmpl_iallreduce(p, count, f, c, null_mut()),
                (3, true) => fmpl_iallreduce_n(p, count, f, c, t.into()),
                (4, false) => fmpl_igather(g, each, p, root, c),
                (4, true) => fmpl_igather_n(g, each, p, root, c, t.into()),
                (5, false) => fmpl_iallgather(g, each, p, c),
                (5, true) => fmpl_iallgather_n(g, each, p, c, t.into()),
                (6, false) => fmpl_iscatter(g, each, p, root, c),
                (6, true) => fmpl_iscatter_n(g, each, p, root, c, t.into()),
                (_, false) => fmpl_ialltoall(g, each, p, c),
                (_, true) => fmpl_ialltoall_n(g, each, p, c, t.into()),
            }
        }
    }
}

impl Open {
    fn wait(&self) -> i32 {
        let c = comm();
        if self.ticket != 0 {
            return fmpl_coll_wait(self.ticket);
        }
        match self.drawn.which {
            0 => fmpl_ibarrier_wait(c),
            1 => fmpl_ibcast_wait(c),
            2 => fmpl_ireduce_wait(c),
            3 => fmpl_iallreduce_wait(c),
            4 => fmpl_igather_wait(c),
            5 => fmpl_iallgather_wait(c),
            6 => fmpl_iscatter_wait(c),
            _ => fmpl_ialltoall_wait(c),
        }
    }

    fn test(&self, done: &mut i32) -> i32 {
        let c = comm();
        if self.ticket != 0 {
            return fmpl_coll_test(self.ticket, done.into());
        }
        match self.drawn.which {
            0 => fmpl_ibarrier_test(c, done.into()),
            1 => fmpl_ibcast_test(c, done.into()),
            2 => fmpl_ireduce_test(c, done.into()),
            3 => fmpl_iallreduce_test(c, done.into()),
            4 => fmpl_igather_test(c, done.into()),
            5 => fmpl_iallgather_test(c, done.into()),
            6 => fmpl_iscatter_test(c, done.into()),
            _ => fmpl_ialltoall_test(c, done.into()),
        }
    }

    fn request(&self) -> fmpl_request {
        let Open { drawn, ticket, .. } = self;
        fmpl_request { kind: REQUESTS[drawn.which], peer: -1, index: -1, comm: comm(), ticket: *ticket }
    }

    fn check(&mut self, text: &str) {
        let what = format!("{text}: {} {:?}", NAMES[self.drawn.which], self.drawn);
        same(self.take.bytes(), &self.want, &what);
    }
}

/// Waits for it, or tests until it is over.
fn complete(open: &Open, wait: bool) {
    let mut done = 0;
    if wait {
        return ok(open.wait());
    }
    while done == 0 {
        ok(open.test(&mut done));
        std::thread::yield_now();
    }
}

/// One call, alone or with a ticket: completed by a wait, by tests, or while messages go to and fro.
pub fn one(number: u64, root: i32, kind: Kind, bytes: usize, own: &mut Draw, text: &str) {
    let (me, ranks) = (rank(), size());
    let mut open = Drawn { which: (number >> 40) as usize % 8, number, root, kind, bytes }.begins(false, own);
    fails(fmpl_barrier(comm()), BUSY);
    if number.is_multiple_of(3) && ranks > 1 {
        // The ranks wait for each other while the call is under way.
        let (to, from) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        let mut got = [0u8; 8];
        isend(&number.to_le_bytes(), to, 0);
        recv(&mut got, from, 0);
        isend_wait(to, 0);
        assert_eq!(u64::from_le_bytes(got), number, "{text}");
    }
    complete(&open, own.one_in(2));
    open.check(text);
}

/// Several calls under way, one of them perhaps without a ticket, and calls that wait in between; each rank completes them in an order of its
/// own, one by one or by the calls for several requests.
pub fn several(number: u64, root: i32, kind: Kind, bytes: usize, own: &mut Draw, text: &str) {
    // A tree combines them: these must be associative.
    let kind = if matches!(kind, Kind::DoubleSum | Kind::Large) && !whole_numbers() { Kind::Product } else { kind };
    let mut draw = Draw(number);
    let ranks = size() as usize;
    let mut open: Vec<Open> = Vec::new();
    let mut single = false;
    for k in 0..1 + draw.below(20) as u64 {
        let (number, which) = (draw.number(), draw.below(8));
        let bytes = if draw.one_in(3) { bytes } else { draw.below(bytes.min(600) + 1) };
        let drawn = Drawn { which, number, root: (root + k as i32) % ranks as i32, kind, bytes };
        let alone = draw.one_in(12) && !single;
        single |= alone;
        open.push(drawn.begins(!alone, own));
        if draw.one_in(6) && !single {
            // Another call of all ranks, which waits, unless one of those without a ticket may be under way somewhere.
            let mut sum = [1i32];
            // SAFETY: one element.
            ok(unsafe { fmpl_allreduce(sum.as_mut_ptr().cast(), 1, Some(fmpl_isum), comm(), null_mut()) });
            assert_eq!(sum, [ranks as i32], "{text}");
        }
        if own.one_in(5) {
            // All have begun it, or will before they wait for one that comes later.
            let mut one = open.swap_remove(own.below(open.len()));
            complete(&one, own.one_in(2));
            one.check(text);
        }
    }
    while !open.is_empty() {
        let mut requests: Vec<fmpl_request> = open.iter().map(Open::request).collect();
        let n = requests.len() as i32;
        let mut which = -1;
        // SAFETY: so many requests.
        unsafe {
            match own.below(4) {
                0 => ok(fmpl_waitall(requests.as_mut_ptr(), n, null_mut())),
                1 => {
                    ok(fmpl_waitany(requests.as_mut_ptr(), n, (&mut which).into()));
                    assert_eq!(requests[which as usize].kind, FMPL_REQUEST_NONE, "{text}");
                }
                2 => ok(fmpl_testall(requests.as_mut_ptr(), n, (&mut which).into(), null_mut())),
                _ => {
                    let at = own.below(open.len());
                    complete(&open[at], own.one_in(2));
                    requests[at].kind = FMPL_REQUEST_NONE;
                }
            }
        }
        for at in (0..requests.len()).rev().filter(|at| requests[*at].kind == FMPL_REQUEST_NONE) {
            open.swap_remove(at).check(text);
        }
    }
}

/// Begins several calls of so many bytes with tickets and completes all of them; the first code that is an error.
pub fn some(bytes: usize) -> i32 {
    let (n, mut codes, mut open) = (size(), vec![], vec![]);
    let mut memory = vec![vec![1u8; bytes * n as usize]; 20];
    for (k, memory) in memory.chunks_exact_mut(2).enumerate() {
        let [give, take] = memory else { unreachable!() };
        let drawn = Drawn { which: k % 8, number: 0, root: k as i32 % n, kind: Kind::IntSum, bytes };
        let mut ticket = 0;
        match drawn.try_begin(true, give.as_ptr(), take.as_mut_ptr(), &mut ticket) {
            0 => open.push(ticket),
            code => codes.push(code),
        }
    }
    codes.extend(open.iter().rev().map(|ticket| fmpl_coll_wait(*ticket)));
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}

pub fn scenes() {
    for settings in ["FMPL_LOG=warn", "FMPL_WAIT=block", "FMPL_CMA=off"] {
        Job::new(3, "begins several").settings(settings).seconds(60).run();
        Job::new(3, "leaves some").settings(settings).seconds(60).keep_going().run();
    }
    Job::new(3, "begins several").nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp").seconds(60).run();
    let outcome = Job::new(3, "leaves some").nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp").seconds(60).run();
    assert!((0..3).all(|rank| said(&outcome, rank).contains("well")));
}

fn barrier_n() -> u64 {
    let mut ticket = 0;
    ok(fmpl_ibarrier_n(comm(), (&mut ticket).into()));
    ticket
}

/// A call ends while an earlier one cannot: not one after the other, that is. The bound. What is wrong.
pub fn begins_several() {
    init(1);
    let me = rank();
    // SAFETY: for all calls memory that stays until they are completed.
    unsafe {
        let (mut a, mut b, mut tickets, mut done) = ([me; 1000], [me; 1000], [0u64; 2], 0);
        let mut word = [0u8];
        if me == 0 {
            // It begins nothing before another rank has ended the second call.
            recv(&mut word, 2, 0);
        }
        ok(fmpl_ibcast_n(a.as_mut_ptr().cast(), 4000, 0, WORLD, (&mut tickets[0]).into()));
        ok(fmpl_ibcast_n(b.as_mut_ptr().cast(), 4000, 1, WORLD, (&mut tickets[1]).into()));
        assert!(tickets[0] != tickets[1]);
        if me == 2 {
            ok(fmpl_coll_wait(tickets[1]));
            assert_eq!(b, [1; 1000]);
            ok(fmpl_coll_test(tickets[0], (&mut done).into()));
            assert_eq!(done, 0, "a broadcast whose root has not begun it");
            send(&[1], 0, 0);
        }
        ok(fmpl_coll_wait(tickets[0]));
        assert_eq!(a, [0; 1000]);
        fails(fmpl_coll_wait(tickets[0]), REQUEST);
        if me != 2 {
            ok(fmpl_coll_wait(tickets[1]));
            assert_eq!(b, [1; 1000]);
        }
        fails(fmpl_coll_test(tickets[1], (&mut done).into()), REQUEST);
        fails(fmpl_coll_wait(0), REQUEST);
        fails(fmpl_coll_test(tickets[1], Out::NULL), ARGUMENT);
        fails(fmpl_ibarrier_n(WORLD, Out::NULL), ARGUMENT);
        fails(fmpl_ibcast_n(a.as_mut_ptr().cast(), 4000, 3, WORLD, (&mut tickets[0]).into()), RANK);
        fails(fmpl_ibcast_n(null_mut(), 4000, 0, WORLD, (&mut tickets[0]).into()), ARGUMENT);
        fails(fmpl_iallreduce_n(a.as_mut_ptr().cast(), -1, Some(fmpl_isum), WORLD, (&mut tickets[0]).into()), ARGUMENT);
        fails(fmpl_ialltoall_n(null_mut(), 8, null_mut(), NULL, (&mut tickets[0]).into()), COMM);

        // As many as there may be, and one more; other communicators have their own.
        let other = dup(WORLD);
        let all: Vec<u64> = (0..FMPL_TICKETS).map(|_| barrier_n()).collect();
        fails(fmpl_ibarrier_n(WORLD, (&mut tickets[0]).into()), BUSY);
        assert!(last_error().contains("64 collective calls of communicator 0"), "{}", last_error());
        ok(fmpl_ibarrier_n(other, (&mut tickets[0]).into()));
        fails(try_free(&mut { other }), BUSY);
        ok(fmpl_barrier(WORLD));
        for ticket in all.iter().rev() {
            ok(fmpl_coll_wait(*ticket));
        }
        ok(fmpl_coll_wait(tickets[0]));
        free(other);
        let again = barrier_n();
        assert!(!all.contains(&again));
        ok(fmpl_coll_wait(again));
    }
    finalize();
}

/// A job ends with calls under way: that is an error, and takes no time.
pub fn leaves_some() {
    init(1);
    let mut memory = vec![0u8; 3_000_000];
    let mut tickets = [0u64; 3];
    // SAFETY: the memory stays until the job is over.
    unsafe {
        ok(fmpl_ibcast_n(memory.as_mut_ptr().cast(), 3_000_000, 0, WORLD, (&mut tickets[0]).into()));
        if rank() != 0 {
            ok(fmpl_ibarrier_n(WORLD, (&mut tickets[1]).into()));
        }
    }
    fails(try_finalize(), PENDING);
    println!("well");
}
