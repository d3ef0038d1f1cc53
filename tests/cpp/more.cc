// The calls of fmpl.hpp beyond those of calls.cc: sub-matrices and lists, prepared messages, multicasts and loans that are not waited for,
// collective calls that do not wait, grids, modes of sending, ranks from outside.
#include "check.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

std::vector<int> everybody(int size) {
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

void shapes(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    // The second and third column of a matrix of 4 rows and 5 columns, into the rows of another one, from the last on.
    std::vector<double> a(20), b(8, -1);
    std::iota(a.begin(), a.end(), 100.0 * rank);
    const fmpl::strided columns{a.data() + 1, 2, 4, 5};
    const fmpl::strided backwards{b.data() + 6, 2, 4, -2};
    for (int k = 0; k < 2; k++) {
        std::fill(b.begin(), b.end(), -1);
        fmpl::scope s(world);
        auto arriving = s.irecv_block(backwards, last, 0);
        if (k == 0) world.send_block(columns, next, 0);
        else s.isend_block(columns, next, 0);
        CHECK(arriving.wait().bytes == 8 * sizeof(double));
        CHECK(b[6] == 100.0 * last + 1 && b[7] == 100.0 * last + 2 && b[0] == 100.0 * last + 16 && b[1] == 100.0 * last + 17);
    }
    world.send_block(columns, next, 1);
    world.recv_block(fmpl::strided{b.data(), 8, 1, 8}, last, 1);
    CHECK(b[0] == 100.0 * last + 1 && b[7] == 100.0 * last + 17);
    // A number, a text and an array as one message, into other pieces.
    const std::string word = "four";
    const std::array<int, 2> two = {rank, rank + 1};
    const fmpl::out_list parts(rank, word, two);
    int number = -1;
    std::array<char, 4> text = {};
    std::vector<int> rest(2);
    const fmpl::in_list into(number, text, rest);
    CHECK(parts.size() == 3);
    const auto right = [&] { return number == last && std::string(text.data(), 4) == word && rest[0] == last && rest[1] == last + 1; };
    {
        fmpl::scope s(world);
        s.irecv_list(into, last, 2);
        s.isend_list(parts, next, 2);
    }
    CHECK(right());
    number = -1;
    fmpl::in_list longer;
    longer.add(number).add(text).add(rest);
    world.send_list(parts, next, 3);
    world.recv_list(longer, last, 3);
    CHECK(right());
}

void prepared(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    std::array<int, 3> in = {}, out = {};
    world.send_init(out, next, 4);
    world.recv_init(in, last, 4);
    for (int k = 0; k < 5; k++) {
        fmpl::scope s(world);
        auto arriving = s.recv_start(last, 4);
        out = {rank, k, 7};
        s.send_start(next, 4).wait();
        CHECK(arriving.wait().bytes == sizeof in && in[0] == last && in[1] == k);
    }
    fmpl::scope s(world);
    CHECK(fails([&] { s.send_start(next, 5); }) == FMPL_ERR_REQUEST);
}

void multicasts(const fmpl::job &job, fmpl::comm world, int rank, int size) {
    const std::vector<int> all = everybody(size);
    std::vector<int> big(10000, rank), got(10000, -1);
    {
        fmpl::scope s(world);
        auto arriving = s.mcast_irecv(got);
        CHECK(fails([&] { world.mcast_recv(got); }) == FMPL_ERR_BUSY);
        if (rank == 0) s.mcast(big, all);
        const auto it = arriving.wait();
        CHECK(it.source == 0 && it.bytes == got.size() * sizeof(int) && got.back() == 0);
        CHECK(fails([&] { s.mcast(big, std::vector<int>{size}); }, "mcast: rank") == FMPL_ERR_RANK);
        // One that is withdrawn: nothing has come.
        CHECK(s.mcast_irecv(got).cancel());
        auto looked_at = s.mcast_irecv(got);
        if (rank == size - 1) s.mcast(big, all);
        while (!looked_at.test()) job.progress();
        CHECK(got.back() == size - 1);
    }
    // A loan for all.
    if (rank == 0) {
        auto filled = fmpl::take_loan<long>(500);
        for (long &x : filled) x = 42;
        world.mcast_loan(std::move(filled), all, 5);
        CHECK(filled.data() == nullptr);
    }
    auto arriving = world.irecv_loan<long>(0, 5);
    const auto handed = arriving.wait();
    CHECK(handed.source() == 0 && handed.size() == 500 && handed[499] == 42);
}

void loans(const fmpl::job &job, fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    {
        auto arriving = world.irecv_loan<int>(last, 6);
        CHECK(!arriving.test());
        world.barrier();
        auto filled = fmpl::take_loan<int>(100);
        for (int &x : filled) x = rank;
        world.send_loan(std::move(filled), next, 6);
        std::optional<fmpl::loan<const int>> got;
        while (!(got = arriving.test())) job.progress();
        CHECK(got->size() == 100 && (*got)[99] == last && got->source() == last);
    }
    {
        // One that nobody waits for is waited for, and given back, at its end.
        auto forgotten = world.irecv_loan<int>(last, 6);
        world.send(rank, next, 6);
    }
    auto another = world.irecv_loan<int>(last, 6);
    world.send(rank + 10, next, 6);
    CHECK(another.wait()[0] == last + 10);
    // Of any source.
    auto any = world.irecv_loan_any<int>(7);
    world.send_any(rank + 20, next, 7);
    const auto from_any = any.wait();
    CHECK(from_any[0] == last + 20 && from_any.source() == last);
    world.recv_any_limit(1, 6);
    world.recv_any_limit(0, 6);
    CHECK(fails([&] { world.recv_any_limit(-1, 6); }) == FMPL_ERR_ARGUMENT);
}

void some(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    std::vector<int> in(3, -1);
    fmpl::scope s(world);
    for (int k = 0; k < 3; k++) s.irecv(in[static_cast<std::size_t>(k)], last, k);
    std::size_t ended = 0;
    for (int k = 2; k >= 0; k--) world.send(10 * rank + k, next, k);
    while (ended < 3) {
        const auto those = s.wait_some();
        CHECK(!those.empty());
        for (const auto &[at, it] : those) CHECK(it.index == static_cast<int>(at) && it.bytes == sizeof(int) && it.source == last);
        ended += those.size();
    }
    CHECK(ended == 3 && in[2] == 10 * last + 2 && s.wait_some().empty());
}

/** Collective calls that do not wait: one at a time, and all at once. */
void collective(fmpl::comm world, int rank, int size) {
    const auto n = static_cast<std::size_t>(size);
    for (const bool at_once : {false, true}) {
        std::string word = rank == 0 ? "from 0" : "      ";
        double sum = rank, most = rank;
        std::vector<int> gathered(n), all(n), numbers = everybody(size), given(n, rank), got(n);
        const int mine = 10 + rank;
        int part = -1;
        fmpl::scope s(world);
        const auto done = [&](fmpl::request one) {
            if (!at_once) one.wait();
        };
        done(at_once ? s.ibarrier_n() : s.ibarrier());
        done(at_once ? s.ibcast_n(word, 0) : s.ibcast(word, 0));
        done(at_once ? s.ireduce_n(sum, fmpl::sum{}, size - 1) : s.ireduce(sum, fmpl::sum{}, size - 1));
        done(at_once ? s.iallreduce_n(most, fmpl::maximum{}) : s.iallreduce(most, fmpl::maximum{}));
        done(at_once ? s.igather_n(mine, gathered, 0) : s.igather(mine, gathered, 0));
        done(at_once ? s.iallgather_n(mine, all) : s.iallgather(mine, all));
        done(at_once ? s.iscatter_n(numbers, part, 0) : s.iscatter(numbers, part, 0));
        done(at_once ? s.ialltoall_n(given, got) : s.ialltoall(given, got));
        int blocking = 1;
        if (at_once) world.allreduce(blocking, fmpl::sum{}); // any others besides
        s.wait_all();
        CHECK(word == "from 0" && most == size - 1 && part == rank && got == numbers && all.back() == 9 + size);
        CHECK(rank != size - 1 || sum == size * (size - 1) / 2.0);
        CHECK(rank != 0 || gathered.back() == 9 + size);
        CHECK(!at_once || blocking == size);
        std::vector<int> none;
        CHECK(fails([&] { s.iallgather(mine, none); }, "each of") == FMPL_ERR_ARGUMENT);
        CHECK(size == 1 || fails([&] { s.ialltoall(mine, none); }, "equal share") == FMPL_ERR_ARGUMENT);
    }
}

void grids(fmpl::comm world, int rank, int size) {
    const auto ring = fmpl::make_grid(world, std::vector<int>{size}, std::vector<int>{1});
    const fmpl::neighbours both = ring->shift(0, 1);
    CHECK(ring && both.from == (rank + size - 1) % size && both.to == (rank + 1) % size && ring->dimensions() == 1);
    std::vector<int> around(2, -1);
    ring->neighbour_allgather(rank, around);
    CHECK(around[0] == both.from && around[1] == both.to);
    ring->neighbour_alltoall(std::vector<int>{10 * rank, 10 * rank + 1}, around);
    CHECK(around[0] == 10 * both.from + 1 && around[1] == 10 * both.to);
    CHECK(fails([&] { ring->neighbour_allgather(around, around); }, "neighbours") == FMPL_ERR_ARGUMENT);
    CHECK(fails([&] { ring->rank_at(around); }, "dimensions") == FMPL_ERR_ARGUMENT);
}

void rows_and_columns(fmpl::comm world, int rank, int size) {
    if (size < 2) return;
    auto rows = fmpl::make_grid(world, std::vector<int>{2, size / 2});
    CHECK(static_cast<bool>(rows) == (rank < size / 2 * 2));
    if (!rows) return;
    const std::vector<int> here = rows->coordinates(rank);
    CHECK(here[0] == rank / (size / 2) && here[1] == rank % (size / 2) && rows->rank_at(here) == rank);
    CHECK(rows->rank_at(std::vector<int>{-1, 0}) == fmpl::nobody);
    const fmpl::neighbours below = rows->shift(0, 1);
    CHECK(below.to == (here[0] == 0 ? rank + size / 2 : fmpl::nobody));
    rows.free();
}

void life(const fmpl::job &job, fmpl::comm world, int rank, int size) {
    CHECK(fmpl::initialized() && fmpl::version() == FMPL_VERSION);
    const double since = fmpl::wtime();
    job.progress();
    CHECK(fmpl::wtime() >= since && job.event_fd() >= 0);
    CHECK(fails([] { fmpl::counter(-1); }) == FMPL_ERR_ARGUMENT);
    const std::size_t before = fmpl::counter(FMPL_COUNTER_RECEIVED);
    world.send(1, rank, 7);
    CHECK(world.recv<int>(rank, 7) == 1 && fmpl::counter(FMPL_COUNTER_RECEIVED) == before + 1);
    // Buffered: the message is copied, and waits for its receive.
    const fmpl::communicator own = world.duplicate();
    own->set_send_buffer(1 << 16, fmpl::buffered);
    own->send(2, (rank + 1) % size, 0);
    own->barrier();
    CHECK(own->recv<int>((rank + size - 1) % size, 0) == 2);
    own->set_send_buffer(0, fmpl::synchronous);
    job.set_send_buffer(1 << 20, 10);
    const fmpl::spooled it = job.sendbuf_check();
    CHECK(it.delivered >= 0 && it.waiting == 0);
}

void numbered_anew() {
    auto all = fmpl::global::open();
    const int rank = all.rank(), size = all.size();
    if (size > 1) CHECK(fails([&] { all.reset(0); }) == FMPL_ERR_ARGUMENT);
    all.reset((rank + 1) % size);
    CHECK(all.rank() == (rank + 1) % size);
    const auto starter = all.starter<std::uint64_t>(all.rank());
    CHECK(starter.colour() >= 0 && starter.colour() < fmpl::global::colours() && starter.rank() == all.rank());
    all.sync();
}

/** A job of two processes of the program's own: by an identifier, or by an exchange over a pipe. */
int outside(bool by_id) {
    int there[2], back[2];
    if (pipe(there) || pipe(back)) return 1;
    const auto put = [](int fd, const void *at, std::size_t n) { return write(fd, at, n) == static_cast<ssize_t>(n); };
    const auto get = [](int fd, void *at, std::size_t n) { return read(fd, at, n) == static_cast<ssize_t>(n); };
    const int rank = fork() == 0;
    const int out = rank ? back[1] : there[1], in = rank ? there[0] : back[0];
    const auto joined = [&] {
        if (by_id) {
            fmpl_id id = {};
            if (rank == 0) {
                id = fmpl::id_create();
                CHECK(put(out, &id, sizeof id));
            } else {
                CHECK(get(in, &id, sizeof id));
            }
            return fmpl::init_id(id, rank, 2, 2);
        }
        const auto exchange = [&](fmpl::span<const unsigned char> mine, fmpl::span<unsigned char> all) {
            const std::size_t n = mine.size(), own = static_cast<std::size_t>(rank) * n;
            std::memcpy(all.data() + own, mine.data(), n);
            return put(out, mine.data(), n) && get(in, all.data() + (n - own), n);
        };
        return fmpl::init_with(rank, 2, exchange, 2);
    };
    auto job = joined();
    int sum = rank + 1;
    job.world().allreduce(sum, fmpl::sum{});
    CHECK(sum == 3 && job.world().size() == 2);
    job.finalize();
    if (rank == 0) std::printf("joined %s\n", by_id ? "by an identifier" : "by an exchange");
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    CHECK(!fmpl::initialized());
    if (argc > 1 && std::string(argv[1]) != "abort") return outside(std::string(argv[1]) == "id");
    auto job = fmpl::init(12);
    const fmpl::comm world = job.world();
    const int rank = world.rank(), size = world.size();
    if (argc > 1) {
        if (rank == 0) fmpl::abort(43);
        int never = 0;
        fails([&] { world.recv(never, 0, 0); });
        fmpl::global::abort("not reached");
    }
    shapes(world, rank, size);
    prepared(world, rank, size);
    multicasts(job, world, rank, size);
    loans(job, world, rank, size);
    some(world, rank, size);
    collective(world, rank, size);
    grids(world, rank, size);
    rows_and_columns(world, rank, size);
    life(job, world, rank, size);
    numbered_anew();
    if (rank == 0) std::printf("more of it on %d ranks\n", size);
}
