//! Fetching a message piece by piece from who told of it, as it comes there.

use std::time::Duration;

use super::holder::Holder;
use super::wide::{GIVEN_UP, check_parent, given_up};
use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::base::thread::sleep;
use crate::p2p::endpoint::Endpoint;

/// Bytes that are fetched at a time.
pub(super) const PIECE: usize = 128 << 10;
/// A leader that finds nothing new at who told it looks again after so long, and then after twice that, up to the longest.
pub(super) const PAUSES_NS: [u64; 2] = [2_000, 200_000];

/// Fetching the data from the block of who told of it, as it comes there.
pub(super) struct Fetch<'a> {
    pub(super) ep: &'static Endpoint,
    pub(super) from: &'a Holder,
    /// Who that is: rank in the world.
    pub(super) holder: u32,
    /// Where the data begins, behind the wide record's beginning.
    pub(super) data_at: usize,
    /// Bytes that are known to be there.
    pub(super) known: u64,
}

impl Fetch<'_> {
    /// Fetches `len` bytes from byte `at` on to the same place behind `data`, and says that they are there.
    pub(super) fn piece(&mut self, data: Run, at: usize, len: usize, ready: &AtomicU64) -> Result<()> {
        let mut pause = PAUSES_NS[0];
        while self.known < (at + len) as u64 {
            self.known = self.from.ready()?;
            if self.known == GIVEN_UP {
                return Err(given_up(self.ep, self.holder));
            }
            if self.known < (at + len) as u64 {
                check_parent(self.ep, self.holder)?;
                pause_for(&mut pause);
            }
        }
        self.from.read(self.data_at + at, data.part(at, len))?;
        // SYNC POINT: pairs with the acquire, or the device's read, in `Holder::ready`.
        ready.store((at + len) as u64, Ordering::Release);
        Ok(())
    }
}

/// Leaves alone who had nothing new; twice as long the next time.
pub(super) fn pause_for(pause_ns: &mut u64) {
    sleep(Duration::from_nanos(*pause_ns));
    *pause_ns = (2 * *pause_ns).min(PAUSES_NS[1]);
}
