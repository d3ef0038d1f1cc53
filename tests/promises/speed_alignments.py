"""That no alignment of the buffers is slow: the slowest over the fastest, of messages and of what else moves bytes."""

PLACES = (0, 8, 16, 32, 64, 4080)
SLOWEST = 1.3
# Of an echo each rank's one buffer is source and destination by turns, so that half of the pairs are all.
PAIRS = {
    "pingpong": [f"{a},{b}" for a in PLACES for b in PLACES],
    "echo": [f"{a},{b}" for a in PLACES for b in PLACES if a <= b],
}
MESSAGES = ("1k", "4k", "16k", "64k", "256k", "1M", "4M", "16M")
# The same place on both sides, and the two that malloc and whole pages make.
SIDES = [f"{a},{a}" for a in PLACES] + ["0,16", "16,0"]
CALLS = [
    ("anysource", "any source", ("4k", "64k", "1M"), [""]),
    ("rma", "global memory,", ("4k", "64k", "1M"), ["put ", "get "]),
    ("bcast", "bcast", ("8k", "64k", "1M", "8M"), [""]),
    ("reduce", "reduce", ("8k", "1M"), [""]),
    ("allreduce", "allreduce", ("8k", "1M"), [""]),
    ("allgather", "allgather", ("8k", "1M"), [""]),
]
BLACS_KINDS = ("dgesd2d contiguous", "dgesd2d lda 2m", "dtrsd2d triangle", "dgsum2d to all", "dgebs2d")


def alignment_line(sweep, name, title, size, prefix):
    @speed_line(f"{title} {prefix}{size_text(size)}: slowest alignment / fastest", f"<= {SLOWEST}", [(sweep, name, size)])
    def _():
        cases = {offset: sweep.case(name, f"{prefix}{size_text(size)} at {offset}") for offset in sweep.offsets}
        return slowest_over_fastest(cases, SLOWEST)


for name, title in ("pingpong", "one way"), ("echo", "one way, echo"):
    sweep = Sweep(PAIRS[name])
    for size in MESSAGES:
        alignment_line(sweep, name, title, size, "")

calls = Sweep(SIDES)
for name, title, sizes, prefixes in CALLS:
    for size in sizes:
        for prefix in prefixes:
            alignment_line(calls, name, title, size, prefix)

# The BLACS are a program of their own, and so a sweep of their own.
matrices = Sweep(SIDES)
for kind in BLACS_KINDS:
    for size in ("8k", "64k", "1M"):
        alignment_line(matrices, "blacs", "BLACS,", size, kind + " ")
