//! What decides how fast a connection sends: one of the system's algorithms against congestion.
//!
//! BBR, the usual one of some systems, sends by a timer at the rate that it has measured. That is made for long ways on which others are as well.
//! Between nodes, where a message is over before anything can be measured, it leaves most of a network unused, and each call that sends costs
//! more. So where it is the system's, one without a timer takes its place, unless the settings say otherwise.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use crate::base::config::Congestion;
use crate::base::error::{Code, Error, Result};
use crate::base::log::{Level, tell};
use crate::base::system::calls;

/// An algorithm as the system calls it; what is not used of it is zero.
type Name = [u8; 16];

/// What is replaced, and by what: the first that this process may have.
const TIMED: &str = "bbr";
const UNTIMED: [&str; 2] = ["cubic", "reno"];
/// Those that any process may have.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// What connections are set to; `None`: to nothing, they have the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Algorithm(Option<Name>);

fn named(name: &str) -> Name {
    let mut bytes = [0; _];
    bytes.iter_mut().zip(name.as_bytes()).for_each(|(to, byte)| *to = *byte);
    bytes
}

fn set(socket: &impl AsRawFd, name: Name) -> io::Result<()> {
    calls::set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name)
}

impl Algorithm {
    /// What is wished, tried on a socket. `Setting`: this process cannot have it.
    pub fn choose(socket: &impl AsRawFd, wish: &Congestion) -> Result<Algorithm> {
        match wish {
            Congestion::System => Ok(Algorithm(None)),
            Congestion::Auto => Ok(Algorithm(untimed(socket))),
            Congestion::Named(name) => match set(socket, named(name)) {
                Ok(()) => Ok(Algorithm(Some(named(name)))),
                Err(e) => {
                    let allowed = fs::read_to_string(ALLOWED).unwrap_or_default();
                    let allowed = allowed.split_whitespace().collect::<Vec<_>>().join(", ");
                    let text = format!("FMPL_TCP_CONGESTION={name}: {e}; the system lets this process have: {allowed}");
                    Err(Error::new(Code::Setting, text))
                }
            },
        }
    }

    /// Is there nothing to be set?
    pub fn is_the_systems(&self) -> bool {
        self.0.is_none()
    }

    /// Sets a connection to it.
    pub fn settle(&self, socket: &impl AsRawFd) {
        if let Some(name) = self.0 {
            let _ = set(socket, name);
        }
    }
}

/// What takes the place of the system's algorithm, if that sends by a timer, and there is anything that this process may have.
fn untimed(socket: &impl AsRawFd) -> Option<Name> {
    let own: Name = calls::option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, named("")).ok()?;
    if own != named(TIMED) {
        return None;
    }
    let other = UNTIMED.into_iter().find(|other| set(socket, named(other)).is_ok())?;
    tell(Level::Debug, || format!("connections of TCP have {other} in place of {TIMED} (FMPL_TCP_CONGESTION)"));
    Some(named(other))
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn of(socket: &TcpListener) -> Name {
        calls::option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, named("")).expect("it has one")
    }

    #[test]
    fn what_sends_by_a_timer_is_replaced_and_nothing_else() {
        let socket = || TcpListener::bind("127.0.0.1:0").expect("a socket");
        // Every system has this one, and lets everybody have it.
        let reno = socket();
        let chosen = Algorithm::choose(&reno, &Congestion::Named("reno".into())).expect("reno");
        assert_eq!((chosen, of(&reno)), (Algorithm(Some(named("reno"))), named("reno")));
        assert_eq!(Algorithm::choose(&reno, &Congestion::Auto), Ok(Algorithm(None)), "it has no timer");
        let timed = socket();
        if set(&timed, named(TIMED)).is_ok() {
            assert_eq!(Algorithm::choose(&timed, &Congestion::System), Ok(Algorithm(None)));
            assert_eq!(of(&timed), named(TIMED));
            let chosen = Algorithm::choose(&timed, &Congestion::Auto).expect("another one");
            let other = socket();
            chosen.settle(&other);
            assert!(of(&timed) != named(TIMED) && of(&other) == of(&timed));
        }
        let error = Algorithm::choose(&timed, &Congestion::Named("nobody".into())).expect_err("there is none");
        assert!(error.code() == Code::Setting && error.detail().contains("reno"), "{error}");
    }
}
