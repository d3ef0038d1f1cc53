//! The predefined functions of reductions on one core, in place, on vectors that stay in its caches: bytes of the result a second, by the best
//! loop that the processor runs.
//!
//! `cargo bench --bench reductions -- sum` measures the sums.

#![allow(missing_docs, reason = "criterion's macros write functions without documentation")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fmpl::base::bytes::{Bytes, Room};
use fmpl::base::kernel::{Kernel, Kind, PREDEFINED};

const BYTES: usize = 16 << 10;

fn functions(c: &mut Criterion) {
    for f in PREDEFINED.iter().filter(|f| f.kind != Kind::f80 || cfg!(target_arch = "x86_64")) {
        let kernel = Kernel::of(*f);
        // Zeros: what is summed up or multiplied stays an ordinary number.
        let (mut inout, input) = (vec![0u64; BYTES / 8], vec![0u64; BYTES / 8]);
        let mut group = c.benchmark_group(format!("reduce/{}", f.operation.name()));
        group.throughput(Throughput::Bytes(BYTES as u64));
        group.warm_up_time(Duration::from_millis(20)).measurement_time(Duration::from_millis(100)).sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(f.kind.name()), |b| {
            let (to, from) = (Room::of(&mut inout), Bytes::of(&input));
            b.iter(|| kernel.run(to, *to, from, BYTES / kernel.size))
        });
        group.finish();
    }
}

criterion_group!(benches, functions);
criterion_main!(benches);
