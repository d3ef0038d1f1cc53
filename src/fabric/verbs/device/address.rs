//! The addresses (GIDs) of a port.

use super::*;

/// What an address is made of, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GidKind {
    /// InfiniBand.
    InfiniBand,
    /// RoCE version 2 over IPv4.
    V2Ipv4,
    /// RoCE version 2 over a global IPv6 address.
    V2Ipv6,
    /// RoCE version 2 over a link-local address.
    V2LinkLocal,
    /// RoCE version 1: within one Ethernet segment only.
    V1,
}

impl GidKind {
    pub(super) fn of(gid: Gid, kind: u32) -> GidKind {
        match kind {
            ffi::GID_IB => GidKind::InfiniBand,
            ffi::GID_ROCE_V2 if gid.0[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] => GidKind::V2Ipv4,
            ffi::GID_ROCE_V2 if gid.0[0] == 0xfe && gid.0[1] & 0xc0 == 0x80 => GidKind::V2LinkLocal,
            ffi::GID_ROCE_V2 => GidKind::V2Ipv6,
            _ => GidKind::V1,
        }
    }
}

impl fmt::Display for GidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GidKind::InfiniBand => "InfiniBand",
            GidKind::V2Ipv4 => "RoCE v2, IPv4",
            GidKind::V2Ipv6 => "RoCE v2, IPv6",
            GidKind::V2LinkLocal => "RoCE v2, link-local",
            GidKind::V1 => "RoCE v1",
        })
    }
}

/// An address of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub gid: Gid,
    /// Its place in the port's table.
    pub index: u8,
    /// What it is made of.
    pub kind: GidKind,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v6 = std::net::Ipv6Addr::from(self.gid.0);
        match v6.to_ipv4_mapped() {
            Some(v4) => write!(f, "gid {} ({v4}, {})", self.index, self.kind),
            None => write!(f, "gid {} ({v6}, {})", self.index, self.kind),
        }
    }
}
