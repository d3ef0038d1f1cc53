use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, said, story};
use fmpl::launch::embedded::{End, Nodes};

/// Everybody receives from the next one, and nobody sends.
pub fn waits_in_a_cycle() {
    init(8);
    let (me, ranks) = (rank(), size());
    barrier();
    if std::env::var_os("STAGGER").is_some() {
        sleep_ms(100 * me as u64);
    }
    let code = try_recv(&mut [0; 8], (me + 1) % ranks, 3);
    println!("{code}");
    if code != 0 {
        assert!(last_error().contains("wait"), "{}", last_error());
        // The job is intact.
        sendrecv(&[1; 8], (me + 1) % ranks, 4, &mut [0; 8], (me + ranks - 1) % ranks, 4);
        finalize();
    }
}

/// Rank 0 waits long before the cycle closes.
pub fn waits_in_a_late_cycle() {
    init(8);
    let me = rank();
    barrier();
    if me == 1 {
        sleep_ms(1200);
    }
    let code = try_recv(&mut [0; 8], 1 - me, 3);
    println!("{code}");
}

/// Rank 1 waits for 0, which computes and answers late.
pub fn waits_long() {
    waits_for_long();
}

fn waits_for_long() -> i32 {
    init(8);
    let me = rank();
    barrier();
    if me == 0 {
        sleep_ms(1500);
        send(&[1; 8], 1, 5);
    } else {
        recv(&mut [0; 8], 0, 5);
    }
    finalize();
    me
}

fn deadlocked(ranks: usize, body: &str, settings: &str) {
    let outcome = Job::new(ranks, body).settings(settings).env("FMPL_STALL", "0.4").seconds(6).outcome();
    let text = complaints(&outcome);
    assert!(outcome.timed_out, "it waits on: {}", story(&outcome));
    assert_eq!(text.matches("deadlock").count(), 1, "{ranks} {body} {settings}: {text}");
    let line = text.lines().find(|l| l.contains("deadlock")).unwrap();
    assert!((0..ranks).all(|r| line.contains(&r.to_string())), "{line}");
    assert!(text.contains("rank 0: ") && text.contains("recv(src 1, index 3)"), "{text}");
}

/// Rank 1 has gone before rank 0, on another node, says the first word to it.
pub fn meets_one_that_is_gone() {
    init(1);
    if rank() == 0 {
        sleep_ms(1500);
        assert_eq!(try_send(&[1; 8], 1, 0), PEER, "{}", last_error());
    }
    std::process::exit(0);
}

/// A first contact between nodes that takes long says so before it is given up.
pub fn first_contact() {
    let job = Job::new(2, "meets one that is gone").nodes(Nodes::Cyclic(2)).keep_going();
    let outcome = job.settings("FMPL_NETWORK=tcp FMPL_STALL=0.4 FMPL_ATTACH_TIMEOUT=3").outcome();
    let text = complaints(&outcome);
    assert_eq!(outcome.ends[0], End::Exit(0), "{}", story(&outcome));
    let lines: Vec<_> =
        text.lines().filter(|line| line.contains("s in the first contact with rank 1 over tcp")).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("fmpl: stalled: rank 0: "), "{text}");
}

/// All at once: these jobs wait, and nothing else.
pub fn cycles() {
    std::thread::scope(|threads| {
        for (ranks, body, settings) in [
            (2, "waits in a cycle", "FMPL_WAIT=adaptive"),
            (2, "waits in a cycle", "FMPL_WAIT=block STAGGER=1"),
            (2, "waits in a late cycle", ""),
            (3, "waits in a cycle", ""),
            (3, "waits in a cycle", "STAGGER=1"),
        ] {
            threads.spawn(move || deadlocked(ranks, body, settings));
        }
    });
    deadlocked(2, "waits in a cycle", "FMPL_WAIT=spin");
}

pub fn aborted() {
    std::thread::scope(|threads| {
        for (ranks, settings) in [(2, ""), (3, "STAGGER=1"), (2, "FMPL_WAIT=spin"), (3, "FMPL_WAIT=block")] {
            threads.spawn(move || {
                let outcome = Job::new(ranks, "waits in a cycle")
                    .settings(settings)
                    .env("FMPL_DEADLOCK", "abort")
                    .env("FMPL_STALL", "0.4")
                    .seconds(20)
                    .run();
                for r in 0..ranks {
                    assert_eq!(
                        said(&outcome, r).trim(),
                        DEADLOCK.to_string(),
                        "{ranks} {settings}: {}",
                        story(&outcome)
                    );
                }
                assert_eq!(complaints(&outcome).matches("deadlock:").count(), 1, "{}", complaints(&outcome));
            });
        }
    });
}

pub fn long_wait() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block", "FMPL_WAIT=spin"] {
        let outcome = Job::new(2, "waits long").settings(settings).env("FMPL_STALL", "0.4").run();
        let text = complaints(&outcome);
        assert!(text.contains("rank 1: ") && text.contains("recv(src 0, index 5)"), "{settings}: {text}");
        assert!(text.contains("rank 0 waits for nobody") && !text.contains("deadlock"), "{settings}: {text}");
    }
}

/// Both send first, wait for a receive for longer than a deadlock takes to be named, and buffer then.
pub fn waits_until_it_buffers() {
    init(8);
    let other = other();
    mode(4000);
    barrier();
    let (data, mut got) = (vec![1; 1 << 20], vec![0; 1 << 20]);
    send(&data, other, 1);
    recv(&mut got, other, 1);
    assert!(got == data);
    finalize();
}

pub fn buffered() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=spin"] {
        let job =
            Job::new(2, "waits until it buffers").settings(settings).settings("FMPL_DEADLOCK=abort FMPL_STALL=0.4");
        let text = complaints(&job.seconds(20).run());
        assert!(text.contains("stalled: ") && !text.contains("deadlock"), "{settings}: {text}");
    }
}

/// Its standard error is a pipe that keeps what is written at a time together: a report must come as one line, whole.
pub fn reads_its_own_report() {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_DIRECT) }, 0);
    // SAFETY: descriptors of ours.
    let before = unsafe { libc::dup(2) };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::dup2(ends[1], 2) }, 2);
    let me = waits_for_long();
    // SAFETY: descriptors of ours.
    unsafe { libc::dup2(before, 2) };
    if me == 1 {
        let mut text = vec![0u8; 4096];
        // SAFETY: as many writable bytes.
        let n = unsafe { libc::read(ends[0], text.as_mut_ptr().cast(), text.len()) };
        text.truncate(n as usize);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("fmpl: stalled: rank 1: ") && text.ends_with('\n'), "{text:?}");
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
    }
}

pub fn lines() {
    Job::new(2, "reads its own report").env("FMPL_STALL", "0.3").seconds(10).run();
}
