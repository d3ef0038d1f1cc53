/* What the examples share: a call that fails ends the job with the library's explanation, and so does a wrong result. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include <fmpl.h>

#define TRY(call)                                                                   \
    do {                                                                            \
        if ((call) != FMPL_SUCCESS) {                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, fmpl_last_error());  \
            fmpl_abort(1);                                                          \
        }                                                                           \
    } while (0)

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: wrong result: %s\n", __FILE__, __LINE__, #condition); \
            fmpl_abort(1);                                                          \
        }                                                                           \
    } while (0)

#endif
