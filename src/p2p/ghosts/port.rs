//! The network as one ghost sees it: what is for others comes to them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::error::{Code, Error, Result};
use crate::base::lock::lock;
use crate::fabric::network::device::{Address, Arrived, DATAGRAM, Device, DeviceError, Limits, Pair};
use crate::fabric::network::multicast::{Counts, Group, Name};
use crate::fabric::network::region::Domain;

/// For whom a datagram is, if it is one of the protocol between nodes.
pub(super) use crate::fabric::network::addressee as rank_of;

/// Something that has come.
pub(super) enum Came {
    Packet([u8; DATAGRAM]),
    Number(u32, u32),
}

/// See the head of this file.
pub(super) struct Port {
    device: Arc<dyn Device>,
    came: Mutex<VecDeque<Came>>,
    /// Its pairs, and how many of them are known to who gives them what comes.
    pairs: Mutex<(Vec<u32>, usize)>,
}

impl Port {
    pub fn new(device: &Arc<dyn Device>) -> Port {
        Port { device: device.clone(), came: Mutex::default(), pairs: Mutex::default() }
    }
    /// Something has come for this ghost.
    pub fn put(&self, what: Came) {
        lock(&self.came).push_back(what);
    }
    /// Pairs that it has made since this was asked last.
    pub fn new_pairs(&self) -> Vec<u32> {
        let (all, known) = &mut *lock(&self.pairs);
        let new = all[*known..].to_vec();
        *known = all.len();
        new
    }
    /// All that it ever had.
    pub fn all_pairs(&self) -> Vec<u32> {
        lock(&self.pairs).0.clone()
    }
}

impl Device for Port {
    fn describe(&self) -> String {
        self.device.describe()
    }
    fn network(&self) -> String {
        self.device.network()
    }
    fn limits(&self) -> Limits {
        self.device.limits()
    }
    fn domain(&self) -> &Arc<Domain> {
        self.device.domain()
    }
    fn address(&self) -> Address {
        self.device.address()
    }
    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        self.device.send(to, datagram)
    }
    fn why_silent(&self, of: &Address) -> Option<String> {
        self.device.why_silent(of)
    }
    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>> {
        let pair = self.device.pair(depth)?;
        lock(&self.pairs).0.push(pair.number());
        Ok(pair)
    }
    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        let came = std::mem::take(&mut *lock(&self.came));
        came.iter().for_each(|what| match what {
            Came::Packet(packet) => with(Arrived::Datagram(packet)),
            Came::Number(pair, number) => with(Arrived::Number(*pair, *number)),
        });
        Ok(())
    }
    fn arm(&self) -> Result<()> {
        Ok(())
    }
    fn sleep(&self, _at_most: Option<Duration>) -> bool {
        false
    }
    fn wake(&self) {}
    fn next_error(&self) -> Option<DeviceError> {
        None
    }
    fn join(&self, _name: Name, _counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        Err(Error::new(Code::Unsupported, "ghosts are in no multicast groups"))
    }
    fn bytes(&self) -> usize {
        0
    }
}
