//! Which kind of processor this is: what the rows of the tuning files are for.

use std::fmt;

/// A kind of processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Its maker, as the processor says it (x86-64), `arm-` and the maker's number (AArch64), or the name of the architecture.
    pub vendor: String,
    /// Its family; the part number of an Arm.
    pub family: u32,
    /// Its model in that family; the variant of an Arm.
    pub model: u32,
}

impl Processor {
    /// The processor that this runs on.
    pub fn here() -> Processor {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return x86::here();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        return elsewhere();
    }

    /// The name of its tuning file, without the ending: what it is, with nothing in it that a path has a meaning for.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        format!("{}-{}-{}", self.vendor.chars().map(plain).collect::<String>(), self.family, self.model)
    }
}

/// Cores of this machine that are in use.
pub fn cores() -> usize {
    let all = super::system::calls::sysconf(libc::_SC_NPROCESSORS_ONLN);
    all.max(1) as usize
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} family {} model {}", self.vendor, self.family, self.model)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::Processor;

    pub fn here() -> Processor {
        // SAFETY: every x86-64 processor has it. (Newer compilers know that.)
        #[allow(unused_unsafe)]
        let (names, version) = unsafe { (core::arch::x86_64::__cpuid(0), core::arch::x86_64::__cpuid(1).eax) };
        let name = [names.ebx, names.edx, names.ecx].map(u32::to_le_bytes).concat();
        let (family, model) = numbers(version);
        let vendor = String::from_utf8_lossy(&name).trim_matches(['\0', ' ']).to_owned();
        Processor { vendor, family, model }
    }

    /// Family and model as both makers' manuals add their parts up.
    fn numbers(version: u32) -> (u32, u32) {
        let part = |from: u32, bits: u32| version >> from & ((1 << bits) - 1);
        let family = part(8, 4);
        let more = if family == 6 || family == 15 { part(16, 4) << 4 } else { 0 };
        (if family == 15 { family + part(20, 8) } else { family }, more | part(4, 4))
    }

    #[cfg(test)]
    #[test]
    fn numbers_are_as_the_manuals_say() {
        assert_eq!(numbers(0x00a0_0f11), (25, 1));
        assert_eq!(numbers(0x000a_0655), (6, 165));
        assert_eq!(numbers(0x0000_0f4a), (15, 4));
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
fn elsewhere() -> Processor {
    let path = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    let text = if cfg!(miri) { None } else { std::fs::read_to_string(path).ok() };
    text.and_then(|t| u32::from_str_radix(t.trim().trim_start_matches("0x"), 16).ok())
        .map_or_else(|| Processor { vendor: std::env::consts::ARCH.to_owned(), family: 0, model: 0 }, arm)
}

/// An Arm by its main identification register: implementer 8, variant 4, architecture 4, part 12, revision 4.
#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
fn arm(midr: u32) -> Processor {
    Processor { vendor: format!("arm-{:x}", midr >> 24), family: midr >> 4 & 0xfff, model: midr >> 20 & 15 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_name() {
        for p in [Processor::here(), elsewhere(), arm(0x411f_d0c1)] {
            assert!(!p.vendor.is_empty(), "{p:?}");
            assert!(p.file_name().chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{}", p.file_name());
        }
        assert_eq!(arm(0x411f_d0c1), Processor { vendor: "arm-41".into(), family: 0xd0c, model: 1 });
    }
}
