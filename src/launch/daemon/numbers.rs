//! What the ranks of this machine have counted, for the launcher's table (`fmpl run --stats`): they leave it in files here, and the daemon
//! says it above when they have ended.

use crate::base::system;
use crate::launch::embedded::Refused;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer file is none of a rank's numbers.
const MOST: u64 = 64 << 10;

/// A directory of this daemon's own, until this is dropped.
pub(super) struct Numbers(PathBuf);

impl Numbers {
    pub(super) fn new() -> Result<Numbers, Refused> {
        let refused = |e| Refused { code: 1, text: format!("a directory for the numbers: {e}") };
        system::temporary("fmpl-stats").map(Numbers).map_err(refused)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// `None`: the rank has left none.
    pub(super) fn of(&self, rank: u32) -> Option<String> {
        let mut text = String::new();
        fs::File::open(self.0.join(rank.to_string())).ok()?.take(MOST).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
