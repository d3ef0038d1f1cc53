//! A message of any source to a member that has freed the communicator: whoever waits for it is told, and can free it too.

use std::ptr::null_mut;

use fmpl::ffi::c::*;

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes};

/// Rank 0 sends to rank 1, which has freed the communicator, in each way that has to wait for it: short and long, waiting and not. `met`: they have
/// exchanged a message there before.
pub fn sends_to_who_has_freed() {
    init(4);
    let elsewhere = std::env::var("ELSEWHERE").is_ok();
    let (short, long, mut got) = (vec![1; 8], vec![2; 100_000], [0; 8]);
    for (way, data, met) in (0..12).map(|n| (n / 4, if n % 2 == 0 { &short } else { &long }, n / 2 % 2 == 1)) {
        on(WORLD);
        let left = dup(WORLD);
        if rank() == 1 {
            on(left);
            if met {
                assert_eq!(recv_any(&mut got, 2).1, short.len());
            }
            on(WORLD);
            free(left);
            send(&[1], 0, 0);
            continue;
        }
        on(left);
        if met {
            send_any(&short, 1, 2);
        }
        on(WORLD);
        recv(&mut got[..1], 1, 0);
        on(left);
        // SAFETY: a null buffer. Each send waits until it is received.
        ok(unsafe { fmpl_comm_sendbuf_set(left, null_mut(), 64 << 10, -1) });
        let begun = if way == 0 { try_send_any(data, 1, 2) } else { try_isend_any(data, 1, 2) };
        let code = match way {
            _ if begun != 0 => begun,
            1 => try_isend_any_wait(1, 2),
            // Who only tests does not ask another node.
            _ if elsewhere => try_isend_any_wait(1, 2),
            _ => loop {
                let mut done = -1;
                let code = fmpl_isend_any_test(1, 2, left, (&mut done).into());
                if code != 0 {
                    break code;
                }
                assert_eq!(done, 0, "nobody has it");
            },
        };
        let text = last_error();
        fails(code, PEER);
        assert!(text.contains("rank 1") && text.contains("has freed the communicator"), "way {way}, {met}: {text}");
        on(WORLD);
        free(left);
    }
    on(WORLD);
    finalize();
}

pub fn told() {
    Job::new(2, "sends to who has freed").seconds(60).run();
    let job = Job::new(2, "sends to who has freed").settings("FMPL_WAIT=block").seconds(60);
    job.run();
    let job = Job::new(2, "sends to who has freed").settings("FMPL_NETWORK=tcp").nodes(Nodes::Cyclic(2));
    job.env("ELSEWHERE", 1).seconds(60).run();
}
