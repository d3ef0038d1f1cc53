//! The arena of the collective calls: cells and their use again, shares of rings, who may go on when, lines taken over, failures.
//!
//! A ring has two cells here, so the third payload finds the first one's cell. Every payload is checked, element by element; a store of
//! a reader that takes a line over is a payload's store like any other, so that one beside the writer's next use is a fault.

use std::time::Duration;

use crate::stage::bounded;
use fmpl::Code;
use fmpl::base::bytes::{Bytes, Room};
use fmpl::base::config::{AllreduceWay, BarrierWay, BcastWay, Config, ExchangeWay, ReduceWay, ScanWay};
use fmpl::base::shadow;
use fmpl::coll::model::{Group, Member, Terms, check};

fn of(members: usize) -> Terms {
    Terms { members, ..Terms::new() }
}

fn with(members: usize, set: impl FnOnce(&mut Config)) -> Terms {
    let mut terms = of(members);
    set(&mut terms.config);
    terms
}

/// Each member does `body`.
fn members(name: &str, terms: Terms, preemptions: usize, body: impl Fn(&Member) + Copy + Send + Sync + 'static) {
    let n = terms.members;
    bounded(name, preemptions, |preemptions, left: Duration| {
        check(&terms, preemptions, left, move |group: Group| {
            let all: Vec<_> = (0..n).map(|me| group.spawn(me, body)).collect();
            all.into_iter().for_each(|one| one.join().expect("a member"));
        })
    });
}

/// Element `k` of what a member gives in a round.
fn element(round: usize, member: usize, k: usize) -> i32 {
    (1000 * (round + 1) + 100 * member + k) as i32
}

fn vector(round: usize, member: usize, count: usize) -> Vec<i32> {
    (0..count).map(|k| element(round, member, k)).collect()
}

/// The sum of what the first `n` members give.
fn sum(round: usize, n: usize, count: usize) -> Vec<i32> {
    (0..count).map(|k| (0..n).map(|m| element(round, m, k)).sum()).collect()
}

fn bcast(m: &Member, round: usize, count: usize, root: usize) {
    let mut v = if m.me() == root { vector(round, root, count) } else { vec![0; count] };
    m.bcast(Room::of(&mut v), root).expect("a broadcast");
    assert_eq!(v, vector(round, root, count), "broadcast {round} by {root} at {}", m.me());
}

fn reduce(m: &Member, round: usize, n: usize, count: usize, root: usize) {
    let mut v = vector(round, m.me(), count);
    m.reduce(Room::of(&mut v), root).expect("a reduction");
    if m.me() == root {
        assert_eq!(v, sum(round, n, count), "reduction {round}");
    }
}

fn allreduce(m: &Member, round: usize, n: usize, count: usize) {
    let mut v = vector(round, m.me(), count);
    m.allreduce(Room::of(&mut v)).expect("an allreduce");
    assert_eq!(v, sum(round, n, count), "allreduce {round} at {}", m.me());
}

fn scan(m: &Member, round: usize, count: usize) {
    let mut v = vector(round, m.me(), count);
    m.scan(Room::of(&mut v)).expect("a scan");
    assert_eq!(v, sum(round, m.me() + 1, count), "scan {round} at {}", m.me());
}

fn reduce_scatter(m: &Member, round: usize, n: usize, count: usize) {
    let (give, mut take) = (vector(round, m.me(), n * count), vec![0; count]);
    m.reduce_scatter(Bytes::of(&give), Room::of(&mut take)).expect("a reduce-scatter");
    assert_eq!(take, sum(round, n, n * count)[m.me() * count..][..count], "reduce-scatter {round} at {}", m.me());
}

fn gather(m: &Member, round: usize, n: usize, count: usize, root: usize) {
    let (give, mut take) = (vector(round, m.me(), count), vec![0; n * count]);
    m.gather(Bytes::of(&give), Room::of(&mut take), root).expect("a gather");
    if m.me() == root {
        assert_eq!(take, (0..n).flat_map(|g| vector(round, g, count)).collect::<Vec<_>>(), "gather {round}");
    }
}

fn allgather(m: &Member, round: usize, n: usize, count: usize) {
    let (give, mut take) = (vector(round, m.me(), count), vec![0; n * count]);
    m.allgather(Bytes::of(&give), Room::of(&mut take)).expect("an allgather");
    assert_eq!(take, (0..n).flat_map(|g| vector(round, g, count)).collect::<Vec<_>>(), "allgather {round}");
}

fn scatter(m: &Member, round: usize, n: usize, count: usize, root: usize) {
    let (give, mut take) = (vector(round, m.me(), n * count), vec![0; count]);
    m.scatter(Bytes::of(&give), Room::of(&mut take), root).expect("a scatter");
    assert_eq!(take, vector(round, root, n * count)[m.me() * count..][..count], "scatter {round} at {}", m.me());
}

fn alltoall(m: &Member, round: usize, n: usize, count: usize) {
    let (give, mut take) = (vector(round, m.me(), n * count), vec![0; n * count]);
    m.alltoall(Bytes::of(&give), Room::of(&mut take)).expect("an alltoall");
    let expected: Vec<i32> =
        (0..n).flat_map(|g| vector(round, g, n * count)[m.me() * count..][..count].to_vec()).collect();
    assert_eq!(take, expected, "alltoall {round} at {}", m.me());
}

/// Elements that travel in a flag's line, and in a cell.
const SHORT: usize = 2;
const LONG: usize = 16;

// Cells, and when they are used again.

#[test]
fn arena_flags_are_used_again() {
    members("arena_flags_are_used_again", of(2), 2, |m| (0..4).for_each(|round| bcast(m, round, SHORT, 0)));
}

#[test]
fn arena_cells_are_used_again() {
    members("arena_cells_are_used_again", of(2), 2, |m| (0..4).for_each(|round| bcast(m, round, LONG, 0)));
}

/// Two cells and more for each payload.
#[test]
fn arena_cells_of_a_long_payload() {
    members("arena_cells_of_a_long_payload", of(2), 2, |m| {
        bcast(m, 0, 2 * LONG, 0);
        bcast(m, 1, 8 * LONG, 0);
    });
}

#[test]
fn arena_cells_for_two_readers() {
    members("arena_cells_for_two_readers", of(3), 2, |m| (0..3).for_each(|round| bcast(m, round, LONG, 0)));
}

/// Of two members each takes over the cells that it has read last.
#[test]
fn arena_roots_in_turn() {
    members("arena_roots_in_turn", of(2), 2, |m| {
        for (round, root) in [0, 0, 1, 0, 1].into_iter().enumerate() {
            bcast(m, round, LONG, root);
        }
    });
}

#[test]
fn arena_roots_in_turn_with_flags() {
    members("arena_roots_in_turn_with_flags", of(2), 2, |m| {
        for (round, root) in [0, 0, 0, 1, 1, 0].into_iter().enumerate() {
            bcast(m, round, SHORT, root);
        }
    });
}

#[test]
fn arena_roots_of_three_in_turn() {
    members("arena_roots_of_three_in_turn", of(3), 2, |m| {
        for (round, root) in [0, 1, 2].into_iter().enumerate() {
            bcast(m, round, LONG, root);
        }
    });
}

// Members' own rings.

#[test]
fn arena_small_sums() {
    members("arena_small_sums", of(2), 3, |m| (0..3).for_each(|round| allreduce(m, round, 2, SHORT)));
}

#[test]
fn arena_small_sums_of_three() {
    members("arena_small_sums_of_three", of(3), 2, |m| (0..3).for_each(|round| allreduce(m, round, 3, SHORT)));
}

#[test]
fn arena_sums_in_flags() {
    members("arena_sums_in_flags", of(2), 2, |m| (0..4).for_each(|round| allreduce(m, round, 2, 8)));
}

#[test]
fn arena_sums_in_cells() {
    members("arena_sums_in_cells", of(2), 2, |m| (0..4).for_each(|round| allreduce(m, round, 2, LONG)));
}

/// Givers leave early, and begin the next call.
#[test]
fn arena_givers_run_ahead() {
    members("arena_givers_run_ahead", of(2), 2, |m| (0..4).for_each(|round| reduce(m, round, 2, LONG, 0)));
}

#[test]
fn arena_two_givers_run_ahead() {
    members("arena_two_givers_run_ahead", of(3), 2, |m| (0..3).for_each(|round| reduce(m, round, 3, LONG, 0)));
}

#[test]
fn arena_one_reduces_for_all() {
    let terms = with(2, |c| c.coll_allreduce = AllreduceWay::Root);
    members("arena_one_reduces_for_all", terms, 2, |m| (0..3).for_each(|round| allreduce(m, round, 2, LONG)));
}

#[test]
fn arena_slices() {
    let terms = with(2, |c| c.coll_allreduce = AllreduceWay::Slices);
    members("arena_slices", terms, 2, |m| (0..3).for_each(|round| allreduce(m, round, 2, 2 * LONG)));
}

#[test]
fn arena_slices_of_three() {
    let terms = with(3, |c| c.coll_allreduce = AllreduceWay::Slices);
    members("arena_slices_of_three", terms, 2, |m| (0..2).for_each(|round| allreduce(m, round, 3, 3 * LONG)));
}

// Blocks.

#[test]
fn arena_gathers() {
    members("arena_gathers", of(3), 2, |m| (0..3).for_each(|round| gather(m, round, 3, LONG, 0)));
}

#[test]
fn arena_gathers_in_flags() {
    members("arena_gathers_in_flags", of(2), 2, |m| (0..4).for_each(|round| gather(m, round, 2, SHORT, round % 2)));
}

#[test]
fn arena_scatters() {
    members("arena_scatters", of(2), 2, |m| (0..4).for_each(|round| scatter(m, round, 2, LONG, 0)));
}

#[test]
fn arena_allgathers() {
    members("arena_allgathers", of(2), 2, |m| (0..4).for_each(|round| allgather(m, round, 2, LONG)));
}

#[test]
fn arena_alltoalls() {
    members("arena_alltoalls", of(3), 2, |m| (0..2).for_each(|round| alltoall(m, round, 3, LONG)));
}

// Parts of reductions.

#[test]
fn arena_reduce_scatters() {
    members("arena_reduce_scatters", of(3), 2, |m| (0..2).for_each(|round| reduce_scatter(m, round, 3, LONG)));
}

#[test]
fn arena_reduce_scatters_of_two() {
    members("arena_reduce_scatters_of_two", of(2), 2, |m| (0..4).for_each(|round| reduce_scatter(m, round, 2, LONG)));
}

#[test]
fn arena_scans() {
    let terms = with(3, |c| c.coll_scan = ScanWay::Cells);
    members("arena_scans", terms, 2, |m| (0..3).for_each(|round| scan(m, round, LONG)));
}

#[test]
fn arena_scans_handed_on() {
    let terms = with(3, |c| c.coll_scan = ScanWay::Chain);
    members("arena_scans_handed_on", terms, 2, |m| (0..3).for_each(|round| scan(m, round, LONG)));
}

/// Calls of all kinds share the rings.
#[test]
fn arena_calls_of_all_kinds() {
    members("arena_calls_of_all_kinds", of(2), 2, |m| {
        reduce(m, 0, 2, LONG, 0);
        bcast(m, 1, LONG, 1);
        allgather(m, 2, 2, LONG);
        reduce(m, 3, 2, LONG, 1);
        allreduce(m, 4, 2, LONG);
        bcast(m, 5, SHORT, 0);
        scan(m, 6, LONG);
    });
}

// Barriers order what the members do with other memory.

/// Each member writes its own memory before the barrier and reads the others' after it.
fn orders(name: &str, terms: Terms) {
    let n = terms.members;
    members(name, terms, 2, move |m| {
        for round in 0..2 {
            shadow::writes(m.memory(m.me(), 0), 8);
            m.barrier().expect("a barrier");
            (0..n).for_each(|other| shadow::reads(m.memory(other, 0), 8));
            m.barrier().expect("a barrier");
            assert!(round < 2);
        }
    });
}

#[test]
fn arena_flat_barriers() {
    orders("arena_flat_barriers", with(3, |c| c.coll_barrier = BarrierWay::Flat));
}

#[test]
fn arena_barriers_of_groups() {
    orders("arena_barriers_of_groups", with(3, |c| c.coll_barrier = BarrierWay::Groups));
}

// Payloads that members take from, or put into, each other's memory.

/// A vector in the member's watched memory.
fn watched(m: &Member, at: usize, v: &[i32]) -> *mut i32 {
    let to = m.memory(m.me(), at);
    shadow::writes(to, 4 * v.len());
    // SAFETY: memory of this member, of which the checker has just been asked.
    unsafe { to.cast::<i32>().copy_from_nonoverlapping(v.as_ptr(), v.len()) };
    to.cast()
}

fn holds(at: *const i32, v: &[i32]) {
    shadow::reads(at.cast(), 4 * v.len());
    // SAFETY: as above.
    assert_eq!(unsafe { std::slice::from_raw_parts(at, v.len()) }, v);
}

fn bcast_from_memory(name: &str, terms: Terms, preemptions: usize) {
    members(name, terms, preemptions, |m| {
        // A reader that has copied all by itself goes on to a call of another length.
        for (round, count) in [LONG, 2 * LONG].into_iter().enumerate() {
            let v = vector(round, round, count);
            let at = watched(m, 0, if m.me() == round { &v } else { &[0; 2 * LONG][..count] });
            // SAFETY: so many elements.
            m.bcast(unsafe { Room::new(at.cast(), 4 * count) }, round).expect("a broadcast");
            holds(at, &v);
        }
    });
}

#[test]
fn arena_broadcast_is_pulled() {
    bcast_from_memory("arena_broadcast_is_pulled", with(3, |c| c.coll_bcast = BcastWay::Pull), 2);
}

#[test]
fn arena_broadcast_is_shared() {
    let pieces = |c: &mut Config| (c.coll_bcast, c.numbers.coll_piece) = (BcastWay::Coop, Some(32));
    bcast_from_memory("arena_broadcast_is_shared", with(2, pieces), 2);
}

#[test]
fn arena_reduction_is_pulled() {
    let pieces = |c: &mut Config| {
        (c.coll_allreduce, c.coll_reduce, c.numbers.coll_piece) = (AllreduceWay::Pull, ReduceWay::Pull, Some(32));
    };
    let terms = Terms { fails: true, ..with(2, pieces) };
    members("arena_reduction_is_pulled", terms, 2, |m| {
        for round in 0..2 {
            let at = watched(m, 0, &vector(round, m.me(), LONG));
            // SAFETY: so many elements.
            m.allreduce(unsafe { Room::new(at.cast(), 4 * LONG) }).expect("an allreduce");
            holds(at, &sum(round, 2, LONG));
        }
    });
}

#[test]
fn arena_blocks_are_pulled() {
    let terms = with(2, |c| c.coll_exchange = ExchangeWay::Pull);
    members("arena_blocks_are_pulled", terms, 2, |m| {
        for round in 0..2 {
            let give = watched(m, 0, &vector(round, m.me(), 2 * LONG));
            let take = watched(m, 1024, &[0; LONG]);
            // SAFETY: two blocks, and room for one.
            let (blocks, room) = unsafe { (Bytes::new(give.cast(), 8 * LONG), Room::new(take.cast(), 4 * LONG)) };
            m.reduce_scatter(blocks, room).expect("a reduce-scatter");
            holds(take, &sum(round, 2, 2 * LONG)[m.me() * LONG..][..LONG]);
            let take = watched(m, 1024, &[0; 2 * LONG]);
            // SAFETY: two blocks each.
            m.alltoall(blocks, unsafe { Room::new(take.cast(), 8 * LONG) }).expect("an alltoall");
            let block = |g: usize| vector(round, g, 2 * LONG)[m.me() * LONG..][..LONG].to_vec();
            holds(take, &[block(0), block(1)].concat());
        }
    });
}

// Failures.

/// Member 2 has room for less than the root broadcasts: all are told, and nobody writes into a buffer whose call has returned.
#[test]
fn arena_failed_calls_settle() {
    let pieces = |c: &mut Config| (c.coll_bcast, c.numbers.coll_piece) = (BcastWay::Coop, Some(32));
    let terms = Terms { fails: true, ..with(3, pieces) };
    members("arena_failed_calls_settle", terms, 2, |m| {
        let bytes = if m.me() == 2 { 2 * LONG } else { 4 * LONG };
        let at = if m.me() == 0 { watched(m, 0, &vector(0, 0, LONG)) } else { m.memory(m.me(), 0).cast() };
        // SAFETY: so many bytes.
        let ended = m.bcast(unsafe { Room::new(at.cast(), bytes) }, 0);
        match ended {
            Err(e) => {
                let says = |what: &str| e.detail().contains(what);
                let lengths = says("rank 2 makes the call with 32 bytes, rank 0 with 64")
                    || says("rank 0 makes the call with 64 bytes, rank 2 with 32");
                assert!(e.code() == Code::Argument && lengths, "{e}");
            }
            // Who had all that it needed may not have heard of the failure.
            Ok(()) => assert!(m.me() != 0, "the root"),
        }
        if m.me() != 0 {
            // The buffer is the member's own again.
            shadow::writes(at.cast(), 4 * LONG);
        }
    });
}

/// A member makes another call than the others: all are told.
#[test]
fn arena_other_calls() {
    let terms = Terms { fails: true, ..of(2) };
    members("arena_other_calls", terms, 2, |m| {
        let mut v = vector(0, m.me(), LONG);
        let ended = if m.me() == 0 { m.allreduce(Room::of(&mut v)) } else { m.barrier() };
        let error = ended.expect_err("they wait for each other");
        assert!(error.code() == Code::Argument && error.detail().contains("makes another call than"), "{error}");
    });
}

/// A member that goes on to a call of another length is not taken for one that makes this call with that length.
#[test]
fn arena_lengths_change() {
    members("arena_lengths_change", of(2), 3, |m| {
        allreduce(m, 0, 2, 2);
        allreduce(m, 1, 2, 4);
    });
}

/// Both find out that their lengths differ, and both say the same.
#[test]
fn arena_lengths_differ() {
    let terms = Terms { fails: true, ..of(2) };
    members("arena_lengths_differ", terms, 3, |m| {
        let count = LONG << m.me();
        let (give, mut take) = (vector(0, m.me(), count), vec![0; 2 * count]);
        let ended = m.allgather(Bytes::of(&give), Room::of(&mut take));
        let error = ended.expect_err("lengths differ");
        let says = |what: &str| error.detail().contains(what);
        assert!(
            says("rank 1 makes the call with 128 bytes, rank 0 with 64")
                || says("rank 0 makes the call with 64 bytes, rank 1 with 128"),
            "{error}"
        );
    });
}

/// The kernel refuses the reader, whose call fails, while the root writes into its buffer.
#[test]
fn arena_refused_reader_settles() {
    let pieces = |c: &mut Config| (c.coll_bcast, c.numbers.coll_piece) = (BcastWay::Coop, Some(32));
    let terms = Terms { fails: true, refuses_reads: true, ..with(2, pieces) };
    members("arena_refused_reader_settles", terms, 3, |m| {
        let at = if m.me() == 0 { watched(m, 0, &vector(0, 0, LONG)) } else { m.memory(1, 0).cast() };
        // SAFETY: so many bytes.
        let ended = m.bcast(unsafe { Room::new(at.cast(), 4 * LONG) }, 0);
        if m.me() == 1 {
            assert!(ended.is_ok() || ended.is_err_and(|e| e.code() == Code::Argument));
            // The buffer is the member's own again.
            shadow::writes(at.cast(), 4 * LONG);
        }
    });
}

// Sleep.

#[test]
fn arena_sleepers_are_woken() {
    let terms = Terms { sleeps: true, ..of(2) };
    members("arena_sleepers_are_woken", terms, 2, |m| {
        allreduce(m, 0, 2, SHORT);
        bcast(m, 1, LONG, 0);
        m.barrier().expect("a barrier");
    });
}
