//! A reduction in a group that is chosen for this one call: the counterpart of a multicast. Its members know the group, and make the call;
//! nobody else takes part, and no communicator is made.
//!
//! A member's number is its place among the set bits. Vectors go up the binomial tree of `tree::reduce`, combined in the order of
//! the numbers. A member that cannot go on, because one below it has died or its function has panicked, sends nothing up: a message of no bytes, so that whoever
//! waits for it hears of it, and so on to the root. The communicator is as usable as before.

use super::function::Function;
use super::messages::Party;
use super::team::Team;
use crate::base::error::{Code, Error, Result};
use crate::base::unwinding::Panic;
use crate::wait::Operation;

/// One reduction among `who`, of which this process is one, to the member with number `root`.
///
/// # Safety
/// `count` elements, at least one, at `ptr`, writable at the root.
pub(super) async unsafe fn reduce(
    team: &Team,
    who: Vec<u32>,
    root: usize,
    ptr: *mut u8,
    count: usize,
    f: &Function<'_>,
) -> Result<()> {
    let len = count * f.size;
    team.name(Operation::Reduce, len);
    let no_member = || Error::new(Code::Argument, format!("rank {}: mcast_reduce: not a member", team.ep.rank));
    let p = Party::of_group(team, who).ok_or_else(no_member)?;
    let words = len.div_ceil(8);
    let mut room = vec![0u64; 3 * words];
    let place = |room: &mut Vec<u64>, k: usize| room.as_mut_ptr().wrapping_add(k * words).cast::<u8>();
    let (own, theirs, spare) = (place(&mut room, 0), place(&mut room, 1), place(&mut room, 2));
    // SAFETY: vectors of `count` elements, three of them in the room.
    unsafe {
        own.copy_from_nonoverlapping(ptr, len);
        let mut failed = Ok(());
        let mut mask = 1;
        while mask < p.len() && p.me & mask == 0 {
            let child = p.me + mask;
            if child < p.len() {
                match arrives(team, &p, child, theirs, len).await {
                    Ok(()) if failed.is_err() => {}
                    Ok(()) => failed = f.fold(own, own, theirs, count, spare).map_err(|panic| panicked(team, panic)),
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
            mask *= 2;
        }
        let sent = if failed.is_ok() { len } else { 0 };
        let given = match (p.me, root) {
            (0, 0) => Ok(()),
            (0, root) => p.send(root, own, sent).await,
            (me, _) => p.send(me - mask, own, sent).await,
        };
        failed = failed.and(given);
        // Whatever came before: the result, or the word that there is none, is on its way to the root.
        if p.me == root {
            if root != 0 {
                failed = failed.and(arrives(team, &p, 0, own, len).await);
            }
            if failed.is_ok() {
                ptr.copy_from_nonoverlapping(own, len);
            }
        }
        failed
    }
}

/// The program's function has panicked here: the group has no result, and the call is left by the panic when it ends.
#[cold]
fn panicked(team: &Team, panic: Panic) -> Error {
    team.state.panic.set(Some(panic));
    Error::new(Code::Peer, format!("rank {}: mcast_reduce: the function of this rank has panicked", team.ep.rank))
}

/// Receives a vector; one of no bytes says that there is none.
async unsafe fn arrives(team: &Team, p: &Party<'_>, from: usize, to: *mut u8, len: usize) -> Result<()> {
    // SAFETY: room for as many bytes.
    unsafe { p.receive(from, to, len).await? };
    if p.received_len(from)? == len as u64 {
        return Ok(());
    }
    let text = format!(
        "rank {}: mcast_reduce: a member of the group has died, its function has panicked, or it gives another number of bytes",
        team.ep.rank
    );
    Err(Error::new(Code::Peer, text))
}
