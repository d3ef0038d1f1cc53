//! In which state of the machine a block was measured. The cores of a virtual machine move, and two that have a common cache now may
//! have none in a minute; every short message costs three to five times as much then. The raw hop before and after a block tells.

use std::fmt;

/// A raw hop below this many nanoseconds is of cores with a common cache. Where this was chosen hops take 31 to 40 ns or 150 to 215, and
/// next to none something between.
pub const NEAR_NS: f64 = 100.0;

/// How far apart the cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They have a common cache.
    Near,
    /// They have none.
    Far,
    /// There is no hop to tell by: one core, or ranks on several nodes.
    Untold,
}

impl State {
    /// All there are, in the order of tables.
    pub const ALL: [State; 3] = [State::Near, State::Far, State::Untold];

    /// By the hop before and after a block; `None`: it changed meanwhile, and the block is of neither.
    pub fn of(hop: Option<[f64; 2]>) -> Option<State> {
        match hop.map(|h| h.map(|ns| ns < NEAR_NS)) {
            None => Some(State::Untold),
            Some([true, true]) => Some(State::Near),
            Some([false, false]) => Some(State::Far),
            Some(_) => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Near => "near",
            State::Far => "far",
            State::Untold => "untold",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn both_hops_tell_the_state() {
        assert_eq!(State::of(Some([35.0, 40.0])), Some(State::Near));
        assert_eq!(State::of(Some([215.0, 150.0])), Some(State::Far));
        assert_eq!(State::of(Some([35.0, 215.0])), None);
        assert_eq!(State::of(Some([215.0, 35.0])), None);
        assert_eq!(State::of(None), Some(State::Untold));
    }
}
