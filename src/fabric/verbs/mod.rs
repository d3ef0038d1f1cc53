//! RDMA between nodes: InfiniBand and RoCE through libibverbs, which is loaded at run time.
//!
//! | file | what it does |
//! |---|---|
//! | [`ffi`] | the library's types, checked when compiled |
//! | [`load`] | finding the library |
//! | [`device`] | devices, ports, addresses; which to use |
//! | [`region`] | protection domains, registered memory |
//! | [`cache`] | user memory that stays registered |
//! | [`completion`] | completion queues and their event channels |
//! | [`queue_pair`] | reliable connections and datagrams |
//! | `arrivals` | what comes without being asked for |
//! | `hello` | what two processes say to each other to connect |
//! | `stamps` | by which they know that it is them: numbers and checks |
//! | [`link`] | what a process has with one peer, and what is under way there |
//! | `handshake` | how a connection is made, given up and made again: states and packets |
//! | `turns` | doing it, on first use and when others need the place |
//! | [`multicast`] | groups to all of whose members a packet goes at once |
//! | [`room`] | how many connections the processes of a node have together |
//! | [`own`] | the connection with oneself |
//! | [`control`] | this process on the fabric: first contact (`contact`), and the thread that answers |
//!
//! Resources hold what they were made from, so none outlives another: a queue pair keeps its queues, domain and device open.

mod arrivals;
pub mod cache;
pub mod completion;
pub mod control;
pub mod device;
pub mod ffi;
mod handshake;
mod hello;
pub mod link;
pub mod load;
pub mod multicast;
pub mod own;
pub mod queue_pair;
pub mod region;
pub mod room;
mod stamps;
mod turns;

pub use hello::{Card, Place};
