//! A word in the region that tells that its process lives and has executed no other program, without asking the system.
//!
//! ```text
//!   0                     no pulse: not yet, not any more, or the system has none of this
//!   the thread's id       the process that first contact was made with is there, with the memory that it had then
//!   … | OWNER_DIED        it is not: put there by the kernel
//! ```
//! The service thread, which lives as long as its rank is in the job, tells the kernel of the word as of a robust futex that it holds
//! (`set_robust_list`). When a thread ends, however it does, the kernel marks what it holds before it lets go of the memory, and so before the
//! process is a zombie, before that can be reaped, and before its number can come to mean another; also when the process executes another
//! program, which ends the other threads first. Whoever copies into the process's memory looks at the word as it would poll the pidfd and the
//! connection, at the cost of a load. A word that does not say that all is well says nothing: then the system is asked.
//!
//! The word is written by the owner and its kernel; another process that writes over it can at worst have the system asked, or not asked.

use core::ffi::c_long;

use crate::base::atomics::{AtomicU32, Ordering};

/// `FUTEX_OWNER_DIED`
const OWNER_DIED: u32 = 0x4000_0000;

/// Is all well, as this word has it?
#[inline(always)]
pub(super) fn beats(word: &AtomicU32) -> bool {
    let seen = word.load(Ordering::Acquire);
    seen != 0 && seen & OWNER_DIED == 0
}

/// `struct robust_list`
#[repr(C)]
struct Node {
    next: *const Node,
}

/// `struct robust_list_head`
#[repr(C)]
struct Head {
    list: Node,
    /// From a node to its word.
    futex_offset: c_long,
    list_op_pending: *const Node,
}

/// What is put back when the word is to tell of nothing any more, however that comes: the list lies on the thread's stack.
struct Telling<'a> {
    word: &'a AtomicU32,
    before: *const Head,
    len: usize,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.word.store(0, Ordering::Release);
        // SAFETY: the list that the thread had.
        unsafe { libc::syscall(libc::SYS_set_robust_list, self.before, self.len) };
    }
}

/// Has the word tell of the life of this thread, as long as `run` runs.
pub(super) fn with<T>(word: &AtomicU32, run: impl FnOnce() -> T) -> T {
    let mut head = Head { list: Node { next: core::ptr::null() }, futex_offset: 0, list_op_pending: core::ptr::null() };
    let mut node = Node { next: core::ptr::null() };
    node.next = &raw const head.list;
    head.list.next = &raw const node;
    head.futex_offset = (core::ptr::from_ref(word).addr() as c_long).wrapping_sub((&raw const node).addr() as c_long);
    let (mut before, mut len) = (core::ptr::null::<Head>(), 0usize);
    // SAFETY: both are of this function; of the thread itself (0) the list may always be asked for. The new list stays as it is until the
    // old one is put back below, or the thread ends, and with it the process.
    let told = unsafe {
        libc::syscall(libc::SYS_get_robust_list, 0, &raw mut before, &raw mut len) == 0
            && libc::syscall(libc::SYS_set_robust_list, &raw const head, size_of::<Head>()) == 0
    };
    let _telling = told.then(|| {
        // SAFETY: no preconditions.
        word.store(unsafe { libc::syscall(libc::SYS_gettid) } as u32, Ordering::Release);
        Telling { word, before, len }
    });
    run()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn it_beats_as_long_as_its_thread_runs() {
        let word = Arc::new(AtomicU32::new(0));
        assert!(!beats(&word));
        let of_thread = Arc::clone(&word);
        std::thread::spawn(move || with(&of_thread, || assert!(beats(&of_thread)))).join().unwrap();
        assert!(!beats(&word) && word.load(Ordering::Relaxed) == 0);
    }

    /// The child's: it ends while its pulse beats, or is killed.
    fn end(word: &AtomicU32, is_killed: bool) {
        // SAFETY: system calls without memory.
        unsafe {
            if is_killed {
                loop {
                    libc::pause();
                }
            }
            libc::_exit(i32::from(!beats(word)))
        }
    }

    #[test]
    fn the_kernel_ends_it() {
        // A shared page, and a child that ends in the middle of things.
        // SAFETY: a fresh page, unmapped at the end; the child makes only system calls, and its end runs nothing.
        unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let page = libc::mmap(core::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            let word = &*page.cast::<AtomicU32>();
            for kill in [false, true] {
                word.store(0, Ordering::Relaxed);
                let child = libc::fork();
                assert!(child >= 0);
                if child == 0 {
                    with(word, || end(word, kill));
                }
                if kill {
                    let since = std::time::Instant::now();
                    while !beats(word) {
                        assert!(since.elapsed() < std::time::Duration::from_secs(20));
                        std::thread::yield_now();
                    }
                    libc::kill(child, libc::SIGKILL);
                }
                // Without reaping it: it is marked already when it is a zombie.
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let how = libc::WEXITED | libc::WNOWAIT;
                assert_eq!(libc::waitid(libc::P_PID, child as u32, &mut info, how), 0);
                assert!(!beats(word) && word.load(Ordering::Relaxed) & OWNER_DIED != 0);
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                assert!(kill || libc::WEXITSTATUS(status) == 0);
            }
            libc::munmap(page, 4096);
        }
    }
}
