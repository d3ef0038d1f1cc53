//! Copies between a buffer and memory of the program, which may unmap it at any moment: by the system, which tells so where a copy by the
//! processor would end the process.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

use crate::base::lock::lock;
use crate::base::system;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToMemory,
    FromMemory,
}

/// See the head of this file. Holds a file without a name, if copies have needed one.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Unsure(Mutex<Option<OwnedFd>>);

impl Unsure {
    /// Writes bytes there. `None`: not all of it can be written.
    ///
    /// # Safety
    /// What is mapped there may be written.
    pub unsafe fn write(&self, bytes: &[u8], to: *mut u8) -> Option<()> {
        // SAFETY: the buffer is only read, the rest is promised.
        unsafe { self.copy(bytes.as_ptr().cast_mut(), to, bytes.len(), Way::ToMemory) }
    }

    /// Reads as many bytes from there as the buffer has. `None`: not all of them can be read.
    pub fn read(&self, from: *const u8, into: &mut [u8]) -> Option<()> {
        // SAFETY: the buffer is written, memory is only read, by the system.
        unsafe { self.copy(into.as_mut_ptr(), from.cast_mut(), into.len(), Way::FromMemory) }
    }

    /// # Safety
    /// The buffer has so many bytes; what is mapped at `memory` may be written if the way goes there.
    unsafe fn copy(&self, buffer: *mut u8, memory: *mut u8, len: usize, way: Way) -> Option<()> {
        let iov = |at: *mut u8| libc::iovec { iov_base: at.cast(), iov_len: len };
        let (mine, there) = (iov(buffer), iov(memory));
        // SAFETY: as the caller promises; to this process itself, of which the system asks only that it is mapped.
        let n = unsafe {
            match way {
                Way::ToMemory => libc::process_vm_writev(libc::getpid(), &mine, 1, &there, 1, 0),
                Way::FromMemory => libc::process_vm_readv(libc::getpid(), &mine, 1, &there, 1, 0),
            }
        };
        // A sandbox refuses such copies, and some memory is kept from them that its owner can use (secret memory, a device's).
        // SAFETY: as the caller promises.
        if n == len as isize { Some(()) } else { unsafe { self.copy_by_file(buffer, memory, len, way) } }
    }

    /// The same through a file.
    ///
    /// # Safety
    /// As of `copy`.
    #[cold]
    unsafe fn copy_by_file(&self, buffer: *mut u8, memory: *mut u8, len: usize, way: Way) -> Option<()> {
        let mut file = lock(&self.0);
        if file.is_none() {
            *file = system::memfd(c"fmpl-unsure", libc::MFD_CLOEXEC).ok();
        }
        let fd = file.as_ref()?.as_raw_fd();
        let (from, to) = if way == Way::ToMemory { (buffer, memory) } else { (memory, buffer) };
        // SAFETY: as the caller promises; the system looks whether memory is mapped.
        let copied = unsafe { [libc::pwrite(fd, from.cast(), len, 0), libc::pread(fd, to.cast(), len, 0)] };
        (copied == [len as isize; 2]).then_some(())
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_gone_is_told_of() {
        let page = crate::fabric::shm::region::page_size();
        // SAFETY: pages of the test's own.
        let at = unsafe {
            let both = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(both, libc::MAP_FAILED);
            // As good as unmapped; but nobody else gets it.
            assert_eq!(libc::mprotect(both.byte_add(page), page, libc::PROT_NONE), 0);
            both.cast::<u8>()
        };
        let unsure = Unsure::default();
        for by_file in [false, true] {
            for (from, there) in [(0, true), (page - 9, true), (page - 8, false), (page, false)] {
                let mut bytes = *b"nine bytes";
                let bytes = &mut bytes[..9];
                let at = at.wrapping_add(from);
                let copy = |buffer: *mut u8, way| {
                    // SAFETY: nine bytes; memory of the test's own, or none.
                    unsafe {
                        if by_file { unsure.copy_by_file(buffer, at, 9, way) } else { unsure.copy(buffer, at, 9, way) }
                    }
                };
                assert_eq!(copy(bytes.as_mut_ptr(), Way::ToMemory).is_some(), there, "{from} {by_file}");
                bytes.fill(0);
                assert_eq!(copy(bytes.as_mut_ptr(), Way::FromMemory).is_some(), there, "{from} {by_file}");
                assert!(!there || bytes == b"nine byte", "{from} {by_file}");
            }
        }
        // SAFETY: as above.
        unsafe { libc::munmap(at.cast(), 2 * page) };
    }
}
