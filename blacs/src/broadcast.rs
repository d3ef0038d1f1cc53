//! Broadcasts: a topology is a tree; a process receives from its parent and sends to its children. No sender waits for a receiver.

use core::sync::atomic::Ordering::Relaxed;

use crate::Int;
use crate::context::Context;
use crate::matrix::Area;
use crate::report::fatal;
use crate::scope::{Scope, Which};

/// How a broadcast spreads. Processes are numbered from the root on, which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    /// Each to the next.
    Ring,
    /// Each to the one before.
    Backwards,
    /// Both ways at once, half of the processes on either.
    Split,
    /// The root begins so many rings.
    Rings(usize),
    /// Numbers to this base: whoever has the message sends to those that differ in one digit above its own.
    Tree(usize),
}

impl Topology {
    fn of(letter: u8, context: &Context) -> Option<Topology> {
        Some(match letter.to_ascii_lowercase() {
            b' ' | b'h' => Topology::Tree(2),
            b'i' => Topology::Ring,
            b'd' => Topology::Backwards,
            b's' => Topology::Split,
            b'm' => Topology::Rings(context.settings.rings.load(Relaxed).unsigned_abs() as usize),
            b'f' => Topology::Rings(usize::MAX),
            b't' => Topology::Tree(context.settings.branches.load(Relaxed) as usize + 1),
            digit @ b'1'..=b'9' => Topology::Tree((digit - b'0') as usize + 1),
            _ => return None,
        })
    }

    /// The parent of process `me` of `size`; not for the root.
    fn parent(self, me: usize, size: usize) -> usize {
        match self {
            Topology::Ring | Topology::Backwards => me - 1,
            Topology::Split => {
                let half = size / 2;
                if me == 1 || me == size - 1 {
                    0
                } else if me <= half {
                    me - 1
                } else {
                    me + 1
                }
            }
            Topology::Rings(rings) => {
                if ring_begins(me, size, rings) {
                    0
                } else {
                    me - 1
                }
            }
            Topology::Tree(base) => {
                let mut digit = 1;
                while (me / digit).is_multiple_of(base) {
                    digit *= base;
                }
                me - me / digit % base * digit
            }
        }
    }

    /// Calls `to` for each child of process `me` of `size`, the one with the longest way on first.
    fn children(self, me: usize, size: usize, mut to: impl FnMut(usize)) {
        match self {
            Topology::Ring | Topology::Backwards => {
                if me + 1 < size {
                    to(me + 1);
                }
            }
            Topology::Split => {
                let half = size / 2;
                if me == 0 {
                    if size > 1 {
                        to(1);
                    }
                    if size - 1 > half && size > 2 {
                        to(size - 1);
                    }
                } else if me < half {
                    to(me + 1);
                } else if me > half + 1 {
                    to(me - 1);
                }
            }
            Topology::Rings(rings) => {
                if me == 0 {
                    (1..size).filter(|k| ring_begins(*k, size, rings)).for_each(to);
                } else if me + 1 < size && !ring_begins(me + 1, size, rings) {
                    to(me + 1);
                }
            }
            Topology::Tree(base) => {
                // The digit below which this process's number is all zeros: its children differ there.
                let mut digit = 1;
                while digit < size && (me / digit).is_multiple_of(base) {
                    digit = digit.saturating_mul(base);
                }
                while digit > 1 {
                    digit /= base;
                    (1..base).map(|k| me + k * digit).take_while(|child| *child < size).for_each(&mut to);
                }
            }
        }
    }
}

/// Does a ring begin at process `k`? The others are dealt out evenly, in order.
fn ring_begins(k: usize, size: usize, rings: usize) -> bool {
    let others = size - 1;
    let rings = rings.clamp(1, others);
    let (short, longer) = (others / rings, others % rings);
    let k = k - 1;
    if k < longer * (short + 1) {
        k.is_multiple_of(short + 1)
    } else {
        (k - longer * (short + 1)).is_multiple_of(short)
    }
}

/// The members of a scope, numbered from a root on.
struct From<'a> {
    scope: Scope<'a>,
    root: usize,
    topology: Topology,
}

impl From<'_> {
    fn number(&self, member: usize) -> usize {
        let (size, root) = (self.scope.size, self.root);
        if self.topology == Topology::Backwards { (root + size - member) % size } else { (member + size - root) % size }
    }
    fn member(&self, number: usize) -> usize {
        let (size, root) = (self.scope.size, self.root);
        if self.topology == Topology::Backwards { (root + size - number) % size } else { (root + number) % size }
    }
    fn run(&self, area: &Area<'_>) {
        let (me, size) = (self.number(self.scope.me), self.scope.size);
        if me != 0 {
            self.scope.receive(area, self.member(self.topology.parent(me, size)));
        }
        self.topology.children(me, size, |child| self.scope.send(area, self.member(child)));
    }
}

/// Sends from this process to its scope (`source` `None`), or receives from the process there; a row looks at its column only, a column
/// at its row only.
pub fn broadcast(
    context: &Context,
    scope: u8,
    letter: u8,
    area: &Area<'_>,
    source: Option<(Int, Int)>,
    routine: &'static str,
) {
    let (which, scope) = scope_of(context, scope, routine);
    let Some(topology) = Topology::of(letter, context) else { bad_topology(context, letter, routine) };
    let root = match source {
        None => scope.me,
        Some((row, col)) => member_of(context, which, row, col, routine),
    };
    From { scope, root, topology }.run(area);
}

/// The members of a scope; the job ends if there is none of that letter.
#[inline]
pub fn scope_of<'a>(context: &'a Context, letter: u8, routine: &'static str) -> (Which, Scope<'a>) {
    match context.scope(letter, routine) {
        Some(found) => found,
        None => fatal(context.handle, routine, format_args!("Unknown scope '{}'", letter as char)),
    }
}

/// The number in a scope of the process at these coordinates.
pub fn member_of(context: &Context, which: Which, row: Int, col: Int, routine: &str) -> usize {
    let (row, col) = match which {
        Which::Row => (context.row as Int, col),
        Which::Column => (row, context.col as Int),
        Which::All => (row, col),
    };
    let number = crate::context::number_of(context, row, col, routine);
    match which {
        Which::Row => col as usize,
        Which::Column => row as usize,
        Which::All => number,
    }
}

#[cold]
pub fn bad_topology(context: &Context, letter: u8, routine: &str) -> ! {
    fatal(context.handle, routine, format_args!("Unknown topology '{}'", letter as char))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each process but the root has one parent, whose child it is; so all are reached once.
    #[test]
    fn topologies_are_trees() {
        let mut all = vec![Topology::Ring, Topology::Backwards, Topology::Split];
        all.extend([1, 2, 3, 7, usize::MAX].map(Topology::Rings));
        all.extend([2, 3, 4, 10].map(Topology::Tree));
        for topology in all {
            for size in 1..40 {
                let mut reached = vec![0; size];
                for me in 0..size {
                    topology.children(me, size, |child| {
                        assert!(child < size && child != 0, "{topology:?} {size}: {me} to {child}");
                        assert_eq!(topology.parent(child, size), me, "{topology:?} {size}: parent of {child}");
                        reached[child] += 1;
                    });
                }
                assert!(reached[1..].iter().all(|n| *n == 1), "{topology:?} {size}: {reached:?}");
                // And from the root: following parents ends there.
                for mut me in 0..size {
                    let mut steps = 0;
                    while me != 0 {
                        me = topology.parent(me, size);
                        steps += 1;
                        assert!(steps <= size, "{topology:?} {size}: a cycle");
                    }
                }
            }
        }
    }
}
