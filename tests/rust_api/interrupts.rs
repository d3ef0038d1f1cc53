//! What bindings to other languages stand on: waits that a hook of their thread ends, and calls that do not wait.

use std::sync::atomic::{AtomicU32, Ordering};

use fmpl::base::layout::Layout;
use fmpl::wait::interrupt_by;
use fmpl::{Code, Mode, p2p};

use crate::on_ranks;

static ASKED: AtomicU32 = AtomicU32::new(0);

/// Ends a wait when it has been asked some times.
fn third() -> bool {
    ASKED.fetch_add(1, Ordering::Relaxed) == 2
}

/// The error of a wait that the hook has ended, and no other.
fn is_ended<R: std::fmt::Debug>(call: impl FnOnce() -> fmpl::Result<R>) {
    ASKED.store(0, Ordering::Relaxed);
    let error = call().unwrap_err();
    assert_eq!((error.code(), ASKED.load(Ordering::Relaxed)), (Code::System, 3), "{error}");
}

on_ranks!(a_hook_ends_waits_and_messages_go_on, [2], 8, |job, world| {
    job.set_send_buffer(1 << 20, Mode::Synchronous)?;
    let (mut short, mut other, mut long) = ([0u8; 4], [0u8; 4], vec![0u8; 200_000]);
    if world.rank() == 0 {
        interrupt_by(Some(third));
        is_ended(|| world.recv(&mut short, 1, 0));
        is_ended(|| world.recv(&mut long, 1, 1));
        is_ended(|| world.recv_any(&mut short, 2));
        is_ended(|| world.send(&long, 1, 3));
        is_ended(|| world.send_any(b"gone", 1, 4));
        // A request that a wait has left is over, so its slice is its owner's.
        is_ended(|| world.scope(|s| s.irecv(&mut long, 1, 1)?.wait()));
        is_ended(|| world.scope(|s| s.isend(&long, 1, 3)?.wait()));
        // So are those that are left to the end of their scope, of which none is waited for again.
        is_ended(|| {
            world.scope(|s| {
                let _ = s.irecv_any(&mut short, 5)?;
                let _ = s.irecv_any(&mut other, 6)?;
                Ok(())
            })
        });
        interrupt_by(None);
        world.send(&[0u8], 1, 7)?;
        assert_eq!(world.recv(&mut short, 1, 0)?.len, 4);
        assert_eq!(world.recv(&mut long, 1, 1)?.len, 200_000);
        assert_eq!(world.recv_any(&mut short, 2)?.len, 3);
        assert!(long.iter().all(|b| *b == 5));
        world.send(b"sent", 1, 3)?;
        world.send_any(b"any", 1, 3)?;
    } else {
        world.recv(&mut short, 0, 7)?;
        world.send(b"then", 0, 0)?;
        world.send(&vec![5u8; 200_000], 0, 1)?;
        world.send_any(b"one", 0, 2)?;
        // Of the sends that were left some come all the same, whole.
        while world.recv(&mut long, 0, 3)?.len != 4 {
            assert!(long.iter().all(|b| *b == 0));
        }
        assert_eq!(&long[..4], b"sent");
        assert_eq!(world.recv_any(&mut short, 3)?.len, 3);
        // In synchronous mode it was there already, and only its receive was waited for.
        assert_eq!((world.recv_any(&mut short, 4)?.len, &short), (4, b"gone"));
    }
});

on_ranks!(
    /// Others rely on a collective call: it goes on.
    a_hook_ends_no_collective_call, [2], 1, |_job, world| {
        if world.rank() == 0 {
            interrupt_by(Some(|| true));
        } else {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        world.barrier()?;
        if world.rank() == 1 {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let mut sum = [1.0];
        world.allreduce(&mut sum, fmpl::Sum)?;
        assert_eq!(sum, [2.0]);
        interrupt_by(None);
    }
);

on_ranks!(calls_that_do_not_wait_do_all_or_nothing, [2], 4, |_job, world| {
    let (comm, other) = (p2p::COMM_WORLD, 1 - world.rank() as i32);
    let mut data = [0u8; 8];
    let place = data.as_mut_ptr();
    // SAFETY: the array of this function, which nobody uses in a call.
    let at = |len| unsafe { Layout::bytes(place, len) };
    // No lane is there before the first message.
    assert!(!p2p::recv_soon(comm, at(8), other, 0)? && !p2p::send_soon(comm, at(8), other, 0)?);
    let mut token = [0u8];
    world.sendrecv(&[1u8], other as usize, 3, &mut token, other as usize, 3)?;
    world.barrier()?;
    if world.rank() == 0 {
        // Of two messages the second would have to wait for the first to be received.
        assert!(p2p::send_soon(comm, at(8), other, 0)? && !p2p::send_soon(comm, at(8), other, 0)?);
        world.barrier()?;
    } else {
        world.barrier()?;
        assert!(!p2p::recv_soon(comm, at(7), other, 0)?, "a message that does not fit");
        assert!(p2p::recv_soon(comm, at(8), other, 0)?);
        assert_eq!(p2p::received(comm, other, 0)?.len, 8);
        assert!(!p2p::recv_soon(comm, at(8), other, 0)?, "there is no other");
    }
});
