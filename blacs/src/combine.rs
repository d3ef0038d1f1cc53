//! Combines: sums and extremes over a scope, element by element.
//!
//! The order of operations depends on the scope and the matrix only, never on who comes first, and each element of a result is
//! computed once and handed on, or computed by everybody in the same order: so all processes get the same bits, in every run.
//!
//! | result for | how |
//! |---|---|
//! | one | a binomial tree, numbered from the destination on |
//! | all, of all processes of the grid | FMPL's allreduce |
//! | all of a row or a column, short | exchanges between numbers that differ in one bit (recursive doubling) |
//! | the same, long | each process combines a slice of what all have sent it, and sends the result to all |
//!
//! A long matrix goes in pieces, so that the memory for it is bounded.

use std::sync::MutexGuard;

use fmpl::base::bytes::Room;

use crate::Int;
use crate::broadcast::{bad_topology, member_of, scope_of};
use crate::context::Context;
use crate::matrix::{Matrix, slots};
use crate::order::{self, Complex, Element, Operation, Operator, Placed};
use crate::process::{Work, process};
use crate::scope::{Scope, Which};

/// A piece of a long combine; the most that is kept for combines is some three of these.
const PIECE: usize = 1 << 20;
/// From so many bytes on a result for all is made in slices.
const SLICES: usize = 16 << 10;
/// Elements of one collective call.
const MOST: usize = i32::MAX as usize;

/// The arguments of a combine beside the matrix: routine `?gsum2d`, `?gamx2d`, `?gamn2d`.
pub struct Call {
    pub scope: u8,
    pub topology: u8,
    pub operation: Operation,
    /// Where the result goes; -1, -1: to all.
    pub row: Int,
    pub col: Int,
    pub routine: &'static str,
}

/// Where the coordinates of extremes go.
pub struct Places<'a> {
    pub rows: Matrix<'a>,
    pub columns: Matrix<'a>,
}

/// Combines a matrix, whose elements are of type `T`, over a scope.
pub fn combine<T: Element>(context: &Context, call: &Call, matrix: Matrix<'_>, places: Option<Places<'_>>) {
    let (which, scope) = scope_of(context, call.scope, call.routine);
    if !matches!(
        call.topology.to_ascii_lowercase(),
        b' ' | b'h' | b't' | b'i' | b'd' | b's' | b'm' | b'f' | b'1'..=b'9'
    ) {
        bad_topology(context, call.topology, call.routine);
    }
    // A column of -1 alone means all, too, as in the reference.
    let all = call.row == -1 || call.col == -1;
    let dest = if all { None } else { Some(member_of(context, which, call.row, call.col, call.routine)) };
    let run = Run { context, which, scope, dest, matrix };
    match places {
        None => run.plain::<T>(order::plain::<T>(call.operation)),
        Some(places) => run.placed::<T>(order::placed::<T>(call.operation), &places),
    }
}

struct Run<'a> {
    context: &'a Context,
    which: Which,
    scope: Scope<'a>,
    /// `None`: all.
    dest: Option<usize>,
    matrix: Matrix<'a>,
}

impl Run<'_> {
    fn is_mine(&self) -> bool {
        self.dest.is_none_or(|dest| dest == self.scope.me)
    }

    fn plain<T: Element>(&self, operator: Operator) {
        let (shape, run) = (self.matrix.shape(), self.matrix.as_run());
        if self.scope.size == 1 || shape.bytes() == 0 {
            return;
        }
        let (size, count) = (size_of::<T>(), shape.count());
        // What lies as it goes through goes at once.
        if let Some(run) = run
            && self.dest.is_none()
            && count <= MOST
            && self.scope.combine_whole(run, operator.whole)
        {
            return;
        }
        let work = Pieces::work(&self.scope);
        let pieces = Pieces::new(&self.scope, operator, size, work.room());
        for (first, n) in pieces.of(count) {
            if let Some(run) = run {
                pieces.combine(run.part(first * size, n * size), n, self.dest);
            } else {
                let packed = pieces.packed.part(0, n * size);
                self.matrix.pack_part(first, n, packed);
                pieces.combine(packed, n, self.dest);
                if self.is_mine() {
                    self.matrix.unpack_part(packed, first, n);
                }
            }
        }
    }

    fn placed<T: Element>(&self, operator: Operator, places: &Places<'_>) {
        if self.matrix.shape().bytes() == 0 {
            return;
        }
        let base = self.dest.unwrap_or(0);
        let members = self.scope.size;
        let distance = ((self.scope.me + members - base) % members) as u32;
        let (size, work) = (size_of::<Placed<T>>(), Pieces::work(&self.scope));
        let pieces = Pieces::new(&self.scope, operator, size, work.room());
        for (first, n) in pieces.of(self.matrix.shape().count()) {
            let packed = pieces.packed.part(0, n * size);
            let elements = || self.matrix.slots::<T>(first, n);
            for (to, element) in slots(packed).zip(elements()) {
                to.put(Placed { value: element.get(), distance });
            }
            if members > 1 {
                pieces.combine(packed, n, self.dest);
            }
            if !self.is_mine() {
                continue;
            }
            let places = places.rows.slots(first, n).zip(places.columns.slots(first, n));
            for ((from, element), (row, column)) in slots::<Placed<T>>(packed).zip(elements()).zip(places) {
                let Placed { value, distance } = from.get();
                element.put(value);
                let (i, j) = self.coordinates((base + distance as usize) % members);
                row.put(i);
                column.put(j);
            }
        }
    }

    /// Coordinates in the grid of a member of the scope.
    fn coordinates(&self, member: usize) -> (Int, Int) {
        match self.which {
            Which::Row => (self.context.row as Int, member as Int),
            Which::Column => (member as Int, self.context.col as Int),
            Which::All => self.context.coordinates(member),
        }
    }
}

/// A combine of pieces without gaps.
struct Pieces<'a> {
    scope: &'a Scope<'a>,
    operator: Operator,
    /// Bytes of an element.
    size: usize,
    packed: Room<'a>,
    /// Where what the others send goes; and intermediate results.
    others: Room<'a>,
}

impl<'a> Pieces<'a> {
    /// Memory for three pieces, one of them in slices that are rounded up.
    fn work(scope: &Scope<'_>) -> MutexGuard<'static, Work> {
        process().work(3 * PIECE + 32 * (scope.size + 1))
    }

    fn new(scope: &'a Scope<'a>, operator: Operator, size: usize, work: Room<'a>) -> Pieces<'a> {
        let (packed, others) = (work.part(0, PIECE), work.part(PIECE, work.len() - PIECE));
        Pieces { scope, operator, size, packed, others }
    }

    /// The first element of each piece, and how many it has.
    fn of(&self, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let most = PIECE / self.size;
        (0..count.div_ceil(most)).map(move |k| (k * most, most.min(count - k * most)))
    }

    /// Combines the `n` elements of `own`, at most a piece; the result is there afterwards, if it is for this process. What is not the
    /// destination's stays.
    fn combine(&self, own: Room<'a>, n: usize, dest: Option<usize>) {
        match dest {
            Some(dest) => self.to_one(own, n, dest),
            None if self.scope.combine_whole(own, self.operator.whole) => {}
            None if n * self.size < SLICES || n < self.scope.size => self.to_all(own, n),
            None => self.to_all_in_slices(own, n),
        }
    }

    fn to_one(&self, own: Room<'a>, n: usize, dest: usize) {
        let (members, bytes) = (self.scope.size, n * self.size);
        let me = (self.scope.me + members - dest) % members;
        let member = |number: usize| (number + dest) % members;
        let incoming = self.others.part(0, bytes);
        // The destination's result goes into its matrix, the others' on the way elsewhere.
        let result = if me == 0 { own } else { self.others.part(PIECE, bytes) };
        let mut so_far = own;
        let mut bit = 1;
        while bit < members {
            if me & bit != 0 {
                self.scope.send_run(so_far, member(me - bit));
                return;
            }
            if me + bit < members {
                self.scope.receive_run(incoming, member(me + bit));
                (self.operator.kernel)(so_far, incoming, result, n);
                so_far = result;
            }
            bit *= 2;
        }
    }

    /// With all the others, short.
    fn to_all(&self, own: Room<'a>, n: usize) {
        let (members, me, others) = (self.scope.size, self.scope.me, self.others.part(0, n * self.size));
        let doubled = 1 << members.ilog2();
        let extra = members - doubled;
        // Those beyond a power of two join a neighbour at first and hear the result from it.
        let mut number = me.wrapping_sub(extra);
        if me < 2 * extra {
            if me % 2 == 1 {
                self.scope.send_run(own, me - 1);
                self.scope.receive_run(own, me - 1);
                return;
            }
            self.scope.receive_run(others, me + 1);
            (self.operator.kernel)(own, others, own, n);
            number = me / 2;
        }
        let member = |number: usize| if number < extra { 2 * number } else { number + extra };
        let mut bit = 1;
        while bit < doubled {
            let other = member(number ^ bit);
            self.scope.exchange((own, other), (others, other));
            let (first, second) = if number & bit == 0 { (own, others) } else { (others, own) };
            (self.operator.kernel)(first, second, own, n);
            bit *= 2;
        }
        if me < 2 * extra {
            self.scope.send_run(own, me + 1);
        }
    }

    /// With all the others, long: member r combines slice r of everyone's.
    fn to_all_in_slices(&self, own: Room<'a>, n: usize) {
        let (members, me, size) = (self.scope.size, self.scope.me, self.size);
        let begin = |r: usize| r * (n / members) + r.min(n % members);
        let mine = begin(me + 1) - begin(me);
        let theirs = |r: usize| self.others.part(r * mine * size, mine * size);
        let slice = |r: usize| own.part(begin(r) * size, (begin(r + 1) - begin(r)) * size);
        self.scope.swap(theirs, || (), |r| *slice(r));
        // What the others will send next goes where their slices were.
        let result = slice(me);
        let combine = || {
            let operand = |r: usize| if r == me { result } else { theirs(r) };
            let mut so_far = operand(0);
            for r in 1..members {
                // The own slice is read at its turn, so that only the last result may be written there, unless it was the first.
                let to = if me == 0 || r == members - 1 { result } else { theirs(0) };
                (self.operator.kernel)(so_far, operand(r), to, mine);
                so_far = to;
            }
        };
        self.scope.swap(slice, combine, |_| *result);
    }
}

/// Single and double complex numbers, as Fortran and C have them.
pub type C = Complex<f32>;
/// As above.
pub type Z = Complex<f64>;
