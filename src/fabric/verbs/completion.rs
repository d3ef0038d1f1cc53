//! Completion queues, and the channels on which a thread can sleep until a completion comes.

use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::device::Device;
use super::ffi::{self, Wc};
use crate::base::error::{Code, Error, Result, error};

/// A channel of completion events; its descriptor becomes readable with the next one.
pub struct Channel {
    device: Arc<Device>,
    channel: *mut ffi::CompChannel,
}

// SAFETY: the library's functions may be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// A new channel, whose descriptor does not block.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Channel>> {
        // SAFETY: the context is open.
        let channel = unsafe { (device.lib.create_comp_channel)(device.context) };
        if channel.is_null() {
            return Err(Error::system(format!("a completion channel of {} (ibv_create_comp_channel)", device.name())));
        }
        let channel = Channel { device: device.clone(), channel };
        // SAFETY: an open descriptor of ours.
        unsafe {
            let flags = libc::fcntl(channel.fd(), libc::F_GETFL);
            libc::fcntl(channel.fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        Ok(Arc::new(channel))
    }
    /// The descriptor, for `poll` and `epoll`.
    pub fn fd(&self) -> RawFd {
        // SAFETY: the channel lives as long as self.
        unsafe { (*self.channel).fd }
    }
    /// Takes the events that are there; how many.
    pub fn take_events(&self) -> u32 {
        let mut n = 0;
        loop {
            let (mut cq, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: two writable places; the descriptor does not block.
            if unsafe { (self.device.lib.get_cq_event)(self.channel, &mut cq, &mut context) } != 0 {
                return n;
            }
            // SAFETY: the event was of this queue, which lives: a queue is destroyed only after its channel's user has stopped.
            unsafe { (self.device.lib.ack_cq_events)(cq, 1) };
            n += 1;
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made in `new`; queues hold the channel, so none is left.
        unsafe { (self.device.lib.destroy_comp_channel)(self.channel) };
    }
}

/// A completion queue.
pub struct CompletionQueue {
    device: Arc<Device>,
    _channel: Option<Arc<Channel>>,
    pub(super) cq: *mut ffi::Cq,
}

// SAFETY: the library's functions may be called from any thread; drivers lock what must be locked.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// A queue with room for `entries`; its events go to `channel`. Whoever makes one has never more under way that completes there, so it
    /// is never overrun.
    pub fn new(device: &Arc<Device>, entries: u32, channel: Option<&Arc<Channel>>) -> Result<Arc<CompletionQueue>> {
        // A queue that is shorter than what it may have to take would be overrun.
        let (entries, most) = (entries as c_int, device.attr().max_cqe);
        if entries > most {
            let text = format!("a completion queue of {entries} on {}, which has {most} at most", device.name());
            return Err(Error::new(Code::Unsupported, text));
        }
        let to = channel.map_or(std::ptr::null_mut(), |c| c.channel);
        // SAFETY: the context is open, the channel lives as long as the queue, vector 0 is always there.
        let cq = unsafe { (device.lib.create_cq)(device.context, entries, std::ptr::null_mut(), to, 0) };
        if cq.is_null() {
            return Err(Error::system(format!("a completion queue of {entries} on {} (ibv_create_cq)", device.name())));
        }
        Ok(Arc::new(CompletionQueue { device: device.clone(), _channel: channel.cloned(), cq }))
    }

    /// Makes it shorter or longer. One that is shorter than what may complete there can be overrun.
    pub fn resize(&self, entries: u32) -> Result<()> {
        // SAFETY: the queue lives.
        let r = unsafe { (self.device.lib.resize_cq)(self.cq, entries as c_int) };
        if r != 0 {
            let why = std::io::Error::from_raw_os_error(r.abs());
            return Err(error!(Code::System, "ibv_resize_cq: {why}"));
        }
        Ok(())
    }
    /// What names it where the device [tells](super::device::DeviceError) of it.
    pub fn name(&self) -> usize {
        self.cq as usize
    }

    /// Takes completions that are there; how many.
    #[inline]
    pub fn poll(&self, into: &mut [Wc]) -> Result<usize> {
        let Some(poll) = self.device.ops().poll_cq else { return Err(self.absent()) };
        // SAFETY: the queue lives, `into` is writable for its length.
        let n = unsafe { poll(self.cq, into.len() as c_int, into.as_mut_ptr()) };
        if n < 0 {
            return Err(error!(
                Code::System,
                "polling a completion queue of {} (ibv_poll_cq): {n}",
                self.device.name()
            ));
        }
        Ok(n as usize)
    }

    /// Asks for an event on the channel with the next completion. What came before must be polled afterwards, once more.
    pub fn arm(&self) -> Result<()> {
        let Some(arm) = self.device.ops().req_notify_cq else { return Err(self.absent()) };
        // SAFETY: the queue lives.
        let r = unsafe { arm(self.cq, 0) };
        if r != 0 {
            return Err(error!(Code::System, "ibv_req_notify_cq: {}", std::io::Error::from_raw_os_error(r)));
        }
        Ok(())
    }

    #[cold]
    fn absent(&self) -> Error {
        error!(Code::Unsupported, "the driver of {} lacks a call", self.device.name())
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: made in `new`; queue pairs hold the queue, so none is left.
        unsafe { (self.device.lib.destroy_cq)(self.cq) };
    }
}

/// What a completion's status means, in the library's words.
pub fn status_text(status: c_int) -> String {
    let Ok(lib) = super::load::library() else { return format!("status {status}") };
    // SAFETY: the function gives a string that ends with NUL for every number.
    unsafe { CStr::from_ptr((lib.wc_status_str)(status)) }.to_string_lossy().into_owned()
}
