//! Runs whose destination lies just behind their source, as far as the last bits of the addresses go.
//!
//! The kernel copies by `rep movsb` where the processor says that it is fast. On some it is not, by a factor of four to five, where the
//! destination begins 1 to 63 bytes behind the source modulo 4096: the stores look as if they hit loads that follow them. A message from
//! the beginning of a page into what `malloc` gives is such a run. These go by way of a page-aligned buffer of this thread that begins
//! where the remote memory does within its page, so that the kernel's copy has no such distance; ours ([`crate::base::copying`]) has none
//! of this trouble. Whether it is so here is found out once, by copies within this process.

use std::cell::RefCell;

use libc::pid_t;

use super::{CmaError, Way, call};
use crate::base::atomics::{Setting, copy};
use crate::base::clock::now_ns;

/// Shorter runs take little time either way.
pub const LEAST: usize = 4096;
/// Addresses are compared by so many of their last bits.
const PAGE: u64 = 4096;
/// A destination less than this behind its source is near.
const NEAR: u64 = 64;
/// Bytes that go by the buffer at a time: what an inner cache keeps.
const PIECE: usize = 32 << 10;
/// Kernel copies count as slow from this many times what others take, in tenths.
const SLOW_TENTHS: u64 = 15;

/// Are kernel's copies slow there? 0: not known yet, 1: no, 2: yes.
static SLOW: Setting = Setting::new(0);

/// Is a kernel's copy slow whose destination lies so far behind its source?
#[inline]
pub fn is_slow(behind: u64) -> bool {
    let behind = behind % PAGE;
    behind != 0 && behind < NEAR && (SLOW.get() == 2 || SLOW.get() == 0 && find_out())
}

/// A buffer, with room for a beginning anywhere in a page.
#[repr(C, align(4096))]
struct Buffer([u8; PIECE + PAGE as usize]);

thread_local! {
    static BUFFER: RefCell<Option<Box<Buffer>>> = const { RefCell::new(None) };
}

fn new_buffer() -> Box<Buffer> {
    Box::new(Buffer([0; PIECE + PAGE as usize]))
}

/// Copies within this process, at once and by distance, and keeps the answer.
#[cold]
fn find_out() -> bool {
    let (source, mut target) = (new_buffer(), new_buffer());
    let mut least = [u64::MAX; 2];
    let pid = std::process::id() as pid_t;
    for _ in 0..5 {
        for (least, behind) in least.iter_mut().zip([0, 16]) {
            let began = now_ns();
            let local = libc::iovec { iov_base: target.0[behind..].as_mut_ptr().cast(), iov_len: PIECE };
            let remote = libc::iovec { iov_base: source.0.as_ptr().cast_mut().cast(), iov_len: PIECE };
            // SAFETY: both buffers have so many bytes and a page more.
            if unsafe { call(Way::Read, pid, &local, 1, &remote, 1, 0) }.is_err() {
                // Nothing is known; whoever copies is told why.
                return false;
            }
            *least = (now_ns() - began).min(*least);
        }
    }
    let slow = least[1] * 10 > least[0] * SLOW_TENTHS;
    SLOW.set(1 + slow as u64);
    slow
}

/// [`super::run`] by way of the buffer. `None`: this thread has none, since it is ending.
///
/// # Safety
/// As for [`super::run`].
pub(super) unsafe fn run(
    way: Way,
    pid: pid_t,
    local: *mut u8,
    remote: u64,
    len: usize,
) -> Option<Result<(), CmaError>> {
    let by_buffer = |buffer: &RefCell<Option<Box<Buffer>>>| {
        let mut buffer = buffer.try_borrow_mut().ok()?;
        let bytes = &mut buffer.get_or_insert_with(new_buffer).0;
        // SAFETY: as the caller promises.
        Some(unsafe { pieces(way, pid, local, remote, len, bytes) })
    };
    BUFFER.try_with(by_buffer).ok().flatten()
}

/// # Safety
/// As for [`super::run`].
unsafe fn pieces(
    way: Way,
    pid: pid_t,
    local: *mut u8,
    remote: u64,
    len: usize,
    buffer: &mut [u8],
) -> Result<(), CmaError> {
    let mut done = 0;
    while done < len {
        let (local, remote) = (local.wrapping_add(done), remote.wrapping_add(done as u64));
        let n = (len - done).min(PIECE);
        let here = buffer[(remote % PAGE) as usize..].as_mut_ptr();
        let ours = libc::iovec { iov_base: here.cast(), iov_len: n };
        let theirs = libc::iovec { iov_base: remote as *mut libc::c_void, iov_len: n };
        // SAFETY: `n` bytes of the buffer, which has room behind the last beginning; the rest is what the caller vouches for.
        unsafe {
            if matches!(way, Way::Write) {
                copy(local, here, n);
            }
            let n = call(way, pid, &ours, 1, &theirs, 1, done)?;
            if matches!(way, Way::Read) {
                copy(here, local, n);
            }
            done += n;
        }
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::base::bytes::{Bytes, Room};

    /// With slow copies found or not, at distances within and beyond, every byte arrives, and no other.
    #[test]
    fn every_distance_both_ways() {
        let pid = std::process::id() as pid_t;
        let (mut source, mut target) = (vec![0u8; 120_000], vec![0u8; 120_000]);
        source.iter_mut().enumerate().for_each(|(k, b)| *b = (k * 7 + k / 251) as u8);
        let found = find_out();
        let before = SLOW.get();
        for (slow, way) in [(1, Way::Read), (2, Way::Read), (2, Way::Write)] {
            SLOW.set(slow);
            for (skip, behind, len) in
                [(0, 16, LEAST), (4080, 16, 70_001), (5, 63, 100_000), (9, 64, 9000), (8, 0, 9000)]
            {
                let from = source.as_ptr().align_offset(4096) + skip;
                let at = target.as_ptr().align_offset(4096) + skip + behind;
                target.fill(0xee);
                let (ours, theirs) = (&source[from..from + len], &mut target[at..at + len]);
                let done = match way {
                    Way::Read => super::super::read_into(pid, Room::of(theirs), ours.as_ptr() as u64),
                    Way::Write => super::super::write_from(pid, Bytes::of(ours), theirs.as_mut_ptr() as u64),
                };
                match done {
                    Err(CmaError::Denied) => return println!("the system does not allow copies between processes"),
                    done => assert_eq!(done, Ok(())),
                }
                assert!(target[at..at + len] == source[from..from + len], "{slow} {skip} {behind} {len}");
                assert!(
                    target[..at].iter().chain(&target[at + len..]).all(|b| *b == 0xee),
                    "{slow} {skip} {behind} {len}"
                );
            }
        }
        SLOW.set(before);
        println!("the kernel's copies are {} at a near distance", if found { "slow" } else { "not slow" });
    }
}
