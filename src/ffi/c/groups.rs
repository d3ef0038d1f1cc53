//! The communicators of the C interface.

use core::ffi::{CStr, c_char, c_int};

use super::fmpl_comm;
use crate::base::error::{Code, Error};
use crate::base::unused::Unused;
use crate::comm;
use crate::ffi::outcome::Out;

calls! {
    // # Communicators

    /// Makes communicators of the ranks of the world; all of them call it. Those with equal keys form one communicator,
    /// in the order of their ranks in the world. Messages of different communicators never mix, on equal indices
    /// either.
    ///
    /// * comm: set to the communicator, or to `FMPL_COMM_NULL` where the key is negative.
    /// * key: 0 or more: which communicator; negative: none.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a NULL pointer, or when other ranks call another function; `FMPL_ERR_PEER` when
    /// a rank has died or left; `FMPL_ERR_MEMORY` (the most is 4095 at a time); `FMPL_ERR_BUSY` when another thread is
    /// in such a call.
    ///
    /// Source: FMPL paper, section 3.3.
    fn fmpl_comm_create(comm: Out<fmpl_comm>, key: c_int) -> comm = comm::comm_create(key).map(comm::or_null);

    /// Makes communicators of the ranks of a communicator; all of them call it. Those with equal colours form one,
    /// ordered by `order` and, where that is equal, by their ranks in `comm`.
    ///
    /// * comm: the communicator to split.
    /// * colour: 0 or more: which communicator; negative: none.
    /// * order: where in it.
    /// * newcomm: set to the communicator, or to `FMPL_COMM_NULL` where the colour is negative.
    ///
    /// Returns: as `fmpl_comm_create`; `FMPL_ERR_COMM`.
    ///
    /// Source: `MPI_Comm_split`.
    fn fmpl_comm_split(comm: fmpl_comm, colour: c_int, order: c_int, newcomm: Out<fmpl_comm>) -> newcomm
        = comm::comm_split(comm, colour, order).map(comm::or_null);

    /// Makes a communicator of the ranks of each node, which share memory; all ranks of the communicator call it.
    ///
    /// * comm: the communicator to split.
    /// * order: where in the new one; where it is equal the ranks in `comm` decide.
    /// * newcomm: set to that of this rank's node.
    ///
    /// Returns: as `fmpl_comm_split`.
    ///
    /// Source: `MPI_Comm_split_type` with `MPI_COMM_TYPE_SHARED`.
    fn fmpl_comm_split_node(comm: fmpl_comm, order: c_int, newcomm: Out<fmpl_comm>) -> newcomm
        = comm::comm_split_node(comm, order);

    /// Makes a communicator of the same ranks in the same order, with indices of its own; all of them call it.
    ///
    /// * comm: the communicator.
    /// * newcomm: set to the new one.
    ///
    /// Returns: as `fmpl_comm_split`.
    fn fmpl_comm_dup(comm: fmpl_comm, newcomm: Out<fmpl_comm>) -> newcomm = comm::comm_dup(comm);

    /// Makes a communicator of some ranks of a communicator, in the order of the list; they alone call it, all with the
    /// same list. The others know nothing of it, and may be dead: so those who live go on without the dead.
    ///
    /// * comm: the communicator that has them.
    /// * ranks: their ranks there, each once.
    /// * n: how many they are, 1 or more.
    /// * newcomm: set to the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a NULL pointer, or when the list has no rank, one twice, not the caller, or
    /// others than another rank's; `FMPL_ERR_RANK`; `FMPL_ERR_COMM`; `FMPL_ERR_PEER` when one of them has died or left;
    /// `FMPL_ERR_MEMORY`, `FMPL_ERR_BUSY` as `fmpl_comm_create`.
    ///
    /// Source: `MPI_Comm_create_group`.
    unsafe fn fmpl_comm_group_create(
        comm: fmpl_comm, ranks: *const c_int, n: c_int, newcomm: Out<fmpl_comm>,
    ) needs ranks -> newcomm = comm::comm_group_create(comm, core::slice::from_raw_parts(ranks, usize::try_from(n).unwrap_or(0)));

    /// Frees a communicator. Each of its ranks does so, when it likes: nobody is waited for. What this rank has sent
    /// before can still be received by ranks that have not freed theirs; what it has not received is lost. No thread
    /// may be in another call on it.
    ///
    /// * comm: the communicator; set to `FMPL_COMM_NULL`.
    ///
    /// Returns: `FMPL_ERR_COMM` (also for `FMPL_COMM_WORLD`); `FMPL_ERR_BUSY` naming a request that is not completed,
    /// or a multicast with a ticket that is not complete, and then nothing is freed; `FMPL_ERR_ARGUMENT` for a NULL
    /// pointer.
    unsafe fn fmpl_comm_free(comm: *mut fmpl_comm) needs comm
        = comm::comm_free(*comm, Unused::promised()).map(|()| *comm = crate::p2p::COMM_NULL);

    /// Gives a communicator a name, which stands behind its number in errors, in reports of stalls and of events. Each
    /// rank does so for itself, when it likes.
    ///
    /// * comm: the communicator.
    /// * name: at most `FMPL_COMM_NAME_BYTES` - 1 bytes of UTF-8; "" takes the name away.
    ///
    /// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_ARGUMENT` for a name that is too long or no UTF-8, or a NULL pointer.
    ///
    /// Source: `MPI_Comm_set_name`.
    unsafe fn fmpl_comm_set_name(comm: fmpl_comm, name: *const c_char) needs name
        = CStr::from_ptr(name)
            .to_str()
            .map_err(|_| Error::new(Code::Argument, "fmpl_comm_set_name: the name is no UTF-8"))
            .and_then(|name| comm::comm_set_name(comm, name));

    /// What this rank has named a communicator.
    ///
    /// * comm: the communicator.
    /// * name: filled with the name and a zero; "" when it has none.
    /// * size: room there in bytes; `FMPL_COMM_NAME_BYTES` always suffice.
    ///
    /// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_TRUNCATE` when there is too little room, and then nothing is filled;
    /// `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: `MPI_Comm_get_name`.
    unsafe fn fmpl_comm_name(comm: fmpl_comm, name: *mut c_char, size: usize) needs name
        = comm::comm_name_within(comm, size.saturating_sub(1)).and_then(|text| {
            if size <= text.len() {
                return Err(Error::new(Code::Truncate, "fmpl_comm_name: there is no room"));
            }
            core::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len());
            *name.add(text.len()) = 0;
            Ok(())
        });

    /// Which rank of one communicator a rank of another is.
    ///
    /// * from: a communicator.
    /// * rank: a rank of it, or `FMPL_PROC_NULL`.
    /// * to: another communicator.
    /// * result: set to the rank in `to` of the same process, or to `FMPL_PROC_NULL` if it is no member.
    ///
    /// Returns: `FMPL_ERR_COMM`, `FMPL_ERR_RANK`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: `MPI_Group_translate_ranks`.
    fn fmpl_comm_translate(from: fmpl_comm, rank: c_int, to: fmpl_comm, result: Out<c_int>) -> result
        = comm::comm_translate(from, rank, to).map(|found| found.unwrap_or(crate::p2p::PROC_NULL));
}
