//! The launcher's side of PMI-1: the key-value store, the fence, and who has joined and left.
//!
//! No descriptors here: bytes of a rank go in, answers come out, so that every sequence of bytes can be tried on it.
//! A rank that sends what is not PMI-1 is cut off; nothing that a rank sends can make the launcher fail, nor hold more than
//! a bounded amount of memory for each rank.
//!
//! *Jobs one after the other.* Where the launcher allows it, ranks that have said finalize may say init again: they begin the next
//! [`Round`], which has keys and fences of its own, so that nothing of the last one is taken for new. A rank may be one round ahead
//! of the slowest, not more; so two rounds are kept.
//!
//! *Several machines.* The servers of the machines form a tree. Each has ranks of its own, *branches* below it and one *above*, or none of
//! some of these. What its ranks have put goes up with the next fence, when all below have come to it; so each fence is one word
//! for each connection. What a fence makes known goes down before its release if it is not much; of more, what is asked for is found
//! here, or further up, and kept. What a fence cannot be met for goes everywhere.
//!
//! *A spread store.* A server that [grows](Server::growing) does not know its ranks and branches beforehand; no fence is met before all are
//! here. It keeps no values but those that all will want (`fmpl-tell`): what its ranks put and get otherwise it leaves to the
//! [keeper](super::keeper), as [`wants`](Server::wants).

use super::ghosts::Ghosts;
use super::wire::{self, Inbox, Line};
pub(crate) use answers::found;
use std::collections::HashMap;
pub(crate) use tree::Word;
use tree::{Asker, puts};

mod answers;
mod tree;

/// Answers that a rank has not read; beyond this its questions have to wait.
const OUTBOX_MAX: usize = 64 << 10;

/// How far a rank is in the life of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not said a word. Programs that use no message passing never do.
    Fresh,
    /// It said init.
    Joined,
    /// It said finalize.
    Left,
    /// It sent something that is not PMI-1, or hung up after init.
    Cut,
}

/// What a rank's bytes mean for the job as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// The rank asks for the end of the job, with this exit code.
    Abort(i32),
    /// This is not PMI-1; the rank is cut off.
    Garbage(String),
}

struct Seat {
    /// Its number in the job.
    rank: u32,
    stage: Stage,
    /// How often it has said init.
    round: usize,
    in_fence: bool,
    /// It waits for a value from above.
    asks: bool,
    inbox: Inbox,
    outbox: Vec<u8>,
    stored: usize,
    appnum: usize,
}

impl Seat {
    fn new(rank: u32, appnum: usize) -> Seat {
        let (inbox, outbox) = Default::default();
        let stage = Stage::Fresh;
        Seat { rank, stage, round: 0, in_fence: false, asks: false, inbox, outbox, stored: 0, appnum }
    }
}

/// The server of a machine below, and what lies behind it.
#[derive(Default)]
struct Branch {
    in_fence: bool,
    round: usize,
    words: Vec<Word>,
}

/// What belongs to one init of all ranks, until they have all said finalize.
#[derive(Default)]
struct Round {
    /// Which.
    number: usize,
    store: HashMap<String, String>,
    /// What has been put since the last fence: above has not been told of it yet, nor has who is below.
    fresh: Vec<(String, String)>,
    /// Bytes that were made known everywhere.
    known: usize,
    /// All that the next fence makes known has come from above.
    told: bool,
    /// A fence has made known more than came from above.
    lacks: bool,
    asked: HashMap<String, Vec<Asker>>,
    /// Seats and branches.
    in_fence: usize,
    /// Above has been told that all are.
    waits: bool,
    /// A fence has been met: all ranks of the job have joined this round.
    met: bool,
    /// Why no fence of it can be met any more, as it goes over the wire (no blanks).
    lost: Option<String>,
}

/// The state of a job's exchange.
pub(crate) struct Server {
    seats: Vec<Seat>,
    /// The number of ranks of the job.
    size: usize,
    branches: Vec<Branch>,
    /// What is to be said above; `None`: this is the root.
    above: Option<Vec<Word>>,
    /// The round with an even number and the one with an odd number.
    rounds: [Round; 2],
    /// Why no fence of any round can be met from now on.
    lost: Option<String>,
    /// Ranks may say init again after finalize.
    again: bool,
    /// Where all ranks are, as MPICH's programs ask for it.
    mapping: String,
    /// More ranks and branches may come.
    grows: bool,
    /// Questions of ranks about values that are elsewhere, and whose they are; `None`: all values are here, or above.
    wants: Option<Vec<(usize, String)>>,
    /// Ranks that are no processes, and who of the others is where as they say it.
    ghosts: Option<(Ghosts, HashMap<String, Vec<u32>>)>,
}

impl Server {
    /// A job in which rank r runs the program number `appnums[r]`.
    pub(crate) fn new(appnums: &[usize]) -> Server {
        let ranks: Vec<(u32, usize)> = (0..).zip(appnums.iter().copied()).collect();
        Server { again: false, ..Server::part(&ranks, ranks.len(), 0, false) }
    }

    /// The same, where ranks that have said finalize may say init again.
    pub(crate) fn of_many_rounds(appnums: &[usize]) -> Server {
        Server { again: true, ..Server::new(appnums) }
    }

    /// The same, of whose ranks some are no processes.
    pub(crate) fn with_ghosts(appnums: &[usize], ghosts: Ghosts) -> Server {
        let size = ghosts.world();
        Server { size, ghosts: Some((ghosts, HashMap::new())), ..Server::new(appnums) }
    }

    /// The part of a machine: its ranks with the numbers of their programs, in a job of `size`; so many branches below it, and another
    /// server above it or not. Ranks may say init again.
    pub(crate) fn part(ranks: &[(u32, usize)], size: usize, branches: usize, above: bool) -> Server {
        Server {
            seats: ranks.iter().map(|&(rank, appnum)| Seat::new(rank, appnum)).collect(),
            size,
            branches: (0..branches).map(|_| Branch::default()).collect(),
            above: above.then(Vec::new),
            rounds: Default::default(),
            lost: None,
            again: true,
            mapping: format!("(vector,(0,1,{size}))"),
            grows: false,
            wants: None,
            ghosts: None,
        }
    }

    /// A part of a job of `size` to which nobody has come yet, and whose values are spread.
    pub(crate) fn growing(size: usize, above: bool) -> Server {
        Server { again: false, grows: true, wants: Some(Vec::new()), ..Server::part(&[], size, 0, above) }
    }

    /// One more rank: its place.
    pub(crate) fn take_in(&mut self, rank: u32) -> usize {
        self.seats.push(Seat::new(rank, 0));
        self.seats.len() - 1
    }

    /// One more machine below: its number.
    pub(crate) fn branch_out(&mut self) -> usize {
        self.branches.push(Branch::default());
        self.branches.len() - 1
    }

    /// All ranks and branches have come.
    pub(crate) fn all_are_here(&mut self) {
        self.grows = false;
        (0..2).for_each(|parity| self.meet(parity));
    }

    /// Questions that the [keeper](super::keeper) is to answer, with the places of those who ask.
    pub(crate) fn wants(&mut self) -> Vec<(usize, String)> {
        self.wants.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The answer to such a question.
    pub(crate) fn answered(&mut self, rank: usize, line: &str) {
        let seat = &mut self.seats[rank];
        if std::mem::take(&mut seat.asks) {
            seat.outbox.extend_from_slice(line.as_bytes());
        }
    }

    /// Says where the ranks are.
    pub(crate) fn map(mut self, mapping: String) -> Server {
        self.mapping = mapping;
        self
    }

    pub(crate) fn stage(&self, rank: usize) -> Stage {
        self.seats[rank].stage
    }

    /// Answers on their way to a rank; whoever sends them removes them.
    pub(crate) fn outbox(&mut self, rank: usize) -> &mut Vec<u8> {
        &mut self.seats[rank].outbox
    }

    /// Whether there are answers for the rank to be sent.
    pub(crate) fn has_answers(&self, rank: usize) -> bool {
        !self.seats[rank].outbox.is_empty()
    }

    /// Whether more of the rank's bytes may be read now.
    pub(crate) fn listens_to(&self, rank: usize) -> bool {
        self.seats[rank].outbox.len() < OUTBOX_MAX
    }

    /// Takes bytes that a rank has sent.
    pub(crate) fn receive(&mut self, rank: usize, bytes: &[u8]) -> Verdict {
        // Taken out, so that a line can be borrowed from it while the answers change everything else.
        let mut inbox = std::mem::take(&mut self.seats[rank].inbox);
        inbox.push(bytes);
        let verdict = loop {
            match inbox.line() {
                Ok(None) => break Verdict::Fine,
                Err(wire::TooLong) => break Verdict::Garbage(wire::shown(inbox.rest())),
                Ok(Some(text)) => match Line::parse(text).and_then(|line| self.answer(rank, &line)) {
                    Some(Verdict::Fine) => {}
                    Some(other) => break other,
                    None => break Verdict::Garbage(wire::shown(text)),
                },
            }
        };
        if let Verdict::Garbage(_) = verdict {
            self.cut(rank);
        } else {
            self.seats[rank].inbox = inbox;
        }
        verdict
    }

    /// The rank is not listened to any more.
    pub(crate) fn cut(&mut self, rank: usize) {
        self.seats[rank].outbox.clear();
        self.lose(rank, "was_cut_off");
        self.seats[rank].stage = Stage::Cut;
    }

    /// The rank's connection is closed at its end.
    pub(crate) fn hung_up(&mut self, rank: usize) {
        match self.seats[rank].stage {
            Stage::Joined => {
                self.lose(rank, "has_left_without_finalize");
                self.seats[rank].stage = Stage::Cut;
            }
            // It says init no more.
            Stage::Left if self.again => self.lose(rank, "has_left_for_good"),
            _ => {}
        }
    }

    /// The rank will come to no fence any more, of whatever round: those who wait in one are told, and whoever comes to one later.
    pub(crate) fn lose(&mut self, rank: usize, why: &str) {
        self.leave_fence(rank);
        self.fail(&format!("rank_{}_{why}", self.seats[rank].rank));
    }

    fn leave_fence(&mut self, rank: usize) {
        let seat = &mut self.seats[rank];
        if std::mem::take(&mut seat.in_fence) {
            self.rounds[seat.round & 1].in_fence -= 1;
        }
    }

    /// No fence can be met any more, for this reason (no blanks).
    pub(crate) fn fail(&mut self, why: &str) {
        if self.lost.is_none() {
            self.lost = Some(why.to_owned());
            self.tell_all(&Word::Lost(why.to_owned()));
        }
        for parity in 0..2 {
            self.fail_round(parity, why);
        }
    }

    /// No fence of the even or the odd round can be met any more.
    fn fail_round(&mut self, parity: usize, why: &str) {
        let round = &mut self.rounds[parity];
        let (known, number) = (round.lost.is_some() || self.lost.is_some(), round.number);
        let why = round.lost.get_or_insert_with(|| why.to_owned()).clone();
        if !known {
            self.tell_all(&Word::LostRound(number, why.clone()));
        }
        self.release(parity, Some(&why));
    }

    /// Whether something has made fences impossible.
    pub(crate) fn has_failed(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether somebody waits in a fence.
    pub(crate) fn in_fence(&self) -> bool {
        self.rounds.iter().any(|round| round.in_fence > 0)
    }

    /// The ranks that do.
    pub(crate) fn ranks_in_fence(&self) -> impl Iterator<Item = u32> + '_ {
        self.seats.iter().filter(|seat| seat.in_fence).map(|seat| seat.rank)
    }

    /// Lets go who is in the round's fence; `why`: it cannot be met.
    fn release(&mut self, parity: usize, why: Option<&str>) {
        let word = match why {
            None => "cmd=barrier_out\n".to_owned(),
            Some(why) => format!("cmd=barrier_out rc=-1 msg={why}\n"),
        };
        for seat in self.seats.iter_mut().filter(|s| s.in_fence && s.round & 1 == parity) {
            seat.in_fence = false;
            seat.outbox.extend_from_slice(word.as_bytes());
        }
        let round = &mut self.rounds[parity];
        for branch in self.branches.iter_mut().filter(|b| b.in_fence && b.round & 1 == parity) {
            branch.in_fence = false;
            branch.words.push(Word::Release(round.number, why.map(str::to_owned)));
        }
        (round.in_fence, round.waits) = (0, false);
        round.met |= why.is_none();
    }

    /// One more has come to the round's fence.
    fn come(&mut self, parity: usize) {
        let round = &mut self.rounds[parity];
        round.in_fence += 1;
        match round.lost.clone() {
            Some(why) => self.release(parity, Some(&why)),
            None => self.meet(parity),
        }
    }

    /// If all have come to the round's fence, above is told, or they are let go.
    fn meet(&mut self, parity: usize) {
        let all = self.seats.len() + self.branches.len();
        let round = &mut self.rounds[parity];
        if round.in_fence == all && all > 0 && !self.grows {
            let Some(above) = &mut self.above else {
                self.make_known(parity);
                return self.release(parity, None);
            };
            above.extend(puts(round.number, std::mem::take(&mut round.fresh)));
            above.push(Word::Fence(round.number));
            round.waits = true;
        }
    }

    /// The round of this number, if it is not over; begun when it is new.
    fn round(&mut self, number: usize) -> Option<&mut Round> {
        let round = &mut self.rounds[number & 1];
        if round.number < number {
            // Nobody is left in the one before the last.
            *round = Round { number, lost: self.lost.clone(), ..Round::default() };
        }
        (round.number == number).then_some(round)
    }
}

#[cfg(test)]
mod tests;
