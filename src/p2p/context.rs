//! The communicators that this process belongs to: which ranks, which memory.
//!
//! A communicator is known by three numbers. Its **handle** is this process's own and what the program has; a freed one is no other
//! communicator's for half a million reuses of its place. Its **epoch** and its first **unit** are what the members agreed on when it
//! was made: the epoch is larger than that of any communicator that one of them ever belonged to; the units say where, between any
//! two of them, its lanes lie, and no other communicator of a member has them.
//!
//! ```text
//!  handle    0 | use 19 | place 12
//!  lane of ranks a < b of the world: in a's region at PLACES_AT + b * 256 GiB + unit * 1 MiB
//! ```

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32};

use crate::base::error::{Code, Error, Result, error};
use crate::base::leaked::Leaked;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::unused::Unused;
use crate::base::zeroed::Zeroed;
use crate::lane::Place;
use crate::lane::map::WORLD_UNIT;
use crate::lane::table::COMMUNICATORS;
use crate::p2p::COMM_WORLD;
use crate::p2p::endpoint::WORLD_EPOCH;
use crate::p2p::grid::Grid;
use crate::p2p::group::Group;

/// A communicator, as this process has it.
pub struct Context {
    /// Its number in this process: `fmpl_comm`.
    pub handle: i32,
    /// The ranks.
    pub group: Group,
    /// The numbers that the members agreed on.
    pub place: Place,
    /// Indices that there is room for.
    pub indices: usize,
    /// Calls of `send_any` and the like, collectives: numbers that the members count in step.
    pub steps: AtomicU32,
    /// A thread makes a communicator from this one.
    pub making: AtomicBool,
    /// The ranks of the world that this one agrees with at this moment on a communicator of their own, in order; none when it does not.
    pub part: Mutex<Vec<u32>>,
    /// The last letter of each rank here that belongs to another such agreement, which this one may yet come to.
    pub early: Mutex<BTreeMap<u32, Vec<u8>>>,
    /// The grid that the ranks form, if it was made as one.
    pub grid: OnceLock<Grid>,
}

impl Context {
    /// Is this rank of the world one of those that this one agrees with at this moment?
    pub fn part_has(&self, world: u32) -> bool {
        self.part.lock().unwrap_or_else(|e| e.into_inner()).binary_search(&world).is_ok()
    }

    /// Where this rank tells the others of its part in it.
    pub fn place_of_life(&self) -> Place {
        if self.handle == COMM_WORLD { Place { unit: WORLD_UNIT, ..Place::default() } } else { self.place }
    }
}

/// The communicators of this process.
pub struct Contexts {
    table: Zeroed<Leaked<Context>>,
    books: Mutex<Books>,
}

/// What is kept of communicators that come and go.
#[derive(Default)]
struct Books {
    /// How often each place of the table was used.
    uses: BTreeMap<usize, u32>,
    /// Units in use, or offered in an agreement that is under way: a bit each, by word.
    units: BTreeMap<u32, u64>,
    /// The largest epoch of a communicator that this process has belonged to.
    epoch: u32,
    /// Communicators alive, without the world.
    alive: usize,
}

/// Units that are offered for a new communicator: free ones of a stretch.
pub struct Offer {
    /// The first unit of the stretch.
    pub first: u32,
    /// A bit for each unit that is free.
    pub free: [u64; OFFER_WORDS],
}

/// Words of an offer.
pub const OFFER_WORDS: usize = 32;
/// Units of an offer.
pub const OFFER_UNITS: usize = OFFER_WORDS * 64;

const USES: u32 = (1 << 19) - 1;

impl Contexts {
    /// The world alone.
    pub fn new(rank: u32, size: u32) -> Result<Contexts> {
        let table: Zeroed<Leaked<Context>> = Zeroed::new(COMMUNICATORS)?;
        let world = Context {
            handle: COMM_WORLD,
            group: Group::world(rank, size),
            place: Place::default(),
            indices: crate::lane::map::INDEX_MAX,
            steps: AtomicU32::new(0),
            making: AtomicBool::new(false),
            part: Mutex::default(),
            early: Mutex::default(),
            grid: OnceLock::new(),
        };
        table[0].put(world);
        Ok(Contexts { table, books: Mutex::default() })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The communicator of a handle.
    #[inline]
    pub fn find(&self, handle: i32) -> Option<&'static Context> {
        // Freed in `remove` only, when nobody uses the communicator any more: the interface's demand.
        self.table[handle as usize & (COMMUNICATORS - 1)].get().filter(|context| context.handle == handle)
    }

    /// The place of the communicator whose epoch ends with these 28 bits; for threads of the library, which have none in use.
    pub fn place_of(&self, number: u32) -> Option<Place> {
        let _books = self.books();
        // Under the lock nothing is taken out.
        let all = self.table.iter().filter_map(Leaked::get);
        all.map(|c| c.place).find(|place| place.epoch & 0xfff_ffff == number)
    }

    /// Was this handle a communicator's that has been freed?
    pub fn was_freed(&self, handle: i32) -> bool {
        let (place, this) = (handle as usize & (COMMUNICATORS - 1), handle as u32 >> 12);
        handle > 0 && place != 0 && self.books().uses.get(&place).is_some_and(|uses| this <= *uses)
    }

    /// Communicators alive, without the world.
    pub fn alive(&self) -> usize {
        self.books().alive
    }

    /// Bytes that this process has by itself for the ranks of its communicators.
    pub fn own_bytes(&self) -> usize {
        let _books = self.books();
        // Under the lock nothing is taken out.
        self.table.iter().filter_map(Leaked::get).map(|context| context.group.own_bytes()).sum()
    }

    /// An error if there is no room for another communicator.
    pub fn check_room(&self) -> Result<()> {
        let most = COMMUNICATORS - 1;
        if self.alive() < most {
            return Ok(());
        }
        Err(error!(Code::Memory, "all {most} communicators of this process are in use"))
    }

    /// Takes a communicator in; its handle.
    pub fn add(&self, group: Group, place: Place, indices: usize) -> Result<&'static Context> {
        let mut books = self.books();
        let n = (1..COMMUNICATORS).find(|n| self.table[*n].get().is_none());
        let Some(n) = n else {
            drop(books);
            return Err(self.check_room().err().unwrap_or_else(|| Error::new(Code::Memory, "no communicator is free")));
        };
        let uses = books.uses.entry(n).or_insert(0);
        // 0 is left out, so that small numbers are no handles.
        *uses = if *uses == USES { 1 } else { *uses + 1 };
        let handle = (*uses << 12) as i32 | n as i32;
        books.alive += 1;
        let (steps, making) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(self.table[n].put(Context {
            handle,
            group,
            place,
            indices,
            steps,
            making,
            part: Mutex::default(),
            early: Mutex::default(),
            grid: OnceLock::new(),
        }))
    }

    /// Takes a communicator out. Its units stay taken until [`Contexts::give_back`].
    pub fn remove(&self, handle: i32, unused: &Unused) {
        // Under the lock: see `place_of`.
        let mut books = self.books();
        books.alive -= 1;
        drop(self.table[handle as usize & (COMMUNICATORS - 1)].take(unused));
    }

    /// Offers the free units from `first` on: until [`Contexts::settle`] nobody else of this process does.
    pub fn offer(&self, first: u32) -> Offer {
        let mut books = self.books();
        let mut offer = Offer { first, free: [0; OFFER_WORDS] };
        for (n, free) in offer.free.iter_mut().enumerate() {
            let word = books.units.entry(first / 64 + n as u32).or_insert(0);
            *free = !*word;
            *word = u64::MAX;
            if first / 64 + n as u32 == WORLD_UNIT / 64 {
                *free &= !(1 << (WORLD_UNIT % 64));
            }
        }
        offer
    }

    /// The end of an offer: `place`, if any, is taken, and all else free again.
    pub fn settle(&self, offer: &Offer, place: Option<Place>) {
        let mut books = self.books();
        for (n, free) in offer.free.iter().enumerate() {
            let at = offer.first / 64 + n as u32;
            match books.units.get(&at).copied().unwrap_or(0) & !free {
                0 => books.units.remove(&at),
                taken => books.units.insert(at, taken),
            };
        }
        if let Some(place) = place {
            books.mark(place, true);
        }
    }

    /// Gives units back that were taken by [`Contexts::settle`]: never used, or used by nobody any more.
    pub fn give_back(&self, place: Place) {
        self.books().mark(place, false);
    }

    /// The largest epoch of a communicator that this process has belonged to, the world included: rings of any source that the world takes
    /// over from one that is freed tell their messages apart by it.
    pub fn epoch(&self) -> u32 {
        self.books().epoch.max(u32::from(WORLD_EPOCH))
    }

    /// Notes an epoch that was agreed on.
    pub fn note_epoch(&self, epoch: u32) {
        let mut books = self.books();
        books.epoch = books.epoch.max(epoch);
    }
}

impl Books {
    fn mark(&mut self, place: Place, taken: bool) {
        for unit in place.unit..place.unit + place.units {
            let (at, bit) = (unit / 64, 1u64 << (unit % 64));
            let word = self.units.get(&at).copied().unwrap_or(0);
            match if taken { word | bit } else { word & !bit } {
                0 => self.units.remove(&at),
                word => self.units.insert(at, word),
            };
        }
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        // SAFETY: the endpoint goes away, so nobody is in the library.
        let unused = unsafe { Unused::promised() };
        self.table.iter().for_each(|context| drop(context.take(&unused)));
    }
}
