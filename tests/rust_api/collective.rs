use fmpl::{AbsMax, AbsMin, Buffer, Code, MinVal, Sum};

use crate::{filled, on_ranks};

on_ranks!(collective_calls_of_slices, [1, 2, 3], 1, |job, world| {
    let (me, ranks) = (world.rank(), world.size());
    for len in [0usize, 1, 3, 1000, 100_000] {
        for root in 0..ranks {
            let mut data = if me == root { filled(len, root) } else { vec![0; len] };
            world.bcast(&mut data, root)?;
            assert_eq!(data, filled(len, root));
            let mut parts = Buffer::filled(job, len, me as f64 + 0.25)?;
            world.reduce(&mut parts, Sum, root)?;
            let sum = (ranks * (ranks - 1)) as f64 / 2.0 + 0.25 * ranks as f64;
            assert!(parts.iter().all(|x| *x == if me == root { sum } else { me as f64 + 0.25 }));
        }
        let sign = if me % 2 == 0 { 1.0 } else { -1.0 };
        let mut most = vec![[sign * me as f64, 0.0]; len];
        world.allreduce(&mut most, AbsMax)?;
        let last = if ranks % 2 == 1 { 1.0 } else { -1.0 } * (ranks - 1) as f64;
        assert!(most.iter().all(|z| *z == [last, 0.0]));
        let mut least = vec![me as i32 - 1; len];
        world.allreduce(&mut least, MinVal)?;
        assert!(least.iter().all(|x| *x == -1));
        let mut nearest = vec![me as f32 + 2.0; len];
        world.allreduce(&mut nearest, AbsMin)?;
        assert!(nearest.iter().all(|x| *x == 2.0));
        // The first of the left and the last of the right: the order of the ranks.
        let mut ends = vec![[me as u64; 2]; len];
        world.allreduce(&mut ends, |a: [u64; 2], b: [u64; 2]| [a[0], b[1]])?;
        assert!(ends.iter().all(|e| *e == [0, ranks as u64 - 1]));
    }
    assert_eq!(world.bcast(&mut [0u8], ranks).unwrap_err().code(), Code::Rank);
    assert_eq!(
        world.allreduce(&mut [[0u64; 2000]], |a: [u64; 2000], _: [u64; 2000]| a).unwrap_err().code(),
        Code::Argument
    );
});

on_ranks!(slices_of_different_lengths, [1, 2, 3, 4], 1, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    let block = |from: usize, to: usize| vec![(100 * from + to) as u32; 1000 * (from % 2) + to];
    let lengths: Vec<usize> = (0..ranks).map(|from| block(from, 3).len()).collect();
    let of_all: Vec<u32> = (0..ranks).flat_map(|from| block(from, 3)).collect();
    let mut all = vec![0; of_all.len()];
    world.allgatherv(&block(me, 3), &mut all, &lengths)?;
    assert_eq!(all, of_all);
    for root in 0..ranks {
        let mut all = if me == root { vec![0; of_all.len()] } else { vec![] };
        let at_root = if me == root { &lengths[..] } else { &[] };
        world.gatherv(&block(me, 3), &mut all, at_root, root)?;
        assert!(me != root || all == of_all);
        let mut mine = vec![0; lengths[me]];
        world.scatterv(&all, at_root, &mut mine, root)?;
        assert_eq!(mine, block(me, 3));
    }
    let sent: Vec<u32> = (0..ranks).flat_map(|to| block(me, to)).collect();
    let sent_lengths: Vec<usize> = (0..ranks).map(|to| block(me, to).len()).collect();
    let expected: Vec<u32> = (0..ranks).flat_map(|from| block(from, me)).collect();
    let lengths_here: Vec<usize> = (0..ranks).map(|from| block(from, me).len()).collect();
    let mut received = vec![0; expected.len()];
    world.alltoallv((&sent, &sent_lengths), (&mut received, &lengths_here))?;
    assert_eq!(received, expected);
    // Words that are joined: the order of the ranks.
    let mut ends = [[me as u64; 2]; 3];
    world.exscan(&mut ends, |a: [u64; 2], b: [u64; 2]| [a[0], b[1]])?;
    assert_eq!(ends, [if me == 0 { [0, 0] } else { [0, me as u64 - 1] }; 3]);
    assert_eq!(world.allgatherv(&[0u8], &mut [0; 8], &[1, 1, 1, 1, 1]).unwrap_err().code(), Code::Argument);
});

on_ranks!(blocks_of_slices, [1, 2, 3], 1, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    for len in [0usize, 1, 3, 1000, 100_000] {
        let block = |from: usize, to: usize| vec![(100 * from + to) as u64; len];
        let mine: Vec<u64> = (0..ranks).flat_map(|to| block(me, to)).collect();
        let mut all = vec![0; len * ranks];
        world.alltoall(&mine, &mut all)?;
        assert_eq!(all, (0..ranks).flat_map(|from| block(from, me)).collect::<Vec<_>>());
        let of_all: Vec<u64> = (0..ranks).flat_map(|from| block(from, 0)).collect();
        world.allgather(&mine[..len], &mut all)?;
        assert_eq!(all, of_all);
        for root in 0..ranks {
            let mut part = vec![0; len];
            world.scatter(if me == root { &mine[..] } else { &[] }, &mut part, root)?;
            assert_eq!(part, block(root, me));
            let mut all = if me == root { vec![0; len * ranks] } else { vec![] };
            world.gather(&mine[..len], &mut all, root)?;
            assert!(me != root || all == of_all);
        }
        let mut part = vec![[0u64; 2]; len];
        let pairs: Vec<[u64; 2]> = mine.iter().map(|x| [*x, *x]).collect();
        // The first of the left and the last of the right: the order of the ranks.
        world.reduce_scatter(&pairs, &mut part, |a: [u64; 2], b: [u64; 2]| [a[0], b[1]])?;
        assert!(part.iter().all(|p| *p == [me as u64, (100 * (ranks - 1) + me) as u64]));
        let mut until = vec![me as f64; len];
        world.scan(&mut until, Sum)?;
        assert!(until.iter().all(|x| *x == (me * (me + 1)) as f64 / 2.0));
    }
    if me != 1 {
        let mut sum = [me as i64 + 10];
        world.mcast_reduce(&mut sum, |a: i64, b: i64| a + b, (0..ranks).filter(|r| *r != 1), 0)?;
        let group: i64 = (0..ranks as i64).filter(|r| *r != 1).map(|r| r + 10).sum();
        assert_eq!(sum[0], if me == 0 { group } else { me as i64 + 10 });
        let members: Vec<usize> = (0..ranks).filter(|r| *r != 1).collect();
        for len in [1usize, 700, 60_000] {
            let sent: Vec<u64> = (0..members.len() * len).map(|k| (me * 1000 + k) as u64).collect();
            let mut received = vec![0; sent.len()];
            world.mcast_alltoall(&sent, &mut received, members.iter().copied())?;
            let mine = members.iter().position(|r| *r == me).unwrap();
            let of = |from: usize| (0..len).map(move |k| (from * 1000 + mine * len + k) as u64);
            assert_eq!(received, members.iter().flat_map(|from| of(*from)).collect::<Vec<_>>());
        }
        let short = world.mcast_alltoall(&[1u8, 2], &mut [0u8], members.iter().copied());
        assert_eq!(short.unwrap_err().code(), Code::Argument);
    }
    if ranks > 1 {
        assert_eq!(world.allgather(&[1u8], &mut [0u8]).unwrap_err().code(), Code::Argument);
    }
});

on_ranks!(collective_calls_that_do_not_wait, [1, 2, 3], 1, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    let (mut table, mut most) = (vec![me as u32; 5000], vec![me as i64; 3000]);
    let offset = 1000 * ranks as i64;
    world.scope(|s| {
        let met = s.ibarrier()?;
        assert_eq!(world.barrier().unwrap_err().code(), Code::Busy);
        met.wait()?;
        let mut coming = s.ibcast(&mut table, ranks - 1)?;
        while !coming.test()? {
            std::thread::yield_now();
        }
        // Left to the end of the scope; the closure has a variable of the scope's surroundings.
        let _ = s.iallreduce(&mut most, move |a: i64, b: i64| a.max(b) + offset - offset)?;
        Ok(())
    })?;
    assert!(table.iter().all(|x| *x == ranks as u32 - 1));
    assert!(most.iter().all(|x| *x == ranks as i64 - 1));
    world.barrier()?;
});

on_ranks!(several_calls_are_under_way_at_a_time, [1, 2, 5], 1, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    let (mut sums, mut table, mut all, mut part, mut got) =
        ([[me as u64; 2]; 12], [me], vec![0; ranks], [0], vec![0; ranks]);
    let (mut most, mut gathered) = ([me as i32], vec![0; ranks]);
    let (mine, ranked): (_, Vec<usize>) = ([me], (0..ranks).collect());
    world.scope(|s| {
        let mut open = Vec::new();
        for (k, sum) in sums.iter_mut().enumerate() {
            open.push(s.iallreduce_n(sum, move |a: u64, b: u64| a + b + k as u64)?);
        }
        let met = s.ibarrier_n()?;
        open.push(s.ibcast_n(&mut table, ranks - 1)?);
        open.push(s.iallgather_n(&mine, &mut all)?);
        open.push(s.iscatter_n(&ranked, &mut part, 0)?);
        open.push(s.ialltoall_n(&ranked, &mut got)?);
        open.push(s.ireduce_n(&mut most, fmpl::MaxVal, 0)?);
        let _ = s.igather_n(&mine, &mut gathered, 0)?; // the scope completes it
        world.barrier()?;
        met.wait()?;
        let mut last = open.pop().unwrap();
        while !last.test()? {}
        open.into_iter().rev().try_for_each(|call| call.wait())
    })?;
    for (k, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, [(ranks * (ranks - 1) / 2 + (ranks - 1) * k) as u64; 2]);
    }
    assert_eq!((table, part, &all, got), ([ranks - 1], mine, &ranked, vec![me; ranks]));
    assert_eq!(most[0], if me == 0 { ranks as i32 - 1 } else { me as i32 });
    assert!(me != 0 || gathered == ranked);
    // One at a time.
    world.scope(|s| {
        let call = s.ireduce(&mut most, fmpl::Sum, ranks - 1)?;
        let mut sum = [1];
        assert_eq!(s.ibarrier().map(drop).unwrap_err().code(), Code::Busy);
        assert_eq!(world.allreduce(&mut sum, fmpl::Sum).unwrap_err().code(), Code::Busy);
        call.wait()?;
        s.igather(&mine, &mut gathered, 0)?.wait()
    })?;
    world.scope(|s| s.iallgather(&mine, &mut all)?.wait())?;
    world.scope(|s| s.iscatter(&ranked, &mut part, 0)?.wait())?;
    world.scope(|s| s.ialltoall(&ranked, &mut all)?.wait())?;
    assert_eq!((part, all), (mine, vec![me; ranks]));
    let mut wrong = [0; 99];
    let error = world.scope(|s| s.iallgather_n(&mine, &mut wrong)?.wait()).unwrap_err();
    assert_eq!(error.code(), Code::Argument);
    world.barrier()?;
});

on_ranks!(a_panic_in_a_function_is_an_error_for_the_others, [2, 3], 1, |_job, world| {
    let me = world.rank();
    let call = || {
        world.allreduce(&mut [0u64; 1000], |a: u64, b: u64| {
            assert!(me != 1, "on purpose");
            a + b
        })
    };
    if me == 1 {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    }
    // The others may have had all they needed before the panic; the next call fails everywhere.
    let _ = if me == 1 { Ok(()) } else { call() };
    let error = world.barrier().unwrap_err();
    assert!(error.code() == Code::Peer && error.detail().contains("panicked"), "{error}");
});

/// Rank 0 gives half of a vector where the others give a whole one: who needs the other half is told, and does not touch it.
fn with_half_a_vector(half: usize, call: impl FnOnce(&mut [f64]) -> fmpl::Result<()>, rank: usize) {
    let mut all = vec![1.0; 2 * half];
    let ended = call(&mut all[..if rank == 0 { half } else { 2 * half }]);
    assert!(all[half..].iter().all(|x| *x == 1.0) || rank != 0, "memory that was not given to the call has changed");
    if let Err(error) = ended {
        assert!(error.code() == Code::Argument && error.detail().contains("makes the call with"), "{error}");
    } else {
        assert_eq!(rank, 0);
    }
}

on_ranks!(a_sum_over_slices_of_different_lengths, [2, 3], 1, |_job, world| {
    with_half_a_vector(1 << 20, |slice| world.allreduce(slice, Sum), world.rank());
});

on_ranks!(a_sum_over_short_slices_of_different_lengths, [2, 3], 1, |_job, world| {
    with_half_a_vector(1000, |slice| world.allreduce(slice, Sum), world.rank());
});

on_ranks!(a_sum_for_one_over_slices_of_different_lengths, [2, 3], 1, |_job, world| {
    with_half_a_vector(20_000, |slice| world.reduce(slice, Sum, 1), world.rank());
});

on_ranks!(a_broadcast_into_a_slice_that_is_too_short, [2], 1, |_job, world| {
    with_half_a_vector(1 << 20, |slice| world.bcast(slice, 1), world.rank());
});

on_ranks!(a_short_broadcast_into_a_slice_that_is_too_short, [2], 1, |_job, world| {
    let mut all = [1.0; 2000];
    let ended = world.bcast(&mut all[..if world.rank() == 0 { 1000 } else { 2000 }], 1);
    // The root need not wait for anybody.
    if world.rank() == 0 {
        let error = ended.unwrap_err();
        assert!(error.code() == Code::Argument && error.detail().contains("makes the call with"), "{error}");
    }
});

on_ranks!(neighbours_on_a_grid_exchange, [1, 2, 3, 6, 8], 1, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    let (rows, columns) = if ranks >= 6 { (2, 3) } else { (1, ranks) };
    let sides = [(rows, true), (columns, false)];
    let grid = world.grid(&sides)?;
    assert_eq!(grid.is_some(), me < rows * columns);
    assert_eq!(world.neighbour_allgather(&[1], &mut [0; 4]).unwrap_err().code(), Code::Comm);
    assert_eq!(world.grid(&[(ranks + 1, true)]).map(drop).unwrap_err().code(), Code::Argument);
    if let Some(grid) = &grid {
        let comm = grid.comm();
        let at = comm.coordinates(me)?;
        assert_eq!(at, [me / columns, me % columns]);
        let place = |row: i64, column: i64| comm.rank_at(&[row, column]);
        let (row, column) = (at[0] as i64, at[1] as i64);
        let around =
            [place(row - 1, column)?, place(row + 1, column)?, place(row, column - 1)?, place(row, column + 1)?];
        assert_eq!(comm.shift(1, 1)?, (around[2], around[3]));
        assert_eq!(comm.shift(0, -1)?, (around[1], around[0]));
        assert!(comm.rank_at(&[1]).is_err() && comm.shift(2, 1).is_err() && comm.coordinates(99).is_err());
        for len in [0, 1, 900, 60_000] {
            let word = |from: usize, k: usize| (from * 10 + k) as u64;
            let want = |k: usize, of: usize| around[k].map_or(7, |rank| word(rank, of));
            let mut got = vec![7u64; 4 * len];
            comm.neighbour_allgather(&vec![word(me, 0); len], &mut got)?;
            for (k, got) in got.chunks_exact(len.max(1)).enumerate() {
                assert!(got.iter().all(|x| *x == want(k, 0)), "{me}: {k} of {around:?}");
            }
            let sent: Vec<u64> = (0..4).flat_map(|k| vec![word(me, k); len]).collect();
            let mut got = vec![7u64; 4 * len];
            comm.neighbour_alltoall(&sent, &mut got)?;
            for (k, got) in got.chunks_exact(len.max(1)).enumerate() {
                // What comes from the rank behind is what that one has for the one before it.
                assert!(got.iter().all(|x| *x == want(k, k ^ 1)), "{me}: {k} of {around:?}");
            }
        }
        assert_eq!(comm.neighbour_alltoall(&[1; 4], &mut [0; 5]).unwrap_err().code(), Code::Argument);
    }
    world.barrier()?;
});
