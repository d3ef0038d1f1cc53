//! `fmpl info --memory --world N --ghosts K`: what memory a rank takes in a world of N ranks, when K of them have sent it a message, and when these are
//! forgotten.
//!
//! Four ranks are processes, on one node; this process answers for all others ([`fmpl::p2p::ghosts`]). Each of the four receives the messages of
//! its share of the ghosts, looks whether they come in their order, and answers the last. `--communicators C`: then each takes in communicators of
//! sets of the world without a pattern, as it does when all members have agreed; ghosts agree on nothing.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fmpl::comm::{Comm, Counter, Job, Part, memory};
use fmpl::lane::Place;
use fmpl::launch::embedded::Ghosts;
use fmpl::p2p::endpoint::endpoint;
use fmpl::p2p::ghosts::{COME, Crowd, GO, Plan};
use fmpl::p2p::group::Group;
use serde_json::{Value, json};

use super::{kernel, launcher, proc_kb, told};

/// Set for a rank: the world, and the ghosts.
const RANK: &str = "INFO_MEMORY_GHOSTS";
/// Ranks that are processes.
const REAL: u32 = 4;
/// Messages of each ghost.
const EACH: u32 = 2;
/// Ghosts that are not answered yet, at most.
const AT_ONCE: usize = 128;
/// Ghosts from which a rank receives at a time.
const TOGETHER: usize = 32;
/// A rank that speaks to ghosts in turn is looked at after so many, and after the last.
const WARM: u64 = 256;
/// The job's.
const LIMIT: Duration = Duration::from_secs(900);
/// Until the last ghost is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What the four do beside the errands of the ghosts; 0: nothing of the kind.
#[derive(Clone, Copy)]
pub struct Then {
    /// So many communicators are taken in.
    pub communicators: u32,
    /// Nobody receives before so many seconds are over, or all have come.
    pub late: u32,
}

/// Starts the job, or is one of its ranks.
pub fn main(world: u32, ghosts: u32, then: Then, [in_turn, incast]: [bool; 2], json: bool) -> ExitCode {
    let at_once = if incast { ghosts as usize } else { AT_ONCE };
    let plan = Plan { world, real: REAL, errands: ghosts, index: 0, messages: EACH, at_once, answers: in_turn, incast };
    told(match std::env::var_os(RANK) {
        Some(_) => rank(plan, then).map(|()| String::new()).map_err(|e| e.to_string()),
        None => start(plan, then, json).map(|text| text + "\n"),
    })
}

fn start(plan: Plan, then: Then, as_json: bool) -> Result<String, String> {
    if plan.world < REAL {
        return Err(format!("--world {}: at least {REAL} ranks are processes", plan.world));
    }
    let crowd = Crowd::start(plan).map_err(|e| e.to_string())?;
    let [world, ghosts, sets, late] = [plan.world, plan.errands, then.communicators, then.late].map(|n| n.to_string());
    let turn = [plan.answers.then_some("--in-turn"), plan.incast.then_some("--incast")].into_iter().flatten();
    let words = ["--world", &world, "--ghosts", &ghosts, "--communicators", &sets, "--late", &late];
    let outcome = launcher(REAL, RANK, words.into_iter().chain(turn))?
        // A channel for each context: the budget of connections is not looked at here.
        .env("FMPL_QUEUE_PAIRS", std::env::var("FMPL_QUEUE_PAIRS").unwrap_or_else(|_| "0".into()))
        .ghosts(Ghosts::new(plan.world, REAL, crowd.side()))
        .timeout(LIMIT)
        .run()
        .map_err(|e| e.to_string())?;
    let done = crowd.progress();
    if let Some(why) = done.trouble {
        return Err(why);
    }
    if outcome.code != 0 {
        let (reports, errors) = (outcome.reports.join("; "), outcome.stderr.concat());
        return Err(format!(
            "the job ended with {}: {reports} {} ({} of {ghosts} ghosts were answered, {} are over)",
            outcome.code,
            String::from_utf8_lossy(&errors),
            done.answered,
            done.over,
        ));
    }
    let ranks: Vec<Value> = outcome
        .stdout
        .iter()
        .map(|said| serde_json::from_slice(said))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let found = json!({ "world": plan.world, "ghosts": plan.errands, "answered": done.answered, "ranks": ranks });
    Ok(if as_json { format!("{found:#}") } else { shown(&found) })
}

/// What is looked at, at three times.
struct Look {
    parts: Vec<Part>,
    kernel: u64,
    /// As the kernel counts all of this process: resident, its proportion of what is shared, and what is shared.
    process: [u64; 3],
    /// Peers that are known between nodes, contexts, connections; forgotten so far, and let in beyond the budget; those that are packed, and how
    /// often one was so far.
    counts: [u64; 7],
}

impl Look {
    fn now(job: &Job) -> fmpl::Result<Look> {
        // What the allocator keeps for the next who asks is nobody's.
        fmpl::base::system::trim();
        let rollup = |name: &str| proc_kb("/proc/self/smaps_rollup", name) as u64 * 1024;
        let fabric = endpoint()?.fabric_here();
        let (links, let_in) = fabric.map_or((0, 0), |fabric| (fabric.links().len(), fabric.let_in()));
        let (packed, ever) = fabric.map_or((0, 0), |fabric| fabric.packed());
        let counter = |which: Counter| job.counter(which);
        Ok(Look {
            parts: memory()?,
            kernel: kernel(),
            process: [rollup("Rss:"), rollup("Pss:"), rollup("Shared_Clean:") + rollup("Shared_Dirty:")],
            counts: [
                links as u64,
                counter(Counter::RdmaContexts)?,
                counter(Counter::RdmaPairs)?,
                counter(Counter::RdmaForgotten)?,
                let_in,
                packed,
                ever,
            ],
        })
    }
    fn as_json(&self) -> Value {
        let parts: serde_json::Map<String, Value> =
            self.parts.iter().map(|p| (p.name.to_owned(), json!(p.bytes))).collect();
        let [rss, pss, shared] = self.process;
        let [links, contexts, connections, forgotten, let_in, packed, ever_packed] = self.counts;
        json!({
            "parts": parts,
            "all": self.parts.iter().map(|p| p.bytes).sum::<u64>(),
            "kernel": self.kernel,
            "rss": rss, "pss": pss, "shared": shared,
            "peers": links, "contexts": contexts, "connections": connections, "forgotten": forgotten, "let_in": let_in,
            "packed": packed, "ever_packed": ever_packed,
        })
    }
}

/// A rank of the job. It ends by itself: ghosts are in no barrier, so there is no finalize of the usual kind, whatever happens.
fn rank(plan: Plan, then: Then) -> fmpl::Result<()> {
    let job = fmpl::init(plan.index + 1)?;
    if let Err(e) = looked_at(&job, plan, then) {
        eprintln!("fmpl info: {e}");
        std::process::exit(1);
    }
    std::process::exit(0)
}

fn looked_at(job: &Job, plan: Plan, then: Then) -> fmpl::Result<()> {
    let (world, launch) = (job.world(), &endpoint()?.launch);
    let me = launch.rank();
    // The tables of the kernel are read once before, since that takes memory too.
    Look::now(job)?;
    launch.fence()?;
    let before = Look::now(job)?;
    launch.fence()?;
    if me == 0 {
        launch.put(COME, b"1")?;
    }
    let mine = (0..plan.errands).filter(|errand| plan.to(*errand) == me);
    let came = await_all(mine.clone().count() as u64, Duration::from_secs(then.late.into()))?;
    let late = Look::now(job)?;
    let begun = Instant::now();
    let (mut n, mut warm) = (0u64, None);
    for some in mine.clone().collect::<Vec<_>>().chunks(if plan.answers { 1 } else { TOGETHER }) {
        match plan.answers {
            true => ask(&world, &plan, some[0])?,
            false => answer(&world, &plan, some)?,
        }
        n += some.len() as u64;
        if plan.answers && n == WARM {
            warm = Some(Look::now(job)?);
        }
    }
    if let Some(first) = mine.clone().next().filter(|_| plan.answers) {
        (0..3).try_for_each(|_| ask(&world, &plan, first))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    // What is not within the budget is forgotten by itself.
    std::thread::sleep(Duration::from_millis(500));
    launch.fence()?;
    let with = Look::now(job)?;
    launch.fence()?;
    if me == 0 {
        launch.put(GO, b"1")?;
    }
    let since = Instant::now();
    while endpoint()?.fabric_here().is_some_and(|f| !f.links().is_empty()) && since.elapsed() < FORGOTTEN {
        std::thread::sleep(Duration::from_millis(10));
    }
    if then.communicators > 0 {
        // Members of a communicator have agreed on it, so they have met.
        let here = launch.local_ranks();
        here.iter().filter(|rank| **rank < me).try_for_each(|rank| endpoint()?.contact(*rank).map(drop))?;
    }
    launch.fence()?;
    let after = Look::now(job)?;
    (0..then.communicators).try_for_each(|number| take_in(number, plan.world))?;
    launch.fence()?;
    let sets = Look::now(job)?;
    let [looks @ .., warm] = [&before, &with, &after, &sets, &late, warm.as_ref().unwrap_or(&with)].map(Look::as_json);
    println!(
        "{}",
        json!({ "rank": me, "ghosts": n, "seconds": seconds, "warm": warm, "before": looks[0], "with": looks[1], "after": looks[2],
            "communicators": looks[3], "late": looks[4], "late_seconds": came })
    );
    launch.finalize()
}

/// Receives nothing until so many have come, or the time is over; how long that took, in seconds.
fn await_all(ghosts: u64, at_most: Duration) -> fmpl::Result<f64> {
    let begun = Instant::now();
    let have_come = || {
        let fabric = endpoint()?.fabric_here();
        let here = fabric.map_or(0, |fabric| fabric.links().len() as u64 + fabric.packed().0);
        fmpl::Result::Ok(here >= ghosts)
    };
    while begun.elapsed() < at_most && !have_come()? {
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = begun.elapsed().as_secs_f64();
    // What the last have to say comes a moment later.
    std::thread::sleep(at_most.min(Duration::from_secs(1)));
    Ok(seconds)
}

/// Takes in a communicator of the four and three quarters of all others, in which there is no pattern.
fn take_in(number: u32, world: u32) -> fmpl::Result<()> {
    let has = |r: &u32| *r < REAL || (r ^ number.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x9e37_79b9) >> 30 != 1;
    let (ep, place) = (endpoint()?, Place { epoch: 1000 + number, unit: number, units: 1 });
    let group = Group::of((0..world).filter(has), ep.rank)
        .ok_or_else(|| fmpl::Error::new(fmpl::Code::System, "a set without this rank"))?;
    ep.contexts.add(ep.kept_on_node(group, place), place, 1).map(drop)
}

/// Receives some ghosts' messages, each in their order, and answers the last.
fn answer(world: &Comm<'_>, plan: &Plan, errands: &[u32]) -> fmpl::Result<()> {
    let ghosts: Vec<u32> = errands.iter().map(|errand| plan.ghost(*errand)).collect();
    let mut told = vec![[0u64; 2]; ghosts.len()];
    for n in 0..plan.messages {
        world.scope(|s| {
            let mut begun = Vec::with_capacity(ghosts.len());
            for (ghost, told) in ghosts.iter().zip(&mut told) {
                begun.push(s.irecv(&mut told[..], *ghost as usize, plan.index)?);
            }
            begun.into_iter().try_for_each(|request| request.wait().map(drop))
        })?;
        ghosts.iter().zip(&told).try_for_each(|(ghost, told)| is_said(*ghost, *told, plan.says(*ghost, n)))?;
    }
    for (ghost, mut told) in ghosts.into_iter().zip(told) {
        told.reverse();
        world.send(&told, ghost as usize, plan.index)?;
    }
    Ok(())
}

/// Sends a ghost a message, and receives the answer.
fn ask(world: &Comm<'_>, plan: &Plan, errand: u32) -> fmpl::Result<()> {
    let (ghost, mut told) = (plan.ghost(errand), [0u64; 2]);
    world.send(&[u64::from(errand), u64::from(ghost)], ghost as usize, plan.index)?;
    world.recv(&mut told, ghost as usize, plan.index)?;
    is_said(ghost, told, [u64::from(ghost), u64::from(errand)])
}

fn is_said(ghost: u32, told: [u64; 2], expected: [u64; 2]) -> fmpl::Result<()> {
    let wrong = || fmpl::Error::new(fmpl::Code::Peer, format!("rank {ghost} has said {told:x?}, not {expected:x?}"));
    (told == expected).then_some(()).ok_or_else(wrong)
}

fn shown(found: &Value) -> String {
    let rank = &found["ranks"][0];
    let n = |at: &str, what: &str| rank[at][what].as_i64().unwrap_or(0);
    let mut names: Vec<&String> =
        rank["with"]["parts"].as_object().into_iter().flat_map(|parts| parts.keys()).collect();
    for at in ["before", "after"] {
        names.extend(rank[at]["parts"].as_object().into_iter().flat_map(|parts| parts.keys()));
    }
    names.sort();
    names.dedup();
    let part = |at: &str, name: &str| rank[at]["parts"][name].as_i64().unwrap_or(0);
    let row = |of: &dyn Fn(&str) -> i64, name: &str| {
        let (before, with, after) = (of("before"), of("with"), of("after"));
        format!("{before:>12} {:>+12} {:>+12}  {name}", with - before, after - before)
    };
    let head = format!(
        "Rank 0 of {}, four of which are processes on one node: bytes, what {} ghosts add, and when they are forgotten ({:.1} s)",
        found["world"],
        rank["ghosts"],
        rank["seconds"].as_f64().unwrap_or(0.0)
    );
    let parts = names.iter().map(|name| row(&|at| part(at, name), name));
    let all = [
        ("all", "together"),
        ("kernel", "as the kernel counts it: memory of its own, regions"),
        ("rss", "resident, with the program"),
        ("pss", "the same, what is shared by its part"),
        ("shared", "shared"),
        ("peers", "peers known between nodes"),
        ("contexts", "contexts"),
        ("connections", "connections"),
        ("forgotten", "peers forgotten"),
        ("packed", "peers whose messages nobody has received, in few bytes"),
        ("let_in", "peers let in beyond the budget, since nobody was forgotten for a second"),
    ];
    let all = all.iter().map(|(key, name)| row(&|at| n(at, key), name));
    std::iter::once(head).chain(parts).chain(all).collect::<Vec<_>>().join("\n")
}
