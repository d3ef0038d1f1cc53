//! Many ranks on the same words, and many remote commands.

use crate::acp::*;
use crate::ranks::bytes::Draw;
use crate::ranks::{Job, long, said, short};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Operations of all ranks together, on memory that is mapped; a tenth of it by commands.
fn operations() -> u64 {
    if long() {
        10_000_000
    } else if short() {
        20_000
    } else {
        400_000
    }
}

pub fn mixed() {
    for (kind, share) in [("shared", 1), ("private", 10)] {
        for way in ["", "FMPL_WAIT=block FMPL_RMA_COMMANDS=16"] {
            let since = Instant::now();
            let count = operations() / share / if way.is_empty() { 1 } else { 4 };
            Job::new(8, "sums").settings(way).env("KIND", kind).env("COUNT", count / 8).seconds(240).run();
            println!("  {count} on {kind} memory, {way}: {:.1} s", since.elapsed().as_secs_f64());
        }
    }
}

const WORDS: usize = 64;

/// Every rank works on the same 64 words of rank 0. What each word comes to does not depend on the order: by additions (8 bytes, and two
/// of 4 bytes in one word, which must not disturb each other), by exclusive or, by or and and on bits of the rank's own, by CAS loops,
/// and by swaps that pass tokens on.
pub fn sums() {
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let count: u64 = std::env::var("COUNT").unwrap().parse().unwrap();
    let kind = if std::env::var("KIND").unwrap() == "private" { Kind::Private } else { Kind::Shared };
    let words = Memory::new(kind, WORDS * 8);
    let at = exchange(0, register(words.ptr(), WORDS * 8).1)[0];
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    let old = || results.word(0).load(Ordering::Acquire);
    let mut draw = Draw(77 + me as u64);
    // What this rank has done to each word: to be compared with what has become of it.
    let mut mine = [0u64; WORDS];
    let mut held = 1u64 << (8 * me) | me as u64;
    let tokens = held;
    for n in 0..count {
        let w = draw.below(WORDS);
        let word = at + 8 * w as u64;
        let value = draw.below(1 << 20) as u64;
        match w % 7 {
            0 => {
                complete(fetch8(Op::Add, result, word, value, 0, NOW));
                mine[w] = mine[w].wrapping_add(value);
            }
            1 => {
                let half = n % 2;
                complete(fetch4(Op::Add, result, word + 4 * half, value as u32, 0, NOW));
                let part = &mut mine[w];
                let (mut low, mut high) = (*part as u32, (*part >> 32) as u32);
                if half == 0 {
                    low = low.wrapping_add(value as u32)
                } else {
                    high = high.wrapping_add(value as u32)
                }
                *part = u64::from(high) << 32 | u64::from(low);
            }
            2 => {
                complete(fetch8(Op::Xor, result, word, value, 0, NOW));
                mine[w] ^= value;
            }
            3 => {
                let bit = 1 << (8 * me + draw.below(8));
                if n % 3 == 0 {
                    complete(fetch8(Op::And, result, word, !bit, 0, NOW));
                    assert_eq!(old() >> (8 * me) & 255, mine[w] >> (8 * me) & 255, "this rank's own bits");
                    mine[w] &= !bit;
                } else {
                    complete(fetch8(Op::Or, result, word, bit, 0, NOW));
                    mine[w] |= bit;
                }
            }
            4 => {
                let (half, bit) = (word + 4 * (n % 2), 1u32 << (4 * me + draw.below(4)));
                complete(fetch4(Op::Xor, result, half, bit, 0, NOW));
                mine[w] ^= u64::from(bit) << (32 * (n % 2));
            }
            5 => {
                let mut guess = 0;
                loop {
                    complete(fetch8(Op::Cas, result, word, guess + 1, guess, NOW));
                    if old() == guess {
                        break;
                    }
                    guess = old();
                }
                mine[w] += 1;
            }
            _ => {
                complete(fetch8(Op::Swap, result, word, held, 0, NOW));
                held = old();
            }
        }
    }
    sync();
    // Every rank tells what it did; the owner adds it up.
    let told = Memory::new(Kind::Shared, (WORDS + 2) * 8);
    (0..WORDS).for_each(|w| told.word(w).store(mine[w], Ordering::Relaxed));
    told.word(WORDS).store(held, Ordering::Relaxed);
    told.word(WORDS + 1).store(tokens, Ordering::Release);
    let all = exchange(1, register(told.ptr(), (WORDS + 2) * 8).1);
    if me == 0 {
        let mut others = vec![[0u64; WORDS + 2]; size];
        for (other, ga) in all.iter().enumerate() {
            copy_now(result + 512, *ga, (WORDS + 2) * 8);
            (0..WORDS + 2).for_each(|w| others[other][w] = results.word(64 + w).load(Ordering::Acquire));
        }
        let (mut there, mut given) = (Vec::new(), Vec::new());
        for w in 0..WORDS {
            let is = words.word(w).load(Ordering::Acquire);
            let of = others.iter().map(|o| o[w]);
            let want = match w % 7 {
                0 | 5 => of.fold(0, u64::wrapping_add),
                1 => of.fold(0, |a, b| {
                    let low = (a as u32).wrapping_add(b as u32);
                    let high = ((a >> 32) as u32).wrapping_add((b >> 32) as u32);
                    u64::from(high) << 32 | u64::from(low)
                }),
                2 | 4 => of.fold(0, |a, b| a ^ b),
                3 => of.fold(0, |a, b| a | b),
                _ => {
                    there.push(is);
                    continue;
                }
            };
            assert_eq!(is, want, "word {w}");
        }
        // Swaps lose nothing and double nothing.
        given.extend(others.iter().map(|o| o[WORDS + 1]));
        there.extend(others.iter().map(|o| o[WORDS]));
        there.retain(|t| *t != 0);
        there.sort_unstable();
        given.sort_unstable();
        assert_eq!(there, given);
    }
    sync();
    finalize();
}

/// Commands one after the other and many at a time: the last ones are as fast as the first.
pub fn commands() {
    let count = if long() {
        3_000_000
    } else if short() {
        5000
    } else {
        100_000
    };
    let job = Job::new(2, "commands").env("COUNT", count).seconds(280);
    let outcome = job.run();
    print!("{}", said(&outcome, 0));
}

pub fn commanding() {
    init();
    let me = rank() as usize;
    let count: u64 = std::env::var("COUNT").unwrap().parse().unwrap();
    let words = Memory::new(Kind::Private, 4096);
    let at = exchange(0, register(words.ptr(), 4096).1)[1];
    let results = Memory::new(Kind::Private, 4096);
    let (_, result) = register(results.ptr(), 4096);
    if me == 0 {
        let mut times = Vec::new();
        for _ in 0..10 {
            let since = Instant::now();
            for n in 0..count / 10 {
                let handle = fetch8(Op::Add, result, at, 1, 0, NOW);
                // A hundred under way, now and then none.
                if n % 100 == 99 {
                    complete(handle);
                }
            }
            complete(ALL);
            times.push(since.elapsed().as_nanos() as f64 / (count / 10) as f64);
        }
        println!("  {count} commands, ns each by tenths: {times:.0?}");
    }
    sync();
    if me == 1 {
        assert_eq!(words.word(0).load(Ordering::Acquire), count / 10 * 10);
    }
    finalize();
}
