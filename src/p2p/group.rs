//! Which ranks of the world a communicator consists of, and in which order.
//!
//! The ranks are kept as **runs**: so many ranks of the communicator in a row whose ranks in the world have the same distance. All even
//! ranks, a row or a column of a grid, the world itself or its reverse are one run of 16 bytes, however many ranks there are.
//! A set in the world's order for which a bit for each rank of the world is less is kept as a **bitmap**, with the number of members before each
//! 64th word. An order without any pattern is a **list**, four bytes for each of its ranks.
//!
//! ```text
//!  runs      first rank here, first rank in the world | step      … up to the next run's first
//!  bitmap    words: bit = rank of the world; fields: members before words 0, 960, 1920, …, from there before words 64, 128, …
//!  list      rank of the world, by rank here
//! ```
//! What is more than one run consists of words, and where these are more than a page all members on a node have them in one place
//! ([`words`]). There another process may write: so whatever is found is at most the highest rank of the world that is a member, and
//! what is looked for is found within the words.

use static_assertions::const_assert;
use words::{Shelf, Words};

pub mod words;

/// The ranks of a communicator, and which of them this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    size: u32,
    rank: u32,
    /// The highest rank of the world that is a member.
    top: u32,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Run(Run),
    Runs(Words),
    Bitmap(Bitmap),
    /// Two to a word.
    List(Words),
}

/// Ranks `first`, `first + 1`, … of a communicator are the ranks `world`, `world + step`, … of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    world: u32,
    step: i64,
}

impl Run {
    const WORDS: usize = 2;

    fn words(&self) -> [u64; Run::WORDS] {
        [u64::from(self.first) | u64::from(self.world) << 32, self.step as u64]
    }
    fn read(words: &Words, n: usize) -> Run {
        let [at, step] = [0, 1].map(|k| words.get(n * Run::WORDS + k));
        Run { first: at as u32, world: (at >> 32) as u32, step: step as i64 }
    }
    /// The rank of the world that a rank of the communicator is.
    fn member(&self, rank: u32) -> u32 {
        let steps = i64::from(rank.wrapping_sub(self.first));
        i64::from(self.world).wrapping_add(steps.wrapping_mul(self.step)) as u32
    }
    /// Which rank of the communicator a rank of the world is, if it is one of the run up to the rank `end`.
    fn place_of(&self, world: u32, end: u32) -> Option<u32> {
        let away = i64::from(world) - i64::from(self.world);
        let steps = if self.step == 0 { away } else { away / self.step };
        let within = steps >= 0 && steps < i64::from(end.wrapping_sub(self.first));
        (within && steps.wrapping_mul(self.step) == away).then(|| self.first.wrapping_add(steps as u32))
    }
}

/// A bit for each rank of the world up to the last member, in `len` words; behind them the fields, each of which counts members for [`STRIDES`]
/// strides of [`STRIDE`] words.
///
/// ```text
///  field     members before it 32 | members of it before its second stride 16 | before its third 16 | …
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bitmap {
    words: Words,
    len: usize,
}

/// Words of a bitmap for which members are counted when one is looked for, at most.
const STRIDE: usize = 64;
/// Strides that a field counts for, and its words: the last field has as many as it needs.
const STRIDES: usize = 15;
const FIELD: usize = 4;
const_assert!(STRIDES + 1 == 4 * FIELD && (STRIDES - 1) * STRIDE * 64 <= u16::MAX as usize);

impl Bitmap {
    fn of(mut words: Vec<u64>) -> Bitmap {
        let len = words.len();
        let counts = words.chunks(STRIDE).map(|some| some.iter().map(|word| word.count_ones()).sum::<u32>());
        let before: Vec<u32> = counts.scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n))).collect();
        for field in before.chunks(STRIDES) {
            let first = [field[0] & u32::from(u16::MAX), field[0] >> 16];
            let halves: Vec<u32> = first.into_iter().chain(field[1..].iter().map(|n| n - field[0])).collect();
            words.extend(in_words(&halves, 16));
        }
        Bitmap { words: words.into(), len }
    }
    /// Words of one that ends with this rank of the world.
    fn words_to(world: u32) -> usize {
        let words = world as usize / 64 + 1;
        let strides = words.div_ceil(STRIDE);
        let last = match strides % STRIDES {
            0 => 0,
            some => (some + 1).div_ceil(4),
        };
        words + strides / STRIDES * FIELD + last
    }
    fn strides(&self) -> usize {
        self.len.div_ceil(STRIDE)
    }
    /// Members before a field.
    fn before_field(&self, field: usize) -> u32 {
        self.words.get(self.len + field * FIELD) as u32
    }
    /// Members of a field before its stride `n`.
    fn within_field(&self, field: usize, n: usize) -> u32 {
        if n == 0 { 0 } else { packed(&self.words, self.len + field * FIELD, 16, n + 1) }
    }
    /// The member number `rank`, from 0 on.
    fn member(&self, rank: u32) -> Option<u32> {
        let field = last_up_to(self.strides().div_ceil(STRIDES), |n| self.before_field(n), rank);
        let (first, left) = (field * STRIDES, rank.saturating_sub(self.before_field(field)));
        let strides = self.strides().saturating_sub(first).min(STRIDES);
        let stride = last_up_to(strides, |n| self.within_field(field, n), left);
        let mut left = left.saturating_sub(self.within_field(field, stride));
        for n in (first + stride) * STRIDE..self.len {
            let word = self.words.get(n);
            if left < word.count_ones() {
                let bits = (0..left).fold(word, |bits, _| bits & (bits - 1));
                return Some(n as u32 * 64 + bits.trailing_zeros());
            }
            left -= word.count_ones();
        }
        None
    }
    /// Which member a rank of the world is.
    fn place_of(&self, world: u32) -> Option<u32> {
        let n = world as usize / 64;
        let word = (n < self.len).then(|| self.words.get(n)).filter(|word| *word >> (world % 64) & 1 == 1)?;
        let counted = (n / STRIDE * STRIDE..n).map(|n| self.words.get(n).count_ones()).sum::<u32>();
        let below = (word & ((1 << (world % 64)) - 1)).count_ones();
        let (field, stride) = (n / STRIDE / STRIDES, n / STRIDE % STRIDES);
        let before = self.before_field(field).wrapping_add(self.within_field(field, stride));
        Some(before.wrapping_add(counted + below))
    }
}

/// Numbers of so many bits, as many to a word as there is room for.
fn in_words(numbers: &[u32], bits: usize) -> impl Iterator<Item = u64> {
    let word = move |some: &[u32]| some.iter().rev().fold(0, |word, n| word << bits | u64::from(*n));
    numbers.chunks(64 / bits).map(word)
}

/// Number `n` of those that lie from word `from` on.
fn packed(words: &Words, from: usize, bits: usize, n: usize) -> u32 {
    let each = 64 / bits;
    (words.get(from + n / each) >> (n % each * bits) & (u64::MAX >> (64 - bits))) as u32
}

/// The last of `n` places whose key is not above this one. Keys ascend, and the first is 0.
fn last_up_to(n: usize, key: impl Fn(usize) -> u32, limit: u32) -> usize {
    let (mut from, mut to) = (0, n);
    while to - from > 1 {
        let middle = from.midpoint(to);
        *(if key(middle) <= limit { &mut from } else { &mut to }) = middle;
    }
    from
}

impl Group {
    /// All ranks of the world; `rank` is this process's.
    pub fn world(rank: u32, size: u32) -> Group {
        Group { size, rank, top: size.saturating_sub(1), form: Form::Run(Run { first: 0, world: 0, step: 1 }) }
    }

    /// The ranks of the world in this order, each at most once, of which this process is `me`. `None`: it is none of them.
    pub fn of(members: impl Iterator<Item = u32>, me: u32) -> Option<Group> {
        let (mut runs, mut words, mut list) = (Vec::<Run>::new(), Vec::<u64>::new(), Vec::<u32>::new());
        let (mut size, mut rank, mut last, mut top, mut in_order) = (0u32, None, None, 0, true);
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
            (last, top, size) = (Some(world), top.max(world), size + 1);
        }
        let [by_runs, by_list] = [runs.len() * Run::WORDS, list.len().div_ceil(2)];
        let form = match runs[..] {
            [run] => Form::Run(run),
            _ if in_order && Bitmap::words_to(top) < by_runs.min(by_list) => Form::Bitmap(Bitmap::of(words)),
            _ if by_list < by_runs => Form::List(in_words(&list, 32).collect()),
            _ => Form::Runs(runs.iter().flat_map(Run::words).collect()),
        };
        Some(Group { size, rank: rank?, top, form })
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
        let found = match &self.form {
            Form::Run(run) => run.member(rank),
            Form::Runs(words) => {
                let first = |n| words.get(n * Run::WORDS) as u32;
                Run::read(words, last_up_to(words.len() / Run::WORDS, first, rank)).member(rank)
            }
            Form::Bitmap(bitmap) => bitmap.member(rank).unwrap_or(self.top),
            Form::List(words) => packed(words, 0, 32, rank as usize),
        };
        found.min(self.top)
    }

    /// The rank here of a rank of the world. `None`: it is no member.
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        let found = match &self.form {
            Form::Run(run) => run.place_of(world, self.size),
            Form::Runs(words) => {
                let runs = words.len() / Run::WORDS;
                let end = |n| if n < runs { words.get(n * Run::WORDS) as u32 } else { self.size };
                (0..runs).find_map(|n| Run::read(words, n).place_of(world, end(n + 1)))
            }
            Form::Bitmap(bitmap) => bitmap.place_of(world),
            Form::List(words) => (0..self.size).find(|rank| packed(words, 0, 32, *rank as usize) == world),
        };
        found.filter(|rank| *rank < self.size)
    }

    /// All ranks of the world that are members, in order of their ranks here.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size).map(|rank| self.world_rank(rank))
    }

    /// Those of these ranks of the world that are members. They ascend.
    pub fn members_among(&self, mut some: Vec<u32>) -> Vec<u32> {
        if let Form::List(_) = self.form {
            let mut found: Vec<u32> = self.members().filter(|world| some.binary_search(world).is_ok()).collect();
            found.sort_unstable();
            return found;
        }
        some.retain(|world| self.rank_of(*world).is_some());
        some
    }

    fn words(&self) -> Option<&Words> {
        match &self.form {
            Form::Run(_) => None,
            Form::Runs(words) | Form::List(words) | Form::Bitmap(Bitmap { words, .. }) => Some(words),
        }
    }

    /// Bytes of words, wherever they lie.
    pub fn bytes(&self) -> usize {
        self.words().map_or(0, |words| words.len() * size_of::<u64>())
    }

    /// Bytes of words that this process has by itself.
    pub fn own_bytes(&self) -> usize {
        self.words().filter(|words| !words.are_shared()).map_or(0, |words| words.len() * size_of::<u64>())
    }

    /// The same group, whose words lie with a rank of this node if that has room.
    pub fn laid(mut self, shelf: Shelf) -> Group {
        if let Form::Runs(words) | Form::List(words) | Form::Bitmap(Bitmap { words, .. }) = &mut self.form
            && let Some(laid) = shelf.lay(words)
        {
            *words = laid;
        }
        self
    }
}

#[cfg(test)]
mod tests;
