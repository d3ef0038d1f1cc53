//! Acknowledgements side by side. The messages of a window are received one behind the other on indices that are neighbours, and what their
//! sender is told of each goes by few writes.
//!
//! The words that say how far the program's first [`BOARD`] indices are received lie in the lane's page, one behind the other. When several
//! neighbours have been acknowledged in a row, further ones wait until they fill a record, until something else goes to the peer that it may wait
//! for, or for a slow turn of a wait.

use std::sync::atomic::{AtomicU64, Ordering};

use super::front::{BOARD_AT, Front};
use super::{How, Remote};
use crate::lane::map::SYSTEM_INDICES;

/// Indices that have a place there.
pub(super) const BOARD: usize = 96;
/// Words of a record of acknowledgements.
const MOST: u64 = 16;
/// Neighbours acknowledged in a row before further ones wait: of a few indices that are used again and again each sender wants its word at once.
const STREAK: u64 = 8;

/// What was acknowledged last: slot + 1 in 32 bits | how many neighbours before it in a row, 16 | how many up to it wait, 16.
#[derive(Default)]
pub(super) struct Row(AtomicU64);

impl Row {
    /// Do any wait?
    #[inline(always)]
    pub(super) fn waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) & 0xffff != 0
    }
}

/// Its place on the board.
#[inline(always)]
pub(super) fn place_of(slot: usize) -> Option<usize> {
    slot.checked_sub(SYSTEM_INDICES).filter(|n| *n < BOARD)
}

/// The next word of a row, behind the acknowledgement of a slot, and which are said now: the last slot of them and their number, twice.
fn follow(row: u64, slot: u64) -> (u64, [(u64, u64); 2]) {
    let (last, streak, waiting) = (row >> 32, row >> 16 & 0xffff, row & 0xffff);
    let joins = last == slot && place_of(slot as usize).is_some_and(|n| n > 0);
    let (streak, waiting) = if joins { ((streak + 1).min(STREAK), waiting + 1) } else { (0, 0) };
    let before = if joins || last == 0 { (0, 0) } else { (last - 1, row & 0xffff) };
    let is_full = streak < STREAK || waiting == MOST;
    let (waiting, now) = if is_full { (0, (slot, waiting.max(1))) } else { (waiting, (0, 0)) };
    ((slot + 1) << 32 | streak << 16 | waiting, [before, now])
}

impl Remote {
    /// Where the peer says how far it has received on a slot.
    #[inline(always)]
    pub(super) fn told<'a>(&'a self, slot: usize, front: &'a Front) -> &'a AtomicU64 {
        place_of(slot).map_or(&front.ack, |n| &self.page().board[n])
    }

    /// A message on this slot is acknowledged, now or in a row with others.
    pub(super) fn acknowledge_in_row(&self, slot: usize) {
        let mut row = self.row.0.load(Ordering::Relaxed);
        loop {
            let (next, said) = follow(row, slot as u64);
            match self.row.0.compare_exchange_weak(row, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return said.into_iter().for_each(|(last, n)| self.say_row(last as usize, n as usize)),
                Err(now) => row = now,
            }
        }
    }

    /// Says what waits.
    #[inline]
    pub(super) fn say_what_waits(&self) {
        if self.row.waits() {
            let row = self.row.0.fetch_and(!0xffff, Ordering::AcqRel);
            self.say_row((row >> 32) as usize - 1, (row & 0xffff) as usize);
        }
    }

    fn say_row(&self, last: usize, n: usize) {
        match n {
            0 => {}
            1 => self.send_ack_as(How::Later, last),
            _ => {
                let slots = last + 1 - n..last + 1;
                let at = BOARD_AT + 8 * (slots.start - SYSTEM_INDICES);
                let said = self.link.write_into_as(
                    How::Later,
                    &self.page,
                    at,
                    || None,
                    |record| {
                        slots.clone().filter_map(|slot| self.slot(slot)).for_each(|mine| record.put(&[mine.tells()]));
                    },
                );
                if let Err(e) = said {
                    self.leave_unsaid(e, slots);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each acknowledgement is said once, at once or in a row, whatever the order; and of a window few records are made.
        #[test]
        fn all_are_said(slots in proptest::collection::vec(0u64..2 * BOARD as u64, 1..200)) {
            let (mut row, mut said) = (0, Vec::new());
            for slot in &slots {
                let (next, now) = follow(row, *slot);
                row = next;
                for (last, n) in now {
                    prop_assert!(n <= MOST && n <= last + 1);
                    said.extend(last + 1 - n..=last);
                }
            }
            let waiting = row & 0xffff;
            prop_assert!(waiting < MOST);
            said.extend((row >> 32) - waiting..row >> 32);
            prop_assert_eq!(said, slots);
        }
    }

    #[test]
    fn a_window_is_said_in_few_records() {
        let (mut row, mut records) = (0, 0);
        for _ in 0..10 {
            for slot in 0..64 {
                let (next, said) = follow(row, SYSTEM_INDICES as u64 + slot);
                row = next;
                records += said.iter().filter(|(_, n)| *n > 0).count();
            }
        }
        assert_eq!(
            records,
            10 * (8 + 3) + 9,
            "eight at once, three full ones, and what waits, when the next window begins"
        );
    }
}
