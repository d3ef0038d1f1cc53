//! The words that a rank can damage: those of its own region, and in others' regions what they share with it.
//!
//! They are found as a wild store would find them, in the memory that is mapped: where a window begins in its region's file says which
//! records are in it. Only pages that somebody has touched are looked at.

use crate::ranks::bytes::Draw;
use crate::ranks::damage::mappings;
use fmpl::fabric::shm::region::*;
use fmpl::lane::map::{LANE_STRIDE, RECORDS_AT};

/// A word, and the record that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub at: *mut u64,
    pub record: &'static str,
    pub region: u32,
    pub offset: u64,
}

/// A stretch of mapped memory of which some page is there.
struct Stretch {
    at: u64,
    offset: u64,
    len: u64,
    region: u32,
}

/// What lies at an offset of a region. `None`: nobody but its owner writes there.
fn record_at(offset: u64, owner: u32, me: u32) -> Option<&'static str> {
    let own = owner == me;
    let mine = |name| own.then_some(name);
    match offset {
        0..64 => mine("region header"),
        BOARD_AT..BOARD_END => mine("board"),
        STAKES_AT..LIVES_AT => mine("stakes"),
        LIVES_AT..RMA_AT => mine("lives"),
        RMA_AT..RMA_END => match offset - RMA_AT {
            // In others' windows: the delegated copy, the holders, the replies and the ring.
            2048..2176 => mine("global memory: header"),
            2240..2304 => Some("global memory: delegated copy"),
            6656..0x10c00 => mine("global memory: uses"),
            0x10c00..0x30_0000 => mine("global memory: table"),
            0x30_0000..0x40_0000 => Some("global memory: holders"),
            0x40_0000..0x80_0000 => Some("global memory: replies"),
            0x80_0000.. => Some("global memory: commands"),
            _ => None,
        },
        SPOOL_AT..HEAP_AT => mine("spool"),
        HEAP_AT..LANES_AT => None,
        LANES_AT..ARENAS_AT => {
            let guest = (offset - LANES_AT) / LANE_STRIDE;
            let with_me = own || guest == me as u64;
            with_me.then(|| in_lane(((offset - LANES_AT) % LANE_STRIDE) as usize))
        }
        ARENAS_AT..ANY_AT => Some("arena"),
        ANY_AT..PLACES_AT => Some("ring of any source"),
        PLACES_AT.. => mine("lane of a communicator"),
        _ => None,
    }
}

fn in_lane(at: usize) -> &'static str {
    RECORDS_AT.iter().rev().find(|(from, _)| at >= *from).map_or("lane header", |(_, name)| name)
}

/// The descriptors of the regions that this process has, by rank.
fn regions() -> Vec<(u32, i32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        let name = target.to_string_lossy().into_owned();
        let rank = name.strip_prefix("/memfd:fmpl-").and_then(|rest| rest.split(' ').next()?.parse().ok());
        if let (Some(rank), Ok(fd)) = (rank, entry.file_name().to_string_lossy().parse()) {
            found.push((rank, fd));
        }
    }
    found
}

/// All words that rank `me` may damage, as pages.
pub struct Records {
    stretches: Vec<Stretch>,
    me: u32,
}

impl Records {
    /// Those that are there now.
    pub fn now(me: u32) -> Records {
        let (mut stretches, mapped) = (Vec::new(), mappings());
        for (rank, fd) in regions() {
            let mut at = 0;
            loop {
                // SAFETY: an open file, whose position nobody relies on.
                let begin = unsafe { libc::lseek(fd, at, libc::SEEK_DATA) };
                if begin < 0 {
                    break;
                }
                // SAFETY: as above.
                let end = unsafe { libc::lseek(fd, begin, libc::SEEK_HOLE) };
                at = end;
                for (from, to, offset, _) in mapped.iter().filter(|m| m.3 == rank) {
                    let (first, last) = ((begin as u64).max(*offset), (end as u64).min(offset + (to - from)));
                    if first < last {
                        let at = from + (first - offset);
                        stretches.push(Stretch { at, offset: first, len: last - first, region: rank });
                    }
                }
            }
        }
        Records { stretches, me }
    }

    fn word(&self, page: u64, draw: &mut Draw) -> Option<Word> {
        let mut left = page;
        let stretch = self.stretches.iter().find(|s| {
            let pages = s.len / 4096;
            let here = left < pages;
            left -= if here { 0 } else { pages };
            here
        })?;
        // What somebody has written is more worth damaging than what nobody has.
        let mut found = None;
        for _ in 0..12 {
            let within = left * 4096 + draw.below(512) as u64 * 8;
            let (at, offset) = ((stretch.at + within) as *mut u64, stretch.offset + within);
            let Some(record) = record_at(offset, stretch.region, self.me) else { continue };
            found = Some(Word { at, record, region: stretch.region, offset });
            // SAFETY: within a mapping of this process.
            if unsafe { at.read_volatile() } != 0 {
                break;
            }
        }
        found
    }

    /// A word of any page.
    pub fn blindly(&self, draw: &mut Draw) -> Option<Word> {
        let pages: u64 = self.stretches.iter().map(|s| s.len / 4096).sum();
        (pages != 0).then(|| draw.number() % pages).and_then(|page| self.word(page, draw))
    }

    /// A word of a kind of record that is drawn first, so that those of few pages are hit as often.
    pub fn aimed(&self, draw: &mut Draw) -> Option<Word> {
        let mut kinds = std::collections::BTreeMap::<&str, Vec<u64>>::new();
        let mut page = 0;
        for s in &self.stretches {
            for k in 0..s.len / 4096 {
                // A page of several kinds counts for each of them.
                for within in (0..4096).step_by(64) {
                    if let Some(record) = record_at(s.offset + k * 4096 + within, s.region, self.me) {
                        let pages = kinds.entry(record).or_default();
                        if pages.last() != Some(&(page + k)) && pages.len() < 64 {
                            pages.push(page + k);
                        }
                    }
                }
            }
            page += s.len / 4096;
        }
        let kind = kinds.values().nth(draw.below(kinds.len().max(1)))?;
        let wanted = kinds.iter().find(|(_, pages)| *pages == kind)?.0;
        let page = kind[draw.below(kind.len())];
        (0..24).find_map(|_| self.word(page, draw).filter(|w| w.record == *wanted))
    }
}

/// Damages a word; what it was and what it is.
pub fn damage(word: &Word, draw: &mut Draw) -> (u64, u64) {
    const WORDS: [u64; 16] = [
        0,
        1,
        2,
        3,
        7,
        64,
        4096,
        0xffff,
        0xff_ffff,
        1 << 31,
        u32::MAX as u64,
        1 << 36,
        1 << 45,
        1 << 63,
        u64::MAX - 63,
        u64::MAX,
    ];
    // SAFETY: mapped memory of this process, aligned; a stray store is what is tried here.
    let old = unsafe { word.at.read_volatile() };
    let new = match draw.below(9) {
        0 | 1 => old ^ 1 << draw.below(64),
        2 => draw.number(),
        3 => WORDS[draw.below(WORDS.len())],
        4 => old.wrapping_add([1, u64::MAX, 64, 1 << 32, 1 << 16][draw.below(5)]),
        5 => old & 0xffff_ffff | WORDS[draw.below(WORDS.len())] << 32,
        6 => old & !0xffff_ffff | WORDS[draw.below(WORDS.len())] & 0xffff_ffff,
        7 => old ^ (draw.number() & 0xff) << (8 * draw.below(8)),
        _ => old.rotate_left(8 * draw.below(8) as u32),
    };
    // SAFETY: as above.
    unsafe { word.at.write_volatile(new) };
    (old, new)
}
