//! What peers may reach: registered memory, by keys that are given out in turn. And the copies by which short writes get there, whose words are
//! seen whole.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};

use super::unsure::Unsure;
use crate::fabric::network::device::{Access, Change, Place, Registrar, Registration};

/// See the head of this file.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Memory {
    table: RwLock<Table>,
    unsure: Unsure,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<u32, Entry>,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    len: usize,
    access: Access,
}

impl Memory {
    /// Does something with memory that peers may use like this, which stays registered meanwhile. `None`: they may not. What
    /// [may go](Access::MAY_GO) is used by calls of the system only.
    #[inline]
    pub fn reach<R>(
        &self,
        place: Place,
        len: usize,
        access: Access,
        use_it: impl FnOnce(*mut u8, Access) -> R,
    ) -> Option<R> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let entry = table.all.get(&place.rkey)?;
        let from = place.addr.checked_sub(entry.at)?;
        if !entry.access.contains(access) || from.checked_add(len as u64)? > entry.len as u64 {
            return None;
        }
        Some(use_it(place.addr as *mut u8, entry.access))
    }

    /// The same with memory that a call of the system is to write for a peer.
    pub fn receive<R>(&self, place: Place, len: usize, receive: impl FnOnce(&Target<'_>) -> R) -> Option<R> {
        self.reach(place, len, Access::REMOTE_WRITE, |at, _| receive(&Target { at, len, memory: self }))
    }

    /// Writes bytes where a peer wants them. `None`: it may not.
    #[inline]
    pub fn write(&self, place: Place, bytes: &[u8]) -> Option<()> {
        self.reach(place, bytes.len(), Access::REMOTE_WRITE, |at, access| {
            // SAFETY: registered to be written by peers, which other threads know.
            unsafe {
                if access.contains(Access::MAY_GO) {
                    return self.unsure.write(bytes, at);
                }
                put(bytes, at);
            }
            Some(())
        })?
    }

    /// Reads what a peer wants. `None`: it may not.
    #[inline]
    pub fn read(&self, place: Place, into: &mut [u8]) -> Option<()> {
        self.reach(place, into.len(), Access::REMOTE_READ, |at, access| {
            if access.contains(Access::MAY_GO) {
                return self.unsure.read(at, into);
            }
            // SAFETY: registered to be read by peers.
            unsafe { look(at, into) };
            Some(())
        })?
    }

    /// Reads memory that may have gone. `None`: it has.
    pub fn read_unsure(&self, from: *const u8, into: &mut [u8]) -> Option<()> {
        self.unsure.read(from, into)
    }

    /// Shows memory by a key that another network has given out for it.
    pub fn show(self: Arc<Self>, key: u32, at: *mut u8, len: usize, access: Access) -> Shown {
        let entry = Entry { at: at as u64, len, access };
        self.table.write().unwrap_or_else(PoisonError::into_inner).all.insert(key, entry);
        Shown { memory: self, key }
    }

    /// Changes a word, and gives what was there. `None`: it may not be changed.
    pub fn change(&self, place: Place, change: Change) -> Option<u64> {
        if !place.addr.is_multiple_of(8) {
            return None;
        }
        self.reach(place, 8, Access::REMOTE_ATOMIC, |at, _| {
            // SAFETY: registered, so mapped, to be changed by others, who use atomics; aligned.
            let word = unsafe { &*at.cast::<AtomicU64>() };
            match change {
                Change::Add(n) => word.fetch_add(n, Ordering::AcqRel),
                Change::Swap(expected, new) => {
                    match word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(old) | Err(old) => old,
                    }
                }
            }
        })
    }
}

/// Memory that peers may write, and that stays registered; the program may have unmapped it, which calls of the system tell.
pub(in crate::fabric) struct Target<'a> {
    at: *mut u8,
    len: usize,
    memory: &'a Memory,
}

impl Target<'_> {
    pub fn len(&self) -> usize {
        self.len
    }
    /// A part of it, for a call of the system.
    pub fn part(&self, from: usize, len: usize) -> libc::iovec {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len));
        libc::iovec { iov_base: self.at.wrapping_add(from).cast(), iov_len: len }
    }
    /// Reads back what was written there. `None`: it cannot be read.
    pub fn read(&self, from: usize, into: &mut [u8]) -> Option<()> {
        let part = self.part(from, into.len());
        self.memory.read_unsure(part.iov_base.cast(), into)
    }
}

impl Registrar for Memory {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let entry = Entry { at: at as u64, len, access };
        loop {
            table.last = table.last.wrapping_add(1);
            let key = table.last;
            if key != 0 && !table.all.contains_key(&key) {
                table.all.insert(key, entry);
                drop(table);
                return Ok(Box::new(Shown { memory: self, key }));
            }
        }
    }
    fn name(&self) -> String {
        "this process".into()
    }
}

/// Memory that peers reach by a key, until this is dropped.
#[derive(Debug)]
pub(in crate::fabric) struct Shown {
    memory: Arc<Memory>,
    key: u32,
}

impl Registration for Shown {
    fn lkey(&self) -> u32 {
        self.key
    }
    fn rkey(&self) -> u32 {
        self.key
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // Whoever is at it for a peer is waited for.
        self.memory.table.write().unwrap_or_else(PoisonError::into_inner).all.remove(&self.key);
    }
}

/// Writes of more bytes than this are not seen word by word: a later one says that they are there.
const WHOLE: usize = 1 << 10;

/// Copies to memory that others look at.
///
/// # Safety
/// So many bytes may be written there.
#[inline]
pub(in crate::fabric) unsafe fn put(bytes: &[u8], to: *mut u8) {
    if bytes.len() <= WHOLE {
        // SAFETY: as the caller promises.
        unsafe { show(bytes, to) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
}

/// Copies bytes to where others look meanwhile: aligned words, of eight bytes or of four where no eight are, are seen whole; and whoever sees one
/// sees what was written before.
///
/// # Safety
/// So many bytes can be read there, and written here by nobody else without atomics.
#[inline]
unsafe fn show(from: &[u8], to: *mut u8) {
    // SYNC POINT: pairs with the acquire loads of whoever looks at fronts.
    fence(Ordering::Release);
    let mut at = 0;
    while at < from.len() {
        // SAFETY: within what the caller promises; aligned as each case asks for.
        unsafe {
            let (source, place) = (from.as_ptr().add(at), to.add(at));
            let left = from.len() - at;
            if left >= 8 && (place as usize).is_multiple_of(8) {
                (*place.cast::<AtomicU64>()).store(source.cast::<u64>().read_unaligned(), Ordering::Relaxed);
                at += 8;
            } else if left >= 4 && (place as usize).is_multiple_of(4) {
                (*place.cast::<AtomicU32>()).store(source.cast::<u32>().read_unaligned(), Ordering::Relaxed);
                at += 4;
            } else {
                (*place.cast::<AtomicU8>()).store(*source, Ordering::Relaxed);
                at += 1;
            }
        }
    }
}

/// The other way: words are read whole.
///
/// # Safety
/// So many bytes can be read there, and are written by nobody without atomics.
#[inline]
unsafe fn look(from: *const u8, to: &mut [u8]) {
    let (mut at, n) = (0, to.len());
    while at < n {
        // SAFETY: within what the caller promises; aligned as each case asks for.
        unsafe {
            let (source, place) = (from.add(at), to.as_mut_ptr().add(at));
            if n - at >= 8 && (source as usize).is_multiple_of(8) {
                place.cast::<u64>().write_unaligned((*source.cast::<AtomicU64>()).load(Ordering::Relaxed));
                at += 8;
            } else if n - at >= 4 && (source as usize).is_multiple_of(4) {
                place.cast::<u32>().write_unaligned((*source.cast::<AtomicU32>()).load(Ordering::Relaxed));
                at += 4;
            } else {
                *place = (*source.cast::<AtomicU8>()).load(Ordering::Relaxed);
                at += 1;
            }
        }
    }
    fence(Ordering::Acquire);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_key_allows_is_reached() {
        let words = [const { AtomicU64::new(5) }; 4];
        let (at, memory) = (words.as_ptr() as u64, Arc::<Memory>::default());
        let register = |access| {
            // SAFETY: lives longer.
            unsafe { memory.clone().register((at + 8) as *mut u8, 16, access) }.expect("registered")
        };
        let all = register(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let read = register(Access::REMOTE_READ);
        let reached = |addr, rkey, len, access| memory.reach(Place { addr, rkey }, len, access, |_, _| ()).is_some();
        assert!(reached(at + 8, all.rkey(), 16, Access::REMOTE_WRITE));
        assert!(reached(at + 23, read.rkey(), 1, Access::REMOTE_READ));
        assert!(!reached(at + 8, read.rkey(), 16, Access::REMOTE_WRITE));
        for (addr, len) in [(at + 8, 17), (at + 7, 1), (at + 24, 1), (u64::MAX, 2), (at + 8, usize::MAX)] {
            assert!(!reached(addr, all.rkey(), len, Access::REMOTE_WRITE), "{addr} {len}");
        }
        let change = |addr, rkey, change| memory.change(Place { addr, rkey }, change);
        assert_eq!(change(at + 8, all.rkey(), Change::Add(2)), Some(5));
        assert_eq!(change(at + 8, all.rkey(), Change::Swap(5, 9)), Some(7));
        assert_eq!(change(at + 8, all.rkey(), Change::Swap(7, 9)), Some(7));
        assert_eq!(change(at + 12, all.rkey(), Change::Add(1)), None);
        assert_eq!(change(at + 8, read.rkey(), Change::Add(1)), None);
        let key = all.rkey();
        drop(all);
        assert_eq!(change(at + 8, key, Change::Add(1)), None);
        assert_eq!(words.each_ref().map(|w| w.load(Ordering::Relaxed)), [5, 9, 5, 5]);
    }

    #[test]
    fn copies_that_are_seen_are_whole() {
        let from: Vec<u8> = (1..=64).collect();
        for n in 0..40 {
            for begin in 0..9 {
                let (mut there, mut back) = ([0u64; 8], [0; 64]);
                let at = there.as_mut_ptr().cast::<u8>();
                // SAFETY: 64 bytes.
                let bytes = unsafe {
                    show(&from[..n], at.add(begin));
                    look(at.add(begin), &mut back[..n]);
                    *at.cast::<[u8; 64]>()
                };
                assert_eq!(bytes[begin..][..n], from[..n]);
                assert!(bytes[..begin].iter().chain(&bytes[begin + n..]).all(|b| *b == 0));
                assert_eq!(back[..n], from[..n]);
            }
        }
    }
}
