//! The seam between messages and machines.

pub mod shm;
