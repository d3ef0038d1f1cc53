//! This rank's registrations: which memory is reachable under which key.
//!
//! The accounts are private; what others may see of them is the table in the window. A key is given out again as late as possible, and
//! not before nobody uses what it meant: see [`super::view`].

use std::collections::VecDeque;

use super::Rma;
use super::address::{COLOUR_BITS, GlobalAddress, OFFSET_BITS};
use super::queue::What;
use super::record::{ENTRIES_MOST, Entry};
use super::view::{RECORDS, is_used, using};
use crate::base::atomics::{AtomicU32, Ordering, fence};
use crate::base::error::{Code, Error, Result, error};
use crate::base::system::is_readable;
use crate::base::zeroed::Zeroed;
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell};

/// Names a registration of this rank: of the key, and of its turn among all that were ever given that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(u64);

impl AddressKey {
    /// The key as a number; never 0.
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// The key that this number is, whether or not there is such a one.
    pub const fn from_bits(bits: u64) -> AddressKey {
        AddressKey(bits)
    }
}

/// Keys that are free.
#[derive(Debug)]
pub(super) struct Registry {
    free: VecDeque<u32>,
}

/// What is registered, as this rank knows it by itself: the table in its window says the same to others, who may damage it.
pub(super) struct Entries(Zeroed<Entry>);

impl Entries {
    /// Nothing is.
    pub fn new() -> Result<Entries> {
        Zeroed::new(ENTRIES_MOST).map(Entries)
    }

    /// The entry of a key.
    #[inline(always)]
    pub fn at(&self, n: u32) -> &Entry {
        &self.0[n as usize]
    }

    /// What it says: life, first byte, bytes.
    #[inline(always)]
    pub fn of(&self, n: u32) -> [u64; 3] {
        let entry = self.at(n);
        // SYNC POINT: pairs with the release in `Rma::fill`.
        let life = entry.life.load(Ordering::Acquire);
        [life, entry.base.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed)]
    }
}

/// How often a key can be told apart from itself given out earlier.
const TURNS: u64 = 1 << OFFSET_BITS;

impl Registry {
    /// All keys are free but the starter memory's.
    pub fn new(keys: usize) -> Registry {
        Registry { free: (1..=keys as u32).collect() }
    }
}

impl Rma {
    /// Makes `len` bytes at `at` reachable under a new key.
    ///
    /// `Argument`: no bytes, more than an address's offset can name, a colour that there is not, or memory that cannot be read.
    /// `Memory`: all keys are in use.
    ///
    /// # Safety
    /// The memory must stay, and be used in ways that go together with what other ranks do to it, until the registration has ended.
    pub unsafe fn register(&'static self, at: *mut u8, len: usize, colour: u32) -> Result<AddressKey> {
        let wrong = |why: &str| {
            let text = format!("rank {}: registering {len} bytes at {at:p} with colour {colour}: {why}", self.rank());
            Err(Error::new(Code::Argument, text))
        };
        if at.is_null() || len == 0 {
            return wrong("there is no memory");
        }
        if len as u64 > 1 << OFFSET_BITS {
            return wrong(&format!(
                "a registration has at most {} bytes; register the memory in parts",
                1u64 << OFFSET_BITS
            ));
        }
        if colour >= 1 << COLOUR_BITS {
            return wrong(&format!("there are {} colours", 1 << COLOUR_BITS));
        }
        let shared = self.ep.heap.contains(at, len);
        if !shared && ((at as usize).checked_add(len).is_none() || !can_read(at, len)) {
            return wrong("this memory is not there, or cannot be read");
        }
        let mut registry = self.registry.lock().unwrap_or_else(|e| e.into_inner());
        let Some(key) = registry.free.pop_front() else {
            return Err(error!(
                Code::Memory,
                "rank {}: registering {len} bytes: all {} keys are in use (FMPL_RMA_KEYS)",
                self.rank(),
                self.ep.config.rma_keys
            ));
        };
        let turn = match self.fill(key, at, len, colour, shared) {
            Ok(turn) => turn,
            Err(error) => {
                registry.free.push_front(key);
                return Err(error);
            }
        };
        drop(registry);
        if !shared && self.ep.size > 1 {
            // Others cannot do everything to this memory by themselves.
            self.start_helper()?;
        }
        Ok(AddressKey(self.split.address(self.rank(), colour, key, turn).bits()))
    }

    /// Writes an entry, and registers its memory with the device if there is one; its turn.
    pub(super) fn fill(&self, n: u32, at: *mut u8, len: usize, colour: u32, shared: bool) -> Result<u64> {
        let (entry, own) = (self.own.entry(n as usize), self.entries.at(n));
        let (mut writable, mut rkey) = (true, 0);
        if let Some(device) = &self.device {
            // SAFETY: registered memory stays until its registration has ended, and so it has with the device.
            (writable, rkey) = unsafe { device.register(n, at, len)? };
        }
        entry.rkey.store(rkey, Ordering::Relaxed);
        let turn = ((own.life.load(Ordering::Relaxed) >> Entry::TURN_AT) + 1) % TURNS;
        for entry in [own, entry] {
            entry.base.store(at as u64, Ordering::Relaxed);
            entry.len.store(len as u64, Ordering::Relaxed);
        }
        let flags = Entry::VALID
            | if shared { Entry::SHARED } else { 0 }
            | if writable { 0 } else { Entry::READ_ONLY }
            | u64::from(colour) << Entry::COLOUR_AT;
        // SYNC POINT: pairs with the acquire in `Rma::resolve`.
        own.life.store(flags | turn << Entry::TURN_AT, Ordering::Release);
        entry.life.store(flags | turn << Entry::TURN_AT, Ordering::Release);
        Ok(turn)
    }

    /// Ends a registration; returns when no operation of any rank uses the memory any more. `Argument`: there is no such one.
    pub fn unregister(&'static self, key: AddressKey) -> Result<()> {
        let (n, _) = self.entry_of(key, "unregister")?;
        self.clear_entry(n)?;
        if let Some(device) = &self.device {
            self.have_discarded()?;
            self.attend(|| device.forget(n))?;
        }
        self.registry.lock().unwrap_or_else(|e| e.into_inner()).free.push_back(n);
        Ok(())
    }

    /// Has the ranks that keep entries of this one's table discard them, and waits for their word.
    fn have_discarded(&'static self) -> Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        // One at a time: who finds no holder any more may rely on all having answered.
        let _one = device.discarding.lock().unwrap_or_else(|e| e.into_inner());
        let holders = device.take_holders()?;
        let asked = holders.into_iter().map(|world| Ok(self.enqueue(What::Discard { world }, 0)? as u64));
        let asked: Vec<u64> = asked.collect::<Result<_>>()?;
        self.attend(|| asked.iter().all(|number| self.is_through(*number)))?;
        // Nobody who is dead uses anything.
        let _ = self.take_failure(|number| asked.contains(&number));
        Ok(())
    }

    /// Ends what an entry says, and waits until it is used no more.
    pub(super) fn clear_entry(&'static self, n: u32) -> Result<()> {
        let own = &self.entries.at(n).life;
        let turn = own.load(Ordering::Relaxed) >> Entry::TURN_AT;
        own.store(turn << Entry::TURN_AT, Ordering::Relaxed);
        self.own.entry(n as usize).life.store(turn << Entry::TURN_AT, Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in `using`: whoever resolves the address from here on finds nothing, everybody else is seen.
        // Also orders the entry before the look at the holders: see `open_view`.
        fence(Ordering::SeqCst);
        let me = self.rank();
        let unused = Unused { rma: self, n, user: AtomicU32::new(me) };
        for group in 0..self.ep.size.div_ceil(64) {
            let mut holders = self.own.holders(group as usize).load(Ordering::Acquire);
            if group == self.ep.rank / 64 {
                holders |= 1 << (self.ep.rank % 64);
            }
            while holders != 0 {
                let world = group * 64 + holders.trailing_zeros();
                holders &= holders - 1;
                unused.user.store(world, Ordering::Relaxed);
                let mut waiter = Waiter::new();
                while !unused.ready() {
                    if !waiter.spin() {
                        waiter.slow(&unused)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The entry of a registration, and its first byte.
    fn entry_of(&self, key: AddressKey, what: &str) -> Result<(u32, u64)> {
        let ga = GlobalAddress::from_bits(key.0);
        let n = self.split.key(ga);
        let [life, base, _] = self.entries.of(n);
        let known = self.split.rank(ga) == Some(self.rank())
            && n != 0
            && life & Entry::VALID != 0
            && life >> Entry::TURN_AT == self.split.offset(ga)
            && (life >> Entry::COLOUR_AT) as u32 & 1 == self.split.colour(ga);
        if !known {
            let text = format!(
                "rank {}: {what}: {:#x} is no key of a registration of this rank, or of one that has ended",
                self.rank(),
                key.0
            );
            return Err(Error::new(Code::Argument, text));
        }
        Ok((n, base))
    }

    /// The global address of an address within a registration of this rank.
    pub fn address_of(&self, key: AddressKey, at: *const u8) -> Result<GlobalAddress> {
        let (n, base) = self.entry_of(key, "address")?;
        let len = self.entries.of(n)[2];
        let offset = (at as u64).checked_sub(base).filter(|o| *o <= len && *o < 1 << OFFSET_BITS);
        let Some(offset) = offset else {
            let text =
                format!("rank {}: address: {at:p} is not in the {len} bytes registered at {base:#x}", self.rank());
            return Err(Error::new(Code::Argument, text));
        };
        let colour = self.split.colour(GlobalAddress::from_bits(key.0));
        Ok(self.split.address(self.rank(), colour, n, offset))
    }

    /// The address in this process of a global address of this rank.
    pub fn local_address(&self, ga: GlobalAddress) -> Result<*mut u8> {
        let usage = self.use_of(ga, "query address")?;
        if self.split.rank(ga) != Some(self.rank()) {
            let text = format!("rank {}: query address: {ga} is an address of another rank", self.rank());
            return Err(Error::new(Code::Argument, text));
        }
        Ok(self.resolve(ga, 0, &usage, "query address")?.addr as *mut u8)
    }
}

/// Can the first and the last of these bytes be read? Whoever registers what is not there gets an error here and not a signal later.
fn can_read(at: *const u8, len: usize) -> bool {
    const PAGE: usize = 4096;
    let (first, last) = (at.addr(), at.addr() + (len - 1));
    is_readable(first) && (first / PAGE == last / PAGE || is_readable(last))
}

/// Waiting until a rank uses an entry of this one no more. Nobody rings: uses are short.
struct Unused {
    rma: &'static Rma,
    n: u32,
    /// Rank in the world.
    user: AtomicU32,
}

impl Scene for Unused {
    fn board(&self) -> &'static Board {
        self.rma.ep.board()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(0)
    }
    fn ready(&self) -> bool {
        let (me, world) = (self.rma.rank(), self.user.load(Ordering::Relaxed));
        let used = |window: &super::record::Window| is_used(window, |rank, n| rank == me && n == self.n);
        if world == self.rma.ep.rank {
            return !used(&self.rma.own);
        }
        // Nobody who is dead uses anything.
        if self.rma.ep.known(world).is_none_or(|p| p.is_dead()) {
            return true;
        }
        let number = self.rma.number_of(world);
        let Ok(usage) = using(&self.rma.own, number, RECORDS) else { return false };
        self.rma.view(number, &usage).is_ok_and(|view| view.local().is_none_or(|local| !used(&local.window)))
            || self.rma.ep.known(world).is_none_or(|p| p.is_dead())
    }
    fn gone(&self) -> Option<Error> {
        None
    }
    fn may_end(&self) -> bool {
        false
    }
    fn waits(&self) -> Waits {
        let peer = self.user.load(Ordering::Relaxed);
        Waits { operation: Operation::Global, peer, index: 0, comm: 0, bytes: 0, since_ns: 0 }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_found_out_and_nothing_is_changed() {
        let mask = || {
            // SAFETY: all zero is a set of signals, which the call fills.
            unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &mut mask), 0);
                (1..64).filter(|signal| libc::sigismember(&mask, *signal) == 1).collect::<Vec<_>>()
            }
        };
        let before = mask();
        // SAFETY: fresh pages, of which the second and the third are made unreadable.
        let pages = unsafe {
            let at = libc::mmap(
                core::ptr::null_mut(),
                4 * 4096,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(at.byte_add(4096), 2 * 4096, libc::PROT_NONE), 0);
            at.cast::<u8>().cast_const()
        };
        for (at, len, yes) in [
            (0, 1, true),
            (0, 4096, true),
            (4095, 1, true),
            (4095, 2, false),
            (4096, 1, false),
            (2 * 4096 - 1, 1, false),
            (2 * 4096 + 5, 3, false),
            (3 * 4096, 4096, true),
            (1, 3 * 4096, true),
            (3 * 4096 - 1, 2, false),
        ] {
            assert_eq!(can_read(pages.wrapping_add(at), len), yes, "{len} bytes at {at}");
        }
        let local = 0u8;
        assert!(can_read(&local, 1) && !can_read(16 as *const u8, 8) && !can_read(usize::MAX as *const u8, 1));
        // SAFETY: made above.
        unsafe { libc::munmap(pages.cast_mut().cast(), 4 * 4096) };
        assert_eq!(before, mask());
    }
}
