//! Hello: who am I, how many are we; every rank greets rank 0. Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 4 target/debug/examples/hello

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let greeting = |rank: usize| format!("hello from rank {rank} of {size}");
    if rank != 0 {
        world.send(greeting(rank).as_bytes(), 0, 0)?;
    } else {
        println!("rank 0 of {size} listens");
        let mut text = [0u8; 64];
        for from in 1..size {
            // Shorter messages than the buffer are fine.
            let received = world.recv(&mut text, from, 0)?;
            let text = &text[..received.len];
            assert_eq!(text, greeting(from).as_bytes());
            println!("{}", String::from_utf8_lossy(text));
        }
    }
    job.finalize()
}
