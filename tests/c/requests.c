/* Requests of every kind, several at a time: all, any, some, those that are done; wrong ones; and a rank that is late. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

enum { N = 12, LONG = 200000 };

static void nap(int ms)
{
    struct timespec t = {0, ms * 1000000L};
    nanosleep(&t, NULL);
}

static fmpl_request of(int kind, int peer, int index)
{
    fmpl_request r = {0, 0, 0, FMPL_COMM_WORLD, 0};
    r.kind = kind;
    r.peer = peer;
    r.index = index;
    return r;
}

/* Each rank sends N messages of different lengths to the next one, and waits for all at once. */
static void all_at_once(void)
{
    static unsigned char out[N][LONG], in[N][LONG];
    fmpl_request r[2 * N];
    int codes[2 * N], k, done = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;
    size_t length[N];
    for (k = 0; k < N; k++) {
        length[k] = k % 3 == 2 ? LONG : k % 3 == 1 ? 3000 : (size_t)k + 1;
        fill(out[k], length[k], rank, k);
        OK(fmpl_irecv(in[k], LONG, before, k, FMPL_COMM_WORLD));
        r[k] = of(FMPL_REQUEST_RECV, before, k);
    }
    for (k = 0; k < N; k++) {
        OK(fmpl_isend(out[k], length[k], next, k, FMPL_COMM_WORLD));
        r[N + k] = of(FMPL_REQUEST_SEND, next, k);
    }
    OK(fmpl_waitall(r, 2 * N, codes));
    for (k = 0; k < 2 * N; k++) CHECK(codes[k] == 0 && r[k].kind == FMPL_REQUEST_NONE);
    for (k = 0; k < N; k++) {
        CHECK(r[k].peer == before && r[k].index == k && r[k].ticket == length[k]);
        CHECK(filled(in[k], length[k], before, k));
    }
    /* All are over already. */
    OK(fmpl_testall(r, 2 * N, &done, NULL));
    CHECK(done == 1);
    OK(fmpl_waitall(NULL, 0, NULL));
}

/* Rank 0 gets one message of every other rank, each late by another time, in the order in which they come. */
static void as_they_come(int some)
{
    enum { MOST = 8 };
    fmpl_request r[MOST];
    int got[MOST], k, left = size - 1, which[MOST], codes[MOST], count = 0, seen[MOST] = {0};
    if (rank != 0) {
        nap(rank % 2 ? 1 : 30);
        OK(fmpl_send(&rank, sizeof rank, 0, 3, FMPL_COMM_WORLD));
        return;
    }
    for (k = 1; k < size; k++) {
        OK(fmpl_irecv(&got[k], sizeof got[k], k, 3, FMPL_COMM_WORLD));
        r[k - 1] = of(FMPL_REQUEST_RECV, k, 3);
    }
    while (left > 0) {
        if (some) {
            OK(fmpl_waitsome(r, size - 1, &count, which, codes));
        } else {
            OK(fmpl_waitany(r, size - 1, which));
            count = 1;
            codes[0] = 0;
        }
        CHECK(count >= 1 && count <= left);
        for (k = 0; k < count; k++) {
            CHECK(codes[k] == 0 && which[k] >= 0 && which[k] < size - 1 && !seen[which[k]]);
            CHECK(got[which[k] + 1] == which[k] + 1 && r[which[k]].ticket == sizeof(int));
            seen[which[k]] = 1;
        }
        left -= count;
    }
    OK(fmpl_waitany(r, size - 1, which));
    CHECK(which[0] == -1);
    OK(fmpl_waitsome(r, size - 1, &count, which, codes));
    CHECK(count == 0);
}

/* One of each kind. */
static void of_every_kind(void)
{
    fmpl_comm other;
    fmpl_request r[9];
    int n = 0, here = rank, from_any = -1, any_index = -1, sum = 1, of_all = rank, of_master = -1, done = 0, turns = 0, k;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    uint64_t members = ~(uint64_t)0 >> (64 - size), ticket = 0;
    members &= ~(uint64_t)1;
    OK(fmpl_comm_dup(FMPL_COMM_WORLD, &other));
    OK(fmpl_irecv_any(&from_any, sizeof from_any, 5, FMPL_COMM_WORLD));
    r[n++] = of(FMPL_REQUEST_RECV_ANY, FMPL_PROC_NULL, 5);
    OK(fmpl_irecv(&any_index, sizeof any_index, before, FMPL_INDEX_ANY, FMPL_COMM_WORLD));
    r[n++] = of(FMPL_REQUEST_RECV, before, FMPL_INDEX_ANY);
    OK(fmpl_isend_any(&here, sizeof here, next, 5, FMPL_COMM_WORLD));
    r[n++] = of(FMPL_REQUEST_SEND_ANY, next, 5);
    OK(fmpl_isend(&here, sizeof here, next, 7, FMPL_COMM_WORLD));
    r[n++] = of(FMPL_REQUEST_SEND, next, 7);
    OK(fmpl_iallreduce(&sum, 1, fmpl_isum, FMPL_COMM_WORLD, NULL));
    r[n++] = of(FMPL_REQUEST_ALLREDUCE, 0, 0);
    OK(fmpl_ibcast(&of_all, sizeof of_all, size - 1, other));
    r[n] = of(FMPL_REQUEST_BCAST, 0, 0);
    r[n++].comm = other;
    if (size > 1 && rank == 0) {
        OK(fmpl_mcast(&here, sizeof here, &members, FMPL_COMM_WORLD, &ticket));
        r[n] = of(FMPL_REQUEST_MCAST, 0, 0);
        r[n++].ticket = ticket;
    } else if (size > 1) {
        OK(fmpl_mcast_irecv(&of_master, sizeof of_master, FMPL_COMM_WORLD));
        r[n++] = of(FMPL_REQUEST_MCAST_RECV, 0, 0);
    }
    for (; !done; turns++) OK(fmpl_testall(r, n, &done, NULL));
    CHECK(from_any == before && r[0].peer == before && r[0].ticket == sizeof(int));
    CHECK(any_index == before && r[1].index == 7);
    CHECK(sum == size && of_all == size - 1 && (rank == 0 || of_master == 0));
    for (k = 0; k < n; k++) CHECK(r[k].kind == FMPL_REQUEST_NONE);
    OK(fmpl_ibarrier(other));
    r[0] = of(FMPL_REQUEST_BARRIER, 0, 0);
    r[0].comm = other;
    OK(fmpl_waitany(r, 1, &k));
    CHECK(k == 0);
    OK(fmpl_comm_free(&other));
}

/* What fails does not keep the others from their end. */
static void what_fails(void)
{
    char two[2];
    fmpl_request r[3];
    int codes[3] = {-1, -1, -1}, which, done = -1;
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_send("long", 5, rank, 8, FMPL_COMM_WORLD));
    OK(fmpl_send("x", 1, rank, 9, FMPL_COMM_WORLD));
    OK(fmpl_irecv(two, 2, rank, 8, FMPL_COMM_WORLD));
    OK(fmpl_irecv(two + 1, 1, rank, 9, FMPL_COMM_WORLD));
    r[0] = of(FMPL_REQUEST_RECV, rank, 8);
    r[1] = of(FMPL_REQUEST_SEND, rank, 10);
    r[2] = of(FMPL_REQUEST_RECV, rank, 9);
    FAILS(fmpl_waitall(r, 3, codes), FMPL_ERR_TRUNCATE);
    CHECK(codes[0] == FMPL_ERR_TRUNCATE && codes[1] == FMPL_ERR_REQUEST && codes[2] == 0);
    CHECK(r[0].kind == 0 && r[1].kind == 0 && r[2].kind == 0 && two[1] == 'x');
    /* Codes of what is over already stay. */
    OK(fmpl_testall(r, 3, &done, codes));
    CHECK(done == 1 && codes[0] == FMPL_ERR_TRUNCATE && codes[1] == FMPL_ERR_REQUEST);
    done = -1;
    r[0] = of(77, 0, 0);
    FAILS(fmpl_waitany(r, 1, &which), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_waitall(r, -1, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_waitall(NULL, 1, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_waitany(r, 1, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_testall(r, 1, NULL, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_waitsome(r, 1, NULL, &which, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_testall(NULL, 1, &done, NULL), FMPL_ERR_ARGUMENT);
    CHECK(done == 0);
}

/* The order in the list does not matter, where a rank waits until another one takes what is last in it: a multicast that is to be passed on, a
   message of any source or of any index that is not copied. */
static void in_any_order(void)
{
    enum { LATE = 3 };
    static unsigned char out[LONG], any[LONG];
    fmpl_request r[1 + LATE];
    uint64_t members = 6;
    fmpl_comm other;
    int last = -1, of_master = -1, from_any = -1, codes[1 + LATE] = {-1, -1, -1, -1}, k;
    if (size < 3) return;
    OK(fmpl_comm_dup(FMPL_COMM_WORLD, &other));
    OK(fmpl_comm_sendbuf_set(other, NULL, LONG / 2, FMPL_TIMEOUT_INFINITE));
    if (rank == 0) OK(fmpl_mcast(&rank, sizeof rank, &members, other, NULL));
    if (rank == 1) {
        OK(fmpl_irecv(&last, sizeof last, 2, 0, other));
        OK(fmpl_irecv_any(&from_any, sizeof from_any, 1, other));
        OK(fmpl_irecv(any, LONG, 2, FMPL_INDEX_ANY, other));
        OK(fmpl_mcast_irecv(&of_master, sizeof of_master, other));
        r[0] = of(FMPL_REQUEST_RECV, 2, 0);
        r[1] = of(FMPL_REQUEST_RECV_ANY, 0, 1);
        r[2] = of(FMPL_REQUEST_RECV, 2, FMPL_INDEX_ANY);
        r[3] = of(FMPL_REQUEST_MCAST_RECV, 0, 0);
        for (k = 0; k <= LATE; k++) r[k].comm = other;
        OK(fmpl_waitall(r, 1 + LATE, codes));
        for (k = 0; k <= LATE; k++) CHECK(codes[k] == 0 && r[k].kind == FMPL_REQUEST_NONE);
        CHECK(last == 2 && from_any == 2 && of_master == 0 && r[2].index == 5 && filled(any, LONG, 2, 5));
    }
    if (rank == 2) {
        OK(fmpl_mcast_recv(&of_master, sizeof of_master, other, NULL, NULL));
        OK(fmpl_send_any(&rank, sizeof rank, 1, 1, other));
        OK(fmpl_comm_sendbuf_set(other, NULL, LONG / 2, 1));
        fill(out, LONG, 2, 5);
        OK(fmpl_send(out, LONG, 1, 5, other));
        OK(fmpl_send(&rank, sizeof rank, 1, 0, other));
    }
    OK(fmpl_barrier(other));
    OK(fmpl_comm_free(&other));
}

/* A receive of any index leaves an index alone that has its own receive, until that is completed: waitall completes it, wherever it is in the list. */
static void beside_any_index(size_t len)
{
    static unsigned char out[LONG], own[LONG], any[LONG];
    fmpl_request r[2];
    int first, k;
    if (size < 2 || rank > 1) return;
    for (first = 0; first < 2; first++) {
        if (rank == 0) {
            OK(fmpl_irecv(own, len, 1, 3, FMPL_COMM_WORLD));
            OK(fmpl_irecv(any, len, 1, FMPL_INDEX_ANY, FMPL_COMM_WORLD));
            r[first] = of(FMPL_REQUEST_RECV, 1, 3);
            r[1 - first] = of(FMPL_REQUEST_RECV, 1, FMPL_INDEX_ANY);
            OK(fmpl_waitall(r, 2, NULL));
            CHECK(filled(own, len, 1, 6) && filled(any, len, 1, 7) && r[1 - first].index == 3);
        } else {
            for (k = 6; k < 8; k++) {
                fill(out, len, 1, k);
                OK(fmpl_send(out, len, 0, 3, FMPL_COMM_WORLD));
            }
        }
    }
}

static void *completes_any(void *unused)
{
    int code;
    (void)unused;
    /* The other thread may be looking at it. */
    while ((code = fmpl_irecv_any_wait(6, FMPL_COMM_WORLD, NULL, NULL)) == FMPL_ERR_BUSY) nap(1);
    OK(code);
    return NULL;
}

/* A request that another thread completes is not among those that are over. */
static void held_elsewhere(void)
{
    pthread_t thread;
    int from_any = -1, got, done, first, count = -1, which[2], codes[2];
    fmpl_request r[2];
    OK(fmpl_irecv_any(&from_any, sizeof from_any, 6, FMPL_COMM_WORLD));
    CHECK(pthread_create(&thread, NULL, completes_any, NULL) == 0);
    while (fmpl_irecv_any_test(6, FMPL_COMM_WORLD, &done, NULL, NULL) != FMPL_ERR_BUSY) nap(1);
    for (first = 0; first < 2; first++) {
        got = -1;
        OK(fmpl_irecv(&got, sizeof got, rank, 15, FMPL_COMM_WORLD));
        OK(fmpl_send(&rank, sizeof rank, rank, 15, FMPL_COMM_WORLD));
        r[first] = of(FMPL_REQUEST_RECV, rank, 15);
        r[1 - first] = of(FMPL_REQUEST_RECV_ANY, 0, 6);
        OK(fmpl_waitsome(r, 2, &count, which, codes));
        CHECK(count == 1 && which[0] == first && codes[0] == 0 && r[1 - first].kind == FMPL_REQUEST_RECV_ANY && got == rank);
    }
    OK(fmpl_send_any(&rank, sizeof rank, rank, 6, FMPL_COMM_WORLD));
    CHECK(pthread_join(thread, NULL) == 0 && from_any == rank);
}

/* Two ranks wait for each other's messages, whichever comes first, and none is sent. */
static void in_vain(void)
{
    int got, which, peer = 1 - rank;
    fmpl_request r[2];
    if (size != 2) return;
    OK(fmpl_irecv(&got, sizeof got, peer, 12, FMPL_COMM_WORLD));
    OK(fmpl_irecv(&got, sizeof got, peer, 13, FMPL_COMM_WORLD));
    r[0] = of(FMPL_REQUEST_RECV, peer, 12);
    r[1] = of(FMPL_REQUEST_RECV, peer, 13);
    FAILS(fmpl_waitany(r, 2, &which), FMPL_ERR_DEADLOCK);
    CHECK(which == -1 && r[0].kind == FMPL_REQUEST_RECV && r[1].kind == FMPL_REQUEST_RECV);
    OK(fmpl_irecv_cancel(peer, 12, FMPL_COMM_WORLD, &which));
    CHECK(which == 1);
    OK(fmpl_irecv_cancel(peer, 13, FMPL_COMM_WORLD, &which));
}

/* A wait for any sleeps, and is woken by its message. */
static void asleep(void)
{
    fmpl_request r[2];
    int got = -1, other = -1, which;
    clock_t before = clock();
    if (size < 3) return;
    if (rank == 1) {
        nap(800);
        OK(fmpl_send(&rank, sizeof rank, 0, 11, FMPL_COMM_WORLD));
    } else if (rank == 0) {
        OK(fmpl_irecv(&other, sizeof other, 2, 11, FMPL_COMM_WORLD));
        OK(fmpl_irecv(&got, sizeof got, 1, 11, FMPL_COMM_WORLD));
        r[0] = of(FMPL_REQUEST_RECV, 2, 11);
        r[1] = of(FMPL_REQUEST_RECV, 1, 11);
        OK(fmpl_waitany(r, 2, &which));
        CHECK(which == 1 && got == 1 && r[0].kind == FMPL_REQUEST_RECV);
        CHECK((double)(clock() - before) / CLOCKS_PER_SEC < 0.4);
        OK(fmpl_send(&rank, sizeof rank, 2, 11, FMPL_COMM_WORLD));
        OK(fmpl_waitall(r, 2, NULL));
        CHECK(other == 2);
    } else if (rank == 2) {
        OK(fmpl_recv(&got, sizeof got, 0, 11, FMPL_COMM_WORLD));
        OK(fmpl_send(&rank, sizeof rank, 0, 11, FMPL_COMM_WORLD));
    }
}

/* Messages that are prepared once and begun over and over. */
static void prepared(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, out, in, k;

    CHECK(fmpl_send_start(next, 14, FMPL_COMM_WORLD) == FMPL_ERR_REQUEST);
    CHECK(fmpl_recv_start(before, 14, FMPL_COMM_WORLD) == FMPL_ERR_REQUEST);
    CHECK(fmpl_recv_init(&in, sizeof in, before, FMPL_INDEX_ANY, FMPL_COMM_WORLD) == FMPL_ERR_INDEX);
    CHECK(fmpl_send_init(NULL, 4, next, 14, FMPL_COMM_WORLD) == FMPL_ERR_ARGUMENT);
    OK(fmpl_send_init(&out, sizeof out, next, 14, FMPL_COMM_WORLD));
    OK(fmpl_recv_init(&in, sizeof in, before, 14, FMPL_COMM_WORLD));
    for (k = 0; k < 100; k++) {
        OK(fmpl_recv_start(before, 14, FMPL_COMM_WORLD));
        CHECK(fmpl_recv_start(before, 14, FMPL_COMM_WORLD) == FMPL_ERR_BUSY);
        out = 1000 * rank + k;
        OK(fmpl_send_start(next, 14, FMPL_COMM_WORLD));
        CHECK(fmpl_send_start(next, 14, FMPL_COMM_WORLD) == FMPL_ERR_BUSY);
        if (k % 2) {
            fmpl_request both[2] = {{FMPL_REQUEST_RECV, before, 14, FMPL_COMM_WORLD, 0}, {FMPL_REQUEST_SEND, next, 14, FMPL_COMM_WORLD, 0}};
            OK(fmpl_waitall(both, 2, NULL));
        } else {
            OK(fmpl_irecv_wait(before, 14, FMPL_COMM_WORLD));
            OK(fmpl_isend_wait(next, 14, FMPL_COMM_WORLD));
        }
        CHECK(in == 1000 * before + k);
    }
}

int main(void)
{
    fmpl_request none = {FMPL_REQUEST_SEND, 0, 0, 0, 0};
    FAILS(fmpl_waitall(&none, 1, NULL), FMPL_ERR_INIT);
    setenv("FMPL_DEADLOCK", "abort", 1);
    setenv("FMPL_STALL", "0.5", 1);
    OK(fmpl_init(NULL, NULL, 16));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    all_at_once();
    as_they_come(0);
    as_they_come(1);
    of_every_kind();
    in_any_order();
    beside_any_index(8);
    beside_any_index(LONG);
    what_fails();
    held_elsewhere();
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    asleep();
    in_vain();
    prepared();
    OK(fmpl_finalize());
    return 0;
}
