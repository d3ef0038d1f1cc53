//! Sends and receives that are prepared once and begun over and over (the paper's descriptors, which are only kicked for each message).
//!
//! What a request needs to begin, its buffer and its lane, stands in a [`Pair`], which is found by (peer, index, communicator) in one look.
//! A pair is never freed: one whose communicator is freed is used again for another. From its beginning on a request is as any other.

use std::cell::Cell;

use super::*;
use crate::base::atomics::AtomicPtr;
use crate::base::error::error;
use crate::base::lock::Mutex;
use crate::base::named::Named;
use crate::base::zeroed::Later;

/// Places of each table, a power of two.
const PLACES: usize = 1024;

/// Whose pair it is; no lane has such a key.
const NOBODY: u64 = u64::MAX;

/// A direction of a (peer, index) that is prepared.
struct Pair {
    /// Of its lane, or [`NOBODY`].
    key: AtomicU64,
    index: AtomicU32,
    /// Written only while it is nobody's, and by who prepares it, who alone begins it.
    what: Cell<What>,
    next: AtomicPtr<Pair>,
}

#[derive(Clone, Copy)]
struct What {
    lane: &'static Lane,
    /// The same if the message may go the short path.
    short: Option<&'static Lane>,
    slot: usize,
    run: Run,
}

// SAFETY: who finds a pair looks at its atomic numbers, and at the rest only if it is his: the interface demands that one thread at a time uses
// a direction of a (peer, index).
unsafe impl Sync for Pair {}
// SAFETY: as above.
unsafe impl Send for Pair {}

/// Its places take memory once something is prepared.
#[derive(Default)]
struct Table {
    places: Later<AtomicPtr<Pair>, PLACES>,
    making: Mutex<()>,
}

/// What is prepared in this process.
#[derive(Default)]
pub struct Prepared {
    sends: Table,
    receives: Table,
}

impl Prepared {
    /// A communicator is freed, and with it what was prepared there.
    pub fn forget(&self, comm: i32) {
        for table in [&self.sends, &self.receives] {
            let _one = table.making.lock().unwrap_or_else(|e| e.into_inner());
            let of = |key: u64| key != NOBODY && Lane::comm_of(key) == comm;
            table
                .all()
                .filter(|p| of(p.key.load(Ordering::Relaxed)))
                .for_each(|p| p.key.store(NOBODY, Ordering::Relaxed));
        }
    }
}

impl Table {
    #[inline(always)]
    fn place(places: &[AtomicPtr<Pair>; PLACES], comm: i32, peer: i32, index: i32) -> &AtomicPtr<Pair> {
        let hash = (peer as u32).wrapping_mul(37).wrapping_add(index as u32) ^ comm as u32;
        &places[hash as usize & (PLACES - 1)]
    }

    /// The pair there.
    #[inline(always)]
    fn follow(at: &AtomicPtr<Pair>) -> Option<&Pair> {
        // SYNC POINT: pairs with the release in `prepare`: the pair is whole.
        // SAFETY: null, or a leaked box that is freed with its table.
        unsafe { at.load(Ordering::Acquire).as_ref() }
    }

    #[inline(always)]
    fn find(&self, comm: i32, peer: i32, index: i32) -> Option<&Pair> {
        let key = Lane::key_of(comm, peer as u32);
        let mut at = Table::follow(Table::place(self.places.get()?, comm, peer, index));
        while let Some(pair) = at {
            if pair.key.load(Ordering::Acquire) == key && pair.index.load(Ordering::Relaxed) == index as u32 {
                return Some(pair);
            }
            at = Table::follow(&pair.next);
        }
        None
    }

    fn all(&self) -> impl Iterator<Item = &Pair> {
        let chain = |first| core::iter::successors(Table::follow(first), |pair: &&Pair| Table::follow(&pair.next));
        self.places.get().into_iter().flatten().flat_map(chain)
    }

    fn prepare(&self, (comm, peer, index): (i32, i32, i32), what: What) -> Result<()> {
        if let Some(pair) = self.find(comm, peer, index) {
            pair.what.set(what);
            return Ok(());
        }
        let _one = self.making.lock().unwrap_or_else(|e| e.into_inner());
        let place = Table::place(self.places.make()?, comm, peer, index);
        let key = Lane::key_of(comm, peer as u32);
        let chain = core::iter::successors(Table::follow(place), |pair| Table::follow(&pair.next));
        if let Some(free) = chain.into_iter().find(|pair| pair.key.load(Ordering::Relaxed) == NOBODY) {
            free.what.set(what);
            free.index.store(index as u32, Ordering::Relaxed);
            // SYNC POINT: pairs with the acquire in `find`: who finds the key compares the index that goes with it.
            free.key.store(key, Ordering::Release);
            return Ok(());
        }
        let next = AtomicPtr::new(place.load(Ordering::Relaxed));
        let pair = Pair { key: AtomicU64::new(key), index: AtomicU32::new(index as u32), what: Cell::new(what), next };
        place.store(Box::into_raw(Box::new(pair)), Ordering::Release);
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        for place in self.places.get().into_iter().flatten() {
            let mut at = place.load(Ordering::Relaxed);
            while !at.is_null() {
                // SAFETY: leaked in `prepare`, and nobody uses the table any more.
                let pair = unsafe { Box::from_raw(at) };
                at = pair.next.load(Ordering::Relaxed);
            }
        }
    }
}

fn what(ep: &'static Endpoint, run: Run, (comm, peer, index): (i32, i32, i32), most: usize) -> Result<What> {
    let len = Layout::from(run).len_checked()?;
    let (used, slot) = find(ep, comm, peer, index)?;
    // What is prepared stays so.
    let lane = if used.remote().is_some() { used.for_good() } else { used.lane() };
    let short = lane.remote().is_none() && len <= most && !run.is_nowhere();
    Ok(What { lane, short: short.then_some(lane), slot, run })
}

/// Prepares the send of a buffer to (peer, index); what was prepared there before is forgotten.
pub fn send_init(comm: i32, run: Run, dst: i32, index: i32) -> Result<()> {
    let (ep, name) = (endpoint()?, (comm, dst, index));
    if dst == PROC_NULL {
        return ep.check_comm(comm).map(|_| ());
    }
    let what = what(ep, run, name, ep.tuning.annex)?;
    if what.lane.progress(what.slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, what.lane, what.slot, "send_init"));
    }
    ep.prepared.sends.prepare(name, what)
}

/// Prepares the receive of a message from (peer, index); what was prepared there before is forgotten.
pub fn recv_init(comm: i32, run: Run, src: i32, index: i32) -> Result<()> {
    let (ep, name) = (endpoint()?, (comm, src, index));
    if index == TAG_ANY {
        return Err(error!(Code::Index, "rank {}: recv_init on any index", ep.rank));
    }
    if src == PROC_NULL {
        return ep.check_comm(comm).map(|_| ());
    }
    let what = what(ep, run, name, POST_AT_ONCE)?;
    if what.lane.progress(what.slot).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(busy(ep, what.lane, what.slot, "recv_init"));
    }
    ep.prepared.receives.prepare(name, what)
}

/// Begins the send that is prepared on (peer, index).
#[inline(always)]
pub fn send_start(comm: i32, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Some(pair) = ep.prepared.sends.find(comm, dst, index) else {
        return not_prepared(ep, comm, dst, index, "send");
    };
    let What { short: Some(lane), slot, run, .. } = pair.what.get() else { return start_slow(ep, pair, true) };
    let progress = lane.progress(slot);
    if lane.special.load(Ordering::Relaxed) != 0 || !crate::p2p::send::send_short(lane, progress, slot, run) {
        return start_slow(ep, pair, true);
    }
    let flags = &progress.send_flags;
    flags.store(flags.load(Ordering::Relaxed) | SEND_PENDING, Ordering::Relaxed);
    Ok(())
}

/// Begins the receive that is prepared on (peer, index).
#[inline(always)]
pub fn recv_start(comm: i32, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Some(pair) = ep.prepared.receives.find(comm, src, index) else {
        return not_prepared(ep, comm, src, index, "recv");
    };
    let What { short: Some(lane), slot, run, .. } = pair.what.get() else { return start_slow(ep, pair, false) };
    let progress = lane.progress(slot);
    let flags = &progress.recv_flags;
    let now = flags.load(Ordering::Relaxed);
    if now & (RECV_PENDING | RECV_CHAIN | RECV_OWES) != 0 || ep.event.get().is_some() {
        return start_slow(ep, pair, false);
    }
    post_short(ep, lane, slot, progress.received.load(Ordering::Relaxed) + 1, run);
    // SYNC POINT: as in `irecv`.
    flags.store(now | RECV_PENDING, Ordering::Release);
    Ok(())
}

#[cold]
#[inline(never)]
fn start_slow(ep: &'static Endpoint, pair: &Pair, sends: bool) -> Result<()> {
    let What { lane, slot, run, .. } = pair.what.get();
    match sends {
        true => isend_on(ep, lane, slot, run.into(), ep.spool.budget(lane.comm()).timeout_ms()),
        false => irecv_on(ep, lane, slot, run.into()),
    }
}

#[cold]
#[inline(never)]
fn not_prepared(ep: &Endpoint, comm: i32, peer: i32, index: i32, what: &str) -> Result<()> {
    ep.check_comm(comm)?;
    if peer == PROC_NULL {
        // Nothing happens, as in any call; so nothing was prepared, which threads would have to share.
        return Ok(());
    }
    let (me, comm, init) = (ep.rank, Named(comm), format!("{what}_init"));
    let text =
        format!("rank {me}: {what}_start on (rank {peer}, index {index}) of communicator {comm}: no {init} before");
    Err(Error::new(Code::Request, text))
}
