use crate::hand::contents;
use crate::lend::*;
use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;

const SIZES: [usize; 9] = [0, 8, 40, 1000, 3000, 4097, 70_000, 1 << 20, 3_000_000];

/// All send to rank 0, loans and ordinary messages in turn; it receives them in place and otherwise, in turn.
pub fn from_all() {
    init(8);
    let (me, ranks) = (rank(), size());
    for timeout in [10, 0, -1] {
        mode(timeout);
        barrier();
        if me != 0 || ranks == 1 {
            for (k, len) in SIZES.into_iter().enumerate() {
                for loan in [true, false] {
                    // Nobody else takes what this rank sends to itself.
                    if ranks == 1 && !loan && timeout < 0 {
                        continue;
                    }
                    let bytes = contents(me, loan as i32, k as u64, len);
                    if loan {
                        send_filled_any(&bytes, 0, 1)
                    } else {
                        ok(patiently(|| try_send_any(&bytes, 0, 1)))
                    }
                    if ranks == 1 {
                        is_filled(recv_loan_any(1).0, &bytes);
                    }
                }
            }
        } else {
            let mut draw = Draw(3);
            let mut next = vec![0usize; ranks as usize];
            let mut held = Vec::new();
            for _ in 0..(ranks - 1) as usize * SIZES.len() * 2 {
                let mut buf = vec![0x77; 3_000_001];
                let (lent, src) = match draw.below(5) {
                    0 => {
                        let (src, len) = recv_any(&mut buf, 1);
                        (Err(len), src)
                    }
                    1 => {
                        irecv_any(&mut buf, 1);
                        let (src, len) = irecv_any_wait(1);
                        (Err(len), src)
                    }
                    2 => {
                        irecv_loan_any(1);
                        fails(fmpl::ffi::c::fmpl_irecv_any_wait(1, comm(), (&mut 0).into(), (&mut 0).into()), REQUEST);
                        let (lent, src) = irecv_loan_any_wait(1);
                        (Ok(lent), src)
                    }
                    3 => {
                        irecv_loan_any(1);
                        let (lent, src) = loop {
                            if let Some(got) = irecv_loan_any_test(1) {
                                break got;
                            }
                        };
                        (Ok(lent), src)
                    }
                    _ => {
                        let (lent, src) = recv_loan_any(1);
                        (Ok(lent), src)
                    }
                };
                let n = &mut next[src as usize];
                let wanted = contents(src, (*n).is_multiple_of(2) as i32, *n as u64 / 2, SIZES[*n / 2]);
                *n += 1;
                match lent {
                    Ok(lent) => held.push((lent, wanted)),
                    Err(len) => assert!(buf[..len] == wanted && buf[len] == 0x77, "{len} bytes of rank {src}"),
                }
                if held.len() > 6 {
                    let (lent, wanted) = held.swap_remove(draw.below(held.len()));
                    is_filled(lent, &wanted);
                }
            }
            held.into_iter().for_each(|(lent, wanted)| is_filled(lent, &wanted));
            irecv_loan_any(1);
            assert!(irecv_any_cancel(1));
        }
        barrier();
    }
    // Many ahead, and a probe that knows their lengths.
    mode(10);
    if me == 1 {
        (0..300).for_each(|k| send_filled_any(&contents(1, 2, k, 100 + k as usize), 0, 2));
    } else if me == 0 && ranks > 1 {
        for k in 0..300usize {
            while probe_any(2).is_none() {
                std::thread::yield_now();
            }
            assert_eq!(probe_any(2), Some((1, 100 + k)));
            is_filled(recv_loan_any(2).0, &contents(1, 2, k as u64, 100 + k));
        }
    }
    let own = loan(64);
    fails(try_send_loan_any(own, 64, 99, 1), RANK);
    fails(try_send_loan_any(own, 65, 0, 1), ARGUMENT);
    give_back(own);
    barrier();
    finalize();
}
