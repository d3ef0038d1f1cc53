//! Operations that are refused, and what is ordered after them.

use crate::acp::*;
use crate::ranks::calls::ARGUMENT;
use crate::ranks::{Job, complaints, story};
use fmpl::ffi::acp::*;
use fmpl::ffi::c::{FMPL_COUNTER_GLOBAL_REFUSED, fmpl_counter};
use std::sync::atomic::Ordering;

/// It is said, once for each kind, and all are counted.
pub fn told() {
    for (way, kind) in [("", "shared"), ("", "private"), ("FMPL_CMA=off", "private")] {
        let outcome = Job::new(2, "refuses").settings(way).env("KIND", kind).run();
        let said = complaints(&outcome);
        let lines = |words: &[&str]| said.lines().filter(|l| words.iter().all(|w| l.contains(w))).count();
        // Of rank 0's: a copy, a copy that was to follow, an addition, an addition that was to follow.
        let all = ["fmpl: rank 0: ", "refused, and so is what is ordered after it"];
        assert_eq!(lines(&all), 4, "{}", story(&outcome));
        for words in [
            ["fmpl: rank 0: copy, from: the null address: refused", "said once for each kind"],
            ["rank 0: copy of 8 bytes from 0x", "not started: operation 2, which it was to follow, was refused: "],
            ["rank 0: add8: 8 bytes at 0x", "nothing is registered there: refused"],
            ["rank 0: add8 at 0x", "not started: operation 2, which it was to follow, was refused: "],
        ] {
            assert_eq!(lines(&words), 1, "{words:?}: {said}");
        }
        assert_eq!(
            lines(&["rank 0: ", "operations on global memory were refused or have failed, in all"]),
            1,
            "{said}"
        );
        assert_eq!(lines(&["rank 1: "]), 0, "{said}");
    }
}

fn refused_so_far() -> usize {
    let mut count = 0;
    assert_eq!(fmpl_counter(FMPL_COUNTER_GLOBAL_REFUSED, (&mut count).into()), 0);
    count
}

/// The operation was refused, with this text.
#[track_caller]
fn refused(handle: i64, text: &str) -> i64 {
    let number = acp_errno();
    assert!(is_refused(handle) && number == ARGUMENT && last_error().contains(text), "{handle:#x} {}", last_error());
    handle
}

pub fn refuses() {
    init();
    let me = rank() as usize;
    let kind = if std::env::var("KIND").unwrap() == "shared" { Kind::Shared } else { Kind::Private };
    let (memory, own) = (Memory::new(kind, 4096), Memory::new(Kind::Shared, 4096));
    let at = exchange(0, register(memory.ptr(), 4096).1);
    let (_, here) = register(own.ptr(), 4096);
    let nothing = at[1] + (77 << 34);
    if me == 0 {
        own.word(0).store(1, Ordering::Release);
        let flag = |order| try_copy(at[1], here, 8, order);
        let add = |order| try_fetch8(Op::Add, here + 64, at[1], 1, 0, order);
        // Data that cannot be copied, and its flag.
        let data = refused(try_copy(at[1] + 64, 0, 8, NOW), "null address");
        let follower = refused(flag(data), "copy of 8 bytes");
        assert!(last_error().contains("null address"), "the cause is named: {}", last_error());
        let further = refused(add(follower), "not started");
        for order in [CONT, ALL, data, follower, further] {
            refused(flag(order), "not started");
            refused(add(order), "not started");
        }
        refused(try_fetch8(Op::Add, here + 64, nothing, 1, 0, NOW), "nothing is registered");
        assert_eq!(refused_so_far(), 14);
        // What was issued before, and what names nothing, goes on.
        let free = copy(at[1] + 128, here, 8, NOW);
        assert!(!is_refused(free));
        // Nobody has been told of the first failure by a wait.
        refused(flag(free), "which it was to follow, was refused");
        assert_eq!(complete_with_error(free), ARGUMENT);
        assert!(last_error().contains("null address"), "{}", last_error());
        assert_eq!(complete_with_error(ALL), ARGUMENT, "the last one was issued after that");
        // From here on that is in order, but for what names a refused operation itself.
        complete(fetch8(Op::Add, here + 64, at[1] + 192, 1, 0, free));
        refused(flag(data), "which it was to follow, was refused");
        assert_eq!(complete_with_error(ALL), ARGUMENT);
        for _ in 0..2 {
            assert_eq!(complete_with_error(data), ARGUMENT);
            assert!(!inquire(data) && last_error().contains("was refused"), "{}", last_error());
        }
        complete(copy(at[1] + 256, here, 8, ALL));
        // More failures than are kept: the first one is never forgotten.
        let first = refused(try_copy(at[1], 0, 8, NOW), "null address");
        (0..200).for_each(|_| assert!(is_refused(try_copy(at[1], 0, 8, NOW))));
        let before = refused_so_far();
        refused(flag((first & !(ACP_HANDLE_REFUSED as i64)) + 1), "not started");
        assert_eq!(refused_so_far(), before + 1);
        // More than once: what is kept of the failures is told all at once.
        assert_eq!(complete_with_error(ALL), ARGUMENT);
        complete(ALL);
        // One that nobody waits for is no failure of finalize.
        refused(try_copy(at[1], 0, 8, NOW), "null address");
    }
    sync();
    if me == 1 {
        assert_eq!([0, 8, 16, 24, 32].map(|n| memory.word(n).load(Ordering::Acquire)), [0, 0, 1, 1, 1]);
    }
    sync();
    finalize();
}
