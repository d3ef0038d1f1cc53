//! One receive for a task or a multicast, whichever comes first (`fmpl_recv_any_or_mcast`).

use super::faults::{die, well};
use crate::ranks::bytes::{Draw, check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::Nodes;

fn mcast(buf: &[u8], members: u64) {
    // SAFETY: valid memory; without a ticket it is copied.
    ok(unsafe { fmpl_mcast(buf.as_ptr().cast(), buf.len(), &members, WORLD, Out::NULL) });
}

/// (code, who, bytes, is it a multicast)
fn try_either(buf: &mut [u8], index: i32) -> (i32, i32, usize, bool) {
    let (mut src, mut len, mut is_mcast) = (-1, usize::MAX, -1);
    let at = buf.as_mut_ptr().cast();
    // SAFETY: valid memory.
    let code = unsafe {
        fmpl_recv_any_or_mcast(
            at,
            buf.len(),
            index,
            WORLD,
            (&mut src).into(),
            (&mut len).into(),
            (&mut is_mcast).into(),
        )
    };
    (code, src, len, is_mcast == 1)
}

/// Lengths of a multicast, which are all different, so that it is known by that; and of a task.
fn lengths(draw: &mut Draw, round: usize) -> (usize, usize) {
    let long = if round % 40 == 11 { 300_000 } else { 1000 };
    (long + round, [0, 8, 100, 2000, 90_000][draw.below(5)])
}

/// Rank 0 sends tasks and multicasts, as all draw them alike; each of the others takes what comes until it has all of its own.
pub fn come_in_any_order() {
    init(4);
    let (me, n) = (rank(), size());
    let (mut draw, rounds) = (Draw(11), crate::number_of("ROUNDS").unwrap_or(200) as usize);
    barrier();
    let (mut tasks, mut multicasts) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (of_mcast, of_task) = lengths(&mut draw, round);
        let (is_mcast, worker) = (draw.below(2) == 0, 1 + draw.below(n as usize - 1));
        let group = 1 + draw.number() % ((1 << n) - 1);
        if me == 0 {
            match is_mcast {
                true => mcast(&message(of_mcast, round as u64), group),
                false => send_any(&message(of_task, round as u64), worker as i32, 2),
            }
            if round % 25 == 24 {
                // So that the others fall asleep, and are woken by one or the other.
                sleep_ms(5);
            }
        }
        if is_mcast && group >> me & 1 == 1 {
            multicasts.push((of_mcast, round as u64));
        } else if !is_mcast && worker as i32 == me {
            tasks.push((of_task, round as u64));
        }
    }
    let (mut buf, mut taken) = (vec![0; 301_000], 0);
    while taken < tasks.len() || !multicasts.is_empty() {
        let (code, src, len, is_mcast) = try_either(&mut buf, 2);
        ok(code);
        assert_eq!(src, 0);
        let (length, seed) = if is_mcast {
            let at = multicasts.iter().position(|(length, _)| *length == len).expect("one that was sent");
            multicasts.swap_remove(at)
        } else {
            taken += 1;
            tasks[taken - 1]
        };
        assert_eq!(len, length, "tasks come in order");
        check(&buf[..len], seed, if is_mcast { "a multicast" } else { "a task" });
    }
    // All have all of theirs. Then a message that is cut, of both kinds.
    barrier();
    if me == 0 {
        mcast(&message(5000, 1), 2);
        send_any(&message(5000, 2), 1, 2);
    } else if me == 1 {
        for _ in 0..2 {
            let (code, src, len, is_mcast) = try_either(&mut buf[..100], 2);
            fails(code, TRUNCATE);
            assert_eq!((src, len), (0, 5000));
            check(&buf[..100], if is_mcast { 1 } else { 2 }, "the first bytes");
        }
    }
    barrier();
    finalize();
}

/// Tasks that never end do not keep a multicast away, nor the other way round.
pub fn take_turns() {
    init(4);
    let me = rank();
    barrier();
    if me == 0 {
        (0..40).for_each(|_| send_any(&[1; 8], 1, 0));
        (0..40).for_each(|_| mcast(&[2; 8], 2));
        barrier();
    } else {
        barrier();
        let mut kinds = Vec::new();
        for _ in 0..80 {
            let (code, _, len, is_mcast) = try_either(&mut [0; 8], 0);
            ok(code);
            assert_eq!(len, 8);
            kinds.push(is_mcast);
        }
        assert!(kinds.windows(2).all(|two| two[0] != two[1]), "each has its turn: {kinds:?}");
    }
    barrier();
    finalize();
}

/// A rank dies while another waits for both: that is told once.
pub fn one_dies() {
    init(4);
    let me = rank();
    barrier();
    match me {
        2 => {
            sleep_ms(50);
            die();
        }
        1 => {
            let mut buf = [0; 100];
            fails(try_either(&mut buf, 0).0, PEER);
            send(&[1], 0, 0);
            let mut kinds = [0, 0];
            for _ in 0..2 {
                let (code, src, len, is_mcast) = try_either(&mut buf, 0);
                ok(code);
                assert_eq!((src, len), (0, 100));
                kinds[is_mcast as usize] += 1;
            }
            assert_eq!(kinds, [1, 1]);
            send(&[1], 0, 0);
        }
        _ => {
            recv(&mut [0], 1, 0);
            mcast(&message(100, 1), 2);
            send_any(&message(100, 2), 1, 0);
            recv(&mut [0], 1, 0);
        }
    }
    println!("well");
    std::process::exit(0);
}

pub fn tasks() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block", "FMPL_CMA=off FMPL_SPREAD=2"] {
        Job::new(4, "tasks and multicasts").settings(settings).run();
    }
    Job::new(2, "task or multicast in turn").run();
    Job::new(4, "tasks and multicasts").settings("FMPL_NETWORK=tcp").env("ROUNDS", 60).nodes(Nodes::Cyclic(2)).run();
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block"] {
        let outcome = Job::new(3, "dies beside tasks").settings(settings).keep_going().outcome();
        assert!([0, 1].iter().all(|rank| well(&outcome, *rank)), "{}", story(&outcome));
    }
}
