//! A message that has no place anywhere: longer than all of the spool's window, and received where no device can put it.

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, skipped};
use fmpl::ffi::c::*;

/// Bytes: more than the window of 16 GiB.
const LENGTH: usize = 17 << 30;

/// So many addresses, behind which there is no memory until it is written.
fn addresses() -> Option<*mut libc::c_void> {
    let (rights, how) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: new addresses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, rights, how, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at)
}

/// Rank 0 sends it, rank 1 receives in two pieces.
pub fn sends_too_much() {
    init(2);
    let (at, half) = (addresses().expect("as in the test's process"), LENGTH / 2);
    // SAFETY: so many bytes, which stay.
    unsafe {
        if rank() == 0 {
            recv(&mut [0; 8], 1, 1);
            for waits in [true, false] {
                let code = match waits {
                    true => fmpl_send(at, LENGTH, 1, 0, WORLD),
                    false => match fmpl_isend(at, LENGTH, 1, 0, WORLD) {
                        0 => try_isend_wait(1, 0),
                        code => code,
                    },
                };
                fails(code, MEMORY);
                assert!(last_error().contains("in pieces"), "{}", last_error());
            }
            // The index is as usable as before.
            send(&[7; 8], 1, 0);
        } else {
            let pieces = [0, half].map(|from| libc::iovec { iov_base: at.byte_add(from), iov_len: half });
            ok(fmpl_irecv_list(pieces.as_ptr(), 2, 0, 0, WORLD));
            send(&[1; 8], 0, 1);
            irecv_wait(0, 0);
            assert_eq!((received(0, 0).0, at.cast::<u64>().read()), (8, u64::from_ne_bytes([7; 8])));
        }
    }
    finalize();
}

pub fn too_much() {
    // For both ranks at once.
    let found = [addresses(), addresses()];
    // SAFETY: of these addresses nobody has made any use.
    found.iter().flatten().for_each(|at| assert_eq!(unsafe { libc::munmap(*at, LENGTH) }, 0));
    if found.contains(&None) {
        return skipped("the system refuses 17 GiB of addresses");
    }
    Job::new(2, "sends too much").nodes(Nodes::Blocks(2)).settings("FMPL_NETWORK=tcp").seconds(60).run();
}
