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


def one_way(network):
    """Nanoseconds of 8 B and of 1 MB one way between two pretended nodes, by blocks."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory, "figures.json")
        command = [bench.fmpl, "bench", "pingpong", "--nodes", "2", "--sizes", "8,1M", "--quiet", "--json", str(out)]
        done = subprocess.run(command, env={**os.environ, "FMPL_NETWORK": network}, capture_output=True, text=True)
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


test_line("without connections: what a quiet peer takes, and that nothing is lost in bad weather", "<= 400 B, all",
          "cargo", "test", "--locked", "--release", "--lib", "fabric::datagram", set_name="million")
