//! What a member keeps for itself: how many calls there were, and which cells they have used. All members' numbers move in step.
//!
//! The team is shared by the threads of the process, and a call nests: it waits, and what it does meanwhile looks here too. So
//! everything is a cell, for the one thread that is in a collective call of the communicator, and nobody has a reference into it.

use core::cell::Cell;
use core::ops::Deref;

use super::Team;
use crate::base::bytes::Scratch;
use crate::base::unwinding::Panic;
use crate::coll::arena::CELLS;
use crate::coll::multicast::Means;
use crate::wait::Operation;

/// Calls whose kinds a member remembers.
const HISTORY: usize = 16;

/// A member's own numbers.
pub(in crate::coll) struct State {
    /// The number of the last call.
    call: Cell<u64>,
    /// Barriers so far, and small payloads.
    pub barriers: Cell<u64>,
    pub smalls: Cell<u64>,
    /// Members that have reduced and broadcast for all, one after the other.
    pub turns: Cell<u64>,
    /// Cells of the members' rings that were used so far, and of the shared ring.
    own_cells: Cell<u64>,
    shared_cells: Cell<u64>,
    /// The next cell of the shared ring; who broadcast last, and from which cell on.
    shared_at: Cell<usize>,
    shared_last: Cell<(usize, usize)>,
    /// The call that used a cell last: of the members' rings, of the shared ring.
    own_used: [Cell<u64>; CELLS],
    shared_used: [Cell<u64>; CELLS],
    /// Calls that each member is known to have done with.
    pub known: Box<[Cell<u64>]>,
    /// Do copies between processes work for everybody?
    pub copies: Cell<Option<bool>>,
    /// A member that it waits for and does not know, and since when.
    pub stranger: Cell<(usize, u64)>,
    /// When the member that is waited for is looked at next, whether it says that it cannot do its part.
    pub hears_ns: Cell<u64>,
    /// Since when a member is known to have died, while others were waited for; 0: none is.
    pub mourns: Cell<u64>,
    /// Can the communicator broadcast to other nodes by multicast, and what a node's first member has for it.
    pub multicast: Cell<Option<bool>>,
    pub means: Cell<Option<Box<Means>>>,
    /// The program's calls that needed the arena so far, and the last of them that others were told of.
    pub entered: Cell<u64>,
    pub told: Cell<u64>,
    /// Which the last of them were, each at the place of its number.
    pub history: [Cell<u8>; HISTORY],
    /// What the call is, for those who ask what this process waits for.
    pub operation: Cell<Operation>,
    pub bytes: Cell<u64>,
    /// How the call waits, and what has become of its function.
    pub own: Own,
    /// Memory for partial results.
    scratch: Cell<Scratch>,
}

/// What each call under way has of its own, whoever polls it: the one that the team is in, and each with a ticket.
#[derive(Default)]
pub(in crate::coll) struct Own {
    /// Of a call with a ticket, what it is called.
    pub name: Option<&'static str>,
    /// It has been polled: some of its messages may be out.
    pub moves: Cell<bool>,
    /// A message is waited for where it is; otherwise it is looked at, and the call polled again.
    pub patient: Cell<bool>,
    /// What the call waits for, if that is a word.
    pub awaited: Cell<Option<Awaited>>,
    /// The panic of the program's function, by which the call is left when it ends.
    pub panic: Cell<Option<Panic>>,
}

/// A word that a call waits for, until it is `number` or more; `who` writes it.
#[derive(Clone, Copy)]
pub(in crate::coll) struct Awaited {
    /// Where it is in the arena.
    pub word: usize,
    pub number: u64,
    pub who: usize,
}

/// A cell of the shared ring, taken for a call.
pub(in crate::coll) struct Taken {
    /// Its place in the ring.
    pub index: usize,
    /// The call that used it before.
    pub used: u64,
}

/// Scratch memory, lent to one call at a time; it goes back when the call has done with it.
pub(in crate::coll) struct Lent<'a>(&'a State, Scratch);

impl Deref for Lent<'_> {
    type Target = Scratch;
    #[inline(always)]
    fn deref(&self) -> &Scratch {
        &self.1
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.scratch.set(core::mem::take(&mut self.1));
    }
}

/// Counts on.
#[inline(always)]
pub(in crate::coll) fn next(counter: &Cell<u64>) -> u64 {
    counter.set(counter.get() + 1);
    counter.get()
}

impl State {
    /// The number of the last call.
    pub(in crate::coll) fn call(&self) -> u64 {
        self.call.get()
    }

    pub fn new(members: usize) -> State {
        State {
            call: Cell::new(0),
            barriers: Cell::new(0),
            smalls: Cell::new(0),
            turns: Cell::new(0),
            own_cells: Cell::new(0),
            shared_cells: Cell::new(0),
            shared_at: Cell::new(0),
            shared_last: Cell::new((0, 0)),
            own_used: [const { Cell::new(0) }; CELLS],
            shared_used: [const { Cell::new(0) }; CELLS],
            known: (0..members).map(|_| Cell::new(0)).collect(),
            copies: Cell::new(None),
            mourns: Cell::new(0),
            stranger: Cell::new((0, 0)),
            hears_ns: Cell::new(0),
            multicast: Cell::new(None),
            means: Cell::new(None),
            entered: Cell::new(0),
            told: Cell::new(0),
            history: [const { Cell::new(0) }; HISTORY],
            operation: Cell::new(Operation::Barrier),
            bytes: Cell::new(0),
            own: Own::default(),
            scratch: Cell::default(),
        }
    }
}

impl Team {
    /// What the program has called, for those who ask what this process waits for.
    #[inline(always)]
    pub(in crate::coll) fn name(&self, operation: Operation, bytes: usize) {
        self.state.operation.set(operation);
        self.state.bytes.set(bytes as u64);
    }

    /// The same for a call that needs the arena.
    #[inline(always)]
    pub(in crate::coll) fn enter(&self, operation: Operation, bytes: usize) {
        self.name(operation, bytes);
        next(&self.state.entered);
        let number = self.state.entered.get() as usize;
        self.state.history[number % HISTORY].set(operation as u8);
    }

    /// Which call this one was, if it is none of long ago.
    pub(in crate::coll) fn was(&self, number: u64) -> Option<u64> {
        let last = self.state.entered.get();
        (number <= last && last - number < HISTORY as u64)
            .then(|| u64::from(self.state.history[number as usize % HISTORY].get()))
    }

    /// Begins a call: its number. A call of the program is one or more of these.
    #[inline(always)]
    pub(in crate::coll) fn begin(&self) -> u64 {
        next(&self.state.call)
    }

    /// The shared ring is `root`'s now. Of two members each takes over the cells that it has read last: lines are cheapest to write for
    /// whoever has read them last, and who has read all of them knows that nobody needs them.
    ///
    /// `true`: it was `root`'s before, so that lines go one way, or will.
    #[inline(always)]
    pub(in crate::coll) fn share_ring(&self, root: usize) -> bool {
        let state = &self.state;
        let (last, first) = state.shared_last.get();
        let mut at = state.shared_at.get();
        if self.n == 2 && last != root {
            while at != first {
                at = (at + CELLS - 1) % CELLS;
                state.shared_used[at].set(0);
            }
            state.shared_at.set(at);
        }
        state.shared_last.set((root, at));
        last == root
    }

    /// The next cell of the shared ring, and the number of what goes into it.
    #[inline(always)]
    pub(in crate::coll) fn next_shared(&self, call: u64) -> (u64, Taken) {
        let state = &self.state;
        let index = state.shared_at.get();
        state.shared_at.set((index + 1) % CELLS);
        (next(&state.shared_cells), Taken { index, used: state.shared_used[index].replace(call) })
    }

    /// Cells of each member's ring that were used so far.
    #[inline(always)]
    pub(in crate::coll) fn own_cells(&self) -> u64 {
        self.state.own_cells.get()
    }

    /// The call that used a cell of the members' rings last.
    #[inline(always)]
    pub(in crate::coll) fn own_used(&self, cell: u64) -> u64 {
        self.state.own_used[(cell % CELLS as u64) as usize].get()
    }

    /// Notes that `call` has used the next cells of the members' rings.
    #[inline(always)]
    pub(in crate::coll) fn use_own(&self, call: u64, cells: usize) {
        let state = &self.state;
        let first = state.own_cells.get();
        for k in 0..cells as u64 {
            state.own_used[((first + k) % CELLS as u64) as usize].set(call);
        }
        state.own_cells.set(first + cells as u64);
    }

    /// Takes so many neighbouring cells of the members' rings, at most all: the number of what goes into the first one (the
    /// following ones have the following numbers), its place, and the last call that used one of them.
    pub(in crate::coll) fn own_run(&self, call: u64, cells: usize) -> (u64, usize, u64) {
        debug_assert!((1..=CELLS).contains(&cells));
        let state = &self.state;
        let mut first = state.own_cells.get();
        if first as usize % CELLS + cells > CELLS {
            first = first.next_multiple_of(CELLS as u64);
        }
        let at = first as usize % CELLS;
        let run = &state.own_used[at..at + cells];
        let used = run.iter().map(|used| used.replace(call)).max().unwrap_or(0);
        state.own_cells.set(first + cells as u64);
        (first + 1, at, used)
    }

    /// Notes that a member has published for `call`, so it has done with all calls before.
    #[inline(always)]
    pub(in crate::coll) fn saw(&self, member: usize, call: u64) {
        let known = &self.state.known[member];
        known.set(known.get().max(call - 1));
    }

    /// Scratch memory of `bytes`.
    pub(in crate::coll) fn scratch(&self, bytes: usize) -> Lent<'_> {
        let mut scratch = self.state.scratch.take();
        scratch.reserve(bytes);
        Lent(&self.state, scratch)
    }
}
