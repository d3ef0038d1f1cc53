//! What a benchmark measures: its cases, one for each line of its table, and the figures that a block of each gives.

use super::offset::{HEAP, Offset};
use super::size_text;

/// One line of a benchmark's table.
#[derive(Clone)]
pub struct Case {
    /// What the line is called.
    pub label: String,
    /// Bytes of a message, where that is what distinguishes the cases.
    pub bytes: Option<usize>,
    /// The place on a plot's horizontal axis.
    pub x: Option<f64>,
    /// The command line for the ranks.
    pub command: String,
    /// Blocks in a round.
    pub blocks: usize,
    /// Blocks before them that do not count.
    pub warm_blocks: usize,
    /// Where the buffers lie.
    pub offset: Offset,
    /// Each rank has one buffer, and `offset` tells those of even ranks from those of odd ones.
    pub by_rank: bool,
    /// The buffers hold elements of so many bytes, and lie at a multiple of it.
    pub unit: usize,
}

impl Case {
    pub(super) fn sized(n: usize, command: String) -> Case {
        let case = Case::counted(size_text(n), n, command).blocks(if n > 1 << 20 { 7 } else { 15 });
        Case { bytes: Some(n), warm_blocks: 2, ..case }
    }
    pub(super) fn counted(label: String, n: usize, command: String) -> Case {
        Case { x: Some(n as f64), ..Case::named_only(&label, command) }
    }
    pub(super) fn named_only(label: &str, command: String) -> Case {
        let (label, blocks, warm_blocks) = (label.into(), 15, 1);
        Case { label, bytes: None, x: None, command, blocks, warm_blocks, offset: HEAP, by_rank: false, unit: 1 }
    }
    pub(super) fn named(mut self, label: &str, n: usize) -> Case {
        self.label = format!("{} {label}", size_text(n));
        self.x = None;
        self
    }
    pub(super) fn blocks(mut self, n: usize) -> Case {
        self.blocks = n;
        self
    }
    /// Each rank sends and receives with one buffer.
    pub(super) fn by_rank(mut self) -> Case {
        self.by_rank = true;
        self
    }
    /// The buffers hold `double`.
    pub(super) fn of_doubles(mut self) -> Case {
        self.unit = 8;
        self
    }
    /// What only the first time shows: no blocks for warming.
    pub(super) fn cold(mut self) -> Case {
        self.warm_blocks = 0;
        self
    }
}

/// One number that a block gives.
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// The unit shown.
    pub unit: &'static str,
    /// From the block's number to the unit shown.
    pub scale: f64,
    /// Also shown as bytes per second.
    pub bandwidth: bool,
    /// The first block counts, since what has grown stays: the most is shown instead of the least.
    pub growth: bool,
    /// A share, where more is better and no ratio is formed.
    pub share: bool,
}

impl Figure {
    pub(super) const fn time(name: &'static str, unit: &'static str, scale: f64) -> Figure {
        Figure { name, unit, scale, bandwidth: false, growth: false, share: false }
    }
    pub(super) const fn share(name: &'static str) -> Figure {
        Figure { name, unit: "", scale: 1.0, bandwidth: false, growth: false, share: true }
    }
    /// A number for which no ratio is formed.
    pub(super) const fn count(name: &'static str) -> Figure {
        Figure { share: true, ..Figure::time(name, "", 1.0) }
    }
    /// Whether less is better and a ratio says how much.
    pub(super) fn compares(&self) -> bool {
        !self.share && !self.growth
    }
    pub(super) const fn bandwidth(mut self) -> Figure {
        self.bandwidth = true;
        self
    }
    pub(super) const fn growth(mut self) -> Figure {
        self.growth = true;
        self
    }
}
