//! Looking for a registration of the program's memory, as each long message to another node does: without a lock, and beside that a map of
//! the standard library behind a mutex. `cargo bench --bench registrations -- --figures` prints what `tests/shows` measures.

#![allow(missing_docs, reason = "criterion's macros write functions without documentation")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::sync::{Arc, Barrier, Mutex};

use criterion::{BenchmarkId, Criterion};
use fmpl::fabric::network::cache::table::{Bounds, Table};
use fmpl::fabric::network::device::{Access, Atomics, Registrar, Registration};
use fmpl::fabric::network::region::{Domain, Region};

/// What is kept at most by a rank alone on its node.
const RANGES: u64 = 65_536;
const BYTES: u64 = 16 << 10;
/// From the beginning of one range to that of the next.
const STEP: u64 = 3 * BYTES;
const LOOKS: u64 = 1_000_000;
const ROUNDS: usize = 9;

/// What gives keys and holds no memory: looking needs no device.
#[derive(Debug)]
struct Keys;

#[derive(Debug)]
struct Key(u32);

impl Registrar for Keys {
    unsafe fn register(self: Arc<Self>, at: *mut u8, _: usize, _: Access) -> io::Result<Box<dyn Registration>> {
        Ok(Box::new(Key((at as u64 / STEP) as u32)))
    }
    fn name(&self) -> String {
        "keys".into()
    }
}

impl Registration for Key {
    fn lkey(&self) -> u32 {
        self.0
    }
    fn rkey(&self) -> u32 {
        self.0
    }
}

/// Numbers of ranges in no order.
struct Lot(u64);

impl Lot {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % RANGES
    }
}

/// By where they begin: where they end, whether they may be written, and the registration.
type Map = BTreeMap<u64, (u64, bool, Arc<Region>)>;

/// The same registrations in both.
struct Both {
    table: &'static Table<Region>,
    map: Mutex<Map>,
}

impl Both {
    fn new() -> Both {
        let bounds = Bounds { ranges: RANGES as usize, bytes: u64::MAX };
        let table = Box::leak(Box::new(Table::new(bounds).expect("a table")));
        let (domain, mut map) = (Domain::new(Arc::new(Keys), Atomics::None), BTreeMap::new());
        // They come in no order, as buffers do: 40 503 has no divisor in common with a power of two.
        for n in (0..RANGES).map(|n| n * 40_503 % RANGES) {
            let at = (n + 1) * STEP;
            // SAFETY: nothing is ever done with the memory.
            let register = || unsafe { domain.register(at as *mut u8, BYTES as usize, Access::REMOTE_READ) };
            drop(table.keep(at, at + BYTES, false, register().expect("a region")));
            map.insert(at, (at + BYTES, false, Arc::new(register().expect("a region"))));
        }
        Both { table, map: Mutex::new(map) }
    }

    fn without_lock(&self, n: u64) -> u32 {
        let at = (n + 1) * STEP + 4096;
        self.table.find(at, at + 8192, false).expect("kept").rkey()
    }

    fn locked(&self, n: u64) -> u32 {
        let at = (n + 1) * STEP + 4096;
        let region = {
            let map = self.map.lock().expect("nobody panics");
            let (_, (end, writable, region)) = map.range(..=at).next_back().expect("kept");
            assert!(*end >= at + 8192 && !*writable);
            region.clone()
        };
        region.rkey()
    }
}

fn benches(c: &mut Criterion) {
    let both = Both::new();
    let mut group = c.benchmark_group("registrations");
    let mut lot = Lot(1);
    group.bench_function(BenchmarkId::new("without a lock", RANGES), |b| b.iter(|| both.without_lock(lot.next())));
    group.bench_function(BenchmarkId::new("locked BTreeMap", RANGES), |b| b.iter(|| both.locked(lot.next())));
    group.finish();
}

/// Nanoseconds of processor that this thread has had: what others on the machine do counts less.
fn thread_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of a look-up, with so many threads that look at the same time.
fn time(threads: u64, look: impl Fn(u64) -> u32 + Sync) -> f64 {
    let begin = Barrier::new(threads as usize);
    let one = |seed: u64| {
        let (mut lot, mut sum) = (Lot(seed), 0u64);
        begin.wait();
        let since = thread_ns();
        for _ in 0..LOOKS {
            sum += u64::from(look(lot.next()));
        }
        black_box(sum);
        (thread_ns() - since) / LOOKS as f64
    };
    std::thread::scope(|s| {
        let one = &one;
        let all: Vec<_> = (0..threads).map(|n| s.spawn(move || one(n + 1))).collect();
        all.into_iter().map(|thread| thread.join().expect("a thread")).fold(0.0, f64::max)
    })
}

/// By turns in one run, the median of each: nanoseconds without a lock, with one, without one by two threads at once.
fn figures() {
    let both = Both::new();
    let ways: [&dyn Fn() -> f64; 3] =
        [&|| time(1, |n| both.without_lock(n)), &|| time(1, |n| both.locked(n)), &|| time(2, |n| both.without_lock(n))];
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        all.iter_mut().zip(ways).for_each(|(times, way)| times.push(way()));
    }
    let median = all.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    let memory = both.table.memory() as f64 / RANGES as f64;
    println!(
        "{{\"without\": {:.1}, \"locked\": {:.1}, \"two\": {:.1}, \"bytes\": {memory:.1}}}",
        median[0], median[1], median[2]
    );
}

fn main() {
    if std::env::args().any(|arg| arg == "--figures") {
        return figures();
    }
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
}
