//! An operation of the queue: what is to be done, where, and how far it is.

use super::*;

/// Where the old value of a word goes.
#[derive(Clone, Copy, Debug)]
pub enum Into {
    /// To an address of this rank.
    Address(GlobalAddress),
    /// To eight bytes of this process, which stay until the operation is over.
    Word(Run),
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum What {
    Copy {
        dst: GlobalAddress,
        src: GlobalAddress,
        len: usize,
    },
    Fetch {
        fetch: Fetch,
        into: Into,
    },
    /// This rank of the world is to discard what it keeps of this one's table.
    Discard {
        world: u32,
    },
}

/// Which part of a copy comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Leg {
    /// From source to destination.
    Whole,
    /// From the source to this rank's own memory.
    In,
    /// From there to the destination.
    Out,
}

/// A remote command under way.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sent {
    pub token: u64,
    pub rank: u32,
    pub world: u32,
    /// Bytes of a copy.
    pub bytes: u32,
    pub reply: u16,
    /// By the device.
    pub remote: bool,
}

/// What an operation has with a rank of another node.
#[derive(Default)]
pub(in super::super) struct Away {
    /// Requests of the device.
    pub flight: Option<Flight>,
    /// Bytes of a copy that these move.
    pub bytes: usize,
    /// The ticket of a command that is not sent yet, and whose ring it is for.
    pub ticket: Option<(u32, u64)>,
    /// Of an atomic operation: the place where what was there comes to, and what had to be there.
    pub place: Option<u16>,
    pub guess: Option<u64>,
}

/// An operation that is not over.
pub(in super::super) struct Op {
    pub number: u64,
    /// It starts when this one and all before it are over.
    pub after: u64,
    pub what: What,
    /// Bytes copied.
    pub done: usize,
    pub sent: Option<Sent>,
    pub away: Option<Box<Away>>,
    /// The rank whose ring was full when it was tried last; [`NOBODY`].
    pub full_at: u32,
    pub leg: Leg,
    pub started: bool,
    pub over: bool,
}
