//! One body, every way: what messages promise, checked through the C functions on real processes, with each way of moving
//! them forced and with each way of waiting.
//!
//! | file | what it shows |
//! |---|---|
//! | `sizes` | every size in every mode by every pair of calls; order; many indices; to itself |
//! | `shapes` | blocks and lists; truncation |
//! | `requests` | what may overlap; cancel, probe; time-outs; delivery without the sender |
//! | `any` | receives of any index |
//! | `patience` | every message waits for its receive where that is asked for |
//! | `ways` | links change between datagrams and connections |
//! | `areas` | memory that the program brings along |
//! | `spool` | its size, its counts, what happens when it is full |
//! | `memory` | buffers in read-only, file, huge and shared memory |
//! | `threads` | many threads of both processes at once |
//! | `crowd` | three and four ranks |
//! | `few` | between nodes: many peers, few queue pairs |
//! | `memlock` | between nodes: little memory may be locked, or none |
//! | `wire` | between nodes: how many writes, bytes, copies |
//! | `bulk` | 65 536 indices; messages of more than 4 GiB |

#[path = "../ranks/mod.rs"]
mod ranks;

mod any;
mod areas;
mod bulk;
mod crowd;
mod few;
mod memlock;
mod memory;
mod patience;
mod requests;
mod shapes;
mod sizes;
mod spool;
mod threads;
mod ways;
mod wire;

use ranks::calls::*;
use ranks::{Body, Job, Test};

type Scene = (&'static str, fn(i32));

/// What two ranks do one after the other in one job.
const SCENES: &[Scene] = &[
    ("sizes", sizes::every_size_in_every_mode),
    ("order", sizes::order_on_one_index),
    ("many indices", sizes::many_indices_in_reverse_order),
    ("both ways", sizes::both_ways_at_once),
    ("to itself", sizes::to_itself),
    ("shapes", shapes::on_both_sides),
    ("shapes to itself", shapes::to_itself),
    ("truncated", shapes::truncated),
    ("shapes beyond the spool", shapes::beyond_the_spool),
    ("overlap", requests::what_may_overlap),
    ("cancelled", requests::cancelled),
    ("probed", requests::probed),
    ("isend spools", requests::isend_spools_after_its_time),
    ("more offers than blocks", requests::more_offers_than_blocks),
    ("prepared", requests::prepared),
    ("memory that the kernel does not copy", requests::memory_that_the_kernel_does_not_copy),
    ("moved offers", requests::moved_offers_keep_nothing),
    ("isend to itself", requests::isend_to_itself),
    ("beyond the spool", requests::longer_than_the_spool_both_ways),
    ("isend moves alone", requests::isend_moves_without_its_sender),
    ("irecv is filled alone", requests::irecv_is_filled_without_its_receiver),
    ("any: whatever comes", any::takes_whatever_comes),
    ("any: sent before", any::sees_what_was_sent_before),
    ("any: waiting senders", any::finds_waiting_senders),
    ("any: pending isends", any::finds_pending_isends),
    ("any: indexed first", any::leaves_indexed_receives_alone),
    ("any: cancelled", any::can_be_cancelled),
    ("any: truncated, probed", any::truncates_and_probes),
    ("any: itself", any::from_itself),
    ("any: posted", any::is_seen_when_posted),
    ("any: posted once", any::is_for_one_message),
    ("memory of every kind", memory::of_every_kind),
    ("threads", threads::on_their_own_indices),
    ("threads to any", threads::to_any_index),
    ("spool: counts", spool::counts),
    ("spool: counts beside a sender", spool::counts_beside_a_sender),
    ("spool: full, buffered", spool::full_and_buffered),
    ("spool: full, exchanged", spool::full_and_exchanged),
    ("spool: full, standard", spool::full_and_standard),
    ("spool: set again", spool::set_again),
];

/// The ways; each with a way of waiting, so that those are covered as well.
const WAYS: [&str; 10] = [
    "FMPL_SHM_PATH=auto FMPL_DISTANCE=shared",
    "FMPL_SHM_PATH=auto FMPL_WAIT=block FMPL_DISTANCE=apart",
    "FMPL_SHM_PATH=auto FMPL_CMA=off FMPL_DISTANCE=apart",
    "FMPL_SHM_PATH=spool FMPL_COPY=sse2",
    "FMPL_SHM_PATH=ring FMPL_TAKE_OVER=on FMPL_COPY=avx2",
    "FMPL_SHM_PATH=store FMPL_WAIT=spin",
    "FMPL_SHM_PATH=cma",
    "FMPL_SHM_PATH=coop FMPL_DISTANCE=apart",
    "FMPL_SHM_PATH=turn FMPL_TURN_MEMORY=2M",
    "FMPL_SHM_PATH=coop FMPL_CMA=off FMPL_WAIT=spin",
];

/// Scenes that have a job of their own: those of the spool count bytes, and threads must not spin when there are many.
const OF_THEIR_OWN: [&str; 2] = ["spool", "threads"];

/// A way without waits that only spin, for more threads than cores.
fn sharing(way: &str) -> String {
    way.replace("FMPL_WAIT=spin", "")
}

fn scenes() {
    init(4096);
    let only = std::env::var("SCENE").unwrap_or_default();
    let skip_alone = std::env::var("FMPL_CMA").is_ok_and(|v| v == "off")
        || std::env::var("FMPL_SHM_PATH").is_ok_and(|v| ["spool", "ring", "store", "turn"].contains(&v.as_str()));
    for (name, scene) in SCENES.iter().copied() {
        // Without the kernel's copy long data needs its sender.
        if !name.contains(&only)
            || only.is_empty() && OF_THEIR_OWN.iter().any(|prefix| name.starts_with(prefix))
            || skip_alone && name == "isend moves alone"
        {
            continue;
        }
        mode(10);
        barrier();
        let since = std::time::Instant::now();
        eprintln!("scene {name}");
        scene(rank());
        barrier();
        eprintln!("scene {name}: {:.2} s", since.elapsed().as_secs_f64());
    }
    if std::env::var_os(APART).is_some() {
        nothing_through_memory();
    }
    finalize();
}

/// Set where no two ranks share a node.
const APART: &str = "CONFORMANCE_APART";

/// Is a megabyte much here? In a short run between nodes, which is for links that lose packets.
fn slow_links() -> bool {
    ranks::short() && std::env::var_os(APART).is_some()
}

/// No byte has gone from rank to rank through shared memory.
fn nothing_through_memory() {
    use fmpl::Counter;
    for which in [Counter::ShmPeers, Counter::ShmMessages, Counter::ShmBytes] {
        assert_eq!(fmpl::comm::counter(which as i32).ok(), Some(0), "{which:?}");
    }
}

/// Packets that the RDMA devices have sent.
fn packets() -> u64 {
    let devices = std::fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
    let count = |file: &str, device: &std::path::Path| {
        std::fs::read_to_string(device.join("ports/1").join(file)).ok()?.trim().parse::<u64>().ok()
    };
    let packets = |d: std::fs::DirEntry| {
        count("hw_counters/sent_pkts", &d.path()).or_else(|| count("counters/port_xmit_packets", &d.path()))
    };
    devices.filter_map(packets).sum()
}

fn every_way() {
    let only = std::env::var("WAY").unwrap_or_default();
    // In a short run each way once, with one way of waiting.
    let again = |way: &str| way != WAYS[0] && way.contains("auto") || way == WAYS[WAYS.len() - 1];
    for way in WAYS.into_iter().filter(|w| w.contains(&only) && !(ranks::short() && again(w))) {
        let since = std::time::Instant::now();
        // Ranks that spin share their cores with whatever else runs: a limit for what stands still, not for what is slow.
        let outcome = Job::new(2, "scenes").settings(way).seconds(400).run();
        if std::env::var_os("SCENE").is_none() {
            Job::new(2, "scenes").settings(way).env("SCENE", "spool").run();
            Job::new(2, "scenes").settings(&sharing(way)).env("SCENE", "threads").run();
        }
        println!("  {way}: {:.1} s ({})", since.elapsed().as_secs_f64(), slowest(&ranks::complaints(&outcome)));
    }
}

/// The scenes that took longest, as rank 0 said.
fn slowest(said: &str) -> String {
    let mut took: Vec<(f64, &str)> = said
        .lines()
        .filter_map(|l| l.strip_prefix("scene ")?.strip_suffix(" s")?.rsplit_once(": "))
        .filter_map(|(name, seconds)| Some((seconds.parse().ok()?, name)))
        .collect();
    took.sort_by(|a, b| b.0.total_cmp(&a.0));
    took.dedup_by(|a, b| a.1 == b.1);
    took.iter().take(4).map(|(seconds, name)| format!("{name} {seconds:.1}")).collect::<Vec<_>>().join(", ")
}

/// Three ranks and four: some wait while others have the cores.
fn crowds() {
    for (k, way) in WAYS.into_iter().enumerate() {
        let since = std::time::Instant::now();
        let ranks = 3 + k % 2;
        Job::new(ranks, "crowd").settings(&sharing(way)).run();
        if ranks::long() {
            Job::new(7 - ranks, "crowd").settings(&sharing(way)).run();
        }
        println!("  {way}, {ranks} ranks: {:.1} s", since.elapsed().as_secs_f64());
    }
}

fn crowd() {
    init(64);
    for scene in [crowd::all_to_all, crowd::around, crowd::served] {
        scene(rank());
    }
    if std::env::var_os(APART).is_some() {
        nothing_through_memory();
    }
    finalize();
}

fn many_indices() {
    let ways = ["FMPL_SHM_PATH=auto", "FMPL_SHM_PATH=ring FMPL_WAIT=block", "FMPL_SHM_PATH=cma"];
    for way in &ways[..if ranks::short() { 1 } else { 3 }] {
        Job::new(2, "bulk of indices").settings(way).run();
    }
}

fn long_messages() {
    if !ranks::long() {
        return println!("  only with FMPL_TEST_LONG=1: it takes 9 to 13 GB of memory");
    }
    let only = std::env::var("WAY").unwrap_or_default();
    for way in WAYS.into_iter().filter(|w| w.contains(&only)) {
        let since = std::time::Instant::now();
        Job::new(2, "long messages").settings(way).seconds(600).run();
        println!("  {way}: {:.1} s", since.elapsed().as_secs_f64());
    }
}

/// The same between two nodes, where there are RDMA devices: see `tests/rig`.
fn between_nodes() {
    use fmpl::launch::embedded::Nodes;
    if !ranks::has_devices() {
        return;
    }
    let only = std::env::var("WAY").unwrap_or_default();
    // Emulated processors are slow: in a short run one way of waiting does.
    let ways = if std::env::var_os("RIG_SHORT").is_some() { 1 } else { 2 };
    for way in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block"].into_iter().filter(|w| w.contains(&only)).take(ways) {
        let since = std::time::Instant::now();
        let apart = |ranks: usize, body: &str| {
            Job::new(ranks, body).settings(way).nodes(Nodes::Cyclic(ranks as u32)).env(APART, 1).seconds(600)
        };
        let before = packets();
        let job = || apart(2, "scenes");
        job().run();
        assert!(ranks::in_software() || packets() > before, "the devices have sent nothing");
        if std::env::var_os("SCENE").is_none() {
            job().env("SCENE", "spool").run();
            job().env("SCENE", "threads").run();
            apart(4, "crowd").run();
            // The strict way differs for long messages only.
            for scene in ["memory", "overlap", "truncated"] {
                job().env("SCENE", scene).env("FMPL_VERBS_POLL", "cq").run();
            }
        }
        println!("  between nodes, {way}: {:.1} s", since.elapsed().as_secs_f64());
    }
}

/// Many peers and few queue pairs: each rank on a node of its own, and four ranks on each node.
fn few_queue_pairs() {
    use fmpl::launch::embedded::Nodes;
    if !ranks::has_devices() {
        return;
    }
    for (ranks, nodes, [pairs, contexts], messages) in [(13, 13, [128, 4], 60), (8, 4, [2, 4], 40), (3, 3, [1, 1], 30)]
        .into_iter()
        .take(std::env::var("FEW_JOBS").map_or(3, |n| n.parse().expect("a number")))
    {
        let messages = if ranks::long() { 40 * messages } else { messages };
        let messages = std::env::var("FEW_MESSAGES").map_or(messages, |n| n.parse().expect("a number"));
        let job = Job::new(ranks, "few queue pairs").nodes(Nodes::Cyclic(nodes)).env("FMPL_QUEUE_PAIRS", pairs);
        let job = job.env("FMPL_CONTEXTS", contexts);
        let job = job
            .env("FEW_MESSAGES", messages)
            .env("FEW_SEED", 1 + nodes)
            .env("FMPL_STALL", 60)
            .env("FMPL_WAIT", "block");
        let outcome = job.seconds(if ranks::long() { 3000 } else { 200 }).run();
        let said = |rank: usize| -> ([u64; 2], f64) {
            let text = ranks::said(&outcome, rank);
            let words: Vec<&str> = text.split_whitespace().collect();
            let ["retired", retired, "and", "put", "away", away, "in", time, "s"] = words[..] else { panic!("{text}") };
            ([retired, away].map(|n| n.parse().expect("a count")), time.parse().expect("seconds"))
        };
        let [retired, away] = [0, 1].map(|n| (0..ranks).map(|rank| said(rank).0[n]).sum::<u64>());
        assert!(
            retired >= ranks as u64 && away >= ranks as u64,
            "{retired} connections given up and {away} contexts put away by {ranks} ranks"
        );
        let rate = messages as f64 / said(0).1;
        println!(
            "  {ranks} ranks on {nodes} nodes, {pairs} queue pairs and {contexts} contexts each: {messages} messages, {retired} connections \
             given up, {away} contexts put away, {rate:.1} messages/s"
        );
    }
}

/// What a rank takes for peers of other nodes does not grow with how many there are: it forgets them.
fn many_peers_one_after_the_other() {
    use fmpl::launch::embedded::Nodes;
    if !ranks::has_devices() {
        return;
    }
    // Where processors are emulated each takes seconds.
    let few = if std::env::var_os("RIG_SHORT").is_some() { 21 } else { 33 };
    let ranks =
        std::env::var("FEW_RANKS").map_or(if ranks::long() { 160 } else { few }, |n| n.parse().expect("a number"));
    let job = Job::new(ranks, "peers in turn").nodes(Nodes::Cyclic(ranks as u32)).env("FMPL_QUEUE_PAIRS", 2);
    let outcome = job.env("FMPL_CONTEXTS", 4).env("FMPL_STALL", 60).env("FMPL_WAIT", "block").seconds(600).run();
    let text = ranks::said(&outcome, 0);
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, "forgotten,", early, "bytes", .., late, "after", _] = words[..] else { panic!("{text}") };
    let [early, late] = [early, late].map(|n| n.parse::<i64>().expect("a number"));
    println!("  {text}");
    // A page here and there: threads, and maps that are a little larger just now.
    assert!(late - early <= 64 << 10, "{} bytes more: {text}", late - early);
}

/// Random traffic among four nodes, job after job, each drawn anew, for the seconds that RIG_SOAK says: for links that lose packets.
fn soak() {
    use fmpl::launch::embedded::Nodes;
    let Some(seconds) = std::env::var("RIG_SOAK").ok().map(|text| text.parse().expect("a number of seconds")) else {
        return println!("  only with RIG_SOAK=seconds, in tests/rig");
    };
    let (since, messages) = (std::time::Instant::now(), 400);
    let mut jobs = 0;
    while since.elapsed().as_secs() < seconds {
        let job =
            Job::new(4, "few queue pairs").nodes(Nodes::Cyclic(4)).settings("FMPL_QUEUE_PAIRS=128 FMPL_CONTEXTS=1024");
        job.env("FEW_MESSAGES", messages).env("FEW_SEED", 100 + jobs).env("FMPL_WAIT", "block").seconds(600).run();
        jobs += 1;
    }
    println!("  {} messages in {jobs} jobs, {:.0} s", jobs * messages, since.elapsed().as_secs_f64());
}

/// Messages that are longer than what may be locked, at one end or at both; and nothing may be locked at all.
fn little_locked_memory() {
    use fmpl::launch::embedded::Nodes;
    if !ranks::has_devices() {
        return;
    }
    let job = |body: &str| Job::new(2, body).nodes(Nodes::Cyclic(2));
    for limited in ["01", "0"] {
        let since = std::time::Instant::now();
        let outcome = job("little locked memory").env("MEMLOCK_RANKS", limited).seconds(300).run();
        let slowest = slowest(&ranks::complaints(&outcome));
        println!("  ranks {limited} limited: {:.1} s ({slowest})", since.elapsed().as_secs_f64());
    }
    job("no more locked memory").run();
    // None; enough to take part, but not for a connection; for a connection, but not for a long message.
    for most in [0, 100 << 10, 160 << 10, 240 << 10] {
        let job = job("hardly any locked memory").env("MEMLOCK", most).env("FMPL_ATTACH_TIMEOUT", 5);
        let outcome = job.keep_going().outcome();
        let said: Vec<String> = (0..2).map(|rank| ranks::said(&outcome, rank)).collect();
        said.iter().for_each(|text| print!("  {most} bytes may be locked: {text}"));
        let names = |text: &String| memlock::names_the_limit(text) || memlock::names_whose_limit(text);
        assert!(said.iter().all(|text| text == "well\n") || said.iter().any(names));
        assert!(most != 0 || said.iter().all(|text| memlock::names_the_limit(text)));
    }
}

/// How much goes over the wire between nodes.
fn writes_are_counted() {
    use fmpl::launch::embedded::Nodes;
    if !ranks::has_devices() {
        return;
    }
    let outcome = Job::new(2, "wire").nodes(Nodes::Cyclic(2)).env("FMPL_WAIT", "spin").run();
    (0..2).for_each(|rank| print!("{}", ranks::said(&outcome, rank)));
}

/// A short message on a node, step by step; in an optimised build, since others say nothing and take their time.
fn steps_on_a_node() {
    if cfg!(debug_assertions) {
        return println!("  counted in optimised builds only");
    }
    let outcome = Job::new(2, "steps").env("FMPL_WAIT", "spin").run();
    (0..2).for_each(|rank| print!("{}", ranks::said(&outcome, rank)));
}

fn in_steps() {
    init(256);
    mode(10);
    wire::instructions(rank());
    finalize();
}

fn on_the_wire() {
    init(256);
    mode(10);
    for scene in [wire::posted, wire::ping_pong, wire::instructions, wire::long, wire::strided, wire::lasting] {
        scene(rank());
    }
    finalize();
}

const TESTS: &[Test] = &[
    ("every_way_keeps_every_promise", every_way),
    ("every_promise_is_kept_between_nodes", between_nodes),
    ("many_peers_share_few_queue_pairs_between_nodes", few_queue_pairs),
    ("many_peers_one_after_the_other_between_nodes", many_peers_one_after_the_other),
    ("links_change_ways_under_random_traffic", ways::random),
    ("the_busiest_are_connected", ways::busiest),
    ("random_traffic_goes_on_and_on_between_nodes", soak),
    ("little_locked_memory_will_do_between_nodes", little_locked_memory),
    ("areas_of_the_program_are_used_between_nodes", areas::test),
    ("every_message_waits_where_it_is_asked_to", patience::test),
    ("what_goes_over_the_wire_is_counted", writes_are_counted),
    ("steps_of_a_short_message_on_a_node", steps_on_a_node),
    ("three_ranks_and_four", crowds),
    ("indices_by_the_ten_thousands", many_indices),
    ("messages_of_more_than_4_gib", long_messages),
    ("a_chain_of_millions_of_messages_goes_on", bulk::millions),
];
const BODIES: &[Body] = &[
    ("scenes", scenes),
    ("wire", on_the_wire),
    ("steps", in_steps),
    ("little locked memory", memlock::little),
    ("hardly any locked memory", memlock::hardly_any),
    ("no more locked memory", memlock::no_more),
    ("few queue pairs", few::random_traffic),
    ("peers in turn", few::peers_in_turn),
    ("areas", areas::body),
    ("patience", patience::body),
    ("busiest", ways::phases),
    ("crowd", crowd),
    ("bulk of indices", bulk::indices),
    ("long messages", bulk::lengths),
    ("millions", bulk::millions_of_messages),
];

fn main() {
    ranks::main(TESTS, BODIES);
}
