//! What the dynamic linker knows of addresses and names.

use core::ffi::{CStr, c_char, c_void};

/// Where the whole program has what is called so; 0: nothing is.
pub fn address(name: &CStr) -> usize {
    // SAFETY: a name with a NUL, for a look into the linker's tables.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// A function's name if the linker knows it, and where it is in its file, as `addr2line -e FILE` takes it.
pub fn place(address: usize) -> String {
    let mut known = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: room for the answer; what it points to belongs to the linker.
    let known = unsafe {
        if libc::dladdr(address as *const c_void, known.as_mut_ptr()) == 0 {
            return format!("{address:#x}");
        }
        known.assume_init()
    };
    let text = |name: *const c_char| {
        // SAFETY: null, or the linker's, with a NUL.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    };
    let file = text(known.dli_fname).unwrap_or_default();
    let at = format!("{file}+{:#x}", address.wrapping_sub(known.dli_fbase as usize));
    let name = text(known.dli_sname).filter(|_| known.dli_saddr as usize == address);
    name.map_or(at.clone(), |name| format!("{name} ({at})"))
}

/// Loads a shared library, or finds it loaded, and keeps it for good; the error is the linker's.
pub fn load(name: &CStr) -> Result<core::ptr::NonNull<c_void>, String> {
    // SAFETY: a name with a NUL. Constructors of the library run.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    core::ptr::NonNull::new(handle).ok_or_else(|| {
        // SAFETY: `dlerror` gives a string that ends with NUL, or null.
        let why = unsafe { libc::dlerror() };
        if why.is_null() {
            return format!("{} cannot be loaded", name.to_string_lossy());
        }
        // SAFETY: see above.
        unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned()
    })
}
