//! What a process tells its peers at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{FIRST_PATIENCE, Fabric};
use crate::base::clock::now_ns;
use crate::fabric::network::hello::Kind;
use crate::fabric::network::link::Link;

impl Fabric {
    /// All that peers wait for is done: from here on nobody is waited for beyond this time, since a process that is gone takes nothing, and not
    /// every network tells that it is gone.
    pub fn ends_by(&self, until_ns: u64) {
        self.shared.ends_ns.store(until_ns, Ordering::Release);
    }

    /// Tells the peers that this process has left. With those that have no connection that could be seen to end, until they know or
    /// the time.
    pub fn leave(&self, until_ns: u64) {
        let links = self.links();
        let asks = |link: &&Arc<Link>| link.failure().is_none() && !link.has_left() && link.card.get().is_some();
        let tell = |link: &Arc<Link>| {
            let _ = self.shared.send_to(link, &self.shared.hello_to(Kind::Leave, link));
        };
        links.iter().filter(asks).for_each(tell);
        loop {
            let left: Vec<&Arc<Link>> = links.iter().filter(asks).filter(|l| !l.is_up() && !l.knows_end()).collect();
            let packed = self.shared.leaves_packed(until_ns);
            if left.is_empty() && !packed || now_ns() >= until_ns {
                return;
            }
            let links = self.shared.lock();
            drop(self.shared.answered.wait_timeout(links, FIRST_PATIENCE));
            left.into_iter().filter(|l| !l.knows_end()).for_each(tell);
        }
    }
}
