"""What a job tells of itself: levels, counters by way, events. The scenes are those of tests/told."""


def told(test, *options):
    text, well = said(test_program("told", *options, profile="dev"), test)
    return "test passes" if well else cause(text), well


@line("ground", "trace: levels of FMPL_LOG, each tells its own and what is above it; before: debug added nothing", "tests pass")
def _():
    return told("each_level_tells_its_own")


@line("ground", "trace: messages and bytes by way, added up: short, queued, spool, ring, turn, shared, kernel, pulled, store, loan", "all that were sent")
def _():
    return told("messages_are_counted_by_way")


@line("ground", "trace: fmpl run --stats, of 2 and of 17 ranks, as JSON, of a rank that is killed", "tests pass")
def _():
    results = [told(test) for test in ("a_table", "in_json", "of_a_rank_that_dies")]
    return f"{sum(well for _, well in results)} of {len(results)}", all(well for _, well in results)


@line("ground", "trace: events of two ranks as text and for Chrome: at finalize, in a stall, at a signal, the last of many", "tests pass")
def _():
    return told("events_are", "--features", "trace")


def symbols(*options, directory):
    """How many functions of events the shared library has."""
    command = ["cargo", "build", "--locked", "--release", "--lib", *options]
    env = tests_env(CARGO_TARGET_DIR=str(TARGET / directory))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    library = TARGET / directory / "release/libfmpl.so"
    return len(re.findall(r"4base5trace|note_sent", library.read_bytes().decode("latin-1")))


@line("ground", "trace: names of events in the shared library without the feature, and with it (that they would be found)", "0, > 0")
def _():
    without, with_it = symbols(directory="trace-off"), symbols("--features", "trace", directory="trace-on")
    return f"{without}, {with_it}", without == 0 and with_it > 0
