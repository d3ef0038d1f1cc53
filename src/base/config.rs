//! The settings ([`settings`]): a [`table`], and the numbers of [tuning files](crate::base::tuning). Read once from the environment at init,
//! printed by `fmpl info`.
//!
//! A value that cannot be used is an error that shows the possible ones; a name that starts with `FMPL_` and is no setting
//! is reported once, since it is most likely misspelt.

mod table;
mod ways;

use std::path::PathBuf;

use crate::base::copying::Loop;
use crate::base::error::{Code, Error, Result, error};
use crate::base::log::Level;
use crate::base::tuning::{self, Distance, Given};
pub use table::Config;
pub use ways::*;

/// Bytes that the spool of a job or a communicator can have.
pub const SPOOL_MOST: usize = 8 << 30;

/// One row of the table of settings.
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What holds without it, as it would be written.
    pub default: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it does.
    pub meaning: &'static str,
    pub(in crate::base) set: fn(&mut Config, &str) -> Option<()>,
}

/// Every setting, in the order in which `fmpl info` prints them.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    table::SETTINGS.iter().chain(tuning::SETTINGS)
}

/// Which network reaches other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The best that there is.
    Auto,
    /// InfiniBand or RoCE, by libibverbs.
    Verbs,
    /// By libfabric; by this provider of it, or the best.
    Ofi(Option<String>),
    /// TCP, by the system's sockets; by this interface or address, or the best.
    Tcp(Option<String>),
    /// Datagrams by UDP, without connections; by this interface or address, or the best.
    Udp(Option<String>),
    /// None.
    None,
}

impl Network {
    fn named(name: &str) -> Option<Network> {
        Some(match name {
            "auto" => Network::Auto,
            "verbs" => Network::Verbs,
            "ofi" => Network::Ofi(None),
            "tcp" => Network::Tcp(None),
            "udp" => Network::Udp(None),
            "none" => Network::None,
            _ => match name.split_once(':').filter(|(_, which)| !which.is_empty())? {
                ("ofi", provider) => Network::Ofi(Some(provider.to_owned())),
                ("tcp", port) => Network::Tcp(Some(port.to_owned())),
                ("udp", port) => Network::Udp(Some(port.to_owned())),
                _ => return None,
            },
        })
    }
}

/// What decides how fast a connection of TCP sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// What the system has, unless that sends by a timer.
    Auto,
    /// What the system has.
    System,
    /// This, as the system calls it.
    Named(String),
}

impl Congestion {
    fn named(name: &str) -> Option<Congestion> {
        Some(match name {
            "auto" => Congestion::Auto,
            "system" => Congestion::System,
            // As long as the system's names may be.
            _ if (1..16).contains(&name.len()) => Congestion::Named(name.to_owned()),
            _ => return None,
        })
    }
}

/// What becomes of datagrams on their way, for tests: so many of a hundred are lost, come twice, come late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weather {
    /// Lost.
    pub loss: f64,
    /// Doubled.
    pub double: f64,
    /// Late by up to some milliseconds, so that others overtake them.
    pub late: f64,
    /// The same seed has the same weather.
    pub seed: u64,
}

impl Weather {
    /// As it is written: `loss=2,double=1,late=1,seed=7`, any of them.
    fn named(text: &str) -> Option<Weather> {
        let mut weather = Weather::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=')?;
            let percent = || value.parse().ok().filter(|p: &f64| (0.0..100.0).contains(p));
            match name {
                "loss" => weather.loss = percent()?,
                "double" => weather.double = percent()?,
                "late" => weather.late = percent()?,
                "seed" => weather.seed = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(weather)
    }
}

/// Nodes that collective calls pretend, to try their algorithms between nodes on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PretendedNodes {
    /// The nodes are what they are.
    Off,
    /// So many, each of neighbouring ranks.
    Blocks(u32),
    /// So many, in turn.
    Cyclic(u32),
}

impl PretendedNodes {
    fn named(name: &str) -> Option<PretendedNodes> {
        let count = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0);
        match name.strip_prefix('c') {
            _ if name == "off" => Some(PretendedNodes::Off),
            Some(n) => count(n).map(PretendedNodes::Cyclic),
            None => count(name).map(PretendedNodes::Blocks),
        }
    }
}

/// Which tuning file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuningFile {
    /// The user's, or the one that is installed, if there is one.
    Auto,
    /// What is built in.
    BuiltIn,
    /// This one.
    At(PathBuf),
}

impl TuningFile {
    fn named(name: &str) -> Option<TuningFile> {
        match name {
            "auto" => Some(TuningFile::Auto),
            "built-in" => Some(TuningFile::BuiltIn),
            "" => None,
            path => Some(TuningFile::At(path.into())),
        }
    }
}

/// Names that begin with `FMPL_` and are set by the launcher, not by users: each rank's or node's own, or secret.
pub static LAUNCHER_NAMES: &[&str] =
    &["FMPL_RANK", "FMPL_SIZE", "FMPL_ROOT", "FMPL_NODE", "FMPL_SECRET", "FMPL_SECRET_FILE", "FMPL_RUN", "FMPL_CORES"];

impl Config {
    /// Are there connections between nodes? Otherwise there are channels, of which contexts are the only bound.
    pub fn has_connections(&self) -> bool {
        self.queue_pairs > 0
    }

    /// Connections, contexts and rings of all processes of a node; of channels only contexts are counted.
    pub fn places(&self) -> [usize; 3] {
        [self.queue_pairs, self.contexts, self.rings]
    }

    /// Reads the environment. The error names the variable, its value and the possible values.
    pub fn from_environment() -> Result<Config> {
        let mut config = Config::default();
        for s in settings() {
            if let Some(value) = std::env::var_os(s.name) {
                // What is no text is no value that there is.
                let text = value.to_str().ok_or_else(|| refused(s, &value.to_string_lossy()))?;
                config.set(s, text)?;
            }
        }
        Ok(config)
    }

    fn set(&mut self, setting: &Setting, value: &str) -> Result<()> {
        (setting.set)(self, value.trim()).ok_or_else(|| refused(setting, value))
    }

    /// Variables in the environment that look like settings and are none.
    pub fn unknown_names() -> Vec<String> {
        std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|n| {
                n.starts_with("FMPL_")
                    && !settings().any(|s| s.name == n)
                    && !LAUNCHER_NAMES.contains(&n.as_str())
                    && !n.starts_with("FMPL_TEST_")
                    && !n.starts_with("FMPL_BENCH_")
            })
            .collect()
    }
}

#[cold]
fn refused(setting: &Setting, value: &str) -> Error {
    error!(Code::Setting, "{}={value}: possible values: {}", setting.name, setting.values)
}

/// Says of a variable that looks like a setting that it is none, and which was meant, if one is like it.
pub fn unknown(name: &str) -> String {
    match meant(name, settings().map(|s| s.name)) {
        Some(meant) => format!("{name} is no setting of FMPL; did you mean {meant}?"),
        None => format!("{name} is no setting of FMPL; `fmpl info` lists them"),
    }
}

/// Which of these words somebody may have meant who wrote this one: the likest, if it is like it.
pub fn meant<'a>(name: &str, of: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = 3.min(2 * name.len() / 3);
    let likest = of.into_iter().map(|word| (distance(name, word), word)).min();
    likest.filter(|(distance, _)| *distance <= most).map(|(_, word)| word)
}

/// How many letters must be put in, taken out or changed to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// Whether a setting is switched on.
pub fn on_off(v: &str) -> Option<bool> {
    match v {
        "on" | "1" | "yes" | "true" => Some(true),
        "off" | "0" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A number of bytes: `4096`, `64k`, `16M`, `1G`.
pub fn bytes(v: &str) -> Option<usize> {
    let v = v.trim();
    let (digits, shift) = match v.char_indices().last()? {
        (i, 'k' | 'K') => (&v[..i], 10),
        (i, 'm' | 'M') => (&v[..i], 20),
        (i, 'g' | 'G') => (&v[..i], 30),
        _ => (v, 0),
    };
    let n: usize = digits.parse().ok()?;
    n.checked_mul(1usize << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_setting_is_known_by_its_likeness() {
        for (name, meant) in [("FMPL_EAGRE", "FMPL_EAGER"), ("FMPL_NETWORKS", "FMPL_NETWORK"), ("FMPL_Spin_us", "")] {
            let text = unknown(name);
            match meant {
                "" => assert!(text.contains("fmpl info"), "{text}"),
                _ => assert!(text.ends_with(&format!("did you mean {meant}?")), "{text}"),
            }
        }
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("abc", "abc")), (3, 3, 0));
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("64k"), Some(65536));
        assert_eq!(bytes(" 2G "), Some(2 << 30));
        for bad in ["", "k", "-1", "1T", "1.5M", "99999999999999999999", "18446744073709551615G"] {
            assert_eq!(bytes(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn bad_values_name_the_possible_ones() {
        let mut c = Config::default();
        let wait = settings().find(|s| s.name == "FMPL_WAIT").unwrap();
        let e = c.set(wait, "often").unwrap_err();
        assert_eq!(e.code(), Code::Setting);
        assert!(e.detail().contains("FMPL_WAIT=often") && e.detail().contains("adaptive"), "{e}");
        assert!(c.set(wait, "block").is_ok());
        assert_eq!(c.wait, WaitMode::Block);
    }

    #[test]
    fn what_cannot_be_counted_is_no_value() {
        for (name, bad) in [
            ("FMPL_ATTACH_TIMEOUT", &["0", "-1", "nan", "inf", "1e7", "1e300"][..]),
            ("FMPL_START_TIMEOUT", &["0", "nan", "inf", "1e300"]),
            ("FMPL_STALL", &["-1", "nan"]),
            ("FMPL_SPOOL", &["9G", "17179869183G"]),
        ] {
            let setting = settings().find(|s| s.name == name).unwrap();
            for value in bad {
                assert!(Config::default().set(setting, value).is_err(), "{name}={value}");
            }
        }
        let stall = settings().find(|s| s.name == "FMPL_STALL").unwrap();
        assert!(Config::default().set(stall, "1e300").is_ok());
    }

    #[test]
    fn loops_are_known_by_their_names() {
        let setting = settings().find(|s| s.name == "FMPL_COPY").unwrap();
        for l in Loop::ALL {
            let mut c = Config::default();
            c.set(setting, l.name()).unwrap();
            assert_eq!(c.copy, Some(l));
            assert!(setting.values.split(" | ").any(|v| v == l.name()));
        }
    }

    #[test]
    fn defaults_as_printed_are_the_defaults() {
        for s in settings().filter(|s| !s.default.contains(' ')) {
            let mut c = Config::default();
            c.set(s, s.default).unwrap();
            assert_eq!(format!("{c:?}"), format!("{:?}", Config::default()), "{}", s.name);
        }
    }
}
