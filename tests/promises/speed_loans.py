"""Messages that are handed over: what a loan costs beside a message of 8 bytes, and a pool that goes through kills. In each round all three
figures of `fmpl bench loan` are of the same blocks."""

LINES.setdefault("speed", [])
LOAN_SIZES = ["8 B", "64 B", "1 KB", "4 KB", "64 KB", "1 MB", "16 MB", "64 MB"]


def loans():
    return bench.run("loan", "--sizes", "8,64,1k,4k,64k,1M,16M,64M", against="")


def loan_blocks(case):
    """Of each block the 8 B message, the hand-over, and that with two lines touched, in nanoseconds."""
    return list(zip(*(f["results"]["fmpl"]["blocks"] for f in case["figures"][:3])))


for label in LOAN_SIZES:
    @line("speed", f"loan of {label}: handed over and returned, each way, against a message of 8 B", "<= 1.25")
    def _(label=label):
        case = next(c for c in loans()["cases"] if c["label"] == label)
        blocks = loan_blocks(case)
        over = statistics.median(handed / message for message, handed, _ in blocks)
        message, handed = (statistics.median(b[k] for b in blocks) for k in range(2))
        return f"{over:.2f} ({handed:.0f} ns beside {message:.0f} ns, hop {case['hop_ns']['median']:.0f} ns)", over <= 1.25

for label in LOAN_SIZES:
    @line("speed", f"loan of {label}: its first and last line written and read: beyond the above, in hops", "<= 2")
    def _(label=label):
        case = next(c for c in loans()["cases"] if c["label"] == label)
        blocks = loan_blocks(case)
        hop = case["hop_ns"]["median"]
        hops = statistics.median((touched - 1.25 * message) / hop for message, _, touched in blocks)
        return f"{hops:.2f} ({statistics.median(b[2] for b in blocks):.0f} ns, hop {hop:.0f} ns)", hops <= 2


@line("speed", "bytes copied by all these hand-overs", "0")
def _():
    copied = max(max(c["figures"][3]["results"]["fmpl"]["blocks"]) for c in loans()["cases"])
    return f"{copied:.0f}", copied == 0


@line("speed", "a pool of 1000 loans, 10^7 hand-overs to three ranks of which two are killed: lost, twice", "0, 0")
def _():
    env = tests_env(CARGO_PROFILE_RELEASE_LTO="off", CARGO_PROFILE_RELEASE_CODEGEN_UNITS="16", FMPL_TEST_LONG="1")
    command = ["cargo", "test", "--locked", "--release", "--test", "loans", "--", "a_pool_goes_through_kills"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    found = re.search(r"(\d+) hand-overs.*, (\d+) places", done.stdout)
    if done.returncode or not found:
        return (done.stdout + done.stderr)[-300:], False
    return f"0, 0 of {found[1]} hand-overs, {found[2]} loans there at the end", int(found[2]) == 1000
