// What fmpl.hpp has, with exceptions, on any number of ranks. `elsewhere` is in another file, which may be compiled without exceptions.
#include "check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#ifdef TWO_FILES
int elsewhere(fmpl_comm comm, int rank, int size);
#endif

namespace {
bool out_of_memory = false;
}
// Not inlined: g++ would warn of a `free` of what `new` has given.
__attribute__((noinline)) void *operator new(std::size_t bytes) {
    void *at = out_of_memory ? nullptr : std::malloc(bytes);
    if (!at) throw std::bad_alloc();
    return at;
}
__attribute__((noinline)) void operator delete(void *at) noexcept { std::free(at); }
__attribute__((noinline)) void operator delete(void *at, std::size_t) noexcept { std::free(at); }

namespace {

struct particle {
    double x, y;
    int kind;
};

void messages(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    std::vector<double> out(100, rank), in(100);
    world.sendrecv(out, next, 0, in, last, 0);
    CHECK(in == std::vector<double>(100, last) && world.received(last, 0).bytes == 800);
    // One object, an array, a part of a container, text: any buffer on the one side with any on the other.
    world.send(particle{1.5, 2.5, rank}, next, 0);
    const particle p = world.recv<particle>(last, 0);
    CHECK(p.x == 1.5 && p.kind == last);
    int square[2][3] = {{rank, 1, 2}, {3, 4, 5}};
    std::array<int, 6> flat{};
    world.send(square, next, 1);
    world.recv(flat, last, fmpl::any_index);
    CHECK(flat[0] == last && flat[5] == 5 && world.received(last, fmpl::any_index).index == 1);
    world.barrier(); // a receive of any index could take what comes now
    world.send(std::string("a word"), next, 0);
    char word[16] = "";
    CHECK(size > 1 || *world.probe(last, 0) == 6);
    world.recv(word, last, 0);
    CHECK(std::string(word) == "a word" && !world.probe(last, 0));
    world.barrier();
    world.send(fmpl::span<double>(out.data() + 10, 5), next, 0);
    world.recv(fmpl::span<double>(in.data(), 5), last, 0);
    CHECK(in[4] == last && in[0] == last);
    world.send(1, fmpl::nobody, 0);
    world.send(std::vector<int>(), next, 0);
    world.recv(flat, last, 0);
    CHECK(world.received(last, 0).bytes == 0);
}

void errors(fmpl::comm world, int rank, int size) {
    int x = 0;
    const std::string me = "rank " + std::to_string(rank);
    CHECK(fails([&] { world.send(1, size, 0); }, me.c_str()) == FMPL_ERR_RANK);
    CHECK(fails([&] { world.recv(x, 0, 1000000); }) == FMPL_ERR_INDEX);
    CHECK(fails([&] { fmpl::comm(77).rank(); }) == FMPL_ERR_COMM);
    // Too long a message, in one call and in a request; a wait that has failed is over.
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int k = 0; k < 2; k++) world.send(std::array<int, 4>{1, 2, 3, 4}, next, 0);
    CHECK(fails([&] { world.recv(x, last, 0); }) == FMPL_ERR_TRUNCATE && x == 1);
    fmpl::scope s(world);
    auto cut = s.irecv(x, last, 0);
    CHECK(fails([&] { cut.wait(); }) == FMPL_ERR_TRUNCATE && fails([&] { cut.wait(); }) == FMPL_SUCCESS);
    // What C cannot see: room for all ranks that is too small.
    std::vector<int> all(static_cast<std::size_t>(size) - 1);
    CHECK(fails([&] { world.allgather(x, all); }, "4") == FMPL_ERR_ARGUMENT);
}

void requests(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    std::vector<int> in(12, -1), out(12);
    std::iota(out.begin(), out.end(), 100 * rank);
    {
        // More than have room in the scope itself; its end waits for all of them.
        fmpl::scope s(world);
        for (int k = 0; k < 12; k++) s.irecv(in[static_cast<std::size_t>(k)], last, k);
        for (int k = 0; k < 12; k++) s.isend(out[static_cast<std::size_t>(k)], next, k);
    }
    CHECK(in[0] == 100 * last && in[11] == 100 * last + 11);
    {
        // Where memory runs out nothing has begun, and the scope goes on.
        fmpl::scope s(world);
        for (int k = 0; k < 8; k++) s.irecv(in[static_cast<std::size_t>(k)], last, k);
        bool ran_out = false;
        out_of_memory = true;
        try {
            s.irecv(in[8], last, 8);
        } catch (const std::bad_alloc &) {
            ran_out = true;
        }
        out_of_memory = false;
        int withdrawn = 0;
        CHECK(ran_out && fmpl_irecv_cancel(last, 8, world.id(), &withdrawn) == FMPL_ERR_REQUEST);
        for (int k = 0; k < 8; k++) s.isend(out[static_cast<std::size_t>(k) + 1], next, k);
    }
    CHECK(in[0] == 100 * last + 1 && in[7] == 100 * last + 8 && in[8] == 100 * last + 8);
    fmpl::scope s(world);
    auto a = s.irecv(in, last, 0);
    CHECK(!a.test());
    world.barrier();
    auto b = s.irecv(out, last, 1);
    CHECK(b.cancel() && b.position() == 1);
    const auto none = b.wait();
    CHECK(none.source == fmpl::nobody && none.index == 1 && none.bytes == 0 && b.test() && b.cancel());
    const int lost = 7;
    s.isend(lost, fmpl::nobody, 0);
    world.send(in, next, 0);
    const auto came = a.wait();
    CHECK(came.source == last && came.bytes == 48 && came.index == 0 && !a.cancel());
    // Whichever comes first.
    auto c = s.irecv(in, last, 2);
    s.irecv(out, last, 3);
    world.barrier();
    world.send(1, next, 3);
    std::vector<std::size_t> ended;
    while (auto one = s.wait_any()) {
        ended.push_back(one->first);
        if (one->first == c.position() + 1) world.send(2, next, 2);
    }
    std::sort(ended.begin(), ended.end());
    CHECK((ended == std::vector<std::size_t>{2, 3, 4}) && in[0] == 2 && out[0] == 1 && s.test_all());
}

/** A scope that is left by an exception gives its buffers back, and the program goes on. */
void left_by_an_exception(fmpl::comm world, int rank, int size) {
    bool caught = false;
    {
        int never = 5;
        try {
            fmpl::scope s(world);
            s.irecv(never, (rank + 1) % size, 9);
            throw std::runtime_error("on the way");
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "on the way";
        }
    }
    CHECK(caught);
    // An error that nobody has asked for comes out of the end of the scope.
    int small = 0;
    world.send(std::array<int, 2>{3, 4}, rank, 9);
    CHECK(fails([&] {
              fmpl::scope s(world);
              s.irecv(small, rank, 9);
          }) == FMPL_ERR_TRUNCATE);
    CHECK(small == 3);
}

void any_source(fmpl::comm world, int rank, int size) {
    long sum = 0;
    if (rank == 0) {
        for (int k = 1; k < size; k++) {
            long value = 0;
            const fmpl::arrival it = world.recv_any(value, 2);
            CHECK(value == 10L * it.source && it.bytes == sizeof value);
            sum += value;
        }
        CHECK(sum == 10L * size * (size - 1) / 2 && !world.probe_any(2));
    } else {
        fmpl::scope s(world);
        const long value = 10L * rank;
        s.isend_any(value, 0, 2).wait();
    }
    world.send_any(rank, (rank + 1) % size, 3);
    fmpl::scope s(world);
    int from = -1;
    const auto it = s.irecv_any(from, 3).wait();
    CHECK(it.source == from && from == (rank + size - 1) % size);
}

void tasks_and_multicasts(fmpl::comm world, int rank, int size) {
    std::vector<int> everybody(static_cast<std::size_t>(size));
    std::iota(everybody.begin(), everybody.end(), 0);
    const std::array<int, 3> parameters = {7, 8, 9};
    if (rank == 0) {
        for (int k = 1; k < size; k++) world.send_any(100 + k, k, 4);
        world.mcast(parameters, everybody);
    }
    int multicasts = 0;
    for (int k = 0; k < (rank == 0 ? 1 : 2); k++) {
        std::array<int, 3> got = {};
        const fmpl::arrival_or_mcast it = world.recv_any_or_mcast(got, 4);
        CHECK(it.source == 0 && it.bytes == (it.is_mcast ? sizeof parameters : sizeof(int)));
        CHECK(it.is_mcast ? got == parameters : got[0] == 100 + rank);
        multicasts += it.is_mcast;
    }
    CHECK(multicasts == 1);
    // The last rank to itself and the first one.
    const std::vector<int> ends = {0, size - 1};
    if (rank == size - 1) world.mcast(rank, ends);
    if (rank == 0 || rank == size - 1) {
        int from = -1;
        const fmpl::arrival it = world.mcast_recv(from);
        CHECK(it.source == size - 1 && it.bytes == sizeof from && from == size - 1);
    }
    CHECK(fails([&] { world.mcast(rank, std::vector<int>{size}); }, "mcast: rank") == FMPL_ERR_RANK);
    double sum = rank;
    world.mcast_reduce(sum, fmpl::sum{}, everybody, size - 1);
    CHECK(sum == (rank == size - 1 ? size * (size - 1) / 2.0 : rank));
    std::vector<int> given(2 * everybody.size(), rank), got(given.size(), -1);
    world.mcast_alltoall(given, got, everybody);
    for (std::size_t k = 0; k < got.size(); k++) CHECK(got[k] == static_cast<int>(k / 2));
    CHECK(fails([&] { world.mcast_alltoall(given, sum, everybody); }, "share") == FMPL_ERR_ARGUMENT || size == 1);
}

void reductions(fmpl::comm world, int rank, int size) {
    std::vector<double> x = {1.0 * rank, -2.0 * rank}, y = x;
    world.allreduce(x, fmpl::sum{});
    world.allreduce(y, std::plus<>());
    const double all = size * (size - 1) / 2.0;
    CHECK(x[0] == all && x[1] == -2 * all && x == y);
    // Not the library's own: other elements, a lambda, a structure.
    long product = rank + 1;
    world.allreduce(product, std::multiplies<>());
    CHECK(product == (size == 1 ? 1 : size == 2 ? 2 : size == 3 ? 6 : 24));
    std::array<unsigned char, 2> bits = {static_cast<unsigned char>(1 << rank), 0xff};
    world.allreduce(bits, [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a ^ b); });
    CHECK(bits[0] == (1 << size) - 1 && bits[1] == (size % 2 ? 0xff : 0));
    particle best{1.0 * ((rank + 1) % size), 0, rank};
    world.allreduce(best, [](const particle &a, const particle &b) { return a.x < b.x ? b : a; });
    CHECK(best.x == size - 1 && best.kind == (size == 1 ? 0 : size - 2));
    int far = rank % 2 ? -rank : rank;
    world.allreduce(far, fmpl::abs_maximum{});
    CHECK(far == ((size - 1) % 2 ? 1 - size : size - 1));
    float low = static_cast<float>(-rank);
    short least = static_cast<short>(-rank);
    world.reduce(low, fmpl::minimum{}, size - 1);
    world.allreduce(least, fmpl::minimum{});
    CHECK(low == static_cast<float>(rank == size - 1 ? 1 - size : -rank) && least == 1 - size);
    std::complex<double> z(rank, 1);
    world.scan(z, fmpl::sum{});
    CHECK(z == std::complex<double>(rank * (rank + 1) / 2.0, rank + 1));
    int before = rank;
    world.exscan(before, fmpl::sum{});
    CHECK(before == (rank == 0 ? 0 : rank * (rank - 1) / 2));
    std::vector<int> blocks(2 * static_cast<std::size_t>(size), rank);
    int mine[2];
    world.reduce_scatter(blocks, mine, fmpl::maximum{});
    CHECK(mine[0] == size - 1 && mine[1] == size - 1);
}

void collective(fmpl::comm world, int rank, int size) {
    const auto n = static_cast<std::size_t>(size), me = static_cast<std::size_t>(rank);
    std::string word = rank == 0 ? "from 0" : "      ";
    world.bcast(word, 0);
    CHECK(word == "from 0");
    std::vector<int> all(n), back(n), none;
    world.allgather(rank, all);
    CHECK(all[n - 1] == size - 1);
    world.gather(rank * 2, rank == 0 ? back : none, 0);
    CHECK(rank != 0 || back[n - 1] == 2 * (size - 1));
    int mine = -1;
    world.scatter(all, mine, 0);
    CHECK(mine == rank);
    world.alltoall(std::vector<int>(n, rank), back);
    CHECK(back == all);
    std::vector<int> uneven(n + 1);
    CHECK(size == 1 || fails([&] { world.alltoall(uneven, uneven); }, "equal share") == FMPL_ERR_ARGUMENT);
    // Of different lengths: rank k gives k + 1 of its numbers.
    std::vector<std::size_t> counts(n);
    std::iota(counts.begin(), counts.end(), 1u);
    std::vector<int> own(me + 1, rank), everything(n * (n + 1) / 2), part(me + 1);
    world.allgatherv(own, everything, counts);
    CHECK(everything.front() == 0 && everything.back() == size - 1);
    std::fill(everything.begin(), everything.end(), -1);
    world.gatherv(own, everything, counts, 0);
    CHECK(rank != 0 || everything.back() == size - 1);
    world.scatterv(everything, counts, part, 0);
    CHECK(part == own);
    const std::vector<std::size_t> ones(n, 1);
    world.alltoallv(all, ones, back, ones);
    CHECK(back == std::vector<int>(n, rank));
    CHECK(fails([&] { world.allgatherv(own, part, std::vector<std::size_t>(n + 1, 1)); }) == FMPL_ERR_ARGUMENT);

    fmpl::scope s(world);
    s.ibarrier().wait();
    s.ibcast(word, size - 1).wait();
    double norm = 1;
    auto reducing = s.iallreduce(norm, fmpl::sum{});
    reducing.wait();
    CHECK(norm == size);
}

void communicators(const fmpl::job &job, int rank, int size) {
    fmpl::comm world = job.world();
    fmpl::communicator half = world.split(rank % 2, -rank);
    half->set_name("a half");
    CHECK(half->name() == "a half" && world.name().empty());
    CHECK(half->size() == (size + 1 - rank % 2) / 2 && half->translate(half->rank(), world) == rank);
    fmpl::communicator twin = half->duplicate(), none = world.split(rank == 0 ? 0 : -1);
    CHECK(twin && twin->id() != half->id() && static_cast<bool>(none) == (rank == 0));
    fmpl::communicator keyed = job.create(3), node = world.split_node();
    CHECK(keyed->size() == size && node->size() >= 1);
    if (rank == 0 || rank == size - 1) {
        const std::vector<int> ends = size > 1 ? std::vector<int>{size - 1, 0} : std::vector<int>{0};
        const fmpl::communicator outer = world.group(ends);
        CHECK(outer->translate(outer->rank(), world) == rank && outer->rank() == (rank == 0 && size > 1));
    }
    int sum = 1;
    twin->allreduce(sum, fmpl::sum{});
    CHECK(sum == half->size());
    twin.free();
    half = std::move(keyed);
    CHECK(half->size() == size && !twin);
}

void memory(fmpl::comm world, int rank, int size) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    auto filled = fmpl::take_loan<double>(1000);
    for (auto &x : filled) x = rank;
    world.send_loan(std::move(filled), next, 0);
    CHECK(filled.data() == nullptr && filled.size() == 0);
    const auto got = world.recv_loan<double>(last, 0);
    CHECK(got.size() == 1000 && got[999] == last && got.source() == last);
    const fmpl::communicator node = world.split_node();
    auto window = node->share<int>(3);
    window.data()[2] = 100 + rank;
    node->barrier();
    for (int k = 0; k < node->size(); k++) {
        const fmpl::span<int> part = window.part(k);
        CHECK(part.size() == 3 && part[2] == 100 + node->translate(k, world));
    }
    node->barrier();
    window.free();
    auto back = fmpl::take_loan<int>(1);
    back[0] = rank;
    CHECK(fails([&] { world.send_loan(std::move(back), size, 0); }) == FMPL_ERR_RANK && back[0] == rank);
    world.send_loan_any(std::move(back), next, 1);
    const auto any = world.recv_loan_any<int>(1);
    CHECK(any.source() == last && any[0] == last);
    auto halo = fmpl::allocate<float>(64);
    CHECK(halo[63] == 0);
    world.sendrecv(std::vector<float>(64, 2.5f), next, 0, halo, last, 0);
    CHECK(halo[63] == 2.5f && fails([] { fmpl::allocate<double>(static_cast<std::size_t>(-1) / 4); }) == FMPL_ERR_MEMORY);
}

void global_memory() {
    using namespace fmpl;
    auto all = global::open();
    const int rank = all.rank(), size = all.size(), next = (rank + 1) % size;
    std::vector<uint64_t> table(16, static_cast<uint64_t>(rank)), result(4);
    auto shared = global::share(table);
    const global::registration<uint64_t> own = global::share(result);
    auto starter = all.starter<uint64_t>(rank);
    *starter.local() = shared.begin().address();
    all.sync();
    auto here = own.begin();
    global::copy(here, all.starter<uint64_t>(next), 1).wait();
    const global::pointer<uint64_t> there(result[0]);
    CHECK(there.rank() == next && (there + 1).address() == there.address() + 8);
    auto h = global::copy(here, there, 1);
    h = global::add<uint64_t>(here + 1, there, 5, h);
    h = global::compare_and_swap<uint64_t>(here + 2, there, static_cast<uint64_t>(next) + 5, 70, h);
    global::swap<uint64_t>(here + 3, there, 71, h);
    global::complete();
    const auto n = static_cast<uint64_t>(next);
    CHECK(result[0] == n && result[1] == n && result[2] == n + 5 && result[3] == 70 && h.done());
    all.sync();
    CHECK(table[0] == 71);
    auto narrow = here.as<uint32_t>();
    global::add<uint32_t>(narrow, narrow + 2, 1).wait();
    result[1] = 0b1100;
    global::bit_xor<uint64_t>(here, here + 1, 0b1010).wait();
    CHECK(result[0] == 0b1100 && result[1] == 0b0110);
    global::bit_or<uint64_t>(here, here + 1, 0b1000).wait();
    CHECK(result[0] == 0b0110 && result[1] == 0b1110);
    global::bit_and<uint64_t>(here, here + 1, 0b0011).wait();
    CHECK(result[0] == 0b1110 && result[1] == 0b0010);
    CHECK(fails([&] { global::copy(here, global::pointer<uint64_t>(), 1); }) != FMPL_SUCCESS);
    all.sync();
}

} // namespace

int main() {
    auto job = fmpl::init(12);
    fmpl::comm world = job.world();
    const int rank = world.rank(), size = world.size();
    messages(world, rank, size);
    errors(world, rank, size);
    requests(world, rank, size);
    left_by_an_exception(world, rank, size);
    any_source(world, rank, size);
    tasks_and_multicasts(world, rank, size);
    reductions(world, rank, size);
    collective(world, rank, size);
    communicators(job, rank, size);
    memory(world, rank, size);
    global_memory();
#ifdef TWO_FILES
    CHECK(elsewhere(world.id(), rank, size) == 0);
#endif
    const fmpl::communicator late = world.duplicate();
    job.finalize();
    CHECK(fails([&] { world.barrier(); }) == FMPL_ERR_INIT);
    if (rank == 0) std::printf("all of it on %d ranks\n", size);
}
