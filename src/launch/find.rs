//! How a process finds its place: what it looks at, and in which order.
//!
//! | | who | how the ranks find each other |
//! |---|---|---|
//! | 1 | variables: `FMPL_RANK` …, or `FMPL_ROOT` and `FMPL_SECRET` | at the root |
//! | 2 | an MPI in this process that is initialised | by an [identifier](super::id) that MPI passes round |
//! | 3 | `PMI_FD`: ours, Hydra, Slurm's pmi2 | by PMI-1; where an MPI may need it, by an identifier that goes over it ([`super::beside`]) |
//! | 4 | `PMIX_NAMESPACE`: Open MPI's mpirun, prterun, Slurm's pmix | by PMIx |
//! | 5 | a plain Slurm step | at the root, by a secret that munge seals |
//! | 6 | nobody | a job of one |

use super::environment::Place;
use super::join::Joined;
use super::mpi::Mpi;
use super::place::Node;
use super::{Ender, Exchange, Launch, Started, Store, beside, id, mpi, pmi, pmix, slurm, wire};
use crate::base::config::Config;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::lock;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

/// What became of the launcher's descriptor, which a process takes over once.
pub(super) static DESCRIPTOR: Mutex<Descriptor> = Mutex::new(Descriptor::Untouched);

pub(super) enum Descriptor {
    /// The process has not joined a job.
    Untouched,
    /// It has, and may not join again.
    Used,
    /// It has left its job, and its launcher lets it join again over this connection; the process's id, since a forked child has
    /// the number but is not the rank.
    Kept(OwnedFd, u32),
}

/// How a process is to find its place.
pub enum How<'a> {
    /// By what started it, see [`find`](super::find).
    Find,
    /// Rank, size, and an allgather of the program.
    With(u32, u32, &'a mut Exchange<'a>),
    /// The identifier of the job, rank, size.
    Id(&'a [u8; id::BYTES], u32, u32),
}

impl Launch {
    /// Joins the job. Collective: the ranks find out which of them share a node.
    ///
    /// Errors ([`Code::Launch`]): the launcher answers nonsense or hangs up; its variables contradict each other; it is one
    /// that speaks only what this library does not (better than as many jobs of one as there are ranks); or this process
    /// has joined a job before, and its launcher does not let it join again: `fmpl run` does, once it has left. [`Code::Setting`]: `FMPL_NODE` is no number.
    pub fn begin(how: How<'_>) -> Result<Launch> {
        let node = Node::here()?;
        match how {
            How::Find => Launch::search(node),
            How::With(_, 1, _) => Ok(Launch::alone(node)),
            How::With(rank, size, exchange) => Launch::meet(id::exchanged(rank, size, exchange)?, node),
            How::Id(id, rank, size) => {
                let place = id::place(id, rank, size)?;
                if size == 1 { Ok(Launch::alone(node)) } else { Launch::meet(place, node) }
            }
        }
    }

    /// Joins the job of what started this process.
    pub fn find() -> Result<Launch> {
        Launch::begin(How::Find)
    }

    fn search(node: Node) -> Result<Launch> {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        if let Some(place) = Place::find(&var)? {
            if place.size == 1 {
                return Ok(Launch::alone(node));
            }
            take_descriptor(place.rank)?;
            return Launch::meet(place, node);
        }
        if let Some(mpi) = mpi::active() {
            let (rank, size) = mpi.place()?;
            // An MPI that was started by a launcher of another one's is a world of one in each rank.
            if size > 1 {
                return Launch::by_mpi(mpi, rank, size, node);
            }
        }
        if let Some(fd) = var("PMI_FD") {
            let cores = cores_told(&var);
            return Launch::by_pmi(&fd, &var, node).map(|launch| Launch { cores, ..launch });
        }
        if pmix::is_offered(&var) {
            return Launch::by_pmix(node);
        }
        if let Some(place) = slurm::place(&var)? {
            take_descriptor(place.rank)?;
            return Launch::meet(place, node);
        }
        refuse_foreign_launchers(var)?;
        Ok(Launch::alone(node))
    }

    /// Joins a job that meets at a root.
    pub(super) fn meet(place: Place, node: Node) -> Result<Launch> {
        let (rank, size) = (place.rank, place.size);
        let root = format!("{} ({})", place.who(), place.root());
        let Joined { socket, helper, keys, secret, keeper } = place.meet(&node)?;
        let last_word = keys.as_ref().map(|keys| keys.rank.clone());
        let launcher = match keeper {
            Some(keeper) if keeper > 0 => format!("rank {keeper} (the keeper of this node)"),
            _ => root,
        };
        let client = pmi::Client::over(socket, rank, launcher, keys)?.of_keeper();
        Launch::with_client(client, rank, size, node, Some(Started { helper, secret, last_word }))
    }

    /// Joins the job that is the world of an MPI in this process.
    fn by_mpi(mpi: &Mpi, rank: u32, size: u32, node: Node) -> Result<Launch> {
        Launch::meet(Launch::passed_round(rank, size, &|all| mpi.broadcast(all))?, node)
    }

    /// Rank 0's identifier goes to all by this.
    fn passed_round(rank: u32, size: u32, broadcast: &dyn Fn(&mut [u8]) -> Result<()>) -> Result<Place> {
        let made = if rank == 0 { id::create() } else { Ok([0; id::BYTES]) };
        let mut all = *made.as_ref().unwrap_or(&[0; id::BYTES]);
        broadcast(&mut all)?;
        made?;
        id::place(&all, rank, size)
    }

    /// Where MPI has been finalised in this process its launcher lets nobody join any more.
    fn check_not_over(mpi: &Mpi, rank: u32) -> Result<()> {
        if !mpi.was_finalized() {
            return Ok(());
        }
        let text = "MPI has been initialised and finalised in this process, and its launcher lets a process join once: call \
                    fmpl_init before MPI_Finalize, or start by fmpl_init_id";
        Err(error!(Code::Launch, "rank {rank}: {text}"))
    }

    /// Joins the job of whoever has left a descriptor in `PMI_FD`.
    fn by_pmi(fd: &str, var: &impl Fn(&str) -> Option<String>, node: Node) -> Result<Launch> {
        let bad = |what: String| Error::new(Code::Launch, what);
        let number = |name: &str, value: Option<String>| {
            let value = value.ok_or_else(|| bad(format!("the launcher set PMI_FD={fd} but not {name}")))?;
            value
                .trim()
                .parse::<i32>()
                .ok()
                .filter(|n| *n >= 0)
                .ok_or_else(|| bad(format!("{name}={value} is not a number")))
        };
        let (fd, rank, size) = (
            number("PMI_FD", Some(fd.to_owned()))?,
            number("PMI_RANK", var("PMI_RANK"))?,
            number("PMI_SIZE", var("PMI_SIZE"))?,
        );
        if rank >= size {
            return Err(bad(format!("the launcher says PMI_RANK={rank} of PMI_SIZE={size}")));
        }
        let (rank, size) = (rank as u32, size as u32);
        if let Some(mpi) = mpi::find().filter(|mpi| mpi.speaks_pmi()) {
            return Launch::beside(mpi, fd, rank, size, node);
        }
        let client = match take_descriptor(rank)? {
            Some(socket) => pmi::Client::over(socket, rank, "the launcher".into(), None)?,
            None => pmi::Client::join(fd, rank)?,
        };
        Launch::with_client(client, rank, size, node, None)
    }

    /// Joins a job whose launcher an MPI in this process speaks with too, now or later.
    fn beside(mpi: &'static Mpi, fd: i32, rank: u32, size: u32, node: Node) -> Result<Launch> {
        Launch::check_not_over(mpi, rank)?;
        if size == 1 {
            return Ok(Launch::alone(node));
        }
        let (socket, times) = beside::speak(fd, mpi)?;
        let mut client = pmi::Client::over(socket, rank, "the launcher".into(), None)?;
        let (key, made) = (format!("fmpl-id-{times}"), if rank == 0 { id::create() } else { Ok([0; id::BYTES]) });
        if rank == 0 {
            // Without an identifier nothing is put but the place that it would have, so that all fail.
            let value = made.as_ref().unwrap_or(&[0; id::BYTES]);
            client.put(&key, value)?;
        }
        client.fence()?;
        let value = client.get(0, &key)?;
        made?;
        let nonsense = |_| error!(Code::Launch, "the value under {key} is no identifier: {}", wire::shown(&value));
        let id = <[u8; id::BYTES]>::try_from(&value[..]).map_err(nonsense)?;
        Launch::meet(id::place(&id, rank, size)?, node)
    }

    /// Joins the job of a PMIx server.
    fn by_pmix(node: Node) -> Result<Launch> {
        // Keys of PMIx are put once in the life of a job, whoever leaves it and comes again.
        let rank = std::env::var("PMIX_RANK").ok().and_then(|v| v.trim().parse().ok()).unwrap_or(0);
        if let Some(mpi) = mpi::find() {
            Launch::check_not_over(mpi, rank)?;
            if mpi.has_sessions() {
                let place = mpi.in_session(|rank, size, broadcast| match size {
                    1 => Ok(None),
                    _ => Launch::passed_round(rank, size, broadcast).map(Some),
                })?;
                return place
                    .map_or_else(|| Ok(Launch::alone(node.clone())), |place| Launch::meet(place, node.clone()));
            }
        }
        take_descriptor(rank)?;
        let client = pmix::Client::join(Config::from_environment()?.pmix.as_deref())?;
        let (rank, size, ender) = (client.rank(), client.size(), Ender::Pmix(client.ender()));
        Launch::joined(Box::new(client), ender, rank, size, node, None)
    }
}

/// The cores that `fmpl run` has for its ranks of this machine (0: it does not know). Ranks that are started another way may have the variable
/// from the job in which that was done, and each of a node another number: only the launch by a descriptor counts.
fn cores_told(var: &impl Fn(&str) -> Option<String>) -> Option<usize> {
    var("FMPL_RUN")?;
    var("FMPL_CORES")?.parse().ok().filter(|n| *n > 0)
}

/// Takes the launcher's descriptor: the first time (`None`), or again after finalize, where the launcher allows it.
pub(super) fn take_descriptor(rank: u32) -> Result<Option<OwnedFd>> {
    let mut descriptor = lock(&DESCRIPTOR);
    match &*descriptor {
        Descriptor::Kept(_, pid) if *pid != std::process::id() => Err(Error::new(
            Code::Fork,
            "this is a child of a process that was a rank of a job; only the parent can join again",
        )),
        _ => match std::mem::replace(&mut *descriptor, Descriptor::Used) {
            Descriptor::Untouched => Ok(None),
            Descriptor::Kept(socket, _) => Ok(Some(socket)),
            Descriptor::Used => Err(error!(
                Code::Launch,
                "rank {rank} has joined its job before, and what started it lets it join once; `fmpl run` lets ranks join \
                     again after finalize"
            )),
        },
    }
}

/// A job of one in every rank of somebody else's job would be a silent surprise.
fn refuse_foreign_launchers(var: impl Fn(&str) -> Option<String>) -> Result<()> {
    let many = |name: &str| var(name).and_then(|v| v.trim().parse::<u32>().ok()).filter(|n| *n > 1);
    let no = |who: String, advice: &str| {
        Err(error!(Code::Launch, "{who}, which speaks neither PMI-1 nor PMIx here: {advice}"))
    };
    let alone = "to run alone, unset this variable";
    if let Some(n) = many("OMPI_COMM_WORLD_SIZE") {
        return no(
            format!("this is one of {n} processes of Open MPI's mpirun (OMPI_COMM_WORLD_SIZE)"),
            &format!("use `fmpl run` or MPICH's mpiexec, or set FMPL_ROOT and FMPL_SECRET; {alone}"),
        );
    }
    if let Some(n) = many("SLURM_STEP_NUM_TASKS") {
        return no(
            format!("this is one of {n} tasks of a Slurm step (SLURM_STEP_NUM_TASKS)"),
            &format!("use `srun --mpi=pmix` or `srun --mpi=pmi2`, or set FMPL_ROOT and FMPL_SECRET; {alone}"),
        );
    }
    if let Some(port) = var("PMI_PORT") {
        return no(
            format!("the launcher offers PMI_PORT={port} instead of PMI_FD"),
            &format!("start without its option for ports; {alone}"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_launchers_are_named() {
        let with = |name: &'static str, value: &'static str| {
            refuse_foreign_launchers(move |n| (n == name).then(|| value.to_owned()))
        };
        assert!(with("HOME", "/").is_ok() && with("OMPI_COMM_WORLD_SIZE", "1").is_ok());
        for (name, value, advice) in [
            ("OMPI_COMM_WORLD_SIZE", "4", "fmpl run"),
            ("SLURM_STEP_NUM_TASKS", "2", "--mpi=pmi2"),
            ("PMI_PORT", "h:1", "PMI_FD"),
        ] {
            let e = with(name, value).unwrap_err();
            assert!(e.detail().contains(name) && e.detail().contains(advice), "{e}");
        }
    }
}
