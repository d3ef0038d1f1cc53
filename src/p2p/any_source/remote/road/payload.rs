//! What is kept of a long message until its receiver has it.

use super::*;

/// What is published of a long message in place of its bytes, ready or out already.
pub struct Payload {
    pub(super) block: BlockRef,
    pub(super) away: Away,
    /// The program's memory, registered: the message is offered.
    pub(super) region: Option<Kept>,
}

impl Payload {
    /// Is the message where the program has it?
    pub fn is_offered(&self) -> bool {
        self.region.is_some()
    }
    /// They were not published, or are done.
    pub fn give_back(self, ep: &Endpoint) {
        ep.spool.give_back(self.block);
    }
    /// Gives an offered message up, of whose sending an error has been told. The receiver may be reading it.
    pub fn abandon(self, ep: &Endpoint) {
        ep.any_source.add_moved(Moved { payload: self, copy: None });
    }
    /// Has the receiver the message?
    pub fn is_done(&self, ep: &Endpoint) -> bool {
        !ep.spool.is_held(self.block) || ep.spool.is_done(self.block)
    }
}

/// A message whose offer was moved into the spool: what must stay until the receiver has it.
pub struct Moved {
    pub(super) payload: Payload,
    /// None: a message that was given up, whose memory stays registered.
    pub(super) copy: Option<BlockRef>,
}

impl Moved {
    /// Gives back what is not needed any more. `true`: it still is.
    pub fn stays(&self, ep: &Endpoint) -> bool {
        let stays = !self.payload.is_done(ep);
        if !stays {
            self.copy.map(|copy| ep.spool.give_back(copy));
            ep.spool.give_back(self.payload.block);
        }
        stays
    }
}
