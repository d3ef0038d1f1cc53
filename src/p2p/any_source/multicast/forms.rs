//! The ways of a message between the leaders of a multicast: who tells whom, and who fetches what from whom.
//!
//! | form | told by | fetched |
//! |---|---|---|
//! | flat | the master | all of it from the master |
//! | tree | the binomial tree | all of it from who told |
//! | chain | the leader before | the same, piece by piece as it comes there |
//! | ring | the binomial tree | from who told: the parts of this leader and of those below; then the others, one by one, from the leader before |
//! | doubling | the binomial tree | the same; then those of blocks of leaders that double, from one of each block |
//!
//! Flat, everything is one way there and back from the master, which has all the work: for few leaders, where a way costs more than what the
//! master does for each. The last two scatter the message in as many *parts* as there are leaders, part n for number n, and gather them: for short messages
//! the tree is the shortest way; a chain takes the least time for the longest, but a step for each leader; in parts each byte leaves a
//! leader about twice. (*Dynamic multicast*, sections 2.3 and 5.3, whose scatter this is.)
//!
//! ```text
//!   5 leaders   scatter                 doubling: level 0       level 1              level 2
//!   0           01234                   -                       -                    -
//!   1           .1...                   0 from 0                23 from 3            4 from 4
//!   2           ..23.                   -                       01 from 0            4 from 4
//!   3           ...3.                   2 from 2                01 from 1            4 from 4
//!   4           ....4                   -                       -                    0123 from 0
//! ```
//! Where it is known which nodes share a switch (`FMPL_TOPOLOGY`), leaders have their numbers in the order of the switches, and the tree goes into
//! each switch once.
//!
//! At level k number n wants the parts of the other half of its block of 2^(k+1) leaders. It takes them from number n xor 2^k; where
//! that is none, the group not being a power of two, from the first of that half.

use std::ops::Range;

use super::held::LEFT;
use super::record::children;
use crate::base::config::RemoteMcastWay;
use crate::base::topology::Topology;
use crate::p2p::endpoint::Endpoint;

/// Leaders that a master tells itself at most: each has a word in the master's block by which it acknowledges.
const FLAT_MOST: usize = LEFT;

/// How leaders hand a message on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Tree,
    Chain,
    Ring,
    Doubling,
    Flat,
}

impl Form {
    const ALL: [Form; 5] = [Form::Tree, Form::Chain, Form::Ring, Form::Doubling, Form::Flat];

    /// The one whose number was sent.
    pub(super) fn of(number: u8) -> Option<Form> {
        Form::ALL.into_iter().find(|form| *form as u8 == number)
    }

    /// The form of a message of so many bytes to so many leaders. `behind`: that of one to the same group which is not complete, and which this
    /// one must not overtake.
    pub(super) fn choose(ep: &Endpoint, size: usize, leaders: usize, behind: Option<Form>) -> Form {
        let row = ep.crossovers(leaders);
        let flat = |most: usize| size < most && leaders <= FLAT_MOST && behind.is_none();
        match ep.config.remote_mcast {
            _ if behind == Some(Form::Chain) => Form::Chain,
            RemoteMcastWay::Flat if flat(usize::MAX) => Form::Flat,
            RemoteMcastWay::Auto if flat(row.mcast_tree) && ep.topology.is_none() => Form::Flat,
            RemoteMcastWay::Flat => Form::Tree,
            RemoteMcastWay::Tree => Form::Tree,
            RemoteMcastWay::Chain => Form::Chain,
            RemoteMcastWay::Ring => Form::Ring,
            RemoteMcastWay::Doubling => Form::Doubling,
            RemoteMcastWay::Auto => match size {
                n if n >= row.mcast_chain => Form::Chain,
                n if n >= row.mcast_ring => Form::Ring,
                n if n >= row.mcast_doubling => Form::Doubling,
                _ => Form::Tree,
            },
        }
    }

    /// Is the message scattered?
    pub(super) fn in_parts(self) -> bool {
        matches!(self, Form::Ring | Form::Doubling)
    }

    /// Whom a leader tells, by number, the one that tells the most others first.
    fn below(self, number: u32, count: u32) -> Vec<u32> {
        match self {
            Form::Flat => Vec::new(),
            Form::Chain => (number + 1..count).take(1).collect(),
            _ => children(number, count).collect(),
        }
    }

    /// From whom a leader wants which parts, besides those that it has from who told it.
    pub(super) fn sources(self, number: u32, count: u32) -> Vec<(u32, Range<u32>)> {
        match self {
            Form::Flat | Form::Tree | Form::Chain => Vec::new(),
            Form::Ring => vec![((number + count - 1) % count, 0..count)],
            Form::Doubling => (0..u32::BITS)
                .map(|level| 1u64 << level)
                .take_while(|bit| *bit < count as u64)
                .filter_map(|bit| {
                    let partner = number as u64 ^ bit;
                    let first = partner & !(bit - 1);
                    let parts = first as u32..(first + bit).min(count as u64) as u32;
                    let source = if partner < count as u64 { partner } else { first };
                    (first < count as u64).then_some((source as u32, parts))
                })
                .collect(),
        }
    }
}

/// The leaders of a multicast in a form, the root first; in the order of their switches, if these are known.
pub(super) struct Shape {
    pub(super) form: Form,
    /// Ranks of the communicator.
    pub(super) leaders: Vec<u32>,
    /// The tree over switches, if these are known: who tells each, and behind whom those below it end.
    tree: Option<Vec<(usize, usize)>>,
}

impl Shape {
    /// Of leaders in the order of their ranks, on these nodes.
    pub(super) fn new(form: Form, leaders: Vec<u32>, topology: Option<(&Topology, Vec<u32>)>) -> Shape {
        let Some((topology, nodes)) = topology else { return Shape { form, leaders, tree: None } };
        let order = topology.order(&nodes, 0);
        let of = |all: &[u32]| order.iter().map(|n| all[*n]).collect::<Vec<_>>();
        Shape { form, leaders: of(&leaders), tree: Some(topology.tree(&of(&nodes))) }
    }

    pub(super) fn count(&self) -> u32 {
        self.leaders.len() as u32
    }

    /// Whom a leader tells, by number, the one that tells the most others first.
    pub(super) fn below(&self, number: u32) -> Vec<u32> {
        let n = number as usize;
        match &self.tree {
            Some(tree) if !matches!(self.form, Form::Chain | Form::Flat) => {
                (n + 1..tree[n].1).rev().filter(|child| tree[*child].0 == n).map(|child| child as u32).collect()
            }
            _ => self.form.below(number, self.count()),
        }
    }

    /// The parts that a leader gets from who told it: its own and those of the leaders below it, which have the numbers behind its own.
    pub(super) fn handed_down(&self, number: u32) -> Range<u32> {
        let below = if number == 0 { u32::MAX } else { 1 << number.trailing_zeros() };
        let end = || number.saturating_add(below).min(self.count());
        number..self.tree.as_ref().map_or_else(end, |tree| tree[number as usize].1 as u32)
    }

    /// How many leaders the master tells, from the root on.
    pub(super) fn told(&self) -> usize {
        if self.form == Form::Flat { self.leaders.len() } else { 1 }
    }

    /// Units that come from a child: for its node, and for its own children if it has any.
    pub(super) fn units(&self, number: u32) -> u64 {
        1 + !self.below(number).is_empty() as u64
    }
}

/// A message in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) size: usize,
    pub(super) count: u32,
}

impl Parts {
    /// Where some parts lie in the message.
    pub(super) fn bytes(&self, parts: Range<u32>) -> Range<usize> {
        let part = self.size.div_ceil(self.count as usize).next_multiple_of(64);
        let at = |n: u32| (n as usize * part).min(self.size);
        at(parts.start)..at(parts.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaders on nodes that are dealt out over the switches in turn.
    fn shape_of(form: Form, count: u32, topology: Option<&Topology>) -> Shape {
        let nodes = (0..count).map(|n| n * 37 % 200).collect();
        Shape::new(form, (0..count).collect(), topology.map(|topology| (topology, nodes)))
    }

    /// Everybody gets each part once, without ever going back to who told it; by doubling after as many looks as there are levels.
    #[test]
    fn parts_come_to_all() {
        for (count, form) in (1..140).flat_map(|count| [(count, Form::Ring), (count, Form::Doubling)]) {
            let shape = shape_of(form, count, None);
            let of = |n| shape.handed_down(n);
            let mut have: Vec<Vec<bool>> =
                (0..count).map(|n| (0..count).map(|p| of(n).contains(&p)).collect()).collect();
            let mut rounds = 0;
            while have.iter().flatten().any(|h| !h) {
                let before = have.clone();
                for n in 0..count {
                    for (source, wants) in form.sources(n, count) {
                        assert!(source != n && source < count, "{n} of {count} from {source}");
                        for p in wants.filter(|p| before[source as usize][*p as usize]) {
                            have[n as usize][p as usize] = true;
                        }
                    }
                }
                rounds += 1;
                assert!(rounds <= count, "{form:?} of {count} comes to no end");
            }
            let levels = count.next_power_of_two().trailing_zeros();
            assert!(form == Form::Ring || rounds <= levels, "{count}: {rounds} looks");
            assert!(form == Form::Ring || (0..count).all(|n| form.sources(n, count).len() <= levels as usize));
        }
    }

    /// What is handed down is handed on whole, and each leader has its own.
    #[test]
    fn parts_are_handed_down_the_tree() {
        let topology = Topology::parse("blocks:3,12,36", 200).unwrap();
        let both = |count| [(count, None), (count, Some(&topology))];
        for (count, topology) in (1..60u32).chain([100, 200]).flat_map(both) {
            let shape = shape_of(Form::Ring, count, topology);
            for n in 0..count {
                let mine = shape.handed_down(n);
                let mut all: Vec<u32> = vec![n];
                for child in shape.below(n) {
                    all.extend(shape.handed_down(child));
                }
                all.sort_unstable();
                assert_eq!(all, mine.collect::<Vec<_>>(), "{n} of {count}");
            }
        }
    }

    #[test]
    fn parts_are_the_message() {
        for (size, count) in [(0, 1), (1, 3), (80 << 10, 7), (63, 64), (1 << 20, 5), (129, 2)] {
            let parts = Parts { size, count };
            let mut end = 0;
            for n in 0..count {
                let bytes = parts.bytes(n..n + 1);
                assert_eq!(bytes.start, end);
                end = bytes.end;
            }
            assert_eq!((end, parts.bytes(0..count)), (size, 0..size));
        }
    }
}
