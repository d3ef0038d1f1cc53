"""Messages between pretended nodes over TCP, by sockets and by libfabric, beside MPIs over the same: no device, no rights."""

NETWORK = "tcp;ofi_rxm"
# How each MPI is kept off its shared memory. Open MPI has two ways over TCP, each of which is a run of its own.
OVER_TCP = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
WAYS = {
    "btl tcp": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "mtl ofi": {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": NETWORK},
}
NETWORK_ROUNDS = 10


def beside(network):
    """Which MPIs run by turns, over which way, and the libfabric that ours takes then: that of the MPI that goes through it."""
    # An Open MPI over UCX is told by the benchmark which ways to take, and would take memory.
    rivals = [rival for rival in all_rivals().split(",") if "ucx" not in rival]
    yield "btl tcp", rivals, None
    for rival in (rival for rival in rivals if "openmpi" in rival):
        brought = pathlib.Path(rival).parent.parent / "lib/openmpi/libfabric.so.1"
        yield "mtl ofi", [rival], str(brought) if network != "tcp" and brought.exists() else None


@functools.cache
def over_tcp(network, *options):
    """Blocks in ns by turns, ours and those of all MPIs that can be had, run by run: {(benchmark, label): [{contestant: [blocks]}]}."""
    found = collections.defaultdict(list)
    for way, rivals, library in beside(network):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory, "figures.json")
            command = [bench.fmpl, "bench", *options, "--quiet", "--json", str(out), "--rounds", str(NETWORK_ROUNDS), "--blocks", "3",
                       "--patience", "20", "--against", ",".join(rivals)]
            env = {**os.environ, **OVER_TCP, **WAYS[way], "FMPL_NETWORK": network, **({"FMPL_LIBFABRIC": library} if library else {})}
            done = subprocess.run(command, env=env, capture_output=True, text=True)
            if done.returncode or not out.exists():
                raise Missing((done.stderr.strip() or done.stdout.strip())[-300:])
            runs = json.loads(out.read_text())
        for run in runs if isinstance(runs, list) else [runs]:
            for case in run["cases"]:
                results = case["figures"][0]["results"].items()
                named = {f"{name}, {way}" if "openmpi" in name else name: result["blocks"] for name, result in results}
                found[run["benchmark"], case["label"]].append({name: blocks for name, blocks in named.items() if blocks})
    return found


def beside_best(blocks):
    """Ours over the best MPI's, by medians: the ratio, and how it came to it."""
    middle = {name: statistics.median(times) for name, times in blocks.items()}
    ours = middle.pop("fmpl", None)
    if ours is None or not middle:
        raise Missing("one side has no figures")
    best = min(middle, key=middle.get)
    ratio = ours / middle[best]
    return ratio, f"{ratio:.2f} ({ours / 1e3:.1f} us; {best}: {middle[best] / 1e3:.1f}; {len(blocks['fmpl'])} blocks)"


def together(runs):
    """All blocks of some runs."""
    names = {name for run in runs for name in run}
    return {name: [time for run in runs for time in run.get(name, [])] for name in names}


PAIR = ("pingpong=8,64k,1M", "window=8", "--nodes", "2")
FOUR = ("allreduce=8k", "--ranks", "4", "--nodes", "4")
BESIDE = [
    ("pingpong", "8 B", "8 B one way", PAIR, 1.0),
    ("pingpong", "64 KB", "64 KB one way", PAIR, 1.0),
    ("pingpong", "1 MB", "1 MB one way", PAIR, 1.0),
    ("window", "8 B", "window of 64 x 8 B", PAIR, 0.8),
    ("allreduce", "8 KB", "allreduce of 8 KB on 4 nodes", FOUR, 0.9),
]
for name, label, what, options, limit in BESIDE:

    # What runs over TCP by itself.
    @line("reach", f"{what} over tcp on this machine, beside the best MPI over TCP", f"<= {limit}")
    def _(name=name, label=label, options=options, limit=limit):
        ratio, text = beside_best(together(over_tcp("tcp", *options)[name, label]))
        return text, ratio <= limit

    # What does not: a library stands between, and a stranger's way to the same sockets is compared with it.
    @line("reach", f"{what} over ofi:{NETWORK} on this machine, beside the best MPI over TCP", "none")
    def _(name=name, label=label, options=options):
        return beside_best(together(over_tcp(f"ofi:{NETWORK}", *options)[name, label]))[1], None

    # Two providers cannot be compared by what goes through them: ours takes the library that the other takes.
    @line("reach", f"{what} over ofi:{NETWORK} on this machine, beside Open MPI 4 and 5 through the same library", "none")
    def _(name=name, label=label, options=options):
        _, *through = over_tcp(f"ofi:{NETWORK}", *options)[name, label]
        if not through:
            raise Missing("no Open MPI goes through it")
        return ", ".join(beside_best(run)[1] for run in through), None


def fi_pingpong(size, turns=1000):
    """One-way time in us of the library's own program, over the same provider."""
    if not shutil.which("fi_pingpong"):
        raise Missing("there is no fi_pingpong (libfabric-bin)")
    command = ["fi_pingpong", "-p", NETWORK, "-e", "rdm", "-S", str(size), "-I", str(turns)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        done = subprocess.run([*command, "127.0.0.1"], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise Missing("fi_pingpong does not come to its end") from None
    finally:
        server.kill()
        server.wait()
    rows = [text.split() for text in done.stdout.splitlines() if re.match(r"\d", text)]
    if not rows:
        raise Missing(done.stderr[-200:] or "fi_pingpong says nothing")
    return float(rows[-1][6])


for size, label in (8, "8 B"), (64 << 10, "64 KB"), (1 << 20, "1 MB"):

    @line("reach", f"{label} one way over {NETWORK}, beside fi_pingpong of the same provider, medians of 5 runs", "<= 1.25")
    def _(size=size, label=label):
        theirs = statistics.median(fi_pingpong(size) for _ in range(5))
        ours = statistics.median(over_tcp(f"ofi:{NETWORK}", *PAIR)["pingpong", label][0]["fmpl"]) / 1e3
        return f"{ours / theirs:.2f} ({ours:.1f} us; {theirs:.1f})", ours / theirs <= 1.25


for part, what, seconds in [
    ("libfabric", f"conformance between pretended nodes over {NETWORK}", 240),
    ("tcp", "the same over TCP by sockets of the system", 240),
    ("providers", "short forms over udp;ofi_rxd, shm, and tcp and shm of a newer libfabric", None),
    ("rxm", "short forms over verbs;ofi_rxm, in the rig", None),
]:

    @line("reach", f"{what}: part `{part}` of tests/run", f"passes, < {seconds} s" if seconds else "passes")
    def _(part=part, seconds=seconds):
        since = time.monotonic()
        done = subprocess.run(["tests/run", part], cwd=ROOT, env=tests_env(), capture_output=True, text=True)
        took = time.monotonic() - since
        well = done.returncode == 0
        return f"{took:.0f} s" if well else cause(done.stdout, 200), well and (seconds is None or took < seconds)


def of_libfabric(word, long=False):
    """What the tests of tests/libfabric, or those of faults between nodes, with this word print."""
    program, network = ("faults", f"ofi:{NETWORK}") if word.endswith("another_node") else ("libfabric", "auto")
    env = {**tests_env(), "FMPL_NETWORK": network, **({"FMPL_TEST_LONG": "1"} if long else {})}
    command = ["cargo", "test", "--locked", "--test", program, "--", word]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    # What takes a third node with a device can be tried in the rig only.
    skipped, whole = done.stdout.count("skipped:"), done.stdout.count("... ok")
    if skipped and skipped >= whole:
        raise Missing(done.stdout.split("skipped:")[1].splitlines()[0].strip())
    return done.returncode == 0, done.stdout


@line("reach", "incast from 64 pretended nodes over TCP: our own growth of the receiver, by component; the provider's for each connection", "0 B")
def _():
    well, text = of_libfabric("receiver_takes", long=True)
    found = re.search(r"incast from 64 nodes: own (-?\d+) B more by component, (.*)", text)
    if not found:
        raise Missing(text[-300:])
    return f"{found[1]} B; {found[2]}", well and int(found[1]) <= 0


@line("reach", "the network: chosen by itself, none loaded on one node, differing ones and missing ones named in init", "tests pass")
def _():
    words = ["one_node_loads", "chosen_by_itself", "different_networks", "error_of_init", "used_or_refused"]
    failed = [word for word in words if not of_libfabric(word)[0]]
    return ", ".join(failed) or "all", not failed


@line("reach", f"deaths, stops, cables pulled and no way over {NETWORK}, between two network namespaces", "tests pass")
def _():
    well, text = of_libfabric("another_node")
    return f"{text.count('... ok')} tests pass", well
