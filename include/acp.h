/*
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

/**
 * A global address: a number that names a byte of some rank's registered memory. Add bytes to it; read it by
 * acp_query_rank, acp_query_color, acp_query_address.
 */
typedef uint64_t acp_ga_t;

/** Names a registration of this rank. */
typedef uint64_t acp_atkey_t;

/** Names an operation of this rank. */
typedef int64_t acp_handle_t;

/* ---- Constants ----------------------------------------------------------------------------------------- */

/** No address. */
#define ACP_GA_NULL 0x0LLU

/** No registration. */
#define ACP_ATKEY_NULL 0x0LLU

/** As an order: after everything issued so far. In acp_complete and acp_inquire: all operations. */
#define ACP_HANDLE_ALL 0xffffffffffffffffLLU

/** As an order: right after the operation issued last, and so after everything before it. */
#define ACP_HANDLE_CONT 0xfffffffffffffffeLLU

/** As an order: at once. As a result: there is no global memory, since acp_init was not called. */
#define ACP_HANDLE_NULL 0x0LLU

/**
 * A bit of the handle of an operation that was refused (not ACP's): nothing has been done, and nothing that
 * is ordered after it will be.
 */
#define ACP_HANDLE_REFUSED 0x4000000000000000LLU

/* ---- Infrastructure ------------------------------------------------------------------------------------ */

/**
 * Joins the job and makes this rank's global memory; returns when all ranks have theirs. Counted: a further
 * init succeeds. A program that also uses messages calls fmpl_init as well, before or after. After the last
 * finalize init begins anew, as fmpl_init does.
 *
 * @param[in,out] argc the address of main's argc; left as it is, may be NULL.
 * @param[in,out] argv the address of main's argv; left as it is, may be NULL.
 * @return 0, or -1.
 */
int acp_init(int *argc, char ***argv);

/**
 * Completes this rank's operations, waits for all ranks, and leaves. All registrations end. With several
 * inits the last finalize does it.
 *
 * @return 0, or -1.
 */
int acp_finalize(void);

/**
 * Begins anew with another rank; collective. All registrations end, starter memory is zero. (The ranks of
 * fmpl_comm_rank stay.)
 *
 * @param[in] rank this rank's new number, another one for each rank, from 0 to acp_procs() - 1.
 * @return 0, or -1; when the numbers are not each once, at all ranks, which then keep those that they have.
 */
int acp_reset(int rank);

/**
 * Ends the whole job, every rank of it, with a message. Does not return.
 *
 * @param[in] str what to say; may be NULL.
 */
void acp_abort(const char *str);

/**
 * Waits until all ranks have called it. Operations need not be over.
 *
 * @return 0, or -1.
 */
int acp_sync(void);

/**
 * This process's rank.
 *
 * @return 0 to acp_procs() - 1, or -1.
 */
int acp_rank(void);

/**
 * The number of ranks.
 *
 * @return 1 or more, or -1.
 */
int acp_procs(void);

/**
 * What went wrong last in a call of this thread (not ACP's).
 *
 * @return 0, or the number of an error of fmpl.h, FMPL_ERR_*; it is 0 again after this call.
 */
int acp_errno(void);

/**
 * The text of what went wrong last in a call of this thread (not ACP's).
 *
 * @return the text, which names ranks, addresses and the cause, until the thread's next failing call; never
 *     NULL.
 */
const char *acp_last_error(void);

/* ---- Global memory management -------------------------------------------------------------------------- */

/**
 * The address of a rank's starter memory, which is registered from init on: what ranks tell each other other
 * addresses by. It is FMPL_RMA_STARTER bytes long, 10 KiB without it, and zero at first.
 *
 * @param[in] rank the rank.
 * @return the address, or ACP_GA_NULL.
 */
acp_ga_t acp_query_starter_ga(int rank);

/**
 * Registers memory: from then on all ranks reach it by its global addresses. Memory of fmpl_alloc is reached
 * fastest. A rank can have 255 registrations at a time (FMPL_RMA_KEYS), each of at most 16 GiB.
 *
 * @param[in] addr the memory.
 * @param[in] size bytes, at least 1.
 * @param[in] color 0 to acp_colors() - 1; a part of its addresses that makes no difference here.
 * @return the key, or ACP_ATKEY_NULL.
 */
acp_atkey_t acp_register_memory(void *addr, size_t size, int color);

/**
 * Ends a registration. Returns when no operation of any rank uses the memory any more; later ones on its
 * addresses fail, until the key is given out again for other memory.
 *
 * @param[in] atkey the key.
 * @return 0, or -1.
 */
int acp_unregister_memory(acp_atkey_t atkey);

/**
 * The global address of an address within a registration.
 *
 * @param[in] atkey the registration's key.
 * @param[in] addr the address.
 * @return the global address, or ACP_GA_NULL.
 */
acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr);

/**
 * The address in this process of a global address of this rank.
 *
 * @param[in] ga the global address.
 * @return the address, or NULL.
 */
void *acp_query_address(acp_ga_t ga);

/**
 * The rank whose memory a global address names.
 *
 * @param[in] ga the global address.
 * @return the rank, or -1.
 */
int acp_query_rank(acp_ga_t ga);

/**
 * The colour of a global address.
 *
 * @param[in] ga the global address.
 * @return the colour, or -1.
 */
int acp_query_color(acp_ga_t ga);

/**
 * How many colours there are.
 *
 * @return the number.
 */
int acp_colors(void);

/* ---- Global memory access ------------------------------------------------------------------------------ */

/**
 * Copies between any two global addresses, of whatever ranks.
 *
 * @param[in] dst where to.
 * @param[in] src where from.
 * @param[in] size bytes.
 * @param[in] order it starts when this operation and all issued before it are over; ACP_HANDLE_NULL: at once.
 * @return its handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/**
 * Replaces a word of 4 bytes if it has the old value.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] oldval what must be there.
 * @param[in] newval what replaces it.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval, acp_handle_t order);

/**
 * Replaces a word of 4 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Adds to a word of 4 bytes, wrapping.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Exclusive or on a word of 4 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Or on a word of 4 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * And on a word of 4 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 4 bytes.
 * @param[in] src the word, of any rank; aligned to 4 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Replaces a word of 8 bytes if it has the old value.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] oldval what must be there.
 * @param[in] newval what replaces it.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval, acp_handle_t order);

/**
 * Replaces a word of 8 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Adds to a word of 8 bytes, wrapping.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Exclusive or on a word of 8 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Or on a word of 8 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * And on a word of 8 bytes.
 *
 * @param[in] dst where in this rank's memory the word's value of before goes; aligned to 8 bytes.
 * @param[in] src the word, of any rank; aligned to 8 bytes.
 * @param[in] value the operand.
 * @param[in] order as for acp_copy.
 * @return the operation's handle; with the bit ACP_HANDLE_REFUSED when it was refused.
 */
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Waits until an operation and all issued before it are over. A failure among them, of which nobody has been
 * told, is said on standard error and kept for acp_errno; of one that was refused it is only kept. From then
 * on operations may be ordered after later ones again.
 *
 * @param[in] handle the operation; ACP_HANDLE_ALL: all. Of one that is over, or was never issued, it returns
 *     at once.
 */
void acp_complete(acp_handle_t handle);

/**
 * Looks whether an operation, or one issued before it, is not over. Failures as for acp_complete.
 *
 * @param[in] handle the operation; ACP_HANDLE_ALL: all.
 * @return 1 when something is not over, else 0.
 */
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* ACP_H */
