//! The predefined functions of reductions, for the generated files: from the library's own list.

use fmpl::base::kernel::{Kind, Operation, PREDEFINED, Predefined};

use crate::source::{Doc, Function, Item};

/// The title of the part of the header that has them.
pub const PART: &str = "Predefined functions of reductions";

/// What stands below the title.
pub const NAMES: &str = "\
/*
 * A name is fmpl_, what the elements are, the operation.
 *
 * Elements: i8 i16 i i64 u8 u16 u32 u64 are integers of so many bits (i: int), s float, d double, f80 long double,
 * c float complex, z double complex, f16 IEEE binary16 (half), bf16 bfloat16, b8 bool of one byte. f80 is there
 * where long double is that of the x87, on x86-64.
 *
 * Operations: sum, prod; maxval, minval (by value) and amax, amin (by absolute value); maxloc, minloc on
 * struct { T value; int index; }; land, lor, lxor, whose results are 0 and 1; band, bor, bxor.
 *
 * Sums and products of integers wrap. A NaN is larger and smaller than every number; of two zeros the maximum is +0,
 * the minimum -0. f16 and bf16 are rounded to nearest after each sum.
 */
";

/// The functions whose elements are of this kind are declared only where this is defined.
fn condition(kind: Kind) -> Option<&'static str> {
    (kind == Kind::f80).then_some("__x86_64__")
}

/// Is it there on the processor of these tests?
fn is_here(f: &Predefined) -> bool {
    condition(f.kind).is_none() || cfg!(target_arch = "x86_64")
}

/// What C calls the elements.
pub fn c_type(kind: Kind) -> &'static str {
    match kind {
        Kind::i8 => "int8_t",
        Kind::i16 => "int16_t",
        Kind::i => "int",
        Kind::i64 => "int64_t",
        Kind::u8 => "uint8_t",
        Kind::u16 => "uint16_t",
        Kind::u32 => "uint32_t",
        Kind::u64 => "uint64_t",
        Kind::s => "float",
        Kind::d => "double",
        Kind::f80 => "long double",
        Kind::c => "complex float",
        Kind::z => "complex double",
        Kind::f16 => "IEEE binary16",
        Kind::bf16 => "bfloat16",
        Kind::b8 => "bool",
    }
}

/// What a function does.
fn meaning(f: Predefined) -> String {
    let bits = match f.kind {
        Kind::i8 | Kind::u8 => 8,
        Kind::i16 | Kind::u16 => 16,
        Kind::i | Kind::u32 => 32,
        Kind::i64 | Kind::u64 => 64,
        _ => 0,
    };
    let modulo = if bits > 0 { format!(" modulo 2^{bits}") } else { String::new() };
    let complex = matches!(f.kind, Kind::c | Kind::z);
    let by_size = |which: &str| match complex {
        true => format!(
            "of inout[k] and in[k] the one with the {which} absolute value (|re| + |im|); of equal ones the {which} real part, then imaginary part"
        ),
        false => format!("of inout[k] and in[k] the one with the {which} absolute value; of equal ones the {which}"),
    };
    let located = |which: &str| {
        format!("of inout[k] and in[k] the one with the {which} value; of equal ones the one with the lower index")
    };
    let what = match f.operation {
        Operation::sum => format!("inout[k] = inout[k] + in[k]{modulo}"),
        Operation::prod => format!("inout[k] = inout[k] * in[k]{modulo}"),
        Operation::maxval => "of inout[k] and in[k] the larger one".into(),
        Operation::minval => "of inout[k] and in[k] the smaller one".into(),
        Operation::amax => by_size("larger"),
        Operation::amin => by_size("smaller"),
        Operation::maxloc => located("larger"),
        Operation::minloc => located("smaller"),
        Operation::land => "1 if neither inout[k] nor in[k] is 0, else 0".into(),
        Operation::lor => "0 if inout[k] and in[k] both are 0, else 1".into(),
        Operation::lxor => "1 if just one of inout[k] and in[k] is 0, else 0".into(),
        Operation::band => "inout[k] = inout[k] & in[k]".into(),
        Operation::bor => "inout[k] = inout[k] | in[k]".into(),
        Operation::bxor => "inout[k] = inout[k] ^ in[k]".into(),
    };
    let pair = if matches!(f.operation, Operation::maxloc | Operation::minloc) { " and int" } else { "" };
    format!("{}{pair}: {what}.", c_type(f.kind))
}

fn function(name: String, doc: String, kinds: [&str; 3]) -> Item {
    let parameters = ["inout", "input", "count"].map(str::to_owned).into_iter().zip(kinds.map(str::to_owned)).collect();
    Item::Function(Function { name, parameters, result: None, doc: Doc { text: vec![doc], ..Doc::default() } })
}

/// In the order of the header: by operations.
pub fn in_order() -> Vec<Predefined> {
    let of = |operation: Operation| PREDEFINED.iter().filter(move |f| f.operation == operation).copied();
    Operation::ALL.iter().copied().flat_map(of).collect()
}

/// The parts of a file: its title, then what `of` makes of a function; those that are not everywhere, those with the paper's names.
fn parts(of: impl Fn(String, Predefined, Option<String>) -> Item, conditions: bool) -> Vec<Item> {
    let part = |title: String, condition: Option<&str>| {
        Item::Part(
            condition.filter(|_| conditions).map_or(title.clone(), |name| format!("{title}: {name} declares them")),
        )
    };
    let (everywhere, elsewhere): (Vec<_>, Vec<_>) = in_order().into_iter().partition(|f| condition(f.kind).is_none());
    let mut items = vec![part(PART.into(), None)];
    items.extend(everywhere.iter().map(|f| of(f.name(), *f, None)));
    items.push(part("Predefined functions of long double, on x86-64".into(), condition(Kind::f80)));
    items.extend(elsewhere.iter().map(|f| of(f.name(), *f, None)));
    items.push(part(
        "The same by the paper's names, which readers of MPI take for other functions".into(),
        Some("FMPL_PAPER_NAMES"),
    ));
    items.extend(everywhere.iter().filter_map(|f| Some(of(f.paper_name()?, *f, Some(f.name())))));
    items
}

/// For `fmpl.h`.
pub fn c() -> Vec<Item> {
    let kinds = ["*mut c_void", "*const c_void", "c_int"];
    let doc = |f, same: Option<String>| {
        same.map_or_else(|| meaning(f), |name| format!("The paper's name for `fmpl_{name}`: by absolute value."))
    };
    parts(|name, f, same| function(format!("fmpl_{name}"), doc(f, same), kinds), true)
}

/// For `fmplf.h` and `fmpl.f90`.
pub fn fortran() -> Vec<Item> {
    let kinds = ["Buffer", "Data", "In"];
    parts(|name, _, _| function(format!("fmpl_{name}_"), format!("As [`c::fmpl_{name}`]."), kinds), false)
}

/// Is this one of them, by its Fortran name?
pub fn is_one(name: &str) -> bool {
    fortran().iter().any(|item| matches!(item, Item::Function(function) if function.name == name))
}

/// Is a function, by its C or Fortran name, there on the processor of these tests?
pub fn links(name: &str) -> bool {
    let name = name.trim_end_matches('_');
    !PREDEFINED.iter().any(|f| !is_here(f) && name == format!("fmpl_{}", f.name()))
}
