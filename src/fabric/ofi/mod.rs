//! Whatever libfabric reaches, which is loaded at run time: a network as [`network::device`](super::network::device) wants it.
//!
//! | file | what it does |
//! |---|---|
//! | [`ffi`] | the library's types, checked when compiled |
//! | [`load`] | finding the library |
//! | [`provider`] | its providers, what they promise, which is used |
//! | [`domain`] | what all endpoints of a process share; registered memory |
//! | [`queue`] | completion queues |
//! | [`endpoint`] | endpoints, and what is posted by them |
//! | `changes` | changes of words, by the processor of whose they are |
//! | `pairs` | what each write brings along, and that none is missed |
//! | `held` | writes that leave as one |
//! | `sockets` | what decides how fast connections over TCP send |
//! | `connection` | one end of a connection, as the protocol between nodes wants it |
//! | [`network`] | a port, as the protocol between nodes wants it |
//!
//! Endpoints are connectionless (`FI_EP_RDM`). A connection has one at each end, of its own: closing it is what keeps a peer from memory
//! that it could reach. What arrives by it is numbered, so nothing is lost unnoticed (see `connection`).
//!
//! Resources hold what they were made from, so none outlives another.

mod changes;
mod connection;
pub mod domain;
pub mod endpoint;
pub mod ffi;
mod held;
pub mod load;
pub mod network;
mod pairs;
pub mod provider;
pub mod queue;
mod sockets;

/// Bytes of a request at most whose order with others has to be kept.
const LONGEST: usize = 64 << 10;
