//! What keepers say to each other: up and down the tree, and to guests.
//!
//! | up | |
//! |---|---|
//! | `fmpl-came ranks= sum= keepers=` | so many have come by now |
//! | `barrier_in round=`, `put round= key= value=` | all below are in the fence; what all are to be told with it |
//! | `fmpl-late` | some wait in a fence for too long |
//! | `fmpl-here ranks= [more=1]` | the answer to `fmpl-who` |
//! | `fmpl-left` | all ranks below have left |
//!
//! | down | |
//! |---|---|
//! | `fmpl-all first= of= next=` | all ranks have come, and this is the keeper's number |
//! | `put …`, `fmpl-told round=`, `barrier_out round= [rc=-1 msg=]` | what all are told, that this was all, the fence is met or cannot be |
//! | `fmpl-who what= within=` | which ranks have come, or are in a fence? |
//! | `fmpl-over` | the job is over |
//!
//! Both: `fmpl-lost [round=] msg=`, no fence can be met any more; `abort exitcode= rank=`.

use super::ask;
use super::family::{BRANCHES, Came};
use super::link::Role;
use super::{Keeper, join};
use crate::base::lock::lock;
use crate::launch::place::{ranges, ranks_of};
use crate::launch::server::Word;
use crate::launch::wire::Line;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the root waits for the names of those who have come.
const INQUEST: Duration = Duration::from_secs(4);
/// Characters of ranks in a line, and in a message for people.
const NAMES: usize = 4000;
const NAMES_SAID: usize = 600;

/// Which ranks are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Those that have come.
    Came,
    /// Those that are in a fence.
    Fence,
}

/// Who is missing is found out.
pub(super) struct Inquest {
    asked: Asked,
    ranks: BTreeSet<u32>,
    /// Parts that have not answered.
    open: [bool; BRANCHES],
    pub(super) until: Instant,
}

impl Keeper {
    /// A line of another keeper. `false`: it is none that one says.
    pub(super) fn hear_line(&mut self, i: usize, role: Role, text: &str) -> bool {
        let Some(line) = Line::parse(text.as_bytes()) else { return false };
        match role {
            Role::Branch(part) => self.hear_below(i, part, &line),
            Role::Above => self.hear_above(i, &line),
            _ => match ask::answer(&self.known, &line) {
                Some(answer) => {
                    self.say(i, answer.trim_end());
                    true
                }
                None => false,
            },
        }
    }

    fn hear_below(&mut self, i: usize, part: usize, line: &Line) -> bool {
        let Some(child) = &mut self.family.children[part] else { return false };
        let branch = child.branch;
        match line.cmd() {
            "fmpl-came" => {
                let said = || {
                    let [ranks, sum, keepers] = ["ranks", "sum", "keepers"].map(|key| line.number(key));
                    Some(Came { ranks: ranks?, sum: sum?, keepers: keepers? })
                };
                let Some(came) = said() else { return false };
                child.came = came;
            }
            "fmpl-late" => self.ask_who_is_missing(),
            "fmpl-here" => return self.hear_names(part, line),
            "fmpl-left" => self.gone[part] = true,
            "abort" => self.abort_as_told(line, i),
            _ => {
                let Some(word) = word(line) else { return false };
                let news = matches!(word, Word::Lost(_)) && self.above.is_none() && !self.server.has_failed();
                if let (true, Word::Lost(why)) = (news, &word) {
                    self.say_aloud(&why.replace('_', " "));
                }
                return self.server.hear_below(branch, word);
            }
        }
        true
    }

    fn hear_above(&mut self, i: usize, line: &Line) -> bool {
        match line.cmd() {
            "fmpl-all" => {
                let (Some(first), Some(of), Some(next)) = (line.number("first"), line.number("of"), line.get("next"))
                else {
                    return false;
                };
                self.number(first, of, next);
            }
            "fmpl-who" => {
                let asked = if line.get("what") == Some("fence") { Asked::Fence } else { Asked::Came };
                self.inquire(asked, Duration::from_millis(line.number("within").unwrap_or(1)));
            }
            "fmpl-over" => {
                self.end_below();
                self.over = self.left.is_some();
            }
            "abort" => self.abort_as_told(line, i),
            _ => return word(line).is_some_and(|word| self.server.hear_above(word)),
        }
        true
    }

    /// All ranks have come: this keeper has a number, and so get those below.
    pub(super) fn number(&mut self, first: u64, of: u64, next: &str) {
        let (numbers, behind) = self.family.numbers(first, next);
        lock(&self.known.ring).number(first, of, behind);
        for n in numbers {
            if let Some(i) = self.link_of(Role::Branch(n.part)) {
                self.say(i, &format!("cmd=fmpl-all first={} of={of} next={}", n.first, n.next));
            }
        }
        (self.all_here, self.until) = (true, None);
        self.server.all_are_here();
        self.asker.learn();
    }

    /// Says below that the job is over.
    pub(super) fn end_below(&mut self) {
        for part in 0..BRANCHES {
            if let Some(i) = self.link_of(Role::Branch(part)) {
                self.say(i, "cmd=fmpl-over");
            }
        }
    }

    /// Not all have come in time, to the job or to a fence; the root finds out who.
    pub(super) fn ask_who_is_missing(&mut self) {
        match self.above.and(self.link_of(Role::Above)) {
            Some(above) => self.say(above, "cmd=fmpl-late"),
            None if self.inquest.is_some() || self.above.is_some() => {}
            None => self.inquire(if self.all_here { Asked::Fence } else { Asked::Came }, INQUEST),
        }
    }

    fn inquire(&mut self, asked: Asked, within: Duration) {
        let ranks = match asked {
            Asked::Came => self.ranks.iter().copied().collect(),
            Asked::Fence => self.server.ranks_in_fence().collect(),
        };
        let what = if asked == Asked::Fence { "fence" } else { "come" };
        // Those below answer earlier.
        let less = within * 3 / 4;
        let mut open = [false; BRANCHES];
        for (part, open) in open.iter_mut().enumerate() {
            if let Some(i) = self.link_of(Role::Branch(part)) {
                self.say(i, &format!("cmd=fmpl-who what={what} within={}", less.as_millis()));
                *open = true;
            }
        }
        self.inquest = Some(Inquest { asked, ranks, open, until: Instant::now() + within });
    }

    fn hear_names(&mut self, part: usize, line: &Line) -> bool {
        let Some(named) = line.get("ranks").and_then(|text| ranks_of(text, self.place.size)) else { return false };
        if let Some(inquest) = &mut self.inquest {
            inquest.ranks.extend(named);
            inquest.open[part] &= line.get("more").is_some();
        }
        true
    }

    /// Ends it when all have answered, or the time is over.
    pub(super) fn mind_the_inquest(&mut self, now: Instant) {
        let Some(inquest) = self.inquest.take_if(|i| i.until <= now || i.open == [false; BRANCHES]) else { return };
        if let Some(above) = self.above.and(self.link_of(Role::Above)) {
            let text = ranges(inquest.ranks);
            let mut rest = text.as_str();
            while rest.len() > NAMES {
                let (now, later) = rest.split_at(rest[..NAMES].rfind(',').unwrap_or(NAMES));
                self.say(above, &format!("cmd=fmpl-here ranks={now} more=1"));
                rest = &later[1..];
            }
            return self.say(above, &format!("cmd=fmpl-here ranks={rest}"));
        }
        if self.above.is_some() {
            return;
        }
        let (s, all) = (self.place.patience.as_secs_f64(), self.place.size);
        let what = match inquest.asked {
            Asked::Fence if !self.server.in_fence() => return,
            Asked::Fence => "come to the fence that the others wait in",
            Asked::Came => "come",
        };
        let missing: Vec<u32> = (0..all).filter(|rank| !inquest.ranks.contains(rank)).collect();
        let (are, have) = if missing.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
        let mut names = ranges(missing);
        if names.len() > NAMES_SAID {
            names.truncate(names[..NAMES_SAID].rfind(',').unwrap_or(NAMES_SAID));
            names.push_str(",...");
        }
        let (own, at) = (self.ranks[0], self.door.at());
        let why = format!("{are} {names} of {all} {have} not {what} within {s} s; rank {own} listens at {at}");
        self.server.fail(&why.replace(' ', "_"));
    }

    fn abort_as_told(&mut self, line: &Line, from: usize) {
        let (code, by) = (line.number("exitcode").unwrap_or(1), line.number("rank").unwrap_or(0));
        self.abort(by, code, from);
    }

    /// The whole job ends, as `fmpl_abort` says: all but the one who said so are told, and pass it on. This process
    /// ends itself, or when it was its own rank that asked, is ended by the caller when this thread is over.
    pub(super) fn abort(&mut self, by: u32, code: i32, from: usize) {
        let word = format!("cmd=abort exitcode={code} rank={by}");
        for (_, link) in self.links.iter_mut().enumerate().filter(|(i, _)| *i != from) {
            if let Some(link) = link.as_mut().filter(|l| !matches!(l.role, Role::Guest | Role::Rank(0))) {
                link.say_last(&word);
            }
        }
        if by != self.ranks[0]
            && let Some(line) = Line::parse(word.as_bytes())
        {
            join::obey_abort(&line, self.ranks[0]);
        }
        self.links.iter_mut().for_each(|l| *l = None);
    }
}

/// A word of the server as lines.
pub(super) fn lines(word: &Word) -> Vec<String> {
    match word {
        Word::Put(round, pairs) => {
            pairs.iter().map(|(key, value)| format!("cmd=put round={round} key={key} value={value}")).collect()
        }
        Word::All(round) => vec![format!("cmd=fmpl-told round={round}")],
        Word::Fence(round) => vec![format!("cmd=barrier_in round={round}")],
        Word::Release(round, None) => vec![format!("cmd=barrier_out round={round}")],
        Word::Release(round, Some(why)) => vec![format!("cmd=barrier_out round={round} rc=-1 msg={why}")],
        Word::LostRound(round, why) => vec![format!("cmd=fmpl-lost round={round} msg={why}")],
        Word::Lost(why) => vec![format!("cmd=fmpl-lost msg={why}")],
        // What is not known everywhere is with the keeper of its key.
        Word::Get(..) | Word::Value(..) => Vec::new(),
    }
}

/// And back.
fn word(line: &Line) -> Option<Word> {
    let msg = || line.get("msg").map(str::to_owned);
    let round = line.number("round");
    Some(match line.cmd() {
        "put" => Word::Put(round?, vec![(line.get("key")?.to_owned(), line.get("value")?.to_owned())]),
        "fmpl-told" => Word::All(round?),
        "barrier_in" => Word::Fence(round?),
        "barrier_out" => Word::Release(round?, msg()),
        "fmpl-lost" => match round {
            Some(round) => Word::LostRound(round, msg()?),
            None => Word::Lost(msg()?),
        },
        _ => return None,
    })
}
