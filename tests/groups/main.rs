//! Communicators beside the world: who is in them, that their messages never mix, that nothing is left of those that were freed.
//!
//! | file | what it shows |
//! |---|---|
//! | `members` | create, split, dup, translate: ranks and orders; traffic on overlapping ones, with holes, of one rank, reversed |
//! | `come_and_go` | ten thousand made and freed; hundreds at once; what was left in a freed one never shows in its successor |
//! | `wrong` | freed handles, different calls, requests under way; a rank killed while others agree |
//! | `freed` | messages of any source to who has freed: an error of whoever waits |
//! | `some` | made by some ranks alone: any lists, wrong ones, by those who survive |
//! | `side_by_side` | shared windows: memory of a node's ranks, one part behind the other |
//! | `programs` | random programs of making, freeing and traffic |

#[path = "../ranks/mod.rs"]
mod ranks;

mod come_and_go;
mod freed;
mod members;
mod programs;
mod side_by_side;
mod some;
mod wrong;

use ranks::{Body, Test};

const TESTS: [Test; 17] = [
    ("everybody_finds_their_place", members::everybody),
    ("nodes_have_communicators", members::of_nodes),
    ("messages_of_different_communicators_never_mix", members::never_mix),
    ("many_indices_of_many_ranks", members::many_indices),
    ("ten_thousand_leave_nothing_behind", come_and_go::ten_thousand),
    ("a_thousand_leave_nothing_behind_between_nodes", come_and_go::between_nodes),
    ("hundreds_are_alive_at_once", come_and_go::hundreds),
    ("one_more_than_there_can_be_is_an_error_that_says_so", come_and_go::all_places),
    ("a_successor_sees_nothing_of_the_freed", come_and_go::successors),
    ("who_frees_late_disturbs_nobody", come_and_go::late),
    ("wrong_use_gets_an_error", wrong::use_),
    ("a_killed_rank_is_an_error_at_all_others", wrong::killed),
    ("who_has_freed_is_an_error_of_who_sends_to_any_source", freed::told),
    ("some_ranks_make_one_of_their_own", some::lists),
    ("survivors_go_on_without_the_dead", some::survivors),
    ("windows_are_side_by_side", side_by_side::windows),
    ("random_programs", programs::random),
];

const BODIES: [Body; 18] = [
    ("finds its place", members::finds_its_place),
    ("finds its node", members::finds_its_node),
    ("sends on all", members::sends_on_all),
    ("uses many indices", members::uses_many_indices),
    ("makes and frees", come_and_go::makes_and_frees),
    ("keeps hundreds", come_and_go::keeps_hundreds),
    ("takes all places", come_and_go::takes_all_places),
    ("leaves messages", come_and_go::leaves_messages),
    ("is sent to when freed", come_and_go::is_sent_to_when_freed),
    ("is wrong", wrong::is_wrong),
    ("loses somebody", wrong::loses_somebody),
    ("sends to who has freed", freed::sends_to_who_has_freed),
    ("makes it with some", some::makes_it_with_some),
    ("survives", some::survives),
    ("has windows", side_by_side::has_windows),
    ("is too far for a window", side_by_side::is_too_far),
    ("loses a neighbour", side_by_side::loses_a_neighbour),
    ("runs a program", programs::runs),
];

fn main() {
    ranks::main(&TESTS, &BODIES);
}
