/** @file Loans, and memory that peers reach directly. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_MEMORY_HPP
#define FMPL_MEMORY_HPP

#include <fmpl/buffers.hpp>

namespace fmpl {
FMPL_CPP_BEGIN

/** A message that is handed over: `loan<T>` is to be filled and sent, `loan<const T>` was received. Its end returns it. */
template <class T> class loan {
    static_assert(std::is_trivially_copyable_v<T>, "fmpl: only what is trivially copyable can be handed over");

public:
    loan(T *at, std::size_t bytes, int source = nobody) noexcept : at_(at), bytes_(bytes), source_(source) {}
    loan(loan &&other) noexcept
        : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), source_(other.source_) {}
    loan &operator=(loan &&other) noexcept {
        std::swap(at_, other.at_);
        std::swap(bytes_, other.bytes_);
        std::swap(source_, other.source_);
        return *this;
    }
    ~loan() {
        if (at_) fmpl_loan_return(at_);
    }
    T *data() const noexcept { return at_; }
    std::size_t size() const noexcept { return bytes_ / sizeof(T); }
    std::size_t bytes() const noexcept { return bytes_; }
    T &operator[](std::size_t k) const { return at_[k]; }
    T *begin() const noexcept { return at_; }
    T *end() const noexcept { return at_ + size(); }
    /** Who has sent it; nobody: it is this rank's own. */
    int source() const noexcept { return source_; }

private:
    friend class comm;
    void *raw() const noexcept { return const_cast<std::remove_const_t<T> *>(at_); }
    int handed(int code) noexcept {
        if (code == FMPL_SUCCESS) at_ = nullptr, bytes_ = 0;
        return code;
    }
    T *at_;
    std::size_t bytes_;
    int source_;
};

/** A loan of `n` elements to fill; their values are not defined: fmpl_loan. */
template <class T> outcome<loan<T>> take_loan(std::size_t n) {
    void *at = nullptr;
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) n = static_cast<std::size_t>(-1) / sizeof(T); // refused by the library
    const int code = fmpl_loan(n * sizeof(T), &at);
    return detail::given(code, [&] { return loan<T>(static_cast<T *>(at), n * sizeof(T)); });
}

/** Memory that the ranks of the node reach directly (fmpl_alloc), `n` elements that are zero; its end gives it back. */
template <class T> class buffer {
    static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>, "fmpl: plain elements only");

public:
    buffer(T *at, std::size_t n) noexcept : at_(at), size_(n) {
        for (std::size_t k = 0; k < n; k++) at_[k] = T{};
    }
    buffer(buffer &&other) noexcept : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    buffer &operator=(buffer &&other) noexcept {
        std::swap(at_, other.at_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~buffer() { fmpl_free(at_); }
    T *data() const noexcept { return at_; }
    std::size_t size() const noexcept { return size_; }
    T &operator[](std::size_t k) const { return at_[k]; }
    T *begin() const noexcept { return at_; }
    T *end() const noexcept { return at_ + size_; }

private:
    T *at_;
    std::size_t size_;
};

template <class T> outcome<buffer<T>> allocate(std::size_t n) {
    void *at = n > static_cast<std::size_t>(-1) / sizeof(T) ? nullptr : fmpl_alloc(n * sizeof(T));
    const int code = at ? FMPL_SUCCESS : FMPL_ERR_MEMORY;
    return detail::given(code, [&] { return buffer<T>(static_cast<T *>(at), n); });
}

/** Memory of a node's ranks side by side, made by `comm::share`. All ranks give it back together; its end alone does not. */
template <class T> class shared_window {
    static_assert(std::is_trivially_destructible_v<T>, "fmpl: plain elements only");

public:
    explicit shared_window(T *mine) noexcept : mine_(mine) {}
    /** Where this rank's part begins. */
    T *data() const noexcept { return mine_; }
    /** The part of a rank: fmpl_shared_query. */
    outcome<span<T>> part(int rank) const {
        void *at = nullptr;
        std::size_t bytes = 0;
        const int code = fmpl_shared_query(mine_, rank, &at, &bytes);
        return detail::given(code, [&] { return span<T>(static_cast<T *>(at), bytes / sizeof(T)); });
    }
    /** All ranks call it: fmpl_shared_free. */
    outcome<> free() {
        const int code = fmpl_shared_free(mine_);
        if (code == FMPL_SUCCESS || code == FMPL_ERR_PEER) mine_ = nullptr;
        return detail::done(code);
    }

private:
    T *mine_;
};

FMPL_CPP_END
} // namespace fmpl

#endif
