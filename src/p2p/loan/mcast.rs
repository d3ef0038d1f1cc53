//! One loan to many: each holder has a ticket of its own for the same memory, so each returns it as if it were alone, and dies alone.

use super::*;
use crate::lane::SEND_PENDING;
use crate::p2p::any_source::multicast::{check_members, members};
use crate::p2p::loan::send::{Claimed, claim, holder};
use crate::p2p::send::{Sender, busy, send_on, send_patiently};

/// Hands the first `size` bytes of a loan over to the members of a bitmap, on this index of each. On an error that is found before it has
/// gone to anybody it is still the caller's. A member that dies meanwhile is passed over.
pub fn mcast_loan(comm: i32, at: *mut u8, size: usize, bits: &[u64], index: i32) -> Result<()> {
    let ep = endpoint()?;
    let (pool, claimed) = claim(ep, at, size)?;
    let (count, _) = check_members(ep, ep.context(comm)?, bits)?;
    let Claimed { ticket, generation, .. } = claimed;
    let data = claimed.bytes().into();
    let mut lanes = Vec::with_capacity(count);
    for rank in members(bits) {
        let (used, slot) = ep.resolve(comm, rank as i32, index)?;
        let lane = used.lane();
        if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
            return Err(busy(ep, lane, slot, "send"));
        }
        Sender::new(ep, lane, slot, data, size).check_peer()?;
        lanes.push((used, slot));
    }
    let parts = pool.part(ticket, lanes.len())?;
    // Before the first of them has its part: this process may be one, and return it while others are yet to come.
    pool.share(ticket, generation, &parts);
    for ((used, slot), (part, generation)) in lanes.into_iter().zip(&parts) {
        let lane = used.lane();
        let words = claimed.words_of(*part, *generation);
        let gone = if lane.remote().is_some() {
            let _ = match ep.spool.budget(comm).timeout_ms() {
                // Others have it by now, so that there is no room is no error any more.
                0 => send_patiently(ep, lane, slot, data),
                _ => send_on(ep, lane, slot, data),
            };
            true
        } else {
            let mut sender = Sender::new(ep, lane, slot, data, size);
            sender.loan = Some(words);
            // Four million messages may be outstanding there; then it waits for one to be received.
            loop {
                if sender.check_peer().is_err() {
                    break true;
                }
                if sender.place_short() {
                    break false;
                }
                crate::base::thread::yield_core();
            }
        };
        match gone {
            true => pool.drop_sent(*part, *generation),
            false => pool.hand_over(*part, *generation, holder(lane)),
        }
    }
    Ok(())
}
