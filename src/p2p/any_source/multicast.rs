//! Multicast to a group that is chosen for each message: a bitmap of ranks, and nobody else takes part.
//!
//! The master describes the multicast in a block of its spool and sends *one* message, to the member of the lowest rank, the root. A
//! member's number is its place among the set bits; whoever has been told tells others, by the binomial tree (*dynamic
//! multicast*, section 3: in stage i of s, number n tells n + 2^(s-i)). What travels down the tree is where the block is; the data
//! each member takes out of the master's block by itself, all at once: on a node the shared memory is crossed once.
//!
//! ```text
//!   master: block [ Record | members | entered | acked | pending of each number | data ]      told: 0 ─▶ 4, 2, 1;  4 ─▶ 6, 5; …
//!   member n: tells its children; entered |= bit; copies; acked |= bit
//!             pending[n] -= 1; the last one at n goes on to n's parent; the last at 0 marks the block done, and rings the master
//! ```
//! So acknowledgements go up the tree to the root, each by whoever comes last, and nobody waits for its children: a member that
//! returns has nothing left to do. The block that is marked done is the one word that the master looks at; a ticket names it. A member that
//! cannot take part because it died is told at the master's wait.
//!
//! The data is in the block, or, with a ticket, may stay in the master's memory if the members have that mapped or the spool is full; the
//! members read it there, if need be through the kernel. The master may be stopped then, but must leave the buffer alone until the
//! ticket is complete.
//!
//! When members are on other nodes the message goes from node to node first.
//!
//! | file | what it has |
//! |---|---|
//! | this one | the master's part |
//! | `record` | the block and the tree |
//! | `member` | the members' part |
//! | `chunks`, `spread` | how long data goes through the block; on which cores |
//! | `given_up` | blocks whose end nobody asks for |
//! | `early` | what tells of multicasts before it is asked for |
//! | `wide`, `note` | from node to node: what is shared, tells, acknowledges |
//! | `forms`, `pieces`, `gather` | the ways from node to node; a message piece by piece, and in parts |
//! | `held`, `holder` | blocks of such multicasts: of this process, of others |

mod chunks;
mod early;
mod forms;
mod gather;
mod given_up;
mod held;
mod holder;
mod member;
mod note;
mod pieces;
mod record;
mod spread;
mod waiting;
mod wide;

use chunks::{CHUNK, Chunks};
pub(in crate::p2p::any_source) use early::Early;
use given_up::{ask_for, give_up, is_asked_for, leave};
pub(in crate::p2p::any_source) use held::Held;
pub(in crate::p2p) use record::members;
use record::{ACKED, ENTERED, Record, Shared, Told};
use waiting::{Complete, ForRoom, of_the_freed};

#[cfg(loom)]
pub use record::MulticastBlock;

pub(super) use early::{News, take as take_news};
pub(super) use given_up::{is_done, sweep, take_of, under_way};
pub(super) use member::{follow_news, incoming};
pub use member::{mcast_irecv, mcast_irecv_cancel, mcast_irecv_end, mcast_recv};

use super::check_buffer;
use super::key_of;
use super::receive::Incoming;
use super::remote::place_at_all;
use super::send::Message;
use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::named::Named;
use crate::base::run::Run;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::BlockRef;
use crate::lane::map::{INDEX_MAX, SYSTEM_INDICES, UNIT_SLOTS};
use crate::lane::record::BLOCK_HEADER;
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::Waiter;

/// The index of a communicator's ring for multicasts, behind those of the program.
fn index_of(context: &Context) -> i32 {
    let most = if context.handle == crate::p2p::COMM_WORLD {
        INDEX_MAX
    } else {
        context.place.units as usize * UNIT_SLOTS - SYSTEM_INDICES
    };
    most as i32
}

/// The number by which a program knows a multicast that is under way.
fn ticket_of(block: BlockRef) -> u64 {
    (block.at >> 8) << 32 | block.generation as u64
}

fn block_of(ticket: u64) -> BlockRef {
    BlockRef { at: (ticket >> 32) << 8, size: 1, generation: ticket as u32 }
}

/// The block of a multicast is the spool's again.
fn give_back(ep: &Endpoint, block: BlockRef) {
    ep.any_source.take_back(block);
    ep.spool.give_back(block);
}

/// Words of a bitmap of ranks of a communicator: bit r % 64 of word r / 64 is rank r's.
pub fn bitmap_words(comm: i32) -> Result<usize> {
    Ok((endpoint()?.context(comm)?.group.size() as usize).div_ceil(64))
}

/// The bitmap of these ranks of a communicator of so many; `call`: for the error of one that there is not.
pub fn bitmap(call: &str, comm: i32, size: usize, members: impl IntoIterator<Item = usize>) -> Result<Vec<u64>> {
    let mut bits = vec![0u64; size.div_ceil(64)];
    for rank in members {
        let word = bits.get_mut(rank / 64).ok_or_else(|| {
            let text = format!("{call} to rank {rank} of communicator {} of {size} ranks", Named(comm));
            Error::new(Code::Rank, text)
        })?;
        *word |= 1 << (rank % 64);
    }
    Ok(bits)
}

/// Looks whether a bitmap names members, and no others: how many, and the first.
pub(in crate::p2p) fn check_members(ep: &Endpoint, context: &Context, bits: &[u64]) -> Result<(usize, u32)> {
    let (me, size, comm) = (ep.rank, context.group.size(), Named(context.handle));
    let wrong = |code, text: String| Err(error!(code, "rank {me}: mcast {text}"));
    if bits.len() != (size as usize).div_ceil(64) {
        return wrong(Code::Argument, format!("with {} words of bits for {size} ranks", bits.len()));
    }
    if let Some(rank) = members(bits).find(|rank| *rank >= size) {
        return wrong(Code::Rank, format!("to rank {rank} of communicator {comm} of {size} ranks"));
    }
    let count = bits.iter().map(|word| word.count_ones() as usize).sum();
    match members(bits).next() {
        Some(root) => Ok((count, root)),
        None => wrong(Code::Argument, "to nobody: no bit is set".to_owned()),
    }
}

/// Sends to the members of a [bitmap](bitmap_words). `keeps`: the buffer stays unchanged until the ticket is complete; otherwise it may be
/// changed on return.
pub fn mcast(comm: i32, data: Run, bits: &[u64], keeps: bool) -> Result<u64> {
    let ep = endpoint()?;
    check_buffer(ep, data)?;
    let (context, _) = member::incoming(ep, comm)?;
    let (count, root) = check_members(ep, context, bits)?;
    let (words, len) = (bits.len(), data.len());
    if wide::is_wide(ep, context, bits)? {
        let block = wide::send(ep, context, data, bits)?;
        ep.any_source.multicasts.fetch_add(1, Ordering::Relaxed);
        return Ok(hand_out(ep, comm, block, keeps));
    }
    let reachable = reaches_all(ep, context, bits)?;
    let mut records = Shared::bytes(words, count);
    if len > CHUNK {
        records += Chunks::bytes(len, count);
    }
    let place = place(ep, comm, data, records, keeps && reachable)?;
    let shared = Shared::begin(whole(ep, place.block), comm, len, bits);
    let block = place.block;
    // Members follow a long copy while it is made.
    let followed = !place.stays && len > CHUNK;
    if place.stays {
        shared.record.in_heap.store(ep.heap.contains(data.ptr(), len) as u32, Ordering::Relaxed);
        shared.record.address.store(data.ptr() as u64, Ordering::Relaxed);
        if members(bits).any(|r| r == context.group.rank()) {
            ep.any_source.lend(place.block, data);
        }
    } else if followed {
        Chunks::new(&shared).begin();
    } else {
        data.copy_to(shared.data());
    }
    let told = Told { at: block.at, generation: block.generation, master: ep.rank };
    if let Err(e) = tell(ep, context, root, told, None) {
        give_back(ep, block);
        return Err(e);
    }
    if followed {
        let chunks = Chunks::new(&shared);
        if ep.crowded {
            chunks.make_way(members(bits).position(|r| r == context.group.rank()).map(|n| n as u32));
        }
        chunks.fill(data);
    }
    ep.any_source.multicasts.fetch_add(1, Ordering::Relaxed);
    Ok(hand_out(ep, comm, block, keeps))
}

/// The ticket of a multicast, whose end is asked for by it, or by nobody.
fn hand_out(ep: &Endpoint, comm: i32, block: BlockRef, asked_for: bool) -> u64 {
    if asked_for {
        ask_for(ep, comm, block);
    } else {
        leave(ep, block);
    }
    ticket_of(block)
}

/// Can all members reach this process's memory, even if it does nothing from now on? An error for one that has died.
fn reaches_all(ep: &'static Endpoint, context: &Context, bits: &[u64]) -> Result<bool> {
    let mut reachable = true;
    for rank in members(bits) {
        let world = context.group.world_rank(rank);
        if world == ep.rank {
            continue;
        }
        let peer = ep.known(world).map_or_else(|| ep.contact(world), Ok)?;
        reachable &= peer.cma();
        if peer.is_dead() {
            return Err(dead(ep, rank));
        }
    }
    Ok(reachable)
}

/// Where a multicast's data is: in its block, or where the program has it.
struct Place {
    block: BlockRef,
    stays: bool,
}

/// Chooses the place of a multicast's data and takes the block. Data that `may_stay` does if the members have its memory mapped, or if
/// the spool has no room now: a copy into shared memory and one out of it by each member take less time than a copy by each member
/// through the kernel, which looks for the owner of every page.
fn place(ep: &'static Endpoint, comm: i32, data: Run, records: usize, may_stay: bool) -> Result<Place> {
    let len = data.len();
    let all = records + len;
    if may_stay && len > CHUNK {
        if !ep.heap.contains(data.ptr(), len)
            && let Some(block) = ep.spool.take(comm, all, all)
        {
            return Ok(Place { block, stays: false });
        }
        return Ok(Place { block: take(ep, comm, records, 0)?, stays: true });
    }
    Ok(Place { block: take(ep, comm, all, all)?, stays: false })
}

/// A block for a multicast; waits for room in standard and synchronous mode.
fn take(ep: &'static Endpoint, comm: i32, bytes: usize, charge: usize) -> Result<BlockRef> {
    let budget = ep.spool.budget(comm);
    let full = || {
        let text = format!(
            "rank {}: mcast of {bytes} bytes with its records: {} of {} bytes of the spool are taken",
            ep.rank,
            budget.used(),
            budget.limit()
        );
        Error::new(Code::SpoolFull, text)
    };
    let mut waiter = Waiter::new();
    loop {
        if let Some(block) = ep.spool.take(comm, bytes, charge) {
            return Ok(block);
        }
        if budget.timeout_ms() == 0 || charge > budget.limit() {
            return Err(full());
        }
        if !waiter.spin() {
            waiter.slow(&ForRoom { ep })?;
        }
    }
}

/// Tells a rank of the communicator where a multicast is.
fn tell(ep: &'static Endpoint, context: &Context, rank: u32, told: Told, inc: Option<&Incoming>) -> Result<()> {
    tell_words(ep, context, rank, &told.words(), inc)
}

/// Tells some ranks the same, all at once where that can be. An error: the first has not been told. Of one of the others that is gone the
/// master's wait finds out.
fn tell_all(ep: &'static Endpoint, context: &Context, ranks: &[u32], words: &[u64]) -> Result<()> {
    let mut told = vec![false; ranks.len()];
    if ranks.len() > 1 {
        let out = |rank: &u32| ep.any_source.outgoing.find(key_of(context.handle, *rank as i32, index_of(context)));
        let roads: Vec<_> = ranks.iter().map(|rank| out(rank).and_then(|out| out.road())).collect();
        Run::with_bytes(words, |data| place_at_all(ep, &roads, data, &mut told));
    }
    for (n, rank) in ranks.iter().enumerate().filter(|(n, _)| !told[*n]) {
        let done = tell_words(ep, context, *rank, words, None);
        if told.iter().all(|told| !told) && n == 0 {
            done?;
        }
    }
    Ok(())
}

/// Sends a rank a message of the library's own, which is read before this returns. `inc`: the own ring of such messages, if this thread has it
/// claimed. While there is no room for this one, what has come there is put aside: whoever waits for room in it may be the one who makes some.
fn tell_words(
    ep: &'static Endpoint,
    context: &Context,
    rank: u32,
    words: &[u64],
    inc: Option<&Incoming>,
) -> Result<()> {
    let index = index_of(context);
    let out = match ep.any_source.outgoing.find(key_of(context.handle, rank as i32, index)) {
        Some(out) => out,
        None => ep.outgoing_at(context, rank as i32, index)?,
    };
    out.check_peer(ep)?;
    Run::with_bytes(words, |data| {
        let mut message = Message::told(out, data);
        let mut waiter = Waiter::new();
        while !message.step(ep)? {
            if !waiter.spin() {
                match inc {
                    Some(inc) => inc.put_aside(ep),
                    None => put_aside(ep),
                }
                waiter.slow(&message.scene(ep))?;
            }
        }
        Ok(())
    })
}

/// Multicasts that this process has sent as their master, a message each.
pub fn multicasts_sent() -> Result<u64> {
    Ok(endpoint()?.any_source.multicasts.load(Ordering::Relaxed))
}

/// Is the multicast complete: has every member its data? `Peer`: a member has died or freed the communicator without, and nobody will use the
/// buffer any more.
pub fn mcast_test(ticket: u64) -> Result<bool> {
    let ep = endpoint()?;
    let block = check_ticket(ep, ticket)?;
    ep.waiting_sends.push(ep);
    ep.any_source.push(ep);
    if is_complete(ep, block) {
        is_asked_for(ep, block);
        give_back(ep, block);
        return Ok(true);
    }
    match of_the_dead(ep, block).or_else(|| of_the_freed(ep, block)) {
        Some(e) if withdraw(ep, block) => {
            give_up(ep, block);
            Err(e)
        }
        _ => Ok(false),
    }
}

/// Waits until every member has its data.
pub fn mcast_wait(ticket: u64) -> Result<()> {
    let ep = endpoint()?;
    let block = check_ticket(ep, ticket)?;
    let scene = Complete { ep, block, since_ns: now_ns() };
    let mut waiter = Waiter::new();
    while !is_complete(ep, block) {
        if !waiter.spin()
            && let Err(e) = waiter.slow(&scene)
        {
            // Members that have entered are still reading.
            while !withdraw(ep, block) {
                crate::base::thread::yield_core();
            }
            give_up(ep, block);
            return Err(e);
        }
    }
    is_asked_for(ep, block);
    give_back(ep, block);
    Ok(())
}

/// Looks after the blocks of multicasts to several nodes.
pub(super) fn push_wide(ep: &Endpoint) {
    wide::push(ep, false);
}

/// Puts aside what tells this process of multicasts, where so much has come that those behind may wait for room; called in all waits.
pub(super) fn put_aside(ep: &'static Endpoint) {
    // Not while somebody waits for a lock that is held for long.
    let rings = ep.any_source.told_at();
    for inc in rings.iter().filter(|inc| inc.is_crowded(ep)) {
        if let Some(_claim) = inc.claim_for_a_moment() {
            inc.put_aside(ep);
        }
    }
}

/// Parts of multicasts between nodes that this process, as a leader, has read from other leaders, and from who told it, since those were late.
pub fn parts_gathered() -> Result<[u64; 2]> {
    Ok(endpoint()?.any_source.gathered.each_ref().map(|n| n.load(Ordering::Relaxed)))
}

/// Messages that told this process of multicasts before it came to receive them, and were put aside.
pub fn multicasts_put_aside() -> Result<u64> {
    Ok(endpoint()?.any_source.told_at().iter().map(|inc| inc.early.count()).sum())
}

fn check_ticket(ep: &Endpoint, ticket: u64) -> Result<BlockRef> {
    let block = block_of(ticket);
    if block.at as usize + 4096 > SPOOL_WINDOW || block.generation == 0 || !ep.spool.was_taken(block) {
        return Err(error!(Code::Request, "rank {}: {ticket} is no ticket of a multicast", ep.rank));
    }
    Ok(block)
}

fn is_complete(ep: &Endpoint, block: BlockRef) -> bool {
    // Given back, and perhaps another's: it was complete then.
    ep.spool.is_done(block) || !ep.spool.is_held(block) || wide::settle(ep, block)
}

/// All of a block of this process's spool.
fn whole(ep: &Endpoint, block: BlockRef) -> Run {
    ep.spool.run(block.at, ep.spool.bytes_of(block.at))
}

/// A multicast of this process that is not complete.
///
/// Its members write into the block, so what that says of itself is checked against what this process knows. `None`: it is damaged.
fn own<'a>(ep: &'a Endpoint, block: BlockRef) -> Option<Shared<'a>> {
    let at = whole(ep, block);
    let record: &Record = at.record(BLOCK_HEADER)?;
    let [words, count, extra] =
        [&record.words, &record.count, &record.extra].map(|w| w.load(Ordering::Relaxed) as usize);
    let size = record.size.load(Ordering::Relaxed) as usize;
    let most = ep.size as usize;
    let fits = words <= most.div_ceil(64) && count <= most;
    if !fits || BLOCK_HEADER + Shared::bytes(words, count) + extra > ep.spool.bytes_of(block.at) {
        return None;
    }
    Some(Shared::at(at, [words, count, size, extra]))
}

/// The error of a multicast of which a member has died without its data.
fn of_the_dead(ep: &Endpoint, block: BlockRef) -> Option<Error> {
    let Some(shared) = own(ep, block).filter(|shared| !has_strangers(ep, shared)) else {
        if is_complete(ep, block) {
            return None;
        }
        let text = format!("rank {}: mcast: a member has damaged its block; others may not have the message", ep.rank);
        return Some(Error::new(Code::Peer, text));
    };
    let wide = shared.extra != 0;
    if ep.deaths() == 0 && !wide || is_complete(ep, block) {
        return None;
    }
    let dies = is_dead_in(ep, &shared);
    let lost = members(&shared.members()).find(|r| dies(*r) && !shared.has(ACKED, *r))?;
    let context = ep.contexts.find(shared.record.handle.load(Ordering::Relaxed) as i32);
    let link = context.and_then(|c| ep.link_to(c.group.world_rank(lost)));
    match link.as_ref().and_then(|link| link.failure()) {
        Some(why) => {
            let text = format!("rank {}: mcast: rank {lost} {why}; others may not have the message", ep.rank);
            Some(Error::new(Code::Peer, text))
        }
        None => Some(dead(ep, lost)),
    }
}

/// Are there members, as the block says, that are no ranks of its communicator?
fn has_strangers(ep: &Endpoint, shared: &Shared<'_>) -> bool {
    context_of(ep, shared).is_some_and(|c| members(&shared.members()).any(|rank| rank >= c.group.size()))
}

/// The communicator of a multicast of this process's, unless it has been freed.
fn context_of(ep: &Endpoint, shared: &Shared<'_>) -> Option<&'static Context> {
    ep.contexts.find(shared.record.handle.load(Ordering::Relaxed) as i32)
}

/// Which ranks of a multicast's communicator are known to be dead.
fn is_dead_in<'a>(ep: &'a Endpoint, shared: &Shared<'_>) -> impl Fn(u32) -> bool + 'a {
    let context = context_of(ep, shared);
    // Those that are late are lost for this multicast, whose other members go on.
    let mut elsewhere = if shared.extra != 0 { ep.lost_elsewhere() } else { Vec::new() };
    elsewhere.extend(if shared.extra != 0 { ep.late_elsewhere() } else { Vec::new() });
    move |rank| {
        let world = context.filter(|c| rank < c.group.size()).map(|c| c.group.world_rank(rank));
        world.is_some_and(|world| ep.is_dead(world) || elsewhere.contains(&world))
    }
}

#[cold]
fn dead(ep: &Endpoint, rank: u32) -> Error {
    error!(Code::Peer, "rank {}: mcast: rank {rank} has died; others may not have the message", ep.rank)
}

/// Gives a multicast up. `true`: nobody reads the master's buffer any more.
fn withdraw(ep: &Endpoint, block: BlockRef) -> bool {
    let Some(shared) = own(ep, block).filter(|shared| !has_strangers(ep, shared)) else { return true };
    if shared.extra != 0 {
        // The master's buffer was copied before; the block stays until all have it, or the job ends.
        return true;
    }
    // SYNC POINT: pairs with a member's entry: either it sees this, or it is seen to have entered.
    shared.record.withdrawn.store(1, Ordering::SeqCst);
    crate::base::atomics::fence(Ordering::SeqCst);
    let dies = is_dead_in(ep, &shared);
    is_complete(ep, block)
        || members(&shared.members()).all(|r| shared.has(ACKED, r) || !shared.has(ENTERED, r) || dies(r))
}
