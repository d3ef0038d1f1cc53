//! The declarations against `<rdma/fabric.h>` and its neighbours.

use crate::headers::Comparison;
use fmpl::fabric::ofi::ffi::{LAYOUTS, NUMBERS};
use std::path::Path;

const HEADERS: [&str; 7] = [
    "rdma/fabric.h",
    "rdma/fi_domain.h",
    "rdma/fi_endpoint.h",
    "rdma/fi_eq.h",
    "rdma/fi_rma.h",
    "rdma/fi_cm.h",
    "rdma/fi_errno.h",
];

pub fn declarations_are_those_of_the_headers() {
    let numbers = NUMBERS.iter().map(|(name, value)| (*name, *value as i64));
    let all = Comparison::with(&HEADERS).layouts("struct", LAYOUTS).numbers(numbers);
    all.hold(Some(Path::new("/usr/include")), HEADERS[0]);
}
