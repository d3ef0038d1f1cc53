//! A communicator is freed by one thread of a rank while others look at the rank's lanes: one that tells of a death, one that holds lanes,
//! one that counts memory. A lane that somebody may still use is not freed.

use crate::stage::model;
use fmpl::base::unused::Unused;
use fmpl::p2p::COMM_WORLD;
use fmpl::p2p::model::{COMMUNICATOR, Terms, World};

/// One thread uses a communicator for the first time and frees it, another does something with the lanes.
fn freed(name: &str, looks: impl Fn(World) + Copy + Send + Sync + 'static) {
    model(name, Terms { meet: true, ..Terms::default() }, move |w| {
        let frees = w.spawn(0, move || {
            w.uses_communicator();
            // SAFETY: no other thread is in a call on the communicator; whether its lanes are used otherwise is what the model is about.
            let unused = unsafe { Unused::promised() };
            w.endpoint(0).lanes.forget(COMMUNICATOR, &unused);
        });
        let looks = w.spawn(0, move || looks(w));
        frees.join().expect("the thread that frees");
        looks.join().expect("the thread that looks");
    });
}

#[test]
fn freed_beside_a_death() {
    freed("freed_beside_a_death", |w| w.is_told_of_a_death());
}

/// As [`fmpl::p2p::endpoint::Endpoint::say_broken_remote`] and the thread of the fabric do with lanes between nodes.
#[test]
fn freed_while_it_is_held() {
    freed("freed_while_it_is_held", |w| {
        for lane in w.endpoint(0).lanes.hold(|lane| lane.comm() == COMMUNICATOR) {
            assert_eq!((lane.world, lane.comm()), (1, COMMUNICATOR));
        }
    });
}

#[test]
fn freed_while_memory_is_counted() {
    freed("freed_while_memory_is_counted", |_| {
        assert!(!fmpl::comm::memory().expect("parts").is_empty());
    });
}

/// What the two did before: they looked at a list of the lanes that the table no longer guards. The model finds it.
#[test]
#[should_panic(expected = "Causality violation")]
fn freed_lanes_of_a_list_are_used() {
    freed("freed_lanes_of_a_list_are_used", |w| {
        let list = w.endpoint(0).lanes.all().clone();
        for lane in list {
            lane.private_memory();
        }
    });
}

/// A thread finds a lane, without the lock, that another has just made.
#[test]
fn found_when_it_is_made() {
    model("found_when_it_is_made", Terms { meet: true, ..Terms::default() }, |w| {
        let lane = move || w.endpoint(0).lanes.find(fmpl::lane::Lane::key_of(COMM_WORLD, 1));
        let makes = w.spawn(0, move || {
            w.is_greeted();
            assert_eq!(w.endpoint(0).lane(1).expect("a lane").world, 1);
        });
        let finds = w.spawn(0, move || assert!(lane().is_none_or(|lane| lane.world == 1)));
        makes.join().expect("the thread that makes it");
        finds.join().expect("the thread that finds it");
    });
}
