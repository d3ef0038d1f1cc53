//! The few structures and functions of PMIx that are used, declared here: `libpmix.so.2` is loaded at run time, so that the library
//! neither needs it to be built nor to start. A test compiles a C program against `<pmix.h>`, where that is installed, and compares
//! [`LAYOUTS`] and [`NUMBERS`] with what it prints.

use crate::base::library::{self, functions, layouts};
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

/// `pmix_status_t`
pub type Status = c_int;

/// `pmix_proc_t`: a process of a job.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proc {
    /// The name of its job.
    pub nspace: [c_char; 256],
    /// Its rank there.
    pub rank: u32,
}

/// The union of `pmix_value_t`: the words of its largest member, of which the others take the first bytes; of a number, the lower ones.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Data {
    /// A bool or a number; where the bytes of a `pmix_byte_object_t` are.
    pub first: usize,
    /// How many bytes those are.
    pub second: usize,
    /// Room.
    pub third: usize,
}

const _: () = assert!(cfg!(target_endian = "little"));

/// `pmix_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// Which member of `data` it is.
    pub kind: u16,
    /// The value.
    pub data: Data,
}

/// `pmix_info_t`: a wish, by its name.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Info {
    /// Its name.
    pub key: [c_char; 512],
    /// Whether it must be granted.
    pub flags: u32,
    /// What is wished.
    pub value: Value,
}

pub(crate) const SUCCESS: Status = 0;
pub(crate) const NOT_FOUND: Status = -46;
pub(crate) const BOOL: u16 = 1;
pub(crate) const UINT32: u16 = 14;
pub(crate) const BYTE_OBJECT: u16 = 27;
/// For all processes of the job.
pub(crate) const GLOBAL: u8 = 3;
/// The job itself.
pub(crate) const WILDCARD: u32 = u32::MAX - 1;
/// The number of ranks, an attribute of the job.
pub(crate) const JOB_SIZE: &CStr = c"pmix.job.size";
/// The fence brings all values to all nodes.
pub(crate) const COLLECT_DATA: &CStr = c"pmix.collect";
/// What is not on this node yet is not waited for.
pub(crate) const IMMEDIATE: &CStr = c"pmix.immediate";

layouts! {
    Proc = "pmix_proc_t", 260, { nspace: 0, rank: 256 }
    Data = "pmix_byte_object_t", 0, { first as "bytes": 0, second as "size": 8 }
    Value = "pmix_value_t", 32, { kind as "type": 0, data as "data.flag": 8, data as "data.uint32": 8, data as "data.bo": 8 }
    Info = "pmix_info_t", 552, { key: 0, flags: 512, value: 520 }
}

/// The numbers above, by their names in C.
pub const NUMBERS: &[(&str, i64)] = &[
    ("PMIX_SUCCESS", SUCCESS as i64),
    ("PMIX_ERR_NOT_FOUND", NOT_FOUND as i64),
    ("PMIX_BOOL", BOOL as i64),
    ("PMIX_UINT32", UINT32 as i64),
    ("PMIX_BYTE_OBJECT", BYTE_OBJECT as i64),
    ("PMIX_GLOBAL", GLOBAL as i64),
    ("PMIX_RANK_WILDCARD", WILDCARD as i64),
    ("sizeof(pmix_data_type_t)", size_of::<u16>() as i64),
    ("sizeof(pmix_scope_t)", size_of::<u8>() as i64),
    ("sizeof(pmix_status_t)", size_of::<Status>() as i64),
];

/// The texts above, likewise.
pub const TEXTS: &[(&str, &CStr)] =
    &[("PMIX_JOB_SIZE", JOB_SIZE), ("PMIX_COLLECT_DATA", COLLECT_DATA), ("PMIX_IMMEDIATE", IMMEDIATE)];

functions! {
    /// Those that are used, of every version of the library with this number.
    pub(crate) struct Library {
        init = c"PMIx_Init": fn(*mut Proc, *const Info, usize) -> Status;
        finalize = c"PMIx_Finalize": fn(*const Info, usize) -> Status;
        abort = c"PMIx_Abort": fn(c_int, *const c_char, *const Proc, usize) -> Status;
        put = c"PMIx_Put": fn(u8, *const c_char, *mut Value) -> Status;
        commit = c"PMIx_Commit": [safe] fn() -> Status;
        fence = c"PMIx_Fence": fn(*const Proc, usize, *const Info, usize) -> Status;
        get = c"PMIx_Get": fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> Status;
        error_string = c"PMIx_Error_string": fn(Status) -> *const c_char;
    }
}

/// The library, or why there is none: the first of the names that can be loaded. One that the process has already, since an MPI uses it,
/// is found by the same name; it is never unloaded, since a thread of it goes on.
pub(crate) fn library(names: &[&CStr]) -> Result<&'static Library, &'static str> {
    static FOUND: OnceLock<Result<Library, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let mut why = Vec::new();
        for name in names {
            match library::Library::load(name) {
                Ok(library) => return Library::find(library),
                Err(text) => why.push(text),
            }
        }
        Err(why.join("; "))
    });
    found.as_ref().map_err(String::as_str)
}
