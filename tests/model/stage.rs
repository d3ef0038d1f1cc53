//! What the models are made of: watched buffers, and calls of the library with messages that can be told apart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fmpl::base::shadow;
use fmpl::p2p::layout::{Layout, Run};
use fmpl::p2p::loan::IN_MODEL;
use fmpl::p2p::model::{Explored, Terms, World, check};
use fmpl::p2p::{self, COMM_WORLD};
use fmpl::{Code, Error};

/// Runs a model and says how much it looked at: with no preemption, then with one, and so on, as far as bound and time go. What takes
/// few changes of thread is looked at completely before anything else. `FMPL_MODEL_SECONDS` and `FMPL_MODEL_PREEMPTIONS` change
/// the bounds.
pub fn model(name: &str, terms: Terms, body: impl Fn(World) + Send + Sync + 'static) {
    let body = Arc::new(body);
    bounded(name, terms.preemptions, |preemptions, left| {
        let body = body.clone();
        check(Terms { preemptions, ..terms }, left, move |w| body(w))
    });
}

/// The bounds of [`model`] for what `look` looks at, with this bound on preemptions, for so long.
pub fn bounded(name: &str, preemptions: usize, look: impl Fn(usize, Duration) -> Explored) {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let most = number("FMPL_MODEL_PREEMPTIONS").map_or(preemptions, |n| n as usize);
    let until = Instant::now() + Duration::from_secs(number("FMPL_MODEL_SECONDS").unwrap_or(20));
    let weakened = crate::weakened::asked_for();
    let experiment = weakened.is_some();
    if let Some(w) = weakened {
        shadow::weaken(w);
    }
    for preemptions in 0..=most {
        let left = until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(100) {
            break;
        }
        let seen = look(preemptions, left);
        let all = if seen.complete { "all" } else { "the first" };
        let seconds = seen.took.as_secs_f64();
        println!("{name}: {all} {} executions with {preemptions} preemptions, {seconds:.1} s", seen.executions);
    }
    if experiment {
        println!("{name}: the weakened access was executed {} times", shadow::weakened_accesses());
    }
}

/// Gives the other threads their turn, and orders nothing.
pub fn pause() {
    (0..2).for_each(|_| shadow::spin_loop());
}

/// A watched buffer.
#[derive(Clone, Copy)]
pub struct Buffer {
    ptr: *mut u8,
    len: usize,
}

impl Buffer {
    /// `len` bytes of a rank's memory, from `at` on.
    pub fn new(w: World, rank: usize, at: usize, len: usize) -> Buffer {
        Buffer { ptr: w.memory(rank, at), len }
    }
    /// A loan of a model.
    pub fn of_loan(ptr: *mut u8) -> Buffer {
        Buffer { ptr, len: IN_MODEL }
    }
    /// Writes message number `n` into it.
    pub fn fill(self, n: u8) -> Buffer {
        shadow::writes(self.ptr, self.len);
        for k in 0..self.len {
            // SAFETY: within the buffer, which nobody else uses now: the checker has just been asked.
            unsafe { self.ptr.add(k).write(byte(n, k)) };
        }
        self
    }
    /// It holds the first `len` bytes of message number `n`.
    pub fn holds(self, n: u8, len: usize) {
        shadow::reads(self.ptr, self.len);
        for k in 0..len.min(self.len) {
            // SAFETY: as in `fill`.
            let got = unsafe { self.ptr.add(k).read() };
            assert_eq!(got, byte(n, k), "byte {k} of message {n}");
        }
    }
    /// Is read, whatever it holds.
    pub fn is_read(self) {
        shadow::reads(self.ptr, self.len);
    }
    /// Where it is, and how long.
    pub fn parts(self) -> (*mut u8, usize) {
        (self.ptr, self.len)
    }
    /// The number, below 32, of the message in it.
    pub fn number(self) -> u8 {
        shadow::reads(self.ptr, self.len);
        // SAFETY: as in `fill`.
        let first = unsafe { self.ptr.read() };
        (0..32).find(|n| byte(*n, 0) == first).expect("a message")
    }
    /// Its first bytes, as the library is told of them.
    pub fn run(self, len: usize) -> Run {
        assert!(len <= self.len);
        // SAFETY: it lives as long as the world.
        unsafe { Run::new(self.ptr, len) }
    }
    /// As the library is told of it.
    pub fn layout(self) -> Layout {
        // SAFETY: it lives as long as the world.
        unsafe { Layout::bytes(self.ptr, self.len) }
    }
}

fn byte(n: u8, k: usize) -> u8 {
    n.wrapping_mul(31).wrapping_add(k as u8).max(1)
}

/// Sends message `n`.
pub fn send(to: i32, index: i32, buffer: Buffer, n: u8) -> Result<(), Error> {
    buffer.fill(n);
    p2p::send(COMM_WORLD, buffer.layout(), to, index)
}

/// Receives a message, which is to be message `n` of `len` bytes.
pub fn recv(from: i32, index: i32, buffer: Buffer, n: u8, len: usize) {
    let got = p2p::recv(COMM_WORLD, buffer.layout(), from, index);
    arrived(got, from, index, buffer, n, len);
}

/// A receive has ended with message `n` of `len` bytes.
pub fn arrived(got: Result<(), Error>, from: i32, index: i32, buffer: Buffer, n: u8, len: usize) {
    match got {
        Ok(()) => assert!(len <= buffer.len, "message {n} is longer than its buffer"),
        Err(e) => assert!(e.code() == Code::Truncate && len > buffer.len, "message {n}: {e}"),
    }
    assert_eq!(p2p::received(COMM_WORLD, from, index).expect("a length").len, len, "length of message {n}");
    buffer.holds(n, len);
}

impl Buffer {
    /// Sends words of this value.
    pub fn send_words(self, to: i32, index: i32, word: u64) {
        shadow::writes(self.ptr, self.len);
        for k in 0..self.len / 8 {
            // SAFETY: as in `fill`; buffers are aligned to words.
            unsafe { self.ptr.cast::<u64>().add(k).write(word) };
        }
        p2p::send(COMM_WORLD, self.layout(), to, index).expect("sent");
    }
    /// Receives words of this value.
    pub fn recv_words(self, from: i32, index: i32, word: u64) {
        p2p::recv(COMM_WORLD, self.layout(), from, index).expect("received");
        shadow::reads(self.ptr, self.len);
        for k in 0..self.len / 8 {
            // SAFETY: as in `fill`.
            assert_eq!(unsafe { self.ptr.cast::<u64>().add(k).read() }, word);
        }
    }
}

/// Begins to send message `n`.
pub fn isend(to: i32, index: i32, buffer: Buffer, n: u8) {
    buffer.fill(n);
    p2p::isend(COMM_WORLD, buffer.layout(), to, index).expect("begun");
}

/// Completes a send; the buffer is this thread's again, and is written.
pub fn isend_wait(to: i32, index: i32, buffer: Buffer) {
    p2p::isend_wait(COMM_WORLD, to, index).expect("sent");
    buffer.fill(99);
}

/// Begins to receive.
pub fn irecv(from: i32, index: i32, buffer: Buffer) {
    p2p::irecv(COMM_WORLD, buffer.layout(), from, index).expect("begun");
}
