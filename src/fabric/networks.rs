//! Which network reaches other nodes.

use std::sync::Arc;

use super::network::device::Device;
use super::ofi::network::Ofi;
use super::ofi::provider;
use super::verbs::device::{Port, Wishes};
use super::verbs::network::Verbs;
use crate::base::config::{Config, Network};
use crate::base::error::{Code, Error, Result};

/// Do the settings want one?
pub fn is_wanted(config: &Config) -> bool {
    match config.network {
        Network::Auto => config.verbs,
        Network::None => false,
        _ => true,
    }
}

/// The device that a process uses, as the settings say. `turn`: which of several equally good ones, so that the ranks of a node spread.
///
/// `Unsupported`: there is none here. `Setting`: a wish that cannot be had; the text lists what can.
pub fn choose(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    match &config.network {
        Network::Verbs => by_verbs(config, turn),
        Network::Ofi(provider) => by_libfabric(provider.clone()),
        Network::None => Err(Error::new(Code::Unsupported, "no network is wanted (FMPL_NETWORK)")),
        // Libfabric is tried when it is named only.
        Network::Auto => by_verbs(config, turn).map_err(|e| match e.code() {
            Code::Unsupported => Error::new(
                e.code(),
                format!("{} (over other networks than RDMA: FMPL_NETWORK=ofi, by libfabric)", e.detail()),
            ),
            _ => e,
        }),
    }
}

fn by_verbs(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    let port = Port::choose(&Wishes::of(config), turn)?;
    Ok(Arc::new(Verbs::open(port)?))
}

fn by_libfabric(provider: Option<String>) -> Result<Arc<dyn Device>> {
    let named = provider.clone();
    let offer = provider::choose(&provider::Wishes { provider }).map_err(|e| match (e.code(), named) {
        (Code::Setting, Some(name)) => Error::new(Code::Setting, format!("FMPL_NETWORK=ofi:{name}: {}", e.detail())),
        _ => e,
    })?;
    Ok(Arc::new(Ofi::open(offer)?))
}
