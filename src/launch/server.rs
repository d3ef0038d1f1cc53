//! The launcher's side of PMI-1: the key-value store, the fence, and who has joined and left.
//!
//! No descriptors here: bytes of a rank go in, answers come out, so that every sequence of bytes can be tried on it.
//! A rank that sends what is not PMI-1 is cut off; nothing that a rank sends can make the launcher fail, nor hold more than
//! a bounded amount of memory for each rank.
//!
//! *Jobs one after the other.* Where the launcher allows it, ranks that have said finalize may say init again: they begin the next
//! [`Round`], which has keys and fences of its own, so that nothing of the last one is taken for new. A rank may be one round ahead
//! of the slowest, not more; so two rounds are kept.

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
    /// How often it has said init.
    round: usize,
    in_fence: bool,
    inbox: Inbox,
    outbox: Vec<u8>,
    stored: usize,
    appnum: usize,
}

/// What belongs to one init of all ranks, until they have all said finalize.
#[derive(Default)]
struct Round {
    store: HashMap<String, String>,
    in_fence: usize,
    /// Why no fence of it can be met any more, as it goes over the wire (no blanks).
    lost: Option<String>,
}

/// The state of a job's exchange.
pub(crate) struct Server {
    seats: Vec<Seat>,
    /// The round with an even number and the one with an odd number.
    rounds: [Round; 2],
    /// Why no fence of any round can be met from now on.
    lost: Option<String>,
    /// Ranks may say init again after finalize.
    again: bool,
}

impl Server {
    /// A job in which rank r runs the program number `appnums[r]`.
    pub(crate) fn new(appnums: &[usize]) -> Server {
        let seat = |appnum: &usize| Seat {
            stage: Stage::Fresh,
            round: 0,
            in_fence: false,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            stored: 0,
            appnum: *appnum,
        };
        Server { seats: appnums.iter().map(seat).collect(), rounds: Default::default(), lost: None, again: false }
    }

    /// The same, where ranks that have said finalize may say init again.
    pub(crate) fn of_many_rounds(appnums: &[usize]) -> Server {
        Server { again: true, ..Server::new(appnums) }
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
        // WayTaken out, so that a line can be borrowed from it while the answers change everything else.
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
            self.cut(rank);
        } else {
            self.seats[rank].inbox = inbox;
        }
        verdict
    }

    /// The rank is not listened to any more.
    pub(crate) fn cut(&mut self, rank: usize) {
        self.seats[rank].outbox.clear();
        self.lose(rank, "was_cut_off");
        self.seats[rank].stage = Stage::Cut;
    }

    /// The rank's connection is closed at its end.
    pub(crate) fn hung_up(&mut self, rank: usize) {
        match self.seats[rank].stage {
            Stage::Joined => {
                self.lose(rank, "has_left_without_finalize");
                self.seats[rank].stage = Stage::Cut;
            }
            // It says init no more.
            Stage::Left if self.again => self.lose(rank, "has_left_for_good"),
            _ => {}
        }
    }

    /// The rank will come to no fence any more, of whatever round: those who wait in one are told, and whoever comes to one later.
    pub(crate) fn lose(&mut self, rank: usize, why: &str) {
        self.leave_fence(rank);
        self.fail(&format!("rank_{rank}_{why}"));
    }

    fn leave_fence(&mut self, rank: usize) {
        let seat = &mut self.seats[rank];
        if std::mem::take(&mut seat.in_fence) {
            self.rounds[seat.round & 1].in_fence -= 1;
        }
    }

    /// No fence can be met any more, for this reason (no blanks).
    pub(crate) fn fail(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.to_owned());
        for parity in 0..2 {
            self.fail_round(parity, why);
        }
    }

    /// No fence of the even or the odd round can be met any more.
    fn fail_round(&mut self, parity: usize, why: &str) {
        let why = self.rounds[parity].lost.get_or_insert_with(|| why.to_owned()).clone();
        self.release(parity, &format!("cmd=barrier_out rc=-1 msg={why}\n"));
    }

    /// Whether something has made fences impossible.
    pub(crate) fn has_failed(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether somebody waits in a fence.
    pub(crate) fn in_fence(&self) -> bool {
        self.rounds.iter().any(|round| round.in_fence > 0)
    }

    /// The ranks that do not.
    pub(crate) fn not_in_fence(&self) -> Vec<u32> {
        (0..self.seats.len() as u32).filter(|r| !self.seats[*r as usize].in_fence).collect()
    }

    fn release(&mut self, parity: usize, word: &str) {
        for seat in self.seats.iter_mut().filter(|s| s.in_fence && s.round & 1 == parity) {
            seat.in_fence = false;
            seat.outbox.extend_from_slice(word.as_bytes());
        }
        self.rounds[parity].in_fence = 0;
    }

    /// Begins a round for a rank that has said init.
    fn begin(&mut self, rank: usize) {
        let round = self.seats[rank].round + 1;
        if self.seats.iter().all(|seat| seat.round < round) {
            // The first of the round: nobody is left in the one before the last.
            self.rounds[round & 1] = Round { lost: self.lost.clone(), ..Round::default() };
        }
        let seat = &mut self.seats[rank];
        (seat.stage, seat.round, seat.stored) = (Stage::Joined, round, 0);
    }

    /// May a rank say init again? Not where the launcher allows it to none, and not before all have come as far as it has.
    fn may_begin_again(&self, rank: usize) -> Result<(), &'static str> {
        match () {
            () if !self.again => Err("this_rank_has_joined_before"),
            () if self.seats[rank].stage != Stage::Left => Err("this_rank_has_not_said_finalize"),
            () if self.seats.iter().any(|s| s.round < self.seats[rank].round) => {
                Err("not_all_ranks_have_joined_the_last_time")
            }
            () => Ok(()),
        }
    }

    /// `None`: not a line that a rank in this stage may send.
    fn answer(&mut self, rank: usize, line: &Line) -> Option<Verdict> {
        let size = self.seats.len();
        if line.cmd() == "abort" {
            return Some(Verdict::Abort(line.number("exitcode").unwrap_or(1)));
        }
        if line.cmd() == "init" {
            let fresh = self.seats[rank].stage == Stage::Fresh;
            let allowed = match () {
                () if line.number::<u32>("pmi_version").is_none() && fresh => return None,
                () if line.number::<u32>("pmi_version") != Some(1) => Err("only_version_1"),
                () if fresh => Ok(()),
                () => self.may_begin_again(rank),
            };
            let how = match allowed {
                Ok(()) => {
                    self.begin(rank);
                    "0".to_owned()
                }
                Err(why) => format!("-1 msg={why}"),
            };
            let word = format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={how}\n");
            self.seats[rank].outbox.extend_from_slice(word.as_bytes());
            return Some(Verdict::Fine);
        }
        let seat = &mut self.seats[rank];
        let round = &mut self.rounds[seat.round & 1];
        let word = match (line.cmd(), seat.stage) {
            (_, Stage::Fresh | Stage::Left | Stage::Cut) => return None,
            ("get_maxes", _) => format!("cmd=maxes kvsname_max=256 keylen_max={KEY_MAX} vallen_max={VALUE_MAX}\n"),
            ("get_appnum", _) => format!("cmd=appnum appnum={}\n", seat.appnum),
            ("get_universe_size", _) => format!("cmd=universe_size size={size}\n"),
            ("get_my_kvsname", _) => "cmd=my_kvsname kvsname=fmpl\n".into(),
            ("put", _) => match put(&mut round.store, seat, line.get("key")?, line.get("value")?) {
                Ok(()) => "cmd=put_result rc=0 msg=success\n".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
            },
            ("get", _) => match line.get("key")? {
                "PMI_process_mapping" => format!("cmd=get_result rc=0 msg=success value=(vector,(0,1,{size}))\n"),
                key => match round.store.get(key) {
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
                round.in_fence += 1;
                let (parity, full) = (seat.round & 1, round.in_fence == size);
                if let Some(why) = &round.lost {
                    let word = format!("cmd=barrier_out rc=-1 msg={why}\n");
                    self.release(parity, &word);
                } else if full {
                    self.release(parity, "cmd=barrier_out\n");
                }
                return Some(Verdict::Fine);
            }
            ("finalize", _) => {
                seat.stage = Stage::Left;
                let again = if self.again { " again=1" } else { "" };
                seat.outbox.extend_from_slice(format!("cmd=finalize_ack{again}\n").as_bytes());
                let parity = seat.round & 1;
                self.leave_fence(rank);
                self.fail_round(parity, &format!("rank_{rank}_has_finalized"));
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
    fn rounds_follow_each_other_and_share_nothing() {
        let mut s = Server::of_many_rounds(&[0; 2]);
        let init = "cmd=init pmi_version=1 pmi_subversion=1\n";
        for round in 0..5 {
            assert!(says(&mut s, 0, init).ends_with("rc=0\n"), "{round}");
            // Keys and fences are those of the round, though the other rank is in the one before.
            assert!(says(&mut s, 0, "cmd=get kvsname=fmpl key=k\n").contains("rc=-1"));
            assert!(says(&mut s, 0, &format!("cmd=put kvsname=fmpl key=k value={round}\n")).contains("rc=0"));
            assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
            if round > 0 {
                let old = says(&mut s, 1, "cmd=get kvsname=fmpl key=k\n");
                assert!(old.ends_with(&format!("value={}\n", round - 1)), "{old}");
                assert_eq!(says(&mut s, 1, "cmd=barrier_in\n"), "cmd=barrier_out rc=-1 msg=rank_0_has_finalized\n");
                assert_eq!(says(&mut s, 1, "cmd=finalize\n"), "cmd=finalize_ack again=1\n");
            }
            assert!(says(&mut s, 1, init).ends_with("rc=0\n"));
            assert_eq!(says(&mut s, 1, "cmd=barrier_in\n"), "cmd=barrier_out\n");
            assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out\n");
            assert!(says(&mut s, 1, "cmd=get kvsname=fmpl key=k\n").ends_with(&format!("value={round}\n")));
            assert!(says(&mut s, 1, init).contains("rc=-1 msg=this_rank_has_not_said_finalize"));
            assert_eq!(says(&mut s, 0, "cmd=finalize\n"), "cmd=finalize_ack again=1\n");
        }
        // One round ahead, not two.
        assert!(says(&mut s, 0, init).ends_with("rc=0\n"));
        assert_eq!(says(&mut s, 0, "cmd=finalize\n"), "cmd=finalize_ack again=1\n");
        assert!(says(&mut s, 0, init).contains("rc=-1 msg=not_all_ranks_have_joined_the_last_time"));
        // Who has ended comes back in no round.
        assert_eq!(says(&mut s, 1, "cmd=finalize\n"), "cmd=finalize_ack again=1\n");
        assert!(says(&mut s, 1, init).ends_with("rc=0\n") && says(&mut s, 0, init).ends_with("rc=0\n"));
        assert_eq!(says(&mut s, 0, "cmd=barrier_in\n"), "");
        s.lose(1, "died");
        assert_eq!(says(&mut s, 0, ""), "cmd=barrier_out rc=-1 msg=rank_1_died\n");
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
            let mut s = Server::of_many_rounds(&[0; 4]);
            says(&mut s, 0, "cmd=init pmi_version=1\n");
            for (rank, bytes) in &chunks {
                if s.stage(*rank) != Stage::Cut {
                    let before = s.outbox(*rank).iter().filter(|b| **b == b'\n').count();
                    s.receive(*rank, bytes);
                    let after = s.outbox(*rank).iter().filter(|b| **b == b'\n').count();
                    prop_assert!(after <= before + 2 + bytes.iter().filter(|b| **b == b'\n').count());
                }
                for parity in 0..2 {
                    let waiting = s.seats.iter().filter(|s| s.in_fence && s.round & 1 == parity).count();
                    prop_assert_eq!(s.rounds[parity].in_fence, waiting);
                    prop_assert!(waiting < 4);
                }
            }
            prop_assert!(says(&mut s, 0, "cmd=put kvsname=k key=mine value=1\n").contains("rc=0"));
            prop_assert!(says(&mut s, 0, "cmd=get kvsname=k key=mine\n").contains("value=1"));
        }
    }
}
