//! A multicast whose members are not all on the master's node: stored and forwarded from node to node, shared memory within each.
//!
//! On each node the member of the lowest rank is the **leader**. The leaders form the binomial tree of *dynamic multicast*, section 3, with
//! the leader of the lowest rank as its root, which is the only one that the master tells, or another of the forms of `multicast/forms.rs`. Who has been
//! told fetches members and data from the block of who told it, into a block of its own spool, tells its children, and then is
//! the master of a multicast of its node, from the same block. In a tree or a chain it tells its children as soon as it has the first piece, and says in
//! its block how much is there; they fetch what is, so all of a chain fetch at the same time. For a message in parts see `multicast/gather.rs`.
//!
//! ```text
//!   block of master or leader:  [ as within a node | local | remote | whole, whole remote | parent | ready | parts | the group's bitmap | readers | data ]
//!
//!   leader's node has its data         ─▶ parent: one unit
//!   leader's children have all theirs  ─▶ parent: another unit
//! ```
//! So acknowledgements go up the tree, each by whoever comes last: a member of the node, or a process of another node that brings `remote` to its
//! whole and goes on with the parent's, whose place stands in the block. `local` is counted by processors of the block's node, `remote` by devices
//! only. Nobody waits for others: a member that has its data returns. A leader's block is free when both counts are whole, which it looks
//! after when it comes by; the master's multicast is complete then.

use crate::base::record::of_atomics;
use static_assertions::const_assert;

use super::ForRoom;
use super::forms::{Form, Shape};
use super::gather::Gathering;
use super::held::{Held, LEFT, Name};
use super::holder::Holder;
use super::note::{Note, topology_of};
use super::pieces::{Fetch, PIECE};
use super::record::{Shared, Told, members};
use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::run::Run;
use crate::base::unwinding::NoWayOut;
use crate::fabric::network::Place;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::BlockRef;
use crate::p2p::any_source::receive::Incoming;
use crate::p2p::any_source::{Arrived, garbled};
use crate::p2p::context::Context;
use crate::p2p::endpoint::Endpoint;
use crate::wait::Waiter;

of_atomics! { Record:
    /// Behind the records of a multicast within a node.
    #[repr(C, align(64))]
    pub(super) struct Wide {
        /// Units counted by processors of this node.
        pub(super) local: AtomicU64,
        /// Units counted by devices.
        remote: AtomicU64,
        /// Units in all.
        whole: AtomicU64,
        /// Units of devices, after which something is to be said to the parent; the master's: never, [`NOBODY`], or [`FLAT`]: leaders have
        /// words of their own, in the place of readers.
        whole_remote: AtomicU64,
        /// The parent: rank in the world << 32 | key of its block; [`NOBODY`]: this is the master's.
        parent: AtomicU64,
        /// Where its wide record is: in its spool, and the address. With the former, from bit [`FLAT_AT`] on, 1 + the leader's number where it
        /// acknowledges by a word of its own.
        parent_at: AtomicU64,
        parent_addr: AtomicU64,
        /// Bytes of the data that are there, in a form without parts; [`GIVEN_UP`]: no more come.
        pub(super) ready: AtomicU64,
    }
}

const_assert!(size_of::<Wide>() == 64);
const NOBODY: u64 = u64::MAX;
const FLAT: u64 = u64::MAX - 1;
const FLAT_AT: u32 = 48;
const_assert!((SPOOL_WINDOW as u64) < 1 << FLAT_AT);
/// See [`acquaint`].
const ACQUAINTANCE_NS: u64 = 1_000_000_000;
/// Where words of it are.
pub(super) const REMOTE_AT: u64 = 8;
pub(super) const READY_AT: usize = 56;
const_assert!(
    core::mem::offset_of!(Wide, ready) == READY_AT && core::mem::offset_of!(Wide, remote) as u64 == REMOTE_AT
);
pub(super) const GIVEN_UP: u64 = u64::MAX;
/// Bytes between the records and the data: the wide record, words of which a bit for each part says that it is there, the group's bitmap,
/// and for each reader that does not belong to this leader a word that is 1 when it has read.
pub(super) fn wide_bytes(words: usize) -> usize {
    (size_of::<Wide>() + (2 * words + LEFT) * 8).next_multiple_of(64)
}

/// Where in it the words of the parts are, the bitmap, and those of readers.
pub(super) const PARTS_AT: usize = size_of::<Wide>();
fn group_at(words: usize) -> usize {
    PARTS_AT + words * 8
}
pub(super) fn left_at(words: usize) -> usize {
    group_at(words) + words * 8
}

/// Is some member, or are all, on another node?
pub(super) fn is_wide(ep: &Endpoint, context: &Context, bits: &[u64]) -> Result<bool> {
    for rank in members(bits) {
        let world = context.group.world_rank(rank);
        if world != ep.rank && ep.is_elsewhere(world)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The members of the lowest rank on each node, in a form that is chosen by their number.
fn shape_of(ep: &Endpoint, context: &Context, bits: &[u64], form: impl FnOnce(usize) -> Form) -> Shape {
    let mut seen = std::collections::BTreeSet::new();
    let leaders: Vec<u32> = members(bits).filter(|r| seen.insert(node_of(ep, context, *r))).collect();
    let nodes = || leaders.iter().map(|r| node_of(ep, context, *r)).collect();
    let topology = ep.topology.as_ref().map(|topology| (topology, nodes()));
    Shape::new(form(leaders.len()), leaders, topology)
}

fn node_of(ep: &Endpoint, context: &Context, rank: u32) -> u32 {
    ep.launch.nodes().node_of(context.group.world_rank(rank))
}

fn wide_of<'a>(shared: &Shared<'a>) -> &'a Wide {
    shared.records_end().record(0).expect("behind the records of such a block")
}

/// The word of 64 parts of a block of this process.
pub(super) fn parts_of<'a>(shared: &Shared<'a>, word: usize) -> &'a AtomicU64 {
    shared.records_end().record(PARTS_AT + 8 * word).expect("behind the records of such a block")
}

/// Fills the records of a block; `local`: the members on its node.
fn prepare<'a>(ep: &'a Endpoint, block: BlockRef, local: &[u64], len: usize, master: u32, comm: i32) -> Shared<'a> {
    let mut shared = Shared::begin(super::whole(ep, block), comm, len, local);
    shared.extra = wide_bytes(local.len());
    shared.record.extra.store(wide_bytes(local.len()) as u32, Ordering::Relaxed);
    shared.record.master.store(master, Ordering::Relaxed);
    shared.records_end().after(PARTS_AT).write(&vec![0; 2 * local.len() + LEFT]);
    shared
}

/// The note that tells of a block of this process.
fn note_of(ep: &Endpoint, block: BlockRef, shared: &Shared<'_>, size: u64, (form, name): (Form, Name)) -> Result<Note> {
    let addr = shared.records_end().ptr() as u64;
    let key = match ep.fabric_here() {
        Some(fabric) => fabric.spool_key(ep.spool.extent(block))?,
        None => 0,
    };
    let at = addr - ep.spool.bytes(0) as u64;
    Ok(Note { at, addr, key, size, holder: ep.rank, form, name, topology: topology_of(ep), there: 0 })
}

/// The master's part.
pub(super) fn send(ep: &'static Endpoint, context: &Context, data: Run, bits: &[u64]) -> Result<BlockRef> {
    let len = data.len();
    let bytes = Shared::bytes(bits.len(), 0) + wide_bytes(bits.len()) + len;
    let block = super::take(ep, context.handle, bytes, bytes)?;
    let nobody = vec![0; bits.len()];
    let shared = prepare(ep, block, &nobody, len, ep.rank, context.handle);
    for (w, word) in bits.iter().enumerate() {
        // For the errors of the master's wait: all members, none of whom is of this block's tree within the node.
        shared.bitmap(0, w).store(*word, Ordering::Relaxed);
        parts_of(&shared, w).store(u64::MAX, Ordering::Relaxed);
    }
    // Trees of all forms tell the leaders by the same tree, each before the ones below it, so that no message overtakes another one to the same
    // group. A chain comes to the last ones late: what follows goes behind it. What the master tells itself would overtake both, and is overtaken
    // by none, since it has been told when this returns.
    push(ep, false);
    let behind = ep.any_source.handed_on_to(bits);
    let shape = shape_of(ep, context, bits, |leaders| Form::choose(ep, len, leaders, behind));
    let form = shape.form;
    let wide = wide_of(&shared);
    wide.local.store(0, Ordering::Relaxed);
    wide.remote.store(0, Ordering::Relaxed);
    let told = &shape.leaders[..shape.told()];
    wide.whole.store((0..told.len()).map(|number| shape.units(number as u32)).sum(), Ordering::Relaxed);
    wide.whole_remote.store(if form == Form::Flat { FLAT } else { NOBODY }, Ordering::Relaxed);
    wide.parent.store(NOBODY, Ordering::Relaxed);
    shared.records_end().after(group_at(bits.len())).write(bits);
    data.copy_to(shared.data());
    // SYNC POINT: pairs with the acquire, or the device's read, in `Holder::ready`.
    wide.ready.store(len as u64, Ordering::Release);
    let name = Name { master: ep.rank, number: ep.any_source.named.fetch_add(1, Ordering::Relaxed) };
    let told = note_of(ep, block, &shared, len as u64, (form, name)).and_then(|note| {
        ep.any_source.wides().push(Held::sent(block, form, bits));
        let note = Note { there: len as u64, ..note };
        super::tell_all(ep, context, told, &note.words(bits))
    });
    told.inspect_err(|_| {
        ep.any_source.wides().retain(|held| held.block.at != block.at);
        ep.spool.give_back(block);
    })?;
    Ok(block)
}

/// Looks after blocks whose multicast is complete here. `pressed`: room is wanted. `true`: some are not.
pub(super) fn push(ep: &Endpoint, pressed: bool) -> bool {
    let mut all = ep.any_source.wides();
    all.retain(|held| ep.spool.is_held(held.block) && !(held.may_go(ep, pressed) && settle(ep, held.block)));
    !all.is_empty()
}

/// Marks a block done if both its counts are whole. `true`: they are.
pub(super) fn settle(ep: &Endpoint, block: BlockRef) -> bool {
    let Some(shared) = super::own(ep, block).filter(|shared| shared.extra >= size_of::<Wide>()) else { return false };
    let wide = wide_of(&shared);
    // SYNC POINT: pairs with the release of the last unit; the device's are behind its reads of the data.
    let mut given = wide.local.load(Ordering::Acquire).saturating_add(wide.remote.load(Ordering::Acquire));
    if wide.whole_remote.load(Ordering::Relaxed) == FLAT {
        let word = |n: usize| shared.records_end().record::<AtomicU64>(left_at(shared.words) + 8 * n);
        given += (0..LEFT).filter(|n| word(*n).is_some_and(|word| word.load(Ordering::Acquire) != 0)).count() as u64;
    }
    if given < wide.whole.load(Ordering::Relaxed) {
        return false;
    }
    ep.spool.block(block.at).done.store(block.generation, Ordering::Release);
    true
}

/// A master that waits long makes the acquaintance of all members on other nodes, so as to hear of their deaths.
pub(super) fn acquaint(ep: &'static Endpoint, block: BlockRef, since_ns: u64) {
    let Some(shared) = super::own(ep, block) else { return };
    if now_ns().saturating_sub(since_ns) < ACQUAINTANCE_NS || shared.record.withdrawn.swap(1, Ordering::Relaxed) != 0 {
        return;
    }
    let Some(context) = ep.contexts.find(shared.record.handle.load(Ordering::Relaxed) as i32) else { return };
    for rank in members(&shared.members()).filter(|rank| *rank < context.group.size()) {
        if ep.is_elsewhere(context.group.world_rank(rank)).unwrap_or(false) {
            // Who cannot be reached now is lost for this multicast: the connection says so for a while.
            if let Err(e) = ep.lane_of(context, rank as i32)
                && let Some(link) = ep.link_to(context.group.world_rank(rank))
            {
                link.cannot_be_reached(&e);
            }
        }
    }
}

/// A leader at a multicast.
pub(super) struct Leader<'a> {
    pub(super) ep: &'static Endpoint,
    pub(super) context: &'a Context,
    /// What it was told, and the block that this is of.
    pub(super) note: Note,
    pub(super) from: Holder,
    /// All leaders, and which of them it is.
    pub(super) shape: Shape,
    pub(super) number: u32,
    pub(super) shared: Shared<'a>,
    /// What it tells, and the group's bitmap.
    mine: Note,
    group: Vec<u64>,
    /// Where it is told.
    inc: &'a Incoming,
}

/// Where a message is after a leader's part.
pub(super) enum Forwarded {
    /// What is left is a multicast within the node, from this block.
    Here(Told),
    /// In the buffer of the leader, who is the only member here.
    Received(Arrived),
}

/// A leader's part: fetches, tells its children. `to`: where it wants the message.
pub(super) fn forward(
    ep: &'static Endpoint,
    context: &Context,
    inc: &Incoming,
    (note, sent): (Note, &[u64]),
    to: Run,
) -> Result<Forwarded> {
    let wrong = || garbled(ep, note.holder);
    let words = (context.group.size() as usize).div_ceil(64);
    let size = usize::try_from(note.size).ok().filter(|n| *n < SPOOL_WINDOW && note.there <= note.size);
    let size = size.ok_or_else(wrong)?;
    if note.at.saturating_add((wide_bytes(words) + size) as u64) > SPOOL_WINDOW as u64 {
        return Err(wrong());
    }
    let from = Holder::of(ep, context, note.holder, note.at, note.place())?;
    let mut group = vec![0u64; words];
    match sent.len() {
        0 => from.read_words(group_at(words), &mut group)?,
        _ => group.copy_from_slice(sent),
    }
    if members(&group).any(|r| r >= context.group.size()) {
        return Err(wrong());
    }
    let (me, here) = (context.group.rank(), node_of(ep, context, context.group.rank()));
    if note.topology != topology_of(ep) {
        let text = format!(
            "rank {}: FMPL_TOPOLOGY is not what it is at rank {}, which sent a multicast",
            ep.rank, note.holder
        );
        return Err(Error::new(Code::Setting, text));
    }
    let shape = shape_of(ep, context, &group, |_| note.form);
    let number = shape.leaders.iter().position(|r| *r == me).ok_or_else(wrong)? as u32;
    if note.form == Form::Flat && shape.leaders.len() > LEFT {
        return Err(wrong());
    }
    let mut local = vec![0u64; words];
    for rank in members(&group).filter(|r| node_of(ep, context, *r) == here) {
        local[rank as usize / 64] |= 1 << (rank % 64);
    }
    let count_local = local.iter().map(|w| w.count_ones()).sum::<u32>();
    if note.form == Form::Flat && count_local == 1 && note.there == note.size && matches!(from, Holder::Remote(..)) {
        // Nobody reads from a block of this leader's.
        let first = to.first(size);
        NoWayOut::during("a receive of a multicast", || from.read(wide_bytes(words), first))?;
        let _ = from.give_flat_unit(words, number);
        let source = context.group.rank_of(note.name.master).map_or(-1, |r| r as i32);
        return Ok(Forwarded::Received(Arrived { source, len: size, capacity: to.len() }));
    }
    let bytes = Shared::bytes(words, count_local as usize) + wide_bytes(words) + size;
    let block = take(ep, context.handle, bytes)?;
    let shared = prepare(ep, block, &local, size, note.name.master, context.handle);
    shared.records_end().after(group_at(words)).write(&group);
    let wide = wide_of(&shared);
    let units: u64 = shape.below(number).into_iter().map(|child| shape.units(child)).sum();
    wide.local.store(0, Ordering::Relaxed);
    wide.remote.store(0, Ordering::Relaxed);
    wide.whole.store(1 + units, Ordering::Relaxed);
    wide.whole_remote.store(units, Ordering::Relaxed);
    wide.parent.store((note.holder as u64) << 32 | note.key as u64, Ordering::Relaxed);
    let flat = if note.form == Form::Flat { 1 + number as u64 } else { 0 };
    wide.parent_at.store(note.at | flat << FLAT_AT, Ordering::Relaxed);
    wide.parent_addr.store(note.addr, Ordering::Relaxed);
    wide.ready.store(0, Ordering::Relaxed);
    let mine = note_of(ep, block, &shared, note.size, (note.form, note.name));
    let mine = mine.inspect_err(|_| _ = ep.spool.give_back(block))?;
    let leader = Leader { ep, context, note, from, shape, number, shared, mine, group, inc };
    let done = if note.form.in_parts() { leader.by_parts(block) } else { leader.by_pieces(block) };
    // From here on the block stays for others as long as these wait for it.
    ep.any_source.wides().iter_mut().filter(|held| held.block.at == block.at).for_each(Held::is_over);
    done.map(|()| Forwarded::Here(Told { at: block.at, generation: block.generation, master: ep.rank }))
}

impl Leader<'_> {
    /// Tells a child, by number. One that is gone is the master's to find out.
    fn tell(&self, child: u32, there: usize) {
        let (rank, note) = (self.shape.leaders[child as usize], Note { there: there as u64, ..self.mine });
        let _ = super::tell_words(self.ep, self.context, rank, &note.words(&self.group), Some(self.inc));
    }

    /// Nothing more comes. The block stays: others look into it.
    fn give_up(&self) {
        wide_of(&self.shared).ready.store(GIVEN_UP, Ordering::Release);
    }

    /// Fetches the message as it comes to who told of it, and tells the children when the first piece is here.
    fn by_pieces(&self, block: BlockRef) -> Result<()> {
        let (ep, wide, size) = (self.ep, wide_of(&self.shared), self.shared.size);
        let data_at = wide_bytes(self.shared.words);
        let mut fetch = Fetch { ep, from: &self.from, holder: self.note.holder, data_at, known: self.note.there };
        let first = size.min(PIECE);
        fetch.piece(self.shared.data(), 0, first, &wide.ready).inspect_err(|_| _ = ep.spool.give_back(block))?;
        ep.any_source.wides().push(Held::of_tree(block));
        self.shape.below(self.number).into_iter().for_each(|child| self.tell(child, first));
        let mut at = first;
        while at < size {
            let len = PIECE.min(size - at);
            fetch.piece(self.shared.data(), at, len, &wide.ready).inspect_err(|_| self.give_up())?;
            at += len;
        }
        Ok(())
    }

    /// Fetches what is handed down, tells each child when its share is here, and gathers the rest from the other leaders.
    fn by_parts(&self, block: BlockRef) -> Result<()> {
        let ep = self.ep;
        ep.any_source.wides().push(Held::in_parts(block, self.note.name, self.mine.place()));
        let (mut gathering, mut told) = (Gathering::new(self), 0);
        let mut all = || {
            for child in self.shape.below(self.number) {
                gathering.hand_down(child)?;
                self.tell(child, 0);
                told += 1;
            }
            gathering.all()
        };
        all().inspect_err(|_| {
            self.give_up();
            if told == 0 {
                // Nobody looks into it, or will.
                let unread = |held: &mut Held| held.block.at == block.at && held.is_unread();
                let gone = ep.any_source.wides().extract_if(.., unread).count();
                _ = gone > 0 && ep.spool.give_back(block);
            }
        })
    }
}

/// An error if who was to pass a multicast on has died.
pub(super) fn check_parent(ep: &Endpoint, holder: u32) -> Result<()> {
    if ep.is_dead(holder) { Err(lost(ep, holder, "has died before it had passed a multicast on")) } else { Ok(()) }
}

/// It says that it has given it up.
#[cold]
pub(super) fn given_up(ep: &Endpoint, holder: u32) -> Error {
    lost(ep, holder, "has given a multicast up that it was to pass on")
}

#[cold]
fn lost(ep: &Endpoint, holder: u32, what: &str) -> Error {
    error!(Code::Peer, "rank {}: rank {holder} {what}", ep.rank)
}

/// A block for what is to be forwarded. It is charged to nobody: the master's budget is what bounds multicasts.
fn take(ep: &'static Endpoint, comm: i32, bytes: usize) -> Result<BlockRef> {
    let mut waiter = Waiter::new();
    loop {
        push(ep, false);
        if let Some(block) = ep.spool.take_beyond(comm, bytes, 0) {
            return Ok(block);
        }
        push(ep, true);
        if !waiter.spin() {
            waiter.slow(&ForRoom { ep })?;
        }
    }
}

/// All members of this node have their data.
pub(super) fn complete(ep: &'static Endpoint, context: &Context, shared: &Shared<'_>) {
    let wide = wide_of(shared);
    let parent = parent_of([&wide.parent, &wide.parent_at, &wide.parent_addr].map(|w| w.load(Ordering::Relaxed)));
    // SYNC POINT: pairs with the acquire in `settle`. The block may be given back from here on.
    wide.local.fetch_add(1, Ordering::AcqRel);
    if let Some(parent) = parent {
        // If the parent is gone, so is the multicast, and its master finds out.
        let _ = give_unit(ep, context, parent, shared.words);
    }
}

/// A block that takes units: rank in the world, the place in its spool, its address and key.
type Taker = (u32, u64, u64, u32);

fn parent_of([parent, at, addr]: [u64; 3]) -> Option<Taker> {
    (parent != NOBODY).then_some(((parent >> 32) as u32, at, addr, parent as u32))
}

/// Gives one unit to a block, and what follows from it to those above. So many words the group has.
fn give_unit(ep: &'static Endpoint, context: &Context, taker: Taker, words: usize) -> Result<()> {
    let mut next = Some(taker);
    // The tree has no more levels than there are nodes, whatever its records say.
    for _ in 0..ep.launch.nodes().nodes() {
        let Some((rank, at, addr, key)) = next.take() else { break };
        let (at, flat) = (at & ((1 << FLAT_AT) - 1), at >> FLAT_AT);
        let holder = Holder::of(ep, context, rank, at, Place { addr, rkey: key })?;
        match flat.checked_sub(1) {
            Some(number) if number >= LEFT as u64 => break,
            Some(number) => holder.give_flat_unit(words, number as u32)?,
            None => next = holder.give_unit()?.and_then(parent_of),
        }
    }
    Ok(())
}

/// What a receive of a multicast says of it.
pub(super) fn arrived(context: &Context, shared: &Shared<'_>, told: Told, len: usize, capacity: usize) -> Arrived {
    let master = if shared.extra == 0 { told.master } else { shared.record.master.load(Ordering::Relaxed) };
    Arrived { source: context.group.rank_of(master).map_or(-1, |r| r as i32), len, capacity }
}
