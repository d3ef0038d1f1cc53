//! Enumerations of which all variants are wanted, or the one that a number or a name stands for.

/// An enumeration with the type of its numbers: it has `ALL`, in order, and `from_number`. With the name of a function behind the type, that function
/// says of each variant what stands behind its arrow.
macro_rules! variants {
    ($(#[$meta:meta])* $seen:vis enum $name:ident: $int:ident, $text:ident $variants:tt) => {
        $crate::base::variants::variants! { $(#[$meta])* $seen enum $name: $int $variants }
        $crate::base::variants::variants! { @text $seen $name $text $variants }
    };
    ($(#[$meta:meta])* $seen:vis enum $name:ident: $int:ident {
        $($(#[$doc:meta])* $variant:ident $(= $number:literal)? $(=> $says:literal)?,)*
    }) => {
        $(#[$meta])*
        #[repr($int)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $seen enum $name { $($(#[$doc])* $variant $(= $number)?,)* }

        #[allow(dead_code, reason = "not each is looked for by its number")]
        impl $name {
            /// All of them, in order.
            $seen const ALL: [$name; [$($name::$variant),*].len()] = [$($name::$variant),*];

            /// The one of this number.
            #[allow(non_upper_case_globals, reason = "a pattern's constants have the names of the variants")]
            #[inline]
            $seen const fn from_number(n: $int) -> Option<$name> {
                $(const $variant: $int = $name::$variant as $int;)*
                match n {
                    $($variant => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
    (@text $seen:vis $name:ident $text:ident {
        $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $says:literal,)*
    }) => {
        impl $name {
            /// What stands for it where people read.
            $seen const fn $text(self) -> &'static str {
                match self {
                    $($name::$variant => $says,)*
                }
            }
        }
    };
}
pub(crate) use variants;
