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

  !> What every function returns when it has done its work.
  integer(c_int), parameter :: FMPL_SUCCESS = 0
  !> All ranks of the job.
  integer(c_int), parameter :: FMPL_COMM_WORLD = 0
  !> No communicator.
  integer(c_int), parameter :: FMPL_COMM_NULL = -1
  !> As the index of a receive: any index of this one source.
  integer(c_int), parameter :: FMPL_TAG_ANY = -1
  !> The same by another name: what MPI calls a tag is an index here.
  integer(c_int), parameter :: FMPL_INDEX_ANY = -1
  !> As a peer: nobody. The call succeeds and nothing happens.
  integer(c_int), parameter :: FMPL_PROC_NULL = -2
  !> As a time-out (synchronous mode): a send completes once its receive is known to have been posted, and not
  !! before, however long that takes. Only then may what is left of it go through the spool.
  integer(c_int), parameter :: FMPL_TIMEOUT_INFINITE = -1
  !> A kind of request: none, or one that is over.
  integer(c_int), parameter :: FMPL_REQUEST_NONE = 0
  !> A kind of request: of fmpl_isend, fmpl_isend_block, fmpl_isend_list; peer, index, comm.
  integer(c_int), parameter :: FMPL_REQUEST_SEND = 1
  !> A kind of request: of fmpl_irecv, fmpl_irecv_block, fmpl_irecv_list; peer, index (or FMPL_INDEX_ANY),
  !! comm.
  integer(c_int), parameter :: FMPL_REQUEST_RECV = 2
  !> A kind of request: of fmpl_isend_any; peer, index, comm.
  integer(c_int), parameter :: FMPL_REQUEST_SEND_ANY = 3
  !> A kind of request: of fmpl_irecv_any; index, comm.
  integer(c_int), parameter :: FMPL_REQUEST_RECV_ANY = 4
  !> A kind of request: of fmpl_mcast; ticket.
  integer(c_int), parameter :: FMPL_REQUEST_MCAST = 5
  !> A kind of request: of fmpl_mcast_irecv; comm.
  integer(c_int), parameter :: FMPL_REQUEST_MCAST_RECV = 6
  !> A kind of request: of fmpl_ibarrier or fmpl_ibarrier_n; comm and, of a call with one, ticket, which is 0
  !! otherwise. So for all collective calls.
  integer(c_int), parameter :: FMPL_REQUEST_BARRIER = 7
  !> A kind of request: of fmpl_ibcast; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_BCAST = 8
  !> A kind of request: of fmpl_iallreduce; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_ALLREDUCE = 9
  !> A kind of request: of fmpl_ireduce; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_REDUCE = 10
  !> A kind of request: of fmpl_igather; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_GATHER = 11
  !> A kind of request: of fmpl_iallgather; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_ALLGATHER = 12
  !> A kind of request: of fmpl_iscatter; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_SCATTER = 13
  !> A kind of request: of fmpl_ialltoall; comm, ticket.
  integer(c_int), parameter :: FMPL_REQUEST_ALLTOALL = 14
  !> How many collective calls with tickets a communicator may have that are begun and not completed.
  integer(c_int), parameter :: FMPL_TICKETS = 64
  !> Room in bytes for the name of a communicator, with the zero behind it.
  integer(c_int), parameter :: FMPL_COMM_NAME_BYTES = 64
  !> Bytes of matching area for each index, for a caller that brings its own area to fmpl_init.
  integer(c_int), parameter :: FMPL_MA_BYTES = 64
  !> Bytes of completion-flag area for each index, for a caller that brings its own area to fmpl_init.
  integer(c_int), parameter :: FMPL_FA_BYTES = 64
  !> A counter: other ranks whose memory this process has mapped. Only with these can anything go through
  !! shared memory.
  integer(c_int), parameter :: FMPL_COUNTER_SHM_PEERS = 0
  !> A counter: indexed messages sent to other ranks through shared memory.
  integer(c_int), parameter :: FMPL_COUNTER_SHM_MESSAGES = 1
  !> A counter: the bytes of the messages counted by FMPL_COUNTER_SHM_MESSAGES.
  integer(c_int), parameter :: FMPL_COUNTER_SHM_BYTES = 2
  !> A counter: RDMA writes to ranks on other nodes, those that carry a record and those that carry a
  !! message's bytes.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_WRITES = 3
  !> A counter: RDMA reads from ranks on other nodes.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_READS = 4
  !> A counter: the bytes of these writes and reads.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_BYTES = 5
  !> A counter: bytes of messages that a processor has copied on their way to or from another node, landings
  !! apart.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_COPIED = 6
  !> A counter: completions of writes and reads that were taken.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_COMPLETIONS = 7
  !> For fmpl_counter: connections (RC queue pairs) with ranks on other nodes that this process has now.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_PAIRS = 8
  !> For fmpl_counter: those that all ranks of this node have now.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_NODE_PAIRS = 9
  !> For fmpl_counter: connections of this process that were given up so far, because others needed their
  !! place.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_RETIRED = 10
  !> For fmpl_counter: packets sent to multicast groups, each to all members at once.
  integer(c_int), parameter :: FMPL_COUNTER_MULTICAST_PACKETS = 11
  !> For fmpl_counter: of these packets the ones that some member did not get, and that this process sent to
  !! it alone.
  integer(c_int), parameter :: FMPL_COUNTER_MULTICAST_AGAIN = 12
  !> For fmpl_counter: multicast groups that this process is in now.
  integer(c_int), parameter :: FMPL_COUNTER_MULTICAST_GROUPS = 13
  !> For fmpl_counter: peers on other nodes with which this process has a context now, memory that they may
  !! write.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_CONTEXTS = 14
  !> For fmpl_counter: the contexts that all ranks of this node have now.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_NODE_CONTEXTS = 15
  !> For fmpl_counter: contexts of this process that were put away so far, because others needed their place.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_PUT_AWAY = 16
  !> For fmpl_counter: peers on other nodes that this process has forgotten so far, since nothing was under
  !! way with them and others needed their context.
  integer(c_int), parameter :: FMPL_COUNTER_RDMA_FORGOTTEN = 25
  !> A counter: operations on global memory (acp.h) that were refused or have failed, with those that were to
  !! follow them.
  integer(c_int), parameter :: FMPL_COUNTER_GLOBAL_REFUSED = 17
  !> A counter: loans that were handed over (fmpl_send_loan).
  integer(c_int), parameter :: FMPL_COUNTER_LOANS = 18
  !> A counter: bytes of messages that this process has copied into loans or out of them.
  integer(c_int), parameter :: FMPL_COUNTER_LOAN_COPIED = 19
  !> A counter: waits that slept, each as often as it did.
  integer(c_int), parameter :: FMPL_COUNTER_SLEEPS = 20
  !> A counter: nanoseconds that waits have slept, of all threads together.
  integer(c_int), parameter :: FMPL_COUNTER_SLEPT_NS = 21
  !> A counter: bytes of the spool that have ever been in use.
  integer(c_int), parameter :: FMPL_COUNTER_SPOOL_MOST = 22
  !> A counter: indexed messages received.
  integer(c_int), parameter :: FMPL_COUNTER_RECEIVED = 23
  !> A counter: short messages that have gone through the overflow queue, since the one before was not
  !! received yet.
  integer(c_int), parameter :: FMPL_COUNTER_QUEUED = 24
  !> A counter: registrations of this program's memory that are kept now for messages to other nodes.
  integer(c_int), parameter :: FMPL_COUNTER_REGISTRATIONS = 26
  !> A counter: the bytes of the registrations counted by FMPL_COUNTER_REGISTRATIONS.
  integer(c_int), parameter :: FMPL_COUNTER_REGISTERED_BYTES = 27
  !> A counter: times that a message to or from another node found its memory registered.
  integer(c_int), parameter :: FMPL_COUNTER_REGISTRATIONS_FOUND = 28
  !> A counter: registrations that were made since none was found.
  integer(c_int), parameter :: FMPL_COUNTER_REGISTRATIONS_MADE = 29
  !> Added to one of the counters FMPL_COUNTER_WAY_*: the bytes of these messages.
  integer(c_int), parameter :: FMPL_COUNTER_BYTES = 32
  !> A counter: indexed messages sent in a record of the pair, or in the overflow queue.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_SHORT = 32
  !> A counter: indexed messages sent stored by their sender into the posted buffer, which is memory of
  !! fmpl_alloc, or its own.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_STORE = 33
  !> A counter: indexed messages sent copied by the kernel, for their sender.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_KERNEL = 34
  !> A counter: indexed messages sent through alternating buffers.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_TURN = 35
  !> A counter: indexed messages sent through a ring.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_RING = 36
  !> A counter: indexed messages sent copied by the kernel, for both sides in pieces.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_SHARED = 37
  !> A counter: indexed messages sent copied by the kernel, for their receiver.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_PULLED = 38
  !> A counter: indexed messages sent through the spool.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_SPOOL = 39
  !> A counter: indexed messages sent handed over.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_LOAN = 40
  !> A counter: indexed messages sent to other nodes, in a record of the pair, or in the overflow queue.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_FAR_SHORT = 41
  !> A counter: indexed messages sent to other nodes, put into the posted buffer by the device.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_FAR_PUT = 42
  !> A counter: indexed messages sent to other nodes, fetched from the spool by their receiver.
  integer(c_int), parameter :: FMPL_COUNTER_WAY_FAR_SPOOL = 43
  !> The version that this header belongs to: 10000 * major + 100 * minor + patch.
  integer(c_int), parameter :: FMPL_VERSION_NUMBER = 100
  !> The library is not initialised, or has been finalized.
  integer(c_int), parameter :: FMPL_ERR_INIT = 1
  !> A request on this (peer, index) is not completed yet.
  integer(c_int), parameter :: FMPL_ERR_BUSY = 2
  !> The index is outside the range that both sides agreed on.
  integer(c_int), parameter :: FMPL_ERR_INDEX = 3
  !> The rank is outside the communicator.
  integer(c_int), parameter :: FMPL_ERR_RANK = 4
  !> Not a communicator.
  integer(c_int), parameter :: FMPL_ERR_COMM = 5
  !> Another argument is wrong: a null buffer with a size, a negative count, a size that overflows.
  integer(c_int), parameter :: FMPL_ERR_ARGUMENT = 6
  !> The message is longer than the receive buffer. Its first bytes have been delivered.
  integer(c_int), parameter :: FMPL_ERR_TRUNCATE = 7
  !> Buffered mode, and the spool has no room for the message. Nothing was sent.
  integer(c_int), parameter :: FMPL_ERR_SPOOL_FULL = 8
  !> Finalize found messages that nobody has received, or requests never completed.
  integer(c_int), parameter :: FMPL_ERR_PENDING = 9
  !> The peer has died, or has finalized without doing its part.
  integer(c_int), parameter :: FMPL_ERR_PEER = 10
  !> This process was forked from one that had initialised the library; it cannot use it.
  integer(c_int), parameter :: FMPL_ERR_FORK = 11
  !> No memory, or a limit on memory was met.
  integer(c_int), parameter :: FMPL_ERR_MEMORY = 12
  !> A system call failed; the text has its name and errno.
  integer(c_int), parameter :: FMPL_ERR_SYSTEM = 13
  !> The launcher could not be reached or answered nonsense.
  integer(c_int), parameter :: FMPL_ERR_LAUNCH = 14
  !> There is no such request to wait for, to test or to cancel.
  integer(c_int), parameter :: FMPL_ERR_REQUEST = 15
  !> The ranks wait for each other in a cycle (reported only with FMPL_DEADLOCK=abort).
  integer(c_int), parameter :: FMPL_ERR_DEADLOCK = 16
  !> A setting has a value that cannot be used.
  integer(c_int), parameter :: FMPL_ERR_SETTING = 17
  !> The two sides were built with different layouts of the shared records.
  integer(c_int), parameter :: FMPL_ERR_VERSION = 18
  !> The library cannot do this here: the machine or the system lacks what it takes.
  integer(c_int), parameter :: FMPL_ERR_UNSUPPORTED = 19
  !> For an area or a spool: let the library place it.
  integer(c_int64_t), parameter :: FMPL_NULL = 5497863039888674118_c_int64_t
  ! Of acp.h: no address, no key, and orders.
  integer(c_int64_t), parameter :: ACP_GA_NULL = 0_c_int64_t
  integer(c_int64_t), parameter :: ACP_ATKEY_NULL = 0_c_int64_t
  integer(c_int64_t), parameter :: ACP_HANDLE_ALL = -1_c_int64_t
  integer(c_int64_t), parameter :: ACP_HANDLE_CONT = -2_c_int64_t
  integer(c_int64_t), parameter :: ACP_HANDLE_NULL = 0_c_int64_t
  integer(c_int64_t), parameter :: ACP_HANDLE_REFUSED = 4611686018427387904_c_int64_t
  !> A request by its name, for calls that complete several at a time: what began it (FMPL_REQUEST_SEND and so
  !! on) in kind, and the arguments by which the call that completes it alone names it. Other members mean
  !! nothing.
type, bind(C) :: fmpl_request
    integer(c_int) :: kind = FMPL_REQUEST_NONE, peer = FMPL_PROC_NULL, index = 0, comm = FMPL_COMM_WORLD
    integer(c_int64_t) :: ticket = 0
  end type fmpl_request

  ! ---- Life of the job -------------------------------------------------------------------------------------

  !> Joins the job with room for count messages in flight from and to each peer. Init is counted: a further
  !! init succeeds and the largest count holds from then on. Ranks may give different counts; the smaller one
  !! of a pair holds for it. After the last finalize init joins anew, with all ranks, under fmpl run and in a
  !! job of one.
  !! ma and fa may be FMPL_NULL.
  !! @param ma the matching area, count * FMPL_MA_BYTES bytes, or FMPL_NULL: the library places it. In a job
  !!     on several nodes what peers write lies there, as much as finds room in its whole pages: 4 KiB for
  !!     each peer, and 16 KiB for each 64 indices that are used with it. It is the library's until the last
  !!     finalize, and all zero then. On one node the library places it, and leaves this one untouched; so it
  !!     does with memory that is not private.
  !! @param fa the completion-flag area, count * FMPL_FA_BYTES bytes, or FMPL_NULL; as above.
  !! @param count the number of indices, 0 or more; valid indices are 0 to count - 1.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative count, FMPL_ERR_LAUNCH when the launcher
  !!     cannot be reached, or lets no process join again, FMPL_ERR_MEMORY, FMPL_ERR_SETTING for an
  !!     environment variable with an unusable value, FMPL_ERR_VERSION.
  interface
    subroutine fmpl_init(ma, fa, count, ier) bind(C, name="fmpl_init_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: ma
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: ma
      !DIR$ IGNORE_TKR ma
      type(*), dimension(*) :: ma
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: fa
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: fa
      !DIR$ IGNORE_TKR fa
      type(*), dimension(*) :: fa
      integer(c_int), intent(in) :: count
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_init
  end interface

  !> Leaves the job; collective. Delivers what is spooled. With several inits the last finalize does it. When
  !! it fails the job is left all the same, and the process, if it would end with exit code 0, ends with 1 and
  !! says why.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_PENDING naming the messages or requests that remain.
  interface
    subroutine fmpl_finalize(ier) bind(C, name="fmpl_finalize_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_finalize
  end interface

  !> Tells whether the library is initialised (and not finalized). May be called at any time.
  !! @param flag set to 1 or 0.
  !! @param ier FMPL_SUCCESS
  interface
    subroutine fmpl_initialized(flag, ier) bind(C, name="fmpl_initialized_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: flag
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_initialized
  end interface

  !> Ends the whole job, every rank of it. Does not return.
  !! @param code the exit status of the job.
  interface
    subroutine fmpl_abort(code, ier) bind(C, name="fmpl_abort_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: code
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_abort
  end interface

  !> This process's rank in a communicator.
  !! @param comm the communicator.
  !! @param rank set to 0 to size - 1.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM.
  interface
    subroutine fmpl_comm_rank(comm, rank, ier) bind(C, name="fmpl_comm_rank_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_rank
  end interface

  !> The number of ranks of a communicator.
  !! @param comm the communicator.
  !! @param size set to the number of ranks, 1 or more.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM.
  interface
    subroutine fmpl_comm_size(comm, size, ier) bind(C, name="fmpl_comm_size_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_size
  end interface

  ! ---- Blocking messages -----------------------------------------------------------------------------------

  !> Sends size bytes to index mai of rank dst. Returns when buf may be written again: the bytes are at the
  !! receiver, or, when it posted no receive within the time-out of fmpl_sendbuf_set, in the spool. Messages
  !! of one (communicator, peer, index) arrive in order.
  !! @param buf the message; may be FMPL_NULL when size is 0.
  !! @param size bytes; there is no upper bound but memory.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index, 0 to count - 1 of the smaller count of the two ranks.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT (a null buffer with a size), FMPL_ERR_RANK,
  !!     FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY (an isend on this index is not completed),
  !!     FMPL_ERR_SPOOL_FULL (time-out 0 only: nothing was sent), FMPL_ERR_PEER (the receiver has died or
  !!     left).
  interface fmpl_send
    subroutine fmpl_send(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send
    subroutine fmpl_send8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send8
  end interface

  !> Receives the next message on index mai from rank src. A message shorter than the buffer is fine;
  !! fmpl_received tells its length.
  !! @param buf where it goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index, or FMPL_TAG_ANY. Between any-index and indexed receives no order is promised.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE (the message was longer; its first size bytes are in buf),
  !!     FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY (an irecv on this
  !!     index is not completed), FMPL_ERR_PEER.
  interface fmpl_recv
    subroutine fmpl_recv(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv
    subroutine fmpl_recv8(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv8
  end interface

  !> A send and a receive at the same time. Two ranks that exchange messages this way do not wait for a
  !! time-out.
  !! @param sbuf the message to send; must not overlap rbuf.
  !! @param ssize its bytes.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param smai the index to send on.
  !! @param rbuf where the received message goes.
  !! @param rsize bytes of room.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param rmai the index to receive on, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: what fmpl_send and fmpl_recv return. Where the send is refused nothing has
  !!     been received, unless the peer dies meanwhile or is this rank itself: in buffered mode it waits for
  !!     room in the spool once a message has come.
  interface fmpl_sendrecv
    subroutine fmpl_sendrecv(sbuf, ssize, dst, smai, rbuf, rsize, src, rmai, comm, ier) bind(C, name="fmpl_sendrecv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sbuf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sbuf
      !DIR$ IGNORE_TKR sbuf
      type(*), dimension(*), intent(in) :: sbuf
      integer(c_int), intent(in) :: ssize
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: smai
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: rbuf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: rbuf
      !DIR$ IGNORE_TKR rbuf
      type(*), dimension(*) :: rbuf
      integer(c_int), intent(in) :: rsize
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: rmai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_sendrecv
    subroutine fmpl_sendrecv8(sbuf, ssize, dst, smai, rbuf, rsize, src, rmai, comm, ier) bind(C, name="fmpl_sendrecv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sbuf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sbuf
      !DIR$ IGNORE_TKR sbuf
      type(*), dimension(*), intent(in) :: sbuf
      integer(c_int64_t), intent(in) :: ssize
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: smai
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: rbuf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: rbuf
      !DIR$ IGNORE_TKR rbuf
      type(*), dimension(*) :: rbuf
      integer(c_int64_t), intent(in) :: rsize
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: rmai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_sendrecv8
  end interface

  ! ---- Non-blocking messages -------------------------------------------------------------------------------

  !> Begins to send. The buffer must stay unchanged until fmpl_isend_wait or fmpl_isend_test has completed the
  !! request; (dst, mai, comm) names it, there is no request object. The time-out runs from here.
  !! @param buf the message; may be FMPL_NULL when size is 0.
  !! @param size bytes.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_send; FMPL_ERR_BUSY when a request on this (peer, index) is not
  !!     completed.
  interface fmpl_isend
    subroutine fmpl_isend(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_isend_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend
    subroutine fmpl_isend8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_isend8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend8
  end interface

  !> Begins to receive: tells the sender where the message may be put, and returns. The earlier, the better: a
  !! sender that finds the receive posted writes straight into buf. The buffer must not be touched until
  !! fmpl_irecv_wait or fmpl_irecv_test has completed the request, or fmpl_irecv_cancel has withdrawn it.
  !! @param buf where the message goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM,
  !!     FMPL_ERR_BUSY, FMPL_ERR_PEER.
  interface fmpl_irecv
    subroutine fmpl_irecv(buf, size, src, mai, comm, ier) bind(C, name="fmpl_irecv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv
    subroutine fmpl_irecv8(buf, size, src, mai, comm, ier) bind(C, name="fmpl_irecv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv8
  end interface

  !> Waits until the buffer of the isend on (dst, mai, comm) may be written again; spools like fmpl_send.
  !! @param dst the receiver's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such isend; otherwise as fmpl_send.
  interface
    subroutine fmpl_isend_wait(dst, mai, comm, ier) bind(C, name="fmpl_isend_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_wait
  end interface

  !> Completes the isend on (dst, mai, comm) if that needs no waiting. When done is set to 1 the request is
  !! completed as by fmpl_isend_wait.
  !! @param dst the receiver's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_isend_wait.
  interface
    subroutine fmpl_isend_test(dst, mai, comm, done, ier) bind(C, name="fmpl_isend_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_test
  end interface

  !> Waits until the message of the irecv on (src, mai, comm) is in its buffer.
  !! @param src the sender's rank.
  !! @param mai the index, or FMPL_TAG_ANY for the any-index receive.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such irecv; otherwise as fmpl_recv.
  interface
    subroutine fmpl_irecv_wait(src, mai, comm, ier) bind(C, name="fmpl_irecv_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_wait
  end interface

  !> Completes the irecv on (src, mai, comm) if its message is there. When done is set to 1 the request is
  !! completed as by fmpl_irecv_wait.
  !! @param src the sender's rank.
  !! @param mai the index, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv_wait.
  interface
    subroutine fmpl_irecv_test(src, mai, comm, done, ier) bind(C, name="fmpl_irecv_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_test
  end interface

  !> Withdraws the irecv on (src, mai, comm), unless a message is already on its way into the buffer.
  !! @param src the sender's rank.
  !! @param mai the index, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param cancelled set to 1: the buffer is the caller's again; or to 0: too late, complete the request as
  !!     usual.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such irecv.
  interface
    subroutine fmpl_irecv_cancel(src, mai, comm, cancelled, ier) bind(C, name="fmpl_irecv_cancel_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: cancelled
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_cancel
  end interface

  !> Length and index of the last completed receive on (src, mai, comm). It is to be asked soon: of peers on
  !! other nodes that have been forgotten since, only 4096 lengths are kept, the latest (docs/memory.md).
  !! @param src the sender's rank.
  !! @param mai the index that the receive gave, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param size set to the message's length in bytes, which is more than the buffer's when it was truncated.
  !! @param index set to the index that it matched.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when no receive has been completed there; FMPL_ERR_RANK,
  !!     FMPL_ERR_INDEX, FMPL_ERR_COMM.
  interface fmpl_received
    subroutine fmpl_received(src, mai, comm, size, index, ier) bind(C, name="fmpl_received_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: index
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_received
    subroutine fmpl_received8(src, mai, comm, size, index, ier) bind(C, name="fmpl_received8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: index
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_received8
  end interface

  !> Looks whether a receive would find a message now, and how long it is. Takes nothing.
  !! @param src the sender's rank.
  !! @param mai the index, or FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param there set to 1 or 0.
  !! @param size set to the message's length in bytes when it is there, else to 0.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM; FMPL_ERR_PEER.
  interface fmpl_probe
    subroutine fmpl_probe(src, mai, comm, there, size, ier) bind(C, name="fmpl_probe_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: there
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_probe
    subroutine fmpl_probe8(src, mai, comm, there, size, ier) bind(C, name="fmpl_probe8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: there
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_probe8
  end interface

  ! ---- Modes of sending ------------------------------------------------------------------------------------

  !> Sets the spool and the time-out of all communicators that have none of their own. Without it the spool
  !! has 16 MiB and the time-out is 10 ms. May be called again at any time: size and time-out hold at once for
  !! later sends, and what is spooled stays.
  !! buf may be FMPL_NULL.
  !! @param buf where the spool is to lie. In a job on several nodes it does, in units of 64 KiB, after what
  !!     it has used by then; the memory is the library's until the last finalize, and all zero then. On one
  !!     node receivers fetch spooled messages from memory that the library allocates, up to size, and this is
  !!     left untouched; so is memory that is not private.
  !! @param size bytes that may be spooled.
  !! @param timeout_ms how long a send of more than the eager size (FMPL_EAGER) waits at least for its receive
  !!     before it copies the message into the spool, in milliseconds; shorter ones never wait for it, unless
  !!     that size is 0. 0 is buffered mode, FMPL_TIMEOUT_INFINITE synchronous mode, in which every send
  !!     waits, all else standard mode.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative time-out that is not FMPL_TIMEOUT_INFINITE;
  !!     FMPL_ERR_MEMORY.
  interface fmpl_sendbuf_set
    subroutine fmpl_sendbuf_set(buf, size, timeout_ms, ier) bind(C, name="fmpl_sendbuf_set_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: timeout_ms
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_sendbuf_set
    subroutine fmpl_sendbuf_set8(buf, size, timeout_ms, ier) bind(C, name="fmpl_sendbuf_set8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: timeout_ms
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_sendbuf_set8
  end interface

  !> Sets the spool and the time-out of one communicator.
  !! buf may be FMPL_NULL.
  !! @param comm the communicator.
  !! @param buf as for fmpl_sendbuf_set.
  !! @param size its bytes.
  !! @param timeout_ms milliseconds, as for fmpl_sendbuf_set.
  !! @param ier FMPL_SUCCESS, or: as fmpl_sendbuf_set; FMPL_ERR_COMM.
  interface fmpl_comm_sendbuf_set
    subroutine fmpl_comm_sendbuf_set(comm, buf, size, timeout_ms, ier) bind(C, name="fmpl_comm_sendbuf_set_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: timeout_ms
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_sendbuf_set
    subroutine fmpl_comm_sendbuf_set8(comm, buf, size, timeout_ms, ier) bind(C, name="fmpl_comm_sendbuf_set8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: timeout_ms
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_sendbuf_set8
  end interface

  !> Looks at the spool.
  !! @param nsend set to the number of spooled messages that were delivered since the last check.
  !! @param nspool set to the number of those that still wait.
  !! @param ier FMPL_SUCCESS
  interface
    subroutine fmpl_sendbuf_check(nsend, nspool, ier) bind(C, name="fmpl_sendbuf_check_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: nsend
      integer(c_int), intent(out) :: nspool
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_sendbuf_check
  end interface

  ! ---- Time, progress --------------------------------------------------------------------------------------

  !> Time in seconds since some moment in the past; the same origin for all ranks of a node. May be called at
  !! any time.
  !! a DOUBLE PRECISION function.
  interface
    function fmpl_wtime() bind(C, name="fmpl_wtime_") result(seconds)
      import :: c_int, c_int64_t, c_ptr, c_double
      real(c_double) :: seconds
    end function fmpl_wtime
  end interface

  !> Moves what can be moved. On shared memory nothing needs it for messages to be delivered.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_PEER naming a rank that has died.
  interface
    subroutine fmpl_progress(ier) bind(C, name="fmpl_progress_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_progress
  end interface

  !> A descriptor for event loops (poll, epoll): it becomes readable when a request of this process completes.
  !! Read it empty (8 bytes), then test the requests. It belongs to the library and stays open until finalize.
  !! @param fd set to the descriptor.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_SYSTEM.
  interface
    subroutine fmpl_event_fd(fd, ier) bind(C, name="fmpl_event_fd_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: fd
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_event_fd
  end interface

  ! ---- Memory that peers can reach -------------------------------------------------------------------------

  !> Allocates memory that the ranks of the node can reach directly: messages received there are stored by the
  !! sender with one copy and no system call. Aligned to 64 bytes at least.
  !! the address goes to ptr, a TYPE(C_PTR) or an INTEGER(8).
  !! @param size bytes.
  !! @param ptr set to the address, or to null when it fails.
  !! @param ier the return code.
  interface fmpl_alloc
    subroutine fmpl_alloc(size, ptr, ier) bind(C, name="fmpl_alloc_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: size
      type(c_ptr), intent(out) :: ptr
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_alloc
    subroutine fmpl_alloc8(size, ptr, ier) bind(C, name="fmpl_alloc8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: size
      type(c_ptr), intent(out) :: ptr
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_alloc8
  end interface

  !> Gives memory back that came from fmpl_alloc. No request may still use it.
  !! @param ptr what fmpl_alloc gave.
  !! @param ier the return code.
  interface
    subroutine fmpl_free(ptr, ier) bind(C, name="fmpl_free_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: ptr
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_free
  end interface

  ! ---- Errors and version ----------------------------------------------------------------------------------

  !> What an error code means, in a few words; padded with blanks.
  !! @param code an error code.
  !! @param text set to its meaning.
  !! @param ier always FMPL_SUCCESS.
  interface
    subroutine fmpl_strerror(code, text, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: code
      character(len=*), intent(out) :: text
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_strerror
  end interface

  !> What went wrong in the last call of this thread that failed; padded with blanks, blank when none has.
  !! @param text set to the text.
  !! @param ier always FMPL_SUCCESS.
  interface
    subroutine fmpl_last_error(text, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      character(len=*), intent(out) :: text
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_last_error
  end interface

  !> The version of the library that is running: 10000 * major + 100 * minor + patch.
  !! @param version set to it.
  !! @param ier always FMPL_SUCCESS.
  interface
    subroutine fmpl_version(version, ier) bind(C, name="fmpl_version_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: version
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_version
  end interface

  ! ---- Ranks from outside ----------------------------------------------------------------------------------

  !> Joins a job as fmpl_init does, with ranks of the program's own and an allgather of its own. All ranks
  !! call it.
  !! the exchange is a subroutine (mine, all, bytes, ier) with INTEGER bytes and ier, which it sets to 0 when
  !! all went well. What else it needs is in its module.
  !! @param rank this process's rank, 0 to size - 1.
  !! @param size the number of ranks.
  !! @param exchange the allgather. It is called within this call only, by the calling thread, equally often
  !!     and with equal sizes on all ranks (twice, with some hundred bytes). What it returns, if not 0, makes
  !!     init fail on all ranks.
  !! @param state passed on to exchange.
  !! @param count the number of indices, as for fmpl_init.
  !! @param ier FMPL_SUCCESS, or: as fmpl_init; FMPL_ERR_LAUNCH when the exchange has failed on some rank, or
  !!     gives a part to another rank than it is of.
  interface
    subroutine fmpl_init_with(rank, size, exchange, count, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: rank
      integer(c_int), intent(in) :: size
      external :: exchange
      integer(c_int), intent(in) :: count
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_init_with
  end interface

  !> Makes an identifier of a job. One process does, one that will be a rank of the job, and passes it round
  !! to the others by whatever the program has; then all call fmpl_init_id. It scales: nothing is gathered. It
  !! has a secret in it: whoever gets it can join the job. The process listens from then on for the others.
  !! @param id 128 bytes of any type, such as INTEGER(8) id(16); set to the identifier.
  !! @param ier the return code.
  interface
    subroutine fmpl_id_create(id, ier) bind(C, name="fmpl_id_create_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: id
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: id
      !DIR$ IGNORE_TKR id
      type(*), dimension(*) :: id
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_id_create
  end interface

  !> Joins the job of an identifier as fmpl_init does. All its ranks call it, the one that has made it among
  !! them.
  !! @param id the identifier, the same for all.
  !! @param rank this process's rank, 0 to size - 1.
  !! @param size the number of ranks.
  !! @param count the number of indices, as for fmpl_init.
  !! @param ier FMPL_SUCCESS, or: as fmpl_init; FMPL_ERR_ARGUMENT when it is no identifier, or no rank of so
  !!     many.
  interface
    subroutine fmpl_init_id(id, rank, size, count, ier) bind(C, name="fmpl_init_id_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: id
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: id
      !DIR$ IGNORE_TKR id
      type(*), dimension(*), intent(in) :: id
      integer(c_int), intent(in) :: rank
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: count
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_init_id
  end interface

  ! ---- Shared windows --------------------------------------------------------------------------------------

  !> Allocates memory for each rank of a communicator, side by side in the order of the ranks, which all of
  !! them read and write as their own. All ranks of the communicator call it, and are on one node. When what
  !! is written is there for others, they settle between them, by messages or a barrier.
  !! @param size bytes of this rank's part; each may have another. The first part is aligned to 64 bytes, to a
  !!     page from 4096 bytes in all; each begins where the one before ends.
  !! @param comm the communicator.
  !! @param mine set to where this rank's part begins.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM also when a rank is on another node (fmpl_comm_split_node
  !!     makes a communicator of one); FMPL_ERR_MEMORY; FMPL_ERR_PEER when a rank has died.
  interface fmpl_shared_alloc
    subroutine fmpl_shared_alloc(size, comm, mine, ier) bind(C, name="fmpl_shared_alloc_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: comm
      type(c_ptr), intent(out) :: mine
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_shared_alloc
    subroutine fmpl_shared_alloc8(size, comm, mine, ier) bind(C, name="fmpl_shared_alloc8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: comm
      type(c_ptr), intent(out) :: mine
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_shared_alloc8
  end interface

  !> Where another rank's part of a shared window lies in this process. Waits for nobody.
  !! @param mine what fmpl_shared_alloc has set.
  !! @param rank a rank of the communicator.
  !! @param at set to where its part begins.
  !! @param size set to its bytes; FMPL_NULL: nobody wants to know.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when no part of this rank's begins at mine, and for a
  !!     FMPL_NULL pointer; FMPL_ERR_RANK.
  interface fmpl_shared_query
    subroutine fmpl_shared_query(mine, rank, at, size, ier) bind(C, name="fmpl_shared_query_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: mine
      integer(c_int), intent(in) :: rank
      type(c_ptr), intent(out) :: at
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_shared_query
    subroutine fmpl_shared_query8(mine, rank, at, size, ier) bind(C, name="fmpl_shared_query8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: mine
      integer(c_int), intent(in) :: rank
      type(c_ptr), intent(out) :: at
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_shared_query8
  end interface

  !> Gives the memory of a shared window back. All ranks of the communicator call it; afterwards none uses the
  !! memory.
  !! @param mine what fmpl_shared_alloc has set.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when no part of this rank's begins there, or when another
  !!     rank gives another window back; FMPL_ERR_COMM when the communicator has been freed; then the window
  !!     is as it was. FMPL_ERR_PEER when a rank has died: then nobody may use it any more, and the memory
  !!     goes with the job at the latest.
  interface
    subroutine fmpl_shared_free(mine, ier) bind(C, name="fmpl_shared_free_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: mine
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_shared_free
  end interface

  ! ---- Communicators ---------------------------------------------------------------------------------------

  !> Makes communicators of the ranks of the world; all of them call it. Those with equal keys form one
  !! communicator, in the order of their ranks in the world. Messages of different communicators never mix, on
  !! equal indices either.
  !! @param comm set to the communicator, or to FMPL_COMM_NULL where the key is negative.
  !! @param key 0 or more: which communicator; negative: none.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a FMPL_NULL pointer, or when other ranks call another
  !!     function; FMPL_ERR_PEER when a rank has died or left; FMPL_ERR_MEMORY (the most is 4095 at a time);
  !!     FMPL_ERR_BUSY when another thread is in such a call.
  interface
    subroutine fmpl_comm_create(comm, key, ier) bind(C, name="fmpl_comm_create_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: comm
      integer(c_int), intent(in) :: key
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_create
  end interface

  !> Makes communicators of the ranks of a communicator; all of them call it. Those with equal colours form
  !! one, ordered by order and, where that is equal, by their ranks in comm.
  !! @param comm the communicator to split.
  !! @param colour 0 or more: which communicator; negative: none.
  !! @param order where in it.
  !! @param newcomm set to the communicator, or to FMPL_COMM_NULL where the colour is negative.
  !! @param ier FMPL_SUCCESS, or: as fmpl_comm_create; FMPL_ERR_COMM.
  interface
    subroutine fmpl_comm_split(comm, colour, order, newcomm, ier) bind(C, name="fmpl_comm_split_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(in) :: colour
      integer(c_int), intent(in) :: order
      integer(c_int), intent(out) :: newcomm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_split
  end interface

  !> Makes a communicator of the ranks of each node, which share memory; all ranks of the communicator call
  !! it.
  !! @param comm the communicator to split.
  !! @param order where in the new one; where it is equal the ranks in comm decide.
  !! @param newcomm set to that of this rank's node.
  !! @param ier FMPL_SUCCESS, or: as fmpl_comm_split.
  interface
    subroutine fmpl_comm_split_node(comm, order, newcomm, ier) bind(C, name="fmpl_comm_split_node_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(in) :: order
      integer(c_int), intent(out) :: newcomm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_split_node
  end interface

  !> Makes a communicator of the same ranks in the same order, with indices of its own; all of them call it.
  !! @param comm the communicator.
  !! @param newcomm set to the new one.
  !! @param ier FMPL_SUCCESS, or: as fmpl_comm_split.
  interface
    subroutine fmpl_comm_dup(comm, newcomm, ier) bind(C, name="fmpl_comm_dup_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: newcomm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_dup
  end interface

  !> Makes a communicator of some ranks of a communicator, in the order of the list; they alone call it, all
  !! with the same list. The others know nothing of it, and may be dead: so those who live go on without the
  !! dead.
  !! an array of INTEGER.
  !! @param comm the communicator that has them.
  !! @param ranks their ranks there, each once.
  !! @param n how many they are, 1 or more.
  !! @param newcomm set to the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a FMPL_NULL pointer, or when the list has no rank, one
  !!     twice, not the caller, or others than another rank's; FMPL_ERR_RANK; FMPL_ERR_COMM; FMPL_ERR_PEER
  !!     when one of them has died or left; FMPL_ERR_MEMORY, FMPL_ERR_BUSY as fmpl_comm_create.
  interface
    subroutine fmpl_comm_group_create(comm, ranks, n, newcomm, ier) bind(C, name="fmpl_comm_group_create_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), dimension(*), intent(in) :: ranks
      integer(c_int), intent(in) :: n
      integer(c_int), intent(out) :: newcomm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_group_create
  end interface

  !> Frees a communicator. Each of its ranks does so, when it likes: nobody is waited for. What this rank has
  !! sent before can still be received by ranks that have not freed theirs; what it has not received is lost.
  !! No thread may be in another call on it.
  !! @param comm the communicator; set to FMPL_COMM_NULL.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM (also for FMPL_COMM_WORLD); FMPL_ERR_BUSY naming a request
  !!     that is not completed, or a multicast with a ticket that is not complete, and then nothing is freed.
  interface
    subroutine fmpl_comm_free(comm, ier) bind(C, name="fmpl_comm_free_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_free
  end interface

  !> Which rank of one communicator a rank of another is.
  !! @param from a communicator.
  !! @param rank a rank of it, or FMPL_PROC_NULL.
  !! @param to another communicator.
  !! @param result set to the rank in to of the same process, or to FMPL_PROC_NULL if it is no member.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM, FMPL_ERR_RANK.
  interface
    subroutine fmpl_comm_translate(from, rank, to, result, ier) bind(C, name="fmpl_comm_translate_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: from
      integer(c_int), intent(in) :: rank
      integer(c_int), intent(in) :: to
      integer(c_int), intent(out) :: result
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_translate
  end interface

  !> Gives a communicator a name, which stands behind its number in errors, in reports of stalls and of
  !! events. Each rank does so for itself, when it likes.
  !! Blanks at the end do not count.
  !! @param comm the communicator.
  !! @param name its name.
  !! @param ier the return code.
  interface
    subroutine fmpl_comm_set_name(comm, name, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      character(len=*), intent(in) :: name
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_set_name
  end interface

  !> What this rank has named a communicator.
  !! padded with blanks, blank when it has none.
  !! @param comm the communicator.
  !! @param name set to its name.
  !! @param ier the return code.
  interface
    subroutine fmpl_comm_name(comm, name, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      character(len=*), intent(out) :: name
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_comm_name
  end interface

  ! ---- Sub-matrices and lists ------------------------------------------------------------------------------

  !> Sends the runs of a block: fmpl_send for a sub-matrix, with no copy where the fabric can gather and
  !! scatter.
  !! the shape is three INTEGER(8).
  !! @param buf the first element of the first run.
  !! @param run bytes in a run.
  !! @param count number of runs.
  !! @param stride bytes from the beginning of a run to that of the next; may be negative.
  !! @param dst the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_send_block(buf, run, count, stride, dst, mai, comm, ier) bind(C, name="fmpl_send_block_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: run
      integer(c_int64_t), intent(in) :: count
      integer(c_int64_t), intent(in) :: stride
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_block
  end interface

  !> Begins to send the runs of a block: fmpl_isend for a sub-matrix, with no copy where the fabric can gather
  !! and scatter.
  !! the shape is three INTEGER(8).
  !! @param buf the first element of the first run.
  !! @param run bytes in a run.
  !! @param count number of runs.
  !! @param stride bytes from the beginning of a run to that of the next; may be negative.
  !! @param dst the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_isend_block(buf, run, count, stride, dst, mai, comm, ier) bind(C, name="fmpl_isend_block_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int64_t), intent(in) :: run
      integer(c_int64_t), intent(in) :: count
      integer(c_int64_t), intent(in) :: stride
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_block
  end interface

  !> Receives into the runs of a block: fmpl_recv for a sub-matrix, with no copy where the fabric can gather
  !! and scatter.
  !! the shape is three INTEGER(8).
  !! @param buf the first element of the first run.
  !! @param run bytes in a run.
  !! @param count number of runs.
  !! @param stride bytes from the beginning of a run to that of the next; may be negative.
  !! @param src the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_recv_block(buf, run, count, stride, src, mai, comm, ier) bind(C, name="fmpl_recv_block_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: run
      integer(c_int64_t), intent(in) :: count
      integer(c_int64_t), intent(in) :: stride
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_block
  end interface

  !> Begins to receive into the runs of a block: fmpl_irecv for a sub-matrix, with no copy where the fabric
  !! can gather and scatter.
  !! the shape is three INTEGER(8).
  !! @param buf the first element of the first run.
  !! @param run bytes in a run.
  !! @param count number of runs.
  !! @param stride bytes from the beginning of a run to that of the next; may be negative.
  !! @param src the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_irecv_block(buf, run, count, stride, src, mai, comm, ier) bind(C, name="fmpl_irecv_block_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int64_t), intent(in) :: run
      integer(c_int64_t), intent(in) :: count
      integer(c_int64_t), intent(in) :: stride
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_block
  end interface

  !> Sends the pieces of a list: fmpl_send for triangles and the like.
  !! the pieces are given by their distances from base.
  !! @param base what the distances count from.
  !! @param displ for each piece its distance from base in bytes; may be negative.
  !! @param lens for each piece its bytes.
  !! @param n number of pieces. The two arrays are read during the call only.
  !! @param dst the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_send_list(base, displ, lens, n, dst, mai, comm, ier) bind(C, name="fmpl_send_list_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DIR$ IGNORE_TKR base
      type(*), dimension(*), intent(in) :: base
      integer(c_int64_t), dimension(*), intent(in) :: displ
      integer(c_int64_t), dimension(*), intent(in) :: lens
      integer(c_int), intent(in) :: n
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_list
  end interface

  !> Begins to send the pieces of a list: fmpl_isend for triangles and the like.
  !! the pieces are given by their distances from base.
  !! @param base what the distances count from.
  !! @param displ for each piece its distance from base in bytes; may be negative.
  !! @param lens for each piece its bytes.
  !! @param n number of pieces. The two arrays are read during the call only.
  !! @param dst the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_isend_list(base, displ, lens, n, dst, mai, comm, ier) bind(C, name="fmpl_isend_list_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DIR$ IGNORE_TKR base
      type(*), dimension(*), intent(in), asynchronous :: base
      integer(c_int64_t), dimension(*), intent(in) :: displ
      integer(c_int64_t), dimension(*), intent(in) :: lens
      integer(c_int), intent(in) :: n
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_list
  end interface

  !> Receives into the pieces of a list: fmpl_recv for triangles and the like.
  !! the pieces are given by their distances from base.
  !! @param base what the distances count from.
  !! @param displ for each piece its distance from base in bytes; may be negative.
  !! @param lens for each piece its bytes.
  !! @param n number of pieces. The two arrays are read during the call only.
  !! @param src the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_recv_list(base, displ, lens, n, src, mai, comm, ier) bind(C, name="fmpl_recv_list_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DIR$ IGNORE_TKR base
      type(*), dimension(*) :: base
      integer(c_int64_t), dimension(*), intent(in) :: displ
      integer(c_int64_t), dimension(*), intent(in) :: lens
      integer(c_int), intent(in) :: n
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_list
  end interface

  !> Begins to receive into the pieces of a list: fmpl_irecv for triangles and the like.
  !! the pieces are given by their distances from base.
  !! @param base what the distances count from.
  !! @param displ for each piece its distance from base in bytes; may be negative.
  !! @param lens for each piece its bytes.
  !! @param n number of pieces. The two arrays are read during the call only.
  !! @param src the peer's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface
    subroutine fmpl_irecv_list(base, displ, lens, n, src, mai, comm, ier) bind(C, name="fmpl_irecv_list_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: base
      !DIR$ IGNORE_TKR base
      type(*), dimension(*), asynchronous :: base
      integer(c_int64_t), dimension(*), intent(in) :: displ
      integer(c_int64_t), dimension(*), intent(in) :: lens
      integer(c_int), intent(in) :: n
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_list
  end interface

  ! ---- Messages of any source ------------------------------------------------------------------------------

  !> Sends size bytes to index mai of rank dst, to be received by whoever receives from any source there.
  !! These indices have nothing to do with those of indexed messages. The receiver has room for a number of
  !! messages that does not depend on how many send (FMPL_ANY_SLOTS, 512 without it; fmpl_recv_any_limit);
  !! when they are all taken the send waits. Messages of one sender to one (receiver, index, communicator)
  !! arrive in order. Any number of threads may send at once.
  !! Returns when buf may be written again: a message of up to 1 KiB is then at the receiver, a longer one has
  !! been fetched by it or, after the time-out of fmpl_sendbuf_set, is in the spool. In synchronous mode, when
  !! it is received.
  !! @param buf the message; may be FMPL_NULL when size is 0.
  !! @param size bytes; there is no upper bound but memory.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index, 0 to count - 1 of the smaller count of the two ranks.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM,
  !!     FMPL_ERR_SPOOL_FULL (time-out 0 only: no room at the receiver or in the spool, nothing was sent),
  !!     FMPL_ERR_PEER (the receiver has died or left, or has freed the communicator, where this would wait
  !!     for it).
  interface fmpl_send_any
    subroutine fmpl_send_any(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_any
    subroutine fmpl_send_any8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_any8
  end interface

  !> Receives the next message on index mai, whoever sends it.
  !! @param buf where it goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_recv_any_from.
  interface fmpl_recv_any
    subroutine fmpl_recv_any(buf, size, mai, comm, ier) bind(C, name="fmpl_recv_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any
    subroutine fmpl_recv_any8(buf, size, mai, comm, ier) bind(C, name="fmpl_recv_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any8
  end interface

  !> Begins to send to a receiver of any source. The buffer must stay unchanged until fmpl_isend_any_wait or
  !! fmpl_isend_any_test has completed the request; (dst, mai, comm) names it.
  !! @param buf the message; may be FMPL_NULL when size is 0.
  !! @param size bytes.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_send_any; FMPL_ERR_BUSY when such a request is not completed.
  interface fmpl_isend_any
    subroutine fmpl_isend_any(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_isend_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_any
    subroutine fmpl_isend_any8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_isend_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_any8
  end interface

  !> Begins to receive from any source. The buffer must not be touched until fmpl_irecv_any_wait or
  !! fmpl_irecv_any_test has completed the request, or fmpl_irecv_any_cancel has withdrawn it; (mai, comm)
  !! names it.
  !! @param buf where the message goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY.
  interface fmpl_irecv_any
    subroutine fmpl_irecv_any(buf, size, mai, comm, ier) bind(C, name="fmpl_irecv_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any
    subroutine fmpl_irecv_any8(buf, size, mai, comm, ier) bind(C, name="fmpl_irecv_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), asynchronous :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any8
  end interface

  !> Receives the next message on index mai, whoever sends it, and tells who did and how long it is.
  !! @param buf where it goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param src set to the sender's rank.
  !! @param received set to the message's length in bytes, which is more than size when it was truncated.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE (the message was longer; its first size bytes are in buf),
  !!     FMPL_ERR_ARGUMENT, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY (another thread receives there, or an
  !!     irecv_any is not completed), FMPL_ERR_PEER: a rank has died, which a waiting receive tells once on
  !!     each index; later receives go on with the others.
  interface fmpl_recv_any_from
    subroutine fmpl_recv_any_from(buf, size, mai, comm, src, received, ier) bind(C, name="fmpl_recv_any_from_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any_from
    subroutine fmpl_recv_any_from8(buf, size, mai, comm, src, received, ier) bind(C, name="fmpl_recv_any_from8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int64_t), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any_from8
  end interface

  !> Waits until the message of the irecv_any on (mai, comm) is in its buffer.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param src set to the sender's rank.
  !! @param received set to the message's length in bytes.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as
  !!     fmpl_recv_any_from, and the request is over.
  interface fmpl_irecv_any_wait
    subroutine fmpl_irecv_any_wait(mai, comm, src, received, ier) bind(C, name="fmpl_irecv_any_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any_wait
    subroutine fmpl_irecv_any_wait8(mai, comm, src, received, ier) bind(C, name="fmpl_irecv_any_wait8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int64_t), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any_wait8
  end interface

  !> Completes the irecv_any on (mai, comm) if its message is there.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param src set to the sender's rank when done is 1.
  !! @param received set to the message's length in bytes when done is 1.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv_any_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface fmpl_irecv_any_test
    subroutine fmpl_irecv_any_test(mai, comm, done, src, received, ier) bind(C, name="fmpl_irecv_any_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any_test
    subroutine fmpl_irecv_any_test8(mai, comm, done, src, received, ier) bind(C, name="fmpl_irecv_any_test8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: src
      integer(c_int64_t), intent(out) :: received
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any_test8
  end interface

  !> Looks whether a receive from any source would find a message now, from whom, and how long it is. Takes
  !! nothing.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param there set to 1 or 0.
  !! @param src set to the sender's rank when it is there.
  !! @param size set to the message's length in bytes when it is there, else to 0.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY; FMPL_ERR_ARGUMENT when there
  !!     is FMPL_NULL.
  interface fmpl_probe_any
    subroutine fmpl_probe_any(mai, comm, there, src, size, ier) bind(C, name="fmpl_probe_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: there
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_probe_any
    subroutine fmpl_probe_any8(mai, comm, there, src, size, ier) bind(C, name="fmpl_probe_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: there
      integer(c_int), intent(out) :: src
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_probe_any8
  end interface

  !> Waits until the buffer of the isend_any to (dst, mai, comm) may be written again.
  !! @param dst the receiver's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_send_any.
  interface
    subroutine fmpl_isend_any_wait(dst, mai, comm, ier) bind(C, name="fmpl_isend_any_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_any_wait
  end interface

  !> Completes the isend_any to (dst, mai, comm) if that needs no waiting.
  !! @param dst the receiver's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_isend_any_wait.
  interface
    subroutine fmpl_isend_any_test(dst, mai, comm, done, ier) bind(C, name="fmpl_isend_any_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_isend_any_test
  end interface

  !> Withdraws the irecv_any on (mai, comm), unless a message is already on its way into the buffer.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param cancelled set to 1: the buffer is the caller's again; or to 0: too late, complete the request as
  !!     usual.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request.
  interface
    subroutine fmpl_irecv_any_cancel(mai, comm, cancelled, ier) bind(C, name="fmpl_irecv_any_cancel_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: cancelled
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_any_cancel
  end interface

  !> Limits how many messages to index mai of this rank may be outstanding, that is, sent and not yet
  !! received. Senders beyond wait. May be changed at any time.
  !! @param most the limit; 0: as many as there is room for, which is also the most (FMPL_ANY_SLOTS).
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative limit, FMPL_ERR_INDEX, FMPL_ERR_COMM.
  interface
    subroutine fmpl_recv_any_limit(most, mai, comm, ier) bind(C, name="fmpl_recv_any_limit_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: most
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any_limit
  end interface

  ! ---- Multicast to a group chosen for each message --------------------------------------------------------

  !> Sends size bytes to the ranks whose bits are set. The group is chosen anew for each call; nobody else
  !! takes part, and no communicator is made. The caller, the master, sends one message, to the member of the
  !! lowest rank; the members pass the news on by a binomial tree and take the data out of the master's memory
  !! by themselves. Each member calls fmpl_mcast_recv. Any number of multicasts to different groups may be
  !! under way; those of one master may arrive in another order when the groups differ.
  !! the bitmap is an array of INTEGER(8), and there is always a ticket.
  !! @param buf the message; must stay unchanged until the ticket is complete.
  !! @param size bytes.
  !! @param members the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
  !! @param comm the communicator.
  !! @param ticket set to a number by which fmpl_mcast_wait and fmpl_mcast_test know this multicast.
  !! @param ier the return code.
  interface fmpl_mcast
    subroutine fmpl_mcast(buf, size, members, comm, ticket, ier) bind(C, name="fmpl_mcast_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast
    subroutine fmpl_mcast8(buf, size, members, comm, ticket, ier) bind(C, name="fmpl_mcast8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast8
  end interface

  !> Receives the next multicast of which this rank is a member.
  !! @param buf where it goes; may be FMPL_NULL when capacity is 0.
  !! @param capacity bytes of room.
  !! @param comm the communicator.
  !! @param size set to the message's length in bytes, which is more than capacity when it was truncated.
  !! @param master set to the rank that has sent it.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE, FMPL_ERR_ARGUMENT, FMPL_ERR_COMM, FMPL_ERR_BUSY (another
  !!     thread receives multicasts, or a request is not completed), FMPL_ERR_PEER: a rank has died, as for
  !!     fmpl_recv_any_from, or a multicast was given up.
  interface fmpl_mcast_recv
    subroutine fmpl_mcast_recv(buf, capacity, comm, size, master, ier) bind(C, name="fmpl_mcast_recv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: capacity
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_recv
    subroutine fmpl_mcast_recv8(buf, capacity, comm, size, master, ier) bind(C, name="fmpl_mcast_recv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: capacity
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_recv8
  end interface

  !> Receives the next message on index mai, whoever sends it, or the next multicast of which this rank is a
  !! member, whichever comes first: for a worker that gets tasks of its own, and is a member of groups that it
  !! does not know beforehand. Where both are there each has its turn.
  !! @param buf where it goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param src set to the rank that has sent it, of a multicast its master.
  !! @param received set to the message's length in bytes, which is more than size when it was truncated.
  !! @param is_mcast set to 1 for a multicast, to 0 for a message.
  !! @param ier FMPL_SUCCESS, or: as fmpl_recv_any_from and as fmpl_mcast_recv; a death is told once for both.
  interface fmpl_recv_any_or_mcast
    subroutine fmpl_recv_any_or_mcast(buf, size, mai, comm, src, received, is_mcast, ier) bind(C, name="fmpl_recv_any_or_mcast_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: received
      integer(c_int), intent(out) :: is_mcast
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any_or_mcast
    subroutine fmpl_recv_any_or_mcast8(buf, size, mai, comm, src, received, is_mcast, ier) &
        bind(C, name="fmpl_recv_any_or_mcast8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int64_t), intent(out) :: received
      integer(c_int), intent(out) :: is_mcast
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_any_or_mcast8
  end interface

  !> Begins to receive the next multicast of which this rank is a member. The buffer must not be touched until
  !! fmpl_mcast_irecv_wait or fmpl_mcast_irecv_test has completed the request, or fmpl_mcast_irecv_cancel has
  !! withdrawn it. Members further down the tree wait for that.
  !! @param buf where it goes; may be FMPL_NULL when capacity is 0.
  !! @param capacity bytes of room.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_COMM, FMPL_ERR_BUSY.
  interface fmpl_mcast_irecv
    subroutine fmpl_mcast_irecv(buf, capacity, comm, ier) bind(C, name="fmpl_mcast_irecv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: capacity
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv
    subroutine fmpl_mcast_irecv8(buf, capacity, comm, ier) bind(C, name="fmpl_mcast_irecv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: capacity
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv8
  end interface

  !> Waits for the multicast of fmpl_mcast_irecv.
  !! @param comm the communicator.
  !! @param size set to the message's length in bytes.
  !! @param master set to the rank that has sent it.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as
  !!     fmpl_mcast_recv, and the request is over.
  interface fmpl_mcast_irecv_wait
    subroutine fmpl_mcast_irecv_wait(comm, size, master, ier) bind(C, name="fmpl_mcast_irecv_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv_wait
    subroutine fmpl_mcast_irecv_wait8(comm, size, master, ier) bind(C, name="fmpl_mcast_irecv_wait8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv_wait8
  end interface

  !> Completes the request of fmpl_mcast_irecv if its multicast is there.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param size set to the message's length in bytes when done is 1.
  !! @param master set to the rank that has sent it when done is 1.
  !! @param ier FMPL_SUCCESS, or: as fmpl_mcast_irecv_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface fmpl_mcast_irecv_test
    subroutine fmpl_mcast_irecv_test(comm, done, size, master, ier) bind(C, name="fmpl_mcast_irecv_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv_test
    subroutine fmpl_mcast_irecv_test8(comm, done, size, master, ier) bind(C, name="fmpl_mcast_irecv_test8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(out) :: master
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv_test8
  end interface

  !> Waits until every member of a multicast has its data; the buffer may then be changed.
  !! @param ticket what fmpl_mcast gave.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_PEER when a member has died or, on this node, freed the
  !!     communicator without: the multicast is given up, its ticket is over, and members that have not begun
  !!     to receive it get FMPL_ERR_PEER; FMPL_ERR_REQUEST for what is no ticket.
  interface
    subroutine fmpl_mcast_wait(ticket, ier) bind(C, name="fmpl_mcast_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_wait
  end interface

  !> Tells whether every member of a multicast has its data.
  !! @param ticket what fmpl_mcast gave.
  !! @param done set to 1 or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_mcast_wait.
  interface
    subroutine fmpl_mcast_test(ticket, done, ier) bind(C, name="fmpl_mcast_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ticket
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_test
  end interface

  !> Withdraws the request of fmpl_mcast_irecv: the buffer is the caller's again.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; FMPL_ERR_COMM.
  interface
    subroutine fmpl_mcast_irecv_cancel(comm, ier) bind(C, name="fmpl_mcast_irecv_cancel_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_irecv_cancel
  end interface

  ! ---- Prepared messages -----------------------------------------------------------------------------------

  !> Prepares a send that is begun over and over with the same buffer, by fmpl_send_start; what was prepared
  !! on this (peer, index) before is forgotten. Nothing is sent, and the buffer may be changed until a start.
  !! It meets the peer, as the first message does.
  !! @param buf the message of every start; may be FMPL_NULL when size is 0.
  !! @param size bytes.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator; what is prepared on it ends with it.
  !! @param ier FMPL_SUCCESS, or: as fmpl_isend.
  interface fmpl_send_init
    subroutine fmpl_send_init(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_init_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_init
    subroutine fmpl_send_init8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_init8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_init8
  end interface

  !> Prepares a receive that is begun over and over with the same buffer, by fmpl_recv_start; what was
  !! prepared on this (peer, index) before is forgotten. Nothing is received, and the buffer may be used until
  !! a start.
  !! @param buf where the message of every start goes; may be FMPL_NULL when size is 0.
  !! @param size bytes of room.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index; not FMPL_INDEX_ANY.
  !! @param comm the communicator; what is prepared on it ends with it.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv.
  interface fmpl_recv_init
    subroutine fmpl_recv_init(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv_init_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_init
    subroutine fmpl_recv_init8(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv_init8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_init8
  end interface

  !> Begins the send that is prepared. From here on it is a request as that of fmpl_isend, and completed as
  !! that; then it can be started again.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_isend; FMPL_ERR_REQUEST when nothing is prepared.
  interface
    subroutine fmpl_send_start(dst, mai, comm, ier) bind(C, name="fmpl_send_start_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_start
  end interface

  !> Begins the receive that is prepared. From here on it is a request as that of fmpl_irecv, and completed or
  !! withdrawn as that; then it can be started again.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv; FMPL_ERR_REQUEST when nothing is prepared.
  interface
    subroutine fmpl_recv_start(src, mai, comm, ier) bind(C, name="fmpl_recv_start_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_start
  end interface

  ! ---- Several requests at a time --------------------------------------------------------------------------

  !> Waits until all of several requests are over, whatever becomes of each. Of a request that is over kind is
  !! FMPL_REQUEST_NONE; of a receive, peer, index and ticket are the message's source, index and bytes.
  !! @param requests which; those of kind FMPL_REQUEST_NONE are over.
  !! @param n their number.
  !! @param codes set to what the call that completes each alone would return, but for those that are over
  !!     already.
  !! @param ier FMPL_SUCCESS, or: the code of the first that failed, which after FMPL_ERR_BUSY (another thread
  !!     completes it) is not over; FMPL_ERR_ARGUMENT for a negative number, no requests, or a kind that there
  !!     is not.
  interface
    subroutine fmpl_waitall(requests, n, codes, ier) bind(C, name="fmpl_waitall_")
      import :: c_int, c_int64_t, c_ptr, c_double, fmpl_request
      type(fmpl_request), dimension(*), intent(inout) :: requests
      integer(c_int), intent(in) :: n
      integer(c_int), dimension(*), intent(inout) :: codes
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_waitall
  end interface

  !> Completes those of several requests that need no waiting, and says whether that leaves none.
  !! @param requests as for fmpl_waitall.
  !! @param n their number.
  !! @param done set to 1 when all are over, else to 0.
  !! @param codes set for those that this call has completed, as by fmpl_waitall.
  !! @param ier FMPL_SUCCESS, or: as fmpl_waitall.
  interface
    subroutine fmpl_testall(requests, n, done, codes, ier) bind(C, name="fmpl_testall_")
      import :: c_int, c_int64_t, c_ptr, c_double, fmpl_request
      type(fmpl_request), dimension(*), intent(inout) :: requests
      integer(c_int), intent(in) :: n
      integer(c_int), intent(out) :: done
      integer(c_int), dimension(*), intent(inout) :: codes
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_testall
  end interface

  !> Waits until one of several requests is over, whichever.
  !! places count from 1, and 0 means that all are over already.
  !! @param requests which; those of kind FMPL_REQUEST_NONE are over.
  !! @param n their number.
  !! @param which set to the place of the one that is over.
  !! @param ier the return code.
  interface
    subroutine fmpl_waitany(requests, n, which, ier) bind(C, name="fmpl_waitany_")
      import :: c_int, c_int64_t, c_ptr, c_double, fmpl_request
      type(fmpl_request), dimension(*), intent(inout) :: requests
      integer(c_int), intent(in) :: n
      integer(c_int), intent(out) :: which
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_waitany
  end interface

  !> Waits until one of several requests is over, and completes all that are over then.
  !! places count from 1.
  !! @param requests which; those of kind FMPL_REQUEST_NONE are over.
  !! @param n their number.
  !! @param count set to how many this call has completed.
  !! @param which set to their places; room for n.
  !! @param codes set to the code of each of these, in the same order.
  !! @param ier the return code.
  interface
    subroutine fmpl_waitsome(requests, n, count, which, codes, ier) bind(C, name="fmpl_waitsome_")
      import :: c_int, c_int64_t, c_ptr, c_double, fmpl_request
      type(fmpl_request), dimension(*), intent(inout) :: requests
      integer(c_int), intent(in) :: n
      integer(c_int), intent(out) :: count
      integer(c_int), dimension(*), intent(inout) :: which
      integer(c_int), dimension(*), intent(inout) :: codes
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_waitsome
  end interface

  ! ---- Messages that are handed over -----------------------------------------------------------------------

  !> Memory to fill and to hand over: a *loan*. On a node its receiver gets this memory itself, so that a
  !! message of any length costs little more than one of 8 bytes. Aligned to 64 bytes, to a page from 4096
  !! bytes on; its contents are not defined. It is the caller's until fmpl_send_loan or fmpl_loan_return; not
  !! for fmpl_free.
  !! @param size bytes; 0 is fine.
  !! @param buf set to its beginning.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_MEMORY when as many loans or bytes are out as FMPL_LOANS allows.
  interface fmpl_loan
    subroutine fmpl_loan(size, buf, ier) bind(C, name="fmpl_loan_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: size
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_loan
    subroutine fmpl_loan8(size, buf, ier) bind(C, name="fmpl_loan8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: size
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_loan8
  end interface

  !> Hands a loan over to index mai of rank dst, and returns at once, in all modes of sending: it waits for no
  !! receive, and its bytes need no room in the spool. It is the receiver's from then on; the caller may
  !! neither read nor write it. To an ordinary receive it is a message like any other, and is copied there. To
  !! a rank on another node its bytes are sent as by fmpl_send.
  !! @param buf the beginning of a loan from fmpl_loan.
  !! @param size bytes of the message, no more than the loan has.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when buf is not the beginning of a loan, or the loan is
  !!     shorter, was received, was handed over or returned before; otherwise as fmpl_send. On an error the
  !!     loan, if it was one to send, is still the caller's.
  interface fmpl_send_loan
    subroutine fmpl_send_loan(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_loan_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_loan
    subroutine fmpl_send_loan8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_loan8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_loan8
  end interface

  !> Receives the next message on index mai from rank src in place: sets buf to memory that may be read, and
  !! not written, until fmpl_loan_return. It stays readable when its owner has ended. A message that was not
  !! handed over is copied into a loan of this rank's. Every loan received is to be returned before
  !! fmpl_finalize.
  !! @param buf set to its first byte; FMPL_NULL from FMPL_PROC_NULL.
  !! @param size set to its length in bytes.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index; not FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_MEMORY when a message has to be copied and there is no loan for it:
  !!     it waits for the next receive; otherwise as fmpl_recv.
  interface fmpl_recv_loan
    subroutine fmpl_recv_loan(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv_loan_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_loan
    subroutine fmpl_recv_loan8(buf, size, src, mai, comm, ier) bind(C, name="fmpl_recv_loan8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_loan8
  end interface

  !> Begins what fmpl_recv_loan does. fmpl_irecv_cancel withdraws it.
  !! @param src the sender's rank, or FMPL_PROC_NULL.
  !! @param mai the index; not FMPL_TAG_ANY.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv.
  interface
    subroutine fmpl_irecv_loan(src, mai, comm, ier) bind(C, name="fmpl_irecv_loan_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan
  end interface

  !> Waits until the message of the fmpl_irecv_loan on (src, mai, comm) is there.
  !! @param buf as for fmpl_recv_loan.
  !! @param size as for fmpl_recv_loan.
  !! @param src the sender's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_recv_loan.
  !!     The request is over.
  interface fmpl_irecv_loan_wait
    subroutine fmpl_irecv_loan_wait(buf, size, src, mai, comm, ier) bind(C, name="fmpl_irecv_loan_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_wait
    subroutine fmpl_irecv_loan_wait8(buf, size, src, mai, comm, ier) bind(C, name="fmpl_irecv_loan_wait8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_wait8
  end interface

  !> Completes the fmpl_irecv_loan on (src, mai, comm) if its message is there.
  !! @param buf as for fmpl_recv_loan, when done is set to 1.
  !! @param size as for fmpl_recv_loan, when done is set to 1.
  !! @param src the sender's rank.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv_loan_wait.
  interface fmpl_irecv_loan_test
    subroutine fmpl_irecv_loan_test(buf, size, src, mai, comm, done, ier) bind(C, name="fmpl_irecv_loan_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_test
    subroutine fmpl_irecv_loan_test8(buf, size, src, mai, comm, done, ier) bind(C, name="fmpl_irecv_loan_test8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_test8
  end interface

  !> Hands one loan over to several ranks: all read the same memory, and it comes back when each has returned
  !! it. Each receives it as a message of this rank on index mai, with fmpl_recv_loan or any other receive.
  !! @param buf the beginning of a loan from fmpl_loan.
  !! @param size bytes of the message, no more than the loan has.
  !! @param members the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier the return code.
  interface fmpl_mcast_loan
    subroutine fmpl_mcast_loan(buf, size, members, mai, comm, ier) bind(C, name="fmpl_mcast_loan_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_loan
    subroutine fmpl_mcast_loan8(buf, size, members, mai, comm, ier) bind(C, name="fmpl_mcast_loan8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_loan8
  end interface

  !> Hands a loan over to index mai of rank dst, to be received by whoever receives from any source there. It
  !! needs a place at the receiver (FMPL_ANY_SLOTS), and waits for one as fmpl_send_any does.
  !! @param buf the beginning of a loan from fmpl_loan.
  !! @param size bytes of the message, no more than the loan has.
  !! @param dst the receiver's rank, or FMPL_PROC_NULL.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_send_any, and of loans as fmpl_send_loan. On an error the loan, if
  !!     it was one to send, is still the caller's.
  interface fmpl_send_loan_any
    subroutine fmpl_send_loan_any(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_loan_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_loan_any
    subroutine fmpl_send_loan_any8(buf, size, dst, mai, comm, ier) bind(C, name="fmpl_send_loan_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_send_loan_any8
  end interface

  !> Receives the next message on index mai in place, whoever sends it.
  !! @param buf as for fmpl_recv_loan.
  !! @param size as for fmpl_recv_loan.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param src set to the sender's rank.
  !! @param ier FMPL_SUCCESS, or: as fmpl_recv_any_from, and as fmpl_recv_loan.
  interface fmpl_recv_loan_any
    subroutine fmpl_recv_loan_any(buf, size, mai, comm, src, ier) bind(C, name="fmpl_recv_loan_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_loan_any
    subroutine fmpl_recv_loan_any8(buf, size, mai, comm, src, ier) bind(C, name="fmpl_recv_loan_any8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_recv_loan_any8
  end interface

  !> Begins what fmpl_recv_loan_any does. fmpl_irecv_any_cancel withdraws it.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv_any.
  interface
    subroutine fmpl_irecv_loan_any(mai, comm, ier) bind(C, name="fmpl_irecv_loan_any_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_any
  end interface

  !> Waits until a message for the fmpl_irecv_loan_any on (mai, comm) is there.
  !! @param buf as for fmpl_recv_loan.
  !! @param size as for fmpl_recv_loan.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param src set to the sender's rank.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as
  !!     fmpl_recv_loan_any. The request is over.
  interface fmpl_irecv_loan_any_wait
    subroutine fmpl_irecv_loan_any_wait(buf, size, mai, comm, src, ier) bind(C, name="fmpl_irecv_loan_any_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_any_wait
    subroutine fmpl_irecv_loan_any_wait8(buf, size, mai, comm, src, ier) bind(C, name="fmpl_irecv_loan_any_wait8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_any_wait8
  end interface

  !> Completes the fmpl_irecv_loan_any on (mai, comm) if a message is there.
  !! @param buf as for fmpl_recv_loan, when done is set to 1.
  !! @param size as for fmpl_recv_loan, when done is set to 1.
  !! @param mai the index.
  !! @param comm the communicator.
  !! @param done set to 1 or 0.
  !! @param src set to the sender's rank when done is set to 1.
  !! @param ier FMPL_SUCCESS, or: as fmpl_irecv_loan_any_wait.
  interface fmpl_irecv_loan_any_test
    subroutine fmpl_irecv_loan_any_test(buf, size, mai, comm, done, src, ier) bind(C, name="fmpl_irecv_loan_any_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_any_test
    subroutine fmpl_irecv_loan_any_test8(buf, size, mai, comm, done, src, ier) bind(C, name="fmpl_irecv_loan_any_test8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(out) :: buf
      integer(c_int64_t), intent(out) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_irecv_loan_any_test8
  end interface

  !> Returns a loan: one that was received, or one that was not sent. From any thread, in any order, also
  !! after its owner has ended. Nobody here may read it afterwards.
  !! @param buf its beginning; FMPL_NULL: nothing happens.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when this rank has no loan that begins there: it may have
  !!     been returned, or handed over, before.
  interface
    subroutine fmpl_loan_return(buf, ier) bind(C, name="fmpl_loan_return_")
      import :: c_int, c_int64_t, c_ptr, c_double
      type(c_ptr), intent(in) :: buf
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_loan_return
  end interface

  ! ---- Counters --------------------------------------------------------------------------------------------

  !> What this process has done since init, in numbers. The call takes a while: it is not meant for every
  !! message.
  !! the value is an INTEGER(8).
  !! @param which FMPL_COUNTER_*.
  !! @param value set to the counter's value.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when there is no such counter, or for a FMPL_NULL pointer.
  interface
    subroutine fmpl_counter(which, value, ier) bind(C, name="fmpl_counter_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: which
      integer(c_int64_t), intent(out) :: value
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_counter
  end interface

  ! ---- Collective calls ------------------------------------------------------------------------------------

  !> Waits until every rank of the communicator has come here.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_PEER when a rank has died or left.
  interface
    subroutine fmpl_barrier(comm, ier) bind(C, name="fmpl_barrier_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_barrier
  end interface

  !> Copies a buffer of one rank to all ranks of the communicator. As all collective calls: every rank of the
  !! communicator makes it, in the same order, one thread of each process at a time, with the same size and
  !! root; and after a rank has died every collective call of a communicator that it belongs to ends with an
  !! error.
  !! @param buf the message at the root, room for it elsewhere; may be FMPL_NULL when size is 0.
  !! @param size bytes, the same on all ranks.
  !! @param root the rank whose buffer it is.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK (the root), FMPL_ERR_COMM, FMPL_ERR_BUSY
  !!     (another collective call of this communicator is under way), FMPL_ERR_PEER (a rank has died or left).
  interface fmpl_bcast
    subroutine fmpl_bcast(buf, size, root, comm, ier) bind(C, name="fmpl_bcast_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_bcast
    subroutine fmpl_bcast8(buf, size, root, comm, ier) bind(C, name="fmpl_bcast8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_bcast8
  end interface

  !> Combines the ranks' vectors, element by element and in the order of the ranks: on the ranks of one node
  !! the root's becomes ((x0 o x1) o x2) o ..., with the same bits in every run, whatever the way; between
  !! nodes also (x0 o x1) o (x2 o x3) and the like, so the function must be associative there. The others'
  !! stay as they are.
  !! work may be FMPL_NULL.
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined, a predefined function or one that was registered.
  !! @param root the rank that gets the result.
  !! @param comm the communicator.
  !! @param work room for as many elements as buf has, which the library may use, or FMPL_NULL.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT (also for a function that is not registered),
  !!     FMPL_ERR_RANK (the root), FMPL_ERR_COMM, FMPL_ERR_BUSY, FMPL_ERR_PEER.
  interface
    subroutine fmpl_reduce(buf, count, func, root, comm, work, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DIR$ IGNORE_TKR work
      type(*), dimension(*) :: work
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_reduce
  end interface

  !> Combines the ranks' vectors as fmpl_reduce does; everybody's becomes the result, with the same bits.
  !! work may be FMPL_NULL.
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param comm the communicator.
  !! @param work room for as many elements as buf has, which the library may use, or FMPL_NULL.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce.
  interface
    subroutine fmpl_allreduce(buf, count, func, comm, work, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DIR$ IGNORE_TKR work
      type(*), dimension(*) :: work
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_allreduce
  end interface

  !> Collects a message of each rank at one rank.
  !! @param buf this rank's message; may be FMPL_NULL when size is 0. At the root it may be the place in all
  !!     where it belongs.
  !! @param size bytes, the same on all ranks.
  !! @param all at the root room for a message of each rank, which come in the order of the ranks; elsewhere
  !!     it is not looked at.
  !! @param root the rank that collects.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast.
  interface fmpl_gather
    subroutine fmpl_gather(buf, size, all, root, comm, ier) bind(C, name="fmpl_gather_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_gather
    subroutine fmpl_gather8(buf, size, all, root, comm, ier) bind(C, name="fmpl_gather8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_gather8
  end interface

  !> Collects a message of each rank at all ranks.
  !! @param buf this rank's message; may be FMPL_NULL when size is 0. It may be the place in all where it
  !!     belongs.
  !! @param size bytes, the same on all ranks.
  !! @param all room for a message of each rank, which come in the order of the ranks.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast.
  interface fmpl_allgather
    subroutine fmpl_allgather(buf, size, all, comm, ier) bind(C, name="fmpl_allgather_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_allgather
    subroutine fmpl_allgather8(buf, size, all, comm, ier) bind(C, name="fmpl_allgather8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_allgather8
  end interface

  !> Gives each rank its own message of one rank.
  !! @param all at the root a message for each rank, in the order of the ranks; elsewhere it is not looked at.
  !! @param size bytes of one message, the same on all ranks.
  !! @param buf room for this rank's message; may be FMPL_NULL when size is 0. At the root it may be the place
  !!     in all where it lies.
  !! @param root the rank that has the messages.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast.
  interface fmpl_scatter
    subroutine fmpl_scatter(all, size, buf, root, comm, ier) bind(C, name="fmpl_scatter_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_scatter
    subroutine fmpl_scatter8(all, size, buf, root, comm, ier) bind(C, name="fmpl_scatter8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_scatter8
  end interface

  !> Gives each rank its own message of each rank.
  !! @param sent a message for each rank, in the order of the ranks.
  !! @param size bytes of one message, the same on all ranks.
  !! @param received room for a message of each rank, which come in the order of the ranks; it does not
  !!     overlap with sent.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast.
  interface fmpl_alltoall
    subroutine fmpl_alltoall(sent, size, received, comm, ier) bind(C, name="fmpl_alltoall_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_alltoall
    subroutine fmpl_alltoall8(sent, size, received, comm, ier) bind(C, name="fmpl_alltoall8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_alltoall8
  end interface

  !> Combines the ranks' vectors as fmpl_reduce does; each rank gets a block of the result.
  !! @param all the vector, a block of count elements for each rank, in the order of the ranks; it is not
  !!     changed.
  !! @param buf room for this rank's block of the result; it does not overlap with all.
  !! @param count elements of a block, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce.
  interface
    subroutine fmpl_reduce_scatter(all, buf, count, func, comm, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_reduce_scatter
  end interface

  !> Combines the vectors of the ranks up to each, as fmpl_reduce does: that of rank k becomes x0 o ... o xk.
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce.
  interface
    subroutine fmpl_scan(buf, count, func, comm, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_scan
  end interface

  !> The same without this rank's own: rank k's vector becomes those of ranks 0 to k - 1, combined in this
  !! order; that of rank 0 stays.
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce.
  interface
    subroutine fmpl_exscan(buf, count, func, comm, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_exscan
  end interface

  !> Collects a message of each rank at the root, of different lengths.
  !! sizes and places are arrays of INTEGER(8), places perhaps \[FMPL_NULL\].
  !! @param buf this rank's message; may be FMPL_NULL when size is 0. At the root it may be its place in all.
  !! @param size its bytes.
  !! @param all room for all of them; only the root's is looked at.
  !! @param sizes bytes of each rank's message, which must be what it gives; only the root's are looked at.
  !! @param places where in all each belongs, in bytes; FMPL_NULL: one right behind the other.
  !! @param root the rank that gets them.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast; FMPL_ERR_ARGUMENT, at the root, when a rank gives fewer or
  !!     more bytes than that; the communicator goes on.
  interface fmpl_gatherv
    subroutine fmpl_gatherv(buf, size, all, sizes, places, root, comm, ier) bind(C, name="fmpl_gatherv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_gatherv
    subroutine fmpl_gatherv8(buf, size, all, sizes, places, root, comm, ier) bind(C, name="fmpl_gatherv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_gatherv8
  end interface

  !> Collects a message of each rank at all ranks, of different lengths.
  !! sizes and places are arrays of INTEGER(8), places perhaps \[FMPL_NULL\].
  !! @param buf this rank's message; may be FMPL_NULL when size is 0. It may be its place in all.
  !! @param size its bytes.
  !! @param all room for all of them.
  !! @param sizes bytes of each rank's message, the same on all ranks.
  !! @param places where in all each belongs, in bytes; FMPL_NULL: one right behind the other.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_gatherv.
  interface fmpl_allgatherv
    subroutine fmpl_allgatherv(buf, size, all, sizes, places, comm, ier) bind(C, name="fmpl_allgatherv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_allgatherv
    subroutine fmpl_allgatherv8(buf, size, all, sizes, places, comm, ier) bind(C, name="fmpl_allgatherv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_allgatherv8
  end interface

  !> Gives each rank its own message of the root's, of different lengths.
  !! sizes and places are arrays of INTEGER(8), places perhaps \[FMPL_NULL\].
  !! @param all the messages; only the root's are looked at.
  !! @param sizes bytes of each rank's message; only the root's are looked at.
  !! @param places where in all each lies, in bytes; FMPL_NULL: one right behind the other.
  !! @param buf room for this rank's message; may be FMPL_NULL when size is 0. At the root it may be the place
  !!     in all where it lies.
  !! @param size its bytes, which must be what the root gives.
  !! @param root the rank that has the messages.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_gatherv, at the rank that takes.
  interface fmpl_scatterv
    subroutine fmpl_scatterv(all, sizes, places, buf, size, root, comm, ier) bind(C, name="fmpl_scatterv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_scatterv
    subroutine fmpl_scatterv8(all, sizes, places, buf, size, root, comm, ier) bind(C, name="fmpl_scatterv8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int64_t), dimension(*), intent(in) :: sizes
      integer(c_int64_t), dimension(*), intent(in) :: places
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_scatterv8
  end interface

  !> Gives each rank its own message of each rank, of different lengths.
  !! sizes and places are arrays of INTEGER(8), places perhaps \[FMPL_NULL\].
  !! @param sent the messages for the ranks.
  !! @param sent_sizes bytes of each.
  !! @param sent_places where in sent each lies, in bytes; FMPL_NULL: one right behind the other.
  !! @param received room for the ranks' messages; it does not overlap with sent.
  !! @param received_sizes bytes of each, which must be what the rank gives.
  !! @param received_places where in received each belongs, in bytes; FMPL_NULL: one right behind the other.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_gatherv.
  interface
    subroutine fmpl_alltoallv(sent, sent_sizes, sent_places, received, received_sizes, received_places, comm, ier) &
        bind(C, name="fmpl_alltoallv_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), dimension(*), intent(in) :: sent_sizes
      integer(c_int64_t), dimension(*), intent(in) :: sent_places
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int64_t), dimension(*), intent(in) :: received_sizes
      integer(c_int64_t), dimension(*), intent(in) :: received_places
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_alltoallv
  end interface

  !> Combines the vectors of a group of ranks that is chosen for this one call, in the order of the ranks; the
  !! root's becomes the result, the others' stay as they are. All members of the group make the call, with the
  !! same group; nobody else takes part. Calls of one rank with others must be made in the same order by both.
  !! the bitmap is an array of INTEGER(8).
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all members.
  !! @param func how two elements are combined; it must be associative, and need not commute.
  !! @param members the group, bit r % 64 of word r / 64 for rank r; this rank and the root are among them.
  !! @param root the rank that gets the result.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_COMM, FMPL_ERR_BUSY (a collective
  !!     call is under way); FMPL_ERR_PEER, at those who wait for it, when a member has died; the communicator
  !!     can be used as before.
  interface
    subroutine fmpl_mcast_reduce(buf, count, func, members, root, comm, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_reduce
  end interface

  !> Gives each rank of a group that is chosen for this one call its own message of each. All members of the
  !! group make the call, with the same group and size; nobody else takes part. Calls of one rank with others
  !! must be made in the same order by both.
  !! the bitmap is an array of INTEGER(8).
  !! @param sent a message for each member, in the order of the ranks; may be FMPL_NULL when size is 0.
  !! @param size bytes of one message, the same on all members.
  !! @param received room for a message of each member, which come in the order of the ranks; it does not
  !!     overlap with sent.
  !! @param members the group, bit r % 64 of word r / 64 for rank r; this rank is among them.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_COMM, FMPL_ERR_BUSY (a collective
  !!     call is under way); FMPL_ERR_PEER when a member has died: the messages of the others have come all
  !!     the same, and the communicator can be used as before.
  interface fmpl_mcast_alltoall
    subroutine fmpl_mcast_alltoall(sent, size, received, members, comm, ier) bind(C, name="fmpl_mcast_alltoall_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_alltoall
    subroutine fmpl_mcast_alltoall8(sent, size, received, members, comm, ier) bind(C, name="fmpl_mcast_alltoall8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int64_t), dimension(*), intent(in) :: members
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_mcast_alltoall8
  end interface

  !> Lets a function of the program be used in reductions, on this rank; every rank registers its own. The
  !! function is called with parts of the vectors, inout before in in the order of the ranks, and must call
  !! nothing of the library. Registering it again replaces what was said before. May be called at any time.
  !! The function must return. Whatever thread of the process waits in the library may be the one that calls
  !! it, for a call that another thread has begun, so nothing can come out of it: an exception of C++, a panic
  !! of Rust or the end of its thread (pthread_exit, pthread_cancel) ends the process with a message that
  !! names the rank and the function, and the other ranks get FMPL_ERR_PEER. To leave it by longjmp is
  !! undefined. A function that cannot go on calls abort, or keeps its failure where the program finds it.
  !! the function is a subroutine (inout, in, count) with an INTEGER count. It must return: a STOP in it ends
  !! the process, and the other ranks get FMPL_ERR_PEER.
  !! @param func inout\[k\] = inout\[k\] o in\[k\] for count elements; in is not aligned better than its
  !!     elements.
  !! @param element_size bytes of an element, 1 to 8192.
  !! @param commutes 1 if a o b = b o a, else 0. Functions are applied in the order of the ranks in any case.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT.
  interface
    subroutine fmpl_func_register(func, element_size, commutes, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      external :: func
      integer(c_int), intent(in) :: element_size
      integer(c_int), intent(in) :: commutes
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_func_register
  end interface

  ! ---- Collective calls that do not wait -------------------------------------------------------------------

  !> Begins a barrier. A communicator has at most one collective call without a ticket under way: until this
  !! one is completed all others get FMPL_ERR_BUSY. A call that has begun moves on while this process tests it
  !! or waits for anything else.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_barrier; FMPL_ERR_BUSY.
  interface
    subroutine fmpl_ibarrier(comm, ier) bind(C, name="fmpl_ibarrier_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibarrier
  end interface

  !> Begins to copy a buffer of one rank to all ranks, as fmpl_bcast does. The buffer must not be touched, at
  !! the root not be changed, until the call is completed. Until then all other collective calls of the
  !! communicator without tickets get FMPL_ERR_BUSY.
  !! @param buf the message at the root, room for it elsewhere; may be FMPL_NULL when size is 0.
  !! @param size bytes, the same on all ranks.
  !! @param root the rank whose buffer it is.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast.
  interface fmpl_ibcast
    subroutine fmpl_ibcast(buf, size, root, comm, ier) bind(C, name="fmpl_ibcast_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast
    subroutine fmpl_ibcast8(buf, size, root, comm, ier) bind(C, name="fmpl_ibcast8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast8
  end interface

  !> Begins to combine the ranks' vectors, as fmpl_reduce does. Until the call is completed all other
  !! collective calls of the communicator without tickets get FMPL_ERR_BUSY.
  !! work may be FMPL_NULL.
  !! @param buf the vector; may be FMPL_NULL when count is 0. It must not be touched until the call is
  !!     completed.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param root the rank that gets the result.
  !! @param comm the communicator.
  !! @param work room for as many elements as buf has, which the library may use until the call is completed,
  !!     or FMPL_NULL.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_reduce.
  interface
    subroutine fmpl_ireduce(buf, count, func, root, comm, work, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DIR$ IGNORE_TKR work
      type(*), dimension(*) :: work
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ireduce
  end interface

  !> Begins to combine the ranks' vectors as fmpl_allreduce does. The buffer must not be touched until the
  !! call is completed. Until then all other collective calls of the communicator without tickets get
  !! FMPL_ERR_BUSY. A function of the program may be called in any call of the library that waits or tests,
  !! also by another thread.
  !! work may be FMPL_NULL.
  !! @param buf the vector; may be FMPL_NULL when count is 0.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined.
  !! @param comm the communicator.
  !! @param work room for as many elements as buf has, which the library may use until the call is completed,
  !!     or FMPL_NULL.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce.
  interface
    subroutine fmpl_iallreduce(buf, count, func, comm, work, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: work
      !DIR$ IGNORE_TKR work
      type(*), dimension(*) :: work
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallreduce
  end interface

  !> Begins to collect a message of each rank at one rank, as fmpl_gather does. Until the call is completed
  !! all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
  !! @param buf this rank's message, as for fmpl_gather; it must not change until the call is completed.
  !! @param size bytes, the same on all ranks.
  !! @param all at the root room for a message of each rank, not to be touched until the call is completed;
  !!     elsewhere it is not looked at.
  !! @param root the rank that collects.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_gather.
  interface fmpl_igather
    subroutine fmpl_igather(buf, size, all, root, comm, ier) bind(C, name="fmpl_igather_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather
    subroutine fmpl_igather8(buf, size, all, root, comm, ier) bind(C, name="fmpl_igather8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather8
  end interface

  !> Begins to collect a message of each rank at all ranks, as fmpl_allgather does. Until the call is
  !! completed all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
  !! @param buf this rank's message, as for fmpl_allgather; it must not change until the call is completed.
  !! @param size bytes, the same on all ranks.
  !! @param all room for a message of each rank, not to be touched until the call is completed.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_allgather.
  interface fmpl_iallgather
    subroutine fmpl_iallgather(buf, size, all, comm, ier) bind(C, name="fmpl_iallgather_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather
    subroutine fmpl_iallgather8(buf, size, all, comm, ier) bind(C, name="fmpl_iallgather8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather8
  end interface

  !> Begins to give each rank its own message of one rank, as fmpl_scatter does. Until the call is completed
  !! all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
  !! @param all at the root a message for each rank, not to be changed until the call is completed; elsewhere
  !!     it is not looked at.
  !! @param size bytes of one message, the same on all ranks.
  !! @param buf room for this rank's message, as for fmpl_scatter; it must not be touched until the call is
  !!     completed.
  !! @param root the rank that has the messages.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_scatter.
  interface fmpl_iscatter
    subroutine fmpl_iscatter(all, size, buf, root, comm, ier) bind(C, name="fmpl_iscatter_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter
    subroutine fmpl_iscatter8(all, size, buf, root, comm, ier) bind(C, name="fmpl_iscatter8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter8
  end interface

  !> Begins to give each rank its own message of each rank, as fmpl_alltoall does. Until the call is completed
  !! all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
  !! @param sent a message for each rank, not to be changed until the call is completed.
  !! @param size bytes of one message, the same on all ranks.
  !! @param received room for a message of each rank, which does not overlap with sent; not to be touched
  !!     until the call is completed.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_alltoall.
  interface fmpl_ialltoall
    subroutine fmpl_ialltoall(sent, size, received, comm, ier) bind(C, name="fmpl_ialltoall_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall
    subroutine fmpl_ialltoall8(sent, size, received, comm, ier) bind(C, name="fmpl_ialltoall8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall8
  end interface

  !> Waits until every rank of the communicator has begun the barrier of fmpl_ibarrier.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_barrier, and
  !!     the call is over.
  interface
    subroutine fmpl_ibarrier_wait(comm, ier) bind(C, name="fmpl_ibarrier_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibarrier_wait
  end interface

  !> Has every rank begun the barrier of fmpl_ibarrier?
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_ibarrier_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_ibarrier_test(comm, done, ier) bind(C, name="fmpl_ibarrier_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibarrier_test
  end interface

  !> Completes the call of fmpl_ibcast.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_bcast, and the
  !!     call is over.
  interface
    subroutine fmpl_ibcast_wait(comm, ier) bind(C, name="fmpl_ibcast_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast_wait
  end interface

  !> Completes the call of fmpl_ibcast if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_ibcast_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_ibcast_test(comm, done, ier) bind(C, name="fmpl_ibcast_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast_test
  end interface

  !> Completes the call of fmpl_ireduce.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_reduce, and the
  !!     call is over.
  interface
    subroutine fmpl_ireduce_wait(comm, ier) bind(C, name="fmpl_ireduce_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ireduce_wait
  end interface

  !> Completes the call of fmpl_ireduce if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_ireduce_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_ireduce_test(comm, done, ier) bind(C, name="fmpl_ireduce_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ireduce_test
  end interface

  !> Completes the call of fmpl_iallreduce.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_allreduce, and
  !!     the call is over.
  interface
    subroutine fmpl_iallreduce_wait(comm, ier) bind(C, name="fmpl_iallreduce_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallreduce_wait
  end interface

  !> Completes the call of fmpl_iallreduce if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_iallreduce_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_iallreduce_test(comm, done, ier) bind(C, name="fmpl_iallreduce_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallreduce_test
  end interface

  !> Completes the call of fmpl_igather.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_gather, and the
  !!     call is over.
  interface
    subroutine fmpl_igather_wait(comm, ier) bind(C, name="fmpl_igather_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather_wait
  end interface

  !> Completes the call of fmpl_igather if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_igather_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_igather_test(comm, done, ier) bind(C, name="fmpl_igather_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather_test
  end interface

  !> Completes the call of fmpl_iallgather.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_allgather, and
  !!     the call is over.
  interface
    subroutine fmpl_iallgather_wait(comm, ier) bind(C, name="fmpl_iallgather_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather_wait
  end interface

  !> Completes the call of fmpl_iallgather if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_iallgather_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_iallgather_test(comm, done, ier) bind(C, name="fmpl_iallgather_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather_test
  end interface

  !> Completes the call of fmpl_iscatter.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_scatter, and
  !!     the call is over.
  interface
    subroutine fmpl_iscatter_wait(comm, ier) bind(C, name="fmpl_iscatter_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter_wait
  end interface

  !> Completes the call of fmpl_iscatter if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_iscatter_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_iscatter_test(comm, done, ier) bind(C, name="fmpl_iscatter_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter_test
  end interface

  !> Completes the call of fmpl_ialltoall.
  !! @param comm the communicator.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_alltoall, and
  !!     the call is over.
  interface
    subroutine fmpl_ialltoall_wait(comm, ier) bind(C, name="fmpl_ialltoall_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall_wait
  end interface

  !> Completes the call of fmpl_ialltoall if that takes no waiting.
  !! @param comm the communicator.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_ialltoall_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_ialltoall_test(comm, done, ier) bind(C, name="fmpl_ialltoall_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall_test
  end interface

  ! ---- Several collective calls at a time ------------------------------------------------------------------

  !> Begins a barrier, and gives it a ticket. As all calls with tickets: up to FMPL_TICKETS of a communicator
  !! may be begun and not completed. All ranks begin them in the same order, also with respect to other
  !! collective calls of the communicator, which can be made meanwhile; each rank completes them in whatever
  !! order it wants, by fmpl_coll_wait or fmpl_coll_test. They are done by messages between the ranks, eight
  !! of a communicator at a time, and move on while this process tests one or waits for anything else.
  !! a ticket is an INTEGER(8).
  !! @param comm the communicator.
  !! @param ticket set to the call's name, which is never 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_barrier; FMPL_ERR_BUSY when so many are begun and not completed, and
  !!     FMPL_ERR_ARGUMENT when ticket is FMPL_NULL: then nothing has begun.
  interface
    subroutine fmpl_ibarrier_n(comm, ticket, ier) bind(C, name="fmpl_ibarrier_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibarrier_n
  end interface

  !> Begins to copy a buffer of one rank to all ranks, as fmpl_ibcast does, and gives the call a ticket: see
  !! fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param buf the message at the root, room for it elsewhere. It must not be touched, at the root not be
  !!     changed, until the call is completed.
  !! @param size bytes, the same on all ranks.
  !! @param root the rank whose buffer it is.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast, and as fmpl_ibarrier_n.
  interface fmpl_ibcast_n
    subroutine fmpl_ibcast_n(buf, size, root, comm, ticket, ier) bind(C, name="fmpl_ibcast_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast_n
    subroutine fmpl_ibcast_n8(buf, size, root, comm, ticket, ier) bind(C, name="fmpl_ibcast_n8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ibcast_n8
  end interface

  !> Begins to combine the ranks' vectors, as fmpl_ireduce does, and gives the call a ticket: see
  !! fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param buf the vector. It must not be touched until the call is completed.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined; elements may be combined as ((x0 o x1) o (x2 o x3)), so it
  !!     must be associative.
  !! @param root the rank that gets the result.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_reduce, and as fmpl_ibarrier_n.
  interface
    subroutine fmpl_ireduce_n(buf, count, func, root, comm, ticket, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ireduce_n
  end interface

  !> Begins to combine the ranks' vectors for all ranks, as fmpl_iallreduce does, and gives the call a ticket:
  !! see fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param buf the vector. It must not be touched until the call is completed.
  !! @param count elements, the same on all ranks.
  !! @param func how two elements are combined, as for fmpl_ireduce_n.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_allreduce, and as fmpl_ibarrier_n.
  interface
    subroutine fmpl_iallreduce_n(buf, count, func, comm, ticket, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: count
      external :: func
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallreduce_n
  end interface

  !> Begins to collect a message of each rank at one rank, as fmpl_igather does, and gives the call a ticket:
  !! see fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param buf this rank's message, as for fmpl_igather.
  !! @param size bytes, the same on all ranks.
  !! @param all at the root room for a message of each rank; elsewhere it is not looked at.
  !! @param root the rank that collects.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_gather, and as fmpl_ibarrier_n.
  interface fmpl_igather_n
    subroutine fmpl_igather_n(buf, size, all, root, comm, ticket, ier) bind(C, name="fmpl_igather_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather_n
    subroutine fmpl_igather_n8(buf, size, all, root, comm, ticket, ier) bind(C, name="fmpl_igather_n8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_igather_n8
  end interface

  !> Begins to collect a message of each rank at all ranks, as fmpl_iallgather does, and gives the call a
  !! ticket: see fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param buf this rank's message, as for fmpl_iallgather.
  !! @param size bytes, the same on all ranks.
  !! @param all room for a message of each rank.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_allgather, and as fmpl_ibarrier_n.
  interface fmpl_iallgather_n
    subroutine fmpl_iallgather_n(buf, size, all, comm, ticket, ier) bind(C, name="fmpl_iallgather_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather_n
    subroutine fmpl_iallgather_n8(buf, size, all, comm, ticket, ier) bind(C, name="fmpl_iallgather_n8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iallgather_n8
  end interface

  !> Begins to give each rank its own message of one rank, as fmpl_iscatter does, and gives the call a ticket:
  !! see fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param all at the root a message for each rank; elsewhere it is not looked at.
  !! @param size bytes of one message, the same on all ranks.
  !! @param buf room for this rank's message, as for fmpl_iscatter.
  !! @param root the rank that has the messages.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_scatter, and as fmpl_ibarrier_n.
  interface fmpl_iscatter_n
    subroutine fmpl_iscatter_n(all, size, buf, root, comm, ticket, ier) bind(C, name="fmpl_iscatter_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter_n
    subroutine fmpl_iscatter_n8(all, size, buf, root, comm, ticket, ier) bind(C, name="fmpl_iscatter_n8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*), intent(in) :: all
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_iscatter_n8
  end interface

  !> Begins to give each rank its own message of each rank, as fmpl_ialltoall does, and gives the call a
  !! ticket: see fmpl_ibarrier_n.
  !! a ticket is an INTEGER(8).
  !! @param sent a message for each rank.
  !! @param size bytes of one message, the same on all ranks.
  !! @param received room for a message of each rank, which does not overlap with sent.
  !! @param comm the communicator.
  !! @param ticket set to the call's name.
  !! @param ier FMPL_SUCCESS, or: as fmpl_alltoall, and as fmpl_ibarrier_n.
  interface fmpl_ialltoall_n
    subroutine fmpl_ialltoall_n(sent, size, received, comm, ticket, ier) bind(C, name="fmpl_ialltoall_n_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall_n
    subroutine fmpl_ialltoall_n8(sent, size, received, comm, ticket, ier) bind(C, name="fmpl_ialltoall_n8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: comm
      integer(c_int64_t), intent(out) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_ialltoall_n8
  end interface

  !> Completes a collective call with a ticket. The others of its communicator go on meanwhile.
  !! @param ticket the call's.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such call, or it is completed; otherwise
  !!     what the call that waits would return, and the call is over.
  interface
    subroutine fmpl_coll_wait(ticket, ier) bind(C, name="fmpl_coll_wait_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ticket
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_coll_wait
  end interface

  !> Completes a collective call with a ticket if that takes no waiting.
  !! @param ticket the call's.
  !! @param done set to 1, and the call is over, or 0.
  !! @param ier FMPL_SUCCESS, or: as fmpl_coll_wait; FMPL_ERR_ARGUMENT when done is FMPL_NULL.
  interface
    subroutine fmpl_coll_test(ticket, done, ier) bind(C, name="fmpl_coll_test_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ticket
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_coll_test
  end interface

  ! ---- Grids -----------------------------------------------------------------------------------------------

  !> Makes a communicator whose ranks form a Cartesian grid; all ranks of the communicator call it, with the
  !! same dimensions. The first ranks are in it, in the same order, the last dimension's neighbours side by
  !! side.
  !! dimensions and periods are arrays of INTEGER.
  !! @param comm the communicator.
  !! @param ndims dimensions, 1 or more.
  !! @param dims ranks along each, 1 or more; together no more than comm has.
  !! @param periods for each 1 if it closes, so that the last rank's neighbour is the first, else 0;
  !!     FMPL_NULL: none closes.
  !! @param cart set to the communicator, or to FMPL_COMM_NULL at ranks that have no place in it.
  !! @param ier FMPL_SUCCESS, or: as fmpl_comm_split, and when that is no grid of so many ranks.
  interface
    subroutine fmpl_cart_create(comm, ndims, dims, periods, cart, ier) bind(C, name="fmpl_cart_create_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(in) :: ndims
      integer(c_int), dimension(*), intent(in) :: dims
      integer(c_int), dimension(*), intent(in) :: periods
      integer(c_int), intent(out) :: cart
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_cart_create
  end interface

  !> Where in its grid a rank is.
  !! coordinates count from 0.
  !! @param cart a communicator of fmpl_cart_create.
  !! @param rank a rank of it.
  !! @param coords set to its coordinates, from 0 on; as many as the grid has dimensions.
  !! @param ier FMPL_SUCCESS, or: FMPL_ERR_COMM (also for one that is no grid), FMPL_ERR_RANK.
  interface
    subroutine fmpl_cart_coords(cart, rank, coords, ier) bind(C, name="fmpl_cart_coords_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(in) :: rank
      integer(c_int), dimension(*), intent(inout) :: coords
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_cart_coords
  end interface

  !> Which rank of a grid is at a place.
  !! coordinates count from 0.
  !! @param cart a communicator of fmpl_cart_create.
  !! @param coords the coordinates; in a dimension that closes they go round.
  !! @param rank set to the rank, or to FMPL_PROC_NULL beyond an edge.
  !! @param ier FMPL_SUCCESS, or: as fmpl_cart_coords.
  interface
    subroutine fmpl_cart_rank(cart, coords, rank, ier) bind(C, name="fmpl_cart_rank_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: cart
      integer(c_int), dimension(*), intent(in) :: coords
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_cart_rank
  end interface

  !> From whom this rank receives, and to whom it sends, when all ranks of a grid send so many steps along a
  !! dimension.
  !! dimensions count from 0.
  !! @param cart a communicator of fmpl_cart_create.
  !! @param dim the dimension, from 0 on.
  !! @param steps how far; may be negative.
  !! @param src set to the rank to receive from, or to FMPL_PROC_NULL.
  !! @param dst set to the rank to send to, or to FMPL_PROC_NULL.
  !! @param ier FMPL_SUCCESS, or: as fmpl_cart_coords; FMPL_ERR_ARGUMENT also for a dimension that there is
  !!     not.
  interface
    subroutine fmpl_cart_shift(cart, dim, steps, src, dst, ier) bind(C, name="fmpl_cart_shift_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(in) :: dim
      integer(c_int), intent(in) :: steps
      integer(c_int), intent(out) :: src
      integer(c_int), intent(out) :: dst
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_cart_shift
  end interface

  !> Gives each neighbour on a grid the same message, and collects one of each: of each dimension that of the
  !! rank before this one, then that of the rank behind. What would come from beyond an edge is not touched.
  !! @param buf this rank's message; may be FMPL_NULL when size is 0.
  !! @param size bytes, the same on all ranks.
  !! @param all room for two messages for each dimension; it does not overlap with buf.
  !! @param cart a communicator of fmpl_cart_create.
  !! @param ier FMPL_SUCCESS, or: as fmpl_bcast; FMPL_ERR_COMM also for a communicator that is no grid.
  interface fmpl_neighbour_allgather
    subroutine fmpl_neighbour_allgather(buf, size, all, cart, ier) bind(C, name="fmpl_neighbour_allgather_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_neighbour_allgather
    subroutine fmpl_neighbour_allgather8(buf, size, all, cart, ier) bind(C, name="fmpl_neighbour_allgather8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: all
      !DIR$ IGNORE_TKR all
      type(*), dimension(*) :: all
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_neighbour_allgather8
  end interface

  !> Gives each neighbour on a grid its own message, and collects one of each, in the order of
  !! fmpl_neighbour_allgather.
  !! @param sent two messages for each dimension: for the rank before this one, for the one behind.
  !! @param size bytes of one message, the same on all ranks.
  !! @param received room for as many; it does not overlap with sent.
  !! @param cart a communicator of fmpl_cart_create.
  !! @param ier FMPL_SUCCESS, or: as fmpl_neighbour_allgather.
  interface fmpl_neighbour_alltoall
    subroutine fmpl_neighbour_alltoall(sent, size, received, cart, ier) bind(C, name="fmpl_neighbour_alltoall_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_neighbour_alltoall
    subroutine fmpl_neighbour_alltoall8(sent, size, received, cart, ier) bind(C, name="fmpl_neighbour_alltoall8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: sent
      !DIR$ IGNORE_TKR sent
      type(*), dimension(*), intent(in) :: sent
      integer(c_int64_t), intent(in) :: size
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: received
      !DIR$ IGNORE_TKR received
      type(*), dimension(*) :: received
      integer(c_int), intent(in) :: cart
      integer(c_int), intent(out) :: ier
    end subroutine fmpl_neighbour_alltoall8
  end interface

  ! ---- Global memory (ACP): infrastructure -----------------------------------------------------------------

  !> Joins the job and makes this rank's global memory; returns when all ranks have theirs. Counted: a further
  !! init succeeds. A program that also uses messages calls fmpl_init as well, before or after. After the last
  !! finalize init begins anew, as fmpl_init does.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_init(ier) bind(C, name="acp_init_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: ier
    end subroutine acp_init
  end interface

  !> Completes this rank's operations, waits for all ranks, and leaves. All registrations end. With several
  !! inits the last finalize does it.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_finalize(ier) bind(C, name="acp_finalize_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: ier
    end subroutine acp_finalize
  end interface

  !> Begins anew with another rank; collective. All registrations end, starter memory is zero. (The ranks of
  !! fmpl_comm_rank stay.)
  !! @param rank this rank's new number, another one for each rank, from 0 to acp_procs() - 1.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_reset(rank, ier) bind(C, name="acp_reset_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: rank
      integer(c_int), intent(out) :: ier
    end subroutine acp_reset
  end interface

  !> Ends the whole job, every rank of it, with a message. Does not return.
  !! @param str what to say.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_abort(str)
      import :: c_int, c_int64_t, c_ptr, c_double
      character(len=*), intent(in) :: str
    end subroutine acp_abort
  end interface

  !> Waits until all ranks have called it. Operations need not be over.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_sync(ier) bind(C, name="acp_sync_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: ier
    end subroutine acp_sync
  end interface

  !> This process's rank.
  !! @param rank set to the rank.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_rank(rank, ier) bind(C, name="acp_rank_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out) :: ier
    end subroutine acp_rank
  end interface

  !> The number of ranks.
  !! @param procs set to the number of ranks.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_procs(procs, ier) bind(C, name="acp_procs_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: procs
      integer(c_int), intent(out) :: ier
    end subroutine acp_procs
  end interface

  !> What went wrong last in a call of this thread (not ACP's).
  !! every call returns it in ier, too.
  !! @param code set to 0, or FMPL_ERR_*; it is 0 again after this call.
  !! @param ier always FMPL_SUCCESS.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_errno(code, ier) bind(C, name="acp_errno_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: code
      integer(c_int), intent(out) :: ier
    end subroutine acp_errno
  end interface

  !> The text of what went wrong last in a call of this thread (not ACP's).
  !! @param text set to the text, padded with blanks; blank when nothing has gone wrong.
  !! @param ier always FMPL_SUCCESS.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_last_error(text, ier)
      import :: c_int, c_int64_t, c_ptr, c_double
      character(len=*), intent(out) :: text
      integer(c_int), intent(out) :: ier
    end subroutine acp_last_error
  end interface

  ! ---- Global memory (ACP): registration and addresses -----------------------------------------------------

  !> The address of a rank's starter memory, which is registered from init on: what ranks tell each other
  !! other addresses by. It is FMPL_RMA_STARTER bytes long, 10 KiB without it, and zero at first.
  !! @param rank the rank.
  !! @param ga set to the address.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_query_starter_ga(rank, ga, ier) bind(C, name="acp_query_starter_ga_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(in) :: rank
      integer(c_int64_t), intent(out) :: ga
      integer(c_int), intent(out) :: ier
    end subroutine acp_query_starter_ga
  end interface

  !> Registers memory: from then on all ranks reach it by its global addresses. Memory of fmpl_alloc is
  !! reached fastest. A rank can have 255 registrations at a time (FMPL_RMA_KEYS), each of at most 16 GiB.
  !! @param addr the memory.
  !! @param size bytes, at least 1.
  !! @param color 0 to acp_colors - 1.
  !! @param atkey set to the key.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_register_memory(addr, size, color, atkey, ier) bind(C, name="acp_register_memory_")
      import :: c_int, c_int64_t, c_ptr, c_double
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: addr
      !DIR$ IGNORE_TKR addr
      type(*), dimension(*), asynchronous :: addr
      integer(c_int64_t), intent(in) :: size
      integer(c_int), intent(in) :: color
      integer(c_int64_t), intent(out) :: atkey
      integer(c_int), intent(out) :: ier
    end subroutine acp_register_memory
  end interface

  !> Ends a registration. Returns when no operation of any rank uses the memory any more; later ones on its
  !! addresses fail, until the key is given out again for other memory.
  !! @param atkey the key.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_unregister_memory(atkey, ier) bind(C, name="acp_unregister_memory_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: atkey
      integer(c_int), intent(out) :: ier
    end subroutine acp_unregister_memory
  end interface

  !> The global address of an address within a registration.
  !! @param atkey the registration's key.
  !! @param addr a variable in the registered memory.
  !! @param ga set to its global address.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_query_ga(atkey, addr, ga, ier) bind(C, name="acp_query_ga_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: atkey
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: addr
      !DIR$ IGNORE_TKR addr
      type(*), dimension(*), intent(in) :: addr
      integer(c_int64_t), intent(out) :: ga
      integer(c_int), intent(out) :: ier
    end subroutine acp_query_ga
  end interface

  !> The address in this process of a global address of this rank.
  !! @param ga the global address.
  !! @param addr set to the address.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_query_address(ga, addr, ier) bind(C, name="acp_query_address_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ga
      type(c_ptr), intent(out) :: addr
      integer(c_int), intent(out) :: ier
    end subroutine acp_query_address
  end interface

  !> The rank whose memory a global address names.
  !! @param ga the global address.
  !! @param rank set to the rank.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_query_rank(ga, rank, ier) bind(C, name="acp_query_rank_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ga
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out) :: ier
    end subroutine acp_query_rank
  end interface

  !> The colour of a global address.
  !! @param ga the global address.
  !! @param color set to the colour.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_query_color(ga, color, ier) bind(C, name="acp_query_color_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: ga
      integer(c_int), intent(out) :: color
      integer(c_int), intent(out) :: ier
    end subroutine acp_query_color
  end interface

  !> How many colours there are.
  !! @param colors set to the number of colours.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_colors(colors) bind(C, name="acp_colors_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int), intent(out) :: colors
    end subroutine acp_colors
  end interface

  ! ---- Global memory (ACP): access -------------------------------------------------------------------------

  !> Copies between any two global addresses, of whatever ranks.
  !! @param dst where to.
  !! @param src where from.
  !! @param size bytes.
  !! @param order it starts when this operation and all issued before it are over; ACP_HANDLE_NULL: at once.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_copy(dst, src, size, order, handle, ier) bind(C, name="acp_copy_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: size
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_copy
  end interface

  !> Replaces a word of 4 bytes if it has the old value.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param oldval what must be there.
  !! @param newval what replaces it.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_cas4(dst, src, oldval, newval, order, handle, ier) bind(C, name="acp_cas4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: oldval
      integer(c_int), intent(in) :: newval
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_cas4
  end interface

  !> Replaces a word of 4 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_swap4(dst, src, value, order, handle, ier) bind(C, name="acp_swap4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_swap4
  end interface

  !> Adds to a word of 4 bytes, wrapping.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_add4(dst, src, value, order, handle, ier) bind(C, name="acp_add4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_add4
  end interface

  !> Exclusive or on a word of 4 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_xor4(dst, src, value, order, handle, ier) bind(C, name="acp_xor4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_xor4
  end interface

  !> Or on a word of 4 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_or4(dst, src, value, order, handle, ier) bind(C, name="acp_or4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_or4
  end interface

  !> And on a word of 4 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
  !! @param src the word, of any rank; aligned to 4 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_and4(dst, src, value, order, handle, ier) bind(C, name="acp_and4_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_and4
  end interface

  !> Replaces a word of 8 bytes if it has the old value.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param oldval what must be there.
  !! @param newval what replaces it.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_cas8(dst, src, oldval, newval, order, handle, ier) bind(C, name="acp_cas8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: oldval
      integer(c_int64_t), intent(in) :: newval
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_cas8
  end interface

  !> Replaces a word of 8 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_swap8(dst, src, value, order, handle, ier) bind(C, name="acp_swap8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_swap8
  end interface

  !> Adds to a word of 8 bytes, wrapping.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_add8(dst, src, value, order, handle, ier) bind(C, name="acp_add8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_add8
  end interface

  !> Exclusive or on a word of 8 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_xor8(dst, src, value, order, handle, ier) bind(C, name="acp_xor8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_xor8
  end interface

  !> Or on a word of 8 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_or8(dst, src, value, order, handle, ier) bind(C, name="acp_or8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_or8
  end interface

  !> And on a word of 8 bytes.
  !! @param dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
  !! @param src the word, of any rank; aligned to 8 bytes.
  !! @param value the operand.
  !! @param order as for acp_copy.
  !! @param handle set to its handle; when it is refused, to one after which nothing starts.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_and8(dst, src, value, order, handle, ier) bind(C, name="acp_and8_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: dst
      integer(c_int64_t), intent(in) :: src
      integer(c_int64_t), intent(in) :: value
      integer(c_int64_t), intent(in) :: order
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_and8
  end interface

  !> Waits until an operation and all issued before it are over. A failure among them, of which nobody has
  !! been told, is said on standard error and kept for acp_errno; of one that was refused it is only kept.
  !! From then on operations may be ordered after later ones again.
  !! the failure is returned.
  !! @param handle the operation; ACP_HANDLE_ALL: all.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_complete(handle, ier) bind(C, name="acp_complete_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: handle
      integer(c_int), intent(out) :: ier
    end subroutine acp_complete
  end interface

  !> Looks whether an operation, or one issued before it, is not over. Failures as for acp_complete.
  !! a failure is returned.
  !! @param handle the operation; ACP_HANDLE_ALL: all.
  !! @param flag set to 1 when something is not over, else to 0.
  !! @param ier the return code.
  !! @param ier FMPL_SUCCESS or FMPL_ERR_*
  interface
    subroutine acp_inquire(handle, flag, ier) bind(C, name="acp_inquire_")
      import :: c_int, c_int64_t, c_ptr, c_double
      integer(c_int64_t), intent(in) :: handle
      integer(c_int), intent(out) :: flag
      integer(c_int), intent(out) :: ier
    end subroutine acp_inquire
  end interface

  ! ---- Predefined functions of reductions ------------------------------------------------------------------
  ! A name is fmpl_, what the elements are, the operation.
  !
  ! Elements: i8 i16 i i64 u8 u16 u32 u64 are integers of so many bits (i: int), s float, d double, f80 long double,
  ! c float complex, z double complex, f16 IEEE binary16 (half), bf16 bfloat16, b8 bool of one byte. f80 is there
  ! where long double is that of the x87, on x86-64.
  !
  ! Operations: sum, prod; maxval, minval (by value) and amax, amin (by absolute value); maxloc, minloc on
  ! struct { T value; int index; }; land, lor, lxor, whose results are 0 and 1; band, bor, bxor.
  !
  ! Sums and products of integers wrap. A NaN is larger and smaller than every number; of two zeros the maximum is +0,
  ! the minimum -0. f16 and bf16 are rounded to nearest after each sum.

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

  !> int8_t: inout[k] = inout[k] + in[k] modulo 2^8.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8sum_") :: fmpl_i8sum

  !> int16_t: inout[k] = inout[k] + in[k] modulo 2^16.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16sum_") :: fmpl_i16sum

  !> int: inout[k] = inout[k] + in[k] modulo 2^32.
  procedure(fmpl_reduction), bind(C, name="fmpl_isum_") :: fmpl_isum

  !> int64_t: inout[k] = inout[k] + in[k] modulo 2^64.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64sum_") :: fmpl_i64sum

  !> uint8_t: inout[k] = inout[k] + in[k] modulo 2^8.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8sum_") :: fmpl_u8sum

  !> uint16_t: inout[k] = inout[k] + in[k] modulo 2^16.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16sum_") :: fmpl_u16sum

  !> uint32_t: inout[k] = inout[k] + in[k] modulo 2^32.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32sum_") :: fmpl_u32sum

  !> uint64_t: inout[k] = inout[k] + in[k] modulo 2^64.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64sum_") :: fmpl_u64sum

  !> float: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_ssum_") :: fmpl_ssum

  !> double: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_dsum_") :: fmpl_dsum

  !> complex float: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_csum_") :: fmpl_csum

  !> complex double: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_zsum_") :: fmpl_zsum

  !> IEEE binary16: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_f16sum_") :: fmpl_f16sum

  !> bfloat16: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_bf16sum_") :: fmpl_bf16sum

  !> int8_t: inout[k] = inout[k] * in[k] modulo 2^8.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8prod_") :: fmpl_i8prod

  !> int16_t: inout[k] = inout[k] * in[k] modulo 2^16.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16prod_") :: fmpl_i16prod

  !> int: inout[k] = inout[k] * in[k] modulo 2^32.
  procedure(fmpl_reduction), bind(C, name="fmpl_iprod_") :: fmpl_iprod

  !> int64_t: inout[k] = inout[k] * in[k] modulo 2^64.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64prod_") :: fmpl_i64prod

  !> uint8_t: inout[k] = inout[k] * in[k] modulo 2^8.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8prod_") :: fmpl_u8prod

  !> uint16_t: inout[k] = inout[k] * in[k] modulo 2^16.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16prod_") :: fmpl_u16prod

  !> uint32_t: inout[k] = inout[k] * in[k] modulo 2^32.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32prod_") :: fmpl_u32prod

  !> uint64_t: inout[k] = inout[k] * in[k] modulo 2^64.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64prod_") :: fmpl_u64prod

  !> float: inout[k] = inout[k] * in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_sprod_") :: fmpl_sprod

  !> double: inout[k] = inout[k] * in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_dprod_") :: fmpl_dprod

  !> complex float: inout[k] = inout[k] * in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_cprod_") :: fmpl_cprod

  !> complex double: inout[k] = inout[k] * in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_zprod_") :: fmpl_zprod

  !> int8_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8maxval_") :: fmpl_i8maxval

  !> int16_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16maxval_") :: fmpl_i16maxval

  !> int: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_imaxval_") :: fmpl_imaxval

  !> int64_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64maxval_") :: fmpl_i64maxval

  !> uint8_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8maxval_") :: fmpl_u8maxval

  !> uint16_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16maxval_") :: fmpl_u16maxval

  !> uint32_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32maxval_") :: fmpl_u32maxval

  !> uint64_t: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64maxval_") :: fmpl_u64maxval

  !> float: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_smaxval_") :: fmpl_smaxval

  !> double: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_dmaxval_") :: fmpl_dmaxval

  !> int8_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8minval_") :: fmpl_i8minval

  !> int16_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16minval_") :: fmpl_i16minval

  !> int: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_iminval_") :: fmpl_iminval

  !> int64_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64minval_") :: fmpl_i64minval

  !> uint8_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8minval_") :: fmpl_u8minval

  !> uint16_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16minval_") :: fmpl_u16minval

  !> uint32_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32minval_") :: fmpl_u32minval

  !> uint64_t: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64minval_") :: fmpl_u64minval

  !> float: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_sminval_") :: fmpl_sminval

  !> double: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_dminval_") :: fmpl_dminval

  !> int: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
  procedure(fmpl_reduction), bind(C, name="fmpl_iamax_") :: fmpl_iamax

  !> float: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
  procedure(fmpl_reduction), bind(C, name="fmpl_samax_") :: fmpl_samax

  !> double: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
  procedure(fmpl_reduction), bind(C, name="fmpl_damax_") :: fmpl_damax

  !> complex float: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones
  !! the larger real part, then imaginary part.
  procedure(fmpl_reduction), bind(C, name="fmpl_camax_") :: fmpl_camax

  !> complex double: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones
  !! the larger real part, then imaginary part.
  procedure(fmpl_reduction), bind(C, name="fmpl_zamax_") :: fmpl_zamax

  !> int: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
  procedure(fmpl_reduction), bind(C, name="fmpl_iamin_") :: fmpl_iamin

  !> float: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
  procedure(fmpl_reduction), bind(C, name="fmpl_samin_") :: fmpl_samin

  !> double: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
  procedure(fmpl_reduction), bind(C, name="fmpl_damin_") :: fmpl_damin

  !> complex float: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones
  !! the smaller real part, then imaginary part.
  procedure(fmpl_reduction), bind(C, name="fmpl_camin_") :: fmpl_camin

  !> complex double: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal
  !! ones the smaller real part, then imaginary part.
  procedure(fmpl_reduction), bind(C, name="fmpl_zamin_") :: fmpl_zamin

  !> int8_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8maxloc_") :: fmpl_i8maxloc

  !> int16_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16maxloc_") :: fmpl_i16maxloc

  !> int and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_imaxloc_") :: fmpl_imaxloc

  !> int64_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64maxloc_") :: fmpl_i64maxloc

  !> uint8_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8maxloc_") :: fmpl_u8maxloc

  !> uint16_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16maxloc_") :: fmpl_u16maxloc

  !> uint32_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32maxloc_") :: fmpl_u32maxloc

  !> uint64_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64maxloc_") :: fmpl_u64maxloc

  !> float and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_smaxloc_") :: fmpl_smaxloc

  !> double and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_dmaxloc_") :: fmpl_dmaxloc

  !> int8_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8minloc_") :: fmpl_i8minloc

  !> int16_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16minloc_") :: fmpl_i16minloc

  !> int and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_iminloc_") :: fmpl_iminloc

  !> int64_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64minloc_") :: fmpl_i64minloc

  !> uint8_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8minloc_") :: fmpl_u8minloc

  !> uint16_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16minloc_") :: fmpl_u16minloc

  !> uint32_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32minloc_") :: fmpl_u32minloc

  !> uint64_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64minloc_") :: fmpl_u64minloc

  !> float and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
  !! index.
  procedure(fmpl_reduction), bind(C, name="fmpl_sminloc_") :: fmpl_sminloc

  !> double and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_dminloc_") :: fmpl_dminloc

  !> int8_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8land_") :: fmpl_i8land

  !> int16_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16land_") :: fmpl_i16land

  !> int: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_iland_") :: fmpl_iland

  !> int64_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64land_") :: fmpl_i64land

  !> uint8_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8land_") :: fmpl_u8land

  !> uint16_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16land_") :: fmpl_u16land

  !> uint32_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32land_") :: fmpl_u32land

  !> uint64_t: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64land_") :: fmpl_u64land

  !> bool: 1 if neither inout[k] nor in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_b8land_") :: fmpl_b8land

  !> int8_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8lor_") :: fmpl_i8lor

  !> int16_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16lor_") :: fmpl_i16lor

  !> int: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_ilor_") :: fmpl_ilor

  !> int64_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64lor_") :: fmpl_i64lor

  !> uint8_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8lor_") :: fmpl_u8lor

  !> uint16_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16lor_") :: fmpl_u16lor

  !> uint32_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32lor_") :: fmpl_u32lor

  !> uint64_t: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64lor_") :: fmpl_u64lor

  !> bool: 0 if inout[k] and in[k] both are 0, else 1.
  procedure(fmpl_reduction), bind(C, name="fmpl_b8lor_") :: fmpl_b8lor

  !> int8_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i8lxor_") :: fmpl_i8lxor

  !> int16_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i16lxor_") :: fmpl_i16lxor

  !> int: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_ilxor_") :: fmpl_ilxor

  !> int64_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_i64lxor_") :: fmpl_i64lxor

  !> uint8_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u8lxor_") :: fmpl_u8lxor

  !> uint16_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u16lxor_") :: fmpl_u16lxor

  !> uint32_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u32lxor_") :: fmpl_u32lxor

  !> uint64_t: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_u64lxor_") :: fmpl_u64lxor

  !> bool: 1 if just one of inout[k] and in[k] is 0, else 0.
  procedure(fmpl_reduction), bind(C, name="fmpl_b8lxor_") :: fmpl_b8lxor

  !> int8_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i8band_") :: fmpl_i8band

  !> int16_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i16band_") :: fmpl_i16band

  !> int: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_iband_") :: fmpl_iband

  !> int64_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i64band_") :: fmpl_i64band

  !> uint8_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u8band_") :: fmpl_u8band

  !> uint16_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u16band_") :: fmpl_u16band

  !> uint32_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u32band_") :: fmpl_u32band

  !> uint64_t: inout[k] = inout[k] & in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u64band_") :: fmpl_u64band

  !> int8_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i8bor_") :: fmpl_i8bor

  !> int16_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i16bor_") :: fmpl_i16bor

  !> int: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_ibor_") :: fmpl_ibor

  !> int64_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i64bor_") :: fmpl_i64bor

  !> uint8_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u8bor_") :: fmpl_u8bor

  !> uint16_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u16bor_") :: fmpl_u16bor

  !> uint32_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u32bor_") :: fmpl_u32bor

  !> uint64_t: inout[k] = inout[k] | in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u64bor_") :: fmpl_u64bor

  !> int8_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i8bxor_") :: fmpl_i8bxor

  !> int16_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i16bxor_") :: fmpl_i16bxor

  !> int: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_ibxor_") :: fmpl_ibxor

  !> int64_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_i64bxor_") :: fmpl_i64bxor

  !> uint8_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u8bxor_") :: fmpl_u8bxor

  !> uint16_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u16bxor_") :: fmpl_u16bxor

  !> uint32_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u32bxor_") :: fmpl_u32bxor

  !> uint64_t: inout[k] = inout[k] ^ in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_u64bxor_") :: fmpl_u64bxor

  ! ---- Predefined functions of long double, on x86-64 ------------------------------------------------------

  !> long double: inout[k] = inout[k] + in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_f80sum_") :: fmpl_f80sum

  !> long double: inout[k] = inout[k] * in[k].
  procedure(fmpl_reduction), bind(C, name="fmpl_f80prod_") :: fmpl_f80prod

  !> long double: of inout[k] and in[k] the larger one.
  procedure(fmpl_reduction), bind(C, name="fmpl_f80maxval_") :: fmpl_f80maxval

  !> long double: of inout[k] and in[k] the smaller one.
  procedure(fmpl_reduction), bind(C, name="fmpl_f80minval_") :: fmpl_f80minval

  !> long double and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_f80maxloc_") :: fmpl_f80maxloc

  !> long double and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
  !! lower index.
  procedure(fmpl_reduction), bind(C, name="fmpl_f80minloc_") :: fmpl_f80minloc

  ! ---- The same by the paper's names, which readers of MPI take for other functions ------------------------

  !> The paper's name for fmpl_iamax: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_imax_") :: fmpl_imax

  !> The paper's name for fmpl_samax: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_smax_") :: fmpl_smax

  !> The paper's name for fmpl_damax: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_dmax_") :: fmpl_dmax

  !> The paper's name for fmpl_camax: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_cmax_") :: fmpl_cmax

  !> The paper's name for fmpl_zamax: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_zmax_") :: fmpl_zmax

  !> The paper's name for fmpl_iamin: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_imin_") :: fmpl_imin

  !> The paper's name for fmpl_samin: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_smin_") :: fmpl_smin

  !> The paper's name for fmpl_damin: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_dmin_") :: fmpl_dmin

  !> The paper's name for fmpl_camin: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_cmin_") :: fmpl_cmin

  !> The paper's name for fmpl_zamin: by absolute value.
  procedure(fmpl_reduction), bind(C, name="fmpl_zmin_") :: fmpl_zmin
end module fmpl
