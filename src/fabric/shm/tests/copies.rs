//! Copies between the memory of two processes: by the kernel in every shape, and by way of the heap.

use libc::{c_void, iovec};

use super::super::cma::{CmaError, read_from, read_into, write_from, write_to};
use super::super::region::page_size;
use super::*;
use crate::base::bytes::{Bytes, Room};

/// [`read_into`] memory of an address that may be wrong.
unsafe fn read_run(pid: i32, at: *mut u8, remote: u64, len: usize) -> Result<(), CmaError> {
    // SAFETY: as the caller promises, or the kernel refuses it.
    read_into(pid, unsafe { Room::new(at, len) }, remote)
}

/// [`write_from`], likewise.
unsafe fn write_run(pid: i32, at: *const u8, remote: u64, len: usize) -> Result<(), CmaError> {
    // SAFETY: as above.
    write_from(pid, unsafe { Bytes::new(at, len) }, remote)
}

/// The private memory of a child, for the tests to copy from and to.
#[derive(Default)]
pub(super) struct Memory(Vec<u8>);

fn pattern(i: usize, seed: usize) -> u8 {
    ((i * 31 + (i >> 8) * 7 + seed) & 0xff) as u8
}

fn filled(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| pattern(i, seed)).collect()
}

impl Memory {
    pub(super) fn obey(&mut self, words: &[&str]) -> Option<String> {
        let number = |i: usize| words.get(i)?.parse::<usize>().ok();
        Some(match words[0] {
            "fill" => {
                self.0 = filled(number(1)?, number(2)?);
                (self.0.as_ptr() as usize).to_string()
            }
            "compare" => match self.0.iter().enumerate().position(|(i, b)| *b != pattern(i, number(2).unwrap())) {
                None => format!("alike {}", self.0.len()),
                Some(i) => format!("differs at {i}"),
            },
            // Four pages, the third of which is missing.
            "gap" => {
                let at = map(4 * page_size(), libc::PROT_READ | libc::PROT_WRITE, -1, None);
                // SAFETY: pages just mapped.
                unsafe {
                    std::ptr::write_bytes(at, 9, 4 * page_size());
                    assert_eq!(libc::munmap(at.add(2 * page_size()).cast(), page_size()), 0);
                }
                (at as usize).to_string()
            }
            "huge" => (Huge::new(number(1)? as u8).at as usize).to_string(),
            _ => return None,
        })
    }
}

fn map(len: usize, protection: i32, fd: i32, at: Option<*mut u8>) -> *mut u8 {
    let kind = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
    let fixed = if at.is_some() { libc::MAP_FIXED } else { 0 };
    let hint = at.unwrap_or(std::ptr::null_mut());
    // SAFETY: a new mapping, or one over a range that the test has reserved itself.
    let p = unsafe { libc::mmap(hint.cast(), len, protection, kind | fixed | libc::MAP_NORESERVE, fd, 0) };
    assert_ne!(p, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    p.cast()
}

/// More than two GiB of addresses with little memory: one file over and over, then some pages of its own.
struct Huge {
    at: *mut u8,
}

impl Huge {
    const FILE: usize = 16 << 20;
    const TIMES: usize = 132;
    const TAIL: usize = 12345;
    const LEN: usize = Huge::FILE * Huge::TIMES + Huge::TAIL;

    /// Filled with one byte, the tail with the next.
    fn new(byte: u8) -> Huge {
        use std::os::fd::AsRawFd;
        let region = Region::create(0, 1).unwrap();
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let at = map(Huge::LEN, libc::PROT_NONE, -1, None);
        for i in 0..Huge::TIMES {
            map(Huge::FILE, both, region.fd().as_raw_fd(), Some(at.wrapping_add(i * Huge::FILE)));
        }
        map(Huge::TAIL, both, -1, Some(at.wrapping_add(Huge::FILE * Huge::TIMES)));
        // SAFETY: all of it is mapped now.
        unsafe {
            std::ptr::write_bytes(at, byte, Huge::FILE);
            std::ptr::write_bytes(at.add(Huge::FILE * Huge::TIMES), byte + 1, Huge::TAIL);
        }
        Huge { at }
    }
}

/// Cuts `len` bytes at `base` into runs of 1 to `most` bytes, in a fixed but irregular way; runs of no bytes in between.
fn cut(base: usize, len: usize, most: usize, mut seed: u64) -> Vec<iovec> {
    let (mut list, mut at) = (Vec::new(), 0);
    while at < len {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let n = if seed >> 60 == 0 { 0 } else { (1 + (seed >> 33) as usize % most).min(len - at) };
        list.push(iovec { iov_base: (base + at) as *mut c_void, iov_len: n });
        at += n;
    }
    list
}

/// A child whose memory this process can reach; `None` where the system does not allow that, which the contact has found out.
fn reachable() -> Option<(Attach, Child)> {
    let me = start(Region::create(0, 4).unwrap(), true);
    me.open(&Key::of(&SECRET)).unwrap();
    let other = Child::rank(1);
    let cma = meet(&me, 1, &other.card).unwrap().cma();
    let mut b = [0u8; 8];
    let source = 7u64;
    // SAFETY: both are this process's own. That the system has the call at all is seen on ourselves.
    let has = unsafe { read_run(std::process::id() as i32, b.as_mut_ptr(), (&raw const source) as u64, 8) };
    assert!(cma || has.is_err() || !same_user_may_trace(other.pid()), "the probe failed where copies work");
    cma.then_some((me, other))
}

/// Says a plain call without our code that copies work?
fn same_user_may_trace(pid: i32) -> bool {
    std::fs::File::open(format!("/proc/{pid}/mem")).is_ok()
}

fn address(answer: String) -> usize {
    answer.parse().unwrap()
}

#[test]
fn every_shape_arrives_whole() {
    let Some((_me, mut other)) = reachable() else { return };
    let pid = other.pid();
    let len = 300_000;
    // (longest run here, longest run there): alike, finer on one side, many more runs than one call takes.
    for (round, (here, there)) in
        [(len, len), (len, 100), (100, len), (64, 64), (3, 5000), (9000, 7)].into_iter().enumerate()
    {
        let remote = address(other.ask(&format!("fill {len} {round}")));
        let mut local = vec![0u8; len];
        let (l, r) = (cut(local.as_mut_ptr() as usize, len, here, 1), cut(remote, len, there, 2));
        // SAFETY: lists of these two buffers, which nobody uses meanwhile.
        unsafe { read_from(pid, &l, &r) }.unwrap();
        assert!(local == filled(len, round), "read {here} {there}");
        local = filled(len, round + 100);
        let l = cut(local.as_mut_ptr() as usize, len, here, 3);
        // SAFETY: as above.
        unsafe { write_to(pid, &l, &r) }.unwrap();
        assert_eq!(
            other.ask(&format!("compare {len} {}", round + 100)),
            format!("alike {len}"),
            "write {here} {there}"
        );
    }
    // The shorter list counts, and none at all is fine.
    let remote = address(other.ask("fill 1000 1"));
    let mut local = vec![0u8; 2000];
    let l = cut(local.as_mut_ptr() as usize, 2000, 70, 4);
    // SAFETY: as above.
    unsafe {
        read_from(pid, &l, &cut(remote, 1000, 90, 5)).unwrap();
        assert!(local[..1000] == filled(1000, 1) && local[1000..].iter().all(|b| *b == 0));
        read_from(pid, &[], &cut(remote, 1000, 90, 5)).unwrap();
        read_run(pid, local.as_mut_ptr(), remote as u64, 0).unwrap();
    }
}

#[test]
fn strided_both_ways() {
    let Some((_me, mut other)) = reachable() else { return };
    let remote = address(other.ask("fill 65536 3"));
    // Every other 64 bytes there, packed to runs of 48 with gaps of 16 here.
    let r: Vec<iovec> = (0..512).map(|i| iovec { iov_base: (remote + i * 128) as *mut c_void, iov_len: 64 }).collect();
    let mut local = vec![0xEEu8; 65536];
    let base = local.as_mut_ptr() as usize;
    let l: Vec<iovec> = (0..1024).map(|i| iovec { iov_base: (base + i * 64) as *mut c_void, iov_len: 48 }).collect();
    // SAFETY: lists within the two buffers.
    unsafe { read_from(other.pid(), &l, &r) }.unwrap();
    let source = filled(65536, 3);
    let stream: Vec<u8> = (0..512).flat_map(|i| source[i * 128..i * 128 + 64].to_vec()).collect();
    for (i, byte) in local.iter().enumerate() {
        let (run, within) = (i / 64, i % 64);
        let expected = if within < 48 { stream.get(run * 48 + within).copied().unwrap_or(0xEE) } else { 0xEE };
        assert_eq!(*byte, expected, "byte {i}");
    }
}

#[test]
fn more_than_two_gib_in_one_piece() {
    let Some((_me, mut other)) = reachable() else { return };
    let remote = address(other.ask("huge 10")) as u64;
    let here = Huge::new(20);
    let last = |p: *const u8| {
        // SAFETY: the last bytes of the file's part and of the tail.
        unsafe { (*p.add(Huge::FILE - 1), *p.add(Huge::FILE * Huge::TIMES), *p.add(Huge::LEN - 1)) }
    };
    // SAFETY: both are mapped over this length, and nobody else uses them.
    unsafe { read_run(other.pid(), here.at, remote, Huge::LEN) }.unwrap();
    assert_eq!(last(here.at), (10, 11, 11));
    let whole = iovec { iov_base: here.at.cast(), iov_len: Huge::LEN };
    let halves = [0, Huge::LEN / 2].map(|at| iovec {
        iov_base: (remote as usize + at) as *mut c_void,
        iov_len: if at == 0 { Huge::LEN / 2 } else { Huge::LEN - Huge::LEN / 2 },
    });
    // SAFETY: as above.
    unsafe {
        *here.at.add(Huge::FILE - 1) = 77;
        *here.at.add(Huge::LEN - 1) = 78;
        write_to(other.pid(), &[whole], &halves).unwrap();
        *here.at.add(Huge::FILE - 1) = 0;
        *here.at.add(Huge::LEN - 1) = 0;
        read_run(other.pid(), here.at, remote, Huge::LEN).unwrap();
    }
    assert_eq!(last(here.at), (77, 11, 78));
}

#[test]
fn bad_addresses_say_how_far_it_went() {
    let Some((_me, mut other)) = reachable() else { return };
    let (pid, page) = (other.pid(), page_size());
    let remote = address(other.ask("gap"));
    let mut local = vec![0u8; 4 * page];
    let at = local.as_mut_ptr();
    // SAFETY: what is not there is what is tested; the rest are buffers of ours.
    unsafe {
        let e = read_run(pid, at, remote as u64, 4 * page).unwrap_err();
        assert_eq!(e, CmaError::Fault { done: 2 * page });
        assert!(local[..2 * page].iter().all(|b| *b == 9) && local[2 * page..].iter().all(|b| *b == 0));
        assert_eq!(write_run(pid, at, remote as u64 + 2 * page as u64, 8), Err(CmaError::Fault { done: 0 }));
        assert_eq!(read_run(pid, at, 8, 8), Err(CmaError::Fault { done: 0 }));
        assert_eq!(
            read_run(pid, std::ptr::without_provenance_mut(8), remote as u64, 8),
            Err(CmaError::Fault { done: 0 })
        );
        let l = cut(at as usize, 4 * page, 50, 6);
        let r = cut(remote, 4 * page, 4 * page, 7);
        assert_eq!(read_from(pid, &l, &r), Err(CmaError::Fault { done: 2 * page }));
    }
}

#[test]
fn read_only_memory_and_mapped_files_can_be_sent() {
    use std::os::fd::AsRawFd;
    let Some((_me, mut other)) = reachable() else { return };
    let pid = other.pid();
    let len = 3 * page_size() + 5;
    let path = std::env::temp_dir().join(format!("fmpl-test-file-{}", std::process::id()));
    std::fs::write(&path, filled(len, 8)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mapped = map(len, libc::PROT_READ, file.as_raw_fd(), None);
    let remote = address(other.ask(&format!("fill {len} 1"))) as u64;
    // SAFETY: len bytes of a read-only file mapping here, the child's buffer there.
    unsafe { write_run(pid, mapped, remote, len) }.unwrap();
    assert_eq!(other.ask("compare 0 8"), format!("alike {len}"));
    // A constant of the program.
    static TEXT: [u8; 64] = [42; 64];
    // SAFETY: 64 bytes on both sides.
    unsafe { write_run(pid, TEXT.as_ptr(), remote, 64) }.unwrap();
    assert_eq!(other.ask("compare 0 8"), "differs at 0");
    // SAFETY: nothing is to be written into the read-only mapping, and that is what is tested.
    assert_eq!(unsafe { read_run(pid, mapped, remote, len) }, Err(CmaError::Fault { done: 0 }));
    // SAFETY: mapped above, not used any more.
    unsafe { libc::munmap(mapped.cast(), len) };
}

#[test]
fn a_process_that_is_gone_is_gone() {
    let Some((_me, mut other)) = reachable() else { return };
    let remote = address(other.ask("fill 100 1")) as u64;
    let mut local = [0u8; 100];
    other.signal(libc::SIGKILL);
    wait_until("the child is a zombie", || {
        std::fs::read_to_string(format!("/proc/{}/stat", other.pid())).unwrap().contains(") Z ")
    });
    // SAFETY: a buffer of ours; the other side has none any more.
    assert_eq!(unsafe { read_run(other.pid(), local.as_mut_ptr(), remote, 100) }, Err(CmaError::Gone));
}

#[test]
fn the_heap_is_shared() {
    let me = start(Region::create(0, 4).unwrap(), true);
    me.open(&Key::of(&SECRET)).unwrap();
    let mut other = Child::rank(1);
    let peer = meet(&me, 1, &other.card).unwrap();
    assert!(peer.region.heap().is_none(), "before the first alloc");
    let at = address(other.ask("alloc 1000000")) as u64;
    let window = peer.region.heap().expect("published by the first alloc");
    let here = window.translate(at, 1_000_000).unwrap();
    // SAFETY: a block of that length, which the child has filled and does not touch now.
    unsafe {
        assert!(std::slice::from_raw_parts(here, 1_000_000).iter().all(|b| *b == MARK));
        here.add(999_999).write(3);
    }
    assert_eq!(other.ask("peek 999999"), "3");
    let base = peer.region.header().heap_base.load(crate::base::atomics::Ordering::Relaxed);
    let len = peer.region.header().heap_len.load(crate::base::atomics::Ordering::Relaxed);
    for (addr, n) in [(base - 1, 1), (base + len, 1), (base + len - 1, 2), (base, usize::MAX), (0, 1), (u64::MAX, 2)] {
        assert_eq!(window.translate(addr, n), None, "{addr:#x} {n}");
    }
    assert!(window.translate(base + len - 1, 1).is_some());
}

#[test]
fn where_addresses_are_few_the_heap_is_smaller() {
    let me = start(Region::create(0, 4).unwrap(), true);
    me.open(&Key::of(&SECRET)).unwrap();
    let mut other = Child::rank(1);
    let peer = meet(&me, 1, &other.card).unwrap();
    assert_eq!(other.ask("limit-address-space 8000000000"), "ok");
    let at = address(other.ask("alloc 5000")) as u64;
    assert!(peer.region.header().heap_len.load(crate::base::atomics::Ordering::Acquire) < 8_000_000_000);
    assert!(peer.region.heap().unwrap().translate(at, 5000).is_some());
    assert!(other.ask("alloc 7000000000").starts_with("error Memory rank 1: alloc of 7000000000 bytes"));
}
