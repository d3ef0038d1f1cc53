//! Remote commands: what a rank asks the owner of some memory to do, because it cannot by itself.
//!
//! All ranks' commands to a rank arrive in one ring of a fixed size (that of messages of any source, which also says what becomes of
//! the ticket of a rank that dies): 40 bytes each. A reply needs no room anywhere: the one who asks has set a place aside for it.
//!
//! ```text
//!   who asks                                owner: its helper, or a thread of its that waits in the library
//!   ticket, slot, mark                      slot read and freed
//!   wake                                    the order carried out
//!   …                                       value, then token and error, then the count of replies
//!   token is there: over                    wake
//! ```
//! Serving never waits for anything: an order is carried out with what the owner can reach by itself, or refused. So two ranks whose rings
//! are full of each other's commands both go on; who finds a ring full tries again, and serves its own ring meanwhile.

use std::sync::Arc;

use super::Rma;
use super::address::GlobalAddress;
use super::device::WORDS;
use super::direct::{Atomic, Done, Fetch};
use super::record::COMMANDS_AT;
use super::view::{Near, RECORDS, using};
use crate::base::atomics::Ordering;
use crate::base::error::{Code, Result};
use crate::p2p::any_source::ring::{Claimed, Ring};
use crate::p2p::any_source::stake::{Stakes, is_orphan};

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Copy {
        dst: GlobalAddress,
        src: GlobalAddress,
        len: u64,
    },
    Fetch(Fetch),
    /// To discard what is kept of the table of the one who asks.
    Discard,
}

/// A command as it lies in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub order: Order,
    /// What the reply carries, so that it is known for this command's; 48 bits.
    pub token: u64,
    /// The place of the reply.
    pub reply: u32,
    /// Who asks: its number in global addresses.
    pub from: u32,
}

/// Bytes of a command: they fit the slot's line.
const BYTES: usize = WORDS * 8;
const DISCARD: u8 = 255;
const WIDE: u64 = 1 << 8;
const TOKEN_AT: u32 = 16;
/// Commands carried out before something else gets a look in.
const BURST: usize = 64;

impl Command {
    pub fn encode(&self) -> [u64; WORDS] {
        let tail = u64::from(self.reply) | u64::from(self.from) << 32;
        match self.order {
            Order::Copy { dst, src, len } => [self.token << TOKEN_AT, dst.bits(), src.bits(), len, tail],
            Order::Fetch(f) => {
                let head = self.token << TOKEN_AT | if f.wide { WIDE } else { 0 } | f.op as u64;
                [head, f.at.bits(), f.value, f.expected, tail]
            }
            Order::Discard => [self.token << TOKEN_AT | u64::from(DISCARD), 0, 0, 0, tail],
        }
    }

    fn decode(w: [u64; WORDS]) -> Option<Command> {
        let (at, token) = (GlobalAddress::from_bits(w[1]), w[0] >> TOKEN_AT);
        let order = match w[0] as u8 {
            0 => Order::Copy { dst: at, src: GlobalAddress::from_bits(w[2]), len: w[3] },
            DISCARD => Order::Discard,
            op => Order::Fetch(Fetch {
                at,
                op: Atomic::from_number(op)?,
                wide: w[0] & WIDE != 0,
                value: w[2],
                expected: w[3],
            }),
        };
        Some(Command { order, token, reply: w[4] as u32, from: (w[4] >> 32) as u32 })
    }
}

/// The own ring, as the one who serves it sees it.
pub(super) struct Served {
    pub ring: Ring,
    /// Commands taken.
    pub taken: u64,
    /// Those of other nodes.
    pub far_taken: u64,
    /// Since when the next of these has a ticket and no command; 0: it has not.
    far_empty_ns: u64,
}

impl Served {
    pub fn new(ring: Ring) -> Served {
        let taken = ring.header().freed.load(Ordering::Acquire);
        Served { ring, taken, far_taken: 0, far_empty_ns: 0 }
    }
}

impl Rma {
    /// Puts a command into a rank's ring. `false`: there is no room just now.
    pub(super) fn send_command(&self, world: u32, near: &Near, command: &Command) -> bool {
        let words = command.encode();
        let sent = self.ep.any_source.stakes.with(world, COMMANDS_AT, |stake| {
            match near.ring.claim(&near.room, |ticket| stake.on(ticket)) {
                // SAFETY: forty bytes; the ticket is ours.
                Claimed::Ticket(ticket) => unsafe {
                    near.ring.publish(ticket, self.ep.rank, words.as_ptr().cast(), BYTES);
                    true
                },
                Claimed::Full => false,
            }
        });
        if sent {
            near.window.wake();
        }
        sent
    }

    /// Is there a command to be served?
    pub(super) fn has_commands(&self) -> bool {
        self.served.try_lock().is_ok_and(|s| {
            let far = || self.device.as_ref().is_some_and(|d| d.arrival(s.far_taken).is_some());
            s.ring.arrival(s.taken).is_some() || far()
        })
    }

    /// Carries out commands that have come, unless another thread is about to. `true`: there were some.
    pub(super) fn serve(&'static self) -> bool {
        let Ok(mut served) = self.served.try_lock() else { return false };
        let served = &mut *served;
        self.serve_near(served) | self.serve_far(served)
    }

    fn serve_near(&'static self, served: &mut Served) -> bool {
        for n in 0..BURST {
            let ticket = served.taken;
            let Some(arrival) = served.ring.arrival(ticket) else {
                self.pass_over_the_dead(served);
                return n > 0;
            };
            let mut words = [0u64; WORDS];
            // SAFETY: forty bytes, which a slot has room for whatever its mark says.
            unsafe { served.ring.deliver(ticket, arrival.kind, words.as_mut_ptr().cast(), BYTES) };
            served.taken += 1;
            served.ring.free(served.taken);
            self.obey(words);
        }
        true
    }

    fn serve_far(&'static self, served: &mut Served) -> bool {
        let Some(device) = &self.device else { return false };
        for n in 0..BURST {
            let ticket = served.far_taken;
            let Some(words) = device.arrival(ticket) else {
                if n == 0 && device.is_claimed(ticket) {
                    let now = crate::base::clock::now_ns();
                    served.far_empty_ns = if served.far_empty_ns == 0 { now } else { served.far_empty_ns };
                    if device.is_orphan(now - served.far_empty_ns) {
                        served.far_taken += 1;
                        device.free(served.far_taken);
                        served.far_empty_ns = 0;
                        return true;
                    }
                }
                return n > 0;
            };
            served.far_taken += 1;
            served.far_empty_ns = 0;
            device.free(served.far_taken);
            self.obey(words);
        }
        true
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
            Order::Copy { dst, src, len } => match self.copy_at_once::<true>(dst, src, len as usize)? {
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
        let usage = using(&self.own, command.from, RECORDS);
        // Who cannot be reached any more waits for nothing.
        let Ok(view) = self.view(command.from, &usage) else { return };
        let (value, code) = match done {
            Ok(value) => (value, 0),
            Err(error) => (0, error.code() as u64),
        };
        let Some(near) = view.near() else {
            if let Ok((device, far)) = self.far(view) {
                let _ = device.reply(far, command.reply as usize, command.token << 8 | code, value);
            }
            return;
        };
        let reply = near.window.reply(command.reply as usize);
        reply.value.store(value, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `Rma::step`.
        reply.word.store(command.token << 8 | code, Ordering::Release);
        // SYNC POINT: pairs with the acquire in `Rma::move_on`.
        near.window.header().replied.fetch_add(1, Ordering::AcqRel);
        near.window.wake();
    }

    /// A slot that stays empty was a dead rank's: it is passed over.
    fn pass_over_the_dead(&self, served: &mut Served) {
        let ticket = served.taken;
        if self.ep.deaths() == 0 || !served.ring.is_claimed(ticket) {
            return;
        }
        let ranks = || (0..self.ep.size).filter(|r| *r != self.ep.rank);
        let has = |rank: u32| {
            let stakes = self.ep.known(rank).and_then(|p| Stakes::of(&p.region).ok());
            stakes.is_some_and(|s| s.has(self.ep.rank, COMMANDS_AT, ticket))
        };
        let dead = || ranks().filter(|r| self.ep.is_dead(*r)).any(has);
        let living = || ranks().filter(|r| !self.ep.is_dead(*r)).any(has);
        if is_orphan(&served.ring, ticket, dead, living) {
            served.taken += 1;
            served.ring.free(served.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_back_as_they_went() {
        let ga = GlobalAddress::from_bits;
        let orders = [
            Order::Copy { dst: ga(1), src: ga(u64::MAX), len: 1 << 40 },
            Order::Fetch(Fetch { at: ga(77), op: Atomic::Cas, wide: true, value: u64::MAX, expected: 5 }),
            Order::Fetch(Fetch { at: ga(78), op: Atomic::And, wide: false, value: 1, expected: 0 }),
        ];
        for order in orders {
            let command = Command { order, token: (1 << 48) - 1, reply: 4095, from: 2_000_000 };
            let words = command.encode();
            assert_eq!(format!("{:?}", Command::decode(words).unwrap()), format!("{command:?}"));
        }
        assert!(Command::decode([200, 0, 0, 0, 0]).is_none());
    }
}
