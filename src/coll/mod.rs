//! Collective calls: barrier, broadcast, reductions, and exchanges of blocks.
//!
//! On a node the shared memory is the broadcast hardware. The members of a communicator share an [`arena`], in which each word has
//! one writer; flags carry payloads that fit into their line, short payloads go through cells that stay in the caches, and long ones are
//! copied once, by everybody at the same time, from where they are.
//!
//! | file | what it does |
//! |---|---|
//! | `arena` | the shared memory: what lies where |
//! | `team` | the members, waiting for each other, the loss of one |
//! | `between`, `tree`, `messages` | members on several nodes: who talks with whom; the algorithms; what they talk with |
//! | `multicast` | broadcast between nodes by a multicast group |
//! | `barrier`, `bcast`, `reduce` | the algorithms of the calls of these names, and of allreduce |
//! | `exchange` | gather, allgather, scatter, alltoall |
//! | `partial` | reduce-scatter, scan |
//! | `group` | a reduction in a group that is chosen for it |
//! | `request` | calls that do not wait |
//! | `copies` | reaching into another member's memory |
//! | `function`, `kernel` | what elements are reduced with |
//! | `choose` | which algorithm, by size and number of members |

mod arena;
mod barrier;
mod bcast;
mod between;
mod choose;
mod copies;
mod exchange;
pub mod function;
mod group;
mod kernel;
mod messages;
#[cfg(loom)]
pub mod model;
mod multicast;
mod partial;
mod reduce;
mod request;
mod team;
mod tree;

use exchange::{Blocks, Pattern};
pub use function::Function;
pub use request::{Kind, iallreduce, ibarrier, ibcast, is_pending, join, left_over, test, wait};
use team::Team;

use crate::base::atomics::{AtomicPtr, Ordering};
use crate::base::error::{Code, Error, Result};
use crate::base::lock::Mutex;
use crate::base::trace::traced;
#[cfg(feature = "trace")]
use crate::base::trace::{Event, What, note};
use crate::lane::table::COMMUNICATORS;
use crate::p2p::endpoint::{Endpoint, endpoint};

/// What a process has of its collective calls.
struct Process {
    /// The teams, at the places of their communicators' handles.
    teams: [AtomicPtr<Team>; COMMUNICATORS],
    making: Mutex<()>,
    /// Teams of communicators that this process has freed and whose memory, which it hosts, others may still use.
    leaving: Mutex<Vec<AtomicPtr<Team>>>,
    open: request::Open,
}

impl Process {
    const fn new() -> Process {
        let teams = [const { AtomicPtr::new(core::ptr::null_mut()) }; COMMUNICATORS];
        Process { teams, making: Mutex::new(()), leaving: Mutex::new(Vec::new()), open: request::Open::new() }
    }
}

static PROCESS: Process = Process::new();

/// This process's; in a test with simulated processes that of the one that runs.
#[inline(always)]
fn process() -> &'static Process {
    #[cfg(all(test, not(any(loom, miri))))]
    if let Some(own) = crate::base::simulation::own(Process::new) {
        return own;
    }
    &PROCESS
}

/// The team of a communicator, made at its first collective call.
#[inline(always)]
fn team(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    // SYNC POINT: pairs with the release in `make`.
    let team = process().teams[comm as usize & (COMMUNICATORS - 1)].load(Ordering::Acquire);
    // SAFETY: a leaked box, freed by `forget` or `close` when no thread uses the communicator any more.
    match unsafe { team.as_ref() } {
        Some(team) if team.comm == comm => Ok(team),
        _ => make(ep, comm),
    }
}

#[cold]
fn make(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    let context = ep.context(comm)?;
    let _one = process().making.lock().unwrap_or_else(|e| e.into_inner());
    let slot = &process().teams[comm as usize & (COMMUNICATORS - 1)];
    let mut team = slot.load(Ordering::Acquire);
    if team.is_null() {
        team = Box::into_raw(Box::new(Team::new(ep, context)?));
        slot.store(team, Ordering::Release);
    }
    // SAFETY: as above.
    Ok(unsafe { &*team })
}

/// This process has freed a communicator: so is what its collective calls needed, as soon as all members have freed it.
///
/// # Safety
/// No thread of this process is in a collective call of it, and none comes any more.
pub unsafe fn forget(comm: i32) -> Result<()> {
    let team = process().teams[comm as usize & (COMMUNICATORS - 1)].swap(core::ptr::null_mut(), Ordering::AcqRel);
    if !team.is_null() {
        process().leaving.lock().unwrap_or_else(|e| e.into_inner()).push(AtomicPtr::new(team));
    }
    sweep()
}

/// Gives back the memory of teams whose members have all freed the communicator.
pub fn sweep() -> Result<()> {
    let mut leaving = process().leaving.lock().unwrap_or_else(|e| e.into_inner());
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
    request::close();
    let leaving = std::mem::take(&mut *process().leaving.lock().unwrap_or_else(|e| e.into_inner()));
    for slot in process().teams.iter().chain(&leaving) {
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
    fn enter(team: &'static Team, call: &'static str) -> Result<InCall> {
        let entered = InCall::hold(team, call)?;
        if let Some(error) = team.known_failure() {
            return Err(error);
        }
        Ok(entered)
    }

    /// The same for a call that does not need all members.
    #[inline(always)]
    fn hold(team: &'static Team, call: &'static str) -> Result<InCall> {
        // Finds out what a program does wrong; that one thread at a time calls is the interface's demand.
        if team.busy.load(Ordering::Acquire) {
            return Err(busy(team, call));
        }
        team.busy.store(true, Ordering::Relaxed);
        traced!(note(Event { comm: team.comm, ..Event::new(What::CallBegins, call) }));
        Ok(InCall(team))
    }
}

impl Drop for InCall {
    #[inline(always)]
    fn drop(&mut self) {
        traced!(note(Event::new(What::CallEnds, "")));
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
    let team = team(ep, comm)?;
    let _in = InCall::enter(team, "barrier")?;
    if team.whole == 1 {
        return Ok(());
    }
    match &team.span {
        None => team.run(barrier::barrier(team)),
        Some(span) => team.run(between::barrier(team, span)),
    }
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
    let _in = InCall::enter(team, "bcast")?;
    if len == 0 || team.whole == 1 {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match &team.span {
            None => team.run(bcast::bcast(team, ptr, len, root)),
            Some(span) => team.run(between::bcast(team, span, ptr, len, root)),
        }
    }
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
    call: &'static str,
) -> Result<()> {
    let n = check_vector(team, ptr, count, 1, f, call)?;
    let _in = InCall::enter(team, call)?;
    if n * f.size == 0 || team.whole == 1 {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match &team.span {
            None => team.run(reduce::reduce(team, ptr, n, f, to)),
            Some(span) => team.run(between::reduce(team, span, ptr, n, f, to)),
        }
    }
}

/// `fmpl_gather`: `size` bytes at `give` of each rank come to `take` of the root, in the order of the ranks.
///
/// # Safety
/// `size` bytes at `give`; at the root room for as many of each rank at `take`, which overlaps with `give` at most where the root's own
/// bytes belong.
pub unsafe fn gather(comm: i32, give: *const u8, size: usize, take: *mut u8, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "gather")?;
    // SAFETY: as the caller promises.
    unsafe { exchanged(team, Pattern::Gather(root), Blocks { give, take, size }, "gather") }
}

/// `fmpl_allgather`: `size` bytes at `give` of each rank come to `take` of all ranks, in the order of the ranks.
///
/// # Safety
/// As for [`gather`], at every rank.
pub unsafe fn allgather(comm: i32, give: *const u8, size: usize, take: *mut u8) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { exchanged(team(endpoint()?, comm)?, Pattern::Allgather, Blocks { give, take, size }, "allgather") }
}

/// `fmpl_scatter`: of the blocks of `size` bytes at `give` of the root each rank gets its own at `take`.
///
/// # Safety
/// A block for each rank at the root's `give`; room for one at `take`, which overlaps with `give` at most where the root's own block
/// lies.
pub unsafe fn scatter(comm: i32, give: *const u8, size: usize, take: *mut u8, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "scatter")?;
    // SAFETY: as the caller promises.
    unsafe { exchanged(team, Pattern::Scatter(root), Blocks { give, take, size }, "scatter") }
}

/// `fmpl_alltoall`: block k of `size` bytes at `give` comes to rank k, at `take` in the order of the ranks.
///
/// # Safety
/// A block for each rank at `give`, room for a block of each at `take`; the two do not overlap.
pub unsafe fn alltoall(comm: i32, give: *const u8, size: usize, take: *mut u8) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { exchanged(team(endpoint()?, comm)?, Pattern::Alltoall, Blocks { give, take, size }, "alltoall") }
}

unsafe fn exchanged(team: &'static Team, pattern: Pattern, b: Blocks, call: &'static str) -> Result<()> {
    let me = team.rank;
    let bytes = |blocks: usize| b.size.saturating_mul(blocks);
    if pattern.gives(me) || pattern.keeps(me) {
        check_buffer(team, b.give, bytes(pattern.blocks(team.whole)), call)?;
    }
    if pattern.takes(me) || pattern.keeps(me) {
        check_buffer(team, b.take, bytes(if matches!(pattern, Pattern::Scatter(_)) { 1 } else { team.whole }), call)?;
    }
    let _in = InCall::enter(team, call)?;
    if b.size == 0 {
        return Ok(());
    }
    if team.whole == 1 {
        // SAFETY: as the caller promises.
        unsafe { exchange::keep(pattern, me, b) };
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match &team.span {
            None => team.run(exchange::exchange(team, pattern, b)),
            Some(_) => team.run(between::exchange(team, pattern, b)),
        }
    }
}

/// `fmpl_reduce_scatter`: of the vectors at `give`, a block of `count` elements for each rank, the block of this rank comes to
/// `take`, reduced.
///
/// # Safety
/// A block for each rank at `give`, room for one at `take`; the two do not overlap.
pub unsafe fn reduce_scatter(comm: i32, give: *const u8, take: *mut u8, count: i32, f: &Function<'_>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    check_vector(team, give, count, team.whole, f, "reduce_scatter")?;
    let n = check_vector(team, take, count, 1, f, "reduce_scatter")?;
    let _in = InCall::enter(team, "reduce_scatter")?;
    if n * f.size == 0 {
        return Ok(());
    }
    if team.whole == 1 {
        // SAFETY: as the caller promises.
        unsafe { take.copy_from_nonoverlapping(give, n * f.size) };
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match &team.span {
            None => team.run(partial::reduce_scatter(team, give, take, n, f)),
            Some(_) => team.run(between::reduce_scatter(team, give, take, n, f)),
        }
    }
}

/// `fmpl_scan`: the vector of rank k becomes x0 ∘ x1 ∘ … ∘ xk.
///
/// # Safety
/// `count` writable elements at `ptr`.
pub unsafe fn scan(comm: i32, ptr: *mut u8, count: i32, f: &Function<'_>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let n = check_vector(team, ptr, count, 1, f, "scan")?;
    let _in = InCall::enter(team, "scan")?;
    if n * f.size == 0 || team.whole == 1 {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match &team.span {
            None => team.run(partial::scan(team, ptr, n, f)),
            Some(_) => team.run(between::scan(team, ptr, n, f)),
        }
    }
}

/// `fmpl_mcast_reduce`: the ranks of a bitmap (bit r % 64 of word r / 64: rank r), of which this is one, combine their vectors in the
/// order of the ranks; that of `root`, one of them, becomes the result. Nobody else takes part.
///
/// # Safety
/// `count` elements at `ptr`, writable at the root; a word for each 64 ranks at `bits`.
pub unsafe fn mcast_reduce(
    comm: i32,
    ptr: *mut u8,
    count: i32,
    f: &Function<'_>,
    bits: *const u64,
    root: i32,
) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let n = check_vector(team, ptr, count, 1, f, "mcast_reduce")?;
    check_root(team, root, "mcast_reduce")?;
    let wrong = |what: &str| Error::new(Code::Argument, format!("rank {}: mcast_reduce: {what}", team.ep.rank));
    if bits.is_null() {
        return Err(wrong("no bitmap"));
    }
    // SAFETY: as the caller promises.
    let bits = unsafe { std::slice::from_raw_parts(bits, team.whole.div_ceil(64)) };
    let who: Vec<u32> = (0..64 * bits.len() as u32).filter(|r| bits[*r as usize / 64] >> (r % 64) & 1 == 1).collect();
    if who.last().is_some_and(|last| *last as usize >= team.whole) {
        return Err(Error::new(Code::Rank, format!("rank {}: mcast_reduce: a bit beyond the last rank", team.ep.rank)));
    }
    if !who.contains(&(team.rank as u32)) {
        return Err(wrong("this rank is no member"));
    }
    let Some(root) = who.iter().position(|r| *r == root as u32) else { return Err(wrong("the root is no member")) };
    let _in = InCall::hold(team, "mcast_reduce")?;
    if n * f.size == 0 || who.len() == 1 {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    team.run(unsafe { group::reduce(team, who, root, ptr, n, f) })
}

/// The number of elements of a block; there are so many blocks at `ptr`.
fn check_vector(team: &Team, ptr: *const u8, count: i32, blocks: usize, f: &Function<'_>, call: &str) -> Result<usize> {
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
    check_buffer(team, ptr, n * f.size * blocks, call)?;
    Ok(n)
}

fn check_root(team: &Team, root: i32, call: &str) -> Result<usize> {
    usize::try_from(root).ok().filter(|r| *r < team.whole).ok_or_else(|| {
        Error::new(
            Code::Rank,
            format!(
                "rank {}: {call} with root {root} in communicator {} of {} ranks",
                team.ep.rank, team.comm, team.whole
            ),
        )
    })
}

fn check_buffer(team: &Team, ptr: *const u8, len: usize, call: &str) -> Result<()> {
    if len != 0 && (ptr.is_null() || len > isize::MAX as usize) {
        return Err(Error::new(Code::Argument, format!("rank {}: {call} of {len} bytes at {ptr:p}", team.ep.rank)));
    }
    Ok(())
}
