/* Every call of acp.h. A program written for ACP: it includes nothing else of the library. */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs for ACP's own implementation define these; they mean nothing here. */
size_t iacp_starter_memory_size_dl = 0;
size_t iacp_starter_memory_size_cl = 0;

static int me = -1;

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: rank %d: not so: %s (%d, \"%s\")\n", __FILE__, __LINE__, me, #condition,       \
                    acp_errno(), acp_last_error());                                                                \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

static uint64_t *words(int rank)
{
    return acp_query_address(acp_query_starter_ga(rank));
}

int main(int argc, char **argv)
{
    static uint64_t table[1024], result[16];
    CHECK(acp_rank() == -1 && acp_errno() != 0 && acp_errno() == 0);
    CHECK(acp_init(&argc, &argv) == 0);
    me = acp_rank();
    int procs = acp_procs(), next = (me + 1) % procs, last = (me + procs - 1) % procs;
    CHECK(me >= 0 && me < procs && acp_colors() >= 1);

    acp_atkey_t key = acp_register_memory(table, sizeof table, 0), own = acp_register_memory(result, sizeof result, 1);
    CHECK(key != ACP_ATKEY_NULL && own != ACP_ATKEY_NULL);
    acp_ga_t ga = acp_query_ga(key, table), res = acp_query_ga(own, result);
    CHECK(ga != ACP_GA_NULL && res != ACP_GA_NULL && acp_query_ga(key, table + 10) == ga + 80);
    CHECK(acp_query_rank(ga) == me && acp_query_color(ga) == 0 && acp_query_color(res) == 1);
    CHECK(acp_query_address(ga + 16) == (void *)(table + 2));
    CHECK(acp_query_rank(ACP_GA_NULL) == -1 && acp_query_color(ACP_GA_NULL) == -1 && !acp_query_address(ACP_GA_NULL));

    /* The neighbours' addresses. */
    volatile uint64_t *starter = words(me);
    starter[0] = ga;
    CHECK(acp_sync() == 0);
    acp_ga_t mine = acp_query_starter_ga(me);
    acp_complete(acp_copy(mine + 8, acp_query_starter_ga(next), 8, ACP_HANDLE_NULL));
    acp_complete(acp_copy(mine + 16, acp_query_starter_ga(last), 8, ACP_HANDLE_NULL));
    acp_ga_t there = starter[1], before = starter[2];
    CHECK(acp_query_rank(there) == next && acp_query_rank(before) == last);

    /* All atomic operations on the next rank's table, in order, without waiting in between. */
    acp_handle_t h = ACP_HANDLE_NULL;
    h = acp_swap8(res, there, 40, h);
    h = acp_add8(res + 8, there, 2, h);
    h = acp_xor8(res + 16, there, 3, h);
    h = acp_or8(res + 24, there, 64, h);
    h = acp_and8(res + 32, there, 0x48, h);
    h = acp_cas8(res + 40, there, 0x48, 5, h);
    h = acp_cas8(res + 48, there, 0x48, 6, h);
    CHECK(h != ACP_HANDLE_NULL);
    h = acp_swap4(res + 56, there + 12, 40, h);
    h = acp_add4(res + 60, there + 12, 2, ACP_HANDLE_CONT);
    h = acp_xor4(res + 64, there + 12, 3, (acp_handle_t)ACP_HANDLE_ALL);
    h = acp_or4(res + 68, there + 12, 64, h);
    h = acp_and4(res + 72, there + 12, 0x48, h);
    h = acp_cas4(res + 76, there + 12, 0x48, 5, h);
    h = acp_cas4(res + 80, there + 12, 0x48, 6, h);
    CHECK(h != ACP_HANDLE_NULL);
    acp_complete(ACP_HANDLE_ALL);
    CHECK(acp_inquire(h) == 0 && acp_inquire(ACP_HANDLE_ALL) == 0 && acp_inquire(ACP_HANDLE_NULL) == 0);
    static const uint64_t wide[] = {0, 40, 42, 41, 105, 72, 5};
    static const uint32_t narrow[] = {0, 40, 42, 41, 105, 72, 5};
    CHECK(!memcmp(result, wide, sizeof wide) && !memcmp((char *)result + 56, narrow, sizeof narrow));
    acp_sync();
    CHECK(table[0] == 5 && table[1] == (uint64_t)5 << 32);

    /* From the last rank's table to the next one's, by this rank; then everybody's own. */
    for (int k = 512; k < 1024; k++) table[k] = (uint64_t)(me * 10000 + k);
    acp_sync();
    h = acp_copy(there + 8 * 16, before + 8 * 512, 8 * 400, ACP_HANDLE_NULL);
    acp_complete(h);
    acp_sync();
    int from = (me + 2 * procs - 2) % procs;
    for (int k = 0; k < 400; k++) CHECK(table[16 + k] == (uint64_t)(from * 10000 + 512 + k));

    /* Wrong use. */
    h = acp_copy(there, ACP_GA_NULL, 8, ACP_HANDLE_NULL);
    CHECK((h & ACP_HANDLE_REFUSED) && acp_errno() != 0);
    CHECK(strstr(acp_last_error(), "null address"));
    CHECK(acp_add8(res, there + 4, 1, ACP_HANDLE_NULL) & ACP_HANDLE_REFUSED && acp_errno() != 0);
    /* What is ordered after it is refused as well, until somebody has waited, and what names it itself for ever. */
    uint64_t untouched = result[15];
    CHECK(acp_copy(res + 120, ga, 8, h) & ACP_HANDLE_REFUSED && acp_errno() != 0);
    CHECK(acp_copy(res + 120, ga, 8, ACP_HANDLE_CONT) & ACP_HANDLE_REFUSED && acp_errno() != 0);
    CHECK(acp_inquire(h) == 0 && acp_errno() != 0);
    acp_complete(ACP_HANDLE_ALL);
    CHECK(acp_errno() != 0);
    CHECK(acp_add8(res + 120, ga, 1, h) & ACP_HANDLE_REFUSED && acp_errno() != 0);
    acp_complete(ACP_HANDLE_ALL);
    CHECK(acp_errno() != 0 && result[15] == untouched);
    h = acp_copy(res + 120, ga, 8, (acp_handle_t)ACP_HANDLE_ALL);
    CHECK(h != ACP_HANDLE_NULL && !(h & ACP_HANDLE_REFUSED));
    acp_complete(h);
    CHECK(acp_errno() == 0 && result[15] == table[0]);
    CHECK(acp_query_starter_ga(procs) == ACP_GA_NULL && acp_errno() != 0);
    CHECK(acp_unregister_memory(ACP_ATKEY_NULL) == -1 && acp_errno() != 0);
    acp_sync();
    CHECK(acp_unregister_memory(key) == 0 && acp_unregister_memory(own) == 0);

    CHECK(acp_reset(procs - 1 - me) == 0);
    CHECK(acp_rank() == procs - 1 - me && words(acp_rank())[0] == 0);
    CHECK(acp_finalize() == 0);
    CHECK(acp_procs() == -1);
    /* A job of its own, in which nothing of the first is left. */
    for (int round = 0; round < 3; round++) {
        CHECK(acp_init(&argc, &argv) == 0 && acp_rank() == me && words(me)[0] == 0);
        CHECK(acp_finalize() == 0);
    }
    if (argc > 1) acp_abort("asked to");
    return 0;
}
