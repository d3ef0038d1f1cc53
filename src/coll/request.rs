//! Collective calls that do not wait: begun by one call, completed by a test or a wait.
//!
//! A communicator has at most one such call under way, so its name is the communicator's, and no request object is needed (several have
//! [`ticket`]s). The call is the future that a waiting call runs; a test polls it, and so does whatever else of this process waits meanwhile
//! (`WaitingSends::push`), so two ranks that wait for other things first do not wait for ever.
//!
//! A panic of the program's function is the call's outcome: whoever moved it on goes on with what he was at, and the test or wait that
//! completes the call is left by the panic.

use std::panic::resume_unwind;

use super::ask::{Ask, Call, Kind};
use super::team::Team;
use super::{InCall, Ticket, process, team, ticket};
use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::error::{Code, Result, error};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::named::Named;
use crate::base::unwinding::Panic;
use crate::p2p::endpoint::endpoint;

/// A call that is not completed.
pub(super) struct Pending {
    kind: Kind,
    state: State,
}

enum State {
    Runs(Call),
    Over(Result<()>),
}

// SAFETY: what the call points to is the team, which threads share, and the program's buffers, which are the call's until it is
// completed; the function of a reduction may be called by whatever thread of the process moves the call on, as its interface says.
unsafe impl Send for Pending {}

/// The teams that have one, for whoever moves them on by the way, and how many they are.
pub(super) struct Open {
    teams: Mutex<Vec<&'static Team>>,
    count: AtomicU32,
}

impl Open {
    pub const fn new() -> Open {
        Open { teams: Mutex::new(Vec::new()), count: AtomicU32::new(0) }
    }
}

fn open() -> MutexGuard<'static, Vec<&'static Team>> {
    process().open.teams.lock().unwrap_or_else(|e| e.into_inner())
}

/// Moves all calls that do not wait on. `true`: some are left.
pub(super) fn push() -> bool {
    push_single() | ticket::push()
}

fn push_single() -> bool {
    if process().open.count.load(Ordering::Acquire) == 0 {
        return false;
    }
    // Somebody else is at it.
    let Ok(open) = process().open.teams.try_lock() else { return true };
    let mut left = false;
    for team in open.iter() {
        // A wait or a test of its own has it otherwise.
        if let Ok(mut pending) = team.pending.try_lock()
            && let Some(pending) = pending.as_mut()
        {
            left |= !step(team, pending);
        }
    }
    left
}

/// Polls a call once. Is it over?
fn step(team: &'static Team, pending: &mut Pending) -> bool {
    if let State::Runs(call) = &mut pending.state {
        match team.poll(call.as_mut()) {
            Some(done) => pending.state = State::Over(done),
            None => return false,
        }
    }
    true
}

/// `fmpl_ibarrier` and its like
pub fn begin(comm: i32, ask: Ask) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let kind = ask.kind();
    let asked = ask.check(team)?;
    let entered = InCall::enter(team, kind.name())?;
    team.ep.waiting_sends.beside(push);
    let state = asked.in_turn(team).map_or(State::Over(Ok(())), State::Runs);
    let mut pending = Pending { kind, state };
    step(team, &mut pending);
    *team.pending.lock().unwrap_or_else(|e| e.into_inner()) = Some(pending);
    let mut open = open();
    open.push(team);
    process().open.count.store(open.len() as u32, Ordering::Release);
    // The call lasts until it is completed.
    core::mem::forget(entered);
    Ok(())
}

/// Completes a call if that takes no waiting. `true`, every error, and a panic of its function, by which it is left: it is over.
pub fn test(comm: i32, kind: Kind) -> Result<bool> {
    let mut panic = None;
    let done = complete(comm, kind, false, &mut panic);
    panic.map_or(done, |panic| resume_unwind(panic))
}

/// Completes a call; left by the panic of its function, if that is how it has ended.
pub fn wait(comm: i32, kind: Kind) -> Result<()> {
    join(comm, kind).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Completes a call; the panic of its function is returned.
fn join(comm: i32, kind: Kind) -> std::thread::Result<Result<()>> {
    let mut panic = None;
    let done = complete(comm, kind, true, &mut panic).map(|_| ());
    panic.map_or(Ok(done), Err)
}

fn complete(comm: i32, kind: Kind, wait: bool, panic: &mut Option<Panic>) -> Result<bool> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let mut slot = team.pending.lock().unwrap_or_else(|e| e.into_inner());
    let Some(pending) = slot.as_mut().filter(|p| p.kind == kind) else {
        return Err(error!(
            Code::Request,
            "rank {}: no {} of communicator {comm} is pending",
            ep.rank,
            kind.name(),
            comm = Named(comm)
        ));
    };
    if !wait {
        ep.waiting_sends.push(ep);
    }
    if !step(team, pending) {
        if !wait {
            return Ok(false);
        }
        if let State::Runs(call) = &mut pending.state {
            pending.state = State::Over(team.bring_to_its_end(call.as_mut()));
        }
    }
    let done = match slot.take().map(|p| p.state) {
        Some(State::Over(done)) => done,
        _ => Ok(()),
    };
    drop(slot);
    let mut open = open();
    open.retain(|t| !std::ptr::eq(*t, team));
    process().open.count.store(open.len() as u32, Ordering::Release);
    drop(open);
    *panic = team.take_panic();
    // As `begin` entered.
    drop(InCall(team));
    done.map(|()| true)
}

/// A call of a communicator that is begun, by its name.
#[derive(Clone, Copy, Debug)]
pub enum Begun {
    /// The one of this kind.
    Single(Kind),
    /// One of several.
    Apart(Ticket),
}

impl Begun {
    /// The one with a ticket, if that is one; the single one of this kind where it means nothing: calls without tickets need none.
    pub fn named(kind: Kind, comm: i32, ticket: u64) -> Begun {
        let apart = Ticket(ticket);
        // Who has it otherwise is completing it.
        let of_kind =
            |team: &Team| team.pending.try_lock().map_or(true, |p| p.as_ref().is_some_and(|p| p.kind == kind));
        let is_single = || open().iter().any(|team| team.comm == comm && of_kind(team));
        match ticket {
            0 => Begun::Single(kind),
            _ if !apart.is_begun() && is_single() => Begun::Single(kind),
            _ => Begun::Apart(apart),
        }
    }

    /// As [`test()`].
    pub fn test(self, comm: i32) -> Result<bool> {
        match self {
            Begun::Single(kind) => test(comm, kind),
            Begun::Apart(ticket) => ticket.test(),
        }
    }

    /// As [`wait`].
    pub fn wait(self, comm: i32) -> Result<()> {
        match self {
            Begun::Single(kind) => wait(comm, kind),
            Begun::Apart(ticket) => ticket.wait(),
        }
    }

    /// As [`join`].
    pub fn join(self, comm: i32) -> std::thread::Result<Result<()>> {
        match self {
            Begun::Single(kind) => join(comm, kind),
            Begun::Apart(ticket) => ticket.join(),
        }
    }
}

/// Has a communicator a call that is not completed?
pub fn is_pending(comm: i32) -> bool {
    open().iter().any(|team| team.comm == comm) || ticket::is_pending(comm)
}

/// How many calls are not completed.
pub fn left_over() -> usize {
    open().len() + ticket::left_over()
}

/// The end of the job: nothing is moved on any more.
pub(super) fn close() {
    ticket::close();
    open().clear();
    process().open.count.store(0, Ordering::Release);
}
