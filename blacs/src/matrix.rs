//! What a message consists of: the elements of a rectangle or a trapezoid, in the order of columns.
//!
//! FMPL sends and receives blocks and lists from and to where they lie. Only what fits a landing is packed, on the stack.

use core::marker::PhantomData;

use fmpl::base::bytes::{Room, Scratch};

use crate::Int;
use crate::library::{Block, List};

/// Up to so many bytes a strided message is packed: it goes inline.
const SMALL: usize = 1024;

/// A matrix, or a part of one, where it lies.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    shape: Shape,
    /// All from its first element to the last one that is meant: no column goes beyond it.
    room: Room<'a>,
}

/// The place of a value.
#[derive(Clone, Copy)]
pub struct Slot<'a, T>(*mut T, PhantomData<&'a T>);

impl<T: Stored> Slot<'_, T> {
    #[inline(always)]
    pub fn get(self) -> T {
        // SAFETY: of a room, see `slots`; whatever the bytes are.
        unsafe { self.0.read_unaligned() }
    }

    #[inline(always)]
    pub fn put(self, value: T) {
        // SAFETY: as above.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// The places of the values of a room, one after the other.
#[inline(always)]
pub fn slots<'a, T: Stored>(room: Room<'a>) -> impl Iterator<Item = Slot<'a, T>> {
    let at = room.as_mut_ptr().cast::<T>();
    (0..room.len() / size_of::<T>()).map(move |k| Slot(at.wrapping_add(k), PhantomData))
}

/// Where the elements of a message lie.
pub enum Area<'a> {
    /// One after the other.
    Run(Room<'a>),
    /// Few, with gaps.
    Small(Matrix<'a>),
    /// Columns at even distances.
    Block(Block<'a>),
    /// Columns of a trapezoid.
    List(List<'a>),
}

/// Made of numbers: any bytes are one.
pub trait Stored: Copy + 'static {}
impl Stored for i32 {}
impl Stored for i64 {}
impl Stored for f32 {}
impl Stored for f64 {}

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
    /// Bytes from the first element of the matrix to the end of the last one that is meant.
    span: usize,
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
        let mut shape = Shape { size, rows, columns, stride, part: Part::All, bytes: 0, span: 0 };
        match trapezoid {
            None => {
                let column = rows.saturating_mul(size);
                shape.bytes = column.saturating_mul(columns);
                shape.span = match columns <= 1 || stride == column {
                    true => shape.bytes,
                    false => stride.saturating_mul(columns - 1).saturating_add(column),
                };
            }
            Some(Trapezoid { upper: true, unit }) => {
                shape.part = Part::Upper { offset: rows.saturating_sub(columns) as isize + 1 - unit as isize };
                shape.measure();
            }
            Some(Trapezoid { upper: false, unit }) => {
                shape.part = Part::Lower { offset: unit as isize - columns.saturating_sub(rows) as isize };
                shape.measure();
            }
        }
        if shape.bytes == 0 {
            shape.span = 0;
        }
        shape
    }

    /// That of integers beside the elements, `lda` apart from column to column.
    pub fn of_places(&self, lda: Int) -> Shape {
        Shape::new(self.rows as Int, self.columns as Int, lda, size_of::<Int>(), None)
    }

    /// Adds up the columns of a trapezoid.
    fn measure(&mut self) {
        if self.stride.checked_mul(self.columns).is_none() {
            (self.bytes, self.span) = (usize::MAX, usize::MAX);
            return;
        }
        self.bytes = (0..self.columns).map(|j| self.column(j).1).sum();
        // The last column that has elements.
        let last = match self.part {
            Part::Lower { offset } => (self.rows as isize - offset).clamp(1, self.columns.max(1) as isize) as usize,
            _ => self.columns.max(1),
        };
        let (from, len) = self.column(last - 1);
        self.span = from + len;
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

    /// [`Shape::column`] of all that have elements.
    #[inline(always)]
    fn parts(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.columns).map(|j| self.column(j)).filter(|(_, len)| *len > 0)
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes from the first element of the matrix to the end of the last one that is meant.
    pub fn span(&self) -> usize {
        self.span
    }

    /// Elements.
    pub fn count(&self) -> usize {
        self.bytes / self.size
    }

    /// Whether the elements follow each other without gaps.
    pub fn is_run(&self) -> bool {
        matches!(self.part, Part::All) && (self.columns <= 1 || self.stride == self.rows * self.size) || self.bytes == 0
    }

    /// Where an element of a rectangle lies, from its first, in bytes; elements are counted down the columns.
    #[inline(always)]
    fn offset(&self, element: usize) -> usize {
        element / self.rows * self.stride + element % self.rows * self.size
    }

    /// The parts of columns that make up `n` elements from `first` on: where in the matrix, where in the stream, how long.
    #[inline]
    fn columns_of(&self, first: usize, n: usize) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let (shape, mut next) = (*self, first);
        core::iter::from_fn(move || {
            let (at, left) = (next, first + n - next);
            let here = if left > 0 { (shape.rows - at % shape.rows).min(left) } else { return None };
            next += here;
            Some((shape.offset(at), (at - first) * shape.size, here * shape.size))
        })
    }
}

impl<'a> Matrix<'a> {
    /// `room` has all of it.
    #[inline(always)]
    pub fn new(shape: Shape, room: Room<'a>) -> Matrix<'a> {
        assert!(room.len() == shape.span);
        Matrix { shape, room }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its elements, if they follow each other without gaps.
    #[inline(always)]
    pub fn as_run(&self) -> Option<Room<'a>> {
        self.shape.is_run().then_some(self.room)
    }

    /// As the memory of a message.
    #[inline(always)]
    pub fn area(&self) -> Area<'a> {
        match self.as_run() {
            Some(run) => Area::Run(run),
            None => self.with_gaps(),
        }
    }

    // By value, so that it need not be put together where there are none.
    #[inline(never)]
    fn with_gaps(self) -> Area<'a> {
        let (shape, room) = (&self.shape, self.room);
        if shape.bytes <= SMALL {
            return Area::Small(self);
        }
        if let Part::All = shape.part {
            return Area::Block(Block::new(room, shape.rows * shape.size, shape.columns, shape.stride));
        }
        Area::List(shape.parts().map(|(from, len)| room.part(from, len)).collect())
    }

    /// Copies the elements to `to`, without gaps: how many bytes.
    #[inline]
    pub fn pack(&self, to: Room<'_>) -> usize {
        self.walk(to.part(0, self.shape.bytes), true);
        self.shape.bytes
    }

    /// The other way round, of as many bytes as there are.
    #[inline]
    pub fn unpack(&self, packed: Room<'_>) {
        self.walk(packed, false);
    }

    /// Copies column after column, out of the matrix or into it; single elements, the most frequent short columns, without a call.
    #[inline(always)]
    fn walk(&self, packed: Room<'_>, out: bool) {
        let (mut at, mut left) = (packed.as_mut_ptr(), packed.len());
        for (place, len) in (0..self.shape.columns).map(|j| self.shape.column(j)) {
            let (column, len) = (self.room.as_mut_ptr().wrapping_add(place), len.min(left));
            let (from, to) = if out { (column, at) } else { (at, column) };
            // SAFETY: no column goes beyond the room, nor all of them beyond what is left of the packed ones, which are other memory.
            unsafe {
                if len == 8 {
                    to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
                } else {
                    core::ptr::copy_nonoverlapping(from, to, len);
                }
            }
            (at, left) = (at.wrapping_add(len), left - len);
        }
    }

    /// Copies `n` elements of a rectangle, from `first` on, to `to`, without gaps.
    pub fn pack_part(&self, first: usize, n: usize, to: Room<'_>) {
        self.shape.columns_of(first, n).for_each(|(from, packed, len)| {
            to.part(packed, len).copy_from(*self.room.part(from, len));
        });
    }

    /// The other way round.
    pub fn unpack_part(&self, packed: Room<'_>, first: usize, n: usize) {
        self.shape.columns_of(first, n).for_each(|(to, from, len)| {
            self.room.part(to, len).copy_from(*packed.part(from, len));
        });
    }

    /// The places of `n` elements of a rectangle, from `first` on, down the columns.
    #[inline(always)]
    pub fn slots<T: Stored>(&self, first: usize, n: usize) -> impl Iterator<Item = Slot<'a, T>> {
        let room = self.room;
        self.shape.columns_of(first, n).flat_map(move |(at, _, len)| slots(room.part(at, len)))
    }
}

thread_local! {
    static PACKED: Scratch = Scratch::new(SMALL);
}

/// Room for a small message.
#[inline]
pub fn with_packed<R>(call: impl FnOnce(Room<'_>) -> R) -> R {
    PACKED.with(|packed| call(packed.room()))
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
            let mut data: Vec<u16> = (0..(lda * n.max(1)) as u16 + 8).collect();
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
            assert_eq!(shape.span(), wanted.last().map_or(0, |last| 2 * *last as usize + 2), "{m} x {n}");
            Matrix::new(shape, Room::of(&mut data).part(0, shape.span())).pack(Room::of(&mut packed));
            assert_eq!(packed, wanted, "{m} x {n}, upper {upper}, unit {unit}");
            let mut back = vec![0u16; data.len()];
            Matrix::new(shape, Room::of(&mut back).part(0, shape.span())).unpack(Room::of(&mut packed));
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
