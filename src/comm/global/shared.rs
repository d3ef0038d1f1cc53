//! Memory that all ranks share, as a slice of words.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::*;
use crate::base::values::SharedValues;

/// Memory of this rank that all ranks reach, for values of one type. Dropping it ends its registration, waits until no rank uses it any
/// more, and frees it.
pub struct Shared<'g, T: Plain> {
    pub(super) values: SharedValues<T>,
    key: AddressKey,
    address: GlobalAddress,
    global: &'g Global<'g>,
}

static_assertions::assert_impl_all!(Shared<'static, u64>: Send, Sync);

impl<'g, T: Plain> Shared<'g, T> {
    pub(super) fn new(global: &'g Global<'_>, len: usize) -> Result<Shared<'g, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b > 0 && align_of::<T>() <= 64);
        let Some(bytes) = bytes else {
            let text = format!("rank {}: shared memory for {len} values of {} bytes", global.rank(), size_of::<T>());
            return Err(Error::new(Code::Argument, text));
        };
        let memory = job::alloc(bytes)?;
        let at = NonNull::new(memory).ok_or_else(|| Error::new(Code::Memory, "shared memory"))?;
        // SAFETY: fresh memory of that length, which has contents since it is mapped, and is this value's until it is dropped.
        let values = unsafe { SharedValues::new(at.cast(), len) };
        values.room().zero();
        // SAFETY: as above; others reach it as this value does.
        match unsafe { global.register(memory, bytes) } {
            Ok((key, address)) => Ok(Shared { values, key, address, global }),
            Err(error) => {
                // SAFETY: nobody knows it.
                let _ = job::free(memory, unsafe { Unused::promised() });
                Err(error)
            }
        }
    }

    /// How many values it holds.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The global address of a value; panics when there is no such one.
    pub fn address(&self, index: usize) -> GlobalAddress {
        assert!(index < self.len(), "value {index} of {}", self.len());
        self.address + index * size_of::<T>()
    }

    /// A value as it is now; panics when there is no such one. A value of more than 8 bytes may be half old, half new.
    pub fn get(&self, index: usize) -> T {
        self.values.get(index)
    }

    /// Sets a value; panics when there is no such one.
    pub fn set(&self, index: usize, value: T) {
        self.values.set(index, value);
    }
}

impl Shared<'_, u64> {
    /// A word as the processor's atomic. It goes together with the atomic operations of all ranks as long as these are on one node; with ranks
    /// on several nodes it is for reading only, unless the RDMA device says that it goes together with processors (`IBV_ATOMIC_GLOB`).
    pub fn atomic(&self, index: usize) -> &AtomicU64 {
        self.values.atomic(index)
    }
}

impl Shared<'_, u32> {
    /// A word as the processor's atomic. It goes together with the atomic operations of all ranks as long as these are on one node; with ranks
    /// on several nodes it is for reading only, unless the RDMA device says that it goes together with processors (`IBV_ATOMIC_GLOB`).
    pub fn atomic(&self, index: usize) -> &AtomicU32 {
        self.values.atomic(index)
    }
}

impl<T: Plain> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        // What cannot be taken from the others' reach stays.
        if self.global.unregister(self.key).is_ok() {
            // SAFETY: nobody reaches it any more.
            let _ = job::free(self.values.as_ptr(), unsafe { Unused::promised() });
        }
    }
}

impl<T: Plain> fmt::Debug for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} at {})", self.len(), self.address)
    }
}
