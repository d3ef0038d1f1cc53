/*
 * Preloaded before a BLACS: how much of pdgesv_ is communication. Measures the calls of the BLACS that move or combine data, by whoever's
 * library comes next, and says at the end of each pdgesv_ on standard error
 *
 *     pdgesv: 0.123456 s, of which 0.012345 s in 1370 calls of the BLACS
 *
 * With TIME_IN_BLACS=FILE in the environment it also writes what each call was to FILE.PROCESS, a line each: when it began and ended,
 * in seconds; the name without its type (sd2d, rv2d, bs2d, br2d, gsum2d, gamx2d, gamn2d, barrier); the scope's letter (- where there is
 * none); row and column that a message goes to or comes from, or that alone get a sum or maximum (-1: all do). The first line is pdgesv_.
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
#include <string.h>
#include <time.h>

#define TAKEN long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n, long o, long p
#define GIVEN a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
typedef void (*routine)(TAKEN);

enum { MOST = 1 << 17 };
struct call {
    const char *name;
    double began, ended;
    char scope;
    int row, column;
};
static struct call *calls;
static int counts, inside, number;

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

/* Where a call keeps its scope and its row, by the place in its list of arguments. */
static int place_of_scope(const char *name) { return strchr("sr", name[0]) ? -1 : strstr(name, "barrier") ? -1 : 1; }
static int place_of_row(const char *name) {
    if (!strcmp(name, "sd2d") || !strcmp(name, "rv2d")) return 5;
    if (!strcmp(name, "br2d") || !strcmp(name, "gsum2d")) return 7;
    return strstr(name, "gam") ? 10 : -1;
}

/* One BLACS routine may call another: only the outermost counts. C's names take integers by value. What follows a call looks at a copy
 * of its arguments: the list that it was given may be shorter, and what lies behind it is the caller's. */
static void note(const char *name, int by_value, double began, double ended, const long *given) {
    int scope = place_of_scope(name), row = place_of_row(name);
    struct call call = {name, began, ended, scope < 0 ? '-' : *(const char *)given[scope], -1, -1};
    if (row >= 0) {
        call.row = by_value ? (int)given[row] : *(const int *)given[row];
        call.column = by_value ? (int)given[row + 1] : *(const int *)given[row + 1];
    }
    if (number == MOST) abort();
    calls[number++] = call;
}

#define TIMED(whole, name, by_value) \
    void whole(TAKEN) { \
        static routine real; \
        if (!real) real = next(#whole); \
        if (!counts || inside) { \
            real(GIVEN); \
            return; \
        } \
        const long given[] = {GIVEN}; \
        double began = now(); \
        inside = 1; \
        real(GIVEN); \
        note(name, by_value, began, now(), given); \
        inside = 0; \
    }
#define BOTH(t, ge, name) TIMED(t##ge##name##_, #name, 0) TIMED(C##t##ge##name, #name, 1)
#define MOVES(t, ge) BOTH(t, ge, sd2d) BOTH(t, ge, rv2d) BOTH(t, ge, bs2d) BOTH(t, ge, br2d)
#define TYPE(t) MOVES(t, ge) MOVES(t, tr) BOTH(t, , gsum2d) BOTH(t, , gamx2d) BOTH(t, , gamn2d)
TYPE(i) TYPE(s) TYPE(d) TYPE(c) TYPE(z) BOTH(blacs_, , barrier)

static void write_calls(const char *file) {
    char path[4096];
    int me, processes;
    void (*pinfo)(int *, int *);
    *(void **)&pinfo = (void *)next("Cblacs_pinfo");
    pinfo(&me, &processes);
    if (snprintf(path, sizeof path, "%s.%d", file, me) >= (int)sizeof path) abort();
    FILE *out = fopen(path, "w");
    if (!out) abort();
    for (int k = 0; k < number; k++)
        fprintf(out, "%.9f %.9f %s %c %d %d\n", calls[k].began, calls[k].ended, calls[k].name, calls[k].scope,
            calls[k].row, calls[k].column);
    if (fclose(out)) abort();
}

void pdgesv_(TAKEN) {
    double in_blacs = 0;
    /* Touched before the time begins. */
    if (!calls) calls = malloc(MOST * sizeof *calls);
    if (!calls) abort();
    memset(calls, 0, MOST * sizeof *calls);
    double began = now();
    number = 1, counts = 1;
    next("pdgesv_")(GIVEN);
    counts = 0;
    calls[0] = (struct call){"pdgesv", began, now(), '-', -1, -1};
    for (int k = 1; k < number; k++) in_blacs += calls[k].ended - calls[k].began;
    fprintf(stderr, "pdgesv: %.6f s, of which %.6f s in %d calls of the BLACS\n", calls[0].ended - began, in_blacs, number - 1);
    const char *file = getenv("TIME_IN_BLACS");
    if (file) write_calls(file);
}
