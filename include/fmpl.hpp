/**
 * @file fmpl.hpp
 *
 * FMPL for C++17 and later: what fmpl.h has, over buffers that know their type and length, with ends that cannot be forgotten. Header
 * only; it calls the C interface and nothing else, which may be used beside it (`comm::id` is the communicator there).
 *
 *     auto job = fmpl::init(2);                      // indices 0 and 1 with every peer; the end of `job` finalizes
 *     fmpl::comm world = job.world();
 *     world.send(row, right, 0);                     // a container, an array, a span, or one object; trivially copyable elements
 *     {
 *         fmpl::scope s(world);                      // its end waits: declare it behind the buffers
 *         auto arriving = s.irecv(halo, left, 1);
 *         s.isend(border, right, 1);
 *         compute();
 *         arriving.wait();
 *     }
 *     world.allreduce(norm, fmpl::maximum{});
 *
 * Errors. A call that fails throws `fmpl::error`, which has the number (FMPL_ERR_*) and the library's own words: rank, peer, index, cause.
 * Where exceptions are off (-fno-exceptions), or FMPL_NO_EXCEPTIONS is defined, nothing is thrown, and each call returns an
 * `fmpl::result`: a value, or an error. `outcome<T>` below is T in the one case and result<T> in the other.
 *
 * What must hold of threads, order and memory is what fmpl.h says.
 */
#ifndef FMPL_HPP
#define FMPL_HPP

#include <fmpl/global.hpp>
#include <fmpl/scope.hpp>

namespace fmpl {
FMPL_CPP_BEGIN

/**
 * This process in its job, from `init` on. Its end leaves the job (fmpl_finalize), and waits for the other ranks to do so; a failure then
 * makes the process end with 1, as in C. Left by an exception it does not wait: others may wait for what will never be sent.
 */
class job {
public:
    job(job &&other) noexcept : here_(std::exchange(other.here_, false)), exceptions_(other.exceptions_) {}
    job &operator=(job &&) = delete;
    ~job() {
        if (here_ && detail::exceptions() == exceptions_) fmpl_finalize();
    }
    /** All ranks. */
    comm world() const noexcept { return comm(FMPL_COMM_WORLD); }
    /** fmpl_comm_create: all ranks of the world call it, equal keys form one. */
    outcome<communicator> create(int key) const {
        fmpl_comm made = FMPL_COMM_NULL;
        const int code = fmpl_comm_create(&made, key);
        return detail::given(code, [&] { return communicator(made); });
    }
    /** Leaves the job now. */
    outcome<> finalize() {
        here_ = false;
        return detail::done(fmpl_finalize());
    }

private:
    friend outcome<job> init(int);
    job() noexcept : here_(true), exceptions_(detail::exceptions()) {}
    bool here_;
    int exceptions_;
};

/** Joins the job, with the indices 0 to `indices` - 1 for each peer: fmpl_init. */
inline outcome<job> init(int indices) {
    const int code = fmpl_init(nullptr, nullptr, indices);
    return detail::given(code, [] { return job(); });
}

FMPL_CPP_END
} // namespace fmpl

#endif /* FMPL_HPP */
