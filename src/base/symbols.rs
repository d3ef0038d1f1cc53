//! What the dynamic linker knows of addresses and names.

use core::ffi::{CStr, c_char, c_void};

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
    let text = |name: *const c_char| {
        // SAFETY: null, or the linker's, with a NUL.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    };
    let file = text(known.dli_fname).unwrap_or_default();
    let at = format!("{file}+{:#x}", address.wrapping_sub(known.dli_fbase as usize));
    let name = text(known.dli_sname).filter(|_| known.dli_saddr as usize == address);
    name.map_or(at.clone(), |name| format!("{name} ({at})"))
}

/// A library that the linker has loaded; it stays for good.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

impl Library {
    /// All libraries whose names are known to the whole program.
    pub const EVERYWHERE: Library = Library(libc::RTLD_DEFAULT);

    /// Loads one, or finds it loaded; the error is the linker's.
    pub fn load(name: &CStr) -> Result<Library, String> {
        // SAFETY: a name with a NUL. Constructors of the library run.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            return Ok(Library(handle));
        }
        // SAFETY: `dlerror` gives a string that ends with NUL, or null.
        let why = unsafe { libc::dlerror() };
        if why.is_null() {
            return Err(format!("{} cannot be loaded", name.to_string_lossy()));
        }
        // SAFETY: see above.
        Err(unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned())
    }

    /// One that is loaded already.
    pub fn loaded(name: &CStr) -> Option<Library> {
        // SAFETY: a name with a NUL; nothing is loaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// Where it has what is called so.
    pub fn symbol(self, name: &CStr) -> Result<*mut c_void, String> {
        // SAFETY: a handle from above, and a name with a NUL.
        let p = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if p.is_null() { Err(format!("it has no {}", name.to_string_lossy())) } else { Ok(p) }
    }

    /// The same; 0: it has nothing that is called so.
    pub fn address(self, name: &CStr) -> usize {
        self.symbol(name).map_or(0, |at| at as usize)
    }

    /// As the linker's own functions take it.
    pub fn handle(self) -> *mut c_void {
        self.0
    }
}
