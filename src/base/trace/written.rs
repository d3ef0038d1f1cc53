//! Events written out: as text, or as a trace of Chrome's (`chrome://tracing`, Perfetto), whose few shapes need no crate to be written.

use std::fmt::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::events::{EVENTS, Event, NOBODY, OfThread, What, all};
use crate::base::clock::now_ns;
use crate::base::config::Config;
use crate::base::log::{self, Level, tell};
use crate::base::named::Named;
use crate::base::thread;

/// Events that are shown where there is no file for them.
const SHOWN: usize = 20;

/// Whose events they are.
struct Job {
    rank: u32,
    size: u32,
    /// What people call the node.
    node: String,
    /// `FMPL_TRACE`
    path: Option<PathBuf>,
    signal: Option<Signal>,
}

static JOB: Mutex<Option<Job>> = Mutex::new(None);

/// The job begins.
pub fn begin(config: &Config, rank: u32, size: u32, node: String) {
    EVENTS.set(config.trace_events as u64);
    let signal = config.trace_signal.and_then(|number| match Signal::take(number) {
        Ok(signal) => Some(signal),
        Err(why) => {
            tell(Level::Warn, || format!("FMPL_TRACE_SIGNAL={number}: {why}"));
            None
        }
    });
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Job { rank, size, node, path: config.trace.clone(), signal });
}

/// The job ends: events go to their file, if one is named.
pub fn end() {
    let has_file = JOB.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|job| job.path.is_some());
    if has_file {
        write(None);
    }
    let job = JOB.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Its thread may be about to write, so without the lock.
    drop(job.and_then(|job| job.signal));
}

/// Writes the events to their file, or the last of them to standard error. `why`: said there, if it is news.
pub fn write(why: Option<&str>) {
    let job = JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(job) = job.as_ref() else { return };
    let (threads, dropped) = all();
    let Some(path) = job.path.as_ref().map(|path| of_rank(path, job.rank)) else {
        let (rank, why) = (job.rank, why.unwrap_or("the end"));
        return log::report(&format!("rank {rank}: {why}: the last events:\n{}", text(&threads, SHOWN).trim_end()));
    };
    let json = path.extension().is_some_and(|e| e == "json");
    let text = if json { chrome(job, &threads, dropped) } else { head(job, dropped) + &text(&threads, usize::MAX) };
    // As a whole: who reads it finds the old one or the new one.
    let new = PathBuf::from(format!("{}.new", path.display()));
    match std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path)) {
        Ok(()) if why.is_none() => {}
        Ok(()) => log::report(&format!("rank {}: {}: events in {}", job.rank, why.unwrap_or(""), path.display())),
        Err(e) => tell(Level::Warn, || format!("FMPL_TRACE: {}: {e}", path.display())),
    }
}

/// `run.json` is `run.3.json` for rank 3, and `run` is `run.3`.
fn of_rank(path: &Path, rank: u32) -> PathBuf {
    match path.extension().and_then(|e| e.to_str()) {
        Some(extension) => path.with_extension(format!("{rank}.{extension}")),
        None => path.with_extension(rank.to_string()),
    }
}

fn head(job: &Job, dropped: u64) -> String {
    let Job { rank, size, node, .. } = job;
    let most = EVENTS.get();
    format!(
        "# events of rank {rank} of {size} on {node}; {dropped} older ones are dropped (FMPL_TRACE_EVENTS={most} for each thread)\n\
         #   seconds of the node's clock, thread, event\n"
    )
}

/// One line for each of the last events.
fn text(threads: &[OfThread], most: usize) -> String {
    let mut lines: Vec<(&OfThread, &Event)> =
        threads.iter().flat_map(|t| t.events.iter().map(move |e| (t, e))).collect();
    lines.sort_by_key(|(_, e)| e.ns);
    let mut text = String::new();
    for (thread, e) in &lines[lines.len().saturating_sub(most)..] {
        let (s, ns) = (e.ns / 1_000_000_000, e.ns % 1_000_000_000);
        let _ = writeln!(text, "{s:6}.{ns:09} {:>7} {:<15} {}", thread.number, thread.name, said(e));
    }
    text
}

/// An event in words.
fn said(e: &Event) -> String {
    let Event { name, peer, index, comm, bytes, number, .. } = e;
    let comm = Named(*comm);
    let place = format!("rank {peer}, index {index}, communicator {comm}");
    match e.what {
        What::Sent => format!("sent: {name}, message {number} of {bytes} bytes to {place}"),
        What::Moved => format!("moved into the spool: message {number} of {bytes} bytes to {place}"),
        What::Received => format!("received: message {number} of {bytes} bytes from {place}"),
        What::WaitBegins if *peer == NOBODY => format!("waits: {name}"),
        What::WaitBegins => format!("waits: {name}, {place}, {bytes} bytes"),
        What::WaitSleeps => "sleeps".to_owned(),
        What::WaitEnds => "waits no more".to_owned(),
        What::CallBegins => format!("begins: {name}, communicator {comm}"),
        What::CallEnds => "ends".to_owned(),
        What::Connected => format!("connected with rank {peer}, the {number}. time"),
        What::GivenUp => format!("connection with rank {peer} given up"),
        What::Failed => format!("connection with rank {peer} failed"),
    }
}

/// Chrome's format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. Both clocks are told, so that the
/// files of several nodes can be put on one (`fmpl trace`).
fn chrome(job: &Job, threads: &[OfThread], dropped: u64) -> String {
    let real = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_nanos());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (rank, node) = (job.rank, quoted(&format!("rank {} on {}", job.rank, job.node)));
    let mut text = format!(
        "{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"rank\": {rank}, \"ranks\": {}, \"dropped\": {dropped}, \"monotonic_ns\": {}, \
         \"realtime_ns\": {real}, \"boot\": {}}}, \"traceEvents\": [\n\
         {{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {rank}, \"args\": {{\"name\": {node}}}}}",
        job.size,
        now_ns(),
        quoted(boot.trim_end()),
    );
    for OfThread { number, name, events } in threads {
        let name = quoted(name);
        let _ = write!(
            text,
            ",\n{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {rank}, \"tid\": {number}, \"args\": {{\"name\": {name}}}}}"
        );
        for e in events {
            let us = format!("{}.{:03}", e.ns / 1000, e.ns % 1000);
            let place = format!("\"ts\": {us}, \"pid\": {rank}, \"tid\": {number}");
            let _ = match (e.what, shape(e)) {
                (_, ("E", _)) => write!(text, ",\n{{\"ph\": \"E\", {place}}}"),
                (what, (phase, title)) => write!(
                    text,
                    ",\n{{\"ph\": \"{phase}\", {place}, \"name\": {}, \"cat\": \"{what:?}\", {}\"args\": {{\"peer\": {}, \"index\": {}, \
                     \"communicator\": {}, \"bytes\": {}, \"number\": {}}}}}",
                    quoted(&title),
                    if phase == "i" { "\"s\": \"t\", " } else { "" },
                    e.peer as i32,
                    e.index,
                    e.comm,
                    e.bytes,
                    e.number
                ),
            };
        }
    }
    text + "\n]}\n"
}

/// The phase of an event, and what is written on it.
fn shape(e: &Event) -> (&'static str, String) {
    match e.what {
        What::Sent => ("i", format!("sent: {}", e.name)),
        What::WaitBegins => ("B", format!("waits: {}", e.name)),
        What::CallBegins => ("B", e.name.to_owned()),
        What::WaitEnds | What::CallEnds => ("E", String::new()),
        What::Moved => ("i", "moved into the spool".to_owned()),
        What::Received => ("i", "received".to_owned()),
        What::WaitSleeps => ("i", "sleeps".to_owned()),
        What::Connected => ("i", "connected".to_owned()),
        What::GivenUp => ("i", "connection given up".to_owned()),
        What::Failed => ("i", "connection failed".to_owned()),
    }
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Where the handler says that the signal has come; -1: nowhere.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// A signal of this process's that has events written, while this lives. The handler only wakes a thread.
struct Signal {
    number: i32,
    before: libc::sigaction,
    told: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is told to end by; one signal counts 1.
const OVER: u64 = 1 << 32;

extern "C" fn comes(_: libc::c_int) {
    let one = 1u64;
    // SAFETY: both calls may be made in a handler, which leaves errno as it was.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(TOLD.load(Ordering::Relaxed), (&raw const one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}

impl Signal {
    /// Takes a signal that nobody in this process has taken.
    fn take(number: i32) -> Result<Signal, String> {
        let failed = || std::io::Error::last_os_error().to_string();
        // SAFETY: the structures are ours, and all zero is a valid one; the handler may run from here on.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(number, std::ptr::null(), &mut before) != 0 {
                return Err(failed());
            }
            if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
                return Err("the program has a handler for this signal".to_owned());
            }
            let told = libc::eventfd(0, libc::EFD_CLOEXEC);
            if told < 0 {
                return Err(failed());
            }
            let told = OwnedFd::from_raw_fd(told);
            let heard = told.try_clone().map_err(|e| e.to_string())?;
            let thread = thread::spawn("fmpl-trace", 256 << 10, move || listen(&heard)).map_err(|e| e.to_string())?;
            TOLD.store(told.as_raw_fd(), Ordering::Relaxed);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = comes as extern "C" fn(libc::c_int) as usize;
            ours.sa_flags = libc::SA_RESTART;
            libc::sigaction(number, &ours, std::ptr::null_mut());
            Ok(Signal { number, before, told, thread: Some(thread) })
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        let over = OVER;
        // SAFETY: as it was found; eight readable bytes.
        unsafe {
            libc::sigaction(self.number, &self.before, std::ptr::null_mut());
            TOLD.store(-1, Ordering::Relaxed);
            libc::write(self.told.as_raw_fd(), (&raw const over).cast(), 8);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(told: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: eight writable bytes.
    while unsafe { libc::read(told.as_raw_fd(), (&raw mut count).cast(), 8) } == 8 && count < OVER {
        write(Some("a signal"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_a_file_of_its_own() {
        for (path, wanted) in [("run.json", "run.3.json"), ("/tmp/run", "/tmp/run.3"), ("a.b/t.txt", "a.b/t.3.txt")] {
            assert_eq!(of_rank(Path::new(path), 3), Path::new(wanted));
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }
}
