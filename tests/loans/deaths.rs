use crate::hand::contents;
use crate::lend::*;
use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, long, said, short, story};
use std::collections::BTreeSet;

fn files_in_shm() -> Vec<String> {
    let dir = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    dir.map(|f| f.file_name().to_string_lossy().into_owned()).filter(|n| n.contains("fmpl")).collect()
}

/// Rank 0 hands loans over and dies; rank 1 reads them after its death, also those that it had not received by then, and returns them.
pub fn owner_ends() {
    init(8);
    let wanted = |k: u64| contents(0, 0, k, if k.is_multiple_of(2) { 100 } else { 1_000_000 });
    if rank() == 0 {
        (0..6).for_each(|k| send_filled(&wanted(k), 1, 0));
        let mut word = [0; 8];
        recv(&mut word, 1, 1);
        // SAFETY: no memory; this is the end.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let mut held: Vec<_> = (0..3).map(|_| recv_loan(0, 0)).collect();
    send(&[0; 8], 0, 1);
    // Until its death is known.
    while try_send(b"there?", 0, 2) == 0 {
        sleep_ms(1);
    }
    held.extend((0..3).map(|_| recv_loan(0, 0)));
    fails(try_recv_loan(0, 0).0, PEER);
    held.into_iter().enumerate().for_each(|(k, lent)| is_filled(lent, &wanted(k as u64)));
    println!("read them all");
    if std::env::var_os("BOTH").is_some() {
        let _kept = loan(5_000_000);
        // SAFETY: as above.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

pub fn owner() {
    let before = files_in_shm();
    for both in [false, true] {
        let mut job = Job::new(2, "owner ends").keep_going();
        if both {
            job = job.env("BOTH", 1);
        }
        let outcome = job.outcome();
        assert!(said(&outcome, 1).contains("read them all"), "{}", story(&outcome));
    }
    assert_eq!(files_in_shm(), before);
}

/// Rank 1 dies with loans of rank 0, received and not received: rank 0 can take as many again.
pub fn holder_ends() {
    init(8);
    const LOANS: usize = 20;
    let mut none = std::ptr::null_mut();
    if rank() == 1 {
        (0..7).for_each(|_| _ = recv_loan(0, 0));
        send(&[0; 8], 0, 1);
        recv(&mut [0; 8], 0, 3);
        // SAFETY: no memory; this is the end.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if rank() == 2 {
        return third();
    }
    let places: BTreeSet<usize> = (0..LOANS)
        .map(|k| {
            let at = loan(1000);
            send_loan(at, 1000, if k % 2 == 0 { 1 } else { 2 }, 0);
            at as usize
        })
        .collect();
    recv(&mut [0; 8], 1, 1);
    fails(try_loan(1000, &mut none), fmpl::Code::Memory as i32);
    send(&[0; 8], 1, 3);
    // Until its death is known.
    while try_send(b"there?", 1, 2) == 0 {
        sleep_ms(1);
    }
    let again: BTreeSet<usize> = (0..LOANS / 2).map(|_| loan(1000) as usize).collect();
    assert!(again.len() == LOANS / 2 && again.is_subset(&places));
    fails(try_loan(1000, &mut none), fmpl::Code::Memory as i32);
    // What the living one holds comes back when that returns it.
    send(&[0; 8], 2, 3);
    recv(&mut [0; 8], 2, 1);
    let rest: BTreeSet<usize> = (0..LOANS / 2).map(|_| loan(1000) as usize).collect();
    assert!(rest.len() == LOANS / 2 && rest.is_disjoint(&again) && rest.is_subset(&places));
    println!("has them all");
}

/// The third rank of it: holds, and returns when told.
fn third() {
    let held: Vec<_> = (0..10).map(|_| recv_loan(0, 0)).collect();
    recv(&mut [0; 8], 0, 3);
    held.into_iter().for_each(|(at, _)| give_back(at));
    send(&[0; 8], 0, 1);
}

pub fn holder() {
    let outcome = Job::new(3, "holder ends").settings("FMPL_LOANS=20,1M").keep_going().outcome();
    assert!(said(&outcome, 0).contains("has them all"), "{}", story(&outcome));
}

/// Rank 0 hands loans of one pool to all others, who hold some of them for a while, until they are killed one after the other; each loan's
/// stamp says which use it is.
pub fn pool_body() {
    init(8);
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (loans, hand_overs, seed) = (number("LOANS") as usize, number("HAND_OVERS"), number("SEED"));
    if rank() == 0 { owner_of_pool(loans, hand_overs, seed) } else { holder_of_pool(seed) }
}

const BYTES: usize = 128;

fn owner_of_pool(loans: usize, hand_overs: u64, seed: u64) {
    let mut draw = Draw(seed);
    let mut living: Vec<i32> = (1..size()).collect();
    let each = hand_overs / 8;
    let (mut sent, mut errors) = (0u64, 0);
    let mut uses = std::collections::HashMap::new();
    let mut to = vec![0u64; size() as usize];
    let mut asked = std::time::Instant::now();
    while sent < hand_overs {
        let mut at = std::ptr::null_mut();
        let code = try_loan(BYTES, &mut at);
        if code != 0 {
            // All are out: the others return some, or are found dead.
            fails(code, fmpl::Code::Memory as i32);
            std::thread::yield_now();
            // Nobody receives these: seldom enough for the spool, however long the others take.
            if asked.elapsed().as_millis() >= 10 {
                asked = std::time::Instant::now();
                let peer = living[draw.below(living.len())];
                if try_send(b"", peer, 7) != 0 {
                    living.retain(|p| *p != peer);
                }
            }
            continue;
        }
        let peer = living[draw.below(living.len())];
        sent += 1;
        *uses.entry(at as usize).or_insert(0u64) += 1;
        // SAFETY: a loan of that length, this rank's as long as it has not been sent.
        unsafe {
            at.cast::<u64>().write(sent);
            at.add(BYTES - 8).cast::<u64>().write(!sent);
        }
        to[peer as usize] += 1;
        let last = to[peer as usize] == each && living.len() > 1 && peer != size() - 1;
        // SAFETY: as above.
        unsafe { at.add(8).cast::<u64>().write(last as u64) };
        if try_send_loan(at, BYTES, peer, 0) != 0 {
            errors += 1;
            assert!(last_error().contains(&format!("rank {peer} has died")), "{}", last_error());
            living.retain(|p| *p != peer);
            give_back(at);
        }
        assert!(uses.len() <= loans, "{} places of {loans} loans", uses.len());
    }
    for peer in living {
        let at = loan_at_last();
        // SAFETY: as above.
        unsafe {
            at.cast::<u64>().write(u64::MAX);
            at.add(8).cast::<u64>().write(2);
        }
        _ = try_send_loan(at, BYTES, peer, 0);
    }
    // None is lost: all can be had at the same time.
    let all: BTreeSet<usize> = (0..loans).map(|_| loan_at_last() as usize).collect();
    assert_eq!(all.len(), loans);
    println!("{sent} hand-overs, {errors} to the dead, {} places", all.len());
}

/// A loan, as soon as those who have them have returned them or are known to be dead.
fn loan_at_last() -> At {
    let mut at = std::ptr::null_mut();
    let since = std::time::Instant::now();
    while try_loan(BYTES, &mut at) != 0 {
        assert!(since.elapsed().as_secs() < 60, "loans are lost: {}", last_error());
        sleep_ms(1);
    }
    at
}

fn holder_of_pool(seed: u64) {
    let mut draw = Draw(seed ^ rank() as u64);
    let mut held: Vec<((At, usize), u64)> = Vec::new();
    let check = |(at, _): (At, usize), stamp: u64| {
        // SAFETY: a loan that is held.
        let there = unsafe { (at.cast::<u64>().read_volatile(), at.add(BYTES - 8).cast::<u64>().read_volatile()) };
        assert!(there == (stamp, !stamp) || stamp == u64::MAX, "handed over twice: {there:x?}, not {stamp:x}");
    };
    loop {
        let lent = recv_loan(0, 0);
        // SAFETY: a loan that is held.
        let (stamp, what) = unsafe { (lent.0.cast::<u64>().read(), lent.0.add(8).cast::<u64>().read()) };
        if what == 1 {
            // SAFETY: no memory; this is the end, with loans held.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        held.push((lent, stamp));
        if what == 2 {
            break;
        }
        while held.len() > 20 || (!held.is_empty() && draw.one_in(2)) {
            let (lent, stamp) = held.swap_remove(draw.below(held.len()));
            check(lent, stamp);
            give_back(lent.0);
        }
    }
    for (lent, stamp) in held {
        check(lent, stamp);
        give_back(lent.0);
    }
}

pub fn pool() {
    let (loans, hand_overs) = if long() { (1000, 10_000_000) } else { (100, if short() { 2000 } else { 100_000 }) };
    let outcome = Job::new(4, "pool")
        .env("LOANS", loans)
        .env("HAND_OVERS", std::env::var("HAND_OVERS").unwrap_or_else(|_| hand_overs.to_string()))
        .env("SEED", 11)
        .env("FMPL_LOANS", format!("{loans},1G"))
        .seconds(if long() { 1200 } else { 90 })
        .keep_going()
        .outcome();
    let text = said(&outcome, 0);
    assert!(text.contains("hand-overs"), "{}", story(&outcome));
    println!("{}", text.trim());
}
