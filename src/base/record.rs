//! Types that may be looked at by reference wherever bytes lie: in memory that processes share, or that the system has cleared.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(loom)]
use super::shadow;

/// A type of atomic numbers only.
///
/// # Safety
/// Whatever bytes lie there, they are a value of it; others may change them at any time; and it needs no drop.
pub unsafe trait Record: Sync + 'static {}

/// A type of which zero bytes are a value.
///
/// # Safety
/// They are.
pub unsafe trait Empty {}

// SAFETY: zero bytes are one kind of bytes.
unsafe impl<T: Record> Empty for T {}

macro_rules! are {
    ($trait:ident: $($t:ty),*) => { $(
        // SAFETY: an atomic number; a bool, of which zero is one; a pointer, which is null then.
        unsafe impl $trait for $t {}
    )* };
}
are!(Record: AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicI32, AtomicUsize);
are!(Empty: AtomicBool);
#[cfg(loom)]
are!(Record: shadow::AtomicU8, shadow::AtomicU16, shadow::AtomicU32, shadow::AtomicU64);
#[cfg(loom)]
are!(Empty: shadow::AtomicBool);

// SAFETY: null.
unsafe impl<T> Empty for AtomicPtr<T> {}
#[cfg(loom)]
// SAFETY: null.
unsafe impl<T> Empty for shadow::AtomicPtr<T> {}

// SAFETY: its elements are.
unsafe impl<T: Record, const N: usize> Record for [T; N] {}

/// Defines a structure whose fields all are [`Record`], or [`Empty`], and says that it is, too.
macro_rules! of_atomics {
    ($trait:ident: $(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of_field:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$of_field])* $field_vis $field: $type),* }

        const _: () = {
            const fn is<T: $crate::base::record::$trait>() {}
            $(is::<$type>();)*
        };
        // SAFETY: its fields are, as was just seen to.
        unsafe impl $crate::base::record::$trait for $name {}
    };
}
pub(crate) use of_atomics;
