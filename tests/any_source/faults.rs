use crate::ranks::Job;
use crate::ranks::bytes::{check, message, seed};
use crate::ranks::calls::*;
use fmpl::base::atomics::AtomicU64;
use fmpl::fabric::network::{Change, Piece, Place};
use fmpl::lane::remote::{Ask, Asked};
use fmpl::launch::embedded::Outcome;
use fmpl::p2p::any_source::ring::{Claimed, Ring, ring_at};
use fmpl::p2p::any_source::share::{of_region, share_at, share_of};
use fmpl::p2p::endpoint::{WORLD_EPOCH, endpoint};

pub fn die() -> ! {
    // SAFETY: no memory.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!()
}

/// Rank 1 dies with a ticket whose slot it has not filled, between messages of itself and of rank 2.
pub fn dies_with_a_slot() {
    init(4);
    let me = rank();
    barrier();
    match me {
        0 => {
            let mut buf = [0; 3000];
            let (mut of, mut deaths) = ([0; 3], 0);
            // In another share the others are not held up, so they may be through before the death is told.
            while of[2] < 20 || deaths == 0 {
                let (code, src, len) = try_recv_any(&mut buf, 1);
                if code == PEER {
                    deaths += 1;
                    assert!(last_error().contains("rank 1") && last_error().contains("index 1"), "{}", last_error());
                    continue;
                }
                ok(code);
                check(&buf[..len], seed(src, 0, 1, of[src as usize]), "before and after a death");
                of[src as usize] += 1;
                if src == 1 && of[1] == 10 && crate::number_of("APART").is_some() {
                    send(&[1], 1, 0);
                }
            }
            assert_eq!(of, [0, 10, 20], "what the dead rank had sent is there");
            assert_eq!(deaths, 1, "a death is told once");
            // Nobody is held up, and another index tells of it too, when somebody waits there.
            let code = try_recv_any(&mut buf, 2).0;
            fails(code, PEER);
            send(&[1], 2, 0);
            assert_eq!(recv_any(&mut buf, 2), (2, 5));
            if crate::ranks::in_software() {
                // A provider in software answers for the process, as long as there is one: rank 2 is to hear that it has arrived.
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
        }
        1 => {
            for seq in 0..10 {
                send_any(&message(lengths(seq), seed(1, 0, 1, seq)), 0, 1);
            }
            let ep = endpoint().unwrap();
            if crate::number_of("APART").is_some() {
                // A long message that nobody has fetched yet goes with the memory of its sender.
                recv(&mut [0], 0, 0);
                draw_and_die();
            }
            let peer = ep.contact(0).unwrap();
            let (slots, shares) = of_region(peer.region.header()).unwrap();
            let at = share_at(ring_at(None, 1), slots, share_of(1, shares));
            let ring = Ring::new(peer.region.map(at, Ring::bytes(slots)).unwrap(), slots, WORLD_EPOCH);
            ep.any_source.stakes.with(0, at, |stake| {
                while ring.claim(&AtomicU64::new(0), |ticket| stake.on(ticket)) == Claimed::Full {
                    std::thread::yield_now();
                }
                send(&[1], 2, 0);
                die();
            });
        }
        _ => {
            recv(&mut [0], 1, 0);
            for seq in 0..20 {
                send_any(&message(lengths(seq), seed(2, 0, 1, seq)), 0, 1);
            }
            recv(&mut [0], 0, 0);
            send_any(&[9; 5], 0, 2);
        }
    }
    // Nobody can finalize together with the dead.
    println!("well");
    std::process::exit(0);
}

/// The same between nodes.
fn draw_and_die() -> ! {
    let ep = endpoint().unwrap();
    let lane = ep.lane_of(ep.context(0).unwrap(), 0).unwrap();
    let remote = lane.remote().expect("on another node");
    let asked = Asked { what: Ask::Ring, slot: 1, seq: 0, at: 0 };
    let [addr, key] = remote.ask_for(asked, || true).flatten().expect("a ring");
    let bounce = remote.fabric().bounce().unwrap();
    let to = Piece { addr: bounce.arena().as_ptr() as u64, len: 8, lkey: bounce.arena().region().lkey() };
    // SAFETY: the buffer stays until the wait is over.
    let ticket = unsafe { remote.link.atomic(Change::Add(1), to, Place { addr, rkey: key as u32 }).unwrap() };
    remote.link.wait(ticket).unwrap();
    send(&[1], 2, 0);
    die();
}

/// The rank dies that has the counters by which rank 2 sends to rank 0: an error that names it, and nothing is lost of what was sent.
pub fn host_dies() {
    init(4);
    barrier();
    match rank() {
        0 => {
            let mut buf = [0; 3000];
            for seq in 0..20 {
                let (src, len) = recv_any(&mut buf, 1);
                assert_eq!(src, 2);
                check(&buf[..len], seed(2, 0, 1, seq), "before a death");
            }
            // Messages of other kinds go on.
            recv(&mut [0], 2, 0);
        }
        1 => {
            recv(&mut [0], 2, 0);
            assert_eq!(endpoint().unwrap().any_source.guests.count(), 1);
            die();
        }
        _ => {
            for seq in 0..20 {
                send_any(&message(lengths(seq), seed(2, 0, 1, seq)), 0, 1);
            }
            send(&[1], 1, 0);
            let code = loop {
                let code = try_send_any(&[0; 8], 0, 1);
                if code != 0 {
                    break code;
                }
            };
            fails(code, PEER);
            assert!(last_error().contains("rank 1"), "{}", last_error());
            send(&[1], 0, 0);
        }
    }
    // Nobody can finalize together with the dead.
    println!("well");
    std::process::exit(0);
}

fn lengths(seq: u64) -> usize {
    [8, 30, 900, 2500][seq as usize % 4]
}

/// Rank 1 is killed at a random time while it and two others send; the receiver gets all that the others send.
pub fn dies_in_traffic() {
    init(4);
    let (me, each) = (rank(), crate::number_of("EACH").unwrap_or(3000));
    barrier();
    if me == 0 {
        let mut buf = [0; 6000];
        let (mut of, mut deaths) = ([0; 4], 0);
        while of[2] < each || of[3] < each {
            let (code, src, len) = try_recv_any(&mut buf, 1);
            if code != 0 {
                fails(code, PEER);
                deaths += 1;
                assert!(deaths <= 2, "a death, and a message that went with it: {}", last_error());
                continue;
            }
            check(&buf[..len], seed(src, 0, 1, of[src as usize]), &format!("a message of rank {src}"));
            of[src as usize] += 1;
        }
    } else {
        if me == 1 {
            let us: u64 = std::env::var("US").unwrap().parse().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(us));
                die();
            });
        }
        let most = if me == 1 { u64::MAX } else { each };
        for seq in 0..most {
            send_any(&message([8, 100, 1000, 5000][seq as usize % 4], seed(me, 0, 1, seq)), 0, 1);
        }
        // Until all have arrived the process has to live: offers may be read.
        recv(&mut [0], 0, 0);
    }
    if me == 0 {
        for other in [2, 3] {
            send(&[1], other, 0);
        }
    }
    println!("well");
    std::process::exit(0);
}

/// Did the rank come to the end of its body?
pub fn well(outcome: &Outcome, rank: usize) -> bool {
    crate::ranks::said(outcome, rank).contains("well")
}

pub fn dead() {
    for settings in [
        "FMPL_ANY_SLOTS=256",
        "FMPL_ANY_SLOTS=4 FMPL_WAIT=block",
        "FMPL_ANY_SLOTS=64 FMPL_SPREAD=2",
        "FMPL_ANY_SLOTS=64 FMPL_SPREAD=4",
    ] {
        let outcome = Job::new(3, "dies with a slot").settings(settings).seconds(20).keep_going().outcome();
        assert!([0, 2].iter().all(|r| well(&outcome, *r)), "{}", crate::ranks::story(&outcome));
    }
    for k in (0..12u64).step_by(if crate::ranks::long() { 1 } else { 2 }) {
        let us = 300 + k * k * 200;
        let job = Job::new(4, "dies in traffic").env("US", us).env("FMPL_ANY_SLOTS", [4, 64][(k / 2 + k) as usize % 2]);
        let job = job.env("FMPL_SPREAD", 1 << (k % 3));
        let outcome = job.seconds(30).keep_going().outcome();
        assert!([0, 2, 3].iter().all(|r| well(&outcome, *r)), "after {us} us: {}", crate::ranks::story(&outcome));
    }
}

pub fn gives_wrong_arguments() {
    init(4);
    let (me, other) = (rank(), other());
    barrier();
    let data = [1; 8];
    fails(try_send_any(&data, 2, 0), RANK);
    fails(try_send_any(&data, -1, 0), RANK);
    fails(try_send_any(&data, other, 4), INDEX);
    fails(try_send_any(&data, other, -1), INDEX);
    fails(try_recv_any(&mut [0; 8], 4).0, INDEX);
    fails(try_recv_any(&mut [0; 8], -1).0, INDEX);
    ok(try_send_any(&data, fmpl::ffi::c::FMPL_PROC_NULL, 0));
    // SAFETY: no memory is touched.
    unsafe {
        let null = std::ptr::null_mut();
        fails(fmpl::ffi::c::fmpl_send_any(null, 8, other, 0, WORLD), ARGUMENT);
        fails(fmpl::ffi::c::fmpl_recv_any(null, 8, 0, WORLD), ARGUMENT);
        fails(fmpl::ffi::c::fmpl_send_any(null, 0, other, 0, 77), COMM);
        fails(fmpl::ffi::c::fmpl_recv_any_from(null, 0, 0, -1, fmpl::ffi::c::Out::NULL, fmpl::ffi::c::Out::NULL), COMM);
        fails(fmpl::ffi::c::fmpl_irecv_any_wait(0, WORLD, fmpl::ffi::c::Out::NULL, fmpl::ffi::c::Out::NULL), REQUEST);
        fails(fmpl::ffi::c::fmpl_recv_any_limit(-1, 0, WORLD), ARGUMENT);
    }
    // The job is as it was.
    send_any(&data, other, 3);
    let mut buf = [0; 8];
    assert_eq!(recv_any(&mut buf, 3), (other, 8));
    assert_eq!(buf, data);
    barrier();
    // Finalize names what is left.
    if me == 0 {
        send_any(&data, 1, 2);
        fails(try_finalize(), PENDING);
    } else {
        finalize();
    }
}

pub fn wrong() {
    Job::new(2, "wrong").run();
}
