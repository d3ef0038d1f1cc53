//! What follows for a job from what its ranks have done: which of them was the first that failed, and whose end is the effect of another's.

use super::*;
use crate::launch::exit_code;

/// A process that is killed lets go of its connections before its parent hears of its end: so much before, on a machine with much to do.
const LATE: Duration = Duration::from_millis(500);

impl Supervisor {
    /// What follows for the others from what ranks have done.
    pub(super) fn judge(&mut self, news: Vec<News>) {
        let mut failures = Vec::new();
        for news in news {
            match news {
                News::Abort(rank, code) => {
                    self.report(format!("{} aborted the job with exit code {code}", self.who(rank)));
                    self.aborted |= self.code.is_none();
                    self.code.get_or_insert(exit_code(code) & 0xff);
                    self.end(Some(rank));
                }
                News::Garbage(rank, what) => {
                    let who = self.who(rank);
                    self.report(format!("{who} sent {what} on its PMI descriptor, which is not PMI-1; it was cut off"));
                }
                News::Ended(rank, end, badly) => {
                    self.members[rank as usize].end = Some(end);
                    if end != End::Exit(0) || badly {
                        failures.push((rank, end));
                    }
                }
            }
        }
        // Of several that ended at once, the one that died of a signal is the cause and the others' exits are the effect.
        failures.sort_by_key(|(_, end)| matches!(end, End::Exit(_)));
        for (rank, end) in failures {
            // What dies when it was told to is no news.
            let told = self.ending != Ending::No;
            let as_told = match end {
                End::Exit(_) | End::Signal { signal: libc::SIGTERM, .. } => told,
                End::Signal { signal: libc::SIGKILL, .. } => self.ending == Ending::Killed || told && self.aborted,
                End::Signal { .. } => false,
            };
            if as_told {
                continue;
            }
            let code = if end == End::Exit(0) { 1 } else { end.code() };
            let crashed = !matches!(end, End::Exit(_));
            let just_exited = self.exited.is_some_and(|at| at.elapsed() < LATE);
            if crashed && (told && self.aborted || just_exited) {
                // Nobody told it to: another rank noticed that, and aborted or exited, before its end came here.
                self.code = Some(code);
                self.exited = None;
            }
            if self.code.is_none() {
                (self.code, self.exited) = (Some(code), (!crashed).then(Instant::now));
            }
            let what = if end == End::Exit(0) { "exited with code 0 without finalize".into() } else { end.to_string() };
            self.fail(&format!("{} {what}", self.who(rank)));
        }
    }
}
