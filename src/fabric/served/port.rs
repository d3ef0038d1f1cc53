//! The address that a process uses, and how it and the ends of its connections are named.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::frame::{Name, half, word};
use crate::base::error::{Code, Error, Result, error};
use crate::base::system::addresses;
use crate::fabric::network::device::{Address, End, OPAQUE};
use crate::fabric::network::interface::leads_out;

/// An address of this machine, and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The network that it is used by, as `FMPL_NETWORK` calls it.
    pub network: &'static str,
    /// The interface.
    pub name: String,
    /// Its address.
    pub ip: IpAddr,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ({})", self.network, self.name, self.ip)
    }
}

impl Port {
    /// The one that is named, by its interface or address; otherwise the best. `Setting`: there is none of that name.
    pub fn choose(network: &'static str, wish: Option<&str>) -> Result<Port> {
        let all = addresses()
            .map_err(|e| error!(Code::System, "asking for the addresses of this machine (getifaddrs): {e}"))?;
        let ports = all.into_iter().map(|(name, ip)| Port { network, name, ip }).collect();
        Port::best(network, ports, wish)
    }

    fn best(network: &str, mut ports: Vec<Port>, wish: Option<&str>) -> Result<Port> {
        // An address of a link is none without the link's number, which the others count differently.
        ports.retain(|p| !matches!(p.ip, IpAddr::V6(ip) if ip.is_unicast_link_local()));
        let there: Vec<String> = ports.iter().map(|p| format!("{} ({})", p.name, p.ip)).collect();
        if let Some(wish) = wish {
            ports.retain(|p| p.name == wish || p.ip.to_string() == wish);
        }
        // What leads to other machines before what does not, the fourth version before the sixth; the system's order otherwise.
        let best =
            ports.into_iter().min_by_key(|p| (p.ip.is_loopback(), !leads_out(&p.name, Some(p.ip)), p.ip.is_ipv6()));
        best.ok_or_else(|| match wish {
            Some(wish) => error!(
                Code::Setting,
                "FMPL_NETWORK={network}:{wish}: no interface or address {wish} that is up; there are: {}",
                there.join(", ")
            ),
            None => Error::new(Code::Unsupported, "this machine has no interface that is up"),
        })
    }
}

/// Where a process is reached: its sockets of datagrams and of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Reached {
    pub ip: IpAddr,
    pub datagrams: u16,
    pub connections: u16,
}

/// ip 16 | ports 2, 2
const REACHED: usize = 20;

impl Reached {
    fn encode(&self) -> [u8; REACHED] {
        let mut b = [0; REACHED];
        let ip = match self.ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        b[..16].copy_from_slice(&ip.octets());
        b[16..18].copy_from_slice(&self.datagrams.to_le_bytes());
        b[18..].copy_from_slice(&self.connections.to_le_bytes());
        b
    }
    fn decode(b: &[u8]) -> Reached {
        let mut ip = [0; 16];
        ip.copy_from_slice(&b[..16]);
        let half = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        Reached { ip: Ipv6Addr::from(ip).to_canonical(), datagrams: half(16), connections: half(18) }
    }
    pub fn address(&self) -> Address {
        let mut b = [0; OPAQUE];
        b[..REACHED].copy_from_slice(&self.encode());
        Address(b)
    }
    pub fn of(address: &Address) -> Reached {
        Reached::decode(&address.0)
    }
    /// The socket at one of its ports.
    pub fn at(&self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => (ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, 0).into(),
        }
    }
    /// The end of a connection there: where | number 4 | token 8
    pub fn end(&self, name: Name) -> End {
        let mut b = [0; OPAQUE];
        b[..REACHED].copy_from_slice(&self.encode());
        b[REACHED..][..4].copy_from_slice(&name.number.to_le_bytes());
        b[REACHED + 4..][..8].copy_from_slice(&name.token.to_le_bytes());
        End(b)
    }
    pub fn of_end(end: &End) -> (Reached, Name) {
        let name = Name { number: half(&end.0, REACHED), token: word(&end.0, REACHED + 4) };
        (Reached::decode(&end.0), name)
    }
}

/// The same as the system has it, and its length.
pub(in crate::fabric) fn native(at: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    let mut there: libc::sockaddr_storage = crate::base::system::calls::blank();
    let place = (&raw mut there).cast::<u8>();
    let len = match at {
        SocketAddr::V4(to) => {
            let v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: to.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: there is room for all kinds of addresses.
            unsafe { place.cast::<libc::sockaddr_in>().write(v4) };
            size_of_val(&v4)
        }
        SocketAddr::V6(to) => {
            let v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: to.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: to.ip().octets() },
                sin6_scope_id: to.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(v6) };
            size_of_val(&v6)
        }
    };
    (there, len as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_as_they_went() {
        for ip in ["192.0.2.7", "2001:db8::9"] {
            let reached = Reached { ip: ip.parse().expect("an address"), datagrams: 0x1234, connections: 0xfedc };
            let name = Name { number: 1 << 31 | 3, token: !5 };
            assert_eq!(Reached::of(&reached.address()), reached);
            assert_eq!(Reached::of_end(&reached.end(name)), (reached, name));
        }
    }

    #[test]
    fn what_leads_to_others_is_used() {
        let port =
            |name: &str, ip: &str| Port { network: "tcp", name: name.into(), ip: ip.parse().expect("an address") };
        let all =
            || vec![port("lo", "127.0.0.1"), port("a", "fe80::1"), port("b", "2001:db8::1"), port("c", "192.0.2.1")];
        let best = |ports: Vec<Port>, wish| Port::best("tcp", ports, wish).map(|p| p.name).map_err(|e| e.code());
        assert_eq!(best(all(), None), Ok("c".into()));
        assert_eq!(best(all(), Some("lo")), Ok("lo".into()));
        assert_eq!(best(all(), Some("2001:db8::1")), Ok("b".into()));
        assert_eq!(best(all(), Some("d")), Err(Code::Setting));
        assert_eq!(best(all()[..1].to_vec(), None), Ok("lo".into()));
        assert_eq!(best(Vec::new(), None), Err(Code::Unsupported));
    }
}
