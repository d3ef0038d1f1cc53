//! The connections that wait for a place of one kind, in the order in which they came. They may be thousands, and each asks at each look whether it is
//! its turn: so nobody goes through them, but for the first. Whoever waits no more stays where it is, a name without meaning, until it is the first.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::super::handshake::State;
use super::super::link::Link;
use super::super::room::Which;

#[derive(Default)]
pub(in crate::fabric::network) struct Line {
    which: usize,
    /// Each with its number, which only those that wait have themselves.
    waiting: VecDeque<(u64, Weak<Link>)>,
    /// The number of the last that came.
    last: u64,
}

impl Line {
    pub fn new(which: Which) -> Line {
        Line { which: which as usize, ..Line::default() }
    }

    /// This one waits, from now on if it has not before. How many may be before it; of those at the front nobody who waits no more.
    pub fn joins(&mut self, this: &Link, itself: impl FnOnce() -> Option<Arc<Link>>) -> Option<u64> {
        if this.number_in_line(self.which) == 0 {
            let itself = itself().filter(|link| std::ptr::eq(&**link, this))?;
            self.last += 1;
            self.waiting.push_back((self.last, Arc::downgrade(&itself)));
            this.is_in_line(self.which, self.last);
        }
        let first = self.first(this)?;
        Some(this.number_in_line(self.which).saturating_sub(first))
    }

    /// The first one has its place.
    pub fn first_has_it(&mut self) {
        if let Some((number, link)) = self.waiting.pop_front()
            && let Some(link) = link.upgrade()
        {
            link.left_line(self.which, number);
        }
    }

    /// Does another one wait than this, which does not?
    pub fn has_others(&mut self, this: &Link) -> bool {
        this.leaves_line(self.which);
        self.first(this).is_some()
    }

    /// The number of the first that waits.
    fn first(&mut self, this: &Link) -> Option<u64> {
        loop {
            let (number, link) = self.waiting.front()?;
            let waits = |link: &Link| {
                link.number_in_line(self.which) == *number && (std::ptr::eq(link, this) || is_about_to_take(link))
            };
            if link.upgrade().is_some_and(|link| waits(&link)) {
                return Some(*number);
            }
            self.first_has_it();
        }
    }
}

/// Does it take its place when it looks next?
fn is_about_to_take(link: &Link) -> bool {
    !link.has_ended()
        && !link.is_unheard()
        && link.try_lock().is_none_or(|posted| posted.hand.state() == State::Reserving)
}
