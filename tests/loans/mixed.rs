use crate::hand::contents;
use crate::lend::*;
use crate::ranks::calls::*;

const SIZES: [usize; 9] = [0, 5, 16, 60, 700, 4000, 5000, 100_000, 3_000_000];

/// Every pair of calls, of which one is of loans.
pub fn scenes(peer: i32) {
    to_ordinary_receives(peer);
    from_ordinary_sends(peer);
}

/// Rank 0 hands over; rank 1 receives into its own memory, in all ways that there are.
fn to_ordinary_receives(peer: i32) {
    for (k, len) in SIZES.into_iter().enumerate() {
        let bytes = contents(0, 9, k as u64, len);
        for way in 0..5 {
            if rank() == 0 {
                if way == 1 || way == 3 {
                    // Posted before.
                    barrier();
                }
                let (sent, _) = counts();
                send_filled(&bytes, peer, 9);
                assert_eq!(counts().0, sent + 1);
                if way == 0 || way == 2 || way == 4 {
                    barrier();
                }
                continue;
            }
            let mut buf = vec![0x77; len + 3];
            let copied = counts().1;
            match way {
                0 => {
                    barrier();
                    recv(&mut buf, peer, 9);
                }
                1 => {
                    irecv(&mut buf, peer, 9);
                    barrier();
                    irecv_wait(peer, 9);
                }
                2 => {
                    barrier();
                    recv(&mut buf, peer, ANY);
                    assert_eq!(received(peer, ANY), (len, 9));
                }
                3 => {
                    irecv(&mut buf, peer, 9);
                    barrier();
                    irecv_poll(peer, 9);
                }
                // Truncated.
                _ => {
                    barrier();
                    let half = len / 2;
                    let code = try_recv(&mut buf[..half], peer, 9);
                    fails(code, if len > half { TRUNCATE } else { 0 });
                    assert!(buf[..half] == bytes[..half] && buf[half..].iter().all(|b| *b == 0x77));
                    assert_eq!((received(peer, 9).0, counts().1 - copied), (len, half as u64));
                    continue;
                }
            }
            assert!(buf[..len] == bytes && buf[len..] == [0x77; 3], "way {way}, {len} bytes");
            assert_eq!((received(peer, 9).0, counts().1 - copied), (len, len as u64), "copied once");
        }
    }
    barrier();
}

/// Rank 0 sends out of its own memory; rank 1 receives in place, in all ways that there are.
fn from_ordinary_sends(peer: i32) {
    for (k, len) in SIZES.into_iter().enumerate() {
        let bytes = contents(0, 10, k as u64, len);
        for way in 0..4 {
            for request in [false, true] {
                if rank() == 0 {
                    // Posted before, or likely after.
                    if way >= 2 {
                        barrier();
                    }
                    if request {
                        isend(&bytes, peer, 10);
                        isend_wait(peer, 10);
                    } else {
                        send(&bytes, peer, 10);
                    }
                    continue;
                }
                let lent = match way {
                    0 => recv_loan(peer, 10),
                    1 => {
                        irecv_loan(peer, 10);
                        irecv_loan_wait(peer, 10)
                    }
                    2 => {
                        irecv_loan(peer, 10);
                        barrier();
                        irecv_loan_wait(peer, 10)
                    }
                    _ => {
                        irecv_loan(peer, 10);
                        barrier();
                        loop {
                            if let Some(lent) = irecv_loan_test(peer, 10) {
                                break lent;
                            }
                        }
                    }
                };
                is_filled(lent, &bytes);
            }
        }
    }
    barrier();
}
