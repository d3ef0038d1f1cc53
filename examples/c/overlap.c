/*
 * Overlap: post the receive, compute, and take the data when it is needed. The sender writes straight into the posted buffer
 * while the receiver computes.
 *
 *     cc -O2 overlap.c -o overlap $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 2 ./overlap
 */
#include "example.h"

enum { N = 1 << 18, ROUNDS = 10 };

static double outgoing[N], incoming[N];

/* Some work that needs nothing from the others. */
static double compute(int rank, int round) {
    double sum = 0;
    int k;
    for (k = 1; k <= 200000; k++) sum += 1.0 / ((double)k * k + rank + round);
    return sum;
}

int main(void) {
    int rank, size, round, k;
    double result = 0;
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (round = 0; round < ROUNDS; round++) {
        for (k = 0; k < N; k++) outgoing[k] = rank * 1000.0 + round + k;
        /* There is no request object: peer, index and communicator name the request. */
        TRY(fmpl_irecv(incoming, sizeof incoming, last, 0, FMPL_COMM_WORLD));
        TRY(fmpl_isend(outgoing, sizeof outgoing, next, 0, FMPL_COMM_WORLD));
        result += compute(rank, round);
        TRY(fmpl_irecv_wait(last, 0, FMPL_COMM_WORLD));
        for (k = 0; k < N; k++) EXPECT(incoming[k] == last * 1000.0 + round + k);
        TRY(fmpl_isend_wait(next, 0, FMPL_COMM_WORLD));
    }
    EXPECT(result > 0);
    TRY(fmpl_barrier(FMPL_COMM_WORLD));
    if (rank == 0) printf("%d messages of %zu bytes moved while %d ranks computed\n", ROUNDS * size, sizeof incoming, size);
    TRY(fmpl_finalize());
    return 0;
}
