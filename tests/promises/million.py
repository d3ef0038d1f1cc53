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
