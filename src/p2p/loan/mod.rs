//! Messages that are handed over: the receiver gets the sender's memory, not a copy of it.
//!
//! ```text
//!   S: loan, fills it                      hot line, or chain                    R
//!      claims it, for R
//!      landing of kind loan: which memory  ─────────────────▶   finds its own address of it, notes that it holds it
//!                                                               reads it in place, from any thread, as long as it likes
//!      word = generation?                  ◀─────────────────   word = generation
//! ```
//! So what travels are 16 bytes, by the ways of short messages; matching, order, waits and deaths are those of messages. An ordinary receive
//! copies out of the loan and returns it; an ordinary message to one who wants a loan is copied into a loan, by its sender if the receive is
//! posted.
//!
//! | file | what it does |
//! |---|---|
//! | `pool` | the loans of this process: which are idle, with whom the others are |
//! | `book` | whether an address is the start of a loan |
//! | `send`, `receive` | one message out, one message in |
//! | `mcast` | one loan to many |

mod book;
mod mcast;
mod pool;
mod receive;
mod send;

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::{Cursor, Layout};
use crate::base::lock::Mutex;
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::heap::Heap;
use crate::fabric::shm::peer::Peer;
use crate::lane::Lane;
use crate::lane::loan::{Descriptor, Lender, Returned};
use crate::p2p::endpoint::{Endpoint, endpoint};
use book::Book;
use pool::{Pool, Wrong};

pub use mcast::mcast_loan;
pub use receive::{Lent, irecv_loan, irecv_loan_test, irecv_loan_wait, recv_loan};
pub use send::send_loan;
pub(in crate::p2p) use send::{Claimed, claim};

/// Peers whose loans a process can hold.
const LENDERS: usize = 1 << 16;
/// In an entry of the book, in place of a lender: the loan is this process's own.
const OWN: u64 = LENDERS as u64 - 1;
const LENDER_AT: u32 = 48;
const TICKET_AT: u32 = 28;
const TICKET_MASK: u64 = (1 << 20) - 1;
const GENERATION_MASK: u64 = (1 << TICKET_AT) - 1;

/// Bytes of the loan that a rank of a model has.
#[cfg(loom)]
pub const IN_MODEL: usize = 64;

/// The entry of a loan of this process's.
fn own_entry(ticket: u32) -> u64 {
    OWN << LENDER_AT | (ticket as u64) << TICKET_AT
}

/// The entry of a loan of another's, held.
fn held_entry(lender: u32, ticket: u32, generation: u32) -> u64 {
    (lender as u64) << LENDER_AT | (ticket as u64) << TICKET_AT | generation as u64
}

fn lender_of(entry: u64) -> u64 {
    entry >> LENDER_AT
}
fn ticket_of(entry: u64) -> u32 {
    (entry >> TICKET_AT & TICKET_MASK) as u32
}

/// The loans that a process has made, and those that it holds.
pub struct Loans {
    limits: (usize, usize),
    rank: u32,
    kept: OnceLock<Kept>,
    /// Bytes that were copied into loans and out of them.
    copied: AtomicU64,
    making: Mutex<()>,
}

/// What is made at the first loan that is taken or received.
struct Kept {
    book: Book,
    pool: OnceLock<Pool>,
    /// The words of lenders' tickets, by the lenders' numbers from 1 on.
    lenders: Zeroed<AtomicPtr<Returned>>,
    known: AtomicU64,
}

impl Loans {
    /// None yet. `limits`: loans and bytes.
    pub fn new(rank: u32, limits: (usize, usize)) -> Loans {
        Loans { limits, rank, kept: OnceLock::new(), copied: AtomicU64::new(0), making: Mutex::new(()) }
    }

    #[inline(always)]
    fn kept(&self) -> Result<&Kept> {
        match self.kept.get() {
            Some(kept) => Ok(kept),
            None => self.begin(),
        }
    }

    #[cold]
    fn begin(&self) -> Result<&Kept> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.kept.get().is_none() {
            let lenders = Zeroed::new(LENDERS)?;
            let kept = Kept { book: Book::new()?, pool: OnceLock::new(), lenders, known: AtomicU64::new(0) };
            let _ = self.kept.set(kept);
        }
        self.kept.get().ok_or_else(|| Error::new(Code::Memory, "no memory for loans"))
    }

    #[inline(always)]
    fn pool<'a>(&self, kept: &'a Kept, heap: &Heap) -> Result<&'a Pool> {
        match kept.pool.get() {
            Some(pool) => Ok(pool),
            None => self.make_pool(kept, heap),
        }
    }

    #[cold]
    fn make_pool<'a>(&self, kept: &'a Kept, heap: &Heap) -> Result<&'a Pool> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.pool.get().is_none() {
            let _ = kept.pool.set(Pool::new(heap, self.rank, self.limits)?);
        }
        kept.pool.get().ok_or_else(|| Error::new(Code::Memory, "no memory for loans"))
    }

    /// Memory of `size` bytes.
    #[inline(always)]
    pub fn take(&self, heap: &Heap, size: usize) -> Result<*mut u8> {
        let kept = self.kept()?;
        self.pool(kept, heap)?.take(heap, &kept.book, size)
    }

    /// Returns a loan: one that was not sent, or one that was received.
    #[inline(always)]
    pub fn give_back(&self, at: *const u8) -> Result<()> {
        let found = self.kept.get().and_then(|kept| Some((kept, kept.book.find(at)?)));
        let Some((kept, entry)) = found else { return Err(self.no_loan(at)) };
        let now = entry.load(Ordering::Acquire);
        if now == 0 {
            return Err(self.no_loan(at));
        }
        if lender_of(now) == OWN {
            let pool = kept.pool.get().ok_or_else(|| self.no_loan(at))?;
            return pool.give_back(ticket_of(now)).map_err(|w| self.wrong(at, "returning", w));
        }
        entry.store(0, Ordering::Relaxed);
        // SAFETY: entries have numbers of lenders that were noted before, whose words stay mapped as long as the endpoint lives, and tickets
        // for which there is a word.
        unsafe {
            let words = kept.lenders[lender_of(now) as usize].load(Ordering::Acquire);
            (*words.add(ticket_of(now) as usize)).say((now & GENERATION_MASK) as u32);
        }
        Ok(())
    }

    /// A peer as one who lends. `None`: it has made no loans, or there is no room to map them.
    #[inline(always)]
    fn lender<'a>(&self, kept: &Kept, peer: &'a Peer) -> Option<Lender<'a>> {
        Lender::of(peer).or_else(|| self.meet(kept, peer))
    }

    #[cold]
    fn meet<'a>(&self, kept: &Kept, peer: &'a Peer) -> Option<Lender<'a>> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.known.load(Ordering::Relaxed) + 1;
        if number >= OWN {
            return None;
        }
        let lender = Lender::meet(peer, number as u32)?;
        if lender.number() as u64 == number {
            kept.lenders[number as usize].store(lender.words(), Ordering::Release);
            kept.known.store(number, Ordering::Relaxed);
        }
        Some(lender)
    }

    /// Copies a loan that is held out of it, as far as there is room, and returns it.
    pub(super) fn copy_out(&self, lent: Lent, to: Layout, room: usize) -> Result<()> {
        let from = lent.bytes().first(room);
        Cursor::new(to, 0).scatter(from);
        self.copied(from.len());
        self.give_back(lent.at)
    }

    /// A message has been received into a loan that was taken for it: it is only to be read now.
    pub fn keep_copy(&self, lent: Lent) {
        self.copied(lent.len);
        self.keep(lent.at);
    }

    /// This process holds what has come from a peer, or from itself, under these words, from now on. `None`: there is no such loan.
    #[inline(always)]
    pub(in crate::p2p) fn hold(&self, heap: &Heap, peer: Option<&Arc<Peer>>, words: [u64; 2]) -> Option<Lent> {
        let d = Descriptor::read(words)?;
        let kept = self.kept().ok()?;
        let Some(peer) = peer else { return self.hold_own(kept, heap, d) };
        let lender = self.lender(kept, peer)?;
        let at = lender.at(d)?;
        let entry = match kept.book.find(at) {
            Some(entry) => entry,
            None => kept.book.open(at).ok()?,
        };
        // What is held already cannot come again: its owner has lost count.
        if entry.load(Ordering::Relaxed) != 0 {
            return None;
        }
        entry.store(held_entry(lender.number(), d.ticket, d.generation), Ordering::Release);
        Some(Lent { at, len: d.len as usize })
    }

    #[cold]
    fn hold_own(&self, kept: &Kept, heap: &Heap, d: Descriptor) -> Option<Lent> {
        let at = heap.at(d.place, d.len)?;
        let entry = kept.book.find(at)?.load(Ordering::Acquire);
        let pool = kept.pool.get()?;
        let there = entry == own_entry(pool.whole(d.ticket)) && pool.receive_own(d.ticket, d.generation);
        there.then_some(Lent { at, len: d.len as usize })
    }

    /// A loan that was taken and filled for the program is only to be read, as if it had been received.
    fn keep(&self, at: *const u8) {
        let Some(kept) = self.kept.get() else { return };
        if let (Some(entry), Some(pool)) = (kept.book.find(at), kept.pool.get()) {
            pool.keep(ticket_of(entry.load(Ordering::Relaxed)));
        }
    }

    /// Can loans that come from a peer be held? `Memory`: its heap cannot be mapped. (A peer that has no loans is damaged, and that is told by
    /// who takes the message.)
    pub fn may_hold(&self, peer: Option<&Arc<Peer>>) -> Result<()> {
        let kept = self.kept()?;
        let Some(peer) = peer.filter(|peer| self.lender(kept, peer).is_none()) else { return Ok(()) };
        if peer.region.heap().is_some() {
            return Ok(());
        }
        let (rank, of) = (self.rank, peer.rank);
        let text = format!("rank {rank}: no addresses for the loans of rank {of} (ulimit -v); the message waits");
        Err(Error::new(Code::Memory, text))
    }

    /// How many loans this process holds, and how many it has to fill.
    pub fn in_hand(&self) -> (usize, usize) {
        let Some(kept) = self.kept.get() else { return (0, 0) };
        let held = match kept.known.load(Ordering::Relaxed) {
            0 => 0,
            _ => kept.book.all().filter(|e| lender_of(*e) != OWN).count(),
        };
        (held, kept.pool.get().map_or(0, Pool::in_hand))
    }

    /// How many were handed over, and how many bytes were copied into loans and out of them.
    pub fn counts(&self) -> [u64; 2] {
        let sent = self.kept.get().and_then(|k| k.pool.get()).map_or(0, Pool::sent);
        [sent, self.copied.load(Ordering::Relaxed)]
    }

    /// Loans that have memory, those of them that somebody has, and the bytes of all.
    pub fn account(&self) -> [u64; 3] {
        self.kept.get().and_then(|k| k.pool.get()).map_or([0; 3], Pool::account)
    }

    /// An error if a loan of this process begins here.
    pub fn is_none(&self, at: *const u8) -> Result<()> {
        let entry = self.kept.get().and_then(|kept| kept.book.find(at)).map_or(0, |e| e.load(Ordering::Relaxed));
        if entry == 0 {
            return Ok(());
        }
        let text = format!("rank {}: free({at:p}): this is a loan; fmpl_loan_return gives it back", self.rank);
        Err(Error::new(Code::Argument, text))
    }

    /// Prepares for a model: one loan, of [`IN_MODEL`] bytes.
    #[cfg(loom)]
    pub fn in_model(&self, heap: &Heap) {
        use crate::base::shadow::share;
        let at = self.take(heap, IN_MODEL).expect("a loan");
        self.give_back(at).expect("the loan");
        share(at, IN_MODEL);
        if let Some(pool) = self.kept.get().and_then(|k| k.pool.get()) {
            share(pool.words_in_model(), 64);
        }
    }

    /// Begins an execution of a model: nobody has the loan, and nothing is held.
    #[cfg(loom)]
    pub fn renew(&self) {
        if let Some(kept) = self.kept.get() {
            kept.book.renew();
            kept.pool.get().into_iter().for_each(Pool::renew);
        }
    }

    fn copied(&self, bytes: usize) {
        self.copied.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[cold]
    fn no_loan(&self, at: *const u8) -> Error {
        let text = format!(
            "rank {}: {at:p} is not the beginning of a loan that this process has; it may have been returned before",
            self.rank
        );
        Error::new(Code::Argument, text)
    }

    #[cold]
    fn wrong(&self, at: *const u8, what: &str, wrong: Wrong) -> Error {
        let why = match wrong {
            Wrong::HandedOver => "it has been handed over".to_string(),
            Wrong::GivenBack => "it has been returned before".to_string(),
            Wrong::Received => "it was received, so it is only to be read; copy it into a loan of your own".to_string(),
            Wrong::Shorter(have) => format!("it has {have} bytes"),
        };
        error!(Code::Argument, "rank {}: {what} the loan at {at:p}: {why}", self.rank)
    }
}

/// `fmpl_loan`: memory of `size` bytes to fill, and to hand over.
#[inline]
pub fn loan(size: usize) -> Result<*mut u8> {
    let ep = endpoint()?;
    ep.loans.take(&ep.heap, size)
}

/// `fmpl_loan_return`: this process needs the loan that begins here no more. From any thread.
#[inline]
pub fn loan_return(at: *const u8) -> Result<()> {
    let ep: &Endpoint = endpoint()?;
    if at.is_null() { Ok(()) } else { ep.loans.give_back(at) }
}
