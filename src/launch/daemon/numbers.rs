//! What the ranks of this machine have counted, for the launcher's table (`fmpl run --stats`): they leave it in files here, and the daemon
//! says it above when they have ended.

use crate::launch::embedded::Refused;
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A longer file is none of a rank's numbers.
const MOST: u64 = 64 << 10;

/// A directory of this daemon's own, until this is dropped.
pub(super) struct Numbers(PathBuf);

impl Numbers {
    pub(super) fn new() -> Result<Numbers, Refused> {
        let at = std::env::temp_dir().join(format!("fmpl-stats-{}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&at) {
            Ok(()) => Ok(Numbers(at)),
            Err(e) => Err(Refused { code: 1, text: format!("a directory for the numbers, {}: {e}", at.display()) }),
        }
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
