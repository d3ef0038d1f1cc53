//! Start-up: from the launcher's command line to the end of all ranks, which init, meet once and finalize.

use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "startup",
    about: "the whole life of a job that inits, meets once and finalizes: 2 and 32 ranks",
    ranks: 2,
    indices: 1024,
    figures: &[Figure::time("launch to end", "ms", 1e-6)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let counts = if o.counts.is_empty() { vec![2, 32] } else { o.counts.clone() };
    counts.into_iter().map(|n| Case::counted(format!("{n} ranks"), n, format!("startup {n}")).blocks(3)).collect()
}
