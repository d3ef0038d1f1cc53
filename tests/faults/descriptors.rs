//! Processes that are started without standard descriptors: what the library opens is not taken for them.

use crate::ranks::Job;
use crate::ranks::calls::*;
use fmpl::ffi::c::*;

/// Where a descriptor leads.
fn leads_to(fd: i32) -> String {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).map_or_else(|e| e.to_string(), |path| path.display().to_string())
}

pub fn has_no_standard_descriptors() {
    let mut said = String::new();
    let mut id = fmpl_id { bytes: [0; 128] };
    for first in [1, 0] {
        // SAFETY: whoever used them, this process uses them no more.
        (first..3).for_each(|fd| unsafe { _ = libc::close(fd) });
        if first == 1 {
            ok(fmpl_id_create((&mut id).into()));
        } else {
            init(4);
        }
        for fd in first..3 {
            let there = leads_to(fd);
            if there != "/dev/null" {
                said += &format!("{fd}: {there}\n");
            }
        }
    }
    // What a program prints then goes nowhere; before, it went into the region that all ranks share.
    for fd in 1..3 {
        // SAFETY: bytes of this process.
        assert_eq!(unsafe { libc::write(fd, [0xffu8; 4096].as_ptr().cast(), 4096) }, 4096);
    }
    let (me, n) = (rank(), size());
    let mut got = [0];
    sendrecv(&[me as u8], (me + 1) % n, 0, &mut got, (me + n - 1) % n, 0);
    assert_eq!(i32::from(got[0]), (me + n - 1) % n);
    barrier();
    // Nobody hears of a panic: the code tells.
    assert!(said.is_empty(), "{said}");
    finalize();
}

pub fn none() {
    Job::new(2, "has no standard descriptors").run();
}
