//! Finding libfabric at run time. A machine without it simply has no network by it.
//!
//! Few of its calls are symbols; all others go through the tables of functions that objects carry ([`ffi`](super::ffi)).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::ffi::{FabricAttr, FidFabric, Info};
use crate::base::library::{self, functions};
use crate::base::system::calls;

functions! {
    /// The functions of libfabric that are symbols and are used, each under its name without `fi_`.
    #[expect(missing_docs, reason = "documented in the library's manual pages")]
    pub struct Library {
        getinfo = c"fi_getinfo": fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
        freeinfo = c"fi_freeinfo": fn(*mut Info);
        dupinfo = c"fi_dupinfo": fn(*const Info) -> *mut Info;
        fabric = c"fi_fabric": fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int;
        strerror = c"fi_strerror": fn(c_int) -> *const c_char;
        version = c"fi_version": fn() -> u32;
    }
}

/// What a provider is told by variables that only it reads, unless the user has set them. Its layer of datagrams over connections
/// (`ofi_rxm`) otherwise takes some 70 MB for each endpoint, for messages of kinds that are not used here, and looks every 10 ms only
/// whether anybody wants to connect.
const THRIFT: [(&CStr, &CStr); 3] =
    [(c"FI_OFI_RXM_USE_SRX", c"0"), (c"FI_OFI_RXM_BUFFER_SIZE", c"512"), (c"FI_OFI_RXM_CM_PROGRESS_INTERVAL", c"500")];

/// Sets them, where no other thread can be looking at the environment.
fn be_thrifty() {
    let threads = std::fs::read_dir("/proc/self/task").map_or(usize::MAX, Iterator::count);
    if threads != 1 {
        return;
    }
    for (name, value) in THRIFT {
        // SAFETY: this is the only thread, and strings end with NUL; a variable that is there stays.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
    }
}

/// As the system knows it.
pub const USUAL: &str = "libfabric.so.1";

/// The library, from this file the first time, or why there is none.
pub fn library(file: &str) -> Result<&'static Library, &'static str> {
    static FOUND: OnceLock<Result<Library, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let name = CString::new(file).map_err(|_| "its name has a NUL".to_owned())?;
        be_thrifty();
        // It stays, since providers keep state.
        library::Library::load(&name).and_then(Library::find)
    });
    found.as_ref().map_err(String::as_str)
}

/// What the program does about each signal. A provider takes all of those that end a process for itself, when it is loaded (`psm2`), and hangs
/// in what it does about one: they are given back, and what comes meanwhile waits until then.
pub(super) struct Dispositions {
    kept: Vec<(c_int, libc::sigaction)>,
    mask: libc::sigset_t,
}

impl Dispositions {
    /// As they are now.
    pub fn keep() -> Dispositions {
        let (mut all, mut mask) = (calls::blank(), calls::blank());
        calls::sigfillset(&mut all);
        calls::pthread_sigmask(libc::SIG_SETMASK, Some(&all), Some(&mut mask));
        let now = |signal| calls::action(signal).map(|action| (signal, action));
        Dispositions { kept: (1..32).filter_map(now).collect(), mask }
    }
}

impl Drop for Dispositions {
    fn drop(&mut self) {
        for (signal, action) in &self.kept {
            // SAFETY: what was there before.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        calls::pthread_sigmask(libc::SIG_SETMASK, Some(&self.mask), None);
    }
}

impl Library {
    /// What an error of the library means; its sign does not matter.
    pub fn explain(&self, error: c_int) -> String {
        // SAFETY: gives a string that stays, for any number.
        let text = unsafe { (self.strerror)(error.abs()) };
        if text.is_null() {
            return format!("error {}", error.abs());
        }
        // SAFETY: see above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
