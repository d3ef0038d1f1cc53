//! Strided to strided against contiguous to contiguous: 1 MB in runs of 4 KB, as a sub-matrix has them.

use super::pingpong::{BENCH as PINGPONG, SEPARATE, STRIDED, case};
use super::{Bench, Case, Options};

pub static BENCH: Bench = Bench {
    name: "strided",
    about: "one-way time of 1 MB in runs of 4 KB on both sides (--strided RUN for others), beside the contiguous one",
    ranks: 2,
    indices: 64,
    figures: PINGPONG.figures,
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let run = o.strided.unwrap_or(4096);
    let sizes = if o.sizes.is_empty() { vec![1 << 20] } else { o.sizes.clone() };
    let mut cases = Vec::new();
    for n in sizes.into_iter().filter(|n| n % run == 0) {
        cases.push(case(o, n, SEPARATE, 0).named("contiguous", n));
        cases.push(case(o, n, STRIDED, run).named("strided", n));
    }
    cases
}
