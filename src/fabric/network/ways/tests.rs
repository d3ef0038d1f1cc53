//! The choice of ways on generated traffics, beside the best choice that never changes, made in hindsight under the
//! same budgets, and beside fixed policies. `FMPL_TEST_LONG=1 cargo test --release --lib ways::tests -- --nocapture`
//! prints the whole table; without it there are four traffics on one machine.

use super::*;
use proptest::prelude::*;
use rayon::prelude::*;

use crate::base::scattered::{STEP, scattered};

const BUDGETS: Budgets = Budgets { connections: 128, rings: 256, contexts: 1024 };
const WINDOWS: usize = 240;
/// Nanoseconds: of a message by way, and of a switch. The second has switches that cost much and ways that differ
/// little.
const MACHINES: [Costs; 2] = [
    Costs { latency: [6000., 4000., 2000.], switch: [50_000., 100_000., 500_000.], repair: 0. },
    Costs { latency: [4000., 3300., 2500.], switch: [100_000., 200_000., 2_000_000.], repair: 0. },
];

/// A generator of numbers (splitmix64).
struct Lot(u64);

impl Lot {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scattered(self.0)
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A count about this large, with the spread of a count.
    fn about(&mut self, mean: f64) -> u32 {
        let sum: f64 = (0..12).map(|_| self.part()).sum::<f64>() - 6.;
        let count = mean + sum * mean.sqrt();
        if mean < 10. {
            // Few: by parts of it.
            let (mut left, mut k) = (mean.exp().recip(), 0);
            let (mut term, lot) = (left, self.part());
            while left < lot && k < 100 {
                k += 1;
                term *= mean / k as f64;
                left += term;
            }
            return k;
        }
        count.round().max(0.) as u32
    }
}

/// Counts of a window, by source.
type Window = Vec<(u32, u32)>;

fn of(lot: &mut Lot, means: impl Iterator<Item = (u32, f64)>) -> Window {
    means.map(|(source, mean)| (source, lot.about(mean))).filter(|(_, count)| *count > 0).collect()
}

/// The traffics: a name, and what comes in each window.
fn traffics() -> Vec<(&'static str, Vec<Window>)> {
    let mut lot = Lot(7);
    let mut all = Vec::new();
    let mut add = |name: &'static str, window: &mut dyn FnMut(&mut Lot, usize) -> Window| {
        all.push((name, (0..WINDOWS).map(|t| window(&mut lot, t)).collect::<Vec<_>>()));
    };
    let hot = |k: u32, n: u32, from: u32| (0..n).map(move |i| (from + (i + k) % 100_000, 2000.));
    let zipf = |k: u32| 40_000. / (k as f64 + 1.).powf(1.1);
    add("stencil of 26 neighbours", &mut |lot, _| of(lot, (0..26).map(|k| (k * 37, 3000.))));
    add("wide stencil, 600 unequal neighbours", &mut |lot, _| {
        of(lot, (0..600).map(|k| (k, 50. + (k * k % 601) as f64 * 3.)))
    });
    add("wavefront over 3000 sources", &mut |lot, t| {
        of(lot, (0..40).map(|k| (((t / 2) as u32 * 5 + k) % 3000, 1500.)).chain((0..6).map(|k| (9000 + k, 800.))))
    });
    add("all to all, 20 s of each minute, and a stencil", &mut |lot, t| {
        let phase = t % 60 < 20;
        of(lot, (0..26).map(|k| (k, 2000.)).chain((0..2000).filter(|_| phase).map(|k| (100 + k, 25.))))
    });
    add("master with 1500 equal workers", &mut |lot, _| of(lot, (0..1500).map(|k| (k, 40.))));
    add("hot set of 100 that moves every 20 s", &mut |lot, t| {
        let from = (t / 20) as u32 * 1000;
        of(lot, hot(0, 100, from).chain((0..500).map(|k| (500_000 + k, 8.))))
    });
    add("hot set of 300 that moves a little each second", &mut |lot, t| of(lot, hot(3 * t as u32, 300, 0)));
    add("power law over 4000 sources", &mut |lot, _| of(lot, (0..4000).map(|k| (k, zipf(k)))));
    add("power law whose order drifts", &mut |lot, t| {
        of(lot, (0..4000).map(|k| ((k + (t as u32 / 4) * (1 + k % 3)) % 4000, zipf(k))))
    });
    add("two groups of 300 that alternate each second", &mut |lot, t| {
        of(lot, (0..300).map(|k| ((t as u32 % 2) * 1000 + k, 300. + k as f64)))
    });
    add("a flood of 150000 that come once, and 60 steady", &mut |lot, t| {
        let once = (0..625).map(|k| (1000 + t as u32 * 625 + k, 8.));
        of(lot, (0..60).map(|k| (k, 700.)).chain(once))
    });
    add("bursts: 20 others of 1000 each second", &mut |lot, t| {
        let first = mixed(t as u64);
        of(lot, (0..20u64).map(|k| ((mixed(first + k) % 1000) as u32, 4000.)))
    });
    all
}

fn mixed(n: u64) -> u64 {
    Lot(n).next()
}

/// What a policy costs: the latencies of all messages, and its switches.
fn cost(windows: &[Window], costs: &Costs, mut decide: impl FnMut(usize, &Window) -> HashMap<u32, Way>) -> f64 {
    let (mut sum, mut ways) = (0., HashMap::<u32, Way>::new());
    let way = |ways: &HashMap<u32, Way>, s: &u32| ways.get(s).copied().unwrap_or_default();
    for (t, window) in windows.iter().enumerate() {
        sum += window.iter().map(|(s, n)| *n as f64 * costs.latency(way(&ways, s)) as f64).sum::<f64>();
        let next = decide(t, window);
        let given_up = ways.keys().filter(|s| !next.contains_key(s)).count();
        sum += given_up as f64 * costs.switch[0] as f64;
        sum += next.iter().map(|(s, to)| costs.switching(way(&ways, s), *to) as f64).sum::<f64>();
        let many = |way| next.values().filter(|w| **w == way).count();
        assert!(many(Way::Connected) <= BUDGETS.connections && many(Way::Ring) <= BUDGETS.rings);
        ways = next;
    }
    sum
}

/// The heaviest get connections, the next rings.
fn by_weight(weights: &HashMap<u32, f64>) -> HashMap<u32, Way> {
    let mut order: Vec<(u32, f64)> = weights.iter().map(|(s, w)| (*s, *w)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let way = |k: usize| if k < BUDGETS.connections { Way::Connected } else { Way::Ring };
    order.truncate(BUDGETS.connections + BUDGETS.rings);
    order.into_iter().enumerate().map(|(k, (s, _))| (s, way(k))).collect()
}

/// The best that never changes, made in hindsight, with its switches before the first message.
fn hindsight(windows: &[Window], costs: &Costs) -> f64 {
    let mut weights = HashMap::new();
    windows.iter().flatten().for_each(|(s, n)| *weights.entry(*s).or_insert(0.) += *n as f64);
    let ways = by_weight(&weights);
    let way = |s: &u32| ways.get(s).copied().unwrap_or_default();
    let latencies: f64 = windows.iter().flatten().map(|(s, n)| *n as f64 * costs.latency(way(s)) as f64).sum();
    // A place that does not pay for itself is not taken.
    let switches = |(s, w): (&u32, &Way)| {
        let saved = weights[s] * costs.saves(*w, (0., 0.)) as f64;
        (costs.switching(Way::Shared, *w) as f64).min(saved)
    };
    latencies + ways.iter().map(switches).sum::<f64>()
}

/// The costs of fixed policies: all by the shared buffers; places to who comes first; to who was used last; to the
/// busiest of the last window.
fn fixed(windows: &[Window], costs: &Costs) -> [f64; 4] {
    let shared = cost(windows, costs, |_, _| HashMap::new());
    let mut places = HashMap::new();
    let first = cost(windows, costs, |_, window| {
        for (source, _) in window {
            let many = places.len();
            if many < BUDGETS.connections + BUDGETS.rings {
                let way = if many < BUDGETS.connections { Way::Connected } else { Way::Ring };
                places.entry(*source).or_insert(way);
            }
        }
        places.clone()
    });
    let mut used = HashMap::new();
    let last = cost(windows, costs, |t, window| {
        used.extend(window.iter().map(|(s, _)| (*s, t as f64)));
        by_weight(&used)
    });
    let busiest = cost(windows, costs, |_, window| by_weight(&window.iter().map(|(s, n)| (*s, *n as f64)).collect()));
    [shared, first, last, busiest]
}

fn ours(windows: &[Window], costs: &Costs) -> f64 {
    let (mut ways, mut most) = (Ways::new(2048), 0);
    let mut now = HashMap::new();
    let cost = cost(windows, costs, |_, window| {
        for (source, count) in window {
            ways.heard(*source, *count);
        }
        most = most.max(ways.sources.len());
        for change in ways.decide(&BUDGETS, costs) {
            assert_eq!(now.insert(change.peer, change.to).unwrap_or_default(), change.from);
            let many = |way| now.values().filter(|w| **w == way).count();
            assert!(many(Way::Connected) <= BUDGETS.connections && many(Way::Ring) <= BUDGETS.rings);
        }
        now.retain(|_, way| *way != Way::Shared);
        now.clone()
    });
    assert!(most <= 4096 + BUDGETS.connections + BUDGETS.rings, "{most} sources in the table");
    cost
}

#[test]
fn on_all_traffics_as_good_as_hindsight_and_as_any_fixed_policy() {
    println!(
        "a message's cost beside the best unchanging choice in hindsight (limit 1.15), and beside fixed policies (limit 1.05):"
    );
    println!(
        "{:62}{:>9}{:>12}{:>12}{:>12}{:>14}",
        "", "hindsight", "all shared", "first come", "used last", "busiest last"
    );
    let (long, short) =
        (std::env::var_os("FMPL_TEST_LONG").is_some(), ["stencil of", "wavefront", "hot set of 100", "bursts"]);
    let cases: Vec<_> = traffics()
        .into_iter()
        .flat_map(|traffic| [0, 1].map(|machine| (machine, traffic.clone())))
        .filter(|(machine, (name, _))| long || *machine == 0 && short.iter().any(|begin| name.starts_with(begin)))
        .collect();
    let rows: Vec<(String, bool)> = cases
        .into_par_iter()
        .map(|(machine, (name, windows))| {
            let costs = &MACHINES[machine];
            let ours = ours(&windows, costs);
            let regret = ours / hindsight(&windows, costs);
            let fixed = fixed(&windows, costs).map(|cost| ours / cost);
            let cells: String = [12, 12, 12, 14].iter().zip(fixed).map(|(w, x)| format!("{x:>w$.3}")).collect();
            let holds = regret <= 1.15 && fixed.iter().all(|x| *x <= 1.05);
            (format!("machine {machine}, {name:52}{regret:>9.3}{cells}"), holds)
        })
        .collect();
    rows.iter().for_each(|(row, _)| println!("figure: {row}"));
    let bad: Vec<&String> = rows.iter().filter(|(_, holds)| !holds).map(|(row, _)| row).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

proptest! {
    /// Whatever comes, however the budgets change, and whatever becomes of the changes: no more than the budgets allow
    /// are asked for, at no moment, and the table stays small.
    #[test]
    fn budgets_hold_at_every_moment(
        windows in proptest::collection::vec(
            (proptest::collection::vec((0u32..60, 1u32..5000), 0..40), [0usize..6, 0..6, 0..9], any::<u64>()), 1..30),
    ) {
        let mut ways = Ways::new(16);
        let mut is: HashMap<u32, Way> = HashMap::new();
        for (counts, [connections, rings, contexts], lot) in windows {
            counts.iter().for_each(|(peer, n)| ways.heard(*peer, *n));
            prop_assert!(ways.sources.len() <= 32 + is.len() + 24);
            let budgets = Budgets { connections, rings, contexts };
            let changes = ways.decide(&budgets, &MACHINES[0]);
            for change in changes {
                prop_assert_eq!(is.insert(change.peer, change.to).unwrap_or_default(), change.from);
                let many = |way| is.values().filter(|w| **w == way).count();
                let (c, r) = (many(Way::Connected), many(Way::Ring));
                // Where they have become fewer, first places are given back.
                prop_assert!(change.to != Way::Connected || c <= connections);
                prop_assert!(change.to != Way::Ring || r <= rings);
                prop_assert!(change.to == Way::Shared || change.from != Way::Shared || c + r <= contexts);
            }
            let many = |way| is.values().filter(|w| **w == way).count();
            let (c, r) = (many(Way::Connected), many(Way::Ring));
            prop_assert!(c <= connections && r <= rings && c + r <= contexts, "{} {} of {:?}", c, r, budgets);
            // A connection is lost.
            let peers: Vec<u32> = is.keys().copied().collect();
            if let Some(peer) = peers.get(lot as usize % 64) {
                is.insert(*peer, Way::Shared);
                ways.is_now(*peer, Way::Shared);
            }
        }
    }

    /// Of however many that come and go, those that are heard again and again are never forgotten.
    #[test]
    fn the_busy_are_never_forgotten(strangers in 100u32..5000, busy in 1u32..16) {
        let mut ways = Ways::new(16);
        for window in 0..4 {
            (0..busy).for_each(|peer| ways.heard(peer, 1000));
            (0..strangers).for_each(|k| ways.heard(1000 + window * strangers + k, 1 + k % 3));
            prop_assert!((0..busy).all(|peer| ways.by_peer.contains_key(&peer)));
            ways.decide(&BUDGETS, &MACHINES[0]);
        }
        let all: f32 = ways.sources.iter().filter(|s| s.peer < busy).map(|s| s.all).sum();
        prop_assert_eq!(all, busy as f32 * 4000.);
    }
}

/// Sources as busy as one another, of which some lose messages where all share the buffers: these get rings. Others that do later get none where
/// the rings have shown that it is the network that loses.
#[test]
fn who_loses_in_the_shared_buffers_gets_a_ring() {
    let budgets = Budgets { connections: 0, rings: 16, contexts: 64 };
    let costs = Costs { latency: [6000., 6000., 2000.], switch: [100_000., 100_000., 2_000_000.], repair: 1e6 };
    for of_the_network in [false, true] {
        let mut ways = Ways::new(64);
        let mut is = HashMap::<u32, Way>::new();
        for window in 0..80 {
            for peer in 0..32 {
                ways.heard(peer, 1000);
                let in_ring = is.get(&peer) == Some(&Way::Ring);
                let loses = peer % 8 == 1 || peer % 8 == 3 && window >= 40;
                if loses && (!in_ring || of_the_network) {
                    ways.lost(peer, 20);
                }
            }
            let changes = ways.decide(&budgets, &costs);
            is.extend(changes.iter().map(|change| (change.peer, change.to)));
        }
        let mut rings: Vec<u32> = is.iter().filter(|(_, way)| **way == Way::Ring).map(|(peer, _)| *peer).collect();
        rings.sort();
        let expected: &[u32] = if of_the_network { &[1, 9, 17, 25] } else { &[1, 3, 9, 11, 17, 19, 25, 27] };
        assert_eq!(rings, expected, "of the network: {of_the_network}");
    }
}
