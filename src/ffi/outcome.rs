//! From the core's `Result` to the number that a C or Fortran caller gets, and the text that it may ask for.
//!
//! The text belongs to the thread. Nothing here is touched when a call succeeds.

use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::marker::PhantomData;
use core::ptr;
use std::backtrace::Backtrace;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use crate::base::config::Config;
use crate::base::error::{Code, Error, Result, say};
use crate::{comm, p2p};

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The number for the caller: 0, or the error's code.
#[inline(always)]
pub(super) fn number(result: Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

/// The same for a call that has something to hand out: `keep` stores it.
#[inline(always)]
pub(super) fn hand_out<T>(result: Result<T>, keep: impl FnOnce(T)) -> c_int {
    match result {
        Ok(value) => {
            keep(value);
            0
        }
        Err(error) => fail(error),
    }
}

/// The caller's variable for something that a call hands out: a pointer of C, which may be NULL.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Clone for Out<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(variable: &'a mut T) -> Self {
        Out(variable, PhantomData)
    }
}

impl<T> Out<'_, T> {
    /// No variable.
    pub const NULL: Self = Out(ptr::null_mut(), PhantomData);

    /// # Safety
    /// NULL, or a variable that may be written as long as this is used, and that need not be dropped.
    #[inline(always)]
    pub(super) const unsafe fn at(variable: *mut T) -> Self {
        Out(variable, PhantomData)
    }

    /// What the caller has given.
    pub(super) const fn variable(self) -> *mut T {
        self.0
    }

    #[inline(always)]
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores a value, unless there is no variable.
    #[inline(always)]
    pub(super) fn set(self, value: impl Into<T>) {
        if !self.is_null() {
            // SAFETY: not null, so a variable of the caller's: there are no others from C, `at` and `from`.
            unsafe { self.0.write(value.into()) }
        }
    }
}

/// The same for one value, which goes to the caller's variable; without a variable the call is not made, and `null` says why.
#[inline(always)]
pub(super) fn hand_to<U, T: Into<U>>(at: Out<U>, null: &str, call: impl FnOnce() -> Result<T>) -> c_int {
    if at.is_null() {
        return wrong(null);
    }
    hand_out(call(), |value| at.set(value))
}

/// Keeps the error's text for `fmpl_last_error` and returns its number.
#[cold]
#[inline(never)]
pub(super) fn fail(error: Error) -> c_int {
    if aborts() {
        abort(&error);
    }
    let mut text = error.to_string().into_bytes();
    text.retain(|byte| *byte != 0);
    if let Ok(text) = CString::new(text) {
        // A thread that is ending has no place for the text any more; the number still says what is wrong.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
    }
    error.code() as c_int
}

/// `FMPL_ERRORS`, as it was at the first error.
fn aborts() -> bool {
    static ABORTS: OnceLock<bool> = OnceLock::new();
    *ABORTS.get_or_init(|| Config::from_environment().is_ok_and(|config| config.errors_abort))
}

/// Says which call has failed and why, and ends the job.
fn abort(error: &Error) -> ! {
    let call = called(&Backtrace::force_capture().to_string()).unwrap_or_else(|| "a call of FMPL".into());
    let rank = comm::comm_rank(p2p::COMM_WORLD).map_or_else(|_| String::new(), |rank| format!("rank {rank}: "));
    say(&format!("{rank}{call}: {error} ({}); FMPL_ERRORS=abort ends the job", error.code().c_name()));
    comm::abort(1)
}

/// The outermost function of the interface among the callers, which a backtrace names from the innermost on: a Fortran name calls that of C.
fn called(backtrace: &str) -> Option<String> {
    let name = |line: &str| {
        let name = line.trim_start().split_once(": ")?.1.trim();
        let of_interface = name.starts_with("fmpl_") || name.starts_with("acp_");
        (of_interface && !name.contains("::")).then(|| name.trim_end_matches('_').to_owned())
    };
    backtrace.lines().rev().find_map(name)
}

/// An argument that only this layer can find wrong: `text` names the function and the argument.
#[cold]
#[inline(never)]
pub(super) fn wrong(text: &str) -> c_int {
    fail(Error::new(Code::Argument, text))
}

/// The thread's last error text; stays valid until the thread's next failing call.
pub(super) fn last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr())).ok().flatten().unwrap_or(c"".as_ptr())
}

/// The same as a text of the caller's.
pub fn last_error_text() -> String {
    LAST.try_with(|last| last.borrow().as_ref().map(|text| text.to_string_lossy().into_owned()))
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// What a code means, in a few words.
pub(super) fn meaning(code: c_int) -> &'static CStr {
    match Code::from_number(code) {
        Some(code) => CStr::from_bytes_until_nul(code.text_nul().as_bytes()).unwrap_or(c""),
        None if code == 0 => c"success",
        None => c"no such error code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        last_error_text()
    }

    #[test]
    fn the_text_belongs_to_the_thread_and_outlives_successes() {
        assert_eq!(text(), "");
        assert_eq!(number(Err(Error::new(Code::Rank, "rank 7 of 2\0"))), Code::Rank as c_int);
        assert_eq!(text(), "rank out of range: rank 7 of 2");
        assert_eq!(number(Ok(())), 0);
        assert_eq!(text(), "rank out of range: rank 7 of 2");
        std::thread::spawn(|| assert_eq!(text(), "")).join().unwrap();
    }

    #[test]
    fn the_call_that_failed_is_found_among_its_callers() {
        let text = "   0: fmpl::ffi::outcome::fail\n             at ./src/x.rs:1:2\n   1: fmpl_send\n   2: fmpl_send_\n   3: main\n";
        assert_eq!(called(text).as_deref(), Some("fmpl_send"));
        assert_eq!(called("   0: main\n"), None);
    }

    #[test]
    fn every_code_has_a_meaning() {
        for code in Code::ALL {
            assert_eq!(meaning(code as c_int).to_str(), Ok(code.text()));
        }
        assert_eq!(meaning(0), c"success");
        assert_eq!(meaning(-5), c"no such error code");
    }
}
