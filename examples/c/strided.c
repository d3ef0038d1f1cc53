/*
 * Strided: a sub-matrix goes from rank 0 to rank 1 without being packed, and is transposed on the way by giving the other side
 * another shape; then a triangle goes as a list.
 *
 *     cc strided.c -o strided $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 2 ./strided
 */
#include <sys/uio.h>

#include "example.h"

enum { ROWS = 60, COLUMNS = 80, N = 20 };

static double matrix[ROWS][COLUMNS];

int main(void) {
    int rank, size, i, j;
    TRY(fmpl_init(NULL, NULL, 2 + N));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    if (size < 2) {
        fprintf(stderr, "strided needs two ranks: fmpl run -n 2 ./strided\n");
        fmpl_abort(2);
    }
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++) matrix[i][j] = rank == 0 ? i * COLUMNS + j : -1;

    /* Rows 10 to 29 of columns 5 to 14: 20 runs of 10 numbers, a row of the matrix apart. */
    fmpl_block part = {10 * sizeof(double), 20, sizeof matrix[0]};
    if (rank == 0) {
        TRY(fmpl_send_block(&matrix[10][5], part, 1, 0, FMPL_COMM_WORLD));
    } else if (rank == 1) {
        /* It lands elsewhere in a matrix that is otherwise left alone. */
        TRY(fmpl_recv_block(&matrix[30][40], part, 0, 0, FMPL_COMM_WORLD));
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < COLUMNS; j++) {
                int inside = i >= 30 && i < 50 && j >= 40 && j < 50;
                EXPECT(matrix[i][j] == (inside ? (i - 20) * COLUMNS + (j - 35) : -1));
            }
    }

    /* Row 2 + k of rank 0 becomes column k of rank 1: the same bytes, runs of one number on the other side. */
    for (i = 0; i < N && rank < 2; i++) {
        fmpl_block column = {sizeof(double), COLUMNS / 2, sizeof matrix[0]};
        if (rank == 0) TRY(fmpl_send(matrix[2 + i], COLUMNS / 2 * sizeof(double), 1, 2 + i, FMPL_COMM_WORLD));
        if (rank == 1) TRY(fmpl_recv_block(&matrix[0][i], column, 0, 2 + i, FMPL_COMM_WORLD));
    }
    if (rank == 1)
        for (i = 0; i < N; i++)
            for (j = 0; j < COLUMNS / 2; j++) EXPECT(matrix[j][i] == (2 + i) * COLUMNS + j);

    /* The lower triangle of the first N rows, into one array without gaps. */
    double packed[N * (N + 1) / 2];
    struct iovec rows[N];
    for (i = 0; i < N; i++) {
        rows[i].iov_base = matrix[i];
        rows[i].iov_len = (size_t)(i + 1) * sizeof(double);
    }
    if (rank == 0) {
        TRY(fmpl_send_list(rows, N, 1, 1, FMPL_COMM_WORLD));
    } else if (rank == 1) {
        const double *at = packed;
        TRY(fmpl_recv(packed, sizeof packed, 0, 1, FMPL_COMM_WORLD));
        for (i = 0; i < N; i++)
            for (j = 0; j <= i; j++) EXPECT(*at++ == i * COLUMNS + j);
        printf("a block, %d transposed rows and a triangle arrived\n", N);
    }
    TRY(fmpl_finalize());
    return 0;
}
