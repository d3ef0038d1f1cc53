//! Collective calls on real processes: random programs against a serial reference, every way forced, lost ranks, wrong arguments.
//!
//! | file | what it shows |
//! |---|---|
//! | `random` | random sizes, roots, functions on 1 to 16 ranks; every byte is compared with what one process computes |
//! | `communicators` | the same on communicators that are made and freed meanwhile, of members drawn anew each time |
//! | `begun` | calls that do not wait, one at a time and several |
//! | `multicast` | broadcasts between nodes by a multicast group: each packet leaves its root once, lost ones come all the same |
//! | `lost` | a rank that is killed is an error at all others within moments, in every call |
//! | `calls` | zero sizes, one rank, wrong arguments |
//! | `lengths` | ranks that call with different lengths, or make different calls, are told so |
//! | `reductions` | every predefined function in every call, on 1 to 8 ranks |
//! | `uneven` | gatherv, allgatherv, scatterv, alltoallv, exscan |
//! | `unable` | a rank that has no memory for its part of a call: the later ones take no message of that one's |
//! | `levels` | levels of the network: messages cross the upper ones as rarely as can be |
//! | `taken` | lines that readers take over: every payload of calls in a row is compared, with and without |
//!
//! `FMPL_TEST_SEED=n` plays one random program only; `FMPL_TEST_LONG=1` plays for a minute.

#[path = "../ranks/mod.rs"]
mod ranks;
#[path = "../reference/mod.rs"]
mod reference;

mod begun;
mod calls;
mod communicators;
mod lengths;
mod levels;
mod lost;
mod multicast;
mod random;
mod reductions;
mod taken;
mod unable;
mod uneven;

use ranks::{Body, Test};

const TESTS: [Test; 25] = [
    ("random_programs_agree_with_one_process", random::automatic),
    ("communicators_come_and_go_meanwhile", communicators::automatic),
    ("every_way_agrees_with_one_process", random::forced),
    ("every_way_between_nodes_agrees_too", random::between),
    ("every_call_between_nodes_over_rdma", random::over_rdma),
    ("broadcasts_by_multicast_over_rdma", multicast::over_rdma),
    ("where_no_group_can_be_joined_broadcasts_go_by_trees", multicast::without),
    ("a_lost_rank_is_an_error_for_all", lost::killed),
    ("a_rank_that_nobody_has_met_is_missed_too", lost::unmet),
    ("a_function_that_panics_is_an_error_for_all", lost::panicked),
    ("a_panic_in_the_world_leaves_other_communicators_alone", lost::panicked_in_the_world),
    ("a_rank_that_cannot_do_its_part_is_an_error_for_all", unable::told),
    ("a_rank_without_an_arena_is_an_error_for_all", unable::told_without_an_arena),
    ("who_is_late_is_told_by_who_has_freed", unable::told_late),
    ("a_panic_into_the_c_interface_ends_its_process", lost::unwound_into_c),
    ("a_group_without_the_dead_goes_on", calls::group),
    ("arguments", calls::arguments),
    ("different_lengths_are_an_error_that_names_them", lengths::told),
    ("different_lengths_between_nodes_are_an_error_of_the_call_alone", lengths::told_between),
    ("several_calls_are_under_way_at_a_time", begun::scenes),
    ("uneven_blocks_come_to_their_places", uneven::as_one_process_would),
    ("every_predefined_function_agrees_with_one_process", reductions::agree),
    ("few_messages_cross_upper_levels", levels::crossings),
    ("levels_that_cannot_be_are_refused", levels::refused),
    ("lines_taken_over_keep_every_payload", taken::payloads),
];

const BODIES: [Body; 22] = [
    ("loses a member", calls::loses_a_member),
    ("plays", random::plays),
    ("plays on communicators", communicators::plays),
    ("broadcasts", multicast::broadcasts),
    ("loses in a broadcast", multicast::loses),
    ("compares bits", random::compares_bits),
    ("loses", lost::loses),
    ("panics", lost::panics),
    ("has no addresses", unable::has_no_addresses),
    ("has no arena", unable::has_no_arena),
    ("is told late", unable::is_told_late),
    ("unwinds into C", lost::unwinds_into_c),
    ("calls", calls::calls),
    ("lengths differ", lengths::differ),
    ("lengths differ between nodes", lengths::differ_between),
    ("other calls", lengths::other_calls),
    ("begins several", begun::begins_several),
    ("leaves some", begun::leaves_some),
    ("gives uneven blocks", uneven::gives),
    ("reduces", reductions::reduces),
    ("counts crossings", levels::counts_crossings),
    ("takes over", taken::takes_over),
];

fn main() {
    ranks::main(&TESTS, &BODIES);
}
