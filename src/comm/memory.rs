//! What memory this process takes for its job, by component: pages that are there, as the kernel keeps them, of what the library knows to
//! be its own.

use crate::base::error::Result;
use crate::fabric::shm::region::{
    ANY_AT, ARENAS_AT, BOARD_AT, GROUPS_AT, HEAP_AT, LANES_AT, LIVES_AT, NODE_AT, PLACES_AT, REGION_END, RMA_AT,
    RMA_END, SPOOL_AT,
};
use crate::p2p::endpoint::endpoint;

/// A component and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is for.
    pub name: &'static str,
    /// Bytes of pages that are there.
    pub bytes: u64,
}

/// What says which ranks belong to communicators: of this process, and what it has for all members on its node.
const GROUPS: &str = "ranks of communicators";

/// The parts of a region, by where they begin.
const REGION: [(&str, u64); 14] = [
    ("header and communicators' lives", 0),
    ("notice board, stakes", BOARD_AT),
    ("header and communicators' lives", LIVES_AT),
    ("global memory", RMA_AT),
    ("header and communicators' lives", RMA_END),
    ("table of the node's connections", NODE_AT),
    ("spool", SPOOL_AT),
    ("fmpl_alloc", HEAP_AT),
    ("lanes", LANES_AT),
    ("arenas of collective calls", ARENAS_AT),
    (GROUPS, GROUPS_AT),
    ("rings of any source", ANY_AT),
    ("lanes", PLACES_AT),
    ("", REGION_END),
];

/// `fmpl info --memory` shows it: what is there of each component. A walk over tables of the kernel, for the curious and for tests.
pub fn memory() -> Result<Vec<Part>> {
    let ep = endpoint()?;
    let mut parts: Vec<Part> = Vec::new();
    let mut add = |name: &'static str, bytes: u64| match parts.iter_mut().find(|p| p.name == name) {
        Some(part) => part.bytes += bytes,
        None => parts.push(Part { name, bytes }),
    };
    for window in REGION.windows(2) {
        add(window[0].0, ep.region.allocated(window[0].1, window[1].1)?);
    }
    add(GROUPS, ep.contexts.own_bytes() as u64);
    let pages = Pages::open();
    // Under the guard: other threads may free communicators meanwhile.
    for lane in ep.lanes.all().iter() {
        let (at, len) = lane.private_memory();
        add("lanes: numbers and sides of their indices", pages.present(at, len));
        if let Some(remote) = lane.remote() {
            add("between nodes: state of indices", remote.state_bytes() as u64);
        }
    }
    for (at, len) in ep.spool.tables() {
        add("spool: tables", pages.present(at, len));
    }
    if let Some(fabric) = ep.fabric_here() {
        for (name, bytes) in fabric.memory() {
            add(name, bytes);
        }
        add("between nodes: queues shared with the device", mapped_by("/dev/infiniband"));
    }
    parts.retain(|p| p.bytes > 0);
    Ok(parts)
}

/// What the kernel says of the pages of this process (Linux, Documentation/admin-guide/mm/pagemap.rst).
struct Pages(Option<std::fs::File>);

impl Pages {
    fn open() -> Pages {
        Pages(std::fs::File::open("/proc/self/pagemap").ok())
    }
    /// Bytes of the pages of a range that are there for this process alone (bits 63 and 56), or swapped out (62): not the page of zeros that
    /// stands for those which were only read.
    fn present(&self, at: *const u8, len: usize) -> u64 {
        use std::os::unix::fs::FileExt;
        let Some(file) = &self.0 else { return 0 };
        let page = crate::fabric::shm::region::page_size();
        let (mut n, end) = (at as usize / page * 8, (at as usize + len).div_ceil(page) * 8);
        let mut words = vec![0u8; 64 << 10];
        let mut there = 0;
        while n < end {
            let take = words.len().min(end - n);
            if file.read_exact_at(&mut words[..take], n as u64).is_err() {
                break;
            }
            there += words[..take].chunks_exact(8).filter(|w| w[7] & 0x81 == 0x81 || w[7] & 0x40 != 0).count();
            n += take;
        }
        (there * page) as u64
    }
}

/// Bytes that are there of the mappings of files with this name.
pub fn mapped_by(file: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut ours = false;
    let mut kb = 0u64;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Rss:") if ours => kb += words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0),
            Some(first) if !first.ends_with(':') => ours = line.contains(file),
            _ => {}
        }
    }
    kb * 1024
}
