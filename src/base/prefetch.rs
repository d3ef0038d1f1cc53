//! Asking for cache lines before they are needed. Nothing but the caches changes; where there is no such instruction, nothing happens.

/// Asks for a line that is likely to be needed soon. Only the caches change.
#[inline(always)]
pub fn prefetch<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on the caches.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Asks for a line that is to be written soon: other cores' copies go at the same time.
#[inline(always)]
pub fn prefetch_to_write<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; a processor without the instruction takes it for one that does nothing.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Asks for all lines of memory that another core has written, before they are copied: they come at the same time, rather than one
/// after the other as the copy meets them.
#[inline(always)]
pub fn prefetch_run(from: *const u8, len: usize) {
    (0..len).step_by(64).for_each(|line| prefetch(from.wrapping_add(line)));
}

/// The same of lines that are to be written.
#[inline(always)]
pub fn prefetch_run_to_write(to: *const u8, len: usize) {
    (0..len).step_by(64).for_each(|line| prefetch_to_write(to.wrapping_add(line)));
}
