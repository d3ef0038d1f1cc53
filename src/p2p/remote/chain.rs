//! The chain of an index as its receiver on another node follows it: records that are fetched from the sender's spool piece by piece.
//!
//! What is in them the sender says, so it is looked through ([`parse`]) before anything is done with it. A piece is private memory, and
//! read once: what has been looked through stays as it was.

use super::*;
use crate::base::clock::now_ns;
use crate::base::run::Run;
use crate::lane::remote::RemoteChain;

/// Bytes of a chain that are fetched at a time.
const PIECE: u64 = 4096;
/// Bytes of a link, the longest of what says of itself how long it is.
const LONGEST: u64 = 24;
/// In a link, the size of the next block is said in units of so many bytes; one of more than these units has most of them.
const UNIT: u64 = 256;
const UNITS_MOST: u64 = LONG_LENGTH - 1;
/// A record of which the sender has said that it is there, and that is not: what it has written may overtake each other, but not for so long.
const LATE_NS: u64 = 1_000_000_000;

/// What lies at a place of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Not the message that is looked for.
    Nothing,
    /// Its record: the bytes of the message, and of what is in front of them.
    Record { len: u64, header: u64 },
    /// The chain goes on in another block: its address, its key and the number of its use, its bytes.
    Link { addr: u64, keys: u64, size: u64 },
    /// What no sender writes.
    Damaged,
}

/// Takes apart what lies at a place of a chain that message `seq` is to be at. `bytes`: the first of them, [`LONGEST`] unless the block ends
/// before; `left`: as many has the block from there on.
fn parse(bytes: &[u8], left: u64, seq: u64) -> Next {
    let word = |n: usize| bytes.get(8 * n..8 * n + 8).map(|b| u64::from_ne_bytes(b.try_into().expect("eight bytes")));
    let Some(first) = word(0).filter(|word| *word as u32 == seq as u32 && *word != 0) else { return Next::Nothing };
    let short = first >> 40;
    match Kind::from_number((first >> 32) as u8) {
        Some(Kind::Spooled) => {
            let (len, header) = if short < LONG_LENGTH { (Some(short), 8) } else { (word(1), 16) };
            match len.filter(|len| left.checked_sub(header).is_some_and(|most| *len <= most)) {
                Some(len) => Next::Record { len, header },
                None => Next::Damaged,
            }
        }
        Some(Kind::Link) => {
            let size = if short < UNITS_MOST { short * UNIT } else { SPOOL_WINDOW as u64 };
            match (word(1), word(2)) {
                (Some(addr), Some(keys)) if is_block(addr, size) => Next::Link { addr, keys, size },
                _ => Next::Damaged,
            }
        }
        _ => Next::Damaged,
    }
}

/// Can a block of a peer's spool be there, and so long?
fn is_block(addr: u64, size: u64) -> bool {
    let fits = (BLOCK_HEADER as u64 + 8..=SPOOL_WINDOW as u64).contains(&size);
    fits && addr != 0 && addr.is_multiple_of(64) && addr.checked_add(size).is_some()
}

/// The same of a chain that begins.
fn is_start(start: &ChainStart) -> bool {
    is_block(start.addr, start.size)
}

/// The bytes of a chain's piece from the next record on.
fn next_bytes(chain: &RemoteChain) -> &[u8] {
    let at = chain.next.checked_sub(chain.from).and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| chain.piece.get(at..)).unwrap_or_default()
}

/// What lies at the next place of a chain of which so much was fetched.
fn next_of(chain: &RemoteChain, seq: u64) -> Next {
    parse(next_bytes(chain), chain.size.saturating_sub(chain.next), seq)
}

/// The block of a chain.
fn source(chain: &RemoteChain) -> Source {
    Source::new(chain.addr, chain.key, chain.generation)
}

/// Goes on with another block.
fn enter(chain: &mut RemoteChain, addr: u64, keys: u64, size: u64) {
    (chain.addr, chain.key, chain.generation, chain.size) = (addr, keys as u32, (keys >> 32) as u32, size);
    (chain.next, chain.sure, chain.late_ns) = (BLOCK_HEADER as u64, 0, 0);
    chain.piece.clear();
}

impl Receiver {
    /// The chain begins with this message.
    pub(in crate::p2p) fn enter_chain_remote(&self, remote: &Remote) -> bool {
        let Some(start) = remote.chain_start(self.slot).filter(|s| s.first == self.seq) else { return false };
        if !is_start(&start) {
            self.break_off("where a chain begins");
            return false;
        }
        let Some(mine) = remote.slot(self.slot) else { return false };
        let mut chain = mine.chain().lock().unwrap_or_else(|e| e.into_inner());
        enter(&mut chain, start.addr, start.key as u64 | (start.generation as u64) << 32, start.size);
        true
    }

    /// Looks for the next record of the chain; its word.
    pub(in crate::p2p) fn look_in_remote_chain(&self, remote: &Remote) -> Option<u64> {
        let mine = remote.slot(self.slot)?;
        let mut chain = mine.chain().lock().unwrap_or_else(|e| e.into_inner());
        let mut linked = false;
        loop {
            let tail = remote.chain_tail(self.slot);
            if tail < self.seq {
                return None;
            }
            if !self.fetch_piece(remote, &mut chain, tail) {
                return None;
            }
            match next_of(&chain, self.seq) {
                Next::Record { .. } => {
                    chain.late_ns = 0;
                    let word = next_bytes(&chain).first_chunk().map(|b| u64::from_ne_bytes(*b));
                    return word;
                }
                // One link follows another only where the records are damaged.
                Next::Link { addr, keys, size } if !linked => {
                    source(&chain).done(remote);
                    enter(&mut chain, addr, keys, size);
                    linked = true;
                }
                Next::Nothing if !self.is_late(&mut chain) => return None,
                _ => {
                    self.break_off("a record of its chain");
                    return None;
                }
            }
        }
    }

    /// Has the message been told of for long, and is not there?
    fn is_late(&self, chain: &mut RemoteChain) -> bool {
        let now = now_ns();
        chain.sure = 0;
        if chain.late_ns == 0 {
            chain.late_ns = now + LATE_NS;
        }
        now > chain.late_ns
    }

    /// Fetches what lies at the next place, if that was not done since the chain has come so far.
    fn fetch_piece(&self, remote: &Remote, chain: &mut RemoteChain, tail: u64) -> bool {
        let left = chain.size.saturating_sub(chain.next);
        if chain.sure >= self.seq && next_bytes(chain).len() as u64 >= LONGEST.min(left) {
            return true;
        }
        let n = PIECE.min(left) as usize;
        let (block, from) = (source(chain), chain.next);
        let there = chain.addr.wrapping_add(from);
        chain.piece.resize(n, 0);
        if let Err(e) = Run::with_room(&mut chain.piece, |to| block.fetch(remote, to.into(), n, there)) {
            chain.piece.clear();
            // The sender could say no again and again.
            remote.link.fail(Reason::Other, format!("has sent what cannot be fetched ({})", e.detail()));
            return false;
        }
        (chain.from, chain.sure) = (from, tail);
        true
    }

    /// The length of the record that was found.
    pub(in crate::p2p) fn remote_record_len(&self, remote: &Remote) -> usize {
        let Some(mine) = remote.slot(self.slot) else { return 0 };
        match next_of(&mine.chain().lock().unwrap_or_else(|e| e.into_inner()), self.seq) {
            Next::Record { len, .. } => len as usize,
            _ => 0,
        }
    }

    /// The block of the chain will not be looked at again.
    pub(in crate::p2p) fn finish_block_remote(&self, remote: &Remote) {
        if let Some(mine) = remote.slot(self.slot) {
            source(&mine.chain().lock().unwrap_or_else(|e| e.into_inner())).done(remote);
        }
    }

    /// Delivers a record of the chain; its length.
    pub(in crate::p2p) fn take_remote_record(&self, remote: &Remote) -> Result<usize, Error> {
        let Some(mine) = remote.slot(self.slot) else { return Err(self.garbled("a record of its chain")) };
        let mut chain = mine.chain().lock().unwrap_or_else(|e| e.into_inner());
        let Next::Record { len, header } = next_of(&chain, self.seq) else {
            return Err(self.garbled("a record of its chain"));
        };
        let n = (len as usize).min(self.cap);
        match next_bytes(&chain).get(header as usize..).and_then(|bytes| bytes.get(..n)) {
            Some(bytes) => Cursor::new(self.data, 0).scatter_bytes(bytes),
            None => {
                let from = chain.addr.wrapping_add(chain.next + header);
                source(&chain).fetch(remote, self.data, n, from)?;
            }
        }
        chain.next += record_bytes(len as usize) as u64;
        write_back(remote, chain.addr.wrapping_add(64), chain.key, self.seq as u32);
        Ok(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn records_and_links_are_what_they_say() {
        let seq = 7 << 32 | 41;
        let record = |len| record_word(seq, Kind::Spooled, len);
        assert_eq!(parse(&bytes(&[record(5), 0, 0]), 400, seq), Next::Record { len: 5, header: 8 });
        assert_eq!(parse(&bytes(&[record(5)]), 13, seq), Next::Record { len: 5, header: 8 });
        assert_eq!(parse(&bytes(&[record(5)]), 12, seq), Next::Damaged, "beyond its block");
        let long = LONG_LENGTH + 9;
        let words = [record(long as usize), long, 0];
        assert_eq!(parse(&bytes(&words), long + 16, seq), Next::Record { len: long, header: 16 });
        assert_eq!(parse(&bytes(&words), long + 15, seq), Next::Damaged);
        assert_eq!(parse(&bytes(&words[..1]), long + 16, seq), Next::Damaged, "a length that is not there");
        let link = |units| record_word(seq, Kind::Link, units);
        let there = Next::Link { addr: 1 << 40, keys: 9, size: 1024 };
        assert_eq!(parse(&bytes(&[link(4), 1 << 40, 9]), 24, seq), there);
        for (units, addr) in [(0, 1 << 40), (4, 0), (4, (1 << 40) + 8), (4, u64::MAX - 63)] {
            assert_eq!(parse(&bytes(&[link(units), addr, 9]), 24, seq), Next::Damaged, "{units} at {addr:#x}");
        }
        assert_eq!(parse(&bytes(&[link(4), 1 << 40]), 16, seq), Next::Damaged);
        for other in [0, record_word(seq + 1, Kind::Spooled, 5)] {
            assert_eq!(parse(&bytes(&[other, 0, 0]), 400, seq), Next::Nothing);
        }
        assert_eq!(parse(&[], 0, seq), Next::Nothing);
    }

    /// A word that is mostly near what is right.
    fn word() -> impl Strategy<Value = u64> {
        let near = |around: u64| (0u64..64).prop_map(move |by| around.wrapping_add(by).wrapping_sub(32));
        prop_oneof![any::<u64>(), near(0), near(u64::MAX), near(LONG_LENGTH), near(SPOOL_WINDOW as u64), near(1 << 63)]
    }

    proptest! {
        /// Whatever a sender has written, nothing outside a block's bytes is named, and sums of what is named do not wrap.
        #[test]
        fn nothing_beyond_a_block_is_a_record(
            (kind, length) in (any::<u8>(), word()), words in [word(), word()], left in word(), has in 0usize..4,
        ) {
            let (seq, left) = (41, left % (SPOOL_WINDOW as u64 + 1));
            let first = seq | (kind as u64 % 16) << 32 | length << 40;
            let fetched = bytes(&[first, words[0], words[1]]);
            match parse(&fetched[..8 * has], left, seq) {
                Next::Record { len, header } => {
                    prop_assert!(len + header <= left);
                    prop_assert!(record_bytes(len as usize) as u64 <= left + 8);
                }
                Next::Link { addr, size, .. } => {
                    prop_assert!(size >= BLOCK_HEADER as u64 + 8 && size <= SPOOL_WINDOW as u64);
                    prop_assert!(addr.checked_add(size).is_some());
                }
                Next::Nothing => prop_assert_eq!(has, 0),
                Next::Damaged => {}
            }
        }
    }
}
