use crate::ranks::bytes::{check, message, seed};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes};

pub fn everybody() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::new(ranks, "finds its place").run();
    }
    Job::new(3, "finds its place").settings("FMPL_WAIT=block FMPL_SHM_PATH=cma FMPL_SPOOL=0").run();
}

pub fn never_mix() {
    for settings in ["", "FMPL_WAIT=block FMPL_CMA=off", "FMPL_SHM_PATH=spool", "FMPL_SHM_PATH=ring"] {
        Job::new(5, "sends on all").settings(settings).run();
    }
}

pub fn many_indices() {
    Job::new(3, "uses many indices").run();
}

/// The members of a communicator as they must be, in order.
pub fn is(new: i32, members: &[i32], me: i32) {
    if members.is_empty() {
        assert_eq!(new, NULL);
        return;
    }
    on(new);
    assert_eq!((size(), members[rank() as usize]), (members.len() as i32, me));
    on(WORLD);
    for world in 0..size() {
        let here = members.iter().position(|m| *m == world).map_or(fmpl::ffi::c::FMPL_PROC_NULL, |n| n as i32);
        assert_eq!(translate(WORLD, world, new), here);
        if here >= 0 {
            assert_eq!(translate(new, here, WORLD), world);
        }
    }
    assert_eq!(translate(new, fmpl::ffi::c::FMPL_PROC_NULL, WORLD), fmpl::ffi::c::FMPL_PROC_NULL);
}

/// A round of messages from everybody to everybody of a communicator, of several sizes, and a barrier.
pub fn all_to_all(comm: i32, turn: u64) {
    on(comm);
    let (me, ranks) = (rank(), size());
    for len in [8, 16, 60, 700, 3000, 70_000] {
        let what = |from: i32, to: i32| seed(from, to, comm_seed(len), turn);
        let sent: Vec<_> = (0..ranks).map(|to| message(len, what(me, to))).collect();
        let mut got = vec![vec![0u8; len]; ranks as usize];
        for (from, buf) in got.iter_mut().enumerate() {
            irecv(buf, from as i32, 3);
        }
        for (to, data) in sent.iter().enumerate() {
            isend(data, to as i32, 3);
        }
        for peer in 0..ranks {
            irecv_wait(peer, 3);
            isend_wait(peer, 3);
            assert_eq!(received(peer, 3), (len, 3));
        }
        for (from, buf) in got.iter().enumerate() {
            check(buf, what(from as i32, me), "from everybody");
        }
    }
    barrier();
    on(WORLD);
}

fn comm_seed(len: usize) -> i32 {
    len as i32 & 0xffff
}

pub fn finds_its_place() {
    init(8);
    let (me, ranks) = (rank(), size());
    let all: Vec<i32> = (0..ranks).collect();
    let with = |test: &dyn Fn(i32) -> bool| -> Vec<i32> { all.iter().copied().filter(|r| test(*r)).collect() };
    let one = |member: bool, members: Vec<i32>| if member { members } else { vec![] };

    // Everybody, by a key that is large.
    let world = create(i32::MAX);
    is(world, &all, me);
    // Even ranks and odd ones, and those of three that take part.
    let parity = create(me % 2);
    is(parity, &with(&|r| r % 2 == me % 2), me);
    let holes = create(if me % 3 == 1 { -5 } else { 7 });
    is(holes, &one(me % 3 != 1, with(&|r| r % 3 != 1)), me);
    // Alone.
    let alone = create(me * 1000);
    is(alone, &[me], me);
    // Nobody.
    assert_eq!(create(-1), NULL);
    // The other way round.
    let reversed = split(WORLD, 0, -me);
    is(reversed, &all.iter().rev().copied().collect::<Vec<_>>(), me);
    // Out of order: by (rank * 3) mod size, equal ones by rank.
    let mut mixed = all.clone();
    mixed.sort_by_key(|r| (r * 3) % ranks);
    let mixed_comm = split(WORLD, 1, (me * 3) % ranks);
    is(mixed_comm, &mixed, me);
    // Equal orders, from a parent whose order is another.
    let again = split(reversed, 4, 9);
    is(again, &all.iter().rev().copied().collect::<Vec<_>>(), me);
    // The first half of the mixed one, and of that a duplicate.
    let place = mixed.iter().position(|r| *r == me).expect("a member") as i32;
    let first = place < (ranks + 1) / 2;
    let half = split(mixed_comm, if first { 0 } else { -1 }, i32::MIN);
    let half_of: Vec<i32> = mixed[..(ranks as usize).div_ceil(2)].to_vec();
    is(half, &one(first, half_of.clone()), me);
    let twin = if first { dup(half) } else { NULL };
    is(twin, &one(first, half_of), me);

    let made = [world, parity, holes, alone, reversed, mixed_comm, again, half, twin];
    for turn in 0..2 {
        made.iter().filter(|c| **c != NULL).for_each(|c| all_to_all(*c, turn));
    }
    // In no particular order, and not all.
    for comm in [parity, twin, world, again, mixed_comm, half].into_iter().filter(|c| *c != NULL) {
        free(comm);
    }
    let later = dup(reversed);
    for comm in [later, holes, reversed].into_iter().filter(|c| *c != NULL) {
        all_to_all(comm, 5);
    }
    finalize();
}

/// The same index of the same two ranks on many communicators at once: requests begun on all, completed in another order.
pub fn sends_on_all() {
    init(4);
    let (me, ranks) = (rank(), size());
    let mut comms = vec![WORLD];
    for k in 0..6 {
        comms.push(create(if me % (k + 2) == 1 { -1 } else { k }));
    }
    comms.push(split(WORLD, 0, -me));
    comms.push(split(WORLD, me / 2, me));
    comms.push(dup(WORLD));
    comms.retain(|c| *c != NULL);
    for len in [0usize, 8, 24, 1000, 5000, 200_000] {
        let mut buffers = Vec::new();
        for comm in &comms {
            on(*comm);
            for peer in 0..size() {
                let world = translate(*comm, peer, WORLD);
                // What tells them apart is agreed on: the number of ranks and who they are.
                let name = size() * 1000 + (0..size()).map(|r| translate(*comm, r, WORLD) * (r + 1)).sum::<i32>();
                let out = message(len, seed(me, world, name, 0));
                buffers.push((*comm, peer, world, name, out, vec![0u8; len]));
            }
        }
        for (comm, peer, _, _, _, into) in &mut buffers {
            on(*comm);
            irecv(into, *peer, 2);
        }
        for (comm, peer, _, _, out, _) in &buffers {
            on(*comm);
            isend(out, *peer, 2);
        }
        for (comm, peer, ..) in buffers.iter().rev() {
            on(*comm);
            irecv_wait(*peer, 2);
            isend_wait(*peer, 2);
        }
        for (comm, peer, world, name, _, into) in &buffers {
            check(into, seed(*world, me, *name, 0), &format!("from {peer} of {comm}"));
        }
        // Any index of one communicator takes nothing of another's.
        on(WORLD);
        barrier();
        for comm in &comms {
            on(*comm);
            if size() > 1 {
                let (next, last) = ((rank() + 1) % size(), (rank() + size() - 1) % size());
                send(&comm_word(*comm, rank()), next, 1);
                let mut word = [0u8; 8];
                recv(&mut word, last, ANY);
                assert_eq!((word, received(last, ANY)), (comm_word(*comm, last), (8, 1)));
                assert_eq!(probe(last, ANY), None);
            }
        }
        on(WORLD);
        barrier();
    }
    assert!(ranks > 1);
    finalize();
}

fn comm_word(comm: i32, rank: i32) -> [u8; 8] {
    on(comm);
    let sum: i64 = (0..size()).map(|r| translate(comm, r, WORLD) as i64 * (r as i64 + 7)).sum();
    (sum * 1000 + size() as i64 * 100 + rank as i64).to_le_bytes()
}

/// Communicators have as many indices as the world, whatever of them are used; a later init does not change theirs.
pub fn uses_many_indices() {
    init(30_000);
    let me = rank();
    let pair = dup(WORLD);
    let (next, last) = ((me + 1) % 3, (me + 2) % 3);
    on(pair);
    for index in (0..30_000).step_by(997).chain([29_999]) {
        send(&message(40, seed(me, next, index, 1)), next, index);
    }
    for index in (0..30_000).step_by(997).chain([29_999]) {
        let mut buf = [0u8; 40];
        recv(&mut buf, last, index);
        check(&buf, seed(last, me, index, 1), "one of many");
    }
    fails(try_send(&[1], next, 30_000), INDEX);
    assert_eq!(try_init(40_000), 0);
    // There is room for a few more than were asked for, since memory comes in pieces.
    fails(try_send(&[1], next, 31_000), INDEX);
    let mut one = [0];
    on(WORLD);
    barrier();
    send(&[1], next, 39_000);
    recv(&mut one, last, 39_000);
    let wide = dup(WORLD);
    on(wide);
    send(&[1], next, 39_000);
    recv(&mut one, last, 39_000);
    free(wide);
    on(WORLD);
    finalize();
    finalize();
}

/// On one node, and on two that get ranks by turns, reached by TCP.
pub fn of_nodes() {
    Job::new(3, "finds its node").env("NODES", 1).run();
    Job::new(5, "finds its node").env("NODES", 2).nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp").run();
}

pub fn finds_its_node() {
    init(4);
    let (me, all, nodes) = (rank(), size(), std::env::var("NODES").unwrap().parse::<i32>().unwrap());
    let mut mine = NULL;
    let code = fmpl::ffi::c::fmpl_comm_split_node(WORLD, -me, (&mut mine).into());
    assert_eq!(code, 0, "{}", last_error());
    // Those of the same node, backwards.
    let mut members: Vec<i32> = (0..all).filter(|r| r % nodes == me % nodes).collect();
    members.reverse();
    on(mine);
    assert_eq!((size(), members[rank() as usize]), (members.len() as i32, me));
    let (next, before) = ((rank() + 1) % size(), (rank() + size() - 1) % size());
    send(&me.to_ne_bytes(), next, 1);
    let mut got = [0; 4];
    recv(&mut got, before, 1);
    assert_eq!(i32::from_ne_bytes(got), members[before as usize]);
    on(WORLD);
    free(mine);
    fails(fmpl::ffi::c::fmpl_comm_split_node(WORLD, 0, fmpl::ffi::c::Out::NULL), ARGUMENT);
    finalize();
}
