//! Registration, keys that are used again, wrong use.

use crate::acp::*;
use crate::ranks::calls::{ARGUMENT, INIT};
use crate::ranks::{Job, long, short};
use fmpl::ffi::acp::*;
use std::sync::atomic::Ordering;

pub fn wrong() {
    for ranks in [1, 2] {
        Job::new(ranks, "errs").run();
    }
    Job::new(2, "errs").settings("FMPL_CMA=off").run();
}

/// The call has failed, with this code, and the text names the rank and says this.
#[track_caller]
fn failed(code: i32, text: &str) {
    let said = last_error();
    let number = acp_errno();
    assert!(number == code && said.contains(text), "{number} instead of {code}: {said}");
    assert!(code == INIT || said.contains(&format!("rank {}", rank())), "{said}");
    // An operation that was refused is in the way of later ones no more.
    complete_with_error(ALL);
}

pub fn errs() {
    // SAFETY: what is wrong is found out before anything is touched.
    unsafe {
        assert_eq!((acp_rank(), acp_procs(), acp_sync(), acp_finalize()), (-1, -1, -1, -1));
        assert_eq!(
            (acp_query_starter_ga(0), acp_copy(0, 0, 0, 0), acp_register_memory(std::ptr::null_mut(), 1, 0)),
            (0, 0, 0)
        );
        failed(INIT, "acp_init");
        init();
        let (me, size) = (rank(), procs());
        let there = (me + 1) % size;
        let memory = Memory::new(Kind::Private, 8192);
        let (key, ga) = register(memory.ptr(), 8192);
        let all = exchange(0, ga);
        let far = all[there as usize];

        for (at, len, colour, why) in [
            (std::ptr::null(), 8, 0, "no memory"),
            (memory.ptr(), 0, 0, "no memory"),
            (memory.ptr(), (1 << 34) + 1, 0, "at most"),
            (memory.ptr(), 8, 2, "colours"),
            (memory.ptr(), 8, -1, "colours"),
            (16 as *const u8, 8, 0, "not there"),
            (memory.ptr(), 1 << 33, 0, "not there"),
        ] {
            assert_eq!(try_register(at, len, colour), 0, "{at:p} {len}");
            failed(ARGUMENT, why);
        }
        assert_eq!(acp_query_starter_ga(size), 0);
        failed(crate::ranks::calls::RANK, "of a job of");
        assert_eq!(acp_query_starter_ga(-1), 0);
        failed(crate::ranks::calls::RANK, "of a job of");
        for wrong in [0, 5, ga, key + 1, far & !(0x3ff << 34)] {
            assert_eq!(acp_unregister_memory(wrong), -1, "{wrong:#x}");
            failed(ARGUMENT, "no key");
            assert_eq!(acp_query_ga(wrong, memory.ptr().cast_mut().cast()), 0);
            failed(ARGUMENT, "no key");
        }
        assert_eq!(acp_query_ga(key, memory.ptr().wrapping_sub(1).cast_mut().cast()), 0);
        failed(ARGUMENT, "not in the 8192 bytes");
        assert_eq!((acp_query_rank(0), acp_query_color(0)), (-1, -1));
        failed(ARGUMENT, "null address");
        assert!(acp_query_address(0).is_null());

        let beyond = acp_query_starter_ga(size - 1) + (1 << 43);
        for (ga, len, why) in [
            (0, 8, "null address"),
            (beyond, 8, "in a job of"),
            (u64::MAX, 8, "in a job of"),
            (far, 8193, "out of range"),
            (far + 8192, 1, "out of range"),
            (far + 8185, 8, "out of range"),
            (far + (1 << 34), 8, "nothing is registered"),
            (far ^ 1 << 42, 8, "colour 0"),
            (acp_query_starter_ga(there), 10_241, "out of range"),
        ] {
            for (dst, src) in [(ga, all[me as usize]), (all[me as usize], ga)] {
                assert!(is_refused(try_copy(dst, src, len, NOW)), "{ga:#x}");
                failed(ARGUMENT, why);
            }
        }
        for at in [far + 8, far + 8192, far + 4, 0] {
            for (n, handle) in [
                try_fetch8(Op::Add, ga, at, 1, 0, NOW),
                try_fetch8(Op::Cas, ga, at, 1, 0, NOW),
                try_fetch4(Op::Xor, ga, at + 2, 1, 0, NOW),
            ]
            .into_iter()
            .enumerate()
            {
                let right = at == far + 8 && n < 2;
                assert_eq!(!is_refused(handle), right, "{at:#x} {n}");
                assert_eq!(complete_with_error(handle) == 0, right);
            }
        }
        assert!(is_refused(try_fetch8(Op::Add, ga, far + 4, 1, 0, NOW)));
        failed(ARGUMENT, "multiple");
        assert!(is_refused(try_fetch8(Op::Add, ga + 4, far, 1, 0, NOW)));
        failed(ARGUMENT, "multiple");
        // An address that is aligned names memory that is not.
        let (odd, odd_ga) = register(memory.ptr().wrapping_add(1), 64);
        assert!(is_refused(try_fetch8(Op::Add, ga, odd_ga, 1, 0, NOW)));
        failed(ARGUMENT, "multiple");
        unregister(odd);
        begins_within_a_word(ga);
        if size > 1 {
            assert!(is_refused(try_fetch8(Op::Add, far, far, 1, 0, NOW)));
            failed(ARGUMENT, "own memory");
        }
        assert!(is_refused(try_copy(ga, ga, 8, -3)));
        failed(ARGUMENT, "no handle");
        // The job is as it was.
        copy_now(all[me as usize] + 64, far, 64);
        sync();
        unregister(key);
        assert_eq!(acp_unregister_memory(key), -1, "twice");
        sync();
        assert!(is_refused(try_copy(far, acp_query_starter_ga(me), 8, NOW)));
        failed(ARGUMENT, "nothing is registered");
        assert!(is_refused(try_fetch8(Op::Add, acp_query_starter_ga(me), far, 8, 0, NOW)));
        failed(ARGUMENT, "nothing is registered");
        sync();
        exhausted(&memory);
        finalize();
        assert_eq!(acp_rank(), -1);
    }
}

/// Words that are aligned in memory, though their addresses, counted from where the registration begins, are not; and the other way round.
fn begins_within_a_word(result: u64) {
    for (n, kind) in [Kind::Private, Kind::Shared].into_iter().enumerate() {
        let memory = Memory::new(kind, 4096);
        let (key, ga) = register(memory.ptr().wrapping_add(4), 64);
        for at in [exchange(1 + n, ga)[(rank() + 1) as usize % procs() as usize], ga] {
            assert!(is_refused(try_fetch8(Op::Add, result, at + 8, 1, 0, NOW)));
            failed(ARGUMENT, "multiple");
            complete(fetch8(Op::Add, result, at + 4, 1 << 32, 0, NOW));
            complete(fetch4(Op::Add, result, at + 4, 5, 0, NOW));
            sync();
        }
        assert_eq!(memory.word(1).load(Ordering::Acquire), 2 << 32 | 10);
        unregister(key);
    }
}

fn exhausted(memory: &Memory) {
    let keys: Vec<u64> = (0..255).map(|n| register(memory.ptr().wrapping_add(n * 8), 8).0).collect();
    assert_eq!(try_register(memory.ptr(), 8, 0), 0);
    failed(fmpl::Code::Memory as i32, "all 255 keys are in use");
    unregister(keys[100]);
    let (key, _) = register(memory.ptr(), 8);
    assert_ne!(key, keys[100], "the same key, but another turn of it");
    keys.iter().filter(|k| **k != keys[100]).for_each(|k| unregister(*k));
    unregister(key);
}

/// Many more registrations than there are keys, each found by the others while it lasts.
pub fn again() {
    Job::new(3, "registers").run();
    Job::new(3, "registers").settings("FMPL_RMA_KEYS=2 FMPL_RMA_PEERS=1").run();
}

pub fn registers() {
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let own = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(own.ptr(), 4096);
    for round in 0..if short() { 50 } else { 600u64 } {
        let kind = if round % 3 == 0 { Kind::Private } else { Kind::Shared };
        let memory = Memory::new(kind, 64);
        memory.word(0).store(round * 100 + me as u64, Ordering::Release);
        let (key, ga) = register(memory.ptr(), 64);
        let all = exchange(0, ga);
        for (other, ga) in all.into_iter().enumerate() {
            copy_now(result, ga, 8);
            assert_eq!(own.word(0).load(Ordering::Acquire), round * 100 + other as u64, "round {round} of {size}");
        }
        sync();
        unregister(key);
    }
    finalize();
}

/// One rank gives a key to other memory over and over while the others read through it without asking: what they read is what was
/// registered last, never what was before, whose memory is used for something else at once.
pub fn renewed() {
    for way in ["FMPL_RMA_KEYS=2", "FMPL_RMA_KEYS=2 FMPL_CMA=off", "FMPL_RMA_KEYS=2 FMPL_RMA_PEERS=1 FMPL_WAIT=block"] {
        Job::new(3, "renews").settings(way).run();
    }
}

const POISON: u64 = u64::MAX;

pub fn renews() {
    init();
    let me = rank() as usize;
    let rounds = if long() {
        20_000
    } else if short() {
        100
    } else {
        1500u64
    };
    let words = starter_words();
    // Everybody's first registration has key 1, and with two keys the memory below has key 2 whenever it has one.
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    let len = 2048usize;
    if me == 0 {
        let kinds = [Kind::Shared, Kind::Private, Kind::Shared, Kind::Private];
        let memories = kinds.map(|k| Memory::new(k, len));
        let (mut key, first) = register(memories[0].ptr(), len);
        words[8].store(first, Ordering::Release);
        sync();
        for round in 1..=rounds {
            let memory = &memories[round as usize % 4];
            (0..len / 8).for_each(|n| memory.word(n).store(round, Ordering::Relaxed));
            unregister(key);
            // Nobody reads it any more: what it holds from here on nobody may see.
            let before = &memories[(round as usize + 3) % 4];
            (0..len / 8).for_each(|n| before.word(n).store(POISON, Ordering::Relaxed));
            let (next, ga) = register(memory.ptr(), len);
            assert_eq!(ga, first, "the same key");
            key = next;
            words[9].store(round, Ordering::Release);
        }
        words[10].store(1, Ordering::Release);
    } else {
        sync();
        let at = starter(0);
        let own = starter(me as i32);
        copy_now(own + 64, at + 64, 8);
        let ga = words[8].load(Ordering::Acquire);
        let (mut seen, mut read, mut refused) = (0u64, 0u64, 0u64);
        loop {
            copy_now(own + 72, at + 72, 16);
            let (now, over) = (words[9].load(Ordering::Acquire), words[10].load(Ordering::Acquire) == 1);
            assert!(now >= seen);
            seen = now;
            let handle = try_copy(result, ga, len, NOW);
            if is_refused(handle) {
                assert_ne!(complete_with_error(handle), 0);
                assert!(last_error().contains("nothing is registered"), "{}", last_error());
                refused += 1;
            } else if complete_with_error(handle) != 0 {
                assert!(last_error().contains("could not do") || last_error().contains("nothing is registered"));
                refused += 1;
            } else {
                // A copy in pieces by commands is not one moment; a word is never of before the round that was seen.
                for n in 0..len / 8 {
                    let word = results.word(n).load(Ordering::Acquire);
                    assert!(word != POISON && word >= seen && word <= rounds, "word {n}: {word:#x} in round {seen}");
                }
                read += 1;
            }
            if over {
                break;
            }
        }
        println!("rank {me}: {read} reads, {refused} refused");
    }
    sync();
    finalize();
}
