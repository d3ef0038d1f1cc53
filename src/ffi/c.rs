//! The C interface.
//!
//! `include/fmpl.h` is generated from this file and those in `c/`: the documentation, the constants and the prototypes
//! stand there and nowhere else. The generator (`tests/interface/header.rs`) knows these marks in the comments: `// # Title` begins a part of the
//! header, an item `* name: …` becomes a parameter's description, `Returns:` and `Source:` become those of Doxygen.
//!
//! Most functions are entries of tables (`entry.rs`). Long because each stands with what the header says of it. Safety is C's: a pointer must be
//! what its description says, for as long as the call, or the request that it starts, lasts.

#![allow(clippy::missing_safety_doc)] // the paragraph above holds for each of them, also in `c/`; the parameters' descriptions say the rest
#![allow(non_camel_case_types)] // C's names

#[macro_use]
mod entry;

mod any;
mod begun;
mod collective;
mod counters;
mod functions;
mod grids;
mod groups;
mod loans;
mod outside;
mod prepared;
mod requests;
mod shapes;
mod tickets;
mod uneven;
mod windows;

use core::ffi::{c_char, c_double, c_int, c_void};
use core::ptr;

pub use super::outcome::Out;
use super::outcome::{fail, last_error, meaning, number, wrong};
use crate::base::error::{Code, Result, error};
use crate::base::run::Run;
use crate::base::unused::Unused;
use crate::comm;
use crate::comm::requests::What;
use crate::lane::WayTaken;
use crate::p2p;

pub use any::*;
pub use begun::*;
pub use collective::*;
pub use counters::*;
pub use functions::*;
pub(in crate::ffi) use functions::{introduce, papers};
pub use grids::*;
pub use groups::*;
pub use loans::*;
pub use outside::*;
pub use prepared::*;
pub use requests::*;
pub use shapes::*;
pub use tickets::*;
pub use uneven::*;
pub use windows::*;

/// A communicator: a group of ranks with a space of indices of its own.
pub type fmpl_comm = c_int;

/// The shape of a sub-matrix: `count` runs of `run` bytes, the beginnings of neighbouring runs `stride` bytes apart (it may be
/// negative). The bytes are a stream: the two sides of a message may have different shapes.
pub type fmpl_block = crate::base::layout::Block;

/// A function of a reduction: inout\[k\] = inout\[k\] o in\[k\] for `count` elements; it must return (`fmpl_func_register` says what else
/// ends the process). Passed to a reduction it is a predefined one, or
/// one that `fmpl_func_register` has been told.
pub type fmpl_func = Option<unsafe extern "C" fn(inout: *mut c_void, input: *const c_void, count: c_int)>;

/// An allgather of the host program, for `fmpl_init_with`: `size` bytes at `mine` of each rank go to `all` on all ranks, one after the other in the
/// order of the ranks. Returns 0, or something else when it has failed.
pub type fmpl_exchange =
    Option<unsafe extern "C" fn(state: *mut c_void, mine: *const c_void, all: *mut c_void, size: usize) -> c_int>;

/// An identifier of a job, for `fmpl_init_id`.
#[repr(C)]
pub struct fmpl_id {
    /// To be passed round as they are.
    pub bytes: [u8; 128],
}

/// A request by its name, for calls that complete several at a time: what began it (`FMPL_REQUEST_SEND` and so on) in `kind`, and the
/// arguments by which the call that completes it alone names it. Other members mean nothing.
pub type fmpl_request = comm::requests::Request;

/// `struct iovec` of `<sys/uio.h>`
pub type iovec = libc::iovec;

// # Constants

/// What every function returns when it has done its work.
pub const FMPL_SUCCESS: c_int = 0;
/// All ranks of the job.
pub const FMPL_COMM_WORLD: fmpl_comm = p2p::COMM_WORLD;
/// No communicator.
pub const FMPL_COMM_NULL: fmpl_comm = p2p::COMM_NULL;
/// As the index of a receive: any index of this one source.
pub const FMPL_TAG_ANY: c_int = p2p::TAG_ANY;
/// The same by another name: what MPI calls a tag is an index here.
pub const FMPL_INDEX_ANY: c_int = p2p::TAG_ANY;
/// As a peer: nobody. The call succeeds and nothing happens.
pub const FMPL_PROC_NULL: c_int = p2p::PROC_NULL;
/// As a time-out (synchronous mode): a send completes once its receive is known to have been posted, and not before, however long
/// that takes. Only then may what is left of it go through the spool.
pub const FMPL_TIMEOUT_INFINITE: c_int = p2p::TIMEOUT_INFINITE;
/// A kind of request: none, or one that is over.
pub const FMPL_REQUEST_NONE: c_int = 0;
/// A kind of request: of `fmpl_isend`, `fmpl_isend_block`, `fmpl_isend_list`; peer, index, comm.
pub const FMPL_REQUEST_SEND: c_int = What::Send as c_int;
/// A kind of request: of `fmpl_irecv`, `fmpl_irecv_block`, `fmpl_irecv_list`; peer, index (or `FMPL_INDEX_ANY`), comm.
pub const FMPL_REQUEST_RECV: c_int = What::Receive as c_int;
/// A kind of request: of `fmpl_isend_any`; peer, index, comm.
pub const FMPL_REQUEST_SEND_ANY: c_int = What::SendAny as c_int;
/// A kind of request: of `fmpl_irecv_any`; index, comm.
pub const FMPL_REQUEST_RECV_ANY: c_int = What::ReceiveAny as c_int;
/// A kind of request: of `fmpl_mcast`; ticket.
pub const FMPL_REQUEST_MCAST: c_int = What::Multicast as c_int;
/// A kind of request: of `fmpl_mcast_irecv`; comm.
pub const FMPL_REQUEST_MCAST_RECV: c_int = What::ReceiveMulticast as c_int;
/// A kind of request: of `fmpl_ibarrier` or `fmpl_ibarrier_n`; comm and, of a call with one, ticket, which is 0 otherwise. So for all
/// collective calls.
pub const FMPL_REQUEST_BARRIER: c_int = What::Barrier as c_int;
/// A kind of request: of `fmpl_ibcast`; comm, ticket.
pub const FMPL_REQUEST_BCAST: c_int = What::Bcast as c_int;
/// A kind of request: of `fmpl_iallreduce`; comm, ticket.
pub const FMPL_REQUEST_ALLREDUCE: c_int = What::Allreduce as c_int;
/// A kind of request: of `fmpl_ireduce`; comm, ticket.
pub const FMPL_REQUEST_REDUCE: c_int = What::Reduce as c_int;
/// A kind of request: of `fmpl_igather`; comm, ticket.
pub const FMPL_REQUEST_GATHER: c_int = What::Gather as c_int;
/// A kind of request: of `fmpl_iallgather`; comm, ticket.
pub const FMPL_REQUEST_ALLGATHER: c_int = What::Allgather as c_int;
/// A kind of request: of `fmpl_iscatter`; comm, ticket.
pub const FMPL_REQUEST_SCATTER: c_int = What::Scatter as c_int;
/// A kind of request: of `fmpl_ialltoall`; comm, ticket.
pub const FMPL_REQUEST_ALLTOALL: c_int = What::Alltoall as c_int;
/// How many collective calls with tickets a communicator may have that are begun and not completed.
pub const FMPL_TICKETS: c_int = crate::coll::TICKETS as c_int;
/// Room in bytes for the name of a communicator, with the zero behind it.
pub const FMPL_COMM_NAME_BYTES: c_int = crate::base::named::MOST as c_int + 1;
/// Bytes of matching area for each index, for a caller that brings its own area to `fmpl_init`.
pub const FMPL_MA_BYTES: c_int = 64;
/// Bytes of completion-flag area for each index, for a caller that brings its own area to `fmpl_init`.
pub const FMPL_FA_BYTES: c_int = 64;
/// A counter: other ranks whose memory this process has mapped. Only with these can anything go through shared memory.
pub const FMPL_COUNTER_SHM_PEERS: c_int = comm::Counter::ShmPeers as c_int;
/// A counter: indexed messages sent to other ranks through shared memory.
pub const FMPL_COUNTER_SHM_MESSAGES: c_int = comm::Counter::ShmMessages as c_int;
/// A counter: the bytes of the messages counted by `FMPL_COUNTER_SHM_MESSAGES`.
pub const FMPL_COUNTER_SHM_BYTES: c_int = comm::Counter::ShmBytes as c_int;
/// A counter: RDMA writes to ranks on other nodes, those that carry a record and those that carry a message's bytes.
pub const FMPL_COUNTER_RDMA_WRITES: c_int = comm::Counter::RdmaWrites as c_int;
/// A counter: RDMA reads from ranks on other nodes.
pub const FMPL_COUNTER_RDMA_READS: c_int = comm::Counter::RdmaReads as c_int;
/// A counter: the bytes of these writes and reads.
pub const FMPL_COUNTER_RDMA_BYTES: c_int = comm::Counter::RdmaBytes as c_int;
/// A counter: bytes of messages that a processor has copied on their way to or from another node, landings apart.
pub const FMPL_COUNTER_RDMA_COPIED: c_int = comm::Counter::RdmaCopied as c_int;
/// A counter: completions of writes and reads that were taken.
pub const FMPL_COUNTER_RDMA_COMPLETIONS: c_int = comm::Counter::RdmaCompletions as c_int;
/// For `fmpl_counter`: connections (RC queue pairs) with ranks on other nodes that this process has now.
pub const FMPL_COUNTER_RDMA_PAIRS: c_int = comm::Counter::RdmaPairs as c_int;
/// For `fmpl_counter`: those that all ranks of this node have now.
pub const FMPL_COUNTER_RDMA_NODE_PAIRS: c_int = comm::Counter::RdmaNodePairs as c_int;
/// For `fmpl_counter`: connections of this process that were given up so far, because others needed their place.
pub const FMPL_COUNTER_RDMA_RETIRED: c_int = comm::Counter::RdmaRetired as c_int;
/// For `fmpl_counter`: packets sent to multicast groups, each to all members at once.
pub const FMPL_COUNTER_MULTICAST_PACKETS: c_int = comm::Counter::MulticastPackets as c_int;
/// For `fmpl_counter`: of these packets the ones that some member did not get, and that this process sent to it alone.
pub const FMPL_COUNTER_MULTICAST_AGAIN: c_int = comm::Counter::MulticastAgain as c_int;
/// For `fmpl_counter`: multicast groups that this process is in now.
pub const FMPL_COUNTER_MULTICAST_GROUPS: c_int = comm::Counter::MulticastGroups as c_int;
/// For `fmpl_counter`: peers on other nodes with which this process has a context now, memory that they may write.
pub const FMPL_COUNTER_RDMA_CONTEXTS: c_int = comm::Counter::RdmaContexts as c_int;
/// For `fmpl_counter`: the contexts that all ranks of this node have now.
pub const FMPL_COUNTER_RDMA_NODE_CONTEXTS: c_int = comm::Counter::RdmaNodeContexts as c_int;
/// For `fmpl_counter`: contexts of this process that were put away so far, because others needed their place.
pub const FMPL_COUNTER_RDMA_PUT_AWAY: c_int = comm::Counter::RdmaPutAway as c_int;
/// For `fmpl_counter`: peers on other nodes that this process has forgotten so far, since nothing was under way with them and others needed their
/// context.
pub const FMPL_COUNTER_RDMA_FORGOTTEN: c_int = comm::Counter::RdmaForgotten as c_int;
/// A counter: operations on global memory (acp.h) that were refused or have failed, with those that were to follow them.
pub const FMPL_COUNTER_GLOBAL_REFUSED: c_int = comm::Counter::GlobalRefused as c_int;
/// A counter: loans that were handed over (`fmpl_send_loan`).
pub const FMPL_COUNTER_LOANS: c_int = comm::Counter::Loans as c_int;
/// A counter: bytes of messages that this process has copied into loans or out of them.
pub const FMPL_COUNTER_LOAN_COPIED: c_int = comm::Counter::LoanCopied as c_int;
/// A counter: waits that slept, each as often as it did.
pub const FMPL_COUNTER_SLEEPS: c_int = comm::Counter::Sleeps as c_int;
/// A counter: nanoseconds that waits have slept, of all threads together.
pub const FMPL_COUNTER_SLEPT_NS: c_int = comm::Counter::SleptNs as c_int;
/// A counter: bytes of the spool that have ever been in use.
pub const FMPL_COUNTER_SPOOL_MOST: c_int = comm::Counter::SpoolMost as c_int;
/// A counter: indexed messages received.
pub const FMPL_COUNTER_RECEIVED: c_int = comm::Counter::Received as c_int;
/// A counter: short messages that have gone through the overflow queue, since the one before was not received yet.
pub const FMPL_COUNTER_QUEUED: c_int = comm::Counter::Queued as c_int;
/// A counter: registrations of this program's memory that are kept now for messages to other nodes.
pub const FMPL_COUNTER_REGISTRATIONS: c_int = comm::Counter::Registrations as c_int;
/// A counter: the bytes of the registrations counted by `FMPL_COUNTER_REGISTRATIONS`.
pub const FMPL_COUNTER_REGISTERED_BYTES: c_int = comm::Counter::RegisteredBytes as c_int;
/// A counter: times that a message to or from another node found its memory registered.
pub const FMPL_COUNTER_REGISTRATIONS_FOUND: c_int = comm::Counter::RegistrationsFound as c_int;
/// A counter: registrations that were made since none was found.
pub const FMPL_COUNTER_REGISTRATIONS_MADE: c_int = comm::Counter::RegistrationsMade as c_int;
/// Added to one of the counters `FMPL_COUNTER_WAY_*`: the bytes of these messages.
pub const FMPL_COUNTER_BYTES: c_int = comm::BY_WAY_BYTES;
/// A counter: indexed messages sent in a record of the pair, or in the overflow queue.
pub const FMPL_COUNTER_WAY_SHORT: c_int = comm::BY_WAY + WayTaken::Short as c_int;
/// A counter: indexed messages sent stored by their sender into the posted buffer, which is memory of `fmpl_alloc`, or its own.
pub const FMPL_COUNTER_WAY_STORE: c_int = comm::BY_WAY + WayTaken::Store as c_int;
/// A counter: indexed messages sent copied by the kernel, for their sender.
pub const FMPL_COUNTER_WAY_KERNEL: c_int = comm::BY_WAY + WayTaken::Kernel as c_int;
/// A counter: indexed messages sent through alternating buffers.
pub const FMPL_COUNTER_WAY_TURN: c_int = comm::BY_WAY + WayTaken::Turn as c_int;
/// A counter: indexed messages sent through a ring.
pub const FMPL_COUNTER_WAY_RING: c_int = comm::BY_WAY + WayTaken::Ring as c_int;
/// A counter: indexed messages sent copied by the kernel, for both sides in pieces.
pub const FMPL_COUNTER_WAY_SHARED: c_int = comm::BY_WAY + WayTaken::Shared as c_int;
/// A counter: indexed messages sent copied by the kernel, for their receiver.
pub const FMPL_COUNTER_WAY_PULLED: c_int = comm::BY_WAY + WayTaken::Pulled as c_int;
/// A counter: indexed messages sent through the spool.
pub const FMPL_COUNTER_WAY_SPOOL: c_int = comm::BY_WAY + WayTaken::Spool as c_int;
/// A counter: indexed messages sent handed over.
pub const FMPL_COUNTER_WAY_LOAN: c_int = comm::BY_WAY + WayTaken::Loan as c_int;
/// A counter: indexed messages sent to other nodes, in a record of the pair, or in the overflow queue.
pub const FMPL_COUNTER_WAY_FAR_SHORT: c_int = comm::BY_WAY + WayTaken::RemoteShort as c_int;
/// A counter: indexed messages sent to other nodes, put into the posted buffer by the device.
pub const FMPL_COUNTER_WAY_FAR_PUT: c_int = comm::BY_WAY + WayTaken::RemotePut as c_int;
/// A counter: indexed messages sent to other nodes, fetched from the spool by their receiver.
pub const FMPL_COUNTER_WAY_FAR_SPOOL: c_int = comm::BY_WAY + WayTaken::RemoteSpool as c_int;
/// The version that this header belongs to: 10000 * major + 100 * minor + patch.
pub const FMPL_VERSION: c_int = 100
    * (100 * decimal(env!("CARGO_PKG_VERSION_MAJOR")) + decimal(env!("CARGO_PKG_VERSION_MINOR")))
    + decimal(env!("CARGO_PKG_VERSION_PATCH"));

const fn decimal(digits: &str) -> c_int {
    let (digits, mut value, mut at) = (digits.as_bytes(), 0, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as c_int;
        at += 1;
    }
    value
}

/// # Safety
/// As for [`Run::new`].
const unsafe fn bytes(buf: *const c_void, size: usize) -> Run {
    // SAFETY: as the caller of the C function promises.
    unsafe { Run::new(buf as *mut u8, size) }
}

/// Memory of the program's for the spool.
///
/// # Safety
/// So many bytes, or null, which nobody uses until the last finalize.
unsafe fn lie_in(buf: *mut c_void, size: usize) -> Result<()> {
    // SAFETY: as the caller promises.
    if buf.is_null() { Ok(()) } else { unsafe { p2p::sendbuf_lie_in(bytes(buf, size)) } }
}

/// The words of a bitmap of ranks.
///
/// # Safety
/// As many words at `members` as the communicator needs, or null; they stay for `'a`.
unsafe fn bitmap<'a>(members: *const u64, comm: fmpl_comm) -> Result<&'a [u64]> {
    let words = p2p::any_source::multicast::bitmap_words(comm)?;
    if members.is_null() {
        return Err(error!(Code::Argument, "rank {}: mcast with no bitmap", p2p::endpoint::endpoint()?.rank));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(members, words) })
}

// # Life of the job

/// Joins the job with room for `count` messages in flight from and to each peer. Init is counted: a further init succeeds and
/// the largest count holds from then on. Ranks may give different counts; the smaller one of a pair holds for it. After the last
/// finalize init joins anew, with all ranks, under `fmpl run` and in a job of one.
///
/// * ma: the matching area, `count` * `FMPL_MA_BYTES` bytes, or NULL: the library places it. In a job on several nodes what peers write
///   lies there, as much as finds room in its whole pages: 4 KiB for each peer, and 16 KiB for each 64 indices that are used with
///   it. It is the library's until the last finalize, and all zero then. On one node the library places it, and leaves
///   this one untouched; so it does with memory that is not private.
/// * fa: the completion-flag area, `count` * `FMPL_FA_BYTES` bytes, or NULL; as above.
/// * count: the number of indices, 0 or more; valid indices are 0 to `count` - 1.
///
/// Returns: `FMPL_ERR_ARGUMENT` for a negative count, `FMPL_ERR_LAUNCH` when the launcher cannot be reached, or lets no process join again, `FMPL_ERR_MEMORY`,
/// `FMPL_ERR_SETTING` for an environment variable with an unusable value, `FMPL_ERR_VERSION`.
///
/// Source: FMPL paper, section 3.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_init(ma: *mut c_void, fa: *mut c_void, count: c_int) -> c_int {
    if count < 0 {
        return wrong("fmpl_init: the number of indices is negative");
    }
    let lend = |(area, bytes): (*mut c_void, usize)| {
        // SAFETY: the caller promises so many bytes for each index, which are the library's until finalize.
        if area.is_null() { Ok(()) } else { unsafe { comm::lend_area(self::bytes(area, bytes * count as usize)) } }
    };
    let areas = [(ma, FMPL_MA_BYTES as usize), (fa, FMPL_FA_BYTES as usize)];
    number(comm::init_raw(count).and_then(|()| areas.into_iter().try_for_each(lend)))
}

calls! {
    /// Leaves the job; collective. Delivers what is spooled. With several inits the last finalize does it. When it
    /// fails the job is left all the same, and the process, if it would end with exit code 0, ends with 1 and says why.
    ///
    /// Returns: `FMPL_ERR_PENDING` naming the messages or requests that remain.
    ///
    /// Source: FMPL paper, section 3.1.
    unsafe fn fmpl_finalize() = comm::finalize_raw(Unused::promised());

    /// Tells whether the library is initialised (and not finalized). May be called at any time.
    ///
    /// * flag: set to 1 or 0.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_initialized(flag: Out<c_int>) -> flag = Ok(comm::initialized());
}

/// Ends the whole job, every rank of it. Does not return.
///
/// * code: the exit status of the job.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_abort(code: c_int) -> c_int {
    comm::abort(code)
}

calls! {
    /// This process's rank in a communicator.
    ///
    /// * comm: the communicator.
    /// * rank: set to 0 to size - 1.
    ///
    /// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: FMPL paper, section 3.3.
    fn fmpl_comm_rank(comm: fmpl_comm, rank: Out<c_int>) -> rank = comm::comm_rank(comm);

    /// The number of ranks of a communicator.
    ///
    /// * comm: the communicator.
    /// * size: set to the number of ranks, 1 or more.
    ///
    /// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: FMPL paper, section 3.3.
    fn fmpl_comm_size(comm: fmpl_comm, size: Out<c_int>) -> size = comm::comm_size(comm);

    // # Blocking messages

    /// Sends `size` bytes to index `mai` of rank `dst`. Returns when `buf` may be written again: the bytes are at the
    /// receiver, or, when it posted no receive within the time-out of `fmpl_sendbuf_set`, in the spool. Messages of one
    /// (communicator, peer, index) arrive in order.
    ///
    /// * buf: the message; may be NULL when `size` is 0.
    /// * size: bytes; there is no upper bound but memory.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, 0 to count - 1 of the smaller count of the two ranks.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` (a null buffer with a size), `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`,
    /// `FMPL_ERR_BUSY` (an isend on this index is not completed), `FMPL_ERR_SPOOL_FULL` (time-out 0 only: nothing was
    /// sent), `FMPL_ERR_PEER` (the receiver has died or left).
    ///
    /// Source: FMPL paper, section 3.2.1.
    unsafe fn fmpl_send(buf: *const c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::send(comm, bytes(buf, size).into(), dst, mai);

    /// Receives the next message on index `mai` from rank `src`. A message shorter than the buffer is fine;
    /// `fmpl_received` tells its length.
    ///
    /// * buf: where it goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`. Between any-index and indexed receives no order is promised.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_TRUNCATE` (the message was longer; its first `size` bytes are in `buf`), `FMPL_ERR_ARGUMENT`,
    /// `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (an irecv on this index is not completed),
    /// `FMPL_ERR_PEER`.
    ///
    /// Source: FMPL paper, section 3.2.1.
    unsafe fn fmpl_recv(buf: *mut c_void, size: usize, src: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::recv(comm, bytes(buf, size).into(), src, mai);

    /// A send and a receive at the same time. Two ranks that exchange messages this way do not wait for a time-out.
    ///
    /// * sbuf: the message to send; must not overlap `rbuf`.
    /// * ssize: its bytes.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * smai: the index to send on.
    /// * rbuf: where the received message goes.
    /// * rsize: bytes of room.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * rmai: the index to receive on, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: what `fmpl_send` and `fmpl_recv` return. Where the send is refused nothing has been received, unless the peer
    /// dies meanwhile or is this rank itself: in buffered mode it waits for room in the spool once a message has come.
    unsafe fn fmpl_sendrecv(
        sbuf: *const c_void, ssize: usize, dst: c_int, smai: c_int, rbuf: *mut c_void, rsize: usize, src: c_int,
        rmai: c_int, comm: fmpl_comm,
    ) = p2p::sendrecv(comm, bytes(sbuf, ssize).into(), dst, smai, bytes(rbuf, rsize).into(), src, rmai);

    // # Non-blocking messages

    /// Begins to send. The buffer must stay unchanged until `fmpl_isend_wait` or `fmpl_isend_test` has completed the
    /// request; (`dst`, `mai`, `comm`) names it, there is no request object. The time-out runs from here.
    ///
    /// * buf: the message; may be NULL when `size` is 0.
    /// * size: bytes.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_send`; `FMPL_ERR_BUSY` when a request on this (peer, index) is not completed.
    ///
    /// Source: FMPL paper, section 3.2.2.
    unsafe fn fmpl_isend(buf: *const c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::isend(comm, bytes(buf, size).into(), dst, mai);

    /// Begins to receive: tells the sender where the message may be put, and returns. The earlier, the better: a sender
    /// that finds the receive posted writes straight into `buf`. The buffer must not be touched until `fmpl_irecv_wait`
    /// or `fmpl_irecv_test` has completed the request, or `fmpl_irecv_cancel` has withdrawn it.
    ///
    /// * buf: where the message goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY`,
    /// `FMPL_ERR_PEER`.
    ///
    /// Source: FMPL paper, section 3.2.2.
    unsafe fn fmpl_irecv(buf: *mut c_void, size: usize, src: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::irecv(comm, bytes(buf, size).into(), src, mai);

    /// Waits until the buffer of the isend on (`dst`, `mai`, `comm`) may be written again; spools like `fmpl_send`.
    ///
    /// * dst: the receiver's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such isend; otherwise as `fmpl_send`.
    ///
    /// Source: FMPL paper, section 3.2.2.
    fn fmpl_isend_wait(dst: c_int, mai: c_int, comm: fmpl_comm) = p2p::isend_wait(comm, dst, mai);

    /// Waits until the message of the irecv on (`src`, `mai`, `comm`) is in its buffer.
    ///
    /// * src: the sender's rank.
    /// * mai: the index, or `FMPL_TAG_ANY` for the any-index receive.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such irecv; otherwise as `fmpl_recv`.
    ///
    /// Source: FMPL paper, section 3.2.2.
    fn fmpl_irecv_wait(src: c_int, mai: c_int, comm: fmpl_comm) = p2p::irecv_wait(comm, src, mai);

    /// Completes the isend on (`dst`, `mai`, `comm`) if that needs no waiting. When `done` is set to 1 the request is
    /// completed as by `fmpl_isend_wait`.
    ///
    /// * dst: the receiver's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    ///
    /// Returns: as `fmpl_isend_wait`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_isend_test(dst: c_int, mai: c_int, comm: fmpl_comm, done: Out<c_int>) -> done
        = p2p::isend_test(comm, dst, mai);

    /// Completes the irecv on (`src`, `mai`, `comm`) if its message is there. When `done` is set to 1 the request is
    /// completed as by `fmpl_irecv_wait`.
    ///
    /// * src: the sender's rank.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    ///
    /// Returns: as `fmpl_irecv_wait`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_irecv_test(src: c_int, mai: c_int, comm: fmpl_comm, done: Out<c_int>) -> done
        = p2p::irecv_test(comm, src, mai);

    /// Length and index of the last completed receive on (`src`, `mai`, `comm`). It is to be asked soon: of peers on
    /// other nodes that have been forgotten since, only 4096 lengths are kept, the latest (docs/memory.md).
    ///
    /// * src: the sender's rank.
    /// * mai: the index that the receive gave, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    /// * size: set to the message's length in bytes, which is more than the buffer's when it was truncated; may be
    ///   NULL.
    /// * index: set to the index that it matched; may be NULL.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when no receive has been completed there; `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`,
    /// `FMPL_ERR_COMM`.
    fn fmpl_received(src: c_int, mai: c_int, comm: fmpl_comm, size: Out<usize>, index: Out<c_int>)
        = p2p::received(comm, src, mai).map(|received| {
            size.set(received.len);
            index.set(received.index);
        });

    /// Looks whether a receive would find a message now, and how long it is. Takes nothing.
    ///
    /// * src: the sender's rank.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    /// * there: set to 1 or 0.
    /// * size: set to the message's length in bytes when it is there, else to 0.
    ///
    /// Returns: `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`; `FMPL_ERR_ARGUMENT` for a NULL pointer;
    /// `FMPL_ERR_PEER`.
    fn fmpl_probe(src: c_int, mai: c_int, comm: fmpl_comm, there: Out<c_int>, size: Out<usize>) needs there or size
        = p2p::probe(comm, src, mai).map(|found| {
            there.set(found.is_some());
            size.set(found.unwrap_or(0));
        });

    /// Withdraws the irecv on (`src`, `mai`, `comm`), unless a message is already on its way into the buffer.
    ///
    /// * src: the sender's rank.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    /// * cancelled: set to 1: the buffer is the caller's again; or to 0: too late, complete the request as usual.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such irecv; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_irecv_cancel(src: c_int, mai: c_int, comm: fmpl_comm, cancelled: Out<c_int>) -> cancelled
        = p2p::irecv_cancel(comm, src, mai);

    // # Modes of sending

    /// Sets the spool and the time-out of all communicators that have none of their own. Without it the spool has 16
    /// MiB and the time-out is 10 ms. May be called again at any time: size and time-out hold at once for later sends,
    /// and what is spooled stays.
    ///
    /// * buf: where the spool is to lie; may be NULL. In a job on several nodes it does, in units of 64 KiB, after what
    ///   it has used by then; the memory is the library's until the last finalize, and all zero then. On one node
    ///   receivers fetch spooled messages from memory that the library allocates, up to `size`, and this is left
    ///   untouched; so is memory that is not private.
    /// * size: bytes that may be spooled.
    /// * timeout_ms: how long a send of more than the eager size (`FMPL_EAGER`) waits at least for its receive before
    ///   it copies the message into the spool, in milliseconds; shorter ones never wait for it, unless that size is 0. 0
    ///   is buffered mode, `FMPL_TIMEOUT_INFINITE` synchronous mode, in which every send waits, all else standard mode.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a negative time-out that is not `FMPL_TIMEOUT_INFINITE`; `FMPL_ERR_MEMORY`.
    ///
    /// Source: FMPL paper, section 3.2.1.
    unsafe fn fmpl_sendbuf_set(buf: *mut c_void, size: usize, timeout_ms: c_int)
        = p2p::sendbuf_set(None, size, timeout_ms).and_then(|()| lie_in(buf, size));

    /// Sets the spool and the time-out of one communicator.
    ///
    /// * comm: the communicator.
    /// * buf: as for `fmpl_sendbuf_set`.
    /// * size: its bytes.
    /// * timeout_ms: milliseconds, as for `fmpl_sendbuf_set`.
    ///
    /// Returns: as `fmpl_sendbuf_set`; `FMPL_ERR_COMM`.
    unsafe fn fmpl_comm_sendbuf_set(comm: fmpl_comm, buf: *mut c_void, size: usize, timeout_ms: c_int)
        = p2p::sendbuf_set(Some(comm), size, timeout_ms).and_then(|()| lie_in(buf, size));

    /// Looks at the spool.
    ///
    /// * nsend: set to the number of spooled messages that were delivered since the last check.
    /// * nspool: set to the number of those that still wait.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: FMPL paper, section 3.2.1.
    fn fmpl_sendbuf_check(nsend: Out<c_int>, nspool: Out<c_int>) needs nsend or nspool
        = p2p::sendbuf_check().map(|(delivered, waiting)| {
            nsend.set(delivered);
            nspool.set(waiting);
        });
}

// # Time, progress

/// Time in seconds since some moment in the past; the same origin for all ranks of a node. May be called at any time.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_wtime() -> c_double {
    comm::wtime()
}

calls! {
    /// Moves what can be moved. On shared memory nothing needs it for messages to be delivered.
    ///
    /// Returns: `FMPL_ERR_PEER` naming a rank that has died.
    fn fmpl_progress() = comm::progress();

    /// A descriptor for event loops (`poll`, `epoll`): it becomes readable when a request of this process completes.
    /// Read it empty (8 bytes), then test the requests. It belongs to the library and stays open until finalize.
    ///
    /// * fd: set to the descriptor.
    ///
    /// Returns: `FMPL_ERR_SYSTEM`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_event_fd(fd: Out<c_int>) -> fd = comm::event_fd();
}

// # Memory that peers can reach

/// Allocates memory that the ranks of the node can reach directly: messages received there are stored by the sender with one
/// copy and no system call. Aligned to 64 bytes at least.
///
/// * size: bytes.
///
/// Returns: the memory, or NULL; `fmpl_last_error` says why.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_alloc(size: usize) -> *mut c_void {
    match comm::alloc(size) {
        Ok(memory) => memory.cast(),
        Err(error) => {
            fail(error);
            ptr::null_mut()
        }
    }
}

/// Gives memory back that came from `fmpl_alloc`. No request may still use it.
///
/// * ptr: what `fmpl_alloc` returned; NULL: nothing happens.
///
/// Returns: `FMPL_ERR_ARGUMENT` for memory that `fmpl_alloc` did not return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_free(ptr: *mut c_void) -> c_int {
    if ptr.is_null() {
        return 0;
    }
    // SAFETY: the caller promises that it came from `fmpl_alloc` and that nobody uses it.
    number(unsafe { comm::free(ptr.cast(), Unused::promised()) })
}

// # Errors and version

/// What an error code means, in a few words. May be called at any time.
///
/// * code: what a function returned.
///
/// Returns: a text that always stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_strerror(code: c_int) -> *const c_char {
    meaning(code).as_ptr()
}

/// What went wrong in the last call of this thread that failed: the operation, rank, peer, index, sizes. May be called at any
/// time.
///
/// Returns: a text that stays valid until the thread's next failing call; "" when no call has failed.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_last_error() -> *const c_char {
    last_error()
}

/// The version of the library that is running, to be compared with `FMPL_VERSION`. May be called at any time.
///
/// Returns: 10000 * major + 100 * minor + patch.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_version() -> c_int {
    FMPL_VERSION
}
