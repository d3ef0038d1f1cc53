/*
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

/** A communicator: a group of ranks with a space of indices of its own. */
typedef int fmpl_comm;

/**
 * The shape of a sub-matrix: count runs of run bytes, the beginnings of neighbouring runs stride bytes apart
 * (it may be negative). The bytes are a stream: the two sides of a message may have different shapes.
 */
typedef struct {
    size_t run; /**< Bytes in a run. */
    size_t count; /**< Number of runs. */
    ptrdiff_t stride; /**< Bytes from the beginning of a run to the beginning of the next; may be negative. */
} fmpl_block;

/**
 * A function of a reduction: inout[k] = inout[k] o in[k] for count elements; it must return
 * (fmpl_func_register says what else ends the process). Passed to a reduction it is a predefined one, or one
 * that fmpl_func_register has been told.
 */
typedef void (*fmpl_func)(void *inout, const void *in, int count);

/**
 * An allgather of the host program, for fmpl_init_with: size bytes at mine of each rank go to all on all
 * ranks, one after the other in the order of the ranks. Returns 0, or something else when it has failed.
 */
typedef int (*fmpl_exchange)(void *state, const void *mine, void *all, size_t size);

/** An identifier of a job, for fmpl_init_id. */
typedef struct {
    unsigned char bytes[128];
} fmpl_id;

/**
 * A request by its name, for calls that complete several at a time: what began it (FMPL_REQUEST_SEND and so
 * on) in kind, and the arguments by which the call that completes it alone names it. Other members mean
 * nothing.
 */
typedef struct {
    int kind, peer, index;
    fmpl_comm comm;
    uint64_t ticket;
} fmpl_request;

/* ---- Constants ----------------------------------------------------------------------------------------- */

/** What went wrong. The numbers never change their meaning. */
enum fmpl_error {
    /** The library is not initialised, or has been finalized. */
    FMPL_ERR_INIT = 1,
    /** A request on this (peer, index) is not completed yet. */
    FMPL_ERR_BUSY = 2,
    /** The index is outside the range that both sides agreed on. */
    FMPL_ERR_INDEX = 3,
    /** The rank is outside the communicator. */
    FMPL_ERR_RANK = 4,
    /** Not a communicator. */
    FMPL_ERR_COMM = 5,
    /** Another argument is wrong: a null buffer with a size, a negative count, a size that overflows. */
    FMPL_ERR_ARGUMENT = 6,
    /** The message is longer than the receive buffer. Its first bytes have been delivered. */
    FMPL_ERR_TRUNCATE = 7,
    /** Buffered mode, and the spool has no room for the message. Nothing was sent. */
    FMPL_ERR_SPOOL_FULL = 8,
    /** Finalize found messages that nobody has received, or requests never completed. */
    FMPL_ERR_PENDING = 9,
    /** The peer has died, or has finalized without doing its part. */
    FMPL_ERR_PEER = 10,
    /** This process was forked from one that had initialised the library; it cannot use it. */
    FMPL_ERR_FORK = 11,
    /** No memory, or a limit on memory was met. */
    FMPL_ERR_MEMORY = 12,
    /** A system call failed; the text has its name and errno. */
    FMPL_ERR_SYSTEM = 13,
    /** The launcher could not be reached or answered nonsense. */
    FMPL_ERR_LAUNCH = 14,
    /** There is no such request to wait for, to test or to cancel. */
    FMPL_ERR_REQUEST = 15,
    /** The ranks wait for each other in a cycle (reported only with FMPL_DEADLOCK=abort). */
    FMPL_ERR_DEADLOCK = 16,
    /** A setting has a value that cannot be used. */
    FMPL_ERR_SETTING = 17,
    /** The two sides were built with different layouts of the shared records. */
    FMPL_ERR_VERSION = 18,
    /** The library cannot do this here: the machine or the system lacks what it takes. */
    FMPL_ERR_UNSUPPORTED = 19
};

/** What every function returns when it has done its work. */
#define FMPL_SUCCESS 0

/** All ranks of the job. */
#define FMPL_COMM_WORLD 0

/** No communicator. */
#define FMPL_COMM_NULL (-1)

/** As the index of a receive: any index of this one source. */
#define FMPL_TAG_ANY (-1)

/** The same by another name: what MPI calls a tag is an index here. */
#define FMPL_INDEX_ANY (-1)

/** As a peer: nobody. The call succeeds and nothing happens. */
#define FMPL_PROC_NULL (-2)

/**
 * As a time-out (synchronous mode): a send completes once its receive is known to have been posted, and not
 * before, however long that takes. Only then may what is left of it go through the spool.
 */
#define FMPL_TIMEOUT_INFINITE (-1)

/** A kind of request: none, or one that is over. */
#define FMPL_REQUEST_NONE 0

/** A kind of request: of fmpl_isend, fmpl_isend_block, fmpl_isend_list; peer, index, comm. */
#define FMPL_REQUEST_SEND 1

/**
 * A kind of request: of fmpl_irecv, fmpl_irecv_block, fmpl_irecv_list; peer, index (or FMPL_INDEX_ANY), comm.
 */
#define FMPL_REQUEST_RECV 2

/** A kind of request: of fmpl_isend_any; peer, index, comm. */
#define FMPL_REQUEST_SEND_ANY 3

/** A kind of request: of fmpl_irecv_any; index, comm. */
#define FMPL_REQUEST_RECV_ANY 4

/** A kind of request: of fmpl_mcast; ticket. */
#define FMPL_REQUEST_MCAST 5

/** A kind of request: of fmpl_mcast_irecv; comm. */
#define FMPL_REQUEST_MCAST_RECV 6

/**
 * A kind of request: of fmpl_ibarrier or fmpl_ibarrier_n; comm and, of a call with one, ticket, which is 0
 * otherwise. So for all collective calls.
 */
#define FMPL_REQUEST_BARRIER 7

/** A kind of request: of fmpl_ibcast; comm, ticket. */
#define FMPL_REQUEST_BCAST 8

/** A kind of request: of fmpl_iallreduce; comm, ticket. */
#define FMPL_REQUEST_ALLREDUCE 9

/** A kind of request: of fmpl_ireduce; comm, ticket. */
#define FMPL_REQUEST_REDUCE 10

/** A kind of request: of fmpl_igather; comm, ticket. */
#define FMPL_REQUEST_GATHER 11

/** A kind of request: of fmpl_iallgather; comm, ticket. */
#define FMPL_REQUEST_ALLGATHER 12

/** A kind of request: of fmpl_iscatter; comm, ticket. */
#define FMPL_REQUEST_SCATTER 13

/** A kind of request: of fmpl_ialltoall; comm, ticket. */
#define FMPL_REQUEST_ALLTOALL 14

/** How many collective calls with tickets a communicator may have that are begun and not completed. */
#define FMPL_TICKETS 64

/** Room in bytes for the name of a communicator, with the zero behind it. */
#define FMPL_COMM_NAME_BYTES 64

/** Bytes of matching area for each index, for a caller that brings its own area to fmpl_init. */
#define FMPL_MA_BYTES 64

/** Bytes of completion-flag area for each index, for a caller that brings its own area to fmpl_init. */
#define FMPL_FA_BYTES 64

/**
 * A counter: other ranks whose memory this process has mapped. Only with these can anything go through shared
 * memory.
 */
#define FMPL_COUNTER_SHM_PEERS 0

/** A counter: indexed messages sent to other ranks through shared memory. */
#define FMPL_COUNTER_SHM_MESSAGES 1

/** A counter: the bytes of the messages counted by FMPL_COUNTER_SHM_MESSAGES. */
#define FMPL_COUNTER_SHM_BYTES 2

/**
 * A counter: RDMA writes to ranks on other nodes, those that carry a record and those that carry a message's
 * bytes.
 */
#define FMPL_COUNTER_RDMA_WRITES 3

/** A counter: RDMA reads from ranks on other nodes. */
#define FMPL_COUNTER_RDMA_READS 4

/** A counter: the bytes of these writes and reads. */
#define FMPL_COUNTER_RDMA_BYTES 5

/**
 * A counter: bytes of messages that a processor has copied on their way to or from another node, landings
 * apart.
 */
#define FMPL_COUNTER_RDMA_COPIED 6

/** A counter: completions of writes and reads that were taken. */
#define FMPL_COUNTER_RDMA_COMPLETIONS 7

/** For fmpl_counter: connections (RC queue pairs) with ranks on other nodes that this process has now. */
#define FMPL_COUNTER_RDMA_PAIRS 8

/** For fmpl_counter: those that all ranks of this node have now. */
#define FMPL_COUNTER_RDMA_NODE_PAIRS 9

/**
 * For fmpl_counter: connections of this process that were given up so far, because others needed their place.
 */
#define FMPL_COUNTER_RDMA_RETIRED 10

/** For fmpl_counter: packets sent to multicast groups, each to all members at once. */
#define FMPL_COUNTER_MULTICAST_PACKETS 11

/**
 * For fmpl_counter: of these packets the ones that some member did not get, and that this process sent to it
 * alone.
 */
#define FMPL_COUNTER_MULTICAST_AGAIN 12

/** For fmpl_counter: multicast groups that this process is in now. */
#define FMPL_COUNTER_MULTICAST_GROUPS 13

/**
 * For fmpl_counter: peers on other nodes with which this process has a context now, memory that they may
 * write.
 */
#define FMPL_COUNTER_RDMA_CONTEXTS 14

/** For fmpl_counter: the contexts that all ranks of this node have now. */
#define FMPL_COUNTER_RDMA_NODE_CONTEXTS 15

/**
 * For fmpl_counter: contexts of this process that were put away so far, because others needed their place.
 */
#define FMPL_COUNTER_RDMA_PUT_AWAY 16

/**
 * For fmpl_counter: peers on other nodes that this process has forgotten so far, since nothing was under way
 * with them and others needed their context.
 */
#define FMPL_COUNTER_RDMA_FORGOTTEN 25

/**
 * A counter: operations on global memory (acp.h) that were refused or have failed, with those that were to
 * follow them.
 */
#define FMPL_COUNTER_GLOBAL_REFUSED 17

/** A counter: loans that were handed over (fmpl_send_loan). */
#define FMPL_COUNTER_LOANS 18

/** A counter: bytes of messages that this process has copied into loans or out of them. */
#define FMPL_COUNTER_LOAN_COPIED 19

/** A counter: waits that slept, each as often as it did. */
#define FMPL_COUNTER_SLEEPS 20

/** A counter: nanoseconds that waits have slept, of all threads together. */
#define FMPL_COUNTER_SLEPT_NS 21

/** A counter: bytes of the spool that have ever been in use. */
#define FMPL_COUNTER_SPOOL_MOST 22

/** A counter: indexed messages received. */
#define FMPL_COUNTER_RECEIVED 23

/**
 * A counter: short messages that have gone through the overflow queue, since the one before was not received
 * yet.
 */
#define FMPL_COUNTER_QUEUED 24

/** A counter: registrations of this program's memory that are kept now for messages to other nodes. */
#define FMPL_COUNTER_REGISTRATIONS 26

/** A counter: the bytes of the registrations counted by FMPL_COUNTER_REGISTRATIONS. */
#define FMPL_COUNTER_REGISTERED_BYTES 27

/** A counter: times that a message to or from another node found its memory registered. */
#define FMPL_COUNTER_REGISTRATIONS_FOUND 28

/** A counter: registrations that were made since none was found. */
#define FMPL_COUNTER_REGISTRATIONS_MADE 29

/** Added to one of the counters FMPL_COUNTER_WAY_*: the bytes of these messages. */
#define FMPL_COUNTER_BYTES 32

/** A counter: indexed messages sent in a record of the pair, or in the overflow queue. */
#define FMPL_COUNTER_WAY_SHORT 32

/**
 * A counter: indexed messages sent stored by their sender into the posted buffer, which is memory of
 * fmpl_alloc, or its own.
 */
#define FMPL_COUNTER_WAY_STORE 33

/** A counter: indexed messages sent copied by the kernel, for their sender. */
#define FMPL_COUNTER_WAY_KERNEL 34

/** A counter: indexed messages sent through alternating buffers. */
#define FMPL_COUNTER_WAY_TURN 35

/** A counter: indexed messages sent through a ring. */
#define FMPL_COUNTER_WAY_RING 36

/** A counter: indexed messages sent copied by the kernel, for both sides in pieces. */
#define FMPL_COUNTER_WAY_SHARED 37

/** A counter: indexed messages sent copied by the kernel, for their receiver. */
#define FMPL_COUNTER_WAY_PULLED 38

/** A counter: indexed messages sent through the spool. */
#define FMPL_COUNTER_WAY_SPOOL 39

/** A counter: indexed messages sent handed over. */
#define FMPL_COUNTER_WAY_LOAN 40

/** A counter: indexed messages sent to other nodes, in a record of the pair, or in the overflow queue. */
#define FMPL_COUNTER_WAY_FAR_SHORT 41

/** A counter: indexed messages sent to other nodes, put into the posted buffer by the device. */
#define FMPL_COUNTER_WAY_FAR_PUT 42

/** A counter: indexed messages sent to other nodes, fetched from the spool by their receiver. */
#define FMPL_COUNTER_WAY_FAR_SPOOL 43

/** The version that this header belongs to: 10000 * major + 100 * minor + patch. */
#define FMPL_VERSION 100

/* ---- Life of the job ----------------------------------------------------------------------------------- */

/**
 * Joins the job with room for count messages in flight from and to each peer. Init is counted: a further init
 * succeeds and the largest count holds from then on. Ranks may give different counts; the smaller one of a
 * pair holds for it. After the last finalize init joins anew, with all ranks, under fmpl run and in a job of
 * one.
 *
 * @param[in] ma the matching area, count * FMPL_MA_BYTES bytes, or NULL: the library places it. In a job on
 *     several nodes what peers write lies there, as much as finds room in its whole pages: 4 KiB for each
 *     peer, and 16 KiB for each 64 indices that are used with it. It is the library's until the last
 *     finalize, and all zero then. On one node the library places it, and leaves this one untouched; so it
 *     does with memory that is not private.
 * @param[in] fa the completion-flag area, count * FMPL_FA_BYTES bytes, or NULL; as above.
 * @param[in] count the number of indices, 0 or more; valid indices are 0 to count - 1.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative count, FMPL_ERR_LAUNCH when the launcher cannot
 *     be reached, or lets no process join again, FMPL_ERR_MEMORY, FMPL_ERR_SETTING for an environment
 *     variable with an unusable value, FMPL_ERR_VERSION.
 * @see FMPL paper, section 3.1.
 */
int fmpl_init(void *ma, void *fa, int count);

/**
 * Leaves the job; collective. Delivers what is spooled. With several inits the last finalize does it. When it
 * fails the job is left all the same, and the process, if it would end with exit code 0, ends with 1 and says
 * why.
 *
 * @return FMPL_SUCCESS, or: FMPL_ERR_PENDING naming the messages or requests that remain.
 * @see FMPL paper, section 3.1.
 */
int fmpl_finalize(void);

/**
 * Tells whether the library is initialised (and not finalized). May be called at any time.
 *
 * @param[out] flag set to 1 or 0.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_initialized(int *flag);

/**
 * Ends the whole job, every rank of it. Does not return.
 *
 * @param[in] code the exit status of the job.
 */
int fmpl_abort(int code);

/**
 * This process's rank in a communicator.
 *
 * @param[in] comm the communicator.
 * @param[out] rank set to 0 to size - 1.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see FMPL paper, section 3.3.
 */
int fmpl_comm_rank(fmpl_comm comm, int *rank);

/**
 * The number of ranks of a communicator.
 *
 * @param[in] comm the communicator.
 * @param[out] size set to the number of ranks, 1 or more.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see FMPL paper, section 3.3.
 */
int fmpl_comm_size(fmpl_comm comm, int *size);

/* ---- Blocking messages --------------------------------------------------------------------------------- */

/**
 * Sends size bytes to index mai of rank dst. Returns when buf may be written again: the bytes are at the
 * receiver, or, when it posted no receive within the time-out of fmpl_sendbuf_set, in the spool. Messages of
 * one (communicator, peer, index) arrive in order.
 *
 * @param[in] buf the message; may be NULL when size is 0.
 * @param[in] size bytes; there is no upper bound but memory.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, 0 to count - 1 of the smaller count of the two ranks.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT (a null buffer with a size), FMPL_ERR_RANK, FMPL_ERR_INDEX,
 *     FMPL_ERR_COMM, FMPL_ERR_BUSY (an isend on this index is not completed), FMPL_ERR_SPOOL_FULL (time-out 0
 *     only: nothing was sent), FMPL_ERR_PEER (the receiver has died or left).
 * @see FMPL paper, section 3.2.1.
 */
int fmpl_send(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Receives the next message on index mai from rank src. A message shorter than the buffer is fine;
 * fmpl_received tells its length.
 *
 * @param[out] buf where it goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY. Between any-index and indexed receives no order is promised.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE (the message was longer; its first size bytes are in buf),
 *     FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY (an irecv on this index
 *     is not completed), FMPL_ERR_PEER.
 * @see FMPL paper, section 3.2.1.
 */
int fmpl_recv(void *buf, size_t size, int src, int mai, fmpl_comm comm);

/**
 * A send and a receive at the same time. Two ranks that exchange messages this way do not wait for a
 * time-out.
 *
 * @param[in] sbuf the message to send; must not overlap rbuf.
 * @param[in] ssize its bytes.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] smai the index to send on.
 * @param[out] rbuf where the received message goes.
 * @param[in] rsize bytes of room.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] rmai the index to receive on, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return what fmpl_send and fmpl_recv return. Where the send is refused nothing has been received, unless
 *     the peer dies meanwhile or is this rank itself: in buffered mode it waits for room in the spool once a
 *     message has come.
 */
int fmpl_sendrecv(const void *sbuf, size_t ssize, int dst, int smai, void *rbuf, size_t rsize, int src,
    int rmai, fmpl_comm comm);

/* ---- Non-blocking messages ----------------------------------------------------------------------------- */

/**
 * Begins to send. The buffer must stay unchanged until fmpl_isend_wait or fmpl_isend_test has completed the
 * request; (dst, mai, comm) names it, there is no request object. The time-out runs from here.
 *
 * @param[in] buf the message; may be NULL when size is 0.
 * @param[in] size bytes.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send; FMPL_ERR_BUSY when a request on this (peer, index) is not completed.
 * @see FMPL paper, section 3.2.2.
 */
int fmpl_isend(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Begins to receive: tells the sender where the message may be put, and returns. The earlier, the better: a
 * sender that finds the receive posted writes straight into buf. The buffer must not be touched until
 * fmpl_irecv_wait or fmpl_irecv_test has completed the request, or fmpl_irecv_cancel has withdrawn it.
 *
 * @param[out] buf where the message goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY,
 *     FMPL_ERR_PEER.
 * @see FMPL paper, section 3.2.2.
 */
int fmpl_irecv(void *buf, size_t size, int src, int mai, fmpl_comm comm);

/**
 * Waits until the buffer of the isend on (dst, mai, comm) may be written again; spools like fmpl_send.
 *
 * @param[in] dst the receiver's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such isend; otherwise as fmpl_send.
 * @see FMPL paper, section 3.2.2.
 */
int fmpl_isend_wait(int dst, int mai, fmpl_comm comm);

/**
 * Waits until the message of the irecv on (src, mai, comm) is in its buffer.
 *
 * @param[in] src the sender's rank.
 * @param[in] mai the index, or FMPL_TAG_ANY for the any-index receive.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such irecv; otherwise as fmpl_recv.
 * @see FMPL paper, section 3.2.2.
 */
int fmpl_irecv_wait(int src, int mai, fmpl_comm comm);

/**
 * Completes the isend on (dst, mai, comm) if that needs no waiting. When done is set to 1 the request is
 * completed as by fmpl_isend_wait.
 *
 * @param[in] dst the receiver's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @return as fmpl_isend_wait; FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_isend_test(int dst, int mai, fmpl_comm comm, int *done);

/**
 * Completes the irecv on (src, mai, comm) if its message is there. When done is set to 1 the request is
 * completed as by fmpl_irecv_wait.
 *
 * @param[in] src the sender's rank.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @return as fmpl_irecv_wait; FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_irecv_test(int src, int mai, fmpl_comm comm, int *done);

/**
 * Length and index of the last completed receive on (src, mai, comm). It is to be asked soon: of peers on
 * other nodes that have been forgotten since, only 4096 lengths are kept, the latest (docs/memory.md).
 *
 * @param[in] src the sender's rank.
 * @param[in] mai the index that the receive gave, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @param[out] size set to the message's length in bytes, which is more than the buffer's when it was
 *     truncated; may be NULL.
 * @param[out] index set to the index that it matched; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when no receive has been completed there; FMPL_ERR_RANK,
 *     FMPL_ERR_INDEX, FMPL_ERR_COMM.
 */
int fmpl_received(int src, int mai, fmpl_comm comm, size_t *size, int *index);

/**
 * Looks whether a receive would find a message now, and how long it is. Takes nothing.
 *
 * @param[in] src the sender's rank.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @param[out] there set to 1 or 0.
 * @param[out] size set to the message's length in bytes when it is there, else to 0.
 * @return FMPL_SUCCESS, or: FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM; FMPL_ERR_ARGUMENT for a NULL
 *     pointer; FMPL_ERR_PEER.
 */
int fmpl_probe(int src, int mai, fmpl_comm comm, int *there, size_t *size);

/**
 * Withdraws the irecv on (src, mai, comm), unless a message is already on its way into the buffer.
 *
 * @param[in] src the sender's rank.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @param[out] cancelled set to 1: the buffer is the caller's again; or to 0: too late, complete the request
 *     as usual.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such irecv; FMPL_ERR_ARGUMENT for a NULL
 *     pointer.
 */
int fmpl_irecv_cancel(int src, int mai, fmpl_comm comm, int *cancelled);

/* ---- Modes of sending ---------------------------------------------------------------------------------- */

/**
 * Sets the spool and the time-out of all communicators that have none of their own. Without it the spool has
 * 16 MiB and the time-out is 10 ms. May be called again at any time: size and time-out hold at once for later
 * sends, and what is spooled stays.
 *
 * @param[in] buf where the spool is to lie; may be NULL. In a job on several nodes it does, in units of 64
 *     KiB, after what it has used by then; the memory is the library's until the last finalize, and all zero
 *     then. On one node receivers fetch spooled messages from memory that the library allocates, up to size,
 *     and this is left untouched; so is memory that is not private.
 * @param[in] size bytes that may be spooled.
 * @param[in] timeout_ms how long a send of more than the eager size (FMPL_EAGER) waits at least for its
 *     receive before it copies the message into the spool, in milliseconds; shorter ones never wait for it,
 *     unless that size is 0. 0 is buffered mode, FMPL_TIMEOUT_INFINITE synchronous mode, in which every send
 *     waits, all else standard mode.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative time-out that is not FMPL_TIMEOUT_INFINITE;
 *     FMPL_ERR_MEMORY.
 * @see FMPL paper, section 3.2.1.
 */
int fmpl_sendbuf_set(void *buf, size_t size, int timeout_ms);

/**
 * Sets the spool and the time-out of one communicator.
 *
 * @param[in] comm the communicator.
 * @param[in] buf as for fmpl_sendbuf_set.
 * @param[in] size its bytes.
 * @param[in] timeout_ms milliseconds, as for fmpl_sendbuf_set.
 * @return as fmpl_sendbuf_set; FMPL_ERR_COMM.
 */
int fmpl_comm_sendbuf_set(fmpl_comm comm, void *buf, size_t size, int timeout_ms);

/**
 * Looks at the spool.
 *
 * @param[out] nsend set to the number of spooled messages that were delivered since the last check.
 * @param[out] nspool set to the number of those that still wait.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see FMPL paper, section 3.2.1.
 */
int fmpl_sendbuf_check(int *nsend, int *nspool);

/* ---- Time, progress ------------------------------------------------------------------------------------ */

/**
 * Time in seconds since some moment in the past; the same origin for all ranks of a node. May be called at
 * any time.
 */
double fmpl_wtime(void);

/**
 * Moves what can be moved. On shared memory nothing needs it for messages to be delivered.
 *
 * @return FMPL_SUCCESS, or: FMPL_ERR_PEER naming a rank that has died.
 */
int fmpl_progress(void);

/**
 * A descriptor for event loops (poll, epoll): it becomes readable when a request of this process completes.
 * Read it empty (8 bytes), then test the requests. It belongs to the library and stays open until finalize.
 *
 * @param[out] fd set to the descriptor.
 * @return FMPL_SUCCESS, or: FMPL_ERR_SYSTEM; FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_event_fd(int *fd);

/* ---- Memory that peers can reach ----------------------------------------------------------------------- */

/**
 * Allocates memory that the ranks of the node can reach directly: messages received there are stored by the
 * sender with one copy and no system call. Aligned to 64 bytes at least.
 *
 * @param[in] size bytes.
 * @return the memory, or NULL; fmpl_last_error says why.
 */
void *fmpl_alloc(size_t size);

/**
 * Gives memory back that came from fmpl_alloc. No request may still use it.
 *
 * @param[in] ptr what fmpl_alloc returned; NULL: nothing happens.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for memory that fmpl_alloc did not return.
 */
int fmpl_free(void *ptr);

/* ---- Errors and version -------------------------------------------------------------------------------- */

/**
 * What an error code means, in a few words. May be called at any time.
 *
 * @param[in] code what a function returned.
 * @return a text that always stays valid.
 */
const char *fmpl_strerror(int code);

/**
 * What went wrong in the last call of this thread that failed: the operation, rank, peer, index, sizes. May
 * be called at any time.
 *
 * @return a text that stays valid until the thread's next failing call; "" when no call has failed.
 */
const char *fmpl_last_error(void);

/**
 * The version of the library that is running, to be compared with FMPL_VERSION. May be called at any time.
 *
 * @return 10000 * major + 100 * minor + patch.
 */
int fmpl_version(void);

/* ---- Ranks from outside -------------------------------------------------------------------------------- */

/**
 * Joins a job as fmpl_init does, with ranks of the program's own and an allgather of its own. All ranks call
 * it.
 *
 * @param[in] rank this process's rank, 0 to size - 1.
 * @param[in] size the number of ranks.
 * @param[in] exchange the allgather. It is called within this call only, by the calling thread, equally often
 *     and with equal sizes on all ranks (twice, with some hundred bytes). What it returns, if not 0, makes
 *     init fail on all ranks.
 * @param[in] state passed on to exchange.
 * @param[in] count the number of indices, as for fmpl_init.
 * @return as fmpl_init; FMPL_ERR_LAUNCH when the exchange has failed on some rank, or gives a part to another
 *     rank than it is of.
 */
int fmpl_init_with(int rank, int size, fmpl_exchange exchange, void *state, int count);

/**
 * Makes an identifier of a job. One process does, one that will be a rank of the job, and passes it round to
 * the others by whatever the program has; then all call fmpl_init_id. It scales: nothing is gathered. It has
 * a secret in it: whoever gets it can join the job. The process listens from then on for the others.
 *
 * @param[out] id set to the identifier.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a NULL pointer, FMPL_ERR_SYSTEM.
 */
int fmpl_id_create(fmpl_id *id);

/**
 * Joins the job of an identifier as fmpl_init does. All its ranks call it, the one that has made it among
 * them.
 *
 * @param[in] id the identifier, the same for all.
 * @param[in] rank this process's rank, 0 to size - 1.
 * @param[in] size the number of ranks.
 * @param[in] count the number of indices, as for fmpl_init.
 * @return as fmpl_init; FMPL_ERR_ARGUMENT when it is no identifier, or no rank of so many.
 */
int fmpl_init_id(const fmpl_id *id, int rank, int size, int count);

/* ---- Communicators ------------------------------------------------------------------------------------- */

/**
 * Makes communicators of the ranks of the world; all of them call it. Those with equal keys form one
 * communicator, in the order of their ranks in the world. Messages of different communicators never mix, on
 * equal indices either.
 *
 * @param[out] comm set to the communicator, or to FMPL_COMM_NULL where the key is negative.
 * @param[in] key 0 or more: which communicator; negative: none.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a NULL pointer, or when other ranks call another function;
 *     FMPL_ERR_PEER when a rank has died or left; FMPL_ERR_MEMORY (the most is 4095 at a time); FMPL_ERR_BUSY
 *     when another thread is in such a call.
 * @see FMPL paper, section 3.3.
 */
int fmpl_comm_create(fmpl_comm *comm, int key);

/**
 * Makes communicators of the ranks of a communicator; all of them call it. Those with equal colours form one,
 * ordered by order and, where that is equal, by their ranks in comm.
 *
 * @param[in] comm the communicator to split.
 * @param[in] colour 0 or more: which communicator; negative: none.
 * @param[in] order where in it.
 * @param[out] newcomm set to the communicator, or to FMPL_COMM_NULL where the colour is negative.
 * @return as fmpl_comm_create; FMPL_ERR_COMM.
 * @see MPI_Comm_split.
 */
int fmpl_comm_split(fmpl_comm comm, int colour, int order, fmpl_comm *newcomm);

/**
 * Makes a communicator of the ranks of each node, which share memory; all ranks of the communicator call it.
 *
 * @param[in] comm the communicator to split.
 * @param[in] order where in the new one; where it is equal the ranks in comm decide.
 * @param[out] newcomm set to that of this rank's node.
 * @return as fmpl_comm_split.
 * @see MPI_Comm_split_type with MPI_COMM_TYPE_SHARED.
 */
int fmpl_comm_split_node(fmpl_comm comm, int order, fmpl_comm *newcomm);

/**
 * Makes a communicator of the same ranks in the same order, with indices of its own; all of them call it.
 *
 * @param[in] comm the communicator.
 * @param[out] newcomm set to the new one.
 * @return as fmpl_comm_split.
 */
int fmpl_comm_dup(fmpl_comm comm, fmpl_comm *newcomm);

/**
 * Makes a communicator of some ranks of a communicator, in the order of the list; they alone call it, all
 * with the same list. The others know nothing of it, and may be dead: so those who live go on without the
 * dead.
 *
 * @param[in] comm the communicator that has them.
 * @param[in] ranks their ranks there, each once.
 * @param[in] n how many they are, 1 or more.
 * @param[out] newcomm set to the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a NULL pointer, or when the list has no rank, one twice,
 *     not the caller, or others than another rank's; FMPL_ERR_RANK; FMPL_ERR_COMM; FMPL_ERR_PEER when one of
 *     them has died or left; FMPL_ERR_MEMORY, FMPL_ERR_BUSY as fmpl_comm_create.
 * @see MPI_Comm_create_group.
 */
int fmpl_comm_group_create(fmpl_comm comm, const int *ranks, int n, fmpl_comm *newcomm);

/**
 * Frees a communicator. Each of its ranks does so, when it likes: nobody is waited for. What this rank has
 * sent before can still be received by ranks that have not freed theirs; what it has not received is lost. No
 * thread may be in another call on it.
 *
 * @param[out] comm the communicator; set to FMPL_COMM_NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM (also for FMPL_COMM_WORLD); FMPL_ERR_BUSY naming a request that is
 *     not completed, or a multicast with a ticket that is not complete, and then nothing is freed;
 *     FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_comm_free(fmpl_comm *comm);

/**
 * Gives a communicator a name, which stands behind its number in errors, in reports of stalls and of events.
 * Each rank does so for itself, when it likes.
 *
 * @param[in] comm the communicator.
 * @param[in] name at most FMPL_COMM_NAME_BYTES - 1 bytes of UTF-8; "" takes the name away.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_ARGUMENT for a name that is too long or no UTF-8, or a
 *     NULL pointer.
 * @see MPI_Comm_set_name.
 */
int fmpl_comm_set_name(fmpl_comm comm, const char *name);

/**
 * What this rank has named a communicator.
 *
 * @param[in] comm the communicator.
 * @param[out] name filled with the name and a zero; "" when it has none.
 * @param[in] size room there in bytes; FMPL_COMM_NAME_BYTES always suffice.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_TRUNCATE when there is too little room, and then nothing
 *     is filled; FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see MPI_Comm_get_name.
 */
int fmpl_comm_name(fmpl_comm comm, char *name, size_t size);

/**
 * Which rank of one communicator a rank of another is.
 *
 * @param[in] from a communicator.
 * @param[in] rank a rank of it, or FMPL_PROC_NULL.
 * @param[in] to another communicator.
 * @param[out] result set to the rank in to of the same process, or to FMPL_PROC_NULL if it is no member.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM, FMPL_ERR_RANK; FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see MPI_Group_translate_ranks.
 */
int fmpl_comm_translate(fmpl_comm from, int rank, fmpl_comm to, int *result);

/* ---- Shared windows ------------------------------------------------------------------------------------ */

/**
 * Allocates memory for each rank of a communicator, side by side in the order of the ranks, which all of them
 * read and write as their own. All ranks of the communicator call it, and are on one node. When what is
 * written is there for others, they settle between them, by messages or a barrier.
 *
 * @param[in] size bytes of this rank's part; each may have another. The first part is aligned to 64 bytes, to
 *     a page from 4096 bytes in all; each begins where the one before ends.
 * @param[in] comm the communicator.
 * @param[out] mine set to where this rank's part begins.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM also when a rank is on another node (fmpl_comm_split_node makes a
 *     communicator of one); FMPL_ERR_MEMORY; FMPL_ERR_PEER when a rank has died; FMPL_ERR_ARGUMENT for a NULL
 *     pointer.
 * @see MPI_Win_allocate_shared.
 */
int fmpl_shared_alloc(size_t size, fmpl_comm comm, void **mine);

/**
 * Where another rank's part of a shared window lies in this process. Waits for nobody.
 *
 * @param[in] mine what fmpl_shared_alloc has set.
 * @param[in] rank a rank of the communicator.
 * @param[out] at set to where its part begins.
 * @param[out] size set to its bytes; NULL: nobody wants to know.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when no part of this rank's begins at mine, and for a NULL
 *     pointer; FMPL_ERR_RANK.
 * @see MPI_Win_shared_query.
 */
int fmpl_shared_query(const void *mine, int rank, void **at, size_t *size);

/**
 * Gives the memory of a shared window back. All ranks of the communicator call it; afterwards none uses the
 * memory.
 *
 * @param[in] mine what fmpl_shared_alloc has set.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when no part of this rank's begins there, or when another rank
 *     gives another window back; FMPL_ERR_COMM when the communicator has been freed; then the window is as it
 *     was. FMPL_ERR_PEER when a rank has died: then nobody may use it any more, and the memory goes with the
 *     job at the latest.
 * @see MPI_Win_free.
 */
int fmpl_shared_free(void *mine);

/* ---- Sub-matrices and lists ---------------------------------------------------------------------------- */

/**
 * Sends the runs of a block: fmpl_send for a sub-matrix, with no copy where the fabric can gather and
 * scatter.
 *
 * @param[in] buf the first byte of the first run.
 * @param[in] block the shape.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send; FMPL_ERR_ARGUMENT also when the shape overflows.
 */
int fmpl_send_block(const void *buf, fmpl_block block, int dst, int mai, fmpl_comm comm);

/**
 * Receives into the runs of a block: fmpl_recv for a sub-matrix, with no copy where the fabric can gather and
 * scatter.
 *
 * @param[out] buf the first byte of the first run.
 * @param[in] block the shape.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return as fmpl_recv; FMPL_ERR_ARGUMENT also when the shape overflows.
 */
int fmpl_recv_block(void *buf, fmpl_block block, int src, int mai, fmpl_comm comm);

/**
 * Begins to send the runs of a block: fmpl_isend for a sub-matrix, with no copy where the fabric can gather
 * and scatter.
 *
 * @param[in] buf the first byte of the first run.
 * @param[in] block the shape.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_isend; FMPL_ERR_ARGUMENT also when the shape overflows.
 */
int fmpl_isend_block(const void *buf, fmpl_block block, int dst, int mai, fmpl_comm comm);

/**
 * Begins to receive into the runs of a block: fmpl_irecv for a sub-matrix, with no copy where the fabric can
 * gather and scatter.
 *
 * @param[out] buf the first byte of the first run.
 * @param[in] block the shape.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return as fmpl_irecv; FMPL_ERR_ARGUMENT also when the shape overflows.
 */
int fmpl_irecv_block(void *buf, fmpl_block block, int src, int mai, fmpl_comm comm);

/**
 * Sends the pieces of a list: fmpl_send for triangles and the like.
 *
 * @param[in] iov the pieces' descriptors; they are only read, during the call.
 * @param[in] n their number, 0 or more.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send; FMPL_ERR_ARGUMENT also for a negative n.
 */
int fmpl_send_list(const struct iovec *iov, int n, int dst, int mai, fmpl_comm comm);

/**
 * Receives into the pieces of a list: fmpl_recv for triangles and the like.
 *
 * @param[in] iov the pieces' descriptors; they are only read, during the call.
 * @param[in] n their number, 0 or more.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return as fmpl_recv; FMPL_ERR_ARGUMENT also for a negative n.
 */
int fmpl_recv_list(const struct iovec *iov, int n, int src, int mai, fmpl_comm comm);

/**
 * Begins to send the pieces of a list: fmpl_isend for triangles and the like.
 *
 * @param[in] iov the pieces' descriptors; they are only read, but must stay until the request is completed.
 * @param[in] n their number, 0 or more.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_isend; FMPL_ERR_ARGUMENT also for a negative n.
 */
int fmpl_isend_list(const struct iovec *iov, int n, int dst, int mai, fmpl_comm comm);

/**
 * Begins to receive into the pieces of a list: fmpl_irecv for triangles and the like.
 *
 * @param[in] iov the pieces' descriptors; they are only read, but must stay until the request is completed.
 * @param[in] n their number, 0 or more.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, or FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return as fmpl_irecv; FMPL_ERR_ARGUMENT also for a negative n.
 */
int fmpl_irecv_list(const struct iovec *iov, int n, int src, int mai, fmpl_comm comm);

/* ---- Messages of any source ---------------------------------------------------------------------------- */

/**
 * Sends size bytes to index mai of rank dst, to be received by whoever receives from any source there. These
 * indices have nothing to do with those of indexed messages. The receiver has room for a number of messages
 * that does not depend on how many send (FMPL_ANY_SLOTS, 512 without it; fmpl_recv_any_limit); when they are
 * all taken the send waits. Messages of one sender to one (receiver, index, communicator) arrive in order.
 * Any number of threads may send at once.
 *
 * Returns when buf may be written again: a message of up to 1 KiB is then at the receiver, a longer one has
 * been fetched by it or, after the time-out of fmpl_sendbuf_set, is in the spool. In synchronous mode, when
 * it is received.
 *
 * @param[in] buf the message; may be NULL when size is 0.
 * @param[in] size bytes; there is no upper bound but memory.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index, 0 to count - 1 of the smaller count of the two ranks.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_INDEX, FMPL_ERR_COMM,
 *     FMPL_ERR_SPOOL_FULL (time-out 0 only: no room at the receiver or in the spool, nothing was sent),
 *     FMPL_ERR_PEER (the receiver has died or left, or has freed the communicator, where this would wait for
 *     it).
 * @see FMPL paper, section 3.2.4; buffer acquisition by remote atomics, section 4.
 */
int fmpl_send_any(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Receives the next message on index mai, whoever sends it.
 *
 * @param[out] buf where it goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_recv_any_from.
 * @see FMPL paper, section 3.2.4.
 */
int fmpl_recv_any(void *buf, size_t size, int mai, fmpl_comm comm);

/**
 * Receives the next message on index mai, whoever sends it, and tells who did and how long it is.
 *
 * @param[out] buf where it goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] src set to the sender's rank; may be NULL.
 * @param[out] received set to the message's length in bytes, which is more than size when it was truncated;
 *     may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE (the message was longer; its first size bytes are in buf),
 *     FMPL_ERR_ARGUMENT, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY (another thread receives there, or an
 *     irecv_any is not completed), FMPL_ERR_PEER: a rank has died, which a waiting receive tells once on each
 *     index; later receives go on with the others.
 */
int fmpl_recv_any_from(void *buf, size_t size, int mai, fmpl_comm comm, int *src, size_t *received);

/**
 * Looks whether a receive from any source would find a message now, from whom, and how long it is. Takes
 * nothing.
 *
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] there set to 1 or 0.
 * @param[out] src set to the sender's rank when it is there; may be NULL.
 * @param[out] size set to the message's length in bytes when it is there, else to 0; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY; FMPL_ERR_ARGUMENT when there is
 *     NULL.
 */
int fmpl_probe_any(int mai, fmpl_comm comm, int *there, int *src, size_t *size);

/**
 * Begins to send to a receiver of any source. The buffer must stay unchanged until fmpl_isend_any_wait or
 * fmpl_isend_any_test has completed the request; (dst, mai, comm) names it.
 *
 * @param[in] buf the message; may be NULL when size is 0.
 * @param[in] size bytes.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send_any; FMPL_ERR_BUSY when such a request is not completed.
 */
int fmpl_isend_any(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Waits until the buffer of the isend_any to (dst, mai, comm) may be written again.
 *
 * @param[in] dst the receiver's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_send_any.
 */
int fmpl_isend_any_wait(int dst, int mai, fmpl_comm comm);

/**
 * Completes the isend_any to (dst, mai, comm) if that needs no waiting.
 *
 * @param[in] dst the receiver's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @return as fmpl_isend_any_wait; FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_isend_any_test(int dst, int mai, fmpl_comm comm, int *done);

/**
 * Begins to receive from any source. The buffer must not be touched until fmpl_irecv_any_wait or
 * fmpl_irecv_any_test has completed the request, or fmpl_irecv_any_cancel has withdrawn it; (mai, comm) names
 * it.
 *
 * @param[out] buf where the message goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_INDEX, FMPL_ERR_COMM, FMPL_ERR_BUSY.
 */
int fmpl_irecv_any(void *buf, size_t size, int mai, fmpl_comm comm);

/**
 * Waits until the message of the irecv_any on (mai, comm) is in its buffer.
 *
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] src set to the sender's rank; may be NULL.
 * @param[out] received set to the message's length in bytes; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_recv_any_from,
 *     and the request is over.
 */
int fmpl_irecv_any_wait(int mai, fmpl_comm comm, int *src, size_t *received);

/**
 * Completes the irecv_any on (mai, comm) if its message is there.
 *
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @param[out] src set to the sender's rank when done is 1; may be NULL.
 * @param[out] received set to the message's length in bytes when done is 1; may be NULL.
 * @return as fmpl_irecv_any_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_irecv_any_test(int mai, fmpl_comm comm, int *done, int *src, size_t *received);

/**
 * Withdraws the irecv_any on (mai, comm), unless a message is already on its way into the buffer.
 *
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] cancelled set to 1: the buffer is the caller's again; or to 0: too late, complete the request
 *     as usual.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; FMPL_ERR_ARGUMENT for a NULL
 *     pointer.
 */
int fmpl_irecv_any_cancel(int mai, fmpl_comm comm, int *cancelled);

/**
 * Limits how many messages to index mai of this rank may be outstanding, that is, sent and not yet received.
 * Senders beyond wait. May be changed at any time.
 *
 * @param[in] most the limit; 0: as many as there is room for, which is also the most (FMPL_ANY_SLOTS).
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT for a negative limit, FMPL_ERR_INDEX, FMPL_ERR_COMM.
 * @see limit of the number of messages by remote atomics, section 4.
 */
int fmpl_recv_any_limit(int most, int mai, fmpl_comm comm);

/* ---- Multicast to a group chosen for each message ------------------------------------------------------ */

/**
 * Sends size bytes to the ranks whose bits are set. The group is chosen anew for each call; nobody else takes
 * part, and no communicator is made. The caller, the master, sends one message, to the member of the lowest
 * rank; the members pass the news on by a binomial tree and take the data out of the master's memory by
 * themselves. Each member calls fmpl_mcast_recv. Any number of multicasts to different groups may be under
 * way; those of one master may arrive in another order when the groups differ.
 *
 * @param[in] buf the message; may be NULL when size is 0. With a ticket it must stay unchanged until that is
 *     complete.
 * @param[in] size bytes.
 * @param[in] members the bitmap: bit r % 64 of word r / 64 for rank r; a word for each 64 ranks of the
 *     communicator. The caller may be a member.
 * @param[in] comm the communicator.
 * @param[out] ticket set to a number by which fmpl_mcast_wait and fmpl_mcast_test know this multicast; or
 *     NULL: the message is copied, buf may be changed on return, and nobody is told when it has arrived.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT (nobody is a member), FMPL_ERR_RANK, FMPL_ERR_COMM,
 *     FMPL_ERR_SPOOL_FULL (no room for the message or its records: in buffered mode, or ever), FMPL_ERR_PEER.
 * @see dynamic multicast, section 3.
 */
int fmpl_mcast(const void *buf, size_t size, const uint64_t *members, fmpl_comm comm, uint64_t *ticket);

/**
 * Waits until every member of a multicast has its data; the buffer may then be changed.
 *
 * @param[in] ticket what fmpl_mcast gave.
 * @return FMPL_SUCCESS, or: FMPL_ERR_PEER when a member has died or, on this node, freed the communicator
 *     without: the multicast is given up, its ticket is over, and members that have not begun to receive it
 *     get FMPL_ERR_PEER; FMPL_ERR_REQUEST for what is no ticket.
 */
int fmpl_mcast_wait(uint64_t ticket);

/**
 * Tells whether every member of a multicast has its data.
 *
 * @param[in] ticket what fmpl_mcast gave.
 * @param[out] done set to 1 or 0.
 * @return as fmpl_mcast_wait; FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_mcast_test(uint64_t ticket, int *done);

/**
 * Receives the next multicast of which this rank is a member.
 *
 * @param[out] buf where it goes; may be NULL when capacity is 0.
 * @param[in] capacity bytes of room.
 * @param[in] comm the communicator.
 * @param[out] size set to the message's length in bytes, which is more than capacity when it was truncated;
 *     may be NULL.
 * @param[out] master set to the rank that has sent it; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_TRUNCATE, FMPL_ERR_ARGUMENT, FMPL_ERR_COMM, FMPL_ERR_BUSY (another
 *     thread receives multicasts, or a request is not completed), FMPL_ERR_PEER: a rank has died, as for
 *     fmpl_recv_any_from, or a multicast was given up.
 * @see dynamic multicast, section 3.
 */
int fmpl_mcast_recv(void *buf, size_t capacity, fmpl_comm comm, size_t *size, int *master);

/**
 * Receives the next message on index mai, whoever sends it, or the next multicast of which this rank is a
 * member, whichever comes first: for a worker that gets tasks of its own, and is a member of groups that it
 * does not know beforehand. Where both are there each has its turn.
 *
 * @param[out] buf where it goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] src set to the rank that has sent it, of a multicast its master; may be NULL.
 * @param[out] received set to the message's length in bytes, which is more than size when it was truncated;
 *     may be NULL.
 * @param[out] is_mcast set to 1 for a multicast, to 0 for a message; may be NULL.
 * @return as fmpl_recv_any_from and as fmpl_mcast_recv; a death is told once for both.
 * @see dynamic multicast, section 4.5.
 */
int fmpl_recv_any_or_mcast(void *buf, size_t size, int mai, fmpl_comm comm, int *src, size_t *received,
    int *is_mcast);

/**
 * Begins to receive the next multicast of which this rank is a member. The buffer must not be touched until
 * fmpl_mcast_irecv_wait or fmpl_mcast_irecv_test has completed the request, or fmpl_mcast_irecv_cancel has
 * withdrawn it. Members further down the tree wait for that.
 *
 * @param[out] buf where it goes; may be NULL when capacity is 0.
 * @param[in] capacity bytes of room.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_COMM, FMPL_ERR_BUSY.
 */
int fmpl_mcast_irecv(void *buf, size_t capacity, fmpl_comm comm);

/**
 * Waits for the multicast of fmpl_mcast_irecv.
 *
 * @param[in] comm the communicator.
 * @param[out] size set to the message's length in bytes; may be NULL.
 * @param[out] master set to the rank that has sent it; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_mcast_recv, and
 *     the request is over.
 */
int fmpl_mcast_irecv_wait(fmpl_comm comm, size_t *size, int *master);

/**
 * Completes the request of fmpl_mcast_irecv if its multicast is there.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @param[out] size set to the message's length in bytes when done is 1; may be NULL.
 * @param[out] master set to the rank that has sent it when done is 1; may be NULL.
 * @return as fmpl_mcast_irecv_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_mcast_irecv_test(fmpl_comm comm, int *done, size_t *size, int *master);

/**
 * Withdraws the request of fmpl_mcast_irecv: the buffer is the caller's again.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; FMPL_ERR_COMM.
 */
int fmpl_mcast_irecv_cancel(fmpl_comm comm);

/* ---- Prepared messages --------------------------------------------------------------------------------- */

/**
 * Prepares a send that is begun over and over with the same buffer, by fmpl_send_start; what was prepared on
 * this (peer, index) before is forgotten. Nothing is sent, and the buffer may be changed until a start. It
 * meets the peer, as the first message does.
 *
 * @param[in] buf the message of every start; may be NULL when size is 0.
 * @param[in] size bytes.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator; what is prepared on it ends with it.
 * @return as fmpl_isend.
 * @see FMPL paper, section 3.2.2; MPI_Send_init.
 */
int fmpl_send_init(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Prepares a receive that is begun over and over with the same buffer, by fmpl_recv_start; what was prepared
 * on this (peer, index) before is forgotten. Nothing is received, and the buffer may be used until a start.
 *
 * @param[out] buf where the message of every start goes; may be NULL when size is 0.
 * @param[in] size bytes of room.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index; not FMPL_INDEX_ANY.
 * @param[in] comm the communicator; what is prepared on it ends with it.
 * @return as fmpl_irecv.
 * @see FMPL paper, section 3.2.2; MPI_Recv_init.
 */
int fmpl_recv_init(void *buf, size_t size, int src, int mai, fmpl_comm comm);

/**
 * Begins the send that is prepared. From here on it is a request as that of fmpl_isend, and completed as
 * that; then it can be started again.
 *
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_isend; FMPL_ERR_REQUEST when nothing is prepared.
 * @see FMPL paper, section 3.2.2; MPI_Start.
 */
int fmpl_send_start(int dst, int mai, fmpl_comm comm);

/**
 * Begins the receive that is prepared. From here on it is a request as that of fmpl_irecv, and completed or
 * withdrawn as that; then it can be started again.
 *
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_irecv; FMPL_ERR_REQUEST when nothing is prepared.
 * @see FMPL paper, section 3.2.2; MPI_Start.
 */
int fmpl_recv_start(int src, int mai, fmpl_comm comm);

/* ---- Several requests at a time ------------------------------------------------------------------------ */

/**
 * Waits until all of several requests are over, whatever becomes of each. Of a request that is over kind is
 * FMPL_REQUEST_NONE; of a receive, peer, index and ticket are the message's source, index and bytes.
 *
 * @param[in,out] requests which; those of kind FMPL_REQUEST_NONE are over.
 * @param[in] n their number.
 * @param[out] codes set to what the call that completes each alone would return, but for those that are over
 *     already; may be NULL.
 * @return the code of the first that failed, which after FMPL_ERR_BUSY (another thread completes it) is not
 *     over; FMPL_ERR_ARGUMENT for a negative number, no requests, or a kind that there is not.
 * @see MPI_Waitall.
 */
int fmpl_waitall(fmpl_request *requests, int n, int *codes);

/**
 * Completes those of several requests that need no waiting, and says whether that leaves none.
 *
 * @param[in,out] requests as for fmpl_waitall.
 * @param[in] n their number.
 * @param[out] done set to 1 when all are over, else to 0.
 * @param[out] codes set for those that this call has completed, as by fmpl_waitall; may be NULL.
 * @return as fmpl_waitall; FMPL_ERR_ARGUMENT for a NULL pointer.
 * @see MPI_Testall, which completes none unless all are done.
 */
int fmpl_testall(fmpl_request *requests, int n, int *done, int *codes);

/**
 * Waits until one of several requests is over, whichever.
 *
 * @param[in,out] requests as for fmpl_waitall.
 * @param[in] n their number.
 * @param[out] which set to the place of the one that is over, from 0 on; to -1 when all are over already, or
 *     none is: after FMPL_ERR_BUSY, and FMPL_ERR_DEADLOCK of several requests.
 * @return what the call that completes it alone would return; FMPL_ERR_ARGUMENT as for fmpl_waitall, and for
 *     a NULL pointer.
 * @see MPI_Waitany.
 */
int fmpl_waitany(fmpl_request *requests, int n, int *which);

/**
 * Waits until one of several requests is over, and completes all that are over then.
 *
 * @param[in,out] requests as for fmpl_waitall.
 * @param[in] n their number.
 * @param[out] count set to how many this call has completed; 0: all were over already.
 * @param[out] which set to their places, from 0 on; room for n.
 * @param[out] codes set to the code of each of these, in the same order; may be NULL.
 * @return the code of the first that failed; FMPL_ERR_ARGUMENT as for fmpl_waitall, and for a NULL pointer.
 * @see MPI_Waitsome.
 */
int fmpl_waitsome(fmpl_request *requests, int n, int *count, int *which, int *codes);

/* ---- Messages that are handed over --------------------------------------------------------------------- */

/**
 * Memory to fill and to hand over: a *loan*. On a node its receiver gets this memory itself, so that a
 * message of any length costs little more than one of 8 bytes. Aligned to 64 bytes, to a page from 4096 bytes
 * on; its contents are not defined. It is the caller's until fmpl_send_loan or fmpl_loan_return; not for
 * fmpl_free.
 *
 * @param[in] size bytes; 0 is fine.
 * @param[out] buf set to its beginning.
 * @return FMPL_SUCCESS, or: FMPL_ERR_MEMORY when as many loans or bytes are out as FMPL_LOANS allows;
 *     FMPL_ERR_ARGUMENT for a NULL pointer.
 */
int fmpl_loan(size_t size, void **buf);

/**
 * Hands a loan over to index mai of rank dst, and returns at once, in all modes of sending: it waits for no
 * receive, and its bytes need no room in the spool. It is the receiver's from then on; the caller may neither
 * read nor write it. To an ordinary receive it is a message like any other, and is copied there. To a rank on
 * another node its bytes are sent as by fmpl_send.
 *
 * @param[out] buf the beginning of a loan from fmpl_loan.
 * @param[in] size bytes of the message, no more than the loan has.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when buf is not the beginning of a loan, or the loan is
 *     shorter, was received, was handed over or returned before; otherwise as fmpl_send. On an error the
 *     loan, if it was one to send, is still the caller's.
 */
int fmpl_send_loan(void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Receives the next message on index mai from rank src in place: sets buf to memory that may be read, and not
 * written, until fmpl_loan_return. It stays readable when its owner has ended. A message that was not handed
 * over is copied into a loan of this rank's. Every loan received is to be returned before fmpl_finalize.
 *
 * @param[out] buf set to its first byte; NULL from FMPL_PROC_NULL.
 * @param[out] size set to its length in bytes; may be NULL.
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index; not FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_MEMORY when a message has to be copied and there is no loan for it: it
 *     waits for the next receive; FMPL_ERR_ARGUMENT for a NULL pointer; otherwise as fmpl_recv.
 */
int fmpl_recv_loan(const void **buf, size_t *size, int src, int mai, fmpl_comm comm);

/**
 * Begins what fmpl_recv_loan does. fmpl_irecv_cancel withdraws it.
 *
 * @param[in] src the sender's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index; not FMPL_TAG_ANY.
 * @param[in] comm the communicator.
 * @return as fmpl_irecv.
 */
int fmpl_irecv_loan(int src, int mai, fmpl_comm comm);

/**
 * Waits until the message of the fmpl_irecv_loan on (src, mai, comm) is there.
 *
 * @param[out] buf as for fmpl_recv_loan.
 * @param[out] size as for fmpl_recv_loan.
 * @param[in] src the sender's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_recv_loan. The
 *     request is over.
 */
int fmpl_irecv_loan_wait(const void **buf, size_t *size, int src, int mai, fmpl_comm comm);

/**
 * Completes the fmpl_irecv_loan on (src, mai, comm) if its message is there.
 *
 * @param[out] buf as for fmpl_recv_loan, when done is set to 1.
 * @param[out] size as for fmpl_recv_loan, when done is set to 1.
 * @param[in] src the sender's rank.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @return as fmpl_irecv_loan_wait.
 */
int fmpl_irecv_loan_test(const void **buf, size_t *size, int src, int mai, fmpl_comm comm, int *done);

/**
 * Hands one loan over to several ranks: all read the same memory, and it comes back when each has returned
 * it. Each receives it as a message of this rank on index mai, with fmpl_recv_loan or any other receive.
 *
 * @param[out] buf the beginning of a loan from fmpl_loan.
 * @param[in] size bytes of the message, no more than the loan has.
 * @param[in] members bit r % 64 of word r / 64 is set for each rank r that is to have it; this rank may be
 *     one of them.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send_loan, but without FMPL_ERR_SPOOL_FULL: it waits for room in buffered mode, too;
 *     FMPL_ERR_ARGUMENT when no bit is set. On an error the loan, if it was one to send, is still the
 *     caller's, and nobody has it. A member that dies in the middle of the call is passed over.
 */
int fmpl_mcast_loan(void *buf, size_t size, const uint64_t *members, int mai, fmpl_comm comm);

/**
 * Hands a loan over to index mai of rank dst, to be received by whoever receives from any source there. It
 * needs a place at the receiver (FMPL_ANY_SLOTS), and waits for one as fmpl_send_any does.
 *
 * @param[out] buf the beginning of a loan from fmpl_loan.
 * @param[in] size bytes of the message, no more than the loan has.
 * @param[in] dst the receiver's rank, or FMPL_PROC_NULL.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_send_any, and of loans as fmpl_send_loan. On an error the loan, if it was one to send, is
 *     still the caller's.
 */
int fmpl_send_loan_any(void *buf, size_t size, int dst, int mai, fmpl_comm comm);

/**
 * Receives the next message on index mai in place, whoever sends it.
 *
 * @param[out] buf as for fmpl_recv_loan.
 * @param[out] size as for fmpl_recv_loan.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] src set to the sender's rank; may be NULL.
 * @return as fmpl_recv_any_from, and as fmpl_recv_loan.
 */
int fmpl_recv_loan_any(const void **buf, size_t *size, int mai, fmpl_comm comm, int *src);

/**
 * Begins what fmpl_recv_loan_any does. fmpl_irecv_any_cancel withdraws it.
 *
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @return as fmpl_irecv_any.
 */
int fmpl_irecv_loan_any(int mai, fmpl_comm comm);

/**
 * Waits until a message for the fmpl_irecv_loan_any on (mai, comm) is there.
 *
 * @param[out] buf as for fmpl_recv_loan.
 * @param[out] size as for fmpl_recv_loan.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] src set to the sender's rank; may be NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such request; otherwise as fmpl_recv_loan_any.
 *     The request is over.
 */
int fmpl_irecv_loan_any_wait(const void **buf, size_t *size, int mai, fmpl_comm comm, int *src);

/**
 * Completes the fmpl_irecv_loan_any on (mai, comm) if a message is there.
 *
 * @param[out] buf as for fmpl_recv_loan, when done is set to 1.
 * @param[out] size as for fmpl_recv_loan, when done is set to 1.
 * @param[in] mai the index.
 * @param[in] comm the communicator.
 * @param[out] done set to 1 or 0.
 * @param[out] src set to the sender's rank when done is set to 1; may be NULL.
 * @return as fmpl_irecv_loan_any_wait.
 */
int fmpl_irecv_loan_any_test(const void **buf, size_t *size, int mai, fmpl_comm comm, int *done, int *src);

/**
 * Returns a loan: one that was received, or one that was not sent. From any thread, in any order, also after
 * its owner has ended. Nobody here may read it afterwards.
 *
 * @param[in] buf its beginning; NULL: nothing happens.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when this rank has no loan that begins there: it may have been
 *     returned, or handed over, before.
 */
int fmpl_loan_return(const void *buf);

/* ---- Counters ------------------------------------------------------------------------------------------ */

/**
 * What this process has done since init, in numbers. The call takes a while: it is not meant for every
 * message.
 *
 * @param[in] which FMPL_COUNTER_*.
 * @param[out] value set to the counter's value.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT when there is no such counter, or for a NULL pointer.
 */
int fmpl_counter(int which, size_t *value);

/* ---- Collective calls ---------------------------------------------------------------------------------- */

/**
 * Waits until every rank of the communicator has come here.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM; FMPL_ERR_PEER when a rank has died or left.
 * @see FMPL paper, section 3.3.3.
 */
int fmpl_barrier(fmpl_comm comm);

/**
 * Copies a buffer of one rank to all ranks of the communicator. As all collective calls: every rank of the
 * communicator makes it, in the same order, one thread of each process at a time, with the same size and
 * root; and after a rank has died every collective call of a communicator that it belongs to ends with an
 * error.
 *
 * @param[out] buf the message at the root, room for it elsewhere; may be NULL when size is 0.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] root the rank whose buffer it is.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK (the root), FMPL_ERR_COMM, FMPL_ERR_BUSY
 *     (another collective call of this communicator is under way), FMPL_ERR_PEER (a rank has died or left).
 * @see FMPL paper, section 3.3.3.
 */
int fmpl_bcast(void *buf, size_t size, int root, fmpl_comm comm);

/**
 * Combines the ranks' vectors, element by element and in the order of the ranks: on the ranks of one node the
 * root's becomes ((x0 o x1) o x2) o ..., with the same bits in every run, whatever the way; between nodes
 * also (x0 o x1) o (x2 o x3) and the like, so the function must be associative there. The others' stay as
 * they are.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined, a predefined function or one that was registered.
 * @param[in] root the rank that gets the result.
 * @param[in] comm the communicator.
 * @param[in] work room for as many elements as buf has, which the library may use, or NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT (also for a function that is not registered), FMPL_ERR_RANK
 *     (the root), FMPL_ERR_COMM, FMPL_ERR_BUSY, FMPL_ERR_PEER.
 * @see FMPL paper, section 3.3.3.
 */
int fmpl_reduce(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, void *work);

/**
 * Combines the ranks' vectors as fmpl_reduce does; everybody's becomes the result, with the same bits.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] comm the communicator.
 * @param[in] work room for as many elements as buf has, which the library may use, or NULL.
 * @return as fmpl_reduce.
 * @see FMPL paper, section 3.3.3.
 */
int fmpl_allreduce(void *buf, int count, fmpl_func func, fmpl_comm comm, void *work);

/**
 * Collects a message of each rank at one rank.
 *
 * @param[in] buf this rank's message; may be NULL when size is 0. At the root it may be the place in all
 *     where it belongs.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all at the root room for a message of each rank, which come in the order of the ranks; elsewhere
 *     it is not looked at.
 * @param[in] root the rank that collects.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast.
 */
int fmpl_gather(const void *buf, size_t size, void *all, int root, fmpl_comm comm);

/**
 * Collects a message of each rank at all ranks.
 *
 * @param[in] buf this rank's message; may be NULL when size is 0. It may be the place in all where it
 *     belongs.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all room for a message of each rank, which come in the order of the ranks.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast.
 */
int fmpl_allgather(const void *buf, size_t size, void *all, fmpl_comm comm);

/**
 * Gives each rank its own message of one rank.
 *
 * @param[in] all at the root a message for each rank, in the order of the ranks; elsewhere it is not looked
 *     at.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[out] buf room for this rank's message; may be NULL when size is 0. At the root it may be the place
 *     in all where it lies.
 * @param[in] root the rank that has the messages.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast.
 */
int fmpl_scatter(const void *all, size_t size, void *buf, int root, fmpl_comm comm);

/**
 * Gives each rank its own message of each rank.
 *
 * @param[in] sent a message for each rank, in the order of the ranks.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[in] received room for a message of each rank, which come in the order of the ranks; it does not
 *     overlap with sent.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast.
 */
int fmpl_alltoall(const void *sent, size_t size, void *received, fmpl_comm comm);

/**
 * Combines the ranks' vectors as fmpl_reduce does; each rank gets a block of the result.
 *
 * @param[in] all the vector, a block of count elements for each rank, in the order of the ranks; it is not
 *     changed.
 * @param[out] buf room for this rank's block of the result; it does not overlap with all.
 * @param[in] count elements of a block, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] comm the communicator.
 * @return as fmpl_reduce.
 */
int fmpl_reduce_scatter(const void *all, void *buf, int count, fmpl_func func, fmpl_comm comm);

/**
 * Combines the vectors of the ranks up to each, as fmpl_reduce does: that of rank k becomes x0 o ... o xk.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] comm the communicator.
 * @return as fmpl_reduce.
 */
int fmpl_scan(void *buf, int count, fmpl_func func, fmpl_comm comm);

/**
 * The same without this rank's own: rank k's vector becomes those of ranks 0 to k - 1, combined in this
 * order; that of rank 0 stays.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] comm the communicator.
 * @return as fmpl_reduce.
 * @see MPI_Exscan.
 */
int fmpl_exscan(void *buf, int count, fmpl_func func, fmpl_comm comm);

/**
 * Combines the vectors of a group of ranks that is chosen for this one call, in the order of the ranks; the
 * root's becomes the result, the others' stay as they are. All members of the group make the call, with the
 * same group; nobody else takes part. Calls of one rank with others must be made in the same order by both.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all members.
 * @param[in] func how two elements are combined; it must be associative, and need not commute.
 * @param[in] members the group, bit r % 64 of word r / 64 for rank r; this rank and the root are among them.
 * @param[in] root the rank that gets the result.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_COMM, FMPL_ERR_BUSY (a collective call
 *     is under way); FMPL_ERR_PEER, at those who wait for it, when a member has died; the communicator can be
 *     used as before.
 */
int fmpl_mcast_reduce(void *buf, int count, fmpl_func func, const uint64_t *members, int root,
    fmpl_comm comm);

/**
 * Gives each rank of a group that is chosen for this one call its own message of each. All members of the
 * group make the call, with the same group and size; nobody else takes part. Calls of one rank with others
 * must be made in the same order by both.
 *
 * @param[in] sent a message for each member, in the order of the ranks; may be NULL when size is 0.
 * @param[in] size bytes of one message, the same on all members.
 * @param[in] received room for a message of each member, which come in the order of the ranks; it does not
 *     overlap with sent.
 * @param[in] members the group, bit r % 64 of word r / 64 for rank r; this rank is among them.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT, FMPL_ERR_RANK, FMPL_ERR_COMM, FMPL_ERR_BUSY (a collective call
 *     is under way); FMPL_ERR_PEER when a member has died: the messages of the others have come all the same,
 *     and the communicator can be used as before.
 */
int fmpl_mcast_alltoall(const void *sent, size_t size, void *received, const uint64_t *members,
    fmpl_comm comm);

/**
 * Lets a function of the program be used in reductions, on this rank; every rank registers its own. The
 * function is called with parts of the vectors, inout before in in the order of the ranks, and must call
 * nothing of the library. Registering it again replaces what was said before. May be called at any time.
 *
 * The function must return. Whatever thread of the process waits in the library may be the one that calls it,
 * for a call that another thread has begun, so nothing can come out of it: an exception of C++, a panic of
 * Rust or the end of its thread (pthread_exit, pthread_cancel) ends the process with a message that names the
 * rank and the function, and the other ranks get FMPL_ERR_PEER. To leave it by longjmp is undefined. A
 * function that cannot go on calls abort, or keeps its failure where the program finds it.
 *
 * @param[in] func inout[k] = inout[k] o in[k] for count elements; in is not aligned better than its elements.
 * @param[in] element_size bytes of an element, 1 to 8192.
 * @param[in] commutes 1 if a o b = b o a, else 0. Functions are applied in the order of the ranks in any
 *     case.
 * @return FMPL_SUCCESS, or: FMPL_ERR_ARGUMENT.
 */
int fmpl_func_register(fmpl_func func, size_t element_size, int commutes);

/* ---- Collective calls that do not wait ----------------------------------------------------------------- */

/**
 * Begins a barrier. A communicator has at most one collective call without a ticket under way: until this one
 * is completed all others get FMPL_ERR_BUSY. A call that has begun moves on while this process tests it or
 * waits for anything else.
 *
 * @param[in] comm the communicator.
 * @return as fmpl_barrier; FMPL_ERR_BUSY.
 */
int fmpl_ibarrier(fmpl_comm comm);

/**
 * Waits until every rank of the communicator has begun the barrier of fmpl_ibarrier.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_barrier, and the
 *     call is over.
 */
int fmpl_ibarrier_wait(fmpl_comm comm);

/**
 * Has every rank begun the barrier of fmpl_ibarrier?
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_ibarrier_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_ibarrier_test(fmpl_comm comm, int *done);

/**
 * Begins to copy a buffer of one rank to all ranks, as fmpl_bcast does. The buffer must not be touched, at
 * the root not be changed, until the call is completed. Until then all other collective calls of the
 * communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[out] buf the message at the root, room for it elsewhere; may be NULL when size is 0.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] root the rank whose buffer it is.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast.
 */
int fmpl_ibcast(void *buf, size_t size, int root, fmpl_comm comm);

/**
 * Completes the call of fmpl_ibcast.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_bcast, and the call
 *     is over.
 */
int fmpl_ibcast_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_ibcast if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_ibcast_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_ibcast_test(fmpl_comm comm, int *done);

/**
 * Begins to combine the ranks' vectors as fmpl_allreduce does. The buffer must not be touched until the call
 * is completed. Until then all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
 * A function of the program may be called in any call of the library that waits or tests, also by another
 * thread.
 *
 * @param[out] buf the vector; may be NULL when count is 0.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] comm the communicator.
 * @param[in] work room for as many elements as buf has, which the library may use until the call is
 *     completed, or NULL.
 * @return as fmpl_reduce.
 */
int fmpl_iallreduce(void *buf, int count, fmpl_func func, fmpl_comm comm, void *work);

/**
 * Completes the call of fmpl_iallreduce.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_allreduce, and the
 *     call is over.
 */
int fmpl_iallreduce_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_iallreduce if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_iallreduce_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_iallreduce_test(fmpl_comm comm, int *done);

/**
 * Begins to combine the ranks' vectors, as fmpl_reduce does. Until the call is completed all other collective
 * calls of the communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[out] buf the vector; may be NULL when count is 0. It must not be touched until the call is
 *     completed.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined.
 * @param[in] root the rank that gets the result.
 * @param[in] comm the communicator.
 * @param[in] work room for as many elements as buf has, which the library may use until the call is
 *     completed, or NULL.
 * @return FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_reduce.
 * @see MPI_Ireduce.
 */
int fmpl_ireduce(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, void *work);

/**
 * Completes the call of fmpl_ireduce.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_reduce, and the call
 *     is over.
 */
int fmpl_ireduce_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_ireduce if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_ireduce_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_ireduce_test(fmpl_comm comm, int *done);

/**
 * Begins to collect a message of each rank at one rank, as fmpl_gather does. Until the call is completed all
 * other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[in] buf this rank's message, as for fmpl_gather; it must not change until the call is completed.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all at the root room for a message of each rank, not to be touched until the call is completed;
 *     elsewhere it is not looked at.
 * @param[in] root the rank that collects.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_gather.
 * @see MPI_Igather.
 */
int fmpl_igather(const void *buf, size_t size, void *all, int root, fmpl_comm comm);

/**
 * Completes the call of fmpl_igather.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_gather, and the call
 *     is over.
 */
int fmpl_igather_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_igather if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_igather_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_igather_test(fmpl_comm comm, int *done);

/**
 * Begins to collect a message of each rank at all ranks, as fmpl_allgather does. Until the call is completed
 * all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[in] buf this rank's message, as for fmpl_allgather; it must not change until the call is completed.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all room for a message of each rank, not to be touched until the call is completed.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_allgather.
 * @see MPI_Iallgather.
 */
int fmpl_iallgather(const void *buf, size_t size, void *all, fmpl_comm comm);

/**
 * Completes the call of fmpl_iallgather.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_allgather, and the
 *     call is over.
 */
int fmpl_iallgather_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_iallgather if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_iallgather_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_iallgather_test(fmpl_comm comm, int *done);

/**
 * Begins to give each rank its own message of one rank, as fmpl_scatter does. Until the call is completed all
 * other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[in] all at the root a message for each rank, not to be changed until the call is completed;
 *     elsewhere it is not looked at.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[out] buf room for this rank's message, as for fmpl_scatter; it must not be touched until the call is
 *     completed.
 * @param[in] root the rank that has the messages.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_scatter.
 * @see MPI_Iscatter.
 */
int fmpl_iscatter(const void *all, size_t size, void *buf, int root, fmpl_comm comm);

/**
 * Completes the call of fmpl_iscatter.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_scatter, and the
 *     call is over.
 */
int fmpl_iscatter_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_iscatter if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_iscatter_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_iscatter_test(fmpl_comm comm, int *done);

/**
 * Begins to give each rank its own message of each rank, as fmpl_alltoall does. Until the call is completed
 * all other collective calls of the communicator without tickets get FMPL_ERR_BUSY.
 *
 * @param[in] sent a message for each rank, not to be changed until the call is completed.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[in] received room for a message of each rank, which does not overlap with sent; not to be touched
 *     until the call is completed.
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_BUSY, and otherwise as fmpl_alltoall.
 * @see MPI_Ialltoall.
 */
int fmpl_ialltoall(const void *sent, size_t size, void *received, fmpl_comm comm);

/**
 * Completes the call of fmpl_ialltoall.
 *
 * @param[in] comm the communicator.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when none has begun here; otherwise as fmpl_alltoall, and the
 *     call is over.
 */
int fmpl_ialltoall_wait(fmpl_comm comm);

/**
 * Completes the call of fmpl_ialltoall if that takes no waiting.
 *
 * @param[in] comm the communicator.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_ialltoall_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_ialltoall_test(fmpl_comm comm, int *done);

/* ---- Several collective calls at a time ---------------------------------------------------------------- */

/**
 * Begins a barrier, and gives it a ticket. As all calls with tickets: up to FMPL_TICKETS of a communicator
 * may be begun and not completed. All ranks begin them in the same order, also with respect to other
 * collective calls of the communicator, which can be made meanwhile; each rank completes them in whatever
 * order it wants, by fmpl_coll_wait or fmpl_coll_test. They are done by messages between the ranks, eight of
 * a communicator at a time, and move on while this process tests one or waits for anything else.
 *
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name, which is never 0.
 * @return as fmpl_barrier; FMPL_ERR_BUSY when so many are begun and not completed, and FMPL_ERR_ARGUMENT when
 *     ticket is NULL: then nothing has begun.
 * @see MPI_Ibarrier.
 */
int fmpl_ibarrier_n(fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to copy a buffer of one rank to all ranks, as fmpl_ibcast does, and gives the call a ticket: see
 * fmpl_ibarrier_n.
 *
 * @param[out] buf the message at the root, room for it elsewhere. It must not be touched, at the root not be
 *     changed, until the call is completed.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] root the rank whose buffer it is.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_bcast, and as fmpl_ibarrier_n.
 * @see MPI_Ibcast.
 */
int fmpl_ibcast_n(void *buf, size_t size, int root, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to combine the ranks' vectors, as fmpl_ireduce does, and gives the call a ticket: see
 * fmpl_ibarrier_n.
 *
 * @param[out] buf the vector. It must not be touched until the call is completed.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined; elements may be combined as ((x0 o x1) o (x2 o x3)), so it
 *     must be associative.
 * @param[in] root the rank that gets the result.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_reduce, and as fmpl_ibarrier_n.
 * @see MPI_Ireduce.
 */
int fmpl_ireduce_n(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to combine the ranks' vectors for all ranks, as fmpl_iallreduce does, and gives the call a ticket:
 * see fmpl_ibarrier_n.
 *
 * @param[out] buf the vector. It must not be touched until the call is completed.
 * @param[in] count elements, the same on all ranks.
 * @param[in] func how two elements are combined, as for fmpl_ireduce_n.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_allreduce, and as fmpl_ibarrier_n.
 * @see MPI_Iallreduce.
 */
int fmpl_iallreduce_n(void *buf, int count, fmpl_func func, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to collect a message of each rank at one rank, as fmpl_igather does, and gives the call a ticket:
 * see fmpl_ibarrier_n.
 *
 * @param[in] buf this rank's message, as for fmpl_igather.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all at the root room for a message of each rank; elsewhere it is not looked at.
 * @param[in] root the rank that collects.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_gather, and as fmpl_ibarrier_n.
 * @see MPI_Igather.
 */
int fmpl_igather_n(const void *buf, size_t size, void *all, int root, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to collect a message of each rank at all ranks, as fmpl_iallgather does, and gives the call a
 * ticket: see fmpl_ibarrier_n.
 *
 * @param[in] buf this rank's message, as for fmpl_iallgather.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all room for a message of each rank.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_allgather, and as fmpl_ibarrier_n.
 * @see MPI_Iallgather.
 */
int fmpl_iallgather_n(const void *buf, size_t size, void *all, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to give each rank its own message of one rank, as fmpl_iscatter does, and gives the call a ticket:
 * see fmpl_ibarrier_n.
 *
 * @param[in] all at the root a message for each rank; elsewhere it is not looked at.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[out] buf room for this rank's message, as for fmpl_iscatter.
 * @param[in] root the rank that has the messages.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_scatter, and as fmpl_ibarrier_n.
 * @see MPI_Iscatter.
 */
int fmpl_iscatter_n(const void *all, size_t size, void *buf, int root, fmpl_comm comm, uint64_t *ticket);

/**
 * Begins to give each rank its own message of each rank, as fmpl_ialltoall does, and gives the call a ticket:
 * see fmpl_ibarrier_n.
 *
 * @param[in] sent a message for each rank.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[in] received room for a message of each rank, which does not overlap with sent.
 * @param[in] comm the communicator.
 * @param[out] ticket set to the call's name.
 * @return as fmpl_alltoall, and as fmpl_ibarrier_n.
 * @see MPI_Ialltoall.
 */
int fmpl_ialltoall_n(const void *sent, size_t size, void *received, fmpl_comm comm, uint64_t *ticket);

/**
 * Completes a collective call with a ticket. The others of its communicator go on meanwhile.
 *
 * @param[in] ticket the call's.
 * @return FMPL_SUCCESS, or: FMPL_ERR_REQUEST when there is no such call, or it is completed; otherwise what
 *     the call that waits would return, and the call is over.
 */
int fmpl_coll_wait(uint64_t ticket);

/**
 * Completes a collective call with a ticket if that takes no waiting.
 *
 * @param[in] ticket the call's.
 * @param[out] done set to 1, and the call is over, or 0.
 * @return as fmpl_coll_wait; FMPL_ERR_ARGUMENT when done is NULL.
 */
int fmpl_coll_test(uint64_t ticket, int *done);

/* ---- Collective calls with messages of different lengths ----------------------------------------------- */

/**
 * Collects a message of each rank at the root, of different lengths.
 *
 * @param[in] buf this rank's message; may be NULL when size is 0. At the root it may be its place in all.
 * @param[in] size its bytes.
 * @param[in] all room for all of them; only the root's is looked at.
 * @param[in] sizes bytes of each rank's message, which must be what it gives; only the root's are looked at.
 * @param[in] places where in all each belongs, in bytes; NULL: one right behind the other.
 * @param[in] root the rank that gets them.
 * @param[in] comm the communicator.
 * @return as fmpl_bcast; FMPL_ERR_ARGUMENT, at the root, when a rank gives fewer or more bytes than that; the
 *     communicator goes on.
 * @see MPI_Gatherv.
 */
int fmpl_gatherv(const void *buf, size_t size, void *all, const size_t *sizes, const size_t *places, int root,
    fmpl_comm comm);

/**
 * Collects a message of each rank at all ranks, of different lengths.
 *
 * @param[in] buf this rank's message; may be NULL when size is 0. It may be its place in all.
 * @param[in] size its bytes.
 * @param[in] all room for all of them.
 * @param[in] sizes bytes of each rank's message, the same on all ranks.
 * @param[in] places where in all each belongs, in bytes; NULL: one right behind the other.
 * @param[in] comm the communicator.
 * @return as fmpl_gatherv.
 * @see MPI_Allgatherv.
 */
int fmpl_allgatherv(const void *buf, size_t size, void *all, const size_t *sizes, const size_t *places,
    fmpl_comm comm);

/**
 * Gives each rank its own message of the root's, of different lengths.
 *
 * @param[in] all the messages; only the root's are looked at.
 * @param[in] sizes bytes of each rank's message; only the root's are looked at.
 * @param[in] places where in all each lies, in bytes; NULL: one right behind the other.
 * @param[out] buf room for this rank's message; may be NULL when size is 0. At the root it may be the place
 *     in all where it lies.
 * @param[in] size its bytes, which must be what the root gives.
 * @param[in] root the rank that has the messages.
 * @param[in] comm the communicator.
 * @return as fmpl_gatherv, at the rank that takes.
 * @see MPI_Scatterv.
 */
int fmpl_scatterv(const void *all, const size_t *sizes, const size_t *places, void *buf, size_t size,
    int root, fmpl_comm comm);

/**
 * Gives each rank its own message of each rank, of different lengths.
 *
 * @param[in] sent the messages for the ranks.
 * @param[in] sent_sizes bytes of each.
 * @param[in] sent_places where in sent each lies, in bytes; NULL: one right behind the other.
 * @param[in] received room for the ranks' messages; it does not overlap with sent.
 * @param[in] received_sizes bytes of each, which must be what the rank gives.
 * @param[in] received_places where in received each belongs, in bytes; NULL: one right behind the other.
 * @param[in] comm the communicator.
 * @return as fmpl_gatherv.
 * @see MPI_Alltoallv.
 */
int fmpl_alltoallv(const void *sent, const size_t *sent_sizes, const size_t *sent_places, void *received,
    const size_t *received_sizes, const size_t *received_places, fmpl_comm comm);

/* ---- Grids --------------------------------------------------------------------------------------------- */

/**
 * Makes a communicator whose ranks form a Cartesian grid; all ranks of the communicator call it, with the
 * same dimensions. The first ranks are in it, in the same order, the last dimension's neighbours side by
 * side.
 *
 * @param[in] comm the communicator.
 * @param[in] ndims dimensions, 1 or more.
 * @param[in] dims ranks along each, 1 or more; together no more than comm has.
 * @param[in] periods for each 1 if it closes, so that the last rank's neighbour is the first, else 0; NULL:
 *     none closes.
 * @param[out] cart set to the communicator, or to FMPL_COMM_NULL at ranks that have no place in it.
 * @return as fmpl_comm_split; FMPL_ERR_ARGUMENT for a NULL pointer, and when that is no grid of so many
 *     ranks.
 * @see MPI_Cart_create.
 */
int fmpl_cart_create(fmpl_comm comm, int ndims, const int *dims, const int *periods, fmpl_comm *cart);

/**
 * Where in its grid a rank is.
 *
 * @param[in] cart a communicator of fmpl_cart_create.
 * @param[in] rank a rank of it.
 * @param[out] coords set to its coordinates, from 0 on; as many as the grid has dimensions.
 * @return FMPL_SUCCESS, or: FMPL_ERR_COMM (also for one that is no grid), FMPL_ERR_RANK; FMPL_ERR_ARGUMENT
 *     for a NULL pointer.
 * @see MPI_Cart_coords.
 */
int fmpl_cart_coords(fmpl_comm cart, int rank, int *coords);

/**
 * Which rank of a grid is at a place.
 *
 * @param[in] cart a communicator of fmpl_cart_create.
 * @param[in] coords the coordinates; in a dimension that closes they go round.
 * @param[out] rank set to the rank, or to FMPL_PROC_NULL beyond an edge.
 * @return as fmpl_cart_coords.
 * @see MPI_Cart_rank.
 */
int fmpl_cart_rank(fmpl_comm cart, const int *coords, int *rank);

/**
 * From whom this rank receives, and to whom it sends, when all ranks of a grid send so many steps along a
 * dimension.
 *
 * @param[in] cart a communicator of fmpl_cart_create.
 * @param[in] dim the dimension, from 0 on.
 * @param[in] steps how far; may be negative.
 * @param[out] src set to the rank to receive from, or to FMPL_PROC_NULL.
 * @param[out] dst set to the rank to send to, or to FMPL_PROC_NULL.
 * @return as fmpl_cart_coords; FMPL_ERR_ARGUMENT also for a dimension that there is not.
 * @see MPI_Cart_shift.
 */
int fmpl_cart_shift(fmpl_comm cart, int dim, int steps, int *src, int *dst);

/**
 * Gives each neighbour on a grid the same message, and collects one of each: of each dimension that of the
 * rank before this one, then that of the rank behind. What would come from beyond an edge is not touched.
 *
 * @param[in] buf this rank's message; may be NULL when size is 0.
 * @param[in] size bytes, the same on all ranks.
 * @param[in] all room for two messages for each dimension; it does not overlap with buf.
 * @param[in] cart a communicator of fmpl_cart_create.
 * @return as fmpl_bcast; FMPL_ERR_COMM also for a communicator that is no grid.
 * @see MPI_Neighbor_allgather.
 */
int fmpl_neighbour_allgather(const void *buf, size_t size, void *all, fmpl_comm cart);

/**
 * Gives each neighbour on a grid its own message, and collects one of each, in the order of
 * fmpl_neighbour_allgather.
 *
 * @param[in] sent two messages for each dimension: for the rank before this one, for the one behind.
 * @param[in] size bytes of one message, the same on all ranks.
 * @param[in] received room for as many; it does not overlap with sent.
 * @param[in] cart a communicator of fmpl_cart_create.
 * @return as fmpl_neighbour_allgather.
 * @see MPI_Neighbor_alltoall.
 */
int fmpl_neighbour_alltoall(const void *sent, size_t size, void *received, fmpl_comm cart);

/* ---- Predefined functions of reductions ---------------------------------------------------------------- */
/*
 * A name is fmpl_, what the elements are, the operation.
 *
 * Elements: i8 i16 i i64 u8 u16 u32 u64 are integers of so many bits (i: int), s float, d double, f80 long double,
 * c float complex, z double complex, f16 IEEE binary16 (half), bf16 bfloat16, b8 bool of one byte. f80 is there
 * where long double is that of the x87, on x86-64.
 *
 * Operations: sum, prod; maxval, minval (by value) and amax, amin (by absolute value); maxloc, minloc on
 * struct { T value; int index; }; land, lor, lxor, whose results are 0 and 1; band, bor, bxor.
 *
 * Sums and products of integers wrap. A NaN is larger and smaller than every number; of two zeros the maximum is +0,
 * the minimum -0. f16 and bf16 are rounded to nearest after each sum.
 */

/** int8_t: inout[k] = inout[k] + in[k] modulo 2^8. */
void fmpl_i8sum(void *inout, const void *input, int count);

/** int16_t: inout[k] = inout[k] + in[k] modulo 2^16. */
void fmpl_i16sum(void *inout, const void *input, int count);

/** int: inout[k] = inout[k] + in[k] modulo 2^32. */
void fmpl_isum(void *inout, const void *input, int count);

/** int64_t: inout[k] = inout[k] + in[k] modulo 2^64. */
void fmpl_i64sum(void *inout, const void *input, int count);

/** uint8_t: inout[k] = inout[k] + in[k] modulo 2^8. */
void fmpl_u8sum(void *inout, const void *input, int count);

/** uint16_t: inout[k] = inout[k] + in[k] modulo 2^16. */
void fmpl_u16sum(void *inout, const void *input, int count);

/** uint32_t: inout[k] = inout[k] + in[k] modulo 2^32. */
void fmpl_u32sum(void *inout, const void *input, int count);

/** uint64_t: inout[k] = inout[k] + in[k] modulo 2^64. */
void fmpl_u64sum(void *inout, const void *input, int count);

/** float: inout[k] = inout[k] + in[k]. */
void fmpl_ssum(void *inout, const void *input, int count);

/** double: inout[k] = inout[k] + in[k]. */
void fmpl_dsum(void *inout, const void *input, int count);

/** complex float: inout[k] = inout[k] + in[k]. */
void fmpl_csum(void *inout, const void *input, int count);

/** complex double: inout[k] = inout[k] + in[k]. */
void fmpl_zsum(void *inout, const void *input, int count);

/** IEEE binary16: inout[k] = inout[k] + in[k]. */
void fmpl_f16sum(void *inout, const void *input, int count);

/** bfloat16: inout[k] = inout[k] + in[k]. */
void fmpl_bf16sum(void *inout, const void *input, int count);

/** int8_t: inout[k] = inout[k] * in[k] modulo 2^8. */
void fmpl_i8prod(void *inout, const void *input, int count);

/** int16_t: inout[k] = inout[k] * in[k] modulo 2^16. */
void fmpl_i16prod(void *inout, const void *input, int count);

/** int: inout[k] = inout[k] * in[k] modulo 2^32. */
void fmpl_iprod(void *inout, const void *input, int count);

/** int64_t: inout[k] = inout[k] * in[k] modulo 2^64. */
void fmpl_i64prod(void *inout, const void *input, int count);

/** uint8_t: inout[k] = inout[k] * in[k] modulo 2^8. */
void fmpl_u8prod(void *inout, const void *input, int count);

/** uint16_t: inout[k] = inout[k] * in[k] modulo 2^16. */
void fmpl_u16prod(void *inout, const void *input, int count);

/** uint32_t: inout[k] = inout[k] * in[k] modulo 2^32. */
void fmpl_u32prod(void *inout, const void *input, int count);

/** uint64_t: inout[k] = inout[k] * in[k] modulo 2^64. */
void fmpl_u64prod(void *inout, const void *input, int count);

/** float: inout[k] = inout[k] * in[k]. */
void fmpl_sprod(void *inout, const void *input, int count);

/** double: inout[k] = inout[k] * in[k]. */
void fmpl_dprod(void *inout, const void *input, int count);

/** complex float: inout[k] = inout[k] * in[k]. */
void fmpl_cprod(void *inout, const void *input, int count);

/** complex double: inout[k] = inout[k] * in[k]. */
void fmpl_zprod(void *inout, const void *input, int count);

/** int8_t: of inout[k] and in[k] the larger one. */
void fmpl_i8maxval(void *inout, const void *input, int count);

/** int16_t: of inout[k] and in[k] the larger one. */
void fmpl_i16maxval(void *inout, const void *input, int count);

/** int: of inout[k] and in[k] the larger one. */
void fmpl_imaxval(void *inout, const void *input, int count);

/** int64_t: of inout[k] and in[k] the larger one. */
void fmpl_i64maxval(void *inout, const void *input, int count);

/** uint8_t: of inout[k] and in[k] the larger one. */
void fmpl_u8maxval(void *inout, const void *input, int count);

/** uint16_t: of inout[k] and in[k] the larger one. */
void fmpl_u16maxval(void *inout, const void *input, int count);

/** uint32_t: of inout[k] and in[k] the larger one. */
void fmpl_u32maxval(void *inout, const void *input, int count);

/** uint64_t: of inout[k] and in[k] the larger one. */
void fmpl_u64maxval(void *inout, const void *input, int count);

/** float: of inout[k] and in[k] the larger one. */
void fmpl_smaxval(void *inout, const void *input, int count);

/** double: of inout[k] and in[k] the larger one. */
void fmpl_dmaxval(void *inout, const void *input, int count);

/** int8_t: of inout[k] and in[k] the smaller one. */
void fmpl_i8minval(void *inout, const void *input, int count);

/** int16_t: of inout[k] and in[k] the smaller one. */
void fmpl_i16minval(void *inout, const void *input, int count);

/** int: of inout[k] and in[k] the smaller one. */
void fmpl_iminval(void *inout, const void *input, int count);

/** int64_t: of inout[k] and in[k] the smaller one. */
void fmpl_i64minval(void *inout, const void *input, int count);

/** uint8_t: of inout[k] and in[k] the smaller one. */
void fmpl_u8minval(void *inout, const void *input, int count);

/** uint16_t: of inout[k] and in[k] the smaller one. */
void fmpl_u16minval(void *inout, const void *input, int count);

/** uint32_t: of inout[k] and in[k] the smaller one. */
void fmpl_u32minval(void *inout, const void *input, int count);

/** uint64_t: of inout[k] and in[k] the smaller one. */
void fmpl_u64minval(void *inout, const void *input, int count);

/** float: of inout[k] and in[k] the smaller one. */
void fmpl_sminval(void *inout, const void *input, int count);

/** double: of inout[k] and in[k] the smaller one. */
void fmpl_dminval(void *inout, const void *input, int count);

/** int: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger. */
void fmpl_iamax(void *inout, const void *input, int count);

/** float: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger. */
void fmpl_samax(void *inout, const void *input, int count);

/** double: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger. */
void fmpl_damax(void *inout, const void *input, int count);

/**
 * complex float: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones
 * the larger real part, then imaginary part.
 */
void fmpl_camax(void *inout, const void *input, int count);

/**
 * complex double: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones
 * the larger real part, then imaginary part.
 */
void fmpl_zamax(void *inout, const void *input, int count);

/** int: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller. */
void fmpl_iamin(void *inout, const void *input, int count);

/** float: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller. */
void fmpl_samin(void *inout, const void *input, int count);

/** double: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller. */
void fmpl_damin(void *inout, const void *input, int count);

/**
 * complex float: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones
 * the smaller real part, then imaginary part.
 */
void fmpl_camin(void *inout, const void *input, int count);

/**
 * complex double: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones
 * the smaller real part, then imaginary part.
 */
void fmpl_zamin(void *inout, const void *input, int count);

/**
 * int8_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_i8maxloc(void *inout, const void *input, int count);

/**
 * int16_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_i16maxloc(void *inout, const void *input, int count);

/**
 * int and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_imaxloc(void *inout, const void *input, int count);

/**
 * int64_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_i64maxloc(void *inout, const void *input, int count);

/**
 * uint8_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_u8maxloc(void *inout, const void *input, int count);

/**
 * uint16_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_u16maxloc(void *inout, const void *input, int count);

/**
 * uint32_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_u32maxloc(void *inout, const void *input, int count);

/**
 * uint64_t and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_u64maxloc(void *inout, const void *input, int count);

/**
 * float and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_smaxloc(void *inout, const void *input, int count);

/**
 * double and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the lower
 * index.
 */
void fmpl_dmaxloc(void *inout, const void *input, int count);

/**
 * int8_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_i8minloc(void *inout, const void *input, int count);

/**
 * int16_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_i16minloc(void *inout, const void *input, int count);

/**
 * int and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_iminloc(void *inout, const void *input, int count);

/**
 * int64_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_i64minloc(void *inout, const void *input, int count);

/**
 * uint8_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_u8minloc(void *inout, const void *input, int count);

/**
 * uint16_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
 * lower index.
 */
void fmpl_u16minloc(void *inout, const void *input, int count);

/**
 * uint32_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
 * lower index.
 */
void fmpl_u32minloc(void *inout, const void *input, int count);

/**
 * uint64_t and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
 * lower index.
 */
void fmpl_u64minloc(void *inout, const void *input, int count);

/**
 * float and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_sminloc(void *inout, const void *input, int count);

/**
 * double and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the lower
 * index.
 */
void fmpl_dminloc(void *inout, const void *input, int count);

/** int8_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_i8land(void *inout, const void *input, int count);

/** int16_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_i16land(void *inout, const void *input, int count);

/** int: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_iland(void *inout, const void *input, int count);

/** int64_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_i64land(void *inout, const void *input, int count);

/** uint8_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_u8land(void *inout, const void *input, int count);

/** uint16_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_u16land(void *inout, const void *input, int count);

/** uint32_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_u32land(void *inout, const void *input, int count);

/** uint64_t: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_u64land(void *inout, const void *input, int count);

/** bool: 1 if neither inout[k] nor in[k] is 0, else 0. */
void fmpl_b8land(void *inout, const void *input, int count);

/** int8_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_i8lor(void *inout, const void *input, int count);

/** int16_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_i16lor(void *inout, const void *input, int count);

/** int: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_ilor(void *inout, const void *input, int count);

/** int64_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_i64lor(void *inout, const void *input, int count);

/** uint8_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_u8lor(void *inout, const void *input, int count);

/** uint16_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_u16lor(void *inout, const void *input, int count);

/** uint32_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_u32lor(void *inout, const void *input, int count);

/** uint64_t: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_u64lor(void *inout, const void *input, int count);

/** bool: 0 if inout[k] and in[k] both are 0, else 1. */
void fmpl_b8lor(void *inout, const void *input, int count);

/** int8_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_i8lxor(void *inout, const void *input, int count);

/** int16_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_i16lxor(void *inout, const void *input, int count);

/** int: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_ilxor(void *inout, const void *input, int count);

/** int64_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_i64lxor(void *inout, const void *input, int count);

/** uint8_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_u8lxor(void *inout, const void *input, int count);

/** uint16_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_u16lxor(void *inout, const void *input, int count);

/** uint32_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_u32lxor(void *inout, const void *input, int count);

/** uint64_t: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_u64lxor(void *inout, const void *input, int count);

/** bool: 1 if just one of inout[k] and in[k] is 0, else 0. */
void fmpl_b8lxor(void *inout, const void *input, int count);

/** int8_t: inout[k] = inout[k] & in[k]. */
void fmpl_i8band(void *inout, const void *input, int count);

/** int16_t: inout[k] = inout[k] & in[k]. */
void fmpl_i16band(void *inout, const void *input, int count);

/** int: inout[k] = inout[k] & in[k]. */
void fmpl_iband(void *inout, const void *input, int count);

/** int64_t: inout[k] = inout[k] & in[k]. */
void fmpl_i64band(void *inout, const void *input, int count);

/** uint8_t: inout[k] = inout[k] & in[k]. */
void fmpl_u8band(void *inout, const void *input, int count);

/** uint16_t: inout[k] = inout[k] & in[k]. */
void fmpl_u16band(void *inout, const void *input, int count);

/** uint32_t: inout[k] = inout[k] & in[k]. */
void fmpl_u32band(void *inout, const void *input, int count);

/** uint64_t: inout[k] = inout[k] & in[k]. */
void fmpl_u64band(void *inout, const void *input, int count);

/** int8_t: inout[k] = inout[k] | in[k]. */
void fmpl_i8bor(void *inout, const void *input, int count);

/** int16_t: inout[k] = inout[k] | in[k]. */
void fmpl_i16bor(void *inout, const void *input, int count);

/** int: inout[k] = inout[k] | in[k]. */
void fmpl_ibor(void *inout, const void *input, int count);

/** int64_t: inout[k] = inout[k] | in[k]. */
void fmpl_i64bor(void *inout, const void *input, int count);

/** uint8_t: inout[k] = inout[k] | in[k]. */
void fmpl_u8bor(void *inout, const void *input, int count);

/** uint16_t: inout[k] = inout[k] | in[k]. */
void fmpl_u16bor(void *inout, const void *input, int count);

/** uint32_t: inout[k] = inout[k] | in[k]. */
void fmpl_u32bor(void *inout, const void *input, int count);

/** uint64_t: inout[k] = inout[k] | in[k]. */
void fmpl_u64bor(void *inout, const void *input, int count);

/** int8_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_i8bxor(void *inout, const void *input, int count);

/** int16_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_i16bxor(void *inout, const void *input, int count);

/** int: inout[k] = inout[k] ^ in[k]. */
void fmpl_ibxor(void *inout, const void *input, int count);

/** int64_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_i64bxor(void *inout, const void *input, int count);

/** uint8_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_u8bxor(void *inout, const void *input, int count);

/** uint16_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_u16bxor(void *inout, const void *input, int count);

/** uint32_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_u32bxor(void *inout, const void *input, int count);

/** uint64_t: inout[k] = inout[k] ^ in[k]. */
void fmpl_u64bxor(void *inout, const void *input, int count);

/* ---- Predefined functions of long double, on x86-64 ---------------------------------------------------- */

#ifdef __x86_64__

/** long double: inout[k] = inout[k] + in[k]. */
void fmpl_f80sum(void *inout, const void *input, int count);

/** long double: inout[k] = inout[k] * in[k]. */
void fmpl_f80prod(void *inout, const void *input, int count);

/** long double: of inout[k] and in[k] the larger one. */
void fmpl_f80maxval(void *inout, const void *input, int count);

/** long double: of inout[k] and in[k] the smaller one. */
void fmpl_f80minval(void *inout, const void *input, int count);

/**
 * long double and int: of inout[k] and in[k] the one with the larger value; of equal ones the one with the
 * lower index.
 */
void fmpl_f80maxloc(void *inout, const void *input, int count);

/**
 * long double and int: of inout[k] and in[k] the one with the smaller value; of equal ones the one with the
 * lower index.
 */
void fmpl_f80minloc(void *inout, const void *input, int count);

#endif

/* ---- The same by the paper's names, which readers of MPI take for other functions ---------------------- */

#ifdef FMPL_PAPER_NAMES

/** The paper's name for fmpl_iamax: by absolute value. */
void fmpl_imax(void *inout, const void *input, int count);

/** The paper's name for fmpl_samax: by absolute value. */
void fmpl_smax(void *inout, const void *input, int count);

/** The paper's name for fmpl_damax: by absolute value. */
void fmpl_dmax(void *inout, const void *input, int count);

/** The paper's name for fmpl_camax: by absolute value. */
void fmpl_cmax(void *inout, const void *input, int count);

/** The paper's name for fmpl_zamax: by absolute value. */
void fmpl_zmax(void *inout, const void *input, int count);

/** The paper's name for fmpl_iamin: by absolute value. */
void fmpl_imin(void *inout, const void *input, int count);

/** The paper's name for fmpl_samin: by absolute value. */
void fmpl_smin(void *inout, const void *input, int count);

/** The paper's name for fmpl_damin: by absolute value. */
void fmpl_dmin(void *inout, const void *input, int count);

/** The paper's name for fmpl_camin: by absolute value. */
void fmpl_cmin(void *inout, const void *input, int count);

/** The paper's name for fmpl_zamin: by absolute value. */
void fmpl_zmin(void *inout, const void *input, int count);

#endif

/* ---- Second names, for tools --------------------------------------------------------------------------- */

/*
 * A tool that counts or times calls defines fmpl_send and so on itself, and goes on with pfmpl_send: preloaded, or
 * linked before the library. Calls within the library never come to the tool.
 */

int pfmpl_init(void *ma, void *fa, int count);
int pfmpl_finalize(void);
int pfmpl_initialized(int *flag);
int pfmpl_abort(int code);
int pfmpl_comm_rank(fmpl_comm comm, int *rank);
int pfmpl_comm_size(fmpl_comm comm, int *size);
int pfmpl_send(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_recv(void *buf, size_t size, int src, int mai, fmpl_comm comm);
int pfmpl_sendrecv(const void *sbuf, size_t ssize, int dst, int smai, void *rbuf, size_t rsize, int src,
    int rmai, fmpl_comm comm);
int pfmpl_isend(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_irecv(void *buf, size_t size, int src, int mai, fmpl_comm comm);
int pfmpl_isend_wait(int dst, int mai, fmpl_comm comm);
int pfmpl_irecv_wait(int src, int mai, fmpl_comm comm);
int pfmpl_isend_test(int dst, int mai, fmpl_comm comm, int *done);
int pfmpl_irecv_test(int src, int mai, fmpl_comm comm, int *done);
int pfmpl_received(int src, int mai, fmpl_comm comm, size_t *size, int *index);
int pfmpl_probe(int src, int mai, fmpl_comm comm, int *there, size_t *size);
int pfmpl_irecv_cancel(int src, int mai, fmpl_comm comm, int *cancelled);
int pfmpl_sendbuf_set(void *buf, size_t size, int timeout_ms);
int pfmpl_comm_sendbuf_set(fmpl_comm comm, void *buf, size_t size, int timeout_ms);
int pfmpl_sendbuf_check(int *nsend, int *nspool);
double pfmpl_wtime(void);
int pfmpl_progress(void);
int pfmpl_event_fd(int *fd);
void *pfmpl_alloc(size_t size);
int pfmpl_free(void *ptr);
const char *pfmpl_strerror(int code);
const char *pfmpl_last_error(void);
int pfmpl_version(void);
int pfmpl_init_with(int rank, int size, fmpl_exchange exchange, void *state, int count);
int pfmpl_id_create(fmpl_id *id);
int pfmpl_init_id(const fmpl_id *id, int rank, int size, int count);
int pfmpl_comm_create(fmpl_comm *comm, int key);
int pfmpl_comm_split(fmpl_comm comm, int colour, int order, fmpl_comm *newcomm);
int pfmpl_comm_split_node(fmpl_comm comm, int order, fmpl_comm *newcomm);
int pfmpl_comm_dup(fmpl_comm comm, fmpl_comm *newcomm);
int pfmpl_comm_group_create(fmpl_comm comm, const int *ranks, int n, fmpl_comm *newcomm);
int pfmpl_comm_free(fmpl_comm *comm);
int pfmpl_comm_set_name(fmpl_comm comm, const char *name);
int pfmpl_comm_name(fmpl_comm comm, char *name, size_t size);
int pfmpl_comm_translate(fmpl_comm from, int rank, fmpl_comm to, int *result);
int pfmpl_shared_alloc(size_t size, fmpl_comm comm, void **mine);
int pfmpl_shared_query(const void *mine, int rank, void **at, size_t *size);
int pfmpl_shared_free(void *mine);
int pfmpl_send_block(const void *buf, fmpl_block block, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_block(void *buf, fmpl_block block, int src, int mai, fmpl_comm comm);
int pfmpl_isend_block(const void *buf, fmpl_block block, int dst, int mai, fmpl_comm comm);
int pfmpl_irecv_block(void *buf, fmpl_block block, int src, int mai, fmpl_comm comm);
int pfmpl_send_list(const struct iovec *iov, int n, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_list(const struct iovec *iov, int n, int src, int mai, fmpl_comm comm);
int pfmpl_isend_list(const struct iovec *iov, int n, int dst, int mai, fmpl_comm comm);
int pfmpl_irecv_list(const struct iovec *iov, int n, int src, int mai, fmpl_comm comm);
int pfmpl_send_any(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_any(void *buf, size_t size, int mai, fmpl_comm comm);
int pfmpl_recv_any_from(void *buf, size_t size, int mai, fmpl_comm comm, int *src, size_t *received);
int pfmpl_probe_any(int mai, fmpl_comm comm, int *there, int *src, size_t *size);
int pfmpl_isend_any(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_isend_any_wait(int dst, int mai, fmpl_comm comm);
int pfmpl_isend_any_test(int dst, int mai, fmpl_comm comm, int *done);
int pfmpl_irecv_any(void *buf, size_t size, int mai, fmpl_comm comm);
int pfmpl_irecv_any_wait(int mai, fmpl_comm comm, int *src, size_t *received);
int pfmpl_irecv_any_test(int mai, fmpl_comm comm, int *done, int *src, size_t *received);
int pfmpl_irecv_any_cancel(int mai, fmpl_comm comm, int *cancelled);
int pfmpl_recv_any_limit(int most, int mai, fmpl_comm comm);
int pfmpl_mcast(const void *buf, size_t size, const uint64_t *members, fmpl_comm comm, uint64_t *ticket);
int pfmpl_mcast_wait(uint64_t ticket);
int pfmpl_mcast_test(uint64_t ticket, int *done);
int pfmpl_mcast_recv(void *buf, size_t capacity, fmpl_comm comm, size_t *size, int *master);
int pfmpl_recv_any_or_mcast(void *buf, size_t size, int mai, fmpl_comm comm, int *src, size_t *received,
    int *is_mcast);
int pfmpl_mcast_irecv(void *buf, size_t capacity, fmpl_comm comm);
int pfmpl_mcast_irecv_wait(fmpl_comm comm, size_t *size, int *master);
int pfmpl_mcast_irecv_test(fmpl_comm comm, int *done, size_t *size, int *master);
int pfmpl_mcast_irecv_cancel(fmpl_comm comm);
int pfmpl_send_init(const void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_init(void *buf, size_t size, int src, int mai, fmpl_comm comm);
int pfmpl_send_start(int dst, int mai, fmpl_comm comm);
int pfmpl_recv_start(int src, int mai, fmpl_comm comm);
int pfmpl_waitall(fmpl_request *requests, int n, int *codes);
int pfmpl_testall(fmpl_request *requests, int n, int *done, int *codes);
int pfmpl_waitany(fmpl_request *requests, int n, int *which);
int pfmpl_waitsome(fmpl_request *requests, int n, int *count, int *which, int *codes);
int pfmpl_loan(size_t size, void **buf);
int pfmpl_send_loan(void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_loan(const void **buf, size_t *size, int src, int mai, fmpl_comm comm);
int pfmpl_irecv_loan(int src, int mai, fmpl_comm comm);
int pfmpl_irecv_loan_wait(const void **buf, size_t *size, int src, int mai, fmpl_comm comm);
int pfmpl_irecv_loan_test(const void **buf, size_t *size, int src, int mai, fmpl_comm comm, int *done);
int pfmpl_mcast_loan(void *buf, size_t size, const uint64_t *members, int mai, fmpl_comm comm);
int pfmpl_send_loan_any(void *buf, size_t size, int dst, int mai, fmpl_comm comm);
int pfmpl_recv_loan_any(const void **buf, size_t *size, int mai, fmpl_comm comm, int *src);
int pfmpl_irecv_loan_any(int mai, fmpl_comm comm);
int pfmpl_irecv_loan_any_wait(const void **buf, size_t *size, int mai, fmpl_comm comm, int *src);
int pfmpl_irecv_loan_any_test(const void **buf, size_t *size, int mai, fmpl_comm comm, int *done, int *src);
int pfmpl_loan_return(const void *buf);
int pfmpl_counter(int which, size_t *value);
int pfmpl_barrier(fmpl_comm comm);
int pfmpl_bcast(void *buf, size_t size, int root, fmpl_comm comm);
int pfmpl_reduce(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, void *work);
int pfmpl_allreduce(void *buf, int count, fmpl_func func, fmpl_comm comm, void *work);
int pfmpl_gather(const void *buf, size_t size, void *all, int root, fmpl_comm comm);
int pfmpl_allgather(const void *buf, size_t size, void *all, fmpl_comm comm);
int pfmpl_scatter(const void *all, size_t size, void *buf, int root, fmpl_comm comm);
int pfmpl_alltoall(const void *sent, size_t size, void *received, fmpl_comm comm);
int pfmpl_reduce_scatter(const void *all, void *buf, int count, fmpl_func func, fmpl_comm comm);
int pfmpl_scan(void *buf, int count, fmpl_func func, fmpl_comm comm);
int pfmpl_exscan(void *buf, int count, fmpl_func func, fmpl_comm comm);
int pfmpl_mcast_reduce(void *buf, int count, fmpl_func func, const uint64_t *members, int root,
    fmpl_comm comm);
int pfmpl_mcast_alltoall(const void *sent, size_t size, void *received, const uint64_t *members,
    fmpl_comm comm);
int pfmpl_func_register(fmpl_func func, size_t element_size, int commutes);
int pfmpl_ibarrier(fmpl_comm comm);
int pfmpl_ibarrier_wait(fmpl_comm comm);
int pfmpl_ibarrier_test(fmpl_comm comm, int *done);
int pfmpl_ibcast(void *buf, size_t size, int root, fmpl_comm comm);
int pfmpl_ibcast_wait(fmpl_comm comm);
int pfmpl_ibcast_test(fmpl_comm comm, int *done);
int pfmpl_iallreduce(void *buf, int count, fmpl_func func, fmpl_comm comm, void *work);
int pfmpl_iallreduce_wait(fmpl_comm comm);
int pfmpl_iallreduce_test(fmpl_comm comm, int *done);
int pfmpl_ireduce(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, void *work);
int pfmpl_ireduce_wait(fmpl_comm comm);
int pfmpl_ireduce_test(fmpl_comm comm, int *done);
int pfmpl_igather(const void *buf, size_t size, void *all, int root, fmpl_comm comm);
int pfmpl_igather_wait(fmpl_comm comm);
int pfmpl_igather_test(fmpl_comm comm, int *done);
int pfmpl_iallgather(const void *buf, size_t size, void *all, fmpl_comm comm);
int pfmpl_iallgather_wait(fmpl_comm comm);
int pfmpl_iallgather_test(fmpl_comm comm, int *done);
int pfmpl_iscatter(const void *all, size_t size, void *buf, int root, fmpl_comm comm);
int pfmpl_iscatter_wait(fmpl_comm comm);
int pfmpl_iscatter_test(fmpl_comm comm, int *done);
int pfmpl_ialltoall(const void *sent, size_t size, void *received, fmpl_comm comm);
int pfmpl_ialltoall_wait(fmpl_comm comm);
int pfmpl_ialltoall_test(fmpl_comm comm, int *done);
int pfmpl_ibarrier_n(fmpl_comm comm, uint64_t *ticket);
int pfmpl_ibcast_n(void *buf, size_t size, int root, fmpl_comm comm, uint64_t *ticket);
int pfmpl_ireduce_n(void *buf, int count, fmpl_func func, int root, fmpl_comm comm, uint64_t *ticket);
int pfmpl_iallreduce_n(void *buf, int count, fmpl_func func, fmpl_comm comm, uint64_t *ticket);
int pfmpl_igather_n(const void *buf, size_t size, void *all, int root, fmpl_comm comm, uint64_t *ticket);
int pfmpl_iallgather_n(const void *buf, size_t size, void *all, fmpl_comm comm, uint64_t *ticket);
int pfmpl_iscatter_n(const void *all, size_t size, void *buf, int root, fmpl_comm comm, uint64_t *ticket);
int pfmpl_ialltoall_n(const void *sent, size_t size, void *received, fmpl_comm comm, uint64_t *ticket);
int pfmpl_coll_wait(uint64_t ticket);
int pfmpl_coll_test(uint64_t ticket, int *done);
int pfmpl_gatherv(const void *buf, size_t size, void *all, const size_t *sizes, const size_t *places,
    int root, fmpl_comm comm);
int pfmpl_allgatherv(const void *buf, size_t size, void *all, const size_t *sizes, const size_t *places,
    fmpl_comm comm);
int pfmpl_scatterv(const void *all, const size_t *sizes, const size_t *places, void *buf, size_t size,
    int root, fmpl_comm comm);
int pfmpl_alltoallv(const void *sent, const size_t *sent_sizes, const size_t *sent_places, void *received,
    const size_t *received_sizes, const size_t *received_places, fmpl_comm comm);
int pfmpl_cart_create(fmpl_comm comm, int ndims, const int *dims, const int *periods, fmpl_comm *cart);
int pfmpl_cart_coords(fmpl_comm cart, int rank, int *coords);
int pfmpl_cart_rank(fmpl_comm cart, const int *coords, int *rank);
int pfmpl_cart_shift(fmpl_comm cart, int dim, int steps, int *src, int *dst);
int pfmpl_neighbour_allgather(const void *buf, size_t size, void *all, fmpl_comm cart);
int pfmpl_neighbour_alltoall(const void *sent, size_t size, void *received, fmpl_comm cart);

#ifdef __cplusplus
}
#endif

#endif /* FMPL_H */
