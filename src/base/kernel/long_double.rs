//! `long double` of the x87: 80 bits in 16 bytes, which Rust has no type for. Sum and product are the processor's own instructions;
//! which of two is the larger one their bits say.

use core::cmp::Ordering;

use super::Kind;
use super::Loops;
use crate::base::located::{Located, Value, values};
use crate::base::plain::of_plain;

of_plain! {
    /// A number as it lies in memory. The last six bytes mean nothing.
    #[derive(Clone, Copy)]
    pub struct Long {
        /// The first bit of it counts 1.
        fraction: u64,
        /// The sign is the uppermost bit.
        exponent: u16,
        free: [u16; 3],
    }
}

impl Long {
    #[inline(always)]
    pub fn is_sign_negative(self) -> bool {
        self.exponent & 0x8000 != 0
    }

    /// Larger numbers have a larger one; none: a NaN.
    #[inline(always)]
    fn place(self) -> Option<i128> {
        let size = i128::from(self.exponent & 0x7fff) << 64 | i128::from(self.fraction);
        let is_nan = self.exponent & 0x7fff == 0x7fff && self.fraction << 1 != 0;
        (!is_nan).then_some(if self.is_sign_negative() { -size } else { size })
    }
}

impl PartialEq for Long {
    #[inline(always)]
    fn eq(&self, other: &Long) -> bool {
        self.place().is_some() && self.place() == other.place()
    }
}

impl PartialOrd for Long {
    #[inline(always)]
    fn partial_cmp(&self, other: &Long) -> Option<Ordering> {
        Some(self.place()?.cmp(&other.place()?))
    }
}

values! { Long = f80: 0 12; }

macro_rules! x87 {
    ($name:ident, $function:ident: $instruction:literal) => {
        #[cfg(target_arch = "x86_64")]
        pub(super) const $name: Loops =
            Loops { size: size_of::<Long>(), any: $function, best: $function };
        #[cfg(not(target_arch = "x86_64"))]
        pub(super) const $name: Loops = Loops::NONE;

        /// # Safety
        /// As for [`each`](super::each).
        #[cfg(target_arch = "x86_64")]
        unsafe fn $function(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
            for k in 0..n {
                let at = k * size_of::<Long>();
                // SAFETY: element k of each, as the caller promises; both are read before the output is written. Six bytes of an element
                // are no part of the number.
                unsafe {
                    core::arch::asm!(
                        "fld tbyte ptr [{a}]",
                        "fld tbyte ptr [{b}]",
                        $instruction,
                        "fstp tbyte ptr [{out}]",
                        a = in(reg) a.add(at), b = in(reg) b.add(at), out = in(reg) out.add(at),
                        out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                        out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                        options(nostack, preserves_flags),
                    );
                    out.add(at + 10).cast::<[u8; 6]>().write([0; 6]);
                }
            }
        }
    };
}
x87!(SUM, sum: "faddp st(1), st");
x87!(PRODUCT, product: "fmulp st(1), st");
const _: () = assert!(size_of::<Located<Long>>() == 32);
