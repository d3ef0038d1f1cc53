//! Global memory on real processes, by its C functions.
//!
//! | file | what it shows |
//! |---|---|
//! | `reach` | copies and atomic operations between all kinds of memory of all ranks, every size, every way |
//! | `order` | what starts after what; full queues |
//! | `keys` | registration, keys that are used again, wrong addresses |
//! | `refused` | operations that are refused, and what is ordered after them |
//! | `sums` | many ranks on the same words: the sums are right |
//! | `long` | transfers of more than 4 GiB; the helper |
//! | `life` | renumbering, several inits, dead ranks |
//! | `again` | joining again after having left, a hundred times |
//! | `tickets` | tickets of remote commands between nodes that nobody uses; dead ranks there |
//! | `between` | the same between nodes, where there are RDMA devices: see `tests/rig` |
//!
//! `FMPL_TEST_LONG=1` does as much as is promised: 10 million mixed atomic operations, 3 million remote commands.

#[path = "../ranks/mod.rs"]
mod ranks;

mod acp;
mod again;
mod between;
mod keys;
mod life;
mod long;
mod order;
mod reach;
mod refused;
mod sums;
mod tickets;

use ranks::{Body, Test};

const TESTS: [Test; 21] = [
    ("every_memory_is_reached", reach::everywhere),
    ("a_third_rank_copies_private_memory", reach::third),
    ("few_ranks_are_mapped_at_a_time", reach::by_turns),
    ("operations_start_in_their_order", order::in_order),
    ("full_queues_go_on", order::full),
    ("a_program_that_computes_is_served", order::served),
    ("wrong_use_is_an_error", keys::wrong),
    ("what_is_refused_is_told_and_keeps_its_followers_back", refused::told),
    ("keys_are_used_again", keys::again),
    ("no_old_memory_under_a_new_registration", keys::renewed),
    ("sums_of_mixed_atomics", sums::mixed),
    ("remote_commands_do_not_slow_down", sums::commands),
    ("copies_of_any_length", long::copies),
    ("a_helper_is_there_when_it_is_needed", long::helpers),
    ("ranks_are_renumbered", life::renumbered),
    ("inits_are_counted", life::counted),
    ("a_process_joins_again_a_hundred_times", again::joined),
    ("joining_again_is_refused_without_harm", again::refused),
    ("a_dead_rank_is_an_error", life::dead),
    ("dead_ranks_leave_no_hole_in_the_queue", life::holes),
    ("the_same_between_nodes", between::nodes),
];

const BODIES: [Body; 25] = [
    ("reaches", reach::reaches),
    ("asks_around", reach::asks_around),
    ("turns", reach::turns),
    ("orders", order::orders),
    ("follows", order::follows),
    ("fills", order::fills),
    ("computes", order::computes),
    ("errs", keys::errs),
    ("refuses", refused::refuses),
    ("registers", keys::registers),
    ("renews", keys::renews),
    ("sums", sums::sums),
    ("commands", sums::commanding),
    ("copies_much", long::copies_much),
    ("helps", long::helps),
    ("renumbers", life::renumbers),
    ("counts", life::counts),
    ("rejoins", again::rejoins),
    ("may_not_rejoin", again::may_not_rejoin),
    ("rejoins_alone", again::rejoins_alone),
    ("loses", life::loses),
    ("dies", life::dies),
    ("leaves", tickets::leaves),
    ("asks", tickets::asks),
    ("draws", tickets::draws),
];

fn main() {
    ranks::main(&TESTS, &BODIES);
}
