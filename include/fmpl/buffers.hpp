/** @file What is sent and received: containers, spans, single objects. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_BUFFERS_HPP
#define FMPL_BUFFERS_HPP

#include <fmpl/error.hpp>

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace fmpl {
FMPL_CPP_BEGIN

#if __cplusplus >= 202002L
using std::span;
#else
/** Elements one behind the other, of which somebody else is the owner; std::span from C++20 on. */
template <class T> class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::data(std::declval<C &>())), T *>>>
    constexpr span(C &&all) noexcept : data_(std::data(all)), size_(std::size(all)) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t k) const { return data_[k]; }
    constexpr span subspan(std::size_t from, std::size_t n) const { return {data_ + from, n}; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
template <class T> span(T *, std::size_t) -> span<T>;
#endif

/** As a peer: nobody. */
inline constexpr int nobody = FMPL_PROC_NULL;
/** As the index of a receive: any index of this one source. */
inline constexpr int any_index = FMPL_INDEX_ANY;

/** A message that has come. */
struct arrival {
    int source;        /**< the sender's rank */
    int index;         /**< on which index */
    std::size_t bytes; /**< its length, which is more than the buffer's when it was truncated */
};

/** A message that has come, or a multicast, whose source is its master. */
struct arrival_or_mcast : arrival {
    bool is_mcast; /**< is it a multicast? */
};

namespace detail {

/** Bytes as elements. */
template <class T> struct memory {
    using element = std::remove_const_t<T>;
    T *data;
    std::size_t count;
    std::size_t bytes() const { return count * sizeof(T); }
};

template <class B, class = void> struct is_range : std::false_type {};
template <class B>
struct is_range<B, std::void_t<decltype(std::data(std::declval<B &>())), decltype(std::size(std::declval<B &>()))>>
    : std::true_type {};

template <class B> struct is_view : std::false_type {};
template <class T> struct is_view<span<T>> : std::true_type {};
template <class T> struct is_view<std::basic_string_view<T>> : std::true_type {};

/** The memory of a buffer: what a container or span has, or one object. */
template <class B> auto whole(B &buf) {
    if constexpr (is_range<B>::value) {
        using T = std::remove_pointer_t<decltype(std::data(buf))>;
        static_assert(std::is_trivially_copyable_v<T>,
                      "fmpl: only elements that are trivially copyable can be sent and received");
        return memory<T>{std::data(buf), std::size(buf)};
    } else {
        static_assert(!std::is_pointer_v<B>,
                      "fmpl: a pointer does not say how many elements it points to: fmpl::span(pointer, count)");
        static_assert(std::is_trivially_copyable_v<B>, "fmpl: only what is trivially copyable can be sent and received");
        return memory<B>{&buf, 1};
    }
}

/** The same of a buffer that outlives the call, or is received into. */
template <class B> auto lasting(B &&buf) {
    static_assert(std::is_lvalue_reference_v<B> || is_view<std::remove_cv_t<B>>::value,
                  "fmpl: this temporary would be gone with its bytes");
    return whole(buf);
}
template <class B> auto room(B &&buf) {
    auto all = lasting(std::forward<B>(buf));
    static_assert(!std::is_const_v<std::remove_pointer_t<decltype(all.data)>>, "fmpl: a constant buffer cannot be received into");
    return all;
}

} // namespace detail

/** A sub-matrix, or any runs of elements that are evenly spaced: fmpl_block, in elements. Empty where `first` is null. */
template <class T> struct strided {
    T *first;              /**< the first element of the first run */
    std::size_t run;       /**< elements of a run */
    std::size_t runs;      /**< how many runs */
    std::ptrdiff_t stride; /**< from the beginning of a run to that of the next, in elements; may be negative */

    static_assert(std::is_trivially_copyable_v<T>, "fmpl: only elements that are trivially copyable can be sent and received");
    /** The same in bytes, as C has it. */
    fmpl_block bytes() const { return {run * sizeof(T), runs, stride * static_cast<std::ptrdiff_t>(sizeof(T))}; }
};
template <class T> strided(T *, std::size_t, std::size_t, std::ptrdiff_t) -> strided<T>;

/** Buffers one behind the other that are one message. Must stay, as their memory must, until the call or the request is over. */
class pieces {
public:
    int size() const noexcept { return static_cast<int>(all_.size()); }
    const iovec *data() const noexcept { return all_.data(); }

protected:
    template <class Memory> void put(const Memory &all) {
        all_.push_back({const_cast<void *>(static_cast<const void *>(all.data)), all.bytes()});
    }

private:
    std::vector<iovec> all_;
};
/** Those of a message to send. */
class out_list : public pieces {
public:
    template <class... B> explicit out_list(B &&...buffers) { (add(std::forward<B>(buffers)), ...); }
    template <class B> out_list &add(B &&buf) {
        put(detail::lasting(std::forward<B>(buf)));
        return *this;
    }
};
/** Those that a message is received into, one filled after the other. */
class in_list : public pieces {
public:
    template <class... B> explicit in_list(B &&...buffers) { (add(std::forward<B>(buffers)), ...); }
    template <class B> in_list &add(B &&buf) {
        put(detail::room(std::forward<B>(buf)));
        return *this;
    }
};

FMPL_CPP_END
} // namespace fmpl

#endif
