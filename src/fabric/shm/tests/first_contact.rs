//! Two ranks meet, one of them dies, strangers knock.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc;

use super::super::attach::Card;
use super::super::hello::HELLO_LEN;
use super::super::region::ALIVE;
use super::*;
use crate::base::atomics::Ordering;

/// Rank 0 of four, in the test's own process.
fn rank_0() -> Attach {
    let a = start(Region::create(0, 4).unwrap(), true);
    a.open(&Key::of(&SECRET)).unwrap();
    a
}

#[test]
fn both_sides_know_each_other_afterwards() {
    let (contacts, contact) = mpsc::channel();
    let me = Attach::start(
        Arc::new(Region::create(0, 4).unwrap()),
        Options { cma: true },
        |_| {},
        move |p| contacts.send(p.rank).unwrap(),
    )
    .unwrap();
    me.open(&Key::of(&SECRET)).unwrap();
    let mut other = Child::rank(1);
    let peer = meet(&me, 1, &other.card).unwrap();
    assert_eq!((peer.rank, peer.pid), (1, other.pid()));
    assert!(!peer.is_dead() && !peer.check_dead());
    wait_until("the pulse is felt", || peer.has_pulse());
    assert!(peer.may_copy());
    assert_eq!(other.ask("known 0"), format!("rank 0 pid {} cma {}", std::process::id(), peer.cma()));
    // SAFETY: one byte of a window of that length.
    assert_eq!(unsafe { peer.region.map(LANES_AT, 1).unwrap().as_ptr().read() }, MARK);
    // Again, and from the other side: the same.
    assert!(Arc::ptr_eq(&peer, &meet(&me, 1, &other.card).unwrap()));
    assert_eq!(other.ask(&format!("contact 0 {}", hex(&me.card()))), format!("rank 0 cma {}", peer.cma()));
    assert_eq!(contact.try_iter().collect::<Vec<_>>(), [1]);
    me.stop();
}

#[test]
fn both_at_once_and_many_threads() {
    let me = rank_0();
    let mut others = [1, 2, 3].map(Child::rank);
    let card = hex(&me.card());
    for c in &mut others {
        c.tell(&format!("contact 0 {card}"));
    }
    std::thread::scope(|s| {
        for _ in 0..3 {
            for (i, c) in others.iter().enumerate() {
                let (me, card) = (&me, &c.card);
                s.spawn(move || assert_eq!(meet(me, i as u32 + 1, card).unwrap().rank, i as u32 + 1));
            }
        }
    });
    for (i, c) in others.iter_mut().enumerate() {
        assert!(c.answer().starts_with("rank 0"));
        assert_eq!(me.known(i as u32 + 1).unwrap().pid, c.pid());
    }
    assert_eq!(me.rejected(), 0);
}

#[test]
fn contacts_wait_for_the_secret() {
    let me = rank_0();
    let mut other = Child::start(1, LAYOUT_VERSION, false);
    let card = other.card.clone();
    std::thread::scope(|s| {
        let contact = s.spawn(|| meet(&me, 1, &card));
        assert!(me.known(1).is_none());
        assert_eq!(other.ask(&format!("open {}", hex(&SECRET))), "ok");
        assert_eq!(contact.join().unwrap().unwrap().rank, 1);
    });
    let unopened = start(Region::create(2, 4).unwrap(), true);
    assert_eq!(meet(&unopened, 1, &other.card).unwrap_err().code(), Code::Init);
}

#[test]
fn an_initiator_that_is_stopped_is_reachable() {
    let me = rank_0();
    let mut other = Child::rank(1);
    other.tell(&format!("push-and-stop 0 {}", hex(&me.card())));
    wait_until("the push arrives", || me.known(1).is_some());
    other.wait_stopped();
    let peer = meet(&me, 1, &other.card).unwrap();
    assert!(!peer.check_dead());
    let window = peer.region.map(LANES_AT, 4096).unwrap();
    // SAFETY: the window has those bytes; the other process does nothing.
    unsafe {
        assert_eq!(window.as_ptr().read(), MARK);
        window.as_ptr().add(1).write(1);
    }
    peer.region.header().state.store(ALIVE, Ordering::Release);
    other.signal(libc::SIGCONT);
    assert_eq!(other.answer(), "ok");
    assert!(other.ask(&format!("contact 0 {}", hex(&me.card()))).starts_with("rank 0"));
}

#[test]
fn a_responder_that_is_stopped_is_waited_for() {
    let (deaths, death) = mpsc::channel();
    let region = Arc::new(Region::create(0, 4).unwrap());
    let me = Attach::start(region, Options { cma: true }, move |r| deaths.send(r).unwrap(), |_| {}).unwrap();
    me.open(&Key::of(&SECRET)).unwrap();
    let mut other = Child::rank(1);
    other.signal(libc::SIGSTOP);
    other.wait_stopped();
    // Who cannot wait does without, as often as it likes, and declares nobody dead.
    for _ in 0..3 {
        assert!(me.contact(1, &other.card, |waited| waited < Duration::from_millis(20)).unwrap().is_none());
    }
    assert!(death.try_recv().is_err());
    std::thread::scope(|s| {
        let contact = s.spawn(|| meet(&me, 1, &other.card).map(|p| p.pid));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!contact.is_finished() && me.known(1).is_none());
        other.signal(libc::SIGCONT);
        assert_eq!(contact.join().unwrap().unwrap(), other.pid());
    });
    // What was pushed meanwhile has arrived.
    assert!(other.ask("known 0").starts_with("rank 0"));
    assert_eq!(meet(&me, 1, &other.card).unwrap().pid, other.pid());
}

#[test]
fn who_asks_often_greets_once() {
    let me = rank_0();
    let (listener, name) = socket::listen().unwrap();
    // This process, which does not answer there.
    let card = Card { name, ..me.card.clone() }.encode();
    for _ in 0..100 {
        assert!(me.contact(1, &card, |_| false).unwrap().is_none());
    }
    let greeted = std::iter::from_fn(|| socket::accept(listener.as_fd()).ok()).count();
    assert_eq!(greeted, 1, "greetings of a peer that had no time to answer the first");
}

#[test]
fn who_greet_each_other_in_haste_keep_a_connection() {
    for _ in 0..30 {
        let ranks = [0, 1].map(|rank| {
            let a = start(Region::create(rank, 4).unwrap(), true);
            a.open(&Key::of(&SECRET)).unwrap();
            a
        });
        let cards = [0, 1].map(|k: usize| ranks[k].card());
        let other = |k: usize| 1 - k;
        std::thread::scope(|s| {
            for k in [0, 1] {
                let (me, card) = (&ranks[k], &cards[other(k)]);
                s.spawn(move || me.contact(other(k) as u32, card, |_| false).unwrap());
            }
        });
        for k in [0, 1] {
            meet(&ranks[k], other(k) as u32, &cards[other(k)]).unwrap();
        }
        // By it each hears when the other executes another program.
        let keeps = |k: usize| ranks[k].known(other(k) as u32).unwrap().keeps_a_line();
        wait_until("a connection that both keep", || keeps(0) && keeps(1));
    }
}

#[test]
fn a_death_is_noticed_once() {
    let (deaths, death) = mpsc::channel();
    let region = Arc::new(Region::create(0, 4).unwrap());
    let me = Attach::start(region, Options { cma: true }, move |r| deaths.send(r).unwrap(), |_| {}).unwrap();
    me.open(&Key::of(&SECRET)).unwrap();
    let mut others = [1, 2].map(Child::rank);
    let peers = [1, 2].map(|r| meet(&me, r, &others[r as usize - 1].card).unwrap());
    others[1].signal(libc::SIGKILL);
    assert_eq!(death.recv_timeout(PLENTY), Ok(2));
    assert!(peers[1].is_dead() && peers[1].check_dead() && !peers[0].check_dead());
    assert!(!peers[1].has_pulse() && !peers[1].may_copy() && peers[0].may_copy());
    others[1].process.wait().unwrap();
    // Its memory outlives it.
    // SAFETY: one byte of a window of that length.
    assert_eq!(unsafe { peers[1].region.map(LANES_AT, 1).unwrap().as_ptr().read() }, MARK);
    others[0].signal(libc::SIGKILL);
    assert_eq!(death.recv_timeout(PLENTY), Ok(1));
    drop(me);
    assert_eq!(death.iter().count(), 0, "announced twice");

    let (deaths, death) = mpsc::channel();
    let region = Arc::new(Region::create(3, 4).unwrap());
    let late = Attach::start(region, Options { cma: true }, move |r| deaths.send(r).unwrap(), |_| {}).unwrap();
    late.open(&Key::of(&SECRET)).unwrap();
    let e = meet(&late, 2, &others[1].card).unwrap_err();
    assert_eq!(e.code(), Code::Peer);
    assert!(e.detail().contains("rank 2 has died or left before first contact"), "{e}");
    assert_eq!(death.try_recv(), Ok(2), "learnt by the contact");
}

#[test]
fn who_has_left_is_gone_though_a_forked_child_keeps_its_socket() {
    let me = rank_0();
    let mut other = Child::rank(1);
    let orphan: i32 = other.ask("orphan").parse().unwrap();
    other.signal(libc::SIGKILL);
    other.process.wait().unwrap();
    let e = meet(&me, 1, &other.card).unwrap_err();
    // SAFETY: the child's child, which nobody can have waited for but init, and it lives until this kill.
    unsafe { libc::kill(orphan, libc::SIGKILL) };
    assert_eq!(e.code(), Code::Peer);
    assert!(e.detail().contains("has died or left"), "{e}");

    let mut other = Child::rank(2);
    assert_eq!(other.ask("leave"), "ok");
    let e = meet(&me, 2, &other.card).unwrap_err();
    assert!(e.detail().contains("rank 2 has died or left"), "{e}");
}

#[test]
fn other_layouts_are_named_on_both_sides() {
    let me = rank_0();
    let mut old = Child::start(1, LAYOUT_VERSION + 41, true);
    let (ours, theirs) = (LAYOUT_VERSION, LAYOUT_VERSION + 41);
    let e = meet(&me, 1, &old.card).unwrap_err();
    assert_eq!(e.code(), Code::Version);
    assert!(e.detail().contains(&format!("rank 1 has layout version {theirs}, this process has {ours}")), "{e}");
    let e = old.ask(&format!("contact 0 {}", hex(&me.card())));
    assert!(
        e.starts_with(&format!("error Version rank 0 has layout version {ours}, this process has {theirs}")),
        "{e}"
    );
    assert!(me.known(1).is_none());
}

#[test]
fn another_jobs_secret_and_other_mistakes_are_refused() {
    let me = rank_0();
    let mut stranger = Child::start(1, LAYOUT_VERSION, false);
    assert_eq!(stranger.ask(&format!("open {}", hex(b"another's secret"))), "ok");
    let e = meet(&me, 1, &stranger.card).unwrap_err();
    assert_eq!(e.code(), Code::Peer);
    assert!(e.detail().contains("does not know the secret"), "{e}");
    let e = stranger.ask(&format!("contact 0 {}", hex(&me.card())));
    assert!(e.starts_with("error Peer") && e.contains("does not know the secret"), "{e}");
    assert_eq!((me.known(1).is_none(), me.rejected()), (true, 1));

    let other = Child::rank(2);
    let e = meet(&me, 3, &other.card).unwrap_err();
    assert!(e.code() == Code::Peer && e.detail().contains("rank 3 turned down"), "{e}");
    assert_eq!(meet(&me, 4, &other.card).unwrap_err().code(), Code::Rank);
    assert_eq!(meet(&me, 2, b"no card").unwrap_err().code(), Code::Launch);
    let mut elsewhere = other.card.clone();
    elsewhere[20] ^= 1;
    assert!(!me.same_node(&elsewhere) && me.same_node(&other.card));
    assert_eq!(meet(&me, 2, &elsewhere).unwrap_err().code(), Code::Unsupported);
    let mut other_process = other.card.clone();
    other_process[12..16].copy_from_slice(&std::process::id().to_le_bytes());
    assert_eq!(meet(&me, 2, &other_process).unwrap_err().code(), Code::Peer);
    assert_eq!(meet(&me, 2, &other.card).unwrap().rank, 2);
}

#[test]
fn copies_are_off_where_either_side_says_so() {
    let me = start(Region::create(0, 4).unwrap(), false);
    me.open(&Key::of(&SECRET)).unwrap();
    let mut others = [1, 2].map(Child::rank);
    assert!(!meet(&me, 1, &others[0].card).unwrap().cma());
    assert!(others[0].ask("known 0").ends_with("cma false"));
    assert_eq!(others[1].ask(&format!("contact 0 {}", hex(&me.card()))), "rank 0 cma false");
    assert!(!me.known(2).unwrap().cma());
}

/// Knocks at `name` in every wrong way there is. Returns the connections that are left half-open.
fn nuisance(name: &socket::Name, shared: &Attach) -> Vec<OwnedFd> {
    let connect = || socket::connect(name, PLENTY).unwrap();
    let region = shared.shared.region.fd();
    let hello = shared.shared.introduce(Kind::Hello, 1, shared.shared.secret.get().unwrap(), false);
    for len in [1, 15, 16, HELLO_LEN - 1, HELLO_LEN, HELLO_LEN + 1, 60_000] {
        for byte in [0, 0xff, b'F'] {
            let _ = socket::send(connect().as_fd(), &vec![byte; len], Some(region));
        }
    }
    // A good greeting, but for one thing.
    let (pipe, _end) = std::io::pipe().unwrap();
    let _ = socket::send(connect().as_fd(), &hello, None);
    let _ = socket::send(connect().as_fd(), &hello, Some(pipe.as_fd()));
    let _ = socket::send(connect().as_fd(), &hello[..100], Some(region));
    for at in [0, 8, 12, 16, 20, 24, 32, 47] {
        let mut bad = hello;
        bad[at] ^= 0x40;
        let _ = socket::send(connect().as_fd(), &bad, Some(region));
    }
    send_many_descriptors(connect(), &hello, region.as_raw_fd());
    (0..200).map(|_| connect()).collect()
}

/// More descriptors than anybody wants, in one packet.
fn send_many_descriptors(fd: OwnedFd, packet: &[u8], what: i32) {
    const MANY: usize = 100;
    #[repr(C, align(8))]
    struct Control([u8; 1024]);
    let mut control = Control([0; 1024]);
    let mut iov = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
    // SAFETY: the control buffer holds one message of MANY descriptors, and everything outlives the call.
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_iov = &mut iov;
        m.msg_iovlen = 1;
        m.msg_control = control.0.as_mut_ptr().cast();
        m.msg_controllen = libc::CMSG_SPACE((MANY * 4) as u32) as _;
        let c = libc::CMSG_FIRSTHDR(&m);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN((MANY * 4) as u32) as _;
        for i in 0..MANY {
            libc::CMSG_DATA(c).cast::<i32>().add(i).write_unaligned(what);
        }
        assert!(libc::sendmsg(fd.as_raw_fd(), &m, libc::MSG_NOSIGNAL) > 0);
    }
}

#[test]
fn garbage_and_floods_do_no_harm() {
    let me = rank_0();
    let mut other = Child::rank(1);
    let before: usize = other.ask("descriptors").parse().unwrap();
    let half_open = nuisance(&other.card[4..12].try_into().unwrap(), &me);
    assert!(me.known(1).is_none());
    // In the middle of it all a real contact.
    assert_eq!(meet(&me, 1, &other.card).unwrap().pid, other.pid());
    assert_eq!(other.ask("known 0"), format!("rank 0 pid {} cma {}", std::process::id(), me.known(1).unwrap().cma()));
    assert!(other.ask("rejected").parse::<u64>().unwrap() >= 30);
    // All that it holds afterwards are the three descriptors of its one peer, even while the strangers hold on.
    wait_until("the silent ones are dropped", || other.ask("descriptors").parse::<usize>().unwrap() == before + 3);
    drop(half_open);
}

#[test]
fn nothing_is_left_open() {
    let me = rank_0();
    let mut other = Child::rank(1);
    let threads = |c: &mut Child| c.ask("threads").parse::<usize>().unwrap();
    let descriptors = |c: &mut Child| c.ask("descriptors").parse::<usize>().unwrap();
    let (t, d) = (threads(&mut other), descriptors(&mut other));
    meet(&me, 1, &other.card).unwrap();
    assert!(other.ask("known 0").starts_with("rank 0"));
    // Region, pidfd, connection.
    wait_until("the contact is over", || descriptors(&mut other) == d + 3);
    assert_eq!(other.ask("leave"), "ok");
    // Listener, epoll, eventfd and the spare one are gone too.
    assert_eq!(descriptors(&mut other), d - 4);
    wait_until("the thread is gone", || threads(&mut other) == t - 1);
}
