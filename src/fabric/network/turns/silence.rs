//! For how long a peer has been silent that should have a word for this side, and when that is late.
//!
//! Time counts in which somebody looks, and a peer is late only when it was asked and has had time to answer since: what a process finds that did not
//! run for long, was stopped for instance, is what the peer said meanwhile, which nobody has taken in yet.

/// From a look to the next so much counts, at least and at most: a quarter of the time after which the peer is late. Who has not looked for longer asks
/// anew.
const GAP_NS: [u64; 2] = [500_000_000, 1_000_000_000];
/// A peer that has said nothing in this state is asked after so long, or a quarter of that time.
const FIRST_NS: u64 = 1_000_000_000;
/// From a question to the next while it may be silent, at least and at most: a share of that time. Those who wait for places may be many.
const AGAIN_NS: [u64; 2] = [100_000_000, 2_000_000_000];
const AGAIN: u64 = 16;

/// Of what is counted in nanoseconds: it has not been. (Each link has a silence, so there is no place beside it that says so.)
const NEVER: u64 = u64::MAX;

/// The silence of a peer, since its last word or since the state of its connection began.
#[derive(Clone, Copy)]
pub(super) struct Silence {
    looked_ns: u64,
    /// So long somebody has looked.
    for_ns: u64,
    /// After so much of that it was asked first, since this process did not run for long; or [`NEVER`].
    asked: u64,
    /// When it was asked last.
    asked_ns: u64,
    /// It has said something in this state.
    was_heard: bool,
    /// It was late in this state, and has said nothing since.
    was_late: bool,
    /// Since then others want its place, or [`NEVER`].
    wanted_ns: u64,
}

/// A peer that is late, and whose place others want, has so long to say that it has just gone on.
const GRACE_NS: u64 = 500_000_000;

impl Default for Silence {
    fn default() -> Silence {
        Silence::since(0)
    }
}

impl Silence {
    /// A state begins.
    pub fn since(now: u64) -> Silence {
        Silence {
            looked_ns: now,
            for_ns: 0,
            asked: NEVER,
            asked_ns: 0,
            was_heard: false,
            was_late: false,
            wanted_ns: NEVER,
        }
    }
    /// The peer has said something.
    pub fn ends(&mut self, now: u64) {
        *self = Silence { was_heard: true, ..Silence::since(now) };
    }
    /// Somebody looks.
    pub fn look(&mut self, now: u64, patience_ns: u64) {
        let (gap, most) = (now.saturating_sub(self.looked_ns), (patience_ns / 4).clamp(GAP_NS[0], GAP_NS[1]));
        if gap > most {
            self.asked = NEVER;
        }
        self.for_ns += gap.min(most);
        self.looked_ns = self.looked_ns.max(now);
    }
    /// Is it to be asked for a word now? `at_once`: it was silent before. Then it counts as asked.
    pub fn asks(&mut self, now: u64, patience_ns: u64, at_once: bool) -> bool {
        let quarter = patience_ns / 4;
        let from = if self.was_heard { quarter } else { quarter.min(FIRST_NS) };
        let again = (patience_ns / AGAIN).clamp(AGAIN_NS[0], AGAIN_NS[1]);
        let asks =
            (at_once || self.for_ns >= from) && (self.asked == NEVER || now.saturating_sub(self.asked_ns) > again);
        if asks {
            self.is_asked(now);
        }
        asks
    }
    /// What was said to the peer now is answered by whoever lives.
    pub fn is_asked(&mut self, now: u64) {
        self.asked_ns = now;
        self.asked = self.asked.min(self.for_ns);
    }
    /// Is it late? Then it is tried again from `again_ns` on, and is late again after as long.
    pub fn is_late(&mut self, patience_ns: u64, again_ns: u64) -> bool {
        let had_time = self.asked != NEVER && self.for_ns - self.asked >= patience_ns / 4;
        let late = self.for_ns > patience_ns && had_time;
        if late {
            *self = Silence {
                was_late: true,
                was_heard: self.was_heard,
                wanted_ns: self.wanted_ns,
                ..Silence::since(again_ns)
            };
        }
        late
    }
    /// Others want its place: was it late in this state, and has it been asked once more since, in vain?
    pub fn gives_way(&mut self, now: u64) -> bool {
        if self.was_late && self.wanted_ns == NEVER {
            (self.wanted_ns, self.asked) = (now, NEVER);
        }
        self.wanted_ns != NEVER && now.saturating_sub(self.wanted_ns) > GRACE_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    /// Looks each so often until the peer is late; when that is, and how often it was asked.
    fn until_late(silence: &mut Silence, from: u64, every: u64, patience: u64) -> (u64, u32) {
        let (mut now, mut asked) = (from, 0);
        loop {
            now += every;
            silence.look(now, patience);
            if silence.is_late(patience, now + 2 * SECOND) {
                return (now, asked);
            }
            asked += u32::from(silence.asks(now, patience, false));
            assert!(now < from + 20 * patience, "it is never late");
        }
    }

    #[test]
    fn a_silent_peer_is_late_after_it_was_asked_many_times() {
        for (patience, every) in [(SECOND, 5 * MS), (SECOND, 250 * MS), (3 * SECOND, 20 * MS), (30 * SECOND, 250 * MS)]
        {
            let mut silence = Silence::since(900 * SECOND);
            let (late, asked) = until_late(&mut silence, 900 * SECOND, every, patience);
            assert!(late - 900 * SECOND <= patience + patience / 4 + 2 * every, "after {late}");
            assert!(asked >= 3, "asked {asked} times in {patience}");
            assert!(
                !silence.gives_way(late) && !silence.gives_way(late + GRACE_NS) && silence.gives_way(late + SECOND)
            );
            // Again when it was tried for as long.
            let (again, asked) = until_late(&mut silence, late, every, patience);
            assert!(again - late > 2 * SECOND + patience && asked >= 3);
            silence.ends(again);
            assert!(!silence.gives_way(again) && !silence.gives_way(again + SECOND));
        }
    }

    /// A process that was stopped asks before it says that others are.
    #[test]
    fn time_in_which_nobody_looks_is_no_silence() {
        for patience in [SECOND, 4 * SECOND, 30 * SECOND] {
            let (mut silence, mut now) = (Silence::since(900 * SECOND), 900 * SECOND);
            let looks = |silence: &mut Silence, now: u64| {
                silence.look(now, patience);
                let late = silence.is_late(patience, now);
                (late, silence.asks(now, patience, false))
            };
            // It looks for a while, in which it asks, and is stopped then.
            let mut asked = false;
            while now < 900 * SECOND + patience * 9 / 10 {
                now += 5 * MS;
                let (late, asks) = looks(&mut silence, now);
                assert!(!late);
                asked |= asks;
            }
            assert!(asked);
            now += 1000 * SECOND;
            assert_eq!(looks(&mut silence, now), (false, true), "what the peer has answered is not taken in yet");
            now += patience / 8;
            assert!(!looks(&mut silence, now).0);
            silence.ends(now);
            assert!(!looks(&mut silence, now + patience / 8).0);
        }
    }
}
