//! What a message may consist of: values that are nothing but their bytes.

/// A type whose values are plain data: the bytes that arrive from another process are a value of it, whatever they are.
///
/// Implemented for integers, floats, and arrays of plain types. A `struct` of your own may be plain:
///
/// ```
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Particle {
///     place: [f64; 3],
///     charge: f64,
/// }
/// // SAFETY: floats only, without padding: 4 × 8 bytes.
/// unsafe impl fmpl::Plain for Particle {}
/// ```
///
/// With the feature `derive`, `#[derive(fmpl::Plain)]` says it, and looks whether it is so. With `bytemuck` there is `Pod` for what that crate
/// knows; with `num-complex` its complex numbers are plain.
///
/// `bool`, `char`, references, and enums are not plain: not all of their bit patterns are values.
///
/// ```compile_fail,E0277
/// # let job = fmpl::init(1)?;
/// job.world().recv(&mut [true], 0, 0)?; // `bool` is not plain
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// # let job = fmpl::init(1)?;
/// job.world().send(&["text"], 0, 0)?; // a reference means nothing to another process
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// # Safety
/// Every bit pattern is a value; no byte is padding; nothing in it is a pointer or reference, whose meaning ends with the process.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// ```
/// #[derive(Clone, Copy, fmpl::Plain)]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: f32,
///     kind: u32,
/// }
/// # let job = fmpl::init(1)?;
/// # let world = job.world();
/// let (sent, mut got) = (Particle { place: [1.0; 3], charge: 2.0, kind: 7 }, [Particle { place: [0.0; 3], charge: 0.0, kind: 0 }]);
/// world.sendrecv(&[sent], 0, 0, &mut got, 0, 0)?;
/// assert_eq!(got[0].kind, 7);
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// What is none:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, fmpl::Plain)]
/// #[repr(C)]
/// struct Gap(u8, u32); // evaluation panicked: a plain structure has no gaps
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, fmpl::Plain)]
/// #[repr(C)]
/// struct Flag(bool); // the trait bound `bool: Plain` is not satisfied
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, fmpl::Plain)]
/// struct Loose(u32, u32); // a plain structure is #[repr(C)] or #[repr(transparent)]
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, fmpl::Plain)]
/// #[repr(u8)]
/// enum Kind { Light, Heavy } // only a structure can be plain
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, fmpl::Plain)]
/// #[repr(C)]
/// struct Pair<T>(T, T); // a structure with parameters has no one layout
/// ```
#[cfg(feature = "derive")]
pub use fmpl_derive::Plain;

macro_rules! plain {
    ($($t:ty)*) => { $(
        // SAFETY: a number: every bit pattern is a value, and it has no padding.
        unsafe impl Plain for $t {}
    )* };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array is its elements one after the other, without padding between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

// SAFETY: two numbers one behind the other (`repr(C)`), both plain.
#[cfg(feature = "num-complex")]
unsafe impl<T: Plain> Plain for num_complex::Complex<T> {}

/// A value of a type that the crate bytemuck knows as plain data, as a message (with the feature `bytemuck`).
///
/// ```
/// use fmpl::Pod;
/// #[repr(C)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// struct Particle {
///     place: [f64; 3],
///     charge: f64,
/// }
/// # let job = fmpl::init(1)?;
/// # let world = job.world();
/// let sent = [Particle { place: [1.0; 3], charge: 2.0 }; 10];
/// let mut got = [Particle { place: [0.0; 3], charge: 0.0 }; 10];
/// world.sendrecv(Pod::of(&sent), 0, 0, Pod::of_mut(&mut got), 0, 0)?;
/// assert_eq!(got[9].charge, 2.0);
/// # Ok::<(), fmpl::Error>(())
/// ```
#[cfg(feature = "bytemuck")]
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pod<T: bytemuck::Pod>(pub T);

// SAFETY: bytemuck's own promise: any bytes are a value, none is padding, and there are no pointers in it.
#[cfg(feature = "bytemuck")]
unsafe impl<T: bytemuck::Pod + Send + Sync> Plain for Pod<T> {}

#[cfg(feature = "bytemuck")]
impl<T: bytemuck::Pod> Pod<T> {
    /// Values as they are sent.
    pub fn of(values: &[T]) -> &[Pod<T>] {
        // SAFETY: transparent, so laid out as the value in it.
        unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }

    /// Values that are received into.
    pub fn of_mut(values: &mut [T]) -> &mut [Pod<T>] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
    }
}

/// The bytes of values.
pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: all of them, none of which is padding.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The same, to be written: any bytes are values.
pub(crate) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Defines a structure whose fields all are [`Plain`], without gaps between them, and says that it is, too.
macro_rules! of_plain {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of_field:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    }) => {
        #[repr(C)]
        $(#[$meta])*
        $vis struct $name { $($(#[$of_field])* $field_vis $field: $type),* }

        const _: () = {
            const fn is<T: $crate::base::plain::Plain>() {}
            $(is::<$type>();)*
            assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
        };
        // SAFETY: its fields are, and there is nothing else in it, as was just seen to.
        unsafe impl $crate::base::plain::Plain for $name {}
    };
}
pub(crate) use of_plain;
