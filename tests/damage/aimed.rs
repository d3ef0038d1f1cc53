//! Single words of single records, each with what must come of it.

use crate::ranks::calls::*;
use crate::ranks::damage::mapped;
use crate::ranks::{Job, complaints, said};
use fmpl::fabric::shm::region::{LANES_AT, SPOOL_AT};
use fmpl::ffi::acp::*;
use fmpl::lane::map::{LANE_STRIDE, RECORDS_AT};

/// The first of so many words that has this value.
///
/// # Safety
/// They are mapped.
unsafe fn find(from: *mut u64, words: usize, value: u64) -> Option<*mut u64> {
    // SAFETY: as the caller promises.
    (0..words).map(|k| unsafe { from.add(k) }).find(|at| unsafe { at.read_volatile() } == value)
}

const CAPACITIES: [usize; 2] = [777, 100_777];

/// Rank 1 writes another address, and more room, into the posting of a receive of rank 0, and sends a message that is longer than the buffer.
pub fn damages_a_posting() {
    init(8);
    for (index, capacity) in CAPACITIES.into_iter().enumerate() {
        let index = index as i32;
        if rank() == 0 {
            let victim = vec![0x11u8; 1 << 20];
            let mut buf = vec![0u8; capacity];
            irecv(&mut buf, 1, index);
            send(&(victim.as_ptr() as u64).to_le_bytes(), 1, 7);
            let code = try_irecv_wait(1, index);
            assert!(victim.iter().all(|b| *b == 0x11), "memory of no message was written");
            println!("code {code} {}", if code == 0 { String::new() } else { last_error() });
        } else {
            let mut word = [0; 8];
            recv(&mut word, 0, 7);
            let postings = RECORDS_AT.iter().find(|(_, name)| *name == "posting").unwrap().0;
            let at = mapped(0, LANES_AT + LANE_STRIDE + postings as u64).expect("the lane of ranks 0 and 1");
            // SAFETY: the postings of the first hundred indices; what is written there is what is tried.
            unsafe {
                let cap = find(at, 800, capacity as u64).expect("the posting");
                cap.sub(1).write_volatile(u64::from_le_bytes(word));
                cap.write_volatile(1 << 20);
            }
            println!("sent {}", try_send(&vec![0x42; capacity + 5], 0, index));
        }
    }
    // SAFETY: no memory; the two have parted.
    unsafe { libc::_exit(0) };
}

pub fn posting() {
    for settings in ["", "FMPL_SHM_PATH=cma", "FMPL_SHM_PATH=coop", "FMPL_SHM_PATH=ring", "FMPL_CMA=off"] {
        let outcome = Job::new(2, "damages a posting").settings(settings).seconds(20).keep_going().outcome();
        assert!(said(&outcome, 0).matches("code").count() == 2, "{settings}: {}", crate::ranks::story(&outcome));
    }
}

/// Rank 1 sends a chain, and damages one of its records: a length beyond all memory, or a link to before the spool.
pub fn damages_a_chain() {
    init(8);
    sendbuf_set(16 << 20, 0);
    if rank() == 1 {
        for k in 0..8u64 {
            send(&(0xab_cdef_0000 + k).to_le_bytes(), 0, 0);
        }
        let spool = mapped(1, SPOOL_AT).expect("the own spool");
        // SAFETY: the first MiB of the spool; what is written there is what is tried.
        unsafe {
            let payload = find(spool, 1 << 17, 0xab_cdef_0003).expect("the fourth message");
            let word = payload.sub(1).read_volatile();
            if std::env::var("HOW").as_deref() == Ok("long") {
                payload.write_volatile(1 << 45);
                payload.sub(1).write_volatile(word & 0xff_ffff_ffff | 0xff_ffff << 40);
            } else {
                payload.write_volatile(0u64.wrapping_sub(64));
                payload.sub(1).write_volatile(word & 0xffff_ffff | 8 << 32);
            }
        }
        send(&[1], 0, 1);
        // Until the other has seen what there is to see.
        let _ = try_recv(&mut [0], 0, 2);
    } else {
        recv(&mut [0], 1, 1);
        for k in 0..8u64 {
            let mut word = [0; 8];
            let code = try_recv(&mut word, 1, 0);
            if k < 3 {
                assert_eq!((code, u64::from_le_bytes(word)), (0, 0xab_cdef_0000 + k));
            } else {
                let text = last_error();
                assert!(
                    code == PEER && text.contains("rank 1") && text.contains("chain"),
                    "message {k}: {code} {text}"
                );
            }
        }
        fails(try_send(&[1], 1, 3), PEER);
        println!("told");
    }
    // SAFETY: no memory; the two have parted.
    unsafe { libc::_exit(0) };
}

pub fn chain() {
    for how in ["long", "link"] {
        let outcome = Job::new(2, "damages a chain").env("HOW", how).seconds(20).keep_going().outcome();
        assert!(said(&outcome, 0).contains("told"), "{how}: {}", crate::ranks::story(&outcome));
    }
}

/// The header of rank 1's region says that its rings have a number of slots that none can have.
pub fn damages_its_slots() {
    init(4);
    let slots: u32 = std::env::var("SLOTS").unwrap().parse().unwrap();
    if rank() == 1 {
        let header = mapped(1, 0).expect("the own region");
        // SAFETY: the header; what is written there is what is tried.
        unsafe { header.add(7).cast::<u32>().write_volatile(slots) };
        send(&[1], 0, 0);
        let _ = try_recv(&mut [0], 0, 1);
    } else {
        recv(&mut [0], 1, 0);
        fails(try_send_any(&[1; 8], 1, 0), PEER);
        assert!(last_error().contains("rank 1"), "{}", last_error());
        println!("told");
    }
    // SAFETY: no memory; the two have parted.
    unsafe { libc::_exit(0) };
}

pub fn any_slots() {
    for slots in [0u32, 3, 8192, 1 << 31, u32::MAX] {
        let outcome = Job::new(2, "damages its slots").env("SLOTS", slots).seconds(20).keep_going().outcome();
        assert!(said(&outcome, 0).contains("told"), "{slots}: {}", crate::ranks::story(&outcome));
    }
}

/// The header of rank 1's region says that its heap begins within a page, so that words that are aligned there would not be so for rank 0.
pub fn damages_its_heap() {
    init(4);
    assert_eq!(acp_init(std::ptr::null_mut(), std::ptr::null_mut()), 0);
    if rank() == 1 {
        let header = mapped(1, 0).expect("the own region");
        // SAFETY: the header; what is written there is what is tried.
        unsafe { header.add(4).write_volatile(header.add(4).read_volatile() + 4) };
        send(&[1], 0, 0);
        let _ = try_recv(&mut [0], 0, 1);
    } else {
        recv(&mut [0], 1, 0);
        acp_complete(acp_add8(acp_query_starter_ga(0), acp_query_starter_ga(1) + 64, 7, 0));
        let text = last_error();
        assert!(acp_errno() != 0 && text.contains("rank 1 has damaged the address of its heap"), "{text}");
        println!("told");
    }
    // SAFETY: no memory; the two have parted.
    unsafe { libc::_exit(0) };
}

pub fn heap() {
    let outcome = Job::new(2, "damages its heap").seconds(20).keep_going().outcome();
    assert!(said(&outcome, 0).contains("told"), "{}\n{}", crate::ranks::story(&outcome), complaints(&outcome));
}
