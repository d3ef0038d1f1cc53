/** @file Errors: thrown, or returned. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_ERROR_HPP
#define FMPL_ERROR_HPP

#if __cplusplus < 201703L
#error "fmpl.hpp needs C++17 or later: -std=c++17"
#endif

#include <fmpl.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#if !defined(FMPL_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define FMPL_NO_EXCEPTIONS
#endif

/* Files compiled in the one and in the other way may be parts of one program: their functions have different names. */
#ifdef FMPL_NO_EXCEPTIONS
#define FMPL_CPP_BEGIN inline namespace returning {
#else
#define FMPL_CPP_BEGIN inline namespace throwing {
#endif
#define FMPL_CPP_END }

namespace fmpl {
FMPL_CPP_BEGIN

/** What went wrong. */
class error : public std::runtime_error {
public:
    /** A number of fmpl.h with a text of the program's own. */
    error(int code, const std::string &text) : std::runtime_error(text), code_(code) {}
    /** What the last call of this thread said, which has returned `code`. */
    static error last(int code) { return error(code, fmpl_last_error()); }
    /** FMPL_ERR_*. */
    int code() const noexcept { return code_; }

private:
    int code_;
};

#ifdef FMPL_NO_EXCEPTIONS

/** What a call has returned, or why it has failed. */
template <class T = void> class [[nodiscard]] result {
public:
    result(T value) : is_(std::in_place_index<0>, std::move(value)) {}
    result(error why) : is_(std::in_place_index<1>, std::move(why)) {}
    bool has_value() const noexcept { return is_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    /** The value; without one the error is said, and the job ends. */
    T &value() & { return must(), *std::get_if<0>(&is_); }
    const T &value() const & { return must(), *std::get_if<0>(&is_); }
    T value() && { return must(), std::move(*std::get_if<0>(&is_)); }
    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T &&operator*() && { return must(), std::move(*std::get_if<0>(&is_)); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }
    template <class U> T value_or(U &&other) && {
        return has_value() ? std::move(*std::get_if<0>(&is_)) : T(std::forward<U>(other));
    }
    /** FMPL_SUCCESS, or the error's number. */
    int code() const noexcept { return has_value() ? FMPL_SUCCESS : std::get_if<1>(&is_)->code(); }
    /** The error's text; "" without one. */
    const char *message() const noexcept { return has_value() ? "" : std::get_if<1>(&is_)->what(); }

private:
    void must() const {
        if (has_value()) return;
        std::fprintf(stderr, "fmpl: %s\n", message());
        fmpl_abort(code());
    }
    std::variant<T, error> is_;
};

/** The same of a call that has nothing to return. */
template <> class [[nodiscard]] result<void> {
public:
    result() = default;
    result(error why) : why_(std::move(why)) {}
    bool has_value() const noexcept { return !why_; }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (has_value()) return;
        std::fprintf(stderr, "fmpl: %s\n", message());
        fmpl_abort(code());
    }
    int code() const noexcept { return why_ ? why_->code() : FMPL_SUCCESS; }
    const char *message() const noexcept { return why_ ? why_->what() : ""; }

private:
    std::optional<error> why_;
};

/** What calls return. */
template <class T = void> using outcome = result<T>;

namespace detail {
template <class Make> auto given(int code, Make make) -> result<decltype(make())> {
    if (code != FMPL_SUCCESS) return error::last(code);
    return make();
}
inline result<> done(int code) {
    if (code != FMPL_SUCCESS) return error::last(code);
    return {};
}
inline error failed(int code, const std::string &text) { return error(code, text); }
template <class T> outcome<T> refused(int code, const std::string &text) { return error(code, text); }
inline int exceptions() noexcept { return 0; }
} // namespace detail

#else

/** What calls return. */
template <class T = void> using outcome = T;

namespace detail {
#if defined(__GNUC__)
__attribute__((cold, noinline))
#endif
[[noreturn]] inline void raise(int code) {
    throw error::last(code);
}
template <class Make> auto given(int code, Make make) {
    if (code != FMPL_SUCCESS) raise(code);
    return make();
}
inline void done(int code) {
    if (code != FMPL_SUCCESS) raise(code);
}
[[noreturn]] inline void failed(int code, const std::string &text) { throw error(code, text); }
template <class T> [[noreturn]] T refused(int code, const std::string &text) { throw error(code, text); }
inline int exceptions() noexcept { return std::uncaught_exceptions(); }
} // namespace detail

#endif

FMPL_CPP_END
} // namespace fmpl

#endif
