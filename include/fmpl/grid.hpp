/** @file Cartesian grids of ranks. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_GRID_HPP
#define FMPL_GRID_HPP

#include <fmpl/comm.hpp>

namespace fmpl {
FMPL_CPP_BEGIN

/** From whom to receive and to whom to send when all ranks of a grid send along a dimension; each may be nobody. */
struct neighbours {
    int from; /**< the rank to receive from */
    int to;   /**< the rank to send to */
};

/** A communicator whose ranks form a grid: all calls of `comm`, and those about neighbours. Made by `make_grid`, which has its owner. */
class grid : public comm {
public:
    /** `dimensions` are those that it was made with: their number. */
    grid(const comm &of, std::size_t dimensions) noexcept : comm(of), dimensions_(dimensions) {}
    /** How many dimensions it has. */
    std::size_t dimensions() const noexcept { return dimensions_; }
    /** The coordinates of a rank: fmpl_cart_coords. */
    outcome<std::vector<int>> coordinates(int rank) const {
        std::vector<int> all(dimensions_);
        const int code = fmpl_cart_coords(id(), rank, all.data());
        return detail::given(code, [&] { return all; });
    }
    /** The rank at these coordinates, or nobody beyond an edge; in a dimension that closes they go round: fmpl_cart_rank. */
    outcome<int> rank_at(span<const int> coordinates) const {
        int rank = nobody;
        if (coordinates.size() != dimensions_)
            return detail::refused<int>(FMPL_ERR_ARGUMENT, "rank_at: " + std::to_string(coordinates.size()) +
                                                               " coordinates on a grid of " + std::to_string(dimensions_) +
                                                               " dimensions");
        const int code = fmpl_cart_rank(id(), coordinates.data(), &rank);
        return detail::given(code, [&] { return rank; });
    }
    /** fmpl_cart_shift. */
    outcome<neighbours> shift(int dimension, int steps) const {
        neighbours two{nobody, nobody};
        const int code = fmpl_cart_shift(id(), dimension, steps, &two.from, &two.to);
        return detail::given(code, [&] { return two; });
    }
    /** Gives each neighbour the same, and gets one of each: of each dimension of the rank before this one, then of the one behind:
     *  fmpl_neighbour_allgather. */
    template <class M, class A> outcome<> neighbour_allgather(const M &mine, A &&all) const {
        auto from = detail::whole(mine);
        auto to = detail::room(std::forward<A>(all));
        if (to.bytes() / (2 * dimensions_) < from.bytes()) return too_short("neighbour_allgather", to.bytes(), from.bytes());
        return detail::done(fmpl_neighbour_allgather(from.data, from.bytes(), to.data, id()));
    }
    /** Gives each neighbour a share of `sent`, in the same order: fmpl_neighbour_alltoall. */
    template <class A, class B> outcome<> neighbour_alltoall(const A &sent, B &&received) const {
        auto from = detail::whole(sent);
        auto to = detail::room(std::forward<B>(received));
        const std::size_t one = from.bytes() / (2 * dimensions_);
        if (from.count % (2 * dimensions_) != 0 || to.bytes() < from.bytes())
            return too_short("neighbour_alltoall", to.bytes(), from.bytes());
        return detail::done(fmpl_neighbour_alltoall(from.data, one, to.data, id()));
    }

private:
    outcome<> too_short(const char *name, std::size_t has, std::size_t from) const {
        return detail::failed(FMPL_ERR_ARGUMENT, std::string(name) + ": " + std::to_string(from) + " bytes for " +
                                                     std::to_string(has) + ", with " + std::to_string(2 * dimensions_) +
                                                     " neighbours");
    }
    std::size_t dimensions_;
};

/** Makes a grid of the first ranks of a communicator, all of which call it; empty (false) at ranks without a place in it:
 *  fmpl_cart_create. Its end frees it. `closes`: for each dimension whether the last rank's neighbour is the first; empty: none. */
class owned_grid {
public:
    owned_grid(communicator of, std::size_t dimensions) noexcept : owner_(std::move(of)), calls_(*owner_, dimensions) {}
    explicit operator bool() const noexcept { return static_cast<bool>(owner_); }
    const grid &operator*() const noexcept { return calls_; }
    const grid *operator->() const noexcept { return &calls_; }
    /** Frees it now. */
    outcome<> free() { return owner_.free(); }

private:
    communicator owner_;
    grid calls_;
};

inline outcome<owned_grid> make_grid(const comm &of, span<const int> sizes, span<const int> closes = {}) {
    if (closes.size() != 0 && closes.size() != sizes.size())
        return detail::refused<owned_grid>(FMPL_ERR_ARGUMENT, "make_grid: " + std::to_string(sizes.size()) + " dimensions, of which " +
                                                                  std::to_string(closes.size()) + " are said to close or not");
    fmpl_comm made = FMPL_COMM_NULL;
    const int code = fmpl_cart_create(of.id(), static_cast<int>(sizes.size()), sizes.data(),
                                      closes.size() ? closes.data() : nullptr, &made);
    return detail::given(code, [&] { return owned_grid(communicator(made), sizes.size()); });
}

FMPL_CPP_END
} // namespace fmpl

#endif
