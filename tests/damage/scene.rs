//! What the ranks do while one of them is damaged, and what must hold for the others.

use crate::guarded::Guarded;
use crate::ranks::bytes::{Draw, check, fill, message};
use crate::ranks::calls::*;
use crate::ranks::placed::{Placed, SHAPES};
use crate::ranks::{Job, long, short, story};
use crate::records::{Records, damage};
use fmpl::ffi::acp::*;
use fmpl::ffi::c::*;
use fmpl::launch::embedded::End;
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The ways of messages, as `tests/conformance` has them.
const WAYS: [&str; 10] = [
    "FMPL_SHM_PATH=auto",
    "FMPL_SHM_PATH=auto FMPL_WAIT=block",
    "FMPL_SHM_PATH=auto FMPL_CMA=off",
    "FMPL_SHM_PATH=spool",
    "FMPL_SHM_PATH=ring FMPL_TAKE_OVER=on",
    "FMPL_SHM_PATH=store",
    "FMPL_SHM_PATH=cma",
    "FMPL_SHM_PATH=coop",
    "FMPL_SHM_PATH=turn FMPL_TURN_MEMORY=2M",
    "FMPL_SHM_PATH=coop FMPL_CMA=off",
];
/// Settings of collective calls, one of which goes with each seed.
const COLLECTIVES: [&str; 4] = [
    "",
    "FMPL_COLL_BCAST=pull FMPL_COLL_ALLREDUCE=pull FMPL_COLL_EXCHANGE=pull",
    "FMPL_COLL_BCAST=coop FMPL_COLL_EXCHANGE=cells",
    "FMPL_COLL_BCAST=cells FMPL_COLL_ALLREDUCE=cells",
];
/// The acts, by how often each is drawn.
const ACTS: [&str; 6] = ["pairs", "pairs", "pairs", "any source", "together", "global memory"];

/// What a rank that did well says, with the longest of its waits.
const WELL: &str = "well";

/// What all ranks of a seed know.
struct Plan {
    seed: u64,
    damaged: i32,
    me: i32,
    ranks: i32,
    /// The communicator of the others; of the damaged rank, one of its own.
    others: i32,
    act: &'static str,
    /// The longest call of this rank so far.
    longest: Duration,
    /// Memory of messages from and to the damaged rank: nobody uses it for anything else.
    kept: Vec<Guarded>,
    /// An error with the damaged rank has been seen: nothing more is done with it.
    parted: bool,
}

impl Plan {
    fn timed<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let since = Instant::now();
        let result = call();
        self.longest = self.longest.max(since.elapsed());
        result
    }

    /// The code of a call with this rank: an error with one that is not damaged is none of its business.
    fn judge(&mut self, code: i32, with: i32, what: &str) {
        if code == 0 {
            return;
        }
        let text = last_error();
        assert!(with == self.damaged, "{what} with rank {with}, which is whole: code {code}: {text}");
        self.parted = true;
    }
}

/// One rank.
pub fn scribble() {
    let seed: u64 = std::env::var("SEED").expect("SEED").parse().expect("a number");
    let mut draw = Draw(seed);
    init(32);
    let (me, ranks) = (rank(), size());
    let damaged = draw.below(ranks as usize) as i32;
    let act = ACTS[draw.below(ACTS.len())];
    mode([10, 10, 0, 1000][draw.below(4)]);
    let others = split(WORLD, (me == damaged) as i32, 0);
    let early = draw.one_in(4);
    if act == "global memory" {
        assert_eq!(acp_init(null_mut(), null_mut()), 0);
    }
    // All have what they need of each other before the damage.
    if me == damaged {
        (0..ranks).filter(|r| *r != me).for_each(|r| recv(&mut [0], r, 30));
    } else {
        send(&[1], damaged, 30);
    }
    let whole = message(1 << 18, seed ^ 1);
    let mut plan =
        Plan { seed, damaged, me, ranks, others, act, longest: Duration::ZERO, kept: Vec::new(), parted: false };
    if me == damaged {
        if early {
            let records = Records::now(me as u32);
            (0..4).for_each(|_| harm(&records, &mut draw));
        }
        std::thread::spawn(move || scribbler(seed, me));
        if early {
            // First contacts come after it.
            sleep_ms(1);
        }
    }
    match act {
        "any source" => any_source(&mut plan),
        "together" => together(&mut plan),
        "global memory" => global_memory(&mut plan),
        _ => pairs(&mut plan),
    }
    if me == damaged {
        // Until the other thread has done its work.
        loop {
            sleep_ms(1000);
        }
    }
    among_the_others(&mut plan);
    assert!(plan.kept.iter().all(Guarded::is_whole), "something was written before the buffer of a message");
    check(&whole, seed ^ 1, "memory that was given to nobody");
    println!("{WELL} {}", plan.longest.as_millis());
    // SAFETY: no memory. A job with a dead rank has no orderly end.
    unsafe { libc::_exit(0) };
}

/// Damages one word and says so.
fn harm(records: &Records, draw: &mut Draw) {
    let word = if draw.one_in(4) { records.blindly(draw) } else { records.aimed(draw) };
    if let Some(word) = word {
        let (old, new) = damage(&word, draw);
        eprintln!("{} of region {} at {:#x}: {old:#x} becomes {new:#x}", word.record, word.region, word.offset);
    }
}

/// The damage: words of what is there by now, then the end.
fn scribbler(seed: u64, me: i32) {
    let mut draw = Draw(seed ^ 0x5c21_bb1e);
    std::thread::sleep(Duration::from_micros(draw.below(6000) as u64));
    for _ in 0..1 + draw.below(5) {
        let records = Records::now(me as u32);
        for _ in 0..1 + draw.below(8) {
            harm(&records, &mut draw);
            if draw.one_in(2) {
                std::thread::sleep(Duration::from_micros(draw.below(400) as u64));
            }
        }
    }
    std::thread::sleep(Duration::from_micros(draw.below(8000) as u64));
    // SAFETY: no memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// All pairs in the same order, one after the other, each in a way that is drawn.
fn pairs(plan: &mut Plan) {
    let most = [16, 1200, 5000, 70_000, 600_000][Draw(plan.seed ^ 7).below(5)];
    for round in 0..10u64 {
        for low in 0..plan.ranks {
            for high in low + 1..plan.ranks {
                if low != plan.me && high != plan.me || plan.parted && (low == plan.damaged || high == plan.damaged) {
                    continue;
                }
                let number = plan.seed ^ (round << 40) ^ ((low as u64) << 20) ^ ((high as u64) << 30);
                pair(plan, low + high - plan.me, plan.me == low, number, most);
            }
        }
    }
}

/// What two ranks do with each other in one round.
fn pair(plan: &mut Plan, peer: i32, low: bool, number: u64, most: usize) {
    let mut draw = Draw(number);
    let kind = draw.below(7);
    let (len, index) = (draw.size(most), draw.below(6) as i32);
    let sends = low == (draw.below(2) == 0);
    let with_damaged = peer == plan.damaged || plan.me == plan.damaged;
    let (mine, theirs) = (number ^ low as u64, number ^ !low as u64 & 1);
    let theirs = if theirs == mine { number ^ (!low) as u64 } else { theirs };
    let out = message(len, mine);
    let mut inn = Guarded::new(len);
    let mut received = true;
    match kind {
        0..3 if sends => {
            let code = plan.timed(|| try_send(&out, peer, index));
            plan.judge(code, peer, "send");
            received = false;
            if kind == 2 && code == 0 {
                // What comes later must not be what is received of any index.
                let mut answer = Guarded::new(1);
                let code = plan.timed(|| try_recv(answer.bytes(), peer, 8));
                plan.judge(code, peer, "an answer");
                plan.kept.push(answer);
            }
        }
        0 | 1 => {
            let code = plan.timed(|| try_recv(inn.bytes(), peer, index));
            plan.judge(code, peer, "recv");
        }
        2 => {
            let code = plan.timed(|| try_recv(inn.bytes(), peer, ANY));
            plan.judge(code, peer, "recv of any index");
            let code = plan.timed(|| try_send(&[1], peer, 8));
            plan.judge(code, peer, "an answer");
        }
        3 => {
            // Blocks and lists, in memory with gaps that nobody may write to.
            let mut placed = Placed::new(SHAPES[draw.below(SHAPES.len())], len);
            let code = if sends {
                placed.put(&out);
                plan.timed(|| placed.send(peer, index, false))
            } else {
                plan.timed(|| placed.recv(peer, index, false))
            };
            plan.judge(code, peer, "a shape");
            let stream = placed.get(len, "a shape");
            if !sends && code == 0 && !with_damaged {
                check(&stream, theirs, "a shape of a whole rank");
            }
            return;
        }
        _ => {
            // Both ways at once, on two indices; the receive is posted first, or after the send.
            let late = draw.one_in(3);
            let codes = plan.timed(|| {
                let mut codes = [0; 4];
                if !late {
                    codes[0] = try_irecv(inn.bytes(), peer, index);
                }
                codes[1] = try_isend(&out, peer, index);
                if late {
                    codes[0] = try_irecv(inn.bytes(), peer, index);
                }
                if codes[1] == 0 {
                    codes[2] = try_isend_wait(peer, index);
                }
                if codes[0] == 0 {
                    codes[3] = try_irecv_wait(peer, index);
                }
                codes
            });
            codes.into_iter().for_each(|code| plan.judge(code, peer, "isend and irecv"));
        }
    }
    if with_damaged {
        plan.kept.push(inn);
    } else if received {
        assert!(inn.is_whole(), "something was written before a buffer");
        check(inn.bytes(), theirs, "from a whole rank");
    }
}

/// Everybody sends to everybody's ring, multicasts, and takes what comes until nothing more can.
fn any_source(plan: &mut Plan) {
    let mut draw = Draw(plan.seed ^ 11);
    let most = [48, 1000, 5000, 200_000][draw.below(4)];
    let count = 1 + draw.below(12) as u64;
    let master = draw.below(plan.ranks as usize) as i32;
    let data = vec![plan.me as u8; most.max(300_000)];
    let all = [(1u64 << plan.ranks) - 1];
    let mut ticket = 0;
    if plan.me == master {
        let len = Draw(plan.seed).size(300_000);
        // SAFETY: the data lives to the end; a word for the members.
        let code =
            plan.timed(|| unsafe { fmpl_mcast(data.as_ptr().cast(), len, all.as_ptr(), WORLD, (&mut ticket).into()) });
        ticket = if code == 0 { ticket } else { 0 };
    }
    let mut sent = Draw(plan.seed ^ plan.me as u64);
    let me = plan.me;
    for _ in 0..count {
        for to in (0..plan.ranks).filter(|r| *r != me) {
            let len = sent.size(most);
            // Whatever is in a ring that the damaged rank shares may be damaged, so errors are none of the others.
            plan.timed(|| try_send_any(&data[..len], to, 1));
        }
    }
    if plan.me == plan.damaged {
        return;
    }
    let mut heard = Guarded::new(300_000);
    let (mut size, mut who) = (0, 0);
    // SAFETY: the buffer has so many bytes.
    plan.timed(|| unsafe {
        fmpl_mcast_recv(heard.bytes().as_mut_ptr().cast(), 300_000, WORLD, (&mut size).into(), (&mut who).into())
    });
    plan.kept.push(heard);
    // Who has sent all tells the others by a way that the damaged rank has no part in.
    let mut done = vec![[0u8; 1]; plan.ranks as usize];
    let here = plan.ranks - 1;
    on(plan.others);
    let mine = rank();
    for to in (0..here).filter(|r| *r != mine) {
        irecv(&mut done[to as usize], to, 20);
        send(&[1], to, 20);
    }
    let mut waiting: Vec<i32> = (0..here).filter(|r| *r != mine).collect();
    on(WORLD);
    let mut taken = Guarded::new(most);
    let (since, mut dry) = (Instant::now(), 0);
    assert_eq!(try_irecv_any(taken.bytes(), 1), 0);
    while dry < 200 {
        assert!(since.elapsed() < Duration::from_secs(20), "ranks {waiting:?} of the others do not come");
        let (mut came, mut from, mut len) = (0, 0, 0);
        let code = fmpl_irecv_any_test(1, WORLD, (&mut came).into(), (&mut from).into(), (&mut len).into());
        if came != 0 || code != 0 {
            // Over, by a message or by an error that says why not.
            dry = if code == 0 { 0 } else { dry + 1 };
            let code = try_irecv_any(taken.bytes(), 1);
            assert!(code == 0 || code == BUSY, "{code} {}", last_error());
        } else {
            dry += waiting.is_empty() as i32;
            std::thread::yield_now();
        }
        on(plan.others);
        waiting.retain(|from| !irecv_test(*from, 20));
        on(WORLD);
    }
    plan.kept.push(taken);
    if ticket != 0 {
        plan.timed(|| fmpl_mcast_wait(ticket));
    }
}

/// Collective calls of all, until one fails; and of the others among themselves, none of which does.
fn together(plan: &mut Plan) {
    let mut draw = Draw(plan.seed ^ 13);
    let most = [3, 500, 20_000, 150_000][draw.below(4)];
    for round in 0..12u64 {
        let (kind, count, root) = (draw.below(6), 1 + draw.below(most), draw.below(plan.ranks as usize) as i32);
        if !plan.parted {
            let all = count * 8 * plan.ranks as usize;
            let (give, mut take) = (vec![1u8; all], Guarded::new(all));
            let (from, to) = (give.as_ptr().cast(), take.bytes().as_mut_ptr());
            // SAFETY: room for so many elements of all ranks.
            let code = plan.timed(|| unsafe {
                match kind {
                    0 => fmpl_barrier(WORLD),
                    1 => fmpl_bcast(to.cast(), count * 8, root, WORLD),
                    2 => fmpl_allreduce(to.cast(), count as i32, Some(fmpl_isum), WORLD, null_mut()),
                    3 => fmpl_allgather(from, count * 8, to.cast(), WORLD),
                    4 => fmpl_alltoall(from, count * 8, to.cast(), WORLD),
                    _ => fmpl_reduce(to.cast(), count as i32, Some(fmpl_isum), root, WORLD, null_mut()),
                }
            });
            plan.parted = code != 0;
            plan.kept.push(take);
        }
        if plan.me != plan.damaged {
            collective(plan, round, count);
        }
    }
}

/// One broadcast and one sum among the others.
fn collective(plan: &mut Plan, round: u64, count: usize) {
    let here = plan.ranks - 1;
    on(plan.others);
    let (mine, root) = (rank(), (round % here as u64) as i32);
    let number = plan.seed ^ round << 8;
    let mut bytes = if mine == root { message(count, number) } else { vec![0; count] };
    let mut sum = vec![mine + 1; count];
    let comm = comm();
    // SAFETY: the vectors have so many elements.
    plan.timed(|| unsafe {
        ok(fmpl_bcast(bytes.as_mut_ptr().cast(), count, root, comm));
        ok(fmpl_allreduce(sum.as_mut_ptr().cast(), count as i32, Some(fmpl_isum), comm, null_mut()));
    });
    check(&bytes, number, "a broadcast of whole ranks");
    let wanted = (1..=here).sum::<i32>();
    assert!(sum.iter().all(|s| *s == wanted), "a sum of whole ranks");
    on(WORLD);
}

/// Copies and atomic operations between all ranks' memory, shared and private.
fn global_memory(plan: &mut Plan) {
    let mut draw = Draw(plan.seed ^ (plan.me as u64 + 1) << 8);
    let mut own = Guarded::new(20_000);
    fill(own.bytes(), plan.seed);
    // SAFETY: all of it: the memory lives to the end, and lengths are within what is registered.
    unsafe {
        let key = acp_register_memory(own.bytes().as_mut_ptr().cast(), 20_000, 0);
        assert_ne!(key, 0, "registered");
        let at = acp_query_ga(key, own.bytes().as_mut_ptr().cast());
        let mine = acp_query_starter_ga(plan.me);
        // Where the others' private memory is.
        let mut theirs = vec![0u64; plan.ranks as usize];
        for to in (0..plan.ranks).filter(|r| *r != plan.me) {
            acp_copy(acp_query_starter_ga(to) + plan.me as u64 * 8, at_of(mine, at), 8, 0);
        }
        acp_complete(-1);
        for _ in 0..30 {
            let (a, b) = (draw.below(plan.ranks as usize) as i32, draw.below(plan.ranks as usize) as i32);
            let starter = acp_query_address(mine).cast::<u64>();
            theirs[a as usize] = if starter.is_null() { 0 } else { starter.add(a as usize).read_volatile() };
            let (to, from) = (acp_query_starter_ga(a) + 256, acp_query_starter_ga(b) + 512);
            let (to, from) = match draw.below(4) {
                0 if theirs[a as usize] != 0 => (theirs[a as usize], from),
                1 => (to, at),
                2 => (at, from),
                _ => (to, from),
            };
            let code = match draw.below(4) {
                0 => acp_add8(mine + 256, to, 3, 0),
                1 => acp_cas4(mine + 264, to, 1, 2, 0),
                _ => acp_copy(to, from, draw.size(9000), if draw.one_in(3) { -1 } else { 0 }),
            };
            let _ = code;
            if draw.one_in(3) {
                plan.timed(|| acp_complete(-1));
            }
        }
        plan.timed(|| acp_complete(-1));
    }
    plan.kept.push(own);
}

/// Puts a number into the first word of the own starter memory, and says where that is.
///
/// # Safety
/// Global memory is open.
unsafe fn at_of(mine: u64, number: u64) -> u64 {
    // SAFETY: the own starter memory.
    unsafe { acp_query_address(mine + 128).cast::<u64>().write_volatile(number) };
    mine + 128
}

/// What the others do when all is over: everything works among them, and what waits for the damaged rank gets an error.
fn among_the_others(plan: &mut Plan) {
    let mut byte = Guarded::new(64);
    let damaged = plan.damaged;
    let code = plan.timed(|| try_recv(byte.bytes(), damaged, 9));
    assert!(code != 0, "a message on an index on which nobody sends");
    let names = ["rank", "peer"].iter().any(|word| last_error().contains(&format!("{word} {}", plan.damaged)));
    assert!(names, "{code}: {}", last_error());
    plan.kept.push(byte);
    if plan.act == "global memory" {
        return;
    }
    collective(plan, 99, 3000);
    let here = plan.ranks - 1;
    on(plan.others);
    let mine = rank();
    for len in [8, 900, 4000, 60_000] {
        for other in (0..here).filter(|r| *r != mine) {
            let number = plan.seed ^ len as u64;
            let mut inn = vec![0; len];
            let out = message(len, number);
            plan.timed(|| sendrecv(&out, other, 3, &mut inn, other, 3));
            check(&inn, number, "among whole ranks");
        }
    }
    on(WORLD);
}

/// The seeds that are asked for, or a few.
pub fn seeds() {
    let asked = std::env::var("DAMAGE_SEEDS").ok().map(|text| match text.split_once("..") {
        Some((a, b)) => a.parse().expect("a number")..b.parse().expect("a number"),
        None => text.parse::<u64>().map(|n| n..n + 1).expect("a number"),
    });
    let range = asked.unwrap_or(if short() {
        0..8
    } else if long() {
        0..1000
    } else {
        0..60
    });
    let (mut longest, mut failed, count) = (0, Vec::new(), range.end - range.start);
    let mut hit = BTreeMap::<String, u64>::new();
    for seed in range {
        let job = job_of(seed);
        let outcome = job.outcome();
        let damaged = Draw(seed).below(ranks_of(seed)) as i32;
        for line in String::from_utf8_lossy(&outcome.stderr[damaged as usize]).lines() {
            if let Some((record, _)) = line.split_once(" of region ") {
                *hit.entry(record.to_owned()).or_default() += 1;
            }
        }
        for (rank, end) in outcome.ends.iter().enumerate() {
            let said = String::from_utf8_lossy(&outcome.stdout[rank]).into_owned();
            let well = said.lines().find_map(|line| line.strip_prefix(WELL)?.trim().parse::<u64>().ok());
            longest = longest.max(well.unwrap_or(0));
            let fine = rank as i32 == damaged || well.is_some() && matches!(end, End::Exit(0));
            if !fine || outcome.timed_out {
                failed.push(seed);
                println!("seed {seed}: rank {rank} {end:?} (rank {damaged} is the damaged one)\n{}", story(&outcome));
                println!("  again: DAMAGE_SEEDS={seed} cargo test --test damage -- scribbled");
                break;
            }
        }
    }
    println!("  words by record: {}", hit.iter().map(|(r, n)| format!("{r} {n}")).collect::<Vec<_>>().join(", "));
    println!("  {count} seeds, {} failed, longest wait {longest} ms", failed.len());
    assert!(failed.is_empty(), "seeds {failed:?}");
}

fn ranks_of(seed: u64) -> usize {
    2 + (seed % 3) as usize
}

fn job_of(seed: u64) -> Job {
    let settings = format!("{} {}", WAYS[(seed / 3 % 10) as usize], COLLECTIVES[(seed / 30 % 4) as usize]);
    Job::new(ranks_of(seed), "scribble").settings(&settings).env("SEED", seed).seconds(25).keep_going()
}
