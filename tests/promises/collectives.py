"""Collective calls, any source, multicast and communicators: on one node, and what holds of them between nodes."""

# ---- collective calls, against the best MPI: two pinned ranks, then more ranks than cores with the settings that the MPIs advise

# Of more ranks than cores MPICH's only spin, milliseconds a step: it is never the best, and takes the time of all others.
TWO, CROWDED = "openmpi,mpich", "openmpi"

for call, sizes, limits in [("bcast", "8k,1M,8M", [("8 KB", 0.70), ("1 MB", 0.65), ("8 MB", 0.65)]),
                            ("reduce", "8k,1M", [("8 KB", 0.70), ("1 MB", 0.60)]),
                            ("allreduce", "8k,1M", [("8 KB", 0.65), ("1 MB", 0.60)])]:
    for label, limit in limits:
        @line("collectives", f"{call} of {label}, 2 ranks, against the best MPI", f"<= {limit:.2f}")
        def _(call=call, sizes=sizes, label=label, limit=limit):
            return ratio_line(bench.run(call, "--sizes", sizes, against=TWO), label, limit)
    for ranks in [4, 8]:
        for label, _ in limits:
            @line("collectives", f"{call} of {label}, {ranks} ranks, against the best MPI", "<= 1.00")
            def _(call=call, sizes=sizes, label=label, ranks=ranks):
                return ratio_line(bench.run(call, "--sizes", sizes, "--ranks", str(ranks), "--blocks", "5", against=CROWDED), label, 1.0)

for ranks, limit in [(2, 0.45), (4, 0.80), (8, 0.80)]:
    @line("collectives", f"barrier, {ranks} ranks, against the best MPI", f"<= {limit:.2f}")
    def _(ranks=ranks, limit=limit):
        return ratio_line(bench.run("barrier", "--ranks", str(ranks), against=TWO if ranks == 2 else CROWDED), "barrier", limit)


# ---- any source

@line("collectives", "one-way 8 B, received from any source, against the best MPI", "<= 0.80")
def _():
    return ratio_line(bench.run("anysource", "--sizes", "8", against=TWO), "8 B", 0.80)

for senders in [8, 16, 32]:
    def incast(senders):
        return bench.run("incast", "--ranks", str(senders + 1), against=None)

    @line("collectives", f"{senders} senders x 1000 x 1 KB to a receiver that comes late: it grows by, KiB", "<= 1024")
    def _(senders=senders):
        grown = [figure(incast(senders), "1 KB", n)["results"]["fmpl"]["most"] for n in (1, 2)]
        return "{:.0f} PSS, {:.0f} resident".format(*grown), max(grown) <= 1024

    @line("collectives", f"{senders} senders x 1000 x 1 KB: the drain, ns a message", "<= 250")
    def _(senders=senders):
        drain = figure(incast(senders), "1 KB", 0)["results"]["fmpl"]["median"]
        return f"{drain:.0f}", drain <= 250


# ---- multicast to every other one of 8 ranks

for label in ["8 KB", "80 KB", "8 MB"]:
    def mcast():
        return bench.run("mcast", against=CROWDED)

    @line("collectives", f"multicast of {label} against MPI_Bcast on a communicator that is there", "< 1.00")
    def _(label=label):
        return ratio_line(mcast(), f"{label} ready", 1.0)

    @line("collectives", f"multicast of {label} against MPI_Comm_create_group and MPI_Bcast", "<= 0.33")
    def _(label=label):
        return ratio_line(mcast(), f"{label} fresh group", 0.333)


# ---- collective calls among themselves: none takes longer than the others that could be called in its place

for ranks in [2, 4]:
    for label, title in [*((f"allreduce {size}", f"allreduce of {size} over reduce and bcast") for size in ("8 B", "8 KB", "1 MB")),
                         *((f"bcast {size}", f"bcast of {size} over scatter and allgather") for size in ("8 KB", "1 MB")),
                         ("barrier", "barrier over allreduce of 4 B")]:
        @line("collectives", f"{title}, {ranks} ranks", "<= 1.10")
        def _(label=label, ranks=ranks):
            run = bench.run("guidelines", "--sizes", "8,8k,1M", "--ranks", str(ranks), against=None)
            call, instead = (figure(run, label, n)["results"]["fmpl"] for n in (0, 1))
            # Both were measured by turns in each block, so the median is that of the blocks' ratios.
            median = statistics.median(a / b for a, b in zip(call["blocks"], instead["blocks"]))
            return f"{call['min'] / instead['min']:.2f} {median:.2f}", max(call["min"] / instead["min"], median) <= 1.1


# ---- tests of their own, run from here

for title, limit, test, name in [
        ("100 000 communicators made and freed, with their rings and arenas", "no growth", "groups", "ten_thousand"),
        ("up to 16 ranks, random calls, sizes, roots and functions, 60 s", "a serial reference", "collective", "random_programs"),
        ("the same on communicators made and freed meanwhile, 60 s", "a serial reference", "collective", "communicators_come"),
        ("a rank killed in the midst of each collective call, 10 times", "error at all others", "collective", "a_lost_rank"),
        ("receiver of any source stopped: as many sends complete as there are places", "exactly", "any_source", "a_stopped_receiver"),
        ("multicast with all others stopped, and the master after its one send", "all members complete", "any_source", "multicast_needs"),
        ("every way forced, own functions, zero counts, one rank: the bits", "a serial reference", "collective", "every_way")]:
    test_line(title, limit, "cargo", "test", "--locked", "--release", "--test", test, name, set_name="collectives")


# ---- between nodes, in the kernel of tests/rig

for title, arguments in [
    ("any source and multicast between 4 nodes over RDMA", ["--timeout", "600", "{any_source} over_rdma"]),
    ("the same where 2 % of all packets are lost", ["--timeout", "900", "RIG_SCENE=loss {any_source} over_rdma"]),
    ("all collective calls between 4 nodes over RDMA", ["--timeout", "600", "{collective} every_call"]),
    ("bcast by a multicast group, links that lose 2 %; a rank dies in it", ["--timeout", "600", "{collective} by_multicast"]),
]:
    @line("collectives", title, "pass")
    def _(arguments=arguments):
        return in_the_rig(*arguments)
