//! Collective calls that do not wait: begun by one call, completed by a test or a wait.
//!
//! A communicator has at most one collective call under way, so its name is the communicator's, and no request object is needed. The
//! call is the future that a waiting call runs; a test polls it, and so does whatever else of this process waits meanwhile
//! (`WaitingSends::push`), so two ranks that wait for other things first do not wait for ever.
//!
//! A panic of the program's function is the call's outcome: whoever moved it on goes on with what he was at, and the test or wait that
//! completes the call is left by the panic.

use core::future::Future;
use core::pin::Pin;
use std::panic::resume_unwind;

use super::function::Function;
use super::team::Team;
use super::{InCall, barrier, bcast, between, check_room, check_root, check_vector, process, reduce, team};
use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::unwinding::Panic;
use crate::p2p::endpoint::endpoint;

/// Which call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `fmpl_ibarrier`
    Barrier,
    /// `fmpl_ibcast`
    Bcast,
    /// `fmpl_iallreduce`
    Allreduce,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "ibarrier",
            Kind::Bcast => "ibcast",
            Kind::Allreduce => "iallreduce",
        }
    }
}

type Call = Pin<Box<dyn Future<Output = Result<()>>>>;

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

/// Moves all of them on. `true`: some are left.
fn push() -> bool {
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

fn begin(team: &'static Team, kind: Kind, call: Option<Call>) -> Result<()> {
    let entered = InCall::enter(team, kind.name())?;
    team.ep.waiting_sends.beside(push);
    let state = call.map_or(State::Over(Ok(())), State::Runs);
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

/// `fmpl_ibarrier`
pub fn ibarrier(comm: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let call = (team.whole > 1).then(|| match &team.span {
        None => Box::pin(barrier::barrier(team)) as Call,
        Some(span) => Box::pin(between::barrier(team, span)),
    });
    begin(team, Kind::Barrier, call)
}

/// `fmpl_ibcast`
pub fn ibcast(comm: i32, data: Room<'static>, len: usize, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "ibcast")?;
    let data = check_room(team, data, len, "ibcast")?;
    let call = (len != 0 && team.whole > 1).then(|| match &team.span {
        None => Box::pin(bcast::bcast(team, data, root)) as Call,
        Some(span) => Box::pin(between::bcast(team, span, data, root)),
    });
    begin(team, Kind::Bcast, call)
}

/// `fmpl_iallreduce`
pub fn iallreduce(comm: i32, data: Room<'static>, count: i32, f: Function<'static>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let moves = check_vector(team, data, count, &f, "iallreduce")?.bytes() != 0 && team.whole > 1;
    let call = async move {
        let v = check_vector(team, data, count, &f, "iallreduce")?;
        match &team.span {
            None => reduce::reduce(team, v, reduce::To::All).await,
            Some(span) => between::reduce(team, span, v, reduce::To::All).await,
        }
    };
    begin(team, Kind::Allreduce, moves.then(|| Box::pin(call) as Call))
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
pub fn join(comm: i32, kind: Kind) -> std::thread::Result<Result<()>> {
    let mut panic = None;
    let done = complete(comm, kind, true, &mut panic).map(|_| ());
    panic.map_or(Ok(done), Err)
}

fn complete(comm: i32, kind: Kind, wait: bool, panic: &mut Option<Panic>) -> Result<bool> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let mut slot = team.pending.lock().unwrap_or_else(|e| e.into_inner());
    let Some(pending) = slot.as_mut().filter(|p| p.kind == kind) else {
        return Err(Error::new(
            Code::Request,
            format!("rank {}: no {} of communicator {comm} is pending", ep.rank, kind.name()),
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

/// Has a communicator a call that is not completed?
pub fn is_pending(comm: i32) -> bool {
    open().iter().any(|team| team.comm == comm)
}

/// How many calls are not completed.
pub fn left_over() -> usize {
    open().len()
}

/// The end of the job: nothing is moved on any more.
pub(super) fn close() {
    open().clear();
    process().open.count.store(0, Ordering::Release);
}
