//! Overlap: post the receive, compute, and take the data when it is needed. The sender writes straight into the posted buffer
//! while the receiver computes. Any number of ranks.
//!
//!     cargo build --release --examples
//!     fmpl run -n 2 target/release/examples/overlap

use fmpl::Buffer;

const N: usize = 1 << 18;
const ROUNDS: usize = 10;

/// Some work that needs nothing from the others.
fn compute(rank: usize, round: usize) -> f64 {
    (1..=200_000).map(|k| 1.0 / (k as f64 * k as f64 + (rank + round) as f64)).sum()
}

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let number = |rank: usize, round: usize, k: usize| (rank * 1000 + round + k) as f64;
    let mut outgoing = vec![0.0; N];
    // Memory that the sender reaches directly. A Vec would do as well.
    let mut incoming = Buffer::filled(&job, N, 0.0)?;
    let mut result = 0.0;
    for round in 0..ROUNDS {
        for (k, x) in outgoing.iter_mut().enumerate() {
            *x = number(rank, round, k);
        }
        // The buffers are lent to the scope; it ends when both messages are through.
        world.scope(|s| {
            let arriving = s.irecv(&mut incoming, last, 0)?;
            let leaving = s.isend(&outgoing, next, 0)?;
            result += compute(rank, round);
            let (incoming, _) = arriving.wait_slice()?;
            assert!(incoming.iter().enumerate().all(|(k, x)| *x == number(last, round, k)));
            leaving.wait()
        })?;
    }
    assert!(result > 0.0);
    world.barrier()?;
    if rank == 0 {
        println!(
            "{} messages of {} bytes moved while {size} ranks computed",
            ROUNDS * size,
            size_of_val(&incoming[..])
        );
    }
    drop(incoming);
    job.finalize()
}
