//! Four real ranks among many that one process answers for (`fmpl info --memory --world N --ghosts K`): what a rank takes does not depend on the size of
//! the world, nor on how many peers it has had to do with, and ghosts speak the protocol to the end.

use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run says, as JSON.
fn run(world: u32, ghosts: u32, more: &[&str], contexts: u32) -> Value {
    let mut info = Command::new("timeout");
    info.args(["-k", "5", "300", env!("CARGO_BIN_EXE_fmpl"), "info", "--memory", "--json"]);
    info.args(["--world", &world.to_string(), "--ghosts", &ghosts.to_string()]).args(more);
    info.env("FMPL_NETWORK", "udp").env("FMPL_CONTEXTS", contexts.to_string());
    let output = info.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One number of one look of each rank.
fn of_ranks(found: &Value, look: &str, what: &str) -> Vec<u64> {
    let ranks = found["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.len(), 4);
    ranks.iter().map(|rank| rank[look][what].as_u64().expect("a number")).collect()
}

fn sum(found: &Value, look: &str, what: &str) -> u64 {
    of_ranks(found, look, what).iter().sum()
}

#[test]
fn a_rank_takes_the_same_in_every_world() {
    let alone = |world| of_ranks(&run(world, 8, &[], 1024), "before", "all");
    let small = alone(1 << 12);
    assert_eq!(alone(1 << 17), small);
    assert_eq!(alone(1 << 22), small, "and the last rank of such a world is reached");
}

#[test]
fn who_has_sent_and_was_answered_is_forgotten() {
    let found = run(1 << 20, 100, &[], 1024);
    assert_eq!(found["answered"], 100);
    assert_eq!(sum(&found, "with", "peers"), 100, "as long as there is room for all");
    assert_eq!([sum(&found, "after", "peers"), sum(&found, "after", "forgotten")], [0, 100]);
    let took = sum(&found, "with", "all") - sum(&found, "before", "all");
    let stays = sum(&found, "after", "all") - sum(&found, "before", "all");
    assert!(stays * 20 < took, "{stays} of {took} bytes stay");
    let [before, after] = ["before", "after"].map(|look| of_ranks(&found, look, "all"));
    for (before, after) in before.into_iter().zip(after) {
        assert!(after * 20 <= before * 21, "{after} bytes after the last of them, {before} before");
    }
}

#[test]
fn more_peers_than_contexts_take_no_more() {
    let [few, many] = [64, 600].map(|ghosts| run(1 << 20, ghosts, &[], 32));
    let [known, let_in] = ["peers", "let_in"].map(|what| sum(&many, "with", what));
    assert!(
        known <= 32 + 4 * 20 + let_in,
        "{known} peers are known, of which {let_in} were let in as nobody was forgotten"
    );
    // One that is slow to answer is forgotten, met again and forgotten again.
    let met = sum(&many, "after", "forgotten") + sum(&many, "after", "peers");
    assert!((600..660).contains(&met), "{met} peers were met");
    let [few, many] = [&few, &many].map(|found| sum(found, "with", "all"));
    assert!(many <= few + few / 4, "{many} bytes for 600 peers, {few} for 64");
}

#[test]
fn peers_in_turn_and_the_first_again() {
    let found = run(1 << 22, 400, &["--in-turn"], 16);
    assert_eq!([sum(&found, "after", "peers"), sum(&found, "before", "peers")], [0, 0]);
    assert!(sum(&found, "with", "forgotten") > 300, "{found}");
}

/// Of those whose messages nobody receives yet little is kept; they are there when they are asked for.
#[test]
fn messages_that_are_received_late() {
    let found = run(1 << 20, 100, &["--incast", "--late", "1"], 32);
    let [known, let_in] = ["peers", "let_in"].map(|what| of_ranks(&found, "late", what)[0]);
    assert!(known <= 32 + 4 + 16 + let_in, "{known} peers are known before anything is received");
    assert_eq!([found["answered"].as_u64(), Some(sum(&found, "after", "peers"))], [Some(100), Some(0)]);
}

/// The same of many more: of each of those beyond the budget little more than its message is kept.
#[test]
fn messages_that_are_received_late_take_little() {
    let found = run(1 << 20, 300, &["--incast", "--late", "3"], 32);
    let [known, packed, let_in] = ["peers", "packed", "let_in"].map(|what| of_ranks(&found, "late", what)[0]);
    assert!(known <= 32 + 4 + 16 + let_in, "{known} are known, {let_in} of them let in");
    let bytes = found["ranks"][0]["late"]["parts"]["between nodes: peers that are packed"].as_u64().unwrap_or(0);
    // And a block or two that are not full.
    assert!(bytes <= 64 * packed + 128, "{bytes} bytes for {packed}");
    assert!(of_ranks(&found, "with", "ever_packed")[0] > 0, "{found}");
    let after = |what| sum(&found, "after", what);
    assert_eq!(
        [found["answered"].as_u64(), Some(after("peers")), Some(after("packed"))],
        [Some(300), Some(0), Some(0)]
    );
}

#[test]
fn one_rank_and_peers_in_turn() {
    let found = run(1 << 22, 600, &["--in-turn", "--incast"], 16);
    let [before, with] = ["before", "with"].map(|look| of_ranks(&found, look, "all")[0]);
    let places = 16 + 2 + 16;
    assert!(with <= before + places * 40_000, "{with} bytes after 600 peers, {before} before the first");
    assert!(of_ranks(&found, "with", "forgotten")[0] > 500, "{found}");
}

#[test]
fn a_node_has_the_ranks_of_a_communicator_once() {
    let found = run(1 << 20, 0, &["--communicators", "3"], 1024);
    let of = |look: &str| -> Vec<u64> {
        let ranks = found["ranks"].as_array().expect("ranks");
        ranks.iter().map(|rank| rank[look]["parts"]["ranks of communicators"].as_u64().unwrap_or(0)).collect()
    };
    assert_eq!(of("after"), [0; 4]);
    let [first, others @ ..] = &of("communicators")[..] else { panic!("no ranks") };
    assert_eq!(others, [0; 3], "{found}");
    // A bit for each rank of the world, the members before each 64th word, and a page at the end.
    assert!((3 << 17..3 * ((1 << 17) + (1 << 10) + 2 * 4096)).contains(first), "{first} bytes");
}

/// All at once, two numbered messages each, to a rank that has places for few of them: each is received in its order, and those without a place wait
/// where they are.
#[test]
fn incast() {
    let found = run(1 << 20, 300, &["--incast"], 32);
    assert_eq!(found["answered"], 300);
    let [known, let_in] = ["peers", "let_in"].map(|what| of_ranks(&found, "with", what)[0]);
    assert!(
        known <= 32 + 4 + 16 + 32 + let_in,
        "{known} peers are known, of which {let_in} were let in as nobody was forgotten"
    );
}

/// The same of processes on nodes of their own, with fewer connections than senders.
#[test]
fn incast_of_processes() {
    let mut info = Command::new("timeout");
    info.args(["-k", "5", "100", env!("CARGO_BIN_EXE_fmpl"), "info", "--memory", "13", "--incast"]);
    info.env("FMPL_NETWORK", "tcp:lo").env("FMPL_QUEUE_PAIRS", "4").env("FMPL_CONTEXTS", "8");
    let output = info.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [senders, connections, contexts, sockets] =
        ["senders", "connections", "contexts", "sockets"].map(|what| found[what].as_u64().expect("a number"));
    assert_eq!(senders, 12);
    assert!(connections <= 4 && contexts <= 8 && sockets <= 4, "{found}");
}
