//! Every predefined function in every call that takes one, on 1 to 8 ranks, beside what one process computes: elements combined in the
//! order of the ranks, all bits compared. Between nodes blocks of ranks are combined with each other: there the functions whose results no
//! order changes.

use std::ptr::null_mut;

use fmpl::base::kernel::{Kind, Operation, Predefined};
use fmpl::ffi::c::*;

use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, long};
use crate::reference;

pub fn agree() {
    for ranks in 1..=8 {
        Job::new(ranks, "reduces").seconds(300).run();
    }
    for settings in [
        "FMPL_CMA=off FMPL_WAIT=block",
        "FMPL_COLL_ALLREDUCE=pull FMPL_COLL_REDUCE=pull FMPL_COLL_EXCHANGE=pull FMPL_COLL_SCAN=chain",
        "FMPL_COLL_ALLREDUCE=slices",
    ] {
        Job::new(3, "reduces").settings(settings).seconds(300).run();
    }
    Job::new(5, "reduces").nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp EXACT=1").seconds(300).run();
}

/// Does no order of the elements change the bits of a result?
fn is_exact(f: Predefined) -> bool {
    let rounded = matches!(f.kind, Kind::s | Kind::d | Kind::c | Kind::z | Kind::f16 | Kind::bf16);
    !(rounded && matches!(f.operation, Operation::sum | Operation::prod))
}

/// A rank of a job that makes every call with every function.
pub fn reduces() {
    init(1);
    let exact = std::env::var_os("EXACT").is_some();
    for (f, function) in predefined_functions() {
        if exact && !is_exact(f) {
            continue;
        }
        for count in [0, 1, 7, if long() { 2000 } else { 61 }] {
            Case { f, function, count, vectors: vectors(f, count) }.plays();
        }
    }
    // What is cut into pieces.
    let large = [(Kind::d, Operation::minloc), (Kind::i16, Operation::prod), (Kind::f80, Operation::sum)];
    for (f, function) in predefined_functions().into_iter().filter(|(f, _)| large.contains(&(f.kind, f.operation))) {
        if size() == 3 {
            Case { f, function, count: 9001, vectors: vectors(f, 9001) }.plays();
        }
    }
    finalize();
}

/// What each rank gives: a vector for each, of a block for each.
fn vectors(f: Predefined, count: usize) -> Vec<Vec<u8>> {
    let (kind, operation) = (f.kind.name(), f.operation.name());
    let of = |rank: i32| {
        let mut draw = Draw((rank as u64) << 32 | (count as u64) << 16 | (f.kind as u64) << 8 | f.operation as u64);
        (0..count * size() as usize).flat_map(|_| reference::element(kind, operation, draw.number(), true)).collect()
    };
    (0..size()).map(of).collect()
}

/// A function with vectors of all ranks. The calls take the first `count` elements, or a block of so many of each rank.
struct Case {
    f: Predefined,
    function: fmpl_func,
    count: usize,
    vectors: Vec<Vec<u8>>,
}

/// A rank's memory in a call, at an odd address.
struct Memory(Vec<u8>);

impl Memory {
    fn of(bytes: &[u8]) -> Memory {
        Memory([&[0xee; 3], bytes].concat())
    }
    fn ptr(&mut self) -> *mut std::ffi::c_void {
        self.0[3..].as_mut_ptr().cast()
    }
}

impl Case {
    fn bytes(&self) -> usize {
        self.count * reference::size(self.f.kind.name(), self.f.operation.name())
    }

    /// A part of some ranks' vectors, combined from the left to the right.
    fn of(&self, mut ranks: impl Iterator<Item = usize>, from: usize) -> Vec<u8> {
        let (kind, operation) = (self.f.kind.name(), self.f.operation.name());
        let size = reference::size(kind, operation);
        let part = |rank: usize| &self.vectors[rank][from..][..self.bytes()];
        let mut left = ranks.next().map(|rank| part(rank).to_vec()).unwrap_or_default();
        for rank in ranks {
            let pairs = left.chunks_exact(size).zip(part(rank).chunks_exact(size));
            left = pairs.flat_map(|(a, b)| reference::combined(kind, operation, a, b)).collect();
        }
        left
    }

    /// Compares what a call has left in the memory.
    #[track_caller]
    fn check(&self, call: &str, got: Memory, want: &[u8]) {
        let size = reference::size(self.f.kind.name(), self.f.operation.name());
        assert!(got.0[..3] == [0xee; 3] && got.0.len() == 3 + want.len(), "{call}: beyond the vector");
        let wrong = got.0[3..].chunks(size).zip(want.chunks(size)).position(|(got, want)| got != want);
        if let Some(k) = wrong {
            let at = |v: &[u8]| v[k * size..][..size].to_vec();
            panic!(
                "rank {}: {call} by {} of {} elements: element {k} is {:?}, not {:?}",
                rank(),
                self.f.name(),
                self.count,
                at(&got.0[3..]),
                at(want)
            );
        }
    }

    // SAFETY, of all calls: buffers of `count` elements of the function, or of a block of so many for each rank.
    fn plays(&self) {
        let (me, ranks, n, f) = (rank() as usize, size() as usize, self.count as i32, self.function);
        let mine = &self.vectors[me][..self.bytes()];
        let all = self.of(0..ranks, 0);
        let root = self.count % ranks;
        let mut m = Memory::of(mine);
        // SAFETY: see above.
        ok(unsafe { fmpl_reduce(m.ptr(), n, f, root as i32, comm(), null_mut()) });
        self.check("reduce", m, if me == root { &all } else { mine });
        let mut m = Memory::of(mine);
        // SAFETY: see above.
        ok(unsafe { fmpl_allreduce(m.ptr(), n, f, comm(), null_mut()) });
        self.check("allreduce", m, &all);
        let mut m = Memory::of(mine);
        // SAFETY: see above; the request is completed here.
        unsafe {
            ok(fmpl_iallreduce(m.ptr(), n, f, comm(), null_mut()));
            ok(fmpl_iallreduce_wait(comm()));
        }
        self.check("iallreduce", m, &all);
        let (mut m, mut block) = (Memory::of(&self.vectors[me]), Memory::of(mine));
        // SAFETY: see above.
        ok(unsafe { fmpl_reduce_scatter(m.ptr(), block.ptr(), n, f, comm()) });
        self.check("reduce_scatter", block, &self.of(0..ranks, me * self.bytes()));
        self.check("reduce_scatter: what was given", m, &self.vectors[me]);
        let mut m = Memory::of(mine);
        // SAFETY: see above.
        ok(unsafe { fmpl_scan(m.ptr(), n, f, comm()) });
        self.check("scan", m, &self.of(0..me + 1, 0));
        let mut m = Memory::of(mine);
        // SAFETY: see above.
        ok(unsafe { fmpl_exscan(m.ptr(), n, f, comm()) });
        self.check("exscan", m, &if me == 0 { mine.to_vec() } else { self.of(0..me, 0) });
        // Every other rank, to the last of them.
        let last = (ranks - 1) / 2 * 2;
        if me % 2 == 0 {
            let members = 0x5555_5555u64 & ((1 << ranks) - 1);
            let mut m = Memory::of(mine);
            // SAFETY: see above; a bit for each rank.
            ok(unsafe { fmpl_mcast_reduce(m.ptr(), n, f, &members, last as i32, comm()) });
            // The order of a group is a tree's.
            if me == last && is_exact(self.f) {
                self.check("mcast_reduce", m, &self.of((0..ranks).step_by(2), 0));
            }
        }
        // The function itself, without a call.
        let mut m = Memory::of(mine);
        let other = &self.vectors[ranks - 1][..self.bytes()];
        if let (Some(function), true) = (f, ranks > 1 && me == 0) {
            // SAFETY: so many elements at each.
            unsafe { function(m.ptr(), other.as_ptr().cast(), n) };
            self.check("called", m, &self.of([0, ranks - 1].into_iter(), 0));
        }
    }
}
