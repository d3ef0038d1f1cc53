//! A place for a value that is found without a lock, and freed when nobody can be using it any more.

use std::ptr::null_mut;

use super::atomics::{AtomicPtr, Ordering};
use super::record::Empty;
use super::unused::Unused;

/// A value, or none, which is what zero bytes are. What is left in it when it is dropped is never freed.
pub struct Leaked<T: 'static>(AtomicPtr<T>);

// SAFETY: null.
unsafe impl<T> Empty for Leaked<T> {}

impl<T: Send + Sync> Leaked<T> {
    /// None.
    pub const fn none() -> Leaked<T> {
        Leaked(AtomicPtr::new(null_mut()))
    }

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SYNC POINT: pairs with the release in `put` and `replace`.
        let at = self.0.load(Ordering::Acquire);
        // SAFETY: a box that was leaked in `put` or `replace`; who takes it out has promised that nobody uses it.
        unsafe { at.as_ref() }
    }

    /// Puts a value where none is.
    pub fn put(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        // SYNC POINT: pairs with the acquire in `get`.
        self.0.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
        value
    }

    /// Puts a value in the place of another: what was there.
    pub fn replace(&self, value: T) -> (&'static T, Option<Retired<T>>) {
        let new: &'static T = Box::leak(Box::new(value));
        // SYNC POINT: as in `put`.
        let old = self.0.swap(std::ptr::from_ref(new).cast_mut(), Ordering::AcqRel);
        (new, (!old.is_null()).then(|| Retired(Leaked(AtomicPtr::new(old)))))
    }

    /// Takes the value out.
    pub fn take(&self, _unused: &Unused) -> Option<Box<T>> {
        let at = self.0.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: leaked in `put`, and no longer to be found; nobody uses it, as the caller has promised.
        (!at.is_null()).then(|| unsafe { Box::from_raw(at) })
    }
}

/// A value that is no longer to be found, and may be used still by who has found it before.
pub struct Retired<T: 'static>(Leaked<T>);

impl<T: Send + Sync> Retired<T> {
    /// The value, while nobody frees it.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Frees it.
    pub fn free(self, unused: &Unused) {
        drop(self.0.take(unused));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_stays_until_it_is_taken() {
        static SLOT: Leaked<String> = Leaked::none();
        assert_eq!((SLOT.get(), SLOT.put("first".into()).as_str()), (None, "first"));
        assert_eq!(SLOT.get().map(String::as_str), Some("first"));
        // SAFETY: nobody has what was found above.
        let unused = unsafe { Unused::promised() };
        assert_eq!((SLOT.take(&unused).as_deref().map(String::as_str), SLOT.take(&unused)), (Some("first"), None));
    }
}
