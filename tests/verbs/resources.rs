//! What a device does for us, between two queue pairs of one process: the operations that the lanes are made of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fmpl::fabric::network::Access;
use fmpl::fabric::network::region::Arena;
use fmpl::fabric::verbs::completion::{Channel, CompletionQueue, status_text};
use fmpl::fabric::verbs::device::{Port, Wishes, survey};
use fmpl::fabric::verbs::ffi::{self, Rdma, SendFlags, SendWr, Sge, Target, Wc, opcode, wc_status};
use fmpl::fabric::verbs::protection::Protection;
use fmpl::fabric::verbs::queue_pair::{Depth, QueuePair, Remote, SharedReceives};

struct Side {
    qp: QueuePair,
    sent: Arc<CompletionQueue>,
    got: Arc<CompletionQueue>,
    channel: Arc<Channel>,
    memory: Arena,
}

impl Side {
    fn new(port: &Port) -> Side {
        let protection = Protection::new(&port.device).expect("a domain");
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = Arena::new(&protection.domain(), 1 << 20, access).expect("memory");
        let channel = Channel::new(&port.device).expect("a channel");
        let sent = CompletionQueue::new(&port.device, 64, None).expect("a queue");
        let got = CompletionQueue::new(&port.device, 64, Some(&channel)).expect("a queue");
        let shared = SharedReceives::new(&protection, 16).expect("shared receives");
        (0..16).for_each(|_| shared.post_empty().expect("a receive"));
        let depth = Depth { sends: 32, receives: 0, pieces: 4, inline: 128 };
        let qp = QueuePair::reliable(&protection, port, [&sent, &got], &shared, depth).expect("a queue pair");
        Side { qp, sent, got, channel, memory }
    }
    fn remote(&self, port: &Port, psn: u32) -> Remote {
        Remote { qp_num: self.qp.number(), psn, gid: port.address.gid, lid: port.lid, mtu: port.mtu }
    }
    fn bytes(&self) -> *mut u8 {
        self.memory.as_ptr()
    }
    /// Posts one request and waits for its completion.
    fn do_one(&self, peer: &Side, code: i32, (at, to, len): (usize, usize, usize), flags: SendFlags, key: u32) -> Wc {
        let mut sge =
            Sge { addr: self.bytes() as u64 + at as u64, length: len as u32, lkey: self.memory.region().lkey() };
        let target = Target { rdma: Rdma { remote_addr: peer.bytes() as u64 + to as u64, rkey: key } };
        let mut wr = SendWr::new(code, flags | SendFlags::SIGNALED, target);
        wr.wr_id = 77;
        wr.imm_data = 0x1234_5678u32.to_be();
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole, its memory registered; this function waits for the completion.
        unsafe { self.qp.post(&mut wr).expect("posting") };
        one(&self.sent)
    }
}

pub fn one(queue: &CompletionQueue) -> Wc {
    let mut wc = [Wc::default()];
    let since = Instant::now();
    while queue.poll(&mut wc).expect("polling") == 0 {
        assert!(since.elapsed() < Duration::from_secs(30), "no completion");
    }
    wc[0]
}

pub fn ports() -> Vec<Port> {
    let ports: Vec<Port> = survey(&Wishes::default()).into_iter().flatten().filter_map(|(_, p)| p.ok()).collect();
    if ports.is_empty() {
        crate::skip::note(std::thread::current().name().unwrap_or("verbs"), "no active RDMA port");
    }
    ports
}

fn pair(port: &Port) -> (Side, Side) {
    let (a, b) = (Side::new(port), Side::new(port));
    a.qp.connect(&b.remote(port, 22), 11).expect("connecting");
    b.qp.connect(&a.remote(port, 11), 22).expect("connecting");
    (a, b)
}

#[test]
fn two_queue_pairs_reach_each_other() {
    for port in ports() {
        println!("{port}");
        let (a, b) = pair(&port);
        let key = b.memory.region().rkey();
        // SAFETY: all accesses are within the arenas, whose other users are the devices, which have completed.
        unsafe {
            for i in 0..100_000 {
                *a.bytes().add(i) = (i * 7 % 251) as u8;
            }
            let wc = a.do_one(&b, opcode::RDMA_WRITE, (0, 4096, 100_000), SendFlags::empty(), key);
            assert_eq!((wc.status, wc.wr_id), (wc_status::SUCCESS, 77), "{}", status_text(wc.status));
            assert!((0..100_000).all(|i| *b.bytes().add(4096 + i) == (i * 7 % 251) as u8));

            let wc = a.do_one(&b, opcode::RDMA_WRITE, (64, 64, 96), SendFlags::INLINE, key);
            assert_eq!(wc.status, wc_status::SUCCESS);
            assert_eq!(*b.bytes().add(64 + 95), *a.bytes().add(64 + 95));

            let wc = a.do_one(&b, opcode::RDMA_READ, (500_000, 5000, 70_000), SendFlags::empty(), key);
            assert_eq!(wc.status, wc_status::SUCCESS);
            assert!((0..70_000).all(|i| *a.bytes().add(500_000 + i) == *b.bytes().add(5000 + i)));

            b.got.arm().expect("arming");
            let wc = a.do_one(&b, opcode::RDMA_WRITE_WITH_IMM, (0, 8, 8), SendFlags::INLINE, key);
            assert_eq!(wc.status, wc_status::SUCCESS);
            let mut fd = libc::pollfd { fd: b.channel.fd(), events: libc::POLLIN, revents: 0 };
            assert_eq!(libc::poll(&mut fd, 1, 30_000), 1, "no event on the channel");
            assert_eq!(b.channel.take_events(), 1);
            let wc = one(&b.got);
            assert_eq!((wc.opcode, u32::from_be(wc.imm_data)), (ffi::WC_RECV_RDMA_WITH_IMM, 0x1234_5678));
            assert_eq!(wc.qp_num, b.qp.number());
        }
    }
}

#[test]
fn a_wrong_key_breaks_the_connection_and_says_so() {
    for port in ports() {
        let (a, b) = pair(&port);
        let key = b.memory.region().rkey();
        let wc = a.do_one(&b, opcode::RDMA_WRITE, (0, 0, 64), SendFlags::empty(), key ^ 0x55);
        assert_eq!(wc.status, wc_status::REMOTE_ACCESS, "{}", status_text(wc.status));
        let wc = a.do_one(&b, opcode::RDMA_WRITE, (0, 0, 64), SendFlags::empty(), key);
        assert_eq!(wc.status, wc_status::FLUSHED, "{}", status_text(wc.status));
    }
}

#[test]
fn a_peer_that_is_gone_is_noticed() {
    for port in ports() {
        let (a, b) = pair(&port);
        let key = b.memory.region().rkey();
        let (addr, since) = (b.memory.region().addr(), Instant::now());
        b.qp.break_off().expect("into the error state");
        drop(b.qp);
        let mut sge = Sge { addr: a.bytes() as u64, length: 8, lkey: a.memory.region().lkey() };
        let target = Target { rdma: Rdma { remote_addr: addr, rkey: key } };
        let mut wr = SendWr::new(opcode::RDMA_WRITE, SendFlags::SIGNALED, target);
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole, its memory registered until its completion.
        unsafe { a.qp.post(&mut wr).expect("posting") };
        let wc = one(&a.sent);
        assert_eq!(wc.status, wc_status::RETRY_EXCEEDED, "{}", status_text(wc.status));
        println!("noticed after {:?}", since.elapsed());
    }
}
