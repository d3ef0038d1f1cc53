//! Gather, allgather, scatter and alltoall of blocks that need not be of one length: by messages between all members, within a node as well, where
//! a message goes straight into its receiver's buffer.
//!
//! Who takes a block knows its length; one of another length is an error of the call that takes it, when all its messages are over: so the next
//! call of the communicator gets none of this one's.

use super::exchange::Pattern;
use super::messages::Party;
use super::team::Team;
use super::{InCall, check_bytes, check_room, check_root, team};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error};
use crate::p2p::endpoint::endpoint;
use crate::wait::Operation;

/// Lengths and places of a block for each rank, in bytes; no places: one right behind the other.
#[derive(Clone, Copy)]
pub struct Sizes<'a> {
    /// The lengths.
    pub sizes: &'a [usize],
    /// Where each begins, or nothing.
    pub places: &'a [usize],
}

/// `fmpl_gatherv`: `size` bytes of each rank come to their places in `take` of the root, where alone `sizes` counts.
pub fn gatherv(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>, sizes: Sizes<'_>, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "gatherv")?;
    let taken = if team.rank == root { Side::Blocks(sizes) } else { Side::Whole(0) };
    uneven(team, Pattern::Gather(root), Operation::Gatherv, (give, Side::Whole(size)), (take, taken))
}

/// `fmpl_allgatherv`: `size` bytes of each rank come to their places in `take` of all ranks.
pub fn allgatherv(comm: i32, give: Bytes<'_>, size: usize, take: Room<'_>, sizes: Sizes<'_>) -> Result<()> {
    let (given, taken) = (Side::Whole(size), Side::Blocks(sizes));
    uneven(team(endpoint()?, comm)?, Pattern::Allgather, Operation::Allgatherv, (give, given), (take, taken))
}

/// `fmpl_scatterv`: each rank gets its own block of the root's, where alone `sizes` counts, as `size` bytes.
pub fn scatterv(comm: i32, give: Bytes<'_>, sizes: Sizes<'_>, take: Room<'_>, size: usize, root: i32) -> Result<()> {
    let team = team(endpoint()?, comm)?;
    let root = check_root(team, root, "scatterv")?;
    let given = if team.rank == root { Side::Blocks(sizes) } else { Side::Whole(0) };
    uneven(team, Pattern::Scatter(root), Operation::Scatterv, (give, given), (take, Side::Whole(size)))
}

/// `fmpl_alltoallv`: each rank gets its own block of each rank's. The two buffers do not overlap.
pub fn alltoallv(comm: i32, give: Bytes<'_>, given: Sizes<'_>, take: Room<'_>, taken: Sizes<'_>) -> Result<()> {
    let (given, taken) = (Side::Blocks(given), Side::Blocks(taken));
    uneven(team(endpoint()?, comm)?, Pattern::Alltoall, Operation::Alltoallv, (give, given), (take, taken))
}

/// What is in a buffer.
enum Side<'a> {
    /// One block of so many bytes.
    Whole(usize),
    /// One for each rank.
    Blocks(Sizes<'a>),
}

/// Blocks of different lengths.
fn uneven(
    team: &'static Team,
    pattern: Pattern,
    operation: Operation,
    (give, given): (Bytes<'_>, Side<'_>),
    (take, taken): (Room<'_>, Side<'_>),
) -> Result<()> {
    let call = operation.name();
    let blocks = |side| match side {
        Side::Whole(len) => Ok((vec![Block::whole(len)], len)),
        Side::Blocks(sizes) => sizes.blocks(team, call),
    };
    let ((given, most_given), (taken, most_taken)) = (blocks(given)?, blocks(taken)?);
    let (give, take) = (check_bytes(team, give, most_given, call)?, check_room(team, take, most_taken, call)?);
    let _in = InCall::enter(team, call)?;
    let uneven = Uneven { pattern, operation, give, given, take, taken };
    let own = uneven.keep(team);
    if team.whole == 1 {
        return own;
    }
    team.run(uneven.exchange(team)).and(own)
}

/// A block of a buffer: where it begins, and its bytes.
#[derive(Clone, Copy)]
struct Block {
    at: usize,
    len: usize,
}

impl Block {
    /// All of a buffer.
    fn whole(len: usize) -> Block {
        Block { at: 0, len }
    }
}

impl Sizes<'_> {
    /// The block of each rank, and up to where they reach.
    fn blocks(&self, team: &Team, call: &str) -> Result<(Vec<Block>, usize)> {
        let wrong = |what: String| error!(Code::Argument, "rank {}: {call}: {what}", team.ep.rank);
        if self.sizes.len() != team.whole || !(self.places.is_empty() || self.places.len() == team.whole) {
            let (sizes, places) = (self.sizes.len(), self.places.len());
            return Err(wrong(format!("{sizes} lengths and {places} places for {} ranks", team.whole)));
        }
        let (mut blocks, mut next, mut most) = (Vec::with_capacity(team.whole), 0, 0);
        for (rank, len) in self.sizes.iter().copied().enumerate() {
            let at = self.places.get(rank).copied().unwrap_or(next);
            if len == 0 {
                // It may lie anywhere.
                blocks.push(Block { at: 0, len });
                continue;
            }
            next = at
                .checked_add(len)
                .filter(|end| *end <= isize::MAX as usize)
                .ok_or_else(|| wrong(format!("{len} bytes at {at} for rank {rank} are more than a buffer can have")))?;
            most = next.max(most);
            blocks.push(Block { at, len });
        }
        Ok((blocks, most))
    }
}

/// What a member gives and takes; of what it has no part in there are no blocks.
struct Uneven<'a> {
    pub pattern: Pattern,
    pub operation: Operation,
    pub give: Bytes<'a>,
    pub given: Vec<Block>,
    pub take: Room<'a>,
    pub taken: Vec<Block>,
}

impl<'a> Uneven<'a> {
    /// What goes to a member.
    fn to(&self, member: usize) -> Bytes<'a> {
        match self.given.get(self.pattern.block_of(member)) {
            Some(block) if block.len > 0 => self.give.part(block.at, block.len),
            _ => Bytes::none(),
        }
    }

    /// Room for what comes from a member.
    fn of(&self, member: usize) -> Room<'a> {
        match self.taken.get(self.pattern.place_of(member)) {
            Some(block) if block.len > 0 => self.take.part(block.at, block.len),
            _ => Room::none(),
        }
    }

    /// Is a member's block of the length that was expected?
    fn compare(&self, team: &Team, member: usize, came: usize) -> Result<()> {
        let wanted = self.of(member).len();
        if came == wanted {
            return Ok(());
        }
        let (me, call) = (team.ep.rank, self.operation.name());
        let text = format!("rank {me}: {call}: rank {member} gives {came} bytes, and {wanted} are expected");
        Err(Error::new(Code::Argument, text))
    }

    /// The member's own block, which nobody else moves. It may be in its place already.
    pub fn keep(&self, team: &Team) -> Result<()> {
        let me = team.rank;
        if !self.pattern.keeps(me) {
            return Ok(());
        }
        let (from, to) = (self.to(me), self.of(me));
        self.compare(team, me, from.len())?;
        if !from.is_empty() && !core::ptr::eq(from.as_ptr(), to.as_ptr()) {
            to.copy_from(from);
        }
        Ok(())
    }

    /// All other blocks. Who waits for a message does not look whether others are in another call: so it says in which it is itself.
    pub async fn exchange(&self, team: &Team) -> Result<()> {
        let bytes = self.give.len().max(self.take.len());
        if team.span.is_some() {
            team.name(self.operation, bytes);
        } else {
            let arena = team.arena()?;
            team.enter(self.operation, bytes);
            team.tell_call(arena);
        }
        let p = Party::cutting(team);
        let (n, me) = (p.len(), p.me);
        let others = || (1..n).map(|k| (me + k) % n);
        let check = |member| self.compare(team, member, p.received_len(member)? as usize);
        match self.pattern {
            Pattern::Gather(root) if me != root => p.send(root, self.to(root)).await,
            Pattern::Gather(_) => {
                p.receive_all(others().map(|m| (m, self.of(m)))).await?;
                others().try_for_each(check)
            }
            Pattern::Scatter(root) if me != root => {
                p.receive(root, self.of(root)).await?;
                check(root)
            }
            Pattern::Scatter(_) => p.send_all(others().map(|m| (m, self.to(m)))).await,
            Pattern::Allgather => {
                let (next, last) = ((me + 1) % n, (me + n - 1) % n);
                // The block that goes on is as long as it came.
                let (mut lengths, mut hand_on) = (Ok(()), self.to(me));
                for step in 0..n - 1 {
                    let theirs = (me + 2 * n - step - 1) % n;
                    let room = self.of(theirs);
                    p.swap(next, hand_on, last, room).await?;
                    let came = p.received_len(last)? as usize;
                    hand_on = *room.part(0, came.min(room.len()));
                    lengths = lengths.and(self.compare(team, theirs, came));
                }
                lengths
            }
            Pattern::Alltoall => {
                let mut lengths = Ok(());
                for distance in 1..n {
                    let (to, from) = ((me + distance) % n, (me + n - distance) % n);
                    p.swap(to, self.to(to), from, self.of(from)).await?;
                    lengths = lengths.and(check(from));
                }
                lengths
            }
        }
    }
}
