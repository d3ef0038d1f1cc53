//! Areas that the program gives to `fmpl_init` and `fmpl_sendbuf_set`: between nodes the library's memory lies there, on a node they are left
//! alone; after finalize they are the program's again.

use crate::ranks::Job;
use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use fmpl::ffi::c::{FMPL_FA_BYTES, FMPL_MA_BYTES, fmpl_init, fmpl_sendbuf_set};
use fmpl::launch::embedded::Nodes;

const INDICES: usize = 4096;
const SPOOL: usize = 1 << 20;
/// What is in the program's memory before.
const OWN: u8 = 0x5a;

/// How many bytes of an area are not what was there, nor zero.
fn used(area: &[u8]) -> usize {
    area.iter().filter(|byte| ![0, OWN].contains(*byte)).count()
}

pub fn body() {
    let apart = std::env::var_os("APART").is_some();
    // The library's until finalize: looked at by pointers only.
    let mut areas = [INDICES * FMPL_MA_BYTES as usize, INDICES * FMPL_FA_BYTES as usize, SPOOL].map(|n| vec![OWN; n]);
    let at = areas.each_mut().map(|area| (area.as_mut_ptr(), area.len()));
    // SAFETY: bytes of this process; what the library and peers write there meanwhile is looked at when it has come to rest.
    let looked_at = |n: usize| used(unsafe { std::slice::from_raw_parts(at[n].0, at[n].1) });
    for life in 0..2 {
        // SAFETY: the areas are nobody else's until finalize.
        ok(unsafe { fmpl_init(at[0].0.cast(), at[1].0.cast(), INDICES as i32) });
        // SAFETY: as above.
        ok(unsafe { fmpl_sendbuf_set(at[2].0.cast(), at[2].1, 1) });
        let (me, mut buf) = (rank(), vec![0; 30_000]);
        barrier();
        for round in 0..40 {
            for index in [0, 300, 700] {
                // Nobody receives it in time.
                send(&message(30_000, round), 1 - me, index);
                send(&message(20, round), 1 - me, index + 1);
            }
            barrier();
            if round == 20 && apart {
                assert!(looked_at(0) > 0, "what the peer writes lies in the matching area");
                assert!(looked_at(2) > 30_000, "what is spooled lies in the area of the spool");
            }
            for index in [0, 300, 700] {
                recv(&mut buf, 1 - me, index);
                check(&buf, round, "a long message");
                recv(&mut buf[..20], 1 - me, index + 1);
                check(&buf[..20], round, "a short message");
            }
            barrier();
        }
        finalize();
        for area in &areas {
            assert_eq!(used(area), 0, "life {life}: nothing of the library's is left");
            assert!(apart || area.iter().all(|byte| *byte == OWN), "on a node they are left alone");
        }
        // The program's again.
        for (n, area) in areas.iter_mut().enumerate() {
            area.fill(n as u8 + 1);
            assert!(area.iter().all(|byte| *byte == n as u8 + 1));
            area.fill(OWN);
        }
    }
}

pub fn test() {
    Job::new(2, "areas").run();
    Job::new(2, "areas").env("APART", 1).settings("FMPL_NETWORK=tcp").nodes(Nodes::Cyclic(2)).run();
}
