//! `fmpl info --memory N --incast`: what rank 0 of N takes when all others, real processes on nodes of their own, send to it at once.
//!
//! Each sends numbered messages, whose order is looked at, and is answered. Memory is looked at before, again and again while they come, and after
//! the last; the most of each component counts. What the system keeps for sockets is told apart.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fmpl::base::system::socket_memory;
use fmpl::comm::{Counter, Job, memory};
use fmpl::launch::embedded::Nodes;
use fmpl::p2p::endpoint::endpoint;
use serde_json::{Value, json};

use super::{launcher, told};

/// Set for a rank.
const RANK: &str = "INFO_MEMORY_SENDERS";
/// Messages of each sender, and words of each.
const EACH: u64 = 4;
const WORDS: usize = 125;
/// Senders between two looks.
const BETWEEN: usize = 32;
/// The job's.
const LIMIT: Duration = Duration::from_secs(280);

/// Starts the job, or is one of its ranks.
pub fn main(ranks: u32) -> ExitCode {
    told(match std::env::var_os(RANK) {
        Some(_) => rank().map(|()| String::new()).map_err(|e| e.to_string()),
        None => start(ranks.max(2)),
    })
}

fn start(ranks: u32) -> Result<String, String> {
    let many = ranks.to_string();
    let outcome = launcher(ranks, RANK, [many.as_str(), "--incast"])?
        .nodes(Nodes::Cyclic(ranks))
        .timeout(LIMIT)
        .run()
        .map_err(|e| e.to_string())?;
    if outcome.code != 0 {
        return Err(format!("the job ended with {}: {}", outcome.code, outcome.reports.join("; ")));
    }
    Ok(String::from_utf8_lossy(&outcome.stdout[0]).into_owned())
}

/// The most that each component ever had.
fn look(most: &mut BTreeMap<&'static str, u64>) -> fmpl::Result<()> {
    for part in memory()? {
        let before = most.entry(part.name).or_default();
        *before = part.bytes.max(*before);
    }
    Ok(())
}

/// Sockets of this process, bytes that the system has for them now, and that it may have.
fn sockets() -> [u64; 3] {
    let all = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(socket_memory).fold([0; 3], |[n, now, most], of| [n + 1, now + of[0], most + of[1]])
}

fn said(sender: usize, n: u64) -> [u64; WORDS] {
    std::array::from_fn(|k| (sender as u64) << 32 | n << 16 | k as u64)
}

fn rank() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let launch = &endpoint()?.launch;
    let found = match job.world().rank() {
        0 => Some(receive(&job)?),
        me => {
            launch.fence()?;
            (0..EACH).try_for_each(|n| job.world().send(&said(me, n), 0, 0))?;
            job.world().recv(&mut [0u64; 1], 0, 0)?;
            None
        }
    };
    // The end makes contacts of its own.
    launch.fence()?;
    found.iter().for_each(|found| println!("{found:#}"));
    job.finalize()
}

fn receive(job: &Job) -> fmpl::Result<Value> {
    let (world, mut before, mut most) = (job.world(), BTreeMap::new(), BTreeMap::new());
    look(&mut before)?;
    let sockets_before = sockets();
    endpoint()?.launch.fence()?;
    let begun = Instant::now();
    for sender in 1..world.size() {
        let mut told = [0u64; WORDS];
        for n in 0..EACH {
            world.recv(&mut told, sender, 0)?;
            if told != said(sender, n) {
                let text = format!("rank {sender} has said {:x?} for its message {n}", &told[..2]);
                return Err(fmpl::Error::new(fmpl::Code::Peer, text));
            }
        }
        world.send(&[sender as u64], sender, 0)?;
        if sender % BETWEEN == 0 {
            look(&mut most)?;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    look(&mut most)?;
    let [count, now, limit] = sockets();
    Ok(json!({
        "senders": world.size() - 1, "messages": EACH, "seconds": seconds, "before": before, "most": most,
        "sockets": count - sockets_before[0], "socket_bytes": now.saturating_sub(sockets_before[1]),
        "socket_limit": limit - sockets_before[2],
        "connections": job.counter(Counter::RdmaPairs)?, "contexts": job.counter(Counter::RdmaContexts)?,
        "given_up": job.counter(Counter::RdmaRetired)?,
    }))
}
