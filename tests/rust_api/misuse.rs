//! Wrong arguments: a clear error, and the job goes on.

use fmpl::{Code, Mode, PROC_NULL, Strided, StridedMut};

use crate::{filled, on_ranks};

on_ranks!(wrong_arguments_are_named_and_change_nothing, [2], 4, |job, world| {
    let peer = 1 - world.rank();
    let mut data = [0u64; 10];
    let check = |result: fmpl::Result<()>, code: Code, names: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(names), "{error} does not name {names}");
        // Errors are std's, with a text for people.
        let _: &dyn std::error::Error = &error;
    };
    for rank in [2usize, 1000, usize::MAX] {
        check(world.send(&data, rank, 0), Code::Rank, "");
        check(world.recv(&mut data, rank, 0).map(drop), Code::Rank, "");
        check(world.channel(rank, 0).map(drop), Code::Rank, "");
        check(world.recv_any_index(&mut data, rank).map(drop), Code::Rank, "");
    }
    check(world.send(&data, 7, 0), Code::Rank, "7");
    check(world.send(&data, -1, 0), Code::Rank, "");
    check(world.send(&data, -2, 0), Code::Rank, "");
    for index in [4usize, 5000, 1 << 17, usize::MAX] {
        check(world.send(&data, peer, index), Code::Index, "");
        check(world.recv(&mut data, peer, index).map(drop), Code::Index, "");
        check(world.probe(peer, index).map(drop), Code::Index, "");
        check(world.sender(peer, index).map(drop), Code::Index, "");
        check(world.receiver(peer, index).map(drop), Code::Index, "");
        check(world.sendrecv(&[1], peer, index, &mut data, peer, 0).map(drop), Code::Index, "");
        check(world.scope(|s| s.irecv(&mut data, peer, index)?.wait()).map(drop), Code::Index, "");
        check(world.scope(|s| s.isend(&[1u8], peer, index)?.wait()), Code::Index, "");
    }
    check(world.send(&data, peer, 4), Code::Index, "index 4");
    check(Strided::new(&data, 2, 5, 6).map(drop), Code::Argument, "slice of 10");
    check(StridedMut::new(&mut data, 3, 4, 3).map(drop), Code::Argument, "overlap");
    assert_eq!(world.send(&data, PROC_NULL, 0), Ok(()));

    assert_eq!(data, [0; 10]);
    let mine = filled(10, world.rank());
    assert_eq!(world.sendrecv(&mine, peer, 3, &mut data, peer, 3)?.len, 10);
    assert_eq!(data[..], filled(10, peer));
    job.set_send_buffer(1 << 16, Mode::Buffered)?;
    check(world.send(&vec![0u8; 1 << 20], peer, 0), Code::SpoolFull, "index 0");
});

on_ranks!(a_message_too_long_is_cut_and_said_so, [2], 4, |_job, world| {
    let peer = 1 - world.rank();
    for len in [2, 100, 5000, 100_000] {
        let message = filled(len, world.rank());
        let expected = filled(len, peer);
        world.barrier()?;
        let half = len / 2;
        let mut data = [vec![0; len], vec![0; len], vec![0; len], vec![0; len]];
        let cut = |error: fmpl::Error| {
            assert_eq!(error.code(), Code::Truncate);
            assert!(error.detail().contains(&(8 * len).to_string()), "{error}");
        };
        // By a blocking receive, by a request, into a block, by a receive of any index.
        let [a, b, c, d] = &mut data;
        world.scope(|s| {
            for index in 0..3 {
                std::mem::forget(s.isend(&message, peer, index)?);
            }
            cut(world.recv(&mut a[..half], peer, 0).unwrap_err());
            cut(s.irecv(&mut b[..half], peer, 1)?.wait().unwrap_err());
            cut(s.irecv_block(StridedMut::new(c, half, 1, 1)?, peer, 2)?.wait().unwrap_err());
            Ok(())
        })?;
        world.scope(|s| {
            std::mem::forget(s.isend(&message, peer, 3)?);
            cut(world.recv_any_index(&mut d[..half], peer).unwrap_err());
            Ok(())
        })?;
        for data in &data {
            assert!(data[..half] == expected[..half] && data[half..].iter().all(|x| *x == 0));
        }
        // The next messages are whole. The receive of any index must not find them.
        world.barrier()?;
        for index in 0..4 {
            let mut data = vec![0; len];
            assert_eq!(world.sendrecv(&message, peer, index, &mut data, peer, index)?.len, len);
            assert_eq!(data, expected);
        }
    }
});
