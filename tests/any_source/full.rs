use crate::ranks::bytes::{check, message, seed};
use crate::ranks::calls::*;
use crate::ranks::{Job, long};

fn until_stopped(pid: i32) {
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| s[s.rfind(')').unwrap()..].starts_with(") T"))
    {
        sleep_ms(1);
    }
}

fn send_signal(pid: i32, signal: i32) {
    // SAFETY: no memory.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Rank 0 is stopped: the others together bring exactly as many messages as there are places, and the next one waits.
pub fn is_stopped() {
    init(4);
    let (me, n) = (rank(), size());
    let slots = crate::places();
    // First contact, and nothing else, needs a process that runs.
    if me == 0 {
        if let Ok(limit) = std::env::var("LIMIT") {
            limit_any(limit.parse().unwrap(), 1);
        }
        barrier();
        for _ in 1..n {
            recv_any(&mut [0; 8], 1);
        }
    } else {
        barrier();
        send_any(&[0; 8], 0, 1);
    }
    if me == 0 {
        send(&std::process::id().to_le_bytes(), 1, 0);
        // SAFETY: no memory.
        unsafe { libc::raise(libc::SIGSTOP) };
        let mut buf = [0; 2000];
        let mut total = 0u64;
        let mut last = vec![-1i64; n as usize];
        // All the numbers, then those that had to wait, one of each.
        while last.iter().skip(1).any(|l| *l != i64::MAX) {
            let (src, len) = recv_any(&mut buf, 1);
            let word = i64::from_le_bytes(buf[..8].try_into().unwrap());
            assert!(word > last[src as usize], "rank {src}: {word} after {}", last[src as usize]);
            assert_eq!(len, 8 + (word % 1500) as usize);
            last[src as usize] = word;
            total += 1;
        }
        let mut sum = 0;
        for src in 1..n {
            let mut b = [0; 8];
            recv(&mut b, src, 2);
            sum += u64::from_le_bytes(b);
        }
        let room = std::env::var("LIMIT").map_or(slots, |l| l.parse().unwrap());
        assert_eq!(sum, room, "as many as there are places");
        assert_eq!(total, sum + n as u64 - 1, "each sender's last message waited");
    } else {
        if me == 1 {
            let mut b = [0; 4];
            recv(&mut b, 0, 0);
            until_stopped(i32::from_le_bytes(b));
            for other in 2..n {
                send(&b, other, 0);
            }
            fill(&b, n);
        } else {
            let mut b = [0; 4];
            recv(&mut b, 1, 0);
            fill(&b, n);
        }
    }
    barrier();
    finalize();
}

fn fill(pid: &[u8; 4], n: i32) {
    let me = rank();
    let mut buf = [0u8; 2000];
    let mut count = 0u64;
    // Buffered mode does not wait, so it tells when there is no room.
    mode(0);
    loop {
        buf[..8].copy_from_slice(&count.to_le_bytes());
        let code = try_send_any(&buf[..8 + (count % 1500) as usize], 0, 1);
        if code != 0 {
            fails(code, SPOOL_FULL);
            break;
        }
        count += 1;
    }
    // In the other modes the next one waits.
    mode(10);
    buf[..8].copy_from_slice(&i64::MAX.to_le_bytes());
    let last = &buf[..8 + (i64::MAX % 1500) as usize];
    isend_any(last, 0, 1);
    for _ in 0..20 {
        assert!(!isend_any_test(0, 1), "there is no room");
        sleep_ms(1);
    }
    // All are there; then the receiver may go on.
    for other in (1..n).filter(|o| *o != me) {
        send(&[1], other, 3);
    }
    for other in (1..n).filter(|o| *o != me) {
        recv(&mut [0], other, 3);
    }
    if me == 1 {
        send_signal(i32::from_le_bytes(*pid), libc::SIGCONT);
    }
    isend_any_wait(0, 1);
    send(&count.to_le_bytes(), 0, 2);
}

pub fn stopped() {
    for settings in [
        "FMPL_ANY_SLOTS=256",
        "FMPL_ANY_SLOTS=4 FMPL_WAIT=block",
        "FMPL_ANY_SLOTS=64 LIMIT=5",
        "FMPL_ANY_SLOTS=64 LIMIT=1 FMPL_WAIT=block",
    ] {
        for ranks in [2, 5] {
            Job::new(ranks, "stopped").settings(settings).seconds(30).run();
        }
    }
    // In shares, of which each has a sender or two.
    for settings in [
        "FMPL_ANY_SLOTS=256 FMPL_SPREAD=4",
        "FMPL_ANY_SLOTS=64 FMPL_SPREAD=2 FMPL_WAIT=block LIMIT=5",
        "FMPL_ANY_SLOTS=64 FMPL_SPREAD=4 LIMIT=4",
    ] {
        Job::new(5, "stopped").settings(settings).seconds(30).run();
    }
}

/// With a share for each sender, the receiver takes from one after the other, whatever each has brought.
pub fn takes_turns() {
    init(4);
    let (me, n) = (rank(), size());
    let each = 20;
    if me != 0 {
        for k in 0..each * me as u64 {
            send_any(&message(8 + (k % 90) as usize, seed(me, 0, 0, k)), 0, 0);
        }
        barrier();
        barrier();
        return finalize();
    }
    barrier();
    let mut next = vec![0u64; n as usize];
    let mut buf = [0; 100];
    let total: u64 = (1..n as u64).map(|r| each * r).sum();
    for _ in 0..total {
        let probed = probe_any(0).unwrap();
        let (src, len) = recv_any(&mut buf, 0);
        assert_eq!(probed, (src, len));
        let seq = &mut next[src as usize];
        assert_eq!(len, 8 + (*seq % 90) as usize);
        check(&buf[..len], seed(src, 0, 0, *seq), "a message of its turn");
        *seq += 1;
        // Who has more is never ahead of who has some left by more than one.
        let least = (1..n).filter(|r| next[*r as usize] < each * *r as u64).map(|r| next[r as usize]).min();
        assert!(least.is_none_or(|least| next[src as usize] <= least + 1), "{next:?}");
    }
    barrier();
    finalize();
}

pub fn turns() {
    for (spread, wait) in [(4, "spin"), (8, "block")] {
        let settings = format!("FMPL_ANY_SLOTS=1024 FMPL_SPREAD={spread} FMPL_WAIT={wait}");
        Job::new(4, "takes turns").settings(&settings).run();
    }
}

/// Bytes of this process that are in memory, shared ones included.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// 1000 messages of 1 KiB of each sender, while the receiver sleeps first.
pub fn counts_memory() {
    init(4);
    let (me, n) = (rank(), size());
    let each = 1000;
    barrier();
    if me == 0 {
        let mut buf = vec![7; 1024];
        // The code and its data are in memory before it is measured.
        for _ in 1..n {
            recv_any(&mut buf, 1);
        }
        let before = resident();
        barrier();
        sleep_ms(1000);
        let mut next = vec![0u64; n as usize];
        for _ in 0..each * (n as u64 - 1) {
            let (src, len) = recv_any(&mut buf, 0);
            assert_eq!(len, 1024);
            let seq = &mut next[src as usize];
            check(&buf, seed(src, 0, 0, *seq), &format!("message {seq} of rank {src}"));
            *seq += 1;
        }
        let grown = resident().saturating_sub(before);
        println!("{grown}");
        assert!(grown <= 1 << 20, "the receiver grew by {grown} bytes");
    } else {
        send_any(&[7; 1024], 0, 1);
        barrier();
        for seq in 0..each {
            send_any(&message(1024, seed(me, 0, 0, seq)), 0, 0);
        }
    }
    barrier();
    finalize();
}

pub fn memory() {
    for senders in if long() { vec![8, 16, 32] } else { vec![8] } {
        let outcome = Job::new(senders + 1, "memory").run();
        println!("  {senders} senders: the receiver grew by {} bytes", crate::ranks::said(&outcome, 0).trim());
    }
}

/// Two ranks send to each other more than fits, and receive only then.
pub fn faces() {
    init(4);
    let other = other();
    let slots = crate::places();
    barrier();
    for round in 0..crate::number_of("ROUNDS").unwrap_or(200) {
        let data = message(100, round);
        let mut sent = 0;
        mode(0);
        while try_send_any(&data, other, 0) == 0 {
            sent += 1;
        }
        mode(10);
        isend_any(&data, other, 0);
        let all = sent + 1;
        send(&u64::to_le_bytes(all), other, 0);
        let mut theirs = [0; 8];
        recv(&mut theirs, other, 0);
        assert!(all == slots + 1);
        let mut buf = [0; 100];
        for _ in 0..u64::from_le_bytes(theirs) {
            assert_eq!(recv_any(&mut buf, 0), (other, 100));
            check(&buf, round, "one of many");
        }
        isend_any_wait(other, 0);
        barrier();
    }
    finalize();
}

pub fn facing() {
    for settings in ["FMPL_ANY_SLOTS=8", "FMPL_ANY_SLOTS=8 FMPL_WAIT=block"] {
        Job::new(2, "facing").settings(settings).seconds(60).run();
    }
}

/// Rank 1 fills a ring and sends one more; rank 0 takes a single message and waits for word that it has gone, which is sent elsewhere.
pub fn takes_one() {
    init(4);
    let slots = crate::places();
    barrier();
    for round in 0..crate::number_of("ROUNDS").unwrap_or(12) {
        if rank() == 1 {
            for k in 0..slots {
                send_any(&message(100, k), 0, 0);
            }
            send(&[1], 0, 0);
            send_any(&message(100, slots), 0, 0);
            send(&[2], 0, 0);
        } else {
            recv(&mut [0], 1, 0);
            // The sender looks for room, waits for more of it, or sleeps.
            sleep_ms([0, 1, 20][round as usize % 3]);
            let mut buf = [0; 100];
            for k in 0..slots + 1 {
                assert_eq!(recv_any(&mut buf, 0), (1, 100));
                check(&buf, k, "one of many");
                if k == 0 {
                    recv(&mut [0], 1, 0);
                }
            }
        }
        barrier();
    }
    finalize();
}

/// One place that gets free is enough for a sender that waits, however it waits.
pub fn one() {
    for wait in ["adaptive", "spin", "block"] {
        let settings = format!("FMPL_ANY_SLOTS=64 FMPL_WAIT={wait}");
        Job::new(2, "takes one").settings(&settings).seconds(60).run();
    }
}
