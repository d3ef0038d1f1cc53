//! Barrier: who comes writes how often it has come, and waits until all others have come as often.
//!
//! *Flat*: everybody looks at everybody. Eight members' words share a line, so that two members meet over one line, and of many
//! members on few cores each needs to run once. *Groups*: the first member of eight looks at its group, then at the other
//! groups, and lets its own go.

use super::arena::{Arena, GROUP};
use super::team::{Team, next};
use crate::base::atomics::Ordering;
use crate::base::config::BarrierWay;
use crate::base::error::Result;
use crate::wait::Operation;

/// One barrier.
#[inline]
pub(super) async fn barrier(team: &Team) -> Result<()> {
    let arena = team.arena()?;
    team.enter(Operation::Barrier, 0);
    let number = next(&team.state.barriers);
    if team.choices.barrier == BarrierWay::Groups {
        groups(team, arena, number).await
    } else {
        flat(team, arena, number).await
    }
}

#[inline]
async fn flat(team: &Team, arena: &Arena, number: u64) -> Result<()> {
    // SYNC POINT: pairs with the acquire in `Until`: what came before this barrier comes before what follows it elsewhere.
    arena.arrive(team.me).store(number, Ordering::Release);
    team.wake(arena);
    for member in 0..team.n {
        if member != team.me {
            team.until(arena.arrive(member), number, member).await?;
        }
    }
    Ok(())
}

async fn groups(team: &Team, arena: &Arena, number: u64) -> Result<()> {
    let (group, first) = (team.me / GROUP, team.me / GROUP * GROUP);
    arena.arrive(team.me).store(number, Ordering::Release);
    team.wake(arena);
    if team.me != first {
        return team.until(arena.release(group), number, first).await;
    }
    for member in first + 1..(first + GROUP).min(team.n) {
        team.until(arena.arrive(member), number, member).await?;
    }
    arena.group(group).store(number, Ordering::Release);
    team.wake(arena);
    for other in 0..team.n.div_ceil(GROUP) {
        if other != group {
            team.until(arena.group(other), number, other * GROUP).await?;
        }
    }
    arena.release(group).store(number, Ordering::Release);
    team.wake(arena);
    Ok(())
}
