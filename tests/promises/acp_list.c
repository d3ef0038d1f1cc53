/*
 * A doubly linked list in rank 1's starter memory, at the end of which rank 0 inserts 100 000 values, as the lists of ACP's middle layer do:
 * for each it registers the word that the value is in, and ends the registration afterwards. Prints what registering alone takes (the median
 * of blocks of a hundred, since others may have the processor for a while), and what an insertion takes, in ns. Rank 1 looks at every element in the end. Includes nothing but acp.h, so that it compiles against any version.
 *
 *     FMPL_RMA_STARTER=8M fmpl run -n 2 -- ./acp_list
 */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { INSERTIONS = 100000, BLOCK = 100, BLOCKS = INSERTIONS / BLOCK, ELEMENT = 24, NEXT = 0, BEFORE = 8, VALUE = 16 };

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", acp_rank(), what, acp_last_error());
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static acp_atkey_t registered(void *word, acp_ga_t *ga)
{
    acp_atkey_t key = acp_register_memory(word, 8, 0);
    if (key == ACP_ATKEY_NULL) fail("register");
    *ga = acp_query_ga(key, word);
    return key;
}

static void copied(acp_ga_t dst, acp_ga_t src, size_t size)
{
    acp_errno();
    acp_complete(acp_copy(dst, src, size, ACP_HANDLE_NULL));
    if (acp_errno()) fail("copy");
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv)) fail("init");
    /* Word 0: the list's head, whose fields are as an element's. Own words: the element that is being made, and what was read. */
    acp_ga_t list = acp_query_starter_ga(1), own = acp_query_starter_ga(0);
    if (acp_rank() == 1) {
        volatile uint64_t *head = acp_query_address(list);
        head[0] = head[1] = list;
    }
    acp_sync();
    if (acp_rank() == 0) {
        volatile uint64_t *mine = acp_query_address(own);
        uint64_t *values = malloc(8 * INSERTIONS);
        acp_ga_t ga;
        static double blocks[BLOCKS];
        for (int k = 0; k < INSERTIONS; k++) values[k] = 0;
        for (int b = 0; b < BLOCKS; b++) {
            double t0 = now();
            for (int k = 0; k < BLOCK; k++) {
                acp_atkey_t key = acp_register_memory(&values[b * BLOCK + k], 8, 0);
                if (key == ACP_ATKEY_NULL || acp_unregister_memory(key)) fail("register, unregister");
            }
            blocks[b] = (now() - t0) / BLOCK;
        }
        qsort(blocks, BLOCKS, sizeof *blocks, by_size);
        double t1 = now();
        for (int k = 0; k < INSERTIONS; k++) {
            values[k] = 7 * k;
            acp_atkey_t key = registered(&values[k], &ga);
            acp_ga_t element = list + ELEMENT * (k + 1);
            copied(own, list + BEFORE, 8);
            mine[1] = list, mine[2] = mine[0], mine[3] = element;
            copied(element + NEXT, own + 8, 16);
            copied(element + VALUE, ga, 8);
            copied(mine[0] + NEXT, own + 24, 8);
            copied(list + BEFORE, own + 24, 8);
            if (acp_unregister_memory(key)) fail("unregister");
        }
        double t2 = now();
        printf("register %.0f insertion %.0f\n", blocks[BLOCKS / 2], (t2 - t1) / INSERTIONS);
        free(values);
    }
    acp_sync();
    if (acp_rank() == 1) {
        acp_ga_t at = list, before = list;
        for (int k = 0; k <= INSERTIONS; k++) {
            volatile uint64_t *element = acp_query_address(at);
            if (k > 0 && (element[2] != (uint64_t)7 * (k - 1) || element[1] != before)) fail("the list is wrong");
            before = at;
            at = element[0];
        }
        if (at != list) fail("the list does not end");
    }
    return acp_finalize() ? 1 : 0;
}
