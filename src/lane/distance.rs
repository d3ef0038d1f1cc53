//! Have the cores of two ranks a common cache? Lines tell: one that the other core has just written takes some 30 ns from a cache that
//! both have, and 100 to 300 from another chiplet or socket. What the system says of caches holds for ranks that are bound, on machines that
//! tell the truth; the cores of a virtual machine move about beneath it, within seconds.
//!
//! So each side has a line beside the rings, in which it counts. Every so many long messages it counts on, and reads the other's line: where
//! that has changed since the last time, it was not in any cache of this core, and the time of the load is that of a line between the
//! two. Loads that found nothing new say nothing. Short messages do none of this.
//!
//! ```text
//!   this side    count + 1   t0  load theirs  t1  load again  t2       (t1 - t0) - (t2 - t1): a line's way, if the count is new
//!   the other    ...         count + 1   ...
//! ```

use crate::base::atomics::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::tuning::Distance;

/// Long messages between two looks: a message of more than [`UNIT`] bytes counts as several. Few enough that the line of the last one is
/// still in a cache of the other core, or in the one that both have.
const PERIOD: u32 = if cfg!(test) { 4 } else { 48 };
/// log2 of the bytes that count as a message.
const UNIT_LOG: u32 = 13;
/// So many looks in a row must contradict what is believed.
const VOTES: u32 = 3;
/// Nothing between cores takes as long: somebody was interrupted.
const MOST_NS: u64 = 1500;

/// What a side knows of the distance to its peer.
#[derive(Default)]
pub struct Gauge {
    /// [`Distance`] as a number.
    believed: AtomicU8,
    /// From so many nanoseconds on they are apart; 0: what is believed is fixed.
    apart_ns: AtomicU32,
    /// Messages since the last look.
    passed: AtomicU32,
    /// Looks in a row that contradict what is believed.
    against: AtomicU32,
    /// The other side's count at the last look.
    seen: AtomicU64,
    /// Looks that found something new, ever, and what the last of them took.
    looks: AtomicU64,
    last_ns: AtomicU32,
}

impl Gauge {
    /// What is believed now.
    #[inline]
    pub fn distance(&self) -> Distance {
        if self.believed.load(Ordering::Relaxed) == 0 { Distance::Shared } else { Distance::Apart }
    }

    /// This holds, and no look changes it.
    pub fn fix(&self, distance: Distance) {
        self.apart_ns.store(0, Ordering::Relaxed);
        self.believed.store(distance as u8, Ordering::Relaxed);
    }

    /// This is believed until looks say otherwise, by this limit.
    pub fn begin(&self, distance: Distance, apart_ns: u32) {
        self.believed.store(distance as u8, Ordering::Relaxed);
        self.apart_ns.store(apart_ns, Ordering::Relaxed);
    }

    /// Looks that found something new, and what the last of them took, in nanoseconds.
    pub fn looks(&self) -> (u64, u32) {
        (self.looks.load(Ordering::Relaxed), self.last_ns.load(Ordering::Relaxed))
    }

    /// A message of `n` bytes passes: is it time for a look? Threads that come at once may lose counts to each other.
    #[inline]
    pub(super) fn is_time(&self, n: usize) -> bool {
        let passed = self.passed.load(Ordering::Relaxed) + 1 + (n >> UNIT_LOG).min(PERIOD as usize) as u32;
        let now = passed >= PERIOD;
        self.passed.store(if now { 0 } else { passed }, Ordering::Relaxed);
        now && self.apart_ns.load(Ordering::Relaxed) != 0
    }

    /// Counts on, and looks at the other's count. Has what is believed changed?
    #[cold]
    pub(super) fn look(&self, mine: &AtomicU64, theirs: &AtomicU64) -> bool {
        // Both lie in one page, whose address is looked up for this store, so that the load does not wait for that.
        mine.store(mine.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let begin = now_ns();
        let now = theirs.load(Ordering::Acquire);
        let middle = now_ns();
        theirs.load(Ordering::Acquire);
        let end = now_ns();
        let took = middle.saturating_sub(begin).saturating_sub(end.saturating_sub(middle));
        self.seen.swap(now, Ordering::Relaxed) != now && self.took(took)
    }

    /// A line took so long. Has what is believed changed?
    fn took(&self, ns: u64) -> bool {
        if ns > MOST_NS {
            return false;
        }
        self.looks.store(self.looks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.last_ns.store(ns as u32, Ordering::Relaxed);
        let says = if ns >= self.apart_ns.load(Ordering::Relaxed) as u64 { Distance::Apart } else { Distance::Shared };
        let against = if says == self.distance() { 0 } else { self.against.load(Ordering::Relaxed) + 1 };
        if against == VOTES {
            self.believed.store(says as u8, Ordering::Relaxed);
        }
        self.against.store(against % VOTES, Ordering::Relaxed);
        against == VOTES
    }
}

/// What binding says of two ranks, by the processors that each may run on and those that have a cache in common with one of `mine`. `None`:
/// one of the two may run on both sides of the cache's border.
pub fn of_binding(mine: &[usize], theirs: &[usize], cache: &[usize]) -> Option<Distance> {
    let inside = |cpus: &[usize]| cpus.iter().filter(|c| cache.contains(c)).count();
    match (inside(mine) == mine.len(), inside(theirs)) {
        _ if theirs.is_empty() || cache.is_empty() => None,
        (true, n) if n == theirs.len() => Some(Distance::Shared),
        (true, 0) => Some(Distance::Apart),
        _ => None,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn binding_tells_where_nobody_may_cross_a_border() {
        let cache = [0, 1, 2, 3];
        assert_eq!(of_binding(&[0], &[3], &cache), Some(Distance::Shared));
        assert_eq!(of_binding(&[0, 2], &[1, 3], &cache), Some(Distance::Shared));
        assert_eq!(of_binding(&[0], &[4, 5], &cache), Some(Distance::Apart));
        assert_eq!(of_binding(&[0], &[3, 4], &cache), None);
        assert_eq!(of_binding(&[3, 4], &[0], &cache), None);
        assert_eq!(of_binding(&[0], &[], &cache), None);
        assert_eq!(of_binding(&[0], &[1], &[]), None);
    }

    #[test]
    fn a_few_looks_in_a_row_change_what_is_believed() {
        let g = Gauge::default();
        g.begin(Distance::Shared, 90);
        let mut all = vec![];
        for ns in [200, 200, 40, 200, 90, 5000, 90, 200, 89, 0, 200, 10, 20, 30] {
            g.took(ns);
            all.push(g.distance() == Distance::Apart);
        }
        let (yes, no) = (true, false);
        assert_eq!(all, [no, no, no, no, no, no, yes, yes, yes, yes, yes, yes, yes, no]);
        assert_eq!(g.looks(), (13, 30));
    }

    #[test]
    fn only_new_counts_are_timed() {
        let (g, mine, theirs) = (Gauge::default(), AtomicU64::new(0), AtomicU64::new(0));
        g.begin(Distance::Shared, 90);
        g.look(&mine, &theirs);
        assert_eq!((mine.load(Ordering::Relaxed), g.looks().0), (1, 0));
        for n in 1..=3 {
            theirs.store(n, Ordering::Relaxed);
            g.look(&mine, &theirs);
            g.look(&mine, &theirs);
        }
        assert_eq!(mine.load(Ordering::Relaxed), 7);
        // One may have been interrupted.
        assert!(g.looks().0 >= 1 && g.looks().0 <= 3);
    }

    #[test]
    fn long_messages_count_for_several_and_none_where_it_is_fixed() {
        let g = Gauge::default();
        g.begin(Distance::Shared, 90);
        let turns: Vec<bool> = (0..8).map(|_| g.is_time(5000)).collect();
        assert_eq!(turns, [false, false, false, true, false, false, false, true]);
        assert!(g.is_time(1 << 20) && g.is_time(usize::MAX));
        g.fix(Distance::Apart);
        assert!(!g.is_time(1 << 20));
        assert_eq!(g.distance(), Distance::Apart);
    }

    /// Two threads that write and read in turn, as two ranks do: their looks find something new.
    #[test]
    fn two_sides_that_look_in_turn_see_each_other() {
        #[repr(align(128))]
        #[derive(Default)]
        struct Line(AtomicU64);
        let lines = [Line::default(), Line::default()];
        let gauges = [Gauge::default(), Gauge::default()];
        gauges.iter().for_each(|g| g.begin(Distance::Shared, 90));
        let turn = AtomicU32::new(0);
        std::thread::scope(|s| {
            for me in [0, 1] {
                let (lines, gauges, turn) = (&lines, &gauges, &turn);
                s.spawn(move || {
                    for k in 0..200 {
                        while turn.load(Ordering::Acquire) != 2 * k + me as u32 {
                            std::thread::yield_now();
                        }
                        gauges[me].look(&lines[me].0, &lines[1 - me].0);
                        turn.store(2 * k + me as u32 + 1, Ordering::Release);
                    }
                });
            }
        });
        for g in &gauges {
            let (looks, ns) = g.looks();
            assert!(looks > 100, "{looks} looks");
            println!("{looks} looks, the last took {ns} ns, {:?}", g.distance());
        }
    }
}
