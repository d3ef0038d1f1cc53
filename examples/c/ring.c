/*
 * Ring: every rank's number travels once round all ranks, and everyone adds them up.
 *
 *     cc ring.c -o ring $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./ring
 */
#include "example.h"

int main(void) {
    int rank, size, step;
    long sum, travelling, arriving;
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    sum = travelling = rank + 1;
    for (step = 1; step < size; step++) {
        /* All send and receive at the same time; nobody has to begin. */
        TRY(fmpl_sendrecv(&travelling, sizeof travelling, next, 0, &arriving, sizeof arriving, last, 0, FMPL_COMM_WORLD));
        travelling = arriving;
        sum += travelling;
    }
    EXPECT(sum == (long)size * (size + 1) / 2);
    if (rank == 0) printf("the sum of 1 to %d is %ld\n", size, sum);
    TRY(fmpl_finalize());
    return 0;
}
