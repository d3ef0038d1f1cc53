use crate::ranks::calls::*;
use crate::ranks::{Job, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::End;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

pub fn use_() {
    for ranks in [2, 3] {
        Job::new(ranks, "is wrong").run();
    }
}

pub fn killed() {
    for (ranks, victim, early) in [(2, 1, 1), (4, 0, 1), (4, 2, 0), (5, 1, 1), (5, 3, 0), (8, 4, 1)] {
        let job = Job::new(ranks, "loses somebody").env("VICTIM", victim).env("EARLY", early).keep_going();
        let outcome = job.outcome();
        for (rank, end) in outcome.ends.iter().enumerate() {
            let well = matches!(end, End::Exit(0));
            assert!(rank == victim || well, "{ranks} ranks without {victim}: {}", story(&outcome));
        }
    }
}

pub fn loses_somebody() {
    init(2);
    let victim: i32 = std::env::var("VICTIM").unwrap().parse().unwrap();
    let early = std::env::var("EARLY").unwrap() == "1";
    let all = dup(WORLD);
    barrier();
    if rank() == victim {
        if early {
            sleep_ms(200);
        } else {
            // Somewhere in one of the calls below.
            std::thread::spawn(|| {
                sleep_ms(30);
                // SAFETY: ends this process, which is what the test is about.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            });
            loop {
                let mut new = NULL;
                if try_split(all, 0, 0, &mut new) == 0 {
                    free(new);
                }
            }
        }
        // SAFETY: as above.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let began = Instant::now();
    let mut new = NULL;
    let code = loop {
        let code = try_split(all, 0, 0, &mut new);
        if code != 0 {
            break code;
        }
        free(new);
        // Nobody may be left behind for ever; how long it took is the machine's matter.
        assert!(began.elapsed() < Duration::from_secs(60), "the killed rank is not missed");
    };
    let text = last_error();
    fails(code, PEER);
    // Survivors that have left by now count as dead too.
    assert!(text.contains("has died"), "{text}");
    // Again, and on the world: the same answer, at once.
    fails(try_create(0, &mut new), PEER);
    sleep_ms(300);
    std::process::exit(0);
}

/// Requests of any source under way: nothing is freed, so nobody is led to what was.
fn any_source_under_way(young: i32, peer: i32) {
    let busy = |what: &str| {
        fails(try_free(&mut { young }), BUSY);
        assert!(last_error().contains(what), "{what}: {}", last_error());
    };
    let (data, mut got, mut byte) = (vec![8; 100_000], vec![0; 100_000], [0]);
    isend_any(&data, peer, 2);
    busy("index 2");
    irecv_any(&mut got, 2);
    assert_eq!(irecv_any_wait(2).1, data.len());
    isend_any_wait(peer, 2);
    assert_eq!(got, data);
    irecv_any(&mut byte, 3);
    busy("receive on index 3");
    assert!(irecv_any_cancel(3));
    ok(fmpl_irecv_loan_any(3, young));
    busy("receive on index 3");
    assert!(irecv_any_cancel(3));
    // SAFETY: the byte is there until the receive is withdrawn.
    ok(unsafe { fmpl_mcast_irecv(byte.as_mut_ptr().cast(), 1, young) });
    busy("multicast");
    ok(fmpl_mcast_irecv_cancel(young));
    let ticket = multicast(young, 1 << peer);
    busy("multicast with ticket");
    // Nobody has received it before.
    barrier();
    let (mut got, mut size, mut master) = ([0u8; 3000], 0, 0);
    // SAFETY: so many bytes.
    ok(unsafe { fmpl_mcast_recv(got.as_mut_ptr().cast(), got.len(), young, (&mut size).into(), (&mut master).into()) });
    ok(fmpl_mcast_wait(ticket));
    assert_eq!((size, got), (3000, [9; 3000]));
}

/// A multicast of 3000 bytes on a communicator, to the members with these bits.
fn multicast(comm: i32, members: u64) -> u64 {
    let (data, mut ticket) = ([9u8; 3000], 0);
    // SAFETY: so many bytes, which are copied, since they are few; a word of bits for few ranks.
    ok(unsafe { fmpl_mcast(data.as_ptr().cast(), data.len(), &members, comm, (&mut ticket).into()) });
    ticket
}

/// Rank 0 waits, or asks, until a multicast is complete whose member has freed the communicator. Many times: the spool is whole afterwards. `other`:
/// is a member too, comes afterwards, and hears that it was given up.
fn freed_before_a_multicast(other: Option<i32>) {
    on(WORLD);
    let (me, left) = (rank(), dup(WORLD));
    let frees = other.map_or(1, |other| other + 1);
    let bits = other.map_or(0, |other| 1 << other) | 1u64 << frees;
    if me == 0 {
        // Buffered, and of fewer bytes than are sent.
        // SAFETY: a null buffer.
        ok(unsafe { fmpl_comm_sendbuf_set(left, null_mut(), 64 << 10, 0) });
    }
    for round in (0..40).filter(|_| me != frees) {
        if me == 0 {
            let (ticket, mut done) = (multicast(left, bits), 0);
            let code = match round % 2 {
                0 => fmpl_mcast_wait(ticket),
                _ => loop {
                    let code = fmpl_mcast_test(ticket, (&mut done).into());
                    assert_eq!(done, 0, "nobody has it");
                    if code != 0 {
                        break code;
                    }
                },
            };
            fails(code, PEER);
            assert!(last_error().contains(&format!("rank {frees} has freed the communicator")), "{}", last_error());
            if let Some(other) = other {
                send(&[1], other, 2);
                recv(&mut [0], other, 2);
            }
        } else if Some(me) == other {
            let (mut got, mut size, mut master) = ([0u8; 3000], 0, 0);
            recv(&mut [0], 0, 2);
            // SAFETY: so many bytes.
            let code = unsafe {
                fmpl_mcast_recv(got.as_mut_ptr().cast(), got.len(), left, (&mut size).into(), (&mut master).into())
            };
            fails(code, PEER);
            assert!(last_error().contains("was given up"), "{}", last_error());
            send(&[1], 0, 2);
        }
    }
    free(left);
}

pub fn is_wrong() {
    init(4);
    let (me, ranks) = (rank(), size());
    let peer = (me + 1) % ranks;
    let mut new = NULL;
    // Handles that are none.
    for comm in [NULL, 1, 77, 4096, i32::MAX, i32::MIN] {
        fails(try_split(comm, 0, 0, &mut new), COMM);
        on(comm);
        let mut byte = [0];
        fails(try_send(&[1], peer, 0), COMM);
        fails(try_recv(&mut byte, peer, 0), COMM);
        fails(try_isend(&[1], peer, 0), COMM);
        fails(try_irecv(&mut byte, peer, 0), COMM);
        fails(try_isend_wait(peer, 0), COMM);
        fails(try_recv(&mut byte, peer, ANY), COMM);
        fails(try_send(&[1], fmpl::ffi::c::FMPL_PROC_NULL, 0), COMM);
        fails(try_free(&mut { comm }), COMM);
        on(WORLD);
    }
    fails(try_free(&mut { WORLD }), COMM);
    // SAFETY: null pointers, which are what is wrong.
    unsafe {
        use fmpl::ffi::c::*;
        fails(fmpl_comm_create(Out::NULL, 0), ARGUMENT);
        fails(fmpl_comm_split(WORLD, 0, 0, Out::NULL), ARGUMENT);
        fails(fmpl_comm_dup(WORLD, Out::NULL), ARGUMENT);
        fails(fmpl_comm_free(std::ptr::null_mut()), ARGUMENT);
        fails(fmpl_comm_translate(WORLD, 0, WORLD, Out::NULL), ARGUMENT);
        fails(fmpl_comm_translate(WORLD, ranks, WORLD, (&mut new).into()), RANK);
        fails(fmpl_comm_translate(WORLD, -1, WORLD, (&mut new).into()), RANK);
    }

    // A freed one, and what has its place now.
    let old = dup(WORLD);
    free(old);
    fails(try_free(&mut { old }), COMM);
    assert!(last_error().contains("has been freed"), "{}", last_error());
    let young = dup(WORLD);
    assert_ne!(old, young);
    on(old);
    fails(try_send(&[1], peer, 0), COMM);
    assert!(last_error().contains("has been freed"), "{}", last_error());

    // Ranks of the communicator, not of the world.
    on(WORLD);
    let some = create(if me == 0 { -1 } else { 0 });
    if some != NULL {
        on(some);
        fails(try_send(&[1], ranks - 1, 0), RANK);
        fails(try_send(&[1], -1, 0), RANK);
        assert_eq!(rank(), me - 1);
        fails(try_isend_wait(rank(), 1), REQUEST);
        let text = last_error();
        assert!(text.contains(&format!("peer {} of communicator {some}, rank {me} of the world", me - 1)), "{text}");
        free(some);
    }

    // Requests under way: nothing is freed.
    on(young);
    let mut byte = [0];
    irecv(&mut byte, peer, 2);
    fails(try_free(&mut { young }), BUSY);
    assert!(last_error().contains("index 2"), "{}", last_error());
    assert!(cancel(peer, 2));
    irecv(&mut byte, peer, ANY);
    fails(try_free(&mut { young }), BUSY);
    assert!(cancel(peer, ANY));
    let data = vec![7; 100_000];
    isend(&data, peer, 3);
    fails(try_free(&mut { young }), BUSY);
    let mut got = vec![0; 100_000];
    recv(&mut got, (me + ranks - 1) % ranks, 3);
    assert_eq!(got, data);
    isend_wait(peer, 3);
    any_source_under_way(young, peer);
    freed_before_a_multicast(None);
    if ranks > 2 {
        freed_before_a_multicast(Some(1));
    }
    on(young);
    barrier();
    // What was sent before its sender freed is received after; then the sender has left.
    if rank() == 0 {
        send(&[1, 2, 3], 1, 0);
        send(&vec![9; 3000], 1, 0);
        on(WORLD);
        free(young);
        send(&[0], 1, 0);
    } else if rank() == 1 {
        let mut three = [0; 3];
        let mut long = vec![0; 3000];
        on(WORLD);
        recv(&mut three[..1], 0, 0);
        on(young);
        recv(&mut three, 0, 0);
        assert_eq!(three, [1, 2, 3]);
        recv(&mut long, 0, 0);
        assert_eq!(long, vec![9; 3000]);
        fails(try_recv(&mut three, 0, 0), PEER);
        assert!(last_error().contains("has freed the communicator"), "{}", last_error());
        on(WORLD);
        free(young);
    } else {
        on(WORLD);
        free(young);
    }

    // Different calls: an error at everybody, and the next agreement is as good as ever.
    on(WORLD);
    let code = if me == ranks - 1 { try_split(WORLD, 0, 0, &mut new) } else { try_create(0, &mut new) };
    fails(code, ARGUMENT);
    assert!(last_error().contains("fmpl_comm_split") || last_error().contains("fmpl_comm_create"), "{}", last_error());
    let last = dup(WORLD);
    on(last);
    barrier();
    // Modes of a communicator's own.
    // SAFETY: a null buffer.
    ok(unsafe { fmpl::ffi::c::fmpl_comm_sendbuf_set(last, std::ptr::null_mut(), 1000, 0) });
    if rank() == 0 {
        fails(try_send(&vec![1; 5000], 1, 0), SPOOL_FULL);
        on(WORLD);
        send(&vec![1; 5000], 1, 0);
    } else if rank() == 1 {
        on(WORLD);
        recv(&mut vec![1; 5000], 0, 0);
    }
    on(WORLD);
    barrier();
    free(last);
    // Not freed, and that is no harm: with none of its messages left over finalize is content.
    let kept = dup(WORLD);
    on(kept);
    barrier();
    on(WORLD);
    finalize();
    on(kept);
    fails(try_send(&[1], peer, 0), INIT);
}
