//! What elements are reduced with: the predefined functions, and those of the program.
//!
//! A function is named by its address, as in the paper. The address of a library's function is not the same everywhere: a program that
//! is not position-independent sees an entry of its own linkage table. So a predefined function is known by each address
//! that it may have: this library's own, and the one that the dynamic linker gives to the whole program (`predefined`).

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{OnceLock, RwLock};

use super::arena::CELL_BYTES;
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error, say};
use crate::base::foreign::Foreign;
use crate::base::kernel::{Kernel, Kind, Operation, PREDEFINED, Predefined};
use crate::base::symbols;
use crate::base::unwinding::caught;
use crate::p2p::endpoint::endpoint;

/// Most bytes of an element of a program's function.
pub const ELEMENT_MOST: usize = CELL_BYTES;

/// What elements are reduced with.
#[derive(Clone, Copy)]
pub struct Function<'a> {
    /// Bytes of an element.
    pub size: usize,
    how: How<'a>,
}

/// A function of Rust: inout = inout ∘ in for a number of elements.
pub type Closure<'a> = dyn Fn(Room<'_>, Bytes<'_>, usize) + 'a;

#[derive(Clone, Copy)]
enum How<'a> {
    Kernel(Kernel),
    Foreign(Foreign),
    Rust(&'a Closure<'a>),
}

impl<'a> Function<'a> {
    /// A predefined function.
    pub fn predefined(kind: Kind, operation: Operation) -> Function<'static> {
        let kernel = Kernel::of(Predefined { kind, operation });
        Function { size: kernel.size, how: How::Kernel(kernel) }
    }

    /// A function of a Rust program on elements of this size.
    pub fn rust(size: usize, closure: &'a Closure<'a>) -> Function<'a> {
        Function { size, how: How::Rust(closure) }
    }

    /// out = a ∘ b for `n` elements; `out` is `a`, or `b`, or overlaps with neither. `spare` has room for them where `out` is `b`. An error
    /// is a panic of the program's function, and what is in `out` then is nothing.
    #[inline]
    pub fn fold(
        &self,
        out: Room<'_>,
        a: Bytes<'_>,
        b: Bytes<'_>,
        n: usize,
        spare: Room<'_>,
    ) -> std::thread::Result<()> {
        if let How::Kernel(kernel) = self.how {
            kernel.run(out, a, b, n);
            return Ok(());
        }
        let bytes = n.saturating_mul(self.size);
        let (out, a, mut b) = (out.part(0, bytes), a.part(0, bytes), b.part(0, bytes));
        if core::ptr::eq(out.as_ptr(), b.as_ptr()) {
            spare.copy_from(b);
            b = *spare.part(0, bytes);
        }
        if !core::ptr::eq(out.as_ptr(), a.as_ptr()) {
            out.copy_from(a);
        }
        match self.how {
            How::Kernel(_) => {}
            How::Foreign(function) => guarded(function.address(), || function.call(out, b, n)),
            How::Rust(closure) => return caught(|| closure(out, b, n)),
        }
        Ok(())
    }

    /// left = left ∘ right for `n` elements, where the first right is taken as it is. They do not overlap.
    #[inline]
    pub fn fold_next(&self, left: Room<'_>, right: Bytes<'_>, n: usize, first: bool) -> std::thread::Result<()> {
        if first {
            left.copy_from(right.part(0, n * self.size));
            return Ok(());
        }
        // Nothing is spared where the output is the left one.
        self.fold(left, *left, right, n, Room::none())
    }
}

/// A vector of a reduction: `n` elements of a function, in memory that is the call's.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    pub at: Room<'a>,
    pub n: usize,
    pub f: &'a Function<'a>,
}

impl<'a> Vector<'a> {
    /// The first `n` elements of some memory.
    pub fn new(at: Room<'a>, n: usize, f: &'a Function<'a>) -> Vector<'a> {
        Vector { at: at.part(0, n * f.size), n, f }
    }

    /// Its bytes.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.at.len()
    }

    /// `n` elements of it from `from` on.
    #[inline(always)]
    pub fn part(self, from: usize, n: usize) -> Vector<'a> {
        Vector { at: self.at.part(from * self.f.size, n * self.f.size), n, ..self }
    }

    /// self = self ∘ right.
    pub fn fold(&self, right: Bytes<'_>) -> std::thread::Result<()> {
        self.f.fold(self.at, *self.at, right, self.n, Room::none())
    }

    /// self = left ∘ self. `spare` has room for as many elements.
    pub fn fold_behind(&self, left: Bytes<'_>, spare: Room<'_>) -> std::thread::Result<()> {
        self.f.fold(self.at, left, *self.at, self.n, spare)
    }
}

/// Calls the function of another language at `address`. Whoever throws looks for a handler before anything is unwound, and without any ends
/// the process with words of its own: so there is one here, behind [`Left`].
fn guarded(address: usize, call: impl FnOnce()) {
    let _ = caught(|| {
        let left = Left(address);
        call();
        core::mem::forget(left);
    });
}

/// A function of another language while it is called, by its address. Dropped by whatever unwinds out of it: that can be no more than
/// told, since it may belong to another thread's call than the one that it would come out of.
struct Left(usize);

impl Drop for Left {
    #[cold]
    fn drop(&mut self) {
        let rank = endpoint().map_or(String::new(), |ep| format!("rank {}: ", ep.rank));
        say(&format!(
            "{rank}the function of a reduction, {}, was left by an exception (C++), a panic (Rust) or the end of its thread; \
             it must return; the process ends",
            symbols::place(self.0)
        ));
        std::process::abort();
    }
}

/// The same function without the bound on how long it lives.
///
/// # Safety
/// It must stay as long as what is returned is used.
pub unsafe fn lasting(f: Function<'_>) -> Function<'static> {
    let how = match f.how {
        How::Kernel(kernel) => How::Kernel(kernel),
        How::Foreign(function) => How::Foreign(function),
        How::Rust(closure) => {
            // SAFETY: as the caller promises.
            let closure = unsafe { core::mem::transmute::<&Closure<'_>, &'static Closure<'static>>(closure) };
            How::Rust(closure)
        }
    };
    Function { size: f.size, how }
}

/// A registered function of the program.
#[derive(Clone, Copy)]
struct Registered {
    size: usize,
    fortran: bool,
}

static REGISTERED: RwLock<Option<HashMap<usize, Registered>>> = RwLock::new(None);

/// `fmpl_func_register`: a function of the program may be used from now on. Registering it again replaces what was said before.
///
/// All functions are applied in the order of the ranks, so it makes no difference whether they commute.
///
/// # Safety
/// As for [`Foreign::at`], to the end of the process.
pub unsafe fn register(function: usize, size: usize, fortran: bool) -> Result<()> {
    if size == 0 || size > ELEMENT_MOST {
        return Err(error!(
            Code::Argument,
            "fmpl_func_register: elements of {size} bytes; 1 to {ELEMENT_MOST} are possible"
        ));
    }
    if predefined_at(function).is_some() {
        return Err(Error::new(Code::Argument, "fmpl_func_register: this is a predefined function"));
    }
    let mut map = REGISTERED.write().unwrap_or_else(|e| e.into_inner());
    map.get_or_insert_default().insert(function, Registered { size, fortran });
    Ok(())
}

/// The function at an address.
pub fn find(function: usize) -> Result<Function<'static>> {
    if let Some(Predefined { kind, operation }) = predefined_at(function) {
        return Ok(Function::predefined(kind, operation));
    }
    let map = REGISTERED.read().unwrap_or_else(|e| e.into_inner());
    let found = map.as_ref().and_then(|m| m.get(&function)).copied();
    drop(map);
    let Some(found) = found else {
        return Err(Error::new(
            Code::Argument,
            "the function is neither predefined nor registered: call fmpl_func_register with its element size first",
        ));
    };
    // SAFETY: as was promised when it was registered.
    let foreign = unsafe { Foreign::at(function, found.size, found.fortran) };
    Ok(Function { size: found.size, how: How::Foreign(foreign) })
}

type ByAddress = HashMap<usize, Predefined>;
static OWN: OnceLock<ByAddress> = OnceLock::new();

/// Tells the addresses that the predefined functions have in this library, in C and in Fortran.
pub fn introduce(addresses: impl FnOnce() -> ByAddress) {
    OWN.get_or_init(addresses);
}

/// The predefined function at an address.
fn predefined_at(address: usize) -> Option<Predefined> {
    static WHOLE_PROGRAM: OnceLock<ByAddress> = OnceLock::new();
    let own = OWN.get().and_then(|own| own.get(&address));
    own.or_else(|| WHOLE_PROGRAM.get_or_init(whole_program).get(&address)).copied()
}

/// What the linker knows under the functions' names for the whole program: a function or its entry in the program's linkage table. The names
/// are this library's.
fn whole_program() -> ByAddress {
    let names = |f: &Predefined| core::iter::once(f.name()).chain(f.paper_name());
    let known = |name: String| CString::new(name).map_or(0, |name| symbols::address(&name));
    let all = PREDEFINED.iter().flat_map(|f| names(f).map(move |name| (name, *f)));
    let all = all.flat_map(|(name, f)| ["", "_"].map(|end| (known(format!("fmpl_{name}{end}")), f)));
    all.filter(|(address, _)| *address != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_function_is_its_outcome() {
        let owned = String::from("of the closure");
        let closure = |inout: Room<'_>, _: Bytes<'_>, n: usize| {
            inout.copy_from(Bytes::of(&[7u8; 3]).part(0, n));
            std::panic::panic_any(owned.clone());
        };
        let function = Function::rust(1, &closure);
        let (mut out, a, mut b, mut spare) = ([0u8; 3], [1u8; 3], [2u8; 3], [0u8; 3]);
        let (at, b_at, spare_at) = (Room::of(&mut out), Room::of(&mut b), Room::of(&mut spare));
        let ended = [
            function.fold(at, Bytes::of(&a), *b_at, 3, spare_at),
            function.fold(b_at, Bytes::of(&a), *b_at, 3, spare_at),
            function.fold_next(at, Bytes::of(&a), 3, false),
        ];
        for panic in ended {
            assert_eq!(panic.unwrap_err().downcast_ref::<String>(), Some(&owned));
        }
        assert_eq!((out, b, spare), ([7; 3], [7; 3], [2; 3]));
        // What comes first is taken as it is.
        function.fold_next(Room::of(&mut out), Bytes::of(&a), 3, true).unwrap();
        assert_eq!(out, a);
    }

    #[test]
    fn unknown_functions_are_refused() {
        assert_eq!(find(4242).err().map(|e| e.code()), Some(Code::Argument));
        // SAFETY: nobody calls it.
        let register = |size| unsafe { register(4242, size, true) };
        assert_eq!(register(0).err().map(|e| e.code()), Some(Code::Argument));
        assert_eq!(register(ELEMENT_MOST + 1).err().map(|e| e.code()), Some(Code::Argument));
        register(24).unwrap();
        assert_eq!(find(4242).unwrap().size, 24);
    }
}
