//! Global memory as values.

use crate::on_ranks;
use fmpl::rma::Atomic;
use fmpl::{Code, Counter, Global, GlobalAddress, Shared};

/// Everybody's address of something.
fn exchange(global: &Global<'_>, at: GlobalAddress) -> fmpl::Result<Vec<GlobalAddress>> {
    global.write(global.starter(global.rank())?, &[at.bits()])?;
    global.sync()?;
    let mut all = Vec::new();
    for rank in 0..global.size() {
        let mut bits = [0u64];
        global.read(global.starter(rank)?, &mut bits)?;
        all.push(GlobalAddress::from_bits(bits[0]));
    }
    global.sync()?;
    Ok(all)
}

on_ranks! {
    values_are_copied_and_counted, [3], 1, |job, world| {
        let global = Global::open(job)?;
        let (me, size) = (global.rank(), global.size());
        assert_eq!((me, size, global.starter_len()), (world.rank(), world.size(), 10 << 10));
        let mine: Shared<'_, f64> = global.shared(100)?;
        let words: Shared<'_, u64> = global.shared(4)?;
        let halves: Shared<'_, u32> = global.shared(4)?;
        (0..100).for_each(|n| mine.set(n, me as f64 + n as f64 / 100.0));
        let (all, all_words) = (exchange(&global, mine.address(0))?, exchange(&global, words.address(0))?);
        let all_halves = exchange(&global, halves.address(0))?;
        let next = (me + 1) % size;
        let mut got = [0.0; 50];
        global.read(all[next] + 8 * 50, &mut got)?;
        assert!((0..50).all(|n| got[n] == next as f64 + (n + 50) as f64 / 100.0));

        // A third rank's copy, and one that follows it.
        let (from, to) = (all[(me + 2) % size], all[next] + 8 * (10 * me));
        let first = global.copy(to, from + 8 * 90, 80).start()?;
        let second = global.copy(mine.address(40), to, 80).after(&first).start()?;
        second.wait()?;
        assert!(first.is_over()? && second.is_over()?);
        assert_eq!(mine.get(45), ((me + 2) % size) as f64 + 0.95);
        global.sync()?;

        let word = global.atomic::<u64>(all_words[0] + 8);
        for _ in 0..1000 {
            word.fetch_add(1)?;
        }
        let old = word.begin(Atomic::Xor, 0, 0, words.address(3)).after_all().start()?;
        old.wait()?;
        assert!(words.get(3) >= 1000);
        global.sync()?;
        assert_eq!(word.load()?, 1000 * size as u64);
        if me == 0 {
            assert_eq!(words.atomic(1).load(std::sync::atomic::Ordering::Acquire), 1000 * size as u64);
        }
        let half = global.atomic::<u32>(all_halves[next] + 4);
        assert_eq!(half.swap(5)?, 0);
        assert_eq!(half.fetch_or(8)?, 5);
        assert_eq!(half.fetch_xor(1)?, 13);
        assert_eq!(half.fetch_and(4)?, 12);
        assert_eq!(half.compare_exchange(5, 9)?, 4);
        assert_eq!(half.compare_exchange(4, 9)?, 4);
        assert_eq!(half.load()?, 9);
        global.sync()?;
        assert_eq!((halves.get(0), halves.get(1), halves.get(2)), (0, 9, 0));
        assert_eq!(global.rank_of(all[next])?, next);
        global.complete()?;
        global.sync()?;
        drop((mine, words, halves));
        global.close()?;
    }
}

on_ranks! {
    wrong_use_is_told, [2], 1, |job, _world| {
        let global = Global::open(job)?;
        let again = Global::open(job)?;
        let other = 1 - global.rank();
        let mine: Shared<'_, u64> = global.shared(8)?;
        let theirs = exchange(&global, mine.address(0))?[other];
        for (e, what) in [
            (global.starter(2).unwrap_err(), "of a job of 2"),
            (global.copy(theirs, GlobalAddress::NULL, 8).start().unwrap_err(), "null address"),
            (global.copy(theirs, mine.address(0), 65).start().unwrap_err(), "out of range"),
            (global.atomic::<u64>(theirs + 4).load().unwrap_err(), "multiple"),
            (global.atomic::<u64>(theirs + 64).load().unwrap_err(), "out of range"),
            (global.shared::<u64>(0).unwrap_err(), "0 values"),
            (global.shared::<u64>(usize::MAX).unwrap_err(), "values of 8 bytes"),
        ] {
            assert!(matches!(e.code(), Code::Argument | Code::Rank) && e.detail().contains(what), "{e}");
        }
        // They are errors of `start`: nothing was issued, and so nothing waits for it, also not what follows all.
        assert_eq!(job.counter(Counter::GlobalRefused)?, 4);
        let before = global.copy(theirs + 8, mine.address(0), 8).after_all().start()?;
        // An operation that has failed keeps back what follows it, until somebody was told.
        let refused = fmpl::ffi::acp::acp_copy(theirs.bits(), 0, 8, 0);
        assert_ne!(refused, 0);
        let e = global.copy(theirs, mine.address(0), 8).after_all().start().unwrap_err();
        assert!(e.code() == Code::Argument && e.detail().contains("not started: operation"), "{e}");
        assert_eq!(job.counter(Counter::GlobalRefused)?, 6);
        assert!(global.complete().is_err_and(|e| e.detail().contains("null address")));
        global.copy(theirs + 16, mine.address(0), 8).after(&before).start()?.wait()?;
        global.sync()?;
        drop(mine);
        global.sync()?;
        let e = global.atomic::<u64>(theirs).load().unwrap_err();
        assert!(e.detail().contains("nothing is registered"), "{e}");
        global.close()?;
        again.sync()?;
        // Memory of any other kind, by a promise.
        let mut bytes = vec![7u8; 1000];
        // SAFETY: nobody looks at it but through global memory, until the registration ends.
        let (key, at) = unsafe { again.register(bytes.as_mut_ptr(), bytes.len()) }?;
        let there = exchange(&again, at)?[other];
        again.write(there + 10, &[3u8; 10])?;
        again.sync()?;
        assert_eq!(again.address_of(key, &raw const bytes[10])?, at + 10);
        assert_eq!(again.local(at + 10)?.cast_const(), &raw const bytes[10]);
        assert!(again.local(there).is_err() && again.address_of(key, std::ptr::null()).is_err());
        assert!(again.colour_of(there)? < again.colours() && again.colour_of(GlobalAddress::NULL).is_err());
        again.unregister(key)?;
        assert_eq!((bytes[9], bytes[10], bytes[19], bytes[20]), (7, 3, 3, 7));
        // Threads at once.
        let counter: Shared<'_, u64> = again.shared(1)?;
        let all = exchange(&again, counter.address(0))?;
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for n in 0..500 {
                        again.atomic::<u64>(all[n % 2]).fetch_add(1).unwrap();
                        let mut word = [0u64];
                        again.read(all[other], &mut word).unwrap();
                    }
                });
            }
        });
        again.sync()?;
        assert_eq!(counter.get(0), 2000);
        again.sync()?;
    }
}

on_ranks! {
    /// Ranks change their numbers, and what they register afterwards is found by the new ones; numbers that are not each once are refused.
    ranks_are_numbered_anew, [1, 2, 3], 1, |job, world| {
        let mut global = Global::open(job)?;
        let (me, size) = (global.rank(), global.size());
        if size > 1 {
            assert_eq!(global.reset(0).unwrap_err().code(), Code::Argument);
        }
        assert_eq!(global.rank(), me);
        global.reset((me + 1) % size)?;
        assert_eq!((global.rank(), world.rank()), ((me + 1) % size, me));
        let word: Shared<'_, u64> = global.shared(1)?;
        word.set(0, 100 + global.rank() as u64);
        let all = exchange(&global, word.address(0))?;
        for (rank, at) in all.iter().enumerate() {
            assert_eq!((global.atomic::<u64>(*at).load()?, global.rank_of(*at)?), (100 + rank as u64, rank));
        }
        global.sync()?;
        drop(word);
        global.close()?;
    }
}

#[test]
fn an_abort_says_why_and_ends_all_ranks() {
    if crate::as_rank().is_some() {
        let job = fmpl::init(1).unwrap();
        let global = Global::open(&job).unwrap();
        if global.rank() == 1 {
            global.abort("the table is full");
        }
        // Ended where it waits.
        let _ = job.world().recv(&mut [0u8], 1, 0);
        loop {
            std::thread::park();
        }
    }
    let output = crate::start(concat!(module_path!(), "::an_abort_says_why_and_ends_all_ranks"), 3);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("rank 1 aborts the job: the table is full"), "{output:?}");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
