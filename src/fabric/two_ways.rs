//! A network with all ways to a peer: by datagrams, which need no connection, into room that all peers share or into a ring, and connected; for
//! each turn that of them which the protocol between nodes [chooses](super::network::Choice).
//!
//! ```text
//!   memory      registered with the connected network; datagrams reach it by the same keys
//!   datagrams   of the protocol go with those of the channels
//!   what comes  is collected from both; the thread of the fabric sleeps on both
//! ```
//! Of what one of the two can and the other cannot, nothing is promised. A word that both would change, a device here and this process there, is
//! changed by neither, unless both are this process.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use super::datagram::network::Datagrams;
use super::network::Way;
use super::network::device::{
    Access, Address, Arrived, Atomics, DATAGRAM, Device, DeviceError, Limits, Pair, Registrar, Registration,
};
use super::network::multicast::{Counts, Group, Name};
use super::network::region::Domain;
use super::served::memory::{Memory, Shown};
use crate::base::error::Result;
use crate::base::key::Key;

/// A connected network that shares a process's sleep with another one.
pub(super) trait Connected: Device {
    /// What registers memory.
    fn registrar(&self) -> Arc<dyn Registrar>;
    /// Descriptors that are readable when a sleep is to end.
    fn fds(&self) -> Vec<RawFd>;
    /// A sleep is over. Has the device told something?
    fn has_slept(&self) -> bool;
}

/// See the head of this file.
pub struct TwoWays {
    connected: Box<dyn Connected>,
    datagrams: Datagrams,
    domain: Arc<Domain>,
}

impl TwoWays {
    /// Of these two, which reach the same peers.
    pub(super) fn new(connected: Box<dyn Connected>, datagrams: Datagrams) -> TwoWays {
        let both = Both { connected: connected.registrar(), datagrams: datagrams.memory().clone() };
        let atomics = atomics([connected.limits().atomics, datagrams.limits().atomics]);
        TwoWays { connected, datagrams, domain: Domain::new(Arc::new(both), atomics) }
    }

    /// Hands over what comes by connections. The thread of the fabric is called for it: it may be aside, since others do the calling.
    fn collect_connected(
        &self,
        collect: impl FnOnce(&mut dyn FnMut(Arrived<'_>)) -> Result<bool>,
        with: &mut dyn FnMut(Arrived<'_>),
    ) -> Result<bool> {
        let mut some = false;
        let came = collect(&mut |arrived| {
            some = true;
            with(arrived);
        })?;
        self.datagrams.has_come(some);
        Ok(came)
    }
}

/// Who changes words where two networks do.
fn atomics(of: [Atomics; 2]) -> Atomics {
    if of == [Atomics::Both; 2] { Atomics::Both } else { Atomics::None }
}

impl Device for TwoWays {
    fn describe(&self) -> String {
        format!("{} and {}", self.connected.describe(), self.datagrams.describe())
    }
    fn network(&self) -> String {
        format!("{} and {}", self.connected.network(), self.datagrams.network())
    }
    fn limits(&self) -> Limits {
        let (a, b) = (self.connected.limits(), self.datagrams.limits());
        Limits {
            longest: a.longest.min(b.longest),
            write_most: a.write_most.min(b.write_most),
            copy_most: a.copy_most.max(b.copy_most),
            pieces: a.pieces.min(b.pieces),
            atomics: atomics([a.atomics, b.atomics]),
            silence_ns: a.silence_ns.max(b.silence_ns),
            holds_pages: a.holds_pages && b.holds_pages,
            reads_early: a.reads_early && b.reads_early,
            is_driven: a.is_driven || b.is_driven,
            has_annexes: a.has_annexes && b.has_annexes,
            appends: a.appends && b.appends,
        }
    }
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    fn know(&self, job: &Key) {
        self.connected.know(job);
        self.datagrams.know(job);
    }
    fn address(&self) -> Address {
        self.datagrams.address()
    }
    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        self.datagrams.send(to, datagram)
    }
    fn why_silent(&self, of: &Address) -> Option<String> {
        self.datagrams.why_silent(of)
    }
    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>> {
        self.datagrams.pair(depth)
    }
    fn has_ways(&self) -> bool {
        true
    }
    fn pair_by(&self, way: Way, depth: u32) -> Result<Arc<dyn Pair>> {
        match way {
            Way::Connected => self.connected.pair(depth),
            Way::Ring => self.datagrams.pair_with_ring(),
            Way::Shared => self.datagrams.pair(depth),
        }
    }

    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        self.datagrams.collect(with)?;
        self.collect_connected(|with| self.connected.collect(with).map(|()| false), with).map(drop)
    }
    fn drive(&self, looks: u32, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        let came = self.datagrams.drive(looks, with)?;
        Ok(self.collect_connected(|with| self.connected.drive(looks, with), with)? || came)
    }
    fn arm(&self) -> Result<()> {
        self.datagrams.arm()?;
        self.connected.arm()
    }
    fn sleep(&self, at_most: Option<Duration>) -> bool {
        let told = self.datagrams.sleep_beside(at_most, &self.connected.fds());
        self.connected.has_slept() || told
    }
    fn wake(&self) {
        self.datagrams.wake();
    }
    fn next_error(&self) -> Option<DeviceError> {
        self.datagrams.next_error().or_else(|| self.connected.next_error())
    }
    fn join(&self, name: Name, counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        self.connected.join(name, counts)
    }
    fn bytes(&self) -> usize {
        self.connected.bytes() + self.datagrams.bytes()
    }
}

/// Registers memory with the one, and shows it to the other's peers by the same key.
struct Both {
    connected: Arc<dyn Registrar>,
    datagrams: Arc<Memory>,
}

struct Registered {
    // Gone first: the other's key may be given out again at once.
    _shown: Option<Shown>,
    connected: Box<dyn Registration>,
}

impl Registrar for Both {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>> {
        // SAFETY: as the caller promises.
        let connected = unsafe { self.connected.clone().register(at, len, access)? };
        let reached = access.intersects(Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC);
        // What peers may not reach need not have a key.
        let shown = reached.then(|| self.datagrams.clone().show(connected.rkey(), at, len, access));
        Ok(Box::new(Registered { _shown: shown, connected }))
    }
    fn name(&self) -> String {
        self.connected.name()
    }
}

impl Registration for Registered {
    fn lkey(&self) -> u32 {
        self.connected.lkey()
    }
    fn rkey(&self) -> u32 {
        self.connected.rkey()
    }
}
