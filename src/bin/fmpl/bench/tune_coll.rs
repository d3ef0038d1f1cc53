//! `fmpl bench tune-coll`: the crossovers of the ways that collective calls can take on this machine, for a number of ranks. Each call
//! runs with every way forced, interleaved.

use std::path::Path;

use super::against::ours;
use super::collective::{ALLGATHER, ALLREDUCE, BARRIER, BCAST, REDUCE, SCAN, plan};
use super::measure::{cores, measure};
use super::tune::crossover;
use super::{Bench, Options, size_text};

pub const ABOUT: &str =
    "the crossovers of the ways of collective calls, for a tuning file (--ranks); with --nodes of those between nodes";

/// Measures, prints the comparison and the settings.
pub fn main(o: &Options, place: &Path) -> Result<(), String> {
    let mut o = o.clone();
    o.rounds = o.rounds.min(2);
    if o.sizes.is_empty() && o.nodes.is_some() {
        // From a packet to where a way that pipelines has shown it. (On four nodes of software devices, with two emulated processors for all,
        // a call of 4 KiB takes 30 to 80 ms.)
        o.sizes = [10, 13, 15, 17, 19].map(|b| 1 << b).to_vec();
    }
    if o.sizes.is_empty() {
        o.sizes = (7..=11).map(|b| 1usize << (2 * b)).chain([1 << 15, 1 << 17, 1 << 19, 1 << 21, 1 << 23]).collect();
        o.sizes.sort_unstable();
    }
    if let Some(nodes) = o.nodes {
        return between(o, place, nodes);
    }
    let ranks = o.ranks.unwrap_or(2);
    let found = measured(&o, place)?;
    println!("\nNumbers for this machine and {ranks} ranks, for a tuning file (the same for all ranks):");
    println!("[members {ranks}{}]", if ranks > cores().len() { ", crowded on" } else { "" });
    for (name, from) in found {
        match from {
            Some(n) => println!("{name} = {n:<10} # {}", size_text(n)),
            None => println!("{name} = never"),
        }
    }
    let barrier = times(&o, place, &BARRIER, "FMPL_COLL_BARRIER", &["flat", "groups"])?;
    let way = if barrier[0][0] <= barrier[1][0] { "flat" } else { "groups" };
    println!("export FMPL_COLL_BARRIER={way} # of so many ranks");
    Ok(())
}

/// The crossovers of so many ranks on a node, by their names in tuning files; `None`: there is none within the sizes measured.
pub fn measured(o: &Options, place: &Path) -> Result<Vec<(&'static str, Option<usize>)>, String> {
    let shared = if o.ranks.unwrap_or(2) > cores().len() { "pull" } else { "coop" };
    let bcast = times(o, place, &BCAST, "FMPL_COLL_BCAST", &["cells", shared])?;
    let reduce = times(o, place, &REDUCE, "FMPL_COLL_REDUCE", &["cells", "pull"])?;
    let allreduce = times(o, place, &ALLREDUCE, "FMPL_COLL_ALLREDUCE", &["cells", "root", "slices", "pull"])?;
    let gather = times(o, place, &ALLGATHER, "FMPL_COLL_EXCHANGE", &["cells", "pull"])?;
    let scan = times(o, place, &SCAN, "FMPL_COLL_SCAN", &["cells", "chain"])?;
    let cells = best(&allreduce[0], &allreduce[1]);
    let slices = crossover(&cells, &best(&allreduce[2], &allreduce[3]));
    let pull = crossover(&best(&cells, &allreduce[2]), &allreduce[3]);
    // What begins to pay no earlier than the next way never does.
    let slices = if slices >= pull { o.sizes.len() } else { slices };
    let root = crossover(&allreduce[0], &allreduce[1]);
    // As above.
    let root = if root >= slices.min(pull) { o.sizes.len() } else { root };
    // Fewer sizes than of the others.
    let exchange = Some(crossover(&gather[0], &gather[1])).filter(|n| *n < gather[0].len()).unwrap_or(o.sizes.len());
    let size = |from: usize| o.sizes.get(from).copied();
    Ok(vec![
        ("coll_bcast_pull", size(crossover(&bcast[0], &bcast[1]))),
        ("coll_reduce_pull", size(crossover(&reduce[0], &reduce[1]))),
        ("coll_allreduce_root", size(root)),
        ("coll_allreduce_slices", size(slices)),
        ("coll_allreduce_pull", size(pull)),
        ("coll_exchange_pull", size(exchange)),
        ("coll_scan_chain", size(crossover(&scan[0], &scan[1]))),
    ])
}

/// The same for what goes between nodes.
fn between(mut o: Options, place: &Path, nodes: u32) -> Result<(), String> {
    o.ranks = Some(o.ranks.unwrap_or(nodes as usize));
    // Every way of both calls at every size: in a minute or two on devices of software too, if no more than this is asked for.
    o.rounds = 1;
    o.blocks = o.blocks.or(Some(2));
    let ways = ["tree", "ring", "chain", "multicast"];
    let bcast = times(&o, place, &BCAST, "FMPL_COLL_FAR_BCAST", &ways)?;
    let allreduce = times(&o, place, &ALLREDUCE, "FMPL_COLL_FAR_ALLREDUCE", &["doubling", "halving"])?;
    println!(
        "\nSettings for {nodes} nodes, the same for all ranks (multicast is another of the four where no group can be joined):"
    );
    let steps = steps(&bcast, 0, &[0, 1, 2, 3]).1;
    for (n, way) in ways.iter().enumerate() {
        let name = format!("FMPL_COLL_FAR_BCAST_{}", way.to_uppercase());
        match steps.iter().position(|step| step.0 == n) {
            Some(0) => println!("export {name}=0 # a bcast goes by {way}"),
            Some(step) => {
                let from = o.sizes[steps[step].1];
                let share = from / nodes as usize;
                println!(
                    "export {name}={share:<10} # for each node: from {} on a bcast goes by {way}",
                    size_text(from)
                );
            }
            None => println!("export {name}=never # {way} is nowhere the fastest"),
        }
    }
    let (name, halving) = ("FMPL_COLL_FAR_ALLREDUCE_HALVING", crossover(&allreduce[0], &allreduce[1]));
    match o.sizes.get(halving) {
        Some(n) => println!("export {name}={n:<10} # from {} on an allreduce halves its vectors", size_text(*n)),
        None => println!("export {name}=never # halving is nowhere the faster"),
    }
    Ok(())
}

/// By how much, as a logarithm, the product of the times must be less for a further step: about what medians of few blocks differ by.
const WORTH: f64 = 0.05;

/// From which size on each of these ways is to be taken, as (way, place among the sizes): each for one run of sizes at most, so that the
/// product of the times is the least.
fn steps(times: &[Vec<f64>], from: usize, ways: &[usize]) -> (f64, Vec<(usize, usize)>) {
    let sizes = times[0].len();
    if from == sizes {
        return (0.0, Vec::new());
    }
    let mut found = (f64::INFINITY, Vec::new());
    for way in ways {
        let others: Vec<usize> = ways.iter().copied().filter(|other| other != way).collect();
        for to in from + 1..=sizes {
            let (rest, behind) = steps(times, to, &others);
            let cost = times[*way][from..to].iter().map(|t| t.ln()).sum::<f64>() + WORTH + rest;
            if cost < found.0 {
                found = (cost, [(*way, from)].into_iter().chain(behind).collect());
            }
        }
    }
    found
}

fn best(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a.min(*b)).collect()
}

/// The median times of a call, `[way][size]`, in µs; also printed.
fn times(o: &Options, place: &Path, bench: &Bench, setting: &str, ways: &[&str]) -> Result<Vec<Vec<f64>>, String> {
    let name = bench.name;
    let contestants: Vec<_> = ways
        .iter()
        .map(|w| ours(&format!("{name}-{w}"), &[(setting, (*w).to_string()), ("FMPL_TUNING", "built-in".to_string())]))
        .collect();
    let cases = if name == BARRIER.name { (BARRIER.plan)(o) } else { plan(name, o) };
    let m = measure(vec![(bench, cases)], &contestants, o, place)?.remove(0);
    if m.names.len() != ways.len() {
        return Err(format!("not every way of {name} could be measured"));
    }
    let of = |w: usize| m.cases.iter().map(|c| c.usual(w, &m.figures[0])).collect();
    let all: Vec<Vec<f64>> = (0..ways.len()).map(of).collect();
    print!("\n{:<10}", format!("{name}, us"));
    ways.iter().for_each(|w| print!(" {w:>10}"));
    println!();
    for (n, case) in m.cases.iter().enumerate() {
        print!("{:<10}", case.case.label);
        all.iter().for_each(|t| print!(" {:>10.2}", t[n]));
        println!();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_the_sizes_at_which_it_is_the_fastest() {
        let (tree, ring) = (vec![10.0, 20.0, 40.0, 50.0], vec![40.0, 40.0, 50.0, 160.0]);
        let chain = vec![30.0, 30.0, 30.0, 70.0];
        let times = [tree, ring, chain];
        assert_eq!(
            steps(&times, 0, &[0, 2]).1,
            [(0, 0)],
            "a tree is the fastest again at the end, and may not come twice"
        );
        assert_eq!(steps(&times[..2], 0, &[0, 1]).1, [(0, 0)]);
        let multicast = vec![9.9, 12.0, 60.0, 90.0];
        let times = [times[0].clone(), times[1].clone(), times[2].clone(), multicast];
        assert_eq!(steps(&times, 0, &[0, 1, 2, 3]).1, [(3, 0), (2, 2), (0, 3)]);
    }
}
