/* Work counter: tasks are shared out by one word of global memory. Whoever wants a task adds one to it; no rank hands out anything.
 * Any number of ranks.
 *
 *     cc work_counter.c -o work_counter $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./work_counter
 */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 1000 };

/* Tasks of very different lengths: the number of steps that 3n + 1 takes to 1. */
static uint64_t work(uint64_t task)
{
    uint64_t n = task + 1, steps = 0;
    for (; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

static void try(int failed)
{
    if (!failed) return;
    fprintf(stderr, "%s\n", acp_last_error());
    exit(1);
}

int main(int argc, char **argv)
{
    try(acp_init(&argc, &argv));
    /* In rank 0's starter memory, whose address everybody knows: the next task, and the steps of all. */
    acp_ga_t counter = acp_query_starter_ga(0), own = acp_query_starter_ga(acp_rank()) + 1024;
    volatile uint64_t *found = acp_query_address(own);
    uint64_t done = 0;
    try(!found);
    for (;;) {
        acp_handle_t next = acp_add8(own, counter, 1, ACP_HANDLE_NULL);
        try(next == ACP_HANDLE_NULL);
        acp_complete(next);
        if (*found >= TASKS) break;
        try(acp_add8(own + 8, counter + 8, work(*found), ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
        done++;
    }
    acp_complete(ACP_HANDLE_ALL);
    printf("rank %d did %d tasks\n", acp_rank(), (int)done);
    try(acp_sync());
    if (acp_rank() == 0) {
        uint64_t steps = 0;
        for (uint64_t task = 0; task < TASKS; task++) steps += work(task);
        volatile uint64_t *sum = acp_query_address(counter + 8);
        if (*sum != steps) acp_abort("the sum is wrong");
        printf("%d tasks done by %d ranks\n", TASKS, acp_procs());
    }
    try(acp_finalize());
    return 0;
}
