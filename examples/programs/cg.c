/*
 * Conjugate gradients as in HPCG, without its preconditioner: the matrix of a cube in which each point has 26 on the diagonal and -1 for
 * each of its up to 26 neighbours, cut into a block for each rank. An iteration exchanges faces with their edges and corners, one direction after the
 * other, and adds up two scalar products. The solution is known: all ones.
 *
 *     cc -O2 cg.c -o cg $(pkg-config --cflags --libs fmpl) -lm       fmpl run -n 4 ./cg 64 50
 *     mpicc -O2 -DWITH_MPI cg.c -o cg-mpi -lm                        mpiexec -n 4 ./cg-mpi 64 50
 *
 * Arguments: points each way, iterations at most. It ends when the residual is 1e-10 of the first.
 */
#include "grid.h"

#include <math.h>

/* Copies of the neighbours' points all around, edges and corners too: what came in one direction goes on in the next. */
static void exchange(grid *g, double *x) {
    for (int d = 0; d < 3; d++) {
        size_t bytes = grid_bytes(g, d, 1);
        for (int side = 0; side < 2; side++) post(g->packed[d][side][1], bytes, g->neighbour[d][side], 2 * d + 1 - side);
        for (int side = 0; side < 2; side++) {
            if (g->neighbour[d][side] == NOBODY) continue;
            grid_layer(g, x, d, side == 0 ? 0 : g->points[d] - 1, 1, g->packed[d][side][0], 0);
            start(g->packed[d][side][0], bytes, g->neighbour[d][side], 2 * d + side);
        }
        finish();
        for (int side = 0; side < 2; side++)
            if (g->neighbour[d][side] != NOBODY)
                grid_layer(g, x, d, side == 0 ? -1 : g->points[d], 1, g->packed[d][side][1], 1);
    }
}

/* y = A x; points outside of the cube are 0. */
static void multiply(grid *g, double *restrict x, double *restrict y) {
    exchange(g, x);
    for (int i = 0; i < g->points[0]; i++)
        for (int j = 0; j < g->points[1]; j++) {
            size_t row = grid_point(g, i, j, 0);
            for (int k = 0; k < g->points[2]; k++) {
                const double *at = x + row + k;
                double around = 0;
                for (long a = -1; a <= 1; a++)
                    for (long b = -1; b <= 1; b++) {
                        const double *line = at + a * (long)g->stride[0] + b * (long)g->stride[1];
                        around += (line[-1] + line[0]) + line[1];
                    }
                y[row + (size_t)k] = 27 * at[0] - around;
            }
        }
}

static double product(const grid *g, const double *x, const double *y) {
    double mine = 0;
    for (int i = 0; i < g->points[0]; i++)
        for (int j = 0; j < g->points[1]; j++) {
            size_t row = grid_point(g, i, j, 0);
            for (int k = 0; k < g->points[2]; k++) mine += x[row + (size_t)k] * y[row + (size_t)k];
        }
    sum(&mine, 1);
    return mine;
}

/* y = a x + b y */
static void add(const grid *g, double a, const double *x, double b, double *y) {
    for (int i = 0; i < g->points[0]; i++)
        for (int j = 0; j < g->points[1]; j++) {
            size_t row = grid_point(g, i, j, 0);
            for (int k = 0; k < g->points[2]; k++) y[row + (size_t)k] = a * x[row + (size_t)k] + b * y[row + (size_t)k];
        }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int n = number(argc, argv, 1, 24), most = number(argc, argv, 2, 200), done = 0;
    EXPECT(ranks <= MOST_RANKS && n >= 2);
    grid g;
    grid_cut(&g, n);
    size_t bytes = grid_size(&g) * sizeof(double);
    double *x = memory(bytes), *r = memory(bytes), *p = memory(bytes), *q = memory(bytes), *b = memory(bytes);
    for (int i = 0; i < g.points[0]; i++)
        for (int j = 0; j < g.points[1]; j++)
            for (int k = 0; k < g.points[2]; k++) q[grid_point(&g, i, j, k)] = 1;
    multiply(&g, q, b);
    memcpy(r, b, bytes);
    memcpy(p, b, bytes);

    meet();
    double began = seconds();
    communication = 0;
    double first = product(&g, r, r), rr = first;
    while (done < most && rr > 1e-20 * first) {
        multiply(&g, p, q);
        double alpha = rr / product(&g, p, q), before = rr;
        add(&g, alpha, p, 1, x);
        add(&g, -alpha, q, 1, r);
        rr = product(&g, r, r);
        add(&g, 1, r, rr / before, p);
        done++;
    }
    double whole = seconds() - began, spent = communication;

    /* The true residual, and how far the solution is from ones. */
    multiply(&g, x, q);
    add(&g, 1, b, -1, q);
    double residual = sqrt(product(&g, q, q) / first), farthest = 0;
    for (int i = 0; i < g.points[0]; i++)
        for (int j = 0; j < g.points[1]; j++)
            for (int k = 0; k < g.points[2]; k++) {
                double off = fabs(x[grid_point(&g, i, j, k)] - 1);
                if (off > farthest) farthest = off;
            }
    EXPECT(done == most || (residual < 1e-9 && farthest < 1e-6));
    char found[160];
    communication = spent;
    snprintf(found, sizeof found, "cg: %d^3 points, %d iterations on %d ranks (%d x %d x %d): residual %.1e", n, done, ranks,
             g.blocks[0], g.blocks[1], g.blocks[2], residual);
    report(found, whole);
    free(x), free(r), free(p), free(q), free(b);
    grid_free(&g);
    end();
    return 0;
}
