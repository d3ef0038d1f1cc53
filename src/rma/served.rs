//! Serving remote commands: taken from the own ring, that of this node's ranks and that of all others', carried out, answered.
//!
//! The rings' shares take turns, a command of each; whoever serves has them all to itself.

use std::sync::Arc;

use super::Rma;
use super::command::{BYTES, Command, Order};
use super::device::{Device, WORDS};
use super::direct::Done;
use super::record::{COMMANDS_AT, ring};
use super::view::{RECORDS, using};
use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Result};
use crate::base::run::Run;
use crate::p2p::any_source::ring::Ring;
use crate::p2p::any_source::share::share_at;
use crate::p2p::any_source::stake::{Stakes, is_orphan};
use crate::p2p::endpoint::Endpoint;

/// Commands carried out before something else gets a look in.
const BURST: usize = 64;
/// A slot between nodes that is empty, though somebody has its ticket, is looked into after so long, and again after four times as long as
/// that took.
const EMPTY_NS: u64 = 20_000_000;

/// The own ring, as the one who serves it sees it.
pub(super) struct Served {
    local: Box<[LocalShare]>,
    remote: Box<[RemoteShare]>,
    /// Which share is looked at first.
    turn: usize,
}

/// Commands of ranks of this node.
struct LocalShare {
    ring: Ring,
    at: u64,
    taken: u64,
}

/// Commands of ranks of other nodes; the device has the ring.
#[derive(Clone)]
struct RemoteShare {
    taken: u64,
    /// When the next slot, which has a ticket and no command, is to be looked into; 0: it is not so.
    look_ns: u64,
}

impl Served {
    /// The rings of a process that has just made its device: `slots` slots in so many shares each.
    pub fn new(ep: &Endpoint, slots: usize, local: usize, remote: usize) -> Result<Served> {
        let each = slots / local;
        let share = |k| {
            let at = share_at(COMMANDS_AT, each, k);
            let ring = ring(ep.region.map(at, Ring::bytes(each))?, each);
            let taken = ring.header().freed.load(Ordering::Acquire);
            Ok(LocalShare { ring, at, taken })
        };
        let local = (0..local).map(share).collect::<Result<_>>()?;
        Ok(Served { local, remote: vec![RemoteShare { taken: 0, look_ns: 0 }; remote].into(), turn: 0 })
    }
}

impl Rma {
    /// Is there a command to be served?
    pub(super) fn has_commands(&self) -> bool {
        self.served.try_lock().is_ok_and(|s| {
            let remote = |d: &Device| s.remote.iter().enumerate().any(|(k, f)| d.arrival(k, f.taken).is_some());
            s.local.iter().any(|n| n.ring.arrival(n.taken).is_some()) || self.device.as_ref().is_some_and(remote)
        })
    }

    /// Carries out commands that have come, unless another thread is about to. `true`: there were some.
    pub(super) fn serve(&'static self) -> bool {
        let Ok(mut served) = self.served.try_lock() else { return false };
        let served = &mut *served;
        let (local, all) = (served.local.len(), served.local.len() + served.remote.len());
        let (mut count, mut idle) = (0, 0);
        while count < BURST && idle < all {
            let n = served.turn;
            served.turn = (n + 1) % all;
            let one = if n < local {
                self.serve_local(&mut served.local[n])
            } else {
                self.serve_remote(n - local, &mut served.remote[n - local])
            };
            (count, idle) = if one { (count + 1, 0) } else { (count, idle + 1) };
        }
        count > 0
    }

    /// Carries out the next command of a share, if it is there.
    fn serve_local(&'static self, share: &mut LocalShare) -> bool {
        let ticket = share.taken;
        let Some(arrival) = share.ring.arrival(ticket) else {
            self.pass_over_the_dead(share);
            return false;
        };
        let mut words = [0u64; WORDS];
        Run::with_room(&mut words, |to| share.ring.deliver(ticket, arrival.kind, to.first(BYTES)));
        share.taken += 1;
        share.ring.free(share.taken);
        self.obey(words);
        true
    }

    fn serve_remote(&'static self, n: usize, share: &mut RemoteShare) -> bool {
        let Some(device) = &self.device else { return false };
        let words = device.arrival(n, share.taken);
        if words.is_none() && !self.is_lost(device, n, share) {
            return false;
        }
        *share = RemoteShare { taken: share.taken + 1, look_ns: 0 };
        device.free(n, share.taken);
        words.into_iter().for_each(|words| self.obey(words));
        true
    }

    /// Was the next slot of a share a dead rank's, and stays empty?
    fn is_lost(&self, device: &Device, n: usize, share: &mut RemoteShare) -> bool {
        if !device.is_claimed(n, share.taken) {
            return false;
        }
        let now = now_ns();
        if share.look_ns == 0 {
            share.look_ns = now + EMPTY_NS;
        }
        if now < share.look_ns {
            return false;
        }
        let lost = device.is_orphan(self.ep, n, share.taken);
        let after = now_ns();
        share.look_ns = after + EMPTY_NS + 4 * (after - now);
        lost
    }

    fn obey(&'static self, words: [u64; WORDS]) {
        if let Some(command) = Command::decode(words).filter(|c| c.from < self.ep.size) {
            let done = self.carry_out(&command);
            self.reply(&command, done);
        }
    }

    fn carry_out(&'static self, command: &Command) -> Result<u64> {
        match command.order {
            Order::Fetch(fetch) => match self.fetch_at_once(&fetch)? {
                Some(old) => Ok(old),
                None => Err(self.refused()),
            },
            Order::Copy { dst, src, len } => match self.copy_at_once::<false>(dst, src, len as usize)? {
                Done::Yes => Ok(0),
                Done::Ask(_) => Err(self.refused()),
                Done::Device(push) => self.copy_between(push, dst, src, len as usize)?.wait().map(|()| 0),
            },
            Order::Discard => {
                if let Some(table) = self.device.as_ref().and_then(|d| d.discard(command.from)) {
                    // What is under way ends by itself, in success or not, since the device does it.
                    while Arc::strong_count(&table) > 1 {
                        self.drive();
                        std::thread::yield_now();
                    }
                }
                Ok(0)
            }
        }
    }

    #[cold]
    fn refused(&self) -> crate::Error {
        crate::Error::new(Code::Unsupported, "this rank cannot reach the other end by itself")
    }

    fn reply(&self, command: &Command, done: Result<u64>) {
        let Ok(usage) = using(&self.own, command.from, RECORDS) else { return };
        // Who cannot be reached any more waits for nothing.
        let Ok(view) = self.view(command.from, &usage) else { return };
        let (value, code) = match done {
            Ok(value) => (value, 0),
            Err(error) => (0, error.code() as u64),
        };
        let Some(local) = view.local() else {
            if let Ok((device, remote)) = self.remote(view) {
                let _ = device.reply(remote, command.reply as usize, command.token << 8 | code, value);
            }
            return;
        };
        local.window.answer(command.reply as usize, command.token << 8 | code, value);
    }

    /// A slot that stays empty was a dead rank's: it is passed over.
    fn pass_over_the_dead(&self, share: &mut LocalShare) {
        let ticket = share.taken;
        if self.ep.deaths() == 0 || !share.ring.is_claimed(ticket) {
            return;
        }
        let ranks = || (0..self.ep.size).filter(|r| *r != self.ep.rank);
        let has = |rank: u32| {
            let stakes = self.ep.known(rank).and_then(|p| Stakes::of(&p.region).ok());
            stakes.is_some_and(|s| s.has(self.ep.rank, share.at, ticket))
        };
        let dead = || ranks().filter(|r| self.ep.is_dead(*r)).any(has);
        let living = || ranks().filter(|r| !self.ep.is_dead(*r)).any(has);
        if is_orphan(&share.ring, ticket, dead, living) {
            share.taken += 1;
            share.ring.free(share.taken);
        }
    }
}
