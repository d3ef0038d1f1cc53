//! What goes wrong between nodes. Needs RDMA devices: see `tests/rig`.

use crate::ranks::calls::*;
use crate::ranks::{Job, by_datagrams, by_libfabric, has_devices, in_rig, in_software, link, story, with_links};
use fmpl::launch::embedded::{End, Nodes};

/// The call that has given this code, just now, has failed: its text names the peer and one of these causes.
fn fails(what: &str, code: i32, peer: i32, causes: &[&str]) {
    let text = last_error();
    assert_eq!(code, PEER, "{what}: {text}");
    assert!(
        text.contains(&format!("rank {peer} ")) && causes.iter().any(|cause| text.contains(cause)),
        "{what}: {text}"
    );
}

/// Ranks 0 and 2 on one node, 1 on another. Rank 1 dies while rank 0 waits for it, after its last message.
pub fn dies_on_another_node() {
    init(8);
    let me = rank();
    let mut got = [0; 8];
    if me == 1 {
        send(&[1; 8], 0, 0);
        recv(&mut got, 0, 0);
        send(&[2; 8], 0, 1);
        // What was posted has left by then.
        sleep_ms(200);
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if me == 0 {
        recv(&mut got, 1, 0);
        send(&got, 1, 0);
        fails("receive", try_recv(&mut got, 1, 2), 1, &["does not answer"]);
        fails("send", try_send(&vec![3; 1 << 20], 1, 3), 1, &["does not answer"]);
        fails("again", try_recv(&mut got, 1, 4), 1, &["does not answer"]);
        recv(&mut got, 1, 1);
        assert_eq!(got, [2; 8], "the last message of the dead");
        send(&[9; 8], 2, 0);
    } else {
        recv(&mut got, 0, 0);
        assert_eq!(got, [9; 8]);
    }
    assert_eq!(try_finalize(), PEER, "{}", last_error());
}

pub fn killed_there() {
    if has_devices() {
        let outcome = Job::new(3, "dies on another node").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=10");
        let outcome = outcome.keep_going().outcome();
        let ends = &outcome.ends;
        assert!(matches!((&ends[0], &ends[2]), (End::Exit(0), End::Exit(0))), "{}", story(&outcome));
    }
}

/// Ranks 0 and 2 on one node, 1 on another, which dies before anybody has met it; 2 dies, too. Rank 0 waits for a message of anybody.
pub fn dies_unmet() {
    init(8);
    if rank() != 0 {
        sleep_ms(300);
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let mut got = [0; 8];
    let mut receives = || match try_recv_any(&mut got, 0).0 {
        0 => panic!("a message of nobody"),
        code => (code, last_error()),
    };
    let mut of_the_node = 0;
    for _ in 0..3 {
        let (code, text) = receives();
        assert_eq!(code, PEER, "{text}");
        of_the_node += text.contains("rank 2 has died") as u32;
        assert!(text.contains("rank 1 ") || text.contains("rank 2 has died"), "{text}");
    }
    assert_eq!(of_the_node, 1, "told once");
    assert_eq!(try_finalize(), PEER, "{}", last_error());
}

pub fn killed_unmet() {
    if has_devices() {
        let job = Job::new(3, "dies unmet").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=2").keep_going();
        let outcome = job.outcome();
        assert!(matches!(&outcome.ends[0], End::Exit(0)), "{}", story(&outcome));
    }
}

/// Ranks 0 and 2 on one node, 1 and 3 on another. Rank 1 is stopped at first contact, which has a ticket of no ring; 3 has one, behind which a
/// receive of any source waits. Rank 1 is late for it, not lost: when it goes on, its messages arrive.
pub fn is_late_without_a_ticket() {
    use fmpl::fabric::network::device::Place;
    use fmpl::lane::remote::{Ask, Asked};
    init(8);
    // Who is stopped meets nobody in init any more. (By the launcher: that is no contact.)
    endpoint().launch.fence().expect("all are there");
    let (index, mut got) = (3, [0; 8]);
    match rank() {
        0 => {
            recv(&mut got, 3, 0);
            fails("send", try_send(&[1; 8], 1, 0), 1, &["answer", "reached"]);
            let (code, ..) = try_recv_any(&mut got, index);
            fails("receive of any source", code, 1, &["answer", "reached"]);
            send(&[3; 8], 3, 0);
            let mut tries = 0;
            while try_recv(&mut got, 1, 1) != 0 {
                fails("receive", PEER, 1, &["answer", "reached"]);
                tries += 1;
                assert!(tries < 50, "it never comes back: {}", last_error());
                sleep_ms(200);
            }
            assert_eq!(got, [2; 8]);
        }
        1 => {
            send(&u64::from(std::process::id()).to_ne_bytes(), 3, 0);
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGSTOP) };
            while try_send(&[2; 8], 0, 1) != 0 {
                fails("send", PEER, 0, &["answer", "reached"]);
                sleep_ms(200);
            }
        }
        3 => {
            recv(&mut got, 1, 0);
            let stopped = u64::from_ne_bytes(got) as i32;
            let (lane, _) = endpoint().resolve(fmpl::p2p::COMM_WORLD, 0, 0).expect("a lane");
            let remote = lane.remote().expect("on another node");
            let asked = Asked { what: Ask::Ring, slot: index as usize, seq: 1, at: 0 };
            let [addr, key] = remote.ask_for(asked, || true).flatten().expect("a ring");
            let fabric = endpoint().fabric_here().expect("a network");
            let bounce = fabric.bounce().expect("a buffer");
            bounce.draw(&remote.link, Place { addr, rkey: key as u32 }).expect("a ticket");
            // It has stopped by then.
            sleep_ms(300);
            send(&[0; 8], 0, 0);
            recv(&mut got, 0, 0);
            // SAFETY: no memory.
            assert_eq!(unsafe { libc::kill(stopped, libc::SIGCONT) }, 0);
        }
        _ => {}
    }
    finalize();
}

pub fn late_without_a_ticket() {
    if has_devices() {
        let job = Job::new(4, "is late without a ticket").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=5");
        job.seconds(180).run();
    }
}

/// `fork`, `system` and `popen` between nodes, with memory registered and receives posted.
pub fn forked_there() {
    if has_devices() {
        Job::new(2, "forks").nodes(Nodes::Cyclic(2)).run();
    }
}

/// Names and numbers that there are not are answered with those that there are.
pub fn wrong_wishes() {
    if !has_devices() {
        return;
    }
    let of_verbs: &[_] = &[
        ("FMPL_VERBS_DEVICE=nobody0", "no device nobody0; there are: "),
        ("FMPL_VERBS_DEVICE=rxe0:9", "rxe0 has ports 1 to 1"),
        ("FMPL_VERBS_GID=200", "has gid "),
        ("FMPL_VERBS_MTU=1000", "can 256, 512"),
        ("FMPL_VERBS_PKEY=0x1234", "has 0xffff"),
    ];
    let of_libfabric: &[_] = &[
        ("FMPL_NETWORK=ofi:nobody", "nobody is not there"),
        ("FMPL_TCP_CONGESTION=nobody", "the system lets this process have: "),
    ];
    let of_tcp: &[_] = &[
        ("FMPL_NETWORK=tcp:nobody", "no interface or address nobody that is up; there are: "),
        ("FMPL_TCP_CONGESTION=nobody", "the system lets this process have: "),
    ];
    let of_udp: &[_] = &[
        ("FMPL_NETWORK=udp:nobody", "no interface or address nobody that is up; there are: "),
        ("FMPL_WEATHER=loss=200", "loss=2,double=1"),
    ];
    let of_this = match () {
        () if by_libfabric() => of_libfabric,
        () if by_datagrams() => of_udp,
        () if in_software() => of_tcp,
        () => of_verbs,
    };
    for (wish, answer) in of_this {
        let outcome = Job::new(2, "forks").nodes(Nodes::Cyclic(2)).settings(wish).outcome();
        let text = story(&outcome);
        assert!(outcome.code != 0 && text.contains(wish) && text.contains(answer), "{wish}: {text}");
    }
}

/// Ranks 0 and 2 on one node, 1 on another, whose link goes down while both ends wait.
pub fn loses_its_link() {
    init(8);
    let me = rank();
    let mut got = [0; 8];
    // Over TCP what is lost is sent again, for many minutes: it is silence that ends the connection.
    let lost = |code: i32, peer: i32| {
        fails(
            "link",
            code,
            peer,
            &["does not answer", "is out of reach", "there is no way to", "has given the connection up"],
        );
    };
    match me {
        0 => {
            recv(&mut got, 1, 0);
            let memory = vec![4; 128 << 10];
            link(1, "down");
            // Its receive is posted, so the device has it: who waits for the request hears what has become of it.
            isend(&memory, 1, 3);
            lost(try_isend_wait(1, 3), 1);
            lost(try_recv(&mut got, 1, 1), 1);
            lost(try_send(&vec![3; 1 << 20], 1, 2), 1);
            // Those who need not go there are not concerned.
            send(&[7; 8], 2, 0);
            recv(&mut got, 2, 0);
            assert_eq!(got, [8; 8]);
        }
        1 => {
            let mut memory = vec![0; 128 << 10];
            irecv(&mut memory, 0, 3);
            send(&[1; 8], 0, 0);
            lost(try_irecv_wait(0, 3), 0);
            lost(try_recv(&mut got, 0, 1), 0);
        }
        _ => {
            recv(&mut got, 0, 0);
            assert_eq!(got, [7; 8]);
            send(&[8; 8], 0, 0);
        }
    }
    // What others make of this rank's end is no matter here: an error or none, but an end.
    try_finalize();
    if me == 0 {
        link(1, "up");
    }
}

pub fn link_lost() {
    with_links(|| {
        let job = Job::new(3, "loses its link").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=3");
        let outcome = job.keep_going().outcome();
        assert!(outcome.ends.iter().all(|e| matches!(e, End::Exit(0))), "{}", story(&outcome));
    });
}

/// Ranks 0 and 2 on one node, 1 on another, whose link goes down in the midst of messages and comes back before anybody has lost patience.
pub fn has_a_loose_cable() {
    init(8);
    let (me, n) = (rank(), 256 << 10);
    let (mut got, mut bytes) = ([0; 8], vec![0; n]);
    for round in 0..20 {
        let sent = vec![round; n];
        match me {
            0 => {
                if round % 10 == 5 {
                    link(1, "down");
                    // Nobody else is held up.
                    send(&[round; 8], 2, 0);
                    recv(&mut got, 2, 0);
                    sleep_ms(1000);
                    link(1, "up");
                }
                send(&sent, 1, 1);
                recv(&mut bytes, 1, 1);
                assert_eq!(bytes, sent);
            }
            1 => {
                recv(&mut bytes, 0, 1);
                send(&bytes, 0, 1);
            }
            _ if round % 10 == 5 => {
                recv(&mut got, 0, 0);
                send(&got, 0, 0);
            }
            _ => {}
        }
    }
    finalize();
}

pub fn link_back() {
    // A device gives up before that.
    if in_software() {
        with_links(|| _ = Job::new(3, "has a loose cable").nodes(Nodes::Cyclic(2)).run());
    }
}

/// One message back and forth.
pub fn says_a_word() {
    init(8);
    let mut got = [0; 8];
    if rank() == 0 {
        send(&[1; 8], 1, 0);
        recv(&mut got, 1, 0);
    } else {
        recv(&mut got, 0, 0);
        send(&got, 0, 0);
    }
    assert_eq!(got, [1; 8]);
    finalize();
}

/// The first contact, in init, finds the other's link silent, and nobody who knows the address: it is made when the link is back.
pub fn address_unknown() {
    with_links(|| {
        // Before anybody of the job can say a word: a connection that is there would be given up.
        link(1, "loss 100%");
        if in_rig() {
            let forget = std::process::Command::new("ip").args(["neigh", "flush", "all"]).status();
            assert!(forget.is_ok_and(|s| s.success()), "ip neigh flush all");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Longer than the kernel goes on asking.
                sleep_ms(6000);
                link(1, "clear");
            });
            Job::new(2, "says a word").nodes(Nodes::Cyclic(2)).run();
        });
    });
}

/// A node that cannot be reached is an error of init, which names it and the cause.
pub fn no_way_there() {
    with_links(|| {
        // A port of RDMA whose link is down would not be chosen.
        let (cut, mended) = if in_software() { ("down", "up") } else { ("loss 100%", "clear") };
        link(1, cut);
        let job = Job::new(2, "says a word").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=3");
        let text = story(&job.outcome());
        link(1, mended);
        let named = |from: u32, to: u32| {
            text.contains(&format!("cannot reach rank {to} on node {to}"))
                && text.contains(&format!("rank {from} on node {from}"))
        };
        assert!(named(0, 1) || named(1, 0), "{text}");
        assert!(text.contains("no answer over ") && text.contains("within 3.0 s"), "{text}");
        assert!(!in_software() || text.contains("cannot be reached: "), "{text}");
    });
}

/// Rank 1 is stopped for a while, so that nobody posts the receives that rank 0's calls use up: rank 0 is made to wait and nothing is lost.
pub fn stops_on_another_node() {
    init(64);
    const ROUNDS: usize = 1200;
    let mut got = [0u8; 8];
    if rank() == 1 {
        recv(&mut got, 0, 0);
        send(&std::process::id().to_ne_bytes(), 0, 1);
        for k in 0..ROUNDS {
            recv(&mut got, 0, 2);
            assert_eq!(got, k.to_ne_bytes());
        }
        send(&got, 0, 3);
    } else {
        let mut pid = [0u8; 4];
        send(&[0; 8], 1, 0);
        recv(&mut pid, 1, 1);
        let pid = i32::from_ne_bytes(pid);
        // SAFETY: a process of this job.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
        let go_on = |ms| {
            sleep_ms(ms);
            // SAFETY: as above.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
        };
        let send_all = || {
            for k in 0..ROUNDS {
                isend(&k.to_ne_bytes(), 1, 2);
                isend_wait(1, 2);
            }
        };
        if in_software() {
            // A network in software does nothing in a process that is stopped, so these wait, for longer than silence is taken for an answer.
            std::thread::scope(|scope| {
                scope.spawn(|| go_on(8000));
                send_all();
            });
        } else {
            send_all();
            go_on(3000);
        }
        recv(&mut got, 1, 3);
        assert_eq!(got, (ROUNDS - 1).to_ne_bytes());
    }
    finalize();
}

pub fn stopped_there() {
    if has_devices() {
        Job::new(2, "stops on another node").nodes(Nodes::Cyclic(2)).run();
    }
}

/// Ranks 0 and 2 on one node, 1 on another. `harm` is done by rank 0 to its connection with rank 1, of which both hear what is the matter; rank 2
/// is not concerned. `mine` and `theirs`: what ranks 0 and 1 may hear.
fn hurt(harm: impl Fn(&fmpl::fabric::network::link::Link), mine: &[&str], theirs: &[&str]) {
    init(8);
    let mut got = [0; 8];
    match rank() {
        0 => {
            send(&[1; 8], 1, 0);
            recv(&mut got, 1, 0);
            harm(&endpoint().link_to(1).expect("a connection"));
            fails("receive", try_recv(&mut got, 1, 1), 1, mine);
            fails("send", try_send(&[3; 8], 1, 2), 1, mine);
            fails("long send", try_send(&vec![3; 1 << 20], 1, 3), 1, mine);
            send(&[7; 8], 2, 0);
            recv(&mut got, 2, 0);
            assert_eq!(got, [8; 8]);
        }
        1 => {
            recv(&mut got, 0, 0);
            send(&[2; 8], 0, 0);
            fails("receive", try_recv(&mut got, 0, 1), 0, theirs);
        }
        _ => {
            recv(&mut got, 0, 0);
            assert_eq!(got, [7; 8]);
            send(&[8; 8], 0, 0);
        }
    }
    // Whose connection is gone cannot finalize well.
    let code = try_finalize();
    assert!(code == PEER || rank() == 2, "{}", last_error());
}

fn endpoint() -> &'static fmpl::p2p::endpoint::Endpoint {
    fmpl::p2p::endpoint::endpoint().expect("in a job")
}

pub fn uses_a_wrong_key() {
    let write = |link: &fmpl::fabric::network::link::Link| {
        let place = fmpl::fabric::network::Place { addr: 1 << 40, rkey: 0x5a5a_5a5a };
        let posted = link.write(place, 0, |record| record.put(&[1]));
        posted.expect("it is posted; the peer's device refuses it");
    };
    // The device that refuses puts its own end into the error state, and the word of the other end may come before that is noticed.
    if by_libfabric() {
        // Over sockets it hangs up, which is all that is known; the provider may tell that its end cannot go on.
        return hurt(
            write,
            &["does not answer", "did not answer", "here cannot go on"],
            &["does not answer", "did not answer", "no answer over it", "here cannot go on"],
        );
    }
    hurt(write, &["refused a key"], &["here is in the error state", "a request of its was refused here"]);
}

pub fn breaks_its_queue_pair() {
    // Rank 0's device answers nothing any more: rank 1 hears why, unless the datagram that says so was lost.
    let mine = ["here is in the error state"];
    hurt(|link| link.break_off(), &mine, &["its queue pair was in the error state", "does not answer"]);
}

pub fn overruns_its_queue() {
    let overrun = |link: &fmpl::fabric::network::link::Link| {
        link.shorten_queue(2).expect("a device that makes queues shorter");
        let pages = link.pages();
        let place = link.place_of(&pages[0]).expect("a page that the peer has told of");
        for _ in 0..64 {
            // SAFETY: nothing is written, and no memory of this side is named. After the overrun nothing more is taken.
            let _ = unsafe { link.bulk(true, fmpl::fabric::network::link::Last::Yes, &[], place) };
        }
    };
    hurt(
        overrun,
        &["completion queue of its connection here was overrun"],
        &["its device has failed", "does not answer"],
    );
}

/// Rank 1 is stopped for good, and rank 0 goes on calling its thread until no receive is left there.
pub fn takes_nothing_more() {
    init(8);
    let (me, mut got) = (rank(), [0; 8]);
    match me {
        0 => {
            let mut pid = [0u8; 4];
            send(&[0; 8], 1, 0);
            recv(&mut pid, 1, 1);
            let pid = i32::from_ne_bytes(pid);
            // SAFETY: a process of this job.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
            let lane = endpoint().lane(1).expect("a lane");
            let remote = lane.remote().expect("on another node");
            // More than there are receives, and than the queue pair has room for.
            (0..900).for_each(|_| remote.call(fmpl::lane::remote::Call::Marks));
            // Without a connection nobody can tell whether it is stopped or gone.
            let silent = if by_datagrams() { "does not answer" } else { "takes nothing more" };
            fails("receive", try_recv(&mut got, 1, 2), 1, &["takes nothing more", silent]);
            send(&[7; 8], 2, 0);
            recv(&mut got, 2, 0);
            assert_eq!(got, [8; 8]);
            // SAFETY: as above.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        }
        1 => {
            recv(&mut got, 0, 0);
            send(&std::process::id().to_ne_bytes(), 0, 1);
            try_recv(&mut got, 0, 2);
        }
        _ => {
            recv(&mut got, 0, 0);
            send(&[8; 8], 0, 0);
        }
    }
    try_finalize();
}

pub fn connections_break() {
    if !has_devices() {
        return;
    }
    // Which end notices first is chance.
    let rounds = if crate::ranks::long() { 20 } else { 1 };
    let by_chance = [("uses a wrong key", false), ("breaks its queue pair", false)].repeat(rounds);
    for (body, dies) in by_chance.into_iter().chain([("overruns its queue", false), ("takes nothing more", true)]) {
        if in_software() && body == "overruns its queue" {
            continue;
        }
        let since = std::time::Instant::now();
        let outcome =
            Job::new(3, body).nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=4").keep_going().outcome();
        let well = |(rank, end): (usize, &End)| matches!(end, End::Exit(0)) || dies && rank == 1;
        assert!(outcome.ends.iter().enumerate().all(well), "{body}: {}", story(&outcome));
        println!("  {body}: {:.1} s", since.elapsed().as_secs_f64());
    }
}

/// Rank 1's link is silent when a connection with it is made for the first message: that is an error which names it, and when the link is
/// back rank 0 tries again with success.
pub fn is_late_on_another_node() {
    init(8);
    let mut got = [0; 8];
    if rank() == 0 {
        drop(endpoint().link(1).expect("first contact"));
        link(1, "loss 100%");
        fails("send", try_send(&[1; 8], 1, 0), 1, &["did not answer over"]);
        fails("receive", try_recv(&mut got, 1, 1), 1, &["did not answer over"]);
        link(1, "clear");
        while try_send(&[2; 8], 1, 0) != 0 {
            fails("send", PEER, 1, &["did not answer over"]);
            sleep_ms(200);
        }
        recv(&mut got, 1, 1);
        assert_eq!(got, [2; 8], "what was sent with success, and nothing else");
    } else {
        // Until the other end has had its errors.
        sleep_ms(8000);
        while try_recv(&mut got, 0, 0) != 0 {
            fails("receive", PEER, 0, &["did not answer over"]);
            sleep_ms(200);
        }
        send(&got, 0, 1);
    }
    finalize();
}

/// Rank 0 posts a receive to a rank that is late, and has not waited for it when the link is back: the posting is said then.
pub fn hears_of_a_posting_late() {
    init(8);
    let (len, index) = (32 << 20, 5);
    if rank() == 0 {
        endpoint().resolve(fmpl::p2p::COMM_WORLD, 1, index).expect("first contact");
        let mut got = vec![0; len];
        link(1, "loss 100%");
        assert_eq!(try_irecv(&mut got, 1, index), 0, "{}", last_error());
        // Longer than the peer counts as late after an attempt.
        sleep_ms(3000);
        link(1, "clear");
        irecv_wait(1, index);
        assert!(got.iter().all(|b| *b == 7));
    } else {
        sleep_ms(8000);
        let sent = vec![7; len];
        while try_send(&sent, 0, index) != 0 {
            fails("send", PEER, 0, &["did not answer over"]);
            sleep_ms(200);
        }
    }
    finalize();
}

pub fn late_there() {
    with_links(|| {
        let job = |body: &str| Job::new(2, body).nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=2");
        job("is late on another node").run();
        // TCP is back only after as long again as it was away: the wait is over by then.
        if !in_software() {
            job("hears of a posting late").run();
        }
    });
}

/// Ranks 0 to 3 are on one node, 4 to 7 on another. Each of these damages another record of its partner there, which hears of it, and of which;
/// all four go on with each other.
pub fn damages_a_record_there() {
    init(8);
    let (me, mut got) = (rank(), [0; 8]);
    let partner = (me + 4) % 8;
    let long = vec![3; 1 << 20];
    if me >= 4 {
        use fmpl::lane::record::{Kind, Land, PostingKind};
        use fmpl::lane::remote::{ChainStart, RemotePosting};
        recv(&mut got, partner, 0);
        let (lane, slot) = endpoint().resolve(fmpl::p2p::COMM_WORLD, partner, 1).expect("a lane");
        let remote = lane.remote().expect("on another node");
        let land = |kind, len| Land::new(1, 0, kind, len, lane.epoch);
        let written = match me - 4 {
            0 => remote.land(slot, land(Kind::Pull, 8), &[8]),
            1 => remote.land(slot, land(Kind::Spooled, 24), &[8, 8, 0]),
            2 => remote
                .begin_chain(slot, ChainStart { first: 1, addr: u64::MAX - 63, key: 7, generation: 1, size: 4096 })
                .and_then(|()| remote.tail(slot, 1)),
            // A key of no memory, behind the hints.
            _ => {
                let meta = PostingKind::Contiguous as u64 | 4 << 8 | 7 << 32;
                remote.post(slot, 1, &RemotePosting { addr: u64::MAX - 63, cap: 1 << 20, meta, shape: [0; 3] })
            }
        };
        written.expect("it is written");
        // Behind it.
        send(&[1; 8], partner, 0);
        let told = ["what this process has written there is damaged", "does not answer", "in the error state"];
        fails("receive", try_recv(&mut got, partner, 2), partner, &told);
    } else {
        send(&got, partner, 0);
        recv(&mut got, partner, 0);
        let record = ["a landing", "a landing", "where a chain begins", "a posting"][me as usize];
        let code = if me == 3 { try_send(&long, partner, 1) } else { try_recv(&mut got, partner, 1) };
        fails("the damaged record", code, partner, &[&format!("has damaged {record}")]);
        fails("again", try_recv(&mut got, partner, 3), partner, &[&format!("has damaged {record}")]);
        isend(&long, (me + 1) % 4, 4);
        let mut came = vec![0; 1 << 20];
        recv(&mut came, (me + 3) % 4, 4);
        isend_wait((me + 1) % 4, 4);
        assert!(came == long, "a message of one that was not concerned");
    }
    assert_eq!(try_finalize(), PEER, "{}", last_error());
}

pub fn damaged_there() {
    if has_devices() {
        let job = Job::new(8, "damages a record on another node").nodes(Nodes::Blocks(2)).keep_going();
        let outcome = job.settings("FMPL_ATTACH_TIMEOUT=30").outcome();
        assert!(outcome.ends.iter().all(|e| matches!(e, End::Exit(0))), "{}", story(&outcome));
    }
}

/// The ranks of even numbers are in one kernel, those of odd numbers in another, which ends all of a sudden: `tests/rig/across`.
pub fn loses_a_kernel() {
    init(8);
    let (me, mut got) = (rank(), [0; 8]);
    match me {
        1 => {
            send(&[1; 8], 0, 0);
            recv(&mut got, 0, 0);
            std::fs::write("/proc/sysrq-trigger", "b").expect("the right to end the kernel");
            sleep_ms(60_000);
        }
        3 => {
            recv(&mut got, 0, 0);
        }
        _ => {
            if me == 0 {
                recv(&mut got, 1, 0);
                send(&[2; 8], 1, 0);
            }
            let since = std::time::Instant::now();
            for peer in [1, 3] {
                fails("receive", try_recv(&mut got, peer, 1), peer, &["not answer"]);
                println!("after {:.1} s: {}", since.elapsed().as_secs_f64(), last_error());
            }
            // The rest of the job goes on.
            let beside = 2 - me;
            ok(try_isend(&[me as u8; 8], beside, 4));
            recv(&mut got, beside, 4);
            ok(try_isend_wait(beside, 4));
            assert_eq!(got, [beside as u8; 8]);
            assert_eq!(try_finalize(), PEER, "{}", last_error());
        }
    }
}
