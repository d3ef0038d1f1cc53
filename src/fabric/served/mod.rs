//! What networks have in common whose requests are carried out by this process itself, where others have a device for that.
//!
//! | file | what it does |
//! |---|---|
//! | `frame` | how a request goes from one end to the other |
//! | `memory` | what peers may reach, by keys; words that are seen whole |
//! | `unsure` | copies to and from memory of the program, which may go at any moment |
//! | `news` | what has come, until somebody is told of it |
//! | `sleeper` | the thread of the fabric sleeps, or stays aside |
//! | [`port`] | the address that is used, and how ends are named |

pub(super) mod frame;
pub(super) mod memory;
pub(super) mod news;
pub mod port;
pub(super) mod sleeper;
mod unsure;
