//! Other ranks' global memory as this process sees it: their windows, kept for a bounded number of ranks, and what an address means.
//!
//! **Uses.** A key can be given out again, and then means other memory. Whoever resolves an address first writes down in its own window
//! whose key it is about to use, and wipes that out when the operation is over; an owner that takes a key back clears the entry and
//! then waits until nobody uses it:
//!
//! ```text
//!   user                                      owner
//!   use = (owner, key)                        entry = 0
//!   ─── a full fence ───                      ─── a full fence ───
//!   entry is valid?   no: an error            (owner, key) in a use of any holder?   yes: wait
//!   read or write the memory                  the memory is the owner's alone, the key free
//!   use = 0, with release
//! ```
//! One of the two sees the other, so nobody reads or writes through an old meaning of a key. (ACP keeps copies of other ranks' tables,
//! and has the holders discard them when a key is reused; on a node the table itself is mapped, and what ends is a use.)
//!
//! **Views.** The windows are kept in a table of a fixed size, at the place of the rank modulo that size. One that gave way to another
//! rank's is unmapped as soon as no thread of this process has a use of a rank of that place.

use std::sync::{Arc, Mutex};

use super::Rma;
use super::address::GlobalAddress;
use super::delegated::Watch;
use super::device::Remote;
use super::record::{COMMANDS_AT, ENTRIES_MOST, Entry, USES, WINDOW_BYTES, Window, ring};
use crate::base::atomics::{AtomicU64, AtomicUsize, Ordering, fence, spin_loop};
use crate::base::bytes::Room;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::leaked::{Leaked, Retired};
use crate::base::unused::Unused;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::RMA_AT;
use crate::p2p::any_source::ring::Ring;
use crate::p2p::any_source::share::{share_at, share_of, split};

/// The entry of the library's own memory, through which copies go where the system copies for nobody. Its addresses have key 0 and
/// colour 1.
pub(super) const BOUNCE: u32 = (ENTRIES_MOST - 1) as u32;
/// No job has more ranks than this.
const RANKS_MOST: u64 = 1 << 24;
/// In a use: no entry, the rank's records only.
pub(super) const RECORDS: u32 = u32::MAX;

/// A rank's global memory, seen from here.
pub(super) struct View {
    /// Its number in global addresses.
    pub rank: u32,
    /// Its rank in the world.
    pub world: u32,
    /// `None`: it shares no memory with this process.
    pub local: Option<Local>,
    /// As the device reaches it, if it shares no memory with this process.
    pub remote: Option<Remote>,
    /// Atomic operations on its memory are made by its device only.
    pub changes: bool,
}

/// A rank of this node, or this one itself.
pub(super) struct Local {
    pub window: Window,
    /// Remote commands to it: the share of its ring that is this rank's, and where that lies.
    pub ring: Ring,
    pub ring_at: u64,
    /// Below which ticket there was room in that ring when somebody looked last.
    pub room: AtomicU64,
    /// What is known of its being awake.
    pub watch: Watch,
    /// `None`: this process itself.
    pub peer: Option<Arc<Peer>>,
}

impl View {
    /// Why nothing can be done with this rank any more, if so.
    #[inline]
    pub fn gone(&self) -> Option<&str> {
        match &self.local {
            Some(local) => local.gone(),
            None => self.remote.as_ref()?.gone(),
        }
    }

    /// Does this process have its device make atomic operations?
    pub fn by_device(&self) -> bool {
        self.remote.as_ref().is_some_and(Remote::able)
    }

    /// It shares memory with this process.
    #[inline(always)]
    pub fn local(&self) -> Option<&Local> {
        self.local.as_ref()
    }
}

impl Local {
    #[inline(always)]
    pub(super) fn gone(&self) -> Option<&'static str> {
        let peer = self.peer.as_ref()?;
        let ended = || self.window.header().digest.load(Ordering::Acquire) == 0;
        peer.gone().or_else(|| ended().then_some("has no global memory any more"))
    }
}

/// What an address means, while the use that was taken for it lasts.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub view: &'a View,
    /// The owner's address.
    pub addr: u64,
    /// Where this process has it, if it has.
    pub here: Option<Room<'a>>,
}

/// A use that is written down as long as this value lives.
pub(super) struct Using<'a>(&'a AtomicU64);

impl Drop for Using<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT: pairs with the acquire in `is_used`: what was done with the memory is over.
        self.0.store(0, Ordering::Release);
    }
}

fn word_of(rank: u32, entry: u32) -> u64 {
    (u64::from(rank) + 1) << 32 | u64::from(entry)
}

/// All words of uses can be taken for so long before that is an error: an operation takes less.
const FULL_NS: u64 = if cfg!(test) { 50_000_000 } else { 5_000_000_000 };

/// Writes down in the own window that an entry of a rank is used.
#[inline(always)]
pub(super) fn using(own: &Window, rank: u32, entry: u32) -> Result<Using<'_>> {
    let word = word_of(rank, entry);
    for n in 0..USES {
        // If another thread has it: the next one.
        if let Some(using) = take_use(own, n, 0, word) {
            return Ok(using);
        }
    }
    using_at_last(own, word)
}

/// Takes a word of uses, if that is `there`.
#[inline(always)]
fn take_use(own: &Window, n: usize, there: u64, word: u64) -> Option<Using<'_>> {
    let slot = &own.usage(n).word;
    if slot.load(Ordering::Relaxed) != there
        || slot.compare_exchange(there, word, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return None;
    }
    // SYNC POINT: pairs with the fence before `is_used`. (On x86 the exchange is one already.)
    if cfg!(any(loom, not(target_arch = "x86_64"))) {
        fence(Ordering::SeqCst);
    }
    Some(Using(slot))
}

/// The same when all are taken. They lie in shared memory, so what no thread of this process has written there counts for nothing.
#[cold]
#[inline(never)]
fn using_at_last(own: &Window, word: u64) -> Result<Using<'_>> {
    let until_ns = now_ns() + FULL_NS;
    loop {
        for n in 0..USES {
            let there = own.usage(n).word.load(Ordering::Relaxed);
            let could_be = (1..=RANKS_MOST).contains(&(there >> 32))
                && (there as u32 == RECORDS || (there as u32 as usize) < ENTRIES_MOST);
            if !could_be && let Some(using) = take_use(own, n, there, word) {
                return Ok(using);
            }
        }
        if now_ns() > until_ns {
            let text = format!(
                "global memory: all {USES} words in which this process writes down what it uses have been taken for {} s: more threads \
                 than that are at it, or another rank of this node has damaged them",
                FULL_NS as f64 / 1e9
            );
            return Err(Error::new(Code::Peer, text));
        }
        spin_loop();
        std::thread::yield_now();
    }
}

/// Does the process with this window use something of which this is true? A fence stands between what ended new uses and this look.
pub(super) fn is_used(window: &Window, of: impl Fn(u32, u32) -> bool) -> bool {
    (0..USES).any(|n| {
        // SYNC POINT: pairs with the release at the end of a use.
        let word = window.usage(n).word.load(Ordering::Acquire);
        word != 0 && of(((word >> 32) as u32).wrapping_sub(1), word as u32)
    })
}

/// The windows of other ranks.
pub(super) struct Views {
    /// A power of two of them.
    slots: Box<[Leaked<View>]>,
    making: Mutex<()>,
    retired: Mutex<Vec<Retired<View>>>,
    retired_count: AtomicUsize,
}

impl Views {
    /// None yet; at most so many at a time.
    pub fn new(most: usize) -> Views {
        let most = 1usize << most.max(1).ilog2();
        Views {
            slots: (0..most).map(|_| Leaked::none()).collect(),
            making: Mutex::new(()),
            retired: Mutex::new(Vec::new()),
            retired_count: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn place(&self, rank: u32) -> usize {
        rank as usize & (self.slots.len() - 1)
    }

    /// Unmaps what gave way and is used no more, by whatever thread.
    #[inline(always)]
    pub fn sweep(&self, own: &Window) {
        if self.retired_count.load(Ordering::Relaxed) != 0 {
            self.sweep_now(own);
        }
    }

    #[cold]
    fn sweep_now(&self, own: &Window) {
        let Ok(mut retired) = self.retired.try_lock() else { return };
        fence(Ordering::SeqCst);
        let is_over = |view: &mut Retired<View>| {
            let place = view.get().map(|view| self.place(view.rank));
            !is_used(own, |rank, _| Some(self.place(rank)) == place)
        };
        for view in retired.extract_if(.., is_over) {
            // SAFETY: no longer to be found, and nobody who found it before has its use any more.
            view.free(&unsafe { Unused::promised() });
        }
        self.retired_count.store(retired.len(), Ordering::Relaxed);
    }

    /// Forgets all. No thread has a use.
    pub fn clear(&self, unused: &Unused) {
        let mut retired = self.retired.lock().unwrap_or_else(|e| e.into_inner());
        retired.drain(..).for_each(|view| view.free(unused));
        self.slots.iter().for_each(|slot| drop(slot.take(unused)));
        self.retired_count.store(0, Ordering::Relaxed);
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        // SAFETY: who has a view borrows this.
        self.clear(&unsafe { Unused::promised() });
    }
}

impl Rma {
    /// The view of a rank, of which the caller has a use written down.
    #[inline(always)]
    pub(super) fn view<'a>(&'a self, rank: u32, _using: &'a Using<'_>) -> Result<&'a View> {
        let slots = &self.views.slots;
        let place = self.views.place(rank);
        // One that is taken out of its place lives on while any use of a rank of that place is written down, and the caller's is.
        match slots[place].get() {
            Some(view) if view.rank == rank => Ok(view),
            _ => self.make_view(rank, place),
        }
    }

    /// The view of a rank, of which the caller has a use written down, if there is one already.
    #[inline(always)]
    pub(super) fn view_short(&self, rank: u32) -> Option<&View> {
        self.views.slots[self.views.place(rank)].get().filter(|v| v.rank == rank)
    }

    #[cold]
    #[inline(never)]
    fn make_view(&self, rank: u32, place: usize) -> Result<&View> {
        let _one = self.views.making.lock().unwrap_or_else(|e| e.into_inner());
        let slot = &self.views.slots[place];
        if let Some(view) = slot.get().filter(|v| v.rank == rank) {
            return Ok(view);
        }
        let (view, there) = slot.replace(self.open_view(rank)?);
        if let Some(there) = there {
            let mut retired = self.views.retired.lock().unwrap_or_else(|e| e.into_inner());
            retired.push(there);
            self.views.retired_count.store(retired.len(), Ordering::Relaxed);
        }
        Ok(view)
    }

    fn open_view(&self, rank: u32) -> Result<View> {
        let world = self.world_of(rank)?;
        if self.device.is_some() && self.ep.is_elsewhere(world)? {
            let remote = self.open_remote(world)?;
            let changes = remote.changes();
            return Ok(View { rank, world, local: None, remote: Some(remote), changes });
        }
        let window = self.window_of(world)?;
        let digest = window.header().digest.load(Ordering::Acquire);
        if digest != self.split.digest() {
            let what = match digest {
                0 => (Code::Peer, "has no global memory: it has not called init for it, or has left it"),
                _ => {
                    (Code::Setting, "divides addresses in another way; give FMPL_RMA_KEYS the same value on all ranks")
                }
            };
            return Err(error!(what.0, "rank {}: rank {rank} {}", self.rank(), what.1));
        }
        let peer = if world == self.ep.rank { None } else { Some(self.ep.contact(world)?) };
        let map = |at, len| match &peer {
            Some(p) => p.region.map(at, len),
            None => self.ep.region.map(at, len),
        };
        let shape = [&window.header().commands, &window.header().shares].map(|w| w.load(Ordering::Acquire));
        let Some((slots, shares)) = split(shape[0], shape[1]) else {
            let why = self.ep.break_off(world, "the shape of its ring of commands");
            return Err(self.peer_error(rank, &why, "first use"));
        };
        let number = self.ep.launch.local_ranks().iter().position(|r| *r == self.ep.rank).unwrap_or(0);
        let ring_at = share_at(COMMANDS_AT, slots, share_of(number as u32, shares));
        let ring = ring(map(ring_at, Ring::bytes(slots))?, slots);
        // From here on the owner looks at this rank's uses. SYNC POINT: pairs with the owner's look at the holders, behind its fence.
        let me = self.ep.rank as usize;
        window.holders(me / 64).fetch_or(1 << (me % 64), Ordering::AcqRel);
        fence(Ordering::SeqCst);
        let changes = window.header().changes.load(Ordering::Acquire) != 0;
        let local = Local { window, ring, ring_at, room: AtomicU64::new(0), watch: Watch::default(), peer };
        Ok(View { rank, world, local: Some(local), remote: None, changes })
    }

    /// The window of a rank of the world.
    pub(super) fn window_of(&self, world: u32) -> Result<Window> {
        if world == self.ep.rank {
            return Ok(Window::new(self.ep.region.map(RMA_AT, WINDOW_BYTES)?));
        }
        let peer = self.ep.contact(world)?;
        Ok(Window::new(peer.region.map(RMA_AT, WINDOW_BYTES)?))
    }

    /// What `len` bytes from an address on are, for an operation that is named in errors.
    #[inline(always)]
    pub(super) fn resolve<'a>(
        &'a self,
        ga: GlobalAddress,
        len: usize,
        using: &'a Using<'_>,
        what: &str,
    ) -> Result<Place<'a>> {
        let (rank, n, offset) = self.parts(ga).ok_or_else(|| self.wrong_address(ga, len, what))?;
        let view = self.view(rank, using)?;
        if let Some(why) = view.gone() {
            return Err(self.peer_error(rank, why, what));
        }
        let Some(local) = view.local() else {
            return Ok(Place { view, addr: self.reach(view, ga, len, false, what)?.place.addr, here: None });
        };
        let (addr, life) = match &local.peer {
            // What this rank has registered it knows by itself.
            None => self.judge(self.entries.of(n), ga, n, offset, len, what)?,
            Some(_) => self.look_up(&local.window, ga, n, offset, len, what)?,
        };
        let here = match &local.peer {
            // SAFETY: as this rank has registered it, until the registration ends, which waits for the use. That nobody uses it in a way
            // that does not go together with others' is the program's business, as with any memory that ranks share.
            None => Some(unsafe { Room::known(addr as *mut u8, len) }),
            Some(p) if life & Entry::SHARED != 0 => match p.region.heap() {
                Some(heap) => heap.room(addr, len),
                None => self.without_heap(p, view, what)?,
            },
            Some(_) => None,
        };
        Ok(Place { view, addr, here })
    }

    /// A peer's shared memory is not mapped here: the peer is asked, unless it has said that it has none, or has it where that cannot be.
    #[cold]
    fn without_heap(&self, peer: &Peer, view: &View, what: &str) -> Result<Option<Room<'static>>> {
        if peer.region.heap_base().is_some() {
            return Ok(None);
        }
        let why = self.ep.break_off(view.world, "the address of its heap");
        Err(self.peer_error(view.rank, &why, what))
    }

    /// What the table says about `len` bytes from an address on: the owner's address, and the entry's life.
    #[inline(always)]
    fn look_up(
        &self,
        window: &Window,
        ga: GlobalAddress,
        n: u32,
        offset: u64,
        len: usize,
        what: &str,
    ) -> Result<(u64, u64)> {
        let entry = window.entry(n as usize);
        // SYNC POINT: pairs with the release in `Rma::fill`; a use that is written down keeps the entry from changing once it is seen
        // valid.
        let life = entry.life.load(Ordering::Acquire);
        let (base, have) = (entry.base.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed));
        self.judge([life, base, have], ga, n, offset, len, what)
    }

    /// Is what an entry says what an address wants? The owner's address, and the entry's life.
    #[inline(always)]
    pub(super) fn judge(
        &self,
        [life, base, have]: [u64; 3],
        ga: GlobalAddress,
        n: u32,
        offset: u64,
        len: usize,
        what: &str,
    ) -> Result<(u64, u64)> {
        let colour = if n == BOUNCE { 0 } else { self.split.colour(ga) };
        let fits = have.checked_sub(offset).is_some_and(|rest| rest >= len as u64);
        if life & Entry::VALID == 0 || !fits || (life >> Entry::COLOUR_AT) as u32 & 1 != colour {
            return Err(self.not_registered(ga, len, life, have, what));
        }
        Ok((base.wrapping_add(offset), life))
    }

    /// Rank, entry and offset of an address; `None`: it names no rank of the job.
    #[inline(always)]
    pub(super) fn parts(&self, ga: GlobalAddress) -> Option<(u32, u32, u64)> {
        let rank = self.split.rank(ga).filter(|r| *r < self.ep.size)?;
        let key = self.split.key(ga);
        let n = if key == 0 && self.split.colour(ga) != 0 { BOUNCE } else { key };
        Some((rank, n, self.split.offset(ga)))
    }

    /// A use of what an address names.
    #[inline(always)]
    pub(super) fn use_of(&self, ga: GlobalAddress, what: &str) -> Result<Using<'_>> {
        match self.parts(ga) {
            Some((rank, n, _)) => using(&self.own, rank, n),
            None => Err(self.wrong_address(ga, 0, what)),
        }
    }

    #[cold]
    pub(super) fn wrong_address(&self, ga: GlobalAddress, _len: usize, what: &str) -> Error {
        let which = match self.split.rank(ga) {
            None => "the null address".to_owned(),
            Some(rank) => format!("{ga}, an address of rank {rank} in a job of {}", self.ep.size),
        };
        error!(Code::Argument, "rank {}: {what}: {which}", self.rank())
    }

    #[cold]
    fn not_registered(&self, ga: GlobalAddress, len: usize, life: u64, have: u64, what: &str) -> Error {
        let (rank, key, offset) = (self.split.rank(ga).unwrap_or(0), self.split.key(ga), self.split.offset(ga));
        let why = if life & Entry::VALID == 0 {
            "nothing is registered there".to_owned()
        } else if have.checked_sub(offset).is_none_or(|rest| rest < len as u64) {
            format!("out of range, what is registered there has {have} bytes")
        } else {
            format!("what is registered there has colour {}", (life >> Entry::COLOUR_AT) & 1)
        };
        error!(
            Code::Argument,
            "rank {}: {what}: {len} bytes at {ga} (rank {rank}, colour {}, key {key}, offset {offset}): {why}",
            self.rank(),
            self.split.colour(ga),
        )
    }

    #[cold]
    pub(super) fn peer_error(&self, rank: u32, why: &str, what: &str) -> Error {
        error!(Code::Peer, "rank {}: {what}: rank {rank} {why}", self.rank())
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests;
