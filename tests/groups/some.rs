//! Communicators of some ranks, which alone make them: any lists in any order, side by side, beside calls of others, and by those who
//! survive.

use std::time::{Duration, Instant};

use fmpl::ffi::c::fmpl_comm_group_create;
use fmpl::launch::embedded::End;

use crate::members::{all_to_all, is};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, story};

pub fn lists() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::new(ranks, "makes it with some").run();
    }
    Job::new(5, "makes it with some").settings("FMPL_WAIT=block").run();
    Job::new(5, "makes it with some").nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp").run();
}

/// Who dies, of how many, and whether in the middle of making them; the victim is a root, a leaf and in between of the lists' trees.
pub fn survivors() {
    let of =
        [(2, 0, 1), (3, 2, 1), (4, 0, 0), (5, 1, 0), (5, 3, 1), (8, 4, 0), (8, 4, 0), (8, 4, 0), (8, 2, 0), (8, 6, 0)];
    for (ranks, victim, early) in of {
        let job = Job::new(ranks, "survives")
            .env("VICTIM", victim)
            .env("EARLY", early)
            .settings("FMPL_STALL=3")
            .seconds(12)
            .keep_going();
        is_survived(job, ranks, victim);
    }
    let far = Job::new(4, "survives").nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp");
    is_survived(far.env("VICTIM", 1).env("EARLY", 1).keep_going(), 4, 1);
}

fn is_survived(job: Job, ranks: usize, victim: usize) {
    let outcome = job.outcome();
    for (rank, end) in outcome.ends.iter().enumerate() {
        assert!(rank == victim || matches!(end, End::Exit(0)), "{ranks} ranks without {victim}: {}", story(&outcome));
    }
}

fn try_group(comm: i32, ranks: &[i32], new: &mut i32) -> i32 {
    // SAFETY: a slice and a variable.
    unsafe { fmpl_comm_group_create(comm, ranks.as_ptr(), ranks.len() as i32, new.into()) }
}

fn group(comm: i32, ranks: &[i32]) -> i32 {
    let mut new = NULL;
    ok(try_group(comm, ranks, &mut new));
    new
}

/// A sum over the ranks of a communicator, by a collective call.
fn sum(comm: i32, mine: i32) -> i32 {
    let mut value = mine;
    ok(try_sum(comm, &mut value));
    value
}

fn try_sum(comm: i32, value: &mut i32) -> i32 {
    let mut work = 0i32;
    let (value, work) = (std::ptr::from_mut(value).cast(), (&raw mut work).cast());
    // SAFETY: two variables of one element each.
    unsafe { fmpl::ffi::c::fmpl_allreduce(value, 1, Some(fmpl::ffi::c::fmpl_isum), comm, work) }
}

/// Makes one of these ranks, and uses and frees it, which ends well or with an error.
fn try_use(ranks: &[i32]) -> i32 {
    let mut new = NULL;
    let code = try_group(WORLD, ranks, &mut new);
    if code != 0 {
        return code;
    }
    let code = try_sum(new, &mut 1);
    on(new);
    let next = (rank() + 1) % size();
    let code = if code != 0 { code } else { try_isend(&[1], next, 0) };
    let code = if code != 0 { code } else { try_recv(&mut [0], (rank() + size() - 1) % size(), 0) };
    let _ = try_isend_wait(next, 0);
    on(WORLD);
    free(new);
    code
}

/// A list of ranks that is as good as random, the same at all: every rank in its turn first, in between or left out.
fn list(ranks: i32, turn: i32) -> Vec<i32> {
    let mut state = (turn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut next = |below: i32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i32 % below
    };
    let mut all: Vec<i32> = (0..ranks).collect();
    for at in (1..ranks).rev() {
        all.swap(at as usize, next(at + 1) as usize);
    }
    all.truncate(1 + next(ranks) as usize);
    all
}

pub fn makes_it_with_some() {
    init(8);
    let (me, ranks) = (rank(), size());
    // Lists that overlap, one after the other; the others are elsewhere, and perhaps some lists further.
    let mut kept = Vec::new();
    for turn in 0..40 {
        let members = list(ranks, turn);
        if !members.contains(&me) {
            continue;
        }
        let new = group(WORLD, &members);
        is(new, &members, me);
        assert_eq!(sum(new, me), members.iter().sum::<i32>());
        if turn % 4 == 0 { kept.push(new) } else { free(new) }
    }
    // Two halves at once, and from each a part whose ranks are of the half, backwards.
    let half: Vec<i32> = (0..ranks).filter(|r| r % 2 == me % 2).collect();
    let mine = group(WORLD, &half);
    all_to_all(mine, 1);
    let backwards: Vec<i32> = (0..half.len() as i32).rev().collect();
    let turned = group(mine, &backwards);
    is(turned, &half.iter().rev().copied().collect::<Vec<_>>(), me);
    free(mine);
    all_to_all(turned, 2);
    // All together again; what was kept can be freed by each when it likes.
    barrier();
    kept.into_iter().rev().for_each(free);
    wrong_lists(me, ranks);
    free(turned);
    finalize();
}

fn wrong_lists(me: i32, ranks: i32) {
    let mut new = 17;
    fails(try_group(WORLD, &[], &mut new), ARGUMENT);
    fails(try_group(WORLD, &[me, ranks], &mut new), RANK);
    fails(try_group(WORLD, &[-1, me], &mut new), RANK);
    fails(try_group(WORLD, &[me, me], &mut new), ARGUMENT);
    assert!(last_error().contains("twice"), "{}", last_error());
    fails(try_group(4096, &[me], &mut new), COMM);
    // SAFETY: null pointers, which are what is wrong.
    unsafe {
        fails(fmpl_comm_group_create(WORLD, std::ptr::null(), 1, (&mut new).into()), ARGUMENT);
        fails(fmpl_comm_group_create(WORLD, &me, 1, fmpl::ffi::c::Out::NULL), ARGUMENT);
    }
    assert_eq!(new, 17);
    if ranks > 1 {
        fails(try_group(WORLD, &[(me + 1) % ranks], &mut new), ARGUMENT);
        assert!(last_error().contains("not in the list"), "{}", last_error());
    }
    // The same ranks in another order, also where each might take the other for the one above: both are told.
    if ranks > 1 && me < 2 {
        let (there, back) = ([0, 1], [1, 0]);
        for turned in [false, true] {
            let mine = if (me == 0) == turned { &there } else { &back };
            fails(try_group(WORLD, mine, &mut new), ARGUMENT);
            assert!(last_error().contains("with other ranks"), "{}", last_error());
        }
    }
    // Rank 1 has one less: all are told, and can agree afterwards.
    if ranks > 1 && me < 2 {
        let mut three = vec![0, 1];
        three.extend((ranks > 2).then_some(2));
        let other = if me == 0 || ranks < 3 { three.clone() } else { vec![0, 1] };
        if ranks < 3 {
            ok(try_group(WORLD, &other, &mut new));
            free(new);
        } else if me == 0 {
            fails(try_group(WORLD, &three, &mut new), ARGUMENT);
            assert!(last_error().contains("with other ranks"), "{}", last_error());
        } else {
            fails(try_group(WORLD, &other, &mut new), ARGUMENT);
        }
    } else if ranks > 2 && me == 2 {
        fails(try_group(WORLD, &[0, 1, 2], &mut new), ARGUMENT);
    }
    free(group(WORLD, &(0..ranks).collect::<Vec<_>>()));
}

pub fn survives() {
    init(8);
    let victim: i32 = std::env::var("VICTIM").unwrap().parse().unwrap();
    let early = std::env::var("EARLY").unwrap() == "1";
    let (me, ranks) = (rank(), size());
    let all: Vec<i32> = (0..ranks).collect();
    free(group(WORLD, &all));
    barrier();
    if me == victim {
        let die = || {
            sleep_ms(30);
            // SAFETY: ends this process, which is what the test is about.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        };
        if early {
            die();
        }
        std::thread::spawn(die);
        loop {
            try_use(&all);
        }
    }
    let began = Instant::now();
    let code = loop {
        let code = try_use(&all);
        if code != 0 {
            break code;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the killed rank is not missed");
    };
    fails(code, PEER);
    // Without it, as often as they like: messages, sums, communicators made of the new one as of any.
    let living: Vec<i32> = all.into_iter().filter(|r| *r != victim).collect();
    for turn in 0..3 {
        let survivors = group(WORLD, &living);
        is(survivors, &living, me);
        all_to_all(survivors, turn);
        assert_eq!(sum(survivors, 1), living.len() as i32);
        let twin = dup(survivors);
        free(survivors);
        assert_eq!(sum(twin, 2), 2 * living.len() as i32);
        free(twin);
    }
    std::process::exit(0);
}
