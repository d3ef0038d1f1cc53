//! Things that are made when they are first needed, by whichever thread comes first, and stay until their place is dropped.

use std::sync::atomic::{AtomicPtr, Ordering};

/// The place of such a thing. (Not a `OnceLock`: the publication and the looks for it are in the one order of sequentially consistent
/// operations, with whatever else a protocol has in it.)
pub struct Published<T>(AtomicPtr<T>);

// A box of its own behind the pointer: what holds for that holds here.
// SAFETY: as above; shared, it gives out references only.
unsafe impl<T: Send + Sync> Send for Published<T> {}
// SAFETY: as above; whichever thread comes first makes the thing, and another may drop it.
unsafe impl<T: Send + Sync> Sync for Published<T> {}

impl<T> Published<T> {
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
        let there = *self.0.get_mut();
        if !there.is_null() {
            // SAFETY: made by `make`, and nobody has the place any more.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}
