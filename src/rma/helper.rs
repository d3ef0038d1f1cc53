//! The helper: a thread that serves remote commands and moves this rank's own operations on while its program computes.
//!
//! There is none until it is needed: when memory is registered that others cannot do everything to by themselves, or when an operation has
//! to wait for something. It looks around for a moment after the last thing it found, and then sleeps until it is rung for. While a
//! thread of the program waits in the library, that one does the helper's work, and the helper sleeps.

use super::Rma;
use crate::base::atomics::{Ordering, fence, spin_loop};
use crate::base::error::{Code, Result, error};
use crate::base::thread;
use crate::wait::doorbell;

/// The thread's stack: copies through it take 16 KiB.
const STACK: usize = 256 << 10;
/// Looks before it yields the core, when each rank has one.
const LOOKS: u32 = 300;
/// Looks before it sleeps: while the program computes, and while it waits for something itself and so leaves the core to others.
const YIELDS: [u32; 2] = [20, 200];
/// Longest sleep: who rings may have died before.
const SLEEP_NS: u64 = 250_000_000;
/// Sleep between two attempts at what only time brings.
const RETRY_NS: u64 = 50_000;

impl Rma {
    /// Starts the helper, unless there is one.
    pub(super) fn start_helper(&'static self) -> Result<()> {
        if self.has_helper.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut helper = self.helper.lock().unwrap_or_else(|e| e.into_inner());
        if helper.is_none() {
            let thread = thread::spawn("fmpl-rma", STACK, move || self.help())
                .map_err(|e| error!(Code::System, "rank {}: starting the helper of global memory: {e}", self.rank()))?;
            *helper = Some(thread);
            self.has_helper.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Ends the helper.
    pub(super) fn stop_helper(&self) {
        self.stop.store(true, Ordering::Release);
        doorbell::ring(&self.own.header().bell, u32::MAX);
        if let Some(thread) = self.helper.lock().unwrap_or_else(|e| e.into_inner()).take() {
            let _ = thread.join();
        }
        self.has_helper.store(false, Ordering::Release);
        self.stop.store(false, Ordering::Release);
    }

    /// The helper looks around, if it sleeps.
    pub(super) fn wake_helper(&self) {
        fence(Ordering::SeqCst);
        if self.own.header().helper_asleep.load(Ordering::Relaxed) != 0 {
            doorbell::ring(&self.own.header().bell, u32::MAX);
        }
    }

    fn help(&'static self) {
        let header = self.own.header();
        // `eager`: a copy was made for somebody, and the next one may come within moments.
        let (mut idle, mut eager) = (0, false);
        while !self.stop.load(Ordering::Acquire) {
            let mut attended = header.attended.load(Ordering::Relaxed) != 0;
            if !attended {
                self.own.look_out(true);
                let made = self.run_delegated();
                eager |= made;
                if made || self.serve() | self.drive() {
                    self.views.sweep(&self.own);
                    idle = 0;
                    continue;
                }
            }
            idle += 1;
            if !attended && (eager || !self.ep.crowded) && idle < LOOKS {
                spin_loop();
                continue;
            }
            let yields = YIELDS[usize::from(self.ep.board().is_waiting())];
            if !attended && idle < LOOKS + yields {
                idle = idle.max(LOOKS);
                std::thread::yield_now();
                continue;
            }
            if !attended {
                self.own.look_out(false);
                self.run_delegated();
                self.forget_delegated();
            }
            (eager, attended) = (false, false);
            self.own.sleep(|| {
                attended = header.attended.load(Ordering::Relaxed) != 0;
                let again = self.must_try_again();
                let sleeps = attended || again || !self.has_news() && !self.has_commands();
                match !self.stop.load(Ordering::Acquire) && sleeps {
                    false => 0,
                    true if again && !attended => RETRY_NS,
                    true => SLEEP_NS,
                }
            });
            idle = if attended { LOOKS + YIELDS[1] } else { 0 };
        }
    }
}
