//! A sandbox that refuses `membarrier`: to one rank, to the other, to both, or to one after its init. A receive that is withdrawn is not
//! written afterwards; the event descriptor tells of everything.
//!
//! `SANDBOX_SECONDS` and `SANDBOX_EVENTS` make the scenes longer, `SANDBOX_SETTING` has one setting only; `tests/promises/ground_order.py` does both.

use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, said};
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// To whom it is refused: ranks, at their start or `later`.
const SETTINGS: [&str; 6] = ["", "0", "1", "0 1", "0 later", "1 later"];

fn settings() -> impl Iterator<Item = &'static str> {
    let only = std::env::var("SANDBOX_SETTING").ok();
    SETTINGS.into_iter().filter(move |s| only.as_ref().is_none_or(|only| only == s))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().expect("a number"))
}

/// A filter of system calls that refuses `membarrier`, for good.
fn refuse_membarrier() {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jf| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = [
        step(LOAD_NUMBER, 0, 0),
        step(IF_EQUAL, libc::SYS_membarrier as u32, 1),
        step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: numbers, and a program of four steps.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0, "no filter");
        assert_eq!(libc::syscall(libc::SYS_membarrier, 0, 0, 0), -1);
    }
}

fn init_in_the_sandbox(indices: i32) {
    let told = std::env::var("REFUSED").expect("to whom");
    let me = std::env::var("PMI_RANK").expect("a rank");
    let mut words = told.split(' ');
    let mine = words.clone().any(|w| w == me);
    let later = words.any(|w| w == "later");
    if mine && !later {
        refuse_membarrier();
    }
    init(indices);
    if mine && later {
        refuse_membarrier();
    }
}

fn idle(turns: usize) {
    (0..turns).for_each(|_| spin_loop());
}

/// Rank 0 puts, rank 1 posts and withdraws.
pub fn withdraws_from_a_put() {
    const LEN: usize = 5000;
    init_in_the_sandbox(4);
    sendbuf_set(16 << 20, -1);
    let me = rank();
    let mut draw = Draw(88 + me as u64);
    let end = Instant::now() + Duration::from_secs(number("SANDBOX_SECONDS").unwrap_or(1));
    // SAFETY: never freed.
    let buffer = |n| unsafe { std::slice::from_raw_parts_mut(fmpl::ffi::c::fmpl_alloc(n).cast::<u8>(), n) };
    let data = buffer(LEN);
    let [mut messages, mut cancelled, mut written] = [0u64; 3];
    loop {
        if me == 0 {
            data.fill(7);
            data[0] = (Instant::now() < end) as u8;
            idle(draw.below(150));
            send(data, 1, 0);
        } else {
            data.fill(9);
            irecv(data, 0, 0);
            idle(draw.below(150));
            if cancel(0, 0) {
                cancelled += 1;
                data.fill(9);
                let until = Instant::now() + Duration::from_micros(20);
                while Instant::now() < until {
                    spin_loop();
                }
                // The other side may be writing: what is looked for is just that.
                // SAFETY: bytes of the buffer.
                let touched = (0..LEN).any(|k| unsafe { (&raw const data[k]).read_volatile() } != 9);
                written += touched as u64;
                recv(data, 0, 0);
            } else {
                irecv_wait(0, 0);
            }
        }
        messages += 1;
        if data[0] == 0 {
            break;
        }
    }
    if me == 1 {
        println!("messages {messages} cancelled {cancelled} written {written}");
    }
    finalize();
}

pub fn withdrawn() {
    for refused in settings() {
        let mut job = Job::new(2, "withdraws from a put").env("REFUSED", refused);
        if let Some(n) = number("SANDBOX_SECONDS") {
            job = job.env("SANDBOX_SECONDS", n);
        }
        let text = said(&job.run(), 1);
        println!("  refused to [{refused}]: {}", text.trim());
        assert!(text.contains(" written 0\n"), "refused to [{refused}]: {text}");
    }
}

/// Waits for a request as an event loop does. `false`: it is complete, and the descriptor did not tell.
fn told(fd: i32, test: impl Fn() -> bool) -> bool {
    let readable = |ms| {
        let mut p = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        unsafe { libc::poll(&raw mut p, 1, ms) == 1 }
    };
    while !test() {
        if readable(5000) {
            let mut count = 0u64;
            // SAFETY: eight writable bytes.
            unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
        } else if test() && !readable(0) {
            return false;
        }
    }
    true
}

/// Rank 0 is the event loop. Each round waits for one request of a kind, whose other side comes at a random moment.
pub fn loops_on_events() {
    init_in_the_sandbox(8);
    sendbuf_set(16 << 20, 0);
    let me = rank();
    let mut draw = Draw(5 + me as u64);
    let rounds = number("SANDBOX_EVENTS").unwrap_or(4000);
    let mut fd = -1;
    if me == 0 {
        ok(fmpl::ffi::c::fmpl_event_fd((&mut fd).into()));
    }
    let mut lost = 0u64;
    for round in 0..rounds {
        let kind = round % 4;
        let number = round.to_le_bytes();
        if me == 0 {
            send(&number, 1, 1);
            let mut buffer = [0u8; 8];
            idle(draw.below(100));
            let told = match kind {
                0 => {
                    irecv(&mut buffer, 1, 0);
                    told(fd, || irecv_test(1, 0))
                }
                1 => {
                    irecv(&mut buffer, 1, ANY);
                    told(fd, || irecv_test(1, ANY))
                }
                2 => {
                    irecv_any(&mut buffer, 0);
                    told(fd, || irecv_any_test(0).is_some())
                }
                _ => {
                    mode(-1);
                    isend(&number, 1, 2);
                    let told = told(fd, || isend_test(1, 2));
                    mode(0);
                    buffer = number;
                    told
                }
            };
            assert_eq!(buffer, number);
            lost += !told as u64;
        } else {
            let mut buffer = [0u8; 8];
            recv(&mut buffer, 0, 1);
            idle(draw.below(220));
            match kind {
                0 | 1 => send(&number, 0, 0),
                2 => send_any(&number, 0, 0),
                _ => recv(&mut buffer, 0, 2),
            }
            assert_eq!(buffer, number);
        }
    }
    if me == 0 {
        println!("events {rounds} lost {lost}");
    }
    barrier();
    finalize();
}

pub fn told_of_everything() {
    for refused in settings() {
        let mut job = Job::new(2, "loops on events").env("REFUSED", refused).seconds(600);
        if let Some(n) = number("SANDBOX_EVENTS") {
            job = job.env("SANDBOX_EVENTS", n);
        }
        let text = said(&job.run(), 0);
        println!("  refused to [{refused}]: {}", text.trim());
        assert!(text.contains(" lost 0\n"), "refused to [{refused}]: {text}");
    }
}
