//! What the two sides of a lane say to each other when its communicator is freed, see `freed` of the fabric's link.

use std::sync::atomic::Ordering;

use super::front::{FREED_AT, page_of};
use crate::fabric::network::link::Link;

/// This process has freed the communicator of the lane of this number. What has become of others is looked at as well.
pub fn is_freed(link: &Link, number: u64) {
    link.lane_is_freed(number);
    for page in link.freed_lanes() {
        // Relaxed: nothing is read that was written before it.
        link.follow_freed(&page, FREED_AT, page_of(&page).freed.load(Ordering::Relaxed));
    }
}
