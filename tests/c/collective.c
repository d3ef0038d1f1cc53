/* Every collective call of fmpl.h, from C; and the predefined functions however the program was linked. With PLUGIN defined the file
 * is a shared object whose function `plugin` passes them; the program finds it as its argument. */
#define FMPL_PAPER_NAMES
#include <fmpl.h>

#include <complex.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifndef PLUGIN
#include "check.h"
#endif

enum { N = 1000 };

/* All predefined functions, by addresses that this object has. */
#define FUNCTIONS(F) F(isum) F(ssum) F(dsum) F(csum) F(zsum) F(iamax) F(samax) F(damax) F(camax) F(zamax) F(iamin) F(samin) F(damin) \
    F(camin) F(zamin) F(imaxval) F(smaxval) F(dmaxval) F(iminval) F(sminval) F(dminval)                                       \
    F(imax) F(smax) F(dmax) F(cmax) F(zmax) F(imin) F(smin) F(dmin) F(cmin) F(zmin)

#ifdef PLUGIN
int plugin(void)
#else
static int all_are_known(void)
#endif
{
#define CALL(f)                                                                               \
    {                                                                                         \
        double complex z = 0;                                                                 \
        if (fmpl_allreduce(&z, 1, fmpl_##f, FMPL_COMM_WORLD, NULL) != 0) return __LINE__;     \
    }
    FUNCTIONS(CALL)
    return 0;
}

#ifndef PLUGIN

/* a o b keeps the first of a and the last of b: it does not commute. */
typedef struct {
    int first, last, count;
} range;

static void join(void *inout, const void *in, int count)
{
    range *a = inout;
    const range *b = in;
    int k;
    for (k = 0; k < count; k++) {
        a[k].last = b[k].last;
        a[k].count += b[k].count;
    }
}

/* Rank r gives r + 1 ints, or as many to rank q as q + 1. */
static void uneven(void)
{
    int mine[64], *all = malloc(65 * 65 * sizeof *all), *got = malloc(65 * 65 * sizeof *got), k, q, at;
    size_t sizes[64], places[64], ours[64], own = (rank + 1) * sizeof(int);
    for (q = 0, at = 0; q < size; at += q + 1, q++) {
        sizes[q] = (q + 1) * sizeof(int);
        places[q] = at * sizeof(int);
        ours[q] = own;
    }
    for (k = 0; k <= rank; k++) mine[k] = 100 * rank + k;
    OK(fmpl_gatherv(mine, own, all, sizes, NULL, size - 1, FMPL_COMM_WORLD));
    OK(fmpl_allgatherv(mine, own, got, sizes, places, FMPL_COMM_WORLD));
    for (q = 0; q < size; q++)
        for (k = 0, at = (int)(places[q] / sizeof(int)); k <= q; k++)
            CHECK(got[at + k] == 100 * q + k && (rank != size - 1 || all[at + k] == got[at + k]));
    OK(fmpl_scatterv(got, sizes, places, all, own, 0, FMPL_COMM_WORLD));
    for (k = 0; k <= rank; k++) CHECK(all[k] == 100 * rank + k);
    for (k = 0; k < 65 * 65; k++) all[k] = 1000 * rank + k;
    OK(fmpl_alltoallv(all, sizes, NULL, got, ours, NULL, FMPL_COMM_WORLD));
    for (q = 0; q < size; q++)
        for (k = 0; k <= rank; k++) CHECK(got[q * (rank + 1) + k] == 1000 * q + rank * (rank + 1) / 2 + k);
    mine[0] = rank + 1;
    OK(fmpl_exscan(mine, 1, fmpl_isum, FMPL_COMM_WORLD));
    CHECK(mine[0] == (rank == 0 ? 1 : rank * (rank + 1) / 2));
    free(all);
    free(got);
}

/* Blocks of N ints of each rank for each: moved, reduced, and both without waiting. */
/* Those that do not wait, one at a time and several. */
static void begun(void)
{
    int mine[2] = {0, 1}, *all = malloc(2 * 64 * sizeof *all), *got = malloc(2 * 64 * sizeof *got), part[2], sum[8], k, done = 0;
    uint64_t ticket[8], other;
    fmpl_request requests[8];

    mine[0] = rank;
    OK(fmpl_ireduce(mine, 2, fmpl_isum, 0, FMPL_COMM_WORLD, NULL));
    CHECK(fmpl_igather_wait(FMPL_COMM_WORLD) == FMPL_ERR_REQUEST);
    OK(fmpl_ireduce_wait(FMPL_COMM_WORLD));
    CHECK(mine[0] == (rank == 0 ? size * (size - 1) / 2 : rank) && mine[1] == (rank == 0 ? size : 1));
    mine[0] = rank;
    mine[1] = 1;
    OK(fmpl_igather(mine, sizeof mine, all, size - 1, FMPL_COMM_WORLD));
    while (!done) OK(fmpl_igather_test(FMPL_COMM_WORLD, &done));
    if (rank == size - 1) CHECK(all[2 * (size - 1)] == size - 1 && all[0] == 0);
    OK(fmpl_iscatter(all, sizeof part, part, size - 1, FMPL_COMM_WORLD));
    OK(fmpl_iscatter_wait(FMPL_COMM_WORLD));
    CHECK(part[0] == rank && part[1] == 1);
    OK(fmpl_iallgather(mine, sizeof mine, all, FMPL_COMM_WORLD));
    OK(fmpl_iallgather_wait(FMPL_COMM_WORLD));
    for (k = 0; k < size; k++) CHECK(all[2 * k] == k);
    OK(fmpl_ialltoall(all, sizeof mine, got, FMPL_COMM_WORLD));
    for (done = 0; !done;) OK(fmpl_ialltoall_test(FMPL_COMM_WORLD, &done));
    for (k = 0; k < size; k++) CHECK(got[2 * k] == rank);
    for (done = 0; done < 5; done++) {
        int over;
        CHECK((done == 0 ? fmpl_ireduce_test(FMPL_COMM_WORLD, &over) : done == 1 ? fmpl_iscatter_test(FMPL_COMM_WORLD, &over)
             : done == 2 ? fmpl_iallgather_test(FMPL_COMM_WORLD, &over) : done == 3 ? fmpl_ialltoall_wait(FMPL_COMM_WORLD)
             : fmpl_igather_test(FMPL_COMM_WORLD, &over)) == FMPL_ERR_REQUEST);
    }

    for (k = 0; k < 8; k++) {
        sum[k] = rank + k;
        OK(fmpl_iallreduce_n(&sum[k], 1, fmpl_isum, FMPL_COMM_WORLD, &ticket[k]));
        CHECK(ticket[k] != 0);
        requests[k] = (fmpl_request){FMPL_REQUEST_ALLREDUCE, 0, 0, FMPL_COMM_WORLD, ticket[k]};
    }
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_coll_wait(ticket[5]));
    requests[5].kind = FMPL_REQUEST_NONE;
    OK(fmpl_waitall(requests, 8, NULL));
    for (k = 0; k < 8; k++) CHECK(sum[k] == size * (size - 1) / 2 + k * size);
    OK(fmpl_ibarrier_n(FMPL_COMM_WORLD, &ticket[0]));
    OK(fmpl_ibcast_n(&mine[1], sizeof mine[1], 0, FMPL_COMM_WORLD, &ticket[1]));
    OK(fmpl_ireduce_n(&sum[0], 1, fmpl_imaxval, 0, FMPL_COMM_WORLD, &ticket[2]));
    OK(fmpl_igather_n(mine, sizeof mine[0], all, 0, FMPL_COMM_WORLD, &ticket[3]));
    OK(fmpl_iallgather_n(mine, sizeof mine[0], got, FMPL_COMM_WORLD, &ticket[4]));
    OK(fmpl_coll_wait(ticket[3]));
    OK(fmpl_iscatter_n(all, sizeof part[0], part, 0, FMPL_COMM_WORLD, &ticket[5]));
    OK(fmpl_coll_wait(ticket[4]));
    OK(fmpl_ialltoall_n(got, sizeof got[0], all + 64, FMPL_COMM_WORLD, &ticket[6]));
    OK(fmpl_coll_wait(ticket[6]));
    for (k = 0; k < 3; k++)
        for (done = 0; !done;) OK(fmpl_coll_test(ticket[k], &done));
    OK(fmpl_coll_wait(ticket[5]));
    CHECK(part[0] == rank);
    for (k = 0; k < size; k++) CHECK(got[k] == k && all[64 + k] == rank);
    CHECK(fmpl_coll_wait(ticket[5]) == FMPL_ERR_REQUEST);
    CHECK(fmpl_ibarrier_n(FMPL_COMM_WORLD, NULL) == FMPL_ERR_ARGUMENT);
    for (k = 0; k < FMPL_TICKETS; k++) {
        OK(fmpl_ibarrier_n(FMPL_COMM_WORLD, &other));
        if (k == 0) ticket[0] = other;
    }
    CHECK(fmpl_ibarrier_n(FMPL_COMM_WORLD, &other) == FMPL_ERR_BUSY);
    /* A ticket is the communicator's and the call's number. */
    for (k = 0; k < FMPL_TICKETS; k++) OK(fmpl_coll_wait(ticket[0] + k));
    free(all);
    free(got);
}

/* A ring of all ranks, and a line. */
static void grids(void)
{
    int dims[2] = {1, 0}, periods[2] = {0, 1}, coords[2], peer, before, behind, mine, all[4] = {-1, -1, -1, -1}, give[4], k;
    fmpl_comm ring, line;

    dims[1] = size;
    OK(fmpl_cart_create(FMPL_COMM_WORLD, 2, dims, periods, &ring));
    OK(fmpl_cart_coords(ring, rank, coords));
    CHECK(coords[0] == 0 && coords[1] == rank);
    coords[1] = size;
    OK(fmpl_cart_rank(ring, coords, &peer));
    CHECK(peer == 0);
    OK(fmpl_cart_shift(ring, 1, 1, &before, &behind));
    CHECK(before == (rank + size - 1) % size && behind == (rank + 1) % size);
    OK(fmpl_cart_shift(ring, 0, 1, &peer, &k));
    CHECK(peer == FMPL_PROC_NULL && k == FMPL_PROC_NULL);
    mine = 100 + rank;
    OK(fmpl_neighbour_allgather(&mine, sizeof mine, all, ring));
    CHECK(all[0] == -1 && all[1] == -1 && all[2] == 100 + before && all[3] == 100 + behind);
    for (k = 0; k < 4; k++) give[k] = 10 * rank + k;
    OK(fmpl_neighbour_alltoall(give, sizeof give[0], all, ring));
    CHECK(all[0] == -1 && all[1] == -1 && all[2] == 10 * before + 3 && all[3] == 10 * behind + 2);
    OK(fmpl_cart_create(FMPL_COMM_WORLD, 1, dims, NULL, &line));
    CHECK((line != FMPL_COMM_NULL) == (rank == 0));
    if (line != FMPL_COMM_NULL) OK(fmpl_comm_free(&line));
    dims[0] = size + 1;
    CHECK(fmpl_cart_create(FMPL_COMM_WORLD, 1, dims, NULL, &line) == FMPL_ERR_ARGUMENT);
    CHECK(fmpl_cart_create(FMPL_COMM_WORLD, 0, dims, NULL, &line) == FMPL_ERR_ARGUMENT);
    CHECK(fmpl_cart_create(FMPL_COMM_WORLD, 1, NULL, NULL, &line) == FMPL_ERR_ARGUMENT);
    CHECK(fmpl_cart_coords(FMPL_COMM_WORLD, 0, coords) == FMPL_ERR_COMM);
    CHECK(fmpl_cart_coords(ring, size, coords) == FMPL_ERR_RANK);
    CHECK(fmpl_cart_shift(ring, 2, 1, &before, &behind) == FMPL_ERR_ARGUMENT);
    CHECK(strstr(fmpl_last_error(), "rank ") && strstr(fmpl_last_error(), "communicator "));
    CHECK(fmpl_neighbour_alltoall(give, 4, all, FMPL_COMM_WORLD) == FMPL_ERR_COMM);
    OK(fmpl_comm_free(&ring));
}

static void blocks(void)
{
    int *all = malloc(size * N * sizeof *all), *of_all = malloc(size * N * sizeof *all), mine[N], sum, k, r, done = 0;
    size_t bytes = sizeof mine;
    for (r = 0; r < size; r++)
        for (k = 0; k < N; k++) all[r * N + k] = 100 * rank + r + k;
    OK(fmpl_alltoall(all, bytes, of_all, FMPL_COMM_WORLD));
    for (r = 0; r < size; r++)
        for (k = 0; k < N; k++) CHECK(of_all[r * N + k] == 100 * r + rank + k);
    OK(fmpl_gather(all, bytes, of_all, size - 1, FMPL_COMM_WORLD));
    for (r = 0; r < size && rank == size - 1; r++) CHECK(of_all[r * N + 1] == 100 * r + 1);
    OK(fmpl_allgather(all, bytes, of_all, FMPL_COMM_WORLD));
    for (r = 0; r < size; r++) CHECK(of_all[r * N + 1] == 100 * r + 1);
    OK(fmpl_scatter(all, bytes, mine, 0, FMPL_COMM_WORLD));
    for (k = 0; k < N; k++) CHECK(mine[k] == rank + k);
    OK(fmpl_reduce_scatter(all, mine, N, fmpl_isum, FMPL_COMM_WORLD));
    for (sum = r = 0; r < size; r++) sum += 100 * r + rank;
    for (k = 0; k < N; k++) CHECK(mine[k] == sum + size * k);
    for (k = 0; k < N; k++) mine[k] = rank + k;
    OK(fmpl_scan(mine, N, fmpl_isum, FMPL_COMM_WORLD));
    for (k = 0; k < N; k++) CHECK(mine[k] == rank * (rank + 1) / 2 + (rank + 1) * k);
    {
        uint64_t members = (uint64_t)1 << (size - 1) | 1;
        mine[0] = rank + 1;
        if (rank == 0 || rank == size - 1) OK(fmpl_mcast_reduce(mine, 1, fmpl_isum, &members, 0, FMPL_COMM_WORLD));
        CHECK(mine[0] == (rank == 0 && size > 1 ? size + 1 : rank + 1));
        mine[0] = 0;
    }
    {
        /* The first and the last: each gives the other its rank, and its own to itself. */
        uint64_t members = (uint64_t)1 << (size - 1) | 1;
        int many = size > 1 ? 2 : 1, give[2] = {10 * rank, 10 * rank + 1}, take[2] = {-1, -1};
        int place = rank == 0 ? 0 : 1;
        if (rank == 0 || rank == size - 1) {
            OK(fmpl_mcast_alltoall(give, sizeof(int), take, &members, FMPL_COMM_WORLD));
            for (r = 0; r < many; r++) CHECK(take[r] == 10 * (r == 0 ? 0 : size - 1) + place);
        }
        CHECK(fmpl_mcast_alltoall(give, sizeof(int), take, NULL, FMPL_COMM_WORLD) == FMPL_ERR_ARGUMENT);
    }
    OK(fmpl_ibarrier(FMPL_COMM_WORLD));
    CHECK(fmpl_ibcast_wait(FMPL_COMM_WORLD) == FMPL_ERR_REQUEST);
    CHECK(fmpl_scan(mine, N, fmpl_isum, FMPL_COMM_WORLD) == FMPL_ERR_BUSY);
    OK(fmpl_ibarrier_wait(FMPL_COMM_WORLD));
    CHECK(fmpl_ibarrier_test(FMPL_COMM_WORLD, &done) == FMPL_ERR_REQUEST);
    OK(fmpl_ibcast(mine, bytes, 0, FMPL_COMM_WORLD));
    while (!done) OK(fmpl_ibcast_test(FMPL_COMM_WORLD, &done));
    for (k = 0; k < N; k++) CHECK(mine[k] == k);
    OK(fmpl_iallreduce(mine, N, fmpl_isum, FMPL_COMM_WORLD, NULL));
    OK(fmpl_iallreduce_wait(FMPL_COMM_WORLD));
    for (k = 0; k < N; k++) CHECK(mine[k] == size * k);
    OK(fmpl_iallreduce(mine, N, fmpl_imaxval, FMPL_COMM_WORLD, NULL));
    for (done = 0; !done;) OK(fmpl_iallreduce_test(FMPL_COMM_WORLD, &done));
    OK(fmpl_ibarrier(FMPL_COMM_WORLD));
    for (done = 0; !done;) OK(fmpl_ibarrier_test(FMPL_COMM_WORLD, &done));
    OK(fmpl_ibcast(mine, bytes, size - 1, FMPL_COMM_WORLD));
    OK(fmpl_ibcast_wait(FMPL_COMM_WORLD));
    for (k = 0; k < N; k++) CHECK(mine[k] == size * k);
    CHECK(fmpl_ibarrier_test(FMPL_COMM_WORLD, NULL) == FMPL_ERR_ARGUMENT);
    CHECK(fmpl_gather(NULL, bytes, of_all, 0, FMPL_COMM_WORLD) == FMPL_ERR_ARGUMENT);
    CHECK(strstr(fmpl_last_error(), "where there are 0"));
    CHECK(fmpl_scatter(all, bytes, mine, size, FMPL_COMM_WORLD) == FMPL_ERR_RANK);
    CHECK(fmpl_alltoall(all, bytes, NULL, FMPL_COMM_WORLD) == FMPL_ERR_ARGUMENT);
    OK(fmpl_alltoall(NULL, 0, NULL, FMPL_COMM_WORLD));
    OK(fmpl_scan(NULL, 0, fmpl_isum, FMPL_COMM_WORLD));
    free(all);
    free(of_all);
}

int main(int argc, char **argv)
{
    int root, k;
    static double d[N], work[N];
    static float s[N];
    static int i[N];
    static double complex z[N];
    static range r[N];
    OK(fmpl_init(NULL, NULL, 4));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    OK(fmpl_func_register(join, sizeof(range), 0));
    for (root = 0; root < size; root++) {
        for (k = 0; k < N; k++) {
            d[k] = rank == root ? k : -1;
            s[k] = (float)(rank + k);
            r[k].first = r[k].last = rank;
            r[k].count = 1;
        }
        OK(fmpl_barrier(FMPL_COMM_WORLD));
        OK(fmpl_bcast(d, sizeof d, root, FMPL_COMM_WORLD));
        OK(fmpl_reduce(s, N, fmpl_smax, root, FMPL_COMM_WORLD, NULL));
        OK(fmpl_reduce(r, N, join, root, FMPL_COMM_WORLD, NULL));
        for (k = 0; k < N; k++) {
            CHECK(d[k] == k);
            CHECK(s[k] == (float)((rank == root ? size - 1 : rank) + k));
            if (rank == root) CHECK(r[k].first == 0 && r[k].last == size - 1 && r[k].count == size);
            else CHECK(r[k].first == rank && r[k].last == rank && r[k].count == 1);
        }
    }
    for (k = 0; k < N; k++) {
        d[k] = rank + 0.5;
        i[k] = rank % 2 ? -rank : rank;
        z[k] = rank - 2.0 * rank * I;
    }
    OK(fmpl_allreduce(d, N, fmpl_dsum, FMPL_COMM_WORLD, work));
    OK(fmpl_allreduce(i, N, fmpl_iamax, FMPL_COMM_WORLD, NULL));
    OK(fmpl_allreduce(z, N, fmpl_zsum, FMPL_COMM_WORLD, NULL));
    for (k = 0; k < N; k++) {
        CHECK(d[k] == size * (size - 1) / 2 + 0.5 * size);
        CHECK(i[k] == ((size - 1) % 2 ? -(size - 1) : size - 1));
        CHECK(creal(z[k]) == size * (size - 1) / 2 && cimag(z[k]) == -(double)(size * (size - 1)));
    }
    blocks();
    uneven();
    begun();
    grids();
    CHECK(fmpl_allreduce(d, N, (fmpl_func)0, FMPL_COMM_WORLD, NULL) == FMPL_ERR_ARGUMENT);
    CHECK(all_are_known() == 0);
    fmpl_dsum(d, d + 1, 1);
    {
        /* By the paper's names and ours the same, which is not what a reader of MPI takes them for. */
        double paper = 2, ours = 2, plain = 2, other = -3;
        fmpl_dmax(&paper, &other, 1);
        fmpl_damax(&ours, &other, 1);
        fmpl_dmaxval(&plain, &other, 1);
        CHECK(paper == -3 && ours == -3 && plain == 2);
    }
    if (argc > 1) {
        void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*plugin)(void);
        CHECK(object != NULL);
        *(void **)&plugin = dlsym(object, "plugin");
        CHECK(plugin != NULL);
        CHECK(plugin() == 0);
    }
    OK(fmpl_finalize());
    return 0;
}

#endif
