//! Atomic operations of which the device knows only two.

use super::Device;
use crate::base::error::Result;
use crate::fabric::network::{Change, Place};
use crate::rma::direct::{Atomic, Fetch};

/// What comes next in an atomic operation that the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rma) enum Next {
    /// It is over; what was there.
    Over(u64),
    /// This change of the eight bytes in which the word lies.
    Try(Change),
}

impl Fetch {
    /// How the device does it: additions and comparisons of eight bytes by itself. All else is computed here from what is there, and put in its
    /// place if that is still there; the other half of the eight bytes stays as it is. `there`: what was there at the last look, and
    /// whether that look was a try that had to find `guess`.
    pub(in crate::rma) fn by_device(&self, there: Option<u64>, guess: Option<u64>, high: bool) -> Next {
        let Some(old) = there else {
            return Next::Try(match (self.wide, self.op) {
                (true, Atomic::Add) => Change::Add(self.value),
                (true, Atomic::Cas) => Change::Swap(self.expected, self.value),
                _ => Change::Add(0),
            });
        };
        let shift = if high { 32 } else { 0 };
        let part = |word: u64| if self.wide { word } else { word >> shift & 0xffff_ffff };
        if self.wide && matches!(self.op, Atomic::Add | Atomic::Cas) || guess == Some(old) {
            return Next::Over(part(old));
        }
        let was = part(old);
        let value = if self.wide { self.value } else { self.value & 0xffff_ffff };
        let new = match self.op {
            Atomic::Cas if was != part_of(self.expected, self.wide) => was,
            Atomic::Cas | Atomic::Swap => value,
            Atomic::Add => part_of(was.wrapping_add(value), self.wide),
            Atomic::Xor => was ^ value,
            Atomic::Or => was | value,
            Atomic::And => was & value,
        };
        if new == was {
            return Next::Over(was);
        }
        let word = if self.wide { new } else { old & !(0xffff_ffff << shift) | new << shift };
        Next::Try(Change::Swap(old, word))
    }
}

fn part_of(value: u64, wide: bool) -> u64 {
    if wide { value } else { value & 0xffff_ffff }
}

impl Device {
    /// Does an atomic operation on a word of this rank; what was there.
    pub fn fetch(&self, n: u32, at: u64, fetch: &Fetch) -> Result<u64> {
        let rkey = self.region(n).map_or(0, |r| r.rkey());
        let (high, place) = (!at.is_multiple_of(8), Place { addr: at & !7, rkey });
        let (mut there, mut guess) = (None, None);
        loop {
            match fetch.by_device(there, guess, high) {
                Next::Over(old) => return Ok(old),
                Next::Try(change) => {
                    guess = if let Change::Swap(expected, _) = change { Some(expected) } else { None };
                    there = Some(self.own.change(place, change)?);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::bytes::Room;
    use crate::rma::GlobalAddress;

    /// Every operation on words that a device changes, with others that change them in between, against the processor's.
    #[test]
    fn the_device_does_what_the_processor_does() {
        use Atomic::*;
        let mut seed = 5u64;
        let mut draw = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed ^ seed >> 29
        };
        for round in 0..4000 {
            let op = [Cas, Swap, Add, Xor, Or, And][round % 6];
            let (wide, high) = (round % 4 < 2, round % 4 == 3);
            let mut memory = [draw(), draw()];
            let there = |m: [u64; 2]| if wide { m[0] } else { m[0] >> if high { 32 } else { 0 } & 0xffff_ffff };
            let expected = if draw() % 2 == 0 { there(memory) } else { draw() };
            let fetch = Fetch { at: GlobalAddress::NULL, op, wide, value: draw(), expected };
            let (mut before, mut guess, mut last) = (memory, None, None);
            let old = loop {
                match fetch.by_device(last, guess, high) {
                    Next::Over(old) => break old,
                    Next::Try(change) => {
                        if draw() % 4 == 0 {
                            memory[0] ^= draw();
                        }
                        before = memory;
                        last = Some(memory[0]);
                        match change {
                            Change::Add(n) => memory[0] = memory[0].wrapping_add(n),
                            Change::Swap(expected, new) if memory[0] == expected => memory[0] = new,
                            Change::Swap(..) => {}
                        }
                        guess = if let Change::Swap(expected, _) = change { Some(expected) } else { None };
                    }
                }
            };
            let mut want = before;
            let at = if high { 4 } else { 0 };
            assert_eq!(fetch.apply(Room::of(&mut want).part(at, fetch.bytes())), old, "{fetch:?}");
            assert_eq!(memory, want, "{fetch:?} {high}");
        }
    }
}
