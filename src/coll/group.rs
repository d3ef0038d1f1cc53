//! A reduction or an exchange in a group that is chosen for this one call: the counterparts of a multicast. Its members know the group, and make
//! the call; nobody else takes part, and no communicator is made.
//!
//! A member's number is its place among the set bits. In an exchange each gives each its block, in pairs at growing distance. If one has
//! died, the others go on with each other, and each has the error.
//!
//! Of a reduction vectors go up the binomial tree of `tree::reduce`, combined in the order of
//! the numbers. A member that cannot go on, because one below it has died or its function has panicked, sends nothing up: a message of no bytes, so that whoever
//! waits for it hears of it, and so on to the root. The communicator is as usable as before.

use super::exchange::{Blocks, Pattern, keep};
use super::function::Vector;
use super::messages::Party;
use super::team::Team;
use super::tree::branches_in_order;
use crate::base::bytes::{Room, Scratch};
use crate::base::error::{Code, Error, Result, error};
use crate::base::unwinding::Panic;
use crate::wait::Operation;

/// One reduction of at least one element among `who`, of which this process is one, to the member with number `root`.
pub(super) async fn reduce(team: &Team, who: Vec<u32>, root: usize, v: Vector<'_>) -> Result<()> {
    let len = v.bytes();
    team.name(Operation::Reduce, len);
    let p = Party::of_group(team, who).ok_or_else(|| no_member(team, "mcast_reduce"))?;
    let room = Scratch::new(2 * len.next_multiple_of(8));
    let own = Vector::new(room.room(), v.n, v.f);
    let theirs = room.room().part(len.next_multiple_of(8), len);
    own.at.copy_from(*v.at);
    let mut failed = Ok(());
    let branches = branches_in_order(&p);
    for child in branches.children {
        match arrives(team, &p, child, theirs).await {
            Ok(()) if failed.is_err() => {}
            Ok(()) => failed = own.fold(*theirs).map_err(|panic| panicked(team, panic)),
            Err(error) => failed = failed.and(Err(error)),
        }
    }
    let sent = own.at.part(0, if failed.is_ok() { len } else { 0 });
    let given = match (branches.parent, root) {
        (None, 0) => Ok(()),
        (None, root) => p.send(root, *sent).await,
        (Some(parent), _) => p.send(parent, *sent).await,
    };
    failed = failed.and(given);
    // Whatever came before: the result, or the word that there is none, is on its way to the root.
    if p.me == root {
        if root != 0 {
            failed = failed.and(arrives(team, &p, 0, own.at).await);
        }
        if failed.is_ok() {
            v.at.copy_from(*own.at);
        }
    }
    failed
}

/// An exchange of blocks of at least one byte among `who`, of which this process is one.
pub(super) async fn alltoall(team: &Team, who: Vec<u32>, b: Blocks<'_>) -> Result<()> {
    team.name(Operation::Alltoall, b.size);
    let p = Party::of_group(team, who).ok_or_else(|| no_member(team, "mcast_alltoall"))?;
    let (n, pattern) = (p.len(), Pattern::Alltoall);
    keep(pattern, p.me, b);
    let mut failed = Ok(());
    for distance in 1..n {
        let (to, from) = ((p.me + distance) % n, (p.me + n - distance) % n);
        let swapped = p.swap_apart(to, b.to(pattern, to), from, b.of(pattern, from)).await;
        let whole = swapped.and_then(|()| match p.received_len(from)? {
            len if len == b.size as u64 => Ok(()),
            len => Err(error!(
                Code::Peer,
                "rank {}: mcast_alltoall: rank {} gives blocks of {len} bytes, not of {}",
                team.ep.rank,
                p.rank_of(from),
                b.size
            )),
        });
        failed = failed.and(whole);
    }
    failed
}

#[cold]
fn no_member(team: &Team, call: &str) -> Error {
    error!(Code::Argument, "rank {}: {call}: not a member", team.ep.rank)
}

/// The program's function has panicked here: the group has no result, and the call is left by the panic when it ends.
#[cold]
fn panicked(team: &Team, panic: Panic) -> Error {
    team.state.own.panic.set(Some(panic));
    error!(Code::Peer, "rank {}: mcast_reduce: the function of this rank has panicked", team.ep.rank)
}

/// Receives a vector; one of no bytes says that there is none.
async fn arrives(team: &Team, p: &Party<'_>, from: usize, to: Room<'_>) -> Result<()> {
    p.receive(from, to).await?;
    if p.received_len(from)? == to.len() as u64 {
        return Ok(());
    }
    let text = format!(
        "rank {}: mcast_reduce: a member of the group has died, its function has panicked, or it gives another number of bytes",
        team.ep.rank
    );
    Err(Error::new(Code::Peer, text))
}
