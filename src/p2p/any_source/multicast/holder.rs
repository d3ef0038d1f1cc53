//! A block of a multicast to several nodes, as whoever reads from it sees it: in shared memory, or on another node.

use super::wide::{GIVEN_UP, READY_AT, REMOTE_AT, Wide, left_at};
use crate::base::atomics::Ordering;
use crate::base::error::{Code, Error, Result};
use crate::base::layout::Cursor;
use crate::base::run::Run;
use crate::fabric::network::Place;
use crate::lane::{PeerBlock, Used};
use crate::p2p::any_source::garbled;
use crate::p2p::context::Context;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::remote::{PeerMemory, fetch_into, fetch_words, transfer};

/// Where a block is, for this process.
pub(super) enum Holder {
    /// Its wide record, in shared memory.
    Local(PeerBlock),
    /// On another node.
    Remote(Used, Place),
}

impl Holder {
    /// The block of a rank of the world whose wide record is here: `at` in its spool, `place` by the device.
    pub(super) fn of(ep: &'static Endpoint, context: &Context, rank: u32, at: u64, place: Place) -> Result<Holder> {
        if rank == ep.rank || !ep.is_elsewhere(rank)? {
            if rank != ep.rank && ep.known(rank).is_none() {
                ep.contact(rank)?;
            }
            let record = ep.any_source.spool_of(ep, rank)?.block(at);
            let whole = record.filter(|record| record.at::<Wide>(0).is_some());
            return whole.map(Holder::Local).ok_or_else(|| garbled(ep, rank));
        }
        Ok(Holder::Remote(lane_of(ep, context, rank)?, place))
    }

    /// Bytes of the data that are there.
    pub(super) fn ready(&self) -> Result<u64> {
        match self {
            Holder::Local(record) => Ok(wide_at(*record).ready.load(Ordering::Acquire)),
            // Eight aligned bytes, which a device reads whole.
            Holder::Remote(lane, place) => {
                fetch_words(lane.expect_remote(), from(*place, READY_AT)).map(|[ready]| ready)
            }
        }
    }

    /// Which parts of the message are there, a bit for each in as many words as the group has. `None`: no more come.
    pub(super) fn parts(&self, words: usize) -> Result<Option<Vec<u64>>> {
        let mut all = vec![0; 1 + words];
        self.read_words(READY_AT, &mut all)?;
        Ok((all.remove(0) != GIVEN_UP).then_some(all))
    }

    /// Gives its unit, as this number, to the block of a master that has told all itself.
    pub(super) fn give_flat_unit(&self, words: usize, number: u32) -> Result<()> {
        match self {
            Holder::Local(record) => _ = wide_at(*record).local.fetch_add(1, Ordering::AcqRel),
            // Nobody waits for it but the master.
            Holder::Remote(lane, place) => {
                let at = left_at(words) + 8 * number as usize;
                lane.expect_remote().link.write_with(*place, at, || None, |record| record.put(&[1]))?;
            }
        }
        Ok(())
    }

    /// Gives a unit to the block; the parent's words, if it was the last one of devices.
    pub(super) fn give_unit(&self) -> Result<Option<[u64; 3]>> {
        match self {
            Holder::Local(record) => {
                wide_at(*record).local.fetch_add(1, Ordering::AcqRel);
                Ok(None)
            }
            Holder::Remote(lane, place) => {
                let remote = lane.expect_remote();
                // First: the record may go with the last unit.
                let record: [u64; 8] = fetch_words(remote, PeerMemory::run(place.addr, place.rkey))?;
                let counter = Place { addr: place.addr.wrapping_add(REMOTE_AT), rkey: place.rkey };
                let before = remote.fabric().bounce()?.draw(&remote.link, counter)?;
                Ok((before.wrapping_add(1) == record[3]).then_some([record[4], record[5], record[6]]))
            }
        }
    }

    /// Copies bytes that lie behind the wide record's beginning.
    pub(super) fn read(&self, at: usize, to: Run) -> Result<()> {
        let len = to.len();
        match self {
            _ if len == 0 => Ok(()),
            Holder::Local(record) => {
                record.bytes(at as u64, len as u64).ok_or_else(beyond)?.copy_to(to);
                Ok(())
            }
            Holder::Remote(lane, place) => transfer(lane.expect_remote(), false, to.into(), 0, len, from(*place, at)),
        }
    }

    /// The same into words of this process's own. Each word is whole, but one may be older than those before it.
    pub(super) fn read_words(&self, at: usize, words: &mut [u64]) -> Result<()> {
        match self {
            Holder::Local(record) => {
                let there = record.bytes(at as u64, size_of_val(words) as u64).ok_or_else(beyond)?;
                Cursor::new(there.into(), 0).gather_into(words);
                Ok(())
            }
            Holder::Remote(lane, place) => fetch_into(lane.expect_remote(), from(*place, at), words),
        }
    }
}

/// What lies so many bytes behind a wide record of another node.
fn from(place: Place, at: usize) -> PeerMemory {
    PeerMemory::run(place.addr.wrapping_add(at as u64), place.rkey)
}

/// The record of a holder on this node, which [`Holder::of`] has seen to.
fn wide_at<'a>(record: PeerBlock) -> &'a Wide {
    record.at(0).expect("a record within the window")
}

#[cold]
fn beyond() -> Error {
    Error::new(Code::Peer, "a multicast's block has been damaged: its message lies beyond the spool")
}

/// The way to a rank of the world on another node.
pub(super) fn lane_of(ep: &'static Endpoint, context: &Context, rank: u32) -> Result<Used> {
    let here = context.group.rank_of(rank).ok_or_else(|| garbled(ep, rank))?;
    let lane = ep.lane_of(context, here as i32)?;
    lane.remote().ok_or_else(|| garbled(ep, rank))?;
    Ok(lane)
}
