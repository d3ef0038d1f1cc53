use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

pub(super) const SECRET: &str = "0123456789abcdef";

/// A port that nobody listens at.
pub(super) fn free_port(host: &str) -> u16 {
    TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().port()
}

/// A rank of a job started by variables; killed when it is dropped.
pub(super) struct Started(pub(super) Option<Child>);

impl Started {
    pub(super) fn new(rank: u32, size: u32, root: &str, extra: &[(&str, &str)]) -> Started {
        Started::program(&[&place(), "50"], rank, size, root, extra)
    }

    pub(super) fn program(argv: &[&str], rank: u32, size: u32, root: &str, extra: &[(&str, &str)]) -> Started {
        let mut c = Command::new("timeout");
        c.args(["-k", "5", "60"]).args(argv);
        c.env("FMPL_RANK", rank.to_string()).env("FMPL_SIZE", size.to_string()).env("FMPL_ROOT", root);
        c.env("FMPL_SECRET", SECRET).envs(extra.iter().copied());
        Started(Some(c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    pub(super) fn wait(mut self) -> Ran {
        ran(self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// On a pretended node of its own: it finds the root by its port, not a keeper on this machine.
    pub(super) fn elsewhere(rank: u32, size: u32, root: &str, extra: &[(&str, &str)]) -> Started {
        let node = rank.to_string();
        Started::new(rank, size, root, &[&[("FMPL_NODE", node.as_str())], extra].concat())
    }

    /// All did well, and each read what all have put.
    pub(super) fn all_well(ranks: Vec<Started>) -> Vec<Ran> {
        let size = ranks.len();
        let all: Vec<Ran> = ranks.into_iter().map(Started::wait).collect();
        for r in &all {
            assert_eq!(r.code, 0, "{}", r.err);
            assert!(r.out.contains(&format!(" of {size}, here [0")), "{}", r.out);
        }
        all
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // `timeout` leads a group, of which the rank may be stopped: where the first process has the same session, as in containers,
            // the system does not end that.
            // SAFETY: no memory is involved; the child has not been waited for, so the number is its own.
            unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Connects as soon as somebody listens.
pub(super) fn knock(host: &str, port: u16) -> TcpStream {
    let since = Instant::now();
    loop {
        match TcpStream::connect((host, port)) {
            Ok(s) => return s,
            Err(e) => assert!(since.elapsed() < Duration::from_secs(30), "nobody listens at {host}:{port}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_shell_script_starts_a_job() {
    let script = r#"for r in 3 1 0 2; do FMPL_RANK=$r FMPL_SIZE=4 "$0" 700 & done; wait"#;
    let mut c = Command::new("timeout");
    c.args(["60", "bash", "-c", script, &place()]).env("FMPL_SECRET", SECRET);
    let r = ran(c.env("FMPL_ROOT", format!("127.0.0.1:{}", free_port("127.0.0.1"))).output().unwrap());
    assert_eq!(
        r.out.lines().filter(|l| l.ends_with("of 4, here [0, 1, 2, 3], 700 bytes of each read")).count(),
        4,
        "{}{}",
        r.out,
        r.err
    );
    assert_eq!(r.err, "");
}

#[test]
fn messages_travel_in_such_a_job() {
    let here = PathBuf::from(place());
    let ring = here.with_file_name("ring");
    if !ring.exists() {
        let mut c = Command::new(env!("CARGO"));
        c.args(["build", "--quiet", "--example", "ring"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if here.components().any(|c| c.as_os_str() == "release") {
            c.arg("--release");
        }
        c.env("CARGO_TARGET_DIR", here.ancestors().nth(3).unwrap());
        assert!(c.status().unwrap().success());
    }
    // By a host's name, which is looked up.
    let root = format!("localhost:{}", free_port("127.0.0.1"));
    let ring = ring.to_str().unwrap().to_owned();
    let ranks: Vec<_> = (0..3).map(|r| Started::program(&[&ring], r, 3, &root, &[])).collect();
    for r in ranks.into_iter().map(Started::wait) {
        assert_eq!((r.code, r.err.as_str()), (0, ""), "{}", r.out);
    }
}

#[test]
fn the_root_may_come_last_and_have_an_ipv6_address() {
    if TcpListener::bind("[::1]:0").is_err() {
        crate::skip::note("environment", "there is no IPv6");
        return;
    }
    let root = format!("[::1]:{}", free_port("::1"));
    let mut ranks: Vec<_> = [2, 1].map(|r| Started::new(r, 3, &root, &[])).into();
    std::thread::sleep(Duration::from_millis(300));
    ranks.push(Started::new(0, 3, &root, &[]));
    Started::all_well(ranks);
}

#[test]
fn more_ranks_than_are_gathered_at_a_time() {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let ranks = (0..66).map(|r| Started::new(r, 66, &root, &[])).collect();
    Started::all_well(ranks);
}

#[test]
fn who_is_missing_is_named_by_all() {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let ranks = [0, 1, 4].map(|r| Started::new(r, 5, &root, &[("FMPL_START_TIMEOUT", "4")]));
    for r in ranks.map(Started::wait) {
        assert!(r.code != 0 && r.err.contains("ranks 2-3 of 5 have not come within 4 s"), "{}", r.err);
    }
    // Without the root.
    let r = Started::new(1, 2, &root, &[("FMPL_START_TIMEOUT", "0.5")]).wait();
    assert!(r.code != 0 && r.err.contains(&format!("rank 1 did not find rank 0 at {root} within 0.5 s")), "{}", r.err);
    assert!(r.err.contains("Connection refused"), "{}", r.err);
}

#[test]
fn a_rank_that_stops_on_its_way_is_named() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    // Stopped before it reaches the root.
    let early = [("FMPL_START_TIMEOUT", "1")];
    let ranks = [0, 1].map(|r| Started::new(r, 3, &root, &early));
    let stopped = Started::program(&["bash", "-c", "kill -STOP $$; exec \"$0\"", &place()], 2, 3, &root, &early);
    for r in ranks.map(Started::wait) {
        assert!(r.code != 0 && r.err.contains("rank 2 of 3 has not come within 1 s"), "{}", r.err);
    }
    drop(stopped);
}

#[test]
fn a_rank_that_stops_between_fences_is_named() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let start = |rank, node| {
        let extra = [("FMPL_START_TIMEOUT", "4"), ("FMPL_NODE", node)];
        Started::program(&["bash", "-c", "exec \"$0\" 50", &place()], rank, 3, &root, &extra)
    };
    let (rank_0, rank_1) = (start(0, "0"), start(1, "1"));
    let since = Instant::now();
    while !connected(port) {
        assert!(since.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    // Its `timeout` lives on.
    let parent = rank_1.0.as_ref().unwrap().id();
    let child = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(child.trim().parse().unwrap(), libc::SIGSTOP) }, 0);
    let rank_2 = start(2, "0");
    for r in [rank_0, rank_2].map(Started::wait) {
        let says = "rank 1 of 3 has not come";
        assert!(r.code != 0 && r.err.contains(says), "{}", r.err);
    }
    drop(rank_1);
}

#[test]
fn a_wrong_secret_is_refused_and_the_job_goes_on() {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let rank_0 = Started::new(0, 2, &root, &[]);
    let r = Started::new(1, 2, &root, &[("FMPL_SECRET", "another secret")]).wait();
    assert!(r.code != 0 && r.err.contains("it does not know the secret of this job"), "{}", r.err);
    let r = Started::new(1, 3, &root, &[]).wait();
    assert!(r.code != 0 && r.err.contains("of a job of another size"), "{}", r.err);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let rank_1 = Started::new(1, 2, &root, &[("FMPL_SECRET", ""), ("FMPL_SECRET_FILE", file.to_str().unwrap())]);
    let all = Started::all_well(vec![rank_0, rank_1]);
    assert!(
        all[0].err.contains("turned away a connection from 127.0.0.1:")
            && all[0].err.contains("does not know the secret"),
        "{}",
        all[0].err
    );
    assert!(!all[0].err.contains(SECRET));
}

#[test]
fn a_second_process_of_a_rank_is_refused() {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    // Which of the two comes second is open.
    let mut ranks: Vec<Started> = [0, 1, 1].map(|r| Started::new(r, 3, &root, &[])).into();
    let second = loop {
        let ended = |s: &mut Started| matches!(s.0.as_mut().unwrap().try_wait(), Ok(Some(_)));
        if let Some(i) = ranks.iter_mut().position(ended) {
            break i;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let r = ranks.swap_remove(second).wait();
    assert!(r.code != 0 && r.err.contains("another process has the same rank"), "{}", r.err);
    ranks.push(Started::new(2, 3, &root, &[]));
    Started::all_well(ranks);
}

#[test]
fn two_jobs_do_not_share_a_port() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let first = Started::new(0, 2, &root, &[]);
    drop(knock("127.0.0.1", port));
    let other = [("FMPL_SECRET", "another job's secret"), ("FMPL_START_TIMEOUT", "5")];
    let r = Started::new(0, 2, &root, &other).wait();
    let says = format!("rank 0 cannot listen at {root} (FMPL_ROOT): another job");
    assert!(r.code != 0 && r.err.contains(&says), "{}", r.err);
    let r = Started::new(1, 2, &root, &other).wait();
    assert!(r.code != 0 && r.err.contains("does not know the secret"), "{}", r.err);
    Started::all_well(vec![first, Started::new(1, 2, &root, &[])]);
}

#[test]
fn garbage_and_scans_do_no_harm() {
    let port = free_port("127.0.0.1");
    let rank_0 = Started::new(0, 3, &format!("127.0.0.1:{port}"), &[]);
    // More than are let in at a time, which never say a word; they are shut out after a while, or when the job is over.
    let silent: Vec<TcpStream> = (0..40).map(|_| knock("127.0.0.1", port)).collect();
    let garbage: [&[u8]; 8] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
        b"cmd=init pmi_version=1 pmi_subversion=1\n",
        b"cmd=fmpl-start version=3 as=rank rank=1 size=3 nonce=00 at= proof=00\n",
        b"cmd=fmpl-start version=2 rank=1 size=3 nonce=00112233445566778899aabbccddeeff proof=00\n",
        b"cmd=fmpl-start version=9\n",
        &[b'x'; 5000],
        b"\n",
    ];
    for bytes in garbage {
        let mut s = knock("127.0.0.1", port);
        // It may have hung up already.
        let _ = s.write_all(bytes);
        let mut answer = String::new();
        s.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = s.read_to_string(&mut answer);
        assert!(!answer.contains("welcome") && !answer.contains("response_to_init"), "{answer}");
    }
    for _ in 0..100 {
        drop(knock("127.0.0.1", port));
    }
    let root = format!("127.0.0.1:{port}");
    let all = Started::all_well(vec![rank_0, Started::new(1, 3, &root, &[]), Started::new(2, 3, &root, &[])]);
    assert!(all[0].err.contains("sent garbage"), "{}", all[0].err);
    assert!(all[0].err.lines().count() < 8, "{}", all[0].err);
    drop(silent);
}

#[test]
fn something_else_at_the_port_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let rank = Started::new(1, 2, &root, &[("FMPL_START_TIMEOUT", "20")]);
    listener.accept().unwrap().0.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    let r = rank.wait();
    assert!(r.code != 0 && r.err.contains("is not the root of a job") && r.err.contains("SSH-2.0"), "{}", r.err);
    // One that knows the first line, but not the secret.
    let rank = Started::new(1, 2, &root, &[]);
    let mut s = listener.accept().unwrap().0;
    s.write_all(b"cmd=fmpl-start version=3 nonce=00112233445566778899aabbccddeeff\n").unwrap();
    let mut line = String::new();
    BufReader::new(s.try_clone().unwrap()).read_line(&mut line).unwrap();
    assert!(
        line.starts_with("cmd=fmpl-start version=3 as=branch rank=1 size=2 nonce=") && !line.contains(SECRET),
        "{line}"
    );
    s.write_all(b"cmd=fmpl-welcome rank=0 from=0 to=1 proof=00\n").unwrap();
    let r = rank.wait();
    assert!(r.code != 0 && r.err.contains("does not know the job's secret"), "{}", r.err);
    // One of the version before.
    let rank = Started::new(1, 2, &root, &[]);
    listener
        .accept()
        .unwrap()
        .0
        .write_all(b"cmd=fmpl-start version=2 nonce=00112233445566778899aabbccddeeff\n")
        .unwrap();
    let r = rank.wait();
    assert!(r.code != 0 && r.err.contains("is of another version of FMPL (start 2, here 3)"), "{}", r.err);
}

#[test]
fn the_root_dies_while_others_wait() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let mut rank_0 = Started::program(&["bash", "-c", "exec \"$0\" 50", &place()], 0, 3, &root, &[]);
    // It may not have been let in when the root dies, and looks for it again.
    let rank_1 = Started::elsewhere(1, 3, &root, &[("FMPL_START_TIMEOUT", "20")]);
    // The third never comes. Once rank 1 is in, the root is killed: timeout passes SIGTERM on.
    let since = Instant::now();
    while !connected(port) {
        assert!(since.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(rank_0.0.as_ref().unwrap(), libc::SIGTERM);
    rank_0.0.take().unwrap().wait().unwrap();
    let r = rank_1.wait();
    assert_ne!(r.code, 0);
    let closed = format!("rank 0 ({root}) closed the connection");
    assert!(r.err.contains(&closed) || r.err.contains("did not find rank 0") || r.err.contains("reset"), "{}", r.err);
}

/// Is there a connection to this port of 127.0.0.1?
fn connected(port: u16) -> bool {
    let there = format!("0100007F:{port:04X} 01");
    std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&there)
}

#[test]
fn a_rank_dies_before_all_have_met() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let rank_0 = Started::new(0, 3, &root, &[("FMPL_START_TIMEOUT", "5")]);
    let mut rank_1 = Started::elsewhere(1, 3, &root, &[]);
    let since = Instant::now();
    while !connected(port) {
        assert!(since.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(rank_1.0.as_ref().unwrap(), libc::SIGTERM);
    rank_1.0.take().unwrap().wait().unwrap();
    let short = [("FMPL_START_TIMEOUT", "2")];
    for r in [rank_0, Started::new(2, 3, &root, &short)].map(Started::wait) {
        // Rank 2 may come when the root has failed already, or find it on its way out.
        let named =
            ["rank 1 has left without finalize, or died", "rank 1 of 3 has not come", "ranks 1-2 of 3 have not come"];
        let late = ["has failed to start", "did not find rank 0", "rank 0 (127.0.0.1"];
        assert!(r.code != 0 && named.iter().chain(&late).any(|s| r.err.contains(s)), "{}", r.err);
    }
}

#[test]
fn abort_ends_all_ranks() {
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let ranks = [0, 1, 2].map(|r| Started::program(&[&place(), "10", "77"], r, 3, &root, &[]));
    for (rank, r) in ranks.map(Started::wait).into_iter().enumerate() {
        assert_eq!(r.code, 77, "{}", r.err);
        assert_eq!(r.err.contains("rank 0 has aborted the job with exit code 77"), rank > 0, "{}", r.err);
    }
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    for (variables, says) in [
        ("FMPL_RANK=0 FMPL_SIZE=2 FMPL_ROOT=127.0.0.1:9", "needs a secret"),
        ("FMPL_RANK=0 FMPL_SIZE=2", "is set but not FMPL_ROOT"),
        ("FMPL_ROOT=127.0.0.1:9", "FMPL_ROOT is set but not FMPL_RANK"),
        ("FMPL_RANK=0 FMPL_SIZE=2 FMPL_ROOT=192.0.2.1:9999 FMPL_SECRET=123456789", "this machine has no such address"),
    ] {
        let mut c = Command::new(place());
        c.envs(variables.split(' ').map(|v| v.split_once('=').unwrap()));
        let r = ran(c.stdin(Stdio::null()).output().unwrap());
        assert!(r.code != 0 && r.err.contains(says), "{variables}: {}", r.err);
    }
    let mut c = Command::new(place());
    let r = ran(c
        .envs([("FMPL_RANK", "0"), ("FMPL_SIZE", "1"), ("FMPL_ROOT", "h:1"), ("FMPL_SECRET", SECRET)])
        .output()
        .unwrap());
    assert!(r.code == 0 && r.out.contains("rank 0 of 1"), "{}", r.err);
}

#[test]
fn open_mpi_starts_ranks_that_find_each_other_so() {
    let Some(mpirun) = found("mpirun.openmpi") else {
        crate::skip::skip("Open MPI's mpirun (Debian package openmpi-bin) is not installed");
        return;
    };
    let mut c = Command::new("timeout");
    c.arg("60").arg(mpirun).args(["--allow-run-as-root", "--oversubscribe", "-n", "3", &place(), "100"]);
    c.env("FMPL_ROOT", format!("127.0.0.1:{}", free_port("127.0.0.1"))).env("FMPL_SECRET", SECRET);
    let r = ran(c.stdin(Stdio::null()).output().unwrap());
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(r.out.lines().filter(|l| l.contains("of 3, here [0, 1, 2]")).count(), 3, "{}{}", r.out, r.err);
}
