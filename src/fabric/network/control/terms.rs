//! How a process takes part: who it is, within which bounds, and what the fabric asks of those above it.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::Result;
use crate::fabric::network::cache::Bounds;
use crate::fabric::network::hello::Card;
use crate::fabric::network::link::Link;
use crate::fabric::network::switching::Choice;
use crate::fabric::shm::region::{Mapping, Region};

/// What is called with a link and a number that came with a write.
pub type OnNumber = Box<dyn Fn(&Arc<Link>, u32) + Send + Sync>;

/// What closes the lanes with a peer, so that nobody finds them any more: how many they are. `None`: somebody uses one, or something is under way
/// there.
pub type Close = Box<dyn Fn(&Link) -> Option<usize> + Send + Sync>;

/// What is done when a peer has made its part of a lane, of this number.
pub type Opened = Box<dyn Fn(&Arc<Link>, u64) + Send + Sync>;

/// What the fabric asks of those above it.
pub struct Hooks {
    /// A number came with a write.
    pub on_number: OnNumber,
    /// Something may have come that a pending send of this process waits for; asked on a network that is driven.
    pub moves_on: Box<dyn Fn() + Send + Sync>,
    /// The connection has come about, or the peer has left: whoever sleeps may want to look.
    pub came_up: Box<dyn Fn(&Link) + Send + Sync>,
    /// A peer has made its part of a lane, of this number.
    pub opened: Opened,
    /// The connection is about to be given up: what is owed over it is sent.
    pub settle: Box<dyn Fn(&Link) + Send + Sync>,
    /// Is the peer still to be told something by a lane?
    pub owes: Box<dyn Fn(&Link) -> bool + Send + Sync>,
    /// Is there a message of the peer for a lane that is yet to be made here?
    pub has_unmade: Box<dyn Fn(&Link) -> bool + Send + Sync>,
    /// Closes the lanes with a peer that is to be forgotten.
    pub close: Close,
    /// Opens them again.
    pub open: Box<dyn Fn(&Link) + Send + Sync>,
    /// Frees the lanes that are closed: the peer is forgotten.
    pub free: Box<dyn Fn(&Link) + Send + Sync>,
    /// Where a process of this node answers datagrams.
    pub card_of: Box<dyn Fn(u32) -> Result<Card> + Send + Sync>,
    /// The tables of the node's connections, contexts and rings; `None`: not yet.
    pub tables: Box<dyn Fn() -> Option<Arc<Mapping>> + Send + Sync>,
}

/// Who takes part.
pub struct Who {
    /// The rank.
    pub rank: u32,
    /// Ranks of the job.
    pub size: u32,
    /// The layout of what it shares.
    pub version: u32,
    /// Indices that it has.
    pub indices: Box<dyn Fn() -> u32 + Send + Sync>,
    /// Numbers that it says to peers are higher than this, if it may have been there before.
    pub before: u64,
}

impl Who {
    /// The process that has this region.
    pub fn of(region: Arc<Region>) -> Who {
        let (rank, size, version) = (region.rank(), region.size(), region.version());
        Who { rank, size, version, indices: Box::new(move || region.indices()), before: 0 }
    }
}

/// How a process takes part.
pub struct Terms {
    /// User memory stays registered from one message to the next, so much of it; `None`: none does.
    pub keep: Option<Bounds>,
    /// See [`Fabric::strict`](crate::fabric::network::control::Fabric::strict).
    pub strict: bool,
    /// Connections, contexts and rings of all processes of a node; 0 connections: they take no places of their own.
    pub places: [usize; 3],
    /// Which way peers take, where the device has both.
    pub ways: Choice,
    /// How long a peer may take to answer when a connection is made.
    pub patience: Duration,
    /// After how long a first contact says that it waits; zero: never.
    pub stall: Duration,
    /// Does this process's node come before that of this rank?
    pub comes_before: Box<dyn Fn(u32) -> bool + Send + Sync>,
}
