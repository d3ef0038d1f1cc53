/*
 * Preloaded before a BLACS: how much of pdgesv_ is communication. Measures the calls of the BLACS that move or combine data, by whoever's
 * library comes next, and says at the end of each pdgesv_ on standard error
 *
 *     pdgesv: 0.123456 s, of which 0.012345 s in 1370 calls of the BLACS
 *
 *     cc -O2 -shared -fPIC -o time_in_blacs.so time_in_blacs.c
 *     fmpl run -n 2 --env LD_PRELOAD=$PWD/time_in_blacs.so:libfmpl_blacs.so -- ./pdgesv 2000 8
 *
 * All arguments are integers and addresses. The wrappers take and hand on as many words as the longest list has, among them
 * the lengths of characters that Fortran adds: words beyond a call's own are never looked at.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TAKEN long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n, long o, long p
#define GIVEN a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
typedef void (*routine)(TAKEN);

static int counts, inside;
static long calls;
static double in_blacs;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static routine next(const char *name) {
    routine found;
    *(void **)&found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "time_in_blacs: no library has %s\n", name);
        abort();
    }
    return found;
}

/* One BLACS routine may call another: only the outermost counts. */
#define TIMED(name) \
    void name(TAKEN) { \
        static routine real; \
        if (!real) real = next(#name); \
        if (!counts || inside) { \
            real(GIVEN); \
            return; \
        } \
        double began = now(); \
        inside = 1; \
        real(GIVEN); \
        in_blacs += now() - began; \
        calls++; \
        inside = 0; \
    }
#define BOTH(name) TIMED(name##_) TIMED(C##name)
#define MOVES(t, ge) BOTH(t##ge##sd2d) BOTH(t##ge##rv2d) BOTH(t##ge##bs2d) BOTH(t##ge##br2d)
#define TYPE(t) MOVES(t, ge) MOVES(t, tr) BOTH(t##gsum2d) BOTH(t##gamx2d) BOTH(t##gamn2d)
TYPE(i) TYPE(s) TYPE(d) TYPE(c) TYPE(z) BOTH(blacs_barrier)

void pdgesv_(TAKEN) {
    double began = now();
    calls = 0, in_blacs = 0, counts = 1;
    next("pdgesv_")(GIVEN);
    counts = 0;
    fprintf(stderr, "pdgesv: %.6f s, of which %.6f s in %ld calls of the BLACS\n", now() - began, in_blacs, calls);
}
