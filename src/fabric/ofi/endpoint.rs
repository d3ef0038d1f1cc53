//! Endpoints, and what is posted by them.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError};

use super::domain::{Net, Object};
use super::ffi::{self, MsgRma, RmaIov, cap, flag};
use super::provider::ADDRESS_MOST;
use super::queue::Queue;
use crate::base::error::{Code, Result, error};
use crate::fabric::network::device::Place;

/// What operations are posted with: a number, and room that some providers use until the operation is over (`struct fi_context2`).
#[derive(Debug)]
pub struct Contexts(Box<[UnsafeCell<[u64; 8]>]>);

// SAFETY: this side never looks into the room.
unsafe impl Send for Contexts {}
// SAFETY: as above.
unsafe impl Sync for Contexts {}

impl Contexts {
    /// For operations with numbers below this.
    pub fn new(n: usize) -> Contexts {
        Contexts((0..n).map(|_| UnsafeCell::new([0; 8])).collect())
    }
    /// That of a number.
    #[inline]
    pub fn of(&self, number: usize) -> *mut c_void {
        self.0[number].get().cast()
    }
    /// The number of one that was posted with; `None`: none of these was.
    #[inline]
    pub fn number(&self, context: *mut c_void) -> Option<usize> {
        let at = (context as usize).checked_sub(self.0.as_ptr() as usize)? / size_of::<[u64; 8]>();
        (at < self.0.len()).then_some(at)
    }
}

/// What is to be written, and where.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who, as [`Net::find`] has named him.
    pub to: u64,
    /// Where there, in as many parts.
    pub places: &'a [RmaIov],
    /// What comes along.
    pub data: u64,
    /// It completes, with this.
    pub context: Option<*mut c_void>,
    /// It does when its bytes are in the other end's memory, otherwise when this side's memory is read.
    pub delivered: bool,
    /// From where.
    pub from: &'a [libc::iovec],
    /// What the library calls that.
    pub names: &'a [*mut c_void],
}

/// An endpoint: where others reach this process, and by which it reaches them.
pub struct Endpoint {
    ep: Option<Object<ffi::FidEp>>,
    arrived: Arc<Queue>,
    net: Arc<Net>,
    /// Bytes that can be written without being kept until the write is over, if any can.
    inject: Option<usize>,
}

impl Endpoint {
    /// What is sent completes in `sent`, all of it or (`selective`) what asks for it; what comes, in `arrived`.
    pub fn open(net: &Arc<Net>, sent: &Queue, arrived: &Arc<Queue>, selective: bool) -> Result<Endpoint> {
        let (lib, domain) = (net.lib(), net.domain.ptr());
        let _alone = net.shape.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the domain lives; the offer is the one it was opened with.
        let ep = Object::made(lib, "fi_endpoint", |place| unsafe {
            ((*(*domain).ops).endpoint)(domain, net.offer.info, place, std::ptr::null_mut())
        })?;
        ep.bind(lib, net.av.fid(), 0)?;
        ep.bind(lib, sent.cq.fid(), cap::TRANSMIT | if selective { flag::SELECTIVE_COMPLETION } else { 0 })?;
        ep.bind(lib, arrived.cq.fid(), cap::RECV)?;
        let r = ep.control(ffi::ENABLE, std::ptr::null_mut());
        if r != 0 {
            let why = lib.explain(r);
            return Err(error!(Code::System, "an endpoint of {} (fi_enable): {why}", net.offer));
        }
        arrived.set_open(true);
        Ok(Endpoint { ep: Some(ep), arrived: arrived.clone(), net: net.clone(), inject: net.offer.inject_most() })
    }

    fn ptr(&self) -> *mut ffi::FidEp {
        self.ep.as_ref().map_or(std::ptr::null_mut(), Object::ptr)
    }

    /// Where it is reached.
    pub fn address(&self) -> Result<[u8; ADDRESS_MOST]> {
        let (mut address, mut len) = ([0u8; ADDRESS_MOST], ADDRESS_MOST);
        let ep = self.ptr();
        // SAFETY: the endpoint lives, so many bytes are writable.
        let r = unsafe { ((*(*ep).cm).getname)(ep.cast(), address.as_mut_ptr().cast(), &mut len) };
        if r != 0 || len > ADDRESS_MOST {
            let why = if r != 0 { self.net.lib().explain(r) } else { format!("it has {len} bytes") };
            return Err(error!(Code::System, "the address of {} (fi_getname): {why}", self.net.offer));
        }
        Ok(address)
    }

    /// Bytes of a write that need not be kept.
    #[inline]
    pub fn inject_most(&self) -> Option<usize> {
        self.inject
    }

    /// What a call that posts has said. `Ok(false)`: nothing was posted, there is no room or no way there now. An error: it never will be.
    #[inline]
    fn posted(r: isize) -> std::result::Result<bool, c_int> {
        match -r {
            0 => Ok(true),
            ffi::error::AGAIN => Ok(false),
            error => Err(error as c_int),
        }
    }

    /// Writes bytes that are the caller's again at once, and tells of no end.
    #[inline]
    pub fn inject(&self, bytes: &[u8], to: u64, place: Place, data: u64) -> std::result::Result<bool, c_int> {
        let (ep, Place { addr, rkey }) = (self.ptr(), place);
        // SAFETY: the endpoint lives, the bytes are there.
        Self::posted(unsafe {
            ((*(*ep).rma).injectdata)(ep, bytes.as_ptr().cast(), bytes.len(), data, to, addr, u64::from(rkey))
        })
    }

    /// Writes.
    ///
    /// # Safety
    /// The memory stays registered, and unchanged, until the write is over.
    #[inline]
    pub unsafe fn write(&self, write: &Write<'_>) -> std::result::Result<bool, c_int> {
        let ask = match write.context {
            None => 0,
            Some(_) if write.delivered => flag::COMPLETION | flag::DELIVERY_COMPLETE,
            Some(_) => flag::COMPLETION,
        };
        // SAFETY: as the caller promises.
        unsafe { self.remote(write, |rma| rma.writemsg, ask | flag::REMOTE_CQ_DATA) }
    }

    /// Reads, in the other direction, and tells of the end.
    ///
    /// # Safety
    /// The memory stays registered, and unread, until the read is over.
    #[inline]
    pub unsafe fn read(&self, read: &Write<'_>) -> std::result::Result<bool, c_int> {
        // SAFETY: as the caller promises.
        unsafe { self.remote(read, |rma| rma.readmsg, flag::COMPLETION) }
    }

    #[inline]
    unsafe fn remote(
        &self,
        what: &Write<'_>,
        call: impl Fn(&ffi::OpsRma) -> unsafe extern "C" fn(*mut ffi::FidEp, *const MsgRma, u64) -> isize,
        flags: u64,
    ) -> std::result::Result<bool, c_int> {
        let message = MsgRma {
            msg_iov: what.from.as_ptr(),
            desc: what.names.as_ptr().cast_mut(),
            iov_count: what.from.len(),
            addr: what.to,
            rma_iov: what.places.as_ptr(),
            rma_iov_count: what.places.len(),
            context: what.context.unwrap_or(std::ptr::null_mut()),
            data: what.data,
        };
        let ep = self.ptr();
        // SAFETY: the endpoint lives, the message is whole; its memory is as the caller promises.
        Self::posted(unsafe { call(&*(*ep).rma)(ep, &message, flags) })
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// The memory is registered, and stays so, used by nobody else, until the receive is over.
    pub unsafe fn receive(
        &self,
        at: *mut u8,
        len: usize,
        name: *mut c_void,
        context: *mut c_void,
    ) -> std::result::Result<bool, c_int> {
        let ep = self.ptr();
        // SAFETY: as the caller promises.
        Self::posted(unsafe { ((*(*ep).msg).recv)(ep, at.cast(), len, name, u64::MAX, context) })
    }

    /// Sends a message.
    ///
    /// # Safety
    /// The memory stays registered, and unchanged, until the send is over.
    pub unsafe fn send(
        &self,
        at: *const u8,
        len: usize,
        name: *mut c_void,
        to: u64,
        context: *mut c_void,
    ) -> std::result::Result<bool, c_int> {
        let ep = self.ptr();
        // SAFETY: as the caller promises.
        Self::posted(unsafe { ((*(*ep).msg).send)(ep, at.cast(), len, name, to, context) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Nobody may be asking a queue for what comes by it meanwhile.
        let _alone = self.net.shape.write().unwrap_or_else(PoisonError::into_inner);
        self.arrived.set_open(false);
        self.ep = None;
    }
}
