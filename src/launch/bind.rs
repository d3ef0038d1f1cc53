//! Cores: which ones this process may use, how they lie together, and which of them each rank gets.
//!
//! What lies together is what the system says in `/sys/devices/system`: hardware threads of a core, cores with a common last-level cache
//! (L3), of a NUMA node, of a socket. A system that does not say has one of each.

use super::embedded::{Bind, Map};
use crate::base::system::cpus::CpuSet;
use std::path::Path;

/// Where a CPU is. Compared in this order, neighbours in a list of them are near each other, and first hardware threads come
/// first: two ranks share a core only when there are more ranks than cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// How many hardware threads of the same core come before it.
    thread: usize,
    socket: usize,
    numa: usize,
    /// The smallest CPU with the same last-level cache.
    l3: usize,
    cpu: usize,
}

/// The places of CPUs, in order.
fn places(system: &Path, cpus: &[usize]) -> Vec<Place> {
    let read = |path: String| std::fs::read_to_string(system.join(path)).unwrap_or_default();
    let nodes: Vec<(usize, Vec<usize>)> = numbers_of(&read("node/online".into()))
        .into_iter()
        .map(|node| (node, numbers_of(&read(format!("node/node{node}/cpulist")))))
        .collect();
    let place = |cpu: usize| {
        let siblings = numbers_of(&read(format!("cpu/cpu{cpu}/topology/thread_siblings_list")));
        Place {
            thread: siblings.into_iter().filter(|c| *c < cpu && cpus.contains(c)).count(),
            socket: read(format!("cpu/cpu{cpu}/topology/physical_package_id")).trim().parse().unwrap_or(0),
            numa: nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map_or(0, |(node, _)| *node),
            l3: last_cache_in(system, cpu).first().copied().unwrap_or(0),
            cpu,
        }
    };
    let mut all: Vec<Place> = cpus.iter().map(|cpu| place(*cpu)).collect();
    all.sort_unstable();
    all
}

/// In the order in which ranks take them: neighbours together, or dealt out over the caches, NUMA nodes or sockets in turn.
fn in_order(mut places: Vec<Place>, map: Map) -> Vec<Place> {
    let domain = |p: &Place| match map {
        Map::Core => 0,
        Map::L3 => p.l3,
        Map::Numa => p.numa,
        Map::Socket => p.socket,
    };
    // The k-th of each domain, then the next of each.
    let mut taken = std::collections::HashMap::new();
    let turns: Vec<usize> = places
        .iter()
        .map(|p| {
            let n = taken.entry((p.thread, domain(p))).or_insert(0);
            if map != Map::Core {
                *n += 1;
            }
            *n
        })
        .collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|i| (places[*i].thread, turns[*i], domain(&places[*i])));
    places = order.into_iter().map(|i| places[i]).collect();
    places
}

/// The CPUs that have the last of a CPU's caches in common with it; empty: the system does not say.
pub fn last_cache(cpu: usize) -> Vec<usize> {
    last_cache_in(Path::new(SYSTEM), cpu)
}

const SYSTEM: &str = "/sys/devices/system";

fn last_cache_in(system: &Path, cpu: usize) -> Vec<usize> {
    let read = |index: usize, what: &str| {
        std::fs::read_to_string(system.join(format!("cpu/cpu{cpu}/cache/index{index}/{what}"))).ok()
    };
    let level = |index: &usize| read(*index, "level").and_then(|l| l.trim().parse::<u32>().ok());
    let last = (0..8).take_while(|index| level(index).is_some()).max_by_key(level);
    last.and_then(|index| read(index, "shared_cpu_list")).map(|list| numbers_of(&list)).unwrap_or_default()
}

/// The numbers of a list such as `0-3,8`.
fn numbers_of(list: &str) -> Vec<usize> {
    let mut out = Vec::new();
    for part in list.trim().split(',') {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(a), Ok(b)) = (a.parse::<usize>(), b.parse::<usize>()) {
            out.extend(a..=b.min(a + 4096));
        }
    }
    out
}

/// How many cores this process may use, or processors' worth of time where a container allows it less.
pub fn cores() -> usize {
    let most = std::thread::available_parallelism().map_or(1, |n| n.get());
    let Ok(allowed) = CpuSet::allowed() else { return most };
    let cores = places(Path::new(SYSTEM), &allowed.cpus()).iter().filter(|p| p.thread == 0).count();
    cores.clamp(1, most)
}

/// The set for each of `n` ranks.
pub(crate) fn for_ranks(n: usize, bind: Bind, map: Map) -> Vec<Option<CpuSet>> {
    match CpuSet::allowed() {
        Ok(allowed) if bind != Bind::None => sets(&places(Path::new(SYSTEM), &allowed.cpus()), n, bind, map),
        _ => vec![None; n],
    }
}

fn sets(all: &[Place], n: usize, bind: Bind, map: Map) -> Vec<Option<CpuSet>> {
    let order = in_order(all.to_vec(), map);
    let is_even = n <= order.len() || n.is_multiple_of(order.len());
    if order.is_empty() || (bind == Bind::Auto && !is_even) {
        return vec![None; n];
    }
    let set = |of: &Place| {
        let near = |p: &&Place| match bind {
            Bind::L3 => p.l3 == of.l3,
            Bind::Numa => p.numa == of.numa,
            Bind::Socket => p.socket == of.socket,
            Bind::Auto | Bind::Core | Bind::None => p.cpu == of.cpu,
        };
        CpuSet::of_cpus(all.iter().filter(near).map(|p| p.cpu))
    };
    (0..n).map(|r| Some(set(&order[r % order.len()]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_get_cores_when_there_are_enough() {
        let allowed = CpuSet::allowed().unwrap().cpus();
        let n = allowed.len();
        let cpus = |sets: Vec<Option<CpuSet>>| sets.into_iter().map(|s| s.unwrap().cpus()).collect::<Vec<_>>();
        let all = cpus(for_ranks(n, Bind::Auto, Map::Core));
        let mut sorted = all.concat();
        sorted.sort_unstable();
        assert_eq!(sorted, allowed);
        assert!(for_ranks(1, Bind::None, Map::Core).iter().all(Option::is_none));
        let wrapped = cpus(for_ranks(n + 1, Bind::Core, Map::Core));
        assert_eq!((&wrapped[n], &wrapped[..n]), (&all[0], &all[..]));
        assert!((1..=n).contains(&cores()));
    }

    /// Two sockets of two NUMA nodes each; four cores in each of these, two to a cache; second threads from 16 on. The numbers of
    /// CPUs alternate between the sockets, as with some makers.
    fn machine(dir: &Path) {
        let write = |path: String, text: String| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let (socket, core) = (|cpu: usize| cpu % 2, |cpu: usize| cpu % 16 / 2);
        let list = |of: &dyn Fn(usize) -> bool| {
            (0..32).filter(|c| of(*c)).map(|c| c.to_string()).collect::<Vec<_>>().join(",") + "\n"
        };
        for cpu in 0..32 {
            let of = format!("cpu/cpu{cpu}");
            write(format!("{of}/topology/thread_siblings_list"), list(&|c| c % 16 == cpu % 16));
            write(format!("{of}/topology/physical_package_id"), format!("{}\n", socket(cpu)));
            for (index, level) in [(0, 1), (1, 3), (2, 2)] {
                let width = if level == 3 { 2 } else { 1 };
                write(format!("{of}/cache/index{index}/level"), format!("{level}\n"));
                let shared = list(&|c| socket(c) == socket(cpu) && core(c) / width == core(cpu) / width);
                write(format!("{of}/cache/index{index}/shared_cpu_list"), shared);
            }
        }
        write("node/online".into(), "0-3\n".into());
        for node in 0..4 {
            write(format!("node/node{node}/cpulist"), list(&|c| socket(c) * 2 + core(c) / 4 == node));
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn neighbours_lie_together_or_are_dealt_out() {
        let dir = std::env::temp_dir().join(format!("fmpl-bind-{}", std::process::id()));
        machine(&dir);
        let all = places(&dir, &(0..32).collect::<Vec<_>>());
        let some = places(&dir, &[3, 16, 18, 19]);
        std::fs::remove_dir_all(&dir).unwrap();

        let first = |map, n| in_order(all.clone(), map).iter().take(n).map(|p| p.cpu).collect::<Vec<_>>();
        assert_eq!(first(Map::Core, 9), [0, 2, 4, 6, 8, 10, 12, 14, 1]);
        assert_eq!(first(Map::Socket, 4), [0, 1, 2, 3]);
        assert_eq!(first(Map::Numa, 5), [0, 8, 1, 9, 2]);
        assert_eq!(first(Map::L3, 9), [0, 1, 4, 5, 8, 9, 12, 13, 2]);
        for map in [Map::Core, Map::L3, Map::Numa, Map::Socket] {
            let cpus = first(map, 32);
            assert!(cpus[..16].iter().all(|c| *c < 16) && cpus[16..].iter().all(|c| *c >= 16), "{cpus:?}");
        }
        let bound = |bind, map, rank: usize| sets(&all, 20, bind, map)[rank].as_ref().map(CpuSet::cpus);
        assert_eq!(bound(Bind::Core, Map::Core, 1), Some(vec![2]));
        assert_eq!(bound(Bind::L3, Map::Core, 1), Some(vec![0, 2, 16, 18]));
        assert_eq!(bound(Bind::Numa, Map::Socket, 1), Some(vec![1, 3, 5, 7, 17, 19, 21, 23]));
        assert_eq!(bound(Bind::Socket, Map::Core, 9).map(|c| c.len()), Some(16));
        assert_eq!(bound(Bind::Auto, Map::Core, 16), Some(vec![16]));
        // As many on each core, or on any.
        let shared = |n| sets(&all, n, Bind::Auto, Map::Core);
        assert_eq!(shared(64)[33].as_ref().map(CpuSet::cpus), Some(vec![2]));
        assert!(shared(33).iter().chain(&shared(63)).all(Option::is_none));
        // Of a core whose first thread is not allowed the second is the first.
        assert_eq!(some.iter().map(|p| (p.thread, p.cpu)).collect::<Vec<_>>(), [(0, 16), (0, 18), (0, 3), (1, 19)]);
    }

    #[test]
    fn lists_of_siblings() {
        assert_eq!(numbers_of("0-2,64\n"), [0, 1, 2, 64]);
        assert!(numbers_of("\n").is_empty());
        assert_eq!(CpuSet::of_cpus([70, 3]).cpus(), [3, 70]);
    }

    #[test]
    fn a_system_that_says_nothing_has_one_of_each() {
        let all = places(Path::new("/no/such/directory"), &[2, 0, 1]);
        assert_eq!(in_order(all.clone(), Map::Numa).iter().map(|p| p.cpu).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(sets(&all, 1, Bind::Socket, Map::L3)[0].as_ref().map(CpuSet::cpus), Some(vec![0, 1, 2]));
    }
}
