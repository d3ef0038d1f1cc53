//! What a model needs of global memory: a window of its own, with something registered, and uses of it.

use super::record::{Entry, WINDOW_BYTES, Window};
use super::view::{is_used, using};
use crate::base::atomics::Ordering;
use crate::base::shadow;
use crate::fabric::shm::region::RMA_AT;
use crate::p2p::endpoint::Endpoint;

/// The key under which something is registered.
pub const KEY: u32 = 1;

/// The window of a rank of a model, with something registered under [`KEY`].
pub fn window(ep: &Endpoint) -> &'static Window {
    let mapping = ep.region.map(RMA_AT, WINDOW_BYTES).expect("a window");
    let window: &'static Window = Box::leak(Box::new(Window::new(mapping)));
    window.entry(KEY as usize).life.store(Entry::VALID, Ordering::Release);
    let share = |at: *const u8, bytes| shadow::share(at, bytes);
    share((&raw const *window.header()).cast(), 128);
    share((&raw const *window.usage(0)).cast(), 2 * 64);
    share((&raw const *window.entry(KEY as usize)).cast(), size_of::<Entry>());
    share((&raw const *window.reply(0)).cast(), 16);
    share((&raw const *window.delegated()).cast(), 64);
    window
}

/// Does something with a use of a rank's key written down, as an operation of the process with this window.
pub fn with_use<R>(own: &Window, rank: u32, body: impl FnOnce() -> R) -> R {
    let _use = using(own, rank, KEY).expect("a use");
    body()
}

/// Does the process with this window use a rank's key?
pub fn uses(window: &Window, rank: u32) -> bool {
    is_used(window, |r, n| (r, n) == (rank, KEY))
}
