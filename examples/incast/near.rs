//! The model on a node whose ranks share processors: a drain, step by step.
//!
//! ```text
//!   asleep ──▶ runs: sends while there is room ──▶ no room: gives way until a quarter is free ──▶ asleep
//!     ▲   woken by the receiver, one at a time,                                for so long          │
//!     │   when half of the slots are free                                                           │
//!     └─────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! The receiver has a processor to itself; the senders take turns on the others, each until it finds no room or has nothing left. That is
//! what `src/wait` does where ranks share cores, and what `src/p2p/any_source/share.rs` does to wake senders. A message costs either side
//! more while the other is at work, since they take the ring's lines from each other; and the receiver, which wakes the senders, is not at
//! work meanwhile; nor is a processor while somebody rises on it. That is of a processor that sleeps; another is told in passing.

use std::collections::VecDeque;

use super::stations::Times;

/// A sender gives way for so long before it sleeps until it is woken.
const PATIENCE: f64 = 100_000.0;

#[derive(Clone, Copy)]
struct Sender {
    left: usize,
    /// When it can go on, after it was woken; and what that takes its processor.
    ready: f64,
    rising: f64,
    /// When it found no room first; none: it has found some since.
    since: Option<f64>,
    /// It has slept since, and takes any room.
    slept: bool,
}

struct Drain {
    times: Times,
    senders: Vec<Sender>,
    /// The time on each processor, and who is to run on it.
    processors: Vec<(f64, VecDeque<usize>)>,
    /// Who sleeps.
    asleep: VecDeque<usize>,
    /// When each message was there.
    filled: Vec<f64>,
    slots: usize,
    /// Until then the receiver wakes senders.
    waking: f64,
    /// The receiver's time, messages taken, and how many when it looks for sleepers next.
    now: f64,
    taken: usize,
    look_at: usize,
}

/// What a message takes from a full ring on, ns, when `senders` have sent `each` messages in all, or wait to.
pub fn drain(senders: usize, each: usize, slots: usize, processors: usize, times: Times) -> f64 {
    let mut all = vec![Sender { left: each, ready: 0.0, rising: 0.0, since: None, slept: true }; senders];
    // Before: the first ones have filled the ring, everybody sleeps.
    let mut there = 0;
    for s in &mut all {
        let n = s.left.min(slots - there);
        s.left -= n;
        there += n;
    }
    let asleep = (0..senders).filter(|s| all[*s].left > 0).collect();
    let mut d = Drain {
        times,
        senders: all,
        processors: vec![(0.0, VecDeque::new()); processors.max(1)],
        asleep,
        filled: vec![0.0; there],
        slots,
        waking: 0.0,
        now: 0.0,
        taken: 0,
        look_at: 0,
    };
    while d.taken < senders * each {
        // Whoever is behind goes on.
        let next =
            (0..d.processors.len()).filter_map(|p| d.begins(p).map(|t| (t, p))).min_by(|a, b| a.0.total_cmp(&b.0));
        match next {
            Some((t, p)) if t < d.now => d.run(p, t),
            _ => d.receive(),
        }
    }
    d.now / d.taken as f64
}

impl Drain {
    /// When somebody can run on a processor; none: nobody is to.
    fn begins(&self, p: usize) -> Option<f64> {
        let (now, queue) = &self.processors[p];
        queue.iter().map(|s| self.senders[*s].ready.max(*now)).min_by(f64::total_cmp)
    }

    fn make_ready(&mut self, s: usize, when: f64) {
        self.senders[s].ready = when;
        let shortest = self.processors.iter_mut().min_by_key(|p| p.1.len()).expect("a processor");
        shortest.1.push_back(s);
    }

    /// One step of the sender whose turn it is.
    fn run(&mut self, p: usize, begin: f64) {
        let t = self.times;
        let (now, queue) = &mut self.processors[p];
        let at = queue.iter().position(|s| self.senders[*s].ready <= begin).expect("one that can run");
        let s = queue.remove(at).expect("one that can run");
        let sender = &mut self.senders[s];
        *now = begin + std::mem::take(&mut sender.rising);
        let wanted = if sender.since.is_some() && !sender.slept { self.slots / 4 } else { 1 };
        if sender.left == 0 {
            *now += t.yields;
        } else if self.filled.len() + wanted <= self.taken + self.slots {
            *now += if begin < self.waking { t.send } else { t.sending.max(t.send) };
            self.filled.push(*now);
            sender.left -= 1;
            (sender.since, sender.slept) = (None, false);
            // Its turn goes on.
            queue.push_front(s);
        } else {
            *now += t.yields;
            let since = *sender.since.get_or_insert(begin);
            if *now - since < PATIENCE {
                queue.push_back(s);
            } else {
                sender.slept = true;
                self.asleep.push_back(s);
            }
        }
    }

    fn receive(&mut self) {
        let t = self.times;
        match self.filled.get(self.taken) {
            Some(when) if *when <= self.now => {
                let sent =
                    self.filled.len() < self.taken + self.slots && self.processors.iter().any(|p| !p.1.is_empty());
                self.now += if sent { t.taking.max(t.take) } else { t.take };
                self.taken += 1;
                let left = self.filled.len() - self.taken;
                if left * 2 <= self.slots && self.taken >= self.look_at || left == 0 {
                    self.wake();
                }
            }
            // The next one comes soon.
            Some(when) => self.now = *when,
            None => {
                self.wake();
                self.now += t.counter.max(1.0);
            }
        }
    }

    fn wake(&mut self) {
        self.look_at = self.taken + self.slots / 4;
        let Some(s) = self.asleep.pop_front() else { return };
        if self.processors.iter().all(|p| !p.1.is_empty()) {
            // No processor sleeps: what is left is about a change of ranks.
            self.now += self.times.yields;
            return self.make_ready(s, self.now);
        }
        let begun = self.now;
        self.now += self.times.wake;
        self.waking = self.now;
        // What it does not take the receiver it takes the processor of who is woken.
        self.senders[s].rising = (begun + self.times.woken - self.now).max(0.0);
        self.make_ready(s, self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { taking: 220.0, sending: 50.0, yields: 500.0, wake: 1e4, woken: 4e4, ..Times::ALONE };

    /// A long drain is as fast as the slower side, and who wakes and gives way comes on top.
    #[test]
    fn the_slower_side_says_the_time() {
        let quick = Times { yields: 1.0, ..Times::ALONE };
        for (senders, processors, take, send, want) in [
            (8, 1, 200.0, 50.0, 200.0),
            (32, 1, 90.0, 300.0, 300.0),
            (32, 3, 90.0, 300.0, 100.0),
            (4, 8, 50.0, 400.0, 100.0),
        ] {
            let times = Times { take, send, ..quick };
            let said = drain(senders, 5000, 512, processors, times);
            assert!((said / want - 1.0).abs() < 0.05, "{senders} senders on {processors}: {said}, not {want}");
            assert!(drain(senders, 5000, 512, processors, Times { wake: 2e4, woken: 5e4, ..times }) >= said);
        }
    }

    /// What is there before is taken as fast as the receiver can; nobody is needed for it.
    #[test]
    fn a_full_ring_is_drained_alone() {
        assert_eq!(drain(8, 64, 512, 1, TIMES), 200.0);
    }
}
