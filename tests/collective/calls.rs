use crate::ranks::Job;
use crate::ranks::calls::*;
use fmpl::ffi::c::*;
use std::ptr::null_mut;

/// Zero sizes, wrong arguments, and the same calls afterwards.
pub fn calls() {
    init(1);
    let (me, n) = (rank(), size());
    let mut buf = [me as f64; 4];
    let p = buf.as_mut_ptr().cast();
    // SAFETY: all calls get a buffer of four elements, or a null one that the call must refuse or not need.
    unsafe {
        for root in 0..n {
            ok(fmpl_bcast(null_mut(), 0, root, WORLD));
            ok(fmpl_reduce(null_mut(), 0, Some(fmpl_dsum), root, WORLD, null_mut()));
        }
        ok(fmpl_allreduce(null_mut(), 0, Some(fmpl_dsum), WORLD, null_mut()));
        fails(fmpl_bcast(null_mut(), 8, 0, WORLD), ARGUMENT);
        fails(fmpl_bcast(p, 8, n, WORLD), RANK);
        fails(fmpl_bcast(p, 8, -1, WORLD), RANK);
        fails(fmpl_bcast(p, 8, 0, 4711), COMM);
        fails(fmpl_bcast(p, 8, 0, FMPL_COMM_NULL), COMM);
        fails(fmpl_reduce(p, -1, Some(fmpl_dsum), 0, WORLD, null_mut()), ARGUMENT);
        fails(fmpl_reduce(p, 1, None, 0, WORLD, null_mut()), ARGUMENT);
        fails(fmpl_reduce(p, 1, Some(fmpl_dsum), n, WORLD, null_mut()), RANK);
        fails(fmpl_allreduce(null_mut(), 1, Some(fmpl_dsum), WORLD, null_mut()), ARGUMENT);
        fails(fmpl_allreduce(p, 1, Some(unknown), WORLD, null_mut()), ARGUMENT);
        assert!(last_error().contains("fmpl_func_register"), "{}", last_error());
        fails(fmpl_func_register(None, 8, 1), ARGUMENT);
        fails(fmpl_func_register(Some(unknown), 0, 1), ARGUMENT);
        fails(fmpl_func_register(Some(fmpl_dsum), 8, 1), ARGUMENT);
        ok(fmpl_allreduce(p, 4, Some(fmpl_dsum), WORLD, null_mut()));
    }
    assert_eq!(buf, [(0..n).sum::<i32>() as f64; 4]);
    barrier();
    finalize();
}

unsafe extern "C" fn unknown(_: *mut core::ffi::c_void, _: *const core::ffi::c_void, _: i32) {}

pub fn arguments() {
    for ranks in [1, 2, 3] {
        Job::new(ranks, "calls").run();
    }
}
