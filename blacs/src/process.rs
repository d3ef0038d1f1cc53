//! This process: its place in the job, its contexts, and memory that calls use again and again.

use core::cell::{Cell, UnsafeCell};

use crate::Int;
use crate::context::Context;
use crate::library::{FMPL_COMM_WORLD, fmpl, iovec, last_error};
use crate::report::{self, check};
use crate::scope::{Group, INDICES};

/// This process.
pub struct Process {
    rank: Cell<i32>,
    size: Cell<i32>,
    joined: Cell<bool>,
    spool: Cell<usize>,
    contexts: UnsafeCell<Vec<Option<Box<Context>>>>,
    world: UnsafeCell<Option<Group>>,
    list: Cell<Vec<iovec>>,
    work: Cell<(*mut u8, usize)>,
}

// SAFETY: the BLACS are for one thread of a process at a time, as the reference is; a program that changes threads orders their calls.
unsafe impl Sync for Process {}

static PROCESS: Process = Process {
    rank: Cell::new(-1),
    size: Cell::new(0),
    joined: Cell::new(false),
    spool: Cell::new(0),
    contexts: UnsafeCell::new(Vec::new()),
    world: UnsafeCell::new(None),
    list: Cell::new(Vec::new()),
    work: Cell::new((core::ptr::null_mut(), 0)),
};

/// This process.
#[inline(always)]
pub fn process() -> &'static Process {
    &PROCESS
}

impl Process {
    /// Its number among all processes; -1 before it has joined them.
    pub fn rank(&self) -> i32 {
        self.rank.get()
    }

    /// The number of processes.
    pub fn size(&self) -> i32 {
        self.size.get()
    }

    /// `blacs_pinfo`, `blacs_setup`: joins the job, once.
    pub fn join(&self) {
        if self.joined.get() {
            return;
        }
        let (mut rank, mut size) = (-1, 0);
        // SAFETY: the areas may be null; the results have room.
        unsafe {
            check((fmpl().init)(core::ptr::null_mut(), core::ptr::null_mut(), INDICES), -1, "BLACS_PINFO");
            check((fmpl().comm_rank)(FMPL_COMM_WORLD, &mut rank), -1, "BLACS_PINFO");
            check((fmpl().comm_size)(FMPL_COMM_WORLD, &mut size), -1, "BLACS_PINFO");
        }
        self.rank.set(rank);
        self.size.set(size);
        self.joined.set(true);
        self.spool.set(spool_bytes());
        crate::order::register();
        // SAFETY: one thread at a time, and nobody has a reference to what is not there yet.
        unsafe { *self.world.get() = Some(Group::world(rank, size)) };
    }

    /// What each grid may spool.
    pub fn spool_bytes(&self) -> usize {
        self.spool.get()
    }

    /// All processes, after [`Process::join`].
    pub fn world(&self) -> &Group {
        // SAFETY: written by `join` only, before anybody asks.
        match unsafe { &*self.world.get() } {
            Some(world) => world,
            None => report::fatal(-1, "BLACS_GRIDINIT/BLACS_GRIDMAP", "blacs_pinfo was not called"),
        }
    }

    /// `blacs_exit`: frees all grids; leaves the job, too, unless the program wants to go on using the message layer.
    pub fn exit(&self, go_on: bool) {
        // SAFETY: one thread at a time; no call that uses a context is under way.
        unsafe { (&mut *self.contexts.get()).clear() };
        if go_on || !self.joined.replace(false) {
            return;
        }
        let (work, _) = self.work.replace((core::ptr::null_mut(), 0));
        // SAFETY: initialised by `join`; the workspace is null or FMPL's.
        let code = unsafe {
            (fmpl().free)(work.cast());
            (fmpl().finalize)()
        };
        if code != 0 {
            report::warn(-1, "BLACS_EXIT", last_error());
        }
    }

    /// The context of a handle, if it is one.
    #[inline(always)]
    pub fn find(&self, handle: Int) -> Option<&'static Context> {
        // SAFETY: a context stays where it is until `gridexit`, `exit`, during which no other call is under way.
        unsafe { (&*self.contexts.get()).get(usize::try_from(handle).ok()?)?.as_deref() }
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
        // SAFETY: one thread at a time; contexts are boxed, so references to others stay valid.
        let contexts = unsafe { &mut *self.contexts.get() };
        let free = contexts.iter().position(Option::is_none).unwrap_or(contexts.len());
        if free == contexts.len() {
            contexts.push(None);
        }
        contexts[free] = Some(Box::new(Context { handle: free as Int, ..context }));
        free as Int
    }

    /// Gives a context up.
    pub fn drop(&self, handle: Int) {
        self.context(handle, "BLACS_GRIDEXIT");
        // SAFETY: one thread at a time; no call that uses the context is under way.
        unsafe { (&mut *self.contexts.get())[handle as usize] = None };
    }

    /// Memory for a combine, of that many bytes, kept from call to call; peers can write there directly.
    pub fn work(&self, bytes: usize) -> *mut u8 {
        let (at, have) = self.work.get();
        if bytes <= have {
            return at;
        }
        // SAFETY: null or FMPL's, and in use no more.
        let at = unsafe {
            (fmpl().free)(at.cast());
            (fmpl().alloc)(bytes).cast::<u8>()
        };
        if at.is_null() {
            report::fatal(-1, "BLACS combine", last_error());
        }
        self.work.set((at, bytes));
        at
    }

    /// Writes the descriptors of a list, in room that is kept from call to call: their number.
    pub fn set_list(&self, entries: impl Iterator<Item = iovec>) -> usize {
        let mut list = self.list.take();
        list.clear();
        list.extend(entries);
        let n = list.len();
        self.list.set(list);
        n
    }

    /// The descriptors that were written last: good until others are.
    pub fn list(&self) -> *const iovec {
        // SAFETY: nobody has a reference to the list, and one thread at a time calls (see `Sync` above).
        unsafe { (*self.list.as_ptr()).as_ptr() }
    }
}

/// FMPL has checked the environment by now.
fn spool_bytes() -> usize {
    fmpl::base::config::Config::from_environment().unwrap_or_default().blacs_spool_bytes
}
