//! Signals are the program's: the library's threads take none, and a handler may interrupt every wait.

use crate::ranks::bytes::{check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, said};
use fmpl::ffi::acp::*;
use fmpl::ffi::c::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// The library's threads that this process has, and the signals that each blocks.
fn threads_of_the_library() -> Vec<(String, u64)> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let at = task.ok()?.path();
        let name = std::fs::read_to_string(at.join("comm")).ok()?.trim().to_owned();
        let status = std::fs::read_to_string(at.join("status")).ok()?;
        let mask = status.lines().find_map(|l| l.strip_prefix("SigBlk:"))?.trim();
        name.starts_with("fmpl-").then(|| (name, u64::from_str_radix(mask, 16).expect("a mask")))
    };
    tasks.filter_map(of).collect()
}

/// All but those that cannot be blocked: KILL, STOP, and two that the C library keeps for itself.
fn may_be_blocked() -> u64 {
    let bit = |signal: i32| 1u64 << (signal - 1);
    !(bit(libc::SIGKILL) | bit(libc::SIGSTOP) | bit(32) | bit(33))
}

/// The program blocks a signal and takes it by `sigtimedwait`, with everything begun that has a thread of the library's.
pub fn takes_a_signal_by_itself() {
    init(4);
    // SAFETY: all zero is an empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: sets, numbers and places of ours; the memory that is registered lives until the end.
    unsafe {
        let mut fd = -1;
        ok(fmpl_event_fd((&mut fd).into()));
        ok(acp_init(null_mut(), null_mut()));
        let memory = Box::leak(vec![0u8; 4096].into_boxed_slice());
        assert_ne!(acp_register_memory(memory.as_mut_ptr().cast(), memory.len(), 0), 0);
        acp_sync();
        // The caller's own mask is as it was.
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &mut set);
        assert!((1..32).all(|s| libc::sigismember(&set, s) == 0), "init has left signals blocked");
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut());
    }
    let threads = threads_of_the_library();
    for (name, mask) in &threads {
        assert_eq!(!mask & may_be_blocked(), 0, "{name} blocks {mask:x} only");
    }
    assert!(
        threads.iter().any(|t| t.0 == "fmpl-event") && threads.iter().any(|t| t.0 == "fmpl-service"),
        "{threads:?}"
    );
    let rounds = 100;
    let mut taken = 0;
    for _ in 0..rounds {
        let patience = libc::timespec { tv_sec: 20, tv_nsec: 0 };
        // SAFETY: as above. Whatever thread did not block it would die of it, and all with it.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGUSR1);
            taken += (libc::sigtimedwait(&set, null_mut(), &patience) == libc::SIGUSR1) as u32;
        }
    }
    println!("threads {} signals {taken} of {rounds}", threads.len());
    assert_eq!(taken, rounds);
    // SAFETY: no memory.
    ok(unsafe { acp_finalize() });
    finalize();
}

pub fn come_to_the_program() {
    let outcome = Job::new(2, "takes a signal by itself").run();
    println!("  {}", said(&outcome, 0).trim());
}

static TAKEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    // What the interface allows in a handler.
    let mut flag = 0;
    let well = fmpl_initialized((&mut flag).into()) == 0 && fmpl_version() == FMPL_VERSION && fmpl_wtime() > 0.0;
    TAKEN.fetch_add(well as u64, Ordering::Relaxed);
}

/// A signal each half millisecond, from before init until after finalize, without SA_RESTART.
fn be_interrupted() {
    // SAFETY: structures of ours; the handler does nothing but what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, null_mut()), 0);
        let each = libc::timeval { tv_sec: 0, tv_usec: 500 };
        let timer = libc::itimerval { it_interval: each, it_value: each };
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, null_mut()), 0);
    }
}

/// Waits in every way that there is, each for a peer that comes late.
pub fn is_interrupted() {
    be_interrupted();
    init(16);
    let me = rank();
    let peer = 1 - me;
    let long = message(300_000, 3);
    let mut room = vec![0; long.len()];
    let mut least = (u64::MAX, "");
    for (k, name) in WAITS.iter().enumerate() {
        barrier();
        for waits in [0, 1] {
            // On a crowded machine the peer may be there first, and nobody waits: then again.
            for _ in 0..50 {
                let before = TAKEN.load(Ordering::Relaxed);
                if me != waits {
                    sleep_ms(30);
                }
                wait(k, me, peer, waits, &long, &mut room);
                let mut taken = TAKEN.load(Ordering::Relaxed) - before;
                let mut said = taken.to_ne_bytes();
                match me == waits {
                    true => send(&said, peer, 9),
                    false => recv(&mut said, peer, 9),
                }
                taken = u64::from_ne_bytes(said);
                if taken > 0 {
                    if me == waits {
                        least = least.min((taken, name));
                    }
                    break;
                }
            }
        }
    }
    println!("waits {} signals {} fewest {} in {}", 2 * WAITS.len(), TAKEN.load(Ordering::Relaxed), least.0, least.1);
    if me == 0 {
        sleep_ms(30);
    }
    finalize();
    assert!(least.0 > 0, "no signal came while rank {me} waited in {}", least.1);
}

const WAITS: [&str; 12] = [
    "recv",
    "a synchronous send",
    "irecv_wait",
    "recv of any index",
    "recv_any",
    "a synchronous send_any",
    "bcast",
    "allreduce",
    "ibarrier_wait",
    "mcast_recv",
    "acp_sync and acp_complete",
    "barrier",
];

fn wait(kind: usize, me: i32, peer: i32, waits: i32, long: &[u8], room: &mut [u8]) {
    let i_wait = me == waits;
    match kind {
        0 if i_wait => recv(room, peer, 0),
        2 if i_wait => {
            irecv(room, peer, 0);
            irecv_wait(peer, 0);
        }
        3 if i_wait => recv(room, peer, ANY),
        0 | 2 | 3 => return send(long, peer, 0),
        1 => {
            mode(-1);
            if i_wait {
                send(long, peer, 0);
            } else {
                recv(room, peer, 0);
            }
            mode(0);
        }
        4 if i_wait => drop(recv_any(room, 1)),
        4 => return send_any(long, peer, 1),
        5 => {
            mode(-1);
            if i_wait {
                send_any(long, peer, 1);
            } else {
                recv_any(room, 1);
            }
            mode(0);
        }
        6 => {
            room.copy_from_slice(long);
            if i_wait {
                room.fill(0);
            }
            // SAFETY: slices and places of ours, for the length of the calls.
            ok(unsafe {
                fmpl_bcast(room.as_mut_ptr().cast(), room.len(), peer * i_wait as i32 + me * !i_wait as i32, WORLD)
            });
        }
        7 => {
            let mut sum = [1.0f64 + me as f64; 4];
            // SAFETY: slices and places of ours, for the length of the calls.
            ok(unsafe { fmpl_allreduce(sum.as_mut_ptr().cast(), 4, Some(fmpl_dsum), WORLD, null_mut()) });
            return assert_eq!(sum, [3.0; 4]);
        }
        8 => {
            ok(fmpl_ibarrier(WORLD));
            return ok(fmpl_ibarrier_wait(WORLD));
        }
        9 if i_wait => {
            let (mut size, mut master) = (0, -1);
            // SAFETY: slices and places of ours, for the length of the calls.
            ok(unsafe {
                fmpl_mcast_recv(room.as_mut_ptr().cast(), room.len(), WORLD, (&mut size).into(), (&mut master).into())
            });
            assert_eq!((size, master), (room.len(), peer));
        }
        // SAFETY: slices and places of ours, for the length of the calls.
        9 => return ok(unsafe { fmpl_mcast(long.as_ptr().cast(), long.len(), &(1u64 << peer), WORLD, Out::NULL) }),
        10 => {
            // SAFETY: slices and places of ours, for the length of the calls.
            return unsafe {
                ok(acp_init(null_mut(), null_mut()));
                let (mine, theirs) = (acp_query_starter_ga(me), acp_query_starter_ga(peer));
                let handle = acp_copy(theirs + 64, mine, 64, 0);
                acp_complete(handle);
                ok(acp_sync());
                ok(acp_finalize());
            };
        }
        _ => return barrier(),
    }
    if kind != 1 && kind != 5 || !i_wait {
        check(room, 3, WAITS[kind]);
    }
    room.fill(0);
}

pub fn harm_no_wait() {
    for settings in ["", "FMPL_WAIT=block", "FMPL_WAIT=spin", "FMPL_CMA=off"] {
        let outcome = Job::new(2, "is interrupted").settings(settings).run();
        println!("  {settings}: {}", said(&outcome, 0).trim());
    }
}
