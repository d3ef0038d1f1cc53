//! The copy engine beside the C library's copy, by size, offset of the source and offset of the destination behind a page.
//!
//! `cargo bench --bench copying -- 64K` measures one size. The slowest alignment of a loop should take no more than 1.3 times
//! as long as its fastest; the C library's takes up to 20 times as long on some processors.

#![allow(missing_docs, reason = "criterion's macros write functions without documentation")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fmpl::base::config::Config;
use fmpl::base::copying::{self, Copying, Loop};

const SIZES: [(usize, &str); 6] =
    [(128, "128"), (1 << 10, "1K"), (4 << 10, "4K"), (64 << 10, "64K"), (1 << 20, "1M"), (4 << 20, "4M")];
const OFFSETS: [usize; 6] = [0, 8, 16, 32, 64, 4080];
const PAGE: usize = 4096;

fn copies(c: &mut Criterion) {
    let most = SIZES[SIZES.len() - 1].0 + 2 * PAGE;
    let (source, mut target) = (vec![7u8; most], vec![0u8; most]);
    let from = source[source.as_ptr().align_offset(PAGE)..].as_ptr();
    let start = target.as_ptr().align_offset(PAGE);
    let to = target[start..].as_mut_ptr();
    for l in Loop::ALL.into_iter().filter(|l| l.runs_here()) {
        let config = Config { copy: Some(l), ..Config::default() };
        copying::configure(&config, copying::long(), copying::ahead());
        for (n, size) in SIZES {
            let mut group = c.benchmark_group(format!("copy/{}/{size}", l.name()));
            group.throughput(Throughput::Bytes(n as u64));
            group.warm_up_time(Duration::from_millis(20)).measurement_time(Duration::from_millis(100)).sample_size(10);
            for (skip, shift) in OFFSETS.into_iter().flat_map(|a| OFFSETS.map(|b| (a, b))) {
                group.bench_function(BenchmarkId::from_parameter(format!("{skip} to {shift}")), |b| {
                    // SAFETY: both have a page more than the longest copy behind their first page.
                    b.iter(|| unsafe { Copying::Cached.copy(black_box(from.add(skip)), to.add(shift), n) })
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, copies);
criterion_main!(benches);
