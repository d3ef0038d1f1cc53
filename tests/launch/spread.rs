//! Start-up without a root that holds everything: real ranks on pretended nodes, and what meeting has cost each of them.
//!
//! Lines that begin with `figure:` are for `tests/shows`. `FMPL_TEST_LONG` has 2000 ranks.

use super::environment::{SECRET, free_port};
use super::*;

/// Connections of a rank, and bytes of others that it reads, at most.
const CONNECTIONS: u64 = 24;
const BYTES: u64 = 64 << 10;

/// Starts the ranks one after the other in some order, each a process; what each has printed.
fn job(size: u32, each: u32, options: &[&str]) -> Vec<String> {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let said = dir.join(format!("spread-{}-{size}", std::process::id()));
    let file = std::fs::File::create(&said).unwrap();
    let start = |rank: u32| {
        let mut c = Command::new("timeout");
        c.args(["-k", "5", "240", &place()]).args(options);
        c.env("FMPL_RANK", rank.to_string()).env("FMPL_SIZE", size.to_string()).env("FMPL_ROOT", &root);
        c.env("FMPL_SECRET", SECRET).env("FMPL_NODE", (rank / each).to_string()).env("FMPL_START_TIMEOUT", "200");
        c.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file.try_clone().unwrap()).spawn().unwrap()
    };
    // A prime that does not divide the size: each rank once, and not in order.
    let step = if size.is_multiple_of(1009) { 1013 } else { 1009 };
    let mut ranks: Vec<Child> = (0..size).map(|k| start((k as u64 * step % size as u64) as u32)).collect();
    let codes: Vec<Option<i32>> = ranks.iter_mut().map(|rank| rank.wait().unwrap().code()).collect();
    let text = std::fs::read_to_string(&said).unwrap();
    std::fs::remove_file(&said).unwrap();
    assert!(codes.iter().all(|code| *code == Some(0)), "{}", &text[..text.len().min(4000)]);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_rank_has_few_connections_and_reads_little() {
    let size = if std::env::var_os("FMPL_TEST_LONG").is_some() { 2000 } else { 64 };
    // A value of 200 bytes, as a card may have; that of the next rank is read.
    let said = job(size, 4, &["200", "--next", "--costs"]);
    let read = format!(" of {size}, here [");
    assert_eq!(said.iter().filter(|l| l.contains(&read)).count(), size as usize);
    let costs: Vec<(u64, u64)> = said
        .iter()
        .filter_map(|l| l.split_once(": ")?.1.split_once(" connections, "))
        .map(|(connections, bytes)| (connections.parse().unwrap(), bytes.split(' ').next().unwrap().parse().unwrap()))
        .collect();
    assert_eq!(costs.len(), size as usize);
    let connections = costs.iter().map(|c| c.0).max().unwrap();
    let bytes = costs.iter().map(|c| c.1).max().unwrap();
    println!("figure: {size} ranks, 4 on a node: at most {connections} connections and {bytes} bytes read");
    assert!(connections <= CONNECTIONS && bytes <= BYTES, "{connections} connections, {bytes} bytes");
}

#[test]
fn each_rank_on_a_node_of_its_own_reads_what_all_have_put() {
    let said = job(20, 1, &["900"]);
    assert_eq!(said.iter().filter(|l| l.contains(" of 20, here [")).count(), 20);
}
