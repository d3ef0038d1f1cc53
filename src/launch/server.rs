//! The launcher's side of PMI-1: the key-value store, the fence, and who has joined and left.
//!
//! No descriptors here: bytes of a rank go in, answers come out, so that every sequence of bytes can be tried on it.
//! A rank that sends what is not PMI-1 is cut off; nothing that a rank sends can make the launcher fail, nor hold more than
//! a bounded amount of memory for each rank.

use super::wire::{self, Inbox, Line};
use std::collections::HashMap;

/// The limits that are announced; as with Hydra and Slurm they count the NUL of a C string.
const KEY_MAX: usize = 64;
const VALUE_MAX: usize = 1024;
/// What one rank may keep in the store, keys and values together.
const STORE_MAX: usize = 1 << 20;
/// Answers that a rank has not read; beyond this its questions have to wait.
const OUTBOX_MAX: usize = 64 << 10;

/// How far a rank is in the life of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not said a word. Programs that use no message passing never do.
    Fresh,
    /// It said init.
    Joined,
    /// It said finalize.
    Left,
    /// It sent something that is not PMI-1, or hung up after init.
    Cut,
}

/// What a rank's bytes mean for the job as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// The rank asks for the end of the job, with this exit code.
    Abort(i32),
    /// This is not PMI-1; the rank is cut off.
    Garbage(String),
}

struct Seat {
    stage: Stage,
    in_fence: bool,
    inbox: Inbox,
    outbox: Vec<u8>,
    stored: usize,
    appnum: usize,
}

/// The state of a job's exchange.
pub(crate) struct Server {
    seats: Vec<Seat>,
    store: HashMap<String, String>,
    in_fence: usize,
    /// Why no fence can be met any more, as it goes over the wire (no blanks).
    lost: Option<String>,
}

impl Server {
    /// A job in which rank r runs the program number `appnums[r]`.
    pub(crate) fn new(appnums: &[usize]) -> Server {
        let seat = |appnum: &usize| Seat {
            stage: Stage::Fresh,
            in_fence: false,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            stored: 0,
            appnum: *appnum,
        };
        Server { seats: appnums.iter().map(seat).collect(), store: HashMap::new(), in_fence: 0, lost: None }
    }

    pub(crate) fn stage(&self, rank: usize) -> Stage {
        self.seats[rank].stage
    }

    /// Answers on their way to a rank; whoever sends them removes them.
    pub(crate) fn outbox(&mut self, rank: usize) -> &mut Vec<u8> {
        &mut self.seats[rank].outbox
    }

    /// Whether there are answers for the rank to be sent.
    pub(crate) fn has_answers(&self, rank: usize) -> bool {
        !self.seats[rank].outbox.is_empty()
    }

    /// Whether more of the rank's bytes may be read now.
    pub(crate) fn listens_to(&self, rank: usize) -> bool {
        self.seats[rank].outbox.len() < OUTBOX_MAX
    }

    /// Takes bytes that a rank has sent.
    pub(crate) fn receive(&mut self, rank: usize, bytes: &[u8]) -> Verdict {
        // Taken out, so that a line can be borrowed from it while the answers change everything else.
        let mut inbox = std::mem::take(&mut self.seats[rank].inbox);
        inbox.push(bytes);
        let verdict = loop {
            match inbox.line() {
                Ok(None) => break Verdict::Fine,
                Err(wire::TooLong) => break Verdict::Garbage(wire::shown(inbox.rest())),
                Ok(Some(text)) => match Line::parse(text).and_then(|line| self.answer(rank, &line)) {
                    Some(Verdict::Fine) => {}
                    Some(other) => break other,
                    None => break Verdict::Garbage(wire::shown(text)),
                },
            }
        };
        if let Verdict::Garbage(_) = verdict {
            self.seats[rank].outbox.clear();
            self.lose(rank, "was_cut_off");
            self.seats[rank].stage = Stage::Cut;
        } else {
            self.seats[rank].inbox = inbox;
        }
        verdict
    }

    /// The rank's connection is closed at its end.
    pub(crate) fn hung_up(&mut self, rank: usize) {
        if self.seats[rank].stage == Stage::Joined {
            self.lose(rank, "has_left_without_finalize");
            self.seats[rank].stage = Stage::Cut;
        }
    }

    /// The rank will come to no fence any more: those who wait in one are told, and whoever comes to one later.
    pub(crate) fn lose(&mut self, rank: usize, why: &str) {
        if self.seats[rank].in_fence {
            self.seats[rank].in_fence = false;
            self.in_fence -= 1;
        }
        self.fail(&format!("rank_{rank}_{why}"));
    }

    /// No fence can be met any more, for this reason (no blanks).
    pub(crate) fn fail(&mut self, why: &str) {
        let why = self.lost.get_or_insert_with(|| why.to_owned()).clone();
        self.release(&format!("cmd=barrier_out rc=-1 msg={why}\n"));
    }

    /// Whether something has made fences impossible.
    pub(crate) fn has_failed(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether somebody waits in a fence.
    pub(crate) fn in_fence(&self) -> bool {
        self.in_fence > 0
    }

    /// The ranks that do not.
    pub(crate) fn not_in_fence(&self) -> Vec<u32> {
        (0..self.seats.len() as u32).filter(|r| !self.seats[*r as usize].in_fence).collect()
    }

    fn release(&mut self, word: &str) {
        for seat in self.seats.iter_mut().filter(|s| s.in_fence) {
            seat.in_fence = false;
            seat.outbox.extend_from_slice(word.as_bytes());
        }
        self.in_fence = 0;
    }

    /// `None`: not a line that a rank in this stage may send.
    fn answer(&mut self, rank: usize, line: &Line) -> Option<Verdict> {
        let size = self.seats.len();
        let seat = &mut self.seats[rank];
        if line.cmd() == "abort" {
            return Some(Verdict::Abort(line.number("exitcode").unwrap_or(1)));
        }
        let word = match (line.cmd(), seat.stage) {
            ("init", Stage::Fresh) if line.number::<u32>("pmi_version")? == 1 => {
                seat.stage = Stage::Joined;
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".into()
            }
            ("init", Stage::Fresh) => {
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 msg=only_version_1\n".into()
            }
            ("init", _) => {
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 msg=this_rank_has_joined_before\n".into()
            }
            (_, Stage::Fresh | Stage::Left | Stage::Cut) => return None,
            ("get_maxes", _) => format!("cmd=maxes kvsname_max=256 keylen_max={KEY_MAX} vallen_max={VALUE_MAX}\n"),
            ("get_appnum", _) => format!("cmd=appnum appnum={}\n", seat.appnum),
            ("get_universe_size", _) => format!("cmd=universe_size size={size}\n"),
            ("get_my_kvsname", _) => "cmd=my_kvsname kvsname=fmpl\n".into(),
            ("put", _) => match put(&mut self.store, seat, line.get("key")?, line.get("value")?) {
                Ok(()) => "cmd=put_result rc=0 msg=success\n".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
            },
            ("get", _) => match line.get("key")? {
                "PMI_process_mapping" => format!("cmd=get_result rc=0 msg=success value=(vector,(0,1,{size}))\n"),
                key => match self.store.get(key) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                    None => format!(
                        "cmd=get_result rc=-1 msg=key_{}_not_found value=unknown\n",
                        key.chars().take(KEY_MAX).collect::<String>()
                    ),
                },
            },
            ("barrier_in", _) if seat.in_fence => return None,
            ("barrier_in", _) => {
                seat.in_fence = true;
                self.in_fence += 1;
                if let Some(why) = &self.lost {
                    let word = format!("cmd=barrier_out rc=-1 msg={why}\n");
                    self.release(&word);
                } else if self.in_fence == size {
                    self.release("cmd=barrier_out\n");
                }
                return Some(Verdict::Fine);
            }
            ("finalize", _) => {
                seat.stage = Stage::Left;
                seat.outbox.extend_from_slice(b"cmd=finalize_ack\n");
                self.lose(rank, "has_finalized");
                return Some(Verdict::Fine);
            }
            (other, _) => {
                format!("cmd={}_result rc=-1 msg=unknown_command\n", other.chars().take(KEY_MAX).collect::<String>())
            }
        };
        seat.outbox.extend_from_slice(word.as_bytes());
        Some(Verdict::Fine)
    }
}

fn put(store: &mut HashMap<String, String>, seat: &mut Seat, key: &str, value: &str) -> Result<(), &'static str> {
    let bytes = key.len() + value.len();
    match () {
        () if key.len() >= KEY_MAX => Err("key_too_long"),
        () if value.len() >= VALUE_MAX => Err("value_too_long"),
        () if store.contains_key(key) => Err("duplicate_key"),
        () if seat.stored + bytes > STORE_MAX => Err("this_rank_has_put_too_much"),
        () => {
            seat.stored += bytes;
            store.insert(key.to_owned(), value.to_owned());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn says(s: &mut Server, rank: usize, text: &str) -> String {
        assert_eq!(s.receive(rank, text.as_bytes()), Verdict::Fine);
        String::from_utf8(std::mem::take(s.outbox(rank))).unwrap()
    }

    fn joined(size: usize) -> Server {
        let mut s = Server::new(&vec![0; size]);
        for r in 0..size {
            assert!(says(&mut s, r, "cmd=init pmi_version=1 pmi_subversion=1\n").ends_with("rc=0\n"));
        }
        s
    }

    #[test]
    fn values_and_fences() {
        let mut s = joined(2);
        assert_eq!(says(&mut s, 0, "cmd=put kvsname=fmpl key=k value=v\n"), "cmd=put_result rc=0 msg=success\n");
        assert!(says(&mut s, 1, "cmd=put kvsname=fmpl key=k value=w\n").contains("rc=-1 msg=duplicate_key"));
        assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
        assert_eq!(says(&mut s, 1, "cmd=barrier_in\n"), "cmd=barrier_out\n");
        assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out\n");
        assert_eq!(says(&mut s, 1, "cmd=get kvsname=fmpl key=k\n"), "cmd=get_result rc=0 msg=success value=v\n");
        assert_eq!(
            says(&mut s, 1, "cmd=get kvsname=fmpl key=no\n"),
            "cmd=get_result rc=-1 msg=key_no_not_found value=unknown\n"
        );
        assert!(says(&mut s, 1, "cmd=get kvsname=fmpl key=PMI_process_mapping\n").contains("value=(vector,(0,1,2))"));
        assert!(says(&mut s, 1, "cmd=spawn_it\n").contains("cmd=spawn_it_result rc=-1"));
        assert_eq!(says(&mut s, 0, "cmd=finalize\n"), "cmd=finalize_ack\n");
        assert!(says(&mut s, 0, "cmd=init pmi_version=1\n").contains("rc=-1"));
        assert_eq!((s.stage(0), s.stage(1)), (Stage::Left, Stage::Joined));
    }

    #[test]
    fn a_lost_rank_ends_the_fences_of_the_others() {
        let mut s = joined(3);
        assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
        s.lose(2, "died");
        assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out rc=-1 msg=rank_2_died\n");
        assert_eq!(says(&mut s, 1, "cmd=barrier_in\n"), "cmd=barrier_out rc=-1 msg=rank_2_died\n");
        let mut s = joined(2);
        assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
        assert_eq!(says(&mut s, 1, "cmd=finalize\n"), "cmd=finalize_ack\n");
        assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out rc=-1 msg=rank_1_has_finalized\n");
    }

    #[test]
    fn no_rank_can_fill_the_store() {
        let mut s = joined(2);
        let value = "v".repeat(1000);
        let refused = (0..2000)
            .filter(|i| says(&mut s, 0, &format!("cmd=put kvsname=fmpl key=k{i} value={value}\n")).contains("too_much"))
            .count();
        assert!((900..1000).contains(&refused), "{refused}");
        assert!(says(&mut s, 1, "cmd=put kvsname=fmpl key=mine value=1\n").contains("rc=0"));
    }

    #[test]
    fn what_is_not_pmi_cuts_the_rank_off() {
        for bad in
            ["\0\0\0\n", "hello\n", "cmd=finalize\n", "cmd=get_maxes\n", "cmd=init\n", &"x".repeat(wire::LINE_MAX + 1)]
        {
            let mut s = Server::new(&[0, 0]);
            says(&mut s, 0, "cmd=init pmi_version=1\n");
            assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
            assert!(matches!(s.receive(1, bad.as_bytes()), Verdict::Garbage(_)), "{bad:?}");
            assert_eq!(s.stage(1), Stage::Cut);
            assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out rc=-1 msg=rank_1_was_cut_off\n");
        }
    }

    proptest! {
        /// Whatever ranks send, the others' exchange goes on, and every whole question gets at most one answer.
        #[test]
        fn any_bytes_leave_the_others_alone(
            chunks in proptest::collection::vec((1usize..4, prop_oneof![
                Just(b"cmd=init pmi_version=1\n".to_vec()), Just(b"cmd=barrier_in\n".to_vec()), Just(b"cmd=finalize\n".to_vec()),
                Just(b"cmd=put kvsname=k key=a value=b\n".to_vec()), Just(b"cmd=get key=a\n".to_vec()), Just(b"cmd=abort\n".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..100),
            ]), 0..60),
        ) {
            let mut s = Server::new(&[0; 4]);
            says(&mut s, 0, "cmd=init pmi_version=1\n");
            for (rank, bytes) in &chunks {
                if s.stage(*rank) != Stage::Cut {
                    let before = s.outbox(*rank).iter().filter(|b| **b == b'\n').count();
                    s.receive(*rank, bytes);
                    let after = s.outbox(*rank).iter().filter(|b| **b == b'\n').count();
                    prop_assert!(after <= before + 2 + bytes.iter().filter(|b| **b == b'\n').count());
                }
                prop_assert_eq!(s.in_fence, s.seats.iter().filter(|s| s.in_fence).count());
                prop_assert!(s.in_fence < 4);
            }
            prop_assert!(says(&mut s, 0, "cmd=put kvsname=k key=mine value=1\n").contains("rc=0"));
            prop_assert!(says(&mut s, 0, "cmd=get kvsname=k key=mine\n").contains("value=1"));
        }
    }
}
