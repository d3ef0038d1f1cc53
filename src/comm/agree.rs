//! How the ranks of a communicator agree on new ones: what each wants goes up a binomial tree, is joined on the way, and what holds for all
//! comes down.
//!
//! ```text
//!            0                 up:    what the ranks below want, as runs; the units free at all of them; the largest epoch
//!         /  |  \              down:  the wishes of all, the first unit, the epoch; or the error, the same for everybody
//!        1   2    4
//!            |   / \
//!            3  5   6
//!                   |
//!                   7
//! ```
//! A rank's subtree is a range of ranks, so wishes are joined by putting them one behind the other, and the same wish of many ranks in a
//! row is one [`Wish`]. Nothing of it is kept. Each rank waits for its children and its parent in the tree only; one that hears of a
//! member's death leaves, and says so in a word that whoever waits for him looks at ([`Endpoint::gone`]), so everybody hears of it.
//! There is no agreement any more among ranks one of which is dead.
//!
//! [`part`]: the same among some ranks of a communicator, of whom alone nobody may be dead.

pub(super) mod part;

use crate::base::error::{Code, Error, Result, error};
use crate::base::named::Named;
use crate::base::plain::{bytes_of, bytes_of_mut, of_plain};
use crate::lane::map::{CREATE_SLOT, INDEX_MAX, Life, SYSTEM_INDICES, UNIT_SLOTS, UNITS};
use crate::lane::table::COMMUNICATORS;
use crate::lane::{Lane, Place};
use crate::p2p::context::{Context, OFFER_UNITS, OFFER_WORDS, Offer};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::signal;

/// What a call wants of all ranks; that they called different ones is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Call {
    Create = 1,
    Split = 2,
    Dup = 3,
    Group = 4,
    /// Only in an error: such a call with other ranks.
    OtherGroup = 5,
}

impl Call {
    fn name(number: u64) -> &'static str {
        match number {
            1 => "fmpl_comm_create",
            2 => "fmpl_comm_split",
            3 => "fmpl_comm_dup",
            4 => "fmpl_comm_group_create",
            5 => "fmpl_comm_group_create with other ranks",
            _ => "another call",
        }
    }
}

of_plain! {
    /// Ranks `first` to `first + count - 1` want to be in the communicator of `colour`, by the order `order`, `order + step`, …
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Wish {
        pub first: u32,
        pub count: u32,
        pub colour: i64,
        pub order: i64,
        pub step: i64,
    }
}

impl Wish {
    /// Takes the next one in, if it goes on like this one.
    fn join(&mut self, next: &Wish) -> bool {
        if next.colour != self.colour || next.first != self.first + self.count {
            return false;
        }
        let step = if self.count == 1 { next.order - self.order } else { self.step };
        if next.order != self.order + self.count as i64 * step || next.count > 1 && next.step != step {
            return false;
        }
        (self.step, self.count) = (step, self.count + next.count);
        true
    }
}

of_plain! {
    /// What goes up, and with other meanings of the last words, down.
    #[derive(Clone, Copy, Debug)]
    struct Letter {
        /// [`Call`]
        call: u64,
        /// 0, [`AGAIN`], or the number of an error's [`Code`]
        status: u64,
        /// The rank of the world that could not take part; with [`Code::Argument`], the other call in the upper half.
        about: u64,
        /// How many wishes follow.
        wishes: u64,
        /// Up: the largest epoch so far. Down: the new one.
        epoch: u64,
        /// Up: the most indices that a rank has. Down: indices of the new communicators.
        indices: u64,
        /// Up: where the stretch of units begins that `free` is about. Down: the first unit of the new communicators.
        unit: u64,
        /// Which ranks agree, where these are not all: a number that other ranks in another order hardly have.
        ranks: u64,
        /// Units that are free at all.
        free: [u64; OFFER_WORDS],
    }
}

/// [`Letter::status`]: no units of this stretch are free at all ranks; try the next one.
const AGAIN: u64 = u64::MAX;

impl Letter {
    /// Room for one that is to come.
    const NONE: Letter = Letter {
        call: 0,
        status: 0,
        about: 0,
        wishes: 0,
        epoch: 0,
        indices: 0,
        unit: 0,
        ranks: 0,
        free: [0; OFFER_WORDS],
    };

    /// What this rank has to say, before it knows anything of others.
    fn of(ep: &Endpoint, call: Call, ranks: u64, offer: &Offer) -> Letter {
        let (epoch, indices) = (ep.contexts.epoch() as u64, ep.region.indices() as u64);
        let (unit, free) = (offer.first as u64, offer.free);
        let mut letter =
            Letter { call: call as u64, status: 0, about: 0, wishes: 0, epoch, indices, unit, ranks, free };
        if let Err(e) = ep.contexts.check_room() {
            letter.trouble_of(&e, ep.rank);
        }
        letter
    }

    fn send(&self, ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<()> {
        signal::message(ep, lane, slot, bytes_of(std::slice::from_ref(self)))
    }

    fn receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<Letter> {
        let mut letter = Letter::NONE;
        signal::receive(ep, lane, slot, bytes_of_mut(std::slice::from_mut(&mut letter)))?;
        Ok(letter)
    }

    fn is_good(&self) -> bool {
        self.status == 0
    }

    /// The first trouble stays.
    fn trouble(&mut self, code: u64, about: u64) {
        if self.is_good() {
            (self.status, self.about) = (code, about);
        }
    }

    fn trouble_of(&mut self, error: &Error, rank: u32) {
        self.trouble(error.code() as u64, rank as u64);
    }
}

/// What was agreed on.
pub(super) struct Agreed {
    pub wishes: Vec<Wish>,
    pub place: Place,
    pub indices: usize,
}

/// Agrees with all ranks of `context` on new communicators. `wish`: this rank's colour and order. The units are taken at this rank.
pub(super) fn agree(ep: &'static Endpoint, context: &Context, call: Call, wish: (i64, i64)) -> Result<Agreed> {
    if let Some(dead) = ep.dead_member(context) {
        ep.say_life(context.place_of_life(), Life::Broken(dead));
        return Err(ep.member_died(context, dead));
    }
    let mine = Wish { first: context.group.rank(), count: 1, colour: wish.0, order: wish.1, step: 0 };
    settle(ep, context, call, |offer| exchange(ep, context, call, mine, offer))
}

/// Offers units, stretch by stretch, until `exchange` comes back with some that are free at all ranks that agree.
fn settle(
    ep: &Endpoint,
    context: &Context,
    call: Call,
    mut exchange: impl FnMut(&Offer) -> Result<(Letter, Vec<Wish>)>,
) -> Result<Agreed> {
    // Where another thread of this process agrees with others at the same time, they are likely to look elsewhere.
    let stretches = (UNITS / OFFER_UNITS) as u32;
    let mut stretch = context.place.epoch.wrapping_mul(7) % stretches;
    for _ in 0..stretches {
        let offer = ep.contexts.offer(stretch * OFFER_UNITS as u32);
        let (letter, wishes) = match exchange(&offer) {
            Ok(all) => all,
            Err(error) => {
                ep.contexts.settle(&offer, None);
                return Err(error);
            }
        };
        if letter.is_good() && !is_offered(&offer, &letter) {
            ep.contexts.settle(&offer, None);
            let text =
                format!("rank {}: {}: what was decided is not what was offered", ep.rank, Call::name(call as u64));
            return Err(Error::new(Code::Peer, text));
        }
        let indices = letter.indices.min(INDEX_MAX as u64) as usize;
        let units = units_for(indices) as u32;
        let place = Place { epoch: letter.epoch as u32, unit: letter.unit as u32, units };
        ep.contexts.settle(&offer, letter.is_good().then_some(place));
        if letter.is_good() {
            ep.contexts.note_epoch(place.epoch);
            return Ok(Agreed { wishes, place, indices });
        }
        if letter.status != AGAIN {
            return Err(refused(ep, context, call, &letter));
        }
        stretch = (stretch + 1 + context.place.epoch % 2) % stretches;
    }
    Err(error!(
        Code::Memory,
        "rank {}: {}: no room in the lanes is free at all ranks",
        ep.rank,
        Call::name(call as u64)
    ))
}

/// Can this have been decided on what this rank has offered? Whoever decides may be damaged.
fn is_offered(offer: &Offer, letter: &Letter) -> bool {
    let sane = letter.indices <= INDEX_MAX as u64 && (1..=u64::from(u32::MAX)).contains(&letter.epoch);
    let Some(from) = letter.unit.checked_sub(offer.first.into()).filter(|from| sane && *from < OFFER_UNITS as u64)
    else {
        return false;
    };
    let to = from + units_for(letter.indices as usize) as u64;
    to <= OFFER_UNITS as u64 && (from..to).all(|unit| offer.free[unit as usize / 64] >> (unit % 64) & 1 == 1)
}

fn units_for(indices: usize) -> usize {
    (indices + SYSTEM_INDICES).div_ceil(UNIT_SLOTS)
}

fn refused(ep: &Endpoint, context: &Context, call: Call, letter: &Letter) -> Error {
    let (rank, name, about) = (ep.rank, Call::name(call as u64), letter.about);
    let who = || match context.group.rank_of(about as u32) {
        Some(r) if context.handle != crate::p2p::COMM_WORLD => {
            format!("rank {r} of communicator {}, rank {about} of the world", Named(context.handle))
        }
        _ => format!("rank {about}"),
    };
    let code = Code::from_number(letter.status as i32).unwrap_or(Code::System);
    match code {
        Code::Argument if about >> 32 != 0 => {
            error!(code, "rank {rank}: {name}: another rank calls {} on the same communicator", Call::name(about >> 32))
        }
        Code::Memory => {
            let most = COMMUNICATORS - 1;
            error!(
                code,
                "rank {rank}: {name}: {} has no room for one more communicator (at most {most} at a time)",
                who()
            )
        }
        _ => error!(code, "rank {rank}: {name}: {} could not take part", who()),
    }
}

/// Up and down the tree once.
fn exchange(
    ep: &'static Endpoint,
    context: &Context,
    call: Call,
    mine: Wish,
    offer: &Offer,
) -> Result<(Letter, Vec<Wish>)> {
    let (rank, size) = (context.group.rank(), context.group.size());
    let mut letter = Letter::of(ep, call, 0, offer);
    let mut wishes = vec![mine];
    for child in children(rank, size) {
        let (theirs, their_wishes) = take(ep, context, child)?;
        join(&mut letter, &mut wishes, &theirs, &their_wishes);
    }
    if rank == 0 {
        decide(&mut letter);
    } else {
        give(ep, context, parent(rank), &letter, &wishes)?;
        (letter, wishes) = take(ep, context, parent(rank))?;
    }
    for child in children(rank, size) {
        give(ep, context, child, &letter, &wishes)?;
    }
    Ok((letter, wishes))
}

/// Who is below a place of the tree.
fn children(place: u32, size: u32) -> impl Iterator<Item = u32> {
    (0..place.trailing_zeros().min(31)).map(move |k| place + (1 << k)).take_while(move |child| *child < size)
}

/// Who is above it; of place 0 nobody is.
fn parent(place: u32) -> u32 {
    place & (place - 1)
}

fn join(letter: &mut Letter, wishes: &mut Vec<Wish>, theirs: &Letter, their_wishes: &[Wish]) {
    if !theirs.is_good() {
        letter.trouble(theirs.status, theirs.about);
    }
    if theirs.call != letter.call {
        letter.trouble(Code::Argument as u64, theirs.call << 32);
    }
    if theirs.ranks != letter.ranks {
        letter.trouble(Code::Argument as u64, (Call::OtherGroup as u64) << 32);
    }
    if theirs.unit != letter.unit {
        letter.trouble(AGAIN, 0);
    }
    letter.epoch = letter.epoch.max(theirs.epoch);
    letter.indices = letter.indices.max(theirs.indices);
    letter.free.iter_mut().zip(&theirs.free).for_each(|(mine, theirs)| *mine &= theirs);
    for wish in their_wishes {
        if !wishes.last_mut().is_some_and(|last| last.join(wish)) {
            wishes.push(*wish);
        }
    }
}

/// The root's decision: where, and under which epoch.
fn decide(letter: &mut Letter) {
    let units = units_for(letter.indices.min(INDEX_MAX as u64) as usize);
    let mut run = 0;
    for unit in 0..OFFER_UNITS {
        run = if letter.free[unit / 64] >> (unit % 64) & 1 == 1 { run + 1 } else { 0 };
        if run == units {
            letter.unit += (unit + 1 - units) as u64;
            letter.epoch = letter.epoch.saturating_add(1);
            return;
        }
    }
    letter.trouble(AGAIN, 0);
}

/// Sends letter and wishes to a rank.
fn give(ep: &'static Endpoint, context: &Context, to: u32, letter: &Letter, wishes: &[Wish]) -> Result<()> {
    let lane = ep.lane_of(context, to as i32)?;
    Letter { wishes: wishes.len() as u64, ..*letter }.send(ep, lane.lane(), CREATE_SLOT)?;
    signal::message(ep, lane.lane(), CREATE_SLOT, bytes_of(wishes))
}

fn take(ep: &'static Endpoint, context: &Context, from: u32) -> Result<(Letter, Vec<Wish>)> {
    let lane = ep.lane_of(context, from as i32)?;
    let letter = Letter::receive(ep, lane.lane(), CREATE_SLOT)?;
    let nothing = Wish { first: 0, count: 0, colour: 0, order: 0, step: 0 };
    let mut wishes = vec![nothing; (letter.wishes as usize).min(context.group.size() as usize)];
    signal::receive(ep, lane.lane(), CREATE_SLOT, bytes_of_mut(&mut wishes))?;
    Ok((letter, wishes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joined_wishes_are_the_same_wishes(ranks in prop::collection::vec((0i64..3, -2i64..6), 1..60), cut in 0usize..60) {
            let one = |(n, (colour, order)): (usize, &(i64, i64))| Wish {
                first: n as u32, count: 1, colour: *colour, order: *order, step: 0,
            };
            let mut parts: [Vec<Wish>; 2] = Default::default();
            for (n, wish) in ranks.iter().enumerate() {
                let part = &mut parts[(n >= cut) as usize];
                let wish = one((n, wish));
                if !part.last_mut().is_some_and(|last| last.join(&wish)) {
                    part.push(wish);
                }
            }
            let [mut all, rest] = parts;
            for wish in &rest {
                if !all.last_mut().is_some_and(|last| last.join(wish)) {
                    all.push(*wish);
                }
            }
            let mut back = Vec::new();
            for w in &all {
                for k in 0..w.count {
                    prop_assert_eq!((w.first + k) as usize, back.len());
                    back.push((w.colour, w.order + k as i64 * w.step));
                }
            }
            prop_assert_eq!(back, ranks);
        }
    }
}
