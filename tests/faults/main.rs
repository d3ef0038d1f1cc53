//! What must hold when something goes wrong: ranks killed at any moment, stopped, forked; deadlocks; strangers.
//!
//! | file | what it shows |
//! |---|---|
//! | `kill` | SIGKILL of a random rank in random traffic: who waits for it gets an error, the others go on, nothing is left behind; a rank that executes another program |
//! | `late` | a peer stopped for longer than every time-out, before first contact, in traffic, in collective calls, in global memory: the job goes on |
//! | `moments` | SIGKILL at any moment from `exec` to the end of finalize, in every stage of init: each survivor is told |
//! | `stop` | a stopped process does not hold up what is not its turn; fork, `system` and `popen` after init; a child that outlives its parent |
//! | `stall` | who waits for whom; deadlocks, reported or ended |
//! | `between` | a rank killed on another node, links and connections that break, a fork, wrong names, a whole kernel lost (`tests/rig/across`) |
//! | `forged` | datagrams of a stranger on another node: said again, altered, made up |
//! | `sandbox` | a system that refuses `membarrier` to one side, the other, both, or later: no withdrawn receive is written, no event is lost |
//! | `descriptors` | processes without standard input, output, error: nothing of the library's is taken for them |
//! | `signals` | signals come to the program's threads only, and harm no wait |
//! | `window` | a message longer than all that the spool can have, which nobody can put |
//! | `life` | finalize, init several times, calls outside, wrong arguments, different counts, a stranger at the socket |

#[path = "../ranks/mod.rs"]
mod ranks;

mod between;
mod descriptors;
mod forged;
mod kill;
mod late;
mod life;
mod moments;
mod sandbox;
mod signals;
mod stall;
mod stop;
mod window;

use ranks::{Body, Test};

const TESTS: &[Test] = &[
    ("a_killed_rank_is_an_error_for_who_needs_it", kill::killed_in_traffic),
    ("a_rank_killed_at_any_moment_is_told_of", moments::killed_at_any_moment),
    ("a_death_in_init_is_told", moments::death_in_init),
    ("a_peer_stopped_for_long_is_waited_for", late::stopped_for_long),
    ("many_late_peers_are_told_of_a_death_side_by_side", late::many_late),
    ("few_connections_are_not_held_by_stopped_peers", late::few_places),
    ("a_message_that_has_no_place_is_an_error", window::too_much),
    ("who_only_tests_for_any_source_hears_of_a_death", kill::tested_for),
    ("what_a_dead_rank_has_sent_is_received", kill::last_words),
    ("half_a_message_of_a_dead_rank_is_an_error", kill::half_a_message),
    ("a_rank_that_executes_another_program_is_dead", kill::another_program),
    ("a_stopped_receiver_gets_its_message", stop::receiver_stopped),
    ("a_stopped_sender_has_sent", stop::sender_stopped),
    ("a_forked_child_gets_an_error", stop::forked),
    ("a_forked_child_does_not_hide_the_end_of_its_parent", stop::child_left),
    ("a_cycle_of_waits_is_a_deadlock", stall::cycles),
    ("a_deadlock_can_end_its_waits", stall::aborted),
    ("a_long_wait_says_for_whom", stall::long_wait),
    ("a_wait_that_ends_by_itself_is_no_deadlock", stall::buffered),
    ("a_long_first_contact_says_with_whom", stall::first_contact),
    ("a_line_on_standard_error_is_one_write", stall::lines),
    ("want_of_addresses_is_an_error_of_init", life::few_addresses),
    ("the_limit_of_descriptors_is_put_back", life::limit_put_back),
    ("want_of_descriptors_is_named", life::no_descriptors),
    ("no_descriptor_is_taken_for_a_standard_one", descriptors::none),
    ("a_withdrawn_receive_is_not_written_in_a_sandbox", sandbox::withdrawn),
    ("no_event_is_lost_in_a_sandbox", sandbox::told_of_everything),
    ("signals_come_to_the_program", signals::come_to_the_program),
    ("signals_harm_no_wait", signals::harm_no_wait),
    ("finalize_names_what_is_left", life::pending),
    ("finalize_delivers", life::delivers),
    ("wrong_arguments_do_no_harm", life::wrong_arguments),
    ("an_abort_outside_of_a_job_is_no_success", life::aborted_outside),
    ("the_smaller_count_holds", life::counts),
    ("a_stranger_does_no_harm", life::stranger),
    ("another_node_without_a_way_is_named", life::other_node),
    ("a_rank_killed_on_another_node_is_an_error_for_who_needs_it", between::killed_there),
    ("a_rank_killed_on_another_node_before_it_was_met", between::killed_unmet),
    ("a_lost_link_to_another_node_is_an_error_of_the_pair", between::link_lost),
    ("a_link_to_another_node_that_comes_back_loses_nothing", between::link_back),
    ("an_address_on_another_node_is_asked_for_again", between::address_unknown),
    ("another_node_that_cannot_be_reached_is_an_error_of_init", between::no_way_there),
    ("a_stopped_rank_on_another_node_is_waited_for", between::stopped_there),
    ("a_fork_does_not_part_a_rank_from_another_node", between::forked_there),
    ("wishes_that_cannot_be_had_on_the_way_to_another_node_are_answered", between::wrong_wishes),
    ("a_late_rank_on_another_node_is_tried_again", between::late_there),
    ("a_rank_that_is_late_on_another_node_without_a_ticket_is_not_given_up", between::late_without_a_ticket),
    ("forged_datagrams_from_another_node_are_not_taken", forged::forged_there),
    ("a_damaged_record_from_another_node_is_an_error_of_the_pair", between::damaged_there),
    ("a_connection_to_another_node_that_breaks_is_an_error_of_the_pair", between::connections_break),
];

const BODIES: &[Body] = &[
    ("traffic", kill::traffic),
    ("needs one that may die", moments::needs_one_that_may_die),
    ("is stopped for long", late::is_stopped_for_long),
    ("tells many late", late::tells_many_late),
    ("sends to many late", late::sends_to_many_late),
    ("sends too much", window::sends_too_much),
    ("dies in the other's init", moments::dies_in_the_others_init),
    ("speaks and dies", kill::speaks_and_dies),
    ("dies in a message", kill::dies_in_a_message),
    ("tests for any source", kill::tests_for_any_source),
    ("raises its limit", life::raises_its_limit),
    ("has no descriptors", life::has_no_descriptors),
    ("executes another program", kill::executes_another_program),
    ("stops as receiver", stop::stops_as_receiver),
    ("stops as sender", stop::stops_as_sender),
    ("forks", stop::forks),
    ("leaves a child", stop::leaves_a_child),
    ("waits in a cycle", stall::waits_in_a_cycle),
    ("waits in a late cycle", stall::waits_in_a_late_cycle),
    ("waits long", stall::waits_long),
    ("waits until it buffers", stall::waits_until_it_buffers),
    ("meets one that is gone", stall::meets_one_that_is_gone),
    ("reads its own report", stall::reads_its_own_report),
    ("has few addresses", life::has_few_addresses),
    ("has no standard descriptors", descriptors::has_no_standard_descriptors),
    ("withdraws from a put", sandbox::withdraws_from_a_put),
    ("loops on events", sandbox::loops_on_events),
    ("takes a signal by itself", signals::takes_a_signal_by_itself),
    ("is interrupted", signals::is_interrupted),
    ("leaves a message", life::leaves_a_message),
    ("leaves a request", life::leaves_a_request),
    ("receives last", life::receives_last),
    ("gives wrong arguments", life::gives_wrong_arguments),
    ("counts differ", life::counts_differ),
    ("is visited", life::is_visited),
    ("aborts outside", life::aborts_outside),
    ("is alone", life::is_alone),
    ("has no way to another node", life::has_no_way),
    ("dies on another node", between::dies_on_another_node),
    ("dies unmet", between::dies_unmet),
    ("says a word", between::says_a_word),
    ("has a loose cable", between::has_a_loose_cable),
    ("loses its link", between::loses_its_link),
    ("stops on another node", between::stops_on_another_node),
    ("hears of a posting late", between::hears_of_a_posting_late),
    ("is late without a ticket", between::is_late_without_a_ticket),
    ("is late on another node", between::is_late_on_another_node),
    ("is spoken to by a stranger", forged::is_spoken_to_by_a_stranger),
    ("damages a record on another node", between::damages_a_record_there),
    ("uses a wrong key", between::uses_a_wrong_key),
    ("breaks its queue pair", between::breaks_its_queue_pair),
    ("overruns its queue", between::overruns_its_queue),
    ("takes nothing more", between::takes_nothing_more),
    ("loses a kernel", between::loses_a_kernel),
];

fn main() {
    ranks::main(TESTS, BODIES);
}
