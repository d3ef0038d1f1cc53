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

use super::Rma;
use super::address::GlobalAddress;
use super::device::WORDS;
use super::direct::{Atomic, Fetch};
use super::view::Local;
use crate::base::run::Run;
use crate::p2p::any_source::ring::Claimed;

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
pub(super) const BYTES: usize = WORDS * 8;
const DISCARD: u8 = 255;
const NOTHING: u64 = 254;
const WIDE: u64 = 1 << 8;
const TOKEN_AT: u32 = 16;

impl Command {
    /// What a slot has whose command was not needed after all: nobody obeys it.
    pub const NOTHING: [u64; WORDS] = [NOTHING, 0, 0, 0, 0];

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

    pub fn decode(w: [u64; WORDS]) -> Option<Command> {
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

impl Rma {
    /// Puts a command into a rank's ring. `false`: there is no room just now.
    pub(super) fn send_command(&self, world: u32, local: &Local, command: &Command) -> bool {
        let words = command.encode();
        let sent = self.ep.any_source.stakes.with(world, local.ring_at, |stake| {
            match local.ring.claim(&local.room, |ticket| stake.on(ticket)) {
                Claimed::Ticket(ticket) => {
                    Run::with_bytes(&words, |data| local.ring.publish(ticket, self.ep.rank, data.first(BYTES)));
                    true
                }
                Claimed::Full => false,
            }
        });
        if sent {
            local.window.wake();
        }
        sent
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
        assert!(Command::decode([200, 0, 0, 0, 0]).is_none() && Command::decode(Command::NOTHING).is_none());
    }
}
