//! Remote commands between nodes, and their replies.
//!
//! A sender adds one to `sent` of its share, waits until its ticket is below `freed` and the number of slots, and writes its slot, with a
//! number that wakes the owner's thread. (Acquisition of a buffer by remote atomics; what a slot holds is whole when its sum fits.)
//!
//! A sender that dies with a ticket leaves a slot empty, behind which nothing is served. So each writes down which tickets it has, and while
//! it draws one ([`RemoteStakes`]); and an owner that finds a slot empty, and connections that have failed, asks those that are left. An answer
//! comes behind what its sender has written, so if nobody has the ticket, and the slot is still empty, it was a dead one's.

use std::sync::atomic::Ordering;

use super::{Device, Remote};
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::fabric::network::Change;
use crate::fabric::network::link::COMMANDED;
use crate::lane::remote::{Ask, Asked, sum};
use crate::p2p::COMM_WORLD;
use crate::p2p::any_source::remote::RemoteStakes;
use crate::p2p::endpoint::Endpoint;

/// Words of a command.
pub(in crate::rma) const WORDS: usize = 5;
const SLOT_WORDS: usize = super::SLOT / 8;
/// How long a rank is waited for that is asked for a ticket: one that is stopped is asked again later.
const ANSWER_NS: u64 = 50_000_000;

impl Device {
    /// Shares of the ring.
    pub fn shares(&self) -> usize {
        self.plan.shares
    }

    /// Draws the next ticket of this rank's share of a rank's ring; it is to be put or given up.
    pub fn draw(&self, stakes: &RemoteStakes, remote: &Remote) -> Result<u64> {
        let (ring, owner) = (remote.word(remote.plan.sent(remote.share)), remote.link.peer);
        stakes.begin(owner, ring.addr);
        let drawn = self.change(remote, ring, Change::Add(1));
        stakes.hold(owner, ring.addr, drawn.as_ref().ok().copied());
        drawn
    }

    /// A ticket is used, or will never be: the connection has failed.
    pub fn give_up(&self, stakes: &RemoteStakes, remote: &Remote, ticket: u64) {
        stakes.end(remote.link.peer, remote.word(remote.plan.sent(remote.share)).addr, ticket);
    }

    /// Puts a command under a ticket into a rank's ring. `false`: there is no room yet.
    pub fn put(&self, remote: &Remote, ticket: u64, words: [u64; WORDS]) -> Result<bool> {
        let plan = remote.plan;
        if ticket >= remote.room.load(Ordering::Relaxed) {
            let mut freed = [0];
            self.read(remote, remote.word(plan.freed(remote.share)), &mut freed)?;
            // What it says wrongly of its room concerns its own ring.
            let room = freed[0].saturating_add(plan.each());
            remote.room.fetch_max(room, Ordering::Relaxed);
            if ticket >= room {
                return Ok(false);
            }
        }
        let mut slot = [0u64; SLOT_WORDS];
        slot[..WORDS].copy_from_slice(&words);
        slot[WORDS] = sum(ticket.wrapping_add(1), &words);
        let (at, number) = (plan.slot(remote.share, ticket), || Some(COMMANDED));
        remote.link.write_with(remote.card.block, at, number, |record| record.put(&slot[..=WORDS]))?;
        Ok(true)
    }

    /// The command of a ticket of a share of this rank's ring, if it is there.
    pub fn arrival(&self, share: usize, ticket: u64) -> Option<[u64; WORDS]> {
        let at = self.plan.slot(share, ticket);
        let words: [u64; WORDS] = std::array::from_fn(|k| self.word(at + 8 * k).load(Ordering::Acquire));
        (self.word(at + 8 * WORDS).load(Ordering::Acquire) == sum(ticket + 1, &words)).then_some(words)
    }

    /// So many commands of a share are taken.
    pub fn free(&self, share: usize, taken: u64) {
        self.word(self.plan.freed(share)).store(taken, Ordering::Release);
    }

    /// Has somebody this ticket?
    pub fn is_claimed(&self, share: usize, ticket: u64) -> bool {
        self.word(self.plan.sent(share)).load(Ordering::Acquire) > ticket
    }

    /// Was this ticket, whose slot is empty, a dead rank's? Asks the living, so it takes a while when somebody has died.
    pub fn is_orphan(&self, ep: &'static Endpoint, share: usize, ticket: u64) -> bool {
        ep.tend_links();
        // Behind the ticket of one that is late nobody is served.
        ep.give_up_late(|_| true);
        let lost = ep.lost_elsewhere();
        if lost.is_empty() {
            return false;
        }
        let at = self.block.region().addr() + self.plan.sent(share) as u64;
        let asked = Asked { what: Ask::Ticket, slot: 0, seq: ticket, at };
        // Who has no connection with this process has drawn no ticket.
        let living = self.fabric.links().into_iter().filter(|l| !lost.contains(&l.peer) && !l.has_ended());
        for link in living {
            let lane = ep.context(COMM_WORLD).and_then(|world| ep.lane_of(world, link.peer as i32));
            let Ok(lane) = lane else { return false };
            let until = now_ns() + ANSWER_NS;
            let answer =
                lane.remote().and_then(|remote| remote.ask_for(asked, || lane.gone().is_none() && now_ns() < until));
            match answer {
                Some(None) => {}
                // It has it.
                Some(Some(_)) => return false,
                // It has died, or left, and so it has not; or it takes its time.
                None if lane.gone().is_some() => {}
                None => return false,
            }
        }
        self.arrival(share, ticket).is_none()
    }

    /// Answers a rank's command.
    pub fn reply(&self, remote: &Remote, place: usize, word: u64, value: u64) -> Result<()> {
        let reply = [word, value, sum(word, &[value])];
        let (at, number) = (remote.plan.reply(place), || Some(COMMANDED));
        remote.link.write_with(remote.card.block, at, number, |record| record.put(&reply)).map(|_| ())
    }

    /// The reply at a place: its word and value, if it is whole.
    pub fn replied(&self, place: usize) -> Option<(u64, u64)> {
        let at = self.plan.reply(place);
        let [word, value, check] = [0, 8, 16].map(|k| self.word(at + k).load(Ordering::Acquire));
        (check == sum(word, &[value])).then_some((word, value))
    }
}
