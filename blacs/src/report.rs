//! Errors, warnings and aborts, in the words of the reference, for which programs and scripts look.

use core::fmt::Display;

use fmpl::base::symbols::address;

use crate::Int;
use crate::library::fmpl;
use crate::process::process;

/// `FMPL_ERR_SPOOL_FULL`
const SPOOL_FULL: i32 = 8;

/// A mistake that the job cannot survive: says so and ends all its processes.
#[cold]
#[inline(never)]
pub fn fatal(context: Int, routine: &str, text: impl Display) -> ! {
    say("ERROR", context, routine, text);
    abort(context, 1)
}

/// A mistake without consequence.
#[cold]
#[inline(never)]
pub fn warn(context: Int, routine: &str, text: impl Display) {
    say("WARNING", context, routine, text);
}

fn say(what: &str, context: Int, routine: &str, text: impl Display) {
    let (row, col) = place(context);
    let pnum = process().rank();
    write(format!(
        "BLACS {what} '{text}'\nfrom {{{row},{col}}}, pnum={pnum}, Contxt={context}, on line -1 of file '{routine}'.\n\n"
    ));
}

/// In one piece, so that what several processes say does not mix.
fn write(text: String) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn place(context: Int) -> (i32, i32) {
    process().find(context).map_or((-1, -1), |c| (c.row, c.col))
}

/// `blacs_abort`: ends all processes of the job, also those that never call the library again.
#[cold]
pub fn abort(context: Int, code: Int) -> ! {
    let (row, col) = place(context);
    let pnum = process().rank();
    write(format!(
        "{{{row},{col}}}, pnum={pnum}, Contxt={context}, killed other procs, exiting with error #{code}.\n\n"
    ));
    flush();
    fmpl().abort(code as i32);
    std::process::exit(code as i32)
}

/// What the program has written and the libraries of C and Fortran still hold must not be lost by an abort.
fn flush() {
    // SAFETY: libgfortran's flush of all units takes a null pointer; it is called only where it is loaded. fflush(NULL) flushes all.
    unsafe {
        if let fortran @ 1.. = address(c"_gfortran_flush_i4") {
            let flush: extern "C" fn(Option<&i32>) = core::mem::transmute(fortran);
            flush(None);
        }
        libc::fflush(core::ptr::null_mut());
    }
}

/// Ends the job if a call of FMPL has failed.
#[inline(always)]
pub fn check(code: i32, context: Int, routine: &str) {
    if code != 0 {
        failed(code, context, routine)
    }
}

#[cold]
#[inline(never)]
fn failed(code: i32, context: Int, routine: &str) -> ! {
    let mut text = fmpl().last_error();
    if code == SPOOL_FULL {
        text += "; for the BLACS the environment variable FMPL_BLACS_SPOOL does (bytes, with k, M or G)";
    }
    fatal(context, routine, text)
}
