//! How loans come to be, and go again: memory, tickets, the rings of their sizes.

use super::*;
use crate::base::error::error;

impl Pool {
    #[cold]
    #[inline(never)]
    pub(super) fn take_slow(&self, heap: &Heap, book: &Book, size: usize) -> Result<*mut u8> {
        if size > self.most_bytes {
            return Err(self.no_room(size, 0, 0));
        }
        let number = ring_of(size);
        let ring = &self.rings[number];
        let now = now_ns();
        let hurries = now < ring.wanted_ns.load(Ordering::Relaxed) + HURRY_NS;
        ring.wanted_ns.store(now, Ordering::Relaxed);
        if ring.len.load(Ordering::Acquire) >= if hurries { RUN } else { 1 }
            && let Some(at) = self.take_returned(ring, LOOK, size)
        {
            return Ok(at);
        }
        self.make(&mut self.making(), heap, book, number, size)
    }

    /// One that has come back, of so many behind the cursor; some more are made idle by the way.
    pub(super) fn take_returned(&self, ring: &Ring, most: u32, size: usize) -> Option<*mut u8> {
        let first = ring.cursor.load(Ordering::Acquire).checked_sub(1)?;
        let (mut ticket, mut found, mut more) = (first, None, 0);
        for _ in 0..ring.len.load(Ordering::Acquire).min(most) {
            if self.is_idle(ticket) {
                found.get_or_insert(ticket);
                more += 1;
            } else if found.is_some() {
                break;
            }
            if more == RUN {
                break;
            }
            ticket = self.slot(ticket).next.load(Ordering::Acquire);
        }
        match found {
            // Another thread may have it by now: then there are more to be had.
            Some(ticket) => self.take_idle(ring, ticket, size).or_else(|| self.take_returned(ring, most, size)),
            None => {
                ring.cursor.store(ticket + 1, Ordering::Release);
                None
            }
        }
    }

    /// Makes a loan, and lends it.
    pub(super) fn make(
        &self,
        making: &mut Making,
        heap: &Heap,
        book: &Book,
        number: usize,
        size: usize,
    ) -> Result<*mut u8> {
        let (ring, room) = (&self.rings[number], room_of(number));
        let fits = |m: &Making| m.loans < self.most_loans && m.bytes + room <= self.most_bytes;
        if !fits(making) {
            // Those further on, and those that were to be used in turn, may have come back.
            if let Some(at) = self.take_returned(ring, u32::MAX, size) {
                return Ok(at);
            }
            self.unmake(making, heap, book, fits);
        }
        if !fits(making) {
            return Err(self.no_room(size, making.loans, making.bytes));
        }
        let ticket = self.free_ticket(making, number)?;
        let at = match heap.alloc(room) {
            Ok(at) => at,
            Err(_) => {
                self.unmake(making, heap, book, |m| m.loans == 0);
                heap.alloc(room)?
            }
        };
        let entry = match book.open(at) {
            Ok(entry) => entry,
            Err(e) => {
                heap.free(at)?;
                return Err(e);
            }
        };
        making.loans += 1;
        making.bytes += room;
        let slot = self.slot(ticket);
        slot.at.store(at, Ordering::Relaxed);
        slot.place.store(heap.place_of(at).unwrap_or(0), Ordering::Relaxed);
        slot.size.store(size, Ordering::Relaxed);
        entry.store(super::super::own_entry(ticket), Ordering::Release);
        let now = slot.state.load(Ordering::Relaxed);
        slot.state.store(word(next_generation(generation_of(now)), LENT), Ordering::Release);
        if making.fresh[number].0 == ticket {
            making.fresh[number].0 += 1;
            self.link(ring, ticket);
        }
        Ok(at)
    }

    /// Puts a ticket into its ring, at the end. The cursor goes to the oldest.
    pub(super) fn link(&self, ring: &Ring, ticket: u32) {
        let slot = self.slot(ticket);
        if ring.len.load(Ordering::Relaxed) == 0 {
            slot.next.store(ticket, Ordering::Relaxed);
        } else {
            let last = self.slot(ring.last.load(Ordering::Relaxed));
            slot.next.store(last.next.load(Ordering::Relaxed), Ordering::Relaxed);
            // SYNC POINT: pairs with the acquire loads of who walks along the ring.
            last.next.store(ticket, Ordering::Release);
        }
        ring.last.store(ticket, Ordering::Relaxed);
        ring.cursor.store(slot.next.load(Ordering::Relaxed) + 1, Ordering::Release);
        ring.len.fetch_add(1, Ordering::AcqRel);
    }

    /// A ticket of the ring without memory: one that has lost it, or a fresh one.
    pub(super) fn free_ticket(&self, making: &mut Making, number: usize) -> Result<u32> {
        let (next, end) = making.fresh[number];
        if next < end {
            return Ok(next);
        }
        if let Some(ticket) =
            self.in_ring(number).find(|t| state_of(self.slot(*t).state.load(Ordering::Relaxed)) == EMPTY)
        {
            return Ok(ticket);
        }
        let run = self.next_run(making)?;
        making.fresh[number] = (run.start, run.end);
        Ok(run.start)
    }

    /// So many tickets that were never used, one after the other.
    pub(super) fn next_run(&self, making: &mut Making) -> Result<std::ops::Range<u32>> {
        if making.next_run as usize + RUN as usize > TICKETS {
            let text = format!("rank {}: loans of too many sizes: all {TICKETS} tickets are given out", self.rank);
            return Err(Error::new(Code::Memory, text));
        }
        let run = making.next_run..making.next_run + RUN;
        making.next_run += RUN;
        // The heap's memory may have been used before.
        run.clone().for_each(|ticket| self.returned(ticket).say(0));
        Ok(run)
    }

    /// Gives memory of idle loans back to the heap, the largest first, until that suffices.
    pub(super) fn unmake(&self, making: &mut Making, heap: &Heap, book: &Book, enough: impl Fn(&Making) -> bool) {
        for number in (1..RINGS).rev() {
            for ticket in self.in_ring(number) {
                if enough(making) {
                    return;
                }
                let slot = self.slot(ticket);
                let now = slot.state.load(Ordering::Acquire);
                let idle = || {
                    self.is_idle(ticket) && {
                        let now = slot.state.load(Ordering::Acquire);
                        let gone = word(generation_of(now), EMPTY);
                        state_of(now) == IDLE
                            && slot.state.compare_exchange(now, gone, Ordering::AcqRel, Ordering::Relaxed).is_ok()
                    }
                };
                if state_of(now) == EMPTY || !idle() {
                    continue;
                }
                let at = slot.at.swap(std::ptr::null_mut(), Ordering::Relaxed);
                if let Some(entry) = book.find(at) {
                    entry.store(0, Ordering::Release);
                }
                // It came from there.
                let _ = heap.free(at);
                making.loans -= 1;
                making.bytes -= room_of(number);
            }
        }
    }

    #[cold]
    pub(super) fn no_room(&self, size: usize, loans: usize, bytes: usize) -> Error {
        let (most, most_bytes) = (self.most_loans, self.most_bytes);
        error!(
            Code::Memory,
            "rank {}: a loan of {size} bytes: {loans} loans of {bytes} bytes in all are out, and have not been returned; FMPL_LOANS allows \
                 {most} and {most_bytes} bytes",
            self.rank
        )
    }
}
