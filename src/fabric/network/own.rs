//! The connection of this process with itself: by it its own device changes words of its own memory, so that all changes of a word are made by
//! the same device. A queue pair whose other end it is itself; one request at a time.

use std::sync::{Arc, PoisonError};

use super::device::{Access, Change, Data, Device, Pair, Piece, Place, Request, Status, What};
use super::region::Arena;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::Mutex;
use crate::base::thread::yield_core;

/// A device that has not answered for so long is out of order.
const PATIENCE_NS: u64 = 5_000_000_000;

/// See the head of this file.
pub struct Own {
    pair: Arc<dyn Pair>,
    state: Mutex<State>,
}

struct State {
    /// What was there before comes here.
    old: Arena,
    /// The number of the last request.
    last: u64,
    /// One has not been answered in time: the device may write here whenever it likes, and nothing more is asked of it.
    late: bool,
}

impl Own {
    /// Connects this process with itself.
    pub fn new(device: &Arc<dyn Device>) -> Result<Own> {
        let pair = device.pair(4)?;
        pair.connect(&pair.end())?;
        let old = Arena::new(device.domain(), 8, Access::LOCAL_WRITE)?;
        let state = Mutex::new(State { old, last: 0, late: false });
        Ok(Own { pair, state })
    }

    /// Changes an aligned word of eight bytes of this process's registered memory; what was there.
    pub fn change(&self, at: Place, change: Change) -> Result<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let late = || Error::new(Code::System, "the RDMA device has not changed a word of this process within 5 s");
        if state.late {
            return Err(late());
        }
        state.last += 1;
        let (id, old) = (state.last, &state.old);
        let piece = [Piece { addr: old.as_ptr() as u64, len: 8, lkey: old.region().lkey() }];
        let request = Request {
            id,
            what: What::Change(change),
            data: Data::Pieces(&piece),
            to: at,
            signaled: true,
            later: false,
        };
        // SAFETY: the memory is this call's until the request has completed, and afterwards nobody else's; there is one at a time.
        let mut posted = unsafe { self.pair.post(&request)? };
        let (mut done, since) = (None, now_ns());
        loop {
            if !posted {
                // SAFETY: as above.
                posted = unsafe { self.pair.post(&request)? };
            }
            // Read before the device is asked: this thread may be stopped in between.
            let now = now_ns();
            self.pair.poll(&mut |c| done = Some(c).filter(|c| c.id == id).or(done.take()))?;
            if done.is_some() {
                break;
            }
            if now - since > PATIENCE_NS {
                state.late = true;
                return Err(late());
            }
            yield_core();
        }
        if let Some(c) = done.filter(|c| c.status != Status::Done) {
            let text = format!("changing a word of this process by its RDMA device: {}", self.pair.explain(c.code));
            return Err(Error::new(Code::System, text));
        }
        // SAFETY: eight bytes that the device has written.
        Ok(unsafe { state.old.as_ptr().cast::<u64>().read_volatile() })
    }
}
