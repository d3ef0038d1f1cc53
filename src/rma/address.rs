//! Global addresses: 64 bits that name a byte of any rank's registered memory.
//!
//! ```text
//!  63                43 42 41         34 33                                   0
//!  ┌───────────────────┬──┬─────────────┬─────────────────────────────────────┐
//!  │ rank + 1       21 │c1│ key       8 │ offset                           34 │      the default split
//!  └───────────────────┴──┴─────────────┴─────────────────────────────────────┘
//! ```
//! The rank is stored plus one, so that no address is 0, the null address. Who wants more keys than 255 takes bits from the rank, as
//! far as the job's size leaves them: see [`Split::of`]. Programs add to an address and otherwise read it through accessors.
//! (ACP's basic layer on InfiniBand, section 3.1.)

use core::fmt;

use crate::base::error::{Code, Result, error};

/// Bits of the colour.
pub const COLOUR_BITS: u32 = 1;
/// Bits of the offset: a registration has at most 16 GiB.
pub const OFFSET_BITS: u32 = 34;
/// Bits of the rank in the default split.
pub const RANK_BITS: u32 = 21;
/// Bits of the key in the default split.
pub const KEY_BITS: u32 = 8;
/// Most bits that a key can have.
pub const KEY_BITS_MOST: u32 = 16;

/// A byte in some rank's registered memory; 0 is none. Add to it to get to other bytes of the same registration.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GlobalAddress(u64);

impl GlobalAddress {
    /// The address of nothing.
    pub const NULL: GlobalAddress = GlobalAddress(0);

    /// The address as a number, to be sent to other ranks.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The address that this number is.
    pub const fn from_bits(bits: u64) -> GlobalAddress {
        GlobalAddress(bits)
    }

    /// Is it the address of nothing?
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl core::ops::Add<usize> for GlobalAddress {
    type Output = GlobalAddress;
    /// The address so many bytes further on. Beyond its registration it is found wrong when it is used.
    fn add(self, bytes: usize) -> GlobalAddress {
        GlobalAddress(self.0.wrapping_add(bytes as u64))
    }
}

impl fmt::Debug for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Display for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How a job's addresses are divided: the same at all its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    rank_bits: u32,
    key_bits: u32,
    /// Where the rank lies, and the key's bits, as look-ups want them.
    rank_at: u32,
    key_mask: u32,
}

impl Split {
    /// The split for a job of `size` ranks that may each have `keys` registrations at a time: 21 bits of rank and 8 of key unless more
    /// keys are wanted, and then as many as these need, if the ranks leave them.
    pub fn of(size: u32, keys: usize) -> Result<Split> {
        // Key 0 is the starter memory's.
        let key_bits = (usize::BITS - keys.leading_zeros()).max(KEY_BITS);
        let rank_bits = (RANK_BITS + KEY_BITS).saturating_sub(key_bits);
        // The rank is stored plus one.
        if key_bits > KEY_BITS_MOST || u64::from(size) > (1u64 << rank_bits) - 1 {
            return Err(error!(
                Code::Setting,
                "{keys} keys of global memory need {key_bits} bits of an address; with {size} ranks there are {}",
                (RANK_BITS + KEY_BITS).saturating_sub(u64::BITS - u64::from(size).leading_zeros()).min(KEY_BITS_MOST)
            ));
        }
        Ok(Split { rank_bits, key_bits, rank_at: OFFSET_BITS + key_bits + COLOUR_BITS, key_mask: (1 << key_bits) - 1 })
    }

    /// Bits of rank, colour, key and offset.
    pub fn bits(self) -> [u32; 4] {
        [self.rank_bits, COLOUR_BITS, self.key_bits, OFFSET_BITS]
    }

    /// Keys that there are, with the starter memory's.
    pub fn keys(self) -> usize {
        1 << self.key_bits
    }

    /// The same number where the split is the same.
    pub(super) fn digest(self) -> u64 {
        u64::from(self.rank_bits) << 32 | u64::from(self.key_bits)
    }

    /// An address of its parts, each within its bits.
    pub(super) fn address(self, rank: u32, colour: u32, key: u32, offset: u64) -> GlobalAddress {
        debug_assert!(offset < 1 << OFFSET_BITS && (key as usize) < self.keys() && colour < 1 << COLOUR_BITS);
        let (key_at, colour_at) = (OFFSET_BITS, self.rank_at - COLOUR_BITS);
        GlobalAddress(
            (u64::from(rank) + 1) << self.rank_at | u64::from(colour) << colour_at | u64::from(key) << key_at | offset,
        )
    }

    /// The rank; `None` of the null address, and of a number that has no rank.
    #[inline(always)]
    pub fn rank(self, ga: GlobalAddress) -> Option<u32> {
        ((ga.0 >> self.rank_at) as u32).checked_sub(1)
    }

    /// The colour.
    #[inline(always)]
    pub fn colour(self, ga: GlobalAddress) -> u32 {
        (ga.0 >> (self.rank_at - COLOUR_BITS)) as u32 & ((1 << COLOUR_BITS) - 1)
    }

    /// The registration key.
    #[inline(always)]
    pub fn key(self, ga: GlobalAddress) -> u32 {
        (ga.0 >> OFFSET_BITS) as u32 & self.key_mask
    }

    /// Bytes from the beginning of the registration.
    #[inline(always)]
    pub fn offset(self, ga: GlobalAddress) -> u64 {
        ga.0 & ((1 << OFFSET_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_21_1_8_34() {
        for (size, keys) in [(1, 255), (8, 1), (2_097_151, 255)] {
            let split = Split::of(size, keys).unwrap();
            assert_eq!(split.bits(), [21, 1, 8, 34]);
            let ga = split.address(size - 1, 1, 255, (1 << 34) - 1);
            assert_eq!(ga.bits(), (u64::from(size) << 43) + ((1 << 43) - 1));
            assert_eq!((split.rank(ga), split.colour(ga), split.key(ga)), (Some(size - 1), 1, 255));
            assert_eq!(split.offset(ga), (1 << 34) - 1);
        }
        assert!(Split::of(2_097_152, 255).is_err());
    }

    #[test]
    fn fewer_ranks_leave_more_keys() {
        assert_eq!(Split::of(8, 256).unwrap().bits(), [20, 1, 9, 34]);
        assert_eq!(Split::of(8, 65_535).unwrap().bits(), [13, 1, 16, 34]);
        assert_eq!(Split::of(8191, 65_535).unwrap().keys(), 65_536);
        for (size, keys) in [(8192, 65_535), (4, 65_536), (1 << 20, 600), (4, usize::MAX)] {
            let e = Split::of(size, keys).unwrap_err();
            assert!(e.code() == Code::Setting && e.detail().contains(&keys.to_string()), "{e}");
        }
    }

    #[test]
    fn parts_come_back_and_nothing_is_null() {
        for keys in [255, 1000, 65_535] {
            let split = Split::of(100, keys).unwrap();
            for (rank, colour, key, offset) in [(0, 0, 0, 0), (99, 1, 7, 12345), (57, 0, keys as u32, (1 << 34) - 1)] {
                let ga = split.address(rank, colour, key, offset);
                assert!(!ga.is_null());
                assert_eq!(split.rank(ga), Some(rank));
                assert_eq!((split.colour(ga), split.key(ga), split.offset(ga)), (colour, key, offset));
                assert_eq!(GlobalAddress::from_bits(ga.bits()), ga);
            }
        }
        assert_eq!(Split::of(4, 255).unwrap().rank(GlobalAddress::NULL), None);
    }
}
