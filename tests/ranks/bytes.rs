//! What messages contain, and numbers drawn from a seed.

/// A small generator of numbers (splitmix64): the same seed gives the same numbers everywhere.
#[derive(Clone)]
pub struct Draw(pub u64);

impl Draw {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.number() % n as u64) as usize
    }
    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// A size: small ones often, sizes around the limits of the ways often, up to `most`.
    pub fn size(&mut self, most: usize) -> usize {
        const EDGES: [usize; 18] =
            [0, 1, 7, 8, 9, 15, 16, 17, 64, 255, 1023, 1024, 1025, 4095, 4096, 4097, 49152, 65537];
        match self.below(4) {
            0 => EDGES[self.below(EDGES.len())].min(most),
            1 => self.below(65.min(most + 1)),
            2 => self.below(5000.min(most + 1)),
            _ => self.below(most + 1),
        }
    }
}

fn word(seed: u64, at: usize) -> [u8; 8] {
    (seed ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).to_le_bytes()
}

/// The seed of a message's contents.
pub fn seed(src: i32, dst: i32, index: i32, seq: u64) -> u64 {
    ((src as u64) << 56) ^ ((dst as u64) << 48) ^ ((index as u64) << 24) ^ seq.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Contents repeat after so many bytes, but for the number that each stretch begins with: no power of two, so that a chunk that lands in
/// another's place is seen.
const STRETCH: usize = 2008;

fn stretch(seed: u64) -> [u8; STRETCH] {
    let mut s = [0; STRETCH];
    s.chunks_mut(8).enumerate().for_each(|(k, chunk)| chunk.copy_from_slice(&word(seed, k)[..chunk.len()]));
    s
}

/// Writes the contents of a seed.
pub fn fill(to: &mut [u8], seed: u64) {
    let mut stretch = stretch(seed);
    for (k, chunk) in to.chunks_mut(STRETCH).enumerate() {
        stretch[..8].copy_from_slice(&word(seed, k << 32));
        chunk.copy_from_slice(&stretch[..chunk.len()]);
    }
}

/// The contents of a seed.
pub fn message(len: usize, seed: u64) -> Vec<u8> {
    let mut v = vec![0; len];
    fill(&mut v, seed);
    v
}

/// Compares every byte.
#[track_caller]
pub fn check(got: &[u8], seed: u64, what: &str) {
    let mut stretch = stretch(seed);
    for (k, chunk) in got.chunks(STRETCH).enumerate() {
        stretch[..8].copy_from_slice(&word(seed, k << 32));
        if *chunk != stretch[..chunk.len()] {
            let at = (0..chunk.len()).find(|i| chunk[*i] != stretch[*i]).unwrap_or(0);
            panic!(
                "{what}: {} bytes, wrong at {}: {} instead of {}",
                got.len(),
                k * STRETCH + at,
                chunk[at],
                stretch[at]
            );
        }
    }
}
