//! The life of global memory: made by all ranks together, renumbered, met in, and left.

use std::sync::Mutex;

use super::command::Served;
use super::queue::Queue;
use super::record::{COMMANDS_AT, WINDOW_BYTES, Window, ring};
use super::registry::Registry;
use super::view::{BOUNCE, Views};
use super::{ALL, Rma, Split, Starter};
use crate::base::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::base::error::{Code, Error, Result};
use crate::coll;
use crate::fabric::shm::region::RMA_AT;
use crate::p2p::COMM_WORLD;
use crate::p2p::any_source::ring::Ring;
use crate::p2p::endpoint::{Endpoint, endpoint};

static RMA: AtomicPtr<Rma> = AtomicPtr::new(core::ptr::null_mut());
/// Opening and closing take turns.
static LIFE: Mutex<()> = Mutex::new(());

/// This process's global memory, or the error of a call before it is there.
#[inline(always)]
pub fn rma() -> Result<&'static Rma> {
    // SYNC POINT: pairs with the release in `open`.
    let rma = RMA.load(Ordering::Acquire);
    if rma.is_null() {
        return Err(absent());
    }
    // A process that was forked has the pointer, but no part in the job.
    endpoint()?;
    // SAFETY: a leaked box, freed by the last `close`; calls at the same time as that are outside the interface.
    Ok(unsafe { &*rma })
}

#[cold]
fn absent() -> Error {
    Error::new(Code::Init, "call acp_init (in Rust, Global::open) first, and nothing after the last acp_finalize")
}

/// Makes this rank's global memory; collective: returns when all ranks have theirs. Counted: a further call succeeds. The job must
/// have been joined for it, once for each call.
pub fn open() -> Result<&'static Rma> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    if let Ok(rma) = rma() {
        rma.uses.fetch_add(1, Ordering::AcqRel);
        return Ok(rma);
    }
    let rma: &'static Rma = Box::leak(Box::new(Rma::new(endpoint()?)?));
    rma.announce();
    RMA.store(core::ptr::from_ref(rma).cast_mut(), Ordering::Release);
    if let Err(error) = coll::barrier(COMM_WORLD) {
        rma.leave();
        return Err(error);
    }
    Ok(rma)
}

/// Leaves global memory, if this is the last close; collective. Completes all operations of this rank; when it returns, no rank uses
/// this one's memory any more.
pub fn close() -> Result<()> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    let rma = rma()?;
    if rma.uses.load(Ordering::Acquire) > 1 {
        rma.uses.fetch_sub(1, Ordering::AcqRel);
        return Ok(());
    }
    let completed = rma.complete(ALL);
    // From here on nobody has an operation under way that needs this rank, or of this rank.
    let met = coll::barrier(COMM_WORLD);
    rma.own.header().digest.store(0, Ordering::Release);
    // Nobody may find the memory used for something else while another still looks.
    let met = met.and_then(|()| coll::barrier(COMM_WORLD));
    rma.leave();
    met.and(completed)
}

/// Waits for all ranks.
pub fn sync() -> Result<()> {
    rma()?;
    coll::barrier(COMM_WORLD)
}

/// Begins anew with another number for this rank; collective. All registrations end, starter memory is zero. `Argument`, at all ranks:
/// the numbers are not those from 0 to size - 1, each once; then the ranks keep the numbers that they have.
pub fn reset(number: i32) -> Result<()> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    rma()?.renumber(number)
}

impl Rma {
    fn new(ep: &'static Endpoint) -> Result<Rma> {
        let split = Split::of(ep.size, ep.config.rma_keys)?;
        let own = Window::new(ep.region.map(RMA_AT, WINDOW_BYTES)?);
        let slots = ep.config.rma_commands;
        let served = Served::new(ring(ep.region.map(COMMANDS_AT, Ring::bytes(slots))?, slots));
        let len = ep.config.rma_starter;
        let starter = Starter { at: ep.heap.alloc(len)?, len };
        own.header().commands.store(slots as u64, Ordering::Relaxed);
        Ok(Rma {
            ep,
            split,
            own,
            number: AtomicU32::new(ep.rank),
            renumbered: AtomicBool::new(false),
            views: Views::new(ep.config.rma_peers.min((ep.size as usize).next_power_of_two())),
            registry: Mutex::new(Registry::new(ep.config.rma_keys)),
            starter,
            // Number 1 is the handle of what is over before anything had to wait.
            issued: AtomicU64::new(1),
            oldest: AtomicU64::new(u64::MAX),
            failed: AtomicU32::new(0),
            queue: Mutex::new(Queue::new()),
            served: Mutex::new(served),
            helper: Mutex::new(None),
            has_helper: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            uses: AtomicU32::new(1),
        })
    }

    /// Shows the starter memory, empty, and then that all is ready.
    fn announce(&self) {
        // SAFETY: the heap's block of that length; nobody uses it yet, or any more.
        unsafe { self.starter.at.write_bytes(0, self.starter.len) };
        self.fill(0, self.starter.at, self.starter.len, 0, true);
        let header = self.own.header();
        header.rank_claim.store(u64::from(self.ep.rank) + 1, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `open_view`.
        header.digest.store(self.split.digest(), Ordering::Release);
    }

    /// The end: nobody uses this rank's memory, and this rank nobody's.
    fn leave(&'static self) {
        self.own.header().digest.store(0, Ordering::Release);
        self.stop_helper();
        RMA.store(core::ptr::null_mut(), Ordering::Release);
        let bounce = self.own.entry(BOUNCE as usize).base.load(Ordering::Relaxed) as *mut u8;
        for memory in [self.starter.at, bounce] {
            let _ = self.ep.heap.free(memory);
        }
        let _ = self.ep.region.punch(RMA_AT, WINDOW_BYTES as u64);
        // SAFETY: leaked in `open`, no longer to be found; the helper has ended, and the interface forbids calls at the same time.
        drop(unsafe { Box::from_raw(core::ptr::from_ref(self).cast_mut()) });
    }

    /// The rank in the world of a number.
    pub(super) fn world_of(&self, number: u32) -> Result<u32> {
        if !self.renumbered.load(Ordering::Acquire) {
            return Ok(number);
        }
        // Who has the number says so where the process of that rank in the world keeps its records.
        let claim = self.window_of(number)?.header().rank_claim.load(Ordering::Acquire);
        match u32::try_from(claim).ok().and_then(|c| c.checked_sub(1)).filter(|w| *w < self.ep.size) {
            Some(world) => Ok(world),
            None => Err(self.peer_error(number, "has left global memory", "first use")),
        }
    }

    /// The number of a rank of the world.
    pub(super) fn number_of(&self, world: u32) -> u32 {
        if !self.renumbered.load(Ordering::Acquire) {
            return world;
        }
        let has = |number: &u32| self.world_of(*number).is_ok_and(|w| w == world);
        (0..self.ep.size).find(has).unwrap_or(world)
    }

    fn renumber(&'static self, number: i32) -> Result<()> {
        let size = self.ep.size;
        let header = self.own.header();
        let completed = self.complete(ALL);
        // Nobody has an operation under way. All stay in step from here on, whatever is wrong with a number.
        coll::barrier(COMM_WORLD)?;
        let before = header.rank_claim.swap(0, Ordering::AcqRel);
        if self.ep.rank == 0 {
            header.failed.store(0, Ordering::Release);
        }
        coll::barrier(COMM_WORLD)?;
        let claimed = u32::try_from(number).ok().filter(|n| *n < size).map_or(Ok(false), |n| {
            let (window, mine) = (self.window_of(n)?, u64::from(self.ep.rank) + 1);
            Ok(window.header().rank_claim.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire).is_ok())
        });
        let judge = self.window_of(0);
        if !matches!(claimed, Ok(true))
            && let Ok(judge) = &judge
        {
            judge.header().failed.store(1, Ordering::Release);
        }
        coll::barrier(COMM_WORLD)?;
        let failed = judge?.header().failed.load(Ordering::Acquire) != 0;
        if failed {
            header.rank_claim.store(before, Ordering::Release);
        } else {
            self.begin_anew(number as u32)?;
        }
        coll::barrier(COMM_WORLD)?;
        claimed?;
        if failed {
            let text = format!(
                "rank {}: reset({number}): the new numbers of the ranks are not 0 to {}, each once; all keep what they have",
                self.rank(),
                size - 1
            );
            return Err(Error::new(Code::Argument, text));
        }
        completed
    }

    /// Takes the new number; nothing of the old is left.
    fn begin_anew(&'static self, number: u32) -> Result<()> {
        // It may still be waking whom it has answered.
        self.stop_helper();
        self.views.clear();
        self.number.store(number, Ordering::Release);
        self.renumbered.store(true, Ordering::Release);
        let mut registry = self.registry.lock().unwrap_or_else(|e| e.into_inner());
        for n in 1..self.split.keys() {
            let life = &self.own.entry(n).life;
            let turn = life.load(Ordering::Relaxed) >> super::record::Entry::TURN_AT;
            if turn != 0 {
                life.store(turn << super::record::Entry::TURN_AT, Ordering::Release);
            }
        }
        *registry = Registry::new(self.ep.config.rma_keys);
        // SAFETY: the heap's block of that length; all ranks are here, between two barriers, and use nothing.
        unsafe { self.starter.at.write_bytes(0, self.starter.len) };
        Ok(())
    }
}
