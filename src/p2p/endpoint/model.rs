//! A rank of a model: an endpoint without a launcher; how two of them meet, and how one hears that the other has died.

use super::*;
use crate::base::shadow::{share, share_lock};

/// News for the thread that serves a rank: the other has greeted.
pub const GREETED: u32 = 1;
/// The other has ended.
pub const ENDED: u32 = 2;
/// The rank itself is over.
pub const OVER: u32 = 4;

impl Endpoint {
    /// A rank of a model, which has no launcher and whose lanes are put in by hand.
    pub fn in_model(rank: u32, size: u32, config: Config) -> Result<Endpoint> {
        Endpoint::bare(rank, size, config, Launch::find()?)
    }

    /// From now on this rank is to meet the other one while the threads of the model run, and hears when that dies. `answers`: see
    /// [`Attach::in_model`].
    pub fn meets_in_model(
        &'static self,
        answers: impl Fn(u32) -> Option<Arc<Peer>> + Send + Sync + 'static,
    ) -> Result<()> {
        let attach = Attach::in_model(self.region.clone(), self.hears_of_deaths(), answers)?;
        self.launch.put(&card_key(self.rank), &attach.card())?;
        let _ = self.attach.set(attach);
        for (_, dead) in self.dead.all() {
            share((&raw const *dead).cast(), size_of::<AtomicBool>());
        }
        share((&raw const self.deaths).cast(), size_of::<AtomicU32>());
        share_lock(&self.bound);
        self.lanes.in_model();
        Ok(())
    }

    /// Where this rank tells of its part in communicators, as its peer sees it: of few units.
    pub fn lives_in_model(&self) -> Mapping {
        share(self.lives.as_ptr(), 64);
        self.lives.view()
    }

    /// What the launcher says of another rank.
    pub fn is_told_of(&self, other: &Endpoint) -> Result<()> {
        self.launch.put(&card_key(other.rank), &other.launch.get(other.rank, &card_key(other.rank))?)
    }

    /// At the beginning of an execution: nobody is known.
    pub fn renew(&self) {
        self.waiting_sends.renew();
        if let Some(attach) = self.attach.get() {
            attach.renew();
            self.lanes.renew();
        }
    }

    /// The kernel has news for the thread that serves this rank.
    pub fn tell(&self, news: u32) {
        if let Some(attach) = self.attach.get() {
            attach.tell(news);
        }
    }

    /// A peer has greeted.
    pub fn knows_in_model(&self, peer: &Arc<Peer>) {
        if let Some(attach) = self.attach.get() {
            attach.is_greeted(peer.clone());
        }
    }

    /// A peer that has greeted dies.
    pub fn hears_in_model(&self, peer: &Arc<Peer>) {
        self.knows_in_model(peer);
        if let Some(attach) = self.attach.get() {
            attach.hears_of_the_end(peer.rank);
        }
    }

    /// What the service thread does, until the rank is over. `peer`: the other one; `greeted` is called when that one is known.
    pub fn serve_in_model(&self, peer: &Arc<Peer>, greeted: impl Fn()) {
        let Some(attach) = self.attach.get() else { return };
        let (mut seen, mut watched, mut told) = (0, false, false);
        while seen & OVER == 0 {
            let news = attach.news(seen);
            if news & !seen & GREETED != 0 {
                attach.is_greeted(peer.clone());
                greeted();
            }
            watched |= !attach.newly_watched().is_empty();
            if watched && news & ENDED != 0 && !told {
                attach.hears_of_the_end(peer.rank);
                told = true;
            }
            seen = news;
        }
    }
}
