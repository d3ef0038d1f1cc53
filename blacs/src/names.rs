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

/// M, N, A, LDA.
struct Matrix<T>(Int, Int, *mut T, Int);

/// `call` has a scope, a topology and what the routine adds to them.
unsafe fn sum<T: Element>(handle: Int, a: Matrix<T>, call: &Call) {
    let shape = Shape::new(a.0, a.1, a.3, size_of::<T>(), None);
    // SAFETY: the caller's matrix.
    unsafe { combine::<T>(find(handle, call.routine), call, &shape, a.2.cast(), None) };
}

/// RA, CA, LDIA; without them LDIA is -1.
struct At(*mut Int, *mut Int, Int);

unsafe fn extreme<T: Element>(handle: Int, a: Matrix<T>, at: At, call: &Call) {
    let shape = Shape::new(a.0, a.1, a.3, size_of::<T>(), None);
    let places = (at.2 != -1).then(|| Places { rows: at.0, columns: at.1, m: a.0, lda: at.2.max(a.0) });
    // SAFETY: the caller's matrices.
    unsafe { combine::<T>(find(handle, call.routine), call, &shape, a.2.cast(), places) };
}

/// The routines of one type: Fortran's name, C's name.
macro_rules! routines {
    ($t:ty:
        $gesd:ident $cgesd:ident, $gerv:ident $cgerv:ident, $trsd:ident $ctrsd:ident, $trrv:ident $ctrrv:ident,
        $gebs:ident $cgebs:ident, $gebr:ident $cgebr:ident, $trbs:ident $ctrbs:ident, $trbr:ident $ctrbr:ident,
        $gsum:ident $cgsum:ident, $gamx:ident $cgamx:ident, $gamn:ident $cgamn:ident
    ) => {
        /// Sends a rectangle to process {rdest, cdest}; does not wait for it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cgesd(ctxt: Int, m: Int, n: Int, a: *const $t, lda: Int, rdest: Int, cdest: Int) {
            send(ctxt, Shape::new(m, n, lda, size_of::<$t>(), None), a.cast(), rdest, cdest, stringify!($cgesd));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $gesd(
            ctxt: &Int, m: &Int, n: &Int, a: *const $t, lda: &Int, rdest: &Int, cdest: &Int,
        ) {
            send(*ctxt, Shape::new(*m, *n, *lda, size_of::<$t>(), None), a.cast(), *rdest, *cdest, stringify!($cgesd));
        }
        /// Receives a rectangle from process {rsrc, csrc}.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cgerv(ctxt: Int, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int) {
            receive(ctxt, Shape::new(m, n, lda, size_of::<$t>(), None), a.cast(), rsrc, csrc, stringify!($cgerv));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $gerv(
            ctxt: &Int, m: &Int, n: &Int, a: *mut $t, lda: &Int, rsrc: &Int, csrc: &Int,
        ) {
            receive(*ctxt, Shape::new(*m, *n, *lda, size_of::<$t>(), None), a.cast(), *rsrc, *csrc, stringify!($cgerv));
        }
        /// Sends a trapezoid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ctrsd(
            ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *const $t, lda: Int, rdest: Int, cdest: Int,
        ) {
            // SAFETY: the caller's letters.
            let part = unsafe { Trapezoid::of(letter(uplo), letter(diag)) };
            send(ctxt, Shape::new(m, n, lda, size_of::<$t>(), Some(part)), a.cast(), rdest, cdest, stringify!($ctrsd));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $trsd(
            ctxt: &Int, uplo: *const c_char, diag: *const c_char, m: &Int, n: &Int, a: *const $t, lda: &Int, rdest: &Int,
            cdest: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $ctrsd(*ctxt, uplo, diag, *m, *n, a, *lda, *rdest, *cdest) };
        }
        /// Receives a trapezoid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ctrrv(
            ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int,
        ) {
            // SAFETY: the caller's letters.
            let part = unsafe { Trapezoid::of(letter(uplo), letter(diag)) };
            receive(ctxt, Shape::new(m, n, lda, size_of::<$t>(), Some(part)), a.cast(), rsrc, csrc, stringify!($ctrrv));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $trrv(
            ctxt: &Int, uplo: *const c_char, diag: *const c_char, m: &Int, n: &Int, a: *mut $t, lda: &Int, rsrc: &Int,
            csrc: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $ctrrv(*ctxt, uplo, diag, *m, *n, a, *lda, *rsrc, *csrc) };
        }
        /// Broadcasts a rectangle to the scope.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cgebs(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *const $t, lda: Int,
        ) {
            let (context, shape) = (find(ctxt, stringify!($cgebs)), Shape::new(m, n, lda, size_of::<$t>(), None));
            // SAFETY: the caller's letters.
            let (scope, top) = unsafe { (letter(scope), letter(top)) };
            broadcast(context, scope, top, &shape.area(a.cast_mut().cast()), None, stringify!($cgebs));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $gebs(
            ctxt: &Int, scope: *const c_char, top: *const c_char, m: &Int, n: &Int, a: *const $t, lda: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $cgebs(*ctxt, scope, top, *m, *n, a, *lda) };
        }
        /// Receives a rectangle that process {rsrc, csrc} broadcasts.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cgebr(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rsrc: Int, csrc: Int,
        ) {
            let (context, shape) = (find(ctxt, stringify!($cgebr)), Shape::new(m, n, lda, size_of::<$t>(), None));
            // SAFETY: the caller's letters.
            let (scope, top) = unsafe { (letter(scope), letter(top)) };
            broadcast(context, scope, top, &shape.area(a.cast()), Some((rsrc, csrc)), stringify!($cgebr));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $gebr(
            ctxt: &Int, scope: *const c_char, top: *const c_char, m: &Int, n: &Int, a: *mut $t, lda: &Int, rsrc: &Int,
            csrc: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $cgebr(*ctxt, scope, top, *m, *n, a, *lda, *rsrc, *csrc) };
        }
        /// Broadcasts a trapezoid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ctrbs(
            ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
            a: *const $t, lda: Int,
        ) {
            let (scope, top, part) =
                // SAFETY: the caller's letters.
                unsafe { (letter(scope), letter(top), Trapezoid::of(letter(uplo), letter(diag))) };
            let (context, shape) = (find(ctxt, stringify!($ctrbs)), Shape::new(m, n, lda, size_of::<$t>(), Some(part)));
            broadcast(context, scope, top, &shape.area(a.cast_mut().cast()), None, stringify!($ctrbs));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $trbs(
            ctxt: &Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: &Int, n: &Int,
            a: *const $t, lda: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $ctrbs(*ctxt, scope, top, uplo, diag, *m, *n, a, *lda) };
        }
        /// Receives a trapezoid that process {rsrc, csrc} broadcasts.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ctrbr(
            ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
            a: *mut $t, lda: Int, rsrc: Int, csrc: Int,
        ) {
            let (scope, top, part) =
                // SAFETY: the caller's letters.
                unsafe { (letter(scope), letter(top), Trapezoid::of(letter(uplo), letter(diag))) };
            let (context, shape) = (find(ctxt, stringify!($ctrbr)), Shape::new(m, n, lda, size_of::<$t>(), Some(part)));
            broadcast(context, scope, top, &shape.area(a.cast()), Some((rsrc, csrc)), stringify!($ctrbr));
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $trbr(
            ctxt: &Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: &Int, n: &Int,
            a: *mut $t, lda: &Int, rsrc: &Int, csrc: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $ctrbr(*ctxt, scope, top, uplo, diag, *m, *n, a, *lda, *rsrc, *csrc) };
        }
        /// The sum over the scope, element by element, to {rdest, cdest}; -1: to all.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cgsum(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, rdest: Int, cdest: Int,
        ) {
            // SAFETY: the caller's letters and matrix.
            unsafe {
                let (scope, topology) = (letter(scope), letter(top));
                let routine = stringify!($cgsum);
                let call = Call { scope, topology, operation: Operation::Sum, row: rdest, col: cdest, routine };
                sum(ctxt, Matrix(m, n, a, lda), &call);
            }
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $gsum(
            ctxt: &Int, scope: *const c_char, top: *const c_char, m: &Int, n: &Int, a: *mut $t, lda: &Int, rdest: &Int,
            cdest: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $cgsum(*ctxt, scope, top, *m, *n, a, *lda, *rdest, *cdest) };
        }
        routines!(extreme $t: $gamx $cgamx Largest);
        routines!(extreme $t: $gamn $cgamn Smallest);
    };
    (extreme $t:ty: $fortran:ident $c:ident $operation:ident) => {
        /// The elements of extreme absolute value over the scope; where they come from goes to RA and CA, unless LDIA is -1.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c(
            ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int, ra: *mut Int, ca: *mut Int,
            ldia: Int, rdest: Int, cdest: Int,
        ) {
            // SAFETY: the caller's letters and matrices.
            unsafe {
                let (scope, topology) = (letter(scope), letter(top));
                let routine = stringify!($c);
                let call = Call { scope, topology, operation: Operation::$operation, row: rdest, col: cdest, routine };
                extreme(ctxt, Matrix(m, n, a, lda), At(ra, ca, ldia), &call);
            }
        }
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran(
            ctxt: &Int, scope: *const c_char, top: *const c_char, m: &Int, n: &Int, a: *mut $t, lda: &Int, ra: *mut Int,
            ca: *mut Int, ldia: &Int, rdest: &Int, cdest: &Int,
        ) {
            // SAFETY: as above.
            unsafe { $c(*ctxt, scope, top, *m, *n, a, *lda, ra, ca, *ldia, *rdest, *cdest) };
        }
    };
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

/// Joins the job; this process's number and how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_pinfo(mypnum: *mut Int, nprocs: *mut Int) {
    process().join();
    // SAFETY: the caller's integers.
    unsafe {
        put(mypnum, process().rank() as Int);
        put(nprocs, process().size() as Int);
    }
}

/// As `Cblacs_pinfo`: processes are started by a launcher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_setup(mypnum: *mut Int, nprocs: *mut Int) {
    // SAFETY: as above.
    unsafe { Cblacs_pinfo(mypnum, nprocs) };
}

/// What the BLACS or a context are set to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_get(ctxt: Int, what: Int, val: *mut Int) {
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_set(ctxt: Int, what: Int, val: *const Int) {
    // SAFETY: the caller's integer.
    context::set(ctxt, what, unsafe { *val });
}

/// Makes a grid of the first processes of a system context; -1 for those that are not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_gridinit(ctxt: *mut Int, order: *const c_char, nprow: Int, npcol: Int) {
    // SAFETY: the caller's integer and letter.
    unsafe { *ctxt = context::grid_init(*ctxt, letter(order), nprow, npcol) };
}

/// Makes a grid of these processes of a system context; -1 for those that are not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_gridmap(ctxt: *mut Int, usermap: *const Int, ldumap: Int, nprow: Int, npcol: Int) {
    // SAFETY: the caller's integer and map.
    unsafe { *ctxt = context::grid_map(*ctxt, usermap, ldumap, nprow, npcol) };
}

/// Size of the grid and this process's place; all -1 when this process is not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_gridinfo(
    ctxt: Int,
    nprow: *mut Int,
    npcol: *mut Int,
    myrow: *mut Int,
    mycol: *mut Int,
) {
    let info = context::grid_info(ctxt);
    for (at, value) in [nprow, npcol, myrow, mycol].into_iter().zip(info) {
        // SAFETY: the caller's integers.
        unsafe { put(at, value) };
    }
}

/// The number of a process of the grid; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs_pnum(ctxt: Int, prow: Int, pcol: Int) -> Int {
    find(ctxt, "BLACS_PNUM").number(prow, pcol).map_or(-1, |number| number as Int)
}

/// The coordinates of a process of the grid; -1, -1 when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_pcoord(ctxt: Int, pnum: Int, prow: *mut Int, pcol: *mut Int) {
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cblacs_barrier(ctxt: Int, scope: *const c_char) {
    // SAFETY: the caller's letter.
    context::barrier(ctxt, unsafe { letter(scope) });
}

/// Buffers are freed when they are no longer needed: nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs_freebuff(_ctxt: Int, _wait: Int) {}

/// Frees a grid.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs_gridexit(ctxt: Int) {
    process().drop(ctxt);
}

/// Ends all processes of the job.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs_abort(ctxt: Int, error: Int) {
    report::abort(ctxt, error)
}

/// Frees all grids; and leaves the job, unless the argument is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs_exit(go_on: Int) {
    process().exit(go_on != 0);
}

/// Processor time is not measured: -1.
#[unsafe(no_mangle)]
pub extern "C" fn Cdcputime00() -> c_double {
    -1.0
}

/// Seconds since some moment in the past.
#[unsafe(no_mangle)]
pub extern "C" fn Cdwalltime00() -> c_double {
    // SAFETY: may be called at any time.
    unsafe { (fmpl().wtime)() }
}

/// There are no message ids: -1.
#[unsafe(no_mangle)]
pub extern "C" fn Cksendid(_ctxt: Int, _rdest: Int, _cdest: Int) -> Int {
    -1
}
/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn Ckrecvid(_ctxt: Int, _rsrc: Int, _csrc: Int) -> Int {
    -1
}
/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn Ckbsid(_ctxt: Int, _scope: *const c_char) -> Int {
    -1
}
/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn Ckbrid(_ctxt: Int, _scope: *const c_char, _rsrc: Int, _csrc: Int) -> Int {
    -1
}

/// The system context of all processes, whatever the argument is: MPI's communicators mean nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn Csys2blacs_handle(_system: Int) -> Int {
    context::get(-1, 0).map_or(-1, |(world, _)| world)
}
/// The same handle: a system context is its own handle.
#[unsafe(no_mangle)]
pub extern "C" fn Cblacs2sys_handle(system: Int) -> Int {
    system
}
/// System contexts live as long as their grids: nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn Cfree_blacs_system_handle(_system: Int) {}

// ---- The same for Fortran

/// See `Cblacs_pinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_pinfo_(mypnum: *mut Int, nprocs: *mut Int) {
    // SAFETY: as there.
    unsafe { Cblacs_pinfo(mypnum, nprocs) };
}
/// See `Cblacs_setup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_setup_(mypnum: *mut Int, nprocs: *mut Int) {
    // SAFETY: as there.
    unsafe { Cblacs_pinfo(mypnum, nprocs) };
}
/// See `Cblacs_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_get_(ctxt: &Int, what: &Int, val: *mut Int) {
    // SAFETY: as there.
    unsafe { Cblacs_get(*ctxt, *what, val) };
}
/// See `Cblacs_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_set_(ctxt: &Int, what: &Int, val: *const Int) {
    // SAFETY: as there.
    unsafe { Cblacs_set(*ctxt, *what, val) };
}
/// See `Cblacs_gridinit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_gridinit_(ctxt: *mut Int, order: *const c_char, nprow: &Int, npcol: &Int) {
    // SAFETY: as there.
    unsafe { Cblacs_gridinit(ctxt, order, *nprow, *npcol) };
}
/// See `Cblacs_gridmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_gridmap_(ctxt: *mut Int, usermap: *const Int, ldumap: &Int, nprow: &Int, npcol: &Int) {
    // SAFETY: as there.
    unsafe { Cblacs_gridmap(ctxt, usermap, *ldumap, *nprow, *npcol) };
}
/// See `Cblacs_gridinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_gridinfo_(
    ctxt: &Int,
    nprow: *mut Int,
    npcol: *mut Int,
    myrow: *mut Int,
    mycol: *mut Int,
) {
    // SAFETY: as there.
    unsafe { Cblacs_gridinfo(*ctxt, nprow, npcol, myrow, mycol) };
}
/// See `Cblacs_pnum`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs_pnum_(ctxt: &Int, prow: &Int, pcol: &Int) -> Int {
    Cblacs_pnum(*ctxt, *prow, *pcol)
}
/// See `Cblacs_pcoord`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_pcoord_(ctxt: &Int, pnum: &Int, prow: *mut Int, pcol: *mut Int) {
    // SAFETY: as there.
    unsafe { Cblacs_pcoord(*ctxt, *pnum, prow, pcol) };
}
/// See `Cblacs_barrier`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blacs_barrier_(ctxt: &Int, scope: *const c_char) {
    // SAFETY: as there.
    unsafe { Cblacs_barrier(*ctxt, scope) };
}
/// See `Cblacs_freebuff`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs_freebuff_(_ctxt: &Int, _wait: &Int) {}
/// See `Cblacs_gridexit`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs_gridexit_(ctxt: &Int) {
    process().drop(*ctxt);
}
/// See `Cblacs_abort`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs_abort_(ctxt: &Int, error: &Int) {
    report::abort(*ctxt, *error)
}
/// See `Cblacs_exit`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs_exit_(go_on: &Int) {
    process().exit(*go_on != 0);
}
/// See `Cdcputime00`.
#[unsafe(no_mangle)]
pub extern "C" fn dcputime00_() -> c_double {
    -1.0
}
/// See `Cdwalltime00`.
#[unsafe(no_mangle)]
pub extern "C" fn dwalltime00_() -> c_double {
    Cdwalltime00()
}
/// See `Cksendid`.
#[unsafe(no_mangle)]
pub extern "C" fn ksendid_(_ctxt: &Int, _rdest: &Int, _cdest: &Int) -> Int {
    -1
}
/// See `Cksendid`.
#[unsafe(no_mangle)]
pub extern "C" fn krecvid_(_ctxt: &Int, _rsrc: &Int, _csrc: &Int) -> Int {
    -1
}
/// See `Cksendid`.
#[unsafe(no_mangle)]
pub extern "C" fn kbsid_(_ctxt: &Int, _scope: *const c_char) -> Int {
    -1
}
/// See `Cksendid`.
#[unsafe(no_mangle)]
pub extern "C" fn kbrid_(_ctxt: &Int, _scope: *const c_char, _rsrc: &Int, _csrc: &Int) -> Int {
    -1
}
/// See `Csys2blacs_handle`.
#[unsafe(no_mangle)]
pub extern "C" fn sys2blacs_handle_(system: &Int) -> Int {
    Csys2blacs_handle(*system)
}
/// See `Cblacs2sys_handle`.
#[unsafe(no_mangle)]
pub extern "C" fn blacs2sys_handle_(system: &Int) -> Int {
    *system
}
/// See `Cfree_blacs_system_handle`.
#[unsafe(no_mangle)]
pub extern "C" fn free_blacs_system_handle_(_system: &Int) {}
