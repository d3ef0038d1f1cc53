// A function of a reduction that is not left by its return: the process ends with a message that names rank and function, from whatever
// call the exception would have come out. Prints "survived" where it should have ended.
//
//     throws blocking     an exception out of fmpl_allreduce, with a handler around it
//     throws unhandled    the same without a handler
//     throws pending      out of the receive of another thread, which moves on what fmpl_iallreduce has begun
//     throws thread       the end of the thread (pthread_exit)
#include <fmpl.h>

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

static bool is_guilty, ends_thread;

extern "C" void throws_a_runtime_error(void *inout, const void *in, int count) {
    if (is_guilty && ends_thread) pthread_exit(nullptr);
    if (is_guilty) throw std::runtime_error("from the function");
    for (int k = 0; k < count; k++) static_cast<double *>(inout)[k] += static_cast<const double *>(in)[k];
}

static void ok(int code) {
    if (code == FMPL_SUCCESS) return;
    std::fprintf(stderr, "code %d: %s\n", code, fmpl_last_error());
    std::exit(1);
}

static double x[1000];

static void reduce() { ok(fmpl_allreduce(x, 1000, throws_a_runtime_error, FMPL_COMM_WORLD, nullptr)); }

static void receive() {
    char byte;
    ok(fmpl_recv(&byte, 1, 1, 0, FMPL_COMM_WORLD));
}

int main(int, char **argv) {
    const std::string how = argv[1];
    int rank, size;
    ok(fmpl_init(nullptr, nullptr, 4));
    ok(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    ok(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    ok(fmpl_func_register(throws_a_runtime_error, sizeof(double), 1));
    is_guilty = rank == 0;
    ends_thread = how == "thread";
    if (rank != 0) {
        // Rank 0 has a vector to combine with its own; what then comes is the news of its end.
        int code = fmpl_allreduce(x, 1000, throws_a_runtime_error, FMPL_COMM_WORLD, nullptr);
        if (code == FMPL_SUCCESS) code = fmpl_barrier(FMPL_COMM_WORLD);
        std::printf("rank %d: code %d: %s\n", rank, code, fmpl_last_error());
        return code == FMPL_ERR_PEER ? 0 : 1;
    }
    if (how == "unhandled") {
        reduce();
    } else if (how == "pending") {
        ok(fmpl_iallreduce(x, 1000, throws_a_runtime_error, FMPL_COMM_WORLD, nullptr));
        std::thread other(receive);
        other.join();
    } else if (ends_thread) {
        std::thread other(reduce);
        other.join();
    } else {
        try {
            reduce();
        } catch (const std::exception &e) {
            std::printf("caught: %s\n", e.what());
        }
    }
    std::printf("survived\n");
    return 0;
}
