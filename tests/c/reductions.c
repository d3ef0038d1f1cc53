/* Every predefined function of fmpl.h in every call that takes one, beside the same in C: elements combined in the order of the ranks. */
#include <fmpl.h>

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"

/* A number that depends on rank, place and kind; values come again. */
static uint64_t drawn(int r, int k) {
    uint64_t x = ((uint64_t)r << 32 | (uint64_t)k) * 0x9e3779b97f4a7c15u + 12345;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return k % 3 ? x ^ x >> 31 : (x >> 40) % 3;
}

#define SMALL(x) ((int)((x) >> 7 & 15) - 7)

/* One function in all calls. `make` makes an element of a number x, `fold` one of a and b, `same` compares a and b. */
#define CASE(name, T, make, fold, same)                                                                     \
    static T name##_made(uint64_t x) { return make; }                                                       \
    static T name##_fold(T a, T b) { return fold; }                                                         \
    static int name##_same(T a, T b) { return same; }                                                       \
    /* Element k of ranks 0 to `last`. */                                                                   \
    static T name##_until(int last, int k) {                                                                \
        T left = name##_made(drawn(0, k));                                                                  \
        int r;                                                                                              \
        for (r = 1; r <= last; r++) left = name##_fold(left, name##_made(drawn(r, k)));                     \
        return left;                                                                                        \
    }                                                                                                       \
    static void name##_fill(T *v, int n) {                                                                  \
        int k;                                                                                              \
        for (k = 0; k < n; k++) v[k] = name##_made(drawn(rank, k));                                         \
    }                                                                                                       \
    static void name##_check(int n) {                                                                       \
        T *all = malloc(((size_t)size * n + 1) * sizeof(T)), *v = malloc((n + 1) * sizeof(T));              \
        int k;                                                                                              \
        name##_fill(v, n);                                                                                  \
        OK(fmpl_reduce(v, n, fmpl_##name, n % size, FMPL_COMM_WORLD, NULL));                                \
        for (k = 0; k < n; k++)                                                                             \
            CHECK(name##_same(v[k], rank == n % size ? name##_until(size - 1, k) : name##_made(drawn(rank, k)))); \
        name##_fill(v, n);                                                                                  \
        OK(fmpl_allreduce(v, n, fmpl_##name, FMPL_COMM_WORLD, NULL));                                       \
        for (k = 0; k < n; k++) CHECK(name##_same(v[k], name##_until(size - 1, k)));                        \
        name##_fill(v, n);                                                                                  \
        OK(fmpl_iallreduce(v, n, fmpl_##name, FMPL_COMM_WORLD, NULL));                                      \
        OK(fmpl_iallreduce_wait(FMPL_COMM_WORLD));                                                          \
        for (k = 0; k < n; k++) CHECK(name##_same(v[k], name##_until(size - 1, k)));                        \
        name##_fill(all, size * n);                                                                         \
        OK(fmpl_reduce_scatter(all, v, n, fmpl_##name, FMPL_COMM_WORLD));                                   \
        for (k = 0; k < n; k++) CHECK(name##_same(v[k], name##_until(size - 1, rank * n + k)));             \
        name##_fill(v, n);                                                                                  \
        OK(fmpl_scan(v, n, fmpl_##name, FMPL_COMM_WORLD));                                                  \
        for (k = 0; k < n; k++) CHECK(name##_same(v[k], name##_until(rank, k)));                            \
        name##_fill(v, n);                                                                                  \
        OK(fmpl_exscan(v, n, fmpl_##name, FMPL_COMM_WORLD));                                                \
        for (k = 0; k < n; k++) CHECK(name##_same(v[k], name##_until(rank ? rank - 1 : 0, k)));             \
        /* Called by the program itself. */                                                                 \
        name##_fill(v, n);                                                                                  \
        for (k = 0; k < n; k++) all[k] = name##_made(drawn(size, k));                                       \
        fmpl_##name(v, all, n);                                                                             \
        for (k = 0; k < n; k++)                                                                             \
            CHECK(name##_same(v[k], name##_fold(name##_made(drawn(rank, k)), name##_made(drawn(size, k))))); \
        free(all);                                                                                          \
        free(v);                                                                                            \
    }

#define ORDERED(kind, T, make)                                                          \
    typedef struct {                                                                    \
        T value;                                                                        \
        int index;                                                                      \
    } kind##_located;                                                                   \
    CASE(kind##maxval, T, make, a > b ? a : b, a == b)                                  \
    CASE(kind##minval, T, make, a < b ? a : b, a == b)                                  \
    static kind##_located kind##_at(uint64_t x) {                                       \
        kind##_located made;                                                            \
        memset(&made, 0x55, sizeof made);                                               \
        made.value = make;                                                              \
        made.index = (int)(x >> 33 & 3);                                                \
        return made;                                                                    \
    }                                                                                   \
    CASE(kind##maxloc, kind##_located, kind##_at(x),                                    \
         b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a, a.value == b.value && a.index == b.index) \
    CASE(kind##minloc, kind##_located, kind##_at(x),                                    \
         b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a, a.value == b.value && a.index == b.index)

#define ARITHMETIC(kind, T, make, added, times) \
    CASE(kind##sum, T, make, added, a == b)     \
    CASE(kind##prod, T, make, times, a == b)

#define LOGICAL(kind, T)                                  \
    CASE(kind##land, T, (T)x, (T)(a && b), a == b)        \
    CASE(kind##lor, T, (T)x, (T)(a || b), a == b)         \
    CASE(kind##lxor, T, (T)x, (T)(!a != !b), a == b)

#define INTEGER(kind, T)                                                                                \
    ARITHMETIC(kind, T, (T)x, (T)((uint64_t)a + (uint64_t)b), (T)((uint64_t)a * (uint64_t)b))           \
    ORDERED(kind, T, (T)x)                                                                              \
    LOGICAL(kind, T)                                                                                    \
    CASE(kind##band, T, (T)x, (T)(a & b), a == b)                                                       \
    CASE(kind##bor, T, (T)x, (T)(a | b), a == b)                                                        \
    CASE(kind##bxor, T, (T)x, (T)(a ^ b), a == b)

INTEGER(i8, int8_t)
INTEGER(i16, int16_t)
INTEGER(i, int)
INTEGER(i64, int64_t)
INTEGER(u8, uint8_t)
INTEGER(u16, uint16_t)
INTEGER(u32, uint32_t)
INTEGER(u64, uint64_t)
/* Sums of thirds depend on the order of the additions. */
ARITHMETIC(s, float, SMALL(x) / 3.0f, a + b, a *b)
ORDERED(s, float, SMALL(x) / 3.0f)
ARITHMETIC(d, double, SMALL(x) / 3.0, a + b, a *b)
ORDERED(d, double, SMALL(x) / 3.0)
#define ABS(x) ((x) < 0 ? -(x) : (x))
#define BY_SIZE(kind, T)                                                                             \
    CASE(kind##amax, T, SMALL(x), ABS(b) > ABS(a) || (ABS(b) == ABS(a) && b > a) ? b : a, a == b)    \
    CASE(kind##amin, T, SMALL(x), ABS(b) < ABS(a) || (ABS(b) == ABS(a) && b < a) ? b : a, a == b)
BY_SIZE(i, int)
BY_SIZE(s, float)
BY_SIZE(d, double)
ARITHMETIC(c, float complex, SMALL(x) % 3 + SMALL(x >> 9) % 3 * I, a + b, a *b)
ARITHMETIC(z, double complex, SMALL(x) % 5 + SMALL(x >> 9) % 5 * I, a + b, a *b)
#define TAXI(z) (fabs_of(creal(z)) + fabs_of(cimag(z)))
static double fabs_of(double x) { return x < 0 ? -x : x; }
/* Is b before a, in size, real, imaginary part? */
static int before(double complex a, double complex b) {
    if (TAXI(a) != TAXI(b)) return TAXI(b) < TAXI(a);
    return creal(a) != creal(b) ? creal(b) < creal(a) : cimag(b) < cimag(a);
}
CASE(camax, float complex, SMALL(x) + SMALL(x >> 9) * I, before(b, a) ? b : a, a == b)
CASE(camin, float complex, SMALL(x) + SMALL(x >> 9) * I, before(a, b) ? b : a, a == b)
CASE(zamax, double complex, SMALL(x) + SMALL(x >> 9) * I, before(b, a) ? b : a, a == b)
CASE(zamin, double complex, SMALL(x) + SMALL(x >> 9) * I, before(a, b) ? b : a, a == b)
LOGICAL(b8, bool)

/* Small whole numbers as half and bfloat16 have them, and back. */
static uint16_t half_of(int n) {
    int e = 0, size = n < 0 ? -n : n;
    while (size >> (e + 1)) e++;
    return (uint16_t)((n < 0 ? 0x8000 : 0) | (n ? ((e + 15) << 10 | (size << (10 - e) & 0x3ff)) : 0));
}
static int of_half(uint16_t h) {
    int size = h & 0x7fff ? ((h & 0x3ff) | 0x400) >> (25 - (h >> 10 & 31)) : 0;
    return h & 0x8000 ? -size : size;
}
static uint16_t brain_of(int n) {
    float f = (float)n;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (uint16_t)(bits >> 16);
}
static int of_brain(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return (int)f;
}
CASE(f16sum, uint16_t, half_of(SMALL(x)), half_of(of_half(a) + of_half(b)), a == b)
CASE(bf16sum, uint16_t, brain_of(SMALL(x)), brain_of(of_brain(a) + of_brain(b)), a == b)

#ifdef __x86_64__
/* More bits than a double has. */
ARITHMETIC(f80, long double, SMALL(x) / 3.0L, a + b, a *b)
ORDERED(f80, long double, SMALL(x) / 3.0L)
#endif

#define WITH_ORDER(F, kind) F(kind##sum) F(kind##prod) F(kind##maxval) F(kind##minval) F(kind##maxloc) F(kind##minloc)
#define WITH_BITS(F, kind) \
    WITH_ORDER(F, kind) F(kind##land) F(kind##lor) F(kind##lxor) F(kind##band) F(kind##bor) F(kind##bxor)
#define FUNCTIONS(F)                                                                                                 \
    WITH_BITS(F, i8) WITH_BITS(F, i16) WITH_BITS(F, i) WITH_BITS(F, i64) WITH_BITS(F, u8) WITH_BITS(F, u16)          \
    WITH_BITS(F, u32) WITH_BITS(F, u64) WITH_ORDER(F, s) WITH_ORDER(F, d) F(iamax) F(iamin) F(samax) F(samin)        \
    F(damax) F(damin) F(csum) F(cprod) F(camax) F(camin) F(zsum) F(zprod) F(zamax) F(zamin) F(b8land) F(b8lor)       \
    F(b8lxor) F(f16sum) F(bf16sum)

int main(void) {
    static const int counts[] = {0, 1, 3, 61, 700};
    size_t k;
    OK(fmpl_init(NULL, NULL, 1));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    for (k = 0; k < sizeof counts / sizeof *counts; k++) {
#define RUN(name) name##_check(counts[k]);
        FUNCTIONS(RUN)
#ifdef __x86_64__
        WITH_ORDER(RUN, f80)
#endif
    }
    OK(fmpl_finalize());
    return 0;
}
