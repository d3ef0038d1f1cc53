//! What all endpoints of a process share: fabric, domain, addresses; and the memory that is registered there.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::changes::Words;
use super::ffi::{self, cap, mr};
use super::load::Library;
use super::provider::{ADDRESS_MOST, Offer};
use super::sockets;
use crate::base::config::Congestion;
use crate::base::error::{Code, Result, error};
use crate::fabric::network::device::{Access, Atomics, Registrar, Registration};
use crate::fabric::network::region::Domain;
use crate::fabric::tcp::congestion::Algorithm;

/// An object of the library, closed when it is dropped; whatever was made from it is gone by then.
pub(super) struct Object<T>(*mut T);

// SAFETY: the library is asked for objects that any thread may use.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// What a call has put into its place. Every object begins with a [`Fid`](ffi::Fid).
    pub fn made(lib: &Library, call: &str, make: impl FnOnce(*mut *mut T) -> c_int) -> Result<Object<T>> {
        let mut object = std::ptr::null_mut();
        let r = make(&mut object);
        if r != 0 || object.is_null() {
            return Err(error!(Code::System, "{call}: {}", lib.explain(r)));
        }
        Ok(Object(object))
    }
    pub fn ptr(&self) -> *mut T {
        self.0
    }
    pub fn fid(&self) -> *mut ffi::Fid {
        self.0.cast()
    }
    /// Binds another object to it.
    pub fn bind(&self, lib: &Library, other: *mut ffi::Fid, flags: u64) -> Result<()> {
        // SAFETY: both live; every object has its table.
        let r = unsafe { ((*(*self.fid()).ops).bind)(self.fid(), other, flags) };
        if r != 0 { Err(error!(Code::System, "fi_ep_bind: {}", lib.explain(r))) } else { Ok(()) }
    }
    /// Asks something of it.
    pub fn control(&self, command: c_int, with: *mut c_void) -> c_int {
        // SAFETY: as above; the callers give what the command takes.
        unsafe { ((*(*self.fid()).ops).control)(self.fid(), command, with) }
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: made by the library, closed once.
        unsafe { ((*(*self.fid()).ops).close)(self.fid()) };
    }
}

/// See the head of this file.
pub struct Net {
    // In the order in which they are closed.
    pub(super) av: Object<ffi::FidAv>,
    pub(super) domain: Object<ffi::FidDomain>,
    pub(super) fabric: Object<ffi::FidFabric>,
    pub(super) offer: Offer,
    /// What sockets of connections are set to, if there are any, and to anything.
    pub(super) algorithm: Option<Algorithm>,
    /// What was asked for last, where keys are this side's to choose.
    last_key: AtomicU64,
    /// What the library calls local memory, by the numbers of its registrations, where requests name it.
    descriptors: Mutex<HashMap<u32, Descriptor>>,
    /// Held by who asks a queue, and alone by who opens or closes an endpoint: a queue goes through its endpoints.
    pub(super) shape: RwLock<()>,
    /// What others may change here.
    pub(super) words: Words,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor(*mut c_void);
// SAFETY: a name for the library.
unsafe impl Send for Descriptor {}

impl Net {
    /// Opens the port of an offer. `Setting`: what is wished of connections cannot be had.
    pub fn open(offer: Offer, wish: &Congestion) -> Result<Arc<Net>> {
        let algorithm = sockets::algorithm(&offer, wish)?;
        let (lib, none) = (offer.lib(), std::ptr::null_mut());
        // SAFETY: the attributes are the offer's; the place is writable.
        let fabric =
            Object::made(lib, "fi_fabric", |place| unsafe { (lib.fabric)(offer.info().fabric_attr, place, none) })?;
        // SAFETY: the fabric lives; every fabric has its table.
        let domain = Object::made(lib, "fi_domain", |place| unsafe {
            ((*(*fabric.ptr()).ops).domain)(fabric.ptr(), offer.info, place, none)
        })?;
        let mut attr = ffi::AvAttr {
            kind: 0,
            rx_ctx_bits: 0,
            count: 0,
            ep_per_node: 0,
            name: std::ptr::null(),
            map_addr: none,
            flags: 0,
        };
        // SAFETY: the domain lives, the structure is filled.
        let av = Object::made(lib, "fi_av_open", |place| unsafe {
            ((*(*domain.ptr()).ops).av_open)(domain.ptr(), &mut attr, place, none)
        })?;
        let (last_key, descriptors) = (AtomicU64::new(0), Mutex::default());
        Ok(Arc::new(Net {
            av,
            domain,
            fabric,
            offer,
            algorithm,
            last_key,
            descriptors,
            shape: RwLock::new(()),
            words: Words::default(),
        }))
    }

    /// The library.
    pub fn lib(&self) -> &'static Library {
        self.offer.lib()
    }

    /// Where memory is registered for it.
    pub fn memory(self: &Arc<Self>) -> Arc<Domain> {
        Domain::new(self.clone(), Atomics::Both)
    }

    /// What requests of this process call the endpoint at an address.
    pub fn find(&self, address: &[u8; ADDRESS_MOST]) -> Result<u64> {
        let mut found = u64::MAX;
        let av = self.av.ptr();
        let mut insert = || {
            // SAFETY: the address is as long as this provider's are, and the place writable.
            unsafe { ((*(*av).ops).insert)(av, address.as_ptr().cast(), 1, &mut found, 0, std::ptr::null_mut()) }
        };
        // None, if the provider is taking it from a packet of the peer's at this moment (rxd): then it has it.
        let n = match insert() {
            0 => insert(),
            n => n,
        };
        if n != 1 {
            let why = if n < 0 { self.lib().explain(n) } else { "it is no address of this provider".into() };
            return Err(error!(Code::System, "an address of a peer over {} (fi_av_insert): {why}", self.offer));
        }
        Ok(found)
    }
    /// Nobody asks for it any more.
    pub fn forget(&self, mut name: u64) {
        let av = self.av.ptr();
        // SAFETY: a name that `find` has given.
        unsafe { ((*(*av).ops).remove)(av, &mut name, 1, 0) };
    }

    fn asks(&self, bit: c_int) -> bool {
        self.offer.domain().mr_mode & bit != 0
    }
    /// Do requests name local memory?
    #[inline]
    pub(super) fn names_local(&self) -> bool {
        self.asks(mr::LOCAL)
    }
    /// What the library calls the local memory of this key.
    pub(super) fn descriptor(&self, lkey: u32) -> *mut c_void {
        let all = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&lkey).map_or(std::ptr::null_mut(), |d| d.0)
    }
}

/// The same as the library has it.
fn flags(access: Access) -> u64 {
    let each = [
        (Access::LOCAL_WRITE, cap::READ | cap::RECV),
        (Access::REMOTE_WRITE, cap::REMOTE_WRITE),
        (Access::REMOTE_READ, cap::REMOTE_READ),
        // By this process itself; that some key is given, though.
        (Access::REMOTE_ATOMIC, cap::REMOTE_READ),
    ];
    let sent = cap::WRITE | cap::TRANSMIT;
    each.into_iter().filter(|(a, _)| access.contains(*a)).fold(sent, |all, (_, flag)| all | flag)
}

impl Registrar for Net {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>> {
        let domain = self.domain.ptr();
        let asked = self.last_key.fetch_add(1, Ordering::Relaxed) + 1;
        let mut mr = std::ptr::null_mut();
        // SAFETY: the domain lives; the memory is as the caller promises.
        let r = unsafe {
            let reg = (*(*domain).mr).reg;
            reg(domain.cast(), at.cast(), len, flags(access), 0, asked, 0, &mut mr, std::ptr::null_mut())
        };
        if r != 0 || mr.is_null() {
            return Err(io::Error::from_raw_os_error(r.abs()));
        }
        // SAFETY: a registration of the library's.
        let (key, name) = unsafe { ((*mr).key, (*mr).mem_desc) };
        let mut registered = Registered { net: self, mr: Object(mr), serial: asked as u32, key: 0, changes: false };
        // What no peer may reach may have none.
        if access.intersects(Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC) {
            // Keys go with addresses in records of words, where they have half a word.
            registered.key =
                u32::try_from(key).map_err(|_| io::Error::other(format!("its key {key:#x} has more than 32 bits")))?;
        }
        let net = &registered.net;
        if access.contains(Access::REMOTE_ATOMIC) {
            net.words.add(registered.key, at as u64, len);
            registered.changes = true;
        }
        if net.names_local() {
            net.descriptors.lock().unwrap_or_else(PoisonError::into_inner).insert(registered.serial, Descriptor(name));
        }
        Ok(Box::new(registered))
    }
    fn name(&self) -> String {
        format!("{} (fi_mr_reg)", self.offer)
    }
}

struct Registered {
    // Before the domain: closed first.
    #[expect(dead_code, reason = "closed when dropped")]
    mr: Object<ffi::FidMr>,
    net: Arc<Net>,
    /// By which this process's requests name it.
    serial: u32,
    key: u32,
    /// Others may change words there.
    changes: bool,
}

impl Registration for Registered {
    fn lkey(&self) -> u32 {
        self.serial
    }
    fn rkey(&self) -> u32 {
        self.key
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.changes {
            self.net.words.remove(self.key);
        }
        if self.net.names_local() {
            self.net.descriptors.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.serial);
        }
    }
}
