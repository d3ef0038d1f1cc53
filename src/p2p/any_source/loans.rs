//! Loans to a receiver of any source, and messages of any source in place.
//!
//! A loan takes a slot, whose bytes are the two words that name it. Who wants a message in place looks which is next, and has that
//! received into a loan of its own if it is none.

use std::sync::Arc;

use super::receive::{Incoming, find};
use super::ring::{Kind, Ring};
use super::send::{Message, Way, until_sent};
use super::share::Share;
use crate::base::error::{Code, Error, Result};
use crate::base::run::Run;
use crate::base::unwinding::NoWayOut;
use crate::p2p::PROC_NULL;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::loan::{Claimed, Lent, claim};

/// As a capacity: what is next is a loan, and wanted as that.
pub(super) const AS_LOAN: usize = usize::MAX;

/// Stands for a buffer of that capacity.
fn as_loan() -> Run {
    // SAFETY: no bytes of it are ever used: what is taken so is a loan, or nothing.
    unsafe { Run::new(std::ptr::null_mut(), AS_LOAN) }
}

/// Hands the first `size` bytes of a loan over to a receiver of any source. On an error it is still the caller's.
pub fn send_loan_any(comm: i32, at: *mut u8, size: usize, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let (pool, claimed) = claim(ep, at, size)?;
    let Claimed { ticket, generation, .. } = claimed;
    if dst == PROC_NULL {
        ep.check_comm(comm)?;
        pool.drop_sent(ticket, generation);
        return Ok(());
    }
    let out = ep.outgoing(comm, dst, index)?;
    out.check_peer(ep)?;
    let mut message = Message::new(ep, out, claimed.bytes());
    let local = match &out.way {
        Way::Local(local) => Some(local.peer.as_ref().map_or(std::ptr::null(), Arc::as_ptr)),
        Way::Remote(_) => None,
    };
    if local.is_some() {
        message.hand_over(claimed.words);
    }
    NoWayOut::during("a send to a receiver of any source", || until_sent(ep, out, message))?;
    match local {
        Some(holder) => pool.hand_over(ticket, generation, holder),
        None => pool.drop_sent(ticket, generation),
    }
    Ok(())
}

/// The next message, in place, and the sender's rank in the communicator.
pub fn recv_loan_any(comm: i32, index: i32) -> Result<(Lent, i32)> {
    let ep = endpoint()?;
    let inc = find(ep, comm, index)?;
    let _claim = inc.claim()?;
    inc.is_unrequested()?;
    let got = inc.until(ep, || inc.take_lent(ep));
    if got.is_err() {
        inc.drop_begun(ep);
    }
    got
}

/// The same without waiting for it.
pub fn irecv_loan_any(comm: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    find(ep, comm, index)?.begin(ep, as_loan())
}

impl Ring {
    fn loan_of(share: &Share) -> [u64; 2] {
        let away = share.ring.away(share.next());
        [away.len, away.at]
    }
}

impl Incoming {
    /// Takes a loan that is next in a share: as that, or its bytes; its length. `None`: its words name none.
    #[cold]
    pub(super) fn take_loan(
        &self,
        ep: &'static Endpoint,
        share: &Share,
        source: u32,
        to: Run,
    ) -> Result<Option<usize>> {
        let peer = if source == ep.rank { None } else { Some(ep.contact(source)?) };
        ep.loans.may_hold(peer.as_ref())?;
        let Some(lent) = ep.loans.hold(&ep.heap, peer.as_ref(), Ring::loan_of(share)) else { return Ok(None) };
        if to.len() == AS_LOAN {
            self.lent.set(Some(lent));
        } else {
            ep.loans.copy_out(lent, to.into(), to.len())?;
        }
        Ok(Some(lent.len))
    }

    /// Takes the next message in place, if it is there. The ring is claimed.
    pub(super) fn take_lent(&self, ep: &'static Endpoint) -> Result<Option<(Lent, i32)>> {
        let begun = match self.lent.get() {
            Some(begun) if self.is_underway(ep) => begun,
            before => {
                let Some(next) = self.peek(ep) else { return Ok(None) };
                if self.turn_is(Kind::Loan) {
                    self.drop_begun(ep);
                    let taken = self.take_turn(ep, as_loan())?;
                    let lent = self.lent.take().unwrap_or(Lent::NOTHING);
                    return Ok(taken.map(|arrived| (lent, arrived.source)));
                }
                match before.filter(|begun| begun.len == next.len) {
                    Some(begun) => begun,
                    None => {
                        self.drop_begun(ep);
                        let lent = Lent { at: ep.loans.take(&ep.heap, next.len)?, len: next.len };
                        self.lent.set(Some(lent));
                        lent
                    }
                }
            }
        };
        let Some(arrived) = self.take_turn(ep, begun.bytes())? else { return Ok(None) };
        self.lent.set(None);
        ep.loans.keep_copy(begun);
        Ok(Some((Lent { at: begun.at, len: arrived.len.min(begun.len) }, arrived.source)))
    }

    /// A loan into which a message was to be received is not needed.
    pub(super) fn drop_begun(&self, ep: &Endpoint) {
        if let Some(begun) = self.lent.take() {
            let _ = ep.loans.give_back(begun.at);
        }
    }

    fn is_unrequested(&self) -> Result<()> {
        match self.pending.get().is_some() {
            true => Err(self.busy_error("a request there is not completed")),
            false => Ok(()),
        }
    }
}

fn complete(comm: i32, index: i32, wait: bool) -> Result<Option<(Lent, i32)>> {
    let ep = endpoint()?;
    let inc = find(ep, comm, index)?;
    let none = || {
        let text = format!("rank {}: no any-source irecv of a loan is pending on index {index}", ep.rank);
        Error::new(Code::Request, text)
    };
    let Some(_claim) = inc.claim_to_complete(wait)? else { return Ok(None) };
    let wanted = inc.pending.get();
    if wanted.is_none_or(|w| w.len() != AS_LOAN) {
        return Err(none());
    }
    let result = if wait {
        inc.until(ep, || inc.take_lent(ep)).map(Some)
    } else {
        ep.waiting_sends.push(ep);
        ep.any_source.push(ep);
        match inc.take_lent(ep) {
            Ok(None) => {
                inc.run_dry(false);
                inc.after_death(ep).map_or(Ok(None), Err)
            }
            other => other,
        }
    };
    if !matches!(result, Ok(None)) {
        inc.drop_begun(ep);
        inc.end();
    }
    result
}

/// Completes the receive of a loan on an index.
pub fn irecv_loan_any_wait(comm: i32, index: i32) -> Result<(Lent, i32)> {
    complete(comm, index, true)?.ok_or_else(|| Error::new(Code::Request, "a wait ended without its message"))
}

/// Completes it if its message is there.
pub fn irecv_loan_any_test(comm: i32, index: i32) -> Result<Option<(Lent, i32)>> {
    complete(comm, index, false)
}
