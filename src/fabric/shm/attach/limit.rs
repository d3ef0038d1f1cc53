//! The limit on open descriptors, raised while a rank may meet others.

/// The limit on open files, raised as far as the process itself may: a rank holds three descriptors for each peer it knows (region, process,
/// connection; two connections, if both greeted at once). Put back when it goes, unless somebody else has changed it meanwhile.
pub(super) struct RaisedLimit {
    pub(super) before: libc::rlim_t,
    pub(super) raised: libc::rlim_t,
}

impl RaisedLimit {
    pub(super) fn now() -> Option<libc::rlimit> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: limit is a valid rlimit.
        (unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0).then_some(limit)
    }

    pub(super) fn set(limit: libc::rlimit) -> bool {
        // SAFETY: limit is a valid rlimit. A failure leaves the limit as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0 }
    }

    pub(super) fn raise() -> Option<RaisedLimit> {
        let limit = RaisedLimit::now().filter(|l| l.rlim_cur < l.rlim_max)?;
        let (before, raised) = (limit.rlim_cur, limit.rlim_max);
        RaisedLimit::set(libc::rlimit { rlim_cur: raised, ..limit }).then_some(RaisedLimit { before, raised })
    }
}

impl Drop for RaisedLimit {
    fn drop(&mut self) {
        if let Some(limit) = RaisedLimit::now().filter(|l| l.rlim_cur == self.raised) {
            RaisedLimit::set(libc::rlimit { rlim_cur: self.before.min(limit.rlim_max), ..limit });
        }
    }
}
