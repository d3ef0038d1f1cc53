//! Ring: every rank's number travels once round all ranks, and everyone adds them up. Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 4 target/debug/examples/ring

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut travelling = [rank as u64 + 1];
    let mut sum = travelling[0];
    for _ in 1..size {
        // All send and receive at the same time; nobody has to begin.
        let mut arriving = [0];
        world.sendrecv(&travelling, next, 0, &mut arriving, last, 0)?;
        travelling = arriving;
        sum += travelling[0];
    }
    let size = size as u64;
    assert_eq!(sum, size * (size + 1) / 2);
    if rank == 0 {
        println!("the sum of 1 to {size} is {sum}");
    }
    job.finalize()
}
