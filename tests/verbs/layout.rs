//! The declarations against `<infiniband/verbs.h>`.

use crate::headers::Comparison;
use fmpl::fabric::verbs::ffi::LAYOUTS;
use std::path::Path;

#[test]
fn declarations_are_those_of_the_header() {
    let all = Comparison::with(&["infiniband/verbs.h"]).layouts("struct", LAYOUTS);
    all.hold(Some(Path::new("/usr/include")), "infiniband/verbs.h");
}
