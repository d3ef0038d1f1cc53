//! A claim of a receive of any index may come when its message is received, and another receive of any index is posted: it must not take
//! that one, since nobody would look at it before it is waited for.

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes};
use fmpl::lane::remote::{Ask, Asked};

/// Rank 0 claims for a message that rank 1 has received long ago, while rank 1 has a receive of any index that it does not look at: that is
/// still there for the synchronous message which comes then.
pub fn claims_late() {
    init(16);
    mode(-1);
    let (me, mut got) = (rank(), [0; 8]);
    for round in 0..20u8 {
        if me == 0 {
            send(&[1; 8], 1, 3);
            // Rank 1 has received it, and has posted.
            recv(&mut got, 1, 4);
            let endpoint = fmpl::p2p::endpoint::endpoint().expect("in a job");
            let (lane, slot) = endpoint.resolve(fmpl::p2p::COMM_WORLD, 1, 3).expect("a lane");
            let asked = Asked { what: Ask::Claim, slot, seq: u64::from(round) + 1, at: 0 };
            let remote = lane.remote().expect("on another node");
            let answer = remote.ask_for(asked, || true).expect("an answer");
            assert_eq!(answer.map(|[used, _]| used), Some(0), "round {round}: received, and nothing was taken");
            // Waited for by nobody there.
            send(&[2; 8], 1, 5);
            send(&[3; 8], 1, 6);
        } else {
            recv(&mut got, 0, 3);
            let mut any = [0; 8];
            irecv(&mut any, 0, ANY);
            send(&got, 0, 4);
            recv(&mut got, 0, 6);
            assert_eq!(got, [3; 8]);
            irecv_wait(0, ANY);
            assert_eq!((received(0, ANY), any), ((8, 5), [2; 8]));
        }
    }
    finalize();
}

pub fn is_late() {
    let Some(offered) = crate::choice::offered() else { return };
    Job::new(2, "claims late").nodes(Nodes::Cyclic(2)).env("FMPL_NETWORK", format!("ofi:{offered}")).run();
}
