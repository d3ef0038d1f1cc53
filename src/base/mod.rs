//! What every layer stands on: errors, settings, atomics, the clock.

pub mod atomics;
pub mod clock;
pub mod config;
pub mod error;
pub mod prefetch;
#[cfg(loom)]
pub mod shadow;
pub mod stream;
pub mod wide;
pub mod zeroed;
