//! A record on its way to the peer, as it is composed: words behind each other, with nothing set beforehand.

use std::mem::MaybeUninit;

use super::device::RECORD_MOST;

const WORDS: usize = RECORD_MOST / 8;

/// See the head of this file.
pub struct Record {
    words: [MaybeUninit<u64>; WORDS],
    /// Words that are set.
    count: usize,
    /// Bytes of the last word that do not count.
    short: usize,
}

impl Record {
    pub(super) fn new() -> Record {
        Record { words: [const { MaybeUninit::uninit() }; WORDS], count: 0, short: 0 }
    }

    /// Puts words behind those that are there; not behind half a word.
    #[inline(always)]
    pub fn put(&mut self, words: &[u64]) {
        debug_assert_eq!(self.short, 0);
        for (to, word) in self.words[self.count..][..words.len()].iter_mut().zip(words) {
            to.write(*word);
        }
        self.count += words.len();
    }

    /// The same with a word of four bytes: of two the first comes first in memory.
    #[inline]
    pub fn put_halves(&mut self, halves: &[u32]) {
        for pair in halves.chunks(2) {
            let [first, second] = [pair[0], pair.get(1).copied().unwrap_or(0)].map(u32::to_ne_bytes);
            let mut word = [0; 8];
            word[..4].copy_from_slice(&first);
            word[4..].copy_from_slice(&second);
            self.put(&[u64::from_ne_bytes(word)]);
            self.short = 8 - 4 * pair.len();
        }
    }

    /// The words that are there.
    #[inline(always)]
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: so many are set.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.count) }
    }

    /// Its bytes.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: so many words are set.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.count * 8 - self.short) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_halves_lie_behind_each_other() {
        let mut record = Record::new();
        assert!(record.bytes().is_empty());
        record.put(&[1, 2]);
        record.words()[0] = 3;
        record.put_halves(&[4, 5, 6]);
        let expected: Vec<u8> = [3u64, 2]
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .chain([4u32, 5, 6].iter().flat_map(|w| w.to_ne_bytes()))
            .collect();
        assert_eq!(record.bytes(), expected);
    }
}
