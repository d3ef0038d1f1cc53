//! Copies between the private memory of two processes, by the kernel: `process_vm_writev` and `process_vm_readv`.
//!
//! One copy, any memory, any shape on either side. What the raw calls leave to their caller is done here: they take at most
//! 1024 pieces and 2 GiB at a time, stop short where they like, and know a process only by its number. Nothing is allocated but, once
//! in a thread, a buffer for runs that the kernel copies slowly ([`aliased`]).
//!
//! A process id can come to mean a stranger once its process has been reaped. Who calls these functions makes sure of the peer
//! first ([`super::peer::Peer::may_copy`]).

mod aliased;

use libc::{c_ulong, c_void, iovec, pid_t};

use crate::base::bytes::{Bytes, Room};

/// Why a copy was not made, or not to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmaError {
    /// The system does not allow it (`EPERM`), or does not have it (`ENOSYS`): use another way from now on.
    Denied,
    /// There is no such process any more.
    Gone,
    /// Memory that is not there, or not to be read or written so, on one of the two sides.
    Fault {
        /// This many bytes from the beginning have been copied.
        done: usize,
    },
    /// Anything else, want of kernel memory for example.
    System {
        /// The error number.
        errno: i32,
        /// This many bytes from the beginning have been copied.
        done: usize,
    },
}

impl std::fmt::Display for CmaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            CmaError::Denied => f.write_str("the system does not allow copies between processes"),
            CmaError::Gone => f.write_str("the process is gone"),
            CmaError::Fault { done } => write!(f, "bad address after {done} bytes"),
            CmaError::System { errno, done } => {
                write!(f, "{} after {done} bytes", std::io::Error::from_raw_os_error(errno))
            }
        }
    }
}

impl std::error::Error for CmaError {}

/// The pieces of one call, on each side: enough that the call itself costs nothing against its copies, and little stack.
const BATCH: usize = 256;

/// The bytes of one call, below the kernel's own limit of 2 GiB less a page.
const MOST: usize = 1 << 30;

#[cfg(loom)]
thread_local! {
    /// In models: the kernel does not copy.
    pub static REFUSES: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// In models: it copies to a peer, but not from one.
    pub static REFUSES_READS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[derive(Clone, Copy)]
enum Way {
    Write,
    Read,
}

/// Copies the bytes of `local` to those of `remote` in the process `pid`: as many as the shorter of the two lists has.
/// The shapes of the lists need not be alike.
///
/// # Safety
/// `local` must describe readable memory; `remote` memory of the peer that it lets this process write. Neither side may use them
/// otherwise during the call. (Memory that is not mapped is an error, not undefined.)
pub unsafe fn write_to(pid: pid_t, local: &[iovec], remote: &[iovec]) -> Result<(), CmaError> {
    // SAFETY: as the caller promises.
    unsafe { transfer(Way::Write, pid, local, remote) }
}

/// Copies the bytes of `remote` in the process `pid` to those of `local`: as many as the shorter of the two lists has.
///
/// # Safety
/// `local` must describe memory that the caller may write; `remote` memory of the peer that it lets this process read. Neither
/// side may use them otherwise during the call. (Memory that is not mapped is an error, not undefined.)
pub unsafe fn read_from(pid: pid_t, local: &[iovec], remote: &[iovec]) -> Result<(), CmaError> {
    // SAFETY: as the caller promises.
    unsafe { transfer(Way::Read, pid, local, remote) }
}

/// [`read_from`] for one run, into room of this process's. The kernel looks whether there are such bytes of the other's; what is there is read as it is.
#[inline]
pub fn read_into(pid: pid_t, local: Room<'_>, remote: u64) -> Result<(), CmaError> {
    // SAFETY: writable, as the room's maker promised; the kernel looks at the other address.
    unsafe { run(Way::Read, pid, local.as_mut_ptr(), remote, local.len()) }
}

/// [`read_into`] for many runs at once.
pub fn read_many(pid: pid_t, runs: &mut [(u64, &mut [u64])]) -> Result<(), CmaError> {
    let piece = |at: *mut c_void, words: &[u64]| iovec { iov_base: at, iov_len: size_of_val(words) };
    let local: Vec<iovec> = runs.iter_mut().map(|(_, to)| piece(to.as_mut_ptr().cast(), to)).collect();
    let remote: Vec<iovec> = runs.iter().map(|(at, to)| piece(*at as *mut c_void, to)).collect();
    // SAFETY: the words are borrowed, each apart from the others; the kernel looks at the other addresses.
    unsafe { read_from(pid, &local, &remote) }
}

/// [`write_to`] for one run, out of bytes of this process's, to where the other has said that it may.
#[inline]
pub(crate) fn write_from(pid: pid_t, local: Bytes<'_>, remote: u64) -> Result<(), CmaError> {
    // SAFETY: readable, as their maker promised; and as said.
    unsafe { run(Way::Write, pid, local.as_ptr().cast_mut(), remote, local.len()) }
}

/// # Safety
/// As for [`write_to`] or [`read_from`], by `way`.
unsafe fn run(way: Way, pid: pid_t, local: *mut u8, remote: u64, len: usize) -> Result<(), CmaError> {
    #[cfg(loom)]
    if crate::base::shadow::is_active() {
        let remote = remote as *mut u8;
        let no_read = matches!(way, Way::Read) && REFUSES_READS.with(|r| r.get());
        if (REFUSES.with(|r| r.get()) || no_read) && len > 0 {
            return Err(CmaError::Denied);
        }
        let (from, to) =
            if matches!(way, Way::Write) { (local.cast_const(), remote) } else { (remote.cast_const(), local) };
        // SAFETY: both sides of a model are in this process; the caller vouches for their memory.
        unsafe { crate::base::atomics::copy(from, to, len) };
        return Ok(());
    }
    let by =
        if matches!(way, Way::Write) { remote.wrapping_sub(local as u64) } else { (local as u64).wrapping_sub(remote) };
    if len >= aliased::LEAST
        && aliased::is_slow(by)
        // SAFETY: as the caller promises.
        && let Some(done) = unsafe { aliased::run(way, pid, local, remote, len) }
    {
        return done;
    }
    let mut done = 0;
    while done < len {
        let n = (len - done).min(MOST);
        let l = iovec { iov_base: local.wrapping_add(done).cast::<c_void>(), iov_len: n };
        let r = iovec { iov_base: remote.wrapping_add(done as u64) as *mut c_void, iov_len: n };
        // SAFETY: parts of what the caller vouches for.
        done += unsafe { call(way, pid, &l, 1, &r, 1, done) }?;
    }
    Ok(())
}

/// A place in a list: the piece, and how much of it has been copied.
struct Place<'a> {
    list: &'a [iovec],
    within: usize,
}

impl Place<'_> {
    /// Fills `out` with the pieces from here on, no more than `most` bytes. Returns how many pieces and bytes.
    fn fill(&self, out: &mut [iovec; BATCH], most: usize) -> (usize, usize) {
        let (mut pieces, mut bytes, mut skip) = (0, 0, self.within);
        for v in self.list {
            if pieces == BATCH || bytes == most {
                break;
            }
            let n = (v.iov_len - skip).min(most - bytes);
            if n > 0 {
                out[pieces] = iovec { iov_base: v.iov_base.cast::<u8>().wrapping_add(skip).cast(), iov_len: n };
                pieces += 1;
                bytes += n;
            }
            skip = 0;
        }
        (pieces, bytes)
    }

    fn advance(&mut self, mut n: usize) {
        while let Some(v) = self.list.first() {
            let left = v.iov_len - self.within;
            if n < left {
                self.within += n;
                return;
            }
            n -= left;
            self.within = 0;
            self.list = &self.list[1..];
        }
    }
}

/// # Safety
/// As for [`write_to`] or [`read_from`], by `way`.
unsafe fn transfer(way: Way, pid: pid_t, local: &[iovec], remote: &[iovec]) -> Result<(), CmaError> {
    if let ([l], [r]) = (local, remote) {
        // SAFETY: as the caller promises.
        return unsafe { run(way, pid, l.iov_base.cast(), r.iov_base as u64, l.iov_len.min(r.iov_len)) };
    }
    const NONE: iovec = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let (mut l, mut r) = (Place { list: local, within: 0 }, Place { list: remote, within: 0 });
    let (mut l_pieces, mut r_pieces) = ([NONE; BATCH], [NONE; BATCH]);
    let mut done = 0;
    loop {
        let (ln, bytes) = l.fill(&mut l_pieces, MOST);
        let (rn, bytes) = r.fill(&mut r_pieces, bytes);
        if bytes == 0 {
            return Ok(());
        }
        // The remote side may have the fewer bytes: the kernel then stops there, after exactly that many.
        // SAFETY: parts of what the caller vouches for.
        let n = unsafe { call(way, pid, l_pieces.as_ptr(), ln, r_pieces.as_ptr(), rn, done) }?;
        l.advance(n);
        r.advance(n);
        done += n;
    }
}

/// One system call, which copies at least one byte or fails.
///
/// # Safety
/// As for [`write_to`] or [`read_from`], by `way`.
unsafe fn call(
    way: Way,
    pid: pid_t,
    l: *const iovec,
    ln: usize,
    r: *const iovec,
    rn: usize,
    done: usize,
) -> Result<usize, CmaError> {
    loop {
        // SAFETY: the lists have ln and rn pieces; what these describe, the caller vouches for.
        let n = unsafe {
            match way {
                Way::Write => libc::process_vm_writev(pid, l, ln as c_ulong, r, rn as c_ulong, 0),
                Way::Read => libc::process_vm_readv(pid, l, ln as c_ulong, r, rn as c_ulong, 0),
            }
        };
        if n > 0 {
            return Ok(n as usize);
        }
        // A process that is exiting has no memory any more: the kernel then copies nothing and calls it a success, or says
        // ESRCH, or EFAULT.
        let errno = if n == 0 { libc::ESRCH } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(0) };
        return Err(match errno {
            libc::EINTR => continue,
            libc::EPERM | libc::EACCES | libc::ENOSYS => CmaError::Denied,
            libc::ESRCH => CmaError::Gone,
            libc::EFAULT => CmaError::Fault { done },
            errno => CmaError::System { errno, done },
        });
    }
}
