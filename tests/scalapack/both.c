/* FMPL and the BLACS in one program: each sees the processes of the other, whichever initialises first (the argument). */
#include <fmpl.h>
#include <stdio.h>
#include <string.h>

void Cblacs_pinfo(int *me, int *all);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cigsum2d(int context, const char *scope, const char *top, int m, int n, int *a, int lda, int row, int col);
void Cblacs_exit(int go_on);

static void must(int well, const char *what) {
    if (well) return;
    fprintf(stderr, "both: %s: %s\n", what, fmpl_last_error());
    fmpl_abort(1);
}

int main(int argc, char **argv) {
    int me, all, rank = -1, size = -1, context, flag = 0, sum, sent, got = -1;
    int fmpl_first = argc > 1 && !strcmp(argv[1], "fmpl");
    if (fmpl_first) must(fmpl_init(NULL, NULL, 2) == FMPL_SUCCESS, "init");
    Cblacs_pinfo(&me, &all);
    fmpl_initialized(&flag);
    must(flag, "the BLACS have initialised another FMPL");
    if (!fmpl_first) must(fmpl_init(NULL, NULL, 2) == FMPL_SUCCESS, "init");
    fmpl_comm_rank(FMPL_COMM_WORLD, &rank), fmpl_comm_size(FMPL_COMM_WORLD, &size);
    must(rank == me && size == all, "rank and size");
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", 1, all);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    sum = sent = rank;
    must(fmpl_isend(&sent, sizeof sent, next, 1, FMPL_COMM_WORLD) == FMPL_SUCCESS, "isend");
    Cigsum2d(context, "All", " ", 1, 1, &sum, 1, -1, -1);
    must(sum == size * (size - 1) / 2, "sum");
    must(fmpl_recv(&got, sizeof got, last, 1, FMPL_COMM_WORLD) == FMPL_SUCCESS && got == last, "recv");
    must(fmpl_isend_wait(next, 1, FMPL_COMM_WORLD) == FMPL_SUCCESS, "isend_wait");
    Cblacs_exit(0);
    must(fmpl_barrier(FMPL_COMM_WORLD) == FMPL_SUCCESS, "FMPL goes on");
    must(fmpl_finalize() == FMPL_SUCCESS, "finalize");
    return 0;
}
