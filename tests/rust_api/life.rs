//! Init and finalize.

use fmpl::Code;

use crate::{filled, start};

/// As the test, starts the ranks and gives what they printed; as a rank, runs the body.
fn ranks(name: &str, ranks: usize, body: fn()) -> Option<std::process::Output> {
    if crate::as_rank().is_some() {
        body();
        return None;
    }
    Some(start(&format!("{}::{name}", module_path!()), ranks))
}

#[test]
fn init_is_counted_and_indices_grow() {
    let output = ranks("init_is_counted_and_indices_grow", 2, || {
        assert!(!fmpl::initialized());
        let job = fmpl::init(2).unwrap();
        let peer = 1 - job.world().rank();
        assert_eq!(job.world().send(&[1], peer, 2).unwrap_err().code(), Code::Index);
        {
            // A library that sits on FMPL.
            let second = fmpl::init(100).unwrap();
            let held = second.world().sender(peer, 1).unwrap();
            assert_eq!(job.world().send(&[1], peer, 1).unwrap_err().code(), Code::Busy);
            drop(held);
            second.finalize().unwrap();
        }
        assert!(fmpl::initialized());
        job.world().barrier().unwrap();
        let mut data = [0u64; 10];
        let mine = filled(10, peer);
        assert_eq!(job.world().sendrecv(&mine, peer, 99, &mut data, peer, 99).unwrap().index, 99);
        drop(job);
        assert!(!fmpl::initialized());
    });
    if let Some(output) = output {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_job_may_live_in_an_arc_shared_by_threads() {
    let output = ranks("a_job_may_live_in_an_arc_shared_by_threads", 2, || {
        let job = std::sync::Arc::new(fmpl::init(4).unwrap());
        let threads: Vec<_> = (0..4usize)
            .map(|index| {
                let job = job.clone();
                std::thread::spawn(move || {
                    let world = job.world();
                    let (peer, mut data) = (1 - world.rank(), [0; 200]);
                    world.sendrecv(&filled(200, index), peer, index, &mut data, peer, index).unwrap();
                    assert_eq!(data[..], filled(200, index));
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    if let Some(output) = output {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn finalize_names_what_nobody_received() {
    let output = ranks("finalize_names_what_nobody_received", 2, || {
        let job = fmpl::init(9).unwrap();
        let rank = job.world().rank();
        if rank == 0 {
            job.world().send(&[5u8], 1, 7).unwrap();
        }
        match (rank, job.finalize()) {
            (0, Err(error)) => {
                assert_eq!(error.code(), Code::Pending);
                assert!(error.detail().contains("peer 1, index 7"), "{error}");
            }
            (_, ended) => ended.unwrap(),
        }
    });
    if let Some(output) = output {
        // Nothing has panicked, and the process fails nevertheless.
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && err.contains("finalize has failed") && err.contains("index 7"),
            "{output:?}"
        );
    }
}

#[test]
fn a_panic_does_not_wait_for_the_others() {
    let output = ranks("a_panic_does_not_wait_for_the_others", 2, || {
        let job = fmpl::init(1).unwrap();
        let world = job.world();
        if world.rank() == 1 {
            panic!("rank 1 gives up");
        }
        // Rank 0 waits for what never comes, and is told or ended.
        assert_eq!(world.recv(&mut [0u8], 1, 0).unwrap_err().code(), Code::Peer);
        assert_eq!(job.finalize().unwrap_err().code(), Code::Peer);
    });
    if let Some(output) = output {
        assert!(String::from_utf8_lossy(&output.stderr).contains("rank 1 gives up"));
        assert_eq!(output.status.code(), Some(101), "{output:?}");
    }
}

#[test]
fn the_version_is_that_of_the_package_and_of_c() {
    let [major, minor, patch] = fmpl::version();
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    assert_eq!(10_000 * major + 100 * minor + patch, fmpl::ffi::c::FMPL_VERSION as u32);
}
