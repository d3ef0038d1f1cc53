//! The FMPL of this process.
//!
//! `libfmpl_blacs` carries FMPL whole, so that preloading one file is enough; but a process must have one FMPL only, and a program may
//! be linked to `libfmpl` as well. So FMPL's functions are looked for once, at run time, in this order: where the program's own
//! calls of `fmpl_…` go (the global scope of the dynamic linker: `libfmpl.so`, or this library, whichever comes first); in a
//! `libfmpl.so` that is loaded without being global, as a plug-in's; and then here.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use fmpl::ffi::c as own;
pub use fmpl::ffi::c::{FMPL_COMM_NULL, FMPL_COMM_WORLD, fmpl_block, fmpl_comm, fmpl_func, iovec};

macro_rules! library {
    ($($name:ident as $short:ident($($arg:ty),*) $(-> $out:ty)?;)*) => {
        /// FMPL's functions, by the names of its C interface.
        pub struct Library { $(pub $short: unsafe extern "C" fn($($arg),*) $(-> $out)?,)* }

        impl Library {
            /// This library's own copy.
            fn own() -> Library {
                Library { $($short: own::$name,)* }
            }

            /// What `find` finds, if it is all there and all of one library.
            fn found(find: impl Fn(&CStr) -> *mut c_void) -> Option<Library> {
                let mut home: *mut c_void = core::ptr::null_mut();
                let mut get = |name: &CStr| -> Option<*mut c_void> {
                    let at = find(name);
                    let base = base_of(at)?;
                    if home.is_null() {
                        home = base;
                    }
                    (home == base).then_some(at)
                };
                Some(Library { $($short: {
                    let name = concat!(stringify!($name), "\0");
                    let at = get(CStr::from_bytes_with_nul(name.as_bytes()).ok()?)?;
                    // SAFETY: a function of this name has this type: it is FMPL's C interface, of a version that is checked.
                    unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) $(-> $out)?>(at) }
                },)* })
            }
        }
    };
}

library! {
    fmpl_version as version() -> c_int;
    fmpl_init as init(*mut c_void, *mut c_void, c_int) -> c_int;
    fmpl_finalize as finalize() -> c_int;
    fmpl_abort as abort(c_int) -> c_int;
    fmpl_comm_rank as comm_rank(fmpl_comm, *mut c_int) -> c_int;
    fmpl_comm_size as comm_size(fmpl_comm, *mut c_int) -> c_int;
    fmpl_comm_split as comm_split(fmpl_comm, c_int, c_int, *mut fmpl_comm) -> c_int;
    fmpl_comm_free as comm_free(*mut fmpl_comm) -> c_int;
    fmpl_barrier as barrier(fmpl_comm) -> c_int;
    fmpl_allreduce as allreduce(*mut c_void, c_int, fmpl_func, fmpl_comm, *mut c_void) -> c_int;
    fmpl_func_register as func_register(fmpl_func, usize, c_int) -> c_int;
    fmpl_isum as isum(*mut c_void, *const c_void, c_int);
    fmpl_ssum as ssum(*mut c_void, *const c_void, c_int);
    fmpl_dsum as dsum(*mut c_void, *const c_void, c_int);
    fmpl_csum as csum(*mut c_void, *const c_void, c_int);
    fmpl_zsum as zsum(*mut c_void, *const c_void, c_int);
    fmpl_comm_sendbuf_set as comm_sendbuf_set(fmpl_comm, *mut c_void, usize, c_int) -> c_int;
    fmpl_send as send(*const c_void, usize, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_send_block as send_block(*const c_void, fmpl_block, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_send_list as send_list(*const iovec, c_int, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_recv as recv(*mut c_void, usize, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_recv_block as recv_block(*mut c_void, fmpl_block, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_recv_list as recv_list(*const iovec, c_int, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_sendrecv as sendrecv(*const c_void, usize, c_int, c_int, *mut c_void, usize, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_received as received(c_int, c_int, fmpl_comm, *mut usize, *mut c_int) -> c_int;
    fmpl_isend as isend(*const c_void, usize, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_isend_wait as isend_wait(c_int, c_int, fmpl_comm) -> c_int;
    fmpl_irecv as irecv(*mut c_void, usize, c_int, c_int, fmpl_comm) -> c_int;
    fmpl_irecv_wait as irecv_wait(c_int, c_int, fmpl_comm) -> c_int;
    fmpl_wtime as wtime() -> f64;
    fmpl_alloc as alloc(usize) -> *mut c_void;
    fmpl_free as free(*mut c_void) -> c_int;
    fmpl_last_error as last_error() -> *const c_char;
}

/// Where the object that an address belongs to is loaded.
fn base_of(at: *mut c_void) -> Option<*mut c_void> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` has room for the answer, which is read only if there is one.
    unsafe { (!at.is_null() && libc::dladdr(at, info.as_mut_ptr()) != 0).then(|| info.assume_init().dli_fbase) }
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// FMPL's functions. Found at the first call.
#[inline(always)]
pub fn fmpl() -> &'static Library {
    match LIBRARY.get() {
        Some(library) => library,
        None => find(),
    }
}

#[cold]
fn find() -> &'static Library {
    LIBRARY.get_or_init(|| {
        // SAFETY: dlsym with a name that ends with NUL.
        let global = Library::found(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        let library = global.or_else(loaded).unwrap_or_else(Library::own);
        // SAFETY: fmpl_version may be called at any time.
        let version = unsafe { (library.version)() };
        // Before 1.0 the second number tells interfaces apart.
        if version / 100 != own::FMPL_VERSION / 100 {
            eprintln!(
                "libfmpl_blacs is of FMPL version {}, but this process has already loaded version {version}: install both from one source",
                own::FMPL_VERSION
            );
            std::process::exit(1);
        }
        library
    })
}

/// A `libfmpl.so` that is in the process, but not in the global scope.
fn loaded() -> Option<Library> {
    // SAFETY: the name ends with NUL; RTLD_NOLOAD loads nothing.
    let handle = unsafe { libc::dlopen(c"libfmpl.so.0".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is not null, and never closed.
    Library::found(|name| unsafe { libc::dlsym(handle, name.as_ptr()) })
}

/// The text of this thread's last FMPL error.
pub fn last_error() -> String {
    // SAFETY: a text that stays valid until the thread's next failing call.
    unsafe { CStr::from_ptr((fmpl().last_error)()) }.to_string_lossy().into_owned()
}
