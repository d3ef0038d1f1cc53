"""The pictures of "A million nodes": memory by the size of the job, the ways to a peer by size, values by ranks.

A line computes or measures anew, draws, and looks at the picture that docs/ has: with FMPL_TEST_BLESS=1 it writes that; without, it looks whether the
same lines are in it, over as many points. `picture_of_docs` is with the other pictures.
"""

import math

COLOURS = ["#005ab5", "#dc3220", "#e69f00", "#117733"]
# Where the picture's field lies: left, top, right, bottom.
FIELD = (80, 50, 820, 470)


def decimal(value):
    """1500 as 1.5 k: a number beside an axis, or in a legend."""
    for unit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {letter}"
    return f"{value:.3g}"


def drawn(title, across, up, series, command):
    """A picture with logarithmic axes, SVG: series {name: [(x, y), ...]}, both axes' titles, the command that makes it."""
    left, top, right, bottom = FIELD
    points = [point for of in series.values() for point in of]
    x0, x1 = (edge(math.log2(x) for x, _ in points) for edge in (min, max))
    y0, y1 = math.floor(min(math.log10(y) for _, y in points)), math.ceil(max(math.log10(y) for _, y in points))
    place = lambda x, y: (left + (math.log2(x) - x0) / (x1 - x0) * (right - left), bottom - (math.log10(y) - y0) / max(y1 - y0, 1) * (bottom - top))
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 560" font-family="sans-serif" font-size="14">',
        f"<desc>{xml.sax.saxutils.escape(command)}</desc>",
        '<rect width="860" height="560" fill="white"/>',
        f'<text x="430" y="28" font-size="18" text-anchor="middle">{xml.sax.saxutils.escape(title)}</text>',
        f'<text x="450" y="512" text-anchor="middle">{across}</text>',
        f'<text x="20" y="260" text-anchor="middle" transform="rotate(-90 20 260)">{up}</text>',
    ]
    for k in range(y0, y1 + 1):
        _, y = place(2**x0, 10.0**k)
        out.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ccc"/><text x="{left - 6}" y="{y + 5:.1f}" text-anchor="end">{decimal(10.0**k)}</text>')
    step = max(1, round((x1 - x0) / 8))
    for k in range(math.ceil(x0), math.floor(x1) + 1, step):
        x, _ = place(2.0**k, 10.0**y0)
        out.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="#eee"/><text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{decimal(2.0**k)}</text>')
    for n, (name, of) in enumerate(series.items()):
        colour = COLOURS[n % len(COLOURS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in sorted(of)))
        out.append(f'<polyline class="series" points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text class="series" x="{left + 10 + 250 * (n % 3)}" y="{532 + 18 * (n // 3)}" fill="{colour}">{xml.sax.saxutils.escape(name)}</text>')
    return ("\n".join([*out, "</svg>"]) + "\n").encode()


def lines_of(data):
    """What a picture shows: the name of each series, and how many points each has."""
    root = xml.etree.ElementTree.fromstring(data)
    of = [element for element in root if element.get("class") == "series"]
    return [(element.text or len(element.get("points").split())) for element in of]


def picture(name, *of):
    made = drawn(*of)
    return picture_of_docs(name, "memory.md", made, lambda kept: lines_of(kept) == lines_of(made))


@line("million", "picture: bytes of a node by nodes of 4 ranks, 2^0 to 2^22: the usual way, the paper's, FMPL", "docs/million.svg")
def _():
    columns = {"baseline": "usual way", "corrected": "paper, corrected", "ours": "FMPL"}
    found = {nodes: model(nodes, 4) for nodes in (1 << k for k in range(23))}
    series = {name: [(nodes, of[column]["all"]) for nodes, of in found.items()] for column, name in columns.items()}
    kept, well = picture("million.svg", "memory of a node, every budget full", "nodes of 4 ranks", "bytes", series, "fmpl model --nodes N --ranks 4 --json")
    return f"{found[1 << 22]['ours']['all'] / 1e6:.1f} MB at 2^22; {kept}", well


# ---- the ways to a peer, by size

WAY_SIZES = {"8": 8, "64": 64, "512": 512, "4k": 4096, "32k": 32768, "256k": 262144, "1M": 1 << 20}
WAY_NAMES = {"datagrams": "datagrams, buffers of all", "rings": "datagrams, a ring of its own", "all": "connected (TCP)"}


@functools.cache
def ways_by_size():
    """Nanoseconds of a message one way on the loopback, by turns in one run: {way: [(bytes, median), ...]}."""
    found = collections.defaultdict(list)
    for _ in range(3):
        for way in WAYS_TO_A_PEER:
            blocks = one_way("tcp:lo", sizes=",".join(WAY_SIZES), rounds=1, FMPL_CONNECT=way)
            if len(blocks) != len(WAY_SIZES):
                raise Missing(f"figures of {', '.join(blocks)}")
            for size, of in zip(WAY_SIZES.values(), blocks.values()):
                found[way, size].extend(of)
    return {way: [(size, statistics.median(found[way, size])) for size in WAY_SIZES.values()] for way in WAYS_TO_A_PEER}


@line("million", "picture: one way between two nodes by size, by each way to a peer: datagrams as all share, by a ring, connected", "docs/million_ways.svg")
def _():
    series = {WAY_NAMES[way]: of for way, of in ways_by_size().items()}
    command = f"FMPL_NETWORK=tcp:lo FMPL_CONNECT=WAY fmpl bench pingpong --nodes 2 --sizes {','.join(WAY_SIZES)}"
    kept, well = picture("million_ways.svg", "one way, by each way to a peer", "bytes", "ns", series, command)
    return "; ".join(f"{name}: {of[0][1] / 1e3:.1f} us, {of[-1][1] / 1e3:.0f} us" for name, of in series.items()) + f"; {kept}", well


# ---- values of the job, by ranks


@line("million", "picture: a get from the spread store beside one held by rank 0, by ranks, alone and all at once (simulation)", "docs/million_store.svg")
def _():
    rows = startup()
    of = lambda what, k: [(row["ranks"], row[what][k]) for row in rows]
    series = {"spread": of("get_ns", 0), "held by rank 0": of("get_ns", 1), "spread, all ask at once": of("get_at_once_ns", 0),
              "rank 0, all ask at once": of("get_at_once_ns", 1)}
    kept, well = picture("million_store.svg", "a get of another rank's value while the job starts (simulation)", "ranks", "ns", series, "fmpl model --startup --json")
    spread, held = rows[-1]["get_ns"]
    return f"{spread / 1e3:.0f} and {held / 1e3:.0f} us at 2^20, alone; {kept}", well
