//! Floating-point numbers of 16 bits, which Rust has no types for: as bits, with conversions from and to `f32`.
//!
//! The conversions have no branches and no tables, so loops over them become vector code.

use super::plain::Plain;

/// A number of IEEE 754's binary16 ("half"), by its bits: sign, 5 bits of exponent, 10 of fraction.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16(pub u16);

/// A bfloat16, by its bits: the upper half of an `f32`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16(pub u16);

// SAFETY: a number of 16 bits, all of whose patterns are values.
unsafe impl Plain for F16 {}
// SAFETY: as above.
unsafe impl Plain for Bf16 {}

/// What lies between the exponents of `f32` and [`F16`], at the place of an `f32`'s exponent.
const BIAS: u32 = (127 - 15) << 23;

impl From<F16> for f32 {
    /// The same number.
    #[inline(always)]
    fn from(F16(bits): F16) -> f32 {
        let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
        // Below the smallest normal number the fraction counts 2^-24.
        let small = (rest as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
        let normal = (rest << 13) + BIAS;
        // Infinities and NaNs have the largest exponent in both.
        let normal = if rest >= 0x7c00 { normal + BIAS } else { normal };
        f32::from_bits(sign | if rest < 0x400 { small } else { normal })
    }
}

impl From<f32> for F16 {
    /// The nearest number, of two the even one.
    #[inline(always)]
    fn from(x: f32) -> F16 {
        let bits = x.to_bits();
        let (sign, size) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
        // From 2^-14 on: rounded by what is added below the last bit that stays. Too large ones become infinite.
        let normal = size.wrapping_sub(BIAS).wrapping_add(0xfff + ((size >> 13) & 1)) >> 13;
        let normal = if size >= 0x477f_f000 { 0x7c00 } else { normal };
        // Below, the last bit that stays counts 2^-24, as the last bit of what is near 0.5.
        let small = (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let number = if size < (127 - 14) << 23 { small } else { normal };
        let nan = 0x7e00 | ((size >> 13) & 0x3ff);
        F16((sign | if size > 0x7f80_0000 { nan } else { number }) as u16)
    }
}

impl From<Bf16> for f32 {
    /// The same number.
    #[inline(always)]
    fn from(Bf16(bits): Bf16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
}

impl From<f32> for Bf16 {
    /// The nearest number, of two the even one.
    #[inline(always)]
    fn from(x: f32) -> Bf16 {
        let bits = x.to_bits();
        let number = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
        let nan = bits | 0x40_0000;
        Bf16((if x.is_nan() { nan } else { number } >> 16) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the bits of a number with these widths say, by the definition.
    fn value(bits: u16, exponent_bits: u32, fraction_bits: u32) -> f64 {
        let (exponent, fraction) =
            (i32::from((bits & 0x7fff) >> fraction_bits), f64::from(bits & ((1 << fraction_bits) - 1)));
        let (bias, most) = ((1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1);
        let unit = f64::from(fraction_bits).exp2();
        let size = match exponent {
            0 => fraction / unit * f64::from(1 - bias).exp2(),
            e if e == most => {
                if fraction == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            e => (1.0 + fraction / unit) * f64::from(e - bias).exp2(),
        };
        if bits & 0x8000 != 0 { -size } else { size }
    }

    #[test]
    fn numbers_just_below_a_power_of_two_do_not_overflow() {
        for bits in (0x37ff_f000..=0x3800_1000_u32).chain(0x387f_f000..=0x3880_1000) {
            let (near, exact) = (f32::from(F16::from(f32::from_bits(bits))), f32::from_bits(bits));
            assert!((near - exact).abs() <= 2.0_f32.powi(-25), "{bits:#x}: {near} for {exact}");
        }
    }

    #[test]
    fn every_number_is_what_its_bits_say_and_comes_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f32::from(F16(bits)), f32::from(Bf16(bits)));
            for (got, want) in [(half, value(bits, 5, 10)), (brain, value(bits, 8, 7))] {
                let same = f64::from(got).to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{bits:#x}: {got} {want}");
            }
            assert!(F16::from(half).0 == bits | if half.is_nan() { 0x200 } else { 0 }, "{bits:#x}");
            assert!(Bf16::from(brain).0 == bits | if brain.is_nan() { 0x40 } else { 0 }, "{bits:#x}");
        }
    }

    /// Between two neighbours the nearer one, in the middle the even one.
    #[test]
    fn what_lies_between_is_rounded() {
        for bits in 0..0x7c00u16 {
            let (low, high) = (value(bits, 5, 10), if bits == 0x7bff { 65536.0 } else { value(bits + 1, 5, 10) });
            let middle = ((low + high) / 2.0) as f32;
            let near = |x: f32| [F16::from(x).0, F16::from(-x).0 & 0x7fff];
            assert_eq!(near(middle), [bits + (bits & 1); 2]);
            assert_eq!(near(middle.next_down()), [bits; 2]);
            assert_eq!(near(middle.next_up()), [bits + 1; 2]);
        }
        for bits in 0..0x7f80u16 {
            let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            let near = |x: f32| [Bf16::from(x).0, Bf16::from(-x).0 & 0x7fff];
            assert_eq!(near(middle), [bits + (bits & 1); 2]);
            assert_eq!(near(middle.next_down()), [bits; 2]);
            assert_eq!(near(middle.next_up()), [bits + 1; 2]);
        }
        assert_eq!(
            [F16::from(f32::MAX), F16::from(f32::INFINITY), F16::from(-1e30)].map(|h| h.0),
            [0x7c00, 0x7c00, 0xfc00]
        );
        assert_eq!([F16::from(1e-30), F16::from(-0.0), F16::from(f32::from_bits(1))].map(|h| h.0), [0, 0x8000, 0]);
    }
}
