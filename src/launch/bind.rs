//! Cores: which ones this process may use, in the order in which ranks should take them, and pinning a rank to one.

use crate::base::system::cpus::CpuSet;

/// The allowed CPUs, the first hardware thread of every core before any second one: two ranks share a core only when there
/// are more ranks than cores.
pub(crate) fn in_order_of_cores(allowed: &CpuSet) -> Vec<usize> {
    let mut cpus: Vec<(usize, usize)> = allowed.cpus().into_iter().map(|c| (siblings_before(allowed, c), c)).collect();
    cpus.sort_unstable();
    cpus.into_iter().map(|(_, c)| c).collect()
}

/// How many allowed hardware threads of the same core have a smaller number.
fn siblings_before(allowed: &CpuSet, cpu: usize) -> usize {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    numbers_of(&list).into_iter().filter(|c| *c < cpu && allowed.has(*c)).count()
}

/// The CPUs that have the last of a CPU's caches in common with it; empty: the system does not say.
pub fn last_cache(cpu: usize) -> Vec<usize> {
    let read = |index: usize, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{what}");
        std::fs::read_to_string(path).ok()
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

/// The set for each of `n` ranks. `wanted`: true always, false never, `None` when there is a CPU for each rank.
pub(crate) fn for_ranks(n: usize, wanted: Option<bool>) -> Vec<Option<CpuSet>> {
    let cpus = match CpuSet::allowed() {
        Ok(allowed) if wanted != Some(false) => in_order_of_cores(&allowed),
        _ => Vec::new(),
    };
    let bound = !cpus.is_empty() && (wanted == Some(true) || n <= cpus.len());
    (0..n).map(|r| bound.then(|| CpuSet::one(cpus[r % cpus.len()]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_get_cores_when_there_are_enough() {
        let allowed = CpuSet::allowed().unwrap();
        let mut order = in_order_of_cores(&allowed);
        let all = for_ranks(order.len(), None);
        assert!(all.iter().zip(&order).all(|(s, c)| s.as_ref().unwrap().cpus() == [*c]));
        assert!(for_ranks(order.len() + 1, None).iter().all(Option::is_none));
        assert!(for_ranks(1, Some(false)).iter().all(Option::is_none));
        let wrapped = for_ranks(order.len() + 1, Some(true));
        assert_eq!(wrapped.last().unwrap().as_ref().unwrap().cpus(), [order[0]]);
        order.sort_unstable();
        assert_eq!(order, allowed.cpus());
    }

    #[test]
    fn lists_of_siblings() {
        assert_eq!(numbers_of("0-2,64\n"), [0, 1, 2, 64]);
        assert!(numbers_of("\n").is_empty());
        assert_eq!(CpuSet::one(70).cpus(), [70]);
    }
}
