//! Operations, their handles, and their order.
//!
//! An operation that may start and that this process can do by itself is done within the call. Everything else waits in the **queue**: what
//! must come after something that is not over, and what the owner of the memory has to do, as a remote command. The queue has
//! [`QUEUE`] places; who finds it full waits, and meanwhile moves it on.
//!
//! ```text
//!   numbers   … 41   42   43   44   45   46   47        handles are numbers, in the order of the calls
//!   queue            42        44   45                  what is not over; all others are
//!                    ↑ oldest: complete(43) waits for 42, an operation ordered after 43 starts when 42 is over
//! ```
//! So "this operation and everything issued before it" is one comparison with the oldest number in the queue. An operation that was done
//! within its call while the queue was empty has the number of the one before it, which is over as well. The queue is moved on by
//! whoever calls the library, and by the helper thread ([`super::helper`]) when nobody does.

use std::collections::VecDeque;

use super::address::GlobalAddress;
use super::command::{Command, Order};
use super::direct::{Done, Fetch};
use super::record::REPLIES;
use super::view::{BOUNCE, RECORDS, using};
use super::{ALL, CONT, Rma};
use crate::base::atomics::{AtomicU32, Ordering, fence};
use crate::base::error::{Code, Error, Result};
use crate::wait::{Board, Operation, Scene, Waiter, Waits};

/// Operations that are not over.
const QUEUE: usize = 1024;
/// Failures of operations of which nobody has been told.
const FAILURES: usize = 64;
/// Bytes of the memory through which copies go where the system copies for nobody.
const BOUNCE_BYTES: usize = 256 << 10;
/// Most bytes of one remote command: its owner does others in between.
const PIECE: usize = 4 << 20;

/// Where the old value of a word goes.
#[derive(Clone, Copy, Debug)]
pub enum Into {
    /// To an address of this rank.
    Address(GlobalAddress),
    /// To eight bytes of this process, which stay until the operation is over.
    Word(*mut u64),
}

// SAFETY: the word is the waiting caller's, who takes no other notice of it.
unsafe impl Send for Into {}

/// An operation.
#[derive(Clone, Copy, Debug)]
enum What {
    Copy { dst: GlobalAddress, src: GlobalAddress, len: usize },
    Fetch { fetch: Fetch, into: Into },
}

/// Which part of a copy comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    /// From source to destination.
    Whole,
    /// From the source to this rank's own memory.
    In,
    /// From there to the destination.
    Out,
}

/// A remote command under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    rank: u32,
    world: u32,
    reply: u16,
    token: u64,
    bytes: usize,
}

/// An operation that is not over.
#[derive(Debug)]
struct Op {
    number: u64,
    /// It starts when this one and all before it are over.
    after: u64,
    what: What,
    started: bool,
    over: bool,
    /// Bytes copied.
    done: usize,
    leg: Leg,
    sent: Option<Sent>,
    /// The rank whose ring was full when it was tried last.
    full_at: Option<u32>,
}

/// What is not over.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ops: VecDeque<Op>,
    free_replies: Vec<u16>,
    token: u64,
    /// Replies that were there at the last look.
    seen: u64,
    /// Deaths that were known then.
    deaths: u32,
    /// Something could not be sent for want of room.
    again: bool,
    failures: VecDeque<(u64, Error)>,
    /// The memory between two legs, once there is any.
    bounce: Option<GlobalAddress>,
    /// The operation that has it.
    bounced: Option<u64>,
}

impl Queue {
    pub fn new() -> Queue {
        Queue { free_replies: (0..REPLIES as u16).rev().collect(), ..Queue::default() }
    }
}

/// How far a step came.
enum Step {
    Over,
    /// It waits for a reply.
    Sent,
    /// It needs room that only time brings.
    Full,
}

impl Rma {
    /// Copies `len` bytes between any two ranks after `order`; its handle. `OWN`: another thread may end a registration of this rank
    /// meanwhile.
    #[inline]
    pub fn copy<const OWN: bool>(
        &'static self,
        dst: GlobalAddress,
        src: GlobalAddress,
        len: usize,
        order: i64,
    ) -> Result<i64> {
        let after = self.after(order)?;
        if self.is_over(after)
            && let Done::Yes = self.copy_at_once::<OWN>(dst, src, len)?
        {
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        self.check_addresses(dst, src, len)?;
        self.enqueue(What::Copy { dst, src, len }, after)
    }

    /// Does an atomic operation after `order`; its handle. `OWN`: as for `copy`.
    #[inline]
    pub fn fetch<const OWN: bool>(&'static self, fetch: Fetch, into: Into, order: i64) -> Result<i64> {
        let after = self.after(order)?;
        let what = fetch.op.name(fetch.wide);
        if !OWN
            && self.is_over(after)
            && let Into::Address(dst) = into
            && let Some(result) = self.resolve_own(dst, fetch.bytes(), what)?
            && (result as usize).is_multiple_of(fetch.bytes())
            && let Some(old) = self.fetch_at_once(&fetch)?
        {
            // SAFETY: registered memory of this rank, aligned; the caller does not end its registration meanwhile.
            unsafe { Fetch { value: old, ..fetch }.put(result) };
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        if let Into::Address(dst) = into {
            self.check_result(dst, &fetch)?;
        }
        if self.is_over(after)
            && let Some(old) = self.fetch_at_once(&fetch)?
        {
            self.deliver(&fetch, into, old)?;
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        // What is wrong with the word is known now, and not when its turn comes.
        let usage = self.use_of(fetch.at, what)?;
        if !fetch.at.bits().is_multiple_of(fetch.bytes() as u64) {
            return Err(self.misaligned(fetch.at, what));
        }
        self.resolve(fetch.at, fetch.bytes(), &usage, what)?;
        drop(usage);
        self.enqueue(What::Fetch { fetch, into }, after)
    }

    /// Does an atomic operation now and returns the old value.
    #[inline]
    pub fn fetch_now(&'static self, fetch: Fetch) -> Result<u64> {
        if let Some(old) = self.fetch_at_once(&fetch)? {
            return Ok(old);
        }
        let mut old = 0;
        let handle = self.fetch::<true>(fetch, Into::Word(&raw mut old), 0)?;
        // The word must stay until nobody can write it: also when another operation's failure is what is reported.
        self.wait_for(handle as u64)?;
        match self.take_failure(|n| n == handle as u64) {
            Some(error) => Err(error),
            None => Ok(old),
        }
    }

    /// Waits until an operation and all before it are over. The first failure among them is the error.
    #[inline]
    pub fn complete(&'static self, handle: i64) -> Result<()> {
        if self.oldest.load(Ordering::Acquire) == u64::MAX && self.failed.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let number = self.number_of_handle(handle);
        if !self.is_over(number) {
            self.wait_for(number)?;
        }
        self.told(number)
    }

    /// Is an operation, or one before it, not over? A failure among those that are over is the error.
    #[inline]
    pub fn inquire(&'static self, handle: i64) -> Result<bool> {
        let number = self.number_of_handle(handle);
        if !self.is_over(number) {
            self.drive();
            self.serve();
        }
        self.told(number)?;
        Ok(!self.is_over(number))
    }

    #[inline(always)]
    fn told(&self, number: u64) -> Result<()> {
        if self.failed.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.take_failure(|n| n <= number).map_or(Ok(()), Err)
    }

    #[cold]
    fn take_failure(&self, of: impl Fn(u64) -> bool) -> Option<Error> {
        let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        let first = queue.failures.iter().position(|(n, _)| of(*n))?;
        let (_, error) = queue.failures.remove(first)?;
        queue.failures.retain(|(n, _)| !of(*n));
        self.failed.store(queue.failures.len() as u32, Ordering::Release);
        Some(error)
    }

    /// The number that a handle of `complete` stands for. 0: nothing to wait for.
    #[inline(always)]
    fn number_of_handle(&self, handle: i64) -> u64 {
        let issued = self.issued.load(Ordering::Acquire);
        match handle {
            ALL | CONT => issued,
            n if n > 0 && n as u64 <= issued => n as u64,
            _ => 0,
        }
    }

    /// The number after which an operation with this order starts.
    #[inline(always)]
    fn after(&self, order: i64) -> Result<u64> {
        if order == 0 {
            return Ok(0);
        }
        let issued = self.issued.load(Ordering::Acquire);
        match order {
            ALL | CONT => Ok(issued),
            n if n >= 0 => Ok((n as u64).min(issued)),
            _ => Err(self.no_handle(order)),
        }
    }

    #[cold]
    fn no_handle(&self, order: i64) -> Error {
        Error::new(Code::Argument, format!("rank {}: the order {order} is no handle", self.rank()))
    }

    #[inline(always)]
    fn is_over(&self, number: u64) -> bool {
        // SYNC POINT: pairs with the release in `moved_on`.
        number == 0 || self.oldest.load(Ordering::Acquire) > number
    }

    /// The handle of an operation that is over when it is issued: a number of its own only while something before it is not over.
    #[inline(always)]
    fn handle_of_done(&self) -> i64 {
        match self.oldest.load(Ordering::Acquire) {
            u64::MAX => self.issued.load(Ordering::Acquire) as i64,
            _ => self.next_number(),
        }
    }

    #[inline(always)]
    fn next_number(&self) -> i64 {
        self.issued.fetch_add(1, Ordering::AcqRel) as i64 + 1
    }

    /// Both ends of a copy are what they should be, as far as can be known now.
    fn check_addresses(&self, dst: GlobalAddress, src: GlobalAddress, len: usize) -> Result<()> {
        for (ga, what) in [(dst, "copy, to"), (src, "copy, from")] {
            let usage = self.use_of(ga, what)?;
            self.resolve(ga, len, &usage, what)?;
        }
        Ok(())
    }

    /// The result of an atomic operation goes to an aligned word of this rank.
    #[inline(always)]
    fn check_result(&self, dst: GlobalAddress, fetch: &Fetch) -> Result<()> {
        let what = fetch.op.name(fetch.wide);
        let usage = self.use_of(dst, what)?;
        if self.split.rank(dst) != Some(self.rank()) {
            let text = format!("rank {}: {what}: the result goes to this rank's own memory, not to {dst}", self.rank());
            return Err(Error::new(Code::Argument, text));
        }
        let place = self.resolve(dst, fetch.bytes(), &usage, what)?;
        if !(place.addr as usize).is_multiple_of(fetch.bytes()) {
            return Err(self.misaligned(dst, what));
        }
        Ok(())
    }

    #[inline(always)]
    fn deliver(&self, fetch: &Fetch, into: Into, old: u64) -> Result<()> {
        match into {
            // SAFETY: the caller of `fetch` keeps the word until the operation is over.
            Into::Word(word) => unsafe { word.write(old) },
            Into::Address(dst) => {
                let what = fetch.op.name(fetch.wide);
                let usage = self.use_of(dst, what)?;
                let place = self.resolve(dst, fetch.bytes(), &usage, what)?;
                // SAFETY: registered memory of this rank, aligned (`check_result`).
                unsafe { Fetch { value: old, ..*fetch }.put(place.addr as *mut u8) };
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn enqueue(&'static self, what: What, after: u64) -> Result<i64> {
        self.start_helper()?;
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
            if queue.ops.len() < QUEUE {
                let number = self.next_number() as u64;
                let leg = Leg::Whole;
                queue.ops.push_back(Op {
                    number,
                    after,
                    what,
                    started: false,
                    over: false,
                    done: 0,
                    leg,
                    sent: None,
                    full_at: None,
                });
                if queue.ops.len() == 1 {
                    self.oldest.store(number, Ordering::Release);
                }
                queue.again = true;
                self.move_on(&mut queue);
                if queue.again {
                    // Nobody else looks after it.
                    self.wake_helper();
                }
                return Ok(number as i64);
            }
            let oldest = queue.ops.front().map_or(0, |op| op.number);
            drop(queue);
            self.wait_for(oldest)?;
        }
    }

    /// Moves the queue on, unless another thread is about to. `true`: something has changed.
    pub(super) fn drive(&'static self) -> bool {
        let Ok(mut queue) = self.queue.try_lock() else { return false };
        self.move_on(&mut queue)
    }

    /// Is there something that only time brings on?
    pub(super) fn must_try_again(&self) -> bool {
        self.queue.try_lock().is_ok_and(|queue| queue.again)
    }

    /// Is there something that moves on when replies come, or by itself?
    pub(super) fn has_news(&self) -> bool {
        let Ok(queue) = self.queue.try_lock() else { return false };
        !queue.ops.is_empty()
            && (queue.again
                || self.own.header().replied.load(Ordering::Acquire) != queue.seen
                || self.ep.deaths() != queue.deaths)
    }

    fn move_on(&'static self, queue: &mut Queue) -> bool {
        if queue.ops.is_empty() {
            return false;
        }
        // SYNC POINT: pairs with the addition in `Rma::reply`.
        let replied = self.own.header().replied.load(Ordering::Acquire);
        let deaths = self.ep.deaths();
        if replied == queue.seen && deaths == queue.deaths && !queue.again {
            return false;
        }
        (queue.seen, queue.deaths) = (replied, deaths);
        let mut changed = false;
        loop {
            queue.again = false;
            let mut over = false;
            // One that is full now is not asked again in this round; which others are, few ranks are remembered.
            let (mut full, mut full_count) = ([u32::MAX; 8], 0);
            for n in 0..queue.ops.len() {
                let first = queue.ops[0].number;
                let op = &queue.ops[n];
                if op.over || !op.started && op.after >= first {
                    continue;
                }
                if op.full_at.is_some_and(|rank| full.contains(&rank)) {
                    continue;
                }
                match self.step(queue, n) {
                    Ok(Step::Sent) => {}
                    Ok(Step::Full) => {
                        queue.again = true;
                        if let Some(rank) = queue.ops[n].full_at {
                            full[full_count % full.len()] = rank;
                            full_count += 1;
                        }
                    }
                    Ok(Step::Over) => {
                        queue.ops[n].over = true;
                        over = true;
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
        for failure in failed {
            if queue.failures.len() == FAILURES {
                queue.failures.pop_front();
            }
            queue.failures.push_back(failure);
        }
        self.failed.store(queue.failures.len() as u32, Ordering::Release);
    }

    /// Does with an operation what can be done now.
    fn step(&'static self, queue: &mut Queue, n: usize) -> Result<Step> {
        queue.ops[n].started = true;
        queue.ops[n].full_at = None;
        if let Some(sent) = queue.ops[n].sent {
            let reply = self.own.reply(sent.reply as usize);
            // SYNC POINT: pairs with the release in `Rma::reply`.
            let word = reply.word.load(Ordering::Acquire);
            if word >> 8 != sent.token {
                if self.ep.is_dead(sent.world) {
                    return Err(self.peer_error(sent.rank, "has died", "remote command"));
                }
                return Ok(Step::Sent);
            }
            let value = reply.value.load(Ordering::Relaxed);
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
                What::Copy { .. } => advance(queue, n, sent.bytes),
            }
        }
        match queue.ops[n].what {
            What::Copy { .. } => self.step_copy(queue, n),
            What::Fetch { fetch, into } => {
                if let Some(old) = self.fetch_at_once(&fetch)? {
                    self.deliver(&fetch, into, old)?;
                    return Ok(Step::Over);
                }
                let owner = self.split.rank(fetch.at).unwrap_or(0);
                self.send(queue, n, owner, Order::Fetch(fetch), 0)
            }
        }
    }

    #[cold]
    fn refused_by(&self, rank: u32, code: Code, what: &What) -> Error {
        let (name, ends) = match what {
            What::Copy { dst, src, .. } => ("copy", [*dst, *src]),
            What::Fetch { fetch, .. } => (fetch.op.name(fetch.wide), [fetch.at; 2]),
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
            match self.copy_at_once::<true>(to, from, bytes)? {
                Done::Yes => {
                    if len == 0 {
                        return Ok(Step::Over);
                    }
                    advance(queue, n, bytes);
                }
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
        let shared = view.window.entry(n as usize).life.load(Ordering::Acquire) & super::record::Entry::SHARED != 0;
        // With private memory at both ends one of the two needs the kernel's copies, as this process does not, or not for long.
        Ok(shared || self.split.rank(other) != Some(self.rank()) && self.ep.config.cma)
    }

    /// The memory between two legs.
    fn make_bounce(&self) -> Result<GlobalAddress> {
        let memory = self.ep.heap.alloc(BOUNCE_BYTES)?;
        self.fill(BOUNCE, memory, BOUNCE_BYTES, 0, true);
        Ok(self.split.address(self.rank(), 1, 0, 0))
    }

    fn send(&'static self, queue: &mut Queue, n: usize, owner: u32, order: Order, bytes: usize) -> Result<Step> {
        let Some(reply) = queue.free_replies.pop() else { return Ok(Step::Full) };
        let token = queue.token + 1;
        let usage = using(&self.own, owner, RECORDS);
        let sent = self.view(owner, &usage).and_then(|view| {
            if let Some(why) = view.gone() {
                return Err(self.peer_error(owner, why, "remote command"));
            }
            Ok((
                view.world,
                self.send_command(view, &Command { order, token, reply: u32::from(reply), from: self.rank() }),
            ))
        });
        match sent {
            Ok((world, true)) => {
                queue.token = token;
                queue.ops[n].sent = Some(Sent { rank: owner, world, reply, token, bytes });
                Ok(Step::Sent)
            }
            Ok((_, false)) => {
                queue.free_replies.push(reply);
                queue.ops[n].full_at = Some(owner);
                Ok(Step::Full)
            }
            Err(error) => {
                queue.free_replies.push(reply);
                Err(error)
            }
        }
    }

    /// Waits until an operation and all before it are over, and meanwhile does what the helper would do.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for(&'static self, number: u64) -> Result<()> {
        let header = self.own.header();
        header.attended.fetch_add(1, Ordering::AcqRel);
        let scene = Completion { rma: self, number };
        let mut waiter = Waiter::new();
        let waited = loop {
            self.drive();
            if self.is_over(number) {
                break Ok(());
            }
            self.serve();
            if !waiter.spin()
                && let Err(error) = waiter.slow(&scene)
            {
                break Err(error);
            }
        };
        header.attended.fetch_sub(1, Ordering::AcqRel);
        // SYNC POINT: pairs with the fence in `Window::wake`: what came while this thread attended, and rang for nobody, is seen here.
        fence(Ordering::SeqCst);
        if self.has_news() || self.has_commands() {
            self.wake_helper();
        }
        waited
    }
}

impl Fetch {
    /// Stores the value, as one word.
    ///
    /// # Safety
    /// As for [`Fetch::apply`].
    unsafe fn put(&self, at: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.wide {
                true => (*at.cast::<crate::base::atomics::AtomicU64>()).store(self.value, Ordering::Release),
                false => (*at.cast::<AtomicU32>()).store(self.value as u32, Ordering::Release),
            }
        }
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

/// Waiting for operations to be over.
struct Completion {
    rma: &'static Rma,
    number: u64,
}

impl Scene for Completion {
    fn board(&self) -> &'static Board {
        self.rma.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        None
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn bell(&self) -> &AtomicU32 {
        &self.rma.own.header().bell
    }
    fn fall_asleep(&self) -> bool {
        self.rma.own.header().callers_asleep.fetch_add(1, Ordering::AcqRel);
        // SYNC POINT: pairs with the fence in `Window::wake`.
        fence(Ordering::SeqCst);
        true
    }
    fn wake_up(&self) {
        self.rma.own.header().callers_asleep.fetch_sub(1, Ordering::AcqRel);
    }
    fn ready(&self) -> bool {
        self.rma.is_over(self.number) || self.rma.has_news() || self.rma.has_commands()
    }
    fn meanwhile(&self) -> bool {
        self.rma.must_try_again()
    }
    fn gone(&self) -> Option<Error> {
        None // A death ends the operations that need the dead rank, and not this wait.
    }
    fn may_end(&self) -> bool {
        false
    }
    fn waits(&self) -> Waits {
        let (mut peer, mut bytes) = (self.rma.ep.rank, 0);
        if let Ok(queue) = self.rma.queue.try_lock()
            && let Some(sent) = queue.ops.iter().find_map(|op| op.sent)
        {
            (peer, bytes) = (sent.world, sent.bytes as u64);
        }
        Waits { operation: Operation::Global, peer, index: 0, comm: 0, bytes, since_ns: 0 }
    }
}

const _: () = assert!(QUEUE <= REPLIES);
