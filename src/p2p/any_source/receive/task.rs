//! A message of any source or a multicast, whichever comes first: what a worker waits for that gets tasks of its own, and is a member of
//! groups that it does not know beforehand (*dynamic multicast*, section 4.5).
//!
//! The two come in rings of their own, so one call has both claimed, looks at them in turn, and sleeps on both.

use super::*;
use crate::p2p::any_source::multicast::{self, News};
use crate::p2p::context::Context;

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// A message of any source, on the index.
    Message(Arrived),
    /// A multicast; its source is the master.
    Multicast(Arrived),
}

/// Blocking receive of the next message on an index, whoever sends it, or of the next multicast of which this rank is a member. Longer ones are
/// cut: see [`Arrived::whole`].
///
/// `Busy`: another thread receives one of them, or a request for one is not completed. `Peer`: as for [`recv_any`].
pub fn recv_any_or_mcast(comm: i32, to: Run, index: i32) -> Result<Came> {
    let ep = endpoint()?;
    check_buffer(ep, to)?;
    let inc = find(ep, comm, index)?;
    let (context, news) = multicast::incoming(ep, comm)?;
    let _claims = (inc.claim()?, news.claim()?);
    if inc.pending.get().is_some() {
        return Err(inc.busy_error("a request there is not completed"));
    }
    if news.pending.get().is_some() {
        return Err(news.busy_error("a request for the next multicast is not completed"));
    }
    let both = Both { ep, context, inc, news };
    for _ in 0..patience() {
        if let Some(first) = both.look(to)? {
            return both.finish(first, to);
        }
        between_looks();
    }
    let first = NoWayOut::during("a receive of any source", || both.until(to))?;
    both.finish(first, to)
}

/// What has come first.
enum First {
    Message(Arrived),
    /// This rank is told of a multicast.
    News(News),
}

/// The two rings.
struct Both<'a> {
    ep: &'static Endpoint,
    context: &'a Context,
    inc: &'a Incoming,
    news: &'a Incoming,
}

impl Both<'_> {
    /// Takes what is there. Where both have something each has its turn.
    fn look(&self, to: Run) -> Result<Option<First>> {
        // A message of which a part is in the buffer is taken to its end.
        let news_first = self.inc.news_first.load(Ordering::Relaxed) != 0 && !self.inc.is_underway(self.ep);
        for news in [news_first, !news_first] {
            let first = if news {
                if self.inc.is_underway(self.ep) {
                    continue;
                }
                multicast::take_news(self.ep, self.news)?.map(First::News)
            } else {
                self.inc.take(self.ep, to)?.map(First::Message)
            };
            if first.is_some() {
                self.inc.news_first.store(!news as u32, Ordering::Relaxed);
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// A multicast is followed: its data is fetched, and its other members are told.
    fn finish(&self, first: First, to: Run) -> Result<Came> {
        match first {
            First::Message(arrived) => Ok(Came::Message(arrived)),
            First::News(news) => {
                multicast::follow_news(self.ep, self.context, self.news, news, to).map(Came::Multicast)
            }
        }
    }

    fn until(&self, to: Run) -> Result<First> {
        let rings = [self.inc, self.news];
        rings.iter().for_each(|ring| ring.run_dry(true));
        let scenes = rings.map(|inc| Waiting::new(self.ep, inc));
        let is_nobody = || self.inc.domain.group.size() == 1 && self.ep.single_threaded();
        if is_nobody() && !rings.iter().any(|ring| ring.is_ready(self.ep)) {
            return Err(self.inc.nobody(self.ep));
        }
        let scene = InBoth(&scenes);
        let mut waiter = Waiter::new();
        loop {
            if let Some(first) = self.look(to)? {
                return Ok(first);
            }
            if waiter.spin() {
                continue;
            }
            rings.iter().for_each(|ring| ring.run_dry(false));
            if let Err(e) = waiter.slow(&scene) {
                // A message may have come since. What was found is told all the same, and once, for both rings.
                let found = scenes.iter().find_map(|scene| Some((scene.inc, scene.found.take()?)));
                let Some((ring, death)) = found else { return Err(e) };
                let other = if std::ptr::eq(ring, self.inc) { self.news } else { self.inc };
                other.was_told(&death);
                return Err(ring.tell(self.ep, death));
            }
        }
    }
}

/// A wait on both rings.
struct InBoth<'a>(&'a [Waiting<'a>; 2]);

impl Scene for InBoth<'_> {
    fn board(&self) -> &'static Board {
        self.0[0].board()
    }
    fn is_ordered(&self) -> bool {
        self.0[0].is_ordered()
    }
    fn bits(&self) -> u32 {
        self.0[0].bits() | self.0[1].bits()
    }
    fn fall_asleep(&self) -> bool {
        // Both, whatever the first says.
        let [first, second] = self.0.each_ref().map(|scene| scene.fall_asleep());
        first && second
    }
    fn wake_up(&self) {
        self.0.iter().for_each(Waiting::wake_up);
    }
    fn ready(&self) -> bool {
        self.0.iter().any(Waiting::ready)
    }
    fn meanwhile(&self) -> bool {
        let [first, second] = self.0.each_ref().map(|scene| scene.meanwhile());
        first || second
    }
    fn gone(&self) -> Option<Error> {
        self.0.iter().find_map(Waiting::gone)
    }
    fn may_be_left(&self) -> bool {
        true
    }
    fn waits(&self) -> Waits {
        self.0[0].waits()
    }
}
