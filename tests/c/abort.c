/* fmpl_abort ends the whole job with its code, although the others wait for a message that never comes. */
#include "check.h"

int main(void) {
    char byte;
    OK(fmpl_init(NULL, NULL, 1));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    if (rank == size - 1) fmpl_abort(41);
    fmpl_recv(&byte, 1, size - 1, 0, FMPL_COMM_WORLD);
    return 0;
}
