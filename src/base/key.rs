//! Keys: what whoever knows one can say that nobody else can, and keys made from keys.
//!
//! It is HMAC-SHA-256 (RFC 2104, FIPS 180-4) and the system's random numbers, by the crates `hmac`, `sha2` and `getrandom`, off every fast path. A
//! secret is never used itself: a key is drawn from it and further keys are derived from that, in the manner of HKDF (RFC 5869), each for one
//! purpose; from a derived key nobody finds the way back, nor to its siblings. Only what each datagram is checked by is SipHash-2-4 (Aumasson and
//! Bernstein 2012), made for short messages, by the crate `siphasher`.

use super::error::{Code, Result, error};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::io;

/// Bytes of a check.
pub const CHECK: usize = 16;

/// A key. It is not shown anywhere, so it has no `Debug`.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of whoever knows these bytes, of any length.
    pub fn of(secret: &[u8]) -> Key {
        Key(finished(mac(b"FMPL", &[b"secret", secret])))
    }

    /// The key for this purpose in these circumstances, the same for all who know this one.
    pub fn derive(&self, purpose: &str, context: &[&[u8]]) -> Key {
        Key(finished(mac(&self.0, &[&[b"derive", purpose.as_bytes()], context].concat())))
    }

    /// What only who knows the key can say of these parts, all of which count, and where each ends.
    pub fn check(&self, parts: &[&[u8]]) -> [u8; CHECK] {
        let whole = finished(mac(&self.0, &[&[&b"check"[..]], parts].concat()));
        std::array::from_fn(|i| whole[i])
    }

    /// Is this the check of these parts? Takes as long whatever the answer.
    #[must_use]
    pub fn verifies(&self, parts: &[&[u8]], check: &[u8; CHECK]) -> bool {
        mac(&self.0, &[&[&b"check"[..]], parts].concat()).verify_truncated_left(check).is_ok()
    }

    /// For much that is checked and is short.
    pub fn checks(&self) -> Checks {
        let [a, b, ..] = self.words();
        Checks(SipHasher24::new_with_keys(a, b))
    }

    /// Words that follow from the key, for what must differ from job to job and be the same in all of its processes.
    pub fn words(&self) -> [u64; 4] {
        std::array::from_fn(|k| u64::from_le_bytes(std::array::from_fn(|i| self.0[8 * k + i])))
    }
}

/// See [`Key::checks`].
#[derive(Clone)]
pub struct Checks(SipHasher24);

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Of the key nothing is shown.
        f.write_str("Checks")
    }
}

impl Checks {
    /// What only who knows the key can say of these bytes, however they are parted: who checks knows where each part ends.
    pub fn of(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = self.0;
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys of HMAC may have any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

fn finished(mac: Hmac<Sha256>) -> [u8; 32] {
    mac.finalize().into_bytes().into()
}

/// A number that stands for these bytes: the first half of SHA-256.
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|i| whole[i])
}

/// Bytes that nobody could have guessed.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(e) => Err(error!(Code::System, "getting random bytes from the system: {e}")),
    }
}

/// The same for a buffer.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes)
        .map_err(|e| e.raw_os_error().map_or_else(io::Error::last_os_error, io::Error::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // FIPS 180-4's example, RFC 4231's second case, and the one in SipHash's paper: that these are SHA-256, HMAC and SipHash, not that the
        // crates are right.
        assert_eq!(digest(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        assert_eq!(finished(mac)[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        let checks = Key(std::array::from_fn(|i| i as u8)).checks();
        assert_eq!(checks.of(&[&[0, 1, 2, 3, 4, 5, 6], &[7, 8, 9, 10, 11, 12, 13, 14]]), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn every_part_and_every_bit_counts() {
        let key = Key::of(b"a secret of some length");
        let parts: [&[u8]; 3] = [b"rank", b"12", b"3"];
        let check = key.check(&parts);
        assert!(key.verifies(&parts, &check));
        for other in [&[&b"rank"[..], b"1", b"23"][..], &[b"rank", b"12"], &[b"rank12", b"3"], &[b"root", b"12", b"3"]]
        {
            assert!(!key.verifies(other, &check));
        }
        for bit in 0..8 * CHECK {
            let mut flipped = check;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verifies(&parts, &flipped), "bit {bit}");
        }
        assert!(!Key::of(b"a secret of some lengtH").verifies(&parts, &check));
    }

    #[test]
    fn short_checks_are_of_all_bytes() {
        let checks = Key::of(b"a secret").checks();
        let check = checks.of(&[b"head", b"body"]);
        assert_eq!(check, checks.of(&[b"headbody"]));
        assert!(check != checks.of(&[b"headbodx"]) && check != Key::of(b"another").checks().of(&[b"headbody"]));
    }

    #[test]
    fn derived_keys_are_apart() {
        let key = Key::of(b"12345678");
        let all = [
            key.clone(),
            key.derive("up", &[]),
            key.derive("down", &[]),
            key.derive("up", &[b""]),
            key.derive("up", &[b"job 1"]),
            key.derive("up", &[b"job 2"]),
            Key::of(b"12345679").derive("up", &[]),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a.words() != b.words() && a.check(&[b"x"]) != b.check(&[b"x"])), "{i}");
        }
        assert_eq!(key.derive("up", &[b"job 1"]).words(), all[4].words());
        assert_ne!(random::<16>().unwrap(), random::<16>().unwrap());
    }
}
