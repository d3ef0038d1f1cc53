//! Rules of the protocol between nodes that a test leaves out one at a time, to see that it is noticed when one is broken. Elsewhere all hold.

/// A rule, named by what holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A connection is taken down only when all that this side has posted is over,
    OwnIsOver,
    /// and the peer has said the same.
    PeersIsOver,
    /// What is said is said again until it is answered.
    SaidAgain,
    /// A connection in the making whose peer is late gives its place to others that need it.
    LateGivesWay,
    /// A key of an earlier era is not used.
    Era,
    /// Memory that a peer may write stays registered while there is a connection.
    StaysRegistered,
}

/// Does it hold?
#[cfg(any(loom, miri, not(test)))]
#[inline(always)]
pub const fn holds(_rule: Rule) -> bool {
    true
}

#[cfg(all(test, not(any(loom, miri))))]
pub use super::simulation::holds;
