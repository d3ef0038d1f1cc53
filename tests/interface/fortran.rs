//! Writes `include/fmplf.h` and `include/fmpl.f90` from the interface's source.

use fmpl::ffi::fortran::FMPL_NULL;

use crate::acp;
use crate::header;
use crate::reductions;
use crate::source::{Doc, Function, Item, doc_before, read};

const C: &str = include_str!("../../src/ffi/c.rs");
const SOURCE: &str = concat!(
    include_str!("../../src/ffi/fortran.rs"),
    include_str!("../../src/ffi/fortran/shapes.rs"),
    include_str!("../../src/ffi/fortran/any.rs"),
    include_str!("../../src/ffi/fortran/prepared.rs"),
    include_str!("../../src/ffi/fortran/requests.rs"),
    include_str!("../../src/ffi/fortran/loans.rs"),
    include_str!("../../src/ffi/fortran/collective.rs"),
    include_str!("../../src/ffi/fortran/begun.rs"),
    include_str!("../../src/ffi/fortran/grids.rs"),
    include_str!("../../src/ffi/fortran/acp.rs")
);

const INCLUDE_PREAMBLE: &str = "\
! FMPL for Fortran without modules: include 'fmplf.h'
!
! Written by the library's own tests from src/ffi/fortran.rs and the
! files beside it.
!
! The subroutines are those of fmpl.h with the return code in a
! trailing argument ier, all integers default INTEGER, sizes in bytes.
! A subroutine with a size exists a second time with INTEGER(8) sizes:
! fmpl_send8, fmpl_recv8, ... Blocks, displacements, lengths and
! addresses are INTEGER(8). Flags are INTEGER, 0 or 1.
!
! A compiler that compares the calls of an external subroutine with
! each other must be told not to when buffers of several types are
! passed: gfortran -fallow-argument-mismatch. The module in fmpl.f90
! does not need this.
";

const MODULE_PREAMBLE: &str = "\
! FMPL for Fortran: use fmpl
!
! Written by the library's own tests from src/ffi/fortran.rs and the
! files beside it.
!
! Compile this file with the compiler of the program. The subroutines are those of fmpl.h with the return code in a
! trailing argument ier. Buffers may have any type and rank. An array section with gaps would be copied for the call:
! send and receive it with fmpl_send_block and its relatives instead. Sizes are in bytes, INTEGER or INTEGER(8). Flags
! are INTEGER, 0 or 1.
!
! A buffer that is used between an isend or irecv and the call that completes it should be ASYNCHRONOUS in the program
! (or a TARGET, or in a module): its contents change while the compiler sees no reason for it.
module fmpl
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr, c_double
  implicit none
  public
  private :: c_int, c_int64_t, c_ptr, c_double

";

const REQUEST: &str = "\
  type, bind(C) :: fmpl_request
    integer(c_int) :: kind = FMPL_REQUEST_NONE, peer = FMPL_PROC_NULL, index = 0, comm = FMPL_COMM_WORLD
    integer(c_int64_t) :: ticket = 0
  end type fmpl_request
";

/// What the module has.
fn items() -> impl Iterator<Item = Item> {
    read(SOURCE).into_iter().chain(reductions::fortran())
}

const REDUCTION: &str = "
  abstract interface
    subroutine fmpl_reduction(inout, input, count) bind(C)
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: inout
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: inout
      !DIR$ IGNORE_TKR inout
      type(*), dimension(*) :: inout
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: input
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: input
      !DIR$ IGNORE_TKR input
      type(*), dimension(*), intent(in) :: input
      integer(c_int), intent(in) :: count
    end subroutine fmpl_reduction
  end interface
";

/// The Fortran subroutines and functions, by their symbols.
pub fn functions() -> Vec<Function> {
    items().filter_map(|item| if let Item::Function(f) = item { Some(f) } else { None }).collect()
}

/// The constants: name, value, meaning.
fn constants() -> Vec<(&'static str, i64, String)> {
    let c: Vec<Item> = read(C);
    let meaning = |wanted: &str| {
        c.iter()
            .find_map(|item| match item {
                Item::Constant { name, doc } if name == wanted => Some(doc.paragraphs().join(" ")),
                _ => None,
            })
            .unwrap_or_else(|| panic!("{wanted} has no documentation"))
    };
    let plain = header::constants().into_iter().map(|(name, value)| {
        // Fortran does not tell upper from lower case: the constant would be the subroutine fmpl_version.
        (if name == "FMPL_VERSION" { "FMPL_VERSION_NUMBER" } else { name }, value, meaning(name))
    });
    let errors = header::errors().into_iter().map(|(name, number, doc)| (name, i64::from(number), doc.text.join(" ")));
    plain.chain(errors).collect()
}

/// The text of `include/fmplf.h`: legal in fixed and in free form, so comments begin in column 1, statements in column 7, and
/// no line is longer than 72.
pub fn include_file() -> String {
    let mut out = INCLUDE_PREAMBLE.to_owned();
    for (name, value, meaning) in constants() {
        fill(&mut out, "! ", "! ", &meaning, 72);
        out.push_str(&format!("      integer {name}\n      parameter ({name} = {value})\n"));
    }
    out.push_str("! For an area or a spool: let the library place it.\n");
    out.push_str(&format!("      integer*8 FMPL_NULL\n      parameter (FMPL_NULL = {FMPL_NULL}_8)\n"));
    for (name, value) in acp::constants() {
        let value = value as i64;
        out.push_str(&format!("      integer*8 {name}\n      parameter ({name} = {value}_8)\n"));
    }
    for function in functions() {
        let name = function.name.trim_end_matches('_');
        if function.result.is_some() {
            out.push_str(&format!("      double precision {name}\n"));
        }
        out.push_str(&format!("      external {name}\n"));
    }
    assert!(out.lines().all(|line| line.len() <= 72), "a line of fmplf.h is too long for fixed form");
    out
}

/// The text of `include/fmpl.f90`.
pub fn module() -> String {
    let mut out = MODULE_PREAMBLE.to_owned();
    for (name, value, meaning) in constants() {
        fill(&mut out, "  !> ", "  !! ", &meaning, 110);
        out.push_str(&format!("  integer(c_int), parameter :: {name} = {value}\n"));
    }
    out.push_str("  !> For an area or a spool: let the library place it.\n");
    out.push_str(&format!("  integer(c_int64_t), parameter :: FMPL_NULL = {FMPL_NULL}_c_int64_t\n"));
    out.push_str("  ! Of acp.h: no address, no key, and orders.\n");
    for (name, value) in acp::constants() {
        out.push_str(&format!("  integer(c_int64_t), parameter :: {name} = {}_c_int64_t\n", value as i64));
    }

    fill(&mut out, "  !> ", "  !! ", &doc_before(C, "pub type fmpl_request").paragraphs().join(" "), 110);
    out.push_str(REQUEST);

    let c = header::functions();
    let functions = functions();
    for item in items() {
        match item {
            Item::Part(title) => {
                out.push_str(&format!("\n  ! ---- {title} {}\n", "-".repeat(100 - title.len())));
                if title == reductions::PART {
                    out.push_str(&reductions::NAMES.replace("/*\n", "").replace(" */\n", "").replace(" *", "  !"));
                    out.push_str(REDUCTION);
                }
            }
            Item::Function(function) if reductions::is_one(&function.name) => {
                let name = function.name.trim_end_matches('_');
                out.push('\n');
                describe(&mut out, &function, c.iter().find(|other| other.name == name));
                out.push_str(&format!("  procedure(fmpl_reduction), bind(C, name=\"{}\") :: {name}\n", function.name));
            }
            Item::Function(function) => {
                let name = function.name.trim_end_matches('_').to_owned();
                if functions.iter().any(|other| {
                    other.name == format!("{}_", name.trim_end_matches('8')) && other.name != function.name
                }) {
                    continue; // stands in the interface of its sibling with INTEGER sizes
                }
                let wide = functions.iter().find(|other| other.name == format!("{name}8_"));
                out.push('\n');
                describe(&mut out, &function, c.iter().find(|other| other.name == name));
                out.push_str(&format!(
                    "  interface{}\n",
                    if wide.is_some() { format!(" {name}") } else { String::new() }
                ));
                for specific in [Some(&function), wide].into_iter().flatten() {
                    interface(&mut out, specific);
                }
                out.push_str("  end interface\n");
            }
            Item::Constant { .. } => {}
        }
    }
    out.push_str("end module fmpl\n");
    assert!(out.is_ascii(), "some compilers take nothing but ASCII");
    out
}

/// The documentation: of the C function, then what is different here.
fn describe(out: &mut String, function: &Function, c: Option<&Function>) {
    let own = function.doc.paragraphs().join(" ");
    let (same, own) = match own.split_once(']').filter(|(begin, _)| begin.starts_with("As [`c::")) {
        Some((_, rest)) => (true, rest.trim_start_matches([';', ':', ',', '.', ' ']).to_owned()),
        None => (false, own),
    };
    let empty = Doc::default();
    let inherited = c.filter(|_| same).map_or(&empty, |c| &c.doc);
    let mut first = "  !> ";
    for paragraph in
        inherited.paragraphs().iter().map(String::as_str).chain([own.as_str()]).filter(|text| !text.is_empty())
    {
        fill(out, first, "  !! ", paragraph, 110);
        first = "  !! ";
    }
    let parameters = if function.doc.parameters.is_empty() { &inherited.parameters } else { &function.doc.parameters };
    for (name, text) in parameters.iter().filter(|(_, text)| text != "hidden.") {
        fill(out, "  !! @param ", "  !!     ", &format!("{name} {}", no_pointers(text)), 110);
    }
    if function.name.starts_with("acp_") {
        out.push_str("  !! @param ier FMPL_SUCCESS or FMPL_ERR_*\n");
    } else if let Some(text) = inherited
        .returns
        .as_deref()
        .map(no_pointers)
        .filter(|_| function.result.is_none() && !parameters.iter().any(|(name, _)| name == "ier"))
    {
        let errors = if text.is_empty() { text } else { format!(", or: {text}") };
        fill(out, "  !! @param ", "  !!     ", &format!("ier FMPL_SUCCESS{errors}"), 110);
    }
}

/// A description for C, without what it says of null pointers: Fortran cannot pass one, but it has `FMPL_NULL`.
fn no_pointers(text: &str) -> String {
    let mut text = text.to_owned();
    for drop in ["; `FMPL_ERR_ARGUMENT` for a NULL pointer", "`FMPL_ERR_ARGUMENT` for a NULL pointer."] {
        text = text.replace(drop, "");
    }
    text.replace("; may be NULL.", ".").replace(" NULL", " FMPL_NULL")
}

fn interface(out: &mut String, function: &Function) {
    let name = function.name.trim_end_matches('_');
    let text = function
        .parameters
        .iter()
        .any(|(_, kind)| matches!(kind.as_str(), "*mut c_char" | "*const c_char" | "Function"));
    let names: Vec<&str> =
        function.parameters.iter().filter(|(_, kind)| kind != "usize").map(|(name, _)| name.as_str()).collect();
    // A CHARACTER's hidden length is no matter of C, nor is a subroutine of Fortran: these have the compiler's own binding.
    let binding = if text { String::new() } else { format!(" bind(C, name=\"{}\")", function.name) };
    let (kind, result) = match function.result {
        Some(_) => ("function", " result(seconds)"),
        None => ("subroutine", ""),
    };
    let head = format!("    {kind} {name}({}){binding}{result}", names.join(", "));
    // A line of free form has 132 columns.
    let head = if head.len() > 130 { head.replace(") bind(", ") &\n        bind(") } else { head };
    out.push_str(&format!("{head}\n"));
    let request = if function.parameters.iter().any(|(_, kind)| kind == "Requests") { ", fmpl_request" } else { "" };
    out.push_str(&format!("      import :: c_int, c_int64_t, c_ptr, c_double{request}\n"));
    let pending = matches!(name.strip_prefix("fmpl_"), Some(rest) if rest.starts_with("isend") || rest.starts_with("irecv"))
        || name.contains("sendbuf_set")
        || name == "acp_register_memory";
    for (name, kind) in &function.parameters {
        let declaration = match kind.as_str() {
            "In" => "integer(c_int), intent(in)",
            "Out" => "integer(c_int), intent(out)",
            "In8" => "integer(c_int64_t), intent(in)",
            "Out8" => "integer(c_int64_t), intent(out)",
            "Array" => "integer(c_int), dimension(*), intent(in)",
            "Array8" | "Members" => "integer(c_int64_t), dimension(*), intent(in)",
            "Requests" => "type(fmpl_request), dimension(*), intent(inout)",
            "Codes" => "integer(c_int), dimension(*), intent(inout)",
            "*mut c_char" => "character(len=*), intent(out)",
            "*const c_char" => "character(len=*), intent(in)",
            "NewAddress" | "Lent" => "type(c_ptr), intent(out)",
            "Address" => "type(c_ptr), intent(in)",
            "Data" if pending => "type(*), dimension(*), intent(in), asynchronous",
            "Buffer" if pending => "type(*), dimension(*), asynchronous",
            "Data" => "type(*), dimension(*), intent(in)",
            "Buffer" => "type(*), dimension(*)",
            "Function" => "external",
            "usize" => continue,
            other => panic!("no Fortran type for `{other}`"),
        };
        if matches!(kind.as_str(), "Data" | "Buffer") {
            out.push_str(&format!("      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n"));
            out.push_str(&format!("      !DEC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n"));
            out.push_str(&format!("      !DIR$ IGNORE_TKR {name}\n"));
        }
        out.push_str(&format!("      {declaration} :: {name}\n"));
    }
    if function.result.is_some() {
        out.push_str("      real(c_double) :: seconds\n");
    }
    out.push_str(&format!("    end {kind} {name}\n"));
}

fn fill(out: &mut String, first: &str, next: &str, text: &str, width: usize) {
    let (mut line, mut begin) = (first.to_owned(), true);
    for word in text.replace('`', "").split(' ') {
        if !begin && line.len() + 1 + word.len() > width {
            out.push_str(&line);
            out.push('\n');
            line = next.to_owned();
            begin = true;
        }
        if !begin {
            line.push(' ');
        }
        line.push_str(word);
        begin = false;
    }
    out.push_str(&line);
    out.push('\n');
}
