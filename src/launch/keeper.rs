//! Meeting without a root that holds everything: on each node of a job started by environment variables, by an
//! identifier, or by plain Slurm, a thread of one rank, the *keeper*, serves the ranks of the node, and the keepers
//! serve each other.
//!
//! ```text
//!              root: the keeper that all can find            a tree of keepers (`family`): who has come, fences, what all are told,
//!             ╱   ╲                                          who is missing or dead, the end
//!       keeper     keeper ◀╌╌╌╌ a guest ╌╌╌╌ keeper          a ring of keepers (`ring`): each has a part of the values (`shelf`), which
//!      ╱  │  ╲         ╲                                     others ask for by connections that are made when needed (`ask`)
//!  rank rank rank       keeper
//! ```
//! The first rank of a node that comes listens at a name that the others of its node find, and connects to the root, or
//! to whom that sends it (`arrive`). So a rank has one connection, a keeper one for each rank of its node, at most five
//! in the tree, and at most [`GUESTS_MOST`] and four for values. Nobody holds what all have put.
//!
//! A keeper serves until the job's end, since a rank asks for the card of another when it first needs it. What
//! strangers can cost is bounded, see [`door`](super::door). A rank costs a connection and what it puts; the bounds of
//! that are the [`Server`]'s.

use super::door::Door;
use super::environment::{Place, Root as Where};
use super::join::{self, MARGIN};
use super::server::{Server, Stage, Verdict};
use super::wire::{self, Line};
use crate::base::error::say;
use crate::base::key::Key;
use crate::base::lock::lock;
use crate::base::log::Level;
use crate::base::system;
use ask::{Asker, Known};
use family::Family;
pub(super) use family::Range;
pub(super) use link::Stream;
use link::{End, Link, Role};
pub use measure::{Measured, measure};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use tree::Inquest;

mod arrive;
mod ask;
mod family;
mod link;
mod measure;
mod ring;
mod shelf;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;
mod tree;

/// How long a keeper stays for ranks that have not left when its own has.
const LINGER: Duration = Duration::from_secs(30);
/// Keepers whose connections are kept when they have asked; and all that may have one.
const GUESTS: usize = 4;
const GUESTS_MOST: usize = 8;
/// From telling above who has come to telling it again: a microsecond for each rank of the job at least, but for very
/// many; and at least this part of the time since the beginning, so that the root reads little however long it takes.
const NEWS: Duration = Duration::from_millis(20);
const NEWS_PART: u32 = 3;

/// See the head of this file.
pub(super) struct Keeper {
    place: Place,
    /// The job's.
    secret: Key,
    server: Server,
    /// The ranks of this node that have come, by their places in the server; the first is the one whose thread this is.
    ranks: Vec<u32>,
    links: Vec<Option<Link>>,
    door: Door,
    family: Family,
    known: Known,
    asker: Asker,
    /// The rank of the keeper above; `None`: this is the root.
    above: Option<u32>,
    above_at: String,
    /// All ranks of the job have come.
    all_here: bool,
    /// Questions from before that.
    early: Vec<(usize, String)>,
    /// Reasons for which somebody was turned away, each said once.
    complaints: BTreeSet<&'static str>,
    /// Until when all ranks must have come; later, until when the fence that some wait in must be met.
    until: Option<Instant>,
    /// The thread began; above was told who has come.
    began: Instant,
    told: Instant,
    inquest: Option<Inquest>,
    /// When the own rank left in good order.
    left: Option<Instant>,
    /// The parts whose ranks have all left; above was told that all here have; the whole job has.
    gone: [bool; family::BRANCHES],
    said_left: bool,
    over: bool,
}

#[derive(Clone, Copy)]
enum Happening {
    Listener(usize),
    Stranger(usize),
    Link(usize),
    Answers,
}

impl Keeper {
    fn run(mut self) {
        while self.serves() {
            let now = Instant::now();
            let (mut fds, what) = self.interests(now);
            let wait = self
                .next_moment(now)
                .map_or(-1, |at| at.saturating_duration_since(now).as_millis().min(60_000) as libc::c_int + 1);
            let _ = system::poll(&mut fds, wait);
            // From the last to the first, so that a stranger that goes does not change the numbers of those still to
            // come.
            for (p, what) in fds.iter().zip(what).rev().filter(|(p, _)| p.revents != 0) {
                match what {
                    Happening::Link(i) => self.hear(i, p.revents),
                    Happening::Stranger(i) => self.hear_stranger(i),
                    Happening::Listener(i) => self.answer_door(i),
                    Happening::Answers => {
                        for (seat, answer) in self.asker.answers() {
                            self.server.answered(seat, &answer);
                        }
                    }
                }
            }
            self.mind_the_clock();
        }
    }

    /// The end: the own rank has failed, or has left and the others have too, or had their time to.
    fn serves(&mut self) -> bool {
        let own = self.link_of(Role::Rank(0)).is_some();
        let lingers = self.left.is_some_and(|since| since.elapsed() < LINGER);
        if own || !lingers || self.over {
            return own && !self.over;
        }
        let others = self.links.iter().flatten().any(|l| match l.role {
            Role::Rank(_) => true,
            Role::Branch(part) => !self.gone[part],
            Role::Above | Role::Guest => false,
        });
        if others {
            return true;
        }
        match self.above.and(self.link_of(Role::Above)) {
            // The values here are wanted until all have left.
            Some(above) if !self.said_left => {
                self.said_left = true;
                self.say(above, "cmd=fmpl-left");
                true
            }
            Some(_) => true,
            None => {
                self.end_below();
                false
            }
        }
    }

    fn interests(&self, now: Instant) -> (Vec<libc::pollfd>, Vec<Happening>) {
        let (mut fds, mut what) = (Vec::new(), Vec::new());
        let mut add = |fd, events, w| {
            fds.push(libc::pollfd { fd, events, revents: 0 });
            what.push(w);
        };
        let (listeners, strangers) = self.door.interests(now);
        listeners.into_iter().enumerate().for_each(|(i, fd)| add(fd, libc::POLLIN, Happening::Listener(i)));
        strangers.into_iter().enumerate().for_each(|(i, fd)| add(fd, libc::POLLIN, Happening::Stranger(i)));
        add(self.asker.wake.as_raw_fd(), libc::POLLIN, Happening::Answers);
        for (i, link) in self.links.iter().enumerate() {
            let Some(link) = link else { continue };
            let listens = match link.role {
                Role::Rank(seat) => self.server.listens_to(seat),
                _ => true,
            };
            let (listens, says) =
                (if listens { libc::POLLIN } else { 0 }, if link.is_flushed() { 0 } else { libc::POLLOUT });
            add(link.fd(), listens | says, Happening::Link(i));
        }
        (fds, what)
    }

    fn next_moment(&self, now: Instant) -> Option<Instant> {
        let left = self.left.map(|l| l + LINGER);
        let news = (self.above.is_some() && self.family.has_news()).then(|| self.news_are_due());
        let inquest = self.inquest.as_ref().map(|i| i.until);
        [self.until, self.door.next_moment(now), left, news, inquest].into_iter().flatten().min()
    }

    /// When above may be told again who has come. As many as there are ranks in the range are mostly all that will
    /// come: that is said at once.
    fn news_are_due(&self) -> Instant {
        let least = NEWS.min(Duration::from_micros(self.place.size as u64));
        let pause = least.max(self.told.saturating_duration_since(self.began) / NEWS_PART);
        if self.family.is_complete() { self.told } else { self.told + pause }
    }

    fn mind_the_clock(&mut self) {
        let now = Instant::now();
        let mut complaints = Complaints { seen: &mut self.complaints, place: &self.place };
        self.door.mind_the_clock(now, |why, from| complaints.turned_away(from, why, &[]));
        self.count();
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.ask_who_is_missing();
        } else if self.all_here && self.inquest.is_none() {
            match (self.server.in_fence(), self.until) {
                (true, None) => self.until = Some(now + self.place.patience),
                (false, Some(_)) => self.until = None,
                _ => {}
            }
        }
        self.mind_the_inquest(now);
        self.see_to_wants();
        self.flush();
    }

    /// Those who have come: above is told, or all are here.
    fn count(&mut self) {
        if self.all_here || self.server.has_failed() {
            return;
        }
        if let Some(above) = self.above.and(self.link_of(Role::Above)) {
            if self.news_are_due() <= Instant::now()
                && let Some(came) = self.family.news()
            {
                self.told = Instant::now();
                let line = format!("cmd=fmpl-came ranks={} sum={} keepers={}", came.ranks, came.sum, came.keepers);
                self.say(above, &line);
            }
            return;
        }
        match self.family.all_are_here() {
            Ok(false) => {}
            Ok(true) => self.number(0, self.family.came().keepers, ask::ROOT),
            Err(()) => self.server.fail("two_processes_have_the_same_rank"),
        }
    }

    /// Answers what can be answered here, and has the rest asked elsewhere.
    fn see_to_wants(&mut self) {
        let wants = self.server.wants();
        self.early.extend(wants);
        if !lock(&self.known.ring).is_numbered() {
            if self.server.has_failed() {
                for (seat, line) in std::mem::take(&mut self.early) {
                    let result = if line.starts_with("cmd=get") { "get_result" } else { "put_result" };
                    self.server.answered(seat, &format!("cmd={result} rc=-2 msg=the_job_has_failed_to_start\n"));
                }
            }
            return;
        }
        for (seat, line) in std::mem::take(&mut self.early) {
            let Some(asked) = Line::parse(line.as_bytes()) else { continue };
            let ring = lock(&self.known.ring);
            let keeper = ring.keeper_of(asked.get("key").unwrap_or_default());
            let here = ring.is_mine(keeper) && (asked.cmd() == "get" || ring.second(keeper).is_none());
            drop(ring);
            let answer = if here { lock(&self.known.shelf).answer(&asked) } else { None };
            match answer {
                Some(answer) => self.server.answered(seat, &answer),
                None => self.asker.ask(seat, keeper, line),
            }
        }
    }

    /// Sends what can be sent.
    fn flush(&mut self) {
        let branches = self.family.children.iter().map(|c| c.as_ref().map(|c| c.branch));
        let branches: Vec<Option<usize>> = branches.collect();
        for link in self.links.iter_mut().flatten() {
            match link.role {
                Role::Rank(seat) if link.is_flushed() => link.say_all(self.server.outbox(seat)),
                Role::Branch(part) => {
                    let words = branches[part].map(|branch| self.server.words_for(branch)).unwrap_or_default();
                    words.iter().flat_map(tree::lines).for_each(|line| link.say(&line));
                }
                Role::Above => self.server.words_above().iter().flat_map(tree::lines).for_each(|line| link.say(&line)),
                _ => {}
            }
            link.flush();
        }
        if self.above.is_none() {
            drop(self.server.words_above());
        }
    }

    fn link_of(&self, role: Role) -> Option<usize> {
        self.links.iter().position(|l| l.as_ref().is_some_and(|l| l.role == role))
    }

    fn say(&mut self, i: usize, line: &str) {
        if let Some(link) = &mut self.links[i] {
            link.say(line);
            link.flush();
            link.is_served = true;
        }
    }

    fn hear(&mut self, i: usize, events: libc::c_short) {
        if events & !libc::POLLOUT == 0 {
            return;
        }
        let Some(link) = &mut self.links[i] else { return };
        let role = link.role;
        let (what, text) = match (link.take_in(), role) {
            (Err(End::Closed), _) => return self.gone(i),
            (Ok(lines), Role::Rank(seat)) => match self.server.receive(seat, &lines) {
                Verdict::Fine => return,
                Verdict::Abort(code) => return self.abort(self.ranks[seat], code, i),
                Verdict::Garbage(text) => ("what is not PMI-1", text),
            },
            (Ok(lines), _) => {
                let lines = String::from_utf8_lossy(&lines).into_owned();
                match lines.lines().find(|text| !self.hear_line(i, role, text)) {
                    None => return,
                    Some(text) => ("what no keeper says", wire::shown(text.as_bytes())),
                }
            }
            (Err(End::Altered(text)), _) => {
                if let Role::Rank(seat) = role {
                    self.server.cut(seat);
                }
                ("what is not its next line, altered on its way or a stranger's,", text)
            }
        };
        let who = self.named(role);
        self.say_aloud(&format!("{who} sent {what} and is cut off: {text}"));
        if !matches!(role, Role::Rank(_) | Role::Guest) {
            self.lose(role, "was_cut_off");
        }
        self.links[i] = None;
    }

    fn named(&self, role: Role) -> String {
        match role {
            Role::Rank(seat) => format!("rank {}", self.ranks[seat]),
            Role::Branch(part) => {
                self.family.children[part].as_ref().map_or("a branch".into(), |c| format!("rank {}", c.rank))
            }
            Role::Above => format!("rank {} ({})", self.above.unwrap_or(0), self.above_at),
            Role::Guest => "a guest".into(),
        }
    }

    /// A connection has ended.
    fn gone(&mut self, i: usize) {
        let Some(link) = self.links[i].take() else { return };
        match link.role {
            Role::Guest => {}
            Role::Rank(seat) => match self.server.stage(seat) {
                Stage::Left if seat == 0 => self.left = Some(Instant::now()),
                Stage::Left | Stage::Cut => {}
                Stage::Fresh | Stage::Joined => {
                    self.server.lose(seat, "has_left_without_finalize,_or_died");
                    if seat != 0 {
                        self.say_of_death(self.ranks[seat], &link.from);
                    }
                }
            },
            Role::Branch(part) if self.gone[part] => {}
            Role::Branch(part) => {
                self.lose(link.role, "has_left_without_finalize,_or_died");
                if let Some(child) = &self.family.children[part] {
                    self.say_of_death(child.rank, &link.from);
                }
            }
            Role::Above => self.lose(link.role, "closed_the_connection"),
        }
        self.flush();
    }

    /// Somebody in the tree is gone, and all that is behind him.
    fn lose(&mut self, role: Role, why: &str) {
        let why = format!("{} {why}", self.named(role)).replace(' ', "_");
        match role {
            Role::Branch(part) => {
                if let Some(child) = &self.family.children[part] {
                    self.server.lose_branch(child.branch, &why);
                }
            }
            _ => self.server.fail(&why),
        }
    }

    /// The root says it for all.
    fn say_of_death(&self, rank: u32, from: &str) {
        if self.above.is_none() {
            self.say_aloud(&format!("rank {rank} ({from}) has left without finalize, or died"));
        }
    }

    /// A name may stand for another address here than elsewhere: many systems give the host's own name a loopback
    /// address.
    fn say_where(&self) {
        let (root, at) = (self.place.root(), self.door.at());
        let named = match &self.place.root {
            Where::Named(host, _) => host.parse::<std::net::IpAddr>().is_err() && host != "localhost",
            Where::At(_) => false,
        };
        if named && self.door.is_local() {
            self.say_aloud(&format!(
                "listens at {at}, which {root} (FMPL_ROOT) stands for here: no other machine can reach it"
            ));
        } else if self.place.log >= Level::Info {
            let what = if named { "FMPL_ROOT=" } else { "" };
            self.say_aloud(&format!("listens at {at} ({what}{root})"));
        }
    }

    fn say_aloud(&self, text: &str) {
        if self.place.log >= Level::Warn {
            say(&format!("rank {}: {text}", self.ranks[0]));
        }
    }
}

/// What is said of those who are turned away, once for each reason.
struct Complaints<'a> {
    seen: &'a mut BTreeSet<&'static str>,
    place: &'a Place,
}

impl Complaints<'_> {
    fn turned_away(&mut self, from: &str, why: &'static str, sent: &[u8]) {
        if self.seen.insert(why) && self.place.log >= Level::Warn {
            let shown = if sent.is_empty() { String::new() } else { format!(" ({})", wire::shown(sent)) };
            let (to, why) = (self.place.root(), why.replace('_', " "));
            let text =
                format!("turned away a connection from {from} to {to}: {why}{shown} (said once for each reason)");
            say(&format!("rank {}: {text}", self.place.rank));
        }
    }
}
