//! Memory of a node's ranks side by side, which each of them reads and writes as its own.
//!
//! ```text
//!   fmpl_alloc of rank 0   │ part of 0 │ part of 1 │ part of 2 │      one block; every rank maps rank 0's memory anyway
//! ```
//! A page lies where the rank runs that touches it first, so each has its part near. What each knows of a window is its own: where the
//! parts end. Rank 0 says where the block lies, and each looks whether it does lie in the memory of rank 0.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result};
use crate::base::named::Named;
use crate::base::unused::Unused;
use crate::base::values::SharedValues;
use crate::coll;
use crate::comm::{Comm, Job, Plain};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};

/// The windows of this process, by where its own part begins.
static WINDOWS: Mutex<BTreeMap<usize, Window>> = Mutex::new(BTreeMap::new());

struct Window {
    comm: i32,
    rank: usize,
    /// Where the block begins.
    at: usize,
    /// Where the part of each rank ends, from there on.
    ends: Box<[u64]>,
}

impl Window {
    /// Where the part of a rank lies in the block: from, to.
    fn part(&self, rank: usize) -> Option<(usize, usize)> {
        let from = if rank == 0 { 0 } else { *self.ends.get(rank - 1)? as usize };
        Some((from, *self.ends.get(rank)? as usize))
    }
}

fn windows() -> MutexGuard<'static, BTreeMap<usize, Window>> {
    WINDOWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job ends, and with it the memory.
pub(super) fn forget() {
    windows().clear();
}

/// `fmpl_shared_alloc`: all ranks of `comm`, which are on one node, get `size` bytes each, side by side. Where this rank's begin.
pub fn shared_alloc(comm: i32, size: usize) -> Result<*mut u8> {
    let ep = endpoint()?;
    let context = ep.context(comm)?;
    let nodes = ep.launch.nodes();
    if let Some(far) = context.group.members().find(|rank| nodes.node_of(*rank) != nodes.node_of(ep.rank)) {
        let comm = Named(comm);
        let text = format!(
            "rank {far} of the world is on another node; fmpl_comm_split_node makes a communicator of one node's"
        );
        return Err(Error::new(
            Code::Comm,
            format!("rank {}: fmpl_shared_alloc on communicator {comm}: {text}", ep.rank),
        ));
    }
    let mut ends = vec![0u64; context.group.size() as usize];
    coll::allgather(comm, Bytes::of(&[size as u64]), 8, Room::of(&mut ends))?;
    let mut sum = 0u64;
    for end in &mut ends {
        sum = sum.saturating_add(*end);
        *end = sum;
    }
    let rank = context.group.rank() as usize;
    let at = agree_on_block(ep, context, sum)?;
    let window = Window { comm, rank, at: at as usize, ends: ends.into() };
    let mine = window.part(rank).map_or(at, |(from, _)| at.wrapping_add(from));
    windows().insert(mine as usize, window);
    Ok(mine)
}

/// Rank 0 allocates, and the others find it. All of them have it, or none.
fn agree_on_block(ep: &'static Endpoint, context: &Context, bytes: u64) -> Result<*mut u8> {
    let comm = context.handle;
    // Where the block lies in the memory of rank 0, from 1 on; 0: there is none. A byte more, so that an empty part has an address of its own.
    let mut place = [0u64];
    let mut found =
        Err(Error::new(Code::Memory, format!("rank 0 of communicator {} has no room for {bytes} bytes", Named(comm))));
    if context.group.rank() == 0 {
        found = ep.heap.alloc(usize::try_from(bytes.saturating_add(1)).unwrap_or(usize::MAX));
        place = [found.as_ref().map_or(0, |at| ep.heap.place_of(*at).map_or(0, |place| place + 1))];
    }
    coll::bcast(comm, Room::of(&mut place), 8, 0)?;
    if context.group.rank() != 0 && place[0] != 0 {
        let lane = ep.lane_of(context, 0)?;
        let heap = lane.pair.peer.as_ref().and_then(|peer| peer.region.heap());
        found = heap.and_then(|heap| heap.at(place[0] - 1, bytes)).ok_or_else(|| {
            let text =
                format!("rank {}: the memory of rank 0 of communicator {} cannot be mapped", ep.rank, Named(comm));
            Error::new(Code::Memory, text)
        });
    }
    let mut all = vec![0u8; context.group.size() as usize];
    coll::allgather(comm, Bytes::of(&[u8::from(found.is_ok())]), 1, Room::of(&mut all))?;
    let without = all.iter().position(|found| *found == 0);
    match (without, found) {
        (Some(rank), Ok(at)) => {
            if context.group.rank() == 0 {
                ep.heap.free(at)?;
            }
            let text = format!("rank {rank} of communicator {} has no room for the window", Named(comm));
            Err(Error::new(Code::Memory, format!("rank {}: {text}", ep.rank)))
        }
        (_, found) => found,
    }
}

/// No window of this process may begin here: its memory is given back by all of its ranks together.
pub(super) fn is_none(ptr: *const u8) -> Result<()> {
    if windows().values().all(|window| window.at != ptr as usize) {
        return Ok(());
    }
    Err(Error::new(Code::Argument, format!("free({ptr:p}): a window begins here, which fmpl_shared_free gives back")))
}

fn no_window(ep: &Endpoint, call: &str, mine: *const u8) -> Error {
    Error::new(Code::Argument, format!("rank {}: {call}({mine:p}): no part of this rank's begins here", ep.rank))
}

/// `fmpl_shared_query`: where the part of another rank of the window begins, and its bytes.
pub fn shared_query(mine: *const u8, rank: i32) -> Result<(*mut u8, usize)> {
    let ep = endpoint()?;
    let windows = windows();
    let window = windows.get(&(mine as usize)).ok_or_else(|| no_window(ep, "fmpl_shared_query", mine))?;
    ep.check_rank(ep.context(window.comm)?, rank)?;
    let (from, to) = window.part(rank as usize).ok_or_else(|| no_window(ep, "fmpl_shared_query", mine))?;
    Ok(((window.at as *mut u8).wrapping_add(from), to - from))
}

/// `fmpl_shared_free`: all ranks of the window call it; afterwards none may use it.
pub fn shared_free(mine: *mut u8, _unused: Unused) -> Result<()> {
    let ep = endpoint()?;
    let found = windows().get(&(mine as usize)).map(|window| (window.comm, window.rank, window.at));
    let (comm, rank, at) = found.ok_or_else(|| no_window(ep, "fmpl_shared_free", mine))?;
    let met = coll::barrier(comm);
    match &met {
        // The memory stays until the job ends: others may use theirs still.
        Err(error) if error.code() != Code::Peer => return met,
        Err(_) => {}
        Ok(()) if rank == 0 => ep.heap.free(at as *mut u8)?,
        Ok(()) => {}
    }
    windows().remove(&(mine as usize));
    met
}

/// Memory of a node's ranks side by side, made by [`Comm::shared_window`]: each reads and writes its own part and those of the others, value by
/// value. When which value is there the ranks settle between them, by messages or a barrier; words are atomics as well.
///
/// Dropped without [`SharedWindow::free`], it keeps its memory until the job ends.
pub struct SharedWindow<'job, T: Plain> {
    mine: NonNull<u8>,
    parts: Vec<SharedValues<T>>,
    _job: PhantomData<&'job Job>,
}

// SAFETY: its address is only looked up; the values are shared with other processes in any case.
unsafe impl<T: Plain> Send for SharedWindow<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for SharedWindow<'_, T> {}

impl<T: Plain> SharedWindow<'_, T> {
    /// The part of a rank; panics when there is no such one.
    pub fn part(&self, rank: usize) -> &SharedValues<T> {
        &self.parts[rank]
    }

    /// Gives the memory back. All ranks call it; [`Code::Peer`] when one of them has died, and then the memory is kept until the job ends.
    pub fn free(self) -> Result<()> {
        // SAFETY: the parts go with this value, at each rank before it comes here.
        shared_free(self.mine.as_ptr(), unsafe { Unused::promised() })
    }
}

impl<'job> Comm<'job> {
    /// Memory for `len` values of this rank and as many as they like of the others, side by side, which all of them read and write. All
    /// ranks call it, and are on one node ([`Comm::split_node`]); all use values of one size. Zeros at first.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let node = world.split_node(0)?;
    /// let counts = node.comm().shared_window::<u64>(1)?;
    /// counts.part(0).atomic(0).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    /// node.comm().barrier()?;
    /// assert_eq!(counts.part(0).get(0), node.size() as u64);
    /// counts.free()?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// Errors: [`Code::Comm`] when a rank is on another node; [`Code::Memory`]; [`Code::Argument`] when parts of others lie so that they have
    /// no such values; [`Code::Peer`] when a rank has died.
    pub fn shared_window<T: Plain>(&self, len: usize) -> Result<SharedWindow<'job, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|_| size_of::<T>() > 0 && align_of::<T>() <= 64);
        let bytes = bytes.ok_or_else(|| {
            Error::new(Code::Argument, format!("a window of {len} values of {} bytes", size_of::<T>()))
        })?;
        let mine = shared_alloc(self.id, bytes)?;
        let parts = (0..self.size).map(|rank| values::<T>(mine, rank)).collect::<Result<Vec<_>>>();
        if let Ok(parts) = &parts {
            parts[self.rank].room().zero();
        }
        // Whatever this one has found, the others wait for it.
        coll::barrier(self.id)?;
        let mine = NonNull::new(mine).ok_or_else(|| Error::new(Code::Memory, "a window"))?;
        Ok(SharedWindow { mine, parts: parts?, _job: PhantomData })
    }
}

/// A part of a window as values.
fn values<T: Plain>(mine: *const u8, rank: usize) -> Result<SharedValues<T>> {
    let (at, bytes) = shared_query(mine, rank as i32)?;
    match NonNull::new(at.cast::<T>()) {
        Some(place) if place.is_aligned() && bytes.is_multiple_of(size_of::<T>()) => {
            // SAFETY: mapped as long as the job lasts, with contents; other ranks use it as this one does.
            Ok(unsafe { SharedValues::new(place, bytes / size_of::<T>()) })
        }
        _ => {
            let text = format!("the part of rank {rank} has no whole values of {} bytes", size_of::<T>());
            Err(Error::new(Code::Argument, text))
        }
    }
}
