//! One end of a connection, as the protocol between nodes wants it: an endpoint of its own, since closing it is the only thing that
//! certainly keeps the other end from this process's memory.
//!
//! Libfabric's reliable datagrams need no connection, and so tell of none that is lost: a provider over sockets makes a new one by itself,
//! and what had left by the old one may be gone without a word. So every write is counted, and an end that misses one is broken off: see
//! [`pairs`](super::pairs). The other end has told its pair. A completion is asked for with the write's delivery, so it stands for this write, and for those before
//! it where the provider keeps their order; where it does not, one request is under way at a time.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::changes::{SAID, Said};
use super::domain::Net;
use super::endpoint::{Contexts, Endpoint};
use super::ffi::CqEntry;
use super::held::Held;
use super::pairs::{Came, Pairs, Row};
use super::provider::ADDRESS_MOST;
use super::queue::{Inlets, Queue};
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::device::{Access, Completion, End, OPAQUE, Pair, RECORD_MOST, Request, Status};
use crate::fabric::network::region::{Arena, Domain};
use crate::fabric::served::held_back::HeldBack;

mod posting;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// Messages that may come before anybody has looked: a question of the other end's, and its answer, with some to spare.
const MESSAGES: usize = 4;
/// Places for messages that leave, used in turn: when the one after the next leaves, the other end has answered the first.
const SAYS: usize = 4;
/// Bytes of a place for one.
const MESSAGE: usize = 64;

/// A request that tells of its end.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// Its number.
    id: u64,
    over: bool,
    /// What it tells is that it is in the other end's memory; otherwise that this side's memory is read.
    delivered: bool,
}

/// What changes as requests are posted and complete.
struct Live {
    /// `None`: broken off.
    endpoint: Option<Endpoint>,
    /// What the library calls the other end, and that end's number; and where it is.
    other: Option<(u64, u16)>,
    there: [u8; ADDRESS_MOST],
    /// The writes that leave.
    sends: Row,
    /// Requests that tell of their end, in the order of their posting.
    under_way: VecDeque<UnderWay>,
    /// What is posted together with what comes next.
    held: Held,
    /// When a record was posted last.
    posted_ns: u64,
    /// Number of the last request.
    last: u64,
    /// A request that could not even be posted.
    failed: Option<Completion>,
    /// Something was posted: there was a way to the other end.
    was_there: bool,
    /// There is none since then; 0: there is.
    lost_ns: u64,
    /// The change that is under way, and where what was there goes.
    changing: Option<(u64, u64)>,
    /// What could not be said yet, and receives that could not be posted.
    unsaid: VecDeque<Said>,
    /// Messages said.
    says: usize,
    unposted: Vec<usize>,
}

/// See the head of this file.
pub(super) struct Connection {
    live: Mutex<Live>,
    /// Broken off, or a request has failed at once: to be told of.
    speaks: AtomicBool,
    // Behind the endpoint: closed later.
    sent: Queue,
    address: [u8; ADDRESS_MOST],
    number: u16,
    /// Requests under way at most.
    depth: u32,
    ordered: bool,
    /// Does a write of no bytes end?
    delivers_nothing: bool,
    contexts: Contexts,
    /// Copies of records that the provider does not take at once, a place for each request; and places for messages.
    copies: Arena,
    /// The other end is this one.
    loops: AtomicBool,
    /// Something is unsaid or unposted.
    owes: AtomicBool,
    /// Of what is held there.
    held: HeldBack,
    /// The last request whose memory has been read, and all before it.
    read: AtomicU64,
    /// The writes that come.
    comes: Mutex<Row>,
    pairs: Arc<Mutex<Pairs>>,
    arrived: Arc<Queue>,
    inlets: Arc<Inlets>,
    net: Arc<Net>,
}

impl Connection {
    /// For `depth` requests under way; what comes by it goes to a queue that is among the `inlets`.
    pub fn new(
        net: &Arc<Net>,
        domain: &Arc<Domain>,
        inlets: &Arc<Inlets>,
        pairs: &Arc<Mutex<Pairs>>,
        depth: u32,
    ) -> Result<Connection> {
        let sent = Queue::new(net, depth as usize + 16, false)?;
        let arrived = Arc::new(Queue::new(net, 2 * depth as usize, true)?);
        let endpoint = Endpoint::open(net, &sent, &arrived, true)?;
        let address = endpoint.address()?;
        let copies =
            Arena::new(domain, depth as usize * RECORD_MOST + (MESSAGES + SAYS) * MESSAGE, Access::LOCAL_WRITE)?;
        let full = || Error::new(Code::Memory, "all numbers for connections are in use");
        let number = pairs.lock().unwrap_or_else(PoisonError::into_inner).add().ok_or_else(full)?;
        let live = Live {
            endpoint: Some(endpoint),
            other: None,
            there: [0; ADDRESS_MOST],
            sends: Row::default(),
            under_way: VecDeque::with_capacity(depth as usize),
            held: Held::new(net.offer.writes_together()),
            posted_ns: 0,
            last: 0,
            failed: None,
            was_there: false,
            lost_ns: 0,
            changing: None,
            unsaid: VecDeque::new(),
            says: 0,
            unposted: (0..MESSAGES).collect(),
        };
        let connection = Connection {
            live: Mutex::new(live),
            speaks: AtomicBool::new(false),
            sent,
            address,
            number,
            depth,
            ordered: net.offer.is_ordered(),
            delivers_nothing: net.offer.delivers_nothing(),
            contexts: Contexts::new(depth as usize + MESSAGES + SAYS),
            copies,
            loops: AtomicBool::new(false),
            owes: AtomicBool::new(false),
            held: HeldBack::new(),
            read: AtomicU64::new(0),
            comes: Mutex::default(),
            pairs: pairs.clone(),
            arrived,
            inlets: inlets.clone(),
            net: net.clone(),
        };
        connection.settle(&mut connection.live());
        Ok(connection)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes by it.
    pub fn arrived(&self) -> &Arc<Queue> {
        &self.arrived
    }

    /// A write has come, with this.
    pub fn comes(&self, data: u64) -> Came {
        self.comes.lock().unwrap_or_else(PoisonError::into_inner).came(data)
    }

    /// Is it connected with itself?
    fn is_own(&self, other: u16) -> bool {
        other == self.number && self.loops.load(Ordering::Relaxed)
    }

    fn say(&self, endpoint: &Endpoint, says: &mut usize, said: &Said, to: u64) -> std::result::Result<bool, c_int> {
        let n = MESSAGES + *says % SAYS;
        let (at, lkey) = (self.message(n), self.copies.region().lkey());
        let name = if self.net.names_local() { self.net.descriptor(lkey) } else { std::ptr::null_mut() };
        // SAFETY: a place of the arena's, whose last message has been answered.
        let posted = unsafe {
            std::ptr::copy_nonoverlapping(said.encode().as_ptr(), at, SAID);
            endpoint.send(at, SAID, name, to, self.contexts.of(self.depth as usize + n))
        };
        *says += (posted == Ok(true)) as usize;
        posted
    }

    /// Says what is unsaid, and posts the receives that are not.
    fn settle(&self, live: &mut Live) {
        let (Some(endpoint), other) = (&live.endpoint, live.other) else { return };
        let lkey = self.copies.region().lkey();
        let name = if self.net.names_local() { self.net.descriptor(lkey) } else { std::ptr::null_mut() };
        live.unposted.retain(|n| {
            // SAFETY: a place of the arena's, whose last message was looked at.
            let posted =
                unsafe { endpoint.receive(self.message(*n), MESSAGE, name, self.contexts.of(self.depth as usize + n)) };
            posted != Ok(true)
        });
        while let (Some(said), Some((to, _))) = (live.unsaid.front(), other) {
            // An error here is one of what is under way, too, which tells of it.
            if self.say(endpoint, &mut live.says, said, to) == Ok(false) {
                break;
            }
            live.unsaid.pop_front();
        }
        self.owes.store(!live.unsaid.is_empty() || !live.unposted.is_empty(), Ordering::Release);
    }

    /// Does what could not be done before.
    pub fn settle_up(&self) {
        if self.owes.load(Ordering::Acquire) {
            self.settle(&mut self.live());
        }
    }

    /// The place of a message.
    fn message(&self, n: usize) -> *mut u8 {
        // SAFETY: behind the copies.
        unsafe { self.copies.as_ptr().add(self.depth as usize * RECORD_MOST + n * MESSAGE) }
    }

    /// A receive is over, with what the other end has said, or without.
    pub fn hears(&self, context: *mut c_void, len: usize) {
        let place = self.contexts.number(context).and_then(|n| n.checked_sub(self.depth as usize));
        let Some(place) = place else { return };
        // SAFETY: a place that the device has done with.
        let bytes = unsafe { std::slice::from_raw_parts(self.message(place), len.min(MESSAGE)) };
        let said = Said::decode(bytes);
        let mut live = self.live();
        let live = &mut *live;
        live.unposted.push(place);
        match said {
            Some(Said::Asks(id, at, change)) => {
                let old = self.net.words.change(at, change);
                live.unsaid.push_back(Said::Answers(id, old));
            }
            Some(Said::Answers(id, old)) => self.changed(live, id, old),
            None => {}
        }
        self.settle(live);
    }

    /// A change is made, or was refused.
    fn changed(&self, live: &mut Live, id: u64, old: Option<u64>) {
        let Some((_, to)) = live.changing.take_if(|(changing, _)| *changing == id) else { return };
        match old {
            Some(old) => {
                if to != 0 {
                    // SAFETY: eight bytes that are the request's until it has completed.
                    unsafe { (to as *mut u64).write_volatile(old) };
                }
                if let Some(request) = live.under_way.iter_mut().find(|r| r.id == id) {
                    request.over = true;
                }
            }
            None => live.failed = Some(Completion { id, status: Status::Refused, code: libc::EACCES }),
        }
        self.speaks.store(true, Ordering::Release);
    }
}

/// What an error of the library says of the other end.
fn status_of(error: c_int) -> Status {
    match error {
        libc::ECANCELED => Status::Flushed,
        libc::ENETDOWN | libc::ENETUNREACH | libc::ENODEV => Status::Unlinked,
        libc::EACCES | libc::EPERM | libc::ENOKEY | libc::EKEYREJECTED => Status::Refused,
        libc::ECONNREFUSED | libc::ECONNRESET | libc::ECONNABORTED | libc::ENOTCONN | libc::ESHUTDOWN | libc::EPIPE => {
            Status::Silent
        }
        libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::EHOSTDOWN | libc::EIO => Status::Silent,
        _ => Status::Other,
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut live = self.live();
        self.has_nothing(&mut live);
        live.endpoint = None;
        self.inlets.remove(&self.arrived);
        if let Some((other, _)) = live.other.take() {
            self.net.forget(other);
        }
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner).remove(self.number);
    }
}

impl Pair for Connection {
    fn number(&self) -> u32 {
        u32::from(self.number)
    }

    /// address | number 2
    fn end(&self) -> End {
        let mut b = [0; OPAQUE];
        b[..ADDRESS_MOST].copy_from_slice(&self.address);
        b[ADDRESS_MOST..][..2].copy_from_slice(&self.number.to_le_bytes());
        End(b)
    }

    fn connect(&self, to: &End) -> Result<()> {
        let mut address = [0; ADDRESS_MOST];
        address.copy_from_slice(&to.0[..ADDRESS_MOST]);
        let number = u16::from_le_bytes([to.0[ADDRESS_MOST], to.0[ADDRESS_MOST + 1]]);
        let mut live = self.live();
        if live.other.is_none() {
            self.loops.store(address == self.address, Ordering::Relaxed);
            live.other = Some((self.net.find(&address)?, number));
            live.there = address;
        }
        Ok(())
    }

    #[inline]
    unsafe fn post(&self, request: &Request<'_>) -> Result<bool> {
        // SAFETY: as the caller promises.
        unsafe { self.post_request(request) }
    }

    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        let mut entries = [CqEntry::NONE; 16];
        self.held.sees_a_wait();
        self.flush();
        loop {
            let mut failed = None;
            let n = self.sent.read(&mut entries, &mut |f| failed = failed.or(Some(f)))?;
            if n == 0 && failed.is_none() && !self.speaks.load(Ordering::Acquire) {
                return Ok(());
            }
            let (mut over, mut told) = (None, None);
            {
                let mut live = self.live();
                let live = &mut *live;
                for entry in &entries[..n] {
                    // The place of its request: fewer than `depth` are under way.
                    let place = self.contexts.number(entry.op_context);
                    let of = |id: u64| Some((id % u64::from(self.depth)) as usize) == place;
                    if let Some(request) = live.under_way.iter_mut().find(|r| !r.over && of(r.id)) {
                        request.over = true;
                    }
                }
                while let Some(UnderWay { id, over: true, delivered }) = live.under_way.front().copied() {
                    live.under_way.pop_front();
                    self.read.store(id, Ordering::Release);
                    if delivered {
                        over = Some(Completion { id, status: Status::Done, code: 0 });
                    }
                }
                if let Some(f) = failed {
                    // What ends although this side has not broken it off ended with the other side's process, or the link.
                    let status = match status_of(f.error) {
                        Status::Flushed if live.endpoint.is_some() => Status::Silent,
                        status => status,
                    };
                    told = Some(Completion { id: live.last, status, code: f.error });
                } else if let Some(failed) = live.failed.take() {
                    told = Some(failed);
                } else if live.endpoint.is_none() {
                    live.under_way.clear();
                    told = Some(Completion { id: live.last, status: Status::Flushed, code: libc::ECANCELED });
                }
                self.speaks.store(live.failed.is_some(), Ordering::Release);
            }
            // Without the lock: whoever hears of it may break the connection off.
            over.into_iter().chain(told).for_each(&mut *done);
            if n < entries.len() {
                return Ok(());
            }
        }
    }

    fn has_read(&self, id: u64) -> bool {
        self.read.load(Ordering::Acquire) >= id
    }

    fn break_off(&self) -> Result<()> {
        let endpoint = {
            let mut live = self.live();
            self.has_nothing(&mut live);
            live.endpoint.take()
        };
        // What is under way ends with it.
        drop(endpoint);
        self.speaks.store(true, Ordering::Release);
        Ok(())
    }

    fn explain(&self, code: i32) -> String {
        self.net.lib().explain(code)
    }
    fn bytes(&self) -> usize {
        self.copies.len()
    }
    fn shorten_queue(&self, _entries: u32) -> Result<()> {
        Err(Error::new(Code::Unsupported, "a completion queue of libfabric cannot be made shorter"))
    }
}
