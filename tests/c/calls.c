/*
 * Every call of the C interface does what fmpl.h says, on any number of ranks, one included.
 *
 *     fmpl run -n 3 ./calls
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 64, LARGE = 3 * 1024 * 1024 + 7 };

static int next, last; /* the neighbours in a ring */
static unsigned char *out, *in;

static void life(void) {
    int flag = -1;
    OK(fmpl_initialized(&flag));
    CHECK(flag == 0);
    CHECK(fmpl_version() == FMPL_VERSION);
    CHECK(strcmp(fmpl_last_error(), "") == 0);
    OK(fmpl_init(NULL, NULL, 4));
    /* Counted; the largest count holds; areas are accepted and left as they are. */
    unsigned char *ma = malloc((size_t)COUNT * FMPL_MA_BYTES), *fa = malloc((size_t)COUNT * FMPL_FA_BYTES);
    CHECK(ma && fa);
    fill(ma, (size_t)COUNT * FMPL_MA_BYTES, 1, 1);
    fill(fa, (size_t)COUNT * FMPL_FA_BYTES, 1, 2);
    OK(fmpl_init(ma, fa, COUNT));
    OK(fmpl_init(NULL, NULL, 0));
    CHECK(filled(ma, (size_t)COUNT * FMPL_MA_BYTES, 1, 1) && filled(fa, (size_t)COUNT * FMPL_FA_BYTES, 1, 2));
    free(ma);
    free(fa);
    OK(fmpl_initialized(&flag));
    CHECK(flag == 1);
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    CHECK(size >= 1 && rank >= 0 && rank < size);
    next = (rank + 1) % size;
    last = (rank + size - 1) % size;
    OK(fmpl_finalize());
    OK(fmpl_initialized(&flag));
    CHECK(flag == 1);
}

static void blocking(void) {
    static const size_t sizes[] = {0, 1, 8, 15, 16, 17, 64, 100, 1000, 4096, 5001, 65536, 1000003, LARGE};
    unsigned k;
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], length = 99;
        int index = -1, mai = (int)k % COUNT;
        fill(out, n, rank, (int)k);
        memset(in, 0, LARGE);
        /* An open chain of waits where there are others; one rank alone sends to itself through the spool. */
        if (rank == 0) OK(fmpl_send(n ? out : NULL, n, next, mai, FMPL_COMM_WORLD));
        OK(fmpl_recv(n ? in : NULL, n, last, mai, FMPL_COMM_WORLD));
        if (rank != 0) OK(fmpl_send(n ? out : NULL, n, next, mai, FMPL_COMM_WORLD));
        CHECK(filled(in, n, last, (int)k));
        OK(fmpl_received(last, mai, FMPL_COMM_WORLD, &length, &index));
        CHECK(length == n && index == mai);
        OK(fmpl_received(last, mai, FMPL_COMM_WORLD, NULL, NULL));
    }
}

static void lengths_differ(void) {
    size_t length = 0;
    fill(out, 5000, rank, 1);
    memset(in, 0, 6000);
    OK(fmpl_irecv(in, 6000, last, 1, FMPL_COMM_WORLD));
    OK(fmpl_send(out, 5000, next, 1, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(last, 1, FMPL_COMM_WORLD));
    OK(fmpl_received(last, 1, FMPL_COMM_WORLD, &length, NULL));
    CHECK(length == 5000 && filled(in, 5000, last, 1) && in[5000] == 0);

    static const size_t sizes[][2] = {{12, 5}, {5000, 100}, {LARGE, 70000}};
    unsigned k;
    for (k = 0; k < 3; k++) {
        memset(in, 0, LARGE);
        fill(out, sizes[k][0], rank, 2);
        OK(fmpl_irecv(in, sizes[k][1], last, 2, FMPL_COMM_WORLD));
        OK(fmpl_isend(out, sizes[k][0], next, 2, FMPL_COMM_WORLD));
        FAILS(fmpl_irecv_wait(last, 2, FMPL_COMM_WORLD), FMPL_ERR_TRUNCATE);
        OK(fmpl_isend_wait(next, 2, FMPL_COMM_WORLD));
        CHECK(filled(in, sizes[k][1], last, 2) && in[sizes[k][1]] == 0);
        OK(fmpl_received(last, 2, FMPL_COMM_WORLD, &length, NULL));
        CHECK(length == sizes[k][0]);
    }
}

static void order(void) {
    /* Several messages sent on one index before the first is received arrive in order. */
    int k;
    for (k = 0; k < 20; k++) {
        size_t n = k % 3 == 2 ? 3000 : 8;
        fill(out, n, rank, k);
        OK(fmpl_send(out, n, next, 3, FMPL_COMM_WORLD));
    }
    for (k = 0; k < 20; k++) {
        size_t n = k % 3 == 2 ? 3000 : 8;
        OK(fmpl_recv(in, 4000, last, 3, FMPL_COMM_WORLD));
        CHECK(filled(in, n, last, k));
    }
}

static void non_blocking(void) {
    enum { PIECE = 20000 };
    int mai, done;
    for (mai = 0; mai < COUNT; mai++) OK(fmpl_irecv(in + mai * PIECE, PIECE, last, mai, FMPL_COMM_WORLD));
    for (mai = COUNT - 1; mai >= 0; mai--) {
        fill(out + mai * PIECE, PIECE, rank, mai);
        OK(fmpl_isend(out + mai * PIECE, PIECE, next, mai, FMPL_COMM_WORLD));
    }
    for (mai = 0; mai < COUNT; mai++) {
        if (mai % 2) {
            OK(fmpl_irecv_wait(last, mai, FMPL_COMM_WORLD));
        } else {
            do OK(fmpl_irecv_test(last, mai, FMPL_COMM_WORLD, &done));
            while (!done);
        }
        CHECK(filled(in + mai * PIECE, PIECE, last, mai));
    }
    for (mai = 0; mai < COUNT; mai++) {
        if (mai % 2) {
            OK(fmpl_isend_wait(next, mai, FMPL_COMM_WORLD));
        } else {
            do OK(fmpl_isend_test(next, mai, FMPL_COMM_WORLD, &done));
            while (!done);
        }
        /* A test that said done has completed the request. */
        FAILS(fmpl_isend_wait(next, mai, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
    }
    OK(fmpl_barrier(FMPL_COMM_WORLD));
}

static void probe_and_cancel(void) {
    int there = -1, cancelled = -1, done = -1;
    size_t length = 77;
    OK(fmpl_probe(last, 4, FMPL_COMM_WORLD, &there, &length));
    CHECK(there == 0 && length == 0);
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    fill(out, 333, rank, 4);
    OK(fmpl_send(out, 333, next, 4, FMPL_COMM_WORLD));
    do OK(fmpl_probe(last, 4, FMPL_COMM_WORLD, &there, &length));
    while (!there);
    CHECK(length == 333);
    OK(fmpl_probe(last, 4, FMPL_COMM_WORLD, &there, &length));
    CHECK(there == 1 && length == 333);
    OK(fmpl_recv(in, 333, last, 4, FMPL_COMM_WORLD));
    CHECK(filled(in, 333, last, 4));
    OK(fmpl_barrier(FMPL_COMM_WORLD));

    OK(fmpl_irecv(in, 1000, last, 5, FMPL_COMM_WORLD));
    OK(fmpl_irecv_test(last, 5, FMPL_COMM_WORLD, &done));
    CHECK(done == 0);
    OK(fmpl_irecv_cancel(last, 5, FMPL_COMM_WORLD, &cancelled));
    CHECK(cancelled == 1);
    FAILS(fmpl_irecv_wait(last, 5, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    /* The index goes on, and the withdrawn buffer is left alone. */
    memset(in, 0, 2000);
    fill(out, 1000, rank, 5);
    OK(fmpl_send(out, 1000, next, 5, FMPL_COMM_WORLD));
    OK(fmpl_recv(in + 1000, 1000, last, 5, FMPL_COMM_WORLD));
    CHECK(filled(in + 1000, 1000, last, 5) && in[0] == 0 && in[999] == 0);
}

static void exchange(void) {
    static const size_t sizes[] = {0, 8, 1000, 65536, 1 << 20};
    unsigned k;
    for (k = 0; k < 5; k++) {
        fill(out, sizes[k], rank, 40 + (int)k);
        memset(in, 0, sizes[k] + 1);
        OK(fmpl_sendrecv(out, sizes[k], next, 6, in, sizes[k] + 1, last, 6, FMPL_COMM_WORLD));
        CHECK(filled(in, sizes[k], last, 40 + (int)k) && in[sizes[k]] == 0);
    }
    /* Two indices; nobody on one side. */
    OK(fmpl_sendrecv(out, 10, next, 7, in, 10, last, 7, FMPL_COMM_WORLD));
    OK(fmpl_sendrecv(out, 10, next, 8, NULL, 0, FMPL_PROC_NULL, 8, FMPL_COMM_WORLD));
    OK(fmpl_sendrecv(NULL, 0, FMPL_PROC_NULL, 8, in, 10, last, 8, FMPL_COMM_WORLD));
    CHECK(filled(in, 10, last, 44));
}

static void any_index(void) {
    int k, index = -1, seen[3] = {0, 0, 0};
    size_t length;
    static const size_t sizes[3] = {8, 500, 100000};
    for (k = 0; k < 3; k++) {
        fill(out + 200000 * k, sizes[k], rank, 10 + k);
        OK(fmpl_isend(out + 200000 * k, sizes[k], next, 10 + k, FMPL_COMM_WORLD));
    }
    for (k = 0; k < 3; k++) {
        if (k == 1) {
            OK(fmpl_irecv(in, 100000, last, FMPL_TAG_ANY, FMPL_COMM_WORLD));
            OK(fmpl_irecv_wait(last, FMPL_TAG_ANY, FMPL_COMM_WORLD));
        } else {
            OK(fmpl_recv(in, 100000, last, FMPL_TAG_ANY, FMPL_COMM_WORLD));
        }
        OK(fmpl_received(last, FMPL_TAG_ANY, FMPL_COMM_WORLD, &length, &index));
        CHECK(index >= 10 && index < 13 && !seen[index - 10] && length == sizes[index - 10]);
        seen[index - 10] = 1;
        CHECK(filled(in, length, last, index));
    }
    for (k = 0; k < 3; k++) OK(fmpl_isend_wait(next, 10 + k, FMPL_COMM_WORLD));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
}

static void nobody(void) {
    int done = 0, there = 5;
    size_t length = 9;
    in[0] = 42;
    OK(fmpl_send(out, 10, FMPL_PROC_NULL, 0, FMPL_COMM_WORLD));
    OK(fmpl_recv(in, 10, FMPL_PROC_NULL, 0, FMPL_COMM_WORLD));
    OK(fmpl_isend(out, 10, FMPL_PROC_NULL, 0, FMPL_COMM_WORLD));
    OK(fmpl_irecv(in, 10, FMPL_PROC_NULL, 0, FMPL_COMM_WORLD));
    OK(fmpl_isend_wait(FMPL_PROC_NULL, 0, FMPL_COMM_WORLD));
    OK(fmpl_irecv_test(FMPL_PROC_NULL, 0, FMPL_COMM_WORLD, &done));
    CHECK(done == 1);
    OK(fmpl_probe(FMPL_PROC_NULL, 0, FMPL_COMM_WORLD, &there, &length));
    CHECK(in[0] == 42);
}

static void self(void) {
    int done;
    fill(out, 50000, rank, 3);
    OK(fmpl_send(out, 50000, rank, 20, FMPL_COMM_WORLD));
    OK(fmpl_recv(in, 50000, rank, 20, FMPL_COMM_WORLD));
    CHECK(filled(in, 50000, rank, 3));
    memset(in, 0, 50000);
    OK(fmpl_irecv(in, 50000, rank, 21, FMPL_COMM_WORLD));
    OK(fmpl_irecv_test(rank, 21, FMPL_COMM_WORLD, &done));
    CHECK(!done);
    OK(fmpl_isend(out, 50000, rank, 21, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(rank, 21, FMPL_COMM_WORLD));
    OK(fmpl_isend_wait(rank, 21, FMPL_COMM_WORLD));
    CHECK(filled(in, 50000, rank, 3));
}

/* Column `column` of a row-major matrix of bytes in cells of `run`, taken apart by hand. */
static int column_is(const unsigned char *matrix, fmpl_block shape, int from, int message) {
    size_t k, b;
    for (k = 0; k < shape.count; k++)
        for (b = 0; b < shape.run; b++)
            if (matrix[(ptrdiff_t)k * shape.stride + (ptrdiff_t)b] != byte_of(from, message, k * shape.run + b)) return 0;
    return 1;
}

static void blocks(void) {
    static const fmpl_block shapes[][2] = {
        {{8, 10, 80}, {16, 5, 32}},            /* short, shapes differ */
        {{100, 300, 400}, {30000, 1, 30000}},  /* gathered */
        {{30000, 1, 30000}, {300, 100, 1000}}, /* scattered */
        {{4096, 200, 5000}, {2048, 400, 4000}}, /* large */
        {{1, 0, 7}, {1, 0, 7}},                /* nothing */
    };
    unsigned k;
    for (k = 0; k < 5; k++) {
        fmpl_block from = shapes[k][0], to = shapes[k][1];
        size_t r, b, length = 0;
        int way;
        for (way = 0; way < 2; way++) {
            memset(in, 0xee, LARGE);
            memset(out, 0x11, LARGE);
            for (r = 0; r < from.count; r++)
                for (b = 0; b < from.run; b++)
                    out[(ptrdiff_t)r * from.stride + (ptrdiff_t)b] = byte_of(rank, (int)k, r * from.run + b);
            if (way == 0) {
                if (rank == 0) OK(fmpl_send_block(out, from, next, 30, FMPL_COMM_WORLD));
                OK(fmpl_recv_block(in, to, last, 30, FMPL_COMM_WORLD));
                if (rank != 0) OK(fmpl_send_block(out, from, next, 30, FMPL_COMM_WORLD));
            } else {
                OK(fmpl_irecv_block(in, to, last, 31, FMPL_COMM_WORLD));
                OK(fmpl_isend_block(out, from, next, 31, FMPL_COMM_WORLD));
                OK(fmpl_irecv_wait(last, 31, FMPL_COMM_WORLD));
                OK(fmpl_isend_wait(next, 31, FMPL_COMM_WORLD));
            }
            CHECK(column_is(in, to, last, (int)k));
            if (to.count && to.stride > (ptrdiff_t)to.run) CHECK(in[to.run] == 0xee);
            OK(fmpl_received(last, 30 + way, FMPL_COMM_WORLD, &length, NULL));
            CHECK(length == from.run * from.count);
        }
    }
    /* A negative stride: the rows in reverse order. */
    fill(out, 3000, rank, 9);
    fmpl_block whole = {1000, 3, 1000}, reversed = {1000, 3, -1000};
    OK(fmpl_irecv_block(in + 2000, reversed, last, 32, FMPL_COMM_WORLD));
    OK(fmpl_send_block(out, whole, next, 32, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(last, 32, FMPL_COMM_WORLD));
    CHECK(column_is(in + 2000, reversed, last, 9) && in[0] == byte_of(last, 9, 2000));
}

static void lists(void) {
    enum { N = 100 };
    static double upper[N][N], lower[N][N];
    struct iovec rows[N], columns[2];
    int i, j, way;
    for (way = 0; way < 2; way++) {
        for (i = 0; i < N; i++) {
            for (j = 0; j < N; j++) upper[i][j] = rank * 1e6 + i * N + j, lower[i][j] = -1;
            rows[i].iov_base = &upper[i][i];
            rows[i].iov_len = sizeof(double) * (size_t)(N - i);
        }
        /* The upper triangle goes into the same triangle of the other side, or into two plain pieces. */
        if (way == 0) {
            if (rank == 0) OK(fmpl_send_list(rows, N, next, 40, FMPL_COMM_WORLD));
            struct iovec target[N];
            for (i = 0; i < N; i++) {
                target[i].iov_base = &lower[i][i];
                target[i].iov_len = rows[i].iov_len;
            }
            OK(fmpl_recv_list(target, N, last, 40, FMPL_COMM_WORLD));
            if (rank != 0) OK(fmpl_send_list(rows, N, next, 40, FMPL_COMM_WORLD));
            for (i = 0; i < N; i++)
                for (j = 0; j < N; j++) CHECK(lower[i][j] == (j < i ? -1 : last * 1e6 + i * N + j));
        } else {
            double *plain = (double *)in;
            columns[0].iov_base = plain;
            columns[0].iov_len = 1000 * sizeof(double);
            columns[1].iov_base = plain + 2000;
            columns[1].iov_len = (N * (N + 1) / 2 - 1000) * sizeof(double);
            OK(fmpl_irecv_list(columns, 2, last, 41, FMPL_COMM_WORLD));
            OK(fmpl_isend_list(rows, N, next, 41, FMPL_COMM_WORLD));
            OK(fmpl_irecv_wait(last, 41, FMPL_COMM_WORLD));
            OK(fmpl_isend_wait(next, 41, FMPL_COMM_WORLD));
            int at = 0;
            for (i = 0; i < N; i++)
                for (j = i; j < N; j++, at++)
                    CHECK(plain[at < 1000 ? at : at + 1000] == last * 1e6 + i * N + j);
        }
    }
    OK(fmpl_irecv_list(NULL, 0, last, 42, FMPL_COMM_WORLD));
    OK(fmpl_send_list(NULL, 0, next, 42, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(last, 42, FMPL_COMM_WORLD));
}

static void modes(void) {
    int nsend = -1, nspool = -1, k, total;
    size_t peers, messages, before;
    static unsigned char spool[300000];
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_sendbuf_check(&nsend, &nspool));
    CHECK(nsend >= 0 && nspool == 0);
    OK(fmpl_counter(FMPL_COUNTER_SHM_PEERS, &peers));
    OK(fmpl_counter(FMPL_COUNTER_SHM_MESSAGES, &messages));
    OK(fmpl_counter(FMPL_COUNTER_SHM_BYTES, &before));
    CHECK((peers > 0) == (size > 1) && (messages > 0) == (size > 1) && before >= messages);

    /* Buffered: returns at once, delivered without another call that sends. */
    OK(fmpl_sendbuf_set(NULL, 1 << 20, 0));
    for (k = 0; k < 5; k++) {
        fill(out, 30000, rank, 50 + k);
        OK(fmpl_send(out, 30000, next, 50 + k, FMPL_COMM_WORLD));
    }
    OK(fmpl_sendbuf_check(&nsend, &nspool));
    CHECK(nsend + nspool == 5 && nspool >= 0);
    total = nsend;
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    for (k = 4; k >= 0; k--) {
        OK(fmpl_recv(in, 30000, last, 50 + k, FMPL_COMM_WORLD));
        CHECK(filled(in, 30000, last, 50 + k));
    }
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_sendbuf_check(&nsend, &nspool));
    CHECK(total + nsend == 5 && nspool == 0);

    /* A full spool: nothing is sent, and what was spooled is intact. */
    OK(fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, spool, sizeof spool, 0));
    for (k = 0; k < 100; k++) {
        fill(out, 50000, rank, k);
        int code = fmpl_send(out, 50000, next, 56, FMPL_COMM_WORLD);
        if (code == FMPL_ERR_SPOOL_FULL) break;
        OK(code);
    }
    CHECK(k >= 1 && k < 100);
    int mine = k, theirs = 0;
    OK(fmpl_send(&mine, sizeof mine, next, 57, FMPL_COMM_WORLD));
    OK(fmpl_recv(&theirs, sizeof theirs, last, 57, FMPL_COMM_WORLD));
    for (k = 0; k < theirs; k++) {
        OK(fmpl_recv(in, 50000, last, 56, FMPL_COMM_WORLD));
        CHECK(filled(in, 50000, last, k));
    }
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    int there;
    size_t length;
    OK(fmpl_probe(last, 56, FMPL_COMM_WORLD, &there, &length));
    CHECK(!there);

    /* Synchronous: when the send has returned, the receive was posted; so what was sent before it is there. */
    OK(fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, NULL, 1 << 20, FMPL_TIMEOUT_INFINITE));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    if (size > 1) {
        static const size_t sizes[] = {0, 8, 3000, 200000};
        for (k = 0; k < 4; k++) {
            if (rank == 0) {
                OK(fmpl_send(out, sizes[k], 1, 58, FMPL_COMM_WORLD));
                OK(fmpl_probe(1, 59, FMPL_COMM_WORLD, &there, &length));
                CHECK(there && length == 4);
                OK(fmpl_recv(in, 4, 1, 59, FMPL_COMM_WORLD));
            } else if (rank == 1) {
                OK(fmpl_isend(&k, 4, 0, 59, FMPL_COMM_WORLD));
                OK(fmpl_recv(in, sizes[k], 0, 58, FMPL_COMM_WORLD));
                OK(fmpl_isend_wait(0, 59, FMPL_COMM_WORLD));
            }
        }
    }
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, NULL, 16 << 20, 10));
    OK(fmpl_sendbuf_set(NULL, 16 << 20, 10));
}

static void barriers_and_time(void) {
    int round, peer, there;
    size_t length;
    double before = fmpl_wtime();
    for (round = 0; round < 20; round++) {
        OK(fmpl_send(&round, sizeof round, next, 60, FMPL_COMM_WORLD));
        OK(fmpl_barrier(FMPL_COMM_WORLD));
        peer = last;
        OK(fmpl_probe(peer, 60, FMPL_COMM_WORLD, &there, &length));
        CHECK(there && length == sizeof round);
        OK(fmpl_recv(&peer, sizeof peer, last, 60, FMPL_COMM_WORLD));
        CHECK(peer == round);
        OK(fmpl_barrier(FMPL_COMM_WORLD));
    }
    CHECK(fmpl_wtime() >= before);
    OK(fmpl_progress());
}

static void own_memory(void) {
    unsigned char *a = fmpl_alloc(LARGE), *b = fmpl_alloc(100);
    CHECK(a && b && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
    fill(b, 100, 5, 5);
    fill(out, LARGE, rank, 61);
    OK(fmpl_irecv(a, LARGE, last, 61, FMPL_COMM_WORLD));
    OK(fmpl_send(out, LARGE, next, 61, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(last, 61, FMPL_COMM_WORLD));
    CHECK(filled(a, LARGE, last, 61) && filled(b, 100, 5, 5));
    OK(fmpl_send(a, LARGE, next, 61, FMPL_COMM_WORLD));
    OK(fmpl_recv(in, LARGE, last, 61, FMPL_COMM_WORLD));
    CHECK(filled(in, LARGE, (last + size - 1) % size, 61));
    OK(fmpl_free(a));
    OK(fmpl_free(b));
    OK(fmpl_free(NULL));
    CHECK(fmpl_alloc(SIZE_MAX / 2) == NULL);
    CHECK(strlen(fmpl_last_error()) > 0);
}

/* Memory of all ranks, side by side. */
static void windows(void) {
    int *mine, *first, *theirs;
    void *at;
    size_t bytes;
    OK(fmpl_shared_alloc((size_t)(rank + 1) * sizeof *mine, FMPL_COMM_WORLD, &at));
    mine = at;
    mine[rank] = 1000 + rank;
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_shared_query(mine, 0, &at, NULL));
    first = at;
    OK(fmpl_shared_query(mine, next, &at, &bytes));
    theirs = at;
    CHECK(bytes == (size_t)(next + 1) * sizeof *mine && theirs[next] == 1000 + next);
    CHECK(theirs == first + next * (next + 1) / 2);
    FAILS(fmpl_shared_query(mine, size, &at, &bytes), FMPL_ERR_RANK);
    FAILS(fmpl_shared_query(&bytes, 0, &at, &bytes), FMPL_ERR_ARGUMENT);
    OK(fmpl_shared_free(mine));
    FAILS(fmpl_shared_free(mine), FMPL_ERR_ARGUMENT);
}

static void events(void) {
    int fd = -1, done = 0, woken = 0;
    OK(fmpl_event_fd(&fd));
    CHECK(fd >= 0);
    OK(fmpl_irecv(in, 100, last, 62, FMPL_COMM_WORLD));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    fill(out, 100, rank, 62);
    OK(fmpl_send(out, 100, next, 62, FMPL_COMM_WORLD));
    while (!done) {
        struct pollfd poller = {fd, POLLIN, 0};
        uint64_t number;
        CHECK(poll(&poller, 1, 20000) == 1);
        woken++;
        CHECK(read(fd, &number, sizeof number) == sizeof number);
        OK(fmpl_irecv_test(last, 62, FMPL_COMM_WORLD, &done));
    }
    CHECK(woken > 0 && filled(in, 100, last, 62));
}

/* Everybody sends to rank 0, which takes what comes; long and short, blocking or not. */
static void any_source(void) {
    static const size_t lengths[] = {0, 8, 40, 1000, 3000, 70000};
    int k, src, there, done;
    size_t length;
    OK(fmpl_recv_any_limit(2, 3, FMPL_COMM_WORLD));
    for (k = 0; k < 6; k++) {
        size_t n = lengths[k];
        if (rank != 0) {
            fill(out, n, rank, k);
            if (k % 2) {
                OK(fmpl_isend_any(out, n, 0, 3, FMPL_COMM_WORLD));
                FAILS(fmpl_isend_any(out, n, 0, 3, FMPL_COMM_WORLD), FMPL_ERR_BUSY);
                OK(fmpl_isend_any_test(0, 3, FMPL_COMM_WORLD, &done));
                if (!done) OK(fmpl_isend_any_wait(0, 3, FMPL_COMM_WORLD));
            } else {
                OK(fmpl_send_any(out, n, 0, 3, FMPL_COMM_WORLD));
            }
        } else {
            int left, seen[64] = {0};
            for (left = size - 1; left > 0; left--) {
                length = 77;
                if (left % 3 == 0) {
                    OK(fmpl_recv_any_from(in, LARGE, 3, FMPL_COMM_WORLD, &src, &length));
                } else {
                    OK(fmpl_irecv_any(in, LARGE, 3, FMPL_COMM_WORLD));
                    done = 0;
                    if (left % 3 == 1) OK(fmpl_irecv_any_test(3, FMPL_COMM_WORLD, &done, &src, &length));
                    if (!done) OK(fmpl_irecv_any_wait(3, FMPL_COMM_WORLD, &src, &length));
                }
                CHECK(length == n && src > 0 && src < size && !seen[src]++ && filled(in, n, src, k));
            }
            OK(fmpl_probe_any(3, FMPL_COMM_WORLD, &there, &src, &length));
            CHECK(!there && length == 0);
            OK(fmpl_irecv_any(in, LARGE, 3, FMPL_COMM_WORLD));
            OK(fmpl_irecv_any_cancel(3, FMPL_COMM_WORLD, &done));
            CHECK(done);
        }
        OK(fmpl_barrier(FMPL_COMM_WORLD));
    }
    /* To oneself. */
    fill(out, 100, rank, 9);
    OK(fmpl_send_any(out, 100, rank, 2, FMPL_COMM_WORLD));
    OK(fmpl_probe_any(2, FMPL_COMM_WORLD, &there, &src, &length));
    CHECK(there && src == rank && length == 100);
    OK(fmpl_recv_any(in, LARGE, 2, FMPL_COMM_WORLD));
    CHECK(filled(in, 100, rank, 9));
}

/* Rank 0 sends to everybody, then to the last rank only; the master is a member too. */
static void multicast(void) {
    uint64_t all = ((uint64_t)1 << size) - 1, last_one = (uint64_t)1 << (size - 1), ticket;
    int k, done, master = -1;
    size_t length = 0;
    for (k = 0; k < 3; k++) {
        size_t n = k == 0 ? 10 : k == 1 ? 5000 : 80000;
        done = 0;
        fill(out, n, 0, k);
        OK(fmpl_mcast_irecv(in, LARGE, FMPL_COMM_WORLD));
        if (rank == 0) OK(fmpl_mcast(out, n, &all, FMPL_COMM_WORLD, &ticket));
        if (k == 1) OK(fmpl_mcast_irecv_test(FMPL_COMM_WORLD, &done, &length, &master));
        if (!done) OK(fmpl_mcast_irecv_wait(FMPL_COMM_WORLD, &length, &master));
        CHECK(length == n && master == 0 && filled(in, n, 0, k));
        if (rank == 0) OK(fmpl_mcast_wait(ticket));
    }
    if (rank == 0) OK(fmpl_mcast(out, 100, &last_one, FMPL_COMM_WORLD, NULL));
    if (rank == size - 1) {
        OK(fmpl_mcast_recv(in, LARGE, FMPL_COMM_WORLD, &length, &master));
        CHECK(length == 100 && master == 0 && filled(in, 100, 0, 2));
    }
    if (rank == 0) {
        OK(fmpl_mcast(out, 100, &last_one, FMPL_COMM_WORLD, &ticket));
        if (size > 1) {
            for (done = 0; !done;) OK(fmpl_mcast_test(ticket, &done));
        }
    }
    OK(fmpl_mcast_irecv(in, LARGE, FMPL_COMM_WORLD));
    if (rank == size - 1) OK(fmpl_mcast_irecv_wait(FMPL_COMM_WORLD, NULL, NULL));
    else {
        CHECK(fmpl_recv_any_or_mcast(in, LARGE, 3, FMPL_COMM_WORLD, NULL, NULL, NULL) == FMPL_ERR_BUSY);
        OK(fmpl_mcast_irecv_cancel(FMPL_COMM_WORLD));
    }
    /* A task for each of the others and a multicast to all, in whatever order they come. */
    if (rank == 0) {
        for (k = 1; k < size; k++) {
            fill(out, 64, 0, 11);
            OK(fmpl_send_any(out, 64, k, 3, FMPL_COMM_WORLD));
        }
        fill(out, 5000, 0, 12);
        OK(fmpl_mcast(out, 5000, &all, FMPL_COMM_WORLD, NULL));
    }
    for (k = 0, done = 0; k < (rank == 0 ? 1 : 2); k++) {
        int is_mcast = -1;
        OK(fmpl_recv_any_or_mcast(in, LARGE, 3, FMPL_COMM_WORLD, &master, &length, &is_mcast));
        CHECK(master == 0 && length == (is_mcast ? 5000u : 64u) && filled(in, length, 0, is_mcast ? 12 : 11));
        done += is_mcast;
    }
    CHECK(done == 1);
}

static void communicators(void) {
    fmpl_comm parity, reversed, twin, none, freed, node;
    char name[FMPL_COMM_NAME_BYTES];
    int r, s, there;
    long word, got;
    OK(fmpl_comm_create(&parity, rank % 2));
    OK(fmpl_comm_rank(parity, &r));
    OK(fmpl_comm_size(parity, &s));
    CHECK(r == rank / 2 && s == (size + 1 - rank % 2) / 2);
    OK(fmpl_comm_create(&none, -1));
    CHECK(none == FMPL_COMM_NULL);
    OK(fmpl_comm_split(FMPL_COMM_WORLD, 5, -rank, &reversed));
    OK(fmpl_comm_rank(reversed, &r));
    CHECK(r == size - 1 - rank);
    OK(fmpl_comm_split_node(FMPL_COMM_WORLD, 0, &node));
    OK(fmpl_comm_size(node, &s));
    CHECK(s == size);
    OK(fmpl_comm_free(&node));
    /* Those at the ends, backwards; nobody else calls it. */
    if (rank == 0 || rank == size - 1) {
        int ends[2];
        ends[0] = size - 1;
        ends[1] = 0;
        OK(fmpl_comm_group_create(FMPL_COMM_WORLD, ends, size > 1 ? 2 : 1, &node));
        OK(fmpl_comm_rank(node, &r));
        CHECK(r == (rank == 0 && size > 1));
        OK(fmpl_barrier(node));
        OK(fmpl_comm_free(&node));
        FAILS(fmpl_comm_group_create(FMPL_COMM_WORLD, NULL, 1, &node), FMPL_ERR_ARGUMENT);
    }
    OK(fmpl_comm_size(parity, &s));
    OK(fmpl_comm_dup(parity, &twin));
    OK(fmpl_comm_translate(FMPL_COMM_WORLD, rank, twin, &there));
    CHECK(there == rank / 2);
    OK(fmpl_comm_translate(twin, rank / 2, reversed, &there));
    CHECK(there == size - 1 - rank);
    if (size > 1) {
        OK(fmpl_comm_translate(FMPL_COMM_WORLD, rank ^ 1 ? (rank ^ 1) % size : 0, parity, &there));
        CHECK(there == FMPL_PROC_NULL || (rank ^ 1) % size % 2 == rank % 2);
    }
    /* The same index on three communicators: in another order than it was sent. */
    OK(fmpl_comm_rank(parity, &r));
    word = 1000 + rank;
    OK(fmpl_send(&word, sizeof word, (r + 1) % s, 3, parity));
    word = 2000 + rank;
    OK(fmpl_send(&word, sizeof word, (r + 1) % s, 3, twin));
    word = 3000 + rank;
    OK(fmpl_send(&word, sizeof word, size - 1 - next, 3, reversed));
    OK(fmpl_recv(&got, sizeof got, size - 1 - last, 3, reversed));
    CHECK(got == 3000 + last);
    OK(fmpl_recv(&got, sizeof got, (r + s - 1) % s, 3, twin));
    CHECK(got == 2000 + rank % 2 + (r + s - 1) % s * 2);
    OK(fmpl_recv(&got, sizeof got, (r + s - 1) % s, FMPL_TAG_ANY, parity));
    CHECK(got == 1000 + rank % 2 + (r + s - 1) % s * 2);
    OK(fmpl_barrier(twin));
    CHECK(fmpl_comm_name(twin, name, sizeof name) == FMPL_SUCCESS && name[0] == 0);
    FAILS(fmpl_comm_name(twin, name, 0), FMPL_ERR_TRUNCATE);
    OK(fmpl_comm_set_name(twin, "the twin"));
    CHECK(fmpl_comm_name(twin, name, sizeof name) == FMPL_SUCCESS && strcmp(name, "the twin") == 0);
    FAILS(fmpl_comm_name(twin, name, 8), FMPL_ERR_TRUNCATE);
    CHECK(fmpl_comm_name(twin, name, 9) == FMPL_SUCCESS);
    FAILS(fmpl_comm_name(twin, NULL, 9), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_set_name(twin, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_set_name(twin, "\xff"), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_set_name(twin, "0123456789012345678901234567890123456789012345678901234567890123"), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_send(&word, sizeof word, size, 3, twin), FMPL_ERR_RANK);
    CHECK(strstr(fmpl_last_error(), "\"the twin\"") != NULL);
    OK(fmpl_comm_sendbuf_set(twin, NULL, 1 << 20, 5));
    freed = parity;
    OK(fmpl_comm_free(&parity));
    CHECK(parity == FMPL_COMM_NULL);
    FAILS(fmpl_send(&word, sizeof word, 0, 3, freed), FMPL_ERR_COMM);
    FAILS(fmpl_comm_free(&freed), FMPL_ERR_COMM);
    OK(fmpl_irecv(&got, sizeof got, 0, 1, reversed));
    freed = reversed;
    FAILS(fmpl_comm_free(&freed), FMPL_ERR_BUSY);
    OK(fmpl_irecv_cancel(0, 1, reversed, &there));
    OK(fmpl_comm_free(&reversed));
    OK(fmpl_comm_free(&twin));
}

/* Loans: in place, to ordinary receives, from ordinary sends, requests, returned unsent. */
static void loans(void) {
    static const size_t sizes[] = {0, 8, 1000, 70000, LARGE};
    const void *got = NULL;
    void *loan = NULL;
    size_t length, handed_over, k;
    int done = 0;
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        OK(fmpl_loan(sizes[k], &loan));
        fill(loan, sizes[k], rank, (int)k);
        OK(fmpl_send_loan(loan, sizes[k], next, 0, FMPL_COMM_WORLD));
        length = 77;
        OK(fmpl_recv_loan(&got, &length, last, 0, FMPL_COMM_WORLD));
        CHECK(length == sizes[k] && filled(got, length, last, (int)k));
        OK(fmpl_loan_return(got));
        FAILS(fmpl_loan_return(got), FMPL_ERR_ARGUMENT);

        OK(fmpl_irecv_loan(last, 1, FMPL_COMM_WORLD));
        fill(out, sizes[k], rank, 50 + (int)k);
        OK(fmpl_isend(out, sizes[k], next, 1, FMPL_COMM_WORLD));
        if (k % 2) {
            OK(fmpl_irecv_loan_wait(&got, &length, last, 1, FMPL_COMM_WORLD));
        } else {
            do OK(fmpl_irecv_loan_test(&got, &length, last, 1, FMPL_COMM_WORLD, &done));
            while (!done);
        }
        OK(fmpl_isend_wait(next, 1, FMPL_COMM_WORLD));
        CHECK(length == sizes[k] && filled(got, length, last, 50 + (int)k));
        OK(fmpl_loan_return(got));

        OK(fmpl_loan(sizes[k] + 5, &loan));
        fill(loan, sizes[k], rank, 60 + (int)k);
        OK(fmpl_send_loan(loan, sizes[k], next, 2, FMPL_COMM_WORLD));
        OK(fmpl_recv(in, sizes[k], last, 2, FMPL_COMM_WORLD));
        CHECK(filled(in, sizes[k], last, 60 + (int)k));
    }
    for (k = 0; k < 3; k++) {
        int from = -1;
        OK(fmpl_loan(3000, &loan));
        fill(loan, 3000, rank, 70 + (int)k);
        OK(fmpl_send_loan_any(loan, 3000, next, 3, FMPL_COMM_WORLD));
        if (k == 0) {
            OK(fmpl_recv_loan_any(&got, &length, 3, FMPL_COMM_WORLD, &from));
        } else {
            OK(fmpl_irecv_loan_any(3, FMPL_COMM_WORLD));
            done = 0;
            if (k == 1) OK(fmpl_irecv_loan_any_wait(&got, &length, 3, FMPL_COMM_WORLD, &from));
            while (k == 2 && !done) OK(fmpl_irecv_loan_any_test(&got, &length, 3, FMPL_COMM_WORLD, &done, &from));
        }
        CHECK(from == last && length == 3000 && filled(got, 3000, last, 70 + (int)k));
        OK(fmpl_loan_return(got));
    }
    {
        uint64_t members[2] = {0, 0};
        members[next / 64] |= (uint64_t)1 << next % 64;
        members[rank / 64] |= (uint64_t)1 << rank % 64;
        OK(fmpl_loan(5000, &loan));
        fill(loan, 5000, rank, 80);
        OK(fmpl_mcast_loan(loan, 5000, members, 4, FMPL_COMM_WORLD));
        OK(fmpl_recv_loan(&got, &length, rank, 4, FMPL_COMM_WORLD));
        CHECK(got == loan && length == 5000 && filled(got, 5000, rank, 80));
        OK(fmpl_loan_return(got));
        if (size > 1) {
            OK(fmpl_recv_loan(&got, &length, last, 4, FMPL_COMM_WORLD));
            CHECK(length == 5000 && filled(got, 5000, last, 80));
            OK(fmpl_loan_return(got));
        }
    }
    OK(fmpl_counter(FMPL_COUNTER_LOANS, &handed_over));
    CHECK(handed_over >= 10);
    OK(fmpl_loan(100, &loan));
    OK(fmpl_loan_return(loan));
    FAILS(fmpl_send_loan(loan, 8, next, 0, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_loan_return(out), FMPL_ERR_ARGUMENT);
    OK(fmpl_loan_return(NULL));
    FAILS(fmpl_loan(8, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_recv_loan(NULL, NULL, last, 0, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv_loan_wait(&got, NULL, last, 0, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
}

static void *on_own_index(void *argument) {
    int mai = (int)(intptr_t)argument, k;
    unsigned char *mine = malloc(40000), *theirs = malloc(40000);
    CHECK(mine && theirs);
    for (k = 0; k < 200; k++) {
        size_t n = k % 10 == 9 ? 40000 : (size_t)k;
        fill(mine, n, rank * 100 + mai, k);
        OK(fmpl_irecv(theirs, 40000, last, mai, FMPL_COMM_WORLD));
        OK(fmpl_send(mine, n, next, mai, FMPL_COMM_WORLD));
        OK(fmpl_irecv_wait(last, mai, FMPL_COMM_WORLD));
        CHECK(filled(theirs, n, last * 100 + mai, k));
    }
    free(mine);
    free(theirs);
    return NULL;
}

static void threads(void) {
    pthread_t thread[4];
    int k;
    for (k = 0; k < 4; k++) CHECK(pthread_create(&thread[k], NULL, on_own_index, (void *)(intptr_t)k) == 0);
    for (k = 0; k < 4; k++) CHECK(pthread_join(thread[k], NULL) == 0);
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"blocking", blocking},   {"lengths differ", lengths_differ}, {"order", order},
                 {"non-blocking", non_blocking}, {"probe and cancel", probe_and_cancel}, {"exchange", exchange},
                 {"any index", any_index}, {"nobody", nobody},   {"self", self},     {"blocks", blocks},
                 {"lists", lists},         {"modes", modes},     {"barriers and time", barriers_and_time},
                 {"own memory", own_memory}, {"windows", windows}, {"any source", any_source}, {"multicast", multicast}, {"loans", loans}, {"events", events}, {"communicators", communicators}, {"threads", threads}};
    unsigned k;
    int flag = -1;
    life();
    out = malloc(LARGE + 64);
    in = malloc(LARGE + 64);
    CHECK(out && in);
    for (k = 0; k < sizeof parts / sizeof *parts; k++) {
        if (rank == 0 && getenv("CALLS_VERBOSE")) fprintf(stderr, "%s\n", parts[k].name);
        parts[k].run();
        OK(fmpl_barrier(FMPL_COMM_WORLD));
    }
    OK(fmpl_finalize());
    OK(fmpl_finalize());
    OK(fmpl_initialized(&flag));
    CHECK(flag == 0);
    free(in);
    free(out);
    if (rank == 0) printf("calls: %u parts on %d ranks: all as fmpl.h says\n", k, size);
    return 0;
}
