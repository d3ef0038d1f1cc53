//! Point-to-point messages: send, receive, requests.
//!
//! The functions of this module are the raw interface: ranks and indices are `i32` as in C, buffers are [`Layout`]s.
//! Above them stand [`crate::ffi`] and the safe interface of [`crate::comm`].

pub mod layout;

#[cfg(not(loom))]
pub use raw::*;

#[cfg(not(loom))]
mod raw {
    use super::layout::Layout;
    use crate::base::error::{Code, Error, Result};

    /// A receive's outcome.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Received {
        /// The message's length in bytes; more than the buffer's when it was truncated.
        pub len: usize,
        /// The index that it matched.
        pub index: i32,
    }

    /// `FMPL_COMM_WORLD`
    pub const COMM_WORLD: i32 = 0;
    /// `FMPL_COMM_NULL`
    pub const COMM_NULL: i32 = -1;
    /// `FMPL_TAG_ANY`: any index of one source.
    pub const TAG_ANY: i32 = -1;
    /// `FMPL_PROC_NULL`: no peer; nothing happens.
    pub const PROC_NULL: i32 = -2;
    /// `FMPL_TIMEOUT_INFINITE`: synchronous sends.
    pub const TIMEOUT_INFINITE: i32 = -1;

    fn stub<T>() -> Result<T> {
        Err(Error::new(Code::Unsupported, "being built"))
    }

    /// Blocking send.
    ///
    /// # Safety
    /// `data` must describe readable memory for the length of the call.
    pub unsafe fn send(_comm: i32, _data: Layout, _dst: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Blocking receive. `Truncate`: the first bytes were delivered.
    ///
    /// # Safety
    /// `data` must describe writable memory for the length of the call.
    pub unsafe fn recv(_comm: i32, _data: Layout, _src: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Non-blocking send.
    ///
    /// # Safety
    /// `data` must stay readable and unchanged until the request is completed.
    pub unsafe fn isend(_comm: i32, _data: Layout, _dst: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Non-blocking receive.
    ///
    /// # Safety
    /// `data` must stay writable and untouched until the request is completed or cancelled.
    pub unsafe fn irecv(_comm: i32, _data: Layout, _src: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Completes the send on (peer, index).
    pub fn isend_wait(_comm: i32, _dst: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Completes the receive on (peer, index).
    pub fn irecv_wait(_comm: i32, _src: i32, _index: i32) -> Result<()> {
        stub()
    }
    /// Completes the send if it can be completed without waiting.
    pub fn isend_test(_comm: i32, _dst: i32, _index: i32) -> Result<bool> {
        stub()
    }
    /// Completes the receive if it can be completed without waiting.
    pub fn irecv_test(_comm: i32, _src: i32, _index: i32) -> Result<bool> {
        stub()
    }
    /// Length and index of the last completed receive on (source, index).
    pub fn received(_comm: i32, _src: i32, _index: i32) -> Result<Received> {
        stub()
    }
    /// The length of the message that a receive would take now, if there is one.
    pub fn probe(_comm: i32, _src: i32, _index: i32) -> Result<Option<usize>> {
        stub()
    }
    /// Withdraws a receive; `false`: it was too late, a message is coming, complete it as usual.
    pub fn irecv_cancel(_comm: i32, _src: i32, _index: i32) -> Result<bool> {
        stub()
    }
    /// A send and a receive at the same time.
    ///
    /// # Safety
    /// As for [`send`] and [`recv`]; the two must not overlap.
    pub unsafe fn sendrecv(
        _comm: i32,
        _sdata: Layout,
        _dst: i32,
        _sindex: i32,
        _rdata: Layout,
        _src: i32,
        _rindex: i32,
    ) -> Result<()> {
        stub()
    }
    /// Sets the spool and the time-out, of the job (`comm` `None`) or of one communicator. A null `buf`: the library allocates up to `size`.
    ///
    /// # Safety
    /// A buffer given here belongs to the library until another takes its place and it is drained, or until finalize.
    pub unsafe fn sendbuf_set(_comm: Option<i32>, _buf: *mut u8, _size: usize, _timeout_ms: i32) -> Result<()> {
        stub()
    }
    /// (spooled messages delivered since the last check, spooled messages still waiting)
    pub fn sendbuf_check() -> Result<(i32, i32)> {
        stub()
    }
}
