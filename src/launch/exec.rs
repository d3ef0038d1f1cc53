//! What a rank's process is started with: the program behind a name, and its variables.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::base::system::exec::text;
use crate::base::system::is_executable;

/// Variables of other launchers, which a rank of ours must not take for its own.
const FOREIGN: [&str; 4] = ["PMI_PORT", "PMI_ID", "PMI_SPAWNED", "HYDI_CONTROL_FD"];

/// Where the program is: a name with a slash as it is, any other by the directories of `path`. The error is that of exec.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let mut error = Error::from_raw_os_error(libc::ENOENT);
    for dir in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"))) {
        let candidate = std::path::absolute(Path::new(".").join(dir).join(name))?;
        if candidate.is_file() {
            match text(candidate.as_os_str()) {
                Ok(c) if is_executable(&c) => return Ok(candidate),
                _ => error = Error::from_raw_os_error(libc::EACCES),
            }
        }
    }
    Err(error)
}

/// This process's own variables, and over them those of the rank.
pub(crate) fn variables(own: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(k, _)| !FOREIGN.iter().any(|f| k == f)).collect();
    for (name, value) in own {
        env.retain(|(k, _)| *k != name);
        env.push((name, value));
    }
    env
}
