//! A slot of the [table](super::table), and what holds it: the value stays until the last to hold it lets go, whoever that is.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

use static_assertions::const_assert;

use super::table::Table;
use crate::base::atomics::{AtomicU64, Ordering, changes, fence, uses};
use crate::base::record::Empty;

/// One holder, and one time found, in [`Slot::used`].
pub(super) const HOLDER: u64 = 1;
pub(super) const HOLDERS: u64 = (1 << 20) - 1;
pub(super) const FOUND: u64 = 1 << 20;

/// A place of a table.
#[repr(C, align(64))]
pub(super) struct Slot<T> {
    pub used: AtomicU64,
    pub end: AtomicU64,
    /// Made before the first holder is, and ended by the last.
    pub value: UnsafeCell<MaybeUninit<T>>,
}
const_assert!(size_of::<Slot<[u64; 6]>>() == 64);

// SAFETY: nobody holds it, and no bytes are a value that is not there.
unsafe impl<T> Empty for Slot<T> {}
// SAFETY: the value is shared by its holders, and ended by one of them in whichever thread that is.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Slot<T> {}

/// What is kept of a range, or was: it stays as it is until this is dropped.
pub struct Kept<T: Send + Sync + 'static> {
    slot: NonNull<Slot<T>>,
    /// None: it is in no table, and in a box of its own.
    table: Option<&'static Table<T>>,
}

// SAFETY: a share of a value that may be used and ended by any thread.
unsafe impl<T: Send + Sync> Send for Kept<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Kept<T> {}

impl<T: Send + Sync> Kept<T> {
    /// Takes over a hold of a slot of a table.
    #[inline(always)]
    pub(super) fn of(table: &'static Table<T>, slot: &Slot<T>) -> Kept<T> {
        Kept { slot: NonNull::from(slot), table: Some(table) }
    }

    /// A value that no table has.
    pub fn alone(value: T) -> Kept<T> {
        let (used, end) = (AtomicU64::new(HOLDER), AtomicU64::new(0));
        let slot = Box::new(Slot { used, end, value: UnsafeCell::new(MaybeUninit::new(value)) });
        Kept { slot: NonNull::from(Box::leak(slot)), table: None }
    }

    /// The search that has found it was in vain.
    #[cold]
    pub(super) fn was_not_found(self) {
        self.slot().used.fetch_sub(FOUND, Ordering::Relaxed);
    }

    #[inline(always)]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: in a table that is never freed, or in a box that is freed by the last holder.
        unsafe { self.slot.as_ref() }
    }

    /// Nobody holds it any more.
    #[cold]
    fn end(&mut self) {
        // SYNC POINT: pairs with the release in `drop`: the others have done with it.
        fence(Ordering::Acquire);
        let Some(table) = self.table else {
            // SAFETY: from `alone`, and nobody else has it.
            let mut slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
            // SAFETY: made in `alone`.
            return unsafe { slot.value.get_mut().assume_init_drop() };
        };
        changes(&raw const self.slot().value, true);
        // SAFETY: made in `keep`; nobody holds the slot, and it is not taken for another value before it is given back.
        unsafe { (*self.slot().value.get()).assume_init_drop() };
        table.free(self.slot());
    }
}

impl<T: Send + Sync> Deref for Kept<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        uses(&self.slot().value);
        // SAFETY: made before anybody holds it, and this holds it.
        unsafe { (*self.slot().value.get()).assume_init_ref() }
    }
}

impl<T: Send + Sync> Drop for Kept<T> {
    #[inline]
    fn drop(&mut self) {
        // SYNC POINT: pairs with the fence in `end`.
        if self.slot().used.fetch_sub(HOLDER, Ordering::Release) & HOLDERS == HOLDER {
            self.end();
        }
    }
}
