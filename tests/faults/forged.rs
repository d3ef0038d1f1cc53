//! A program of no job on a third node, which hears all that two ranks say to each other by datagram, and knows everything but the job's key:
//! it says all of it again, with any bit turned, and says what it likes with checks of its own. Nothing of that is taken. Needs `tests/rig`.

use crate::ranks::calls::*;
use crate::ranks::{Job, in_rig, said, skipped};
use fmpl::fabric::network::region::Arena;
use fmpl::fabric::network::{Access, Card};
use fmpl::fabric::verbs::completion::CompletionQueue;
use fmpl::fabric::verbs::device::{Port, Wishes, survey};
use fmpl::fabric::verbs::ffi::{SendFlags, SendWr, Sge, Wc, opcode, wc_status};
use fmpl::fabric::verbs::network::{QKEY, Reached};
use fmpl::fabric::verbs::protection::Protection;
use fmpl::fabric::verbs::queue_pair::{AddressHandle, Depth, QueuePair};
use fmpl::launch::embedded::Nodes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a datagram, and how each begins (`src/fabric/network/stamps.rs` has the drawing).
const DATAGRAM: usize = 192;
const MAGIC: &[u8] = b"FMPLverb";
/// Kinds of datagrams.
const KINDS: u8 = 15;

fn place() -> PathBuf {
    PathBuf::from(std::env::var_os("FORGED_IN").expect("where the two meet the stranger"))
}

/// The ranks talk, and ask each other things by datagram, until the stranger has said all that it has to say.
pub fn is_spoken_to_by_a_stranger() {
    init(8);
    let (me, place) = (rank(), place());
    let ep = fmpl::p2p::endpoint::endpoint().expect("in a job");
    let fabric = ep.fabric_here().expect("a device");
    let lane = ep.lane(1 - me as u32).expect("a lane");
    let remote = lane.remote().expect("on another node");
    std::fs::write(place.join(format!("new{me}")), fabric.card().encode(&fabric.device().network())).expect("its card");
    std::fs::rename(place.join(format!("new{me}")), place.join(format!("card{me}"))).expect("its card");
    let mut rounds = 0u64;
    loop {
        let mut got = [0; 8];
        sendrecv(&rounds.to_ne_bytes(), 1 - me, 0, &mut got, 1 - me, 0);
        assert_eq!(got, rounds.to_ne_bytes());
        assert_eq!(remote.ask_indices().expect("an answer"), 8);
        rounds += 1;
        // Both ends in the same round.
        let over = [place.join("over").exists() as u8; 8];
        let mut theirs = [0; 8];
        sendrecv(&over, 1 - me, 1, &mut theirs, 1 - me, 1);
        if over[0] & theirs[0] == 1 {
            break;
        }
        sleep_ms(5);
    }
    assert!(remote.link.failure().is_none() && !remote.link.has_left());
    println!("rejected {} in {rounds} rounds", fabric.rejected());
    finalize();
}

/// What is heard on all of this kernel's networks.
struct Ear(i32);

impl Ear {
    fn new() -> Ear {
        // SAFETY: no memory is involved.
        let fd = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                (libc::ETH_P_ALL as u16).to_be().into(),
            )
        };
        assert!(fd >= 0, "a socket that hears all: {}", std::io::Error::last_os_error());
        Ear(fd)
    }
    /// The datagrams that it hears from now on until there are so many.
    fn datagrams(&self, most: usize, until: Instant) -> Vec<Vec<u8>> {
        let (mut all, mut frame) = (BTreeSet::new(), vec![0u8; 65536]);
        while all.len() < most {
            assert!(Instant::now() < until, "only {} datagrams were heard", all.len());
            // SAFETY: so many writable bytes.
            let n = unsafe { libc::recv(self.0, frame.as_mut_ptr().cast(), frame.len(), 0) };
            let heard = &frame[..n.max(0) as usize];
            if let Some(at) = heard.windows(MAGIC.len()).position(|w| w == MAGIC)
                && let Some(datagram) = heard.get(at..at + DATAGRAM)
            {
                all.insert(datagram.to_vec());
            } else if n < 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        all.into_iter().collect()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        // SAFETY: its own descriptor.
        unsafe { libc::close(self.0) };
    }
}

/// Says what it likes to a process, by a device of its own.
struct Mouth {
    qp: QueuePair,
    sent: Arc<CompletionQueue>,
    memory: Arena,
    way: AddressHandle,
    to: Reached,
    said: usize,
}

impl Mouth {
    fn new(port: &Port, to: Card) -> Mouth {
        let to = Reached::at(&to.address);
        let protection = Protection::new(&port.device).expect("a domain");
        let sent = CompletionQueue::new(&port.device, 16, None).expect("a queue");
        let got = CompletionQueue::new(&port.device, 16, None).expect("a queue");
        let depth = Depth { sends: 4, receives: 4, pieces: 1, inline: 0 };
        let qp = QueuePair::datagrams(&protection, port, [&sent, &got], depth, QKEY).expect("a datagram queue pair");
        let memory = Arena::new(&protection.domain(), DATAGRAM, Access::LOCAL_WRITE).expect("memory");
        let until = Instant::now() + Duration::from_secs(20);
        let way = loop {
            match AddressHandle::new(&protection, port, to.gid, to.lid).expect("a way") {
                Some(way) => break way,
                None => assert!(Instant::now() < until, "nobody knows the address"),
            }
        };
        Mouth { qp, sent, memory, way, to, said: 0 }
    }

    fn say(&mut self, datagram: &[u8]) {
        // SAFETY: as many bytes as the arena has; what was said before has left.
        unsafe { self.memory.as_ptr().copy_from_nonoverlapping(datagram.as_ptr(), DATAGRAM) };
        let (addr, lkey) = (self.memory.as_ptr() as u64, self.memory.region().lkey());
        let mut sge = Sge { addr, length: DATAGRAM as u32, lkey };
        let mut wr = SendWr::new(opcode::SEND, SendFlags::SIGNALED, self.way.to(self.to.qp_num, QKEY));
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole; its memory and way stay until its completion.
        unsafe { self.qp.post(&mut wr).expect("posting") };
        let (mut wc, until) = ([Wc::default()], Instant::now() + Duration::from_secs(20));
        while self.sent.poll(&mut wc).expect("polling") == 0 {
            assert!(Instant::now() < until, "a datagram does not leave");
        }
        assert_eq!(wc[0].status, wc_status::SUCCESS);
        self.said += 1;
        // There is room for 128 that nobody has looked at; where processors are emulated and shared it takes a while until somebody does.
        if self.said.is_multiple_of(8) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// All that a stranger can say who has heard these datagrams.
fn lies(heard: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut lies: Vec<Vec<u8>> = heard.to_vec();
    // Again with a bit turned: of one each bit of head, number and check, of the others one here and there.
    for (n, datagram) in heard.iter().enumerate() {
        let bits = (0..8 * DATAGRAM).filter(|bit| match n {
            0 => !(8 * 32..8 * 176).contains(bit) || bit % 16 == 0,
            n => bit % 97 == n % 97,
        });
        lies.extend(bits.map(|bit| {
            let mut lie = datagram.clone();
            lie[bit / 8] ^= 1 << (bit % 8);
            lie
        }));
    }
    // Of each kind, with a number that is to come, a check of another datagram, of zeros, and of chance.
    let other = heard.last().expect("some");
    for kind in 0..KINDS {
        for (n, datagram) in heard.iter().take(4).enumerate() {
            let mut lie = datagram.clone();
            lie[8..12].copy_from_slice(&[kind, 0, 0, 0]);
            lie[24..32].copy_from_slice(&(1u64 << (20 + n)).to_le_bytes());
            match n {
                0 => lie[176..].copy_from_slice(&other[176..]),
                1 => lie[176..].fill(0),
                2 => lie[176..]
                    .iter_mut()
                    .enumerate()
                    .for_each(|(k, b)| *b = (k as u8).wrapping_mul(37).wrapping_add(kind)),
                _ => {}
            }
            lies.push(lie);
        }
    }
    lies
}

/// Hears the ranks, and lies to both; how many lies each got.
fn stranger(place: &Path) -> usize {
    let until = Instant::now() + Duration::from_secs(90);
    let card = |rank: usize| loop {
        match std::fs::read(place.join(format!("card{rank}"))) {
            Ok(card) => break Card::decode(&card).expect("a card").0,
            Err(_) => assert!(Instant::now() < until, "rank {rank} does not come"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let cards = [card(0), card(1)];
    let heard = Ear::new().datagrams(12, until);
    let ports = survey(&Wishes::default()).expect("devices");
    let port = ports.into_iter().filter_map(|(_, port)| port.ok()).nth(2).expect("a third node's port");
    let lies = lies(&heard);
    for card in cards {
        let mut mouth = Mouth::new(&port, card);
        lies.iter().for_each(|lie| mouth.say(lie));
    }
    lies.len()
}

pub fn forged_there() {
    if !in_rig() {
        return skipped("only in tests/rig there is a third node with a device");
    }
    let place = std::env::temp_dir().join(format!("fmpl-forged-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let job = Job::new(2, "is spoken to by a stranger").nodes(Nodes::Cyclic(2)).env("FORGED_IN", place.display());
    let outcome = std::thread::scope(|scope| {
        let job = scope.spawn(|| job.seconds(150).run());
        let lies = std::panic::catch_unwind(|| stranger(&place));
        // Whatever has become of it: the ranks wait for this.
        std::fs::write(place.join("over"), "").expect("the word that it is over");
        let lies = lies.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcome = job.join().expect("the job goes on, whatever is said");
        println!("  {lies} lies to each");
        outcome
    });
    for rank in 0..2 {
        let text = said(&outcome, rank);
        let rejected = text.split_once("rejected ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<usize>().ok());
        println!("  rank {rank}: {}", text.trim());
        // Those that come when there is no room are lost.
        assert!(rejected.is_some_and(|n| n >= 100), "{text}");
    }
    let _ = std::fs::remove_dir_all(&place);
}
