//! Which network reaches other nodes.

use std::sync::Arc;

use super::datagram::carrier::Carrier;
use super::datagram::network::Datagrams;
use super::datagram::udp::Udp;
use super::network::device::Device;
use super::ofi::network::Ofi;
use super::ofi::provider::{self, Wishes};
use super::served::port::Port as Interface;
use super::tcp::network::Tcp;
use super::two_ways::{Connected, TwoWays};
use super::verbs::carrier::Ud;
use super::verbs::device::{self as verbs, Port};
use super::verbs::network::Verbs;
use crate::base::config::{Config, Connect, Network};
use crate::base::error::{Code, Error, Result, error};
use crate::base::log::{Level, tell};

/// Do the settings want one?
pub fn is_wanted(config: &Config) -> bool {
    config.network != Network::None
}

/// By this the numbers of channels differ from those of pairs, which have 24 bits, or are given out from 1 on.
const OF_CHANNELS: u32 = 1 << 31;

/// The device that a process uses, as the settings say. `turn`: which of several equally good ones, so that the ranks of a node spread.
///
/// `Unsupported`: there is none here; the text says what was looked for, and what to do. `Setting`: a wish that cannot be had; the text
/// lists what can.
pub fn choose(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    match &config.network {
        Network::Verbs => by_verbs(config, turn),
        Network::Ofi(_) if config.connect != Connect::All => Err(Error::new(
            Code::Setting,
            "FMPL_CONNECT: by libfabric all are connected; verbs and tcp can do without (FMPL_NETWORK)",
        )),
        Network::Tcp(_) | Network::Ofi(_) if !config.has_connections() => {
            Err(Error::new(Code::Setting, "FMPL_QUEUE_PAIRS=0: only verbs and udp need no connections (FMPL_NETWORK)"))
        }
        Network::Ofi(provider) => by_libfabric(config, Wishes { provider: provider.clone(), ..Wishes::default() }),
        Network::Tcp(wish) => by_tcp(config, wish.as_deref()),
        Network::Udp(wish) => by_udp(config, wish.as_deref()),
        Network::None => Err(Error::new(Code::Unsupported, "no network is wanted (FMPL_NETWORK)")),
        Network::Auto => by_itself(config, turn),
    }
}

/// Without connections: RDMA's datagrams, and those of UDP, which every network of nodes has. Otherwise the best there is: RDMA, devices of another kind by libfabric, and TCP, which every network of nodes has.
fn by_itself(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    let passed = |looked_for: &str, why: &Error| {
        tell(Level::Debug, || format!("between nodes: {looked_for} is passed over: {}", why.detail()));
    };
    if config.verbs {
        match by_verbs(config, turn) {
            Err(e) if e.code() == Code::Unsupported => passed("RDMA", &e),
            chosen => return chosen,
        }
    }
    if !config.has_connections() {
        return by_udp(config, None);
    }
    if config.connect == Connect::All && (config.libfabric.is_some() || provider::has_devices()) {
        match by_libfabric(config, Wishes { devices: true, ..Wishes::default() }) {
            Err(e) if e.code() == Code::Unsupported => passed("libfabric", &e),
            chosen => return chosen,
        }
    }
    by_tcp(config, None)
}

fn by_tcp(config: &Config, wish: Option<&str>) -> Result<Arc<dyn Device>> {
    let tcp = Tcp::open(Interface::choose("tcp", wish)?, &config.tcp_congestion)?;
    if config.connect == Connect::All {
        return Ok(Arc::new(tcp));
    }
    both(config, Box::new(tcp), Box::new(Udp::open(Interface::choose("udp", wish)?)?))
}

/// The peers that are not among the busiest are reached by datagrams.
fn both(config: &Config, connected: Box<dyn Connected>, carrier: Box<dyn Carrier>) -> Result<Arc<dyn Device>> {
    let datagrams = Datagrams::over(carrier, config.weather.as_ref(), OF_CHANNELS)?;
    Ok(Arc::new(TwoWays::new(connected, datagrams)))
}

fn by_udp(config: &Config, wish: Option<&str>) -> Result<Arc<dyn Device>> {
    let port = Interface::choose("udp", wish)?;
    Ok(Arc::new(Datagrams::by_udp(port, config.weather.as_ref())?))
}

fn by_verbs(config: &Config, turn: usize) -> Result<Arc<dyn Device>> {
    let port = Port::choose(&verbs::Wishes::of(config), turn)?;
    if !config.has_connections() {
        return Ok(Arc::new(Datagrams::over(Box::new(Ud::open(port)?), config.weather.as_ref(), 0)?));
    }
    if config.connect != Connect::All {
        return both(config, Box::new(Verbs::open(port.clone())?), Box::new(Ud::open(port)?));
    }
    Ok(Arc::new(Verbs::open(port)?))
}

fn by_libfabric(config: &Config, wishes: Wishes) -> Result<Arc<dyn Device>> {
    let named = wishes.provider.clone();
    let offer = provider::choose(&Wishes { file: config.libfabric.clone(), ..wishes }).map_err(|e| {
        match (e.code(), named) {
            (Code::Setting, Some(name)) => {
                error!(Code::Setting, "FMPL_NETWORK=ofi:{name}: {}", e.detail())
            }
            _ => e,
        }
    })?;
    Ok(Arc::new(Ofi::open(offer, &config.tcp_congestion)?))
}
