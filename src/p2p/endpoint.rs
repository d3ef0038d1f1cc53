//! This process in its job: its region, its lanes, its spool, what it has been set to. There is one at a time.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::base::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Mutex, Ordering};
use crate::base::by_rank::ByRank;
use crate::base::config::{self, Config, Connect, PretendedNodes};
use crate::base::error::{Code, Error, Result, error};
use crate::base::log::{self, Level, tell};
use crate::base::processor::Processor;
use crate::base::system::unshared;
use crate::base::topology::Topology;
#[cfg(feature = "trace")]
use crate::base::trace;
use crate::base::trace::traced;
use crate::base::tuning::{self, Whence};
use crate::base::unused::Unused;
use crate::fabric::network::cache::Bounds;
use crate::fabric::network::control::{Fabric, Terms, Who};
use crate::fabric::network::link::Link;
use crate::fabric::network::room::TABLES_BYTES;
use crate::fabric::network::{Card, Choice, Way};
use crate::fabric::shm::attach::{Attach, Options};
use crate::fabric::shm::heap::Heap;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{ALIVE, FINALIZED, LANES_AT, LIVES_AT, Mapping, NODE_AT, PLACES_AT, Region};
use crate::fabric::{areas, networks};
use crate::lane::map::{LANE_BYTES, LANE_STRIDE, Map, SIDE_FINALIZED, SYSTEM_INDICES, UNIT_BYTES, UNITS};
use crate::lane::remote::{Remote, has_left};
use crate::lane::{Lane, LaneTable, SPECIAL_GONE, Used};
use crate::launch::Launch;
use crate::launch::find::How;
use crate::p2p::any_source::{AnySource, share};
use crate::p2p::context::{Context, Contexts};
use crate::p2p::group::Group;
use crate::p2p::spool::Spool;
use crate::p2p::tuning::Tuning;
use crate::wait::{Board, doorbell, event::Event, stall};
pub(super) use reach::FABRIC_KEY;
use reach::{NO_NETWORK, card_key, fabric_key};
use resolve::check_indices;

#[cfg(any(loom, all(test, not(miri))))]
mod bare;
#[cfg(loom)]
pub(super) mod model;

mod elsewhere;
mod found;
mod lives;
mod reach;
mod resolve;
#[cfg(all(test, not(any(loom, miri))))]
mod simulated;

static ENDPOINT: AtomicPtr<Endpoint> = AtomicPtr::new(std::ptr::null_mut());
static FORKED: AtomicBool = AtomicBool::new(false);

/// The epoch of the world's lanes.
pub const WORLD_EPOCH: u16 = 1;

/// This process in its job.
pub struct Endpoint {
    /// Rank in the world.
    pub rank: u32,
    /// Ranks in the world.
    pub size: u32,
    /// The communicators that this process belongs to.
    pub contexts: Contexts,
    /// The lanes that exist.
    pub lanes: LaneTable,
    /// What may be copied how.
    pub tuning: Tuning,
    /// Messages without a receive yet.
    pub spool: Spool,
    /// The settings.
    pub config: Config,
    /// Which nodes share a switch, if that is known.
    pub topology: Option<Topology>,
    /// This process's memory that peers map.
    pub region: Arc<Region>,
    /// Memory of `fmpl_alloc`.
    pub heap: Heap,
    /// Loans made and held.
    pub loans: crate::p2p::loan::Loans,
    /// Memory that it has beside that of others.
    pub windows: crate::p2p::window::Windows,
    /// The node has more ranks than this process may use cores.
    pub crowded: bool,
    /// Who this process is in its job, and what started it.
    pub launch: Launch,
    /// Times that init was called and finalize was not.
    pub uses: AtomicU32,
    /// Bytes of memory used in turn that this rank has written to, for all peers together.
    pub turn_memory: AtomicU64,
    /// Requests that only this process can move.
    pub waiting_sends: crate::p2p::request::WaitingSends,
    /// Requests that are prepared.
    pub prepared: crate::p2p::request::Prepared,
    /// Messages of any source.
    pub any_source: AnySource,
    /// What is still known of peers that are forgotten.
    pub lately: crate::p2p::remote::Lately,
    /// Spooled messages that were delivered at the last `sendbuf_check`.
    pub delivered_then: AtomicU64,
    /// Those of communicators that have been freed.
    pub delivered_gone: AtomicU64,
    /// Operations on global memory that were refused, or have failed.
    pub refused: AtomicU64,
    /// A communicator was freed while peers could still read blocks of its messages.
    pub left_over: AtomicBool,
    /// The event descriptor, once asked for.
    pub event: OnceLock<Event>,
    /// Called by the thread of the fabric when a remote command has come, or a reply.
    pub on_command: OnceLock<fn()>,
    event_making: Mutex<()>,
    attach: OnceLock<Attach>,
    /// The fabric between nodes; nothing when all ranks are here, or none is wanted.
    fabric: OnceLock<Arc<Fabric>>,
    dead: ByRank<AtomicBool>,
    deaths: AtomicU32,
    /// When the connections with other nodes were last tended for a wait for nobody in particular.
    tended_ns: AtomicU64,
    bound: Mutex<()>,
    /// [`LIVES_AT`] of the own region.
    lives: Mapping,
    /// Communicators that were broken when this rank freed them, by their epochs, and who was lost; the last one first.
    broken: Mutex<VecDeque<(u32, u32)>>,
}

/// The endpoint, or the error of a call outside init and finalize.
#[inline(always)]
pub fn endpoint() -> Result<&'static Endpoint> {
    #[cfg(loom)]
    if let Some(ep) = super::model::current() {
        return Ok(ep);
    }
    #[cfg(all(test, not(any(loom, miri))))]
    if crate::base::simulation::is_active() {
        return simulated::current().ok_or_else(absent);
    }
    // SYNC POINT: pairs with the release in `Endpoint::open`.
    let p = ENDPOINT.load(Ordering::Acquire);
    if p.is_null() {
        return Err(absent());
    }
    // SAFETY: set by `open` to a leaked box, taken away by `close` before it is freed; using the library while another thread is in
    // its last finalize is outside the interface.
    Ok(unsafe { &*p })
}

#[cold]
fn absent() -> Error {
    if FORKED.load(Ordering::Relaxed) {
        Error::new(Code::Fork, "this is a child of a process that had initialised FMPL; only the parent can use it")
    } else {
        Error::new(Code::Init, "call fmpl_init first, and nothing after the last fmpl_finalize")
    }
}

/// Is there an endpoint?
pub fn is_open() -> bool {
    !ENDPOINT.load(Ordering::Acquire).is_null()
}

extern "C" fn in_forked_child() {
    // The child has the parent's mappings but is not the parent: every call gets an error from here on.
    if !ENDPOINT.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
        FORKED.store(true, Ordering::Relaxed);
        unshared::close_all();
    }
}

impl Endpoint {
    /// Joins the job.
    pub fn open(how: How<'_>, indices: usize) -> Result<&'static Endpoint> {
        check_indices(indices)?;
        if FORKED.load(Ordering::Relaxed) {
            return Err(absent());
        }
        let config = Config::from_environment()?;
        let launch = Launch::begin(how);
        log::configure(config.log, launch.as_ref().ok().map(Launch::rank));
        // Once for a node, whose ranks have the same environment mostly.
        let first = launch.as_ref().map_or(true, |launch| launch.local_ranks().first() == Some(&launch.rank()));
        for name in Config::unknown_names() {
            tell(if first { Level::Warn } else { Level::Info }, || config::unknown(&name));
        }
        let launch = launch?;
        let (rank, size) = (launch.rank(), launch.size());
        let region = Arc::new(Region::create(rank, size)?);
        region.have_indices(indices as u32);
        if doorbell::register() {
            region.header().say_reached();
        }
        let cores = launch.cores();
        let here = launch.local_ranks().len();
        let shares = share::shares(config.spread, here, config.any_slots);
        region.header().any_slots.store(config.any_slots as u32, Ordering::Release);
        region.header().any_shares.store(shares as u32, Ordering::Release);
        // Pretended nodes share this machine's cores.
        let sharing = if launch.node().pretended().is_some() { size as usize } else { here };
        crate::wait::configure(&config, sharing, cores);
        let (tuning, whence) = find_tuning(&config, here > cores, launch.local_ranks().first() == Some(&rank))?;
        crate::base::ownership::configure(tuning.take_over);
        crate::base::looking::configure(tuning.look_by_clock);
        crate::p2p::receive::configure(tuning.owe_all);
        crate::base::copying::configure(&config, tuning.past, tuning.ahead);
        let endpoint = Box::leak(Box::new(Endpoint::new(launch, config, region, tuning, shares, here > cores)?));
        let endpoint: &'static Endpoint = endpoint;
        if let Err(e) = endpoint.wire_up() {
            // Nobody else has it: it was not published.
            endpoint.free();
            return Err(e);
        }
        static AT_FORK: std::sync::Once = std::sync::Once::new();
        AT_FORK.call_once(|| crate::base::thread::at_fork(in_forked_child));
        let signpost = std::ptr::from_ref(endpoint.lanes.signpost()) as u64;
        endpoint.region.header().signpost.store(signpost, Ordering::Relaxed);
        endpoint.region.header().state.store(ALIVE, Ordering::Release);
        stall::set_job(Some((endpoint, endpoint.config.deadlock)));
        // SYNC POINT: pairs with the acquire in `endpoint`.
        ENDPOINT.store(std::ptr::from_ref(endpoint).cast_mut(), Ordering::Release);
        tell(Level::Info, || endpoint.found(cores, &whence));
        traced!(trace::begin(&endpoint.config, rank, size, endpoint.launch.node().to_string()));
        if !cfg!(feature = "trace") && (endpoint.config.trace.is_some() || endpoint.config.trace_signal.is_some()) {
            tell(Level::Warn, || "FMPL_TRACE: this library was built without the feature trace".to_owned());
        }
        Ok(endpoint)
    }

    /// With tables of its own, and nobody known yet. `crowded`: there are more ranks here than cores.
    fn new(
        launch: Launch,
        config: Config,
        region: Arc<Region>,
        tuning: Tuning,
        shares: usize,
        crowded: bool,
    ) -> Result<Endpoint> {
        let (rank, size) = (region.rank(), region.size());
        let topology = read_topology(&config, launch.nodes().nodes())?;
        Ok(Endpoint {
            rank,
            size,
            topology,
            contexts: Contexts::new(rank, size)?,
            lanes: LaneTable::new(size.min(4096) as usize)?,
            tuning,
            spool: Spool::new(&region, config.spool_bytes, config.timeout_ms)?,
            heap: Heap::new(region.clone()),
            loans: crate::p2p::loan::Loans::new(rank, config.loans),
            windows: Default::default(),
            crowded,
            uses: AtomicU32::new(1),
            turn_memory: AtomicU64::new(0),
            waiting_sends: Default::default(),
            prepared: Default::default(),
            any_source: AnySource::new(&region, config.any_slots, shares)?,
            lately: Default::default(),
            delivered_then: AtomicU64::new(0),
            delivered_gone: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            left_over: AtomicBool::new(false),
            event: OnceLock::new(),
            on_command: OnceLock::new(),
            event_making: Mutex::new(()),
            attach: OnceLock::new(),
            fabric: OnceLock::new(),
            dead: ByRank::new(size),
            deaths: AtomicU32::new(0),
            tended_ns: AtomicU64::new(0),
            bound: Mutex::new(()),
            // Now, since who has no memory left must be able to say so.
            lives: region.map(LIVES_AT, UNITS * 8)?,
            broken: Mutex::new(VecDeque::new()),
            config,
            region,
            launch,
        })
    }

    /// Publishes where this rank is found, and agrees on the job's key.
    ///
    /// From the opening of first contacts on peers may come to be known here, and die. So the endpoint hears of deaths itself, whether it is
    /// published or not; who finds a peer's lane later finds its death in the record, see [`lane`](Endpoint::lane).
    fn wire_up(&'static self) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let options = Options { cma: self.config.cma };
        let attach = Attach::start(self.region.clone(), options, self.hears_of_deaths(), |_| ())?;
        self.launch.draw_key()?;
        self.launch.put(&card_key(self.rank), &attach.card())?;
        if self.has_other_nodes() {
            let published = self.start_fabric()?;
            self.launch.put(&fabric_key(self.rank), &published)?;
        }
        self.launch.fence()?;
        let key = self.launch.key()?;
        attach.open(&key)?;
        let _ = self.attach.set(attach);
        if let Some(fabric) = self.fabric.get() {
            fabric.open(&key, super::remote::hooks())?;
        }
        self.probe_nodes()
    }

    /// What is done with the news of a death, from before the endpoint is published on.
    fn hears_of_deaths(&'static self) -> impl Fn(u32) + Send + Sync + 'static {
        |rank| self.mark_dead(rank)
    }

    /// Goes onto the fabric between nodes, if one is wanted: how this rank is reached, to be published.
    fn start_fabric(&self) -> Result<Vec<u8>> {
        if !networks::is_wanted(&self.config) {
            return Ok(Card::default().encode(NO_NETWORK));
        }
        // The ranks of a node spread over its ports; pretended nodes too, which share them.
        let here = self.launch.local_ranks().iter().position(|r| *r == self.rank).unwrap_or(0);
        let turn = here + self.launch.nodes().node_of(self.rank) as usize;
        let started = networks::choose(&self.config, turn).and_then(|device| {
            let (config, nodes, rank) = (&self.config, self.launch.nodes().clone(), self.rank);
            let here = self.launch.local_ranks().len();
            let share = || {
                let (ranges, bytes) = (config.registrations, config.registered_memory);
                Bounds::share(ranges, bytes, here, device.limits().holds_pages)
            };
            let terms = Terms {
                keep: config.verbs_cache.then(share),
                strict: config.verbs_strict,
                places: config.places(),
                ways: self.ways(),
                patience: Duration::from_secs_f64(config.attach_s),
                stall: Duration::from_secs_f64(config.stall_s),
                comes_before: Box::new(move |peer| nodes.node_of(rank) < nodes.node_of(peer)),
            };
            Fabric::start(Who::of(self.region.clone()), device, terms)
        });
        let fabric = Arc::new(started.map_err(|e| self.no_network(&e))?);
        let _ = self.fabric.set(fabric.clone());
        let published = fabric.card().encode(&fabric.device().network());
        let spool = fabric.clone();
        let _ = self.spool.on_remove.set(Box::new(move |at, len| spool.forget_spool(at, len)));
        if fabric.device().limits().is_driven {
            let driven = fabric.clone();
            crate::wait::drive_by(Some(Arc::new(move |looks| driven.drive(looks))));
        }
        let _ = self.heap.on_remove.set(Box::new(move |at, len| fabric.cache().forget(at, len)));
        Ok(published)
    }

    /// Which way peers on other nodes take, where there are two.
    fn ways(&self) -> Choice {
        let here = self.launch.local_ranks().len();
        let peers = here * (self.size as usize - here);
        match self.config.connect {
            Connect::Random => Choice::Random { seed: u64::from(self.rank), every_ns: 50_000_000 },
            Connect::Datagrams => Choice::Always(Way::Shared),
            Connect::Rings => Choice::Always(Way::Ring),
            Connect::All | Connect::Busiest => Choice::Busiest { fits: peers <= self.config.queue_pairs },
        }
    }

    /// A further init: the largest count holds.
    pub fn join_again(&self, indices: usize) -> Result<()> {
        check_indices(indices)?;
        self.region.have_indices(indices as u32);
        self.uses.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Leaves the job: nobody can use the library afterwards.
    pub fn close(&'static self) -> Result<()> {
        for lane in self.lanes.all().iter() {
            lane.my_side().state.store(SIDE_FINALIZED, Ordering::Release);
        }
        self.region.header().state.store(FINALIZED, Ordering::Release);
        self.leave_fabric();
        traced!(trace::end());
        let left = self.launch.finalize();
        ENDPOINT.store(std::ptr::null_mut(), Ordering::Release);
        stall::set_job(None);
        #[cfg(all(test, not(any(loom, miri))))]
        simulated::leave(self.rank);
        self.free();
        areas::end();
        left
    }

    /// Ends the threads that look at it, and gives its memory back.
    fn free(&'static self) {
        self.stop_threads();
        // SAFETY: leaked in `open`, and not, or no longer, to be found; the interface forbids calls at the same time as the last finalize, and
        // the library's own threads have ended.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self).cast_mut()) });
    }

    /// Ends the threads that look at this endpoint: afterwards nobody tells it of deaths any more.
    fn stop_threads(&self) {
        crate::wait::drive_by(None);
        if let Some(fabric) = self.fabric.get() {
            fabric.stop();
        }
        if let Some(attach) = self.attach.get() {
            attach.stop();
        }
    }

    /// The board of this process.
    #[inline]
    pub fn board(&self) -> &Board {
        self.region.board_of()
    }

    /// Does whoever has mapped this rank's region do its part when this rank calls `membarrier`?
    pub(crate) fn is_ordered(&self) -> bool {
        self.region.header().is_ordered()
    }

    /// With an event descriptor, after a request has asked for a ring and before it looks once more: orders the two. Where that cannot be
    /// had, the descriptor's thread has the program look again by the clock. `ordered` is asked afterwards: are all reached who may ring?
    pub(super) fn order_event(&self, event: &Event, ordered: impl FnOnce() -> bool) {
        if !(doorbell::barrier() && ordered()) {
            event.look_again();
        }
    }

    /// The event descriptor, made when first asked for.
    pub fn event(&'static self) -> Result<&'static Event> {
        let _one = self.event_making.lock().unwrap_or_else(|e| e.into_inner());
        if self.event.get().is_none() {
            let _ = self.event.set(Event::new(self.board())?);
        }
        self.event.get().ok_or_else(|| Error::new(Code::System, "the event descriptor could not be made"))
    }

    /// Has this process no thread but one that could call the library?
    pub fn single_threaded(&self) -> bool {
        stall::threads_of(std::process::id()) <= 1
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Its thread sleeps on the board, which is in the region.
        drop(self.event.take());
        // Nothing of other nodes' may write into what goes away below.
        self.stop_threads();
        // SAFETY: the endpoint is going away, so no thread is in the library.
        self.lanes.clear(&unsafe { Unused::promised() });
    }
}

/// Which nodes share a switch, as the setting says of so many nodes.
fn read_topology(config: &Config, nodes: u32) -> Result<Option<Topology>> {
    let Some(text) = &config.topology else { return Ok(None) };
    let nodes = match config.coll_nodes {
        PretendedNodes::Off => nodes,
        PretendedNodes::Blocks(n) | PretendedNodes::Cyclic(n) => n,
    };
    let read = Topology::parse(text, nodes);
    read.map(Some).map_err(|why| error!(Code::Setting, "FMPL_TOPOLOGY={text}: {why}"))
}

/// What this machine's tuning file says, and which it is. `tells`: this rank says which files are passed over, for all of its node.
fn find_tuning(config: &Config, crowded: bool, tells: bool) -> Result<(Tuning, Whence)> {
    let processor = Processor::here();
    let found = tuning::find(config, &processor)?;
    for why in found.ignored.iter().filter(|_| tells) {
        tell(Level::Warn, || format!("tuning file passed over: {why}"));
    }
    Ok((Tuning::of(found.rows, processor, config, crowded), found.whence))
}
