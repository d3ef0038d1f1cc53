//! Jobs whose ranks are threads of this process, on pretended nodes: real sockets, real keepers.

use crate::base::error::{Code, Result};
use crate::launch::place::Node;
use crate::launch::{Launch, id};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

/// The ranks of a job, by these nodes, each run by this.
fn ranks<T: Send>(nodes: &[u32], run: impl Fn(u32, Result<Launch>) -> T + Sync) -> Vec<T> {
    let (size, here) = (nodes.len() as u32, Node::here().unwrap());
    let id = id::create().unwrap();
    let one = |rank: u32, node: u32| {
        let place = id::place(&id, rank, size).unwrap();
        run(rank, Launch::meet(place, here.clone().pretending(node)))
    };
    std::thread::scope(|s| {
        let all: Vec<_> = (0..size).zip(nodes).map(|(rank, node)| s.spawn(move || one(rank, *node))).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn key(rank: u32) -> String {
    format!("value-{rank}")
}

/// Of lengths from nothing to several pieces.
fn value(rank: u32) -> Vec<u8> {
    (0..rank * 97 % 2500).map(|i| (i ^ rank) as u8).collect()
}

#[test]
fn values_nodes_and_fences() {
    for nodes in [
        vec![0, 0],
        vec![0, 1],
        vec![3, 1, 3, 2, 1, 3, 0],
        (0..40).map(|r| r / 3).collect(),
        (0..40).map(|r| r % 7).collect(),
    ] {
        ranks(&nodes, |rank, launch| {
            let (launch, size) = (launch.unwrap(), nodes.len() as u32);
            let here = |other: &u32| nodes[*other as usize] == nodes[rank as usize];
            assert_eq!(launch.local_ranks(), (0..size).filter(here).collect::<Vec<_>>());
            for round in 0..3 {
                let key = |rank| format!("{}.{round}", key(rank));
                launch.put(&key(rank), &value(rank + round)).unwrap();
                if rank == size - 1 {
                    launch.tell(&format!("told-{round}"), &value(20 + round)).unwrap();
                }
                launch.fence().unwrap();
                for other in [0, size / 2, size - 1, (rank * 7 + round) % size] {
                    assert_eq!(launch.get(other, &key(other)).unwrap(), value(other + round));
                }
                assert_eq!(launch.get(0, &format!("told-{round}")).unwrap(), value(20 + round));
            }
            let again = launch.put(&key(0), b"x").and(launch.put(&key(0), b"x")).unwrap_err();
            assert!(again.detail().contains("duplicate_key"), "{again}");
            let absent = launch.get(0, "nobody-put-this").unwrap_err();
            assert!(absent.code() == Code::Launch && absent.detail().contains("nobody-put-this"), "{absent}");
            launch.fence().unwrap();
            launch.finalize().unwrap();
        });
    }
}

/// Who keeps values may die: they are found with the next keeper. Nobody meets the others any more, and all are told
/// who is gone.
#[test]
fn a_keeper_dies_and_what_it_kept_is_found() {
    let nodes: Vec<u32> = (0..20).collect();
    let (ready, dead, over) = (Barrier::new(20), Barrier::new(20), Barrier::new(19));
    ranks(&nodes, |rank, launch| {
        let launch = launch.unwrap();
        launch.put(&key(rank), &value(rank)).unwrap();
        launch.fence().unwrap();
        ready.wait();
        if rank == 7 {
            drop(launch);
            dead.wait();
            return;
        }
        dead.wait();
        for other in 0..20 {
            let found = launch.get(other, &key(other)).unwrap_or_else(|e| panic!("rank {rank}: {e}"));
            assert_eq!(found, value(other));
        }
        let e = launch.fence().unwrap_err();
        assert!(e.code() == Code::Peer && e.detail().contains("rank 7"), "rank {rank}: {e}");
        // Nobody else goes before all have found all.
        over.wait();
    });
}

/// Ranks that have come are told which has died before the others had come.
#[test]
fn a_death_during_the_start_is_named_everywhere() {
    let nodes = [0, 0, 1, 1, 2, 2, 3];
    let (here, id) = (Node::here().unwrap(), id::create().unwrap());
    let (errors, all) = mpsc::channel();
    std::thread::scope(|s| {
        for rank in [0u32, 1, 2, 4] {
            let (here, errors, id) = (here.clone(), errors.clone(), id);
            s.spawn(move || {
                let place = id::place(&id, rank, 7).unwrap();
                let e = Launch::meet(place, here.pretending(nodes[rank as usize])).err().unwrap();
                errors.send((rank, e)).unwrap();
            });
        }
        // A keeper that goes as soon as it has come.
        let place = id::place(&id, 6, 7).unwrap();
        let joined = place.meet(&here.clone().pretending(3)).map_err(|e| e.to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        drop(joined.socket);
        drop(joined.helper);
    });
    drop(errors);
    let all: Vec<_> = all.iter().collect();
    assert_eq!(all.len(), 4);
    // Whoever asks when its keeper has gone for that reason, hears that this has gone.
    assert!(all.iter().any(|(_, e)| e.detail().contains("rank 6")), "{all:?}");
    assert!(all.iter().all(|(_, e)| [Code::Peer, Code::Launch].contains(&e.code())), "{all:?}");
}

/// One of the two is turned away; or, where they are not below each other, the sum over the ranks is wrong and nobody
/// starts.
#[test]
fn a_rank_that_is_started_twice_on_different_nodes_is_noticed() {
    for twice in [1u32, 2] {
        let (here, id) = (Node::here().unwrap(), id::create().unwrap());
        let texts: Vec<String> = std::thread::scope(|s| {
            let begun = [(0, 0), (1, 1), (2, 2), (twice, 3)].map(|(rank, node)| {
                let here = here.clone();
                s.spawn(move || {
                    let place = id::place(&id, rank, 3).unwrap();
                    match Launch::meet(place, here.pretending(node)).and_then(|launch| launch.finalize()) {
                        Ok(()) => String::new(),
                        Err(e) => e.detail().to_owned(),
                    }
                })
            });
            begun.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(texts.iter().any(|text| text.contains("the same rank")), "{texts:?}");
    }
}
