//! The model's times, and the drains that it is to reproduce: blocks of one job, run in turn.
//!
//! For the length of a block the receiver has a processor to itself and the senders share the others, all of them ahead of other programs
//! where the system allows it (`SCHED_FIFO`: root): what is compared does not hang on where the system puts whom, nor on what else runs.
//! Each block is told the processors that there are, as its last arguments: `fmpl run` may have bound the ranks otherwise.

use super::super::measure::median;
use super::super::rank::{Outcome, Rank, now};

/// Indices: the messages; what two ranks of a block tell each other.
const MESSAGES: i32 = 0;
const TOLD: i32 = 2;

/// This thread on some of the processors, ahead of other programs.
struct Bound(libc::cpu_set_t);

impl Bound {
    fn to(which: &[i64]) -> Result<Bound, String> {
        // SAFETY: zeroed sets are valid, and the calls read and fill them.
        unsafe {
            let (mut before, mut set): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
            let size = size_of::<libc::cpu_set_t>();
            which.iter().for_each(|c| libc::CPU_SET(*c as usize, &mut set));
            if libc::sched_getaffinity(0, size, &mut before) != 0 || libc::sched_setaffinity(0, size, &set) != 0 {
                return Err(format!("processors {which:?}: {}", std::io::Error::last_os_error()));
            }
            // Where it is refused, other programs run in between.
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &libc::sched_param { sched_priority: 1 });
            Ok(Bound(before))
        }
    }

    /// The receiver to the first processor, everybody else to the others.
    fn by_rank(rank: i32, all: &[i64]) -> Result<Bound, String> {
        Bound::to(if rank == 0 { &all[..1] } else { &all[1..] })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // SAFETY: the set that there was before.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 });
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0);
        }
    }
}

fn tell(r: &Rank, to: i32) -> Result<(), String> {
    r.send(r.sb.at(0), 0, to, TOLD)
}

fn hear(r: &Rank, from: i32) -> Result<(), String> {
    r.recv(r.rb.at(0), 0, from, TOLD)
}

/// So many messages sent to the receiver, or taken from anybody, each stamped and checked: ns each.
fn messages(r: &Rank, n: usize, count: i64) -> Result<f64, String> {
    let t0 = now();
    if r.rank != 0 {
        for i in 0..count {
            r.sb.stamp(0, n, i + r.rank as i64);
            r.send_any(r.sb.at(0), n, 0, MESSAGES)?;
        }
    } else {
        let mut next = vec![0i64; r.size as usize];
        for _ in 0..count {
            let src = r.recv_any(r.rb.at(0), n, MESSAGES)?;
            let seq = &mut next[src as usize];
            r.rb.check(0, n, *seq + src as i64)?;
            *seq += 1;
        }
    }
    Ok((now() - t0) / count as f64)
}

/// `fill SIZE K TIMES PROCESSORS`: a message taken that is there; a message sent that there is room for; a message taken, and one sent, while
/// the other side is at it: of one sender that has filled the ring.
pub fn fill(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n.max(8));
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(r.rank, &a[3..])?;
    let mut each = Vec::new();
    for _ in 0..a[2] {
        if r.rank == 1 {
            hear(r, 0)?;
            each.push(messages(r, n, a[1])?);
            tell(r, 0)?;
        } else {
            tell(r, 1)?;
            hear(r, 1)?;
            each.push(messages(r, n, a[1])?);
        }
    }
    // From a full ring on, as in a drain: where it is full, the sender looks for room all the time.
    let full = if r.rank == 1 { 0 } else { 2 * a[1] };
    let until = now() + if full > 0 { 300_000.0 } else { 0.0 };
    while now() < until {
        std::hint::spin_loop();
    }
    messages(r, n, full)?;
    let both = messages(r, n, 2 * a[1] + a[1] * a[2] - full)?;
    let end = now();
    if r.rank == 1 {
        r.send_figures(&[median(&each), end], 0)?;
        return Ok(vec![]);
    }
    let mut his = [0.0; 2];
    r.recv_figures(&mut his, 1, 0)?;
    let (take, send) = (median(&each), his[0]);
    // Who had to wait for the other says nothing of what it takes him: the sender, if the ring was full to the end.
    let full = end - his[1] > take * a[1] as f64;
    Ok(if full { vec![take, send, both, send] } else { vec![take, send, take, both] })
}

/// `yields K RANKS PROCESSORS`: ranks on one processor give way to each other: ns each.
pub fn yields(r: &mut Rank, a: &[i64]) -> Outcome {
    let ranks = a[1] as i32;
    r.need(8);
    if r.rank > ranks {
        return Ok(vec![]);
    }
    if r.rank == 0 {
        // By then all of them are there.
        let begin = [now() + 3e6];
        (1..=ranks).try_for_each(|n| r.send(begin.as_ptr().cast(), 8, n, TOLD))?;
        let (mut first, mut last) = (f64::INFINITY, 0.0f64);
        for n in 1..=ranks {
            let mut time = [0.0; 2];
            r.recv_figures(&mut time, n, 0)?;
            (first, last) = (first.min(time[0]), last.max(time[1]));
        }
        return Ok(vec![(last - first) / (a[0] * a[1]) as f64]);
    }
    let _bound = Bound::to(&a[3..4])?;
    let mut begin = [0.0];
    r.recv_figures(&mut begin, 0, TOLD)?;
    // SAFETY: no preconditions.
    let give_way = || unsafe { libc::sched_yield() };
    while now() < begin[0] {
        give_way();
    }
    let t0 = now();
    for _ in 0..a[0] {
        give_way();
    }
    r.send_figures(&[t0, now()], 0)?;
    Ok(vec![])
}

/// `wakes TIMES PROCESSORS`: a rank sends to one that sleeps on another processor: what that takes it, and how long until the other goes on.
pub fn wakes(r: &mut Rank, a: &[i64]) -> Outcome {
    r.need(8);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(r.rank, &a[1..])?;
    let (mut costs, mut ways) = (Vec::new(), Vec::new());
    for _ in 0..a[0] {
        if r.rank == 1 {
            let mut begun = [0.0];
            r.recv_figures(&mut begun, 0, 1)?;
            let seen = now();
            r.send_figures(&[seen - begun[0]], 0)?;
            continue;
        }
        // Longer than a wait gives way before it sleeps.
        std::thread::sleep(std::time::Duration::from_millis(4));
        let begun = now();
        r.send((&raw const begun).cast(), 8, 1, 1)?;
        costs.push(now() - begun);
        let mut way = [0.0];
        r.recv_figures(&mut way, 1, 0)?;
        ways.push(way[0]);
    }
    if r.rank == 1 { Ok(vec![]) } else { Ok(vec![median(&costs), median(&ways)]) }
}

/// `drain SIZE K MS SENDERS PROCESSORS`: as `incast`, of the first senders only.
pub fn drain(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, senders) = (a[0] as usize, a[3]);
    r.need(n.max(8));
    if r.rank as i64 > senders {
        return Ok(vec![]);
    }
    let _bound = Bound::by_rank(r.rank, &a[4..])?;
    if r.rank != 0 {
        hear(r, 0)?;
        messages(r, n, a[1])?;
        return Ok(vec![]);
    }
    (1..=senders).try_for_each(|s| tell(r, s as i32))?;
    std::thread::sleep(std::time::Duration::from_millis(a[2] as u64));
    Ok(vec![messages(r, n, a[1] * senders)?])
}
