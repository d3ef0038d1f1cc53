//! The tree of the keepers: who stands above whom, how many ranks have come, and the numbers that the keepers get when
//! all have.
//!
//! Each keeper is responsible for a range of ranks, the root for all. It divides its own into [`BRANCHES`] parts, and
//! the first keeper that comes with a rank of a part is its child, responsible for the part. Whoever comes later is
//! sent to that child, and reads so in the greeting: it need not say a word. So nobody has more than four children, the
//! tree is as deep as the number of ranks has digits to the base 4, at most, and nobody had to plan it.
//!
//! Counts of those who have come go up. At the root they say when all are here: as many as there are ranks, and a sum
//! over them that is right, so that no rank has come twice instead of another. Then the numbers go down, each keeper's
//! own first, then those of its children's ranges.

/// Children of a keeper.
pub(super) const BRANCHES: usize = 4;

/// Who has come, in a keeper's range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) ranks: u64,
    /// Of numbers that stand for the ranks.
    pub(super) sum: u64,
    pub(super) keepers: u64,
}

impl Came {
    pub(super) fn rank(rank: u32) -> Came {
        Came { ranks: 1, sum: mixed(rank), keepers: 0 }
    }

    fn and(self, other: Came) -> Came {
        let sum = self.sum.wrapping_add(other.sum);
        Came { ranks: self.ranks + other.ranks, sum, keepers: self.keepers + other.keepers }
    }
}

/// A number of the rank's own: sums of different sets differ (splitmix64).
fn mixed(rank: u32) -> u64 {
    let mut z = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A range of ranks, the end not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::launch) struct Range(pub(in crate::launch) u32, pub(in crate::launch) u32);

impl Range {
    fn part(self, k: usize) -> Range {
        let bound = |k: u64| self.0 + ((self.1 - self.0) as u64 * k / BRANCHES as u64) as u32;
        Range(bound(k as u64), bound(k as u64 + 1))
    }

    fn has(self, rank: u32) -> bool {
        (self.0..self.1).contains(&rank)
    }

    /// The part with this rank.
    pub(in crate::launch) fn part_of(self, rank: u32) -> Option<usize> {
        (0..BRANCHES).find(|k| self.part(*k).has(rank))
    }
}

/// The keeper of a part.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) rank: u32,
    /// Where its door is.
    pub(super) at: String,
    /// As the server calls it.
    pub(super) branch: usize,
    pub(super) came: Came,
}

/// What of the tree a keeper knows.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) range: Range,
    pub(super) children: [Option<Child>; BRANCHES],
    own: Came,
    /// What the one above was told.
    told: Came,
}

/// A child's part of the numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) part: usize,
    pub(super) first: u64,
    /// Where the keeper behind its last one is.
    pub(super) next: String,
}

impl Family {
    pub(super) fn new(range: Range) -> Family {
        let own = Came { keepers: 1, ..Came::default() };
        Family { range, children: Default::default(), own, told: Came::default() }
    }

    /// One of the ranks here has come.
    pub(super) fn comes(&mut self, rank: u32) {
        self.own = self.own.and(Came::rank(rank));
    }

    /// All that have come.
    pub(super) fn came(&self) -> Came {
        self.children.iter().flatten().fold(self.own, |all, child| all.and(child.came))
    }

    /// What is to be told above, if that is anything new.
    pub(super) fn news(&mut self) -> Option<Came> {
        let came = self.came();
        (std::mem::replace(&mut self.told, came) != came).then_some(came)
    }

    /// Whether there is anything new.
    pub(super) fn has_news(&self) -> bool {
        self.told != self.came()
    }

    /// Have just as many come as there are ranks in the range?
    pub(super) fn is_complete(&self) -> bool {
        self.came().ranks == (self.range.1 - self.range.0) as u64
    }

    /// At the root: are these all of the ranks? `Err`: more have come than there are, or one twice.
    pub(super) fn all_are_here(&self) -> Result<bool, ()> {
        let (came, size) = (self.came(), self.range.1);
        match came.ranks.cmp(&(size as u64)) {
            std::cmp::Ordering::Less => Ok(false),
            std::cmp::Ordering::Equal => {
                let sum = (0..size).fold(0u64, |sum, rank| sum.wrapping_add(mixed(rank)));
                if came.sum == sum { Ok(true) } else { Err(()) }
            }
            std::cmp::Ordering::Greater => Err(()),
        }
    }

    /// The range of a part.
    pub(super) fn part(&self, k: usize) -> Range {
        self.range.part(k)
    }

    /// The children's numbers, if this keeper's is `first` and the keeper behind all of its range is at `next`; and
    /// where the one behind this keeper is.
    pub(super) fn numbers(&self, first: u64, next: &str) -> (Vec<Numbers>, String) {
        let (mut all, mut next) = (Vec::new(), next.to_owned());
        let mut behind = first + self.came().keepers;
        for (part, child) in self.children.iter().enumerate().rev() {
            let Some(child) = child else { continue };
            behind -= child.came.keepers;
            all.push(Numbers { part, first: behind, next: std::mem::replace(&mut next, child.at.clone()) });
        }
        (all, next)
    }

    /// Where the children are, as the greeting says it.
    pub(super) fn below(&self) -> String {
        let at: Vec<&str> = self.children.iter().map(|c| c.as_ref().map_or("-", |c| c.at.as_str())).collect();
        at.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keepers that have come in this order, as `(rank, family)`; the way of each goes down from the root.
    fn grown(size: u32, order: &[u32]) -> Vec<(u32, Family)> {
        let mut all: Vec<(u32, Family)> = Vec::new();
        for rank in order {
            let (mut at, mut depth) = (0, 0);
            let mut range = Range(0, size);
            while let Some((_, family)) = all.get_mut(at) {
                let part = family.range.part_of(*rank).unwrap();
                range = family.part(part);
                depth += 1;
                assert!(depth <= 1 + size.ilog2() / 2 + 1, "{depth} deep for {size}");
                match &family.children[part] {
                    Some(child) => at = child.branch,
                    None => {
                        let child =
                            Child { rank: *rank, at: rank.to_string(), branch: usize::MAX, came: Came::default() };
                        family.children[part] = Some(child);
                        break;
                    }
                }
            }
            let number = all.len();
            for child in all.iter_mut().flat_map(|(_, f)| f.children.iter_mut().flatten()) {
                if child.rank == *rank {
                    child.branch = number;
                }
            }
            let mut family = Family::new(range);
            family.comes(*rank);
            all.push((*rank, family));
        }
        // Those who came last have no children.
        for i in (0..all.len()).rev() {
            let came = all[i].1.news().unwrap();
            for child in all.iter_mut().flat_map(|(_, f)| f.children.iter_mut().flatten()) {
                if child.branch == i {
                    child.came = came;
                }
            }
        }
        all
    }

    proptest! {
        /// In whatever order they come: all are counted, and each gets a number of its own and knows who is next.
        #[test]
        fn all_get_numbers(size in 1u32..400, each in 1u32..9, seed in any::<u64>()) {
            let mut order: Vec<u32> = (0..size).step_by(each as usize).collect();
            order.sort_by_key(|rank| mixed(*rank) ^ mixed(seed as u32).wrapping_mul(*rank as u64 | 1));
            let all = grown(size, &order);
            prop_assert_eq!(all[0].1.came().keepers, order.len() as u64);
            prop_assert_eq!(all[0].1.came().ranks, order.len() as u64);
            prop_assert_eq!(all[0].1.all_are_here(), Ok(order.len() as u32 == size));
            let mut found = vec![None; order.len()];
            let mut left = vec![(0, 0, order[0].to_string())];
            while let Some((at, first, next)) = left.pop() {
                let (numbers, behind) = all[at].1.numbers(first, &next);
                prop_assert!(found[first as usize].replace((all[at].0, behind)).is_none());
                for n in numbers {
                    left.push((all[at].1.children[n.part].as_ref().unwrap().branch, n.first, n.next));
                }
            }
            for (i, of) in found.iter().enumerate() {
                let next = found[(i + 1) % found.len()].as_ref().unwrap().0;
                prop_assert_eq!(&of.as_ref().unwrap().1, &next.to_string());
            }
        }
    }

    #[test]
    fn a_rank_that_has_come_twice_is_noticed() {
        let mut family = Family::new(Range(0, 3));
        [0, 1, 1].iter().for_each(|rank| family.comes(*rank));
        assert_eq!(family.all_are_here(), Err(()));
        let mut family = Family::new(Range(0, 3));
        [0, 1].iter().for_each(|rank| family.comes(*rank));
        assert_eq!(family.all_are_here(), Ok(false));
        family.comes(2);
        assert_eq!((family.all_are_here(), family.has_news()), (Ok(true), true));
        family.news();
        assert!(!family.has_news());
    }

    #[test]
    fn ranges_are_divided_without_gaps() {
        for range in [Range(0, 1), Range(0, 5), Range(3, 1 << 20), Range(0, u32::MAX)] {
            for rank in [range.0, range.0 + (range.1 - range.0) / 2, range.1 - 1] {
                let part = range.part_of(rank).unwrap();
                assert!(range.part(part).has(rank));
            }
            assert_eq!((range.part(0).0, range.part(3).1), (range.0, range.1));
        }
    }
}
