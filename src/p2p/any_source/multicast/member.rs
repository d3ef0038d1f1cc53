//! A member's part of a multicast: receives the note, tells its children, takes the data, acknowledges.

use super::chunks::Chunks;
use super::early::{self, News};
use super::note::{NEWS_WORDS, NOTE_WORDS, Note};
use super::record::{ENTERED, Record, Shared, TOLD_WORDS, Told, children, members};
use super::wide::{self, Forwarded};
use super::{index_of, tell};
use crate::base::atomics::Ordering;
use crate::base::copying::Copying;
use crate::base::error::{Code, Error, Result, error};
use crate::base::looking::between_looks;
use crate::base::run::Run;
use crate::base::unwinding::NoWayOut;
use crate::fabric::shm::cma;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::BlockRef;
use crate::lane::record::{BLOCK_HEADER, Block};
use crate::p2p::any_source::key_of;
use crate::p2p::any_source::receive::Incoming;
use crate::p2p::any_source::{Arrived, check_buffer, garbled};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::{Board, Scene, Waiter, Waits, doorbell};

/// Blocking receive of the next multicast of which this rank is a member; who is its master. A longer message is cut: see
/// [`Arrived::whole`].
pub fn mcast_recv(comm: i32, to: Run) -> Result<Arrived> {
    let ep = endpoint()?;
    check_buffer(ep, to)?;
    let (context, inc) = incoming(ep, comm)?;
    let _claim = inc.claim()?;
    if inc.pending.get().is_some() {
        return Err(inc.busy_error("a request for the next multicast is not completed"));
    }
    let news = next(ep, inc)?;
    follow_news(ep, context, inc, news, to)
}

/// What a member is told, of a block on this node, or of one that is to be forwarded to it.
fn told(ep: &'static Endpoint, context: &Context, inc: &Incoming, (arrived, news): News, to: Run) -> Result<Forwarded> {
    let wrong = || garbled(ep, context.group.world_rank(arrived.source.max(0) as u32));
    let words = (context.group.size() as usize).div_ceil(64);
    match (arrived.len / 8, arrived.len % 8) {
        (TOLD_WORDS, 0) => Ok(Forwarded::Here(Told::of([news[0], news[1]]))),
        (n, 0) if n == NOTE_WORDS || n == NOTE_WORDS + words && n <= NEWS_WORDS => {
            wide::forward(ep, context, inc, (Note::of(&news).ok_or_else(wrong)?, &news[NOTE_WORDS..n]), to)
        }
        _ => Err(wrong()),
    }
}

/// The ring by which this process is told.
pub(in crate::p2p::any_source) fn incoming(
    ep: &'static Endpoint,
    comm: i32,
) -> Result<(&'static Context, &'static Incoming)> {
    let context = ep.context(comm)?;
    let index = index_of(context);
    if let Some(inc) = ep.any_source.incoming.find(key_of(comm, -1, index)) {
        return Ok((context, inc));
    }
    let inc = ep.incoming_at(context, index)?;
    let mut all = ep.any_source.told_at();
    if !all.iter().any(|known| std::ptr::eq(*known, inc)) {
        all.push(inc);
    }
    Ok((context, inc))
}

/// Does what a member does that is told.
pub(in crate::p2p::any_source) fn follow_news(
    ep: &'static Endpoint,
    context: &Context,
    inc: &Incoming,
    news: News,
    to: Run,
) -> Result<Arrived> {
    match told(ep, context, inc, news, to)? {
        Forwarded::Here(told) => NoWayOut::during("a receive of a multicast", || follow(ep, context, inc, told, to)),
        Forwarded::Received(arrived) => Ok(arrived),
    }
}

fn next(ep: &'static Endpoint, inc: &Incoming) -> Result<News> {
    for _ in 0..crate::wait::patience() {
        if let Some(news) = early::take(ep, inc)? {
            return Ok(news);
        }
        between_looks();
    }
    NoWayOut::during("a receive of any source", || inc.until(ep, || early::take(ep, inc)))
}

/// Does a member's part of a multicast.
fn follow(ep: &'static Endpoint, context: &Context, inc: &Incoming, told: Told, to: Run) -> Result<Arrived> {
    let me = context.group.rank();
    let wrong = || garbled(ep, told.master);
    let spool = ep.any_source.spool_of(ep, told.master)?;
    // Who is said to be the master need not be: a block in another use is left alone, and one of this process must be one that it has taken.
    let own = || ep.spool.is_held(BlockRef { at: told.at, size: 1, generation: told.generation });
    let named = spool
        .block(told.at)
        .filter(|block| block.header().gener.load(Ordering::Relaxed) == told.generation)
        .filter(|_| told.master != ep.rank || own())
        .ok_or_else(wrong)?;
    let room = named.room();
    let block =
        named.bytes(0, room).filter(|_| room >= (BLOCK_HEADER + size_of::<Record>()) as u64).ok_or_else(wrong)?;
    let record = Shared::at(block, [0; 4]).record;
    let (words, count) = (record.words.load(Ordering::Relaxed) as usize, record.count.load(Ordering::Relaxed));
    let (len, address) = (record.size.load(Ordering::Relaxed), record.address.load(Ordering::Relaxed));
    let extra = record.extra.load(Ordering::Relaxed) as usize;
    let held = if address == 0 { len } else { 0 }.saturating_add(extra as u64);
    let followed = record.followed.load(Ordering::Relaxed) != 0;
    let track = if followed { Chunks::bytes(held.min(SPOOL_WINDOW as u64) as usize, count as usize) } else { 0 };
    let held = held.saturating_add(track as u64);
    let need = held.checked_add((BLOCK_HEADER + Shared::bytes(words.min(1 << 20), count as usize)) as u64);
    if words != (context.group.size() as usize).div_ceil(64)
        || count > context.group.size()
        || need.is_none_or(|n| n > room)
    {
        return Err(wrong());
    }
    if extra != 0 && extra < wide::wide_bytes(words) {
        return Err(wrong());
    }
    let shared = Shared::at(block, [words, count as usize, len as usize, extra]);
    let group = shared.members();
    let number = members(&group).position(|r| r == me).ok_or_else(wrong)? as u32;
    if number >= count {
        return Err(wrong());
    }
    // Those behind wait for this, so it comes first. A child that is gone is the master's to find out.
    let mut told_all = Ok(());
    for child in children(number, count) {
        let Some(rank) = members(&group).nth(child as usize) else { continue };
        told_all = told_all.and(tell(ep, context, rank, told, Some(inc)));
    }
    shared.note(ENTERED, me);
    crate::base::atomics::fence(Ordering::SeqCst);
    let capacity = to.len();
    let to = to.first(len as usize);
    // SYNC POINT: pairs with `withdraw`.
    let read = if record.withdrawn.load(Ordering::SeqCst) != 0 {
        Err(error!(
            Code::Peer,
            "rank {}: a multicast of rank {} was given up: another member has died or freed the communicator",
            ep.rank,
            told.master
        ))
    } else {
        fetch(ep, &shared, told, number, (address, followed), to)
    };
    let arrived = wide::arrived(context, &shared, told, len as usize, capacity);
    if shared.acknowledge(me, number) {
        complete(ep, context, &shared, told);
    }
    match (read, told_all) {
        (Err(e), _) => Err(e),
        (Ok(()), Err(e)) if e.code() != Code::Peer => Err(e),
        _ => Ok(arrived),
    }
}

fn fetch(
    ep: &'static Endpoint,
    shared: &Shared<'_>,
    told: Told,
    number: u32,
    (address, followed): (u64, bool),
    to: Run,
) -> Result<()> {
    let (master, n) = (told.master, to.len());
    if address == 0 {
        if !followed {
            shared.data().copy_to_by(to, Copying::of(n));
            return Ok(());
        }
        let whole = shared.size;
        let (chunks, mut at) = (Chunks::new(shared), 0);
        if ep.crowded {
            chunks.set_out(number, ep.config.moves);
        }
        // Who is done with the block before the master is would give it away under the master's hands.
        while at < whole {
            let there = Arriving { ep, chunks: &chunks, master, at }.wait()?;
            at = chunks.take(number, at..there, to).ok_or_else(|| garbled(ep, master))?;
        }
        return Ok(());
    }
    if master == ep.rank {
        // Where it is, this process knows by itself.
        let own = ep.any_source.lent_by(told.at, told.generation).filter(|from| from.len() >= n);
        own.ok_or_else(|| garbled(ep, master))?.copy_to_by(to, Copying::of(n));
        return Ok(());
    }
    let peer = ep.known(master).ok_or_else(|| garbled(ep, master))?;
    if shared.record.in_heap.load(Ordering::Relaxed) != 0
        && let Some(from) = peer.region.heap().and_then(|heap| heap.run(address, n))
    {
        from.copy_to_by(to, Copying::of(n));
        return Ok(());
    }
    let gone = || died(ep, master);
    if !peer.may_copy() {
        return Err(gone());
    }
    cma::read_into(peer.pid, to.into(), address).map_err(|e| match e {
        cma::CmaError::Gone => gone(),
        e => error!(
            Code::Unsupported,
            "rank {}: reading a multicast out of rank {master}: {e}; with FMPL_CMA=off it comes through its spool",
            ep.rank
        ),
    })
}

#[cold]
fn died(ep: &Endpoint, master: u32) -> Error {
    let text = format!("rank {}: rank {master}, master of a multicast, has died with its message", ep.rank);
    Error::new(Code::Peer, text)
}

/// A wait for more of a message that its master is copying into the block.
struct Arriving<'a> {
    ep: &'static Endpoint,
    chunks: &'a Chunks<'a>,
    master: u32,
    /// What this member has.
    at: usize,
}

impl Arriving<'_> {
    /// How much of the message is there: more than this member has.
    fn wait(&self) -> Result<usize> {
        let mut waiter = Waiter::new();
        while !self.ready() {
            if !waiter.spin() {
                waiter.slow(self)?;
            }
        }
        Ok(self.chunks.there())
    }
}

impl Scene for Arriving<'_> {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        self.chunks.there() > self.at
    }
    fn gone(&self) -> Option<Error> {
        let peer = self.ep.known(self.master)?;
        (peer.check_dead() && !self.ready()).then(|| died(self.ep, self.master))
    }
    fn may_end(&self) -> bool {
        false
    }
    fn waits(&self) -> Waits {
        Waits { peer: self.master, ..super::waiting::waits(self.ep) }
    }
}

/// All members have their data: the block is the master's again.
fn complete(ep: &'static Endpoint, context: &Context, shared: &Shared<'_>, told: Told) {
    if shared.extra != 0 {
        return wide::complete(ep, context, shared);
    }
    let header: &Block = shared.block.record(0).expect("a block has a header");
    // SYNC POINT: pairs with the acquire in `Spool::is_done`.
    header.done.store(told.generation, Ordering::Release);
    doorbell::light_barrier();
    // The block may be another's by now: then this wakes somebody for nothing.
    if shared.record.asleep.load(Ordering::Relaxed) == 0 {
        return;
    }
    let peer = if told.master == ep.rank { None } else { ep.known(told.master) };
    let board: &Board = peer.as_ref().map_or(ep.region.board_of(), |p| p.region.board_of());
    doorbell::ring(&board.bell, u32::MAX);
}

/// Begins to receive the next multicast.
pub fn mcast_irecv(comm: i32, to: Run) -> Result<()> {
    let ep = endpoint()?;
    check_buffer(ep, to)?;
    let (_, inc) = incoming(ep, comm)?;
    inc.begin(ep, to)
}

/// Completes the receive that [`mcast_irecv`] has begun; `None` if that would take waiting and `wait` says no.
pub fn mcast_irecv_end(comm: i32, wait: bool) -> Result<Option<Arrived>> {
    let ep = endpoint()?;
    let (context, inc) = incoming(ep, comm)?;
    let Some(_claim) = inc.claim_to_complete(wait)? else { return Ok(None) };
    let Some(to) = inc.pending.get() else {
        return Err(error!(Code::Request, "rank {}: no receive of a multicast is pending", ep.rank));
    };
    let news = if wait {
        next(ep, inc)
    } else {
        ep.waiting_sends.push(ep);
        ep.any_source.push(ep);
        match early::take(ep, inc) {
            Ok(Some(news)) => Ok(news),
            Ok(None) => {
                inc.run_dry(false);
                match inc.after_death(ep) {
                    Some(e) => Err(e),
                    None => return Ok(None),
                }
            }
            Err(e) => Err(e),
        }
    };
    let arrived = news.and_then(|news| follow_news(ep, context, inc, news, to));
    inc.end();
    arrived.map(Some)
}

/// Withdraws the receive that [`mcast_irecv`] has begun.
pub fn mcast_irecv_cancel(comm: i32) -> Result<()> {
    let ep = endpoint()?;
    let (_, inc) = incoming(ep, comm)?;
    let _claim = inc.claim_to_complete(true)?;
    if inc.pending.get().is_none() {
        return Err(error!(Code::Request, "rank {}: no receive of a multicast is pending", ep.rank));
    }
    inc.end();
    Ok(())
}
