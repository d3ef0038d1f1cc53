/*
 * Hello: who am I, how many are we; every rank greets rank 0.
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 4 ./hello
 */
#include <string.h>

#include "example.h"

int main(void) {
    int rank, size, from;
    char text[64], greeting[64];
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    if (rank != 0) {
        snprintf(text, sizeof text, "hello from rank %d of %d", rank, size);
        TRY(fmpl_send(text, strlen(text) + 1, 0, 0, FMPL_COMM_WORLD));
    } else {
        printf("rank 0 of %d listens\n", size);
        for (from = 1; from < size; from++) {
            /* Shorter messages than the buffer are fine. */
            TRY(fmpl_recv(text, sizeof text, from, 0, FMPL_COMM_WORLD));
            snprintf(greeting, sizeof greeting, "hello from rank %d of %d", from, size);
            EXPECT(strcmp(text, greeting) == 0);
            printf("%s\n", text);
        }
    }
    TRY(fmpl_finalize());
    return 0;
}
