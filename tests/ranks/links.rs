//! Links between pretended nodes that can be broken: network namespaces, in which root can put the ranks of a job whose network is TCP.
//!
//! ```text
//!   namespace of node 0          namespace of the switch          namespace of node 1
//!   fm0 10.77.0.1 ──────────────── p0  bridge  p1 ──────────────── fm0 10.77.0.2
//! ```
//! A cable is pulled at its end at the switch, so the node's own end loses its carrier; what is lost silently leaves the port off the bridge.
//! The ranks' launcher is reached over sockets that they inherit, whatever becomes of the links.

use std::process::{Command, Stdio};

const NAME: &str = "RANKS_LINKS";

/// Links of this test; they are gone when it is dropped.
pub struct Links {
    name: String,
    nodes: u32,
}

fn ip(words: &str) -> bool {
    let command = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
    command.is_ok_and(|status| status.success())
}

impl Links {
    /// Between so many nodes, for the jobs started from here on; `None`: there can be none here.
    pub fn new(nodes: u32) -> Option<Links> {
        let links = Links { name: format!("fm{}", std::process::id()), nodes };
        let name = &links.name;
        let mut made = ip(&format!("netns add {name}x"))
            && ip(&format!("-n {name}x link add br0 type bridge"))
            && ip(&format!("-n {name}x link set br0 up"));
        for n in 0..nodes {
            made = made
                && ip(&format!("netns add {name}{n}"))
                && ip(&format!("-n {name}{n} link set lo up"))
                && ip(&format!("-n {name}x link add p{n} type veth peer name fm0 netns {name}{n}"))
                && ip(&format!("-n {name}x link set p{n} master br0 up"))
                && ip(&format!("-n {name}{n} addr add 10.77.0.{}/24 dev fm0", n + 1))
                && ip(&format!("-n {name}{n} link set fm0 up"));
        }
        if !made {
            return None;
        }
        // SAFETY: the tests of a program like this run one after the other, on its only thread.
        unsafe { std::env::set_var(NAME, name) };
        Some(links)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { std::env::remove_var(NAME) };
        (0..self.nodes).for_each(|n| _ = ip(&format!("netns del {}{n}", self.name)));
        ip(&format!("netns del {}x", self.name));
    }
}

/// Goes into the namespace of this rank's node, if there are some.
pub fn enter() {
    let (Ok(name), Ok(node)) = (std::env::var(NAME), std::env::var("FMPL_NODE")) else { return };
    let file = std::fs::File::open(format!("/run/netns/{name}{node}")).expect("a namespace");
    // SAFETY: moves this thread, the only one, into another network.
    let moved = unsafe { libc::setns(std::os::fd::AsRawFd::as_raw_fd(&file), libc::CLONE_NEWNET) };
    assert_eq!(moved, 0, "{}", std::io::Error::last_os_error());
}

/// Does to the link of a node what `rig-link` of tests/rig does; `false`: there are no such links.
pub fn does(node: u32, what: &str) -> bool {
    let Ok(name) = std::env::var(NAME) else { return false };
    let port = format!("-n {name}x link set p{node}");
    let done = match what {
        "down" | "up" => ip(&format!("{port} {what}")),
        "loss 100%" => ip(&format!("{port} nomaster")),
        "clear" => ip(&format!("{port} master br0")),
        _ => panic!("{what}?"),
    };
    assert!(done, "link of node {node}: {what}");
    true
}
