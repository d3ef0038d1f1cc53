/* A program that looks at no return code: it sends to a rank that is none. */
#include "fmpl.h"
#include <stdio.h>

int main(void)
{
    int value = 1;
    fmpl_init(NULL, NULL, 2);
    fmpl_send(&value, sizeof value, 99, 0, FMPL_COMM_WORLD);
    puts("went on");
    fmpl_finalize();
    return 0;
}
