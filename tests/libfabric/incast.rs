//! Incast: all others, each on a node of its own, send to one rank that does not receive. Of its own memory that takes nothing, by component;
//! what the provider takes for each connection is told.

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, long, said, short, story};
use fmpl::comm::{Part, memory};

/// Messages of each size at first, of which most wait for their receive; those that wait later; and the sizes.
const MET: usize = 4;
const MANY: usize = 40;
const SIZES: [usize; 3] = [8, 1000, 20_000];

fn parts() -> Vec<Part> {
    memory().expect("in a job")
}

/// Bytes of one component.
fn of(parts: &[Part], name: &str) -> u64 {
    parts.iter().find(|part| part.name == name).map_or(0, |part| part.bytes)
}

/// Resident bytes of this process, and its descriptors.
fn resident() -> (u64, usize) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("this process's memory");
    let pages: u64 = text.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number of pages");
    (pages * 4096, std::fs::read_dir("/proc/self/fd").expect("this process's descriptors").count())
}

fn message(rank: i32, n: usize, k: usize) -> Vec<u8> {
    vec![(rank as usize * 31 + n * 7 + k) as u8; n]
}

/// Rank 0 meets all, with each kind of message that comes later; then it is sent to, and looks what that has taken.
pub fn is_sent_to_by_all() {
    init(8);
    mode(1);
    let (me, all) = (rank(), size());
    let looked = std::path::PathBuf::from(std::env::var("INCAST_LOOKED").expect("a name for a file"));
    let send_each = |k: usize| SIZES.iter().zip(0..).for_each(|(n, index)| send(&message(me, *n, k), 0, index));
    if me > 0 {
        let mut go = [0];
        // A call would already be a contact.
        while !looked.exists() {
            sleep_ms(10);
        }
        (0..MET).for_each(send_each);
        for _ in 0..2 {
            send(&[1], 0, 4);
            recv(&mut go, 0, 5);
        }
        (0..MANY).for_each(send_each);
        send(&[1], 0, 4);
        recv(&mut go, 0, 5);
        return finalize();
    }
    let recv_each = |many: usize| {
        for (from, k) in (1..all).flat_map(|from| (0..many).map(move |k| (from, k))) {
            for (n, index) in SIZES.iter().zip(0..) {
                let mut got = vec![0; *n];
                recv(&mut got, from, index);
                assert_eq!(got, message(from, *n, k), "from {from}, message {k} of {n} bytes");
            }
        }
    };
    let told = || (1..all).for_each(|from| recv(&mut [0], from, 4));
    let tell = || (1..all).for_each(|to| send(&[1], to, 5));
    let (alone, kernel_alone) = (parts(), resident());
    std::fs::write(&looked, "").expect("the word that others may come");
    told();
    recv_each(MET);
    tell();
    told();
    let (met, kernel_met) = (parts(), resident());
    tell();
    told();
    let (sent_to, kernel_sent_to) = (parts(), resident());
    recv_each(MANY);
    tell();
    finalize();

    let senders = u64::from(all as u32 - 1);
    for part in &sent_to {
        let [alone, met] = [&alone, &met].map(|parts| of(parts, part.name));
        let each = met.saturating_sub(alone) / senders;
        println!("{}: {each} B for each sender, {} B more under incast", part.name, part.bytes as i64 - met as i64);
    }
    let sum = |parts: &[Part]| parts.iter().map(|part| part.bytes).sum::<u64>();
    let own = sum(&met) - sum(&alone);
    let provider = (kernel_met.0 - kernel_alone.0).saturating_sub(own) / senders;
    let files = (kernel_met.1 - kernel_alone.1) as u64 / senders;
    println!(
        "incast from {senders} nodes: own {} B more by component, the process {} B; each connection {} B of our own, {provider} B and {files} \
         descriptors of the provider",
        sum(&sent_to) as i64 - sum(&met) as i64,
        kernel_sent_to.0 as i64 - kernel_met.0 as i64,
        own / senders,
    );
    for part in &sent_to {
        assert!(
            part.bytes <= of(&met, part.name),
            "{} grows under incast: {} B to {} B",
            part.name,
            of(&met, part.name),
            part.bytes
        );
    }
}

pub fn takes_nothing() {
    let Some(offered) = crate::choice::offered() else { return };
    let senders = match () {
        () if long() => 64,
        () if short() => 6,
        () => 16,
    };
    let looked = std::env::temp_dir().join(format!("fmpl-incast-{}", std::process::id()));
    let job = Job::new(senders + 1, "is sent to by all").nodes(Nodes::Cyclic(senders as u32 + 1)).seconds(300);
    let job = job.settings("FMPL_WAIT=block FMPL_ATTACH_TIMEOUT=120").env("INCAST_LOOKED", looked.display());
    let outcome = job.env("FMPL_NETWORK", format!("ofi:{offered}")).outcome();
    let _ = std::fs::remove_file(&looked);
    assert_eq!(outcome.code, 0, "{}", story(&outcome));
    said(&outcome, 0).lines().for_each(|line| println!("  {line}"));
}
