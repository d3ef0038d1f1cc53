/*
 * Sorting by samples: each rank sorts its keys, all agree on where to cut by a sample of them, each piece goes to the rank that it
 * belongs to, which merges what comes. Afterwards the keys are the same as before, and in order within and across ranks.
 *
 *     cc -O2 sort.c -o sort $(pkg-config --cflags --libs fmpl)       fmpl run -n 4 ./sort 1048576 3
 *     mpicc -O2 -DWITH_MPI sort.c -o sort-mpi                        mpiexec -n 4 ./sort-mpi 1048576 3
 *
 * Arguments: keys in all, and how often all of it is done.
 */
#include "sides.h"

enum { SAMPLES = 64 };

static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The first key that is not below a bound. */
static size_t below(const uint64_t *keys, size_t n, uint64_t bound) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (keys[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Two runs that are in order become one. */
static void merge(const uint64_t *a, size_t n, const uint64_t *b, size_t m, uint64_t *out) {
    size_t i = 0, j = 0;
    while (i < n && j < m) *out++ = b[j] < a[i] ? b[j++] : a[i++];
    memcpy(out, a + i, (n - i) * sizeof *a);
    memcpy(out + (n - i), b + j, (m - j) * sizeof *b);
}

/* Runs that lie one behind the other, so many bytes each, become one; which of the two memories it is in. */
static uint64_t *merge_all(uint64_t *keys, uint64_t *room, size_t *bytes, int runs) {
    while (runs > 1) {
        size_t at = 0;
        int left = 0;
        for (int r = 0; r < runs; r += 2, left++) {
            size_t n = bytes[r] / sizeof *keys, m = r + 1 < runs ? bytes[r + 1] / sizeof *keys : 0;
            merge(keys + at, n, keys + at + n, m, room + at);
            at += n + m;
            bytes[left] = (n + m) * sizeof *keys;
        }
        uint64_t *swap = keys;
        keys = room, room = swap, runs = left;
    }
    return keys;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int all = number(argc, argv, 1, 1 << 16), times = number(argc, argv, 2, 1);
    EXPECT(ranks <= MOST_RANKS && all / ranks >= SAMPLES);
    size_t n = (size_t)all / (size_t)ranks;
    uint64_t *keys = memory(n * sizeof *keys), state = 1 + (uint64_t)rank, fingerprint = 0;
    double whole = 0, spent = 0;
    for (int t = 0; t < times; t++) {
        uint64_t before = 0, after = 0;
        for (size_t k = 0; k < n; k++) {
            keys[k] = draw(&state);
            before += keys[k] * (keys[k] | 1);
        }
        meet();
        double began = seconds();
        communication = 0;
        qsort(keys, n, sizeof *keys, by_key);
        uint64_t sample[SAMPLES], samples[MOST_RANKS * SAMPLES];
        for (size_t k = 0; k < SAMPLES; k++) sample[k] = keys[(2 * k + 1) * n / (2 * SAMPLES)];
        gather_all(sample, sizeof sample, samples);
        qsort(samples, (size_t)ranks * SAMPLES, sizeof *samples, by_key);
        size_t sent[MOST_RANKS], come[MOST_RANKS], from = 0, total_come = 0;
        for (int r = 0; r < ranks; r++) {
            size_t to = r + 1 < ranks ? below(keys, n, samples[(r + 1) * SAMPLES]) : n;
            sent[r] = (to - from) * sizeof *keys, from = to;
        }
        swap_all(sent, sizeof *sent, come);
        for (int r = 0; r < ranks; r++) total_come += come[r];
        uint64_t *received = memory(total_come), *room = memory(total_come);
        swap_uneven(keys, sent, received, come);
        uint64_t *sorted = merge_all(received, room, come, ranks);
        whole += seconds() - began, spent += communication;

        size_t m = total_come / sizeof *sorted;
        for (size_t k = 0; k < m; k++) after += sorted[k] * (sorted[k] | 1);
        for (size_t k = 1; k < m; k++) EXPECT(sorted[k - 1] <= sorted[k]);
        uint64_t ends[2] = {m > 0 ? sorted[0] : 0, m > 0 ? sorted[m - 1] : 0}, of_all[MOST_RANKS][2];
        gather_all(ends, sizeof ends, of_all);
        for (int r = 1; r < ranks; r++) EXPECT(of_all[r - 1][1] <= of_all[r][0]);
        fingerprint = total(after);
        EXPECT(fingerprint == total(before));
        EXPECT(total(m) == (uint64_t)n * (uint64_t)ranks);
        free(received), free(room);
    }
    char found[120];
    communication = spent;
    snprintf(found, sizeof found, "sort: %d keys on %d ranks, %d times: fingerprint %016llx", all, ranks, times,
             (unsigned long long)fingerprint);
    report(found, whole);
    free(keys);
    end();
    return 0;
}
