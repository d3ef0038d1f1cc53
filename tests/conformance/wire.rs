//! What goes over the wire between two nodes, counted; and how long it takes, for `tests/shows verbs`, which reads the lines that begin
//! with `figure`.

use crate::ranks;
use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::placed::*;
use crate::ranks::stepped::{Stepper, Steps};
use fmpl::Counter;
use std::time::{Duration, Instant};

const LONG: usize = 1 << 20;
/// On a busy machine a short message may find its landing taken; then it goes by the chain, whose block is fetched in pieces of some hundred
/// bytes, which count. A long one that was copied would count eight times as much.
const SHORT_COPIES: u64 = LONG as u64 / 8;

/// In which a call that goes step by step is over, and its message there.
const APART: Duration = Duration::from_millis(1000);

fn count(which: Counter) -> u64 {
    fmpl::comm::counter(which as i32).expect("a counter")
}

/// Bytes that the network devices under the RDMA devices have sent.
fn sent_bytes() -> u64 {
    let devices = std::fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
    let under = |d: std::fs::DirEntry| -> Option<u64> {
        let name = std::fs::read_to_string(d.path().join("ports/1/gid_attrs/ndevs/1")).ok()?;
        std::fs::read_to_string(format!("/sys/class/net/{}/statistics/tx_bytes", name.trim())).ok()?.trim().parse().ok()
    };
    devices.filter_map(under).sum()
}

pub fn rounds() -> usize {
    std::env::var("WIRE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// A hop to rank `who` and back, by an index that nothing else uses: `who` has answered whatever it received, so there is no acknowledgement
/// left that its fabric's thread would write when a connection comes up or changes.
fn owes_nothing(who: i32, me: i32, index: i32) {
    let (mut word, other) = ([0; 8], 1 - who);
    if me == other {
        send(&word, who, index);
    }
    recv(&mut word, 1 - me, index);
    if me == who {
        send(&word, other, index);
    }
}

/// A message of 8 bytes whose receive is posted: one write for the posting, one for the landing.
pub fn posted(me: i32) {
    const INDICES: i32 = 100;
    let mut got = vec![[0u8; 8]; INDICES as usize];
    (0..2).for_each(|_| barrier());
    owes_nothing(1, me, 250);
    if me == 1 {
        let before = count(Counter::RdmaWrites);
        (0..INDICES).for_each(|t| irecv(&mut got[t as usize], 0, t));
        assert_eq!(count(Counter::RdmaWrites) - before, INDICES as u64, "writes for so many postings");
    }
    owes_nothing(0, me, 251);
    if me == 0 {
        let before = count(Counter::RdmaWrites);
        (0..INDICES).for_each(|t| send(&[t as u8; 8], 1, t));
        let writes = count(Counter::RdmaWrites) - before;
        println!("figure landing {:.3}", writes as f64 / INDICES as f64);
        assert_eq!(writes, INDICES as u64, "writes for so many landings");
    } else {
        (0..INDICES).for_each(|t| irecv_wait(0, t));
        (0..INDICES).for_each(|t| assert_eq!(got[t as usize], [t as u8; 8]));
        println!("figure posting 1.000");
    }
    barrier();
}

/// A ping-pong of short messages: one write a hop, and hardly a completion.
pub fn ping_pong(me: i32) {
    let (rounds, mut got) = (rounds(), [0u8; 8]);
    let mut hop = |k: usize| {
        if me == 0 {
            send(&k.to_ne_bytes(), 1, 200);
            recv(&mut got, 1, 200);
        } else {
            recv(&mut got, 0, 200);
            send(&k.to_ne_bytes(), 0, 200);
        }
        assert_eq!(got, k.to_ne_bytes());
    };
    (0..20).for_each(&mut hop);
    let before = [Counter::RdmaWrites, Counter::RdmaReads, Counter::RdmaCompletions].map(count);
    let mut times: Vec<f64> = (0..rounds)
        .map(|k| {
            let since = Instant::now();
            hop(k);
            since.elapsed().as_secs_f64()
        })
        .collect();
    let after = [Counter::RdmaWrites, Counter::RdmaReads, Counter::RdmaCompletions].map(count);
    let [writes, reads, completions] = [0, 1, 2].map(|n| (after[n] - before[n]) as f64 / rounds as f64);
    times.sort_by(f64::total_cmp);
    if me == 0 {
        println!("figure hop_us {:.3}", times[rounds / 2] * 0.5e6);
        println!("figure hop_writes {writes:.3}");
        println!("figure hop_completions {completions:.3}");
    }
    // A hop that took long enough for its receiver to lose its patience costs a posting more: any may, on a busy machine.
    assert!(writes < 2.1 && reads == 0.0, "{writes} writes and {reads} reads a hop");
    assert!(completions < 0.5, "{completions} completions a hop");
    barrier();
}

/// The same, each call step by step: its instructions up to the network's own post, all of them, and the network's. Nobody waits, since the message
/// is there when it is received.
pub fn instructions(me: i32) {
    const MESSAGES: usize = 5;
    let stepper = match Stepper::new() {
        Ok(stepper) if cfg!(target_arch = "x86_64") => stepper,
        Ok(_) => return,
        Err(e) => return ranks::skip::note("instructions", &e.to_string()),
    };
    // The acquaintance at full speed: what waits for the peer's answer step by step may take minutes.
    owes_nothing(1, me, 240);
    let (mut got, mut counted) = ([0u8; 8], Vec::new());
    for k in 0..MESSAGES + 2 {
        let steps = if me == 0 {
            let sent = stepper.count(|| send(&k.to_ne_bytes(), 1, 240));
            recv(&mut got, 1, 240);
            sent
        } else {
            std::thread::sleep(APART);
            let received = stepper.count(|| recv(&mut got, 0, 240));
            send(&k.to_ne_bytes(), 0, 240);
            received
        };
        counted.push(steps.expect("it went before").0);
        assert_eq!(got, k.to_ne_bytes());
    }
    // First ones fill the caches of what is looked up.
    let median = |of: fn(&Steps) -> u64| {
        let mut all: Vec<u64> = counted[2..].iter().map(of).collect();
        all.sort();
        all[MESSAGES / 2]
    };
    let [ours, before, foreign] = [|s: &Steps| s.ours, |s: &Steps| s.before, |s: &Steps| s.foreign].map(median);
    let call = if me == 0 { "send" } else { "recv" };
    println!("figure {call}_instructions {before}");
    println!("figure {call}_instructions_in_all {ours}");
    println!("figure {call}_foreign_instructions {foreign}");
    assert!(ours >= before && before > 0);
    barrier();
}

/// Long messages whose receives are posted: no byte is copied by a processor, and little more than the bytes goes over the wire.
pub fn long(me: i32) {
    const WINDOW: usize = 4;
    let mut memory = vec![vec![me as u8; LONG]; WINDOW];
    let turns = if rounds() > 100 { 8 } else { 2 };
    let mut run = || {
        if me == 1 {
            memory.iter_mut().enumerate().for_each(|(t, m)| irecv(m, 0, 210 + t as i32));
            send(&[0; 8], 0, 209);
            (0..WINDOW as i32).for_each(|t| irecv_wait(0, 210 + t));
            assert!(memory.iter().all(|m| m[0] == 0 && m[LONG - 1] == 0));
        } else {
            recv(&mut [0; 8], 1, 209);
            memory.iter().enumerate().for_each(|(t, m)| isend(m, 1, 210 + t as i32));
            (0..WINDOW as i32).for_each(|t| isend_wait(1, 210 + t));
        }
    };
    // The first registers the memory.
    run();
    barrier();
    let (copied, bytes, wire, since) =
        (count(Counter::RdmaCopied), count(Counter::RdmaBytes), sent_bytes(), Instant::now());
    (0..turns).for_each(|_| run());
    let (time, payload) = (since.elapsed().as_secs_f64(), (turns * WINDOW * LONG) as f64);
    let copied = count(Counter::RdmaCopied) - copied;
    assert!(copied < SHORT_COPIES, "{copied} bytes copied by a processor");
    if me == 0 {
        let (posted, wire) =
            ((count(Counter::RdmaBytes) - bytes) as f64 / payload, (sent_bytes() - wire) as f64 / payload);
        println!("figure bandwidth_mb {:.1}", payload / time / 1e6);
        println!("figure wire {wire:.4}");
        assert!((1.0..1.01).contains(&posted), "{posted} bytes posted for one of the message's");
        assert!((1.0..1.03).contains(&wire), "{wire} bytes on the wire for one of the message's");
    }
    barrier();
}

/// 1 MB in runs of 4 KiB, strided on both sides, whose receive is posted: the device gathers the runs, and no byte is copied by a processor.
pub fn strided(me: i32) {
    let mut place = Placed::new(Shape::Block, LONG);
    for turn in 0..3 {
        let content = seed(0, 1, 220, turn);
        if me == 0 {
            place.put(&message(LONG, content));
        }
        barrier();
        let before = count(Counter::RdmaCopied);
        if me == 1 {
            ok(place.recv(0, 220, true));
            send(&[0; 8], 0, 221);
            irecv_wait(0, 220);
            check(&place.get(LONG, "strided"), content, "1 MB strided to strided");
        } else {
            recv(&mut [0; 8], 1, 221);
            ok(place.send(1, 220, false));
        }
        let copied = count(Counter::RdmaCopied) - before;
        assert!(copied < SHORT_COPIES, "{copied} bytes of a strided message copied by a processor");
        if turn == 0 {
            println!("figure strided_copied {copied}");
        }
    }
    barrier();
}

/// A long message whose receive is posted is sent by the device: where acknowledgements take long, the call that begins it returns while the
/// device still reads its memory, and tests say so until it has. Then the memory may be changed.
pub fn lasting(me: i32) {
    const BYTES: usize = 128 << 10;
    let mut memory = vec![0u8; BYTES];
    let rig = ranks::in_rig();
    if rig && me == 1 {
        ranks::link(1, "delay 100ms");
    }
    for k in 0..4 {
        let content = seed(0, 1, 230, k);
        if me == 1 {
            irecv(&mut memory, 0, 230);
            send(&[0; 8], 0, 231);
            irecv_wait(0, 230);
            check(&memory, content, "128 KiB, its sender elsewhere");
        } else {
            memory.copy_from_slice(&message(BYTES, content));
            recv(&mut [0; 8], 1, 231);
            isend(&memory, 1, 230);
            let over = isend_test(1, 230);
            assert!(!(rig && over), "over before it can have been acknowledged");
            match k % 2 {
                _ if over => {}
                0 => isend_wait(1, 230),
                _ => isend_poll(1, 230),
            }
            memory.fill(0xee);
        }
    }
    barrier();
    if rig && me == 1 {
        ranks::link(1, "clear");
    }
}
