//! A message that is not sent at once, and is moved on step by step.

use super::*;
use crate::base::error::error;

/// Up to this many bytes a long message is copied into the spool at once, which costs less than a call of the kernel on either side.
const COPIED_AT_ONCE: usize = if cfg!(loom) { 0 } else { 32 << 10 };

/// How far a message has come.
pub(in crate::p2p::any_source) enum Stage {
    /// It waits for room in the ring, or in the spool.
    Waits,
    /// Under this ticket, synchronous: waits until it is taken.
    Unconfirmed(u64),
    /// Its offer is under way.
    Offered(Offered),
    /// The same between nodes.
    RemoteOffered(Payload),
}

/// A message that is not sent at once.
pub(in crate::p2p::any_source) struct Message {
    pub(super) out: &'static Outgoing,
    pub(super) data: Run,
    pub(super) timeout: i32,
    pub(super) deadline_ns: u64,
    /// It has come for a slot before.
    tried: bool,
    pub stage: Stage,
    /// A long message's block, ready to be published.
    pub(super) payload: Option<(Kind, BlockRef)>,
    /// The same between nodes.
    remote_payload: Option<Payload>,
    /// It is handed over: the words that name its memory.
    loan: Option<[u64; 2]>,
}

impl Message {
    pub fn new(ep: &Endpoint, out: &'static Outgoing, data: Run) -> Message {
        let timeout = ep.spool.budget(out.comm).timeout_ms();
        let deadline_ns = match timeout {
            t if t < 0 => u64::MAX,
            t => now_ns() + t as u64 * 1_000_000,
        };
        Message::made(out, data, timeout, deadline_ns)
    }

    fn made(out: &'static Outgoing, data: Run, timeout: i32, deadline_ns: u64) -> Message {
        let (stage, payload, remote_payload) = (Stage::Waits, None, None);
        Message { out, data, timeout, deadline_ns, tried: false, stage, payload, remote_payload, loan: None }
    }

    /// It is handed over, under these words: sent when it is in its slot, in synchronous mode too.
    pub fn hand_over(&mut self, words: [u64; 2]) {
        self.loan = Some(words);
        self.timeout = if self.timeout < 0 { 1 } else { self.timeout };
    }

    /// A message of the library's own: short, waits for room whatever the mode is, and is sent when it is in its slot.
    pub fn told(out: &'static Outgoing, data: Run) -> Message {
        Message::made(out, data, 1, 0)
    }

    pub(super) fn is_long(&self) -> bool {
        self.data.len() > AREA_BYTES && self.loan.is_none()
    }

    /// Moves it on; `true`: it is sent, in the sense of the mode.
    pub fn step(&mut self, ep: &'static Endpoint) -> Result<bool> {
        let local = match &self.out.way {
            Way::Local(local) => local,
            Way::Remote(road) => return self.step_remote(ep, road),
        };
        match &mut self.stage {
            Stage::RemoteOffered(_) => Ok(false),
            Stage::Waits => {
                let Some(ticket) = self.try_place(ep)? else { return Ok(false) };
                match self.payload.take() {
                    Some((Kind::Offered, block)) => self.stage = Stage::Offered(Offered::new(block)),
                    _ if self.timeout < 0 => self.stage = Stage::Unconfirmed(ticket),
                    _ => return Ok(true),
                }
                Ok(false)
            }
            Stage::Unconfirmed(ticket) => Ok(local.ring.is_taken(*ticket)),
            Stage::Offered(offered) => {
                let late = self.timeout >= 0 && now_ns() >= self.deadline_ns;
                offered.serve(ep, self.out, local, self.data, late)
            }
        }
    }

    /// The same between nodes.
    fn step_remote(&mut self, ep: &'static Endpoint, road: &RemoteRoad) -> Result<bool> {
        match &mut self.stage {
            Stage::Waits => {
                if self.is_long() && self.remote_payload.is_none() {
                    self.remote_payload = road.pack(ep, self.out.comm, self.data, self.timeout)?;
                }
                let ticket = match &self.remote_payload {
                    Some(payload) => road.place_away(ep, payload)?,
                    None if self.is_long() => None,
                    None => road.place(ep, self.data)?,
                };
                let Some(ticket) = ticket else {
                    return if self.timeout == 0 { Err(self.no_room(ep)) } else { Ok(false) };
                };
                traced!(self.out.note("any source, far", self.data.len(), ticket));
                match self.remote_payload.take() {
                    Some(payload) if payload.is_offered() => self.stage = Stage::RemoteOffered(payload),
                    _ if self.timeout < 0 => self.stage = Stage::Unconfirmed(ticket),
                    _ => return Ok(true),
                }
                Ok(false)
            }
            Stage::Unconfirmed(ticket) => road.is_taken(*ticket),
            Stage::RemoteOffered(payload) => {
                let (done, late) = (payload.is_done(ep), self.timeout >= 0 && now_ns() >= self.deadline_ns);
                if !(done || late) {
                    return Ok(false);
                }
                let Stage::RemoteOffered(payload) = std::mem::replace(&mut self.stage, Stage::Waits) else {
                    return Ok(false);
                };
                if done {
                    payload.give_back(ep);
                    return Ok(true);
                }
                match road.withdraw(ep, self.out.comm, self.data, payload) {
                    Ok(()) => Ok(true),
                    Err(payload) => {
                        self.stage = Stage::RemoteOffered(payload);
                        Ok(false)
                    }
                }
            }
            Stage::Offered(_) => Ok(false),
        }
    }

    fn try_place(&mut self, ep: &Endpoint) -> Result<Option<u64>> {
        self.tried = true;
        let ticket = if let Some([len, at]) = self.loan {
            self.out.place_away(ep, Kind::Loan, Away { len, at, generation: 0 })
        } else if self.is_long() {
            if self.payload.is_none() {
                self.payload = self.pack(ep);
            }
            match self.payload {
                Some((kind, block)) => {
                    let away = Away { len: self.data.len() as u64, at: block.at, generation: block.generation };
                    self.out.place_away(ep, kind, away)
                }
                None => None,
            }
        } else {
            self.out.place(ep, self.data)
        };
        if ticket.is_none() && self.timeout == 0 {
            let error = self.no_room(ep);
            self.drop_goods(ep);
            return Err(error);
        }
        Ok(ticket)
    }

    /// Prepares a long message's block: a copy of it in the spool, or an offer. `None`: no room for either now.
    fn pack(&self, ep: &Endpoint) -> Option<(Kind, BlockRef)> {
        let Way::Local(local) = &self.out.way else { return None };
        let reachable = local.peer.as_ref().is_none_or(|p| p.cma());
        // Nobody else takes what this process sends to itself while this thread waits.
        let at_once = self.timeout == 0 || local.peer.is_none() || self.data.len() <= COPIED_AT_ONCE || !reachable;
        if self.timeout >= 0
            && at_once
            && let Some(block) = copy_into_spool(ep, self.out.comm, self.data)
        {
            return Some((Kind::Spooled, block));
        }
        if self.timeout == 0 {
            return None;
        }
        let to_itself = local.peer.is_none();
        crate::p2p::any_source::offer::make(ep, self.out.comm, self.data, to_itself, reachable)
            .map(|block| (Kind::Offered, block))
    }

    /// Gives back what was prepared and not published, or published for a receiver that looks at nothing any more. What another node may be reading
    /// stays registered.
    pub fn drop_goods(&mut self, ep: &Endpoint) {
        if let Some(payload) = self.remote_payload.take() {
            payload.give_back(ep);
        }
        if matches!(self.stage, Stage::RemoteOffered(_))
            && let Stage::RemoteOffered(payload) = std::mem::replace(&mut self.stage, Stage::Waits)
        {
            payload.abandon(ep);
        }
        if let Some((_, block)) = self.payload.take() {
            ep.any_source.take_back(block);
            ep.spool.give_back(block);
        }
        if self.out.is_left_alone()
            && let Stage::Offered(offered) = &mut self.stage
        {
            offered.take_back(ep);
            self.stage = Stage::Waits;
        }
    }

    #[cold]
    fn no_room(&self, ep: &Endpoint) -> Error {
        let budget = ep.spool.budget(self.out.comm);
        let what = if self.is_long() && self.payload.is_none() && self.remote_payload.is_none() {
            format!("{} of {} bytes of the spool are taken", budget.used(), budget.limit())
        } else {
            format!("all {} places at the receiver are taken", self.out.limit())
        };
        error!(
            Code::SpoolFull,
            "rank {}: any-source send of {} bytes to (rank {}, index {}): {what}; in buffered mode it does not wait",
            ep.rank,
            self.data.len(),
            self.out.dst,
            self.out.index
        )
    }

    #[cold]
    pub(super) fn hopeless(&self, ep: &Endpoint, when: &str) -> Error {
        error!(
            Code::Argument,
            "rank {}: any-source send to itself on index {} {when}: no other thread could receive, so it would wait for ever",
            ep.rank,
            self.out.index
        )
    }

    /// Has it come for room, and is there little?
    pub(super) fn is_early(&self) -> bool {
        match &self.out.way {
            Way::Local(local) => self.tried && matches!(self.stage, Stage::Waits) && !local.ring.has_much_room(),
            Way::Remote(_) => false,
        }
    }

    pub fn scene(&self, ep: &'static Endpoint) -> Waiting<'_> {
        Waiting { ep, message: self }
    }
}

/// A copy of a message in the spool.
pub(in crate::p2p::any_source) fn copy_into_spool(ep: &Endpoint, comm: i32, data: Run) -> Option<BlockRef> {
    let len = data.len();
    if len > ep.spool.budget(comm).limit() {
        return None;
    }
    let block = ep.spool.take(comm, len, len)?;
    data.copy_to(ep.spool.run(block.at + BLOCK_HEADER as u64, len));
    Some(block)
}
