//! Changes of words of eight bytes: what each side of a connection says to the other for one, and who makes it.
//!
//! Not every provider has atomic operations, and those in software make them no faster than this does: the process whose word it is changes it
//! by its processor when the message comes, so changes are atomic with those of all processors. A connection has one change under way at a
//! time, and nothing behind it until it is made: messages are taken from a queue, and a write behind one could be there before.
//!
//! ```text
//!   this end                                  the other end
//!   Asks: which, where, what  ─────────────▶  changes the word, if the key allows that
//!   what was there            ◀─────────────  Answers: which, what was there, or no
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::base::atomics::{AtomicU64, Ordering};
use crate::fabric::network::device::{Change, Place};

/// Bytes of what is said.
pub(super) const SAID: usize = 48;

/// What one end says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Change this word; the number of the request.
    Asks(u64, Place, Change),
    /// It is done, and that was there; `None`: it must not be changed.
    Answers(u64, Option<u64>),
}

impl Said {
    /// kind | request | five words, as the kind has them
    pub fn encode(&self) -> [u8; SAID] {
        let words = match *self {
            Said::Asks(id, Place { addr, rkey }, Change::Add(n)) => [1, id, addr, u64::from(rkey), n, 0],
            Said::Asks(id, Place { addr, rkey }, Change::Swap(a, b)) => [2, id, addr, u64::from(rkey), a, b],
            Said::Answers(id, Some(old)) => [3, id, old, 0, 0, 0],
            Said::Answers(id, None) => [4, id, 0, 0, 0, 0],
        };
        let mut bytes = [0; SAID];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }
    /// `None`: nothing of the kind.
    pub fn decode(bytes: &[u8]) -> Option<Said> {
        let mut words = [0; SAID / 8];
        let bytes = <&[u8; SAID]>::try_from(bytes).ok()?;
        for (word, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(from.try_into().ok()?);
        }
        let [kind, id, addr, rkey, a, b] = words;
        let place = || Some(Place { addr, rkey: u32::try_from(rkey).ok()? });
        match kind {
            1 => Some(Said::Asks(id, place()?, Change::Add(a))),
            2 => Some(Said::Asks(id, place()?, Change::Swap(a, b))),
            3 => Some(Said::Answers(id, Some(addr))),
            4 => Some(Said::Answers(id, None)),
            _ => None,
        }
    }
}

/// The place of a change of nothing.
pub(super) const NOWHERE: Place = Place { addr: 0, rkey: 0 };

/// The memory whose words others may change, by its keys: where it begins, and its bytes.
#[derive(Debug, Default)]
pub(super) struct Words(Mutex<HashMap<u32, (u64, usize)>>);

impl Words {
    /// This memory is registered so.
    pub fn add(&self, key: u32, at: u64, len: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (at, len));
    }
    /// It is not any more. When this returns nobody changes anything there.
    pub fn remove(&self, key: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
    /// Changes a word, and gives what was there; `None`: the key does not allow it. Nowhere nothing changes: whoever asks for that wants to know
    /// that what came before is there.
    pub fn change(&self, place: Place, change: Change) -> Option<u64> {
        if place == NOWHERE {
            return Some(0);
        }
        // Held over the change, so that the memory stays registered.
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, len) = *all.get(&place.rkey)?;
        let from = place.addr.checked_sub(at)?;
        if !place.addr.is_multiple_of(8) || from.checked_add(8)? > len as u64 {
            return None;
        }
        // SAFETY: within memory that is registered, and so mapped, to be changed by others, who use atomics; aligned.
        let word = unsafe { &*(place.addr as *const AtomicU64) };
        Some(match change {
            Change::Add(n) => word.fetch_add(n, Ordering::AcqRel),
            Change::Swap(expected, new) => {
                match word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back_as_it_went() {
        let place = Place { addr: 1 << 40, rkey: 7 };
        let all = [
            Said::Asks(1, place, Change::Add(u64::MAX)),
            Said::Asks(2, place, Change::Swap(3, 4)),
            Said::Answers(5, Some(6)),
            Said::Answers(7, None),
        ];
        for said in all {
            assert_eq!(Said::decode(&said.encode()), Some(said));
            assert_eq!(Said::decode(&said.encode()[1..]), None);
        }
        assert_eq!(Said::decode(&[9; SAID]), None);
    }

    #[test]
    fn only_words_that_may_be_changed_are() {
        let memory = [const { AtomicU64::new(5) }; 4];
        let (at, words) = (memory.as_ptr() as u64, Words::default());
        words.add(3, at + 8, 16);
        let change = |addr: u64, rkey: u32, change: Change| words.change(Place { addr, rkey }, change);
        assert_eq!(change(at + 8, 3, Change::Add(2)), Some(5));
        assert_eq!(change(at + 8, 3, Change::Swap(5, 9)), Some(7));
        assert_eq!(change(at + 8, 3, Change::Swap(7, 9)), Some(7));
        for (addr, key) in [(at, 3), (at + 24, 3), (at + 12, 3), (at + 8, 4), (0, 3), (u64::MAX - 7, 3)] {
            assert_eq!(change(addr, key, Change::Add(1)), None);
        }
        assert_eq!(words.change(NOWHERE, Change::Add(1)), Some(0));
        words.remove(3);
        assert_eq!(change(at + 8, 3, Change::Add(1)), None);
        assert_eq!(memory.each_ref().map(|w| w.load(Ordering::Relaxed)), [5, 9, 5, 5]);
    }
}
