//! A port that a process uses, as the protocol between nodes wants it: a carrier, the channels over it, and what comes.
//!
//! What a peer asks for is done only while somebody of this process calls. Threads that wait do; the thread of the fabric sleeps on the carrier,
//! and stays aside for a moment whenever others have called since it looked last, since it would only get in their way.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::carrier::{Carrier, Ring, SPOT, Spot};
use super::channel::Channel;
use super::home::{Home, SILENCE_NS};
use super::udp::Udp;
use super::weather::Weathered;
use crate::base::config::Weather;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::{Key, random};
use crate::base::log::{Level, tell};
use crate::base::system::poll_for;
use crate::fabric::network::device::{Address, Arrived, Atomics, DATAGRAM, Device, DeviceError, Limits, OPAQUE, Pair};
use crate::fabric::network::multicast::{Counts, Group, Name as GroupName};
use crate::fabric::network::region::Domain;
use crate::fabric::served::frame::Name;
use crate::fabric::served::held_back::LEFT_ALONE;
use crate::fabric::served::limits;
use crate::fabric::served::memory::Memory;
use crate::fabric::served::port::Port;
use crate::fabric::served::sleeper::Sleeper;

/// See the head of this file.
pub struct Datagrams {
    home: Arc<Home>,
    domain: Arc<Domain>,
}

fn spot_of(address: &Address) -> Spot {
    std::array::from_fn(|k| address.0[k])
}

impl Datagrams {
    /// By UDP, from this port on; in tests with some weather.
    pub fn by_udp(port: Port, weather: Option<&Weather>) -> Result<Datagrams> {
        Datagrams::over(Box::new(Udp::open(port)?), weather, 0)
    }

    /// Over this carrier. All channels have numbers with these bits, by which others can tell them from pairs of their own.
    pub(in crate::fabric) fn over(
        carrier: Box<dyn Carrier>,
        weather: Option<&Weather>,
        bits: u32,
    ) -> Result<Datagrams> {
        let carrier = match weather {
            Some(weather) => Box::new(Weathered::new(carrier, weather.clone())),
            None => carrier,
        };
        let sleeper =
            Sleeper::new().map_err(|_| Error::system("a descriptor to wake the thread between nodes (eventfd)"))?;
        let memory = Arc::<Memory>::default();
        let domain = Domain::new(memory.clone(), Atomics::Both);
        Ok(Datagrams { home: Arc::new(Home::new(carrier, memory, sleeper, bits)), domain })
    }
}

/// What a network needs beside that which sleeps, and registers memory, together with another one.
impl Datagrams {
    /// What peers may reach.
    pub(in crate::fabric) fn memory(&self) -> &Arc<Memory> {
        &self.home.memory
    }
    /// Something has come elsewhere that the thread of the fabric deals with, or not.
    pub(in crate::fabric) fn has_come(&self, some: bool) {
        self.home.sleeper.has_come(some);
    }
    /// A channel for whose other end there is room of its own here.
    pub(in crate::fabric) fn pair_with_ring(&self) -> Result<Arc<dyn Pair>> {
        self.channel(Some(self.home.carrier.ring()?))
    }
    fn channel(&self, ring: Option<Box<dyn Ring>>) -> Result<Arc<dyn Pair>> {
        let token = u64::from_le_bytes(random()?);
        Ok(self.home.add(ring, |number, has_ring| {
            Arc::new_cyclic(|this| Channel::new(&self.home, this, Name { number, token }, has_ring))
        }))
    }
    /// [Sleeps](Device::sleep), also until one of these descriptors is readable.
    pub(in crate::fabric) fn sleep_beside(&self, at_most: Option<Duration>, others: &[RawFd]) -> bool {
        let home = &self.home;
        let most_ns = at_most.map_or(u64::MAX, |t| t.as_nanos() as u64);
        let rest = |wake| {
            let left = home.rest_for(most_ns);
            let at_most = (left < u64::MAX / 2).then(|| Duration::from_nanos(left));
            let readable = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut fds = vec![wake, readable(home.carrier.fd())];
            fds.extend(others.iter().copied().chain(home.carrier.rings_fd()).map(readable));
            let _ = poll_for(&mut fds, at_most);
            home.is_awake();
            home.carrier.is_awake();
            if fds[1].revents & libc::POLLERR != 0 {
                home.take_refusals();
            }
        };
        home.sleeper.sleep(at_most, || home.news.has_errors(), rest)
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        tell(Level::Debug, || format!("{}: {}", self.describe(), self.home.story()));
    }
}

impl Device for Datagrams {
    fn describe(&self) -> String {
        self.home.carrier.describe()
    }
    fn network(&self) -> String {
        self.home.carrier.network()
    }
    fn limits(&self) -> Limits {
        limits(SILENCE_NS)
    }
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    fn know(&self, job: &Key) {
        self.home.know(job);
    }
    fn address(&self) -> Address {
        let mut address = Address([0; OPAQUE]);
        address.0[..SPOT].copy_from_slice(&self.home.carrier.spot());
        address
    }

    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        let part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: DATAGRAM };
        // SAFETY: the caller's, for as long as the call takes.
        let sent = unsafe { self.home.carrier.send(&spot_of(to), &[part], &[1]) };
        Ok(sent.is_ok_and(|n| n > 0))
    }
    fn why_silent(&self, of: &Address) -> Option<String> {
        self.home.carrier.why_silent(&spot_of(of))
    }

    fn pair(&self, _depth: u32) -> Result<Arc<dyn Pair>> {
        self.channel(None)
    }

    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        let is_sleeper = self.home.sleeper.is_caller();
        if !is_sleeper {
            self.home.sleeper.is_driven();
        }
        self.home.receive();
        self.home.tick(!is_sleeper);
        let some = self.home.news.take(with);
        self.home.sleeper.has_come(some);
        Ok(())
    }

    fn drive(&self, _looks: u32, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        self.home.sleeper.is_driven();
        self.home.receive();
        if self.home.has_something() {
            // What nobody waits for is left alone for some turns, since what the wait brings may go along.
            let turns = self.home.turns.fetch_add(1, Ordering::Relaxed);
            self.home.tick(turns == LEFT_ALONE);
        }
        let some = self.home.news.take(with);
        self.home.sleeper.has_come(some);
        Ok(false)
    }

    fn arm(&self) -> Result<()> {
        self.home.carrier.arm()
    }

    fn sleep(&self, at_most: Option<Duration>) -> bool {
        self.sleep_beside(at_most, &[])
    }

    fn wake(&self) {
        self.home.sleeper.wake();
    }
    fn next_error(&self) -> Option<DeviceError> {
        self.home.news.next_error()
    }
    fn join(&self, _name: GroupName, _counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        Err(error!(Code::Unsupported, "{} has no multicast groups", self.describe()))
    }
    fn bytes(&self) -> usize {
        self.home.bytes()
    }
}
