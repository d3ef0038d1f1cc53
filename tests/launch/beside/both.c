/* MPI and FMPL in one process: both started and ended in the order that the arguments say, and used at the same time in between.
 *
 *   both START END [MILLISECONDS [ABORT]]
 *
 * START: mpi, fmpl (which of the two is initialised first), with (MPI first, FMPL by MPI_Allgather), id (MPI first, FMPL by an identifier that
 * MPI_Bcast passes round), late (FMPL initialised, used and finalised before MPI is initialised), never (MPI is not initialised at all).
 * END: mpi, fmpl (which of the two is finalised first). Rank 0 prints what it has exchanged; with ABORT rank 1 ends the job by fmpl_abort. */
#define _POSIX_C_SOURCE 200809L
#include "fmpl.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *start, *end;
static int rank = -1, size = -1;

static void must(int good, const char *what)
{
    if (good) return;
    fprintf(stderr, "both %s %s: rank %d: %s: %s\n", start, end, rank, what, fmpl_last_error());
    exit(1);
}

static int allgather(void *state, const void *mine, void *all, size_t bytes)
{
    *(int *)state += 1;
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void start_mpi(void) { must(MPI_Init(NULL, NULL) == MPI_SUCCESS, "MPI_Init"); }
static void start_fmpl(void) { must(fmpl_init(NULL, NULL, 8) == FMPL_SUCCESS, "fmpl_init"); }
static void end_mpi(void) { must(MPI_Finalize() == MPI_SUCCESS, "MPI_Finalize"); }
static void end_fmpl(void) { must(fmpl_finalize() == FMPL_SUCCESS, "fmpl_finalize"); }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fmpl_round(long k)
{
    long value = rank * 1000L + k, from = -1;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    must(fmpl_sendrecv(&value, sizeof value, right, 3, &from, sizeof from, left, 3, FMPL_COMM_WORLD) == FMPL_SUCCESS, "fmpl_sendrecv");
    must(from == left * 1000L + k, "what FMPL brought");
    static char out[100000], in[100000];
    memset(out, (char)(rank + k), sizeof out);
    must(fmpl_sendrecv(out, sizeof out, right, 4, in, sizeof in, left, 4, FMPL_COMM_WORLD) == FMPL_SUCCESS, "fmpl_sendrecv of 100 kB");
    must(in[0] == (char)(left + k) && in[sizeof in - 1] == (char)(left + k), "the long message that FMPL brought");
}

static void mpi_round(long k)
{
    int mine = rank + 1, sum = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    long value = rank * 1000L + k, from = -1;
    MPI_Sendrecv(&value, 1, MPI_LONG, right, 5, &from, 1, MPI_LONG, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(from == left * 1000L + k, "what MPI brought");
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    must(sum == size * (size + 1) / 2, "MPI_Allreduce");
}

int main(int argc, char **argv)
{
    start = argc > 1 ? argv[1] : "mpi", end = argc > 2 ? argv[2] : "mpi";
    int ms = argc > 3 ? atoi(argv[3]) : 0, calls = 0, mpi_rank = -1, mpi_size = -1;
    if (!strcmp(start, "fmpl") || !strcmp(start, "late") || !strcmp(start, "never")) {
        start_fmpl();
        if (strcmp(start, "fmpl")) {
            must(fmpl_comm_rank(FMPL_COMM_WORLD, &rank) == 0 && fmpl_comm_size(FMPL_COMM_WORLD, &size) == 0, "rank and size");
            fmpl_round(1);
            end_fmpl();
            if (!strcmp(start, "never")) {
                if (rank == 0) printf("fine: %s, %d ranks\n", start, size);
                return 0;
            }
        }
        start_mpi();
    } else {
        start_mpi();
        MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank), MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
        if (!strcmp(start, "with")) {
            must(fmpl_init_with(mpi_rank, mpi_size, allgather, &calls, 8) == FMPL_SUCCESS, "fmpl_init_with");
            must(calls == 2, "the number of exchanges");
        } else if (!strcmp(start, "id")) {
            fmpl_id id;
            if (mpi_rank == mpi_size - 1) must(fmpl_id_create(&id) == FMPL_SUCCESS, "fmpl_id_create");
            MPI_Bcast(&id, sizeof id, MPI_BYTE, mpi_size - 1, MPI_COMM_WORLD);
            must(fmpl_init_id(&id, mpi_rank, mpi_size, 8) == FMPL_SUCCESS, "fmpl_init_id");
        } else {
            start_fmpl();
        }
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank), MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    if (strcmp(start, "late")) {
        must(fmpl_comm_rank(FMPL_COMM_WORLD, &rank) == 0 && fmpl_comm_size(FMPL_COMM_WORLD, &size) == 0, "rank and size");
    }
    must(rank == mpi_rank && size == mpi_size, "ranks as MPI has them");
    if (argc > 4) {
        if (rank == 1) fmpl_abort(atoi(argv[4]));
        for (;;) sleep(1);
    }
    long k = 0;
    int go = 1;
    for (double until = now() + ms * 1e-3; go; k++) {
        if (strcmp(start, "late")) fmpl_round(k);
        mpi_round(k);
        go = now() < until;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (!strcmp(start, "late")) {
        end_mpi();
    } else if (!strcmp(end, "mpi")) {
        end_mpi();
        fmpl_round(k);
        end_fmpl();
    } else {
        end_fmpl();
        mpi_round(k);
        end_mpi();
    }
    if (rank == 0) printf("fine: %s, %s, %d ranks, %ld rounds\n", start, end, size, k);
    return 0;
}
