//! `libfmpl_blacs64`: the BLACS with 64-bit integers (ILP64). The same modules as in `lib.rs`, which says what they do.

#![allow(clippy::unnecessary_cast, reason = "the integer of the interface has 32 or 64 bits")]

/// The integer of the interface: 64 bits.
pub(crate) type Int = i64;
/// The same, shared.
pub(crate) type AtomicInt = core::sync::atomic::AtomicI64;

mod broadcast;
mod combine;
mod context;
mod library;
mod matrix;
mod names;
mod order;
mod process;
mod report;
mod scope;
