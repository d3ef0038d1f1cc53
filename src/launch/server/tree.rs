//! The servers of several machines: what they say to each other, up and down the tree that they form.

use super::Server;
use super::answers::found;

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

/// Who waits for a value from above.
pub(super) enum Asker {
    Seat(usize),
    Branch(usize),
}

/// Bytes of puts that go in one word.
const PUT_MAX: usize = 32 << 10;
/// Bytes of puts that are made known everywhere in a round; of more each is asked for by whoever needs it.
pub(super) const KNOWN_MAX: usize = 1 << 20;

impl Server {
    pub(super) fn tell_all(&mut self, word: &Word) {
        self.tell_below(word);
        self.above.iter_mut().for_each(|words| words.push(word.clone()));
    }

    fn tell_below(&mut self, word: &Word) {
        self.branches.iter_mut().for_each(|b| b.words.push(word.clone()));
    }

    /// At the root: what has been put since the last fence goes everywhere, if it is not much.
    pub(super) fn make_known(&mut self, parity: usize) {
        let round = &mut self.rounds[parity];
        let fresh = std::mem::take(&mut round.fresh);
        round.known += fresh.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if round.known <= KNOWN_MAX {
            let mut words = puts(round.number, fresh);
            words.push(Word::All(round.number));
            self.branches.iter_mut().for_each(|branch| branch.words.extend(words.iter().cloned()));
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
            Word::LostRound(number, why) => self.hear_lost_round(number, &why),
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
                self.tell_below(&Word::Put(number, pairs));
            }
            Word::All(number) => {
                let Some(round) = self.round(number) else { return true };
                round.told = true;
                self.tell_below(&Word::All(number));
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
            Word::LostRound(number, why) => self.hear_lost_round(number, &why),
            Word::Lost(why) => self.fail(&why),
            Word::Fence(..) | Word::Get(..) => return false,
        }
        true
    }

    fn hear_lost_round(&mut self, number: usize, why: &str) {
        if self.round(number).is_some() {
            self.fail_round(number & 1, why);
        }
    }

    pub(super) fn ask(&mut self, number: usize, key: String, asker: Asker) {
        let (Some(above), round) = (&mut self.above, &mut self.rounds[number & 1]) else { return };
        let askers = round.asked.entry(key.clone()).or_default();
        if askers.is_empty() {
            above.push(Word::Get(number, key));
        }
        askers.push(asker);
    }
}

/// What has been put, in words.
pub(super) fn puts(number: usize, fresh: Vec<(String, String)>) -> Vec<Word> {
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
