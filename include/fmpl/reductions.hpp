/** @file Functions of reductions: the library's own, and any function object without state. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_REDUCTIONS_HPP
#define FMPL_REDUCTIONS_HPP

#include <fmpl/buffers.hpp>

#include <complex>
#include <functional>
#include <vector>

namespace fmpl {
FMPL_CPP_BEGIN

/** The sum; `std::plus` is taken for it. */
struct sum {
    template <class T> T operator()(const T &a, const T &b) const { return static_cast<T>(a + b); }
};
/** The larger one (MPI_MAX). */
struct maximum {
    template <class T> T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
/** The smaller one (MPI_MIN). */
struct minimum {
    template <class T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
/** The one with the larger absolute value, with its sign; int, float, double and their complex ones. */
struct abs_maximum {};
/** The one with the smaller absolute value, with its sign; int, float, double and their complex ones. */
struct abs_minimum {};

namespace detail {

template <class Op> struct plain_name {
    using type = Op;
};
template <class T> struct plain_name<std::plus<T>> {
    using type = sum;
};

/** Which of the library's functions is for these elements: the place of T in the lists below; -1: none. */
template <class T>
inline constexpr int kind = std::is_same_v<T, int>                    ? 0
                            : std::is_same_v<T, float>                ? 1
                            : std::is_same_v<T, double>               ? 2
                            : std::is_same_v<T, std::complex<float>>  ? 3
                            : std::is_same_v<T, std::complex<double>> ? 4
                                                                      : -1;

/** Whether the library has a function for this and these elements; complex numbers have no larger one. */
template <class T, class Op>
inline constexpr bool is_predefined =
    (kind<T> >= 0 && (std::is_same_v<Op, sum> || std::is_same_v<Op, abs_maximum> || std::is_same_v<Op, abs_minimum>)) ||
    (kind<T> >= 0 && kind<T> < 3 && (std::is_same_v<Op, maximum> || std::is_same_v<Op, minimum>));

template <class T, class Op> fmpl_func predefined() {
    constexpr fmpl_func sums[] = {fmpl_isum, fmpl_ssum, fmpl_dsum, fmpl_csum, fmpl_zsum};
    constexpr fmpl_func most[] = {fmpl_iamax, fmpl_samax, fmpl_damax, fmpl_camax, fmpl_zamax};
    constexpr fmpl_func least[] = {fmpl_iamin, fmpl_samin, fmpl_damin, fmpl_camin, fmpl_zamin};
    constexpr fmpl_func maxima[] = {fmpl_imaxval, fmpl_smaxval, fmpl_dmaxval};
    constexpr fmpl_func minima[] = {fmpl_iminval, fmpl_sminval, fmpl_dminval};
    if constexpr (std::is_same_v<Op, sum>) return sums[kind<T>];
    else if constexpr (std::is_same_v<Op, abs_maximum>) return most[kind<T>];
    else if constexpr (std::is_same_v<Op, abs_minimum>) return least[kind<T>];
    else if constexpr (std::is_same_v<Op, maximum>) return maxima[kind<T>];
    else return minima[kind<T>];
}

/** A function object without state, where the library's C function finds it. */
template <class T, class Op> struct combiner {
    static inline const Op *op = nullptr;
    static void run(void *inout, const void *in, int count) {
        auto *left = static_cast<T *>(inout);
        auto *right = static_cast<const T *>(in);
        for (int k = 0; k < count; k++) left[k] = (*op)(left[k], right[k]);
    }
};

/** The C function for a function object and elements T, registered if it has to be; what registering has returned. */
template <class T, class Given> int function_for(const Given &given, fmpl_func &to) {
    using Op = typename plain_name<Given>::type;
    if constexpr (is_predefined<T, Op>) {
        to = predefined<T, Op>();
        return FMPL_SUCCESS;
    } else {
        static_assert(std::is_empty_v<Given>,
                      "fmpl: a function of a reduction has no captures and no members: C calls it without them");
        static_assert(
            std::is_invocable_v<const Given &, const T &, const T &>,
            "fmpl: this function does not take two of these elements; abs_maximum and abs_minimum are for int, float, double");
        static const Given kept = given;
        static const int code = (combiner<T, Given>::op = &kept, fmpl_func_register(combiner<T, Given>::run, sizeof(T), 0));
        to = combiner<T, Given>::run;
        return code;
    }
}

/** Makes a call with the function for a buffer's elements: `call(elements, their number, function)`. */
template <class B, class Op, class Call> int reduce(B &&buf, const Op &op, Call call) {
    auto all = room(std::forward<B>(buf));
    using T = std::remove_all_extents_t<std::remove_pointer_t<decltype(all.data)>>;
    const std::size_t n = all.bytes() / sizeof(T);
    fmpl_func function = nullptr;
    int code = function_for<T>(op, function);
    // The library refuses a negative number.
    const int count = n > 0x7fffffff ? -1 : static_cast<int>(n);
    return code != FMPL_SUCCESS ? code : call(static_cast<void *>(all.data), count, function);
}

template <class T> std::vector<std::size_t> in_bytes(span<const std::size_t> counts) {
    std::vector<std::size_t> all(counts.begin(), counts.end());
    for (auto &n : all) n *= sizeof(T);
    return all;
}

} // namespace detail

class communicator;
template <class T> class loan;

FMPL_CPP_END
} // namespace fmpl

#endif
