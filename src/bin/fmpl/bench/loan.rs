//! Loans: a message that is handed over and returned, in turn, beside one of 8 bytes that is copied; then with its first and last line
//! written by the one side and read by the other.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

use fmpl::base::bytes::Room;
use fmpl::ffi::c;

use super::calls::calls;
use super::collective::ends;
use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, iceoryx, sizes};

pub static BENCH: Bench = Bench {
    name: "loan",
    about: "one way: a message of 8 B; a loan that is handed over and returned; the same, its first and last line written and read",
    ranks: 2,
    indices: 64,
    figures: &[
        Figure::time("8 B copied", "ns", 1.0),
        Figure::time("handed over", "ns", 1.0),
        Figure::time("and touched", "ns", 1.0),
        Figure::count("bytes copied"),
    ],
    plan,
};

const WORLD: c_int = fmpl::p2p::COMM_WORLD;

fn plan(o: &Options) -> Vec<Case> {
    let all = if o.sizes.is_empty() { [sizes(o, 8, 16 << 20), vec![64 << 20]].concat() } else { o.sizes.clone() };
    // Nothing in a loan depends on its length, so all have as many rounds as the message of 8 B.
    let k = o.rounds_of(8);
    all.into_iter().map(|n| Case::sized(n, format!("loan {n} {k} {}", o.warm(k)))).collect()
}

calls! {
    /// The calls of loans, as [`super::calls::Calls`] has others.
    Calls of c {
        fmpl_loan as loan(n: usize, at: &mut *mut c_void) -> c_int = (n => usize, at.into() => c::Out<*mut c_void>);
        fmpl_send_loan as send_loan(at: *mut c_void, n: usize, dst: i32) -> c_int
            = (at => *mut c_void, n => usize, dst => c_int, 0 => c_int, WORLD => c_int);
        fmpl_recv_loan as recv_loan(at: &mut *const c_void, n: &mut usize, src: i32) -> c_int
            = (at.into() => c::Out<*const c_void>, n.into() => c::Out<usize>, src => c_int, 0 => c_int, WORLD => c_int);
        fmpl_loan_return as give_back(at: *const c_void) -> c_int = (at => *const c_void);
    }
}

/// A loan, for as long as this process has it; its library knows which ones that are, and refuses others.
#[inline]
fn held(at: *const c_void, n: usize) -> Room<'static> {
    // SAFETY: `n` bytes that the library has lent, used before they are sent or returned, which is the next that happens.
    unsafe { Room::new(at.cast_mut().cast(), n) }
}

impl Calls {
    #[inline]
    fn send(&self, r: &Rank, n: usize, stamp: Option<i64>) -> Result<(), String> {
        let mut at = null_mut();
        self.loan(n, &mut at)?;
        if let Some(stamp) = stamp {
            ends(held(at, n)).iter().for_each(|end| end.store(stamp as u64, Ordering::Relaxed));
        }
        self.send_loan(at, n, r.peer())
    }

    #[inline]
    fn recv(&self, r: &Rank, n: usize, stamp: Option<i64>) -> Result<(), String> {
        let (mut at, mut len) = (null(), 0);
        self.recv_loan(&mut at, &mut len, r.peer())?;
        if let Some(stamp) = stamp {
            if len != n {
                return Err(format!("{len} bytes, not {n}"));
            }
            let found = ends(held(at, n)).map(|end| end.load(Ordering::Relaxed) as i64);
            if found != [stamp; 2] {
                return Err(format!("{found:?}, not {stamp}"));
            }
        }
        self.give_back(at)
    }
}

/// The time of one way in ns: rank 0 sends and then receives, rank 1 the other way round, `k` times after `warm` more.
pub fn in_turn(
    r: &Rank,
    k: i64,
    warm: i64,
    send: &dyn Fn(i64) -> Result<(), String>,
    recv: &dyn Fn(i64) -> Result<(), String>,
) -> Result<f64, String> {
    let each = rounds(k, warm, |i| {
        if r.rank == 0 {
            send(i)?;
            recv(i + 77)?;
        } else {
            recv(i)?;
            send(i + 77)?;
        }
        Ok(())
    })?;
    Ok(each / 2.0)
}

/// `loan SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, warm, k) = (a[0] as usize, a[2], a[1]);
    r.need(8);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let calls = Calls::new();
    let peer = r.peer();
    let copied = in_turn(
        r,
        k,
        warm,
        &|i| {
            r.sb.stamp(0, 8, i);
            r.send(r.sb.part(0, 8), peer, 0)
        },
        &|i| r.recv(r.rb.part(0, 8), peer, 0).and_then(|()| r.rb.check(0, 8, i)),
    )?;
    if iceoryx::is_rival() {
        return Ok([vec![copied], iceoryx::block(r, n, k, warm)?, vec![0.0]].concat());
    }
    let handed = in_turn(r, k, warm, &|_| calls.send(r, n, None), &|_| calls.recv(r, n, None))?;
    let touched = match n >= 8 {
        true => in_turn(r, k, warm, &|i| calls.send(r, n, Some(i)), &|i| calls.recv(r, n, Some(i)))?,
        false => handed,
    };
    let mut bytes = 0;
    r.counter(c::FMPL_COUNTER_LOAN_COPIED, &mut bytes)?;
    Ok(vec![copied, handed, touched, bytes as f64])
}
