/*
 * A tool that counts and times calls: it defines them itself, and goes on with the library's own by their second names. It says what it
 * has seen when the program finalizes. The program is any, and need not know:
 *
 *     cc -shared -fPIC watched.c -o libwatched.so $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 -x LD_PRELOAD=$PWD/libwatched.so ./ring
 *
 * or it is linked with it: cc ring.c watched.c -o ring $(pkg-config --cflags --libs fmpl)
 */
#include <stdio.h>

#include <fmpl.h>

enum { SEND, RECV, SENDRECV, ISEND, IRECV, WAIT, COLLECTIVE, KINDS };
static const char *const names[KINDS] = {"send", "recv", "sendrecv", "isend", "irecv", "wait", "collective"};
/* Calls may be made by several threads at once. */
static unsigned long calls[KINDS], nanoseconds[KINDS];

static int counted(int kind, double since, int code) {
    __atomic_fetch_add(&calls[kind], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&nanoseconds[kind], (unsigned long)((pfmpl_wtime() - since) * 1e9), __ATOMIC_RELAXED);
    return code;
}

#define WATCHED(kind, name, parameters, arguments)                \
    int fmpl_##name parameters {                                  \
        double since = pfmpl_wtime();                             \
        return counted(kind, since, pfmpl_##name arguments);      \
    }

WATCHED(SEND, send, (const void *buf, size_t size, int dst, int mai, fmpl_comm comm), (buf, size, dst, mai, comm))
WATCHED(RECV, recv, (void *buf, size_t size, int src, int mai, fmpl_comm comm), (buf, size, src, mai, comm))
WATCHED(SENDRECV, sendrecv,
        (const void *sbuf, size_t ssize, int dst, int smai, void *rbuf, size_t rsize, int src, int rmai, fmpl_comm comm),
        (sbuf, ssize, dst, smai, rbuf, rsize, src, rmai, comm))
WATCHED(ISEND, isend, (const void *buf, size_t size, int dst, int mai, fmpl_comm comm), (buf, size, dst, mai, comm))
WATCHED(IRECV, irecv, (void *buf, size_t size, int src, int mai, fmpl_comm comm), (buf, size, src, mai, comm))
WATCHED(WAIT, isend_wait, (int dst, int mai, fmpl_comm comm), (dst, mai, comm))
WATCHED(WAIT, irecv_wait, (int src, int mai, fmpl_comm comm), (src, mai, comm))
WATCHED(COLLECTIVE, barrier, (fmpl_comm comm), (comm))
WATCHED(COLLECTIVE, bcast, (void *buf, size_t size, int root, fmpl_comm comm), (buf, size, root, comm))
WATCHED(COLLECTIVE, allreduce, (void *buf, int count, fmpl_func func, fmpl_comm comm, void *work), (buf, count, func, comm, work))

int fmpl_finalize(void) {
    int rank = -1, kind;
    pfmpl_comm_rank(FMPL_COMM_WORLD, &rank);
    for (kind = 0; kind < KINDS; kind++)
        if (calls[kind] != 0) fprintf(stderr, "rank %d: %s: %lu calls, %.1f us\n", rank, names[kind], calls[kind], 1e-3 * (double)nanoseconds[kind]);
    return pfmpl_finalize();
}
