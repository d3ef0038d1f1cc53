//! A simulation of a master and workers: in each step the master chooses, from what has come out so far, who is to compute what,
//! and sends the parameters to exactly those: a multicast to a group that nobody knew before. Results come back from any source.
//! Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 8 target/debug/examples/master_worker

const STEPS: u64 = 200;
/// A step's number, a seed, and 1022 parameters.
const PARAMETERS: usize = 1024;
const THE_END: u64 = u64::MAX;

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let workers = world.size() - 1;
    if world.rank() == 0 {
        let mut state = 1u64;
        let (mut groups, mut results) = (0, 0);
        let mut parameters = vec![0u64; PARAMETERS];
        for step in 0..STEPS {
            if workers == 0 {
                break;
            }
            // The state decides who takes part in this step: some, and always somebody.
            let first = 1 + (state % workers as u64) as usize;
            let group: Vec<usize> = (1..=workers).filter(|w| *w == first || state >> (w % 60) & 1 == 1).collect();
            parameters[0] = step;
            parameters[1..].iter_mut().enumerate().for_each(|(k, p)| *p = state.wrapping_mul(k as u64 + 1));
            // The master sends once, and does something else while the group passes it on.
            world.mcast(&parameters, group.iter().copied())?;
            groups += 1;
            for _ in &group {
                let mut result = [0u64; 2];
                let from = world.recv_any(&mut result, 0)?;
                assert!(group.contains(&from.source) && result[0] == step, "{from:?} in step {step}");
                state = state.rotate_left(7) ^ result[1];
                results += 1;
            }
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        }
        if workers > 0 {
            parameters[0] = THE_END;
            let end = world.mcast(&parameters, 1..=workers)?;
            world.mcast_wait(end)?;
        }
        println!("{groups} multicasts to groups of {workers} workers, {results} results");
    } else {
        let mut parameters = vec![0u64; PARAMETERS];
        loop {
            world.mcast_recv(&mut parameters)?;
            if parameters[0] == THE_END {
                break;
            }
            let sum = parameters[1..].iter().fold(world.rank() as u64, |sum, p| sum.wrapping_add(*p));
            world.send_any(&[parameters[0], sum], 0, 0)?;
        }
    }
    job.finalize()
}
