//! Groups of processes and the indices that their messages use: a context, and in it a row, a column, or all.

use core::ffi::c_int;

use crate::Int;
use crate::library::{FMPL_COMM_WORLD, fmpl, fmpl_comm};
use crate::matrix::Area;
use crate::process::process;
use crate::report::{self, check};

/// Below are the indices of programs that use FMPL beside the BLACS.
pub const FIRST_INDEX: c_int = 1 << 16;
/// Indices of the BLACS.
pub const INDICES: c_int = 65_472;
/// Indices of a group: point-to-point, and one for each scope.
pub const PER_GROUP: c_int = 4;

/// The index of point-to-point messages, from a group's first.
const POINT_TO_POINT: c_int = 0;

/// Processes with a space of messages of their own.
pub struct Group {
    comm: fmpl_comm,
    first: c_int,
    /// The communicator's rank of each member.
    ranks: Box<[i32]>,
    /// This process's place among the members.
    pub me: usize,
}

impl Group {
    /// All processes.
    pub fn world(rank: i32, size: i32) -> Group {
        Group { comm: FMPL_COMM_WORLD, first: FIRST_INDEX, ranks: (0..size).collect(), me: rank as usize }
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The group of these members, in this order; a collective call of all members of `self`, some of which are not in it. `None`
    /// at those.
    pub fn of(&self, members: &[usize]) -> Option<Group> {
        let space = self.agree();
        let me = members.iter().position(|m| *m == self.me)?;
        spaces::take(space);
        let ranks = members.iter().map(|m| self.ranks[*m]).collect();
        Some(Group { comm: self.comm, first: FIRST_INDEX + space * PER_GROUP, ranks, me })
    }

    /// A space that is free at all members: the first one gathers what each has taken, and tells all.
    fn agree(&self) -> c_int {
        let all = self.scope(Which::All, 0, 0, self.size(), -1, "BLACS_GRIDMAP");
        let mut taken = spaces::taken();
        let bytes = size_of_val(&*taken);
        let area = |words: &mut [u64]| Area::Run { at: words.as_mut_ptr().cast(), len: bytes };
        if self.me == 0 {
            let mut theirs = vec![0u64; taken.len()];
            for member in 1..self.size() {
                all.receive(&area(&mut theirs), member);
                taken.iter_mut().zip(&theirs).for_each(|(a, b)| *a |= b);
            }
            for member in 1..self.size() {
                all.send(&area(&mut taken), member);
            }
        } else {
            all.send(&area(&mut taken), 0);
            all.receive(&area(&mut taken), 0);
        }
        match taken.iter().position(|word| *word != u64::MAX) {
            Some(word) => word as c_int * 64 + taken[word].trailing_ones() as c_int,
            None => report::fatal(-1, "BLACS_GRIDINIT/BLACS_GRIDMAP", "too many contexts"),
        }
    }

    /// Members `start`, `start + step`, …, `size` of them, of which this process is one.
    pub fn scope(
        &self,
        which: Which,
        start: usize,
        step: usize,
        size: usize,
        handle: Int,
        routine: &'static str,
    ) -> Scope<'_> {
        let step = if matches!(which, Which::All) { 1 } else { step };
        let me = if size <= 1 { 0 } else { (self.me - start) / step.max(1) };
        Scope { group: self, index: self.first + 1 + which as c_int, start, step, size, me, handle, routine }
    }

    /// Single processes of the group.
    pub fn pairs(&self, handle: Int, routine: &'static str) -> Scope<'_> {
        Scope {
            group: self,
            index: self.first + POINT_TO_POINT,
            start: 0,
            step: 1,
            size: self.size(),
            me: self.me,
            handle,
            routine,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        spaces::give_back((self.first - FIRST_INDEX) / PER_GROUP);
    }
}

/// Spaces of indices that this process has taken.
mod spaces {
    use super::{INDICES, PER_GROUP};
    use core::ffi::c_int;
    use std::sync::Mutex;

    const WORDS: usize = (INDICES / PER_GROUP / 64) as usize;
    /// The first one is the world's.
    static TAKEN: Mutex<[u64; WORDS]> = Mutex::new({
        let mut words = [0; WORDS];
        words[0] = 1;
        words
    });

    pub fn taken() -> Box<[u64]> {
        Box::from(*TAKEN.lock().unwrap_or_else(|e| e.into_inner()))
    }
    pub fn take(space: c_int) {
        TAKEN.lock().unwrap_or_else(|e| e.into_inner())[space as usize / 64] |= 1 << (space % 64);
    }
    pub fn give_back(space: c_int) {
        if space != 0 {
            TAKEN.lock().unwrap_or_else(|e| e.into_inner())[space as usize / 64] &= !(1 << (space % 64));
        }
    }
}

/// Which processes of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Which {
    /// Those of this process's row.
    Row = 0,
    /// Those of its column.
    Column = 1,
    /// All.
    All = 2,
}

impl Which {
    /// By the first letter, of any case.
    pub fn of(letter: u8) -> Option<Which> {
        Some(match letter.to_ascii_lowercase() {
            b'r' => Which::Row,
            b'c' => Which::Column,
            b'a' => Which::All,
            _ => return None,
        })
    }
}

/// Processes that take part in a call, by their numbers in it, and the index that they use.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    group: &'a Group,
    index: c_int,
    start: usize,
    step: usize,
    /// How many.
    pub size: usize,
    /// This process's number.
    pub me: usize,
    /// For messages: the context and the routine.
    pub handle: Int,
    /// As above.
    pub routine: &'static str,
}

impl Scope<'_> {
    #[inline(always)]
    fn rank(&self, member: usize) -> c_int {
        self.group.ranks[self.start + member * self.step]
    }

    /// Sends to a member; does not wait for it.
    #[inline]
    pub fn send(&self, area: &Area, to: usize) {
        let (peer, index, comm) = (self.rank(to), self.index, self.group.comm);
        // SAFETY: the area is the caller's memory, readable for the length of the call.
        let code = unsafe {
            match *area {
                Area::Run { at, len } => (fmpl().send)(at.cast(), len, peer, index, comm),
                Area::Small { at, ref shape } => {
                    let mut packed = crate::matrix::Packed::room();
                    shape.pack(at, packed.at());
                    (fmpl().send)(packed.at().cast(), shape.bytes(), peer, index, comm)
                }
                Area::Block { at, block } => (fmpl().send_block)(at.cast(), block, peer, index, comm),
                Area::List { n } => (fmpl().send_list)(process().list().as_ptr(), n as c_int, peer, index, comm),
            }
        };
        check(code, self.handle, self.routine);
    }

    /// Receives from a member.
    #[inline]
    pub fn receive(&self, area: &Area, from: usize) {
        let (peer, index, comm) = (self.rank(from), self.index, self.group.comm);
        // SAFETY: the area is the caller's memory, writable for the length of the call.
        let code = unsafe {
            match *area {
                Area::Run { at, len } => (fmpl().recv)(at.cast(), len, peer, index, comm),
                Area::Small { at, ref shape } => {
                    let mut packed = crate::matrix::Packed::room();
                    let code = (fmpl().recv)(packed.at().cast(), shape.bytes(), peer, index, comm);
                    let mut got = 0;
                    if code == 0 {
                        check(
                            (fmpl().received)(peer, index, comm, &mut got, core::ptr::null_mut()),
                            self.handle,
                            self.routine,
                        );
                        shape.unpack(packed.at(), got, at);
                    }
                    code
                }
                Area::Block { at, block } => (fmpl().recv_block)(at.cast(), block, peer, index, comm),
                Area::List { n } => (fmpl().recv_list)(process().list().as_ptr(), n as c_int, peer, index, comm),
            }
        };
        check(code, self.handle, self.routine);
    }

    /// Sends what has no gaps.
    pub fn send_run(&self, at: *const u8, len: usize, to: usize) {
        self.send(&Area::Run { at: at.cast_mut(), len }, to);
    }

    /// Receives what has no gaps.
    pub fn receive_run(&self, at: *mut u8, len: usize, from: usize) {
        self.receive(&Area::Run { at, len }, from);
    }

    /// Sends to and receives from a member that does the same.
    pub fn exchange(&self, out: *const u8, into: *mut u8, len: usize, with: usize) {
        let (peer, index, comm) = (self.rank(with), self.index, self.group.comm);
        // SAFETY: two areas of the caller's that do not overlap.
        let code = unsafe { (fmpl().sendrecv)(out.cast(), len, peer, index, into.cast(), len, peer, index, comm) };
        check(code, self.handle, self.routine);
    }

    /// Begins to send; the memory stays as it is until [`Scope::end_send`].
    pub fn begin_send(&self, at: *const u8, len: usize, to: usize) {
        // SAFETY: the caller's memory.
        let code = unsafe { (fmpl().isend)(at.cast(), len, self.rank(to), self.index, self.group.comm) };
        check(code, self.handle, self.routine);
    }

    /// Begins to receive; the memory is the library's until [`Scope::end_receive`].
    pub fn begin_receive(&self, at: *mut u8, len: usize, from: usize) {
        // SAFETY: the caller's memory.
        let code = unsafe { (fmpl().irecv)(at.cast(), len, self.rank(from), self.index, self.group.comm) };
        check(code, self.handle, self.routine);
    }

    /// The memory of [`Scope::begin_send`] may be written again.
    pub fn end_send(&self, to: usize) {
        // SAFETY: no memory is given.
        let code = unsafe { (fmpl().isend_wait)(self.rank(to), self.index, self.group.comm) };
        check(code, self.handle, self.routine);
    }

    /// The message is there.
    pub fn end_receive(&self, from: usize) {
        // SAFETY: no memory is given.
        let code = unsafe { (fmpl().irecv_wait)(self.rank(from), self.index, self.group.comm) };
        check(code, self.handle, self.routine);
    }

    /// Waits until all have come here: in round k everyone tells the one 2^k further on (Hensgen, Finkel, Manber 1988).
    pub fn barrier(&self) {
        let nothing = Area::Run { at: core::ptr::null_mut(), len: 0 };
        let mut distance = 1;
        while distance < self.size {
            self.send(&nothing, (self.me + distance) % self.size);
            self.receive(&nothing, (self.me + self.size - distance) % self.size);
            distance *= 2;
        }
    }
}
