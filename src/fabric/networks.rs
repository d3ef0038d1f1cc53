//! Which network reaches other nodes.

use std::sync::Arc;

use super::network::device::Device;
use super::verbs::device::{Port, Wishes};
use super::verbs::network::Verbs;
use crate::base::config::Config;
use crate::base::error::Result;

/// Do the settings want one?
pub fn is_wanted(config: &Config) -> bool {
    config.verbs
}

/// The device that a process uses, as the settings say. `turn`: which of several equally good ones, so that the ranks of a node spread.
///
/// `Unsupported`: there is none here. `Setting`: a wish that cannot be had; the text lists what can.
pub fn choose(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    let port = Port::choose(&Wishes::of(config), turn)?;
    Ok(Arc::new(Verbs::open(port)?))
}
