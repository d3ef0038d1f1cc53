//! Identifiers of jobs: one process makes one, the program passes it round by whatever it has, and the ranks meet by it.
//!
//! ```text
//!   "FMPL" version 1 │ port │ secret, 32 bytes drawn by lot │ addresses of the maker: 4 + IPv4 or 6 + IPv6, the first to be tried first │ zeros
//!        4       2   │  2   │             32                │                        88                                              │
//! ```
//! The maker listens from then on. When it joins the job as one of its ranks, a thread of it is the root of the others, as rank 0's is in a job
//! by variables ([`super::keeper`]): nothing is gathered, and who has the secret belongs to the job. So an identifier is as secret as
//! what it is passed round by.

use super::environment::{Place, Root, Secret};
use super::{Exchange, door};
use crate::base::config::Config;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::{Key, random};
use crate::base::sorting::sort_by_key;
use crate::base::system;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of an identifier.
pub const BYTES: usize = 128;

const MARK: &[u8; 6] = b"FMPL\x01\0";
const SECRET: usize = 32;
const ADDRESSES_AT: usize = MARK.len() + 2 + SECRET;

/// Identifiers that this process has made, and nobody has joined by yet.
static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

struct Made {
    secret: [u8; SECRET],
    listener: TcpListener,
    /// A forked child has the descriptor, and is not the maker.
    pid: u32,
}

/// Makes an identifier, and listens for those who will have it.
pub fn create() -> Result<[u8; BYTES]> {
    let failed = |what: &str, e: std::io::Error| error!(Code::System, "an identifier of a job: {what}: {e}");
    system::hold_standard_descriptors();
    let secret = random::<SECRET>()?;
    let all = reachable(system::addresses().map_err(|e| failed("the addresses of this machine", e))?);
    let any = match all.first() {
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    let listener = door::listen(SocketAddr::new(any, 0)).map_err(|e| failed("listening", e))?;
    let port = listener.local_addr().map_err(|e| failed("the port", e))?.port();
    let mut id = Vec::from(*MARK);
    id.extend_from_slice(&port.to_be_bytes());
    id.extend_from_slice(&secret);
    for address in all {
        let bytes = match address {
            IpAddr::V4(a) => [&[4][..], &a.octets()].concat(),
            IpAddr::V6(a) => [&[6][..], &a.octets()].concat(),
        };
        if id.len() + bytes.len() <= BYTES {
            id.extend_from_slice(&bytes);
        }
    }
    id.resize(BYTES, 0);
    made().push(Made { secret, listener, pid: std::process::id() });
    Ok(std::array::from_fn(|i| id[i]))
}

/// The place of a rank in the job of an identifier.
pub(crate) fn place(id: &[u8; BYTES], rank: u32, size: u32) -> Result<Place> {
    let bad = |text: String| Error::new(Code::Argument, text);
    if rank >= size {
        return Err(bad(format!("rank {rank} of {size} ranks")));
    }
    let secret: [u8; SECRET] = std::array::from_fn(|i| id[MARK.len() + 2 + i]);
    let port = u16::from_be_bytes([id[MARK.len()], id[MARK.len() + 1]]);
    let at: Vec<SocketAddr> = addresses(id).into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    if !id.starts_with(MARK) || port == 0 || at.is_empty() {
        return Err(bad(format!("rank {rank}: these bytes are no identifier that fmpl_id_create has made")));
    }
    let mut made = made();
    let mine = made.iter().position(|m| m.secret == secret && m.pid == std::process::id());
    let listeners = mine.map(|i| vec![made.swap_remove(i).listener]);
    let config = Config::from_environment()?;
    Ok(Place {
        rank,
        size,
        root: Root::At(at),
        secret: Secret::Known(Key::of(&secret)),
        listeners,
        patience: Duration::from_secs_f64(config.start_s),
        log: config.log,
    })
}

/// The place of a rank whose program has an allgather: rank 0's identifier goes to all by it, and all hear whether all did well. Always two
/// exchanges, so that they stay in step whoever fails.
pub(crate) fn exchanged(rank: u32, size: u32, exchange: &mut Exchange<'_>) -> Result<Place> {
    const EACH: usize = 8 + BYTES;
    let made = if rank == 0 { create() } else { Ok([0; BYTES]) };
    let mut mine = Vec::with_capacity(EACH);
    mine.extend_from_slice(&rank.to_le_bytes());
    mine.extend_from_slice(&size.to_le_bytes());
    mine.extend_from_slice(made.as_ref().unwrap_or(&[0; BYTES]));
    let mut all = vec![0; EACH * size as usize];
    let first = exchange(&mine, &mut all).and_then(|()| agreed(&all, size, EACH));
    let first = made.and(first);
    let mut well = vec![0; 8 * size as usize];
    let second = exchange(&u64::from(first.is_ok()).to_le_bytes(), &mut well);
    let id: [u8; BYTES] = std::array::from_fn(|i| all[8 + i]);
    // The own reason before that of others.
    let place = first.and(second).and_then(|()| place(&id, rank, size));
    let failed = well.chunks_exact(8).position(|word| word != 1u64.to_le_bytes());
    match (place, failed) {
        (Ok(_), Some(other)) => {
            Err(error!(Code::Launch, "rank {rank}: the exchange of rank {other} with all others has failed"))
        }
        (place, _) => place,
    }
}

/// Does each rank call itself what it is called here, in a job of this size?
fn agreed(all: &[u8], size: u32, each: usize) -> Result<()> {
    for (k, part) in all.chunks_exact(each).enumerate() {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| part[at + i]));
        if (word(0), word(4)) != (k as u32, size) {
            let text = format!(
                "the exchange has given, as part {k} of {size}, that of rank {} of {}: each part must be of the rank of its number",
                word(0),
                word(4)
            );
            return Err(Error::new(Code::Launch, text));
        }
    }
    Ok(())
}

fn made() -> std::sync::MutexGuard<'static, Vec<Made>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The addresses in an identifier.
fn addresses(id: &[u8; BYTES]) -> Vec<IpAddr> {
    let (mut all, mut rest) = (Vec::new(), &id[ADDRESSES_AT..]);
    loop {
        let length = match rest.first() {
            Some(4) => 4,
            Some(6) => 16,
            _ => return all,
        };
        let Some((address, more)) = rest[1..].split_at_checked(length) else { return all };
        all.push(match <[u8; 4]>::try_from(address) {
            Ok(four) => IpAddr::from(four),
            Err(_) => IpAddr::from(<[u8; 16]>::try_from(address).unwrap_or_default()),
        });
        rest = more;
    }
}

/// Those by which another machine may reach this one: the one of the route to the world first, then the other interfaces'; those of IPv6
/// where there are none of IPv4; the loopback's where there is nothing else.
fn reachable(all: Vec<(String, IpAddr)>) -> Vec<IpAddr> {
    let usable = |ip: &IpAddr| match ip {
        IpAddr::V4(a) => !a.is_loopback() && !a.is_link_local(),
        IpAddr::V6(a) => !a.is_loopback() && a.segments()[0] & 0xffc0 != 0xfe80,
    };
    let mut good: Vec<IpAddr> = all.into_iter().map(|(_, ip)| ip).filter(usable).collect();
    if good.iter().any(IpAddr::is_ipv4) {
        good.retain(IpAddr::is_ipv4);
    }
    let outward = outward().filter(usable);
    sort_by_key(&mut good, |ip| outward != Some(*ip));
    if good.is_empty() {
        good.push(Ipv4Addr::LOCALHOST.into());
    }
    good
}

/// The address from which this machine would send to the world. Nothing is sent.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|a| a.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_found_again_and_once() {
        let id = create().unwrap();
        let other = create().unwrap();
        assert_ne!(id, other);
        let root = place(&id, 1, 3).unwrap();
        assert!(root.is_root() && root.root().contains(':'), "{}", root.root());
        assert!(!place(&id, 2, 3).unwrap().is_root());
        assert!(place(&other, 0, 1).unwrap().is_root());
        for (bytes, rank) in [([0; BYTES], 0), (id, 3)] {
            assert_eq!(place(&bytes, rank, 3).err().map(|e| e.code()), Some(Code::Argument));
        }
    }

    #[test]
    fn addresses_that_others_can_reach() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let of = |texts: &[&str]| reachable(texts.iter().map(|t| ("x".into(), ip(t))).collect());
        assert_eq!(of(&["127.0.0.1", "::1", "fe80::1", "169.254.1.1"]), [ip("127.0.0.1")]);
        assert_eq!(of(&["127.0.0.1", "10.0.0.7", "2001:db8::1"]), [ip("10.0.0.7")]);
        assert_eq!(of(&["::1", "2001:db8::1"]), [ip("2001:db8::1")]);
        let mut id = [0; BYTES];
        id[ADDRESSES_AT..ADDRESSES_AT + 5].copy_from_slice(&[4, 10, 0, 0, 7]);
        id[ADDRESSES_AT + 5] = 6;
        id[ADDRESSES_AT + 21] = 1;
        assert_eq!(addresses(&id), [ip("10.0.0.7"), ip("::1")]);
        id[BYTES - 1] = 6;
        addresses(&id);
        assert_eq!(addresses(&[6; BYTES]).len(), 5);
    }

    /// An allgather between threads.
    fn ranks<T: Send>(size: u32, run: impl Fn(u32, &mut Exchange<'_>) -> T + Sync) -> Vec<T> {
        let (parts, barrier) = (Mutex::new(vec![Vec::new(); size as usize]), std::sync::Barrier::new(size as usize));
        let one = |rank: u32| {
            run(rank, &mut |mine, all| {
                parts.lock().unwrap()[rank as usize] = mine.to_vec();
                barrier.wait();
                all.copy_from_slice(&parts.lock().unwrap().concat());
                barrier.wait();
                Ok(())
            })
        };
        std::thread::scope(|s| {
            let all: Vec<_> = (0..size).map(|rank| s.spawn(move || one(rank))).collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_hear_of_an_exchange_that_failed_at_one() {
        let all = ranks(3, |rank, exchange| exchanged(rank, 3, exchange).map(|p| p.root()));
        assert!(all.iter().all(|p| p.as_ref().ok() == all[0].as_ref().ok() && p.is_ok()));
        let all = ranks(3, |rank, exchange| {
            let mut calls = 0;
            let mut wrong = |mine: &[u8], all: &mut [u8]| {
                calls += 1;
                exchange(mine, all)?;
                if rank == 1 && calls == 1 { Err(Error::new(Code::Launch, "lost it")) } else { Ok(()) }
            };
            exchanged(rank, 3, &mut wrong).map(|_| ()).unwrap_err().detail().to_owned()
        });
        assert_eq!(all[1], "lost it");
        assert!(all[0].contains("rank 1") && all[2].contains("rank 1"), "{all:?}");
        // Each calls itself something else.
        let all = ranks(2, |rank, exchange| exchanged(1 - rank, 2, exchange).map(|_| ()).unwrap_err().code());
        assert_eq!(all, [Code::Launch; 2]);
    }
}
