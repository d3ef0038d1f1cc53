//! Claims of peers on other nodes, of which a rank may meet millions: kept only as long as they are held. A message there takes longer than a lock.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use super::{Direction, busy, busy_any};
use crate::base::error::Result;
use crate::base::lock::lock;

/// Peers are spread over so many locks.
const ROWS: usize = 16;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Elsewhere {
    rows: [Mutex<Row>; ROWS],
}

#[derive(Default)]
struct Row {
    held: HashSet<Key>,
    /// How many receives of each peer are among them.
    receives: HashMap<u32, u32>,
}

/// What is claimed: the peer, the direction, the index or all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    peer: u32,
    receives: bool,
    index: Option<u32>,
}

/// A claim, until it is dropped.
pub(super) struct Held<'c> {
    row: &'c Mutex<Row>,
    key: Key,
}

impl Elsewhere {
    fn row(&self, peer: u32) -> &Mutex<Row> {
        &self.rows[peer as usize % ROWS]
    }

    fn held(&self, key: Key) -> Held<'_> {
        Held { row: self.row(key.peer), key }
    }

    /// Claims one direction of (peer, index).
    pub fn claim(&self, direction: Direction, peer: u32, index: u32) -> Result<Held<'_>> {
        let key = Key { peer, receives: direction == Direction::Receive, index: Some(index) };
        let mut all = lock(self.row(peer));
        if key.receives && all.held.contains(&Key { index: None, ..key }) {
            return Err(busy_any(peer as i32));
        }
        all.take(key).then(|| self.held(key)).ok_or_else(|| busy(direction, peer as i32, index as i32))
    }

    /// Claims all receives from a peer.
    pub fn claim_any(&self, peer: u32) -> Result<Held<'_>> {
        let key = Key { peer, receives: true, index: None };
        let mut all = lock(self.row(peer));
        let may = !all.receives.contains_key(&peer) && all.take(key);
        may.then(|| self.held(key)).ok_or_else(|| busy_any(peer as i32))
    }

    /// Does anybody send?
    pub fn sends(&self) -> bool {
        self.rows.iter().any(|row| lock(row).held.iter().any(|key| !key.receives))
    }
}

impl Row {
    /// `false`: it is held.
    fn take(&mut self, key: Key) -> bool {
        let new = self.held.insert(key);
        if new && key.receives {
            *self.receives.entry(key.peer).or_default() += 1;
        }
        new
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut row = lock(self.row);
        row.held.remove(&self.key);
        if self.key.receives
            && let Some(n) = row.receives.get_mut(&self.key.peer)
        {
            *n -= 1;
            if *n == 0 {
                row.receives.remove(&self.key.peer);
            }
        }
        if row.held.is_empty() && row.held.capacity() > ROWS {
            *row = Row::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Code;

    #[test]
    fn what_is_held_excludes_others_and_takes_no_memory_afterwards() {
        let all = Elsewhere::default();
        let code = |c: Result<Held<'_>>| c.err().map(|e| e.code());
        for peer in 0..10_000 {
            let sends = all.claim(Direction::Send, peer, 7).unwrap();
            assert!(all.sends());
            assert_eq!(code(all.claim(Direction::Send, peer, 7)), Some(Code::Busy));
            let (receives, _other) = (all.claim(Direction::Receive, peer, 7), all.claim(Direction::Receive, peer, 8));
            assert_eq!(code(all.claim_any(peer)), Some(Code::Busy));
            drop((receives, _other));
            let any = all.claim_any(peer).unwrap();
            assert_eq!(code(all.claim_any(peer)), Some(Code::Busy));
            assert_eq!(code(all.claim(Direction::Receive, peer, 8)), Some(Code::Busy));
            assert_eq!(code(all.claim(Direction::Receive, peer + 1, 8)), None);
            drop((sends, any));
            assert!(!all.sends());
        }
        let many: Vec<_> = (0..10_000).map(|peer| all.claim(Direction::Receive, peer, 0).unwrap()).collect();
        assert_eq!(many.len(), 10_000);
        drop(many);
        assert!(all.rows.iter().all(|row| lock(row).held.capacity() <= ROWS && lock(row).receives.capacity() <= ROWS));
    }
}
