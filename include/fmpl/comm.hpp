/** @file Communicators and their calls. A part of fmpl.hpp, which is what to include. */
#ifndef FMPL_COMM_HPP
#define FMPL_COMM_HPP

#include <fmpl/memory.hpp>
#include <fmpl/reductions.hpp>

namespace fmpl {
FMPL_CPP_BEGIN

/** The calls of a communicator. It is a number: copy it freely; whose it is says `communicator`. */
class comm {
public:
    constexpr explicit comm(fmpl_comm id = FMPL_COMM_WORLD) noexcept : id_(id) {}
    /** Its number in the C interface. */
    constexpr fmpl_comm id() const noexcept { return id_; }

    /** This process's rank in it. */
    outcome<int> rank() const { return number(fmpl_comm_rank); }
    /** The number of its ranks. */
    outcome<int> size() const { return number(fmpl_comm_size); }

    /** fmpl_send. */
    template <class B> outcome<> send(const B &buf, int to, int index) const {
        auto all = detail::whole(buf);
        return detail::done(fmpl_send(all.data, all.bytes(), to, index, id_));
    }
    /** fmpl_recv. A shorter message is fine: `received` tells its length. */
    template <class B> outcome<> recv(B &&buf, int from, int index) const {
        auto all = detail::room(std::forward<B>(buf));
        return detail::done(fmpl_recv(all.data, all.bytes(), from, index, id_));
    }
    /** Receives one object. */
    template <class T> outcome<T> recv(int from, int index) const {
        static_assert(std::is_trivially_copyable_v<T>, "fmpl: only what is trivially copyable can be received");
        T value{};
        const int code = fmpl_recv(&value, sizeof value, from, index, id_);
        return detail::given(code, [&] { return value; });
    }
    /** fmpl_sendrecv. */
    template <class B, class R> outcome<> sendrecv(const B &buf, int to, int index, R &&into, int from, int from_index) const {
        auto all = detail::whole(buf);
        auto space = detail::room(std::forward<R>(into));
        return detail::done(fmpl_sendrecv(all.data, all.bytes(), to, index, space.data, space.bytes(), from, from_index, id_));
    }
    /** Of the last receive from there that was completed: fmpl_received. */
    outcome<arrival> received(int from, int index) const {
        arrival it{from, index, 0};
        const int code = fmpl_received(from, index, id_, &it.bytes, &it.index);
        return detail::given(code, [&] { return it; });
    }
    /** The length of the message that a receive would find now, if there is one: fmpl_probe. */
    outcome<std::optional<std::size_t>> probe(int from, int index) const {
        int there = 0;
        std::size_t bytes = 0;
        const int code = fmpl_probe(from, index, id_, &there, &bytes);
        return detail::given(code, [&] { return there ? std::optional<std::size_t>(bytes) : std::nullopt; });
    }

    /** fmpl_send_block: a sub-matrix, without packing it before. */
    template <class T> outcome<> send_block(strided<T> from, int to, int index) const {
        return detail::done(fmpl_send_block(from.first, from.bytes(), to, index, id_));
    }
    /** fmpl_recv_block. */
    template <class T> outcome<> recv_block(strided<T> into, int from, int index) const {
        static_assert(!std::is_const_v<T>, "fmpl: a constant buffer cannot be received into");
        return detail::done(fmpl_recv_block(into.first, into.bytes(), from, index, id_));
    }
    /** fmpl_send_list: several buffers as one message. */
    outcome<> send_list(const out_list &parts, int to, int index) const {
        return detail::done(fmpl_send_list(parts.data(), parts.size(), to, index, id_));
    }
    /** fmpl_recv_list. */
    outcome<> recv_list(const in_list &parts, int from, int index) const {
        return detail::done(fmpl_recv_list(parts.data(), parts.size(), from, index, id_));
    }
    /** Prepares a send that is made often, from this buffer, which must stay: fmpl_send_init. `scope::send_start` begins it. */
    template <class B> outcome<> send_init(B &&buf, int to, int index) const {
        auto all = detail::lasting(std::forward<B>(buf));
        return detail::done(fmpl_send_init(all.data, all.bytes(), to, index, id_));
    }
    /** The same of a receive: fmpl_recv_init. `scope::recv_start` begins it. */
    template <class B> outcome<> recv_init(B &&buf, int from, int index) const {
        auto all = detail::room(std::forward<B>(buf));
        return detail::done(fmpl_recv_init(all.data, all.bytes(), from, index, id_));
    }

    /** The spool's size in bytes and the mode of sending of this communicator; see job::set_send_buffer: fmpl_comm_sendbuf_set. */
    outcome<> set_send_buffer(std::size_t bytes, int timeout_ms) const {
        return detail::done(fmpl_comm_sendbuf_set(id_, nullptr, bytes, timeout_ms));
    }

    /** fmpl_send_any: to whoever receives from any source there. */
    template <class B> outcome<> send_any(const B &buf, int to, int index) const {
        auto all = detail::whole(buf);
        return detail::done(fmpl_send_any(all.data, all.bytes(), to, index, id_));
    }
    /** fmpl_recv_any_from: the next message on the index, whoever sends it. */
    template <class B> outcome<arrival> recv_any(B &&buf, int index) const {
        auto all = detail::room(std::forward<B>(buf));
        arrival it{nobody, index, 0};
        const int code = fmpl_recv_any_from(all.data, all.bytes(), index, id_, &it.source, &it.bytes);
        return detail::given(code, [&] { return it; });
    }
    /** The next message on the index, whoever sends it, or the next multicast of which this rank is a member, whose source is its master:
     *  fmpl_recv_any_or_mcast. */
    template <class B> outcome<arrival_or_mcast> recv_any_or_mcast(B &&buf, int index) const {
        auto all = detail::room(std::forward<B>(buf));
        arrival_or_mcast it{{nobody, index, 0}, false};
        int is_mcast = 0;
        const int code = fmpl_recv_any_or_mcast(all.data, all.bytes(), index, id_, &it.source, &it.bytes, &is_mcast);
        it.is_mcast = is_mcast != 0;
        return detail::given(code, [&] { return it; });
    }
    /** fmpl_mcast: to a group chosen for this one message, whose members receive it by mcast_recv or recv_any_or_mcast. It is copied. */
    template <class B> outcome<> mcast(const B &buf, span<const int> members) const {
        auto all = detail::whole(buf);
        return to_group("mcast", members,
                        [&](const std::uint64_t *group) { return fmpl_mcast(all.data, all.bytes(), group, id_, nullptr); });
    }
    /** fmpl_mcast_recv: the next multicast of which this rank is a member; its source is its master, its index has no meaning. */
    template <class B> outcome<arrival> mcast_recv(B &&buf) const {
        auto all = detail::room(std::forward<B>(buf));
        arrival it{nobody, 0, 0};
        const int code = fmpl_mcast_recv(all.data, all.bytes(), id_, &it.bytes, &it.source);
        return detail::given(code, [&] { return it; });
    }
    /** Limits how many messages to an index of this rank may be sent and not yet received; 0: as many as there is room for:
     *  fmpl_recv_any_limit. */
    outcome<> recv_any_limit(int most, int index) const { return detail::done(fmpl_recv_any_limit(most, index, id_)); }
    /** What recv_any would find now, if there is something: fmpl_probe_any. */
    outcome<std::optional<arrival>> probe_any(int index) const {
        int there = 0;
        arrival it{nobody, index, 0};
        const int code = fmpl_probe_any(index, id_, &there, &it.source, &it.bytes);
        return detail::given(code, [&] { return there ? std::optional<arrival>(it) : std::nullopt; });
    }

    /** `n` elements for this rank and as many as they like for the others, side by side; their values are not defined: fmpl_shared_alloc. */
    template <class T> outcome<shared_window<T>> share(std::size_t n) const {
        void *mine = nullptr;
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) n = static_cast<std::size_t>(-1) / sizeof(T); // refused by the library
        const int code = fmpl_shared_alloc(n * sizeof(T), id_, &mine);
        return detail::given(code, [&] { return shared_window<T>(static_cast<T *>(mine)); });
    }

    /** Hands a loan over, which is empty then: fmpl_send_loan. After an error it is still the caller's. */
    template <class T> outcome<> send_loan(loan<T> &&filled, int to, int index) const {
        return detail::done(filled.handed(fmpl_send_loan(filled.raw(), filled.bytes(), to, index, id_)));
    }
    template <class T> outcome<> send_loan_any(loan<T> &&filled, int to, int index) const {
        return detail::done(filled.handed(fmpl_send_loan_any(filled.raw(), filled.bytes(), to, index, id_)));
    }
    /** Receives in place: fmpl_recv_loan. */
    template <class T> outcome<loan<const T>> recv_loan(int from, int index) const {
        const void *at = nullptr;
        std::size_t bytes = 0;
        const int code = fmpl_recv_loan(&at, &bytes, from, index, id_);
        return detail::given(code, [&] { return loan<const T>(static_cast<const T *>(at), bytes, from); });
    }
    template <class T> outcome<loan<const T>> recv_loan_any(int index) const {
        const void *at = nullptr;
        std::size_t bytes = 0;
        int from = nobody;
        const int code = fmpl_recv_loan_any(&at, &bytes, index, id_, &from);
        return detail::given(code, [&] { return loan<const T>(static_cast<const T *>(at), bytes, from); });
    }
    /** Begins to receive in place: fmpl_irecv_loan. */
    template <class T> outcome<pending_loan<T>> irecv_loan(int from, int index) const {
        const int code = fmpl_irecv_loan(from, index, id_);
        return detail::given(code, [&] { return pending_loan<T>(id_, from, index, false); });
    }
    /** The same of any source: fmpl_irecv_loan_any. */
    template <class T> outcome<pending_loan<T>> irecv_loan_any(int index) const {
        const int code = fmpl_irecv_loan_any(index, id_);
        return detail::given(code, [&] { return pending_loan<T>(id_, nobody, index, true); });
    }
    /** Hands a loan over to all members of a group chosen for this message, who receive it from this rank: fmpl_mcast_loan. */
    template <class T> outcome<> mcast_loan(loan<T> &&filled, span<const int> members, int index) const {
        return to_group("mcast_loan", members, [&](const std::uint64_t *group) {
            return filled.handed(fmpl_mcast_loan(filled.raw(), filled.bytes(), group, index, id_));
        });
    }

    /** fmpl_barrier. */
    outcome<> barrier() const { return detail::done(fmpl_barrier(id_)); }
    /** fmpl_bcast. */
    template <class B> outcome<> bcast(B &&buf, int root) const {
        auto all = detail::room(std::forward<B>(buf));
        return detail::done(fmpl_bcast(all.data, all.bytes(), root, id_));
    }
    /** fmpl_reduce: the root's buffer becomes the result. `op` is one of the functions above, or any function object without state. */
    template <class B, class Op> outcome<> reduce(B &&buf, const Op &op, int root) const {
        return detail::done(detail::reduce(
            std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) { return fmpl_reduce(at, n, f, root, id_, nullptr); }));
    }
    /** fmpl_allreduce. */
    template <class B, class Op> outcome<> allreduce(B &&buf, const Op &op) const {
        return detail::done(detail::reduce(std::forward<B>(buf), op,
                                           [&](void *at, int n, fmpl_func f) { return fmpl_allreduce(at, n, f, id_, nullptr); }));
    }
    /** fmpl_mcast_reduce: a reduction of a group chosen for this one call, which all its members make. */
    template <class B, class Op> outcome<> mcast_reduce(B &&buf, const Op &op, span<const int> members, int root) const {
        return to_group("mcast_reduce", members, [&](const std::uint64_t *group) {
            return detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) {
                return fmpl_mcast_reduce(at, n, f, group, root, id_);
            });
        });
    }
    /** fmpl_mcast_alltoall: an exchange of a group chosen for this one call; both buffers have equal shares for its members, in the order of
     *  their ranks. */
    template <class A, class B> outcome<> mcast_alltoall(const A &sent, B &&received, span<const int> members) const {
        auto from = detail::whole(sent);
        auto to = detail::room(std::forward<B>(received));
        if (members.size() == 0 || from.count % members.size() != 0 || to.bytes() < from.bytes())
            return detail::failed(FMPL_ERR_ARGUMENT, "mcast_alltoall: " + std::to_string(from.bytes()) + " bytes for " +
                                                         std::to_string(to.bytes()) + " have no equal share for each of " +
                                                         std::to_string(members.size()) + " members");
        return to_group("mcast_alltoall", members, [&](const std::uint64_t *group) {
            return fmpl_mcast_alltoall(from.data, from.bytes() / members.size(), to.data, group, id_);
        });
    }
    /** fmpl_scan: rank k gets what ranks 0 to k have, combined. */
    template <class B, class Op> outcome<> scan(B &&buf, const Op &op) const {
        return detail::done(
            detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) { return fmpl_scan(at, n, f, id_); }));
    }
    /** fmpl_exscan: rank k gets what ranks 0 to k - 1 have, combined; that of rank 0 stays. */
    template <class B, class Op> outcome<> exscan(B &&buf, const Op &op) const {
        return detail::done(
            detail::reduce(std::forward<B>(buf), op, [&](void *at, int n, fmpl_func f) { return fmpl_exscan(at, n, f, id_); }));
    }
    /** fmpl_reduce_scatter: `all` has a block as long as `mine` for each rank. */
    template <class A, class B, class Op> outcome<> reduce_scatter(const A &all, B &&mine, const Op &op) const {
        auto from = detail::whole(all);
        auto to = detail::room(std::forward<B>(mine));
        static_assert(std::is_same_v<typename decltype(from)::element, typename decltype(to)::element>,
                      "fmpl: two kinds of elements");
        return blocks("reduce_scatter", from.bytes(), to.bytes(), true, [&] {
            return detail::reduce(span(to.data, to.count), op,
                                  [&](void *at, int n, fmpl_func f) { return fmpl_reduce_scatter(from.data, at, n, f, id_); });
        });
    }
    /** fmpl_gather: `all` is looked at by the root only, and has room for as much as `mine` of each rank. */
    template <class M, class A> outcome<> gather(const M &mine, A &&all, int root) const {
        auto from = detail::whole(mine);
        auto to = detail::room(std::forward<A>(all));
        return blocks("gather", to.bytes(), from.bytes(), at(root),
                      [&] { return fmpl_gather(from.data, from.bytes(), to.data, root, id_); });
    }
    /** fmpl_allgather. */
    template <class M, class A> outcome<> allgather(const M &mine, A &&all) const {
        auto from = detail::whole(mine);
        auto to = detail::room(std::forward<A>(all));
        return blocks("allgather", to.bytes(), from.bytes(), true,
                      [&] { return fmpl_allgather(from.data, from.bytes(), to.data, id_); });
    }
    /** fmpl_scatter: `all` is looked at by the root only. */
    template <class A, class M> outcome<> scatter(const A &all, M &&mine, int root) const {
        auto from = detail::whole(all);
        auto to = detail::room(std::forward<M>(mine));
        return blocks("scatter", from.bytes(), to.bytes(), at(root),
                      [&] { return fmpl_scatter(from.data, to.bytes(), to.data, root, id_); });
    }
    /** fmpl_alltoall: each rank gets an equal share of the elements of `sent`, whose number is a multiple of that of the ranks. */
    template <class A, class B> outcome<> alltoall(const A &sent, B &&received) const {
        auto from = detail::whole(sent);
        auto to = detail::room(std::forward<B>(received));
        int ranks = 1;
        if (const int code = fmpl_comm_size(id_, &ranks)) return detail::done(code);
        if (from.count % static_cast<std::size_t>(ranks) != 0)
            return detail::failed(FMPL_ERR_ARGUMENT, "alltoall: " + std::to_string(from.count) +
                                                         " elements have no equal share for each of " + std::to_string(ranks) +
                                                         " ranks");
        const std::size_t one = from.bytes() / static_cast<std::size_t>(ranks);
        return blocks("alltoall", to.bytes() < from.bytes() ? to.bytes() : from.bytes(), one, true,
                      [&] { return fmpl_alltoall(from.data, one, to.data, id_); });
    }
    /** fmpl_gatherv: `counts` are the elements of each rank, one rank's behind the other's; both are looked at by the root only. */
    template <class M, class A> outcome<> gatherv(const M &mine, A &&all, span<const std::size_t> counts, int root) const {
        auto from = detail::whole(mine);
        auto to = detail::room(std::forward<A>(all));
        return uneven("gatherv", counts, to, at(root), [&](const std::size_t *sizes) {
            return fmpl_gatherv(from.data, from.bytes(), to.data, sizes, nullptr, root, id_);
        });
    }
    /** fmpl_allgatherv. */
    template <class M, class A> outcome<> allgatherv(const M &mine, A &&all, span<const std::size_t> counts) const {
        auto from = detail::whole(mine);
        auto to = detail::room(std::forward<A>(all));
        return uneven("allgatherv", counts, to, true, [&](const std::size_t *sizes) {
            return fmpl_allgatherv(from.data, from.bytes(), to.data, sizes, nullptr, id_);
        });
    }
    /** fmpl_scatterv: `all` and `counts` are looked at by the root only. */
    template <class A, class M> outcome<> scatterv(const A &all, span<const std::size_t> counts, M &&mine, int root) const {
        auto from = detail::whole(all);
        auto to = detail::room(std::forward<M>(mine));
        return uneven("scatterv", counts, from, at(root), [&](const std::size_t *sizes) {
            return fmpl_scatterv(from.data, sizes, nullptr, to.data, to.bytes(), root, id_);
        });
    }
    /** fmpl_alltoallv. */
    template <class A, class B>
    outcome<> alltoallv(const A &sent, span<const std::size_t> sent_counts, B &&received,
                        span<const std::size_t> received_counts) const {
        auto from = detail::whole(sent);
        auto to = detail::room(std::forward<B>(received));
        if (!fits(received_counts, to)) return too_short("alltoallv", to.count, received_counts.size());
        const auto others = detail::in_bytes<typename decltype(to)::element>(received_counts);
        return uneven("alltoallv", sent_counts, from, true, [&](const std::size_t *sizes) {
            return fmpl_alltoallv(from.data, sizes, nullptr, to.data, others.data(), nullptr, id_);
        });
    }

    /** fmpl_comm_split: those with equal colours form one; a negative colour: none. */
    outcome<communicator> split(int colour, int order = 0) const;
    /** fmpl_comm_split_node: the ranks of this node. */
    outcome<communicator> split_node(int order = 0) const;
    /** fmpl_comm_dup. */
    outcome<communicator> duplicate() const;
    /** fmpl_comm_group_create: some ranks, in this order; they alone call it. */
    outcome<communicator> group(span<const int> ranks) const;
    /** Gives it a name for errors and reports: fmpl_comm_set_name. */
    outcome<> set_name(const std::string &name) const { return detail::done(fmpl_comm_set_name(id_, name.c_str())); }
    /** What this rank has named it, or "": fmpl_comm_name. */
    outcome<std::string> name() const {
        char text[FMPL_COMM_NAME_BYTES] = "";
        const int code = fmpl_comm_name(id_, text, sizeof text);
        return detail::given(code, [&] { return std::string(text); });
    }
    /** Which rank of `other` a rank of this is, or nobody: fmpl_comm_translate. */
    outcome<int> translate(int rank, comm other) const {
        int there = nobody;
        const int code = fmpl_comm_translate(id_, rank, other.id_, &there);
        return detail::given(code, [&] { return there; });
    }

private:
    friend class scope;
    outcome<int> number(int (*what)(fmpl_comm, int *)) const {
        int n = 0;
        const int code = what(id_, &n);
        return detail::given(code, [&] { return n; });
    }
    bool at(int root) const {
        int rank = nobody;
        return fmpl_comm_rank(id_, &rank) == FMPL_SUCCESS && rank == root;
    }
    static outcome<> too_short(const char *name, std::size_t elements, std::size_t counts) {
        return detail::failed(FMPL_ERR_ARGUMENT, std::string(name) + ": the buffer of all ranks has " + std::to_string(elements) +
                                                     " elements; the " + std::to_string(counts) +
                                                     " counts are more, or not one for each rank");
    }
    /** What is wrong with a buffer of all ranks' parts, which C cannot know to be too short; "": nothing. (A communicator that there is
     *  not the call itself finds.) */
    std::string lack(const char *name, std::size_t has, std::size_t one) const {
        int ranks = 1;
        if (fmpl_comm_size(id_, &ranks) != FMPL_SUCCESS || has / static_cast<std::size_t>(ranks) >= one) return "";
        return std::string(name) + ": the buffer of all ranks has " + std::to_string(has) + " bytes, and each of " +
               std::to_string(ranks) + " needs " + std::to_string(one);
    }
    /** A call over such a buffer. */
    template <class Call> outcome<> blocks(const char *name, std::size_t has, std::size_t one, bool looked_at, Call call) const {
        const std::string why = looked_at ? lack(name, has, one) : "";
        if (!why.empty()) return detail::failed(FMPL_ERR_ARGUMENT, why);
        return detail::done(call());
    }
    /** The bitmap of a group; of one with a member that there is not, what is wrong. */
    std::string bitmap(const char *name, span<const int> members, std::vector<std::uint64_t> &group) const {
        int ranks = 0;
        if (fmpl_comm_size(id_, &ranks) != FMPL_SUCCESS) ranks = 0x7fffffff;
        for (int member : members) {
            if (member < 0 || member >= ranks)
                return std::string(name) + ": rank " + std::to_string(member) + " of a communicator of " + std::to_string(ranks);
            const auto word = static_cast<std::size_t>(member) / 64;
            if (group.size() <= word) group.resize(word + 1);
            group[word] |= std::uint64_t(1) << member % 64;
        }
        if (ranks != 0x7fffffff) group.resize(static_cast<std::size_t>(ranks) / 64 + 1);
        return "";
    }
    /** A call of a group chosen for it. */
    template <class Call> outcome<> to_group(const char *name, span<const int> members, Call call) const {
        std::vector<std::uint64_t> group(1);
        const std::string why = bitmap(name, members, group);
        if (!why.empty()) return detail::failed(FMPL_ERR_RANK, why);
        return detail::done(call(group.data()));
    }
    template <class Memory> bool fits(span<const std::size_t> counts, const Memory &all) const {
        int ranks = 0;
        std::size_t left = all.count;
        if (fmpl_comm_size(id_, &ranks) != FMPL_SUCCESS || counts.size() != static_cast<std::size_t>(ranks)) return false;
        for (std::size_t n : counts) {
            if (n > left) return false;
            left -= n;
        }
        return true;
    }
    template <class Memory, class Call>
    outcome<> uneven(const char *name, span<const std::size_t> counts, const Memory &all, bool looked_at, Call call) const {
        if (looked_at && !fits(counts, all)) return too_short(name, all.count, counts.size());
        return detail::done(call(detail::in_bytes<typename Memory::element>(counts).data()));
    }

    fmpl_comm id_;
};

/** A communicator of the program's own; its end frees it, or fmpl_finalize has. Empty (false) where the colour or key was negative. */
class communicator {
public:
    explicit communicator(fmpl_comm id) noexcept : calls_(id) {}
    communicator(communicator &&other) noexcept : calls_(std::exchange(other.calls_, comm(FMPL_COMM_NULL))) {}
    communicator &operator=(communicator &&other) noexcept {
        std::swap(calls_, other.calls_);
        return *this;
    }
    ~communicator() {
        const int code = *this ? release() : FMPL_SUCCESS;
        if (code != FMPL_SUCCESS && code != FMPL_ERR_INIT)
            std::fprintf(stderr, "fmpl: a communicator is not freed: %s\n", fmpl_last_error());
    }
    explicit operator bool() const noexcept { return calls_.id() != FMPL_COMM_NULL; }
    /** What has the calls: `row->send(...)`. */
    const comm &operator*() const noexcept { return calls_; }
    const comm *operator->() const noexcept { return &calls_; }
    /** Frees it now: fmpl_comm_free. */
    outcome<> free() { return detail::done(release()); }

private:
    int release() {
        fmpl_comm id = calls_.id();
        const int code = fmpl_comm_free(&id);
        calls_ = comm(id);
        return code;
    }
    comm calls_;
};

inline outcome<communicator> comm::split(int colour, int order) const {
    fmpl_comm made = FMPL_COMM_NULL;
    const int code = fmpl_comm_split(id_, colour, order, &made);
    return detail::given(code, [&] { return communicator(made); });
}
inline outcome<communicator> comm::split_node(int order) const {
    fmpl_comm made = FMPL_COMM_NULL;
    const int code = fmpl_comm_split_node(id_, order, &made);
    return detail::given(code, [&] { return communicator(made); });
}
inline outcome<communicator> comm::duplicate() const {
    fmpl_comm made = FMPL_COMM_NULL;
    const int code = fmpl_comm_dup(id_, &made);
    return detail::given(code, [&] { return communicator(made); });
}
inline outcome<communicator> comm::group(span<const int> ranks) const {
    fmpl_comm made = FMPL_COMM_NULL;
    const int code = fmpl_comm_group_create(id_, ranks.data(), static_cast<int>(ranks.size()), &made);
    return detail::given(code, [&] { return communicator(made); });
}

FMPL_CPP_END
} // namespace fmpl

#endif
