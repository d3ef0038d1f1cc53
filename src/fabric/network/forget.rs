//! Peers are forgotten: of one that nothing is under way with, and whose context this process has put away, nothing is kept.
//!
//! ```text
//!   at rest, context put away, nobody uses a lane, all of ours received
//!   closed: no lane is found any more      forget(n) ──────────────▶  at rest, nobody uses a lane, all of ours received?
//!                                                                     yes: frees lanes and link
//!   frees lanes and link                ◀────────────── forgotten(n)
//!   opens its lanes again, tries later  ◀─────────────────── kept(n)  no, and so again if forget(n) comes again
//! ```
//! Both are without a connection and closed at one time, so nothing of either is under way: the numbers of all indices may begin anew. Whoever
//! wants to use a lane that is closed waits for the answer. An attempt that was answered *kept* once is never answered otherwise: its second
//! copy may come when the first answer is believed already.
//!
//! What two processes have with each other are their **lives**: each link has a number that no other link of its process ever had, and packets
//! carry both. So a late packet of a life that is forgotten changes nothing: who has forgotten says so again, and who has not knows that
//! the sender did. A peer that comes with a new life has forgotten the last one, which it does only when it was asked to: its answer is late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::control::Shared;
use super::handshake::State;
use super::hello::{Hello, Kind};
use super::link::{Link, Posted};
use super::turns::SETTLED;
use crate::base::clock::now_ns;
use crate::base::log::{Level, tell};
use crate::base::rules::{Rule, holds};

/// From an attempt that was answered *kept* to the next, at first and at most.
const AGAIN_NS: [u64; 2] = [100_000_000, 10_000_000_000];
/// Attempts of all peers fall on multiples of this, so that many are made at one look at all links.
const TOGETHER_NS: u64 = 100_000_000;
/// From saying something to saying it again, at first and at most.
const PATIENCE_NS: [u64; 2] = [20_000_000, 500_000_000];
/// A peer that has only been met, and no more, is left alone for so long.
const MET_NS: u64 = 1_000_000_000;

/// Whose lives are known to each other.
#[derive(Debug)]
pub(super) struct Lives {
    /// This side's.
    pub mine: u64,
    theirs: AtomicU64,
    /// This side has asked the peer, and nobody here uses anything of it.
    closed: AtomicBool,
}

impl Lives {
    pub fn new(mine: u64) -> Lives {
        Lives { mine, theirs: AtomicU64::new(0), closed: AtomicBool::new(false) }
    }
    /// As they are said.
    pub fn said(&self) -> [u64; 2] {
        [self.mine, self.theirs.load(Ordering::Acquire)]
    }
    /// Is it being forgotten?
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
    /// The peer's is this one.
    pub fn knows(&self, theirs: u64) {
        self.theirs.store(theirs, Ordering::Release);
    }
}

/// How far the forgetting of a peer is.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// This side's last one.
    asked: u32,
    /// The peer's last one that was answered *kept*.
    refused: u32,
    /// When it was said last, and how long to wait for an answer.
    said: u64,
    patience: u64,
    /// The next one is not to be made before, and the pause after that.
    next: u64,
    pause: u64,
    /// The peer has answered *kept* after the connection of this turn.
    kept: u32,
}

impl Attempts {
    /// What must be known of them by a link that goes on after it was packed.
    pub fn numbers(&self) -> [u32; 3] {
        [self.asked, self.refused, self.kept]
    }
    pub fn go_on(&mut self, [asked, refused, kept]: [u32; 3]) {
        (self.asked, self.refused, self.kept) = (asked, refused, kept);
    }
    /// Has the peer something under way, as far as is known since this turn? Without another one nothing comes of it.
    pub fn is_kept_in(&self, turn: u32) -> bool {
        turn != 0 && self.kept == turn
    }
    /// The next one is made after a pause from now.
    fn put_off(&mut self, now: u64) {
        self.next = (now + self.pause).next_multiple_of(TOGETHER_NS);
    }
}

/// What is done with a packet of some life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// It is of this one.
    This,
    /// The sender has forgotten this one, and has another.
    Next,
    /// It is of one that the sender has ended, and says nothing any more.
    Earlier,
    /// It is of one that this side has ended.
    Ended,
}

impl Link {
    /// Of which life is a packet? The first one tells the peer's.
    fn of_life(&self, [theirs, mine]: [u64; 2]) -> Of {
        let known = self.lives.theirs.load(Ordering::Acquire);
        let told = holds(Rule::Lives);
        match () {
            _ if mine != 0 && mine != self.lives.mine && told => Of::Ended,
            _ if known == 0 || known == theirs || !told => {
                self.lives.theirs.store(theirs, Ordering::Release);
                Of::This
            }
            _ if theirs > known => Of::Next,
            _ => Of::Earlier,
        }
    }

    /// Is its peer being forgotten? Whoever has the link from the table uses it only if not.
    pub fn is_closed(&self) -> bool {
        self.lives.is_closed()
    }

    /// Is nothing under way but what its lanes may have?
    fn is_at_rest(&self, posted: &Posted) -> bool {
        let lends = self.lends();
        posted.hand.is_at_rest() && posted.made.is_none() && !self.has_ended() && !lends
    }
}

impl Shared {
    /// The link that a packet belongs to, made if need be; `None`: the packet is of a life that is over, and has been dealt with.
    pub(super) fn link_of(&self, hello: &Hello) -> Option<Arc<Link>> {
        loop {
            if self.answers_packed(hello) {
                return None;
            }
            if hello.lives[1] != 0 && !self.has(hello.from) {
                self.say_forgotten(hello);
                return None;
            }
            if hello.kind == Kind::Open
                && let Some(turn) = self.puts_off(hello.from)
            {
                let later = Hello { lives: [0, hello.lives[0]], turn, ..self.hello(Kind::Later, hello.from) };
                let _ = self.send(&hello.card, &later);
                self.not_known(hello.from);
                return None;
            }
            if hello.kind == Kind::Later && !self.has(hello.from) {
                self.not_known(hello.from);
                return None;
            }
            let link = self.link(hello.from);
            match link.of_life(hello.lives) {
                Of::This => return Some(link),
                Of::Earlier => return None,
                Of::Ended => {
                    self.say_forgotten(hello);
                    return None;
                }
                Of::Next if link.lives.is_closed() => self.forget(link),
                Of::Next => {
                    let peer = link.peer;
                    tell(Level::Warn, || {
                        format!("rank {peer} has forgotten this rank without asking; its packet is dropped")
                    });
                    return None;
                }
            }
        }
    }

    /// Says that what a packet is about is forgotten here. The peer may have said that it leaves.
    fn say_forgotten(&self, hello: &Hello) {
        let [theirs, mine] = hello.lives;
        let kind = match hello.kind {
            Kind::Leave => Kind::Left,
            // Who is told so knows it, or has asked.
            Kind::Forgotten | Kind::Kept | Kind::Left => return self.not_known(hello.from),
            _ => Kind::Forgotten,
        };
        let answer = Hello { lives: [mine, theirs], turn: hello.turn, ..self.hello(kind, hello.from) };
        let _ = self.send(&hello.card, &answer);
        self.not_known(hello.from);
    }

    /// Nothing is kept of who sends packets here and is not known.
    fn not_known(&self, peer: u32) {
        if !self.has(peer) {
            self.forget_stamps(peer);
        }
    }

    /// What the peer of a link without connection may be asked: to be forgotten. When it is to be looked at again. To be called with nothing but
    /// one hold of the link beside the table's.
    pub(super) fn tend_rest(&self, link: &Arc<Link>) -> u64 {
        if link.has_ended() && link.lives.is_closed() {
            // Whoever comes is told why.
            self.open(link);
        }
        if link.takes_unpacked()
            && let Some(hooks) = self.hooks.get()
        {
            // What the peer was to be told meanwhile, and that the communicator of a lane is freed.
            link.pages().iter().for_each(|page| (hooks.opened)(link, page.lane()));
        }
        if self.packs(link) {
            return SETTLED;
        }
        let at_rest = || !link.has_ended() && (link.lives.is_closed() || !link.is_in() && !link.has_left());
        let Some(mut posted) = at_rest().then(|| link.try_lock()).flatten() else { return SETTLED };
        let (now, before) = (now_ns(), posted.attempts.next);
        let due = self.ask_to_forget(link, &mut posted, now).unwrap_or(SETTLED);
        let is_kept = posted.attempts.next != before && !link.lives.is_closed();
        drop(posted);
        // What was received since the connection went is acknowledged over another one: nobody else would ever make it.
        if is_kept && self.hooks.get().is_some_and(|hooks| (hooks.owes)(link)) {
            link.is_there();
        }
        due
    }

    fn ask_to_forget(&self, link: &Arc<Link>, posted: &mut Posted, now: u64) -> Option<u64> {
        let attempts = &mut posted.attempts;
        if link.lives.is_closed() {
            if now.saturating_sub(attempts.said) >= attempts.patience {
                attempts.said = now;
                attempts.patience = (attempts.patience * 2).clamp(PATIENCE_NS[0], PATIENCE_NS[1]);
                let asked = attempts.asked;
                self.say_of_forgetting(link, Kind::Forget, asked);
            }
            let attempts = &posted.attempts;
            return Some(attempts.said + attempts.patience);
        }
        if link.lives.said()[1] == 0 || !link.is_at_rest(posted) {
            return None;
        }
        let from = posted.attempts.next.max(if posted.hand.turn() == 0 { posted.made_ns + MET_NS } else { 0 });
        if now < from {
            return Some(from);
        }
        let attempts = &mut posted.attempts;
        attempts.pause = (attempts.pause * 2).clamp(AGAIN_NS[0], AGAIN_NS[1]);
        attempts.put_off(now);
        if !self.close(link) {
            return Some(attempts.next);
        }
        attempts.asked += 1;
        (attempts.said, attempts.patience) = (now, PATIENCE_NS[0]);
        let asked = attempts.asked;
        self.say_of_forgetting(link, Kind::Forget, asked);
        Some(now + PATIENCE_NS[0])
    }

    fn say_of_forgetting(&self, link: &Link, kind: Kind, attempt: u32) {
        let _ = self.send_to(link, &Hello { turn: attempt, ..self.hello_to(kind, link) });
    }

    /// Nobody finds the lanes of a peer any more, nor anything else of it, unless somebody uses one.
    fn close(&self, link: &Arc<Link>) -> bool {
        let Some(lanes) = self.hooks.get().and_then(|hooks| (hooks.close)(link)) else { return false };
        {
            let _links = self.lock();
            // By the table, by whoever calls this, and by each lane. Who gets it from the table from here on looks whether it is closed.
            link.lives.closed.store(Arc::strong_count(link) == 2 + lanes, Ordering::Release);
        }
        if !link.lives.is_closed() {
            self.open(link);
        }
        link.lives.is_closed()
    }

    /// They may be used again.
    fn open(&self, link: &Link) {
        link.lives.closed.store(false, Ordering::Release);
        if let Some(hooks) = self.hooks.get() {
            (hooks.open)(link);
        }
        self.tell_those_who_wait();
    }

    /// The peer wants to be forgotten, or answers this side that does.
    pub(super) fn hears_of_forgetting(&self, link: Arc<Link>, hello: &Hello) {
        let mut posted = link.lock();
        match hello.kind {
            Kind::Forget if link.has_ended() => self.say_broken(&link),
            Kind::Forget => {
                let closing = posted.hand.state() == State::Closing;
                let again = hello.turn <= posted.attempts.refused;
                if closing && !again {
                    // The peer has seen its end already; it asks again.
                    return;
                }
                let may = !again && link.is_at_rest(&posted) && (link.lives.is_closed() || self.close(&link));
                if !may {
                    posted.attempts.refused = posted.attempts.refused.max(hello.turn);
                    return self.say_of_forgetting(&link, Kind::Kept, hello.turn);
                }
                self.give_context_back(&link, &posted);
                drop(posted);
                let answer = Hello { turn: hello.turn, ..self.hello_to(Kind::Forgotten, &link) };
                self.forget(link);
                let _ = self.send(&hello.card, &answer);
                self.forget_stamps(hello.from);
            }
            Kind::Kept if link.lives.is_closed() && hello.turn == posted.attempts.asked => {
                posted.attempts.kept = posted.hand.turn();
                posted.attempts.put_off(now_ns());
                drop(posted);
                self.open(&link);
                // Who had something to say to all has passed it over meanwhile.
                if let Some(hooks) = self.hooks.get() {
                    link.pages().iter().for_each(|page| (hooks.opened)(&link, page.lane()));
                }
                self.nudge();
            }
            Kind::Forgotten if link.lives.is_closed() => {
                drop(posted);
                self.forget(link);
            }
            // The peer does not know this life, in which nothing has gone between the two: it begins anew.
            Kind::Forgotten if posted.hand.turn() == 0 => link.lives.theirs.store(0, Ordering::Release),
            _ => {}
        }
    }

    /// Nothing is known any more of a peer whose lanes are closed.
    fn forget(&self, link: Arc<Link>) {
        if let Some(hooks) = self.hooks.get() {
            (hooks.free)(&link);
        }
        let mut links = self.lock();
        if links.by_peer.get(&link.peer).is_some_and(|known| Arc::ptr_eq(known, &link)) {
            links.by_peer.remove(&link.peer);
            links.back.leaves(link.peer);
            links.crowd.one_left(now_ns());
            self.forgotten.fetch_add(1, Ordering::Relaxed);
        }
        drop(links);
        self.forget_stamps(link.peer);
        self.tell_those_who_wait();
    }

    fn tell_those_who_wait(&self) {
        // Under the lock, so that who is about to wait does not miss it.
        drop(self.lock());
        self.answered.notify_all();
    }
}
