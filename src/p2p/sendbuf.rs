//! `fmpl_sendbuf_set` and `fmpl_sendbuf_check`: the modes of sending, and what is still in the spool.

use std::cell::Cell;

use crate::base::atomics::Ordering;
use crate::base::error::{Code, Result, error};
use crate::base::run::Run;
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::{Lane, SEND_CHAIN, SPECIAL_PATIENT, SPECIAL_SYNCHRONOUS};
use crate::p2p::TIMEOUT_INFINITE;
use crate::p2p::endpoint::{Endpoint, endpoint};

/// Sets how much may be spooled and how long a send waits for its receive before it spools: of the job (`comm` `None`), or of one
/// communicator. 0: buffered; [`TIMEOUT_INFINITE`]: synchronous.
///
/// The spool is the library's own shared memory, which receivers reach by themselves even while this process does
/// something else; [`sendbuf_lie_in`] says where it may lie.
pub fn sendbuf_set(comm: Option<i32>, size: usize, timeout_ms: i32) -> Result<()> {
    let ep = endpoint()?;
    if let Some(comm) = comm {
        ep.check_comm(comm)?;
    }
    if timeout_ms < TIMEOUT_INFINITE {
        return Err(error!(
            Code::Argument,
            "rank {}: time-out of {timeout_ms} ms; 0 is buffered, FMPL_TIMEOUT_INFINITE synchronous", ep.rank
        ));
    }
    ep.spool.set(comm, size, timeout_ms)?;
    for lane in ep.lanes.all().iter() {
        ep.apply_mode(lane);
    }
    Ok(())
}

/// The spool lies in this memory of the program's from now on, as far as it goes, in a job on several nodes; otherwise it is left alone. It is
/// the library's until the last finalize.
///
/// # Safety
/// Nobody uses it until then.
pub unsafe fn sendbuf_lie_in(area: Run) -> Result<()> {
    let ep = endpoint()?;
    if ep.fabric_here().is_some() {
        ep.spool.lie_in(&ep.region, area);
    }
    Ok(())
}

/// The lane's communicator is freed: what it has spooled counts as delivered from now on, and its blocks are given back, those that
/// somebody may still read when they are needed or when the next communicator is made. `over`: nobody may, since the peer is forgotten.
pub(crate) fn let_go(ep: &Endpoint, lane: &Lane, over: bool) {
    for slot in 0..lane.limit() as usize {
        if lane.progress(slot).sent.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let side = lane.send_side(slot);
        for block in side.behind.iter().chain([&side.block]).map(Cell::get).filter(|b| b.is_some()) {
            if over || ep.spool.is_done(block) || lane.is_freed_there() {
                ep.spool.give_back(block);
            } else {
                ep.left_over.store(true, Ordering::Release);
            }
        }
    }
    let slots = lane.spooled.lock().unwrap_or_else(|e| e.into_inner());
    let ever: u64 = slots
        .iter()
        .map(|s| *s as usize)
        .filter(|s| *s >= SYSTEM_INDICES)
        .map(|s| lane.spooled_ever(s).load(Ordering::Relaxed))
        .sum();
    ep.delivered_gone.fetch_add(ever, Ordering::AcqRel);
    drop(slots);
    lane.leave_traffic();
}

/// (spooled messages delivered since the last check, spooled messages still waiting)
pub fn sendbuf_check() -> Result<(i32, i32)> {
    let ep = endpoint()?;
    // Other threads may be sending meanwhile: only atomics are read here, and a count may be a message late.
    let mut ever = 0u64;
    for lane in ep.lanes.all().iter() {
        let slots = lane.spooled.lock().unwrap_or_else(|e| e.into_inner()).clone();
        // The library's own messages are not the program's to count.
        for slot in slots.into_iter().filter(|slot| *slot as usize >= SYSTEM_INDICES) {
            ever += lane.spooled_ever(slot as usize).load(Ordering::Relaxed);
        }
    }
    let waiting = ep.spool.waiting(|slot| slot >= SYSTEM_INDICES);
    let delivered = (ever + ep.delivered_gone.load(Ordering::Acquire)).saturating_sub(waiting);
    let before = ep.delivered_then.fetch_max(delivered, Ordering::AcqRel);
    let clamp = |n: u64| n.min(i32::MAX as u64) as i32;
    Ok((clamp(delivered.saturating_sub(before)), clamp(waiting)))
}

/// Spooled messages of a slot that the receiver has not taken yet. To be asked by the slot's sending thread only.
pub(crate) fn outstanding(ep: &Endpoint, lane: &Lane, slot: usize) -> u64 {
    let progress = lane.progress(slot);
    let side = lane.send_side(slot);
    let sent = progress.sent.load(Ordering::Acquire);
    if progress.send_flags.load(Ordering::Relaxed) & SEND_CHAIN != 0 {
        let block = ep.spool.block(side.block.get().at);
        let taken = block.taken.load(Ordering::Acquire);
        // The block's own progress begins where the block does; an earlier block's receiver may not have come so far.
        let mut first = block.first.load(Ordering::Relaxed);
        let mut left = (sent as u32).wrapping_sub(taken) as u64;
        for old in side.behind.iter().map(Cell::get).filter(|b| b.is_some()) {
            // Given back: all of it is taken, and so is everything before it.
            if !ep.spool.is_held(old) || ep.spool.is_done(old) {
                return left + landing_before_chain(lane, slot);
            }
            let old = ep.spool.block(old.at);
            let old_first = old.first.load(Ordering::Relaxed);
            if old_first < side.chain_first.get() || old_first >= first {
                continue;
            }
            let reached = old.taken.load(Ordering::Acquire);
            let missing = (first as u32 - 1).wrapping_sub(reached) as u64;
            left += missing.min(first - old_first);
            first = old_first;
        }
        // Nothing of the oldest block that is known here is taken: there may be more before it.
        if left == sent - first + 1 && first > side.chain_first.get() {
            left += unknown_blocks(ep, lane, slot, side.chain_first.get(), first);
        }
        return left + landing_before_chain(lane, slot);
    }
    (side.spooled_landing.get() == sent && sent != 0 && !super::send::is_consumed(ep, lane, slot, sent)) as u64
}

/// 1 if the chain follows a landing that said spooled and is not taken yet.
fn landing_before_chain(lane: &Lane, slot: usize) -> u64 {
    let side = lane.send_side(slot);
    let theirs = lane.sending(slot).1;
    let landing = side.spooled_landing.get();
    (landing != 0 && landing + 1 == side.chain_first.get() && theirs.acked(landing - 1)) as u64
}

/// Messages not taken yet in the blocks of a slot's chain that begin with message `from` or later, up to message `end`. The
/// sender has no list of them, so it looks at the whole spool.
#[cold]
fn unknown_blocks(ep: &Endpoint, lane: &Lane, slot: usize, from: u64, end: u64) -> u64 {
    let owner = lane.owner(slot, lane.world);
    let mut blocks = Vec::new();
    ep.spool.for_each_taken(|block| {
        let header = ep.spool.block(block.at);
        let first = header.first.load(Ordering::Relaxed);
        if (from..end).contains(&first) && header.owner.load(Ordering::Relaxed) == owner {
            blocks.push((first, header.taken.load(Ordering::Acquire)));
        }
    });
    blocks.sort_unstable();
    let ends = blocks.iter().skip(1).map(|(first, _)| *first).chain([end]);
    // Blocks that were taken whole and given back are the first of the chain, so those that are left are without gaps.
    blocks
        .iter()
        .zip(ends)
        .map(|((first, taken), end)| ((end as u32).wrapping_sub(1).wrapping_sub(*taken) as u64).min(end - first))
        .sum()
}

impl Endpoint {
    /// Tells a lane whether its sends are synchronous, and whether short ones wait for their receives too.
    pub fn apply_mode(&self, lane: &Lane) {
        let timeout = self.spool.budget(lane.comm()).timeout_ms();
        let is_patient = timeout > 0 && self.config.numbers.eager == Some(0);
        for (which, applies) in [(SPECIAL_SYNCHRONOUS, timeout < 0), (SPECIAL_PATIENT, is_patient)] {
            match applies {
                true => lane.special.fetch_or(which, Ordering::AcqRel),
                false => lane.special.fetch_and(!which, Ordering::AcqRel),
            };
        }
    }
}
