// fmpl.hpp without exceptions: a program of its own, or (TWO_FILES) the second file of calls.cc.
#define FMPL_NO_EXCEPTIONS
#include <fmpl.hpp>

#include <cstdio>
#include <cstring>

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, fmpl_last_error());  \
            return __LINE__;                                                                                      \
        }                                                                                                         \
    } while (0)

int elsewhere(fmpl_comm comm, int rank, int size);

int elsewhere(fmpl_comm id, int rank, int size) {
    const fmpl::comm comm(id);
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    CHECK(comm.rank().value() == rank && *comm.size() == size);
    std::vector<int> in(3), out = {rank, 1, 2};
    {
        fmpl::scope s(comm);
        auto arriving = s.irecv(in, last, 0);
        CHECK(arriving && s.isend(out, next, 0));
        const auto came = arriving->wait();
        CHECK(came.has_value() && came.value().bytes == 12);
    }
    CHECK(in[0] == last);
    // An error is a value.
    const auto sent = comm.send(1, size, 0);
    CHECK(!sent && sent.code() == FMPL_ERR_RANK && std::strstr(sent.message(), "rank"));
    auto number = fmpl::comm(77).rank();
    CHECK(number.code() == FMPL_ERR_COMM && std::move(number).value_or(-1) == -1);
    CHECK(comm.barrier() && comm.barrier().code() == FMPL_SUCCESS && !*comm.barrier().message());
    double sum = 1;
    CHECK(comm.allreduce(sum, fmpl::sum{}) && sum == size);
    auto part = comm.split(0);
    CHECK(part && (*part)->size().value() == size && part->free());
    std::vector<int> none;
    CHECK(comm.allgather(1, none).code() == FMPL_ERR_ARGUMENT);
    auto loan = fmpl::take_loan<int>(4);
    CHECK(loan && (loan.value()[0] = 7) && comm.send_loan(std::move(*loan), next, 0));
    CHECK(comm.recv_loan<int>(last, 0).value()[0] == 7);
    auto all = fmpl::global::open();
    CHECK(all && all->starter<int>(size).code() != FMPL_SUCCESS && all->sync());
    return 0;
}

#ifndef TWO_FILES
int main() {
    auto job = fmpl::init(4);
    if (!job) {
        std::fprintf(stderr, "%s\n", job.message());
        return 1;
    }
    const auto world = job->world();
    if (const int line = elsewhere(world.id(), world.rank().value(), world.size().value())) fmpl_abort(line < 256 ? line : 255);
    return job->finalize() ? 0 : 1;
}
#endif
