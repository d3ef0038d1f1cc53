//! What the features of other crates add: values of bytemuck and num-complex in messages and reductions, and events of tracing. One process,
//! which is a job of one rank. Empty without them: `cargo test --features derive,bytemuck,num-complex,tracing --test features`.
#![cfg(all(feature = "derive", feature = "bytemuck", feature = "num-complex", feature = "tracing"))]

use std::sync::{Arc, Mutex};

use fmpl::{AbsMax, Pod, Prod, Sum};
use num_complex::Complex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone, Copy, PartialEq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Point {
    at: [f32; 3],
    kind: u32,
}

#[derive(Clone, Copy, PartialEq, Debug, fmpl::Plain)]
#[repr(C)]
struct Cell {
    left: u64,
    right: [i32; 2],
}

#[derive(Clone, Copy, PartialEq, Debug, fmpl::Plain)]
#[repr(transparent)]
struct Metres(f64);

/// Keeps what it is told.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<(Level, String)>>>);

struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "fmpl"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Message(&mut text));
        self.0.lock().unwrap().push((*event.metadata().level(), text));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn values_of_other_crates_are_sent_and_what_is_told_comes_to_the_subscriber() {
    let keeper = Keeper::default();
    tracing::subscriber::set_global_default(keeper.clone()).unwrap();
    // SAFETY: no other thread is there yet that looks at the environment.
    unsafe { std::env::set_var("FMPL_LOG", "info") };
    let job = fmpl::init(2).unwrap();
    let world = job.world();

    let points = [Point { at: [1.0, 2.0, 3.0], kind: 9 }; 100];
    let mut got = [Point { at: [0.0; 3], kind: 0 }; 100];
    world.sendrecv(Pod::of(&points), 0, 0, Pod::of_mut(&mut got), 0, 0).unwrap();
    assert_eq!(got, points);

    let (cells, mut got) = ([Cell { left: 1, right: [2, 3] }], [Cell { left: 0, right: [0; 2] }]);
    world.sendrecv(&cells, 0, 1, &mut got, 0, 1).unwrap();
    assert_eq!(got, cells);
    let mut metres = [Metres(0.0)];
    world.sendrecv(&[Metres(4.5)], 0, 1, &mut metres, 0, 1).unwrap();
    assert_eq!(metres, [Metres(4.5)]);

    // A job of one rank combines nothing; on several ranks these are the functions of arrays of two.
    let mut z = [Complex::new(1.0f64, 2.0), Complex::new(-3.0, 0.5)];
    let sent = z;
    world.allreduce(&mut z, Sum).unwrap();
    world.allreduce(&mut z, Prod).unwrap();
    world.allreduce(&mut z, AbsMax).unwrap();
    assert_eq!(z, sent);
    world.allreduce(&mut z, |a: Complex<f64>, b: Complex<f64>| a * b).unwrap();

    job.finalize().unwrap();
    let told = keeper.0.lock().unwrap();
    let found = told.iter().find(|(_, text)| text.starts_with("rank 0: ")).expect("what the rank has found at init");
    assert_eq!(found.0, Level::INFO);
}
