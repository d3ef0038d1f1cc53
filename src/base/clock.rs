//! Time: one monotonic clock, in nanoseconds. Wait loops read it only every few hundred turns.

/// Nanoseconds of the machine's monotonic clock; the same origin for all processes of a node.
#[inline]
pub fn now_ns() -> u64 {
    #[cfg(loom)]
    if let Some(now) = super::shadow::now_ns() {
        return now;
    }
    #[cfg(all(test, not(any(loom, miri))))]
    if let Some(now) = super::simulation::now_ns() {
        return now;
    }
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec that outlives the call; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
