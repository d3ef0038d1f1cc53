//! A contestant's ranks, started once and kept: they sleep in reads of their fifos, and the driver wakes all ranks of one contestant
//! at a time for one block. That is how libraries are compared at the grain of a millisecond, in the same state of the machine.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fmpl::base::system;

use super::{Case, Outcome};

/// How a contestant's ranks are started.
pub struct Contestant {
    /// The name in tables.
    pub name: String,
    /// The command that starts `ranks` ranks of its program, to which `DIR` or `DIR startup` and so on are appended.
    pub launch: Box<dyn Fn(&Start) -> Command>,
    /// It has no ranks that stay, but a run of its own for each block of a case.
    pub one: Option<fn(&Case) -> Outcome>,
}

/// What a start asks for.
pub struct Start<'a> {
    /// Number of ranks.
    pub ranks: usize,
    /// More ranks than cores: the settings advised for it.
    pub crowded: bool,
    /// Indices for each peer.
    pub indices: i32,
    /// The directory of the fifos; `None`: init, barrier, finalize, and nothing else.
    pub dir: Option<&'a Path>,
    /// So many pretended nodes.
    pub nodes: Option<u32>,
}

/// A directory that goes when it is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new directory in the system's place for temporary files.
    pub fn new() -> Result<Scratch, String> {
        system::temporary("fmpl-bench").map(Scratch).map_err(|e| e.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: a directory left in /tmp harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The ranks of one contestant, running.
pub struct Session {
    /// The contestant's name.
    pub name: String,
    child: Child,
    ins: Vec<File>,
    out: File,
    pending: Vec<u8>,
    log: File,
    /// It did not answer: nothing is to be expected of it any more.
    still: bool,
}

/// Why there are no figures of a block.
pub enum Failure {
    /// No answer within the time for it.
    Still,
    /// Anything else.
    Other(String),
}

const START_LIMIT: Duration = Duration::from_secs(120);
/// The time for a block of FMPL's.
pub const BLOCK_LIMIT: Duration = Duration::from_secs(300);
/// How long a launcher has to end its ranks.
const END_LIMIT: Duration = Duration::from_secs(10);

impl Session {
    /// Starts the ranks and waits until all of them have joined.
    pub fn start(
        who: &Contestant,
        place: &Path,
        ranks: usize,
        crowded: bool,
        indices: i32,
        nodes: Option<u32>,
    ) -> Result<Session, String> {
        let dir = place.join(&who.name);
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        // Opened for both directions, so that neither side's opening waits; a rank sees the end when this process is gone.
        let both = |name: String| -> Result<File, String> {
            let path = dir.join(name);
            make_fifo(&path)?;
            OpenOptions::new().read(true).write(true).open(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let ins = (0..ranks).map(|r| both(format!("in.{r}"))).collect::<Result<Vec<_>, _>>()?;
        let out = both("out".into())?;
        let path = dir.join("log");
        let sink = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let log = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let twin = sink.try_clone().map_err(|e| e.to_string())?;
        let mut command = (who.launch)(&Start { ranks, crowded, indices, dir: Some(&dir), nodes });
        let child = command
            .stdin(Stdio::null())
            .stdout(sink)
            .stderr(twin)
            .spawn()
            .map_err(|e| format!("{}: {}: {e}", who.name, command.get_program().display()))?;
        let mut session = Session { name: who.name.clone(), child, ins, out, pending: Vec::new(), log, still: false };
        let Some(line) = session.line(START_LIMIT)? else {
            session.still = true;
            let tail = session.log_tail();
            return Err(format!("{}: not started within {} s{tail}", who.name, START_LIMIT.as_secs()));
        };
        if line == "ready" { Ok(session) } else { Err(format!("{}: {line}", who.name)) }
    }

    /// Runs one block on all ranks, which have so long for it; the figures of rank 0.
    pub fn block(&mut self, case: &Case, limit: Duration) -> Result<Vec<f64>, Failure> {
        let other = |name: &str, what: String| Failure::Other(format!("{name}: {what}"));
        for (rank, f) in self.ins.iter_mut().enumerate() {
            let [send, receive] = case.offset.of_rank(rank, case.by_rank);
            let line = format!("{send} {receive} {}\n", case.command);
            f.write_all(line.as_bytes()).map_err(|e| other(&self.name, e.to_string()))?;
        }
        let Some(answer) = self.line(limit).map_err(Failure::Other)? else {
            self.still = true;
            return Err(Failure::Still);
        };
        let Some(values) = answer.strip_prefix("ok") else {
            let tail = self.log_tail();
            return Err(other(&self.name, format!("{answer}{tail}")));
        };
        let words = values.split_ascii_whitespace();
        words.map(|w| w.parse().map_err(|_| other(&self.name, answer.clone()))).collect()
    }

    /// Has it not answered in time?
    pub fn is_still(&self) -> bool {
        self.still
    }

    /// One line from the ranks; `None`: not within this time.
    fn line(&mut self, limit: Duration) -> Result<Option<String>, String> {
        let end = Instant::now() + limit;
        loop {
            if let Some(n) = self.pending.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=n).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..n]).into_owned()));
            }
            let poll = libc::pollfd { fd: self.out.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // A second at a time: the fifo has no end while we hold it, so a dead job is noticed here.
            if system::poll(&mut [poll], 1000).is_ok_and(|n| n > 0) {
                let mut some = [0u8; 512];
                let n = self.out.read(&mut some).map_err(|e| format!("{}: {e}", self.name))?;
                self.pending.extend_from_slice(&some[..n]);
            } else if let Ok(Some(status)) = self.child.try_wait() {
                let tail = self.log_tail();
                return Err(format!("{}: its ranks ended ({status}){tail}", self.name));
            } else if Instant::now() > end {
                return Ok(None);
            }
        }
    }

    /// The last lines that the ranks and their launcher have written.
    fn log_tail(&mut self) -> String {
        let mut text = String::new();
        // What cannot be read is not shown: this is an addition to an error.
        let _ = self.log.read_to_string(&mut text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(12)..];
        if tail.is_empty() { String::new() } else { format!("\n  {}", tail.join("\n  ")) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for f in &mut self.ins {
            let _ = f.write_all(b"quit\n");
        }
        if self.still || !ends_within(&mut self.child, END_LIMIT) {
            end(&mut self.child);
        }
    }
}

/// Has it ended, at the latest after this time?
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Ends a launcher and its ranks.
fn end(child: &mut Child) {
    // SIGTERM first: a launcher passes it on to its ranks.
    // The child has not been waited for, so its id is its own.
    system::signal(child.id() as i32, libc::SIGTERM);
    if !ends_within(child, END_LIMIT) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Seconds from the start of the command to the end of all its ranks, which init, meet and finalize.
pub fn startup(who: &Contestant, ranks: usize, crowded: bool, indices: i32, limit: Duration) -> Result<f64, Failure> {
    let mut command = (who.launch)(&Start { ranks, crowded, indices, dir: None, nodes: None });
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let other = |what: String| Failure::Other(format!("{}: {what}", who.name));
    let begin = Instant::now();
    let child = command.spawn().map_err(|e| other(e.to_string()))?;
    let pid = child.id() as i32;
    let (ended, is_over) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let still = is_over.recv_timeout(limit).is_err();
        if still {
            // A launcher passes it on to its ranks.
            // The child is not waited for before this thread has ended, or is over.
            system::signal(pid, libc::SIGTERM);
        }
        still
    });
    let done = child.wait_with_output();
    let spent = begin.elapsed().as_secs_f64();
    let _ = ended.send(());
    if watch.join().unwrap_or(false) {
        return Err(Failure::Still);
    }
    let done = done.map_err(|e| other(e.to_string()))?;
    if done.status.success() {
        Ok(spent)
    } else {
        Err(other(format!("{}: {}", done.status, String::from_utf8_lossy(&done.stderr))))
    }
}

fn make_fifo(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    system::fifo(&name).map_err(|e| format!("{}: {e}", path.display()))
}
