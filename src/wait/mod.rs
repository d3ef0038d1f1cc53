//! Waiting: spin, yield, sleep.
