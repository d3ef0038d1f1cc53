/*
 * What the programs beside this file ask of a message-passing library, on two sides: FMPL, and with -DWITH_MPI an MPI. Each call is
 * what a user of that library would write; the seconds spent in them are added up in `communication`.
 */
#ifndef SIDES_H
#define SIDES_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INDICES = 8, MOST_RANKS = 64 };

static int rank, ranks;
static double communication;

static inline double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef WITH_MPI

#include <mpi.h>

#define SIDE "MPI"
#define NOBODY MPI_PROC_NULL
/* The default error handler of MPI ends the job. */
#define LIBRARY(call)                         \
    do {                                      \
        double began_ = seconds();            \
        (void)(call);                         \
        communication += seconds() - began_;  \
    } while (0)

static MPI_Request pending[4 * INDICES];
static int pendings;

static inline void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}
static inline void end(void) { MPI_Finalize(); }
static inline void give_up(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

static inline void post(void *buf, size_t bytes, int from, int index) {
    LIBRARY(MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, index, MPI_COMM_WORLD, &pending[pendings++]));
}
static inline void start(const void *buf, size_t bytes, int to, int index) {
    LIBRARY(MPI_Isend(buf, (int)bytes, MPI_BYTE, to, index, MPI_COMM_WORLD, &pending[pendings++]));
}
static inline void finish(void) {
    MPI_Status ends[4 * INDICES];
    LIBRARY(MPI_Waitall(pendings, pending, ends));
    pendings = 0;
}
static inline void sum(double *x, int n) {
    LIBRARY(MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
}
static inline void gather_all(const void *mine, size_t bytes, void *all) {
    LIBRARY(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD));
}
static inline void swap_all(const void *sent, size_t bytes, void *received) {
    LIBRARY(MPI_Alltoall(sent, (int)bytes, MPI_BYTE, received, (int)bytes, MPI_BYTE, MPI_COMM_WORLD));
}
/* Lengths in bytes; what belongs to a rank lies right behind what belongs to the one before. */
static inline void swap_uneven(const void *sent, const size_t *lengths, void *received, const size_t *expected) {
    static int n[4][MOST_RANKS];
    for (int r = 0; r < ranks; r++) {
        n[0][r] = (int)lengths[r];
        n[1][r] = r > 0 ? n[1][r - 1] + n[0][r - 1] : 0;
        n[2][r] = (int)expected[r];
        n[3][r] = r > 0 ? n[3][r - 1] + n[2][r - 1] : 0;
    }
    LIBRARY(MPI_Alltoallv(sent, n[0], n[1], MPI_BYTE, received, n[2], n[3], MPI_BYTE, MPI_COMM_WORLD));
}
static inline void meet(void) { LIBRARY(MPI_Barrier(MPI_COMM_WORLD)); }

#else

#include <fmpl.h>

#define SIDE "FMPL"
#define NOBODY FMPL_PROC_NULL
#define LIBRARY(call)                                                                  \
    do {                                                                               \
        double began_ = seconds();                                                     \
        if ((call) != FMPL_SUCCESS) {                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, fmpl_last_error());     \
            fmpl_abort(1);                                                             \
        }                                                                              \
        communication += seconds() - began_;                                           \
    } while (0)

static fmpl_request pending[4 * INDICES];
static int pendings;

static inline void begin(int *argc, char ***argv) {
    (void)argc, (void)argv;
    LIBRARY(fmpl_init(NULL, NULL, INDICES));
    LIBRARY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    LIBRARY(fmpl_comm_size(FMPL_COMM_WORLD, &ranks));
}
static inline void end(void) { LIBRARY(fmpl_finalize()); }
static inline void give_up(void) { fmpl_abort(1); }

static inline void pends(int kind, int peer, int index) {
    fmpl_request request = {kind, peer, index, FMPL_COMM_WORLD, 0};
    pending[pendings++] = request;
}
static inline void post(void *buf, size_t bytes, int from, int index) {
    LIBRARY(fmpl_irecv(buf, bytes, from, index, FMPL_COMM_WORLD));
    pends(FMPL_REQUEST_RECV, from, index);
}
static inline void start(const void *buf, size_t bytes, int to, int index) {
    LIBRARY(fmpl_isend(buf, bytes, to, index, FMPL_COMM_WORLD));
    pends(FMPL_REQUEST_SEND, to, index);
}
static inline void finish(void) {
    LIBRARY(fmpl_waitall(pending, pendings, NULL));
    pendings = 0;
}
static inline void sum(double *x, int n) { LIBRARY(fmpl_allreduce(x, n, fmpl_dsum, FMPL_COMM_WORLD, NULL)); }
static inline void gather_all(const void *mine, size_t bytes, void *all) {
    LIBRARY(fmpl_allgather(mine, bytes, all, FMPL_COMM_WORLD));
}
static inline void swap_all(const void *sent, size_t bytes, void *received) {
    LIBRARY(fmpl_alltoall(sent, bytes, received, FMPL_COMM_WORLD));
}
/* Lengths in bytes; what belongs to a rank lies right behind what belongs to the one before. */
static inline void swap_uneven(const void *sent, const size_t *lengths, void *received, const size_t *expected) {
    LIBRARY(fmpl_alltoallv(sent, lengths, NULL, received, expected, NULL, FMPL_COMM_WORLD));
}
static inline void meet(void) { LIBRARY(fmpl_barrier(FMPL_COMM_WORLD)); }

#endif

#define EXPECT(condition)                                                                 \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: rank %d: wrong: %s\n", __FILE__, __LINE__, rank, #condition); \
            give_up();                                                                    \
        }                                                                                 \
    } while (0)

/* Memory where malloc puts it, zeroed. */
static inline void *memory(size_t bytes) {
    void *at = calloc(1, bytes > 0 ? bytes : 1);
    if (at == NULL) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", rank, bytes);
        give_up();
    }
    return at;
}

/* An argument that is a number, or what is usual. */
static inline int number(int argc, char **argv, int at, int usual) { return argc > at ? atoi(argv[at]) : usual; }

/* Added up over all ranks, whatever the order. */
static inline uint64_t total(uint64_t mine) {
    uint64_t all[MOST_RANKS], sum_of_all = 0;
    gather_all(&mine, sizeof mine, all);
    for (int r = 0; r < ranks; r++) sum_of_all += all[r];
    return sum_of_all;
}

/* Rank 0 says what was found, and the times of the slowest rank: all of it, and in the library. */
static inline void report(const char *found, double whole) {
    double mine[2] = {whole, communication}, all[MOST_RANKS][2];
    gather_all(mine, sizeof mine, all);
    for (int r = 0; r < ranks; r++)
        for (int k = 0; k < 2; k++)
            if (all[r][k] > mine[k]) mine[k] = all[r][k];
    if (rank == 0) printf("%s; %s: %.4f s, of it communication %.4f s\n", found, SIDE, mine[0], mine[1]);
}

#endif
