//! What a rank shows of its global memory: the records in its region, drawn and asserted.
//!
//! ```text
//!  2 KiB      header      which split, who is the rank of this number, who sleeps
//!  + 128      awake       where a thread looks for delegated copies
//!  + 192      delegated   a copy that somebody asks whoever is awake for
//!  6.5 KiB    uses        a line for each thread that is in an operation: whose key it is using just now
//!  67 KiB     table       32 B a key: what is registered under it
//!  3 MiB      holders     a bit for each rank that has mapped this window, and so may use a key
//!  4 MiB      replies     16 B for each remote command under way: how it went
//!  8 MiB      commands    the ring in which remote commands arrive (the ring of messages of any source, `p2p::any_source::ring`), or its
//!                         shares
//! ```
//! What every operation touches lies in different lines of the middle of a page: the innermost cache of a core keeps eight lines of one place
//! in a page, and at a page's beginning lie the ends of the buffers that are copied.
//!
//! Written by the owner, except `rank_claim` of the header (renumbering), the holders, `replied` and the replies, which
//! whoever served a command writes, the delegated copy, and the ring.

use crate::base::record::of_atomics;
use static_assertions::const_assert;

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::fabric::shm::region::{Mapping, RMA_AT, RMA_END};
use crate::p2p::any_source::ring::{Ring, SLOTS_MOST};
use crate::p2p::any_source::share::SHARES_MOST;

/// Threads of a process that can be in an operation at the same moment; more wait for a moment.
pub const USES: usize = 64;
/// Remote commands of a process under way.
pub const REPLIES: usize = 4096;

const HEADER_AT: usize = 2048;
const AWAKE_AT: usize = HEADER_AT + 128;
const DELEGATED_AT: usize = HEADER_AT + 192;
const USES_AT: usize = 4096 + 2560;
const TABLE_AT: usize = (64 << 10) + 3072;
const HOLDERS_AT: usize = 3 << 20;
const REPLIES_AT: usize = 4 << 20;
const RING_AT: usize = 8 << 20;
/// Where the ring of commands lies in the region.
pub const COMMANDS_AT: u64 = RMA_AT + RING_AT as u64;
/// Bytes that a peer maps.
pub const WINDOW_BYTES: usize = (RMA_END - RMA_AT) as usize;
/// Entries of the table: one for each key, and one for the library's own.
pub const ENTRIES_MOST: usize = (1 << super::address::KEY_BITS_MOST) + 1;

const_assert!(USES_AT + USES * 64 <= TABLE_AT);
const_assert!(TABLE_AT + ENTRIES_MOST * size_of::<Entry>() <= HOLDERS_AT);
const_assert!(HOLDERS_AT + (1 << super::address::RANK_BITS) / 8 <= REPLIES_AT);
const_assert!(REPLIES_AT + REPLIES * size_of::<Reply>() <= RING_AT);
const_assert!(RING_AT + SHARES_MOST * 4096 + SLOTS_MOST * (64 + 1024) <= WINDOW_BYTES);

/// What concerns everything.
#[repr(C, align(64))]
pub struct Header {
    /// The split of addresses; 0: this rank has no global memory (yet, or any more). Stored with release when all else is ready.
    pub digest: AtomicU64,
    /// Which process has the number of this one as its rank of global memory: rank in the world + 1; 0: nobody yet.
    pub rank_claim: AtomicU64,
    /// This process's number.
    pub number: AtomicU64,
    /// Slots of the ring of commands.
    pub commands: AtomicU64,
    /// 1: atomic operations on this rank's memory are made by its RDMA device only.
    pub changes: AtomicU64,
    /// Shares that the ring is split into; 0 is 1.
    pub shares: AtomicU64,
    _pad0: [AtomicU64; 2],
    /// Replies that have come.
    pub replied: AtomicU64,
    /// The helper thread sleeps.
    pub helper_asleep: AtomicU32,
    /// Calls in which a thread does what the helper does.
    pub attended: AtomicU32,
    /// Of these, those that sleep.
    pub callers_asleep: AtomicU32,
    /// What they and the helper sleep on (futex).
    pub bell: AtomicU32,
    _pad1: [AtomicU64; 5],
}

const_assert!(size_of::<Header>() == 128 && core::mem::offset_of!(Header, replied) == 64);

/// Whether a thread of the owner looks for delegated copies just now.
#[repr(C, align(64))]
pub struct Awake {
    /// The processor that it runs on, + 1; 0: none does. Written by the owner.
    pub at: AtomicU32,
    _pad: [AtomicU32; 15],
}

/// A copy that a rank asks this one for, as long as it is awake: see [`super::delegated`].
#[repr(C, align(64))]
pub struct DelegatedCopy {
    /// Who asks, from bit 32 on: rank in the world + 1; a number of its own; and how far it is, [`DelegatedCopy::WRITTEN`] and so on. 0: free.
    pub word: AtomicU64,
    /// The copy's addresses.
    pub dst: AtomicU64,
    /// See above.
    pub src: AtomicU64,
    /// Bytes; in the end 0, or the number of an error.
    pub len: AtomicU64,
    _pad: [AtomicU64; 4],
}

const_assert!(size_of::<Awake>() == 64 && size_of::<DelegatedCopy>() == 64);

impl DelegatedCopy {
    /// It is being written.
    pub const WRITTEN: u64 = 0;
    /// Whoever is awake may take it.
    pub const ASKED: u64 = 1;
    /// Somebody makes the copy.
    pub const TAKEN: u64 = 2;
    /// It is made, or could not be.
    pub const DONE: u64 = 3;
    /// Bits of how far it is.
    pub const STATE: u64 = 3;

    /// Asks for a copy, as `asker`, a word whose state is [`DelegatedCopy::WRITTEN`]; `false`: another's is there.
    #[inline]
    pub fn ask(&self, asker: u64, dst: u64, src: u64, len: u64) -> bool {
        // SYNC POINT: pairs with the release in `clear`: the last one has read how its copy went.
        if self.word.load(Ordering::Relaxed) != 0
            || self.word.compare_exchange(0, asker, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return false;
        }
        self.dst.store(dst, Ordering::Relaxed);
        self.src.store(src, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `take`: the copy sees what the asker has done before.
        self.word.store(asker | DelegatedCopy::ASKED, Ordering::Release);
        true
    }

    /// How far an asker's copy is.
    #[inline(always)]
    pub fn state(&self) -> u64 {
        // SYNC POINT: pairs with the release in `done`.
        self.word.load(Ordering::Acquire) & DelegatedCopy::STATE
    }

    /// The asker will have it no more; `false`: somebody makes the copy already.
    pub fn withdraw(&self, asker: u64) -> bool {
        self.word.compare_exchange(asker | DelegatedCopy::ASKED, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The asker has seen that it is over: 0, or the number of an error.
    pub fn clear(&self) -> u64 {
        let code = self.len.load(Ordering::Relaxed);
        self.word.store(0, Ordering::Release);
        code
    }

    /// Takes a copy that somebody asks for: its word, destination, source and length.
    #[inline(always)]
    pub fn take(&self) -> Option<[u64; 4]> {
        let word = self.word.load(Ordering::Relaxed);
        if word & DelegatedCopy::STATE != DelegatedCopy::ASKED {
            return None;
        }
        let taken = word ^ DelegatedCopy::ASKED ^ DelegatedCopy::TAKEN;
        self.word.compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let [dst, src, len] = [&self.dst, &self.src, &self.len].map(|w| w.load(Ordering::Relaxed));
        Some([taken, dst, src, len])
    }

    /// The copy is made (0), or could not be.
    pub fn done(&self, taken: u64, code: u64) {
        self.len.store(code, Ordering::Relaxed);
        self.word.store(taken | DelegatedCopy::DONE, Ordering::Release);
    }
}

of_atomics! { Record:
    /// What is registered under a key.
    #[repr(C, align(32))]
    pub struct Entry {
        /// [`Entry::VALID`], [`Entry::SHARED`], the colour, and from bit 8 on how often the key has been given out.
        pub life: AtomicU64,
        /// The owner's address of the first byte.
        pub base: AtomicU64,
        /// Bytes.
        pub len: AtomicU64,
        /// The device's key, where ranks are on several nodes.
        pub rkey: AtomicU64,
    }
}

const_assert!(size_of::<Entry>() == 32);

impl Entry {
    /// [`Entry::life`]: something is registered.
    pub const VALID: u64 = 1;
    /// [`Entry::life`]: in memory that peers have mapped.
    pub const SHARED: u64 = 2;
    /// [`Entry::life`]: where the colour is.
    pub const COLOUR_AT: u32 = 2;
    /// [`Entry::life`]: the device cannot write it.
    pub const READ_ONLY: u64 = 8;
    /// [`Entry::life`]: where the count of uses of the key is.
    pub const TURN_AT: u32 = 8;
}

/// How a remote command went.
#[repr(C, align(16))]
pub struct Reply {
    /// The command's token from bit 8 on, and 0 or the number of an error; stored last, with release.
    pub word: AtomicU64,
    /// What was there before an atomic operation.
    pub value: AtomicU64,
}

const_assert!(size_of::<Reply>() == 16);

/// A use of a key by a thread: the owner waits for it before the key can come to mean something else.
#[repr(C, align(64))]
pub struct Use {
    /// Rank in the world + 1 from bit 32 on, and the entry; 0: none.
    pub word: AtomicU64,
}

/// The window of a rank as a process has it mapped.
#[derive(Debug)]
pub struct Window(Mapping);

impl Window {
    /// A mapping of [`WINDOW_BYTES`] bytes from [`RMA_AT`] on.
    pub fn new(mapping: Mapping) -> Window {
        assert!(mapping.len() >= WINDOW_BYTES);
        Window(mapping)
    }

    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the callers below compute offsets within the window; the records are atomics, for which any content is valid, and
        // the window is mapped as long as self lives.
        unsafe { &*self.0.as_ptr().add(offset).cast::<T>() }
    }

    /// What concerns everything.
    #[inline(always)]
    pub fn header(&self) -> &Header {
        self.at(HEADER_AT)
    }

    /// Whether a thread of the owner looks for delegated copies.
    #[inline(always)]
    pub fn awake(&self) -> &AtomicU32 {
        let awake: &Awake = self.at(AWAKE_AT);
        &awake.at
    }

    /// The delegated copy.
    #[inline(always)]
    pub fn delegated(&self) -> &DelegatedCopy {
        self.at(DELEGATED_AT)
    }

    /// What is registered under a key; `n` below [`ENTRIES_MOST`].
    #[inline(always)]
    pub fn entry(&self, n: usize) -> &Entry {
        debug_assert!(n < ENTRIES_MOST);
        self.at(TABLE_AT + n * size_of::<Entry>())
    }

    /// The table of so many keys, and its bytes: for the device to be read.
    pub fn table(&self, keys: usize) -> (*mut u8, usize) {
        let entries: *const Entry = self.entry(0);
        (entries.cast::<u8>().cast_mut(), keys.min(ENTRIES_MOST) * size_of::<Entry>())
    }

    /// A reply; `n` below [`REPLIES`].
    #[inline(always)]
    pub fn reply(&self, n: usize) -> &Reply {
        self.at(REPLIES_AT + (n & (REPLIES - 1)) * size_of::<Reply>())
    }

    /// Sixty-four bits of the holders; `n`: the first one's rank in the world / 64.
    #[inline(always)]
    pub fn holders(&self, n: usize) -> &AtomicU64 {
        debug_assert!(n < 1 << (super::address::RANK_BITS - 6));
        self.at(HOLDERS_AT + n * 8)
    }

    /// A use; `n` below [`USES`].
    #[inline(always)]
    pub fn usage(&self, n: usize) -> &Use {
        self.at(USES_AT + (n & (USES - 1)) * size_of::<Use>())
    }

    /// Puts down how a command of this window's owner went, and wakes whoever waits for it.
    pub fn answer(&self, place: usize, word: u64, value: u64) {
        let reply = self.reply(place);
        reply.value.store(value, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `answered`.
        reply.word.store(word, Ordering::Release);
        // SYNC POINT: pairs with the acquire in `Rma::move_on`.
        self.header().replied.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    /// What is at the place of a reply: its word and value.
    pub fn answered(&self, place: usize) -> (u64, u64) {
        let reply = self.reply(place);
        // SYNC POINT: pairs with the release in `answer`.
        let word = reply.word.load(Ordering::Acquire);
        (word, reply.value.load(Ordering::Relaxed))
    }

    /// The helper of the owner sleeps until it is rung for, unless `busy` says, when all can know that it sleeps, how long it may at most:
    /// not at all (0), or so many ns.
    pub fn sleep(&self, busy: impl FnOnce() -> u64) {
        let header = self.header();
        // The bell first: a ring between here and the sleep changes its value, and the sleep ends at once.
        let seen = header.bell.load(Ordering::Acquire);
        header.helper_asleep.store(1, Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in `wake`, and with that in `wake_helper`.
        crate::base::atomics::fence(Ordering::SeqCst);
        let longest = busy();
        if longest != 0 {
            crate::wait::doorbell::sleep(&header.bell, seen, u32::MAX, longest);
        }
        header.helper_asleep.store(0, Ordering::Relaxed);
    }

    /// Rings whoever sleeps until a command or a reply comes, after that has been stored.
    pub fn wake(&self) {
        // SYNC POINT: with the fence of a sleeper between its word and its last look, one of the two sees the other.
        crate::base::atomics::fence(Ordering::SeqCst);
        let h = self.header();
        let helper = h.helper_asleep.load(Ordering::Relaxed) != 0 && h.attended.load(Ordering::Relaxed) == 0;
        if helper || h.callers_asleep.load(Ordering::Relaxed) != 0 {
            crate::wait::doorbell::ring(&h.bell, u32::MAX);
        }
    }
}

/// A share of a rank's ring of commands, in a mapping of its own.
pub fn ring(mapping: Mapping, slots: usize) -> Ring {
    Ring::new(mapping, slots, EPOCH)
}

/// The marks of commands are for one ring only.
const EPOCH: u16 = 1;
