//! First contact with a peer, and the packets that the two threads say to each other.
//!
//! ```text
//!   caller                                  peer's thread (fmpl-network)
//!   link and windows made
//!   Open: my memory        ───────────────▶ link and windows made if need be; knows ours
//!   (repeated until answered)  ◀─────────── Opened: its memory
//!   knows the peer's
//! ```
//! Whoever wants to know asks, so both may ask at once. The connection itself is made when something is to be posted, see `super::turns`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{ANNEX_CHUNK, FIRST_PATIENCE, Fabric, LAST_PATIENCE, Links, Shared, WINDOW_BYTES};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::log::{Level, report, tell};
use crate::base::rules::{Rule, holds};
use crate::fabric::network::device::End;
use crate::fabric::network::handshake::Say;
use crate::fabric::network::hello::{Card, Hello, Kind};
use crate::fabric::network::link::ending::Reason;
use crate::fabric::network::link::memory::Told;
use crate::fabric::network::link::{Link, Window};
use crate::fabric::network::ways::Way;

/// A peer as contact has made it known: the link, and the page and a chunk of the fronts of a lane.
pub type Contact = (Arc<Link>, [Arc<Window>; 2]);

impl Fabric {
    /// The link with a peer, and the page and a chunk of the fronts of a lane, made at first use. When this returns, both sides know where
    /// the other's are.
    ///
    /// `Peer`: no answer in time, or the connection is broken. `Version`: the peer runs another build.
    pub fn contact(
        &self,
        peer: u32,
        card: &Card,
        lane: u64,
        chunk: u32,
        timeout: Duration,
    ) -> Result<(Arc<Link>, Arc<Window>, Arc<Window>)> {
        let shared = &*self.shared;
        let began = now_ns();
        let mut deadline = began + timeout.as_nanos() as u64;
        let mut silent = !shared.stall.is_zero();
        let link = loop {
            let link = shared.link(peer);
            if !link.lives.is_closed() || now_ns() >= deadline {
                break link;
            }
            // It is about to be forgotten, or not.
            shared.await_answer(FIRST_PATIENCE, |_| !link.lives.is_closed());
        };
        shared.asks_for(&link);
        let _ = link.card.set(*card);
        // A contact is also the way to learn how many indices the peer has by now, so one answer is awaited in any case.
        let before = link.answers();
        let done = |link: &Arc<Link>| {
            if link.answers() == before {
                return None;
            }
            Some((link.open_window(lane, 0)?, link.open_window(lane, chunk + 1)?))
        };
        let mut patience = FIRST_PATIENCE;
        loop {
            if let Some((page, fronts)) = done(&link) {
                return Ok((link, page, fronts));
            }
            if let Some(why) = link.failure().filter(|_| link.has_ended()) {
                let me = shared.rank;
                return Err(error!(Code::Peer, "rank {me}: rank {peer} {why}"));
            }
            if let Some(version) = shared.lock().refused.get(&peer) {
                return Err(other_build(peer, *version));
            }
            if now_ns() >= deadline || link.lives.is_closed() {
                return Err(error!(
                    Code::Peer,
                    "rank {}: rank {peer} did not answer over {} within {:.1} s: it has died, it is stopped, or there is no way \
                         to its port{}{} (FMPL_ATTACH_TIMEOUT sets the time)",
                    shared.rank,
                    shared.device.describe(),
                    timeout.as_secs_f64(),
                    if !link.is_found.load(Ordering::Relaxed) {
                        ", whose address the network does not know"
                    } else {
                        ""
                    },
                    shared.why_silent(Some(card)),
                ));
            }
            let waited = Duration::from_nanos(now_ns() - began);
            if silent && waited >= shared.stall {
                silent = false;
                report(&format!(
                    "stalled: rank {}: {:.1} s in the first contact with rank {peer} over {}, which has not answered: it has died, it is \
                     stopped, or there is no way to its port",
                    shared.rank,
                    waited.as_secs_f64(),
                    shared.device.describe(),
                ));
            }
            shared.send_to(&link, &shared.introduce(Kind::Open, &link, lane, chunk)?)?;
            let at_most = patience.min(Duration::from_nanos(deadline.saturating_sub(now_ns())));
            shared.await_answer(at_most, |links| {
                done(&link).is_some() || links.refused.contains_key(&peer) || link.has_ended()
            });
            let later = link.takes_put_off();
            if let Some(pause) = later {
                // It is there, and has no room now.
                deadline = now_ns() + (timeout + pause).as_nanos() as u64;
            }
            patience = later.unwrap_or((patience * 2).min(LAST_PATIENCE));
        }
    }

    /// The same without a wait: says once more what is not answered yet. `None`: not known yet.
    pub fn greet(&self, peer: u32, card: &Card, lane: u64, chunk: u32) -> Result<Option<Contact>> {
        let link = self.shared.link(peer);
        self.shared.asks_for(&link);
        let _ = link.card.set(*card);
        if let (Some(page), Some(fronts)) = (link.open_window(lane, 0), link.open_window(lane, chunk + 1)) {
            return Ok(Some((link, [page, fronts])));
        }
        if !link.lives.is_closed() {
            self.shared.send_to(&link, &self.shared.introduce(Kind::Open, &link, lane, chunk)?)?;
        }
        Ok(None)
    }

    /// A link with a peer that nothing is said over yet: whoever tends it hears whether the peer is there.
    pub fn acquaint(&self, peer: u32, card: &Card) {
        let link = self.shared.link(peer);
        self.shared.asks_for(&link);
        let _ = link.card.set(*card);
    }

    /// Asks processes whether they are there, until all have answered or the time is over; the first that has not, and why that may be.
    /// Nothing is kept for them.
    pub fn probe(&self, peers: &[(u32, Card)], timeout: Duration) -> Result<Option<(u32, String)>> {
        let shared = &*self.shared;
        let deadline = now_ns() + timeout.as_nanos() as u64;
        let mut patience = FIRST_PATIENCE;
        loop {
            let (mut silent, mut refused) = (Vec::new(), None);
            {
                let links = shared.lock();
                for (peer, card) in peers {
                    refused = refused.or(links.refused.get(peer).map(|version| other_build(*peer, *version)));
                    silent.extend((!links.probed.contains(peer)).then_some((*peer, *card)));
                }
            }
            if let Some(error) = refused {
                return Err(error);
            }
            let Some((peer, card)) = silent.first() else {
                shared.lock().probed.clear();
                return Ok(None);
            };
            if now_ns() >= deadline {
                return Ok(Some((*peer, format!("{}{}", shared.device.describe(), shared.why_silent(Some(card))))));
            }
            for (peer, card) in &silent {
                // An error here is one of the moment, or it stays until the time is over.
                let _ = shared.send(card, &shared.hello(Kind::Probe, *peer));
            }
            let at_most = patience.min(Duration::from_nanos(deadline.saturating_sub(now_ns())));
            shared.await_answer(at_most, |links| {
                silent.iter().all(|(peer, _)| links.probed.contains(peer) || links.refused.contains_key(peer))
            });
            patience = (patience * 2).min(LAST_PATIENCE);
        }
    }
}

fn other_build(peer: u32, version: u32) -> Error {
    let text = format!("rank {peer} has layout version {version}; start all ranks with the same build of FMPL");
    Error::new(Code::Version, text)
}

impl Shared {
    /// What the network says of a process that has not answered, to go on with a text.
    pub fn why_silent(&self, card: Option<&Card>) -> String {
        card.and_then(|card| self.device.why_silent(&card.address)).map_or(String::new(), |why| format!("; {why}"))
    }

    /// A packet that says nothing yet but who sends it.
    pub fn hello(&self, kind: Kind, to: u32) -> Hello {
        Hello {
            kind,
            version: self.version(),
            from: self.rank,
            to,
            turn: 0,
            way: Way::Connected,
            number: 0,
            kept: false,
            card: self.card(),
            end: End::default(),
            indices: (self.who.indices)(),
            lives: [0; 2],
            memory: None,
        }
    }

    /// The same about what this side has with a peer.
    pub fn hello_to(&self, kind: Kind, link: &Link) -> Hello {
        Hello { lives: link.lives.said(), ..self.hello(kind, link.peer) }
    }

    fn introduce(&self, kind: Kind, link: &Link, lane: u64, chunk: u32) -> Result<Hello> {
        let hello = self.hello_to(kind, link);
        Ok(Hello { memory: Some(link.tells(Some((lane, chunk)), WINDOW_BYTES)?), ..hello })
    }

    /// What a packet about the connection says beside that: this side's era, and keys that the peer most likely wants next.
    pub(in crate::fabric::network) fn memory(&self, link: &Link) -> Option<Told> {
        link.tells(None, WINDOW_BYTES).ok()
    }

    /// Asks a peer for an answer, whatever its connection is at.
    pub fn ask_for_a_word(&self, link: &Link) {
        let _ = self.send_to(link, &Hello { memory: self.memory(link), ..self.hello_to(Kind::Open, link) });
    }

    /// Asks a peer by which keys its page of a lane and a chunk are reached now, and waits for a moment unless that is `over`.
    pub fn ask_where(&self, link: &Link, lane: u64, chunk: u32, patience: Duration, over: impl Fn() -> bool) {
        if let Ok(hello) = self.introduce(Kind::Open, link, lane, chunk) {
            let _ = self.send_to(link, &hello);
        }
        self.await_answer(patience, |_| over());
    }

    /// Waits for so long at most, unless that is `over`. The thread of the fabric, which moves other calls on too, takes in by itself what comes:
    /// nobody else would.
    fn await_answer(&self, at_most: Duration, over: impl Fn(&Links) -> bool) {
        if !self.is_its_thread() || !holds(Rule::ThreadTakesIn) {
            let links = self.lock();
            drop(self.answered.wait_timeout_while(links, at_most, |links| !over(links)));
            return;
        }
        let until = now_ns() + at_most.as_nanos() as u64;
        loop {
            self.pump();
            // The other connections go on meanwhile, and the next deed is not one that is past.
            self.tick();
            if over(&self.lock()) || now_ns() >= until || self.stop.load(Ordering::Acquire) {
                return;
            }
            self.due_ns.fetch_min(until, Ordering::AcqRel);
            self.rest();
        }
    }

    /// Sends a datagram to whom there is no link with; it may be lost.
    pub fn send(&self, to: &Card, hello: &Hello) -> Result<()> {
        self.put(to, hello).map(|_| ())
    }

    /// Sends a datagram to a peer, whose card is known; it may be lost.
    pub fn send_to(&self, link: &Link, hello: &Hello) -> Result<()> {
        let Some(card) = link.card.get() else { return Ok(()) };
        if self.put(card, hello)? {
            link.is_found.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// `false`: the network does not know where that is.
    fn put(&self, to: &Card, hello: &Hello) -> Result<bool> {
        // Nobody says anything before the job's key is known.
        let Some(stamps) = self.stamps.get() else { return Ok(true) };
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        self.device.send(&to.address, &stamps.put(hello))
    }

    /// Deals with a datagram.
    pub fn packet(&self, bytes: &[u8]) {
        let Some(hello) = self.stamps.get().and_then(|stamps| stamps.take(bytes)) else {
            if self.rejected.fetch_add(1, Ordering::Relaxed) == 0 {
                tell(Level::Warn, || {
                    "dropped a datagram that is not of this job, or came before (said once; more are counted)"
                        .to_owned()
                });
            }
            return;
        };
        if hello.version != self.version() || hello.kind == Kind::Refuse {
            if hello.kind != Kind::Refuse {
                let _ = self.send(&hello.card, &self.hello(Kind::Refuse, hello.from));
            }
            self.lock().refused.insert(hello.from, hello.version);
            self.answered.notify_all();
            return;
        }
        match hello.kind {
            Kind::Yield(which) => return self.make_room_for_others(which),
            Kind::Probe => {
                let _ = self.send(&hello.card, &self.hello(Kind::Probed, hello.from));
                return;
            }
            Kind::Probed => {
                self.lock().probed.insert(hello.from);
                self.answered.notify_all();
                return;
            }
            _ => {}
        }
        let Some(link) = self.link_of(&hello) else { return };
        let _ = link.card.set(hello.card);
        // Whatever it says: it is there.
        link.is_heard();
        match hello.kind {
            Kind::Forget | Kind::Kept | Kind::Forgotten => self.hears_of_forgetting(link, &hello),
            // A peer that wants a connection meanwhile says so again when it has answered.
            Kind::Say(Say::Want | Say::Connect) | Kind::Open if link.lives.is_closed() => {}
            Kind::Say(say) => self.said(&link, say, &hello),
            Kind::Leave => {
                link.set_left();
                let _ = self.send_to(&link, &self.hello_to(Kind::Left, &link));
                if let Some(hooks) = self.hooks.get() {
                    (hooks.came_up)(&link);
                }
            }
            Kind::Later => link.is_put_off(hello.turn),
            Kind::Broken => link.hear(Reason::of(hello.turn)),
            Kind::Left => {
                link.end_is_known();
                drop(self.lock());
                self.answered.notify_all();
            }
            _ => match (self.take_in(&link, &hello), &hello.memory, self.hooks.get()) {
                (Err(e), ..) => tell(Level::Warn, || format!("connecting with rank {}: {}", hello.from, e.detail())),
                (Ok(()), Some(told), Some(hooks)) if hello.kind == Kind::Open => (hooks.opened)(&link, told.lane),
                _ => {}
            },
        }
    }

    /// The peer has told where its memory is.
    fn take_in(&self, link: &Link, hello: &Hello) -> Result<()> {
        let Some(told) = &hello.memory else { return Ok(()) };
        let annex = told.chunk == ANNEX_CHUNK;
        if annex && !link.may_have_annex(told.lane) {
            return Ok(());
        }
        link.is_told(told, WINDOW_BYTES)?;
        link.indices.fetch_max(hello.indices, Ordering::AcqRel);
        // Whoever waits for an answer wants another one.
        if hello.kind == Kind::Opened && !annex {
            link.count_answer();
        }
        // Under the lock, so that who is about to wait does not miss it.
        drop(self.lock());
        self.answered.notify_all();
        if hello.kind == Kind::Opened {
            return Ok(());
        }
        let answer = self.introduce(Kind::Opened, link, told.lane, told.chunk)?;
        self.send_to(link, &answer)
    }

    /// What a packet about the connection says of the peer's memory.
    pub(in crate::fabric::network) fn take_in_memory(&self, link: &Link, told: &Told) {
        // What cannot be kept is asked for when it is needed.
        let _ = link.is_told(told, WINDOW_BYTES);
        link.peer_is_in(told.era);
    }
}
