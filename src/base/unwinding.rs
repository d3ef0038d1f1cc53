//! Who may unwind where.
//!
//! A panic of the program's function is caught where the function is called, kept with the call that it belongs to, and goes on where that
//! call is completed by its owner: never in the wait of whoever moved it on. Nothing else unwinds out of the library while memory is
//! lent to it: neither an exception of another language, for which nothing is known to be in order, nor a panic of the library itself.
//! Both end the process, which says why.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::error::say;

/// What a panic has to say, as `std::panic::resume_unwind` takes it.
pub type Panic = Box<dyn Any + Send>;

/// Ends the process if it is dropped, which only unwinding does: others may still use memory that the caller would get back.
pub struct NoWayOut(pub &'static str);

impl NoWayOut {
    /// Runs something that must not be left by unwinding; `what` it is.
    #[inline(always)]
    pub fn during<R>(what: &'static str, work: impl FnOnce() -> R) -> R {
        let guard = NoWayOut(what);
        let result = work();
        guard.open();
        result
    }

    /// The work is done.
    #[inline(always)]
    pub fn open(self) {
        core::mem::forget(self);
    }
}

impl Drop for NoWayOut {
    #[cold]
    fn drop(&mut self) {
        // The model checker ends a run by unwinding.
        if cfg!(loom) {
            return;
        }
        say(&format!("{} was left by a panic; the process ends, since its memory may still be in use", self.0));
        std::process::abort();
    }
}

/// Calls the program's function; its panic goes no further.
#[inline(always)]
pub fn caught(function: impl FnOnce()) -> std::thread::Result<()> {
    catch_unwind(AssertUnwindSafe(function))
}

/// Throws away a panic that nobody will see. What it has to say may panic as it goes, and so may what that says; in the end it is left
/// where it is.
#[cold]
pub fn forget(mut panic: Panic) {
    for _ in 0..8 {
        match catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            Ok(()) => return,
            Err(another) => panic = another,
        }
    }
    core::mem::forget(panic);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it goes.
    struct Fuse;
    impl Drop for Fuse {
        fn drop(&mut self) {
            panic!("the fuse");
        }
    }

    #[test]
    fn what_a_panic_has_to_say_may_panic_when_it_is_thrown_away() {
        let panic = caught(|| std::panic::panic_any(Fuse)).unwrap_err();
        assert!(panic.is::<Fuse>());
        forget(panic);
        assert!(caught(|| {}).is_ok());
        assert_eq!(NoWayOut::during("a test", || 7), 7);
    }
}
