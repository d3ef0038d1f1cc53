//! This process on the fabric: its port, its connections, and the thread that answers those who want one.
//!
//! ```text
//!   caller                                  peer's thread (fmpl-verbs)
//!   link made, queue pair in INIT
//!   Connect: my end, my memory ───────────▶ link made if need be; connected: ready to receive and to send
//!   (repeated until answered)  ◀─────────── Accept: its end, its memory
//!   connected; may post
//! ```
//! Whoever wants to post asks, so both may ask at once: each side has one link for the other and takes the other's end from
//! whichever packet comes first.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::arrivals::{Arrival, Arrivals};
use super::cache::Cache;
use super::completion::{Channel, CompletionQueue};
use super::device::Port;
use super::ffi::{Access, Datagram, SendFlags, SendWr, Sge, Target, Wc, opcode, wc_status};
use super::hello::{Card, HELLO_LEN, Hello, Kind, Place};
use super::link::{Link, Window};
use super::queue_pair::AddressHandle;
use super::region::{Arena, Domain, Ranges};
use crate::base::error::{Code, Error, Result};
use crate::fabric::shm::region::Region;

/// The key of our datagrams; others' are dropped by the device.
const QKEY: u32 = 0x464d_504c;
/// From one request to its first repetition; later ones wait longer.
const FIRST_PATIENCE: Duration = Duration::from_millis(20);
const STACK: usize = 256 << 10;

/// Bytes of a lane's page.
pub const PAGE_BYTES: usize = 8192;
/// Bytes of a chunk of fronts.
pub const CHUNK_BYTES: usize = 64 << 10;

/// What the thread does with a number that came with a write.
pub type OnNumber = Box<dyn Fn(&Arc<Link>, u32) + Send + Sync>;

/// This process on the fabric.
pub struct Fabric {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pid: u32,
}

struct Shared {
    rank: u32,
    region: Arc<Region>,
    port: Port,
    domain: Arc<Domain>,
    secret: OnceLock<[u8; 16]>,
    arrivals: Arc<Arrivals>,
    /// What is sent by datagram; one at a time.
    sending: Mutex<Arena>,
    sent: Arc<CompletionQueue>,
    channel: Arc<Channel>,
    links: Mutex<Links>,
    answered: Condvar,
    on_number: OnceLock<OnNumber>,
    stop: AtomicBool,
    wake: OwnedFd,
    rejected: AtomicU64,
    log: u8,
    strict: bool,
    spool: Ranges,
    cache: Cache,
    bounces: Mutex<Vec<Arena>>,
    copied: AtomicU64,
}

/// Bytes of a bounce buffer.
pub const BOUNCE_BYTES: usize = 64 << 10;

/// A bounce buffer: registered memory that bytes pass through. Dropping it gives it back.
pub struct Bounce<'a> {
    fabric: &'a Fabric,
    arena: Option<Arena>,
}

impl Bounce<'_> {
    /// Its memory, [`BOUNCE_BYTES`] long.
    pub fn arena(&self) -> &Arena {
        self.arena.as_ref().expect("taken by drop only")
    }
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        let mut free = self.fabric.shared.bounces.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < BOUNCES
            && let Some(arena) = self.arena.take()
        {
            free.push(arena);
        }
    }
}

/// Bounce buffers that are kept.
const BOUNCES: usize = 8;

#[derive(Default)]
struct Links {
    by_peer: HashMap<u32, Arc<Link>>,
    by_number: HashMap<u32, Arc<Link>>,
    /// Peers that refused, and why.
    refused: HashMap<u32, u32>,
}

impl Fabric {
    /// Takes part with this port. Requests are answered once the secret is known.
    /// `keep`: user memory stays registered from one message to the next. `strict`: see [`Fabric::strict`].
    pub fn start(region: Arc<Region>, port: Port, log: u8, keep: bool, strict: bool) -> Result<Fabric> {
        let rank = region.header().rank();
        let domain = Domain::new(&port.device)?;
        let channel = Channel::new(&port.device)?;
        let sent = CompletionQueue::new(&port.device, 16, None)?;
        let arrivals = Arc::new(Arrivals::new(&domain, &port, &channel, &sent, QKEY)?);
        let spool = Ranges::new(&domain);
        let cache = Cache::new(&domain, keep)?;
        let sending = Arena::new(&domain, HELLO_LEN, Access::LOCAL_WRITE)?;
        // SAFETY: no memory is involved.
        let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake < 0 {
            return Err(Error::system("a descriptor to wake the verbs thread (eventfd)"));
        }
        let shared = Arc::new(Shared {
            rank,
            region,
            port,
            domain,
            secret: OnceLock::new(),
            arrivals,
            sending: Mutex::new(sending),
            sent,
            channel,
            links: Mutex::default(),
            answered: Condvar::new(),
            on_number: OnceLock::new(),
            stop: AtomicBool::new(false),
            // SAFETY: a new descriptor that nobody else has.
            wake: unsafe { OwnedFd::from_raw_fd(wake) },
            rejected: AtomicU64::new(0),
            log,
            strict,
            spool,
            cache,
            bounces: Mutex::default(),
            copied: AtomicU64::new(0),
        });
        Ok(Fabric { shared, thread: Mutex::new(None), pid: std::process::id() })
    }

    /// The secret of the job is known: requests are answered from now on, by a thread that calls `on_number` for the numbers that
    /// come with writes.
    pub fn open(&self, secret: [u8; 16], on_number: OnNumber) -> Result<()> {
        let _ = self.shared.secret.set(secret);
        let _ = self.shared.on_number.set(on_number);
        self.shared.arrivals.queue.arm()?;
        let shared = self.shared.clone();
        // SAFETY: both sets are valid; the thread inherits the mask, and ours is put back whatever comes of it.
        let thread = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let thread =
                std::thread::Builder::new().name("fmpl-verbs".into()).stack_size(STACK).spawn(move || shared.run());
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            thread
        };
        let thread = thread.map_err(|e| Error::new(Code::System, format!("starting the verbs thread: {e}")))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// What the others need to reach this process, to be published with the launcher.
    pub fn card(&self) -> Card {
        self.shared.card()
    }
    /// The port in use.
    pub fn port(&self) -> &Port {
        &self.shared.port
    }
    /// Does a message that is put into a buffer come with a completion at its receiver?
    pub fn strict(&self) -> bool {
        self.shared.strict
    }
    /// The protection domain.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.shared.domain
    }
    /// The key by which peers reach a piece of the spool, registered when first asked for.
    ///
    /// # Safety
    /// As for [`Ranges::key`].
    pub unsafe fn spool_key(&self, at: *mut u8, len: usize) -> Result<u32> {
        // SAFETY: as the caller promises.
        unsafe { self.shared.spool.key(at, len) }
    }
    /// A piece of the spool is given back to the system.
    pub fn forget_spool(&self, at: *mut u8, len: usize) {
        self.shared.spool.forget(at, len);
    }
    /// Registrations of user memory.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }
    /// A bounce buffer of its own for the caller.
    pub fn bounce(&self) -> Result<Bounce<'_>> {
        let kept = self.shared.bounces.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let arena = match kept {
            Some(arena) => arena,
            None => Arena::new(&self.shared.domain, BOUNCE_BYTES, Access::LOCAL_WRITE)?,
        };
        Ok(Bounce { fabric: self, arena: Some(arena) })
    }
    /// Connections that exist.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.shared.lock().by_peer.values().cloned().collect()
    }
    /// What was done on all connections so far: writes, reads, their bytes, bytes of messages that were copied, completions taken.
    pub fn done(&self) -> [u64; 5] {
        let mut sum = [0, 0, 0, self.shared.copied.load(Ordering::Relaxed), 0];
        for link in self.links() {
            let [writes, reads, bytes, completions] = link.done();
            [0, 1, 2, 4].into_iter().zip([writes, reads, bytes, completions]).for_each(|(i, n)| sum[i] += n);
        }
        sum
    }
    /// A processor has copied so many bytes of a message.
    pub fn count_copied(&self, bytes: usize) {
        self.shared.copied.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    /// Datagrams that were not from this job.
    pub fn rejected(&self) -> u64 {
        self.shared.rejected.load(Ordering::Relaxed) + self.shared.arrivals.rejected.load(Ordering::Relaxed)
    }

    /// The connection with a peer, and the page and a chunk of the fronts of a lane, made at first use. When this returns, both sides
    /// are ready to receive.
    ///
    /// `Peer`: no answer in time, or the connection is broken. `Version`: the peer runs another build.
    pub fn contact(
        &self,
        peer: u32,
        card: &Card,
        lane: u64,
        chunk: u32,
        timeout: Duration,
    ) -> Result<(Arc<Link>, Arc<Window>, Arc<Window>)> {
        let shared = &*self.shared;
        let link = shared.link(peer)?;
        // A contact is also the way to learn how many indices the peer has by now, so one answer is awaited in any case.
        let before = link.answers();
        let done = |link: &Arc<Link>| {
            if link.answers() == before {
                return None;
            }
            let (page, fronts) = (link.open_window(lane, 0)?, link.open_window(lane, chunk + 1)?);
            link.is_ready().then_some((page, fronts))
        };
        let deadline = Instant::now() + timeout;
        let mut patience = FIRST_PATIENCE;
        let hello = shared.introduce(Kind::Connect, peer, &link, lane, chunk)?;
        loop {
            if let Some((page, fronts)) = done(&link) {
                return Ok((link, page, fronts));
            }
            if let Some(why) = link.failure() {
                let me = shared.rank;
                return Err(Error::new(Code::Peer, format!("rank {me}: rank {peer} {why}")));
            }
            if let Some(version) = shared.lock().refused.get(&peer) {
                return Err(Error::new(
                    Code::Version,
                    format!("rank {peer} has layout version {version}; start all ranks with the same build of FMPL"),
                ));
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    Code::Peer,
                    format!(
                        "rank {}: rank {peer} did not answer over {} within {:.1} s: it has died, it is stopped, or there is no way \
                         to its port (FMPL_ATTACH_TIMEOUT sets the time)",
                        shared.rank,
                        shared.port,
                        timeout.as_secs_f64()
                    ),
                ));
            }
            shared.send(card, &hello)?;
            let links = shared.lock();
            let until = patience.min(deadline.saturating_duration_since(Instant::now()));
            let waited = shared.answered.wait_timeout_while(links, until, |links| {
                done(&link).is_none() && !links.refused.contains_key(&peer) && link.failure().is_none()
            });
            drop(waited);
            patience = (patience * 2).min(Duration::from_millis(500));
        }
    }
}

impl Fabric {
    /// Ends the thread and breaks off all connections: from here on no peer writes anything here.
    pub fn stop(&self) {
        if self.pid != std::process::id() {
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        let one = 1u64;
        // SAFETY: eight readable bytes, an open descriptor.
        unsafe { libc::write(self.shared.wake.as_raw_fd(), (&raw const one).cast(), 8) };
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        self.shared.cache.stop();
        self.links().iter().for_each(|link| link.fail("is left: this process has finalized".into()));
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn card(&self) -> Card {
        Card { qp_num: self.arrivals.datagrams.number(), gid: self.port.address.gid, lid: self.port.lid }
    }
    fn version(&self) -> u32 {
        self.region.header().layout_version()
    }

    /// The link with a peer, made if need be.
    fn link(&self, peer: u32) -> Result<Arc<Link>> {
        let mut links = self.lock();
        if let Some(link) = links.by_peer.get(&peer) {
            return Ok(link.clone());
        }
        let link = Link::new(self.rank, peer, &self.domain, &self.port, &self.arrivals)?;
        let link = Arc::new(link);
        links.by_peer.insert(peer, link.clone());
        links.by_number.insert(link.number(), link.clone());
        Ok(link)
    }

    fn introduce(&self, kind: Kind, to: u32, link: &Arc<Link>, lane: u64, chunk: u32) -> Result<Hello> {
        let page = link.window(lane, 0, PAGE_BYTES)?.place();
        let fronts = link.window(lane, chunk + 1, CHUNK_BYTES)?.place();
        Ok(Hello {
            kind,
            version: self.version(),
            from: self.rank,
            to,
            secret: self.secret.get().copied().unwrap_or_default(),
            card: self.card(),
            end: link.end(&self.port),
            lane,
            chunk,
            indices: self.region.header().indices.load(Ordering::Acquire),
            page,
            fronts,
        })
    }

    /// Sends a datagram; it may be lost.
    fn send(&self, to: &Card, hello: &Hello) -> Result<()> {
        let memory = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = hello.encode();
        // SAFETY: the arena has room, and the last datagram from it has been sent, see below.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.as_ptr(), HELLO_LEN) };
        let way = AddressHandle::new(&self.domain, &self.port, to.gid, to.lid)?;
        let mut sge = Sge { addr: memory.as_ptr() as u64, length: HELLO_LEN as u32, lkey: memory.region().lkey() };
        let target = Target { ud: Datagram { ah: way.ah, remote_qpn: to.qp_num, remote_qkey: QKEY } };
        let mut wr = SendWr::new(opcode::SEND, SendFlags::SIGNALED, target);
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole; memory and way stay until its completion.
        unsafe { self.arrivals.datagrams.post(&mut wr)? };
        let since = Instant::now();
        let mut wc = [Wc::default()];
        // A datagram has completed when it has left.
        while self.sent.poll(&mut wc)? == 0 {
            if since.elapsed() > Duration::from_secs(5) {
                // The device is out of order: better to lose the way's memory than to have it used under the device.
                std::mem::forget(way);
                return Err(Error::new(Code::System, format!("a datagram has not left {} for 5 s", self.port)));
            }
            std::thread::yield_now();
        }
        if wc[0].status != wc_status::SUCCESS {
            let why = super::completion::status_text(wc[0].status);
            return Err(Error::new(Code::System, format!("sending a datagram by {}: {why}", self.port)));
        }
        Ok(())
    }

    /// The thread: sleeps until something arrives.
    fn run(&self) {
        let mut fds =
            [self.channel.fd(), self.wake.as_raw_fd()].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        while !self.stop.load(Ordering::Acquire) {
            // SAFETY: an array of that length.
            unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
            self.channel.take_events();
            // Ask first, then look: what comes in between makes an event.
            if self.arrivals.queue.arm().is_err() {
                return;
            }
            loop {
                self.arrivals.collect();
                let Some(arrival) = self.arrivals.next() else { break };
                match arrival {
                    Arrival::Packet(bytes) => self.packet(&bytes),
                    Arrival::Number(qp, number) => self.number(qp, number),
                }
            }
        }
    }

    fn number(&self, qp: u32, number: u32) {
        let link = self.lock().by_number.get(&qp).cloned();
        if let (Some(link), Some(on_number)) = (link, self.on_number.get()) {
            on_number(&link, number);
        }
    }

    fn packet(&self, bytes: &[u8]) {
        let Some(hello) = Hello::decode(bytes).filter(|h| Some(&h.secret) == self.secret.get()) else {
            if self.rejected.fetch_add(1, Ordering::Relaxed) == 0 && self.log >= 1 {
                eprintln!(
                    "fmpl: rank {}: dropped a datagram that is not of this job (said once; more are counted)",
                    self.rank
                );
            }
            return;
        };
        if hello.to != self.rank || hello.from >= self.region.header().size() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if hello.version != self.version() || hello.kind == Kind::Refuse {
            if hello.kind == Kind::Connect
                && let Ok(link) = self.link(hello.from)
                && let Ok(answer) = self.introduce(Kind::Refuse, hello.from, &link, hello.lane, 0)
            {
                let _ = self.send(&hello.card, &answer);
            }
            self.lock().refused.insert(hello.from, hello.version);
            self.answered.notify_all();
            return;
        }
        if let Err(e) = self.take_in(&hello)
            && self.log >= 1
        {
            eprintln!("fmpl: rank {}: connecting with rank {}: {}", self.rank, hello.from, e.detail());
        }
    }

    fn take_in(&self, hello: &Hello) -> Result<()> {
        let link = self.link(hello.from)?;
        link.connect(&hello.end)?;
        let tell = |number: u32, bytes: usize, place: Place| -> Result<()> {
            let _ = link.window(hello.lane, number, bytes)?.remote.set(place);
            Ok(())
        };
        tell(0, PAGE_BYTES, hello.page)?;
        tell(hello.chunk + 1, CHUNK_BYTES, hello.fronts)?;
        link.indices.fetch_max(hello.indices, Ordering::AcqRel);
        if hello.kind == Kind::Accept {
            link.set_ready();
            // Under the lock, so that who is about to wait does not miss it.
            drop(self.lock());
            self.answered.notify_all();
            return Ok(());
        }
        let answer = self.introduce(Kind::Accept, hello.from, &link, hello.lane, hello.chunk)?;
        self.send(&hello.card, &answer)
    }
}
