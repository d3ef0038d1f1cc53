//! What all channels of a process share: what peers may reach, how much may be under way together, which channels have something to do, and
//! what has come that is told elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use super::carrier::{Carrier, Long, OVERHEAD, Receive, Ring, Spot, Taker};
use super::channel::Channel;
use super::channel::out::Batch;
use super::flow::NEVER;
use super::packet::channel_of;
use crate::base::clock::now_ns;
use crate::base::key::{Checks, Key};
use crate::base::lock::lock;
use crate::fabric::network::device::DATAGRAM;
use crate::fabric::served::memory::Memory;
use crate::fabric::served::news::{Came, News};
use crate::fabric::served::sleeper::Sleeper;

/// After so long without a word of the other end a channel has failed.
pub(super) const SILENCE_NS: u64 = 12_000_000_000;
/// Requests of all channels that are under way at most, and answers to others' beside them.
const REQUESTS: usize = 4096;
const ANSWERS: usize = 4096;
/// Bytes of frames that have come early, of all channels, at most.
const EARLY: usize = 1 << 20;
/// Peers that were heard within so long count as senders, among whom what there is room for is divided.
const HEARD_NS: u64 = 4_000_000;
/// Batches that are taken by one call at most, so that whoever waits sees what has come before.
const BATCHES: usize = 8;
/// While something was to do lately the thread looks this often, so that it need not be woken for what is to be done later than that.
const NAP_NS: u64 = 20_000_000;
const LATELY_NS: u64 = 1_000_000_000;

/// Something of which all channels of a process have so many at most.
#[derive(Debug)]
pub(super) struct Bounded {
    taken: AtomicUsize,
    most: usize,
}

impl Bounded {
    fn new(most: usize) -> Bounded {
        Bounded { taken: AtomicUsize::new(0), most }
    }
    /// Takes so many, if there are.
    pub fn take(&self, n: usize) -> bool {
        let before = self.taken.fetch_add(n, Ordering::Relaxed);
        if before + n > self.most {
            self.give_back(n);
            return false;
        }
        true
    }
    pub fn give_back(&self, n: usize) {
        self.taken.fetch_sub(n, Ordering::Relaxed);
    }
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.most - self.taken()
    }
}

/// How often something happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Datagrams with a wrong check, or of no channel.
    pub strange: AtomicU64,
    /// Frames sent, sent again, that had come before, and that came too early to be kept or could not be received.
    pub sent: AtomicU64,
    pub again: AtomicU64,
    pub doubled: AtomicU64,
    pub dropped: AtomicU64,
    /// Frames whose bytes were received where they belong.
    pub placed: AtomicU64,
}

/// Adds one, or more.
pub(super) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Who was heard of late: in this stretch of time, and in the one before.
#[derive(Debug, Default)]
struct Heard {
    stretch: AtomicU32,
    now: AtomicU32,
    before: AtomicU32,
}

/// See the head of this file.
pub(super) struct Home {
    pub carrier: Box<dyn Carrier>,
    pub memory: Arc<Memory>,
    pub news: News,
    pub sleeper: Sleeper,
    pub counts: Counts,
    pub requests: Bounded,
    pub answers: Bounded,
    pub early: Bounded,
    pub batch: Mutex<Batch>,
    checks: OnceLock<Checks>,
    all: RwLock<HashMap<u32, Weak<Channel>>>,
    /// Of those channels that have one.
    rings: Mutex<HashMap<u32, Box<dyn Ring>>>,
    last: AtomicU32,
    /// All numbers have these.
    bits: u32,
    /// Those that have something to do by themselves, and when the first of it is.
    busy: Mutex<Vec<Weak<Channel>>>,
    due_ns: AtomicU64,
    /// When something became busy last, and until when the thread sleeps.
    stirred_ns: AtomicU64,
    sleeps_until_ns: AtomicU64,
    /// Turns of waits since something was held back.
    pub turns: AtomicU32,
    receiving: Mutex<()>,
    ticking: Mutex<()>,
    heard: Heard,
}

impl Home {
    pub fn new(carrier: Box<dyn Carrier>, memory: Arc<Memory>, sleeper: Sleeper, bits: u32) -> Home {
        Home {
            carrier,
            memory,
            news: News::default(),
            sleeper,
            counts: Counts::default(),
            requests: Bounded::new(REQUESTS),
            answers: Bounded::new(ANSWERS),
            early: Bounded::new(EARLY),
            batch: Mutex::default(),
            checks: OnceLock::new(),
            all: RwLock::default(),
            rings: Mutex::default(),
            last: AtomicU32::new(0),
            bits,
            busy: Mutex::default(),
            due_ns: AtomicU64::new(NEVER),
            stirred_ns: AtomicU64::new(0),
            sleeps_until_ns: AtomicU64::new(0),
            turns: AtomicU32::new(0),
            receiving: Mutex::default(),
            ticking: Mutex::default(),
            heard: Heard::default(),
        }
    }
    /// The time.
    #[inline]
    pub fn now(&self) -> u64 {
        now_ns()
    }
    /// Datagrams are of the job with this key from now on.
    pub fn know(&self, job: &Key) {
        let _ = self.checks.set(job.derive("channels", &[]).checks());
    }
    /// By which datagrams are known; `None`: the job is not known yet.
    pub fn checks(&self) -> Option<&Checks> {
        self.checks.get()
    }

    /// A channel is to be known by a number, with which it is made; what comes for it comes to this ring, if there is one.
    pub fn add(&self, ring: Option<Box<dyn Ring>>, make: impl FnOnce(u32, bool) -> Arc<Channel>) -> Arc<Channel> {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) | self.bits;
            if number != 0 && !all.contains_key(&number) {
                let channel = make(number, ring.is_some());
                ring.into_iter().for_each(|ring| _ = lock(&self.rings).insert(number, ring));
                all.insert(number, Arc::downgrade(&channel));
                return channel;
            }
        }
    }
    /// Where what is for a channel comes, and how many datagrams may be under way there; 0: as many as there are bytes granted for.
    pub fn spot_of(&self, number: u32) -> (Spot, u32) {
        let rings = lock(&self.rings);
        rings.get(&number).map_or_else(|| (self.carrier.spot(), 0), |ring| (ring.spot(), ring.slots()))
    }
    /// A channel is gone.
    pub fn forget(&self, number: u32) {
        let ring = lock(&self.rings).remove(&number);
        drop(ring);
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
    fn of(&self, number: u32) -> Option<Arc<Channel>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(&number)?.upgrade()
    }
    /// A peer has sent something; in which stretch of time it did so last.
    pub fn is_heard(&self, last: &mut u32, now: u64) {
        let (of, stretch) = (&self.heard, (now / HEARD_NS) as u32);
        let before = of.stretch.swap(stretch, Ordering::Relaxed);
        if before != stretch {
            let senders = of.now.swap(0, Ordering::Relaxed);
            of.before.store(if stretch.wrapping_sub(before) == 1 { senders } else { 0 }, Ordering::Relaxed);
        }
        if std::mem::replace(last, stretch) != stretch {
            of.now.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Bytes that each peer may have under way to this process now.
    pub fn grant(&self) -> u32 {
        let (now, before) = (self.heard.now.load(Ordering::Relaxed), self.heard.before.load(Ordering::Relaxed));
        (self.carrier.room() / 4 * 3 / now.max(before).max(1)).max(OVERHEAD)
    }

    /// A channel has something to do by itself, not before then.
    pub fn is_busy(&self, channel: Weak<Channel>, due_ns: u64, now: u64) {
        lock(&self.busy).push(channel);
        self.stirred_ns.store(now, Ordering::Relaxed);
        self.is_due(due_ns);
    }
    /// The same of one that is busy already.
    pub fn is_due(&self, due_ns: u64) {
        // SYNC POINT: pairs with `rest_for`: the thread sees when something is due, or this that it sleeps longer.
        if self.due_ns.fetch_min(due_ns, Ordering::SeqCst) > due_ns
            && !self.sleeper.lets_wait()
            && self.sleeps_until_ns.load(Ordering::SeqCst) > due_ns.saturating_add(NAP_NS)
            && !self.sleeper.is_caller()
        {
            self.sleeper.wake();
        }
    }
    /// How long the thread may sleep, of at most so many nanoseconds.
    pub fn rest_for(&self, most_ns: u64) -> u64 {
        let now = self.now();
        let is_lively = now.saturating_sub(self.stirred_ns.load(Ordering::Relaxed)) < LATELY_NS;
        let until = now.saturating_add(most_ns).min(if is_lively { now + NAP_NS } else { NEVER });
        // SYNC POINT: pairs with `is_due`.
        self.sleeps_until_ns.store(until, Ordering::SeqCst);
        until.min(self.due_ns.load(Ordering::SeqCst)).saturating_sub(now)
    }
    /// The thread is awake.
    pub fn is_awake(&self) {
        self.sleeps_until_ns.store(0, Ordering::Relaxed);
    }

    /// Does for all channels what is due, or, with `all`, what can be done now.
    pub fn tick(&self, all: bool) {
        let now = self.now();
        if !all && now < self.due_ns.load(Ordering::Relaxed) {
            return;
        }
        // One at a time: what is due is said anew by whom is asked.
        let Ok(_one) = self.ticking.try_lock() else { return };
        // Before the list is taken: whoever comes later says again when something is due.
        self.due_ns.store(NEVER, Ordering::SeqCst);
        let channels = std::mem::take(&mut *lock(&self.busy));
        let mut still: Vec<Weak<Channel>> = Vec::with_capacity(channels.len());
        for weak in channels {
            let Some(channel) = weak.upgrade() else { continue };
            if let Some(due_ns) = channel.tick(all, now) {
                still.push(weak);
                self.is_due(due_ns);
            }
        }
        lock(&self.busy).append(&mut still);
    }
    /// Is something to do?
    #[inline]
    pub fn has_something(&self) -> bool {
        self.due_ns.load(Ordering::Relaxed) != NEVER
    }

    /// A number has come by a channel.
    pub fn tell_number(&self, channel: u32, number: u32) {
        self.news.add(Came::Number(channel, number));
    }
    /// Bytes of its memory beside the channels themselves: for what comes, and what is under way.
    pub fn bytes(&self) -> usize {
        let under_way = self.requests.taken() + self.answers.taken();
        let leaving = lock(&self.batch).bytes();
        let rings: usize = lock(&self.rings).values().map(|ring| ring.bytes()).sum();
        self.carrier.bytes() + rings + leaving + under_way * Channel::BYTES_OF_A_REQUEST + self.early.taken()
    }

    /// What has happened, for who looks for losses.
    pub fn story(&self) -> String {
        let Counts { strange, sent, again, doubled, dropped, placed } = &self.counts;
        let [strange, sent, again, doubled, dropped, placed] =
            [strange, sent, again, doubled, dropped, placed].map(|n| n.load(Ordering::Relaxed));
        format!(
            "{sent} frames sent, {again} of them again; {doubled} came again, {dropped} lost here, {placed} in place; {strange} datagrams of strangers"
        )
    }

    /// Takes what has come, unless somebody is at it.
    pub fn receive(&self) {
        let Ok(_one) = self.receiving.try_lock() else { return };
        let mut touched: Vec<Arc<Channel>> = Vec::new();
        for _ in 0..BATCHES {
            if self.news.is_full() {
                break;
            }
            let got = self.carrier.receive(&mut Taking { home: self, touched: &mut touched });
            let now = if touched.is_empty() { 0 } else { self.now() };
            touched.drain(..).for_each(|channel| channel.after(now));
            match got {
                Ok(true) => {}
                Err(e) if !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {
                    self.take_refusals();
                    break;
                }
                _ => break,
            }
        }
    }

    /// Where nobody was: whoever waits for an answer from there hears of it.
    pub fn take_refusals(&self) {
        let mut refused: Vec<Spot> = Vec::new();
        self.carrier.refusals(&mut |spot| refused.push(*spot));
        if refused.is_empty() {
            return;
        }
        let now = self.now();
        let busy: Vec<Arc<Channel>> = lock(&self.busy).iter().filter_map(Weak::upgrade).collect();
        for channel in busy {
            channel.is_refused_at(&refused, now);
        }
    }
}

/// What comes, by the channels that it is for.
struct Taking<'a> {
    home: &'a Home,
    /// Those that something has come for.
    touched: &'a mut Vec<Arc<Channel>>,
}

impl Taking<'_> {
    /// The channel with this number, and by what its datagrams are known.
    fn channel(&self, number: u32) -> Option<(&Checks, Arc<Channel>)> {
        self.home.checks().zip(self.home.of(number))
    }
    fn touch(&mut self, channel: Arc<Channel>) {
        if !self.touched.iter().any(|one| Arc::ptr_eq(one, &channel)) {
            self.touched.push(channel);
        }
    }
}

impl Taker for Taking<'_> {
    fn take(&mut self, datagram: &[u8]) {
        let news = &self.home.news;
        let Some(number) = channel_of(datagram) else {
            return news.add(match <&[u8; DATAGRAM]>::try_from(datagram) {
                Ok(whole) => Came::Datagram(Box::new(*whole)),
                Err(_) => Came::Damaged,
            });
        };
        match self.channel(number) {
            Some((checks, channel)) if channel.take(datagram, checks) => self.touch(channel),
            _ => {
                count(&self.home.counts.strange, 1);
                news.add(Came::Damaged);
            }
        }
    }

    fn place(&mut self, long: &Long, receive: &mut Receive<'_>) -> bool {
        let known = channel_of(&long.head).and_then(|number| self.channel(number));
        let Some((checks, channel)) = known else { return false };
        let Some(others) = channel.place(long, checks, receive) else { return false };
        self.touch(channel);
        others.chunks(long.each).for_each(|datagram| self.take(datagram));
        true
    }
}
