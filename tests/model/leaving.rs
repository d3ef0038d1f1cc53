//! The end of a team: a member that has freed the communicator uses its memory no more, and the first member, in whose region that lies, gives
//! it back when all have; the next communicator in the same unit is no trouble for that.

use crate::stage::model;
use fmpl::base::bytes::Room;
use fmpl::coll::model::Member;
use fmpl::p2p::model::{Terms, World};

/// Two ranks that know each other do `body`, each with its number.
fn ranks(name: &str, body: impl Fn(World, usize) + Copy + Send + Sync + 'static) {
    model(name, Terms { meet: true, ..Terms::default() }, move |w| {
        w.know_each_other();
        let both = [0, 1].map(|me| w.spawn(me, move || body(w, me)));
        both.into_iter().for_each(|rank| rank.join().expect("a rank"));
    });
}

/// Payload in a flag's line, and in cells.
const LENGTHS: [usize; 2] = [8, 64];

/// A broadcast of this byte, `len` times.
fn bcast(m: &Member, byte: u8, len: usize, root: usize) {
    let mut v = vec![if m.me() == root { byte } else { 0 }; len];
    m.bcast(Room::of(&mut v), root).expect("a broadcast");
    assert_eq!(v, vec![byte; len], "at {}", m.me());
}

fn leaves_after(name: &str, call: impl Fn(&Member) + Copy + Send + Sync + 'static) {
    ranks(name, move |w, me| {
        let member = Member::joins(w, me, 0);
        call(&member);
        member.leaves();
        member.ends();
    });
}

#[test]
fn leaves_after_a_broadcast() {
    leaves_after("leaves_after_a_broadcast", |m| (1..).zip(LENGTHS).for_each(|(byte, len)| bcast(m, byte, len, 0)));
}

#[test]
fn leaves_after_its_own_broadcast() {
    leaves_after("leaves_after_its_own_broadcast", |m| bcast(m, 1, LENGTHS[1], 1));
}

#[test]
fn leaves_after_a_barrier() {
    leaves_after("leaves_after_a_barrier", |m| m.barrier().expect("a barrier"));
}

/// The first team's memory goes when its members are in the second already.
#[test]
fn leaves_for_the_next_team_in_its_place() {
    ranks("leaves_for_the_next_team_in_its_place", |w, me| {
        let first = Member::joins(w, me, 0);
        bcast(&first, 1, LENGTHS[0], 0);
        first.leaves();
        let second = Member::joins(w, me, 1);
        bcast(&second, 2, LENGTHS[0], 1);
        first.ends();
        second.leaves();
        second.ends();
    });
}
