//! Messages to and from a process that is stopped. A posted receive needs no help of the receiver: the send completes while the
//! receiver sleeps (SIGSTOP). A message in the spool needs no help of the sender.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fmpl::base::bytes::Room;
use fmpl::base::system::signal;

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "stopped",
    about: "1 MB to a receiver that is stopped, and from a sender that is stopped after its send: both complete (FMPL only)",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("call", "us", 1e-3)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let n = o.sizes.first().copied().unwrap_or(1 << 20);
    [("receiver stopped: send", 0), ("sender stopped: receive", 1)]
        .map(|(name, who)| Case::named_only(name, format!("stopped {n} {who}")).blocks(3).cold())
        .into()
}

/// `stopped SIZE WHO`: the peer of the rank that is timed stops itself; the other looks into /proc, acts, and wakes it.
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let stops = if a[1] == 0 { 1 } else { 0 };
    let mut pid = [std::process::id() as f64];
    if r.rank == stops {
        r.send_pid(&pid)?;
    } else {
        r.recv_figures(&mut pid, stops, 1)?;
    }
    let peer_pid = pid[0] as i32;
    let seed = (now() as u64) as u8 | 1;
    let mut spent = [0.0];
    match (a[1], r.rank) {
        (0, 1) => {
            r.irecv(r.rb.part(0, n), 0, 0)?;
            stop_myself();
            r.irecv_wait(0, 0)?;
            r.whole(n)?;
            r.send_figures(&[0.0], 2)?;
        }
        (0, _) => {
            wait_stopped(peer_pid)?;
            r.pattern(n, seed);
            let t0 = now();
            r.send(r.sb.part(0, n), 1, 0)?;
            spent[0] = now() - t0;
            still_stopped(peer_pid)?;
            wake(peer_pid);
            r.recv_figures(&mut [0.0], 1, 2)?;
        }
        (_, 0) => {
            r.pattern(n, seed);
            r.send(r.sb.part(0, n), 1, 0)?;
            stop_myself();
            r.recv_figures(&mut spent, 1, 2)?;
        }
        _ => {
            wait_stopped(peer_pid)?;
            let t0 = now();
            r.recv(r.rb.part(0, n), 0, 0)?;
            spent[0] = now() - t0;
            still_stopped(peer_pid)?;
            wake(peer_pid);
            r.whole(n)?;
            r.send_figures(&spent, 2)?;
        }
    }
    Ok(spent.to_vec())
}

impl Rank {
    fn send_pid(&self, pid: &[f64; 1]) -> Result<(), String> {
        self.send(Room::of(&mut pid.to_vec()), self.peer(), 1)
    }

    /// Fills what is sent with a pattern that the first byte determines.
    fn pattern(&self, n: usize, seed: u8) {
        for i in 0..n {
            self.sb.part(i, 1).byte(0).store(seed.wrapping_add(((i * 31) >> 3) as u8), Ordering::Relaxed);
        }
    }

    /// Checks every byte received.
    fn whole(&self, n: usize) -> Result<(), String> {
        let byte = |i: usize| self.rb.part(i, 1).byte(0).load(Ordering::Relaxed);
        let seed = byte(0);
        match (0..n).find(|i| byte(*i) != seed.wrapping_add(((i * 31) >> 3) as u8)) {
            None => Ok(()),
            Some(i) => Err(format!("byte {i} of {n} is wrong")),
        }
    }
}

fn stop_myself() {
    signal(std::process::id() as i32, libc::SIGSTOP);
}

fn wake(pid: i32) {
    // The peer told us its id and is known to be alive and stopped.
    signal(pid, libc::SIGCONT);
}

/// The state letter of a process.
fn state(pid: i32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

fn wait_stopped(pid: i32) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(10);
    while state(pid) != Some('T') {
        if Instant::now() > end {
            return Err(format!("process {pid} has not stopped itself"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn still_stopped(pid: i32) -> Result<(), String> {
    if state(pid) == Some('T') { Ok(()) } else { Err(format!("process {pid} was running again")) }
}
