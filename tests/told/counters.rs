use fmpl::WayTaken;
use fmpl::ffi::c::*;

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, complaints, has_devices, in_software, kernel_copies};

/// What the counter with this number has.
fn counter(which: i32) -> u64 {
    let mut n = 0;
    ok(fmpl_counter(which, (&mut n).into()));
    n as u64
}

/// Messages and bytes by way.
fn ways() -> Vec<[u64; 2]> {
    let way =
        |way: i32| [counter(FMPL_COUNTER_WAY_SHORT + way), counter(FMPL_COUNTER_WAY_SHORT + way + FMPL_COUNTER_BYTES)];
    (0..WayTaken::ALL.len() as i32).map(way).collect()
}

/// What rank 0 has sent; rank 1 receives the same.
#[derive(Default)]
struct Sent {
    messages: u64,
    bytes: u64,
}

impl Sent {
    /// Messages, each awaited.
    fn each(&mut self, messages: u64, len: usize) {
        for _ in 0..messages {
            if rank() == 0 {
                recv(&mut [], 1, 1);
                send(&vec![5; len], 1, 2);
            } else {
                send(&[], 0, 1);
                recv(&mut vec![0; len], 0, 2);
            }
        }
        self.count(messages, len);
    }

    /// Messages that are all sent before the first is received.
    fn unreceived(&mut self, messages: u64, len: usize) {
        if rank() == 0 {
            (0..messages).for_each(|_| send(&vec![6; len], 1, 3));
            send(&[], 1, 4);
        } else {
            recv(&mut [], 0, 4);
            (0..messages).for_each(|_| recv(&mut vec![0; len], 0, 3));
        }
        self.count(messages, len);
        self.count(1, 0);
    }

    fn count(&mut self, messages: u64, len: usize) {
        self.messages += messages;
        self.bytes += messages * len as u64;
    }

    /// The counters say the same.
    fn check(&self) -> Vec<[u64; 2]> {
        let ways = ways();
        if rank() == 0 {
            let sum = [0, 1].map(|k| ways.iter().map(|way| way[k]).sum::<u64>());
            assert_eq!(sum, [self.messages, self.bytes], "{ways:?}");
        } else {
            assert_eq!(counter(FMPL_COUNTER_RECEIVED), self.messages);
        }
        ways
    }
}

/// Each way is what the counters say, and together they are all messages.
pub fn goes_each_way() {
    init(8);
    let mut sent = Sent::default();
    sent.each(20, 8);
    sent.each(20, 700);
    let ways = sent.check();
    if rank() == 0 {
        assert_eq!((ways[WayTaken::Short as usize], counter(FMPL_COUNTER_QUEUED)), ([40, 14160], 0));
    }
    // The first in the landing, the others in the queue.
    sent.unreceived(10, 8);
    sent.check();
    if rank() == 0 {
        assert_eq!(counter(FMPL_COUNTER_QUEUED), 9);
    }
    sent.unreceived(1, 100_000);
    let ways = sent.check();
    if rank() == 0 {
        assert_eq!(ways[WayTaken::Spool as usize], [1, 100_000]);
        assert!(counter(FMPL_COUNTER_SPOOL_MOST) >= 100_000);
    }
    // Loans are counted where they are sent.
    if rank() == 0 {
        for len in [10, 30_000] {
            let mut at = std::ptr::null_mut::<std::ffi::c_void>();
            ok(fmpl_loan(len, (&mut at).into()));
            ok(fmpl_send_loan(at, len, 1, 5, comm()));
        }
    } else {
        for len in [10, 30_000] {
            recv(&mut vec![0; len], 0, 5);
        }
    }
    sent.count(1, 10);
    sent.count(1, 30_000);
    let ways = sent.check();
    if rank() == 0 {
        assert_eq!(ways[WayTaken::Loan as usize], [2, 30_010]);
    }
    // A communicator that is freed is still counted.
    let world = comm();
    on(dup(world));
    sent.each(3, 80_000);
    sent.each(3, 8);
    free(comm());
    on(world);
    sent.check();
    finalize();
}

/// Long messages, by the way that the settings say.
pub fn goes_one_way() {
    let wanted = std::env::var("WANTED").unwrap();
    let wanted = WayTaken::ALL.iter().position(|(_, name)| *name == wanted).expect("a way");
    init(8);
    let mut sent = Sent::default();
    let (messages, len) = (8, 200_000);
    if WayTaken::ALL[wanted].0 == WayTaken::Store {
        // SAFETY: the memory is as long, and zero at first.
        let memory = unsafe {
            let at = fmpl_alloc(len);
            assert!(!at.is_null(), "{}", last_error());
            std::slice::from_raw_parts_mut(at.cast::<u8>(), len)
        };
        for _ in 0..messages {
            if rank() == 1 {
                irecv(memory, 0, 2);
            }
            barrier();
            if rank() == 0 {
                send(memory, 1, 2);
            } else {
                irecv_wait(0, 2);
            }
        }
        sent.count(messages, len);
    } else if WayTaken::ALL[wanted].0 == WayTaken::Pulled {
        let memory = vec![1; len];
        for _ in 0..messages {
            if rank() == 0 {
                isend(&memory, 1, 2);
            }
            barrier();
            if rank() == 0 {
                isend_wait(1, 2);
            } else {
                recv(&mut vec![0; len], 0, 2);
            }
        }
        sent.count(messages, len);
    } else {
        sent.each(messages, len);
    }
    let ways = sent.check();
    if rank() == 0 {
        println!("{} of {messages}", ways[wanted][0]);
        assert!(ways[wanted][0] > 0 && ways[wanted][1] == ways[wanted][0] * len as u64, "{ways:?}");
    }
    finalize();
}

/// Short messages in turn go through the landing, also on an index on which long ones have crossed.
pub fn goes_in_turn_again() {
    init(8);
    let other = 1 - rank();
    let (long, mut came) = (vec![rank() as u8; 64 << 10], vec![0; 64 << 10]);
    for _ in 0..200 {
        sendrecv(&long, other, 1, &mut came, other, 1);
        assert!(came.iter().all(|byte| *byte == other as u8));
    }
    let (before, messages) = (counter(FMPL_COUNTER_QUEUED), 3000);
    for n in 0..messages {
        let (mine, mut theirs) = ([n as u8; 8], [0; 8]);
        if rank() == 0 {
            send(&mine, other, 1);
        }
        recv(&mut theirs, other, 1);
        assert_eq!(theirs, mine);
        if rank() == 1 {
            send(&mine, other, 1);
        }
    }
    let queued = counter(FMPL_COUNTER_QUEUED) - before;
    assert!(queued < messages / 10, "{queued} of {messages} were queued");
    finalize();
}

/// The same between nodes.
pub fn goes_far() {
    init(8);
    let mut sent = Sent::default();
    sent.each(20, 8);
    sent.each(5, 200_000);
    let ways = sent.check();
    if rank() == 0 {
        assert_eq!(ways[WayTaken::RemoteShort as usize], [20, 160], "{ways:?}");
        assert!(ways[WayTaken::RemotePut as usize][0] > 0, "{ways:?}");
    }
    sent.unreceived(10, 8);
    sent.unreceived(1, 100_000);
    let ways = sent.check();
    if rank() == 0 {
        // Whose acknowledgement is late there is in the queue, too.
        let queued = counter(FMPL_COUNTER_QUEUED);
        assert!(ways[WayTaken::RemoteSpool as usize][0] > 0 && (9..=32).contains(&queued), "{queued} {ways:?}");
    }
    finalize();
}

pub fn over_rdma() {
    if has_devices() {
        let outcome =
            Job::new(2, "goes far").nodes(Nodes::Cyclic(2)).settings("FMPL_LOG=debug FMPL_TIMEOUT=1000").run();
        let text = complaints(&outcome);
        let network = if in_software() { "between nodes: " } else { "between nodes: RDMA by " };
        for piece in [network, "by RDMA, 8 indices", "connected with rank 0", "bytes at 0x"] {
            assert!(text.contains(piece), "{piece}: {text}");
        }
    }
}

pub fn each_way() {
    Job::new(2, "goes each way").run();
    for (wanted, settings) in [
        ("ring", "FMPL_SHM_PATH=ring"),
        ("turn", "FMPL_SHM_PATH=turn"),
        ("shared", "FMPL_SHM_PATH=coop"),
        ("kernel", "FMPL_SHM_PATH=cma"),
        ("store", "FMPL_SHM_PATH=store"),
        ("spool", "FMPL_SHM_PATH=spool"),
        ("pulled", "FMPL_SHM_PATH=cma"),
    ] {
        if matches!(wanted, "shared" | "kernel" | "pulled") && !kernel_copies() {
            continue;
        }
        // Where it must be awaited, a send has time.
        Job::new(2, "goes one way").env("WANTED", wanted).settings(settings).env("FMPL_TIMEOUT", 5000).run();
    }
}

/// By the kernel and through the spool: the ways of far and of near cores.
pub fn in_turn_again() {
    for distance in ["apart", "shared"] {
        Job::new(2, "goes in turn again").env("FMPL_DISTANCE", distance).run();
    }
}
