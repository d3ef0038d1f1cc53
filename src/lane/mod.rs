//! A lane: the memory that one pair of ranks shares for one communicator, and what each side keeps beside it.
//!
//! A lane comes into being at first contact, carved from the lower rank's region at a place that both sides can compute, so
//! that neither needs the other's help. [`map`] says where in it each record lies, [`record`] what a record is.
//!
//! [`progress`] is what each side keeps for an index beside the shared window, [`pair`] what all communicators share with a peer,
//! [`distance`] how far apart the cores of the two are, [`traffic`] by which way the messages went.

pub mod address;
pub mod any;
pub mod distance;
pub mod loan;
pub mod map;
pub mod pair;
pub mod peer_spool;
pub mod progress;
pub mod record;
pub mod remote;
pub mod table;
pub mod traffic;
pub mod watched;

pub use address::{COMM_NULL, COMM_WORLD, PROC_NULL, TAG_ANY};
pub use any::{AnyRequest, AnyState};
pub use here::*;
pub use pair::Pair;
pub use peer_spool::{PeerBlock, PeerSpool};
pub use progress::*;
pub use table::{LaneTable, Used};
pub use traffic::{Traffic, WayTaken};

mod here;
