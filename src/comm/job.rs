//! The life of a job: init, finalize, abort.

use crate::base::error::{Code, Error, Result};

/// A communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm(i32);

/// The job, for as long as it lives.
pub struct Job(());

/// Joins the job with room for `count` indices for each peer.
pub fn init(count: usize) -> Result<Job> {
    init_raw(count as i32)?;
    Ok(Job(()))
}

fn stub<T>() -> Result<T> {
    Err(Error::new(Code::Unsupported, "being built"))
}

/// `fmpl_init`: counted; the largest count holds.
pub fn init_raw(_count: i32) -> Result<()> {
    stub()
}
/// `fmpl_finalize`
pub fn finalize_raw() -> Result<()> {
    stub()
}
/// `fmpl_initialized`
pub fn initialized() -> bool {
    false
}
/// `fmpl_abort`: ends the whole job.
pub fn abort(code: i32) -> ! {
    std::process::exit(code)
}
/// `fmpl_comm_rank`
pub fn comm_rank(_comm: i32) -> Result<i32> {
    stub()
}
/// `fmpl_comm_size`
pub fn comm_size(_comm: i32) -> Result<i32> {
    stub()
}
/// `fmpl_barrier`
pub fn barrier(_comm: i32) -> Result<()> {
    stub()
}
/// `fmpl_progress`
pub fn progress() -> Result<()> {
    stub()
}
/// `fmpl_event_fd`: a descriptor that becomes readable when a request completes.
pub fn event_fd() -> Result<i32> {
    stub()
}
/// `fmpl_alloc`: memory that peers can reach directly.
pub fn alloc(_size: usize) -> Result<*mut u8> {
    stub()
}
/// `fmpl_free`
///
/// # Safety
/// `ptr` must come from [`alloc`] and be in use no more.
pub unsafe fn free(_ptr: *mut u8) -> Result<()> {
    stub()
}
/// `fmpl_wtime`: seconds.
pub fn wtime() -> f64 {
    crate::base::clock::now_ns() as f64 * 1e-9
}
