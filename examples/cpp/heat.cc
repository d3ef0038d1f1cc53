// Heat in a rod whose ends are kept at 0 and 100 degrees, by Jacobi's method: each rank has a part of the rod and a copy of its neighbours'
// border points. The scope posts the receives first, computes what needs no border meanwhile, and cannot be left before the borders are
// there. All ranks agree on the largest change; when it is small the temperature must be a straight line.
//
//     c++ -std=c++17 -O2 heat.cc -o heat $(pkg-config --cflags --libs fmpl)
//     fmpl run -n 4 ./heat
#include <fmpl.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    constexpr int points = 60, leftwards = 0, rightwards = 1;
    constexpr double tolerance = 1e-9;
    auto job = fmpl::init(2);
    const fmpl::comm world = job.world();
    const int rank = world.rank(), size = world.size();
    const int left = rank > 0 ? rank - 1 : fmpl::nobody, right = rank < size - 1 ? rank + 1 : fmpl::nobody;

    // Mine are the points `first` to `first + n - 1`; in the vector they are 1 to n, between the two borders.
    const int first = points * rank / size, n = points * (rank + 1) / size - first;
    std::vector<double> now(static_cast<std::size_t>(n) + 2), next(now.size());
    if (right == fmpl::nobody) now.back() = next.back() = 100;

    const auto relax = [&](std::size_t from, std::size_t to) {
        double change = 0;
        for (std::size_t i = from; i < to; i++) {
            next[i] = 0.5 * (now[i - 1] + now[i + 1]);
            change = std::fmax(change, std::fabs(next[i] - now[i]));
        }
        return change;
    };

    const auto end = static_cast<std::size_t>(n) + 1;
    int steps = 0;
    for (double change = 1; change > tolerance; steps++) {
        {
            fmpl::scope s(world);
            s.irecv(now.front(), left, rightwards);
            s.irecv(now.back(), right, leftwards);
            s.isend(now[1], left, leftwards);
            s.isend(now[end - 1], right, rightwards);
            change = relax(2, end - 1);
        }
        change = std::fmax(change, std::fmax(relax(1, 2), relax(end - 1, end)));
        world.allreduce(change, fmpl::maximum{});
        now.swap(next);
    }

    double worst = 0;
    for (int k = 0; k < n; k++) {
        const double line = 100.0 * (first + k + 1) / (points + 1);
        worst = std::fmax(worst, std::fabs(now[static_cast<std::size_t>(k) + 1] - line));
    }
    world.allreduce(worst, fmpl::maximum{});
    if (worst > 1e-4) {
        std::fprintf(stderr, "rank %d: off by %g degrees\n", rank, worst);
        return 1;
    }
    if (rank == 0) std::printf("%d points on %d ranks: a straight line after %d steps\n", points, size, steps);
}
