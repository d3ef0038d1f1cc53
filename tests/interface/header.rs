//! Writes `include/fmpl.h` from the interface's source.

use fmpl::Code;
use fmpl::ffi::c;

use crate::acp;
use crate::reductions;
use crate::source::{Doc, Function, Item, doc_before, read};

const SOURCE: &str = concat!(
    include_str!("../../src/ffi/c.rs"),
    include_str!("../../src/ffi/c/outside.rs"),
    include_str!("../../src/ffi/c/groups.rs"),
    include_str!("../../src/ffi/c/windows.rs"),
    include_str!("../../src/ffi/c/shapes.rs"),
    include_str!("../../src/ffi/c/any.rs"),
    include_str!("../../src/ffi/c/prepared.rs"),
    include_str!("../../src/ffi/c/requests.rs"),
    include_str!("../../src/ffi/c/loans.rs"),
    include_str!("../../src/ffi/c/counters.rs"),
    include_str!("../../src/ffi/c/collective.rs"),
    include_str!("../../src/ffi/c/begun.rs"),
    include_str!("../../src/ffi/c/tickets.rs"),
    include_str!("../../src/ffi/c/uneven.rs"),
    include_str!("../../src/ffi/c/grids.rs")
);
const SECOND_NAMES_SOURCE: &str = include_str!("../../src/ffi/second_names.rs");
const ERRORS: &str = include_str!("../../src/base/error.rs");
const LAYOUTS: &str = include_str!("../../src/base/layout.rs");
const WIDTH: usize = 110;

const PREAMBLE: &str = r#"/*
 * FMPL: message passing by remote memory writes, matched at the sender.
 *
 * Written by the library's own tests from src/ffi/c.rs and the files in src/ffi/c; change those, then:
 *     FMPL_TEST_BLESS=1 cargo test --test interface
 */
/**
 * @file fmpl.h
 *
 * A message is addressed by (communicator, peer, index). The index names a fixed slot, not a tag in a queue: the
 * receiver tells the sender where the message may be put, and the sender writes it there. At most one isend and one
 * irecv may be under way on one (communicator, peer, index) at a time; different indices are independent, and
 * different threads may use them at the same time.
 *
 * Sizes are in bytes, times in milliseconds where the name says ms and in seconds otherwise. Functions that return
 * int return FMPL_SUCCESS or an error code FMPL_ERR_*; then fmpl_last_error() has a text with the details. After an
 * error the job can be used as before. Any function but fmpl_init, fmpl_initialized, fmpl_wtime, fmpl_strerror,
 * fmpl_last_error, fmpl_version and fmpl_abort returns FMPL_ERR_INIT before fmpl_init and after the last
 * fmpl_finalize, and FMPL_ERR_FORK in a process that was forked after fmpl_init.
 *
 * A signal handler may call fmpl_initialized, fmpl_wtime, fmpl_version and fmpl_strerror, and nothing else of this
 * file; it may not leave a call by longjmp or an exception. A handler ends no wait (there is no EINTR), and the
 * library's own threads block all signals.
 *
 * The paper: Tatebe, Nagashima, Sekiguchi, Kitabayashi, Hayashida: Design and Implementation of FMPL, a Fast
 * Message-passing Library Based on Remote Memory Operations.
 */
#ifndef FMPL_H
#define FMPL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
"#;

const SECOND_NAMES: &str = r#"
/* ---- Second names, for tools --------------------------------------------------------------------------- */

/*
 * A tool that counts or times calls defines fmpl_send and so on itself, and goes on with pfmpl_send: preloaded, or
 * linked before the library. Calls within the library never come to the tool.
 */

"#;

/// Names and values of the constants that the source documents.
pub fn constants() -> Vec<(&'static str, i64)> {
    macro_rules! table { ($($name:ident)*) => { vec![$((stringify!($name), c::$name as i64)),*] } }
    table!(FMPL_SUCCESS FMPL_COMM_WORLD FMPL_COMM_NULL FMPL_TAG_ANY FMPL_INDEX_ANY FMPL_PROC_NULL FMPL_TIMEOUT_INFINITE FMPL_REQUEST_NONE FMPL_REQUEST_SEND FMPL_REQUEST_RECV FMPL_REQUEST_SEND_ANY FMPL_REQUEST_RECV_ANY
        FMPL_REQUEST_MCAST FMPL_REQUEST_MCAST_RECV FMPL_REQUEST_BARRIER FMPL_REQUEST_BCAST FMPL_REQUEST_ALLREDUCE FMPL_REQUEST_REDUCE FMPL_REQUEST_GATHER FMPL_REQUEST_ALLGATHER FMPL_REQUEST_SCATTER FMPL_REQUEST_ALLTOALL FMPL_TICKETS FMPL_COMM_NAME_BYTES FMPL_MA_BYTES FMPL_FA_BYTES FMPL_COUNTER_SHM_PEERS FMPL_COUNTER_SHM_MESSAGES FMPL_COUNTER_SHM_BYTES FMPL_COUNTER_RDMA_WRITES FMPL_COUNTER_RDMA_READS
        FMPL_COUNTER_RDMA_BYTES FMPL_COUNTER_RDMA_COPIED FMPL_COUNTER_RDMA_COMPLETIONS
        FMPL_COUNTER_RDMA_PAIRS FMPL_COUNTER_RDMA_NODE_PAIRS FMPL_COUNTER_RDMA_RETIRED FMPL_COUNTER_MULTICAST_PACKETS FMPL_COUNTER_MULTICAST_AGAIN
        FMPL_COUNTER_MULTICAST_GROUPS FMPL_COUNTER_RDMA_CONTEXTS FMPL_COUNTER_RDMA_NODE_CONTEXTS FMPL_COUNTER_RDMA_PUT_AWAY FMPL_COUNTER_RDMA_FORGOTTEN FMPL_COUNTER_GLOBAL_REFUSED
        FMPL_COUNTER_LOANS FMPL_COUNTER_LOAN_COPIED FMPL_COUNTER_SLEEPS FMPL_COUNTER_SLEPT_NS FMPL_COUNTER_SPOOL_MOST FMPL_COUNTER_RECEIVED FMPL_COUNTER_QUEUED
        FMPL_COUNTER_REGISTRATIONS FMPL_COUNTER_REGISTERED_BYTES FMPL_COUNTER_REGISTRATIONS_FOUND FMPL_COUNTER_REGISTRATIONS_MADE FMPL_COUNTER_BYTES
        FMPL_COUNTER_WAY_SHORT FMPL_COUNTER_WAY_STORE FMPL_COUNTER_WAY_KERNEL FMPL_COUNTER_WAY_TURN FMPL_COUNTER_WAY_RING FMPL_COUNTER_WAY_SHARED
        FMPL_COUNTER_WAY_PULLED FMPL_COUNTER_WAY_SPOOL FMPL_COUNTER_WAY_LOAN FMPL_COUNTER_WAY_FAR_SHORT FMPL_COUNTER_WAY_FAR_PUT FMPL_COUNTER_WAY_FAR_SPOOL FMPL_VERSION)
}

/// Names, numbers and descriptions of the error codes.
pub fn errors() -> Vec<(&'static str, i32, Doc)> {
    Code::ALL
        .into_iter()
        .map(|code| (code.c_name(), code as i32, doc_before(ERRORS, &format!("{code:?} = "))))
        .collect()
}

/// The items of `fmpl.h`.
fn items() -> impl Iterator<Item = Item> {
    read(SOURCE).into_iter().chain(reductions::c())
}

/// The functions of the C interface, with those of `acp.h`.
pub fn functions() -> Vec<Function> {
    items()
        .chain(read(acp::SOURCE))
        .filter_map(|item| if let Item::Function(f) = item { Some(f) } else { None })
        .collect()
}

/// The functions of the C interface that a tool can stand in front of, with their second names: all but those of reductions.
pub fn second_names() -> Vec<Function> {
    let functions =
        read(SOURCE).into_iter().filter_map(|item| if let Item::Function(f) = item { Some(f) } else { None });
    functions.filter(|f| f.result.is_some()).map(|f| Function { name: format!("p{}", f.name), ..f }).collect()
}

/// `src/ffi/second_names.rs` with the table at its end written anew.
pub fn second_names_source() -> String {
    let table = "second_names! {\n";
    let (head, _) = SECOND_NAMES_SOURCE.split_once(table).expect("the table");
    let mut out = format!("{head}{table}");
    let mut line = String::new();
    for second in second_names() {
        let word = format!("{} = {},", &second.name[1..], second.name);
        if line.len() + 1 + word.len() > 114 {
            out.push_str(&format!("   {line}\n"));
            line.clear();
        }
        line.push(' ');
        line.push_str(&word);
    }
    out.push_str(&format!("   {}\n}}\n", line.trim_end_matches(',')));
    out
}

/// The header's text.
pub fn write() -> String {
    let mut out = PREAMBLE.to_owned();
    let mut constants = constants().into_iter();
    let mut only_if = None;
    for item in items() {
        match item {
            Item::Part(title) => {
                out.push_str(if only_if.take().is_some() { "\n#endif\n" } else { "" });
                // `// # Title: MACRO declares them`
                let (title, condition) = match title.strip_suffix(" declares them").and_then(|t| t.rsplit_once(": ")) {
                    Some((title, name)) => (title.to_owned(), Some(name.to_owned())),
                    None => (title, None),
                };
                if title == "Constants" {
                    types(&mut out);
                }
                out.push_str(&format!("\n/* ---- {title} {} */\n", "-".repeat(WIDTH - 12 - title.len())));
                if title == "Life of the job" {
                    assert!(constants.next().is_none(), "a constant without documentation");
                }
                if title == "Constants" {
                    error_codes(&mut out);
                }
                if let Some(name) = &condition {
                    out.push_str(&format!("\n#ifdef {name}\n"));
                }
                only_if = condition;
                out.push_str(if title == reductions::PART { reductions::NAMES } else { "" });
            }
            Item::Constant { name, doc } => {
                let (expected, value) = constants.next().expect("a constant that the table of constants() lacks");
                assert_eq!(name, expected, "the order of the constants");
                let value = if value < 0 { format!("({value})") } else { value.to_string() };
                comment(&mut out, "", &doc, &[]);
                out.push_str(&format!("#define {name} {value}\n"));
            }
            Item::Function(function) => prototype(&mut out, &function),
        }
    }
    out.push_str(if only_if.is_some() { "\n#endif\n" } else { "" });
    out.push_str(SECOND_NAMES);
    for function in second_names() {
        declaration(&mut out, &function);
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* FMPL_H */\n");
    out
}

fn types(out: &mut String) {
    comment(out, "", &doc_before(SOURCE, "pub type fmpl_comm"), &[]);
    out.push_str("typedef int fmpl_comm;\n");
    comment(out, "", &doc_before(SOURCE, "pub type fmpl_block"), &[]);
    out.push_str("typedef struct {\n");
    for (name, kind, rust) in
        [("run", "size_t", "usize"), ("count", "size_t", "usize"), ("stride", "ptrdiff_t", "isize")]
    {
        let doc = doc_before(LAYOUTS, &format!("pub {name}: {rust},"));
        out.push_str(&format!("    {kind} {name}; /**< {} */\n", doc.text.join(" ")));
    }
    out.push_str("} fmpl_block;\n");
    comment(out, "", &doc_before(SOURCE, "pub type fmpl_func"), &[]);
    out.push_str("typedef void (*fmpl_func)(void *inout, const void *in, int count);\n");
    comment(out, "", &doc_before(SOURCE, "pub type fmpl_exchange"), &[]);
    out.push_str("typedef int (*fmpl_exchange)(void *state, const void *mine, void *all, size_t size);\n");
    comment(out, "", &doc_before(SOURCE, "pub struct fmpl_id"), &[]);
    out.push_str("typedef struct {\n    unsigned char bytes[128];\n} fmpl_id;\n");
    comment(out, "", &doc_before(SOURCE, "pub type fmpl_request"), &[]);
    out.push_str(
        "typedef struct {\n    int kind, peer, index;\n    fmpl_comm comm;\n    uint64_t ticket;\n} fmpl_request;\n",
    );
}

fn error_codes(out: &mut String) {
    out.push_str("\n/** What went wrong. The numbers never change their meaning. */\nenum fmpl_error {\n");
    let errors = errors();
    for (at, (name, number, doc)) in errors.iter().enumerate() {
        let comma = if at + 1 < errors.len() { "," } else { "" };
        out.push_str(&format!("    /** {} */\n    {name} = {number}{comma}\n", doc.text.join(" ").replace('`', "")));
    }
    out.push_str("};\n");
}

pub fn prototype(out: &mut String, function: &Function) {
    let directions: Vec<&str> = function.parameters.iter().map(|(name, kind)| direction(name, kind)).collect();
    comment(out, &function.name, &function.doc, &directions);
    declaration(out, function);
}

fn declaration(out: &mut String, function: &Function) {
    let parameters: Vec<String> = function.parameters.iter().map(|(name, kind)| declare(kind, name)).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    // Only functions of reductions return nothing.
    let result = function.result.as_deref().unwrap_or("c_void");
    let line = format!("{};", declare(result, &format!("{}({parameters})", function.name)));
    let mut column = 0;
    for word in line.split_inclusive(", ") {
        if column + word.trim_end().len() > WIDTH {
            out.truncate(out.trim_end().len());
            out.push_str("\n    ");
            column = 4;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}

/// A C declaration of `name` with the C type for a Rust one.
fn declare(kind: &str, name: &str) -> String {
    if let Some(target) = kind.strip_prefix("*const ") {
        return declare(&format!("const {target}"), &format!("*{name}"));
    }
    if let Some(target) = kind.strip_prefix("*mut ") {
        return declare(target, &format!("*{name}"));
    }
    let (constant, kind) = kind.strip_prefix("const ").map_or(("", kind), |kind| ("const ", kind));
    let c = match kind {
        "c_int" => "int",
        "c_char" => "char",
        "c_double" => "double",
        "c_void" => "void",
        "usize" => "size_t",
        "u64" => "uint64_t",
        "u32" => "uint32_t",
        "iovec" => "struct iovec",
        "fmpl_comm" | "fmpl_block" | "fmpl_func" | "fmpl_exchange" | "fmpl_id" | "fmpl_request" | "acp_ga_t"
        | "acp_atkey_t" | "acp_handle_t" => kind,
        _ => panic!("no C type for `{kind}`"),
    };
    format!("{constant}{c} {name}")
}

/// A pointer to something small is a result; a receive buffer is written too.
fn direction(name: &str, kind: &str) -> &'static str {
    match kind.strip_prefix("*mut ") {
        Some("c_void") if name == "inout" => "[in,out]",
        Some("fmpl_request") => "[in,out]",
        Some("c_int" | "*mut *mut c_char") if matches!(name, "argc" | "argv") => "[in,out]",
        Some("c_void") if !matches!(name, "buf" | "rbuf") => "[in]",
        Some(_) => "[out]",
        None => "[in]",
    }
}

pub fn comment(out: &mut String, function: &str, doc: &Doc, directions: &[&str]) {
    assert!(!doc.text.is_empty(), "{function}: no documentation");
    let mut blocks: Vec<String> = doc.paragraphs();
    let mut tags: Vec<String> = Vec::new();
    for ((name, text), direction) in doc.parameters.iter().zip(directions) {
        let direction = if function.contains("sendbuf_set") { "[in]" } else { direction };
        tags.push(format!("@param{direction} {name} {text}"));
    }
    tags.extend(doc.returns.as_ref().map(|text| match text.starts_with('`') {
        true => format!("@return FMPL_SUCCESS, or: {text}"),
        false => format!("@return {text}"),
    }));
    tags.extend(doc.source.as_ref().map(|text| format!("@see {text}")));
    if blocks.len() == 1 && tags.is_empty() && blocks[0].len() < WIDTH - 8 {
        out.push_str(&format!("\n/** {} */\n", blocks.remove(0).replace(['`', '\\'], "")));
        return;
    }
    out.push_str("\n/**\n");
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.push_str(" *\n");
        }
        wrap(out, block, "");
    }
    if !tags.is_empty() {
        out.push_str(" *\n");
    }
    for tag in &tags {
        wrap(out, tag, "    ");
    }
    out.push_str(" */\n");
}

/// Fills lines of a comment; what continues an item is indented.
fn wrap(out: &mut String, text: &str, indent: &str) {
    let mut line = String::from(" *");
    for word in text.replace(['`', '\\'], "").split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = format!(" *{indent}");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
