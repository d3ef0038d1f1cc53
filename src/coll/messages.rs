//! Messages between members of a communicator, for the algorithms of `tree`: on a slot of the library's own, obeying no mode of sending.
//!
//! Between two members at most one message in each direction is under way. A call that waits waits in the message itself, as a send or
//! receive of the program does; one that does not wait is polled.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context as Poller, Poll};

use super::team::{Own, Team};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result};
use crate::base::run::Run;
use crate::base::unwinding::Panic;
use crate::lane::Used;
use crate::lane::map::{CHAIN_SLOT, COLLECTIVE_SLOT, GROUP_SLOT};
use crate::p2p::signal;

/// Some members of a communicator, in the order of their ranks.
pub(super) struct Party<'a> {
    team: &'a Team,
    /// Their ranks; `None`: all.
    who: Option<Vec<u32>>,
    /// This member among them.
    pub me: usize,
    slot: usize,
    /// A message that is longer than its room is received all the same: its length tells.
    cuts: bool,
    own: &'a Own,
}

/// Messages that a root has under way at a time.
const AT_A_TIME: usize = 8;

/// The memory of a [`Message`].
fn run_of(bytes: Bytes<'_>) -> Run {
    // SAFETY: the message does not outlast them: it is over, or given up when it is dropped. What is received goes into a room.
    unsafe { Run::new(bytes.as_ptr().cast_mut(), bytes.len()) }
}

impl<'a> Party<'a> {
    /// All ranks.
    pub fn all(team: &'a Team) -> Party<'a> {
        Party { team, who: None, me: team.rank, slot: COLLECTIVE_SLOT, cuts: false, own: &team.state.own }
    }

    /// All ranks in one of several calls that are under way, on a slot of its own.
    pub fn apart(team: &'a Team, slot: usize, own: &'a Own) -> Party<'a> {
        Party { slot, own, ..Party::all(team) }
    }

    /// All ranks, where messages may be longer than their rooms.
    pub fn cutting(team: &'a Team) -> Party<'a> {
        Party { cuts: true, ..Party::all(team) }
    }

    /// These ranks; `None`: this process's is not among them.
    pub fn of(team: &'a Team, who: Vec<u32>) -> Option<Party<'a>> {
        let me = who.iter().position(|r| *r as usize == team.rank)?;
        Some(Party { me, who: Some(who), ..Party::all(team) })
    }

    /// The same for a call of these ranks alone, whose failure is not the communicator's.
    pub fn of_group(team: &'a Team, who: Vec<u32>) -> Option<Party<'a>> {
        Party::of(team, who).map(|p| Party { slot: GROUP_SLOT, ..p })
    }

    /// The communicator's.
    pub fn team(&self) -> &'a Team {
        self.team
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.who.as_ref().map_or(self.team.whole, Vec::len)
    }

    /// The rank of one of them.
    pub fn rank_of(&self, member: usize) -> u32 {
        self.who.as_ref().map_or(member as u32, |who| who[member])
    }

    /// Where among them a rank is.
    pub fn place_of(&self, rank: usize) -> Option<usize> {
        self.who.as_ref().map_or(Some(rank), |who| who.iter().position(|r| *r as usize == rank))
    }

    /// As [`Team::panicked`].
    #[cold]
    pub fn panicked(&self, panic: Panic) -> Error {
        self.team.panicked_in(self.own, panic)
    }

    fn lane(&self, member: usize) -> Result<Used> {
        let rank = self.rank_of(member);
        let team = self.team;
        let context = team.ep.context(team.comm)?;
        // One that fails here has no part in the call: what others send it in this one would be taken for the next one's.
        let lane = team.ep.lane_of(context, rank as i32);
        let lane = lane.and_then(|lane| lane.open_fronts(self.slot).map(|()| lane));
        lane.map_err(|error| match self.slot {
            GROUP_SLOT => error,
            _ => team.fail_elsewhere(self.own, None, context.group.world_rank(rank), error),
        })
    }

    /// The same members on the slot for every other message of two that follow each other closely.
    fn beside(&self) -> Party<'a> {
        Party { who: self.who.clone(), slot: CHAIN_SLOT, ..*self }
    }

    /// `wanted`: the bytes that it must have, if that is known.
    fn begun(&self, lane: Used, sends: bool, wanted: Option<usize>, begun: Result<()>) -> Result<Message<'a>> {
        let team = self.team;
        match begun {
            Ok(()) => Ok(Message { team, own: self.own, lane, slot: self.slot, sends, wanted, over: false }),
            Err(error) if self.slot == GROUP_SLOT => Err(error),
            Err(error) => Err(team.fail_elsewhere(self.own, Some(&lane), lane.world, error)),
        }
    }

    fn begin_send<'m>(&self, to: usize, data: Bytes<'m>) -> Result<Message<'m>>
    where
        'a: 'm,
    {
        let lane = self.lane(to)?;
        let begun = signal::begin_send(self.team.ep, lane.lane(), self.slot, run_of(data));
        self.begun(lane, true, None, begun)
    }

    fn begin_receive<'m>(&self, from: usize, room: Room<'m>) -> Result<Message<'m>>
    where
        'a: 'm,
    {
        let lane = self.lane(from)?;
        let begun = signal::begin_receive(self.team.ep, lane.lane(), self.slot, run_of(*room));
        // In a group a message of no bytes tells of a failure.
        let wanted = (!self.cuts && self.slot != GROUP_SLOT).then_some(room.len());
        self.begun(lane, false, wanted, begun)
    }

    /// Sends to a member.
    pub async fn send(&self, to: usize, data: Bytes<'_>) -> Result<()> {
        self.begin_send(to, data)?.await
    }

    /// Receives from a member as much as there is room for; less or more is an error.
    pub async fn receive(&self, from: usize, room: Room<'_>) -> Result<()> {
        self.begin_receive(from, room)?.await
    }

    /// Sends a word.
    pub async fn send_word(&self, to: usize, word: u64) -> Result<()> {
        self.send(to, Bytes::of(&[word])).await
    }

    /// Receives a word.
    pub async fn receive_word(&self, from: usize) -> Result<u64> {
        self.receive_word_while(from, || false).await
    }

    /// Receives a word while something else is looked after: as long as `meanwhile` says that it is busy, the message is only looked at.
    pub async fn receive_word_while(&self, from: usize, mut meanwhile: impl FnMut() -> bool) -> Result<u64> {
        let mut word = [0u64];
        let mut message = self.begin_receive(from, Room::of(&mut word))?;
        core::future::poll_fn(|poller| {
            let busy = meanwhile();
            let patient = self.own.patient.get();
            self.own.patient.set(patient && !busy);
            let polled = Pin::new(&mut message).poll(poller);
            self.own.patient.set(patient);
            polled
        })
        .await?;
        drop(message);
        Ok(word[0])
    }

    /// Passes a buffer on from one member to another, in pieces: the next two are awaited while one is sent.
    pub async fn hand_on(&self, from: Option<usize>, to: Option<usize>, data: Room<'_>, piece: usize) -> Result<()> {
        let (beside, pieces) = (self.beside(), data.len().div_ceil(piece));
        let on = |k: usize| if k.is_multiple_of(2) { self } else { &beside };
        let part = |k: usize| data.part(k * piece, piece.min(data.len() - k * piece));
        let await_piece = |from: usize, k: usize| on(k).begin_receive(from, part(k));
        let (mut coming, mut going) = ([None, None], [None, None]);
        if let Some(from) = from {
            for (k, first) in coming.iter_mut().enumerate().take(pieces) {
                *first = Some(await_piece(from, k)?);
            }
        }
        for k in 0..pieces {
            if let Some(from) = from {
                if let Some(message) = coming[k % 2].take() {
                    message.await?;
                }
                if k + 2 < pieces {
                    coming[k % 2] = Some(await_piece(from, k + 2)?);
                }
            }
            if let Some(to) = to {
                if let Some(message) = going[k % 2].take() {
                    message.await?;
                }
                // The part has come.
                going[k % 2] = Some(on(k).begin_send(to, *part(k))?);
            }
        }
        All(going.into_iter().flatten().collect()).await
    }

    /// Bytes of the message received last from a member.
    pub fn received_len(&self, from: usize) -> Result<u64> {
        Ok(signal::received_len(self.team.ep, &*self.lane(from)?, self.slot))
    }

    /// Sends to one and receives from another at the same time.
    pub async fn swap(&self, to: usize, give: Bytes<'_>, from: usize, take: Room<'_>) -> Result<()> {
        self.swap_some(Some(to), give, Some(from), take).await
    }

    /// A receive that is known of before it is awaited: so its sender finds it there.
    pub fn expect<'m>(&self, from: usize, room: Room<'m>) -> Result<Expected<'m>>
    where
        'a: 'm,
    {
        self.begin_receive(from, room).map(Expected)
    }

    /// Sends to one, and awaits what is expected at the same time.
    pub async fn swap_expected(&self, to: usize, give: Bytes<'_>, coming: Expected<'_>) -> Result<()> {
        All(vec![coming.0, self.begin_send(to, give)?]).await
    }

    /// The same with nobody on one side or both.
    pub async fn swap_some(
        &self,
        to: Option<usize>,
        give: Bytes<'_>,
        from: Option<usize>,
        take: Room<'_>,
    ) -> Result<()> {
        let coming = from.map(|from| self.begin_receive(from, take)).transpose()?;
        let going = to.map(|to| self.begin_send(to, give)).transpose()?;
        All(coming.into_iter().chain(going).collect()).await
    }

    /// Sends to one and receives from another at the same time, each of which is done whether the other can be or not.
    pub async fn swap_apart(&self, to: usize, give: Bytes<'_>, from: usize, take: Room<'_>) -> Result<()> {
        let (coming, going) = (self.begin_receive(from, take), self.begin_send(to, give));
        let come = match coming {
            Ok(message) => message.await,
            Err(error) => Err(error),
        };
        let gone = match going {
            Ok(message) => message.await,
            Err(error) => Err(error),
        };
        come.and(gone)
    }

    /// Receives from many, some at a time.
    pub async fn receive_all<'m>(&self, from: impl Iterator<Item = (usize, Room<'m>)>) -> Result<()>
    where
        'a: 'm,
    {
        some_at_a_time(from.map(|(member, room)| self.begin_receive(member, room))).await
    }

    /// Sends to many, some at a time.
    pub async fn send_all<'m>(&self, to: impl Iterator<Item = (usize, Bytes<'m>)>) -> Result<()>
    where
        'a: 'm,
    {
        some_at_a_time(to.map(|(member, data)| self.begin_send(member, data))).await
    }
}

async fn some_at_a_time<'m>(messages: impl Iterator<Item = Result<Message<'m>>>) -> Result<()> {
    let mut open = Vec::new();
    for message in messages {
        open.push(message?);
        if open.len() == AT_A_TIME {
            All(core::mem::take(&mut open)).await?;
        }
    }
    All(open).await
}

/// Messages that are under way at the same time.
struct All<'a>(Vec<Message<'a>>);

impl Future for All<'_> {
    type Output = Result<()>;
    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Result<()>> {
        let mut wait = false;
        for message in self.0.iter_mut().filter(|m| !m.over) {
            match Pin::new(message).poll(poller) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => wait = true,
            }
        }
        if wait { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

/// See [`Party::expect`].
pub(super) struct Expected<'a>(Message<'a>);

/// A message under way. Dropped before it is over, it is given up, and its memory is its owner's again.
struct Message<'a> {
    team: &'a Team,
    own: &'a Own,
    lane: Used,
    slot: usize,
    sends: bool,
    /// Bytes that it must have; `None`: its length tells something, or it is sent.
    wanted: Option<usize>,
    over: bool,
}

impl Message<'_> {
    fn failed(&self, error: Error) -> Error {
        if self.slot == GROUP_SLOT {
            return error;
        }
        self.team.fail_elsewhere(self.own, Some(&self.lane), self.lane.world, error)
    }

    /// It has come, whole or cut. Is it as long as it must be?
    fn compare(&self) -> Result<()> {
        let Some(wanted) = self.wanted else { return Ok(()) };
        match signal::received_len(self.team.ep, &self.lane, self.slot) {
            came if came == wanted as u64 => Ok(()),
            came => Err(self.team.message_differs(self.own, self.lane.world, came, wanted)),
        }
    }
}

impl Future for Message<'_> {
    type Output = Result<()>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Result<()>> {
        let (ep, lane, slot, wait) = (self.team.ep, self.lane.lane(), self.slot, self.own.patient.get());
        let done =
            if self.sends { signal::end_send(ep, lane, slot, wait) } else { signal::end_receive(ep, lane, slot, wait) };
        match done {
            Ok(false) => match ep.gone(lane, slot, "collective call") {
                None => {
                    self.own.awaited.set(None);
                    Poll::Pending
                }
                Some(error) => Poll::Ready(Err(self.failed(error))),
            },
            Ok(true) => {
                self.over = true;
                Poll::Ready(self.compare())
            }
            Err(error) if self.slot != GROUP_SLOT && error.code() == Code::Truncate => {
                self.over = true;
                Poll::Ready(self.compare())
            }
            Err(error) => {
                self.over = true;
                Poll::Ready(Err(self.failed(error)))
            }
        }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        if !self.over {
            signal::give_up(self.team.ep, self.lane.lane(), self.slot, self.sends);
        }
    }
}
