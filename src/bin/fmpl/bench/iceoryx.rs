//! The rival of loans: iceoryx2, whose publishers lend and whose subscribers receive in place, in the same two processes and in the same
//! loop. (With the feature `iceoryx2`; its benchmarks measure the same.)

use super::rank::{Outcome, Rank};
use super::session::Contestant;

/// What `--against` calls it.
pub const NAME: &str = "iceoryx2";
/// What tells a rank that it is this rival's.
const AS_RIVAL: &str = "FMPL_BENCH_ICEORYX2";

/// Ranks that lend by iceoryx2.
pub fn rival() -> Result<Contestant, String> {
    if cfg!(feature = "iceoryx2") {
        return Ok(super::against::ours(NAME, &[(AS_RIVAL, "1".into())]));
    }
    Err(format!("{NAME}: this command is built without it; cargo build --release --features iceoryx2"))
}

/// Is this rank the rival's?
pub fn is_rival() -> bool {
    std::env::var_os(AS_RIVAL).is_some()
}

/// In turn, one way: handed over, and with the first and last line written and read.
#[cfg(feature = "iceoryx2")]
pub fn block(r: &Rank, n: usize, k: i64, warm: i64) -> Outcome {
    use iceoryx2::prelude::*;
    fn text(e: impl std::fmt::Debug) -> String {
        format!("iceoryx2: {e:?}")
    }
    let job = std::os::unix::process::parent_id();
    let node = NodeBuilder::new().create::<ipc::Service>().map_err(text)?;
    let service = |rank: i32| {
        let name = ServiceName::new(&format!("fmpl/bench/{job}/{n}/{rank}")).map_err(text)?;
        node.service_builder(&name).publish_subscribe::<[u8]>().open_or_create().map_err(text)
    };
    let (out, inn) = (service(r.rank)?, service(r.peer())?);
    let publisher = out.publisher_builder().initial_max_slice_len(n).create().map_err(text)?;
    let subscriber = inn.subscriber_builder().create().map_err(text)?;
    r.barrier()?;
    let last = (n - 8) / 8 * 8;
    let send = |stamp: Option<i64>| {
        let mut sample = publisher.loan_slice_uninit(n).map_err(text)?;
        if let Some(stamp) = stamp {
            let bytes = sample.payload_mut();
            for at in [0, last] {
                bytes[at..at + 8].iter_mut().zip(stamp.to_ne_bytes()).for_each(|(to, byte)| drop(to.write(byte)));
            }
        }
        // SAFETY: bytes, whatever they are; nobody looks at those that were not written.
        unsafe { sample.assume_init() }.send().map_err(text).map(drop)
    };
    let recv = |stamp: Option<i64>| loop {
        let Some(sample) = subscriber.receive().map_err(text)? else { continue };
        let Some(stamp) = stamp else { return Ok(()) };
        let bytes = sample.payload();
        let right = [0, last].iter().all(|at| bytes[*at..*at + 8] == stamp.to_ne_bytes());
        return if right { Ok(()) } else { Err(format!("other words than {stamp}")) };
    };
    let handed = super::loan::in_turn(r, k, warm, &|_| send(None), &|_| recv(None))?;
    let touched = super::loan::in_turn(r, k, warm, &|i| send(Some(i)), &|i| recv(Some(i)))?;
    r.barrier()?;
    Ok(vec![handed, touched])
}

/// Not without the feature, which [`rival`] says.
#[cfg(not(feature = "iceoryx2"))]
pub fn block(_: &Rank, _: usize, _: i64, _: i64) -> Outcome {
    rival().map(|_| Vec::new())
}
