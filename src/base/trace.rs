//! Events: what this process did and when, kept in memory and written out when something goes wrong, on a signal, or at the end.
//!
//! Compiled with the cargo feature `trace` only. Without it [`traced`] is nothing, and neither is what stands in it.
//!
//! ```text
//!  thread A   ring: | … | event | event | next ▶ oldest | … |      written by its thread only, which takes no lock and
//!  thread B   ring: | … | event | next ▶ oldest | … |              allocates nothing after its first event
//!                        ▲ read by whoever writes them out, at any time: what is overwritten meanwhile is left out
//! ```

/// Something that is done where events are compiled in, and is not there otherwise.
macro_rules! traced {
    ($does:expr) => {
        #[cfg(feature = "trace")]
        {
            $does;
        }
    };
}
pub(crate) use traced;

#[cfg(feature = "trace")]
mod events;
#[cfg(feature = "trace")]
mod written;

#[cfg(feature = "trace")]
pub use events::{Event, What, note};
#[cfg(feature = "trace")]
pub use written::{begin, end, write};
