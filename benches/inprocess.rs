//! The parts of a message's path that one process can measure alone: a message to oneself, the length of a layout, a piece of
//! memory that peers can reach. What a message between two processes costs is `fmpl bench`'s business.

#![allow(missing_docs, reason = "criterion's macros write functions without documentation")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fmpl::base::unused::Unused;
use fmpl::comm;
use fmpl::p2p::layout::{Block, Form, Layout};
use fmpl::p2p::{self, COMM_WORLD};

const INDEX: i32 = 7;

fn to_oneself(c: &mut Criterion) {
    // A job of one: no launcher is needed.
    comm::init_raw(64).expect("init");
    let mut group = c.benchmark_group("to_oneself");
    for size in [8usize, 64, 1024, 8192, 65_536] {
        let mut from = vec![1u8; size];
        let mut into = vec![0u8; size];
        group.throughput(Throughput::Bytes(size as u64));
        // SAFETY: both buffers outlive all calls and requests, which are completed here.
        let [send, recv] = unsafe { [&mut from, &mut into].map(|buffer| Layout::bytes(buffer.as_mut_ptr(), size)) };
        group.bench_function(BenchmarkId::new("posted", size), |b| {
            b.iter(|| {
                p2p::irecv(COMM_WORLD, recv, 0, INDEX).expect("irecv");
                p2p::send(COMM_WORLD, send, 0, INDEX).expect("send");
                p2p::irecv_wait(COMM_WORLD, 0, INDEX).expect("irecv_wait");
            })
        });
        group.bench_function(BenchmarkId::new("unexpected", size), |b| {
            b.iter(|| {
                p2p::send(COMM_WORLD, send, 0, INDEX).expect("send");
                p2p::recv(COMM_WORLD, recv, 0, INDEX).expect("recv");
            })
        });
        assert_eq!(from, into);
    }
    group.finish();

    let mut group = c.benchmark_group("reachable_memory");
    for size in [64usize, 4096, 1 << 20] {
        group.bench_function(BenchmarkId::new("alloc_free", size), |b| {
            b.iter(|| {
                let p = comm::alloc(black_box(size)).expect("alloc");
                // SAFETY: from `alloc`, and used by nobody.
                comm::free(p, unsafe { Unused::promised() }).expect("free");
            })
        });
    }
    group.finish();
    // SAFETY: all requests are completed, and there is one thread.
    comm::finalize_raw(unsafe { Unused::promised() }).expect("finalize");
}

fn layouts(c: &mut Criterion) {
    let mut bytes = vec![0u8; 64 * 128];
    let mut group = c.benchmark_group("layout_length");
    // SAFETY: the bytes and the descriptors live as long as this function.
    let layout = |form| unsafe { Layout::new(form) };
    let block = layout(Form::Block { ptr: bytes.as_mut_ptr(), block: Block { run: 64, count: 64, stride: 128 } });
    group.bench_function("block", |b| b.iter(|| black_box(block).len_checked()));
    let pieces: Vec<libc::iovec> =
        bytes.chunks_mut(128).map(|run| libc::iovec { iov_base: run.as_mut_ptr().cast(), iov_len: 64 }).collect();
    let list = layout(Form::List { iov: pieces.as_ptr(), n: pieces.len() });
    group.bench_function("list of 64", |b| b.iter(|| black_box(list).len_checked()));
    group.finish();
}

criterion_group!(benches, to_oneself, layouts);
criterion_main!(benches);
