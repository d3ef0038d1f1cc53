// What the tests of fmpl.hpp, with exceptions, look with.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <fmpl.hpp>

#include <cstdio>
#include <cstring>

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, fmpl_last_error());  \
            fmpl_abort(1);                                                                                        \
        }                                                                                                         \
    } while (0)

namespace {

/** The code with which a call fails; 0: it does not. */
template <class Call> int fails(Call call, const char *says = "") {
    try {
        call();
    } catch (const fmpl::error &e) {
        CHECK(std::strstr(e.what(), says));
        return e.code();
    }
    return FMPL_SUCCESS;
}

} // namespace

#endif
