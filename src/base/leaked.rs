//! A place for a value that is found without a lock, and freed when nobody can be using it any more.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::record::Empty;

/// A value, or none, which is what zero bytes are. What is left in it when it is dropped is never freed.
pub struct Leaked<T: 'static>(AtomicPtr<T>);

// SAFETY: null.
unsafe impl<T> Empty for Leaked<T> {}

impl<T> Leaked<T> {
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        let at = self.0.load(Ordering::Acquire);
        // SAFETY: a box that was leaked in `put`; who has it freed, by `free`, has promised that nobody uses it.
        unsafe { at.as_ref() }
    }

    /// Puts a value where none is.
    pub fn put(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.0.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
        value
    }

    /// Takes the value out and frees it, if there is one.
    ///
    /// # Safety
    /// Nobody uses it, now or later.
    pub unsafe fn free(&self) {
        let at = self.0.swap(null_mut(), Ordering::AcqRel);
        if !at.is_null() {
            // SAFETY: leaked in `put`, and no longer to be found; as the caller promises.
            drop(unsafe { Box::from_raw(at) });
        }
    }
}
