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
    /// The fabric's thread takes in what it waits for itself.
    ThreadTakesIn,
    /// A landing is believed when its sum is right,
    WholeLanding,
    /// so is a posting,
    WholePosting,
    /// the beginning of an overflow queue,
    WholeQueue,
    /// and a slot of a ring of any source.
    WholeSlot,
    /// A message goes by the landing when all before it are received.
    LandingIsFree,
    /// A part of an annex is written when the message before in it is received.
    PartIsFree,
    /// The memory of a message that is put is its sender's again when the device has read it.
    ReadToTheEnd,
    /// Who takes a posting back asks whether something is being put there,
    AsksBeforeTakingBack,
    /// and who puts has said so before he looked at the posting.
    SaysThatItPuts,
    /// What is received and not acknowledged yet is, before a rank finalizes.
    OwedIsPaid,
    /// A message is announced to who receives from any index.
    Announced,
    /// A slot of a ring of any source is written when its last message is taken.
    SlotIsFree,
    /// A ticket is for one message,
    TicketOnce,
    /// and its sender learns that it is taken.
    TellsWhatIsTaken,
    /// What is said of a life that is over changes nothing.
    Lives,
}

/// Does it hold?
#[cfg(any(loom, miri, not(test)))]
#[inline(always)]
pub const fn holds(_rule: Rule) -> bool {
    true
}

#[cfg(all(test, not(any(loom, miri))))]
pub use super::simulation::holds;
