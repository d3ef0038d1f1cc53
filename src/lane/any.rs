//! What a lane keeps of its receives of any index; `p2p::any_index` says how they go on.

use crate::base::layout::Layout;

/// The receives of any index on one lane.
#[derive(Default)]
pub struct AnyState {
    /// The flag is raised, and what was sent before is marked.
    pub subscribed: bool,
    /// Slots whose mark was taken and that may have more.
    pub marked: Vec<u32>,
    /// Slots whose mark was taken while an indexed receive was pending there: it may leave something over.
    pub held: Vec<u32>,
    /// The pending request, if any.
    pub request: Option<AnyRequest>,
    /// Between nodes: how many have been posted.
    pub number: u32,
}

/// A pending receive of any index.
pub struct AnyRequest {
    /// Its memory.
    pub layout: Layout,
    /// How many bytes that has room for.
    pub cap: usize,
    /// The slot that it has found and is receiving on.
    pub bound: Option<usize>,
}
