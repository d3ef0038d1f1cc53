//! Which ranks of the world a communicator consists of, and in which order.
//!
//! The ranks are kept as **runs**: so many ranks of the communicator in a row whose ranks in the world have the same distance. All even
//! ranks, a row or a column of a grid, the world itself or its reverse are one run of 16 bytes, however many ranks there are.
//! A set in the world's order for which a bit for each rank of the world is less is kept as a **bitmap**, with the number of members before each
//! eighth word. An order without any pattern is a **list**, four bytes for each of its ranks.
//!
//! ```text
//!  runs      first rank here | first rank in the world | step      … up to the next run's first
//!  bitmap    words: bit = rank of the world; members before words 0, 8, 16, …
//!  list      rank of the world, by rank here
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
    Bitmap(Bitmap),
    List(Box<[u32]>),
}

/// Ranks `first`, `first + 1`, … of a communicator are the ranks `world`, `world + step`, … of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    world: u32,
    step: i64,
}

/// A bit for each rank of the world up to the last member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bitmap {
    words: Box<[u64]>,
    /// Members before each [`STRIDE`]th word.
    before: Box<[u32]>,
}

/// Words of a bitmap for which members are counted when one is looked for, at most.
const STRIDE: usize = 8;

impl Bitmap {
    fn of(words: Vec<u64>) -> Bitmap {
        let counts = words.chunks(STRIDE).map(|some| some.iter().map(|word| word.count_ones()).sum::<u32>());
        let before = counts.scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n))).collect();
        Bitmap { words: words.into(), before }
    }
    /// Bytes of one that ends with this rank of the world.
    fn bytes_to(world: u32) -> usize {
        let words = world as usize / 64 + 1;
        words * size_of::<u64>() + words.div_ceil(STRIDE) * size_of::<u32>()
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.before)
    }
    /// The member number `rank`, from 0 on.
    fn member(&self, rank: u32) -> u32 {
        let stride = self.before.partition_point(|before| *before <= rank).saturating_sub(1);
        let mut left = rank - self.before[stride];
        let mut n = stride * STRIDE;
        while left >= self.words[n].count_ones() {
            left -= self.words[n].count_ones();
            n += 1;
        }
        let bits = (0..left).fold(self.words[n], |bits, _| bits & (bits - 1));
        n as u32 * 64 + bits.trailing_zeros()
    }
    /// Which member a rank of the world is.
    fn place_of(&self, world: u32) -> Option<u32> {
        let n = world as usize / 64;
        let word = self.words.get(n).filter(|word| *word >> (world % 64) & 1 == 1)?;
        let whole = &self.words[n / STRIDE * STRIDE..n];
        let counted = whole.iter().map(|word| word.count_ones()).sum::<u32>();
        Some(self.before[n / STRIDE] + counted + (word & ((1 << (world % 64)) - 1)).count_ones())
    }
}

impl Group {
    /// All ranks of the world; `rank` is this process's.
    pub fn world(rank: u32, size: u32) -> Group {
        Group { size, rank, form: Form::Runs([Run { first: 0, world: 0, step: 1 }].into()) }
    }

    /// The ranks of the world in this order, each at most once, of which this process is `me`. `None`: it is none of them.
    pub fn of(members: impl Iterator<Item = u32>, me: u32) -> Option<Group> {
        let (mut runs, mut words, mut list) = (Vec::<Run>::new(), Vec::<u64>::new(), Vec::<u32>::new());
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
            list.push(world);
            if in_order {
                let n = world as usize / 64;
                if words.len() <= n {
                    words.resize(n + 1, 0);
                }
                words[n] |= 1 << (world % 64);
            }
            (last, size) = (Some(world), size + 1);
        }
        let [by_runs, by_list] = [size_of_val(&*runs), size_of_val(&*list)];
        let form = match last {
            _ if runs.len() == 1 => Form::Runs(runs.into()),
            Some(last) if in_order && Bitmap::bytes_to(last) < by_runs.min(by_list) => Form::Bitmap(Bitmap::of(words)),
            _ if by_list < by_runs => Form::List(list.into()),
            _ => Form::Runs(runs.into()),
        };
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
            Form::Bitmap(bitmap) => bitmap.member(rank),
            Form::List(list) => list[rank as usize],
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
            Form::Bitmap(bitmap) => bitmap.place_of(world),
            Form::List(list) => list.iter().position(|member| *member == world).map(|rank| rank as u32),
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
            Form::Bitmap(bitmap) => bitmap.bytes(),
            Form::List(list) => size_of_val(&**list),
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
        assert!(check(&members, members[40]).bytes() <= 1600 / 8 + 1600 / 64 / 8 * 4 + 4);
    }

    /// In a world of 2^22 ranks, shorter of 2^18; `tests/shows million` has what it prints.
    #[test]
    fn what_a_large_group_takes() {
        let n = 1u32 << if std::env::var_os("FMPL_TEST_LONG").is_some() { 22 } else { 18 };
        let has = |r: &u32| r.wrapping_mul(0x9e37_79b9) >> 30 != 1;
        let mut members: Vec<u32> = (0..n).filter(has).collect();
        let set = Group::of(members.iter().copied(), members[7]).unwrap();
        let [some, first] = [members[members.len() / 2], members[0]];
        assert_eq!((set.rank_of(some), set.rank_of(first)), (Some(members.len() as u32 / 2), Some(0)));
        assert_eq!(set.world_rank(members.len() as u32 / 2), some);
        members.sort_by_key(|r| r.wrapping_mul(0x85eb_ca6b));
        let order = Group::of(members.iter().copied(), first).unwrap();
        let bits = 8. * set.bytes() as f64 / f64::from(n);
        let bytes = order.bytes() as f64 / members.len() as f64;
        println!("figure: {bits:.3} bits for each rank of the world, {bytes:.3} bytes for each member in any order");
        assert!(bits < 1.07 && bytes <= 4.);
    }

    #[test]
    fn an_order_without_a_pattern_takes_four_bytes_for_each_member() {
        let mut members: Vec<u32> = (0..1600).filter(|r| (r * r) % 7 == 2).collect();
        members.sort_by_key(|r| r.wrapping_mul(0x9e37_79b9));
        assert_eq!(check(&members, members[40]).bytes(), 4 * members.len());
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
