//! Ranks of a job that are no processes: whoever starts the others answers for them. So a job may have millions of ranks of which four run, which
//! is how their memory is looked at (`fmpl info --memory --ghosts`).
//!
//! The real ranks are the lowest, on one node; the ghosts are on nodes of their own behind it, as many on each. What a ghost would have published at
//! start-up is made when somebody asks for it, and whoever answers for them hears what the real ranks publish.

use super::place::Placed;
use super::wire;
use std::fmt;
use std::sync::Arc;

/// See the head of this file.
#[derive(Clone)]
pub struct Ghosts {
    world: u32,
    real: u32,
    each: u32,
    side: Arc<dyn Side>,
}

/// Who answers for the ghosts.
pub trait Side: Send + Sync {
    /// What the rank that has such a key would have published under it. `None`: nothing.
    fn value(&self, key: &str) -> Option<Vec<u8>>;
    /// A real rank has published this.
    fn is_told(&self, key: &str, value: &[u8]);
}

impl fmt::Debug for Ghosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ranks {} to {} of {}", self.real, self.world - 1, self.world)
    }
}

impl Ghosts {
    /// All ranks of a world of so many but the first `real`, as many on each node.
    pub fn new(world: u32, real: u32, side: Arc<dyn Side>) -> Ghosts {
        Ghosts { world: world.max(real), real: real.max(1), each: real.max(1), side }
    }
    /// Ranks of the job.
    pub(super) fn world(&self) -> usize {
        self.world as usize
    }

    /// A piece of a value as it goes over the wire.
    pub(super) fn piece(&self, key: &str, most: usize) -> Option<String> {
        let (name, k) = match key.rsplit_once('~') {
            Some((name, k)) => (name, k.parse().ok()?),
            None => (key, 0),
        };
        let value = self.placed(name).or_else(|| self.side.value(name))?;
        wire::pieces(&value, most).into_iter().nth(k)
    }

    /// Where the ghosts from some rank on are, as ranks tell each other at the start.
    fn placed(&self, key: &str) -> Option<Vec<u8>> {
        let (span, rank) = key.strip_prefix("fmpl-nodes-")?.split_once('-')?;
        let (span, rank): (u64, u64) = (span.parse().ok()?, rank.parse().ok()?);
        let (world, each) = (u64::from(self.world), u64::from(self.each));
        let first = rank.next_multiple_of(each);
        let end = (rank + span).min(world);
        let whole = end.min(world / each * each).saturating_sub(first).div_ceil(each);
        let mut placed = Placed::blocks(first as u32, whole as u32, self.each);
        let last = first + whole * each;
        if last < end {
            placed.push(&(last as u32..self.world).collect::<Vec<_>>());
        }
        Some(placed.encode())
    }

    /// A real rank has put a line.
    pub(super) fn is_put(&self, key: &str, value: &str) {
        if let Some((1, digits)) = wire::first_piece(value)
            && let Some(bytes) = wire::unhex(digits)
        {
            self.side.is_told(key, &bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::place::NodeMap;

    struct Nobody;
    impl Side for Nobody {
        fn value(&self, _key: &str) -> Option<Vec<u8>> {
            None
        }
        fn is_told(&self, _key: &str, _value: &[u8]) {}
    }

    /// As `Launch::gather` asks for it, level by level.
    #[test]
    fn where_they_are_makes_the_map_of_the_world() {
        for world in [4u32, 5, 16, 4099, 1 << 14] {
            let ghosts = Ghosts::new(world, 4, Arc::new(Nobody));
            let mut known = Placed::default();
            known.push(&[0, 1, 2, 3]);
            let mut span = 4u64;
            while span < u64::from(world) {
                for from in (span..(4 * span).min(u64::from(world))).step_by(span as usize) {
                    let piece = ghosts.piece(&format!("fmpl-nodes-{span}-{from}"), 1000).expect("a value");
                    let (1, digits) = wire::first_piece(&piece).unwrap() else { panic!("{piece}") };
                    known.append(&wire::unhex(digits).unwrap()).unwrap();
                }
                span *= 4;
            }
            assert_eq!(known.map(world), Some(NodeMap::new(&(0..world).map(|r| r / 4).collect::<Vec<_>>())), "{world}");
        }
    }
}
