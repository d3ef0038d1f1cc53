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

macro_rules! plain {
    ($($t:ty)*) => { $(
        // SAFETY: a number: every bit pattern is a value, and it has no padding.
        unsafe impl Plain for $t {}
    )* };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array is its elements one after the other, without padding between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

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
