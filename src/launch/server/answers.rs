//! What a rank is answered, line by line: joining, its keys, the fence, leaving.

use super::tree::Asker;
use super::{Round, Seat, Server, Stage, Verdict};
use crate::launch::place::ranges;
use crate::launch::wire::{self, Line};

/// The limits that are announced; as with Hydra and Slurm they count the NUL of a C string.
const KEY_MAX: usize = 64;
pub(super) const VALUE_MAX: usize = 1024;
/// What one rank may keep in the store, keys and values together.
const STORE_MAX: usize = 1 << 20;
/// Under which MPICH's programs ask where all ranks are.
const MAPPING: &str = "PMI_process_mapping";

impl Server {
    /// `None`: not a line that a rank in this stage may send.
    pub(super) fn answer(&mut self, rank: usize, line: &Line) -> Option<Verdict> {
        let seat = &self.seats[rank];
        let word = match (line.cmd(), seat.stage) {
            ("abort", _) => return Some(Verdict::Abort(line.number("exitcode").unwrap_or(1))),
            // One question at a time.
            _ if seat.asks => return None,
            ("init", _) => self.init(rank, line)?,
            (_, Stage::Fresh | Stage::Left | Stage::Cut) => return None,
            ("get_maxes", _) => {
                let adds = if self.ghosts.is_some() { " fmpl-adds=1" } else { "" };
                format!("cmd=maxes kvsname_max=256 keylen_max={KEY_MAX} vallen_max={VALUE_MAX}{adds}\n")
            }
            ("get_appnum", _) => format!("cmd=appnum appnum={}\n", seat.appnum),
            ("get_universe_size", _) => format!("cmd=universe_size size={}\n", self.size),
            ("get_my_kvsname", _) => "cmd=my_kvsname kvsname=fmpl\n".into(),
            ("put" | "fmpl-add", _) if self.wants.is_some() => {
                match self.charge(rank, line.get("key")?, line.get("value").unwrap_or_default()) {
                    Ok(()) => return Some(self.want(rank, line)),
                    Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
                }
            }
            ("fmpl-add", _) if self.ghosts.is_some() => {
                let (key, rank) = (line.get("key")?.to_owned(), self.seats[rank].rank);
                self.ghosts.iter_mut().for_each(|(_, adds)| adds.entry(key.clone()).or_default().push(rank));
                "cmd=put_result rc=0 msg=success\n".into()
            }
            ("put" | "fmpl-tell", _) => match self.put(rank, line.get("key")?, line.get("value")?) {
                Ok(()) => "cmd=put_result rc=0 msg=success\n".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
            },
            ("get", _) if self.wants.is_some() && !self.has(rank, line.get("key")?) => {
                return Some(self.want(rank, line));
            }
            ("get", _) => match self.get(rank, line.get("key")?) {
                Some(word) => word,
                None => return Some(Verdict::Fine),
            },
            ("barrier_in", _) if self.seats[rank].in_fence => return None,
            ("barrier_in", _) => {
                self.seats[rank].in_fence = true;
                self.come(self.seats[rank].round & 1);
                return Some(Verdict::Fine);
            }
            ("finalize", _) => {
                self.finalize(rank);
                return Some(Verdict::Fine);
            }
            (other, _) => format!("cmd={}_result rc=-1 msg=unknown_command\n", shown(other)),
        };
        self.seats[rank].outbox.extend_from_slice(word.as_bytes());
        Some(Verdict::Fine)
    }

    fn init(&mut self, rank: usize, line: &Line) -> Option<String> {
        let fresh = self.seats[rank].stage == Stage::Fresh;
        let joined = self.seats[rank].stage == Stage::Joined;
        let allowed = match line.number::<u32>("pmi_version") {
            None if fresh => return None,
            Some(1) if fresh || joined => Ok(()),
            Some(1) => self.may_begin_again(rank),
            _ => Err("only_version_1"),
        };
        // An MPI in the same process says it too, over the same connection.
        if allowed.is_ok() && !joined {
            self.begin(rank);
        }
        let how = allowed.map_or_else(|why| format!("-1 msg={why}"), |()| "0".to_owned());
        Some(format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={how}\n"))
    }

    /// Begins a round for a rank that has said init.
    fn begin(&mut self, rank: usize) {
        let round = self.seats[rank].round + 1;
        self.round(round);
        let seat = &mut self.seats[rank];
        (seat.stage, seat.round, seat.stored) = (Stage::Joined, round, 0);
    }

    /// May a rank say init again? Not where the launcher allows it to none, and not before all have come as far as it has.
    fn may_begin_again(&self, rank: usize) -> Result<(), &'static str> {
        let (seat, alone) = (&self.seats[rank], self.branches.is_empty() && self.above.is_none());
        match () {
            () if !self.again => Err("this_rank_has_joined_before"),
            () if self.seats.iter().any(|s| s.round < seat.round) || !(alone || self.rounds[seat.round & 1].met) => {
                Err("not_all_ranks_have_joined_the_last_time")
            }
            () => Ok(()),
        }
    }

    /// The question is left to the keeper.
    fn want(&mut self, rank: usize, line: &Line) -> Verdict {
        self.seats[rank].asks = true;
        // Keepers have one space of keys.
        let line = line.to_string().replace(" kvsname=fmpl", "");
        self.wants.iter_mut().for_each(|wants| wants.push((rank, line.clone())));
        Verdict::Fine
    }

    /// Is this a value that all were told?
    fn has(&mut self, rank: usize, key: &str) -> bool {
        key == MAPPING || self.seat_and_round(rank).1.store.contains_key(key)
    }

    /// Counts what a rank puts.
    fn charge(&mut self, rank: usize, key: &str, value: &str) -> Result<(), &'static str> {
        let (seat, bytes) = (&mut self.seats[rank], key.len() + value.len());
        match () {
            () if key.len() >= KEY_MAX => Err("key_too_long"),
            () if value.len() >= VALUE_MAX => Err("value_too_long"),
            () if seat.stored + bytes > STORE_MAX => Err("this_rank_has_put_too_much"),
            () => {
                seat.stored += bytes;
                Ok(())
            }
        }
    }

    fn put(&mut self, rank: usize, key: &str, value: &str) -> Result<(), &'static str> {
        // Is there anybody else who is to know?
        let shares = self.above.is_some() || !self.branches.is_empty();
        if self.seat_and_round(rank).1.store.contains_key(key) {
            return Err("duplicate_key");
        }
        self.charge(rank, key, value)?;
        let (_, round) = self.seat_and_round(rank);
        if shares {
            round.fresh.push((key.to_owned(), value.to_owned()));
        }
        round.store.insert(key.to_owned(), value.to_owned());
        self.ghosts.iter().for_each(|(ghosts, _)| ghosts.is_put(key, value));
        Ok(())
    }

    /// `None`: above is asked; the answer comes later.
    fn get(&mut self, rank: usize, key: &str) -> Option<String> {
        if key == MAPPING {
            return Some(format!("cmd=get_result rc=0 msg=success value={}\n", self.mapping));
        }
        let below = self.above.is_some();
        let (seat, round) = self.seat_and_round(rank);
        match round.store.get(key) {
            None if below && round.lacks => {
                seat.asks = true;
                let number = seat.round;
                self.ask(number, key.to_owned(), Asker::Seat(rank));
                None
            }
            Some(value) => Some(found(key, Some(value))),
            None => Some(found(key, self.of_ghosts(key).as_deref())),
        }
    }

    /// What nobody has put: who has added himself under the key, or what a rank would have put that is no process.
    fn of_ghosts(&self, key: &str) -> Option<String> {
        let (ghosts, adds) = self.ghosts.as_ref()?;
        let Some(added) = adds.get(key) else { return ghosts.piece(key, VALUE_MAX - 1) };
        let mut ranks = added.clone();
        ranks.sort_unstable();
        wire::pieces(ranges(ranks).as_bytes(), VALUE_MAX - 1).into_iter().next()
    }

    fn finalize(&mut self, rank: usize) {
        let again = if self.again { " again=1" } else { "" };
        let seat = &mut self.seats[rank];
        seat.stage = Stage::Left;
        seat.outbox.extend_from_slice(format!("cmd=finalize_ack{again}\n").as_bytes());
        let (parity, why) = (seat.round & 1, format!("rank_{}_has_finalized", seat.rank));
        self.leave_fence(rank);
        self.fail_round(parity, &why);
    }

    fn seat_and_round(&mut self, rank: usize) -> (&mut Seat, &mut Round) {
        let seat = &mut self.seats[rank];
        let round = &mut self.rounds[seat.round & 1];
        (seat, round)
    }
}

/// The answer to who asks for a key.
pub(crate) fn found(key: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
        None => format!("cmd=get_result rc=-1 msg=key_{}_not_found value=unknown\n", shown(key)),
    }
}

/// As much of a word as fits a message.
fn shown(word: &str) -> String {
    word.chars().take(KEY_MAX).collect()
}
