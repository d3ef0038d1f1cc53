//! The numbers that a rank leaves in a file while its job lasts (`FMPL_STATS`), for `fmpl run --stats`.
//!
//! A thread of the library writes the file anew every now and then, so there is one of a rank that dies, too: no older than a few moments. What
//! counts goes on by itself; the thread only looks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::counter::traffic;
use super::memory::memory;
use crate::base::lock::lock;
use crate::base::log::{Level, tell};
use crate::base::mailbox::Mailbox;
use crate::base::thread;
use crate::lane::WayTaken;
use crate::p2p::endpoint::Endpoint;
use crate::wait::slept;

/// From one writing to the next; longer where writing takes so long that it would be felt.
const EVERY: Duration = Duration::from_millis(100);
const SHARE: u32 = 20;

/// The thread that writes, and what ends it when it is closed.
struct Writer {
    over: Arc<Mailbox<()>>,
    thread: JoinHandle<()>,
}

static WRITER: Mutex<Option<Writer>> = Mutex::new(None);

/// The job begins.
pub fn begin(ep: &'static Endpoint) {
    let Some(place) = place(ep) else { return };
    write(ep, &place, false);
    let over = Arc::new(Mailbox::default());
    let told = over.clone();
    let writer = thread::spawn("fmpl-stats", 256 << 10, move || {
        let mut last = Duration::ZERO;
        while told.take(EVERY.max(last * SHARE)).is_ok() {
            let since = Instant::now();
            write(ep, &place, false);
            last = since.elapsed();
        }
    });
    *lock(&WRITER) = writer.ok().map(|thread| Writer { over, thread });
}

/// The job ends: the last numbers. Nothing looks at the endpoint afterwards.
pub fn end(ep: &'static Endpoint) {
    let Some(place) = place(ep) else { return };
    let writer = lock(&WRITER).take();
    if let Some(Writer { over, thread }) = writer {
        over.close();
        let _ = thread.join();
    }
    write(ep, &place, true);
}

/// The file of this rank.
fn place(ep: &Endpoint) -> Option<PathBuf> {
    Some(ep.config.stats.as_ref()?.join(ep.rank.to_string()))
}

/// Writes the file as a whole: who reads it finds the old one or the new one.
fn write(ep: &Endpoint, place: &Path, complete: bool) {
    let new = place.with_extension("new");
    if let Err(e) = fs::write(&new, numbers(ep, complete)).and_then(|()| fs::rename(&new, place)) {
        static SAID: std::sync::Once = std::sync::Once::new();
        SAID.call_once(|| tell(Level::Warn, || format!("FMPL_STATS: {}: {e}", place.display())));
    }
}

/// In JSON, whose numbers and plain names need no crate to be written.
fn numbers(ep: &Endpoint, complete: bool) -> String {
    let traffic = traffic().unwrap_or_default();
    let ways: Vec<String> = WayTaken::ALL
        .iter()
        .zip(traffic.taken)
        .map(|((_, name), [messages, bytes])| format!("\"{name}\": [{messages}, {bytes}]"))
        .collect();
    let [sleeps, slept_ns] = slept();
    let memory: u64 = memory().map_or(0, |parts| parts.iter().map(|part| part.bytes).sum());
    format!(
        "{{\"rank\": {}, \"complete\": {complete}, \"ways\": {{{}}}, \"queued\": {}, \"received\": {}, \"sleeps\": {sleeps}, \
         \"slept_ns\": {slept_ns}, \"spool_most\": {}, \"memory\": {memory}}}\n",
        ep.rank,
        ways.join(", "),
        traffic.queued,
        traffic.received,
        ep.spool.most(),
    )
}
