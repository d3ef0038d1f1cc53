//! Work counter: tasks are shared out by one word of global memory. Whoever wants a task adds one to it; no rank hands out anything.
//! Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 4 target/debug/examples/work_counter

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
    let job = fmpl::init(0)?;
    let global = fmpl::Global::open(&job)?;
    // In rank 0's starter memory, whose address everybody knows: the next task, the steps of all, and how many tasks each rank did.
    let here = global.starter(0)?;
    let (next, steps) = (global.atomic::<u64>(here), global.atomic::<u64>(here + 8));
    let mut done = 0;
    loop {
        let task = next.fetch_add(1)?;
        if task >= TASKS {
            break;
        }
        steps.fetch_add(work(task))?;
        done += 1;
    }
    global.write(here + 16 + 8 * global.rank(), &[done])?;
    global.sync()?;
    if global.rank() == 0 {
        let mut shares = vec![0u64; global.size()];
        global.read(here + 16, &mut shares)?;
        assert_eq!(shares.iter().sum::<u64>(), TASKS);
        assert_eq!(steps.load()?, (0..TASKS).map(work).sum::<u64>());
        println!("{TASKS} tasks done by {} ranks: {shares:?}", global.size());
    }
    global.sync()?;
    global.close()?;
    job.finalize()
}
