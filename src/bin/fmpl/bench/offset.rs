//! Where the buffers lie: so many bytes behind the beginning of a page, the same for all contestants.
//!
//! 16 unless `--offset` says otherwise: there malloc puts long ones (and so Rust's `Vec` and Fortran's `ALLOCATE`), and how fast a
//! processor copies may depend on it.

use std::fmt;

/// Bytes behind a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Of what is sent.
    pub send: usize,
    /// Of what is received into.
    pub receive: usize,
}

/// Where malloc puts what it has mapped for itself.
pub const HEAP: Offset = Offset { send: 16, receive: 16 };

/// What is further behind a page than this lies behind another one.
const MOST: usize = 4095;

impl Offset {
    /// `N[,M]`
    pub fn parse(text: &str) -> Result<Offset, String> {
        let number = |t: &str| match t.trim().parse() {
            Ok(n) if n <= MOST => Ok(n),
            _ => Err(format!("{text}: an offset is N or N,M, from 0 to {MOST}")),
        };
        let (send, receive) = text.split_once(',').unwrap_or((text, text));
        Ok(Offset { send: number(send)?, receive: number(receive)? })
    }

    /// Of this rank's two buffers; `by_rank`: each rank has one that it sends and receives into, and the ranks take turns.
    pub fn of_rank(self, rank: usize, by_rank: bool) -> [usize; 2] {
        match (by_rank, rank % 2) {
            (false, _) => [self.send, self.receive],
            (true, 0) => [self.send; 2],
            (true, _) => [self.receive; 2],
        }
    }

    /// Whether both are multiples of this.
    pub fn is_multiple_of(self, unit: usize) -> bool {
        self.send.is_multiple_of(unit) && self.receive.is_multiple_of(unit)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.send, self.receive)
    }
}

#[cfg(test)]
mod tests {
    use super::{HEAP, Offset};

    #[test]
    fn one_number_or_two() {
        assert_eq!(Offset::parse("16"), Ok(HEAP));
        assert_eq!(Offset::parse("0,4080"), Ok(Offset { send: 0, receive: 4080 }));
        for wrong in ["", "4096", "1,", "x", "1,2,3"] {
            assert!(Offset::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn of_a_buffer_that_goes_back_ranks_take_turns() {
        let o = Offset { send: 8, receive: 64 };
        assert_eq!([0, 1].map(|r| o.of_rank(r, false)), [[8, 64], [8, 64]]);
        assert_eq!([0, 1, 2].map(|r| o.of_rank(r, true)), [[8, 8], [64, 64], [8, 8]]);
    }
}
