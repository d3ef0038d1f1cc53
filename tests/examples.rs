//! Every example in Rust does what it says, on all the numbers of ranks that it allows.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The examples; the numbers of ranks; a line of rank 0's, `{n}` being that number.
const EXAMPLES: [(&str, &[usize], &str); 12] = [
    ("hello", &[1, 2, 3, 4], "rank 0 of {n} listens"),
    ("ping_pong", &[2, 3, 4], "one way, us"),
    ("ring", &[1, 2, 3, 4], "the sum of 1 to {n} is"),
    ("overlap", &[1, 2, 3, 4], "bytes moved while {n} ranks computed"),
    ("strided", &[2, 3, 4], "a block, 20 transposed rows and a triangle arrived"),
    ("halo_exchange", &[1, 2, 3, 4], "100 steps on {n} ranks: the same as on one"),
    ("work_queue", &[1, 2, 3, 4], "1000 tasks done by {n} ranks"),
    ("master_worker", &[1, 2, 3, 8], "multicasts to groups of"),
    ("work_counter", &[1, 2, 4], "1000 tasks done by {n} ranks"),
    ("hash_table", &[1, 2, 4], "ranks put 1000 keys each"),
    ("frames", &[1, 2, 3, 4], "100 frames were handed to"),
    ("async_tasks", &[2, 3, 4], "100 messages to each of {n} ranks, by tasks of one thread"),
];

/// Where the examples are; built when only this test was.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let here = Path::new(env!("CARGO_BIN_EXE_fmpl")).parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--examples"]).args(here.ends_with("release").then_some("--release"));
        cargo.env("CARGO_TARGET_DIR", here.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success());
        here.join("examples")
    })
}

fn run(name: &str, ranks: usize) -> Output {
    let mut c = Command::new("timeout");
    c.args(["-k", "5", "60", env!("CARGO_BIN_EXE_fmpl"), "run", "-n", &ranks.to_string(), "--"]);
    c.arg(directory().join(name)).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_rust_examples_do_what_they_say() {
    for (name, numbers, says) in EXAMPLES {
        for ranks in numbers {
            let output = run(name, *ranks);
            assert!(output.status.success(), "{name} on {ranks} ranks: {output:?}");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains(&says.replace("{n}", &ranks.to_string())), "{name} on {ranks} ranks says {said}");
        }
    }
}

#[test]
fn what_needs_two_ranks_says_so() {
    for name in ["ping_pong", "strided"] {
        let output = run(name, 1);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("needs two ranks"));
    }
}

/// The times of a machine on which a message costs 200 ns, and 8 senders as much.
const TIMES: &str = r#"{"take": 200, "send": 50, "counter": 40, "port": 10, "way": 30, "taking": 200, "sending": 50,
    "yields": 500, "wake": 20000, "woken": 40000, "processors": 2, "measured": {"8": 200}}"#;

#[test]
fn the_simulator_plays_the_times_that_it_is_given() {
    let place = std::env::temp_dir().join(format!("fmpl-incast-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let (times, picture) = (place.join("times.json"), place.join("incast.svg"));
    let play = |text: &str| {
        std::fs::write(&times, text).unwrap();
        let mut simulator = Command::new(directory().join("incast"));
        simulator.args(["--counts", "16,64", "--times"]).arg(&times).arg("--svg").arg(&picture).output().unwrap()
    };
    let output = play(TIMES);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("receiver's memory, 1") && said.contains("other nodes, 64"), "{said}");
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    // What it was not right about it does not go on from.
    let output = play(&TIMES.replace("\"8\": 200", "\"8\": 400"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("off by more than 20 % at 8 senders"), "{output:?}");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn the_simulator_measures_its_times() {
    let mut simulator = Command::new("timeout");
    simulator.args(["-k", "5", "300", env!("CARGO_BIN_EXE_fmpl"), "run", "-n", "33", "--bind", "none", "--"]);
    let output = simulator.arg(directory().join("incast")).args(["--rounds", "1", "--counts", "64"]).output().unwrap();
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A machine that does other things may have changed too often, or not be what the model is of.
    let refused = ["changes too often", "in no state", "off by more than", "a processor to itself"];
    let refused = output.status.code() == Some(1) && refused.iter().any(|text| why.contains(text));
    assert!(refused || output.status.success() && said.contains("32 senders"), "{output:?}");
    assert!(String::from_utf8_lossy(&run("incast", 2).stderr).contains("needs 33 ranks"));
}

#[test]
fn no_example_is_forgotten() {
    let examples = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let rust = |p: &PathBuf| p.extension().is_some_and(|e| e == "rs") || p.join("main.rs").exists();
    for file in examples.map(|e| e.unwrap().path()).filter(rust) {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        // `place` and `outside` belong to the tests of the launcher, and the simulator has tests of its own.
        let elsewhere = ["place", "outside", "incast"].contains(&&*name);
        assert!(elsewhere || EXAMPLES.iter().any(|(n, ..)| *n == name), "{name} is not run");
    }
}
