//! Measuring: block by block in turn over the contestants, round by round over the cases, the raw hop before and after every block;
//! and what came of it, apart by the state of the machine that the hops tell.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use fmpl::base::system::cpus::CpuSet;

use super::hop::Hop;
use super::session::{self, BLOCK_LIMIT, Contestant, Failure, Session};
use super::state::State;
use super::{Bench, Case, Figure, Options};

/// Blocks in a round of a contestant that is started anew for each.
const STARTS: usize = 3;

/// What was measured of one benchmark.
pub struct Measured {
    /// The benchmark's name.
    pub bench: &'static str,
    /// What it measures.
    pub about: &'static str,
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
    /// `[contestant][block]`
    pub blocks: Vec<Vec<Block>>,
    /// Contestants that gave no figures within their time.
    pub still: Vec<usize>,
}

/// What one block gave.
#[derive(Clone)]
pub struct Block {
    /// Nanoseconds of the raw hop before and after it.
    pub hop: Option<[f64; 2]>,
    /// Its figures.
    pub values: Vec<f64>,
}

/// Ours over the best of the others, in one state.
#[derive(Clone, Copy)]
pub struct Ratio {
    /// Of the least values.
    pub min: f64,
    /// Of the medians.
    pub median: f64,
    /// The contestant with the best median.
    pub best: usize,
}

/// Runs all cases of these benchmarks, in every round one after the other.
pub fn measure(
    plans: Vec<(&Bench, Vec<Case>)>,
    contestants: &[Contestant],
    o: &Options,
    place: &Path,
) -> Result<Vec<Measured>, String> {
    let mut field = Field::start(&plans, contestants, o, place)?;
    let names: Vec<String> = field.contestants.iter().map(|c| c.name.clone()).collect();
    let result = |case| CaseResult { case, blocks: vec![Vec::new(); names.len()], still: Vec::new() };
    let mut all: Vec<Measured> = Vec::new();
    for (bench, cases) in plans {
        let (names, hop_by) = (names.clone(), field.hop.by());
        let cases = cases.into_iter().map(result).collect();
        all.push(Measured { bench: bench.name, about: bench.about, figures: bench.figures, names, cases, hop_by });
    }
    let lines: usize = all.iter().map(|m| m.cases.len()).sum();
    for round in 0..o.rounds {
        let places = all.iter_mut().flat_map(|m| {
            let what = (m.bench, m.figures.len());
            m.cases.iter_mut().map(move |c| (what, c))
        });
        for (n, (what, result)) in places.enumerate() {
            let share = (round * lines + n) * 100 / (o.rounds * lines);
            note(o, &format!("[{share:3} %] {} {}", what.0, result.case.label));
            field.line(what, result, round == 0)?;
        }
    }
    note(o, "");
    Ok(all)
}

/// Who takes part, with the ranks of each, and the raw hop beside them.
struct Field<'a> {
    contestants: Vec<&'a Contestant>,
    sessions: Vec<Option<Session>>,
    hop: Hop,
    /// The hop measured last, behind which nothing has been done yet.
    last: Option<f64>,
    ranks: usize,
    indices: i32,
    o: &'a Options,
    place: &'a Path,
}

impl<'a> Field<'a> {
    /// Starts the ranks of all; rivals that do not start are left out.
    fn start(
        plans: &[(&Bench, Vec<Case>)],
        contestants: &'a [Contestant],
        o: &'a Options,
        place: &'a Path,
    ) -> Result<Field<'a>, String> {
        let launches = plans.iter().any(|p| p.0.name == super::startup::BENCH.name);
        let mut all = plans.iter().map(|p| p.0.ranks);
        let ranks = match (o.ranks, all.next().unwrap_or(2)) {
            (Some(n), _) => n,
            (None, n) if all.all(|m| m == n) => n,
            _ => return Err("benchmarks of different numbers of ranks: --ranks says how many".into()),
        };
        let indices = plans.iter().map(|p| p.0.indices).max().unwrap_or(64);
        let hop = if o.nodes.is_some() { Hop::none() } else { Hop::start(place, contestants.len() > 1)? };
        let (sessions, last) = (Vec::new(), None);
        let mut field = Field { contestants: Vec::new(), sessions, hop, last, ranks, indices, o, place };
        for (n, who) in contestants.iter().enumerate() {
            note(o, &format!("starting {ranks} ranks of {}", who.name));
            let session = match field.ranks_of(who, launches) {
                Ok(session) => session,
                Err(e) if n == 0 => return Err(e),
                Err(e) => {
                    note(o, "");
                    eprintln!("fmpl bench: left out: {e}");
                    continue;
                }
            };
            field.contestants.push(who);
            field.sessions.push(session);
        }
        if !launches && contestants.len() == 1 {
            // Everything in it is open or running by now: so nothing is left behind however this process ends. (A rival that stands
            // still is started again.)
            let _ = std::fs::remove_dir_all(place);
        }
        Ok(field)
    }

    /// The ranks of one that has ranks that stay.
    fn ranks_of(&self, who: &Contestant, launches: bool) -> Result<Option<Session>, String> {
        if launches || who.one.is_some() {
            return Ok(None);
        }
        Session::start(who, self.place, self.ranks, self.crowded(), self.indices, self.o.nodes).map(Some)
    }

    fn crowded(&self) -> bool {
        self.ranks > cores().len()
    }

    /// A round's blocks of one line, by turns.
    fn line(&mut self, what: (&str, usize), result: &mut CaseResult, first: bool) -> Result<(), String> {
        let case = result.case.clone();
        // What the first round has warmed stays so: nobody's memory is given back.
        let warm = match self.o.blocks {
            _ if !first => 0,
            Some(_) => case.warm_blocks.min(1),
            None => case.warm_blocks,
        };
        for b in 0..warm + self.o.blocks.unwrap_or(case.blocks) {
            for n in 0..self.contestants.len() {
                let anew = self.contestants[n].one.is_some();
                if anew && !(warm..warm + STARTS).contains(&b) || result.still.contains(&n) {
                    continue;
                }
                match self.block(what, &case, n)? {
                    Some(block) if b >= warm => result.blocks[n].push(block),
                    Some(_) => {}
                    None => result.still.push(n),
                }
            }
        }
        // Of who stood still nothing counts on this line, and for the next ones it is started again.
        for n in &result.still {
            result.blocks[*n].clear();
            if self.sessions[*n].take_if(|s| s.is_still()).is_some() {
                self.sessions[*n] = self.ranks_of(self.contestants[*n], false).ok().flatten();
            }
        }
        Ok(())
    }

    /// One block of one contestant, between two hops; `None`: it stood still.
    fn block(&mut self, (bench, figures): (&str, usize), case: &Case, n: usize) -> Result<Option<Block>, String> {
        let who = self.contestants[n];
        let limit = if n == 0 { BLOCK_LIMIT } else { Duration::from_secs(self.o.patience) };
        let before = match self.last.take() {
            Some(hop) => Some(hop),
            None => self.hop.measure()?,
        };
        let values = match (&mut self.sessions[n], who.one) {
            (Some(s), _) => s.block(case, limit),
            (None, Some(one)) => one(case).map_err(Failure::Other),
            (None, None) if bench == super::startup::BENCH.name => {
                let ranks = case.x.map_or(self.ranks, |x| x as usize);
                session::startup(who, ranks, ranks > cores().len(), self.indices, limit).map(|s| vec![s * 1e9])
            }
            (None, None) => Err(Failure::Still),
        };
        self.last = self.hop.measure()?;
        match values {
            Ok(values) if values.len() == figures => {
                Ok(Some(Block { hop: before.zip(self.last).map(|(a, b)| [a, b]), values }))
            }
            Ok(values) => Err(format!("{bench}: {} figures in place of {figures}", values.len())),
            Err(Failure::Still) if n != 0 => {
                note(self.o, "");
                let (who, limit) = (&who.name, limit.as_secs());
                eprintln!("fmpl bench: {bench} {}: {who} stood still for {limit} s", case.label);
                Ok(None)
            }
            Err(Failure::Still) => Err(format!("{}: no answer within {} s", who.name, limit.as_secs())),
            Err(Failure::Other(why)) => Err(why),
        }
    }
}

fn note(o: &Options, text: &str) {
    if o.progress() {
        eprint!("\r\x1b[2K{text}");
        let _ = std::io::stderr().flush();
    }
}

/// The cores that this process may use.
pub fn cores() -> Vec<usize> {
    CpuSet::allowed().map_or(vec![0], |set| set.cpus())
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
    /// The blocks of one contestant in a state; without a state all, those too in which it changed.
    fn blocks(&self, who: usize, state: Option<State>) -> impl Iterator<Item = &Block> {
        self.blocks[who].iter().filter(move |b| state.is_none() || State::of(b.hop) == state)
    }

    /// Their number.
    pub fn count(&self, who: usize, state: Option<State>) -> usize {
        self.blocks(who, state).count()
    }

    /// Blocks of all contestants that are of no state, since it changed meanwhile.
    pub fn set_aside(&self) -> usize {
        self.blocks.iter().flatten().filter(|b| State::of(b.hop).is_none()).count()
    }

    /// The states that were met.
    pub fn states(&self) -> Vec<State> {
        let met = |s: &State| (0..self.blocks.len()).any(|w| self.count(w, Some(*s)) > 0);
        State::ALL.into_iter().filter(met).collect()
    }

    /// The state of most of the blocks.
    fn commonest(&self) -> State {
        let blocks = |s: &State| (0..self.blocks.len()).map(|w| self.count(w, Some(*s))).sum::<usize>();
        State::ALL.into_iter().rev().max_by_key(blocks).unwrap_or(State::Untold)
    }

    /// The blocks' values of one contestant, as the ranks gave them.
    pub fn values(&self, who: usize, figure: usize, state: Option<State>) -> Vec<f64> {
        self.blocks(who, state).map(|b| b.values[figure]).collect()
    }

    /// Least (of what grows: most) and median, in the figure's unit.
    pub fn summary(&self, who: usize, n: usize, figure: &Figure, state: Option<State>) -> (f64, f64) {
        let v: Vec<f64> = self.values(who, n, state).iter().map(|x| x * figure.scale).collect();
        let edge =
            if figure.growth || figure.share { v.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { least(&v) };
        (edge, median(&v))
    }

    /// The median of the first figure in the state of most blocks, by which ways of our own are compared.
    pub fn usual(&self, who: usize, figure: &Figure) -> f64 {
        self.summary(who, 0, figure, Some(self.commonest())).1
    }

    /// Ours over the best of the others in a state, when there are others.
    pub fn ratio(&self, figure: usize, state: State) -> Option<Ratio> {
        let state = Some(state);
        let others: Vec<usize> = (1..self.blocks.len()).filter(|w| self.count(*w, state) > 0).collect();
        if self.count(0, state) == 0 {
            return None;
        }
        let of = |w: usize, what: fn(&[f64]) -> f64| what(&self.values(w, figure, state));
        let over =
            |what: fn(&[f64]) -> f64| of(0, what) / others.iter().map(|w| of(*w, what)).fold(f64::INFINITY, f64::min);
        let best = others.iter().copied().min_by(|a, b| of(*a, median).total_cmp(&of(*b, median)))?;
        Some(Ratio { min: over(least), median: over(median), best })
    }

    /// The raw hop beside the blocks of a state, or of all, in nanoseconds.
    pub fn hops(&self, state: Option<State>) -> Vec<f64> {
        (0..self.blocks.len()).flat_map(|w| self.blocks(w, state)).filter_map(|b| b.hop).flatten().collect()
    }

    /// Least and median of the raw hop around this line, in nanoseconds.
    pub fn hop(&self, state: Option<State>) -> Option<(f64, f64)> {
        let v = self.hops(state);
        if v.is_empty() { None } else { Some((least(&v), median(&v))) }
    }

    /// Ours over the raw hop: (of the least values, of the medians).
    pub fn over_hop(&self, figure: usize, state: State) -> Option<(f64, f64)> {
        let (hop, v) = (self.hop(Some(state))?, self.values(0, figure, Some(state)));
        Some((least(&v) / hop.0, median(&v) / hop.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: [f64; 2] = [36.0, 38.0];
    const FAR: [f64; 2] = [210.0, 214.0];

    fn line(contestants: &[&[([f64; 2], f64)]]) -> CaseResult {
        let block = |b: &([f64; 2], f64)| Block { hop: Some(b.0), values: vec![b.1] };
        CaseResult {
            case: Case::sized(8, String::new()),
            blocks: contestants.iter().map(|v| v.iter().map(block).collect()).collect(),
            still: Vec::new(),
        }
    }

    #[test]
    fn ratios_are_of_one_state() {
        // Ours met mostly near cores, the other mostly far ones: all blocks together would say 0.06.
        let c = line(&[
            &[(NEAR, 10.0), (NEAR, 12.0), (NEAR, 14.0), (FAR, 100.0)],
            &[(NEAR, 40.0), (FAR, 160.0), (FAR, 200.0), (FAR, 240.0)],
        ]);
        let near = c.ratio(0, State::Near).unwrap();
        assert_eq!((near.min, near.median, near.best), (0.25, 0.3, 1));
        let far = c.ratio(0, State::Far).unwrap();
        assert_eq!((far.min, far.median), (0.625, 0.5));
        assert!(c.ratio(0, State::Untold).is_none());
        assert_eq!(c.hop(Some(State::Near)), Some((36.0, 37.0)));
        assert_eq!(c.over_hop(0, State::Far), Some((100.0 / 210.0, 100.0 / 212.0)));
    }

    #[test]
    fn a_block_in_which_the_hop_changed_is_set_aside() {
        let c = line(&[&[(NEAR, 10.0), ([36.0, 210.0], 70.0)], &[([210.0, 36.0], 70.0), (NEAR, 40.0)]]);
        assert_eq!(c.set_aside(), 2);
        assert_eq!(c.values(0, 0, Some(State::Near)), [10.0]);
        assert_eq!(c.values(0, 0, None), [10.0, 70.0]);
        assert_eq!(c.ratio(0, State::Near).unwrap().median, 0.25);
        assert!(c.ratio(0, State::Far).is_none());
        assert_eq!(c.commonest(), State::Near);
    }

    #[test]
    fn who_has_no_blocks_is_no_rival() {
        let mut c = line(&[&[(NEAR, 10.0)], &[]]);
        assert!(c.ratio(0, State::Near).is_none());
        c.blocks.push(vec![Block { hop: Some(NEAR), values: vec![20.0] }]);
        let r = c.ratio(0, State::Near).unwrap();
        assert_eq!((r.min, r.best), (0.5, 2));
    }

    #[test]
    fn median_of_even_and_odd() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
