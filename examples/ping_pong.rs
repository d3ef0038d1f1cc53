//! Ping-pong: ranks 0 and 1 send messages of growing length back and forth, and print what one way takes. Two ranks or more, of
//! which two play.
//!
//!     cargo build --release --examples
//!     fmpl run -n 2 target/release/examples/ping_pong

const INDEX: usize = 0;
const LARGEST: usize = 1 << 20;

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let rank = world.rank();
    if world.size() < 2 {
        eprintln!("ping_pong needs two ranks: fmpl run -n 2 ping_pong");
        job.abort(2);
    }
    if rank == 0 {
        println!("{:>10} {:>12}", "bytes", "one way, us");
    }
    if rank < 2 {
        // The index is ours alone from here on, so no call has to claim it.
        let mut opponent = world.channel(1 - rank, INDEX)?;
        let mut ball = vec![0u8; LARGEST];
        let mut length = 8;
        while length <= LARGEST {
            let ball = &mut ball[..length];
            ball.fill(0);
            let rounds = if length < 10_000 { 2000 } else { 100 };
            let begin = fmpl::wtime();
            for _ in 0..rounds {
                // Each player adds one to the first and to the last byte.
                if rank == 1 {
                    opponent.recv(ball)?;
                }
                ball[0] = ball[0].wrapping_add(1);
                ball[length - 1] = ball[length - 1].wrapping_add(1);
                opponent.send(ball)?;
                if rank == 0 {
                    opponent.recv(ball)?;
                }
            }
            let seconds = fmpl::wtime() - begin;
            let hits = (2 * rounds) as u8;
            assert_eq!((ball[0], ball[length - 1]), (hits, hits));
            assert!(ball[1..length - 1].iter().all(|b| *b == 0));
            if rank == 0 {
                println!("{length:>10} {:>12.3}", seconds / rounds as f64 / 2.0 * 1e6);
            }
            length *= 8;
        }
    }
    job.finalize()
}
