//! `fmpl info --memory`: what memory a rank takes, by component, beside what the kernel says.
//!
//! A small job is started, whose ranks talk to three others each: the ranks of a group of four to each other. Where there is an RDMA
//! device, or a network is named by `FMPL_NETWORK`, each rank is on a pretended node of its own, so that they talk by that. The figures are those of rank 0, when it has joined the job and
//! when it has talked to its three.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use fmpl::WayTaken;
use fmpl::comm::{Counter, Part, memory};
use fmpl::launch::embedded::{Launcher, Nodes, Output};

use super::bench::memory::proc_kb;

pub mod ghosts;
pub mod senders;

/// Set for a rank.
const RANK: &str = "INFO_MEMORY_RANK";
/// Messages of these sizes go both ways.
const SIZES: [usize; 4] = [8, 1000, 10_000, 100_000];
const INDICES: usize = 16;
/// So many are made, for what one takes.
const COMMUNICATORS: usize = 256;
/// The job's, on a machine whose processors are emulated.
const LIMIT: Duration = Duration::from_secs(600);

/// Starts the job, or is one of its ranks.
pub fn main(ranks: u32) -> ExitCode {
    if std::env::var_os(RANK).is_some() {
        return match rank() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e}");
                ExitCode::FAILURE
            }
        };
    }
    told(start(ranks.max(4).next_multiple_of(4)))
}

/// So many ranks of `fmpl info --memory` with these words; `rank`: what says that one is.
fn launcher<'a>(ranks: u32, rank: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Launcher, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let words = ["info", "--memory"].into_iter().chain(words).map(OsString::from);
    let launcher = Launcher::new(ranks as usize, std::iter::once(program.into_os_string()).chain(words))
        .env(rank, "1")
        // There may be many more ranks than cores.
        .env("FMPL_WAIT", "block")
        .env("FMPL_STALL", "0")
        .env("FMPL_ATTACH_TIMEOUT", "120")
        .stdout(Output::Capture)
        .quiet(true);
    Ok(launcher)
}

/// What a job has come to.
fn told(done: Result<String, String>) -> ExitCode {
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("fmpl info: {e}");
            ExitCode::FAILURE
        }
    }
}

fn start(ranks: u32) -> Result<String, String> {
    use fmpl::fabric::verbs::device::{Wishes, survey};
    let named = std::env::var("FMPL_NETWORK").ok().filter(|name| !["", "auto", "none"].contains(&name.as_str()));
    let rdma = || survey(&Wishes::default()).is_ok_and(|all| all.iter().any(|(_, port)| port.is_ok()));
    let network = named.or_else(|| rdma().then(|| "RDMA".to_owned()));
    let many = ranks.to_string();
    let mut launcher = launcher(ranks, RANK, [many.as_str()])?.timeout(LIMIT);
    if network.is_some() {
        launcher = launcher.nodes(Nodes::Cyclic(ranks));
    }
    let outcome = launcher.run().map_err(|e| e.to_string())?;
    if outcome.code != 0 {
        return Err(format!("the job ended with {}: {}", outcome.code, outcome.reports.join("; ")));
    }
    let way = match network {
        Some(network) => format!("between nodes of their own, by {network}"),
        None => "on one node; no RDMA device here".to_owned(),
    };
    let head = format!("Rank 0 of {ranks}, {way}: bytes when it has joined, and what three peers add\n");
    Ok(head + &String::from_utf8_lossy(&outcome.stdout[0]))
}

/// Pages of this process that belong to no file of a disk, as the kernel counts them: its own, and those of regions and devices.
fn kernel() -> u64 {
    let own = proc_kb("/proc/self/smaps_rollup", "Anonymous:") as u64 * 1024;
    own + ["/memfd:", "/dev/infiniband"].map(fmpl::comm::mapped_by).iter().sum::<u64>()
}

/// What this rank has counted so far: connections, registrations, changes of ways, messages by way.
fn counts(job: &fmpl::Job) -> fmpl::Result<()> {
    let counts = [
        ("queue pairs", Counter::RdmaPairs),
        ("contexts (peers that may write into memory of this rank)", Counter::RdmaContexts),
        ("contexts put away for others", Counter::RdmaPutAway),
        ("connections given up for others", Counter::RdmaRetired),
        ("peers forgotten", Counter::RdmaForgotten),
        ("registrations of the program's memory that are kept", Counter::Registrations),
        ("bytes of these, which are the program's", Counter::RegisteredBytes),
        ("times that a message found its memory registered", Counter::RegistrationsFound),
        ("registrations made since none was found", Counter::RegistrationsMade),
    ];
    for (name, which) in counts {
        println!("{:>12} {:>+12}  {name}", "", job.counter(which)?);
    }
    let fabric = fmpl::p2p::endpoint::endpoint()?.fabric_here();
    if let Some([connected, rings, _, declined, again, kept]) = fabric.and_then(|fabric| fabric.switches()) {
        println!("{:>12} {connected:>+12}  times that a peer was connected, by FMPL_CONNECT", "");
        println!("{:>12} {rings:>+12}  times that a peer had a ring of receive buffers of its own (FMPL_RINGS)", "");
        println!("{:>12} {kept:>+12}  of these connections that had been kept from an earlier time", "");
        println!("{:>12} {declined:>+12}  of these turns that had no place at the other end", "");
        println!("{:>12} {again:>+12}  peers connected again within seconds", "");
    }
    for ((_, way), [messages, bytes]) in WayTaken::ALL.into_iter().zip(job.traffic()?.taken).filter(|(_, n)| n[0] > 0) {
        println!("{:>12} {messages:>+12}  messages of {bytes} bytes in all by the way: {way}", "");
    }
    Ok(())
}

fn rank() -> fmpl::Result<()> {
    let job = fmpl::init(INDICES)?;
    let world = job.world();
    let me = world.rank();
    let mut buffers: Vec<(Vec<u8>, Vec<u8>)> = SIZES.iter().map(|n| (vec![1; *n], vec![2; *n])).collect();
    // Of one rank only: where many share cores, that takes a time. The tables of the kernel are read once before, since that takes memory too.
    let measure = || -> fmpl::Result<_> { if me == 0 { Ok((memory()?, kernel())) } else { Ok((Vec::new(), 0)) } };
    measure()?;
    let (before, kernel_before) = measure()?;
    // Nobody makes contact with rank 0 before it has looked. (By the launcher: a barrier would make contacts.)
    fmpl::p2p::endpoint::endpoint()?.launch.fence()?;
    for partner in [1, 2, 3].map(|k| me ^ k) {
        for (k, (out, inn)) in buffers.iter_mut().enumerate() {
            for index in [k, k + INDICES / 2] {
                world.scope(|s| {
                    let arriving = s.irecv(inn, partner, index)?;
                    let leaving = s.isend(&out[..], partner, index)?;
                    arriving.wait()?;
                    leaving.wait()
                })?;
            }
        }
    }
    let (after, kernel_after) = measure()?;
    // Nobody goes on to what opens the library's own indices before rank 0 has looked.
    fmpl::p2p::endpoint::endpoint()?.launch.fence()?;
    if me == 0 {
        report(&before, &after, kernel_after.saturating_sub(kernel_before));
        counts(&job)?;
    }
    // Nobody uses them: what a member keeps of a communicator as such. (The first ones make contacts, and room for more.)
    let make = |n: usize| (0..n).map(|_| world.duplicate()).collect::<fmpl::Result<Vec<_>>>();
    let some = make(COMMUNICATORS)?;
    let (parts, before) = (memory()?, kernel());
    let more = make(COMMUNICATORS)?;
    if me == 0 {
        let each = kernel().saturating_sub(before) as f64 / COMMUNICATORS as f64;
        println!("{:>12} {each:>+12.0}  each communicator of all ranks, unused", "");
        for part in memory()? {
            let old = parts.iter().find(|p| p.name == part.name).map_or(0, |p| p.bytes);
            if part.bytes != old {
                let each = (part.bytes as f64 - old as f64) / COMMUNICATORS as f64;
                println!("{:>12} {each:>+12.0}    of these {}", "", part.name);
            }
        }
    }
    for comm in some.into_iter().chain(more) {
        comm.free()?;
    }
    // The end makes contacts too, along a tree: those below rank 0 do not come to it before that has looked. (By no fence: who waits there
    // cannot look up who makes contact.)
    let launch = &fmpl::p2p::endpoint::endpoint()?.launch;
    if me == 0 {
        launch.put("looked", b"1")?;
    }
    let (since, below) = (std::time::Instant::now(), launch.nodes().in_tree(me as u32).0 == Some(0));
    while below && launch.get(0, "looked").is_err() && since.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(100));
    }
    job.finalize()
}

fn report(before: &[Part], after: &[Part], kernel: u64) {
    let old = |name: &str| before.iter().find(|p| p.name == name).map_or(0, |p| p.bytes);
    for part in after {
        println!("{:>12} {:>+12}  {}", old(part.name), part.bytes as i64 - old(part.name) as i64, part.name);
    }
    let sum = |parts: &[Part]| parts.iter().map(|p| p.bytes).sum::<u64>();
    let growth = sum(after) as i64 - sum(before) as i64;
    println!("{:>12} {:>+12}  together", sum(before), growth);
    println!(
        "{:>12} {:>+12}  as the kernel counts it ({:+.1} %)",
        "",
        kernel,
        (growth as f64 / kernel as f64 - 1.0) * 100.0
    );
}
