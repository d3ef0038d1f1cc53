//! What two ranks say to each other at first contact: one packet each way, each with the sender's region attached.
//!
//! ```text
//!  0       8       12        16      20     24     28      32          48          56            64          128
//!  ┌───────┬───────┬─────────┬───────┬──────┬──────┬───────┬───────────┬───────────┬─────────────┬───────────┐
//!  │ magic │ kind  │ version │ from  │ to   │ size │ flags │ check     │ probe at  │ scratch at  │ probe     │
//!  └───────┴───────┴─────────┴───────┴──────┴──────┴───────┴───────────┴───────────┴─────────────┴───────────┘
//! ```
//! The check is that of all the rest, with a key made from the job's: so both belong to the job, and nobody says one thing in the other's name.
//! Magic, kind and version stand at the same place in every version, so that builds that do not fit tell each other so.
//! The probe is 64 random bytes in the sender's private memory; the scratch are as many bytes there for the other side to write.
//! Both are only there to find out by a real copy whether cross-memory copies work between these two processes.

use bitflags::bitflags;

use crate::base::key::{CHECK, Key};
use crate::base::variants::variants;

/// The length of a packet.
pub(super) const HELLO_LEN: usize = 128;
/// The length of the probe.
pub(super) const PROBE_LEN: usize = 64;
/// As much of a packet as every version has.
const COMMON_LEN: usize = 16;
const MAGIC: u64 = u64::from_le_bytes(*b"FMPLHELO");

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// "Here is my region": the initiator's.
    Hello = 1,
    /// "Welcome, here is mine": the answer.
    Welcome = 2,
    /// "I will not have you", with the reason in the field `flags`.
    Refused = 3,
}

variants! {
    /// Why a contact was turned away. Each is logged once.
    pub(super) enum Reason: u32, text {
        /// Another user's process.
        User = 0 => "it belongs to another user",
        /// Not a hello at all.
        Garbage = 1 => "what it sent is no greeting of FMPL",
        /// Another layout version.
        Version = 2 => "it was built with another layout version",
        /// It does not know the job's key.
        Secret = 3 => "it does not know the secret of this job",
        /// Meant for another rank, or from one that the job does not have.
        Rank = 4 => "its rank or the rank it wanted to reach is not what it should be",
        /// Without a region, or with something else in its place.
        Region = 5 => "the region it handed over is missing or wrong",
        /// Said nothing until its time was over, or until others needed the place.
        Silent = 6 => "it connected and then said nothing",
        /// This process could not take the contact: out of memory or address space.
        Resources = 7 => "it could not be taken: out of memory or address space (ulimit -v, vm.max_map_count)",
        /// The same: out of file descriptors.
        Descriptors = 8 => "it could not be taken: out of file descriptors (ulimit -n)",
    }
}

bitflags! {
    /// What the sender of a packet can do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Flags: u32 {
        /// It is willing to use cross-memory copies (`FMPL_CMA=on`).
        const CMA_WANTED = 1;
        /// It has reached the other side's memory. Only a welcome can know.
        const CMA_REACHED = 2;
    }
}

/// A greeting, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub kind: Kind,
    pub version: u32,
    pub from: u32,
    pub to: u32,
    pub size: u32,
    pub flags: Flags,
    pub check: [u8; CHECK],
    pub probe_at: u64,
    pub scratch_at: u64,
    pub probe: [u8; PROBE_LEN],
}

/// A packet as it was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Hello(Box<Hello>),
    /// Refused by a process of this layout version, for a reason that this version may not know.
    Refused {
        version: u32,
        reason: Option<Reason>,
    },
    /// From another layout version.
    Version(u32),
    Garbage,
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO_LEN] {
        let mut b = [0; HELLO_LEN];
        b[0..8].copy_from_slice(&MAGIC.to_ne_bytes());
        for (at, v) in [
            (8, self.kind as u32),
            (12, self.version),
            (16, self.from),
            (20, self.to),
            (24, self.size),
            (28, self.flags.bits()),
        ] {
            b[at..at + 4].copy_from_slice(&v.to_ne_bytes());
        }
        b[32..48].copy_from_slice(&self.check);
        b[48..56].copy_from_slice(&self.probe_at.to_ne_bytes());
        b[56..64].copy_from_slice(&self.scratch_at.to_ne_bytes());
        b[64..128].copy_from_slice(&self.probe);
        b
    }

    /// With the check that whoever has the key makes of it.
    pub(super) fn sealed(self, key: &Key) -> Hello {
        let unsealed = Hello { check: [0; CHECK], ..self };
        Hello { check: key.check(&[&unsealed.encode()]), ..unsealed }
    }

    /// Does its sender have the key? Takes the same time whatever the answer.
    pub(super) fn knows(&self, key: &Key) -> bool {
        key.verifies(&[&Hello { check: [0; CHECK], ..self.clone() }.encode()], &self.check)
    }
}

/// A refusal, for a packet without anything else.
pub(super) fn refusal(version: u32, reason: Reason) -> [u8; HELLO_LEN] {
    let mut b = [0; HELLO_LEN];
    b[0..8].copy_from_slice(&MAGIC.to_ne_bytes());
    b[8..12].copy_from_slice(&(Kind::Refused as u32).to_ne_bytes());
    b[12..16].copy_from_slice(&version.to_ne_bytes());
    b[28..32].copy_from_slice(&(reason as u32).to_ne_bytes());
    b
}

/// Understands a packet. `version` is the layout version of this process.
pub(super) fn decode(b: &[u8], version: u32) -> Packet {
    let u32_at = |at: usize| u32::from_ne_bytes(b[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_ne_bytes(b[at..at + 8].try_into().expect("eight bytes"));
    if b.len() < COMMON_LEN || u64_at(0) != MAGIC {
        return Packet::Garbage;
    }
    let (kind, theirs) = (u32_at(8), u32_at(12));
    if theirs != version && kind != Kind::Refused as u32 {
        return Packet::Version(theirs);
    }
    let kind = match kind {
        1 => Kind::Hello,
        2 => Kind::Welcome,
        3 => {
            let reason = if b.len() >= 32 { Reason::ALL.get(u32_at(28) as usize).copied() } else { None };
            return Packet::Refused { version: theirs, reason };
        }
        _ => return Packet::Garbage,
    };
    if b.len() != HELLO_LEN {
        return Packet::Garbage;
    }
    Packet::Hello(Box::new(Hello {
        kind,
        version: theirs,
        from: u32_at(16),
        to: u32_at(20),
        size: u32_at(24),
        flags: Flags::from_bits_truncate(u32_at(28)),
        check: b[32..48].try_into().expect("sixteen bytes"),
        probe_at: u64_at(48),
        scratch_at: u64_at(56),
        probe: b[64..128].try_into().expect("64 bytes"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kind: Kind) -> Hello {
        Hello {
            kind,
            version: 9,
            from: 3,
            to: 5,
            size: 8,
            flags: Flags::CMA_WANTED,
            check: *b"0123456789abcdef",
            probe_at: 0x7fff_1234_5678,
            scratch_at: 0x7fff_1234_9999,
            probe: std::array::from_fn(|i| i as u8),
        }
    }

    #[test]
    fn packets_come_back_as_they_went() {
        for kind in [Kind::Hello, Kind::Welcome] {
            let h = sample(kind);
            assert_eq!(decode(&h.encode(), 9), Packet::Hello(Box::new(h.clone())));
            assert_eq!(decode(&h.encode(), 10), Packet::Version(9));
            assert_eq!(
                decode(&h.encode()[..COMMON_LEN], 10),
                Packet::Version(9),
                "a shorter packet of another version"
            );
            for short in 0..HELLO_LEN {
                assert_eq!(decode(&h.encode()[..short], 9), Packet::Garbage);
            }
        }
        for reason in Reason::ALL {
            assert_eq!(decode(&refusal(7, reason), 9), Packet::Refused { version: 7, reason: Some(reason) });
        }
        assert_eq!(Reason::ALL.map(|r| r as usize), std::array::from_fn(|i| i));
        assert_eq!(decode(&[0xff; HELLO_LEN], 9), Packet::Garbage);
    }

    #[test]
    fn every_bit_behind_the_version_is_checked() {
        let key = Key::of(b"the job's");
        let b = sample(Kind::Hello).sealed(&key).encode();
        let knows = |b: &[u8], key: &Key| match decode(b, 9) {
            Packet::Hello(h) => h.knows(key),
            _ => false,
        };
        assert!(knows(&b, &key) && !knows(&b, &Key::of(b"another job's")));
        assert!(!knows(&sample(Kind::Hello).encode(), &key));
        for bit in 8 * COMMON_LEN..8 * HELLO_LEN {
            let mut other = b;
            other[bit / 8] ^= 1 << (bit % 8);
            // Flags that nobody knows are none.
            assert!(!knows(&other, &key) || (28..32).contains(&(bit / 8)), "bit {bit}");
        }
        // A greeting does not pass for its own answer.
        let mut other = b;
        other[8] = Kind::Welcome as u8;
        assert!(!knows(&other, &key));
    }
}
