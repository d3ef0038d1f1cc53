//! What the keepers' words take on this machine, measured on two real ones: for a model of jobs that are larger than
//! any machine here.

use super::ask::Asks;
use crate::base::error::{Code, Error, Result, error};
use crate::base::sorting::sort_by;
use crate::launch::place::Node;
use crate::launch::{Launch, id};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::Instant;

/// Nanoseconds over the loopback, of both sides together.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// A connection that is made, greeted and closed.
    pub greeting: f64,
    /// The proofs after that, until it can be used.
    pub introduction: f64,
    /// A question and its answer on it.
    pub question: f64,
}

/// Times of each that are measured; the median counts.
const TIMES: usize = 400;

/// Measures them.
pub fn measure() -> Result<Measured> {
    let (here, id) = (Node::here()?, id::create()?);
    let root = id::place(&id, 0, 2)?;
    let (other, guest) = (id::place(&id, 1, 2)?, id::place(&id, 1, 2)?);
    std::thread::scope(|s| {
        let second = s.spawn(|| Launch::meet(other, here.clone().pretending(1))?.finalize());
        let first = Launch::meet(root, here.clone().pretending(0))?;
        let measured = talk(Asks::new(guest));
        first.finalize()?;
        second.join().map_err(|_| Error::new(Code::System, "measuring keepers: a thread has ended"))??;
        measured
    })
}

fn talk(mut asks: Asks) -> Result<Measured> {
    let failed = |e: String| error!(Code::System, "measuring keepers: {e}");
    let at = *asks
        .place()
        .addresses()
        .ok()
        .and_then(|all| all.first().copied())
        .as_ref()
        .ok_or_else(|| failed("no address".into()))?;
    let greeting = median(|| {
        let stream = TcpStream::connect(at).map_err(|e| failed(e.to_string()))?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).map_err(|e| failed(e.to_string()))?;
        Ok(())
    })?;
    let met = median(|| asks.place().visit(at).map(|_| ()).map_err(|_| failed("it does not let a guest in".into())))?;
    let question = median(|| {
        asks.ask_at(&at.to_string(), "cmd=get key=nothing to=0")
            .map(|_| ())
            .map_err(|_| failed("it does not answer".into()))
    })?;
    Ok(Measured { greeting, introduction: (met - greeting).max(0.), question })
}

fn median(mut once: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut all = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let since = Instant::now();
        once()?;
        all.push(since.elapsed().as_nanos() as f64);
    }
    sort_by(&mut all, f64::total_cmp);
    Ok(all[TIMES / 2])
}
