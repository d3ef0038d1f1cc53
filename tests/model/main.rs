//! The protocol under the model checker: the production sources of `src/coll`, `src/lane`, `src/p2p` and `src/wait`, and what
//! `src/fabric/shm` knows of peers, compiled with `--cfg loom`, between two or three ranks of one process. Nothing here repeats the
//! protocol; `src/base/shadow.rs` says how it is done.
//!
//! ```sh
//! tests/model/run              # all models, a few minutes
//! tests/model/run NAME         # some of them
//! tests/model/run --long       # deeper, and every weakening in tests/model/weakened must make its models fail
//! ```
//!
//! Each test is a model: threads of two ranks call the library as programs do, in every order that the bound on preemptions allows
//! and with every value that the memory model lets a load return. It fails on a wrong byte, an access to payload that is not
//! ordered against another, a wait that nobody ends. `FMPL_MODEL_PREEMPTIONS` and `FMPL_MODEL_SECONDS` (for each model) set the
//! bounds; what was looked at is printed (`-- --nocapture`).
#![cfg(loom)]

mod any_index;
mod any_source;
mod arena;
mod copies;
mod direction;
mod freed;
mod global;
mod leaving;
mod life;
mod loans;
mod order;
mod posting;
mod registrations;
mod sleeping;
mod spooled;
mod stage;
mod threads;
mod tickets;
mod weakened;
