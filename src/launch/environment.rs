//! Starting by environment variables: ranks started by anything, on any machines, find each other at a port where rank 0 listens.
//!
//! ```text
//!   FMPL_RANK=3 FMPL_SIZE=8 FMPL_ROOT=node1:29500 FMPL_SECRET=…    (rank and size also as Slurm's and Open MPI's launchers say them)
//! ```
//! What they say to each other then: [`join`](super::join).

use super::slurm;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::Key;
use crate::base::log::Level;
use crate::base::system;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

/// A rank's place in a job that meets at a root: as the variables say it, as an [identifier](super::id) does, or a Slurm step.
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) root: Root,
    pub(crate) secret: Secret,
    /// Of the process that serves the others, if it listens already. (One that is named by `FMPL_ROOT` opens its door itself.)
    pub(crate) listeners: Option<Vec<TcpListener>>,
    /// `FMPL_START_TIMEOUT`
    pub(crate) patience: Duration,
    /// `FMPL_LOG`
    pub(crate) log: Level,
}

/// Where the root is.
pub(crate) enum Root {
    /// `FMPL_ROOT`: where rank 0 listens, at what the name stands for there.
    Named(String, u16),
    /// It listens at one of these, whichever rank it is.
    At(Vec<SocketAddr>),
}

/// How the ranks know their secret.
pub(crate) enum Secret {
    Known(Key),
    /// The root draws one, and says it in its greeting so that only this user's processes can read it.
    Sealed(slurm::Seal),
}

/// A shorter secret could be guessed.
const SECRET_MIN: usize = 8;
/// A longer file is none with a secret.
const SECRET_MAX: u64 = 64 << 10;
impl Place {
    /// Reads the variables. `None`: nothing says that this process was started this way.
    pub(crate) fn find(var: &impl Fn(&str) -> Option<String>) -> Result<Option<Place>> {
        let bad = |text: String| Err(Error::new(Code::Launch, text));
        let (own, root) = (var("FMPL_RANK"), var("FMPL_ROOT"));
        // A launcher's descriptor counts for more than variables that the whole session has; so does our own launcher always.
        let launched = var("PMI_FD").is_some() && (own.is_none() || var("FMPL_RUN").is_some());
        if launched || (own.is_none() && root.is_none()) {
            return Ok(None);
        }
        let names = [
            ("FMPL_RANK", "FMPL_SIZE"),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ];
        let Some((rank_name, size_name)) = names.into_iter().find(|(rank, _)| var(rank).is_some()) else {
            return bad("FMPL_ROOT is set but not FMPL_RANK: each rank needs FMPL_RANK and FMPL_SIZE, or must be started by srun or mpirun, \
                        which number their processes; to run alone, unset FMPL_ROOT".into());
        };
        let number = |name: &str| {
            let text = var(name).ok_or_else(|| error!(Code::Launch, "{rank_name} is set but not {name}"))?;
            let number = text.trim().parse::<u32>();
            number.map_err(|_| error!(Code::Launch, "{name}={text} is not a number"))
        };
        let (rank, size) = (number(rank_name)?, number(size_name)?);
        if rank >= size {
            return bad(format!("{rank_name}={rank} of {size_name}={size}"));
        }
        let Some(root) = root else {
            return bad(format!(
                "{rank_name}={rank} is set but not FMPL_ROOT: the host and port where rank 0 is to be found, such as FMPL_ROOT=node1:29500"
            ));
        };
        let Some((host, port)) = split_root(&root) else {
            return bad(format!("FMPL_ROOT={root}: possible values: host:port, [IPv6 address]:port"));
        };
        let config = crate::base::config::Config::from_environment()?;
        let patience = Duration::from_secs_f64(config.start_s);
        Ok(Some(Place {
            rank,
            size,
            root: Root::Named(host, port),
            secret: Secret::Known(secret(var)?),
            listeners: None,
            patience,
            log: config.log,
        }))
    }

    /// The root's address as people write it.
    pub(crate) fn root(&self) -> String {
        match &self.root {
            Root::Named(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Root::Named(host, port) => format!("{host}:{port}"),
            Root::At(all) => all.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or "),
        }
    }

    /// Who the root is.
    pub(crate) fn who(&self) -> &'static str {
        if matches!(self.root, Root::Named(..)) { "rank 0" } else { "the job's root" }
    }

    /// Is it this process that serves the others?
    pub(crate) fn is_root(&self) -> bool {
        self.listeners.is_some() || matches!(self.root, Root::Named(..)) && self.rank == 0
    }

    /// Where the root may listen.
    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match &self.root {
            Root::Named(host, port) => Ok((host.as_str(), *port).to_socket_addrs()?.collect()),
            Root::At(all) => Ok(all.clone()),
        }
    }
}

/// `host:port`, an IPv6 address in brackets.
fn split_root(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let bare = host.strip_prefix('[').map_or(Some(host), |h| h.strip_suffix(']'))?;
    let sound = !bare.is_empty() && (bare.len() < host.len() || !bare.contains(':'));
    Some((bare.to_owned(), port.parse().ok().filter(|p| *p != 0)?)).filter(|_| sound)
}

fn secret(var: &impl Fn(&str) -> Option<String>) -> Result<Key> {
    let bad = |text: String| Err(Error::new(Code::Launch, text));
    let (name, text) = match (var("FMPL_SECRET"), var("FMPL_SECRET_FILE")) {
        (Some(text), _) => ("FMPL_SECRET", text.into_bytes()),
        (None, Some(path)) => match read_secret(&path) {
            Ok(bytes) => ("the file in FMPL_SECRET_FILE", bytes.trim_ascii().to_vec()),
            Err(why) => return bad(format!("FMPL_SECRET_FILE={path}: {why}")),
        },
        (None, None) => {
            return bad("a job started by FMPL_RANK and FMPL_ROOT needs a secret, or anybody could join it: set FMPL_SECRET to the same random \
                        text for all its ranks (openssl rand -hex 16), or FMPL_SECRET_FILE to a file that has it".into());
        }
    };
    if text.len() < SECRET_MIN {
        return bad(format!("{name} is too short: at least {SECRET_MIN} characters"));
    }
    Ok(Key::of(&text))
}

/// What is in the file, if nobody else can know it. The file that is looked at is the one that is read.
fn read_secret(path: &str) -> std::result::Result<Vec<u8>, String> {
    let said = |e: io::Error| e.to_string();
    // A pipe that nobody will write to holds nobody up.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(said)?;
    system::set_waiting(&file, true).map_err(said)?;
    let about = file.metadata().map_err(said)?;
    let user = system::user();
    if about.uid() != user {
        return Err(format!(
            "it belongs to user {}, who knows the secret then; it must be a file of this user ({user})",
            about.uid()
        ));
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        return Err(format!("others can read or write it (mode {mode:03o}): chmod 600, and a new secret"));
    }
    let mut bytes = Vec::new();
    file.take(SECRET_MAX).read_to_end(&mut bytes).map_err(said)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        let root = |text| split_root(text).map(|(h, p)| format!("{h} {p}"));
        assert_eq!(root("node1:29500").as_deref(), Some("node1 29500"));
        assert_eq!(root("[fe80::1]:7").as_deref(), Some("fe80::1 7"));
        for bad in ["", "node1", ":7", "node1:", "node1:0", "node1:70000", "fe80::1:7", "[fe80::1:7", "[]:7"] {
            assert_eq!(root(bad), None, "{bad}");
        }
    }

    fn find(vars: &str) -> Result<Option<Place>> {
        let vars: Vec<(&str, &str)> = vars.split_whitespace().filter_map(|v| v.split_once('=')).collect();
        Place::find(&|name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn variables() {
        const REST: &str = "FMPL_ROOT=h:7 FMPL_SECRET=12345678";
        let place = |vars: &str| find(vars).unwrap().map(|p| (p.rank, p.size, p.root()));
        assert_eq!(place(&format!("FMPL_RANK=1 FMPL_SIZE=2 {REST}")), Some((1, 2, "h:7".into())));
        assert_eq!(place(&format!("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=9 {REST}")), Some((3, 9, "h:7".into())));
        assert_eq!(place(&format!("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 {REST}")), Some((0, 2, "h:7".into())));
        assert_eq!(place("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=9"), None);
        assert_eq!(place(&format!("PMI_FD=3 {REST}")), None);
        assert_eq!(place(&format!("PMI_FD=3 FMPL_RUN=1 FMPL_RANK=1 FMPL_SIZE=2 {REST}")), None);
        assert!(place(&format!("PMI_FD=3 FMPL_RANK=1 FMPL_SIZE=2 {REST}")).is_some());
        for (vars, says) in [
            ("FMPL_ROOT=h:7", "not FMPL_RANK"),
            ("FMPL_RANK=1", "not FMPL_SIZE"),
            ("FMPL_RANK=x FMPL_SIZE=2", "FMPL_RANK=x is not a number"),
            ("FMPL_RANK=2 FMPL_SIZE=2", "FMPL_RANK=2 of FMPL_SIZE=2"),
            ("FMPL_RANK=1 FMPL_SIZE=2", "not FMPL_ROOT"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h", "FMPL_ROOT=h: possible values"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7", "needs a secret"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7 FMPL_SECRET=1234567", "too short"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7 FMPL_SECRET_FILE=/none", "FMPL_SECRET_FILE=/none: No such file"),
        ] {
            let e = find(vars).err().unwrap_or_else(|| panic!("{vars}"));
            assert!(e.code() == Code::Launch && e.detail().contains(says), "{vars}: {e}");
        }
    }
}
