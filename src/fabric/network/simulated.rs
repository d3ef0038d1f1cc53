//! A network in memory, for tests: it delays, reorders what may be reordered, loses and doubles datagrams, breaks connections, and tears
//! what it writes into pieces, as a seed says. Its ranks are objects of one process, whose memory it reads and writes.
//!
//! What it keeps is what [`device`](super::device) promises, and no more: a request is carried out in pieces, word by word in any order; a
//! write may overtake the reads before it; that a request is over is told later than it is; what is sent to who has died is never answered.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::device::{
    Access, Address, Arrived, Atomics, Change, Completion, DATAGRAM, Data, Device, DeviceError, End, Limits, OPAQUE,
    Pair, Piece, Place, Registrar, Registration, Request, Status, What,
};
use super::multicast::{Counts, Group, Name};
use super::region::Domain;
use super::ways::Way;
use crate::base::error::{Code, Error, Result};
use crate::base::simulation::{self, Events, Lot};

/// How the network is. Odds: once in so many times, 0 for never.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// A datagram is lost.
    pub loses: u64,
    /// It comes twice.
    pub doubles: u64,
    /// A request breaks its connection.
    pub breaks: u64,
    /// A write is carried out in pieces.
    pub tears: u64,
    /// A write overtakes the reads before it.
    pub overtakes: u64,
    /// Places for numbers that nobody has looked at.
    pub numbers: usize,
    /// Requests that a pair has room for; more have to wait.
    pub room: usize,
    /// A write's memory may change before it has completed, and its device tells so.
    pub reads_early: bool,
    /// Messages go by annexes.
    pub has_annexes: bool,
    /// Pairs are of two ways.
    pub ways: bool,
    /// What devices can.
    pub atomics: Atomics,
}

impl Weather {
    /// Some of everything that happens to networks that work.
    pub fn of(lot: &mut Lot) -> Weather {
        Weather {
            loses: lot.one_of(&[0, 3, 10, 50]),
            doubles: lot.one_of(&[0, 3, 10]),
            breaks: 0,
            tears: lot.one_of(&[0, 1, 2, 8]),
            overtakes: lot.one_of(&[0, 1, 4]),
            numbers: lot.one_of(&[1, 2, 8, 64]),
            room: lot.one_of(&[1, 4, 32, 300]),
            reads_early: lot.once_in(3),
            has_annexes: lot.once_in(2),
            ways: false,
            atomics: Atomics::Device,
        }
    }
}

/// A device has given up on a silent peer after so long.
const SILENCE_NS: u64 = 4_000_000_000;

struct Memory {
    rank: u32,
    at: u64,
    len: u64,
    access: Access,
}

#[derive(Default)]
struct Port {
    came: VecDeque<Came>,
    numbers: usize,
    errors: VecDeque<DeviceError>,
    armed: bool,
    /// Something came while it was armed; somebody has woken it.
    event: bool,
    woken: bool,
    gone: bool,
}

enum Came {
    Datagram(Box<[u8; DATAGRAM]>),
    Number(u32, u32),
}

struct Posted {
    id: u64,
    what: What,
    record: Vec<u8>,
    pieces: Vec<Piece>,
    to: Place,
    signaled: bool,
    /// Runs of bytes that are still to be carried out: from, bytes.
    left: Option<Vec<(usize, usize)>>,
    over: bool,
}

impl Posted {
    fn len(&self) -> usize {
        if self.pieces.is_empty() { self.record.len() } else { self.pieces.iter().map(|p| p.len as usize).sum() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    New,
    Up,
    /// In the error state: all is flushed.
    Broken,
}

struct Line {
    way: Way,
    rank: u32,
    peer: u32,
    state: State,
    queue: VecDeque<Posted>,
    completions: VecDeque<Completion>,
    /// Nobody has answered since then.
    silent_ns: u64,
    /// Nobody tells that requests are over until then.
    late_ns: u64,
}

struct Inside {
    weather: Weather,
    keys: HashMap<u32, Memory>,
    last_key: u32,
    ports: Vec<Port>,
    lines: std::collections::BTreeMap<u32, Line>,
    last_line: u32,
    flying: Vec<(usize, Box<[u8; DATAGRAM]>)>,
}

/// The network of a world.
pub struct Ether(Mutex<Inside>);

impl Ether {
    /// For so many ranks, each on a node of its own.
    pub fn new(ranks: usize, weather: Weather) -> Arc<Ether> {
        let ports = (0..ranks).map(|_| Port::default()).collect();
        Arc::new(Ether(Mutex::new(Inside {
            weather,
            keys: HashMap::new(),
            last_key: 100,
            ports,
            lines: Default::default(),
            last_line: 10,
            flying: Vec::new(),
        })))
    }
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The device of a rank.
    pub fn device(self: &Arc<Self>, rank: u32) -> Arc<dyn Device> {
        let atomics = self.lock().weather.atomics;
        let domain = Domain::new(Arc::new(Simulated { ether: self.clone(), rank, domain: None }), atomics);
        Arc::new(Simulated { ether: self.clone(), rank, domain: Some(domain) })
    }
    /// A rank is gone with all that it had: nothing of it answers any more, and nothing there is touched.
    pub fn bury(&self, rank: u32) {
        let mut s = self.lock();
        s.ports[rank as usize].gone = true;
        s.keys.retain(|_, m| m.rank != rank);
        s.lines.retain(|_, line| line.rank != rank);
    }
    /// No device counts the next so many nanoseconds as silence.
    pub fn stands(&self, for_ns: u64) {
        self.lock().lines.values_mut().filter(|line| line.silent_ns != 0).for_each(|line| line.silent_ns += for_ns);
    }
    /// A connection of a rank breaks where a device cannot go on: one of those that are up, if any is.
    pub fn break_one(&self, rank: u32, lot: &mut Lot) -> bool {
        let mut s = self.lock();
        let up: Vec<u32> =
            s.lines.iter().filter(|(_, l)| l.rank == rank && l.state == State::Up).map(|(n, _)| *n).collect();
        if up.is_empty() {
            return false;
        }
        let number = lot.one_of(&up);
        s.fault(number, None);
        true
    }
}

impl Inside {
    /// Something for a rank has come.
    fn ring(&mut self, rank: usize) {
        let port = &mut self.ports[rank];
        if std::mem::take(&mut port.armed) {
            port.event = true;
        }
        if port.event || port.woken {
            simulation::wake(key_of(rank));
        }
    }

    fn tell(&mut self, rank: u32, error: DeviceError) {
        let port = &mut self.ports[rank as usize];
        port.errors.push_back(error);
        port.event = true;
        simulation::wake(key_of(rank as usize));
    }

    /// A pair goes into the error state by itself; with the request by which it does.
    fn fault(&mut self, number: u32, with: Option<(u64, Status)>) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        if line.state == State::Broken {
            return;
        }
        line.state = State::Broken;
        if let Some((id, status)) = with {
            line.queue.retain(|p| p.id > id);
            line.completions.push_back(Completion { id, status, code: status as i32 });
        } else {
            let rank = line.rank;
            self.tell(rank, DeviceError::Pair(number));
        }
    }

    /// May these bytes be reached by this key?
    fn allows(&self, rank: u32, to: Place, len: usize, access: Access) -> bool {
        self.keys.get(&to.rkey).is_some_and(|m| {
            m.rank == rank && m.access.contains(access) && to.addr >= m.at && to.addr + len as u64 <= m.at + m.len
        })
    }

    /// Can this pair do something now?
    fn can_go_on(&self, number: u32, now: u64) -> bool {
        let line = &self.lines[&number];
        if line.queue.is_empty() || line.state == State::New {
            return false;
        }
        if line.state == State::Broken || line.silent_ns != 0 && now >= line.silent_ns {
            return true;
        }
        if line.queue.front().is_some_and(|p| p.over) && now >= line.late_ns {
            return true;
        }
        let next = line.queue.iter().find(|p| !p.over);
        let Some(next) = next else { return false };
        match self.other(number) {
            Some(rank) => {
                let full = self.ports[rank as usize].numbers >= self.weather.numbers;
                !(full && matches!(next.what, What::WriteWithNumber(_)))
            }
            // It is found out once that nobody answers.
            None => line.silent_ns == 0,
        }
    }

    /// The rank at the other end, if that answers.
    fn other(&self, number: u32) -> Option<u32> {
        let peer = self.lines[&number].peer;
        self.lines.get(&peer).filter(|l| l.peer == number && l.state == State::Up).map(|l| l.rank)
    }

    fn go_on(&mut self, number: u32, now: u64, lot: &mut Lot) {
        let weather = self.weather;
        let other = self.other(number);
        let Some(line) = self.lines.get_mut(&number) else { return };
        if line.state == State::Broken {
            if let Some(p) = line.queue.pop_front() {
                line.completions.push_back(Completion { id: p.id, status: Status::Flushed, code: 0 });
            }
            return;
        }
        // What is over is told, in order.
        if line.queue.front().is_some_and(|p| p.over) && now >= line.late_ns && lot.below(3) != 0 {
            if let Some(p) = line.queue.pop_front()
                && p.signaled
            {
                line.completions.push_back(Completion { id: p.id, status: Status::Done, code: 0 });
            }
            return;
        }
        let Some(first) = line.queue.iter().position(|p| !p.over) else { return };
        let Some(other) = other else {
            if line.silent_ns == 0 {
                line.silent_ns = now + SILENCE_NS;
            } else if now >= line.silent_ns {
                let id = line.queue[first].id;
                self.fault(number, Some((id, Status::Silent)));
            }
            return;
        };
        line.silent_ns = 0;
        // A write may overtake the reads before it, once none of these is half done.
        let mut n = first;
        if line.queue[first].left.is_none() && lot.once_in(weather.overtakes) {
            let later =
                line.queue.iter().enumerate().skip(first).filter(|(_, p)| !p.over).find(|(_, p)| p.what != What::Read);
            if let Some((k, p)) = later
                && matches!(p.what, What::Write | What::WriteWithNumber(_))
            {
                n = k;
            }
        }
        let p = &line.queue[n];
        let len = p.len();
        let (id, what, to, fresh) = (p.id, p.what, p.to, p.left.is_none());
        if fresh {
            if lot.once_in(weather.breaks) {
                let status = lot.one_of(&[Status::Other, Status::Silent]);
                return self.fault(number, Some((id, status)));
            }
            let access = match what {
                What::Read => Access::REMOTE_READ,
                What::Change(_) => Access::REMOTE_ATOMIC,
                _ => Access::REMOTE_WRITE,
            };
            if len != 0 && !self.allows(other, to, len, access) {
                let peer = self.lines[&number].peer;
                if let Some(line) = self.lines.get_mut(&peer) {
                    line.state = State::Broken;
                }
                self.tell(other, DeviceError::Refused(peer));
                return self.fault(number, Some((id, Status::Refused)));
            }
        }
        if matches!(what, What::WriteWithNumber(_)) && self.ports[other as usize].numbers >= weather.numbers {
            return;
        }
        let line = self.lines.get_mut(&number).expect("seen above");
        let p = &mut line.queue[n];
        let runs = p.left.get_or_insert_with(|| runs_of(len, what, weather.tears, lot));
        let mut steps = 1 + lot.below(3);
        while steps > 0
            && let Some((from, bytes)) = runs.pop()
        {
            steps -= 1;
            // SAFETY: this side's memory is registered, or the request's own, until it is over; the other's was looked up above, or at the
            // request's beginning, and who takes it away has its pairs down first.
            unsafe { carry_out(&p.record, &p.pieces, what, to, from, bytes) };
        }
        if !runs.is_empty() {
            return;
        }
        p.over = true;
        if lot.once_in(8) {
            line.late_ns = now + lot.below(2_000_000);
        }
        if let What::WriteWithNumber(imm) = what {
            let peer = line.peer;
            let port = &mut self.ports[other as usize];
            port.came.push_back(Came::Number(peer, imm));
            port.numbers += 1;
            self.ring(other as usize);
        }
    }
}

/// The order in which the bytes of a request are carried out, the last first.
fn runs_of(len: usize, what: What, tears: u64, lot: &mut Lot) -> Vec<(usize, usize)> {
    if len == 0 {
        return Vec::new();
    }
    if matches!(what, What::Change(_)) || len <= 8 || !lot.once_in(tears) {
        return vec![(0, len)];
    }
    let grain = if len <= 256 { 8 } else { (len / 4).next_multiple_of(64) };
    let mut runs: Vec<_> = (0..len).step_by(grain).map(|at| (at, grain.min(len - at))).collect();
    for k in (1..runs.len()).rev() {
        runs.swap(k, lot.below(k as u64 + 1) as usize);
    }
    runs
}

/// Carries out some bytes of a request.
///
/// # Safety
/// Both sides' memory is there.
unsafe fn carry_out(record: &[u8], pieces: &[Piece], what: What, to: Place, from: usize, bytes: usize) {
    let remote = to.addr as *mut u8;
    if let What::Change(change) = what {
        // SAFETY: as the caller promises; a word that only devices change, with one change at a time.
        unsafe {
            let word = remote.cast::<u64>();
            let old = word.read_volatile();
            match change {
                Change::Add(n) => word.write_volatile(old.wrapping_add(n)),
                Change::Swap(expected, new) if old == expected => word.write_volatile(new),
                Change::Swap(..) => {}
            }
            (pieces[0].addr as *mut u64).write_volatile(old);
        }
        return;
    }
    if pieces.is_empty() {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy(record.as_ptr().add(from), remote.add(from), bytes) };
        return;
    }
    let mut begin = 0;
    for piece in pieces {
        let (start, end) = (from.max(begin), (from + bytes).min(begin + piece.len as usize));
        if start < end {
            let (local, remote) = ((piece.addr as usize + start - begin) as *mut u8, remote.wrapping_add(start));
            // SAFETY: as the caller promises. A rank may write to itself.
            unsafe {
                match what {
                    What::Read => std::ptr::copy(remote, local, end - start),
                    _ => std::ptr::copy(local, remote, end - start),
                }
            }
        }
        begin += piece.len as usize;
    }
}

impl Events for Ether {
    fn can_happen(&self, now: u64) -> bool {
        let s = self.lock();
        !s.flying.is_empty() || s.lines.keys().any(|n| s.can_go_on(*n, now))
    }
    fn due_ns(&self) -> u64 {
        let s = self.lock();
        let due = |l: &Line| {
            let silent = if l.silent_ns != 0 { l.silent_ns } else { u64::MAX };
            let late = if l.queue.front().is_some_and(|p| p.over) { l.late_ns } else { u64::MAX };
            silent.min(late)
        };
        s.lines.values().filter(|l| !l.queue.is_empty()).map(due).min().unwrap_or(u64::MAX)
    }
    fn happen(&self, now: u64, lot: &mut Lot) {
        let mut s = self.lock();
        let lines: Vec<u32> = s.lines.keys().copied().filter(|n| s.can_go_on(*n, now)).collect();
        let n = lot.below((lines.len() + s.flying.len()) as u64) as usize;
        if let Some(number) = lines.get(n) {
            return s.go_on(*number, now, lot);
        }
        let k = n - lines.len();
        if lot.once_in(s.weather.doubles) {
            let again = (s.flying[k].0, s.flying[k].1.clone());
            s.flying.push(again);
        }
        let (to, datagram) = s.flying.swap_remove(k);
        if lot.once_in(s.weather.loses) || s.ports[to].gone || s.ports[to].came.len() > 200 {
            return;
        }
        s.ports[to].came.push_back(Came::Datagram(datagram));
        s.ring(to);
    }
}

fn key_of(rank: usize) -> usize {
    // No address.
    1 + rank
}

/// A rank's device, and where its memory is registered.
struct Simulated {
    ether: Arc<Ether>,
    rank: u32,
    domain: Option<Arc<Domain>>,
}

struct Key {
    ether: Arc<Ether>,
    key: u32,
}

impl Registration for Key {
    fn lkey(&self) -> u32 {
        self.key
    }
    fn rkey(&self) -> u32 {
        self.key
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.ether.lock().keys.remove(&self.key);
    }
}

impl Registrar for Simulated {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>> {
        let mut s = self.ether.lock();
        s.last_key += 1;
        let key = s.last_key;
        s.keys.insert(key, Memory { rank: self.rank, at: at as u64, len: len as u64, access });
        Ok(Box::new(Key { ether: self.ether.clone(), key }))
    }
    fn name(&self) -> String {
        "the simulated device".into()
    }
}

impl Device for Simulated {
    fn describe(&self) -> String {
        format!("simulated:{}", self.rank)
    }
    fn network(&self) -> String {
        "simulated".into()
    }
    fn limits(&self) -> Limits {
        let Weather { atomics, reads_early, has_annexes, .. } = self.ether.lock().weather;
        Limits {
            longest: 32 << 10,
            write_most: 16 << 10,
            copy_most: 64 << 10,
            pieces: 16,
            atomics,
            silence_ns: SILENCE_NS + 1_000_000_000,
            holds_pages: true,
            reads_early,
            is_driven: false,
            has_annexes,
            appends: false,
        }
    }
    fn domain(&self) -> &Arc<Domain> {
        self.domain.as_ref().expect("of a device")
    }
    fn address(&self) -> Address {
        let mut address = Address::default();
        address.0[..4].copy_from_slice(&(self.rank + 1).to_le_bytes());
        address
    }
    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        simulation::step();
        let to = u32::from_le_bytes([to.0[0], to.0[1], to.0[2], to.0[3]]) - 1;
        let mut s = self.ether.lock();
        if s.flying.len() < 1000 {
            s.flying.push((to as usize, Box::new(*datagram)));
        }
        Ok(true)
    }
    fn has_ways(&self) -> bool {
        self.ether.lock().weather.ways
    }
    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>> {
        self.pair_by(Way::Connected, depth)
    }
    fn pair_by(&self, way: Way, _depth: u32) -> Result<Arc<dyn Pair>> {
        let mut s = self.ether.lock();
        s.last_line += 1;
        let number = s.last_line;
        let line = Line {
            way,
            rank: self.rank,
            peer: 0,
            state: State::New,
            queue: VecDeque::new(),
            completions: VecDeque::new(),
            silent_ns: 0,
            late_ns: 0,
        };
        s.lines.insert(number, line);
        Ok(Arc::new(Wire { ether: self.ether.clone(), number }))
    }
    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        loop {
            let came = {
                let mut s = self.ether.lock();
                let port = &mut s.ports[self.rank as usize];
                let came = port.came.pop_front();
                port.numbers -= matches!(came, Some(Came::Number(..))) as usize;
                came
            };
            match came {
                Some(Came::Datagram(datagram)) => with(Arrived::Datagram(&datagram)),
                Some(Came::Number(pair, number)) => with(Arrived::Number(pair, number)),
                None => return Ok(()),
            }
        }
    }
    fn arm(&self) -> Result<()> {
        self.ether.lock().ports[self.rank as usize].armed = true;
        Ok(())
    }
    fn sleep(&self, at_most: Option<Duration>) -> bool {
        let ready = |s: &Inside| s.ports[self.rank as usize].event || s.ports[self.rank as usize].woken;
        if !ready(&self.ether.lock()) {
            simulation::block(key_of(self.rank as usize), at_most.map_or(u64::MAX, |t| t.as_nanos() as u64));
        }
        let mut s = self.ether.lock();
        let port = &mut s.ports[self.rank as usize];
        (port.event, port.woken) = (false, false);
        !port.errors.is_empty()
    }
    fn wake(&self) {
        self.ether.lock().ports[self.rank as usize].woken = true;
        simulation::wake(key_of(self.rank as usize));
    }
    fn next_error(&self) -> Option<DeviceError> {
        self.ether.lock().ports[self.rank as usize].errors.pop_front()
    }
    fn join(&self, _name: Name, _counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        Err(Error::new(Code::Unsupported, "the simulated network has no groups"))
    }
    fn bytes(&self) -> usize {
        0
    }
}

/// One end of a connection.
struct Wire {
    ether: Arc<Ether>,
    number: u32,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.ether.lock().lines.remove(&self.number);
    }
}

impl Wire {
    fn with<R>(&self, f: impl FnOnce(&mut Line) -> R) -> Option<R> {
        self.ether.lock().lines.get_mut(&self.number).map(f)
    }
}

impl Pair for Wire {
    fn number(&self) -> u32 {
        self.number
    }
    fn end(&self) -> End {
        let mut end = [0; OPAQUE];
        end[..4].copy_from_slice(&self.number.to_le_bytes());
        End(end)
    }
    fn connect(&self, to: &End) -> Result<()> {
        let peer = u32::from_le_bytes([to.0[0], to.0[1], to.0[2], to.0[3]]);
        let ways = [self.number, peer].map(|n| self.ether.lock().lines.get(&n).map(|line| line.way));
        assert!(ways[1].is_none() || ways[0] == ways[1], "both ends are of one way");
        self.with(|line| {
            line.peer = peer;
            line.state = if line.state == State::New { State::Up } else { line.state };
        });
        Ok(())
    }
    unsafe fn post(&self, request: &Request<'_>) -> Result<bool> {
        simulation::step();
        let (record, pieces) = match request.data {
            Data::Record(record) => (record.to_vec(), Vec::new()),
            Data::Pieces(pieces) => (Vec::new(), pieces.to_vec()),
        };
        let Request { id, what, to, signaled, .. } = *request;
        let room = self.ether.lock().weather.room;
        let posted = self.with(|line| {
            assert!(line.queue.len() < 300, "more requests than the pair was made for");
            let has_room = line.queue.len() < room || line.state == State::Broken;
            if has_room {
                line.queue.push_back(Posted { id, what, record, pieces, to, signaled, left: None, over: false });
            }
            has_room
        });
        Ok(posted.unwrap_or(true))
    }
    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        while let Some(Some(completion)) = self.with(|line| line.completions.pop_front()) {
            done(completion);
        }
        Ok(())
    }
    fn has_read(&self, id: u64) -> bool {
        let early = self.ether.lock().weather.reads_early;
        early && self.with(|line| line.queue.iter().all(|p| p.over || p.id > id)).unwrap_or(true)
    }
    fn break_off(&self) -> Result<()> {
        self.with(|line| line.state = State::Broken);
        Ok(())
    }
    fn explain(&self, code: i32) -> String {
        format!("simulated status {code}")
    }
    fn bytes(&self) -> usize {
        0
    }
    fn shorten_queue(&self, _entries: u32) -> Result<()> {
        Ok(())
    }
}

pub mod batches;
pub mod fate;
mod scenes;

pub use scenes::idle_hooks;
