//! The model's times, and the drains that it is to reproduce: blocks of one job, run in turn.
//!
//! For the length of a block the receiver has a processor to itself and the senders share the others, all of them ahead of other programs
//! where the system allows it (`SCHED_FIFO`: root): what is compared does not hang on where the system puts whom, nor on what else runs.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use fmpl::base::system::cpus::{CpuSet, schedule};
use fmpl::{Comm, Result as Outcome};

use super::{EACH, SLOTS};

/// Bytes of a message.
const SIZE: usize = 1024;
/// Indices: the messages; what is measured; what two ranks of a block tell each other.
const MESSAGES: usize = 0;
const FIGURES: usize = 1;
const TOLD: usize = 2;

/// What is measured at a time.
#[derive(Clone, Copy)]
pub enum Block {
    /// A message taken that is there; a message sent that there is room for; a message taken, and one sent, while the other side is
    /// at it: of one sender that has filled the ring.
    Fill,
    /// Ranks on one processor give way to each other.
    Yields,
    /// A rank sends to one that sleeps on another processor: what that takes it, and how long until the other goes on.
    Wakes,
    /// So many senders, and a receiver that comes late: from one message to the next.
    Drain(usize),
}

impl Block {
    /// What rank 0 has measured, in ns; the others return nothing.
    pub fn run(self, world: Comm, processors: &[usize]) -> Outcome<Vec<f64>> {
        match self {
            Block::Fill => fill(world, processors),
            Block::Yields => yields(world, processors),
            Block::Wakes => wakes(world, processors),
            Block::Drain(senders) => drain(world, processors, senders),
        }
    }
}

/// The processors that this process may use.
pub fn processors() -> Vec<usize> {
    CpuSet::allowed().map_or(vec![0], |set| set.cpus())
}

/// The median of some values.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).map_or(f64::NAN, |above| above.midpoint(values[(values.len() - 1) / 2]))
}

/// Nanoseconds; the same clock for all ranks of a node.
fn now() -> f64 {
    fmpl::wtime() * 1e9
}

/// This thread on some of the processors, ahead of other programs.
struct Bound(CpuSet);

impl Bound {
    fn to(which: &[usize]) -> Outcome<Bound> {
        let bound =
            CpuSet::allowed().and_then(|before| CpuSet::of_cpus(which.iter().copied()).apply().map(|()| before));
        let before = bound.map_err(|e| fmpl::Error::new(fmpl::Code::System, format!("processors {which:?}: {e}")))?;
        // Where it is refused, other programs run in between.
        let _ = schedule(libc::SCHED_FIFO, 1);
        Ok(Bound(before))
    }

    /// The receiver to the first processor, everybody else to the others.
    fn by_rank(rank: usize, all: &[usize]) -> Outcome<Bound> {
        Bound::to(if rank == 0 { &all[..1] } else { &all[1..] })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = schedule(libc::SCHED_OTHER, 0);
        let _ = self.0.apply();
    }
}

/// The raw hop: one cache line that two threads write in turn, on the first two processors; the least of a few runs.
pub fn hop(processors: &[usize]) -> f64 {
    const TRIPS: u64 = 300;
    #[repr(align(64))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let play = |mine: u64, processor: usize| {
        let _bound = Bound::to(&[processor]);
        let mut best = f64::INFINITY;
        for run in 0..6 {
            let begun = now();
            for n in (run * TRIPS..(run + 1) * TRIPS).map(|n| 2 * n + mine) {
                while line.0.load(Ordering::Acquire) != n {} // a pause would be longer than the hop
                line.0.store(n + 1, Ordering::Release);
            }
            best = best.min((now() - begun) / TRIPS as f64 / 2.0);
        }
        best
    };
    std::thread::scope(|s| {
        s.spawn(|| play(1, processors[1]));
        play(0, processors[0])
    })
}

/// So many messages sent to the receiver, or taken from anybody, each stamped and checked: ns each.
fn messages(world: Comm, count: usize) -> Outcome<f64> {
    let (mut buffer, mut next, t0) = ([0u8; SIZE], vec![0usize; world.size()], now());
    for i in 0..count {
        if world.rank() != 0 {
            let stamp = (i + world.rank()) as u8;
            [buffer[0], buffer[SIZE - 1]] = [stamp; 2];
            world.send_any(&buffer, 0, MESSAGES)?;
        } else {
            let from = world.recv_any(&mut buffer, MESSAGES)?.source;
            assert_eq!([buffer[0], buffer[SIZE - 1]], [(next[from] + from) as u8; 2], "message {i}, from {from}");
            next[from] += 1;
        }
    }
    Ok((now() - t0) / count as f64)
}

fn tell(world: Comm, to: usize) -> Outcome<()> {
    world.send::<u8>(&[], to, TOLD)
}

fn hear(world: Comm, from: usize) -> Outcome<()> {
    world.recv::<u8>(&mut [], from, TOLD).map(drop)
}

fn figures<const N: usize>(world: Comm, from: usize) -> Outcome<[f64; N]> {
    let mut figures = [0.0; N];
    world.recv(&mut figures, from, FIGURES)?;
    Ok(figures)
}

fn fill(world: Comm, processors: &[usize]) -> Outcome<Vec<f64>> {
    const K: usize = SLOTS / 2;
    const TIMES: usize = 9;
    let (rank, mut each) = (world.rank(), Vec::new());
    if rank > 1 {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(rank, processors)?;
    for _ in 0..TIMES {
        if rank == 1 {
            hear(world, 0)?;
            each.push(messages(world, K)?);
            tell(world, 0)?;
        } else {
            tell(world, 1)?;
            hear(world, 1)?;
            each.push(messages(world, K)?);
        }
    }
    // From a full ring on, as in a drain: where it is full, the sender looks for room all the time.
    let full = if rank == 1 { 0 } else { 2 * K };
    let until = now() + if full > 0 { 300_000.0 } else { 0.0 };
    while now() < until {
        spin_loop();
    }
    messages(world, full)?;
    let both = messages(world, 2 * K + K * TIMES - full)?;
    let end = now();
    if rank == 1 {
        world.send(&[median(&each), end], 0, FIGURES)?;
        return Ok(vec![]);
    }
    let [send, ended] = figures(world, 1)?;
    let take = median(&each);
    // Who had to wait for the other says nothing of what it takes him: the sender, if the ring was full to the end.
    let full = end - ended > take * K as f64;
    Ok(if full { vec![take, send, both, send] } else { vec![take, send, take, both] })
}

fn yields(world: Comm, processors: &[usize]) -> Outcome<Vec<f64>> {
    const RANKS: usize = 8;
    const TIMES: usize = 1000;
    if world.rank() > RANKS {
        return Ok(vec![]);
    }
    if world.rank() == 0 {
        // By then all of them are there.
        let begin = now() + 3e6;
        (1..=RANKS).try_for_each(|n| world.send(&[begin], n, FIGURES))?;
        let (mut first, mut last) = (f64::INFINITY, 0.0f64);
        for n in 1..=RANKS {
            let [begun, ended] = figures(world, n)?;
            (first, last) = (first.min(begun), last.max(ended));
        }
        return Ok(vec![(last - first) / (TIMES * RANKS) as f64]);
    }
    let _bound = Bound::to(&processors[1..2])?;
    let [begin] = figures(world, 0)?;
    while now() < begin {
        std::thread::yield_now();
    }
    let t0 = now();
    for _ in 0..TIMES {
        std::thread::yield_now();
    }
    world.send(&[t0, now()], 0, FIGURES)?;
    Ok(vec![])
}

fn wakes(world: Comm, processors: &[usize]) -> Outcome<Vec<f64>> {
    const TIMES: usize = 3;
    if world.rank() > 1 {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(world.rank(), processors)?;
    let (mut costs, mut ways) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        if world.rank() == 1 {
            let [begun] = figures(world, 0)?;
            world.send(&[now() - begun], 0, FIGURES)?;
            continue;
        }
        // Longer than a wait gives way before it sleeps.
        sleep(Duration::from_millis(8));
        let begun = now();
        world.send(&[begun], 1, FIGURES)?;
        costs.push(now() - begun);
        ways.extend(figures::<1>(world, 1)?);
    }
    Ok(if world.rank() == 1 { vec![] } else { vec![median(&costs), median(&ways)] })
}

fn drain(world: Comm, processors: &[usize], senders: usize) -> Outcome<Vec<f64>> {
    if world.rank() > senders {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(world.rank(), processors)?;
    if world.rank() != 0 {
        hear(world, 0)?;
        messages(world, EACH)?;
        return Ok(vec![]);
    }
    (1..=senders).try_for_each(|s| tell(world, s))?;
    sleep(Duration::from_millis(40));
    Ok(vec![messages(world, EACH * senders)?])
}
