//! Buffers that end at a page which nobody may touch, with a pattern before them.

const PAGE: usize = 4096;
const PATTERN: u8 = 0xc3;

/// Memory of a message.
pub struct Guarded {
    pages: *mut u8,
    all: usize,
    at: usize,
    len: usize,
}

impl Guarded {
    /// `len` bytes, up to the end of their last page.
    pub fn new(len: usize) -> Guarded {
        let inner = (len + 64).next_multiple_of(PAGE);
        let all = inner + 2 * PAGE;
        // SAFETY: new private memory at an address of the kernel's choice; then the pages between the first and the last one are opened.
        let pages = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let p = libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0);
            assert!(p != libc::MAP_FAILED, "mmap");
            let p = p.cast::<u8>();
            assert_eq!(libc::mprotect(p.add(PAGE).cast(), inner, libc::PROT_READ | libc::PROT_WRITE), 0);
            p.add(PAGE).write_bytes(PATTERN, inner);
            p
        };
        Guarded { pages, all, at: PAGE + inner - len, len }
    }

    /// The bytes of the message.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: within the open pages, which are ours as long as self lives.
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(self.at), self.len) }
    }

    /// Has nobody written before it?
    pub fn is_whole(&self) -> bool {
        // SAFETY: the open pages before the message.
        let before = unsafe { std::slice::from_raw_parts(self.pages.add(PAGE), self.at - PAGE) };
        before.iter().all(|b| *b == PATTERN)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`.
        unsafe { libc::munmap(self.pages.cast(), self.all) };
    }
}
