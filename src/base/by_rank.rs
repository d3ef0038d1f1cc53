//! What a process keeps of some ranks of a job that may have millions: found by rank without a lock, made when it is first needed, and there
//! until the whole goes. It takes memory for the ranks that were needed and their neighbours, none for the size of the job.

use super::published::Published;

/// Bits of a rank that a node of the tree tells apart.
const BITS: u32 = 6;
/// What a node has below it.
const WIDTH: u32 = 1 << BITS;

/// By rank. A small job has one leaf and no branches.
pub struct ByRank<T> {
    size: u32,
    /// Branches above a leaf.
    height: u32,
    root: Node<T>,
}

enum Node<T> {
    Leaf(Box<[T]>),
    Branch(Box<[Published<Node<T>>]>),
}

impl<T: Default + Send + Sync> Node<T> {
    fn new(height: u32, entries: u32) -> Node<T> {
        match height {
            0 => Node::Leaf((0..entries).map(|_| T::default()).collect()),
            _ => Node::Branch((0..entries).map(|_| Published::nothing()).collect()),
        }
    }

    /// What has been made below this node, whose first rank is `first`.
    fn all<'a>(&'a self, height: u32, first: u32, found: &mut Vec<(u32, &'a T)>) {
        match self {
            Node::Leaf(all) => found.extend((first..).zip(all.iter())),
            Node::Branch(below) => {
                for (k, node) in (0..).zip(below.iter()) {
                    if let Some(node) = node.get() {
                        node.all(height - 1, first + (k << (height * BITS)), found);
                    }
                }
            }
        }
    }
}

impl<T: Default + Send + Sync> ByRank<T> {
    /// For the ranks of a job of this size.
    pub fn new(size: u32) -> ByRank<T> {
        let bits = u32::BITS - size.saturating_sub(1).leading_zeros();
        let height = bits.saturating_sub(1) / BITS;
        ByRank { size, height, root: Node::new(height, size.div_ceil(1 << (height * BITS))) }
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// What there is of a rank; `None`: nothing was made of it or of a neighbour, or there is no such rank.
    #[inline]
    pub fn get(&self, rank: u32) -> Option<&T> {
        self.find(rank, |place, _| place.get())
    }

    /// The same, made where there is nothing yet; `None`: there is no such rank.
    #[inline]
    pub fn get_or_make(&self, rank: u32) -> Option<&T> {
        self.find(rank, |place, height| Some(place.get_or_make(|| Node::new(height, WIDTH))))
    }

    /// The entry of a rank, by way of nodes as `step` finds them at their places, given how high they are.
    #[inline(always)]
    fn find<'a>(
        &'a self,
        rank: u32,
        step: impl Fn(&'a Published<Node<T>>, u32) -> Option<&'a Node<T>>,
    ) -> Option<&'a T> {
        let (mut node, mut height) = (&self.root, self.height);
        if rank >= self.size {
            return None;
        }
        loop {
            let at = (rank >> (height * BITS) & (WIDTH - 1)) as usize;
            match node {
                Node::Leaf(all) => return all.get(at),
                Node::Branch(below) => {
                    height -= 1;
                    node = step(below.get(at)?, height)?;
                }
            }
        }
    }

    /// All that has been made: of ranks that were needed, and of neighbours.
    pub fn all(&self) -> Vec<(u32, &T)> {
        let mut found = Vec::new();
        self.root.all(self.height, 0, &mut found);
        found.retain(|(rank, _)| *rank < self.size);
        found
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU32, Ordering};

    proptest! {
        #[test]
        fn what_is_kept_of_a_rank_is_found_by_it(
            size in prop_oneof![1u32..200, 4000u32..4200, 262_000u32..263_000, Just(1 << 22), Just(1 << 23)],
            ranks in prop::collection::vec(any::<u32>(), 0..50),
        ) {
            let (kept, mut expected) = (ByRank::<AtomicU32>::new(size), BTreeMap::new());
            for (n, rank) in (1..).zip(ranks.iter().map(|rank| rank % size).chain([0, size - 1])) {
                kept.get_or_make(rank).unwrap().store(n, Ordering::Relaxed);
                expected.insert(rank, n);
            }
            for rank in [size, size.saturating_add(1 << 12), u32::MAX] {
                prop_assert!(kept.get(rank).is_none() && kept.get_or_make(rank).is_none());
            }
            for (rank, n) in &expected {
                prop_assert_eq!(kept.get(*rank).unwrap().load(Ordering::Relaxed), *n);
            }
            let all: Vec<_> = kept.all().into_iter().map(|(rank, n)| (rank, n.load(Ordering::Relaxed))).collect();
            prop_assert!(all.is_sorted() && all.len() <= 64 * expected.len());
            let used: BTreeMap<u32, u32> = all.into_iter().filter(|(_, n)| *n != 0).collect();
            prop_assert_eq!(used, expected);
        }
    }

    #[test]
    fn threads_find_what_others_have_made() {
        let kept = ByRank::<AtomicU32>::new(1 << 22);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    (0..1000).for_each(|k| _ = kept.get_or_make(k * 4099).unwrap().fetch_add(1, Ordering::Relaxed))
                });
            }
        });
        assert!((0..1000).all(|k| kept.get(k * 4099).unwrap().load(Ordering::Relaxed) == 4));
    }
}
