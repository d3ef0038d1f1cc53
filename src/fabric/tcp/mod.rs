//! TCP by the system's own sockets: a network as [`network::device`](super::network::device) wants it, which every machine has.
//!
//! | file | what it does |
//! |---|---|
//! | `greeting` | which connection this is |
//! | `socket` | calls of the system |
//! | `congestion` | what decides how fast a connection sends |
//! | `connection` | one end of a connection, as the protocol between nodes wants it |
//! | `home` | what all connections of a process share |
//! | [`network`] | a port, as the protocol between nodes wants it |
//!
//! A connection of the protocol is one of TCP. A request is a frame with its bytes behind it, and one call of the system sends both; the other
//! end's process does what the frame asks for, as a device would: it receives long writes right into the memory that they are for. That is
//! done by whoever waits there, or by the thread of the fabric. What was posted is executed in order, since the frames come in order.

pub(super) mod congestion;
mod connection;
mod greeting;
mod home;
pub mod network;
mod socket;
