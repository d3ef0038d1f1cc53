//! Receives of messages from other nodes are posted: where a message may be put, and what becomes of that when none comes.

use super::*;
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::remote::HINT_KEYED;

/// Receive buffers of fewer bytes are not registered, where registering costs more than a copy: their messages come by landing or through
/// the spool.
const REGISTER_FROM: usize = 16 << 10;

impl Receiver {
    /// Posts at the peer, unless the message comes without that most likely. Whoever receives one of the library's own comes back to it.
    pub(in crate::p2p) fn post_remote(&self, remote: &Remote) {
        if self.slot < SYSTEM_INDICES && remote.awaits_annex(self.slot, self.cap) {
            return remote.is_unposted(self.slot);
        }
        self.post_there(remote);
    }

    /// The receive lasts: the peer is told of it, if it was not.
    pub(in crate::p2p) fn goes_on(&self, remote: &Remote) {
        if remote.is_to_be_posted(self.slot, self.seq) {
            remote.is_posted(self.slot);
            self.post_there(remote);
        }
    }

    /// Posts at the peer, with the buffer registered if it is worth it.
    fn post_there(&self, remote: &Remote) {
        let cap = self.posted_cap();
        let span =
            span(self.data, 0, cap).filter(|_| cap >= REGISTER_FROM.min(remote.link.limits().copy_most as usize));
        let region = span.and_then(|run| registered(remote, run, true));
        let key = region.as_ref().map(|r| r.rkey());
        if let Some(mine) = remote.slot(self.slot) {
            *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = region;
        }
        if !remote.link.is_up() {
            // The message may come meanwhile: the last one of a peer that has left then, and makes no connection any more.
            remote.link.until_up(|| self.look().is_none());
            if self.look().is_some() {
                return;
            }
        }
        self.say_posted(remote, key);
        if remote.is_pending(self.slot, self.seq) {
            remote.call(Call::Posted);
        }
    }

    /// The receive ends without its message, and its buffer is the caller's again. A peer that is late could still put something there when it
    /// answers: so it is lost, if it may.
    pub(in crate::p2p) fn let_go(&self) {
        let Some((remote, mine)) = self.lane.remote().and_then(|remote| Some((remote, remote.slot(self.slot)?))) else {
            return;
        };
        let mut buffer = mine.buffer.lock().unwrap_or_else(|e| e.into_inner());
        if buffer.is_some() && !remote.link.has_ended() {
            let why =
                remote.link.lateness().unwrap_or("is cut off: a receive that it may write to has ended").to_owned();
            remote.link.fail(Reason::Silent, why);
        }
        *buffer = None;
    }

    /// Bytes that may be put into the buffer: none, where the message is wanted as a loan.
    fn posted_cap(&self) -> usize {
        if self.wants_loan { 0 } else { self.cap }
    }

    /// Tells the peer of the posting; `key`: of its buffer.
    pub(super) fn say_posted(&self, remote: &Remote, key: Option<u32>) {
        let (addr, kind, shape) = posting_of(&self.data);
        let hint = if key.is_some() { HINT_KEYED } else { 0 };
        let meta = Posting::meta(kind, hint, self.lane.epoch) | (key.unwrap_or(0) as u64) << 32;
        let _ =
            remote.post(self.slot, self.seq, &RemotePosting { addr: addr as u64, cap: self.posted_cap(), meta, shape });
    }
}

/// Where a receive's message goes, as it is posted.
fn posting_of(data: &Layout) -> (*mut u8, PostingKind, [u64; 3]) {
    match data.form() {
        Form::Contiguous(run) => (run.ptr(), PostingKind::Contiguous, [0; 3]),
        Form::Block { ptr, block } => {
            (ptr, PostingKind::Block, [block.run as u64, block.count as u64, block.stride as u64])
        }
        Form::List { iov, n } => (iov.cast_mut().cast(), PostingKind::List, [0, n as u64, 0]),
    }
}
