//! The seam between messages and machines: regions of memory, reaching a peer's, copying between address spaces.
//!
//! The way to a peer is chosen once, at first contact. On a node ([`shm`]) what is chosen is plain memory, so that the message
//! path above consists of loads and stores with nothing in between. [`network`] reaches peers on other nodes, by a device of
//! whichever network [`networks`] has chosen: [`verbs`], [`ofi`], [`tcp`], [`datagram`] or [`two_ways`]
//! of them.

pub mod areas;
pub mod datagram;
pub mod network;
pub mod networks;
pub mod ofi;
pub mod served;
pub mod shm;
pub mod tcp;
pub mod two_ways;
pub mod verbs;
