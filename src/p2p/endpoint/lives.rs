//! What ranks tell each other of their part in a communicator: that they are in it, that it is broken for them, that they have freed it. So
//! who waits for a living member hears of a dead one. And what the search for deadlocks asks of a rank.

use super::*;
use crate::base::clock::now_ns;
use crate::base::error::error;
use crate::base::named::Named;
use crate::fabric::network::control::FIRST_CHUNK;
use crate::fabric::shm::region::LIVES_AT;
use crate::lane::Place;
use crate::lane::map::{
    CHAIN_SLOT, COLLECTIVE_SLOT, CREATE_SLOT, Life, PART_SLOT, TICKET_SLOT, TICKET_SLOTS, WORLD_UNIT, how_lost, lost,
};

/// So many broken communicators are remembered when they are freed.
const BROKEN_MOST: usize = 1024;

/// Where a rank tells of its part in the world.
const WORLD: Place = Place { epoch: 0, unit: WORLD_UNIT, units: 0 };

/// Members of a communicator of whose deaths a rank has told, by its life in a place: to the other members, as long as it has not freed the
/// communicator; and to all that are in the world.
fn told(context: &Context, life: impl Fn(Place) -> Option<Life>) -> impl Iterator<Item = u32> {
    let says = |place| match life(place)? {
        Life::Broken(dead) => Some(dead),
        _ => None,
    };
    let to_all = says(WORLD).filter(|dead| how_lost(*dead) == 0 && context.group.rank_of(*dead).is_some());
    [says(context.place_of_life()), to_all].into_iter().flatten()
}

impl Endpoint {
    /// Tells the peers of this rank's part in a communicator.
    pub fn say_life(&self, place: Place, life: Life) {
        let word = self.life_word(place.unit);
        // SYNC POINT: pairs with the acquire in `Pair::life`.
        word.store(life.word(place.epoch), Ordering::Release);
    }

    /// Where this rank tells of its part in what lies in a unit.
    fn life_word(&self, unit: u32) -> &AtomicU64 {
        self.lives.record(unit as usize % UNITS * 8)
    }

    /// Can a rank of the world make no use any more of the communicator that lay here: has it freed it, or died, or left, or never met
    /// this process at all?
    pub fn has_freed(&self, world: u32, place: Place) -> bool {
        let Some(peer) = self.known(world).filter(|_| world != self.rank) else { return true };
        if peer.is_dead() || peer.has_left() {
            return true;
        }
        if let Some(lane) = self.lanes.find(Lane::key_of(crate::p2p::COMM_WORLD, world)) {
            return lane.pair.life(place.unit, place.epoch) == Life::Freed;
        }
        self.life_of(world, place) == Some(Life::Freed)
    }

    /// Has this process had the communicator of this epoch, which lay in this unit, and freed it? Any process may ask with any numbers.
    pub fn has_itself_freed(&self, epoch: u32, unit: u32) -> bool {
        epoch != 0 && Life::read(self.life_word(unit).load(Ordering::Acquire), epoch) == Life::Freed
    }

    /// Have this process and a rank of the world both freed the communicator that they had in this unit under this epoch?
    pub fn is_freed_by_both(&self, world: u32, unit: u32, epoch: u32) -> bool {
        let mine = self.life_word(unit);
        let lane = self.lanes.find(Lane::key_of(crate::p2p::COMM_WORLD, world));
        Life::read(mine.load(Ordering::Acquire), epoch) == Life::Freed
            && lane.is_some_and(|l| l.is_self() || l.pair.life(unit, epoch) == Life::Freed || l.gone().is_some())
    }

    /// A rank of a communicator whose death keeps its members from agreeing, as far as this one knows. One that has left, or ended without
    /// finalizing, may have done so because of another's death: that one it has told of.
    pub fn dead_member(&self, context: &Context) -> Option<u32> {
        if self.deaths.load(Ordering::Acquire) == 0 {
            return None;
        }
        let gone = || context.group.members().filter(|rank| self.is_dead(*rank));
        gone()
            .find(|rank| !self.has_left(*rank) && self.told_by(*rank, context).is_none())
            .or_else(|| gone().find_map(|rank| self.told_by(rank, context)))
            .or_else(|| gone().next())
    }

    /// Has this rank heard of any death, or told of one to the members of a communicator?
    pub fn knows_of_a_death(&self, context: &Context) -> bool {
        let place = context.place_of_life();
        let said = self.life_word(place.unit).load(Ordering::Relaxed);
        self.deaths.load(Ordering::Acquire) > 0 || matches!(Life::read(said, place.epoch), Life::Broken(_))
    }

    /// The same of some ranks, who agree on a communicator of their own.
    pub fn dead_of_part(&self, context: &Context) -> Option<u32> {
        if self.deaths.load(Ordering::Acquire) == 0 {
            return None;
        }
        let part = context.part.lock().unwrap_or_else(|e| e.into_inner());
        part.iter().copied().find(|rank| self.is_dead(*rank))
    }

    /// Has a rank on this node finalized?
    fn has_left(&self, world: u32) -> bool {
        self.known(world).is_some_and(|peer| peer.has_left())
    }

    /// Whose death a rank on this node, which may be gone itself, has told of to the members of a communicator, or to the world.
    fn told_by(&self, world: u32, context: &Context) -> Option<u32> {
        told(context, |place| self.life_of(world, place)).next()
    }

    /// A known rank's part in the communicator of a place, as it tells it.
    fn life_of(&self, world: u32, place: Place) -> Option<Life> {
        let lives = self.known(world)?.region.map(LIVES_AT, UNITS * 8).ok()?;
        let word: &AtomicU64 = lives.record(place.unit as usize % UNITS * 8);
        // SYNC POINT: pairs with the release in `say_life`: what the rank wrote into our memory came before.
        Some(Life::read(word.load(Ordering::Acquire), place.epoch))
    }

    /// The same, without a map of its memory if it has a lane.
    pub fn life_said(&self, world: u32, place: Place) -> Option<Life> {
        match self.lanes.find(Lane::key_of(crate::p2p::COMM_WORLD, world)) {
            Some(lane) => Some(lane.pair.life(place.unit, place.epoch)),
            None => self.life_of(world, place),
        }
    }

    /// Members of a communicator of whose deaths a peer has told.
    pub fn told_over(&self, lane: &Lane, context: &Context) -> impl Iterator<Item = u32> {
        let remote = lane.remote().and_then(|remote| remote.broken());
        told(context, |place| Some(lane.pair.life(place.unit, place.epoch))).chain(remote)
    }

    /// Why nothing more is to be expected on this slot of a lane, if so. Ranks that agree with each other wait for the living only as
    /// long as all of them live: who hears of a death says so to those who wait for him, and they to others.
    #[cold]
    pub fn gone(&self, lane: &Lane, slot: usize, call: &str) -> Option<Error> {
        // Before what it has told, which it told before it went.
        let what = lane.gone();
        let of_all = matches!(slot, CREATE_SLOT | COLLECTIVE_SLOT | CHAIN_SLOT)
            || (TICKET_SLOT..TICKET_SLOT + TICKET_SLOTS).contains(&slot);
        if (of_all || slot == PART_SLOT)
            && let Some(context) = self.contexts.find(lane.comm())
        {
            let mut told = self.told_over(lane, context);
            let dead = if of_all {
                told.next().or_else(|| self.dead_member(context))
            } else {
                told.find(|dead| context.part_has(*dead)).or_else(|| self.dead_of_part(context))
            };
            if let Some(dead) = dead {
                return Some(self.is_broken_by(context, dead));
            }
        }
        Some(self.peer_error(lane, slot, what?, call))
    }

    /// A rank of the world is dead, as this one has been told or knows: so who waits for this one in an agreement of some ranks hears of it, although
    /// this one may be in another call already.
    pub fn say_dead(&self, dead: u32) {
        self.say_life(WORLD, Life::Broken(dead));
    }

    /// Tells those who wait for this rank in an agreement of whose death it has heard. The error of its own call.
    pub fn is_broken_by(&self, context: &Context, dead: u32) -> Error {
        self.say_life(context.place_of_life(), Life::Broken(dead));
        self.say_broken_remote(context, dead);
        self.member_died(context, dead)
    }

    /// The same as far as the peer itself is concerned. In the middle of a transfer nothing else counts: who left it because of a third rank's
    /// death would give its buffer back while the peer still copies there.
    #[cold]
    pub fn peer_gone(&self, lane: &Lane, slot: usize, call: &str) -> Option<Error> {
        Some(self.peer_error(lane, slot, lane.gone()?, call))
    }

    fn peer_error(&self, lane: &Lane, slot: usize, what: &str, call: &str) -> Error {
        lane.peer_error(self.rank, what, call, slot as i32 - SYSTEM_INDICES as i32)
    }

    /// Tells the members on other nodes with whom there is a lane that what all do together can never be completed.
    pub fn say_broken_remote(&self, context: &Context, dead: u32) {
        let hears = |rank: u32| how_lost(dead) != 0 || rank != dead;
        // Held: lanes of other communicators lie beside these, and may be freed by other threads at any time.
        let mut lanes = self.lanes.hold_remote(|lane, _| lane.comm() == context.handle && hears(lane.world));
        // And those who wait for this rank, which has had nothing for them so far. Who is just being forgotten hears of it if it is not.
        let (has_lane, number) =
            (|rank: u32| lanes.iter().any(|lane| lane.world == rank), u64::from(context.place.epoch));
        let fabric = self.fabric_here().inspect(|fabric| fabric.has_news());
        let mut others = fabric.map_or(Vec::new(), |fabric| fabric.links());
        let waits = |link: &Link| link.open_window(number, 0).is_some() && !has_left(link);
        others.retain(|link| hears(link.peer) && !has_lane(link.peer) && !link.is_closed() && waits(link));
        // Who has finalized connects to nobody.
        lanes.retain(|lane| !lane.remote().has_left());
        // Connections that are not there are all asked for first, and waited for together no longer than for one. Who is late then hears of it when
        // its connection comes about.
        let links = lanes.iter().map(|lane| &lane.remote().link).chain(&others);
        links.for_each(|link| link.ask_for_it());
        let until = now_ns() + (self.config.attach_s * 1e9) as u64;
        let comes_up = |link: &Link| {
            link.until_up(|| now_ns() < until && !has_left(link));
            link.is_up()
        };
        lanes.iter().filter(|lane| comes_up(&lane.remote().link)).for_each(|lane| _ = lane.remote().say_broken(dead));
        let others = others.iter().filter(|link| comes_up(link));
        others.for_each(|link| self.say_broken_to(link, context.place.epoch, dead));
    }

    /// This rank frees a communicator. If that is broken for it, members on other nodes who could not be told in time are told when they come.
    pub fn keeps_what_is_broken(&self, context: &Context) {
        let epoch = context.place.epoch;
        let said = Life::read(self.life_word(context.place.unit).load(Ordering::Relaxed), epoch);
        if let Life::Broken(dead) = said
            && self.spans_nodes(&context.group)
        {
            let mut broken = self.broken.lock().unwrap_or_else(|e| e.into_inner());
            broken.truncate(BROKEN_MOST - 1);
            broken.push_front((epoch, dead));
        }
    }

    /// Who was lost for the communicator of this epoch, which this rank has freed.
    fn was_broken(&self, epoch: u32) -> Option<u32> {
        let broken = self.broken.lock().unwrap_or_else(|e| e.into_inner());
        broken.iter().find(|(of, _)| *of == epoch).map(|(_, dead)| *dead)
    }

    /// A peer on another node has made its part of a lane. If what all members of that communicator do together is broken here, nobody else
    /// may tell it: this rank has no part in it any more, and may have freed it.
    pub fn hears_what_is_broken(&self, link: &Arc<Link>, number: u64) {
        let Ok(epoch) = u32::try_from(number) else { return };
        let of_epoch = || self.contexts.place_of(epoch & 0xfff_ffff).filter(|place| place.epoch == epoch);
        let place = if epoch == WORLD.epoch { Some(WORLD) } else { of_epoch() };
        // Either this sees that it is broken, or `say_broken_remote` sees the peer's part: both look under the lock of the link's windows.
        let said = place.map(|place| Life::read(self.life_word(place.unit).load(Ordering::Relaxed), epoch));
        let dead = match said {
            Some(Life::Broken(dead)) => dead,
            Some(Life::Member) => return,
            Some(Life::Freed) | None => {
                let broken = self.was_broken(epoch);
                if said.is_some() || broken.is_some() {
                    // What comes there interests nobody.
                    link.lane_is_over(number);
                }
                let Some(dead) = broken else { return };
                dead
            }
        };
        // In the life in the world it also stands who is lost for another communicator, and may only be late. Nothing waits here for a
        // connection, which is the thread's that makes them: it is said when that is there.
        let is_said = || link.open_window(number, 0).is_none_or(|page| page.has_told(dead));
        let is_of_it = epoch != WORLD.epoch || how_lost(dead) != 0 || self.is_dead(dead);
        if is_of_it && !is_said() && !has_left(link) && link.is_there() {
            self.say_broken_to(link, epoch, dead);
        }
    }

    /// The same by a lane of which this side has nothing but the windows, if the peer has made them known.
    fn say_broken_to(&self, link: &Arc<Link>, epoch: u32, dead: u32) {
        let number = u64::from(epoch);
        let say = || {
            let windows = [link.open_window(number, 0), link.open_window(number, FIRST_CHUNK + 1)];
            let ([Some(page), Some(fronts)], Some(fabric), Some(card)) = (windows, self.fabric_here(), link.card.get())
            else {
                return true;
            };
            // Before: a connection that comes about on the way asks for it.
            page.tells(dead);
            let lane = (link.clone(), [page.clone(), fronts]);
            Remote::of(fabric, *card, number, lane, self.config.attach_s).say_broken(dead) || {
                page.has_not_told(dead);
                false
            }
        };
        // Who is late hears of it when it answers. If it has answered meanwhile, the thread that made the connection may have relied on this one:
        // both have the lock of the link's windows in between, so either that one sees that nothing is told, or this one the connection.
        if !say() && link.open_window(number, 0).is_some() && link.is_up() {
            say();
        }
    }

    /// The error of an agreement that can never be.
    pub fn member_died(&self, context: &Context, dead: u32) -> Error {
        let comm = Named(context.handle);
        error!(Code::Peer, "rank {}: agreeing with all ranks of communicator {comm}: {}", self.rank, lost(dead))
    }
}

impl stall::Job for Endpoint {
    fn rank(&self) -> u32 {
        self.rank
    }
    fn board(&self, rank: u32) -> Option<&Board> {
        if rank == self.rank {
            return Some(Endpoint::board(self));
        }
        // The number may be what another rank's board says.
        let peer = (rank < self.size).then(|| self.contact_soon(rank)).flatten()?;
        // SAFETY: the peer's region stays mapped as long as the endpoint lives: the attach service never forgets a peer.
        Some(unsafe { &*std::ptr::from_ref(peer.region.board_of()) })
    }
    fn threads(&self, rank: u32) -> usize {
        if rank == self.rank {
            return stall::threads_of(std::process::id());
        }
        self.known(rank).map_or(usize::MAX, |p| stall::threads_of(p.pid as u32))
    }
}
