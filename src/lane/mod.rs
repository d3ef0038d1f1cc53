//! The memory that one ordered pair of ranks shares.
