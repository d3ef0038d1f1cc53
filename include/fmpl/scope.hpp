/** @file Calls that do not wait, and the scope that does. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_SCOPE_HPP
#define FMPL_SCOPE_HPP

#include <fmpl/comm.hpp>

#include <thread>

namespace fmpl {
FMPL_CPP_BEGIN

class scope;

/** A call of a scope that may not be over. It is the name of the call, not its owner: without it the scope completes the call. */
class request {
public:
    /** Which request of its scope it is, from 0 on. */
    std::size_t position() const noexcept { return at_; }
    /**
     * Waits until the call is over. Of a receive: what has come; of one that was withdrawn: 0 bytes from `nobody`. When it is over already
     * nothing happens.
     */
    outcome<arrival> wait();
    /** The same if that takes no waiting. */
    outcome<std::optional<arrival>> test();
    /** Withdraws a receive, once for all; false: too late, its message is on the way into the buffer, or in it. */
    outcome<bool> cancel();

private:
    friend class scope;
    request(scope &in, std::size_t at) : in_(&in), at_(at) {}
    scope *in_;
    std::size_t at_;
};

/**
 * The place of calls that do not wait. Its end waits for those that are not over: a pending receive cannot outlive a buffer that was there
 * before the scope. Declare the scope behind its buffers, for what is declared last ends first. An error that the end finds is thrown, or
 * (without exceptions) said, and the job ends; `wait_all` gets it as any other. When the scope is left by an exception its receives are
 * withdrawn, as far as no message is on its way, and the rest is waited for. A scope belongs to one thread.
 */
class scope {
public:
    explicit scope(const comm &of) noexcept : comm_(of), exceptions_(detail::exceptions()) {}
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
#ifdef FMPL_NO_EXCEPTIONS
    ~scope() { wait_all().value(); }
#else
    ~scope() noexcept(false) {
        if (detail::exceptions() == exceptions_) {
            wait_all();
            return;
        }
        for (std::size_t k = 0; k < size_; k++) {
            int withdrawn = 0;
            withdraw(k, withdrawn);
        }
        (void)complete(); // the exception that is under way tells more
    }
#endif

    /** fmpl_isend. The buffer must stay, and stay as it is, until the request is over. */
    template <class B> outcome<request> isend(B &&buf, int to, int index) {
        auto all = detail::lasting(std::forward<B>(buf));
        return begun([&] { return fmpl_isend(all.data, all.bytes(), to, index, comm_.id()); }, FMPL_REQUEST_SEND, to, index);
    }
    /** fmpl_irecv. The buffer must stay, and not be touched, until the request is over. */
    template <class B> outcome<request> irecv(B &&buf, int from, int index) {
        auto all = detail::room(std::forward<B>(buf));
        return begun([&] { return fmpl_irecv(all.data, all.bytes(), from, index, comm_.id()); }, FMPL_REQUEST_RECV, from, index);
    }
    /** fmpl_isend_any. */
    template <class B> outcome<request> isend_any(B &&buf, int to, int index) {
        auto all = detail::lasting(std::forward<B>(buf));
        return begun([&] { return fmpl_isend_any(all.data, all.bytes(), to, index, comm_.id()); }, FMPL_REQUEST_SEND_ANY, to, index);
    }
    /** fmpl_irecv_any. */
    template <class B> outcome<request> irecv_any(B &&buf, int index) {
        auto all = detail::room(std::forward<B>(buf));
        return begun([&] { return fmpl_irecv_any(all.data, all.bytes(), index, comm_.id()); }, FMPL_REQUEST_RECV_ANY, nobody, index);
    }
    /** fmpl_ibarrier. */
    outcome<request> ibarrier() { return begun([&] { return fmpl_ibarrier(comm_.id()); }, FMPL_REQUEST_BARRIER); }
    /** fmpl_ibcast. */
    template <class B> outcome<request> ibcast(B &&buf, int root) {
        auto all = detail::room(std::forward<B>(buf));
        return begun([&] { return fmpl_ibcast(all.data, all.bytes(), root, comm_.id()); }, FMPL_REQUEST_BCAST);
    }
    /** fmpl_iallreduce. */
    template <class B, class Op> outcome<request> iallreduce(B &&buf, const Op &op) {
        const auto call = [&] {
            return detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) {
                return fmpl_iallreduce(at, n, f, comm_.id(), nullptr);
            });
        };
        return begun(call, FMPL_REQUEST_ALLREDUCE);
    }

    /** Waits until all are over; the first error, which keeps none of the others from its end. */
    outcome<> wait_all() { return detail::done(complete()); }
    /** Waits until one is over, whichever: its position, and what has come; nothing when all are over already. */
    outcome<std::optional<std::pair<std::size_t, arrival>>> wait_any() {
        int which = -1;
        const int code = fmpl_waitany(all(), static_cast<int>(size_), &which);
        return detail::given(code, [&] {
            using One = std::pair<std::size_t, arrival>;
            return which < 0 ? std::nullopt : std::optional<One>(One(which, arrived(which)));
        });
    }
    /** Completes those that need no waiting; whether that leaves none. */
    outcome<bool> test_all() {
        int all_done = 0;
        const int code = fmpl_testall(all(), static_cast<int>(size_), &all_done, nullptr);
        return detail::given(code, [&] { return all_done != 0; });
    }

private:
    friend class request;
    static constexpr std::size_t few = 8;

    fmpl_request *all() { return size_ <= few ? first_ : more_.data(); }
    arrival arrived(std::size_t at) {
        const fmpl_request &r = all()[at];
        return {r.peer, r.index, static_cast<std::size_t>(r.ticket)};
    }
    /** Begins by `call`. Room comes first: were memory to run out behind the call, its request would be none of the scope's. */
    template <class Call> outcome<request> begun(Call call, int kind, int peer = nobody, int index = 0) {
        if (size_ == few) more_.assign(first_, first_ + few);
        if (size_ >= few) more_.resize(size_ + 1);
        const int code = call();
        if (code == FMPL_SUCCESS) {
            (size_ < few ? first_[size_] : more_[size_]) = fmpl_request{kind, peer, index, comm_.id(), 0};
            size_++;
        }
        return detail::given(code, [&] { return request(*this, size_ - 1); });
    }
    int complete() {
        int code;
        // Another thread that completes the same has it for a moment only.
        while ((code = fmpl_waitall(all(), static_cast<int>(size_), nullptr)) == FMPL_ERR_BUSY) std::this_thread::yield();
        return code;
    }
    int withdraw(std::size_t at, int &withdrawn) {
        fmpl_request &r = all()[at];
        int code = FMPL_SUCCESS;
        if (r.kind == FMPL_REQUEST_NONE && r.comm == FMPL_COMM_NULL) withdrawn = 1;
        else if (r.kind == FMPL_REQUEST_RECV) code = fmpl_irecv_cancel(r.peer, r.index, r.comm, &withdrawn);
        else if (r.kind == FMPL_REQUEST_RECV_ANY) code = fmpl_irecv_any_cancel(r.index, r.comm, &withdrawn);
        // It is over, and remembered as withdrawn: nothing has come, from nobody.
        if (code == FMPL_SUCCESS && withdrawn) r = {FMPL_REQUEST_NONE, nobody, r.index, FMPL_COMM_NULL, 0};
        return code;
    }

    comm comm_;
    std::size_t size_ = 0;
    fmpl_request first_[few];
    std::vector<fmpl_request> more_;
    int exceptions_;
};

inline outcome<arrival> request::wait() {
    const int code = fmpl_waitall(&in_->all()[at_], 1, nullptr);
    return detail::given(code, [&] { return in_->arrived(at_); });
}
inline outcome<std::optional<arrival>> request::test() {
    int over = 0;
    const int code = fmpl_testall(&in_->all()[at_], 1, &over, nullptr);
    return detail::given(code, [&] { return over ? std::optional<arrival>(in_->arrived(at_)) : std::nullopt; });
}
inline outcome<bool> request::cancel() {
    int withdrawn = 0;
    const int code = in_->withdraw(at_, withdrawn);
    return detail::given(code, [&] { return withdrawn != 0; });
}

FMPL_CPP_END
} // namespace fmpl

#endif
