//! What every layer stands on: errors, settings, atomics, the clock, keys.

pub mod atomics;
pub mod by_rank;
pub mod bytes;
pub mod clock;
pub mod config;
pub mod copying;
pub mod error;
pub mod foreign;
pub mod kernel;
pub mod key;
pub mod layout;
pub mod leaked;
pub mod lock;
pub mod log;
pub mod ownership;
pub mod plain;
pub mod prefetch;
pub mod processor;
pub mod published;
pub mod record;
pub mod rules;
pub mod run;
#[cfg(loom)]
pub mod shadow;
#[cfg(all(test, not(any(loom, miri))))]
pub mod simulation;
pub mod symbols;
pub mod system;
pub mod table;
pub mod thread;
pub mod trace;
pub mod tuning;
pub mod unused;
pub mod unwinding;
pub mod values;
pub mod zeroed;
