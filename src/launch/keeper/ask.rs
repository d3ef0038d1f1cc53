//! A keeper's thread that asks others for the values that its ranks want, and puts theirs there.
//!
//! Connections are made when they are needed, few are kept, and none for long when nothing is asked. So are values that
//! were found, which never change. A keeper's own thread never waits for another keeper, so whoever asks is answered at
//! once, and no two wait for each other.
//!
//! Each value is put twice: with the keeper of its key and with the next one, which is asked where the first does not
//! answer any more.

use super::ring::Ring;
use super::shelf::Shelf;
use crate::base::error::say;
use crate::base::key::Key;
use crate::base::lock::lock;
use crate::base::log::Level;
use crate::base::mailbox::{Closed, Mailbox};
use crate::base::{system, thread};
use crate::launch::costs::{self, Connection};
use crate::launch::environment::{Place, Root, Secret};
use crate::launch::join::{STACK, Trouble};
use crate::launch::seal::Seal;
use crate::launch::wire::{self, Inbox, Line};
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections to other keepers that are kept.
const KEPT: usize = 4;
/// And for how long, when nothing is asked.
const IDLE: Duration = Duration::from_millis(500);
/// Bytes of values that were found, and addresses of keepers, that are kept.
const CACHE: usize = 32 << 10;
const ADDRESSES: usize = 512;
/// From asking somebody who cannot answer yet to asking again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(1);
const LONG_PAUSE: Duration = Duration::from_millis(100);
/// Words until somebody answers; a way has as many as the number of keepers has digits.
const HOPS: usize = 64;
/// How the root is called among the addresses of keepers: each knows where that is.
pub(super) const ROOT: &str = "root";

/// What keeper and thread share.
#[derive(Clone, Default)]
pub(super) struct Known {
    pub(super) ring: Arc<Mutex<Ring>>,
    pub(super) shelf: Arc<Mutex<Shelf>>,
}

enum Errand {
    /// A rank, by its place, wants this; the keeper of it.
    Ask(usize, u64, String),
    /// The numbers are dealt out.
    Learn,
}

/// The keeper's side.
pub(super) struct Asker {
    errands: Arc<Mailbox<Errand>>,
    answers: Arc<Mutex<Vec<(usize, String)>>>,
    /// Readable when there are answers.
    pub(super) wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Asker {
    pub(super) fn start(place: Place, known: Known) -> std::io::Result<Asker> {
        let (errands, answers) = (Arc::<Mailbox<_>>::default(), Arc::default());
        let (to_do, done) = (errands.clone(), Arc::clone(&answers));
        let wake = Arc::new(system::event()?);
        let (asks, wakes) = (Asks { known, ..Asks::new(place) }, wake.clone());
        let thread = thread::spawn("fmpl-asker", STACK, move || asks.run(&to_do, &done, &wakes))?;
        Ok(Asker { errands, answers, wake, thread: Some(thread) })
    }

    pub(super) fn ask(&self, seat: usize, keeper: u64, line: String) {
        self.errands.put(Errand::Ask(seat, keeper, line));
    }

    pub(super) fn learn(&self) {
        self.errands.put(Errand::Learn);
    }

    /// The answers that have come.
    pub(super) fn answers(&self) -> Vec<(usize, String)> {
        let _ = system::hear(&*self.wake);
        std::mem::take(&mut lock(&self.answers))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.errands.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Values that were found, by key.
#[derive(Default)]
struct Cache {
    values: HashMap<String, String>,
    bytes: usize,
}

impl Cache {
    fn keep(&mut self, key: &str, answer: &str) {
        let bytes = key.len() + answer.len();
        if self.bytes + bytes > CACHE {
            (self.values, self.bytes) = Default::default();
        }
        if bytes <= CACHE && self.values.insert(key.to_owned(), answer.to_owned()).is_none() {
            self.bytes += bytes;
        }
    }
}

/// A connection to another keeper.
struct Visit {
    at: String,
    stream: TcpStream,
    seals: [Seal; 2],
    inbox: Inbox,
    _counted: Connection,
}

/// The thread's side.
pub(super) struct Asks {
    place: Place,
    known: Known,
    cache: Cache,
    /// Of keepers, by number.
    addresses: HashMap<u64, String>,
    /// The one that was used last at the end.
    kept: Vec<Visit>,
    /// Addresses at which nobody answers any more.
    silent: BTreeSet<String>,
    /// The number of the last thing that was put.
    mark: u64,
    /// How long to wait before it is asked again.
    pause: Duration,
}

impl Asks {
    pub(super) fn new(place: Place) -> Asks {
        let (known, cache, addresses, kept, silent, mark) = Default::default();
        Asks { place, known, cache, addresses, kept, silent, mark, pause: PAUSE }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn run(mut self, errands: &Mailbox<Errand>, done: &Mutex<Vec<(usize, String)>>, wake: &OwnedFd) {
        loop {
            let patience = if self.kept.is_empty() { Duration::MAX } else { IDLE };
            match errands.take(patience) {
                Ok(Some(Errand::Ask(seat, keeper, line))) => {
                    let answer = self.see_to(keeper, &line);
                    lock(done).push((seat, answer));
                    system::tell(wake);
                }
                Ok(Some(Errand::Learn)) => {
                    while self.learn() {}
                    lock(&self.known.ring).all_are_known();
                }
                Ok(None) => self.kept.clear(),
                Err(Closed) => return,
            }
        }
    }

    /// Asks one keeper for more of the ring. `false`: all are known, or nobody can tell.
    fn learn(&mut self) -> bool {
        let Some(step) = lock(&self.known.ring).next_step() else { return false };
        let line = format!("cmd=fmpl-steps level={} most={}", step.level, step.most);
        let answer = match self.ask_at(&step.at, &line) {
            Ok(answer) => answer,
            Err(Lost::Gone(_) | Lost::Altered(_)) => return false,
            Err(Lost::Busy(_)) => {
                self.wait();
                return true;
            }
        };
        let said: Vec<String> = Line::parse(answer.as_bytes())
            .and_then(|line| Some(line.list("at")?.map(str::to_owned).collect()))
            .unwrap_or_default();
        let learned = lock(&self.known.ring).learn(&step, &said);
        if learned {
            self.pause = PAUSE
        } else {
            self.wait()
        }
        true
    }

    fn wait(&mut self) {
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONG_PAUSE);
    }

    /// The answer to a rank's question.
    fn see_to(&mut self, keeper: u64, line: &str) -> String {
        let parsed = Line::parse(line.as_bytes());
        let Some((cmd, key)) = parsed.as_ref().and_then(|l| Some((l.cmd(), l.get("key")?))) else {
            return "cmd=put_result rc=-1 msg=no_key\n".into();
        };
        let second = lock(&self.known.ring).second(keeper);
        let failed = |why: String| {
            let result = if cmd == "get" { "get_result" } else { "put_result" };
            format!("cmd={result} rc=-2 msg={}\n", why.replace(' ', "_"))
        };
        if cmd == "get" {
            if let Some(answer) = self.cache.values.get(key) {
                return answer.clone();
            }
            let found = match (self.bring(keeper, line), second) {
                (Err(Lost::Gone(_) | Lost::Busy(_)), Some(next)) => self.bring(next, line),
                (found, _) => found,
            };
            let answer = found.unwrap_or_else(|lost| failed(lost.text()));
            if answer.starts_with("cmd=get_result rc=0 ") {
                self.cache.keep(key, &answer);
            }
            return answer;
        }
        self.mark += 1;
        let line = format!("{line} mark={}", ((self.place.rank as u64) << 20) | (self.mark % (1 << 20)));
        let first = self.bring(keeper, &line);
        if let (Ok(answer), Some(second)) = (&first, second)
            && let Some(at) = Line::parse(answer.trim_end().as_bytes()).and_then(|l| l.get("next"))
        {
            self.note_address(second, at.to_owned());
        }
        let next = second.map(|next| self.bring(next, &line));
        match (first, next) {
            (Ok(answer), _) | (Err(Lost::Gone(_) | Lost::Busy(_)), Some(Ok(answer))) => answer,
            (Err(lost), _) => failed(lost.text()),
        }
    }

    /// Brings a line to this keeper: its answer, or why there is none.
    fn bring(&mut self, keeper: u64, line: &str) -> std::result::Result<String, Lost> {
        if lock(&self.known.ring).is_mine(keeper) {
            let answer = Line::parse(line.as_bytes()).and_then(|line| lock(&self.known.shelf).answer(&line));
            return answer.ok_or_else(|| Lost::Gone("this is no question".into()));
        }
        let line = format!("{line} to={keeper}");
        self.pause = PAUSE;
        let mut next = self.addresses.get(&keeper).map(|at| (keeper, at.clone()));
        let mut why = format!("no way leads to keeper {keeper}");
        let (mut hops, until) = (0, Instant::now() + self.place.patience);
        while hops < HOPS {
            hops += 1;
            let silent = &self.silent;
            let (number, at) = match next.take().filter(|(_, at)| !silent.contains(at)) {
                Some(next) => next,
                None => {
                    let ring = lock(&self.known.ring);
                    let way = ring.towards(keeper, |at| !silent.contains(at)).map(|(n, at)| (n, at.to_owned()));
                    way.ok_or_else(|| Lost::Gone(why.clone()))?
                }
            };
            // On the way there only the goal counts, so nobody reads a value that is not his.
            let word = if number == keeper { line.clone() } else { format!("cmd=fmpl-way to={keeper}") };
            match self.ask_at(&at, &word) {
                Err(Lost::Busy(text)) => {
                    if Instant::now() > until {
                        let why = format!("the keeper of this value, number {number} at {at}, is busy: {text}");
                        return Err(Lost::Busy(why));
                    }
                    next = Some((number, at));
                    hops -= 1;
                    self.wait();
                }
                Err(Lost::Gone(text)) => {
                    why = format!("the keeper of this value, number {number} at {at}, does not answer: {text}");
                    self.silent.insert(at);
                    self.addresses.remove(&number);
                    if number == keeper {
                        return Err(Lost::Gone(why));
                    }
                }
                Err(Lost::Altered(text)) => {
                    let why = format!("the keeper of a value, number {number} at {at}, sent {text}");
                    if self.place.log >= Level::Warn {
                        say(&format!("rank {}: {why}", self.place.rank));
                    }
                    return Err(Lost::Altered(why));
                }
                Ok(answer) => match Line::parse(answer.trim_end().as_bytes()) {
                    Some(go) if go.cmd() == "fmpl-go" => {
                        let said = go.number("number").zip(go.get("at"));
                        next = said.map(|(number, at)| (number, at.to_owned()));
                    }
                    Some(later) if later.cmd() == "fmpl-later" && Instant::now() < until => {
                        next = Some((number, at));
                        hops -= 1;
                        self.wait();
                    }
                    _ => {
                        self.note_address(number, at);
                        return Ok(answer);
                    }
                },
            }
        }
        Err(Lost::Gone(why))
    }

    fn note_address(&mut self, keeper: u64, at: String) {
        if self.addresses.len() >= ADDRESSES {
            self.addresses.clear();
        }
        self.addresses.insert(keeper, at);
    }

    /// One question, one answer. A connection that was kept may have been closed by the other side meanwhile, for
    /// others.
    pub(super) fn ask_at(&mut self, at: &str, line: &str) -> std::result::Result<String, Lost> {
        if let Some(k) = self.kept.iter().position(|visit| visit.at == at) {
            let mut visit = self.kept.remove(k);
            match visit.ask(line) {
                Ok(answer) => {
                    self.kept.push(visit);
                    return Ok(answer);
                }
                Err(lost @ Lost::Altered(_)) => return Err(lost),
                Err(_) => {}
            }
        }
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        let mut visit = self.visit(at)?;
        // Whether it was heard is not known, if no answer comes; a mark tells that it is the same question.
        let answer = visit.ask(line)?;
        self.kept.push(visit);
        Ok(answer)
    }

    fn visit(&self, at: &str) -> std::result::Result<Visit, Lost> {
        let gone = |why: String| Lost::Gone(why);
        let addresses = match at {
            ROOT => self.place.addresses().map_err(|e| gone(e.to_string()))?,
            at => vec![at.parse().map_err(|_| gone(format!("{at} is no address")))?],
        };
        let mut lost = gone("no address".to_owned());
        for address in addresses {
            match self.place.visit(address) {
                Ok((stream, met)) => {
                    let seals = [Seal::new(met.keys.rank), Seal::new(met.keys.root)];
                    let (inbox, _counted) = (Inbox::default(), Connection::new());
                    return Ok(Visit { at: at.to_owned(), stream, seals, inbox, _counted });
                }
                Err(Trouble::Unreachable(text) | Trouble::Final(text)) => lost = gone(text),
                Err(Trouble::Again(text) | Trouble::Refused(text) | Trouble::Moved(text)) => lost = Lost::Busy(text),
            }
        }
        Err(lost)
    }
}

/// Why there is no answer.
pub(super) enum Lost {
    /// It has had to part with this connection, for others; it may be asked again.
    Busy(String),
    /// Nobody is there.
    Gone(String),
    /// Somebody in between has changed what was said: it is not asked again.
    Altered(String),
}

impl Lost {
    fn text(self) -> String {
        let (Lost::Busy(text) | Lost::Gone(text) | Lost::Altered(text)) = self;
        text
    }
}

impl Visit {
    fn ask(&mut self, line: &str) -> std::result::Result<String, Lost> {
        let [says, hears] = &mut self.seals;
        let broken = |e: std::io::Error| Lost::Busy(e.to_string());
        self.stream.write_all(says.put(line).as_bytes()).map_err(broken)?;
        loop {
            match self.inbox.line() {
                Ok(Some(came)) => {
                    let Some(answer) = hears.take(came) else {
                        let what = "what is not its next line, altered on its way or a stranger's, and is cut off";
                        return Err(Lost::Altered(format!("{what}: {}", wire::shown(came))));
                    };
                    return Ok(format!("{}\n", String::from_utf8_lossy(answer)));
                }
                Ok(None) => {}
                Err(wire::TooLong) => return Err(Lost::Busy("a line that does not end".into())),
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).map_err(broken)? {
                0 => return Err(Lost::Busy("it has closed the connection".into())),
                n => {
                    costs::read(n);
                    self.inbox.push(&bytes[..n]);
                }
            }
        }
    }
}

/// What another keeper, or this one's rank, may ask for: `None`: this is no question.
pub(super) fn answer(known: &Known, line: &Line) -> Option<String> {
    let ring = lock(&known.ring);
    if !ring.is_numbered() {
        return Some("cmd=fmpl-later\n".into());
    }
    if line.cmd() == "fmpl-steps" {
        let (level, most) = (line.number("level")?, line.number("most")?);
        let all = ring.level(level);
        return Some(format!("cmd=fmpl-steps at={}\n", all[..all.len().min(most)].join(",")));
    }
    let keeper = line.number("to")?;
    if ring.is_mine(keeper) {
        let answer = lock(&known.shelf).answer(line)?;
        // Whoever puts something puts it with the next one too.
        return Some(match ring.level(0).first().filter(|_| line.cmd() != "get") {
            Some(next) => format!("{} next={next}\n", answer.trim_end()),
            None => answer,
        });
    }
    if !ring.is_known() {
        return Some("cmd=fmpl-later\n".into());
    }
    let (number, at) = ring.towards(keeper, |_| true)?;
    Some(format!("cmd=fmpl-go number={number} at={at}\n"))
}

/// The thread's own place in the job.
pub(super) fn place(of: &Place, secret: &Key) -> Place {
    let root = Root::At(of.addresses().unwrap_or_default());
    let secret = Secret::Known(secret.clone());
    Place { rank: of.rank, size: of.size, root, secret, listeners: None, patience: of.patience, log: of.log }
}
