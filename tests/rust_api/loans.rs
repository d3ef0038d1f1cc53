//! Messages that are handed over, as values.

use std::sync::mpsc::channel;

use fmpl::{Code, Counter, PROC_NULL};

use crate::{filled, on_ranks};

on_ranks!(loans_are_handed_over_and_return_themselves, [1, 2, 3], 2, |job, world| {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in [0usize, 1, 2, 100, 1000, 200_000] {
        let mut loan = job.loan::<u64>(len + 3)?;
        loan[..len].copy_from_slice(&filled(len, rank));
        loan.truncate(len);
        world.send_loan(loan, next, 0)?;
        assert_eq!(*world.recv_loan::<u64>(last, 0)?, filled(len, last));
    }
    assert_eq!((job.counter(Counter::Loans)?, job.counter(Counter::LoanCopied)?), (6, 0));
    // More than can be out at a time: what is dropped comes back.
    for _ in 0..10_000 {
        drop(job.loan::<[f64; 3]>(10)?);
        drop(world.recv_loan::<u8>(PROC_NULL, 0)?);
    }
    assert!(world.recv_loan::<u8>(PROC_NULL, 0)?.is_empty());
});

on_ranks!(loans_mix_with_slices, [2], 4, |job, world| {
    let peer = 1 - world.rank();
    let data = filled(3000, world.rank());
    let mut loan = job.loan::<u64>(3000)?;
    loan.copy_from_slice(&data);
    world.send_loan(loan, peer, 0)?;
    let mut got = vec![0u64; 4000];
    assert_eq!(world.recv(&mut got, peer, 0)?.len, 3000);
    assert_eq!(got[..3000], filled(3000, peer));
    world.send(&data, peer, 1)?;
    assert_eq!(*world.recv_loan::<u64>(peer, 1)?, filled(3000, peer));
    // Out of a loan here; into a loan, once, on this side or the other.
    assert!([24_000, 48_000, 72_000].contains(&job.counter(Counter::LoanCopied)?));
    // Seven bytes are three whole numbers of two.
    world.send(&[1u8, 2, 3, 4, 5, 6, 7], peer, 1)?;
    assert_eq!(*world.recv_loan::<u16>(peer, 1)?, [1 | 2 << 8, 3 | 4 << 8, 5 | 6 << 8].map(u16::from_le));
});

on_ranks!(requests_of_loans_are_waited_for_tested_and_dropped, [2], 4, |job, world| {
    let peer = 1 - world.rank();
    let request = world.irecv_loan::<u64>(peer, 0)?;
    assert_eq!(world.recv_loan::<u64>(peer, 0).unwrap_err().code(), Code::Busy);
    world.send_loan(job.loan::<u64>(5)?, peer, 0)?;
    assert_eq!(request.wait()?.len(), 5);
    let mut request = world.irecv_loan::<u64>(peer, 0)?;
    world.send_loan(job.loan::<u64>(6)?, peer, 0)?;
    let loan = loop {
        match request.test()? {
            Ok(loan) => break loan,
            Err(again) => request = again,
        }
    };
    assert_eq!(loan.len(), 6);
    drop(loan);
    // Withdrawn, the index is free for others.
    drop(world.irecv_loan::<u64>(peer, 0)?);
    world.barrier()?;
    world.send(&[7u64], peer, 0)?;
    assert_eq!(*world.recv_loan::<u64>(peer, 0)?, [7]);
});

on_ranks!(loans_come_from_any_source, [2, 3], 2, |job, world| {
    let size = world.size();
    if world.rank() == 0 {
        let mut seen = vec![0; size];
        for k in 0..3 * (size - 1) {
            let (loan, source) = match k % 3 {
                0 => world.recv_loan_any::<u64>(0)?,
                1 => world.irecv_loan_any::<u64>(0)?.wait()?,
                _ => {
                    drop(world.irecv_loan_any::<u64>(0)?);
                    let mut request = world.irecv_loan_any::<u64>(0)?;
                    loop {
                        match request.test()? {
                            Ok(got) => break got,
                            Err(again) => request = again,
                        }
                    }
                }
            };
            seen[source] += 1;
            assert_eq!(*loan, filled(500, source));
        }
        assert_eq!(seen[1..], vec![3; size - 1]);
    } else {
        for _ in 0..2 {
            let mut loan = job.loan::<u64>(500)?;
            loan.copy_from_slice(&filled(500, world.rank()));
            world.send_loan_any(loan, 0, 0)?;
        }
        world.send_any(&filled(500, world.rank()), 0, 0)?;
        assert_eq!(world.send_loan_any(job.loan::<u8>(1)?, 77, 0).unwrap_err().error.code(), Code::Rank);
    }
});

on_ranks!(one_loan_is_read_by_all, [1, 3], 2, |job, world| {
    for k in 0..100u64 {
        if world.rank() == 0 {
            let mut loan = job.loan::<u64>(1000)?;
            loan.fill(k);
            world.mcast_loan(loan, 0..world.size(), 0)?;
        }
        assert_eq!(*world.recv_loan::<u64>(0, 0)?, [k; 1000]);
    }
    let refused = world.mcast_loan(job.loan::<u8>(1)?, [77], 0).unwrap_err();
    assert_eq!(refused.error.code(), Code::Rank);
    assert_eq!(world.mcast_loan(refused.loan, [], 0).unwrap_err().error.code(), Code::Argument);
});

on_ranks!(what_is_refused_is_still_there, [1], 2, |job, world| {
    let mut loan = job.loan::<u32>(4)?;
    loan.fill(9);
    let refused = world.send_loan(loan, 7, 0).unwrap_err();
    assert_eq!(refused.error.code(), Code::Rank);
    let refused = world.send_loan(refused.loan, 0, 5).unwrap_err();
    assert_eq!((refused.error.code(), &refused.loan[..]), (Code::Index, &[9u32; 4][..]));
    world.send_loan(refused.loan, 0, 1)?;
    assert_eq!(*world.recv_loan::<u32>(0, 1)?, [9; 4]);
    assert_eq!(job.loan::<u8>(usize::MAX).unwrap_err().code(), Code::Argument);
    #[repr(C, align(4096))]
    #[derive(Clone, Copy, Debug)]
    struct Page([u8; 4096]);
    // SAFETY: bytes only, without padding.
    unsafe impl fmpl::Plain for Page {}
    assert_eq!(job.loan::<Page>(1).unwrap_err().code(), Code::Argument);
    world.send(&[1u8], 0, 1)?;
    assert_eq!(world.recv_loan::<Page>(0, 1).unwrap_err().code(), Code::Argument);
});

on_ranks!(loans_are_returned_by_other_threads, [2], 2, |job, world| {
    let (mut sender, mut receiver) = world.channel(1 - world.rank(), 0)?.split();
    std::thread::scope(|s| {
        let (give, take) = channel();
        s.spawn(move || {
            for (k, loan) in (0u64..).zip(take.iter()) {
                let loan: fmpl::Loan<'_, u64> = loan;
                assert_eq!(*loan, [k; 50]);
            }
        });
        s.spawn(move || {
            for k in 0..2000u64 {
                let mut loan = job.loan::<u64>(50).unwrap();
                loan.fill(k);
                sender.send_loan(loan).unwrap();
            }
        });
        for _ in 0..2000 {
            give.send(receiver.recv_loan::<u64>().unwrap()).unwrap();
        }
    });
});
