//! Operations that this process can do by itself, at once: memory that it has mapped by loads, stores and atomic instructions, private
//! memory of other ranks by the kernel's copies.

use super::Rma;
use super::address::GlobalAddress;
use super::delegated::DELEGATED_MOST;
use super::view::{Place, Using};
use crate::base::atomics::{Ordering, fence};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error};
use crate::fabric::shm::cma::{self, CmaError};

/// Up to this many bytes from one rank's private memory to another's are copied twice, through the stack, which costs less than having
/// one of the two wake up and copy once.
const ON_THE_STACK: usize = 16 << 10;

/// What is done to a word; the old value is the result.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Replaces it if it has a certain value.
    Cas = 1,
    /// Replaces it.
    Swap = 2,
    /// Adds, wrapping.
    Add = 3,
    /// Exclusive or.
    Xor = 4,
    /// Or.
    Or = 5,
    /// And.
    And = 6,
}

impl Atomic {
    pub(super) fn from_number(n: u8) -> Option<Atomic> {
        use Atomic::*;
        [Cas, Swap, Add, Xor, Or, And].into_iter().find(|a| *a as u8 == n)
    }

    /// Its name and width in errors.
    pub(super) fn name(self, wide: bool) -> &'static str {
        match (self, wide) {
            (Atomic::Cas, false) => "cas4",
            (Atomic::Cas, true) => "cas8",
            (Atomic::Swap, false) => "swap4",
            (Atomic::Swap, true) => "swap8",
            (Atomic::Add, false) => "add4",
            (Atomic::Add, true) => "add8",
            (Atomic::Xor, false) => "xor4",
            (Atomic::Xor, true) => "xor8",
            (Atomic::Or, false) => "or4",
            (Atomic::Or, true) => "or8",
            (Atomic::And, false) => "and4",
            (Atomic::And, true) => "and8",
        }
    }
}

/// One atomic operation on global memory.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The word.
    pub at: GlobalAddress,
    /// What is done to it.
    pub op: Atomic,
    /// Eight bytes; else four.
    pub wide: bool,
    /// The value; of a CAS the new one.
    pub value: u64,
    /// Of a CAS, what must be there.
    pub expected: u64,
}

impl Fetch {
    /// Bytes of the word.
    pub fn bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Does it to a word of that size, aligned, which others use by atomic instructions, too.
    #[inline(always)]
    pub fn apply(&self, at: Room<'_>) -> u64 {
        let all = Ordering::AcqRel;
        if self.wide {
            let word = at.word();
            let v = self.value;
            match self.op {
                Atomic::Cas => {
                    word.compare_exchange(self.expected, v, all, Ordering::Acquire).unwrap_or_else(|old| old)
                }
                Atomic::Swap => word.swap(v, all),
                Atomic::Add => word.fetch_add(v, all),
                Atomic::Xor => word.fetch_xor(v, all),
                Atomic::Or => word.fetch_or(v, all),
                Atomic::And => word.fetch_and(v, all),
            }
        } else {
            let word = at.half_word();
            let (v, old) = (self.value as u32, self.expected as u32);
            u64::from(match self.op {
                Atomic::Cas => word.compare_exchange(old, v, all, Ordering::Acquire).unwrap_or_else(|old| old),
                Atomic::Swap => word.swap(v, all),
                Atomic::Add => word.fetch_add(v, all),
                Atomic::Xor => word.fetch_xor(v, all),
                Atomic::Or => word.fetch_or(v, all),
                Atomic::And => word.fetch_and(v, all),
            })
        }
    }
}

/// Can this process do it by itself?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It has.
    Yes,
    /// The rank must, whose memory it is.
    Ask(u32),
    /// The device can: to the other rank (`true`) or from it.
    Device(bool),
}

impl Rma {
    /// Copies, if this process can by itself. `ASKS`: between private memory of two other ranks it asks whoever of them is awake.
    pub(super) fn copy_at_once<const ASKS: bool>(
        &'static self,
        dst: GlobalAddress,
        src: GlobalAddress,
        len: usize,
    ) -> Result<Done> {
        let (to_use, from_use) = (self.use_of(dst, "copy, to")?, self.use_of(src, "copy, from")?);
        let to = self.resolve(dst, len, &to_use, "copy, to")?;
        let from = self.resolve(src, len, &from_use, "copy, from")?;
        match (to.here, from.here) {
            _ if to.view.local().is_none() || from.view.local().is_none() => Ok(self.copy_by_device(&to, &from, len)),
            (Some(to), Some(from)) => {
                to.copy_as_words(*from);
                Ok(Done::Yes)
            }
            (None, None) if ASKS && len <= DELEGATED_MOST && len != 0 => {
                if let Some(done) = self.have_copied([&to, &from], [dst, src], len) {
                    return done;
                }
                let done = self.copy_by_kernel(&to, &from, len);
                if matches!(done, Ok(Done::Yes)) {
                    self.copied_twice([&from, &to]);
                }
                done
            }
            _ => self.copy_by_kernel(&to, &from, len),
        }
    }

    /// Who can, when one end is on another node: this rank, if the other end is its own; else the rank of the source.
    #[cold]
    fn copy_by_device(&self, to: &Place<'_>, from: &Place<'_>, len: usize) -> Done {
        let me = self.rank();
        match (to.view.rank == me, from.view.rank == me) {
            _ if len == 0 => Done::Yes,
            (false, true) => Done::Device(true),
            (true, false) => Done::Device(false),
            _ => Done::Ask(from.view.rank),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_by_kernel(&self, to: &Place<'_>, from: &Place<'_>, len: usize) -> Result<Done> {
        if len == 0 {
            return Ok(Done::Yes);
        }
        // Whatever was done before must be visible before what the kernel copies is.
        fence(Ordering::Release);
        let done = match (to.here, from.here) {
            (None, Some(here)) => match self.open_to_copies(to)? {
                Some(pid) => cma::write_from(pid, *here, to.addr).map_err(|e| (to, e)),
                None => return Ok(Done::Ask(to.view.rank)),
            },
            (Some(here), None) => match self.open_to_copies(from)? {
                Some(pid) => cma::read_into(pid, here, from.addr).map_err(|e| (from, e)),
                None => return Ok(Done::Ask(from.view.rank)),
            },
            _ => match (self.open_to_copies(from)?, self.open_to_copies(to)?) {
                (Some(source), Some(target)) if len <= ON_THE_STACK => {
                    let mut bytes = [0u8; ON_THE_STACK];
                    let read = cma::read_into(source, Room::of(&mut bytes[..len]), from.addr).map_err(|e| (from, e));
                    let write = || cma::write_from(target, Bytes::of(&bytes[..len]), to.addr);
                    read.and_then(|()| write().map_err(|e| (to, e)))
                }
                _ => return Ok(Done::Ask(from.view.rank)),
            },
        };
        fence(Ordering::Acquire);
        match done {
            Ok(()) => Ok(Done::Yes),
            Err((place, CmaError::Denied)) => {
                if let Some(p) = place.view.local().and_then(|n| n.peer.as_ref()) {
                    p.cma_off();
                }
                Ok(Done::Ask(place.view.rank))
            }
            Err((place, CmaError::Gone)) => Err(self.peer_error(place.view.rank, "has died", "copy")),
            Err((place, e)) => Err(error!(
                Code::Argument,
                "rank {}: copy: {len} bytes of rank {} at its {:#x} are registered, but cannot be reached: {e}",
                self.rank(),
                place.view.rank,
                place.addr
            )),
        }
    }

    /// The process id to which the kernel copies, if it does.
    fn open_to_copies(&self, place: &Place<'_>) -> Result<Option<libc::pid_t>> {
        let peer = place.view.local().and_then(|n| n.peer.as_ref());
        let Some(peer) = peer.filter(|p| p.cma()) else { return Ok(None) };
        // A process id may come to mean another process.
        if !peer.may_copy() {
            return Err(self.peer_error(place.view.rank, "has died", "copy"));
        }
        Ok(Some(peer.pid))
    }

    /// Does an atomic operation, if this process can by itself; the old value.
    #[inline(always)]
    pub(super) fn fetch_at_once(&self, f: &Fetch) -> Result<Option<u64>> {
        let what = f.op.name(f.wide);
        let usage: Using<'_> = self.use_of(f.at, what)?;
        let place = self.resolve_word(f, &usage)?;
        if place.view.changes {
            return match &self.device {
                // Never mixed with the processor's on a word.
                Some(device) if place.view.rank == self.rank() => {
                    device.fetch(self.split.key(f.at), place.addr, f).map(Some)
                }
                _ => Ok(None),
            };
        }
        Ok(place.here.map(|at| f.apply(at)))
    }

    /// Where the word of an atomic operation is, aligned in its owner's memory: how its global address ends says nothing about that.
    #[inline(always)]
    pub(super) fn resolve_word<'a>(&'a self, f: &Fetch, usage: &'a Using<'_>) -> Result<Place<'a>> {
        let what = f.op.name(f.wide);
        let place = self.resolve(f.at, f.bytes(), usage, what)?;
        if !place.addr.is_multiple_of(f.bytes() as u64) {
            return Err(self.misaligned(f.at, what));
        }
        Ok(place)
    }

    #[cold]
    pub(super) fn misaligned(&self, ga: GlobalAddress, what: &str) -> Error {
        error!(
            Code::Argument,
            "rank {}: {what} at {ga}, which is no multiple of the word's size in memory",
            self.rank()
        )
    }
}
