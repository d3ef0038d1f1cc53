//! What the library tells on standard error unasked, by levels (`FMPL_LOG`). Each line is `fmpl: rank N: …`.
//!
//! | level | what it tells, beside what the levels above it tell |
//! |---|---|
//! | off | nothing, but why the library ends a process |
//! | error | what stands still or has failed and is no call's error: stalls, deadlocks, failures of global memory |
//! | warn | what is probably not meant: names that are no settings, tuning files passed over, strangers turned away |
//! | info | once: what this rank has found at init; where collective calls do without a multicast group, and why |
//! | debug | what is rare: lanes opened, connections made and given up, ways that are closed, memory registered, growth of the spool |
//!
//! Nothing of this is asked on the path of a message: it is told where something is done for the first time, or goes wrong.

use super::atomics::Setting;
use super::error::say;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// See the table above.
    Off,
    /// See the table above.
    Error,
    /// See the table above.
    Warn,
    /// See the table above.
    Info,
    /// See the table above.
    Debug,
}

impl Level {
    /// All levels, by the names that `FMPL_LOG` has for them.
    pub const NAMED: [(&'static str, Level); 5] = [
        ("off", Level::Off),
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("info", Level::Info),
        ("debug", Level::Debug),
    ];
}

static LEVEL: Setting = Setting::new(Level::Warn as u64);
/// The rank + 1; 0: not known yet.
static RANK: Setting = Setting::new(0);

/// What is told from now on, and by which rank, once that is known.
pub fn configure(level: Level, rank: Option<u32>) {
    LEVEL.set(level as u64);
    RANK.set(rank.map_or(0, |rank| rank as u64 + 1));
}

/// Is this level told?
pub fn tells(level: Level) -> bool {
    LEVEL.get() >= level as u64
}

/// Tells of an error that names its ranks itself.
#[cold]
pub fn report(text: &str) {
    if tells(Level::Error) {
        speak(Level::Error, text);
    }
}

/// To the program's subscriber, where the library was built with `tracing` and there is one; else to standard error.
fn speak(level: Level, text: &str) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        return match level {
            Level::Off | Level::Error => tracing::error!(target: "fmpl", "{text}"),
            Level::Warn => tracing::warn!(target: "fmpl", "{text}"),
            Level::Info => tracing::info!(target: "fmpl", "{text}"),
            Level::Debug => tracing::debug!(target: "fmpl", "{text}"),
        };
    }
    let _ = level;
    say(text);
}

/// Tells something, if this level is told. The text is made only then.
#[cold]
pub fn tell(level: Level, text: impl FnOnce() -> String) {
    if !tells(level) {
        return;
    }
    match RANK.get() {
        0 => speak(level, &text()),
        rank => speak(level, &format!("rank {}: {}", rank - 1, text())),
    }
}
