//! `fmpl doctor`: tries what the library needs of this machine, for real where that can be done, and says what is missing, what that
//! costs and how to mend it. Ends with 1 when something is broken, with 0 when there are only notes.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::ExitCode;

use fmpl::base::config::{self, Config};
use fmpl::base::library::Library;
use fmpl::base::processor::Processor;
use fmpl::base::system;
use fmpl::base::tuning::{Whence, find};
use serde_json::{Value, json};

mod network;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Good,
    /// Works, with something to know.
    Note,
    /// Something does not work, or costs much.
    Problem,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Problem => "PROBLEM",
        })
    }
}

/// One finding.
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What that costs; empty when nothing.
    pub costs: &'static str,
    /// How to mend it; empty when there is nothing to mend.
    pub mend: &'static str,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Finding {
        Finding { name, level: Level::Good, found: found.into(), costs: "", mend: "" }
    }
    fn note(name: &'static str, found: impl Into<String>, costs: &'static str, mend: &'static str) -> Finding {
        Finding { name, level: Level::Note, found: found.into(), costs, mend }
    }
    fn problem(name: &'static str, found: impl Into<String>, costs: &'static str, mend: &'static str) -> Finding {
        Finding { name, level: Level::Problem, found: found.into(), costs, mend }
    }
}

/// The command.
pub fn main(json: bool) -> ExitCode {
    let findings = examine();
    let count = |level| findings.iter().filter(|f| f.level == level).count();
    let (problems, notes) = (count(Level::Problem), count(Level::Note));
    if json {
        println!("{:#}", json!({ "findings": as_json(&findings), "problems": problems, "notes": notes }));
    } else {
        print(&findings);
        println!("\n{problems} problems, {notes} notes.");
    }
    if problems > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What was found, for programs.
pub fn as_json(findings: &[Finding]) -> Vec<Value> {
    let one = |f: &Finding| json!({ "name": f.name, "level": f.level.to_string().to_lowercase(), "found": f.found, "costs": f.costs, "mend": f.mend });
    findings.iter().map(one).collect()
}

fn print(findings: &[Finding]) {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for f in findings {
        println!("{:<7}  {:<width$}  {}", f.level.to_string(), f.name, f.found);
        for (word, text) in [("costs", f.costs), ("mend", f.mend)] {
            if !text.is_empty() {
                println!("{:9}{:<width$}  {word}: {text}", "", "");
            }
        }
    }
}

/// Everything that is looked at.
pub fn examine() -> Vec<Finding> {
    let mut all = vec![cma(), ptrace_scope(), cores(), processor_quota(), memfd(), sockets(), pidfd(), membarrier()];
    all.extend([open_files(), locked_memory(), huge_pages(), settings(), tuning()]);
    all.push(network::network());
    all.extend(network::rdma());
    all.extend(libraries());
    all
}

/// Copies between two sibling processes, as between two ranks: one is not the other's parent, which matters to Yama.
fn cma() -> Finding {
    const NAME: &str = "one-copy transfer (CMA)";
    const COSTS: &str = "messages above some 16 KB are copied twice, through shared memory: about half the bandwidth";
    const MEND: &str = "in a container allow the system call process_vm_writev (podman and docker: --cap-add=SYS_PTRACE, or a seccomp \
                        profile with it); on a host: sysctl kernel.yama.ptrace_scope=0";
    let plain = siblings_copy(false);
    if plain == 0 {
        return Finding::good(NAME, "works between processes of one user (tried with two)");
    }
    let why = std::io::Error::from_raw_os_error(plain);
    if plain == libc::EPERM && siblings_copy(true) == 0 {
        return Finding::good(NAME, "works once a process has allowed it by prctl(PR_SET_PTRACER) (tried with two)");
    }
    Finding::problem(NAME, format!("process_vm_writev between two processes: {why}"), COSTS, MEND)
}

/// Forks two children; the second reads and writes the first one's memory. 0, or the errno.
fn siblings_copy(allow: bool) -> i32 {
    let mut ready = [0i32; 2];
    let mut word = 0x5157_1234_u64;
    let there: *mut u64 = &mut word;
    // SAFETY: this command has one thread, so the children may go on running Rust code; they only make system calls on their own
    // stack's memory and leave by _exit. Both are waited for.
    unsafe {
        if libc::pipe(ready.as_mut_ptr()) != 0 {
            return errno();
        }
        let target = libc::fork();
        if target == 0 {
            if allow {
                libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX);
            }
            // Volatile here and below: the compiler does not see that another process looks.
            there.write_volatile(42);
            libc::write(ready[1], [1u8].as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
        if target < 0 {
            return errno();
        }
        let mut byte = 0u8;
        libc::read(ready[0], (&raw mut byte).cast(), 1);
        let other = libc::fork();
        if other == 0 {
            let mut mine = 0u64;
            let here = &raw mut mine;
            let local = libc::iovec { iov_base: here.cast(), iov_len: 8 };
            let remote = libc::iovec { iov_base: there.cast(), iov_len: 8 };
            let n = libc::process_vm_readv(target, &local, 1, &remote, 1, 0);
            if n != 8 || here.read_volatile() != 42 {
                libc::_exit(if n < 0 { errno() } else { libc::EIO });
            }
            here.write_volatile(43);
            let n = libc::process_vm_writev(target, &local, 1, &remote, 1, 0);
            libc::_exit(if n == 8 { 0 } else { errno() });
        }
        let mut status = 0;
        let code = if other > 0 && libc::waitpid(other, &mut status, 0) == other && libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            libc::EIO
        };
        libc::kill(target, libc::SIGKILL);
        libc::waitpid(target, &mut status, 0);
        libc::close(ready[0]);
        libc::close(ready[1]);
        code
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|t| t.trim().to_string())
}

fn ptrace_scope() -> Finding {
    const NAME: &str = "ptrace scope (Yama)";
    const MEND: &str = "sysctl kernel.yama.ptrace_scope=1 or 0";
    match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        None => Finding::good(NAME, "this kernel has no Yama: no limit beyond the user's"),
        Some("0") => Finding::good(NAME, "0: processes of one user reach each other"),
        Some("1") => Finding::good(NAME, "1: a rank has to allow its peers, which the library does"),
        Some(n) => {
            Finding::problem(NAME, format!("{n}: only with privileges"), "no one-copy transfers, see above", MEND)
        }
    }
}

fn cores() -> Finding {
    const NAME: &str = "cores";
    let mine = available_cores();
    let online = fmpl::base::processor::cores();
    let text = format!("{mine} of {online} online may be used");
    if mine == 1 {
        let costs = "two ranks take turns on it: every message costs a context switch";
        return Finding::problem(NAME, text, costs, "taskset, cgroup cpuset, or a machine with more");
    }
    if mine < online {
        return Finding::note(
            NAME,
            text,
            "more ranks than these share cores",
            "taskset or the cgroup's cpuset sets them",
        );
    }
    Finding::good(NAME, text)
}

/// The number of cores in this process's affinity mask.
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn processor_quota() -> Finding {
    const NAME: &str = "processor quota";
    let Some(text) = read("/sys/fs/cgroup/cpu.max") else { return Finding::good(NAME, "none") };
    let mut words = text.split_ascii_whitespace().map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(Ok(quota)), Some(Ok(period))) if period > 0.0 => Finding::note(
            NAME,
            format!("{:.1} cores by the cgroup", quota / period),
            "ranks that spin use up the quota and are then stopped for milliseconds: set FMPL_WAIT=block, or start fewer ranks",
            "the cgroup's cpu.max",
        ),
        _ => Finding::good(NAME, "none"),
    }
}

fn memfd() -> Finding {
    const NAME: &str = "shared memory (memfd)";
    const COSTS: &str = "without it no job of more than one rank can start";
    let memory = match system::memfd(c"fmpl-doctor", libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) {
        Err(e) => return Finding::problem(NAME, format!("memfd_create: {e}"), COSTS, "a kernel of 3.17 or later"),
        Ok(memory) => File::from(memory),
    };
    if memory.set_len(1 << 20).and_then(|()| system::seal(&memory, libc::F_SEAL_SHRINK)).is_ok() {
        Finding::good(NAME, "works, with seals")
    } else {
        Finding::problem(
            NAME,
            "cannot be sized or sealed",
            COSTS,
            "the limits of the cgroup and of the file size (ulimit -f)",
        )
    }
}

fn sockets() -> Finding {
    const NAME: &str = "local sockets";
    const COSTS: &str = "ranks cannot find each other: no job of more than one rank";
    let attempt = || -> std::io::Result<()> {
        let name = SocketAddr::from_abstract_name(format!("fmpl-doctor-{}", std::process::id()))?;
        let listener = UnixListener::bind_addr(&name)?;
        let _client = UnixStream::connect_addr(&name)?;
        listener.accept().map(|_| ())
    };
    match attempt() {
        Ok(()) => Finding::good(NAME, "abstract addresses work"),
        Err(e) => Finding::problem(
            NAME,
            format!("abstract address: {e}"),
            COSTS,
            "the container's or sandbox's rules for AF_UNIX",
        ),
    }
}

fn pidfd() -> Finding {
    const NAME: &str = "death notices (pidfd)";
    const COSTS: &str = "fmpl run starts no job; under other launchers ranks of a node meet on Linux 6.5 or later only";
    const MEND: &str = "a kernel of 5.3 or later; in a container allow the system call pidfd_open";
    match system::process_descriptor(std::process::id() as i32) {
        Ok(_) => Finding::good(NAME, "work"),
        Err(e) => Finding::problem(NAME, format!("pidfd_open: {e}"), COSTS, MEND),
    }
}

fn membarrier() -> Finding {
    const NAME: &str = "sleeping (membarrier)";
    const GLOBAL_EXPEDITED: libc::c_long = 1 << 1;
    let can = system::membarrier(0);
    if can > 0 && can & GLOBAL_EXPEDITED != 0 {
        return Finding::good(NAME, "a sleeper orders itself against its wakers; they pay nothing");
    }
    let costs = "waiters sleep for short times only and look again: some processor time while idle";
    Finding::note(
        NAME,
        "membarrier is refused",
        costs,
        "a kernel of 4.16 or later; in a container allow the system call",
    )
}

fn limit(which: libc::__rlimit_resource_t) -> (u64, u64) {
    system::limit(which).map_or((0, 0), |l| (l.rlim_cur, l.rlim_max))
}

fn open_files() -> Finding {
    const NAME: &str = "open files";
    let (soft, hard) = limit(libc::RLIMIT_NOFILE);
    let text = format!("{soft} (at most {hard})");
    // A rank keeps up to two descriptors for each peer that it has met on the node.
    if soft < 256 {
        let costs = "a rank keeps descriptors for the peers it has met: jobs of more than some 60 ranks on a node may not start";
        return Finding::note(NAME, text, costs, "ulimit -n 4096");
    }
    Finding::good(NAME, text)
}

fn locked_memory() -> Finding {
    const NAME: &str = "lockable memory";
    match limit(libc::RLIMIT_MEMLOCK).0 {
        libc::RLIM_INFINITY => Finding::good(NAME, "unlimited"),
        n => Finding::good(NAME, format!("{} KiB (matters to RDMA hardware only, not within a node)", n / 1024)),
    }
}

fn huge_pages() -> Finding {
    const NAME: &str = "huge pages";
    let chosen = |path: &str| {
        let text = read(path).unwrap_or_default();
        text.split_once('[').and_then(|t| t.1.split_once(']')).map_or("not there".to_string(), |t| t.0.to_string())
    };
    let anonymous = chosen("/sys/kernel/mm/transparent_hugepage/enabled");
    let shared = chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let reserved = read("/proc/sys/vm/nr_hugepages").unwrap_or_else(|| "0".into());
    let text = format!("transparent: {anonymous} for private memory, {shared} for shared; {reserved} reserved");
    if anonymous == "never" {
        let costs = "copies of many megabytes walk 4 KB pages: some tens of percent";
        return Finding::note(NAME, text, costs, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    }
    Finding::good(NAME, text)
}

fn settings() -> Finding {
    const NAME: &str = "settings";
    if let Err(e) = Config::from_environment() {
        return Finding::problem(
            NAME,
            e.detail(),
            "init fails with it",
            "fmpl info lists the settings with their values",
        );
    }
    let unknown = Config::unknown_names();
    if unknown.is_empty() {
        return Finding::good(NAME, "every FMPL_ variable is one of ours");
    }
    Finding::problem(
        NAME,
        unknown.iter().map(|name| config::unknown(name)).collect::<Vec<_>>().join("; "),
        "it has no effect",
        "fmpl info lists the settings",
    )
}

/// The tuning file: which holds, and which were passed over.
fn tuning() -> Finding {
    const NAME: &str = "tuning";
    let processor = Processor::here();
    let found = match Config::from_environment().and_then(|config| find(&config, &processor)) {
        Ok(found) => found,
        Err(e) => return Finding::problem(NAME, e.detail(), "init fails with it", "fmpl tune writes a tuning file"),
    };
    let holds = match &found.whence {
        Whence::BuiltIn => format!("what is built in, for {processor}"),
        Whence::File(path) => format!("{}, for {processor}", path.display()),
    };
    if found.ignored.is_empty() {
        return Finding::good(NAME, holds);
    }
    Finding::problem(
        NAME,
        format!("passed over: {}; instead holds {holds}", found.ignored.join("; ")),
        "messages may go a way that is not the best one here",
        "remove the file, or have fmpl tune write it anew",
    )
}

/// What some networks and launchers need, looked for as they do: by name, at run time.
fn libraries() -> Vec<Finding> {
    [
        ("libfabric", "libfabric.so.1", "devices other than InfiniBand and RoCE between nodes"),
        ("libpmix", "libpmix.so.2", "starting under mpirun and PRRTE"),
    ]
    .into_iter()
    .map(|(name, file, use_)| {
        let there = if loads(file) { "found" } else { "not found" };
        Finding::good(name, format!("{there}; for {use_}"))
    })
    .collect()
}

/// Whether a shared library can be loaded.
pub fn loads(file: &str) -> bool {
    CString::new(file).is_ok_and(|name| Library::load(&name).is_ok())
}
