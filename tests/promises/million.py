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
