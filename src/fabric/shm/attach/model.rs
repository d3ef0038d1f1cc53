//! A rank of a model. No thread of its own runs: the models' do what the service thread does when the kernel tells it something.

use super::*;

impl Attach {
    /// As [`Attach::start`]; contacts are open. `answers`: the peer that this rank greets, unless that has ended.
    pub fn in_model(
        region: Arc<Region>,
        on_death: impl Fn(u32) + Send + Sync + 'static,
        answers: impl Fn(u32) -> Option<Arc<Peer>> + Send + Sync + 'static,
    ) -> Result<Attach> {
        let (shared, card) = Shared::new(region, Options { cma: true }, on_death, |_| ())?;
        let _ = shared.answers.set(Box::new(answers));
        let attach = Attach { shared, card, thread: Mutex::new(None), pid: std::process::id(), _raised: None };
        crate::base::shadow::share_lock(&attach.shared.installing);
        attach.shared.peers.all().iter().for_each(|(_, peer)| peer.in_model());
        attach.shared.service.in_model();
        attach.open(&Key::of(&[0; 16]))?;
        Ok(attach)
    }

    /// At the beginning of an execution: nobody is known.
    pub fn renew(&self) {
        self.shared.born_dead.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The kernel has news for the service thread: these bits.
    pub fn tell(&self, news: u32) {
        self.shared.service.tell(news);
    }

    /// Waits for other news than these; all there are.
    pub fn news(&self, seen: u32) -> u32 {
        self.shared.service.news(seen)
    }

    /// A peer has greeted: what the service thread does then.
    pub fn is_greeted(&self, by: Arc<Peer>) {
        assert!(self.shared.install(by).is_ok(), "a model watches nobody");
    }

    /// The peers that are watched since this was asked last. (A model has no process to watch, which is what a rank finds whose peer has
    /// ended before a descriptor of its process could be had.)
    pub fn newly_watched(&self) -> Vec<u32> {
        std::mem::take(&mut *self.shared.born_dead.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A peer that is watched has ended: what the service thread does then.
    pub fn hears_of_the_end(&self, rank: u32) {
        self.shared.announce_death(rank);
    }
}
