//! Random programs whose ranks make communicators, call on them, and free them: members drawn anew each time, several at work at once.

use crate::random::{Call, begins, program, seeds};
use crate::ranks::bytes::{Draw, check, message};
use crate::ranks::calls::*;
use crate::ranks::long;
use fmpl::ffi::c::*;
use std::time::{Duration, Instant};

/// A communicator as every rank of the world knows it.
struct Group {
    /// Its name at this process; `NULL`: no member.
    handle: i32,
    /// Ranks in the world, in its order.
    members: Vec<i32>,
}

/// Communicators there may be at a time.
const MOST: usize = 12;

/// A rank of a random program. All draw the same; who is no member goes on to what comes next, so that communicators are at work at the
/// same time, and are made and freed meanwhile.
pub fn plays() {
    let (seed, calls, most) = begins(4);
    let (me, ranks) = (rank(), size());
    let mut draw = Draw(seed);
    let mut own = Draw(seed ^ (me as u64 + 1) << 40);
    let mut groups = vec![Group { handle: WORLD, members: (0..ranks).collect() }];
    for call in 0..calls {
        let text = format!("seed {seed}, call {call} of {ranks} ranks, rank {me} of the world");
        let at = draw.below(groups.len());
        match draw.below(12) {
            0 if groups.len() < MOST => groups.extend(creates(&mut draw, me, ranks, call as u64)),
            1 if groups.len() < MOST => {
                let new = splits(&mut draw, &groups[at], me);
                groups.extend(new);
            }
            2 if groups.len() < MOST => {
                let Group { handle, members } = &groups[at];
                let new = if *handle == NULL { NULL } else { dup(*handle) };
                let members = members.clone();
                groups.push(Group { handle: new, members });
            }
            3 if at != 0 => {
                let gone = groups.swap_remove(at);
                if gone.handle != NULL {
                    free(gone.handle);
                }
            }
            4 => on_it(&groups[at], |me, n| any_source_and_multicast(&mut draw.clone(), me, n, &text)),
            _ => {
                let drawn = Call::new(&mut draw, groups[at].members.len() as i32, most);
                on_it(&groups[at], |_, _| drawn.plays(&mut own, &format!("{text}, {:?}", groups[at].members)));
            }
        }
        draw.number();
        if own.one_in(20) {
            std::thread::sleep(Duration::from_micros(own.below(2000) as u64));
        }
    }
    finalize();
}

/// What a member does on a communicator, with its rank there and the number of ranks, which must be as drawn.
fn on_it(group: &Group, does: impl FnOnce(i32, i32)) {
    if group.handle == NULL {
        return;
    }
    let mine = rank();
    on(group.handle);
    assert_eq!((size(), translate(group.handle, rank(), WORLD)), (group.members.len() as i32, mine));
    assert_eq!(group.members[rank() as usize], mine);
    does(rank(), size());
    on(WORLD);
}

/// Communicators of all ranks with the same key; messages of the world are under way meanwhile.
fn creates(draw: &mut Draw, me: i32, ranks: i32, number: u64) -> Vec<Group> {
    let keys: Vec<i32> = (0..ranks).map(|_| draw.below(4) as i32 - 1).collect();
    let (next, last, len) = ((me + 1) % ranks, (me + ranks - 1) % ranks, draw.size(20_000));
    let (sent, mut got) = (message(len, number ^ (me as u64) << 32), vec![0; len]);
    if ranks > 1 {
        irecv(&mut got, last, 1);
        isend(&sent, next, 1);
    }
    let made = create(keys[me as usize]);
    if ranks > 1 {
        irecv_wait(last, 1);
        isend_wait(next, 1);
        check(&got, number ^ (last as u64) << 32, "while communicators were made");
    }
    assert_eq!(made == NULL, keys[me as usize] < 0);
    let group = |key: i32| Group {
        handle: if keys[me as usize] == key { made } else { NULL },
        members: (0..ranks).filter(|r| keys[*r as usize] == key).collect(),
    };
    (0..3).map(group).filter(|g| !g.members.is_empty()).collect()
}

/// Parts of a communicator, in an order of their own.
fn splits(draw: &mut Draw, from: &Group, me: i32) -> Vec<Group> {
    let drawn: Vec<(i32, i32)> =
        from.members.iter().map(|_| (draw.below(3) as i32 - 1, draw.below(4) as i32)).collect();
    let mine = from.members.iter().position(|r| *r == me);
    let made = mine.map_or(NULL, |k| split(from.handle, drawn[k].0, drawn[k].1));
    let group = |colour: i32| {
        let mut members: Vec<usize> = (0..drawn.len()).filter(|k| drawn[*k].0 == colour).collect();
        // Equal ones stay in the order that they had.
        members.sort_by_key(|k| drawn[*k].1);
        Group {
            handle: if mine.is_some_and(|k| drawn[k].0 == colour) { made } else { NULL },
            members: members.into_iter().map(|k| from.members[k]).collect(),
        }
    };
    (0..2).map(group).filter(|g| !g.members.is_empty()).collect()
}

/// Everybody sends to one, who sends to some.
fn any_source_and_multicast(draw: &mut Draw, me: i32, n: i32, text: &str) {
    // Who has sent may be here again before another has sent at all: the one that receives must be done with the last time.
    barrier();
    let (number, root, len) = (draw.number(), draw.below(n as usize) as i32, draw.size(9000));
    if me == root {
        let (mut seen, mut got) = (vec![false; n as usize], vec![0; len]);
        for _ in 1..n {
            let (from, bytes) = recv_any(&mut got, 2);
            assert!(bytes == len && !std::mem::replace(&mut seen[from as usize], true), "{text}");
            check(&got, number ^ from as u64, text);
        }
        assert!(!seen[me as usize], "{text}");
    } else {
        send_any(&message(len, number ^ me as u64), root, 2);
    }
    let members = (number | 1 << root) & ((1 << n) - 1);
    let (mut ticket, mut bytes, mut master, mut got) = (0, 0, 0, vec![0; len]);
    // SAFETY: the memory stays until the end of this function, where the multicast is complete; a word for up to 64 ranks.
    unsafe {
        let sent = message(len, number);
        if me == root {
            ok(fmpl_mcast(sent.as_ptr().cast(), len, &members, comm(), (&mut ticket).into()));
        }
        if members >> me & 1 == 1 {
            ok(fmpl_mcast_recv(got.as_mut_ptr().cast(), len, comm(), (&mut bytes).into(), (&mut master).into()));
            assert_eq!((bytes, master), (len, root), "{text}");
            check(&got, number, text);
        }
        if me == root {
            ok(fmpl_mcast_wait(ticket));
        }
    }
}

pub fn automatic() {
    let (since, limit) = (Instant::now(), Duration::from_secs(if long() { 60 } else { 5 }));
    let mut played = 0;
    for seed in seeds().skip(900).take_while(|_| since.elapsed() < limit) {
        let (ranks, calls, most) = [(16, 150, 5000), (5, 200, 100_000), (16, 150, 30_000), (3, 300, 3000)][played % 4];
        let settings = ["FMPL_WAIT=adaptive", "FMPL_WAIT=block", "FMPL_CMA=off"][played % 3];
        program(ranks, "plays on communicators", seed, calls, most, settings).seconds(90).run();
        played += 1;
    }
    println!("  {played} random programs");
}
