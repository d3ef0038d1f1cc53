//! The Fortran names of the collective calls that do not wait.

use super::entry::{Buffer, Data, Function, In, In8, Out, Out8, entries};
use crate::ffi::c;

entries! {
    // # Collective calls that do not wait

    fmpl_ibarrier_(comm: In) = fmpl_ibarrier;
    fmpl_ibcast_, fmpl_ibcast8_(buf: Buffer, size: Size, root: In, comm: In) = fmpl_ibcast;

    /// As [`c::fmpl_ireduce`]; `work` may be `FMPL_NULL`.
    fmpl_ireduce_(buf: Buffer, count: In, func: Function, root: In, comm: In, work: Buffer) = fmpl_ireduce;

    /// As [`c::fmpl_iallreduce`]; `work` may be `FMPL_NULL`.
    fmpl_iallreduce_(buf: Buffer, count: In, func: Function, comm: In, work: Buffer) = fmpl_iallreduce;
    fmpl_igather_, fmpl_igather8_(buf: Data, size: Size, all: Buffer, root: In, comm: In) = fmpl_igather;
    fmpl_iallgather_, fmpl_iallgather8_(buf: Data, size: Size, all: Buffer, comm: In) = fmpl_iallgather;
    fmpl_iscatter_, fmpl_iscatter8_(all: Data, size: Size, buf: Buffer, root: In, comm: In) = fmpl_iscatter;
    fmpl_ialltoall_, fmpl_ialltoall8_(sent: Data, size: Size, received: Buffer, comm: In) = fmpl_ialltoall;
    fmpl_ibarrier_wait_(comm: In) = fmpl_ibarrier_wait;
    fmpl_ibarrier_test_(comm: In, done: Out) = fmpl_ibarrier_test;
    fmpl_ibcast_wait_(comm: In) = fmpl_ibcast_wait;
    fmpl_ibcast_test_(comm: In, done: Out) = fmpl_ibcast_test;
    fmpl_ireduce_wait_(comm: In) = fmpl_ireduce_wait;
    fmpl_ireduce_test_(comm: In, done: Out) = fmpl_ireduce_test;
    fmpl_iallreduce_wait_(comm: In) = fmpl_iallreduce_wait;
    fmpl_iallreduce_test_(comm: In, done: Out) = fmpl_iallreduce_test;
    fmpl_igather_wait_(comm: In) = fmpl_igather_wait;
    fmpl_igather_test_(comm: In, done: Out) = fmpl_igather_test;
    fmpl_iallgather_wait_(comm: In) = fmpl_iallgather_wait;
    fmpl_iallgather_test_(comm: In, done: Out) = fmpl_iallgather_test;
    fmpl_iscatter_wait_(comm: In) = fmpl_iscatter_wait;
    fmpl_iscatter_test_(comm: In, done: Out) = fmpl_iscatter_test;
    fmpl_ialltoall_wait_(comm: In) = fmpl_ialltoall_wait;
    fmpl_ialltoall_test_(comm: In, done: Out) = fmpl_ialltoall_test;

    // # Several collective calls at a time

    /// As [`c::fmpl_ibarrier_n`]; a ticket is an INTEGER(8).
    fmpl_ibarrier_n_(comm: In, ticket: Out8) = fmpl_ibarrier_n;

    /// As [`c::fmpl_ibcast_n`]; a ticket is an INTEGER(8).
    fmpl_ibcast_n_, fmpl_ibcast_n8_(buf: Buffer, size: Size, root: In, comm: In, ticket: Out8)
        = fmpl_ibcast_n;

    /// As [`c::fmpl_ireduce_n`]; a ticket is an INTEGER(8).
    fmpl_ireduce_n_(buf: Buffer, count: In, func: Function, root: In, comm: In, ticket: Out8)
        = fmpl_ireduce_n;

    /// As [`c::fmpl_iallreduce_n`]; a ticket is an INTEGER(8).
    fmpl_iallreduce_n_(buf: Buffer, count: In, func: Function, comm: In, ticket: Out8)
        = fmpl_iallreduce_n;

    /// As [`c::fmpl_igather_n`]; a ticket is an INTEGER(8).
    fmpl_igather_n_, fmpl_igather_n8_(buf: Data, size: Size, all: Buffer, root: In, comm: In, ticket: Out8)
        = fmpl_igather_n;

    /// As [`c::fmpl_iallgather_n`]; a ticket is an INTEGER(8).
    fmpl_iallgather_n_, fmpl_iallgather_n8_(buf: Data, size: Size, all: Buffer, comm: In, ticket: Out8)
        = fmpl_iallgather_n;

    /// As [`c::fmpl_iscatter_n`]; a ticket is an INTEGER(8).
    fmpl_iscatter_n_, fmpl_iscatter_n8_(all: Data, size: Size, buf: Buffer, root: In, comm: In, ticket: Out8)
        = fmpl_iscatter_n;

    /// As [`c::fmpl_ialltoall_n`]; a ticket is an INTEGER(8).
    fmpl_ialltoall_n_, fmpl_ialltoall_n8_(sent: Data, size: Size, received: Buffer, comm: In, ticket: Out8)
        = fmpl_ialltoall_n;
    fmpl_coll_wait_(ticket: In8) = { c::fmpl_coll_wait(ticket as u64) };
    fmpl_coll_test_(ticket: In8, done: Out) = { c::fmpl_coll_test(ticket as u64, done) };
}
