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

/**
 * A receive in place that has begun: `comm::irecv_loan`, `irecv_loan_any`. Its end waits for the message and gives it back; when it is left by an
 * exception it does not, and the receive stays open.
 */
template <class T> class pending_loan {
public:
    pending_loan(fmpl_comm of, int from, int index, bool any) noexcept
        : comm_(of), from_(from), index_(index), any_(any), exceptions_(detail::exceptions()) {}
    pending_loan(pending_loan &&other) noexcept
        : comm_(std::exchange(other.comm_, FMPL_COMM_NULL)), from_(other.from_), index_(other.index_), any_(other.any_),
          exceptions_(other.exceptions_) {}
    pending_loan &operator=(pending_loan &&) = delete;
    ~pending_loan() {
        if (comm_ != FMPL_COMM_NULL && detail::exceptions() == exceptions_ && complete(nullptr) == FMPL_SUCCESS)
            fmpl_loan_return(at_);
    }
    /** Waits for the message; once. */
    outcome<loan<const T>> wait() {
        const int code = complete(nullptr);
        return detail::given(code, [&] { return received(); });
    }
    /** The same if that takes no waiting. */
    outcome<std::optional<loan<const T>>> test() {
        int there = 0;
        const int code = complete(&there);
        return detail::given(code, [&] { return there ? std::optional<loan<const T>>(received()) : std::nullopt; });
    }

private:
    loan<const T> received() const { return {static_cast<const T *>(at_), bytes_, from_}; }
    /** Completes it, or (`there`) looks whether it is over; an error ends it, too, but that another thread is at it. */
    int complete(int *there) {
        const int code =
            any_ ? (there ? fmpl_irecv_loan_any_test(&at_, &bytes_, index_, comm_, there, &from_)
                          : fmpl_irecv_loan_any_wait(&at_, &bytes_, index_, comm_, &from_))
                 : (there ? fmpl_irecv_loan_test(&at_, &bytes_, from_, index_, comm_, there)
                          : fmpl_irecv_loan_wait(&at_, &bytes_, from_, index_, comm_));
        if (code != FMPL_ERR_BUSY && (code != FMPL_SUCCESS || !there || *there)) comm_ = FMPL_COMM_NULL;
        return code;
    }
    const void *at_ = nullptr;
    std::size_t bytes_ = 0;
    fmpl_comm comm_;
    int from_, index_;
    bool any_;
    int exceptions_;
};

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
