//! A hostile network: strangers at the root's port that say nothing, garbage, or what they have heard; somebody in between who alters what
//! is said; a root without descriptors; a secret that others can read.
//!
//! Lines that begin with `figure:` are for `tests/shows`. `FMPL_TEST_STRANGERS` sets how many lines of garbage, and of altered conversations,
//! there are.

use super::environment::{SECRET, Started, free_port, knock};
use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Strangers who say nothing, and come back as soon as they are put out.
struct Silent {
    stop: Arc<AtomicBool>,
    came: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Silent {
    fn new(port: u16, count: usize) -> Silent {
        let (stop, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (over, all) = (stop.clone(), came.clone());
        let thread = std::thread::spawn(move || {
            let mut here: Vec<TcpStream> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                while here.len() < count {
                    let Ok(s) = TcpStream::connect(("127.0.0.1", port)) else { break };
                    s.set_nonblocking(true).unwrap();
                    all.fetch_add(1, Ordering::Relaxed);
                    here.push(s);
                }
                let watch = |s: &TcpStream| libc::pollfd { fd: s.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                let mut fds: Vec<_> = here.iter().map(watch).collect();
                // SAFETY: as many pollfds as said.
                unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 10) };
                // The greeting is read; the end of the connection is why it is left.
                let stays = |s: &mut TcpStream| match s.read(&mut [0; 256]) {
                    Ok(n) => n > 0,
                    Err(e) => e.kind() == std::io::ErrorKind::WouldBlock,
                };
                let mut k = 0;
                here.retain_mut(|s| {
                    k += 1;
                    fds[k - 1].revents == 0 || stays(s)
                });
            }
        });
        Silent { stop, came, thread: Some(thread) }
    }

    /// Waits until so many have come.
    fn until(&self, count: usize) {
        let since = Instant::now();
        while self.came.load(Ordering::Relaxed) < count {
            assert!(since.elapsed() < Duration::from_secs(30), "strangers do not get through");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Starts a rank 0 that may have so many descriptors.
fn root_with(descriptors: &str, size: u32, root: &str) -> Started {
    let script = format!("ulimit -n {descriptors}; exec \"$0\" 50");
    Started::program(&["bash", "-c", &script, &place()], 0, size, root, &[])
}

#[test]
fn silent_strangers_that_come_back_keep_no_job_from_starting() {
    // With places for all of them, and with eight.
    for descriptors in ["1024", "64"] {
        let port = free_port("127.0.0.1");
        let root = format!("127.0.0.1:{port}");
        let rank_0 = root_with(descriptors, 3, &root);
        drop(knock("127.0.0.1", port));
        let silent = Silent::new(port, 500);
        silent.until(520);
        let since = Instant::now();
        let all = Started::all_well(vec![rank_0, Started::new(1, 3, &root, &[]), Started::new(2, 3, &root, &[])]);
        let (s, came) = (since.elapsed().as_secs_f64(), silent.came.load(Ordering::Relaxed));
        println!(
            "figure: limit of {descriptors} descriptors: {s:.2} s from the last rank's start to the end, {came} strangers came"
        );
        assert!(all[0].err.lines().count() < 5, "{}", all[0].err);
    }
}

/// Processor seconds that the process has taken.
fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    // SAFETY: no memory is involved.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / ticks
}

fn only_child(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().parse().unwrap()
}

#[test]
fn a_root_without_descriptors_waits_without_spinning_and_lets_ranks_in() {
    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let rank_0 = root_with("10", 2, &root);
    drop(knock("127.0.0.1", port));
    let pid = only_child(rank_0.0.as_ref().unwrap().id());
    let silent: Vec<TcpStream> = (0..60).map(|_| knock("127.0.0.1", port)).collect();
    let (before, since) = (processor_seconds(pid), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let (took, waited) = (processor_seconds(pid) - before, since.elapsed().as_secs_f64());
    println!("figure: {took:.2} s of the processor in {waited:.2} s of waiting");
    assert!(took < waited / 2.0, "{took} s of the processor in {waited} s");
    Started::all_well(vec![rank_0, Started::new(1, 2, &root, &[])]);
    drop(silent);
}

/// Changes what is said, up to the root or down from it.
type Alter = Box<dyn Fn(bool, &mut Vec<u8>)>;

/// Passes on what is said between a rank and the root, by way of `alter` for each direction; what the rank has said is kept.
struct Between {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Between {
    fn new(root: u16, alter: impl Fn(bool, &mut Vec<u8>) + Send + Sync + 'static) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = heard.clone();
        let alter = Arc::new(alter);
        let both = move |rank: TcpStream| {
            let root = knock("127.0.0.1", root);
            let pass = |mut from: TcpStream, mut to: TcpStream, up: bool, alter: Alter| {
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = from.read(&mut bytes) {
                    let mut said = bytes[..n].to_vec();
                    alter(up, &mut said);
                    if to.write_all(&said).is_err() {
                        break;
                    }
                }
                let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
            };
            let (rank_2, root_2, down) = (rank.try_clone().unwrap(), root.try_clone().unwrap(), alter.clone());
            std::thread::spawn(move || pass(root_2, rank_2, false, Box::new(move |up, said| down(up, said))));
            let (kept, alter) = (kept.clone(), alter.clone());
            let up = move |up: bool, said: &mut Vec<u8>| {
                kept.lock().unwrap().extend_from_slice(said);
                alter(up, said);
            };
            std::thread::spawn(move || pass(rank, root, true, Box::new(up)));
        };
        // A keeper has several; the threads end with them.
        std::thread::spawn(move || listener.incoming().flatten().for_each(both));
        Between { port, heard }
    }

    fn root(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// What a stranger that says this gets as an answer.
fn answer_to(port: u16, said: &[u8]) -> String {
    let mut s = knock("127.0.0.1", port);
    s.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // It may be refused in the middle.
    let _ = s.write_all(said);
    let _ = s.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = s.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn garbage_and_conversations_heard_and_altered_let_nobody_in() {
    let lines = std::env::var("FMPL_TEST_STRANGERS").map_or(500, |n| n.parse::<usize>().unwrap());
    // A job that goes well, listened to: it is a conversation of just this rank, size and secret.
    let port = free_port("127.0.0.1");
    let between = Between::new(port, |_, _| {});
    let rank_0 = Started::new(0, 2, &format!("127.0.0.1:{port}"), &[]);
    Started::all_well(vec![rank_0, Started::new(1, 2, &between.root(), &[])]);
    let heard = between.heard.lock().unwrap().clone();
    let text = String::from_utf8_lossy(&heard).into_owned();
    let said = ["cmd=fmpl-start version=3 as=branch rank=1 size=2 nonce=", "cmd=barrier_in", "cmd=fmpl-left"];
    assert!(said.iter().all(|word| text.contains(word)), "{text}");
    assert!(!text.contains(SECRET));

    let port = free_port("127.0.0.1");
    let root = format!("127.0.0.1:{port}");
    let rank_0 = Started::new(0, 2, &root, &[]);
    let strange = |said: &[u8]| {
        let answer = answer_to(port, said);
        let let_in = ["welcome", "response_to_init", "maxes", "put_result", "get_result", "barrier_out"];
        assert!(!let_in.iter().any(|word| answer.contains(word)), "{answer} to {}", String::from_utf8_lossy(said));
    };
    let first = heard.iter().position(|b| *b == b'\n').unwrap() + 1;
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize
    };
    strange(&heard);
    strange(&heard[..first]);
    strange(&heard[first..]);
    for _ in 0..lines {
        let mut garbage: Vec<u8> = (0..1 + next() % 200).map(|_| next() as u8).collect();
        garbage.push(b'\n');
        strange(&garbage);
        let mut altered = heard.clone();
        let bit = next() % (8 * if next() % 4 == 0 { heard.len() } else { first });
        altered[bit / 8] ^= 1 << (bit % 8);
        strange(&altered);
    }
    let since = Instant::now();
    let all = Started::all_well(vec![rank_0, Started::new(1, 2, &root, &[])]);
    let s = since.elapsed().as_secs_f64();
    println!(
        "figure: {lines} lines of garbage, {} conversations replayed or altered: 0 let in, the job took {s:.2} s",
        lines + 3
    );
    assert!(all[0].err.lines().count() < 8 && !all[0].err.contains(SECRET), "{}", all[0].err);
}

/// Whoever is in between passes the proofs on, and then changes one letter: it is noticed by whoever hears it, and the job fails.
#[test]
fn what_is_altered_after_the_proofs_is_noticed() {
    for (up, word, says) in [
        (true, "cmd=barrier_in", "what is not its next line, altered on its way or a stranger's, and is cut off"),
        (false, "value=1:", "what is not its next line, altered on its way or a stranger's, and is cut off"),
        (false, "cmd=barrier_out", "what is not its next line, altered on its way or a stranger's, and is cut off"),
    ] {
        let port = free_port("127.0.0.1");
        let between = Between::new(port, move |up_now, said: &mut Vec<u8>| {
            let at = said.windows(word.len()).position(|w| w == word.as_bytes());
            if let (true, Some(at)) = (up == up_now, at) {
                said[at + word.len() - 1] ^= 1;
            }
        });
        let short = [("FMPL_START_TIMEOUT", "5")];
        let rank_0 = Started::new(0, 2, &format!("127.0.0.1:{port}"), &short);
        let rank_1 = Started::new(1, 2, &between.root(), &short);
        let both = [rank_0, rank_1].map(Started::wait);
        assert!(both.iter().any(|r| r.err.contains(says)), "{word}: {} {}", both[0].err, both[1].err);
        assert!(both[1].code != 0, "{word}: {}", both[1].out);
    }
}

/// A line that is said twice, or that somebody in between adds, is not taken either.
#[test]
fn what_is_added_after_the_proofs_is_noticed() {
    let port = free_port("127.0.0.1");
    let between = Between::new(port, |up, said: &mut Vec<u8>| {
        if up && said.starts_with(b"cmd=barrier_in") {
            let line = said.clone();
            said.extend_from_slice(&line);
        }
    });
    let short = [("FMPL_START_TIMEOUT", "5")];
    let rank_0 = Started::new(0, 2, &format!("127.0.0.1:{port}"), &short);
    let both = [rank_0, Started::new(1, 2, &between.root(), &short)].map(Started::wait);
    assert!(both[0].err.contains("what is not its next line"), "{} {}", both[0].err, both[1].err);
    assert!(both[0].code != 0 && both[1].code != 0);
}

#[test]
fn a_secret_that_others_can_know_is_refused() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("secret-{}", std::process::id()));
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let root = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let with_file = [("FMPL_SECRET", ""), ("FMPL_SECRET_FILE", file.to_str().unwrap())];
    for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
        set(mode);
        let r = Started::new(0, 2, &root, &with_file).wait();
        let says = format!("others can read or write it (mode {mode:o})");
        assert!(r.code != 0 && r.err.contains(&says) && !r.err.contains(SECRET), "{}", r.err);
    }
    set(0o600);
    Started::all_well(vec![Started::new(0, 2, &root, &with_file), Started::new(1, 2, &root, &[])]);
    match std::os::unix::fs::chown(&file, Some(12345), None) {
        Ok(()) => {
            let r = Started::new(0, 2, &root, &with_file).wait();
            assert!(r.code != 0 && r.err.contains("it belongs to user 12345"), "{}", r.err);
            println!("figure: refused: modes 644, 640, 604, 620, 602, another user's");
        }
        Err(e) => println!("figure: refused: modes 644, 640, 604, 620, 602 (no file of another user's here: {e})"),
    }
    std::fs::remove_file(&file).unwrap();
}

/// The addresses at which somebody listens on this port, as the kernel writes them.
fn listening_at(port: u16) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|t| std::fs::read_to_string(t).unwrap_or_default());
    let local = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, number) = fields.get(1)?.split_once(':')?;
        (fields.get(3) == Some(&"0A") && number == format!("{port:04X}")).then(|| address.to_owned())
    };
    tables.iter().flat_map(|t| t.lines().filter_map(local)).collect()
}

#[test]
fn the_root_listens_where_it_was_told_and_says_so() {
    let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    // Where the name stands for nothing, or for what is not here, there is nothing to see.
    if TcpListener::bind((own.as_str(), 0)).is_ok() {
        names.push(own);
    }
    for name in names {
        let port = free_port("127.0.0.1");
        let root = format!("{name}:{port}");
        let rank_0 = Started::new(0, 2, &root, &[("FMPL_LOG", "info")]);
        let since = Instant::now();
        let at = loop {
            let at = listening_at(port);
            if !at.is_empty() {
                break at;
            }
            assert!(since.elapsed() < Duration::from_secs(30), "nobody listens at {root}");
        };
        assert!(!at.iter().any(|a| a.bytes().all(|b| b == b'0')), "{root}: {at:?}");
        let all = Started::all_well(vec![rank_0, Started::new(1, 2, &root, &[])]);
        assert!(
            all[0].err.contains("rank 0: listens at ") && all[0].err.contains(&format!(":{port}")),
            "{}",
            all[0].err
        );
        println!("figure: {name}: listens at {} address(es), none of them all", at.len());
    }
}
