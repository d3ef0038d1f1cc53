//! A port that a process uses, as the protocol between nodes wants it: its datagrams by UDP, its connections by TCP, and what comes.
//!
//! What a peer asks for is done only while somebody of this process calls. Threads that wait do; the thread of the fabric sleeps on all sockets
//! together, and stays aside for a moment whenever others have called since it looked last, since it would only get in their way.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::congestion::Algorithm;
use super::connection::Connection;
use super::greeting::{GREETING, Greeting};
use super::home::Home;
use super::socket::{Terms, Watch};
use crate::base::config::Congestion;
use crate::base::error::{Code, Error, Result};
use crate::base::key::random;
use crate::base::lock::lock;
use crate::base::system::epoll::Event;
use crate::base::system::unshared::Unshared;
use crate::base::system::{self, poll_for};
use crate::fabric::network::device::{
    Address, Arrived, Atomics, DATAGRAM, Device, DeviceError, Limits, Pair, Registrar,
};
use crate::fabric::network::multicast::{Counts, Group, Name as GroupName};
use crate::fabric::network::region::Domain;
use crate::fabric::served::frame::Name;
use crate::fabric::served::limits;
use crate::fabric::served::memory::Memory;
use crate::fabric::served::port::{Port, Reached};
use crate::fabric::served::sleeper::{Sleeper, readable};
use crate::fabric::two_ways::Connected;

/// After so long without an answer a connection has failed.
const SILENCE_NS: u64 = 5_000_000_000;
/// Turns after which it is asked in any case.
const TURNS: u64 = 32;
/// Who has dialled and does not say whom within so long is hung up on, as is the first of more than so many.
const GREETS_WITHIN: Duration = Duration::from_secs(5);
const STRANGERS: usize = 256;
/// Connections that may be dialled before anybody has looked.
const CALLS: i32 = 4096;
/// Without descriptors calls are tried again so often.
const DEAF: Duration = Duration::from_millis(100);
/// Datagrams that are taken at a time.
const DATAGRAMS: usize = 64;

/// How long somebody who has not answered is called for to find out why.
const ASKS: Duration = Duration::from_millis(500);

/// Names of sockets, of which connections have their numbers.
const OF_DATAGRAMS: u64 = 1 << 32;
const OF_CALLS: u64 = 2 << 32;
const OF_STRANGERS: u64 = 3 << 32;

/// Somebody who has dialled, and what he has said.
#[derive(Debug)]
struct Stranger {
    stream: TcpStream,
    said: [u8; GREETING],
    n: usize,
    since: Instant,
}

/// See the head of this file.
pub struct Tcp {
    port: Port,
    home: Arc<Home>,
    domain: Arc<Domain>,
    datagrams: UdpSocket,
    calls: Unshared<TcpListener>,
    strangers: Mutex<Vec<Stranger>>,
    /// No calls are taken for now.
    is_deaf: AtomicBool,
    last: AtomicU32,
}

impl Tcp {
    /// Uses this port from now on. `Setting`: what is wished of connections cannot be had.
    pub fn open(port: Port, wish: &Congestion) -> Result<Tcp> {
        let system = |what: &str| {
            let what = format!("{what} at {}", port.ip);
            move |e: std::io::Error| Error::new(Code::System, format!("{what}: {e}"))
        };
        let datagrams = UdpSocket::bind((port.ip, 0)).map_err(system("a socket for datagrams"))?;
        let calls = TcpListener::bind((port.ip, 0)).map_err(system("a socket for connections"))?;
        let _ = system::listen(&calls, CALLS);
        let ready = || {
            datagrams.set_nonblocking(true)?;
            calls.set_nonblocking(true)?;
            let watch = Watch::new()?;
            watch.add(datagrams.as_raw_fd(), OF_DATAGRAMS, false)?;
            watch.add(calls.as_raw_fd(), OF_CALLS, false)?;
            let ports = (datagrams.local_addr()?.port(), calls.local_addr()?.port());
            Ok((watch, ports, Sleeper::new()?))
        };
        let (watch, (of_datagrams, of_connections), sleeper) = ready().map_err(system("the sockets"))?;
        let memory = Arc::<Memory>::default();
        let domain = Domain::new(memory.clone(), Atomics::Both);
        let reached = Reached { ip: port.ip, datagrams: of_datagrams, connections: of_connections };
        let terms = Terms { silence_ms: (SILENCE_NS / 1_000_000) as u32, congestion: Algorithm::choose(&calls, wish)? };
        let home = Home::new(memory, (watch, sleeper), reached, terms);
        Ok(Tcp {
            port,
            home: Arc::new(home),
            domain,
            datagrams,
            calls: Unshared::new(calls),
            strangers: Mutex::default(),
            is_deaf: AtomicBool::new(false),
            last: AtomicU32::new(0),
        })
    }

    /// Takes calls, and has those who have called say whom they want.
    fn take_calls(&self) {
        loop {
            let stream = match self.calls.accept() {
                Ok((stream, _)) => stream,
                Err(e) => match e.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => return self.be_deaf(),
                    // Who has called has hung up already.
                    Some(libc::ECONNABORTED | libc::EINTR) => continue,
                    _ => return,
                },
            };
            let fd = stream.as_raw_fd();
            let mut strangers = lock(&self.strangers);
            strangers.retain(|s| s.since.elapsed() < GREETS_WITHIN);
            if strangers.len() >= STRANGERS {
                strangers.remove(0);
            }
            let watched =
                stream.set_nonblocking(true).and_then(|()| self.home.watch.add(fd, OF_STRANGERS | fd as u64, false));
            if watched.is_ok() {
                strangers.push(Stranger { stream, said: [0; GREETING], n: 0, since: Instant::now() });
            }
        }
    }

    /// There is nothing to take calls with: who calls waits, and would keep the thread awake in vain.
    #[cold]
    pub(super) fn be_deaf(&self) {
        if !self.is_deaf.swap(true, Ordering::AcqRel) {
            self.home.watch.remove(self.calls.as_raw_fd());
        }
    }

    /// Calls are tried again.
    fn hear_again(&self) {
        if self.is_deaf.swap(false, Ordering::AcqRel) {
            // Where that fails they are tried for ever.
            let heard = self.home.watch.add(self.calls.as_raw_fd(), OF_CALLS, false);
            self.is_deaf.fetch_or(heard.is_err(), Ordering::AcqRel);
        }
    }

    /// Somebody who has called says whom he wants.
    fn hear(&self, fd: RawFd) {
        let mut strangers = lock(&self.strangers);
        let Some(at) = strangers.iter().position(|s| s.stream.as_raw_fd() == fd) else { return };
        let one = &mut strangers[at];
        match one.stream.read(&mut one.said[one.n..]) {
            Ok(n) if n > 0 => one.n += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            _ => {
                strangers.swap_remove(at);
                return;
            }
        }
        if one.n < GREETING {
            return;
        }
        let one = strangers.swap_remove(at);
        drop(strangers);
        self.home.watch.remove(fd);
        let Some(greeting) = Greeting::decode(&one.said) else { return };
        if let Some(connection) = self.home.of(greeting.to.number) {
            let socket = OwnedFd::from(one.stream);
            self.home.terms.settle(&socket);
            connection.is_called(socket, greeting);
        }
    }

    /// Takes datagrams; was there any?
    fn take_datagrams(&self, with: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let mut some = false;
        for _ in 0..DATAGRAMS {
            let mut bytes = [0; DATAGRAM + 1];
            match self.datagrams.recv(&mut bytes) {
                Ok(DATAGRAM) => {
                    if let Some(datagram) = bytes.first_chunk() {
                        with(Arrived::Datagram(datagram));
                    }
                }
                Ok(_) => with(Arrived::Damaged),
                // One that was sent before has come back: nobody was there.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => break,
            }
            some = true;
        }
        some
    }

    /// Asks the system which sockets have something, and deals with it. `all`: whoever calls goes away; `came`: something has come by a
    /// connection. Were there datagrams?
    fn look(&self, all: bool, came: &mut bool, with: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let mut events = [Event { events: 0, u64: 0 }; 32];
        let mut some = false;
        for event in self.home.watch.look(&mut events) {
            let (name, what) = (event.u64, event.events);
            match name {
                OF_DATAGRAMS => some |= self.take_datagrams(with),
                OF_CALLS => self.take_calls(),
                _ if name & !0xffff_ffff == OF_STRANGERS => self.hear(name as u32 as RawFd),
                _ => {
                    let Some(connection) = self.home.of(name as u32) else { continue };
                    if what & libc::EPOLLOUT as u32 != 0 {
                        connection.flush();
                    }
                    if what & !(libc::EPOLLOUT as u32) != 0 {
                        *came |= connection.receive(all, 1);
                    }
                }
            }
        }
        some
    }

    /// Sends what is owed or held back.
    fn pay_all(&self) {
        self.home.everyone().iter().for_each(|connection| {
            connection.pay();
            connection.flush_or_watch();
        });
    }
}

impl Connected for Tcp {
    fn registrar(&self) -> Arc<dyn Registrar> {
        self.home.memory.clone()
    }
    fn fds(&self) -> Vec<RawFd> {
        vec![self.home.watch.as_raw_fd(), self.home.sleeper.fd()]
    }
    fn has_slept(&self) -> bool {
        self.hear_again();
        self.home.sleeper.is_heard();
        self.home.news.has_errors()
    }
}

impl Device for Tcp {
    fn describe(&self) -> String {
        self.port.to_string()
    }
    fn network(&self) -> String {
        "tcp".into()
    }
    fn limits(&self) -> Limits {
        Limits { reads_early: true, has_annexes: true, appends: true, ..limits(SILENCE_NS) }
    }
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    fn address(&self) -> Address {
        self.home.reached.address()
    }

    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        let reached = Reached::of(to);
        Ok(self.datagrams.send_to(datagram, reached.at(reached.datagrams)).is_ok())
    }

    /// The system knows.
    fn why_silent(&self, of: &Address) -> Option<String> {
        let reached = Reached::of(of);
        let at = reached.at(reached.connections);
        Some(match TcpStream::connect_timeout(&at, ASKS) {
            Ok(_) => format!("its port {at} can be reached"),
            Err(e) => format!("its port {at} cannot be reached: {e}"),
        })
    }

    fn pair(&self, _depth: u32) -> Result<Arc<dyn Pair>> {
        let token = u64::from_le_bytes(random()?);
        let mut all = self.home.all.write().unwrap_or_else(PoisonError::into_inner);
        let number = loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if number != 0 && !all.contains_key(&number) {
                break number;
            }
        };
        let connection = Arc::new(Connection::new(&self.home, Name { number, token }));
        all.insert(number, Arc::downgrade(&connection));
        Ok(connection)
    }

    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        let mut some = self.look(true, &mut false, with);
        if self.home.owing.load(Ordering::Relaxed) > 0 {
            self.pay_all();
        }
        some |= self.home.news.take(with);
        if !self.home.sleeper.is_caller() {
            self.home.sleeper.is_driven();
        }
        self.home.sleeper.has_come(some);
        Ok(())
    }

    fn drive(&self, looks: u32, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        let turn = self.home.sleeper.is_driven();
        let few = if turn.is_multiple_of(TURNS) { None } else { self.home.few() };
        let (mut some, mut came) = (false, false);
        match few {
            Some([Some(only), None]) => {
                came = only.receive(false, looks);
                only.turn();
            }
            Some(few) => few.into_iter().flatten().for_each(|connection| {
                came |= connection.receive(false, 1);
                connection.turn();
            }),
            None => {
                some |= self.look(false, &mut came, with);
                if self.home.owing.load(Ordering::Relaxed) > 0 {
                    self.home.everyone().iter().for_each(|connection| connection.turn());
                }
            }
        }
        some |= self.home.news.take(with);
        self.home.sleeper.has_come(some);
        Ok(came)
    }

    fn arm(&self) -> Result<()> {
        Ok(())
    }

    fn sleep(&self, at_most: Option<Duration>) -> bool {
        self.home.sleeper.sleep(
            at_most,
            || self.home.news.has_errors(),
            |wake| {
                if self.home.owing.load(Ordering::SeqCst) > 0 {
                    self.pay_all();
                }
                let deaf = self.is_deaf.load(Ordering::Acquire);
                let at_most = if deaf { Some(at_most.map_or(DEAF, |t| t.min(DEAF))) } else { at_most };
                let _ = poll_for(&mut [wake, readable(&self.home.watch)], at_most);
                self.hear_again();
            },
        )
    }

    fn wake(&self) {
        self.home.sleeper.wake();
    }

    fn next_error(&self) -> Option<DeviceError> {
        self.home.news.next_error()
    }

    fn join(&self, _name: GroupName, _counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        Err(Error::new(Code::Unsupported, format!("{} has no multicast groups", self.port)))
    }

    fn bytes(&self) -> usize {
        0
    }
}
