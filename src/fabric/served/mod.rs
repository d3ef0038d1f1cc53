//! What networks have in common whose requests are carried out by this process itself, where others have a device for that.
//!
//! | file | what it does |
//! |---|---|
//! | `frame` | how a request goes from one end to the other |
//! | `memory` | what peers may reach, by keys; words that are seen whole |
//! | `unsure` | copies to and from memory of the program, which may go at any moment |
//! | [`port`] | the address that is used, and how ends are named |

pub(super) mod frame;
pub(super) mod memory;
pub mod port;
mod unsure;
