//! Sizes and places that both sides of a lane rely on.

use super::*;
use core::mem::{align_of, offset_of, size_of};
use static_assertions::const_assert;
const_assert!(size_of::<Half>() == 32 && align_of::<Half>() == 32);
const_assert!(offset_of!(Half, land) == 0 && offset_of!(Half, rx) == 8 && offset_of!(Half, tx) == 12);
const_assert!(offset_of!(Half, data) == 16);
const_assert!(size_of::<Hot>() == 64 && align_of::<Hot>() == 64);
const_assert!(size_of::<Posting>() == 32 && offset_of!(Posting, meta) == 16 && offset_of!(Posting, seq) == 24);
const_assert!(size_of::<Shape>() == 32);
const_assert!(size_of::<Announcement>() == 32 && offset_of!(Announcement, land) == 8);
const_assert!(size_of::<Head>() == 16 && offset_of!(Head, mark) == 8);
const_assert!(size_of::<Block>() == BLOCK_HEADER && offset_of!(Block, taken) == 64);
const_assert!(offset_of!(Block, first) == 0 && offset_of!(Block, owner) == 8 && offset_of!(Block, gener) == 16);
const_assert!(size_of::<Transfer>() == 256 && offset_of!(Transfer, kind) == 64);
const_assert!(offset_of!(Transfer, done_s) == 128 && offset_of!(Transfer, done_r) == 192);
const_assert!(size_of::<RingFlag>() == 64);
