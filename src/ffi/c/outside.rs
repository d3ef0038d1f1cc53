//! Ranks from outside: of a host program that has started its processes by something else, such as an MPI.

use core::ffi::{c_int, c_void};
use core::slice;

use super::{fmpl_exchange, fmpl_id};
use crate::base::error::{Code, Result, error};
use crate::comm;
use crate::ffi::outcome::{Out, number, wrong};
use crate::launch::find::How;
use crate::launch::id;

// # Ranks from outside

/// Joins a job as `fmpl_init` does, with ranks of the program's own and an allgather of its own. All ranks call it.
///
/// * rank: this process's rank, 0 to size - 1.
/// * size: the number of ranks.
/// * exchange: the allgather. It is called within this call only, by the calling thread, equally often and with equal sizes on all ranks (twice,
///   with some hundred bytes). What it returns, if not 0, makes init fail on all ranks.
/// * state: passed on to `exchange`.
/// * count: the number of indices, as for `fmpl_init`.
///
/// Returns: as `fmpl_init`; `FMPL_ERR_LAUNCH` when the exchange has failed on some rank, or gives a part to another rank than it is of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_init_with(
    rank: c_int,
    size: c_int,
    exchange: fmpl_exchange,
    state: *mut c_void,
    count: c_int,
) -> c_int {
    let Some(call) = exchange else { return wrong("fmpl_init_with: exchange is NULL") };
    let mut exchange = |mine: &[u8], all: &mut [u8]| {
        // SAFETY: so many bytes at each, as the function is described; the state is its own matter.
        let code = unsafe { call(state, mine.as_ptr().cast(), all.as_mut_ptr().cast(), mine.len()) };
        let failed = || error!(Code::Launch, "rank {rank}: the exchange of fmpl_init_with has returned {code}");
        if code == 0 { Ok(()) } else { Err(failed()) }
    };
    number(ranks(rank, size).and_then(|(rank, size)| comm::init_by(How::With(rank, size, &mut exchange), count)))
}

calls! {
    /// Makes an identifier of a job. One process does, one that will be a rank of the job, and passes it round to the
    /// others by whatever the program has; then all call `fmpl_init_id`. It scales: nothing is gathered. It has a
    /// secret in it: whoever gets it can join the job. The process listens from then on for the others.
    ///
    /// * id: set to the identifier.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a NULL pointer, `FMPL_ERR_SYSTEM`.
    fn fmpl_id_create(id: Out<fmpl_id>) -> id = id::create().map(|bytes| fmpl_id { bytes });
}

/// Joins the job of an identifier as `fmpl_init` does. All its ranks call it, the one that has made it among them.
///
/// * id: the identifier, the same for all.
/// * rank: this process's rank, 0 to size - 1.
/// * size: the number of ranks.
/// * count: the number of indices, as for `fmpl_init`.
///
/// Returns: as `fmpl_init`; `FMPL_ERR_ARGUMENT` when it is no identifier, or no rank of so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_init_id(id: *const fmpl_id, rank: c_int, size: c_int, count: c_int) -> c_int {
    if id.is_null() {
        return wrong("fmpl_init_id: id is NULL");
    }
    // SAFETY: not null, so the caller's; bytes may lie anywhere.
    let bytes: [u8; id::BYTES] =
        unsafe { slice::from_raw_parts(id.cast::<u8>(), id::BYTES) }.try_into().unwrap_or([0; id::BYTES]);
    number(ranks(rank, size).and_then(|(rank, size)| comm::init_by(How::Id(&bytes, rank, size), count)))
}

fn ranks(rank: c_int, size: c_int) -> Result<(u32, u32)> {
    match (u32::try_from(rank), u32::try_from(size)) {
        (Ok(rank), Ok(size)) if rank < size => Ok((rank, size)),
        _ => Err(error!(Code::Argument, "init as rank {rank} of {size} ranks")),
    }
}
