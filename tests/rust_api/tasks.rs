use std::time::Duration;

use fmpl::Result;

use crate::{filled, on_ranks};

on_ranks! {
    /// A task for each message, on smol: each is woken, whichever comes first.
    tasks_of_smol, [1, 2, 3], 50, |_job, world| {
        let (me, size) = (world.rank(), world.size());
        let (next, last) = ((me + 1) % size, (me + size - 1) % size);
        let mut incoming: Vec<Vec<u64>> = (0..50).map(|k| vec![0; 1 + 40 * k]).collect();
        let outgoing: Vec<Vec<u64>> = (0..50).map(|k| filled(1 + 40 * k, me * 100 + k)).collect();
        world.scope(|s| {
            let tasks = smol::LocalExecutor::new();
            let receiving: Vec<_> = incoming.iter_mut().enumerate().map(|(k, data)| tasks.spawn(async move { s.irecv(data, last, k)?.await })).collect();
            // Backwards: the first to be asked for come last.
            let sending = tasks.spawn(async {
                for (k, data) in outgoing.iter().enumerate().rev() {
                    s.isend(data, next, k)?.await?;
                }
                Result::Ok(())
            });
            smol::block_on(tasks.run(async {
                sending.await?;
                for (k, task) in receiving.into_iter().enumerate() {
                    assert_eq!(task.await?.len, 1 + 40 * k);
                }
                Result::Ok(())
            }))
        })?;
        for (k, data) in incoming.iter().enumerate() {
            assert_eq!(*data, filled(1 + 40 * k, last * 100 + k));
        }
        world.barrier()?;
    }
}

on_ranks! {
    /// Requests of all kinds on a runtime of tokio, of which most have to wait for the other rank; and a collective one.
    requests_on_tokio, [2], 4, |_job, world| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let peer = 1 - world.rank();
        for turn in 0..20u64 {
            let (mut one, mut sum, mut any, mine) = ([0u64], [turn, 1], [0u64], [turn]);
            world.scope(|s| {
                runtime.block_on(async {
                    let arriving = s.irecv(&mut one, peer, 0)?;
                    let from_any = s.irecv_any(&mut any, 1)?;
                    let all = s.iallreduce(&mut sum, fmpl::Sum)?;
                    if world.rank() == 0 {
                        // The other waits meanwhile, asleep.
                        std::thread::sleep(Duration::from_millis(3));
                    }
                    let sending = s.isend(&mine, peer, 0)?;
                    world.send_any(&[turn + 1], peer, 1)?;
                    assert_eq!(arriving.await?.len, 1);
                    assert_eq!(from_any.await?.source, peer);
                    all.await?;
                    sending.await
                })
            })?;
            assert_eq!((one, sum, any), ([turn], [2 * turn, 2], [turn + 1]));
        }
    }
}

on_ranks! {
    /// A rank that waits as a task hears of a death, and of the end of its own request.
    a_task_is_told, [1], 2, |_job, world| {
        let mut one = [0u8];
        world.scope(|s| {
            let mut request = s.irecv(&mut one, 0, 0)?;
            world.send(&[7u8], 0, 0)?;
            while request.test()?.is_none() {}
            // Over already: the future has it all the same.
            assert_eq!(smol::block_on(request.into_future())?.len, 1);
            let mut done = s.isend(&[1u8], None, 1)?;
            while !done.test()? {}
            smol::block_on(done.into_future())
        })?;
    }
}
