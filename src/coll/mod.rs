//! Collective calls: barrier, broadcast, reduce, allreduce.
//!
//! On a node the shared memory is the broadcast hardware. The members of a communicator share an [`arena`], in which each word has
//! one writer; flags carry payloads that fit into their line, short payloads go through cells that stay in the caches, and long ones are
//! copied once, by everybody at the same time, from where they are.
//!
//! | file | what it does |
//! |---|---|
//! | `arena` | the shared memory: what lies where |
//! | `team` | the members, waiting for each other, the loss of one |
//! | `barrier`, `bcast`, `reduce` | the algorithms |
//! | `copies` | reaching into another member's memory |
//! | `function`, `kernel` | what elements are reduced with |
//! | `choose` | which algorithm, by size and number of members |

mod arena;
mod barrier;
mod bcast;
mod choose;
mod copies;
pub mod function;
mod kernel;
mod reduce;
mod team;

use std::sync::Mutex;

pub use function::Function;
use team::Team;

use crate::base::atomics::{AtomicPtr, Ordering};
use crate::base::error::{Code, Error, Result};
use crate::lane::table::COMMUNICATORS;
use crate::p2p::endpoint::{Endpoint, endpoint};

/// The teams of this process, at the places of their communicators' handles.
static TEAMS: [AtomicPtr<Team>; COMMUNICATORS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; COMMUNICATORS];
static MAKING: Mutex<()> = Mutex::new(());

/// The team of a communicator, made at its first collective call.
#[inline(always)]
fn team(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    // SYNC POINT: pairs with the release in `make`.
    let team = TEAMS[comm as usize & (COMMUNICATORS - 1)].load(Ordering::Acquire);
    // SAFETY: a leaked box, freed by `forget` or `close` when no thread uses the communicator any more.
    match unsafe { team.as_ref() } {
        Some(team) if team.comm == comm => Ok(team),
        _ => make(ep, comm),
    }
}

#[cold]
fn make(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    let context = ep.context(comm)?;
    let _one = MAKING.lock().unwrap_or_else(|e| e.into_inner());
    let slot = &TEAMS[comm as usize & (COMMUNICATORS - 1)];
    let mut team = slot.load(Ordering::Acquire);
    if team.is_null() {
        team = Box::into_raw(Box::new(Team::new(ep, context)?));
        slot.store(team, Ordering::Release);
    }
    // SAFETY: as above.
    Ok(unsafe { &*team })
}

/// Teams of communicators that this process has freed and whose memory, which it hosts, others may still use.
static LEAVING: Mutex<Vec<AtomicPtr<Team>>> = Mutex::new(Vec::new());

/// This process has freed a communicator: so is what its collective calls needed, as soon as all members have freed it.
///
/// # Safety
/// No thread of this process is in a collective call of it, and none comes any more.
pub unsafe fn forget(comm: i32) -> Result<()> {
    let team = TEAMS[comm as usize & (COMMUNICATORS - 1)].swap(core::ptr::null_mut(), Ordering::AcqRel);
    if !team.is_null() {
        LEAVING.lock().unwrap_or_else(|e| e.into_inner()).push(AtomicPtr::new(team));
    }
    sweep()
}

/// Gives back the memory of teams whose members have all freed the communicator.
pub fn sweep() -> Result<()> {
    let mut leaving = LEAVING.lock().unwrap_or_else(|e| e.into_inner());
    let over = leaving.extract_if(.., |team| {
        // SAFETY: from `make`; it is in the list as long as it lives.
        unsafe { &*team.load(Ordering::Relaxed) }.is_over()
    });
    // SAFETY: from `make`, and nobody uses it any more.
    over.map(|team| unsafe { Box::from_raw(team.into_inner()) }.free()).fold(Ok(()), Result::and)
}

/// The end of the job: no collective call comes any more.
///
/// # Safety
/// No thread is in a collective call.
pub unsafe fn close() {
    let leaving = std::mem::take(&mut *LEAVING.lock().unwrap_or_else(|e| e.into_inner()));
    for slot in TEAMS.iter().chain(&leaving) {
        let team = slot.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !team.is_null() {
            // SAFETY: from `make`, and nobody uses it any more.
            drop(unsafe { Box::from_raw(team) });
        }
    }
}

/// A call of a team while it lasts.
struct InCall(&'static Team);

impl InCall {
    #[inline(always)]
    fn enter(team: &'static Team, call: &str) -> Result<InCall> {
        // Finds out what a program does wrong; that one thread at a time calls is the interface's demand.
        if team.busy.load(Ordering::Acquire) {
            return Err(busy(team, call));
        }
        team.busy.store(true, Ordering::Relaxed);
        let entered = InCall(team);
        if let Some(error) = team.arena().map_or(None, |arena| team.failure(arena)) {
            return Err(error);
        }
        Ok(entered)
    }
}

impl Drop for InCall {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

#[cold]
fn busy(team: &Team, call: &str) -> Error {
    Error::new(
        Code::Busy,
        format!(
            "rank {}: {call} while another collective call of communicator {} is under way",
            team.ep.rank, team.comm
        ),
    )
}

/// `fmpl_barrier`: returns when all ranks of the communicator have called it.
#[inline]
pub fn barrier(comm: i32) -> Result<()> {
    let ep = endpoint()?;
    let team = match team(ep, comm) {
        // Some members share no memory with this one: by messages.
        Err(e) if e.code() == Code::Unsupported => return crate::comm::job::meet_all(ep, comm),
        team => team?,
    };
    if team.n == 1 {
        return Ok(());
    }
    let _in = InCall::enter(team, "barrier")?;
    team.run(barrier::barrier(team))
}

/// `fmpl_bcast`: `len` bytes at `ptr` of `root` come to `ptr` everywhere.
///
/// # Safety
/// `len` bytes at `ptr`, readable at the root and writable elsewhere.
pub unsafe fn bcast(comm: i32, ptr: *mut u8, len: usize, root: i32) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let root = check_root(team, root, "bcast")?;
    check_buffer(team, ptr, len, "bcast")?;
    if len == 0 || team.n == 1 {
        return Ok(());
    }
    let _in = InCall::enter(team, "bcast")?;
    // SAFETY: as the caller promises.
    team.run(unsafe { bcast::bcast(team, ptr, len, root) })
}

/// `fmpl_reduce`: the root's vector becomes x0 ∘ x1 ∘ …, the others' stay as they are.
///
/// # Safety
/// `count` elements at `ptr`, writable at the root.
pub unsafe fn reduce(comm: i32, ptr: *mut u8, count: i32, f: &Function<'_>, root: i32) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let root = check_root(team, root, "reduce")?;
    // SAFETY: as the caller promises.
    unsafe { reduced(team, ptr, count, f, reduce::To::Root(root), "reduce") }
}

/// `fmpl_allreduce`: everybody's vector becomes x0 ∘ x1 ∘ ….
///
/// # Safety
/// `count` writable elements at `ptr`.
pub unsafe fn allreduce(comm: i32, ptr: *mut u8, count: i32, f: &Function<'_>) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    // SAFETY: as the caller promises.
    unsafe { reduced(team, ptr, count, f, reduce::To::All, "allreduce") }
}

#[inline]
unsafe fn reduced(
    team: &'static Team,
    ptr: *mut u8,
    count: i32,
    f: &Function<'_>,
    to: reduce::To,
    call: &str,
) -> Result<()> {
    let n = usize::try_from(count)
        .map_err(|_| Error::new(Code::Argument, format!("rank {}: {call} of {count} elements", team.ep.rank)))?;
    if f.size > function::ELEMENT_MOST {
        return Err(Error::new(
            Code::Argument,
            format!(
                "rank {}: {call} of elements of {} bytes; the most is {}",
                team.ep.rank,
                f.size,
                function::ELEMENT_MOST
            ),
        ));
    }
    check_buffer(team, ptr, n * f.size, call)?;
    if n * f.size == 0 || team.n == 1 {
        return Ok(());
    }
    let _in = InCall::enter(team, call)?;
    // SAFETY: as the caller promises.
    team.run(unsafe { reduce::reduce(team, ptr, n, f, to) })
}

fn check_root(team: &Team, root: i32, call: &str) -> Result<usize> {
    usize::try_from(root).ok().filter(|r| *r < team.n).ok_or_else(|| {
        Error::new(
            Code::Rank,
            format!("rank {}: {call} with root {root} in communicator {} of {} ranks", team.ep.rank, team.comm, team.n),
        )
    })
}

fn check_buffer(team: &Team, ptr: *mut u8, len: usize, call: &str) -> Result<()> {
    if len != 0 && (ptr.is_null() || len > isize::MAX as usize) {
        return Err(Error::new(Code::Argument, format!("rank {}: {call} of {len} bytes at {ptr:p}", team.ep.rank)));
    }
    Ok(())
}
