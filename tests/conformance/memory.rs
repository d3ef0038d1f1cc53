//! Buffers of every kind of memory, as sources and as destinations: what can be read can be sent, what can be written can be
//! received into.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use fmpl::ffi::c::{fmpl_alloc, fmpl_free};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The heap.
    Heap,
    /// Pages that may only be read. A destination: never.
    ReadOnly,
    /// A mapped file, changes private to the process.
    PrivateFile,
    /// A mapped file, changes written to it.
    SharedFile,
    /// Huge pages: reserved ones if the machine has any, else what the kernel gives on advice.
    Huge,
    /// Memory that peers reach directly.
    Shared,
}

const KINDS: [Kind; 6] = [Kind::Heap, Kind::ReadOnly, Kind::PrivateFile, Kind::SharedFile, Kind::Huge, Kind::Shared];
const SIZES: [usize; 6] = [8, 60, 900, 5000, 70_000, 1_200_000];
const HUGE_PAGE: usize = 2 << 20;
/// Where in its memory a message begins: not on a page.
const SHIFT: usize = 24;
/// Bytes of each piece of memory.
const ROOM: usize = 2 << 20;

/// Memory of a kind.
struct Memory {
    kind: Kind,
    start: *mut u8,
    bytes: usize,
    file: Option<File>,
}

impl Memory {
    fn new(kind: Kind) -> Memory {
        let file = matches!(kind, Kind::PrivateFile | Kind::SharedFile).then(temporary_file);
        let (start, bytes) = match kind {
            Kind::Heap => (Box::leak(vec![0u8; ROOM].into_boxed_slice()).as_mut_ptr(), ROOM),
            Kind::Shared => (fmpl_alloc(ROOM).cast::<u8>(), ROOM),
            Kind::ReadOnly => (map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, ROOM).expect("memory"), ROOM),
            Kind::PrivateFile | Kind::SharedFile => {
                let how = if kind == Kind::SharedFile { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
                (map(how, file.as_ref().expect("a file").as_raw_fd(), ROOM).expect("a mapped file"), ROOM)
            }
            Kind::Huge => huge(),
        };
        assert!(!start.is_null(), "{kind:?}: {}", last_error());
        Memory { kind, start, bytes, file }
    }

    fn at(&self) -> *mut u8 {
        self.start.wrapping_add(SHIFT)
    }

    fn protect(&self, rights: i32) {
        // SAFETY: our own mapping.
        let r = unsafe { libc::mprotect(self.start.cast(), self.bytes, rights) };
        assert_eq!(r, 0, "{}", std::io::Error::last_os_error());
    }

    /// The message's place, with the contents of a seed.
    fn filled(&mut self, len: usize, content: u64) -> &[u8] {
        if self.kind == Kind::ReadOnly {
            self.protect(libc::PROT_READ | libc::PROT_WRITE);
        }
        fill(self.room(len), content);
        if self.kind == Kind::ReadOnly {
            self.protect(libc::PROT_READ);
        }
        // SAFETY: `len` bytes of ours, which nobody writes before the message is sent.
        unsafe { std::slice::from_raw_parts(self.at(), len) }
    }

    fn room(&mut self, len: usize) -> &mut [u8] {
        assert!(SHIFT + len <= self.bytes);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.at(), len) }
    }

    /// What the file holds: the message, or of a private mapping nothing.
    fn look_into_the_file(&self, len: usize, content: u64, what: &str) {
        let Some(file) = &self.file else { return };
        let mut held = vec![0; len];
        file.read_exact_at(&mut held, SHIFT as u64).expect("reading the file");
        if self.kind == Kind::SharedFile {
            check(&held, content, &format!("{what}, in the file"));
        } else {
            assert!(held.iter().all(|b| *b == 0), "{what}: a private mapping was written to its file");
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: leaked in `new`.
            Kind::Heap => drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.bytes)) }),
            // SAFETY: from `fmpl_alloc`, and no request is open.
            Kind::Shared => ok(unsafe { fmpl_free(self.start.cast()) }),
            // SAFETY: our own mapping.
            _ => assert_eq!(unsafe { libc::munmap(self.start.cast(), self.bytes) }, 0),
        }
    }
}

fn map(how: i32, fd: i32, bytes: usize) -> Option<*mut u8> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, how, fd, 0) };
    (p != libc::MAP_FAILED).then_some(p.cast())
}

fn huge() -> (*mut u8, usize) {
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let bytes = (ROOM + SHIFT).next_multiple_of(HUGE_PAGE);
    if let Some(p) = map(private | libc::MAP_HUGETLB, -1, bytes) {
        return (p, bytes);
    }
    let p = map(private, -1, bytes).expect("memory");
    // SAFETY: our own mapping. The advice may be refused: then these are ordinary pages.
    unsafe { libc::madvise(p.cast(), bytes, libc::MADV_HUGEPAGE) };
    (p, bytes)
}

/// A file without a name, on a disk if the directory for temporary files is on one.
fn temporary_file() -> File {
    let path = std::env::temp_dir().join(format!("fmpl-memory-{}-{}", std::process::id(), rank()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("a file");
    file.set_len(ROOM as u64).expect("room in a file");
    file
}

/// Every kind to every kind, posted before and after, in every mode.
pub fn of_every_kind(me: i32) {
    let mut seq = 0u64;
    for from in KINDS {
        for to in KINDS.into_iter().filter(|k| *k != Kind::ReadOnly) {
            seq += 1;
            let src = (seq % 2) as i32;
            // New for each pair, so that pages are touched by the message for the first time.
            let mut memory = Memory::new(if me == src { from } else { to });
            for (k, len) in SIZES.into_iter().enumerate() {
                let timeout = [0, 2, -1][(k + seq as usize) % 3];
                sendbuf_set(64 << 20, timeout);
                let (late, content) =
                    ((k + seq as usize).is_multiple_of(2), seed(src, 1 - src, 11, seq << 8 | k as u64));
                let what = format!("{len} bytes from {from:?} to {to:?}, time-out {timeout}, late {late}");
                if me == src {
                    let data = memory.filled(len, content);
                    if k % 2 == 0 {
                        send(data, 1 - src, 11);
                    } else {
                        isend(data, 1 - src, 11);
                        isend_wait(1 - src, 11);
                    }
                    check(data, content, &format!("{what}: the source has changed"));
                } else {
                    if late {
                        sleep_ms(3);
                    }
                    let place = memory.room(len);
                    recv(place, src, 11);
                    check(place, content, &what);
                    memory.look_into_the_file(len, content, &what);
                }
            }
        }
    }
    barrier();
}
