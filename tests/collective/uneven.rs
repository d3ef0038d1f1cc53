//! Blocks of different lengths: some without bytes, some far longer than others, with gaps between them, in their places already; on one node and
//! on several, on the world and on a communicator of some ranks; and lengths that do not agree.

use std::ptr::null;

use fmpl::ffi::c::*;

use crate::ranks::bytes::{check, message, seed};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes};

pub fn as_one_process_would() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::new(ranks, "gives uneven blocks").run();
    }
    Job::new(3, "gives uneven blocks").settings("FMPL_CMA=off FMPL_WAIT=block").run();
    Job::new(4, "gives uneven blocks").nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp").run();
    Job::new(3, "gives uneven blocks").nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp").run();
}

/// Bytes of what `from` gives `to` in a turn.
fn len(from: usize, to: usize, turn: usize) -> usize {
    match (from * 5 + to * 3 + turn) % 7 {
        0 => 0,
        1 => 70_000 + from,
        2 => 3000,
        n => n * 8 + to,
    }
}

fn block(from: usize, to: usize, turn: usize) -> Vec<u8> {
    message(len(from, to, turn), seed(from as i32, to as i32, 9, turn as u64))
}

/// A buffer with blocks of these lengths, seven bytes apart where there are places.
struct Laid {
    sizes: Vec<usize>,
    places: Vec<usize>,
    bytes: Vec<u8>,
}

impl Laid {
    fn of(sizes: Vec<usize>, apart: bool) -> Laid {
        let gap = if apart { 7 } else { 0 };
        let places: Vec<usize> = sizes.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n + gap))).collect();
        let bytes = vec![0xee; places.last().zip(sizes.last()).map_or(0, |(at, n)| at + n + gap)];
        Laid { sizes, places, bytes }
    }
    fn places(&self, apart: bool) -> *const usize {
        if apart { self.places.as_ptr() } else { null() }
    }
    fn block(&mut self, k: usize) -> &mut [u8] {
        &mut self.bytes[self.places[k]..][..self.sizes[k]]
    }
    /// What lies between the blocks is as it was.
    fn check_gaps(&mut self) {
        for k in 0..self.sizes.len() {
            self.block(k).fill(0xee);
        }
        assert!(self.bytes.iter().all(|b| *b == 0xee));
    }
}

fn all_calls(me: usize, n: usize, turn: usize) {
    let (comm, root, apart) = (comm(), turn % n, turn.is_multiple_of(2));
    let mut mine = block(me, me, turn);
    let own = || (0..n).map(|from| len(from, from, turn)).collect::<Vec<_>>();
    // SAFETY: buffers as long as their sizes say, which outlast the calls.
    unsafe {
        let mut all = Laid::of(own(), apart);
        let (sizes, places) = (all.sizes.as_ptr(), all.places(apart));
        let (sizes_here, places_here) = if me == root { (sizes, places) } else { (null(), null()) };
        let to = all.bytes.as_mut_ptr().cast();
        ok(fmpl_gatherv(mine.as_ptr().cast(), mine.len(), to, sizes_here, places_here, root as i32, comm));
        for from in (0..n).filter(|_| me == root) {
            check(all.block(from), seed(from as i32, from as i32, 9, turn as u64), "gatherv");
        }
        if me == root {
            all.check_gaps();
        }
        // In its place already.
        all.block(me).copy_from_slice(&mine);
        let from = all.block(me).as_ptr().cast();
        ok(fmpl_allgatherv(from, mine.len(), all.bytes.as_mut_ptr().cast(), sizes, places, comm));
        for from in 0..n {
            check(all.block(from), seed(from as i32, from as i32, 9, turn as u64), "allgatherv");
        }
        let from = all.bytes.as_ptr().cast();
        mine.fill(0);
        ok(fmpl_scatterv(from, sizes_here, places_here, mine.as_mut_ptr().cast(), mine.len(), root as i32, comm));
        check(&mine, seed(me as i32, me as i32, 9, turn as u64), "scatterv");
        all.check_gaps();

        let mut sent = Laid::of((0..n).map(|to| len(me, to, turn)).collect(), apart);
        let mut got = Laid::of((0..n).map(|from| len(from, me, turn)).collect(), !apart);
        for to in 0..n {
            sent.block(to).copy_from_slice(&block(me, to, turn));
        }
        let (given, taken) = ((sent.sizes.as_ptr(), sent.places(apart)), (got.sizes.as_ptr(), got.places(!apart)));
        let (from, to) = (sent.bytes.as_ptr().cast(), got.bytes.as_mut_ptr().cast());
        ok(fmpl_alltoallv(from, given.0, given.1, to, taken.0, taken.1, comm));
        for from in 0..n {
            check(got.block(from), seed(from as i32, me as i32, 9, turn as u64), "alltoallv");
        }
        got.check_gaps();

        let mut numbers: Vec<i32> = (0..1 + turn as i32 * 700).map(|k| k + me as i32).collect();
        let (before, count) = (numbers.clone(), numbers.len() as i32);
        ok(fmpl_exscan(numbers.as_mut_ptr().cast(), count, Some(fmpl_isum), comm));
        for (k, number) in numbers.iter().enumerate() {
            let sum: i32 = (0..me as i32).map(|r| k as i32 + r).sum();
            assert_eq!(*number, if me == 0 { before[k] } else { sum });
        }
    }
}

/// Who takes a block that is shorter than it said is told of its giver and both lengths; the communicator goes on.
fn lengths_that_differ(me: usize, n: usize) {
    if n == 1 {
        return;
    }
    let comm = comm();
    // SAFETY: as above; nobody gives more than is expected.
    unsafe {
        let mut all = Laid::of(vec![8; n], false);
        let give = [me as u8; 8];
        let short = if me == 1 { 5 } else { 8 };
        let to = all.bytes.as_mut_ptr().cast();
        let code = fmpl_gatherv(give.as_ptr().cast(), short, to, all.sizes.as_ptr(), null(), 0, comm);
        if me == 0 {
            fails(code, ARGUMENT);
            assert!(last_error().contains("rank 1 gives 5 bytes, and 8 are expected"), "{}", last_error());
        } else {
            ok(code);
        }
        // Longer than expected, and the root's own: all others end, and the next call gets none of this one's blocks.
        let long = [me as u8; 700];
        let giver = if n > 2 { 2 } else { 1 };
        let size = if me == giver { 700 } else { 8 };
        let code = fmpl_gatherv(long.as_ptr().cast(), size, to, all.sizes.as_ptr(), null(), 0, comm);
        if me == 0 {
            fails(code, ARGUMENT)
        } else {
            ok(code)
        }
        let code =
            fmpl_gatherv(long.as_ptr().cast(), if me == 0 { 4 } else { 8 }, to, all.sizes.as_ptr(), null(), 0, comm);
        if me == 0 {
            fails(code, ARGUMENT)
        } else {
            ok(code)
        }
        let next = [100 + me as u8; 8];
        ok(fmpl_gatherv(next.as_ptr().cast(), 8, to, all.sizes.as_ptr(), null(), 0, comm));
        for from in (0..n).filter(|_| me == 0) {
            assert_eq!(all.block(from), [100 + from as u8; 8]);
        }
        // One rank is wrong about its own block: it and who gets that hear of it, wherever in the ring.
        let to = all.bytes.as_mut_ptr().cast();
        let code =
            fmpl_allgatherv(long.as_ptr().cast(), if me == 1 { 3 } else { 8 }, to, all.sizes.as_ptr(), null(), comm);
        fails(code, ARGUMENT);
        ok(fmpl_allgatherv(next.as_ptr().cast(), 8, to, all.sizes.as_ptr(), null(), comm));
        for from in 0..n {
            assert_eq!(all.block(from), [100 + from as u8; 8]);
        }
        let mut sizes = vec![8; n];
        if me == 0 {
            sizes[n - 1] = 20;
        }
        let (sent, to) = (vec![me as u8; 8 * n + 12], all.bytes.as_mut_ptr().cast());
        let code = fmpl_alltoallv(sent.as_ptr().cast(), sizes.as_ptr(), null(), to, all.sizes.as_ptr(), null(), comm);
        if me == n - 1 {
            fails(code, ARGUMENT)
        } else {
            ok(code)
        }
        // Unused entries may say anything about their places.
        let (none, nowhere) = (vec![0; n], vec![usize::MAX; n]);
        ok(fmpl_allgatherv(null(), 0, std::ptr::null_mut(), none.as_ptr(), nowhere.as_ptr(), comm));
        let to = all.bytes.as_mut_ptr().cast();
        fails(fmpl_gatherv(give.as_ptr().cast(), 8, to, all.sizes.as_ptr(), null(), n as i32, comm), RANK);
        let huge = vec![usize::MAX / 2; n];
        fails(fmpl_allgatherv(give.as_ptr().cast(), 8, to, huge.as_ptr(), null(), comm), ARGUMENT);
        fails(fmpl_allgatherv(give.as_ptr().cast(), 8, to, null(), null(), comm), ARGUMENT);
        fails(fmpl_allgatherv(null(), 8, to, all.sizes.as_ptr(), null(), comm), ARGUMENT);
    }
}

pub fn gives() {
    init(4);
    let (me, n) = (rank() as usize, size() as usize);
    for turn in 0..8 {
        all_calls(me, n, turn);
    }
    lengths_that_differ(me, n);
    all_calls(me, n, 1);
    // Of some ranks, in another order.
    let part = split(WORLD, me as i32 % 2, -(me as i32));
    on(part);
    let (me, n) = (rank() as usize, size() as usize);
    (0..3).for_each(|turn| all_calls(me, n, turn));
    on(WORLD);
    barrier();
    free(part);
    finalize();
}
