/** @file Global memory: what acp.h has, over pointers that know their type. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_GLOBAL_HPP
#define FMPL_GLOBAL_HPP

#include <fmpl/buffers.hpp>

#include <acp.h>

#include <cstdint>

namespace fmpl {
FMPL_CPP_BEGIN

namespace global {

/** A place in any rank's registered memory: a number, which may be sent to other ranks as it is. */
template <class T> class pointer {
    static_assert(std::is_trivially_copyable_v<T>, "fmpl: only what is trivially copyable lies in global memory");

public:
    constexpr explicit pointer(acp_ga_t at = ACP_GA_NULL) noexcept : at_(at) {}
    /** The address in the C interface. */
    constexpr acp_ga_t address() const noexcept { return at_; }
    constexpr explicit operator bool() const noexcept { return at_ != ACP_GA_NULL; }
    constexpr pointer operator+(std::ptrdiff_t n) const noexcept { return pointer(at_ + static_cast<acp_ga_t>(n) * sizeof(T)); }
    constexpr bool operator==(pointer other) const noexcept { return at_ == other.at_; }
    constexpr bool operator!=(pointer other) const noexcept { return at_ != other.at_; }
    /** Whose memory it is. */
    int rank() const noexcept { return acp_query_rank(at_); }
    /** Its colour, a part of it that makes no difference here. */
    int colour() const noexcept { return acp_query_color(at_); }
    /** Where it is in this process; null: in another one's. */
    T *local() const noexcept { return static_cast<T *>(acp_query_address(at_)); }
    /** The same place taken for elements of another type. */
    template <class U> constexpr pointer<U> as() const noexcept { return pointer<U>(at_); }

private:
    acp_ga_t at_;
};

/** An operation that has begun. It needs no owner: it goes on without this. */
class operation {
public:
    /** None; as what another one follows: it follows nothing. */
    constexpr explicit operation(acp_handle_t handle = ACP_HANDLE_NULL) noexcept : handle_(handle) {}
    constexpr acp_handle_t handle() const noexcept { return handle_; }
    /** Waits until it and all that were begun before it are over; the first that has failed. */
    outcome<> wait() const;
    /** Are they? */
    bool done() const noexcept { return acp_inquire(handle_) == 0; }

private:
    acp_handle_t handle_;
};

/** All operations that have been begun before, as what another one follows. */
inline constexpr operation all_before{static_cast<acp_handle_t>(ACP_HANDLE_ALL)};

} // namespace global

namespace detail {

/** The number of what ACP's last call of this thread has failed by; `ok`: it has not. */
inline int acp_code(bool ok) {
    if (ok) return FMPL_SUCCESS;
    const int code = acp_errno();
    return code != FMPL_SUCCESS ? code : FMPL_ERR_SYSTEM;
}

#ifdef FMPL_NO_EXCEPTIONS
template <class Make> auto acp_given(bool ok, Make make) -> result<decltype(make())> {
    if (const int code = acp_code(ok)) return error(code, acp_last_error());
    return make();
}
inline result<> acp_done(int code) {
    if (code != FMPL_SUCCESS) return error(code, acp_last_error());
    return {};
}
#else
inline void acp_done(int code) {
    if (code != FMPL_SUCCESS) throw error(code, acp_last_error());
}
template <class Make> auto acp_given(bool ok, Make make) {
    acp_done(acp_code(ok));
    return make();
}
#endif

inline outcome<global::operation> begun(acp_handle_t handle) {
    return acp_given(handle != ACP_HANDLE_NULL && !(static_cast<uint64_t>(handle) & ACP_HANDLE_REFUSED),
                     [&] { return global::operation(handle); });
}

/** Calls the one of two functions, for 4 and for 8 bytes, that is for this type. */
template <class T, class Four, class Eight> outcome<global::operation> atomic(T value, Four four, Eight eight) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "fmpl: integers of 4 or 8 bytes");
    if constexpr (sizeof(T) == 4) return begun(four(static_cast<uint32_t>(value)));
    else return begun(eight(static_cast<uint64_t>(value)));
}
/** The same of a call that takes one value. */
template <class T, class Four, class Eight>
outcome<global::operation> change(global::pointer<T> old, global::pointer<T> target, T value, global::operation after, Four four,
                                  Eight eight) {
    return atomic(
        value, [&](uint32_t v) { return four(old.address(), target.address(), v, after.handle()); },
        [&](uint64_t v) { return eight(old.address(), target.address(), v, after.handle()); });
}

} // namespace detail

namespace global {

inline outcome<> operation::wait() const {
    (void)acp_errno(); // of calls before
    acp_complete(handle_);
    return detail::acp_done(acp_errno());
}

/** Waits until all operations of this rank are over. */
inline outcome<> complete() { return all_before.wait(); }

/** This rank's global memory, from acp_init on; its end leaves it (acp_finalize), which all ranks do. */
class memory {
public:
    memory(memory &&other) noexcept : here_(std::exchange(other.here_, false)), exceptions_(other.exceptions_) {}
    memory &operator=(memory &&) = delete;
    ~memory() {
        if (here_ && detail::exceptions() == exceptions_) acp_finalize();
    }
    int rank() const noexcept { return acp_rank(); }
    int size() const noexcept { return acp_procs(); }
    /** Begins anew with another rank, another one for each; all ranks call it, and all registrations end. */
    outcome<> reset(int rank) { return detail::acp_done(detail::acp_code(acp_reset(rank) == 0)); }
    /** Waits until all ranks have called it. */
    outcome<> sync() const { return detail::acp_done(detail::acp_code(acp_sync() == 0)); }
    /** The starter memory of a rank, by which ranks tell each other other addresses. */
    template <class T> outcome<pointer<T>> starter(int rank) const {
        const acp_ga_t at = acp_query_starter_ga(rank);
        return detail::acp_given(at != ACP_GA_NULL, [&] { return pointer<T>(at); });
    }

private:
    friend outcome<memory> open();
    memory() noexcept : here_(true), exceptions_(detail::exceptions()) {}
    bool here_;
    int exceptions_;
};

/** How many colours addresses may have. */
inline int colours() noexcept { return acp_colors(); }
/** Ends the whole job, every rank of it, with a message on standard error. */
inline void abort(const std::string &why) { acp_abort(why.c_str()); }

/** Makes this rank's global memory, with all ranks: acp_init. */
inline outcome<memory> open() {
    return detail::acp_given(acp_init(nullptr, nullptr) == 0, [] { return memory(); });
}

/** Registered memory: until its end all ranks reach it. The memory must stay as long. */
template <class T> class registration {
public:
    registration(acp_atkey_t key, T *at) noexcept : key_(key), at_(at) {}
    registration(registration &&other) noexcept : key_(std::exchange(other.key_, ACP_ATKEY_NULL)), at_(other.at_) {}
    registration &operator=(registration &&other) noexcept {
        std::swap(key_, other.key_);
        std::swap(at_, other.at_);
        return *this;
    }
    ~registration() {
        if (key_ != ACP_ATKEY_NULL) acp_unregister_memory(key_);
    }
    /** The address of its first element. */
    pointer<T> begin() const noexcept { return pointer<T>(acp_query_ga(key_, at_)); }
    acp_atkey_t key() const noexcept { return key_; }

private:
    acp_atkey_t key_;
    T *at_;
};

/** Registers a buffer: acp_register_memory. */
template <class B> auto share(B &&buf) {
    auto all = detail::room(std::forward<B>(buf));
    using T = std::remove_reference_t<decltype(*all.data)>;
    const acp_atkey_t key = acp_register_memory(all.data, all.bytes(), 0);
    return detail::acp_given(key != ACP_ATKEY_NULL, [&] { return registration<T>(key, all.data); });
}

/** Copies `n` elements, of any rank's to any rank's memory; begins when `after` and all before that are over: acp_copy. */
template <class T> outcome<operation> copy(pointer<T> to, pointer<T> from, std::size_t n, operation after = operation()) {
    return detail::begun(acp_copy(to.address(), from.address(), n * sizeof(T), after.handle()));
}

/** One of acp.h's atomic operations on `target`; what was there goes to `old`. */
template <class T> outcome<operation> swap(pointer<T> old, pointer<T> target, T value, operation after = operation()) {
    return detail::change(old, target, value, after, acp_swap4, acp_swap8);
}
template <class T> outcome<operation> add(pointer<T> old, pointer<T> target, T value, operation after = operation()) {
    return detail::change(old, target, value, after, acp_add4, acp_add8);
}
template <class T> outcome<operation> bit_xor(pointer<T> old, pointer<T> target, T value, operation after = operation()) {
    return detail::change(old, target, value, after, acp_xor4, acp_xor8);
}
template <class T> outcome<operation> bit_or(pointer<T> old, pointer<T> target, T value, operation after = operation()) {
    return detail::change(old, target, value, after, acp_or4, acp_or8);
}
template <class T> outcome<operation> bit_and(pointer<T> old, pointer<T> target, T value, operation after = operation()) {
    return detail::change(old, target, value, after, acp_and4, acp_and8);
}
/** Sets `target` to `value` if it is `expected`. */
template <class T>
outcome<operation> compare_and_swap(pointer<T> old, pointer<T> target, T expected, T value, operation after = operation()) {
    return detail::atomic(
        value,
        [&](uint32_t v) { return acp_cas4(old.address(), target.address(), static_cast<uint32_t>(expected), v, after.handle()); },
        [&](uint64_t v) {
            return acp_cas8(old.address(), target.address(), static_cast<uint64_t>(expected), v, after.handle());
        });
}

} // namespace global

FMPL_CPP_END
} // namespace fmpl

#endif
