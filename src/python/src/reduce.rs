//! The named operations of reductions, on the types of elements that buffers have.

use fmpl::base::kernel::{self, Kind, PREDEFINED, Predefined};
use fmpl::coll::Function;

/// An operation on elements of a type.
pub struct Operation(Function<'static>);

// SAFETY: all of them are the library's own functions, which have nothing.
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
        ("e" | "f" | "d", 2 | 4 | 8) => Some(Type::Float(item)),
        ("Zf" | "Zd", 8 | 16) => Some(Type::Complex(item)),
        _ => None,
    }
}

/// The library's function of this operation, if it has one for such elements.
fn function(op: &str, format: &str, item: usize) -> Option<Function<'static>> {
    let kind = match type_of(format, item)? {
        Type::Bool => Kind::b8,
        Type::Signed(1) => Kind::i8,
        Type::Signed(2) => Kind::i16,
        Type::Signed(4) => Kind::i,
        Type::Signed(8) => Kind::i64,
        Type::Unsigned(1) => Kind::u8,
        Type::Unsigned(2) => Kind::u16,
        Type::Unsigned(4) => Kind::u32,
        Type::Unsigned(8) => Kind::u64,
        Type::Float(2) => Kind::f16,
        Type::Float(4) => Kind::s,
        Type::Float(8) => Kind::d,
        Type::Complex(8) => Kind::c,
        Type::Complex(16) => Kind::z,
        _ => return None,
    };
    let operation = match op {
        "sum" => kernel::Operation::sum,
        "prod" => kernel::Operation::prod,
        "max" => kernel::Operation::maxval,
        "min" => kernel::Operation::minval,
        "absmax" => kernel::Operation::amax,
        "absmin" => kernel::Operation::amin,
        "land" => kernel::Operation::land,
        "lor" => kernel::Operation::lor,
        "lxor" => kernel::Operation::lxor,
        "band" => kernel::Operation::band,
        "bor" => kernel::Operation::bor,
        "bxor" => kernel::Operation::bxor,
        _ => return None,
    };
    let is_there = PREDEFINED.contains(&Predefined { kind, operation });
    is_there.then(|| Function::predefined(kind, operation))
}
