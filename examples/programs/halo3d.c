/*
 * Heat in a cube, by Jacobi's method: each point becomes a mean of its six neighbours and itself. Each rank has a block; the outermost
 * points go to the neighbours while the inner ones are computed. The sum of all bits of the result is the same on any number of ranks.
 *
 *     cc -O2 -ffp-contract=off halo3d.c -o halo3d $(pkg-config --cflags --libs fmpl)       fmpl run -n 4 ./halo3d 96 50
 *     mpicc -O2 -ffp-contract=off -DWITH_MPI halo3d.c -o halo3d-mpi                        mpiexec -n 4 ./halo3d-mpi 96 50
 *
 * Arguments: points each way, steps.
 */
#include "grid.h"

/* The temperature at the beginning: anything that differs from point to point. Outside of the cube it is 0. */
static double given(int i, int j, int k) {
    uint64_t x = ((uint64_t)i << 42 ^ (uint64_t)j << 21 ^ (uint64_t)k) * 0x9e3779b97f4a7c15u;
    return (double)((x ^ x >> 31) >> 12) * 0x1p-52;
}

/* A step for a part of the block. */
static void step(const grid *g, const double *restrict old, double *restrict new, const int *from, const int *to) {
    size_t up = g->stride[0], right = g->stride[1];
    for (int i = from[0]; i < to[0]; i++)
        for (int j = from[1]; j < to[1]; j++) {
            size_t row = grid_point(g, i, j, 0);
            for (int k = from[2]; k < to[2]; k++) {
                const double *at = old + row + k;
                double around = (at[-(long)up] + at[up]) + (at[-(long)right] + at[right]) + (at[-1] + at[1]);
                new[row + (size_t)k] = 0.4 * at[0] + 0.1 * around;
            }
        }
}

/* The faces are on their way. Receives are posted first, so that the neighbours can write straight into this rank's memory; each
 * direction in which something travels has an index. */
static void send_faces(grid *g, double *field) {
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++)
            post(g->packed[d][side][1], grid_bytes(g, d, 0), g->neighbour[d][side], 2 * d + 1 - side);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            if (g->neighbour[d][side] == NOBODY) continue;
            grid_layer(g, field, d, side == 0 ? 0 : g->points[d] - 1, 0, g->packed[d][side][0], 0);
            start(g->packed[d][side][0], grid_bytes(g, d, 0), g->neighbour[d][side], 2 * d + side);
        }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int n = number(argc, argv, 1, 48), steps = number(argc, argv, 2, 20);
    EXPECT(ranks <= MOST_RANKS && n >= 2 && steps >= 0);
    grid g;
    grid_cut(&g, n);
    double *field[2] = {memory(grid_size(&g) * sizeof(double)), memory(grid_size(&g) * sizeof(double))};
    for (int i = 0; i < g.points[0]; i++)
        for (int j = 0; j < g.points[1]; j++)
            for (int k = 0; k < g.points[2]; k++)
                field[0][grid_point(&g, i, j, k)] = given(g.at[0] + i, g.at[1] + j, g.at[2] + k);

    meet();
    double began = seconds();
    communication = 0;
    for (int t = 0; t < steps; t++) {
        double *old = field[t % 2], *new = field[1 - t % 2];
        send_faces(&g, old);
        int inner[2][3];
        for (int d = 0; d < 3; d++) inner[0][d] = 1, inner[1][d] = g.points[d] - 1;
        step(&g, old, new, inner[0], inner[1]);
        finish();
        for (int d = 0; d < 3; d++)
            for (int side = 0; side < 2; side++)
                if (g.neighbour[d][side] != NOBODY)
                    grid_layer(&g, old, d, side == 0 ? -1 : g.points[d], 0, g.packed[d][side][1], 1);
        /* The shell, in six parts that share no point: two whole faces, two without their edges, two without any. */
        for (int d = 0; d < 3; d++)
            for (int side = 0; side < 2; side++) {
                if (side == 1 && g.points[d] == 1) continue;
                int from[3], to[3];
                for (int e = 0; e < 3; e++) from[e] = e < d, to[e] = g.points[e] - (e < d);
                from[d] = side == 0 ? 0 : g.points[d] - 1, to[d] = from[d] + 1;
                step(&g, old, new, from, to);
            }
    }
    double whole = seconds() - began;

    uint64_t mine = 0;
    for (int i = 0; i < g.points[0]; i++)
        for (int j = 0; j < g.points[1]; j++)
            for (int k = 0; k < g.points[2]; k++) {
                uint64_t bits, place = ((uint64_t)(g.at[0] + i) * (uint64_t)n + (uint64_t)(g.at[1] + j)) * (uint64_t)n;
                memcpy(&bits, &field[steps % 2][grid_point(&g, i, j, k)], sizeof bits);
                mine += bits * (2 * (place + (uint64_t)(g.at[2] + k)) + 1);
            }
    char found[120];
    double spent = communication;
    uint64_t checksum = total(mine);
    communication = spent;
    snprintf(found, sizeof found, "halo3d: %d^3 points, %d steps on %d ranks (%d x %d x %d): checksum %016llx", n, steps, ranks,
             g.blocks[0], g.blocks[1], g.blocks[2], (unsigned long long)checksum);
    report(found, whole);
    free(field[0]), free(field[1]);
    grid_free(&g);
    end();
    return 0;
}
