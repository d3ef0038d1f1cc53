//! Shared memory within a node: regions, attaching to a peer's region, copying between address spaces.

pub mod attach;
pub mod cma;
pub mod heap;
pub mod region;
