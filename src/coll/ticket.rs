//! Several collective calls of one communicator under way at a time, each with a ticket.
//!
//! Such a call is apart from all others: its messages go between all ranks, within a node as well, on one of the slots that a lane has for
//! that. So several are under way at the same time and end in any order; and calls that wait, and one without a ticket, which have the
//! arena and slots of their own, need not wait for them.
//!
//! ```text
//!  call     1    2    3    4    5    6    7    8    9    10   …      all members begin them in this order, so the numbers agree
//!  slot     1    2    3    4    5    6    7    0    1    2           9 begins to move when 1 is over here
//! ```
//!
//! All members' calls come to a slot in the same order, and a lane keeps the order of the messages of a slot: so no message is taken for
//! another call's, though members are at different ones. A call whose slot is still another's stays as it was asked until that one is over;
//! whoever waits for it moves that one on as well.
//!
//! A call is a future. Whatever waits in this process polls all of them; who waits for one of them waits in its messages.

use core::task::{Context, Poll, Waker};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;

use super::ask::{Ask, Call, Kind};
use super::team::{Own, Team};
use super::{process, request, team};
use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::named::Named;
use crate::base::unwinding::{NoWayOut, Panic};
use crate::lane::map::{TICKET_SLOT, TICKET_SLOTS};
use crate::p2p::endpoint::endpoint;

/// How many calls of a communicator may be begun and not completed.
pub const TICKETS: usize = 64;

/// The name of a call: its communicator, and which it is of those begun with tickets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Never 0, which is no ticket.
    fn new(comm: i32, number: u64) -> Ticket {
        Ticket((comm as u64) << 32 | (number % u64::from(u32::MAX) + 1))
    }
    fn comm(self) -> i32 {
        (self.0 >> 32) as i32
    }
    fn is_of(self, call: &Begun) -> bool {
        call.name == self
    }
}

/// The calls that are not completed, as they were begun.
pub(super) struct Open {
    list: Mutex<Vec<Arc<Begun>>>,
    /// How many: read without the lock, and late at worst.
    count: AtomicU32,
}

impl Open {
    pub const fn new() -> Open {
        Open { list: Mutex::new(Vec::new()), count: AtomicU32::new(0) }
    }
}

struct Begun {
    team: &'static Team,
    name: Ticket,
    slot: usize,
    state: Mutex<State>,
}

enum State {
    /// It is dropped before what it has of its own.
    Runs(Call, Rc<Own>),
    Over(Result<()>, Option<Panic>),
    Completed,
}

// SAFETY: what the call points to is the team, which threads share, the program's buffers, which are the call's until it is completed, and
// what it has of its own, both of whose owners are in here, so that who has the lock has both; the function of a reduction may be called by whatever thread of the
// process moves the call on, as its interface says.
unsafe impl Send for State {}

impl Begun {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn is_over(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| !matches!(*state, State::Runs(..)))
    }
    fn shares_slot(&self, other: &Begun) -> bool {
        self.slot == other.slot && std::ptr::eq(self.team, other.team)
    }

    /// Polls it once, or until it is over. Is it?
    fn poll(&self, state: &mut State, wait: bool) -> bool {
        let State::Runs(call, own) = state else { return true };
        // The one before it on its slot may have failed: this one would take messages of that one's, and others this one's for it.
        if !own.moves.replace(true)
            && let Some(error) = self.team.failure_of(own)
        {
            *state = State::Over(Err(error), None);
            return true;
        }
        own.patient.set(wait);
        let guard = NoWayOut("a collective call");
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        guard.open();
        let done = match polled {
            Poll::Ready(done) => done,
            // Who hears of a loss in another call does not go on with this one, and others may wait for the lost one in it.
            Poll::Pending => match self.team.failure_of(own) {
                Some(error) => Err(error),
                None => return false,
            },
        };
        let panic = own.panic.take();
        // Messages that are under way are given up.
        *state = State::Over(done, panic);
        true
    }

    fn bring_to_its_end(&self, state: &mut State) {
        while !self.poll(state, true) {
            crate::base::thread::yield_core();
        }
    }
}

fn open() -> MutexGuard<'static, Vec<Arc<Begun>>> {
    process().tickets.list.lock().unwrap_or_else(|e| e.into_inner())
}

fn recount(list: &[Arc<Begun>]) {
    process().tickets.count.store(list.len() as u32, Ordering::Relaxed);
}

/// Those that must be over before a call moves.
fn before(list: &[Arc<Begun>], at: usize) -> impl Iterator<Item = &Arc<Begun>> {
    list[..at].iter().filter(move |other| other.shares_slot(&list[at]))
}

/// Moves a call on if that takes no waiting. Is nothing left to be done for it here?
fn step(list: &[Arc<Begun>], at: usize) -> bool {
    // Who has it otherwise is at it.
    let Ok(mut state) = list[at].state.try_lock() else { return true };
    match *state {
        State::Runs(..) => before(list, at).all(|other| other.is_over()) && list[at].poll(&mut state, false),
        _ => true,
    }
}

/// Moves all of them on. `true`: some are left.
pub(super) fn push() -> bool {
    if process().tickets.count.load(Ordering::Relaxed) == 0 {
        return false;
    }
    // Somebody else is at it.
    let Ok(list) = process().tickets.list.try_lock() else { return true };
    (0..list.len()).fold(false, |left, at| left | !step(&list, at))
}

/// `fmpl_ibarrier_n` and its like
pub fn begin(comm: i32, ask: Ask) -> Result<Ticket> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let kind = ask.kind();
    let asked = ask.check(team)?;
    let own = Rc::new(Own { name: Some(kind.name()), ..Own::default() });
    if let Some(error) = team.failure_of(&own) {
        return Err(error);
    }
    ep.waiting_sends.beside(request::push);
    let mut list = open();
    if list.iter().filter(|call| call.name.comm() == comm).count() >= TICKETS {
        return Err(too_many(team, kind));
    }
    let number = team.tickets.fetch_add(1, Ordering::Relaxed) + 1;
    let slot = TICKET_SLOT + number as usize % TICKET_SLOTS;
    let state = match asked.apart(team, slot, own.clone()) {
        Some(call) => State::Runs(call, own),
        None => State::Over(Ok(()), None),
    };
    let name = Ticket::new(comm, number);
    list.push(Arc::new(Begun { team, name, slot, state: Mutex::new(state) }));
    recount(&list);
    let last = list.len() - 1;
    step(&list, last);
    Ok(name)
}

#[cold]
fn too_many(team: &Team, kind: Kind) -> Error {
    let (me, comm) = (team.ep.rank, Named(team.comm));
    error!(
        Code::Busy,
        "rank {me}: {}: {TICKETS} collective calls of communicator {comm} are begun and not completed",
        kind.name()
    )
}

impl Ticket {
    /// Is there such a call that is not completed?
    pub fn is_begun(self) -> bool {
        open().iter().any(|call| call.name == self)
    }

    /// Completes a call if that takes no waiting. `true`, every error, and a panic of its function, by which it is left: it is over.
    pub fn test(self) -> Result<bool> {
        let mut panic = None;
        let done = self.complete(false, &mut panic);
        panic.map_or(done, |panic| resume_unwind(panic))
    }

    /// Completes a call; left by the panic of its function, if that is how it has ended.
    pub fn wait(self) -> Result<()> {
        self.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Completes a call; the panic of its function is returned.
    pub fn join(self) -> std::thread::Result<Result<()>> {
        let mut panic = None;
        let done = self.complete(true, &mut panic).map(|_| ());
        panic.map_or(Ok(done), Err)
    }

    fn complete(self, wait: bool, panic: &mut Option<Panic>) -> Result<bool> {
        let ep = endpoint()?;
        if !wait {
            ep.waiting_sends.push(ep);
        }
        let no_call = || {
            let text = format!("rank {}: no collective call with the ticket {:#x} is pending", ep.rank, self.0);
            Error::new(Code::Request, text)
        };
        let (call, earlier) = {
            let list = open();
            let at = list.iter().position(|call| self.is_of(call)).ok_or_else(no_call)?;
            (list[at].clone(), if wait { before(&list, at).cloned().collect() } else { Vec::new() })
        };
        for other in earlier {
            other.bring_to_its_end(&mut other.state());
        }
        let mut state = match wait {
            true => call.state(),
            // Somebody is at it.
            false => match call.state.try_lock() {
                Ok(state) => state,
                Err(_) => return Ok(false),
            },
        };
        if wait {
            call.bring_to_its_end(&mut state);
        }
        let done = match core::mem::replace(&mut *state, State::Completed) {
            State::Over(done, by) => {
                *panic = by;
                done
            }
            State::Completed => return Err(no_call()),
            runs => {
                *state = runs;
                return Ok(false);
            }
        };
        drop(state);
        let mut list = open();
        list.retain(|other| !Arc::ptr_eq(other, &call));
        recount(&list);
        done.map(|()| true)
    }
}

/// Has a communicator a call that is not completed?
pub(super) fn is_pending(comm: i32) -> bool {
    open().iter().any(|call| call.name.comm() == comm)
}

/// How many calls are not completed.
pub(super) fn left_over() -> usize {
    open().len()
}

/// The end of the job: nothing is moved on any more.
pub(super) fn close() {
    let calls = core::mem::take(&mut *open());
    recount(&[]);
    drop(calls);
}
