//! The rules by which frames arrive once and in order although datagrams are lost, doubled, late and overtake each other: numbers, and nothing
//! else.
//!
//! ```text
//!   this side's      acked     next        end                the other side's    applied
//!   ──────────────────┤░░█░░████├───────────┤                 ─────────────────────┤ █  ████
//!    known to be       under way  not sent                     carried out, in       kept until those
//!    carried out there            yet                          their order           before them come
//! ```
//! Frames are numbered from 1. An acknowledgement says up to where all has been carried out (`applied`), and by a bit each which of the next
//! [`WINDOW`] are kept. A frame behind which three others have come is lost; so is all that is under way when nothing was acknowledged for as long as
//! round trips take at most, and then twice as long, and so on. What is under way has a bound in frames, and one in bytes: the smaller of what the
//! other side has granted and of what did not lead to losses lately.

/// Frames that are under way at most.
pub(super) const WINDOW: u64 = 64;
/// A frame behind which so many have come is lost.
const OVERTAKEN: u32 = 3;
/// Bytes that may be under way before anything is known of the way, and what is left of them at least.
pub(super) const FIRST_WINDOW: u32 = 64 << 10;
const LEAST_WINDOW: u32 = 2 << 10;
/// Until an acknowledgement is missing: as long as nothing is known, at least, at most.
const FIRST_NS: u64 = 20_000_000;
const LEAST_NS: u64 = 3_000_000;
const MOST_NS: u64 = 250_000_000;
/// Never.
pub(super) const NEVER: u64 = u64::MAX;

/// The acknowledgement is of what was never sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impossible;

/// What one side sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// All up to here have been carried out there.
    acked: u64,
    /// The first that was never sent.
    next: u64,
    /// Bit k stands for frame acked + 1 + k: kept there; to be sent again; was sent again; is the first of its datagram.
    kept: u64,
    lost: u64,
    again: u64,
    firsts: u64,
    /// Bytes under way.
    flight: u32,
    /// As many as may be: as seems good, as the other side has granted; and from where on the first grows slowly.
    window: u32,
    granted: u32,
    slowly: u32,
    /// Losses of frames before this one have made the window smaller already.
    halved: u64,
    /// The round trip of this frame is measured, sent then; 0: none.
    timed: u64,
    timed_ns: u64,
    /// Round trips: smoothed, and how much they vary, in nanoseconds; 0: not known yet.
    trip: u32,
    varies: u32,
    /// How often in a row nothing came.
    silent: u8,
    /// Datagrams that may be under way.
    slots: u8,
    /// When all that is under way counts as lost.
    due_ns: u64,
}

/// Bits of so many frames.
fn bits(n: u64) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl Outgoing {
    pub fn new() -> Outgoing {
        Outgoing {
            acked: 0,
            next: 1,
            kept: 0,
            lost: 0,
            again: 0,
            firsts: 0,
            flight: 0,
            window: FIRST_WINDOW,
            granted: FIRST_WINDOW,
            slowly: u32::MAX,
            halved: 0,
            timed: 0,
            timed_ns: 0,
            trip: 0,
            varies: 0,
            silent: 0,
            slots: WINDOW as u8,
            due_ns: NEVER,
        }
    }

    /// The other side has room for so many datagrams; 0: as ever.
    pub fn has_slots(&mut self, slots: u32) {
        if slots > 0 {
            self.slots = slots.min(WINDOW as u32) as u8;
        }
    }
    /// Are as many datagrams under way as may be?
    pub fn is_full(&self) -> bool {
        (self.firsts & !self.kept & !self.lost).count_ones() >= u32::from(self.slots)
    }
    /// All up to here have been carried out there.
    pub fn acked(&self) -> u64 {
        self.acked
    }
    /// The first that was never sent.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Is something to be sent again?
    pub fn has_lost(&self) -> bool {
        self.lost != 0
    }
    /// Is something under way?
    pub fn is_under_way(&self) -> bool {
        self.acked + 1 < self.next
    }
    /// When something is to be done about what is under way.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }
    /// Until an acknowledgement is missing.
    fn patience(&self) -> u64 {
        let trip =
            if self.trip == 0 { FIRST_NS } else { (u64::from(self.trip) + 4 * u64::from(self.varies)).max(LEAST_NS) };
        (trip << self.silent.min(7)).min(MOST_NS)
    }

    /// An acknowledgement has come: all up to `acked`, by bits which behind it are kept, and how many bytes are granted. `cost`: bytes of a frame.
    pub fn hear(
        &mut self,
        (acked, kept, granted): (u64, u64, u32),
        cost: impl Fn(u64) -> u32,
        now: u64,
    ) -> Result<(), Impossible> {
        if acked >= self.next {
            return Err(Impossible);
        }
        if acked < self.acked {
            // Older than another.
            return Ok(());
        }
        self.granted = granted;
        let n = acked - self.acked;
        if n > 0 {
            let gone: u32 = (self.acked + 1..=acked).map(&cost).sum();
            self.flight = self.flight.saturating_sub(gone);
            let shift = |bits: u64| if n < 64 { bits >> n } else { 0 };
            for bits in [&mut self.kept, &mut self.lost, &mut self.again, &mut self.firsts] {
                *bits = shift(*bits);
            }
            self.acked = acked;
            self.silent = 0;
            self.measure(acked, now);
            let more = if self.window < self.slowly { gone } else { (gone / 4).min(LEAST_WINDOW) };
            self.window = self.window.saturating_add(more).min(1 << 30);
            self.due_ns = if self.is_under_way() { now + self.patience() } else { NEVER };
            if !self.is_under_way() {
                self.flight = 0;
            }
        }
        self.kept |= kept & bits(self.next - self.acked - 1);
        self.find_lost(cost);
        Ok(())
    }

    fn measure(&mut self, acked: u64, now: u64) {
        if self.timed == 0 || acked < self.timed {
            return;
        }
        let took = now.saturating_sub(self.timed_ns).min(u64::from(u32::MAX) / 8) as u32;
        if self.trip == 0 {
            (self.trip, self.varies) = (took.max(1), took / 2);
        } else {
            let off = took.abs_diff(self.trip);
            self.varies = self.varies - self.varies / 4 + off / 4;
            self.trip = (self.trip - self.trip / 8 + took / 8).max(1);
        }
        self.timed = 0;
    }

    /// Frames that others have overtaken are to be sent again, each once.
    fn find_lost(&mut self, cost: impl Fn(u64) -> u32) {
        let mut behind = self.kept;
        let mut found = false;
        let mut open = !self.kept & !self.again & !self.lost & bits(self.next - self.acked - 1);
        while open != 0 && behind != 0 {
            let k = open.trailing_zeros();
            behind &= !bits(u64::from(k) + 1);
            if behind.count_ones() < OVERTAKEN {
                break;
            }
            self.lost |= 1 << k;
            open &= open - 1;
            self.flight = self.flight.saturating_sub(cost(self.acked + 1 + u64::from(k)));
            found = true;
        }
        if found && self.acked >= self.halved {
            self.narrow(self.window / 2);
        }
    }

    fn narrow(&mut self, window: u32) {
        self.slowly = (self.window / 2).max(LEAST_WINDOW);
        self.window = window.max(LEAST_WINDOW);
        self.halved = self.next - 1;
    }

    /// The next frame that is to be sent now, of those up to `end`, and it counts as sent. `joins`: it goes with others in one datagram.
    pub fn send(&mut self, end: u64, cost: impl Fn(u64) -> u32, joins: impl Fn(u64) -> bool, now: u64) -> Option<u64> {
        let limit = self.window.min(self.granted);
        let seq = if self.lost != 0 {
            self.acked + 1 + u64::from(self.lost.trailing_zeros())
        } else if self.next <= end && self.next <= self.acked + WINDOW {
            self.next
        } else {
            return None;
        };
        let bytes = cost(seq);
        // One is always allowed, however long.
        if self.flight > 0 && self.flight.saturating_add(bytes) > limit {
            return None;
        }
        let joins = joins(seq);
        if !joins && self.is_full() {
            return None;
        }
        let first = 1 << (seq - self.acked - 1);
        self.firsts = if joins { self.firsts & !first } else { self.firsts | first };
        self.flight += bytes;
        if seq == self.next {
            self.next += 1;
            if self.timed == 0 {
                (self.timed, self.timed_ns) = (seq, now);
            }
        } else {
            let bit = 1 << (seq - self.acked - 1);
            (self.lost, self.again) = (self.lost & !bit, self.again | bit);
            // Nobody knows which of the two would be acknowledged.
            if seq <= self.timed {
                self.timed = 0;
            }
        }
        if self.due_ns == NEVER {
            self.due_ns = now + self.patience();
        }
        Some(seq)
    }

    /// What has counted as sent has not left.
    pub fn has_not_left(&mut self, seq: u64, bytes: u32) {
        if seq > self.acked && seq < self.next {
            let bit = 1 << (seq - self.acked - 1);
            (self.lost, self.again) = (self.lost | bit, self.again & !bit);
            self.flight = self.flight.saturating_sub(bytes);
            self.timed = 0;
        }
    }

    /// If nothing has come for so long that what is under way counts as lost it is to be sent again; is it?
    pub fn expire(&mut self, now: u64) -> bool {
        if now < self.due_ns {
            return false;
        }
        self.lost = !self.kept & bits(self.next - self.acked - 1);
        self.again = 0;
        (self.flight, self.timed) = (0, 0);
        self.narrow(LEAST_WINDOW);
        self.silent = self.silent.saturating_add(1);
        self.due_ns = now + self.patience();
        true
    }
}

/// What one side receives.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// All up to here have been carried out.
    applied: u64,
    /// Bit k stands for frame applied + 1 + k: it is kept.
    kept: u64,
}

/// What a frame that has come is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    /// It has been here before.
    Again,
    /// The next one.
    Next,
    /// One before it is missing.
    Early,
    /// So far ahead that its sender cannot have meant it.
    Beyond,
}

impl Incoming {
    pub fn applied(&self) -> u64 {
        self.applied
    }
    pub fn kept(&self) -> u64 {
        self.kept
    }
    pub fn what_is(&self, seq: u64) -> Comes {
        let ahead = seq.wrapping_sub(self.applied + 1);
        match ahead {
            0 if self.kept & 1 == 0 => Comes::Next,
            _ if seq <= self.applied => Comes::Again,
            1..WINDOW if self.kept >> ahead & 1 == 0 => Comes::Early,
            0..WINDOW => Comes::Again,
            _ => Comes::Beyond,
        }
    }
    /// An early one is kept.
    pub fn keep(&mut self, seq: u64) {
        self.kept |= 1 << (seq - self.applied - 1);
    }
    /// The next one has been carried out.
    pub fn apply(&mut self) {
        self.applied += 1;
        self.kept >>= 1;
    }
    /// The next one is there, kept.
    pub fn has_next(&self) -> bool {
        self.kept & 1 == 1
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
