//! Transfers of more than 2 and 4 GiB; the helper, which is there only when it is needed, and sleeps when there is nothing.

use crate::acp::*;
use crate::ranks::{Job, long};
use std::time::Duration;

/// Bytes copied: beyond what 31 or 32 bits count, and no round number.
fn bytes() -> usize {
    (if long() { 4 << 30 } else { 2 << 30 }) + 12_345
}
/// The memory of a test of which most parts are the same pages.
const CHUNK: usize = 64 << 20;

/// More than so many bytes of address space that take [`CHUNK`] bytes of memory, and an end of their own.
struct Vast {
    at: *mut u8,
    len: usize,
}

impl Vast {
    fn new() -> Vast {
        let len = bytes().next_multiple_of(CHUNK) + CHUNK;
        let shared = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: the room is mapped first, and then nothing but parts of it is replaced.
        unsafe {
            let fd = libc::memfd_create(c"vast".as_ptr(), libc::MFD_CLOEXEC);
            assert!(fd >= 0 && libc::ftruncate(fd, 2 * CHUNK as libc::off_t) == 0);
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let at = libc::mmap(std::ptr::null_mut(), len, access, flags | libc::MAP_NORESERVE, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            // The chunk in which the copy ends is another one than the rest, and there is one behind it.
            for n in 0..len / CHUNK {
                let from = if n == bytes() / CHUNK { CHUNK as libc::off_t } else { 0 };
                let place = at.cast::<u8>().add(n * CHUNK).cast();
                assert_ne!(libc::mmap(place, CHUNK, access, shared, fd, from), libc::MAP_FAILED);
            }
            libc::close(fd);
            Vast { at: at.cast(), len }
        }
    }
    fn at(&self, n: usize) -> *mut u8 {
        assert!(n < self.len);
        // SAFETY: within the mapping.
        unsafe { self.at.add(n) }
    }
    fn get(&self, n: usize) -> u8 {
        // SAFETY: within the mapping; others may write it.
        unsafe { self.at(n).read_volatile() }
    }
    fn set(&self, n: usize, value: u8) {
        // SAFETY: as above.
        unsafe { self.at(n).write_volatile(value) }
    }
}

impl Drop for Vast {
    fn drop(&mut self) {
        // SAFETY: mapped so.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

pub fn copies() {
    Job::new(3, "copies_much").run();
    if long() {
        Job::new(3, "copies_much").settings("FMPL_CMA=off").run();
    }
}

pub fn copies_much() {
    init();
    let me = rank();
    let memory = Vast::new();
    let all = exchange(0, register(memory.at(0), memory.len).1);
    // Between two others, to a rank, from a rank.
    let turns = [(0, 2, 1), (0, 1, 0), (0, 0, 2)];
    for (turn, (who, to, from)) in turns.into_iter().take(if long() { 3 } else { 1 }).enumerate() {
        let seed = 10 * turn as u8;
        // Both ends, and what lies behind the second one.
        let bytes = bytes();
        for (n, value) in [(0, 1), (bytes - 1, 2), (bytes, 3)] {
            memory.set(n, if me == from { seed + value } else { 100 });
        }
        sync();
        if me == who {
            copy_now(all[to as usize], all[from as usize], bytes);
        }
        sync();
        if me == to {
            let got = [0, bytes - 1, bytes].map(|n| memory.get(n));
            assert_eq!(got, [seed + 1, seed + 2, 100], "from {from} to {to} by {who}");
        }
        sync();
    }
    finalize();
}

pub fn helpers() {
    for way in ["", "FMPL_WAIT=block", "FMPL_WAIT=spin"] {
        Job::new(2, "helps").settings(way).run();
    }
}

/// This process's helper, if there is one: its directory in /proc.
fn helper() -> Option<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|t| t.unwrap().path().display().to_string());
    tasks.into_iter().find(|t| std::fs::read_to_string(format!("{t}/comm")).is_ok_and(|name| name == "fmpl-rma\n"))
}

/// The same, once there is (not) one: a thread is there before it has its name, and may be seen for a moment when it has ended.
fn helper_is_there(there: bool) -> Option<String> {
    for _ in 0..1000 {
        if helper().is_some() == there {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    helper()
}

/// It sleeps: for a while it is found asleep, and has not run in between.
fn falls_asleep(helper: &str) {
    let look = || {
        let text = std::fs::read_to_string(format!("{helper}/status")).unwrap();
        let lines = text.lines().filter(|l| l.starts_with("State") || l.contains("ctxt_switches"));
        lines.collect::<Vec<_>>().join(" ")
    };
    let (mut last, mut same) = (look(), 0);
    for _ in 0..2000 {
        std::thread::sleep(Duration::from_millis(10));
        let now = look();
        same = if now == last && now.contains("sleeping") { same + 1 } else { 0 };
        last = now;
        if same == 10 {
            return;
        }
    }
    panic!("the helper does not sleep: {last}");
}

pub fn helps() {
    init();
    let me = rank() as usize;
    let (shared, private) = (Memory::new(Kind::Shared, 4096), Memory::new(Kind::Private, 4096));
    let (shared_at, other) = (exchange(0, register(shared.ptr(), 4096).1), 1 - me);
    copy_now(shared_at[other], shared_at[me], 64);
    complete(fetch8(Op::Add, shared_at[me] + 128, shared_at[other] + 64, 1, 0, NOW));
    sync();
    assert_eq!(helper(), None, "memory of fmpl_alloc needs none");
    let (key, ga) = register(private.ptr(), 4096);
    let private_at = exchange(1, ga);
    let thread = helper_is_there(true).expect("a helper, since there is private memory");
    complete(fetch8(Op::Add, shared_at[me] + 128, private_at[other] + 64, 1, 0, NOW));
    sync();
    falls_asleep(&thread);
    // It wakes up when it is needed.
    complete(fetch8(Op::Add, shared_at[me] + 128, private_at[other] + 64, 1, 0, NOW));
    assert_eq!(shared.word(16).load(std::sync::atomic::Ordering::Acquire), 1);
    sync();
    unregister(key);
    finalize();
    assert_eq!(helper_is_there(false), None, "it ends with global memory");
}
