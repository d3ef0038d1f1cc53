//! The second names of the C interface, `pfmpl_*`: what a tool calls that defines `fmpl_*` itself, counts or times, and goes on with the
//! real call, as `PMPI_*` in MPI.
//!
//! The plain name is the function, a second one a jump to it: the tool pays, and nobody else. That jump, and what the library calls of its
//! own interface, must not end in the tool again. In the shared library the linker binds them within it (`src/build.rs`); in the archive
//! that `fmpl install` makes they go to a name of the file's own, and the plain names are weak, so a program may define them.
//!
//! The table at the end is written by the test that writes the header.
//!
//! The functions of reductions have none: they are passed, not called, and known by their addresses.

use super::c::*;

macro_rules! second_names {
    ($($plain:ident = $second:ident),*) => {$(
        // Its arguments are those of the function to which it jumps, which finds them where they are.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        extern "C" fn $second() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("jmp {}", sym $plain);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("b {}", sym $plain);
        }
    )*};
}

second_names! {
    fmpl_init = pfmpl_init, fmpl_finalize = pfmpl_finalize, fmpl_initialized = pfmpl_initialized,
    fmpl_abort = pfmpl_abort, fmpl_comm_rank = pfmpl_comm_rank, fmpl_comm_size = pfmpl_comm_size,
    fmpl_send = pfmpl_send, fmpl_recv = pfmpl_recv, fmpl_sendrecv = pfmpl_sendrecv, fmpl_isend = pfmpl_isend,
    fmpl_irecv = pfmpl_irecv, fmpl_isend_wait = pfmpl_isend_wait, fmpl_irecv_wait = pfmpl_irecv_wait,
    fmpl_isend_test = pfmpl_isend_test, fmpl_irecv_test = pfmpl_irecv_test, fmpl_received = pfmpl_received,
    fmpl_probe = pfmpl_probe, fmpl_irecv_cancel = pfmpl_irecv_cancel, fmpl_sendbuf_set = pfmpl_sendbuf_set,
    fmpl_comm_sendbuf_set = pfmpl_comm_sendbuf_set, fmpl_sendbuf_check = pfmpl_sendbuf_check,
    fmpl_wtime = pfmpl_wtime, fmpl_progress = pfmpl_progress, fmpl_event_fd = pfmpl_event_fd,
    fmpl_alloc = pfmpl_alloc, fmpl_free = pfmpl_free, fmpl_strerror = pfmpl_strerror,
    fmpl_last_error = pfmpl_last_error, fmpl_version = pfmpl_version, fmpl_init_with = pfmpl_init_with,
    fmpl_id_create = pfmpl_id_create, fmpl_init_id = pfmpl_init_id, fmpl_comm_create = pfmpl_comm_create,
    fmpl_comm_split = pfmpl_comm_split, fmpl_comm_split_node = pfmpl_comm_split_node, fmpl_comm_dup = pfmpl_comm_dup,
    fmpl_comm_group_create = pfmpl_comm_group_create, fmpl_comm_free = pfmpl_comm_free,
    fmpl_comm_set_name = pfmpl_comm_set_name, fmpl_comm_name = pfmpl_comm_name,
    fmpl_comm_translate = pfmpl_comm_translate, fmpl_shared_alloc = pfmpl_shared_alloc,
    fmpl_shared_query = pfmpl_shared_query, fmpl_shared_free = pfmpl_shared_free, fmpl_send_block = pfmpl_send_block,
    fmpl_recv_block = pfmpl_recv_block, fmpl_isend_block = pfmpl_isend_block, fmpl_irecv_block = pfmpl_irecv_block,
    fmpl_send_list = pfmpl_send_list, fmpl_recv_list = pfmpl_recv_list, fmpl_isend_list = pfmpl_isend_list,
    fmpl_irecv_list = pfmpl_irecv_list, fmpl_send_any = pfmpl_send_any, fmpl_recv_any = pfmpl_recv_any,
    fmpl_recv_any_from = pfmpl_recv_any_from, fmpl_probe_any = pfmpl_probe_any, fmpl_isend_any = pfmpl_isend_any,
    fmpl_isend_any_wait = pfmpl_isend_any_wait, fmpl_isend_any_test = pfmpl_isend_any_test,
    fmpl_irecv_any = pfmpl_irecv_any, fmpl_irecv_any_wait = pfmpl_irecv_any_wait,
    fmpl_irecv_any_test = pfmpl_irecv_any_test, fmpl_irecv_any_cancel = pfmpl_irecv_any_cancel,
    fmpl_recv_any_limit = pfmpl_recv_any_limit, fmpl_mcast = pfmpl_mcast, fmpl_mcast_wait = pfmpl_mcast_wait,
    fmpl_mcast_test = pfmpl_mcast_test, fmpl_mcast_recv = pfmpl_mcast_recv,
    fmpl_recv_any_or_mcast = pfmpl_recv_any_or_mcast, fmpl_mcast_irecv = pfmpl_mcast_irecv,
    fmpl_mcast_irecv_wait = pfmpl_mcast_irecv_wait, fmpl_mcast_irecv_test = pfmpl_mcast_irecv_test,
    fmpl_mcast_irecv_cancel = pfmpl_mcast_irecv_cancel, fmpl_send_init = pfmpl_send_init,
    fmpl_recv_init = pfmpl_recv_init, fmpl_send_start = pfmpl_send_start, fmpl_recv_start = pfmpl_recv_start,
    fmpl_waitall = pfmpl_waitall, fmpl_testall = pfmpl_testall, fmpl_waitany = pfmpl_waitany,
    fmpl_waitsome = pfmpl_waitsome, fmpl_loan = pfmpl_loan, fmpl_send_loan = pfmpl_send_loan,
    fmpl_recv_loan = pfmpl_recv_loan, fmpl_irecv_loan = pfmpl_irecv_loan,
    fmpl_irecv_loan_wait = pfmpl_irecv_loan_wait, fmpl_irecv_loan_test = pfmpl_irecv_loan_test,
    fmpl_mcast_loan = pfmpl_mcast_loan, fmpl_send_loan_any = pfmpl_send_loan_any,
    fmpl_recv_loan_any = pfmpl_recv_loan_any, fmpl_irecv_loan_any = pfmpl_irecv_loan_any,
    fmpl_irecv_loan_any_wait = pfmpl_irecv_loan_any_wait, fmpl_irecv_loan_any_test = pfmpl_irecv_loan_any_test,
    fmpl_loan_return = pfmpl_loan_return, fmpl_counter = pfmpl_counter, fmpl_barrier = pfmpl_barrier,
    fmpl_bcast = pfmpl_bcast, fmpl_reduce = pfmpl_reduce, fmpl_allreduce = pfmpl_allreduce,
    fmpl_gather = pfmpl_gather, fmpl_allgather = pfmpl_allgather, fmpl_scatter = pfmpl_scatter,
    fmpl_alltoall = pfmpl_alltoall, fmpl_reduce_scatter = pfmpl_reduce_scatter, fmpl_scan = pfmpl_scan,
    fmpl_exscan = pfmpl_exscan, fmpl_mcast_reduce = pfmpl_mcast_reduce, fmpl_mcast_alltoall = pfmpl_mcast_alltoall,
    fmpl_func_register = pfmpl_func_register, fmpl_ibarrier = pfmpl_ibarrier,
    fmpl_ibarrier_wait = pfmpl_ibarrier_wait, fmpl_ibarrier_test = pfmpl_ibarrier_test, fmpl_ibcast = pfmpl_ibcast,
    fmpl_ibcast_wait = pfmpl_ibcast_wait, fmpl_ibcast_test = pfmpl_ibcast_test, fmpl_iallreduce = pfmpl_iallreduce,
    fmpl_iallreduce_wait = pfmpl_iallreduce_wait, fmpl_iallreduce_test = pfmpl_iallreduce_test,
    fmpl_ireduce = pfmpl_ireduce, fmpl_ireduce_wait = pfmpl_ireduce_wait, fmpl_ireduce_test = pfmpl_ireduce_test,
    fmpl_igather = pfmpl_igather, fmpl_igather_wait = pfmpl_igather_wait, fmpl_igather_test = pfmpl_igather_test,
    fmpl_iallgather = pfmpl_iallgather, fmpl_iallgather_wait = pfmpl_iallgather_wait,
    fmpl_iallgather_test = pfmpl_iallgather_test, fmpl_iscatter = pfmpl_iscatter,
    fmpl_iscatter_wait = pfmpl_iscatter_wait, fmpl_iscatter_test = pfmpl_iscatter_test,
    fmpl_ialltoall = pfmpl_ialltoall, fmpl_ialltoall_wait = pfmpl_ialltoall_wait,
    fmpl_ialltoall_test = pfmpl_ialltoall_test, fmpl_ibarrier_n = pfmpl_ibarrier_n, fmpl_ibcast_n = pfmpl_ibcast_n,
    fmpl_ireduce_n = pfmpl_ireduce_n, fmpl_iallreduce_n = pfmpl_iallreduce_n, fmpl_igather_n = pfmpl_igather_n,
    fmpl_iallgather_n = pfmpl_iallgather_n, fmpl_iscatter_n = pfmpl_iscatter_n, fmpl_ialltoall_n = pfmpl_ialltoall_n,
    fmpl_coll_wait = pfmpl_coll_wait, fmpl_coll_test = pfmpl_coll_test, fmpl_gatherv = pfmpl_gatherv,
    fmpl_allgatherv = pfmpl_allgatherv, fmpl_scatterv = pfmpl_scatterv, fmpl_alltoallv = pfmpl_alltoallv,
    fmpl_cart_create = pfmpl_cart_create, fmpl_cart_coords = pfmpl_cart_coords, fmpl_cart_rank = pfmpl_cart_rank,
    fmpl_cart_shift = pfmpl_cart_shift, fmpl_neighbour_allgather = pfmpl_neighbour_allgather,
    fmpl_neighbour_alltoall = pfmpl_neighbour_alltoall
}
