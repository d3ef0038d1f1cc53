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
#include <fmpl/grid.hpp>
#include <fmpl/scope.hpp>

#include <cstdlib>

namespace fmpl {
FMPL_CPP_BEGIN

/** A mode of sending: messages are copied at once. */
inline constexpr int buffered = 0;
/** A mode of sending: a send waits for its receive. */
inline constexpr int synchronous = FMPL_TIMEOUT_INFINITE;

/** What has become of the messages in the spool. */
struct spooled {
    int delivered; /**< since the last look */
    int waiting;   /**< those that are still there */
};

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
    /** The spool's size in bytes and the mode of sending, of all communicators that have none of their own: `buffered`, `synchronous`, or
     *  else (standard) how many milliseconds a send waits for its receive before the message is copied: fmpl_sendbuf_set. */
    outcome<> set_send_buffer(std::size_t bytes, int timeout_ms) const {
        return detail::done(fmpl_sendbuf_set(nullptr, bytes, timeout_ms));
    }
    /** Moves on what waits in the spool; no thread sends meanwhile: fmpl_sendbuf_check. */
    outcome<spooled> sendbuf_check() const {
        spooled it{0, 0};
        const int code = fmpl_sendbuf_check(&it.delivered, &it.waiting);
        return detail::given(code, [&] { return it; });
    }
    /** Moves on what this process has to do for others: fmpl_progress. */
    outcome<> progress() const { return detail::done(fmpl_progress()); }
    /** A descriptor that becomes readable when a request completes that was begun after this call: fmpl_event_fd. */
    outcome<int> event_fd() const {
        int fd = -1;
        const int code = fmpl_event_fd(&fd);
        return detail::given(code, [&] { return fd; });
    }
    /** Leaves the job now. */
    outcome<> finalize() {
        here_ = false;
        return detail::done(fmpl_finalize());
    }

private:
    friend outcome<job> init(int);
    friend outcome<job> init_id(const fmpl_id &, int, int, int);
    template <class Exchange> friend outcome<job> init_with(int, int, Exchange &&, int);
    job() noexcept : here_(true), exceptions_(detail::exceptions()) {}
    bool here_;
    int exceptions_;
};

/** Joins the job, with the indices 0 to `indices` - 1 for each peer: fmpl_init. */
inline outcome<job> init(int indices) {
    const int code = fmpl_init(nullptr, nullptr, indices);
    return detail::given(code, [] { return job(); });
}

/** An identifier of a job, which one of its ranks makes and the program passes round: fmpl_id_create. */
inline outcome<fmpl_id> id_create() {
    fmpl_id id = {};
    const int code = fmpl_id_create(&id);
    return detail::given(code, [&] { return id; });
}
/** Joins the job of an identifier, as this rank of so many: fmpl_init_id. */
inline outcome<job> init_id(const fmpl_id &id, int rank, int size, int indices) {
    const int code = fmpl_init_id(&id, rank, size, indices);
    return detail::given(code, [] { return job(); });
}
/** Joins a job with ranks of the program's own and an allgather of its own: `exchange(mine, all)` over bytes (span<const unsigned char>,
 *  span<unsigned char>) returns whether all went well: fmpl_init_with. It throws nothing. */
template <class Exchange> outcome<job> init_with(int rank, int size, Exchange &&exchange, int indices) {
    struct both {
        Exchange &call;
        std::size_t ranks;
    } state{exchange, static_cast<std::size_t>(size > 0 ? size : 0)};
    const auto call = [](void *state, const void *mine, void *all, std::size_t n) noexcept -> int {
        const both &it = *static_cast<both *>(state);
        return it.call(span<const unsigned char>(static_cast<const unsigned char *>(mine), n),
                       span<unsigned char>(static_cast<unsigned char *>(all), n * it.ranks))
                   ? 0
                   : 1;
    };
    const int code = fmpl_init_with(rank, size, call, &state, indices);
    return detail::given(code, [] { return job(); });
}

/** Is this process in a job? fmpl_initialized. */
inline bool initialized() noexcept {
    int flag = 0;
    fmpl_initialized(&flag);
    return flag != 0;
}
/** Ends the job, all its ranks, with this code: fmpl_abort. */
[[noreturn]] inline void abort(int code) {
    fmpl_abort(code);
    std::abort(); // not reached
}
/** Seconds of the node's monotonic clock: fmpl_wtime. */
inline double wtime() noexcept { return fmpl_wtime(); }
/** The version of the library that runs, to be compared with FMPL_VERSION. */
inline int version() noexcept { return fmpl_version(); }
/** One of this process's counters, FMPL_COUNTER_*: fmpl_counter. */
inline outcome<std::size_t> counter(int which) {
    std::size_t value = 0;
    const int code = fmpl_counter(which, &value);
    return detail::given(code, [&] { return value; });
}

FMPL_CPP_END
} // namespace fmpl

#endif /* FMPL_HPP */
