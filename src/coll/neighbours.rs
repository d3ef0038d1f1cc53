//! Exchanges with the neighbours on a grid: along each dimension, first all to the rank before them, then all to the one behind, by messages.
//!
//! Two neighbours may be the same rank, or this one; each has its own place all the same.

use super::messages::Party;
use super::team::Team;
use crate::base::bytes::{Bytes, Room};
use crate::base::error::Result;
use crate::wait::Operation;

/// Blocks of `size` bytes: what goes to each neighbour, all the same block if there is `one`, and room for what comes from each.
pub(super) struct Halo<'a> {
    pub neighbours: Vec<Option<u32>>,
    pub give: Bytes<'a>,
    pub one: bool,
    pub take: Room<'a>,
    pub size: usize,
}

impl<'a> Halo<'a> {
    pub fn operation(&self) -> Operation {
        if self.one { Operation::NeighbourAllgather } else { Operation::NeighbourAlltoall }
    }

    fn to(&self, k: usize) -> Bytes<'a> {
        self.give.part(if self.one { 0 } else { k * self.size }, self.size)
    }

    pub async fn exchange(&self, team: &Team) -> Result<()> {
        if team.span.is_some() {
            team.name(self.operation(), self.size);
        } else {
            let arena = team.arena()?;
            team.enter(self.operation(), self.size);
            team.tell_call(arena);
        }
        let p = Party::all(team);
        for (k, to) in self.neighbours.iter().enumerate() {
            // Who sends to the one before it gets what the one behind it sends, and the other way round.
            let (from, to) = (self.neighbours[k ^ 1].map(|r| r as usize), to.map(|r| r as usize));
            let room = self.take.part((k ^ 1) * self.size, self.size);
            if to == Some(p.me) && from == Some(p.me) {
                room.copy_from(self.to(k));
                continue;
            }
            p.swap_some(to, self.to(k), from, room).await?;
        }
        Ok(())
    }
}
