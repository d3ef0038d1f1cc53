//! The seam between the protocol between nodes and a network: what a process needs of one, and what it may rely on.
//!
//! ```text
//!   above   lanes, messages, global memory                  by Fabric and Link
//!   here    control, link, handshake, turns, rooms …        the protocol between nodes, the same on every network
//!           ── Device, Pair, Registrar, Group ────────────── this file
//!   below   verbs, ofi, tcp, datagram                       what one network's interface wants
//! ```
//! | | is relied on |
//! |---|---|
//! | datagrams | nothing: they may be lost, doubled, late, and overtake anything |
//! | requests of a pair | executed at the other end in the order of their posting, but a write may overtake an earlier read |
//! | a write that has completed | is in the memory of the other end |
//! | a write behind a write | whoever sees the second there sees the first (with `FMPL_VERBS_POLL=cq` that is asked of writes with a number only) |
//! | an aligned word of eight bytes | is seen whole |
//! | a pair that fails | says so by a completion, and flushes what is under way; so does one that is broken off |
//! | two pairs | nothing: they are not ordered with each other |
//!
//! All calls may come from several threads at a time, unless they say otherwise.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bitflags::bitflags;

use super::multicast::{Counts, Group, Name};
use super::region::Domain;
use super::ways::Way;
use crate::base::error::Result;
use crate::base::key::Key;

/// Bytes of a datagram; all have as many.
pub const DATAGRAM: usize = 192;
/// Longest record of a [`Request`].
pub const RECORD_MOST: usize = 256;
/// Bytes of an [`Address`] and an [`End`].
pub const OPAQUE: usize = 40;

/// Where datagrams reach a process; what is in it the network knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(pub [u8; OPAQUE]);

impl Default for Address {
    fn default() -> Address {
        Address([0; OPAQUE])
    }
}

/// One end of a connection, for the other to connect to; what is in it the network knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End(pub [u8; OPAQUE]);

impl Default for End {
    fn default() -> End {
        End([0; OPAQUE])
    }
}

/// Memory of a process that its peer may reach: address and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Virtual address.
    pub addr: u64,
    /// Key.
    pub rkey: u32,
}

impl Place {
    /// The memory so many bytes further on.
    #[inline(always)]
    pub fn further(self, bytes: usize) -> Place {
        Place { addr: self.addr.wrapping_add(bytes as u64), ..self }
    }
}

/// A piece of a bulk transfer: local memory, and its key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Its registration's key.
    pub lkey: u32,
}

/// What becomes of a word of eight bytes; whoever asks gets what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So much is added, wrapping.
    Add(u64),
    /// The second takes its place if it is the first.
    Swap(u64, u64),
}

bitflags! {
    /// What may be done to registered memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: u32 {
        /// This process's requests write there.
        const LOCAL_WRITE = 1;
        /// Peers write there.
        const REMOTE_WRITE = 1 << 1;
        /// Peers read there.
        const REMOTE_READ = 1 << 2;
        /// Peers change words there.
        const REMOTE_ATOMIC = 1 << 3;
        /// The program may unmap it at any moment: a peer that comes too late with a key must not end this process. (A device has its own hold
        /// on the pages.)
        const MAY_GO = 1 << 4;
    }
}

/// Whose changes of a word are atomic with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomics {
    /// Nobody's: the device makes none.
    None,
    /// Those by the same device, not those by processors.
    Device,
    /// All.
    Both,
}

/// What a device can.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest request in bytes.
    pub longest: u32,
    /// Bytes of a write of a long message at most. Each ends with a word from the peer's device; after a loss Soft-RoCE waits for one before
    /// it believes in another loss: until then only its clock helps.
    pub write_most: u32,
    /// Up to so many bytes are copied through registered memory, where registering costs more.
    pub copy_most: u32,
    /// Pieces of a request at most.
    pub pieces: u32,
    /// How it changes words.
    pub atomics: Atomics,
    /// After so many nanoseconds without an answer a connection has failed.
    pub silence_ns: u64,
    /// Memory that is registered can be reached although it is unmapped meanwhile: its pages are held. Otherwise who asks for it is never
    /// answered.
    pub holds_pages: bool,
    /// [`Pair::has_read`] tells of a write before it has completed.
    pub reads_early: bool,
    /// What peers ask of this process is done only while somebody calls [`Device::collect`]: so whoever waits does.
    pub is_driven: bool,
    /// A posting costs more than the memory of annexes between nodes, and the copies out of them.
    pub has_annexes: bool,
    /// It can [append](What::Append).
    pub appends: bool,
}

/// What registers memory with a device.
pub trait Registrar: Send + Sync {
    /// Registers `len` bytes at `at`: the pages stay in memory, and the device reaches them by the keys.
    ///
    /// # Safety
    /// The memory must stay mapped as long as the registration lives, and whoever gets its keys may do there what `access` allows.
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>>;
    /// What registers, for an error: `the RDMA device (ibv_reg_mr)`.
    fn name(&self) -> String;
}

/// Memory that is registered, until this is dropped.
pub trait Registration: Send + Sync {
    /// The key by which this process's requests name it.
    fn lkey(&self) -> u32;
    /// The key by which a peer's requests name it.
    fn rkey(&self) -> u32;
}

/// What has come to a process without being asked for.
#[derive(Clone, Copy, Debug)]
pub enum Arrived<'a> {
    /// A datagram.
    Datagram(&'a [u8; DATAGRAM]),
    /// A number with a write by this pair.
    Number(u32, u32),
    /// A datagram of a wrong length, or that came damaged.
    Damaged,
}

/// What a device tells by itself. Pairs are named by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Completions of this pair are lost.
    Overrun(u32),
    /// This pair has refused a request of the other end.
    Refused(u32),
    /// This pair cannot go on.
    Pair(u32),
    /// Nothing of the device can, and why.
    All(String),
}

/// The port of a network that a process uses.
pub trait Device: Send + Sync {
    /// Device, port and address, for messages.
    fn describe(&self) -> String;
    /// The network, as both ends must have it.
    fn network(&self) -> String;
    /// What it can.
    fn limits(&self) -> Limits;
    /// Where memory is registered for it.
    fn domain(&self) -> &Arc<Domain>;
    /// The job's key is known: what is checked by it can be from now on.
    fn know(&self, _job: &Key) {}
    /// Where datagrams reach this process.
    fn address(&self) -> Address;
    /// Sends a datagram, which may be lost. `false`: the network does not say now where that is; to be tried again.
    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool>;
    /// Why somebody at this address may not have answered, as far as the network can tell; it may take a moment.
    fn why_silent(&self, _of: &Address) -> Option<String> {
        None
    }
    /// One end of a connection, for so many requests under way.
    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>>;
    /// Can it have pairs of both ways, by datagrams and connected? Otherwise all are of the one that it has.
    fn has_ways(&self) -> bool {
        false
    }
    /// The same by this way, where it has both.
    fn pair_by(&self, _way: Way, depth: u32) -> Result<Arc<dyn Pair>> {
        self.pair(depth)
    }
    /// Hands over what has come; one thread at a time. An error: nothing comes any more.
    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()>;
    /// A part of that, of which all comes in turn: what a turn of a wait does, so that what peers ask for goes on. `true`: bytes have come, and
    /// perhaps what is waited for; where that is not known, `false`. Where there is one peer only, and nothing has come, it may look again, so
    /// often in all.
    fn drive(&self, _looks: u32, with: &mut dyn FnMut(Arrived<'_>)) -> Result<bool> {
        self.collect(with).map(|()| false)
    }
    /// The next to come ends a [sleep](Device::sleep). What came before is to be [collected](Device::collect) afterwards, once more.
    fn arm(&self) -> Result<()>;
    /// Sleeps until something comes, somebody [wakes](Device::wake) it, or the time is over; for a moment too long or too short. `true`:
    /// the device has [told](Device::next_error) something. One thread at a time.
    fn sleep(&self, at_most: Option<Duration>) -> bool;
    /// Ends the sleep, or the next one if nobody sleeps.
    fn wake(&self);
    /// The next error that the device has told.
    fn next_error(&self) -> Option<DeviceError>;
    /// Joins a multicast group. `Unsupported`: it cannot be joined, and why.
    fn join(&self, name: Name, counts: &Arc<Counts>) -> Result<Box<dyn Group>>;
    /// Bytes of registered memory for what comes.
    fn bytes(&self) -> usize;
}

/// A request to the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its number, one more than that of the request before.
    pub id: u64,
    /// See there.
    pub what: What,
    /// This side's part.
    pub data: Data<'a>,
    /// The other end's memory.
    pub to: Place,
    /// It completes in any case, otherwise only if it fails.
    pub signaled: bool,
    /// Nobody waits for it at this moment: where each request takes its time it may go with the next one, or when this side waits, or within
    /// a fraction of a millisecond.
    pub later: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The data is written there.
    Write,
    /// The same, and then the other end gets this number.
    WriteWithNumber(u32),
    /// What is there is read into the data.
    Read,
    /// A word there is changed, and what it was is written to the data.
    Change(Change),
    /// Where a word there is `expected`, it is one more, and what the second of two pieces has, [`RECORD_MOST`] bytes at most, is written `at`
    /// bytes behind it. What it was is written to the first piece. For who takes a number, and fills the place that has it. The second piece is
    /// the caller's again when it is posted.
    Append {
        /// What the word is to be.
        expected: u64,
        /// Bytes from the word on.
        at: u32,
    },
}

/// This side's part of a request.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Bytes to be written, [`RECORD_MOST`] at most, which are the caller's again when the request is posted.
    Record(&'a [u8]),
    /// Registered memory.
    Pieces(&'a [Piece]),
}

/// What has become of a request, and of all before it.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The request's number.
    pub id: u64,
    /// See there.
    pub status: Status,
    /// The same as the network says it, to be [explained](Pair::explain).
    pub code: i32,
}

/// See [`Completion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has succeeded.
    Done,
    /// The pair is in the error state.
    Flushed,
    /// The other end does not answer.
    Silent,
    /// The device of this side cannot reach the network.
    Unlinked,
    /// The other end has refused it.
    Refused,
    /// Something else.
    Other,
}

/// One end of a reliable connection; it is gone when it is dropped.
pub trait Pair: Send + Sync {
    /// Its number, by which it is named where something comes.
    fn number(&self) -> u32;
    /// What the other end connects to.
    fn end(&self) -> End;
    /// Connects to the other end; afterwards both directions go, as soon as that is connected too.
    fn connect(&self, to: &End) -> Result<()>;
    /// Posts a request; one thread at a time. `false`: it was not, since there is no room now, or no way to the other end yet; to be tried
    /// again.
    ///
    /// # Safety
    /// Pieces stay registered, and unread or unchanged, until the request has completed. No more requests are under way than the pair was
    /// made for.
    unsafe fn post(&self, request: &Request<'_>) -> Result<bool>;
    /// Hands over the completions that have come; one thread at a time. An error: none come any more.
    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()>;
    /// The same behind [`Device::collect`], which has taken what has come: for who looks at many.
    fn completions(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        self.poll(done)
    }
    /// Has this side's part of the request been read, and of all before it, so that it may change? Otherwise it has when it has completed.
    fn has_read(&self, _id: u64) -> bool {
        false
    }
    /// Puts it into the error state: what is under way is flushed, and the other end can reach nothing by it any more.
    fn break_off(&self) -> Result<()>;
    /// What a [`Completion::code`] means.
    fn explain(&self, code: i32) -> String;
    /// What was lost on its way and had to be sent again so far, where that is known.
    fn repairs(&self) -> u64 {
        0
    }
    /// Can it be used, as far as is known here, after a time in which it was not?
    fn is_whole(&self) -> bool {
        true
    }
    /// Bytes of registered memory of its own.
    fn bytes(&self) -> usize;
    /// Makes room for so many completions only, so that some may be lost: to see what comes of it.
    fn shorten_queue(&self, entries: u32) -> Result<()>;
}
