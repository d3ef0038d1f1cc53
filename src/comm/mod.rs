//! The job and its communicators: the safe interface for Rust.

mod job;

pub use job::*;
