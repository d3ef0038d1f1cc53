//! A rank of FMPL under the driver: sleeps in a read of its fifo until a command line comes, runs the block it names, and rank 0
//! answers with the figures. `peer.c` is the same program in MPI calls.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fmpl::base::bytes::{Room, Scratch};

use super::calls::Calls;
use super::offset::HEAP;

/// What a block gives: its figures in the order of the benchmark's table, times in nanoseconds; or what went wrong.
pub type Outcome = Result<Vec<f64>, String>;

/// Memory from the heap, so far behind a page, every page touched. It is never given back, so that whoever has a part of it (a request,
/// say, that a block which has failed left behind) may use that as long as it likes.
pub struct Buffer {
    /// From a page on.
    room: Room<'static>,
    behind: usize,
}

const PAGE: usize = 4096;

impl Buffer {
    fn new(bytes: usize, fill: u8) -> Buffer {
        let memory: &'static Scratch = Box::leak(Box::new(Scratch::new(bytes + PAGE)));
        let room = memory.room().part(memory.room().as_ptr().align_offset(PAGE), bytes);
        room.fill(fill);
        Buffer { room, behind: 0 }
    }

    /// `n` bytes from `offset` on.
    #[inline]
    pub fn part(&self, offset: usize, n: usize) -> Room<'static> {
        self.room.part(self.behind + offset, n)
    }

    /// Writes the first and the last of `n` bytes at `offset`.
    #[inline]
    pub fn stamp(&self, offset: usize, n: usize, i: i64) {
        let part = self.part(offset, n);
        part.byte(0).store(i as u8, Ordering::Relaxed);
        part.byte(n - 1).store(i as u8, Ordering::Relaxed);
    }

    /// Checks the first and the last of `n` bytes at `offset`.
    #[inline]
    pub fn check(&self, offset: usize, n: usize, i: i64) -> Result<(), String> {
        let part = self.part(offset, n);
        let (first, last) = (part.byte(0).load(Ordering::Relaxed), part.byte(n - 1).load(Ordering::Relaxed));
        if first == i as u8 && last == i as u8 { Ok(()) } else { Err(wrong(first, last, i)) }
    }
}

#[cold]
fn wrong(first: u8, last: u8, i: i64) -> String {
    format!("wrong bytes at message {i}: first {first}, last {last}, expected {}", i as u8)
}

/// One rank, with its buffers.
pub struct Rank {
    /// The C interface.
    calls: Calls,
    /// This rank.
    pub rank: i32,
    /// The number of ranks.
    pub size: i32,
    /// What is sent.
    pub sb: Buffer,
    /// What is received.
    pub rb: Buffer,
    /// Where they lie: so many bytes behind a page.
    pub offset: [usize; 2],
}

impl Deref for Rank {
    type Target = Calls;
    #[inline]
    fn deref(&self) -> &Calls {
        &self.calls
    }
}

static SIZE: AtomicUsize = AtomicUsize::new(1);

/// The number of ranks.
pub fn size() -> usize {
    SIZE.load(Ordering::Relaxed)
}

impl Rank {
    /// The buffers have at least `bytes` each, where this block wants them.
    pub fn need(&mut self, bytes: usize) {
        let room = bytes + self.offset[0].max(self.offset[1]);
        if room > self.sb.room.len() {
            self.sb = Buffer::new(room, 1);
            self.rb = Buffer::new(room, 2);
        }
        [self.sb.behind, self.rb.behind] = self.offset;
    }

    /// The other rank of a pair.
    pub fn peer(&self) -> i32 {
        1 - self.rank
    }

    /// Who sent it.
    #[inline]
    pub fn recv_any(&self, p: Room<'_>, index: i32) -> Result<i32, String> {
        let (mut src, mut len) = (-1, 0);
        self.recv_any_from(p, index, &mut src, &mut len)?;
        Ok(src)
    }

    /// Multicast; its ticket.
    pub fn mcast(&self, p: Room<'static>, members: &[u64]) -> Result<u64, String> {
        let mut ticket = 0;
        self.mcast_begin(p, members, &mut ticket)?;
        Ok(ticket)
    }

    /// Is it done?
    #[inline]
    pub fn irecv_test(&self, src: i32, index: i32) -> Result<bool, String> {
        let mut done = 0;
        self.irecv_test_into(src, index, &mut done)?;
        Ok(done != 0)
    }

    /// To one rank from the buffer that is sent, from another into the one that is received.
    #[inline]
    pub fn exchange(&self, n: usize, dst: i32, src: i32, index: i32) -> Result<(), String> {
        self.sendrecv(self.sb.part(0, n), self.rb.part(0, n), dst, src, index)
    }

    /// The index of the last receive completed on (src, index).
    #[inline]
    pub fn received_index(&self, src: i32, index: i32) -> Result<i32, String> {
        let (mut n, mut found) = (0, 0);
        self.received(src, index, &mut n, &mut found)?;
        Ok(found)
    }

    /// Sets the time-out, with a spool of 16 MiB.
    pub fn timeout(&self, ms: i32) -> Result<(), String> {
        self.sendbuf_set(16 << 20, ms)
    }

    /// The largest of the ranks' figures, off the timed path.
    pub fn slowest(&self, mut mine: f64) -> Outcome {
        self.largest(&mut mine)?;
        Ok(vec![mine])
    }

    /// Sends figures to rank 0, off the timed path.
    pub fn send_figures(&self, v: &[f64], index: i32) -> Result<(), String> {
        self.send(Room::of(&mut v.to_vec()), 0, index)
    }

    /// Receives figures from a rank.
    pub fn recv_figures(&self, v: &mut [f64], src: i32, index: i32) -> Result<(), String> {
        self.recv(Room::of(v), src, index)
    }
}

/// The body of a rank process: `dir` holds the fifos, `indices` the size of the areas.
pub fn main(dir: &Path, indices: i32) -> Result<(), String> {
    let mut rank = join(indices)?;
    let mut out = open(OpenOptions::new().write(true), &dir.join("out"))?;
    let input = open(OpenOptions::new().read(true), &dir.join(format!("in.{}", rank.rank)))?;
    rank.barrier()?;
    if rank.rank == 0 {
        answer(&mut out, "ready\n")?;
    }
    for line in BufReader::new(input).lines() {
        let line = line.map_err(|e| e.to_string())?;
        // Where the buffers lie, what to do, and with which numbers.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [send, receive, name, args @ ..] = &words[..] else { break };
        let number = |w: &str| w.parse::<i64>().map_err(|_| format!("not a number: {w}"));
        rank.offset = [number(send)? as usize, number(receive)? as usize];
        let args = args.iter().map(|w| number(w)).collect::<Result<Vec<i64>, _>>()?;
        let outcome = match super::BLOCKS.iter().find(|b| b.0 == *name) {
            Some((_, block)) => block(&mut rank, &args),
            None => Err(format!("no block {name}")),
        };
        match outcome {
            Ok(v) if rank.rank == 0 => {
                let words: Vec<String> = v.iter().map(|x| format!("{x:.3}")).collect();
                answer(&mut out, &format!("ok {}\n", words.join(" ")))?;
            }
            Ok(_) => {}
            Err(e) => {
                answer(&mut out, &format!("err rank {}: {}\n", rank.rank, e.replace('\n', " ")))?;
                return Err(e);
            }
        }
    }
    rank.finalize()
}

/// Init and finalize, for the measure of the start-up.
pub fn startup(indices: i32) -> Result<(), String> {
    let rank = join(indices)?;
    rank.barrier()?;
    rank.finalize()
}

fn join(indices: i32) -> Result<Rank, String> {
    let (sb, rb, offset) = (Buffer::new(0, 0), Buffer::new(0, 0), [HEAP.send, HEAP.receive]);
    let mut rank = Rank { calls: Calls::new(), rank: 0, size: 1, sb, rb, offset };
    rank.init(indices)?;
    let (mut me, mut size) = (0, 0);
    rank.comm_rank(&mut me)?;
    rank.comm_size(&mut size)?;
    SIZE.store(size as usize, Ordering::Relaxed);
    (rank.rank, rank.size) = (me, size);
    Ok(rank)
}

fn open(how: &OpenOptions, path: &Path) -> Result<File, String> {
    how.open(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn answer(out: &mut File, line: &str) -> Result<(), String> {
    out.write_all(line.as_bytes()).map_err(|e| format!("answer to the driver: {e}"))
}

/// The time of a round in ns: of so many, after others that only warm up; each gets its number.
#[inline(always)]
pub fn rounds(count: i64, warm: i64, mut round: impl FnMut(i64) -> Result<(), String>) -> Result<f64, String> {
    let mut begin = 0.0;
    for i in 0..count + warm {
        if i == warm {
            begin = now();
        }
        round(i)?;
    }
    Ok((now() - begin) / count as f64)
}

/// Nanoseconds, for the intervals that the blocks time.
#[inline]
pub fn now() -> f64 {
    fmpl::base::clock::now_ns() as f64
}
