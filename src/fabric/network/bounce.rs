//! Registered memory that bytes pass through: where the memory of the program is not registered, and for single words.

use std::sync::PoisonError;

use super::control::Fabric;
use super::device::{Change, Piece, Place};
use super::link::{Last, Link};
use super::region::Arena;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::fabric::network::Access;

/// Bytes of a bounce buffer.
pub const BOUNCE_BYTES: usize = 64 << 10;

/// A bounce buffer: registered memory that bytes pass through. Dropping it gives it back.
pub struct Bounce<'a> {
    fabric: &'a Fabric,
    arena: Option<Arena>,
}

impl Bounce<'_> {
    /// Its memory, [`BOUNCE_BYTES`] long.
    pub fn arena(&self) -> &Arena {
        self.arena.as_ref().expect("taken by drop only")
    }
    /// The same, to be copied to and from.
    pub(crate) fn run(&self) -> Run {
        // SAFETY: the caller's alone, who waits for what devices do to it before it gives the buffer back.
        unsafe { Run::new(self.arena().as_ptr(), BOUNCE_BYTES) }
    }
    /// The word at an offset.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.run().part(at, 8).words()[0]
    }
    /// A write that a [read](Bounce::post) of the same peer follows at once, with which it may go.
    pub(crate) fn post_followed(&self, link: &Link, at: usize, len: usize, remote: Place) -> Result<u64> {
        let last = if link.limits().reads_early { Last::Followed } else { Last::No };
        // SAFETY: as in `post`.
        unsafe { link.bulk(true, last, &[self.piece(at, len)], remote) }
    }
    /// [`Link::bulk`] of a part of it. It is waited for before the part is used again, and before the buffer is given back.
    pub(crate) fn post(
        &self,
        link: &Link,
        (push, last): (bool, bool),
        at: usize,
        len: usize,
        remote: Place,
    ) -> Result<u64> {
        // SAFETY: a part of the buffer, which is registered.
        unsafe { link.bulk(push, Last::of(last), &[self.piece(at, len)], remote) }
    }
    /// [`Link::atomic`], to its end: what was there.
    pub(crate) fn change(&self, link: &Link, change: Change, remote: Place) -> Result<u64> {
        let ticket = self.post_change(link, change, 0, remote)?;
        link.wait(ticket)?;
        Ok(self.word(0))
    }
    fn post_change(&self, link: &Link, change: Change, at: usize, remote: Place) -> Result<u64> {
        // SAFETY: a word of the buffer, which is registered, and left alone until it is waited for.
        unsafe { link.atomic(change, self.piece(at, 8), remote) }
    }
    /// Starts to append what lies at an offset of the buffer, so many bytes; what the word was comes to another offset. A read follows at once.
    pub(crate) fn post_append(
        &self,
        link: &Link,
        what: (u64, u32),
        (old, at, len): (usize, usize, usize),
        remote: Place,
    ) -> Result<u64> {
        // SAFETY: parts of the buffer, which is registered, and left alone until the read behind it is over.
        unsafe { link.append(what, [self.piece(old, 8), self.piece(at, len)], remote) }
    }
    /// Starts to add one; what was there comes to an offset of the buffer, and is waited for as with [`post`](Bounce::post).
    pub(crate) fn post_draw(&self, link: &Link, at: usize, remote: Place) -> Result<u64> {
        self.post_change(link, Change::Add(1), at, remote)
    }
    /// Adds one: what was there.
    pub fn draw(&self, link: &Link, remote: Place) -> Result<u64> {
        self.change(link, Change::Add(1), remote)
    }
    fn piece(&self, at: usize, len: usize) -> Piece {
        let run = self.run().part(at, len);
        Piece { addr: run.ptr() as u64, len: run.len() as u32, lkey: self.arena().region().lkey() }
    }
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        let mut free = self.fabric.shared.bounces.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < BOUNCES
            && let Some(arena) = self.arena.take()
        {
            free.push(arena);
        }
    }
}

/// Bounce buffers that are kept.
const BOUNCES: usize = 8;

impl Fabric {
    /// A bounce buffer of its own for the caller.
    pub fn bounce(&self) -> Result<Bounce<'_>> {
        let kept = self.shared.bounces.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let arena = match kept {
            Some(arena) => arena,
            None => Arena::new(self.domain(), BOUNCE_BYTES, Access::LOCAL_WRITE)?,
        };
        Ok(Bounce { fabric: self, arena: Some(arena) })
    }
}
