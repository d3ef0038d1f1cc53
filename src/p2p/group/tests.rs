use super::*;
use crate::base::atomics::{AtomicU64, Ordering};
use crate::fabric::shm::region::{ANY_AT, GROUPS_AT, Region};
use proptest::prelude::*;
use std::sync::Arc;
use words::Holder;

fn check(members: &[u32], me: u32) -> Group {
    let group = Group::of(members.iter().copied(), me).unwrap();
    assert_eq!(group.size() as usize, members.len());
    assert_eq!(members[group.rank() as usize], me);
    assert!(group.members().eq(members.iter().copied()), "{members:?}: {group:?}");
    for (rank, world) in members.iter().enumerate() {
        assert_eq!(group.rank_of(*world), Some(rank as u32), "{members:?}: {group:?}");
    }
    for world in (0..2000).filter(|w| !members.contains(w)) {
        assert_eq!(group.rank_of(world), None, "{world} in {members:?}: {group:?}");
    }
    group
}

#[test]
fn a_pattern_takes_nothing_more() {
    let run = Run::WORDS * size_of::<u64>();
    assert_eq!(check(&(0..1000).collect::<Vec<_>>(), 3).bytes(), 0);
    assert_eq!(check(&(0..1000).rev().collect::<Vec<_>>(), 3).bytes(), 0);
    assert_eq!(check(&(5..1000).step_by(7).collect::<Vec<_>>(), 12).bytes(), 0);
    assert_eq!(check(&[1500], 1500).bytes(), 0);
    assert_eq!(check(&[7, 3], 3).bytes(), 0);
    assert!(check(&[0, 1, 2, 3, 10, 11, 12, 13], 3).bytes() <= 2 * run);
    assert_eq!(Group::world(2, 9), check(&(0..9).collect::<Vec<_>>(), 2));
    assert!(Group::of([1, 2, 3].into_iter(), 4).is_none());
}

#[test]
fn a_set_without_a_pattern_takes_a_bit_for_each_rank() {
    let members: Vec<u32> = (0..1600).filter(|r| (r * r) % 7 == 2 || r % 11 == 3).collect();
    assert!(check(&members, members[40]).bytes() <= 1600 / 8 + 8);
}

/// In a world of 2^22 ranks, shorter of 2^18; `tests/shows million` has what it prints.
#[test]
fn what_a_large_group_takes() {
    let n = 1u32 << if std::env::var_os("FMPL_TEST_LONG").is_some() { 22 } else { 18 };
    let has = |r: &u32| r.wrapping_mul(0x9e37_79b9) >> 30 != 1;
    let mut members: Vec<u32> = (0..n).filter(has).collect();
    let set = Group::of(members.iter().copied(), members[7]).unwrap();
    let [some, first] = [members[members.len() / 2], members[0]];
    assert_eq!((set.rank_of(some), set.rank_of(first)), (Some(members.len() as u32 / 2), Some(0)));
    assert_eq!(set.world_rank(members.len() as u32 / 2), some);
    members.sort_by_key(|r| r.wrapping_mul(0x85eb_ca6b));
    let order = Group::of(members.iter().copied(), first).unwrap();
    let bits = 8. * set.bytes() as f64 / f64::from(n);
    let bytes = order.bytes() as f64 / members.len() as f64;
    println!("figure: {bits:.3} bits for each rank of the world, {bytes:.3} bytes for each member in any order");
    // Two to a word.
    assert!(bits < 1.005 && order.bytes() <= 4 * members.len() + 4);
}

#[test]
fn an_order_without_a_pattern_takes_four_bytes_for_each_member() {
    let mut members: Vec<u32> = (0..1600).filter(|r| (r * r) % 7 == 2).collect();
    members.sort_by_key(|r| r.wrapping_mul(0x9e37_79b9));
    assert_eq!(check(&members, members[40]).bytes(), (4 * members.len()).next_multiple_of(8));
}

proptest! {
    #[test]
    fn any_order_of_any_set(members in prop::collection::btree_set(0u32..1200, 1..100), seed: u64, shuffled: bool) {
        let mut members: Vec<u32> = members.into_iter().collect();
        if shuffled {
            members.sort_by_key(|m| (*m as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        }
        check(&members, members[seed as usize % members.len()]);
    }
}

/// So many members of a node lay their words with the one whose region this is.
fn laid(region: &Arc<Region>, members: &[u32], epoch: u32, here: u32) -> Vec<Group> {
    let shelf = || Shelf { holder: Holder::Own(region.clone()), epoch, members: here };
    let group = |k: u32| Group::of(members.iter().copied(), members[k as usize]).unwrap();
    (0..here).map(|k| group(k).laid(shelf())).collect()
}

fn a_set() -> Vec<u32> {
    (0..400_000u32).filter(|r| r.wrapping_mul(0x9e37_79b9) >> 30 != 1).collect()
}

#[test]
#[cfg_attr(miri, ignore = "shared memory")]
fn the_members_of_a_node_have_the_words_once() {
    let region = Arc::new(Region::create(0, 1 << 19).unwrap());
    let there = || region.allocated(GROUPS_AT, ANY_AT).unwrap() as usize;
    let set = a_set();
    let mut order = set.clone();
    order.sort_by_key(|r| r.wrapping_mul(0x85eb_ca6b));
    for (epoch, members) in [(5, &set), (6, &order)] {
        let mut groups = laid(&region, members, epoch, 4);
        assert!(groups.iter().all(|group| group.own_bytes() == 0 && group.bytes() > 0));
        assert!(there() <= groups[0].bytes() + 2 * 4096, "{} bytes for {}", there(), groups[0].bytes());
        let copy = groups[1].clone();
        for (rank, world) in members.iter().enumerate().step_by(997) {
            assert!(groups.iter().all(|group| group.world_rank(rank as u32) == *world));
            assert_eq!(copy.rank_of(*world), Some(rank as u32));
        }
        let none = (0..1 << 19).find(|world| !members.contains(world)).unwrap();
        assert_eq!(copy.rank_of(none), None);
        groups.truncate(1);
        drop(copy);
        assert!(there() > 0, "the first still has them");
        assert_eq!(groups[0].world_rank(77), members[77]);
        drop(groups);
        assert_eq!(there(), 0, "nobody has");
    }
}

#[test]
#[cfg_attr(miri, ignore = "shared memory")]
fn who_comes_stores_what_is_not_there() {
    let region = Arc::new(Region::create(0, 1 << 19).unwrap());
    let set = a_set();
    let first = laid(&region, &set, 9, 1).pop().unwrap();
    let words = first.bytes() / 8;
    let window = region.map(GROUPS_AT + (9 << 26) + 64, first.bytes()).unwrap();
    let word = |n: usize| window.record::<AtomicU64>(8 * n);
    // As if the first had ended in the middle.
    (words / 2..words).for_each(|n| word(n).store(0, Ordering::Relaxed));
    let second = laid(&region, &set, 9, 2).pop().unwrap();
    assert!(second.members().eq(set.iter().copied()));
}

proptest! {
    /// Whatever another process writes there, a rank that is found is one of the world, and a place one of the communicator.
    #[test]
    #[cfg_attr(miri, ignore = "shared memory")]
    fn damaged_words_lead_nowhere_else(
        kind in 0..3, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..40)
    ) {
        let region = Arc::new(Region::create(0, 1 << 14).unwrap());
        let mut members: Vec<u32> = (0..9000u32).filter(|r| r.wrapping_mul(0x9e37_79b9) >> 30 != 1).collect();
        match kind {
            0 => {}
            1 => members.sort_by_key(|r| r.wrapping_mul(0x85eb_ca6b)),
            _ => members = (0..40u32).flat_map(|n| (0..20 + n % 3).map(move |k| n * 200 + k * (1 + n % 2))).collect(),
        }
        let group = laid(&region, &members, 3, 2).pop().unwrap();
        let window = region.map(GROUPS_AT + (3 << 26) + 64, group.bytes()).unwrap();
        for (at, value) in damage {
            window.record::<AtomicU64>(8 * at.index(group.bytes() / 8)).store(value, Ordering::Relaxed);
        }
        let top = *members.iter().max().unwrap();
        prop_assert!(group.members().all(|world| world <= top));
        prop_assert!((0..top + 70).step_by(173).all(|world| group.rank_of(world).is_none_or(|rank| rank < group.size())));
    }
}
