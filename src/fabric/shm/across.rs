//! Copies by the kernel between a layout of this process and one of the peer's, whatever their shapes.
//!
//! The peer's side is described by its own addresses. A contiguous run and a block say all in a few numbers; the descriptors of a
//! list lie in the peer, and are read from there a few at a time, by the same system call that then moves the bytes.

use super::cma::{self, CmaError};
use crate::base::bytes::Room;
use crate::base::layout::{Cursor, Form, Layout};

/// Pieces described at a time to the kernel.
const BATCH: usize = 256;

const NONE: libc::iovec = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From this process to the peer.
    Push,
    /// From the peer to this process.
    Pull,
}

/// Copies `n` bytes, from the place `at` of both, between a layout of this process and one of the peer `pid`, which has said that it is
/// this process's to use so. The descriptors of a remote list lie in the peer.
pub(crate) fn across(
    pid: libc::pid_t,
    way: Way,
    local: Layout,
    remote: Form,
    at: usize,
    n: usize,
) -> Result<(), CmaError> {
    if let (Form::Contiguous(l), Form::Contiguous(r)) = (local.form(), remote) {
        let (l, r) = (Room::from(l.part(at, n)), r.ptr() as u64 + at as u64);
        return match way {
            Way::Push => cma::write_from(pid, *l, r),
            Way::Pull => cma::read_into(pid, l, r),
        };
    }
    let mut l = Cursor::new(local, at);
    let Form::List { iov, n: count } = remote else {
        // SAFETY: no list.
        return between(pid, way, &mut l, unsafe { Cursor::of_addresses(remote, at) }, n);
    };
    let mut window = [NONE; BATCH];
    let (mut next, mut skip, mut left) = (0, at, n);
    while left > 0 && next < count {
        let k = BATCH.min(count - next);
        let from = iov as u64 + (next * size_of::<libc::iovec>()) as u64;
        // SAFETY: plain numbers, read into an array of this function.
        cma::read_into(pid, unsafe { Room::new(window.as_mut_ptr().cast(), size_of_val(&window[..k])) }, from)?;
        next += k;
        let bytes = window[..k].iter().fold(0usize, |sum, v| sum.saturating_add(v.iov_len));
        if bytes <= skip {
            skip -= bytes;
            continue;
        }
        let here = (bytes - skip).min(left);
        // SAFETY: the window has these `k` descriptors.
        let there = unsafe { Cursor::of_addresses(Form::List { iov: window.as_ptr(), n: k }, skip) };
        between(pid, way, &mut l, there, here)?;
        (skip, left) = (0, left - here);
    }
    Ok(())
}

/// The next `n` bytes of both, whose descriptors are in this process.
fn between(pid: libc::pid_t, way: Way, local: &mut Cursor, mut remote: Cursor, n: usize) -> Result<(), CmaError> {
    let (mut here, mut there) = ([NONE; BATCH], [NONE; BATCH]);
    let mut left = n;
    while left > 0 {
        let (l0, r0) = (*local, remote);
        let ((mut ln, lb), (mut rn, rb)) = (local.pieces(left, &mut here), remote.pieces(left, &mut there));
        let bytes = lb.min(rb);
        if bytes == 0 {
            break;
        }
        // Both sides of a call describe the same bytes; the longer description is made again.
        if lb > bytes {
            *local = l0;
            (ln, _) = local.pieces(bytes, &mut here);
        }
        if rb > bytes {
            remote = r0;
            (rn, _) = remote.pieces(bytes, &mut there);
        }
        // SAFETY: pieces of the layout; the kernel looks whether there are such of the peer's.
        unsafe {
            match way {
                Way::Push => cma::write_to(pid, &here[..ln], &there[..rn])?,
                Way::Pull => cma::read_from(pid, &here[..ln], &there[..rn])?,
            }
        }
        left -= bytes;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::layout::{Block, Run};

    /// Does a sandbox refuse such copies? (Its own memory a process may copy otherwise.) Then there is nothing to try.
    fn is_refused() -> bool {
        let (mut to, mut from) = ([0u8; 8], [1u8; 8]);
        // SAFETY: both are whole, and this process's.
        let layout = |bytes: &mut [u8; 8]| unsafe { Layout::bytes(bytes.as_mut_ptr(), 8) };
        let (local, remote) = (layout(&mut to), layout(&mut from).form());
        let copied = across(std::process::id() as libc::pid_t, Way::Pull, local, remote, 0, 8);
        if copied == Err(CmaError::Denied) {
            println!("  skipped: a sandbox refuses copies between processes");
        }
        copied == Err(CmaError::Denied)
    }

    /// Every pair of shapes, both ways, at a place in the middle: this process is its own peer.
    #[test]
    fn shapes_of_two_processes() {
        if is_refused() {
            return;
        }
        let own = std::process::id() as libc::pid_t;
        // More pieces than are described at a time, some of them empty, and one long.
        let pieces = |memory: &mut [u8]| -> (Vec<libc::iovec>, Vec<usize>) {
            let (mut iov, mut offsets, base) = (Vec::new(), Vec::new(), memory.as_mut_ptr());
            for j in 0..900usize {
                let len = if j == 500 { 3000 } else { j % 7 };
                let at = if j < 500 { j * 8 } else { 4000 + j * 8 };
                iov.push(libc::iovec { iov_base: base.wrapping_add(at).cast(), iov_len: len });
                offsets.extend(at..at + len);
            }
            (iov, offsets)
        };
        let shape = |kind: usize, memory: &mut [u8], list: &mut Vec<libc::iovec>| -> (Layout, Vec<usize>) {
            let ptr = memory.as_mut_ptr();
            let (form, offsets) = match kind {
                // SAFETY: within the memory, which lives longer.
                0 => (Form::Contiguous(unsafe { Run::new(ptr, 5000) }), (0..5000).collect()),
                1 => {
                    let block = Block { run: 5, count: 1000, stride: 13 };
                    (Form::Block { ptr, block }, (0..5000).map(|k| k / 5 * 13 + k % 5).collect())
                }
                _ => {
                    let (iov, offsets) = pieces(memory);
                    *list = iov;
                    (Form::List { iov: list.as_ptr(), n: list.len() }, offsets)
                }
            };
            // SAFETY: within the memory; both live longer.
            (unsafe { Layout::new(form) }, offsets)
        };
        for (from, to, at, n) in (0..3).flat_map(|f| {
            (0..3).flat_map(move |t| [(f, t, 0, 5000), (f, t, 1733, 2000), (f, t, 4999, 1), (f, t, 77, 0)])
        }) {
            let mut source: Vec<u8> = (0..16_384).map(|k| (k * 7 % 251) as u8).collect();
            let (mut i, mut j) = (Vec::new(), Vec::new());
            let (f, f_at) = shape(from, &mut source, &mut i);
            for way in [Way::Push, Way::Pull] {
                let mut target = vec![255u8; 16_384];
                let (t, t_at) = shape(to, &mut target, &mut j);
                let (local, remote) = if way == Way::Push { (f, t) } else { (t, f) };
                across(own, way, local, remote.form(), at, n).unwrap();
                let mut wanted = vec![255u8; 16_384];
                (at..at + n).for_each(|k| wanted[t_at[k]] = source[f_at[k]]);
                assert!(target == wanted, "{way:?} from shape {from} to {to}, {n} bytes at {at}");
            }
        }
    }

    /// Descriptors that are not there are an error, not a copy.
    #[test]
    fn a_list_that_is_not_there() {
        if is_refused() {
            return;
        }
        let own = std::process::id() as libc::pid_t;
        let mut memory = [0u8; 64];
        // SAFETY: all of it, which lives longer.
        let local = unsafe { Layout::bytes(memory.as_mut_ptr(), 64) };
        let remote = Form::List { iov: 16 as *const libc::iovec, n: 3 };
        let refused = across(own, Way::Pull, local, remote, 0, 64);
        assert_eq!(refused, Err(CmaError::Fault { done: 0 }));
    }
}
