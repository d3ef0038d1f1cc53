//! Which nodes share a switch: `FMPL_TOPOLOGY`, and the trees and orders that follow from it.
//!
//! Nodes are leaves of a tree of switches of one depth. They have the numbers that `fmpl info` shows: in the order of their lowest ranks.
//!
//! ```text
//!   blocks:4,16                        switches of 4 nodes each; 4 of these (16 nodes) below each of the next level
//!   ((0-3)(4,6))((5,7-9))              each pair of brackets a switch, and in the innermost ones nodes
//!   file:PATH                          a line for some nodes each: 0-3  spine0/leaf0
//! ```
//! What is kept does not grow with the nodes but with the runs of neighbours below one switch.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use super::sorting::{sort_by, sort_by_key};

/// The switches that a node is below, by number, from the uppermost down.
type Path = Vec<u32>;

/// The levels of a network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    shape: Shape,
    /// Levels of switches, at least 1.
    levels: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    /// Nodes below a switch, of each level from the uppermost down.
    Blocks(Vec<u32>),
    /// Nodes from one to another, both included, in order.
    Runs(Vec<(u32, u32, Path)>),
}

/// The place of a member in a tree: by whom it is reached, and whom it reaches, those with the largest parts first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// `None`: it is the root.
    pub parent: Option<usize>,
    /// In the order in which they are to be served.
    pub children: Vec<usize>,
}

impl Topology {
    /// Reads the setting, of a job of so many nodes.
    pub fn parse(text: &str, nodes: u32) -> Result<Topology, String> {
        if let Some(sizes) = text.strip_prefix("blocks:") {
            return Topology::blocks(sizes);
        }
        let runs = match text.strip_prefix("file:") {
            Some(path) => {
                let lines = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
                runs_of_lines(&lines).map_err(|why| format!("{path}, {why}"))?
            }
            None => runs_of_brackets(text)?,
        };
        Topology::of_runs(runs, nodes)
    }

    fn blocks(text: &str) -> Result<Topology, String> {
        let size = |word: &str| word.trim().parse::<u32>().ok().filter(|n| *n > 0);
        let sizes: Option<Vec<u32>> = text.split(',').map(size).collect();
        let mut sizes =
            sizes.ok_or_else(|| format!("blocks:{text}: numbers of nodes are wanted, as in blocks:4,16"))?;
        if let Some(two) = sizes.windows(2).find(|two| two[1] <= two[0] || !two[1].is_multiple_of(two[0])) {
            return Err(format!(
                "blocks:{text}: switches of {} nodes cannot consist of switches of {}",
                two[1], two[0]
            ));
        }
        sizes.reverse();
        Ok(Topology { levels: sizes.len(), shape: Shape::Blocks(sizes) })
    }

    /// Each of the nodes is below one switch, and below switches of as many levels as the others.
    fn of_runs(mut runs: Vec<(u32, u32, Path)>, nodes: u32) -> Result<Topology, String> {
        sort_by(&mut runs, Ord::cmp);
        let mut next = 0;
        for (from, to, path) in &runs {
            match from.cmp(&next) {
                std::cmp::Ordering::Less => return Err(format!("node {from} is named twice")),
                std::cmp::Ordering::Greater => return Err(format!("node {next} is below no switch")),
                std::cmp::Ordering::Equal => next = to + 1,
            }
            let depth = runs[0].2.len();
            if path.len() != depth {
                return Err(format!("node {from} is below {} levels of switches, node 0 below {depth}", path.len()));
            }
        }
        match nodes.cmp(&next) {
            std::cmp::Ordering::Less => Err(format!("node {} is named, and the job has {nodes}", next - 1)),
            std::cmp::Ordering::Greater => Err(format!("node {next} of {nodes} is below no switch")),
            std::cmp::Ordering::Equal => Ok(Topology { levels: runs[0].2.len(), shape: Shape::Runs(runs) }),
        }
    }

    /// Levels of switches.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The switch of a level, from 0, the uppermost, on, that a node is below. Its number says nothing beyond whether two are the same, below the
    /// same one of the level above.
    pub fn switch(&self, level: usize, node: u32) -> u32 {
        match &self.shape {
            Shape::Blocks(sizes) => node / sizes[level],
            Shape::Runs(runs) => {
                let at = runs.partition_point(|run| run.1 < node).min(runs.len() - 1);
                runs[at].2[level]
            }
        }
    }

    /// The same with the node itself as the level below all switches.
    fn below(&self, level: usize, node: u32) -> u32 {
        if level >= self.levels { node } else { self.switch(level, node) }
    }

    /// How many levels a message between two nodes goes up beyond the lowest switch: 0, both are below one.
    pub fn distance(&self, a: u32, b: u32) -> usize {
        (0..self.levels)
            .find(|level| self.switch(*level, a) != self.switch(*level, b))
            .map_or(0, |level| self.levels - level)
    }

    /// A number by which two processes find out that they do not know the same.
    pub fn digest(&self) -> u32 {
        // The keys of this hasher are fixed, so processes agree.
        #[expect(deprecated, reason = "a hash that is the same in all processes")]
        let mut hasher = std::hash::SipHasher::new();
        self.hash(&mut hasher);
        hasher.finish() as u32
    }

    /// Members by the nodes that they are on, in an order in which those below one switch, or on one node, are neighbours, and the root is the first.
    /// All switches come in the order of their first members, but those of the root first.
    pub fn order(&self, nodes: &[u32], root: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..nodes.len()).collect();
        all.rotate_left(root);
        // From the lowest level up, each sorting keeps what the one before has made.
        let mut first = HashMap::new();
        let mut keys: Vec<(Vec<usize>, usize)> = Vec::with_capacity(all.len());
        for (at, member) in all.into_iter().enumerate() {
            let mut path = Vec::with_capacity(self.levels + 1);
            let key = (0..=self.levels)
                .map(|level| {
                    path.push(self.below(level, nodes[member]));
                    *first.entry(path.clone()).or_insert(at)
                })
                .collect();
            keys.push((key, member));
        }
        sort_by(&mut keys, |a, b| a.0.cmp(&b.0));
        keys.into_iter().map(|(_, member)| member).collect()
    }

    /// A tree over members on these nodes, which are in such an order, with the first as its root: it reaches each switch and node once. From the root one
    /// member of each of the uppermost switches is reached, by a binomial tree, from there one of each of the switches below, and so on. Of each member: by
    /// whom it is reached (the root: by itself), and behind which the members end that are reached through it, which are those behind it.
    pub fn tree(&self, nodes: &[u32]) -> Vec<(usize, usize)> {
        let mut found = vec![(0, nodes.len()); nodes.len()];
        let mut open = vec![(0, 0..nodes.len())];
        while let Some((level, here)) = open.pop() {
            // The first of each switch of this level, of each node, at last each member.
            let of = |k: usize| self.below(level, nodes[k]);
            let is_first = |k: &usize| level > self.levels || *k == here.start || of(*k) != of(*k - 1);
            let firsts: Vec<usize> = here.clone().filter(is_first).collect();
            let at = |v: usize| firsts.get(v).copied().unwrap_or(here.end);
            for v in 0..firsts.len() {
                if v > 0 {
                    let part = 1 << v.trailing_zeros();
                    found[at(v)] = (at(v - part), at(v + part));
                }
                if level <= self.levels && at(v + 1) - at(v) > 1 {
                    open.push((level + 1, at(v)..at(v + 1)));
                }
            }
        }
        found
    }

    /// The place of member `me` in the tree over members on these nodes, in any order, with this root.
    pub fn branches(&self, nodes: &[u32], root: usize, me: usize) -> Branches {
        let order = self.order(nodes, root);
        let tree = self.tree(&order.iter().map(|member| nodes[*member]).collect::<Vec<_>>());
        let at = order.iter().position(|member| *member == me).unwrap_or(0);
        let children = (at + 1..tree[at].1).rev().filter(|k| tree[*k].0 == at).map(|k| order[k]).collect();
        Branches { parent: (at > 0).then(|| order[tree[at].0]), children }
    }

    /// So many places at nodes of these, spread evenly: as many below each switch, at each level, as the nodes allow, one more below those that are
    /// nearest to `here`, and there from the next node on.
    pub fn spread(&self, nodes: impl Iterator<Item = u32>, here: u32, places: usize) -> Vec<u32> {
        let all: Vec<u32> = nodes.collect();
        let behind = all.partition_point(|node| *node <= here);
        let turned: Vec<u32> = all[behind..].iter().chain(&all[..behind]).copied().collect();
        let mut found = Vec::new();
        self.spread_below(0, &turned, here, places, &mut found);
        found
    }

    fn spread_below(&self, level: usize, nodes: &[u32], here: u32, places: usize, found: &mut Vec<u32>) {
        if nodes.is_empty() {
            return;
        }
        if level == self.levels {
            found.extend((0..places).map(|k| nodes[k % nodes.len()]));
            return;
        }
        let (mut groups, mut known) = (Vec::<(u32, Vec<u32>)>::new(), HashMap::new());
        for node in nodes {
            let switch = self.switch(level, *node);
            let at = *known.entry(switch).or_insert(groups.len());
            if at == groups.len() {
                groups.push((switch, Vec::new()));
            }
            groups[at].1.push(*node);
        }
        sort_by_key(&mut groups, |group| group.0 != self.switch(level, here));
        let many = groups.len();
        for (k, (_, below)) in groups.into_iter().enumerate() {
            self.spread_below(level + 1, &below, here, places / many + (k < places % many) as usize, found);
        }
    }
}

/// `0-3,7`: nodes from one to another.
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let range = |word: &str| {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to && to < u32::MAX).then_some((from, to))
    };
    text.split(',')
        .map(|word| range(word).ok_or_else(|| format!("{:?} is no node, nor nodes like 0-3", word.trim())))
        .collect()
}

/// `((0-3)(4,6))((5,7-9))`
fn runs_of_brackets(text: &str) -> Result<Vec<(u32, u32, Path)>, String> {
    let (mut runs, mut path, mut next, mut nodes) = (Vec::new(), Path::new(), 0, String::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' if nodes.trim().is_empty() => {
                path.push(next);
                next += 1;
            }
            ')' if !path.is_empty() => {
                if !nodes.trim().is_empty() {
                    runs.extend(ranges(&nodes)?.into_iter().map(|(from, to)| (from, to, path.clone())));
                    nodes.clear();
                }
                path.pop();
            }
            '(' | ')' => return Err(format!("character {}: no {c} is possible there", at + 1)),
            _ if path.is_empty() && !c.is_whitespace() => {
                return Err("it is blocks:4,16, or file:PATH, or brackets like ((0-3)(4-7))((8-11)(12-15))".into());
            }
            _ => nodes.push(c),
        }
    }
    match (path.is_empty(), runs.is_empty()) {
        (false, _) => Err("a bracket is not closed".into()),
        (_, true) => Err("there is no node in it".into()),
        _ => Ok(runs),
    }
}

/// A line for some nodes each: `0-3  spine0/leaf0`, and comments from # on.
fn runs_of_lines(text: &str) -> Result<Vec<(u32, u32, Path)>, String> {
    let mut numbers = HashMap::new();
    let mut runs = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let Some((nodes, switches)) = line.split_once(char::is_whitespace) else {
            match line.is_empty() {
                true => continue,
                false => return Err(format!("line {}: nodes and their switches are wanted: 0-3 spine0/leaf0", n + 1)),
            }
        };
        // A switch is known by its name and those above it.
        let ends = switches.trim().match_indices('/').map(|(at, _)| at).chain([switches.trim().len()]);
        let path: Path = ends
            .map(|end| {
                let next = numbers.len() as u32;
                *numbers.entry(switches.trim()[..end].to_owned()).or_insert(next)
            })
            .collect();
        let all = ranges(nodes).map_err(|why| format!("line {}: {why}", n + 1))?;
        runs.extend(all.into_iter().map(|(from, to)| (from, to, path.clone())));
    }
    if runs.is_empty() { Err("there is no node in it".into()) } else { Ok(runs) }
}

#[cfg(test)]
mod tests;
