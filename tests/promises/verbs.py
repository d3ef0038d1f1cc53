"""RDMA between nodes: counted and timed in the kernel of tests/rig, beside perftest in the same boot."""

class Rig:
    """One boot of the rig: the figures of `conformance counted` and perftest's, `rounds` times by turns."""

    def __init__(self):
        self.figures = None

    def get(self, name):
        if self.figures is None:
            self.figures = self.run()
        if isinstance(self.figures, Missing):
            raise self.figures
        if name not in self.figures:
            raise Missing(f"the rig gave no figure {name}")
        return self.figures[name]

    def run(self):
        try:
            program = test_program("conformance")
        except Missing as missing:
            return missing
        part = (f"WIRE_ROUNDS=1000 {program} counted | grep '^figure' && tests/rig/perftest lat 8 && tests/rig/perftest bw 1048576")
        done = subprocess.run(["tests/rig/run", "--timeout", "280", " && ".join([part] * 3)], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return Missing((done.stdout + done.stderr)[-300:])
        all_of = collections.defaultdict(list)
        for words in map(str.split, done.stdout.splitlines()):
            if words[0] == "figure":
                all_of[words[1]].append(float(words[2]))
            elif words[0] in ("lat", "bw"):
                all_of[words[0]].append(float(words[2]))
        return {name: sorted(values)[len(values) // 2] for name, values in all_of.items()}


rig = Rig()

for name, title, low, high in [
    ("posting", "a posted receive of 8 B: RDMA writes of its posting", 1, 1),
    ("landing", "a message of 8 B into a posted receive: RDMA writes, payload and all", 1, 1),
    ("hop_writes", "ping-pong of 8 B: RDMA writes a hop", 1, 1.05),
    ("hop_completions", "ping-pong of 8 B: completions polled a hop", 0, 0.05),
    ("wire", "1 MB into a posted receive, none of it copied by a processor: bytes on the wire for one", 1, 1.03),
    ("strided_copied", "1 MB strided to strided (runs of 4 KB), posted: bytes copied by processors", 0, 0),
]:
    @line("verbs", title, f"<= {high:.2f}")
    def _(name=name, low=low, high=high):
        value = rig.get(name)
        return f"{value:.3f}", low <= value <= high


@line("verbs", "8 B one way over the median of ib_write_lat, same boot", "<= 1.60")
def _():
    ours, theirs = rig.get("hop_us"), rig.get("lat")
    return f"{ours / theirs:.2f} ({ours:.1f} and {theirs:.1f} us)", ours <= 1.6 * theirs


@line("verbs", "1 MB: bandwidth over that of ib_write_bw, same boot", ">= 0.85")
def _():
    ours, theirs = rig.get("bandwidth_mb"), rig.get("bw")
    return f"{ours / theirs:.2f} ({ours:.1f} and {theirs:.1f} MB/s)", ours >= 0.85 * theirs


for title, arguments in [
    ("point-to-point tests between nodes of one kernel, shared-memory bytes 0",
     ["--timeout", "900", "{conformance} promise_is_kept_between"]),
    ("the same where 2 % of all packets are lost",
     ["--timeout", "900", "rig-link all loss 2% && RIG_SHORT=1 FMPL_TEST_SHORT=1 {conformance} promise_is_kept_between"]),
    ("the same between two kernels",
     ["--timeout", "900", "--pair"] + 2 * ["tests/rig/across conformance {conformance}"]),
    ("killed and stopped peers, broken links, queue pairs and keys, an overrun queue: errors name rank and cause, the others go on",
     ["--timeout", "300", "{faults} another_node"]),
    ("the same where a whole kernel ends",
     ["--timeout", "120", "--lost", "--pair"] + 2 * ["tests/rig/across lost {faults}"]),
    ("an address mapped anew under the registration cache 10 000 times: never a stale byte",
     ["--timeout", "280", "FMPL_TEST_LONG=1 {verbs} remap"]),
]:
    @line("verbs", title, "pass")
    def _(arguments=arguments):
        return in_the_rig(*arguments)


@functools.cache
def few_queue_pairs():
    """What the test of few contexts says: (ranks, messages, connections given up, contexts put away) of each of its jobs."""
    program = test_program("conformance")
    done = subprocess.run(["tests/rig/run", "--timeout", "280", f"{program} few_queue"], cwd=ROOT, capture_output=True, text=True)
    lines = re.findall(r"(\d+) ranks on .*: (\d+) messages, (\d+) connections given up, (\d+) contexts put away", done.stdout)
    if done.returncode or not lines:
        raise Missing((done.stdout + done.stderr)[-300:])
    return [tuple(map(int, found)) for found in lines]


@line("verbs", "13 nodes of 4 contexts, random traffic with 12 peers each: nothing lost or out of order; contexts put away", ">= 13")
def _():
    ranks, messages, retired, away = few_queue_pairs()[0]
    return f"{away}, and {retired} connections given up, for {messages} messages", ranks == 13 and away >= 13


@line("verbs", "ten minutes of random traffic among 4 nodes, links that lose 2 %: nothing lost or out of order; messages", "> 1000")
def _():
    command = f"rig-link all loss 2% && RIG_SOAK=600 {test_program('conformance')} goes_on_and_on"
    done = subprocess.run(["tests/rig/run", "--timeout", "1200", command], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) messages in (\d+) jobs, (\d+) s", done.stdout)
    if not found or done.returncode:
        raise Missing((done.stdout + done.stderr)[-300:])
    return f"{found[1]} in {found[3]} s", int(found[1]) > 1000


@line("verbs", "bcast by multicast, 4 nodes, links that lose 2 %: each packet leaves its root once, all data right; packets sent again", "> 0")
def _():
    command = f"RIG_SHORT=1 {test_program('collective')} by_multicast"
    done = subprocess.run(["tests/rig/run", "--timeout", "280", command], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) packets to all, (\d+) again to one", done.stdout)
    if not found:
        raise Missing((done.stdout + done.stderr)[-300:])
    return f"{found[2]} of {found[1]}", done.returncode == 0 and int(found[2]) > 0


@functools.cache
def ways_between_nodes():
    """Times of a bcast on 4 nodes by each way: {size: {way: microseconds}}."""
    subprocess.run(["cargo", "build", "--release", "--bin", "fmpl"], cwd=ROOT, check=True, capture_output=True)
    fmpl = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release", "fmpl").resolve()
    bench = f"{fmpl} bench bcast --nodes 4 --ranks 4 --quiet --rounds 1 --blocks 2 --iterations 4 --sizes 1M,8M"
    command = " && ".join(f"echo way {way} && FMPL_COLL_FAR_BCAST={way} {bench}" for way in ("tree", "chain", "multicast"))
    done = subprocess.run(["tests/rig/run", "--timeout", "280", command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Missing((done.stdout + done.stderr)[-300:])
    return times_by_way(done.stdout)


def times_by_way(text):
    """From lines `way NAME` and `1 MB  MIN  MEDIAN`: {size: {way: median}}."""
    times, way = collections.defaultdict(dict), None
    for row in map(str.split, text.splitlines()):
        if row[:1] == ["way"]:
            way = row[1]
        elif row[1:2] == ["MB"]:
            times[row[0]][way] = float(row[3])
    return times


for size in ("1", "8"):
    @line("verbs", f"bcast of {size} MB on 4 nodes, chain and multicast, over the binomial tree, same boot", "< 1.00")
    def _(size=size):
        times = ways_between_nodes()[size]
        ratios = {way: times[way] / times["tree"] for way in ("chain", "multicast")}
        return ", ".join(f"{way} {ratio:.2f}" for way, ratio in ratios.items()), max(ratios.values()) < 1


@functools.cache
def memory_of_256():
    """`fmpl info --memory 256` in the rig: its text."""
    command = ["tests/rig/run", "--timeout", "900", "--memory", "6000", f"{pathlib.Path(bench.fmpl).resolve()} info --memory 256"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Missing((done.stdout + done.stderr)[-300:])
    return done.stdout


@line("verbs", "256 ranks on 256 nodes, each talks to 3: queue pairs of a rank", "<= 3")
def _():
    pairs = int(re.search(r"\+(\d+)  queue pairs", memory_of_256())[1])
    return str(pairs), pairs <= 3


@line("verbs", "and the bytes that these three add, by fmpl info --memory, over those that the kernel counts", "0.90 to 1.10")
def _():
    text = memory_of_256()
    table, kernel = (int(re.search(rf"\+(\d+)  {name}", text)[1]) for name in ("together", "as the kernel counts it"))
    return f"{table / kernel:.2f} ({kernel // 1024} KiB)", 0.9 <= table / kernel <= 1.1
