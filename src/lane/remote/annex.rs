//! The annex of a lane between nodes: memory of the receiver's for messages that are too long for a landing and too short to be worth a posting.
//!
//! ```text
//!   0     line of part 0    land | check | ack | length | slot | number        written behind its bytes
//!   64    line of part 1
//!   128   bytes of part 0   at most 8 KiB
//!   8320  bytes of part 1
//! ```
//! A message that goes this way waits for nothing: not for its posting, and not for what is in the landing. Its sender takes a part whose last
//! message is known to be received, so nothing in it is written over that is still to be read. Two messages may be under way so: in an exchange
//! the peer's message acknowledges the one before the last, and nothing goes but the messages.
//!
//! Annexes are there where a posting costs more than they do ([`Limits::has_annexes`](crate::fabric::network::device::Limits)), for the lanes of
//! a process that first wanted one, [`ANNEXES_MOST`](crate::fabric::network::control::ANNEXES_MOST) at most. Other messages go as ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::front::sum;
use super::{REMOTE_INLINE, Remote};
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::published::Published;
use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::fabric::network::control::{ANNEX_CHUNK, ANNEX_PART, ANNEX_PARTS};
use crate::fabric::network::device::Piece;
use crate::fabric::network::link::Window;
use crate::lane::record::Land;

/// From the first question for an annex to the second; later ones wait twice as long each time.
const ASK_NS: u64 = 20_000_000;
/// A receive that a message of the annex is expected for is told of when it has lasted so long.
const UNPOSTED_NS: u64 = 200_000;
/// In the sum of a line.
const LINE: u64 = 0x616e_6e65_7821;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Annex {
    window: Published<Arc<Window>>,
    /// [`Link::annexes`](crate::fabric::network::link::Link::annexes) when it was looked for last.
    looked: AtomicU32,
    /// As sender: when the peer is asked for it next, and how often it was.
    next_ns: AtomicU64,
    asked: AtomicU32,
    /// As sender: the slot and the number of the last message in each part.
    last: Mutex<[Option<(usize, u64)>; ANNEX_PARTS]>,
}

/// A part that a sender has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(usize);

/// A message that is in an annex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Annexed {
    pub land: Land,
    /// What comes along: everything up to this message of the other direction is received.
    pub ack: u64,
    pub len: u64,
    pub part: u64,
}

fn line_of(annex: &Window, part: usize) -> &[AtomicU64; 6] {
    // SAFETY: a line within the memory, which lives as long as the window; only looked at by atomics.
    unsafe { &*annex.memory.as_ptr().add(part * 64).cast::<[AtomicU64; 6]>() }
}

/// The slots of the messages that came into an annex last.
pub(super) fn slots_of(annex: &Window) -> impl Iterator<Item = usize> {
    let lines = (0..ANNEX_PARTS).map(|part| line_of(annex, part));
    lines.filter(|line| line[0].load(Ordering::Acquire) != 0).map(|line| line[4].load(Ordering::Acquire) as usize)
}

fn bytes_at(part: usize) -> usize {
    ANNEX_PARTS * 64 + part * ANNEX_PART
}

impl Remote {
    /// The annex, if there is one on this side.
    #[inline]
    pub(super) fn annex(&self) -> Option<&Window> {
        if let Some(window) = self.annex.window.get() {
            return Some(window);
        }
        let told = self.link.annexes();
        if told == self.annex.looked.load(Ordering::Relaxed) {
            return None;
        }
        self.annex.looked.store(told, Ordering::Relaxed);
        let window = self.link.annex(self.number)?;
        Some(self.annex.window.get_or_make(|| window))
    }

    fn last(&self) -> MutexGuard<'_, [Option<(usize, u64)>; ANNEX_PARTS]> {
        self.annex.last.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Is everything up to this message of a slot known to be received?
    fn is_received(&self, slot: usize, seq: u64) -> bool {
        let (Some(front), Some(mine)) = (self.front(slot), self.slot(slot)) else { return false };
        // SYNC POINT: as in `take_over_outgoing`.
        mine.acked.load(Ordering::Acquire) >= seq
            || self.told(slot, front).load(Ordering::Acquire) >= seq
            || front.whole_posting().is_some_and(|posting| posting[3] > seq)
    }

    fn free_part(&self, last: &[Option<(usize, u64)>; ANNEX_PARTS]) -> Option<usize> {
        let is_free = |last: &Option<(usize, u64)>| last.is_none_or(|(slot, seq)| self.is_received(slot, seq));
        last.iter().position(is_free).or_else(|| (!holds(Rule::PartIsFree)).then_some(0))
    }

    /// Could a message of so many bytes go by the annex now? Where there could be one it is asked for.
    pub fn has_part(&self, len: usize) -> bool {
        if len <= REMOTE_INLINE || len > ANNEX_PART || !self.link.limits().has_annexes || self.fabric.strict() {
            return false;
        }
        let Some(window) = self.annex() else {
            self.ask_for_annex();
            return false;
        };
        if !window.is_known() || self.link.is_up() && self.link.place_of(window).is_none() {
            self.ask_for_annex();
            return false;
        }
        self.free_part(&self.last()).is_some()
    }

    /// Takes a part for a message. `None`: it goes another way.
    pub fn take_part(&self, slot: usize, seq: u64, len: usize) -> Option<Part> {
        if !self.has_part(len) {
            return None;
        }
        let mut last = self.last();
        let part = self.free_part(&last)?;
        last[part] = Some((slot, seq));
        Some(Part(part))
    }

    /// The message of a part goes another way after all: nothing of it is in the part, or nobody will look at it.
    pub fn leave_part(&self, part: Part) {
        self.last()[part.0] = None;
    }

    #[cold]
    fn ask_for_annex(&self) {
        let (now, next) = (now_ns(), self.annex.next_ns.load(Ordering::Relaxed));
        if now < next || !self.link.may_have_annex(self.number) {
            return;
        }
        let asked = self.annex.asked.fetch_add(1, Ordering::Relaxed);
        self.annex.next_ns.store(now + (ASK_NS << asked.min(10)), Ordering::Relaxed);
        // An answer that does not come is asked for again.
        let _ = self.fabric.greet(self.link.peer, &self.card, self.number, ANNEX_CHUNK);
    }

    /// Sends a message by a part: its bytes, and the line that publishes it. When this returns they are read.
    ///
    /// # Safety
    /// The piece, which is no longer than a part, is registered and stays as it is meanwhile.
    pub unsafe fn publish_by_annex(&self, of: (usize, u64), land: Land, part: Part, piece: Piece) -> Result<()> {
        let window = self.annex().ok_or_else(|| self.closed(of.0))?;
        // SAFETY: as the caller promises.
        let ticket = unsafe { self.link.bulk_into(window, bytes_at(part.0), &[piece])? };
        let landed = self.land_in_annex(of, land, part, piece.len as usize);
        // What has become of the connection whoever uses it next finds out.
        let _ = self.link.wait_read(ticket);
        landed
    }

    /// Publishes a message whose bytes are in a part. It carries the slot's acknowledgement.
    fn land_in_annex(&self, (slot, seq): (usize, u64), land: Land, part: Part, len: usize) -> Result<()> {
        let (Some(window), Some(mine)) = (self.annex(), self.slot(slot)) else { return Err(self.closed(slot)) };
        let owed = self.pays_owed(slot);
        self.say_what_waits();
        let landed = self.link.write_into(
            window,
            part.0 * 64,
            || self.wakes(),
            |record| {
                record.put(&[land.0, 0, mine.tells(), len as u64, slot as u64, seq]);
                let words = record.words();
                words[1] = line_sum(words);
            },
        );
        landed.map(|_| ()).inspect_err(|_| {
            if owed {
                self.send_ack(slot);
            }
        })
    }

    /// Message `seq` of a slot, if it is in the annex.
    #[inline]
    pub(super) fn annexed(&self, slot: usize, seq: u64, epoch: u16) -> Option<Annexed> {
        let window = self.annex()?;
        (0..ANNEX_PARTS).find_map(|part| {
            let line = line_of(window, part);
            let land = Land(line[0].load(Ordering::Acquire));
            if !land.is(seq, epoch) || line[5].load(Ordering::Acquire) != seq {
                return None;
            }
            let words = [0, 1, 2, 3, 4, 5].map(|n: usize| line[n].load(Ordering::Acquire));
            let whole = line_sum(&words) == words[1] || !holds(Rule::WholeLanding);
            (whole && words[4] == slot as u64 && words[5] == seq && words[0] == land.0).then_some(Annexed {
                land,
                ack: words[2],
                len: words[3],
                part: part as u64,
            })
        })
    }

    /// The bytes of message `seq` of a slot, and its length, if it is in the annex: they stay until it is acknowledged. `None` as well: it is
    /// damaged.
    pub fn in_annex(&self, slot: usize, seq: u64, epoch: u16) -> Option<(Run, usize)> {
        let Annexed { len, part, .. } = self.annexed(slot, seq, epoch)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= ANNEX_PART)?;
        // SAFETY: within the memory, which lives as long as self; its writer leaves it alone until the message is acknowledged.
        Some((unsafe { Run::new(self.annex()?.memory.as_ptr().add(bytes_at(part as usize)), len) }, len))
    }

    /// A message longer than a landing has come, by the annex or by another way: so will the next one on this slot, most likely.
    pub fn came_by_annex(&self, slot: usize, annex: bool) {
        if let Some(mine) = self.slot(slot)
            && mine.by_annex.load(Ordering::Relaxed) != annex
        {
            mine.by_annex.store(annex, Ordering::Relaxed);
        }
    }
    /// Will the message of a receive of so many bytes come by the annex, most likely?
    pub fn awaits_annex(&self, slot: usize, cap: usize) -> bool {
        let fits = cap > REMOTE_INLINE && cap <= ANNEX_PART;
        fits && self.slot(slot).is_some_and(|mine| mine.by_annex.load(Ordering::Relaxed))
    }

    /// A receive begins that the peer is not told of yet.
    pub fn is_unposted(&self, slot: usize) {
        self.slot(slot).inspect(|mine| mine.unposted_ns.store(now_ns(), Ordering::Relaxed));
    }
    /// It is over, or the peer is told.
    pub fn is_posted(&self, slot: usize) {
        if let Some(mine) = self.slot(slot)
            && mine.unposted_ns.load(Ordering::Relaxed) != 0
        {
            mine.unposted_ns.store(0, Ordering::Relaxed);
        }
    }
    /// Is it time to tell the peer of the receive? It has lasted, or the peer waits for it.
    pub fn is_to_be_posted(&self, slot: usize, seq: u64) -> bool {
        let (Some(mine), Some(front)) = (self.slot(slot), self.front(slot)) else { return false };
        let since = mine.unposted_ns.load(Ordering::Relaxed);
        since != 0 && (front.mark.load(Ordering::Acquire) >> 2 == seq || now_ns().saturating_sub(since) > UNPOSTED_NS)
    }

    /// The peer is told at once that this message is received, if it has not been of the one before: so a part is always free for a stream, and
    /// none goes where messages go both ways.
    pub(super) fn says_of_annex(&self, slot: usize, seq: u64) -> bool {
        self.slot(slot).is_some_and(|mine| mine.told.load(Ordering::Relaxed) + 1 < seq)
    }
}

/// The sum of a line, but for its own word.
fn line_sum(words: &[u64]) -> u64 {
    sum(LINE ^ words[0], &words[2..])
}
