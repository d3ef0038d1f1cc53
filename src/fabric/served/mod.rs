//! What networks have in common whose requests are carried out by this process itself, where others have a device for that.
//!
//! | file | what it does |
//! |---|---|
//! | `frame` | how a request goes from one end to the other |
//! | `held_back` | when what is held back of a burst leaves |
//! | `memory` | what peers may reach, by keys; words that are seen whole |
//! | `unsure` | copies to and from memory of the program, which may go at any moment |
//! | `news` | what has come, until somebody is told of it |
//! | `sleeper` | the thread of the fabric sleeps, or stays aside |
//! | [`port`] | the address that is used, and how ends are named |

pub(super) mod frame;
pub(super) mod held_back;
pub(super) mod memory;
pub(super) mod news;
pub mod port;
pub(super) mod sleeper;
mod unsure;

use super::network::device::{Atomics, Limits};
use super::network::link::PIECES;

/// Longest request in bytes.
const LONGEST: u32 = 1 << 20;
/// Registering is little more than a note here.
const COPY_MOST: u32 = 512;

/// What such networks have in common, whose pair has failed after so long without an answer; and no more.
pub(super) fn limits(silence_ns: u64) -> Limits {
    Limits {
        longest: LONGEST,
        write_most: LONGEST,
        copy_most: COPY_MOST,
        pieces: PIECES,
        atomics: Atomics::Both,
        silence_ns,
        holds_pages: false,
        reads_early: false,
        is_driven: true,
        has_annexes: false,
        appends: false,
    }
}
