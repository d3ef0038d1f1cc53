//! The job and its communicators: the safe Rust interface, and the calls about all ranks that the C interface shares with it.
//!
//! | file | what it does |
//! |---|---|
//! | `job` | init, finalize and the like, as the C interface calls them |
//! | `create`, `agree` | making and freeing communicators; how their ranks agree |
//! | `session` | [`init`], [`Job`]: the same with a lifetime |
//! | `communicator` | [`Comm`]: the blocking calls |
//! | `scope` | [`Comm::scope`]: non-blocking calls whose buffers are borrowed until they are over |
//! | [`requests`] | requests of all kinds by their names, several at a time |
//! | `collective` | the collective calls; [`Reduce`]: what elements are combined with |
//! | `group` | [`Communicator`]: one beside the world, freed when dropped |
//! | `channel` | [`Channel`]: a (peer, index) for one owner, without a claim for each call |
//! | `buffer` | [`Buffer`]: memory that peers reach directly |
//! | `loan` | [`LoanMut`], [`Loan`]: messages that are handed over |
//! | `global` | [`Global`]: global memory |
//! | `shared_window` | [`SharedWindow`]: memory of a node's ranks side by side |
//! | `watched` | [`Watched`]: a rank of a running job, seen from without |
//! | `awaiting` | requests as futures |
//! | `event` | [`Event`]: a descriptor for event loops and async code |
//! | `plain`, `shape` | what messages consist of: [`Plain`] values, [`Strided`] runs, lists |
//! | [`claim`] | which thread may use which index; also for bindings to other languages |

mod agree;
mod awaiting;
mod buffer;
mod channel;
pub mod claim;
mod collective;
mod communicator;
mod counter;
mod create;
mod event;
mod global;
mod grid;
mod group;
pub(crate) mod job;
mod loan;
mod memory;
mod plain;
mod prepared;
mod reductions;
pub mod requests;
mod scope;
mod session;
mod shape;
mod shared_window;
#[cfg(all(test, not(any(loom, miri))))]
mod simulated;
mod stats;
mod watched;

pub use awaiting::Awaited;
pub use buffer::Buffer;
pub use channel::{Channel, Receiver, Sender};
pub use communicator::{Comm, FromAny, PROC_NULL, Peer, Received, Ticket};
pub use counter::{BY_WAY, BY_WAY_BYTES, Counter, counter, traffic};
pub use create::*;
pub use event::Event;
pub use global::{Global, Handle, Remote, Shared, Transfer, Word};
pub use grid::*;
pub use group::Communicator;
pub use job::*;
pub use loan::{AnyLoanRequest, Loan, LoanMut, LoanRequest, Refused};
pub use memory::{Part, mapped_by, memory};
pub use plain::Plain;
pub use prepared::{PreparedRecv, PreparedSend};
pub use reductions::{
    AbsMax, AbsMin, Band, Bor, Bxor, Land, Lor, Lxor, MaxLoc, MaxVal, MinLoc, MinVal, Prod, Reduce, Sum,
};
pub use scope::{AnyRequest, CollectiveRequest, Lent, McastRequest, RecvRequest, Scope, SendRequest};
pub use session::{Id, Job, Mode, init, init_id, init_with};
pub use shape::{Strided, StridedMut};
pub use shared_window::*;
pub use watched::Watched;
