//! The names that the program has given its communicators, for messages to people. Each process has its own: a name is not told to others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Bytes of a name at most.
pub const MOST: usize = 63;

static NAMES: RwLock<BTreeMap<i32, Box<str>>> = RwLock::new(BTreeMap::new());

/// A communicator in the words of messages to people: its number, and its name if it has one.
#[derive(Clone, Copy, Debug)]
pub struct Named(pub i32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match NAMES.read().unwrap_or_else(PoisonError::into_inner).get(&self.0) {
            Some(name) => write!(f, " \"{name}\""),
            None => Ok(()),
        }
    }
}

/// Gives a communicator a name; an empty one takes it away.
pub fn give(comm: i32, name: &str) {
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    match name {
        "" => drop(names.remove(&comm)),
        _ => drop(names.insert(comm, name.into())),
    }
}

/// No communicator has a name any more.
pub fn forget() {
    NAMES.write().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Its name; empty: it has none.
pub fn of(comm: i32) -> String {
    NAMES.read().unwrap_or_else(PoisonError::into_inner).get(&comm).map(|name| name.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_and_taken_away() {
        let comm = i32::MAX;
        assert_eq!(Named(comm).to_string(), comm.to_string());
        give(comm, "rows");
        assert_eq!(Named(comm).to_string(), format!("{comm} \"rows\""));
        give(comm, "columns");
        assert_eq!(of(comm), "columns");
        give(comm, "");
        assert_eq!((of(comm), Named(comm).to_string()), (String::new(), comm.to_string()));
    }
}
