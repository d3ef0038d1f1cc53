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
//! | `remote` | what is different when the peer is on another node |
//! | `ghosts` | ranks that are no processes, which one process answers for |
//! | `spool` | memory for messages whose receive has not come |
//! | `any_index` | `FMPL_TAG_ANY` |
//! | `any_source` | messages that are matched at the receiver, whoever sends them |
//! | `loan` | messages that are handed over |
//! | `window` | memory that the ranks of a node have side by side |
//! | `sendbuf` | time-out, spool size, what is still in the spool |
//! | `tuning` | which way by size |
//! | `endpoint` | this process in its job |
//! | `context`, `group` | its communicators: which ranks, which memory |

pub mod any_index;
pub mod any_source;
pub mod context;
pub mod endpoint;
#[doc(hidden)]
#[cfg(not(loom))]
pub mod ghosts;
pub mod grid;
pub mod group;
pub mod loan;
#[cfg(loom)]
pub mod model;
pub mod receive;
pub mod remote;
pub mod request;
pub mod send;
pub mod sendbuf;
pub mod signal;
pub mod spool;
pub mod transfer;
pub mod tuning;
pub mod window;

pub use crate::base::layout;
pub use crate::lane::{COMM_NULL, COMM_WORLD, PROC_NULL, TAG_ANY};
pub use {
    loan::{Lent, irecv_loan, irecv_loan_test, irecv_loan_wait, loan, loan_return, mcast_loan, recv_loan, send_loan},
    receive::{recv, recv_soon},
    request::{
        irecv, irecv_cancel, irecv_test, irecv_wait, isend, isend_test, isend_wait, probe, received, recv_init,
        recv_start, send_init, send_start, sendrecv,
    },
    send::{send, send_soon},
    sendbuf::{sendbuf_check, sendbuf_lie_in, sendbuf_set},
};

/// A receive's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message's length in bytes; more than the buffer's when it was truncated.
    pub len: usize,
    /// The index that it matched.
    pub index: i32,
}

/// `FMPL_TIMEOUT_INFINITE`: synchronous sends.
pub const TIMEOUT_INFINITE: i32 = -1;
