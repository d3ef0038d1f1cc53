use super::*;
use crate::fabric::shm::region::Region;

fn ring(slots: usize) -> (Region, Ring) {
    let region = Region::create(0, 2).unwrap();
    let window = region.map(ring_at(None, 5), Ring::bytes(slots)).unwrap();
    (region, Ring::new(window, slots, 7))
}

fn put(ring: &Ring, room: &AtomicU64, text: &[u8]) -> Option<u64> {
    let Claimed::Ticket(ticket) = ring.claim(room, |_| ()) else { return None };
    Run::with_bytes(text, |text| ring.publish(ticket, 3, text));
    Some(ticket)
}

#[test]
fn exactly_as_many_as_there_are_slots() {
    let (_region, ring) = ring(8);
    let room = AtomicU64::new(0);
    for round in 0..100u64 {
        let first = round * 8;
        for k in 0..8 {
            assert!(ring.arrival(first + k).is_none(), "a mark of the round before");
            assert_eq!(put(&ring, &room, &vec![k as u8; (round * 10) as usize]), Some(first + k));
        }
        assert_eq!(put(&ring, &room, b"x"), None);
        for k in 0..8 {
            let came = ring.arrival(first + k).unwrap();
            assert_eq!((came.source, came.len as u64), (3, round * 10));
            let (mut got, len) = ([0u64; 128], came.len as usize);
            Run::with_room(&mut got, |to| ring.deliver(first + k, came.kind, to.first(len)));
            let got: Vec<u8> = got.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(got[..len], vec![k as u8; len]);
            assert!(got[len..].iter().all(|byte| *byte == 0), "wrote beyond");
            ring.free(first + k + 1);
        }
    }
}

#[test]
fn a_limit_holds_at_once() {
    let (_region, ring) = ring(8);
    let room = AtomicU64::new(0);
    ring.header().limit.store(3, Ordering::Relaxed);
    assert_eq!((0..5).filter_map(|_| put(&ring, &room, b"a")).count(), 3);
    ring.free(2);
    assert_eq!((0..5).filter_map(|_| put(&ring, &room, b"a")).count(), 2);
}

#[test]
fn threads_never_get_a_ticket_twice() {
    let (_region, ring) = ring(64);
    let room = AtomicU64::new(0);
    let taken = AtomicU64::new(0);
    std::thread::scope(|s| {
        for t in 0..3u64 {
            let (ring, room) = (&ring, &room);
            s.spawn(move || {
                for k in 0..5000u64 {
                    while put(ring, room, &(t << 32 | k).to_ne_bytes()).is_none() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0u64; 3];
        while taken.load(Ordering::Relaxed) < 15_000 {
            let ticket = taken.load(Ordering::Relaxed);
            let Some(came) = ring.arrival(ticket) else {
                std::thread::yield_now();
                continue;
            };
            let mut word = [0u64];
            Run::with_room(&mut word, |to| ring.deliver(ticket, came.kind, to));
            let [word] = word;
            let of = &mut next[(word >> 32) as usize];
            assert_eq!(*of, word & 0xffff_ffff, "order of a sender");
            *of += 1;
            taken.store(ticket + 1, Ordering::Relaxed);
            ring.free(ticket + 1);
        }
    });
}
