//! A Cartesian grid that the ranks of a communicator form: its last dimension's neighbours have neighbouring ranks.

/// How long a grid is in each dimension, and whether it closes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    sides: Box<[(u32, bool)]>,
}

impl Grid {
    /// Dimensions, at least one and each at least 1. `None`: that is no grid of at most `most` ranks.
    pub fn new(sides: impl Iterator<Item = (u32, bool)>, most: u32) -> Option<Grid> {
        let grid = Grid { sides: sides.collect() };
        let ranks = grid.sides.iter().try_fold(1u32, |n, side| n.checked_mul(side.0))?;
        (!grid.sides.is_empty() && (1..=most).contains(&ranks)).then_some(grid)
    }

    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.sides.iter().map(|side| side.0).product()
    }

    /// How many dimensions.
    pub fn dimensions(&self) -> usize {
        self.sides.len()
    }

    /// Where in it a rank is.
    pub fn coordinates(&self, rank: u32) -> Vec<u32> {
        let mut left = rank;
        let mut from_last: Vec<u32> = self.sides.iter().rev().map(|(n, _)| (left % n, left /= n).0).collect();
        from_last.reverse();
        from_last
    }

    /// The rank there; coordinates of a dimension that closes go round. `None`: beyond an edge.
    pub fn rank(&self, at: impl Iterator<Item = i64>) -> Option<u32> {
        self.sides.iter().zip(at).try_fold(0, |rank, (&(n, closes), at)| {
            let at = if closes { at.rem_euclid(i64::from(n)) } else { at };
            u32::try_from(at).ok().filter(|at| *at < n).map(|at| rank * n + at)
        })
    }

    /// The rank so many steps away from one.
    pub fn away(&self, rank: u32, dimension: usize, steps: i64) -> Option<u32> {
        let step = |d| if d == dimension { steps } else { 0 };
        self.rank(self.coordinates(rank).into_iter().enumerate().map(|(d, at)| i64::from(at) + step(d)))
    }

    /// The neighbours of a rank: of each dimension the one before and the one behind.
    pub fn neighbours(&self, rank: u32) -> impl Iterator<Item = Option<u32>> + '_ {
        (0..2 * self.sides.len()).map(move |k| self.away(rank, k / 2, if k.is_multiple_of(2) { -1 } else { 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coordinates_are_each_others() {
        let grid = Grid::new([(3, false), (1, true), (4, true)].into_iter(), 12).unwrap();
        assert_eq!((grid.ranks(), grid.dimensions(), grid.coordinates(7)), (12, 3, vec![1, 0, 3]));
        for rank in 0..12 {
            assert_eq!(grid.rank(grid.coordinates(rank).into_iter().map(i64::from)), Some(rank));
            assert_eq!(grid.neighbours(rank).count(), 6);
        }
        assert_eq!(grid.neighbours(0).collect::<Vec<_>>(), [None, Some(4), Some(0), Some(0), Some(3), Some(1)]);
        assert_eq!((grid.away(11, 2, 6), grid.away(11, 0, -2), grid.away(11, 0, 1)), (Some(9), Some(3), None));
        assert!(Grid::new([(3, false), (5, false)].into_iter(), 14).is_none());
        assert!(Grid::new([(0, false)].into_iter(), 14).is_none() && Grid::new(core::iter::empty(), 14).is_none());
        assert!(Grid::new([(1 << 20, false), (1 << 20, false)].into_iter(), u32::MAX).is_none());
    }
}
