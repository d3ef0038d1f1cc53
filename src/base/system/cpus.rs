//! Sets of processors.

use core::ffi::c_int;
use std::io::{Error, Result};

/// A set of CPUs as the system calls take it.
#[derive(Clone)]
pub struct CpuSet(Vec<libc::c_ulong>);

const WORD: usize = libc::c_ulong::BITS as usize;

impl CpuSet {
    /// The CPUs that this process may use.
    pub fn allowed() -> Result<CpuSet> {
        CpuSet::of(0)
    }

    /// The CPUs that a process may use; 0: this one.
    pub fn of(pid: libc::pid_t) -> Result<CpuSet> {
        let mut words = 1024 / WORD;
        loop {
            let mut set = CpuSet(vec![0; words]);
            // SAFETY: the buffer is as long as said; the kernel refuses one that is too short for it.
            if unsafe { libc::sched_getaffinity(pid, words * WORD / 8, set.0.as_mut_ptr().cast()) } >= 0 {
                return Ok(set);
            }
            let e = Error::last_os_error();
            if e.raw_os_error() != Some(libc::EINVAL) || words > 1 << 16 {
                return Err(e);
            }
            words *= 2;
        }
    }

    /// Those of these numbers.
    pub fn of_cpus(cpus: impl IntoIterator<Item = usize>) -> CpuSet {
        let mut words = vec![0; 1024 / WORD];
        for cpu in cpus {
            words.resize(words.len().max(cpu / WORD + 1), 0);
            words[cpu / WORD] |= 1 << (cpu % WORD);
        }
        CpuSet(words)
    }

    /// Is it in the set?
    pub fn has(&self, cpu: usize) -> bool {
        self.0.get(cpu / WORD).is_some_and(|w| w >> (cpu % WORD) & 1 == 1)
    }

    /// The numbers of its CPUs, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        (0..self.0.len() * WORD).filter(|c| self.has(*c)).collect()
    }

    /// Makes it the set of the calling thread and of what it executes. Safe between fork and exec.
    pub fn apply(&self) -> Result<()> {
        // SAFETY: the buffer is as long as said.
        match unsafe { libc::sched_setaffinity(0, self.0.len() * WORD / 8, self.0.as_ptr().cast()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

/// How the system schedules the calling thread: a policy (`SCHED_FIFO`), and a priority there.
pub fn schedule(policy: c_int, priority: c_int) -> Result<()> {
    // SAFETY: reads the parameters.
    match unsafe { libc::sched_setscheduler(0, policy, &libc::sched_param { sched_priority: priority }) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}
