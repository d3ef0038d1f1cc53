//! The limit on open descriptors, raised while a rank may meet others.

use crate::base::system::{self, set_descriptors};

/// The limit on open files, raised as far as the process itself may: a rank holds three descriptors for each peer it knows (region, process,
/// connection; two connections, if both greeted at once). Put back when it goes, unless somebody else has changed it meanwhile.
pub(super) struct RaisedLimit {
    pub(super) before: libc::rlim_t,
    pub(super) raised: libc::rlim_t,
}

impl RaisedLimit {
    pub(super) fn now() -> Option<libc::rlimit> {
        system::limit(libc::RLIMIT_NOFILE).ok()
    }

    pub(super) fn raise() -> Option<RaisedLimit> {
        let limit = RaisedLimit::now().filter(|l| l.rlim_cur < l.rlim_max)?;
        let (before, raised) = (limit.rlim_cur, limit.rlim_max);
        set_descriptors(&libc::rlimit { rlim_cur: raised, ..limit }).then_some(RaisedLimit { before, raised })
    }
}

impl Drop for RaisedLimit {
    fn drop(&mut self) {
        if let Some(limit) = RaisedLimit::now().filter(|l| l.rlim_cur == self.raised) {
            set_descriptors(&libc::rlimit { rlim_cur: self.before.min(limit.rlim_max), ..limit });
        }
    }
}
