//! Message passing by remote memory writes, matched at the sender.
//!
//! A message is addressed by *(communicator, peer, index)*. The index names a fixed slot of memory, not a tag in a queue.
//! The receiver writes a header, the **posting**, into the sender's memory; the sender sees it and writes the payload
//! straight into the receiver's buffer, then publishes the **landing**: the message's sequence number, its length and, when it
//! is short, its bytes. When no receive comes in time the sender buffers the message in its **spool**, from which the
//! receiver fetches it by itself. Matching is therefore one look at one cache line, with one message outstanding or with 30 000.
//!
//! ```no_run
//! fn main() -> fmpl::Result<()> {
//!     let job = fmpl::init(1)?;
//!     let world = job.world();
//!     if world.rank() == 0 {
//!         world.send(&[3.0, 4.0], 1, 0)?;
//!     } else if world.rank() == 1 {
//!         let mut numbers = [0.0; 2];
//!         world.recv(&mut numbers, 0, 0)?;
//!         assert_eq!(numbers, [3.0, 4.0]);
//!     }
//!     job.finalize()
//! }
//! ```
//!
//! `cargo build && fmpl run -n 2 ./program` starts it on two ranks. [`Comm`] has the blocking calls, [`Comm::scope`] the
//! non-blocking ones, [`Channel`] an index for one owner, [`Buffer`] memory that peers reach directly, [`Event`] a descriptor for
//! event loops. All of it is safe: nothing that compiles lets a buffer go while another process may write into it, and threads
//! that get into each other's way get an error.
//!
//! The layers, each importing only from those below it:
//!
//! | module | what lives there |
//! |---|---|
//! | [`ffi`] | the C interface (`include/fmpl.h`) and the Fortran names |
//! | [`comm`] | [`Job`], [`Comm`]: the safe Rust interface |
//! | [`rma`] | global memory: one-sided copies and atomic operations between any two ranks |
//! | [`coll`] | collective calls: barrier, broadcast, reduce |
//! | [`p2p`] | sending, receiving, requests, spool, transfers |
//! | [`lane`] | the memory that one ordered pair of ranks shares |
//! | [`fabric`] | regions of memory, attaching to a peer's, copying between address spaces |
//! | [`launch`] | who am I, how many are we, where are the others |
//! | [`wait`] | spin, yield, sleep; doorbells; the stall report |
//! | [`base`] | errors, settings, the atomics that a model checker can replace |
//!
//! A Rust program uses what is named at the top of this page. The calls of the layers below are what the C interface is made of, and ask of
//! their caller what it asks: one thread at a time for each direction of a (peer, index), and for the completion of a request, also
//! where they are no `unsafe fn`.

pub mod base;
pub mod coll;
pub mod comm;
pub mod fabric;
pub mod ffi;
pub mod lane;
pub mod launch;
pub mod p2p;
pub mod rma;
pub mod wait;

pub use base::error::{Code, Error, Result};
pub use base::located::Located;
#[cfg(feature = "bytemuck")]
pub use base::plain::Pod;
pub use base::short_float::{Bf16, F16};
#[cfg(not(loom))]
pub use comm::{
    AbsMax, AbsMin, AnyLoanRequest, AnyRequest, Awaited, Band, Bor, Buffer, Bxor, Channel, CollectiveRequest, Comm,
    Communicator, Counter, Event, FromAny, Global, Handle, Id, Job, Land, Lent, Loan, LoanMut, LoanRequest, Lor, Lxor,
    MaxLoc, MaxVal, McastRequest, MinLoc, MinVal, Mode, PROC_NULL, Peer, Plain, PreparedRecv, PreparedSend, Prod,
    Received, Receiver, RecvRequest, Reduce, Refused, Remote, Scope, SendRequest, Sender, Shared, SharedWindow,
    Strided, StridedMut, Sum, Ticket, Transfer, Watched, Word, init, init_id, init_with, initialized, version, wtime,
};
pub use lane::{Traffic, WayTaken};
pub use rma::GlobalAddress;
