//! Data between nodes without any connection, by datagrams that may be lost: a network as [`network::device`](super::network::device) wants it.
//!
//! | file | what it does |
//! |---|---|
//! | `carrier` | the seam: what is asked of who carries datagrams |
//! | `udp` | a carrier: one socket of the process. Another one is a queue pair of [`verbs`](super::verbs) |
//! | `weather` | a carrier over another, which loses, doubles and delays as a seed says: for tests |
//! | `packet` | what a datagram looks like, and the check by which a stranger's is known |
//! | `flow` | the rules by which frames arrive once and in order |
//! | `channel` | one end of what two processes have with each other: requests (`out`), and what comes (`inn`) |
//! | `home` | what all channels of a process share: memory, bounds, counts, who has something to do |
//! | [`network`] | a port, as the protocol between nodes wants it |
//!
//! A **channel** is the network's pair. It costs what its structure takes, and nothing at all elsewhere: no descriptor, no buffer, no queue. A
//! request becomes frames, each of a datagram's length at most, which say where their bytes belong; short ones leave together. The other
//! end's process carries them out in order, as a device would. What comes early is kept within a bound of the whole process, or comes again.

pub(super) mod carrier;
mod channel;
mod flow;
mod home;
pub mod network;
mod packet;
pub(super) mod udp;
mod weather;
