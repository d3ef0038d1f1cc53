//! Libraries of C that are found at run time: functions of theirs by name, and what is declared of their headers.

use core::ffi::{CStr, c_char, c_void};

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
        let why = unsafe { text(libc::dlerror()) };
        Err(why.unwrap_or_else(|| format!("{} cannot be loaded", name.to_string_lossy())))
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

    /// Its function of this name.
    ///
    /// # Safety
    /// That function has the type `F`, which is a pointer to a function.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let at = self.symbol(name)?;
        // SAFETY: an address that is not null, as a pointer of the same size; the type is as the caller promises.
        Ok(unsafe { core::mem::transmute_copy(&at) })
    }

    /// As the linker's own functions take it.
    pub fn handle(self) -> *mut c_void {
        self.0
    }
}

/// What stands at a string of C; `None`: it is null.
///
/// # Safety
/// It is null, or ends with a NUL.
pub unsafe fn text(string: *const c_char) -> Option<String> {
    // SAFETY: as promised.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}

/// Declares a table of functions, and how it is found in a library, from one list: `name = c"symbol": fn(types) -> type;`. The types are
/// those of the library's manual pages; those that ask nothing of their caller, whatever values of these types they are given, are `[safe]`.
macro_rules! functions {
    ($(#[$about:meta])* $vis:vis struct $name:ident $(<$handle:ident>)? {
        $( $field:ident = $symbol:literal : $([$safe:ident])? fn($($arg:ty),*) $(-> $ret:ty)? ; )*
    }) => {
        $(#[$about])*
        $vis struct $name $(<$handle>)? {
            $( pub $field: $crate::base::library::functions!(@ $($safe)? fn($($arg),*) $(-> $ret)?), )*
        }

        impl $(<$handle: Copy>)? Copy for $name $(<$handle>)? {}

        impl $(<$handle: Copy>)? Clone for $name $(<$handle>)? {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl $(<$handle: Copy>)? $name $(<$handle>)? {
            fn find(library: $crate::base::library::Library) -> core::result::Result<Self, String> {
                // SAFETY: the library's functions of these names have these types.
                unsafe { Ok(Self { $( $field: library.function($symbol)?, )* }) }
            }
        }
    };
    (@ safe $($type:tt)*) => { extern "C" $($type)* };
    (@ $($type:tt)*) => { unsafe extern "C" $($type)* };
}
pub(crate) use functions;

/// A structure of C: its name, its size (0: only its beginning is declared), and where its fields lie.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// Asserts where the fields of structures lie, and lists it for the comparison with the headers: `Type = "name in C", size, { field: place }`.
macro_rules! layouts {
    ($( $t:ty = $c:literal, $size:expr, { $($f:ident $(as $cf:literal)? : $at:expr),* $(,)? } )*) => {
        $( $( static_assertions::const_assert!(core::mem::offset_of!($t, $f) == $at); )*
           static_assertions::const_assert!($size == 0 || size_of::<$t>() == $size); )*
        /// Every declared structure.
        pub const LAYOUTS: &[$crate::base::library::Layout] =
            &[ $( ($c, $size, &[ $( ($crate::base::library::layouts!(@name $f $($cf)?), $at) ),* ]) ),* ];
    };
    (@name $f:ident) => { stringify!($f) };
    (@name $f:ident $cf:literal) => { $cf };
}
pub(crate) use layouts;
