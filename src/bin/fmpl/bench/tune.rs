//! `fmpl bench tune`: the crossovers of the ways that a message can take on this machine. The same ping-pong runs with every way
//! forced, interleaved; the mean of separate and echoed buffers decides, since programs have both.

use std::path::Path;

use super::against::ours;
use super::measure::measure;
use super::pingpong::{BENCH, ECHO, SEPARATE, case};
use super::{Case, Options, size_text};

pub const ABOUT: &str = "the crossovers of the ways on this machine, as settings to put into the environment";

const WAYS: [&str; 4] = ["spool", "ring", "cma", "coop"];

/// Measures, prints the comparison and the settings.
pub fn main(o: &Options, place: &Path) -> Result<(), String> {
    let mut o = o.clone();
    o.rounds = o.rounds.min(2);
    let sizes: Vec<usize> =
        if o.sizes.is_empty() { (9..=23).map(|b| 1usize << b).collect() } else { std::mem::take(&mut o.sizes) };
    let ways = compare(&o, place, "ways", &sizes, WAYS.map(|w| (w, vec![("FMPL_SHM_PATH", w.to_string())])).into())?;
    print_lines(&ways, &sizes);

    let time = |way: usize| -> Vec<f64> { ways.time.iter().map(|row| row[way]).collect() };
    let [spool, ring, cma, coop] = [0, 1, 2, 3].map(time);
    let posted: Vec<f64> = ring.iter().zip(&cma).map(|(a, b)| a.min(*b)).collect();
    // The size below the crossover is the last of the first way, the size at it the first of the second.
    let last_of_first = |c: usize| c.checked_sub(1).map(|n| sizes[n]);
    let eager = last_of_first(crossover(&spool, &posted));
    let ring_max = last_of_first(crossover(&ring, &cma));
    let coop_min = sizes.get(crossover(&cma, &coop)).copied();

    let ring_sizes: Vec<usize> = sizes.iter().copied().filter(|n| (4096..=65_536).contains(n)).collect();
    let chunks = [1024, 2048, 4096, 8192, 16_384];
    let chunk = best_of(&o, place, "chunk", &ring_sizes, "ring", "FMPL_RING_CHUNK", &chunks)?;
    let coop_sizes: Vec<usize> = sizes.iter().copied().filter(|n| *n >= 256 << 10).collect();
    let pieces = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];
    let piece = best_of(&o, place, "piece", &coop_sizes, "coop", "FMPL_COOP_PIECE", &pieces)?;

    println!("\nSettings for this machine:");
    let line = |name: &str, v: Option<usize>, what: &str| match v {
        Some(v) => println!("export {name}={v:<10} # {what}: {}", size_text(v)),
        None => println!("# {name}: no crossover within the sizes measured ({what})"),
    };
    line("FMPL_EAGER", eager, "up to here copying at once is as good as waiting for the receive");
    line("FMPL_RING_MAX", ring_max, "up to here the ring of chunks beats one copy by the kernel");
    line("FMPL_RING_CHUNK", chunk, "the ring's chunk");
    line("FMPL_COOP_MIN", coop_min, "from here on both sides copy");
    line("FMPL_COOP_PIECE", piece, "the piece of the shared copy");
    Ok(())
}

/// Where to change from the first way to the second: the place that makes the product of all times least, so that one noisy size
/// does not decide. The number of sizes: the second never pays.
pub fn crossover(first: &[f64], second: &[f64]) -> usize {
    let cost = |cut: usize| -> f64 {
        let (a, b) = (&first[..cut], &second[cut..]);
        a.iter().chain(b).map(|t| t.ln()).sum()
    };
    (0..=first.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(first.len())
}

/// Mean times, `[size][contestant]`, in µs.
struct Compared {
    names: Vec<String>,
    time: Vec<Vec<f64>>,
}

type Variant<'a> = (&'a str, Vec<(&'a str, String)>);

fn compare(o: &Options, place: &Path, what: &str, sizes: &[usize], variants: Vec<Variant>) -> Result<Compared, String> {
    let contestants: Vec<_> =
        variants.iter().map(|(name, settings)| ours(&format!("{what}-{name}"), settings)).collect();
    let cases: Vec<Case> = sizes.iter().flat_map(|n| [case(o, *n, SEPARATE, 0), case(o, *n, ECHO, 0)]).collect();
    let m = measure(vec![(&BENCH, cases)], &contestants, o, place)?.remove(0);
    if m.names.len() != contestants.len() {
        return Err(format!("not every variant of {what} could be measured"));
    }
    // The geometric mean: a factor gained in one kind of buffer weighs as much as one lost in the other.
    let mean = |n: usize, w: usize| {
        let of = |c: usize| m.cases[c].usual(w, &m.figures[0]);
        (of(2 * n) * of(2 * n + 1)).sqrt()
    };
    let time = (0..sizes.len()).map(|n| (0..m.names.len()).map(|w| mean(n, w)).collect()).collect();
    Ok(Compared { names: variants.iter().map(|v| v.0.to_string()).collect(), time })
}

fn print_lines(c: &Compared, sizes: &[usize]) {
    print!("{:<9}", "us");
    for n in &c.names {
        print!(" {n:>10}");
    }
    println!();
    for (n, size) in sizes.iter().enumerate() {
        print!("{:<9}", size_text(*size));
        for t in &c.time[n] {
            print!(" {t:>10.2}");
        }
        println!();
    }
}

/// The value of a setting with the least product of times over the sizes.
fn best_of(
    o: &Options,
    place: &Path,
    what: &str,
    sizes: &[usize],
    way: &str,
    setting: &str,
    values: &[usize],
) -> Result<Option<usize>, String> {
    if sizes.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = values.iter().map(|v| v.to_string()).collect();
    let variants =
        names.iter().map(|n| (n.as_str(), vec![("FMPL_SHM_PATH", way.to_string()), (setting, n.clone())])).collect();
    let c = compare(o, place, what, sizes, variants)?;
    println!("\n{way}, by {setting}:");
    print_lines(&c, sizes);
    let product = |w: usize| c.time.iter().map(|row| row[w].ln()).sum::<f64>();
    Ok((0..values.len()).min_by(|a, b| product(*a).total_cmp(&product(*b))).map(|w| values[w]))
}

#[cfg(test)]
mod tests {
    use super::crossover;

    #[test]
    fn one_noisy_size_does_not_move_the_crossover() {
        let slow_start = [9.0, 9.0, 9.0, 9.0, 9.5, 9.0];
        let fast_start = [1.0, 2.0, 4.0, 16.0, 9.4, 64.0];
        assert_eq!(crossover(&fast_start, &slow_start), 3);
        assert_eq!(crossover(&[1.0, 1.0], &[2.0, 2.0]), 2);
        assert_eq!(crossover(&[2.0, 2.0], &[1.0, 1.0]), 0);
    }
}
