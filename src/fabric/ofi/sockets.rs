//! The sockets of a connection over TCP, which the library does not show: they are found by their addresses, to set what decides how fast they
//! send, as for [this side's own](crate::fabric::tcp::congestion).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};

use super::provider::Offer;
use crate::base::config::Congestion;
use crate::base::error::Result;
use crate::base::system::calls;
use crate::fabric::tcp::congestion::Algorithm;

/// So many descriptors before that of the endpoint's queue, and behind it, are looked at: the library has made it shortly before.
const NEAR: RawFd = 256;

/// What connections of a provider are set to. `Setting`: this process cannot have what is wished.
pub(super) fn algorithm(offer: &Offer, wish: &Congestion) -> Result<Option<Algorithm>> {
    let like: io::Result<OwnedFd> = calls::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC);
    match like {
        Ok(like) if offer.is_stream() => {
            Algorithm::choose(&like, wish).map(|chosen| Some(chosen).filter(|a| !a.is_the_systems()))
        }
        _ => Ok(None),
    }
}

/// Sets the sockets that connect an endpoint, at whose `own` address others call it, with the `other` one; how many there are. Each of the two
/// listens at a port that nobody else has, and one of them has called the other. `near`: a descriptor of this endpoint's.
///
/// (Where a descriptor is closed, and another socket has its number a moment later, it may be set as well, which does it no harm.)
pub(super) fn settle(algorithm: Algorithm, offer: &Offer, near: RawFd, own: &[u8], other: &[u8]) -> usize {
    let (Some(own), Some(other)) = (offer.internet(own), offer.internet(other)) else { return 0 };
    let end = |fd, of_other| -> Option<SocketAddr> { offer.internet(&calls::address(fd, of_other).ok()?) };
    let connects = |fd: &RawFd| {
        let Some(there) = end(*fd, true) else { return false };
        there == other || there.ip() == other.ip() && end(*fd, false) == Some(own)
    };
    (near.saturating_sub(NEAR).max(0)..near.saturating_add(NEAR))
        .filter(connects)
        .map(|fd| algorithm.settle(&fd))
        .count()
}
