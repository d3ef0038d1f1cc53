//! The job and its communicators.

mod job;

pub use job::*;
