//! Point-to-point messages: send, receive, requests.
//!
//! The functions of this module are the raw interface: ranks and indices are `i32` as in C, buffers are [`layout::Layout`]s.
//! Above them stand [`crate::ffi`] and the safe interface of [`crate::comm`].
//!
//! | file | what it does |
//! |---|---|
//! | `send`, `receive` | one message out, one message in |
//! | `request` | non-blocking calls: begin, wait, test, cancel, probe |
//! | `transfer` | long payloads: store, ring, CMA, cooperative copy, pull |
//! | `far` | what is different when the peer is on another node |
//! | `spool` | memory for messages whose receive has not come |
//! | `any_index` | `FMPL_TAG_ANY` |
//! | `any_source` | messages that are matched at the receiver, whoever sends them |
//! | `loan` | messages that are handed over |
//! | `sendbuf` | time-out, spool size, what is still in the spool |
//! | `layout` | contiguous, block, list |
//! | `tuning` | which way by size |
//! | `endpoint` | this process in its job |
//! | `context`, `group` | its communicators: which ranks, which memory |

mod across;
pub mod any_index;
pub mod any_source;
pub mod context;
pub mod endpoint;
pub mod far;
pub mod group;
pub mod layout;
pub mod loan;
#[cfg(loom)]
pub mod model;
pub mod receive;
pub mod request;
pub mod send;
pub mod sendbuf;
pub mod signal;
pub mod spool;
pub mod transfer;
pub mod tuning;

pub use {
    loan::{Lent, irecv_loan, irecv_loan_test, irecv_loan_wait, loan, loan_return, mcast_loan, recv_loan, send_loan},
    receive::recv,
    request::{irecv, irecv_cancel, irecv_test, irecv_wait, isend, isend_test, isend_wait, probe, received, sendrecv},
    send::send,
    sendbuf::{sendbuf_check, sendbuf_set},
};

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
