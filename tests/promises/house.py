# The house: layers, sizes, what is unsafe. Read from the source, beside the commit from which the present layout began.
# Run by tests/shows, in which `line`, `test_line`, `Missing` and `ROOT` are.

# The commit before, and what has moved out of the library and the command since.
HOUSE_BEFORE = "ffe2589"
HOUSE_MOVED = ["examples/incast"]
# Files and directories that hold only what that commit could not do at all: (place, what it is). What old files have gained for the
# same, such as the rows of settings and the launcher's part for other machines, is not taken out.
HOUSE_NEW = [
    ("src/fabric/network/forget.rs", "peers are forgotten"),
    ("src/p2p/remote/forget.rs", "the same: what is under way"),
    ("src/fabric/network/crowd.rs", "the same: strangers wait"),
    ("src/fabric/network/packed.rs", "peers whose messages nobody receives, in few bytes"),
    ("src/fabric/network/link/packing.rs", "the same: what is kept of one"),
    ("src/fabric/network/link/freed.rs", "windows of freed communicators go back"),
    ("src/lane/remote/freed.rs", "the same: what is said of them"),
    ("src/lane/remote/board.rs", "acknowledgements of neighbouring indices in few writes"),
    ("src/fabric/network/turns/silence.rs", "when a peer that does not answer is late"),
    ("src/fabric/network/turns/line.rs", "who waits for a place, in thousands"),
    ("src/fabric/network/turns/tests.rs", "the same: what both end"),
    ("src/lane/table/doors.rs", "the same: lanes that may go"),
    ("src/comm/claim/elsewhere.rs", "the same: claims of peers on other nodes"),
    ("src/p2p/any_source/remote/road/several.rs", "several told at once of a multicast between nodes"),
    ("src/p2p/ghosts.rs", "ranks that one process answers for"),
    ("src/p2p/ghosts/", "the same: their part in the protocol"),
    ("src/p2p/group/words.rs", "ranks of communicators once on a node"),
    ("src/launch/ghosts.rs", "the same: what they would have published"),
    ("src/bin/fmpl/memory/ghosts.rs", "the same: fmpl info --memory --ghosts"),
    ("src/bin/fmpl/memory/senders.rs", "what one rank takes to which many processes send"),
    ("src/fabric/ofi/", "networks other than InfiniBand and RoCE, by libfabric"),
    ("src/fabric/tcp/", "TCP by sockets of the system"),
    ("src/lane/remote/annex.rs", "the same: messages of 105 bytes to 8 KiB without a posting"),
    ("src/p2p/remote/annex.rs", "the same"),
    ("src/fabric/network/cache/", "65 536 registrations that are found without a lock"),
    ("src/fabric/areas.rs", "memory of the library's in areas of the program's"),
    ("src/p2p/any_source/receive/task.rs", "one receive for a task or a multicast"),
    ("src/fabric/datagram/", "datagrams without connections"),
    ("src/fabric/verbs/carrier.rs", "the same: over a device's unreliable datagrams"),
    ("src/fabric/verbs/rings.rs", "the same: room for one peer's"),
    ("src/fabric/two_ways.rs", "both, and who takes which"),
    ("src/fabric/network/costs.rs", "the same: what it costs here"),
    ("src/fabric/network/kept.rs", "the same: connections that are kept"),
    ("src/fabric/network/switching.rs", "the same: changes between them"),
    ("src/fabric/served/", "what both of them do in a device's place"),
    ("src/launch/daemon/", "jobs on several machines: the daemons"),
    ("src/launch/hosts.rs", "the same: lists of machines"),
    ("src/launch/server/tree.rs", "the same: servers that form a tree"),
    ("src/launch/activity.rs", "what ranks are at when a job has taken too long"),
    ("src/launch/pmix.rs", "launchers that speak PMIx"),
    ("src/launch/pmix/", "the same: declarations of libpmix"),
    ("src/launch/mpi.rs", "an MPI in the same process"),
    ("src/launch/beside.rs", "the same: its launcher's connection"),
    ("src/launch/id.rs", "identifiers that the program passes round"),
    ("src/launch/keeper.rs", "start-up without a root that holds everything: the keeper"),
    ("src/launch/keeper/", "start-up without a root that holds everything"),
    ("src/launch/costs.rs", "the same: what it costs a rank"),
    ("src/fabric/network/ways.rs", "the choice of ways from the history of sources"),
    ("src/ffi/c/outside.rs", "the same: the calls"),
    ("src/launch/slurm.rs", "plain steps of Slurm"),
    ("src/base/munge.rs", "the same: munge"),
    ("src/launch/debug.rs", "ranks under a debugger"),
    ("src/bin/fmpl/run/debug.rs", "the same: the user's terminal"),
    ("src/bin/fmpl/run/spelling.rs", "options of mpirun and mpiexec"),
    ("src/python/", "the Python package"),
    ("src/derive/", "a derive for plain structures"),
    ("src/comm/awaiting.rs", "requests as futures"),
    ("src/comm/agree/part.rs", "communicators of some ranks"),
    ("src/coll/ticket.rs", "several collective calls of a communicator at a time"),
    ("src/ffi/c/tickets.rs", "the same: the calls"),
    ("src/coll/uneven.rs", "collective calls of blocks that differ in length"),
    ("src/ffi/c/uneven.rs", "the same: the calls"),
    ("src/p2p/request/prepared.rs", "messages that are prepared once"),
    ("src/comm/prepared.rs", "the same: in Rust"),
    ("src/ffi/c/prepared.rs", "the same: the calls"),
    ("src/ffi/fortran/prepared.rs", "the same: their Fortran names"),
    ("src/comm/requests.rs", "requests completed several at a time"),
    ("src/p2p/request/several.rs", "the same: the wait"),
    ("src/ffi/c/requests.rs", "the same: the calls"),
    ("src/ffi/fortran/requests.rs", "the same: their Fortran names"),
    ("src/comm/grid.rs", "grids of ranks"),
    ("src/ffi/c/grids.rs", "the same: the calls"),
    ("src/ffi/fortran/grids.rs", "the same: their Fortran names"),
    ("src/p2p/grid.rs", "the same: who is whose neighbour"),
    ("src/coll/neighbours.rs", "the same: exchanges with neighbours"),
    ("src/base/named.rs", "names of communicators"),
    ("src/base/kernel/long_double.rs", "reductions of long double"),
    ("src/base/scattered.rs", "random numbers of the weather of datagrams and of links that change ways in tests"),
    ("src/base/sorting.rs", "sorting by one function for all types"),
    ("src/base/short_float.rs", "reductions of floating-point numbers of 16 bits"),
    ("src/base/located.rs", "reductions to a value and where it is"),
    ("src/comm/shared_window.rs", "shared windows of a node"),
    ("src/p2p/window.rs", "the same: what a process knows of them"),
    ("src/ffi/c/windows.rs", "the same: the calls"),
    ("src/bin/fmpl/top.rs", "fmpl top"),
    ("src/base/topology", "levels of the network"),
    ("src/p2p/any_source/multicast/forms.rs", "multicasts in parts"),
    ("src/p2p/any_source/multicast/gather.rs", "the same: gathering"),
    ("src/p2p/any_source/multicast/held.rs", "the same: blocks that others read"),
    ("src/p2p/any_source/multicast/early.rs", "multicasts that overlap: full rings"),
    ("src/comm/watched.rs", "the same: a rank seen from without"),
    ("src/lane/watched.rs", "the same: its messages"),
    ("src/fabric/shm/region/others.rs", "the same: its region"),
    ("src/bin/fmpl/bench/page.rs", "fmpl bench --html"),
    ("src/lane/traffic.rs", "counters by way"),
    ("src/comm/stats.rs", "fmpl run --stats: a rank's part"),
    ("src/bin/fmpl/stats.rs", "the same: the launcher's part"),
    ("src/base/trace.rs", "trace"),
    ("src/base/trace/", "trace: events, and how they are written"),
    ("src/bin/fmpl/trace.rs", "fmpl trace"),
    ("src/ffi/second_names.rs", "second names of the C calls, for tools"),
    ("src/bin/fmpl/install/", "small libraries, manual pages, completions"),
]
# Where unsafe code belongs.
HOUSE_EDGE = ("src/base/", "src/fabric/", "src/lane/", "src/ffi/", "src/python/")


def rust_files(commit=None):
    """{path: text} of the library, the command and the BLACS, without tests and models; of a commit, or as they are now."""
    places = ["src", "blacs/src", *([] if commit else HOUSE_MOVED)]
    git = lambda *args: subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
    listed = git("ls-tree", "-r", "--name-only", commit, *places) if commit else git("ls-files", "--", *places)
    if listed.returncode:
        raise Missing(listed.stderr.strip()[-300:])
    kept = [p for p in listed.stdout.splitlines() if p.endswith(".rs") and not re.search(r"(^|/)(tests?|model|simulated|simulation)(/|\.rs$)", p)]
    text = lambda p: git("show", f"{commit}:{p}").stdout if commit else (ROOT / p).read_text()
    return {p: text(p) for p in kept}


def code_of(text):
    """Its lines without comments, empty ones, and modules of tests; as (number, line)."""
    lines, skip = [], None
    for number, whole in enumerate(text.splitlines(), 1):
        if skip is not None:
            # The module ends where its brace is closed, at the indentation of its beginning.
            if whole.startswith(skip + "}"):
                skip = None
            continue
        if re.match(r"\s*#\[cfg\((test|all\(test.*|loom)\)\]", whole):
            lines.append((number, whole))
            continue
        module = re.match(r"(\s*)(pub(\(.*?\))? )?mod \w+ \{", whole)
        if module and lines and re.match(r"\s*#\[cfg\((test|all\(test|loom)", lines[-1][1]):
            lines.pop()
            skip = module[1]
            continue
        bare = whole.split("//")[0] if '"' not in whole else whole
        if bare.strip() and not whole.lstrip().startswith("//"):
            lines.append((number, bare))
    return lines


def reasoned(text, number):
    """Does the comment at this line, or on the lines before it, give a reason for its length?"""
    before = text.splitlines()[max(0, number - 12) : number]
    return any("long because" in l.lower() for l in before)


test_line("imports that go up, of all modules", "0", "cargo", "test", "--locked", "--test", "layers", set_name="house")


@line("house", "lines of code above the fabric that name verbs", "0")
def _():
    found = [(p, n) for p, text in rust_files().items() if not p.startswith(("src/fabric/", "src/bin/", "src/base/config"))
             for n, l in code_of(text) if re.search(r"\bverbs\b", l)]
    files = collections.Counter(p for p, _ in found)
    return f"{len(found)} in {len(files)} files" + (f", most in {files.most_common(1)[0][0]}" if files else ""), not found


@line("house", "files over 500 lines without a reason beside it (`long because`)", "0")
def _():
    long = [(len(text.splitlines()), p) for p, text in rust_files().items()
            if len(text.splitlines()) > 500 and "long because" not in text[:3000].lower()]
    return f"{len(long)}" + (f", the longest {max(long)[1]} with {max(long)[0]}" if long else ""), not long


@line("house", "functions over 80 lines without a reason beside it", "0")
def _():
    long = []
    for p, text in rust_files().items():
        lines = text.splitlines()
        for k, l in enumerate(lines):
            head = re.match(r"(\s*)(pub(\(.*?\))? )?(const )?(async )?(unsafe )?(extern \"C\" )?fn (\w+)", l)
            if not head or next((m for m in lines[k:] if m.rstrip().endswith(("{", ";", "}"))), "").rstrip().endswith(";"):
                continue  # no function, or one of a trait without a body
            # An entry of a table of functions has what it does behind a sign of equality, in place of braces.
            first = next((n for n in range(k, len(lines)) if lines[n].rstrip().endswith(("{", ";", "}"))), k)
            is_entry = any(m.lstrip().startswith("= ") for m in lines[k + 1 : first + 1])
            ends = [head[1] + end for end in (["    });"] if is_entry else ["}", "};"])]
            end = next((n for n in range(k, len(lines)) if lines[n].rstrip() in ends), k)
            if end - k + 1 > 80 and not reasoned(text, k + 1):
                long.append((end - k + 1, f"{p} {head[8]}"))
    return f"{len(long)}" + (f", the longest {max(long)[1]} with {max(long)[0]}" if long else ""), not long


@line("house", f"lines of code, over commit {HOUSE_BEFORE}, what moved to examples counted", "<= 0.92")
def _():
    now, before = (sum(len(code_of(t)) for t in rust_files(c).values()) for c in (None, HOUSE_BEFORE))
    return f"{now / before:.3f} ({now} over {before})", now <= 0.92 * before


@line("house", "the same without what is new since then (`HOUSE_NEW`): the same features", "<= 0.92")
def _():
    new = tuple(place for place, _ in HOUSE_NEW)
    files = rust_files()
    if unknown := [place for place in new if not any(p.startswith(place) for p in files)]:
        raise Missing(f"nothing lies at {', '.join(unknown)}")
    before = rust_files(HOUSE_BEFORE)
    if old := [p for p in before if p.startswith(new)]:
        raise Missing(f"not new: {', '.join(old)}")
    size = lambda some: sum(len(code_of(text)) for text in some.values())
    left, all_before = size({p: t for p, t in files.items() if not p.startswith(new)}), size(before)
    return f"{left / all_before:.3f} ({left} over {all_before}; new: {size(files) - left})", left <= 0.92 * all_before


def unsafe_places(commit, inside):
    files = rust_files(commit).items()
    return sum(len(re.findall(r"\bunsafe\s*(\{|impl|fn|extern)", l)) for p, t in files if p.startswith(HOUSE_EDGE) == inside for _, l in code_of(t))


@line("house", f"unsafe blocks, functions and impls outside base, fabric, lane, ffi, over commit {HOUSE_BEFORE}", "<= 0.1")
def _():
    now, before = (unsafe_places(c, False) for c in (None, HOUSE_BEFORE))
    return f"{now / before:.2f} ({now} over {before})", now <= 0.1 * before


@line("house", f"the same inside base, fabric, lane, ffi, over commit {HOUSE_BEFORE}", "<= 1")
def _():
    now, before = (unsafe_places(c, True) for c in (None, HOUSE_BEFORE))
    return f"{now / before:.2f} ({now} over {before})", now <= before


@functools.cache
def simulated(test, schedules):
    """Plays scenes of the deterministic network, optimised; what it says, and whether all was well."""
    command = ["cargo", "test", "--locked", "--release", "--lib", "::runs::" + test, "--", "--nocapture", "--test-threads", "1"]
    done = subprocess.run(command, cwd=ROOT, env=tests_env(FMPL_SCHEDULES=str(schedules)), capture_output=True, text=True)
    if "running" not in done.stdout:
        raise Missing((done.stdout + done.stderr)[-300:])
    return done.stdout + done.stderr, done.returncode == 0


def hundred_thousand(*tests):
    """Plays so many schedules, as many of each test; the rate of each, and whether all was well in time."""
    text, held = "", True
    since = time.monotonic()
    for test in tests:
        said, well = simulated(test, -(-100_000 // len(tests)))
        rate = re.search(r"(\d+) a second", said)
        text += f"{test.replace('_', ' ')} {rate[1] + ' a second' if rate else 'not whole'}; "
        held = held and well
    took = time.monotonic() - since
    return f"{text}{took:.0f} s with building", held and took < 900


SCENES_OF_RANKS = (
    "messages_come",
    "messages_amid_a_death",
    "messages_amid_breaks",
    "calls_of_all",
    "deaths_amid_calls_of_all",
    "breaks_amid_calls_of_all",
)


@line("house", "the deterministic network, connections: 100 000 schedules, with places given up, losses, breaks, deaths", "0 wrong, 0 hangs, in ten minutes")
def _():
    return hundred_thousand("connections_come_and_go", "a_rank_dies", "a_connection_breaks")


@line("house", "the same with messages, any source, collective calls and communicators of whole ranks: 100 000 schedules", "0 wrong, 0 hangs, in ten minutes")
def _():
    return hundred_thousand(*SCENES_OF_RANKS)


@line("house", "rules of the protocol between nodes that are left out, one at a time", "all of at least 20 noticed")
def _():
    found, held = [], True
    for test in ("rules_left_out_are_noticed", "rules_of_messages", "rules_of_any_source"):
        said, well = simulated(test, 0)
        # The test's own name comes before the first.
        found += re.findall(r"(\w+): exit status: (\d+)", said)
        held = held and well
    return f"{sum(code != '0' for _, code in found)} of {len(found)}", held and len(found) >= 20


@line("house", "8 B between nodes (over verbs): instructions of ours from the call of send to the device's post; before: 1041", "<= 350")
def _():
    ours, whole, theirs = (rig.get(name) for name in ("send_instructions", "send_instructions_in_all", "send_foreign_instructions"))
    return f"{ours:.0f} (to its return {whole:.0f}; the provider's {theirs:.0f})", ours <= 350


@line("house", "8 B between nodes (over verbs): instructions of ours of a receive whose message is there; before: 1250", "<= 350")
def _():
    ours = rig.get("recv_instructions")
    return f"{ours:.0f}", ours <= 350


# Counted the same way at the commit before.
ON_A_NODE = {"send": 128, "recv": 151}


@functools.cache
def on_a_node():
    """Instructions of a call of 8 bytes on a node, by name."""
    text, well = said(test_program("conformance"), "steps_of_a_short_message")
    found = {name: int(n) for name, n in re.findall(r"figure (\w+)_instructions (\d+)", text)}
    if not well or found.keys() < ON_A_NODE.keys():
        raise Missing(text[-300:])
    return found


for call, before in ON_A_NODE.items():
    @line("house", f"8 B on a node: instructions of {call}, nobody waits", f"<= {before}, as before")
    def _(call=call, before=before):
        return f"{on_a_node()[call]}", on_a_node()[call] <= before
