//! What the kernel tells of memory that goes away: a *userfaultfd*, whose events report each unmapping, moving and emptying of the ranges that
//! it has been given. No faults are asked for, so nothing but these calls becomes slower, and no right is needed.
//!
//! A range that is reported and its neighbours are mappings of their own, of which a process may have `vm.max_map_count`. So when many are
//! reported, whole units of addresses are, as far as the kernel takes that; and when half of the mappings that there may be are there, nothing
//! more is: the rest is the program's.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::clock::now_ns;

/// Bytes of a unit of addresses.
pub(super) const UNIT: usize = 2 << 20;
/// From so many ranges on units are reported.
const FEW: u64 = 1024;
/// What the kernel allows where it does not say.
const MAPPINGS: u64 = 65_530;
/// From one count of the mappings to the next, when there were too many.
const AGAIN_NS: u64 = 1_000_000_000;

/// `struct uffd_msg`, as far as these events use it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    _reserved: [u8; 7],
    arg: [u64; 3],
}
static_assertions::const_assert!(size_of::<Message>() == 32);

const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;
const USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xaa;
/// `_IOWR(0xAA, 0x3F, struct uffdio_api)`
const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
/// `_IOWR(0xAA, 0x00, struct uffdio_register)`
const IOCTL_REGISTER: libc::c_ulong = 0xc020_aa00;
const FEATURES: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 6;
const MODE_WRITE_PROTECT: u64 = 2;

/// A userfaultfd that reports unmapping; `None`: the kernel refuses.
pub(super) fn reporter() -> Option<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: the call takes flags only.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as RawFd;
    if fd < 0 {
        return None;
    }
    // SAFETY: a new descriptor that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut api = [UFFD_API, FEATURES, 0];
    // SAFETY: the structure has the size that is in the number.
    (unsafe { libc::ioctl(fd.as_raw_fd(), IOCTL_API, api.as_mut_ptr()) } == 0).then_some(fd)
}

/// Reads the next event: the memory that has gone. Whoever has taken it away goes on from then on. Nothing is allocated.
pub(super) fn next(fd: &OwnedFd) -> Option<(u64, u64)> {
    let mut message = Message::default();
    // SAFETY: a message is writable for its size; the descriptor does not block.
    let got = unsafe { libc::read(fd.as_raw_fd(), (&raw mut message).cast(), size_of::<Message>()) };
    if got != size_of::<Message>() as isize {
        return None;
    }
    match message.event {
        EVENT_REMAP => Some((message.arg[0], message.arg[0].saturating_add(message.arg[2]))),
        EVENT_REMOVE | EVENT_UNMAP => Some((message.arg[0], message.arg[1])),
        _ => None,
    }
}

/// What is reported.
pub(super) struct Reports {
    /// The thread's that reads the events.
    fd: RawFd,
    /// Mappings that a process may have.
    most: u64,
    /// Mappings when they were counted last, ranges that were given to the kernel since then, and in all.
    counted: AtomicU64,
    since: AtomicU64,
    asked: AtomicU64,
    /// Not to be counted before.
    again_ns: AtomicU64,
}

impl Reports {
    /// Nothing yet.
    pub fn new(fd: &OwnedFd) -> Reports {
        let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
        let [counted, since, asked, again_ns] = [mappings(), 0, 0, 0].map(AtomicU64::new);
        Reports { fd: fd.as_raw_fd(), most: most.unwrap_or(MAPPINGS), counted, since, asked, again_ns }
    }

    /// Has what becomes of these pages reported from now on. `false`: the kernel does not.
    pub fn ask(&self, start: u64, end: u64) -> bool {
        if !self.has_room() {
            return false;
        }
        let unit = UNIT as u64;
        let is_many = self.asked.fetch_add(1, Ordering::Relaxed) >= FEW;
        is_many && self.report(start & !(unit - 1), end.next_multiple_of(unit)) || self.report(start, end)
    }

    fn report(&self, start: u64, end: u64) -> bool {
        let mut range = [start, end - start, MODE_WRITE_PROTECT, 0];
        // SAFETY: the structure has the size that is in the number.
        unsafe { libc::ioctl(self.fd, IOCTL_REGISTER, range.as_mut_ptr()) == 0 }
    }

    /// Are there mappings left? A range makes two more of its neighbours at most.
    fn has_room(&self) -> bool {
        let has = |since: u64| self.counted.load(Ordering::Relaxed) + 2 * since < self.most / 2;
        if has(self.since.fetch_add(1, Ordering::Relaxed) + 1) {
            return true;
        }
        let now = now_ns();
        if now < self.again_ns.load(Ordering::Relaxed) {
            return false;
        }
        self.since.store(1, Ordering::Relaxed);
        self.counted.store(mappings(), Ordering::Relaxed);
        // Not too often near the limit either.
        let has_some = has(1 + self.most / 64);
        self.again_ns.store(if has_some { 0 } else { now + AGAIN_NS }, Ordering::Relaxed);
        has_some
    }
}

/// Mappings of this process.
fn mappings() -> u64 {
    std::fs::read("/proc/self/maps").map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count() as u64)
}
