/*
 * The testers of p?syevr and p?heevr call them with RANGE = 'A' and with VL and VU that were never set, and compare these afterwards
 * with what they were before ("IL, IU, VL or VU altered by PSSYEVR"). A NaN differs from itself; so they fail wherever the stack
 * happens to hold the bits of one, with any BLACS.
 *
 * Preloaded, this clears the stack below the functions that a tester calls before its variables come to lie there.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <string.h>

static __attribute__((noinline)) void clear(void) {
    size_t bytes = 64 << 10;
    char *below = alloca(bytes);
    memset(below, 0, bytes);
    __asm__ volatile("" : : "r"(below) : "memory");
}

/* A Fortran procedure whose arguments are addresses (and lengths of strings), a dozen at most, and whose value is an integer or none. */
#define THEN_CLEAR(name)                                                                                                        \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {                 \
        static long (*real)(long, long, long, long, long, long, long, long, long, long, long, long);                            \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                   \
        long value = real(a, b, c, d, e, f, g, h, i, j, k, l);                                                                  \
        clear();                                                                                                                \
        return value;                                                                                                           \
    }
THEN_CLEAR(blacs_gridinfo_)
THEN_CLEAR(descinit_)
THEN_CLEAR(iceil_)
THEN_CLEAR(igamn2d_)
THEN_CLEAR(igamx2d_)
THEN_CLEAR(igebr2d_)
THEN_CLEAR(igebs2d_)
THEN_CLEAR(ilcm_)
THEN_CLEAR(numroc_)
THEN_CLEAR(pslachkieee_)
THEN_CLEAR(pslasnbt_)
THEN_CLEAR(pdlachkieee_)
THEN_CLEAR(pdlasnbt_)
THEN_CLEAR(slabad_)
THEN_CLEAR(dlabad_)
THEN_CLEAR(slboot_)
