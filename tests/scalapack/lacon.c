/*
 * p?lacon of ScaLAPACK 2.2.1 estimates the norm of a matrix, step by step: the caller multiplies and calls again. At every entry it
 * takes EST as the estimate so far, also before there is one, and its callers p?gerfs and p?porfs have EST on the stack, unset. Whether
 * another step is made depends on it (`ESTWORK.LE.ESTOLD`), on each process by itself; so with different remains on their stacks the
 * processes part ways, and wait for each other for ever, with any BLACS. Later versions of ScaLAPACK begin with EST = 0.
 *
 * Preloaded before ScaLAPACK, this sets EST at the first step; LACON says to what:
 *     zero    0, as later versions do: nobody hangs
 *     apart   0 on even rows of the grid, 1e30 on odd ones: what the stack may hold; a grid of several rows hangs
 *     as-is   what is there
 * With LACON_LOG=FILE each process writes to FILE.NUMBER what it finds there at every first step.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void blacs_gridinfo_(const int *context, int *rows, int *columns, int *row, int *column);
extern void blacs_pinfo_(int *number, int *processes);

/* The address of a function of ScaLAPACK. */
static void *next(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (!at) fprintf(stderr, "lacon: %s is not there\n", name), exit(1);
    return at;
}

static double first(const int *context, double found) {
    static FILE *log;
    const char *to = getenv("LACON"), *file = getenv("LACON_LOG");
    int rows, columns, row, column, number, processes;
    blacs_gridinfo_(context, &rows, &columns, &row, &column);
    if (file) {
        char name[4096];
        blacs_pinfo_(&number, &processes);
        snprintf(name, sizeof name, "%s.%d", file, number);
        if (!log && !(log = fopen(name, "w"))) perror(name), exit(1);
        fprintf(log, "%d x %d: {%d,%d} finds %g\n", rows, columns, row, column, found);
        fflush(log);
    }
    if (to && !strcmp(to, "zero")) return 0;
    if (to && !strcmp(to, "apart")) return row % 2 ? 1e30 : 0;
    return found;
}

/* The context is the second number of a descriptor. */
#define REAL(name, type)                                                                                                        \
    void name(const int *n, type *v, const int *iv, const int *jv, const int *descv, type *x, const int *ix, const int *jx,    \
              const int *descx, int *sign, type *est, int *kase) {                                                             \
        static void (*real)(const int *, type *, const int *, const int *, const int *, type *, const int *, const int *,      \
                            const int *, int *, type *, int *);                                                                \
        if (!real) *(void **)&real = next(#name);                                                                              \
        if (*kase == 0) *est = (type)first(&descx[1], *est);                                                                   \
        real(n, v, iv, jv, descv, x, ix, jx, descx, sign, est, kase);                                                          \
    }
#define COMPLEX(name, type)                                                                                                     \
    void name(const int *n, type *v, const int *iv, const int *jv, const int *descv, type *x, const int *ix, const int *jx,    \
              const int *descx, type *est, int *kase) {                                                                        \
        static void (*real)(const int *, type *, const int *, const int *, const int *, type *, const int *, const int *,      \
                            const int *, type *, int *);                                                                       \
        if (!real) *(void **)&real = next(#name);                                                                              \
        if (*kase == 0) *est = (type)first(&descx[1], *est);                                                                   \
        real(n, v, iv, jv, descv, x, ix, jx, descx, est, kase);                                                                \
    }
REAL(pslacon_, float)
REAL(pdlacon_, double)
COMPLEX(pclacon_, float)
COMPLEX(pzlacon_, double)
