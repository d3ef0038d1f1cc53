//! Writes `include/acp.h` from the interface's source.

use fmpl::ffi::acp;

use crate::header::{comment, prototype};
use crate::source::{Item, doc_before, read};

pub const SOURCE: &str = include_str!("../../src/ffi/acp.rs");

const PREAMBLE: &str = r#"/*
 * ACP basic layer: global memory that every rank of a job reads, writes and changes atomically.
 *
 * Written by the library's own tests from src/ffi/acp.rs; change that, then:
 *     FMPL_TEST_BLESS=1 cargo test --test interface
 */
/**
 * @file acp.h
 *
 * Names, types and meanings are those of the basic layer of ACP (Advanced Communication Primitives, ACE project); the
 * library is libfmpl. A global address names a byte of memory that some rank has registered. An operation copies
 * between two global addresses, or changes a word atomically; it returns a handle, and starts when the operation
 * named as its order, and all issued before that one, are over.
 *
 * What other ranks change behind the compiler's back should be read through volatile or atomic types.
 */
#ifndef ACP_H
#define ACP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"#;

/// Names and values of the constants that the source documents.
pub fn constants() -> Vec<(&'static str, u64)> {
    macro_rules! table { ($($name:ident)*) => { vec![$((stringify!($name), acp::$name)),*] } }
    table!(ACP_GA_NULL ACP_ATKEY_NULL ACP_HANDLE_ALL ACP_HANDLE_CONT ACP_HANDLE_NULL ACP_HANDLE_REFUSED)
}

/// The header's text.
pub fn write() -> String {
    let mut out = PREAMBLE.to_owned();
    let mut constants = constants().into_iter();
    for item in read(SOURCE) {
        match item {
            Item::Part(title) => {
                if title == "Constants" {
                    for (name, kind) in
                        [("acp_ga_t", "uint64_t"), ("acp_atkey_t", "uint64_t"), ("acp_handle_t", "int64_t")]
                    {
                        comment(&mut out, "", &doc_before(SOURCE, &format!("pub type {name}")), &[]);
                        out.push_str(&format!("typedef {kind} {name};\n"));
                    }
                }
                out.push_str(&format!("\n/* ---- {title} {} */\n", "-".repeat(98 - title.len())));
            }
            Item::Constant { name, doc } => {
                let (expected, value) = constants.next().expect("a constant that the table of constants() lacks");
                assert_eq!(name, expected, "the order of the constants");
                comment(&mut out, "", &doc, &[]);
                out.push_str(&format!("#define {name} {value:#x}LLU\n"));
            }
            Item::Function(function) => prototype(&mut out, &function),
        }
    }
    assert!(constants.next().is_none(), "a constant without documentation");
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* ACP_H */\n");
    out
}
