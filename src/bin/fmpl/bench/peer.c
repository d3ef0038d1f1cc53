/* The rival's side of `fmpl bench --against`: the same loops as the ranks of FMPL (the block functions beside this file), in MPI calls.
 *
 * One process per rank: peer DIR [startup]. Each rank sleeps in a read of its own fifo DIR/in.RANK until the driver writes a
 * command line "S R NAME a b c ..."; all ranks then run the block of that name with buffers S and R bytes behind a page, and rank 0
 * answers "ok v v ..." on DIR/out (times in nanoseconds). "quit" or the end of the fifo ends the program. Every rank may write a line "err TEXT".
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARGS 8
#define MAX_VALUES 8

static int rank, size, out_fd = -1;
static unsigned char *pages[2];     /* from the heap, touched */
static size_t room;                 /* bytes in each */
static size_t offset[2];            /* so far behind a page lie: */
static unsigned char *sb, *rb;      /* what is sent, what is received */
static double value[MAX_VALUES];    /* the figures of this block */
static int values;

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

static void fail(const char *what, long i)
{
    char line[256];
    snprintf(line, sizeof line, "err rank %d: %s at message %ld\n", rank, what, i);
    answer(line);
    MPI_Abort(MPI_COMM_WORLD, 4);
}

/* Buffers grow when a block asks for more than there is; every page is touched. */
static void need(size_t bytes)
{
    bytes += offset[0] > offset[1] ? offset[0] : offset[1];
    for (int i = 0; i < 2 && bytes > room; i++) {
        free(pages[i]);
        if (posix_memalign((void **)&pages[i], 4096, bytes)) fail("no memory", 0);
        memset(pages[i], i + 1, bytes);
    }
    if (bytes > room) room = bytes;
    sb = pages[0] + offset[0];
    rb = pages[1] + offset[1];
}

static inline void stamp(unsigned char *b, size_t n, long i)
{
    b[0] = (unsigned char)i;
    b[n - 1] = (unsigned char)i;
}

static inline void check(const unsigned char *b, size_t n, long i)
{
    if (b[0] != (unsigned char)i || b[n - 1] != (unsigned char)i) fail("wrong bytes", i);
}

static void send_bytes(const void *p, size_t n, int dst, int tag) { MPI_Send(p, (int)n, MPI_BYTE, dst, tag, MPI_COMM_WORLD); }
static void recv_bytes(void *p, size_t n, int src, int tag)
{
    MPI_Recv(p, (int)n, MPI_BYTE, src, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* pingpong SIZE K WARM MODE: mode 0 separate buffers, 1 echo, 2 strided (MODE 2 RUN): one-way ns */
static void pingpong(const long *a)
{
    size_t n = a[0];
    long warm = a[2], k = a[1] + warm;
    int echo = a[3] == 1, peer = 1 - rank;
    MPI_Datatype type = MPI_BYTE;
    int count = (int)n;
    size_t last = n;
    if (a[3] == 2) {
        size_t run = a[4];
        last = 2 * n - run;
        MPI_Type_vector((int)(n / run), (int)run, (int)(2 * run), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        count = 1;
        need(2 * n);
    } else {
        need(n);
    }
    unsigned char *in = rb, *from = echo ? rb : sb;
    double t0 = 0;
    if (rank > 1) return;
    for (long i = 0; i < k; i++) {
        if (i == warm) t0 = now_ns();
        if (rank == 0) {
            stamp(from, last, i);
            MPI_Send(from, count, type, peer, 0, MPI_COMM_WORLD);
            MPI_Recv(in, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(in, last, i + 77);
        } else {
            MPI_Recv(in, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(in, last, i);
            stamp(from, last, i + 77);
            MPI_Send(from, count, type, peer, 0, MPI_COMM_WORLD);
        }
    }
    value[values++] = (now_ns() - t0) / a[1] / 2;
    if (a[3] == 2) MPI_Type_free(&type);
}

/* exchange SIZE K WARM: ns for a message in each direction at once */
static void exchange(const long *a)
{
    size_t n = a[0];
    long warm = a[2], k = a[1] + warm;
    int peer = 1 - rank;
    double t0 = 0;
    if (rank > 1) return;
    need(n);
    for (long i = 0; i < k; i++) {
        if (i == warm) t0 = now_ns();
        stamp(sb, n, i + rank);
        MPI_Sendrecv(sb, (int)n, MPI_BYTE, peer, 0, rb, (int)n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(rb, n, i + peer);
    }
    value[values++] = (now_ns() - t0) / a[1];
}

/* stream SIZE K WARM: blocking sends on one tag, one answer at the end: ns each */
static void stream(const long *a)
{
    size_t n = a[0];
    if (rank > 1) return;
    need(n);
    for (int pass = 0; pass < 2; pass++) {
        long k = pass ? a[1] : a[2];
        double t0 = now_ns();
        if (rank == 0) {
            for (long i = 0; i < k; i++) {
                stamp(sb, n, i);
                send_bytes(sb, n, 1, 0);
            }
            recv_bytes(rb, 0, 1, 1);
        } else {
            for (long i = 0; i < k; i++) {
                recv_bytes(rb, n, 0, 0);
                check(rb, n, i);
            }
            send_bytes(sb, 0, 0, 1);
        }
        if (pass) value[values++] = (now_ns() - t0) / a[1];
    }
}

/* window SIZE K WARM W ANY: W messages in flight on W tags, one answer a window, received in order or (ANY) as they come: ns each */
static void window(const long *a)
{
    size_t n = a[0];
    long w = a[3];
    static MPI_Request req[1024];
    if (rank > 1) return;
    need(n * w);
    for (int pass = 0; pass < 2; pass++) {
        long k = pass ? a[1] : a[2];
        double t0 = now_ns();
        for (long i = 0; i < k; i++) {
            if (rank == 0) {
                for (long j = 0; j < w; j++) {
                    stamp(sb + j * n, n, i + j);
                    MPI_Isend(sb + j * n, (int)n, MPI_BYTE, 1, (int)j, MPI_COMM_WORLD, &req[j]);
                }
                MPI_Waitall((int)w, req, MPI_STATUSES_IGNORE);
                recv_bytes(rb, 0, 1, (int)w);
            } else {
                for (long j = 0; j < w; j++) MPI_Irecv(rb + j * n, (int)n, MPI_BYTE, 0, (int)j, MPI_COMM_WORLD, &req[j]);
                if (a[4]) for (int j, left = (int)w; left; left--) MPI_Waitany((int)w, req, &j, MPI_STATUS_IGNORE);
                else MPI_Waitall((int)w, req, MPI_STATUSES_IGNORE);
                for (long j = 0; j < w; j++) check(rb + j * n, n, i + j);
                send_bytes(sb, 0, 0, (int)w);
            }
        }
        if (pass) value[values++] = (now_ns() - t0) / ((double)a[1] * w);
    }
}

/* prepost N SAMPLES REVERSE REPEAT: ns per post; one-way ns of a send that matches one of the N posted receives */
static void prepost(const long *a)
{
    long n = a[0], m = a[1], repeat = a[3];
    double post = 0, way = 0;
    if (rank > 1) return;
    need((size_t)n * 8 + 8);
    MPI_Request *req = malloc(n * sizeof *req);
    char *done = malloc(n);
    for (long r = 0; r < repeat; r++) {
        memset(done, 0, n);
        if (rank == 1) {
            double t0 = now_ns();
            for (long i = 0; i < n; i++) MPI_Irecv(rb + 8 * i, 8, MPI_BYTE, 0, (int)i, MPI_COMM_WORLD, &req[i]);
            post += now_ns() - t0;
            send_bytes(sb, 0, 0, (int)n);
        } else {
            recv_bytes(rb, 0, 1, (int)n);
        }
        double t0 = now_ns();
        for (long s = 0; s < m; s++) {
            long i = a[2] ? n - 1 - s : s;
            done[i] = 1;
            if (rank == 0) {
                stamp(sb, 8, i);
                send_bytes(sb, 8, 1, (int)i);
                recv_bytes(rb, 8, 1, (int)n + 1);
            } else {
                MPI_Wait(&req[i], MPI_STATUS_IGNORE);
                check(rb + 8 * i, 8, i);
                send_bytes(sb, 8, 0, (int)n + 1);
            }
        }
        way += now_ns() - t0;
        for (long i = 0; i < n; i++) {
            if (done[i]) continue;
            if (rank == 0) {
                send_bytes(sb, 8, 1, (int)i);
            } else {
                MPI_Wait(&req[i], MPI_STATUS_IGNORE);
            }
        }
        if (rank == 0) recv_bytes(rb, 0, 1, (int)n + 1);
        else send_bytes(sb, 0, 0, (int)n + 1);
    }
    free(req);
    free(done);
    post /= (double)n * repeat;
    if (rank == 1) send_bytes(&post, sizeof post, 0, 0);
    else recv_bytes(&post, sizeof post, 1, 0);
    value[values++] = post;
    value[values++] = way / m / repeat / 2;
}

/* anyindex ANY K WARM INDICES: ping-pong of 8 B over indices in a scattered order, each receive by its index or by any: one-way ns */
static void anyindex(const long *a)
{
    long k = a[1] + a[2];
    int peer = 1 - rank, tag = a[0] ? MPI_ANY_TAG : 0;
    unsigned long x = 12345;
    double t0 = 0;
    if (rank > 1) return;
    need(8);
    for (long i = 0; i < k; i++) {
        if (i == a[2]) t0 = now_ns();
        MPI_Status st;
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        int index = (int)((x >> 33) % (unsigned long)a[3]);
        if (!a[0]) tag = index;
        stamp(sb, 8, i);
        if (rank == 0) send_bytes(sb, 8, peer, index);
        MPI_Recv(rb, 8, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &st);
        if (st.MPI_TAG != index) fail("wrong index", i);
        check(rb, 8, i);
        if (rank == 1) send_bytes(sb, 8, peer, index);
    }
    value[values++] = (now_ns() - t0) / a[1] / 2;
}

/* KiB behind NAME in a file of /proc/self, 0 when it is not there */
static double proc_kb(const char *file, const char *name)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen(file, "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) kb = atof(line + strlen(name));
    fclose(f);
    return kb;
}

static double pss_kb(void) { return proc_kb("/proc/self/smaps_rollup", "Pss:"); }
static double shmem_kb(void) { return proc_kb("/proc/self/status", "RssShmem:"); }

/* unexpected N: N sends of 8 B on as many tags before any receive; then received in reverse order: ns per send, ns per late
 * receive, growth of the receiver in KiB (PSS; resident shared memory) */
static void unexpected(const long *a)
{
    long n = a[0];
    double v[4] = {0};
    if (rank > 1) return;
    need((size_t)n * 8 + 8);
    if (rank == 0) {
        send_bytes(sb, 8, 1, (int)n);
        recv_bytes(rb, 0, 1, (int)n);
        double t0 = now_ns();
        for (long i = 0; i < n; i++) {
            memcpy(sb, &i, 8);
            send_bytes(sb, 8, 1, (int)i);
        }
        v[0] = (now_ns() - t0) / n;
        send_bytes(sb, 0, 1, (int)n + 1);
        recv_bytes(&v[1], 3 * sizeof(double), 1, (int)n);
        for (int i = 0; i < 4; i++) value[values++] = v[i];
    } else {
        double pss, shmem;
        /* before anything is counted: code that runs for the first time takes memory too, but none for a message */
        recv_bytes(rb, 8, 0, (int)n);
        for (int i = 0; i < 2; i++) pss = pss_kb(), shmem = shmem_kb();
        send_bytes(sb, 0, 0, (int)n);
        recv_bytes(rb, 0, 0, (int)n + 1);
        v[2] = pss_kb() - pss;
        v[3] = shmem_kb() - shmem;
        double t0 = now_ns();
        for (long i = n - 1; i >= 0; i--) {
            recv_bytes(rb, 8, 0, (int)i);
            if (memcmp(rb, &i, 8)) fail("wrong bytes", i);
        }
        v[1] = (now_ns() - t0) / n;
        send_bytes(&v[1], 3 * sizeof(double), 0, (int)n);
    }
}

/* anysource SIZE K WARM: ping-pong, received from any source: one-way ns */
static void anysource(const long *a)
{
    size_t n = a[0];
    long k = a[1] + a[2];
    int peer = 1 - rank;
    double t0 = 0;
    if (rank > 1) return;
    need(n);
    for (long i = 0; i < k; i++) {
        MPI_Status st;
        if (i == a[2]) t0 = now_ns();
        stamp(sb, n, i);
        if (rank == 0) send_bytes(sb, n, peer, 0);
        MPI_Recv(rb, (int)n, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &st);
        if (st.MPI_SOURCE != peer) fail("wrong source", i);
        check(rb, n, i);
        if (rank == 1) send_bytes(sb, n, peer, 0);
    }
    value[values++] = (now_ns() - t0) / a[1] / 2;
}

/* incast SIZE K MS: all send to rank 0, which does not receive for MS milliseconds: ns a message then, growth of the receiver in KiB
 * (PSS; resident) */
static void incast(const long *a)
{
    size_t n = a[0];
    long k = a[1];
    need(n < 8 ? 8 : n);
    if (rank != 0) {
        send_bytes(sb, 0, 0, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        for (long i = 0; i < k; i++) {
            stamp(sb, n, i + rank);
            send_bytes(sb, n, 0, 0);
        }
        return;
    }
    for (int i = 1; i < size; i++) recv_bytes(rb, 8, MPI_ANY_SOURCE, 1);
    long *next = calloc(size, sizeof *next);
    double pss = pss_kb(), rss = proc_kb("/proc/self/status", "VmRSS:");
    MPI_Barrier(MPI_COMM_WORLD);
    double end = now_ns() + a[2] * 1e6;
    while (now_ns() < end) { /* it makes progress, and receives nothing */
        int there;
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    double t0 = now_ns();
    for (long i = 0; i < k * (size - 1); i++) {
        MPI_Status st;
        MPI_Recv(rb, (int)n, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &st);
        check(rb, n, next[st.MPI_SOURCE]++ + st.MPI_SOURCE);
    }
    value[values++] = (now_ns() - t0) / ((double)k * (size - 1));
    value[values++] = pss_kb() - pss;
    value[values++] = proc_kb("/proc/self/status", "VmRSS:") - rss;
    free(next);
}

/* mcast SIZE K WARM FRESH MEMBERS: MPI_Bcast from rank 0 to every other rank, or to so many from 1 on, and MPI_Barrier, on a communicator of
 * these ranks that is made before, or (FRESH) each time: ns */
static void mcast(const long *a)
{
    size_t n = a[0], buffers = (8u << 20) / n;
    long k = a[1] + a[2];
    int ranks[64], count = 0;
    double t0 = 0;
    if (buffers < 2) buffers = 2;
    if (buffers > 64) buffers = 64;
    need(buffers * n);
    if (a[4]) while (count <= a[4] && count < size && count < 64) { ranks[count] = count; count++; }
    else for (int i = 0; i < size / 2 && i < 32; i++) ranks[count++] = 2 * i;
    if (a[4] ? rank >= count : rank % 2 || rank / 2 >= count) return;
    MPI_Group world, group;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, ranks, &group);
    if (!a[3]) MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm);
    for (long i = 0; i < k; i++) {
        if (i == a[2]) t0 = now_ns();
        if (a[3]) MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm);
        char *p = (rank == 0 ? sb : rb) + i % buffers * n;
        if (rank == 0) stamp(p, n, i);
        MPI_Bcast(p, (int)n, MPI_BYTE, 0, comm);
        if (rank != 0) check(p, n, i);
        MPI_Barrier(comm);
        if (a[3]) MPI_Comm_free(&comm);
    }
    if (rank == 0) value[values++] = (now_ns() - t0) / a[1];
    if (!a[3]) MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static volatile unsigned long sink;
static void compute(long turns)
{
    unsigned long x = sink;
    for (long i = 0; i < turns; i++) x = x * 6364136223846793005ul + 1442695040888963407ul;
    sink = x;
}

/* overlap SIZE K WARM: a non-blocking message with as much computing on both sides as the transfer takes, the least of
 * K each: transfer ns, the share of it hidden at the sender and at the receiver (1: all) */
static void overlap(const long *a)
{
    size_t n = a[0];
    double spent[3] = {1e18, 1e18, 1e18}, share[2];
    long turns = 0;
    if (rank > 1) return;
    need(n);
    double per_turn = 1e9;
    for (int r = 0; r < 4; r++) {
        double t0 = now_ns();
        compute(20000);
        double t = (now_ns() - t0) / 20000;
        if (t < per_turn) per_turn = t;
    }
    for (int pass = 0; pass < 4; pass++) { /* warm-up, transfer alone, computing alone, both */
        long k = pass ? a[1] : a[2];
        for (long i = 0; i < k; i++) {
            MPI_Request req = MPI_REQUEST_NULL;
            if (rank == 0) recv_bytes(rb, 0, 1, 1);
            else send_bytes(sb, 0, 0, 1);
            double t0 = now_ns();
            if (pass != 2) {
                if (rank == 0) MPI_Isend(sb, (int)n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &req);
                else MPI_Irecv(rb, (int)n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &req);
            }
            if (pass >= 2) compute(turns);
            if (pass != 2) MPI_Wait(&req, MPI_STATUS_IGNORE);
            double t = now_ns() - t0;
            if (pass && t < spent[pass - 1]) spent[pass - 1] = t;
        }
        if (pass == 1) turns = (long)(spent[0] / per_turn);
    }
    double shorter = spent[0] < spent[1] ? spent[0] : spent[1];
    share[rank] = (spent[0] + spent[1] - spent[2]) / shorter;
    if (rank == 1) {
        send_bytes(&share[1], sizeof share[1], 0, 2);
    } else {
        recv_bytes(&share[1], sizeof share[1], 1, 2);
        value[values++] = spent[0];
        value[values++] = share[0];
        value[values++] = share[1];
    }
}

/* ring SIZE K WARM SHIFT: a token goes round all ranks, or (SHIFT) every rank passes one on at once: ns per hop, per step */
static void ring(const long *a)
{
    size_t n = a[0];
    long k = a[1] + a[2];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    double t0 = 0;
    need(n);
    for (long i = 0; i < k; i++) {
        if (i == a[2]) t0 = now_ns();
        stamp(sb, n, i);
        if (a[3]) {
            MPI_Sendrecv(sb, (int)n, MPI_BYTE, next, 0, rb, (int)n, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            if (rank == 0) send_bytes(sb, n, next, 0);
            recv_bytes(rb, n, before, 0);
            if (rank != 0) send_bytes(sb, n, next, 0);
        }
        check(rb, n, i);
    }
    value[values++] = (now_ns() - t0) / a[1] / (a[3] ? 1 : size);
}

/* memory: every rank meets every other; PSS of a rank in KiB: mean and most */
static void memory(const long *a)
{
    (void)a;
    double pss, sum, most;
    need(8);
    for (int s = 1; s < size; s++) {
        int to = (rank + s) % size, from = (rank + size - s) % size;
        MPI_Sendrecv(sb, 8, MPI_BYTE, to, 0, rb, 8, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    pss = pss_kb();
    MPI_Reduce(&pss, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&pss, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    value[values++] = sum / size;
    value[values++] = most;
}

/* The time of the slowest rank. */
static void slowest(double ns)
{
    double most;
    MPI_Allreduce(&ns, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    value[values++] = most;
}

/* barrier K WARM */
static void barrier(const long *a)
{
    for (long i = 0; i < a[1]; i++) MPI_Barrier(MPI_COMM_WORLD);
    double t0 = now_ns();
    for (long i = 0; i < a[0]; i++) MPI_Barrier(MPI_COMM_WORLD);
    slowest((now_ns() - t0) / a[0]);
}

static inline void mark_ends(double *p, size_t n, double mark)
{
    p[0] = mark;
    p[n / 8 - 1] = mark;
}

static inline void check_ends(const double *p, size_t n, double want, long i)
{
    if (p[0] != want || p[n / 8 - 1] != want) fail("wrong values", i);
}

enum { BCAST, REDUCE, ALLREDUCE, SCAN, REDUCE_BCAST, SCATTER_ALLGATHER, BARRIER, ALLREDUCE_INT };

/* One call, or the calls that do the same: number i of those that use `buffers` buffers of n bytes in turn. */
static void one_call(int kind, size_t n, size_t buffers, long i)
{
    double *p = (double *)(sb + (i % buffers) * n);
    /* Not in place: MPICH 4.0 dies of a reduction in place. */
    double *q = (double *)(rb + (i % buffers) * n);
    int root = (int)(i % size), part = (int)(n / size);
    switch (kind) {
    case BCAST:
        mark_ends(p, n, rank == root ? (double)i : -1.0);
        MPI_Bcast(p, (int)n, MPI_BYTE, root, MPI_COMM_WORLD);
        check_ends(p, n, (double)i, i);
        break;
    case REDUCE:
        mark_ends(p, n, (double)i);
        MPI_Reduce(p, q, (int)(n / 8), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        check_ends(rank == root ? q : p, n, (double)i * (rank == root ? size : 1), i);
        break;
    case ALLREDUCE:
        mark_ends(p, n, (double)i);
        MPI_Allreduce(MPI_IN_PLACE, p, (int)(n / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check_ends(p, n, (double)i * size, i);
        break;
    case SCAN:
        mark_ends(p, n, (double)i);
        MPI_Scan(MPI_IN_PLACE, p, (int)(n / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check_ends(p, n, (double)i * (rank + 1), i);
        break;
    case REDUCE_BCAST:
        mark_ends(p, n, (double)i);
        MPI_Reduce(p, q, (int)(n / 8), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        MPI_Bcast(q, (int)n, MPI_BYTE, root, MPI_COMM_WORLD);
        check_ends(q, n, (double)i * size, i);
        break;
    case SCATTER_ALLGATHER:
        mark_ends(p, n, rank == root ? (double)i : -1.0);
        MPI_Scatter(p, part, MPI_BYTE, rb, part, MPI_BYTE, root, MPI_COMM_WORLD);
        MPI_Allgather(rb, part, MPI_BYTE, p, part, MPI_BYTE, MPI_COMM_WORLD);
        check_ends(p, (size_t)part * size, (double)i, i);
        break;
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case ALLREDUCE_INT:
        *(int *)p = (int)i;
        MPI_Allreduce(MPI_IN_PLACE, p, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (*(int *)p != (int)i * size) fail("wrong value", i);
    }
}

/* How many buffers of n bytes are used in turn: they are there, and zero. */
static size_t pool(size_t n)
{
    size_t buffers = (8u << 20) / n;
    if (buffers < 2) buffers = 2;
    if (buffers > 64) buffers = 64;
    need(buffers * n);
    memset(sb, 0, buffers * n);
    return buffers;
}

/* ns of each of k calls behind `warm` others; the first of them all has this number. */
static double each(int kind, size_t n, size_t buffers, long first, long k, long warm)
{
    double t0 = now_ns();
    for (long i = 0; i < k + warm; i++) {
        if (i == warm) t0 = now_ns();
        one_call(kind, n, buffers, first + i);
    }
    return (now_ns() - t0) / k;
}

/* bcast|reduce|allreduce|scan SIZE K WARM: the root goes round, buffers from a pool are used in turn: ns per call of the slowest rank */
static void collective(const long *a, int kind)
{
    size_t n = a[0], buffers = pool(n);
    MPI_Barrier(MPI_COMM_WORLD);
    slowest(each(kind, n, buffers, 0, a[1], a[2]));
}
static void bcast(const long *a) { collective(a, BCAST); }
static void reduce(const long *a) { collective(a, REDUCE); }
static void allreduce(const long *a) { collective(a, ALLREDUCE); }
static void scan(const long *a) { collective(a, SCAN); }

/* guideline PAIR SIZE K: a call and those that do the same, by turns: ns per call of the slowest rank, of both */
static void guideline(const long *a)
{
    static const int pairs[][2] = {{ALLREDUCE, REDUCE_BCAST}, {BCAST, SCATTER_ALLGATHER}, {BARRIER, ALLREDUCE_INT}};
    enum { PARTS = 8 };
    size_t n = a[1], buffers = pool(n);
    long k = a[2], warm = k / 8 > 1 ? k / 8 : 1;
    double spent[2] = {0, 0};
    for (int part = 0; part < PARTS; part++)
        for (int which = 0; which < 2; which++) {
            MPI_Barrier(MPI_COMM_WORLD);
            spent[which] += each(pairs[a[0]][which], n, buffers, part * (k + warm), k, warm) / PARTS;
        }
    slowest(spent[0]);
    slowest(spent[1]);
}

/* allgather SIZE K WARM: SIZE bytes of each rank, in place: ns per call of the slowest rank */
static void allgather(const long *a)
{
    size_t n = a[0], whole = n * size, buffers = (8u << 20) / whole;
    if (buffers < 2) buffers = 2;
    if (buffers > 64) buffers = 64;
    need(buffers * whole);
    memset(sb, 0, buffers * whole);
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = now_ns();
    for (long i = 0; i < a[1] + a[2]; i++) {
        if (i == a[2]) t0 = now_ns();
        char *p = sb + (i % buffers) * whole;
        mark_ends((double *)(p + rank * n), n, (double)i);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, p, (int)n, MPI_BYTE, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) check_ends((double *)(p + r * n), n, (double)i, i);
    }
    slowest((now_ns() - t0) / a[1]);
}

/* rma KIND SIZE K WARM: put, get or fetch-add at rank 1, each flushed: ns each; the memory there lies as what is received */
static void rma(const long *a)
{
    size_t n = a[1];
    char *memory;
    MPI_Win win;
    need(n);
    MPI_Win_allocate((MPI_Aint)(n + 2 * 4096), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 1, n + 2 * 4096);
    /* Everybody knows where at rank 1 the wanted distance behind a page is. */
    long place = (long)(-(unsigned long)memory % 4096 + offset[1]);
    MPI_Bcast(&place, 1, MPI_LONG, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = 0;
    if (rank == 0) {
        long long one = 1, old;
        for (long i = 0; i < a[2] + a[3]; i++) {
            if (i == a[3]) t0 = now_ns();
            if (a[0] == 0)
                MPI_Put(sb, (int)n, MPI_BYTE, 1, place, (int)n, MPI_BYTE, win);
            else if (a[0] == 1)
                MPI_Get(sb, (int)n, MPI_BYTE, 1, place, (int)n, MPI_BYTE, win);
            else
                MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, 1, place, MPI_SUM, win);
            MPI_Win_flush(1, win);
        }
        value[values++] = (now_ns() - t0) / a[2];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static const struct {
    const char *name;
    void (*block)(const long *);
} blocks[] = {
    {"pingpong", pingpong}, {"exchange", exchange}, {"stream", stream}, {"window", window},     {"prepost", prepost}, {"anyindex", anyindex},
    {"unexpected", unexpected}, {"overlap", overlap}, {"ring", ring}, {"memory", memory}, {"anysource", anysource}, {"incast", incast}, {"mcast", mcast},
    {"barrier", barrier}, {"bcast", bcast}, {"reduce", reduce}, {"allreduce", allreduce}, {"rma", rma},
    {"allgather", allgather}, {"scan", scan}, {"guideline", guideline},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[2], "startup")) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    if (argc < 2) return 2;
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/out", argv[1]);
    out_fd = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/in.%d", argv[1], rank);
    FILE *in = fopen(path, "re");
    if (!in || out_fd < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 2;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) answer("ready\n");
    while (fgets(line, sizeof line, in)) {
        long a[MAX_ARGS] = {0};
        int used = 0;
        if (sscanf(line, "%zu %zu %n", &offset[0], &offset[1], &used) < 2) break;
        char *word = strtok(line + used, " \n");
        if (!word) break;
        unsigned b = 0, found = sizeof blocks / sizeof *blocks;
        for (b = 0; b < sizeof blocks / sizeof *blocks; b++)
            if (!strcmp(word, blocks[b].name)) found = b;
        for (int i = 0; i < MAX_ARGS && (word = strtok(NULL, " \n")); i++) a[i] = atol(word);
        values = 0;
        if (found < b) blocks[found].block(a);
        if (rank == 0) {
            size_t n = 0;
            char text[512];
            n += snprintf(text, sizeof text, "ok");
            for (int i = 0; i < values; i++) n += snprintf(text + n, sizeof text - n, " %.3f", value[i]);
            snprintf(text + n, sizeof text - n, "\n");
            answer(text);
        }
    }
    MPI_Finalize();
    return 0;
}
