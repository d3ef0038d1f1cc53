use crate::ranks::bytes::{Draw, check, message, seed};
use crate::ranks::calls::*;
use crate::ranks::{Job, long};

pub fn random() {
    let programs = if long() { 60 } else { 8 };
    for number in 0..programs {
        let settings = ["", "FMPL_CMA=off", "FMPL_WAIT=block", "FMPL_SHM_PATH=ring", "FMPL_SHM_PATH=spool"];
        let ranks = [2, 3, 4, 6][number % 4];
        Job::new(ranks, "runs a program").env("SEED", number).settings(settings[number % 5]).run();
    }
}

/// A communicator as the program knows it: its members in the world, in order, and its number in the program.
struct Known {
    handle: i32,
    members: Vec<i32>,
    number: u64,
}

/// All ranks draw the same numbers, so each knows what all do.
pub fn runs() {
    let number: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let mut draw = Draw(number * 7919 + 1);
    let indices = [1, 5, 70, 200][draw.below(4)];
    init(indices);
    let (me, ranks) = (rank(), size());
    let all: Vec<i32> = (0..ranks).collect();
    let mut known = vec![Known { handle: WORLD, members: all, number: 0 }];
    let mut sent = std::collections::HashMap::<(u64, i32, i32), u64>::new();
    for step in 1..400u64 {
        match draw.below(8) {
            // Make one from one that is there.
            0 | 1 if known.len() < 40 => {
                let parent = draw.below(known.len());
                let members = known[parent].members.clone();
                let wishes: Vec<(i32, i32)> =
                    members.iter().map(|_| (draw.below(4) as i32 - 1, draw.below(3) as i32 - 1)).collect();
                let plain = draw.one_in(3);
                let mut new = NULL;
                if let Some(n) = members.iter().position(|m| *m == me) {
                    new = if plain {
                        dup(known[parent].handle)
                    } else {
                        split(known[parent].handle, wishes[n].0, wishes[n].1)
                    };
                }
                let mut colours: Vec<i32> = wishes.iter().map(|w| w.0).filter(|c| *c >= 0).collect();
                colours.sort_unstable();
                colours.dedup();
                if plain {
                    known.push(Known { handle: new, members: members.clone(), number: step * 8 });
                    colours.clear();
                }
                for colour in colours {
                    let mut chosen: Vec<(i32, usize)> =
                        (0..members.len()).filter(|n| wishes[*n].0 == colour).map(|n| (wishes[n].1, n)).collect();
                    chosen.sort_unstable();
                    let chosen: Vec<i32> = chosen.into_iter().map(|(_, n)| members[n]).collect();
                    let handle = if chosen.contains(&me) { new } else { NULL };
                    known.push(Known { handle, members: chosen, number: step * 8 + colour as u64 });
                }
            }
            // Free one, some of its ranks later than others.
            2 if known.len() > 1 => {
                let gone = known.swap_remove(1 + draw.below(known.len() - 1));
                if gone.handle != NULL {
                    free(gone.handle);
                }
            }
            // A message.
            _ => {
                let with = &known[draw.below(known.len())];
                let (from, to) = (draw.below(with.members.len()), draw.below(with.members.len()));
                let len = draw.size(100_000);
                let index = if indices > 2 { draw.below(3) as i32 } else { 0 };
                let (src, dst) = (with.members[from], with.members[to]);
                let turn = sent.entry((with.number, src * 100 + dst, index)).or_insert(0);
                *turn += 1;
                let what = seed(src, dst, index, *turn ^ with.number << 20);
                if with.handle != NULL {
                    on(with.handle);
                    assert_eq!(with.members[rank() as usize], me);
                }
                if src == me && dst == me {
                    let data = message(len, what);
                    let mut got = vec![0; len];
                    sendrecv(&data, to as i32, index, &mut got, from as i32, index);
                    check(&got, what, "to itself");
                } else if src == me {
                    send(&message(len, what), to as i32, index);
                } else if dst == me {
                    let mut got = vec![0; len];
                    recv(&mut got, from as i32, index);
                    check(&got, what, &format!("step {step}"));
                }
                on(WORLD);
            }
        }
        if draw.one_in(60) {
            barrier();
        }
    }
    barrier();
    finalize();
}
