//! What a job tells of itself, on standard error and in numbers.
//!
//! | file | what it shows |
//! |---|---|
//! | `levels` | what each level of `FMPL_LOG` tells, and that the levels below tell nothing of it |
//! | `counters` | messages and bytes by way |
//! | `stats` | `fmpl run --stats`, of few ranks, of many, as JSON, of a rank that dies |
//! | `top` | `fmpl top`: what a job does, seen from without |
//! | `traced` | events, as text and as JSON: at the end, in a stall, at a signal (with the feature `trace` only) |

#[path = "../ranks/mod.rs"]
mod ranks;

mod counters;
mod levels;
mod stats;
mod top;
#[cfg(feature = "trace")]
mod traced;

use ranks::{Body, Test};

const TESTS: &[Test] = &[
    ("each_level_tells_its_own_and_what_is_above", levels::each_level),
    ("ranks_know_how_few_cores_they_have", levels::one_core),
    ("ranks_of_another_launcher_do_not_go_by_fmpl_run", levels::of_another_launcher),
    ("messages_are_counted_by_way", counters::each_way),
    ("short_messages_are_not_queued_after_long_ones_crossed", counters::in_turn_again),
    ("messages_over_rdma_are_counted_by_way", counters::over_rdma),
    ("a_table_says_what_each_rank_has_sent", stats::table),
    ("a_table_of_many_ranks_sums_up", stats::table_of_many),
    ("daemons_hand_the_numbers_on", stats::through_daemons),
    ("the_numbers_can_be_had_in_json", stats::in_json),
    ("there_are_numbers_of_a_rank_that_dies", stats::of_the_dead),
    ("numbers_are_left_where_nobody_else_leaves_any", stats::in_a_place_of_their_own),
    ("a_job_is_seen_from_without", top::sees),
    ("there_is_nothing_to_see", top::of_nothing),
    ("it_ends_with_the_job", top::to_the_end),
    #[cfg(feature = "trace")]
    ("events_are_written_as_text", traced::as_text),
    #[cfg(feature = "trace")]
    ("events_are_written_as_json", traced::as_json),
    #[cfg(feature = "trace")]
    ("events_are_written_in_a_stall", traced::in_a_stall),
    #[cfg(feature = "trace")]
    ("events_are_written_at_a_signal", traced::at_a_signal),
    #[cfg(feature = "trace")]
    ("events_are_the_last_ones", traced::the_last_ones),
];

const BODIES: &[Body] = &[
    ("is made wait", levels::is_made_wait),
    ("goes each way", counters::goes_each_way),
    ("goes far", counters::goes_far),
    ("goes in turn again", counters::goes_in_turn_again),
    ("goes one way", counters::goes_one_way),
    ("passes on", stats::passes_on),
    ("is watched", top::is_watched),
    #[cfg(feature = "trace")]
    ("does this and that", traced::does_this_and_that),
];

fn main() {
    ranks::main(TESTS, BODIES);
}
