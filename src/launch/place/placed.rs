//! Nodes told by where their ranks are, so that all of them take a few bytes.

use super::NodeMap;

/// Nodes as their ranks are placed, in the order of their lowest ranks: a few pieces where they are placed regularly,
/// whatever their number.
#[derive(Default)]
pub(crate) struct Placed {
    groups: Vec<Group>,
}

/// Nodes whose ranks are placed alike, each behind the one before: the pieces of the first.
struct Group {
    nodes: u32,
    pieces: Vec<Piece>,
}

/// Ranks of a node: `each` from `first` on, and again after every `stride`, so many `turns`. The next node's begin
/// behind the first `each`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    first: u32,
    each: u32,
    stride: u32,
    turns: u32,
}

impl Placed {
    /// The next node has these ranks, in ascending order.
    pub(crate) fn push(&mut self, ranks: &[u32]) {
        let mut pieces: Vec<Piece> = Vec::new();
        for block in ranks.chunk_by(|a, b| a + 1 == *b) {
            let (first, each) = (block[0], block.len() as u32);
            match pieces.last_mut().filter(|p| p.each == each) {
                Some(p) if p.turns == 1 || first == p.first + p.turns * p.stride => {
                    (p.stride, p.turns) = (if p.turns == 1 { first - p.first } else { p.stride }, p.turns + 1);
                }
                _ => pieces.push(Piece { first, each, stride: 0, turns: 1 }),
            }
        }
        self.join(Group { nodes: 1, pieces });
    }

    /// So many nodes from this rank on, with `each` ranks in turn.
    pub(crate) fn blocks(first: u32, nodes: u32, each: u32) -> Placed {
        let group = Group { nodes, pieces: vec![Piece { first, each, stride: 0, turns: 1 }] };
        Placed { groups: if nodes > 0 { vec![group] } else { Vec::new() } }
    }

    fn join(&mut self, next: Group) {
        let follows = |group: &Group| {
            let behind = |p: &Piece| Piece { first: p.first + group.nodes * p.each, ..*p };
            group.pieces.iter().map(behind).eq(next.pieces.iter().copied())
        };
        match self.groups.last_mut().filter(|group| follows(group)) {
            Some(group) => group.nodes += next.nodes,
            None => self.groups.push(next),
        }
    }

    /// As bytes, for [`append`](Placed::append).
    pub(crate) fn encode(&self) -> Vec<u8> {
        let of = |g: &Group| {
            let pieces = g.pieces.iter().flat_map(|p| [p.first, p.each, p.stride, p.turns]);
            [g.nodes, g.pieces.len() as u32].into_iter().chain(pieces).collect::<Vec<u32>>()
        };
        self.groups.iter().flat_map(of).flat_map(u32::to_le_bytes).collect()
    }

    /// The next nodes are those that `bytes` tell of. `None`: they are not of this making.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Option<()> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let mut words = words.iter().map(|w| u32::from_le_bytes(*w));
        while let Some(nodes) = words.next() {
            let count = words.next()?;
            let pieces = (0..count).map(|_| {
                let [first, each, stride, turns] = [words.next()?, words.next()?, words.next()?, words.next()?];
                Some(Piece { first, each, stride, turns })
            });
            self.join(Group { nodes, pieces: pieces.collect::<Option<_>>()? });
        }
        Some(())
    }

    /// The map where all nodes are placed alike, without a look at each rank: jobs may have millions. `None`: they are not.
    fn regular(&self, size: u32) -> Option<NodeMap> {
        let [Group { nodes, pieces }] = &self.groups[..] else { return None };
        let [Piece { first: 0, each, stride, turns }] = pieces[..] else { return None };
        let across = u64::from(*nodes) * u64::from(each);
        let whole = across * u64::from(turns) == u64::from(size) && (turns == 1 || u64::from(stride) == across);
        // Of one node all ranks are one block.
        (whole && (*nodes > 1 || turns == 1)).then(|| NodeMap::blocks(size, each, *nodes))
    }

    /// The map of a job of so many ranks. `None`: these are not all of its ranks, each once.
    pub(crate) fn map(&self, size: u32) -> Option<NodeMap> {
        if let Some(map) = self.regular(size) {
            return Some(map);
        }
        let mut of = vec![u32::MAX; size as usize];
        let mut base = 0u32;
        for group in &self.groups {
            for piece in &group.pieces {
                for turn in 0..piece.turns as u64 {
                    let first = piece.first as u64 + turn * piece.stride as u64;
                    for k in 0..group.nodes as u64 * piece.each as u64 {
                        let node = of.get_mut((first + k) as usize).filter(|node| **node == u32::MAX)?;
                        *node = base + (k / piece.each as u64) as u32;
                    }
                }
            }
            base = base.checked_add(group.nodes)?;
        }
        (!of.contains(&u32::MAX)).then(|| NodeMap::new(&of))
    }
}
