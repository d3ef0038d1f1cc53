//! The rings of events, one for each thread.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use crate::base::atomics::Setting;
use crate::base::clock::now_ns;
use crate::base::variants::variants;

variants! {
    /// What happened.
    pub enum What: u8 {
        /// A message is on its way, by the named way.
        Sent,
        /// A message that was offered was moved into the spool.
        Moved,
        /// A receive has its message.
        Received,
        /// A wait has lasted for more than moments, in the named call.
        WaitBegins,
        /// It goes to sleep.
        WaitSleeps,
        /// It is over.
        WaitEnds,
        /// A collective call has begun: the named one.
        CallBegins,
        /// It is over.
        CallEnds,
        /// A connection with a rank on another node has come about; the number is how often.
        Connected,
        /// A connection was given up, which others may need the place of.
        GivenUp,
        /// A connection has failed.
        Failed,
    }
}

/// No peer, or none in particular.
pub const NOBODY: u32 = u32::MAX;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of the node's clock; set by [`note`].
    pub ns: u64,
    /// What happened.
    pub what: What,
    /// The way of a message, or the call.
    pub name: &'static str,
    /// The other rank (of the world).
    pub peer: u32,
    /// The index, below 0 for the library's own.
    pub index: i32,
    /// The communicator.
    pub comm: i32,
    /// Bytes.
    pub bytes: u64,
    /// The message's number on its index.
    pub number: u64,
}

impl Event {
    /// An event that is about nobody in particular.
    pub fn new(what: What, name: &'static str) -> Event {
        Event { ns: 0, what, name, peer: NOBODY, index: 0, comm: 0, bytes: 0, number: 0 }
    }

    fn words(&self) -> [u64; WORDS] {
        [
            self.ns,
            self.what as u64 | (self.peer as u64) << 32,
            self.index as u32 as u64 | (self.comm as u32 as u64) << 32,
            self.bytes,
            self.number,
            self.name.as_ptr() as u64,
            self.name.len() as u64,
        ]
    }

    /// # Safety
    /// The words are those of one event.
    unsafe fn of(words: [u64; WORDS]) -> Option<Event> {
        let [ns, what, place, bytes, number, at, len] = words;
        // SAFETY: pointer and length of a static text, as the caller promises.
        let name = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(at as *const u8, len as usize)) };
        let (index, comm) = (place as u32 as i32, (place >> 32) as i32);
        let kind = What::from_number(what as u8)?;
        Some(Event { ns, what: kind, name, peer: (what >> 32) as u32, index, comm, bytes, number })
    }
}

const WORDS: usize = 7;
/// Threads that have a ring at a time; the events of further ones are dropped.
const THREADS: usize = 64;

/// Events that a ring holds (`FMPL_TRACE_EVENTS`); for rings that are made from now on.
pub(super) static EVENTS: Setting = Setting::new(16384);

/// The events of a thread.
pub(super) struct Ring {
    slots: Box<[[AtomicU64; WORDS]]>,
    /// Events ever written.
    next: AtomicU64,
    /// Which thread.
    thread: Mutex<(u32, String)>,
    /// The thread is no more.
    ended: AtomicBool,
}

static RINGS: Mutex<Vec<&'static Ring>> = Mutex::new(Vec::new());
/// Events of threads that got no ring, and of those whose ring has gone to another.
static LOST: AtomicU64 = AtomicU64::new(0);

/// A thread's ring while the thread lives.
struct Mine(&'static Ring);

impl Drop for Mine {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

thread_local! {
    static MINE: OnceCell<Option<Mine>> = const { OnceCell::new() };
}

/// Notes an event of this thread, now.
pub fn note(event: Event) {
    // A thread that is ending has no place for it any more.
    let noted = MINE.try_with(|mine| {
        let Some(Mine(ring)) = mine.get_or_init(Ring::for_this_thread) else { return false };
        ring.put(Event { ns: now_ns(), ..event });
        true
    });
    if noted != Ok(true) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ring {
    fn new(events: usize) -> Ring {
        let slots = (0..events.max(1)).map(|_| [const { AtomicU64::new(0) }; WORDS]).collect();
        Ring { slots, next: AtomicU64::new(0), thread: Mutex::default(), ended: AtomicBool::new(false) }
    }

    #[cold]
    fn for_this_thread() -> Option<Mine> {
        let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = match rings.iter().copied().find(|r| r.ended.load(Ordering::Acquire)) {
            Some(free) if rings.len() >= THREADS => {
                LOST.fetch_add(free.next.swap(0, Ordering::Relaxed), Ordering::Relaxed);
                free.ended.store(false, Ordering::Relaxed);
                free
            }
            _ if rings.len() >= THREADS => return None,
            _ => {
                // For the life of the process: the events of a thread outlive it.
                rings.push(Box::leak(Box::new(Ring::new(EVENTS.get() as usize))));
                rings[rings.len() - 1]
            }
        };
        // SAFETY: no preconditions.
        let number = unsafe { libc::gettid() } as u32;
        let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        *ring.thread.lock().unwrap_or_else(PoisonError::into_inner) = (number, name.trim_end().to_owned());
        Some(Mine(ring))
    }

    /// By the ring's thread only.
    fn put(&self, event: Event) {
        let at = self.next.load(Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in `read`: who sees a word of this event sees that all before it are written.
        fence(Ordering::Release);
        for (word, value) in self.slots[at as usize % self.slots.len()].iter().zip(event.words()) {
            word.store(value, Ordering::Relaxed);
        }
        // SYNC POINT: pairs with the acquire in `read`.
        self.next.store(at + 1, Ordering::Release);
    }

    /// The events that are there, the oldest first, and how many are not any more.
    fn read(&self) -> (Vec<Event>, u64) {
        let most = self.slots.len() as u64;
        // SYNC POINT: pairs with the release in `put`.
        let end = self.next.load(Ordering::Acquire);
        let from = end.saturating_sub(most);
        let copied: Vec<[u64; WORDS]> = (from..end)
            .map(|n| self.slots[(n % most) as usize].each_ref().map(|word| word.load(Ordering::Relaxed)))
            .collect();
        // SYNC POINT: pairs with the fence in `put`.
        fence(Ordering::Acquire);
        // The event after these may be half written by now, over the oldest of them.
        let whole = (self.next.load(Ordering::Relaxed) + 1).saturating_sub(most).max(from).min(end);
        let kept = &copied[(whole - from) as usize..];
        // SAFETY: none of these was written again before all of it was read.
        (kept.iter().filter_map(|words| unsafe { Event::of(*words) }).collect(), whole)
    }
}

/// The events of a thread, and who it is.
pub(super) struct OfThread {
    pub number: u32,
    pub name: String,
    pub events: Vec<Event>,
}

/// The events of all threads, and how many were dropped.
pub(super) fn all() -> (Vec<OfThread>, u64) {
    let rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut dropped = LOST.load(Ordering::Relaxed);
    let of = |ring: &&Ring| {
        let (number, name) = ring.thread.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (events, gone) = ring.read();
        dropped += gone;
        OfThread { number, name, events }
    };
    (rings.iter().map(of).collect(), dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: u64) -> Event {
        Event {
            ns: n,
            bytes: n,
            number: n,
            peer: n as u32,
            index: -(n as i32),
            comm: 7,
            ..Event::new(What::Moved, "a way")
        }
    }

    #[test]
    fn the_last_events_stay_and_the_others_are_counted() {
        let ring = Ring::new(8);
        assert_eq!(ring.read(), (vec![], 0));
        (0..5).for_each(|n| ring.put(event(n)));
        assert_eq!(ring.read(), ((0..5).map(event).collect(), 0));
        (5..21).for_each(|n| ring.put(event(n)));
        // The oldest place may be written at any time.
        assert_eq!(ring.read(), ((14..21).map(event).collect(), 14));
    }

    #[test]
    fn what_is_read_while_it_is_written_is_whole() {
        let ring = Ring::new(16);
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                (0..300_000).for_each(|n| ring.put(event(n)));
                over.store(true, Ordering::Release);
            });
            while !over.load(Ordering::Acquire) {
                let (events, gone) = ring.read();
                let wanted: Vec<Event> = (gone..gone + events.len() as u64).map(event).collect();
                assert_eq!(events, wanted);
            }
        });
        assert_eq!(ring.read().1, 300_000 - 15);
    }
}
