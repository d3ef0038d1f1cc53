//! What ranks say and are answered, on one machine and on several.

use super::answers::VALUE_MAX;
use super::tree::KNOWN_MAX;
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
        // An MPI in the same process says it too.
        assert!(says(&mut s, 1, init).ends_with("rc=0\n"));
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

/// The servers of a root without ranks and of machines below it. `above[k]` is the machine above machine k, or none: the root.
struct Tree {
    /// The root first.
    servers: Vec<Server>,
    /// The server above, and the number of the branch there.
    above: Vec<(usize, usize)>,
}

impl Tree {
    /// Each machine with so many ranks.
    fn new(above: &[Option<usize>], ranks: u32) -> Tree {
        let size = above.len() * ranks as usize;
        let below = |k: Option<usize>| above.iter().filter(|a| **a == k).count();
        let mut servers = vec![Server::part(&[], size, below(None), false)];
        let (mut at, mut branches) = (vec![(0, 0)], vec![0; above.len() + 1]);
        for (k, over) in above.iter().enumerate() {
            let own: Vec<(u32, usize)> = (k as u32 * ranks..(k as u32 + 1) * ranks).map(|r| (r, 0)).collect();
            servers.push(Server::part(&own, size, below(Some(k)), true));
            let over = over.map_or(0, |a| a + 1);
            at.push((over, branches[over]));
            branches[over] += 1;
        }
        Tree { servers, above: at }
    }

    /// Carries words until there are none; how many.
    fn settle(&mut self) -> usize {
        let mut carried = 0;
        loop {
            let before = carried;
            for k in 1..self.servers.len() {
                let (over, branch) = self.above[k];
                for word in self.servers[k].words_above() {
                    assert!(self.servers[over].hear_below(branch, word));
                    carried += 1;
                }
                for word in self.servers[over].words_for(branch) {
                    assert!(self.servers[k].hear_above(word));
                    carried += 1;
                }
            }
            if carried == before {
                return carried;
            }
        }
    }

    fn says(&mut self, machine: usize, seat: usize, text: &str) -> String {
        let at_once = says(&mut self.servers[machine + 1], seat, text);
        self.settle();
        at_once + &says(&mut self.servers[machine + 1], seat, "")
    }

    fn all_say(&mut self, ranks: usize, text: &str) -> Vec<String> {
        let seats = (0..self.servers.len() - 1).flat_map(|m| (0..ranks).map(move |s| (m, s))).collect::<Vec<_>>();
        let mut said: Vec<String> = seats.iter().map(|(m, s)| self.says(*m, *s, text)).collect();
        for ((m, s), said) in seats.iter().zip(&mut said) {
            said.push_str(&self.says(*m, *s, ""));
        }
        said
    }
}

/// Machine 0 with 1 and 2 below it, 3 below 2, and 4 beside 0.
const SHAPE: [Option<usize>; 5] = [None, Some(0), Some(0), Some(2), None];

#[test]
fn a_tree_of_servers_is_as_one() {
    let mut t = Tree::new(&SHAPE, 2);
    for round in 0..3 {
        let joined = t.all_say(2, "cmd=init pmi_version=1\n");
        assert!(joined.iter().all(|a| a.contains("rc=0")), "{joined:?}");
        t.says(3, 1, &format!("cmd=put kvsname=fmpl key=k value=of{round}\n"));
        t.says(1, 0, "cmd=put kvsname=fmpl key=other value=b\n");
        let fence = t.all_say(2, "cmd=barrier_in\n");
        assert!(fence.iter().all(|a| a == "cmd=barrier_out\n"), "{fence:?}");
        let got = t.all_say(2, "cmd=get kvsname=fmpl key=k\n");
        assert!(got.iter().all(|a| a.contains(&format!(" value=of{round}\n"))), "{got:?}");
        let none = t.all_say(2, "cmd=get kvsname=fmpl key=nobody\n");
        assert!(none.iter().all(|a| a.contains("key_nobody_not_found")), "{none:?}");
        let fence = t.all_say(2, "cmd=barrier_in\n");
        assert!(fence.iter().all(|a| a == "cmd=barrier_out\n"), "{fence:?}");
        let left = t.all_say(2, "cmd=finalize\n");
        assert!(left.iter().all(|a| a == "cmd=finalize_ack again=1\n"), "{left:?}");
    }
}

#[test]
fn a_fence_of_a_tree_is_one_word_for_each_connection() {
    let mut t = Tree::new(&SHAPE, 8);
    t.all_say(8, "cmd=init pmi_version=1\n");
    t.says(3, 0, "cmd=put kvsname=fmpl key=k value=v\n");
    for server in &mut t.servers[1..] {
        (0..8).for_each(|seat| drop(says(server, seat, "cmd=barrier_in\n")));
    }
    let down = 2 * SHAPE.len();
    assert_eq!(
        t.settle(),
        2 * SHAPE.len() + 3 + down,
        "and what one has put, on three steps to the root, and then everywhere"
    );
    let ask_all = |t: &mut Tree, what: &str| {
        for server in &mut t.servers[1..] {
            (0..8).for_each(|seat| drop(says(server, seat, what)));
        }
        t.settle()
    };
    assert_eq!((ask_all(&mut t, "cmd=get key=k\n"), ask_all(&mut t, "cmd=get key=none\n")), (0, 0), "all is known");
    // Of much it goes up only. What all ask for is asked for once, by those who have not seen it pass.
    let value = "v".repeat(VALUE_MAX - 1);
    for (seat, k) in (0..KNOWN_MAX / VALUE_MAX + 8).map(|k| (k % 8, k)) {
        assert!(t.says(3, seat, &format!("cmd=put key=k{k} value={value}\n")).contains("rc=0"));
    }
    ask_all(&mut t, "cmd=barrier_in\n");
    assert_eq!(ask_all(&mut t, "cmd=get key=k7\n"), 2 * 2);
    assert!(t.says(4, 0, "cmd=get key=k8\n").contains(&value));
    assert!(t.says(4, 0, "cmd=get key=none\n").contains("key_none_not_found"));
}

#[test]
fn what_is_lost_on_one_machine_is_lost_on_all() {
    let stuck = |does: &dyn Fn(&mut Tree)| {
        let mut t = Tree::new(&SHAPE, 2);
        t.all_say(2, "cmd=init pmi_version=1\n");
        assert_eq!(t.says(1, 0, "cmd=barrier_in\n"), "");
        does(&mut t);
        t.settle();
        let told = t.says(1, 0, "");
        assert_eq!(t.says(4, 0, "cmd=barrier_in\n"), told, "who comes later is told the same");
        told
    };
    assert_eq!(stuck(&|t| t.servers[4].lose(1, "died")), "cmd=barrier_out rc=-1 msg=rank_7_died\n");
    assert_eq!(
        stuck(&|t| t.servers[3].lose_branch(0, "node_d_was_lost")),
        "cmd=barrier_out rc=-1 msg=node_d_was_lost\n"
    );
    let leaves = |t: &mut Tree| drop(says(&mut t.servers[5], 1, "cmd=finalize\n"));
    assert_eq!(stuck(&leaves), "cmd=barrier_out rc=-1 msg=rank_9_has_finalized\n");
}

#[test]
fn nobody_begins_again_before_all_have_joined() {
    let mut t = Tree::new(&[None, None], 1);
    assert!(t.says(0, 0, "cmd=init pmi_version=1\n").contains("rc=0"));
    t.says(0, 0, "cmd=finalize\n");
    assert!(t.says(0, 0, "cmd=init pmi_version=1\n").contains("not_all_ranks_have_joined"));
}

#[test]
fn words_that_nobody_says_there_are_noticed() {
    let mut s = Server::part(&[(0, 0)], 2, 1, true);
    assert!(
        !s.hear_below(0, Word::Release(1, None)) && !s.hear_below(0, Word::All(1)) && !s.hear_above(Word::Fence(1))
    );
    // Late ones are left alone.
    assert!(s.hear_above(Word::Release(7, None)) && s.hear_above(Word::Value(7, "k".into(), None)));
}
