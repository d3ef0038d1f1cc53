//! Agreement among some ranks of a communicator, of which the others know nothing.
//!
//! The tree is that of their places in the list that each of them has given. Whom a death concerns is one of the list, so nobody tells the whole
//! communicator of it: trouble goes through the tree, in the letters. A rank that misses the letter of one below sends its own up all the
//! same; one that misses the one from above sends trouble down. So each wait is for a rank that answers or is dead, and the living can
//! agree again without the dead.

use super::{Agreed, Call, Letter, children, decide, join, parent, settle};
use crate::base::error::Result;
use crate::base::plain::{bytes_of, bytes_of_mut};
use crate::lane::map::PART_SLOT;
use crate::p2p::context::{Context, Offer};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::signal;

/// Agrees with these ranks of `context` on a new communicator; this process is the one at `place`. The units are taken at this rank.
pub fn agree(ep: &'static Endpoint, context: &Context, ranks: &[u32], place: u32) -> Result<Agreed> {
    let part = Part { ep, context, ranks, place, number: number(ranks) };
    settle(ep, context, Call::Group, |offer| Ok((part.exchange(offer), Vec::new())))
}

struct Part<'a> {
    ep: &'static Endpoint,
    context: &'a Context,
    ranks: &'a [u32],
    place: u32,
    number: u64,
}

impl Part<'_> {
    /// Up and down the tree once.
    fn exchange(&self, offer: &Offer) -> Letter {
        let mut letter = Letter::of(self.ep, Call::Group, self.number, offer);
        let mut missing = Vec::new();
        for child in children(self.place, self.ranks.len() as u32) {
            match self.take(child) {
                Ok(theirs) => join(&mut letter, &mut Vec::new(), &theirs, &[]),
                Err(error) => {
                    missing.push(child);
                    letter.trouble(error.code() as u64, self.world_rank(child));
                }
            }
        }
        if self.place == 0 {
            decide(&mut letter);
        } else {
            let above = parent(self.place);
            match self.give(above, &letter).and_then(|()| self.take(above)) {
                Ok(decided) => letter = decided,
                Err(error) => letter.trouble(error.code() as u64, self.world_rank(above)),
            }
        }
        for child in children(self.place, self.ranks.len() as u32).filter(|child| !missing.contains(child)) {
            // One that is dead by now needs no letter; who uses the communicator hears of it there.
            let _ = self.give(child, &letter);
        }
        letter
    }

    fn world_rank(&self, place: u32) -> u64 {
        self.context.group.world_rank(self.ranks[place as usize]).into()
    }

    fn give(&self, place: u32, letter: &Letter) -> Result<()> {
        let lane = self.ep.lane_of(self.context, self.ranks[place as usize] as i32)?;
        signal::message(self.ep, lane, PART_SLOT, bytes_of(std::slice::from_ref(letter)))
    }

    fn take(&self, place: u32) -> Result<Letter> {
        let lane = self.ep.lane_of(self.context, self.ranks[place as usize] as i32)?;
        let mut letter = Letter::NONE;
        signal::receive(self.ep, lane, PART_SLOT, bytes_of_mut(std::slice::from_mut(&mut letter)))?;
        Ok(letter)
    }
}

/// What tells lists of ranks apart (FNV-1a).
fn number(ranks: &[u32]) -> u64 {
    ranks.iter().fold(0xcbf2_9ce4_8422_2325, |hash, rank| (hash ^ u64::from(*rank)).wrapping_mul(0x100_0000_01b3))
}
