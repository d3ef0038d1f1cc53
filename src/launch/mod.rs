//! Who am I, how many are we, where are the others: the place of this process in its job, and the exchange of small values
//! (the key-value store of the launcher) with which the ranks find each other.
//!
//! A rank asks its launcher over PMI-1, a text protocol on an inherited socket that MPICH's `mpiexec` (Hydra), Slurm's pmi2
//! plugin and our own `fmpl run` all speak, or over PMIx, the library that Open MPI's `mpirun`, `prterun` and Slurm's pmix plugin serve;
//! so the same binary starts under each of them. Started with the variables `FMPL_RANK`, `FMPL_SIZE`, `FMPL_ROOT` and `FMPL_SECRET`, on any
//! machines, the ranks find rank 0 at a port, where a thread of it speaks PMI-1 likewise. Started alone it is a job of one rank.
//!
//! | file | what it does |
//! |---|---|
//! | [`find`] | what a process looks at, and in which order |
//! | `wire` | the lines of PMI-1 and the way bytes travel in them |
//! | `pmi` | the rank's side |
//! | [`pmix`] | the rank's side of PMIx |
//! | `mpi` | an MPI in the same process |
//! | `beside` | a launcher's connection that such an MPI may need |
//! | `environment` | meeting at a root: by variables |
//! | [`id`] | meeting at a root: by an identifier that the program passes round |
//! | `slurm` | meeting at a root: plain steps of Slurm, with munge |
//! | `join` | the side of who comes: the proofs, the connection |
//! | `keeper` | what serves the ranks of a node then: values spread over keepers, a tree of them |
//! | `door` | where it listens, and those who have not shown yet that they know the secret |
//! | `seal` | the check on each line |
//! | `costs` | connections and bytes |
//! | [`place`] | what makes a node, and which ranks share one |
//! | [`embedded`] | our own launcher, behind `fmpl run`: its interface |
//! | `start`, `exec` | how a job begins: from names of programs to running ranks |
//! | `debug` | ranks under a debugger |
//! | `crew` | the ranks on one machine |
//! | `supervise` | its loop, from the first question to the last end; Ctrl-C |
//! | `daemon` | jobs on several machines: the daemon on each, what is said to it, the launcher's side |
//! | `ghosts` | ranks that are no processes |
//! | `server` | its side of PMI-1: the key-value store, the fence |
//! | `activity` | what they are at when the job has taken too long |
//! | `relay` | what ranks print and read |
//! | `bind` | cores for ranks |
//! | [`hosts`] | lists of machines, and which ranks each gets |

mod activity;
mod beside;
pub(crate) mod bind;
mod costs;
mod crew;
mod daemon;
mod debug;
mod door;
pub mod embedded;
mod environment;
mod exec;
pub mod find;
mod ghosts;
pub mod hosts;
pub mod id;
mod join;
mod keeper;
mod mpi;
pub mod place;
mod pmi;
#[doc(hidden)]
pub mod pmix;
mod relay;
mod seal;
mod server;
mod slurm;
mod start;
mod supervise;
mod wire;

use crate::base::error::{Code, Error, Result, error};
use crate::base::key::{Key, random};
use crate::base::lock::lock;
use crate::base::processor;
pub use bind::{cores, last_cache};
pub use costs::Costs;
use find::{DESCRIPTOR, Descriptor};
#[doc(hidden)]
pub use keeper::{Measured, measure};
use place::{Gathered, Node, NodeMap, Placed};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

/// The connection to whatever started this process.
///
/// Its methods may be called from several threads; they take turns. None of them is on the path of a message.
pub struct Launch {
    rank: u32,
    size: u32,
    node: Node,
    nodes: NodeMap,
    /// Those that its launcher says its ranks here may use together.
    cores: Option<usize>,
    way: Way,
    /// The thread of a job started by variables; after `way`, whose end it waits for.
    helper: Mutex<Option<join::Helper>>,
    /// Of whoever knows the secret of a job started by variables.
    secret: Option<Key>,
    ender: Ender,
}

/// What a job started by variables has beside its connection.
struct Started {
    helper: join::Helper,
    secret: Key,
    last_word: Option<Key>,
}

enum Way {
    /// No launcher: a job of one, which keeps its own values.
    Alone(Mutex<HashMap<String, Vec<u8>>>),
    /// None: left.
    Joined(Mutex<Option<Box<dyn Store>>>),
}

/// What a launcher does for its ranks: it keeps values, and lets them meet.
trait Store: Send {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()>;

    /// The value that a rank has put before the last fence. One that it has not put is an error that names the key.
    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>>;

    fn fence(&mut self) -> Result<()>;

    /// Puts a value that all ranks will get.
    fn tell(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.put(key, value)
    }

    /// Adds this rank to those under a key, which are a value after the next fence: as [`place::ranges`] writes them. `false`: this store has no
    /// such values.
    fn add(&mut self, _key: &str) -> Result<bool> {
        Ok(false)
    }

    /// `true`: the launcher lets this process join again, over the same connection.
    fn finalize(&mut self) -> Result<bool>;

    /// The connection, for joining again.
    fn into_socket(self: Box<Self>) -> Option<OwnedFd> {
        None
    }
}

/// An allgather of the program: brings the bytes of each rank, equally many, to all, one after the other by rank.
pub type Exchange<'a> = dyn FnMut(&[u8], &mut [u8]) -> Result<()> + 'a;

/// What ends the whole job at any time, also for a thread that must not wait for another one inside [`fence`](Launch::fence).
enum Ender {
    /// A line on this descriptor, with a check where the connection has them; -1: none.
    Line(AtomicI32, Option<Key>),
    Pmix(pmix::Ender),
}

/// Values that one rank takes from others at a time when they find out who shares a node: from a launcher, and from keepers.
const GATHER: u64 = 64;
const GATHER_SPREAD: u64 = 4;

/// Under which rank 0 publishes what the job's key is made from. Another name with each way of making it.
pub(crate) const KEY: &str = "fmpl-key-2";

impl Launch {
    fn alone(node: Node) -> Launch {
        Launch {
            rank: 0,
            size: 1,
            node,
            nodes: NodeMap::one_node(1),
            cores: None,
            way: Way::Alone(Mutex::default()),
            helper: Mutex::new(None),
            secret: None,
            ender: Ender::Line(AtomicI32::new(-1), None),
        }
    }

    /// A rank of a simulated world, each on a node of its own, to which these values were published.
    #[cfg(all(test, not(any(loom, miri))))]
    pub fn simulated(rank: u32, size: u32, values: HashMap<String, Vec<u8>>) -> Result<Launch> {
        let nodes = NodeMap::new(&(0..size).collect::<Vec<_>>());
        Ok(Launch { rank, size, nodes, way: Way::Alone(Mutex::new(values)), ..Launch::alone(Node::here()?) })
    }

    fn with_client(client: pmi::Client, rank: u32, size: u32, node: Node, started: Option<Started>) -> Result<Launch> {
        let last_word = started.as_ref().and_then(|s| s.last_word.clone());
        let ender = Ender::Line(AtomicI32::new(client.fd()), last_word);
        Launch::joined(Box::new(client), ender, rank, size, node, started)
    }

    fn joined(
        store: Box<dyn Store>,
        ender: Ender,
        rank: u32,
        size: u32,
        node: Node,
        started: Option<Started>,
    ) -> Result<Launch> {
        let (nodes, way) = (NodeMap::one_node(size), Way::Joined(Mutex::new(Some(store))));
        let (helper, secret) = match started {
            Some(s) => (Mutex::new(Some(s.helper)), Some(s.secret)),
            None => Default::default(),
        };
        let mut launch = Launch { rank, size, node, nodes, cores: None, way, helper, secret, ender };
        launch.nodes = launch.find_nodes()?;
        Ok(launch)
    }

    /// Finds out which ranks share a node, and gives all of them the map.
    fn find_nodes(&self) -> Result<NodeMap> {
        if self.size == 1 {
            return Ok(NodeMap::one_node(1));
        }
        let digest = self.node.digest();
        let key = format!("fmpl-on-{}", wire::hex(&digest));
        // All have come then, or who has not is named.
        self.fence()?;
        let map = if self.with_store(|s| s.add(&key))? {
            self.fence()?;
            let ranks = String::from_utf8(self.get(self.rank, &key)?).ok();
            let ranks = ranks.and_then(|text| place::ranks_of(&text, self.size)).ok_or_else(|| nonsense(&key))?;
            let mut known = Placed::default();
            if ranks.first() == Some(&self.rank) {
                known.push(&ranks);
            }
            // What stands for a node is the same whichever rank is asked, so nothing need be gathered but where its ranks are.
            self.gather(GATHER_SPREAD, &mut known, Placed::encode, Placed::append)?;
            if self.rank == 0 { Some(known.map(self.size).ok_or_else(|| nonsense("fmpl-nodes"))?) } else { None }
        } else {
            let mut known = Gathered::default();
            known.push(digest);
            self.gather(GATHER, &mut known, Gathered::encode, Gathered::append)?;
            (self.rank == 0).then(|| known.map())
        };
        let key = "fmpl-nodes";
        if let Some(map) = map {
            self.tell(key, &map.encode())?;
        }
        self.fence()?;
        NodeMap::decode(&self.get(0, key)?).ok_or_else(|| nonsense(key))
    }

    /// Gathers what the ranks know at rank 0, in a tree, so many values at a time, in the order of the ranks.
    fn gather<T>(
        &self,
        wide: u64,
        known: &mut T,
        encode: impl Fn(&T) -> Vec<u8>,
        append: impl Fn(&mut T, &[u8]) -> Option<()>,
    ) -> Result<()> {
        // In a level those ranks are left that are multiples of `span`; each multiple of `next` takes what the others up to the next know.
        let (rank, mut span) = (self.rank as u64, 1u64);
        while span < self.size as u64 {
            let next = span * wide;
            let key = |rank: u64| format!("fmpl-nodes-{span}-{rank}");
            if rank.is_multiple_of(span) && !rank.is_multiple_of(next) {
                self.put(&key(rank), &encode(known))?;
            }
            self.fence()?;
            if rank.is_multiple_of(next) {
                for from in (rank + span..(rank + next).min(self.size as u64)).step_by(span as usize) {
                    let key = key(from);
                    append(known, &self.get(from as u32, &key)?).ok_or_else(|| nonsense(&key))?;
                }
            }
            span = next;
        }
        Ok(())
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The node of this process.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Which ranks share a node.
    pub fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    /// The ranks on this node in ascending order, this one among them.
    pub fn local_ranks(&self) -> Vec<u32> {
        self.nodes.ranks_on(self.nodes.node_of(self.rank)).collect()
    }

    /// Cores that the ranks of this machine may use together. A rank that is bound to one does not know the others; its launcher does, if that is
    /// `fmpl run`.
    pub fn cores(&self) -> usize {
        processor::cores().min(self.cores.unwrap_or(usize::MAX))
    }

    /// True when no launcher was found: a job of one.
    pub fn is_alone(&self) -> bool {
        matches!(self.way, Way::Alone(_))
    }

    /// Rank 0 publishes what the job's key is made from; visible to the others after the next [`fence`](Launch::fence).
    pub fn draw_key(&self) -> Result<()> {
        if self.rank == 0 { self.tell(KEY, &random::<32>()?) } else { Ok(()) }
    }

    /// The key that the processes of this job have, and nobody else. In a job by variables it is derived from the secret and from what
    /// rank 0 has drawn by lot, which then is no secret itself; otherwise that goes through the launcher, whose connections are its own.
    pub fn key(&self) -> Result<Key> {
        let drawn = self.get(0, KEY).map_err(|e| {
            let why =
                "rank 0 has published nothing to make the job's key from; do all ranks run the same build of FMPL?";
            Error::new(e.code(), format!("{why} ({})", e.detail()))
        })?;
        Ok(match &self.secret {
            Some(secret) => secret.derive("job", &[&drawn, &self.size.to_le_bytes()]),
            None => drawn_key(&drawn, self.size),
        })
    }

    /// Publishes a value that all ranks will get; otherwise as [`put`](Launch::put).
    pub(crate) fn tell(&self, key: &str, value: &[u8]) -> Result<()> {
        match &self.way {
            Way::Alone(_) => self.put(key, value),
            Way::Joined(store) => self.with(store, |s| s.tell(key, value)),
        }
    }

    /// What meeting the others has cost this process so far.
    pub fn costs(&self) -> Costs {
        costs::costs()
    }

    /// Publishes a value for the other ranks; visible to them after the next [`fence`](Launch::fence).
    ///
    /// Keys are up to 57 of `A-Z a-z 0-9 - _ . /`, and each can be put once in a job, by one rank. Values may have any bytes
    /// and any length that is reasonable for a launcher (kilobytes).
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        match &self.way {
            Way::Alone(values) => match lock(values).insert(key.to_owned(), value.to_owned()) {
                None => Ok(()),
                Some(_) => Err(error!(Code::Launch, "the key {key} has been put before")),
            },
            Way::Joined(store) => self.with(store, |s| s.put(key, value)),
        }
    }

    /// Waits for all ranks to come here.
    ///
    /// Errors: [`Code::Peer`] when a rank has left or died (as far as the launcher tells), [`Code::Launch`] as everywhere.
    pub fn fence(&self) -> Result<()> {
        match &self.way {
            Way::Alone(_) => Ok(()),
            Way::Joined(store) => self.with(store, |s| s.fence()),
        }
    }

    /// A value published by this rank. A key that it has not put before the last fence is an error that names it.
    pub fn get(&self, from: u32, key: &str) -> Result<Vec<u8>> {
        match &self.way {
            Way::Alone(values) => lock(values).get(key).cloned().ok_or_else(|| {
                error!(Code::Launch, "no rank has put a value under the key {key} before the last fence")
            }),
            Way::Joined(store) => self.with(store, |s| s.get(from, key)),
        }
    }

    /// Tells the launcher that this process leaves the job in good order, and closes the connection. A process that ends
    /// without it has failed, whatever its exit code. A second call does nothing.
    pub fn finalize(&self) -> Result<()> {
        let Way::Joined(store) = &self.way else { return Ok(()) };
        let mut slot = lock(store);
        let Some(mut store) = slot.take() else { return Ok(()) };
        let again = store.finalize();
        if let Ender::Line(fd, _) = &self.ender {
            fd.store(-1, Ordering::Release);
        }
        match again {
            Ok(true) => {
                if let Some(socket) = store.into_socket() {
                    *lock(&DESCRIPTOR) = Descriptor::Kept(socket, std::process::id());
                }
            }
            // Now, since the thread below waits for the end of it.
            _ => drop(store),
        }
        // A keeper serves until the others have left too.
        drop(lock(&self.helper).take());
        if again.is_ok() {
            beside::left();
        }
        again.map(|_| ())
    }

    /// Asks the launcher to end the whole job with this exit code; does not return.
    pub fn abort(&self, code: i32) -> ! {
        let code = exit_code(code);
        if !self.is_alone() {
            // It knows its launcher best, and ends what is no rank of ours, too.
            if let Some(mpi) = mpi::active() {
                mpi.abort(code);
            }
            beside::abort(code);
        }
        match &self.ender {
            Ender::Line(fd, last_word) => {
                let fd = fd.load(Ordering::Acquire);
                if fd >= 0 {
                    // Another thread may be waiting in a fence with the lock held; one short line goes out in one piece all the same.
                    // When the launcher is gone there is nobody to tell.
                    let word = format!("cmd=abort exitcode={code}");
                    let word = last_word.as_ref().map_or_else(|| format!("{word}\n"), |key| seal::put_last(key, &word));
                    let _ = pmi::send(fd, &word);
                }
            }
            Ender::Pmix(server) => server.abort(code),
        }
        // A keeper's own thread tells the others, and is then over.
        if let Ok(mut helper) = self.helper.try_lock()
            && helper.as_ref().is_some_and(join::Helper::is_keeper)
        {
            drop(helper.take());
        }
        std::process::exit(code)
    }

    fn with_store<T: Default>(&self, f: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        match &self.way {
            Way::Alone(_) => Ok(T::default()),
            Way::Joined(store) => self.with(store, f),
        }
    }

    fn with<T>(&self, store: &Mutex<Option<Box<dyn Store>>>, f: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        match lock(store).as_mut() {
            Some(store) => f(store.as_mut()),
            None => Err(error!(Code::Launch, "rank {} has left its job (finalize)", self.rank)),
        }
    }
}

/// The exit code of an aborted job. The system keeps eight bits: a multiple of 256 would say that all went well.
pub(crate) fn exit_code(code: i32) -> i32 {
    if code != 0 && code & 0xff == 0 { 1 } else { code }
}

/// The key of a job of so many ranks whose launcher's connections are its own, from what rank 0 has drawn.
pub(crate) fn drawn_key(drawn: &[u8], size: u32) -> Key {
    Key::of(drawn).derive("job", &[&size.to_le_bytes()])
}

fn nonsense(key: &str) -> Error {
    error!(Code::Launch, "the value under {key} says nothing of nodes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_one_keeps_its_own_values() {
        let l = Launch::alone(Node::here().unwrap());
        assert!(l.is_alone());
        l.put("k", &[0, 255, 10]).unwrap();
        l.fence().unwrap();
        assert_eq!(l.get(0, "k").unwrap(), [0, 255, 10]);
        let e = l.get(0, "absent-key").unwrap_err();
        assert!(e.code() == Code::Launch && e.detail().contains("absent-key"), "{e}");
        let e = l.put("k", b"again").unwrap_err();
        assert!(e.detail().contains("before"), "{e}");
        l.finalize().unwrap();
        l.finalize().unwrap();
    }
}
