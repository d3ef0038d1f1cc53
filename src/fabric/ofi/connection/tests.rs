//! Two ports in one process, over the provider that each libfabric has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::config::Congestion;
use crate::base::system::calls;
use crate::fabric::network::device::{Access, Data, Device, Pair, Piece, Place, Request, What};
use crate::fabric::network::region::Arena;
use crate::fabric::ofi::network::Ofi;
use crate::fabric::ofi::provider::{Wishes, choose};

/// Two ports, and the ends of a connection between them.
type Connected = ([Ofi; 2], [Arc<dyn Pair>; 2]);

/// `None`: there is no libfabric here.
fn connected() -> Option<Connected> {
    let open = || {
        let file = std::env::var("FMPL_LIBFABRIC").ok();
        let offer = choose(&Wishes { provider: Some("tcp;ofi_rxm".into()), devices: false, file });
        offer
            .inspect_err(|e| eprintln!("skipped: {e}"))
            .ok()
            .map(|offer| Ofi::open(offer, &Congestion::Named("reno".into())).expect("a port"))
    };
    let ports = [open()?, open()?];
    let pairs = [0, 1].map(|n| ports[n].pair(256).expect("an end"));
    pairs[0].connect(&pairs[1].end()).expect("the other end");
    pairs[1].connect(&pairs[0].end()).expect("the other end");
    Some((ports, pairs))
}

fn collect(port: &Ofi) {
    port.collect(&mut |_| ()).expect("it works");
}

/// Does something again and again until it says that it is over.
fn until(mut over: impl FnMut() -> bool) {
    let since = Instant::now();
    while !over() {
        assert!(since.elapsed() < Duration::from_secs(30), "it is never over");
        std::thread::yield_now();
    }
}

#[test]
fn memory_is_read_before_it_is_delivered_and_what_follows_closely_comes_in_order() {
    let Some((ports, [from, _to])) = connected() else { return };
    let both = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let [own, there] = [0, 1].map(|n| Arena::new(ports[n].domain(), 4096, both).expect("memory"));
    let at = |k: u64| Place { addr: there.as_ptr() as u64 + 64 * k, rkey: there.region().rkey() };
    // SAFETY: a word of the arena, which is written by the provider's calls of this thread.
    let word = |k: u64| unsafe { (at(k).addr as *const u64).read_volatile() };
    let post = |id: u64, data: Data<'_>, signaled: bool| {
        let request = Request { id, what: What::Write, data, to: at(id), signaled, later: false };
        until(|| {
            ports.iter().for_each(collect);
            // SAFETY: the arena stays, and few are under way.
            unsafe { from.post(&request) }.expect("it works")
        });
    };
    let completed = || {
        let mut last = 0;
        from.poll(&mut |c| last = c.id).expect("it works");
        last
    };
    let is_over = |id: u64| {
        until(|| {
            ports.iter().for_each(collect);
            completed() == id
        })
    };
    post(1, Data::Record(&1u64.to_ne_bytes()), true);
    is_over(1);
    // The other end does nothing from here on: what this side needs back it gets.
    // SAFETY: the arena's first word.
    unsafe { own.as_ptr().cast::<u64>().write_volatile(2) };
    let pieces = [Piece { addr: own.as_ptr() as u64, len: 8, lkey: own.region().lkey() }];
    let bulk =
        Request { id: 2, what: What::Write, data: Data::Pieces(&pieces), to: at(2), signaled: false, later: true };
    // SAFETY: as above.
    assert!(unsafe { from.post(&bulk) }.expect("it works"), "there is a way, and room");
    until(|| {
        assert_eq!(completed(), 0, "nobody has said that it is there");
        from.has_read(2)
    });
    assert_eq!(word(2), 0);
    // SAFETY: as above; it may change now.
    unsafe { own.as_ptr().cast::<u64>().write_volatile(u64::MAX) };
    for id in 3..=40u64 {
        let request = Request {
            id,
            what: What::Write,
            data: Data::Record(&id.to_ne_bytes()),
            to: at(id),
            signaled: id == 40,
            later: false,
        };
        // SAFETY: as above.
        until(|| unsafe { from.post(&request) }.expect("it works"));
    }
    is_over(40);
    (1..=40).for_each(|id| assert_eq!(word(id), id));
    assert_eq!(ports[1].next_error(), None, "none is missed");
    // What was wished of connections is set where something was sent.
    let name: [u8; 16] = *b"reno\0\0\0\0\0\0\0\0\0\0\0\0";
    let has_it = |fd: &i32| {
        let set = calls::option(*fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, [0u8; 16]);
        calls::address(*fd, true).is_ok() && set.is_ok_and(|set| set == name)
    };
    assert!((0..4096).any(|fd| has_it(&fd)), "no socket of the library's was found");
}
