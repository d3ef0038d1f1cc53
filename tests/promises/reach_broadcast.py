"""A broadcast between nodes goes by the way that is the fastest there: in the rig (tests/rig), with what `fmpl bench tune-coll` has found."""

# So many turns of these sizes: of the long ones a call takes seconds where packets are lost.
BCAST_TURNS = {"64k,512k": 6, "2M,8M": 2}


@functools.cache
def broadcasts(loss):
    """Medians in us of a broadcast on 4 nodes, by turns in one boot: {size: {way: us}}; `chosen`: by itself, as tuned in that boot."""
    bench_them = f"{pathlib.Path(bench.fmpl).resolve()} bench"
    options = "--nodes 4 --ranks 4 --quiet --rounds 1 --blocks 2 --iterations 4 --sizes"
    ways = ["", *(f"FMPL_COLL_FAR_BCAST={way}" for way in ("tree", "chain", "ring", "multicast"))]
    turn = lambda sizes: " && ".join(
        f"echo way {way.partition('=')[2] or 'chosen'} && {way} {bench_them} bcast {options} {sizes}" for way in ways
    )
    tuned = f'{bench_them} tune-coll {options} {",".join(BCAST_TURNS)} >/tmp/tuned && eval "$(grep ^export /tmp/tuned)"'
    turns = [turn(sizes) for sizes, times in BCAST_TURNS.items() for _ in range(times)]
    command = " && ".join([f"rig-link all loss {loss}%", tuned, *turns])
    # All ways are there at once while they are compared, each with buffers of its own.
    done = subprocess.run(["tests/rig/run", "--memory", "3072", "--timeout", "5400", command], cwd=ROOT, capture_output=True, text=True)
    times, way = collections.defaultdict(lambda: collections.defaultdict(list)), None
    for row in map(str.split, done.stdout.splitlines()):
        if row[:1] == ["way"]:
            way = row[1]
        elif row[1:2] in (["KB"], ["MB"]) and len(row) >= 4:
            times[" ".join(row[:2])][way].append(float(row[3]))
    if done.returncode or not times:
        raise Missing((done.stdout + done.stderr)[-300:])
    return {size: {way: statistics.median(t) for way, t in of.items()} for size, of in times.items()}


for loss in 0, 2:

    @line("reach", f"bcast of 64 KB to 8 MB on 4 nodes of the rig, {loss} % loss: chosen by itself, over the fastest way of the same boot", "<= 1.1")
    def _(loss=loss):
        ratios = {}
        for size, of in broadcasts(loss).items():
            best = min((way for way in of if way != "chosen"), key=of.get)
            ratios[size] = (of["chosen"] / of[best], best)
        return ", ".join(f"{size} {r:.2f} of {best}" for size, (r, best) in ratios.items()), max(r for r, _ in ratios.values()) <= 1.1
