use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::ranks::calls::*;

/// Sends 1000 messages of 8 bytes to the next rank; with `DIES`, a directory, the last rank dies long before the end, when the numbers of all
/// have been written once.
pub fn passes_on() {
    init(8);
    let (me, ranks) = (rank(), size());
    for k in 0..1000u32 {
        sendrecv(&[k as u8; 8], (me + 1) % ranks, 1, &mut [0; 8], (me + ranks - 1) % ranks, 1);
    }
    if let Some(seen) = std::env::var_os("DIES") {
        let seen = |rank: i32| Path::new(&seen).join(rank.to_string());
        let mine = Path::new(&std::env::var_os("FMPL_STATS").unwrap()).join(me.to_string());
        while !std::fs::read_to_string(&mine).is_ok_and(|text| text.contains("[1000, 8000]")) {
            sleep_ms(10);
        }
        std::fs::write(seen(me), "").unwrap();
        if me == ranks - 1 {
            while !(0..ranks).all(|rank| seen(rank).exists()) {
                sleep_ms(10);
            }
            // SAFETY: no memory.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        recv(&mut [0; 8], ranks - 1, 2);
    }
    finalize();
}

/// What `fmpl run` says of a job of this body: its exit code, and its standard error.
fn run(ranks: usize, options: &[&str]) -> (i32, String) {
    let many = ranks.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fmpl"));
    command.args(["run", "-n", &many, "--timeout", "60", "--env", "RANKS_BODY=passes on"]).args(options).arg("--");
    let output = command.arg(std::env::current_exe().unwrap()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The same of one whose last rank dies.
fn run_to_a_death(ranks: usize, options: &[&str]) -> (i32, String) {
    let place = std::env::temp_dir().join(format!("fmpl-told-{}-{ranks}", std::process::id()));
    std::fs::create_dir(&place).unwrap();
    let ran = run(ranks, &[options, &["--stats", "--env", &format!("DIES={}", place.display())]].concat());
    std::fs::remove_dir_all(&place).unwrap();
    ran
}

pub fn table() {
    let (code, text) = run(2, &["--stats"]);
    assert_eq!(code, 0, "{text}");
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("1000 (8000 B)")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(text.contains("short") && !text.contains("moments before its end"), "{text}");
    // Nothing is told unasked.
    assert_eq!(run(2, &[]), (0, String::new()));
}

pub fn table_of_many() {
    let (code, text) = run(17, &["--stats", "--env", "FMPL_WAIT=block"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("all 17") && text.contains("17000 (136.0 KB)"), "{text}");
}

/// The same through daemons, as on several machines: each hands on what its ranks have counted, also of one that dies.
pub fn through_daemons() {
    let machines = ["--launch-agent", "env -u", "-H", "a:2,b:2"];
    let (code, text) = run(4, &[&machines[..], &["--stats"]].concat());
    assert_eq!(code, 0, "{text}");
    assert_eq!(text.lines().filter(|l| l.contains("1000 (8000 B)")).count(), 4, "{text}");
    let (code, text) = run_to_a_death(4, &machines);
    assert_eq!(code, 137, "{text}");
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("1000 (8000 B)")).collect();
    assert!(rows.len() == 4 && rows[3].contains("moments before its end: died of signal 9"), "{text}");
}

pub fn in_json() {
    let file = std::env::temp_dir().join(format!("fmpl-told-{}.json", std::process::id()));
    let (code, text) = run(2, &[&format!("--stats={}", file.display())]);
    assert_eq!((code, text.as_str()), (0, ""));
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let _ = std::fs::remove_file(&file);
    assert_eq!(all["code"], 0);
    for rank in 0..2 {
        let of = &all["ranks"][rank];
        assert_eq!((of["rank"].as_u64(), of["complete"].as_bool()), (Some(rank as u64), Some(true)), "{of}");
        assert_eq!(of["ways"]["short"], serde_json::json!([1000, 8000]), "{of}");
        assert_eq!(of["received"], 1000, "{of}");
        assert!(of["memory"].as_u64().unwrap() > 10_000, "{of}");
    }
}

pub fn of_the_dead() {
    let (code, text) = run_to_a_death(2, &[]);
    assert_eq!(code, 137, "{text}");
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("1000 (8000 B)")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[1].contains("of moments before its end: died of signal 9"), "{text}");
}

/// A launcher that was killed has left a directory behind, and the next one has its number, as in containers; or there is no place at all.
pub fn in_a_place_of_their_own() {
    let place = std::env::temp_dir().join(format!("fmpl-told-place-{}", std::process::id()));
    std::fs::create_dir(&place).unwrap();
    let run = |temporary: &Path, before: &str, agent: &str| {
        let script = format!("{before} exec \"$0\" run {agent} -n 1 --stats true");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_fmpl")]).env("TMPDIR", temporary);
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = run(&place, "mkdir $TMPDIR/fmpl-stats-$$;", "");
    assert!(code == 0 && text.contains("never joined the job"), "{code} {text}");
    // Of a daemon nobody knows the number beforehand.
    let (code, text) = run(
        &place,
        "for n in $(seq $$ $(($$ + 500))); do mkdir $TMPDIR/fmpl-stats-$n; done;",
        "--launch-agent 'env -u' -H a",
    );
    assert!(code == 0 && text.contains("never joined the job"), "{code} {text}");
    // Ranks are told it by a setting, which is text.
    let no_text = place.join(OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&no_text).unwrap();
    let (code, text) = run(&no_text, "", "");
    assert!(code == 1 && text.contains("TMPDIR must be UTF-8") && !text.contains("FMPL_STATS"), "{code} {text}");
    std::fs::remove_dir_all(&place).unwrap();
    let (code, text) = run(&place, "", "");
    assert!(code == 1 && text.contains(&format!("{}", place.display())), "{code} {text}");
}
