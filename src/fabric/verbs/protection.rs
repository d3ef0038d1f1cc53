//! Protection domains, and memory that is registered there.

use std::ffi::c_void;
use std::io;
use std::sync::Arc;

use super::device::Device;
use super::ffi;
use crate::base::error::{Error, Result};
use crate::fabric::network::device::{Access, Atomics, Registrar, Registration};
use crate::fabric::network::region::Domain;

/// A protection domain: queue pairs and memory of one may be used together.
pub struct Protection {
    pub(super) device: Arc<Device>,
    pub(super) pd: *mut ffi::Pd,
}

// SAFETY: the library's functions may be called from any thread.
unsafe impl Send for Protection {}
// SAFETY: as above.
unsafe impl Sync for Protection {}

/// `enum ibv_atomic_cap`.
const ATOMIC_NONE: i32 = 0;
const ATOMIC_GLOBAL: i32 = 2;

impl Protection {
    /// A new one.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Protection>> {
        // SAFETY: the context is open.
        let pd = unsafe { (device.lib.alloc_pd)(device.context) };
        if pd.is_null() {
            return Err(Error::system(format!("a protection domain of {} (ibv_alloc_pd)", device.name())));
        }
        Ok(Arc::new(Protection { device: device.clone(), pd }))
    }

    /// Where memory is registered for it.
    pub fn domain(self: &Arc<Self>) -> Arc<Domain> {
        Domain::new(self.clone(), self.atomics())
    }

    /// How the device changes words.
    pub fn atomics(&self) -> Atomics {
        match self.device.attr().atomic_cap {
            ATOMIC_NONE => Atomics::None,
            ATOMIC_GLOBAL => Atomics::Both,
            _ => Atomics::Device,
        }
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        // SAFETY: made in `new`; memory and queue pairs hold it, so none is left.
        unsafe { (self.device.lib.dealloc_pd)(self.pd) };
    }
}

/// The same as the library has it.
fn flags(access: Access) -> ffi::Access {
    let each = [
        (Access::LOCAL_WRITE, ffi::Access::LOCAL_WRITE),
        (Access::REMOTE_WRITE, ffi::Access::REMOTE_WRITE),
        (Access::REMOTE_READ, ffi::Access::REMOTE_READ),
        (Access::REMOTE_ATOMIC, ffi::Access::REMOTE_ATOMIC),
    ];
    each.into_iter().filter(|(a, _)| access.contains(*a)).fold(ffi::Access::empty(), |all, (_, flag)| all | flag)
}

impl Registrar for Protection {
    unsafe fn register(self: Arc<Self>, at: *mut u8, len: usize, access: Access) -> io::Result<Box<dyn Registration>> {
        // SAFETY: the domain lives; the memory is as the caller promises.
        let mr = unsafe { (self.device.lib.reg_mr)(self.pd, at.cast::<c_void>(), len, flags(access).bits()) };
        if mr.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(Box::new(Registered { protection: self, mr }))
    }
    fn name(&self) -> String {
        "the RDMA device (ibv_reg_mr)".into()
    }
}

struct Registered {
    protection: Arc<Protection>,
    mr: *mut ffi::Mr,
}

// SAFETY: the library's functions may be called from any thread; the keys are numbers.
unsafe impl Send for Registered {}
// SAFETY: as above.
unsafe impl Sync for Registered {}

impl Registration for Registered {
    fn lkey(&self) -> u32 {
        // SAFETY: the memory is registered as long as self lives.
        unsafe { (*self.mr).lkey }
    }
    fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.mr).rkey }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: registered in `register`, taken back once.
        unsafe { (self.protection.device.lib.dereg_mr)(self.mr) };
    }
}
