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
! What every function returns when it has done its work.
      integer FMPL_SUCCESS
      parameter (FMPL_SUCCESS = 0)
! All ranks of the job.
      integer FMPL_COMM_WORLD
      parameter (FMPL_COMM_WORLD = 0)
! No communicator.
      integer FMPL_COMM_NULL
      parameter (FMPL_COMM_NULL = -1)
! As the index of a receive: any index of this one source.
      integer FMPL_TAG_ANY
      parameter (FMPL_TAG_ANY = -1)
! The same by another name: what MPI calls a tag is an index here.
      integer FMPL_INDEX_ANY
      parameter (FMPL_INDEX_ANY = -1)
! As a peer: nobody. The call succeeds and nothing happens.
      integer FMPL_PROC_NULL
      parameter (FMPL_PROC_NULL = -2)
! As a time-out (synchronous mode): a send completes once its receive is
! known to have been posted, and not before, however long that takes.
! Only then may what is left of it go through the spool.
      integer FMPL_TIMEOUT_INFINITE
      parameter (FMPL_TIMEOUT_INFINITE = -1)
! A kind of request: none, or one that is over.
      integer FMPL_REQUEST_NONE
      parameter (FMPL_REQUEST_NONE = 0)
! A kind of request: of fmpl_isend, fmpl_isend_block, fmpl_isend_list;
! peer, index, comm.
      integer FMPL_REQUEST_SEND
      parameter (FMPL_REQUEST_SEND = 1)
! A kind of request: of fmpl_irecv, fmpl_irecv_block, fmpl_irecv_list;
! peer, index (or FMPL_INDEX_ANY), comm.
      integer FMPL_REQUEST_RECV
      parameter (FMPL_REQUEST_RECV = 2)
! A kind of request: of fmpl_isend_any; peer, index, comm.
      integer FMPL_REQUEST_SEND_ANY
      parameter (FMPL_REQUEST_SEND_ANY = 3)
! A kind of request: of fmpl_irecv_any; index, comm.
      integer FMPL_REQUEST_RECV_ANY
      parameter (FMPL_REQUEST_RECV_ANY = 4)
! A kind of request: of fmpl_mcast; ticket.
      integer FMPL_REQUEST_MCAST
      parameter (FMPL_REQUEST_MCAST = 5)
! A kind of request: of fmpl_mcast_irecv; comm.
      integer FMPL_REQUEST_MCAST_RECV
      parameter (FMPL_REQUEST_MCAST_RECV = 6)
! A kind of request: of fmpl_ibarrier or fmpl_ibarrier_n; comm and, of a
! call with one, ticket, which is 0 otherwise. So for all collective
! calls.
      integer FMPL_REQUEST_BARRIER
      parameter (FMPL_REQUEST_BARRIER = 7)
! A kind of request: of fmpl_ibcast; comm, ticket.
      integer FMPL_REQUEST_BCAST
      parameter (FMPL_REQUEST_BCAST = 8)
! A kind of request: of fmpl_iallreduce; comm, ticket.
      integer FMPL_REQUEST_ALLREDUCE
      parameter (FMPL_REQUEST_ALLREDUCE = 9)
! A kind of request: of fmpl_ireduce; comm, ticket.
      integer FMPL_REQUEST_REDUCE
      parameter (FMPL_REQUEST_REDUCE = 10)
! A kind of request: of fmpl_igather; comm, ticket.
      integer FMPL_REQUEST_GATHER
      parameter (FMPL_REQUEST_GATHER = 11)
! A kind of request: of fmpl_iallgather; comm, ticket.
      integer FMPL_REQUEST_ALLGATHER
      parameter (FMPL_REQUEST_ALLGATHER = 12)
! A kind of request: of fmpl_iscatter; comm, ticket.
      integer FMPL_REQUEST_SCATTER
      parameter (FMPL_REQUEST_SCATTER = 13)
! A kind of request: of fmpl_ialltoall; comm, ticket.
      integer FMPL_REQUEST_ALLTOALL
      parameter (FMPL_REQUEST_ALLTOALL = 14)
! How many collective calls with tickets a communicator may have that
! are begun and not completed.
      integer FMPL_TICKETS
      parameter (FMPL_TICKETS = 64)
! Room in bytes for the name of a communicator, with the zero behind it.
      integer FMPL_COMM_NAME_BYTES
      parameter (FMPL_COMM_NAME_BYTES = 64)
! Bytes of matching area for each index, for a caller that brings its
! own area to fmpl_init.
      integer FMPL_MA_BYTES
      parameter (FMPL_MA_BYTES = 64)
! Bytes of completion-flag area for each index, for a caller that brings
! its own area to fmpl_init.
      integer FMPL_FA_BYTES
      parameter (FMPL_FA_BYTES = 64)
! A counter: other ranks whose memory this process has mapped. Only with
! these can anything go through shared memory.
      integer FMPL_COUNTER_SHM_PEERS
      parameter (FMPL_COUNTER_SHM_PEERS = 0)
! A counter: indexed messages sent to other ranks through shared memory.
      integer FMPL_COUNTER_SHM_MESSAGES
      parameter (FMPL_COUNTER_SHM_MESSAGES = 1)
! A counter: the bytes of the messages counted by
! FMPL_COUNTER_SHM_MESSAGES.
      integer FMPL_COUNTER_SHM_BYTES
      parameter (FMPL_COUNTER_SHM_BYTES = 2)
! A counter: RDMA writes to ranks on other nodes, those that carry a
! record and those that carry a message's bytes.
      integer FMPL_COUNTER_RDMA_WRITES
      parameter (FMPL_COUNTER_RDMA_WRITES = 3)
! A counter: RDMA reads from ranks on other nodes.
      integer FMPL_COUNTER_RDMA_READS
      parameter (FMPL_COUNTER_RDMA_READS = 4)
! A counter: the bytes of these writes and reads.
      integer FMPL_COUNTER_RDMA_BYTES
      parameter (FMPL_COUNTER_RDMA_BYTES = 5)
! A counter: bytes of messages that a processor has copied on their way
! to or from another node, landings apart.
      integer FMPL_COUNTER_RDMA_COPIED
      parameter (FMPL_COUNTER_RDMA_COPIED = 6)
! A counter: completions of writes and reads that were taken.
      integer FMPL_COUNTER_RDMA_COMPLETIONS
      parameter (FMPL_COUNTER_RDMA_COMPLETIONS = 7)
! For fmpl_counter: connections (RC queue pairs) with ranks on other
! nodes that this process has now.
      integer FMPL_COUNTER_RDMA_PAIRS
      parameter (FMPL_COUNTER_RDMA_PAIRS = 8)
! For fmpl_counter: those that all ranks of this node have now.
      integer FMPL_COUNTER_RDMA_NODE_PAIRS
      parameter (FMPL_COUNTER_RDMA_NODE_PAIRS = 9)
! For fmpl_counter: connections of this process that were given up so
! far, because others needed their place.
      integer FMPL_COUNTER_RDMA_RETIRED
      parameter (FMPL_COUNTER_RDMA_RETIRED = 10)
! For fmpl_counter: packets sent to multicast groups, each to all
! members at once.
      integer FMPL_COUNTER_MULTICAST_PACKETS
      parameter (FMPL_COUNTER_MULTICAST_PACKETS = 11)
! For fmpl_counter: of these packets the ones that some member did not
! get, and that this process sent to it alone.
      integer FMPL_COUNTER_MULTICAST_AGAIN
      parameter (FMPL_COUNTER_MULTICAST_AGAIN = 12)
! For fmpl_counter: multicast groups that this process is in now.
      integer FMPL_COUNTER_MULTICAST_GROUPS
      parameter (FMPL_COUNTER_MULTICAST_GROUPS = 13)
! For fmpl_counter: peers on other nodes with which this process has a
! context now, memory that they may write.
      integer FMPL_COUNTER_RDMA_CONTEXTS
      parameter (FMPL_COUNTER_RDMA_CONTEXTS = 14)
! For fmpl_counter: the contexts that all ranks of this node have now.
      integer FMPL_COUNTER_RDMA_NODE_CONTEXTS
      parameter (FMPL_COUNTER_RDMA_NODE_CONTEXTS = 15)
! For fmpl_counter: contexts of this process that were put away so far,
! because others needed their place.
      integer FMPL_COUNTER_RDMA_PUT_AWAY
      parameter (FMPL_COUNTER_RDMA_PUT_AWAY = 16)
! For fmpl_counter: peers on other nodes that this process has forgotten
! so far, since nothing was under way with them and others needed their
! context.
      integer FMPL_COUNTER_RDMA_FORGOTTEN
      parameter (FMPL_COUNTER_RDMA_FORGOTTEN = 25)
! A counter: operations on global memory (acp.h) that were refused or
! have failed, with those that were to follow them.
      integer FMPL_COUNTER_GLOBAL_REFUSED
      parameter (FMPL_COUNTER_GLOBAL_REFUSED = 17)
! A counter: loans that were handed over (fmpl_send_loan).
      integer FMPL_COUNTER_LOANS
      parameter (FMPL_COUNTER_LOANS = 18)
! A counter: bytes of messages that this process has copied into loans
! or out of them.
      integer FMPL_COUNTER_LOAN_COPIED
      parameter (FMPL_COUNTER_LOAN_COPIED = 19)
! A counter: waits that slept, each as often as it did.
      integer FMPL_COUNTER_SLEEPS
      parameter (FMPL_COUNTER_SLEEPS = 20)
! A counter: nanoseconds that waits have slept, of all threads together.
      integer FMPL_COUNTER_SLEPT_NS
      parameter (FMPL_COUNTER_SLEPT_NS = 21)
! A counter: bytes of the spool that have ever been in use.
      integer FMPL_COUNTER_SPOOL_MOST
      parameter (FMPL_COUNTER_SPOOL_MOST = 22)
! A counter: indexed messages received.
      integer FMPL_COUNTER_RECEIVED
      parameter (FMPL_COUNTER_RECEIVED = 23)
! A counter: short messages that have gone through the overflow queue,
! since the one before was not received yet.
      integer FMPL_COUNTER_QUEUED
      parameter (FMPL_COUNTER_QUEUED = 24)
! A counter: registrations of this program's memory that are kept now
! for messages to other nodes.
      integer FMPL_COUNTER_REGISTRATIONS
      parameter (FMPL_COUNTER_REGISTRATIONS = 26)
! A counter: the bytes of the registrations counted by
! FMPL_COUNTER_REGISTRATIONS.
      integer FMPL_COUNTER_REGISTERED_BYTES
      parameter (FMPL_COUNTER_REGISTERED_BYTES = 27)
! A counter: times that a message to or from another node found its
! memory registered.
      integer FMPL_COUNTER_REGISTRATIONS_FOUND
      parameter (FMPL_COUNTER_REGISTRATIONS_FOUND = 28)
! A counter: registrations that were made since none was found.
      integer FMPL_COUNTER_REGISTRATIONS_MADE
      parameter (FMPL_COUNTER_REGISTRATIONS_MADE = 29)
! Added to one of the counters FMPL_COUNTER_WAY_*: the bytes of these
! messages.
      integer FMPL_COUNTER_BYTES
      parameter (FMPL_COUNTER_BYTES = 32)
! A counter: indexed messages sent in a record of the pair, or in the
! overflow queue.
      integer FMPL_COUNTER_WAY_SHORT
      parameter (FMPL_COUNTER_WAY_SHORT = 32)
! A counter: indexed messages sent stored by their sender into the
! posted buffer, which is memory of fmpl_alloc, or its own.
      integer FMPL_COUNTER_WAY_STORE
      parameter (FMPL_COUNTER_WAY_STORE = 33)
! A counter: indexed messages sent copied by the kernel, for their
! sender.
      integer FMPL_COUNTER_WAY_KERNEL
      parameter (FMPL_COUNTER_WAY_KERNEL = 34)
! A counter: indexed messages sent through alternating buffers.
      integer FMPL_COUNTER_WAY_TURN
      parameter (FMPL_COUNTER_WAY_TURN = 35)
! A counter: indexed messages sent through a ring.
      integer FMPL_COUNTER_WAY_RING
      parameter (FMPL_COUNTER_WAY_RING = 36)
! A counter: indexed messages sent copied by the kernel, for both sides
! in pieces.
      integer FMPL_COUNTER_WAY_SHARED
      parameter (FMPL_COUNTER_WAY_SHARED = 37)
! A counter: indexed messages sent copied by the kernel, for their
! receiver.
      integer FMPL_COUNTER_WAY_PULLED
      parameter (FMPL_COUNTER_WAY_PULLED = 38)
! A counter: indexed messages sent through the spool.
      integer FMPL_COUNTER_WAY_SPOOL
      parameter (FMPL_COUNTER_WAY_SPOOL = 39)
! A counter: indexed messages sent handed over.
      integer FMPL_COUNTER_WAY_LOAN
      parameter (FMPL_COUNTER_WAY_LOAN = 40)
! A counter: indexed messages sent to other nodes, in a record of the
! pair, or in the overflow queue.
      integer FMPL_COUNTER_WAY_FAR_SHORT
      parameter (FMPL_COUNTER_WAY_FAR_SHORT = 41)
! A counter: indexed messages sent to other nodes, put into the posted
! buffer by the device.
      integer FMPL_COUNTER_WAY_FAR_PUT
      parameter (FMPL_COUNTER_WAY_FAR_PUT = 42)
! A counter: indexed messages sent to other nodes, fetched from the
! spool by their receiver.
      integer FMPL_COUNTER_WAY_FAR_SPOOL
      parameter (FMPL_COUNTER_WAY_FAR_SPOOL = 43)
! The version that this header belongs to: 10000 * major + 100 * minor +
! patch.
      integer FMPL_VERSION_NUMBER
      parameter (FMPL_VERSION_NUMBER = 100)
! The library is not initialised, or has been finalized.
      integer FMPL_ERR_INIT
      parameter (FMPL_ERR_INIT = 1)
! A request on this (peer, index) is not completed yet.
      integer FMPL_ERR_BUSY
      parameter (FMPL_ERR_BUSY = 2)
! The index is outside the range that both sides agreed on.
      integer FMPL_ERR_INDEX
      parameter (FMPL_ERR_INDEX = 3)
! The rank is outside the communicator.
      integer FMPL_ERR_RANK
      parameter (FMPL_ERR_RANK = 4)
! Not a communicator.
      integer FMPL_ERR_COMM
      parameter (FMPL_ERR_COMM = 5)
! Another argument is wrong: a null buffer with a size, a negative
! count, a size that overflows.
      integer FMPL_ERR_ARGUMENT
      parameter (FMPL_ERR_ARGUMENT = 6)
! The message is longer than the receive buffer. Its first bytes have
! been delivered.
      integer FMPL_ERR_TRUNCATE
      parameter (FMPL_ERR_TRUNCATE = 7)
! Buffered mode, and the spool has no room for the message. Nothing was
! sent.
      integer FMPL_ERR_SPOOL_FULL
      parameter (FMPL_ERR_SPOOL_FULL = 8)
! Finalize found messages that nobody has received, or requests never
! completed.
      integer FMPL_ERR_PENDING
      parameter (FMPL_ERR_PENDING = 9)
! The peer has died, or has finalized without doing its part.
      integer FMPL_ERR_PEER
      parameter (FMPL_ERR_PEER = 10)
! This process was forked from one that had initialised the library; it
! cannot use it.
      integer FMPL_ERR_FORK
      parameter (FMPL_ERR_FORK = 11)
! No memory, or a limit on memory was met.
      integer FMPL_ERR_MEMORY
      parameter (FMPL_ERR_MEMORY = 12)
! A system call failed; the text has its name and errno.
      integer FMPL_ERR_SYSTEM
      parameter (FMPL_ERR_SYSTEM = 13)
! The launcher could not be reached or answered nonsense.
      integer FMPL_ERR_LAUNCH
      parameter (FMPL_ERR_LAUNCH = 14)
! There is no such request to wait for, to test or to cancel.
      integer FMPL_ERR_REQUEST
      parameter (FMPL_ERR_REQUEST = 15)
! The ranks wait for each other in a cycle (reported only with
! FMPL_DEADLOCK=abort).
      integer FMPL_ERR_DEADLOCK
      parameter (FMPL_ERR_DEADLOCK = 16)
! A setting has a value that cannot be used.
      integer FMPL_ERR_SETTING
      parameter (FMPL_ERR_SETTING = 17)
! The two sides were built with different layouts of the shared records.
      integer FMPL_ERR_VERSION
      parameter (FMPL_ERR_VERSION = 18)
! The library cannot do this here: the machine or the system lacks what
! it takes.
      integer FMPL_ERR_UNSUPPORTED
      parameter (FMPL_ERR_UNSUPPORTED = 19)
! For an area or a spool: let the library place it.
      integer*8 FMPL_NULL
      parameter (FMPL_NULL = 5497863039888674118_8)
      integer*8 ACP_GA_NULL
      parameter (ACP_GA_NULL = 0_8)
      integer*8 ACP_ATKEY_NULL
      parameter (ACP_ATKEY_NULL = 0_8)
      integer*8 ACP_HANDLE_ALL
      parameter (ACP_HANDLE_ALL = -1_8)
      integer*8 ACP_HANDLE_CONT
      parameter (ACP_HANDLE_CONT = -2_8)
      integer*8 ACP_HANDLE_NULL
      parameter (ACP_HANDLE_NULL = 0_8)
      integer*8 ACP_HANDLE_REFUSED
      parameter (ACP_HANDLE_REFUSED = 4611686018427387904_8)
      external fmpl_init
      external fmpl_finalize
      external fmpl_initialized
      external fmpl_abort
      external fmpl_comm_rank
      external fmpl_comm_size
      external fmpl_send
      external fmpl_send8
      external fmpl_recv
      external fmpl_recv8
      external fmpl_sendrecv
      external fmpl_sendrecv8
      external fmpl_isend
      external fmpl_isend8
      external fmpl_irecv
      external fmpl_irecv8
      external fmpl_isend_wait
      external fmpl_isend_test
      external fmpl_irecv_wait
      external fmpl_irecv_test
      external fmpl_irecv_cancel
      external fmpl_received
      external fmpl_received8
      external fmpl_probe
      external fmpl_probe8
      external fmpl_sendbuf_set
      external fmpl_sendbuf_set8
      external fmpl_comm_sendbuf_set
      external fmpl_comm_sendbuf_set8
      external fmpl_sendbuf_check
      double precision fmpl_wtime
      external fmpl_wtime
      external fmpl_progress
      external fmpl_event_fd
      external fmpl_alloc
      external fmpl_alloc8
      external fmpl_free
      external fmpl_strerror
      external fmpl_last_error
      external fmpl_version
      external fmpl_init_with
      external fmpl_id_create
      external fmpl_init_id
      external fmpl_shared_alloc
      external fmpl_shared_alloc8
      external fmpl_shared_query
      external fmpl_shared_query8
      external fmpl_shared_free
      external fmpl_comm_create
      external fmpl_comm_split
      external fmpl_comm_split_node
      external fmpl_comm_dup
      external fmpl_comm_group_create
      external fmpl_comm_free
      external fmpl_comm_translate
      external fmpl_comm_set_name
      external fmpl_comm_name
      external fmpl_send_block
      external fmpl_isend_block
      external fmpl_recv_block
      external fmpl_irecv_block
      external fmpl_send_list
      external fmpl_isend_list
      external fmpl_recv_list
      external fmpl_irecv_list
      external fmpl_send_any
      external fmpl_send_any8
      external fmpl_recv_any
      external fmpl_recv_any8
      external fmpl_isend_any
      external fmpl_isend_any8
      external fmpl_irecv_any
      external fmpl_irecv_any8
      external fmpl_recv_any_from
      external fmpl_recv_any_from8
      external fmpl_irecv_any_wait
      external fmpl_irecv_any_wait8
      external fmpl_irecv_any_test
      external fmpl_irecv_any_test8
      external fmpl_probe_any
      external fmpl_probe_any8
      external fmpl_isend_any_wait
      external fmpl_isend_any_test
      external fmpl_irecv_any_cancel
      external fmpl_recv_any_limit
      external fmpl_mcast
      external fmpl_mcast8
      external fmpl_mcast_recv
      external fmpl_mcast_recv8
      external fmpl_recv_any_or_mcast
      external fmpl_recv_any_or_mcast8
      external fmpl_mcast_irecv
      external fmpl_mcast_irecv8
      external fmpl_mcast_irecv_wait
      external fmpl_mcast_irecv_wait8
      external fmpl_mcast_irecv_test
      external fmpl_mcast_irecv_test8
      external fmpl_mcast_wait
      external fmpl_mcast_test
      external fmpl_mcast_irecv_cancel
      external fmpl_send_init
      external fmpl_send_init8
      external fmpl_recv_init
      external fmpl_recv_init8
      external fmpl_send_start
      external fmpl_recv_start
      external fmpl_waitall
      external fmpl_testall
      external fmpl_waitany
      external fmpl_waitsome
      external fmpl_loan
      external fmpl_loan8
      external fmpl_send_loan
      external fmpl_send_loan8
      external fmpl_recv_loan
      external fmpl_recv_loan8
      external fmpl_irecv_loan
      external fmpl_irecv_loan_wait
      external fmpl_irecv_loan_wait8
      external fmpl_irecv_loan_test
      external fmpl_irecv_loan_test8
      external fmpl_mcast_loan
      external fmpl_mcast_loan8
      external fmpl_send_loan_any
      external fmpl_send_loan_any8
      external fmpl_recv_loan_any
      external fmpl_recv_loan_any8
      external fmpl_irecv_loan_any
      external fmpl_irecv_loan_any_wait
      external fmpl_irecv_loan_any_wait8
      external fmpl_irecv_loan_any_test
      external fmpl_irecv_loan_any_test8
      external fmpl_loan_return
      external fmpl_counter
      external fmpl_barrier
      external fmpl_bcast
      external fmpl_bcast8
      external fmpl_reduce
      external fmpl_allreduce
      external fmpl_gather
      external fmpl_gather8
      external fmpl_allgather
      external fmpl_allgather8
      external fmpl_scatter
      external fmpl_scatter8
      external fmpl_alltoall
      external fmpl_alltoall8
      external fmpl_reduce_scatter
      external fmpl_scan
      external fmpl_exscan
      external fmpl_gatherv
      external fmpl_gatherv8
      external fmpl_allgatherv
      external fmpl_allgatherv8
      external fmpl_scatterv
      external fmpl_scatterv8
      external fmpl_alltoallv
      external fmpl_mcast_reduce
      external fmpl_mcast_alltoall
      external fmpl_mcast_alltoall8
      external fmpl_func_register
      external fmpl_ibarrier
      external fmpl_ibcast
      external fmpl_ibcast8
      external fmpl_ireduce
      external fmpl_iallreduce
      external fmpl_igather
      external fmpl_igather8
      external fmpl_iallgather
      external fmpl_iallgather8
      external fmpl_iscatter
      external fmpl_iscatter8
      external fmpl_ialltoall
      external fmpl_ialltoall8
      external fmpl_ibarrier_wait
      external fmpl_ibarrier_test
      external fmpl_ibcast_wait
      external fmpl_ibcast_test
      external fmpl_ireduce_wait
      external fmpl_ireduce_test
      external fmpl_iallreduce_wait
      external fmpl_iallreduce_test
      external fmpl_igather_wait
      external fmpl_igather_test
      external fmpl_iallgather_wait
      external fmpl_iallgather_test
      external fmpl_iscatter_wait
      external fmpl_iscatter_test
      external fmpl_ialltoall_wait
      external fmpl_ialltoall_test
      external fmpl_ibarrier_n
      external fmpl_ibcast_n
      external fmpl_ibcast_n8
      external fmpl_ireduce_n
      external fmpl_iallreduce_n
      external fmpl_igather_n
      external fmpl_igather_n8
      external fmpl_iallgather_n
      external fmpl_iallgather_n8
      external fmpl_iscatter_n
      external fmpl_iscatter_n8
      external fmpl_ialltoall_n
      external fmpl_ialltoall_n8
      external fmpl_coll_wait
      external fmpl_coll_test
      external fmpl_cart_create
      external fmpl_cart_coords
      external fmpl_cart_rank
      external fmpl_cart_shift
      external fmpl_neighbour_allgather
      external fmpl_neighbour_allgather8
      external fmpl_neighbour_alltoall
      external fmpl_neighbour_alltoall8
      external acp_init
      external acp_finalize
      external acp_reset
      external acp_abort
      external acp_sync
      external acp_rank
      external acp_procs
      external acp_errno
      external acp_last_error
      external acp_query_starter_ga
      external acp_register_memory
      external acp_unregister_memory
      external acp_query_ga
      external acp_query_address
      external acp_query_rank
      external acp_query_color
      external acp_colors
      external acp_copy
      external acp_cas4
      external acp_swap4
      external acp_add4
      external acp_xor4
      external acp_or4
      external acp_and4
      external acp_cas8
      external acp_swap8
      external acp_add8
      external acp_xor8
      external acp_or8
      external acp_and8
      external acp_complete
      external acp_inquire
      external fmpl_i8sum
      external fmpl_i16sum
      external fmpl_isum
      external fmpl_i64sum
      external fmpl_u8sum
      external fmpl_u16sum
      external fmpl_u32sum
      external fmpl_u64sum
      external fmpl_ssum
      external fmpl_dsum
      external fmpl_csum
      external fmpl_zsum
      external fmpl_f16sum
      external fmpl_bf16sum
      external fmpl_i8prod
      external fmpl_i16prod
      external fmpl_iprod
      external fmpl_i64prod
      external fmpl_u8prod
      external fmpl_u16prod
      external fmpl_u32prod
      external fmpl_u64prod
      external fmpl_sprod
      external fmpl_dprod
      external fmpl_cprod
      external fmpl_zprod
      external fmpl_i8maxval
      external fmpl_i16maxval
      external fmpl_imaxval
      external fmpl_i64maxval
      external fmpl_u8maxval
      external fmpl_u16maxval
      external fmpl_u32maxval
      external fmpl_u64maxval
      external fmpl_smaxval
      external fmpl_dmaxval
      external fmpl_i8minval
      external fmpl_i16minval
      external fmpl_iminval
      external fmpl_i64minval
      external fmpl_u8minval
      external fmpl_u16minval
      external fmpl_u32minval
      external fmpl_u64minval
      external fmpl_sminval
      external fmpl_dminval
      external fmpl_iamax
      external fmpl_samax
      external fmpl_damax
      external fmpl_camax
      external fmpl_zamax
      external fmpl_iamin
      external fmpl_samin
      external fmpl_damin
      external fmpl_camin
      external fmpl_zamin
      external fmpl_i8maxloc
      external fmpl_i16maxloc
      external fmpl_imaxloc
      external fmpl_i64maxloc
      external fmpl_u8maxloc
      external fmpl_u16maxloc
      external fmpl_u32maxloc
      external fmpl_u64maxloc
      external fmpl_smaxloc
      external fmpl_dmaxloc
      external fmpl_i8minloc
      external fmpl_i16minloc
      external fmpl_iminloc
      external fmpl_i64minloc
      external fmpl_u8minloc
      external fmpl_u16minloc
      external fmpl_u32minloc
      external fmpl_u64minloc
      external fmpl_sminloc
      external fmpl_dminloc
      external fmpl_i8land
      external fmpl_i16land
      external fmpl_iland
      external fmpl_i64land
      external fmpl_u8land
      external fmpl_u16land
      external fmpl_u32land
      external fmpl_u64land
      external fmpl_b8land
      external fmpl_i8lor
      external fmpl_i16lor
      external fmpl_ilor
      external fmpl_i64lor
      external fmpl_u8lor
      external fmpl_u16lor
      external fmpl_u32lor
      external fmpl_u64lor
      external fmpl_b8lor
      external fmpl_i8lxor
      external fmpl_i16lxor
      external fmpl_ilxor
      external fmpl_i64lxor
      external fmpl_u8lxor
      external fmpl_u16lxor
      external fmpl_u32lxor
      external fmpl_u64lxor
      external fmpl_b8lxor
      external fmpl_i8band
      external fmpl_i16band
      external fmpl_iband
      external fmpl_i64band
      external fmpl_u8band
      external fmpl_u16band
      external fmpl_u32band
      external fmpl_u64band
      external fmpl_i8bor
      external fmpl_i16bor
      external fmpl_ibor
      external fmpl_i64bor
      external fmpl_u8bor
      external fmpl_u16bor
      external fmpl_u32bor
      external fmpl_u64bor
      external fmpl_i8bxor
      external fmpl_i16bxor
      external fmpl_ibxor
      external fmpl_i64bxor
      external fmpl_u8bxor
      external fmpl_u16bxor
      external fmpl_u32bxor
      external fmpl_u64bxor
      external fmpl_f80sum
      external fmpl_f80prod
      external fmpl_f80maxval
      external fmpl_f80minval
      external fmpl_f80maxloc
      external fmpl_f80minloc
      external fmpl_imax
      external fmpl_smax
      external fmpl_dmax
      external fmpl_cmax
      external fmpl_zmax
      external fmpl_imin
      external fmpl_smin
      external fmpl_dmin
      external fmpl_cmin
      external fmpl_zmin
