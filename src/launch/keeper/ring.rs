//! Which keeper has a value, and how it is found: keepers have numbers, from 0 on, and each knows the addresses of a
//! few others.
//!
//! A key belongs to the keeper of the number *digest of the key mod number of keepers*. A keeper knows, by levels,
//! those that are d · 64^level further than itself, d from 1 to 63, round the ring: some 250 addresses for a million
//! keepers. So each word to the one that is nearest before the goal takes a digit off the distance, and a value is
//! found by as many words as the number of keepers has digits to the base 64, at most. Who has asked a keeper once goes
//! to it directly afterwards.
//!
//! *How they come to be known.* With its number a keeper is told of its successor, which is the first of level 0. Whom
//! it knows furthest on a level it asks for what that knows of the same level, and knows twice as many: a word for each
//! doubling, and for all keepers alike.

use crate::base::key::digest;

/// Keepers of a level, and one.
const BASE: u64 = 64;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// This keeper's number.
    index: u64,
    /// Keepers; 0: their numbers are not dealt out yet.
    of: u64,
    /// Addresses by level and multiple, without gaps.
    levels: Vec<Vec<String>>,
    /// All are known that will be.
    is_known: bool,
}

/// What is to be asked of whom, so that more are known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: String,
    /// It is asked for so many of this level; what it says belongs there or, its first only, to the next.
    pub(super) level: usize,
    pub(super) most: usize,
    begins_next: bool,
}

impl Ring {
    /// The numbers are dealt out: this keeper's, how many there are, and where the next one is.
    pub(super) fn number(&mut self, index: u64, of: u64, next: String) {
        (self.index, self.of) = (index, of);
        self.levels = if of > 1 { vec![vec![next]] } else { Vec::new() };
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.of > 0
    }

    /// Is it of use on the way of others, who would go from one to the next otherwise?
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(super) fn all_are_known(&mut self) {
        self.is_known = true;
    }

    /// The keeper of a key. The pieces of a value are kept by one.
    pub(super) fn keeper_of(&self, key: &str) -> u64 {
        let whole = key.split('~').next().unwrap_or(key);
        let word: [u8; 8] = std::array::from_fn(|i| digest(whole.as_bytes())[i]);
        u64::from_le_bytes(word) % self.of.max(1)
    }

    pub(super) fn is_mine(&self, keeper: u64) -> bool {
        keeper == self.index
    }

    /// The number and the address of the one nearest to this keeper, and not behind it; never this one itself, nor one
    /// that does not answer.
    pub(super) fn towards(&self, keeper: u64, answers: impl Fn(&str) -> bool) -> Option<(u64, &str)> {
        let distance = self.distance(keeper);
        let mut step = BASE.pow(self.levels.len() as u32);
        for level in self.levels.iter().rev() {
            step /= BASE;
            let times = (distance / step).min(level.len() as u64) as usize;
            if let Some(k) = level[..times].iter().rposition(|at| answers(at)) {
                return Some(((self.index + (k as u64 + 1) * step) % self.of, &level[k]));
            }
        }
        None
    }

    /// The one that keeps the same values once more, for the case that a keeper dies; `None`: there is one only.
    pub(super) fn second(&self, keeper: u64) -> Option<u64> {
        (self.of > 1).then(|| (keeper + 1) % self.of)
    }

    fn distance(&self, keeper: u64) -> u64 {
        (keeper + self.of - self.index) % self.of
    }

    /// What is known of a level.
    pub(super) fn level(&self, level: usize) -> &[String] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Keepers of a level, as soon as all are known.
    fn wanted(&self, level: usize) -> usize {
        let step = BASE.pow(level as u32);
        ((self.of - 1) / step).min(BASE - 1) as usize
    }

    /// What to ask next; `None`: all are known.
    pub(super) fn next_step(&self) -> Option<Step> {
        let level = self.levels.len().checked_sub(1)?;
        let begins_next = self.levels[level].len() == self.wanted(level);
        let at = self.levels[level].last()?.clone();
        let most = if begins_next { 1 } else { self.wanted(level) - self.levels[level].len() };
        (!begins_next || self.wanted(level + 1) > 0).then_some(Step { at, level, most, begins_next })
    }

    /// What was answered. `false`: it does not know enough itself yet.
    pub(super) fn learn(&mut self, step: &Step, said: &[String]) -> bool {
        let Some(first) = said.first() else { return false };
        if step.begins_next {
            self.levels.push(vec![first.clone()]);
        } else {
            self.levels[step.level].extend(said.iter().take(step.most).cloned());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are the addresses of these.
    fn rings(of: u64) -> Vec<Ring> {
        let ring = |index| {
            let mut ring = Ring::default();
            ring.number(index, of, ((index + 1) % of).to_string());
            ring
        };
        (0..of).map(ring).collect()
    }

    fn number(at: &str) -> usize {
        at.parse().unwrap()
    }

    /// Lets all ask in turn until all know all; how many words each needed at most.
    fn learned(rings: &mut [Ring]) -> usize {
        let (mut words, mut most) = (vec![0; rings.len()], 0);
        loop {
            let mut asks = false;
            for i in 0..rings.len() {
                let Some(step) = rings[i].next_step() else { continue };
                asks = true;
                let said = rings[number(&step.at)].level(step.level).to_vec();
                words[i] += 1;
                rings[i].learn(&step, &said);
                most = most.max(words[i]);
            }
            if !asks {
                return most;
            }
        }
    }

    #[test]
    fn few_are_known_and_all_are_found() {
        for of in [1u64, 2, 3, 63, 64, 65, 500, 4096, 4097, 5000] {
            let mut rings = rings(of);
            let words = learned(&mut rings);
            let digits = (0..).take_while(|d| BASE.pow(*d) < of).count();
            assert!(words <= 6 * digits + digits, "{of}: {words} words");
            for from in (0..of).step_by(1 + of as usize / 40) {
                let known: usize = rings[from as usize].levels.iter().map(Vec::len).sum();
                assert!(known <= 63 * digits, "{known}");
                for goal in (0..of).step_by(1 + of as usize / 300) {
                    let (mut at, mut hops) = (from, 0);
                    while at != goal {
                        let (next, address) = rings[at as usize].towards(goal, |_| true).unwrap();
                        assert_eq!(next as usize, number(address));
                        assert!(rings[next as usize].distance(goal) < rings[at as usize].distance(goal));
                        (at, hops) = (next, hops + 1);
                    }
                    assert!(hops <= digits, "{hops} from {from} to {goal} of {of}");
                }
            }
        }
    }

    /// Whoever knows its successor only gets there all the same.
    #[test]
    fn the_way_does_not_depend_on_what_is_known() {
        let rings = rings(10);
        assert_eq!(rings[7].towards(3, |_| true), Some((8, "8")));
        assert_eq!(rings[3].towards(3, |_| true), None);
        assert_eq!(rings[9].towards(0, |_| true), Some((0, "0")));
    }

    #[test]
    fn who_does_not_answer_is_gone_round() {
        let mut rings = rings(200);
        learned(&mut rings);
        assert_eq!(rings[0].towards(130, |_| true), Some((128, "128")));
        assert_eq!(rings[0].towards(130, |at| at != "128"), Some((64, "64")));
        assert_eq!(rings[0].towards(130, |at| at != "128" && at != "64"), Some((63, "63")));
        assert_eq!(rings[0].towards(2, |at| at != "1" && at != "2"), None);
        assert_eq!((rings[0].second(199), rings[0].second(3)), (Some(0), Some(4)));
    }

    #[test]
    fn keys_spread_evenly_and_pieces_stay_together() {
        let ring = &rings(100)[0];
        let mut counts = [0; 100];
        (0..20_000).for_each(|r| counts[ring.keeper_of(&format!("fmpl-card-{r}")) as usize] += 1);
        assert!(counts.iter().all(|c| (100..350).contains(c)), "{counts:?}");
        assert_eq!(ring.keeper_of("value-7"), ring.keeper_of("value-7~12"));
    }
}
