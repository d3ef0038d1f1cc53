//! Gathering a message in parts from the leaders that have them.
//!
//! A leader takes what its form says from whom it says (`multicast/forms.rs`), as it comes there, and says in its own block what it has, for
//! those who read from it. It relies on one of them only: on who told it, who is at this multicast, and gets all of it in the end. From the others it
//! only *hopes*: they may be at another multicast, which waits for this leader; may come to this one much later, or never. When none of them has
//! had anything new for [`LATE_NS`], the leader takes whatever who told it has by then.
//!
//! So nobody waits for ever, whatever groups overlap: the wait of a leader ends when that of the one above it does, by parts or by its
//! giving up, and the uppermost reads from the master's block, which is whole before anybody is told.

use super::forms::{Form, Parts};
use super::held::STAYS_NS;
use super::holder::{Holder, lane_of};
use super::pieces::{PAUSES_NS, pause_for};
use super::wide::{Leader, check_parent, given_up, left_at, parts_of, wide_bytes};
use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::fabric::network::Place;
use crate::lane::remote::{Ask, Asked};
use std::ops::Range;
use std::rc::Rc;

/// So long a leader has hopes of others than who told it. Theirs are gone after that: see [`STAYS_NS`].
const LATE_NS: u64 = STAYS_NS / 2;

/// How long an answer is waited for.
const ANSWER_NS: u64 = 1_000_000_000;

/// What is counted: parts of other leaders, and of who told this one.
const HOPED: usize = 0;
const ABOVE: usize = 1;

/// A leader's gathering.
pub(super) struct Gathering<'a> {
    leader: &'a Leader<'a>,
    parts: Parts,
    /// A bit for each part that is here.
    have: Vec<u64>,
    sources: Vec<Source>,
}

/// A leader that this one reads from.
struct Source {
    /// Rank in the world.
    rank: u32,
    wants: Range<u32>,
    found: Found,
}

/// Where its block is.
enum Found {
    /// Not known: it is asked again then.
    At(u64),
    /// It is who told this leader.
    Above,
    /// There; the number of this leader's word in it.
    There(Rc<Holder>, u64),
    /// It, or the way to it, is gone.
    Gone,
}

fn has(bits: &[u64], part: u32) -> bool {
    bits.get(part as usize / 64).is_some_and(|word| word >> (part % 64) & 1 == 1)
}

impl<'a> Gathering<'a> {
    pub(super) fn new(leader: &'a Leader<'a>) -> Gathering<'a> {
        let count = leader.shape.count();
        let rank = |number: u32| leader.context.group.world_rank(leader.shape.leaders[number as usize]);
        let source = |(number, wants)| {
            let rank = rank(number);
            let found = if rank == leader.note.holder { Found::Above } else { Found::At(0) };
            Source { rank, wants, found }
        };
        Gathering {
            leader,
            parts: Parts { size: leader.shared.size, count },
            have: vec![0; leader.shared.words],
            sources: leader.note.form.sources(leader.number, count).into_iter().map(source).collect(),
        }
    }

    /// Fetches the share of a child from who told this leader, who had it before.
    pub(super) fn hand_down(&mut self, child: u32) -> Result<()> {
        self.fetch(&self.leader.from, self.leader.shape.handed_down(child))
    }

    /// Fetches this leader's own part, and all others, as they come.
    pub(super) fn all(&mut self) -> Result<()> {
        let number = self.leader.number;
        // The root's parent is the master, whose block has all.
        self.fetch(&self.leader.from, number..number + 1)?;
        let gathered = self.gather();
        self.leave();
        gathered
    }

    fn gather(&mut self) -> Result<()> {
        let (mut pause, mut since) = (PAUSES_NS[0], now_ns());
        while (0..self.parts.count).any(|part| !has(&self.have, part)) {
            let late = now_ns() - since > LATE_NS;
            let mut came = false;
            for n in 0..self.sources.len() {
                came |= self.take_from(n)?;
            }
            if came {
                (pause, since) = (PAUSES_NS[0], now_ns());
                continue;
            }
            if late {
                // It stays late until one of the others has something new.
                let there = self.above()?;
                came = self.take(&self.leader.from, &there, 0..self.parts.count, ABOVE)?;
            }
            check_parent(self.leader.ep, self.leader.note.holder)?;
            if !came {
                pause_for(&mut pause);
            }
        }
        Ok(())
    }

    /// What who told this leader has.
    fn above(&self) -> Result<Vec<u64>> {
        let there = self.leader.from.parts(self.have.len())?;
        there.ok_or_else(|| given_up(self.leader.ep, self.leader.note.holder))
    }

    /// Takes what one of the sources has that is wanted of it. `true`: something. An error of who told this leader is one; others are done without.
    fn take_from(&mut self, n: usize) -> Result<bool> {
        let wants = self.sources[n].wants.clone();
        if wants.clone().all(|part| has(&self.have, part)) {
            return Ok(false);
        }
        if let Found::Above = self.sources[n].found {
            let there = self.above()?;
            return self.take(&self.leader.from, &there, wants, HOPED);
        }
        let Some(holder) = self.find(n) else { return Ok(false) };
        let taken = match holder.parts(self.have.len()) {
            Ok(Some(there)) => self.take(&holder, &there, wants, HOPED),
            Ok(None) => Ok(false),
            Err(e) => Err(e),
        };
        Ok(taken.unwrap_or_else(|_| {
            self.sources[n].found = Found::Gone;
            false
        }))
    }

    /// The block of a source, if that is at this multicast.
    fn find(&mut self, n: usize) -> Option<Rc<Holder>> {
        let (leader, source) = (self.leader, &mut self.sources[n]);
        match &source.found {
            Found::There(holder, _) => return Some(holder.clone()),
            Found::At(ns) if now_ns() >= *ns && !leader.ep.is_dead(source.rank) => {}
            _ => return None,
        }
        let name = leader.note.name;
        let asked = Asked { what: Ask::Block, slot: 0, seq: name.number, at: name.master as u64 };
        let Ok(lane) = lane_of(leader.ep, leader.context, source.rank) else {
            source.found = Found::Gone;
            return None;
        };
        let remote = lane.expect_remote();
        // Its thread answers at once, unless its process is stopped.
        let until = now_ns() + ANSWER_NS;
        let goes_on = || now_ns() < until && !leader.ep.is_dead(source.rank) && remote.link.failure().is_none();
        let answer = remote.ask_for(asked, goes_on);
        source.found = match answer {
            Some(Some([addr, words])) => {
                Found::There(Rc::new(Holder::Remote(lane, Place { addr, rkey: words as u32 })), words >> 32)
            }
            Some(None) => Found::At(now_ns() + PAUSES_NS[1] / 2),
            None => Found::Gone,
        };
        if let Found::There(holder, _) = &source.found { Some(holder.clone()) } else { None }
    }

    /// Takes what is `there` and wanted: a run of parts at a time; round a ring a part, so that the next leader need not wait for all.
    fn take(&mut self, holder: &Holder, there: &[u64], wants: Range<u32>, count_as: usize) -> Result<bool> {
        let one_by_one = self.leader.note.form == Form::Ring;
        let (count, number) = (self.parts.count, self.leader.number);
        let mut came = 0;
        // Those that the leader before had first come first.
        let order = (0..count).map(|k| if one_by_one { (number + count - 1 - k) % count } else { k });
        let mut run = 0..0;
        for part in order.chain([count]) {
            let wanted = wants.contains(&part) && has(there, part) && !has(&self.have, part);
            if wanted && run.end == part && !one_by_one {
                run.end += 1;
                continue;
            }
            let whole = std::mem::replace(&mut run, if wanted { part..part + 1 } else { 0..0 });
            if !whole.is_empty() {
                came += whole.len() as u64;
                self.fetch(holder, whole)?;
            }
        }
        self.leader.ep.any_source.gathered[count_as].fetch_add(came, Ordering::Relaxed);
        Ok(came > 0)
    }

    /// Fetches parts, and says that they are here.
    fn fetch(&mut self, holder: &Holder, parts: Range<u32>) -> Result<()> {
        let (shared, bytes) = (&self.leader.shared, self.parts.bytes(parts.clone()));
        let to = shared.data().part(bytes.start, bytes.len());
        holder.read(wide_bytes(shared.words) + bytes.start, to)?;
        for part in parts {
            self.have[part as usize / 64] |= 1 << (part % 64);
        }
        for (word, bits) in self.have.iter().enumerate() {
            // SYNC POINT: pairs with the device's read in `Holder::parts`.
            parts_of(shared, word).store(*bits, Ordering::Release);
        }
        Ok(())
    }

    /// Nothing more is read from the others.
    fn leave(&self) {
        let at = left_at(self.have.len());
        for source in &self.sources {
            if let Found::There(holder, slot) = &source.found
                && let Holder::Remote(lane, place) = &**holder
            {
                // One that cannot be told is told by this leader's death, or is gone itself.
                let link = &lane.expect_remote().link;
                let _ = link.write_with(*place, at + 8 * *slot as usize, || None, |record| record.put(&[1]));
            }
        }
    }
}
