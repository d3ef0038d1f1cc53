//! Memory that all ranks share, as a slice of words.

use super::*;

/// Memory of this rank that all ranks reach, for values of one type. Dropping it ends its registration, waits until no rank uses it any
/// more, and frees it.
pub struct Shared<'g, T: Plain> {
    pub(super) at: NonNull<T>,
    pub(super) len: usize,
    pub(super) key: AddressKey,
    pub(super) address: GlobalAddress,
    pub(super) global: &'g Global<'g>,
}

// SAFETY: shared memory, read and written by copies and atomics only, which any thread may do.
unsafe impl<T: Plain> Send for Shared<'_, T> {}

// SAFETY: as above.
unsafe impl<T: Plain> Sync for Shared<'_, T> {}

/// A value in shared memory as words that are accessed atomically, each as long as its place allows: other threads and ranks may do so, too.
///
/// # Safety
/// `bytes` bytes at `shared`, which everybody accesses in this way only as long as this lasts.
pub(super) unsafe fn words(shared: *mut u8, bytes: usize, mut access: impl FnMut(usize, AtomicWord<'_>)) {
    let mut k = 0;
    while k < bytes {
        let (at, left) = (shared.wrapping_add(k), bytes - k);
        let fits = |n: usize| left >= n && at.addr().is_multiple_of(n);
        // SAFETY: within the value, aligned, and accessed atomically, whichever it is.
        let word = unsafe {
            match () {
                () if fits(8) => AtomicWord::U64(&*at.cast()),
                () if fits(4) => AtomicWord::U32(&*at.cast()),
                () if fits(2) => AtomicWord::U16(&*at.cast()),
                () => AtomicWord::U8(&*at.cast()),
            }
        };
        let n = word.bytes();
        access(k, word);
        k += n;
    }
}

pub(super) enum AtomicWord<'a> {
    U64(&'a AtomicU64),
    U32(&'a AtomicU32),
    U16(&'a AtomicU16),
    U8(&'a AtomicU8),
}

impl AtomicWord<'_> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            AtomicWord::U64(_) => 8,
            AtomicWord::U32(_) => 4,
            AtomicWord::U16(_) => 2,
            AtomicWord::U8(_) => 1,
        }
    }
}

/// Reads a value out of shared memory.
///
/// # Safety
/// As for [`words`]; as many writable bytes at `to`.
pub(super) unsafe fn load(shared: *mut u8, to: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises; the words are of these bytes.
    unsafe {
        words(shared, bytes, |k, word| match word {
            AtomicWord::U64(w) => to.add(k).cast::<u64>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U32(w) => to.add(k).cast::<u32>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U16(w) => to.add(k).cast::<u16>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U8(w) => to.add(k).write(w.load(Relaxed)),
        });
    }
}

/// Writes a value into shared memory.
///
/// # Safety
/// As for [`words`]; as many readable bytes at `from`.
pub(super) unsafe fn store(from: *const u8, shared: *mut u8, bytes: usize) {
    // SAFETY: as above.
    unsafe {
        words(shared, bytes, |k, word| match word {
            AtomicWord::U64(w) => w.store(from.add(k).cast::<u64>().read_unaligned(), Relaxed),
            AtomicWord::U32(w) => w.store(from.add(k).cast::<u32>().read_unaligned(), Relaxed),
            AtomicWord::U16(w) => w.store(from.add(k).cast::<u16>().read_unaligned(), Relaxed),
            AtomicWord::U8(w) => w.store(from.add(k).read(), Relaxed),
        });
    }
}

impl<'g, T: Plain> Shared<'g, T> {
    pub(super) fn new(global: &'g Global<'_>, len: usize) -> Result<Shared<'g, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b > 0 && align_of::<T>() <= 64);
        let Some(bytes) = bytes else {
            let text = format!("rank {}: shared memory for {len} values of {} bytes", global.rank(), size_of::<T>());
            return Err(Error::new(Code::Argument, text));
        };
        let memory = job::alloc(bytes)?;
        let at = NonNull::new(memory).ok_or_else(|| Error::new(Code::Memory, "shared memory"))?;
        // SAFETY: fresh memory of that length, which is this value's until it is dropped.
        let made = unsafe {
            at.write_bytes(0, bytes);
            global.register(memory, bytes)
        };
        match made {
            Ok((key, address)) => Ok(Shared { at: at.cast(), len, key, address, global }),
            Err(error) => {
                // SAFETY: from `alloc`, and nobody knows it.
                let _ = unsafe { job::free(memory) };
                Err(error)
            }
        }
    }

    /// How many values it holds.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The global address of a value; panics when there is no such one.
    pub fn address(&self, index: usize) -> GlobalAddress {
        assert!(index < self.len, "value {index} of {}", self.len);
        self.address + index * size_of::<T>()
    }

    /// A value as it is now; panics when there is no such one. A value of more than 8 bytes may be half old, half new.
    pub fn get(&self, index: usize) -> T {
        assert!(index < self.len, "value {index} of {}", self.len);
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: within the memory; all bytes of the value are written, and whatever they are they are a value.
        unsafe {
            load(self.at.add(index).cast().as_ptr(), value.as_mut_ptr().cast(), size_of::<T>());
            value.assume_init()
        }
    }

    /// Sets a value; panics when there is no such one.
    pub fn set(&self, index: usize, value: T) {
        assert!(index < self.len, "value {index} of {}", self.len);
        // SAFETY: within the memory; a plain value has no byte that is not written.
        unsafe { store((&raw const value).cast(), self.at.add(index).cast().as_ptr(), size_of::<T>()) };
    }

    pub(super) fn read_bytes(&self, to: *mut u8, bytes: usize) {
        // SAFETY: both have as many bytes: the callers above made it of that length.
        unsafe { copy(self.at.as_ptr().cast(), to, bytes) };
    }

    pub(super) fn write_bytes(&self, from: *const u8, bytes: usize) {
        // SAFETY: as above.
        unsafe { copy(from, self.at.as_ptr().cast(), bytes) };
    }
}

impl Shared<'_, u64> {
    /// A word as the processor's atomic. It goes together with the atomic operations of all ranks as long as these are on one node; with ranks
    /// on several nodes it is for reading only, unless the RDMA device says that it goes together with processors (`IBV_ATOMIC_GLOB`).
    pub fn atomic(&self, index: usize) -> &std::sync::atomic::AtomicU64 {
        assert!(index < self.len, "word {index} of {}", self.len);
        // SAFETY: within the memory, aligned, and an atomic has the size of its word.
        unsafe { self.at.add(index).cast().as_ref() }
    }
}

impl Shared<'_, u32> {
    /// A word as the processor's atomic. It goes together with the atomic operations of all ranks as long as these are on one node; with ranks
    /// on several nodes it is for reading only, unless the RDMA device says that it goes together with processors (`IBV_ATOMIC_GLOB`).
    pub fn atomic(&self, index: usize) -> &std::sync::atomic::AtomicU32 {
        assert!(index < self.len, "word {index} of {}", self.len);
        // SAFETY: as above.
        unsafe { self.at.add(index).cast().as_ref() }
    }
}

impl<T: Plain> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        // What cannot be taken from the others' reach stays.
        if self.global.unregister(self.key).is_ok() {
            // SAFETY: from `alloc`; nobody reaches it any more.
            let _ = unsafe { job::free(self.at.as_ptr().cast()) };
        }
    }
}

impl<T: Plain> fmt::Debug for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} at {})", self.len, self.address)
    }
}
