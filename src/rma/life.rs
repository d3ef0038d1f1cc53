//! The life of global memory: made by all ranks together, renumbered, met in, and left.

use std::sync::Mutex;

use super::device::{Changes, Device};
use super::queue::Queue;
use super::record::{WINDOW_BYTES, Window};
use super::registry::{Entries, Registry};
use super::served::Served;
use super::view::{BOUNCE, Views};
use super::{ALL, Rma, Split};
use crate::base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result};
use crate::base::kernel::{Kind, Operation};
use crate::base::leaked::Leaked;
use crate::base::log::{Level, tell};
use crate::base::run::Run;
use crate::base::unused::Unused;
use crate::coll;
use crate::coll::Function;
use crate::fabric::shm::region::RMA_AT;
use crate::p2p::COMM_WORLD;
use crate::p2p::any_source::share::shares;
use crate::p2p::endpoint::{Endpoint, endpoint};

static RMA: Leaked<Rma> = Leaked::none();
/// Opening and closing take turns.
static LIFE: Mutex<()> = Mutex::new(());
/// Times that it was opened in this process, and so in all.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// What the thread of the fabric rings for.
static RUNG: Mutex<Option<&'static Rma>> = Mutex::new(None);

/// A remote command has come from another node, or a reply.
fn come() {
    if let Some(rma) = *RUNG.lock().unwrap_or_else(|e| e.into_inner()) {
        rma.own.header().replied.fetch_add(1, Ordering::AcqRel);
        // Who cannot have a helper serves when it calls the library.
        let _ = rma.start_helper();
        rma.own.wake();
    }
}

/// This process's global memory, or the error of a call before it is there.
#[inline(always)]
pub fn rma() -> Result<&'static Rma> {
    let rma = RMA.get().ok_or_else(absent)?;
    // A process that was forked has the pointer, but no part in the job.
    endpoint()?;
    Ok(rma)
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
    let rma = Rma::new(endpoint()?)?;
    let announced = rma.announce();
    let rma = RMA.put(rma);
    if rma.device.is_some() {
        let _ = rma.ep.on_command.set(come);
        // Whoever may have drawn a ticket of its ring is asked, when a rank has died.
        rma.ep.fabric_here().inspect(|fabric| fabric.keep_all());
        *RUNG.lock().unwrap_or_else(|e| e.into_inner()) = Some(rma);
    }
    let announced = announced.and_then(|()| rma.serve_others());
    if let Err(error) = announced.and_then(|()| coll::barrier(COMM_WORLD)) {
        // SAFETY: nobody knows of it yet.
        let unused = unsafe { Unused::promised() };
        rma.leave(&unused);
        return Err(error);
    }
    Ok(rma)
}

/// Leaves global memory, if this is the last close; collective. Completes all operations of this rank; when it returns, no rank uses
/// this one's memory any more.
pub fn close(unused: &Unused) -> Result<()> {
    let _one = LIFE.lock().unwrap_or_else(|e| e.into_inner());
    let rma = rma()?;
    if rma.uses.load(Ordering::Acquire) > 1 {
        rma.uses.fetch_sub(1, Ordering::AcqRel);
        return Ok(());
    }
    let completed = rma.completed();
    rma.sum_up();
    // From here on nobody has an operation under way that needs this rank, or of this rank.
    let met = coll::barrier(COMM_WORLD);
    rma.own.header().digest.store(0, Ordering::Release);
    // Nobody may find the memory used for something else while another still looks.
    let met = met.and_then(|()| coll::barrier(COMM_WORLD));
    rma.leave(unused);
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
        let device = Device::new(ep, &own, slots, split.keys())?;
        if let Some(device) = &device {
            device.tell(u64::from(ep.rank) + 1, ep.rank);
            own.header().changes.store(u64::from(device.changes == Changes::Device), Ordering::Relaxed);
        }
        let local = shares(ep.config.spread, ep.launch.local_ranks().len(), slots);
        let served = Served::new(ep, slots, local, device.as_ref().map_or(0, Device::shares))?;
        own.header().shares.store(local as u64, Ordering::Relaxed);
        let len = ep.config.rma_starter;
        // SAFETY: the heap's block of that length, mapped as long as the endpoint; all ranks use it, as the program has them do it.
        let starter = unsafe { Run::new(ep.heap.alloc(len)?, len) };
        own.header().commands.store(slots as u64, Ordering::Relaxed);
        Ok(Rma {
            ep,
            split,
            device,
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            own,
            entries: Entries::new()?,
            number: AtomicU32::new(ep.rank),
            renumbered: AtomicBool::new(false),
            views: Views::new(ep.config.rma_peers.min((ep.size as usize).next_power_of_two())),
            registry: Mutex::new(Registry::new(ep.config.rma_keys)),
            starter,
            // Number 1 is the handle of what is over before anything had to wait.
            issued: AtomicU64::new(1),
            oldest: AtomicU64::new(u64::MAX),
            failed: AtomicU32::new(0),
            said: AtomicU32::new(0),
            delegations: AtomicU64::new(0),
            queue: Mutex::new(Queue::new()),
            served: Mutex::new(served),
            helper: Mutex::new(None),
            has_helper: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            uses: AtomicU32::new(1),
        })
    }

    /// Shows the starter memory, empty, and then that all is ready.
    fn announce(&self) -> Result<()> {
        // Nobody uses it yet, or any more.
        Room::from(self.starter).zero();
        self.fill(0, self.starter.ptr(), self.starter.len(), 0, true)?;
        let header = self.own.header();
        header.rank_claim.store(u64::from(self.ep.rank) + 1, Ordering::Relaxed);
        header.number.store(u64::from(self.ep.rank), Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `open_view`.
        header.digest.store(self.split.digest(), Ordering::Release);
        self.publish_card()
    }

    /// All operations of this rank are over: how they went. Those that were refused are no news.
    fn completed(&'static self) -> Result<()> {
        loop {
            match self.complete(ALL) {
                Ok(()) => return Ok(()),
                Err(failure) if failure.refused => {}
                Err(failure) => return Err(failure.error),
            }
        }
    }

    /// Says how many operations were refused, if not of all something has been said.
    fn sum_up(&self) {
        let (all, said) = (self.ep.refused.load(Ordering::Relaxed), self.said.load(Ordering::Relaxed));
        if said != 0 && all > u64::from(said.count_ones()) {
            let text = format!("{all} operations on global memory were refused or have failed, in all");
            tell(Level::Error, || text);
        }
    }

    /// The end: nobody uses this rank's memory, and this rank nobody's.
    fn leave(&'static self, unused: &Unused) {
        self.own.header().digest.store(0, Ordering::Release);
        *RUNG.lock().unwrap_or_else(|e| e.into_inner()) = None;
        self.stop_helper();
        let bounce = self.entries.of(BOUNCE)[1] as *mut u8;
        let (ep, starter) = (self.ep, self.starter.ptr());
        // The helper has ended.
        drop(RMA.take(unused));
        // From here on the device has nothing of it.
        for memory in [starter, bounce] {
            let _ = ep.heap.free(memory);
        }
        let _ = ep.region.punch(RMA_AT, WINDOW_BYTES as u64);
    }

    /// The rank in the world of a number.
    pub(super) fn world_of(&self, number: u32) -> Result<u32> {
        if !self.renumbered.load(Ordering::Acquire) {
            return Ok(number);
        }
        // Who has the number says so where the process of that rank in the world keeps its records.
        let (claim, _) = self.told_by(number)?;
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
        self.told_by(world).map_or(world, |(_, number)| number)
    }

    /// What a rank of the world tells: who has the number that is its rank, + 1, and its own number.
    fn told_by(&self, world: u32) -> Result<(u64, u32)> {
        if let Some(device) = &self.device
            && self.ep.is_elsewhere(world)?
        {
            return device.told(&self.open_remote(world)?);
        }
        let window = self.window_of(world)?;
        let claim = window.header().rank_claim.load(Ordering::Acquire);
        Ok((claim, window.header().number.load(Ordering::Acquire) as u32))
    }

    fn renumber(&'static self, number: i32) -> Result<()> {
        let size = self.ep.size;
        let header = self.own.header();
        let completed = self.completed();
        // Nobody has an operation under way. All stay in step from here on, whatever is wrong with a number.
        coll::barrier(COMM_WORLD)?;
        let before = header.rank_claim.swap(0, Ordering::AcqRel);
        self.device.iter().for_each(|d| d.claim().store(0, Ordering::Release));
        coll::barrier(COMM_WORLD)?;
        let claimed = u32::try_from(number).ok().filter(|n| *n < size).map_or(Ok(false), |n| self.claim(n));
        coll::barrier(COMM_WORLD)?;
        // Ranks of this node claim by processor and others by device, each in a word of its own.
        let remote = self.device.as_ref().map_or(0, |d| d.claim().load(Ordering::Acquire));
        let local = header.rank_claim.load(Ordering::Acquire);
        let wrong = !matches!(claimed, Ok(true)) || (local == 0) == (remote == 0);
        let failed = is_true_anywhere(wrong)?;
        let claim = if failed { before } else { local | remote };
        header.rank_claim.store(claim, Ordering::Release);
        let mine = if failed { self.rank() } else { number as u32 };
        header.number.store(u64::from(mine), Ordering::Release);
        self.device.iter().for_each(|d| d.tell(claim, mine));
        if !failed {
            self.begin_anew(mine)?;
            self.serve_others()?;
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

    /// With a device that alone may change words, ranks of this node ask the helper.
    fn serve_others(&'static self) -> Result<()> {
        if self.device.is_some() { self.start_helper() } else { Ok(()) }
    }

    /// Claims a number for this process; `false`: another has it.
    fn claim(&self, number: u32) -> Result<bool> {
        if let Some(device) = &self.device
            && self.ep.is_elsewhere(number)?
        {
            return device.claim_number(&self.open_remote(number)?, self.ep.rank);
        }
        let (window, mine) = (self.window_of(number)?, u64::from(self.ep.rank) + 1);
        Ok(window.header().rank_claim.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// Takes the new number; nothing of the old is left.
    fn begin_anew(&'static self, number: u32) -> Result<()> {
        // It may still be waking whom it has answered.
        self.stop_helper();
        // SAFETY: all ranks are here, between two barriers, and no thread of this one is in another call.
        self.views.clear(&unsafe { Unused::promised() });
        self.number.store(number, Ordering::Release);
        self.renumbered.store(true, Ordering::Release);
        let mut registry = self.registry.lock().unwrap_or_else(|e| e.into_inner());
        for n in 1..self.split.keys() {
            let life = &self.entries.at(n as u32).life;
            let turn = life.load(Ordering::Relaxed) >> super::record::Entry::TURN_AT;
            if turn != 0 {
                life.store(turn << super::record::Entry::TURN_AT, Ordering::Release);
                self.own.entry(n).life.store(turn << super::record::Entry::TURN_AT, Ordering::Release);
            }
        }
        if let Some(device) = &self.device {
            device.begin_anew(|n| n == 0 || n == BOUNCE);
        }
        *registry = Registry::new(self.ep.config.rma_keys);
        // All ranks are here, between two barriers, and use nothing.
        Room::from(self.starter).zero();
        Ok(())
    }
}

/// Is this true at any rank? Collective.
fn is_true_anywhere(here: bool) -> Result<bool> {
    let mut sum = [i32::from(here)];
    let function = Function::predefined(Kind::i, Operation::sum);
    coll::allreduce(COMM_WORLD, Room::of(&mut sum), 1, &function)?;
    Ok(sum != [0])
}
