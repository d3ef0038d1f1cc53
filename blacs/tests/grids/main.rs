//! What the public testers of the BLACS leave out, on jobs of 1 to 8 processes: combines in double precision, ties, coherent and
//! repeatable results, odd grids, hundreds of them, messages to oneself and across contexts, wrong arguments, the ends of a job.

#![allow(clippy::type_complexity, reason = "the types are those of the BLACS")]

#[path = "../../../tests/ranks/mod.rs"]
mod ranks;

mod combines;
mod endings;
mod grid;
mod messages;
mod names;

fn main() {
    let (mut tests, mut bodies) = (Vec::new(), Vec::new());
    for module in [combines::TABLE, messages::TABLE, grid::TABLE, endings::TABLE] {
        tests.extend_from_slice(module.0);
        bodies.extend_from_slice(module.1);
    }
    ranks::main(&tests, &bodies);
}

/// Tests and bodies of a module.
type Table = (&'static [ranks::Test], &'static [ranks::Body]);
