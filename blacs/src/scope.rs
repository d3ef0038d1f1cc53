//! Groups of processes and the indices that their messages use: a context, and in it a row, a column, or all.

use core::cell::Cell;
use core::ffi::{c_int, c_void};

use crate::Int;
use crate::library::{FMPL_COMM_NULL, FMPL_COMM_WORLD, fmpl, fmpl_comm, fmpl_func};
use crate::matrix::Area;
use crate::process::process;
use crate::report::{self, check};

/// Indices of a group: point-to-point, and one for each scope.
pub const INDICES: c_int = 4;

/// The index of point-to-point messages.
const POINT_TO_POINT: c_int = 0;

/// `FMPL_ERR_UNSUPPORTED`
const UNSUPPORTED: i32 = 19;

/// Processes with a space of messages of their own: a communicator, whose ranks are the members' numbers.
pub struct Group {
    comm: fmpl_comm,
    size: usize,
    /// This process's place among the members.
    pub me: usize,
    /// Collective calls of the communicator work. They do not where members share no memory.
    collective: Cell<bool>,
}

impl Group {
    /// All processes. They exchange nothing here but what makes other groups, so the mode of the world's sends stays the program's.
    pub fn world(rank: i32, size: i32) -> Group {
        Group { comm: FMPL_COMM_WORLD, size: size as usize, me: rank as usize, collective: Cell::new(false) }
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The group of these members, in this order; a collective call of all members of `self`, some of which are not in it: `None` at
    /// those. Processes may name different members at the same time, as long as nobody is named by two.
    pub fn of(&self, members: &[usize], routine: &'static str) -> Option<Group> {
        let place = members.iter().position(|m| *m == self.me);
        // Groups that have no member in common differ in their least.
        let colour = place.and(members.iter().min()).map_or(-1, |m| *m as c_int);
        let mut comm = FMPL_COMM_NULL;
        // SAFETY: the result has room.
        check(unsafe { (fmpl().comm_split)(self.comm, colour, place.unwrap_or(0) as c_int, &mut comm) }, -1, routine);
        let me = place?;
        let mut size = 0;
        // SAFETY: as above; in buffered mode no buffer is given.
        unsafe {
            check((fmpl().comm_size)(comm, &mut size), -1, routine);
            check((fmpl().comm_sendbuf_set)(comm, core::ptr::null_mut(), process().spool_bytes(), 0), -1, routine);
        }
        if size as usize != members.len() {
            report::fatal(-1, routine, "processes of one grid have given different maps");
        }
        Some(Group { comm, size: members.len(), me, collective: Cell::new(true) })
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
        Scope { group: self, index: 1 + which as c_int, start, step, size, me, handle, routine }
    }

    /// Single processes of the group.
    pub fn pairs(&self, handle: Int, routine: &'static str) -> Scope<'_> {
        Scope { group: self, index: POINT_TO_POINT, start: 0, step: 1, size: self.size(), me: self.me, handle, routine }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.comm != FMPL_COMM_WORLD {
            // SAFETY: no call on it is under way. A program that has finalized FMPL before it frees its grids has freed them.
            unsafe { (fmpl().comm_free)(&mut self.comm) };
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
        (self.start + member * self.step) as c_int
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
                Area::List { n } => (fmpl().send_list)(process().list(), n as c_int, peer, index, comm),
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
                Area::List { n } => (fmpl().recv_list)(process().list(), n as c_int, peer, index, comm),
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

    /// Sends a run of bytes to one member and receives one from another, at the same time: memory, bytes, member.
    pub fn exchange(&self, out: (*const u8, usize, usize), into: (*mut u8, usize, usize)) {
        let (index, comm) = (self.index, self.group.comm);
        let (to, from) = (self.rank(out.2), self.rank(into.2));
        // SAFETY: two areas of the caller's that do not overlap.
        let code =
            unsafe { (fmpl().sendrecv)(out.0.cast(), out.1, to, index, into.0.cast(), into.1, from, index, comm) };
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

    /// All members of the group are in this scope, which has more than one.
    fn is_whole(&self) -> bool {
        self.size == self.group.size && self.size > 1 && self.group.collective.get()
    }

    /// A call of FMPL on the whole group. `false`: there are none here; everybody hears of that at the first one.
    fn whole(&self, call: impl FnOnce(fmpl_comm) -> c_int) -> bool {
        if !self.is_whole() {
            return false;
        }
        match call(self.group.comm) {
            UNSUPPORTED => self.group.collective.set(false),
            code => check(code, self.handle, self.routine),
        }
        self.group.collective.get()
    }

    /// Combines `n` elements of all members, in their order, for all of them, if they are all of the group. `false`: nothing is done.
    ///
    /// Of the collective calls the BLACS use those only that wait for everybody. So rows of a grid of one row and all of it can share
    /// the communicator: processes that call them in different orders wait for each other in any case.
    pub fn combine_whole(&self, at: *mut u8, n: usize, function: fmpl_func) -> bool {
        // SAFETY: `n` elements of the caller's.
        self.whole(|comm| unsafe {
            (fmpl().allreduce)(at.cast::<c_void>(), n as c_int, function, comm, core::ptr::null_mut())
        })
    }

    /// Waits until all have come here: in round k everyone tells the one 2^k further on (Hensgen, Finkel, Manber 1988).
    pub fn barrier(&self) {
        // SAFETY: takes no memory.
        if self.whole(|comm| unsafe { (fmpl().barrier)(comm) }) {
            return;
        }
        let nothing = Area::Run { at: core::ptr::null_mut(), len: 0 };
        let mut distance = 1;
        while distance < self.size {
            self.send(&nothing, (self.me + distance) % self.size);
            self.receive(&nothing, (self.me + self.size - distance) % self.size);
            distance *= 2;
        }
    }
}
