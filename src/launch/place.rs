//! Where the ranks are: which of them share this node, as far as the launcher says.
//!
//! `PMI_process_mapping` describes it in a few characters: `(vector,(0,2,8))` means blocks of 8 ranks on each of 2 nodes
//! starting with node 0. Its blocks are gone through again until every rank has a node.

use std::fmt::Write;

/// The node of each of `size` ranks, from the text of `PMI_process_mapping`. `None`: not understood.
pub(crate) fn nodes_from_mapping(text: &str, size: u32) -> Option<Vec<u32>> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let inner = text.strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut blocks = Vec::new();
    for block in inner.split("),") {
        let block = block.strip_prefix('(')?;
        let block = block.strip_suffix(')').unwrap_or(block);
        let mut numbers = block.split(',').map(|n| n.parse::<u32>().ok());
        let (start, nodes, ranks) = (numbers.next()??, numbers.next()??, numbers.next()??);
        if numbers.next().is_some() {
            return None;
        }
        start.checked_add(nodes)?;
        blocks.push((start, nodes, ranks));
    }
    if blocks.iter().all(|(_, nodes, ranks)| *nodes == 0 || *ranks == 0) {
        return None;
    }
    let mut of = Vec::with_capacity(size as usize);
    for (start, nodes, ranks) in blocks.iter().cycle() {
        // Each count is cut to what is still open, so that absurd numbers cost nothing.
        let open = size as usize - of.len();
        for node in (*start..*start + *nodes).take(if *ranks == 0 { 0 } else { open }) {
            let open = size as usize - of.len();
            of.extend(std::iter::repeat_n(node, (*ranks as usize).min(open)));
        }
        if of.len() == size as usize {
            return Some(of);
        }
    }
    None
}

/// The ranks with the same node as `rank`, in order.
pub(crate) fn neighbours(nodes: &[u32], rank: u32) -> Vec<u32> {
    let here = nodes[rank as usize];
    nodes.iter().enumerate().filter(|(_, n)| **n == here).map(|(r, _)| r as u32).collect()
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
    fn mappings() {
        let m = nodes_from_mapping;
        assert_eq!(m("(vector,(0,1,1))", 4), Some(vec![0; 4]));
        assert_eq!(m("(vector,(0,2,2))", 4), Some(vec![0, 0, 1, 1]));
        assert_eq!(m("(vector, (0,2,1))", 5), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(m("(vector,(0,1,3),(1,2,1))", 5), Some(vec![0, 0, 0, 1, 2]));
        assert_eq!(m("(vector,(0,4294967295,4294967295))", 2), Some(vec![0, 0]));
        for bad in [
            "",
            "(vector)",
            "(vector,)",
            "(vector,(0,1))",
            "(vector,(0,0,1))",
            "(vector,(0,1,0))",
            "(vector,(0,1,1,1))",
            "(vector,(9,4294967295,1))",
        ] {
            assert_eq!(m(bad, 2), None, "{bad}");
        }
        assert_eq!(neighbours(&[0, 1, 0, 1, 0], 3), [1, 3]);
    }

    #[test]
    fn ranks_as_people_write_them() {
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([3]), "3");
        assert_eq!(ranges([0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    proptest! {
        #[test]
        fn any_text_gives_every_rank_a_node_or_none(text in "(\\(vector,)?[(),0-9 ]{0,40}\\)?", size in 1u32..100) {
            if let Some(nodes) = nodes_from_mapping(&text, size) {
                prop_assert_eq!(nodes.len(), size as usize);
            }
        }
    }
}
