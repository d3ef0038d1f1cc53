//! Munge: bytes that only one user's processes can read, on machines with the same key of munge. Whoever reads them sees who has sealed them.
//!
//! `libmunge.so.2` is loaded at run time.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;

use super::library::{self, Library, functions};
use super::system;

/// `munge_opt_t`: the path of the socket.
const SOCKET: c_int = 8;
/// `munge_opt_t`: the user who can read it.
const FOR_USER: c_int = 9;
/// `munge_err_t`: it was read before; and it is older, or younger, than munge takes for new.
const READ_BEFORE: [c_int; 3] = [15, 16, 17];

functions! {
    struct Calls {
        create = c"munge_ctx_create": fn() -> *mut c_void;
        destroy = c"munge_ctx_destroy": fn(*mut c_void);
        encode = c"munge_encode": fn(*mut *mut c_char, *mut c_void, *const c_void, c_int) -> c_int;
        decode = c"munge_decode": fn(*const c_char, *mut c_void, *mut *mut c_void, *mut c_int, *mut u32, *mut u32) -> c_int;
        text = c"munge_strerror": fn(c_int) -> *const c_char;
    }
}

/// `munge_ctx_set`
type Set = unsafe extern "C" fn(*mut c_void, c_int, ...) -> c_int;

/// A context of munge.
pub struct Munge {
    calls: Calls,
    set: Set,
    context: *mut c_void,
}

// SAFETY: a context belongs to whoever has it, and munge keeps no thread of its own; it is used by one thread at a time, its owner.
unsafe impl Send for Munge {}

impl Munge {
    /// One that seals for this user's processes. `socket`: where munge listens, if not at its usual place.
    pub fn find(socket: Option<&str>) -> Result<Munge, String> {
        let library = Library::load(c"libmunge.so.2")?;
        let calls = Calls::find(library)?;
        // SAFETY: the function of this name has this type (munge_ctx(3)).
        let set: Set = unsafe { library.function(c"munge_ctx_set")? };
        // SAFETY: takes nothing.
        let context = unsafe { (calls.create)() };
        if context.is_null() {
            return Err("it has no memory for a context".into());
        }
        let munge = Munge { calls, set, context };
        // SAFETY: an option of the context with what it takes, a number.
        munge.said(unsafe { (munge.set)(context, FOR_USER, system::user()) })?;
        if let Some(path) = socket {
            let path = CString::new(path).map_err(|_| "the path of its socket has a NUL in it".to_owned())?;
            // SAFETY: an option of the context with what it takes, a text, which is copied.
            munge.said(unsafe { (munge.set)(context, SOCKET, path.as_ptr()) })?;
        }
        Ok(munge)
    }

    /// These bytes, sealed.
    pub fn seal(&self, bytes: &[u8]) -> Result<String, String> {
        let mut text: *mut c_char = std::ptr::null_mut();
        // SAFETY: so many bytes, and room for the address of the answer.
        self.said(unsafe {
            (self.calls.encode)(&mut text, self.context, bytes.as_ptr().cast(), bytes.len() as c_int)
        })?;
        // SAFETY: munge has stored a text that ends with NUL, which is ours to free.
        unsafe {
            let sealed = library::text(text).unwrap_or_default();
            libc::free(text.cast());
            Ok(sealed)
        }
    }

    /// What was sealed, and the user who has.
    pub fn open(&self, text: &str) -> Result<(Vec<u8>, u32), String> {
        let text = CString::new(text).map_err(|_| "a NUL in it".to_owned())?;
        let (mut at, mut length, mut user, mut group): (*mut c_void, c_int, u32, u32) = (std::ptr::null_mut(), 0, 0, 0);
        // SAFETY: a text that ends with NUL, and room for the answers.
        let code =
            unsafe { (self.calls.decode)(text.as_ptr(), self.context, &mut at, &mut length, &mut user, &mut group) };
        let mut bytes = Vec::new();
        if !at.is_null() {
            if let Ok(length @ 1..) = usize::try_from(length) {
                // SAFETY: munge has stored the address of so many bytes.
                bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(at.cast::<u8>(), length) });
            }
            // SAFETY: it took them from malloc, and gave them away.
            unsafe { libc::free(at) };
        }
        // All ranks of a node read the same one; and an old one seals a secret that only its job knows.
        if !READ_BEFORE.contains(&code) {
            self.said(code)?;
        }
        Ok((bytes, user))
    }

    fn said(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: any number may be asked for; a constant text, or null.
        let text = unsafe { library::text((self.calls.text)(code)) };
        Err(format!("{} (munge error {code})", text.unwrap_or_default()))
    }
}

impl Drop for Munge {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and nobody has it any more.
        unsafe { (self.calls.destroy)(self.context) }
    }
}
