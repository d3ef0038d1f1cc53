//! What there is between nodes: RDMA ports, and the network that would be chosen.

use super::*;

/// The RDMA ports: what a rank would choose, and whether it could use it, tried by registering memory and making a queue pair.
pub(super) fn rdma() -> Vec<Finding> {
    use fmpl::fabric::verbs::device::{Wishes, survey};
    const NAME: &str = "RDMA";
    let config = Config::from_environment().unwrap_or_default();
    let ports = match survey(&Wishes::of(&config)) {
        Ok(ports) if ports.is_empty() => return vec![Finding::good(NAME, "no device; not needed within a node")],
        Ok(ports) => ports,
        Err(e) if e.code() == fmpl::Code::Setting => {
            let costs = "init fails where ranks are on several nodes";
            return vec![Finding::problem(NAME, e.detail(), costs, "fmpl info lists the ports")];
        }
        Err(e) => return vec![Finding::good(NAME, format!("{}; not needed within a node", e.detail()))],
    };
    let mut all = Vec::new();
    for (name, port) in ports {
        let multicast = port.as_ref().ok().map(multicast);
        let tried = port.map_err(|why| (why, "")).and_then(|port| match try_port(&port) {
            Ok(()) => Ok(port),
            Err(e) => Err((
                e.detail().to_owned(),
                "raise the limit on locked memory (ulimit -l), and let the user open /dev/infiniband/uverbs*",
            )),
        });
        all.push(match tried {
            Ok(port) => Finding::good(NAME, format!("{port}: works (memory registered, queue pair made)")),
            Err((why, mend)) => Finding::note(NAME, format!("{name}: {why}"), "this port is not used", mend),
        });
        all.extend(multicast);
    }
    all
}

/// The network that a job of several nodes would use, opened as a rank would, and what it takes.
pub(super) fn network() -> Finding {
    use fmpl::fabric::network::link::DEPTH;
    use fmpl::fabric::networks;
    const NAME: &str = "between nodes";
    const FAILS: &str = "a job whose ranks are on several nodes fails in init";
    let config = Config::from_environment().unwrap_or_default();
    if !networks::is_wanted(&config) {
        return Finding::good(NAME, "no network is wanted (FMPL_NETWORK=none)");
    }
    let (begin, before) = (std::time::Instant::now(), taken());
    let device = match networks::choose(&config, 0) {
        Ok(device) => device,
        Err(e) if e.code() == fmpl::Code::Unsupported => {
            return Finding::note(NAME, e.detail(), FAILS, "only where ranks are to be on several nodes");
        }
        Err(e) => return Finding::problem(NAME, e.detail(), FAILS, "unset the setting, or install what it names"),
    };
    let (seconds, opened) = (begin.elapsed().as_secs_f64(), taken());
    let connection = device.pair(DEPTH);
    let more = |before: (usize, usize), after: (usize, usize)| {
        let (kb, files) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        format!("{kb} KB and {files} descriptors")
    };
    let each = match &connection {
        Ok(_) => format!("each connection {}", more(opened, taken())),
        Err(e) => return Finding::problem(NAME, format!("{}: {}", device.describe(), e.detail()), FAILS, ""),
    };
    let why = match &config.network {
        fmpl::base::config::Network::Auto => "chosen by itself",
        _ => "as FMPL_NETWORK says",
    };
    let takes = format!("each rank {}, opened in {seconds:.1} s; {each}", more(before, opened));
    let found = format!("{}, {why}: {takes}", device.describe());
    let costs = if device.limits().is_driven {
        "all bytes pass through processors of both ends, and move while a rank calls FMPL or its thread is awake; RDMA takes neither"
    } else {
        ""
    };
    Finding { costs, ..Finding::good(NAME, found) }
}

/// What this process has: KB of memory, and descriptors.
fn taken() -> (usize, usize) {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok()).unwrap_or(0);
    (
        pages * fmpl::fabric::shm::region::page_size() / 1024,
        std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
    )
}

/// Whether a multicast group can be joined by a port, tried.
fn multicast(port: &fmpl::fabric::verbs::device::Port) -> Finding {
    const NAME: &str = "multicast between nodes";
    match fmpl::fabric::verbs::multicast::try_port(port) {
        Ok(group) => Finding::good(NAME, format!("{}:{} can join a group ({group})", port.device.name(), port.number)),
        Err(e) => Finding::good(NAME, format!("no: {}; broadcasts go by trees and rings", e.detail())),
    }
}

fn try_port(port: &fmpl::fabric::verbs::device::Port) -> fmpl::Result<()> {
    use fmpl::fabric::network::Access;
    use fmpl::fabric::network::region::Arena;
    use fmpl::fabric::verbs::completion::CompletionQueue;
    use fmpl::fabric::verbs::protection::Protection;
    use fmpl::fabric::verbs::queue_pair::{Depth, QueuePair, SharedReceives};
    let protection = Protection::new(&port.device)?;
    let _memory = Arena::new(&protection.domain(), 1 << 20, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let queue = CompletionQueue::new(&port.device, 64, None)?;
    let shared = SharedReceives::new(&protection, 64)?;
    let depth = Depth { sends: 64, receives: 0, pieces: 4, inline: 128 };
    QueuePair::reliable(&protection, port, [&queue, &queue], &shared, depth).map(|_| ())
}
