//! Which network reaches other nodes.

use std::sync::Arc;

use super::network::device::Device;
use super::ofi::network::Ofi;
use super::ofi::provider::{self, Wishes};
use super::tcp::network::Tcp;
use super::tcp::port;
use super::verbs::device::{self as verbs, Port};
use super::verbs::network::Verbs;
use crate::base::config::{Config, Network};
use crate::base::error::{Code, Error, Result};

/// Do the settings want one?
pub fn is_wanted(config: &Config) -> bool {
    config.network != Network::None
}

/// The device that a process uses, as the settings say. `turn`: which of several equally good ones, so that the ranks of a node spread.
///
/// `Unsupported`: there is none here; the text says what was looked for, and what to do. `Setting`: a wish that cannot be had; the text
/// lists what can.
pub fn choose(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    match &config.network {
        Network::Verbs => by_verbs(config, turn),
        Network::Ofi(provider) => by_libfabric(config, provider.clone()),
        Network::Tcp(wish) => Ok(Arc::new(Tcp::open(port::Port::choose(wish.as_deref())?)?)),
        Network::None => Err(Error::new(Code::Unsupported, "no network is wanted (FMPL_NETWORK)")),
        Network::Auto => {
            let no_port = match config.verbs.then(|| by_verbs(config, turn)) {
                None => "is not looked for (FMPL_VERBS=off)".to_owned(),
                Some(Err(e)) if e.code() == Code::Unsupported => e.detail().to_owned(),
                Some(chosen) => return chosen,
            };
            by_libfabric(config, None).map_err(|e| match e.code() {
                Code::Unsupported => Error::new(
                    e.code(),
                    format!(
                        "there is no network between nodes: RDMA: {no_port}; other networks: {}; {INSTALL}",
                        e.detail()
                    ),
                ),
                _ => e,
            })
        }
    }
}

const INSTALL: &str = "install libibverbs with the driver of the RDMA device (Debian: ibverbs-providers), or libfabric (libfabric1), which \
                       needs an Ethernet only";

fn by_verbs(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    let port = Port::choose(&verbs::Wishes::of(config), turn)?;
    Ok(Arc::new(Verbs::open(port)?))
}

fn by_libfabric(config: &Config, provider: Option<String>) -> Result<Arc<dyn Device>> {
    let named = provider.clone();
    let wishes = Wishes { provider, file: config.libfabric.clone() };
    let offer = provider::choose(&wishes).map_err(|e| match (e.code(), named) {
        (Code::Setting, Some(name)) => Error::new(Code::Setting, format!("FMPL_NETWORK=ofi:{name}: {}", e.detail())),
        _ => e,
    })?;
    Ok(Arc::new(Ofi::open(offer)?))
}
