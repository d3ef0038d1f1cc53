//! What the dynamic linker knows of addresses and names.

use super::library::text;
use core::ffi::{CStr, c_void};

pub use super::library::Library;

/// Where the whole program has what is called so; 0: nothing is.
pub fn address(name: &CStr) -> usize {
    Library::EVERYWHERE.address(name)
}

fn known(address: usize) -> Option<libc::Dl_info> {
    let mut known = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: room for the answer; what it points to belongs to the linker.
    unsafe { (libc::dladdr(address as *const c_void, known.as_mut_ptr()) != 0).then(|| known.assume_init()) }
}

/// Where the object begins that an address belongs to.
pub fn home(address: usize) -> Option<usize> {
    Some(known(address)?.dli_fbase as usize)
}

/// A function's name if the linker knows it, and where it is in its file, as `addr2line -e FILE` takes it.
pub fn place(address: usize) -> String {
    let Some(known) = known(address) else { return format!("{address:#x}") };
    // SAFETY: null, or the linker's, with a NUL.
    let (file, name) = unsafe { (text(known.dli_fname).unwrap_or_default(), text(known.dli_sname)) };
    let at = format!("{file}+{:#x}", address.wrapping_sub(known.dli_fbase as usize));
    let name = name.filter(|_| known.dli_saddr as usize == address);
    name.map_or(at.clone(), |name| format!("{name} ({at})"))
}
