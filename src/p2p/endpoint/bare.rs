//! An endpoint for models and simulated worlds: with a region and tables of its own, and nobody known yet.

use super::*;

impl Endpoint {
    /// See the head of this file.
    pub(super) fn bare(rank: u32, size: u32, config: Config, launch: Launch) -> Result<Endpoint> {
        let region = Arc::new(Region::create(rank, size)?);
        region.have_indices(64);
        region.header().any_slots.store(config.any_slots as u32, Ordering::Release);
        let tuning = Tuning::new(&config, false);
        Endpoint::new(launch, config, region, tuning, 1, false)
    }
}
