use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ranks::Job;
use crate::ranks::bytes::{Draw, check, message};
use crate::ranks::calls::*;
use fmpl::ffi::c::*;
use fmpl::launch::embedded::Nodes;

pub fn try_mcast(buf: &[u8], members: &[u64], ticket: Option<&mut u64>) -> i32 {
    let ticket = ticket.map_or(Out::NULL, Out::from);
    // SAFETY: valid memory, which the tests leave alone until the ticket is complete.
    unsafe { fmpl_mcast(buf.as_ptr().cast(), buf.len(), members.as_ptr(), WORLD, ticket) }
}

pub fn mcast_wait(ticket: u64) -> i32 {
    fmpl_mcast_wait(ticket)
}

/// (code, bytes, master)
pub fn try_mcast_recv(buf: &mut [u8]) -> (i32, usize, i32) {
    let (mut len, mut master) = (usize::MAX, -1);
    // SAFETY: valid memory.
    let code =
        unsafe { fmpl_mcast_recv(buf.as_mut_ptr().cast(), buf.len(), WORLD, (&mut len).into(), (&mut master).into()) };
    (code, len, master)
}

fn mcast_recv(buf: &mut [u8], with: usize) -> (usize, i32) {
    if with == 0 {
        let (code, len, master) = try_mcast_recv(buf);
        ok(code);
        return (len, master);
    }
    let (mut done, mut len, mut master) = (0, usize::MAX, -1);
    // SAFETY: valid memory.
    unsafe {
        ok(fmpl_mcast_irecv(buf.as_mut_ptr().cast(), buf.len(), WORLD));
        fails(fmpl_mcast_irecv(std::ptr::null_mut(), 0, WORLD), BUSY);
        if with == 1 {
            ok(fmpl_mcast_irecv_wait(WORLD, (&mut len).into(), (&mut master).into()));
        }
        while with == 2 && done == 0 {
            ok(fmpl_mcast_irecv_test(WORLD, (&mut done).into(), (&mut len).into(), (&mut master).into()));
            std::thread::yield_now();
        }
    }
    (len, master)
}

/// How often a thread of this process was told on which cores to run.
static MOVED: AtomicUsize = AtomicUsize::new(0);

/// In place of libc's, for the library too: counts, and does it.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setaffinity(pid: c_int, size: usize, set: *const libc::cpu_set_t) -> c_int {
    MOVED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, pid, size, set) as c_int }
}

/// A group in each round, drawn by all alike; every rank is master in turn, and may be a member.
pub fn sends_to_groups() {
    init(4);
    let (me, n) = (rank(), size());
    let mut draw = Draw(4);
    let mut buf = vec![0; 1_400_000];
    // What every rank has mapped.
    let mapped = fmpl_alloc(1_400_000);
    assert!(!mapped.is_null());
    let rounds = crate::number_of("ROUNDS").unwrap_or(300);
    barrier();
    for round in 0..rounds {
        let master = (round % n as u64) as i32;
        let group = 1 + draw.number() % ((1 << n) - 1);
        let len = match round % 80 {
            7 => 500_000,
            27 | 47 => 1_300_000 + round as usize,
            _ => draw.size(60_000),
        };
        let with = draw.below(3);
        let many = if round % 30 == 5 { 20 } else { 1 };
        let data: Vec<Vec<u8>> = (0..many).map(|k| message(len, round * 100 + k)).collect();
        let mut tickets = Vec::new();
        if me == master {
            for data in &data {
                let mut ticket = 0;
                let keeps = with != 1;
                // SAFETY: so many bytes were allocated; one multicast at a time is that long, and is waited for below.
                let in_heap = unsafe { std::slice::from_raw_parts_mut(mapped.cast::<u8>(), len.min(1_400_000)) };
                let data = if round % 80 == 47 {
                    in_heap.copy_from_slice(data);
                    &*in_heap
                } else {
                    data
                };
                ok(try_mcast(data, &[group], keeps.then_some(&mut ticket)));
                tickets.extend(keeps.then_some(ticket));
            }
        }
        if group >> me & 1 == 1 {
            for k in 0..many {
                assert_eq!(mcast_recv(&mut buf, with), (len, master), "round {round}");
                check(&buf[..len], round * 100 + k, &format!("round {round}, number {k}, {len} bytes"));
            }
        }
        tickets.into_iter().for_each(|t| ok(mcast_wait(t)));
        // Masters take turns: nobody is told of two of them at once.
        barrier();
    }
    let mut sent = 0;
    for round in 0..rounds {
        if (round % n as u64) as i32 == me {
            sent += if round % 30 == 5 { 20 } else { 1 };
        }
    }
    assert_eq!(fmpl::p2p::any_source::multicast::multicasts_sent().unwrap(), sent, "a message for each multicast");
    // Truncated, empty, wrong.
    if me == 0 {
        let data = message(5000, 3);
        let mut ticket = 0;
        ok(try_mcast(&data, &[1 << (n - 1)], Some(&mut ticket)));
        ok(mcast_wait(ticket));
        ok(try_mcast(&[], &[1 << (n - 1)], None));
        fails(try_mcast(&data, &[0], None), ARGUMENT);
        fails(try_mcast(&data, &[1 << n], None), RANK);
        let mut done = 0;
        for none in [0, 77, ticket + (1 << 20), ticket + (1 << 50), u64::MAX] {
            fails(mcast_wait(none), REQUEST);
            fails(fmpl_mcast_test(none, (&mut done).into()), REQUEST);
        }
        ok(mcast_wait(ticket));
        fails(fmpl_mcast_irecv_cancel(WORLD), REQUEST);
    } else if me == n - 1 {
        let (code, len, master) = try_mcast_recv(&mut buf[..100]);
        fails(code, TRUNCATE);
        assert_eq!((len, master), (5000, 0));
        check(&buf[..100], 3, "the first bytes");
        assert_eq!(mcast_recv(&mut buf, 1), (0, 0));
    }
    barrier();
    // A provider of libfabric does so when it is loaded, and moves it back.
    if std::env::var("FMPL_MOVE").is_err() && !crate::ranks::by_libfabric() {
        assert_eq!(MOVED.load(Ordering::Relaxed), 0, "a thread of the program was moved");
    }
    // SAFETY: from above, and nobody uses it any more.
    ok(unsafe { fmpl_free(mapped) });
    finalize();
}

pub fn groups() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block FMPL_MOVE=on", "FMPL_CMA=off"] {
        for ranks in [2, 5] {
            Job::new(ranks, "groups").settings(settings).run();
        }
    }
    // In each form between nodes.
    for form in ["flat", "tree", "chain", "ring", "doubling"] {
        let rounds = if crate::ranks::long() { 48 } else { 20 };
        let job = |ranks| Job::new(ranks, "groups").settings("FMPL_NETWORK=tcp").env("ROUNDS", rounds);
        let job = |ranks| job(ranks).env("FMPL_MCAST_FAR", form);
        job(7).nodes(Nodes::Cyclic(7)).run();
        job(7).nodes(Nodes::Blocks(3)).run();
        job(7).nodes(Nodes::Cyclic(7)).env("FMPL_TOPOLOGY", "((0,3,5)(1,6))((2,4))").run();
    }
}

fn until_stopped(pid: i32) {
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| s[s.rfind(')').unwrap()..].starts_with(") T"))
    {
        sleep_ms(1);
    }
}

/// Ranks 1, 3 and 5 are no members and stopped all the time; rank 0 is stopped as soon as it has sent. Rank 7 wakes them at the end.
pub fn is_stopped() {
    init(4);
    let me = rank();
    let pid = std::process::id() as i32;
    let group = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7;
    if crate::number_of("APART").is_some() {
        // First contact needs processes that run.
        for (from, to) in [(1, 0), (3, 0), (5, 0), (1, 7), (3, 7), (5, 7), (0, 7)] {
            if me == from {
                send(&[1], to, 3);
            } else if me == to {
                recv(&mut [0], from, 3);
            }
        }
        if me == 0 {
            ok(try_mcast(&[5], &[group], None));
        } else if group >> me & 1 == 1 {
            mcast_recv(&mut [0], 0);
        }
        barrier();
    }
    if me % 2 == 1 && me != 7 {
        send(&pid.to_le_bytes(), 7, 0);
        send(&pid.to_le_bytes(), 0, 0);
        // SAFETY: no memory.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
    let hear = |from: i32| {
        let mut b = [0; 4];
        recv(&mut b, from, 0);
        i32::from_le_bytes(b)
    };
    let lens = [100usize, 9000, 700_000];
    let data = lens.map(|len| message(len, len as u64));
    let mut tickets = [0; 3];
    let mut stopped = Vec::new();
    match me {
        0 => {
            [1, 3, 5].into_iter().for_each(|r| until_stopped(hear(r)));
            for (data, ticket) in data.iter().zip(&mut tickets) {
                ok(try_mcast(data, &[group], Some(ticket)));
            }
            send(&pid.to_le_bytes(), 7, 0);
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        7 => stopped = [1, 3, 5, 0].map(hear).to_vec(),
        _ => {}
    }
    if group >> me & 1 == 1 {
        if me == 7 {
            stopped.iter().for_each(|pid| until_stopped(*pid));
            [2, 4, 6].into_iter().for_each(|r| send(&[1], r, 1));
        } else {
            recv(&mut [0], 7, 1);
        }
        let mut buf = vec![0; 700_000];
        for len in lens {
            assert_eq!(mcast_recv(&mut buf, 0), (len, 0));
            check(&buf[..len], len as u64, "the master is stopped");
        }
        if me == 7 {
            [2, 4, 6].into_iter().for_each(|r| recv(&mut [0], r, 2));
            // SAFETY: no memory.
            stopped.iter().for_each(|pid| assert_eq!(unsafe { libc::kill(*pid, libc::SIGCONT) }, 0));
        } else {
            send(&[1], 7, 2);
        }
    }
    if me == 0 {
        tickets.into_iter().for_each(|t| ok(mcast_wait(t)));
    }
    barrier();
    finalize();
}

pub fn stopped() {
    Job::new(8, "mcast stopped").run();
    Job::new(8, "mcast stopped").settings("FMPL_WAIT=block").run();
}

/// Rank 0 is stopped while rank 1 tries to make its acquaintance, and gives up: when it goes on it knows rank 1, but not the other way
/// round. What it sends is received all the same.
pub fn gives_contact_up() {
    init(4);
    let (me, pid) = (rank(), std::process::id() as i32);
    let endpoint = || fmpl::p2p::endpoint::endpoint().unwrap();
    let data = message(5000, 1);
    let mut buf = vec![0; 5000];
    match me {
        0 => {
            send(&pid.to_le_bytes(), 2, 0);
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGSTOP) };
            while endpoint().known(1).is_none() {
                sleep_ms(1);
            }
            ok(try_mcast(&data, &[0b10], None));
            // SAFETY: the buffer is readable.
            ok(unsafe { fmpl_send_any(data.as_ptr().cast(), data.len(), 1, 0, WORLD) });
        }
        1 => {
            recv(&mut [0], 2, 0);
            assert!(endpoint().contact_soon(0).is_none(), "it is stopped");
            send(&[1], 2, 0);
            let from = if crate::number_of("FIRST") == Some(0) {
                let (len, master) = mcast_recv(&mut buf, 0);
                assert_eq!((len, master), (5000, 0));
                check(&buf, 1, "the multicast");
                "the message"
            } else {
                "the first message"
            };
            // SAFETY: the buffer is writable.
            ok(unsafe { fmpl_recv_any(buf.as_mut_ptr().cast(), buf.len(), 0, WORLD) });
            check(&buf, 1, from);
            if from == "the first message" {
                assert_eq!(mcast_recv(&mut buf, 0), (5000, 0));
            }
        }
        _ => {
            let mut b = [0; 4];
            recv(&mut b, 0, 0);
            let pid = i32::from_le_bytes(b);
            until_stopped(pid);
            send(&[1], 1, 0);
            recv(&mut [0], 1, 0);
            // SAFETY: no memory.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
        }
    }
    barrier();
    finalize();
}

pub fn strangers() {
    [0, 1].into_iter().for_each(|first| drop(Job::new(3, "mcast of a stranger").env("FIRST", first).run()));
}

/// Rank 2, in the middle of the tree, dies before it takes part; the master is told, and what does not need rank 2 goes on.
pub fn member_dies() {
    init(4);
    let me = rank();
    barrier();
    let mut buf = vec![0; 100_000];
    let data = message(100_000, 1);
    if me == 2 {
        // SAFETY: no memory.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    if me == 0 {
        let mut ticket = 0;
        // 1 is the root; 2 is a leaf or tells others, by the group.
        let code = try_mcast(&data, &[0b1110], Some(&mut ticket));
        if code == 0 {
            fails(mcast_wait(ticket), PEER);
        } else {
            fails(code, PEER);
        }
        assert!(last_error().contains("rank 2"), "{}", last_error());
        ok(try_mcast(&data, &[0b1010], Some(&mut ticket)));
        ok(mcast_wait(ticket));
        [1, 3].into_iter().for_each(|r| send(&[1], r, 1));
    } else {
        // Deaths are told, a multicast that was given up is too; then the one to 1 and 3 comes.
        let mut whole = 0;
        irecv(&mut buf[..1], 0, 1);
        while !irecv_test(0, 1) {
            let mut done = 0;
            let (mut len, mut master) = (0, -1);
            let mut here = vec![0; 100_000];
            // SAFETY: the buffer lives until the request is completed or withdrawn, below.
            unsafe {
                ok(fmpl_mcast_irecv(here.as_mut_ptr().cast(), here.len(), WORLD));
                let code = fmpl_mcast_irecv_test(WORLD, (&mut done).into(), (&mut len).into(), (&mut master).into());
                if code != 0 {
                    fails(code, PEER);
                } else if done == 1 {
                    check(&here, 1, "a multicast");
                    whole += 1;
                } else {
                    ok(fmpl_mcast_irecv_cancel(WORLD));
                }
            }
            std::thread::yield_now();
        }
        assert!(whole >= 1, "the second multicast has come");
    }
    println!("well");
    std::process::exit(0);
}

pub fn dead() {
    for _ in 0..3 {
        let outcome = Job::new(4, "mcast member dies").seconds(20).keep_going().outcome();
        let well = |rank: &usize| crate::ranks::said(&outcome, *rank).contains("well");
        assert!([0, 1, 3].iter().all(well), "{}", crate::ranks::story(&outcome));
    }
}
