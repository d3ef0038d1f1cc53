//! The named operations of reductions, on the types of elements that buffers have.

use fmpl::base::bytes::{Bytes, Room};
use fmpl::base::kernel::combine;
use fmpl::coll::Function;
use fmpl::coll::function::Closure;

/// An operation on elements of a type.
pub struct Operation(Function<'static>);

// SAFETY: all of them are the library's own functions, or closures that have nothing.
unsafe impl Send for Operation {}
// SAFETY: as above.
unsafe impl Sync for Operation {}

impl Operation {
    /// As the library has it.
    pub fn function(&self) -> Function<'static> {
        self.0
    }

    /// The operation of this name on elements of this format.
    pub fn named(op: &str, format: &str, item: usize) -> Option<Operation> {
        function(op, format, item).map(Operation)
    }
}

/// What elements are, by the format of a buffer (PEP 3118) and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    Complex(usize),
}

fn type_of(format: &str, item: usize) -> Option<Type> {
    let (order, code) = match format.as_bytes() {
        [order @ (b'@' | b'=' | b'<' | b'>' | b'!'), ..] => (*order, &format[1..]),
        _ => (b'@', format),
    };
    let swapped = if cfg!(target_endian = "little") { b">!".contains(&order) } else { order == b'<' };
    if swapped && item > 1 {
        return None;
    }
    match (code, item) {
        ("?", 1) => Some(Type::Bool),
        ("b" | "h" | "i" | "l" | "q" | "n", 1 | 2 | 4 | 8) => Some(Type::Signed(item)),
        ("B" | "H" | "I" | "L" | "Q" | "N", 1 | 2 | 4 | 8) => Some(Type::Unsigned(item)),
        ("f" | "d", 4 | 8) => Some(Type::Float(item)),
        ("Zf" | "Zd", 8 | 16) => Some(Type::Complex(item)),
        _ => None,
    }
}

/// A function of elements as one of vectors.
macro_rules! each {
    ($t:ty, $f:expr) => {{
        const SIZE: usize = size_of::<$t>();
        let closure: &'static Closure<'static> =
            &|inout: Room<'_>, input: Bytes<'_>, n: usize| combine::<$t>(inout, input, n, $f);
        Some(Function::rust(SIZE, closure))
    }};
}

macro_rules! integer {
    ($op:expr, $t:ty) => {
        match $op {
            "sum" => each!($t, |a, b| a.wrapping_add(b)),
            "prod" => each!($t, |a, b| a.wrapping_mul(b)),
            "max" => each!($t, |a, b| a.max(b)),
            "min" => each!($t, |a, b| a.min(b)),
            "band" => each!($t, |a, b| a & b),
            "bor" => each!($t, |a, b| a | b),
            "bxor" => each!($t, |a, b| a ^ b),
            "land" => each!($t, |a, b| (a != 0 && b != 0) as $t),
            "lor" => each!($t, |a, b| (a != 0 || b != 0) as $t),
            "lxor" => each!($t, |a, b| ((a != 0) != (b != 0)) as $t),
            _ => None,
        }
    };
}

macro_rules! float {
    ($op:expr, $t:ty, $predefined:expr) => {
        match $op {
            "prod" => each!($t, |a, b| a * b),
            op => predefined(op, $predefined),
        }
    };
}

macro_rules! complex {
    ($op:expr, $t:ty, $predefined:expr) => {
        match $op {
            "prod" => each!([$t; 2], |a, b| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]),
            "max" | "min" => None,
            op => predefined(op, $predefined),
        }
    };
}

/// Of the library's own functions that of this operation, on its types in this order: int, float, double, complex float, complex double.
fn predefined(op: &str, of_type: usize) -> Option<Function<'static>> {
    let first = match op {
        "sum" => 0,
        "absmax" => 5,
        "absmin" => 10,
        "max" => 15,
        "min" => 18,
        _ => return None,
    };
    Some(Function::predefined(first + of_type))
}

fn function(op: &str, format: &str, item: usize) -> Option<Function<'static>> {
    match type_of(format, item)? {
        Type::Bool => match op {
            "land" | "lor" | "lxor" => integer!(op, u8),
            _ => None,
        },
        Type::Signed(1) => integer!(op, i8),
        Type::Signed(2) => integer!(op, i16),
        Type::Signed(4) => predefined(op, 0).or_else(|| integer!(op, i32)),
        Type::Signed(8) => integer!(op, i64),
        Type::Unsigned(1) => integer!(op, u8),
        Type::Unsigned(2) => integer!(op, u16),
        Type::Unsigned(4) => integer!(op, u32),
        Type::Unsigned(8) => integer!(op, u64),
        Type::Float(4) => float!(op, f32, 1),
        Type::Float(8) => float!(op, f64, 2),
        Type::Complex(8) => complex!(op, f32, 3),
        Type::Complex(16) => complex!(op, f64, 4),
        _ => None,
    }
}
