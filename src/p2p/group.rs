//! Which ranks of the world a communicator consists of, and in which order.
//!
//! The ranks are kept as **runs**: so many ranks of the communicator in a row whose ranks in the world have the same distance. All even
//! ranks, a row or a column of a grid, the world itself or its reverse are one run of 16 bytes, however many ranks there are.
//! A set in the world's order for which a bit for each rank of the world is less is kept as a **bitmap**, with the number of members before each word.
//! Only an order without any pattern costs a run for each of its ranks.
//!
//! ```text
//!  runs      first rank here | first rank in the world | step      … up to the next run's first
//!  bitmap    word: bit = rank of the world | members before this word
//! ```

/// The ranks of a communicator, and which of them this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    size: u32,
    rank: u32,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Runs(Box<[Run]>),
    Bitmap(Box<[Word]>),
}

/// Ranks `first`, `first + 1`, … of a communicator are the ranks `world`, `world + step`, … of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    world: u32,
    step: i64,
}

/// The ranks of the world 64 n to 64 n + 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    bits: u64,
    /// Members before them.
    before: u32,
}

impl Group {
    /// All ranks of the world; `rank` is this process's.
    pub fn world(rank: u32, size: u32) -> Group {
        Group { size, rank, form: Form::Runs([Run { first: 0, world: 0, step: 1 }].into()) }
    }

    /// The ranks of the world in this order, each at most once, of which this process is `me`. `None`: it is none of them.
    pub fn of(members: impl Iterator<Item = u32>, me: u32) -> Option<Group> {
        let (mut runs, mut words) = (Vec::<Run>::new(), Vec::<Word>::new());
        let (mut size, mut rank, mut last, mut in_order) = (0u32, None, None, true);
        for world in members {
            if world == me {
                rank = Some(size);
            }
            in_order &= last.is_none_or(|l| l < world);
            match (runs.last_mut(), last) {
                // The second of a run settles its step.
                (Some(run), Some(l)) if size == run.first + 1 => run.step = world as i64 - l as i64,
                (Some(run), Some(l)) if world as i64 - l as i64 == run.step => {}
                _ => runs.push(Run { first: size, world, step: 1 }),
            }
            if in_order {
                let n = world as usize / 64;
                if words.len() <= n {
                    words.resize(n + 1, Word { bits: 0, before: size });
                }
                words[n].bits |= 1 << (world % 64);
            }
            (last, size) = (Some(world), size + 1);
        }
        let bitmap = in_order && size_of_val(&*words) < size_of_val(&*runs);
        let form = if bitmap { Form::Bitmap(words.into()) } else { Form::Runs(runs.into()) };
        Some(Group { size, rank: rank?, form })
    }

    /// The number of ranks.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// This process's rank among them.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The rank of the world that rank `rank` here is. `rank` must be below [`Group::size`].
    pub fn world_rank(&self, rank: u32) -> u32 {
        debug_assert!(rank < self.size);
        match &self.form {
            Form::Runs(runs) => {
                let run = &runs[runs.partition_point(|r| r.first <= rank).saturating_sub(1)];
                (run.world as i64 + (rank - run.first) as i64 * run.step) as u32
            }
            Form::Bitmap(words) => {
                let n = words.partition_point(|w| w.before <= rank).saturating_sub(1);
                let mut bits = words[n].bits;
                for _ in words[n].before..rank {
                    bits &= bits.wrapping_sub(1);
                }
                n as u32 * 64 + bits.trailing_zeros()
            }
        }
    }

    /// The rank here of a rank of the world. `None`: it is no member.
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        match &self.form {
            Form::Runs(runs) => runs.iter().enumerate().find_map(|(n, run)| {
                let len = runs.get(n + 1).map_or(self.size, |next| next.first) - run.first;
                let away = world as i64 - run.world as i64;
                let steps = if run.step == 0 { away } else { away / run.step };
                (steps >= 0 && steps < len as i64 && steps * run.step == away).then(|| run.first + steps as u32)
            }),
            Form::Bitmap(words) => {
                let word = words.get(world as usize / 64).filter(|w| w.bits >> (world % 64) & 1 == 1)?;
                Some(word.before + (word.bits & ((1 << (world % 64)) - 1)).count_ones())
            }
        }
    }

    /// All ranks of the world that are members, in order of their ranks here.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size).map(|rank| self.world_rank(rank))
    }

    /// Bytes that it takes beside itself.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Runs(runs) => size_of_val(&**runs),
            Form::Bitmap(words) => size_of_val(&**words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(members: &[u32], me: u32) -> Group {
        let group = Group::of(members.iter().copied(), me).unwrap();
        assert_eq!(group.size() as usize, members.len());
        assert_eq!(members[group.rank() as usize], me);
        assert!(group.members().eq(members.iter().copied()), "{members:?}: {group:?}");
        for (rank, world) in members.iter().enumerate() {
            assert_eq!(group.rank_of(*world), Some(rank as u32), "{members:?}: {group:?}");
        }
        for world in (0..2000).filter(|w| !members.contains(w)) {
            assert_eq!(group.rank_of(world), None, "{world} in {members:?}: {group:?}");
        }
        group
    }

    #[test]
    fn patterns_take_a_run() {
        let run = size_of::<Run>();
        assert_eq!(check(&(0..1000).collect::<Vec<_>>(), 3).bytes(), run);
        assert_eq!(check(&(0..1000).rev().collect::<Vec<_>>(), 3).bytes(), run);
        assert_eq!(check(&(5..1000).step_by(7).collect::<Vec<_>>(), 12).bytes(), run);
        assert_eq!(check(&[1500], 1500).bytes(), run);
        assert_eq!(check(&[7, 3], 3).bytes(), run);
        assert!(check(&[0, 1, 2, 3, 10, 11, 12, 13], 3).bytes() <= 2 * run);
        assert_eq!(Group::world(2, 9), check(&(0..9).collect::<Vec<_>>(), 2));
        assert!(Group::of([1, 2, 3].into_iter(), 4).is_none());
    }

    #[test]
    fn a_set_without_a_pattern_takes_a_bit_for_each_rank() {
        let members: Vec<u32> = (0..1600).filter(|r| (r * r) % 7 == 2 || r % 11 == 3).collect();
        assert!(check(&members, members[40]).bytes() <= 1600 / 64 * 16);
    }

    proptest! {
        #[test]
        fn any_order_of_any_set(members in prop::collection::btree_set(0u32..1200, 1..100), seed: u64, shuffled: bool) {
            let mut members: Vec<u32> = members.into_iter().collect();
            if shuffled {
                members.sort_by_key(|m| (*m as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            }
            check(&members, members[seed as usize % members.len()]);
        }
    }
}
