/* A hash table over all ranks' memory: every rank puts and gets on its own, by remote atomic operations; no rank serves another.
 * Any number of ranks.
 *
 * A slot is two words, key and value, in the memory of the rank that the key's hash names. Who puts a key takes the first empty slot
 * from there by compare-and-swap, and then owns that key's value.
 *
 *     cc hash_table.c -o hash_table $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./hash_table
 */
#include <acp.h>
#include <fmpl.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4096, KEYS = 1000, EMPTY = 0 };

static acp_ga_t *parts;            /* where everybody's part of the table is */
static acp_ga_t result;            /* where old values come, in this rank's starter memory */
static volatile uint64_t *old;     /* the same as an address of this process */

static void try(int failed)
{
    if (!failed) return;
    fprintf(stderr, "%s\n", acp_last_error());
    exit(1);
}

/* What was there when the operation was done. */
static uint64_t completed(acp_handle_t handle)
{
    try(handle == ACP_HANDLE_NULL);
    acp_complete(handle);
    return *old;
}

/* The n-th slot at which a key may be. */
static acp_ga_t place(uint64_t key, uint64_t n)
{
    uint64_t slot = ((key * 0x9e3779b97f4a7c15u >> 20) + n) % ((uint64_t)SLOTS * acp_procs());
    return parts[slot % acp_procs()] + slot / acp_procs() * 16;
}

static void put(uint64_t key, uint64_t value)
{
    for (uint64_t n = 0; n < (uint64_t)SLOTS * acp_procs(); n++) {
        uint64_t found = completed(acp_cas8(result, place(key, n), EMPTY, key, ACP_HANDLE_NULL));
        if (found != EMPTY && found != key) continue;
        completed(acp_swap8(result, place(key, n) + 8, value, ACP_HANDLE_NULL));
        return;
    }
    acp_abort("the table is full");
}

/* The value of a key, or -1. */
static int64_t get(uint64_t key)
{
    for (uint64_t n = 0; n < (uint64_t)SLOTS * acp_procs(); n++) {
        uint64_t found = completed(acp_add8(result, place(key, n), 0, ACP_HANDLE_NULL));
        if (found == EMPTY) return -1;
        if (found == key) return (int64_t)completed(acp_add8(result, place(key, n) + 8, 0, ACP_HANDLE_NULL));
    }
    return -1;
}

int main(int argc, char **argv)
{
    try(acp_init(&argc, &argv));
    uint64_t me = acp_rank(), size = acp_procs();
    uint64_t *own = fmpl_alloc(SLOTS * 16);
    parts = malloc(size * sizeof *parts);
    if (!own || !parts) acp_abort("no memory");
    for (int n = 0; n < 2 * SLOTS; n++) own[n] = EMPTY;
    acp_atkey_t key = acp_register_memory(own, SLOTS * 16, 0);
    try(key == ACP_ATKEY_NULL);
    /* Everybody writes its address into its starter memory and reads the others'. */
    acp_ga_t starter = acp_query_starter_ga(me);
    volatile acp_ga_t *words = acp_query_address(starter);
    words[0] = acp_query_ga(key, own);
    result = starter + 8;
    old = &words[1];
    try(acp_sync());
    for (uint64_t rank = 0; rank < size; rank++)
        parts[rank] = completed(acp_copy(result, acp_query_starter_ga(rank), 8, ACP_HANDLE_NULL));
    /* Every rank's own keys, and one that all put. */
    for (uint64_t n = 0; n < KEYS; n++) put(1 + me + n * size, n * n + me);
    put(UINT64_MAX, me);
    try(acp_sync());
    for (uint64_t n = 0; n < KEYS * size; n++)
        if (get(1 + n) != (int64_t)(n / size * (n / size) + n % size)) acp_abort("a value is wrong");
    if (get(UINT64_MAX) < 0 || get(UINT64_MAX) >= (int64_t)size || get(KEYS * size + 1) != -1) acp_abort("a value is wrong");
    printf("rank %d: %d ranks put %d keys each and found all\n", (int)me, (int)size, KEYS);
    try(acp_sync());
    try(acp_unregister_memory(key));
    fmpl_free(own);
    free(parts);
    try(acp_finalize());
    return 0;
}
