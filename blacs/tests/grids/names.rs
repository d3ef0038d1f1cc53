//! The C names that the tests call, as a header would declare them.

use std::ffi::c_char;

// The library is linked for its names only.
use fmpl_blacs as _;

type Int = i32;

macro_rules! names {
    (combines { $($t:ty: $sum:ident $amx:ident $amn:ident;)* } $($rest:tt)*) => {
        unsafe extern "C" {
            $(
                pub fn $sum(
                    ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int,
                    rdest: Int, cdest: Int
                );
                pub fn $amx(
                    ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int,
                    ra: *mut Int, ca: *mut Int, ldia: Int, rdest: Int, cdest: Int
                );
                pub fn $amn(
                    ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut $t, lda: Int,
                    ra: *mut Int, ca: *mut Int, ldia: Int, rdest: Int, cdest: Int
                );
            )*
            $($rest)*
        }
    };
}

names! {
    combines {
        i32: Cigsum2d Cigamx2d Cigamn2d;
        f32: Csgsum2d Csgamx2d Csgamn2d;
        f64: Cdgsum2d Cdgamx2d Cdgamn2d;
        [f32; 2]: Ccgsum2d Ccgamx2d Ccgamn2d;
        [f64; 2]: Czgsum2d Czgamx2d Czgamn2d;
    }
    pub fn Cdgesd2d(ctxt: Int, m: Int, n: Int, a: *const f64, lda: Int, rdest: Int, cdest: Int);
    pub fn Cdgerv2d(ctxt: Int, m: Int, n: Int, a: *mut f64, lda: Int, rsrc: Int, csrc: Int);
    pub fn Cdtrsd2d(
        ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *const f64, lda: Int, rdest: Int,
        cdest: Int
    );
    pub fn Cdtrrv2d(
        ctxt: Int, uplo: *const c_char, diag: *const c_char, m: Int, n: Int, a: *mut f64, lda: Int, rsrc: Int, csrc: Int
    );
    pub fn Cdgebs2d(ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *const f64, lda: Int);
    pub fn Cdgebr2d(
        ctxt: Int, scope: *const c_char, top: *const c_char, m: Int, n: Int, a: *mut f64, lda: Int, rsrc: Int, csrc: Int
    );
    pub fn Cdtrbs2d(
        ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
        a: *const f64, lda: Int
    );
    pub fn Cdtrbr2d(
        ctxt: Int, scope: *const c_char, top: *const c_char, uplo: *const c_char, diag: *const c_char, m: Int, n: Int,
        a: *mut f64, lda: Int, rsrc: Int, csrc: Int
    );
    pub fn Cdsendrecv(
        ctxt: Int, m: Int, n: Int, a: *const f64, lda: Int, rdest: Int, cdest: Int, mb: Int, nb: Int, b: *mut f64,
        ldb: Int, rsrc: Int, csrc: Int
    );
    pub fn Cblacs_pinfo(mypnum: *mut Int, nprocs: *mut Int);
    pub fn Cblacs_get(ctxt: Int, what: Int, val: *mut Int);
    pub fn Cblacs_set(ctxt: Int, what: Int, val: *const Int);
    pub fn Cblacs_gridinit(ctxt: *mut Int, order: *const c_char, nprow: Int, npcol: Int);
    pub fn Cblacs_gridmap(ctxt: *mut Int, usermap: *const Int, ldumap: Int, nprow: Int, npcol: Int);
    pub fn Cblacs_gridinfo(ctxt: Int, nprow: *mut Int, npcol: *mut Int, myrow: *mut Int, mycol: *mut Int);
    pub fn Cblacs_pcoord(ctxt: Int, pnum: Int, prow: *mut Int, pcol: *mut Int);
    pub fn Cblacs_barrier(ctxt: Int, scope: *const c_char);
    pub safe fn Cblacs_pnum(ctxt: Int, prow: Int, pcol: Int) -> Int;
    pub safe fn Cblacs_gridexit(ctxt: Int);
    pub safe fn Cblacs_abort(ctxt: Int, error: Int);
    pub safe fn Cblacs_exit(go_on: Int);
}
