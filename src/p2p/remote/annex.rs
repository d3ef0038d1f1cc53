//! Messages by the annex: their bytes and their line leave together, and wait for nothing.

use super::*;
use crate::fabric::network::Piece;

impl Sender {
    /// Could the message go by the annex now?
    pub(in crate::p2p) fn fits_annex(&self) -> bool {
        self.lane.remote().is_some_and(|remote| remote.has_part(self.len) && !self.is_chained())
    }

    fn is_chained(&self) -> bool {
        self.lane.progress(self.slot).send_flags.load(Ordering::Relaxed) & SEND_CHAIN != 0
    }

    /// Sends the message by the annex. `false`: it is not sent.
    pub(in crate::p2p) fn by_annex(&mut self, remote: &Remote) -> bool {
        if self.is_chained() {
            return false;
        }
        let Some(part) = remote.take_part(self.slot, self.seq, self.len) else { return false };
        let landed = self.put_in_annex(remote, part).is_ok();
        if landed {
            self.sent(WayTaken::RemoteShort);
        } else {
            remote.leave_part(part);
        }
        landed
    }

    fn put_in_annex(&self, remote: &Remote, part: Part) -> Result<(), Error> {
        let region = match self.data.form() {
            Form::Contiguous(run) if self.len > remote.link.limits().copy_most as usize => {
                registered(remote, run, false).map(|region| (run, region))
            }
            _ => None,
        };
        let bounce = if region.is_none() { Some(remote.fabric().bounce()?) } else { None };
        let (run, lkey) = match (&region, &bounce) {
            (Some((run, region)), _) => (*run, region.lkey()),
            (_, Some(bounce)) => {
                let run = bounce.run().first(self.len);
                Cursor::new(self.data, 0).gather(run);
                (run, bounce.arena().region().lkey())
            }
            _ => return Ok(()),
        };
        let piece = Piece { addr: run.ptr() as u64, len: run.len() as u32, lkey };
        let land = Land::new(self.seq, self.got(), Kind::RemoteAnnex, 0, self.lane.epoch);
        let land = if self.now { land.now() } else { land };
        // SAFETY: registered, and there, until this is over.
        unsafe { remote.publish_by_annex((self.slot, self.seq), land, part, piece) }
    }
}
