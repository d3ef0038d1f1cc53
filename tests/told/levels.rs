use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use fmpl::base::system::cpus::CpuSet;

use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, skipped, story};

const LONG: usize = 2 << 20;

/// Rank 0 sends what nobody receives yet, and waits for rank 1, which is late.
pub fn is_made_wait() {
    init(8);
    if rank() == 0 {
        send(&vec![7; LONG], 1, 1);
        recv(&mut [0; 8], 1, 2);
    } else {
        sleep_ms(1500);
        send(&[1; 8], 0, 2);
        recv(&mut vec![0; LONG], 0, 1);
    }
    finalize();
}

/// A piece of text that a level tells, and the first level that does.
const TOLD: [(&str, usize); 8] = [
    ("stalled: rank 0: ", 1),
    ("rank 0: FMPL_NONSENSE is no setting", 2),
    ("rank 0: FMPL_NETWORKS is no setting of FMPL; did you mean FMPL_NETWORK?", 2),
    ("rank 1: FMPL_NONSENSE is no setting", 3),
    ("rank 1: 2 ranks; node 0 of 1", 3),
    ("; settings: ", 3),
    ("rank 0: lane to rank 1 in communicator 0 by shared memory with process ", 4),
    ("rank 0: messages without a receive have come to take ", 4),
];

pub fn each_level() {
    for (level, name) in ["off", "error", "warn", "info", "debug"].into_iter().enumerate() {
        let settings = format!("FMPL_STALL=0.3 FMPL_NONSENSE=1 FMPL_NETWORKS=none FMPL_LOG={name}");
        let outcome = Job::new(2, "is made wait").settings(&settings).run();
        let text = complaints(&outcome);
        for (piece, first) in TOLD {
            assert_eq!(text.contains(piece), level >= first, "{name}: {piece}: {text}");
        }
        let named =
            |l: &str| ["fmpl: rank 0: ", "fmpl: rank 1: ", "fmpl: stalled: rank "].iter().any(|n| l.starts_with(n));
        // Events follow the report of a stall, where they are compiled in.
        let event = |l: &str| cfg!(feature = "trace") && l.starts_with(' ');
        assert!(text.lines().all(|l| named(l) || event(l)), "{name}: {}", story(&outcome));
    }
}

/// A launcher that may use one core has it for all ranks, however many the machine has: as `taskset` and control groups have it.
pub fn one_core() {
    let first = CpuSet::allowed().unwrap().cpus()[0];
    for machine in [&[][..], &["--launch-agent", "env -u", "-H", "a:2"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fmpl"));
        command.args(["run", "-n", "2", "--timeout", "60", "--env", "RANKS_BODY=passes on", "--env", "FMPL_LOG=info"]);
        command.args(machine).arg("--").arg(std::env::current_exe().unwrap());
        let one = CpuSet::of_cpus([first]);
        // SAFETY: between fork and exec there is a system call, and memory that is there.
        unsafe { command.pre_exec(move || one.apply()) };
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.matches(", 1 cores, which they share; ").count() == 2, "{text}");
    }
}

/// Ranks that are begun within a job of `fmpl run`, but not by it, may have its variables, and so may one of them only. They do not go by them.
pub fn of_another_launcher() {
    if fmpl::base::processor::cores() < 2 {
        return skipped("this machine has one core");
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ranks = ["0", "1"].map(|rank| {
        let mut command = Command::new("timeout");
        command.arg("60").arg(std::env::current_exe().unwrap());
        command.envs([("RANKS_BODY", "passes on"), ("FMPL_LOG", "info"), ("FMPL_RANK", rank), ("FMPL_SIZE", "2")]);
        command.env("FMPL_ROOT", format!("127.0.0.1:{port}")).env("FMPL_SECRET", "0123456789abcdef");
        if rank == "0" {
            command.env("FMPL_RUN", "1").env("FMPL_CORES", "1");
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("2 of them, ") && !text.contains(", 1 cores"), "{text}");
    }
}
