//! What another process of the same user reads of the lanes of this one, for `fmpl top`: nothing is written for it, and nobody is asked.
//!
//! ```text
//!  header of the region ── signpost ── list of lanes ── key, limit, progress ── numbers of each slot
//!                                                    └─ counts of the pair
//! ```
//! All of it but the header is private memory, which the kernel copies out (`process_vm_readv`). It changes meanwhile, so numbers may be a
//! message off, and those of a lane that is freed at this moment are left out. What is read is counted, never used as an address of
//! this process.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use super::map::{SLOTS, SYSTEM_INDICES};
use super::progress::{LOANED_AT, PROGRESS_GROUP, PROGRESS_STRIDE, Progress};
use super::remote::REMOTE;
use super::traffic::{COUNTS, Sums, Traffic};
use super::{COMM_WORLD, Lane};
use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::plain::bytes_of_mut;
use crate::fabric::shm::cma;
use crate::fabric::shm::region::page_size;

/// Where the list of lanes lies in this process, and how many there are.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Signpost {
    lanes: AtomicU64,
    count: AtomicU64,
}

impl Signpost {
    /// The list has changed.
    pub fn show(&self, lanes: &[&'static Lane]) {
        self.count.store(lanes.len() as u64, Ordering::Relaxed);
        self.lanes.store(lanes.as_ptr() as u64, Ordering::Relaxed);
    }
}

/// A lane up to what is not read of it.
const HEAD: usize = offset_of!(Lane, spooled);
/// More lanes than a process can have.
const LANES_MOST: u64 = 1 << 24;
/// So many are read together, which takes half a megabyte here.
const LANES_AT_A_TIME: usize = 128;

/// The messages of process `pid`, whose signpost lies at `at`.
pub fn traffic(pid: libc::pid_t, at: u64) -> io::Result<Traffic> {
    let mut signpost = [0u64; size_of::<Signpost>() / 8];
    read(pid, &mut [(at, &mut signpost)])?;
    let mut lanes = vec![0u64; signpost[1].min(LANES_MOST) as usize];
    read(pid, &mut [(signpost[0], &mut lanes)])?;
    let pages = File::open(format!("/proc/{pid}/pagemap"))?;
    let mut all = Traffic::default();
    // A few hundred system calls for a thousand peers. One lane of them may be freed meanwhile: then each by itself.
    for lanes in lanes.chunks(LANES_AT_A_TIME) {
        if add_lanes(pid, lanes, &pages, &mut all).is_err() {
            for lane in lanes {
                // It is gone, and its messages are among those of freed communicators at the next look.
                let _ = add_lanes(pid, &[*lane], &pages, &mut all);
            }
        }
    }
    all.settle();
    Ok(all)
}

/// What is read of a lane first, and of its pair.
struct Known {
    head: [u64; HEAD.div_ceil(8)],
    counts: [u64; COUNTS],
}

impl Known {
    fn word(&self, offset: usize) -> u64 {
        self.head[offset / 8] >> (offset % 8 * 8)
    }
    fn key(&self) -> u64 {
        self.word(offset_of!(Lane, key))
    }
    fn is_of_world(&self) -> bool {
        Lane::comm_of(self.key()) == COMM_WORLD
    }
}

/// Adds all of these lanes, or none.
fn add_lanes(pid: libc::pid_t, lanes: &[u64], pages: &File, all: &mut Traffic) -> io::Result<()> {
    let mut known: Vec<Known> = lanes.iter().map(|_| Known { head: [0; _], counts: [0; COUNTS] }).collect();
    let mut heads: Vec<_> = lanes.iter().zip(&mut known).map(|(at, known)| (*at, &mut known.head[..])).collect();
    read(pid, &mut heads)?;
    let places: Vec<u64> = known.iter().map(|known| known.word(offset_of!(Lane, counts))).collect();
    let of_pairs = known.iter_mut().zip(places).filter(|(known, _)| known.is_of_world());
    let mut counts: Vec<_> = of_pairs.map(|(known, at)| (at, &mut known.counts[..])).collect();
    read(pid, &mut counts)?;
    let mut groups = Vec::new();
    for (lane, known) in known.iter().enumerate() {
        groups_of(known, lane, pages, &mut groups)?;
    }
    let mut records: Vec<_> = groups.iter_mut().map(|group| (group.at, group.records.as_flattened_mut())).collect();
    read(pid, &mut records)?;
    let mut sums: Vec<Sums> =
        known.iter().map(|known| Sums { bytes: known.word(offset_of!(Lane, sent_bytes)), ..Sums::default() }).collect();
    for group in &groups {
        group.records.iter().for_each(|record| add_slot(&mut sums[group.lane], record));
    }
    for (known, sums) in known.iter().zip(sums) {
        all.add(known.key() & REMOTE != 0, sums, known.is_of_world().then_some(known.counts));
    }
    Ok(())
}

/// The records of neighbouring slots of the program.
struct Group {
    lane: usize,
    at: u64,
    records: Vec<[u64; PROGRESS_STRIDE / 8]>,
}

/// The groups of a lane's slots that are there: a lane that has no more than one has used it.
fn groups_of(known: &Known, lane: usize, pages: &File, groups: &mut Vec<Group>) -> io::Result<()> {
    let progress = known.word(offset_of!(Lane, progress));
    let slots = (known.word(offset_of!(Lane, limit)) as u32 as usize).min(SLOTS);
    let (size, page) = ((PROGRESS_GROUP * PROGRESS_STRIDE) as u64, page_size() as u64);
    let many = slots.div_ceil(PROGRESS_GROUP);
    let mut entries = vec![u64::MAX; (many as u64 * size).div_ceil(page) as usize];
    if entries.len() > 1 {
        pages.read_exact_at(bytes_of_mut(&mut entries), progress / page * 8)?;
    }
    for group in 0..many {
        // In memory, or swapped out: else it was never written (Linux, Documentation/admin-guide/mm/pagemap.rst).
        let (at, begin) = (group as u64 * size, group * PROGRESS_GROUP);
        if entries[(at / page) as usize] >> 62 != 0 {
            let last = (slots - begin).min(PROGRESS_GROUP);
            let first = SYSTEM_INDICES.saturating_sub(begin).min(last);
            let at = progress + at + (first * PROGRESS_STRIDE) as u64;
            groups.push(Group { lane, at, records: vec![[0; _]; last - first] });
        }
    }
    Ok(())
}

fn add_slot(sums: &mut Sums, record: &[u64; PROGRESS_STRIDE / 8]) {
    let word = |offset: usize| record[offset / 8] >> (offset % 8 * 8);
    sums.sent = sums.sent.wrapping_add(word(offset_of!(Progress, sent)));
    sums.received = sums.received.wrapping_add(word(offset_of!(Progress, received)));
    sums.bytes = sums.bytes.wrapping_add(word(offset_of!(Progress, sent_bytes)) as u32 as u64);
    sums.loans = [0, 1].map(|k| sums.loans[k].wrapping_add(word(LOANED_AT + k * 8)));
}

fn read(pid: libc::pid_t, runs: &mut [(u64, &mut [u64])]) -> io::Result<()> {
    cma::read_many(pid, runs).map_err(|error| io::Error::other(format!("memory of process {pid}: {error:?}")))
}
