//! Long frames whose bytes are received where they belong, without a copy in between.
//!
//! The first says in its head, which has a check, where its bytes belong and how many more follow of the same write, so of a group that has come
//! in one piece all places are known before the heads of the others are seen. Those are looked at afterwards: what is not the frame that was
//! expected counts as lost, and comes again. Until then its bytes are in a place that this write has not filled yet.

use super::Channel;
use super::inn::Not;
use crate::base::key::Checks;
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::{Long, Receive};
use crate::fabric::datagram::flow::Comes;
use crate::fabric::datagram::home::count;
use crate::fabric::datagram::packet::{HEAD, HEAD_OF_LONG, Head};
use crate::fabric::network::device::Place;
use crate::fabric::served::frame::{HEADER, Header, Kind};

/// Datagrams of a group at most.
const MOST: usize = 64;

/// The head of a datagram with one long frame, and the frame's.
fn open(bytes: &[u8], token: u64, checks: &Checks) -> Option<(Head, Header)> {
    let head = Head::open(bytes, token, checks)?;
    let header = bytes[HEAD..].first_chunk::<HEADER>().and_then(Header::decode)?;
    let is_write = matches!(header.kind, Kind::Write | Kind::WriteWithNumber);
    (is_write && head.frames == 1 && usize::from(head.covered) == HEADER).then_some((head, header))
}

/// The part of a write that a group of datagrams brings.
struct Expected {
    first: u64,
    header: Header,
    /// Bytes of it in each datagram, and in all.
    each: usize,
    whole: usize,
}

impl Expected {
    fn of(long: &Long, (head, header): (Head, Header)) -> Option<Expected> {
        let n = long.whole.div_ceil(long.each);
        let each = long.each.checked_sub(HEAD_OF_LONG)?;
        let whole = long.whole.checked_sub(n * HEAD_OF_LONG)?;
        let follows = if header.kind == Kind::Write { header.number as usize } else { 0 };
        let fits = n <= MOST && whole > (n - 1) * each && header.len as usize == each.min(whole);
        (fits && whole <= header.len as usize + follows).then_some(Expected { first: head.first, header, each, whole })
    }
    fn datagrams(&self) -> usize {
        self.whole.div_ceil(self.each)
    }
    /// Is this the one in turn?
    fn is(&self, k: usize, (head, header): &(Head, Header)) -> bool {
        let from = k * self.each;
        head.first == self.first + k as u64
            && (header.id, header.rkey) == (self.header.id, self.header.rkey)
            && header.addr == self.header.addr.wrapping_add(from as u64)
            && header.len as usize == self.each.min(self.whole - from)
    }
}

impl Channel {
    /// Receives long frames where they belong, if they are the next of a write. `false`: they are to be taken otherwise.
    pub fn place(&self, long: &Long, checks: &Checks, receive: &mut Receive<'_>) -> bool {
        let opened = open(&long.head, self.name.token, checks);
        let Some(expected) = opened.and_then(|opened| Expected::of(long, opened)) else { return false };
        let mut state = lock(&self.state);
        let state = &mut *state;
        let is_next = state.inn.what_is(expected.first) == Comes::Next;
        if !is_next || state.gone || state.shut || !state.to.is_known() {
            return false;
        }
        let place = Place { addr: expected.header.addr, rkey: expected.header.rkey };
        let mut heads = [0; MOST * HEAD_OF_LONG];
        let heads = &mut heads[..expected.datagrams() * HEAD_OF_LONG];
        let received = self.home.memory.receive(place, expected.whole, |target| receive(target, heads));
        match received {
            None => return false,
            Some(true) => {}
            Some(false) => {
                count(&self.home.counts.dropped, expected.datagrams() as u64);
                return true;
            }
        }
        let now = self.home.now();
        for (k, bytes) in heads.chunks_exact(HEAD_OF_LONG).enumerate() {
            let opened = open(bytes, self.name.token, checks).filter(|opened| expected.is(k, opened));
            let Some((head, header)) = opened else {
                count(&self.home.counts.dropped, (expected.datagrams() - k) as u64);
                state.asks = true;
                break;
            };
            if !self.is_heard(state, &head, now) {
                break;
            }
            let taken = self.is_placed(state, &head, &header);
            self.has_taken(state, taken, now);
            if state.gone {
                break;
            }
        }
        true
    }

    /// What is to be done when a frame's bytes are there.
    fn is_placed(&self, state: &mut super::State, head: &Head, header: &Header) -> Result<(), Not> {
        if state.inn.what_is(head.first) != Comes::Next {
            // It had come early.
            count(&self.home.counts.doubled, 1);
            state.asks = true;
            return Ok(());
        }
        if header.kind == Kind::WriteWithNumber {
            self.home.tell_number(self.name.number, header.number);
        }
        count(&self.home.counts.placed, 1);
        self.is_applied(state, header.len as usize);
        self.take_early(state)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::tests::{End, pair, until};
    use super::*;
    use crate::fabric::network::device::{Data, Piece, Status, What};

    /// Writes of many datagrams each, one after the other.
    fn write_long(ends: &mut [End; 2], bytes: &[u64], writes: u64) {
        let piece = [Piece { addr: bytes.as_ptr() as u64, len: size_of_val(bytes) as u32, lkey: 0 }];
        for n in 1..=writes {
            let to = ends[1].place(0);
            assert!(ends[0].post(What::Write, Data::Pieces(&piece), to, true));
            until(ends, |ends| ends[0].over == n || ends[0].failed.is_some());
        }
    }

    #[test]
    fn long_writes_are_received_where_they_belong() {
        let mut ends = pair(None);
        let bytes: Vec<u64> = (1..=60_000).collect();
        write_long(&mut ends, &bytes, 20);
        assert!(ends[0].failed.is_none());
        assert!((0..bytes.len()).all(|k| ends[1].word(k) == bytes[k]) && ends[1].word(bytes.len()) == 0);
        let placed = ends[1].home.counts.placed.load(Ordering::Relaxed);
        assert!(placed > 20, "{placed} frames of 300");
    }

    #[test]
    fn memory_that_is_unmapped_is_refused() {
        let mut ends = pair(None);
        let bytes: Vec<u64> = (1..=60_000).collect();
        write_long(&mut ends, &bytes, 1);
        let unmapped = ends[1].unmapped(8 * bytes.len());
        let piece = [Piece { addr: bytes.as_ptr() as u64, len: 8 * bytes.len() as u32, lkey: 0 }];
        let to = Place { addr: unmapped.0, rkey: unmapped.1.rkey() };
        assert!(ends[0].post(What::Write, Data::Pieces(&piece), to, true));
        until(&mut ends, |ends| ends[0].failed.is_some());
        assert_eq!(ends[0].failed.map(|c| c.status), Some(Status::Refused));
    }

    /// Heads of datagrams of 1000 bytes of a write of 5000, as their sender makes them.
    fn heads(end: &End, mut change: impl FnMut(usize, &mut Head, &mut Header)) -> Vec<u8> {
        let (place, checks) = (end.place(0), end.home.checks().expect("a job"));
        (0..5)
            .flat_map(|k| {
                let (to, covered) = (end.channel.name.number, HEADER as u16);
                let (first, frames) = (1 + k as u64, 1);
                let mut head = Head { to, first, acked: 0, kept: 0, granted: 1 << 20, covered, asks: false, frames };
                let (addr, number) = (place.addr + 1000 * k as u64, 4000 - 1000 * k as u32);
                let mut header = Header { len: 1000, rkey: place.rkey, addr, number, ..Header::bare(Kind::Write, 1) };
                change(k, &mut head, &mut header);
                let mut bytes = [&[0; HEAD][..], &header.encode()].concat();
                head.seal(&mut bytes, end.channel.name.token, checks);
                bytes
            })
            .collect()
    }

    /// What is carried out when these heads come in one piece.
    fn applied(end: &End, heads: &[u8]) -> (bool, u64) {
        let head = *heads.first_chunk().expect("one");
        let long = Long { head, each: HEAD_OF_LONG + 1000, whole: 5 * (HEAD_OF_LONG + 1000) };
        let mut came = |target: &crate::fabric::served::memory::Target<'_>, into: &mut [u8]| {
            assert_eq!(target.len(), 5000);
            into.copy_from_slice(heads);
            true
        };
        let placed = end.channel.place(&long, end.home.checks().expect("a job"), &mut came);
        (placed, lock(&end.channel.state).inn.applied())
    }

    #[test]
    fn what_was_not_expected_in_a_group_is_lost() {
        let end = || pair(None).into_iter().next().expect("one");
        let one = end();
        let whole = heads(&one, |_, _, _| {});
        assert_eq!(applied(&one, &whole), (true, 5));
        assert_eq!(applied(&one, &whole), (false, 5), "what has come before is taken otherwise");
        type Change = fn(&mut Head, &mut Header);
        let changes: [Change; 6] = [
            |head, _| head.first += 1,
            |head, _| head.frames = 2,
            |_, header| header.addr += 8,
            |_, header| header.len -= 1,
            |_, header| header.id += 1,
            |_, header| header.kind = Kind::Answer,
        ];
        for (n, change) in changes.iter().enumerate() {
            let one = end();
            let heads = heads(&one, |k, head, header| {
                if k == 3 {
                    change(head, header)
                }
            });
            assert_eq!(applied(&one, &heads), (true, 3), "change {n}");
            assert_eq!(one.home.counts.dropped.load(Ordering::Relaxed), 2);
        }
        let one = end();
        let mut forged = heads(&one, |_, _, _| {});
        forged[2 * HEAD_OF_LONG + 17] ^= 1;
        assert_eq!(applied(&one, &forged), (true, 2));
        // More bytes than the first says that follow.
        let one = end();
        let short = heads(&one, |_, _, header| header.number = 3999);
        assert_eq!(applied(&one, &short), (false, 0));
        let one = end();
        let last = heads(&one, |_, _, header| header.kind = Kind::WriteWithNumber);
        assert_eq!(applied(&one, &last), (false, 0), "nothing follows the last of a write");
    }
}
