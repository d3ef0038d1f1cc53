//! How a process comes to be a rank of its node's keeper, or the keeper; and those who knock at a keeper's door.

use super::ask::{self, Asker, Known};
use super::family::{Child, Family, Range};
use super::link::{Link, Role};
use super::{Complaints, GUESTS, GUESTS_MOST, Keeper, MARGIN, join};
use crate::base::error::{Code, Result, error};
use crate::base::key::Key;
use crate::base::{system, thread};
use crate::launch::door::{self, Door, Word};
use crate::launch::environment::{Place, Secret};
use crate::launch::join::{Helper, Joined, Met, Part, Trouble, VERSION, is_nonce};
use crate::launch::place::Node;
use crate::launch::seal::Keys;
use crate::launch::server::Server;
use crate::launch::wire::{self, Line};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// What a keeper begins with, beside its place.
struct Begin {
    secret: Key,
    /// The same, as those can read it who do not know it yet.
    sealed: Option<String>,
    listeners: Vec<TcpListener>,
    local: Option<UnixListener>,
    above: Option<(TcpStream, Met)>,
}

/// How a rank is to come into the job.
enum Way {
    Keeper(Option<UnixListener>),
    Rank(UnixStream, Box<Met>),
}

impl Place {
    /// Joins the job: as the root, as the keeper of this node, or by its keeper.
    pub(in crate::launch) fn meet(mut self, node: &Node) -> Result<Joined> {
        let name = self.name_here(node);
        if self.is_root() {
            let (secret, sealed) = match &self.secret {
                Secret::Known(secret) => (secret.clone(), None),
                Secret::Sealed(seal) => seal.draw().map(|(secret, text)| (secret, Some(text)))?,
            };
            let listeners = door::of_root(&mut self)?;
            let local = listen_here(&name).ok();
            return self.keep(Begin { secret, sealed, listeners, local, above: None });
        }
        match self.patiently(|left| self.look_here(&name, left))? {
            Way::Rank(stream, met) => self.settle(stream, *met),
            Way::Keeper(local) => {
                let (stream, met, door) = self.climb()?;
                let (secret, sealed) = (met.secret.clone(), met.sealed.clone());
                self.keep(Begin { secret, sealed, listeners: vec![door], local, above: Some((stream, met)) })
            }
        }
    }

    /// Is there a keeper of this node? Otherwise this process is to be it; also where what listens at the name is none.
    fn look_here(&self, name: &str, left: Duration) -> std::result::Result<Way, Trouble> {
        match listen_here(name) {
            Ok(listener) => return Ok(Way::Keeper(Some(listener))),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
            Err(_) => return Ok(Way::Keeper(None)),
        }
        let again = |e: io::Error| Trouble::Again(format!("the keeper of this node: {e}"));
        let address = SocketAddr::from_abstract_name(name).map_err(again)?;
        let mut stream = UnixStream::connect_addr(&address).map_err(again)?;
        stream.set_read_timeout(Some(left)).map_err(again)?;
        match self.introduce(&mut stream, Part::Rank, "") {
            Ok(met) => Ok(Way::Rank(stream, Box::new(met))),
            Err(Trouble::Final(_)) => Ok(Way::Keeper(None)),
            Err(other) => Err(other),
        }
    }

    /// The name at which the keeper of this node listens: of the job, the node, and the root as this process knows it.
    fn name_here(&self, node: &Node) -> String {
        let key = match &self.secret {
            Secret::Known(secret) => secret.clone(),
            Secret::Sealed(seal) => Key::of(format!("{} {}", seal.step(), system::user()).as_bytes()),
        };
        let key = key.derive("keeper of a node", &[&node.digest(), self.root().as_bytes()]);
        format!("fmpl-keeper-{}", wire::hex(&key.check(&[])))
    }

    /// Starts the thread that serves. The socket is this rank's own connection to it.
    fn keep(self, begin: Begin) -> Result<Joined> {
        let (rank, secret) = (self.rank, begin.secret.clone());
        let failed = |e: io::Error| error!(Code::System, "rank {rank}: serving the start of the job: {e}");
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(self.patience + MARGIN)).map_err(failed)?;
        theirs.set_nonblocking(true).map_err(failed)?;
        let mut keeper = Keeper::new(self, begin).map_err(failed)?;
        keeper.take_rank(rank);
        keeper.links.push(Some(Link::own(Box::new(theirs))));
        if keeper.above.is_none() {
            keeper.say_where();
        }
        let thread = thread::spawn("fmpl-keeper", join::STACK, move || keeper.run()).map_err(failed)?;
        Ok(Joined { socket: ours.into(), helper: Helper::of_keeper(thread), keys: None, secret, keeper: None })
    }
}

impl Keeper {
    fn new(place: Place, begin: Begin) -> io::Result<Keeper> {
        let (known, now) = (Known::default(), Instant::now());
        let asker = Asker::start(ask::place(&place, &begin.secret), known.clone())?;
        let mut keeper = Keeper {
            server: Server::growing(place.size as usize, begin.above.is_some()),
            door: Door::open(begin.listeners, begin.local, begin.sealed),
            family: Family::new(Range(0, place.size)),
            above: begin.above.as_ref().map(|(_, met)| met.rank),
            above_at: String::new(),
            secret: begin.secret,
            until: begin.above.is_none().then(|| now + place.patience),
            place,
            ranks: Vec::new(),
            links: Vec::new(),
            known,
            asker,
            all_here: false,
            early: Vec::new(),
            complaints: Default::default(),
            began: now,
            told: now - super::NEWS,
            inquest: None,
            left: None,
            gone: Default::default(),
            said_left: false,
            over: false,
        };
        if let Some((stream, met)) = begin.above {
            stream.set_read_timeout(None)?;
            stream.set_nonblocking(true)?;
            let Keys { rank, root } = met.keys;
            keeper.family = Family::new(met.range);
            keeper.above_at = stream.peer_addr()?.to_string();
            let link = Link::new(Box::new(stream), keeper.above_at.clone(), Role::Above, [rank, root]);
            keeper.links.push(Some(link));
        }
        Ok(keeper)
    }

    fn take_rank(&mut self, rank: u32) -> usize {
        self.ranks.push(rank);
        self.family.comes(rank);
        self.server.take_in(rank)
    }

    pub(super) fn answer_door(&mut self, listener: usize) {
        let Range(from, to) = self.family.range;
        let has_children = self.family.children.iter().any(Option::is_some);
        let also =
            if has_children { format!(" from={from} to={to} below={}", self.family.below()) } else { String::new() };
        let mut complaints = Complaints { seen: &mut self.complaints, place: &self.place };
        self.door.answer(listener, &also, |why, from| complaints.turned_away(from, why, &[]));
    }

    pub(super) fn hear_stranger(&mut self, i: usize) {
        match self.door.hear(i) {
            Word::None => {}
            // Most of these have read in the greeting where to go.
            Word::Bad("hung_up_without_a_word") if self.family.children.iter().any(Option::is_some) => {
                self.door.turn_away(i, "");
            }
            Word::Bad(why) => self.turn_away(i, why),
            Word::Line(line) => match self.judge(&self.door.stranger(i).nonce, &line) {
                Ok(Judged::Welcome(proved)) => self.let_in(i, *proved),
                Ok(Judged::Moved(at)) => drop(self.door.part_with(i, &format!("cmd=fmpl-moved at={at}\n"))),
                Err(why) => self.turn_away(i, why),
            },
        }
    }

    fn turn_away(&mut self, i: usize, why: &'static str) {
        let (from, sent) = self.door.turn_away(i, why);
        Complaints { seen: &mut self.complaints, place: &self.place }.turned_away(&from, why, &sent);
    }

    /// Whether the line proves that its sender, who was asked with this number, belongs to the job.
    fn judge(&self, asked: &str, line: &[u8]) -> std::result::Result<Judged, &'static str> {
        let line = Line::parse(line).filter(|l| l.cmd() == "fmpl-start").ok_or("sent_garbage")?;
        if line.get("version") != Some(VERSION) {
            return Err("it_is_of_another_version_of_FMPL");
        }
        let part = Part::ALL.into_iter().find(|part| line.get("as") == Some(part.word())).ok_or("sent_garbage")?;
        let said = || {
            let [nonce, at, proof] = ["nonce", "at", "proof"].map(|key| line.get(key));
            Some((line.number("rank")?, line.number("size")?, nonce?, at?, proof?))
        };
        let (rank, size, nonce, at, proof): (u32, u32, _, _, _) =
            said().filter(|s| is_nonce(s.2)).ok_or("sent_garbage")?;
        let nonces = [asked, nonce];
        if !join::proves(&self.secret, proof, part.word(), nonces, [rank, size], at) {
            return Err("it_does_not_know_the_secret_of_this_job");
        }
        if size != self.place.size || rank >= size {
            return Err("it_is_of_a_job_of_another_size_(FMPL_SIZE)");
        }
        let mut range = Range(0, 0);
        if part != Part::Guest {
            if self.ranks.contains(&rank) || self.all_here {
                return Err("another_process_has_the_same_rank");
            }
            if self.server.has_failed() {
                return Err("the_job_has_failed_to_start");
            }
        }
        if part == Part::Branch {
            let k = self.family.range.part_of(rank).ok_or("another_keeper_is_responsible_for_it")?;
            match &self.family.children[k] {
                Some(child) if child.rank == rank => return Err("another_process_has_the_same_rank"),
                Some(child) => return Ok(Judged::Moved(child.at.clone())),
                None => range = self.family.part(k),
            }
        }
        let own = self.ranks[0];
        let (from, to) = (range.0, range.1);
        let proof = join::proof(&self.secret, "root", nonces, [rank, size], &format!("{own} {from} {to}"));
        let keys = join::keys(&self.secret, nonces, rank, size);
        let welcome = format!("cmd=fmpl-welcome rank={own} from={from} to={to} proof={proof}\n");
        Ok(Judged::Welcome(Box::new(Proved { rank, part, at: at.to_owned(), keys, welcome })))
    }

    fn let_in(&mut self, i: usize, proved: Proved) {
        let Some((stream, from)) = self.door.let_in(i, &proved.welcome) else { return };
        let role = match proved.part {
            Part::Guest => {
                self.make_room_for_a_guest();
                Role::Guest
            }
            Part::Rank => Role::Rank(self.take_rank(proved.rank)),
            Part::Branch => {
                let Some(part) = self.family.range.part_of(proved.rank) else { return };
                let branch = self.server.branch_out();
                let came = Default::default();
                self.family.children[part] = Some(Child { rank: proved.rank, at: proved.at, branch, came });
                Role::Branch(part)
            }
        };
        let link = Link::let_in(stream, from, role, proved.keys);
        match self.links.iter_mut().find(|l| l.is_none()) {
            Some(free) => *free = Some(link),
            None => self.links.push(Some(link)),
        }
    }

    /// Of those that have had an answer, whoever has been silent for longest goes, and comes again if it has a
    /// question. Who has just come is let ask first, unless too many do at once.
    fn make_room_for_a_guest(&mut self) {
        let links = self.links.iter().enumerate().filter_map(|(i, link)| Some((i, link.as_ref()?)));
        let guests: Vec<_> = links.filter(|(_, link)| link.role == Role::Guest).collect();
        let served = guests.iter().filter(|(_, link)| link.is_served);
        let oldest = if guests.len() < GUESTS_MOST {
            served.min_by_key(|(_, link)| link.heard)
        } else {
            guests.iter().min_by_key(|(_, link)| (!link.is_served, link.heard))
        };
        if guests.len() >= GUESTS
            && let Some(i) = oldest.map(|(i, _)| *i)
        {
            self.links[i] = None;
        }
    }
}

enum Judged {
    Welcome(Box<Proved>),
    /// Another keeper is responsible, at this address.
    Moved(String),
}

/// Who has shown that it belongs to the job.
struct Proved {
    rank: u32,
    part: Part,
    at: String,
    keys: Keys,
    welcome: String,
}

fn listen_here(name: &str) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    listener.set_nonblocking(true)?;
    let _ = system::listen(&listener, 4096);
    Ok(listener)
}
