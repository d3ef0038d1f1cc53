//! Messages that lie in memory as blocks or lists.

use super::calls::*;
use fmpl::ffi::c::*;

/// A shape over some memory: how the bytes of a message lie there, in stream order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Flat,
    /// Strided runs.
    Block,
    /// Strided runs that go downwards in memory.
    Downwards,
    /// Runs with no gap between them.
    Dense,
    /// Pieces of growing lengths, empty ones among them.
    List,
    /// Two pieces.
    Halves,
}

pub const SHAPES: [Shape; 6] = [Shape::Flat, Shape::Block, Shape::Downwards, Shape::Dense, Shape::List, Shape::Halves];

/// Memory with a message's place in it.
pub struct Placed {
    pub memory: Vec<u8>,
    offsets: Vec<(usize, usize)>,
    iov: Vec<libc::iovec>,
    start: usize,
    block: Option<fmpl_block>,
}

impl Placed {
    pub fn new(shape: Shape, len: usize) -> Placed {
        let mut offsets = Vec::new();
        let (mut block_of, mut start) = (None, 0);
        let memory_len;
        // A run that divides the length, so that a block has exactly as many bytes.
        let run = (1..=len.min(4096)).rev().find(|r| len.is_multiple_of(*r) && len / r >= 3).unwrap_or(len);
        let count = len.checked_div(run).unwrap_or(0);
        match shape {
            Shape::Flat => {
                offsets.push((0, len));
                memory_len = len;
            }
            Shape::Block | Shape::Dense => {
                let stride = if shape == Shape::Dense { run } else { run + 1 + run / 3 };
                offsets.extend((0..count).map(|k| (k * stride, run)));
                block_of = Some(block(run, count, stride as isize));
                memory_len = stride * count;
            }
            Shape::Downwards => {
                let stride = run + 5;
                start = stride * count.saturating_sub(1);
                offsets.extend((0..count).map(|k| (start - k * stride, run)));
                block_of = Some(block(run, count, -(stride as isize)));
                memory_len = stride * count;
            }
            Shape::List => {
                let (mut at, mut left, mut k) = (0, len, 0usize);
                while left > 0 {
                    let n = match k % 5 {
                        3 => 0,
                        _ => (1 + k * (1 + len / 400)).min(left),
                    };
                    offsets.push((at, n));
                    at += n + 3;
                    left -= n;
                    k += 1;
                }
                offsets.push((at, 0));
                memory_len = at;
            }
            Shape::Halves => {
                // The second half lies before the first.
                offsets.extend([(len - len / 2 + 7, len / 2), (0, len - len / 2)]);
                memory_len = len + 7;
            }
        }
        Placed { memory: vec![0xdd; memory_len + 8], offsets, iov: Vec::new(), start, block: block_of }
    }

    pub fn put(&mut self, stream: &[u8]) {
        let mut at = 0;
        for (offset, n) in &self.offsets {
            self.memory[*offset..offset + n].copy_from_slice(&stream[at..at + n]);
            at += n;
        }
    }

    /// The first `n` bytes of the stream. All bytes that are not of the stream must be untouched.
    pub fn get(&self, n: usize, what: &str) -> Vec<u8> {
        let mut stream = Vec::new();
        let mut ours = vec![false; self.memory.len()];
        for (offset, k) in &self.offsets {
            let k = (*k).min(n - stream.len());
            stream.extend_from_slice(&self.memory[*offset..offset + k]);
            ours[*offset..offset + k].fill(true);
        }
        for (k, b) in self.memory.iter().enumerate() {
            assert!(ours[k] || *b == 0xdd, "{what}: byte {k} is none of the message's and was written");
        }
        stream
    }

    fn list(&mut self) -> (*const libc::iovec, i32) {
        let base = self.memory.as_mut_ptr();
        self.iov = self
            .offsets
            .iter()
            .map(|(offset, n)| libc::iovec { iov_base: base.wrapping_add(*offset).cast(), iov_len: *n })
            .collect();
        (self.iov.as_ptr(), self.iov.len() as i32)
    }

    pub fn send(&mut self, dst: i32, index: i32, request: bool) -> i32 {
        let p = self.memory.as_mut_ptr().wrapping_add(self.start);
        let flat = self.offsets.len() == 1 && self.block.is_none();
        let len = self.offsets.iter().map(|o| o.1).sum();
        // SAFETY: the shapes lie in the memory, which outlives the request.
        unsafe {
            match (self.block, request) {
                (Some(b), false) => fmpl_send_block(p.cast(), b, dst, index, WORLD),
                (Some(b), true) => fmpl_isend_block(p.cast(), b, dst, index, WORLD),
                (None, false) if flat => fmpl_send(p.cast(), len, dst, index, WORLD),
                (None, true) if flat => fmpl_isend(p.cast(), len, dst, index, WORLD),
                (None, _) => {
                    let (iov, n) = self.list();
                    if request {
                        fmpl_isend_list(iov, n, dst, index, WORLD)
                    } else {
                        fmpl_send_list(iov, n, dst, index, WORLD)
                    }
                }
            }
        }
    }

    pub fn recv(&mut self, src: i32, index: i32, request: bool) -> i32 {
        let p = self.memory.as_mut_ptr().wrapping_add(self.start);
        let flat = self.offsets.len() == 1 && self.block.is_none();
        let len = self.offsets.iter().map(|o| o.1).sum();
        // SAFETY: the shapes lie in the memory, which outlives the request.
        unsafe {
            match (self.block, request) {
                (Some(b), false) => fmpl_recv_block(p.cast(), b, src, index, WORLD),
                (Some(b), true) => fmpl_irecv_block(p.cast(), b, src, index, WORLD),
                (None, false) if flat => fmpl_recv(p.cast(), len, src, index, WORLD),
                (None, true) if flat => fmpl_irecv(p.cast(), len, src, index, WORLD),
                (None, _) => {
                    let (iov, n) = self.list();
                    if request {
                        fmpl_irecv_list(iov, n, src, index, WORLD)
                    } else {
                        fmpl_recv_list(iov, n, src, index, WORLD)
                    }
                }
            }
        }
    }
}
