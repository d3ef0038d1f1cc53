//! The registration cache when memory goes away under it: whatever is mapped at an address, that is what is sent from there.

use std::sync::Arc;

use fmpl::fabric::network::Access;
use fmpl::fabric::network::cache::{Bounds, Cache};
use fmpl::fabric::network::region::{Arena, Domain};
use fmpl::fabric::verbs::completion::CompletionQueue;
use fmpl::fabric::verbs::device::Port;
use fmpl::fabric::verbs::ffi::{Rdma, SendFlags, SendWr, Sge, Target, opcode, wc_status};
use fmpl::fabric::verbs::protection::Protection;
use fmpl::fabric::verbs::queue_pair::{Depth, QueuePair, Remote, SharedReceives};

use super::resources::{one, ports};

const BYTES: usize = 64 << 10;
const BOUNDS: Bounds = Bounds { ranges: 256, bytes: 1 << 30 };

/// A queue pair connected to itself.
struct Loop {
    qp: QueuePair,
    queue: Arc<CompletionQueue>,
    to: Arena,
}

impl Loop {
    fn new((protection, domain): (&Arc<Protection>, &Arc<Domain>), port: &Port) -> Loop {
        let queue = CompletionQueue::new(&port.device, 16, None).expect("a queue");
        let shared = SharedReceives::new(protection, 1).expect("shared receives");
        let depth = Depth { sends: 8, receives: 0, pieces: 1, inline: 0 };
        let qp = QueuePair::reliable(protection, port, [&queue, &queue], &shared, depth).expect("a queue pair");
        let end = Remote { qp_num: qp.number(), psn: 5, gid: port.address.gid, lid: port.lid, mtu: port.mtu };
        qp.connect(&end, 5).expect("connecting to itself");
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        Loop { qp, queue, to: Arena::new(domain, BYTES, access).expect("memory") }
    }
    /// Has the device write what is at `from`; the first and the last byte that arrive.
    fn send(&self, from: *mut u8, lkey: u32) -> (u8, u8) {
        let mut sge = Sge { addr: from as u64, length: BYTES as u32, lkey };
        let rdma = Rdma { remote_addr: self.to.region().addr(), rkey: self.to.region().rkey() };
        let mut wr = SendWr::new(opcode::RDMA_WRITE, SendFlags::SIGNALED, Target { rdma });
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole, its memory registered until its completion.
        unsafe { self.qp.post(&mut wr).expect("posting") };
        assert_eq!(one(&self.queue).status, wc_status::SUCCESS);
        // SAFETY: the arena has so many bytes, and the device has finished with them.
        unsafe { (*self.to.as_ptr(), *self.to.as_ptr().add(BYTES - 1)) }
    }
}

fn map(at: *mut u8, flags: i32) -> *mut u8 {
    let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags);
    // SAFETY: a new mapping, at an address that this test owns.
    let p = unsafe { libc::mmap(at.cast(), BYTES, read_write, flags, -1, 0) };
    assert_ne!(p, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    p.cast()
}

fn fill(at: *mut u8, byte: u8) {
    // SAFETY: a mapping of this test, so many bytes long.
    unsafe { at.write_bytes(byte, BYTES) };
}

/// The memory at one address is exchanged 1000 times (10 000 with FMPL_TEST_LONG=1), in each of the ways there are, between sends from there.
#[test]
fn what_is_mapped_now_is_what_is_sent() {
    for port in ports().into_iter().take(1) {
        let protection = Protection::new(&port.device).expect("a domain");
        let domain = protection.domain();
        let cache = Cache::new(&domain, Some(BOUNDS), Box::new(|| ())).expect("a cache");
        let device = Loop::new((&protection, &domain), &port);
        let at = map(std::ptr::null_mut(), 0);
        let rounds = if std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1") { 10_000 } else { 1000u32 };
        for round in 0..rounds {
            let byte = (round % 251 + 1) as u8;
            // SAFETY: all of this is about the one range that this test owns.
            unsafe {
                match round % 4 {
                    0 => {
                        libc::munmap(at.cast(), BYTES);
                        assert_eq!(map(at, libc::MAP_FIXED_NOREPLACE), at);
                    }
                    1 => assert_eq!(map(at, libc::MAP_FIXED), at),
                    2 => assert_eq!(libc::madvise(at.cast(), BYTES, libc::MADV_DONTNEED), 0),
                    _ => {
                        let other = map(std::ptr::null_mut(), 0);
                        fill(other, byte);
                        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                        assert_eq!(libc::mremap(other.cast(), BYTES, BYTES, flags, at).cast(), at);
                    }
                }
                fill(at, byte);
                let region = cache.get(at, BYTES, false, || None).expect("registering");
                assert_eq!(device.send(at, region.lkey()), (byte, byte), "round {round}");
                // Again, from the cache: other bytes in the same memory.
                fill(at, byte ^ 0x80);
                let region = cache.get(at, BYTES, false, || None).expect("registering");
                assert_eq!(device.send(at, region.lkey()), (byte ^ 0x80, byte ^ 0x80), "round {round}, again");
            }
        }
        let (_, counts) = cache.counts();
        println!("keeps registrations: {}; {counts:?}", cache.keeps());
        assert!(!cache.keeps() || counts.found >= rounds as u64 && counts.forgotten + 1 >= rounds as u64, "{counts:?}");
        cache.stop();
        // SAFETY: the test's own range.
        unsafe { libc::munmap(at.cast(), BYTES) };
    }
}

/// A hole punched into a file is reported to nobody: memory of one is never sent from a registration that was made before.
#[test]
fn holes_in_files_are_met_too() {
    for port in ports().into_iter().take(1) {
        let protection = Protection::new(&port.device).expect("a domain");
        let domain = protection.domain();
        let cache = Cache::new(&domain, Some(BOUNDS), Box::new(|| ())).expect("a cache");
        let device = Loop::new((&protection, &domain), &port);
        // SAFETY: a new descriptor and a new mapping, both this test's; both live until the end of the process.
        let (fd, at) = unsafe {
            let fd = libc::memfd_create(c"holes".as_ptr(), 0);
            assert!(fd >= 0 && libc::ftruncate(fd, BYTES as i64) == 0);
            let read_write = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(std::ptr::null_mut(), BYTES, read_write, libc::MAP_SHARED, fd, 0);
            assert_ne!(at, libc::MAP_FAILED);
            (fd, at.cast::<u8>())
        };
        for byte in 1..=50 {
            fill(at, byte);
            // SAFETY: the mapping stays; so does the descriptor.
            let arrived = unsafe {
                let region = cache.get(at, BYTES, false, || None).expect("registering");
                let arrived = device.send(at, region.lkey());
                drop(region);
                let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                assert_eq!(libc::fallocate(fd, punch, 0, BYTES as i64), 0);
                arrived
            };
            assert_eq!(arrived, (byte, byte));
        }
        cache.stop();
    }
}
