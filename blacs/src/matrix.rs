//! What a message consists of: the elements of a rectangle or a trapezoid, in the order of columns.
//!
//! FMPL sends and receives blocks and lists from and to where they lie. Only what fits a landing is packed, on the stack.

use core::mem::MaybeUninit;

use crate::Int;
use crate::library::{fmpl_block, iovec};
use crate::process::process;

/// Up to so many bytes a strided message is packed: it goes inline.
const SMALL: usize = 1024;

/// Where the elements of a message lie.
pub enum Area {
    /// One after the other.
    Run { at: *mut u8, len: usize },
    /// Few, with gaps.
    Small { at: *mut u8, shape: Shape },
    /// Columns at even distances.
    Block { at: *mut u8, block: fmpl_block },
    /// Columns of a trapezoid; the process's list has their descriptors.
    List { n: usize },
}

/// The part of a matrix that is meant, without its address; sizes in bytes.
#[derive(Clone, Copy)]
pub struct Shape {
    /// An element.
    size: usize,
    rows: usize,
    columns: usize,
    /// From the beginning of a column to that of the next.
    stride: usize,
    part: Part,
    /// Bytes of it all.
    bytes: usize,
}

#[derive(Clone, Copy)]
enum Part {
    All,
    /// Of column j, rows below `j + offset`.
    Upper {
        offset: isize,
    },
    /// Of column j, rows from `j + offset` on.
    Lower {
        offset: isize,
    },
}

/// The letters of a trapezoid: what is not 'L' is upper, what is not 'U' has its diagonal. Any case.
#[derive(Clone, Copy)]
pub struct Trapezoid {
    /// Which side.
    pub upper: bool,
    /// Whether the diagonal is left out.
    pub unit: bool,
}

impl Trapezoid {
    /// By the first letters of UPLO and DIAG; what is not U is L, and N.
    pub fn of(uplo: u8, diag: u8) -> Trapezoid {
        Trapezoid { upper: uplo.eq_ignore_ascii_case(&b'u'), unit: diag.eq_ignore_ascii_case(&b'u') }
    }
}

impl Shape {
    /// An m by n matrix whose columns are `lda` elements apart, or its trapezoid.
    #[inline]
    pub fn new(m: Int, n: Int, lda: Int, size: usize, trapezoid: Option<Trapezoid>) -> Shape {
        let (rows, columns) = (m.max(0) as usize, n.max(0) as usize);
        let stride = (lda.max(0) as usize).max(rows).saturating_mul(size);
        let mut shape = Shape { size, rows, columns, stride, part: Part::All, bytes: 0 };
        shape.bytes = match trapezoid {
            None => rows.saturating_mul(columns).saturating_mul(size),
            Some(Trapezoid { upper: true, unit }) => {
                shape.part = Part::Upper { offset: rows.saturating_sub(columns) as isize + 1 - unit as isize };
                shape.total()
            }
            Some(Trapezoid { upper: false, unit }) => {
                shape.part = Part::Lower { offset: unit as isize - columns.saturating_sub(rows) as isize };
                shape.total()
            }
        };
        shape
    }

    fn total(&self) -> usize {
        (0..self.columns).map(|j| self.column(j).1).sum()
    }

    /// Where the elements of a column begin, from the first of the matrix, and how long they are together.
    #[inline(always)]
    fn column(&self, j: usize) -> (usize, usize) {
        let (first, end) = match self.part {
            Part::All => (0, self.rows),
            Part::Upper { offset } => (0, (j as isize + offset).clamp(0, self.rows as isize) as usize),
            Part::Lower { offset } => ((j as isize + offset).clamp(0, self.rows as isize) as usize, self.rows),
        };
        (j * self.stride + first * self.size, (end - first) * self.size)
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Elements.
    pub fn count(&self) -> usize {
        self.bytes / self.size
    }

    /// Whether the elements follow each other without gaps.
    pub fn is_run(&self) -> bool {
        matches!(self.part, Part::All) && (self.columns <= 1 || self.stride == self.rows * self.size) || self.bytes == 0
    }

    /// As the memory of a message.
    #[inline]
    pub fn area(&self, at: *mut u8) -> Area {
        if self.is_run() {
            return Area::Run { at, len: self.bytes };
        }
        if self.bytes <= SMALL {
            return Area::Small { at, shape: *self };
        }
        if let Part::All = self.part {
            let block = fmpl_block { run: self.rows * self.size, count: self.columns, stride: self.stride as isize };
            return Area::Block { at, block };
        }
        let columns = (0..self.columns).map(|j| self.column(j)).filter(|(_, len)| *len > 0);
        let n = process()
            .set_list(columns.map(|(from, len)| iovec { iov_base: at.wrapping_add(from).cast(), iov_len: len }));
        Area::List { n }
    }

    /// Copies the elements to `to`, without gaps.
    ///
    /// # Safety
    /// `at` is such a matrix, `to` has room for its bytes; the two do not overlap.
    pub unsafe fn pack(&self, at: *const u8, mut to: *mut u8) {
        for (from, len) in (0..self.columns).map(|j| self.column(j)) {
            // SAFETY: as the caller promises.
            unsafe {
                copy(at.add(from), to, len);
                to = to.add(len);
            }
        }
    }

    /// Where an element of a rectangle lies, from its first, in bytes; elements are counted down the columns.
    #[inline(always)]
    pub fn offset(&self, element: usize) -> usize {
        element / self.rows * self.stride + element % self.rows * self.size
    }

    /// Copies `n` elements of a rectangle, from `first` on, to `to`, without gaps.
    ///
    /// # Safety
    /// As for [`Shape::pack`].
    pub unsafe fn pack_part(&self, at: *const u8, first: usize, n: usize, to: *mut u8) {
        // SAFETY: as the caller promises.
        self.columns_of(first, n, |from, packed, len| unsafe { copy(at.add(from), to.add(packed), len) });
    }

    /// The other way round.
    ///
    /// # Safety
    /// As for [`Shape::pack`].
    pub unsafe fn unpack_part(&self, packed: *const u8, first: usize, n: usize, at: *mut u8) {
        // SAFETY: as the caller promises.
        self.columns_of(first, n, |to, from, len| unsafe { copy(packed.add(from), at.add(to), len) });
    }

    /// The parts of columns that make up `n` elements from `first` on: where in the matrix, where in the stream, how long.
    fn columns_of(&self, mut first: usize, n: usize, mut part: impl FnMut(usize, usize, usize)) {
        let (end, mut packed) = (first + n, 0);
        while first < end {
            let here = (self.rows - first % self.rows).min(end - first);
            part(self.offset(first), packed, here * self.size);
            packed += here * self.size;
            first += here;
        }
    }

    /// [`Shape::pack`] the other way round, for the first `got` bytes.
    ///
    /// # Safety
    /// As for [`Shape::pack`].
    pub unsafe fn unpack(&self, mut packed: *const u8, mut got: usize, at: *mut u8) {
        for (to, len) in (0..self.columns).map(|j| self.column(j)) {
            let len = len.min(got);
            // SAFETY: as the caller promises.
            unsafe {
                copy(packed, at.add(to), len);
                packed = packed.add(len);
            }
            got -= len;
        }
    }
}

/// Single elements, the most frequent short columns, without a call.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if len == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            core::ptr::copy_nonoverlapping(from, to, len);
        }
    }
}

/// Room on the stack for a small message.
#[repr(align(16))]
pub struct Packed(MaybeUninit<[u8; SMALL]>);

impl Packed {
    #[inline(always)]
    pub fn room() -> Packed {
        Packed(MaybeUninit::uninit())
    }
    #[inline(always)]
    pub fn at(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of every small shape, against the definition.
    #[test]
    fn trapezoids_have_the_elements_of_their_definition() {
        for (m, n, upper, unit) in (0..7i32).flat_map(|m| {
            (0..7i32)
                .flat_map(move |n| [(m, n, true, true), (m, n, true, false), (m, n, false, true), (m, n, false, false)])
        }) {
            let lda = m + 2;
            let data: Vec<u16> = (0..(lda * n.max(1)) as u16 + 8).collect();
            let shape = Shape::new(m as Int, n as Int, lda as Int, 2, Some(Trapezoid { upper, unit }));
            let wanted: Vec<u16> = (0..n)
                .flat_map(|j| (0..m).map(move |i| (i, j)))
                .filter(|(i, j)| {
                    let (i, j, u) = (*i, *j, unit as i32);
                    if upper { i <= j + (m - n).max(0) - u } else { i >= j - (n - m).max(0) + u }
                })
                .map(|(i, j)| (j * lda + i) as u16)
                .collect();
            let mut packed = vec![0u16; wanted.len()];
            assert_eq!(shape.bytes(), wanted.len() * 2, "{m} x {n}");
            // SAFETY: the room is as large as the shape says.
            unsafe { shape.pack(data.as_ptr().cast(), packed.as_mut_ptr().cast()) };
            assert_eq!(packed, wanted, "{m} x {n}, upper {upper}, unit {unit}");
            let mut back = vec![0u16; data.len()];
            // SAFETY: as above.
            unsafe { shape.unpack(packed.as_ptr().cast(), packed.len() * 2, back.as_mut_ptr().cast()) };
            for (k, value) in back.iter().enumerate() {
                assert_eq!(*value, if wanted.contains(&(k as u16)) { k as u16 } else { 0 });
            }
        }
    }

    #[test]
    fn what_has_no_gaps_is_a_run() {
        let run = |m, n, lda| Shape::new(m, n, lda, 8, None).is_run();
        assert!(run(5, 3, 5) && run(5, 3, 2) && run(5, 1, 9) && run(0, 4, 7) && run(4, -1, 7));
        assert!(!run(5, 3, 6) && !run(1, 2, 2));
    }
}
