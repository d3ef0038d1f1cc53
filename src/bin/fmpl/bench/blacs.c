/* The ranks of `fmpl bench blacs`: the same program for all libraries, linked to libfmpl_blacs or to an MPI's libscalapack. Its commands come
 * as those of peer.c do, from the fifo DIR/in.RANK; rank 0 answers on DIR/out.
 *
 * Each block alternates between two processes, so that a figure is half a round trip; a combine counts itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void Cblacs_pinfo(int *, int *), Cblacs_get(int, int, int *), Cblacs_gridinit(int *, const char *, int, int), Cblacs_barrier(int, const char *);
void Cblacs_gridinfo(int, int *, int *, int *, int *), Cblacs_exit(int), Cblacs_abort(int, int);
void Cdgesd2d(int, int, int, double *, int, int, int), Cdgerv2d(int, int, int, double *, int, int, int);
void Cdtrsd2d(int, const char *, const char *, int, int, double *, int, int, int);
void Cdtrrv2d(int, const char *, const char *, int, int, double *, int, int, int);
void Cdgsum2d(int, const char *, const char *, int, int, double *, int, int, int);
void Cdgebs2d(int, const char *, const char *, int, int, double *, int), Cdgebr2d(int, const char *, const char *, int, int, double *, int, int, int);

static int context, rank, size, out_fd = -1;
static double *out, *in;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void answer(const char *line)
{
    if (out_fd >= 0 && write(out_fd, line, strlen(line)) < 0) exit(3);
}

static void fail(const char *what)
{
    char line[200];
    snprintf(line, sizeof line, "err rank %d: %s\n", rank, what);
    answer(line);
    Cblacs_abort(context, 4);
}

enum { CONTIGUOUS, STRIDED, TRIANGLE, SUM, BROADCAST };

/* blacs BYTES K WARM KIND: ns; the matrices lie so many bytes behind a page */
static double block(const long *a, long send_offset, long receive_offset)
{
    long elements = a[0] / 8, warm = a[2], k = a[1] + warm;
    int kind = (int)a[3], m = 1, n = 1, lda;
    if (kind == TRIANGLE) {
        m = n = (int)sqrt(2.0 * elements);
    } else {
        while (2L * m * n <= elements) m <= n ? (m *= 2) : (n *= 2);
    }
    lda = kind == STRIDED ? 2 * m : m;
    size_t room = (size_t)lda * n;
    void *pages[2];
    if (posix_memalign(&pages[0], 4096, 8 * room + send_offset) || posix_memalign(&pages[1], 4096, 8 * room + receive_offset)) fail("no memory");
    out = (double *)((char *)pages[0] + send_offset);
    in = (double *)((char *)pages[1] + receive_offset);
    for (size_t i = 0; i < room; i++) out[i] = 1, in[i] = 2;
    int peer = 1 - rank;
    size_t last = (size_t)lda * (n - 1) + m - 1;
    double t0 = 0;
    for (long i = 0; i < k; i++) {
        if (i == warm) t0 = now_ns();
        for (int turn = 0; turn < 2; turn++) {
            int mine = turn == rank;
            out[0] = out[last] = (double)(2 * i + turn);
            switch (kind) {
            case SUM:
                if (turn == 1) continue;
                out[0] = out[last] = rank + 1;
                Cdgsum2d(context, "All", " ", m, n, out, lda, -1, -1);
                if (out[0] != 3 || out[last] != 3) fail("a wrong sum");
                continue;
            case BROADCAST:
                if (mine) Cdgebs2d(context, "All", " ", m, n, out, lda);
                else Cdgebr2d(context, "All", " ", m, n, in, lda, 0, peer);
                break;
            case TRIANGLE:
                if (mine) Cdtrsd2d(context, "L", "N", m, n, out, lda, 0, peer);
                else Cdtrrv2d(context, "L", "N", m, n, in, lda, 0, peer);
                break;
            default:
                if (mine) Cdgesd2d(context, m, n, out, lda, 0, peer);
                else Cdgerv2d(context, m, n, in, lda, 0, peer);
            }
            if (!mine && (in[0] != (double)(2 * i + turn) || in[last] != (double)(2 * i + turn))) fail("wrong elements");
        }
    }
    double each = (now_ns() - t0) / (double)(k - warm) / (kind == SUM ? 1 : 2);
    /* An MPI moves the last message only while both are in calls: a sender that waits for its next command would keep it from its receiver. */
    Cblacs_barrier(context, "All");
    free(pages[0]), free(pages[1]);
    return each;
}

int main(int argc, char **argv)
{
    int rows, columns, row, column;
    if (argc < 2) return 2;
    Cblacs_pinfo(&rank, &size);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", 1, size);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    char path[4096], line[512], text[64];
    snprintf(path, sizeof path, "%s/out", argv[1]);
    out_fd = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/in.%d", argv[1], rank);
    FILE *commands = fopen(path, "re");
    if (!commands || out_fd < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 2;
    }
    Cblacs_barrier(context, "All");
    if (rank == 0) answer("ready\n");
    while (fgets(line, sizeof line, commands)) {
        long a[4] = {0}, offset[2];
        int used = 0;
        if (sscanf(line, "%ld %ld blacs %n", &offset[0], &offset[1], &used) < 2 || !used) break;
        char *word = strtok(line + used, " \n");
        for (int i = 0; i < 4 && word; i++, word = strtok(NULL, " \n")) a[i] = atol(word);
        double each = block(a, offset[0], offset[1]);
        snprintf(text, sizeof text, "ok %.3f\n", each);
        if (rank == 0) answer(text);
    }
    Cblacs_exit(0);
    return 0;
}
