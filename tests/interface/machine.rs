//! What `fmpl info` and `fmpl doctor` say, to people and to programs.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::programs::built_command;
use crate::skip;

fn fmpl(words: &[&str]) -> Output {
    Command::new(built_command()).args(words).env("FMPL_EAGER", "2k").output().expect("it starts")
}

fn json(words: &[&str]) -> Value {
    let output = fmpl(words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {output:?}"))
}

#[test]
fn info_is_for_programs_too() {
    let all = json(&["info", "--json"]);
    assert_eq!(all["version"], env!("CARGO_PKG_VERSION"));
    assert!(all["page_size"].as_u64().is_some_and(u64::is_power_of_two), "{all}");
    let settings = all["settings"].as_array().expect("settings");
    let eager = settings.iter().find(|s| s["name"] == "FMPL_EAGER").expect("a setting");
    assert_eq!(eager["value"], "2k");
    assert!(settings.iter().any(|s| s["value"].is_null()), "{settings:?}");
    let text = String::from_utf8(fmpl(&["info"]).stdout).expect("a text");
    for s in settings {
        assert!(text.contains(s["name"].as_str().expect("a name")), "{s}");
    }
    assert!(all["tuning"]["numbers"]["take_over"]["near"].is_string(), "{}", all["tuning"]);
}

#[test]
fn info_of_some_settings() {
    for name in ["FMPL_EAGER", "eager"] {
        let output = fmpl(&["info", name]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("FMPL_EAGER") && text.contains("now 2k"), "{text}");
        assert!(!text.contains("FMPL_SPOOL "), "{text}");
        assert_eq!(json(&["info", "--json", name])["settings"][0]["value"], "2k");
    }
    let none = fmpl(&["info", "nonsense"]);
    assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("no setting has nonsense"));
}

#[test]
fn doctor_is_for_programs_too() {
    let all = json(&["doctor", "--json"]);
    let findings = all["findings"].as_array().expect("findings");
    assert!(findings.len() > 10, "{all}");
    let count = |level| findings.iter().filter(|f| f["level"] == level).count() as u64;
    assert_eq!((all["problems"].as_u64(), all["notes"].as_u64()), (Some(count("problem")), Some(count("note"))));
    assert!(findings.iter().all(|f| f["name"].is_string() && f["found"].is_string()), "{all}");
}

/// As under `| head -1`.
#[test]
fn nobody_reads_to_the_end() {
    let mut info = Command::new(built_command())
        .arg("info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(info.stdout.take());
    let mut said = String::new();
    info.stderr.take().expect("a pipe").read_to_string(&mut said).expect("a text");
    info.wait().expect("its end");
    assert_eq!(said, "");
}

/// What the doctor has found of this name: how bad it is, and what it is.
fn found(doctor: &mut Command, name: &str) -> (String, String) {
    let output = doctor.args(["doctor", "--json"]).output().expect("it starts");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let findings = all["findings"].as_array().expect("findings");
    let it = findings.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("{all}"));
    let word = |key: &str| it[key].as_str().expect("a text").to_owned();
    (word("level"), word("found") + ", " + &word("costs"))
}

#[test]
fn a_setting_that_is_no_text_is_not_passed_over() {
    let mut doctor = Command::new(built_command());
    let (level, said) = found(doctor.env("FMPL_WAIT", OsStr::from_bytes(b"bl\xffck")), "settings");
    assert!(level == "problem" && said.contains("FMPL_WAIT=bl\u{fffd}ck: possible values: spin"), "{level}: {said}");
}

/// Refuses a system call by this error from here on, and in what is executed.
fn refuse(call: libc::c_long, by: libc::c_int) -> std::io::Result<()> {
    let step = |code: u32, k, jf| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | by as u32, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: numbers, and a program of four steps.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Gives the command where it cannot make this system call. `None`: that cannot be had here, and the test is skipped.
fn without(call: libc::c_long, by: libc::c_int) -> Option<impl Fn() -> Command> {
    let sandboxed = move |program: &Path| {
        let mut command = Command::new(program);
        // SAFETY: between fork and exec there are two system calls, and no memory but the stack.
        unsafe { command.pre_exec(move || refuse(call, by)) };
        command
    };
    if let Err(e) = sandboxed(Path::new("true")).status() {
        skip::skip(&format!("a process cannot refuse itself system calls (seccomp): {e}"));
        return None;
    }
    Some(move || sandboxed(built_command()))
}

/// What it says of a job that it does not start.
fn refused(mut command: Command) -> String {
    let job = command.args(["run", "-n", "1", "true"]).output().expect("it starts");
    assert_eq!(job.status.code(), Some(1), "{job:?}");
    String::from_utf8_lossy(&job.stderr).into_owned()
}

/// In a sandbox of before Linux 5.3.
#[test]
fn without_descriptors_of_processes_no_job_starts_and_the_doctor_says_so() {
    let Some(sandboxed) = without(libc::SYS_pidfd_open, libc::EPERM) else { return };
    let (level, said) = found(&mut sandboxed(), "death notices (pidfd)");
    assert!(
        level == "problem" && said.contains("pidfd_open") && said.contains("fmpl run starts no job"),
        "{level}: {said}"
    );
    let said = refused(sandboxed());
    assert!(said.contains("a sandbox that allows the call"), "{said}");
}

#[test]
fn the_limit_of_processes_is_named() {
    let Some(limited) = without(libc::SYS_clone, libc::EAGAIN) else { return };
    let said = refused(limited());
    assert!(said.contains("`ulimit -u`"), "{said}");
}
