//! Long frames whose bytes are received where they belong, without a copy in between.
//!
//! The first says in its head, which has a check, where its bytes belong and how many more follow of the same write, so of a group that has come
//! in one piece all places are known before the heads of the others are seen. Those are looked at afterwards. From the first on that is not the frame
//! which was expected, since one between them was lost, all are taken out again and dealt with as if they had come by themselves; their bytes were
//! in places that this write has not filled yet.

use super::inn::Not;
use super::{Channel, State};
use crate::base::key::Checks;
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::{GROUPED, Long, Receive};
use crate::fabric::datagram::flow::Comes;
use crate::fabric::datagram::home::count;
use crate::fabric::datagram::packet::{HEAD, HEAD_OF_LONG, Head, of_long_write};
use crate::fabric::network::device::Place;
use crate::fabric::served::frame::{HEADER, Header, Kind};

/// The heads of a datagram with a part of a long write, and of its frame.
fn open(begins: &[u8], token: u64, checks: &Checks) -> Option<(Head, Header)> {
    of_long_write(begins)?;
    let header = begins[HEAD..].first_chunk::<HEADER>().and_then(Header::decode)?;
    Some((Head::open(begins, token, checks)?, header))
}

/// The part of a write that a group of datagrams brings.
struct Expected {
    head: Head,
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
        let fits = n <= GROUPED && whole > (n - 1) * each && header.len as usize == each.min(whole);
        (fits && whole <= of_long_write(&long.head)?).then_some(Expected { head, header, each, whole })
    }
    fn datagrams(&self) -> usize {
        self.whole.div_ceil(self.each)
    }
    /// Where the bytes of one begin, and how many there are.
    fn part(&self, k: usize) -> (usize, usize) {
        (k * self.each, self.each.min(self.whole - k * self.each))
    }
    /// Is this the one in turn?
    fn is(&self, k: usize, (head, header): &(Head, Header)) -> bool {
        let (from, len) = self.part(k);
        head.first == self.head.first + k as u64
            && (header.id, header.rkey) == (self.header.id, self.header.rkey)
            && header.addr == self.header.addr.wrapping_add(from as u64)
            && header.len as usize == len
    }
}

impl Channel {
    /// Receives long frames where they belong, if they are the next of a write: gives what came among them that was not expected there. `None`: they
    /// are to be taken whole.
    pub fn place(&self, long: &Long, checks: &Checks, receive: &mut Receive<'_>) -> Option<Vec<u8>> {
        let expected = Expected::of(long, open(&long.head, self.name.token, checks)?)?;
        let mut state = lock(&self.state);
        let state = &mut *state;
        let is_next = state.inn.what_is(expected.head.first) == Comes::Next;
        if !is_next || state.gone || state.shut || !state.to.is_known() {
            return None;
        }
        let place = Place { addr: expected.header.addr, rkey: expected.header.rkey };
        let mut heads = [0; GROUPED * HEAD_OF_LONG];
        let heads = &mut heads[..expected.datagrams() * HEAD_OF_LONG];
        let (mut came, mut others) = (Vec::with_capacity(expected.datagrams()), Vec::new());
        self.home.memory.receive(place, expected.whole, |target| {
            if !receive(target, heads) {
                return;
            }
            for (k, begins) in heads.chunks_exact(HEAD_OF_LONG).enumerate() {
                let opened = match k {
                    0 if begins == long.head => Some((expected.head, expected.header)),
                    _ => open(begins, self.name.token, checks).filter(|opened| expected.is(k, opened)),
                };
                if came.len() == k
                    && let Some(opened) = opened
                {
                    came.push(opened);
                    continue;
                }
                let ((from, len), at) = (expected.part(k), others.len() + HEAD_OF_LONG);
                others.extend_from_slice(begins);
                others.resize(at + len, 0);
                if target.read(from, &mut others[at..]).is_none() {
                    others.truncate(at - HEAD_OF_LONG);
                    break;
                }
            }
        })?;
        let (now, mut taken) = (self.home.now(), Ok(()));
        for (head, header) in &came {
            if taken.is_err() || !self.is_heard(state, head, now) {
                break;
            }
            taken = self.is_placed(state, head, header);
        }
        if !came.is_empty() {
            self.has_taken(state, taken, now);
        }
        Some(others)
    }

    /// What is to be done when a frame's bytes are there.
    fn is_placed(&self, state: &mut State, head: &Head, header: &Header) -> Result<(), Not> {
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

    use super::super::tests::{End, bare, pair, until, with_a_liar};
    use super::*;
    use crate::fabric::datagram::carrier::Carrier;
    use crate::fabric::network::device::{Arrived, Data, Piece, Status, What};

    /// Writes of many datagrams each, one after the other, each of other bytes.
    fn write_long(ends: &mut [End; 2], writes: u64) {
        let mut bytes: Vec<u64> = (1..=60_000).collect();
        for n in 1..=writes {
            bytes.iter_mut().for_each(|word| *word += n);
            let piece = [Piece { addr: bytes.as_ptr() as u64, len: size_of_val(&bytes[..]) as u32, lkey: 0 }];
            let to = ends[1].place(0);
            assert!(ends[0].post(What::Write, Data::Pieces(&piece), to, true));
            until(ends, |ends| ends[0].over == n);
            assert!((0..bytes.len()).all(|k| ends[1].word(k) == bytes[k]) && ends[1].word(bytes.len()) == 0);
        }
    }

    fn placed(end: &End) -> u64 {
        end.home.counts.placed.load(Ordering::Relaxed)
    }

    #[test]
    fn long_writes_are_received_where_they_belong() {
        let mut ends = pair(None);
        write_long(&mut ends, 20);
        assert!(placed(&ends[1]) > 20, "{} frames of 300", placed(&ends[1]));
    }

    #[test]
    fn memory_that_is_unmapped_is_refused() {
        let mut ends = pair(None);
        write_long(&mut ends, 1);
        let (bytes, before) = ([7u64; 60_000], placed(&ends[1]));
        let unmapped = ends[1].unmapped(size_of_val(&bytes));
        let piece = [Piece { addr: bytes.as_ptr() as u64, len: size_of_val(&bytes) as u32, lkey: 0 }];
        let to = Place { addr: unmapped.0, rkey: unmapped.1.rkey() };
        assert!(ends[0].post(What::Write, Data::Pieces(&piece), to, true));
        until(&mut ends, |ends| ends[0].failed.is_some());
        assert_eq!(ends[0].failed.map(|c| c.status), Some(Status::Refused));
        assert_eq!(placed(&ends[1]), before);
    }

    /// Frames of a write of 40, each of 1000 bytes that are its number; the last tells a number.
    fn say_in_one_piece(liar: &dyn Carrier, to: &End, frames: &[u64]) {
        let checks = to.home.checks().expect("a job");
        let datagrams: Vec<Vec<u8>> = (frames.iter())
            .map(|&seq| {
                let from = 1000 * (seq - 1);
                let place = to.place(0);
                let (kind, number) =
                    if seq == 40 { (Kind::WriteWithNumber, 77) } else { (Kind::Write, 39_000 - from as u32) };
                let header =
                    Header { len: 1000, rkey: place.rkey, addr: place.addr + from, number, ..Header::bare(kind, 1) };
                let mut bytes = [&[0; HEAD][..], &header.encode(), &[seq as u8; 1000]].concat();
                let head = Head { to: to.channel.name.number, first: seq, frames: 1, covered: HEADER as u16, ..bare() };
                head.seal(&mut bytes, to.channel.name.token, checks);
                bytes
            })
            .collect();
        send_in_one_piece(liar, to, &datagrams);
    }

    fn send_in_one_piece(liar: &dyn Carrier, to: &End, datagrams: &[Vec<u8>]) {
        let part = |b: &Vec<u8>| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() };
        let (parts, ends): (Vec<_>, Vec<_>) = datagrams.iter().map(part).zip(1..).unzip();
        // SAFETY: slices.
        unsafe { liar.send(&to.home.carrier.spot(), &parts, &ends) }.expect("sent");
    }

    #[test]
    fn what_lacks_some_between_is_taken_as_ever() {
        let (mut end, liar) = with_a_liar();
        let applied = |end: &End| lock(&end.channel.state).inn.applied();
        let reach = |end: &mut End, seq: u64| until(std::slice::from_mut(end), |ends| applied(&ends[0]) == seq);
        // The first are taken, and after them it is looked.
        say_in_one_piece(&*liar, &end, &[1, 2, 3, 4, 5]);
        reach(&mut end, 5);
        assert_eq!(placed(&end), 0);
        say_in_one_piece(&*liar, &end, &[6, 7, 9, 10, 12]);
        reach(&mut end, 7);
        assert_eq!((placed(&end), lock(&end.channel.state).inn.kept()), (2, 0b10110));
        // Sent again, with what is new behind it.
        say_in_one_piece(&*liar, &end, &[8, 11, 13, 14, 15]);
        reach(&mut end, 15);
        assert_eq!(placed(&end), 3);
        say_in_one_piece(&*liar, &end, &[16, 16, 17, 17, 18]);
        reach(&mut end, 18);
        let counts = &end.home.counts;
        assert_eq!((counts.doubled.load(Ordering::Relaxed), counts.dropped.load(Ordering::Relaxed)), (2, 0));
        say_in_one_piece(&*liar, &end, &(19..=40).collect::<Vec<_>>());
        reach(&mut end, 40);
        assert_eq!(placed(&end), 26);
        let bytes = |k: u64| (0..125).map(move |word| (k, 125 * (k - 1) + word));
        assert!((1..=40).flat_map(bytes).all(|(k, word)| end.word(word as usize) == u64::from_ne_bytes([k as u8; 8])));
        let mut numbers = Vec::new();
        end.home.news.take(&mut |came| {
            if let Arrived::Number(_, n) = came {
                numbers.push(n);
            }
        });
        assert_eq!(numbers, [77]);
        assert_eq!((end.home.early.taken(), end.home.counts.strange.load(Ordering::Relaxed)), (0, 0));
        assert!(end.failed.is_none());
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

    /// What is carried out when these heads come in one piece, and how many were not expected.
    fn applied(end: &End, heads: &[u8]) -> (Option<usize>, u64) {
        let head = *heads.first_chunk().expect("one");
        let long = Long { head, each: HEAD_OF_LONG + 1000, whole: 5 * (HEAD_OF_LONG + 1000) };
        let mut came = |target: &crate::fabric::served::memory::Target<'_>, into: &mut [u8]| {
            assert_eq!(target.len(), 5000);
            into.copy_from_slice(heads);
            true
        };
        let others = end.channel.place(&long, end.home.checks().expect("a job"), &mut came);
        (others.map(|bytes| bytes.len() / long.each), lock(&end.channel.state).inn.applied())
    }

    #[test]
    fn what_was_not_expected_in_a_group_is_given_back() {
        let end = || pair(None).into_iter().next().expect("one");
        let one = end();
        let whole = heads(&one, |_, _, _| {});
        assert_eq!(applied(&one, &whole), (Some(0), 5));
        assert_eq!(applied(&one, &whole), (None, 5), "what has come before is taken otherwise");
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
            assert_eq!(applied(&one, &heads), (Some(2), 3), "change {n}");
        }
        let one = end();
        let mut forged = heads(&one, |_, _, _| {});
        forged[2 * HEAD_OF_LONG + 17] ^= 1;
        assert_eq!(applied(&one, &forged), (Some(3), 2));
        // More bytes than the first says that follow.
        let one = end();
        let short = heads(&one, |_, _, header| header.number = 3999);
        assert_eq!(applied(&one, &short), (None, 0));
        let one = end();
        let last = heads(&one, |_, _, header| header.kind = Kind::WriteWithNumber);
        assert_eq!(applied(&one, &last), (None, 0), "nothing follows the last of a write");
    }

    #[test]
    fn a_stranger_among_them_is_known() {
        let (mut end, liar) = with_a_liar();
        say_in_one_piece(&*liar, &end, &[1, 2, 3, 4, 5]);
        until(std::slice::from_mut(&mut end), |ends| lock(&ends[0].channel.state).inn.applied() == 5);
        // Behind the first five, of the same write.
        let heads = heads(&end, |_, head, header| {
            (head.first, header.addr) = (head.first + 5, header.addr + 5000);
        });
        let mut datagrams: Vec<Vec<u8>> =
            heads.chunks_exact(HEAD_OF_LONG).map(|head| [head, &[9; 1000]].concat()).collect();
        datagrams[2][20] ^= 1;
        send_in_one_piece(&*liar, &end, &datagrams);
        let strange = |end: &End| end.home.counts.strange.load(Ordering::Relaxed);
        until(std::slice::from_mut(&mut end), |ends| strange(&ends[0]) == 1);
        let state = lock(&end.channel.state);
        assert_eq!((state.inn.applied(), state.inn.kept(), placed(&end)), (7, 0b110, 2));
    }
}
