//! Measuring: block by block in turn over the contestants, round by round over the cases, the raw hop before every block; and the
//! ratios, formed within a round, where the machine's state was the same for all.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::hop::Hop;
use super::session::{self, BLOCK_LIMIT, Contestant, Failure, Session};
use super::{Bench, Case, Figure, Options};

/// Blocks in a round of a contestant that is started anew for each.
const STARTS: usize = 3;

/// What was measured, in the order `[case].rounds[round].blocks[contestant][block][figure]`.
pub struct Measured {
    /// The benchmark's name.
    pub bench: &'static str,
    /// Its figures.
    pub figures: &'static [Figure],
    /// The contestants; the first is FMPL.
    pub names: Vec<String>,
    /// The lines.
    pub cases: Vec<CaseResult>,
    /// What made the raw hop.
    pub hop_by: &'static str,
}

/// One line.
pub struct CaseResult {
    /// What was measured.
    pub case: Case,
    /// One entry a round.
    pub rounds: Vec<Round>,
    /// Contestants that gave no figures within their time.
    pub still: Vec<usize>,
}

/// One round of one line.
#[derive(Default)]
pub struct Round {
    /// Nanoseconds of the raw hop, before each block.
    pub hop: Vec<f64>,
    /// `[contestant][block][figure]`
    pub blocks: Vec<Vec<Vec<f64>>>,
}

/// Ours over the best of the others.
pub struct Ratio {
    /// Of the least values: the median of the rounds.
    pub min: f64,
    /// Of the medians: the median of the rounds.
    pub median: f64,
    /// The contestant with the best median over all rounds.
    pub best: usize,
}

/// Runs all cases.
pub fn measure(
    bench: &Bench,
    cases: Vec<Case>,
    contestants: &[Contestant],
    o: &Options,
    place: &Path,
) -> Result<Measured, String> {
    let ranks = o.ranks.unwrap_or(bench.ranks);
    let cores = cores().len();
    let launches = bench.name == "startup";
    let mut hop = if o.nodes.is_some() { Hop::none() } else { Hop::start(place, contestants.len() > 1)? };
    let mut sessions: Vec<Option<Session>> = Vec::new();
    for (n, who) in contestants.iter().enumerate() {
        if launches || who.one.is_some() {
            sessions.push(None);
            continue;
        }
        note(o, &format!("starting {ranks} ranks of {}", who.name));
        match Session::start(who, place, ranks, ranks > cores, bench.indices, o.nodes) {
            Ok(s) => sessions.push(Some(s)),
            Err(e) if n == 0 => return Err(e),
            Err(e) => {
                note(o, "");
                eprintln!("fmpl bench: left out: {e}");
                sessions.push(None);
            }
        }
    }
    if !launches && contestants.len() == 1 {
        // Everything in it is open or running by now: so nothing is left behind however this process ends. (A rival that stands still is
        // started again.)
        let _ = std::fs::remove_dir_all(place);
    }
    let there = |n: &usize| launches || contestants[*n].one.is_some() || sessions[*n].is_some();
    let take_part: Vec<usize> = (0..contestants.len()).filter(there).collect();
    let mut results: Vec<CaseResult> =
        cases.into_iter().map(|case| CaseResult { case, rounds: Vec::new(), still: Vec::new() }).collect();
    let steps = o.rounds * results.len();
    let mut step = 0;
    for _ in 0..o.rounds {
        for result in &mut results {
            let case = &result.case;
            note(o, &format!("[{:3} %] {} {}", step * 100 / steps, bench.name, case.label));
            let warm = if o.blocks.is_some() { case.warm_blocks.min(1) } else { case.warm_blocks };
            let blocks = o.blocks.unwrap_or(case.blocks);
            let mut round = Round { hop: Vec::new(), blocks: vec![Vec::new(); take_part.len()] };
            for b in 0..warm + blocks {
                for (place_in_row, n) in take_part.iter().enumerate() {
                    let one = contestants[*n].one;
                    if one.is_some() && !(warm..warm + STARTS).contains(&b) || result.still.contains(&place_in_row) {
                        continue;
                    }
                    let limit = if *n == 0 { BLOCK_LIMIT } else { Duration::from_secs(o.patience) };
                    let before = hop.measure()?;
                    let values = match (&mut sessions[*n], one) {
                        (Some(s), _) => s.block(&case.command, limit),
                        (None, Some(one)) => one(case).map_err(Failure::Other),
                        (None, None) if launches => {
                            let ranks = case.x.map_or(ranks, |x| x as usize);
                            let who = &contestants[*n];
                            session::startup(who, ranks, ranks > cores, bench.indices, limit).map(|s| vec![s * 1e9])
                        }
                        (None, None) => Err(Failure::Still),
                    };
                    let values = match values {
                        Ok(values) => values,
                        Err(Failure::Still) if *n != 0 => {
                            note(o, "");
                            let (who, limit) = (&contestants[*n].name, limit.as_secs());
                            eprintln!("fmpl bench: {} {}: {who} stood still for {limit} s", bench.name, case.label);
                            result.still.push(place_in_row);
                            continue;
                        }
                        Err(Failure::Still) => {
                            return Err(format!("{}: no answer within {} s", contestants[*n].name, limit.as_secs()));
                        }
                        Err(Failure::Other(why)) => return Err(why),
                    };
                    if values.len() != bench.figures.len() {
                        return Err(format!(
                            "{}: {} figures in place of {}",
                            bench.name,
                            values.len(),
                            bench.figures.len()
                        ));
                    }
                    if b >= warm {
                        round.hop.extend(before);
                        round.blocks[place_in_row].push(values);
                    }
                }
            }
            result.rounds.push(round);
            step += 1;
            // Of who stood still nothing counts on this line, and for the next ones it is started again.
            for place_in_row in &result.still {
                result.rounds.iter_mut().for_each(|round| round.blocks[*place_in_row].clear());
                let n = take_part[*place_in_row];
                if sessions[n].take_if(|s| s.is_still()).is_some() {
                    sessions[n] =
                        Session::start(&contestants[n], place, ranks, ranks > cores, bench.indices, o.nodes).ok();
                }
            }
        }
    }
    note(o, "");
    Ok(Measured {
        bench: bench.name,
        figures: bench.figures,
        names: take_part.iter().map(|n| contestants[*n].name.clone()).collect(),
        cases: results,
        hop_by: hop.by(),
    })
}

fn note(o: &Options, text: &str) {
    if o.progress() {
        eprint!("\r\x1b[2K{text}");
        let _ = std::io::stderr().flush();
    }
}

/// The cores that this process may use.
pub fn cores() -> Vec<usize> {
    // SAFETY: a zeroed set is valid, and the call fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize).filter(|c| libc::CPU_ISSET(*c, &set)).collect()
    }
}

/// The least of some values.
pub fn least(v: &[f64]) -> f64 {
    v.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The median of some values.
pub fn median(v: &[f64]) -> f64 {
    let mut v = v.to_vec();
    v.sort_by(f64::total_cmp);
    match v.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => v[n / 2],
        n => (v[n / 2 - 1] + v[n / 2]) / 2.0,
    }
}

impl CaseResult {
    fn of_round(&self, round: usize, who: usize, figure: usize) -> Vec<f64> {
        self.rounds[round].blocks[who].iter().map(|b| b[figure]).collect()
    }

    /// All blocks' values of one contestant, as the ranks gave them.
    pub fn values(&self, who: usize, figure: usize) -> Vec<f64> {
        (0..self.rounds.len()).flat_map(|r| self.of_round(r, who, figure)).collect()
    }

    /// Least (of what grows: most) and median, in the figure's unit.
    pub fn summary(&self, who: usize, n: usize, figure: &Figure) -> (f64, f64) {
        let v: Vec<f64> = self.values(who, n).iter().map(|x| x * figure.scale).collect();
        let edge =
            if figure.growth || figure.share { v.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { least(&v) };
        (edge, median(&v))
    }

    /// Ours over the best of the others, when there are others.
    pub fn ratio(&self, figure: usize) -> Option<Ratio> {
        let others = (1..self.rounds.first()?.blocks.len()).filter(|w| !self.still.contains(w));
        others.clone().next()?;
        let over = |of: fn(&[f64]) -> f64| {
            let rounds: Vec<f64> = (0..self.rounds.len())
                .map(|r| {
                    let best = others.clone().map(|w| of(&self.of_round(r, w, figure))).fold(f64::INFINITY, f64::min);
                    of(&self.of_round(r, 0, figure)) / best
                })
                .collect();
            median(&rounds)
        };
        let mid = |w: usize| median(&self.values(w, figure));
        let best = others.clone().min_by(|a, b| mid(*a).total_cmp(&mid(*b)))?;
        Some(Ratio { min: over(least), median: over(median), best })
    }

    /// The raw hop before each block, in nanoseconds.
    pub fn hops(&self) -> Vec<f64> {
        self.rounds.iter().flat_map(|r| r.hop.iter().copied()).collect()
    }

    /// Least and median of the raw hop around this line, in nanoseconds.
    pub fn hop(&self) -> Option<(f64, f64)> {
        let v = self.hops();
        if v.is_empty() { None } else { Some((least(&v), median(&v))) }
    }

    /// Ours over the raw hop: (of the least values, of the medians), each the median of the rounds.
    pub fn over_hop(&self, figure: usize) -> Option<(f64, f64)> {
        self.hop()?;
        let over = |of: fn(&[f64]) -> f64| {
            let rounds: Vec<f64> =
                (0..self.rounds.len()).map(|r| of(&self.of_round(r, 0, figure)) / of(&self.rounds[r].hop)).collect();
            median(&rounds)
        };
        Some((over(least), over(median)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rounds: &[(&[f64], &[f64])]) -> CaseResult {
        let block = |v: &[f64]| v.iter().map(|x| vec![*x]).collect::<Vec<_>>();
        CaseResult {
            case: Case::sized(8, String::new()),
            rounds: rounds
                .iter()
                .map(|(a, b)| Round { hop: vec![50.0, 40.0], blocks: vec![block(a), block(b)] })
                .collect(),
            still: Vec::new(),
        }
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        // The machine was three times slower in the second round, for both.
        let c = line(&[(&[10.0, 12.0, 14.0], &[40.0, 48.0, 56.0]), (&[30.0, 36.0, 42.0], &[120.0, 144.0, 168.0])]);
        let r = c.ratio(0).unwrap();
        assert_eq!((r.min, r.median, r.best), (0.25, 0.25, 1));
        assert_eq!(c.hop(), Some((40.0, 45.0)));
    }

    #[test]
    fn who_stood_still_is_no_rival() {
        let mut c = line(&[(&[10.0], &[40.0]), (&[30.0], &[])]);
        assert!(c.ratio(0).is_some());
        c.still.push(1);
        assert!(c.ratio(0).is_none());
        c.rounds.iter_mut().for_each(|r| r.blocks.push(vec![vec![20.0]]));
        let r = c.ratio(0).unwrap();
        assert_eq!((r.min, r.best), (1.0, 2));
    }

    #[test]
    fn median_of_even_and_odd() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
