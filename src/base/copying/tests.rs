//! Every loop, at every alignment, between pages that nobody may touch.

use super::*;
use proptest::prelude::*;

/// Memory whose ends are pages that nobody may touch.
struct Guarded {
    map: *mut u8,
    bytes: usize,
}

impl Guarded {
    /// At least so many bytes, whole pages, filled with `fill`.
    fn new(bytes: usize, fill: u8) -> Guarded {
        // SAFETY: a new private mapping; its ends are closed, and the rest is ours.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let bytes = bytes.next_multiple_of(page);
            let all = bytes + 2 * page;
            let map =
                libc::mmap(core::ptr::null_mut(), all, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            let at = map.cast::<u8>().add(page);
            assert_eq!(libc::mprotect(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE), 0);
            at.write_bytes(fill, bytes);
            Guarded { map: at, bytes }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: this mapping, which nobody else knows.
        unsafe { core::slice::from_raw_parts_mut(self.map, self.bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: this mapping with its two closed pages.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            libc::munmap(self.map.sub(page).cast(), self.bytes + 2 * page);
        }
    }
}

fn lines_ahead(how: Copying) -> usize {
    if how == Copying::Ahead { 256 } else { 0 }
}

/// Copies by one loop, whatever is chosen.
unsafe fn by(l: Loop, how: Copying, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as the caller promises; only loops that run here are asked for.
    unsafe {
        match (l, how) {
            #[cfg(target_arch = "x86_64")]
            (_, Copying::String) => loops::string(from, to, n),
            #[cfg(target_arch = "x86_64")]
            (Loop::Avx512, how) if how != Copying::Past => loops::cached_avx512(from, to, n, lines_ahead(how)),
            #[cfg(target_arch = "x86_64")]
            (Loop::Avx2, how) if how != Copying::Past => loops::cached_avx2(from, to, n, lines_ahead(how)),
            #[cfg(target_arch = "x86_64")]
            (Loop::Avx2 | Loop::Avx512, Copying::Past) => loops::past_avx2(from, to, n),
            #[cfg(target_arch = "x86_64")]
            (Loop::Sse2, how) if how != Copying::Past => loops::cached_sse2(from, to, n, lines_ahead(how)),
            #[cfg(target_arch = "x86_64")]
            (Loop::Sse2, Copying::Past) => loops::past_sse2(from, to, n),
            (Loop::Portable, _) => loops::cached_portable(from, to, n, lines_ahead(how)),
            _ => core::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

fn each_way() -> impl Iterator<Item = (Loop, Copying)> {
    Loop::ALL
        .into_iter()
        .filter(|l| l.runs_here())
        .flat_map(|l| [Copying::Cached, Copying::Ahead, Copying::Past].map(|how| (l, how)))
}

/// `n` bytes from `skip` bytes behind a page to `shift` behind one; then both at the very end of their pages.
fn check(l: Loop, how: Copying, source: &mut Guarded, room: &mut Guarded, n: usize, skip: usize, shift: usize) {
    let ends = [(skip, shift), (source.bytes - n - skip % 2, room.bytes - n - shift % 2)];
    for (skip, shift) in ends {
        room.bytes().fill(0xee);
        // SAFETY: both have so many bytes behind the offsets.
        unsafe { by(l, how, source.map.add(skip), room.map.add(shift), n) };
        let (source, room) = (source.bytes(), room.bytes());
        assert!(room[shift..shift + n] == source[skip..skip + n], "{l:?} {how:?}: {n} bytes, {skip} to {shift}");
        room[shift..shift + n].fill(0xee);
        // Each byte is as the one before it: a comparison of whole runs.
        assert!(room[1..] == room[..room.len() - 1], "{l:?} {how:?}: {n} bytes, {skip} to {shift}: bytes around");
        assert_eq!(room[0], 0xee);
    }
}

fn pages(most: usize) -> (Guarded, Guarded) {
    let (mut source, room) = (Guarded::new(most, 0), Guarded::new(most, 0xee));
    source.bytes().iter_mut().enumerate().for_each(|(k, b)| *b = (k * 7 + k / 251) as u8);
    (source, room)
}

#[test]
fn every_length_at_the_ends_of_pages() {
    let (mut source, mut room) = pages(4096);
    for (l, how) in each_way() {
        for n in LEAST..LEAST + 300 {
            check(l, how, &mut source, &mut room, n, n % 67, n * 5 % 131);
        }
    }
}

#[test]
fn every_alignment_of_both_sides() {
    let (mut source, mut room) = pages(4096);
    for (l, how) in each_way() {
        for (skip, shift) in (0..64).flat_map(|a| (0..64).map(move |b| (a, b))) {
            check(l, how, &mut source, &mut room, 517, skip, shift);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]
    #[test]
    fn long_ones(n in LEAST..100_000usize, skip in 0usize..5000, shift in 0usize..5000) {
        let (mut source, mut room) = pages(106_000);
        for (l, how) in each_way() {
            check(l, how, &mut source, &mut room, n, skip, shift);
        }
    }
}

/// The seam: short runs, and those that the engine copies.
#[test]
fn every_byte_and_no_other_through_the_seam() {
    let (mut source, mut room) = pages(long() + 8192);
    for n in (0..700).step_by(3).chain([127, 128, 129, 4096, 65_537, long(), long() + 63]) {
        for how in [Copying::Cached, Copying::Ahead, Copying::Past] {
            room.bytes().fill(0xee);
            // SAFETY: both have so many bytes behind the offsets.
            unsafe { how.copy(source.map.add(16), room.map.add(40), n) };
            assert!(room.bytes()[40..40 + n] == source.bytes()[16..16 + n], "{how:?} {n}");
            let room = room.bytes();
            assert!(room[..40].iter().chain(&room[40 + n..]).all(|b| *b == 0xee), "{how:?} {n}");
        }
    }
}
