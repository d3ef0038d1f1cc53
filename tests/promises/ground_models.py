"""Models on the production source, and its orderings that they need: `tests/model` says how they look, `tests/model/weakened` what is weakened."""

MODELS = {
    "arena": "the arena of the collective calls",
    "leaving": "the end of a team",
    "order": "membarrier refused to one side, both, or later",
    "life": "first contact and init against death",
    "freed": "communicators freed beside a death, or a count of memory",
}


def loom_program():
    """tests/model, built as tests/model/run builds it."""
    return test_program("model", "--no-default-features", RUSTFLAGS="--cfg loom", CARGO_TARGET_DIR=str(TARGET / "loom"))


@functools.cache
def models(part):
    """Executions of each model of a file, looked at for ten seconds; whether all held."""
    env = {**os.environ, "FMPL_MODEL_SECONDS": "10"}
    done = subprocess.run([loom_program(), part + "::", "--nocapture"], cwd=ROOT, env=env, capture_output=True, text=True)
    executions = collections.Counter()
    for name, n in re.findall(r"(\w+): (?:all|the first) (\d+) executions", done.stdout):
        executions[name] += int(n)
    return executions, done.returncode == 0


for part, what in MODELS.items():

    @line("ground", f"models of {what}: executions, all as they should", "> 0 each")
    def _(part=part):
        executions, held = models(part)
        text = f"{sum(executions.values())} in {len(executions)} models"
        return text + f", the least {min(executions.values(), default=0)}", held and len(executions) > 0


@functools.cache
def experiments():
    """The experiments of all lines of the table: what was weakened, the model, whether that noticed."""
    done = subprocess.run([loom_program(), "every_weakening_is_noticed", "--ignored", "--nocapture"], cwd=ROOT, capture_output=True, text=True)
    lines = (ROOT / "tests/model/weakened").read_text().splitlines()
    found = re.findall(r"^(\d+): (.* loses \w+): (?:(\S+) notices, |(not noticed.*))", done.stdout, re.M)
    if not found:
        raise Missing(cause(done.stdout + done.stderr))
    return [(lines[int(n) - 1], place, model, not missed) for n, place, model, missed in found]


def noticed(belongs):
    ours = [(place, well) for text, place, model, well in experiments() if belongs(text, model)]
    missed = [place for place, well in ours if not well]
    return f"{len(ours) - len(missed)} of {len(ours)}" + (f", not {'; '.join(missed)}" if missed else ""), bool(ours) and not missed


for part, what in MODELS.items():

    @line("ground", f"orderings and locks that the models of {what} need, of those taken away", "all noticed")
    def _(part=part):
        names = re.findall(r"fn (\w+)\(|^    (\w+) = \w+, \w+;", (ROOT / f"tests/model/{part}.rs").read_text(), re.M)
        names = {a or b for a, b in names}
        return noticed(lambda text, model: model.split("::")[-1] in names)


@line("ground", "orderings of the whole source that a model needs, of those taken away", "all noticed")
def _():
    return noticed(lambda text, model: True)
