//! The names of the BLACS: Fortran's (lower case, an underscore behind, all arguments by reference; the lengths of CHARACTER arguments come
//! last and are not looked at) and C's (a capital C in front). Documentation: LAPACK Working Note 94 and the *BLACS quick
//! reference guide*; `docs/scalapack.md` says what is particular here.

use core::ffi::c_double;
use core::marker::PhantomData;

use fmpl::base::bytes::Room;

use crate::Int;
use crate::broadcast::broadcast;
use crate::combine::{C, Call, Places, Z, combine};
use crate::context::{self, Context, number_of};
use crate::library::fmpl;
use crate::matrix::{Matrix, Shape, Stored, Trapezoid};
use crate::order::{Element, Operation};
use crate::process::process;
use crate::report::{self, fatal};

// ---- What C and Fortran pass

/// An address as an argument: of a variable, of the first letter of a text, or of the first element of a matrix. There is as much as the
/// other arguments of the call say, readable, and writable where the call writes, for the length of the call; or it is null. Only C and
/// Fortran make one, and by calling with it they promise so.
#[repr(transparent)]
pub struct At<T>(*mut T, PhantomData<T>);

impl<T> Clone for At<T> {
    fn clone(&self) -> At<T> {
        *self
    }
}
impl<T> Copy for At<T> {}

/// The first letter of an argument matters.
pub type Text = At<u8>;

impl<T: Copy> At<T> {
    /// The variable, which must be there.
    #[inline(always)]
    fn value(self) -> T {
        // SAFETY: a variable, as its type says; a text has at least one letter or its end.
        unsafe { *self.0 }
    }

    /// Changes the variable, if there is one.
    #[inline(always)]
    fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so the caller's variable.
            unsafe { *self.0 = value };
        }
    }

    /// The variable behind this one.
    fn next(self) -> At<T> {
        if self.0.is_null() { self } else { At(self.0.wrapping_add(1), PhantomData) }
    }
}

impl<T: Stored> At<T> {
    /// A matrix of this shape, or its trapezoid.
    #[inline(always)]
    fn matrix<'a>(self, shape: Shape, routine: &str) -> Matrix<'a> {
        let (null, span) = (self.0.is_null(), shape.span());
        if null && span > 0 || span > isize::MAX as usize {
            no_such_matrix(null, shape.bytes(), routine);
        }
        // SAFETY: the caller's matrix, or nothing.
        Matrix::new(shape, unsafe { Room::known(self.0.cast(), span) })
    }

    /// A rectangle: M, N, A, LDA.
    #[inline(always)]
    fn rectangle<'a>(self, m: Int, n: Int, lda: Int, routine: &str) -> Matrix<'a> {
        self.matrix(Shape::new(m, n, lda, size_of::<T>(), None), routine)
    }

    /// A trapezoid: UPLO, DIAG, M, N, A, LDA.
    #[inline(always)]
    fn trapezoid<'a>(self, (uplo, diag): (Text, Text), m: Int, n: Int, lda: Int, routine: &str) -> Matrix<'a> {
        let trapezoid = Trapezoid::of(uplo.value(), diag.value());
        self.matrix(Shape::new(m, n, lda, size_of::<T>(), Some(trapezoid)), routine)
    }
}

#[cold]
fn no_such_matrix(null: bool, bytes: usize, routine: &str) -> ! {
    let what = if null { "a null pointer" } else { "longer than memory can be" };
    fatal(-1, routine, format_args!("the matrix of {bytes} bytes is {what}"))
}

/// What an argument of C is in Fortran: integers are passed by reference, and the rest is an address already.
trait Argument {
    type Fortran;

    /// The argument of C.
    fn of(fortran: Self::Fortran) -> Self;
}

impl Argument for Int {
    type Fortran = At<Int>;

    #[inline(always)]
    fn of(fortran: At<Int>) -> Int {
        fortran.value()
    }
}

impl<T> Argument for At<T> {
    type Fortran = At<T>;

    #[inline(always)]
    fn of(fortran: At<T>) -> At<T> {
        fortran
    }
}

// ---- What each kind of routine does, for all types and both languages

#[inline(always)]
fn find(handle: Int, routine: &str) -> &'static Context {
    process().context(handle, routine)
}

#[inline(always)]
fn send(handle: Int, matrix: Matrix<'_>, row: Int, col: Int, routine: &'static str) {
    let context = find(handle, routine);
    let to = number_of(context, row, col, routine);
    context.pairs(routine).send(&matrix.area(), to);
}

#[inline(always)]
fn receive(handle: Int, matrix: Matrix<'_>, row: Int, col: Int, routine: &'static str) {
    let context = find(handle, routine);
    let from = number_of(context, row, col, routine);
    context.pairs(routine).receive(&matrix.area(), from);
}

/// Sends one rectangle and receives another: what, and the process's row and column.
fn send_receive(
    handle: Int,
    (out, rdest, cdest): (Matrix<'_>, Int, Int),
    (into, rsrc, csrc): (Matrix<'_>, Int, Int),
    routine: &'static str,
) {
    let context = find(handle, routine);
    let (dest, source) = (number_of(context, rdest, cdest, routine), number_of(context, rsrc, csrc, routine));
    let pairs = context.pairs(routine);
    match (out.as_run(), into.as_run()) {
        (Some(out), Some(into)) => pairs.exchange((out, dest), (into, source)),
        _ => {
            pairs.send(&out.area(), dest);
            pairs.receive(&into.area(), source);
        }
    }
}

/// SCOPE and TOP.
type Letters = (Text, Text);

#[inline(always)]
fn share(handle: Int, (scope, top): Letters, matrix: Matrix<'_>, from: Option<(Int, Int)>, routine: &'static str) {
    broadcast(find(handle, routine), scope.value(), top.value(), &matrix.area(), from, routine);
}

/// A sum, or an extreme and where it is (RA, CA, LDIA; without them LDIA is -1); the result goes to {row, col}.
fn combined<T: Element>(
    handle: Int,
    (scope, top): Letters,
    matrix: Matrix<'_>,
    at: Option<(At<Int>, At<Int>, Int)>,
    (row, col): (Int, Int),
    (operation, routine): (Operation, &'static str),
) {
    let places = at.filter(|(.., lda)| *lda != -1).map(|(rows, columns, lda)| {
        let [rows, columns] = [rows, columns].map(|at| at.matrix(matrix.shape().of_places(lda), routine));
        Places { rows, columns }
    });
    let call = Call { scope: scope.value(), topology: top.value(), operation, row, col, routine };
    combine::<T>(find(handle, routine), &call, matrix, places);
}

// ---- The names

/// Functions of C, and behind each the name of the same function for Fortran.
macro_rules! both {
    ($(
        $(#[$doc:meta])*
        $c:ident $fortran:ident ($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $c($($argument: $type),*) $(-> $result)? $body

        #[unsafe(no_mangle)]
        extern "C" fn $fortran($($argument: <$type as Argument>::Fortran),*) $(-> $result)? {
            $c($(Argument::of($argument)),*)
        }
    )* };
}

/// The routines of one type: Fortran's name, C's name.
macro_rules! routines {
    ($t:ty:
        $gesd:ident $cgesd:ident, $gerv:ident $cgerv:ident, $trsd:ident $ctrsd:ident, $trrv:ident $ctrrv:ident,
        $gebs:ident $cgebs:ident, $gebr:ident $cgebr:ident, $trbs:ident $ctrbs:ident, $trbr:ident $ctrbr:ident,
        $gsum:ident $cgsum:ident, $gamx:ident $cgamx:ident, $gamn:ident $cgamn:ident
    ) => { both! {
        /// Sends a rectangle to process {rdest, cdest}; does not wait for it.
        $cgesd $gesd(ctxt: Int, m: Int, n: Int, a: At<$t>, lda: Int, rdest: Int, cdest: Int) {
            send(ctxt, a.rectangle(m, n, lda, stringify!($cgesd)), rdest, cdest, stringify!($cgesd));
        }
        /// Receives a rectangle from process {rsrc, csrc}.
        $cgerv $gerv(ctxt: Int, m: Int, n: Int, a: At<$t>, lda: Int, rsrc: Int, csrc: Int) {
            receive(ctxt, a.rectangle(m, n, lda, stringify!($cgerv)), rsrc, csrc, stringify!($cgerv));
        }
        /// Sends a trapezoid.
        $ctrsd $trsd(
            ctxt: Int, uplo: Text, diag: Text, m: Int, n: Int, a: At<$t>, lda: Int, rdest: Int, cdest: Int
        ) {
            let part = a.trapezoid((uplo, diag), m, n, lda, stringify!($ctrsd));
            send(ctxt, part, rdest, cdest, stringify!($ctrsd));
        }
        /// Receives a trapezoid.
        $ctrrv $trrv(
            ctxt: Int, uplo: Text, diag: Text, m: Int, n: Int, a: At<$t>, lda: Int, rsrc: Int, csrc: Int
        ) {
            let part = a.trapezoid((uplo, diag), m, n, lda, stringify!($ctrrv));
            receive(ctxt, part, rsrc, csrc, stringify!($ctrrv));
        }
        /// Broadcasts a rectangle to the scope.
        $cgebs $gebs(ctxt: Int, scope: Text, top: Text, m: Int, n: Int, a: At<$t>, lda: Int) {
            share(ctxt, (scope, top), a.rectangle(m, n, lda, stringify!($cgebs)), None, stringify!($cgebs));
        }
        /// Receives a rectangle that process {rsrc, csrc} broadcasts.
        $cgebr $gebr(
            ctxt: Int, scope: Text, top: Text, m: Int, n: Int, a: At<$t>, lda: Int, rsrc: Int, csrc: Int
        ) {
            let part = a.rectangle(m, n, lda, stringify!($cgebr));
            share(ctxt, (scope, top), part, Some((rsrc, csrc)), stringify!($cgebr));
        }
        /// Broadcasts a trapezoid.
        $ctrbs $trbs(
            ctxt: Int, scope: Text, top: Text, uplo: Text, diag: Text, m: Int, n: Int, a: At<$t>, lda: Int
        ) {
            let part = a.trapezoid((uplo, diag), m, n, lda, stringify!($ctrbs));
            share(ctxt, (scope, top), part, None, stringify!($ctrbs));
        }
        /// Receives a trapezoid that process {rsrc, csrc} broadcasts.
        $ctrbr $trbr(
            ctxt: Int, scope: Text, top: Text, uplo: Text, diag: Text, m: Int, n: Int, a: At<$t>, lda: Int, rsrc: Int, csrc: Int
        ) {
            let part = a.trapezoid((uplo, diag), m, n, lda, stringify!($ctrbr));
            share(ctxt, (scope, top), part, Some((rsrc, csrc)), stringify!($ctrbr));
        }
        /// The sum over the scope, element by element, to {rdest, cdest}; -1: to all.
        $cgsum $gsum(
            ctxt: Int, scope: Text, top: Text, m: Int, n: Int, a: At<$t>, lda: Int, rdest: Int, cdest: Int
        ) {
            let call = (Operation::Sum, stringify!($cgsum));
            combined::<$t>(ctxt, (scope, top), a.rectangle(m, n, lda, call.1), None, (rdest, cdest), call);
        }
        /// The elements of largest absolute value over the scope; where they come from goes to RA and CA, unless LDIA is -1.
        $cgamx $gamx(
            ctxt: Int, scope: Text, top: Text, m: Int, n: Int, a: At<$t>, lda: Int, ra: At<Int>, ca: At<Int>, ldia: Int,
            rdest: Int, cdest: Int
        ) {
            let (call, at) = ((Operation::Largest, stringify!($cgamx)), Some((ra, ca, ldia)));
            combined::<$t>(ctxt, (scope, top), a.rectangle(m, n, lda, call.1), at, (rdest, cdest), call);
        }
        /// The elements of smallest absolute value, likewise.
        $cgamn $gamn(
            ctxt: Int, scope: Text, top: Text, m: Int, n: Int, a: At<$t>, lda: Int, ra: At<Int>, ca: At<Int>, ldia: Int,
            rdest: Int, cdest: Int
        ) {
            let (call, at) = ((Operation::Smallest, stringify!($cgamn)), Some((ra, ca, ldia)));
            combined::<$t>(ctxt, (scope, top), a.rectangle(m, n, lda, call.1), at, (rdest, cdest), call);
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
pub extern "C" fn Cdsendrecv(
    ctxt: Int,
    m: Int,
    n: Int,
    a: At<f64>,
    lda: Int,
    rdest: Int,
    cdest: Int,
    mb: Int,
    nb: Int,
    b: At<f64>,
    ldb: Int,
    rsrc: Int,
    csrc: Int,
) {
    const NAME: &str = "Cdsendrecv";
    let (out, into) = (a.rectangle(m, n, lda, NAME), b.rectangle(mb, nb, ldb, NAME));
    send_receive(ctxt, (out, rdest, cdest), (into, rsrc, csrc), NAME);
}

// ---- Support

both! {
    /// Joins the job; this process's number and how many there are.
    Cblacs_pinfo blacs_pinfo_(mypnum: At<Int>, nprocs: At<Int>) {
        process().join();
        mypnum.put(process().rank() as Int);
        nprocs.put(process().size() as Int);
    }

    /// As `Cblacs_pinfo`: processes are started by a launcher.
    Cblacs_setup blacs_setup_(mypnum: At<Int>, nprocs: At<Int>) {
        Cblacs_pinfo(mypnum, nprocs);
    }

    /// What the BLACS or a context are set to.
    Cblacs_get blacs_get_(ctxt: Int, what: Int, val: At<Int>) {
        if let Some((value, second)) = context::get(ctxt, what) {
            val.put(value);
            // Two for the range of message ids.
            if let Some(second) = second {
                val.next().put(second);
            }
        }
    }

    /// Sets something.
    Cblacs_set blacs_set_(ctxt: Int, what: Int, val: At<Int>) {
        context::set(ctxt, what, val.value());
    }

    /// Makes a grid of the first processes of a system context; -1 for those that are not in it.
    Cblacs_gridinit blacs_gridinit_(ctxt: At<Int>, order: Text, nprow: Int, npcol: Int) {
        ctxt.put(context::grid_init(ctxt.value(), order.value(), nprow, npcol));
    }

    /// Makes a grid of these processes of a system context; -1 for those that are not in it.
    Cblacs_gridmap blacs_gridmap_(ctxt: At<Int>, usermap: At<Int>, ldumap: Int, nprow: Int, npcol: Int) {
        let map = || usermap.rectangle(nprow, npcol, ldumap, "BLACS_GRIDMAP");
        ctxt.put(context::grid_map(ctxt.value(), nprow, npcol, map));
    }

    /// Size of the grid and this process's place; all -1 when this process is not in it.
    Cblacs_gridinfo blacs_gridinfo_(ctxt: Int, nprow: At<Int>, npcol: At<Int>, myrow: At<Int>, mycol: At<Int>) {
        let info = context::grid_info(ctxt);
        [nprow, npcol, myrow, mycol].into_iter().zip(info).for_each(|(at, value)| at.put(value));
    }

    /// The coordinates of a process of the grid; -1, -1 when there is none.
    Cblacs_pcoord blacs_pcoord_(ctxt: Int, pnum: Int, prow: At<Int>, pcol: At<Int>) {
        let context = find(ctxt, "BLACS_PCOORD");
        let there = (0..context.rows as Int * context.columns as Int).contains(&pnum);
        let (row, col) = if there { context.coordinates(pnum as usize) } else { (-1, -1) };
        prow.put(row);
        pcol.put(col);
    }

    /// Waits for all of the scope.
    Cblacs_barrier blacs_barrier_(ctxt: Int, scope: Text) {
        context::barrier(ctxt, scope.value());
    }

    /// There are no message ids: -1.
    Ckbsid kbsid_(_ctxt: Int, _scope: Text) -> Int {
        -1
    }

    /// As above.
    Ckbrid kbrid_(_ctxt: Int, _scope: Text, _rsrc: Int, _csrc: Int) -> Int {
        -1
    }

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
        fmpl().wtime()
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
