use crate::ranks::bytes::{check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, said, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::{End, Nodes};
use std::ptr::{null, null_mut};

/// Each kind of message that nobody receives: finalize of its sender names it.
pub fn leaves_a_message() {
    init(100);
    sendbuf_set(16 << 20, 1);
    let len: usize = std::env::var("LEN").unwrap().parse().unwrap();
    let many: usize = std::env::var("MANY").unwrap().parse().unwrap();
    let me = rank();
    barrier();
    if me == 0 {
        (0..many).for_each(|_| send(&message(len, 1), 1, 33));
        send(&message(len, 1), 1, 34);
    } else {
        recv(&mut vec![0; len], 0, 34);
        (1..many).for_each(|_| recv(&mut vec![0; len], 0, 33));
    }
    let code = try_finalize();
    if me == 0 {
        fails(code, PENDING);
        assert!(last_error().contains("peer 1") && last_error().contains("index 33"), "{}", last_error());
    } else {
        ok(code);
    }
    after_finalize();
}

fn after_finalize() {
    let mut b = [0; 8];
    fails(try_send(&[0; 8], 0, 0), INIT);
    fails(try_recv(&mut b, 0, 0), INIT);
    fails(try_isend(&[0; 8], 0, 0), INIT);
    fails(try_irecv_wait(0, 0), INIT);
    fails(try_finalize(), INIT);
    let (mut n, mut flag) = (0, 1);
    // SAFETY: places of ours, no memory.
    unsafe {
        fails(fmpl_barrier(WORLD), INIT);
        fails(fmpl_comm_rank(WORLD, (&mut n).into()), INIT);
        fails(fmpl_sendbuf_set(null_mut(), 0, 0), INIT);
        fails(fmpl_progress(), INIT);
        assert!(fmpl_alloc(8).is_null());
        ok(fmpl_initialized((&mut flag).into()));
        assert!(flag == 0 && fmpl_wtime() > 0.0 && fmpl_version() == FMPL_VERSION);
    }
}

/// Each kind of request that is never completed.
pub fn leaves_a_request() {
    init(100);
    let kind: u32 = std::env::var("KIND").unwrap().parse().unwrap();
    // Never dropped: the requests are not completed.
    let room: &mut [u8] = Box::leak(vec![0u8; 100_000].into_boxed_slice());
    barrier();
    let (me, guilty) = (rank(), (kind <= 2) as i32);
    if me == guilty {
        match kind {
            0 => irecv(room, 0, 44),
            1 => {
                irecv(&mut room[..8], 0, 44);
                barrier();
            }
            2 => irecv(room, 0, ANY),
            3 => isend(&room[..8], 1, 44),
            _ => isend(room, 1, 44),
        }
    } else if kind == 1 {
        send(&[1; 8], 1, 44);
        barrier();
    } else if kind == 3 {
        recv(&mut room[..8], 0, 44);
    }
    let code = try_finalize();
    if me == guilty {
        fails(code, PENDING);
        let text = last_error();
        assert!(text.contains(&format!("peer {}", 1 - guilty)) && (text.contains("index 44") || kind == 2), "{text}");
    } else if kind == 1 && code != 0 {
        // The request may have its message or not, as long as nobody looks.
        fails(code, PENDING);
    } else {
        ok(code);
    }
    after_finalize();
}

pub fn pending() {
    for settings in ["FMPL_SHM_PATH=auto", "FMPL_SHM_PATH=spool", "FMPL_CMA=off"] {
        for (len, many) in [(8, 1), (900, 1), (9000, 1), (8, 3), (9000, 10)] {
            Job::new(2, "leaves a message").settings(settings).env("LEN", len).env("MANY", many).seconds(20).run();
        }
        for kind in 0..5 {
            Job::new(2, "leaves a request").settings(settings).env("KIND", kind).seconds(20).run();
        }
    }
}

/// The receiver takes everything when the sender is in finalize already.
pub fn receives_last() {
    init(100);
    sendbuf_set(16 << 20, 1);
    if rank() == 0 {
        for index in 0..30 {
            for seq in 0..4 {
                send(&message([8, 700, 9000, 100_000][index as usize % 4], index as u64 * 10 + seq), 1, index);
            }
        }
    } else {
        sleep_ms(100);
        for index in (0..30).rev() {
            for seq in 0..4 {
                let mut buf = vec![0; [8, 700, 9000, 100_000][index as usize % 4]];
                recv(&mut buf, 0, index);
                check(&buf, index as u64 * 10 + seq, "from a sender in finalize");
            }
        }
    }
    finalize();
    after_finalize();
}

/// A process that is in no job ends with the code, of which the system keeps eight bits.
pub fn aborts_outside() {
    fmpl_abort(std::env::var("CODE").unwrap().parse().unwrap());
}

pub fn aborted_outside() {
    for (code, kept) in [(3, 3), (512, 1), (256 + 7, 7)] {
        assert_eq!(Job::new(1, "aborts outside").env("CODE", code).outcome().ends, [End::Exit(kept)], "{code}");
    }
}

/// A job of one, started by nobody.
pub fn is_alone() {
    init(4);
    // Counted.
    init(9);
    assert_eq!((rank(), size()), (0, 1));
    send(&[3; 8], 0, 8);
    let mut b = [0; 8];
    recv(&mut b, 0, 8);
    assert_eq!(b, [3; 8]);
    barrier();
    finalize();
    assert_eq!(rank(), 0);
    finalize();
    after_finalize();
    println!("well");
}

pub fn delivers() {
    for settings in ["FMPL_SHM_PATH=auto", "FMPL_SHM_PATH=spool", "FMPL_CMA=off"] {
        Job::new(2, "receives last").settings(settings).seconds(20).run();
    }
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    for name in ["PMI_FD", "PMI_RANK", "PMI_SIZE"] {
        alone.env_remove(name);
    }
    let output = alone.env("RANKS_BODY", "is alone").output().unwrap();
    assert!(output.status.success() && output.stdout == b"well\n", "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn gives_wrong_arguments() {
    let mut b = [0u8; 64];
    fails(try_send(&b, 0, 0), INIT);
    // SAFETY: null areas.
    fails(unsafe { fmpl_init(null_mut(), null_mut(), -1) }, ARGUMENT);
    // SAFETY: as above.
    fails(unsafe { fmpl_init(null_mut(), null_mut(), i32::MAX) }, ARGUMENT);
    init(10);
    let other = other();
    let still_works = |n: u8| {
        let mut b = [0; 8];
        sendrecv(&[n; 8], other, 9, &mut b, other, 9);
        assert_eq!(b, [n; 8]);
    };
    for index in [-2, 10, 11, 100_000, i32::MAX, i32::MIN] {
        fails(try_send(&b, other, index), INDEX);
        fails(try_recv(&mut b, other, index), INDEX);
        fails(try_isend(&b, other, index), INDEX);
        fails(try_irecv(&mut b, other, index), INDEX);
        fails(try_isend_wait(other, index), INDEX);
        fails(try_irecv_wait(other, index), INDEX);
        assert!(last_error().contains(&index.to_string()), "{}", last_error());
    }
    // Any index is for receives.
    fails(try_send(&b, other, ANY), INDEX);
    fails(try_isend(&b, other, ANY), INDEX);
    still_works(1);
    for rank in [-1, -3, 2, 1000, i32::MAX, i32::MIN] {
        for size in [0, 8, 64] {
            fails(try_send(&b[..size], rank, 0), RANK);
            fails(try_recv(&mut b[..size], rank, 0), RANK);
            fails(try_recv(&mut b[..size], rank, ANY), RANK);
            fails(try_isend(&b[..size], rank, 0), RANK);
            fails(try_irecv(&mut b[..size], rank, 0), RANK);
        }
        fails(try_isend_wait(rank, 0), RANK);
    }
    still_works(2);
    // SAFETY: wrong on purpose; nothing is read or written before the arguments are looked at.
    unsafe {
        for comm in [-1, 1, 77, i32::MIN] {
            fails(fmpl_send(b.as_ptr().cast(), 8, other, 0, comm), COMM);
            fails(fmpl_recv(b.as_mut_ptr().cast(), 8, other, 0, comm), COMM);
            fails(fmpl_recv(b.as_mut_ptr().cast(), 8, other, ANY, comm), COMM);
            fails(fmpl_isend(b.as_ptr().cast(), 8, FMPL_PROC_NULL, 0, comm), COMM);
            fails(fmpl_barrier(comm), COMM);
            fails(fmpl_sendrecv(b.as_ptr().cast(), 8, other, 0, b.as_mut_ptr().cast(), 8, other, 0, comm), COMM);
        }
        for size in [1, 8, 17, 5000, usize::MAX] {
            fails(fmpl_send(null(), size, other, 0, WORLD), ARGUMENT);
            fails(fmpl_recv(null_mut(), size, other, 0, WORLD), ARGUMENT);
            fails(fmpl_recv(null_mut(), size, other, ANY, WORLD), ARGUMENT);
            fails(fmpl_isend(null(), size, other, 0, WORLD), ARGUMENT);
            fails(fmpl_irecv(null_mut(), size, other, 0, WORLD), ARGUMENT);
            fails(fmpl_sendrecv(null(), size, other, 0, b.as_mut_ptr().cast(), 8, other, 0, WORLD), ARGUMENT);
            fails(fmpl_sendrecv(b.as_ptr().cast(), 8, other, 0, null_mut(), size, other, 0, WORLD), ARGUMENT);
        }
        fails(fmpl_send(b.as_ptr().cast(), usize::MAX, other, 0, WORLD), ARGUMENT);
        fails(fmpl_send_list(null(), 2, other, 0, WORLD), ARGUMENT);
        fails(fmpl_send_list(null(), -1, other, 0, WORLD), ARGUMENT);
        fails(fmpl_recv_block(b.as_mut_ptr().cast(), block(usize::MAX, 3, 1), other, 0, WORLD), ARGUMENT);
        fails(fmpl_irecv_test(other, 0, WORLD, Out::NULL), ARGUMENT);
        fails(fmpl_free(b.as_mut_ptr().cast()), ARGUMENT);
        // Nobody: nothing happens.
        ok(fmpl_send(b.as_ptr().cast(), 8, FMPL_PROC_NULL, 0, WORLD));
        ok(fmpl_recv(b.as_mut_ptr().cast(), 8, FMPL_PROC_NULL, 0, WORLD));
        ok(fmpl_irecv_wait(FMPL_PROC_NULL, 0, WORLD));
        // No bytes at no address.
        if rank() == 0 {
            ok(fmpl_send(null(), 0, other, 3, WORLD));
            ok(fmpl_send_list(null(), 0, other, 3, WORLD));
        } else {
            ok(fmpl_recv(null_mut(), 0, other, 3, WORLD));
            ok(fmpl_recv_list(null(), 0, other, 3, WORLD));
        }
    }
    let mut cancelled = 0;
    fails(fmpl_irecv_cancel(other, 0, WORLD, (&mut cancelled).into()), REQUEST);
    fails(fmpl_irecv_cancel(other, ANY, WORLD, (&mut cancelled).into()), REQUEST);
    fails(fmpl_received(other, 7, WORLD, Out::NULL, Out::NULL), REQUEST);
    fails(try_isend_wait(other, 0), REQUEST);
    fails(try_irecv_wait(other, 0), REQUEST);
    fails(try_irecv_wait(other, ANY), REQUEST);
    still_works(3);
    finalize();
}

pub fn wrong_arguments() {
    Job::new(2, "gives wrong arguments").seconds(30).run();
}

/// Ranks give different counts; the smaller holds, and grows by a further init.
pub fn counts_differ() {
    let me = rank_from_launcher();
    init(if me == 0 { 5 } else { 70_000 });
    let other = 1 - me;
    let exchange = |index: i32| {
        let mut b = vec![0; 2000];
        sendrecv(&[index as u8; 2000], other, index, &mut b, other, index);
        assert!(b.iter().all(|b| *b == index as u8));
    };
    exchange(4);
    fails(try_send(&[0; 8], other, 5), INDEX);
    fails(try_recv(&mut [0; 8], other, 5), INDEX);
    barrier();
    if me == 0 {
        init(65_536);
    }
    barrier();
    exchange(4);
    for index in [5, 6, 63, 64, 65, 127, 128, 1000, 4095, 4096, 65_535] {
        exchange(index);
    }
    fails(try_send(&[0; 8], other, 65_536), INDEX);
    // To itself its own count holds.
    let own = if me == 0 { 65_535 } else { 69_999 };
    send(&[9; 8], me, own);
    recv(&mut [0; 8], me, own);
    fails(try_send(&[0; 8], me, own + 1), INDEX);
    if me == 0 {
        finalize();
        exchange_done(other);
    } else {
        exchange_done(other);
    }
    finalize();
}

fn exchange_done(other: i32) {
    sendrecv(&[1; 8], other, 4, &mut [0; 8], other, 4);
}

fn rank_from_launcher() -> i32 {
    std::env::var("PMI_RANK").unwrap().parse().unwrap()
}

pub fn counts() {
    Job::new(2, "counts differ").seconds(30).run();
}

/// The job goes on while somebody throws garbage at its sockets.
pub fn is_visited() {
    init(8);
    let (me, ranks) = (rank(), size());
    println!("{}", std::process::id());
    for round in 0..300u32 {
        let mut b = vec![0; 5000];
        let (to, from) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        sendrecv(&vec![round as u8; 5000], to, 0, &mut b, from, 0);
        assert!(b.iter().all(|b| *b == round as u8));
        if round % 10 == 0 {
            sleep_ms(10);
        }
    }
    finalize();
}

/// The names of abstract sockets on which processes of ours listen.
fn abstract_sockets() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    table
        .lines()
        .filter_map(|l| l.split_whitespace().nth(7))
        .filter(|name| name.starts_with('@') && name.to_lowercase().contains("fmpl"))
        .map(|name| name[1..].to_owned())
        .collect()
}

/// A connection to an abstract socket of packets.
fn knock(name: &str) -> Option<std::os::fd::OwnedFd> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    // SAFETY: a socket of ours; the address is as long as it says.
    unsafe {
        let raw = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
        assert!(raw >= 0);
        let fd = OwnedFd::from_raw_fd(raw);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as _;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as _;
        }
        let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
        (libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len as u32) == 0).then_some(fd)
    }
}

pub fn stranger() {
    use std::os::fd::AsRawFd;
    let running = Job::new(3, "is visited").seconds(30).launcher().start().unwrap();
    let visitor = std::thread::spawn(|| {
        let (mut visits, mut open) = (0, Vec::new());
        for round in 0..60usize {
            for name in abstract_sockets() {
                let mut garbage: Vec<u8> = (0..round * 37).map(|k| (k * 91 + round) as u8).collect();
                if round % 3 == 0 {
                    garbage = b"FMPL".repeat(round);
                }
                let Some(fd) = knock(&name) else { continue };
                visits += 1;
                // SAFETY: bytes of ours. Whether they are taken is not the question.
                unsafe { libc::send(fd.as_raw_fd(), garbage.as_ptr().cast(), garbage.len(), libc::MSG_NOSIGNAL) };
                if round % 4 == 0 {
                    // Some stay to the end.
                    open.push(fd);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        visits
    });
    let outcome = running.wait();
    let visits = visitor.join().unwrap();
    assert_eq!(outcome.code, 0, "{}", story(&outcome));
    assert!(visits > 0, "no socket of the job was found, so nothing was shown");
    assert!((0..3).all(|r| said(&outcome, r).trim().parse::<u32>().is_ok()));
}

/// However little address space there is: init fails with the code for it, and works once there is enough.
pub fn has_few_addresses() {
    for (failures, mib) in (0..64 << 10).step_by(512).enumerate() {
        let limit = libc::rlimit { rlim_cur: (100 + mib) << 20, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        let code = try_init(16);
        if code == 0 {
            assert!(failures > 0);
            finalize();
            return;
        }
        fails(code, fmpl::Code::Memory as i32);
        assert!(last_error().contains("bytes"), "{}", last_error());
    }
    panic!("init never succeeded");
}

pub fn few_addresses() {
    if crate::ranks::short() {
        return println!("  not in short runs: those are of the address sanitizer, which needs terabytes of addresses");
    }
    // Started by nobody, it may try again and again.
    let me = std::env::current_exe().unwrap();
    let out = std::process::Command::new(me).env("RANKS_BODY", "has few addresses").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Four ranks on two pretended nodes: within a node all works, and across it the error names ranks, nodes and what is missing.
pub fn has_no_way() {
    init(4);
    let (me, mut got) = (rank(), [0; 8]);
    let (beside, across) = (me ^ 1, me ^ 2);
    ok(try_isend(&[me as u8; 8], beside, 3));
    recv(&mut got, beside, 3);
    ok(try_isend_wait(beside, 3));
    assert_eq!(got, [beside as u8; 8]);
    let code = try_send(&got, across, 3);
    fails(code, fmpl::Code::Unsupported as i32);
    let text = last_error();
    for part in [
        format!("rank {me} on node {} (host ", me / 2),
        format!("rank {across} on node {} (host ", across / 2),
        format!("FMPL_NODE={}) share no memory", across / 2),
        "no network is used".into(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    fails(try_recv(&mut got, across, 3), fmpl::Code::Unsupported as i32);
    recv_after(beside);
    let (mut peers, mut bytes) = (0, 0);
    ok(fmpl_counter(FMPL_COUNTER_SHM_PEERS, (&mut peers).into()));
    ok(fmpl_counter(FMPL_COUNTER_SHM_BYTES, (&mut bytes).into()));
    // What is shared is shared with the rank beside: its two messages of 8 bytes.
    assert_eq!((peers, bytes), (1, 16));
    assert_ne!(try_finalize(), 0);
}

/// The job goes on after the error.
fn recv_after(peer: i32) {
    let mut got = [0; 8];
    ok(try_isend(&[7; 8], peer, 2));
    recv(&mut got, peer, 2);
    ok(try_isend_wait(peer, 2));
    assert_eq!(got, [7; 8]);
}

pub fn other_node() {
    let job = Job::new(4, "has no way to another node").nodes(Nodes::Blocks(2)).env("FMPL_NETWORK", "none");
    let outcome = job.outcome();
    assert!(outcome.ends.iter().all(|e| matches!(e, End::Exit(0))), "{}", story(&outcome));
}

/// The soft limit of open files, and the hard one.
fn descriptor_limits() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place of ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    (limit.rlim_cur, limit.rlim_max)
}

fn set_descriptor_limits(soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0, "{}", std::io::Error::last_os_error());
}

/// The soft limit is raised for the life of the job only, and a program that sets one of its own meanwhile keeps that.
pub fn raises_its_limit() {
    let hard = descriptor_limits().1;
    assert!(hard > 400);
    set_descriptor_limits(200, hard);
    for own in [None, Some(300)] {
        init(4);
        assert_eq!(descriptor_limits(), (hard, hard), "raised as far as it goes");
        if let Some(own) = own {
            set_descriptor_limits(own, hard);
        }
        let mut got = [0; 8];
        sendrecv(&[7; 8], 1 - rank(), 0, &mut got, 1 - rank(), 0);
        finalize();
        assert_eq!(descriptor_limits(), (own.unwrap_or(200), hard), "as it was, or as the program has set it");
    }
}

pub fn limit_put_back() {
    Job::new(2, "raises its limit").run();
}

/// Rank 1 has no descriptor left when rank 0 first comes to it, and rank 0 none when it first goes to rank 2: each error says what is missing, and
/// where.
pub fn has_no_descriptors() {
    init(4);
    let (me, place) = (rank(), std::path::PathBuf::from(std::env::var_os("MEETING_PLACE").expect("a directory")));
    let mut got = [0; 8];
    let limits = descriptor_limits();
    // All that there may be are in use.
    let hold = || {
        let number = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse::<u64>().ok();
        let highest = std::fs::read_dir("/proc/self/fd").expect("a list").filter_map(number).max().expect("some");
        set_descriptor_limits(highest + 1, limits.1);
        let held: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        held
    };
    let release = |held: Vec<std::fs::File>| {
        drop(held);
        set_descriptor_limits(limits.0, limits.1);
    };
    match me {
        0 => {
            while !place.join("none").exists() {
                sleep_ms(5);
            }
            assert_ne!(try_send(&[1; 8], 1, 0), 0);
            let text = last_error();
            assert!(text.contains("rank 1") && text.contains("out of file descriptors (ulimit -n)"), "{text}");
            std::fs::write(place.join("enough"), "").expect("the word that it is enough");
            let held = hold();
            let code = try_send(&[1; 8], 2, 0);
            let text = last_error();
            release(held);
            std::fs::write(place.join("had"), "").expect("the word that it has had its error");
            assert!(code != 0 && text.contains("open files") && text.contains("rank 2"), "code {code}: {text}");
            send(&[1; 8], 2, 0);
            while try_send(&[1; 8], 1, 0) != 0 {
                sleep_ms(20);
            }
        }
        1 => {
            let file = std::fs::File::create(place.join("new")).expect("a file");
            let held = hold();
            std::fs::rename(place.join("new"), place.join("none")).expect("the word that there are none");
            while !place.join("enough").exists() {
                sleep_ms(5);
            }
            release(held);
            drop(file);
            recv(&mut got, 0, 0);
        }
        _ => {
            // Who receives makes contact, too.
            while !place.join("had").exists() {
                sleep_ms(5);
            }
            recv(&mut got, 0, 0);
        }
    }
    finalize();
}

pub fn no_descriptors() {
    let place = std::env::temp_dir().join(format!("fmpl-descriptors-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    Job::new(3, "has no descriptors").env("MEETING_PLACE", place.display()).run();
    let _ = std::fs::remove_dir_all(&place);
}
