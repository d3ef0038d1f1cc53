//! Shared memory on one node.
//!
//! Each rank owns one [`region`] and hands its descriptor to whom it meets ([`attach`]); from then on the two reach each other
//! by plain loads and stores. Private buffers are reached by the kernel's cross-memory copies ([`cma`]) or, when they come from
//! `fmpl_alloc` ([`heap`]), directly.

pub(crate) mod across;
pub mod attach;
pub mod cma;
mod greet;
pub mod heap;
mod hello;
pub mod peer;
mod pulse;
pub mod region;
mod service;
mod socket;

#[cfg(test)]
mod tests;
