//! A carrier that loses, doubles and delays what another one would carry, as a seed says: for tests (`FMPL_WEATHER`).

use std::io;
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::carrier::{Carrier, Ring, Spot, Taker};
use crate::base::clock::now_ns;
use crate::base::config::Weather;
use crate::base::error::Result;
use crate::base::lock::lock;
use crate::base::scattered::{STEP, scattered};

/// What is late is so for this long at most.
const LATE_NS: u64 = 5_000_000;
/// Datagrams that are late at a time at most: more are lost.
const LATE_MOST: usize = 256;

/// See the head of this file.
pub(super) struct Weathered {
    carrier: Box<dyn Carrier>,
    weather: Weather,
    drawn: AtomicU64,
    late: Mutex<Vec<Late>>,
}

/// A copy of a datagram, and when it goes out.
#[derive(Debug)]
struct Late {
    at_ns: u64,
    to: Spot,
    bytes: Vec<u8>,
}

impl Weathered {
    pub fn new(carrier: Box<dyn Carrier>, weather: Weather) -> Weathered {
        // Each process has weather of its own, the same at each start.
        let here = carrier.spot().iter().fold(weather.seed, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(*b)));
        Weathered { carrier, weather, drawn: AtomicU64::new(here), late: Mutex::default() }
    }

    /// A number by lot (splitmix64).
    fn draw(&self) -> u64 {
        scattered(self.drawn.fetch_add(STEP, Ordering::Relaxed))
    }
    fn happens(&self, percent: f64) -> bool {
        (self.draw() % 1_000_000) as f64 / 10_000.0 < percent
    }

    /// Sends what has been late for long enough.
    fn send_late(&self) {
        let now = now_ns();
        let mut late = lock(&self.late);
        while let Some(k) = late.iter().position(|one| one.at_ns <= now) {
            let one = late.swap_remove(k);
            let part = libc::iovec { iov_base: one.bytes.as_ptr().cast_mut().cast(), iov_len: one.bytes.len() };
            // SAFETY: a copy.
            let _ = unsafe { self.carrier.send(&one.to, &[part], &[1]) };
        }
    }

    /// Keeps a copy, to be sent later.
    ///
    /// # Safety
    /// The parts can be read.
    unsafe fn delay(&self, to: &Spot, parts: &[libc::iovec]) {
        // SAFETY: as the caller promises.
        let slice =
            |part: &libc::iovec| unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) };
        let bytes = parts.iter().filter(|part| part.iov_len > 0).flat_map(|part| slice(part).iter().copied()).collect();
        let at_ns = now_ns() + self.draw() % LATE_NS;
        let mut late = lock(&self.late);
        if late.len() < LATE_MOST {
            late.push(Late { at_ns, to: *to, bytes });
        }
    }
}

impl Carrier for Weathered {
    fn describe(&self) -> String {
        let Weather { loss, double, late, .. } = self.weather;
        let carrier = self.carrier.describe();
        format!("{carrier} (FMPL_WEATHER loses {loss}, doubles {double}, delays {late} of 100 datagrams)")
    }
    fn network(&self) -> String {
        self.carrier.network()
    }
    fn most(&self) -> usize {
        self.carrier.most()
    }
    fn room(&self) -> u32 {
        self.carrier.room()
    }
    fn spot(&self) -> Spot {
        self.carrier.spot()
    }
    fn ring(&self) -> Result<Box<dyn Ring>> {
        self.carrier.ring()
    }

    unsafe fn send(&self, to: &Spot, parts: &[libc::iovec], ends: &[usize]) -> io::Result<usize> {
        self.send_late();
        let mut from = 0;
        for (k, end) in ends.iter().enumerate() {
            let one = &parts[from..*end];
            from = *end;
            if self.happens(self.weather.loss) {
                continue;
            }
            if self.happens(self.weather.late) {
                // SAFETY: as the caller promises.
                unsafe { self.delay(to, one) };
                continue;
            }
            for _ in 0..1 + u32::from(self.happens(self.weather.double)) {
                // SAFETY: as the caller promises.
                if unsafe { self.carrier.send(to, one, &[one.len()])? } == 0 {
                    return Ok(k);
                }
            }
        }
        Ok(ends.len())
    }

    fn receive(&self, with: &mut dyn Taker) -> io::Result<bool> {
        self.send_late();
        self.carrier.receive(with)
    }
    fn refusals(&self, with: &mut dyn FnMut(&Spot)) {
        self.carrier.refusals(with);
    }
    fn fd(&self) -> RawFd {
        self.carrier.fd()
    }
    fn rings_fd(&self) -> Option<RawFd> {
        self.carrier.rings_fd()
    }
    fn arm(&self) -> Result<()> {
        self.carrier.arm()
    }
    fn is_awake(&self) {
        self.carrier.is_awake();
    }
    fn why_silent(&self, of: &Spot) -> Option<String> {
        self.carrier.why_silent(of)
    }
    fn bytes(&self) -> usize {
        self.carrier.bytes()
    }
}
