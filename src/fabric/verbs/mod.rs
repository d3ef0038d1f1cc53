//! InfiniBand and RoCE through libibverbs, which is loaded at run time: a network as [`network::device`](super::network::device) wants it.
//!
//! | file | what it does |
//! |---|---|
//! | [`ffi`] | the library's types, checked when compiled |
//! | [`load`] | finding the library |
//! | [`device`] | devices, ports, addresses; which to use |
//! | [`protection`] | protection domains, registered memory |
//! | [`completion`] | completion queues and their event channels |
//! | [`queue_pair`] | reliable connections and datagrams |
//! | `connection` | one end of a connection, as the protocol between nodes wants it |
//! | [`network`] | a port, as the protocol between nodes wants it |
//! | [`carrier`] | the same port without connections: it carries the datagrams of channels |
//! | `rings` | room for the datagrams of one peer each |
//! | [`multicast`] | groups to all of whose members a packet goes at once |
//!
//! Resources hold what they were made from, so none outlives another: a queue pair keeps its queues, domain and device open.

pub mod carrier;
pub mod completion;
mod connection;
pub mod device;
pub mod ffi;
pub mod load;
pub mod multicast;
pub mod network;
pub mod protection;
pub mod queue_pair;
mod rings;
