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
//! | `uneven` | the same of blocks of different lengths |
//! | `neighbours` | exchanges with neighbours on a grid |
//! | `partial` | reduce-scatter, scan, exscan |
//! | `group` | a reduction in a group that is chosen for it |
//! | `ask` | what calls that do not wait are asked for |
//! | `request` | one of them under way |
//! | `ticket` | several |
//! | `copies` | reaching into another member's memory |
//! | `function` | what elements are reduced with |
//! | `choose` | which algorithm, by size and number of members |

mod arena;
mod ask;
mod barrier;
mod bcast;
mod between;
mod choose;
mod copies;
mod exchange;
pub mod function;
mod group;
mod messages;
#[cfg(loom)]
pub mod model;
mod multicast;
mod neighbours;
mod partial;
mod reduce;
mod request;
mod team;
mod ticket;
mod tree;
mod uneven;

pub use ask::{Ask, Elements, Kind, Sides};
use exchange::{Blocks, Pattern};
pub use function::Function;
use function::Vector;
pub use request::{Begun, begin, is_pending, left_over, test, wait};
use team::Team;
pub use ticket::{TICKETS, Ticket, begin as begin_apart};
pub use uneven::{Sizes, allgatherv, alltoallv, gatherv, scatterv};

use crate::base::atomics::Ordering;
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error};
use crate::base::leaked::Leaked;
use crate::base::lock::Mutex;
use crate::base::named::Named;
use crate::base::trace::traced;
#[cfg(feature = "trace")]
use crate::base::trace::{Event, What, note};
use crate::base::unused::Unused;
use crate::lane::table::COMMUNICATORS;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::Operation;

/// What a process has of its collective calls.
struct Process {
    making: Mutex<()>,
    /// Teams of communicators that this process has freed and whose memory, which it hosts, others may still use.
    #[expect(clippy::vec_box, reason = "large, and rarely more than none")]
    leaving: Mutex<Vec<Box<Team>>>,
    open: request::Open,
    tickets: ticket::Open,
}

impl Process {
    const fn new() -> Process {
        Process {
            making: Mutex::new(()),
            leaving: Mutex::new(Vec::new()),
            open: request::Open::new(),
            tickets: ticket::Open::new(),
        }
    }
}

static PROCESS: Process = Process::new();

/// The teams, at the places of their communicators' handles.
type Teams = [Leaked<Team>; COMMUNICATORS];

const fn no_teams() -> Teams {
    [const { Leaked::none() }; COMMUNICATORS]
}

// Nothing but zeros, so it takes no room in the library's file.
static TEAMS: Teams = no_teams();

/// This process's; in a test with simulated processes that of the one that runs.
#[inline(always)]
fn process() -> &'static Process {
    #[cfg(all(test, not(any(loom, miri))))]
    if let Some(own) = crate::base::simulation::own(Process::new) {
        return own;
    }
    &PROCESS
}

/// This process's, as for [`process`].
#[inline(always)]
fn teams() -> &'static Teams {
    #[cfg(all(test, not(any(loom, miri))))]
    if let Some(own) = crate::base::simulation::own(no_teams) {
        return own;
    }
    &TEAMS
}

#[inline(always)]
fn slot(comm: i32) -> &'static Leaked<Team> {
    &teams()[comm as usize & (COMMUNICATORS - 1)]
}

/// The team of a communicator, made at its first collective call.
#[inline(always)]
fn team(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    match slot(comm).get() {
        Some(team) if team.comm == comm => Ok(team),
        _ => make(ep, comm),
    }
}

#[cold]
fn make(ep: &'static Endpoint, comm: i32) -> Result<&'static Team> {
    let context = ep.context(comm)?;
    let _one = process().making.lock().unwrap_or_else(|e| e.into_inner());
    match slot(comm).get() {
        Some(team) => Ok(team),
        None => Ok(slot(comm).put(Team::new(ep, context)?)),
    }
}

/// This process has freed a communicator: so is what its collective calls needed, as soon as all members have freed it.
pub fn forget(comm: i32, unused: &Unused) -> Result<()> {
    process().leaving.lock().unwrap_or_else(|e| e.into_inner()).extend(slot(comm).take(unused));
    sweep()
}

/// Gives back the memory of teams whose members have all freed the communicator.
pub fn sweep() -> Result<()> {
    let mut leaving = process().leaving.lock().unwrap_or_else(|e| e.into_inner());
    leaving.extract_if(.., |team| team.is_over()).map(|team| team.free()).fold(Ok(()), Result::and)
}

/// The end of the job: no collective call comes any more.
pub fn close(unused: &Unused) {
    request::close();
    process().leaving.lock().unwrap_or_else(|e| e.into_inner()).clear();
    teams().iter().for_each(|slot| drop(slot.take(unused)));
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
    error!(
        Code::Busy,
        "rank {}: {call} while another collective call of communicator {} is under way",
        team.ep.rank,
        Named(team.comm)
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

/// `fmpl_bcast`: `len` bytes of `root` come to all ranks.
pub fn bcast(comm: i32, data: Room<'_>, len: usize, root: i32) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let root = check_root(team, root, "bcast")?;
    let data = check_room(team, data, len, "bcast")?;
    let _in = InCall::enter(team, "bcast")?;
    if len == 0 || team.whole == 1 {
        return Ok(());
    }
    match &team.span {
        None => team.run(bcast::bcast(team, data, root)),
        Some(span) => team.run(between::bcast(team, span, data, root)),
    }
}

/// `fmpl_reduce`: the root's vector of `count` elements becomes x0 ∘ x1 ∘ …, the others' stay as they are.
pub fn reduce(comm: i32, data: Room<'_>, count: i32, f: &Function<'_>, root: i32) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let root = check_root(team, root, "reduce")?;
    reduced(team, data, count, f, reduce::To::Root(root), "reduce")
}

/// `fmpl_allreduce`: everybody's vector of `count` elements becomes x0 ∘ x1 ∘ ….
pub fn allreduce(comm: i32, data: Room<'_>, count: i32, f: &Function<'_>) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    reduced(team, data, count, f, reduce::To::All, "allreduce")
}

#[inline]
fn reduced(
    team: &'static Team,
    data: Room<'_>,
    count: i32,
    f: &Function<'_>,
    to: reduce::To,
    call: &'static str,
) -> Result<()> {
    let v = check_vector(team, data, count, f, call)?;
    let _in = InCall::enter(team, call)?;
    if v.bytes() == 0 || team.whole == 1 {
        return Ok(());
    }
    match &team.span {
        None => team.run(reduce::reduce(team, v, to)),
        Some(span) => team.run(between::reduce(team, span, v, to)),
    }
}

/// `fmpl_gather`: `size` bytes of each rank come to `take` of the root, in the order of the ranks. `take` overlaps with `give` at most where
/// the root's own bytes belong.
pub fn gather(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "gather")?;
    exchanged(team, Pattern::Gather(root), Blocks { give, take, size }, "gather")
}

/// `fmpl_allgather`: `size` bytes of each rank come to `take` of all ranks, in the order of the ranks. They overlap as for [`gather`].
pub fn allgather(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>) -> Result<()> {
    exchanged(team(endpoint()?, comm)?, Pattern::Allgather, Blocks { give, take, size }, "allgather")
}

/// `fmpl_scatter`: of the blocks of `size` bytes at `give` of the root each rank gets its own at `take`, which overlaps with `give` at most
/// where the root's own block lies.
pub fn scatter(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "scatter")?;
    exchanged(team, Pattern::Scatter(root), Blocks { give, take, size }, "scatter")
}

/// `fmpl_alltoall`: block k of `size` bytes at `give` comes to rank k, at `take` in the order of the ranks. The two do not overlap.
pub fn alltoall(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>) -> Result<()> {
    exchanged(team(endpoint()?, comm)?, Pattern::Alltoall, Blocks { give, take, size }, "alltoall")
}

/// The memory that this member has a part in.
fn check_blocks<'a>(team: &Team, pattern: Pattern, b: Blocks<'a>, call: &str) -> Result<Blocks<'a>> {
    let me = team.rank;
    let (mut give, mut take) = (Bytes::none(), Room::none());
    if pattern.gives(me) || pattern.keeps(me) {
        give = check_bytes(team, b.give, b.size.saturating_mul(pattern.blocks(team.whole)), call)?;
    }
    if pattern.takes(me) || pattern.keeps(me) {
        let blocks = if matches!(pattern, Pattern::Scatter(_)) { 1 } else { team.whole };
        take = check_room(team, b.take, b.size.saturating_mul(blocks), call)?;
    }
    Ok(Blocks { give, take, ..b })
}

fn exchanged(team: &'static Team, pattern: Pattern, b: Blocks<'_>, call: &'static str) -> Result<()> {
    let b = check_blocks(team, pattern, b, call)?;
    let _in = InCall::enter(team, call)?;
    if b.size == 0 {
        return Ok(());
    }
    if team.whole == 1 {
        exchange::keep(pattern, team.rank, b);
        return Ok(());
    }
    match &team.span {
        None => team.run(exchange::exchange(team, pattern, b)),
        Some(_) => team.run(between::exchange(team, pattern, b)),
    }
}

/// `fmpl_neighbour_alltoall`: a block of `size` bytes to each neighbour on the communicator's grid, and one from each; `one`: the same to all
/// (`fmpl_neighbour_allgather`). What would come from beyond an edge is not touched. The two do not overlap.
pub fn neighbours(comm: i32, give: Bytes<'_>, one: bool, size: usize, take: Room<'_>) -> Result<()> {
    let ep = endpoint()?;
    let team = team(ep, comm)?;
    let call = if one { Operation::NeighbourAllgather } else { Operation::NeighbourAlltoall }.name();
    let none = || error!(Code::Comm, "rank {}: {call}: communicator {comm} is no grid", ep.rank, comm = Named(comm));
    let grid = ep.context(comm)?.grid.get().ok_or_else(none)?;
    let neighbours: Vec<_> = grid.neighbours(team.rank as u32).collect();
    let all = size.saturating_mul(neighbours.len());
    let (give, take) =
        (check_bytes(team, give, if one { size } else { all }, call)?, check_room(team, take, all, call)?);
    let _in = InCall::enter(team, call)?;
    if size == 0 {
        return Ok(());
    }
    team.run(neighbours::Halo { neighbours, give, one, take, size }.exchange(team))
}

/// `fmpl_exscan`: the vector of `count` elements of rank k becomes x0 ∘ x1 ∘ … ∘ x(k-1); that of rank 0 stays.
pub fn exscan(comm: i32, data: Room<'_>, count: i32, f: &Function<'_>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let v = check_vector(team, data, count, f, "exscan")?;
    let _in = InCall::enter(team, "exscan")?;
    if v.bytes() == 0 || team.whole == 1 {
        return Ok(());
    }
    team.run(partial::exscan(team, v))
}

/// `fmpl_reduce_scatter`: of the vectors at `give`, a block of `count` elements for each rank, the block of this rank comes to
/// `take`, reduced. The two do not overlap.
pub fn reduce_scatter(comm: i32, give: Bytes<'_>, take: Room<'_>, count: i32, f: &Function<'_>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let take = check_vector(team, take, count, f, "reduce_scatter")?;
    let give = check_bytes(team, give, take.bytes().saturating_mul(team.whole), "reduce_scatter")?;
    let _in = InCall::enter(team, "reduce_scatter")?;
    if take.bytes() == 0 {
        return Ok(());
    }
    if team.whole == 1 {
        take.at.copy_from(give);
        return Ok(());
    }
    match &team.span {
        None => team.run(partial::reduce_scatter(team, give, take)),
        Some(_) => team.run(between::reduce_scatter(team, give, take)),
    }
}

/// `fmpl_scan`: the vector of `count` elements of rank k becomes x0 ∘ x1 ∘ … ∘ xk.
pub fn scan(comm: i32, data: Room<'_>, count: i32, f: &Function<'_>) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let v = check_vector(team, data, count, f, "scan")?;
    let _in = InCall::enter(team, "scan")?;
    if v.bytes() == 0 || team.whole == 1 {
        return Ok(());
    }
    match &team.span {
        None => team.run(partial::scan(team, v)),
        Some(_) => team.run(between::scan(team, v)),
    }
}

/// `fmpl_mcast_reduce`: the ranks of a bitmap (bit r % 64 of word r / 64: rank r), of which this is one, combine their vectors in the
/// order of the ranks; that of `root`, one of them, becomes the result. Nobody else takes part. `bits` has a word for each 64 ranks, or
/// is empty: there is no bitmap.
pub fn mcast_reduce(comm: i32, data: Room<'_>, count: i32, f: &Function<'_>, bits: Bytes<'_>, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let v = check_vector(team, data, count, f, "mcast_reduce")?;
    check_root(team, root, "mcast_reduce")?;
    let who = members(team, bits, "mcast_reduce")?;
    let Some(root) = who.iter().position(|r| *r == root as u32) else {
        return Err(error!(Code::Argument, "rank {}: mcast_reduce: the root is no member", team.ep.rank));
    };
    let _in = InCall::hold(team, "mcast_reduce")?;
    if v.bytes() == 0 || who.len() == 1 {
        return Ok(());
    }
    team.run(group::reduce(team, who, root, v))
}

/// `fmpl_mcast_alltoall`: block k of `size` bytes at `give` comes to the k-th member of such a bitmap, of which this rank is one, at `take` in the
/// order of the members. The two do not overlap.
pub fn mcast_alltoall(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>, bits: Bytes<'_>) -> Result<()> {
    let (team, call) = (team(endpoint()?, comm)?, "mcast_alltoall");
    let who = members(team, bits, call)?;
    let all = size.checked_mul(who.len());
    let all = all.ok_or_else(|| error!(Code::Argument, "rank {}: {call}: size overflows", team.ep.rank))?;
    let (give, take) = (check_bytes(team, give, all, call)?, check_room(team, take, all, call)?);
    let _in = InCall::hold(team, call)?;
    if size == 0 {
        return Ok(());
    }
    team.run(group::alltoall(team, who, exchange::Blocks { give, take, size }))
}

/// The members of a bitmap, of which this rank is one.
fn members(team: &Team, bits: Bytes<'_>, call: &str) -> Result<Vec<u32>> {
    let wrong = |what: &str| error!(Code::Argument, "rank {}: {call}: {what}", team.ep.rank);
    if bits.is_empty() {
        return Err(wrong("no bitmap"));
    }
    let mut words = vec![0u64; team.whole.div_ceil(64)];
    let bits = check_bytes(team, bits, size_of_val(&words[..]), call)?;
    Room::of(&mut words).copy_from(bits);
    let who: Vec<u32> = (0..64 * words.len() as u32).filter(|r| words[*r as usize / 64] >> (r % 64) & 1 == 1).collect();
    if who.last().is_some_and(|last| *last as usize >= team.whole) {
        return Err(error!(Code::Rank, "rank {}: {call}: a bit beyond the last rank", team.ep.rank));
    }
    if !who.contains(&(team.rank as u32)) {
        return Err(wrong("this rank is no member"));
    }
    Ok(who)
}

/// The vector of so many elements.
fn check_vector<'a>(team: &Team, at: Room<'a>, count: i32, f: &'a Function<'a>, call: &str) -> Result<Vector<'a>> {
    let n = usize::try_from(count)
        .map_err(|_| error!(Code::Argument, "rank {}: {call} of {count} elements", team.ep.rank))?;
    if f.size > function::ELEMENT_MOST {
        return Err(error!(
            Code::Argument,
            "rank {}: {call} of elements of {} bytes; the most is {}",
            team.ep.rank,
            f.size,
            function::ELEMENT_MOST
        ));
    }
    Ok(Vector::new(check_room(team, at, n * f.size, call)?, n, f))
}

fn check_root(team: &Team, root: i32, call: &str) -> Result<usize> {
    usize::try_from(root).ok().filter(|r| *r < team.whole).ok_or_else(|| {
        error!(
            Code::Rank,
            "rank {}: {call} with root {root} in communicator {} of {} ranks",
            team.ep.rank,
            Named(team.comm),
            team.whole
        )
    })
}

/// The first `len` bytes, if there are so many.
fn check_bytes<'a>(team: &Team, at: Bytes<'a>, len: usize, call: &str) -> Result<Bytes<'a>> {
    if len > at.len() {
        let (have, at) = (at.len(), at.as_ptr());
        let text = format!("rank {}: {call} of {len} bytes, where there are {have} (at {at:p})", team.ep.rank);
        return Err(Error::new(Code::Argument, text));
    }
    Ok(at.part(0, len))
}

/// The same of room.
fn check_room<'a>(team: &Team, at: Room<'a>, len: usize, call: &str) -> Result<Room<'a>> {
    check_bytes(team, *at, len, call).map(|_| at.part(0, len))
}
