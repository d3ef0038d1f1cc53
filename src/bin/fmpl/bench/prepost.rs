//! Receives posted ahead, from 16 to 30 000 of them: what each post costs, and what a send costs that matches one of them, in the
//! order of the posts from the first, and in the reverse order from the last, where a queue has to be searched. Up to 600 are timed.

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "prepost",
    about: "16 to 30 000 receives posted ahead: time per post, and one-way of a send that matches one, in order and in reverse",
    ranks: 2,
    indices: 30_002,
    figures: &[Figure::time("post", "ns", 1.0), Figure::time("one-way", "ns", 1.0)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let counts = if o.counts.is_empty() { vec![16, 600, 4096, 30_000] } else { o.counts.clone() };
    let mut cases = Vec::new();
    for n in counts {
        for (order, reverse) in [("in order", 0), ("reverse", 1)] {
            let samples = n.min(600);
            let repeat = (2000 / n).max(1);
            let command = format!("prepost {n} {samples} {reverse} {repeat}");
            cases.push(Case::counted(format!("{n} {order}"), n, command).blocks(if n > 1000 { 3 } else { 15 }));
        }
    }
    cases
}

/// `prepost N SAMPLES REVERSE REPEAT`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, m) = (a[0] as i32, a[1] as i32);
    r.need(n as usize * 8 + 8);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let slot = |i: i32| i as usize * 8;
    let (mut post, mut way) = (0.0, 0.0);
    for _ in 0..a[3] {
        let mut done = vec![false; n as usize];
        if r.rank == 1 {
            let t0 = now();
            for i in 0..n {
                r.irecv(r.rb.part(slot(i), 8), 0, i)?;
            }
            post += now() - t0;
            r.send(r.sb.part(0, 0), 0, n)?;
        } else {
            r.recv(r.rb.part(0, 0), 1, n)?;
        }
        let t0 = now();
        for s in 0..m {
            let i = if a[2] != 0 { n - 1 - s } else { s };
            done[i as usize] = true;
            if r.rank == 0 {
                r.sb.stamp(0, 8, i as i64);
                r.send(r.sb.part(0, 8), 1, i)?;
                r.recv(r.rb.part(0, 8), 1, n + 1)?;
            } else {
                r.irecv_wait(0, i)?;
                r.rb.check(slot(i), 8, i as i64)?;
                r.send(r.sb.part(0, 8), 0, n + 1)?;
            }
        }
        way += now() - t0;
        for i in (0..n).filter(|i| !done[*i as usize]) {
            if r.rank == 0 { r.send(r.sb.part(0, 8), 1, i)? } else { r.irecv_wait(0, i)? }
        }
        if r.rank == 0 { r.recv(r.rb.part(0, 0), 1, n + 1)? } else { r.send(r.sb.part(0, 0), 0, n + 1)? }
    }
    let mut figure = [post / (n as f64 * a[3] as f64)];
    if r.rank == 1 {
        r.send_figures(&figure, 0)?
    } else {
        r.recv_figures(&mut figure, 1, 0)?
    }
    Ok(vec![figure[0], way / (m as i64 * a[3]) as f64 / 2.0])
}
