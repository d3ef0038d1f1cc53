//! On which processors the ranks of a long multicast run, when there are more ranks than cores.
//!
//! Where the system has woken them up they stay for as long as a multicast takes: three ranks of four may take turns on one core, while
//! the fourth is done and waits on the other, or all four do. So each says where it runs when it begins, and one that finds fewer of those
//! that are not done on another processor moves there, if `FMPL_MOVE` is on: who runs the program may have placed its threads. It stays
//! as free as it was: the system may move it again at once.

use crate::base::thread;

/// The processor of this thread, + 1; 0: unknown.
pub(super) fn processor() -> u32 {
    thread::processor().map_or(0, |processor| processor as u32 + 1)
}

/// To which processor a thread at `here` moves, if the others that are at work are at these; the next one of those with the fewest.
fn target(here: u32, others: &[u32], allowed: impl Fn(u32) -> bool) -> Option<u32> {
    let at = |processor: u32| others.iter().filter(|p| **p == processor).count();
    let most = libc::CPU_SETSIZE as u32;
    let least = (0..most).map(|k| (here + k) % most + 1).filter(|p| allowed(*p)).min_by_key(|p| at(*p))?;
    (at(least) < at(here)).then_some(least)
}

/// Moves this thread to where fewer of the others run, if there is such a place among those that it may use; where it runs then.
pub(super) fn spread(others: &[u32]) -> u32 {
    let here = processor();
    if here == 0 || !others.contains(&here) {
        return here;
    }
    let there = thread::move_to(|may| {
        let there = target(here, others, |p| may(p as usize - 1))?;
        Some(there as usize - 1)
    });
    there.map_or(here, |there| there as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::system::cpus::CpuSet;

    #[test]
    fn to_where_fewer_are() {
        let two = |p| p == 1 || p == 2;
        assert_eq!(target(1, &[1], two), Some(2));
        assert_eq!(target(1, &[1, 2], two), None);
        assert_eq!(target(2, &[2, 1, 2], two), Some(1));
        assert_eq!(target(1, &[1], |p| p == 1), None, "bound to its core");
        assert_eq!(target(2, &[2, 2, 2, 1, 3], |p| p < 5), Some(4));
        assert_eq!(target(3, &[3, 3], |p| p < 5), Some(4), "the next one");
        assert_eq!(target(9, &[9], |_| false), None);
    }

    /// Moves, and may run where it could before.
    #[test]
    fn stays_as_free_as_it_was() {
        let allowed = || CpuSet::allowed().unwrap().cpus();
        let before = allowed();
        for _ in 0..100 {
            let here = processor();
            let there = spread(&[here, here]);
            // The system may have moved this thread between the two looks.
            assert!(before.contains(&(there as usize - 1)), "{there} of {before:?}");
            assert_eq!(allowed(), before);
        }
    }
}
