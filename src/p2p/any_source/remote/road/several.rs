//! One short message to several rings at once: all their answers are waited for together.

use super::*;
use crate::fabric::network::bounce::BOUNCE_BYTES;
use crate::fabric::network::device::RECORD_MOST;

/// What a request to a ring has of a bounce buffer: the counters, then the record of a slot.
const SHARE: usize = (SLOTS_AT + SLOT + 8).next_multiple_of(64);
/// Behind these, where appending says what the counter was.
const OLD_AT: usize = SLOTS_AT + SLOT;
/// A message that goes to several rings at once: by which part of the bounce buffer, and the request under way.
struct Going<'a> {
    n: usize,
    road: &'a RemoteRoad,
    known: MutexGuard<'a, Known>,
    at: usize,
    /// Under this ticket, by what is under way; `None`: that draws one.
    under: Option<u64>,
    over: u64,
}

/// Puts a message of up to [`AREA_BYTES`] bytes into a slot of each of these rings: in a way there and back for all of them where the network can
/// append, otherwise in two. Not into those that are not known to have room, that another thread is at, or that others have sent to: which it
/// is in is said in `placed`.
pub fn place_at_all(ep: &Endpoint, roads: &[Option<&RemoteRoad>], data: Run, placed: &mut [bool]) {
    let Some(Ok(bounce)) = roads.iter().flatten().next().map(|road| road.remote().fabric().bounce()) else { return };
    let (what, fill) = ((Kind::Area, data.len() as u32), |to: &mut [u64]| {
        Cursor::new(data.into(), 0).gather_into(to);
        data.len()
    });
    let mut going: Vec<Going<'_>> = Vec::new();
    for (n, road) in roads.iter().enumerate().filter_map(|(n, road)| road.map(|road| (n, road))) {
        let at = going.len() * SHARE;
        let Ok(known) = road.state.try_lock() else { continue };
        if at + SHARE > BOUNCE_BYTES || known.held.is_some() || known.sent >= known.room() || road.gone().is_some() {
            continue;
        }
        road.draws(ep);
        let (under, posted) = if road.appends(data.len()) {
            (Some(known.sent), road.append(ep, &known, (&bounce, at), what, &fill))
        } else {
            let (remote, counters) = road.counters();
            (None, bounce.post_draw(&remote.link, at, counters))
        };
        match posted {
            Ok(over) => going.push(Going { n, road, known, at, under, over }),
            Err(_) => ep.any_source.remote_stakes.remove(road.stake(None)),
        }
    }
    // All are waited for, whatever comes of one: the buffer is theirs so long.
    let mut out = Vec::with_capacity(going.len());
    for mut one in going {
        if one.under.is_some() {
            out.push(one);
            continue;
        }
        let waited = one.road.counters().0.link.wait(one.over);
        let drawn = one.road.has_drawn(ep, &mut one.known, waited.map(|()| bounce.word(one.at)));
        if let Ok(ticket) = drawn
            && ticket < one.known.room()
            && let Ok(over) = one.road.post(ep, &mut one.known, (&bounce, one.at), ticket, what, &fill)
        {
            one.known.pause_ns = 0;
            out.push(Going { over, ..one });
        }
    }
    for mut one in out {
        let published = one.road.has_published(&mut one.known, (&bounce, one.at), one.over);
        // What is in its slot is sent, whoever has failed since; and that is for the wait for its end to find.
        placed[one.n] = match one.under {
            Some(ticket) => published.is_ok() && bounce.word(one.at + OLD_AT) == ticket,
            None => true,
        };
        if one.under.is_some() {
            ep.any_source.remote_stakes.remove(one.road.stake(None));
        }
    }
}

impl RemoteRoad {
    /// Posts the record under the ticket that is given out next, as far as is known, and draws that with it; and a look at the counters. What is then
    /// waited for.
    fn append(
        &self,
        ep: &Endpoint,
        known: &Known,
        (bounce, at): (&Bounce<'_>, usize),
        what: (Kind, u32),
        fill: &dyn Fn(&mut [u64]) -> usize,
    ) -> Result<u64> {
        let remote = self.remote();
        let (len, slot) = self.compose(ep, (bounce, at), known.sent, what, fill);
        let places = (at + OLD_AT, at + SLOTS_AT, len);
        bounce.post_append(&remote.link, (known.sent, slot as u32), places, self.ring)?;
        bounce.post(&remote.link, (false, true), at, SLOTS_AT, self.ring)
    }

    /// Can it append a message of so many bytes?
    fn appends(&self, len: usize) -> bool {
        self.host.is_none() && HEAD + len <= RECORD_MOST && self.remote().link.limits().appends
    }
}
