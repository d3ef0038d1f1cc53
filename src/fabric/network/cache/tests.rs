//! The table beside a map that knows nothing of orders and holders, and the cache beside memory that comes and goes.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use proptest::prelude::*;

use super::super::device::{Access, Atomics, Registrar, Registration};
use super::super::region::Domain;
use super::table::{Bounds, Table};
use super::{Cache, pages};
use crate::fabric::shm::region::page_size;

/// A value that counts how many of its kind there are.
#[derive(Debug)]
struct Counted(u64, Arc<AtomicUsize>);

impl Counted {
    fn new(n: u64, all: &Arc<AtomicUsize>) -> Counted {
        all.fetch_add(1, Ordering::Relaxed);
        Counted(n, all.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

fn table<T: Send + Sync>(ranges: usize, bytes: u64) -> &'static Table<T> {
    Box::leak(Box::new(Table::new(Bounds { ranges, bytes }).expect("a table")))
}

/// What the table is to be: ranges, without any order, of one kind and the other.
#[derive(Default)]
struct Naive([HashMap<(u64, u64), u64>; 2]);

impl Naive {
    fn covers(&self, start: u64, end: u64, writable: bool) -> bool {
        self.0[writable as usize..].iter().any(|kind| kind.keys().any(|(s, e)| *s <= start && *e >= end))
    }
    fn value(&self, value: u64, start: u64, end: u64, writable: bool) -> bool {
        let covers = |((s, e), v): (&(u64, u64), &u64)| *v == value && *s <= start && *e >= end;
        self.0[writable as usize..].iter().any(|kind| kind.iter().any(covers))
    }
    fn keep(&mut self, start: u64, end: u64, writable: bool, value: u64) {
        for kind in &mut self.0[..=writable as usize] {
            kind.retain(|(s, e), _| *s < start || *e > end);
        }
        self.0[writable as usize].insert((start, end), value);
    }
    fn forget(&mut self, start: u64, end: u64) -> usize {
        let before = self.len();
        self.0.iter_mut().for_each(|kind| kind.retain(|(s, e), _| *s >= end || *e <= start));
        before - self.len()
    }
    fn len(&self) -> usize {
        self.0.iter().map(HashMap::len).sum()
    }
    fn bytes(&self) -> u64 {
        self.0.iter().flat_map(|kind| kind.keys()).map(|(s, e)| e - s).sum()
    }
}

proptest! {
    /// Whatever comes, goes and is looked for: the table finds what covers a range, if there is something, and nothing else.
    #[test]
    fn finds_what_a_map_would(
        steps in prop::collection::vec((0u8..8, 0u64..500, 1u64..60, any::<bool>()), 1..300),
    ) {
        let (all, mut naive) = (Arc::new(AtomicUsize::new(0)), Naive::default());
        let table = table::<Counted>(4096, 1 << 30);
        let mut held = Vec::new();
        for (n, (what, start, len, writable)) in steps.into_iter().enumerate() {
            let (start, end) = (start * 4096, (start + len) * 4096);
            match what {
                0..3 => {
                    let was_there = naive.covers(start, end, writable);
                    let kept = table.keep(start, end, writable, Counted::new(n as u64, &all));
                    prop_assert_eq!(kept.0, n as u64);
                    if !was_there {
                        naive.keep(start, end, writable, n as u64);
                    }
                    if n % 3 == 0 {
                        held.push((kept, n as u64));
                    }
                }
                3 => prop_assert_eq!(table.forget(start, end), naive.forget(start, end)),
                4 => {
                    prop_assert_eq!(table.forget_later(|| Some((start, end))), naive.forget(start, end));
                    if n % 2 == 0 {
                        table.end();
                    }
                }
                5 => drop((!held.is_empty()).then(|| held.swap_remove(n % held.len()))),
                _ => {}
            }
            let found = table.find(start, end, writable);
            prop_assert_eq!(found.is_some(), naive.covers(start, end, writable));
            if let Some(found) = found {
                prop_assert!(naive.value(found.0, start, end, writable));
            }
            prop_assert!(held.iter().all(|(kept, n)| kept.0 == *n), "what is held stays");
            let counts = table.counts();
            prop_assert_eq!((counts.kept, counts.bytes), (naive.len() as u64, naive.bytes()));
        }
        table.end();
        // What is left is kept or held, or both.
        prop_assert!(all.load(Ordering::Relaxed) <= naive.len() + held.len());
        prop_assert!(table.clear() || !held.is_empty());
        prop_assert_eq!(all.load(Ordering::Relaxed), held.len());
        held.clear();
        prop_assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    /// However much comes, of whatever length: no more is kept than may be, and what came last is there.
    #[test]
    fn bounds_hold(lengths in prop::collection::vec((1u64..100, any::<bool>()), 1..400), ranges in 1usize..40, pages in 1u64..500) {
        let (table, all) = (table::<Counted>(ranges, pages * 4096), Arc::new(AtomicUsize::new(0)));
        let mut at = 1 << 30;
        for (len, writable) in lengths {
            let (start, end) = (at, at + len * 4096);
            drop(table.keep(start, end, writable, Counted::new(at, &all)));
            at = end;
            let counts = table.counts();
            prop_assert!(counts.kept <= ranges as u64 && counts.bytes <= pages * 4096, "{counts:?}");
            prop_assert_eq!(all.load(Ordering::Relaxed) as u64, counts.kept);
            prop_assert_eq!(table.find(start, end, writable).map(|kept| kept.0), (len <= pages).then_some(start));
        }
    }
}

/// Those that are used again and again stay while others come by once. And memory is there for as many as there are.
#[test]
fn the_useful_stay_and_memory_comes_back() {
    const N: u64 = 8192;
    let table = table::<[u64; 6]>(N as usize, u64::MAX);
    let range = |n: u64| ((n * 3) << 16, (n * 3 + 2) << 16);
    let get = |n: u64| {
        let (start, end) = range(n);
        let found = table.find(start, end, false);
        let there = found.is_some();
        drop(found.unwrap_or_else(|| table.keep(start, end, false, [n; 6])));
        there
    };
    let empty = table.memory();
    (0..N / 2).for_each(|n| assert!(!get(n)));
    let full = table.memory();
    assert!((full - empty) / (N as usize / 2) < 128, "{full} bytes for {}", N / 2);
    for round in 0..20 {
        let here = (0..N / 2).filter(|n| get(*n)).count() as u64;
        assert!(here >= N / 2 - N / 100, "round {round}: {here} of {} that are used in each", N / 2);
        // As many as there is room for come by once.
        (0..N).for_each(|n| assert!(!get(N + round * N + n)));
    }
    assert_eq!(table.counts().kept, N);
    // All but a few are unmapped.
    let (kept, _) = (table.forget(range(40).0, u64::MAX), table.end());
    assert!(kept > 0 && table.counts().kept <= 40, "{:?}", table.counts());
    assert!(table.memory() < empty + full / 2, "{} bytes after that, {full} before", table.memory());
    assert!(table.clear());
    // Of each slot that was ever used 16 bytes stay, and of each kind of page one.
    let stays = empty + 16 * (N as usize * 17 / 16 + 64) + 2 * page_size();
    assert!(table.memory() <= stays, "{} bytes when all have gone", table.memory());
}

/// What all hold is not given up; it is not kept then what comes, and still there for who asked for it.
#[test]
fn what_is_in_use_stays() {
    let table = table::<u64>(4, 4 << 12);
    let held: Vec<_> = (0..4).map(|n| table.keep(n << 13, (n << 13) + 4096, true, n)).collect();
    let more = table.keep(9 << 13, (9 << 13) + 4096, true, 9);
    assert_eq!((*more, table.find(9 << 13, (9 << 13) + 1, true).is_none(), table.shed(1)), (9, true, 0));
    assert_eq!(held.iter().map(|kept| **kept).collect::<Vec<_>>(), [0, 1, 2, 3]);
    drop(held);
    assert_eq!((table.shed(4096), table.counts().kept, table.shed(u64::MAX), table.counts().kept), (1, 3, 3, 0));
    assert_eq!((table.shed(1), table.counts().evicted), (0, 4));
}

/// Ranges come and go under threads that look for them: whoever finds one has what was kept for it, and it ends once, when nobody holds it.
#[test]
fn looked_for_while_they_come_and_go() {
    const RANGES: u64 = 512;
    let table = table::<(u64, AtomicBool)>(RANGES as usize, u64::MAX);
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let rounds = if std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1") { 2000 } else { 60 };
    std::thread::scope(|s| {
        for seed in 1..3u64 {
            let (over, looks) = (&over, &looks);
            s.spawn(move || {
                let mut lot = seed;
                while !over.load(Ordering::Relaxed) {
                    lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let n = (lot >> 33) % RANGES;
                    if let Some(kept) = table.find(n << 14, (n << 14) + 8192, lot & 1 == 0) {
                        assert_eq!(kept.0, n);
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 0..rounds {
            for n in 0..RANGES {
                drop(table.keep(
                    n << 14,
                    (n << 14) + 8192 + 4096 * (round & 1),
                    n & 1 == 0,
                    (n, AtomicBool::new(false)),
                ));
            }
            for n in (0..RANGES).step_by(7) {
                assert_eq!(table.forget(n << 14, (n + 3) << 14), 3.min(RANGES - n) as usize);
                assert!(table.find(n << 14, (n << 14) + 1, false).is_none(), "it was forgotten before");
            }
            if round % 3 == 0 {
                table.forget(0, u64::MAX);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(looks.load(Ordering::Relaxed) > 0 && table.clear());
}

/// A device that says by its keys what was in the memory when it was registered.
#[derive(Debug, Default)]
struct Stamps {
    now: AtomicUsize,
    limit: AtomicUsize,
}

#[derive(Debug)]
struct Stamp(u32, usize, Arc<Stamps>);

impl Registrar for Stamps {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, _: Access) -> io::Result<Box<dyn Registration>> {
        let limit = self.limit.load(Ordering::Relaxed);
        if self.now.fetch_add(len, Ordering::Relaxed) + len > limit && limit != 0 {
            self.now.fetch_sub(len, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        for page in (0..len).step_by(page_size()) {
            // SAFETY: mapped memory, as the caller promises; writing makes the page be there, as a device would.
            unsafe { at.add(page + 8).write_volatile(1) };
        }
        // SAFETY: as above.
        Ok(Box::new(Stamp(unsafe { at.cast::<u32>().read_volatile() }, len, self)))
    }
    fn name(&self) -> String {
        "a device of a test".into()
    }
}

impl Registration for Stamp {
    fn lkey(&self) -> u32 {
        self.0
    }
    fn rkey(&self) -> u32 {
        self.0
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        self.2.now.fetch_sub(self.1, Ordering::Relaxed);
    }
}

fn cache(ranges: usize, bytes: u64, stamps: &Arc<Stamps>) -> (Cache, Arc<Domain>) {
    let domain = Domain::new(stamps.clone(), Atomics::None);
    let cache = Cache::new(&domain, Some(Bounds { ranges, bytes }), Box::new(|| ())).expect("a cache");
    (cache, domain)
}

fn map(at: *mut u8, len: usize, flags: i32) -> *mut u8 {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags);
    // SAFETY: a new mapping, where the test has one or none.
    let p = unsafe { libc::mmap(at.cast(), len, access, flags, -1, 0) };
    assert_ne!(p, libc::MAP_FAILED, "{}", io::Error::last_os_error());
    p.cast()
}

fn stamp(at: *mut u8, n: u32) {
    // SAFETY: mapped memory of the test.
    unsafe { at.cast::<u32>().write_volatile(n) };
}

/// Threads map, use, unmap and map again, each at places of its own that lie between those of the others: what is found for memory is never
/// what was registered before it was mapped the last time.
#[test]
fn what_is_mapped_now_is_what_is_found() {
    const PLACES: usize = 64;
    let (threads, rounds) =
        (3, if std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1") { 20_000 } else { 1500 });
    let (bytes, stamps) = (2 * page_size(), Arc::<Stamps>::default());
    let (cache, _domain) = cache(PLACES / 2, u64::MAX, &stamps);
    let base = map(std::ptr::null_mut(), PLACES * bytes, 0) as usize;
    let begin = Barrier::new(threads);
    std::thread::scope(|s| {
        for own in 0..threads {
            let (cache, begin) = (&cache, &begin);
            s.spawn(move || {
                let at = |place: usize| (base + place * bytes) as *mut u8;
                let mut last = [0u32; PLACES];
                begin.wait();
                for round in 1..rounds as u32 {
                    let place = own + (round as usize * 5 % (PLACES / threads)) * threads;
                    // SAFETY: this thread's place; the others use theirs.
                    unsafe {
                        match round % 4 {
                            0 => assert_eq!(libc::munmap(at(place).cast(), bytes), 0),
                            1 => assert_eq!(libc::madvise(at(place).cast(), bytes, libc::MADV_DONTNEED), 0),
                            _ => {}
                        }
                        if round % 4 != 1 {
                            assert_eq!(map(at(place), bytes, libc::MAP_FIXED), at(place));
                        }
                        last[place] = round * threads as u32 + own as u32;
                        stamp(at(place), last[place]);
                        for place in (own..PLACES).step_by(threads).take(5).chain([place, place]) {
                            if last[place] != 0 {
                                let kept = cache.get(at(place), bytes, round % 2 == 0, || None).expect("registered");
                                assert_eq!((kept.lkey(), kept.addr()), (last[place], at(place) as u64), "{round}");
                            }
                        }
                    }
                }
            });
        }
    });
    let (made, counts) = cache.counts();
    println!("keeps registrations: {}; {made} made, {counts:?}", cache.keeps());
    assert!(!cache.keeps() || counts.found > made / 2 && counts.forgotten > 100 && counts.evicted > 100);
    // SAFETY: the test's own.
    unsafe { libc::munmap(base as *mut _, PLACES * bytes) };
    drop(cache);
    assert_eq!(stamps.now.load(Ordering::Relaxed), 0, "all are ended");
}

/// More buffers than the kernel allows mappings, with gaps between them: the program can go on mapping, and most stay registered.
#[test]
fn many_buffers_leave_the_program_its_mappings() {
    let many = if std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1") { 65_536 } else { 8192 };
    let (cache, _domain) = cache(many, u64::MAX, &Arc::default());
    let step = 2 * page_size();
    let base = map(std::ptr::null_mut(), many * step, libc::MAP_NORESERVE);
    let get = |n: usize| {
        let at = base.wrapping_add(n * step);
        // SAFETY: mapped above, until after the cache is gone.
        drop(unsafe { cache.get(at, page_size(), false, || None) }.expect("registered"));
    };
    (0..2).for_each(|_| (0..many).for_each(get));
    let (made, counts) = cache.counts();
    let mappings = std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count());
    println!("{made} made, {counts:?}, {mappings} mappings, {} bytes", cache.memory());
    if cache.keeps() {
        assert_eq!((made, counts.found, counts.kept), (many as u64, many as u64, many as u64));
        assert!(mappings < 8192, "{mappings}");
        // SAFETY: nobody uses it.
        unsafe { libc::munmap(base.cast(), many * step) };
        assert_eq!((cache.counts().1.kept, cache.counts().1.forgotten), (0, many as u64));
    }
}

/// Where so much may be locked and no more, what is kept makes room.
#[test]
fn a_registration_that_fails_takes_the_place_of_others() {
    let stamps = Arc::<Stamps>::default();
    stamps.limit.store(64 * page_size(), Ordering::Relaxed);
    let (cache, domain) = cache(1000, u64::MAX, &stamps);
    domain.set_relief(cache.relief());
    let base = map(std::ptr::null_mut(), 200 * page_size(), 0);
    let get = |n: usize, pages: usize| {
        // SAFETY: mapped above.
        unsafe { cache.get(base.wrapping_add(n * page_size()), pages * page_size(), true, || None) }
    };
    (0..200).for_each(|n| drop(get(n, 1).expect("room is made")));
    let held = get(100, 60).expect("all others make room");
    assert!(cache.counts().1.kept <= 5, "{:?}", cache.counts());
    assert!(get(0, 5).is_err(), "what is in use does not");
    drop(held);
    assert!(get(0, 5).is_ok());
    assert_eq!(pages(base as u64 + 5, 10), (base as u64, base as u64 + page_size() as u64));
    drop(cache);
    // SAFETY: nobody uses it.
    unsafe { libc::munmap(base.cast(), 200 * page_size()) };
}
