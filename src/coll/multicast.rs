//! Broadcast among the nodes' first members by a multicast group, made reliable by messages.
//!
//! The root sends each packet once, to all; what has come is acknowledged, and what has not is sent again, by messages along a binomial
//! tree with the root at its top. Packets go in windows of [`WINDOW`]:
//!
//! ```text
//!   root                                                     member
//!   window k by multicast      ═════════════════════▶        its memory has places for two windows: copies out what comes
//!   acknowledgements of k - 1  ◀── up the tree
//!   all of window k has left
//!   "window k is sent"         ── down the tree ────▶        tells its children; waits for stragglers a moment
//!                              ◀── these are missing         a bit for each packet; its parent sends them, run by run, into its buffer
//!                                                            the same for its children
//!                              ◀── up the tree               the window is here and below: a word of zeros
//! ```
//! So window k is under way while the members copy and acknowledge window k - 1. A member never waits for a packet: it waits for
//! its parent's message, which is as reliable as any, is ended by a death, and lets it sleep. So a network that brings no packet at all costs time
//! and nothing else, and a call ends by an error when, and only when, the messages do.
//!
//! A member has places for two windows because no more are ever under way: a window is sent when all have acknowledged the last but one. Between
//! calls that holds as long as the root is the same. Another root first gathers from all that they have come (and with
//! that have taken out of their places whatever was in them).
//!
//! **The group** is made at the first broadcast that wants it. All members try to join; then the first sends some packets, and all must
//! have got most of them. If one cannot, nobody uses it, and the broadcasts of this communicator go by the other ways.

use core::future::poll_fn;
use core::task::Poll;
use std::sync::atomic::Ordering;

use super::between::Span;
use super::messages::Party;
use super::team::Team;
use super::tree::branches;
use crate::base::bytes::Room;
use crate::base::clock::now_ns;
use crate::base::config::PretendedNodes;
use crate::base::error::{Code, Result, error};
use crate::base::log::{Level, tell};
use crate::base::named::Named;
use crate::base::topology::Branches;
use crate::fabric::network::cache::Kept;
use crate::fabric::network::multicast::{Group, Header, WINDOW};

/// What a node's first member needs.
pub(super) struct Means {
    group: Box<dyn Group>,
    /// Bytes in a packet; the same with all.
    size: usize,
    /// The last call.
    operation: u64,
    /// Its root, among the nodes' first members.
    root: usize,
}

/// Packets by which a group is tried, and how many of them must come.
const TRIED: usize = 16;
const MUST_COME: u32 = 8;
/// How often, and how long a member looks for them each time.
const TRIES: usize = 3;
const TRY_NS: u64 = 20_000_000;
/// From the last packet to the belief that no more come, once the window is known to be sent.
const STRAGGLERS_NS: u64 = 500_000;
/// From the last packet until the message that the window is sent is waited for without looking for packets.
const BUSY_NS: u64 = 100_000;

/// Sends a word down the tree: what `word` says at the top.
async fn down(p: &Party<'_>, branch: &Branches, mut word: u64) -> Result<u64> {
    if let Some(parent) = branch.parent {
        word = p.receive_word(parent).await?;
    }
    for child in branch.children.iter().copied() {
        p.send_word(child, word).await?;
    }
    Ok(word)
}

/// The smallest of all words, at the top.
async fn up(p: &Party<'_>, branch: &Branches, word: u64) -> Result<u64> {
    let mut least = word;
    for child in branch.children.iter().copied() {
        least = least.min(p.receive_word(child).await?);
    }
    if let Some(parent) = branch.parent {
        p.send_word(parent, least).await?;
    }
    Ok(least)
}

/// Makes the group if this was not tried yet. All members of the communicator call it together. Can it be used?
pub(super) async fn is_possible(team: &Team, span: &Span) -> Result<bool> {
    if let Some(known) = team.state.multicast.get() {
        return Ok(known);
    }
    let pretended = team.ep.config.coll_nodes != PretendedNodes::Off;
    let means = match Party::of(team, span.first_ranks()) {
        Some(p) if !pretended => make(&p, team).await?,
        _ => None,
    };
    let mut yes = [means.is_some() as u8];
    if span.here.len() > 1 && !pretended {
        super::bcast::bcast(team, Room::of(&mut yes), 0).await?;
    }
    team.state.means.set(means.map(Box::new));
    team.state.multicast.set(Some(yes[0] == 1));
    Ok(yes[0] == 1)
}

/// The nodes' first members try to make the group. `None`: one of them could not, or packets do not come.
async fn make(p: &Party<'_>, team: &Team) -> Result<Option<Means>> {
    let branch = &branches(p, 0);
    let joined = match team.ep.fabric_here() {
        Some(fabric) => fabric.join_group(team.name_of_group()?).map_err(|e| e.detail().to_owned()),
        None => Err("this process is not on the fabric between nodes".to_owned()),
    };
    let size = joined.as_ref().map_or(0, |group| group.payload() as u64);
    let size = up(p, branch, size).await?;
    let size = down(p, branch, size).await?;
    let mut group = match joined {
        Ok(group) if size > 0 => group,
        other => {
            let why = other.err().unwrap_or_else(|| "another node cannot".to_owned());
            say(team, &why);
            return Ok(None);
        }
    };
    let mut came = 0u32;
    for turn in 0..TRIES {
        if p.me == 0 {
            group.send_zeros(TRIED, size as usize);
            left(&mut *group).await;
        }
        down(p, branch, turn as u64).await?;
        let since = now_ns();
        if p.me != 0 {
            poll_fn(|_| {
                let over = now_ns() - since > TRY_NS;
                group.take(&mut |header, _| came += (header.operation == 0) as u32);
                if came as usize >= TRIED || over { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        let enough = p.me == 0 || came >= MUST_COME;
        let enough = up(p, branch, enough as u64).await?;
        if down(p, branch, enough).await? == 1 {
            return Ok(Some(Means { group, size: size as usize, operation: 0, root: 0 }));
        }
    }
    say(team, &format!("packets to {} do not come", group.address()));
    Ok(None)
}

fn say(team: &Team, why: &str) {
    tell(Level::Info, || format!("broadcasts of communicator {} do not go by multicast: {why}", Named(team.comm)));
}

/// Waits until what was sent to a group has left.
async fn left(group: &mut dyn Group) {
    poll_fn(|_| if group.has_left() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// The bytes of `root` to the nodes' first members. [`is_possible`] has said yes.
pub(super) async fn bcast(p: &Party<'_>, team: &Team, data: Room<'_>, root: usize) -> Result<()> {
    let Some(mut means) = team.state.means.take() else {
        let text = "its multicast group has gone with a call that was given up";
        return Err(error!(Code::System, "rank {}: communicator {}: {text}", team.ep.rank, Named(team.comm)));
    };
    let done = bcast_by(p, team, &mut means, data, root).await;
    team.state.means.set(Some(means));
    done
}

async fn bcast_by(p: &Party<'_>, team: &Team, means: &mut Means, data: Room<'_>, root: usize) -> Result<()> {
    let branch = &branches(p, root);
    means.operation += 1;
    if core::mem::replace(&mut means.root, root) != root {
        // What is in its places is of earlier calls.
        means.group.take(&mut |_, _| {});
        up(p, branch, 0).await?;
    }
    let (parent, children) = (branch.parent, branch.children.clone());
    let (region, last_ns) = (None, now_ns());
    let mut call = Call { p, team, means, region, data, parent, children, window: 0, came: [0; 2], last_ns };
    if call.parent.is_none() { call.root().await } else { call.member().await }
}

/// A broadcast under way.
struct Call<'a> {
    p: &'a Party<'a>,
    team: &'a Team,
    means: &'a mut Means,
    region: Option<Kept>,
    data: Room<'a>,
    parent: Option<usize>,
    children: Vec<usize>,
    /// The window that this member is at, and what has come of it and of the next one: a bit for each packet.
    window: usize,
    came: [u64; 2],
    /// When a packet came last.
    last_ns: u64,
}

const _: () = assert!(WINDOW == 64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // Not while the device reads the program's memory.
        self.means.group.until_left();
    }
}

impl<'a> Call<'a> {
    fn packets(&self) -> usize {
        self.data.len().div_ceil(self.means.size)
    }
    fn windows(&self) -> usize {
        self.packets().div_ceil(WINDOW)
    }
    /// All packets of a window, a bit for each.
    fn whole(&self, window: usize) -> u64 {
        let n = self.packets().saturating_sub(window * WINDOW).min(WINDOW);
        if n == WINDOW { u64::MAX } else { (1 << n) - 1 }
    }
    /// Where some packets of a window lie.
    fn bytes(&self, window: usize, first: usize, packets: usize) -> Room<'a> {
        let at = (window * WINDOW + first) * self.means.size;
        self.data.part(at, (packets * self.means.size).min(self.data.len() - at))
    }

    async fn root(&mut self) -> Result<()> {
        self.register();
        let windows = self.windows();
        for window in 0..windows {
            if let Some(region) = &self.region {
                let (operation, first, size) = (self.means.operation, (window * WINDOW) as u32, self.means.size);
                let bytes = *self.bytes(window, 0, WINDOW);
                // SAFETY: the buffer is the call's; it is not left before all has left.
                unsafe { self.means.group.send(operation, first, bytes, size, region) };
            }
            if window > 0 {
                self.collect(window - 1).await?;
            }
            left(&mut *self.means.group).await;
            self.tell(window).await?;
        }
        self.collect(windows - 1).await
    }

    async fn member(&mut self) -> Result<()> {
        for window in 0..self.windows() {
            self.window = window;
            self.told().await?;
            self.tell(window).await?;
            self.stragglers().await;
            self.ask_for_missing().await?;
            self.collect(window).await?;
            self.acknowledge(0).await?;
            self.came = [self.came[1], 0];
        }
        Ok(())
    }

    /// The root's memory, registered. If it cannot be, all goes by messages.
    fn register(&mut self) {
        let ep = self.team.ep;
        let Some(fabric) = ep.fabric_here() else { return };
        let (ptr, len) = (self.data.as_mut_ptr(), self.data.len());
        // SAFETY: the buffer is the call's until it is complete, and so is the registration.
        self.region = unsafe { fabric.cache().get(ptr, len, false, || ep.heap.block_of(ptr, len)) }.ok();
    }

    /// Takes what has come of this window and the next one to its place in the buffer. Has something come within moments?
    fn look(&mut self) -> bool {
        let (data, window, operation, size) = (self.data, self.window, self.means.operation, self.means.size);
        let came = &mut self.came;
        let n = self.means.group.take(&mut |header: &Header, bytes| {
            let number = header.number as usize;
            let (which, bit) = ((number / WINDOW).wrapping_sub(window), 1u64 << (number % WINDOW));
            let at = number * size;
            if header.operation != operation
                || which > 1
                || at >= data.len()
                || bytes.len() != size.min(data.len() - at)
            {
                return;
            }
            if came[which] & bit == 0 {
                came[which] |= bit;
                data.part(at, bytes.len()).copy_from(bytes);
            }
        });
        if n > 0 {
            self.last_ns = now_ns();
        }
        n > 0 || now_ns() - self.last_ns < BUSY_NS
    }

    /// Waits for the parent's word that the window is sent, and takes packets meanwhile.
    async fn told(&mut self) -> Result<()> {
        let (p, Some(parent)) = (self.p, self.parent) else { return Ok(()) };
        self.last_ns = now_ns();
        p.receive_word_while(parent, || self.look()).await.map(drop)
    }

    /// Tells the children that the window is sent.
    async fn tell(&mut self, window: usize) -> Result<()> {
        for child in &self.children {
            self.p.send_word(*child, window as u64).await?;
        }
        Ok(())
    }

    /// Packets that are known to have left and have not come may still be on their way.
    async fn stragglers(&mut self) {
        self.last_ns = now_ns();
        let whole = self.whole(self.window);
        poll_fn(|_| {
            // The time first: a process that was not running meanwhile looks once more.
            let now = now_ns();
            self.look();
            let over = self.came[0] == whole || now.saturating_sub(self.last_ns) > STRAGGLERS_NS;
            if over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Has the parent send what has not come of the window.
    async fn ask_for_missing(&mut self) -> Result<()> {
        let missing = self.whole(self.window) & !self.came[0];
        let Some(parent) = self.parent.filter(|_| missing != 0) else { return Ok(()) };
        self.acknowledge(missing).await?;
        for (first, n) in runs(missing) {
            self.p.receive(parent, self.bytes(self.window, first, n)).await?;
        }
        self.came[0] |= missing;
        Ok(())
    }

    /// Tells the parent what is missing here of the window; nothing: it is here, and at all below.
    async fn acknowledge(&self, missing: u64) -> Result<()> {
        let Some(parent) = self.parent else { return Ok(()) };
        self.p.send_word(parent, missing).await
    }

    /// Waits until all children have acknowledged a window, and sends them what they miss.
    async fn collect(&mut self, window: usize) -> Result<()> {
        for k in 0..self.children.len() {
            let (p, child) = (self.p, self.children[k]);
            loop {
                let is_root = self.parent.is_none();
                let missing = p.receive_word_while(child, || !is_root && self.look()).await? & self.whole(window);
                if missing == 0 {
                    break;
                }
                self.means.group.counts().resent.fetch_add(missing.count_ones() as u64, Ordering::Relaxed);
                for (first, n) in runs(missing) {
                    p.send(child, *self.bytes(window, first, n)).await?;
                }
            }
        }
        Ok(())
    }
}

/// Runs of set bits: the first, and how many.
fn runs(mut bits: u64) -> impl Iterator<Item = (usize, usize)> {
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let first = bits.trailing_zeros();
        let n = (!(bits >> first)).trailing_zeros();
        bits &= if first + n >= 64 { 0 } else { u64::MAX << (first + n) };
        Some((first as usize, n as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_packets() {
        let all = |bits| runs(bits).collect::<Vec<_>>();
        assert_eq!(all(0), []);
        assert_eq!(all(u64::MAX), [(0, 64)]);
        assert_eq!(all(0b1101_0000), [(4, 1), (6, 2)]);
        assert_eq!(all(1 << 63 | 1), [(0, 1), (63, 1)]);
        assert_eq!(all(u64::MAX << 3), [(3, 61)]);
    }
}
