/*
 * Work queue: rank 0 hands out tasks to whoever asks, and takes the results from whoever has one. Any number of ranks.
 *
 * A worker asks by sending its last result to "any source" at rank 0, which answers on the worker's own index.
 *
 *     cc work_queue.c -o work_queue $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./work_queue
 */
#include "example.h"

enum { TASKS = 1000, NO_MORE = -1 };

/* Tasks of very different lengths: the number of steps that 3n + 1 takes to 1. */
static long work(long task) {
    long long n = task + 1;
    long steps = 0;
    for (; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

int main(void) {
    static long results[TASKS];
    int rank, size, worker, at_work, task_number;
    long said[2] = {NO_MORE, 0}, task, next = 0;
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    if (rank == 0) {
        for (task_number = 0; task_number < TASKS; task_number++) results[task_number] = NO_MORE;
        for (at_work = size - 1; at_work > 0;) {
            TRY(fmpl_recv_any_from(said, sizeof said, 0, FMPL_COMM_WORLD, &worker, NULL));
            if (said[0] != NO_MORE) results[said[0]] = said[1];
            task = next < TASKS ? next++ : NO_MORE;
            if (task == NO_MORE) at_work--;
            TRY(fmpl_send(&task, sizeof task, worker, 0, FMPL_COMM_WORLD));
        }
        for (task_number = 0; task_number < TASKS; task_number++) {
            /* Alone, rank 0 does it all. */
            if (results[task_number] == NO_MORE) results[task_number] = work(task_number);
            EXPECT(results[task_number] == work(task_number));
        }
        printf("%d tasks done by %d ranks\n", TASKS, size);
    } else {
        for (;;) {
            TRY(fmpl_send_any(said, sizeof said, 0, 0, FMPL_COMM_WORLD));
            TRY(fmpl_recv(&task, sizeof task, 0, 0, FMPL_COMM_WORLD));
            if (task == NO_MORE) break;
            said[0] = task;
            said[1] = work(task);
        }
    }
    TRY(fmpl_finalize());
    return 0;
}
