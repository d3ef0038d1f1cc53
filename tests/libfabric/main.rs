//! The network by libfabric, as far as this machine has what it takes.
//!
//! | file | what it shows |
//! |---|---|
//! | `layout` | our declarations are those of the C headers, where there are some |
//! | `choice` | which network is chosen, by itself or by name; what is refused in init, and with which words |
//! | `incast` | what a receiver takes to whom all others send |
//! | `leaving` | ranks that end after their peers, which no provider tells them |
//! | `claim` | a claim of a receive of any index that comes too late |
//!
//! What messages promise over it the other programs show: `tests/run libfabric` runs them between pretended nodes.

#[path = "../headers/mod.rs"]
mod headers;
#[path = "../ranks/mod.rs"]
mod ranks;

mod choice;
mod claim;
mod incast;
mod layout;
mod leaving;

use ranks::{Body, Test, skip};

const TESTS: &[Test] = &[
    ("declarations_are_those_of_the_headers", layout::declarations_are_those_of_the_headers),
    ("a_job_on_one_node_loads_nothing", choice::loads_nothing),
    ("a_network_is_chosen_by_itself", choice::by_itself),
    ("ranks_that_choose_different_networks_are_named", choice::different_ones),
    ("what_cannot_be_had_is_an_error_of_init", choice::cannot_be_had),
    ("a_provider_is_used_or_refused", choice::used_or_refused),
    ("a_receiver_takes_nothing_for_what_it_does_not_receive", incast::takes_nothing),
    ("a_late_claim_takes_no_posting", claim::is_late),
    ("a_rank_ends_whose_peers_have_gone", leaving::ends_all_the_same),
];

const BODIES: &[Body] = &[
    ("looks for libraries", choice::looks_for_libraries),
    ("says a word", choice::says_a_word),
    ("chooses its own network", choice::chooses_its_own),
    ("fails in init", choice::fails_in_init),
    ("is sent to by all", incast::is_sent_to_by_all),
    ("claims late", claim::claims_late),
    ("meets all often", leaving::meets_all_often),
];

fn main() {
    ranks::main(TESTS, BODIES);
}
