use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, said, story};

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
}

fn deadlocked(ranks: usize, body: &str, settings: &str) {
    let outcome = Job::new(ranks, body).settings(settings).env("FMPL_STALL", "0.4").seconds(4).outcome();
    let text = complaints(&outcome);
    assert!(outcome.timed_out, "it waits on: {}", story(&outcome));
    assert_eq!(text.matches("deadlock").count(), 1, "{ranks} {body} {settings}: {text}");
    let line = text.lines().find(|l| l.contains("deadlock")).unwrap();
    assert!((0..ranks).all(|r| line.contains(&r.to_string())), "{line}");
    assert!(text.contains("rank 0: ") && text.contains("recv(src 1, index 3)"), "{text}");
}

pub fn two() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block STAGGER=1", "FMPL_WAIT=spin"] {
        deadlocked(2, "waits in a cycle", settings);
    }
    deadlocked(2, "waits in a late cycle", "");
}

pub fn three() {
    deadlocked(3, "waits in a cycle", "");
    deadlocked(3, "waits in a cycle", "STAGGER=1");
}

pub fn aborted() {
    for (ranks, settings) in [(2, ""), (3, "STAGGER=1"), (2, "FMPL_WAIT=spin"), (3, "FMPL_WAIT=block")] {
        let outcome = Job::new(ranks, "waits in a cycle")
            .settings(settings)
            .env("FMPL_DEADLOCK", "abort")
            .env("FMPL_STALL", "0.4")
            .seconds(20)
            .run();
        for r in 0..ranks {
            assert_eq!(said(&outcome, r).trim(), DEADLOCK.to_string(), "{ranks} {settings}: {}", story(&outcome));
        }
        assert_eq!(complaints(&outcome).matches("deadlock:").count(), 1, "{}", complaints(&outcome));
    }
}

pub fn long_wait() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block", "FMPL_WAIT=spin"] {
        let outcome = Job::new(2, "waits long").settings(settings).env("FMPL_STALL", "0.4").run();
        let text = complaints(&outcome);
        assert!(text.contains("rank 1: ") && text.contains("recv(src 0, index 5)"), "{settings}: {text}");
        assert!(text.contains("rank 0 waits for nobody") && !text.contains("deadlock"), "{settings}: {text}");
    }
}
