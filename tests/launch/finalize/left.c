/* A program that looks at no return code: rank 0 sends a message that nobody receives. With an argument it ends with that code. */
#include "fmpl.h"
#include <stdio.h>
#include <stdlib.h>

static void at_the_end(void) { fputs("at the end", stdout); }

int main(int argc, char **argv)
{
    int rank, value = 1;
    atexit(at_the_end);
    fmpl_init(NULL, NULL, 2);
    fmpl_comm_rank(FMPL_COMM_WORLD, &rank);
    if (rank == 0)
        fmpl_send(&value, sizeof value, 1, 1, FMPL_COMM_WORLD);
    fmpl_finalize();
    printf("rank %d goes on, ", rank);
    return argc > 1 ? atoi(argv[1]) : 0;
}
