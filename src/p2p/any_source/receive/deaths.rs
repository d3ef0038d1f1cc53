//! What the deaths of senders mean for a receive that finds nothing: a hole in the order of the slots, news to be told once, or the end.

use super::*;
use crate::base::error::error;
use crate::fabric::network::link::Link;

/// What a death means for a receive that finds nothing.
pub(super) enum Death {
    /// The next slot of this share was this rank's, and stays empty.
    Hole(usize, u32),
    /// The same in the remote ring; if several have died it is one of them.
    RemoteHole(usize, u32),
    /// This rank has died; others may still send.
    News(u32),
    /// This rank has not answered for long, and counts as late until then; it may answer again.
    Late(u32, u64),
    /// Nobody is left who could send.
    Alone,
    /// The counters of this share are damaged: which messages it has cannot be told any more.
    Damaged(usize),
}

impl Incoming {
    /// A share with counters that cannot be.
    pub(super) fn look_for_damage(&self) -> Option<Death> {
        let damaged = |share: &Share| share.ring.is_damaged(Some(share.next())) && share.arrival().is_none();
        self.shares().position(damaged).map(Death::Damaged)
    }

    /// What deaths mean for a receive that finds nothing.
    pub(super) fn look_for_the_dead(&self, ep: &'static Endpoint) -> Option<Death> {
        if ep.deaths() != 0
            && let Some(found) = self.look_for_damage()
        {
            return Some(found);
        }
        let (elsewhere, late) =
            if self.spans() { (ep.lost_elsewhere(), ep.late_elsewhere()) } else { Default::default() };
        if ep.deaths() == 0 && elsewhere.is_empty() && late.is_empty()
            || self.shares().any(|share| share.arrival().is_some())
        {
            return None;
        }
        let is_dead = |rank: &u32| ep.is_dead(*rank) || elsewhere.contains(rank);
        let dead: Vec<u32> = self.domain.group.members().filter(is_dead).collect();
        if late.iter().any(|rank| ep.may_hold_a_ticket(*rank)) && self.has_remote_claim(ep) {
            // The ticket may be that of one who is late, and nobody's message behind it can be taken.
            ep.give_up_late(Link::may_hold_a_ticket);
            return None;
        }
        if !dead.is_empty()
            && let Some(found) = self.look_for_remote_holes(ep, &dead, &elsewhere)
        {
            return found;
        }
        let mut claimed = false;
        for (n, share) in self.shares().enumerate() {
            let ticket = share.next();
            if !share.ring.is_claimed(ticket) {
                continue;
            }
            claimed = true;
            let has = |rank: u32| {
                let stakes = |p: &crate::fabric::shm::peer::Peer| Stakes::of(&p.region).ok();
                let theirs = ep.known(rank).and_then(|p| stakes(&p));
                theirs.is_some_and(|s| s.has(ep.rank, share.at, ticket))
            };
            // A damaged rank's stakes may say anything: where nobody alive can have the ticket a dead one had it, and be it by writing to
            // the counter.
            let all_known = || self.domain.group.members().all(|rank| dead.contains(&rank) || self.knows(ep, rank));
            let first = || dead.first().copied().filter(|_| all_known());
            let owner = dead.iter().copied().find(|r| has(*r)).or_else(first);
            let living = |r: &u32| *r != ep.rank && !dead.contains(r);
            let living = || {
                ep.any_source.stakes.has(ep.rank, share.at, ticket)
                    || self.domain.group.members().filter(living).any(has)
            };
            if let Some(rank) = owner.filter(|_| is_orphan(&share.ring, ticket, || true, living)) {
                return Some(Death::Hole(n, rank));
            }
        }
        if claimed {
            return None;
        }
        let told = self.told.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(rank) = dead.iter().find(|r| !told.contains(r)) {
            return Some(Death::News(*rank));
        }
        let mut told = self.told_late.lock().unwrap_or_else(|e| e.into_inner());
        // Who was heard since is told of anew when it is late again.
        told.retain(|rank, _| ep.late_until(*rank) != 0);
        let of_group = || late.iter().copied().filter(|rank| self.domain.group.rank_of(*rank).is_some());
        if let Some(rank) = of_group().find(|rank| !told.contains_key(rank)) {
            return Some(Death::Late(rank, ep.late_until(rank)));
        }
        // Where nobody is left who is known to live there is nothing else to wait for: told each time that one has not answered.
        let again =
            of_group().map(|rank| (rank, ep.late_until(rank))).find(|(rank, until)| told.get(rank) != Some(until));
        if let Some((rank, until)) = again
            && ep.single_threaded()
            && self.domain.group.members().all(|r| r == ep.rank || dead.contains(&r) || told.contains_key(&r))
        {
            return Some(Death::Late(rank, until));
        }
        (dead.len() as u32 + 1 >= self.domain.group.size() && ep.single_threaded()).then_some(Death::Alone)
    }

    /// Can this process look at the stakes of a rank that could send here?
    fn knows(&self, ep: &'static Endpoint, rank: u32) -> bool {
        rank == ep.rank || ep.contact_soon(rank).is_some() || ep.is_elsewhere(rank).is_ok_and(|remote| remote)
    }

    pub(super) fn death_error(&self, ep: &Endpoint, death: &Death) -> Error {
        let of = |rank: u32| self.domain.rank_here(rank);
        let what = match death {
            Death::Hole(_, rank) | Death::RemoteHole(_, rank) => {
                format!(
                    "rank {} has died while it was sending here; that message is lost, later receives go on",
                    of(*rank)
                )
            }
            Death::News(rank) | Death::Late(rank, _) => {
                let why = ep.link_to(*rank).and_then(|link| link.failure().map(str::to_owned));
                let news = if matches!(death, Death::News(_)) { "has died" } else { "did not answer for long" };
                let why = why.unwrap_or_else(|| news.to_owned());
                format!("rank {} {why}; later receives go on with what the others send", of(*rank))
            }
            Death::Alone => "every other rank has died".to_owned(),
            Death::Damaged(share) => {
                format!("the counters of its ring (share {share}) have been damaged by another rank")
            }
        };
        error!(Code::Peer, "rank {}: any-source receive on index {}: {what}", ep.rank, self.index)
    }

    /// The error of a request that a death has ended, at a test that has found nothing; the next one goes on behind it.
    #[cold]
    pub(in crate::p2p::any_source) fn after_death(&self, ep: &'static Endpoint) -> Option<Error> {
        if self.spans() {
            ep.tend_links();
        }
        self.meet_one(ep);
        self.look_for_the_dead(ep).map(|death| self.tell(ep, death))
    }

    /// Who only tests makes the acquaintance of the members on this node as a wait does, see [`Waiting`], but of one at a time: a test takes
    /// no longer than that.
    fn meet_one(&self, ep: &'static Endpoint) {
        let (now, next_ns) = (now_ns(), self.meets_ns.load(Ordering::Relaxed));
        if now < next_ns {
            return;
        }
        self.meets_ns.store(now + if next_ns == 0 { ACQUAINTANCE_NS } else { MEETING_NS }, Ordering::Relaxed);
        if next_ns == 0 {
            return;
        }
        let nodes = ep.launch.nodes();
        let unmet = |rank: &u32| {
            let here = *rank != ep.rank && nodes.node_of(*rank) == nodes.node_of(ep.rank);
            here && ep.known(*rank).is_none() && !ep.is_dead(*rank)
        };
        let from = self.meets.load(Ordering::Relaxed);
        let found = self.domain.group.members().enumerate().filter(|(_, rank)| unmet(rank));
        let all: Vec<(usize, u32)> = found.collect();
        match all.iter().find(|(n, _)| *n as u32 >= from).or(all.first()) {
            Some((n, rank)) => {
                self.meets.store(*n as u32 + 1, Ordering::Relaxed);
                drop(ep.contact_soon(*rank));
            }
            // All are known.
            None => {
                self.meets_ns.store(now + ACQUAINTANCE_NS, Ordering::Relaxed);
                self.meet_elsewhere(ep);
            }
        }
    }

    pub(super) fn meet_elsewhere(&self, ep: &'static Endpoint) {
        if self.spans() {
            ep.meet_elsewhere(&self.domain.group);
        }
    }

    /// The same of a death that was found.
    pub(super) fn tell(&self, ep: &Endpoint, death: Death) -> Error {
        self.was_told(&death);
        match death {
            Death::Hole(share, _) => {
                self.shares().nth(share).into_iter().for_each(|share| share.advance(share.next()));
            }
            Death::RemoteHole(share, _) => self.pass_over_remote(share),
            Death::News(_) | Death::Late(..) | Death::Alone | Death::Damaged(_) => {}
        }
        self.death_error(ep, &death)
    }

    /// A death is no news here any more.
    pub(super) fn was_told(&self, death: &Death) {
        match *death {
            Death::Hole(_, rank) | Death::RemoteHole(_, rank) | Death::News(rank) => {
                self.told.lock().unwrap_or_else(|e| e.into_inner()).insert(rank);
            }
            Death::Late(rank, until) => {
                self.told_late.lock().unwrap_or_else(|e| e.into_inner()).insert(rank, until);
            }
            Death::Alone | Death::Damaged(_) => {}
        }
    }
}
