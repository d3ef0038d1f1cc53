//! The declarations of PMIx against `<pmix.h>`.

use super::*;
use crate::headers::Comparison;
use fmpl::launch::pmix::ffi::{LAYOUTS, NUMBERS, TEXTS};

/// Where Debian, and others, have the header.
fn include() -> Option<PathBuf> {
    let machine = std::env::consts::ARCH;
    [format!("/usr/lib/{machine}-linux-gnu/pmix2/include"), "/usr/include".into(), "/usr/local/include".into()]
        .into_iter()
        .map(PathBuf::from)
        .find(|place| place.join("pmix.h").exists())
}

#[test]
fn declarations_are_those_of_the_header() {
    let mut all = Comparison::with(&["pmix.h"]).layouts("", LAYOUTS).numbers(NUMBERS.iter().copied());
    for (name, value) in TEXTS {
        all.ask(name, "%s", name, value.to_str().expect("ASCII"));
    }
    all.hold(include().as_deref(), "pmix.h");
}
