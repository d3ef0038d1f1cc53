//! The registrations that are kept: threads look for them without a lock while others forget them, keep others, and let go.
//!
//! Each thread that is not looking does what the library's do: one tells of memory that goes away, and whoever has unmapped it goes on as soon
//! as it has been told of.

use std::time::Duration;

use fmpl::base::atomics::{AtomicU64, Ordering};
use fmpl::base::shadow;
use fmpl::fabric::network::cache::table::{Bounds, Kept, Table};
use fmpl::p2p::model::explore;
use loom::thread::{JoinHandle, spawn};

use crate::stage::bounded;

/// What is registered: whose memory it is. It is used, and ends, as a registration would.
struct Whose(u64);

const FIRST: (u64, u64) = (0x1_0000, 0x3_0000);
const OTHER: (u64, u64) = (0x8_0000, 0x9_0000);

type Registrations = &'static Table<Whose>;

/// The munmap of a thread has returned.
static UNMAPPED: AtomicU64 = AtomicU64::new(0);

/// A table in which the first range is kept, and threads that do something with it.
fn model(name: &str, threads: impl Fn(Registrations) -> Vec<JoinHandle<()>> + Copy + Send + Sync + 'static) {
    bounded(name, 3, |preemptions, left: Duration| {
        shadow::forget();
        let table = Table::new(Bounds { ranges: 2, bytes: 1 << 20 }).expect("a table");
        let table: Registrations = Box::leak(Box::new(table));
        drop(table.keep(FIRST.0, FIRST.1, false, Whose(1)));
        table.in_model();
        shadow::share((&raw const UNMAPPED).cast(), size_of::<AtomicU64>());
        explore(preemptions, left, move || {
            table.renew(Whose(1));
            threads(table).into_iter().for_each(|thread| thread.join().expect("a thread"));
            assert!(table.clear(), "all have let go");
        })
    });
}

/// Whose the memory at the beginning of a range is, used for a moment.
fn whose(table: Registrations, range: (u64, u64)) -> Option<u64> {
    let kept: Kept<Whose> = table.find(range.0 + 0x100, range.0 + 0x200, false)?;
    let whose = kept.0;
    shadow::spin_loop();
    assert_eq!(kept.0, whose, "what is held stays");
    Some(whose)
}

#[test]
fn unmapped_is_not_found() {
    model("unmapped_is_not_found", |table| {
        vec![
            spawn(move || {
                let told = || {
                    // The kernel: whoever unmaps goes on when the event is read.
                    UNMAPPED.store(1, Ordering::Release);
                    Some(FIRST)
                };
                assert_eq!(table.forget_later(told), 1);
            }),
            spawn(move || {
                let is_unmapped = UNMAPPED.load(Ordering::Acquire) == 1;
                let found = whose(table, FIRST);
                assert!(found.is_none() || !is_unmapped && found == Some(1), "{found:?}");
            }),
        ]
    });
}

/// The memory is mapped again by the thread that has unmapped it, and registered; and another thread looks.
#[test]
fn mapped_again_is_found_anew() {
    model("mapped_again_is_found_anew", |table| {
        vec![
            spawn(move || {
                table.forget(FIRST.0, FIRST.1);
                assert!(whose(table, FIRST).is_none());
                drop(table.keep(FIRST.0, FIRST.1, false, Whose(2)));
                UNMAPPED.store(1, Ordering::Release);
            }),
            spawn(move || {
                let is_anew = UNMAPPED.load(Ordering::Acquire) == 1;
                let found = whose(table, FIRST);
                assert!(if is_anew { found == Some(2) } else { found.is_none_or(|n| n == 1 || n == 2) }, "{found:?}");
            }),
        ]
    });
}

/// Its slot becomes another's.
fn in_the_slot_of_another(name: &str, range: (u64, u64), value: u64) {
    model(name, move |table| {
        vec![
            spawn(move || {
                table.forget(FIRST.0, FIRST.1);
                drop(table.keep(OTHER.0, OTHER.1, false, Whose(2)));
            }),
            spawn(move || assert!(whose(table, range).is_none_or(|n| n == value))),
        ]
    });
}

#[test]
fn another_is_not_found_for_it() {
    in_the_slot_of_another("another_is_not_found_for_it", FIRST, 1);
}

#[test]
fn it_is_not_found_for_another() {
    in_the_slot_of_another("it_is_not_found_for_another", OTHER, 2);
}

/// Two have found it when it goes; whoever is last ends it.
#[test]
fn held_by_two_when_it_goes() {
    model("held_by_two_when_it_goes", |table| {
        let finds = move || assert!(whose(table, FIRST).is_none_or(|n| n == 1));
        let goes = move || {
            table.forget_later(|| Some(FIRST));
            table.end();
        };
        vec![spawn(finds), spawn(finds), spawn(goes)]
    });
}
