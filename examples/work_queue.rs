//! Work queue: rank 0 hands out tasks to whoever asks, and takes the results from whoever has one. Any number of ranks.
//!
//! A worker asks by sending its last result to "any source" at rank 0, which answers on the worker's own index. However many workers
//! there are, rank 0 needs no memory for them, and none is waited for before its turn.
//!
//!     cargo build --examples
//!     fmpl run -n 4 target/debug/examples/work_queue

/// The task of a worker that may go home.
const NO_MORE: u64 = u64::MAX;
/// The first thing a worker says.
const NOTHING_YET: [u64; 2] = [NO_MORE, 0];
const TASKS: u64 = 1000;

fn work(task: u64) -> u64 {
    // Tasks of very different lengths: the number of steps that 3n + 1 takes to 1.
    let (mut n, mut steps) = (task + 1, 0);
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    if world.rank() == 0 {
        let mut results = vec![None; TASKS as usize];
        let (mut next, mut at_work) = (0, world.size() - 1);
        let mut done_by = vec![0; world.size()];
        while at_work > 0 {
            let mut said = NOTHING_YET;
            let worker = world.recv_any(&mut said, 0)?.source;
            if said[0] != NO_MORE {
                results[said[0] as usize] = Some(said[1]);
                done_by[worker] += 1;
            }
            let task = if next < TASKS { next } else { NO_MORE };
            next += 1;
            at_work -= (task == NO_MORE) as usize;
            world.send(&[task], worker, 0)?;
        }
        // Alone, rank 0 does it all.
        for (task, result) in results.iter_mut().enumerate() {
            let result = result.get_or_insert_with(|| work(task as u64));
            assert_eq!(*result, work(task as u64));
        }
        println!("{TASKS} tasks done by {} ranks: {done_by:?}", world.size());
    } else {
        let mut said = NOTHING_YET;
        loop {
            world.send_any(&said, 0, 0)?;
            let mut task = [0];
            world.recv(&mut task, 0, 0)?;
            if task[0] == NO_MORE {
                break;
            }
            said = [task[0], work(task[0])];
        }
    }
    job.finalize()
}
