//! Moving operations on: what is done with one when its turn has come, with the reply to its command, with requests of the device that are over.

use super::Rma;
use super::address::GlobalAddress;
use super::command::{Command, Order};
use super::device::{Flight, Next, Remote};
use super::direct::{Done, Fetch};
use super::queue::{Failure, Into, Leg, NOBODY, Queue, Sent, What};
use super::view::{BOUNCE, RECORDS, View, using};
use crate::base::atomics::Ordering;
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::Change;

/// Bytes of the memory through which copies go where the system copies for nobody.
const BOUNCE_BYTES: usize = 256 << 10;
/// Most bytes of one remote command, and of requests to the device: others are done in between.
const PIECE: usize = 4 << 20;

/// How far a step came.
enum Step {
    Over,
    /// It waits for a reply.
    Sent,
    /// It waits for the device, or for a reply from another node.
    Away,
    /// It needs room that only time brings.
    Full,
}

impl Rma {
    /// Moves the queue on, unless another thread is about to. `true`: something has changed.
    pub(super) fn drive(&'static self) -> bool {
        let Ok(mut queue) = self.queue.try_lock() else { return false };
        self.move_on(&mut queue)
    }

    /// Is there something that only time brings on?
    pub(super) fn must_try_again(&self) -> bool {
        self.queue.try_lock().is_ok_and(|queue| queue.again)
    }

    /// Is there something that moves on, now that replies have come?
    pub(super) fn has_news(&self) -> bool {
        let Ok(queue) = self.queue.try_lock() else { return false };
        !queue.ops.is_empty()
            && (self.own.header().replied.load(Ordering::Acquire) != queue.seen || self.ep.deaths() != queue.deaths)
    }

    pub(super) fn move_on(&'static self, queue: &mut Queue) -> bool {
        if queue.ops.is_empty() {
            if !queue.unused.is_empty() {
                queue.again = self.use_tickets_up(queue);
            }
            return false;
        }
        // SYNC POINT: pairs with the addition in `Window::answer`.
        let replied = self.own.header().replied.load(Ordering::Acquire);
        let deaths = self.ep.deaths();
        if replied == queue.seen && deaths == queue.deaths && !queue.again {
            return false;
        }
        (queue.seen, queue.deaths) = (replied, deaths);
        let mut changed = false;
        loop {
            queue.again = !queue.unused.is_empty() && self.use_tickets_up(queue);
            let mut over = false;
            // One that is full now is not asked again in this round; which others are, few ranks are remembered.
            let (mut full, mut full_count) = ([NOBODY; 8], 0);
            for n in 0..queue.ops.len() {
                let first = queue.ops[0].number;
                let op = &queue.ops[n];
                if op.over || !op.started && op.after >= first {
                    continue;
                }
                if op.full_at != NOBODY && full.contains(&op.full_at) {
                    continue;
                }
                match self.step(queue, n) {
                    Ok(Step::Sent) => {}
                    Ok(Step::Away) => queue.again = true,
                    Ok(Step::Full) => {
                        queue.again = true;
                        if queue.ops[n].full_at != NOBODY {
                            full[full_count % full.len()] = queue.ops[n].full_at;
                            full_count += 1;
                        }
                    }
                    Ok(Step::Over) => {
                        queue.ops[n].over = true;
                        over = true;
                        let ticket = queue.ops[n].away.as_mut().and_then(|away| away.ticket.take());
                        queue.unused.extend(ticket);
                    }
                    Err(error) => {
                        self.fail(queue, n, error);
                        over = true;
                    }
                }
            }
            changed |= over;
            if !over {
                break;
            }
            self.moved_on(queue);
        }
        changed
    }

    /// Takes out what is over, as far as nothing before it is not.
    fn moved_on(&self, queue: &mut Queue) {
        while queue.ops.front().is_some_and(|op| op.over) {
            queue.ops.pop_front();
        }
        let oldest = queue.ops.front().map_or(u64::MAX, |op| op.number);
        // SYNC POINT: pairs with the acquire in `is_over`: what the operations did is there.
        self.oldest.store(oldest, Ordering::Release);
    }

    /// An operation has failed, and so have those that were to follow it.
    #[cold]
    fn fail(&self, queue: &mut Queue, n: usize, error: Error) {
        let number = queue.ops[n].number;
        queue.ops[n].over = true;
        if let Some(sent) = queue.ops[n].sent.take() {
            // A late reply has another token than whoever uses the place next.
            queue.free_replies.push(sent.reply);
        }
        if let Some(away) = queue.ops[n].away.take() {
            queue.free_replies.extend(away.place);
            queue.unused.extend(away.ticket);
        }
        if queue.bounced == Some(number) {
            queue.bounced = None;
        }
        let mut failed = vec![(number, error)];
        for op in queue.ops.iter_mut().filter(|op| !op.started && !op.over && op.after >= number) {
            op.over = true;
            let text =
                format!("rank {}: not started: operation {number}, which it was to follow, has failed", self.rank());
            failed.push((op.number, Error::new(failed[0].1.code(), text)));
        }
        self.ep.refused.fetch_add(failed.len() as u64, Ordering::Relaxed);
        failed.into_iter().for_each(|(number, error)| queue.note(Failure { number, refused: false, error }));
        self.failed.store(queue.failures.len() as u32, Ordering::Release);
    }

    /// Does with an operation what can be done now.
    fn step(&'static self, queue: &mut Queue, n: usize) -> Result<Step> {
        queue.ops[n].started = true;
        queue.ops[n].full_at = NOBODY;
        if let Some(sent) = queue.ops[n].sent {
            let Some((word, value)) = self.answer(&sent)? else {
                return Ok(if sent.remote { Step::Away } else { Step::Sent });
            };
            queue.ops[n].sent = None;
            queue.free_replies.push(sent.reply);
            match Code::from_number((word & 0xff) as i32) {
                None => {}
                Some(Code::Unsupported)
                    if queue.ops[n].leg == Leg::Whole && matches!(queue.ops[n].what, What::Copy { .. }) =>
                {
                    // The owner cannot reach the other end either.
                    queue.ops[n].leg = Leg::In;
                    return self.step_copy(queue, n);
                }
                Some(code) => return Err(self.refused_by(sent.rank, code, &queue.ops[n].what)),
            }
            match queue.ops[n].what {
                What::Fetch { fetch, into } => {
                    self.deliver(&fetch, into, value)?;
                    return Ok(Step::Over);
                }
                What::Copy { .. } => advance(queue, n, sent.bytes as usize),
                What::Discard { .. } => return Ok(Step::Over),
            }
        }
        let mut changed = false;
        if let Some(away) = &mut queue.ops[n].away
            && let Some(flight) = &away.flight
        {
            if !flight.is_over()? {
                return Ok(Step::Away);
            }
            away.flight = None;
            let bytes = away.bytes;
            match queue.ops[n].what {
                What::Copy { .. } => advance(queue, n, bytes),
                _ => changed = true,
            }
        }
        match queue.ops[n].what {
            What::Discard { world } => self.send(queue, n, self.number_of(world), Order::Discard, 0),
            What::Copy { .. } => self.step_copy(queue, n),
            What::Fetch { fetch, into } => {
                if !changed && let Some(old) = self.fetch_at_once(&fetch)? {
                    self.deliver(&fetch, into, old)?;
                    return Ok(Step::Over);
                }
                let usage = self.use_of(fetch.at, fetch.op.name(fetch.wide))?;
                let owner = self.split.rank(fetch.at).unwrap_or(0);
                let view = self.view(owner, &usage)?;
                if view.by_device() {
                    return self.step_change(queue, n, view, &fetch, into, changed);
                }
                drop(usage);
                self.send(queue, n, owner, Order::Fetch(fetch), 0)
            }
        }
    }

    /// The reply to a command, if it is there: its word and value.
    fn answer(&'static self, sent: &Sent) -> Result<Option<(u64, u64)>> {
        let there = match &self.device {
            Some(device) if sent.remote => device.replied(sent.reply as usize),
            _ => Some(self.own.answered(sent.reply as usize)),
        };
        if let Some((word, _)) = there
            && word >> 8 == sent.token
        {
            return Ok(there);
        }
        if self.ep.is_dead(sent.world) {
            return Err(self.peer_error(sent.rank, "has died", "remote command"));
        }
        if sent.remote {
            let usage = using(&self.own, sent.rank, RECORDS)?;
            let view = self.view(sent.rank, &usage)?;
            if let Some(why) = view.gone() {
                return Err(self.peer_error(sent.rank, why, "remote command"));
            }
            view.remote.iter().for_each(Remote::tend);
        }
        Ok(None)
    }

    /// An atomic operation by the device; `changed`: its request is over.
    fn step_change(
        &self,
        queue: &mut Queue,
        n: usize,
        view: &View,
        fetch: &Fetch,
        into: Into,
        changed: bool,
    ) -> Result<Step> {
        let what = fetch.op.name(fetch.wide);
        let (device, remote) = self.remote(view)?;
        let mut reach = self.reach(view, fetch.at, fetch.bytes(), true, what)?;
        if !reach.place.addr.is_multiple_of(fetch.bytes() as u64) {
            return Err(self.misaligned(fetch.at, what));
        }
        let high = reach.place.addr % 8 != 0;
        reach.place.addr &= !7;
        let place = match queue.ops[n].away.get_or_insert_default().place.or_else(|| queue.free_replies.pop()) {
            Some(place) => place,
            None => return Ok(Step::Full),
        };
        let away = queue.ops[n].away.get_or_insert_default();
        away.place = Some(place);
        match fetch.by_device(changed.then(|| device.changed(place as usize)), away.guess, high) {
            Next::Over(old) => {
                queue.ops[n].away = None;
                queue.free_replies.push(place);
                self.deliver(fetch, into, old)?;
                Ok(Step::Over)
            }
            Next::Try(change) => {
                away.guess = if let Change::Swap(expected, _) = change { Some(expected) } else { None };
                away.flight = Some(device.start_change(remote, &reach, change, place as usize)?);
                Ok(Step::Away)
            }
        }
    }

    /// Starts a part of a copy between this rank's memory and another node's.
    fn start_copy(
        &self,
        queue: &mut Queue,
        n: usize,
        push: bool,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
    ) -> Result<Step> {
        let bytes = bytes.min(PIECE);
        let flight = self.copy_between(push, to, from, bytes)?;
        let away = queue.ops[n].away.get_or_insert_default();
        (away.flight, away.bytes) = (Some(flight), bytes);
        Ok(Step::Away)
    }

    /// Starts a copy to another node (`push`) or from there.
    pub(super) fn copy_between(
        &self,
        push: bool,
        to: GlobalAddress,
        from: GlobalAddress,
        len: usize,
    ) -> Result<Flight> {
        let (here, there, what) = if push { (from, to, "copy, to") } else { (to, from, "copy, from") };
        let usage = self.use_of(there, what)?;
        let view = self.view(self.split.rank(there).unwrap_or(0), &usage)?;
        let (device, remote) = self.remote(view)?;
        let reach = self.reach(view, there, len, push, what)?;
        let own = self.use_of(here, "copy")?;
        let at = self.resolve(here, len, &own, "copy")?.addr as *mut u8;
        let n = self.parts(here).map_or(0, |p| p.1);
        device.copy(remote, push, n, at, len, reach)
    }

    #[cold]
    fn refused_by(&self, rank: u32, code: Code, what: &What) -> Error {
        let (name, ends) = match what {
            What::Copy { dst, src, .. } => ("copy", [*dst, *src]),
            What::Fetch { fetch, .. } => (fetch.op.name(fetch.wide), [fetch.at; 2]),
            What::Discard { .. } => ("discard", [GlobalAddress::NULL; 2]),
        };
        let other = ends.into_iter().filter_map(|ga| self.split.rank(ga)).find(|r| *r != rank);
        if code == Code::Peer
            && let Some(other) = other
        {
            return self.peer_error(other, &format!("has died, as rank {rank} says, which was asked to do it"), name);
        }
        let [a, b] = ends;
        let why = match code {
            Code::Argument => "nothing is registered there any more, or the memory is not there",
            _ => code.text(),
        };
        let text = format!(
            "rank {}: {name} of {a}, {b}: rank {rank}, which was asked to do it, could not do it: {why}",
            self.rank()
        );
        Error::new(code, text)
    }

    fn step_copy(&'static self, queue: &mut Queue, n: usize) -> Result<Step> {
        let number = queue.ops[n].number;
        let What::Copy { dst, src, len } = queue.ops[n].what else { return Ok(Step::Over) };
        loop {
            let (done, leg) = (queue.ops[n].done, queue.ops[n].leg);
            if done == len && len != 0 {
                return Ok(Step::Over);
            }
            let through = || -> Result<GlobalAddress> { queue.bounce.map_or_else(|| self.make_bounce(), Ok) };
            let (to, from, bytes) = match leg {
                Leg::Whole => (dst + done, src + done, len - done),
                Leg::In | Leg::Out => {
                    if queue.bounced.is_some_and(|user| user != number) {
                        return Ok(Step::Full);
                    }
                    let between = through()?;
                    (queue.bounce, queue.bounced) = (Some(between), Some(number));
                    let bytes = (len - done).min(BOUNCE_BYTES);
                    if leg == Leg::In { (between, src + done, bytes) } else { (dst + done, between, bytes) }
                }
            };
            match self.copy_at_once::<false>(to, from, bytes)? {
                Done::Yes => {
                    if len == 0 {
                        return Ok(Step::Over);
                    }
                    advance(queue, n, bytes);
                }
                Done::Device(push) => return self.start_copy(queue, n, push, to, from, bytes),
                Done::Ask(owner) => {
                    if leg == Leg::Whole && !self.worth_asking(to, from, owner)? {
                        queue.ops[n].leg = Leg::In;
                        continue;
                    }
                    let bytes = bytes.min(PIECE);
                    return self.send(queue, n, owner, Order::Copy { dst: to, src: from, len: bytes as u64 }, bytes);
                }
            }
        }
    }

    /// Will the owner of one end of a copy reach the other?
    fn worth_asking(&self, dst: GlobalAddress, src: GlobalAddress, owner: u32) -> Result<bool> {
        let other = if self.split.rank(src) == Some(owner) { dst } else { src };
        if self.split.rank(other) == Some(owner) {
            return Ok(true);
        }
        let usage = self.use_of(other, "copy")?;
        let (_, n, _) = self.parts(other).ok_or_else(|| self.wrong_address(other, 0, "copy"))?;
        let view = self.view(self.split.rank(other).unwrap_or(0), &usage)?;
        let Some(local) = view.local() else { return Ok(true) };
        let shared = local.window.entry(n as usize).life.load(Ordering::Acquire) & super::record::Entry::SHARED != 0;
        // With private memory at both ends one of the two needs the kernel's copies, as this process does not, or not for long.
        Ok(shared || self.split.rank(other) != Some(self.rank()) && self.ep.config.cma)
    }

    /// The memory between two legs.
    fn make_bounce(&self) -> Result<GlobalAddress> {
        let memory = self.ep.heap.alloc(BOUNCE_BYTES)?;
        self.fill(BOUNCE, memory, BOUNCE_BYTES, 0, true)?;
        Ok(self.split.address(self.rank(), 1, 0, 0))
    }

    fn send(&'static self, queue: &mut Queue, n: usize, owner: u32, order: Order, bytes: usize) -> Result<Step> {
        let usage = using(&self.own, owner, RECORDS)?;
        let view = self.view(owner, &usage)?;
        if let Some(why) = view.gone() {
            return Err(self.peer_error(owner, why, "remote command"));
        }
        let Some(reply) = queue.free_replies.pop() else { return Ok(Step::Full) };
        let (token, remote) = (queue.token + 1, view.local().is_none());
        let command = Command { order, token, reply: u32::from(reply), from: self.rank() };
        let sent = match view.local() {
            Some(local) => Ok(self.send_command(view.world, local, &command)),
            None => self.send_remote(queue, n, view, &command),
        };
        match sent {
            Ok(true) => {
                queue.token = token;
                let bytes = bytes as u32;
                queue.ops[n].sent = Some(Sent { token, rank: owner, world: view.world, bytes, reply, remote });
                Ok(if remote { Step::Away } else { Step::Sent })
            }
            Ok(false) => {
                queue.free_replies.push(reply);
                queue.ops[n].full_at = owner;
                Ok(Step::Full)
            }
            Err(error) => {
                queue.free_replies.push(reply);
                Err(error)
            }
        }
    }

    /// Puts a command into the ring of a rank of another node; a ticket that there is no room for yet is kept.
    fn send_remote(&self, queue: &mut Queue, n: usize, view: &View, command: &Command) -> Result<bool> {
        let (device, remote) = self.remote(view)?;
        let stakes = &self.ep.any_source.remote_stakes;
        let away = queue.ops[n].away.get_or_insert_default();
        let (_, ticket) = match away.ticket {
            Some(ticket) => ticket,
            None => *away.ticket.insert((view.rank, device.draw(stakes, remote)?)),
        };
        let put = device.put(remote, ticket, command.encode());
        if !matches!(put, Ok(false)) {
            away.ticket = None;
            device.give_up(stakes, remote, ticket);
        }
        put
    }

    /// Puts empty commands under tickets that are not needed any more. `true`: there is no room yet for all of them.
    #[cold]
    fn use_tickets_up(&self, queue: &mut Queue) -> bool {
        queue.unused.retain(|(owner, ticket)| {
            let Ok(usage) = using(&self.own, *owner, RECORDS) else { return true };
            let Ok(view) = self.view(*owner, &usage) else { return false };
            let Ok((device, remote)) = self.remote(view) else { return false };
            if remote.gone().is_none() && matches!(device.put(remote, *ticket, Command::NOTHING), Ok(false)) {
                return true;
            }
            device.give_up(&self.ep.any_source.remote_stakes, remote, *ticket);
            false
        });
        !queue.unused.is_empty()
    }
}

/// A part of a copy is there: what comes next.
fn advance(queue: &mut Queue, n: usize, bytes: usize) {
    let op = &mut queue.ops[n];
    match op.leg {
        Leg::Whole => op.done += bytes,
        Leg::In => op.leg = Leg::Out,
        Leg::Out => {
            op.done += bytes;
            op.leg = Leg::In;
            let What::Copy { len, .. } = op.what else { return };
            if op.done == len {
                queue.bounced = None;
                queue.again = true;
            }
        }
    }
}
