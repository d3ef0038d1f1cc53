//! A port that a process uses, as the protocol between nodes wants it: its datagrams, its connections, and what comes.
//!
//! A provider that is asked for manual progress does things only while it is called: what a peer writes here, or reads, goes on when somebody
//! of this process calls. The thread of the fabric sleeps on the provider's descriptor and calls when there is something to be done; threads
//! that wait call by themselves, and as long as they do the thread leaves it to them, since it would only get in their way.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::connection::Connection;
use super::domain::Net;
use super::endpoint::{Contexts, Endpoint};
use super::ffi::{CqEntry, cap};
use super::pairs::{Came, Pairs};
use super::provider::{ADDRESS_MOST, Offer};
use super::queue::{Inlet, Inlets, Queue};
use crate::base::clock::now_ns;
use crate::base::config::Congestion;
use crate::base::error::{Code, Result, error};
use crate::base::system::poll_for;
use crate::base::thread::yield_core;
use crate::fabric::network::device::{
    Access, Address, Arrived, Atomics, DATAGRAM, Device, DeviceError, Limits, OPAQUE, Pair,
};
use crate::fabric::network::link::PIECES;
use crate::fabric::network::multicast::{Counts, Group, Name};
use crate::fabric::network::region::{Arena, Domain};

/// Datagrams that may arrive before anybody has looked; more wait with their senders.
const DATAGRAMS: usize = 128;
/// Datagrams that may be on their way.
const LEAVING: usize = 16;
/// A datagram that finds no way for so long is lost, and repeated by its sender.
const LEAVES_WITHIN_NS: u64 = 5_000_000;
/// After so long without an answer a connection has failed; what is asked is the other process, which may be kept from its core.
const SILENCE_NS: u64 = 5_000_000_000;
/// Turns of waits after which all is asked, also for datagrams.
const TURNS: u64 = 32;
/// Longest request in bytes: enough that its own cost does not count, and its answer comes before those behind it are posted.
const LONGEST: usize = 256 << 10;
/// Registering is little more than a note here.
const COPY_MOST: u32 = 512;
/// How long the system is asked for the way to a port.
const ASKS: Duration = Duration::from_millis(300);
/// How often it looks where there is nothing to sleep on.
const LOOKS: Duration = Duration::from_millis(1);

/// See the head of this file.
pub struct Ofi {
    // Endpoints before what they use: closed first.
    datagrams: Endpoint,
    address: Address,
    net: Arc<Net>,
    domain: Arc<Domain>,
    sending: Mutex<Sending>,
    sent: Queue,
    /// What comes.
    inlets: Arc<Inlets>,
    memory: Arena,
    receives: Contexts,
    /// Receives that could not be posted.
    unposted: Mutex<Vec<usize>>,
    pairs: Arc<Mutex<Pairs>>,
    errors: Mutex<VecDeque<DeviceError>>,
}

struct Sending {
    memory: Arena,
    contexts: Contexts,
    free: Vec<usize>,
    ways: HashMap<Address, u64>,
}

impl Ofi {
    /// Uses this port from now on, and receives datagrams. `Setting`: what is wished of connections cannot be had.
    pub fn open(offer: Offer, wish: &Congestion) -> Result<Ofi> {
        let net = Net::open(offer, wish)?;
        let domain = net.memory();
        let (inlets, arrived) = (Arc::new(Inlets::new()?), Arc::new(Queue::new(&net, 2 * DATAGRAMS, true)?));
        inlets.add(&arrived, Weak::new());
        let sent = Queue::new(&net, 2 * LEAVING, false)?;
        let datagrams = Endpoint::open(&net, &sent, &arrived, false)?;
        let mut address = Address::default();
        address.0[..ADDRESS_MOST].copy_from_slice(&datagrams.address()?);
        let memory = Arena::new(&domain, DATAGRAMS * DATAGRAM, Access::LOCAL_WRITE)?;
        let sending = Sending {
            memory: Arena::new(&domain, LEAVING * DATAGRAM, Access::LOCAL_WRITE)?,
            contexts: Contexts::new(LEAVING),
            free: (0..LEAVING).collect(),
            ways: HashMap::new(),
        };
        let ofi = Ofi {
            datagrams,
            address,
            net,
            domain,
            sending: Mutex::new(sending),
            sent,
            inlets,
            memory,
            receives: Contexts::new(DATAGRAMS),
            unposted: Mutex::new((0..DATAGRAMS).collect()),
            pairs: Arc::default(),
            errors: Mutex::default(),
        };
        ofi.post_receives()?;
        Ok(ofi)
    }

    fn name(&self, arena: &Arena) -> *mut std::ffi::c_void {
        if self.net.names_local() { self.net.descriptor(arena.region().lkey()) } else { std::ptr::null_mut() }
    }

    /// Posts the receives that are not.
    fn post_receives(&self) -> Result<()> {
        let mut unposted = self.unposted.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.name(&self.memory);
        while let Some(n) = unposted.last().copied() {
            // SAFETY: places lie within the arena, and each is posted again only after its datagram has been read.
            let posted = unsafe {
                let at = self.memory.as_ptr().add(n * DATAGRAM);
                self.datagrams.receive(at, DATAGRAM, name, self.receives.of(n))
            };
            match posted {
                Ok(true) => _ = unposted.pop(),
                Ok(false) => return Ok(()),
                Err(e) => {
                    let why = self.net.lib().explain(e);
                    return Err(error!(Code::System, "a receive over {} (fi_recv): {why}", self.net.offer));
                }
            }
        }
        Ok(())
    }

    fn longest(&self) -> u32 {
        let endpoint = self.net.offer.endpoint();
        let in_order = if self.net.offer.is_ordered() { endpoint.max_order_waw_size } else { usize::MAX };
        LONGEST.min(endpoint.max_msg_size).min(in_order) as u32
    }

    /// Hands over what has come to a queue; was it anything that the thread deals with? `came`: something has come.
    fn collect_from(
        &self,
        (queue, connection): Inlet,
        came: &mut bool,
        with: &mut dyn FnMut(Arrived<'_>),
    ) -> Result<bool> {
        let mut entries = [CqEntry::NONE; 32];
        let (mut n, mut some) = (entries.len(), false);
        while n == entries.len() {
            // A receive that has failed is posted again.
            let mut failed = |f: super::queue::Failed| {
                if let Some(connection) = &connection {
                    connection.hears(f.context, 0);
                } else if let Some(n) = self.receives.number(f.context) {
                    self.unposted.lock().unwrap_or_else(PoisonError::into_inner).push(n);
                }
            };
            n = queue.read(&mut entries, &mut failed)?;
            *came |= n > 0;
            for entry in &entries[..n] {
                some |= self.take(entry, connection.as_deref(), with);
            }
        }
        if let Some(connection) = connection {
            connection.settle_up();
        }
        Ok(some)
    }

    /// What follows; `some`: something has come, which the thread deals with, and of which the descriptors do not tell it any more.
    fn collected(&self, some: bool) -> Result<()> {
        self.inlets.sleeper.has_come(some);
        if some { self.post_receives() } else { Ok(()) }
    }

    /// Posts what connections hold.
    fn flush_all(&self) {
        if self.inlets.holding.load(Ordering::SeqCst) > 0 {
            self.inlets.connections().iter().for_each(|connection| connection.flush());
        }
    }

    fn all(&self, came: &mut bool, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        let mut some = false;
        for at in 0.. {
            let Some(inlet) = self.inlets.nth(at) else { break };
            some |= self.collect_from(inlet, came, with)?;
        }
        Ok(some)
    }

    /// Hands over what has come with one completion; was it anything?
    fn take(&self, entry: &CqEntry, by: Option<&Connection>, with: &mut dyn FnMut(Arrived<'_>)) -> bool {
        if entry.flags & cap::RECV != 0 && entry.flags & cap::RMA == 0 {
            if let Some(connection) = by {
                connection.hears(entry.op_context, entry.len);
                return false;
            }
            let Some(n) = self.receives.number(entry.op_context) else { return false };
            if entry.len == DATAGRAM {
                // SAFETY: the place of a receive that is over, and is posted again after this.
                let datagram = unsafe { &*self.memory.as_ptr().add(n * DATAGRAM).cast::<[u8; DATAGRAM]>() };
                with(Arrived::Datagram(datagram));
            } else {
                with(Arrived::Damaged);
            }
            self.unposted.lock().unwrap_or_else(PoisonError::into_inner).push(n);
            return true;
        }
        // Of one that is gone nothing counts any more.
        let Some(connection) = by else { return false };
        match connection.comes(entry.data) {
            Came::Nothing => return false,
            Came::Number(number) => with(Arrived::Number(connection.number(), number)),
            Came::Missed => {
                let missed = DeviceError::Pair(connection.number());
                self.errors.lock().unwrap_or_else(PoisonError::into_inner).push_back(missed);
            }
        }
        true
    }
}

impl Device for Ofi {
    fn describe(&self) -> String {
        self.net.offer.to_string()
    }
    fn network(&self) -> String {
        self.net.offer.kind()
    }
    fn limits(&self) -> Limits {
        Limits {
            longest: self.longest(),
            write_most: self.longest(),
            copy_most: COPY_MOST,
            pieces: self.net.offer.tx().iov_limit.clamp(1, PIECES as usize) as u32,
            atomics: Atomics::Both,
            silence_ns: SILENCE_NS,
            holds_pages: false,
            reads_early: self.net.offer.is_ordered(),
            is_driven: true,
            has_annexes: self.net.offer.is_ordered(),
            appends: false,
        }
    }
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    fn address(&self) -> Address {
        self.address
    }

    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sending = &mut *sending;
        let way = match sending.ways.get(to) {
            Some(way) => *way,
            None => {
                let mut address = [0; ADDRESS_MOST];
                address.copy_from_slice(&to.0[..ADDRESS_MOST]);
                let way = self.net.find(&address)?;
                sending.ways.insert(*to, way);
                way
            }
        };
        let name = self.name(&sending.memory);
        let since = now_ns();
        loop {
            // What has left, or never will.
            let (mut entries, mut failed) = ([CqEntry::NONE; LEAVING], [None; LEAVING]);
            let mut lost = 0;
            let n = self.sent.read(&mut entries, &mut |f| {
                if let Some(place) = failed.get_mut(lost) {
                    *place = Some(f.context);
                    lost += 1;
                }
            })?;
            let over = entries[..n].iter().map(|e| e.op_context).chain(failed.into_iter().flatten());
            sending.free.extend(over.filter_map(|context| sending.contexts.number(context)));
            if let Some(place) = sending.free.last().copied() {
                // SAFETY: the place is free, and lies within the arena.
                let posted = unsafe {
                    let at = sending.memory.as_ptr().add(place * DATAGRAM);
                    std::ptr::copy_nonoverlapping(datagram.as_ptr(), at, DATAGRAM);
                    self.datagrams.send(at, DATAGRAM, name, way, sending.contexts.of(place))
                };
                match posted {
                    Ok(true) => {
                        sending.free.pop();
                        return Ok(true);
                    }
                    Ok(false) => {}
                    // Nobody is there, or not yet.
                    Err(_) => return Ok(false),
                }
            }
            if now_ns() - since > LEAVES_WITHIN_NS {
                return Ok(false);
            }
            yield_core();
        }
    }

    /// Over TCP the system knows.
    fn why_silent(&self, of: &Address) -> Option<String> {
        let at = self.net.offer.internet(&of.0)?;
        if self.net.offer.provider().starts_with("udp") {
            return Some(format!("it is at {at}"));
        }
        Some(match TcpStream::connect_timeout(&at, ASKS) {
            Ok(_) => format!("its port {at} can be reached"),
            Err(e) => format!("its port {at} cannot be reached: {e}"),
        })
    }

    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>> {
        let connection = Arc::new(Connection::new(&self.net, &self.domain, &self.inlets, &self.pairs, depth)?);
        self.inlets.add(connection.arrived(), Arc::downgrade(&connection));
        // Whoever sleeps is to do so on its queue, too.
        self.wake();
        Ok(connection)
    }

    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        self.flush_all();
        if !self.inlets.sleeper.is_caller() {
            self.inlets.sleeper.is_driven();
        }
        let some = self.all(&mut false, with)?;
        self.collected(some)
    }

    /// Each queue is asked by a call of the system, even if the provider deals with all that has come when one of them is (so do newer ones over
    /// sockets): a few of connections at a time, that of datagrams seldom.
    fn drive(&self, _looks: u32, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        let turn = self.inlets.sleeper.is_driven();
        let (mut some, mut came) = (false, false);
        if turn.is_multiple_of(TURNS) {
            some |= self.all(&mut came, with)?;
            self.inlets.connections().iter().for_each(|connection| connection.turn());
        } else {
            for inlet in self.inlets.few(turn as usize).into_iter().flatten() {
                let connection = inlet.1.clone();
                some |= self.collect_from(inlet, &mut came, with)?;
                connection.into_iter().for_each(|connection| connection.turn());
            }
        }
        self.collected(some)?;
        Ok(came)
    }

    fn arm(&self) -> Result<()> {
        Ok(())
    }

    fn sleep(&self, at_most: Option<Duration>) -> bool {
        let told = || !self.errors.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        self.inlets.sleeper.sleep(at_most, told, |wake| {
            self.flush_all();
            let mut fds = vec![wake];
            let at_most = match self.inlets.sleep_on(&self.net, &mut fds) {
                Some(true) => Some(at_most.map_or(LOOKS, |t| t.min(LOOKS))),
                Some(false) => at_most,
                None => return,
            };
            let _ = poll_for(&mut fds, at_most);
        })
    }

    fn wake(&self) {
        self.inlets.sleeper.wake();
    }

    fn next_error(&self) -> Option<DeviceError> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn join(&self, _name: Name, _counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        Err(error!(Code::Unsupported, "{} has no multicast groups", self.net.offer))
    }

    fn bytes(&self) -> usize {
        self.memory.len() + LEAVING * DATAGRAM
    }
}

// An address fills what is left beside a pair's number.
static_assertions::const_assert!(ADDRESS_MOST + 2 <= OPAQUE);
