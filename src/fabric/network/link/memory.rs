//! What the peer may write here, and where this side may write there: the *windows*, pages of lanes and chunks of their fronts.
//!
//! A window stays where it is, with all that was written into it, for as long as its lane may be used, unless it is
//! [packed](super::packing) meanwhile, and then elsewhere in the next era. Registered it is only while this
//! process has a *context* with the peer, of which the processes of a node have so many together: from the making of a connection until that
//! has been given up and another peer needs the context's place. Then nobody can write here, so nothing needs to be agreed on with the peer.
//! What has changed is the keys. They are numbered by *eras*, one for each time that the context was made; each side says its era with
//! its end of a connection, so a key of an earlier era is never used: it is asked for first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use super::{Link, Posted};
use crate::base::error::Result;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::fabric::network::control::{ANNEX_CHUNK, ANNEXES_MOST, CHUNKS_MOST, FIRST_CHUNK, REMOTE_ANNEX_BYTES};
use crate::fabric::network::device::{Access, Place};
use crate::fabric::network::handshake::State;
use crate::fabric::network::region::{Domain, Ground};
use crate::fabric::network::room::Room;

/// In place of an address: the peer has not said it; it has, and is to say it again, which it does with its next key; it has, and nothing is
/// written there any more.
const UNKNOWN: u64 = u64::MAX;
const ASK_AGAIN: u64 = u64::MAX - 1;
const CLOSED: u64 = u64::MAX - 2;

/// Which window: the lane, and 0 for its page or the number of a chunk plus one.
pub type Name = (u64, u32);

/// Memory that the peer writes, and the peer's that this process writes.
pub struct Window {
    name: Name,
    /// Ours.
    pub memory: Ground,
    /// Where the peer's begins, once it has said: [`UNKNOWN`], [`ASK_AGAIN`] or [`CLOSED`].
    there: AtomicU64,
    /// The peer's key: era 32 | key 32.
    key: AtomicU64,
    /// The communicator of its lane is freed here: what is in it interests nobody.
    over: AtomicBool,
    /// Of a page: what the peer has been told of that, see [`freed`](super::freed).
    pub(super) said: AtomicU64,
    /// Of a page: who is lost, as the peer has been told, + 1.
    told: AtomicU64,
    /// What the peer has asked for by this window last, by its number there, and what it was answered.
    pub answered: Mutex<Option<(u64, Option<[u64; 2]>)>>,
    /// It is an annex: counted there.
    counted: Option<Arc<AtomicUsize>>,
}

impl Drop for Window {
    fn drop(&mut self) {
        self.counted.iter().for_each(|count| _ = count.fetch_sub(1, Ordering::Relaxed));
    }
}

impl Window {
    fn new(name: Name, bytes: usize, annexes: &Arc<AtomicUsize>) -> Result<Window> {
        let memory = Ground::new(bytes)?;
        let counted = (name.1 == ANNEX_CHUNK + 1).then(|| annexes.clone());
        counted.iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        let ([key, said, told], over) = ([0; 3].map(AtomicU64::new), AtomicBool::new(false));
        let there = AtomicU64::new(UNKNOWN);
        Ok(Window { counted, name, memory, there, key, over, said, told, answered: Mutex::default() })
    }
    fn open(&self, domain: &Arc<Domain>) -> Result<()> {
        self.memory.open(domain, Access::LOCAL_WRITE | Access::REMOTE_WRITE)
    }
    /// Which it is.
    pub(in crate::fabric::network) fn name(&self) -> Name {
        self.name
    }
    /// Of which lane it is.
    pub fn lane(&self) -> u64 {
        self.name.0
    }
    /// The peer is told by this page that a rank is lost.
    pub fn tells(&self, lost: u32) {
        self.told.store(u64::from(lost) + 1, Ordering::Relaxed);
    }
    /// It could not be told of this loss; of another it may have been.
    pub fn has_not_told(&self, lost: u32) {
        let _ = self.told.compare_exchange(u64::from(lost) + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    /// Has it been?
    pub fn has_told(&self, lost: u32) -> bool {
        self.told.load(Ordering::Relaxed) == u64::from(lost) + 1
    }
    /// Is the communicator of its lane freed here?
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
    pub(super) fn set_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
    /// Is it an annex?
    pub fn is_annex(&self) -> bool {
        self.name.1 == ANNEX_CHUNK + 1
    }
    /// Has the peer said where its memory is, which is still written?
    pub fn is_known(&self) -> bool {
        !matches!(self.there.load(Ordering::Acquire), UNKNOWN | CLOSED)
    }
    /// Nothing is written into the peer's part any more. To be called with the link locked, as writes are posted.
    pub(super) fn close(&self) {
        self.there.store(CLOSED, Ordering::Release);
    }
    /// Is it so?
    pub(super) fn is_closed(&self) -> bool {
        self.there.load(Ordering::Acquire) == CLOSED
    }
    /// The peer has said it to this link as it was before it was packed.
    pub(super) fn was_known(&self) {
        self.there.store(ASK_AGAIN, Ordering::Release);
    }
    /// The peer has said where its memory is, and its key in that era; 0: it has no context. In a later era it may be elsewhere, since the peer has
    /// packed it meanwhile; what is said of an earlier one is late. (By one thread, while nothing is posted that a later era is for.)
    fn tell(&self, place: Place, era: u32) {
        let there = self.there.load(Ordering::Relaxed);
        let is_later = u64::from(era) > self.key.load(Ordering::Relaxed) >> 32;
        if there != CLOSED && (is_later || there == UNKNOWN || there == ASK_AGAIN) {
            // Unless it has been closed meanwhile, which lasts.
            let _ = self.there.compare_exchange(there, place.addr, Ordering::Release, Ordering::Relaxed);
        }
        if era != 0 {
            // SYNC POINT: pairs with the acquire in `place_in`.
            self.key.fetch_max((era as u64) << 32 | place.rkey as u64, Ordering::AcqRel);
        }
    }
    /// The peer's memory, if its key of this era is known.
    #[inline]
    pub(super) fn place_in(&self, era: u32) -> Option<Place> {
        // SYNC POINT: pairs with the exchange in `tell`.
        let key = self.key.load(Ordering::Acquire);
        let addr = self.there.load(Ordering::Acquire);
        let holds_now = (key >> 32) as u32 == era || !holds(Rule::Era);
        (era != 0 && holds_now && addr != CLOSED).then_some(Place { addr, rkey: key as u32 })
    }
}

/// A place among the node's contexts.
struct Context {
    room: Arc<Room>,
    place: usize,
}

/// The windows of a peer. Locked after the link.
pub(in crate::fabric::network) struct Windows {
    pub(super) all: BTreeMap<Name, Arc<Window>>,
    context: Option<Context>,
    /// How often the context was made.
    pub(super) era: u32,
    /// The lane and the chunk that were asked for last.
    pub(super) recent: Name,
    /// Annexes of the process.
    annexes: Arc<AtomicUsize>,
}

/// What a packet says of its sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric::network) struct Told {
    /// See [`Windows`]; 0: no context, so the keys mean nothing.
    pub era: u32,
    /// Which lane, by its key.
    pub lane: u64,
    /// Which chunk of its fronts.
    pub chunk: u32,
    pub page: Place,
    pub fronts: Place,
}

impl Told {
    /// Can it be? `bytes`: of a page and of a chunk's fronts.
    fn is_possible(&self, bytes: [usize; 2]) -> bool {
        let ends = |place: Place, bytes: usize| place.addr.checked_add(bytes as u64).is_some();
        (self.chunk < CHUNKS_MOST || self.chunk == ANNEX_CHUNK)
            && ends(self.page, bytes[0])
            && ends(self.fronts, bytes_of(self.chunk, bytes))
    }
}

/// Bytes of a chunk of this number, where those of the fronts have so many.
fn bytes_of(chunk: u32, bytes: [usize; 2]) -> usize {
    if chunk == ANNEX_CHUNK { REMOTE_ANNEX_BYTES } else { bytes[1] }
}

impl Windows {
    /// None yet; annexes are counted there.
    pub fn new(annexes: Arc<AtomicUsize>) -> Windows {
        Windows { all: BTreeMap::new(), context: None, era: 0, recent: (0, FIRST_CHUNK), annexes }
    }
    /// Are they registered?
    pub(super) fn is_in(&self) -> bool {
        self.context.is_some()
    }
    /// Those of a lane.
    pub(super) fn of(&self, lane: u64) -> impl Iterator<Item = &Arc<Window>> {
        self.all.range((lane, 0)..=(lane, u32::MAX)).map(|(_, window)| window)
    }
    /// The window of this name, made if need be; registered if the others are.
    fn window(&mut self, domain: &Arc<Domain>, name: Name, bytes: usize) -> Result<Arc<Window>> {
        let window = match self.all.get(&name) {
            Some(window) => window.clone(),
            None => Arc::new(Window::new(name, bytes, &self.annexes)?),
        };
        if self.context.is_some() {
            window.open(domain)?;
        }
        self.all.insert(name, window.clone());
        Ok(window)
    }
}

impl Link {
    pub(super) fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window of this name, made if need be.
    pub(super) fn window(&self, name: Name, bytes: usize) -> Result<Arc<Window>> {
        self.windows().window(&self.domain, name, bytes)
    }

    /// What this side has to say of the page of a lane and a chunk of its fronts, which are made if need be; without a name, of those that
    /// were asked for last.
    pub(in crate::fabric::network) fn tells(&self, name: Option<Name>, bytes: [usize; 2]) -> Result<Told> {
        let mut windows = self.windows();
        let (lane, chunk) = name.unwrap_or(windows.recent);
        let is_closed = windows.of(lane).any(|window| window.is_closed());
        if chunk != ANNEX_CHUNK && !is_closed {
            windows.recent = (lane, chunk);
        }
        let page = windows.window(&self.domain, (lane, 0), bytes[0])?;
        let fronts = windows.window(&self.domain, (lane, chunk + 1), bytes_of(chunk, bytes))?;
        let place = |w: &Window| Place { addr: w.memory.as_ptr() as u64, rkey: w.memory.key().unwrap_or(0) };
        if chunk == ANNEX_CHUNK {
            // SYNC POINT: pairs with the acquire in `annexes`.
            self.annexes.fetch_add(1, Ordering::Release);
        }
        let era = if windows.context.is_some() { windows.era } else { 0 };
        Ok(Told { era, lane, chunk, page: place(&page), fronts: place(&fronts) })
    }

    /// The peer has said this of its memory.
    pub(in crate::fabric::network) fn is_told(&self, told: &Told, bytes: [usize; 2]) -> Result<()> {
        if !told.is_possible(bytes) {
            return Err(self.damaged("what it says of its memory"));
        }
        self.window((told.lane, 0), bytes[0])?.tell(told.page, told.era);
        self.window((told.lane, told.chunk + 1), bytes_of(told.chunk, bytes))?.tell(told.fronts, told.era);
        if told.chunk == ANNEX_CHUNK {
            // SYNC POINT: as in `tells`.
            self.annexes.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// How often one side has told the other of an annex: who has looked for one need not do so again before that changes.
    #[inline]
    pub fn annexes(&self) -> u32 {
        self.annexes.load(Ordering::Acquire)
    }
    /// The annex of a lane. The peer may write there before this side knows of the peer's.
    pub fn annex(&self, lane: u64) -> Option<Arc<Window>> {
        self.windows().all.get(&(lane, ANNEX_CHUNK + 1)).cloned()
    }
    /// May this process have an annex of this lane? There are so many at most.
    pub fn may_have_annex(&self, lane: u64) -> bool {
        let windows = self.windows();
        windows.annexes.load(Ordering::Relaxed) < ANNEXES_MOST || windows.all.contains_key(&(lane, ANNEX_CHUNK + 1))
    }

    /// The peer's context is that of this era, as it says with its end of a connection.
    pub(in crate::fabric::network) fn peer_is_in(&self, era: u32) {
        self.peer_era.fetch_max(era, Ordering::AcqRel);
    }
    /// The peer's era.
    #[inline]
    pub(super) fn peer_era(&self) -> u32 {
        self.peer_era.load(Ordering::Acquire)
    }

    /// Where the peer's part of a window is, if its key is known.
    pub fn place_of(&self, window: &Window) -> Option<Place> {
        window.place_in(self.peer_era())
    }

    /// Has this process a context with the peer?
    pub(in crate::fabric::network) fn is_in(&self) -> bool {
        self.windows().is_in()
    }

    /// Makes the context in this place, which others may not have until it is put away. An error leaves it unmade, the place taken.
    pub(in crate::fabric::network) fn bring_in(&self, room: &Arc<Room>, place: usize) -> Result<()> {
        let mut windows = self.windows();
        for window in windows.all.values() {
            if let Err(e) = window.open(&self.domain) {
                windows.all.values().for_each(|w| w.memory.close());
                return Err(e);
            }
        }
        windows.era += 1;
        windows.context = Some(Context { room: room.clone(), place });
        Ok(())
    }

    /// The table of contexts, and the place there.
    pub(super) fn context_place(&self) -> Option<(Arc<Room>, usize)> {
        self.windows().context.as_ref().map(|Context { room, place }| (room.clone(), *place))
    }

    /// The context could be put away from here on, or not any more.
    pub(in crate::fabric::network) fn set_idle(&self, idle: bool) {
        if let Some(Context { room, place }) = &self.windows().context {
            room.set_idle(*place, idle);
        }
    }

    /// Has the context been of no use since the last connection?
    pub(in crate::fabric::network) fn is_idle(&self) -> bool {
        self.windows().context.as_ref().is_some_and(|Context { room, place }| room.is_idle(*place))
    }

    /// Can the context be put away?
    pub(in crate::fabric::network) fn may_be_put_away(posted: &Posted) -> bool {
        matches!(posted.hand.state(), State::Down | State::Asking) || !holds(Rule::StaysRegistered)
    }

    /// Puts the context away, and gives its place back; was there one? Nobody can write here: there is no connection.
    pub(in crate::fabric::network) fn put_away(&self, posted: &Posted) -> bool {
        debug_assert!(posted.made.is_none());
        let mut windows = self.windows();
        let Some(Context { room, place }) = windows.context.take() else { return false };
        windows.all.values().for_each(|w| w.memory.close());
        room.give_back(place);
        true
    }

    /// Registers a piece of the spool for the peer to read, until [`Link::end_loan`]; its key.
    pub fn lend(&self, piece: Run) -> Result<u32> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
        // SAFETY: the spool stays mapped as long as the process is on the fabric.
        let region = unsafe { self.domain.register(piece.ptr(), piece.len(), access)? };
        let key = region.rkey();
        *self.lent.lock().unwrap_or_else(PoisonError::into_inner) = Some(region);
        Ok(key)
    }
    /// Takes back what was lent, if anything was.
    pub fn end_loan(&self) {
        *self.lent.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
    /// May the peer read something beside its windows, or this side something there?
    pub(in crate::fabric::network) fn lends(&self) -> bool {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).is_some() || self.borrowing.try_lock().is_err()
    }
    /// Waits until no other thread is lent something by the peer.
    pub fn borrow(&self) -> MutexGuard<'_, ()> {
        self.borrowing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all windows that are there.
    pub(in crate::fabric::network) fn window_bytes(&self) -> usize {
        self.windows().all.values().map(|w| w.memory.there()).sum()
    }
    /// Of these, bytes of annexes.
    pub(in crate::fabric::network) fn annex_bytes(&self) -> usize {
        self.windows().all.values().filter(|w| w.counted.is_some()).map(|w| w.memory.there()).sum()
    }
    /// The first page of a lane whose number fits, if it is known where the peer's is.
    pub fn find_window(&self, fits: impl Fn(u64) -> bool) -> Option<Arc<Window>> {
        let windows = self.windows();
        windows.all.values().find(|w| w.name.1 == 0 && fits(w.name.0) && w.is_known()).cloned()
    }
    /// The chunks and annexes of lanes but these, that the peer may have written for a lane which this process is yet to make.
    pub fn windows_beside(&self, lanes: &[u64]) -> Vec<Arc<Window>> {
        let is_beside = |w: &&Arc<Window>| {
            let (lane, number) = w.name;
            number != 0 && !lanes.contains(&lane) && !w.is_over()
        };
        self.windows().all.values().filter(is_beside).cloned().collect()
    }
    /// The communicator of a lane is freed here.
    pub fn lane_is_over(&self, lane: u64) {
        self.windows().of(lane).for_each(|w| w.set_over());
    }
    /// The pages of all lanes.
    pub fn pages(&self) -> Vec<Arc<Window>> {
        self.windows().all.values().filter(|w| w.name.1 == 0).cloned().collect()
    }
    /// The window of this name, if it is known where the peer's is.
    pub fn open_window(&self, lane: u64, number: u32) -> Option<Arc<Window>> {
        self.windows().all.get(&(lane, number)).filter(|w| w.is_known()).cloned()
    }
    /// The numbers of the windows of a lane for which it is known where the peer's are, in their order.
    pub fn open_windows(&self, lane: u64) -> Vec<u32> {
        self.windows().of(lane).filter(|w| w.is_known()).map(|w| w.name.1).collect()
    }
    /// A window of the peer's that can be written just now: for requests that do nothing but complete.
    pub(super) fn any_place(&self) -> Option<Place> {
        let era = self.peer_era();
        self.windows().all.values().find_map(|w| w.place_in(era))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::network::control::{CHUNKS_MOST, WINDOW_BYTES};
    use proptest::prelude::*;

    proptest! {
        /// What a peer says of its memory has an end, and is one of so many chunks.
        #[test]
        fn memory_that_can_be(lane: u64, chunk in prop_oneof![any::<u32>(), 0u32..3000], addrs: [u64; 2], high: bool) {
            let place = |n: usize| Place { addr: if high { u64::MAX - addrs[n] % (1 << 20) } else { addrs[n] }, rkey: 1 };
            let told = Told { era: 1, lane, chunk, page: place(0), fronts: place(1) };
            let ends = |n: usize| place(n).addr as u128 + WINDOW_BYTES[n] as u128 <= u64::MAX as u128;
            prop_assert_eq!(told.is_possible(WINDOW_BYTES), chunk < CHUNKS_MOST && ends(0) && ends(1));
        }
    }
}
