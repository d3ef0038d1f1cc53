//! The life of a job: init, finalize, abort; and the calls that are about all of its ranks.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, Once, PoisonError};

use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::{Layout, Run};
use crate::base::system;
use crate::base::unused::Unused;
use crate::coll;
use crate::comm::{awaiting, shared_window, stats};
use crate::fabric::areas;
use crate::lane::map::{FINALIZE_SLOT, SYSTEM_INDICES};
use crate::lane::{Lane, RECV_PENDING, SEND_PENDING};
use crate::launch;
use crate::launch::find::How;
use crate::p2p::context::Context;
use crate::p2p::endpoint::{self, Endpoint, endpoint};
use crate::p2p::{receive, send, signal};
use crate::rma;

/// Init and finalize take turns.
static LIFE: Mutex<()> = Mutex::new(());

/// `fmpl_init`: joins the job with `count` indices for each peer. Counted: a further call succeeds, and the largest count holds.
pub fn init_raw(count: i32) -> Result<()> {
    init_by(How::Find, count)
}

/// Memory of the program's for what peers on other nodes write, in a job on several nodes; otherwise it is left alone. It is the library's
/// until the last finalize.
///
/// # Safety
/// Nobody uses it until then.
pub unsafe fn lend_area(area: Run) -> Result<()> {
    if endpoint()?.fabric_here().is_some() {
        areas::lend(area);
    }
    Ok(())
}

/// The same by ranks that the program says, or has in an identifier. In a process that is in its job already they must be those of the job, and
/// nobody is asked.
pub fn init_by(how: How<'_>, count: i32) -> Result<()> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    if count < 0 {
        return Err(error!(Code::Argument, "fmpl_init with a count of {count} indices"));
    }
    let said = match how {
        How::Find => None,
        How::With(rank, size, _) | How::Id(_, rank, size) => Some((rank, size)),
    };
    if let Some((rank, size)) = said.filter(|(rank, size)| rank >= size) {
        return Err(error!(Code::Argument, "init as rank {rank} of {size} ranks"));
    }
    if !endpoint::is_open() {
        system::hold_standard_descriptors();
        return Endpoint::open(how, count as usize).map(stats::begin);
    }
    let ep = endpoint()?;
    match said.filter(|said| *said != (ep.rank, ep.size)) {
        None => ep.join_again(count as usize),
        Some((rank, size)) => {
            let text =
                format!("init as rank {rank} of {size} in a process that is rank {} of {} already", ep.rank, ep.size);
            Err(Error::new(Code::Argument, text))
        }
    }
}

/// `fmpl_finalize`: leaves the job when it was called as often as init. Collective: it waits for all ranks, so that everything
/// they will ever receive is received. `Pending` names the first message that nobody received, or request never completed; the
/// job is left all the same, and the process will not end with code 0.
///
/// `unused`: before the last one all requests are completed or their memory stays for ever, and no other thread is in a call of the library.
pub fn finalize_raw(unused: Unused) -> Result<()> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    let ep = endpoint()?;
    if ep.uses.load(Ordering::Acquire) > 1 {
        ep.uses.fetch_sub(1, Ordering::AcqRel);
        return Ok(());
    }
    leave(ep, unused).inspect_err(fail_at_exit)
}

/// The last finalize of a process.
pub(super) fn leave(ep: &'static Endpoint, unused: Unused) -> Result<()> {
    let world = ep.context(crate::p2p::COMM_WORLD)?;
    settle(ep);
    let met = meet(ep, world, FINALIZE_SLOT);
    let left_over = left_over(ep);
    if met.is_ok() && ep.size > 1 {
        // Nobody may take memory away while another still looks at what it left there.
        let _ = meet(ep, world, FINALIZE_SLOT);
    }
    stats::end(ep);
    awaiting::end();
    crate::base::named::forget();
    coll::close(&unused);
    let closed = ep.close();
    met.and(left_over).and(closed)
}

/// What the first finalize that failed said, and in which process.
static FAILED: Mutex<Option<(u32, String)>> = Mutex::new(None);

/// A process whose finalize has failed does not end with code 0, whatever its program looks at: so its launcher, and whoever
/// started the job, hear of it.
#[cold]
fn fail_at_exit(error: &Error) {
    static ONCE: Once = Once::new();
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    failed.get_or_insert_with(|| (std::process::id(), error.to_string()));
    ONCE.call_once(|| {
        system::fail_at_exit(|| {
            let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
            let (pid, text) = failed.as_ref()?;
            // A forked child has nothing to do with it.
            (*pid == std::process::id())
                .then(|| format!("finalize has failed, so this process ends with code 1: {text}"))
        });
    });
}

/// Acknowledges what is received and was to be acknowledged by messages that will not be sent now.
fn settle(ep: &Endpoint) {
    for lane in ep.lanes.hold(|_| true) {
        for slot in 0..lane.limit() as usize {
            receive::settle(&lane, slot);
        }
    }
    ep.any_source.settle(ep);
    ep.settle_fabric();
}

/// The error of a message to another node, the library's own included, that has not arrived and never will: it was posted with success, and its
/// connection has failed since.
fn lost(ep: &Endpoint) -> Result<()> {
    for lane in ep.lanes.hold_remote(|_, remote| !remote.has_left()) {
        let Some(why) = lane.remote().link.failure() else { continue };
        for slot in 0..lane.limit() as usize {
            let sent = lane.progress(slot).sent.load(Ordering::Relaxed);
            if sent != 0 && !received_all(ep, &lane, slot, sent) {
                let index = slot as i32 - SYSTEM_INDICES as i32;
                return Err(lane.peer_error(ep.rank, why, "a message that may not have arrived, to", index));
            }
        }
    }
    Ok(())
}

/// The first thing that was not completed.
fn left_over(ep: &Endpoint) -> Result<()> {
    lost(ep)?;
    let mut first = None;
    let (mut messages, mut requests) = (0u64, 0u64);
    for lane in ep.lanes.hold(|_| true) {
        for slot in SYSTEM_INDICES..lane.limit() as usize {
            let progress = lane.progress(slot);
            let sent = progress.sent.load(Ordering::Relaxed);
            let pending = progress.send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0
                || progress.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0;
            let unreceived = sent != 0 && !received_all(ep, &lane, slot, sent);
            messages += unreceived as u64;
            requests += pending as u64;
            if (unreceived || pending) && first.is_none() {
                first = Some((lane.name((slot - SYSTEM_INDICES) as i32), unreceived));
            }
        }
        if crate::p2p::any_index::is_begun(&lane) {
            requests += 1;
            first = first.or(Some((lane.name(crate::p2p::TAG_ANY), false)));
        }
    }
    let calls = coll::left_over();
    if calls > 0 {
        return Err(error!(
            Code::Pending,
            "rank {}: {calls} collective calls not completed by a wait or a test", ep.rank
        ));
    }
    let (held, unsent) = ep.loans.in_hand();
    if held + unsent > 0 && first.is_none() {
        return Err(error!(
            Code::Pending,
            "rank {}: {held} loans of other ranks are held and {unsent} of its own, received or never sent; fmpl_loan_return gives them back",
            ep.rank
        ));
    }
    let (any_messages, any_requests, any_first) = ep.any_source.left_over();
    if any_messages + any_requests > 0 && first.is_none() {
        let (rank, index) = any_first.map_or((ep.rank, -1), |(rank, index)| (rank, index));
        return Err(error!(
            Code::Pending,
            "rank {}: any-source messages not received, {any_messages} of all senders to (rank {rank}, index {index}) and others; {any_requests} any-source requests not completed",
            ep.rank
        ));
    }
    match first {
        None => Ok(()),
        Some((name, unreceived)) => Err(error!(
            Code::Pending,
            "rank {}: {} {name}; in all {messages} indices with messages that were sent and never received, {requests} requests not completed",
            ep.rank,
            if unreceived { "message not received by" } else { "request not completed on" },
        )),
    }
}

fn received_all(ep: &Endpoint, lane: &Lane, slot: usize, sent: u64) -> bool {
    send::is_consumed(ep, lane, slot, sent)
}

/// `fmpl_initialized`
pub fn initialized() -> bool {
    endpoint::is_open()
}

/// `fmpl_abort`: ends the whole job with this exit code, also from a process that never initialised.
pub fn abort(code: i32) -> ! {
    match endpoint() {
        Ok(ep) => {
            stats::end(ep);
            ep.launch.abort(code)
        }
        Err(_) => std::process::exit(launch::exit_code(code)),
    }
}

/// `fmpl_comm_rank`
pub fn comm_rank(comm: i32) -> Result<i32> {
    Ok(endpoint()?.context(comm)?.group.rank() as i32)
}

/// `fmpl_comm_size`
pub fn comm_size(comm: i32) -> Result<i32> {
    Ok(endpoint()?.context(comm)?.group.size() as i32)
}

/// Waits for all ranks of the world, by messages between pairs. On one node by dissemination: in round k each rank tells the rank 2^k
/// further on, so log2 of the size rounds (Hensgen, Finkel, Manber 1988). One slot does for all rounds, since each has other partners.
fn meet(ep: &'static Endpoint, world: &Context, slot: usize) -> Result<()> {
    if ep.has_other_nodes() {
        return meet_by_a_tree(ep, world, slot);
    }
    let (rank, size) = (world.group.rank(), world.group.size());
    let mut distance = 1;
    while distance < size {
        let to = ep.lane_of(world, ((rank + distance) % size) as i32)?;
        let from = ep.lane_of(world, ((rank + size - distance) % size) as i32)?;
        tell(ep, to.lane(), slot)?;
        hear(ep, from.lane(), slot)?;
        distance *= 2;
    }
    Ok(())
}

/// The same where a partner costs a connection: up a tree over all ranks and down again, so that nobody needs more than a few.
fn meet_by_a_tree(ep: &'static Endpoint, world: &Context, slot: usize) -> Result<()> {
    let nodes = ep.launch.nodes();
    let (parent, children) = nodes.in_tree(ep.rank);
    let lane = |rank: u32| ep.lane_of(world, rank as i32);
    let parent = parent.map(lane).transpose()?;
    let children = children.into_iter().map(lane).collect::<Result<Vec<_>>>()?;
    children.iter().try_for_each(|child| hear(ep, child.lane(), slot))?;
    if let Some(parent) = parent {
        tell(ep, parent.lane(), slot)?;
        hear(ep, parent.lane(), slot)?;
    }
    children.iter().try_for_each(|child| tell(ep, child.lane(), slot))
}

fn tell(ep: &'static Endpoint, to: &'static Lane, slot: usize) -> Result<()> {
    if to.remote().is_none() && send::send_inline(to, to.progress(slot), slot, Run::NOTHING) {
        return Ok(());
    }
    signal::signal(ep, to, slot)
}

fn hear(ep: &'static Endpoint, from: &'static Lane, slot: usize) -> Result<()> {
    if from.remote().is_none() && receive::recv_inline::<false>(from, slot, Run::NOTHING) {
        return Ok(());
    }
    from.open_fronts(slot)?;
    receive::recv_on(ep, from, slot, Layout::NOTHING)
}

/// `fmpl_progress`: moves pending sends on that only this process can move. All else moves without its sender.
pub fn progress() -> Result<()> {
    let ep = endpoint()?;
    ep.waiting_sends.push(ep);
    ep.any_source.push(ep);
    Ok(())
}

/// `fmpl_event_fd`: a descriptor that becomes readable when a request that began after this call completes. Read eight bytes from
/// it to make it quiet again, then test the requests.
pub fn event_fd() -> Result<i32> {
    endpoint()?.event().map(|e| e.fd())
}

/// `fmpl_alloc`: memory that peers can reach directly; a send into it is one copy by the sender.
pub fn alloc(size: usize) -> Result<*mut u8> {
    endpoint()?.heap.alloc(size)
}

/// `fmpl_free`: of memory from [`alloc`].
pub fn free(ptr: *mut u8, _unused: Unused) -> Result<()> {
    if ptr.is_null() {
        return Ok(());
    }
    let ep = endpoint()?;
    ep.loans.is_none(ptr)?;
    shared_window::is_none(ep, ptr)?;
    ep.heap.free(ptr)
}

/// `acp_init`: joins the job, and makes this rank's global memory with all others.
pub fn global_open() -> Result<()> {
    init_raw(0)?;
    if let Err(error) = rma::open() {
        // SAFETY: the init was this call's own; if it was the first, nobody knows of it.
        let _ = finalize_raw(unsafe { Unused::promised() });
        return Err(error);
    }
    Ok(())
}

/// `acp_finalize`
pub fn global_close(unused: Unused) -> Result<()> {
    let closed = rma::close(&unused);
    if closed.as_ref().is_err_and(|e| matches!(e.code(), Code::Init | Code::Fork)) {
        return closed;
    }
    let left = finalize_raw(unused);
    closed.and(left)
}

/// The version of this library: major, minor, patch.
pub fn version() -> [u32; 3] {
    let number = |text: &str| text.parse().unwrap_or(0);
    [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")].map(number)
}

/// `fmpl_wtime`: seconds of the node's monotonic clock.
pub fn wtime() -> f64 {
    crate::base::clock::now_ns() as f64 * 1e-9
}
