/* Checks that say where, on which rank, and what the library said. The first that fails ends the program with 1. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmpl.h"

static int rank = -1, size = 0;

#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: rank %d: not so: %s (last error: \"%s\")\n", __FILE__, __LINE__, rank, \
                    #condition, fmpl_last_error());                                                       \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                                                         \
    do {                                                                                                 \
        int code_ = (call);                                                                              \
        if (code_ != FMPL_SUCCESS) {                                                                     \
            fprintf(stderr, "%s:%d: rank %d: %s returned %d: %s\n", __FILE__, __LINE__, rank, #call, code_, \
                    fmpl_last_error());                                                                  \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

/* The call returns this error, and leaves a text about it that begins with what the code means. */
#define FAILS(call, code)                                                                                   \
    do {                                                                                                    \
        int code_ = (call);                                                                                 \
        if (code_ != (code)) {                                                                              \
            fprintf(stderr, "%s:%d: rank %d: %s returned %d (%s), not %s\n", __FILE__, __LINE__, rank, #call, \
                    code_, fmpl_strerror(code_), #code);                                                    \
            exit(1);                                                                                        \
        }                                                                                                   \
        CHECK(strncmp(fmpl_last_error(), fmpl_strerror(code), strlen(fmpl_strerror(code))) == 0);           \
    } while (0)

/* Bytes that depend on sender, number of the message and place. */
static inline unsigned char byte_of(int from, int message, size_t at) {
    return (unsigned char)(at * 131 + (at >> 8) * 29 + (unsigned)from * 17 + (unsigned)message * 5 + 1);
}

static inline void fill(void *buf, size_t n, int from, int message) {
    size_t k;
    for (k = 0; k < n; k++) ((unsigned char *)buf)[k] = byte_of(from, message, k);
}

static inline int filled(const void *buf, size_t n, int from, int message) {
    size_t k;
    for (k = 0; k < n; k++)
        if (((const unsigned char *)buf)[k] != byte_of(from, message, k)) return 0;
    return 1;
}

#endif
