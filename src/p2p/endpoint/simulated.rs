//! A rank of a simulated world: an endpoint without a launcher, alone on its node, which reaches the others over the simulated network.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::base::key::Key;
use crate::base::simulation;
use crate::fabric::network::device::Device;

thread_local! {
    static RANKS: RefCell<BTreeMap<u32, &'static Endpoint>> = RefCell::default();
}

/// The endpoint of the rank whose thread runs.
pub fn current() -> Option<&'static Endpoint> {
    let rank = simulation::rank()?;
    RANKS.with(|r| r.borrow().get(&rank).copied())
}

/// A rank is no longer in its job.
pub(super) fn leave(rank: u32) {
    if simulation::is_active() {
        RANKS.with(|r| r.borrow_mut().remove(&rank));
    }
}

impl Endpoint {
    /// A rank that others reach where their cards say. Its thread answers from now on.
    pub fn in_simulation(
        rank: u32,
        config: Config,
        device: Arc<dyn Device>,
        cards: &[Card],
    ) -> Result<&'static Endpoint> {
        let size = cards.len() as u32;
        let values = (0..size).map(|r| (fabric_key(r), cards[r as usize].encode("simulated"))).collect();
        let ep: &'static Endpoint =
            Box::leak(Box::new(Endpoint::bare(rank, size, config, Launch::simulated(rank, size, values)?)?));
        ep.region.header().say_reached();
        RANKS.with(|r| r.borrow_mut().insert(rank, ep));
        let config = &ep.config;
        let terms = Terms {
            keep: None,
            strict: config.verbs_strict,
            places: [config.queue_pairs, config.contexts, config.rings],
            ways: Choice::Random { seed: u64::from(rank), every_ns: 2_000_000 },
            patience: Duration::from_secs_f64(config.attach_s),
            stall: Duration::ZERO,
            comes_before: Box::new(move |peer| rank < peer),
        };
        let fabric = Arc::new(Fabric::start(Who::of(ep.region.clone()), device, terms)?);
        let spool = fabric.clone();
        let _ = ep.spool.on_remove.set(Box::new(move |at, len| spool.forget_spool(at, len)));
        let _ = ep.fabric.set(fabric.clone());
        ep.region.header().state.store(ALIVE, Ordering::Release);
        fabric.open(&Key::of(b"a simulated job's"), crate::p2p::remote::hooks())?;
        Ok(ep)
    }
}
