//! A rank whose memory is damaged takes nobody with it.
//!
//! One rank writes random words over random records of its own region, and of every record that it shares with others, while all work; then
//! it kills itself. The others may get errors or wrong bytes from it. They never crash, nothing is written outside of the buffers of its
//! messages, what they send to each other is right, and no wait of theirs goes on after its death.
//!
//! | file | what it does |
//! |---|---|
//! | `records` | which shared words there are, by the record that they belong to, and how they are damaged |
//! | `guarded` | memory that tells when somebody writes beside it |
//! | `scene` | what the ranks do meanwhile, and what must hold |
//! | `aimed` | single words of single records, each with its outcome |
//!
//! Each run has a number, its **seed**, from which all that is drawn follows. `DAMAGE_SEEDS=1000..2000 cargo test --test damage -- scribbled`
//! tries those; the line of one that fails says how to run it alone. In ordinary runs there are few.

#[path = "../ranks/mod.rs"]
mod ranks;

mod aimed;
mod guarded;
mod records;
mod scene;

use ranks::{Body, Test};

const TESTS: &[Test] = &[
    ("the_word_of_a_posting", aimed::posting),
    ("the_words_of_a_chain", aimed::chain),
    ("the_shape_of_a_ring", aimed::any_slots),
    ("the_address_of_a_heap", aimed::heap),
    ("scribbled_records_harm_nobody_else", scene::seeds),
];

const BODIES: &[Body] = &[
    ("scribble", scene::scribble),
    ("damages a posting", aimed::damages_a_posting),
    ("damages a chain", aimed::damages_a_chain),
    ("damages its slots", aimed::damages_its_slots),
    ("damages its heap", aimed::damages_its_heap),
];

fn main() {
    ranks::main(TESTS, BODIES);
}
