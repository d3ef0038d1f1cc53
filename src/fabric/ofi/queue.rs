//! Completion queues.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::connection::Connection;
use super::domain::{Net, Object};
use super::ffi::{self, CqEntry, CqErrEntry};
use crate::base::error::{Code, Error, Result, error};
use crate::fabric::served::sleeper::Sleeper;

/// Connections that are asked in one turn of a wait.
const FEW: usize = 4;

/// A completion queue; asking it is also what makes things go on.
pub struct Queue {
    // Before the domain: closed first.
    pub(super) cq: Object<ffi::FidCq>,
    /// Becomes readable when asking is of use.
    fd: Option<RawFd>,
    /// Its endpoint is there: nothing may be slept on without, since a layer leaves there what it has freed (`ofi_rxm` up to 2.x).
    is_open: AtomicBool,
    net: Arc<Net>,
}

/// A queue, and its connection if it has one.
pub(super) type Inlet = (Arc<Queue>, Option<Arc<Connection>>);

/// The queues of what comes, one for each endpoint, and who sleeps for it: that of datagrams is the first.
pub struct Inlets {
    all: Mutex<Vec<(Arc<Queue>, Weak<Connection>)>>,
    pub(super) sleeper: Sleeper,
    /// Connections that hold something back.
    pub(super) holding: AtomicUsize,
}

impl Inlets {
    pub(super) fn new() -> Result<Inlets> {
        let sleeper =
            Sleeper::new().map_err(|_| Error::system("a descriptor to wake the thread between nodes (eventfd)"))?;
        Ok(Inlets { all: Mutex::default(), sleeper, holding: AtomicUsize::new(0) })
    }
    fn all(&self) -> MutexGuard<'_, Vec<(Arc<Queue>, Weak<Connection>)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The connections.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.all().iter().filter_map(|(_, connection)| connection.upgrade()).collect()
    }
    /// Up to [`FEW`] of those of connections, others in each turn where there are more.
    pub(super) fn few(&self, turn: usize) -> [Option<Inlet>; FEW] {
        let all = self.all();
        let all = all.get(1..).unwrap_or_default();
        let first = if all.len() > FEW { turn * FEW } else { 0 };
        let mut few = [const { None }; FEW];
        for (n, to) in few.iter_mut().enumerate().take(all.len()) {
            let (queue, connection) = &all[(first + n) % all.len()];
            *to = Some((queue.clone(), connection.upgrade()));
        }
        few
    }
    /// One more, of a connection or of none.
    pub(super) fn add(&self, queue: &Arc<Queue>, connection: Weak<Connection>) {
        self.all().push((queue.clone(), connection));
    }
    /// Looks at this one no more.
    pub(super) fn remove(&self, queue: &Arc<Queue>) {
        self.all().retain(|(q, _)| !Arc::ptr_eq(q, queue));
    }
    /// One of them; `None`: there are no more. Others may go and come in between.
    pub(super) fn nth(&self, n: usize) -> Option<Inlet> {
        let all = self.all();
        let (queue, connection) = all.get(n)?;
        Some((queue.clone(), connection.upgrade()))
    }
    /// The descriptors of those that are open, to sleep on until one is readable; `None`: there is something to be done now. And is there
    /// one without a descriptor, that has to be looked at now and then?
    pub fn sleep_on(&self, net: &Net, fds: &mut Vec<libc::pollfd>) -> Option<bool> {
        let _asks = net.shape.read().unwrap_or_else(PoisonError::into_inner);
        let (mut fids, mut blind) = (Vec::new(), false);
        for (queue, _) in self.all().iter().filter(|(q, _)| q.is_open.load(Ordering::Acquire)) {
            match queue.fd {
                Some(fd) => {
                    fids.push(queue.cq.fid());
                    fds.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
                }
                None => blind = true,
            }
        }
        let fabric = net.fabric.ptr();
        // SAFETY: fabric and queues live, and so do the endpoints, which nobody closes meanwhile.
        let r = unsafe { ((*(*fabric).ops).trywait)(fabric, fids.as_mut_ptr(), fids.len() as c_int) };
        (r == 0 || fids.is_empty()).then_some(blind)
    }
}

/// An operation that has failed: what it was posted with, and the error.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// What it was posted with.
    pub context: *mut std::ffi::c_void,
    /// The library's error, positive.
    pub error: c_int,
}

impl Queue {
    /// Room for so many completions. `sleeps`: a thread wants to sleep until there is one; the provider may not know how.
    pub fn new(net: &Arc<Net>, entries: usize, sleeps: bool) -> Result<Queue> {
        let lib = net.lib();
        let make = |wait_obj: c_int| {
            let mut attr = ffi::CqAttr {
                size: entries,
                flags: 0,
                format: ffi::CQ_FORMAT_DATA,
                wait_obj,
                signaling_vector: 0,
                wait_cond: 0,
                wait_set: std::ptr::null_mut(),
            };
            let domain = net.domain.ptr();
            // SAFETY: the domain lives, the structure is filled.
            Object::made(lib, "fi_cq_open", |place| unsafe {
                ((*(*domain).ops).cq_open)(domain, &mut attr, place, std::ptr::null_mut())
            })
        };
        if sleeps && let Ok(cq) = make(ffi::WAIT_FD) {
            let mut fd: RawFd = -1;
            let r = cq.control(ffi::GETWAIT, (&raw mut fd).cast());
            if r == 0 && fd >= 0 {
                return Ok(Queue { cq, fd: Some(fd), is_open: AtomicBool::new(false), net: net.clone() });
            }
        }
        Ok(Queue { cq: make(ffi::WAIT_NONE)?, fd: None, is_open: AtomicBool::new(false), net: net.clone() })
    }

    /// What becomes readable when asking is of use.
    pub(super) fn fd(&self) -> Option<RawFd> {
        self.fd
    }

    /// Its endpoint is there, or is going to be closed.
    pub(super) fn set_open(&self, open: bool) {
        self.is_open.store(open, Ordering::Release);
    }

    /// Takes completions that are there, with `failed` those of operations that have failed; how many of the others.
    pub fn read(&self, entries: &mut [CqEntry], failed: &mut dyn FnMut(Failed)) -> Result<usize> {
        let cq = self.cq.ptr();
        let _asks = self.net.shape.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            // SAFETY: the queue lives, and was made for entries of this kind.
            let n = unsafe { ((*(*cq).ops).read)(cq, entries.as_mut_ptr().cast(), entries.len()) };
            match -n {
                ffi::error::AGAIN => return Ok(0),
                _ if n >= 0 => return Ok(n as usize),
                ffi::error::AVAIL => {
                    let mut error = CqErrEntry::NONE;
                    // SAFETY: as above; the entry has more room than any version writes.
                    let n = unsafe { ((*(*cq).ops).readerr)(cq, &mut error, 0) };
                    if n > 0 {
                        failed(Failed { context: error.op_context, error: error.err.abs() });
                    }
                }
                error => {
                    let why = self.net.lib().explain(error as c_int);
                    return Err(error!(Code::System, "completions over {}: {why}", self.net.offer));
                }
            }
        }
    }
}
