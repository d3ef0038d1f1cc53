//! The names of the BLACS: Fortran's (lower case, an underscore behind, all arguments by reference; the lengths of CHARACTER arguments come
//! last and are not looked at) and C's (a capital C in front). Documentation: LAPACK Working Note 94 and the *BLACS quick
//! reference guide*; `docs/scalapack.md` says what is particular here.

#![allow(clippy::missing_safety_doc)] // pointers are what the reference says they are, for the length of the call

use core::ffi::{c_char, c_double};

use crate::Int;
use crate::broadcast::broadcast;
use crate::combine::{C, Call, Places, Z, combine};
use crate::context::{self, Context, number_of};
use crate::library::fmpl;
use crate::matrix::{Shape, Trapezoid};
use crate::order::{Element, Operation};
use crate::process::process;
use crate::report;

/// The first letter of an argument.
#[inline(always)]
unsafe fn letter(text: *const c_char) -> u8 {
    // SAFETY: a CHARACTER argument has at least one letter, a C string at least its end.
    unsafe { *text.cast() }
}

#[inline(always)]
fn find(handle: Int, routine: &str) -> &'static Context {
    process().context(handle, routine)
}

// ---- What each kind of routine does, for all types and both languages

#[inline(always)]
fn send(handle: Int, shape: Shape, at: *const u8, row: Int, col: Int, routine: &'static str) {
    let context = find(handle, routine);
    let to = number_of(context, row, col, routine);
    context.pairs(routine).send(&shape.area(at.cast_mut()), to);
}

#[inline(always)]
fn receive(handle: Int, shape: Shape, at: *mut u8, row: Int, col: Int, routine: &'static str) {
    let context = find(handle, routine);
    let from = number_of(context, row, col, routine);
    context.pairs(routine).receive(&shape.area(at), from);
}

/// Sends one rectangle and receives another: where, and the process's row and column.
fn send_receive(
    handle: Int,
    (out, at, rdest, cdest): (Shape, *const u8, Int, Int),
    (into, to, rsrc, csrc): (Shape, *mut u8, Int, Int),
    routine: &'static str,
) {
    let context = find(handle, routine);
    let (dest, source) = (number_of(context, rdest, cdest, routine), number_of(context, rsrc, csrc, routine));
    let pairs = context.pairs(routine);
    if out.is_run() && into.is_run() {
        pairs.exchange((at, out.bytes(), dest), (to, into.bytes(), source));
    } else {
        pairs.send(&out.area(at.cast_mut()), dest);
        pairs.receive(&into.area(to), source);
    }
}

#[inline(always)]
fn rectangle<T>(m: Int, n: Int, lda: Int) -> Shape {
    Shape::new(m, n, lda, size_of::<T>(), None)
}

/// UPLO and DIAG.
#[inline(always)]
unsafe fn trapezoid<T>(uplo: *const c_char, diag: *const c_char, m: Int, n: Int, lda: Int) -> Shape {
    // SAFETY: the caller's letters.
    Shape::new(m, n, lda, size_of::<T>(), Some(unsafe { Trapezoid::of(letter(uplo), letter(diag)) }))
}

/// SCOPE and TOP, as letters.
type Letters = (*const c_char, *const c_char);

#[inline(always)]
unsafe fn share(
    handle: Int,
    (scope, top): Letters,
    shape: Shape,
    at: *mut u8,
    from: Option<(Int, Int)>,
    routine: &'static str,
) {
    // SAFETY: the caller's letters.
    let (scope, top) = unsafe { (letter(scope), letter(top)) };
    broadcast(find(handle, routine), scope, top, &shape.area(at), from, routine);
}

/// M, N, A, LDA.
struct Matrix<T>(Int, Int, *mut T, Int);

/// RA, CA, LDIA; without them LDIA is -1.
struct At(*mut Int, *mut Int, Int);

/// A sum, or an extreme and where it is; the result goes to {row, col}.
unsafe fn combined<T: Element>(
    handle: Int,
    (scope, top): Letters,
    a: Matrix<T>,
    at: Option<At>,
    (row, col): (Int, Int),
    (operation, routine): (Operation, &'static str),
) {
    let shape = rectangle::<T>(a.0, a.1, a.3);
    let at = at.filter(|at| at.2 != -1);
    let places = at.map(|at| Places { rows: at.0, columns: at.1, m: a.0, lda: at.2.max(a.0) });
    // SAFETY: the caller's letters and matrices.
    unsafe {
        let call = Call { scope: letter(scope), topology: letter(top), operation, row, col, routine };
        combine::<T>(find(handle, routine), &call, &shape, a.2.cast(), places);
    }
}

// ---- The names

/// What an argument of C is in Fortran: integers are passed by reference, and the rest is an address already.
trait Argument {
    type Fortran;

    /// The argument of C.
    unsafe fn of(fortran: Self::Fortran) -> Self;
}

impl Argument for Int {
    type Fortran = *const Int;

    #[inline(always)]
    unsafe fn of(fortran: *const Int) -> Int {
        // SAFETY: the address of a variable.
        unsafe { *fortran }
    }
}

impl<T> Argument for *const T {
    type Fortran = *const T;

    #[inline(always)]
    unsafe fn of(fortran: *const T) -> *const T {
        fortran
    }
}

impl<T> Argument for *mut T {
    type Fortran = *mut T;

    #[inline(always)]
    unsafe fn of(fortran: *mut T) -> *mut T {
        fortran
    }
}

/// Functions of C, and behind each the name of the same function for Fortran; `[unsafe]` those that are told addresses, `[]` others.
macro_rules! both {
    ($safety:tt $(
        $(#[$doc:meta])*
        $c:ident $fortran:ident $arguments:tt $(-> $result:ty)? $body:block
    )*) => { $(both!(@ $safety [$(#[$doc])*] $c $fortran $arguments [$(-> $result)?] $body);)* };
    (@ [$($safety:tt)?] [$($doc:tt)*] $c:ident $fortran:ident
        ($($argument:ident: $type:ty),*) [$($result:tt)*] $body:block
    ) => {
        $($doc)*
        #[unsafe(no_mangle)]
        pub $($safety)? extern "C" fn $c($($argument: $type),*) $($result)* $body

        #[allow(unused_unsafe)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $fortran($($argument: <$type as Argument>::Fortran),*) $($result)* {
            // SAFETY: Fortran passes the addresses of its variables; what they mean is as in C.
            unsafe { $c($(Argument::of($argument)),*) }
        }
    };
}

/// The routines of one type: Fortran's name, C's name.
macro_rules! routines {
    ($t:ty:
        $gesd:ident $cgesd:ident, $gerv:ident $cgerv:ident, $trsd:ident $ctrsd:ident, $trrv:ident $ctrrv:ident,
        $gebs:ident $cgebs:ident, $gebr:ident $cgebr:ident, $trbs:ident $ctrbs:ident, $trbr:ident $ctrbr:ident,
        $gsum:ident $cgsum:ident, $gamx:ident $cgamx:ident, $gamn:ident $cgamn:ident
    ) => { both! { [unsafe]
        /// Sends a rectangle to process {rdest, cdest}; does not wait for it.
        $cgesd $gesd(ctxt: Int, m: Int, n: Int, a: *const $t, lda: Int, rdest: Int, cdest: Int) {
            send(ctxt, rectangle::<$t>(m, n, lda), a.cast(), rdest, cdest, stringify!($cgesd));
        }
        /// Receives a rectangle from process {rsrc, csrc}.
        $cgerv $gerv(ctxt: Int, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int) {
            receive(ctxt, rectangle::<$t>(m, n, lda), a.cast(), rsrc, csrc, stringify!($cgerv));
        }
        /// Sends a trapezoid.
        $ctrsd $trsd(
            ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *const $t, lda: Int, rdest: Int, cdest: Int
        ) {
            // SAFETY: the caller's letters.
            let shape = unsafe { trapezoid::<$t>(uplo, diag, m, n, lda) };
            send(ctxt, shape, a.cast(), rdest, cdest, stringify!($ctrsd));
        }
        /// Receives a trapezoid.
        $ctrrv $trrv(
            ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int
        ) {
            // SAFETY: the caller's letters.
            let shape = unsafe { trapezoid::<$t>(uplo, diag, m, n, lda) };
            receive(ctxt, shape, a.cast(), rsrc, csrc, stringify!($ctrrv));
        }
        /// Broadcasts a rectangle to the scope.
        $cgebs $gebs(ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *const $t, lda: Int) {
            let (shape, at) = (rectangle::<$t>(m, n, lda), a.cast_mut().cast());
            // SAFETY: the caller's letters.
            unsafe { share(ctxt, (scope, top), shape, at, None, stringify!($cgebs)) };
        }
        /// Receives a rectangle that process {rsrc, csrc} broadcasts.
        $cgebr $gebr(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int
        ) {
            let shape = rectangle::<$t>(m, n, lda);
            // SAFETY: the caller's letters.
            unsafe { share(ctxt, (scope, top), shape, a.cast(), Some((rsrc, csrc)), stringify!($cgebr)) };
        }
        /// Broadcasts a trapezoid.
        $ctrbs $trbs(
            ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
            a: *const $t, lda: Int
        ) {
            // SAFETY: the caller's letters.
            unsafe {
                let shape = trapezoid::<$t>(uplo, diag, m, n, lda);
                share(ctxt, (scope, top), shape, a.cast_mut().cast(), None, stringify!($ctrbs));
            }
        }
        /// Receives a trapezoid that process {rsrc, csrc} broadcasts.
        $ctrbr $trbr(
            ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
            a: *mut $t, lda: Int, rsrc: Int, csrc: Int
        ) {
            // SAFETY: the caller's letters.
            unsafe {
                let shape = trapezoid::<$t>(uplo, diag, m, n, lda);
                share(ctxt, (scope, top), shape, a.cast(), Some((rsrc, csrc)), stringify!($ctrbr));
            }
        }
        /// The sum over the scope, element by element, to {rdest, cdest}; -1: to all.
        $cgsum $gsum(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rdest: Int, cdest: Int
        ) {
            let call = (Operation::Sum, stringify!($cgsum));
            // SAFETY: the caller's letters and matrix.
            unsafe { combined(ctxt, (scope, top), Matrix(m, n, a, lda), None, (rdest, cdest), call) };
        }
        /// The elements of largest absolute value over the scope; where they come from goes to RA and CA, unless LDIA is -1.
        $cgamx $gamx(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, ra: *mut Int,
            ca: *mut Int, ldia: Int, rdest: Int, cdest: Int
        ) {
            let (call, at) = ((Operation::Largest, stringify!($cgamx)), At(ra, ca, ldia));
            // SAFETY: the caller's letters and matrices.
            unsafe { combined(ctxt, (scope, top), Matrix(m, n, a, lda), Some(at), (rdest, cdest), call) };
        }
        /// The elements of smallest absolute value, likewise.
        $cgamn $gamn(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, ra: *mut Int,
            ca: *mut Int, ldia: Int, rdest: Int, cdest: Int
        ) {
            let (call, at) = ((Operation::Smallest, stringify!($cgamn)), At(ra, ca, ldia));
            // SAFETY: the caller's letters and matrices.
            unsafe { combined(ctxt, (scope, top), Matrix(m, n, a, lda), Some(at), (rdest, cdest), call) };
        }
    } };
}

routines!(Int:
    igesd2d_ Cigesd2d, igerv2d_ Cigerv2d, itrsd2d_ Citrsd2d, itrrv2d_ Citrrv2d,
    igebs2d_ Cigebs2d, igebr2d_ Cigebr2d, itrbs2d_ Citrbs2d, itrbr2d_ Citrbr2d,
    igsum2d_ Cigsum2d, igamx2d_ Cigamx2d, igamn2d_ Cigamn2d);
routines!(f32:
    sgesd2d_ Csgesd2d, sgerv2d_ Csgerv2d, strsd2d_ Cstrsd2d, strrv2d_ Cstrrv2d,
    sgebs2d_ Csgebs2d, sgebr2d_ Csgebr2d, strbs2d_ Cstrbs2d, strbr2d_ Cstrbr2d,
    sgsum2d_ Csgsum2d, sgamx2d_ Csgamx2d, sgamn2d_ Csgamn2d);
routines!(f64:
    dgesd2d_ Cdgesd2d, dgerv2d_ Cdgerv2d, dtrsd2d_ Cdtrsd2d, dtrrv2d_ Cdtrrv2d,
    dgebs2d_ Cdgebs2d, dgebr2d_ Cdgebr2d, dtrbs2d_ Cdtrbs2d, dtrbr2d_ Cdtrbr2d,
    dgsum2d_ Cdgsum2d, dgamx2d_ Cdgamx2d, dgamn2d_ Cdgamn2d);
routines!(C:
    cgesd2d_ Ccgesd2d, cgerv2d_ Ccgerv2d, ctrsd2d_ Cctrsd2d, ctrrv2d_ Cctrrv2d,
    cgebs2d_ Ccgebs2d, cgebr2d_ Ccgebr2d, ctrbs2d_ Cctrbs2d, ctrbr2d_ Cctrbr2d,
    cgsum2d_ Ccgsum2d, cgamx2d_ Ccgamx2d, cgamn2d_ Ccgamn2d);
routines!(Z:
    zgesd2d_ Czgesd2d, zgerv2d_ Czgerv2d, ztrsd2d_ Cztrsd2d, ztrrv2d_ Cztrrv2d,
    zgebs2d_ Czgebs2d, zgebr2d_ Czgebr2d, ztrbs2d_ Cztrbs2d, ztrbr2d_ Cztrbr2d,
    zgsum2d_ Czgsum2d, zgamx2d_ Czgamx2d, zgamn2d_ Czgamn2d);

// ---- Beside the reference

/// Sends a rectangle to process {rdest, cdest} and receives one from {rsrc, csrc}: `Cdgesd2d` and `Cdgerv2d` in one call, during which
/// long matrices go both ways without a copy.
///
/// Some vendors' ScaLAPACK look for this name, which the reference does not have and nobody has described: the arguments are those of the
/// two calls in turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cdsendrecv(
    ctxt: Int,
    m: Int,
    n: Int,
    a: *const f64,
    lda: Int,
    rdest: Int,
    cdest: Int,
    mb: Int,
    nb: Int,
    b: *mut f64,
    ldb: Int,
    rsrc: Int,
    csrc: Int,
) {
    let (out, into) = (Shape::new(m, n, lda, size_of::<f64>(), None), Shape::new(mb, nb, ldb, size_of::<f64>(), None));
    send_receive(ctxt, (out, a.cast(), rdest, cdest), (into, b.cast(), rsrc, csrc), "Cdsendrecv");
}

// ---- Support

/// Stores where there is room.
unsafe fn put(at: *mut Int, value: Int) {
    if !at.is_null() {
        // SAFETY: not null, so the caller's integer.
        unsafe { *at = value };
    }
}

both! { [unsafe]
    /// Joins the job; this process's number and how many there are.
    Cblacs_pinfo blacs_pinfo_(mypnum: *mut Int, nprocs: *mut Int) {
        process().join();
        // SAFETY: the caller's integers.
        unsafe {
            put(mypnum, process().rank() as Int);
            put(nprocs, process().size() as Int);
        }
    }

    /// As `Cblacs_pinfo`: processes are started by a launcher.
    Cblacs_setup blacs_setup_(mypnum: *mut Int, nprocs: *mut Int) {
        // SAFETY: as above.
        unsafe { Cblacs_pinfo(mypnum, nprocs) };
    }

    /// What the BLACS or a context are set to.
    Cblacs_get blacs_get_(ctxt: Int, what: Int, val: *mut Int) {
        if let Some((value, second)) = context::get(ctxt, what) {
            // SAFETY: the caller's integer; two for the range of message ids.
            unsafe {
                put(val, value);
                if let Some(second) = second {
                    put(val.wrapping_add(1), second);
                }
            }
        }
    }

    /// Sets something.
    Cblacs_set blacs_set_(ctxt: Int, what: Int, val: *const Int) {
        // SAFETY: the caller's integer.
        context::set(ctxt, what, unsafe { *val });
    }

    /// Makes a grid of the first processes of a system context; -1 for those that are not in it.
    Cblacs_gridinit blacs_gridinit_(ctxt: *mut Int, order: *const c_char, nprow: Int, npcol: Int) {
        // SAFETY: the caller's integer and letter.
        unsafe { *ctxt = context::grid_init(*ctxt, letter(order), nprow, npcol) };
    }

    /// Makes a grid of these processes of a system context; -1 for those that are not in it.
    Cblacs_gridmap blacs_gridmap_(ctxt: *mut Int, usermap: *const Int, ldumap: Int, nprow: Int, npcol: Int) {
        // SAFETY: the caller's integer and map.
        unsafe { *ctxt = context::grid_map(*ctxt, usermap, ldumap, nprow, npcol) };
    }

    /// Size of the grid and this process's place; all -1 when this process is not in it.
    Cblacs_gridinfo blacs_gridinfo_(ctxt: Int, nprow: *mut Int, npcol: *mut Int, myrow: *mut Int, mycol: *mut Int) {
        let info = context::grid_info(ctxt);
        for (at, value) in [nprow, npcol, myrow, mycol].into_iter().zip(info) {
            // SAFETY: the caller's integers.
            unsafe { put(at, value) };
        }
    }

    /// The coordinates of a process of the grid; -1, -1 when there is none.
    Cblacs_pcoord blacs_pcoord_(ctxt: Int, pnum: Int, prow: *mut Int, pcol: *mut Int) {
        let context = find(ctxt, "BLACS_PCOORD");
        let there = (0..context.rows as Int * context.columns as Int).contains(&pnum);
        let (row, col) = if there { context.coordinates(pnum as usize) } else { (-1, -1) };
        // SAFETY: the caller's integers.
        unsafe {
            put(prow, row);
            put(pcol, col);
        }
    }

    /// Waits for all of the scope.
    Cblacs_barrier blacs_barrier_(ctxt: Int, scope: *const c_char) {
        // SAFETY: the caller's letter.
        context::barrier(ctxt, unsafe { letter(scope) });
    }

    /// There are no message ids: -1.
    Ckbsid kbsid_(_ctxt: Int, _scope: *const c_char) -> Int {
        -1
    }

    /// As above.
    Ckbrid kbrid_(_ctxt: Int, _scope: *const c_char, _rsrc: Int, _csrc: Int) -> Int {
        -1
    }
}

both! { []
    /// The number of a process of the grid; -1 when there is none.
    Cblacs_pnum blacs_pnum_(ctxt: Int, prow: Int, pcol: Int) -> Int {
        find(ctxt, "BLACS_PNUM").number(prow, pcol).map_or(-1, |number| number as Int)
    }

    /// Buffers are freed when they are no longer needed: nothing to do.
    Cblacs_freebuff blacs_freebuff_(_ctxt: Int, _wait: Int) {}

    /// Frees a grid.
    Cblacs_gridexit blacs_gridexit_(ctxt: Int) {
        process().drop(ctxt);
    }

    /// Ends all processes of the job.
    Cblacs_abort blacs_abort_(ctxt: Int, error: Int) {
        report::abort(ctxt, error)
    }

    /// Frees all grids; and leaves the job, unless the argument is not 0.
    Cblacs_exit blacs_exit_(go_on: Int) {
        process().exit(go_on != 0);
    }

    /// Processor time is not measured: -1.
    Cdcputime00 dcputime00_() -> c_double {
        -1.0
    }

    /// Seconds since some moment in the past.
    Cdwalltime00 dwalltime00_() -> c_double {
        // SAFETY: may be called at any time.
        unsafe { (fmpl().wtime)() }
    }

    /// There are no message ids: -1.
    Cksendid ksendid_(_ctxt: Int, _rdest: Int, _cdest: Int) -> Int {
        -1
    }

    /// As above.
    Ckrecvid krecvid_(_ctxt: Int, _rsrc: Int, _csrc: Int) -> Int {
        -1
    }

    /// The system context of all processes, whatever the argument is: MPI's communicators mean nothing here.
    Csys2blacs_handle sys2blacs_handle_(_system: Int) -> Int {
        context::get(-1, 0).map_or(-1, |(world, _)| world)
    }

    /// The same handle: a system context is its own handle.
    Cblacs2sys_handle blacs2sys_handle_(system: Int) -> Int {
        system
    }

    /// System contexts live as long as their grids: nothing to do.
    Cfree_blacs_system_handle free_blacs_system_handle_(_system: Int) {}
}
