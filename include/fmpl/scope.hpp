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
    /** fmpl_isend_block. */
    template <class T> outcome<request> isend_block(strided<T> from, int to, int index) {
        return begun([&] { return fmpl_isend_block(from.first, from.bytes(), to, index, comm_.id()); }, FMPL_REQUEST_SEND, to, index);
    }
    /** fmpl_irecv_block. */
    template <class T> outcome<request> irecv_block(strided<T> into, int from, int index) {
        static_assert(!std::is_const_v<T>, "fmpl: a constant buffer cannot be received into");
        return begun([&] { return fmpl_irecv_block(into.first, into.bytes(), from, index, comm_.id()); }, FMPL_REQUEST_RECV, from, index);
    }
    /** fmpl_isend_list. The list must stay, too. */
    outcome<request> isend_list(const out_list &parts, int to, int index) {
        return begun([&] { return fmpl_isend_list(parts.data(), parts.size(), to, index, comm_.id()); }, FMPL_REQUEST_SEND, to, index);
    }
    outcome<request> isend_list(const out_list &&, int, int) = delete;
    /** fmpl_irecv_list. The list must stay, too. */
    outcome<request> irecv_list(const in_list &parts, int from, int index) {
        return begun([&] { return fmpl_irecv_list(parts.data(), parts.size(), from, index, comm_.id()); }, FMPL_REQUEST_RECV, from, index);
    }
    outcome<request> irecv_list(const in_list &&, int, int) = delete;
    /** Begins the send that `comm::send_init` has prepared: fmpl_send_start. When its request is over it can be started again. */
    outcome<request> send_start(int to, int index) {
        return begun([&] { return fmpl_send_start(to, index, comm_.id()); }, FMPL_REQUEST_SEND, to, index);
    }
    /** Begins the receive that `comm::recv_init` has prepared: fmpl_recv_start. */
    outcome<request> recv_start(int from, int index) {
        return begun([&] { return fmpl_recv_start(from, index, comm_.id()); }, FMPL_REQUEST_RECV, from, index);
    }
    /** fmpl_mcast of a buffer that is not copied: it must stay as it is until all members have it, which `wait` (fmpl_mcast_wait) waits for. */
    template <class B> outcome<request> mcast(B &&buf, span<const int> members) {
        auto all = detail::lasting(std::forward<B>(buf));
        std::vector<std::uint64_t> group(1);
        const std::string why = comm_.bitmap("mcast", members, group);
        if (!why.empty()) return detail::refused<request>(FMPL_ERR_RANK, why);
        return ticketed([&](std::uint64_t *ticket) { return fmpl_mcast(all.data, all.bytes(), group.data(), comm_.id(), ticket); },
                        FMPL_REQUEST_MCAST);
    }
    /** Begins to receive the next multicast of which this rank is a member; one at a time: fmpl_mcast_irecv. */
    template <class B> outcome<request> mcast_irecv(B &&buf) {
        auto all = detail::room(std::forward<B>(buf));
        return begun([&] { return fmpl_mcast_irecv(all.data, all.bytes(), comm_.id()); }, FMPL_REQUEST_MCAST_RECV);
    }

    /* Collective calls. Of those without `_n` a communicator has one under way at a time, and none that waits meanwhile; of those with it as
     * many as FMPL_TICKETS, and any others besides. All ranks begin them in the same order. */

    /** fmpl_ibarrier. */
    outcome<request> ibarrier() { return barrier(false); }
    outcome<request> ibarrier_n() { return barrier(true); }
    /** fmpl_ibcast. */
    template <class B> outcome<request> ibcast(B &&buf, int root) { return bcast(false, std::forward<B>(buf), root); }
    template <class B> outcome<request> ibcast_n(B &&buf, int root) { return bcast(true, std::forward<B>(buf), root); }
    /** fmpl_ireduce: the root's buffer becomes the result. */
    template <class B, class Op> outcome<request> ireduce(B &&buf, const Op &op, int root) {
        return reduce(false, std::forward<B>(buf), op, root);
    }
    template <class B, class Op> outcome<request> ireduce_n(B &&buf, const Op &op, int root) {
        return reduce(true, std::forward<B>(buf), op, root);
    }
    /** fmpl_iallreduce. */
    template <class B, class Op> outcome<request> iallreduce(B &&buf, const Op &op) {
        return allreduce(false, std::forward<B>(buf), op);
    }
    template <class B, class Op> outcome<request> iallreduce_n(B &&buf, const Op &op) {
        return allreduce(true, std::forward<B>(buf), op);
    }
    /** fmpl_igather: `all` is looked at by the root only. */
    template <class M, class A> outcome<request> igather(M &&mine, A &&all, int root) {
        return gather(false, std::forward<M>(mine), std::forward<A>(all), root);
    }
    template <class M, class A> outcome<request> igather_n(M &&mine, A &&all, int root) {
        return gather(true, std::forward<M>(mine), std::forward<A>(all), root);
    }
    /** fmpl_iallgather. */
    template <class M, class A> outcome<request> iallgather(M &&mine, A &&all) {
        return allgather(false, std::forward<M>(mine), std::forward<A>(all));
    }
    template <class M, class A> outcome<request> iallgather_n(M &&mine, A &&all) {
        return allgather(true, std::forward<M>(mine), std::forward<A>(all));
    }
    /** fmpl_iscatter: `all` is looked at by the root only. */
    template <class A, class M> outcome<request> iscatter(A &&all, M &&mine, int root) {
        return scatter(false, std::forward<A>(all), std::forward<M>(mine), root);
    }
    template <class A, class M> outcome<request> iscatter_n(A &&all, M &&mine, int root) {
        return scatter(true, std::forward<A>(all), std::forward<M>(mine), root);
    }
    /** fmpl_ialltoall: each rank gets an equal share of `sent`. */
    template <class A, class B> outcome<request> ialltoall(A &&sent, B &&received) {
        return alltoall(false, std::forward<A>(sent), std::forward<B>(received));
    }
    template <class A, class B> outcome<request> ialltoall_n(A &&sent, B &&received) {
        return alltoall(true, std::forward<A>(sent), std::forward<B>(received));
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
    /** Waits until one is over, and completes all that are then: their positions, and what has come; none when all are over already. */
    outcome<std::vector<std::pair<std::size_t, arrival>>> wait_some() {
        using Some = std::vector<std::pair<std::size_t, arrival>>;
        std::vector<int> which(size_ + 1);
        int count = 0;
        const int code = fmpl_waitsome(all(), static_cast<int>(size_), &count, which.data(), nullptr);
        return detail::given(code, [&] {
            Some some;
            for (int k = 0; k < count; k++) {
                const auto at = static_cast<std::size_t>(which[static_cast<std::size_t>(k)]);
                some.emplace_back(at, arrived(at));
            }
            return some;
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
    /** The same by a call that gives a ticket. */
    template <class Call> outcome<request> ticketed(Call call, int kind) {
        std::uint64_t ticket = 0;
        auto made = begun([&] { return call(&ticket); }, kind);
        if (static_cast<bool>(ticket)) all()[size_ - 1].ticket = ticket;
        return made;
    }
    /** A collective call, with a ticket (`apart`) or without. */
    template <class Single, class Ticketed> outcome<request> collective(bool apart, int kind, Single single, Ticketed with) {
        return apart ? ticketed(with, kind) : begun(single, kind);
    }
    outcome<request> barrier(bool apart) {
        return collective(
            apart, FMPL_REQUEST_BARRIER, [&] { return fmpl_ibarrier(comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_ibarrier_n(comm_.id(), t); });
    }
    template <class B> outcome<request> bcast(bool apart, B &&buf, int root) {
        auto all = detail::room(std::forward<B>(buf));
        return collective(
            apart, FMPL_REQUEST_BCAST, [&] { return fmpl_ibcast(all.data, all.bytes(), root, comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_ibcast_n(all.data, all.bytes(), root, comm_.id(), t); });
    }
    template <class B, class Op> outcome<request> reduce(bool apart, B &&buf, const Op &op, int root) {
        return collective(
            apart, FMPL_REQUEST_REDUCE,
            [&] {
                return detail::reduce(buf, op, [&](void *at, int n, fmpl_func f) {
                    return fmpl_ireduce(at, n, f, root, comm_.id(), nullptr);
                });
            },
            [&](std::uint64_t *t) {
                return detail::reduce(buf, op, [&](void *at, int n, fmpl_func f) {
                    return fmpl_ireduce_n(at, n, f, root, comm_.id(), t);
                });
            });
    }
    template <class B, class Op> outcome<request> allreduce(bool apart, B &&buf, const Op &op) {
        return collective(
            apart, FMPL_REQUEST_ALLREDUCE,
            [&] {
                return detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) {
                    return fmpl_iallreduce(at, n, f, comm_.id(), nullptr);
                });
            },
            [&](std::uint64_t *t) {
                return detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) {
                    return fmpl_iallreduce_n(at, n, f, comm_.id(), t);
                });
            });
    }
    /** A collective call over a buffer of all ranks' parts that may be too short. */
    template <class Single, class Ticketed>
    outcome<request> parts(bool apart, int kind, const std::string &lack, Single single, Ticketed with) {
        if (!lack.empty()) return detail::refused<request>(FMPL_ERR_ARGUMENT, lack);
        return collective(apart, kind, single, with);
    }
    template <class M, class A> outcome<request> gather(bool apart, M &&mine, A &&every, int root) {
        auto from = detail::lasting(std::forward<M>(mine));
        auto to = detail::room(std::forward<A>(every));
        return parts(
            apart, FMPL_REQUEST_GATHER, comm_.at(root) ? comm_.lack("igather", to.bytes(), from.bytes()) : "",
            [&] { return fmpl_igather(from.data, from.bytes(), to.data, root, comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_igather_n(from.data, from.bytes(), to.data, root, comm_.id(), t); });
    }
    template <class M, class A> outcome<request> allgather(bool apart, M &&mine, A &&every) {
        auto from = detail::lasting(std::forward<M>(mine));
        auto to = detail::room(std::forward<A>(every));
        return parts(
            apart, FMPL_REQUEST_ALLGATHER, comm_.lack("iallgather", to.bytes(), from.bytes()),
            [&] { return fmpl_iallgather(from.data, from.bytes(), to.data, comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_iallgather_n(from.data, from.bytes(), to.data, comm_.id(), t); });
    }
    template <class A, class M> outcome<request> scatter(bool apart, A &&every, M &&mine, int root) {
        auto from = detail::lasting(std::forward<A>(every));
        auto to = detail::room(std::forward<M>(mine));
        return parts(
            apart, FMPL_REQUEST_SCATTER, comm_.at(root) ? comm_.lack("iscatter", from.bytes(), to.bytes()) : "",
            [&] { return fmpl_iscatter(from.data, to.bytes(), to.data, root, comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_iscatter_n(from.data, to.bytes(), to.data, root, comm_.id(), t); });
    }
    template <class A, class B> outcome<request> alltoall(bool apart, A &&sent, B &&received) {
        auto from = detail::lasting(std::forward<A>(sent));
        auto to = detail::room(std::forward<B>(received));
        int ranks = 1;
        (void)fmpl_comm_size(comm_.id(), &ranks); // of a communicator that there is not the call tells
        if (from.count % static_cast<std::size_t>(ranks) != 0)
            return detail::refused<request>(FMPL_ERR_ARGUMENT, "ialltoall: " + std::to_string(from.count) +
                                                                   " elements have no equal share for each of " +
                                                                   std::to_string(ranks) + " ranks");
        const std::size_t one = from.bytes() / static_cast<std::size_t>(ranks);
        return parts(
            apart, FMPL_REQUEST_ALLTOALL, comm_.lack("ialltoall", to.bytes(), one),
            [&] { return fmpl_ialltoall(from.data, one, to.data, comm_.id()); },
            [&](std::uint64_t *t) { return fmpl_ialltoall_n(from.data, one, to.data, comm_.id(), t); });
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
        else if (r.kind == FMPL_REQUEST_MCAST_RECV) code = fmpl_mcast_irecv_cancel(r.comm), withdrawn = code == FMPL_SUCCESS;
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
