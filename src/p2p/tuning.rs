//! The tuning table: which way a payload takes, by size. `fmpl bench tune` measures it; the settings override it.

use crate::base::config::{Config, Way};
use crate::lane::map::{ANNEX_BYTES, ANNEX_MOST, TURN_BYTES};

/// The table as it holds for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The forced way, or `Auto`.
    pub way: Way,
    /// Up to this many bytes a message is sent without waiting for its receive.
    pub eager: usize,
    /// Up to this many bytes it goes through an annex, and the long annex behind it unless another way is forced.
    pub annex: usize,
    /// Up to this many bytes a message to a waiting receiver goes through the ring.
    pub ring_max: usize,
    /// Up to this many bytes a message to a waiting receiver goes through memory used in turn. 0: never.
    pub turn_max: usize,
    /// log2 of the bytes of a chunk of the ring, for messages up to 16 KiB and above.
    pub ring_chunk_log: u32,
    /// Chunks of the ring that are in use: few, so that they stay in the caches.
    pub ring_chunks: usize,
    /// From this many bytes on the copying is shared.
    pub coop_min: usize,
    /// Up to twice these bytes a shared copy is cut in two halves; longer ones into runs of eight times as much.
    pub coop_piece: usize,
}

impl Tuning {
    /// The shipped defaults, and what the settings say. `crowded`: more ranks than cores, so nobody has time to share copying.
    pub fn new(config: &Config, crowded: bool) -> Tuning {
        let forced = config.way;
        let default = Tuning {
            way: forced,
            eager: 4096,
            annex: ANNEX_MOST,
            ring_max: 64 << 10,
            turn_max: if forced == Way::Auto { 9 << 20 } else { 0 },
            ring_chunk_log: 11,
            ring_chunks: 3,
            coop_min: if crowded { usize::MAX } else { (64 << 10) + 1 },
            coop_piece: 512 << 10,
        };
        let mut t = default;
        match forced {
            Way::Auto => {}
            Way::Spool => t.eager = usize::MAX >> 1,
            Way::Ring => (t.ring_max, t.eager) = (usize::MAX, 0),
            Way::Turn => (t.turn_max, t.ring_max, t.eager) = (TURN_BYTES, usize::MAX, 0),
            Way::Coop => (t.coop_min, t.eager) = (0, 0),
            Way::Store | Way::Cma => t.eager = 0,
        }
        t.eager = config.eager_bytes.unwrap_or(t.eager);
        t.annex = if forced == Way::Auto { t.eager.clamp(ANNEX_BYTES, ANNEX_MOST) } else { ANNEX_BYTES };
        t.ring_max = config.ring_max.unwrap_or(t.ring_max);
        t.turn_max = config.turn_max.unwrap_or(t.turn_max).min(TURN_BYTES);
        t.ring_chunk_log = config.ring_chunk.map_or(t.ring_chunk_log, |n| n.trailing_zeros());
        t.ring_chunks = config.ring_chunks.unwrap_or(t.ring_chunks);
        t.coop_min = config.coop_min.unwrap_or(t.coop_min);
        t.coop_piece = config.coop_piece.unwrap_or(t.coop_piece);
        t
    }
}
