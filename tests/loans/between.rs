use crate::hand::contents;
use crate::lend::*;
use crate::ranks::calls::*;

const SIZES: [usize; 8] = [0, 8, 100, 4096, 5000, 70_000, 200_000, 1_000_000];

/// Rank 1 sends to rank 0 of another node, in all modes: loans and other messages, in place and not, by index, from any source, to several.
pub fn scenes() {
    init(8);
    for timeout in [10, 0, -1] {
        mode(timeout);
        barrier();
        for (k, len) in SIZES.into_iter().enumerate() {
            let bytes = contents(1, 0, k as u64, len);
            if rank() == 1 {
                send_filled(&bytes, 0, 0);
                send(&bytes, 0, 0);
                isend(&bytes, 0, 0);
                isend_wait(0, 0);
                send_filled(&bytes, 0, 0);
                send_filled_any(&bytes, 0, 1);
                ok(patiently(|| try_send_any(&bytes, 0, 1)));
                let at = loan(len);
                // SAFETY: a loan of that length.
                unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), len) };
                ok(try_mcast_loan(at, len, &[0, 1, 2], 2));
                is_filled(recv_loan(1, 2), &bytes);
                // All came back: to send again is an error, and so is to return.
                fails(try_send_loan(at, len, 0, 0), ARGUMENT);
            } else if rank() == 0 {
                is_filled(recv_loan(1, 0), &bytes);
                is_filled(recv_loan(1, 0), &bytes);
                irecv_loan(1, 0);
                is_filled(irecv_loan_wait(1, 0), &bytes);
                let mut buf = vec![0; len];
                recv(&mut buf, 1, 0);
                assert!(buf == bytes);
                is_filled(recv_loan_any(1).0, &bytes);
                irecv_loan_any(1);
                is_filled(irecv_loan_any_wait(1).0, &bytes);
            }
            if rank() != 1 {
                is_filled(recv_loan(1, 2), &bytes);
            }
        }
        // Withdrawn, it is not in the way.
        if rank() == 0 {
            irecv_loan(1, 0);
            assert!(cancel(1, 0));
        }
        barrier();
    }
    finalize();
}
