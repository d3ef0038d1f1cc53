//! The interfaces of this machine that have addresses of the internet.

use std::net::IpAddr;

/// Does this interface, or this address of it, reach other machines? The loopback does not, nor does an interface that is down, or a bridge
/// between guests of this machine alone.
pub fn leads_out(name: &str, ip: Option<IpAddr>) -> bool {
    if ip.is_some_and(|ip| ip.is_loopback()) {
        return false;
    }
    let of = std::path::Path::new("/sys/class/net").join(name);
    let is_down = std::fs::read_to_string(of.join("operstate")).is_ok_and(|state| state.trim() == "down");
    let leaves = |member: std::fs::DirEntry| of.join("brif").join(member.file_name()).join("port/device").exists();
    let is_inside = std::fs::read_dir(of.join("brif")).is_ok_and(|mut all| !all.any(|m| m.is_ok_and(leaves)));
    !is_down && !is_inside
}
