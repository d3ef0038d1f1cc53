use crate::ranks::bytes::{check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, said, story};
use fmpl::launch::embedded::Nodes;

fn stop_myself() {
    // SAFETY: no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Waits until a process is stopped, then says so.
fn until_stopped(pid: i32) {
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| s[s.rfind(')').unwrap()..].starts_with(") T"))
    {
        sleep_ms(1);
    }
}

fn resume(pid: i32) {
    // SAFETY: no memory.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
}

/// Both have met when this returns: the acquaintance of who is stopped cannot be made.
fn meet(other: i32) {
    if other == 1 {
        send(&[1], other, 9);
        recv(&mut [0], other, 9);
    } else {
        recv(&mut [0], other, 9);
        send(&[1], other, 9);
    }
}

fn tell_pid(to: i32) {
    send(&std::process::id().to_le_bytes(), to, 7);
}

fn hear_pid(from: i32) -> i32 {
    let mut b = [0; 4];
    recv(&mut b, from, 7);
    i32::from_le_bytes(b)
}

pub fn stops_as_receiver() {
    init(16);
    let mode_ms: i32 = std::env::var("MODE").unwrap().parse().unwrap();
    sendbuf_set(16 << 20, mode_ms);
    meet(1 - rank());
    if rank() == 0 {
        let pid = hear_pid(1);
        until_stopped(pid);
        let data = message(1 << 20, 5);
        send(&data, 1, 0);
        send(&data[..100], 1, 1);
        drop(data);
        resume(pid);
    } else {
        let (mut buf, mut short) = (vec![0; 1 << 20], [0; 100]);
        irecv(&mut buf, 0, 0);
        irecv(&mut short, 0, 1);
        tell_pid(0);
        stop_myself();
        irecv_wait(0, 0);
        irecv_wait(0, 1);
        check(&buf, 5, "sent while the receiver was stopped");
        check(&short, 5, "short, sent while the receiver was stopped");
    }
    barrier();
    finalize();
}

pub fn receiver_stopped() {
    for settings in
        ["FMPL_SHM_PATH=auto", "FMPL_SHM_PATH=cma", "FMPL_SHM_PATH=coop", "FMPL_CMA=off", "FMPL_SHM_PATH=spool"]
    {
        for mode in [10, -1, 0] {
            Job::new(2, "stops as receiver").settings(settings).env("MODE", mode).seconds(20).run();
        }
    }
}

pub fn stops_as_sender() {
    init(16);
    meet(1 - rank());
    if rank() == 0 {
        sendbuf_set(16 << 20, 1);
        for (index, len) in [(0, 8), (1, 900), (2, 5000), (3, 1 << 20)] {
            send(&message(len, 6), 1, index);
            send(&message(len, 7), 1, index);
        }
        // An isend is not one that has returned, but an offer needs no sender either.
        tell_pid(1);
        stop_myself();
    } else {
        let pid = hear_pid(0);
        until_stopped(pid);
        for (index, len) in [(3, 1 << 20), (2, 5000), (1, 900), (0, 8)] {
            let mut buf = vec![0; len];
            recv(&mut buf, 0, index);
            check(&buf, 6, "the sender is stopped");
        }
        // The second ones, as they come.
        for _ in 0..4 {
            let mut buf = vec![0; 1 << 20];
            recv(&mut buf, 0, ANY);
            let (len, index) = received(0, ANY);
            assert_eq!(len, [8, 900, 5000, 1 << 20][index as usize]);
            check(&buf[..len], 7, "the sender is stopped");
        }
        resume(pid);
    }
    barrier();
    finalize();
}

pub fn sender_stopped() {
    for settings in
        ["FMPL_SHM_PATH=auto", "FMPL_CMA=off", "FMPL_SHM_PATH=spool", "FMPL_SHM_PATH=ring", "FMPL_SHM_PATH=coop"]
    {
        Job::new(2, "stops as sender").settings(settings).seconds(20).run();
    }
}

pub fn forks() {
    init(16);
    let me = rank();
    barrier();
    for round in 0..5u8 {
        // What the parent has posted stays the parent's: a device or another process writes there while a child has the same pages.
        let mut long = vec![0u8; 300_000];
        irecv(&mut long, 1 - me, 2);
        // SAFETY: the child calls only what is safe after fork in a process of one thread, and leaves by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let (mut b, mut new) = ([0; 8], 0);
            let codes = [
                try_send(&[1; 8], 1 - me, 0),
                try_recv(&mut b, 1 - me, 0),
                try_isend(&[1; 8], 1 - me, 0),
                try_irecv(&mut b, 1 - me, 0),
                try_isend_wait(1 - me, 0),
                try_irecv_wait(1 - me, 0),
                try_send_any(&[1; 8], 1 - me, 0),
                try_irecv_any(&mut b, 0),
                try_create(0, &mut new),
                try_finalize(),
                fmpl::ffi::c::fmpl_barrier(WORLD),
                // SAFETY: null areas.
                unsafe { fmpl::ffi::c::fmpl_init(std::ptr::null_mut(), std::ptr::null_mut(), 4) },
            ];
            let mut flag = 1;
            let initialized = fmpl::ffi::c::fmpl_initialized((&mut flag).into());
            let well = codes.iter().all(|c| *c == FORK) && initialized == 0 && flag == 0;
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(if well { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: a place of ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "the child got something else than FMPL_ERR_FORK"
        );
        // SAFETY: constant strings.
        unsafe {
            assert_eq!(libc::system(c"exit 3".as_ptr()), 3 << 8);
            let pipe = libc::popen(c"echo 42".as_ptr(), c"r".as_ptr());
            let mut text = [0u8; 8];
            assert_eq!(libc::fread(text.as_mut_ptr().cast(), 1, 8, pipe), 3);
            assert_eq!((&text[..3], libc::pclose(pipe)), (&b"42\n"[..], 0));
        }
        let mut b = [0; 3000];
        sendrecv(&[round; 3000], 1 - me, 1, &mut b, 1 - me, 1);
        assert!(b.iter().all(|b| *b == round));
        let out = vec![round + 100; 300_000];
        isend(&out, 1 - me, 2);
        irecv_wait(1 - me, 2);
        isend_wait(1 - me, 2);
        assert!(long.iter().all(|b| *b == round + 100), "what was posted before the fork");
    }
    finalize();
}

pub fn forked() {
    Job::new(2, "forks").run();
}

/// Where rank 1 says who it is, without meeting rank 0.
fn note() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("fmpl-faults-child-{}", std::os::unix::process::parent_id()))
}

/// The process that has said so, and executes another program by now.
fn executed() -> i32 {
    loop {
        let pid = std::fs::read_to_string(note()).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok());
        if let Some(pid) = pid
            && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
        {
            std::fs::remove_file(note()).unwrap();
            return pid;
        }
        sleep_ms(1);
    }
}

/// Rank 1 ends, and has a forked child that lives on, with all its descriptors.
pub fn leaves_a_child() {
    init(8);
    let mut got = [0; 8];
    let ends = std::env::var("ENDS").unwrap();
    let is_met = ends != "executes before they meet";
    if rank() == 0 {
        let pid = if is_met { hear_pid(1) } else { executed() };
        if is_met {
            send(&got, 1, 0);
        }
        fails(try_recv(&mut got, 1, 1), PEER);
        println!("told");
        fails(try_finalize(), PEER);
        // SAFETY: no memory; nobody has waited for it, so the number is still its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        return;
    }
    if is_met {
        tell_pid(0);
    }
    // SAFETY: the child makes one system call, until it is killed with the job.
    while unsafe { libc::fork() } == 0 {
        // SAFETY: as above.
        unsafe { libc::pause() };
    }
    if is_met {
        recv(&mut got, 0, 0);
    } else {
        std::fs::write(note(), format!("{}\n", std::process::id())).unwrap();
    }
    if ends == "killed" {
        // SAFETY: no memory.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    use std::os::unix::process::CommandExt;
    panic!("{}", std::process::Command::new("sleep").arg("1000").exec());
}

pub fn child_left() {
    let unmet = (1, "executes before they meet");
    for (nodes, ends) in [(1, "killed"), (1, "executes"), unmet, (2, "killed"), (2, "executes")] {
        let job =
            Job::new(2, "leaves a child").settings("FMPL_NETWORK=tcp").env("ENDS", ends).nodes(Nodes::Blocks(nodes));
        let outcome = job.seconds(40).keep_going().outcome();
        let told = said(&outcome, 0).contains("told");
        assert!(told, "{nodes} nodes, {ends}: {}\n{}", story(&outcome), complaints(&outcome));
    }
}
