use super::*;
use proptest::prelude::*;

fn spool(limit: usize) -> (Region, Spool) {
    let region = Region::create(0, 1).unwrap();
    let spool = Spool::new(&region, limit, 10).unwrap();
    (region, spool)
}

#[test]
fn what_is_posted_has_room_beyond_the_limit_and_leaves_no_memory() {
    let (_r, s) = spool(1 << 20);
    let kept = s.take(0, 1 << 19, 1 << 19).unwrap();
    assert!(s.take(0, 64 << 20, 64 << 20).is_none());
    let large: Vec<_> = (0..2).map(|_| s.take_beyond(0, 64 << 20, 64 << 20).unwrap()).collect();
    assert!(large[0].at + large[0].size <= large[1].at || large[1].at + large[1].size <= large[0].at);
    // SAFETY: the blocks' own memory.
    unsafe { large.iter().for_each(|b| s.bytes(b.at + 4096).write_bytes(7, 60 << 20)) };
    assert!(s.take(0, 64, 64).is_none(), "the budget is spent");
    for b in &large {
        done(&s, *b);
        assert!(s.give_back(*b));
        // SAFETY: mapped, whoever has it.
        assert_eq!(unsafe { s.bytes(b.at + 4096).read() }, 0, "its pages are the system's again");
    }
    assert_eq!(s.budget(0).used(), 1 << 19);
    assert!(s.take(0, 64, 64).is_some() && s.is_held(kept));
}

#[test]
fn what_is_looked_at_grows_with_use_not_with_the_limit() {
    let (_r, s) = spool(1 << 30);
    let small: Vec<_> = (0..3).map(|_| s.take(0, 24 << 10, 24 << 10).unwrap()).collect();
    let large = s.take(0, 200 << 10, 200 << 10).unwrap();
    let pages = s.untaken.load(Ordering::Relaxed);
    assert!((5..=8).contains(&pages), "three blocks of 32 KiB and a run of four pages, but {pages} are looked at");
    let mut seen = Vec::new();
    s.for_each_taken(|b| seen.push((b.at, b.size, b.generation)));
    let mut taken: Vec<_> = small.iter().chain([&large]).map(|b| (b.at, b.size, b.generation)).collect();
    taken.sort();
    assert_eq!(seen, taken);
    small.iter().chain([&large]).for_each(|b| done(&s, *b));
    s.reclaim();
    assert_eq!(s.budget(0).used(), 0);
    // Pages that are free again serve other sizes, without more being looked at.
    assert!((0..40).all(|_| s.take(0, 100, 100).is_some()));
    assert_eq!(s.untaken.load(Ordering::Relaxed), pages);
}

#[test]
fn long_blocks_that_are_done_are_taken_before_new_pages() {
    let (_r, s) = spool(1 << 30);
    // As of senders that went on to another block and give none of these back.
    for _ in 0..100 {
        let large = s.take(0, 1 << 20, 1 << 20).unwrap();
        done(&s, large);
    }
    assert_eq!((s.untaken.load(Ordering::Relaxed), s.budget(0).used()), (17, 1 << 20));
    let waiting: Vec<_> = (0..3).map(|_| s.take(0, 1 << 20, 1 << 20).unwrap()).collect();
    assert!(waiting.iter().all(|b| s.is_held(*b)) && s.untaken.load(Ordering::Relaxed) == 3 * 17);
}

#[test]
fn short_blocks_that_are_done_take_no_new_pages() {
    let (_r, s) = spool(16 << 20);
    // Each is done before the next, of an index of its own: so nobody who takes one knows of another.
    for _ in 0..100_000 {
        done(&s, s.take(0, 800, 800).unwrap());
    }
    assert_eq!(s.untaken.load(Ordering::Relaxed), LOOK_FROM);
    // What is not done is not looked through again and again.
    let waiting: Vec<_> = (0..64 * 10).map(|_| s.take(0, 800, 800).unwrap()).collect();
    assert!(waiting.iter().all(|b| s.is_held(*b)));
    assert!(s.looks[class_of(800 + BLOCK_HEADER).unwrap()].load(Ordering::Relaxed) <= 2 * 11);
}

fn done(s: &Spool, b: BlockRef) {
    s.block(b.at).done.store(b.generation, Ordering::Release);
}

#[test]
fn a_full_spool_says_so_and_recovers_when_receivers_are_done() {
    let (_r, s) = spool(1 << 20);
    let blocks: Vec<_> = std::iter::from_fn(|| s.take(0, 64 << 10, 64 << 10)).collect();
    assert_eq!(blocks.len(), 16);
    done(&s, blocks[3]);
    let again = s.take(0, 64 << 10, 64 << 10).unwrap();
    assert_eq!(again.at, blocks[3].at);
    assert!(s.take(0, 1, 1).is_none());
    assert_eq!(s.budget(0).used(), 1 << 20);
}

#[test]
fn a_block_taken_by_another_cannot_be_taken_again() {
    let (_r, s) = spool(1 << 20);
    let b = s.take(0, 100, 100).unwrap();
    let b2 = s.take_again(0, b, 120).unwrap();
    assert!(s.take_again(0, b, 100).is_none());
    assert_eq!(s.budget(0).used(), 120);
    done(&s, b);
    assert!(!s.is_done(b2), "done of an earlier use must not count");
    done(&s, b2);
    s.reclaim();
    assert!(s.take_again(0, b2, 100).is_none());
    assert_eq!(s.budget(0).used(), 0);
}

#[test]
fn small_pages_serve_large_blocks_once_they_are_empty() {
    let (_r, s) = spool(1 << 20);
    let small: Vec<_> = std::iter::from_fn(|| s.take(0, 128, 128)).collect();
    assert_eq!(small.len(), 8192);
    small.iter().for_each(|b| done(&s, *b));
    assert!(s.take(0, 1 << 20, 1 << 20).is_some());
}

#[test]
fn bytes_of_a_message_do_not_say_that_a_block_is_done() {
    let (_r, s) = spool(1 << 20);
    for use_of_it in 1..4u32 {
        let large = s.take(0, 1 << 19, 1 << 19).unwrap();
        let words = s.bytes(large.at + BLOCK_HEADER as u64).cast::<u32>();
        // SAFETY: the block's own memory.
        (0..1 << 17).for_each(|k| unsafe { words.add(k).write(use_of_it) });
        done(&s, large);
        assert!(s.give_back(large));
        let small: Vec<_> = std::iter::from_fn(|| s.take(0, 100, 256)).collect();
        assert_eq!(small.len(), 4096);
        assert!(small.iter().all(|b| !s.is_done(*b)), "use {use_of_it}");
        small.iter().for_each(|b| done(&s, *b));
        s.reclaim();
    }
}

proptest! {
    #[test]
    fn blocks_never_overlap(sizes in prop::collection::vec((1usize..200_000, any::<bool>()), 1..300)) {
        let (_r, s) = spool(8 << 20);
        let mut live: Vec<BlockRef> = Vec::new();
        for (size, free_one) in sizes {
            if free_one && !live.is_empty() {
                let b = live.swap_remove(size % live.len());
                done(&s, b);
                prop_assert!(size % 2 == 0 || s.give_back(b));
            }
            if let Some(b) = s.take(0, size, size) {
                prop_assert!(b.size as usize >= size + BLOCK_HEADER);
                for other in &live {
                    prop_assert!(b.at + b.size <= other.at || other.at + other.size <= b.at);
                }
                live.push(b);
            }
        }
    }
}

#[test]
fn threads_take_and_give_back_at_once() {
    let (_r, s) = spool(4 << 20);
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let s = &s;
            scope.spawn(move || {
                for k in 0..20_000u64 {
                    let Some(b) = s.take(0, 64 + (k as usize * 37 + t as usize) % 3000, 64) else { continue };
                    let owner = &s.block(b.at).owner;
                    owner.store(t, Ordering::Relaxed);
                    std::hint::spin_loop();
                    assert_eq!(owner.load(Ordering::Relaxed), t, "two threads have one block");
                    done(s, b);
                    if k % 3 == 0 {
                        s.give_back(b);
                    }
                }
            });
        }
    });
    s.reclaim();
    assert_eq!(s.budget(0).used(), 0);
}

#[test]
fn what_receivers_are_done_with_does_not_count_against_half_of_the_budget() {
    let (_r, s) = spool(1 << 20);
    let held: Vec<_> = (0..8).map(|_| s.take(0, 60 << 10, 64 << 10).unwrap()).collect();
    assert!(s.stays_within(0, 0, usize::MAX), "half of it is used, and no more");
    assert!(!s.stays_within(0, 8 << 10, usize::MAX), "nobody is done");
    held.iter().for_each(|b| done(&s, *b));
    // The look in vain is not repeated for every message, but soon.
    let refused = (0..).take_while(|_| !s.stays_within(0, 8 << 10, usize::MAX)).take(1000).count();
    assert_eq!((refused, s.budget(0).used()), (super::budget::IN_VAIN as usize, 0));
    // Where a look helps each has one at once.
    for _ in 0..3 {
        let held: Vec<_> = (0..8).map(|_| s.take(0, 60 << 10, 64 << 10).unwrap()).collect();
        held.iter().for_each(|b| done(&s, *b));
        assert!(s.stays_within(0, 8 << 10, 64 << 10));
    }
    assert!(!s.stays_within(0, 65 << 10, 64 << 10) && !s.stays_within(0, 1 << 20, usize::MAX));
}
