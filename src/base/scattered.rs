//! Numbers that look random, the same again from the same start (splitmix64: Steele, Lea, Flood 2014): for tests, and for what only tests set.

/// What a generator adds to its state for each number.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of a state.
pub fn scattered(state: u64) -> u64 {
    let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator that begins with 0, as its authors' program prints them.
    #[test]
    fn the_numbers_are_those_of_the_generator() {
        let of = |n: u64| scattered(STEP.wrapping_mul(n));
        assert_eq!([of(1), of(2), of(3)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
