//! Bytes that devices move between a layout of this process and the peer's memory: out of registered memory, or through a bounce buffer.

use crate::base::error::Error;
use crate::base::layout::{Block as Shaped, Cursor, Form, Layout, Run};
use crate::fabric::network::bounce::BOUNCE_BYTES;
use crate::fabric::network::cache::Kept;
use crate::fabric::network::link::{Last, Link, PIECES};
use crate::fabric::network::{Piece, Place};
use crate::lane::remote::Remote;
use crate::p2p::endpoint::endpoint;

/// Runs of a posted block that are shorter go through the spool.
pub(super) const RUN_FROM: usize = 1024;
/// A block that reaches over more memory than so many times its bytes is not registered.
const SPREAD_MOST: usize = 4;

/// A failure of the connection: what stands in the error.
type Broken = Error;

/// Registers memory for the length of a transfer, or finds it registered. `None`: it cannot be, and bounce buffers serve.
pub(in crate::p2p) fn registered(remote: &Remote, run: Run, writable: bool) -> Option<Kept> {
    let (at, len) = (run.ptr(), run.len());
    let block = || endpoint().ok()?.heap.block_of(at, len);
    // SAFETY: the memory of a message stays until that is over; the heap tells the cache before it gives pages away.
    unsafe { remote.fabric().cache().get(at, len, writable, block) }.ok()
}

/// Memory of the peer: a run of bytes, or runs at equal distances.
#[derive(Clone, Copy)]
pub(in crate::p2p) struct PeerMemory {
    place: Place,
    /// `run` 0: one run without end.
    pub shape: Shaped,
}

impl PeerMemory {
    pub(in crate::p2p) fn run(addr: u64, rkey: u32) -> PeerMemory {
        PeerMemory { place: Place { addr, rkey }, shape: Shaped { run: 0, count: 1, stride: 0 } }
    }
    /// Where byte `at` of it lies, and how many follow it there.
    fn at(&self, at: usize) -> (Place, usize) {
        let Place { addr, rkey } = self.place;
        let Shaped { run, stride, .. } = self.shape;
        if run == 0 {
            return (Place { addr: addr.wrapping_add(at as u64), rkey }, usize::MAX);
        }
        // The peer has said where: what lies elsewhere there its device refuses.
        let begin = addr.wrapping_add_signed(((at / run) as i64).wrapping_mul(stride as i64));
        (Place { addr: begin.wrapping_add((at % run) as u64), rkey }, run - at % run)
    }
}

/// The memory from the first to the last byte of a layout, of which `n` bytes from offset `at` on are moved, if that is worth being
/// registered in one piece.
pub(super) fn span(layout: Layout, at: usize, n: usize) -> Option<Run> {
    match layout.form() {
        Form::Contiguous(run) => Some(run.part(at, n)),
        Form::Block { ptr, block } if block.run >= RUN_FROM && block.count > 0 => {
            let reach = (block.count as isize - 1) * block.stride;
            let len = reach.unsigned_abs() + block.run;
            // SAFETY: no more than registered: of what lies between its runs nothing is used.
            let all = unsafe { Run::new(ptr.wrapping_offset(reach.min(0)), len) };
            (len / SPREAD_MOST <= block.run * block.count).then_some(all)
        }
        _ => None,
    }
}

/// Moves `n` bytes between a layout of this process, from offset `at` on, and a run of the peer's memory, and waits for the end.
pub(in crate::p2p) fn transfer(
    remote: &Remote,
    push: bool,
    local: Layout,
    at: usize,
    n: usize,
    there: PeerMemory,
) -> Result<(), Broken> {
    start(remote, push, local, at, n, there, Last::Yes)?.finish()
}

/// Fetches words of the peer's memory.
pub(in crate::p2p) fn fetch_words<const N: usize>(remote: &Remote, there: PeerMemory) -> Result<[u64; N], Broken> {
    let mut words = [0u64; N];
    fetch_into(remote, there, &mut words).map(|()| words)
}

/// The same, as many as there is room for.
pub(in crate::p2p) fn fetch_into(remote: &Remote, there: PeerMemory, words: &mut [u64]) -> Result<(), Broken> {
    Run::with_room(words, |to| transfer(remote, false, to.into(), 0, to.len(), there))
}

/// A transfer whose last requests may be under way.
pub(super) struct Started<'a> {
    link: &'a Link,
    ticket: u64,
    region: Option<Kept>,
}

impl Started<'_> {
    pub fn finish(self) -> Result<(), Broken> {
        self.link.wait(self.ticket)
    }
    /// Only until this side's memory may change again, which is written to the peer.
    pub fn finish_reading(mut self) -> Result<(), Broken> {
        self.link.wait_read(self.ticket)?;
        self.ticket = 0;
        Ok(())
    }
    /// What is still under way, for somebody else to wait until it is read: its ticket and its memory. `None`: nothing is.
    pub fn leave(&mut self) -> Option<(u64, Kept)> {
        if self.link.is_read(self.ticket) {
            self.ticket = 0;
            return None;
        }
        let region = self.region.take()?;
        Some((core::mem::take(&mut self.ticket), region))
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        // Whatever comes of it: the memory is the device's until then.
        let _ = self.link.wait(self.ticket);
    }
}

/// As [`transfer`], but the last requests may be under way when it returns. `last`: of these the last one.
pub(super) fn start<'a>(
    remote: &'a Remote,
    push: bool,
    local: Layout,
    at: usize,
    n: usize,
    there: PeerMemory,
    last: Last,
) -> Result<Started<'a>, Broken> {
    let link = &*remote.link;
    if n > link.limits().copy_most as usize
        && let Some(whole) = span(local, at, n)
        && let Some(region) = registered(remote, whole, !push)
    {
        let here = match local.form() {
            Form::Block { ptr, block } => {
                PeerMemory { place: Place { addr: ptr as u64, rkey: region.lkey() }, shape: block }
            }
            _ => PeerMemory::run((whole.ptr() as u64).wrapping_sub(at as u64), region.lkey()),
        };
        let request_most = if push { link.write_most() } else { link.longest() };
        let ticket = link.post_all(n, |done| {
            link.until_room()?;
            // One run there, of one or several here.
            let (place, run) = there.at(done);
            let most = (n - done).min(run).min(request_most);
            let mut pieces = [Piece { addr: 0, len: 0, lkey: region.lkey() }; PIECES as usize];
            let (mut bytes, mut count) = (0, 0);
            while bytes < most && count < link.pieces().min(pieces.len()) {
                let (from, run) = here.at(at + done + bytes);
                let len = (most - bytes).min(run);
                (pieces[count].addr, pieces[count].len) = (from.addr, len as u32);
                (bytes, count) = (bytes + len, count + 1);
            }
            let last = if done + bytes == n { last } else { Last::No };
            // SAFETY: registered until the last ticket is over.
            Ok((bytes, unsafe { link.bulk(push, last, &pieces[..count], place)? }))
        })?;
        return Ok(Started { link, ticket, region: Some(region) });
    }
    by_bounce(remote, push, local, at, n, there)
}

/// The same through a bounce buffer in two halves, so that copying and moving overlap.
fn by_bounce<'a>(
    remote: &'a Remote,
    push: bool,
    local: Layout,
    at: usize,
    n: usize,
    there: PeerMemory,
) -> Result<Started<'a>, Broken> {
    let link = &*remote.link;
    remote.fabric().count_copied(n);
    const HALF: usize = BOUNCE_BYTES / 2;
    let bounce = remote.fabric().bounce()?;
    let half = |k: usize, len: usize| bounce.run().part((k & 1) * HALF, len.min(HALF));
    // Posts what is or comes to be in half `k`, a request for each run of the peer's memory.
    let post = |k: usize, len: usize| -> Result<u64, Broken> {
        link.post_all(len, |done| {
            let (place, run) = there.at(k * HALF + done);
            let bytes = (len - done).min(run).min(if push { link.write_most() } else { HALF }).min(link.longest());
            Ok((bytes, bounce.post(link, (push, done + bytes == len), (k & 1) * HALF + done, bytes, place)?))
        })
    };
    let mut tickets = [0u64; 2];
    let mut cursor = Cursor::new(local, at);
    let parts = n.div_ceil(HALF);
    let bytes = |k: usize| HALF.min(n - k * HALF);
    let outcome = (|| {
        if push {
            for k in 0..parts {
                link.wait(tickets[k & 1])?;
                cursor.gather(half(k, bytes(k)));
                tickets[k & 1] = post(k, bytes(k))?;
            }
            return Ok(());
        }
        for k in 0..parts + 1 {
            if k < parts {
                // What came there before last has been copied out.
                tickets[k & 1] = post(k, bytes(k))?;
            }
            if k > 0 {
                link.wait(tickets[(k - 1) & 1])?;
                cursor.scatter(half(k - 1, bytes(k - 1)));
            }
        }
        Ok(())
    })();
    // The buffer goes back to the others below: nothing may be under way in it.
    for ticket in tickets {
        let _ = link.wait(ticket);
    }
    outcome.map(|()| Started { link, ticket: 0, region: None })
}
