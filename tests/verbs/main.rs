//! The fabric between nodes, as far as this machine has what it takes.
//!
//! | file | what it shows |
//! |---|---|
//! | `against_crate` | our declarations are those of the crate `ibverbs-sys`, and a device says the same through both (feature `ibverbs`) |
//! | `layout` | our declarations are those of the C header, where there is one |
//! | `remap` | memory that is unmapped under the registration cache |
//! | `resources` | two queue pairs of one process write, read and notify each other, on every active port |
//!
//! Where there is no RDMA device the tests of `resources` have nothing to do, and say so; `tests/rig` gives them devices.

#[cfg(feature = "ibverbs")]
mod against_crate;
#[path = "../headers/mod.rs"]
mod headers;
mod layout;
mod remap;
mod resources;
#[path = "../skip/mod.rs"]
pub mod skip;
