//! Groups of processes and the indices that their messages use: a context, and in it a row, a column, or all.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fmpl::base::bytes::{Bytes, Room};

use crate::Int;
use crate::library::{FMPL_COMM_NULL, FMPL_COMM_WORLD, fmpl, fmpl_comm};
use crate::matrix::{Area, with_packed};
use crate::order::Whole;
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
    collective: AtomicBool,
}

impl Group {
    /// All processes. They exchange nothing here but what makes other groups, so the mode of the world's sends stays the program's.
    pub fn world(rank: i32, size: i32) -> Group {
        Group { comm: FMPL_COMM_WORLD, size: size as usize, me: rank as usize, collective: AtomicBool::new(false) }
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
        check(fmpl().comm_split(self.comm, colour, place.unwrap_or(0) as c_int, &mut comm), -1, routine);
        let me = place?;
        let mut size = 0;
        check(fmpl().comm_size(comm, &mut size), -1, routine);
        check(fmpl().comm_sendbuf_set(comm, process().spool_bytes(), 0), -1, routine);
        if size as usize != members.len() {
            report::fatal(-1, routine, "processes of one grid have given different maps");
        }
        Some(Group { comm, size: members.len(), me, collective: AtomicBool::new(true) })
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
            // A program that has finalized FMPL before it frees its grids has freed them.
            fmpl().comm_free(&mut self.comm);
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
    pub fn send(&self, area: &Area<'_>, to: usize) {
        let (peer, index, comm) = (self.rank(to), self.index, self.group.comm);
        self.check(match area {
            Area::Run(run) => fmpl().send(**run, peer, index, comm),
            Area::Small(matrix) => with_packed(|packed| {
                let n = matrix.pack(packed);
                fmpl().send(*packed.part(0, n), peer, index, comm)
            }),
            Area::Block(block) => fmpl().send_block(block, peer, index, comm),
            Area::List(list) => fmpl().send_list(list, peer, index, comm),
        });
    }

    /// Receives from a member.
    #[inline]
    pub fn receive(&self, area: &Area<'_>, from: usize) {
        let (peer, index, comm) = (self.rank(from), self.index, self.group.comm);
        self.check(match area {
            Area::Run(run) => fmpl().recv(*run, peer, index, comm),
            Area::Small(matrix) => with_packed(|packed| {
                let code = fmpl().recv(packed.part(0, matrix.shape().bytes()), peer, index, comm);
                let mut got = 0;
                if code == 0 {
                    self.check(fmpl().received(peer, index, comm, &mut got));
                    matrix.unpack(packed.part(0, got));
                }
                code
            }),
            Area::Block(block) => fmpl().recv_block(block, peer, index, comm),
            Area::List(list) => fmpl().recv_list(list, peer, index, comm),
        });
    }

    #[inline(always)]
    fn check(&self, code: c_int) {
        check(code, self.handle, self.routine);
    }

    /// Sends what has no gaps.
    pub fn send_run(&self, run: Room<'_>, to: usize) {
        self.send(&Area::Run(run), to);
    }

    /// Receives what has no gaps.
    pub fn receive_run(&self, run: Room<'_>, from: usize) {
        self.receive(&Area::Run(run), from);
    }

    /// Sends a run of bytes to one member and receives one from another, at the same time.
    pub fn exchange(&self, (out, to): (Room<'_>, usize), (into, from): (Room<'_>, usize)) {
        let (index, comm) = (self.index, self.group.comm);
        self.check(fmpl().sendrecv(*out, self.rank(to), into, self.rank(from), index, comm));
    }

    /// Sends to all other members and receives from them, at the same time; `before` the sends, when the receives have begun, something is
    /// done.
    pub fn swap<'a>(&self, into: impl Fn(usize) -> Room<'a>, before: impl FnOnce(), out: impl Fn(usize) -> Bytes<'a>) {
        let others = (0..self.size).filter(|r| *r != self.me).map(|r| (r, self.rank(r)));
        fmpl().swap((others, self.index, self.group.comm), into, before, out, |code| self.check(code));
    }

    /// All members of the group are in this scope, which has more than one.
    fn is_whole(&self) -> bool {
        self.size == self.group.size && self.size > 1 && self.group.collective.load(Relaxed)
    }

    /// A call of FMPL on the whole group. `false`: there are none here; everybody hears of that at the first one.
    fn whole(&self, call: impl FnOnce(fmpl_comm) -> c_int) -> bool {
        if !self.is_whole() {
            return false;
        }
        match call(self.group.comm) {
            UNSUPPORTED => self.group.collective.store(false, Relaxed),
            code => self.check(code),
        }
        self.group.collective.load(Relaxed)
    }

    /// Combines the elements of all members, in their order, for all of them, if they are all of the group. `false`: nothing is done.
    ///
    /// Of the collective calls the BLACS use those only that wait for everybody. So rows of a grid of one row and all of it can share
    /// the communicator: processes that call them in different orders wait for each other in any case.
    pub fn combine_whole(&self, room: Room<'_>, whole: Whole) -> bool {
        self.whole(|comm| fmpl().allreduce(room, whole, comm))
    }

    /// Waits until all have come here: in round k everyone tells the one 2^k further on (Hensgen, Finkel, Manber 1988).
    pub fn barrier(&self) {
        if self.whole(|comm| fmpl().barrier(comm)) {
            return;
        }
        let nothing = Area::Run(Room::none());
        let mut distance = 1;
        while distance < self.size {
            self.send(&nothing, (self.me + distance) % self.size);
            self.receive(&nothing, (self.me + self.size - distance) % self.size);
            distance *= 2;
        }
    }
}
