//! How a lane comes to be, grows with the indices that both sides have, and goes.

use super::*;

/// Which communicator a lane belongs to, in the numbers that its members agreed on. All zero for the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The communicator's number: no two that a rank ever belonged to have the same one.
    pub epoch: u32,
    /// The first of its units.
    pub unit: u32,
    /// How many they are.
    pub units: u32,
}

impl Lane {
    /// Puts a lane of the world together. `window`: its window in the host's region. `indices`: what both sides have, without
    /// the system's.
    #[expect(clippy::too_many_arguments, reason = "each is a fact about the pair, and there is one caller")]
    pub fn new(
        comm: i32,
        epoch: u16,
        me: u32,
        peer_rank: u32,
        peer: Option<Arc<Peer>>,
        peer_board: *const Board,
        window: Mapping,
        indices: usize,
    ) -> Result<Lane> {
        let pair = Arc::new(Pair::new(peer_rank, peer, peer_board, window));
        let header = pair.window.as_ptr();
        // To myself both roles share one direction: I send on half 0 and receive from half 0.
        let (out, inn) = if me == peer_rank { (0, 0) } else { ((me > peer_rank) as usize, (me < peer_rank) as usize) };
        let key = Lane::key_of(comm, peer_rank);
        let lane = Lane::put_together(key, pair, (out, inn), Map::WORLD, header, epoch, Place::default())?;
        lane.widen(indices)?;
        lane.open(epoch);
        Ok(lane)
    }

    /// Puts a lane of another communicator together, beside the world's `lane` to the same peer. `rank`: the peer's in the
    /// communicator. It is not to be used before [`Lane::come_alive`].
    pub fn of_communicator(comm: i32, rank: u32, lane: &Lane, place: Place, window: Mapping) -> Result<Lane> {
        let (key, map) = (Lane::key_of(comm, rank), Map::of_units(place.units as usize));
        let (sides, at) = ((lane.out, lane.inn), window.as_ptr());
        let mut made = Lane::put_together(key, lane.pair.clone(), sides, map, at, place.epoch as u16, place)?;
        made._window = Some(window);
        Ok(made)
    }

    pub(super) fn put_together(
        key: u64,
        pair: Arc<Pair>,
        (out, inn): (usize, usize),
        map: Map,
        header: *mut u8,
        epoch: u16,
        place: Place,
    ) -> Result<Lane> {
        let beside = SEND_STRIDE + RECEIVE_STRIDE;
        let private = progress_bytes(map.slots) + map.slots * beside;
        let progress = reserve(private)?;
        let send_sides = progress.wrapping_add(progress_bytes(map.slots));
        let receive_sides = send_sides.wrapping_add(map.slots * SEND_STRIDE);
        let at = |offset: usize| header.wrapping_add(offset);
        let half = |side: usize| at(map.hot + side * size_of::<Half>());
        let side = |n: usize| at(core::mem::offset_of!(LaneHeader, side) + n * size_of::<Side>()).cast_const().cast();
        let counts = &raw const pair.traffic;
        Ok(Lane {
            key,
            progress,
            special: AtomicU32::new(0),
            limit: AtomicU32::new(0),
            epoch,
            sending: [out, 1 - out].map(half),
            receiving: [inn, 1 - inn].map(half),
            postings: [out, inn].map(|side| at(map.posting + Lane::paired(side, 0) * size_of::<Posting>())),
            my_side: side(out),
            peer_side: side(if out == inn { out } else { 1 - out }),
            out,
            inn,
            header,
            heads: at(map.head),
            splits: [0, 1, 2].map(|n| at(map.split + n * map.slots * 64)),
            annexes: [0, 1, 2].map(|n| at(map.annex + n * map.slots * ANNEX_BYTES)),
            send_sides,
            receive_sides,
            shapes: at(map.shape),
            announced: at(map.announced[0]),
            queue: at(map.queue),
            map,
            pair,
            place,
            private,
            counts,
            sent_bytes: AtomicU64::new(0),
            announced_queued: AtomicU64::new(0),
            announced_taken: AtomicU64::new(0),
            announced_read: AtomicU64::new(0),
            any_plain: AtomicBool::new(false),
            any_slot: AtomicU32::new(0),
            any_len: AtomicU64::new(0),
            posted_long: AtomicU32::new(0),
            spooled: Default::default(),
            any: Default::default(),
            held: AtomicU32::new(0),
            door: Default::default(),
            pinned: AtomicBool::new(false),
            remote: None,
            _window: None,
        })
    }

    /// Makes a lane between nodes of it, not yet in use: its memory so far is its view.
    pub fn between_nodes(mut self, remote: crate::lane::remote::Remote) -> Lane {
        self.key |= crate::lane::remote::REMOTE;
        self.remote = Some(Box::new(remote));
        self.special.fetch_or(SPECIAL_REMOTE, Ordering::AcqRel);
        self
    }

    pub(super) fn open(&self, epoch: u16) {
        let header = self.header();
        header.version.store(LAYOUT_VERSION, Ordering::Relaxed);
        header.epoch.store(epoch as u32, Ordering::Relaxed);
        header.magic.store(LANE_MAGIC, Ordering::Release);
        self.my_side().state.store(SIDE_OPEN, Ordering::Release);
    }

    /// Makes a communicator's lane ready for use: whoever of the two comes first clears away what an earlier communicator left
    /// there. `false`: the other is at it.
    ///
    /// That nobody uses the earlier communicator any more was agreed on when this one was made.
    pub fn come_alive(&self, indices: usize) -> Result<bool> {
        let life = &self.header().life;
        let mine = (self.place.epoch as u64) << 32;
        // SYNC POINT: pairs with the release below, of the other side.
        let now = life.load(Ordering::Acquire);
        if now == mine | LIFE_WIPING {
            return Ok(false);
        }
        if now != mine | LIFE_OPEN {
            if life.compare_exchange(now, mine | LIFE_WIPING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                return Ok(false);
            }
            if now != 0 {
                self.wipe()?;
            }
            life.store(mine | LIFE_OPEN, Ordering::Release);
        }
        self.widen(indices)?;
        self.open(self.epoch);
        Ok(true)
    }

    /// Zeroes all of the window but its life. What was never touched stays untouched.
    pub(super) fn wipe(&self) -> Result<()> {
        let page = crate::fabric::shm::region::page_size();
        let life = core::mem::offset_of!(LaneHeader, life);
        // SAFETY: the window is this communicator's, whose members use it only when it is alive; the first page has the header,
        // and the window is longer than a page.
        unsafe {
            self.header.write_bytes(0, life);
            self.header.add(life + 8).write_bytes(0, page - life - 8);
        }
        self.give_pages_back(page)
    }

    /// Gives the window's pages from an offset on back to the system; they read as zero afterwards.
    pub(in crate::lane) fn give_pages_back(&self, from: usize) -> Result<()> {
        // SAFETY: within the window, which is a shared mapping of a file; from here on its pages are as never touched.
        let r = unsafe { libc::madvise(self.header.add(from).cast(), self.map.bytes - from, libc::MADV_REMOVE) };
        if r != 0 { Err(Error::system("giving back the memory of a communicator (MADV_REMOVE)")) } else { Ok(()) }
    }

    /// This side will use the communicator's lane no more. Whoever of the two is last gives its memory back; `alone`: the peer has
    /// freed the communicator, so that it is closed by now if it ever was open there.
    pub fn close(&self, alone: impl FnOnce() -> bool) -> Result<()> {
        let header = self.header();
        let other = if self.is_self() { self.out } else { 1 - self.out };
        let before = header.closed.fetch_or(1 << self.out, Ordering::AcqRel);
        if self.is_self() || self.remote.is_some() || before & (1 << other) != 0 || alone() {
            return self.give_pages_back(0);
        }
        Ok(())
    }

    /// Waits until nobody holds the lane, which is in no table any more. It ends: what is done while one is held ends by itself, and with
    /// the connection.
    pub(in super::super) fn until_released(&self) {
        // SYNC POINT: pairs with the release in the drop of `Held`.
        while self.held.load(Ordering::Acquire) != 0 {
            spin_loop();
            crate::base::thread::yield_core();
        }
    }

    /// Declares the lane's memory shared in a model.
    #[cfg(loom)]
    pub fn in_model(&self) {
        use crate::base::shadow::share;
        share(self.progress, progress_bytes(self.map.slots));
        let queue = [&self.announced_queued, &self.announced_taken, &self.announced_read, &self.transfers_used];
        for word in queue.into_iter().chain(&self.ring_sent).chain(&self.turn_tags) {
            share((&raw const *word).cast(), size_of::<AtomicU64>());
        }
        for word in [&self.rings_used, &self.turns, &self.turn_last] {
            share((&raw const *word).cast(), size_of::<AtomicU32>());
        }
    }

    /// The peer dies in a model.
    #[cfg(loom)]
    pub fn dies_in_model(&self) {
        crate::base::shadow::share((&raw const self.dead).cast(), size_of::<AtomicU32>());
    }

    /// Begins an execution of a model: what is not shared memory is as in the beginning.
    #[cfg(loom)]
    pub fn renew(&self, slots: core::ops::Range<usize>) {
        for slot in slots {
            // SAFETY: slots below `limit`; zero bytes are their first state.
            unsafe {
                self.send_sides.add(slot * SEND_STRIDE).write_bytes(0, SEND_STRIDE);
                self.receive_sides.add(slot * RECEIVE_STRIDE).write_bytes(0, RECEIVE_STRIDE);
                self.progress.add(slot * PROGRESS_STRIDE + WANTED_AT).write_bytes(0, size_of::<Wanted>());
            }
        }
        self.transfer_tag.store(1, Ordering::Relaxed);
        self.spooled.lock().unwrap_or_else(|e| e.into_inner()).clear();
        *self.any.lock().unwrap_or_else(|e| e.into_inner()) = Default::default();
        self.any_plain.store(false, Ordering::Relaxed);
        self.any_slot.store(0, Ordering::Relaxed);
        if let Some(peer) = &self.peer {
            peer.cma_on();
        }
    }

    /// Makes room for this many indices (the smaller of the pair's numbers).
    pub fn widen(&self, indices: usize) -> Result<()> {
        let slots = (indices + SYSTEM_INDICES).min(self.map.slots);
        if slots as u32 <= self.limit.load(Ordering::Acquire) {
            return Ok(());
        }
        if slots == self.map.slots {
            open(self.progress, self.private)?;
        } else {
            open(self.progress, progress_bytes(slots))?;
            open(self.send_sides, slots * SEND_STRIDE)?;
            open(self.receive_sides, slots * RECEIVE_STRIDE)?;
        }
        self.limit.fetch_max(slots as u32, Ordering::AcqRel);
        Ok(())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: reserved in `put_together`, used by nobody once the lane is dropped.
        unsafe { libc::munmap(self.progress.cast(), self.private) };
    }
}
