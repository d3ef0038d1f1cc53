//! Rings for datagrams: receives for one peer each, by a queue pair of their own, which nobody else's datagrams use up. All complete where
//! those of the process's other datagrams do, so one look finds what has come to any.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::carrier::{COMPLETIONS, GRH, spot, stride};
use super::completion::CompletionQueue;
use super::device::Port;
use super::network::QKEY;
use super::protection::Protection;
use super::queue_pair::{Depth, QueuePair};
use crate::base::error::Result;
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::{Ring, SLOTS, SLOTS_BESIDE, Spot};
use crate::fabric::network::device::Access;
use crate::fabric::network::region::{Arena, Domain};

/// Receives of a ring.
const RECEIVES: u32 = SLOTS + SLOTS_BESIDE;

/// All of a process.
pub(super) struct Rings {
    port: Port,
    protection: Arc<Protection>,
    domain: Arc<Domain>,
    sent: Arc<CompletionQueue>,
    queue: Arc<CompletionQueue>,
    all: Mutex<All>,
}

struct All {
    known: HashMap<u32, Arc<Receives>>,
    last: u32,
    /// Completions for which the queue has room.
    room: u32,
}

/// The queue pair of a ring, and where it receives.
pub(super) struct Receives {
    // Before what it uses: dropped first.
    pair: QueuePair,
    at: Arena,
    number: u32,
}

impl Receives {
    /// Posts one of its receives.
    pub fn post(&self, port: &Port, place: usize) -> Result<()> {
        let (at, len) = (self.at.as_ptr() as u64 + (place * stride(port)) as u64, GRH as u32 + port.mtu);
        let id = u64::from(self.number) << 32 | place as u64;
        // SAFETY: places lie within the arena, and each is posted again only after its datagram has been read.
        unsafe { self.pair.post_receive(id, at, len, self.at.region().lkey()) }
    }
    /// Where what came to a place of it begins, if it has that one.
    pub fn datagram(&self, port: &Port, place: usize) -> Option<*const u8> {
        let at = self.at.as_ptr().wrapping_add(place * stride(port) + GRH);
        (place < RECEIVES as usize).then_some(at.cast_const())
    }
}

impl Rings {
    /// None yet. What comes completes in a queue that has room for so many.
    pub fn new(
        port: &Port,
        protection: &Arc<Protection>,
        domain: &Arc<Domain>,
        [sent, queue]: [&Arc<CompletionQueue>; 2],
        room: u32,
    ) -> Arc<Rings> {
        Arc::new(Rings {
            port: port.clone(),
            protection: protection.clone(),
            domain: domain.clone(),
            sent: sent.clone(),
            queue: queue.clone(),
            all: Mutex::new(All { known: HashMap::new(), last: 0, room }),
        })
    }

    /// One more.
    pub fn add(self: &Arc<Self>) -> Result<Own> {
        let depth = Depth { sends: 1, receives: RECEIVES, pieces: 1, inline: 0 };
        let at = Arena::new(&self.domain, RECEIVES as usize * stride(&self.port), Access::LOCAL_WRITE)?;
        let mut all = lock(&self.all);
        // Also for what those have left there that are gone: it is taken out with the next look.
        let needs = COMPLETIONS + RECEIVES * (all.known.len() as u32 + 2);
        if needs > all.room {
            let room = needs.next_power_of_two();
            self.queue.resize(room)?;
            all.room = room;
        }
        let pair = QueuePair::datagrams(&self.protection, &self.port, [&self.sent, &self.queue], depth, QKEY)?;
        let number = (1..).map(|k| all.last.wrapping_add(k)).find(|n| *n != 0 && !all.known.contains_key(n));
        all.last = number.unwrap_or(1);
        let receives = Arc::new(Receives { pair, at, number: all.last });
        (0..RECEIVES as usize).try_for_each(|place| receives.post(&self.port, place))?;
        all.known.insert(receives.number, receives.clone());
        Ok(Own { rings: self.clone(), receives })
    }

    /// That of this number, if it still is.
    pub fn of(&self, number: u32) -> Option<Arc<Receives>> {
        lock(&self.all).known.get(&number).cloned()
    }
}

/// One ring.
pub(super) struct Own {
    rings: Arc<Rings>,
    receives: Arc<Receives>,
}

impl Ring for Own {
    fn spot(&self) -> Spot {
        spot(&self.rings.port, &self.receives.pair)
    }
    fn bytes(&self) -> usize {
        self.receives.at.len()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Who receives there at this moment has it a moment longer.
        lock(&self.rings.all).known.remove(&self.receives.number);
    }
}
