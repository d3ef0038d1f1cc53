//! A rank of FMPL under the driver: sleeps in a read of its fifo until a command line comes, runs the block it names, and rank 0
//! answers with the figures. `peer.c` is the same program in MPI calls.

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::ptr;

use fmpl::p2p::layout::Block;

use super::calls::Calls;
use super::offset::HEAP;

/// What a block gives: its figures in the order of the benchmark's table, times in nanoseconds; or what went wrong.
pub type Outcome = Result<Vec<f64>, String>;

/// Memory from the heap, so far behind a page, every page touched.
pub struct Buffer {
    page: *mut u8,
    behind: usize,
    /// Bytes from the page on.
    room: usize,
}

impl Buffer {
    fn new(room: usize, fill: u8) -> Buffer {
        let mut p: *mut c_void = ptr::null_mut();
        // SAFETY: `p` is a valid place for the result; on success it holds `room` writable bytes.
        unsafe {
            assert_eq!(libc::posix_memalign(&mut p, 4096, room.max(1)), 0, "no memory for a buffer of {room} bytes");
            ptr::write_bytes(p.cast::<u8>(), fill, room);
        }
        Buffer { page: p.cast(), behind: 0, room }
    }

    /// The byte at `offset`.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(self.behind + offset <= self.room);
        // SAFETY: within the allocation, or one past its end.
        unsafe { self.page.add(self.behind + offset) }
    }

    /// Writes the first and the last of `n` bytes at `offset`.
    #[inline]
    pub fn stamp(&self, offset: usize, n: usize, i: i64) {
        let last = self.at(offset + n - 1);
        // SAFETY: `at` has checked the last byte; the first lies before it. Volatile: the peer or the kernel reads them.
        unsafe {
            ptr::write_volatile(last.sub(n - 1), i as u8);
            ptr::write_volatile(last, i as u8);
        }
    }

    /// Checks the first and the last of `n` bytes at `offset`.
    #[inline]
    pub fn check(&self, offset: usize, n: usize, i: i64) -> Result<(), String> {
        let last = self.at(offset + n - 1);
        // SAFETY: as in `stamp`.
        let (first, last) = unsafe { (ptr::read_volatile(last.sub(n - 1)), ptr::read_volatile(last)) };
        if first == i as u8 && last == i as u8 { Ok(()) } else { Err(wrong(first, last, i)) }
    }
}

#[cold]
fn wrong(first: u8, last: u8, i: i64) -> String {
    format!("wrong bytes at message {i}: first {first}, last {last}, expected {}", i as u8)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `page` came from posix_memalign.
        unsafe { libc::free(self.page.cast()) }
    }
}

/// One rank, with its buffers.
pub struct Rank {
    /// The C interface.
    pub calls: Calls,
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

const WORLD: c_int = fmpl::p2p::COMM_WORLD;

impl Rank {
    /// The buffers have at least `bytes` each, where this block wants them.
    pub fn need(&mut self, bytes: usize) {
        let room = bytes + self.offset[0].max(self.offset[1]);
        if room > self.sb.room {
            self.sb = Buffer::new(room, 1);
            self.rb = Buffer::new(room, 2);
        }
        [self.sb.behind, self.rb.behind] = self.offset;
    }

    /// The other rank of a pair.
    pub fn peer(&self) -> i32 {
        1 - self.rank
    }

    #[inline]
    pub fn ok(&self, code: c_int) -> Result<(), String> {
        if code == 0 { Ok(()) } else { Err(self.calls.error_text(code)) }
    }

    #[inline]
    pub fn send(&self, p: *const u8, n: usize, dst: i32, index: i32) -> Result<(), String> {
        // SAFETY: callers pass memory of at least `n` bytes that lives across the call.
        self.ok(unsafe { (self.calls.send)(p.cast(), n, dst, index, WORLD) })
    }

    #[inline]
    pub fn recv(&self, p: *mut u8, n: usize, src: i32, index: i32) -> Result<(), String> {
        // SAFETY: as for `send`.
        self.ok(unsafe { (self.calls.recv)(p.cast(), n, src, index, WORLD) })
    }

    #[inline]
    pub fn send_any(&self, p: *const u8, n: usize, dst: i32, index: i32) -> Result<(), String> {
        // SAFETY: as for `send`.
        self.ok(unsafe { (self.calls.send_any)(p.cast(), n, dst, index, WORLD) })
    }

    /// Who sent it.
    #[inline]
    pub fn recv_any(&self, p: *mut u8, n: usize, index: i32) -> Result<i32, String> {
        let (mut src, mut len) = (-1, 0);
        // SAFETY: as for `send`.
        self.ok(unsafe { (self.calls.recv_any_from)(p.cast(), n, index, WORLD, &mut src, &mut len) })?;
        Ok(src)
    }

    /// Multicast; its ticket.
    pub fn mcast(&self, p: *const u8, n: usize, members: u64) -> Result<u64, String> {
        let mut ticket = 0;
        // SAFETY: callers keep the memory until the ticket is complete; a benchmark has at most 64 ranks.
        self.ok(unsafe { (self.calls.mcast)(p.cast(), n, &members, WORLD, &mut ticket) })?;
        Ok(ticket)
    }

    pub fn mcast_wait(&self, ticket: u64) -> Result<(), String> {
        // SAFETY: the memory is still there.
        self.ok(unsafe { (self.calls.mcast_wait)(ticket) })
    }

    pub fn mcast_recv(&self, p: *mut u8, n: usize) -> Result<(), String> {
        // SAFETY: as for `send`; the results are not wanted.
        self.ok(unsafe { (self.calls.mcast_recv)(p.cast(), n, WORLD, std::ptr::null_mut(), std::ptr::null_mut()) })
    }

    #[inline]
    pub fn isend(&self, p: *const u8, n: usize, dst: i32, index: i32) -> Result<(), String> {
        // SAFETY: callers keep the memory until the request is completed.
        self.ok(unsafe { (self.calls.isend)(p.cast(), n, dst, index, WORLD) })
    }

    #[inline]
    pub fn irecv(&self, p: *mut u8, n: usize, src: i32, index: i32) -> Result<(), String> {
        // SAFETY: as for `isend`.
        self.ok(unsafe { (self.calls.irecv)(p.cast(), n, src, index, WORLD) })
    }

    #[inline]
    pub fn isend_wait(&self, dst: i32, index: i32) -> Result<(), String> {
        // SAFETY: no memory is passed.
        self.ok(unsafe { (self.calls.isend_wait)(dst, index, WORLD) })
    }

    #[inline]
    pub fn irecv_wait(&self, src: i32, index: i32) -> Result<(), String> {
        // SAFETY: no memory is passed.
        self.ok(unsafe { (self.calls.irecv_wait)(src, index, WORLD) })
    }

    /// Is it done?
    #[inline]
    pub fn irecv_test(&self, src: i32, index: i32) -> Result<bool, String> {
        let mut done = 0;
        // SAFETY: the place lives across the call.
        self.ok(unsafe { (self.calls.irecv_test)(src, index, WORLD, &mut done) })?;
        Ok(done != 0)
    }

    #[inline]
    pub fn sendrecv(&self, n: usize, dst: i32, src: i32, index: i32) -> Result<(), String> {
        let (s, r) = (self.sb.at(0), self.rb.at(0));
        // SAFETY: both buffers hold `n` bytes (`need`), and are distinct.
        self.ok(unsafe { (self.calls.sendrecv)(s.cast(), n, dst, index, r.cast(), n, src, index, WORLD) })
    }

    #[inline]
    pub fn send_block(&self, p: *const u8, block: Block, dst: i32, index: i32) -> Result<(), String> {
        // SAFETY: callers pass memory that covers the block.
        self.ok(unsafe { (self.calls.send_block)(p.cast(), block, dst, index, WORLD) })
    }

    #[inline]
    pub fn recv_block(&self, p: *mut u8, block: Block, src: i32, index: i32) -> Result<(), String> {
        // SAFETY: as for `send_block`.
        self.ok(unsafe { (self.calls.recv_block)(p.cast(), block, src, index, WORLD) })
    }

    /// The index of the last receive completed on (src, index).
    #[inline]
    pub fn received_index(&self, src: i32, index: i32) -> Result<i32, String> {
        let (mut n, mut found) = (0usize, 0);
        // SAFETY: both places live across the call.
        self.ok(unsafe { (self.calls.received)(src, index, WORLD, &mut n, &mut found) })?;
        Ok(found)
    }

    /// Sets the time-out, with a spool of 16 MiB that the library allocates.
    pub fn timeout(&self, ms: i32) -> Result<(), String> {
        // SAFETY: null: the library brings the memory.
        self.ok(unsafe { (self.calls.sendbuf_set)(ptr::null_mut(), 16 << 20, ms) })
    }

    /// All ranks meet.
    pub fn barrier(&self) -> Result<(), String> {
        // SAFETY: no memory is passed.
        self.ok(unsafe { (self.calls.barrier)(WORLD) })
    }

    #[inline]
    pub fn bcast(&self, p: *mut u8, n: usize, root: i32) -> Result<(), String> {
        // SAFETY: callers pass memory of at least `n` bytes.
        self.ok(unsafe { (self.calls.bcast)(p.cast(), n, root, WORLD) })
    }

    #[inline]
    pub fn reduce(&self, p: *mut u8, count: usize, root: i32) -> Result<(), String> {
        let (f, none) = (self.calls.dsum, ptr::null_mut());
        // SAFETY: callers pass `count` doubles.
        self.ok(unsafe { (self.calls.reduce)(p.cast(), count as c_int, Some(f), root, WORLD, none) })
    }

    #[inline]
    pub fn allreduce(&self, p: *mut u8, count: usize) -> Result<(), String> {
        let (f, none) = (self.calls.dsum, ptr::null_mut());
        // SAFETY: callers pass `count` doubles.
        self.ok(unsafe { (self.calls.allreduce)(p.cast(), count as c_int, Some(f), WORLD, none) })
    }

    /// Of one int.
    #[inline]
    pub fn allreduce_int(&self, p: *mut u8) -> Result<(), String> {
        // SAFETY: callers pass an int.
        self.ok(unsafe { (self.calls.allreduce)(p.cast(), 1, Some(self.calls.isum), WORLD, ptr::null_mut()) })
    }

    /// In place: this rank's `n` bytes are where they belong.
    #[inline]
    pub fn allgather(&self, p: *mut u8, n: usize) -> Result<(), String> {
        self.allgather_from(p.wrapping_add(self.rank as usize * n), n, p)
    }

    #[inline]
    pub fn allgather_from(&self, own: *const u8, n: usize, p: *mut u8) -> Result<(), String> {
        // SAFETY: callers pass `n` bytes, and room for those of each rank.
        self.ok(unsafe { (self.calls.allgather)(own.cast(), n, p.cast(), WORLD) })
    }

    #[inline]
    pub fn scatter(&self, all: *const u8, n: usize, own: *mut u8, root: i32) -> Result<(), String> {
        // SAFETY: callers pass room for `n` bytes, and at the root `n` bytes for each rank.
        self.ok(unsafe { (self.calls.scatter)(all.cast(), n, own.cast(), root, WORLD) })
    }

    #[inline]
    pub fn scan(&self, p: *mut u8, count: usize) -> Result<(), String> {
        // SAFETY: callers pass `count` doubles.
        self.ok(unsafe { (self.calls.scan)(p.cast(), count as c_int, Some(self.calls.dsum), WORLD) })
    }

    /// The largest of the ranks' figures, off the timed path.
    pub fn slowest(&self, mine: f64) -> Outcome {
        let mut v = [mine];
        let (p, f, none) = (v.as_mut_ptr().cast(), self.calls.dmax, ptr::null_mut());
        // SAFETY: one double.
        self.ok(unsafe { (self.calls.allreduce)(p, 1, Some(f), WORLD, none) })?;
        Ok(v.to_vec())
    }

    /// Sends figures to rank 0, off the timed path.
    pub fn send_figures(&self, v: &[f64], index: i32) -> Result<(), String> {
        self.send(v.as_ptr().cast(), size_of_val(v), 0, index)
    }

    /// Receives figures from a rank.
    pub fn recv_figures(&self, v: &mut [f64], src: i32, index: i32) -> Result<(), String> {
        self.recv(v.as_mut_ptr().cast(), size_of_val(v), src, index)
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
    leave(&rank)
}

/// Init and finalize, for the measure of the start-up.
pub fn startup(indices: i32) -> Result<(), String> {
    let rank = join(indices)?;
    rank.barrier()?;
    leave(&rank)
}

fn join(indices: i32) -> Result<Rank, String> {
    let calls = Calls::new();
    let (mut me, mut size) = (0, 0);
    let (sb, rb, offset) = (Buffer::new(0, 0), Buffer::new(0, 0), [HEAP.send, HEAP.receive]);
    let mut rank = Rank { calls, rank: 0, size: 1, sb, rb, offset };
    // SAFETY: null areas: the library places them. The results live across the calls.
    unsafe {
        rank.ok((calls.init)(ptr::null_mut(), ptr::null_mut(), indices))?;
        rank.ok((calls.comm_rank)(WORLD, &mut me))?;
        rank.ok((calls.comm_size)(WORLD, &mut size))?;
    }
    rank.rank = me;
    rank.size = size;
    Ok(rank)
}

fn leave(rank: &Rank) -> Result<(), String> {
    // SAFETY: the rank has joined; no request is open.
    rank.ok(unsafe { (rank.calls.finalize)() })
}

fn open(how: &OpenOptions, path: &Path) -> Result<File, String> {
    how.open(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn answer(out: &mut File, line: &str) -> Result<(), String> {
    out.write_all(line.as_bytes()).map_err(|e| format!("answer to the driver: {e}"))
}

/// Nanoseconds, for the intervals that the blocks time.
#[inline]
pub fn now() -> f64 {
    fmpl::base::clock::now_ns() as f64
}
