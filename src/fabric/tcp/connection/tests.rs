//! A connection whose other end is a socket of the test's, which says what it likes.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::greeting::Greeting;
use super::super::network::Tcp;
use super::out::{IDLE_MOST, idle_before};
use crate::base::config::Congestion;
use crate::fabric::network::device::{
    Access, Completion, Data, Device, DeviceError, Pair, Place, Request, Status, What,
};
use crate::fabric::served::frame::{HEADER, Header, Kind, Name};
use crate::fabric::served::port::{Port, Reached};

/// A process, an end of a connection there, and the other end.
fn connected() -> (Tcp, Arc<dyn Pair>, TcpStream) {
    connected_to(device())
}

fn device() -> Tcp {
    Tcp::open(Port { network: "tcp", name: "lo".into(), ip: IpAddr::V4(Ipv4Addr::LOCALHOST) }, &Congestion::Auto)
        .expect("sockets")
}

fn connected_to(device: Tcp) -> (Tcp, Arc<dyn Pair>, TcpStream) {
    let (pair, stream) = one_more(&device);
    (device, pair, stream)
}

fn one_more(device: &Tcp) -> (Arc<dyn Pair>, TcpStream) {
    let pair = device.pair(256).expect("a connection");
    let (reached, to) = Reached::of_end(&pair.end());
    // Its address comes first, so it is the one that dials.
    let from = Name { number: 7, token: 9 };
    let other = Reached { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), datagrams: 0, connections: 0 };
    pair.connect(&other.end(from)).expect("it waits for a call");
    let mut stream = TcpStream::connect(reached.at(reached.connections)).expect("a socket");
    stream.write_all(&Greeting { to, from }.encode()).expect("a greeting");
    (pair, stream)
}

/// Looks until something is there.
fn until<T>(device: &Tcp, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        device.collect(&mut |_| ()).expect("it works");
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "nothing comes");
        std::thread::yield_now();
    }
}

fn completion(device: &Tcp, pair: &dyn Pair) -> Completion {
    until(device, || {
        let mut found = None;
        pair.poll(&mut |c| found = Some(c)).expect("it works");
        found
    })
}

/// Posts a write that asks to be told, once there is a connection.
fn write(device: &Tcp, pair: &dyn Pair, id: u64) {
    let to = Place { addr: 0x1000, rkey: 5 };
    let request = Request { id, what: What::Write, data: Data::Record(&[3; 8]), to, signaled: true, later: false };
    // SAFETY: a record is copied.
    until(device, || unsafe { pair.post(&request) }.expect("it takes requests").then_some(()));
}

#[test]
fn long_writes_are_not_put_less_than_a_line_behind_where_they_lie() {
    for front in [HEADER, 2 * HEADER] {
        for at in 0..8192 {
            let idle = idle_before(at, front);
            let behind = ((front + idle * HEADER) as u64).wrapping_sub(at) % 4096;
            assert!(idle <= IDLE_MOST && !(1..64).contains(&behind), "{at}, {front}: {idle}");
            let before = (front as u64).wrapping_sub(at) % 4096;
            assert!((1..64).contains(&before) || idle == 0, "{at}, {front}: none is needed");
        }
    }
}

#[test]
fn what_is_over_is_told() {
    let (device, pair, mut stream) = connected();
    write(&device, &*pair, 1);
    let mut bytes = [0; HEADER + 8];
    stream.read_exact(&mut bytes).expect("a frame");
    let header = Header::decode(bytes.first_chunk().expect("a header")).expect("a header");
    assert_eq!((header.kind, header.asks, header.len, header.id), (Kind::Write, true, 8, 1));
    stream.write_all(&Header::bare(Kind::Over, 1).encode()).expect("an answer");
    let Completion { id, status, .. } = completion(&device, &*pair);
    assert_eq!((id, status), (1, Status::Done));
}

/// Frames of two connections, of which now one and now the other has a piece: short ones, and ones that are received to where they belong.
#[test]
fn pieces_of_frames_come_together_whatever_comes_between() {
    const LENGTHS: [usize; 8] = [1, 8, 300, 1024, 1025, 9000, 40, 20_000];
    let bytes: usize = LENGTHS.iter().sum();
    for piece in [1, 7, 100, 1037, 5000, 12_000] {
        let (device, pair, stream) = connected();
        let other = one_more(&device);
        let mut ends = [(pair, stream, vec![0u8; bytes], 5u8), (other.0, other.1, vec![0u8; bytes], 90u8)].map(|end| {
            let (pair, stream, mut memory, seed) = end;
            // SAFETY: the vector's memory, which stays where it is until after the connection.
            let region = unsafe { device.domain().register(memory.as_mut_ptr(), bytes, Access::REMOTE_WRITE) };
            let region = region.expect("registered");
            let (mut said, mut at) = (Vec::new(), 0);
            for (id, len) in (1..).zip(LENGTHS) {
                let addr = region.addr() + at as u64;
                let header = Header { len: len as u32, rkey: region.rkey(), addr, ..Header::bare(Kind::Write, id) };
                said.extend(header.encode());
                said.extend((at..at + len).map(|n| (n as u8).wrapping_mul(seed)));
                at += len;
            }
            (pair, stream, memory, seed, region, said)
        });
        let longest = ends[0].5.len();
        for at in (0..longest).step_by(piece) {
            for (_, stream, .., said) in &mut ends {
                stream.write_all(&said[at..(at + piece).min(longest)]).expect("a piece");
            }
            device.collect(&mut |_| ()).expect("it works");
        }
        for (_, _, memory, seed, ..) in &ends {
            let whole = || memory.iter().enumerate().all(|(n, byte)| *byte == (n as u8).wrapping_mul(*seed));
            until(&device, || whole().then_some(()));
        }
        assert!(device.next_error().is_none());
    }
}

#[test]
fn what_was_never_posted_is_not_over() {
    for id in [2, u64::MAX] {
        let (device, pair, mut stream) = connected();
        write(&device, &*pair, 1);
        stream.write_all(&Header::bare(Kind::Over, id).encode()).expect("a lie");
        let number = pair.number();
        let error = until(&device, || device.next_error());
        assert!(matches!(error, DeviceError::Pair(n) if n == number), "{error:?}");
        let Completion { id, status, .. } = completion(&device, &*pair);
        assert_eq!((id, status), (1, Status::Flushed));
    }
}

#[test]
fn what_is_no_frame_and_what_no_key_allows_ends_the_connection() {
    let garbage = [0xff; HEADER];
    let answer = Header { len: 8, ..Header::bare(Kind::Answer, 1) }.encode();
    let write = Header { len: 8, rkey: 77, addr: 0x1000, ..Header::bare(Kind::Write, 1) }.encode();
    let read = Header { len: 8, rkey: 77, addr: 0x1000, ..Header::bare(Kind::Read, 1) }.encode();
    let append = Header { rkey: 77, addr: 0x1000, ..Header::bare(Kind::Append, 1) }.encode();
    let long_append = Header { len: u32::MAX, rkey: 77, addr: 0x1000, ..Header::bare(Kind::Append, 1) }.encode();
    let all = [(garbage, false), (answer, false), (write, true), (read, true), (append, true), (long_append, false)];
    for (what, is_refused) in all {
        let (device, pair, mut stream) = connected();
        let number = pair.number();
        stream.write_all(&[what.as_slice(), &[0; 8]].concat()).expect("a lie");
        let error = until(&device, || device.next_error());
        let expected = match error {
            DeviceError::Refused(n) => is_refused && n == number,
            DeviceError::Pair(n) => !is_refused && n == number,
            _ => false,
        };
        assert!(expected, "{error:?}");
    }
}

/// A number is taken and its place filled, unless somebody has taken it; and nothing is written beyond what the key allows.
#[test]
fn what_is_appended_has_the_number_that_it_was_for() {
    let (device, pair, mut stream) = connected();
    let memory: [AtomicU64; 8] = Default::default();
    let access = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
    // SAFETY: lives longer than the connection.
    let region = unsafe { device.domain().register(memory.as_ptr().cast_mut().cast(), size_of_val(&memory), access) };
    let region = region.expect("registered");
    let of = |kind, id| Header { rkey: region.rkey(), addr: region.addr(), ..Header::bare(kind, id) };
    let append = |id, expected: u64, at| {
        let header = Header { len: 8, number: at, ..of(Kind::Append, id) };
        [&header.encode()[..], &expected.to_le_bytes(), &[id as u8; 8]].concat()
    };
    // What was there leaves with the answer to the read behind it.
    for (id, expected, old) in [(1, 0, 0), (3, 0, 1), (5, 1, 1)] {
        let read = Header { len: 16, ..of(Kind::Read, id + 1) };
        stream.write_all(&[append(id, expected, id as u32 * 8), read.encode().to_vec()].concat()).expect("a request");
        let mut answers = [0; HEADER + 8 + HEADER + 16];
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
        let mut came = 0;
        until(&device, || {
            came += stream.read(&mut answers[came..]).unwrap_or(0);
            (came == answers.len()).then_some(())
        });
        let header = Header::decode(answers.first_chunk().expect("a header")).expect("a header");
        assert_eq!((header.kind, header.id, &answers[HEADER..][..8]), (Kind::Answer, id, &u64::to_ne_bytes(old)[..]));
    }
    let word = |k: usize| memory[k].load(Ordering::Relaxed);
    assert_eq!([0, 1, 3, 5].map(word), [2, u64::from_ne_bytes([1; 8]), 0, u64::from_ne_bytes([5; 8])]);
    stream.write_all(&append(7, 2, 64)).expect("a request");
    let (number, error) = (pair.number(), until(&device, || device.next_error()));
    assert!(matches!(error, DeviceError::Refused(n) if n == number), "{error:?}");
}

#[test]
fn memory_that_the_program_has_unmapped_is_refused() {
    let bytes = 1 << 16;
    for (kind, len) in
        [(Kind::Write, 8), (Kind::Write, 5000), (Kind::Write, bytes), (Kind::Read, 8), (Kind::Read, 5000)]
    {
        let (device, pair, mut stream) = connected();
        // SAFETY: memory of the test's own; the registration is told that it may go.
        let region = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            let access = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::MAY_GO;
            let region = device.domain().register(at.cast(), bytes as usize, access).expect("registered");
            // As good as unmapped; but nobody else gets it.
            libc::mprotect(at, bytes as usize, libc::PROT_NONE);
            region
        };
        let header = Header { len, rkey: region.rkey(), addr: region.addr(), ..Header::bare(kind, 1) };
        stream.write_all(&header.encode()).expect("a request");
        if kind == Kind::Write {
            let _ = stream.write_all(&vec![1; len as usize]);
        }
        let number = pair.number();
        let error = until(&device, || device.next_error());
        let is_told = matches!(error, DeviceError::Refused(n) | DeviceError::Pair(n) if n == number);
        assert!(is_told, "{kind:?} of {len}: {error:?}");
    }
}

#[test]
fn who_asks_and_takes_nothing_is_given_up() {
    let (device, pair, mut stream) = connected();
    let memory = vec![0u8; 1 << 18];
    // SAFETY: lives longer.
    let region = unsafe { device.domain().register(memory.as_ptr().cast_mut(), memory.len(), Access::REMOTE_READ) }
        .expect("registered");
    let header = Header { rkey: region.rkey(), addr: region.addr(), len: 1 << 18, ..Header::bare(Kind::Read, 1) };
    let (number, mut error) = (pair.number(), None);
    for _ in 0..1 << 10 {
        // Until it has hung up, or takes nothing any more.
        if stream.write_all(&header.encode()).is_err() || error.is_some() {
            break;
        }
        device.collect(&mut |_| ()).expect("it works");
        error = device.next_error();
    }
    let error = error.unwrap_or_else(|| until(&device, || device.next_error()));
    assert!(matches!(error, DeviceError::Pair(n) if n == number), "{error:?}");
}

/// As when there are no descriptors for a moment.
#[test]
fn who_calls_in_vain_is_heard_later_and_keeps_nobody_awake() {
    let device = device();
    // From here on this thread is the one that sleeps there.
    device.sleep(Some(Duration::ZERO));
    device.be_deaf();
    let (device, pair, _stream) = connected_to(device);
    let to = Place { addr: 0x1000, rkey: 5 };
    let request = Request { id: 1, what: What::Write, data: Data::Record(&[3; 8]), to, signaled: true, later: false };
    device.collect(&mut |_| ()).expect("it works");
    // SAFETY: a record is copied.
    assert!(!unsafe { pair.post(&request) }.expect("it takes requests"), "nobody has taken the call");
    // The call is there, and does not end the sleep before calls are tried again.
    let since = Instant::now();
    device.sleep(Some(Duration::from_millis(20)));
    assert!(since.elapsed() >= Duration::from_millis(20));
    write(&device, &*pair, 1);
}
