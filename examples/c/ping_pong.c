/*
 * Ping-pong: ranks 0 and 1 send messages of growing length back and forth, and print what one way takes.
 *
 *     cc -O2 ping_pong.c -o ping_pong $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 2 ./ping_pong
 */
#include <string.h>

#include "example.h"

enum { INDEX = 0, LARGEST = 1 << 20 };

int main(void) {
    int rank, size, round;
    size_t length, k;
    static unsigned char ball[LARGEST];
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    if (size < 2) {
        fprintf(stderr, "ping_pong needs two ranks: fmpl run -n 2 ./ping_pong\n");
        fmpl_abort(2);
    }
    if (rank == 0) printf("%10s %12s\n", "bytes", "one way, us");
    for (length = 8; length <= LARGEST && rank < 2; length *= 8) {
        int rounds = length < 10000 ? 2000 : 100, peer = 1 - rank;
        memset(ball, 0, length);
        double begin = fmpl_wtime();
        for (round = 0; round < rounds; round++) {
            /* Each player adds one to the first and to the last byte. */
            if (rank == 1) TRY(fmpl_recv(ball, length, peer, INDEX, FMPL_COMM_WORLD));
            ball[0]++, ball[length - 1]++;
            TRY(fmpl_send(ball, length, peer, INDEX, FMPL_COMM_WORLD));
            if (rank == 0) TRY(fmpl_recv(ball, length, peer, INDEX, FMPL_COMM_WORLD));
        }
        double seconds = fmpl_wtime() - begin;
        unsigned char hits = (unsigned char)(2 * rounds);
        EXPECT(ball[0] == hits && ball[length - 1] == hits);
        for (k = 1; k + 1 < length; k++) EXPECT(ball[k] == 0);
        if (rank == 0) printf("%10zu %12.3f\n", length, seconds / rounds / 2 * 1e6);
    }
    TRY(fmpl_finalize());
    return 0;
}
