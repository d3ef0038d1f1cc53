//! First contact with a peer, and the packets that the two threads say to each other.
//!
//! ```text
//!   caller                                  peer's thread (fmpl-verbs)
//!   link and windows made
//!   Open: my memory        ───────────────▶ link and windows made if need be; knows ours
//!   (repeated until answered)  ◀─────────── Opened: its memory
//!   knows the peer's
//! ```
//! Whoever wants to know asks, so both may ask at once. The connection itself is made when something is to be posted, see `super::turns`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{FIRST_PATIENCE, Fabric, LAST_PATIENCE, QKEY, Shared, WINDOW_BYTES};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::fabric::verbs::completion::status_text;
use crate::fabric::verbs::ffi::{SendFlags, SendWr, Sge, Wc, opcode, wc_status};
use crate::fabric::verbs::hello::{Card, HELLO_LEN, Hello, Kind};
use crate::fabric::verbs::link::ending::Reason;
use crate::fabric::verbs::link::memory::Told;
use crate::fabric::verbs::link::{Link, Window};
use crate::fabric::verbs::queue_pair::{AddressHandle, Remote};

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
        let link = shared.link(peer);
        let _ = link.card.set(*card);
        // A contact is also the way to learn how many indices the peer has by now, so one answer is awaited in any case.
        let before = link.answers();
        let done = |link: &Arc<Link>| {
            if link.answers() == before {
                return None;
            }
            Some((link.open_window(lane, 0)?, link.open_window(lane, chunk + 1)?))
        };
        let deadline = Instant::now() + timeout;
        let mut patience = FIRST_PATIENCE;
        loop {
            if let Some((page, fronts)) = done(&link) {
                return Ok((link, page, fronts));
            }
            if let Some(why) = link.failure().filter(|_| link.has_ended()) {
                let me = shared.rank;
                return Err(Error::new(Code::Peer, format!("rank {me}: rank {peer} {why}")));
            }
            if let Some(version) = shared.lock().refused.get(&peer) {
                return Err(Error::new(
                    Code::Version,
                    format!("rank {peer} has layout version {version}; start all ranks with the same build of FMPL"),
                ));
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    Code::Peer,
                    format!(
                        "rank {}: rank {peer} did not answer over {} within {:.1} s: it has died, it is stopped, or there is no way \
                         to its port{} (FMPL_ATTACH_TIMEOUT sets the time)",
                        shared.rank,
                        shared.port,
                        timeout.as_secs_f64(),
                        if link.way.get().is_none() { ", whose address the network does not know" } else { "" }
                    ),
                ));
            }
            shared.send_to(&link, &shared.introduce(Kind::Open, &link, lane, chunk)?)?;
            let links = shared.lock();
            let until = patience.min(deadline.saturating_duration_since(Instant::now()));
            let waited = shared.answered.wait_timeout_while(links, until, |links| {
                done(&link).is_none() && !links.refused.contains_key(&peer) && !link.has_ended()
            });
            drop(waited);
            patience = (patience * 2).min(LAST_PATIENCE);
        }
    }
}

impl Shared {
    /// A packet that says nothing yet but who sends it.
    pub fn hello(&self, kind: Kind, to: u32) -> Hello {
        let (gid, lid) = (self.port.address.gid, self.port.lid);
        Hello {
            kind,
            version: self.version(),
            from: self.rank,
            to,
            turn: 0,
            number: 0,
            card: self.card(),
            end: Remote { qp_num: 0, psn: 0, gid, lid, mtu: self.port.mtu },
            indices: self.region.indices(),
            memory: None,
        }
    }

    fn introduce(&self, kind: Kind, link: &Link, lane: u64, chunk: u32) -> Result<Hello> {
        let hello = self.hello(kind, link.peer);
        Ok(Hello { memory: Some(link.tells(Some((lane, chunk)), WINDOW_BYTES)?), ..hello })
    }

    /// What a packet about the connection says beside that: this side's era, and keys that the peer most likely wants next.
    pub(in crate::fabric::verbs) fn memory(&self, link: &Link) -> Option<Told> {
        link.tells(None, WINDOW_BYTES).ok()
    }

    /// Asks a peer for an answer, whatever its connection is at.
    pub fn ask_for_a_word(&self, link: &Link) {
        if let Ok(hello) = self.introduce(Kind::Open, link, 0, 0) {
            let _ = self.send_to(link, &hello);
        }
    }

    /// Asks a peer by which keys its page of a lane and a chunk are reached now, and waits for a moment unless that is `over`.
    pub fn ask_where(&self, link: &Link, lane: u64, chunk: u32, patience: Duration, over: impl Fn() -> bool) {
        if let Ok(hello) = self.introduce(Kind::Open, link, lane, chunk) {
            let _ = self.send_to(link, &hello);
        }
        if self.is_its_thread() {
            // Nobody else would take the answer in.
            self.pump();
            if !over() {
                self.due_ns.fetch_min(now_ns() + patience.as_nanos() as u64, Ordering::AcqRel);
                self.rest();
                self.pump();
            }
            return;
        }
        let links = self.lock();
        drop(self.answered.wait_timeout_while(links, patience, |_| !over()));
    }

    /// Sends a datagram to whom there is no link with; it may be lost.
    pub fn send(&self, to: &Card, hello: &Hello) -> Result<()> {
        match AddressHandle::new(&self.domain, &self.port, to.gid, to.lid)? {
            Some(way) => self.send_by(&Arc::new(way), to, hello),
            None => Ok(()),
        }
    }

    /// Sends a datagram to a peer, whose card is known; it may be lost.
    pub fn send_to(&self, link: &Link, hello: &Hello) -> Result<()> {
        let Some(card) = link.card.get() else { return Ok(()) };
        let way = match link.way.get() {
            Some(way) => way,
            None => match AddressHandle::new(&self.domain, &self.port, card.gid, card.lid)? {
                Some(way) => link.way.get_or_init(|| Arc::new(way)),
                None => return Ok(()),
            },
        };
        self.send_by(way, card, hello)
    }

    fn send_by(&self, way: &Arc<AddressHandle>, to: &Card, hello: &Hello) -> Result<()> {
        // Nobody says anything before the job's key is known.
        let Some(stamps) = self.stamps.get() else { return Ok(()) };
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        let memory = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = stamps.put(hello);
        // SAFETY: the arena has room, and the last datagram from it has been sent, see below.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.as_ptr(), HELLO_LEN) };
        let mut sge = Sge { addr: memory.as_ptr() as u64, length: HELLO_LEN as u32, lkey: memory.region().lkey() };
        let mut wr = SendWr::new(opcode::SEND, SendFlags::SIGNALED, way.to(to.qp_num, QKEY));
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole; memory and way stay until its completion.
        unsafe { self.arrivals.datagrams.post(&mut wr)? };
        let since = Instant::now();
        let mut wc = [Wc::default()];
        // A datagram has completed when it has left.
        while self.sent.poll(&mut wc)? == 0 {
            if since.elapsed() > Duration::from_secs(5) {
                // The device is out of order: better to lose the way's memory than to have it used under the device.
                std::mem::forget(way.clone());
                return Err(Error::new(Code::System, format!("a datagram has not left {} for 5 s", self.port)));
            }
            std::thread::yield_now();
        }
        if wc[0].status != wc_status::SUCCESS {
            let why = status_text(wc[0].status);
            return Err(Error::new(Code::System, format!("sending a datagram by {}: {why}", self.port)));
        }
        Ok(())
    }

    /// Deals with a datagram.
    pub fn packet(&self, bytes: &[u8]) {
        let Some(hello) = self.stamps.get().and_then(|stamps| stamps.take(bytes)) else {
            if self.rejected.fetch_add(1, Ordering::Relaxed) == 0 && self.log >= 1 {
                eprintln!(
                    "fmpl: rank {}: dropped a datagram that is not of this job, or came before (said once; more are counted)",
                    self.rank
                );
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
        if let Kind::Yield(which) = hello.kind {
            return self.make_room_for_others(which);
        }
        let link = self.link(hello.from);
        let _ = link.card.set(hello.card);
        match hello.kind {
            Kind::Say(say) => self.said(&link, say, &hello),
            Kind::Leave => {
                link.set_left();
                let _ = self.send_to(&link, &self.hello(Kind::Left, hello.from));
                if let Some(hooks) = self.hooks.get() {
                    (hooks.came_up)(&link);
                }
            }
            Kind::Broken => link.hear(Reason::of(hello.turn)),
            Kind::Left => {
                link.end_is_known();
                drop(self.lock());
                self.answered.notify_all();
            }
            _ => {
                if let Err(e) = self.take_in(&link, &hello)
                    && self.log >= 1
                {
                    eprintln!("fmpl: rank {}: connecting with rank {}: {}", self.rank, hello.from, e.detail());
                }
            }
        }
    }

    /// The peer has told where its memory is.
    fn take_in(&self, link: &Link, hello: &Hello) -> Result<()> {
        let Some(told) = &hello.memory else { return Ok(()) };
        link.is_told(told, WINDOW_BYTES)?;
        link.indices.fetch_max(hello.indices, Ordering::AcqRel);
        link.is_heard();
        if hello.kind == Kind::Opened {
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
    pub(in crate::fabric::verbs) fn take_in_memory(&self, link: &Link, told: &Told) {
        // What cannot be kept is asked for when it is needed.
        let _ = link.is_told(told, WINDOW_BYTES);
        link.peer_is_in(told.era);
    }
}
