//! Memory of a node's ranks side by side, which each of them reads and writes as its own.
//!
//! ```text
//!   fmpl_alloc of rank 0   │ part of 0 │ part of 1 │ part of 2 │      one block; every rank maps rank 0's memory anyway
//! ```
//! A page lies where the rank runs that touches it first, so each has its part near. What each knows of a window is its own: where the
//! parts end. Rank 0 says where the block lies, and each looks whether it does lie in the memory of rank 0. With it comes a random number, by
//! which the ranks see, when they give the window back, that all of them do.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error};
use crate::base::key;
use crate::base::named::Named;
use crate::base::unused::Unused;
use crate::base::values::SharedValues;
use crate::coll;
use crate::comm::claim::Claims;
use crate::comm::{Comm, Job, Plain};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::window::Window;

/// `fmpl_shared_alloc`: all ranks of `comm`, which are on one node, get `size` bytes each, side by side. Where this rank's begin.
pub fn shared_alloc(comm: i32, size: usize) -> Result<*mut u8> {
    let ep = endpoint()?;
    let context = ep.context(comm)?;
    let nodes = ep.launch.nodes();
    if let Some(remote) = context.group.members().find(|rank| nodes.node_of(*rank) != nodes.node_of(ep.rank)) {
        let what = format!("rank {}: fmpl_shared_alloc on communicator {}", ep.rank, Named(comm));
        let why = "is on another node; fmpl_comm_split_node makes a communicator of one node's";
        return Err(error!(Code::Comm, "{what}: rank {remote} of the world {why}"));
    }
    let mut ends = each(context, size as u64)?;
    let mut sum = 0u64;
    for end in &mut ends {
        sum = sum.saturating_add(*end);
        *end = sum;
    }
    let (at, token) = agree_on_block(ep, context, sum)?;
    let rank = context.group.rank() as usize;
    Ok(ep.windows.add(Window { comm, rank, at: at as usize, ends: ends.into(), token }))
}

/// A number of each rank.
fn each(context: &Context, mine: u64) -> Result<Vec<u64>> {
    let mut all = vec![0u64; context.group.size() as usize];
    coll::allgather(context.handle, Bytes::of(&[mine]), 8, Room::of(&mut all))?;
    Ok(all)
}

/// Rank 0 allocates, and the others find it. All of them have it, or none.
fn agree_on_block(ep: &'static Endpoint, context: &Context, bytes: u64) -> Result<(*mut u8, u64)> {
    let (comm, is_first) = (context.handle, context.group.rank() == 0);
    // Where the block lies in the memory of rank 0, from 1 on, 0: there is none; and the token.
    let mut said = [0u64; 2];
    let mut found = Err(no_room(ep, comm, 0));
    if is_first {
        // A byte more, so that an empty part has an address of its own.
        let token = key::random().map(u64::from_ne_bytes);
        found = token.and_then(|token| {
            let at = ep.heap.alloc(usize::try_from(bytes.saturating_add(1)).unwrap_or(usize::MAX))?;
            said = [ep.heap.place_of(at).map_or(0, |place| place + 1), token];
            Ok(at)
        });
    }
    let told = coll::bcast(comm, Room::of(&mut said), 16, 0);
    if told.is_ok() && !is_first && said[0] != 0 {
        found = ep.lane_of(context, 0).and_then(|lane| {
            let heap = lane.pair.peer.as_ref().and_then(|peer| peer.region.heap());
            heap.and_then(|heap| heap.at(said[0] - 1, bytes)).ok_or_else(|| {
                let text =
                    format!("rank {}: the memory of rank 0 of communicator {} cannot be mapped", ep.rank, Named(comm));
                Error::new(Code::Memory, text)
            })
        });
    }
    let missing =
        told.and_then(|()| each(context, u64::from(found.is_ok()))).map(|all| all.iter().position(|has| *has != 1));
    match (missing, found) {
        (Ok(None), Ok(at)) => Ok((at, said[1])),
        (missing, found) => {
            // Nobody else has found it good.
            if let (true, Ok(at)) = (is_first, &found) {
                ep.heap.free(*at)?;
            }
            found?;
            Err(no_room(ep, comm, missing?.unwrap_or(0)))
        }
    }
}

fn no_room(ep: &Endpoint, comm: i32, rank: usize) -> Error {
    let text = format!("rank {}: rank {rank} of communicator {} has no room for the window", ep.rank, Named(comm));
    Error::new(Code::Memory, text)
}

fn no_window(ep: &Endpoint, call: &str, mine: *const u8) -> Error {
    error!(Code::Argument, "rank {}: {call}({mine:p}): no part of this rank's begins here", ep.rank)
}

/// No window of this process may begin here: its memory is given back by all of its ranks together.
pub(super) fn is_none(ep: &Endpoint, ptr: *const u8) -> Result<()> {
    if !ep.windows.begins(ptr) {
        return Ok(());
    }
    let text = format!("rank {}: free({ptr:p}): a window begins here, which fmpl_shared_free gives back", ep.rank);
    Err(Error::new(Code::Argument, text))
}

/// `fmpl_shared_query`: where the part of another rank of the window begins, and its bytes.
pub fn shared_query(mine: *const u8, rank: i32) -> Result<(*mut u8, usize)> {
    let ep = endpoint()?;
    let none = || no_window(ep, "fmpl_shared_query", mine);
    let window = ep.windows.find(mine).ok_or_else(none)?;
    ep.check_rank(ep.context(window.comm)?, rank)?;
    let (from, to) = window.part(rank as usize).ok_or_else(none)?;
    Ok(((window.at + from) as *mut u8, to - from))
}

/// `fmpl_shared_free`: all ranks of the window call it; afterwards none may use it.
pub fn shared_free(mine: *mut u8, _unused: Unused) -> Result<()> {
    let ep = endpoint()?;
    // Out of the list first: when the memory is free another thread may have a window there.
    let window = ep.windows.take(mine).ok_or_else(|| no_window(ep, "fmpl_shared_free", mine))?;
    let all = match ep.context(window.comm).and_then(|context| each(context, window.token)) {
        Ok(all) => all,
        Err(error) => {
            // Where a rank has died the memory stays until the job ends: others may use theirs still.
            if error.code() != Code::Peer {
                ep.windows.add(window);
            }
            return Err(error);
        }
    };
    if all.iter().any(|token| *token != window.token) {
        let text = format!(
            "rank {}: fmpl_shared_free({mine:p}): another rank gives another window back, or makes another call",
            ep.rank
        );
        ep.windows.add(window);
        return Err(Error::new(Code::Argument, text));
    }
    if window.rank == 0 { ep.heap.free(window.at as *mut u8) } else { Ok(()) }
}

/// Memory of a node's ranks side by side, made by [`Comm::shared_window`]: each reads and writes its own part and those of the others, value by
/// value. When which value is there the ranks settle between them, by messages or a barrier; words are atomics as well.
///
/// Dropped without [`SharedWindow::free`], it keeps its memory until the job ends.
pub struct SharedWindow<'job, T: Plain> {
    /// Where this rank's part begins.
    mine: usize,
    parts: Vec<SharedValues<T>>,
    claims: &'job Claims,
    _job: PhantomData<&'job Job>,
}

impl<T: Plain> SharedWindow<'_, T> {
    /// The part of a rank; panics when there is no such one.
    pub fn part(&self, rank: usize) -> &SharedValues<T> {
        &self.parts[rank]
    }

    /// Gives the memory back. All ranks call it; [`Code::Peer`] when one of them has died, and [`Code::Argument`] when another gives another
    /// window back: then the memory is kept until the job ends.
    pub fn free(self) -> Result<()> {
        // SAFETY: the parts go with this value; and at the other ranks theirs, of this very window, before any of them gets further.
        self.claims.collective(|| shared_free(self.mine as *mut u8, unsafe { Unused::promised() }))?
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
    /// Errors, at all ranks: [`Code::Comm`] when a rank is on another node; [`Code::Memory`]; [`Code::Argument`] when the parts do not all
    /// have whole values; [`Code::Peer`] when a rank has died.
    pub fn shared_window<T: Plain>(&self, len: usize) -> Result<SharedWindow<'job, T>> {
        self.claims.collective(|| {
            // More than there can be is refused where all are told.
            let mine = shared_alloc(self.id, len.saturating_mul(size_of::<T>()))?;
            let parts = (0..self.size).map(|rank| values::<T>(mine, rank)).collect::<Result<Vec<_>>>();
            if let Ok(parts) = &parts {
                parts[self.rank].room().zero();
            }
            let good = each(endpoint()?.context(self.id)?, u64::from(parts.is_ok()))?;
            match parts {
                Ok(parts) if good.iter().all(|good| *good == 1) => {
                    Ok(SharedWindow { mine: mine as usize, parts, claims: self.claims, _job: PhantomData })
                }
                parts => {
                    // SAFETY: no rank uses it: each has found that not all can.
                    shared_free(mine, unsafe { Unused::promised() })?;
                    Err(parts
                        .err()
                        .unwrap_or_else(|| uneven::<T>(good.iter().position(|good| *good != 1).unwrap_or(0))))
                }
            }
        })?
    }
}

/// A part of a window as values.
fn values<T: Plain>(mine: *const u8, rank: usize) -> Result<SharedValues<T>> {
    let (at, bytes) = shared_query(mine, rank as i32)?;
    match NonNull::new(at.cast::<T>()) {
        Some(place) if size_of::<T>() > 0 && place.is_aligned() && bytes.is_multiple_of(size_of::<T>()) => {
            // SAFETY: mapped as long as the job lasts, with contents; other ranks use it as this one does.
            Ok(unsafe { SharedValues::new(place, bytes / size_of::<T>()) })
        }
        _ => Err(uneven::<T>(rank)),
    }
}

fn uneven<T>(rank: usize) -> Error {
    error!(Code::Argument, "a window of values of {} bytes: not at rank {rank}, or not there", size_of::<T>())
}
