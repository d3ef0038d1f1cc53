//! Messages of any source, on jobs of several processes.
//!
//! | file | what it shows |
//! |---|---|
//! | `traffic` | order, sizes, modes, requests, threads, by every way that long messages take |
//! | `full` | a full ring: how many sends complete, who is woken, what memory it takes; a ring in shares |
//! | `multicast` | groups of all kinds, many at once; non-members and the master stopped; a member that dies |
//! | `tasks` | one receive for a task or a multicast |
//! | `overlap` | groups that overlap, all under way at once, between nodes; a death in the middle of it |
//! | `rdma` | the same between nodes |
//! | `faults` | senders that die, with and without a slot of their own; stopped ones; wrong arguments |

#[path = "../ranks/mod.rs"]
mod ranks;

mod faults;
mod full;
mod multicast;
mod overlap;
mod rdma;
mod tasks;
mod traffic;

use ranks::{Body, Test};

const TESTS: [Test; 18] = [
    ("all_send_to_one_in_order", traffic::in_order),
    ("threads_send_and_receive_at_once", traffic::threads),
    ("requests_and_probes", traffic::requests),
    ("a_stopped_receiver_takes_exactly_as_many_as_fit", full::stopped),
    ("shares_take_turns", full::turns),
    ("memory_stays_and_nothing_is_lost", full::memory),
    ("two_full_rings_facing_each_other", full::facing),
    ("one_place_is_enough", full::one),
    ("a_dead_sender_is_told_and_passed_over", faults::dead),
    ("multicast_to_any_group", multicast::groups),
    ("multicast_needs_nobody_else", multicast::stopped),
    ("who_gave_contact_up_receives_all_the_same", multicast::strangers),
    ("a_dead_member_is_told_to_the_master", multicast::dead),
    ("overlapping_multicasts_end", overlap::overlapping),
    ("and_when_a_rank_dies", overlap::deaths),
    ("everything_between_nodes_over_rdma", rdma::over_rdma),
    ("a_task_or_a_multicast_whichever_comes", tasks::tasks),
    ("wrong_arguments_do_no_harm", faults::wrong),
];

const BODIES: [Body; 21] = [
    ("in order", traffic::sends_in_order),
    ("threads", traffic::uses_threads),
    ("requests", traffic::uses_requests),
    ("stopped", full::is_stopped),
    ("takes turns", full::takes_turns),
    ("memory", full::counts_memory),
    ("facing", full::faces),
    ("takes one", full::takes_one),
    ("dies with a slot", faults::dies_with_a_slot),
    ("host dies", faults::host_dies),
    ("dies in traffic", faults::dies_in_traffic),
    ("groups", multicast::sends_to_groups),
    ("mcast stopped", multicast::is_stopped),
    ("mcast of a stranger", multicast::gives_contact_up),
    ("mcast member dies", multicast::member_dies),
    ("tasks and multicasts", tasks::come_in_any_order),
    ("task or multicast in turn", tasks::take_turns),
    ("dies beside tasks", tasks::one_dies),
    ("storms", overlap::storms),
    ("dies in a storm", overlap::dies_in_a_storm),
    ("wrong", faults::gives_wrong_arguments),
];

/// A number that the test set for this body.
fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Places of a ring for the senders of this job, who are all on the receiver's node or all on others.
fn places() -> u64 {
    let slots = number_of("FMPL_ANY_SLOTS").unwrap();
    if number_of("APART").is_some() { slots / 2 } else { slots }
}

fn main() {
    ranks::main(&TESTS, &BODIES);
}
