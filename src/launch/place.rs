//! Where the ranks are: what makes a node, and which ranks share one.
//!
//! Each rank publishes 16 bytes that stand for its node. They are gathered in a tree, 64 values at a time, and rank 0 gives back a [`NodeMap`]:
//! the nodes numbered in the order in which they first appear, as *runs* of regular placement. Blocks of equal size, or ranks dealt
//! out in turn, are one run of 16 bytes whatever the size of the job; only what is irregular takes more.

use crate::base::error::{Code, Result, error};
use crate::base::key;
use std::fmt::{self, Write};
use std::os::unix::fs::MetadataExt;

mod placed;

pub(crate) use placed::Placed;

/// What identifies a node: two processes with the same can reach each other's sockets, processes and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    boot: [u8; 16],
    /// Network namespace (abstract sockets), process ids (pidfds, copies between processes), users (credentials).
    namespaces: [u64; 3],
    /// `FMPL_NODE`: ranks of one machine play several nodes.
    pretended: Option<u32>,
    /// The host's name: copies of a virtual machine may have the same boot id.
    host: String,
}

/// Longer names of hosts are cut.
const HOST_MAX: usize = 64;

impl Node {
    /// Where this process is. `Setting`: `FMPL_NODE` is no number.
    pub fn here() -> Result<Node> {
        // A system may have none of this; but for want of descriptors a rank must not take its node for another.
        let read = |path: &str| match std::fs::read_to_string(path) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => {
                Err(error!(Code::System, "reading {path}, which says what node this is: {e}"))
            }
            read => Ok(read.unwrap_or_default()),
        };
        let mut boot = [0; 16];
        let digits: Vec<u8> =
            read("/proc/sys/kernel/random/boot_id")?.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        for (to, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
            *to = pair[0] << 4 | pair[1];
        }
        let space = |name: &str| std::fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |m| m.ino());
        let pretended = std::env::var_os("FMPL_NODE").map(|v| v.to_string_lossy().into_owned());
        let pretended = match pretended.filter(|v| !v.trim().is_empty()) {
            None => None,
            Some(text) => Some(text.trim().parse().map_err(|_| {
                error!(Code::Setting, "FMPL_NODE={text}: possible values: the number of a pretended node, 0 or more")
            })?),
        };
        let mut host = read("/proc/sys/kernel/hostname")?.trim().to_owned();
        while host.len() > HOST_MAX {
            host.pop();
        }
        Ok(Node { boot, namespaces: [space("net"), space("pid"), space("user")], pretended, host })
    }

    /// A node that this one plays.
    pub(crate) fn pretending(self, number: u32) -> Node {
        Node { pretended: Some(number), ..self }
    }

    /// The number that `FMPL_NODE` gives this node.
    pub fn pretended(&self) -> Option<u32> {
        self.pretended
    }

    /// As bytes, for [`decode`](Node::decode): 45 and the host's name.
    pub fn encode(&self) -> Vec<u8> {
        let mut b = self.boot.to_vec();
        self.namespaces.iter().for_each(|n| b.extend_from_slice(&n.to_le_bytes()));
        b.push(self.pretended.is_some() as u8);
        b.extend_from_slice(&self.pretended.unwrap_or(0).to_le_bytes());
        b.extend_from_slice(self.host.as_bytes());
        b
    }

    /// A node from its bytes; `None`: they are not a node's.
    pub fn decode(b: &[u8]) -> Option<Node> {
        let word = |at: usize| b.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let number = u32::from_le_bytes(b.get(41..45)?.try_into().ok()?);
        let host = std::str::from_utf8(&b[45..]).ok().filter(|h| h.len() <= HOST_MAX)?;
        Some(Node {
            boot: b[..16].try_into().ok()?,
            namespaces: [word(16)?, word(24)?, word(32)?],
            pretended: (b[40] != 0).then_some(number),
            host: host.to_owned(),
        })
    }

    /// Sixteen bytes that stand for the node.
    pub(crate) fn digest(&self) -> Digest {
        key::digest(&self.encode())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.host)?;
        self.pretended.map_or(Ok(()), |k| write!(f, ", FMPL_NODE={k}"))
    }
}

/// See [`Node::digest`].
pub(crate) type Digest = [u8; 16];

/// Ranks from `first` on, placed regularly: `each` on one node, then as many on the next; after `across` nodes again on the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    node: u32,
    each: u32,
    across: u32,
}

impl Run {
    fn node_of(&self, rank: u32) -> u32 {
        self.node + (rank - self.first) / self.each % self.across
    }
}

/// Children in the tree over nodes, and in that over the ranks of a node.
const BRANCHES: u32 = 4;

/// The node of each rank: nodes have numbers from 0 on, in the order of their lowest ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMap {
    runs: Vec<Run>,
    size: u32,
    nodes: u32,
}

impl NodeMap {
    /// All ranks on one node.
    pub fn one_node(size: u32) -> NodeMap {
        NodeMap::blocks(size, size.max(1), 1)
    }

    /// Blocks of `each` ranks on so many nodes in turn.
    fn blocks(size: u32, each: u32, nodes: u32) -> NodeMap {
        NodeMap { runs: vec![Run { first: 0, node: 0, each, across: nodes }], size, nodes }
    }

    /// From the node of each rank.
    pub fn new(of: &[u32]) -> NodeMap {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < of.len() {
            let (rest, node) = (&of[at..], of[at]);
            let length = |f: &dyn Fn(usize, u32) -> bool| {
                rest.iter().enumerate().position(|(i, n)| !f(i, *n)).unwrap_or(rest.len())
            };
            let each = length(&|_, n| n == node);
            let rising = length(&|i, n| n as usize == node as usize + i / each);
            let run = Run { first: at as u32, node, each: each as u32, across: rising.div_ceil(each) as u32 };
            runs.push(run);
            at += length(&|i, n| n == run.node_of(run.first + i as u32));
        }
        NodeMap { runs, size: of.len() as u32, nodes: of.iter().max().map_or(0, |m| m + 1) }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The node of a rank.
    pub fn node_of(&self, rank: u32) -> u32 {
        let run = self.runs.partition_point(|r| r.first <= rank) - 1;
        self.runs[run].node_of(rank)
    }

    /// The ranks on a node, in ascending order.
    pub fn ranks_on(&self, node: u32) -> impl Iterator<Item = u32> {
        self.runs.iter().enumerate().flat_map(move |(i, run)| {
            let end = self.runs.get(i + 1).map_or(self.size, |next| next.first);
            let here = node >= run.node && node - run.node < run.across;
            let begin = run.first as u64 + node.wrapping_sub(run.node) as u64 * run.each as u64;
            let turn = run.each as u64 * run.across as u64;
            (0..)
                .map(move |k| begin + k * turn)
                .take_while(move |start| here && *start < end as u64)
                .flat_map(move |start| start as u32..(start + run.each as u64).min(end as u64) as u32)
        })
    }

    /// The place of a rank in a tree over all ranks: its parent and its children. On each node the ranks form a tree below the lowest, and
    /// these form one over the nodes, so that nobody has more than [`BRANCHES`] children of other nodes, and as many of its own.
    pub fn in_tree(&self, rank: u32) -> (Option<u32>, Vec<u32>) {
        let lowest = |node: u32| self.ranks_on(node).next().expect("every node has a rank");
        let below = |n: u32, count: u32| (n * BRANCHES + 1..=n * BRANCHES + BRANCHES).filter(move |k| *k < count);
        let node = self.node_of(rank);
        let here: Vec<u32> = self.ranks_on(node).collect();
        let place = here.iter().position(|r| *r == rank).unwrap_or(0) as u32;
        let mut children: Vec<u32> = below(place, here.len() as u32).map(|k| here[k as usize]).collect();
        if place > 0 {
            return (Some(here[((place - 1) / BRANCHES) as usize]), children);
        }
        children.extend(below(node, self.nodes).map(lowest));
        ((node > 0).then(|| lowest((node - 1) / BRANCHES)), children)
    }

    /// Bytes that the map takes.
    pub fn bytes(&self) -> usize {
        size_of::<NodeMap>() + self.runs.capacity() * size_of::<Run>()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let words = self.runs.iter().flat_map(|r| [r.first, r.node, r.each, r.across]);
        [self.size, self.nodes].into_iter().chain(words).flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<NodeMap> {
        let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let [size, nodes, runs @ ..] = &words[..] else { return None };
        let runs: Vec<Run> =
            runs.chunks_exact(4).map(|r| Run { first: r[0], node: r[1], each: r[2], across: r[3] }).collect();
        let whole = bytes.len() == 8 + 16 * runs.len();
        let sound = |r: &Run| {
            r.each > 0
                && r.across > 0
                && r.first < *size
                && r.node.checked_add(r.across).is_some_and(|end| end <= *nodes)
        };
        let ordered = runs.first()?.first == 0 && runs.windows(2).all(|w| w[0].first < w[1].first);
        (whole && ordered && runs.iter().all(sound)).then_some(NodeMap { runs, size: *size, nodes: *nodes })
    }
}

/// What is known of the ranks from some rank on: their nodes by number, and what the numbers stand for.
#[derive(Default)]
pub(crate) struct Gathered {
    nodes: Vec<Digest>,
    of: Vec<u32>,
    number: std::collections::HashMap<Digest, u32>,
}

impl Gathered {
    /// The next rank is on this node.
    pub(crate) fn push(&mut self, node: Digest) {
        let next = self.nodes.len() as u32;
        let number = *self.number.entry(node).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        self.of.push(number);
    }

    pub(crate) fn map(&self) -> NodeMap {
        NodeMap::new(&self.of)
    }

    /// As bytes, for [`append`](Gathered::append).
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = (self.nodes.len() as u32).to_le_bytes();
        [&count[..], &self.nodes.concat(), &self.map().encode()].concat()
    }

    /// The next ranks are those that `bytes` tell of. `None`: they are not of this making.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Option<()> {
        let count = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let digests = bytes.get(4..4 + count.checked_mul(16)?)?;
        let map = NodeMap::decode(&bytes[4 + digests.len()..]).filter(|m| m.nodes() as usize <= count)?;
        for rank in 0..map.size {
            let at = map.node_of(rank) as usize * 16;
            self.push(digests[at..at + 16].try_into().ok()?);
        }
        Some(())
    }
}

/// Ranks as [`ranges`] writes them, of a job of so many. `None`: these are none.
pub(crate) fn ranks_of(text: &str, size: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (a, b) = range.split_once('-').unwrap_or((range, range));
        let (a, b): (u32, u32) = (a.parse().ok()?, b.parse().ok()?);
        (a <= b && b < size && all.len() as u64 + (b - a) as u64 <= size as u64).then_some(())?;
        all.extend(a..=b);
    }
    Some(all)
}

/// Ranks as people write them: `0-3,7`.
pub(crate) fn ranges(ranks: impl IntoIterator<Item = u32>) -> String {
    let mut out = String::new();
    let mut run: Option<(u32, u32)> = None;
    let mut close = |run: Option<(u32, u32)>| {
        if let Some((a, b)) = run {
            let comma = if out.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = if a == b { write!(out, "{comma}{a}") } else { write!(out, "{comma}{a}-{b}") };
        }
    };
    for r in ranks {
        match &mut run {
            Some((_, b)) if *b + 1 == r => *b = r,
            _ => close(run.replace((r, r))),
        }
    }
    close(run);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn regular_placements_are_one_run() {
        let blocks: Vec<u32> = (0..4096).map(|r| r / 48).collect();
        let in_turn: Vec<u32> = (0..4096).map(|r| r % 100).collect();
        let both: Vec<u32> = (0..4096).map(|r| r / 4 % 7).collect();
        for of in [&blocks, &in_turn, &both, &vec![0; 4096], &(0..4096).collect()] {
            let map = NodeMap::new(of);
            assert_eq!(map.runs.len(), 1, "{:?}", &of[..9]);
            assert_eq!(map.encode().len(), 24);
            assert!(map.bytes() < 100);
        }
        assert_eq!(NodeMap::new(&[0, 0, 1, 1, 1, 2]).runs.len(), 2);
        assert_eq!(NodeMap::one_node(5), NodeMap::new(&[0; 5]));
    }

    /// Everybody but rank 0 has a parent whose child it is, parents come earlier, and nobody needs many connections.
    #[test]
    fn all_ranks_are_in_one_tree() {
        let few: [&[u32]; 4] = [&[0], &[0, 0, 0, 0, 0, 0, 0], &[0, 1, 0, 1, 0], &[0, 0, 1, 2, 1, 3, 3, 3, 4, 5, 0]];
        let many: [Vec<u32>; 2] = [(0..256).collect(), (0..1000).map(|r| r % 300).collect()];
        for of in few.into_iter().chain(many.iter().map(Vec::as_slice)) {
            let map = NodeMap::new(of);
            for rank in 0..of.len() as u32 {
                let (parent, children) = map.in_tree(rank);
                assert_eq!(parent.is_none(), rank == 0);
                if let Some(parent) = parent {
                    assert!(parent < rank && map.in_tree(parent).1.contains(&rank), "{rank} of {of:?}");
                }
                assert!(children.iter().all(|child| map.in_tree(*child).0 == Some(rank)));
                let elsewhere = children.iter().chain(&parent).filter(|r| of[**r as usize] != of[rank as usize]);
                assert!(elsewhere.count() <= BRANCHES as usize + 1, "{rank} of {of:?}");
            }
        }
    }

    #[test]
    fn regular_nodes_are_told_in_few_bytes() {
        let told = |nodes: u32, ranks: &dyn Fn(u32) -> Vec<u32>| {
            let mut placed = Placed::default();
            (0..nodes).for_each(|node| placed.push(&ranks(node)));
            placed.encode().len()
        };
        assert_eq!(told(1000, &|node| (4 * node..4 * node + 4).collect()), 24);
        assert_eq!(told(1000, &|node| vec![node, node + 1000, node + 2000]), 24);
        assert_eq!(told(1, &|_| (0..4096).collect()), 24);
    }

    #[test]
    fn ranks_as_people_write_them() {
        assert_eq!(ranks_of("", 5), Some(vec![]));
        assert_eq!(ranks_of("0-2,4", 5), Some(vec![0, 1, 2, 4]));
        for bad in ["5", "2-1", "0-5", "x", "1,1-4,0-4", "-1"] {
            assert_eq!(ranks_of(bad, 5), None, "{bad}");
        }
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([3]), "3");
        assert_eq!(ranges([0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn nodes_come_back_as_they_went() {
        let here = Node::here().unwrap();
        assert_ne!(here.namespaces, [0; 3]);
        for node in [&here, &Node { pretended: Some(7), ..here.clone() }, &Node { host: String::new(), ..here.clone() }]
        {
            assert_eq!(Node::decode(&node.encode()).as_ref(), Some(node));
        }
        assert_ne!(
            Node { pretended: Some(0), ..here.clone() }.digest(),
            Node { pretended: None, ..here.clone() }.digest()
        );
        assert_eq!(Node::decode(&here.encode()[..44]), None);
        assert_eq!(Node::decode(&[0xff; 45 + HOST_MAX + 1]), None);
    }

    /// Mostly regular placements, as launchers make them.
    fn placements() -> impl Strategy<Value = Vec<u32>> {
        let piece = (1u32..6, 1u32..5, 1usize..40, 0u32..4).prop_map(|(each, across, len, from)| {
            (0..len as u32).map(|i| from + i / each % across).collect::<Vec<_>>()
        });
        proptest::collection::vec(piece, 1..5).prop_map(|p| p.concat())
    }

    proptest! {
        #[test]
        fn gathered_in_pieces_is_as_gathered_at_once(of in placements(), cut in 1usize..50) {
            let digest = |n: &u32| [*n as u8; 16];
            let mut whole = Gathered::default();
            of.iter().for_each(|n| whole.push(digest(n)));
            let mut pieces = Gathered::default();
            for part in of.chunks(cut) {
                let mut one = Gathered::default();
                part.iter().for_each(|n| one.push(digest(n)));
                pieces.append(&one.encode()).unwrap();
            }
            prop_assert_eq!(whole.map(), pieces.map());
            let map = NodeMap::decode(&whole.map().encode()).unwrap();
            let mut on = vec![Vec::new(); map.nodes() as usize];
            for (rank, node) in of.iter().enumerate() {
                let number = map.node_of(rank as u32);
                prop_assert_eq!(whole.nodes[number as usize], digest(node));
                on[number as usize].push(rank as u32);
            }
            for (node, ranks) in on.iter().enumerate() {
                prop_assert_eq!(&map.ranks_on(node as u32).collect::<Vec<_>>(), ranks);
            }
            prop_assert_eq!(map.ranks_on(map.nodes()).next(), None);
        }

        /// From each node's ranks, told in the order of their lowest, comes the same map as from the node of each rank; and in few bytes, if
        /// the placement is regular.
        #[test]
        fn nodes_told_by_their_ranks_give_the_same_map(of in placements(), cut in 1usize..50) {
            let mut number = std::collections::HashMap::new();
            let mut on: Vec<Vec<u32>> = Vec::new();
            for (rank, node) in (0..).zip(&of) {
                let k = *number.entry(*node).or_insert(on.len());
                if k == on.len() {
                    on.push(Vec::new());
                }
                on[k].push(rank);
            }
            let mut all = Placed::default();
            for part in on.chunks(cut) {
                let mut some = Placed::default();
                part.iter().for_each(|ranks| some.push(ranks));
                all.append(&some.encode()).unwrap();
            }
            let size = of.len() as u32;
            let dense: Vec<u32> = of.iter().map(|node| number[node] as u32).collect();
            prop_assert_eq!(all.map(size), Some(NodeMap::new(&dense)));
            prop_assert_eq!(all.map(size + 1), None);
            for ranks in &on {
                prop_assert_eq!(ranks_of(&ranges(ranks.iter().copied()), size), Some(ranks.clone()));
            }
        }

        #[test]
        fn any_bytes_are_a_map_or_not(bytes in proptest::collection::vec(0u8..4, 0..80)) {
            if let Some(map) = NodeMap::decode(&bytes) {
                for rank in (0..map.size).take(50) {
                    prop_assert!(map.node_of(rank) < map.nodes());
                }
            }
            let _ = Gathered::default().append(&bytes);
            let mut placed = Placed::default();
            let _ = placed.append(&bytes);
            let _ = Node::decode(&bytes);
        }
    }
}
