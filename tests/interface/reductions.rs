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

/// What MPI calls elements of this kind.
fn mpi_types(f: &Predefined) -> &'static str {
    if matches!(f.operation, Operation::maxloc | Operation::minloc) {
        return match f.kind {
            Kind::i16 => "MPI_SHORT_INT",
            Kind::i => "MPI_2INT MPI_2INTEGER",
            Kind::i64 => "MPI_LONG_INT",
            Kind::s => "MPI_FLOAT_INT",
            Kind::d => "MPI_DOUBLE_INT",
            Kind::f80 => "MPI_LONG_DOUBLE_INT",
            _ => "",
        };
    }
    match (f.kind, f.operation) {
        (_, Operation::amax | Operation::amin) => "",
        (Kind::u8, Operation::band | Operation::bor | Operation::bxor) => "MPI_BYTE MPI_UINT8_T MPI_UNSIGNED_CHAR",
        (Kind::i, Operation::land | Operation::lor | Operation::lxor) => {
            "MPI_LOGICAL MPI_INT MPI_INT32_T MPI_INTEGER MPI_INTEGER4"
        }
        (Kind::i8, _) => "MPI_INT8_T MPI_SIGNED_CHAR MPI_INTEGER1",
        (Kind::i16, _) => "MPI_INT16_T MPI_SHORT MPI_INTEGER2",
        (Kind::i, _) => "MPI_INT MPI_INT32_T MPI_INTEGER MPI_INTEGER4",
        (Kind::i64, _) => "MPI_INT64_T MPI_LONG MPI_LONG_LONG MPI_INTEGER8 MPI_AINT MPI_OFFSET MPI_COUNT",
        (Kind::u8, _) => "MPI_UINT8_T MPI_UNSIGNED_CHAR",
        (Kind::u16, _) => "MPI_UINT16_T MPI_UNSIGNED_SHORT",
        (Kind::u32, _) => "MPI_UINT32_T MPI_UNSIGNED",
        (Kind::u64, _) => "MPI_UINT64_T MPI_UNSIGNED_LONG MPI_UNSIGNED_LONG_LONG",
        (Kind::s, _) => "MPI_FLOAT MPI_REAL MPI_REAL4",
        (Kind::d, _) => "MPI_DOUBLE MPI_DOUBLE_PRECISION MPI_REAL8",
        (Kind::f80, _) => "MPI_LONG_DOUBLE",
        (Kind::c, _) => "MPI_C_FLOAT_COMPLEX MPI_CXX_FLOAT_COMPLEX MPI_COMPLEX MPI_COMPLEX8",
        (Kind::z, _) => "MPI_C_DOUBLE_COMPLEX MPI_CXX_DOUBLE_COMPLEX MPI_DOUBLE_COMPLEX MPI_COMPLEX16",
        (Kind::f16, _) => "MPI_REAL2 MPIX_C_FLOAT16",
        (Kind::bf16, _) => "",
        (Kind::b8, _) => "MPI_C_BOOL MPI_CXX_BOOL",
    }
}

/// MPI's operation, if it has it, and Rust's name.
fn operations(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::sum => ("MPI_SUM", "Sum"),
        Operation::prod => ("MPI_PROD", "Prod"),
        Operation::maxval => ("MPI_MAX", "MaxVal"),
        Operation::minval => ("MPI_MIN", "MinVal"),
        Operation::amax => ("", "AbsMax"),
        Operation::amin => ("", "AbsMin"),
        Operation::maxloc => ("MPI_MAXLOC", "MaxLoc"),
        Operation::minloc => ("MPI_MINLOC", "MinLoc"),
        Operation::land => ("MPI_LAND", "Land"),
        Operation::lor => ("MPI_LOR", "Lor"),
        Operation::lxor => ("MPI_LXOR", "Lxor"),
        Operation::band => ("MPI_BAND", "Band"),
        Operation::bor => ("MPI_BOR", "Bor"),
        Operation::bxor => ("MPI_BXOR", "Bxor"),
    }
}

/// What Rust calls the elements.
fn rust_type(f: &Predefined) -> Option<String> {
    let value = match f.kind {
        Kind::f80 => return None,
        Kind::i => "i32",
        Kind::s => "f32",
        Kind::d => "f64",
        Kind::c => "[f32; 2]",
        Kind::z => "[f64; 2]",
        Kind::f16 => "F16",
        Kind::bf16 => "Bf16",
        Kind::b8 => "u8",
        kind => kind.name(),
    };
    let located = matches!(f.operation, Operation::maxloc | Operation::minloc);
    Some(if located { format!("Located<{value}>") } else { value.to_owned() })
}

/// The heading under which `docs/reductions.md` has the table, the last of the page.
pub const ROWS: &str = "## Row by row\n";

/// Row by row: MPI's operation and types, and what to use.
pub fn rows() -> String {
    let code = |names: &str| match names {
        "" => "–".to_owned(),
        names => names.split(' ').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" "),
    };
    let mut out = "\n| MPI's operation | MPI's types | C and Fortran | Rust |\n|---|---|---|---|\n".to_owned();
    for f in in_order() {
        let (mpi, rust) = operations(f.operation);
        let rust = rust_type(&f).map_or("–".into(), |t| format!("`{rust}` on `{t}`"));
        out.push_str(&format!("| {} | {} | `fmpl_{}` | {rust} |\n", code(mpi), code(mpi_types(&f)), f.name()));
    }
    out
}
