/* A box of points cut into blocks, one for each rank, and the exchange of the blocks' outermost points. */
#ifndef GRID_H
#define GRID_H

#include "sides.h"

/* A block: so many points each way, the first of them at `at` in the whole box; around them a layer of copies of the neighbours' points. */
typedef struct {
    int blocks[3], place[3], points[3], at[3];
    /* The ranks before and behind in each direction, or NOBODY. */
    int neighbour[3][2];
    /* How far one step in each direction is in memory. */
    size_t stride[3];
    /* Where layers are packed: by direction, before and behind, sent and received. */
    double *packed[3][2][2];
} grid;

static inline size_t grid_size(const grid *g) {
    return (size_t)(g->points[0] + 2) * (size_t)(g->points[1] + 2) * (size_t)(g->points[2] + 2);
}

/* Where a point of the block is; from -1, a copy, to `points`, another. */
static inline size_t grid_point(const grid *g, int i, int j, int k) {
    return (size_t)(i + 1) * g->stride[0] + (size_t)(j + 1) * g->stride[1] + (size_t)(k + 1);
}

/* Bytes of a layer of points across a direction. `wide`: with the copies at its edges. */
static inline size_t grid_bytes(const grid *g, int across, int wide) {
    size_t points = 1;
    for (int d = 0; d < 3; d++)
        if (d != across) points *= (size_t)(g->points[d] + 2 * wide);
    return points * sizeof(double);
}

/* The rank of the block at a place, if there is one. */
static inline int grid_rank(const grid *g, const int *place) {
    for (int d = 0; d < 3; d++)
        if (place[d] < 0 || place[d] >= g->blocks[d]) return NOBODY;
    return (place[0] * g->blocks[1] + place[1]) * g->blocks[2] + place[2];
}

/* Cuts a cube of n points each way so that the blocks have the least surface. */
static inline void grid_cut(grid *g, int n) {
    double least = 1e300;
    for (int a = 1; a <= ranks; a++)
        for (int b = 1; a * b <= ranks; b++) {
            if (ranks % (a * b) != 0) continue;
            int c = ranks / (a * b);
            double x = (double)n / a, y = (double)n / b, z = (double)n / c, surface = x * y + y * z + z * x;
            /* Faces across the last direction are scattered in memory: of equal ones those across the first. */
            if (a <= n && b <= n && c <= n && surface < least - 1e-6) {
                least = surface;
                g->blocks[0] = c, g->blocks[1] = b, g->blocks[2] = a;
            }
        }
    EXPECT(least < 1e300);
    g->place[0] = rank / (g->blocks[1] * g->blocks[2]);
    g->place[1] = rank / g->blocks[2] % g->blocks[1];
    g->place[2] = rank % g->blocks[2];
    for (int d = 0; d < 3; d++) {
        g->at[d] = (int)((long)n * g->place[d] / g->blocks[d]);
        g->points[d] = (int)((long)n * (g->place[d] + 1) / g->blocks[d]) - g->at[d];
        for (int side = 0; side < 2; side++) {
            int there[3] = {g->place[0], g->place[1], g->place[2]};
            there[d] += side == 0 ? -1 : 1;
            g->neighbour[d][side] = grid_rank(g, there);
        }
    }
    g->stride[2] = 1;
    g->stride[1] = (size_t)g->points[2] + 2;
    g->stride[0] = g->stride[1] * ((size_t)g->points[1] + 2);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++)
            for (int way = 0; way < 2; way++) g->packed[d][side][way] = memory(grid_bytes(g, d, 1));
}

static inline void grid_free(grid *g) {
    for (int k = 0; k < 12; k++) free(g->packed[k / 4][k / 2 % 2][k % 2]);
}

/* Copies such a layer out of the field or into it. */
static inline void grid_layer(const grid *g, double *field, int across, int layer, int wide, double *packed, int into) {
    int a = (across + 1) % 3, b = (across + 2) % 3;
    if (a > b) {
        int swap = a;
        a = b, b = swap;
    }
    size_t n = 0;
    for (int i = -wide; i < g->points[a] + wide; i++) {
        double *row = field + (size_t)(layer + 1) * g->stride[across] + (size_t)(i + 1) * g->stride[a];
        for (int j = -wide; j < g->points[b] + wide; j++, n++) {
            double *point = row + (size_t)(j + 1) * g->stride[b];
            if (into)
                *point = packed[n];
            else
                packed[n] = *point;
        }
    }
}

#endif
