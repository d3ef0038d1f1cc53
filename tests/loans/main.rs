//! Messages that are handed over, by the C functions, between real processes.
//!
//! | file | what it shows |
//! |---|---|
//! | `lend` | the C calls of loans, with slices |
//! | `hand` | every size and way of waiting; order; probes; requests; misuse; bounds; what finalize says |
//! | `mixed` | loans to ordinary receives, ordinary messages to receives of loans |
//! | `any` | to receivers of any source |
//! | `many` | one loan to several |
//! | `between` | between nodes, where there is a device: each is sent like a message, and received into a loan |
//! | `deaths` | the end of the owner, of the holder, of both; a pool through kills: none lost, none twice |
//! | `aimed` | a peer that damages the words of a loan |

#[path = "../ranks/mod.rs"]
mod ranks;

mod aimed;
mod any;
mod between;
mod deaths;
mod hand;
mod lend;
mod many;
mod mixed;

use ranks::{Body, Job, Test};

const TESTS: &[Test] = &[
    ("loans_of_every_size_are_handed_over", every_size),
    ("what_may_not_be_done_with_a_loan_is_an_error", || run(2, "misuse", &[""])),
    ("loans_are_bounded", || run(2, "bounded", &["FMPL_LOANS=8,1M"])),
    ("finalize_names_loans_that_are_held", || run(2, "held", &[""])),
    ("threads_take_send_and_return", || run(2, "threads", &["", "FMPL_WAIT=block"])),
    ("loans_go_to_receivers_of_any_source", any_source),
    ("loans_go_to_other_nodes", between_nodes),
    ("one_loan_goes_to_several", || run(4, "to some", &["FMPL_LOANS=10,100M", "FMPL_LOANS=10,100M FMPL_WAIT=block"])),
    ("one_loan_goes_to_several_nodes", to_nodes),
    ("several_hold_a_loan_and_some_die", many::deaths),
    ("what_an_owner_has_lent_is_readable_after_its_end", deaths::owner),
    ("what_a_dead_holder_had_comes_back", deaths::holder),
    ("a_pool_goes_through_kills", deaths::pool),
    ("the_words_of_a_loan", aimed::words),
];

const BODIES: &[Body] = &[
    ("hand", hand::scenes),
    ("misuse", hand::misuse),
    ("bounded", hand::bounded),
    ("held", hand::held),
    ("threads", hand::threads),
    ("from all", any::from_all),
    ("between", between::scenes),
    ("to some", many::to_some),
    ("to nodes", many::to_nodes),
    ("some die", many::some_die),
    ("owner ends", deaths::owner_ends),
    ("holder ends", deaths::holder_ends),
    ("pool", deaths::pool_body),
    ("damages a loan", aimed::damages_a_loan),
];

fn main() {
    ranks::main(TESTS, BODIES);
}

fn run(ranks: usize, body: &str, settings: &[&str]) {
    for settings in settings {
        Job::new(ranks, body).settings(settings).run();
    }
}

fn every_size() {
    let settings = ["", "FMPL_WAIT=block", "FMPL_WAIT=spin", "FMPL_CMA=off", "FMPL_SHM_PATH=ring", "FMPL_SPOOL=64k"];
    run(2, "hand", &settings);
    run(1, "hand", &[""]);
}

fn between_nodes() {
    if ranks::has_devices() {
        Job::new(3, "between").nodes(ranks::Nodes::Cyclic(3)).seconds(300).run();
    }
}

fn to_nodes() {
    Job::new(3, "to nodes").nodes(ranks::Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp FMPL_LOANS=4,100M").run();
}

fn any_source() {
    let settings = ["", "FMPL_CMA=off", "FMPL_ANY_SLOTS=4 FMPL_WAIT=block", "FMPL_ANY_SLOTS=16 FMPL_SPREAD=4"];
    run(3, "from all", &settings);
    run(1, "from all", &[""]);
}
