"""The arena of the collective calls: models on the production source, and lines taken over with every payload compared."""


@functools.cache
def loom_program():
    """tests/model, built as tests/model/run builds it."""
    env = {**os.environ, "RUSTFLAGS": "--cfg loom", "CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
    env["CARGO_TARGET_DIR"] = str(TARGET / "loom")
    command = ["cargo", "test", "--locked", "--release", "--no-default-features", "--test", "model", "--no-run", "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    artifacts = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    return next(a["executable"] for a in artifacts if a.get("target", {}).get("name") == "model" and a.get("executable"))


@functools.cache
def arena_models():
    """Executions of each model, looked at for ten seconds; whether all held."""
    env = {**os.environ, "FMPL_MODEL_SECONDS": "10"}
    done = subprocess.run([loom_program(), "arena::", "--nocapture"], cwd=ROOT, env=env, capture_output=True, text=True)
    executions = collections.Counter()
    for name, n in re.findall(r"(arena_\w+): (?:all|the first) (\d+) executions", done.stdout):
        executions[name] += int(n)
    return executions, done.returncode == 0


for model in sorted(set(re.findall(r"fn (arena_\w+)\(", (ROOT / "tests/model/arena.rs").read_text()))):

    @line("ground", f"model {model}: executions, all as they should", "> 0")
    def _(model=model):
        executions, held = arena_models()
        return str(executions[model]), held and executions[model] > 0


@line("ground", "arena: orderings of src/coll that a model needs, of those taken away", "all noticed")
def _():
    table = (ROOT / "tests/model/weakened").read_text().splitlines()
    ours = [k for k, text in enumerate(table, 1) if text.startswith("src/coll/")]
    env = {**os.environ, "FMPL_MODEL_LINES": f"{ours[0]}-{ours[-1]}"}
    command = [loom_program(), "every_weakening_is_noticed", "--ignored", "--nocapture"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    noticed = len(re.findall(r" notices, ", done.stdout))
    return f"{noticed} noticed", done.returncode == 0 and noticed > 0


def collective(test, seconds):
    command = ["cargo", "test", "--locked", "--test", "collective", "--", test]
    done = subprocess.run(command, cwd=ROOT, env=tests_env(), capture_output=True, text=True, timeout=seconds)
    return done.stdout[-300:], f"test {test} ... ok" in done.stdout and done.returncode == 0


@line("ground", "lines taken over, on and off: 10 collective calls, message rings and rings of any source, 2 to 4 ranks: wrong payloads", "0")
def _():
    text, holds = collective("lines_taken_over_keep_every_payload", 1800)
    return "0" if holds else text, holds


@line("ground", "collective calls with different lengths: 9 calls, 16 pairs of lengths, 2 and 3 ranks: told, and the job goes on", "all")
def _():
    text, holds = collective("different_lengths_are_an_error_that_names_them", 1800)
    return "all" if holds else text, holds
