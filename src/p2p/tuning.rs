//! Which way a payload takes, by size: the numbers of this machine's tuning file ([`crate::base::tuning`]), which the settings override.
//!
//! What a short message asks for is one number for the process. The others are of a pair of ranks, by whether their cores have a common
//! cache ([`crate::lane::pair`]), and are looked up for long messages only.

use crate::base::config::{Config, Way};
use crate::base::processor::Processor;
use crate::base::tuning::{Case, Crossovers, Distance, Given, Rows};
use crate::lane::map::{ANNEX_BYTES, ANNEX_MOST, TURN_BYTES};

/// The numbers as they hold for this process.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The forced way, or `Auto`.
    pub way: Way,
    /// Up to this many bytes a message is sent without waiting for its receive.
    pub eager: usize,
    /// Up to this many bytes it goes through an annex, and the long annex behind it unless another way is forced.
    pub annex: usize,
    /// Readers take lines over.
    pub take_over: bool,
    /// The clock's counter is read between two looks.
    pub look_by_clock: bool,
    /// Messages beside their landing are acknowledged by the answer whatever their length.
    pub owe_all: bool,
    /// From this many nanoseconds on, what a line takes from core to core says that they have no common cache.
    pub apart_ns: u32,
    /// From this many bytes on payloads are copied past the caches.
    pub past: usize,
    /// So many bytes ahead of its stores a copy asks for the lines that it writes. 0: it does not.
    pub ahead: usize,
    pairs: [Crossovers; 2],
    /// What this machine has.
    pub processor: Processor,
    rows: Rows,
    given: Given,
}

impl Tuning {
    /// What is built in, and what the settings say. `crowded`: more ranks than cores, so nobody has time to share copying.
    pub fn new(config: &Config, crowded: bool) -> Tuning {
        Tuning::of(Rows::shipped(), Processor::here(), config, crowded)
    }

    /// What these rows say of a processor, and the settings.
    pub fn of(rows: Rows, processor: Processor, config: &Config, crowded: bool) -> Tuning {
        let given = config.numbers;
        let take_over = given.takes_over(&rows, &processor);
        let case = |distance| Case { processor: &processor, distance, members: 0, crowded, take_over, network: "" };
        let of = |distance| rows.at(&case(distance));
        let mut all = of(Distance::Shared);
        match config.way {
            Way::Auto => {}
            Way::Spool => all.eager = usize::MAX >> 1,
            _ => all.eager = 0,
        }
        given.over(&mut all);
        let eager = all.eager;
        let annex = if config.way == Way::Auto { eager.clamp(ANNEX_BYTES, ANNEX_MOST) } else { ANNEX_BYTES };
        let pairs = Distance::ALL.map(|distance| of_pair(of(distance), config));
        Tuning {
            way: config.way,
            eager,
            annex,
            take_over,
            look_by_clock: all.look_by_clock != 0,
            owe_all: all.owe_all != 0,
            apart_ns: all.apart as u32,
            past: all.past,
            ahead: all.ahead,
            pairs,
            processor,
            rows,
            given,
        }
    }

    /// The numbers of a pair.
    #[inline]
    pub fn pair(&self, distance: Distance) -> &Crossovers {
        &self.pairs[distance as usize]
    }

    /// The numbers of ranks that call together.
    pub fn team(&self, members: usize, crowded: bool, network: &str) -> Crossovers {
        let (processor, take_over) = (&self.processor, self.take_over);
        let mut row =
            self.rows.at(&Case { processor, distance: Distance::Shared, members, crowded, take_over, network });
        self.given.over(&mut row);
        row
    }
}

/// The numbers of a pair of ranks: what these rows say of it, and the settings.
fn of_pair(mut row: Crossovers, config: &Config) -> Crossovers {
    match config.way {
        Way::Auto => {}
        Way::Ring => (row.ring_max, row.turn_max) = (usize::MAX, 0),
        Way::Turn => (row.ring_max, row.turn_max) = (usize::MAX, TURN_BYTES),
        Way::Coop => (row.coop_min, row.turn_max) = (0, 0),
        Way::Spool | Way::Store | Way::Cma => row.turn_max = 0,
    }
    // Who says how far the ring goes says where copying twice pays.
    if let Some(n) = config.numbers.ring_max {
        (row.unawaited, row.unawaited_isend, row.unawaited_exchange) = (n / 4, n, n);
    }
    config.numbers.over(&mut row);
    row.turn_max = row.turn_max.min(TURN_BYTES);
    row
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        Rows::shipped().with(Rows::read(&format!("fmpl tuning 1\n{text}\n")).unwrap())
    }

    /// On a processor that no section of what is built in is about.
    fn tuning(text: &str, config: &Config) -> Tuning {
        let processor = Processor { vendor: "nobody".into(), family: 1, model: 1 };
        Tuning::of(rows(text), processor, config, false)
    }

    fn given(numbers: Given) -> Config {
        Config { numbers, ..Config::default() }
    }

    #[test]
    fn a_pair_has_the_numbers_of_its_distance() {
        let t = tuning("[distance apart]\nring_max = 8k\nunawaited_isend = 1k", &Config::default());
        assert_eq!((t.pair(Distance::Shared).ring_max, t.pair(Distance::Apart).ring_max), (64 << 10, 8 << 10));
        assert_eq!(t.pair(Distance::Apart).unawaited_isend, 1 << 10);
        assert_eq!(t.pair(Distance::Apart).turn_max, 9 << 20);
    }

    #[test]
    fn settings_hold_at_both_distances() {
        let config = given(Given { ring_max: Some(4096), ring_chunk: Some(512), ..Given::default() });
        let t = tuning("[distance apart]\nring_max = 8k\nring_chunk = 4k", &config);
        for d in Distance::ALL {
            let w = t.pair(d);
            assert_eq!((w.ring_max, w.ring_chunk, w.unawaited, w.unawaited_isend), (4096, 512, 1024, 4096));
        }
    }

    #[test]
    fn a_forced_way_is_forced_at_both_distances() {
        for way in [Way::Spool, Way::Ring, Way::Turn, Way::Coop, Way::Store, Way::Cma] {
            let t = tuning(
                "[distance apart]\nring_max = 8k\nturn_max = 1k\ncoop_min = 1G",
                &Config { way, ..Config::default() },
            );
            assert_eq!(t.eager == 0, way != Way::Spool);
            for d in Distance::ALL {
                let w = t.pair(d);
                assert_eq!(w.ring_max == usize::MAX, matches!(way, Way::Ring | Way::Turn));
                assert_eq!(w.turn_max, if way == Way::Turn { TURN_BYTES } else { 0 });
                assert_eq!(w.coop_min == 0, way == Way::Coop);
            }
        }
    }

    #[test]
    fn who_takes_lines_over_is_said_by_the_row_or_by_the_setting() {
        let on = "[any]\ntake_over = on";
        assert!(tuning(on, &Config::default()).take_over);
        assert!(!tuning(on, &given(Given { take_over: Some(0), ..Given::default() })).take_over);
        assert_eq!(tuning(on, &Config::default()).team(2, false, "").coll_allreduce_slices, 512 << 10);
        assert_eq!(
            tuning("[any]\ntake_over = off", &Config::default()).team(2, false, "").coll_allreduce_slices,
            usize::MAX
        );
    }
}
