//! This process: its place in the job, its contexts, and memory that calls use again and again.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use fmpl::base::bytes::Room;
use fmpl::base::leaked::Leaked;
use fmpl::base::unused::Unused;
use fmpl::base::values::SharedValues;

use crate::Int;
use crate::context::Context;
use crate::library::{FMPL_COMM_WORLD, fmpl};
use crate::report::{self, check};
use crate::scope::{Group, INDICES};

/// As many contexts as FMPL has communicators.
const CONTEXTS: usize = 4096;

/// This process.
pub struct Process {
    rank: AtomicI32,
    size: AtomicI32,
    joined: AtomicBool,
    spool: AtomicUsize,
    contexts: [Leaked<Context>; CONTEXTS],
    world: Leaked<Group>,
    work: Mutex<Work>,
}

static PROCESS: Process = Process {
    rank: AtomicI32::new(-1),
    size: AtomicI32::new(0),
    joined: AtomicBool::new(false),
    spool: AtomicUsize::new(0),
    contexts: [const { Leaked::none() }; CONTEXTS],
    world: Leaked::none(),
    work: Mutex::new(Work(None)),
};

/// This process.
#[inline(always)]
pub fn process() -> &'static Process {
    &PROCESS
}

/// The BLACS are for one thread of a process at a time, as the reference is: what a call frees no other call uses.
fn unused() -> Unused {
    // SAFETY: as said.
    unsafe { Unused::promised() }
}

impl Process {
    /// Its number among all processes; -1 before it has joined them.
    pub fn rank(&self) -> i32 {
        self.rank.load(Relaxed)
    }

    /// The number of processes.
    pub fn size(&self) -> i32 {
        self.size.load(Relaxed)
    }

    /// `blacs_pinfo`, `blacs_setup`: joins the job, once.
    pub fn join(&self) {
        if self.joined.load(Relaxed) {
            return;
        }
        let (mut rank, mut size) = (-1, 0);
        check(fmpl().init(INDICES), -1, "BLACS_PINFO");
        check(fmpl().comm_rank(FMPL_COMM_WORLD, &mut rank), -1, "BLACS_PINFO");
        check(fmpl().comm_size(FMPL_COMM_WORLD, &mut size), -1, "BLACS_PINFO");
        self.rank.store(rank, Relaxed);
        self.size.store(size, Relaxed);
        self.joined.store(true, Relaxed);
        self.spool.store(spool_bytes(), Relaxed);
        crate::order::register();
        drop(self.world.take(&unused()));
        self.world.put(Group::world(rank, size));
    }

    /// What each grid may spool.
    pub fn spool_bytes(&self) -> usize {
        self.spool.load(Relaxed)
    }

    /// All processes, after [`Process::join`].
    pub fn world(&self) -> &'static Group {
        match self.world.get() {
            Some(world) => world,
            None => report::fatal(-1, "BLACS_GRIDINIT/BLACS_GRIDMAP", "blacs_pinfo was not called"),
        }
    }

    /// `blacs_exit`: frees all grids; leaves the job, too, unless the program wants to go on using the message layer.
    pub fn exit(&self, go_on: bool) {
        self.contexts.iter().for_each(|context| drop(context.take(&unused())));
        if go_on || !self.joined.swap(false, Relaxed) {
            return;
        }
        *self.lock_work() = Work(None);
        if fmpl().finalize() != 0 {
            report::warn(-1, "BLACS_EXIT", fmpl().last_error());
        }
    }

    /// The context of a handle, if it is one.
    #[inline(always)]
    pub fn find(&self, handle: Int) -> Option<&'static Context> {
        self.contexts.get(usize::try_from(handle).ok()?)?.get()
    }

    /// The context of a handle; without one the job ends.
    #[inline(always)]
    pub fn context(&self, handle: Int, routine: &str) -> &'static Context {
        match self.find(handle) {
            Some(context) => context,
            None => report::fatal(handle, routine, format_args!("Invalid context handle: {handle}")),
        }
    }

    /// Takes a context in; its handle is the smallest that is free.
    pub fn keep(&self, context: Context) -> Int {
        match self.contexts.iter().position(|context| context.get().is_none()) {
            Some(free) => self.contexts[free].put(Context { handle: free as Int, ..context }).handle,
            None => {
                report::fatal(-1, "BLACS_GRIDINIT/BLACS_GRIDMAP", format_args!("all {CONTEXTS} contexts are in use"))
            }
        }
    }

    /// Gives a context up.
    pub fn drop(&self, handle: Int) {
        self.context(handle, "BLACS_GRIDEXIT");
        drop(self.contexts[handle as usize].take(&unused()));
    }

    fn lock_work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Memory for a combine, of that many bytes, kept from call to call; peers can write there directly.
    pub fn work(&self, bytes: usize) -> MutexGuard<'_, Work> {
        let mut work = self.lock_work();
        if work.room().len() < bytes {
            // What there was is given back first.
            *work = Work(None);
            *work = Work::new(bytes);
        }
        work
    }
}

/// Memory of `fmpl_alloc`, or none.
pub struct Work(Option<SharedValues<u8>>);

impl Work {
    fn new(bytes: usize) -> Work {
        let Some(at) = NonNull::new(fmpl().alloc(bytes).cast()) else {
            report::fatal(-1, "BLACS combine", fmpl().last_error())
        };
        // SAFETY: so many bytes, whatever is in them, until they are given back below.
        Work(Some(unsafe { SharedValues::new(at, bytes) }))
    }

    /// All of it.
    pub fn room(&self) -> Room<'_> {
        self.0.as_ref().map_or(Room::none(), SharedValues::room)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(values) = &self.0 {
            fmpl().free(values.as_ptr().cast());
        }
    }
}

/// FMPL has checked the environment by now.
fn spool_bytes() -> usize {
    fmpl::base::config::Config::from_environment().unwrap_or_default().blacs_spool_bytes
}
