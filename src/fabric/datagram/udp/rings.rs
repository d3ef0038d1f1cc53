//! Rings by UDP: sockets of their own. The system keeps what comes to a socket in the room of that socket alone, so nobody else's datagrams
//! are in the way there, whoever they are from.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, Weak};

use super::{has_groups, room_of, set_room, spot};
use crate::base::error::{Error, Result};
use crate::base::lock::lock;
use crate::base::system::epoll::{Epoll, Event};
use crate::fabric::datagram::carrier::{OVERHEAD, Ring, SLOTS, SLOTS_BESIDE, Spot};

/// Rings that are asked at a time what has come.
const AT_A_TIME: usize = 16;
/// So often as something comes to the lively ring, the others are looked at once.
const TURNS: u32 = 4;

/// All of a process.
#[derive(Debug)]
pub(super) struct Rings {
    ready: Epoll,
    all: Mutex<All>,
}

/// The ring to which something has come last, where the next may well come. Of who receives.
#[derive(Default)]
pub(super) struct Lively {
    socket: Weak<UdpSocket>,
    turns: u32,
}

/// Where is looked in a turn, behind the lively ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Rings,
    Shared,
    Everywhere,
}

impl Lively {
    /// It, if there is one.
    pub fn socket(&self) -> Option<Arc<UdpSocket>> {
        self.socket.upgrade()
    }
    /// Something has come to this one.
    pub fn is(&mut self, socket: &Arc<UdpSocket>) {
        self.socket = Arc::downgrade(socket);
    }
    /// Where else is to be looked in this turn, after something `came` to it, or nothing: in few places at a time, since each is a call of the
    /// system, and in all within some turns.
    pub fn turn(&mut self, came: bool) -> Option<Look> {
        let turn = self.turns;
        self.turns = turn.wrapping_add(1);
        match came {
            true => turn.is_multiple_of(TURNS).then_some(Look::Everywhere),
            false if turn.is_multiple_of(2) => Some(Look::Rings),
            false => Some(Look::Shared),
        }
    }
}

#[derive(Debug, Default)]
struct All {
    sockets: HashMap<u64, Arc<UdpSocket>>,
    last: u64,
}

impl Rings {
    /// None yet.
    pub fn new() -> Result<Arc<Rings>> {
        let ready = Epoll::new().map_err(|_| Error::system("a descriptor for rings of datagrams (epoll)"))?;
        Ok(Arc::new(Rings { ready, all: Mutex::default() }))
    }
    /// Is readable when something has come to one of them.
    pub fn fd(&self) -> std::os::fd::RawFd {
        self.ready.as_raw_fd()
    }
    /// Those to which something has come, some of them.
    pub fn with_something(&self) -> Vec<Arc<UdpSocket>> {
        let mut events = [Event { events: 0, u64: 0 }; AT_A_TIME];
        let ready = self.ready.wait(&mut events, 0);
        if ready.is_empty() {
            return Vec::new();
        }
        let all = lock(&self.all);
        ready.iter().filter_map(|event| all.sockets.get(&{ event.u64 }).cloned()).collect()
    }
    /// One more, at this address, for datagrams of so many bytes.
    pub fn add(self: &Arc<Self>, ip: IpAddr, most: usize) -> Result<Socket> {
        let system = |what: &str| Error::system(format!("a socket for a ring of datagrams at {ip} ({what})"));
        let socket = UdpSocket::bind((ip, 0)).map_err(|_| system("bind"))?;
        socket.set_nonblocking(true).map_err(|_| system("fcntl"))?;
        let number = socket.local_addr().map_err(|_| system("getsockname"))?.port();
        let each = most as u32 + OVERHEAD;
        set_room(&socket, ((SLOTS + SLOTS_BESIDE) * each) as i32);
        let slots = (room_of(&socket) / each).saturating_sub(SLOTS_BESIDE).clamp(1, SLOTS);
        has_groups(&socket);
        let mut all = lock(&self.all);
        all.last += 1;
        let id = all.last;
        self.ready.add(socket.as_raw_fd(), libc::EPOLLIN, id).map_err(|_| system("epoll_ctl"))?;
        all.sockets.insert(id, Arc::new(socket));
        Ok(Socket { rings: self.clone(), id, spot: spot(ip, number), slots })
    }
}

/// One ring.
#[derive(Debug)]
pub(super) struct Socket {
    rings: Arc<Rings>,
    id: u64,
    spot: Spot,
    slots: u32,
}

impl Ring for Socket {
    fn spot(&self) -> Spot {
        self.spot
    }
    fn slots(&self) -> u32 {
        self.slots
    }
    /// The system's, and only what is not received yet.
    fn bytes(&self) -> usize {
        size_of::<Socket>()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(socket) = lock(&self.rings.all).sockets.remove(&self.id) {
            // Who receives there at this moment has it a moment longer.
            self.rings.ready.remove(socket.as_raw_fd());
        }
    }
}
