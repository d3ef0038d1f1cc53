//! Agreement among some ranks of a communicator, of which the others know nothing.
//!
//! The tree is that of their ranks in order, so whoever is above has the lower rank, and two with other lists never take each other's letters
//! for an answer. Whom a death concerns is one of the list, so nobody tells the whole communicator of it: trouble goes through the tree,
//! in the letters. A rank that misses the letter of one below sends its own up all the same; one that misses the one from above sends
//! trouble down. So each wait is for a rank that answers or is dead, and the living can agree again without the dead.
//!
//! ```text
//!   first    up: what each has to offer          down: the place, or why there is none
//!   then     up: I know the place                down: go, or not
//! ```
//! Without the second round a rank whose parent dies in the first would not know the communicator that others have with it. One that knows
//! the place and misses *go* says there that it has freed it.
//!
//! A death may fall so that some of them have agreed and others have not. Who hears of it says so in its life of `context`, as in other
//! agreements, and whoever waits for that rank with the dead one in its list goes. Those that have gone may be in a call without the dead
//! already: so a letter of another list is kept for the call that it belongs to.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use super::{Agreed, Call, Letter, children, decide, join, parent, refused, settle};
use crate::base::error::{Code, Error, Result};
use crate::base::key;
use crate::base::plain::{bytes_of, bytes_of_mut};
use crate::lane::map::PART_SLOT;
use crate::p2p::context::{Context, Offer};
use crate::p2p::endpoint::Endpoint;

/// Agrees with these ranks of `context`, of which this process is one, on a new communicator. The units are taken at this rank; with an error
/// it has no use for them, and has to say so at the place.
pub fn agree(ep: &'static Endpoint, context: &Context, ranks: &[u32]) -> Result<(Agreed, Option<Error>)> {
    let mut tree = ranks.to_vec();
    tree.sort_unstable();
    let place = tree.iter().position(|rank| *rank == context.group.rank()).unwrap_or(0) as u32;
    let part = Part { ep, context, ranks: &tree, place, number: number(ranks), lost: RefCell::default() };
    let mut world: Vec<u32> = tree.iter().map(|rank| context.group.world_rank(*rank)).collect();
    world.sort_unstable();
    *context.part.lock().unwrap_or_else(|e| e.into_inner()) = world;
    let agreed = part.agree();
    context.part.lock().unwrap_or_else(|e| e.into_inner()).clear();
    agreed
}

impl Letter {
    /// What a rank says that knows the place, or why it does not.
    fn confirmed(&self, ranks: u64, offer: &Offer) -> Letter {
        // What was offered is no matter any more; that it was another stretch than others', which is tried again, is found out before.
        Letter { ranks, unit: offer.first.into(), ..*self }
    }
}

struct Part<'a> {
    ep: &'static Endpoint,
    context: &'a Context,
    /// In their order in `context`, which is not that of the new communicator.
    ranks: &'a [u32],
    place: u32,
    /// What tells this list from others.
    number: u64,
    /// Places with which there are no letters any more in this call: who has left it, or is dead. Another letter would wait for them.
    lost: RefCell<BTreeSet<u32>>,
}

impl Part<'_> {
    fn agree(&self) -> Result<(Agreed, Option<Error>)> {
        let (ep, context) = (self.ep, self.context);
        if let Some(dead) = ep.dead_member(context) {
            ep.say_dead(dead);
        }
        if let Some(dead) = ep.dead_of_part(context) {
            return Err(ep.is_broken_by(context, dead));
        }
        let mut gone = None;
        let agreed = settle(ep, context, Call::Group, |offer| {
            let place = self.exchange(Letter::of(ep, Call::Group, self.number, offer), decide);
            let go = self.exchange(place.confirmed(self.number, offer), |_| ());
            gone = (!go.is_good()).then_some(go);
            Ok((place, Vec::new()))
        })?;
        Ok((agreed, gone.map(|letter| refused(ep, context, Call::Group, &letter))))
    }

    /// Up and down the tree once; `decide` is the root's.
    fn exchange(&self, mut letter: Letter, decide: impl FnOnce(&mut Letter)) -> Letter {
        for child in children(self.place, self.ranks.len() as u32) {
            match self.with(child, || self.take(child)) {
                Ok(theirs) => join(&mut letter, &mut Vec::new(), &theirs, &[]),
                Err(code) => letter.trouble(code as u64, self.about(child)),
            }
        }
        if self.place == 0 {
            decide(&mut letter);
        } else {
            let above = parent(self.place);
            match self.with(above, || self.give(above, &letter).and_then(|()| self.take(above))) {
                Ok(decided) if decided.ranks == self.number => letter = decided,
                Ok(_) => letter.trouble(Code::Argument as u64, (Call::OtherGroup as u64) << 32),
                Err(code) => letter.trouble(code as u64, self.about(above)),
            }
        }
        for child in children(self.place, self.ranks.len() as u32) {
            // One that is dead by now needs no letter.
            let _ = self.with(child, || self.give(child, &letter));
        }
        letter
    }

    /// Letters with a place, unless it is lost; an error loses it.
    fn with<T>(&self, place: u32, letters: impl FnOnce() -> Result<T>) -> core::result::Result<T, Code> {
        if self.lost.borrow().contains(&place) {
            return Err(Code::Peer);
        }
        letters().map_err(|error| {
            self.lost.borrow_mut().insert(place);
            error.code()
        })
    }

    /// Whom trouble with a place is about: the dead one of whom that rank has heard, or itself.
    fn about(&self, place: u32) -> u64 {
        self.ep.dead_of_part(self.context).map_or_else(|| self.world_rank(place), u64::from)
    }

    fn world_rank(&self, place: u32) -> u64 {
        self.context.group.world_rank(self.ranks[place as usize]).into()
    }

    fn give(&self, place: u32, letter: &Letter) -> Result<()> {
        let lane = self.ep.lane_of(self.context, self.ranks[place as usize] as i32)?;
        letter.send(self.ep, lane.lane(), PART_SLOT)
    }

    fn take(&self, place: u32) -> Result<Letter> {
        let rank = self.ranks[place as usize];
        let lane = self.ep.lane_of(self.context, rank as i32)?;
        let early = || self.context.early.lock().unwrap_or_else(|e| e.into_inner());
        if let Entry::Occupied(kept) = early().entry(rank)
            && let Some(letter) = read(kept.get()).filter(|letter| letter.ranks == self.number)
        {
            kept.remove();
            return Ok(letter);
        }
        loop {
            let letter = Letter::receive(self.ep, lane.lane(), PART_SLOT)?;
            // Where nobody has died the lists are not the same, and both are told. Else that rank is in another call than this one.
            let dead = self.ep.knows_of_a_death(self.context);
            match self.ep.gone(&lane, PART_SLOT, "making a communicator") {
                _ if letter.ranks == self.number => return Ok(letter),
                None if !dead => return Ok(letter),
                gone => {
                    early().insert(rank, bytes_of(std::slice::from_ref(&letter)).to_vec());
                    gone.map_or(Ok(()), Err)?;
                }
            }
        }
    }
}

/// A letter that was kept.
fn read(bytes: &[u8]) -> Option<Letter> {
    let mut letter = Letter::NONE;
    let room = bytes_of_mut(std::slice::from_mut(&mut letter));
    (room.len() == bytes.len()).then(|| room.copy_from_slice(bytes))?;
    Some(letter)
}

/// What tells lists of ranks apart.
fn number(ranks: &[u32]) -> u64 {
    let digest = key::digest(bytes_of(ranks));
    u64::from_ne_bytes(std::array::from_fn(|k| digest[k]))
}
