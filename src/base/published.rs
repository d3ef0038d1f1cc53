//! Things that all threads of the process find at a place: made when they are first needed and there until the place is dropped
//! ([`Published`]), or from being put there until somebody takes them away ([`Slot`]).

use super::atomics::{AtomicPtr, Ordering};
use super::unused::Unused;

/// The place of such a thing. (Not a `OnceLock`: the publication and the looks for it are in the one order of sequentially consistent
/// operations, with whatever else a protocol has in it.)
pub struct Published<T>(AtomicPtr<T>);

// What threads share by a pointer they share.
impl<T: Send + Sync> Published<T> {
    /// Nothing yet.
    pub const fn nothing() -> Published<T> {
        Published(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// The thing, if it is there; a look in the one order.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: what was published stays as long as the place.
        unsafe { self.0.load(Ordering::SeqCst).as_ref() }
    }

    /// The thing, made if it is not there yet.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        // SAFETY: as above.
        match unsafe { self.0.load(Ordering::Acquire).as_ref() } {
            Some(there) => there,
            None => self.make(make),
        }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        let mine = Box::into_raw(Box::new(make()));
        let there = self.0.compare_exchange(core::ptr::null_mut(), mine, Ordering::SeqCst, Ordering::SeqCst);
        // SAFETY: either this one was published just now, or nobody has seen it and another thread's was.
        unsafe {
            if let Err(theirs) = there {
                drop(Box::from_raw(mine));
                return &*theirs;
            }
            &*mine
        }
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        let there = self.0.load(Ordering::Relaxed);
        if !there.is_null() {
            // SAFETY: made by `make`, and nobody has the place any more.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

/// The place of something that lives as long as it is there.
pub struct Slot<T: 'static>(AtomicPtr<T>);

impl<T: Send + Sync> Slot<T> {
    /// Nothing.
    pub const fn empty() -> Slot<T> {
        Slot(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// What is there; to be used until it is taken away.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SYNC POINT: pairs with the release in `put`.
        // SAFETY: a box that was put there. Whoever takes it away promises that nobody uses what was found here.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Puts something there; where something is already, that stays.
    pub fn put(&self, thing: T) -> &'static T {
        let new = Box::into_raw(Box::new(thing));
        // SYNC POINT: pairs with the acquire in `get`.
        let there = self.0.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: put there just now; or nobody has seen it, and what is there is as in `get`.
        unsafe {
            if let Err(there) = there {
                drop(Box::from_raw(new));
                return &*there;
            }
            &*new
        }
    }

    /// Takes it away.
    pub fn take(&self, _unused: &Unused) -> Option<Box<T>> {
        let there = self.0.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: from `put`, and nobody uses it any more, as the caller has promised.
        (!there.is_null()).then(|| unsafe { Box::from_raw(there) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_threads_find_what_one_has_made() {
        let (place, made) = (Published::nothing(), std::sync::atomic::AtomicU32::new(0));
        assert!(place.get().is_none());
        let found = std::thread::scope(|s| {
            let find = || *place.get_or_make(|| made.fetch_add(1, Ordering::Relaxed));
            [(); 4].map(|()| s.spawn(find)).map(|t| t.join().unwrap())
        });
        assert!(found.iter().all(|n| *n == found[0]) && place.get() == Some(&found[0]));
    }

    #[test]
    fn what_is_put_stays_until_it_is_taken() {
        static SLOT: Slot<String> = Slot::empty();
        assert_eq!((SLOT.get(), SLOT.put("first".into()).as_str()), (None, "first"));
        assert_eq!((SLOT.put("second".into()).as_str(), SLOT.get().map(String::as_str)), ("first", Some("first")));
        // SAFETY: nobody has what was found above.
        let unused = unsafe { Unused::promised() };
        assert_eq!((SLOT.take(&unused).as_deref().map(String::as_str), SLOT.take(&unused)), (Some("first"), None));
    }
}
