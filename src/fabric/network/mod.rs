//! Other nodes, by whichever network there is: what two processes say to each other, and how their connections come and go.
//!
//! | file | what it does |
//! |---|---|
//! | [`device`] | the seam: what is asked of a network |
//! | [`region`] | registered memory |
//! | [`interface`] | which interfaces of this machine lead to others |
//! | [`cache`] | user memory that stays registered |
//! | [`bounce`] | registered memory that bytes pass through |
//! | `arrivals` | what comes without being asked for |
//! | `hello` | what two processes say to each other to connect |
//! | `stamps` | by which they know that it is them: numbers and checks |
//! | `record` | what is written to a peer, as it is composed |
//! | [`link`] | what a process has with one peer, and what is under way there |
//! | `handshake` | how a connection is made, given up and made again: states and packets |
//! | `turns` | doing it, on first use and when others need the place |
//! | `crowd` | whether strangers are let in |
//! | `forget` | peers that nothing is under way with are forgotten |
//! | `packed` | peers that have sent what nobody receives, in few bytes |
//! | [`multicast`] | groups to all of whose members a packet goes at once |
//! | [`room`] | how many connections the processes of a node have together |
//! | `ways` | which way each peer is to take, by how much goes there |
//! | `kept` | connections that are used again |
//! | `costs` | what the ways cost here |
//! | `switching` | has the links take these ways |
//! | [`own`] | the connection with oneself |
//! | [`control`] | this process on the fabric: first contact (`contact`), and the thread that answers |
//!
//! Nothing here knows which network it is; [`choose`](super::networks::choose) does.

mod arrivals;
pub mod bounce;
pub mod cache;
pub mod control;
mod costs;
mod crowd;
pub mod device;
mod forget;
mod handshake;
mod hello;
pub mod interface;
mod kept;
pub mod link;
pub mod multicast;
pub mod own;
mod packed;
mod record;
pub mod region;
pub mod room;
#[cfg(all(test, not(any(loom, miri))))]
pub mod simulated;
mod stamps;
mod switching;
mod turns;
mod ways;

pub use device::{Access, Change, Piece, Place};
pub use hello::{Card, addressee};
pub use record::Record;
pub use switching::Choice;
pub use ways::Way;
