//! The functions of the C interface as tables: an entry is a declaration, and what the call does, as a `Result`. The header's generator reads them
//! (`tests/interface/source.rs`).

/// Makes the functions of a table. Each returns the number of its outcome. What it does comes after `=`; with `-> out` what that gives goes to the
/// caller's variable `out`, which must be there. `needs a or b`: so must those.
macro_rules! calls {
    () => {};
    ($(#[$doc:meta])* unsafe fn $name:ident $arguments:tt
        $(needs $first:ident $(or $more:ident)*)? $(-> $out:ident)? = $what:expr; $($rest:tt)*
    ) => {
        calls!(@function $(#[$doc])*, (unsafe), $name $arguments, {
            $(calls!(@needs $name $first $($more)*);)?
            // SAFETY: pointers are what their descriptions say, as the interface demands of the caller.
            #[allow(unused_unsafe, reason = "not every entry needs it")]
            unsafe { calls!(@outcome $name $($out)?, $what) }
        });
        calls! { $($rest)* }
    };
    ($(#[$doc:meta])* fn $name:ident $arguments:tt
        $(needs $first:ident $(or $more:ident)*)? $(-> $out:ident)? = $what:expr; $($rest:tt)*
    ) => {
        calls!(@function $(#[$doc])*, (), $name $arguments, {
            $(calls!(@needs $name $first $($more)*);)?
            calls!(@outcome $name $($out)?, $what)
        });
        calls! { $($rest)* }
    };
    (@function $(#[$doc:meta])*, ($($unsafe:ident)?), $name:ident($($argument:ident: $kind:ty),* $(,)?), $body:block) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(unused_variables, reason = "arguments that only others' libraries need")]
        pub $($unsafe)? extern "C" fn $name($($argument: $kind),*) -> core::ffi::c_int $body
    };
    (@needs $name:ident $first:ident $($more:ident)*) => {
        if $first.is_null() $(|| $more.is_null())* {
            return $crate::ffi::outcome::wrong(calls!(@null $name $first $($more)*));
        }
    };
    (@null $name:ident $first:ident $($more:ident)*) => {
        concat!(stringify!($name), ": ", stringify!($first), $(" or ", stringify!($more),)* " is NULL")
    };
    (@outcome $name:ident $out:ident, $what:expr) => {
        $crate::ffi::outcome::hand_to($out, calls!(@null $name $out), || $what)
    };
    (@outcome $name:ident, $what:expr) => {
        $crate::ffi::outcome::number($what)
    };
}
