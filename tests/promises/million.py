# What a node takes in a job of a million nodes. Run by tests/shows, in which `line`, `Missing` and `ROOT` are.

# Bytes of a node that the paper prints: (nodes, ranks of each, column): value, digits.
PRINTED = {
    (1 << 20, 4, "baseline"): (1.74e12, 3),
    (1 << 20, 4, "printed"): (1.00e9, 3),
    (1 << 20, 4, "corrected"): (1.07e9, 3),
    (9216, 1, "printed"): (211e6, 3),
}


def model(nodes, ranks):
    command = [bench.fmpl, "model", "--nodes", str(nodes), "--ranks", str(ranks), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return json.loads(done.stdout)["bytes_of_a_node"]


@line("million", "fmpl model: the paper's 1.74 TB, 1.00 GB, 1.07 GB with its erratum, 211 MB for 9216 nodes", "the same, to its digits")
def _():
    found = {(nodes, ranks, column): model(nodes, ranks)[column]["all"] for nodes, ranks, column in PRINTED}
    rounded = lambda value, digits: float(f"{value:.{digits - 1}e}")
    held = all(rounded(found[key], digits) == value for key, (value, digits) in PRINTED.items())
    return ", ".join(f"{value / 1e6:.1f} MB" for value in found.values()), held


@line("million", "fmpl model: FMPL's own at 2^20 nodes of 4, every budget full, 256 rings of packets of 4096 bytes among them", "<= 64 MB")
def _():
    rows = model(1 << 20, 4)["ours"]
    return f"{rows['all'] / 1e6:.1f} MB", rows["all"] <= 64e6


@line("million", "what the model says of a context beside what three peers add over TCP, by component", "within 5 %")
def _():
    said = json.loads(subprocess.run([bench.fmpl, "model", "--json"], capture_output=True, text=True).stdout)
    done = subprocess.run([bench.fmpl, "info", "--memory", "4"], env={**os.environ, "FMPL_NETWORK": "tcp"}, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    found = {name: int(more) / 3 for more, name in re.findall(r"\d+ +\+(\d+)  (.*)", done.stdout)}
    fronts = "between nodes: fronts and pages of lanes"
    all_of = {**said["context"], fronts: said["fronts"]}
    apart = {name: found.get(name, 0) / bytes - 1 for name, bytes in all_of.items()}
    text = ", ".join(f"{found.get(name, 0):.0f} ({part:+.1%})" for name, part in apart.items())
    return text, all(abs(part) <= 0.05 for part in apart.values())


LOOKED = {}


def registrations():
    """Nanoseconds of a look-up among 65 536 registrations, by turns in one run."""
    if not LOOKED:
        command = ["cargo", "bench", "--locked", "--quiet", "--bench", "registrations", "--", "--figures"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise Missing(done.stderr[-300:])
        LOOKED.update(json.loads(done.stdout.splitlines()[-1]))
    return LOOKED


@line("million", "65 536 registrations, random look-ups: without a lock against BTreeMap::range behind a mutex", "<= 0.7x")
def _():
    times = registrations()
    return f"{times['without']:.0f} ns, {times['locked']:.0f} ns: {times['without'] / times['locked']:.2f}x", times["without"] <= 0.7 * times["locked"]


@line("million", "65 536 registrations: look-ups by two threads at once against those by one", "<= 1.1x each")
def _():
    times = registrations()
    return f"{times['two']:.0f} ns, {times['without']:.0f} ns: {times['two'] / times['without']:.2f}x", times["two"] <= 1.1 * times["without"]


@line("million", "65 536 registrations: memory of the table, for each", "<= 128 bytes")
def _():
    each = registrations()["bytes"]
    return f"{each:.0f} bytes", each <= 128


# ---- multicasts between 8 pretended nodes over TCP: forms beside each other, by turns, and MPI_Bcast over the same

# Open MPI without shared memory; one over UCX would be told by the benchmark to take it.
MCAST_ENV = {"FMPL_NETWORK": "tcp", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
MCAST_FORMS = ["tree", "chain", "ring", "doubling"]


def mcast_forms(size):
    """A long message flat takes the master's core and port alone, which pretended nodes share: not a form to choose by what is measured here."""
    return MCAST_FORMS if size.endswith("M") else ["flat", *MCAST_FORMS]


@functools.cache
def mcast_blocks(size, members, rivals):
    """Blocks in ns, by contestant: {"fmpl": [...], "tree": [...], an MPI: [...]}, on a communicator that is ready."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory, "figures.json")
        command = [bench.fmpl, "bench", f"mcast={size}", "--ranks", "8", "--nodes", "8", "--members", str(members), "--quiet", "--json", str(out),
                   "--rounds", "10", "--blocks", "5", "--patience", "60"]
        command += ["--against", rivals] if rivals else ["--forms", ",".join(mcast_forms(size))]
        done = subprocess.run(command, env={**os.environ, **MCAST_ENV}, capture_output=True, text=True)
        if done.returncode or not out.exists():
            raise Missing((done.stderr.strip() or done.stdout.strip())[-300:])
        runs = json.loads(out.read_text())
    run = runs[0] if isinstance(runs, list) else runs
    case = next(case for case in run["cases"] if case["label"].endswith("ready"))
    return {name: result["blocks"] for name, result in case["figures"][0]["results"].items() if result["blocks"]}


for size, label in [("80k", "80 KB"), ("8M", "8 MB")]:
    for members in [4, 7]:

        @line("million", f"multicast of {label} to a fresh group of {members} of 8 pretended nodes: the choice beside the best form", "<= 1.05")
        def _(size=size, members=members):
            middle = {name: statistics.median(blocks) for name, blocks in mcast_blocks(size, members, None).items()}
            chosen, best = middle.pop("fmpl"), min(middle, key=middle.get)
            text = ", ".join(f"{name} {middle[name] / 1e3:.0f}" for name in mcast_forms(size))
            return f"{chosen / middle[best]:.2f} (chosen {chosen / 1e3:.0f} us; {text})", chosen / middle[best] <= 1.05


for members in [4, 7]:

    @line("million", f"multicast of 80 KB to {members} of 8 pretended nodes over TCP, beside MPI_Bcast on a ready communicator over the same", "< 1.00")
    def _(members=members):
        # Of more ranks than cores MPICH's only spin.
        middle = {name: statistics.median(blocks) for name, blocks in mcast_blocks("80k", members, "openmpi").items()}
        ours = middle.pop("fmpl")
        if not middle:
            raise Missing("no MPI has figures")
        best = min(middle, key=middle.get)
        return f"{ours / middle[best]:.2f} ({ours / 1e3:.0f} us; {best}: {middle[best] / 1e3:.0f})", ours < middle[best]


test_line("groups that overlap, 10^5 at random, all under way: no wait for ever, nothing lost, twice or out of order", "a test", "cargo", "test", "--locked",
          "--release", "--test", "any_source", "overlapping", set_name="million")
test_line("the same, and a rank dies: 400 times", "every wait ends with an error that names who", "cargo", "test", "--locked", "--release", "--test",
          "any_source", "and_when", set_name="million")
test_line("what crosses each level of switches in trees between nodes: once into each", "a test counts", "cargo", "test", "--locked", "--release",
          "--test", "collective", "few_messages", set_name="million")


def test_figures(test, *options):
    """What a test prints as figures, in its long form, and whether it holds."""
    command = ["cargo", "test", "--locked", *options, "--", test, "--nocapture", "--test-threads=1"]
    done = subprocess.run(command, cwd=ROOT, env=tests_env(FMPL_TEST_LONG="1"), capture_output=True, text=True)
    if "1 passed" not in done.stdout:
        return [cause(done.stdout + done.stderr)], False
    return re.findall(r"figure: (.*)", done.stdout), True


@functools.cache
def startup():
    done = subprocess.run([bench.fmpl, "model", "--startup", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return json.loads(done.stdout)["rows"]


@line("million", "start-up at 2^20 ranks by simulation, its words measured here: connections of a rank, KB that one reads", "<= 24, <= 64")
def _():
    row = startup()[-1]
    connections, read = row["connections"][0], row["bytes_read"][0]
    seconds, one = (ns / 1e9 for ns in row["started_ns"])
    text = f"{connections}, {read / 1e3:.1f} KB; {seconds:.1f} s (all with rank 0: {one:.0f} s)"
    return text, row["ranks"] == 1 << 20 and connections <= 24 and read <= 64 << 10


@line("million", "a get from the spread store beside one from rank 0, by ranks: alone, and where all ask at once (simulation)", "at once at 2^20: <= 0.01x")
def _():
    rows = startup()
    each = [f"{r['ranks']}: {r['get_ns'][0] / r['get_ns'][1]:.1f}x, {r['get_at_once_ns'][0] / r['get_at_once_ns'][1]:.4f}x" for r in rows]
    last = rows[-1]["get_at_once_ns"]
    return "; ".join(each), last[0] <= 0.01 * last[1]


@line("million", "2000 real ranks on 500 pretended nodes: connections of a rank, KB that one reads", "<= 24, <= 64")
def _():
    figures, well = test_figures("spread::a_rank_has_few_connections_and_reads_little", "--test", "launch")
    return "; ".join(figures), well


@line("million", "choice of ways, 12 traffics on 2 machines: latency beside the best unchanging choice in hindsight, beside fixed policies", "<= 1.15x, <= 1.05x")
def _():
    test = "fabric::network::ways::tests::on_all_traffics_as_good_as_hindsight_and_as_any_fixed_policy"
    figures, well = test_figures(test, "--release", "--lib")
    rows = [[float(x) for x in re.findall(r"\d+\.\d{3}", figure)] for figure in figures]
    if not well or not rows:
        return "; ".join(figures), False
    return f"{len(rows)} rows: {max(r[0] for r in rows)}x, {max(max(r[1:]) for r in rows)}x", well


# ---- data without connections


def one_way(network, name="pingpong", sizes="8,1M", rounds=3, **env):
    """Nanoseconds of a message between two pretended nodes, by blocks: 8 B and 1 MB one way, or another benchmark's."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory, "figures.json")
        command = [bench.fmpl, "bench", name, "--nodes", "2", "--sizes", sizes, "--rounds", str(rounds), "--quiet", "--json", str(out)]
        done = subprocess.run(command, env={**os.environ, "FMPL_NETWORK": network, **env}, capture_output=True, text=True)
        if done.returncode or not out.exists():
            raise Missing((done.stderr.strip() or done.stdout.strip())[-300:])
        runs = json.loads(out.read_text())
    cases = [case for run in (runs if isinstance(runs, list) else [runs]) for case in run["cases"]]
    return {case["label"]: case["figures"][0]["results"]["fmpl"]["blocks"] for case in cases}


@functools.cache
def without_connections():
    """The same over datagrams and over TCP, on the loopback, by turns in one run: {label: (UDP's median, TCP's)}."""
    found = collections.defaultdict(lambda: ([], []))
    for _ in range(5):
        for k, network in enumerate(("udp:lo", "tcp:lo")):
            for label, blocks in one_way(network).items():
                found[label][k].extend(blocks)
    return {label: tuple(statistics.median(blocks) for blocks in both) for label, both in found.items()}


for label, limit in [("8 B", 1.3), ("1 MB", 1.2)]:

    @line("million", f"without connections: {label} one way over UDP, beside TCP by turns in one run", f"<= {limit}x")
    def _(label=label, limit=limit):
        ours, tcp = without_connections()[label]
        return f"{ours / 1e3:.2f} us for {tcp / 1e3:.2f}", ours <= limit * tcp


WAYS_TO_A_PEER = ["datagrams", "rings", "all"]


@functools.cache
def by_ways():
    """The same by each way to a peer, over TCP and UDP on the loopback, by turns in one run: {label: {way: median}}, data for pictures."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(5):
        for way in WAYS_TO_A_PEER:
            for label, blocks in one_way("tcp:lo", FMPL_CONNECT=way).items():
                found[label][way].extend(blocks)
    return {label: {way: statistics.median(blocks) for way, blocks in ways.items()} for label, ways in found.items()}


@line("million", "each way to a peer, 8 B and 1 MB one way: datagrams as all share, datagrams by rings, connected (TCP)", "rings <= 1.25x of datagrams")
def _():
    rows = by_ways()
    text = "; ".join(f"{label}: " + ", ".join(f"{rows[label][way] / 1e3:.1f}" for way in WAYS_TO_A_PEER) + " us" for label in rows)
    rate = ", ".join(f"{1e9 / rows['1 MB'][way]:.0f}" for way in WAYS_TO_A_PEER) if "1 MB" in rows else "?"
    return f"{text} ({rate} MiB/s)", all(row["rings"] <= 1.25 * row["datagrams"] for row in rows.values())


test_line("without connections: what a quiet peer takes, and that nothing is lost in bad weather", "<= 400 B, all",
          "cargo", "test", "--locked", "--release", "--lib", "fabric::datagram", set_name="million")


# ---- links that change between datagrams, rings and connections at random every 50 ms


def changing(command, **env):
    """Messages of random traffic, how often links went over to datagrams, and to rings, and for how long."""
    done = subprocess.run(command, cwd=ROOT, env=tests_env(**env), capture_output=True, text=True)
    found = re.search(r"(\w+): (\d+) messages, (\d+) times from a connection to datagrams, (\d+) rings, ([\d.]+) s", done.stdout)
    if not found:
        raise Missing(cause(done.stdout + done.stderr))
    left, rings = int(found[3]), int(found[4])
    return f"{found[2]} messages, {left} times to datagrams, {rings} rings, {found[5]} s", done.returncode == 0 and min(left, rings) > 100


CHANGING = "links_change_ways_under_random_traffic"


@line("million", "five minutes of changes at random every 50 ms, TCP and UDP that loses 2 %: nothing lost, twice or out of order", "0 wrong, > 100 changes each")
def _():
    return changing([test_program("conformance"), CHANGING], FMPL_TEST_LONG="1", FMPL_NETWORK="tcp")


@line("million", "the same by queue pairs of verbs, connected and not, over links that lose 2 % (tests/rig)", "0 wrong, > 100 changes each")
def _():
    command = f"rig-link all loss 2% && FMPL_TEST_LONG=1 {test_program('conformance')} {CHANGING}"
    return changing(["tests/rig/run", "--timeout", "1200", command])


@line("million", "the same in the deterministic network: 100 000 schedules with losses, and places for some or for all", "0 wrong, 0 hangs")
def _():
    said, well = simulated("links_change_ways", 100_000)
    rate = re.search(r"(\d+) a second", said)
    return f"{rate[1]} a second" if rate else "not whole", well


# ---- ghosts: four real ranks in a large world, of whose other ranks one process answers for some


@functools.cache
def ghosts(world, n, *options, contexts=1024):
    """`fmpl info --memory --ghosts`: four ranks, each looked at before, with so many ghosts that were answered, and after they have gone."""
    command = [bench.fmpl, "info", "--memory", "--world", str(world), "--ghosts", str(n), "--json", *options]
    done = subprocess.run(command, env={**os.environ, "FMPL_NETWORK": "udp", "FMPL_CONTEXTS": str(contexts)}, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return json.loads(done.stdout)["ranks"]


def of_node(ranks, look, what="all"):
    return sum(rank[look][what] for rank in ranks)


WORLDS = [1 << 12, 1 << 17, 1 << 20, 1 << 22]


@line("million", "ghosts: memory of a node's four ranks in worlds of 2^12, 2^17, 2^20, 2^22, alone and with 1024 peers", "the same within 1 %")
def _():
    alone, met = ([of_node(ghosts(world, 1024), look) for world in WORLDS] for look in ("before", "with"))
    text = "; ".join(", ".join(f"{bytes / 1e6:.3f} MB" for bytes in of) for of in (alone, met))
    return text, all(max(of) <= 1.01 * min(of) for of in (alone, met))


@line("million", "ghosts in a world of 2^22, K = 0, 1024, 65 536 that sent and were answered: the node's memory; for each beyond 1024", "<= 1 byte")
def _():
    few, many = ghosts(1 << 22, 1024), ghosts(1 << 22, 65_536)
    some, all_of = of_node(few, "with"), of_node(many, "with")
    each = (all_of - some) / (65_536 - 1024)
    seconds = max(rank["seconds"] for rank in many)
    return f"{of_node(few, 'before') / 1e6:.2f}, {some / 1e6:.2f}, {all_of / 1e6:.2f} MB: {each:+.1f} bytes ({seconds:.0f} s)", each <= 1


@line("million", "the same when the 65 536 are forgotten, each rank beside before", "within 5 %")
def _():
    many = ghosts(1 << 22, 65_536)
    more = [rank["after"]["all"] / rank["before"]["all"] - 1 for rank in many]
    kernel = of_node(many, "after", "kernel") - of_node(many, "before", "kernel")
    text = ", ".join(f"{each:+.1%}" for each in more)
    return f"{text} (the kernel counts {kernel / 4e6:+.2f} MB a rank)", max(more) <= 0.05 and of_node(many, "after", "peers") == 0


@line("million", "each of four ranks speaks to 25 000 of 100 000 peers in turn, FMPL_CONTEXTS=64, then to the first again: beside after 256", "no growth")
def _():
    ranks = ghosts(1 << 22, 100_000, "--in-turn", contexts=64)
    known = [of_node(ranks, look, "peers") for look in ("warm", "with")]
    text = f"{of_node(ranks, 'warm') / 1e6:.2f}, {of_node(ranks, 'with') / 1e6:.2f} MB, {known[0]} and {known[1]} peers known"
    # Of the 64 contexts each run leaves others to each rank, and some that come or go.
    return text, of_node(ranks, "with") <= 1.05 * of_node(ranks, "warm")


@line("million", "one rank speaks to 100 000 peers in turn, FMPL_CONTEXTS=64, then to the first again, in order: peers in place, memory beside after 256",
      "<= 88, no growth")
def _():
    rank = ghosts(1 << 22, 100_000, "--in-turn", "--incast", contexts=64)[0]
    warm, done = (rank[look] for look in ("warm", "with"))
    # A few more or fewer are in place at each time: 64, and an eighth of them and 16 while others come; and as many pages are about to be given back.
    text = f"{warm['peers']} and {done['peers']} peers, {warm['all'] / 1e6:.3f} and {done['all'] / 1e6:.3f} MB ({rank['seconds']:.0f} s)"
    return text, rank["ghosts"] == 100_000 and max(warm["peers"], done["peers"]) <= 88 and done["all"] <= 1.05 * warm["all"]


def of_a_peer():
    """What one peer in its context takes, by component."""
    rank = ghosts(1 << 22, 1024)[0]
    before, met = (rank[look]["parts"] for look in ("before", "with"))
    return {name: (bytes - before.get(name, 0)) / rank["ghosts"] for name, bytes in met.items()}


# Contexts of a node, peers that are known beyond them while others come and go, and those that the receiver has asked by itself (32 at a time).
BUDGET = 1024 + 1024 // 8 + 16 + 32


@line("million", "incast: 65 536 ghosts send two messages each to one rank at once: by component, what it takes beside the budget of contexts", "<= 1, all in order")
def _():
    rank, each = ghosts(1 << 22, 65_536, "--incast")[0], of_a_peer()
    before, many = (rank[look]["parts"] for look in ("before", "with"))
    # A page or two more of what grows by pages is no growth by peers.
    grown = {name: bytes - before.get(name, 0) for name, bytes in many.items() if bytes > before.get(name, 0)}
    over = [name for name, bytes in grown.items() if bytes > BUDGET * each.get(name, 0) + 65_536]
    text = ", ".join(f"{name} {bytes / 1e6:.2f} of {BUDGET * each.get(name, 0) / 1e6:.2f} MB" for name, bytes in grown.items() if bytes > 1e5)
    text += f"; {rank['ghosts']} received, {rank['with']['peers']} known ({rank['seconds']:.0f} s)"
    return text, rank["ghosts"] == 65_536 and not over and rank["with"]["peers"] <= BUDGET


@line("million", "incast that nobody receives before all have come, FMPL_CONTEXTS=64, K = 1024, 8192, 65 536: bytes of each peer packed; all else",
      "<= 64 with the blocks they lie in; no more than the contexts' peers; in order afterwards, then as before within 5 %")
def _():
    texts, held = [], True
    contexts = 64
    for k in (1024, 8192, 65_536):
        rank = ghosts(1 << 22, k, "--incast", "--late", "400", contexts=contexts)[0]
        before, look, after = (rank[look] for look in ("before", "late", "after"))
        packed = look["parts"].get("between nodes: peers that are packed", 0)
        each, else_ = packed / max(look["packed"], 1), look["all"] - before["all"] - packed
        most = contexts + contexts // 8 + 16 + look["let_in"]
        # What is not packed does not grow with K: so many peers in their contexts, or about to be, and some 14 KB of each.
        held &= look["packed"] + look["peers"] == k and look["peers"] <= most and else_ <= 16_384 * most
        held &= each <= 64 and rank["ghosts"] == k and after["peers"] + after["packed"] == 0 and after["all"] <= 1.05 * before["all"]
        texts.append(f"K = {k}: {look['packed']} packed, {each:.1f} bytes each, all else {else_ / 1e3:.0f} KB for {look['peers']}; "
                     f"come in {rank['late_seconds']:.0f} s, received in {rank['seconds']:.0f} s, then {after['all'] / before['all'] - 1:+.1%}")
    return "; ".join(texts), held


def senders(n):
    done = subprocess.run([bench.fmpl, "info", "--memory", str(n + 1), "--incast"], env={**os.environ, "FMPL_NETWORK": "tcp:lo"}, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    found = json.loads(done.stdout)
    return found, {name: bytes - found["before"].get(name, 0) for name, bytes in found["most"].items() if bytes > found["before"].get(name, 0)}


@line("million", "256 real senders on 256 pretended nodes, TCP, 128 connections: what the receiver takes by component, beside 16 times that of 16", "<= 1.05x, all in order")
def _():
    (_, few), (found, many) = senders(16), senders(256)
    over = [name for name, bytes in many.items() if bytes > 1.05 * 16 * few.get(name, 0) + 65_536]
    text = ", ".join(f"{name} {bytes / 1e6:.2f} of {16 * few.get(name, 0) / 1e6:.2f} MB" for name, bytes in many.items() if bytes > 1e5)
    each = found["socket_bytes"] / max(found["sockets"], 1)
    text += f"; {found['connections']} connections, {found['sockets']} sockets of {each / 1e3:.1f} KB each; {found['given_up']} given up ({found['seconds']:.0f} s)"
    return text, not over and found["senders"] == 256 and found["connections"] <= 128


@line("million", "communicators of irregular sets of 2^22 ranks: bits for each rank of the world, bytes for each member in any order", "<= 1.005, <= 4")
def _():
    figures, well = test_figures("p2p::group::tests::what_a_large_group_takes", "--lib")
    return "; ".join(figures), well


@line("million", "8 such communicators of a node's four ranks in a world of 2^22: bytes of the node for each, beside a bit for each rank of the world", "<= 1.01x, once")
def _():
    ranks = ghosts(1 << 22, 0, "--communicators", "8")
    more = [rank["communicators"]["all"] - rank["after"]["all"] for rank in ranks]
    each = sum(more) / 8
    return f"{each:.0f} bytes: {each / (1 << 19):.4f}x; of each rank {', '.join(str(bytes) for bytes in more)}", each <= 1.01 * (1 << 19)
