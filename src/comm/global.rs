//! Global memory as values: [`Global`], [`Shared`], [`Remote`].

mod shared;

use std::fmt;
use std::marker::PhantomData;

use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, say};
use crate::base::unused::Unused;
use crate::comm::{Job, Plain, job};
use crate::rma::{self, AddressKey, Atomic, Fetch, GlobalAddress, Into, Rma};
pub use shared::Shared;

/// This rank's part in the job's global memory: what any rank has registered is read, written and changed atomically by all, without
/// its owner's doing.
///
/// ```
/// let job = fmpl::init(1)?;
/// let global = fmpl::Global::open(&job)?;
/// let counters = global.shared::<u64>(8)?;
/// // … other ranks get its address, for example by way of everybody's starter memory, or in a message …
/// let third = global.atomic::<u64>(counters.address(3));
/// assert_eq!(third.fetch_add(5)?, 0);
/// assert_eq!(counters.get(3), 5);
/// drop(counters);
/// global.close()?;
/// job.finalize()?;
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// Memory that other ranks may write at any time cannot be borrowed as a slice: a [`Shared`] is read and written by copies, or through
/// atomics. (ACP basic layer; in C the functions of `acp.h`, with which this may be mixed.)
pub struct Global<'job> {
    rma: &'static Rma,
    _job: PhantomData<&'job Job>,
}

impl<'job> Global<'job> {
    /// Makes it; collective. May be open more than once; the last to be closed ends it.
    pub fn open(_job: &'job Job) -> Result<Global<'job>> {
        job::global_open()?;
        match rma::rma() {
            Ok(rma) => Ok(Global { rma, _job: PhantomData }),
            Err(error) => {
                // SAFETY: the opening was this call's own: nobody has used it.
                let _ = job::global_close(unsafe { Unused::promised() });
                Err(error)
            }
        }
    }

    /// Completes this rank's operations and leaves; collective. Dropping it does the same and ignores errors, except in a panic,
    /// when nobody is waited for.
    pub fn close(self) -> Result<()> {
        std::mem::ManuallyDrop::new(self).end()
    }

    /// Once, by value or when it is dropped.
    fn end(&mut self) -> Result<()> {
        // SAFETY: what was made from it borrowed it.
        job::global_close(unsafe { Unused::promised() })
    }

    /// This rank's number in global addresses.
    pub fn rank(&self) -> usize {
        self.rma.rank() as usize
    }

    /// Ranks of the job.
    pub fn size(&self) -> usize {
        self.rma.size() as usize
    }

    /// Waits for all ranks.
    pub fn sync(&self) -> Result<()> {
        rma::sync()
    }

    /// The address of a rank's starter memory: zero at first, [`starter_len`](Global::starter_len) bytes, known to all without being
    /// told.
    pub fn starter(&self, rank: usize) -> Result<GlobalAddress> {
        self.rma.starter(u32::try_from(rank).unwrap_or(u32::MAX))
    }

    /// Bytes of each rank's starter memory.
    pub fn starter_len(&self) -> usize {
        self.rma.starter_len()
    }

    /// The rank of an address.
    pub fn rank_of(&self, at: GlobalAddress) -> Result<usize> {
        self.rma.rank_of(at).map(|rank| rank as usize)
    }

    /// How many colours the addresses of registrations may have; what memory of [`Global::shared`] and [`Global::register`] has is 0.
    pub fn colours(&self) -> usize {
        1 << rma::address::COLOUR_BITS
    }

    /// The colour of an address: a part of it that makes no difference here.
    pub fn colour_of(&self, at: GlobalAddress) -> Result<usize> {
        self.rma.rank_of(at).map(|_| self.rma.split().colour(at) as usize)
    }

    /// The address of a byte of a registration of this rank.
    pub fn address_of(&self, key: AddressKey, at: *const u8) -> Result<GlobalAddress> {
        self.rma.address_of(key, at)
    }

    /// Where an address of this rank's memory is in this process. Other ranks may write there at any time.
    pub fn local(&self, at: GlobalAddress) -> Result<*mut u8> {
        self.rma.local_address(at)
    }

    /// Begins anew with another rank, from 0 to [`Global::size`] - 1, another one for each rank; collective. All registrations end, and
    /// starter memory is zero. (The ranks of communicators stay.) An error at all ranks, which then keep theirs, when the numbers are
    /// not each once.
    pub fn reset(&mut self, rank: usize) -> Result<()> {
        rma::reset(i32::try_from(rank).unwrap_or(-1))
    }

    /// Ends the whole job, every rank of it, with a message on standard error.
    pub fn abort(&self, why: &str) -> ! {
        say(&format!("rank {} aborts the job: {why}", self.rank()));
        job::abort(1)
    }

    /// Memory of this rank for `len` values, zero at first, reachable by all.
    pub fn shared<T: Plain>(&self, len: usize) -> Result<Shared<'_, T>> {
        Shared::new(self, len)
    }

    /// Makes memory of any kind reachable. [`Global::shared`] is reached faster.
    ///
    /// # Safety
    /// The memory must stay, and nothing may rely on its contents not changing, until [`Global::unregister`].
    pub unsafe fn register(&self, at: *mut u8, len: usize) -> Result<(AddressKey, GlobalAddress)> {
        // SAFETY: as the caller promises.
        let key = unsafe { self.rma.register(at, len, 0) }?;
        Ok((key, self.rma.address_of(key, at)?))
    }

    /// Ends a registration; returns when no rank uses the memory any more.
    pub fn unregister(&self, key: AddressKey) -> Result<()> {
        self.rma.unregister(key)
    }

    /// A copy of `bytes` bytes between any two addresses, of whatever ranks; it begins with [`Transfer::start`].
    pub fn copy(&self, dst: GlobalAddress, src: GlobalAddress, bytes: usize) -> Transfer<'_> {
        Transfer { rma: self.rma, what: What::Copy(dst, src, bytes), after: 0, _global: PhantomData }
    }

    /// Copies values from any address into a slice, and waits for them.
    pub fn read<T: Plain>(&self, from: GlobalAddress, into: &mut [T]) -> Result<()> {
        let shared = self.shared::<u8>(size_of_val(into).max(1))?;
        self.copy(shared.address(0), from, size_of_val(into)).start()?.wait()?;
        let bytes = size_of_val(into);
        Room::of(into).copy_from(*shared.values.room().part(0, bytes));
        Ok(())
    }

    /// Copies values from a slice to any address, and waits until they are there.
    pub fn write<T: Plain>(&self, to: GlobalAddress, from: &[T]) -> Result<()> {
        let shared = self.shared::<u8>(size_of_val(from).max(1))?;
        shared.values.room().copy_from(Bytes::of(from));
        self.copy(to, shared.address(0), size_of_val(from)).start()?.wait()
    }

    /// A word of 4 or 8 bytes at an address, to be changed atomically.
    pub fn atomic<T: Word>(&self, at: GlobalAddress) -> Remote<'_, T> {
        Remote { rma: self.rma, at, _word: PhantomData }
    }

    /// Waits until all operations of this rank are over.
    pub fn complete(&self) -> Result<()> {
        Ok(self.rma.complete(rma::ALL)?)
    }
}

impl Drop for Global<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.end();
        }
    }
}

impl fmt::Debug for Global<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

enum What {
    Copy(GlobalAddress, GlobalAddress, usize),
    Fetch(Fetch, GlobalAddress),
}

/// An operation that has not begun.
#[must_use = "it begins with start()"]
pub struct Transfer<'g> {
    rma: &'static Rma,
    what: What,
    after: i64,
    _global: PhantomData<&'g ()>,
}

impl<'g> Transfer<'g> {
    /// It starts when this operation, and everything that was issued before it, has gone well. If one of these has failed, of which nobody has
    /// been told, it is refused, which `start` says; or it fails like them, when they do later.
    pub fn after(mut self, operation: &Handle<'_>) -> Transfer<'g> {
        self.after = operation.number;
        self
    }

    /// It starts when everything that was issued so far has gone well; else as for [`after`](Transfer::after). What `start` has refused was
    /// not issued.
    pub fn after_all(mut self) -> Transfer<'g> {
        self.after = rma::ALL;
        self
    }

    /// Issues it. [`Code::Argument`] (an address that names nothing, or too little), [`Code::Peer`].
    pub fn start(self) -> Result<Handle<'g>> {
        let number = match self.what {
            What::Copy(dst, src, bytes) => self.rma.copy::<true>(dst, src, bytes, self.after)?,
            What::Fetch(fetch, into) => self.rma.fetch::<true>(fetch, Into::Address(into), self.after)?,
        };
        Ok(Handle { rma: self.rma, number, _global: PhantomData })
    }
}

/// An operation that was issued. Dropping it forgets it; it goes on all the same.
#[derive(Clone)]
pub struct Handle<'g> {
    rma: &'static Rma,
    number: i64,
    _global: PhantomData<&'g ()>,
}

impl Handle<'_> {
    /// Waits until it and everything that was issued before it is over. The first failure among these of which nobody has been
    /// told is the error.
    pub fn wait(&self) -> Result<()> {
        Ok(self.rma.complete(self.number)?)
    }

    /// Is it over, and everything that was issued before it?
    pub fn is_over(&self) -> Result<bool> {
        Ok(!self.rma.inquire(self.number)?)
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.number)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// What atomic operations work on: `u32` and `u64`.
pub trait Word: Plain + sealed::Sealed {
    #[doc(hidden)]
    const WIDE: bool;
    #[doc(hidden)]
    fn wide(self) -> u64;
    #[doc(hidden)]
    fn narrow(word: u64) -> Self;
}

impl Word for u32 {
    const WIDE: bool = false;
    fn wide(self) -> u64 {
        u64::from(self)
    }
    fn narrow(word: u64) -> u32 {
        word as u32
    }
}

impl Word for u64 {
    const WIDE: bool = true;
    fn wide(self) -> u64 {
        self
    }
    fn narrow(word: u64) -> u64 {
        word
    }
}

/// A word of any rank. Each operation waits until it is over and returns what was there before; [`Remote::begin`] does not wait.
///
/// Errors: [`Code::Argument`] (not registered, not aligned), [`Code::Peer`] (the owner has died).
#[derive(Clone, Copy)]
pub struct Remote<'g, T: Word> {
    rma: &'static Rma,
    at: GlobalAddress,
    _word: PhantomData<&'g T>,
}

impl<'g, T: Word> Remote<'g, T> {
    fn operation(&self, op: Atomic, value: T, expected: T) -> Fetch {
        Fetch { at: self.at, op, wide: T::WIDE, value: value.wide(), expected: expected.wide() }
    }

    fn now(&self, op: Atomic, value: T) -> Result<T> {
        self.rma.fetch_now(self.operation(op, value, T::narrow(0))).map(T::narrow)
    }

    /// Reads it.
    pub fn load(&self) -> Result<T> {
        self.now(Atomic::Or, T::narrow(0))
    }
    /// Replaces it.
    pub fn swap(&self, value: T) -> Result<T> {
        self.now(Atomic::Swap, value)
    }
    /// Replaces it by `new` if it is `current`; it was if that is what is returned.
    pub fn compare_exchange(&self, current: T, new: T) -> Result<T> {
        self.rma.fetch_now(self.operation(Atomic::Cas, new, current)).map(T::narrow)
    }
    /// Adds to it, wrapping.
    pub fn fetch_add(&self, value: T) -> Result<T> {
        self.now(Atomic::Add, value)
    }
    /// Exclusive or.
    pub fn fetch_xor(&self, value: T) -> Result<T> {
        self.now(Atomic::Xor, value)
    }
    /// Or.
    pub fn fetch_or(&self, value: T) -> Result<T> {
        self.now(Atomic::Or, value)
    }
    /// And.
    pub fn fetch_and(&self, value: T) -> Result<T> {
        self.now(Atomic::And, value)
    }

    /// An operation that is not waited for; `expected` is for [`Atomic::Cas`] only. What was there goes to an address of this rank.
    pub fn begin(&self, op: Atomic, value: T, expected: T, old: GlobalAddress) -> Transfer<'g> {
        let what = What::Fetch(self.operation(op, value, expected), old);
        Transfer { rma: self.rma, what, after: 0, _global: PhantomData }
    }
}

impl<T: Word> fmt::Debug for Remote<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.at)
    }
}
