/*
 * Wrong use gets a clear error, and the job works as before.
 *
 *     fmpl run -n 2 ./misuse
 */
#include <limits.h>
#include <stdint.h>

#include "check.h"

enum { COUNT = 16 };

static char buffer[100000];
static const fmpl_block shape = {10, 10, 100};
static struct iovec piece = {buffer, 100};

/* Every call that needs the library, while it is not there. */
static void without_the_library(void) {
    int i = 0, j = 0;
    size_t n = 0;
    FAILS(fmpl_finalize(), FMPL_ERR_INIT);
    FAILS(fmpl_comm_rank(FMPL_COMM_WORLD, &i), FMPL_ERR_INIT);
    FAILS(fmpl_comm_size(FMPL_COMM_WORLD, &i), FMPL_ERR_INIT);
    FAILS(fmpl_send(buffer, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_recv(buffer, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_isend(buffer, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_irecv(buffer, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_isend_wait(0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_irecv_wait(0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_isend_test(0, 0, FMPL_COMM_WORLD, &i), FMPL_ERR_INIT);
    FAILS(fmpl_irecv_test(0, 0, FMPL_COMM_WORLD, &i), FMPL_ERR_INIT);
    FAILS(fmpl_received(0, 0, FMPL_COMM_WORLD, &n, &i), FMPL_ERR_INIT);
    FAILS(fmpl_probe(0, 0, FMPL_COMM_WORLD, &i, &n), FMPL_ERR_INIT);
    FAILS(fmpl_irecv_cancel(0, 0, FMPL_COMM_WORLD, &i), FMPL_ERR_INIT);
    FAILS(fmpl_sendrecv(buffer, 8, 0, 0, buffer + 8, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_send_block(buffer, shape, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_recv_block(buffer, shape, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_isend_block(buffer, shape, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_irecv_block(buffer, shape, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_send_list(&piece, 1, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_recv_list(&piece, 1, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_isend_list(&piece, 1, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_irecv_list(&piece, 1, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_sendbuf_set(NULL, 1 << 20, 0), FMPL_ERR_INIT);
    FAILS(fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, NULL, 1 << 20, 0), FMPL_ERR_INIT);
    FAILS(fmpl_sendbuf_check(&i, &j), FMPL_ERR_INIT);
    FAILS(fmpl_barrier(FMPL_COMM_WORLD), FMPL_ERR_INIT);
    FAILS(fmpl_progress(), FMPL_ERR_INIT);
    FAILS(fmpl_event_fd(&i), FMPL_ERR_INIT);
    CHECK(fmpl_alloc(100) == NULL && strlen(fmpl_last_error()) > 0);
    OK(fmpl_initialized(&i));
    CHECK(i == 0);
}

/* What both sides can do to each other after a mistake. */
static void still_works(void) {
    static int round = 0;
    int peer = (rank + 1) % size, from = (rank + size - 1) % size, got = -1;
    round++;
    OK(fmpl_sendrecv(&round, sizeof round, peer, 0, &got, sizeof got, from, 0, FMPL_COMM_WORLD));
    CHECK(got == round);
    memset(buffer + 50000, 0, 50000);
    fill(buffer, 50000, rank, round);
    OK(fmpl_sendrecv(buffer, 50000, peer, COUNT - 1, buffer + 50000, 50000, from, COUNT - 1, FMPL_COMM_WORLD));
    CHECK(filled(buffer + 50000, 50000, from, round));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
}

/* One wrong place (peer, index, communicator) for every call that takes one. */
static void wrong_place(int peer, int mai, fmpl_comm comm, int code) {
    int flag = 0;
    size_t n = 0;
    FAILS(fmpl_send(buffer, 8, peer, mai, comm), code);
    FAILS(fmpl_send(buffer, 80000, peer, mai, comm), code);
    FAILS(fmpl_recv(buffer, 8, peer, mai, comm), code);
    FAILS(fmpl_isend(buffer, 8, peer, mai, comm), code);
    FAILS(fmpl_irecv(buffer, 8, peer, mai, comm), code);
    FAILS(fmpl_isend_wait(peer, mai, comm), code);
    FAILS(fmpl_irecv_wait(peer, mai, comm), code);
    FAILS(fmpl_isend_test(peer, mai, comm, &flag), code);
    FAILS(fmpl_irecv_test(peer, mai, comm, &flag), code);
    FAILS(fmpl_received(peer, mai, comm, &n, &flag), code);
    FAILS(fmpl_probe(peer, mai, comm, &flag, &n), code);
    FAILS(fmpl_irecv_cancel(peer, mai, comm, &flag), code);
    FAILS(fmpl_sendrecv(buffer, 8, peer, mai, buffer + 8, 8, FMPL_PROC_NULL, 0, comm), code);
    FAILS(fmpl_sendrecv(buffer, 8, FMPL_PROC_NULL, 0, buffer + 8, 8, peer, mai, comm), code);
    FAILS(fmpl_send_block(buffer, shape, peer, mai, comm), code);
    FAILS(fmpl_recv_block(buffer, shape, peer, mai, comm), code);
    FAILS(fmpl_isend_block(buffer, shape, peer, mai, comm), code);
    FAILS(fmpl_irecv_block(buffer, shape, peer, mai, comm), code);
    FAILS(fmpl_send_list(&piece, 1, peer, mai, comm), code);
    FAILS(fmpl_recv_list(&piece, 1, peer, mai, comm), code);
    FAILS(fmpl_isend_list(&piece, 1, peer, mai, comm), code);
    FAILS(fmpl_irecv_list(&piece, 1, peer, mai, comm), code);
}

static void wrong_buffers(int peer) {
    fmpl_block huge = {SIZE_MAX / 2, 3, 10};
    struct iovec nowhere = {NULL, 10};
    FAILS(fmpl_send(NULL, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_send(NULL, 80000, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_send(buffer, SIZE_MAX, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_recv(NULL, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_recv(buffer, SIZE_MAX, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_isend(NULL, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv(NULL, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_sendrecv(NULL, 8, peer, 1, buffer, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_sendrecv(buffer, 8, peer, 1, NULL, 8, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_send_block(NULL, shape, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_recv_block(buffer, huge, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_isend_block(buffer, huge, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv_block(NULL, shape, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_send_list(&piece, -1, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_recv_list(NULL, 1, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_isend_list(&nowhere, 1, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv_list(&piece, -1, peer, 1, FMPL_COMM_WORLD), FMPL_ERR_ARGUMENT);
}

static void wrong_requests(int peer) {
    int flag = 0;
    FAILS(fmpl_isend_wait(peer, 2, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
    FAILS(fmpl_irecv_wait(peer, 2, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
    FAILS(fmpl_irecv_wait(peer, FMPL_TAG_ANY, FMPL_COMM_WORLD), FMPL_ERR_REQUEST);
    FAILS(fmpl_isend_test(peer, 2, FMPL_COMM_WORLD, &flag), FMPL_ERR_REQUEST);
    FAILS(fmpl_irecv_test(peer, 2, FMPL_COMM_WORLD, &flag), FMPL_ERR_REQUEST);
    FAILS(fmpl_irecv_cancel(peer, 2, FMPL_COMM_WORLD, &flag), FMPL_ERR_REQUEST);
    FAILS(fmpl_received(peer, 2, FMPL_COMM_WORLD, NULL, NULL), FMPL_ERR_REQUEST);
    FAILS(fmpl_send(buffer, 8, peer, FMPL_TAG_ANY, FMPL_COMM_WORLD), FMPL_ERR_INDEX);
    FAILS(fmpl_isend(buffer, 8, peer, FMPL_TAG_ANY, FMPL_COMM_WORLD), FMPL_ERR_INDEX);

    /* A second request on the same place, while the first is under way. */
    OK(fmpl_irecv(buffer, 100, peer, 3, FMPL_COMM_WORLD));
    FAILS(fmpl_irecv(buffer + 100, 100, peer, 3, FMPL_COMM_WORLD), FMPL_ERR_BUSY);
    FAILS(fmpl_recv(buffer + 100, 100, peer, 3, FMPL_COMM_WORLD), FMPL_ERR_BUSY);
    OK(fmpl_isend(buffer + 1000, 100, peer, 3, FMPL_COMM_WORLD));
    FAILS(fmpl_isend(buffer + 2000, 100, peer, 3, FMPL_COMM_WORLD), FMPL_ERR_BUSY);
    FAILS(fmpl_send(buffer + 2000, 100, peer, 3, FMPL_COMM_WORLD), FMPL_ERR_BUSY);
    OK(fmpl_isend_wait(peer, 3, FMPL_COMM_WORLD));
    OK(fmpl_irecv_wait(peer, 3, FMPL_COMM_WORLD));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
}

static void null_results(int peer) {
    int flag = 0;
    size_t n = 0;
    FAILS(fmpl_initialized(NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_rank(FMPL_COMM_WORLD, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_size(FMPL_COMM_WORLD, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_isend_test(peer, 0, FMPL_COMM_WORLD, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv_test(peer, 0, FMPL_COMM_WORLD, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_probe(peer, 0, FMPL_COMM_WORLD, NULL, &n), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_probe(peer, 0, FMPL_COMM_WORLD, &flag, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_irecv_cancel(peer, 0, FMPL_COMM_WORLD, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_sendbuf_check(NULL, &flag), FMPL_ERR_ARGUMENT);
    {
        size_t n;
        FAILS(fmpl_counter(99, &n), FMPL_ERR_ARGUMENT);
        FAILS(fmpl_counter(FMPL_COUNTER_SHM_BYTES, NULL), FMPL_ERR_ARGUMENT);
    }
    FAILS(fmpl_sendbuf_check(&flag, NULL), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_event_fd(NULL), FMPL_ERR_ARGUMENT);
}

static void other_arguments(void) {
    int value = 0;
    FAILS(fmpl_init(NULL, NULL, -1), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_sendbuf_set(NULL, 1 << 20, -7), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_comm_sendbuf_set(77, NULL, 1 << 20, 0), FMPL_ERR_COMM);
    FAILS(fmpl_free(&value), FMPL_ERR_ARGUMENT);
    FAILS(fmpl_barrier(FMPL_COMM_NULL), FMPL_ERR_COMM);
    FAILS(fmpl_barrier(1234), FMPL_ERR_COMM);
    FAILS(fmpl_comm_rank(FMPL_COMM_NULL, &value), FMPL_ERR_COMM);
    FAILS(fmpl_comm_size(-99, &value), FMPL_ERR_COMM);
}

int main(void) {
    int peer, k;
    without_the_library();
    FAILS(fmpl_init(NULL, NULL, -1), FMPL_ERR_ARGUMENT);
    without_the_library();
    OK(fmpl_init(NULL, NULL, COUNT));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    CHECK(size == 2);
    peer = 1 - rank;

    for (k = 0; k < 2; k++) {
        /* First with no message exchanged yet, then with a lane in use. */
        wrong_place(size, 0, FMPL_COMM_WORLD, FMPL_ERR_RANK);
        wrong_place(-1, 0, FMPL_COMM_WORLD, FMPL_ERR_RANK);
        wrong_place(INT_MAX, 0, FMPL_COMM_WORLD, FMPL_ERR_RANK);
        wrong_place(INT_MIN, 0, FMPL_COMM_WORLD, FMPL_ERR_RANK);
        wrong_place(peer, COUNT, FMPL_COMM_WORLD, FMPL_ERR_INDEX);
        wrong_place(peer, -2, FMPL_COMM_WORLD, FMPL_ERR_INDEX);
        wrong_place(peer, INT_MAX, FMPL_COMM_WORLD, FMPL_ERR_INDEX);
        wrong_place(rank, COUNT, FMPL_COMM_WORLD, FMPL_ERR_INDEX);
        wrong_place(peer, 0, FMPL_COMM_NULL, FMPL_ERR_COMM);
        wrong_place(peer, 0, 5, FMPL_ERR_COMM);
        wrong_place(peer, 0, INT_MAX, FMPL_ERR_COMM);
        wrong_buffers(peer);
        still_works();
    }
    /* The texts name what the caller must know. */
    FAILS(fmpl_send(buffer, 8, 7, 3, FMPL_COMM_WORLD), FMPL_ERR_RANK);
    CHECK(strstr(fmpl_last_error(), "7") && strstr(fmpl_last_error(), "2"));
    FAILS(fmpl_recv(buffer, 8, peer, 4321, FMPL_COMM_WORLD), FMPL_ERR_INDEX);
    CHECK(strstr(fmpl_last_error(), "4321") && strstr(fmpl_last_error(), "16"));

    wrong_requests(peer);
    still_works();
    null_results(peer);
    other_arguments();
    still_works();
    OK(fmpl_finalize());
    rank = -1;
    without_the_library();
    for (k = 1; k <= FMPL_ERR_UNSUPPORTED; k++) CHECK(strlen(fmpl_strerror(k)) > 3 && strcmp(fmpl_strerror(k), fmpl_strerror(999)) != 0);
    CHECK(strcmp(fmpl_strerror(FMPL_SUCCESS), fmpl_strerror(999)) != 0);
    return 0;
}
