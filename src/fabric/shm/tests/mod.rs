//! Tests between real processes: the test binary starts itself again as another rank, which obeys commands line by line.
//!
//! The child is the test [`child`] of the same binary, with `FMPL_TEST_RANK` set. It answers each line of its standard input by
//! one line that has an `@` before the answer (the test harness writes to the same output). When its input ends it exits.

mod copies;
mod first_contact;

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attach::{Attach, Options};
use super::hello::Kind;
use super::peer::Peer;
use super::region::{LANES_AT, LAYOUT_VERSION, Region};
use super::{heap::Heap, socket};
use crate::base::error::{Code, Error};
use crate::base::key::Key;

/// Long enough for anything that happens at all.
const PLENTY: Duration = Duration::from_secs(60);
const SECRET: [u8; 16] = *b"the job's secret";
/// A byte that every child leaves in its lanes.
const MARK: u8 = 0xA5;

fn hex(b: &[u8]) -> String {
    b.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len() / 2).map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PLENTY, "never came: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start(region: Region, cma: bool) -> Attach {
    Attach::start(Arc::new(region), Options { cma }, |_| {}, |_| {}).unwrap()
}

/// First contact with a rank that answers before long.
fn meet(with: &Attach, rank: u32, card: &[u8]) -> Result<Arc<Peer>, Error> {
    let found = with.contact(rank, card, |waited| waited < PLENTY)?;
    Ok(found.unwrap_or_else(|| panic!("rank {rank} does not answer")))
}

/// Another rank, in a process of its own.
struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    card: Vec<u8>,
}

impl Child {
    /// Rank `rank` of four, with this layout version; `open` gives it the secret.
    fn start(rank: u32, version: u32, open: bool) -> Child {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "fabric::shm::tests::child", "--nocapture", "--test-threads=1"])
            .env("FMPL_TEST_RANK", format!("{rank} {version}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut c = Child { process, input, output, card: Vec::new() };
        c.card = unhex(&c.ask("card"));
        if open {
            assert_eq!(c.ask(&format!("open {}", hex(&SECRET))), "ok");
        }
        c
    }

    fn rank(rank: u32) -> Child {
        Child::start(rank, LAYOUT_VERSION, true)
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.input.as_mut().unwrap(), "{command}").unwrap();
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the child has ended");
            if let Some((_, answer)) = line.trim_end().split_once('@') {
                return answer.to_string();
            }
        }
    }

    fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }

    fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    fn wait_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.pid());
        wait_until("the child stops", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a child has to work with.
struct Rank {
    attach: Option<Attach>,
    heap: Heap,
    region: Arc<Region>,
    block: *mut u8,
    memory: copies::Memory,
}

#[test]
fn child() {
    let Ok(who) = std::env::var("FMPL_TEST_RANK") else { return };
    let (rank, version) = who.split_once(' ').unwrap();
    let region = Arc::new(Region::create_with_version(rank.parse().unwrap(), 4, version.parse().unwrap()).unwrap());
    let lanes = region.map(LANES_AT, 4096).unwrap();
    // SAFETY: the window has that byte.
    unsafe { lanes.as_ptr().write(MARK) };
    let attach = Attach::start(Arc::clone(&region), Options { cma: true }, |_| {}, |_| {}).unwrap();
    let memory = copies::Memory::default();
    let mut me = Rank {
        attach: Some(attach),
        heap: Heap::new(Arc::clone(&region)),
        region,
        block: std::ptr::null_mut(),
        memory,
    };
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let answer = me.obey(&words).unwrap_or_else(|e| format!("error {:?} {}", e.code(), e.detail()));
        println!("@{answer}");
    }
    // Not by way of the test harness, which has nothing to report.
    std::process::exit(0);
}

impl Rank {
    fn attach(&self) -> &Attach {
        self.attach.as_ref().expect("not left yet")
    }

    fn obey(&mut self, words: &[&str]) -> Result<String, Error> {
        let number = |i: usize| words[i].parse::<usize>().unwrap();
        Ok(match words[0] {
            "card" => hex(&self.attach().card()),
            "open" => self.attach().open(&Key::of(&unhex(words[1]))).map(|()| "ok".into())?,
            "contact" => {
                let peer = meet(self.attach(), number(1) as u32, &unhex(words[2]))?;
                format!("rank {} cma {}", peer.rank, peer.cma())
            }
            "known" => {
                wait_until("a peer becomes known", || self.attach().known(number(1) as u32).is_some());
                let peer = self.attach().known(number(1) as u32).unwrap();
                format!("rank {} pid {} cma {}", peer.rank, peer.pid, peer.cma())
            }
            "rejected" => self.attach().rejected().to_string(),
            "descriptors" => std::fs::read_dir("/proc/self/fd").unwrap().count().to_string(),
            "threads" => std::fs::read_dir("/proc/self/task").unwrap().count().to_string(),
            "leave" => {
                self.attach.take().expect("not left yet").stop();
                "ok".into()
            }
            // Greets a rank and stops the whole process before any answer can have been taken.
            "push-and-stop" => {
                let shared = &self.attach().shared;
                let fd = socket::connect(&unhex(words[2])[4..12].try_into().unwrap(), PLENTY).unwrap();
                let hello = shared.introduce(Kind::Hello, number(1) as u32, shared.secret.get().unwrap(), false);
                use std::os::fd::AsFd;
                socket::send(fd.as_fd(), &hello, Some(self.region.fd())).unwrap();
                // SAFETY: stops this process until somebody continues it.
                unsafe { libc::raise(libc::SIGSTOP) };
                "ok".into()
            }
            // Leaves a process behind that holds every descriptor, as a careless program may.
            "orphan" => {
                // SAFETY: the child calls nothing but pause and _exit.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    // SAFETY: as above.
                    unsafe {
                        libc::pause();
                        libc::_exit(0);
                    }
                }
                pid.to_string()
            }
            "alloc" => {
                self.block = self.heap.alloc(number(1))?;
                // SAFETY: a block of that many bytes.
                unsafe { std::ptr::write_bytes(self.block, MARK, number(1)) };
                (self.block as usize).to_string()
            }
            // SAFETY: the block has that byte, the test says.
            "peek" => unsafe { self.block.add(number(1)).read_volatile() }.to_string(),
            "limit-address-space" => {
                let limit = libc::rlimit { rlim_cur: number(1) as u64, rlim_max: number(1) as u64 };
                // SAFETY: a valid rlimit.
                assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
                "ok".into()
            }
            _ => self.memory.obey(words).ok_or_else(|| Error::new(Code::Argument, words.join(" ")))?,
        })
    }
}
