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
//! within its call while the queue was empty has the number of the one before it, which is over as well. The queue is moved on
//! ([`super::progress`]) by whoever calls the library, and by the helper thread ([`super::helper`]) when nobody does.
//!
//! **Failures.** An operation starts when what it is to follow has gone *well*. One that cannot be issued at all is refused
//! ([`Rma::refuse`]): it has a number like any other, and a handle that says so, [`REFUSED`]. A failure, of an operation that was refused or
//! of one that went wrong later, keeps back whatever is ordered after its number until somebody has been told of it, by `complete` or
//! `inquire` on it or on a later one; what names a refused operation itself is always kept back. What is kept back is refused, and so on.

mod operation;

mod outcome;

use std::collections::VecDeque;

use super::address::GlobalAddress;
use super::device::{Flight, REMOTE_REPLIES};
use super::direct::{Done, Fetch};
use super::record::REPLIES;
use super::{ALL, CONT, Rma};
use crate::base::atomics::{AtomicU32, Ordering, fence};
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result, error};
use crate::base::run::Run;
use crate::wait::{Board, Operation, Scene, Waiter, Waits};
pub use operation::Into;
pub(super) use operation::{Leg, Op, Sent, What};
pub use outcome::Failure;

/// Operations that are not over, at most: 4096 of 120 bytes.
const QUEUE: usize = 4096;
/// Failures of operations of which nobody has been told.
const FAILURES: usize = 64;

/// Bit of the handles of refused operations; the others are the operation's number.
pub const REFUSED: i64 = 1 << 62;
const _: () = assert!(QUEUE <= REPLIES && QUEUE <= REMOTE_REPLIES && size_of::<Op>() <= 120);

/// No rank.
pub(super) const NOBODY: u32 = u32::MAX;

/// What is not over.
#[derive(Default)]
pub(super) struct Queue {
    pub ops: VecDeque<Op>,
    pub free_replies: Vec<u16>,
    pub token: u64,
    /// Replies that were there at the last look.
    pub seen: u64,
    /// Deaths that were known then.
    pub deaths: u32,
    /// Something goes on without anybody's telling: it could not be sent for want of room, or the device has it.
    pub again: bool,
    /// Tickets of commands that will not be sent, and whose rings they are for: to be used up, since nothing behind them is served before.
    pub unused: Vec<(u32, u64)>,
    /// What nobody has been told of; the one with the smallest number first.
    pub failures: VecDeque<Failure>,
    /// The memory between two legs, once there is any.
    pub bounce: Option<GlobalAddress>,
    /// The operation that has it.
    pub bounced: Option<u64>,
}

impl Queue {
    pub fn new() -> Queue {
        Queue { free_replies: (0..REPLIES as u16).rev().collect(), ..Queue::default() }
    }

    /// Notes a failure. Of too many the first one stays, which keeps everything back that is ordered after any of them.
    pub fn note(&mut self, failure: Failure) {
        match self.failures.front() {
            Some(first) if first.number < failure.number => self.failures.push_back(failure),
            _ => self.failures.push_front(failure),
        }
        if self.failures.len() > FAILURES {
            self.failures.remove(1);
        }
    }
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
        self.issue_copy::<OWN>(dst, src, len, order).map_err(|error| self.counted(error))
    }

    #[inline(always)]
    fn issue_copy<const OWN: bool>(
        &'static self,
        dst: GlobalAddress,
        src: GlobalAddress,
        len: usize,
        order: i64,
    ) -> Result<i64> {
        let after = self.after(order, || format!("copy of {len} bytes from {src} to {dst}"))?;
        if !OWN && self.is_over(after) && self.copy_short(dst, src, len).is_some() {
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        self.issue_longer_copy(dst, src, len, after)
    }

    /// The same where it is not short. Apart, so that a short one saves no registers for it.
    #[inline(never)]
    fn issue_longer_copy(&'static self, dst: GlobalAddress, src: GlobalAddress, len: usize, after: u64) -> Result<i64> {
        if self.is_over(after) && self.copy_at_once::<true>(dst, src, len)? == Done::Yes {
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        self.check_addresses(dst, src, len)?;
        self.enqueue(What::Copy { dst, src, len }, after)
    }

    /// Does an atomic operation after `order`; its handle. `OWN`: as for `copy`.
    #[inline]
    pub fn fetch<const OWN: bool>(&'static self, fetch: Fetch, into: Into, order: i64) -> Result<i64> {
        self.issue_fetch::<OWN>(fetch, into, order).map_err(|error| self.counted(error))
    }

    #[inline(always)]
    fn issue_fetch<const OWN: bool>(&'static self, fetch: Fetch, into: Into, order: i64) -> Result<i64> {
        let after = self.after(order, || format!("{} at {}", fetch.op.name(fetch.wide), fetch.at))?;
        if !OWN
            && self.is_over(after)
            && let Into::Address(dst) = into
            && self.fetch_short(&fetch, dst).is_some()
        {
            self.views.sweep(&self.own);
            return Ok(self.handle_of_done());
        }
        self.issue_longer_fetch(fetch, into, after)
    }

    /// The same where it is not short.
    #[inline(never)]
    fn issue_longer_fetch(&'static self, fetch: Fetch, into: Into, after: u64) -> Result<i64> {
        let what = fetch.op.name(fetch.wide);
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
        self.resolve_word(&fetch, &usage)?;
        drop(usage);
        self.enqueue(What::Fetch { fetch, into }, after)
    }

    /// Does an atomic operation now and returns the old value.
    #[inline]
    pub fn fetch_now(&'static self, fetch: Fetch) -> Result<u64> {
        if let Some(old) = self.fetch_at_once(&fetch).map_err(|error| self.counted(error))? {
            return Ok(old);
        }
        let mut old = 0u64;
        // SAFETY: the word stays until the operation is over: it is waited for.
        let word = unsafe { Run::new((&raw mut old).cast(), size_of_val(&old)) };
        let handle = self.fetch::<true>(fetch, Into::Word(word), 0)?;
        // The word must stay until nobody can write it: also when another operation's failure is what is reported.
        self.wait_for(handle as u64)?;
        match self.take_failure(|n| n == handle as u64) {
            Some(failure) => Err(failure.error),
            None => Ok(old),
        }
    }

    /// Counts an operation that is refused.
    #[cold]
    fn counted(&self, error: Error) -> Error {
        self.ep.refused.fetch_add(1, Ordering::Relaxed);
        error
    }

    /// The number that a handle of `complete` stands for. 0: nothing to wait for.
    #[inline(always)]
    fn number_of_handle(&self, handle: i64) -> u64 {
        let issued = self.issued.load(Ordering::Acquire);
        match handle {
            ALL | CONT => issued,
            n if n > 0 && (n & !REFUSED) as u64 <= issued => (n & !REFUSED) as u64,
            _ => 0,
        }
    }

    /// The number after which an operation with this order starts; an error when it never will.
    #[inline(always)]
    fn after(&self, order: i64, what: impl FnOnce() -> String) -> Result<u64> {
        if order == 0 {
            return Ok(0);
        }
        let number = self.number_of_order(order).ok_or_else(|| self.no_handle(order))?;
        match self.kept_back(order, number) {
            None => Ok(number),
            Some((code, why)) => Err(error!(code, "rank {}: {}: not started: {why}", self.rank(), what())),
        }
    }

    #[inline(always)]
    fn number_of_order(&self, order: i64) -> Option<u64> {
        let issued = self.issued.load(Ordering::Acquire);
        match order {
            ALL | CONT => Some(issued),
            n if n >= 0 => Some(((n & !REFUSED) as u64).min(issued)),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) fn is_over(&self, number: u64) -> bool {
        // SYNC POINT: pairs with the release in `moved_on`.
        number == 0 || self.oldest.load(Ordering::Acquire) > number
    }

    /// Is this one over, whatever was issued before it?
    pub(super) fn is_through(&self, number: u64) -> bool {
        self.is_over(number) || {
            let queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
            !queue.ops.iter().any(|op| op.number == number && !op.over)
        }
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
    pub(super) fn deliver(&self, fetch: &Fetch, into: Into, old: u64) -> Result<()> {
        match into {
            Into::Word(word) => word.set_words([old, 0], size_of_val(&old)),
            Into::Address(dst) => {
                let what = fetch.op.name(fetch.wide);
                let usage = self.use_of(dst, what)?;
                let place = self.resolve(dst, fetch.bytes(), &usage, what)?;
                // This rank's, and aligned (`check_result`).
                if let Some(at) = place.here {
                    Fetch { value: old, ..*fetch }.put(at);
                }
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enqueue(&'static self, what: What, after: u64) -> Result<i64> {
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
                    done: 0,
                    sent: None,
                    away: None,
                    full_at: NOBODY,
                    leg,
                    started: false,
                    over: false,
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

    /// Waits until an operation and all before it are over.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for(&'static self, number: u64) -> Result<()> {
        self.attend(|| self.is_over(number))
    }

    /// Waits until something is over, and meanwhile does what the helper would do.
    pub(super) fn attend(&'static self, over: impl Fn() -> bool) -> Result<()> {
        let header = self.own.header();
        header.attended.fetch_add(1, Ordering::AcqRel);
        let scene = Completion { rma: self, over: &over };
        let mut waiter = Waiter::new();
        let waited = loop {
            self.drive();
            self.views.sweep(&self.own);
            if over() {
                break Ok(());
            }
            self.own.look_out(true);
            self.run_delegated();
            self.serve();
            if !waiter.spin()
                && let Err(error) = waiter.slow(&scene)
            {
                break Err(error);
            }
        };
        self.own.look_out(false);
        header.attended.fetch_sub(1, Ordering::AcqRel);
        // SYNC POINT: pairs with the fence in `Window::wake`: what came while this thread attended, and rang for nobody, is seen here.
        fence(Ordering::SeqCst);
        if self.has_news() || self.must_try_again() || self.has_commands() {
            self.wake_helper();
        }
        waited
    }
}

impl Fetch {
    /// Stores the value, as one word.
    #[inline(always)]
    pub(super) fn put(&self, at: Room<'_>) {
        match self.wide {
            true => at.word().store(self.value, Ordering::Release),
            false => at.half_word().store(self.value as u32, Ordering::Release),
        }
    }
}

/// Waiting for operations to be over.
struct Completion<'a> {
    rma: &'static Rma,
    over: &'a dyn Fn() -> bool,
}

impl Scene for Completion<'_> {
    fn board(&self) -> &'static Board {
        self.rma.ep.board()
    }
    fn is_ordered(&self) -> bool {
        self.rma.ep.is_ordered()
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn bell(&self) -> &AtomicU32 {
        &self.rma.own.header().bell
    }
    fn fall_asleep(&self) -> bool {
        self.rma.own.look_out(false);
        self.rma.own.header().callers_asleep.fetch_add(1, Ordering::AcqRel);
        // SYNC POINT: pairs with the fence in `Window::wake`.
        fence(Ordering::SeqCst);
        true
    }
    fn wake_up(&self) {
        self.rma.own.header().callers_asleep.fetch_sub(1, Ordering::AcqRel);
    }
    fn ready(&self) -> bool {
        (self.over)() || self.rma.has_news() || self.rma.has_commands()
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
            (peer, bytes) = (sent.world, u64::from(sent.bytes));
        }
        Waits { operation: Operation::Global, peer, index: 0, comm: 0, bytes, since_ns: 0 }
    }
}
