//! An endpoint for models and simulated worlds: with a region and tables of its own, and nobody known yet.

use super::*;

impl Endpoint {
    /// See the head of this file.
    pub(super) fn bare(rank: u32, size: u32, config: Config, launch: Launch) -> Result<Endpoint> {
        let region = Arc::new(Region::create(rank, size)?);
        region.have_indices(64);
        region.header().any_slots.store(config.any_slots as u32, Ordering::Release);
        Ok(Endpoint {
            rank,
            size,
            contexts: Contexts::new(rank, size)?,
            lanes: LaneTable::new(size as usize)?,
            tuning: Tuning::new(&config, false),
            spool: Spool::new(&region, config.spool_bytes, config.timeout_ms)?,
            heap: Heap::new(region.clone()),
            loans: crate::p2p::loan::Loans::new(rank, config.loans),
            crowded: false,
            uses: AtomicU32::new(1),
            turn_memory: AtomicU64::new(0),
            waiting_sends: Default::default(),
            any_source: AnySource::new(&region, config.any_slots, 1)?,
            delivered_then: AtomicU64::new(0),
            delivered_gone: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            left_over: AtomicBool::new(false),
            event: OnceLock::new(),
            on_command: OnceLock::new(),
            event_making: Mutex::new(()),
            attach: OnceLock::new(),
            fabric: OnceLock::new(),
            dead: (0..size).map(|_| AtomicBool::new(false)).collect(),
            deaths: AtomicU32::new(0),
            tended_ns: AtomicU64::new(0),
            bound: Mutex::new(()),
            lives: OnceLock::new(),
            launch,
            config,
            region,
        })
    }
}
