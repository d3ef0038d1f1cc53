//! A peer that writes other words where it names a loan: the receiver is told who, and nothing of it is read.

use crate::lend::*;
use crate::ranks::calls::*;
use crate::ranks::damage::mapped;
use crate::ranks::{Job, said, story};
use fmpl::fabric::shm::region::LANES_AT;
use fmpl::lane::loan::Descriptor;
use fmpl::lane::map::{LANE_STRIDE, RECORDS_AT};

/// Rank 1 hands a loan over, and writes other words into the landing before rank 0 looks.
pub fn damages_a_loan() {
    init(8);
    let how: usize = std::env::var("HOW").unwrap().parse().unwrap();
    if rank() == 1 {
        send_filled(b"a message in a loan", 0, 0);
        let lines = RECORDS_AT.iter().find(|(_, name)| *name == "hot line").unwrap().0;
        let at = mapped(0, LANES_AT + LANE_STRIDE + lines as u64).expect("the lane of ranks 0 and 1");
        // SAFETY: the hot lines of the first hundred indices; what is written there is what is tried.
        unsafe {
            let is_loan = |k: &usize| Descriptor::read([at.add(*k).read_volatile(), at.add(*k + 1).read_volatile()]);
            let (k, d) = (0..800).find_map(|k| Some((k, is_loan(&k)?))).expect("the landing");
            let words = match how {
                0 => Descriptor { place: (256 << 30) - 64, len: 1 << 20, ..d }.words(),
                1 => Descriptor { len: (1 << 40) - 1, ..d }.words(),
                2 => [d.words()[0] ^ 1, d.words()[1]],
                3 => [0, 0],
                _ => [u64::MAX, u64::MAX],
            };
            at.add(k).write_volatile(words[0]);
            at.add(k + 1).write_volatile(words[1]);
        }
        send(b"go", 0, 1);
    } else {
        recv(&mut [0; 8], 1, 1);
        let code = match std::env::var_os("COPY") {
            Some(_) => try_recv(&mut [0; 100], 1, 0),
            None => try_recv_loan(1, 0).0,
        };
        fails(code, PEER);
        assert!(last_error().contains("rank 1") && last_error().contains("loan"), "{}", last_error());
        // And from then on.
        fails(try_recv_loan(1, 2).0, PEER);
        println!("told");
    }
    // SAFETY: no memory; the two have parted.
    unsafe { libc::_exit(0) };
}

pub fn words() {
    for how in 0..5 {
        for copy in [false, true] {
            let mut job = Job::new(2, "damages a loan").env("HOW", how).seconds(20).keep_going();
            if copy {
                job = job.env("COPY", 1);
            }
            let outcome = job.outcome();
            assert!(said(&outcome, 0).contains("told"), "{how}: {}", story(&outcome));
        }
    }
}
