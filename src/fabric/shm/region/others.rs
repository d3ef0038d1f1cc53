//! The region of another process of this user, found without its help: for those who look at a running job.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use super::*;

impl PeerRegion {
    /// The region that a process has made; `None`: it is no rank. The kernel gives it to whoever may trace the process.
    pub fn of_process(pid: u32) -> io::Result<Option<PeerRegion>> {
        let inner = inner_pid(pid)?;
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let path = entry?.path();
            // It may be closed by now.
            let Ok(target) = fs::read_link(&path) else { continue };
            if !target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:fmpl-") {
                continue;
            }
            let file = File::options().read(true).write(true).open(&path)?;
            // Of the regions that it has the one that says it is its own.
            let Some((rank, size)) = claims(&file)?.filter(|claim| claim.2 == inner).map(|claim| (claim.0, claim.1))
            else {
                continue;
            };
            return PeerRegion::adopt(OwnedFd::from(file), rank, size, LAYOUT_VERSION)
                .map(Some)
                .map_err(io::Error::other);
        }
        Ok(None)
    }
}

/// What a region says of its owner: rank, size of the job, process.
fn claims(file: &File) -> io::Result<Option<(u32, u32, u32)>> {
    let mut first = [0u8; core::mem::offset_of!(RegionHeader, indices)];
    file.read_exact_at(&mut first, 0)?;
    let number = |at: usize| u32::from_ne_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    let (rank, size) = (core::mem::offset_of!(RegionHeader, rank), core::mem::offset_of!(RegionHeader, size));
    let is_region = first[..8] == MAGIC.to_ne_bytes();
    Ok(is_region.then(|| (number(rank), number(size), number(core::mem::offset_of!(RegionHeader, pid)))))
}

/// A process's number where it runs, which is another one here when that is a container.
fn inner_pid(pid: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    Ok(numbers.and_then(|all| all.split_whitespace().next_back()?.parse().ok()).unwrap_or(pid))
}
