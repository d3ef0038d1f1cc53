//! The C functions, with slices. `try_*` give the code, the others want success.

use fmpl::ffi::c::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

pub const BUSY: i32 = fmpl::Code::Busy as i32;
pub const INDEX: i32 = fmpl::Code::Index as i32;
pub const RANK: i32 = fmpl::Code::Rank as i32;
pub const COMM: i32 = fmpl::Code::Comm as i32;
pub const ARGUMENT: i32 = fmpl::Code::Argument as i32;
pub const MEMORY: i32 = fmpl::Code::Memory as i32;
pub const TRUNCATE: i32 = fmpl::Code::Truncate as i32;
pub const SPOOL_FULL: i32 = fmpl::Code::SpoolFull as i32;
pub const PENDING: i32 = fmpl::Code::Pending as i32;
pub const PEER: i32 = fmpl::Code::Peer as i32;
pub const FORK: i32 = fmpl::Code::Fork as i32;
pub const INIT: i32 = fmpl::Code::Init as i32;
pub const REQUEST: i32 = fmpl::Code::Request as i32;
pub const DEADLOCK: i32 = fmpl::Code::Deadlock as i32;
pub const ANY: i32 = FMPL_TAG_ANY;
pub const WORLD: i32 = FMPL_COMM_WORLD;
pub const NULL: i32 = FMPL_COMM_NULL;

static CURRENT: AtomicI32 = AtomicI32::new(WORLD);

/// The communicator that the functions below use.
pub fn comm() -> i32 {
    CURRENT.load(Ordering::Relaxed)
}
/// Uses another communicator from here on.
pub fn on(comm: i32) {
    CURRENT.store(comm, Ordering::Relaxed);
}

pub fn last_error() -> String {
    // SAFETY: the text ends with a NUL and stays until the thread's next failing call.
    unsafe { CStr::from_ptr(fmpl_last_error()) }.to_string_lossy().into_owned()
}

#[track_caller]
pub fn ok(code: i32) {
    assert!(code == 0, "code {code}: {}", last_error());
}

/// The call must fail with this code.
#[track_caller]
pub fn fails(code: i32, with: i32) {
    let text = if code == 0 { "success".into() } else { last_error() };
    assert!(code == with, "code {code} instead of {with}: {text}");
}

// SAFETY, for all calls of this file: slices are valid memory for the length of the call. The begin_* functions need more: the
// memory must live until the request is completed, which their callers, tests all, see to.

#[track_caller]
pub fn init(count: i32) {
    ok(try_init(count));
}
pub fn try_init(count: i32) -> i32 {
    // SAFETY: null areas.
    unsafe { fmpl_init(std::ptr::null_mut(), std::ptr::null_mut(), count) }
}
pub fn try_finalize() -> i32 {
    // SAFETY: no memory.
    let code = unsafe { fmpl_finalize() };
    FINALIZE_FAILED.fetch_or(code != 0, Ordering::Relaxed);
    code
}
/// A finalize has failed in this process, which a test may expect: [`main`](super::main) ends it well nevertheless.
pub static FINALIZE_FAILED: AtomicBool = AtomicBool::new(false);
#[track_caller]
pub fn finalize() {
    ok(try_finalize());
}
#[track_caller]
pub fn rank() -> i32 {
    let mut n = -1;
    ok(fmpl_comm_rank(comm(), (&mut n).into()));
    n
}
#[track_caller]
pub fn size() -> i32 {
    let mut n = -1;
    ok(fmpl_comm_size(comm(), (&mut n).into()));
    n
}
#[track_caller]
pub fn barrier() {
    ok(fmpl_barrier(comm()));
}
pub fn try_create(key: i32, new: &mut i32) -> i32 {
    fmpl_comm_create(new.into(), key)
}
#[track_caller]
pub fn create(key: i32) -> i32 {
    let mut new = -77;
    ok(try_create(key, &mut new));
    new
}
pub fn try_split(comm: i32, colour: i32, order: i32, new: &mut i32) -> i32 {
    fmpl_comm_split(comm, colour, order, new.into())
}
#[track_caller]
pub fn split(comm: i32, colour: i32, order: i32) -> i32 {
    let mut new = -77;
    ok(try_split(comm, colour, order, &mut new));
    new
}
#[track_caller]
pub fn dup(comm: i32) -> i32 {
    let mut new = -77;
    ok(fmpl_comm_dup(comm, (&mut new).into()));
    new
}
pub fn try_free(comm: &mut i32) -> i32 {
    // SAFETY: see above; the tests that free have one thread.
    unsafe { fmpl_comm_free(comm) }
}
#[track_caller]
pub fn free(mut comm: i32) {
    ok(try_free(&mut comm));
    assert_eq!(comm, NULL);
}
#[track_caller]
pub fn translate(from: i32, rank: i32, to: i32) -> i32 {
    let mut there = -77;
    ok(fmpl_comm_translate(from, rank, to, (&mut there).into()));
    there
}
pub fn try_send(buf: &[u8], dst: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_send(buf.as_ptr().cast(), buf.len(), dst, index, comm()) }
}
#[track_caller]
pub fn send(buf: &[u8], dst: i32, index: i32) {
    ok(try_send(buf, dst, index));
}
pub fn try_recv(buf: &mut [u8], src: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_recv(buf.as_mut_ptr().cast(), buf.len(), src, index, comm()) }
}
#[track_caller]
pub fn recv(buf: &mut [u8], src: i32, index: i32) {
    ok(try_recv(buf, src, index));
}
/// The memory must stay until the request is completed.
pub fn try_isend(buf: &[u8], dst: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_isend(buf.as_ptr().cast(), buf.len(), dst, index, comm()) }
}
#[track_caller]
pub fn isend(buf: &[u8], dst: i32, index: i32) {
    ok(try_isend(buf, dst, index));
}
/// The memory must stay until the request is completed.
pub fn try_irecv(buf: &mut [u8], src: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_irecv(buf.as_mut_ptr().cast(), buf.len(), src, index, comm()) }
}
#[track_caller]
pub fn irecv(buf: &mut [u8], src: i32, index: i32) {
    ok(try_irecv(buf, src, index));
}
pub fn try_isend_wait(dst: i32, index: i32) -> i32 {
    fmpl_isend_wait(dst, index, comm())
}
#[track_caller]
pub fn isend_wait(dst: i32, index: i32) {
    ok(try_isend_wait(dst, index));
}
pub fn try_irecv_wait(src: i32, index: i32) -> i32 {
    fmpl_irecv_wait(src, index, comm())
}
#[track_caller]
pub fn irecv_wait(src: i32, index: i32) {
    ok(try_irecv_wait(src, index));
}
#[track_caller]
pub fn isend_test(dst: i32, index: i32) -> bool {
    let mut done = -1;
    ok(fmpl_isend_test(dst, index, comm(), (&mut done).into()));
    done == 1
}
#[track_caller]
pub fn irecv_test(src: i32, index: i32) -> bool {
    let mut done = -1;
    ok(fmpl_irecv_test(src, index, comm(), (&mut done).into()));
    done == 1
}
/// Tests until done.
#[track_caller]
pub fn irecv_poll(src: i32, index: i32) {
    while !irecv_test(src, index) {
        std::thread::yield_now();
    }
}
/// Tests until done.
#[track_caller]
pub fn isend_poll(dst: i32, index: i32) {
    while !isend_test(dst, index) {
        std::thread::yield_now();
    }
}
#[track_caller]
pub fn cancel(src: i32, index: i32) -> bool {
    let mut cancelled = -1;
    ok(fmpl_irecv_cancel(src, index, comm(), (&mut cancelled).into()));
    cancelled == 1
}
/// (length, index) of the last receive.
#[track_caller]
pub fn received(src: i32, index: i32) -> (usize, i32) {
    let (mut len, mut which) = (usize::MAX, -77);
    ok(fmpl_received(src, index, comm(), (&mut len).into(), (&mut which).into()));
    (len, which)
}
#[track_caller]
pub fn probe(src: i32, index: i32) -> Option<usize> {
    let (mut there, mut len) = (-1, usize::MAX);
    ok(fmpl_probe(src, index, comm(), (&mut there).into(), (&mut len).into()));
    (there == 1).then_some(len)
}
pub fn try_sendrecv(sbuf: &[u8], dst: i32, sindex: i32, rbuf: &mut [u8], src: i32, rindex: i32) -> i32 {
    let (s, n) = (sbuf.as_ptr().cast(), sbuf.len());
    // SAFETY: see above.
    unsafe { fmpl_sendrecv(s, n, dst, sindex, rbuf.as_mut_ptr().cast(), rbuf.len(), src, rindex, comm()) }
}
#[track_caller]
pub fn sendrecv(sbuf: &[u8], dst: i32, sindex: i32, rbuf: &mut [u8], src: i32, rindex: i32) {
    ok(try_sendrecv(sbuf, dst, sindex, rbuf, src, rindex));
}
/// Sets the time-out; the spool stays as large as it is by default.
#[track_caller]
pub fn mode(timeout_ms: i32) {
    sendbuf_set(16 << 20, timeout_ms);
}
#[track_caller]
pub fn sendbuf_set(bytes: usize, timeout_ms: i32) {
    // SAFETY: a null buffer.
    ok(unsafe { fmpl_sendbuf_set(std::ptr::null_mut(), bytes, timeout_ms) });
}
/// (delivered since the last check, still waiting)
#[track_caller]
pub fn sendbuf_check() -> (i32, i32) {
    let (mut sent, mut spooled) = (-1, -1);
    ok(fmpl_sendbuf_check((&mut sent).into(), (&mut spooled).into()));
    (sent, spooled)
}
pub fn block(run: usize, count: usize, stride: isize) -> fmpl_block {
    fmpl_block { run, count, stride }
}
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}
/// Two ranks: the other one.
pub fn other() -> i32 {
    1 - rank()
}

pub fn try_send_any(buf: &[u8], dst: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_send_any(buf.as_ptr().cast(), buf.len(), dst, index, comm()) }
}
#[track_caller]
pub fn send_any(buf: &[u8], dst: i32, index: i32) {
    ok(try_send_any(buf, dst, index));
}
/// The code, who sent it, how long it was.
pub fn try_recv_any(buf: &mut [u8], index: i32) -> (i32, i32, usize) {
    let (mut src, mut len) = (-1, usize::MAX);
    // SAFETY: see above.
    let code = unsafe {
        fmpl_recv_any_from(buf.as_mut_ptr().cast(), buf.len(), index, comm(), (&mut src).into(), (&mut len).into())
    };
    (code, src, len)
}
/// (who sent it, how long it was)
#[track_caller]
pub fn recv_any(buf: &mut [u8], index: i32) -> (i32, usize) {
    let (code, src, len) = try_recv_any(buf, index);
    ok(code);
    (src, len)
}
/// The memory must stay until the request is completed.
pub fn try_isend_any(buf: &[u8], dst: i32, index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_isend_any(buf.as_ptr().cast(), buf.len(), dst, index, comm()) }
}
#[track_caller]
pub fn isend_any(buf: &[u8], dst: i32, index: i32) {
    ok(try_isend_any(buf, dst, index));
}
pub fn try_isend_any_wait(dst: i32, index: i32) -> i32 {
    fmpl_isend_any_wait(dst, index, comm())
}
#[track_caller]
pub fn isend_any_wait(dst: i32, index: i32) {
    ok(try_isend_any_wait(dst, index));
}
#[track_caller]
pub fn isend_any_test(dst: i32, index: i32) -> bool {
    let mut done = -1;
    ok(fmpl_isend_any_test(dst, index, comm(), (&mut done).into()));
    done == 1
}
/// The memory must stay until the request is completed.
pub fn try_irecv_any(buf: &mut [u8], index: i32) -> i32 {
    // SAFETY: see above.
    unsafe { fmpl_irecv_any(buf.as_mut_ptr().cast(), buf.len(), index, comm()) }
}
#[track_caller]
pub fn irecv_any(buf: &mut [u8], index: i32) {
    ok(try_irecv_any(buf, index));
}
#[track_caller]
pub fn irecv_any_wait(index: i32) -> (i32, usize) {
    let (mut src, mut len) = (-1, usize::MAX);
    ok(fmpl_irecv_any_wait(index, comm(), (&mut src).into(), (&mut len).into()));
    (src, len)
}
#[track_caller]
pub fn irecv_any_test(index: i32) -> Option<(i32, usize)> {
    let (mut done, mut src, mut len) = (-1, -1, usize::MAX);
    ok(fmpl_irecv_any_test(index, comm(), (&mut done).into(), (&mut src).into(), (&mut len).into()));
    (done == 1).then_some((src, len))
}
#[track_caller]
pub fn irecv_any_cancel(index: i32) -> bool {
    let mut cancelled = -1;
    ok(fmpl_irecv_any_cancel(index, comm(), (&mut cancelled).into()));
    cancelled == 1
}
/// (who sent it, how long it is)
#[track_caller]
pub fn probe_any(index: i32) -> Option<(i32, usize)> {
    let (mut there, mut src, mut len) = (-1, -1, usize::MAX);
    ok(fmpl_probe_any(index, comm(), (&mut there).into(), (&mut src).into(), (&mut len).into()));
    (there == 1).then_some((src, len))
}
#[track_caller]
pub fn limit_any(most: i32, index: i32) {
    ok(fmpl_recv_any_limit(most, index, comm()));
}
