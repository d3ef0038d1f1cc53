//! Datagrams by UDP: one socket of the process, over which it reaches all others, and one more for each peer that has a ring.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::carrier::{BATCH, Carrier, GROUPED, Ring, SPOT, Spot, Taker};
use crate::base::error::{Code, Result, error};
use crate::base::lock::lock;
use crate::base::system::calls::{self, blank};
use crate::base::system::set_option;
use crate::fabric::served::port::{Port, native};
use receiving::{Buffers, Control};
use rings::{Look, Rings};

mod receiving;
mod rings;

/// Bytes of a datagram at most where a packet could be longer (the loopback's): more of them find room at the receiver, and two are a group.
const LONGEST: usize = (32 << 10) - 64;
/// Bytes of a group of datagrams at most: they go through the system in one piece. All but the last have one length.
const GROUP: usize = 65_507;
/// Bytes of the headers that the network adds: of the internet's, fourth and sixth version, and UDP's.
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];
/// Bytes of datagrams for which there is to be room until they are received; the system keeps twice as many, what it adds counted.
const ROOM: i32 = 2 << 20;
/// What a network without a known length of packets takes.
const USUAL_MTU: usize = 1500;

/// See the head of this file.
pub struct Udp {
    port: Port,
    socket: UdpSocket,
    number: u16,
    most: usize,
    room: u32,
    /// The system takes groups.
    groups: AtomicBool,
    buffers: Mutex<Buffers>,
    rings: OnceLock<Arc<Rings>>,
}

impl Udp {
    /// Uses this port from now on.
    pub fn open(port: Port) -> Result<Udp> {
        let system = |e: io::Error| error!(Code::System, "a socket for datagrams at {}: {e}", port.ip);
        let socket = UdpSocket::bind((port.ip, 0)).map_err(system)?;
        socket.set_nonblocking(true).map_err(system)?;
        let number = socket.local_addr().map_err(system)?.port();
        set_room(&socket, ROOM);
        let (level, errors) = match port.ip {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        set_option(&socket, level, errors, 1);
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{}/mtu", port.name)).ok();
        let mtu = mtu.and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_MTU);
        let most = (mtu.max(576) - HEADERS[usize::from(port.ip.is_ipv6())]).min(LONGEST);
        let room = room_of(&socket);
        has_groups(&socket);
        let (groups, buffers) = (AtomicBool::new(true), Mutex::new(Buffers::new()));
        Ok(Udp { port, socket, number, most, room, groups, buffers, rings: OnceLock::new() })
    }

    /// Sends one datagram; has it left?
    ///
    /// # Safety
    /// The parts can be read, and the address is one, as long as said.
    unsafe fn send_one(&self, to: *mut libc::c_void, len: u32, parts: &[libc::iovec]) -> io::Result<bool> {
        loop {
            // SAFETY: a message that is all zero is an empty one; otherwise as the caller promises.
            let n = unsafe {
                let mut message: libc::msghdr = std::mem::zeroed();
                (message.msg_name, message.msg_namelen) = (to, len);
                (message.msg_iov, message.msg_iovlen) = (parts.as_ptr().cast_mut(), parts.len() as _);
                libc::sendmsg(self.socket.as_raw_fd(), &message, libc::MSG_DONTWAIT)
            };
            if n >= 0 {
                return Ok(true);
            }
            match not_sent(io::Error::last_os_error())? {
                Not::Now => return Ok(false),
                Not::Yet => {}
                Not::There => return Ok(true),
            }
        }
    }

    /// What the system has to say about datagrams that have gone out.
    fn next_refusal(&self) -> io::Result<Option<Spot>> {
        // SAFETY: all zero is a value of each of these; the call writes into memory that is there.
        unsafe {
            let mut to: libc::sockaddr_storage = std::mem::zeroed();
            let mut message: libc::msghdr = std::mem::zeroed();
            let mut control = [0u64; 32];
            (message.msg_name, message.msg_namelen) = ((&raw mut to).cast(), size_of_val(&to) as u32);
            (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
            let got = libc::recvmsg(self.socket.as_raw_fd(), &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
            if got < 0 {
                return Err(io::Error::last_os_error());
            }
            let first = libc::CMSG_FIRSTHDR(&message);
            if first.is_null() {
                return Ok(None);
            }
            let error = libc::CMSG_DATA(first).cast::<libc::sock_extended_err>().read_unaligned();
            Ok((error.ee_errno == libc::ECONNREFUSED as u32).then(|| spot_of(&to)).flatten())
        }
    }
}

/// Why a datagram has not left.
enum Not {
    /// There is no room.
    Now,
    /// Something else was told first.
    Yet,
    /// There is no way there now: it is lost, as it might be further on.
    There,
}

fn not_sent(e: io::Error) -> io::Result<Not> {
    match (e.kind(), e.raw_os_error()) {
        (ErrorKind::WouldBlock, _) | (_, Some(libc::ENOBUFS)) => Ok(Not::Now),
        (ErrorKind::Interrupted | ErrorKind::ConnectionRefused, _) => Ok(Not::Yet),
        (_, Some(libc::EFAULT)) => Err(e),
        _ => Ok(Not::There),
    }
}

/// Asks for room for so many bytes: more than the system allows everybody if this process may, otherwise that.
fn set_room(socket: &UdpSocket, bytes: i32) {
    for (force, option) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        set_option(socket, libc::SOL_SOCKET, option, bytes);
        set_option(socket, libc::SOL_SOCKET, force, bytes);
    }
}

/// Groups come in one piece; where that is refused each datagram comes by itself.
fn has_groups(socket: &UdpSocket) {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
}

/// Bytes for which the system has room, the half of what it counts.
fn room_of(socket: &UdpSocket) -> u32 {
    calls::option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0i32).unwrap_or(0).max(4096) as u32 / 2
}

/// ip 16 | port 2
fn spot(ip: IpAddr, port: u16) -> Spot {
    let mut spot = [0; SPOT];
    let ip = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    spot[..16].copy_from_slice(&ip.octets());
    spot[16..18].copy_from_slice(&port.to_le_bytes());
    spot
}

fn address_of(spot: &Spot) -> std::net::SocketAddr {
    let mut ip = [0; 16];
    ip.copy_from_slice(&spot[..16]);
    (Ipv6Addr::from(ip).to_canonical(), u16::from_le_bytes([spot[16], spot[17]])).into()
}

/// The same of the system's.
fn spot_of(at: &libc::sockaddr_storage) -> Option<Spot> {
    let place = std::ptr::from_ref(at);
    // SAFETY: of the family that is said, for each of which there is room.
    unsafe {
        match i32::from(at.ss_family) {
            libc::AF_INET => {
                let v4 = place.cast::<libc::sockaddr_in>().read();
                Some(spot(v4.sin_addr.s_addr.to_ne_bytes().into(), u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                let v6 = place.cast::<libc::sockaddr_in6>().read();
                Some(spot(v6.sin6_addr.s6_addr.into(), u16::from_be(v6.sin6_port)))
            }
            _ => None,
        }
    }
}

/// Datagrams that leave by one message.
#[derive(Clone, Copy, Default)]
struct Leaving {
    /// Their parts, how many datagrams they are, and how long each is.
    from: usize,
    to: usize,
    n: usize,
    each: usize,
}

/// The next datagrams that can leave together, from this one on.
fn group(parts: &[libc::iovec], ends: &[usize], first: usize, most: usize) -> Leaving {
    let begin = |k: usize| if k == 0 { 0 } else { ends[k - 1] };
    let len = |k: usize| parts[begin(k)..ends[k]].iter().map(|part| part.iov_len).sum::<usize>();
    let each = len(first);
    let (mut n, mut whole) = (1, each);
    while n < most && first + n < ends.len() {
        let next = len(first + n);
        if next > each || next == 0 || whole + next > GROUP {
            break;
        }
        (n, whole) = (n + 1, whole + next);
        if next < each {
            break;
        }
    }
    Leaving { from: begin(first), to: ends[first + n - 1], n, each }
}

/// The system parts a message into datagrams of so many bytes each.
fn part_by_system(message: &mut libc::msghdr, control: &mut Control, each: usize) {
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: there is room for a header and a number.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
        let first = libc::CMSG_FIRSTHDR(message);
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
        libc::CMSG_DATA(first).cast::<u16>().write_unaligned(each as u16);
    }
}

impl Carrier for Udp {
    fn describe(&self) -> String {
        self.port.to_string()
    }
    fn network(&self) -> String {
        "udp".into()
    }
    fn most(&self) -> usize {
        self.most
    }
    fn room(&self) -> u32 {
        self.room
    }
    fn spot(&self) -> Spot {
        spot(self.port.ip, self.number)
    }
    fn ring(&self) -> Result<Box<dyn Ring>> {
        let rings = match self.rings.get() {
            Some(rings) => rings,
            None => {
                let made = Rings::new()?;
                self.rings.get_or_init(|| made)
            }
        };
        Ok(Box::new(rings.add(self.port.ip, self.most)?))
    }

    unsafe fn send(&self, to: &Spot, parts: &[libc::iovec], ends: &[usize]) -> io::Result<usize> {
        let (mut there, len) = native(address_of(to));
        if let [end] = ends {
            // SAFETY: as the caller promises.
            let left = unsafe { self.send_one((&raw mut there).cast(), len, &parts[..*end]) };
            return left.map(usize::from);
        }
        let mut messages: [libc::mmsghdr; BATCH] = std::array::from_fn(|_| blank());
        let (mut all, mut control) = ([Leaving::default(); BATCH], [Control::default(); BATCH]);
        let mut sent = 0;
        while sent < ends.len() {
            let most = if self.groups.load(Ordering::Relaxed) { GROUPED } else { 1 };
            let (mut n, mut next) = (0, sent);
            while next < ends.len() {
                let one = group(parts, ends, next, most);
                let message = &mut messages[n].msg_hdr;
                (message.msg_name, message.msg_namelen) = ((&raw mut there).cast(), len);
                let of_it = &parts[one.from..one.to];
                (message.msg_iov, message.msg_iovlen) = (of_it.as_ptr().cast_mut(), of_it.len() as _);
                if one.n > 1 {
                    part_by_system(message, &mut control[n], one.each);
                }
                (all[n], n, next) = (one, n + 1, next + one.n);
            }
            // SAFETY: as the caller promises.
            let done =
                unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), n as u32, libc::MSG_DONTWAIT) };
            if let Ok(done) = usize::try_from(done) {
                sent += all[..done].iter().map(|one| one.n).sum::<usize>();
                continue;
            }
            match not_sent(io::Error::last_os_error())? {
                Not::Now => break,
                Not::Yet => {}
                // Some devices do not part them.
                Not::There if all[0].n > 1 => self.groups.store(false, Ordering::Relaxed),
                Not::There => sent += 1,
            }
        }
        Ok(sent)
    }

    fn receive(&self, with: &mut dyn Taker) -> io::Result<bool> {
        let mut buffers = lock(&self.buffers);
        let Some(rings) = self.rings.get() else { return buffers.receive(&self.socket, with) };
        let (mut more, mut look) = (false, Look::Everywhere);
        if let Some(lively) = buffers.lively.socket() {
            let came = buffers.receive(&lively, with);
            more = came.as_ref().is_ok_and(|more| *more);
            match buffers.lively.turn(came.is_ok()) {
                Some(next) => look = next,
                None => return Ok(more),
            }
        }
        if look != Look::Shared {
            for socket in rings.with_something() {
                more |= buffers.receive(&socket, with).unwrap_or(false);
                buffers.lively.is(&socket);
            }
        }
        if look != Look::Rings {
            more |= buffers.receive(&self.socket, with)?;
        }
        Ok(more)
    }

    fn refusals(&self, with: &mut dyn FnMut(&Spot)) {
        for _ in 0..BATCH {
            match self.next_refusal() {
                Ok(Some(spot)) => with(&spot),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
    fn rings_fd(&self) -> Option<RawFd> {
        self.rings.get().map(|rings| rings.fd())
    }
    /// The system knows whether its host can be reached: nobody takes calls of TCP there, which is an answer.
    fn why_silent(&self, of: &Spot) -> Option<String> {
        let at = address_of(of);
        match TcpStream::connect_timeout(&at, Duration::from_millis(500)) {
            Err(e) if e.kind() != ErrorKind::ConnectionRefused => Some(format!("its port {at} cannot be reached: {e}")),
            _ => Some(format!("its host at {at} can be reached")),
        }
    }
    fn bytes(&self) -> usize {
        lock(&self.buffers).bytes()
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    fn udp() -> Udp {
        let port = Port { network: "udp", name: "lo".into(), ip: std::net::Ipv4Addr::LOCALHOST.into() };
        Udp::open(port).expect("a socket")
    }

    fn send(from: &Udp, to: &Spot, all: &[&[u8]]) -> usize {
        let part = |b: &&[u8]| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() };
        let (parts, ends): (Vec<_>, Vec<_>) = all.iter().map(part).zip(1..).unzip();
        // SAFETY: slices.
        unsafe { from.send(to, &parts, &ends) }.expect("it takes them")
    }

    #[test]
    fn a_batch_arrives_as_it_went() {
        for groups in [true, false] {
            let (one, two) = (udp(), udp());
            one.groups.store(groups, Ordering::Relaxed);
            let long = |n: u8| vec![n; one.most()];
            let all: Vec<Vec<u8>> = [b"first".to_vec(), long(1), long(2), long(3), vec![4; 9], vec![5; 9]]
                .into_iter()
                .chain((0..20).map(|n| vec![n; 1400]))
                .collect();
            assert_eq!(send(&one, &two.spot(), &all.iter().map(Vec::as_slice).collect::<Vec<_>>()), all.len());
            let mut came: Vec<Vec<u8>> = Vec::new();
            while came.len() < all.len() {
                let _ = two.receive(&mut |bytes: &[u8]| came.push(bytes.to_vec()));
            }
            assert!(came == all);
        }
    }

    #[test]
    fn where_nobody_is_is_told() {
        let one = udp();
        let gone = udp().spot();
        send(&one, &gone, &[b"hello"]);
        let mut told = Vec::new();
        for _ in 0..1000 {
            one.refusals(&mut |spot| told.push(*spot));
            if !told.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(told, [gone]);
        assert_eq!(address_of(&spot("2001:db8::1".parse().unwrap(), 9)).to_string(), "[2001:db8::1]:9");
    }
}
