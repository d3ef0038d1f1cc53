"""Global memory as ACP's own programs use it: refusals, joining again, registering for a moment. The scenes are those of tests/rma."""

BEFORE = "619a46e"  # the last commit that tested registered memory by two copies of the kernel's
# Both versions alike, whatever their profiles say.
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
LISTS = 11


def rma(test):
    """What a test of tests/rma says, and whether it holds."""
    done = subprocess.run([test_program("rma"), test], capture_output=True, text=True)
    found = re.findall(r"^test \w+ \.\.\. ok \((.*) s\)$", done.stdout, re.M)
    well = done.returncode == 0 and len(found) == 1
    return (f"so it is, in {found[0]} s" if well else cause(done.stdout + done.stderr)), well


@line("ground", "a refused copy, its flag, what follows that, ALL and CONT: told, counted, not done; before: silent, the flag came", "all")
def _():
    return rma("what_is_refused_is_told_and_keeps_its_followers_back")


@line("ground", "acp_init and acp_finalize 100 times in a process, 1 to 4 ranks: descriptors and threads stay; before: the second failed", "all")
def _():
    return rma("a_process_joins_again_a_hundred_times")


def library(source, target):
    """The command and the library of a version of the project."""
    command = ["cargo", "build", "--locked", "--release", "--lib", "--bin", "fmpl"]
    env = {**os.environ, **QUICK, "CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return target / "release"


def list_program(source, made):
    """tests/promises/acp_list.c with that version's header and library."""
    program, known_as = made / "acp_list", made / "libfmpl.so.0"
    if not known_as.is_symlink():
        known_as.symlink_to("libfmpl.so")
    text = ROOT / "tests" / "promises" / "acp_list.c"
    command = ["cc", "-O2", f"-I{source}/include", str(text), "-o", str(program), f"-L{made}", "-lfmpl", f"-Wl,-rpath,{made}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return program


def insert(made, program):
    """ns of a registration and its end, and of an insertion."""
    env = {**os.environ, "FMPL_RMA_STARTER": "8M"}
    done = subprocess.run([made / "fmpl", "run", "-n", "2", "--", program], env=env, capture_output=True, text=True)
    found = re.search(r"register (\d+) insertion (\d+)", done.stdout)
    if done.returncode or not found:
        raise Missing(cause(done.stdout + done.stderr))
    return int(found[1]), int(found[2])


@functools.cache
def lists():
    """Figures of this version and of the one before, by turns."""
    now = library(ROOT, TARGET / "shows" / "now")
    source = TARGET / "shows" / "before"
    if not (source / "Cargo.toml").exists():
        packed = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True)
        if packed.returncode:
            raise Missing(f"the commit {BEFORE} is not in this clone's history")
        source.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "x"], cwd=source, input=packed.stdout, check=True)
    then = library(source, source / "target")
    programs = [(now, list_program(ROOT, now)), (then, list_program(source, then))]
    return [[insert(*of) for of in programs] for _ in range(LISTS)]


@line("ground", "register + unregister of private memory; before: 3.7 us", "<= 500 ns")
def _():
    figures = sorted(now[0] for now, _ in lists())
    then = sorted(then[0] for _, then in lists())
    middle = figures[len(figures) // 2]
    return f"{figures[0]} {middle} ns (before: {then[0]} {then[len(then) // 2]})", middle <= 500


@line("ground", f"a list of 10^5 insertions that registers a word for each, over commit {BEFORE}, by turns", "<= 0.35")
def _():
    each = [[now[1] for now, _ in lists()], [then[1] for _, then in lists()]]
    least = min(each[0]) / min(each[1])
    middle = statistics.median(now / then for now, then in zip(*each))
    return f"{least:.2f} {middle:.2f} ({min(each[0])} over {min(each[1])} ns)", max(least, middle) <= 0.35
