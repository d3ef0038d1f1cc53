use crate::lend::*;
use crate::mixed;
use crate::ranks::bytes::{Draw, fill, seed};
use crate::ranks::calls::*;
use fmpl::ffi::c::FMPL_PROC_NULL;
use std::collections::BTreeSet;

/// The contents of message `seq` of so many bytes from a rank.
pub fn contents(src: i32, index: i32, seq: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(&mut bytes, seed(src, 0, index, seq));
    bytes
}

/// What two ranks do one after the other, or one with itself.
pub fn scenes() {
    init(32);
    let peer = if size() == 1 { 0 } else { other() };
    if size() == 2 {
        in_turn(peer);
    }
    for timeout in [10, 0, -1] {
        mode(timeout);
        barrier();
        sizes(peer);
        ahead(peer);
        requests(peer);
        on_communicators(peer);
        if size() == 2 {
            mixed::scenes(peer);
        }
    }
    finalize();
}

const SIZES: [usize; 16] =
    [0, 1, 8, 16, 17, 64, 72, 100, 1024, 4096, 4097, 65_536, 100_000, 1 << 20, 5_000_000, 20 << 20];

/// Messages of all sizes, in both directions at once; nothing is copied.
fn sizes(peer: i32) {
    let before = counts();
    for (k, len) in SIZES.into_iter().enumerate() {
        if len > 1 << 20 && crate::ranks::short() {
            continue;
        }
        send_filled(&contents(rank(), 0, k as u64, len), peer, 0);
        assert_eq!(if size() == 1 { probe(peer, 0) } else { Some(len) }, Some(len));
        let lent = recv_loan(peer, 0);
        assert_eq!(received(peer, 0), (len, 0));
        is_filled(lent, &contents(peer, 0, k as u64, len));
    }
    let after = counts();
    let sent = SIZES.iter().filter(|len| **len <= 1 << 20 || !crate::ranks::short()).count() as u64;
    assert_eq!((after.0 - before.0, after.1), (sent, before.1), "loans, and bytes copied");
}

/// Many are sent before the first is received, ordinary messages among them; held all at once, returned in another order.
fn ahead(peer: i32) {
    const MESSAGES: u64 = 400;
    let mut draw = Draw(7);
    let lens: Vec<usize> = (0..MESSAGES).map(|_| draw.size(9000)).collect();
    for (k, len) in lens.iter().enumerate() {
        let bytes = contents(rank(), 1, k as u64, *len);
        // A synchronous ordinary message would wait.
        if k % 3 == 2 && k % 2 == 0 && !is_synchronous() {
            send(&bytes[..(*len).min(500)], peer, 1);
        } else {
            send_filled(&bytes, peer, 1);
        }
    }
    let mut held = Vec::new();
    for (k, len) in lens.iter().enumerate() {
        let ordinary = k % 3 == 2 && k % 2 == 0 && !is_synchronous();
        let len = if ordinary { (*len).min(500) } else { *len };
        let wanted = &contents(peer, 1, k as u64, lens[k])[..len];
        if ordinary && k % 4 == 0 {
            let mut buf = vec![0; len + 1];
            recv(&mut buf, peer, 1);
            assert!(received(peer, 1).0 == len && &buf[..len] == wanted);
            continue;
        }
        // Sent and not received yet: a probe knows its length.
        if k % 50 == 0 {
            while probe(peer, 1).is_none() {
                std::thread::yield_now();
            }
            assert_eq!(probe(peer, 1), Some(len));
        }
        let lent = recv_loan(peer, 1);
        assert!(bytes(lent) == wanted, "message {k}");
        held.push((lent, wanted.to_vec()));
    }
    let places: BTreeSet<usize> = held.iter().map(|((at, _), _)| *at as usize).collect();
    assert_eq!(places.len(), held.len(), "no memory is held twice");
    while !held.is_empty() {
        let (lent, wanted) = held.swap_remove(draw.below(held.len()));
        is_filled(lent, &wanted);
    }
    barrier();
}

thread_local! {
    static SYNCHRONOUS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
fn is_synchronous() -> bool {
    SYNCHRONOUS.get()
}
fn mode(timeout: i32) {
    SYNCHRONOUS.set(timeout < 0);
    crate::ranks::calls::mode(timeout);
}

/// Non-blocking receives: posted before, posted after, tested, cancelled; what completes them.
fn requests(peer: i32) {
    let bytes = contents(0, 2, 0, 20_000);
    for wait in [true, false] {
        for before in [true, false] {
            if before {
                irecv_loan(peer, 2);
                barrier();
                send_filled(&bytes, peer, 2);
            } else {
                send_filled(&bytes, peer, 2);
                barrier();
                irecv_loan(peer, 2);
            }
            // It is no ordinary request, and a second one has to wait.
            fails(try_irecv_wait(peer, 2), REQUEST);
            fails(try_irecv(&mut [0], peer, 2), BUSY);
            fails(try_recv_loan(peer, 2).0, BUSY);
            let lent = if wait {
                irecv_loan_wait(peer, 2)
            } else {
                loop {
                    if let Some(lent) = irecv_loan_test(peer, 2) {
                        break lent;
                    }
                    std::thread::yield_now();
                }
            };
            is_filled(lent, &bytes);
            fails(try_irecv_loan_wait(peer, 2).0, REQUEST);
            barrier();
        }
    }
    let mut buf = [0; 8];
    irecv(&mut buf, peer, 2);
    fails(try_irecv_loan_wait(peer, 2).0, REQUEST);
    assert!(cancel(peer, 2));
    irecv_loan(peer, 2);
    assert!(cancel(peer, 2));
    barrier();
    send_filled(&bytes, peer, 2);
    is_filled(recv_loan(peer, 2), &bytes);
}

/// The same between the ranks of another communicator, which is freed while a loan that came there is held.
fn on_communicators(peer: i32) {
    let new = dup(WORLD);
    on(new);
    let bytes = contents(5, 3, 1, 3000);
    send_filled(&bytes, peer, 3);
    let lent = recv_loan(peer, 3);
    on(WORLD);
    free(new);
    is_filled(lent, &bytes);
    barrier();
}

/// A long exchange in turn, in which the pool does not grow.
fn in_turn(peer: i32) {
    let first = rank() == 0;
    let mut places = BTreeSet::new();
    for k in 0..2000u64 {
        let turn = |mine: bool| {
            if mine {
                send_filled(&k.to_le_bytes(), peer, 4);
            }
        };
        turn(first);
        let (at, len) = recv_loan(peer, 4);
        places.insert(at as usize);
        is_filled((at, len), &k.to_le_bytes());
        turn(!first);
    }
    assert!(places.len() <= 64, "{} places for one message at a time", places.len());
}

/// What is wrong, said in words; the loans are as before.
pub fn misuse() {
    init(8);
    let peer = other();
    let text = |code: i32, word: &str| {
        fails(code, ARGUMENT);
        assert!(last_error().contains(word), "{} lacks `{word}`", last_error());
    };
    let mut own = [0u8; 256];
    text(try_send_loan(own.as_mut_ptr(), 8, peer, 0), "not the beginning of a loan");
    text(try_give_back(own.as_mut_ptr()), "not the beginning of a loan");
    text(try_send_loan(std::ptr::null_mut(), 0, peer, 0), "not the beginning of a loan");
    assert_eq!(try_give_back(std::ptr::null_mut()), 0);
    let at = loan(1000);
    text(try_send_loan(at.wrapping_add(64), 8, peer, 0), "not the beginning of a loan");
    text(try_send_loan(at.wrapping_add(1), 8, peer, 0), "not the beginning of a loan");
    text(try_send_loan(at, 1001, peer, 0), "it has 1000 bytes");
    fails(try_send_loan(at, 8, 99, 0), RANK);
    fails(try_send_loan(at, 8, peer, 8), INDEX);
    fails(fmpl::ffi::c::fmpl_send_loan(at.cast(), 8, peer, 0, 77), COMM);
    // SAFETY: what is not a block of fmpl_alloc is told.
    let freed = unsafe { fmpl::ffi::c::fmpl_free(at.cast()) };
    text(freed, "loan");
    // After all that it is still the caller's.
    send_loan(at, 1000, peer, 0);
    text(try_send_loan(at, 1000, peer, 0), "handed over");
    text(try_give_back(at), "handed over");
    let lent = recv_loan(peer, 0);
    text(try_send_loan(lent.0, 8, peer, 1), "received");
    give_back(lent.0);
    text(try_give_back(lent.0), "returned before");
    let unsent = loan(64);
    give_back(unsent);
    text(try_give_back(unsent), "returned before");
    text(try_send_loan(unsent, 8, peer, 0), "returned before");
    // To nobody, from nobody.
    let at = loan(64);
    send_loan(at, 64, FMPL_PROC_NULL, 0);
    text(try_give_back(at), "returned before");
    assert_eq!(recv_loan(FMPL_PROC_NULL, 0), (std::ptr::null_mut(), 0));
    fails(try_recv_loan(peer, ANY).0, INDEX);
    // To itself.
    let at = loan(64);
    send_loan(at, 64, rank(), 2);
    let lent = recv_loan(rank(), 2);
    assert_eq!(lent, (at, 64));
    text(try_send_loan(at, 8, peer, 0), "received");
    give_back(at);
    text(try_give_back(at), "returned before");
    barrier();
    finalize();
}

/// `FMPL_LOANS=8,1M`
pub fn bounded() {
    const MEMORY: i32 = fmpl::Code::Memory as i32;
    init(8);
    let peer = other();
    let mut held: Vec<At> = (0..8).map(|_| loan(100)).collect();
    let mut at = std::ptr::null_mut();
    fails(try_loan(100, &mut at), MEMORY);
    assert!(last_error().contains("FMPL_LOANS") && last_error().contains("8 loans"), "{}", last_error());
    fails(try_loan(2 << 20, &mut at), MEMORY);
    // A message that has to be copied waits for the next receive.
    barrier();
    send(b"here", peer, 0);
    fails(try_recv_loan(peer, 0).0, MEMORY);
    irecv_loan(peer, 0);
    fails(try_irecv_loan_wait(peer, 0).0, MEMORY);
    give_back(held.pop().unwrap());
    is_filled(recv_loan(peer, 0), b"here");
    // What the other holds counts, until it is returned; other sizes take the place of idle ones.
    for at in held.drain(..) {
        send_loan(at, 100, peer, 1);
    }
    let first = loan(100);
    fails(try_loan(100, &mut at), MEMORY);
    give_back(first);
    barrier();
    (0..7).for_each(|_| give_back(recv_loan(peer, 1).0));
    barrier();
    for size in [900_000, 64, 300_000, 1 << 20, 5000, 900_000] {
        give_back(loan(size));
    }
    let large = loan(600_000);
    fails(try_loan(600_000, &mut at), MEMORY);
    give_back(large);
    finalize();
}

pub fn held() {
    init(8);
    let peer = other();
    send_filled(b"kept", peer, 0);
    let lent = recv_loan(peer, 0);
    assert_eq!(bytes(lent), b"kept");
    let _unsent = loan(10);
    let code = try_finalize();
    fails(code, PENDING);
    assert!(last_error().contains("1 loans of other ranks are held and 1 of its own"), "{}", last_error());
    // Outside of a job there is nothing to be done with them.
    fails(try_give_back(lent.0), INIT);
}

/// Four threads of each rank on indices of their own take, send, receive and return; what one receives another returns.
pub fn threads() {
    init(8);
    let peer = other();
    let rounds = if crate::ranks::short() { 300 } else { 3000 };
    std::thread::scope(|s| {
        let (give, take) = std::sync::mpsc::channel::<(usize, usize, u64)>();
        s.spawn(move || {
            for (at, len, k) in take {
                let lent = (at as At, len);
                assert!(bytes(lent).chunks_exact(8).all(|c| c == k.to_le_bytes()), "loan {k} was changed");
                give_back(lent.0);
            }
        });
        for t in 0..4 {
            let give = give.clone();
            s.spawn(move || {
                let mut draw = Draw(t as u64 * 31 + rank() as u64);
                for k in 0..rounds {
                    let len = 8 * (1 + draw.below(200));
                    let stamp = (k as u64) << 8 | t as u64;
                    let words: Vec<u8> = stamp.to_le_bytes().repeat(len / 8);
                    send_filled(&words, peer, t);
                    if draw.one_in(5) {
                        give_back(loan(draw.below(2000)));
                    }
                    let (at, len) = recv_loan(peer, t);
                    give.send((at as usize, len, stamp)).unwrap();
                }
            });
        }
        drop(give);
    });
    barrier();
    finalize();
}
