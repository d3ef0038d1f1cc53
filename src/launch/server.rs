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

use super::wire::{self, Inbox, Line};
use std::collections::HashMap;

/// The limits that are announced; as with Hydra and Slurm they count the NUL of a C string.
const KEY_MAX: usize = 64;
const VALUE_MAX: usize = 1024;
/// What one rank may keep in the store, keys and values together.
const STORE_MAX: usize = 1 << 20;
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

/// What the servers of two machines say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Up: what ranks have put, in this round. Down: what a fence has made known.
    Put(usize, Vec<(String, String)>),
    /// Down: with what came before, all that the fence has made known is known.
    All(usize),
    /// Up: all ranks below are in the round's fence.
    Fence(usize),
    /// Up: what is the value of this key?
    Get(usize, String),
    /// Down: what was asked for.
    Value(usize, String, Option<String>),
    /// Down: the round's fence is met, or cannot be.
    Release(usize, Option<String>),
    /// Both: no fence of this round can be met, and why.
    LostRound(usize, String),
    /// Both: no fence at all can be met.
    Lost(String),
}

/// The server of a machine below, and what lies behind it.
#[derive(Default)]
struct Branch {
    in_fence: bool,
    round: usize,
    words: Vec<Word>,
}

/// Who waits for a value from above.
enum Asker {
    Seat(usize),
    Branch(usize),
}

/// Bytes of puts that go in one word.
const PUT_MAX: usize = 32 << 10;
/// Bytes of puts that are made known everywhere in a round; of more each is asked for by whoever needs it.
const KNOWN_MAX: usize = 1 << 20;

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

    /// The part of a machine: its ranks with the numbers of their programs, in a job of `size`; so many branches below it, and another
    /// server above it or not. Ranks may say init again.
    pub(crate) fn part(ranks: &[(u32, usize)], size: usize, branches: usize, above: bool) -> Server {
        let seat = |&(rank, appnum): &(u32, usize)| Seat {
            rank,
            stage: Stage::Fresh,
            round: 0,
            in_fence: false,
            asks: false,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            stored: 0,
            appnum,
        };
        Server {
            seats: ranks.iter().map(seat).collect(),
            size,
            branches: (0..branches).map(|_| Branch::default()).collect(),
            above: above.then(Vec::new),
            rounds: Default::default(),
            lost: None,
            again: true,
            mapping: format!("(vector,(0,1,{size}))"),
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
        // WayTaken out, so that a line can be borrowed from it while the answers change everything else.
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

    fn tell_all(&mut self, word: &Word) {
        self.branches.iter_mut().for_each(|b| b.words.push(word.clone()));
        self.above.iter_mut().for_each(|words| words.push(word.clone()));
    }

    /// Whether something has made fences impossible.
    pub(crate) fn has_failed(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether somebody waits in a fence.
    pub(crate) fn in_fence(&self) -> bool {
        self.rounds.iter().any(|round| round.in_fence > 0)
    }

    /// The ranks that do not.
    pub(crate) fn not_in_fence(&self) -> Vec<u32> {
        (0..self.seats.len() as u32).filter(|r| !self.seats[*r as usize].in_fence).collect()
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
        let all = self.seats.len() + self.branches.len();
        let round = &mut self.rounds[parity];
        round.in_fence += 1;
        if let Some(why) = round.lost.clone() {
            self.release(parity, Some(&why));
        } else if round.in_fence == all {
            let Some(above) = &mut self.above else {
                self.make_known(parity);
                return self.release(parity, None);
            };
            above.extend(puts(round.number, std::mem::take(&mut round.fresh)));
            above.push(Word::Fence(round.number));
            round.waits = true;
        }
    }

    /// At the root: what has been put since the last fence goes everywhere, if it is not much.
    fn make_known(&mut self, parity: usize) {
        let round = &mut self.rounds[parity];
        let fresh = std::mem::take(&mut round.fresh);
        round.known += fresh.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if round.known <= KNOWN_MAX {
            let mut words = puts(round.number, fresh);
            words.push(Word::All(round.number));
            self.branches.iter_mut().for_each(|branch| branch.words.extend(words.iter().cloned()));
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

    /// Begins a round for a rank that has said init.
    fn begin(&mut self, rank: usize) {
        let round = self.seats[rank].round + 1;
        self.round(round);
        let seat = &mut self.seats[rank];
        (seat.stage, seat.round, seat.stored) = (Stage::Joined, round, 0);
    }

    /// May a rank say init again? Not where the launcher allows it to none, and not before all have come as far as it has.
    fn may_begin_again(&self, rank: usize) -> Result<(), &'static str> {
        let (seat, alone) = (&self.seats[rank], self.branches.is_empty() && self.above.is_none());
        match () {
            () if !self.again => Err("this_rank_has_joined_before"),
            () if self.seats.iter().any(|s| s.round < seat.round) || !(alone || self.rounds[seat.round & 1].met) => {
                Err("not_all_ranks_have_joined_the_last_time")
            }
            () => Ok(()),
        }
    }

    /// What is to be said to a branch.
    pub(crate) fn words_for(&mut self, branch: usize) -> Vec<Word> {
        std::mem::take(&mut self.branches[branch].words)
    }

    /// What is to be said above.
    pub(crate) fn words_above(&mut self) -> Vec<Word> {
        self.above.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A machine below is gone, and with it all behind it.
    pub(crate) fn lose_branch(&mut self, branch: usize, why: &str) {
        let branch = &mut self.branches[branch];
        if std::mem::take(&mut branch.in_fence) {
            self.rounds[branch.round & 1].in_fence -= 1;
        }
        self.fail(why);
    }

    /// A branch has said something. `false`: it is nothing that one says.
    #[must_use]
    pub(crate) fn hear_below(&mut self, branch: usize, word: Word) -> bool {
        match word {
            Word::Put(number, pairs) => {
                if let Some(round) = self.round(number) {
                    for (key, value) in pairs {
                        round.fresh.push((key.clone(), value.clone()));
                        round.store.entry(key).or_insert(value);
                    }
                }
            }
            Word::Fence(number) => {
                if self.round(number).is_some() && !self.branches[branch].in_fence {
                    (self.branches[branch].in_fence, self.branches[branch].round) = (true, number);
                    self.come(number & 1);
                }
            }
            Word::Get(number, key) => {
                let at_root = self.above.is_none();
                let Some(round) = self.round(number) else { return true };
                match round.store.get(&key).cloned() {
                    None if !at_root && round.lacks => self.ask(number, key, Asker::Branch(branch)),
                    value => self.branches[branch].words.push(Word::Value(number, key, value)),
                }
            }
            Word::LostRound(number, why) => {
                if self.round(number).is_some() {
                    self.fail_round(number & 1, &why);
                }
            }
            Word::Lost(why) => self.fail(&why),
            Word::Value(..) | Word::Release(..) | Word::All(_) => return false,
        }
        true
    }

    /// Above has said something. `false`: it is nothing that it says.
    #[must_use]
    pub(crate) fn hear_above(&mut self, word: Word) -> bool {
        match word {
            Word::Release(number, why) => {
                if let Some(round) = self.round(number).filter(|round| round.waits) {
                    round.lacks |= !std::mem::take(&mut round.told);
                    self.release(number & 1, why.as_deref());
                }
            }
            Word::Put(number, pairs) => {
                let Some(round) = self.round(number) else { return true };
                round.store.extend(pairs.iter().cloned());
                let word = Word::Put(number, pairs);
                self.branches.iter_mut().for_each(|branch| branch.words.push(word.clone()));
            }
            Word::All(number) => {
                let Some(round) = self.round(number) else { return true };
                round.told = true;
                self.branches.iter_mut().for_each(|branch| branch.words.push(Word::All(number)));
            }
            Word::Value(number, key, value) => {
                let Some(round) = self.round(number) else { return true };
                let askers = round.asked.remove(&key).unwrap_or_default();
                if let Some(value) = &value {
                    round.store.insert(key.clone(), value.clone());
                }
                for asker in askers {
                    match asker {
                        Asker::Branch(b) => {
                            self.branches[b].words.push(Word::Value(number, key.clone(), value.clone()))
                        }
                        Asker::Seat(i) => {
                            let seat = &mut self.seats[i];
                            if std::mem::take(&mut seat.asks) {
                                seat.outbox.extend_from_slice(found(&key, value.as_deref()).as_bytes());
                            }
                        }
                    }
                }
            }
            Word::LostRound(number, why) => {
                if self.round(number).is_some() {
                    self.fail_round(number & 1, &why);
                }
            }
            Word::Lost(why) => self.fail(&why),
            Word::Fence(..) | Word::Get(..) => return false,
        }
        true
    }

    fn ask(&mut self, number: usize, key: String, asker: Asker) {
        let (Some(above), round) = (&mut self.above, &mut self.rounds[number & 1]) else { return };
        let askers = round.asked.entry(key.clone()).or_default();
        if askers.is_empty() {
            above.push(Word::Get(number, key));
        }
        askers.push(asker);
    }

    /// `None`: not a line that a rank in this stage may send.
    fn answer(&mut self, rank: usize, line: &Line) -> Option<Verdict> {
        if line.cmd() == "abort" {
            return Some(Verdict::Abort(line.number("exitcode").unwrap_or(1)));
        }
        if self.seats[rank].asks {
            // One question at a time.
            return None;
        }
        if line.cmd() == "init" {
            let fresh = self.seats[rank].stage == Stage::Fresh;
            let joined = self.seats[rank].stage == Stage::Joined;
            let allowed = match () {
                () if line.number::<u32>("pmi_version").is_none() && fresh => return None,
                () if line.number::<u32>("pmi_version") != Some(1) => Err("only_version_1"),
                () if fresh || joined => Ok(()),
                () => self.may_begin_again(rank),
            };
            let how = match allowed {
                // An MPI in the same process says it too, over the same connection.
                Ok(()) if joined => "0".to_owned(),
                Ok(()) => {
                    self.begin(rank);
                    "0".to_owned()
                }
                Err(why) => format!("-1 msg={why}"),
            };
            let word = format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={how}\n");
            self.seats[rank].outbox.extend_from_slice(word.as_bytes());
            return Some(Verdict::Fine);
        }
        // Is there anybody else who is to know what is put?
        let shares = self.above.is_some() || !self.branches.is_empty();
        let seat = &mut self.seats[rank];
        let round = &mut self.rounds[seat.round & 1];
        let word = match (line.cmd(), seat.stage) {
            (_, Stage::Fresh | Stage::Left | Stage::Cut) => return None,
            ("get_maxes", _) => format!("cmd=maxes kvsname_max=256 keylen_max={KEY_MAX} vallen_max={VALUE_MAX}\n"),
            ("get_appnum", _) => format!("cmd=appnum appnum={}\n", seat.appnum),
            ("get_universe_size", _) => format!("cmd=universe_size size={}\n", self.size),
            ("get_my_kvsname", _) => "cmd=my_kvsname kvsname=fmpl\n".into(),
            ("put", _) => match put(round, seat, line.get("key")?, line.get("value")?, shares) {
                Ok(()) => "cmd=put_result rc=0 msg=success\n".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
            },
            ("get", _) => match line.get("key")? {
                "PMI_process_mapping" => format!("cmd=get_result rc=0 msg=success value={}\n", self.mapping),
                key => match round.store.get(key) {
                    None if self.above.is_some() && round.lacks => {
                        seat.asks = true;
                        let number = seat.round;
                        self.ask(number, key.to_owned(), Asker::Seat(rank));
                        return Some(Verdict::Fine);
                    }
                    value => found(key, value.map(String::as_str)),
                },
            },
            ("barrier_in", _) if seat.in_fence => return None,
            ("barrier_in", _) => {
                seat.in_fence = true;
                let parity = seat.round & 1;
                self.come(parity);
                return Some(Verdict::Fine);
            }
            ("finalize", _) => {
                seat.stage = Stage::Left;
                let again = if self.again { " again=1" } else { "" };
                seat.outbox.extend_from_slice(format!("cmd=finalize_ack{again}\n").as_bytes());
                let parity = seat.round & 1;
                self.leave_fence(rank);
                let why = format!("rank_{}_has_finalized", self.seats[rank].rank);
                self.fail_round(parity, &why);
                return Some(Verdict::Fine);
            }
            (other, _) => {
                format!("cmd={}_result rc=-1 msg=unknown_command\n", other.chars().take(KEY_MAX).collect::<String>())
            }
        };
        seat.outbox.extend_from_slice(word.as_bytes());
        Some(Verdict::Fine)
    }
}

fn found(key: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
        None => format!(
            "cmd=get_result rc=-1 msg=key_{}_not_found value=unknown\n",
            key.chars().take(KEY_MAX).collect::<String>()
        ),
    }
}

/// What has been put, in words.
fn puts(number: usize, fresh: Vec<(String, String)>) -> Vec<Word> {
    let (mut words, mut pairs, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (key, value) in fresh {
        bytes += key.len() + value.len();
        pairs.push((key, value));
        if bytes > PUT_MAX {
            words.push(Word::Put(number, std::mem::take(&mut pairs)));
            bytes = 0;
        }
    }
    if !pairs.is_empty() {
        words.push(Word::Put(number, pairs));
    }
    words
}

fn put(round: &mut Round, seat: &mut Seat, key: &str, value: &str, shares: bool) -> Result<(), &'static str> {
    let bytes = key.len() + value.len();
    match () {
        () if key.len() >= KEY_MAX => Err("key_too_long"),
        () if value.len() >= VALUE_MAX => Err("value_too_long"),
        () if round.store.contains_key(key) => Err("duplicate_key"),
        () if seat.stored + bytes > STORE_MAX => Err("this_rank_has_put_too_much"),
        () => {
            seat.stored += bytes;
            if shares {
                round.fresh.push((key.to_owned(), value.to_owned()));
            }
            round.store.insert(key.to_owned(), value.to_owned());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
