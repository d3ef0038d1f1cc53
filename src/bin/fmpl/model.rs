//! `fmpl model`: how much memory of a node message passing takes in a job of a given size, by the formulas of "A memory-saving design of an
//! InfiniBand communication library for massively parallel execution" (in Japanese; `docs/memory.md` says which of its ideas are FMPL's).
//!
//! The paper counts bytes of a node with m processes in a job of n, for a program that makes c communicators as large as the job, and in
//! which all processes talk to all others. Its erratum corrects formulas 4 and 11, and the values of "other", for which formula 7 has to be
//! taken m times, though it does not say so.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

mod startup;

#[derive(Args, Clone, Copy)]
pub struct Options {
    /// Nodes of the job
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    nodes: u64,
    /// Ranks on each node
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    ranks: u64,
    /// Contexts that a node keeps, each for a peer: the paper's gamma
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    contexts: u64,
    /// Communicators as large as the job
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=1 << 32))]
    communicators: u64,
    /// Instead: how long jobs of up to 2^20 ranks take to start, by simulation with what their words take on this machine
    #[arg(long)]
    startup: bool,
    /// As JSON, in bytes and nanoseconds
    #[arg(long)]
    json: bool,
}

/// A part of the library, as the paper's table 1 has them, and its bytes.
type Row = (&'static str, f64);

const GROUPS: &str = "groups";
const HIGH: &str = "high-level contexts";
const LOW: &str = "low-level contexts";
const BUFFERS: &str = "buffers";
const SWITCHING: &str = "switching of ways";
const SHARED: &str = "shared memory";
const LAUNCHER: &str = "process manager";
const OTHER: &str = "other";

/// Bytes of the registrations kept, as printed for a node and as corrected for a process; of packets being sent.
const CACHE: [f64; 2] = [32156187., 16078021.];
const SENDING: f64 = 327680.;

/// Bytes of a node. What is printed counts registrations and "other" once, what is corrected for each process.
struct Model {
    /// Ranks of the job, of a node; communicators, contexts.
    n: f64,
    m: f64,
    c: f64,
    contexts: f64,
}

/// What FMPL takes, as `fmpl info --memory` counts it over TCP (`tests/shows million` compares them); what a device keeps for a connection
/// comes on top. A context, by component: under the names by which they are counted there.
const CONTEXT: [(&str, f64); 4] = [
    ("lanes", 12288.),
    ("lanes: numbers and sides of their indices", 8192.),
    ("between nodes: state of indices", 1480.),
    ("between nodes: links with peers", 1104.),
];
/// Of a context too: the fronts of 32 indices, and the lane's page. The fronts of the library's own 32 come with each peer in a tree of nodes.
const FRONTS: f64 = 12288.;
const LIBRARY_FRONTS: f64 = 8192.;
/// The annexes of a rank, over TCP.
const ANNEXES: f64 = 6. * 20480.;
/// A communicator, for a rank: in a job of 4, and more each time that it doubles.
const COMMUNICATOR: [f64; 2] = [1488., 680.];
/// The table of registrations, for each.
const REGISTRATION: f64 = 97.;
/// A place of the node's tables of connections, contexts and rings.
const PLACE: f64 = 32.;
/// A ring: 16 receives of 4096 bytes, each with a route header in front. (By UDP the system has them, and only what is not received yet.)
const RING: f64 = 16. * 4160.;
/// What is known of how busy a peer is.
const SOURCE: f64 = 88.;
/// Connections, rings and registrations of a node, as they are without a setting.
const CONNECTIONS: f64 = 128.;
const RINGS: f64 = 256.;
const REGISTRATIONS: f64 = 65536.;
/// Of a rank: datagrams and bounce buffers; header and board of its region; table of lanes, doors, tables of the spool, stacks of three threads.
const STAGING: f64 = 32768. + 8. * 65536.;
const REGION: f64 = 8192.;
const PROCESS: f64 = 65536. + 32768. + 8192. + 3. * 16384.;
/// The keeper of a node: values that were asked for; an address of another keeper, of which there are 63 for each power of 64; a rank of the node.
const KEEPER: [f64; 3] = [32768., 24., 800.];

impl Model {
    fn new(o: &Options) -> Model {
        let [m, nodes, c, contexts] = [o.ranks, o.nodes, o.communicators, o.contexts].map(|v| v as f64);
        Model { n: nodes * m, m, c, contexts }
    }

    /// A connection and buffers for every rank (formulas 1 to 7), as printed: what the erratum adds is less than its digits show.
    fn baseline(&self) -> Vec<Row> {
        let Model { n, m, c, .. } = *self;
        let groups = (16. * c + 32.) * m * n
            + (8. * c + 16.) / m * n
            + (8. * c + 16.) * m * m
            + (848. * c + 2256.) * m
            + 408. * c
            + 816.;
        let buffers = (1360. * (n - m) + 16. + 4096. * 16. * (n - m)) * m;
        let values = 14. * n + 2. * n / m;
        vec![
            (GROUPS, groups),
            (HIGH, (480. * n + 16. + 64. * (n - 1.) + 396. * n + 8. * n + 16.) * m),
            (LOW, (672. + 31152. * (n - m) + 8. * n + 16.) * m),
            (BUFFERS, buffers + self.registrations(false)),
            (SHARED, 30. * m * n + 65716. * m * m + 4129094. * m + 2256.),
            (LAUNCHER, 179384. + 1096. * values + 32272. + 72. * values),
            (OTHER, self.other(false)),
        ]
    }

    /// The end of formulas 4 and 11.
    fn registrations(&self, corrected: bool) -> f64 {
        if corrected { (CACHE[1] + SENDING) * self.m } else { CACHE[0] + SENDING }
    }

    /// Formula 7.
    fn other(&self, corrected: bool) -> f64 {
        (65540. * self.m + 13067907.) * if corrected { self.m } else { 1. }
    }

    /// With the paper's ways to take less (formulas 7 to 15), corrected by the erratum or as they were printed.
    fn reduced(&self, corrected: bool) -> Vec<Row> {
        let Model { n, m, c, contexts: g } = *self;
        let groups =
            (4. * c + 8.) * n + ((40. * g + 856.) * c + 104. * g + 2208.) * m + (448. + 20. * g) * c + 40. * g + 960.;
        let rings = 16785408. + 1360. * 1024. + 16. + 65536. * 1024.;
        let history = if n <= 8192. { 8. * 1024. * n } else { 67108864. };
        let choice = (8. * 1024. + 16. * 1024. + 16.) * 16. + 8. * n + 16. + 165008. + 524304.;
        vec![
            (GROUPS, groups),
            (HIGH, 480. * g + 16. + 64. * (g - 1.) + 396. * g + 8. * n + 16.),
            (LOW, 24. * n + 168. * g + 5092928.),
            (BUFFERS, rings + self.registrations(corrected)),
            (SWITCHING, (history + choice) * m),
            (SHARED, 6. * m * n + 65756. * m * m + 4129094. * m + 2256.),
            (LAUNCHER, 179384. + 72. * (13. * m + 2.) + 32272.),
            (OTHER, self.other(corrected)),
        ]
    }
}

impl Model {
    /// With every budget full.
    fn ours(&self) -> Vec<Row> {
        let Model { n, m, c, contexts: g } = *self;
        let doublings = (n / 4.).log2().max(0.);
        let keepers = 63. * (n / m).log(64.).ceil().max(1.);
        vec![
            (GROUPS, (COMMUNICATOR[0] + COMMUNICATOR[1] * doublings) * (c + 1.) * m),
            (HIGH, CONTEXT.iter().map(|(_, bytes)| bytes).sum::<f64>() * g),
            (LOW, FRONTS * g + LIBRARY_FRONTS * (n / m).log2().ceil() + ANNEXES * m),
            (BUFFERS, STAGING * m + REGISTRATION * REGISTRATIONS + RING * RINGS),
            (SWITCHING, SOURCE * g),
            (SHARED, REGION * m + PLACE * (g + CONNECTIONS + RINGS)),
            (LAUNCHER, KEEPER[0] + KEEPER[1] * keepers + KEEPER[2] * m),
            (OTHER, PROCESS * m),
        ]
    }
}

/// The columns: what they are called, in JSON and in the table, and their rows.
fn columns(model: &Model) -> [(&'static str, &'static str, Vec<Row>); 4] {
    [
        ("baseline", "usual way", model.baseline()),
        ("printed", "paper, printed", model.reduced(false)),
        ("corrected", "paper, corrected", model.reduced(true)),
        ("ours", "FMPL", model.ours()),
    ]
}

fn sum(rows: &[Row]) -> f64 {
    rows.iter().map(|(_, bytes)| bytes).sum()
}

/// As a person reads it, of four digits at least.
fn text(bytes: f64) -> String {
    let (unit, name) =
        [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")].into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1e3, "kB"));
    format!("{:.4} {name}", bytes / unit)
}

pub fn main(o: &Options) -> ExitCode {
    if o.startup {
        return startup::main(o.ranks, o.json);
    }
    let columns = columns(&Model::new(o));
    if o.json {
        let of = |rows: &[Row]| -> Value {
            rows.iter()
                .map(|(name, bytes)| ((*name).to_owned(), json!(bytes)))
                .chain([("all".to_owned(), json!(sum(rows)))])
                .collect()
        };
        let found: Value = columns.iter().map(|(key, _, rows)| ((*key).to_owned(), of(rows))).collect();
        let job =
            json!({ "nodes": o.nodes, "ranks": o.ranks, "contexts": o.contexts, "communicators": o.communicators });
        let context: Value = CONTEXT.iter().map(|(name, bytes)| ((*name).to_owned(), json!(bytes))).collect();
        println!("{}", json!({ "job": job, "bytes_of_a_node": found, "context": context, "fronts": FRONTS }));
        return ExitCode::SUCCESS;
    }
    println!(
        "memory of a node, {} nodes of {} ranks, {} contexts, {} communicators (the paper's model; docs/memory.md)",
        o.nodes, o.ranks, o.contexts, o.communicators
    );
    let line = |name: &str, cells: [String; 4]| {
        println!("{name:20} {:>16} {:>16} {:>16} {:>16}", cells[0], cells[1], cells[2], cells[3])
    };
    line("", columns.each_ref().map(|(_, title, _)| (*title).to_owned()));
    for (name, _) in &columns[1].2 {
        let cell =
            |rows: &[Row]| rows.iter().find(|(n, _)| n == name).map_or("-".to_owned(), |(_, bytes)| text(*bytes));
        line(name, columns.each_ref().map(|(_, _, rows)| cell(rows)));
    }
    line("all", columns.each_ref().map(|(_, _, rows)| text(sum(rows))));
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(nodes: u64, ranks: u64) -> Model {
        Model::new(&Options { nodes, ranks, contexts: 1024, communicators: 10, startup: false, json: false })
    }

    fn mb(bytes: f64) -> f64 {
        (bytes / 1e5).round() / 10.
    }

    /// What a node takes is bounded by its budgets: by how large the job is in its logarithm only.
    #[test]
    fn ours_hardly_knows_how_large_the_job_is() {
        let [million, thousand] = [1 << 20, 1 << 10].map(|nodes| sum(&model(nodes, 4).ours()));
        assert!(million < 64e6 && million < 1.01 * thousand, "{million} {thousand}");
    }

    #[test]
    fn these_are_the_papers_numbers() {
        let million = model(1 << 20, 4);
        assert_eq!((sum(&million.baseline()) / 1e8).round(), 17359.); // 1.74 TB
        assert_eq!((sum(&million.reduced(false)) / 1e5).round(), 10007.); // 1.00 GB
        assert_eq!((sum(&million.reduced(true)) / 1e5).round(), 10738.); // 1.07 GB
        assert_eq!((sum(&model(9216, 1).reduced(false)) / 1e6).round(), 211.);
        let rows: Vec<_> = million.reduced(true).into_iter().map(|(name, bytes)| (name, mb(bytes))).collect();
        let table_1 = [
            (GROUPS, 203.7),
            (HIGH, 34.5),
            (LOW, 105.9),
            (BUFFERS, 150.9),
            (SWITCHING, 407.),
            (SHARED, 118.2),
            (LAUNCHER, 0.2),
            (OTHER, 53.3),
        ];
        assert_eq!(rows, table_1);
        // Its column of the usual way, to three digits.
        let usual: Vec<_> = million.baseline().iter().map(|(_, bytes)| format!("{bytes:.2e}")).collect();
        assert_eq!(usual, ["3.32e9", "1.59e10", "5.23e11", "1.12e12", "5.21e8", "7.10e10", "1.33e7"]);
    }
}
