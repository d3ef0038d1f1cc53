//! Between nodes, where little memory may be locked: messages longer than that arrive whole, whichever side is short of it, and where not even
//! the library's own memory can be registered the error names the limit.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::placed::*;
use fmpl::fabric::network::Access;
use fmpl::fabric::network::region::Arena;
use fmpl::fabric::verbs::device::{Port, Wishes};
use fmpl::fabric::verbs::protection::Protection;
use fmpl::{Code, Counter};

/// Bytes of a long message.
const LONG: usize = 3 << 19;
/// What may be locked beside: enough for rings and windows, not for a long message.
const LITTLE: u64 = 9 << 17;

/// Gives up the right to lock more than the limit, which root has. Threads that are started later have it neither.
fn give_up_the_right() {
    const CAP_IPC_LOCK: u32 = 14;
    let mut header = [0x2008_0522u32, 0];
    let mut sets = [[0u32; 3]; 2];
    // SAFETY: structures of the sizes that this version has (capset(2)): effective, permitted and inheritable, twice.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()), 0);
        sets[0].iter_mut().for_each(|set| *set &= !(1 << CAP_IPC_LOCK));
        assert_eq!(libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()), 0);
    }
}

/// So much may be locked from now on; `None`: as much as at first.
fn limit(bytes: Option<u64>) {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut now), 0);
        now.rlim_cur = bytes.unwrap_or(now.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &now), 0);
    }
}

/// The limit holds for this process, and the error says so.
fn cannot_lock(bytes: usize) {
    let port = Port::choose(&Wishes::default(), 0).expect("a port");
    let domain = Protection::new(&port.device).expect("a domain").domain();
    let error = Arena::new(&domain, bytes, Access::LOCAL_WRITE).err().expect("there is a limit");
    assert_eq!(error.code(), Code::Memory);
    assert!(names_the_limit(error.detail()), "{error}");
}

/// Does an error say what the limit is, and what to do?
pub fn names_the_limit(text: &str) -> bool {
    text.contains("locked memory is limited to") && text.contains("`ulimit -l unlimited`")
}

/// Or whose limit is too low, which only that rank can name?
pub fn names_whose_limit(text: &str) -> bool {
    text.contains("start it with a higher limit on locked memory") && text.contains("`ulimit -l unlimited`")
}

fn copied() -> u64 {
    fmpl::comm::counter(Counter::RdmaCopied as i32).expect("a counter")
}

/// One message each way in each mode, received early and late, from memory of several shapes into such.
fn messages(me: i32) {
    const SHAPES: [(Shape, Shape); 3] =
        [(Shape::Flat, Shape::Flat), (Shape::Block, Shape::Flat), (Shape::List, Shape::Block)];
    let mut seq = 0;
    for (timeout, early) in [(0, true), (0, false), (5, true), (5, false), (-1, true), (-1, false)] {
        mode(timeout);
        for src in [0, 1] {
            seq += 1;
            let (from, to) = SHAPES[seq % 3];
            let content = seed(src, 1 - src, 3, seq as u64);
            let what = format!("from {src}, {from:?} to {to:?}, time-out {timeout}, posted early: {early}");
            if me == src {
                let mut place = Placed::new(from, LONG);
                place.put(&message(LONG, content));
                if early {
                    recv(&mut [0; 8], 1 - src, 4);
                }
                ok(place.send(1 - src, 3, true));
                if !early {
                    send(&[0; 8], 1 - src, 4);
                }
                isend_wait(1 - src, 3);
            } else {
                let mut place = Placed::new(to, LONG);
                ok(if early { place.recv(src, 3, true) } else { 0 });
                if early {
                    send(&[0; 8], src, 4);
                    irecv_wait(src, 3);
                } else {
                    recv(&mut [0; 8], src, 4);
                    ok(place.recv(src, 3, false));
                }
                check(&place.get(LONG, &what), content, &what);
            }
        }
    }
}

/// Long messages behind each other on one index, all sent before the first is received.
fn one_after_the_other(me: i32) {
    const EACH: usize = LONG / 2;
    mode(0);
    barrier();
    if me == 0 {
        (0..4).for_each(|k| send(&message(EACH + k, seed(0, 1, 5, k as u64)), 1, 5));
        barrier();
    } else {
        barrier();
        let mut buf = vec![0; EACH + 4];
        for k in 0..4 {
            recv(&mut buf, 0, 5);
            assert_eq!(received(0, 5).0, EACH + k);
            check(&buf[..EACH + k], seed(0, 1, 5, k as u64), "one after the other");
        }
    }
}

/// Both ways at once, on several indices.
fn both_ways(me: i32) {
    mode(10);
    let content = |src: i32, t: i32| seed(src, 1 - src, 10 + t, 1);
    let out: Vec<Vec<u8>> = (0..2).map(|t| message(LONG, content(me, t))).collect();
    let mut inn = vec![vec![0u8; LONG]; 2];
    inn.iter_mut().enumerate().for_each(|(t, buf)| irecv(buf, 1 - me, 10 + t as i32));
    out.iter().enumerate().for_each(|(t, buf)| isend(buf, 1 - me, 10 + t as i32));
    (0..2).for_each(|t| irecv_wait(1 - me, 10 + t));
    (0..2).for_each(|t| isend_wait(1 - me, 10 + t));
    inn.iter().enumerate().for_each(|(t, buf)| check(buf, content(1 - me, t as i32), "both ways"));
}

/// Of any source, buffered and not, long and short.
fn of_any_source(me: i32) {
    let mut buf = vec![0; LONG];
    for timeout in [0, 5, -1] {
        mode(timeout);
        for src in [0, 1] {
            barrier();
            for (k, len) in [100, LONG, 70_000].into_iter().enumerate() {
                let content = seed(src, 1 - src, 7, k as u64);
                if me == src {
                    send_any(&message(len, content), 1 - src, 7);
                } else {
                    assert_eq!(recv_any(&mut buf, 7), (src, len));
                    check(&buf[..len], content, "of any source");
                }
            }
        }
    }
}

/// Ranks of MEMLOCK_RANKS, such as `01`, may lock little.
pub fn little() {
    give_up_the_right();
    init(64);
    let me = rank();
    let limited = std::env::var("MEMLOCK_RANKS").expect("set by the test").contains(&me.to_string());
    mode(10);
    barrier();
    if limited {
        limit(Some(LITTLE));
        cannot_lock(LONG);
    }
    let before = copied();
    for (name, scene) in [
        ("messages", messages as fn(i32)),
        ("one after the other", one_after_the_other),
        ("both ways", both_ways),
        ("of any source", of_any_source),
    ] {
        barrier();
        let since = std::time::Instant::now();
        scene(me);
        eprintln!("scene {name}: {:.2} s", since.elapsed().as_secs_f64());
    }
    // Memory that could have been registered is not copied.
    assert!(!limited || copied() - before > 4 * LONG as u64, "{} bytes copied", copied() - before);
    barrier();
    finalize();
}

/// MEMLOCK bytes may be locked when the job starts: what needs the other node may fail, and then says why; what does not goes on.
pub fn hardly_any() {
    give_up_the_right();
    limit(std::env::var("MEMLOCK").ok().and_then(|n| n.parse().ok()));
    cannot_lock(256 << 10);
    if try_init(64) != 0 {
        return println!("{}", last_error());
    }
    let me = rank();
    mode(0);
    let mut buf = vec![0; LONG];
    let mut text = "well".to_owned();
    for len in [8, LONG] {
        let content = seed(0, 1, 1, len as u64);
        // Whether the message is sent goes by another index, if that is possible: then it is not waited for in vain.
        let (mut sent, mut code);
        if me == 0 {
            code = try_send(&message(len, content), 1, 1);
            sent = [(code == 0) as u8];
            text = if code == 0 { text } else { last_error() };
            let _ = try_send(&sent, 1, 2);
        } else {
            sent = [0];
            code = try_irecv(&mut buf[..len], 0, 1);
            code = if code == 0 { try_recv(&mut sent, 0, 2) } else { code };
            code = if code == 0 && sent == [1] { try_irecv_wait(0, 1) } else { code };
            if code != 0 {
                text = last_error();
            } else if sent == [1] {
                check(&buf[..len], content, "a message");
            } else {
                assert!(cancel(0, 1));
            }
        }
        if code != 0 || sent != [1] {
            break;
        }
    }
    println!("{text}");
    let mut got = [0; 3];
    isend(&[1, 2, 3], me, 3);
    recv(&mut got, me, 3);
    isend_wait(me, 3);
    assert_eq!(got, [1, 2, 3]);
    let _ = try_finalize();
}

/// Nothing more may be locked once there is a connection: long messages fail, and say why; short ones go on, and so do long ones when the
/// limit is lifted.
pub fn no_more() {
    give_up_the_right();
    init(64);
    let me = rank();
    mode(0);
    let mut got = [0; 8];
    let exchange = |k: u8, got: &mut [u8; 8]| {
        if me == 0 {
            send(&[k; 8], 1, 1);
            recv(got, 1, 1);
        } else {
            recv(got, 0, 1);
            send(&[k; 8], 0, 1);
        }
        assert_eq!(*got, [k; 8]);
    };
    exchange(1, &mut got);
    if me == 0 {
        limit(Some(0));
        assert_eq!(try_send(&message(LONG, 1), 1, 2), Code::Memory as i32, "{}", last_error());
        assert!(names_the_limit(&last_error()), "{}", last_error());
    }
    exchange(2, &mut got);
    limit(None);
    if me == 0 {
        send(&message(LONG, 3), 1, 2);
    } else {
        let mut buf = vec![0; LONG];
        recv(&mut buf, 0, 2);
        check(&buf, 3, "after the limit was lifted");
    }
    barrier();
    finalize();
}
