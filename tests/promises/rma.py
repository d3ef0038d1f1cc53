"""Global memory."""

RMA = ("rma", "--sizes", "8,8k")

for label, limit in [("put 8 B", 0.50), ("fetch-add 8 B", 0.50), ("put 8 KB", 0.80), ("get 8 KB", 0.80)]:
    @line("rma", f"{label} and completion against the best MPI's with flush", f"<= {limit:.2f}")
    def _(label=label, limit=limit):
        return ratio_line(bench.run(*RMA), label, limit)

for memory in ["fmpl_alloc", "private"]:
    for size in ["8 KB", "64 KB", "1 MB"]:
        @line("rma", f"copy of {size} by a third rank over its owner's, {memory}", "<= 1.50")
        def _(memory=memory, size=size):
            run = bench.run("rma3", "--sizes", "8k,64k,1M", against=None)
            third, owner = (figure(run, f"{memory} {size}", n)["results"]["fmpl"] for n in (0, 1))
            ratios = [third[k] / owner[k] for k in ("min", "median")]
            return f"{ratios[0]:.2f} {ratios[1]:.2f} ({third['min'] / 1e3:.2f} us)", max(ratios) <= 1.5


@line("rma", "the simulator of many senders against 8, 16, 32 measured: the worst of five runs", "<= 20 %")
def _():
    subprocess.run(["cargo", "build", "--locked", "--release", "--example", "incast"], cwd=ROOT, env=tests_env(), check=True)
    simulator, worst = TARGET / "shows" / "release" / "examples" / "incast", 0
    for _ in range(5):
        command = [bench.fmpl, "run", "-n", "33", "--bind", "none", "--", simulator, "--rounds", "1", "--counts", "64"]
        done = subprocess.run(command, capture_output=True, text=True)
        errors = [abs(int(e)) for e in re.findall(r"^ +\d+ senders .* ([+-]\d+) %$", done.stdout, re.M)]
        if len(errors) != 3:
            raise Missing((done.stderr or done.stdout)[-200:])
        worst = max(worst, *errors)
    return f"{worst} %", worst <= 20


def rma_test(name, pattern):
    """Runs a long test of tests/rma; what it says that fits the pattern."""
    command = ["cargo", "test", "--locked", "--release", "--quiet", "--test", "rma", "--", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=tests_env(FMPL_TEST_LONG="1"))
    said = re.findall(pattern, done.stdout)
    return said, done.returncode == 0


@line("rma", "10 million mixed atomics from 8 ranks on 64 words: the sums", "right")
def _():
    said, well = rma_test("sums_of_mixed", r"10000000 on shared memory, : ([\d.]+) s")
    return (f"right, {said[0]} s" if said else "not run"), well and bool(said)


@line("rma", "3 million remote commands: the last three tenths over the first three", "<= 1.30")
def _():
    said, well = rma_test("remote_commands", r"3000000 commands, ns each by tenths: \[([\d, ]+)\]")
    if not said:
        raise Missing("the test did not say its times")
    tenths = [float(n) for n in said[0].split(",")]
    first, last = sorted(tenths[:3])[1], sorted(tenths[-3:])[1]
    return f"{last / first:.2f} ({first:.0f} to {last:.0f} ns)", well and last <= 1.3 * first
