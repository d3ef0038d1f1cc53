/*
 * Frames: rank 0 is a camera that hands its pictures to the other ranks in turn; none is ever copied. Any number of ranks.
 *
 *     cc frames.c -o frames $(pkg-config --cflags --libs fmpl)
 *     fmpl run -n 3 ./frames
 */
#include <stdint.h>

#include "example.h"

enum { PIXELS = 640 * 480, FRAMES = 100 };

int main(void) {
    int rank, size, viewers, viewer;
    uint32_t frame, at;
    size_t copied, length;
    TRY(fmpl_init(NULL, NULL, 1));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    viewers = size > 1 ? size - 1 : 1;
    for (frame = 0; frame < FRAMES; frame++) {
        /* Alone, rank 0 looks at its pictures itself. */
        viewer = size - viewers + (int)(frame % (uint32_t)viewers);
        if (size == 1) viewer = 0;
        if (rank == 0) {
            void *memory;
            uint32_t *picture;
            TRY(fmpl_loan(PIXELS * sizeof *picture, &memory));
            picture = memory;
            for (at = 0; at < PIXELS; at++) picture[at] = frame ^ at;
            /* The picture is the viewer's from here on. */
            TRY(fmpl_send_loan(memory, PIXELS * sizeof *picture, viewer, 0, FMPL_COMM_WORLD));
        }
        if (rank == viewer) {
            const void *memory;
            const uint32_t *picture;
            TRY(fmpl_recv_loan(&memory, &length, 0, 0, FMPL_COMM_WORLD));
            EXPECT(length == PIXELS * sizeof *picture);
            picture = memory;
            for (at = 0; at < PIXELS; at++) EXPECT(picture[at] == (frame ^ at));
            /* It goes back to the camera. */
            TRY(fmpl_loan_return(memory));
        }
    }
    TRY(fmpl_barrier(FMPL_COMM_WORLD));
    TRY(fmpl_counter(FMPL_COUNTER_LOAN_COPIED, &copied));
    if (rank == 0) printf("%d frames were handed to %d viewers, %zu bytes were copied\n", FRAMES, viewers, copied);
    TRY(fmpl_finalize());
    return 0;
}
