//! Other ranks' tables of registered memory: entries that are read once and kept, until their owner asks for them to be discarded.
//!
//! Who keeps any has its bit in the owner's holders. An owner that takes a key back clears the bits that it finds, and asks those ranks to
//! discard what they keep of it; their answer comes when no operation of theirs uses it any more. A rank sets its bit before it reads, and
//! the owner clears the entry before it looks at the bits, so one of the two sees the other, as with uses on a node
//! ([`crate::rma::view`]).

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Device, Reach, Remote, lock};
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::{Change, Place};
use crate::rma::record::Entry;
use crate::rma::view::View;
use crate::rma::{GlobalAddress, Rma};

/// Entries that are fetched at a time.
const CHUNK: usize = 256;

/// What is kept of a rank's table. An operation under way has it too.
#[derive(Debug, Default)]
pub(in crate::rma) struct Table {
    chunks: Mutex<HashMap<u32, Box<[[u64; 4]]>>>,
}

impl Device {
    /// What is kept of a rank's table; from here on the rank knows it.
    fn table_of(&self, remote: &Remote, rank: u32) -> Result<Arc<Table>> {
        let mut held = lock(&self.held);
        if let Some(table) = held.get(&rank) {
            return Ok(table.clone());
        }
        if held.len() >= self.held_most {
            let unused = held.iter().find(|(_, t)| Arc::strong_count(t) == 1).map(|(rank, _)| *rank);
            unused.and_then(|rank| held.remove(&rank));
        }
        // Under the lock: who is asked to discard in the meantime waits for it, and finds the table.
        let (word, bit) = (remote.word(remote.plan.holders() + self.rank as usize / 64 * 8), 1u64 << (self.rank % 64));
        // Only this rank sets its bit, and only the owner clears it.
        if self.change(remote, word, Change::Add(0))? & bit == 0 {
            self.change(remote, word, Change::Add(bit))?;
        }
        let table = Arc::new(Table::default());
        held.insert(rank, table.clone());
        Ok(table)
    }

    /// Words of an entry: life, first byte, length, keys.
    fn entry(&self, remote: &Remote, table: &Table, n: u32, anew: bool) -> Result<[u64; 4]> {
        let chunk = n / CHUNK as u32;
        if let Some(kept) = lock(&table.chunks).get(&chunk).filter(|_| !anew) {
            return Ok(kept[n as usize % CHUNK]);
        }
        let mut words = [0u64; CHUNK * 4];
        let place = Place {
            addr: remote.card.table.addr + u64::from(chunk) * (CHUNK * size_of::<Entry>()) as u64,
            rkey: remote.card.table.rkey,
        };
        self.read(remote, place, &mut words)?;
        let fresh: Box<[[u64; 4]]> = words.chunks_exact(4).map(|w| [w[0], w[1], w[2], w[3]]).collect();
        let entry = fresh[n as usize % CHUNK];
        lock(&table.chunks).insert(chunk, fresh);
        Ok(entry)
    }

    /// Takes out what is kept of a rank.
    pub fn discard(&self, rank: u32) -> Option<Arc<Table>> {
        lock(&self.held).remove(&rank)
    }

    /// Takes out the ranks of the world that may have entries of this one.
    pub fn take_holders(&self) -> Result<Vec<u32>> {
        let mut ranks = Vec::new();
        for (group, at) in (self.plan.holders()..self.plan.replies()).step_by(8).enumerate() {
            let mut bits = self.word(at).load(Ordering::Acquire);
            if bits != 0 {
                // What another rank sets meanwhile stays: it is a bit of its own.
                let region = self.block.region();
                let place = Place { addr: region.addr() + at as u64, rkey: region.rkey() };
                self.own.change(place, Change::Add(bits.wrapping_neg()))?;
            }
            while bits != 0 {
                ranks.push(group as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
            // Any bit may have been set there.
            ranks.retain(|rank| (*rank as usize) < self.plan.size);
        }
        Ok(ranks)
    }
}

impl Rma {
    /// What an address means to the device.
    pub(in crate::rma) fn reach(
        &self,
        view: &View,
        ga: GlobalAddress,
        len: usize,
        writes: bool,
        what: &str,
    ) -> Result<Reach> {
        let (device, remote) = self.remote(view)?;
        if let Some(why) = remote.gone() {
            return Err(self.peer_error(view.rank, why, what));
        }
        let table = device.table_of(remote, view.rank)?;
        let n = self.split.key(ga);
        let mut looked = false;
        loop {
            // What is not there in the copy may have come since it was made.
            let [life, base, have, keys] = device.entry(remote, &table, n, looked)?;
            match self.judge([life, base, have], ga, n, self.split.offset(ga), len, what) {
                Ok((addr, _)) if writes && life & Entry::READ_ONLY != 0 => {
                    let text = format!(
                        "rank {}: {what}: the memory at {ga} ({addr:#x} of its owner) can only be read",
                        self.rank()
                    );
                    return Err(Error::new(Code::Argument, text));
                }
                Ok((addr, _)) => return Ok(Reach { place: Place { addr, rkey: keys as u32 }, table }),
                Err(e) if looked => return Err(e),
                Err(_) => looked = true,
            }
        }
    }
}
