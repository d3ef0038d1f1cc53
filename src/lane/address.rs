//! What a message is addressed by: (communicator, peer, index), and the numbers that mean none or any.

/// `FMPL_COMM_WORLD`
pub const COMM_WORLD: i32 = 0;
/// `FMPL_COMM_NULL`
pub const COMM_NULL: i32 = -1;
/// `FMPL_TAG_ANY`: any index of one source.
pub const TAG_ANY: i32 = -1;
/// `FMPL_PROC_NULL`: no peer; nothing happens.
pub const PROC_NULL: i32 = -2;
