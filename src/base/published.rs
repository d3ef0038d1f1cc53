//! Things that all threads of the process find at a place, made when they are first needed, and there until the place is dropped.

use super::atomics::{AtomicPtr, Ordering};

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

impl<T: Send + Sync> Default for Published<T> {
    fn default() -> Published<T> {
        Published::nothing()
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
}
