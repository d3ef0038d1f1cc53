//! The network by libfabric, as far as this machine has what it takes.
//!
//! | file | what it shows |
//! |---|---|
//! | `layout` | our declarations are those of the C headers, where there are some |
//!
//! What messages promise over it the other programs show: `tests/run libfabric` runs them between pretended nodes.

mod layout;
#[path = "../skip/mod.rs"]
pub mod skip;
