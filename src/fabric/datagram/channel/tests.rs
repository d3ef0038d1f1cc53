//! Two ends in one process, over sockets of the loopback, in fine weather and in bad; and an end whose other end says what it likes.

use std::time::{Duration, Instant};

use super::*;
use crate::base::config::Weather;
use crate::base::key::Key;
use crate::base::simulation::Lot;
use crate::fabric::datagram::carrier::Carrier;
use crate::fabric::datagram::packet::{HEAD, Head};
use crate::fabric::datagram::udp::Udp;
use crate::fabric::datagram::weather::Weathered;
use crate::fabric::network::device::{Access, Change, DeviceError, Piece, Place, Registrar, Registration};
use crate::fabric::served::frame::{HEADER, Header, Kind};
use crate::fabric::served::memory::Memory;
use crate::fabric::served::port::Port;
use crate::fabric::served::sleeper::Sleeper;

fn udp() -> Box<dyn Carrier> {
    let port = Port { network: "udp", name: "lo".into(), ip: std::net::Ipv4Addr::LOCALHOST.into() };
    Box::new(Udp::open(port).expect("a socket"))
}

/// A process with one channel, and words that its peer may reach.
pub(super) struct End {
    pub home: Arc<Home>,
    pub channel: Arc<Channel>,
    memory: Vec<AtomicU64>,
    registered: Box<dyn Registration>,
    last: u64,
    pub over: u64,
    pub failed: Option<Completion>,
}

const WORDS: usize = 64 << 10;

impl End {
    fn new(carrier: Box<dyn Carrier>) -> End {
        End::with_ring(carrier, false)
    }
    fn with_ring(carrier: Box<dyn Carrier>, has_ring: bool) -> End {
        let memory = Arc::<Memory>::default();
        let home = Arc::new(Home::new(carrier, memory.clone(), Sleeper::new().expect("a descriptor"), 0));
        home.know(&Key::of(b"the job's"));
        let token = u64::from_le_bytes(crate::base::key::random().expect("random bytes"));
        let ring = has_ring.then(|| home.carrier.ring().expect("a ring"));
        let make = |number, has| Arc::new_cyclic(|this| Channel::new(&home, this, Name { number, token }, has));
        let channel = home.add(ring, make);
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        // SAFETY: lives as long.
        let registered = unsafe { memory.register(words.as_ptr().cast_mut().cast(), 8 * WORDS, access) };
        let registered = registered.expect("registered");
        End { home, channel, memory: words, registered, last: 0, over: 0, failed: None }
    }
    pub fn place(&self, word: usize) -> Place {
        Place { addr: self.memory.as_ptr() as u64 + 8 * word as u64, rkey: self.registered.rkey() }
    }
    pub fn word(&self, at: usize) -> u64 {
        self.memory[at].load(Ordering::Relaxed)
    }
    /// Memory that peers may reach, which the program has unmapped but for its first page: where it is, and its key.
    pub fn unmapped(&self, len: usize) -> (u64, Box<dyn Registration>) {
        let page = crate::fabric::shm::region::page_size();
        let (all, access) = (libc::PROT_READ | libc::PROT_WRITE, Access::REMOTE_WRITE | Access::MAY_GO);
        // SAFETY: pages of the test's own; as good as unmapped, but nobody else gets them.
        let (at, registered) = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), len, all, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(at.byte_add(page), len - page, libc::PROT_NONE), 0);
            (at, self.home.memory.clone().register(at.cast(), len, access))
        };
        (at as u64, registered.expect("registered"))
    }
    /// Posts, if there is room.
    pub fn post(&mut self, what: What, data: Data<'_>, to: Place, signaled: bool) -> bool {
        let request = Request { id: self.last + 1, what, data, to, signaled, later: false };
        // SAFETY: the memory of these tests lives longer than what is under way.
        let posted = unsafe { self.channel.post(&request) }.expect("it takes requests");
        self.last += u64::from(posted);
        posted
    }
    fn turn(&mut self) {
        let End { channel, over, failed, .. } = self;
        channel
            .poll(&mut |c| match c.status {
                Status::Done => *over = c.id,
                _ => *failed = Some(c),
            })
            .expect("it works");
        self.home.tick(true);
    }
}

pub(super) fn pair(weather: Option<Weather>) -> [End; 2] {
    pair_with([false; 2], weather)
}

/// A pair, of which these have rings for what the other one sends.
fn pair_with(rings: [bool; 2], weather: Option<Weather>) -> [End; 2] {
    let carrier = |seed: u64| match &weather {
        Some(weather) => Box::new(Weathered::new(udp(), Weather { seed, ..weather.clone() })) as Box<dyn Carrier>,
        None => udp(),
    };
    let ends = [1, 2].map(|k| End::with_ring(carrier(k), rings[k as usize - 1]));
    ends[0].channel.connect(&ends[1].channel.end()).expect("connected");
    ends[1].channel.connect(&ends[0].channel.end()).expect("connected");
    ends
}

pub(super) fn until(ends: &mut [End], mut done: impl FnMut(&[End]) -> bool) {
    let since = Instant::now();
    while !done(ends) {
        ends.iter_mut().for_each(End::turn);
        assert!(since.elapsed() < Duration::from_secs(120), "nothing comes");
    }
}

#[test]
fn a_quiet_channel_takes_400_bytes() {
    // Two counts beside the structure, and its number and place where it is looked for.
    let all = size_of::<Channel>() + 16 + 2 * (size_of::<u32>() + size_of::<Weak<Channel>>());
    assert!(all <= 400, "{all} bytes");
    assert_eq!(Channel::BYTES_OF_A_REQUEST, 328, "docs/memory.md says so");
    let mut ends = pair(None);
    let (bytes, to) = ([7; 8], ends[1].place(0));
    assert!(ends[0].post(What::Write, Data::Record(&bytes), to, true));
    until(&mut ends, |ends| ends[0].over == 1);
    for end in &ends {
        let state = lock(&end.channel.state);
        assert!(state.queue.capacity() == 0 && state.rare.is_none());
        let home = &end.home;
        assert_eq!((home.requests.taken(), home.answers.taken(), home.early.taken()), (0, 0, 0));
    }
}

/// Writes of all lengths, numbers, reads and changes in both directions at once, as a lot says.
fn all_of_it(weather: Option<Weather>, rounds: usize) {
    all_of_it_between(pair(weather), rounds);
}

fn all_of_it_between(mut ends: [End; 2], rounds: usize) {
    let mut lot = Lot::new(7);
    let long: Vec<u64> = (0..WORDS as u64 / 4).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let back: Vec<AtomicU64> = (0..2 * WORDS).map(|_| AtomicU64::new(0)).collect();
    let olds: Vec<AtomicU64> = (0..2 * rounds).map(|_| AtomicU64::new(u64::MAX)).collect();
    let mut added = [0u64; 2];
    for round in 0..rounds {
        for me in 0..2 {
            let other = 1 - me;
            let piece = |at: *const u64, words: usize| Piece { addr: at as u64, len: 8 * words as u32, lkey: 0 };
            // Each round writes its number behind whatever it has written before.
            let words = lot.one_of(&[1, 3, 31, 32]);
            let record: Vec<u8> = (0..words).flat_map(|_| (round as u64 + 1).to_ne_bytes()).collect();
            let to = ends[other].place(64);
            while !ends[me].post(What::WriteWithNumber(round as u32), Data::Record(&record), to, false) {
                ends.iter_mut().for_each(End::turn);
            }
            let n = lot.one_of(&[0, 1, 100, 5000, 9000]);
            let to = ends[other].place(WORDS / 2);
            let half = n / 2;
            let pieces = [piece(long.as_ptr(), half), piece(long[half..].as_ptr(), n - half)];
            ends[me].post(What::Write, Data::Pieces(&pieces), to, lot.once_in(3));
            let to = ends[other].place(0);
            let old = piece(olds[me * rounds + round].as_ptr().cast_const(), 1);
            ends[me].post(What::Change(Change::Add(round as u64)), Data::Pieces(&[old]), to, true);
            added[other] += round as u64;
            let n = lot.one_of(&[1, 30, 4000]);
            let to = ends[other].place(WORDS / 2);
            let piece = piece(back[me * WORDS..].as_ptr().cast(), n);
            ends[me].post(What::Read, Data::Pieces(&[piece]), to, true);
        }
        until(&mut ends, |ends| ends.iter().all(|end| end.last - end.over < 60));
    }
    let is_quiet = |end: &End| end.home.requests.taken() + end.home.answers.taken() == 0;
    until(&mut ends, |ends| ends.iter().all(|end| end.over == end.last && is_quiet(end)));
    for (k, end) in ends.iter().enumerate() {
        assert!(end.failed.is_none());
        assert_eq!(end.word(0), added[k], "each change was made once");
        assert_eq!(end.word(64), rounds as u64, "the last write was the last");
        let mut numbers = Vec::new();
        end.home.news.take(&mut |came| {
            if let crate::fabric::network::device::Arrived::Number(_, n) = came {
                numbers.push(n);
            }
        });
        assert_eq!(numbers, (0..rounds as u32).collect::<Vec<_>>(), "each number came once, in order");
        // What changes answered are the sums so far, in order.
        let olds: Vec<u64> = olds[k * rounds..(k + 1) * rounds].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        assert_eq!(olds, (0..rounds as u64).map(|n| n * n.saturating_sub(1) / 2).collect::<Vec<_>>());
        assert_eq!(end.word(WORDS / 2), long[0]);
        assert_eq!(back[k * WORDS].load(Ordering::Relaxed), long[0]);
        let home = &end.home;
        assert_eq!((home.requests.taken(), home.answers.taken(), home.early.taken()), (0, 0, 0));
        assert_eq!(home.counts.strange.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn all_requests_in_fine_weather() {
    all_of_it(None, 100);
}

#[test]
fn all_requests_in_bad_weather() {
    let weather = |loss, double, late| Some(Weather { loss, double, late, seed: 0 });
    all_of_it(weather(2.0, 2.0, 2.0), 60);
    all_of_it(weather(10.0, 5.0, 5.0), 30);
    all_of_it(weather(40.0, 0.0, 0.0), 5);
}

#[test]
fn all_requests_by_rings() {
    let weather = |loss, double, late| Some(Weather { loss, double, late, seed: 0 });
    all_of_it_between(pair_with([true; 2], None), 100);
    all_of_it_between(pair_with([true, false], None), 60);
    all_of_it_between(pair_with([true; 2], weather(5.0, 2.0, 2.0)), 40);
    all_of_it_between(pair_with([false, true], weather(40.0, 0.0, 0.0)), 5);
}

/// What a peer with a ring sends has room although all that others have is full of what strangers send, which nobody looks at; and of its own
/// there is never more under way than that. Without a ring most of it is lost.
#[test]
fn who_has_a_ring_has_room() {
    for has_ring in [true, false] {
        let mut ends = pair_with([false, has_ring], None);
        let (stranger, shared) = (udp(), ends[1].home.carrier.spot());
        let noise = [3u8; 8000];
        let part = libc::iovec { iov_base: noise.as_ptr().cast_mut().cast(), iov_len: noise.len() };
        for _ in 0..2 * ends[1].home.carrier.room() as usize / noise.len() {
            // SAFETY: a buffer of this function's.
            let _ = unsafe { stranger.send(&shared, &[part], &[1]) };
        }
        let to = ends[1].place(0);
        let record = 7u64.to_ne_bytes();
        (0..200).for_each(|_| assert!(ends[0].post(What::Write, Data::Record(&record), to, false)));
        // What is only late, since this process had no core, is sent again as well, and has come before then.
        let (mut again, mut doubled) = (0, 0);
        until(&mut ends, |ends| {
            again = ends[0].home.counts.again.load(Ordering::Relaxed);
            doubled = ends[1].home.counts.doubled.load(Ordering::Relaxed);
            ends[0].over == 200 && again == doubled || !has_ring && again > doubled
        });
        assert_eq!(again == doubled, has_ring, "{again} frames were sent again, {doubled} of them had come");
    }
}

/// An end, and a socket that says to it what it likes, as if it was the other end: number 9, token 11.
pub(super) fn with_a_liar() -> (End, Box<dyn Carrier>) {
    let (end, liar) = (End::new(udp()), udp());
    let name = Name { number: 9, token: 11 };
    end.channel.connect(&super::end(&liar.spot(), name, 4096, 0)).expect("connected");
    (end, liar)
}

fn say(liar: &dyn Carrier, to: &End, head: Head, token: u64, key: &[u8], behind: &[u8]) {
    let mut bytes = [&[0; HEAD], behind].concat();
    let covered = behind.len() as u16;
    Head { to: to.channel.name.number, covered, ..head }.seal(
        &mut bytes,
        token,
        &Key::of(key).derive("channels", &[]).checks(),
    );
    let part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a copy.
    unsafe { liar.send(&to.home.carrier.spot(), &[part], &[1]) }.expect("sent");
}

pub(super) fn bare() -> Head {
    Head { to: 0, first: 0, acked: 0, kept: 0, granted: 1 << 20, covered: 0, asks: false, frames: 0 }
}

fn write_of(to: Place, word: u64) -> Vec<u8> {
    let header = Header { len: 8, rkey: to.rkey, addr: to.addr, ..Header::bare(Kind::Write, 1) };
    [header.encode().as_slice(), &word.to_ne_bytes()].concat()
}

#[test]
fn strangers_are_counted_and_change_nothing() {
    let (mut end, liar) = with_a_liar();
    let (token, frame) = (end.channel.name.token, write_of(end.place(0), 5));
    let one = Head { first: 1, frames: 1, ..bare() };
    say(&*liar, &end, one, token, b"another job's", &frame);
    say(&*liar, &end, one, token.wrapping_add(1), b"the job's", &frame);
    let count = |end: &End| end.home.counts.strange.load(Ordering::Relaxed);
    until(std::slice::from_mut(&mut end), |ends| count(&ends[0]) == 2);
    assert_eq!(end.word(0), 0);
    // The same from whom it should be; and again, which is nothing new.
    for _ in 0..2 {
        say(&*liar, &end, one, token, b"the job's", &frame);
    }
    until(std::slice::from_mut(&mut end), |ends| ends[0].home.counts.doubled.load(Ordering::Relaxed) == 1);
    assert_eq!((end.word(0), count(&end)), (5, 2));
    assert!(end.failed.is_none());
}

#[test]
fn what_cannot_be_ends_the_channel() {
    let of = |kind, len| Header { len, rkey: 1, addr: 0x1000, ..Header::bare(kind, 1) }.encode().to_vec();
    let one = Head { first: 1, frames: 1, ..bare() };
    let lies = [
        (Head { acked: 7, ..bare() }, vec![]),
        (Head { first: 500, ..one }, of(Kind::Write, 0)),
        (Head { frames: 3, ..one }, of(Kind::Write, 0)),
        (one, of(Kind::Write, 8)),
        (one, of(Kind::Answer, 0)),
        (one, of(Kind::Over, 0)),
        (one, vec![0xff; HEADER]),
        (one, vec![1]),
    ];
    for (head, behind) in lies {
        let (mut end, liar) = with_a_liar();
        let (token, number) = (end.channel.name.token, end.channel.name.number);
        say(&*liar, &end, head, token, b"the job's", &behind);
        until(std::slice::from_mut(&mut end), |ends| ends[0].home.news.has_errors());
        assert_eq!(end.home.news.next_error(), Some(DeviceError::Pair(number)), "{head:?}");
        assert_eq!(end.failed.map(|c| c.status), Some(Status::Flushed));
    }
}

#[test]
fn what_no_key_allows_is_refused_and_told() {
    for kind in [What::Write, What::Read] {
        let mut ends = pair(None);
        let here = [7u64; 8];
        let piece = [Piece { addr: here.as_ptr() as u64, len: 64, lkey: 0 }];
        let wrong = Place { rkey: 77, ..ends[1].place(0) };
        ends[0].post(kind, Data::Pieces(&piece), wrong, true);
        until(&mut ends, |ends| ends.iter().all(|end| end.failed.is_some()));
        assert_eq!(ends[0].failed.map(|c| c.status), Some(Status::Refused));
        assert_eq!(ends[1].home.news.next_error(), Some(DeviceError::Refused(ends[1].channel.name.number)));
    }
}

#[test]
fn early_frames_have_a_bound() {
    let (mut end, liar) = with_a_liar();
    let (token, place) = (end.channel.name.token, end.place(0));
    let long = [
        Header { len: 30 << 10, rkey: place.rkey, addr: place.addr, ..Header::bare(Kind::Write, 1) }.encode().to_vec(),
        vec![0; 30 << 10],
    ]
    .concat();
    for seq in 2..50 {
        say(&*liar, &end, Head { first: seq, frames: 1, ..bare() }, token, b"the job's", &long);
        end.turn();
    }
    until(std::slice::from_mut(&mut end), |ends| ends[0].home.counts.dropped.load(Ordering::Relaxed) > 0);
    let taken = end.home.early.taken();
    assert!((512 << 10..=1 << 20).contains(&taken), "{taken}");
    end.channel.break_off().expect("broken off");
    assert_eq!(end.home.early.taken(), 0);
}

/// A read that comes early, and has its turn when there is no room for answers, is answered when there is.
#[test]
fn what_came_early_waits_for_room_for_its_answer() {
    let (mut end, liar) = with_a_liar();
    let (token, place) = (end.channel.name.token, end.place(0));
    let read = Header { len: 8, rkey: place.rkey, addr: place.addr, ..Header::bare(Kind::Read, 2) }.encode();
    let all = end.home.answers.room();
    assert!(end.home.answers.take(all));
    say(&*liar, &end, Head { first: 2, frames: 1, ..bare() }, token, b"the job's", &read);
    until(std::slice::from_mut(&mut end), |ends| lock(&ends[0].channel.state).inn.kept() == 0b10);
    say(&*liar, &end, Head { first: 1, frames: 1, ..bare() }, token, b"the job's", &write_of(place, 5));
    until(std::slice::from_mut(&mut end), |ends| lock(&ends[0].channel.state).inn.applied() == 1);
    end.home.answers.give_back(all);
    until(std::slice::from_mut(&mut end), |ends| lock(&ends[0].channel.state).inn.applied() == 2);
    assert_eq!((end.home.answers.taken(), end.home.early.taken()), (1, 0));
}

#[test]
fn who_is_silent_or_gone_is_given_up() {
    let (mut end, liar) = with_a_liar();
    let to = end.place(0);
    assert!(end.post(What::Write, Data::Record(&[1; 8]), to, true));
    let now = end.home.now();
    end.channel.tick(false, now + SILENCE_NS / 2);
    end.turn();
    assert!(end.failed.is_none());
    end.channel.tick(false, now + SILENCE_NS + 1_000_000_000);
    end.turn();
    assert_eq!(end.failed.map(|c| (c.status, c.code)), Some((Status::Silent, libc::ETIMEDOUT)));
    let (mut end, gone) = with_a_liar();
    drop((gone, liar));
    assert!(end.post(What::Write, Data::Record(&[1; 8]), to, true));
    until(std::slice::from_mut(&mut end), |ends| ends[0].failed.is_some());
    assert_eq!(end.failed.map(|c| (c.status, c.code)), Some((Status::Silent, libc::ECONNREFUSED)));
}

#[test]
fn no_more_requests_are_under_way_than_there_is_room_for() {
    let (mut end, _liar) = with_a_liar();
    let to = end.place(0);
    let mut posted = 0;
    while end.post(What::Write, Data::Record(&[1; 8]), to, false) {
        posted += 1;
        assert!(posted <= 10_000);
    }
    assert_eq!(end.home.requests.taken(), posted);
    end.channel.break_off().expect("broken off");
    assert_eq!(end.home.requests.taken(), 0);
    end.turn();
    assert_eq!(end.failed.map(|c| c.status), Some(Status::Flushed));
}

#[test]
fn what_there_is_room_for_is_divided_among_those_who_send() {
    let (end, _liar) = with_a_liar();
    let (whole, now) = (end.home.grant(), end.home.now());
    for _ in 0..10 {
        end.home.is_heard(&mut 0, now);
    }
    assert_eq!(end.home.grant(), whole / 10);
    let mut last = 0;
    (0..10).for_each(|_| end.home.is_heard(&mut last, now + 1_000_000_000));
    assert_eq!(end.home.grant(), whole, "the others are quiet by now, and one counts once");
}
