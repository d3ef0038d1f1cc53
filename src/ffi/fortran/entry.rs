//! How a call comes from Fortran: every argument as the address of a variable, the return code stored in a trailing `ier`.
//!
//! `entries` makes the subroutines from a table; each kind of argument is a type here, which says what the C function gets for it.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::ffi::c::{fmpl_func, fmpl_request};
use crate::ffi::outcome::{Out as Variable, wrong};

/// Default INTEGER
pub(super) type Int = c_int;
/// INTEGER(8)
pub(super) type Long = i64;

/// INTEGER, intent(in)
pub(super) type In = *const Int;
/// INTEGER, intent(out)
pub(super) type Out = *mut Int;
/// INTEGER(8), intent(in)
pub(super) type In8 = *const Long;
/// INTEGER(8), intent(out)
pub(super) type Out8 = *mut Long;
/// Memory that is read
pub(super) type Data = *const c_void;
/// Memory that is written
pub(super) type Buffer = *mut c_void;
/// TYPE(C_PTR) or INTEGER(8), intent(in)
pub(super) type Address = *const *mut c_void;
/// The same, intent(out): null unless the call stores one
pub(super) type NewAddress = *mut *mut c_void;
/// The same, intent(out): left as it is unless the call stores one
pub(super) type Lent = *mut *const c_void;
/// An external subroutine (inout, in, count), as Fortran passes it: the subroutine's address
pub(super) type Function = fmpl_func;
/// An array of TYPE(FMPL_REQUEST), intent(inout)
pub(super) type Requests = *mut fmpl_request;
/// An array of INTEGER, of which elements are set
pub(super) type Codes = *mut Code;
/// An array of INTEGER, of which none is set
pub(super) type Array = *const Code;
/// An array of INTEGER(8)
pub(super) type Array8 = *const Element;
/// The same, as a bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r
pub(super) type Members = *const Word;

/// A number of bytes, INTEGER in one form of a subroutine and INTEGER(8) in the other: there `Size` is the address of one that is
/// given, `Length` of one that is set.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct Bytes<T>(T);

#[repr(transparent)]
pub(super) struct Code(Int);

#[repr(transparent)]
pub(super) struct Element(Long);

#[repr(transparent)]
pub(super) struct Word(Long);

/// A length that no call has stored.
pub(super) const NOT_STORED: usize = usize::MAX;

/// An argument as Fortran passes it.
pub(super) trait Argument: Copy {
    /// What the C function gets.
    type C;

    /// Before the call.
    ///
    /// # Safety
    /// This is the address of a variable; so below.
    unsafe fn begin(self) {}

    /// What the C function gets; nothing when a size is negative. A length that it hands out it stores in `length`.
    unsafe fn take(self, length: &mut usize) -> Option<Self::C>;

    /// After the call: stores the length. Returns whether there is room for it.
    unsafe fn end(self, _length: usize) -> bool {
        true
    }
}

/// Arguments that are passed on as they are, or by value: `type => what C gets, from the address`.
macro_rules! plain {
    ($($kind:ty => $c:ty, $address:ident: $value:expr;)*) => {$(
        impl Argument for $kind {
            type C = $c;

            #[inline(always)]
            unsafe fn take(self, _: &mut usize) -> Option<$c> {
                let $address = self;
                // SAFETY: the address of a variable where it is read.
                #[allow(unused_unsafe)]
                Some(unsafe { $value })
            }
        }
    )*};
}

plain! {
    In => Int, at: *at;
    Out => Variable<'static, Int>, at: Variable::at(at);
    In8 => Long, at: *at;
    Out8 => Variable<'static, u64>, at: Variable::at(at.cast());
    Data => Data, at: at;
    Buffer => Buffer, at: at;
    Address => *mut c_void, at: *at;
    Lent => Variable<'static, *const c_void>, at: Variable::at(at);
    Function => Function, at: at;
    Requests => Requests, at: at;
    Codes => *mut Int, at: at.cast();
    Array => *const Int, at: at.cast();
    Array8 => *const Long, at: at.cast();
    Members => *const u64, at: at.cast();
}

impl Argument for NewAddress {
    type C = Variable<'static, *mut c_void>;

    #[inline(always)]
    unsafe fn begin(self) {
        // SAFETY: the address of a variable.
        unsafe { *self = ptr::null_mut() }
    }

    #[inline(always)]
    unsafe fn take(self, _: &mut usize) -> Option<Self::C> {
        // SAFETY: the address of a variable.
        Some(unsafe { Variable::at(self) })
    }
}

impl<T: Copy + TryInto<usize>> Argument for *const Bytes<T> {
    type C = usize;

    #[inline(always)]
    unsafe fn take(self, _: &mut usize) -> Option<usize> {
        // SAFETY: the address of a variable.
        unsafe { *self }.0.try_into().ok()
    }
}

impl<T: Copy + TryFrom<usize>> Argument for *mut Bytes<T> {
    type C = Variable<'static, usize>;

    #[inline(always)]
    unsafe fn take(self, length: &mut usize) -> Option<Self::C> {
        // SAFETY: a variable of the entry's, which calls the C function.
        Some(unsafe { Variable::at(length) })
    }

    #[inline(always)]
    unsafe fn end(self, length: usize) -> bool {
        if length == NOT_STORED {
            return true;
        }
        let Ok(length) = length.try_into() else { return false };
        // SAFETY: the address of a variable.
        unsafe { *self = Bytes(length) };
        true
    }
}

/// A symbol's function in C, for messages.
fn function(symbol: &str) -> &str {
    symbol.trim_end_matches('_').trim_end_matches('8')
}

#[cold]
#[inline(never)]
pub(super) fn negative(symbol: &str) -> c_int {
    wrong(&format!("{}: the size is negative", function(symbol)))
}

#[cold]
#[inline(never)]
pub(super) fn too_long(symbol: &str, length: usize) -> c_int {
    wrong(&format!("{}: {length} bytes are too many for an INTEGER; use INTEGER(8)", function(symbol)))
}

/// Makes subroutines: `symbol(argument: kind, …) = what;`, or `symbol, symbol8(…) = what;` for one that has sizes.
///
/// `what` is the name of the C function that gets the arguments in this order, or a block that has them as the C function would
/// get them, and gives the return code. An entry without a comment does what the C function of its name does.
macro_rules! entries {
    () => {};
    ($(#[$doc:meta])* $name:ident, $wide:ident $arguments:tt = $what:tt; $($rest:tt)*) => {
        $crate::ffi::fortran::entry::entries!(@entry Int, $name, $arguments, $what);
        $crate::ffi::fortran::entry::entries!(@entry Long, $wide, $arguments, $what);
        $crate::ffi::fortran::entry::entries!($($rest)*);
    };
    ($(#[$doc:meta])* $name:ident $arguments:tt = $what:tt; $($rest:tt)*) => {
        $crate::ffi::fortran::entry::entries!(@entry Int, $name, $arguments, $what);
        $crate::ffi::fortran::entry::entries!($($rest)*);
    };
    (@entry $int:ident, $name:ident, ($($argument:ident: $kind:ident),*), $what:tt) => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::ffi::fortran::entry::{self, Argument, Bytes};
            #[allow(dead_code)]
            type Size = *const Bytes<entry::$int>;
            #[allow(dead_code)]
            type Length = *mut Bytes<entry::$int>;

            #[allow(unused_labels)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind,)* ier: *mut entry::Int) {
                // SAFETY: Fortran passes the addresses of its variables.
                unsafe {
                    *ier = 'call: {
                        $($argument.begin();)*
                        $(let mut $argument = ($argument, entry::NOT_STORED);)*
                        let code = {
                            $(let Some($argument) = $argument.0.take(&mut $argument.1) else {
                                break 'call entry::negative(stringify!($name));
                            };)*
                            $crate::ffi::fortran::entry::entries!(@call $what, $($argument),*)
                        };
                        $(if !$argument.0.end($argument.1) {
                            break 'call entry::too_long(stringify!($name), $argument.1);
                        })*
                        code
                    };
                }
            }
        };
    };
    (@call $c:ident, $($argument:ident),*) => { $crate::ffi::c::$c($($argument),*) };
    (@call $what:block, $($argument:ident),*) => { $what };
}
pub(super) use entries;
