/*
 * Halo exchange: Jacobi's method for the heat equation on a square, cut into as many columns of blocks as there are ranks. Each
 * rank keeps a copy of its neighbours' border columns. A column of a row-major array is strided: it is sent as a block, not packed.
 * The result is compared with the same computation on one rank.
 *
 *     cc -O2 halo_exchange.c -o halo_exchange $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./halo_exchange
 */
#include <string.h>

#include "example.h"

enum { ROWS = 48, COLUMNS = 60, STEPS = 100, LEFTWARDS = 0, RIGHTWARDS = 1 };

/* The temperature at the beginning, and for ever at the border. */
static double given(int row, int column) {
    if (row == 0) return 100.0;
    if (column == 0) return 50.0;
    return row == ROWS - 1 || column == COLUMNS - 1 ? 10.0 : 0.0;
}

/* One step for the inner points from one column to before another. */
static void step(double (*old)[COLUMNS + 2], double (*new)[COLUMNS + 2], int from, int to) {
    int i, j;
    for (i = 1; i < ROWS - 1; i++)
        for (j = from; j < to; j++) new[i][j] = 0.25 * (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]);
}

static double field[2][ROWS][COLUMNS + 2], whole[2][ROWS][COLUMNS + 2];

int main(void) {
    int rank, size, i, j, t;
    TRY(fmpl_init(NULL, NULL, 2));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    EXPECT(size <= COLUMNS / 2);
    /* My columns are first to first + width - 1; in my array they are 1 to width, between two columns of halo. */
    int first = COLUMNS * rank / size, width = COLUMNS * (rank + 1) / size - first;
    int left = rank > 0 ? rank - 1 : FMPL_PROC_NULL, right = rank < size - 1 ? rank + 1 : FMPL_PROC_NULL;
    for (t = 0; t < 2; t++)
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < COLUMNS; j++) {
                whole[t][i][j] = given(i, j);
                if (j >= first && j < first + width) field[t][i][j - first + 1] = given(i, j);
            }

    fmpl_block column = {sizeof(double), ROWS, sizeof field[0][0]};
    for (t = 0; t < STEPS; t++) {
        double(*old)[COLUMNS + 2] = field[t % 2], (*new)[COLUMNS + 2] = field[1 - t % 2];
        /* Posted first, so that the neighbours can write straight into the halo. Towards FMPL_PROC_NULL nothing happens. */
        TRY(fmpl_irecv_block(&old[0][0], column, left, RIGHTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_irecv_block(&old[0][width + 1], column, right, LEFTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_isend_block(&old[0][1], column, left, LEFTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_isend_block(&old[0][width], column, right, RIGHTWARDS, FMPL_COMM_WORLD));
        /* What needs no halo is computed meanwhile. */
        step(old, new, 2, width);
        TRY(fmpl_irecv_wait(left, RIGHTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_irecv_wait(right, LEFTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_isend_wait(left, LEFTWARDS, FMPL_COMM_WORLD));
        TRY(fmpl_isend_wait(right, RIGHTWARDS, FMPL_COMM_WORLD));
        if (rank > 0) step(old, new, 1, 2);
        if (rank < size - 1) step(old, new, width, width + 1);

        step(whole[t % 2], whole[1 - t % 2], 1, COLUMNS - 1);
    }
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < width; j++) EXPECT(field[STEPS % 2][i][j + 1] == whole[STEPS % 2][i][first + j]);
    TRY(fmpl_barrier(FMPL_COMM_WORLD));
    if (rank == 0) printf("%d steps on %d ranks: the same as on one\n", STEPS, size);
    TRY(fmpl_finalize());
    return 0;
}
