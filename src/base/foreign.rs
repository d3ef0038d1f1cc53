//! Functions of other languages that combine the elements of vectors.

use core::ffi::{c_int, c_void};

use super::bytes::{Bytes, Room};

/// `fmpl_func`: inout\[k\] = inout\[k\] ∘ in\[k\] for `count` elements. "C-unwind", so that an exception of C++ that leaves it is no undefined
/// behaviour.
type InC = unsafe extern "C-unwind" fn(inout: *mut c_void, input: *const c_void, count: c_int);
/// The same as Fortran passes it: the count by its address.
type InFortran = unsafe extern "C-unwind" fn(inout: *mut c_void, input: *const c_void, count: *const c_int);

/// A function of the program, on elements of one size.
#[derive(Clone, Copy)]
pub struct Foreign {
    address: usize,
    size: usize,
    fortran: bool,
}

impl Foreign {
    /// The one at an address.
    ///
    /// # Safety
    /// There is a function of one of the types above there, of Fortran's if `fortran`, as long as this lasts; it uses `count` elements of that
    /// size at each, whatever they are.
    pub unsafe fn at(address: usize, size: usize, fortran: bool) -> Foreign {
        Foreign { address, size, fortran }
    }

    /// Where it is.
    pub fn address(self) -> usize {
        self.address
    }

    /// Calls it with so many elements, which do not overlap.
    pub fn call(self, inout: Room<'_>, input: Bytes<'_>, n: usize) {
        let (bytes, count) = (n.saturating_mul(self.size), n as c_int);
        let (inout, input) = (inout.part(0, bytes), input.part(0, bytes));
        assert!(inout.is_apart_from(input) && usize::try_from(count) == Ok(n), "{n} elements");
        let (inout, input) = (inout.as_mut_ptr().cast(), input.as_ptr().cast());
        // SAFETY: such a function, as was promised when this was made, with as many elements at each.
        unsafe {
            match self.fortran {
                true => core::mem::transmute::<usize, InFortran>(self.address)(inout, input, &count),
                false => core::mem::transmute::<usize, InC>(self.address)(inout, input, count),
            }
        }
    }
}
