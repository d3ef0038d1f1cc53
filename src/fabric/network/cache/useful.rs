//! What makes room in the [table](super::table): a hand goes round over the slots, and gives up the least useful.

use super::kept::{FOUND, HOLDER, HOLDERS};
use super::table::{Chain, LISTED, Locked, WRITABLE};
use crate::base::atomics::Ordering;

/// Slots among which the hand chooses, and slots that it passes for that at most.
const CHOICES: usize = 128;
const STEPS: usize = 4096;
/// What it counts to be found once between two turns of the hand: to stay for so many turns as it can be halved. And what counts as often.
const ONCE: u32 = 8;
const OFTEN: u32 = 8;
/// Pages whose registration costs as much as what each costs besides.
const FIXED_PAGES: u64 = 16;

impl<T: Send + Sync> Locked<T> {
    /// Makes room: a slot is given up.
    pub(super) fn evict(&self, n: u32, gone: &mut Chain) {
        let (table, start) = (self.table, self.table.start_of(n));
        let of = (table.note(n).start.load(Ordering::Relaxed) & WRITABLE != 0) as usize;
        let place = table.orders[of].last_to(&table.blocks, start);
        self.change(|| self.cut(of, place, gone, |slot| slot == n));
        table.books.evicted.store(table.books.evicted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The least useful of the slots that the hand comes by next, of those that nobody else holds. `by_byte`: it is bytes that are short.
    pub(super) fn least_useful(&self, by_byte: bool) -> Option<u32> {
        let (table, books) = (self.table, &self.table.books);
        let (all, mut hand) = (table.slots.untaken(), books.hand.load(Ordering::Relaxed));
        let (mut looked, mut least) = (0, None);
        for _ in 0..STEPS.min(all as usize) {
            hand = if hand + 1 < all { hand + 1 } else { 0 };
            let is_idle = table.slot(hand).used.load(Ordering::Relaxed) & HOLDERS == HOLDER;
            if !is_idle || table.note(hand).start.load(Ordering::Relaxed) & LISTED == 0 {
                continue;
            }
            let worth = self.worth(hand, by_byte);
            if worth == 0.0 {
                least = Some((hand, worth));
                break;
            }
            if least.is_none_or(|(_, most)| worth < most) {
                least = Some((hand, worth));
            }
            looked += 1;
            if looked == CHOICES {
                break;
            }
        }
        books.hand.store(hand, Ordering::Relaxed);
        least.map(|(n, _)| n)
    }

    /// What it would cost to be without it, by how often it was found lately: the hand halves that each time it comes by. 0: it has not been
    /// found for some turns of the hand.
    fn worth(&self, n: u32, by_byte: bool) -> f64 {
        let (note, found) = (self.table.note(n), (self.table.slot(n).used.load(Ordering::Relaxed) / FOUND) as u32);
        let lately = found.wrapping_sub(note.seen.load(Ordering::Relaxed)).min(OFTEN);
        let score = note.score.load(Ordering::Relaxed) / 2 + ONCE * lately;
        note.seen.store(found, Ordering::Relaxed);
        note.score.store(score, Ordering::Relaxed);
        let pages = self.table.bytes_of(n).div_ceil(4096).max(1);
        let cost = score as f64 * (FIXED_PAGES + pages) as f64;
        if by_byte { cost / pages as f64 } else { cost }
    }
}
