//! RDMA between nodes: InfiniBand and RoCE through libibverbs, which is loaded at run time.
//!
//! | file | what it does |
//! |---|---|
//! | [`ffi`] | the library's types, checked when compiled |
//! | [`load`] | finding the library |
//! | [`device`] | devices, ports, addresses; which to use |
//! | [`region`] | protection domains, registered memory |
//! | [`completion`] | completion queues and their event channels |
//! | [`queue_pair`] | reliable connections and datagrams |
//!
//! Resources hold what they were made from, so none outlives another: a queue pair keeps its queues, domain and device open.

pub mod completion;
pub mod device;
pub mod ffi;
pub mod load;
pub mod queue_pair;
pub mod region;
