/* Every collective call of fmpl.h, from C; and the predefined functions however the program was linked. With PLUGIN defined the file
 * is a shared object whose function `plugin` passes them; the program finds it as its argument. */
#include <fmpl.h>

#include <complex.h>
#include <dlfcn.h>
#include <stdlib.h>

#ifndef PLUGIN
#include "check.h"
#endif

enum { N = 1000 };

/* All predefined functions, by addresses that this object has. */
#define FUNCTIONS(F) F(isum) F(ssum) F(dsum) F(csum) F(zsum) F(imax) F(smax) F(dmax) F(cmax) F(zmax) F(imin) F(smin) F(dmin) \
    F(cmin) F(zmin) F(imaxval) F(smaxval) F(dmaxval) F(iminval) F(sminval) F(dminval)

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
    OK(fmpl_allreduce(i, N, fmpl_imax, FMPL_COMM_WORLD, NULL));
    OK(fmpl_allreduce(z, N, fmpl_zsum, FMPL_COMM_WORLD, NULL));
    for (k = 0; k < N; k++) {
        CHECK(d[k] == size * (size - 1) / 2 + 0.5 * size);
        CHECK(i[k] == ((size - 1) % 2 ? -(size - 1) : size - 1));
        CHECK(creal(z[k]) == size * (size - 1) / 2 && cimag(z[k]) == -(double)(size * (size - 1)));
    }
    CHECK(fmpl_allreduce(d, N, (fmpl_func)0, FMPL_COMM_WORLD, NULL) == FMPL_ERR_ARGUMENT);
    CHECK(all_are_known() == 0);
    fmpl_dsum(d, d + 1, 1);
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
