//! One ghost: a rank's part in the protocol between nodes, and its errand.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::port::Port;
use super::{Common, Plan};
use crate::base::clock::now_ns;
use crate::base::lock::lock;
use crate::fabric::network::control::{FIRST_CHUNK, Fabric, Hooks, Terms, Who};
use crate::fabric::network::room::PLACES_MOST;
use crate::fabric::network::{Card, Choice};
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::record::{Kind, Land};
use crate::lane::remote::{Call, Remote, When, answer};
use crate::p2p::endpoint::WORLD_EPOCH;

/// From saying something to saying it again, at first and at most.
const PATIENCE_NS: [u64; 2] = [20_000_000, 250_000_000];
/// A ghost that nothing is to be told to looks again after this.
const IDLE_NS: u64 = 500_000_000;
/// The same of one that has something to do which nobody tells of.
const SOON_NS: u64 = 5_000_000;
/// The same without a connection: all that comes then begins with a packet, which gives it a turn.
const FAR_NS: u64 = 5_000_000_000;
/// A peer may take so long to answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a ghost is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// It wants to know where the peer's memory is.
    Greets,
    /// It wants a connection.
    Connects,
    /// Its messages leave, and it waits for the answer.
    Sent,
    /// The answer has come.
    Answered,
    /// All is acknowledged on both sides.
    Quiet,
}

/// A message to a real rank, and its answer.
pub(super) struct Errand {
    to: u32,
    card: Card,
    said_ns: u64,
    patience: u64,
    /// Messages that have left.
    sent: u32,
}

impl Errand {
    pub fn new(to: u32, card: Card) -> Errand {
        Errand { to, card, said_ns: 0, patience: PATIENCE_NS[0], sent: 0 }
    }
}

/// What the fabric's hooks look at.
struct State {
    remote: Mutex<Option<Arc<Remote>>>,
    stage: AtomicU8,
    /// Messages that it has received in this life.
    taken: AtomicU64,
    /// There was an errand, and its lane has been freed.
    freed: AtomicBool,
}

/// See the head of this file.
pub(super) struct Ghost {
    rank: u32,
    pub port: Arc<Port>,
    fabric: Option<Arc<Fabric>>,
    state: Arc<State>,
    pub errand: Option<Errand>,
    /// When it wants a turn.
    pub due: u64,
}

const STAGES: [Stage; 5] = [Stage::Greets, Stage::Connects, Stage::Sent, Stage::Answered, Stage::Quiet];

impl State {
    fn stage(&self) -> Stage {
        STAGES[usize::from(self.stage.load(Ordering::Acquire))]
    }
    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
    fn set(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }
    fn remote(&self) -> Option<Arc<Remote>> {
        lock(&self.remote).clone()
    }
}

impl Ghost {
    /// As soon as anybody has to do with it.
    pub fn new(common: &Arc<Common>, rank: u32) -> Ghost {
        let (port, before) = (Arc::new(Port::new(&common.device)), common.fresh());
        let state = Arc::new(State {
            remote: Mutex::default(),
            stage: AtomicU8::new(0),
            taken: AtomicU64::new(0),
            freed: AtomicBool::new(false),
        });
        let (size, version, indices) = (common.plan.world, common.version, common.indices);
        let who = Who { rank, size, version, indices: Box::new(move || indices), before };
        let real = common.plan.real;
        let terms = Terms {
            keep: None,
            strict: false,
            places: [0, PLACES_MOST, PLACES_MOST],
            ways: Choice::Busiest { fits: false },
            patience: PATIENCE,
            stall: Duration::ZERO,
            // The nodes of real ranks come before those of ghosts.
            comes_before: Box::new(move |peer| peer >= real && rank < peer),
        };
        let fabric = Fabric::start(who, port.clone(), terms).map(Arc::new);
        let fabric = fabric.inspect_err(|e| common.is_in_trouble(rank, e.detail())).ok();
        if let (Some(fabric), Some(key)) = (&fabric, common.key()) {
            // Who has sent something is looked for among its links.
            fabric.keep_all();
            fabric.know(key, hooks(common, &state));
        }
        Ghost { rank, port, fabric, state, errand: None, due: 0 }
    }

    /// What it is at, if it has an errand.
    pub fn stage(&self) -> Option<Stage> {
        self.errand.as_ref().map(|_| self.state.stage())
    }

    /// Does it wait for a message that may come now?
    pub fn listens(&self) -> bool {
        let waits = self.errand.is_none() || self.state.stage() == Stage::Sent;
        waits && self.state.remote().is_some_and(|remote| remote.link.is_up())
    }
    /// Is there one that it has not seen, or was its last one received, and there are more?
    pub fn has_come(&self, plan: &Plan) -> bool {
        let Some(remote) = self.state.remote() else { return false };
        let sent = self.errand.as_ref().map_or(plan.messages, |errand| errand.sent);
        let goes_on = sent < plan.messages && remote.link.is_up() && remote.acked(slot_of(plan)) >= u64::from(sent);
        goes_on || is_there(&remote, slot_of(plan), self.state.taken() + 1)
    }

    /// Has nobody anything to do with it any more?
    pub fn is_gone(&self) -> bool {
        let is_over = self.errand.is_none() || self.state.freed.load(Ordering::Acquire);
        is_over && self.fabric.as_ref().is_none_or(|fabric| fabric.links().is_empty())
    }

    /// Deals with what has come, and goes on with the errand. When it wants the next turn.
    pub fn turn(&mut self, common: &Common, leaving: bool) -> u64 {
        let Some(fabric) = self.fabric.clone() else { return u64::MAX };
        fabric.turn();
        let now = now_ns();
        let mine = match &self.errand {
            Some(_) => self.go_on(common, &fabric, leaving, now),
            None => self.serve(common, &fabric, leaving, now),
        };
        fabric.turn().unwrap_or(u64::MAX).max(now + 1).min(mine)
    }

    /// Answers what it is sent, one message at a time. When it is to be looked at again.
    fn serve(&mut self, common: &Common, fabric: &Arc<Fabric>, leaving: bool, now: u64) -> u64 {
        let slot = slot_of(&common.plan);
        let Some(remote) = self.state.remote() else {
            // Whoever is known has greeted, so it has said where its memory is.
            let known = fabric.links().into_iter().find_map(|link| {
                let windows = [link.open_window(0, 0)?, link.open_window(0, FIRST_CHUNK + 1)?];
                Some((lock(&common.cards).get(&link.peer).copied()?, link, windows))
            });
            let Some((card, link, windows)) = known.filter(|_| common.plan.answers) else { return now + IDLE_NS };
            let remote = Remote::of(fabric, card, 0, (link, windows), PATIENCE.as_secs_f64());
            *lock(&self.state.remote) = Some(Arc::new(remote));
            self.state.set(Stage::Quiet);
            return now + SOON_NS;
        };
        let next = self.state.taken() + 1;
        let come = remote.landing(slot).filter(|(land, _)| land.is(next, WORLD_EPOCH));
        if let Some((_, [first, second, _])) = come {
            self.state.set(Stage::Sent);
            if !remote.is_ready(slot) {
                return now + SOON_NS;
            }
            remote.acknowledge(slot, next, When::WithNext);
            let (land, words) = (Land::new(next, next, Kind::RemoteInline, 16, WORLD_EPOCH), [second, first]);
            if remote.land(slot, land, &words).is_err() {
                return now + SOON_NS;
            }
            self.state.taken.store(next, Ordering::Release);
        }
        remote.link.poll();
        let quiet = !remote.owes() && remote.acked(slot) >= self.state.taken();
        if quiet {
            self.state.set(Stage::Quiet);
        } else {
            remote.tend();
        }
        if leaving {
            // What the other side still owes it sends before.
            fabric.part(&remote.link);
        }
        now + if leaving || !quiet { SOON_NS } else { IDLE_NS }
    }

    /// The errand. When it is to be looked at again.
    fn go_on(&mut self, common: &Common, fabric: &Arc<Fabric>, leaving: bool, now: u64) -> u64 {
        let (Some(errand), slot) = (&mut self.errand, slot_of(&common.plan)) else { return u64::MAX };
        if self.state.stage() == Stage::Greets {
            let next = self.due;
            if now < next
                && errand.said_ns != 0
                && fabric.known(errand.to).is_none_or(|link| link.open_window(0, FIRST_CHUNK + 1).is_none())
            {
                return next;
            }
            match fabric.greet(errand.to, &errand.card, 0, FIRST_CHUNK) {
                Ok(Some(contact)) => {
                    *lock(&self.state.remote) =
                        Some(Arc::new(Remote::of(fabric, errand.card, 0, contact, PATIENCE.as_secs_f64())));
                    self.state.set(Stage::Connects);
                }
                Ok(None) => {
                    // A peer that has no room says when it may have some.
                    let put_off = fabric.known(errand.to).and_then(|link| link.takes_put_off());
                    let longer = (errand.patience * 2).min(PATIENCE_NS[1]);
                    let pause = put_off.map_or(errand.patience, |pause| pause.as_nanos() as u64);
                    (errand.said_ns, errand.patience) = (now, longer);
                    // Many that began together do not come back together.
                    return now + pause + u64::from(self.rank).wrapping_mul(0x9e37_79b9) % pause.max(1);
                }
                Err(e) => {
                    common.is_in_trouble(self.rank, e.detail());
                    return now + IDLE_NS;
                }
            }
        }
        let Some(remote) = self.state.remote() else { return now + IDLE_NS };
        if let Some(why) = remote.link.failure() {
            common.is_in_trouble(self.rank, why);
            return now + IDLE_NS;
        }
        if self.state.stage() == Stage::Connects {
            if !remote.is_ready(slot) {
                return now + SOON_NS;
            }
            self.state.set(Stage::Sent);
        }
        if self.state.stage() == Stage::Sent {
            if errand.sent < common.plan.messages {
                remote.link.poll();
                if remote.acked(slot) < u64::from(errand.sent) {
                    return now + if remote.link.is_up() { SOON_NS } else { FAR_NS };
                }
                if !remote.is_ready(slot) {
                    return now + SOON_NS;
                }
                let words = common.plan.says(self.rank, errand.sent);
                let land = Land::new(u64::from(errand.sent) + 1, 0, Kind::RemoteInline, 8 * words.len(), WORLD_EPOCH);
                if remote.land(slot, land, &words).is_err() {
                    return now + SOON_NS;
                }
                errand.sent += 1;
                return now + SOON_NS;
            }
            if !is_there(&remote, slot, 1) {
                remote.link.poll();
                return now + if remote.link.is_up() { SOON_NS } else { FAR_NS };
            }
            check_answer(common, &remote, slot, self.rank, errand.sent - 1);
            remote.acknowledge(slot, 1, When::WithNext);
            self.state.taken.store(1, Ordering::Release);
            self.state.set(Stage::Answered);
        }
        if self.state.stage() == Stage::Answered {
            remote.tend();
            if remote.owes() || remote.acked(slot) < u64::from(errand.sent) {
                return now + SOON_NS;
            }
            self.state.set(Stage::Quiet);
        }
        if leaving {
            fabric.part(&remote.link);
            return now + SOON_NS;
        }
        now + if remote.link.is_up() { IDLE_NS } else { FAR_NS }
    }
}

impl Drop for Ghost {
    fn drop(&mut self) {
        // It holds the fabric, whose hooks hold it.
        *lock(&self.state.remote) = None;
    }
}

fn slot_of(plan: &Plan) -> usize {
    SYSTEM_INDICES + plan.index
}

fn is_there(remote: &Remote, slot: usize, seq: u64) -> bool {
    remote.landing(slot).is_some_and(|(land, _)| land.is(seq, WORLD_EPOCH))
}

/// What its fabric asks of a ghost.
fn hooks(common: &Arc<Common>, state: &Arc<State>) -> Hooks {
    let (tables, cards) = (common.tables.clone(), common.clone());
    let [to_close, to_settle, to_free, to_tell, to_owe, to_pay] = [0; 6].map(|_| state.clone());
    Hooks {
        on_number: Box::new(move |link, number| {
            let Some((call, of)) = Call::of(number) else { return };
            match (call, to_tell.remote()) {
                (Call::Sleeps, Some(remote)) if remote.link.is_up() => remote.confirm_sleep(),
                (Call::Noted | Call::Wake, Some(remote)) => remote.set_noted(call == Call::Noted),
                (Call::Asks, _) => answer(link, of, |_| None),
                _ => {}
            }
        }),
        moves_on: Box::new(|| ()),
        opened: Box::new(|_, _| ()),
        came_up: Box::new(move |_| to_pay.remote().iter().for_each(|remote| remote.pay_at_once())),
        owes: Box::new(move |_| to_owe.remote().is_some_and(|remote| remote.owes())),
        settle: Box::new(move |_| to_settle.remote().iter().for_each(|remote| remote.pay_at_once())),
        has_unmade: Box::new(|_| false),
        close: Box::new(move |link| match to_close.remote() {
            Some(remote) if std::ptr::eq(&*remote.link, link) => {
                (to_close.stage() == Stage::Quiet && !remote.owes()).then_some(1)
            }
            _ => Some(0),
        }),
        open: Box::new(|_| ()),
        free: Box::new(move |link| {
            let mut remote = lock(&to_free.remote);
            if remote.as_ref().is_some_and(|remote| std::ptr::eq(&*remote.link, link)) {
                *remote = None;
                to_free.taken.store(0, Ordering::Release);
                to_free.freed.store(true, Ordering::Release);
            }
        }),
        card_of: Box::new(move |rank| {
            let absent =
                || crate::base::error::Error::new(crate::base::error::Code::Rank, format!("no card of rank {rank}"));
            lock(&cards.cards).get(&rank).copied().ok_or_else(absent)
        }),
        tables: Box::new(move || Some(tables.clone())),
    }
}

/// The answer says the words of the last message, the other way round.
fn check_answer(common: &Common, remote: &Remote, slot: usize, rank: u32, last: u32) {
    let told = remote.landing(slot).map(|(_, [first, second, _])| [first, second]);
    let [first, second] = common.plan.says(rank, last);
    if told != Some([second, first]) {
        common.is_in_trouble(rank, &format!("has answered {told:x?}"));
    }
}
