//! Which network is chosen, and what is refused in init.

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, complaints, said, skip, story};
use fmpl::fabric::ofi::provider::{self, Wishes, choose};

/// The provider that the library offers by itself; `None`: there is no library here, and the test is skipped.
pub fn offered() -> Option<String> {
    match choose(&Wishes { file: std::env::var("FMPL_LIBFABRIC").ok(), ..Wishes::default() }) {
        Ok(offer) => Some(offer.provider()),
        Err(e) => {
            skip::skip(e.detail());
            None
        }
    }
}

/// Which of the libraries that lead to other nodes this process has loaded.
pub fn looks_for_libraries() {
    init(8);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
    let loaded = ["libfabric.so", "libibverbs.so"].map(|name| maps.contains(name));
    println!("loaded {loaded:?}");
    finalize();
}

pub fn loads_nothing() {
    if offered().is_none() {
        return;
    }
    for name in ["auto", "ofi"] {
        let outcome = Job::new(2, "looks for libraries").env("FMPL_NETWORK", name).run();
        (0..2).for_each(|rank| assert!(said(&outcome, rank).contains("loaded [false, false]"), "{}", story(&outcome)));
    }
    let outcome = Job::new(2, "looks for libraries").nodes(Nodes::Cyclic(2)).env("FMPL_NETWORK", "ofi").run();
    (0..2).for_each(|rank| assert!(said(&outcome, rank).contains("loaded [true, "), "{}", story(&outcome)));
}

/// A message back and forth with each of the others.
pub fn says_a_word() {
    init(8);
    let (me, mut got) = (rank(), [0; 8]);
    for peer in (0..size()).filter(|peer| *peer != me) {
        let said = [me as u8 + 1; 8];
        if me < peer {
            send(&said, peer, 0);
        }
        recv(&mut got, peer, 0);
        assert_eq!(got, [peer as u8 + 1; 8]);
        if me > peer {
            send(&said, peer, 0);
        }
    }
    finalize();
}

/// RDMA, where there is a port; else, where no devices are that libfabric may know, TCP without asking it.
pub fn by_itself() {
    let has_port = fmpl::fabric::verbs::device::survey(&Default::default())
        .is_ok_and(|ports| ports.iter().any(|(_, port)| port.is_ok()));
    if provider::has_devices() && !has_port {
        return skip::skip("there are devices that are no RDMA port, of which libfabric may have a provider");
    }
    let expected = if has_port { "RDMA by " } else { "between nodes: tcp on " };
    let outcome =
        Job::new(4, "says a word").nodes(Nodes::Cyclic(2)).env("FMPL_NETWORK", "auto").env("FMPL_LOG", "info").run();
    assert_eq!(complaints(&outcome).matches(expected).count(), 4, "{}", story(&outcome));
    if provider::has_devices() {
        return;
    }
    let settings = "FMPL_NETWORK=auto FMPL_VERBS=off FMPL_LOG=info";
    let outcome = Job::new(2, "looks for libraries").nodes(Nodes::Cyclic(2)).settings(settings).run();
    assert_eq!(complaints(&outcome).matches("between nodes: tcp on ").count(), 2, "{}", story(&outcome));
    // A library that is named is asked first what it has.
    if std::env::var_os("FMPL_LIBFABRIC").is_none() {
        (0..2).for_each(|rank| assert!(said(&outcome, rank).contains("loaded [false, false]"), "{}", story(&outcome)));
    }
}

/// Rank 1 uses another network than the others.
pub fn chooses_its_own() {
    let own = std::env::var("CHOOSES").expect("what rank 1 chooses");
    if std::env::var("PMI_RANK").expect("the launcher's") == "1" {
        // SAFETY: before init, on the only thread.
        unsafe { std::env::set_var("FMPL_NETWORK", own) };
    }
    fails_in_init();
}

/// Init fails, with this text.
pub fn fails_in_init() {
    assert_ne!(try_init(8), 0, "init has succeeded");
    println!("in init: {}", last_error());
    // The error of another rank may come a little later.
    sleep_ms(500);
}

pub fn different_ones() {
    let Some(offered) = offered() else { return };
    let other = if offered == "tcp;ofi_rxm" { "net" } else { "tcp;ofi_rxm" };
    for chosen in [format!("ofi:{other}"), "none".to_owned()] {
        let job = Job::new(2, "chooses its own network").nodes(Nodes::Cyclic(2)).env("CHOOSES", &chosen);
        let outcome = job.env("FMPL_NETWORK", format!("ofi:{offered}")).keep_going().outcome();
        let named = chosen.strip_prefix("ofi:").unwrap_or(&chosen);
        for rank in 0..2 {
            let text = said(&outcome, rank);
            let uses = |rank: usize, name: &str| {
                text.contains(&format!("rank {rank} on node {rank} (")) && text.contains(&format!(" {name}"))
            };
            assert!(uses(0, &offered) && uses(1, named), "{}", story(&outcome));
        }
    }
}

pub fn cannot_be_had() {
    if offered().is_none() {
        return;
    }
    for (settings, words) in [
        (
            "FMPL_NETWORK=ofi FMPL_LIBFABRIC=/nowhere/libfabric.so.1",
            ["FMPL_LIBFABRIC=/nowhere/libfabric.so.1: ", "No such file"],
        ),
        (
            "FMPL_NETWORK=auto FMPL_VERBS=off FMPL_LIBFABRIC=/nowhere/f.so",
            ["FMPL_LIBFABRIC=/nowhere/f.so: ", "No such file"],
        ),
        ("FMPL_NETWORK=ofi:sm2", ["FMPL_NETWORK=ofi:sm2: ", "reaches processes of this machine only"]),
        ("FMPL_NETWORK=ofi:udp", ["FMPL_NETWORK=ofi:udp: ", "no reliable datagrams"]),
        ("FMPL_NETWORK=ofi:nobody", ["FMPL_NETWORK=ofi:nobody: ", "nobody is not there"]),
    ] {
        let outcome = Job::new(2, "fails in init").nodes(Nodes::Cyclic(2)).settings(settings).keep_going().outcome();
        for rank in 0..2 {
            let text = said(&outcome, rank);
            let names = text.contains("in init: ") && text.contains(&format!("rank {rank} on node {rank} of 2 ("));
            assert!(names && words.iter().all(|word| text.contains(word)), "{settings}: {}", story(&outcome));
        }
        // On one node nobody cares.
        Job::new(2, "says a word").settings(settings).run();
    }
}

/// Whatever a provider lacks: it carries messages, or is refused in init with the reason. It never hangs.
pub fn used_or_refused() {
    if offered().is_none() {
        return;
    }
    let mut used = Vec::new();
    for name in [
        "tcp",
        "tcp;ofi_rxm",
        "net",
        "net;ofi_rxm",
        "sockets",
        "udp;ofi_rxd",
        "shm",
        "sm2",
        "psm2",
        "psm3",
        "efa",
        "verbs;ofi_rxm",
    ] {
        let job = Job::new(3, "says a word").nodes(Nodes::Cyclic(3)).env("FMPL_NETWORK", format!("ofi:{name}"));
        let outcome = job.env("FMPL_ATTACH_TIMEOUT", 20).seconds(60).outcome();
        if outcome.code == 0 {
            used.push(name);
        } else {
            let text = story(&outcome);
            let refused = format!("FMPL_NETWORK=ofi:{name}: libfabric ");
            assert!(text.contains(&refused) && text.contains("has no provider that can be used: "), "{name}: {text}");
        }
    }
    println!("  used: {}", used.join(", "));
    assert!(used.iter().any(|name| name.starts_with("tcp")), "{used:?}");
}
