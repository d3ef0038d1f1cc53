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

use crate::Int;
use crate::broadcast::{bad_topology, member_of, scope_of};
use crate::context::Context;
use crate::matrix::Shape;
use crate::order::{self, Complex, Element, Operation, Operator, Placed};
use crate::process::process;
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
pub struct Places {
    pub rows: *mut Int,
    pub columns: *mut Int,
    pub m: Int,
    pub lda: Int,
}

/// Combines the matrix at `at` over a scope.
///
/// # Safety
/// `at` is a matrix of that shape, its elements of type `T`; `places` likewise.
pub unsafe fn combine<T: Element>(context: &Context, call: &Call, shape: &Shape, at: *mut u8, places: Option<Places>) {
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
    let run = Run { context, which, scope, dest, shape, at };
    // SAFETY: as the caller promises.
    unsafe {
        match places {
            None => run.plain::<T>(order::plain::<T>(call.operation)),
            Some(places) => run.placed::<T>(order::placed::<T>(call.operation), &places),
        }
    }
}

struct Run<'a> {
    context: &'a Context,
    which: Which,
    scope: Scope<'a>,
    /// `None`: all.
    dest: Option<usize>,
    shape: &'a Shape,
    at: *mut u8,
}

impl Run<'_> {
    fn is_mine(&self) -> bool {
        self.dest.is_none_or(|dest| dest == self.scope.me)
    }

    unsafe fn plain<T: Element>(&self, operator: Operator) {
        if self.scope.size == 1 || self.shape.bytes() == 0 {
            return;
        }
        let (size, count) = (size_of::<T>(), self.shape.count());
        // What lies as it goes through goes at once.
        if self.dest.is_none()
            && self.shape.is_run()
            && count <= MOST
            && self.scope.combine_whole(self.at, count, operator.whole)
        {
            return;
        }
        let pieces = Pieces::new(&self.scope, operator, size);
        for (first, n) in pieces.of(count) {
            // SAFETY: pieces are within the matrix; the workspace has room for a piece.
            unsafe {
                if self.shape.is_run() {
                    pieces.combine(self.at.add(first * size), n, self.dest);
                } else {
                    let packed = pieces.room_for_packed();
                    self.shape.pack_part(self.at, first, n, packed);
                    pieces.combine(packed, n, self.dest);
                    if self.is_mine() {
                        self.shape.unpack_part(packed, first, n, self.at);
                    }
                }
            }
        }
    }

    unsafe fn placed<T: Element>(&self, operator: Operator, places: &Places) {
        if self.shape.bytes() == 0 {
            return;
        }
        let base = self.dest.unwrap_or(0);
        let members = self.scope.size;
        let distance = ((self.scope.me + members - base) % members) as u32;
        let pieces = Pieces::new(&self.scope, operator, size_of::<Placed<T>>());
        let packed = pieces.room_for_packed().cast::<Placed<T>>();
        for (first, n) in pieces.of(self.shape.count()) {
            // SAFETY: as above; elements of the matrix may have any alignment.
            unsafe {
                for k in 0..n {
                    let value = self.at.add(self.shape.offset(first + k)).cast::<T>().read_unaligned();
                    packed.add(k).write(Placed { value, distance });
                }
                if members > 1 {
                    pieces.combine(packed.cast(), n, self.dest);
                }
                if !self.is_mine() {
                    continue;
                }
                for k in 0..n {
                    let Placed { value, distance } = packed.add(k).read();
                    self.at.add(self.shape.offset(first + k)).cast::<T>().write_unaligned(value);
                    let (row, col) = self.coordinates((base + distance as usize) % members);
                    let (i, j) = ((first + k) % places.m as usize, (first + k) / places.m as usize);
                    let at = j * places.lda as usize + i;
                    places.rows.add(at).write(row);
                    places.columns.add(at).write(col);
                }
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
    packed: *mut u8,
    /// Where what the others send goes; and intermediate results.
    others: *mut u8,
}

impl<'a> Pieces<'a> {
    fn new(scope: &'a Scope<'a>, operator: Operator, size: usize) -> Pieces<'a> {
        // Two pieces, one of them in slices that are rounded up.
        let work = process().work(3 * PIECE + 32 * (scope.size + 1));
        // SAFETY: within the workspace.
        Pieces { scope, operator, size, packed: work, others: unsafe { work.add(PIECE) } }
    }

    fn room_for_packed(&self) -> *mut u8 {
        self.packed
    }

    /// The first element of each piece, and how many it has.
    fn of(&self, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let most = PIECE / self.size;
        (0..count.div_ceil(most)).map(move |k| (k * most, most.min(count - k * most)))
    }

    /// Combines `n` elements at `own`, where the result is afterwards, if it is for this process; what is not the destination's stays.
    ///
    /// # Safety
    /// `n` elements at `own`, at most a piece.
    unsafe fn combine(&self, own: *mut u8, n: usize, dest: Option<usize>) {
        // SAFETY: as the caller promises.
        unsafe {
            match dest {
                Some(dest) => self.to_one(own, n, dest),
                None if self.scope.combine_whole(own, n, self.operator.whole) => {}
                None if n * self.size < SLICES || n < self.scope.size => self.to_all(own, n),
                None => self.to_all_in_slices(own, n),
            }
        }
    }

    unsafe fn to_one(&self, own: *mut u8, n: usize, dest: usize) {
        let (members, bytes) = (self.scope.size, n * self.size);
        let me = (self.scope.me + members - dest) % members;
        let member = |number: usize| (number + dest) % members;
        // The destination's result goes into its matrix, the others' on the way elsewhere.
        // SAFETY: the workspace has room for two pieces there.
        let (result, incoming) =
            unsafe { if me == 0 { (own, self.others) } else { (self.others.add(PIECE), self.others) } };
        let mut so_far = own;
        let mut bit = 1;
        while bit < members {
            if me & bit != 0 {
                self.scope.send_run(so_far, bytes, member(me - bit));
                return;
            }
            if me + bit < members {
                self.scope.receive_run(incoming, bytes, member(me + bit));
                // SAFETY: `n` elements each.
                unsafe { (self.operator.kernel)(so_far, incoming, result, n) };
                so_far = result;
            }
            bit *= 2;
        }
    }

    /// With all the others, short.
    unsafe fn to_all(&self, own: *mut u8, n: usize) {
        let (members, me, bytes) = (self.scope.size, self.scope.me, n * self.size);
        let doubled = 1 << members.ilog2();
        let extra = members - doubled;
        // Those beyond a power of two join a neighbour at first and hear the result from it.
        let mut number = me.wrapping_sub(extra);
        if me < 2 * extra {
            if me % 2 == 1 {
                self.scope.send_run(own, bytes, me - 1);
                self.scope.receive_run(own, bytes, me - 1);
                return;
            }
            self.scope.receive_run(self.others, bytes, me + 1);
            // SAFETY: `n` elements each.
            unsafe { (self.operator.kernel)(own, self.others, own, n) };
            number = me / 2;
        }
        let member = |number: usize| if number < extra { 2 * number } else { number + extra };
        let mut bit = 1;
        while bit < doubled {
            let other = member(number ^ bit);
            self.scope.exchange((own, bytes, other), (self.others, bytes, other));
            let (first, second) = if number & bit == 0 { (own, self.others) } else { (self.others, own) };
            // SAFETY: `n` elements each.
            unsafe { (self.operator.kernel)(first, second, own, n) };
            bit *= 2;
        }
        if me < 2 * extra {
            self.scope.send_run(own, bytes, me + 1);
        }
    }

    /// With all the others, long: member r combines slice r of everyone's.
    unsafe fn to_all_in_slices(&self, own: *mut u8, n: usize) {
        let (members, me, size) = (self.scope.size, self.scope.me, self.size);
        let begin = |r: usize| r * (n / members) + r.min(n % members);
        let (first, mine) = (begin(me), begin(me + 1) - begin(me));
        let others = (0..members).filter(|r| *r != me);
        // SAFETY: slices are within the piece; `others` has room for one slice of each member.
        unsafe {
            let theirs = |r: usize| self.others.add(r * mine * size);
            let slice = |r: usize| own.add(begin(r) * size);
            let bytes = |r: usize| (begin(r + 1) - begin(r)) * size;
            others.clone().for_each(|r| self.scope.begin_receive(theirs(r), mine * size, r));
            others.clone().for_each(|r| self.scope.begin_send(slice(r), bytes(r), r));
            others.clone().for_each(|r| self.scope.end_receive(r));
            others.clone().for_each(|r| self.scope.end_send(r));
            // What the others will send next goes where their slices were.
            others.clone().for_each(|r| self.scope.begin_receive(slice(r), bytes(r), r));
            let result = own.add(first * size);
            let operand = |r: usize| if r == me { result } else { theirs(r) };
            let mut so_far = operand(0);
            for r in 1..members {
                // The own slice is read at its turn, so that only the last result may be written there, unless it was the first.
                let to = if me == 0 || r == members - 1 { result } else { theirs(0) };
                (self.operator.kernel)(so_far, operand(r), to, mine);
                so_far = to;
            }
            others.clone().for_each(|r| self.scope.begin_send(result, mine * size, r));
            others.clone().for_each(|r| self.scope.end_receive(r));
            others.for_each(|r| self.scope.end_send(r));
        }
    }
}

/// Single and double complex numbers, as Fortran and C have them.
pub type C = Complex<f32>;
/// As above.
pub type Z = Complex<f64>;
