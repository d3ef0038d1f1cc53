"""One node: messages against the best MPI, waiting, memory, start-up, faults, and what a newcomer does first."""

# ---- one-way, against the best MPI

SIZES = "8,64,1k,4k,64k,256k,1M,4M,16M"

for label, limit in [("8 B", 0.30), ("64 B", 0.50), ("1 KB", 0.65), ("4 KB", 0.75), ("64 KB", 0.75),
                     ("256 KB", 0.60), ("1 MB", 0.60), ("4 MB", 0.60), ("16 MB", 0.60)]:
    @line("node", f"one-way {label} against the best MPI", f"<= {limit:.2f}")
    def _(label=label, limit=limit):
        return ratio_line(bench.run("pingpong", "--sizes", SIZES), label, limit)

for label, limit in [("64 KB", 0.85), ("256 KB", 0.65), ("1 MB", 0.65), ("4 MB", 0.65), ("16 MB", 0.65)]:
    @line("node", f"one-way {label}, echo, against the best MPI", f"<= {limit:.2f}")
    def _(label=label, limit=limit):
        return ratio_line(bench.run("echo", "--sizes", "64k,256k,1M,4M,16M"), label, limit)


@line("node", "one-way 8 B over the raw hop of the same run", "<= 1.30")
def _():
    over = in_states(bench.run("pingpong", "--sizes", SIZES), "8 B", "over_hop")
    if not over:
        raise Missing("there is no hop to compare with")
    text = ", ".join(f"{state} {o['min']:.2f} {o['median']:.2f}" for state, o in over.items())
    return text, all(max(o["min"], o["median"]) <= 1.30 for o in over.values())


# ---- other patterns, against the best MPI

for label, limit in [("8 B", 0.40), ("1 KB", 0.65), ("64 KB", 0.95), ("1 MB", 1.0)]:
    @line("node", f"exchange {label} against the best MPI", f"<= {limit:.2f}")
    def _(label=label, limit=limit):
        return ratio_line(bench.run("exchange", "--sizes", "8,1k,64k,1M"), label, limit)

for label, limit in [("8 B", 0.70), ("1 KB", 0.80)]:
    @line("node", f"stream of {label} on one index against the best MPI", f"<= {limit:.2f}")
    def _(label=label, limit=limit):
        return ratio_line(bench.run("stream", "--sizes", "8,1k"), label, limit)


@line("node", "8 B, window of 64 on 64 indices, against the best MPI", "<= 0.35")
def _():
    return ratio_line(bench.run("window", "--sizes", "8"), "8 B", 0.35)


# ---- many receives posted, any index, unexpected messages

for count in [16, 600, 4096, 30000]:
    @line("node", f"{count} receives posted: ns each", "<= 12")
    def _(count=count):
        run = bench.run("prepost")
        ours = [figure(run, f"{count} {order}", 0)["results"]["fmpl"]["median"] for order in ("in order", "reverse")]
        return f"{min(ours):.1f} {max(ours):.1f}", max(ours) <= 12


@line("node", "one-way into 30000 posted, in reverse, against the best MPI into 16 in order", "<= 0.80")
def _():
    run = bench.run("prepost")
    ours = figure(run, "30000 reverse", 1)["results"]["fmpl"]["median"]
    peers = {n: r["median"] for n, r in figure(run, "16 in order", 1)["results"].items() if n != "fmpl"}
    best = min(peers, key=peers.get)
    return f"{ours / peers[best]:.2f} ({ours:.0f} ns, {best} {peers[best]:.0f} ns)", ours <= 0.8 * peers[best]


@line("node", "receive of any of 65536 indices against the indexed one", "<= 2.00")
def _():
    run = bench.run("anyindex", against=None)
    any_, indexed = (figure(run, label)["results"]["fmpl"] for label in ("any", "indexed"))
    ratios = [any_[k] / indexed[k] for k in ("min", "median")]
    return "{:.2f} {:.2f}".format(*ratios), max(ratios) <= 2.0


@line("node", "10000 sends before any receive: the receiver grows by, KiB", "<= 1024")
def _():
    run = bench.run("unexpected")
    grown = [figure(run, "10000 sends", n)["results"]["fmpl"]["most"] for n in (2, 3)]
    return "{:.0f} PSS, {:.0f} shared".format(*grown), max(grown) <= 1024


@line("node", "10000 sends before any receive: late receive in reverse, ns each", "<= 150")
def _():
    late = figure(bench.run("unexpected"), "10000 sends", 1)["results"]["fmpl"]["median"]
    return f"{late:.0f}", late <= 150


@line("node", "1 MB strided to strided (runs of 4 KB) over contiguous, cores alike near or far", "<= 1.30")
def _():
    run, ratios = bench.run("strided", against=None), {}
    states = [figure(run, f"1 MB {label}")["states"] for label in ("strided", "contiguous")]
    for state in sorted(set(states[0]) & set(states[1])):
        strided, plain = (of[state]["results"].get("fmpl", {"blocks": []}) for of in states)
        if min(len(strided["blocks"]), len(plain["blocks"])) >= 5:
            ratios[state] = [strided[k] / plain[k] for k in ("min", "median")]
    if not ratios:
        raise Missing("the cores were too seldom alike in both")
    return ", ".join(f"{state} {least:.2f} {median:.2f}" for state, (least, median) in ratios.items()), max(map(max, ratios.values())) <= 1.3


# ---- stopped processes, crowded cores, memory, start-up

for who, label in [("irecv of 1 MB posted, receiver stopped: the send completes", "receiver stopped: send"),
                   ("1 MB in the spool, sender stopped: the receiver gets it", "sender stopped: receive")]:
    @line("node", who, "whole data")
    def _(label=label):
        us = figure(bench.run("stopped", against=None), label)["results"]["fmpl"]["median"]
        return f"whole, {us:.0f} us", True

for label in ["token", "all at once"]:
    @line("node", f"ring of 8 ranks, 8 B, {label}, against the best MPI", "<= 1.00")
    def _(label=label):
        return ratio_line(bench.run("ring"), label, 1.0)


@line("node", "8 waiting ranks: processor time of a rank in 1 s of waiting, ms", "<= 1")
def _():
    most = figure(bench.run("idle", against=None), "waiting 1 s")["results"]["fmpl"]["median"]
    return f"{most:.2f}", most <= 1.0


@line("node", "64 ranks, 1024 indices, all have met: PSS of a rank, KiB", "<= 1024")
def _():
    run = bench.run("memory")
    others = {n: r["median"] for n, r in figure(run, "all have met", 1)["results"].items()}
    ours = others.pop("fmpl")
    return f"{ours:.0f} ({', '.join(f'{n} {v:.0f}' for n, v in others.items())})", ours <= 1024


@line("node", "start-up of 32 ranks against the best MPI", "< 1.00")
def _():
    text, _ = ratio_line(bench.run("startup", "--counts", "32"), "32 ranks", 1.0)
    ratios = in_states(bench.run("startup", "--counts", "32"), "32 ranks", "ratio").values()
    return text, all(max(ratio["min"], ratio["median"]) < 1.0 for ratio in ratios)


# ---- nothing but loads and stores on the path

FEW, MANY = 1000, 1_001_000
# Who meets whom first is chance, and costs a call or an allocation more or less at start: one in 10^4 round trips is none in the loop.
START = 100


def steady(iterations, prefix=(), env=None):
    """One block of this many 8 B round trips."""
    command = [*prefix, bench.fmpl, "bench", "pingpong", "--quiet", "--sizes", "8", "--rounds", "1", "--blocks", "1",
               "--iterations", str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode:
        raise Missing(done.stderr.strip()[-300:])


RANK = re.compile(r'execve\("[^"]*", \["[^"]*", "bench-part", "rank"')
CLONE = re.compile(r"clone3?\(.*\) = (\d+)")


def system_calls(iterations):
    """System calls of all threads of the ranks, by name."""
    with tempfile.TemporaryDirectory() as d:
        steady(iterations, ["strace", "-ff", "-s", "200", "-o", f"{d}/t"])
        texts = {p.name.split(".")[-1]: p.read_text() for p in pathlib.Path(d).iterdir()}
        wanted = [pid for pid, text in texts.items() if RANK.search(text)]
        if len(wanted) != 2:
            raise Missing(f"strace saw {len(wanted)} ranks")
        for pid in wanted:
            wanted += [t for t in CLONE.findall(texts[pid]) if t in texts]
        return collections.Counter(n for pid in wanted for n in re.findall(r"^(\w+)\(", texts[pid], re.M))


@line("node", "system calls in 10^6 round trips of 8 B (strace)", "0 + start")
def _():
    if not shutil.which("strace"):
        raise Missing("strace is not installed")
    # A rank that loses its core to something else makes its peer wait, and in the end sleep: the least of three runs.
    extra = min((system_calls(MANY) - system_calls(FEW) for _ in range(3)), key=lambda e: e.total())
    names = ", ".join(f"{name} {n}" for name, n in extra.most_common(4))
    return f"{extra.total()}{' (' + names + ')' if names else ''}", extra.total() < START


def allocations(iterations, library):
    """Calls that allocate or free, of the ranks."""
    with tempfile.TemporaryDirectory() as d:
        steady(iterations, env={"LD_PRELOAD": str(library), "FMPL_TEST_COUNT_DIR": d})
        counts = [p.read_text().split(" ", 1) for p in pathlib.Path(d).iterdir()]
        ranks = [int(n) for n, command in counts if re.match(r"\S+ bench-part rank ", command)]
        if len(ranks) != 2:
            raise Missing(f"{len(ranks)} ranks have counted")
        return sum(ranks)


@line("node", "allocations in 10^6 round trips of 8 B (preloaded counter)", "0 + start")
def _():
    with tempfile.TemporaryDirectory() as d:
        library = pathlib.Path(d, "count.so")
        source = ROOT / "tests" / "peers" / "count_malloc.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-fno-builtin", "-o", library, source], check=True)
        extra = min(allocations(MANY, library) - allocations(FEW, library) for _ in range(3))
    return str(max(extra, 0)), extra < START


# ---- faults and misuse: tests of their own, run from here

test_line("kill -9 of a random rank, 100 times in random traffic", "error in 1 s, nothing left",
          "cargo", "test", "--locked", "--release", "--test", "faults", "kill")
test_line("bad input gets a clear error and leaves the job usable", "every case",
          "cargo", "test", "--locked", "--release", "--test", "interface", "wrong_use")


# ---- a newcomer's two commands

def fresh(pattern, limit_s):
    commands, language = [], None
    for l in (ROOT / "README.md").read_text().splitlines():
        if l.startswith("```"):
            # A fence with a language begins a block, and any other ends it.
            language = l.strip("` ") if language is None else None
        elif language in ("sh", "bash", "console", ""):
            commands.append(l.strip().removeprefix("$ "))
    command = next((c for c in commands if pattern in c), None)
    if not command:
        raise Missing(f"the README has no command with {pattern!r}")
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["git", "clone", "-q", str(ROOT), f"{d}/fmpl"], check=True)
        env = {k: v for k, v in os.environ.items() if k != "CARGO_TARGET_DIR"}
        begin = time.monotonic()
        done = subprocess.run(command, shell=True, cwd=f"{d}/fmpl", env=env, capture_output=True, text=True)
        spent = time.monotonic() - begin
    tail = "" if done.returncode == 0 else ": " + (done.stderr or done.stdout).strip()[-150:]
    return f"{spent:.0f} s, exit {done.returncode}{tail}", done.returncode == 0 and spent < limit_s


@line("node", "fresh clone, README command 1: a ping-pong table, with the build", "< 180 s")
def _():
    return fresh("bench pingpong", 180)


@line("node", "fresh clone, README command 2: all tests", "pass")
def _():
    return fresh("tests/run", 7200)
